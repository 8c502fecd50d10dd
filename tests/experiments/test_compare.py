"""Means, ranks, tests and levels against their definitions."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.experiments.made import made_outcomes, made_results, papers
from unflip.paper.experiments import (
    EXPERIMENTS,
    Measurement,
    Outcome,
    Published,
    Results,
    Run,
    published,
    summarise,
)

ROWS = 18  # six data sets x three pairs
PRINTED = Published(70.0, 2.0)


def measurement(values=(70.0, 72.0, 77.0), paper=PRINTED) -> Measurement:
    cell = ("table6", "linear-logistic", "heart", 0.3, 0.1, "plain", "accuracy")
    return Measurement(*cell, values, 1.0, paper, rates_error=None)


def table_of(means: dict[str, np.ndarray]) -> Results:
    """Return table 6 whose figure for a method in row k is means[method][k]."""
    experiment = EXPERIMENTS["table6"]
    cells = [(dataset, pair) for dataset in experiment.datasets for pair in experiment.pairs]

    def accuracy(run):
        return float(means[run.method][cells.index((run.dataset, (run.rho_pos, run.rho_neg)))])

    return made_results(["table6"], accuracy)


def random_means(rng, ties: bool) -> dict[str, np.ndarray]:
    methods = EXPERIMENTS["table6"].methods
    if ties:
        return {method: rng.integers(60, 64, ROWS).astype(float) for method in methods}
    return {method: rng.uniform(60, 90, ROWS) for method in methods}


def test_mean_and_standard_deviation_are_over_the_splits():
    assert measurement().mean == pytest.approx(73)
    assert measurement().sd == pytest.approx(np.sqrt((9 + 1 + 16) / 2))
    assert measurement(values=(71.0,)).sd == 0


def test_deviations_count_the_papers_standard_deviations():
    assert measurement().deviations == pytest.approx(1.5)
    assert measurement(values=(65.0,)).deviations == pytest.approx(-2.5)
    assert measurement(paper=None).deviations is None


@pytest.mark.parametrize(
    ("value", "expected"), [(74.0, True), (74.1, False), (66.0, True), (65.9, False)]
)
def test_a_mean_agrees_within_two_standard_deviations(value, expected):
    assert measurement(values=(value,)).agrees is expected
    assert measurement(values=(value,), paper=None).agrees is None


def test_a_printed_spread_of_nothing_does_not_divide_by_zero():
    assert measurement(values=(0.5,), paper=Published(0.0, 0.0)).agrees is False
    assert measurement(values=(0.0,), paper=Published(0.0, 0.0)).agrees is True


@pytest.mark.parametrize("ties", [False, True])
def test_the_average_rank_counts_the_better_and_half_of_the_equal(ties):
    means = random_means(np.random.default_rng(0), ties)
    for summary in table_of(means).compare_methods("table6"):
        ranks = []
        for k in range(ROWS):
            own = means[summary.method][k]
            better = sum(other[k] > own for other in means.values())
            equal = sum(other[k] == own for other in means.values())  # itself too
            ranks.append(better + (equal + 1) / 2)
        assert summary.rank == pytest.approx(np.mean(ranks))


def test_averages_and_wins_are_over_the_rows():
    means = random_means(np.random.default_rng(1), ties=True)
    results = table_of(means)
    for summary in results.compare_methods("table6"):
        assert summary.average == pytest.approx(means[summary.method].mean())
        assert summary.above_plain == (means[summary.method] > means["plain"]).sum()
        printed = [
            p.mean
            for (cell, _), p in published().items()
            if (cell[0], cell[-1]) == ("table6", summary.method)
        ]
        assert summary.paper_average == pytest.approx(np.mean(printed))
        assert summary.seconds == 0.5


def test_the_wilcoxon_p_value_is_the_share_of_sign_patterns_as_extreme():
    means = random_means(np.random.default_rng(2), ties=False)
    # number of the 2^18 patterns of signs that give each sum of positive ranks
    patterns = np.ones(1)
    for rank in range(1, ROWS + 1):
        patterns = np.convolve(patterns, np.eye(1, rank + 1, 0)[0] + np.eye(1, rank + 1, rank)[0])
    for summary in table_of(means).compare_methods("table6"):
        if summary.method == "plain":
            assert summary.p_value is None
            continue
        gain = means[summary.method] - means["plain"]
        rank_of = np.abs(gain).argsort().argsort() + 1
        positive = rank_of[gain > 0].sum()
        tail = min(patterns[: positive + 1].sum(), patterns[positive:].sum())
        assert summary.p_value == pytest.approx(min(1, 2 * tail / 2**ROWS))


def test_methods_that_do_not_differ_have_a_p_value_of_one():
    (_, *others) = made_results(["table6"]).compare_methods("table6")
    assert {summary.p_value for summary in others} == {1.0}
    assert {summary.rank for summary in others} == {3.0}


def test_a_peer_is_ranked_and_has_no_published_average():
    results = made_results(["table6"], peers=True)
    assert results.methods("table6")[-1] == "cleanlab"
    assert results.compare_methods("table6")[-1].paper_average is None


def test_plain_agreement_counts_the_first_two_pairs_only():
    def accuracy(run):
        if run.rho_pos == 0.4:
            return 0.0
        return papers(run) + (50 if (run.dataset, run.rho_pos) == ("german", 0.3) else 0)

    results = made_results(["table5", "table6"], accuracy)
    assert results.plain_agreement("table5") == (11, 12)
    assert results.plain_agreement("table6") == (11, 12)


@settings(max_examples=8)
@given(st.lists(st.floats(50, 95), min_size=11, max_size=11))
def test_a_higher_accuracy_is_explained_by_no_more_noise_whatever_the_curve(means):
    levels = np.linspace(0.2, 0.45, 11)

    def accuracy(run):
        return means[np.abs(levels - run.rho_pos).argmin()]

    points = made_results(["levels"], accuracy, repeats=1).explaining_levels()
    assert len(points) == 4 * 6
    for point in points:  # each at the printed accuracy, and at one above and one below it
        assert 0.2 <= point.low <= point.level + 1e-9
        assert point.level <= point.high + 1e-9 <= 0.45 + 2e-9


def test_the_explaining_level_is_where_the_plain_curve_meets_the_papers_last_row():
    explained = made_results(["levels"], lambda run: 100 - 90 * run.rho_pos, repeats=1)
    points = explained.explaining_levels()
    assert len(points) == 4 * 6
    table = {"kernel-hinge": 3, "kernel-logistic": 4, "linear-hinge": 5, "linear-logistic": 6}
    for point in points:
        cell = (f"table{table[point.learner]}", point.dataset, 0.4, 0.4, "plain")
        printed = published()[cell, "accuracy"]
        assert point.paper == printed
        error = printed.sd / np.sqrt(10)
        for found, accuracy in (
            (point.level, printed.mean),
            (point.low, printed.mean + error),
            (point.high, printed.mean - error),
        ):
            assert found == pytest.approx(np.clip((100 - accuracy) / 90, 0.2, 0.45))
        assert point.low <= point.level <= point.high


def test_without_curves_no_level_is_explained():
    assert made_results(["table6"]).explaining_levels() == []


def test_only_the_repeats_asked_for_are_summarised():
    outcomes = made_outcomes(["table6", "levels"], lambda run: float(run.repeat), repeats=3)
    results = summarise(outcomes, 2)
    assert {figure.values for figure in results.of("table6")} == {(0.0, 1.0)}
    assert {figure.values for figure in results.of("levels")} == {tuple(map(float, range(8)))}


def test_figures_are_in_the_papers_order_and_values_in_that_of_the_splits():
    outcomes = made_outcomes(EXPERIMENTS, lambda run: float(run.repeat), peers=True, repeats=1)
    runs = list(outcomes)
    shuffled = [runs[k] for k in np.random.default_rng(0).permutation(len(runs))]
    results = summarise({run: outcomes[run] for run in shuffled}, 1)
    in_order = summarise(outcomes, 1)  # planned in the paper's order
    assert results.measurements == in_order.measurements
    assert results.experiments == list(EXPERIMENTS)
    assert results.methods("table4") == ["plain", "ld", "ub", "eiw", "iw", "cleanlab"]
    curve = results.of("levels", learner="kernel-hinge", dataset="image")
    assert all(low.rho_pos < high.rho_pos for low, high in pairwise(curve))
    assert all(figure.values == (0.0, 1.0, 2.0, 3.0) for figure in curve)


def test_a_rate_table_has_two_figures_for_each_cell_and_an_accuracy_table_one():
    results = made_results(["table1", "table5"])
    assert [f.quantity for f in results.of("table1")] == ["rho_pos", "rho_neg"] * 18
    assert [f.quantity for f in results.of("table5")] == ["accuracy"] * 72
    assert all(f.mean == getattr(f, f.quantity) for f in results.of("table1"))


def test_every_figure_of_a_table_has_the_papers_beside_it_and_no_other_has():
    results = made_results(EXPERIMENTS, peers=True, repeats=1)
    with_paper = {figure.experiment for figure in results.measurements if figure.paper is not None}
    without = {
        (f.experiment, f.method == "cleanlab") for f in results.measurements if f.paper is None
    }
    assert with_paper == {f"table{k}" for k in range(1, 7)}
    assert without == {("table4", True), ("table6", True), ("figure1", False), ("levels", False)}


def test_the_error_of_the_rates_is_over_both_rates_and_all_splits():
    cell = ("table6", "linear-logistic", "heart", 0.3, 0.1)
    outcomes = {
        Run(*cell, method, repeat): Outcome(70.0, *rates, 1.0)
        for method in ("eiw", "ld", "plain")
        for repeat, rates in enumerate([(0.3, 0.1), (0.2, 0.4)])
    }
    plain = Run(*cell, "plain", 0)
    outcomes |= {plain: Outcome(70.0, None, None, 1.0)}
    del outcomes[Run(*cell, "plain", 1)]
    error = {figure.method: figure.rates_error for figure in summarise(outcomes, 2).measurements}
    np.testing.assert_allclose(error.pop("eiw"), (0 + 0 + 0.1 + 0.3) / 4)
    assert error == {"ld": None, "plain": None}  # a difference of rates is no pair of rates
