"""What is drawn carries the numbers that were computed."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression

from unflip import ImportanceReweightingClassifier, NoiseRates, TransitionMatrix, flip_labels
from unflip.audit import LabelAudit
from unflip.inspection import (
    MislabelCalibrationDisplay,
    NoiseRatesDisplay,
    SensitivityDisplay,
    WeightsDisplay,
    mislabel_calibration,
    posterior_histogram,
    rate_sensitivity,
    weight_histogram,
)
from unflip.noise import RatesInterval

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

RATES = NoiseRates(positive=0.3, negative=0.1)
INTERVAL = RatesInterval.from_pairs(positive=(0.25, 0.4), negative=(0.05, 0.2))


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    X = rng.normal(2 * y[:, None], 1.0, (300, 2))
    return X, flip_labels(y, RATES, random_state=0), y


@pytest.fixture(scope="module")
def clf(data):
    return ImportanceReweightingClassifier(noise_rates=RATES).fit(*data[:2])


@pytest.fixture(scope="module")
def three():
    rng = np.random.default_rng(0)
    y = np.array(list("abc"))[rng.integers(0, 3, 300)]
    noise = TransitionMatrix.pair_flip(3, 0.2)
    X = rng.normal(size=(300, 2)) + 3 * (y == "b")[:, None] - 3 * (y == "c")[:, None]
    y = flip_labels(y, noise, random_state=0)
    return ImportanceReweightingClassifier(noise_rates=noise).fit(X, y), X, y


@pytest.fixture
def plt():
    """Pyplot, all of whose figures are drawn and closed after the test."""
    from matplotlib import pyplot

    yield pyplot
    for number in pyplot.get_fignums():
        pyplot.figure(number).canvas.draw()
    pyplot.close("all")


def test_the_values_at_anchor_points_are_drawn(plt, clf, data):
    X, y, _ = data
    display = NoiseRatesDisplay.from_estimator(clf, X, y, interval=INTERVAL, bins=10)
    assert_allclose([line.get_xdata()[0] for line in display.lines_], [0.1, 0.7])
    ends = [(span.get_x(), span.get_x() + span.get_width()) for span in display.spans_]
    assert_allclose(ends, [(0.05, 0.2), (0.6, 0.75)])
    heights = [[bar.get_height() for bar in bars] for bars in display.bars_]
    expected = posterior_histogram(clf.posterior_.predict_proba(X), y, RATES, bins=10)
    assert_allclose(heights, expected.counts)
    assert_allclose([bar.get_y() for bar in display.bars_[1]], expected.counts[0])  # stacked
    assert display.ax_.get_xlabel() == "P(observed = 1 | x)"
    legend = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert legend[:4] == ["labelled 0", "labelled 1", "rho_neg = 0.100", "1 - rho_pos = 0.700"]


def test_one_of_three_classes_has_a_line_per_true_class(plt, three):
    clf, X, y = three
    display = NoiseRatesDisplay.from_estimator(clf, X, y, pos_label="b")
    assert_allclose([line.get_xdata()[0] for line in display.lines_], [0.2, 0.8, 0.0])
    assert display.spans_ == []


def test_many_classes_share_one_legend_entry(plt):
    noise = TransitionMatrix.uniform(6, 0.5)
    display = NoiseRatesDisplay.from_predictions([0.2] * 6, range(6), noise, pos_label=0)
    legend = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert legend == [
        "labelled not 0",
        "labelled 0",
        "certainly 0: 0.500",
        "certainly another class",
    ]
    assert len(display.lines_) == 6


def test_the_bounds_of_the_weights_are_drawn(plt, clf, data):
    _, y, _ = data
    display = WeightsDisplay.from_estimator(clf, y, bins=8)
    assert_allclose([line.get_xdata()[0] for line in display.lines_], [1 / 0.9, 1 / 0.7])
    shares = weight_histogram(clf.sample_weight_, y, RATES, bins=8).shares
    heights = np.array([[bar.get_height() for bar in bars] for bars in display.bars_])
    assert_allclose(heights / heights.max(), shares / shares.max())
    size = clf.effective_sample_size_
    title = f"effective sample size {size:.0f} of 300 rows ({size / 300:.0%})"
    assert display.ax_.get_title() == title
    assert display.ax_.get_yticklabels()[0].get_text().startswith("labelled 0\n")


def test_three_classes_have_three_lines_of_weights(plt, three):
    clf, _, y = three
    display = WeightsDisplay.from_estimator(clf, y)
    assert_allclose([line.get_xdata()[0] for line in display.lines_], [1.25] * 3)


def test_the_reliability_diagram_is_the_calibration_curve(plt, data):
    X, y, true = data
    audit = LabelAudit(noise_rates=RATES, random_state=0).fit(X, y)
    display = MislabelCalibrationDisplay.from_estimator(audit, y, true, n_bins=5)
    curve = mislabel_calibration(y != true, audit.mislabel_proba_, n_bins=5)
    assert_allclose(display.line_.get_xdata(), curve.predicted)
    assert_allclose(display.line_.get_ydata(), curve.observed)
    assert_allclose([bar.get_height() for bar in display.bars_], curve.counts / 300)
    title = f"expected calibration error {curve.calibration_error:.3f}"
    assert display.ax_.get_title() == title


def test_the_three_panels_are_the_curves(plt, clf, data):
    X, y, true = data
    display = SensitivityDisplay.from_estimator(clf, X, y, X, true, grid=[-0.05, 0.1])
    curves = rate_sensitivity(clf, X, y, X, true, grid=[-0.05, 0.1])
    names = "scores", "effective_sample_sizes", "mean_weights"
    for lines, name in zip(display.lines_, names, strict=True):
        for line, curve in zip(lines, curves, strict=True):
            assert_allclose(line.get_xdata(), curve.rates)
            assert_allclose(line.get_ydata(), getattr(curve, name))
    labels = [axes.get_ylabel() for axes in display.ax_]
    assert labels == ["accuracy", "effective sample size", "mean weight"]
    estimates = [line.get_xdata().tolist() for line in display.ax_[0].lines[1::2]]
    assert_allclose(estimates, [[0.3], [0.1]])


def test_given_axes_are_drawn_on_and_no_figure_is_opened(plt, clf, data):
    X, y, true = data
    figure, axes = plt.subplots(2, 3)
    shown = posterior_histogram(clf.posterior_.predict_proba(X), y, RATES)
    displays = [
        NoiseRatesDisplay(shown).plot(axes[0, 0]),
        WeightsDisplay(weight_histogram(clf.sample_weight_, y, RATES)).plot(axes[0, 1]),
        MislabelCalibrationDisplay.from_predictions(y != true, clf.mislabel_proba_, ax=axes[0, 2]),
        SensitivityDisplay.from_estimator(clf, X, y, X, true, grid=[0.1], ax=axes[1]),
    ]
    assert all(display.figure_ is figure for display in displays)
    assert displays[0].ax_ is axes[0, 0]
    assert list(displays[3].ax_) == list(axes[1])
    assert len(plt.get_fignums()) == 1
    with pytest.raises(ValueError, match="three axes"):
        displays[3].plot(axes[0, 0])


def test_style_is_the_users(plt, clf, data):
    _, y, true = data
    display = MislabelCalibrationDisplay.from_estimator(clf, y, true, color="red", linestyle=":")
    assert display.line_.get_color() == "red"
    assert display.line_.get_linestyle() == ":"
    display = WeightsDisplay.from_estimator(clf, y, hatch="")
    assert display.bars_[0][0].get_hatch() == ""


def test_classes_are_told_apart_without_colour(plt, clf, data):
    X, y, true = data
    first, second = NoiseRatesDisplay.from_estimator(clf, X, y).bars_
    assert first[0].get_hatch() != second[0].get_hatch()
    lines = SensitivityDisplay.from_estimator(clf, X, y, X, true, grid=[0.1]).lines_[0]
    assert len({line.get_linestyle() for line in lines}) == 2
    assert len({line.get_marker() for line in lines}) == 2


def test_estimators_without_the_numbers_are_sent_elsewhere(data):
    X, y, true = data
    plain = LogisticRegression().fit(X, y)
    with pytest.raises(TypeError, match="preprocessing_"):
        NoiseRatesDisplay.from_estimator(plain, X, y)
    with pytest.raises(TypeError, match="sample_weight_"):
        WeightsDisplay.from_estimator(plain, y)
    with pytest.raises(TypeError, match="mislabel_proba_"):
        MislabelCalibrationDisplay.from_estimator(plain, y, true)
