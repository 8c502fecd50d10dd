"""Data in batches give what the same data give in memory."""

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from sklearn.linear_model import LogisticRegression, SGDClassifier

from unflip import ImportanceReweightingClassifier, NoiseRates, TransitionMatrix, flip_labels
from unflip.audit import LabelAudit
from unflip.posterior import ChannelPosterior
from unflip.streaming import (
    ArrayBatches,
    ArrowBatches,
    Batches,
    ParquetBatches,
    StreamingAudit,
    StreamingReweighting,
)

SMALL = ChannelPosterior("linear", max_rows=3000)
"""A channel that draws rows from a small table too."""


def table(n=8000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = X[:, 0] + 0.5 * X[:, 1] > 0.3
    names = np.where(y, "yes", "no")
    return X, flip_labels(names, NoiseRates(0.3, 0.1), random_state=seed)


def write_parquet(path, X, y, weight=None, **options):
    columns = {f"x{k}": column for k, column in enumerate(X.T)} | {"label": y}
    if weight is not None:
        columns["count"] = weight
    pq.write_table(pa.table(columns), path, **options)
    return path


@pytest.fixture(scope="module")
def in_memory():
    X, y = table()
    return X, y, ImportanceReweightingClassifier(posterior=SMALL, random_state=5).fit(X, y)


@pytest.mark.parametrize("batch_rows", [997, 8000])
def test_batches_of_arrays_give_the_rates_and_weights_of_the_table(in_memory, batch_rows):
    X, y, expected = in_memory
    data = ArrayBatches(X, y, batch_rows=batch_rows)
    model = StreamingReweighting(posterior=SMALL, random_state=5).fit(data)
    assert model.noise_rates_ == expected.noise_rates_
    weights = np.concatenate([model.sample_weight(*batch) for batch in data])
    np.testing.assert_allclose(weights, expected.sample_weight_, rtol=1e-10, atol=1e-12)
    assert model.effective_sample_size_ == pytest.approx(expected.effective_sample_size_)
    assert model.clipped_share_ == expected.clipped_share_
    assert model.n_errors_ == pytest.approx(expected.mislabel_proba_.sum())
    assert model.classes_.tolist() == ["no", "yes"]


def test_a_memory_map_is_read_by_batches(in_memory, tmp_path):
    X, y, expected = in_memory
    stored = np.lib.format.open_memmap(tmp_path / "X.npy", "w+", X.dtype, X.shape)
    stored[:] = X
    data = ArrayBatches(np.load(tmp_path / "X.npy", mmap_mode="r"), y, batch_rows=1000)
    model = StreamingReweighting(posterior=SMALL, random_state=5).fit(data)
    assert model.noise_rates_ == expected.noise_rates_


def test_parquet_files_give_the_rates_of_the_table(in_memory, tmp_path):
    X, y, expected = in_memory
    write_parquet(tmp_path / "a.parquet", X[:3000], y[:3000])
    write_parquet(tmp_path / "b.parquet", X[3000:], pa.array(y[3000:]).dictionary_encode())
    data = ParquetBatches(tmp_path, label="label", batch_rows=1024)
    model = StreamingReweighting(posterior=SMALL, random_state=5).fit(data)
    assert model.noise_rates_ == expected.noise_rates_
    same = ArrowBatches(ds.dataset(data.files), label="label", batch_rows=1024)
    np.testing.assert_array_equal(np.concatenate([rows for rows, _, _ in same]), X)
    np.testing.assert_array_equal(np.concatenate([labels for labels, _ in same.labels()]), y)


def test_own_weights_act_as_in_memory(tmp_path):
    X, y = table()
    own = np.random.default_rng(1).integers(0, 3, len(y))
    own[:1500] = 0  # whole batches that do not count
    expected = ImportanceReweightingClassifier(posterior=SMALL).fit(X, y, sample_weight=own)
    path = write_parquet(tmp_path / "a.parquet", X, y, own)
    data = ParquetBatches(path, label="label", weight="count", batch_rows=700)
    model = StreamingReweighting(posterior=SMALL).fit(data)
    assert model.noise_rates_ == expected.noise_rates_
    weights = np.concatenate([model.sample_weight(*batch) for batch in data])
    np.testing.assert_allclose(weights, own * expected.sample_weight_, rtol=1e-10, atol=1e-12)
    assert model.effective_sample_size_ == pytest.approx(expected.effective_sample_size_)


def test_the_classifier_learns_from_the_weights_batch_by_batch(in_memory):
    X, y, _ = in_memory
    data = ArrayBatches(X, y, batch_rows=1000)
    learner = SGDClassifier(loss="log_loss")
    model = StreamingReweighting(learner, posterior=SMALL, n_epochs=2, random_state=5).fit(data)
    by_hand = SGDClassifier(loss="log_loss", random_state=model.estimator_.random_state)
    for _ in range(2):
        for rows, labels, own in data:
            weight = model.sample_weight(rows, labels, own)
            by_hand.partial_fit(rows, labels, classes=["no", "yes"], sample_weight=weight)
    np.testing.assert_array_equal(model.estimator_.coef_, by_hand.coef_)
    truth = X[:, 0] + 0.5 * X[:, 1] > 0.3
    assert np.mean((model.estimator_.predict(X) == "yes") == truth) > 0.95


def test_the_audit_is_the_one_in_memory(tmp_path):
    X, y = table()
    expected = LabelAudit(SMALL, cv=None, random_state=0).fit(X, y)
    data = ArrayBatches(X, y, batch_rows=1000)
    audit = StreamingAudit(SMALL, random_state=0).fit(data)
    assert audit.noise_rates_ == expected.noise_rates_
    assert audit.n_errors_ == pytest.approx(expected.n_errors_)
    found = audit.issues(data, n=50)
    assert set(found.position) == set(expected.issues(n=50))
    assert (np.diff(found.mislabel_proba) <= 0).all()
    assert set(audit.issues(data).position) == set(expected.issues())
    for threshold in (0.25, 0.5, 0.9, 1.0):
        above = audit.issues(data, threshold=threshold).position
        assert set(above) == set(expected.issues(threshold=threshold))
    surest, by_batches = expected.issues(precision=0.97), audit.issues(data, precision=0.97)
    assert len(by_batches) in (surest.size - 1, surest.size)  # counted in bins
    assert set(by_batches.position) <= set(surest)
    np.testing.assert_array_equal(found.label, y[found.position])
    path = audit.write(data, tmp_path / "audit.parquet")
    written = pq.read_table(path).to_pydict()
    np.testing.assert_allclose(written["mislabel_proba"], expected.mislabel_proba_, atol=1e-10)
    assert written["suggested_label"] == expected.suggested_label_.tolist()
    assert written["label"] == y.tolist()


def test_the_audit_by_name_takes_the_mean_of_the_rates_as_in_memory():
    X, y = table(4000)
    data = ArrayBatches(X, y, batch_rows=1000)
    expected = LabelAudit(random_state=0, cv=None).fit(X, y)
    assert StreamingAudit(random_state=0).fit(data).noise_rates_ == expected.noise_rates_


class Failing(Batches):
    def __iter__(self):
        X, y = table(4000)
        yield X, y, None
        raise OSError("the disk is gone")

    def labels(self):
        yield table(4000)[1], None


def test_an_audit_that_fails_leaves_no_file(tmp_path):
    X, y = table(4000)
    audit = StreamingAudit(random_state=0).fit(ArrayBatches(X, y))
    with pytest.raises(OSError, match="the disk is gone"):
        audit.write(Failing(), tmp_path / "audit.parquet")
    assert list(tmp_path.iterdir()) == []


def test_a_failed_fit_changes_nothing():
    model = StreamingReweighting()
    with pytest.raises(OSError, match="the disk is gone"):
        model.fit(Failing())
    assert not any(name.endswith("_") for name in vars(model))


def test_a_classifier_that_cannot_learn_by_batches_is_refused():
    X, y = table(100)
    with pytest.raises(TypeError, match="partial_fit"):
        StreamingReweighting(LogisticRegression()).fit(ArrayBatches(X, y))


@pytest.mark.parametrize("estimator", [StreamingReweighting, StreamingAudit])
def test_data_that_do_not_come_in_batches_are_refused(estimator):
    with pytest.raises(TypeError, match=r"got ndarray: ArrayBatches\(X, y\)"):
        estimator().fit(np.zeros((20, 2)))


def test_a_class_that_no_drawn_row_has_is_named():
    X, y = table(5000)
    y = np.r_[y[:-1], ["maybe"]]
    model = StreamingReweighting(posterior=LogisticRegression(), max_rows=100)
    with pytest.raises(ValueError, match=r"None of the 100 rows drawn .* has the class 'maybe'"):
        model.fit(ArrayBatches(X, y))


def test_regression_targets_are_refused_at_once():
    X, _ = table(100)
    with pytest.raises(ValueError, match="Unknown label type"):
        StreamingReweighting().fit(ArrayBatches(X, X[:, 0]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"label": "wrong"}, "no column 'wrong' among x0, x1, x2, label, name"),
        ({"label": "label"}, "column 'name' holds string, but features must be numbers"),
    ],
)
def test_columns_that_cannot_be_used_are_named(tmp_path, options, message):
    X, y = table(50)
    columns = {f"x{k}": column for k, column in enumerate(X.T)} | {"label": y, "name": y}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=message):
        ParquetBatches(tmp_path / "a.parquet", **options)


def test_missing_labels_and_files_are_named(tmp_path):
    pq.write_table(pa.table({"x": [1.0, 2.0], "label": ["a", None]}), tmp_path / "a.parquet")
    with pytest.raises(ValueError, match="column 'label' has 1 missing labels"):
        list(ParquetBatches(tmp_path / "a.parquet", label="label"))
    with pytest.raises(FileNotFoundError, match=r"no Parquet file at .*none\.parquet"):
        ParquetBatches(tmp_path / "none.parquet", label="label")


LIMITED = """
import resource, sys
import numpy as np, pyarrow, pyarrow.parquet, scipy.linalg
from unflip.posterior import ChannelPosterior
from unflip.streaming import ParquetBatches, StreamingAudit, StreamingReweighting

path, headroom, max_rows = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
pyarrow.set_cpu_count(1)
data = ParquetBatches(path, label="label", batch_rows=8192)
# what is set up once, such as the buffers of numpy's BLAS and of scipy's, is the program's own
next(iter(data))
scipy.linalg.cho_factor(np.eye(500) @ np.eye(500))
with open("/proc/self/status") as status:
    used = next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmData"))
resource.setrlimit(resource.RLIMIT_DATA, (used + headroom,) * 2)

try:
    rows = np.concatenate([X for X, _, _ in data])
except MemoryError:
    print("in memory: MemoryError")
kind = sys.argv[4]
posterior = kind if kind == "ulsif" else ChannelPosterior(kind, max_rows=max_rows)
model = StreamingReweighting(posterior=posterior).fit(data)
print("rates:", *model.noise_rates_.both())
print("weights:", sum(model.sample_weight(*batch).sum() for batch in data))
audit = StreamingAudit(posterior).fit(data)
written = pyarrow.parquet.read_metadata(audit.write(data, path + ".audit"))
print("issues:", len(audit.issues(data, n=100)), written.num_rows)
"""


def goes_through_with(megabytes, n_rows, n_columns, posterior, path):
    """Run estimate, weights and audit with so much memory for data; return what was printed."""
    rng = np.random.default_rng(0)
    writer = None
    for _ in range(10):
        X = rng.normal(size=(n_rows // 10, n_columns))
        y = flip_labels(X[:, 0] > 0, NoiseRates(0.3, 0.1), random_state=rng.integers(1000))
        part = pa.table({f"x{k}": column for k, column in enumerate(X.T)} | {"label": y})
        writer = writer or pq.ParquetWriter(path, part.schema)
        writer.write_table(part)
    writer.close()
    assert n_rows * n_columns * 8 >= 4 * megabytes * 2**20
    run = subprocess.run(
        [sys.executable, "-c", LIMITED, str(path), str(megabytes * 2**20), *posterior],
        capture_output=True,
        text=True,
        timeout=1200,  # starved of memory, a BLAS may try for ever
        env={"PYTHONPATH": ":".join(sys.path), "OMP_NUM_THREADS": "1", "PATH": ""},
    )
    assert run.returncode == 0, run.stderr
    return dict(line.split(": ") for line in run.stdout.splitlines())


@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_DATA is Linux's")
@pytest.mark.parametrize(
    ("megabytes", "n_rows", "posterior"),
    [
        pytest.param(32, 430_000, ("3000", "linear"), marks=pytest.mark.slow),
        pytest.param(192, 2_600_000, ("20000", "nystroem"), marks=pytest.mark.slow),
        pytest.param(192, 2_600_000, ("20000", "ulsif"), marks=pytest.mark.slow),
    ],
)
def test_a_file_four_times_the_memory_limit_goes_through(megabytes, n_rows, posterior, tmp_path):
    found = goes_through_with(megabytes, n_rows, 40, posterior, tmp_path / "large.parquet")
    assert found["in memory"] == "MemoryError"
    positive, negative = map(float, found["rates"].split())
    assert abs(positive - 0.3) < 0.05
    assert abs(negative - 0.1) < 0.05
    assert abs(float(found["weights"]) / n_rows - 1) < 0.05
    assert found["issues"] == f"100 {n_rows}"


def test_three_classes_have_the_channel_of_the_rows_it_would_draw_in_memory():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 3000)
    X = np.eye(3)[y] * 4 + rng.normal(size=(3000, 3))
    y_noisy = flip_labels(y, TransitionMatrix.pair_flip(3, 0.2), random_state=0)
    channel = ChannelPosterior("linear", max_rows=1500)
    expected = ImportanceReweightingClassifier(posterior=channel, weighting="rho").fit(X, y_noisy)
    data = ArrayBatches(X, y_noisy, batch_rows=700)
    model = StreamingReweighting(posterior=channel).fit(data)
    np.testing.assert_array_equal(model.transition_matrix_, expected.transition_matrix_)
    np.testing.assert_allclose(
        np.concatenate([model.sample_weight(*batch) for batch in data]),
        expected.sample_weight_,
        rtol=1e-8,
    )
    chosen = StreamingReweighting(random_state=0).fit(ArrayBatches(X[:600], y_noisy[:600]))
    assert isinstance(chosen.posterior_, ChannelPosterior)
