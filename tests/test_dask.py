"""Rows on a cluster give what the same rows give in memory."""

import os
import signal

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression, SGDClassifier

from unflip import ImportanceReweightingClassifier, NoiseRates, TransitionMatrix, flip_labels
from unflip.audit import LabelAudit
from unflip.dask import DaskAudit, DaskReweighting
from unflip.posterior import ChannelPosterior

SMALL = ChannelPosterior("linear", max_rows=3000)
"""A channel that draws rows from a small table too."""


def table(n=8000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    names = np.where(X[:, 0] + 0.5 * X[:, 1] > 0.3, "yes", "no")
    return X, flip_labels(names, NoiseRates(0.3, 0.1), random_state=seed)


@pytest.fixture(scope="module")
def data():
    return table()


@pytest.fixture(scope="module")
def in_memory(data):
    return ImportanceReweightingClassifier(posterior=SMALL, random_state=5).fit(*data)


@pytest.fixture(autouse=True)
def one_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def test_arrays_give_the_rates_and_weights_of_the_table(data, in_memory):
    X = da.from_array(data[0], chunks=(1700, 2))  # columns are cut too
    y = da.from_array(data[1], chunks=1000)  # at other rows than X
    model = DaskReweighting(posterior=SMALL, random_state=5).fit(X, y)
    assert model.noise_rates_ == in_memory.noise_rates_
    weights = model.sample_weight(X, y)
    assert isinstance(weights, da.Array)
    assert weights.chunks == (X.chunks[0],)
    np.testing.assert_allclose(weights.compute(), in_memory.sample_weight_, rtol=1e-10, atol=1e-12)
    assert model.effective_sample_size_ == pytest.approx(in_memory.effective_sample_size_)
    assert model.clipped_share_ == in_memory.clipped_share_


def test_dataframes_give_a_lazy_series_beside_them(data, in_memory):
    frame = pd.DataFrame(data[0], columns=list("abc")).assign(label=data[1])
    frame = dd.from_pandas(frame, npartitions=5)
    X, y = frame[list("abc")], frame["label"]
    model = DaskReweighting(posterior=SMALL, random_state=5).fit(X, y)
    assert model.noise_rates_ == in_memory.noise_rates_
    assert model.posterior_.feature_names_in_.tolist() == list("abc")
    weighted = frame.assign(weight=model.sample_weight(X, y)).compute()
    np.testing.assert_allclose(weighted["weight"], in_memory.sample_weight_, rtol=1e-10, atol=1e-12)


def test_parquet_files_keep_labels_beside_their_rows(data, in_memory, tmp_path):
    frame = pd.DataFrame(data[0], columns=list("abc")).assign(label=data[1])
    for k in range(6):
        frame[k * 1500 : (k + 1) * 1500].to_parquet(tmp_path / f"{k}.parquet")
    table = dd.read_parquet(tmp_path)
    X, y = table.drop(columns="label"), table["label"]
    # dask itself would merge the partitions of a single column
    assert len(y.to_delayed()) < len(X.to_delayed())
    model = DaskReweighting(posterior=SMALL, random_state=5).fit(X, y)
    assert model.noise_rates_ == in_memory.noise_rates_
    weights = model.sample_weight(X, y).compute()
    np.testing.assert_allclose(weights, in_memory.sample_weight_, rtol=1e-10, atol=1e-12)


def test_partitions_without_rows_change_nothing(data, in_memory):
    frame = pd.DataFrame(data[0], columns=list("abc")).assign(label=data[1])
    parts = [frame[:3000], frame[:0], frame[3000:], frame[:0]]
    frame = dd.from_delayed([dask.delayed(part) for part in parts], meta=frame[:0])
    X, y = frame[list("abc")], frame["label"]
    model = DaskReweighting(posterior=SMALL, random_state=5).fit(X, y)
    assert model.noise_rates_ == in_memory.noise_rates_
    np.testing.assert_allclose(model.sample_weight(X, y), in_memory.sample_weight_, atol=1e-10)
    assert len(DaskAudit(SMALL, NoiseRates(0.3, 0.1)).fit(X, y).issues(X, y, n=7)) == 7


def test_own_weights_act_as_in_memory(data):
    own = np.random.default_rng(1).integers(0, 3, len(data[1]))
    expected = ImportanceReweightingClassifier(posterior=SMALL).fit(*data, sample_weight=own)
    X, y, w = (da.from_array(part, chunks=1500) for part in (*data, own))
    model = DaskReweighting(posterior=SMALL).fit(X, y, w)
    assert model.noise_rates_ == expected.noise_rates_
    np.testing.assert_allclose(
        model.sample_weight(X, y, w), own * expected.sample_weight_, atol=1e-10
    )


def test_the_audit_is_the_one_in_memory(data):
    expected = LabelAudit(SMALL, cv=None, random_state=0).fit(*data)
    X, y = (da.from_array(part, chunks=1500) for part in data)
    audit = DaskAudit(SMALL, random_state=0).fit(X, y)
    assert audit.noise_rates_ == expected.noise_rates_
    np.testing.assert_allclose(audit.mislabel_proba(X, y), expected.mislabel_proba_, atol=1e-10)
    suggested = audit.suggested_label(X, y)
    assert suggested.compute().tolist() == expected.suggested_label_.tolist()
    found = audit.issues(X, y, n=40)
    assert set(found.position) == set(expected.issues(n=40))
    assert set(audit.issues(X, y).position) == set(expected.issues())
    assert set(audit.issues(X, y, precision=0.97).position) <= set(expected.issues(precision=0.97))
    np.testing.assert_array_equal(found.label, data[1][found.position])


def test_suggested_labels_of_a_dataframe_are_a_series(data):
    frame = pd.DataFrame(data[0], columns=list("abc")).assign(label=data[1])
    frame = dd.from_pandas(frame, npartitions=3)
    X, y = frame[list("abc")], frame["label"]
    audit = DaskAudit(SMALL, NoiseRates(0.3, 0.1)).fit(X, y)
    expected = LabelAudit(SMALL, NoiseRates(0.3, 0.1), cv=None).fit(*data)
    assert audit.suggested_label(X, y).compute().tolist() == expected.suggested_label_.tolist()


class DaskAware(BaseEstimator):
    """Stands for LightGBM's and XGBoost's classifiers: it takes collections."""

    def fit(self, X, y, sample_weight=None):
        assert all(dask.is_dask_collection(part) for part in (X, y, sample_weight))
        positive = y == "yes"
        self.mean_ = ((X * (positive * sample_weight)[:, None]).sum(axis=0)).compute()
        return self


def test_a_dask_aware_classifier_gets_lazy_weights(data, in_memory):
    X, y = (da.from_array(part, chunks=1500) for part in data)
    model = DaskReweighting(DaskAware(), posterior=SMALL, random_state=5)
    # it has no seed to draw, so that the channel is told its own
    channel = ChannelPosterior("linear", max_rows=3000, random_state=3)
    model.set_params(posterior=channel).fit(X, y)
    beta = ImportanceReweightingClassifier(posterior=channel).fit(*data).sample_weight_
    expected = (data[0] * (beta * (data[1] == "yes"))[:, None]).sum(axis=0)
    np.testing.assert_allclose(model.estimator_.mean_, expected)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")  # LightGBM's, on the ports that it tries
def test_lightgbm_learns_from_the_weights_on_a_cluster():
    lightgbm = pytest.importorskip("lightgbm")
    X = np.random.default_rng(0).normal(size=(20_000, 4))
    y = X[:, 0] * X[:, 1] > 0
    y_noisy = flip_labels(y, NoiseRates(positive=0.1, negative=0.4), random_state=0).astype(int)
    rows, labels = da.from_array(X, chunks=(5000, 4)), da.from_array(y_noisy, chunks=5000)
    with (
        dask.config.set(scheduler=None),
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50
        ) as cluster,
        Client(cluster),
    ):
        learner = lightgbm.DaskLGBMClassifier(n_estimators=40, verbose=-1)
        model = DaskReweighting(learner, random_state=0).fit(rows, labels)
        plain = learner.fit(rows, labels)
        right = [np.mean(fit.predict(rows).compute() == y) for fit in (model.estimator_, plain)]
    assert right[0] > 0.99 > 0.97 > right[1]


def test_an_incremental_classifier_learns_block_by_block(data):
    X, y = (da.from_array(part, chunks=1500) for part in data)
    learner = SGDClassifier(loss="log_loss", random_state=0)
    model = DaskReweighting(learner, posterior=SMALL, n_epochs=2).fit(X, y)
    weights = model.sample_weight(X, y).compute()
    by_hand = SGDClassifier(loss="log_loss", random_state=0)
    for _ in range(2):
        for start in range(0, 8000, 1500):
            rows = slice(start, start + 1500)
            by_hand.partial_fit(
                data[0][rows], data[1][rows], classes=["no", "yes"], sample_weight=weights[rows]
            )
    np.testing.assert_allclose(model.estimator_.coef_, by_hand.coef_)
    assert not hasattr(learner, "coef_")


def test_a_classifier_that_needs_all_rows_is_refused(data):
    X, y = (da.from_array(part, chunks=1500) for part in data)
    with pytest.raises(TypeError, match="LogisticRegression needs all rows in memory"):
        DaskReweighting(LogisticRegression()).fit(X, y)


def test_blocks_that_do_not_match_are_named(data):
    X, y = (da.from_array(part, chunks=1500) for part in data)
    with pytest.raises(ValueError, match="X has 8000 rows and y has 7000"):
        DaskReweighting().fit(X, y[:7000])
    frame = dd.from_pandas(pd.DataFrame(data[0]), npartitions=3)
    with pytest.raises(ValueError, match="X has 3 blocks and y has 6"):
        DaskReweighting().fit(frame, y)
    with pytest.raises(TypeError, match="dask array"):
        DaskReweighting().fit(X, data[1])


def test_progress_is_shown_without_a_cluster(data, capsys):
    X, y = (da.from_array(part, chunks=1500) for part in data)
    DaskReweighting(posterior=SMALL, noise_rates=NoiseRates(0.3, 0.1), progress=True).fit(X, y)
    assert "100% Completed" in capsys.readouterr().out


def block(rows, start, folder):
    """Return rows; the worker that is the first to read the second block is killed."""
    try:
        os.close(os.open(f"{folder}/killed-{start}", os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return rows
    if start == 1500:
        os.kill(os.getpid(), signal.SIGKILL)
    return rows


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's")
@pytest.mark.slow
def test_a_worker_killed_in_mid_fit_changes_nothing(data, in_memory, tmp_path, capsys):
    read = dask.delayed(block)
    parts = [
        da.from_delayed(
            read(data[0][start : start + 1500], start, str(tmp_path)),
            shape=(min(1500, 8000 - start), 3),
            dtype=float,
        )
        for start in range(0, 8000, 1500)
    ]
    X, y = da.concatenate(parts), da.from_array(data[1], chunks=1500)
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "10s", "scheduler": None}),
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50
        ) as cluster,
        Client(cluster) as client,
    ):
        pids = set(client.run(os.getpid).values())
        model = DaskReweighting(posterior=SMALL, progress=True, random_state=5).fit(X, y)
        weights = model.sample_weight(X, y).compute()
        assert set(client.run(os.getpid).values()) != pids
    assert (tmp_path / "killed-1500").exists()
    assert model.noise_rates_ == in_memory.noise_rates_
    np.testing.assert_allclose(weights, in_memory.sample_weight_, rtol=1e-10, atol=1e-12)
    assert "100% Completed" in capsys.readouterr().out


@pytest.mark.parametrize("when", [2, 3])
def test_rows_that_vanish_between_two_passes_are_an_error(data, when):
    X, y = data
    calls = []

    def block(start):
        calls.append(start)
        later = calls.count(start) >= when
        frame = pd.DataFrame(X[start : start + 4000]).assign(y=y[start : start + 4000])
        return frame[:-100] if start and later else frame

    frame = dd.from_map(block, [0, 4000], meta=block(0)[:0])
    calls.clear()
    with pytest.raises(ValueError, match="changed"):
        DaskReweighting(posterior=SMALL, random_state=5).fit(frame[[0, 1, 2]], frame["y"])


def test_three_classes_have_the_channel_of_the_rows_it_would_draw_in_memory():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 3000)
    X = np.eye(3)[y] * 4 + rng.normal(size=(3000, 3))
    y_noisy = flip_labels(y, TransitionMatrix.pair_flip(3, 0.2), random_state=0)
    channel = ChannelPosterior("linear", max_rows=1500)
    expected = ImportanceReweightingClassifier(posterior=channel, weighting="rho").fit(X, y_noisy)
    blocks = da.from_array(X, chunks=(700, 3)), da.from_array(y_noisy, chunks=900)
    model = DaskReweighting(posterior=channel).fit(*blocks)
    np.testing.assert_array_equal(model.transition_matrix_, expected.transition_matrix_)
    weights = model.sample_weight(*blocks).compute()
    np.testing.assert_allclose(weights, expected.sample_weight_, rtol=1e-8)
