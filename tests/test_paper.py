"""The full comparison with Liu and Tao's tables, at their ten splits."""

import numpy as np
import pytest

from tests.experiments.beside import benchmark_folder
from unflip.paper.experiments import EXPERIMENTS, REPEATS, Results, perform, planned_runs, summarise


@pytest.fixture
def measured(monkeypatch):
    """Run one method of some tables."""

    def measure(*names: str, method: str, pairs) -> Results:
        if any(EXPERIMENTS[name].needs_data() for name in names):
            monkeypatch.setenv("UNFLIP_DATA", benchmark_folder())
        runs = [
            run
            for run in planned_runs(names, REPEATS)
            if run.method == method and (run.rho_pos, run.rho_neg) in pairs
        ]
        return summarise({run: perform(run) for run in runs}, REPEATS)

    return measure


@pytest.mark.slow
@pytest.mark.parametrize("pair", EXPERIMENTS["table1"].pairs, ids=str)
@pytest.mark.parametrize("name", ["table1", "table2"])
def test_the_rates_by_the_minimum_are_within_six_hundredths_of_the_papers(measured, name, pair):
    figures = measured(name, method="liu-tao", pairs=[pair]).measurements
    assert len(figures) == 4  # two data sets, two rates
    means, papers = zip(*((figure.mean, figure.paper.mean) for figure in figures), strict=True)
    np.testing.assert_allclose(means, papers, atol=0.06)


@pytest.mark.slow
@pytest.mark.parametrize(
    "tables", [("table3", "table4"), ("table5", "table6")], ids=["kernel", "linear"]
)
def test_plain_accuracies_agree_within_two_standard_deviations_in_twenty_of_24_cells(
    measured, tables
):
    results = measured(*tables, method="plain", pairs=[(0.2, 0.2), (0.3, 0.1)])
    within, total = np.sum([results.plain_agreement(name) for name in tables], axis=0)
    assert total == 24
    assert within >= 20
