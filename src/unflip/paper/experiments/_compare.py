"""Measured numbers, compared with those that the paper printed."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import rankdata, wilcoxon
from sklearn.isotonic import IsotonicRegression

from unflip._utils.typing import Floats
from unflip.paper.experiments._config import ACCURACY_PAIRS, EXPERIMENTS, Pair
from unflip.paper.experiments._protocol import Outcome, Run
from unflip.paper.experiments._published import Published, published

QUANTITIES = ("accuracy", "rho_pos", "rho_neg")

CHECKED_PAIRS: tuple[Pair, ...] = ((0.2, 0.2), (0.3, 0.1))
"""Noise at which the plain rows should agree with the paper's; at (0.4, 0.4) they do not."""


@dataclass(frozen=True)
class Measurement:
    """A quantity of one method on one data set with one noise, over all splits.

    Examples
    --------
    >>> from unflip.paper.experiments import Outcome, planned_runs, summarise
    >>> run = next(planned_runs(["figure1"], repeats=1))
    >>> results = summarise({run: Outcome(0.9, None, None, 0.1)}, repeats=1)
    >>> results.measurements[0].mean
    0.9
    """

    experiment: str
    learner: str
    dataset: str
    rho_pos: float
    rho_neg: float
    method: str
    quantity: str
    """"accuracy" in percent, "rho_pos" or "rho_neg"."""
    values: tuple[float, ...]
    """One per split."""
    seconds: float
    """Mean processor time of a fit."""
    paper: Published | None
    """The paper's mean and standard deviation; None if not printed."""
    rates_error: float | None
    """Mean absolute error of the estimated rates; None if the method estimates none."""

    @property
    def pair(self) -> Pair:
        """The true noise rates."""
        return self.rho_pos, self.rho_neg

    @property
    def true_rate(self) -> float:
        """The true value of the rate that was estimated."""
        return self.rho_pos if self.quantity == "rho_pos" else self.rho_neg

    @property
    def mean(self) -> float:
        """Mean over the splits."""
        return float(np.mean(self.values))

    @property
    def sd(self) -> float:
        """Standard deviation over the splits."""
        return float(np.std(self.values, ddof=1)) if len(self.values) > 1 else 0.0

    @property
    def deviations(self) -> float | None:
        """Difference from the paper's mean, in the paper's standard deviations."""
        if self.paper is None:
            return None
        return (self.mean - self.paper.mean) / max(self.paper.sd, 1e-3)

    @property
    def agrees(self) -> bool | None:
        """Whether the mean is within two of the paper's standard deviations."""
        return None if self.deviations is None else abs(self.deviations) <= 2


@dataclass(frozen=True)
class MethodSummary:
    """Summary of a method over all rows of an accuracy table."""

    method: str
    average: float
    paper_average: float | None
    """Mean of the paper's rows (the printed average differs from it by up to 0.08)."""
    checked_average: float
    """Average over the rows at CHECKED_PAIRS."""
    paper_checked_average: float | None
    rank: float
    """Mean rank over the rows; 1 is the best."""
    above_plain: int
    """Number of rows in which the mean is above that of the plain method."""
    p_value: float | None
    """P-value of Wilcoxon's paired test against the plain method; None for the plain method."""
    rates_error: float | None
    """Mean absolute error of the estimated rates."""
    seconds: float


@dataclass(frozen=True)
class ExplainingLevel:
    """The symmetric noise at which our plain accuracy equals the paper's at (0.4, 0.4)."""

    learner: str
    dataset: str
    paper: Published
    level: float
    low: float
    """Level for the paper's mean plus one standard error."""
    high: float
    """Level for the paper's mean minus one standard error."""


class Results:
    """All measurements of finished runs.

    Parameters
    ----------
    measurements : list of Measurement
        In the order of the experiments.

    Examples
    --------
    >>> from unflip.paper.experiments import Outcome, planned_runs, summarise
    >>> run = next(planned_runs(["figure1"], repeats=1))
    >>> summarise({run: Outcome(0.9, None, None, 0.1)}, repeats=1).methods("figure1")
    ['plain']
    """

    def __init__(self, measurements: list[Measurement]) -> None:
        self.measurements = measurements

    def of(self, experiment: str, **fields: Any) -> list[Measurement]:
        """Return the measurements of an experiment whose fields have the given values.

        Returns
        -------
        list of Measurement
            In the order measured.
        """
        return [
            entry
            for entry in self.measurements
            if entry.experiment == experiment
            and all(vars(entry)[name] == value for name, value in fields.items())
        ]

    @property
    def experiments(self) -> list[str]:
        """The experiments that have measurements, in the paper's order."""
        present = {entry.experiment for entry in self.measurements}
        return [name for name in EXPERIMENTS if name in present]

    def compares_methods(self, experiment: str) -> bool:
        """Whether the experiment is an accuracy table.

        Returns
        -------
        bool
            True of an accuracy table.
        """
        return experiment.startswith("table") and not EXPERIMENTS[experiment].measures_rates

    def methods(self, experiment: str) -> list[str]:
        """Return the methods that were run, in the order of the table.

        Returns
        -------
        list of str
            Names.
        """
        present = {entry.method for entry in self.of(experiment)}
        in_order = (*EXPERIMENTS[experiment].methods, "cleanlab")
        return [method for method in in_order if method in present]

    def accuracy_rows(self, experiment: str) -> dict[tuple[str, Pair], dict[str, Measurement]]:
        """Return the rows of an accuracy table: by data set and noise, then by method.

        Returns
        -------
        dict of dict of Measurement
            By (data set, noise), then by method.
        """
        rows: dict[tuple[str, Pair], dict[str, Measurement]] = defaultdict(dict)
        for entry in self.of(experiment, quantity="accuracy"):
            rows[entry.dataset, entry.pair][entry.method] = entry
        return dict(rows)

    def compare_methods(self, experiment: str) -> list[MethodSummary]:
        """Return averages, ranks and tests against the plain method, over the table's rows.

        Returns
        -------
        list of MethodSummary
            One per method.
        """
        methods = self.methods(experiment)
        rows = list(self.accuracy_rows(experiment).values())
        means = np.array([[row[method].mean for method in methods] for row in rows])
        ranks = rankdata(-means.round(9), axis=1).mean(axis=0)
        plain = means[:, methods.index("plain")]
        summaries = []
        for k, method in enumerate(methods):
            measurements = [row[method] for row in rows]
            checked = [entry for entry in measurements if entry.pair in CHECKED_PAIRS]
            gain = (means[:, k] - plain).round(9)
            summaries.append(
                MethodSummary(
                    method=method,
                    average=float(means[:, k].mean()),
                    paper_average=_paper_average(measurements),
                    checked_average=float(np.mean([entry.mean for entry in checked])),
                    paper_checked_average=_paper_average(checked),
                    rank=float(ranks[k]),
                    above_plain=int((gain > 0).sum()),
                    p_value=None if method == "plain" else _wilcoxon(gain),
                    rates_error=_mean_of_known([entry.rates_error for entry in measurements]),
                    seconds=float(np.mean([entry.seconds for entry in measurements])),
                )
            )
        return summaries

    def plain_agreement(self, experiment: str) -> tuple[int, int]:
        """Return how many plain means at CHECKED_PAIRS agree with the paper's, and their number.

        Returns
        -------
        tuple of two ints
            How many agree, and of how many.
        """
        checked = [
            entry
            for entry in self.of(experiment, method="plain", quantity="accuracy")
            if entry.pair in CHECKED_PAIRS and entry.paper is not None
        ]
        return sum(bool(entry.agrees) for entry in checked), len(checked)

    def explaining_levels(self) -> list[ExplainingLevel]:
        """Return the noise that explains the paper's last row, for each learner and data set.

        Returns
        -------
        list of ExplainingLevel
            One per learner and data set.
        """
        found = []
        for name in ("table3", "table4", "table5", "table6"):
            (learner,) = EXPERIMENTS[name].learners
            for dataset in EXPERIMENTS[name].datasets:
                curve = self.of("levels", learner=learner, dataset=dataset)
                if not curve:
                    continue
                cell = (name, dataset, *ACCURACY_PAIRS[-1], "plain")
                printed = published()[cell, "accuracy"]
                levels = np.array([entry.rho_pos for entry in curve])
                means = np.array([entry.mean for entry in curve])
                error = printed.sd / np.sqrt(10)
                level, low, high = (
                    level_at(accuracy, levels, means)
                    for accuracy in (printed.mean, printed.mean + error, printed.mean - error)
                )
                found.append(ExplainingLevel(learner, dataset, printed, level, low, high))
        return found


def summarise(outcomes: Mapping[Run, Outcome], repeats: int) -> Results:
    """Return the measurements of the finished runs.

    Parameters
    ----------
    outcomes : mapping from Run to Outcome
        Finished runs.
    repeats : int
        Number of splits to use, before the experiment's `repeats_per_repeat`.

    Returns
    -------
    Results
        Means and spreads over the splits.
    """
    groups: dict[tuple[str, str, str, float, float, str], dict[int, Outcome]] = defaultdict(dict)
    for run, outcome in outcomes.items():
        if run.repeat < repeats * EXPERIMENTS[run.experiment].repeats_per_repeat:
            key = (run.experiment, run.learner, run.dataset, run.rho_pos, run.rho_neg, run.method)
            groups[key][run.repeat] = outcome
    measurements = []
    for key in sorted(groups, key=_paper_order):
        experiment, _, dataset, rho_pos, rho_neg, method = key
        done = [outcome for _, outcome in sorted(groups[key].items())]
        measured = QUANTITIES[1:] if EXPERIMENTS[experiment].measures_rates else QUANTITIES[:1]
        for quantity in measured:
            cell = (experiment, dataset, rho_pos, rho_neg, method)
            measurements.append(
                Measurement(
                    *key,
                    quantity,
                    values=tuple(vars(outcome)[quantity] for outcome in done),
                    seconds=float(np.mean([outcome.seconds for outcome in done])),
                    paper=published().get((cell, quantity)),
                    rates_error=_rates_error(done, method, rho_pos, rho_neg),
                )
            )
    return Results(measurements)


def level_at(accuracy: float, levels: Floats, means: Floats) -> float:
    """Return the level at which a decreasing curve takes the value `accuracy`, by interpolation.

    Isotonic regression makes the curve monotone first. Values beyond the curve give its end.
    """
    decreasing = IsotonicRegression(increasing=False).fit_transform(levels, means)
    return float(np.interp(-accuracy, -decreasing, levels))


def _paper_average(measurements: list[Measurement]) -> float | None:
    return _mean_of_known([entry.paper.mean if entry.paper else None for entry in measurements])


def _rates_error(
    outcomes: list[Outcome], method: str, rho_pos: float, rho_neg: float
) -> float | None:
    """Return the mean error of both rates; None for methods that use only a function of them."""
    if method in ("ld", "stpmkl"):
        return None
    return _mean_of_known(
        [
            None if estimate is None else abs(estimate - true)
            for outcome in outcomes
            for estimate, true in ((outcome.rho_pos, rho_pos), (outcome.rho_neg, rho_neg))
        ]
    )


def _mean_of_known(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def _wilcoxon(gain: Floats) -> float:
    """Return the two-sided p-value, exact where no two gains are tied; 1 if nothing differs."""
    if not gain.any():
        return 1.0
    tied = len(np.unique(np.abs(gain))) < len(gain) or not gain.all()
    method = "asymptotic" if tied else "exact"  # scipy's own choice has changed over the years
    return float(wilcoxon(gain, zero_method="zsplit", method=method).pvalue)


def _paper_order(key: Any) -> tuple[int, ...]:
    """Return the sort key of a measurement: its position in the paper."""
    name, learner, dataset, rho_pos, rho_neg, method = key
    experiment = EXPERIMENTS[name]
    methods = (*experiment.methods, "cleanlab")
    return (
        list(EXPERIMENTS).index(name),
        experiment.learners.index(learner),
        experiment.datasets.index(dataset),
        experiment.pairs.index((rho_pos, rho_neg)),
        methods.index(method),
    )
