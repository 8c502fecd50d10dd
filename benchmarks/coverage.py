"""How often the channel's 95 % interval holds the true rates, and how often its tests are wrong.

`python -m benchmarks.coverage [--draws 500]`: simulated data sets of three kinds, each drawn anew
(`--first` leaves out as many, to keep some unseen). The interval's coverage is counted under noise,
beside that of Wald's interval of the counts that one would have with the true labels; the test of
"no noise" on clean labels and that of "both classes alike" under equal rates, where each should
reject in 5 % of the sets or fewer.

Then 3, 5 and 10 Gaussian classes under noise of a kind that is drawn too: one rate for all, one
target for each class, or rows of T at random. Counted are the entries of T, the classes' flip
rates, the share of labels that such noise makes wrong on average, which the interval is of, and the
share that is wrong in the data at hand, which varies less.

Last, the goodness of fit of true models, linear in the columns or in their squares and products:
5 % of the statistics should be above the limit of 5 %.
"""

import argparse
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.special import expit, softmax
from scipy.stats import norm

from benchmarks.multiclass import NOISES, matrix
from unflip import NoiseRates, TransitionMatrix, flip_labels
from unflip.noise_rates import ChannelRates
from unflip.posterior import ChannelPosterior

Array = NDArray[Any]


def overlapping(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Return rows in two dimensions whose classes overlap: a logistic border."""
    X = rng.normal(size=(n, 2))
    return X, rng.random(n) < expit(4 * X[:, 0])


def gaussians(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Return two Gaussian classes in five dimensions, one positive in four."""
    y = rng.random(n) < 0.25
    return rng.normal(size=(n, 5)) + 1.3 * y[:, None], y


def ring(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Return rows in two dimensions, positive within a circle."""
    X = rng.normal(size=(n, 2))
    return X, (X**2).sum(axis=1) < 1.4


SETTINGS: dict[str, tuple[Callable[[np.random.Generator, int], tuple[Array, Array]], int]] = {
    "overlapping, n = 300": (overlapping, 300),
    "Gaussians, n = 1000": (gaussians, 1000),
    "ring, n = 2000": (ring, 2000),
}
ASYMMETRIC, EQUAL, NONE = NoiseRates(0.3, 0.1), NoiseRates(0.2, 0.2), NoiseRates(0.0, 0.0)


def drawn(setting: str, rates: NoiseRates, seed: int) -> tuple[Array, Array, Array]:
    """Return rows, true and given labels."""
    draw, n = SETTINGS[setting]
    X, y = draw(np.random.default_rng(seed), n)
    return X, y, flip_labels(y, rates, random_state=seed)


def channel(X: Array, given: Array, seed: int) -> ChannelRates:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ChannelRates(random_state=seed).fit(X, given)


def held(setting: str, seed: int) -> list[bool]:
    X, y, given = drawn(setting, ASYMMETRIC, seed)
    bounds = channel(X, given, seed).interval_.both()
    counted = [wald(given[y == label] != label) for label in (True, False)]
    pairs = zip([*bounds, *counted], 2 * ASYMMETRIC.both(), strict=True)
    return [low <= rate <= high for (low, high), rate in pairs]


def wald(flipped: Array) -> tuple[float, float]:
    share = float(flipped.mean())
    error = float(norm.isf(0.025) * np.sqrt(share * (1 - share) / flipped.size))
    return share - error, share + error


def rejected(setting: str, seed: int) -> list[bool]:
    X, _, given = drawn(setting, NONE, seed)
    noise = channel(X, given, seed).noise_test_
    X, _, given = drawn(setting, EQUAL, seed)
    symmetry = channel(X, given, seed).symmetry_test_
    assert noise is not None
    assert symmetry is not None
    return [noise.p_value < 0.05, symmetry.p_value < 0.05]


CLASSES = (3, 5, 10)


def many_held(n_classes: int, seed: int, n_rows: int = 1000) -> list[float]:
    """Return the shares of T's entries and of flip rates that are held, and both of errors.

    Parameters
    ----------
    n_classes, n_rows : int
        How many classes and rows.
    seed : int
        Of rows, noise and labels.
    """
    rng = np.random.default_rng([n_classes, seed])
    y = rng.integers(0, n_classes, n_rows)
    X = 3 * np.eye(n_classes)[y] + rng.normal(size=(n_rows, n_classes))
    T = matrix(NOISES[1 + seed % 3], n_classes, rng)
    given = flip_labels(y, T, random_state=seed)
    interval = channel(X, given, seed).interval_
    inside = (interval.low <= T + 1e-12) & (interval.high >= T - 1e-12)
    assert interval.label_error_rate is not None
    low, high = interval.label_error_rate
    shares = np.mean(1 - np.diag(T)[y]), np.mean(y != given)
    return [inside.mean(), np.diag(inside).mean(), *(float(low <= x <= high) for x in shares)]


def print_many(seeds: range, jobs: int) -> None:
    columns = " ".join(f"{name:>9}" for name in ("T", "flips", "share", "at hand"))
    print(f"{'the interval holds':22} {columns}   of {len(seeds)} data sets")
    for n_classes in CLASSES:
        run = Parallel(jobs)(delayed(many_held)(n_classes, seed) for seed in seeds)
        name = f"{n_classes} classes, n = 1000"
        print(f"{name:22} " + " ".join(f"{share:9.1%}" for share in np.mean(run, axis=0)))
        for kind in range(3):
            shares = np.mean(run[(kind - seeds.start) % 3 :: 3], axis=0)
            print(f"  {NOISES[1 + kind]:20} " + " ".join(f"{share:9.1%}" for share in shares))


TRUE_MODELS = tuple(
    (n_classes, n_rows, curved)
    for n_classes, n_rows in ((2, 300), (2, 1000), (2, 3000), (3, 300), (3, 1000), (5, 1000))
    for curved in (False, True)
)
"""Number of classes and rows, and whether the classes are curved."""


def goodness_of_fit(n_classes: int, n_rows: int, curved: bool, seed: int) -> float:
    """Return the statistic of the goodness of fit of a true model."""
    rng = np.random.default_rng([n_classes, n_rows, curved, seed])
    X = rng.normal(size=(n_rows, 4))
    if curved:
        products = X[:, :1] * X[:, 1:]
        X = np.column_stack([X, X**2, products])
    t = 3 * (X - X.mean(axis=0)) @ rng.normal(size=(X.shape[1], n_classes)) / X.shape[1] ** 0.5
    edges = softmax(t, axis=1).cumsum(axis=1)
    y = np.minimum((rng.random((n_rows, 1)) > edges).sum(axis=1), n_classes - 1)
    given = flip_labels(y, TransitionMatrix.uniform(n_classes, 0.2), random_state=seed)
    check = ChannelPosterior(random_state=seed).fit(X, given).check_
    assert check is not None
    return check.statistic


def print_goodness_of_fit(seeds: range, jobs: int) -> None:
    print(f"{'goodness of fit':34}  mean   s.d.  above 5 %   of {len(seeds)} data sets")
    for n_classes, n_rows, curved in TRUE_MODELS:
        run = Parallel(jobs)(
            delayed(goodness_of_fit)(n_classes, n_rows, curved, seed) for seed in seeds
        )
        name = f"{n_classes} classes, n = {n_rows}, {'curved' if curved else 'linear'}"
        share = np.mean(np.array(run) > norm.isf(0.05))
        print(f"{name:34} {np.mean(run):5.2f} {np.std(run):6.2f} {share:10.1%}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=500, help="data sets for the intervals")
    parser.add_argument("--test-draws", type=int, default=100, help="data sets for the tests")
    parser.add_argument("--many-draws", type=int, default=300, help="of more than two classes")
    parser.add_argument("--fit-draws", type=int, default=500, help="for the goodness of fit")
    parser.add_argument("--first", type=int, default=0, help="first data set")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    for title, columns, count, draws in (
        ("the interval holds", ("rho_pos", "rho_neg", "counted", "counted"), held, options.draws),
        ("wrongly rejected", ("no noise", "alike"), rejected, options.test_draws),
    ):
        if not draws:
            continue
        print(f"{title:22} {' '.join(f'{name:>9}' for name in columns)}   of {draws} data sets")
        seeds = range(options.first, options.first + draws)
        for setting in SETTINGS:
            run = Parallel(options.jobs)(delayed(count)(setting, seed) for seed in seeds)
            print(f"{setting:22} " + " ".join(f"{share:9.1%}" for share in np.mean(run, axis=0)))
    if options.many_draws:
        print_many(range(options.first, options.first + options.many_draws), options.jobs)
    if options.fit_draws:
        print_goodness_of_fit(range(options.first, options.first + options.fit_draws), options.jobs)


if __name__ == "__main__":
    # other processes find the functions of a module, and not all that those of __main__ use
    from benchmarks import coverage

    coverage.main()
