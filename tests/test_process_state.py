"""Fits leave the process as they found it, and data that change between passes are refused."""

import warnings
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.exceptions import ComplexWarning, VisibleDeprecationWarning
from sklearn.linear_model import LogisticRegression
from threadpoolctl import ThreadpoolController, threadpool_limits

from unflip import ImportanceReweightingClassifier, LabelAudit, NoiseRates, find_label_issues
from unflip.streaming import Batches, ParquetBatches, StreamingReweighting

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 3))
Y = (X[:, 0] + 0.5 * RNG.normal(size=150) > 0).astype(int)
RATES = NoiseRates(0.1, 0.1)
P = np.array([[0.9, 0.1], [0.2, 0.8]])


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_fits_in_threads_leave_blas_and_warning_filters_as_they_were():
    def blas_threads():
        return [each.num_threads for each in ThreadpoolController().lib_controllers]

    with threadpool_limits(2):
        before, filters = blas_threads(), list(warnings.filters)
        with ThreadPoolExecutor(8) as pool:
            classifiers = [ImportanceReweightingClassifier(random_state=k) for k in range(16)]
            fits = pool.map(lambda each: each.fit(X, Y), classifiers)
            assert len(list(fits)) == 16
        assert blas_threads() == before
        assert warnings.filters == filters


class LeavesFilters(LogisticRegression):
    """Exchanges the filters as `check_array` does where another thread comes between."""

    def fit(self, X, y, sample_weight=None):
        copied = [*warnings.filters]
        warnings.filters = copied
        warnings.simplefilter("error", self.left)
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize(
    ("left", "stays"),
    [(ComplexWarning, False), (VisibleDeprecationWarning, False), (BytesWarning, True)],
)
def test_a_fit_restores_the_filters_that_scikit_learn_leaves_and_no_others(left, stays):
    with warnings.catch_warnings():
        before = list(warnings.filters)
        LeavesFilters.left = left
        ImportanceReweightingClassifier(LeavesFilters(), noise_rates=RATES).fit(X, Y)
        assert (warnings.filters != before) == stays


def test_fits_in_threads_give_the_warnings_that_each_gives_alone():
    def said(fits):
        return Counter(str(warning.message) for warning in fits)

    audits = [LabelAudit(random_state=0) for _ in range(8)]
    noise = RNG.integers(2, size=Y.size)  # labels that say nothing of the samples: a warning
    with warnings.catch_warnings(record=True) as alone:
        warnings.simplefilter("always")
        LabelAudit(random_state=0).fit(X, noise)
    with warnings.catch_warnings(record=True) as together, ThreadPoolExecutor(4) as pool:
        warnings.simplefilter("always")
        list(pool.map(lambda each: each.fit(X, noise), audits))
    assert alone
    assert said(together) == {message: 8 * n for message, n in said(alone).items()}


@pytest.mark.filterwarnings("ignore::unflip.LabelNoiseWarning")
@pytest.mark.parametrize("y", [[0, 1], [1, 0]])
def test_two_samples_can_be_audited_by_their_probabilities(y):
    audit = LabelAudit().fit_posterior(P, y)
    assert np.isfinite(audit.mislabel_proba_).all()
    assert find_label_issues(y=y, pred_probs=P).size <= 2


def test_complex_probabilities_are_refused():
    with pytest.raises(ValueError, match="complex"):
        LabelAudit().fit_posterior(P + 0j, [0, 1])


class Changing(Batches):
    """Batches of which one part is in another order on each pass."""

    def __init__(self, part):
        self.part, self.n_passes = part, 0

    def __iter__(self):
        parts = {"values": X, "labels": Y, "sample weights": 1.0 + np.arange(len(Y))}
        parts[self.part] = np.roll(parts[self.part], self.n_passes, axis=0)
        self.n_passes += 1
        yield tuple(parts.values())


@pytest.mark.parametrize("part", ["values", "labels", "sample weights"])
def test_a_batch_that_is_another_one_on_a_later_pass_is_an_error(part):
    with pytest.raises(ValueError, match=f"batch 1 has other {part}"):
        StreamingReweighting(random_state=0).fit(Changing(part))


def test_a_truncated_parquet_file_is_named(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    for name in ("a", "b"):
        parquet.write_table(pa.table({"x": X[:, 0], "y": Y}), tmp_path / f"{name}.parquet")
    damaged = tmp_path / "b.parquet"
    damaged.write_bytes(damaged.read_bytes()[:-20])
    with pytest.raises(ValueError, match=r"b\.parquet"):
        ParquetBatches(tmp_path, label="y")
