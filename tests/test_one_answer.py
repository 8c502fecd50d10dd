"""The same table, label and seed give the same error rate through every entry point."""

import pytest
from benchmarks.one_answer import answers, tables

pytest.importorskip("dask")
pytestmark = pytest.mark.filterwarnings("ignore::unflip.LabelNoiseWarning")

QUICK = ("small", "weighted, 3 classes", "categories and missing values")
ROUNDING = 5e-5  # a report writes four digits


@pytest.mark.parametrize(
    "table",
    [
        pytest.param(one, id=one.name, marks=() if one.name in QUICK else pytest.mark.slow)
        for one in tables()
    ],
)
def test_every_entry_point_reports_the_same_error_rate(table) -> None:
    found = answers(table)
    expected = found["classifier"]
    assert found["mean"] == pytest.approx(expected, abs=1e-9)
    assert found == pytest.approx(dict.fromkeys(found, expected), abs=ROUNDING)
    assert {"audit", "streaming", "Dask"} < found.keys()
