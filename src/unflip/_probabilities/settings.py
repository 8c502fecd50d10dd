"""The numbers that the noise hypotheses rest on, each with its source."""

from dataclasses import dataclass

BENCHMARK = "python -m benchmarks.probability_worlds"


@dataclass(frozen=True)
class Settings:
    """Meaning and source of every number; `BENCHMARK` is the command that chose those it names."""

    # Probabilities below are taken as this: single and half precision have zeros.
    floor: float = 1e-9
    # Prior standard deviation of log a in softmax(a log p + b): a factor of 1.6 either way.
    scale_spread: float = 0.5
    # The same of b, for two classes and for more. With 0.1 for two, the error rate of logistic
    # regression's probabilities under unequal flips comes out .06 too low, because the model's
    # boundary has moved (`BENCHMARK --gaussian`). With 0.5 for more, b takes the place of T: three
    # classes with noise by class are overcounted by 13 % instead of 2 % (`BENCHMARK`).
    shift_spread_of_two: float = 1.0
    shift_spread_of_more: float = 0.1
    # Beta prior of the error rate: one in ten, as certain as two samples make it.
    rate_prior: tuple[float, float] = (0.2, 1.8)
    # Largest prior rate of the rows of T; 1/2 is where labels stop being informative.
    largest_prior_rate: float = 0.5
    # Quantile of flatness up to which samples belong to some class: at most a quarter of a dataset
    # is out of distribution.
    usual_quantile: float = 0.75
    # Nats per sample by which out-of-distribution samples are found in data that have none, because
    # no model is quite calibrated: the largest value in `BENCHMARK`.
    miscalibration: float = 0.007
    # With fewer classes, samples between the classes and samples of no class look alike.
    fewest_classes_with_none: int = 3
    # EM steps by which T is removed from p, and the smallest probability they start from; what
    # they leave is absorbed by recalibration.
    inversion_steps: int = 3
    inversion_start: float = 1e-3
    # Hypotheses are weighted as if there were at most this many samples (coarsened posterior,
    # Miller and Dunson, JASA 2019): none is exactly right. 300 ranks worse in `BENCHMARK`.
    coarse_samples: int = 100
    # A class has anchor points if this share of the samples classified as it surely belong to it.
    anchor_share: float = 0.01
    # Nats of prior odds against hypotheses under which no class has anchor points: nearly all
    # datasets have some (`BENCHMARK`).
    no_anchors: float = 4.0
    # A model's own miscalibration adds this share of a rate to its standard error: two parameters
    # do not recalibrate every network exactly (`BENCHMARK`).
    relative_model_error: float = 0.1
    # The rest bounds the time of a fit. Probabilities that hypotheses are fitted to (of more
    # samples, a random subset is used), but at least this many samples and samples per class.
    fitted_values: int = 80_000
    fewest_fitted: int = 2000
    fitted_per_class: int = 60
    # Number of samples that choose the starting point of the fit of T.
    starting_samples: int = 2000
    # With more classes no T is fitted, which has as many entries as there are pairs of classes.
    most_classes: int = 100
    # Draws from the posterior of a hypothesis (a standard deviation is then known to within a
    # seventh), and probabilities that each is computed on.
    draws: int = 25
    drawn_values: int = 30_000
    # Probabilities that are computed at a time, which fit a processor's cache, and least samples.
    block_values: int = 1 << 16
    block_samples: int = 1 << 10

    def shift_spread(self, n_classes: int) -> float:
        """Return the prior standard deviation of b."""
        return self.shift_spread_of_two if n_classes == 2 else self.shift_spread_of_more


SETTINGS = Settings()
