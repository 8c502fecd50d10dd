"""What a notebook shows of a fitted estimator."""

import numpy as np
import pytest

from unflip import ImportanceReweightingClassifier, LabelAudit, NoiseRates, flip_labels

RATES = NoiseRates(positive=0.3, negative=0.1)
X = np.r_[np.linspace(-5, -1, 50), np.linspace(1, 5, 50)][:, None]
CLEAN = np.repeat(["<b>", "dog"], 50)
Y = flip_labels(CLEAN, RATES, random_state=0)


@pytest.mark.parametrize(
    "estimator", [ImportanceReweightingClassifier(noise_rates=RATES), LabelAudit("auto", RATES)]
)
def test_rates_and_errors_are_shown_below_the_diagram_once_fitted(estimator):
    assert "are expected" not in estimator._repr_html_()
    shown = estimator.fit(X, Y)._repr_html_()
    diagram, _, below = shown.rpartition("<table")
    assert type(estimator).__name__ in diagram
    assert "<td>dog</td><td>30.0%</td>" in below
    assert "<td>&lt;b&gt;</td><td>10.0%</td>" in below
    assert f"{estimator.mislabel_proba_.sum():.0f} of 100 labels are expected" in shown
    assert "labels are expected to be wrong" in estimator._repr_mimebundle_()["text/html"]


def test_of_many_classes_the_first_are_shown():
    labels = np.arange(1200) % 12
    rows = np.eye(12)[labels] * 5
    noise = 0.95 * np.eye(12) + 0.05 / 12
    audit = LabelAudit("auto", noise, random_state=0).fit(rows, labels)
    _, _, below = audit._repr_html_().rpartition("<table")
    assert below.count("<tr>") == 1 + 10 + 1
    assert "... 2 more" in below
