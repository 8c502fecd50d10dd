"""The numbers that the noise of slices rests on, each with its meaning, unit and source."""

from dataclasses import dataclass


@dataclass(frozen=True)
class SliceSettings:
    """Meaning, unit and source of every number."""

    # Prior standard deviation of the shift of the log odds of the classes in a slice, beyond what
    # the columns say: a factor of e either way. The shift stays finite if a slice has one class.
    shift_deviation: float = 1.0
    # P(true | x) is taken as at least this, and for two classes as at most one minus this, so that
    # no single label rules out all rates.
    smallest_clean_probability: float = 1e-4
    # Minimum probability of an observed label. Numerical necessity: a logarithm is taken of it.
    smallest_label_probability: float = 1e-12
    # Maximum number of bins of P(true=+1 | x) in which samples are counted. The samples of a bin
    # differ so little that the likelihood hardly changes. Bounds the time.
    posterior_bins: int = 64
    # Number of values of each of two rates on successive grids, each of which covers the region of
    # high likelihood on the one before. The ends of an interval are interpolated on the last.
    rate_grids: tuple[int, ...] = (16, 16, 16, 30)
    # The same for the scale s of T for more classes: values of a grid, and number of grids.
    scale_values: int = 24
    scale_grids: int = 3
    # Number of Fisher scoring steps that find the shift for two classes, and maximum number of
    # steps that find the shifts of more classes. Bounds the time.
    shift_steps_of_two: int = 8
    shift_steps_of_more: int = 25
    # The shifts have converged if they change by less than this, which changes the log-likelihood
    # by less than 1e-8 per sample.
    settled_shift: float = 1e-4


SETTINGS = SliceSettings()
