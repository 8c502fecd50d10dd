"""Density ratios as sums over blocks, and rows fetched from them, are those of the whole table."""

import inspect

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from tests.test_streaming import SMALL
from tests.test_streaming import table as two_classes
from unflip import ImportanceReweightingClassifier, NoiseRates, flip_labels
from unflip._blocks._label_model import N_HISTOGRAM, MislabelHistogram
from unflip._utils.sampling import drawn_rows
from unflip.audit import LabelAudit
from unflip.dask import DaskAudit, DaskBlocks, DaskReweighting
from unflip.density_ratio import KLIEP, ULSIF
from unflip.posterior import DensityRatioPosterior
from unflip.streaming import ArrayBatches, Batches, StreamingAudit, StreamingReweighting
from unflip.weights import LabelPosterior

PUBLISHED = KLIEP(1.0, n_centers=10, solver="projected_gradient", random_state=0)


def table(n=2500, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    X = np.eye(3)[y] * 2 + rng.normal(size=(n, 3))
    T = np.full((n_classes, n_classes), 0.1) + (1 - 0.1 * n_classes) * np.eye(n_classes)
    return X, flip_labels(np.array(["a", "bcd", "ef"])[y], T, random_state=seed)


def weights_by_batches(model, data):
    return np.concatenate([model.sample_weight(*batch) for batch in data])


@pytest.mark.parametrize(
    ("posterior", "weighted"),
    [
        ("kliep", False),
        ("kliep", True),
        ("ulsif", True),
        ("rulsif", True),
        pytest.param("ulsif", False, marks=pytest.mark.slow),
        pytest.param("rulsif", False, marks=pytest.mark.slow),
    ],
)
def test_ratios_by_batches_are_those_in_memory(posterior, weighted):
    X, y = table()
    own = np.random.default_rng(1).integers(0, 3, len(y)).astype(float) if weighted else None
    if weighted:
        own[:700] = 0.0  # a whole batch that does not count
    options = {"posterior": posterior, "noise_rates": "minimum", "random_state": 3}
    expected = ImportanceReweightingClassifier(**options).fit(X, y, own)
    data = ArrayBatches(X, y, own, batch_rows=600)
    model = StreamingReweighting(**options).fit(data)
    for ours, theirs in zip(model.posterior_.ratios_, expected.posterior_.ratios_, strict=True):
        np.testing.assert_array_equal(ours.centers_, theirs.centers_)
        assert ours.bandwidth_ == theirs.bandwidth_
    beta = expected.sample_weight_ * (1 if own is None else own)
    np.testing.assert_allclose(weights_by_batches(model, data), beta, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(model.noise_rates_.both(), expected.noise_rates_.both(), atol=1e-8)
    assert model.n_errors_ > 0


def test_the_audit_by_batches_sums_up_all_rows():
    X, y = table()
    data = ArrayBatches(X, y, batch_rows=600)
    audit = StreamingAudit("ulsif", NoiseRates(0.1, 0.1), max_rows=200, random_state=3).fit(data)
    whole = DensityRatioPosterior(ULSIF(random_state=audit.posterior_.ratio.random_state)).fit(X, y)
    np.testing.assert_allclose(audit.posterior_.predict_proba(X), whole.predict_proba(X), atol=1e-8)


def test_three_classes_of_sparse_rows_are_summed_up():
    X, y = table(n_classes=3)
    X = sparse.csr_array(np.where(np.abs(X) < 0.5, 0.0, X))
    options = {"posterior": "kliep", "noise_rates": "minimum", "random_state": 0}
    expected = ImportanceReweightingClassifier(**options).fit(X, y)
    data = SparseBatches(X, y, batch_rows=700)
    model = StreamingReweighting(**options).fit(data)
    np.testing.assert_allclose(
        model.transition_matrix_, expected.transition_matrix_, rtol=1e-8, atol=1e-8
    )
    np.testing.assert_allclose(
        weights_by_batches(model, data), expected.sample_weight_, rtol=1e-7, atol=1e-7
    )


class SparseBatches(Batches):
    def __init__(self, X, y, batch_rows):
        self.X, self.y, self.batch_rows = X, y, batch_rows

    def __iter__(self):
        for start in range(0, len(self.y), self.batch_rows):
            rows = slice(start, start + self.batch_rows)
            yield self.X[rows], self.y[rows], None


def test_many_rows_in_single_precision_agree_as_far_as_the_solver_goes():
    X, y = table(13_000)  # many enough for single precision in either class
    data = ArrayBatches(X, y, batch_rows=4000)
    for tol, agreement in ((1e-6, 1e-5), (1e-9, 1e-8)):
        posterior = DensityRatioPosterior(KLIEP(2.0, tol=tol, random_state=0))
        model = StreamingReweighting(posterior=posterior, noise_rates="minimum").fit(data)
        expected = posterior.fit(X, y).predict_proba(X)
        np.testing.assert_allclose(model.posterior_.predict_proba(X), expected, atol=agreement)


def test_a_dask_dataframe_gives_the_ratios_of_the_table():
    X, y = table()
    frame = pd.DataFrame(X, columns=["u", "v", "w"]).assign(label=y)
    options = {"posterior": "kliep", "noise_rates": "minimum", "random_state": 3}
    expected = ImportanceReweightingClassifier(**options).fit(frame[["u", "v", "w"]], y)
    parts = [frame[:0], frame[:900], frame[900:950], frame[950:]]  # the first has no rows
    frames = dd.from_delayed([dask.delayed(part) for part in parts], meta=frame[:0])
    rows, labels = frames[["u", "v", "w"]], frames["label"]
    with dask.config.set(scheduler="synchronous"):
        model = DaskReweighting(**options).fit(rows, labels)
        weights = model.sample_weight(rows, labels).compute().to_numpy()
    assert model.posterior_.feature_names_in_.tolist() == ["u", "v", "w"]
    np.testing.assert_allclose(weights, expected.sample_weight_, rtol=1e-8, atol=1e-8)


def test_rates_are_read_off_the_probabilities_of_many_rows_and_no_more(monkeypatch):
    X, y = table()
    data = ArrayBatches(X, y, batch_rows=600)
    monkeypatch.setattr("unflip._blocks._fit.RATE_ROWS", 900)
    model = StreamingReweighting(posterior="ulsif", noise_rates="minimum", random_state=3).fit(data)
    probabilities = model.posterior_.predict_proba(X).min(axis=0)
    assert model.noise_rates_.positive >= probabilities[0]
    assert model.noise_rates_.negative >= probabilities[1]


def test_rates_that_need_rows_get_the_drawn_ones():
    X, y = table()
    data = ArrayBatches(X, y, batch_rows=600)
    model = StreamingReweighting(
        posterior="ulsif", noise_rates="channel", max_rows=1000, random_state=3
    ).fit(data)
    assert abs(model.noise_rates_.positive - 0.1) < 0.1


def test_a_class_without_weight_is_named():
    X, y = table()
    data = ArrayBatches(X, y, np.where(y == "a", 0.0, 1.0), batch_rows=600)
    with pytest.raises(ValueError, match="sample_weight"):
        StreamingReweighting(posterior="kliep", noise_rates="minimum").fit(data)


def test_the_clusters_sum_is_that_of_all_blocks():
    X = np.arange(100.0)[:, None]
    blocks = DaskBlocks(da.from_array(X, chunks=(3, 1)), da.from_array(X[:, 0] > 5, chunks=3))
    with dask.config.set(scheduler="synchronous"):
        assert blocks.sum(first_column, 2.0) == 2 * X.sum()


def first_column(X, y, sample_weight, factor):
    return factor * X[:, 0].sum()


# --- drawn rows, and sums over blocks


def test_three_classes_are_fitted_to_the_drawn_rows():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 4000)
    X = np.eye(3)[y] * 4 + rng.normal(size=(4000, 3))
    T = np.full((3, 3), 0.1) + 0.7 * np.eye(3)
    y_noisy = flip_labels(y, T, random_state=0)
    data = ArrayBatches(X, y_noisy, batch_rows=600)
    model = StreamingReweighting(max_rows=1500, posterior=LogisticRegression()).fit(data)
    some = drawn_rows(4000, 1500, None)
    expected = ImportanceReweightingClassifier(posterior=LogisticRegression()).fit(
        X[some], y_noisy[some]
    )
    np.testing.assert_allclose(model.transition_matrix_, expected.transition_matrix_)
    assert np.abs(model.transition_matrix_ - T).max() < 0.1


@pytest.mark.parametrize("n_rows", [10, 500, 5_000, 3_000_000_000])
def test_drawn_rows_are_distinct_in_order_and_a_function_of_the_seed(n_rows):
    drawn = drawn_rows(n_rows, 400, 0)
    assert drawn.size == min(n_rows, 400)
    assert (np.diff(drawn) > 0).all()
    assert 0 <= drawn[0] <= drawn[-1] < n_rows
    np.testing.assert_array_equal(drawn, drawn_rows(n_rows, 400, 0))
    if n_rows > 400:
        assert (drawn != drawn_rows(n_rows, 400, 1)).any()


@pytest.mark.parametrize(("n_rows", "size"), [(600, 200), (600, 20)])
def test_every_row_is_drawn_equally_often(n_rows, size):
    counts = np.zeros(n_rows)
    for seed in range(1000):
        counts[drawn_rows(n_rows, size, seed)] += 1
    share = size / n_rows
    deviation = (counts - 1000 * share) / np.sqrt(1000 * share * (1 - share))
    assert np.abs(deviation).max() < 5
    assert 0.8 < (deviation**2).mean() < 1.2


def test_the_channel_fits_its_drawn_rows_and_no_others():
    X, y = two_classes()
    some = drawn_rows(len(y), 3000, 7)
    channel = clone(SMALL).set_params(random_state=7)
    of_all, of_some = (channel.fit(*rows).predict_proba(X) for rows in [(X, y), (X[some], y[some])])
    np.testing.assert_array_equal(of_all, of_some)


@given(st.integers(2, 4), st.integers(1, 59), st.integers(0, 1000))
def test_totals_of_two_blocks_add_up(n_classes, cut, seed):
    rng = np.random.default_rng(seed)
    classes = np.arange(n_classes)
    posterior = rng.dirichlet(np.ones(n_classes), 60)
    codes, own = rng.integers(0, n_classes, 60), rng.uniform(0, 2, 60)
    T = np.full((n_classes, n_classes), 0.05) + (1 - 0.05 * n_classes) * np.eye(n_classes)

    def totals(rows):
        return LabelPosterior(posterior[rows], codes[rows], T, classes).totals(own[rows])

    whole, parts = totals(slice(None)), totals(slice(cut)) + totals(slice(cut, None))
    for name, value in vars(whole).items():
        np.testing.assert_allclose(getattr(parts, name), value, rtol=1e-12)


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=60),
    st.floats(0.01, 1),
    st.integers(1, 59),
)
def test_binned_rows_are_as_many_as_the_sorted_ones_but_for_a_bin(values, precision, cut):
    def histogram(part):
        return MislabelHistogram(
            np.histogram(part, N_HISTOGRAM, (0, 1))[0].astype(float),
            np.histogram(part, N_HISTOGRAM, (0, 1), weights=part)[0],
        )

    wrong = np.sort(values)[::-1]
    means = np.cumsum(wrong) / np.arange(1, wrong.size + 1)
    exact = int(np.sum(means >= precision - 1e-12))
    both = histogram(wrong[:cut]) + histogram(wrong[cut:])
    found = both.n_issues(precision)
    assert found <= exact
    # a row of less by the width of a bin for each of those kept may not fit in
    assert found == wrong.size or means[found] < precision + 1 / N_HISTOGRAM
    assert both.n_issues(None) == round(wrong.sum())


def test_the_audits_choose_their_rows_by_the_same_parameters():
    def choice(audit):
        parameters = inspect.signature(audit.issues).parameters.values()
        return [str(one) for one in parameters if one.kind is inspect.Parameter.KEYWORD_ONLY]

    in_memory, by_batches, on_a_cluster = map(choice, (LabelAudit, StreamingAudit, DaskAudit))
    assert in_memory == by_batches == on_a_cluster
