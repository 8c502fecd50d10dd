"""One run: split, flip the training labels, fit, and score on clean labels."""

import time
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from unflip._utils.typing import Array
from unflip.datasets import load_benchmark, make_separable
from unflip.noise import NoiseRates, flip_labels
from unflip.paper.experiments._choices import SYNTHETIC_ROWS, TRAINING_SHARE
from unflip.paper.experiments._config import EXPERIMENTS
from unflip.paper.experiments._methods import make_classifier, make_rate_estimator


@dataclass(frozen=True)
class Run:
    """One fit of one method on one split of one data set with one noise.

    Examples
    --------
    >>> from unflip.paper.experiments import planned_runs
    >>> run = next(planned_runs(["figure1"], repeats=1))
    >>> run.dataset, run.method, run.repeat
    ('synthetic-2d', 'plain', 0)
    """

    experiment: str
    learner: str
    dataset: str
    rho_pos: float
    rho_neg: float
    method: str
    repeat: int


@dataclass(frozen=True)
class Outcome:
    """The result of a run.

    Examples
    --------
    >>> from unflip.paper.experiments import Outcome
    >>> Outcome(accuracy=0.9, rho_pos=None, rho_neg=None, seconds=0.1).accuracy
    0.9
    """

    accuracy: float | None
    """Accuracy on clean test labels in percent; None if rates are measured."""
    rho_pos: float | None
    rho_neg: float | None
    """The rates that the method used or estimated; None if it has none."""
    seconds: float
    """Processor time of `fit`, including the choice of rates."""


def planned_runs(
    names: Iterable[str], repeats: int, *, peers: bool = False, datasets: Iterable[str] = ()
) -> Iterator[Run]:
    """Yield the runs of the named experiments.

    Parameters
    ----------
    names : iterable of str
        Keys of :data:`EXPERIMENTS`.
    repeats : int
        Number of splits of each data set.
    peers : bool, default=False
        Also run cleanlab in the tables whose learner has the probabilities that it needs.
    datasets : iterable of str, default=()
        Data sets to run; empty for all.

    Yields
    ------
    Run
        In the order of the experiments.
    """
    only = tuple(datasets)
    for name in names:
        experiment = EXPERIMENTS[name]
        for learner in experiment.learners:
            methods = [
                method
                for method in experiment.methods
                # the unbiased hinge loss is not convex; the paper leaves it out
                if not (method == "ub" and learner.endswith("hinge"))
            ]
            if peers and name.startswith("table") and learner.endswith("logistic"):
                methods.append("cleanlab")
            for dataset in experiment.datasets:
                if only and dataset not in only:
                    continue
                for pair in experiment.pairs:
                    for method in methods:
                        for repeat in range(repeats * experiment.repeats_per_repeat):
                            yield Run(name, learner, dataset, *pair, method, repeat)


def perform(run: Run) -> Outcome:
    """Split, flip, fit and measure.

    Returns
    -------
    Outcome
        What was measured.
    """
    X_train, y_noisy, X_test, y_test, clean_prior = noisy_split(
        run.dataset, run.rho_pos, run.rho_neg, run.repeat
    )
    experiment = EXPERIMENTS[run.experiment]
    if experiment.measures_rates:
        model = make_rate_estimator(run.method, run.dataset, clean_prior, seed=run.repeat)
    else:
        known = NoiseRates(run.rho_pos, run.rho_neg) if experiment.known_rates else None
        model = make_classifier(run.method, run.learner, len(y_noisy), known, seed=run.repeat)
        if run.method == "cleanlab":  # accepts only 0 and 1
            y_noisy, y_test = (y_noisy + 1) // 2, (y_test + 1) // 2
    with warnings.catch_warnings(), _global_seed(run.repeat):
        # the published estimates sometimes contradict the data, and the methods warn
        warnings.simplefilter("ignore", UserWarning)
        started = time.process_time()
        model.fit(X_train, y_noisy)
        seconds = time.process_time() - started
    positive, negative = _rates_of(model)
    accuracy = None
    if not experiment.measures_rates:
        accuracy = 100 * float(np.mean(model.predict(X_test) == y_test))
    return Outcome(accuracy, positive, negative, seconds)


@contextmanager
def _global_seed(seed: int) -> Iterator[None]:
    """Seed numpy's global generator, from which cleanlab draws, and leave it as it was."""
    before = np.random.get_state()  # noqa: NPY002
    np.random.seed(seed)  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(before)  # noqa: NPY002


def noisy_split(
    dataset: str, rho_pos: float, rho_neg: float, repeat: int
) -> tuple[Array, Array, Array, Array, float]:
    """Return X_train, noisy y_train, X_test, clean y_test and P(true=+1).

    The split is the same for every method, learner and table: `repeat` is the only seed.
    """
    X, y = dataset_table(dataset, repeat)
    random_state = np.random.RandomState(repeat)
    order = random_state.permutation(len(y))
    train, test = np.split(order, [int(TRAINING_SHARE * len(y))])
    y_noisy = flip_labels(y[train], NoiseRates(rho_pos, rho_neg), random_state)
    return X[train], np.asarray(y_noisy), X[test], y[test], float(np.mean(y == 1))


def dataset_table(name: str, repeat: int) -> tuple[Array, Array]:
    """Return X and clean y of a benchmark, or of a draw of "synthetic-2d" or "synthetic-20d"."""
    if name.startswith("synthetic"):
        n_features = int(name.removeprefix("synthetic-").removesuffix("d"))
        return make_separable(SYNTHETIC_ROWS, n_features, random_state=repeat)
    return load_benchmark(name)


def _rates_of(model: Any) -> tuple[float | None, float | None]:
    """Return the rates of a fitted estimator, or of the last step of a pipeline."""
    last = model[-1] if isinstance(model, Pipeline) else model
    rates = getattr(last, "rates_", getattr(last, "noise_rates_", None))
    return (None, None) if rates is None else rates.both()
