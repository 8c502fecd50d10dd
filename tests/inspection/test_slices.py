"""Noise by slice: what the public result says, and its intervals and tests by simulation."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit, logit

from unflip import NoiseRates, noise_by_slice
from unflip.channel import GroupNoise
from unflip.inspection._slices import _cut, _spread_of_posterior, _widened
from unflip.noise import RatesInterval


def simulated(n, rates, seed=0, shift=0.0):
    """P(true=1 | x) of a logistic world, and labels flipped at the rates; no column is needed."""
    rng = np.random.default_rng(seed)
    clean = expit(4 * rng.normal(size=n))
    true = rng.random(n) < expit(logit(clean) + shift)
    return clean, true ^ (rng.random(n) < np.where(true, *rates))


def group_noise(rates, intervals, shares, share_interval):
    """What the labels say of a group; of two classes, the negative one comes first."""
    T = np.diag(1 - np.array(rates))
    ends, share = np.array(intervals), float(np.dot(rates, shares))
    return GroupNoise(0.0, T, np.array(shares), ends, share, share_interval)


def test_the_spread_of_the_posterior_is_what_the_channel_knows_beyond_the_evidence():
    common = group_noise((0.1, 0.2), [(0.06, 0.14), (0.17, 0.23)], (0.5, 0.5), (0.12, 0.18))
    interval = RatesInterval.from_pairs((0.15, 0.24), (0.07, 0.15))
    T = NoiseRates(0.2, 0.1).transition_matrix
    noise = SimpleNamespace(transition=T, transition_interval=interval)
    spread = _spread_of_posterior(noise, common)
    assert_allclose(spread, [[0, 0.03], [0.04, np.sqrt(0.04**2 - 0.03**2)]], atol=1e-12)
    wider = _widened(common, spread)
    assert_allclose(wider.rates_interval, [(0.06, 0.15), (0.15, 0.24)])
    assert_allclose(wider.label_error_rate_interval[0], 0.15 - np.hypot(0.03, 0.5 * 0.04))
    noise = SimpleNamespace(transition=T, transition_interval=None)
    assert_allclose(_spread_of_posterior(noise, common), 0)


def test_the_share_of_more_classes_gets_the_interval_of_the_channel():
    ends = [(0.2, 0.3), (0.16, 0.24), (0.12, 0.18)]
    common = group_noise((0.25, 0.2, 0.15), ends, (1 / 3, 1 / 3, 1 / 3), (0.17, 0.23))

    def spread_of(share):
        interval = SimpleNamespace(label_error_rate=share)
        noise = SimpleNamespace(transition=np.eye(3), transition_interval=interval)
        return _spread_of_posterior(noise, common)

    for share in ((0.15, 0.25), (0.16, 0.3)):
        assert_allclose(_widened(common, spread_of(share)).label_error_rate_interval, share)
    assert_allclose(spread_of((0.16, 0.3)), np.sqrt([0.04**2 - 0.03**2, 0.1**2 - 0.03**2]))
    assert_allclose(spread_of((0.19, 0.21)), 0.0)  # never narrower
    assert_allclose(spread_of(None), 0.0)
    assert_allclose(_widened(common, np.zeros(2)).rates_interval, common.rates_interval)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(1200, 3)), columns=list("abc"))
    frame["source"] = rng.choice(["web", "shop", "phone"], 1200, p=[0.4, 0.4, 0.2])
    true = frame[list("abc")].sum(axis=1).to_numpy() > 0
    wrong = rng.random(1200) < np.where(frame["source"] == "phone", 0.35, 0.05)
    return frame, true ^ wrong, wrong


@pytest.fixture(scope="module")
def found(table):
    frame, y, _ = table
    return noise_by_slice(frame, y, by="source", random_state=0)


def test_the_careless_source_is_found_with_its_share(table, found):
    frame, _, wrong = table
    assert found.slices == ["phone", "shop", "web"]
    assert found.n_rows.tolist() == frame["source"].value_counts().sort_index().tolist()
    assert found.p_value < 1e-6
    truth = [wrong[frame["source"] == name].mean() for name in found.slices]
    low, high = found.label_error_rate_interval.T
    assert (low <= truth).all()
    assert (truth <= high).all()
    assert_allclose(found.label_error_rate, truth, atol=0.05)
    said = str(found)
    assert said.startswith("The noise differs between slices by 'source' (p < 0.001): from ")
    assert " in phone, if within a slice and a class labels are flipped at random." in said


def test_slices_that_do_not_differ_are_said_not_to(table):
    frame, y, _ = table
    quiet = frame["source"] != "phone"
    alike = noise_by_slice(frame[quiet], y[quiet], by="source", random_state=0)
    assert alike.p_value > 0.05
    assert str(alike).startswith("No difference in noise between the 2 slices by 'source' is to be")
    assert alike.overall_interval[0] < 0.05 < alike.overall_interval[1]


def test_a_column_by_name_is_what_its_values_are_beside_the_others(table, found):
    frame, y, _ = table
    rows = frame[list("abc")].to_numpy()
    for by in (frame["source"], frame["source"].tolist()):
        again = noise_by_slice(rows, y, by=by, random_state=0)
        assert_allclose(again.rates, found.rates)
    polars = noise_by_slice(pl.from_pandas(frame), y, by="source", random_state=0)
    assert_allclose(polars.rates, found.rates)
    assert isinstance(polars.to_frame(), pl.DataFrame)


def test_the_frame_holds_what_was_found(found):
    frame = found.to_frame()
    assert isinstance(frame, pd.DataFrame)
    assert frame["slice"].tolist() == found.slices
    assert_allclose(frame[["positive", "negative"]], found.rates)
    assert_allclose(frame["label_error_rate_high"], found.label_error_rate_interval[:, 1])
    assert isinstance(found.to_frame("polars"), pl.DataFrame)
    with pytest.raises(ValueError, match="backend='excel' is not one of"):
        found.to_frame("excel")


class TestCut:
    def test_numbers_of_many_values_are_cut_into_parts_of_equal_size(self):
        values = np.random.default_rng(0).lognormal(size=1000)
        names, places = _cut(values, 4, 20)
        assert np.abs(np.bincount(places, minlength=4) - 250).max() <= 1  # an edge goes upwards
        assert names[0].startswith(f"{values.min():.4g} to ")
        assert all(values[places == k].max() <= values[places == k + 1].min() for k in range(3))

    def test_numbers_of_few_values_are_slices_each(self):
        names, places = _cut(np.array([3, 1, 2, 1]), 5, 20)
        assert (names, places.tolist()) == (["1", "2", "3"], [2, 0, 1, 0])

    def test_dates_are_cut_and_named_by_days(self):
        days = np.datetime64("2024-01-01T12:00") + np.arange(100) * np.timedelta64(1, "D")
        names, places = _cut(days, 2, 20)
        assert names == ["2024-01-01 to 2024-02-20", "2024-02-20 to 2024-04-09"]
        assert np.bincount(places).tolist() == [50, 50]

    def test_rows_without_a_value_are_a_slice_of_their_own(self):
        names, places = _cut(np.array(["a", None, "b", float("nan")], dtype=object), 5, 20)
        assert (names, places.tolist()) == (["a", "b", "(missing)"], [0, 2, 1, 2])
        names, places = _cut(np.array([1.0, np.nan, 2.0]), 5, 20)
        assert (names, places.tolist()) == (["1.0", "2.0", "(missing)"], [0, 2, 1])

    def test_rare_values_are_one_slice_together(self):
        names, places = _cut(np.array(list("aabbcde")), 5, 3)
        assert (names, places.tolist()) == (["a", "b", "(other)"], [0, 0, 1, 1, 2, 2, 2])

    def test_one_value_is_refused(self):
        with pytest.raises(ValueError, match="by has one value only"):
            _cut(np.array(["a", "a"]), 5, 20)


@pytest.mark.parametrize(
    ("by", "message"),
    [
        ("nowhere", "by='nowhere' is not the name of a column of X: its columns are"),
        ([1, 2, 3], r"by has shape \(3,\), expected \(1200,\)"),
        (None, r"by has shape \(\), expected \(1200,\)"),
    ],
)
def test_what_to_cut_by_is_refused_in_words(table, by, message):
    frame, y, _ = table
    with pytest.raises(ValueError, match=message):
        noise_by_slice(frame, y, by=by)


def test_a_name_without_a_dataframe_is_refused(table):
    frame, y, _ = table
    with pytest.raises(ValueError, match="X is no dataframe"):
        noise_by_slice(frame[["a"]].to_numpy(), y, by="source")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::unflip.LabelNoiseWarning")
@pytest.mark.parametrize("kind", ["alike", "more of a class", "other rows", "differ"])
def test_coverage_and_false_alarms_with_an_estimated_posterior(kind):
    """Intervals hold in 90 % or more; the same rates seem to differ in 10 % or fewer."""
    rates = np.array([(0.0, 0.0), (0.1, 0.1), (0.3, 0.2)] if kind == "differ" else [(0.2, 0.1)] * 3)
    held, rejected = [], []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(1500, 4))
        true = rng.random(1500) < expit(3 * X @ [1, -1, 0.5, 0])
        place = rng.integers(0, 3, 1500)
        if kind == "more of a class":
            place = np.where(rng.random(1500) < 0.4, 2 * true, place)
        elif kind == "other rows":
            place = np.digitize(X[:, 0] + rng.normal(size=1500), [-0.6, 0.6])
        y = true ^ (rng.random(1500) < np.where(true, *rates[place].T))
        found = noise_by_slice(X, y, by=place, random_state=seed)
        low, high = np.moveaxis(found.rates_interval, 2, 0)
        held.append((low <= rates + 1e-9) & (rates <= high + 1e-9))
        rejected.append(found.p_value < 0.05)
    assert np.mean(held) >= 0.9
    assert np.mean(rejected) == 1.0 if kind == "differ" else np.mean(rejected) <= 0.1


def test_a_table_is_taken_as_it_is():
    rng = np.random.default_rng(2)
    x = 3 * rng.normal(size=400)
    table = pd.DataFrame(
        {
            "x": np.where(rng.random(400) < 0.1, np.nan, x),
            "kind": np.where(x > 0, "up", "down"),
            "source": rng.choice(["a", "b"], 400),
        }
    )
    wrong = rng.random(400) < np.where(table["source"] == "a", 0.3, 0.0)
    found = noise_by_slice(table, (x > 0) ^ wrong, by="source", random_state=0)
    assert found.p_value < 0.001
    assert found.label_error_rate[0] == pytest.approx(0.3, abs=0.1)


@pytest.mark.filterwarnings("ignore::unflip.LabelNoiseWarning")
def test_it_is_shown_as_a_table_of_the_slices() -> None:
    clean, noisy = simulated(400, (0.2, 0.1))
    found = noise_by_slice(clean[:, None], noisy.astype(int), by=np.arange(400) % 2, random_state=0)
    head, *lines = repr(found).splitlines()[:3]
    assert "wrong labels" in head
    for name, share, line in zip(found.slices, found.label_error_rate, lines, strict=True):
        assert line.startswith(name)
        assert f"{share:.1%}" in line
    assert str(found) in repr(found)
    assert "array(" not in repr(found)
