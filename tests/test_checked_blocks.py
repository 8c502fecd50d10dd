"""Checked rows of data in batches and on a cluster."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression, SGDClassifier

from unflip import CheckedLabels, LabelAudit, NoiseRates
from unflip.checked.internals import correct
from unflip.estimate import NoiseEstimate
from unflip.streaming import ArrayBatches, StreamingAudit, StreamingReweighting

N = 3000
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))
TRUE = np.where(X.sum(axis=1) + 0.3 * RNG.normal(size=N) > 0, "yes", "no")
Y = np.where(X[:, 0] > 0.5, "yes", "no")  # a rule, of whose mistakes the labels tell nothing
ROWS = RNG.choice(N, 200, replace=False)
CHECKED = CheckedLabels(ROWS, TRUE[ROWS], 200 / N)
PARTS = {"posterior": LogisticRegression(), "noise_rates": NoiseRates(0.0, 0.0)}


def batches(**changes) -> ArrayBatches:
    return ArrayBatches(X, Y, batch_rows=700, **changes)


@pytest.mark.filterwarnings("ignore::unflip.LabelNoiseWarning")
def test_checked_rows_show_errors_that_the_labels_do_not() -> None:
    model = StreamingReweighting(
        SGDClassifier(loss="log_loss", random_state=0), n_epochs=5, random_state=0, **PARTS
    )
    before = np.concatenate(list(model.fit(batches()).predict(batches())))
    assert model.checked_ is None
    after = np.concatenate(list(model.fit(batches(), checked=CHECKED).predict(batches())))
    assert (after == TRUE).mean() > (before == TRUE).mean() + 0.15
    low, high = model.checked_.error_rate.interval
    assert low < (Y != TRUE).mean() < high
    assert model.n_errors_ / N == pytest.approx((Y != TRUE).mean(), abs=0.04)
    stays = [np.mean(Y[k == TRUE] == k) for k in ("no", "yes")]
    assert_allclose(np.diag(model.transition_matrix_), stays, atol=0.07)
    assert model.diagnostics_ == []


def test_the_audit_by_batches_learns_from_checked_rows_what_one_in_memory_learns() -> None:
    streamed = StreamingAudit(random_state=0, **PARTS).fit(batches(), checked=CHECKED)
    proba = streamed.posterior_.predict_proba(X)
    classes, codes = np.unique(Y, return_inverse=True)
    own = np.eye(2)[codes]  # the labels alone suggest no noise
    alone = NoiseEstimate(
        classes, codes, NoiseRates(0.0, 0.0), proba, proba, own, error_range=(0.0, 1.0)
    )
    corrected = correct(alone, CHECKED, X)
    # the share of errors is the same to the last digit: the model's part comes as a sum
    assert_allclose(streamed.checked_.error_rate.interval, corrected.counted.interval)
    assert_allclose(streamed.checked_.error_rate.anytime, corrected.counted.anytime)
    suspects = streamed.issues(batches(), n=N)
    said = np.empty(N)
    said[suspects.position] = suspects.mislabel_proba
    others = np.setdiff1d(np.arange(N), ROWS)
    # columns are scaled by the checked rows here, by all rows there
    assert np.abs(said - corrected.mislabel_proba)[others].mean() < 0.03
    assert np.corrcoef(said[others], corrected.mislabel_proba[others])[0, 1] > 0.99


@pytest.mark.filterwarnings("ignore::unflip.LabelNoiseWarning")
def test_rows_picked_by_hand_and_few_rows_say_nothing_of_others() -> None:
    audit = StreamingAudit(random_state=0, **PARTS)
    alone = audit.fit(batches()).n_errors_
    audit.fit(batches(), checked=CheckedLabels(ROWS, TRUE[ROWS]))
    assert audit.n_errors_ == alone
    assert audit.checked_.error_rate is None
    audit.fit(batches(), checked=CheckedLabels(ROWS[:9], TRUE[ROWS[:9]], 0.1))
    assert audit.n_errors_ == alone


def test_gaps_in_rows_that_nobody_checked_are_no_obstacle() -> None:
    rows = X.copy()
    rows[np.setdiff1d(np.arange(N), ROWS)[:500], 2] = np.nan
    model = HistGradientBoostingClassifier(max_iter=20, random_state=0)
    audit = StreamingAudit(model, NoiseRates(0.0, 0.0), random_state=0)
    audit.fit(ArrayBatches(rows, Y, batch_rows=700), checked=CHECKED)
    assert audit.n_errors_ / N == pytest.approx((Y != TRUE).mean(), abs=0.06)


def test_what_cannot_be_counted_is_refused() -> None:
    audit = StreamingAudit(random_state=0, **PARTS)
    with pytest.raises(ValueError, match="row 3000"):
        audit.fit(batches(), checked=CheckedLabels([3000], ["yes"]))
    with pytest.raises(TypeError, match="CheckedLabels"):
        audit.fit(batches(), checked={0: "yes"})
    weight = np.r_[0.0, np.ones(N - 1)]
    with pytest.raises(ValueError, match="1 rows have the weight 0"):
        audit.fit(batches(sample_weight=weight), checked=CHECKED)


def test_a_cluster_says_the_same_as_batches() -> None:
    da = pytest.importorskip("dask.array")
    from unflip.dask import DaskAudit, DaskReweighting

    rows, labels = da.from_array(X, chunks=(700, 3)), da.from_array(Y, chunks=700)
    audit = DaskAudit(random_state=0, **PARTS).fit(rows, labels, checked=CHECKED)
    streamed = StreamingAudit(random_state=0, **PARTS).fit(batches(), checked=CHECKED)
    suspects = streamed.issues(batches(), n=N)
    said = audit.mislabel_proba(rows, labels).compute()
    assert_allclose(said[suspects.position], suspects.mislabel_proba)
    assert audit.checked_.error_rate == streamed.checked_.error_rate
    model = DaskReweighting(
        SGDClassifier(loss="log_loss", random_state=0), n_epochs=5, random_state=0, **PARTS
    ).fit(rows, labels, checked=CHECKED)
    predicted = model.predict(rows).compute()
    assert (predicted == TRUE).mean() > 0.85
    in_memory = LabelAudit(**PARTS).fit(X, Y, checked=CHECKED)
    assert np.corrcoef(said, in_memory.mislabel_proba_)[0, 1] > 0.9
