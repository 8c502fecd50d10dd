"""Predictions by batches and on a cluster are those in memory."""

import tracemalloc

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Perceptron, SGDClassifier
from sklearn.naive_bayes import GaussianNB

from unflip import NoiseRates, flip_labels
from unflip.dask import DaskAudit, DaskReweighting
from unflip.posterior import ChannelPosterior
from unflip.streaming import (
    ArrayBatches,
    ArrowBatches,
    Batches,
    ParquetBatches,
    StreamingAudit,
    StreamingReweighting,
)

OPTIONS = {"posterior": ChannelPosterior("linear"), "noise_rates": NoiseRates(0.3, 0.1)}
LEARNER = GaussianNB()
"""Every row's probabilities are a sum of its own: they are the same bits in any block."""

NAMES = ["a", "b", "c"]
METHODS = ["predict", "predict_proba"]


def table(n=2000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    names = np.where(X[:, 0] + 0.5 * X[:, 1] > 0.3, "yes", "no")
    return X, flip_labels(names, NoiseRates(0.3, 0.1), random_state=seed)


X, Y = table()
OTHERS = table(1100, seed=1)[0]
"""Rows that the fit has not seen, without labels."""


@pytest.fixture(autouse=True)
def one_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture(scope="module")
def streaming():
    return StreamingReweighting(LEARNER, **OPTIONS).fit(ArrayBatches(X, Y, batch_rows=600))


@pytest.fixture(scope="module")
def from_file(tmp_path_factory):
    """A model of a file with named columns."""
    path = write(tmp_path_factory.mktemp("fit") / "fit.parquet", X, {"y": Y})
    return StreamingReweighting(LEARNER, **OPTIONS).fit(ParquetBatches(path, label="y"))


def write(path, rows, more=None, names=NAMES):
    columns = dict(zip(NAMES, rows.T, strict=True))
    pq.write_table(pa.table({name: columns[name] for name in names} | (more or {})), path)
    return path


def dask_rows(rows):
    return da.from_array(rows, chunks=(600, 2))  # columns are cut too


def frames(rows):
    """Return partitions of named columns, two of them without rows."""
    frame = pd.DataFrame(rows, columns=NAMES, index=np.arange(len(rows)) * 3)
    parts = [frame[:0], frame[:700], frame[:0], frame[700:]]
    return dd.from_delayed([dask.delayed(part) for part in parts], meta=frame[:0])


@pytest.fixture(scope="module")
def on_dask():
    with dask.config.set(scheduler="synchronous"):
        return DaskReweighting(LEARNER, **OPTIONS).fit(dask_rows(X), da.from_array(Y, chunks=600))


@pytest.fixture(scope="module")
def on_frames():
    frame = frames(X)
    labels = pd.Series(Y, index=np.arange(len(Y)) * 3)
    parts = [labels[:0], labels[:700], labels[:0], labels[700:]]
    y = dd.from_delayed([dask.delayed(part) for part in parts], meta=labels[:0])
    with dask.config.set(scheduler="synchronous"):
        return DaskReweighting(LEARNER, **OPTIONS).fit(frame, y)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("labels", [None, "unknown"])
def test_predictions_by_batches_are_those_in_memory(streaming, method, labels):
    y = labels if labels is None else np.full(len(OTHERS), labels)  # labels do not matter
    found = list(getattr(streaming, method)(ArrayBatches(OTHERS, y, batch_rows=300)))
    assert [len(part) for part in found] == [300, 300, 300, 200]
    expected = getattr(streaming.estimator_, method)(OTHERS)
    np.testing.assert_array_equal(np.concatenate(found), expected)


def test_both_ways_train_the_same_classifier(streaming, on_dask):
    np.testing.assert_array_equal(streaming.estimator_.theta_, on_dask.estimator_.theta_)
    probabilities = np.concatenate(list(streaming.predict_proba(ArrayBatches(OTHERS))))
    np.testing.assert_array_equal(on_dask.predict_proba(dask_rows(OTHERS)), probabilities)


def test_a_linear_classifier_predicts_by_batches_as_far_as_blas_goes():
    learner = SGDClassifier(loss="log_loss", random_state=0)
    model = StreamingReweighting(learner, **OPTIONS).fit(ArrayBatches(X, Y, batch_rows=600))
    found = np.concatenate(list(model.predict_proba(ArrayBatches(OTHERS, batch_rows=7))))
    np.testing.assert_allclose(found, model.estimator_.predict_proba(OTHERS), rtol=1e-10)


@pytest.mark.parametrize("method", METHODS)
def test_files_without_labels_are_predicted(from_file, method, tmp_path):
    write(tmp_path / "1.parquet", OTHERS[:700])
    write(tmp_path / "2.parquet", OTHERS[700:])
    expected = getattr(from_file.estimator_, method)(OTHERS)
    for data in (
        ParquetBatches(tmp_path, batch_rows=512),
        ArrowBatches(ds.dataset(tmp_path), batch_rows=512),
    ):
        found = np.concatenate(list(getattr(from_file, method)(data)))
        np.testing.assert_array_equal(found, expected)


def test_columns_are_found_by_name_among_others_in_another_order(from_file, tmp_path):
    path = write(tmp_path / "new.parquet", OTHERS, {"note": ["x"] * len(OTHERS)}, NAMES[::-1])
    data = ParquetBatches(path, columns=from_file.feature_names_in_)
    found = np.concatenate(list(from_file.predict(data)))
    np.testing.assert_array_equal(found, from_file.estimator_.predict(OTHERS))


@pytest.mark.parametrize("method", METHODS)
def test_another_order_or_other_columns_of_files_are_refused_at_once(from_file, method, tmp_path):
    call = getattr(from_file, method)
    more = {"y": Y, "d": np.zeros(len(Y))}
    path = write(tmp_path / "new.parquet", X, more, NAMES[::-1])
    with pytest.raises(ValueError, match="same order"):
        call(ParquetBatches(path, label="y", columns=["c", "b", "a"]))
    with pytest.raises(ValueError, match=r"unseen at fit time:\n- d"):
        call(ParquetBatches(path, label="y"))
    with pytest.raises(ValueError, match=r"seen at fit time, yet now missing:\n- c"):
        call(ParquetBatches(path, label="y", columns=["a", "b"]))


def test_the_audit_refuses_columns_in_another_order(tmp_path):
    path = write(tmp_path / "a.parquet", X, {"y": Y})
    audit = StreamingAudit(**OPTIONS).fit(ParquetBatches(path, label="y"))
    other = ParquetBatches(path, label="y", columns=["b", "a", "c"])
    with pytest.raises(ValueError, match=r"same order"):
        audit.issues(other, n=3)
    with pytest.raises(ValueError, match=r"same order"):
        audit.write(other, tmp_path / "audit.parquet")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.parquet"]


def test_too_few_columns_of_arrays_are_refused(streaming, on_dask):
    with pytest.raises(ValueError, match=r"X has 2 features, but Stream.* is expecting 3"):
        streaming.predict(ArrayBatches(OTHERS[:, :2]))
    with pytest.raises(ValueError, match=r"X has 2 features, but Dask.* is expecting 3"):
        on_dask.predict(dask_rows(OTHERS[:, :2]))


def test_a_second_fit_forgets_the_columns_of_the_first(tmp_path):
    path = write(tmp_path / "a.parquet", X, {"y": Y})
    model = StreamingReweighting(LEARNER, **OPTIONS).fit(ParquetBatches(path, label="y"))
    assert model.feature_names_in_.tolist() == NAMES
    model.fit(ArrayBatches(X[:, :2], Y))
    assert model.n_features_in_ == 2
    assert not hasattr(model, "feature_names_in_")
    model.fit(Simulated(1))
    assert not hasattr(model, "n_features_in_")


class Once(Batches):
    """Batches of an iterator that is used up."""

    def __init__(self, batches):
        self.batches = iter(batches)

    def __iter__(self):
        return self.batches


def test_batches_that_can_be_read_once_are_predicted_once(streaming):
    data = Once(ArrayBatches(OTHERS, batch_rows=300))
    found = np.concatenate(list(streaming.predict(data)))
    np.testing.assert_array_equal(found, streaming.estimator_.predict(OTHERS))
    with pytest.raises(ValueError, match="there are no batches"):
        list(streaming.predict(data))


def test_batches_without_rows_have_no_predictions(streaming):
    parts = [OTHERS[:0], OTHERS[:5], OTHERS[:0], OTHERS[5:9].tolist()]
    found = list(streaming.predict_proba(Once((part, None, None) for part in parts)))
    assert [part.shape for part in found] == [(0, 2), (5, 2), (0, 2), (4, 2)]
    labels = list(streaming.predict(Once((part, None, None) for part in parts)))
    assert {part.dtype for part in labels} == {streaming.classes_.dtype}
    expected = streaming.estimator_.predict_proba(OTHERS[:9])
    np.testing.assert_array_equal(np.concatenate(found), expected)


class Simulated(Batches):
    """Batches of 10 000 rows, made as they are asked for."""

    def __init__(self, n_batches):
        self.n_batches = n_batches

    def __iter__(self):
        for seed in range(self.n_batches):
            yield *table(10_000, seed), None


def test_memory_is_that_of_a_batch_however_many_there_are(streaming):
    peaks = []
    for n_batches in (2, 20):
        tracemalloc.start()
        n_rows = sum(len(part) for part in streaming.predict_proba(Simulated(n_batches)))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert n_rows == 10_000 * n_batches
    assert peaks[1] < 1.2 * peaks[0]


@pytest.mark.parametrize("method", METHODS)
def test_dask_arrays_are_predicted_lazily_in_their_blocks(on_dask, method):
    rows = dask_rows(OTHERS)
    found = getattr(on_dask, method)(rows)
    expected = getattr(on_dask.estimator_, method)(OTHERS)
    assert isinstance(found, da.Array)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    assert found.chunks[0] == rows.chunks[0]
    np.testing.assert_array_equal(found.compute(), expected)


def test_dask_arrays_of_unknown_length_are_predicted(on_dask):
    rows = dask_rows(OTHERS)
    some = rows[rows[:, 0] > 0]
    found = on_dask.predict(some)
    expected = on_dask.estimator_.predict(OTHERS[OTHERS[:, 0] > 0])
    np.testing.assert_array_equal(found.compute(), expected)


def test_nothing_is_computed_before_it_is_asked_for(on_dask):
    def never(rows):
        raise AssertionError("computed")

    rows = dask_rows(OTHERS).map_blocks(never, dtype=float, meta=np.empty((0, 0)))
    lazy = on_dask.predict(rows)
    with pytest.raises(AssertionError, match="computed"):
        lazy.compute()


def test_dataframes_with_empty_partitions_keep_their_index(on_frames):
    frame = frames(OTHERS)
    labels, probabilities = on_frames.predict(frame), on_frames.predict_proba(frame)
    rows = frame.compute()
    found = labels.compute()
    pd.testing.assert_index_equal(found.index, rows.index)
    assert found.tolist() == on_frames.estimator_.predict(rows).tolist()
    found = probabilities.compute()
    assert found.columns.tolist() == probabilities.columns.tolist() == ["no", "yes"]
    np.testing.assert_array_equal(found, on_frames.estimator_.predict_proba(rows))
    beside = frame.assign(label=labels, proba=probabilities["yes"]).compute()
    np.testing.assert_array_equal(beside["proba"], found["yes"])


@pytest.mark.parametrize("labels", [[False, True], [0, 1], [-1.0, 2.0]])
def test_probabilities_of_a_dataframe_are_named_by_classes_of_any_kind(labels):
    y = np.where(Y == "yes", labels[1], labels[0])
    frame = dd.from_pandas(pd.DataFrame(X, columns=NAMES).assign(y=y), npartitions=3)
    model = DaskReweighting(LEARNER, **OPTIONS).fit(frame[NAMES], frame["y"])
    found = model.predict_proba(frame[NAMES]).compute()
    assert found.columns.tolist() == labels
    assert model.predict(frame[NAMES]).dtype == np.asarray(labels).dtype
    expected = model.estimator_.predict_proba(pd.DataFrame(X, columns=NAMES))
    np.testing.assert_array_equal(found, expected)


def test_columns_of_dataframes_in_another_order_are_refused_at_once(on_frames):
    for call in (on_frames.predict, on_frames.predict_proba):
        with pytest.raises(ValueError, match="same order"):
            call(frames(OTHERS)[["b", "a", "c"]])
    frame = frames(X)
    y = da.from_array(Y, chunks=(600,))
    audit = DaskAudit(**OPTIONS).fit(dask_rows(X), y)
    with pytest.raises(ValueError, match="X has 2 features"):
        audit.mislabel_proba(dask_rows(X)[:, :2], y)
    with pytest.raises(ValueError, match="same order"):
        on_frames.sample_weight(frame[["b", "a", "c"]], frame["a"])


class TakesCollections(BaseEstimator):
    """Stands for LightGBM's classifiers."""

    def fit(self, X, y, sample_weight=None):
        self.mean_ = float((X[:, 0] * sample_weight).mean().compute())
        return self

    def predict(self, X):
        assert isinstance(X, da.Array)
        return X[:, 0] > self.mean_


def test_a_classifier_of_collections_predicts_them_itself():
    model = DaskReweighting(TakesCollections(), **OPTIONS)
    model.fit(dask_rows(X), da.from_array(Y, chunks=600))
    found = model.predict(dask_rows(OTHERS))
    np.testing.assert_array_equal(found, OTHERS[:, 0] > model.estimator_.mean_)
    assert not hasattr(model, "predict_proba")


@pytest.mark.parametrize("kind", [StreamingReweighting, DaskReweighting])
def test_there_is_no_prediction_without_a_classifier_that_can(kind):
    for method in METHODS:
        with pytest.raises(AttributeError) as error:
            getattr(kind(), method)
        assert f"no {method} without a classifier" in str(error.value.__cause__)
    assert hasattr(kind(Perceptron()), "predict")
    assert not hasattr(kind(Perceptron()), "predict_proba")
    assert hasattr(kind(GaussianNB()), "predict_proba")


def test_prediction_before_the_fit_is_refused():
    with pytest.raises(NotFittedError):
        StreamingReweighting(LEARNER).predict(ArrayBatches(OTHERS))
    with pytest.raises(NotFittedError):
        DaskReweighting(LEARNER).predict(dask_rows(OTHERS))
    with pytest.raises(TypeError, match="batches"):
        StreamingReweighting(LEARNER).predict(OTHERS)


def test_rows_without_labels_can_be_predicted_and_nothing_else(streaming, tmp_path):
    path = write(tmp_path / "a.parquet", X)
    for data in (ArrayBatches(X), ParquetBatches(path)):
        with pytest.raises(ValueError, match="no labels"):
            clone(streaming).fit(data)
    with pytest.raises(ValueError, match="no labels"):
        streaming.sample_weight(X, None)


def test_an_empty_partition_is_no_step_of_the_classifier(on_frames):
    model = DaskReweighting(LEARNER, **OPTIONS)
    model.fit(da.from_array(X, chunks=((700, 1300), 3)), da.from_array(Y, chunks=((700, 1300),)))
    np.testing.assert_array_equal(on_frames.estimator_.theta_, model.estimator_.theta_)


def test_progress_of_a_streaming_fit_tells_the_passes(capsys):
    data = ArrayBatches(X, Y, batch_rows=600)
    StreamingReweighting(LEARNER, **OPTIONS, progress=True).fit(data)
    lines = capsys.readouterr().err.replace("\r", "\n").splitlines()
    assert "pass 1: 4 batches" in lines
    assert "pass 4: 4 of 4 batches" in lines
    StreamingReweighting(LEARNER, **OPTIONS).fit(data)
    assert capsys.readouterr().err == ""
