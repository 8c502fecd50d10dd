"""A damaged file is refused in one line, or works as it did."""

import copy
import io
import json
import random
import zipfile

import numpy as np
import polars as pl
import pytest

from tests.security.hostile import NOTE, archive, array, constant, dict_of, list_of, node, saved
from unflip._app.persistence import load_model, save_model, unsound_types


@pytest.fixture(scope="module")
def table(rows, tmp_path_factory):
    path = tmp_path_factory.mktemp("tables") / "rows.csv"
    rows.drop("y").head(5).write_csv(path)
    return path


@pytest.fixture
def survives(predict, canary, tmp_path, table):
    """Return what checks that a file is refused in one line or accepted, and which of the two."""

    def check(data):
        result = predict(data, rows=table)
        out = tmp_path / "here" / "out.csv"
        assert result.code in (0, 2), result
        assert out.exists() == (result.code == 0)
        assert [path.name for path in canary.iterdir()] == ["file"]
        if result.code == 2:
            assert result.stderr.startswith("error: ")
            assert result.stderr.count("\n") == 1
            assert not result.stdout
        out.unlink(missing_ok=True)
        return result.code == 0

    return check


@pytest.mark.parametrize("estimator", ["logistic", "boosting", "svm"])
def test_a_file_that_is_whole_is_accepted(survives, genuine, estimator):
    assert survives(genuine[estimator])


def test_bytes_that_are_missing_are_noticed(refused, genuine):
    data = genuine["logistic"]
    for size in (0, 1, 21, 22, 100, len(data) // 2, len(data) - 23, len(data) - 1):
        assert "is not a model file of unflip" in refused(data[:size])
    refused(data[1000:])


@pytest.mark.parametrize("seed", range(12))
def test_bits_that_are_flipped_are_noticed_or_do_not_matter(survives, genuine, seed):
    rng = random.Random(seed)  # noqa: S311
    data = bytearray(genuine["logistic"])
    # where members and the directory begin, there is more than compressed bytes
    heads = [k for k in range(len(data)) if data[k : k + 2] == b"PK"]
    place = rng.choice(
        [rng.randrange(len(data)), min(rng.choice(heads) + rng.randrange(60), len(data) - 1)]
    )
    data[place] ^= 1 << rng.randrange(8)
    survives(bytes(data))


def mutated(schema, rng):
    """Return a schema in which something has another value."""
    schema = copy.deepcopy(schema)
    places = []

    def walk(value):
        keys = value if isinstance(value, dict) else range(len(value))
        for key in keys:
            places.append((value, key))
            if isinstance(value[key], (dict, list)):
                walk(value[key])

    walk(schema)
    others = [None, 0, -1, 1.5, True, "", "x", [], {}, "NaN", "[]", "{}", '"rbf"', "1e999"]
    for _ in range(rng.choice([1, 1, 1, 3])):
        container, key = rng.choice(places)
        way = rng.randrange(3)
        if way == 0:
            container[key] = rng.choice(others)
        elif way == 1:
            other, name = rng.choice(places)
            container[key] = copy.deepcopy(other[name])
        elif isinstance(container, dict):
            container.pop(key, None)
        else:
            container[key] = rng.choice(others)
    return schema


def with_schema(data, change):
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        members = {name: file.read(name) for name in file.namelist()}
    schema = change(json.loads(members.pop("schema.json")))
    note = members.pop("unflip.json").decode()
    return archive(schema, members, note=note)


@pytest.mark.parametrize(
    "seed", [*range(15), *(pytest.param(k, marks=pytest.mark.slow) for k in range(15, 1000))]
)
def test_values_that_are_not_what_they_should_be_are_noticed_or_do_not_matter(
    survives, genuine, seed
):
    rng = random.Random(seed)  # noqa: S311
    data = genuine[rng.choice(sorted(genuine))]
    survives(with_schema(data, lambda schema: mutated(schema, rng)))


@pytest.mark.parametrize(
    "note",
    [
        None,
        "",
        "no json",
        "[]",
        "{}",
        "null",
        "1e999",
        "NaN",
        '"a"',
        '{"format": 1}',
        {**NOTE, "format": "1"},
        {**NOTE, "format": 1.0},
        {**NOTE, "format": True},
        {**NOTE, "format": 2},
        {**NOTE, "format": 10**30},
        {**NOTE, "format": None},
        {**NOTE, "format": [1]},
        {**NOTE, "label": None},
        {**NOTE, "label": 3},
        {**NOTE, "label": ["y"]},
        {**NOTE, "columns": None},
        {**NOTE, "columns": ["x"]},
        {**NOTE, "columns": {"x": None}},
        {**NOTE, "columns": {"x": 3}},
        {**NOTE, "set_aside": None},
        {**NOTE, "set_aside": "x"},
        {**NOTE, "set_aside": [1]},
        {**NOTE, "versions": None},
        {**NOTE, "versions": []},
        {**NOTE, "versions": {"numpy": 2}},
        {**NOTE, "versions": {"numpy": "2\n"}},
    ],
)
def test_a_note_of_the_wrong_kind_is_refused(refused, note):
    refused(archive(constant(1), note=note))


@pytest.mark.parametrize(
    "schema",
    [
        None,
        "",
        "[]",
        "null",
        "1e999",
        "{",
        '{"protocol": 2}',
        '{"__id__": 1, "protocol": 2}',
        node("ObjectNode", "sklearn.pipeline.Pipeline", content=[]),
        node("ObjectNode", "sklearn.pipeline.Pipeline", content="steps"),
        node("ListNode", "builtins.list"),
        node("ListNode", "builtins.list", content={}),
        node("ListNode", "builtins.list", content="ab"),
        node("ListNode", "builtins.list", content=[1]),
        node("ListNode", "builtins.list", content=[None]),
        node("DictNode", "builtins.dict", content=[], key_types=list_of()),
        node("DictNode", "builtins.dict", content={}),
        node("JsonNode", "builtins.str", content=3),
        node("JsonNode", "builtins.str", content="no json"),
        node("JsonNode", "builtins.str", content="9" * 5000),
        node("NdArrayNode", "numpy.ndarray"),
        node("NdArrayNode", "numpy.ndarray", type="numpy"),
        node("NdArrayNode", "numpy.ndarray", type="numpy", file=3),
        node("NdArrayNode", "numpy.ndarray", type="other", content=[], shape=constant(1)),
        node("NdArrayNode", "numpy.ndarray", type="json", content=[], shape=constant(1)),
        node("LossNode", "sklearn._loss._loss.CyHalfBinomialLoss"),
        node("LossNode", "sklearn._loss._loss.CyHalfBinomialLoss", __reduce__=[], content={}),
        node("RandomGeneratorNode", "numpy.random._generator.Generator", content={}),
        node("NoNode", "builtins.list", content=[]),
        node("CachedNode", "builtins.list", __id__=1),
        {**list_of(), "__class__": None},
        {**list_of(), "__module__": 3},
        {**list_of(), "__loader__": ["ListNode"]},
        {**list_of(), "__id__": "a"},
        {**list_of(), "__id__": [1]},
        {**list_of(), "__id__": True},
        {**list_of(), "__id__": -1},
        {**list_of({"__id__": 1}), "__id__": 1},
        {**list_of({**list_of(), "__id__": 1}), "__id__": 1},
        list_of({"__id__": 5}, {**list_of(), "__id__": 5}),
        list_of({**constant(1), "__id__": 5}, {**constant(2), "__id__": 5}),
        list_of({**list_of(), "__id__": 5}, {**constant(2), "__id__": 5}),
        list_of({**constant(2), "__id__": 5}, {**list_of(), "__id__": 5}),
        list_of({**list_of(), "__id__": 5}, {**list_of(), "__id__": 5}),
        dict_of(a=array("absent.npy")),
    ],
)
def test_a_schema_of_the_wrong_kind_is_refused(refused, schema):
    refused(archive(schema, {"0.npy": saved(np.zeros(2))}))


@pytest.fixture(scope="module")
def loaded(genuine, tmp_path_factory):
    """Return what loads a genuine model, to be changed by hand."""
    path = tmp_path_factory.mktemp("models") / "model.skops"
    models = {}
    for name, data in genuine.items():
        path.write_bytes(data)
        models[name] = load_model(path)
    return lambda name: copy.deepcopy(models[name])


def tree(model):
    return model[-1].estimator_._predictors[0][0].nodes


def vectors(model):
    return model[-1].estimator_[-1]


def part(model, kind):
    """Return the fitted transformer of a kind that `predict` uses."""
    steps = [step for _, step in model[0][0].vectorizer_._pipeline.steps]
    found = [one for step in steps for one in getattr(step, "transformers_", {}).values()]
    found += [one.vectorizer_ for one in found if hasattr(one, "vectorizer_")]
    return next(one for one in found if type(one).__name__ == kind)


def set_to(get, name, value):
    return lambda model: setattr(get(model), name, value)


def fill(get, field, value):
    def change(model):
        get(model)[field] = value

    return change


def encoder(model):
    return part(model, "OneHotEncoder")


def words(model):
    return part(model, "TfidfVectorizer")


ASTRAY = {
    "child outside": ("boosting", fill(tree, "left", 10**6)),
    "child before": ("boosting", fill(tree, "right", 0)),
    "column outside": ("boosting", fill(tree, "feature_idx", 10**6)),
    "column before": ("boosting", fill(tree, "feature_idx", -1)),
    "bit set": ("boosting", fill(tree, "is_categorical", 1)),
    "trees": ("boosting", lambda m: setattr(m[-1].estimator_, "n_trees_per_iteration_", 10**9)),
    "no nodes": (
        "boosting",
        lambda m: setattr(m[-1].estimator_._predictors[0][0], "nodes", tree(m)[:0]),
    ),
    "support": ("svm", set_to(vectors, "_n_support", np.array([10**6, 0], dtype=np.int32))),
    "negative support": ("svm", set_to(vectors, "_n_support", np.array([-5, 5], dtype=np.int32))),
    "coefficients": ("svm", set_to(vectors, "_dual_coef_", np.zeros((1, 1)))),
    "intercept": ("svm", set_to(vectors, "_intercept_", np.zeros(0))),
    "indices": ("svm", set_to(vectors, "support_", np.zeros(1, dtype=np.int32))),
    "kernel": ("svm", set_to(vectors, "kernel", "precomputed")),
    "method": ("svm", set_to(vectors, "predict", 1)),
    "implementation": ("svm", set_to(vectors, "_impl", "one_class")),
    "widths": ("logistic", set_to(encoder, "_n_features_outs", [1])),
    "dropped": (
        "logistic",
        set_to(encoder, "_drop_idx_after_grouping", np.array([99], dtype=object)),
    ),
    "order": ("logistic", set_to(encoder, "categories_", [np.array([3.0, 2.0, 1.0])])),
    "vocabulary": ("logistic", lambda m: words(m).vocabulary_.update({"late": 10**8})),
    "names of files": ("logistic", set_to(words, "input", "filename")),
}


@pytest.mark.parametrize("name", ASTRAY)
def test_indices_that_lead_elsewhere_are_found(loaded, name):
    estimator, change = ASTRAY[name]
    model, _ = loaded(estimator)
    assert unsound_types(model) == []
    change(model)
    assert len(unsound_types(model)) == 1


@pytest.mark.parametrize("name", ["child outside", "support", "vocabulary"])
def test_indices_that_lead_elsewhere_are_refused(refused, loaded, table, tmp_path, name):
    estimator, change = ASTRAY[name]
    model, provenance = loaded(estimator)
    change(model)
    path = tmp_path / "changed.skops"
    (needed,) = save_model(path, model, provenance)
    said = refused(path.read_bytes(), rows=table)
    assert f"asks for types that unflip does not trust: {needed}." in said


@pytest.mark.parametrize(
    ("attribute", "value", "words"),
    [
        ("coef_", np.zeros((7, 3)), "cannot predict these rows: ValueError: "),
        ("classes_", np.array([None, None], dtype=object), "expected one label"),
    ],
)
def test_a_model_that_cannot_predict_says_so_in_one_line(
    refused, loaded, table, tmp_path, attribute, value, words
):
    model, provenance = loaded("logistic")
    setattr(model[-1].estimator_[-1], attribute, value)
    path = tmp_path / "changed.skops"
    save_model(path, model, provenance)
    assert words in refused(path.read_bytes(), rows=table)


def test_a_table_that_is_in_order_is_still_predicted(predict, genuine, table, tmp_path):
    assert predict(genuine["boosting"], rows=table).code == 0
    assert pl.read_csv(tmp_path / "here" / "out.csv").height == 5
