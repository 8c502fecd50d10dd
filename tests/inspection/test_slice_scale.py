"""Noise by slice of many classes: what the public result says, and intervals by simulation."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from unflip import noise_by_slice
from unflip.inspection import NoiseBySliceDisplay


@pytest.fixture(scope="module")
def found():
    rng = np.random.default_rng(0)
    true = rng.integers(0, 3, 900)
    X = rng.normal(size=(900, 2)) + 4 * np.array([[0, 0], [1, 0], [0, 1]])[true]
    source = rng.choice(["phone", "shop", "web"], 900)
    wrong = rng.random(900) < np.where(source == "phone", 0.35, 0.05)
    labels = np.array(["a", "b", "c"])[np.where(wrong, (true + 1) % 3, true)]
    return noise_by_slice(X, labels, by=source, random_state=0)


@pytest.mark.filterwarnings("ignore::unflip.LabelNoiseWarning")
def test_the_careless_source_is_found_with_its_share(found):
    assert found.p_value < 0.001
    assert found.degrees_of_freedom == 2
    assert_allclose(found.label_error_rate, [0.35, 0.05, 0.05], atol=0.06)
    low, high = found.label_error_rate_interval.T
    assert (low <= [0.35, 0.05, 0.05]).all()
    assert (high >= [0.35, 0.05, 0.05]).all()
    assert found.rates.shape == (3, 3)
    assert found.rates_interval.shape == (3, 3, 2)
    said = str(found)
    assert "in phone" in said
    assert "and everywhere into the same others" in said


def test_the_frame_has_the_shares_and_no_pair_of_rates(found):
    frame = found.to_frame("polars")
    assert frame.columns == [
        "slice",
        "n_rows",
        "label_error_rate",
        "label_error_rate_low",
        "label_error_rate_high",
    ]


def test_a_pair_of_rates_is_not_drawn_for_three_classes(found):
    pytest.importorskip("matplotlib")
    with pytest.raises(ValueError, match="there are 3: use kind='share'"):
        NoiseBySliceDisplay(found).plot(kind="rates")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::unflip.LabelNoiseWarning")
@pytest.mark.parametrize("kind", ["alike", "more of a class", "differ"])
def test_coverage_and_false_alarms_with_an_estimated_posterior(kind):
    """Intervals hold in 90 % or more; the same rates seem to differ in 10 % or fewer."""
    rates = np.array([0.08, 0.15, 0.3] if kind == "differ" else [0.15] * 3)
    held, rejected = [], []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        true = rng.integers(0, 4, 1500)
        X = (2 * rng.normal(size=(4, 5)))[true] + rng.normal(size=(1500, 5))
        place = rng.integers(0, 3, 1500)
        if kind == "more of a class":
            place = np.where(rng.random(1500) < 0.4, np.minimum(true, 2), place)
        wrong = rng.random(1500) < rates[place]
        y = np.where(wrong, (true + rng.integers(1, 4, 1500)) % 4, true)
        found = noise_by_slice(X, y, by=place, random_state=seed)
        low, high = found.label_error_rate_interval.T
        held.append((low <= rates) & (rates <= high))
        rejected.append(found.p_value < 0.05)
    assert np.mean(held) >= 0.9
    assert np.mean(rejected) == 1.0 if kind == "differ" else np.mean(rejected) <= 0.1
