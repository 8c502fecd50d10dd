"""What every density ratio promises, whatever its method."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from tests.density_ratio.test_kliep import two_samples
from unflip.density_ratio import KLIEP, KMM, ULSIF, BregmanRatio, RuLSIF

RATIOS = [
    KLIEP(random_state=0),
    KLIEP(solver="projected_gradient", search="downward", random_state=0),
    RuLSIF(random_state=0),
    ULSIF(random_state=0),
    KMM(random_state=0),
    BregmanRatio("basu", random_state=0),
]

pytestmark = pytest.mark.parametrize(
    "ratio", RATIOS, ids=["kliep", "kliep-published", "rulsif", "ulsif", "kmm", "bregman"]
)


@pytest.fixture(scope="module")
def samples():
    return two_samples(150, 3, 0)


def test_ratios_are_finite_and_non_negative(ratio, samples):
    estimate = clone(ratio).fit(*samples).predict(samples[1])
    assert estimate.shape == (150,)
    assert np.isfinite(estimate).all()
    assert (estimate >= 0).all()


def test_one_distribution_twice_has_ratio_one(ratio):
    X = np.random.default_rng(0).normal(size=(400, 2))
    estimate = clone(ratio).fit(X[::2], X).predict(X)
    assert estimate.mean() == pytest.approx(1, abs=0.15)
    assert np.quantile(np.abs(estimate - 1), 0.5) < 0.3


def test_higher_scores_are_better(ratio, samples):
    X_num, X_den = samples
    right = clone(ratio).fit(X_num, X_den)
    wrong = clone(ratio).fit(X_den[X_den[:, 0] < 0], X_den)
    assert right.score(X_num, X_den) > wrong.score(X_num, X_den)


def test_the_same_seed_gives_the_same_bits_and_pickles(ratio, samples):
    first = clone(ratio).fit(*samples)
    second = clone(ratio).fit(*samples)
    np.testing.assert_array_equal(first.predict(samples[1]), second.predict(samples[1]))
    loaded = pickle.loads(pickle.dumps(first))  # noqa: S301
    np.testing.assert_array_equal(first.predict(samples[1]), loaded.predict(samples[1]))


def test_shifting_the_rows_changes_nothing(ratio, samples):
    X_num, X_den = samples
    if getattr(ratio, "bandwidth", None) == "cv" and ratio.get_params().get("search") == "grid":
        ratio = clone(ratio).set_params(bandwidth=1.5)
    here = clone(ratio).fit(X_num, X_den).predict(X_den)
    there = clone(ratio).fit(X_num + 3, X_den + 3).predict(X_den + 3)
    np.testing.assert_allclose(here, there, rtol=1e-4, atol=1e-4)


def test_rows_are_predicted_one_by_one_as_together(ratio, samples):
    fitted = clone(ratio).fit(*samples)
    together = fitted.predict(samples[1][:5])
    singly = np.concatenate([fitted.predict(row[None]) for row in samples[1][:5]])
    np.testing.assert_allclose(together, singly, rtol=1e-9)


def test_sparse_rows_give_the_dense_ratio(ratio, samples):
    X_num, X_den = samples
    fixed = clone(ratio).set_params(bandwidth=1.5)
    dense = clone(fixed).fit(X_num, X_den).predict(X_den)
    csr = clone(fixed).fit(sparse.csr_array(X_num), sparse.csr_array(X_den))
    np.testing.assert_allclose(csr.predict(sparse.csr_array(X_den)), dense, rtol=1e-4, atol=1e-6)
    with pytest.raises(TypeError, match="sparse"):
        clone(fixed).fit(sparse.csr_array(X_num), X_den)


def test_dataframes_work_and_their_columns_are_remembered(ratio, samples):
    X_num, X_den = samples
    columns = ["a", "b", "c"]
    plain = clone(ratio).fit(X_num, X_den).predict(X_den)
    for frame in (pd.DataFrame, pl.DataFrame):
        num, den = (frame(dict(zip(columns, sample.T, strict=True))) for sample in (X_num, X_den))
        fitted = clone(ratio).fit(num, den)
        assert fitted.feature_names_in_.tolist() == columns
        np.testing.assert_allclose(fitted.predict(den), plain)


def test_constant_columns_and_one_column_work(ratio, samples):
    X_num, X_den = (np.column_stack([sample[:, :1], np.ones(len(sample))]) for sample in samples)
    assert np.isfinite(clone(ratio).fit(X_num, X_den).predict(X_den)).all()
    assert np.isfinite(clone(ratio).fit(X_num[:, :1], X_den[:, :1]).predict(X_den[:, :1])).all()
    constant = np.ones((20, 2))
    np.testing.assert_allclose(clone(ratio).fit(constant[:9], constant).predict(constant), 1, 0.3)


def test_mixed_precision_is_computed_in_double(ratio, samples):
    X_num, X_den = samples
    fitted = clone(ratio).fit(X_num.astype(np.float32), X_den)
    assert fitted.predict(X_den).dtype == np.float64


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_failed_fits_leave_nothing_behind(ratio, samples, bad):
    X_num, X_den = samples
    broken = X_num.copy()
    broken[0, 0] = bad
    fresh = clone(ratio)
    with pytest.raises(ValueError, match="X_num contains"):
        fresh.fit(broken, X_den)
    with pytest.raises(ValueError, match="3 features and X_den 2"):
        fresh.fit(X_num, X_den[:, :2])
    with pytest.raises(ValueError, match=r"0 feature\(s\)"):
        fresh.fit(X_num[:, :0], X_den[:, :0])
    with pytest.raises(ValueError, match="sample_weight"):
        fresh.fit(X_num, X_den, weight_num=[1, 1])
    assert not any(name.endswith("_") for name in vars(fresh))
    with pytest.raises(NotFittedError):
        fresh.predict(X_den)
    fitted = clone(ratio).fit(X_num, X_den)
    before = fitted.predict(X_den)
    with pytest.raises(ValueError, match="X_num contains"):
        fitted.fit(broken, X_den)
    np.testing.assert_array_equal(fitted.predict(X_den), before)


def test_warnings_point_at_the_line_that_called_fit(ratio, samples):
    if "max_iter" not in ratio.get_params() or getattr(ratio, "solver", "") == "projected_gradient":
        pytest.skip("does not stop early")
    width = {"tol": 1e-12} if isinstance(ratio, KMM) else {}
    with pytest.warns(ConvergenceWarning, match="stopped after") as caught:
        clone(ratio).set_params(bandwidth=0.3, max_iter=1, **width).fit(*samples)
    assert all(warning.filename == __file__ for warning in caught)
