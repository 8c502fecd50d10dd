"""A model file holds the model and its origin, and is loaded without trust."""

import io
import json
import re
import zipfile

import numpy as np
import pytest
import skops.io
from lightgbm import LGBMClassifier
from sklearn.cluster import Birch
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import SVC

from unflip import ImportanceReweightingClassifier, NoiseRates, flip_labels
from unflip._app.persistence import (
    NOTE,
    ModelFileError,
    changed_versions,
    load_model,
    save_model,
    versions,
)

ORIGIN = {"label": "y", "columns": {"x": "numbers"}, "set_aside": []}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.skops"


def test_a_model_comes_back_with_its_origin(path):
    X = np.linspace(-2, 2, 100)[:, None]
    y = flip_labels(np.where(X[:, 0] > 0, "yes", "no"), NoiseRates(0.2, 0.1), random_state=0)
    model = ImportanceReweightingClassifier(noise_rates=NoiseRates(0.2, 0.1)).fit(X, y)
    save_model(path, model, ORIGIN)
    back, origin = load_model(path)
    assert np.array_equal(back.predict_proba(X), model.predict_proba(X))
    assert back.noise_rates_ == NoiseRates(0.2, 0.1)
    assert origin == {"format": 1, "versions": versions(), **ORIGIN}


@pytest.mark.parametrize(
    "estimator",
    [
        LGBMClassifier(n_estimators=3, verbose=-1),
        RandomForestClassifier(3),
        GradientBoostingClassifier(n_estimators=3),
        SVC(kernel="linear"),
        HistGradientBoostingClassifier(max_iter=3, categorical_features=[0]),
    ],
)
def test_other_estimators_come_back_when_what_saving_named_is_trusted(path, estimator):
    X = np.repeat(np.arange(10), 10).astype(float)[:, None]
    y = X[:, 0] > 4
    model = ImportanceReweightingClassifier(estimator, noise_rates=NoiseRates(0.2, 0.1)).fit(X, y)
    needed = save_model(path, model, ORIGIN)
    back, _ = load_model(path, trusted=needed)
    assert np.array_equal(back.predict(X), model.predict(X))
    for name in needed:
        with pytest.raises(ModelFileError, match=f"does not trust: {re.escape(name)}. If"):
            load_model(path, trusted=[other for other in needed if other != name])
    assert needed


def test_what_skops_cannot_write_is_said_before_a_file_is_made(path):
    model = ImportanceReweightingClassifier(Birch())
    with pytest.raises(ModelFileError, match="cannot write ImportanceReweightingClassifier"):
        save_model(path, model, ORIGIN)
    assert not path.exists()


def test_a_model_that_compresses_too_well_is_stored_as_it_is(path):
    X = np.linspace(-2, 2, 100)[:, None]
    model = ImportanceReweightingClassifier(noise_rates=NoiseRates(0, 0)).fit(X, X[:, 0] > 0)
    model.mislabel_proba_ = np.zeros(5_000_000)
    save_model(path, model, ORIGIN)
    assert path.stat().st_size > 40e6
    back, _ = load_model(path)
    assert back.mislabel_proba_.size == 5_000_000


def test_an_object_that_is_met_twice_is_written_once(path):
    X = np.linspace(-2, 2, 100)[:, None]
    model = ImportanceReweightingClassifier(noise_rates=NoiseRates(0, 0)).fit(X, X[:, 0] > 0)
    model.twice = [model.estimator_, model.estimator_]
    save_model(path, model, ORIGIN)
    with zipfile.ZipFile(path) as archive:
        assert archive.read("schema.json").count(b"LogisticRegression") == 1
    back, _ = load_model(path)
    assert back.twice == [back.estimator_, back.estimator_]


def test_the_origin_can_be_read_by_anything(path):
    save_model(path, LogisticRegression(), ORIGIN)
    with zipfile.ZipFile(path) as archive:
        assert json.loads(archive.read(NOTE))["label"] == "y"


@pytest.mark.parametrize(
    "function", [np.save, np.fromfile, flip_labels, print, skops.io.load, np.testing.rundocs]
)
def test_functions_are_not_trusted_whatever_their_package(path, function):
    save_model(path, FunctionTransformer(function), ORIGIN)
    trusted = ["sklearn.preprocessing._function_transformer.FunctionTransformer"]
    with pytest.raises(ModelFileError, match=rf"\.{function.__name__}\. If you know"):
        load_model(path, trusted=trusted)


def test_a_file_of_another_format_is_refused(path):
    buffer = io.BytesIO(skops.io.dumps(LogisticRegression()))
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr(NOTE, json.dumps({"format": 2}))
    path.write_bytes(buffer.getvalue())
    with pytest.raises(ModelFileError, match="of format 2, and this unflip reads 1"):
        load_model(path)


@pytest.mark.parametrize("note", ["[]", "{}", "no json", '{"format": 1, "label": "y"}'])
def test_a_file_without_a_proper_note_is_refused(path, note):
    buffer = io.BytesIO(skops.io.dumps(LogisticRegression()))
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr(NOTE, note)
    path.write_bytes(buffer.getvalue())
    with pytest.raises(ModelFileError, match="is not a model file of unflip"):
        load_model(path)


def test_other_versions_are_named():
    assert changed_versions({"versions": versions()}) == []
    then = {**versions(), "numpy": "0.1"}
    (words,) = changed_versions({"versions": then})
    assert words.startswith("numpy ")
    assert words.endswith("(trained with 0.1)")
