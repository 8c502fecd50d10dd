"""A model file holds data, predicts as the fitted model does, and says where it comes from."""

import json
import zipfile

import numpy as np
import polars as pl
import pytest

from unflip._app.persistence import (
    NOTE,
    changed_versions,
    load_model,
    save_model,
    versions,
)
from unflip._app.tables import kind_of, split_label
from unflip._app.workflow import learn, make_estimator

N = 240


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.unflip"


def table(n_classes, labels=str, seed=0):
    """Return numbers, categories, dates and text, with gaps, and labels of a type."""
    rng = np.random.default_rng(seed)
    y = np.arange(N) % n_classes
    words = np.array(["late angry refund", "fine good thanks", "where when how", "other"])[y]
    frame = pl.DataFrame(
        {
            "x": rng.normal(3 * y, 1),
            "plan": rng.choice(["a", "b", "c"], N),
            "two": rng.choice(["m", "f"], N),
            "since": [f"2020-{1 + k % 12:02}-{1 + k % 28:02}" for k in rng.integers(0, 999, N)],
            "note": [f"{text} {k} {'ß日本' * (k % 3)}" for k, text in enumerate(words)],
            "y": [labels(k) for k in y],
        }
    )
    rows = pl.int_range(N, eager=True)
    return frame.with_columns(
        pl.when(rows % 7 == 0).then(None).otherwise(pl.col(name)).alias(name)
        for name in ("x", "plan", "since", "note")
    )


def fitted(estimator, rows):
    data = split_label(rows, "y")
    size = data.classes.size
    rates = {"rates": None}
    if size == 2:
        from unflip import NoiseRates

        rates = {"rates": NoiseRates(0.1, 0.1)}
    learnt = learn(data, estimator=make_estimator(estimator), **rates)
    columns = {name: kind_of(data.features[name]) for name in data.features.columns}
    return learnt.model, data.features, {"label": "y", "columns": columns, "set_aside": []}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("estimator", ["logistic", "boosting", "svm"])
def test_a_file_predicts_as_the_model_that_was_fitted(path, estimator, n_classes):
    model, features, origin = fitted(estimator, table(n_classes))
    assert save_model(path, model, origin) == []
    back, note = load_model(path)
    assert note == {"format": 2, "versions": versions(), **origin}
    new = table(n_classes, seed=1).select(features.columns)
    for rows in (features, new):
        labels, proba = back.predict(back.encode(rows))
        assert (labels == model.predict(rows)).all()
        if estimator == "svm":
            assert proba is None
        else:
            np.testing.assert_allclose(proba, model.predict_proba(rows), rtol=0, atol=1e-12)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("labels", [int, bool])
def test_labels_keep_their_type(path, labels):
    model, features, origin = fitted("logistic", table(2, labels))
    save_model(path, model, origin)
    found, _ = load_model(path)[0].predict(load_model(path)[0].encode(features))
    assert found.dtype == model.predict(features).dtype


@pytest.mark.filterwarnings("ignore")
def test_a_classifier_of_another_package_is_loaded_only_if_it_is_trusted(path):
    model, features, origin = fitted("sklearn.ensemble.RandomForestClassifier", table(2))
    needed = save_model(path, model, origin)
    assert "sklearn.ensemble._forest.RandomForestClassifier" in needed
    with pytest.raises(ValueError, match="--trust sklearn"):
        load_model(path)
    back, _ = load_model(path, trusted=needed)
    labels, proba = back.predict(back.encode(features))
    np.testing.assert_allclose(proba, model.predict_proba(features), atol=1e-12)
    assert (labels == model.predict(features)).all()


def test_a_file_of_the_first_format_says_to_fit_again(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("schema.json", "{}")
        archive.writestr(NOTE, json.dumps({"format": 1}))
    with pytest.raises(ValueError, match="fit the model again"):
        load_model(path)


def test_other_versions_are_named():
    assert changed_versions({"versions": versions()}) == []
    (words,) = changed_versions({"versions": {**versions(), "numpy": "0.1"}})
    assert words.endswith("(trained with 0.1)")
