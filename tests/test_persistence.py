"""A model file holds the model and its origin, and is loaded without trust."""

import io
import json
import zipfile

import numpy as np
import pytest
import skops.io
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import FunctionTransformer

from unflip import ImportanceReweightingClassifier, NoiseRates
from unflip._files import write_whole
from unflip.persistence import (
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
    y = np.where(X[:, 0] > 0, "yes", "no")
    model = ImportanceReweightingClassifier(noise_rates=NoiseRates(0.2, 0.1)).fit(X, y)
    save_model(path, model, ORIGIN)
    back, origin = load_model(path)
    assert np.array_equal(back.predict_proba(X), model.predict_proba(X))
    assert back.noise_rates_ == NoiseRates(0.2, 0.1)
    assert origin == {"format": 1, "versions": versions(), **ORIGIN}


def test_the_origin_can_be_read_by_anything(path):
    save_model(path, LogisticRegression(), ORIGIN)
    with zipfile.ZipFile(path) as archive:
        assert json.loads(archive.read(NOTE))["label"] == "y"


@pytest.mark.parametrize(
    "function", [np.save, np.fromfile, write_whole, print, skops.io.load, np.testing.rundocs]
)
def test_functions_are_not_trusted_whatever_their_package(path, function):
    save_model(path, FunctionTransformer(function), ORIGIN)
    with pytest.raises(ModelFileError, match=rf"\.{function.__name__}\. If you know"):
        load_model(path)


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
