"""What a notebook shows of a fitted estimator."""

import numpy as np
import pandas as pd
import pytest

from unflip import ImportanceReweightingClassifier, LabelAudit, NoiseRates, flip_labels

RATES = NoiseRates(positive=0.3, negative=0.1)
X = np.r_[np.linspace(-5, -1, 50), np.linspace(1, 5, 50)][:, None]
CLEAN = np.repeat(["<b>", "dog"], 50)
Y = flip_labels(CLEAN, RATES, random_state=0)


@pytest.mark.parametrize(
    "estimator",
    [
        ImportanceReweightingClassifier(noise_rates=RATES),
        LabelAudit("auto", RATES, random_state=0),
    ],
)
def test_rates_and_errors_are_shown_below_the_diagram_once_fitted(estimator):
    assert "of the labels" not in estimator._repr_html_()
    shown = estimator.fit(X, Y)._repr_html_()
    diagram, below, rows = shown.rsplit("<table", 2)
    assert type(estimator).__name__ in diagram
    assert "<td>dog</td><td>30.0%</td>" in below
    assert "<td>&lt;b&gt;</td><td>10.0%</td>" in below
    # P(true=dog) = (P(noisy=dog) - 0.1) / 0.6
    true = (np.mean(Y == "dog") - 0.1) / 0.6
    assert estimator.n_errors_ == pytest.approx(100 * (0.3 * true + 0.1 * (1 - true)), abs=1.5)
    assert f"some {estimator.n_errors_:.0f} of 100" in shown
    assert str(estimator.noise_.verdict) in shown
    worst = np.argmax(estimator.mislabel_proba_)
    label = "&lt;b&gt;" if Y[worst] == "<b>" else "dog"
    assert f"<tbody><tr><td>{worst}</td><td>{label}</td>" in rows
    assert "of the labels are wrong" in estimator._repr_mimebundle_()["text/html"]


def test_of_many_classes_those_that_are_flipped_most_are_shown():
    labels = np.arange(1200) % 12
    rows = np.eye(12)[labels] * 5
    noise = 0.95 * np.eye(12) + 0.05 / 12
    noise[7] = 0.8 * np.eye(12)[7] + 0.2 / 12
    audit = LabelAudit("auto", noise, random_state=0).fit(rows, labels)
    _, below, rows = audit._repr_html_().rsplit("<table", 2)
    assert below.count("<tr>") == 1 + 3 + 1
    assert below.index("<td>7</td>") < below.index("<td>0</td>") < below.index("9 others")
    assert rows.count("<tr>") == 1 + 5


def test_suspicious_rows_are_named_by_the_index_of_a_dataframe():
    index = [f"customer {k} & co" for k in range(100)]
    y = pd.Series(Y, index=index)
    clf = ImportanceReweightingClassifier(noise_rates=RATES).fit(pd.DataFrame(X, index=index), y)
    worst = np.argsort(-clf.mislabel_proba_, kind="stable")[:5]
    for k in worst:
        assert f"<td>customer {k} &amp; co</td>" in clf._repr_html_()


def test_where_no_label_may_be_wrong_no_row_is_shown():
    clean = ImportanceReweightingClassifier(noise_rates=NoiseRates(0.0, 0.0)).fit(X, CLEAN)
    assert "suspicious" not in clean._repr_html_()
