"""The picture of noise by slice carries the numbers that were computed."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from unflip import noise_by_slice
from unflip.inspection import NoiseBySliceDisplay

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    by = rng.choice(["a", "b"], 400)
    y = np.where((X[:, 0] > 0) ^ (rng.random(400) < np.where(by == "a", 0.3, 0.02)), "yes", "no")
    return X, y, by


@pytest.fixture(scope="module")
def found(data):
    X, y, by = data
    return noise_by_slice(X, y, by=by, random_state=0)


@pytest.fixture
def plt():
    from matplotlib import pyplot

    yield pyplot
    for number in pyplot.get_fignums():
        pyplot.figure(number).canvas.draw()
    pyplot.close("all")


def ends(container):
    """The intervals that an errorbar shows, one row each."""
    (arms,) = container.lines[2]
    return np.array([segment[:, 0] for segment in arms.get_segments()])


def test_shares_and_their_intervals_are_drawn_one_line_a_slice(found, plt):
    display = NoiseBySliceDisplay(found).plot()
    (points,) = display.points_
    assert_allclose(points.lines[0].get_xdata(), found.label_error_rate)
    assert_allclose(points.lines[0].get_ydata(), [0, -1])
    assert_allclose(ends(points), found.label_error_rate_interval)
    assert_allclose(display.band_.get_bbox().intervalx, found.overall_interval)
    names = [text.get_text() for text in display.ax_.get_yticklabels()]
    assert names == [f"{s}  (n = {n})" for s, n in zip("ab", found.n_rows, strict=True)]
    assert "p < 0.001" in display.ax_.get_title()


def test_rates_are_drawn_by_class(found, plt):
    display = NoiseBySliceDisplay(found).plot(kind="rates")
    for k, points in enumerate(display.points_):
        assert_allclose(points.lines[0].get_xdata(), found.rates[:, k])
        assert_allclose(ends(points), found.rates_interval[:, k])
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert labels == ["yes flipped", "no flipped"]
    assert display.band_ is None


def test_both_steps_in_one_and_on_given_axes(data, found, plt):
    X, y, by = data
    _, ax = plt.subplots()
    display = NoiseBySliceDisplay.from_data(X, y, by=by, random_state=0, ax=ax, color="black")
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    assert_allclose(display.found.rates, found.rates)
    assert display.points_[0].lines[0].get_color() == "black"


def test_another_kind_is_refused(found):
    with pytest.raises(ValueError, match="kind='pie' is not one of"):
        NoiseBySliceDisplay(found).plot(kind="pie")
