"""Columns become numbers whose differences are not lost, however large the numbers are."""

import warnings
from datetime import UTC, date, datetime, time, timedelta

import numpy as np
import polars as pl
import pytest

from unflip import (
    ImportanceReweightingClassifier,
    LabelNoiseWarning,
    NoiseRates,
    flip_labels,
)
from unflip._app.tables import split_label
from unflip._app.workflow import learn

N = 60
START = datetime(2023, 11, 14, 22, 13, 20)
SECONDS = np.random.default_rng(0).permutation(N).astype(float)


def dates(seconds, start=START):
    return [start + timedelta(seconds=float(s)) for s in seconds]


def vectorizer(table):
    """Return what encodes a table for the noise model; a column of text makes that necessary."""
    clf = ImportanceReweightingClassifier(
        posterior="probabilistic", noise_rates=NoiseRates(0.1, 0.1), random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LabelNoiseWarning)
        return clf.fit(table, np.arange(table.height) // 2 % 2).preprocessing_


def encoder(table):
    """Return the first step of it, which makes numbers of columns."""
    return vectorizer(table).named_steps["columns"]


def with_text(table):
    return table.with_columns(text=pl.Series(["a", "b"] * (table.height // 2)))


KINDS = {
    "double": SECONDS + 1.7e9,
    "integer": (SECONDS + 1.7e9).astype(np.int64),
    "text of numbers": [f"{s + 1.7e9:.1f}" for s in SECONDS],
    "decimal": pl.Series(SECONDS + 1.7e9).cast(pl.Decimal(20, 1)),
    "duration": [timedelta(seconds=s + 1.7e9) for s in SECONDS],
    "dates": dates(SECONDS),
    "dates of a time zone": dates(SECONDS, START.replace(tzinfo=UTC)),
    "text of dates": [f"{d:%Y-%m-%d %H:%M:%S}" for d in dates(SECONDS)],
}


@pytest.mark.parametrize("kind", KINDS)
def test_single_seconds_are_told_apart_in_the_year_2023(kind):
    table = with_text(pl.DataFrame({"a": KINDS[kind]}))
    X = vectorizer(table).transform(table)
    exact = [column for column in X.T if np.ptp(column) > 1]
    assert len(exact) == 1
    np.testing.assert_allclose(exact[0], SECONDS - SECONDS.mean(), atol=1e-6)
    # what works in single precision loses nothing either
    np.testing.assert_allclose(exact[0].astype(np.float32), exact[0], atol=1e-4)


def test_a_number_for_never_beside_times_does_not_blur_them():
    table = with_text(pl.DataFrame({"a": [*np.zeros(N), *(SECONDS + 1.7e9)]}))
    X = vectorizer(table).transform(table)
    np.testing.assert_allclose(np.diff(X[N:, 0]), np.diff(SECONDS), atol=1e-6)


@pytest.fixture(scope="module")
def sample():
    rng = np.random.default_rng(0)
    seconds, other = rng.uniform(0, 200, 1000), rng.normal(size=1000)
    truth = np.where(seconds + 20 * other > 100, "yes", "no")
    return seconds, other, flip_labels(truth, NoiseRates(0.2, 0.1), random_state=0)


def share_wrong(column, sample):
    _, other, labels = sample
    table = pl.DataFrame({"time": column, "other": other, "y": labels})
    return learn(split_label(table, "y")).found["expected_error_share"]


def test_the_estimate_does_not_depend_on_where_a_scale_begins(sample):
    expected = share_wrong(sample[0], sample)
    for shift in (1.7e9, -4e10):
        assert share_wrong(sample[0] + shift, sample) == pytest.approx(expected, abs=0.005)


def test_the_estimate_does_not_depend_on_the_year(sample):
    early = share_wrong(dates(sample[0], datetime(1970, 1, 1)), sample)
    late = share_wrong(dates(sample[0], datetime(2023, 11, 14)), sample)
    assert late == pytest.approx(early, abs=0.005)


MISSING = [None] * 20


@pytest.mark.parametrize(
    "values",
    [
        [timedelta(seconds=k) for k in range(5)],
        [time(1, k) for k in range(5)],
        [date(2020, 1, 1 + k) for k in range(5)],
        dates(range(5)),
        [f"2020-01-0{k + 1}" for k in range(5)],
        ["1", "2", "N/A", "4", "inf"],
        [True, False, None, True, False],
        ["red", "blue", "blue", "red", None],
    ],
    ids=repr,
)
@pytest.mark.parametrize("kind", [pl.Null, pl.String])
def test_new_rows_may_lack_all_values_of_a_column(values, kind):
    table = with_text(pl.DataFrame({"a": values * 4, "b": range(20)}, strict=False))
    fitted = vectorizer(table)
    assert np.isfinite(fitted.transform(table)).all()
    new = table.with_columns(pl.Series("a", MISSING, dtype=kind))
    assert np.isfinite(fitted.transform(new)).all()


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([f"{k}.5" for k in range(50)], "number"),
        ([f"2020-01-{1 + k % 28:02}" for k in range(50)], "date"),
        (["a", "b"] * 25, "category"),
    ],
)
def test_spaces_around_values_do_not_matter(values, kind):
    padded = pl.DataFrame({"x": [f" {value}\t" for value in values]})
    fitted = encoder(padded)
    assert [column.kind for column in fitted.columns_] == [kind]
    plain = pl.DataFrame({"x": values})
    expected = encoder(plain).transform(plain)
    assert np.array_equal(fitted.transform(padded), expected)
    assert np.array_equal(fitted.transform(plain), expected)


def test_a_column_without_values_is_left_out_and_a_table_of_them_refused():
    table = pl.DataFrame({"a": MISSING, "b": range(20), "c": ["N/A"] * 20})
    assert encoder(table).transform(table).shape == (20, 1)
    with pytest.raises(ValueError, match="missing"):
        encoder(pl.DataFrame({"a": MISSING, "c": ["N/A"] * 20}))


def test_categories_that_were_not_seen_are_named_with_their_column():
    table = pl.DataFrame({"plan": ["basic", "pro", None] * 10, "x": range(30)})
    fitted = encoder(table)
    new = pl.DataFrame({"plan": ["ultra", "pro", None] * 2, "x": range(6)})
    with pytest.warns(UserWarning, match="'plan' .* in 2 of 6 rows, such as 'ultra'") as caught:
        fitted.transform(new)
    assert len(caught) == 1


@pytest.mark.parametrize("name", ["^x$", "*", "^.*$", ""])
@pytest.mark.parametrize("values", [["a", "b"] * 30, ["2020-01-31", "2021-02-01"] * 30])
def test_a_name_is_no_pattern(name, values):
    table = pl.DataFrame({name: values, "z": range(60)})
    fitted = encoder(table)
    assert {column.name for column in fitted.columns_} == {name, "z"}
    plain = table.rename({name: "x"})
    assert (fitted.transform(table) == encoder(plain).transform(plain)).all()


def test_a_column_of_python_objects_is_encoded_as_its_values_are():
    values = [1.5, None, 2.5, 4.0] * 5
    objects = with_text(pl.DataFrame({"x": pl.Series(values, dtype=pl.Object)}))
    plain = with_text(pl.DataFrame({"x": values}))
    encoded = encoder(objects).transform(objects)
    assert np.array_equal(encoded, encoder(plain).transform(plain), equal_nan=True)
