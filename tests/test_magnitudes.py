"""Numbers so large that their squares overflow are refused, and all others computed with."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, clone

from tests.test_common import INSTANCES
from tests.test_labels import seeded
from unflip.baselines import StPMKL
from unflip.density_ratio import KLIEP, KMM, ULSIF, BregmanRatio, RuLSIF
from unflip.learners import KernelClassifier, LinearClassifier
from unflip.losses import LOSSES
from unflip.paper.bounds import linear_rademacher, linear_rademacher_bound
from unflip.posterior import DensityRatioPosterior, KernelDensityPosterior, ProbabilisticPosterior

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = (X[:, 0] + X[:, 1] + 0.5 * RNG.normal(size=60) > 0).astype(int)
TOO_LARGE = r"X(_num|_den)? holds numbers up to \S+e\+200 \(columns 1\).*Rescale these columns"

# the channel, and what is computed by it, has rows of its own; trees have float32; IRBL hands rows
# to the user's classifier, and computes with none
OWN_ROWS = ("Channel", "LabelAudit", "ImportanceReweightingClassifier", "IRBL")
COMPUTING = [part for part in INSTANCES if not type(part).__name__.startswith(OWN_ROWS)]
COMPUTING += [KernelClassifier("hinge"), LinearClassifier("exponential")]


@pytest.mark.parametrize("estimator", COMPUTING, ids=repr)
def test_squares_that_overflow_are_refused_with_their_column(estimator: BaseEstimator) -> None:
    takes_its_own = isinstance(estimator, ProbabilisticPosterior) and estimator.estimator
    if takes_its_own:
        pytest.skip("the classifier is somebody else's")
    with pytest.raises(ValueError, match=TOO_LARGE):
        clone(estimator).fit(X * [1, 1e200, 1], Y)


@pytest.mark.parametrize("ratio", [KLIEP(), ULSIF(), RuLSIF(), KMM(), BregmanRatio()], ids=repr)
def test_density_ratios_refuse_them_too(ratio: BaseEstimator) -> None:
    with pytest.raises(ValueError, match=TOO_LARGE):
        ratio.fit(X[:30] * [1, 1e200, 1], X)
    with pytest.raises(ValueError, match=TOO_LARGE):
        ratio.fit(X[:30], X * [1, 1e200, 1])
    with pytest.raises(ValueError, match=TOO_LARGE):
        ratio.fit(X[:30], X).predict(X * [1, 1e200, 1])


@pytest.mark.parametrize(
    "estimator",
    [KernelDensityPosterior(), DensityRatioPosterior(), LinearClassifier(), KernelClassifier()],
    ids=repr,
)
@pytest.mark.parametrize("container", [sparse.csr_array, pd.DataFrame, np.asarray])
def test_rows_to_predict_are_refused_in_any_container(estimator, container) -> None:
    if isinstance(estimator, KernelClassifier) and container is sparse.csr_array:
        pytest.skip("takes no sparse rows")
    rows, large = container(X), container(X * [1, 1e200, 1])
    fitted = clone(estimator).fit(rows, Y)
    with pytest.raises(ValueError, match=TOO_LARGE):
        fitted.predict(large)


@pytest.mark.parametrize("function", [linear_rademacher_bound, linear_rademacher])
def test_bounds_refuse_them_too(function) -> None:
    with pytest.raises(ValueError, match=TOO_LARGE):
        function(X * [1, 1e200, 1], 1.0)


@pytest.mark.parametrize("factor", [1e149, 1e20, 1e-100, 1e-200])
@pytest.mark.parametrize(
    "estimator",
    [
        KernelDensityPosterior(),
        KernelClassifier(),
        StPMKL(),
        *(DensityRatioPosterior(ratio) for ratio in (KLIEP(), ULSIF(), KMM(), BregmanRatio())),
    ],
    ids=repr,
)
def test_all_other_magnitudes_are_computed_with(estimator, factor: float) -> None:
    rows = X * [1, factor, 1]
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", UserWarning)
        fitted = seeded(estimator).fit(rows, Y)
        values = getattr(fitted, "decision_function", getattr(fitted, "predict_proba", None))(rows)
    assert np.isfinite(values).all()


@pytest.mark.parametrize("factor", [1e20, 1e37])
@pytest.mark.parametrize(
    "estimator",
    [KernelDensityPosterior(), DensityRatioPosterior(KLIEP()), KernelClassifier("squared")],
)
def test_single_precision_gives_way_to_double_before_it_overflows(estimator, factor) -> None:
    rows = (X * [1, factor, 1]).astype(np.float32)
    narrow, wide = (seeded(estimator).fit(each, Y) for each in (rows, rows.astype(float)))
    np.testing.assert_array_equal(narrow.predict(rows), wide.predict(rows))


@pytest.mark.parametrize("penalty", ["l2", "elasticnet"])
@pytest.mark.parametrize("loss", sorted(set(LOSSES) - {"hinge", "logistic", "squared", "unhinged"}))
@pytest.mark.parametrize("factor", [1e3, 1e6, 1e20])
def test_a_large_column_does_not_stop_a_loss_at_its_start(loss, penalty, factor) -> None:
    plain = LinearClassifier(loss, penalty=penalty).fit(X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        large = LinearClassifier(loss, penalty=penalty).fit(X * [1, factor, 1], Y)
    # the larger column is penalised less
    assert large.score(X * [1, factor, 1], Y) == pytest.approx(plain.score(X, Y), abs=0.04)
