"""The data sets, noise rates and methods of each table and figure of the paper."""

from dataclasses import dataclass

import numpy as np

from unflip.datasets import BENCHMARKS

Pair = tuple[float, float]

RATE_PAIRS: tuple[Pair, ...] = ((0.0, 0.4), (0.1, 0.3), (0.2, 0.2))
ACCURACY_PAIRS: tuple[Pair, ...] = ((0.2, 0.2), (0.3, 0.1), (0.4, 0.4))
FIGURE_PAIRS: tuple[Pair, ...] = (
    (0.1, 0.1),
    (0.2, 0.2),
    (0.3, 0.1),
    (0.1, 0.3),
    (0.3, 0.3),
    (0.4, 0.4),
)
LEVELS: tuple[Pair, ...] = tuple(
    (level, level) for level in np.linspace(0.2, 0.45, 11).round(12).tolist()
)

LEARNERS = {
    "kernel-hinge": "kernel, hinge loss",
    "kernel-logistic": "kernel, logistic loss",
    "linear-hinge": "linear, hinge loss",
    "linear-logistic": "linear, logistic loss",
}

METHOD_NAMES = {
    "plain": "plain",
    "ld": "LD",
    "ub": "UB",
    "stpmkl": "StPMKL",
    "eiw": "eIW",
    "iw": "IW",
    "cleanlab": "cleanlab",
    "cross-validation": "cross-validation",
    "scott": "Scott",
    "liu-tao": "minimum (the paper's)",
}

RATE_METHODS = ("cross-validation", "scott", "liu-tao")


@dataclass(frozen=True)
class Experiment:
    """A table or a figure: data sets x noise rates x learners x methods.

    Examples
    --------
    >>> from unflip.paper.experiments import EXPERIMENTS
    >>> EXPERIMENTS["table1"].methods
    ('cross-validation', 'scott', 'liu-tao')
    """

    name: str
    title: str
    datasets: tuple[str, ...]
    pairs: tuple[Pair, ...]
    methods: tuple[str, ...]
    learners: tuple[str, ...] = ("",)
    known_rates: bool = False
    """Whether the methods are given the true rates."""
    repeats_per_repeat: int = 1
    """Splits per requested split: more for the smooth curves of a cheap fit."""

    @property
    def measures_rates(self) -> bool:
        """Whether noise rates are measured instead of accuracy."""
        return self.methods == RATE_METHODS

    def needs_data(self) -> bool:
        """Whether any data set is not synthetic.

        Returns
        -------
        bool
            True where one is read.
        """
        return not all(name.startswith("synthetic") for name in self.datasets)


def _accuracy_table(number: int, learner: str, methods: tuple[str, ...]) -> Experiment:
    return Experiment(
        name=f"table{number}",
        title=f"Table {number}: accuracy, {LEARNERS[learner]}",
        datasets=tuple(BENCHMARKS),
        pairs=ACCURACY_PAIRS,
        methods=methods,
        learners=(learner,),
    )


EXPERIMENTS = {
    experiment.name: experiment
    for experiment in (
        Experiment(
            name="table1",
            title="Table 1: noise rates, synthetic data",
            datasets=("synthetic-2d", "synthetic-20d"),
            pairs=RATE_PAIRS,
            methods=RATE_METHODS,
        ),
        Experiment(
            name="table2",
            title="Table 2: noise rates, benchmark data",
            datasets=("heart", "diabetis"),
            pairs=RATE_PAIRS,
            methods=RATE_METHODS,
        ),
        _accuracy_table(3, "kernel-hinge", ("plain", "ld", "stpmkl", "eiw", "iw")),
        _accuracy_table(4, "kernel-logistic", ("plain", "ld", "ub", "eiw", "iw")),
        _accuracy_table(5, "linear-hinge", ("plain", "ld", "eiw", "iw")),
        _accuracy_table(6, "linear-logistic", ("plain", "ld", "ub", "eiw", "iw")),
        Experiment(
            name="figure1",
            title="Figure 1: accuracy with known rates, synthetic data",
            datasets=("synthetic-2d",),
            pairs=FIGURE_PAIRS,
            methods=("plain", "ld", "ub", "iw"),
            learners=("linear-hinge", "linear-logistic"),
            known_rates=True,
        ),
        Experiment(
            name="levels",
            title="Accuracy of the plain methods by noise level",
            datasets=tuple(BENCHMARKS),
            pairs=LEVELS,
            methods=("plain",),
            learners=tuple(LEARNERS),
            repeats_per_repeat=4,
        ),
    )
}
"""In the order of the paper; "levels" finds the noise that would explain its (0.4, 0.4) rows."""
