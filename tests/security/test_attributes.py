"""Parameters and attributes that could do harm in files of the first format do nothing now."""

import io
import json
import subprocess
import sys
import zipfile
from contextlib import contextmanager

import numpy as np
import polars as pl
import pytest
import skops.io
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

from unflip import NoiseRates
from unflip._app.persistence import NOTE, load_model, save_model
from unflip._app.persistence._archive import OTHER, as_npy
from unflip._app.tables import kind_of, split_label
from unflip._app.workflow import learn, make_estimator

WATCHED = """
import sys
from pathlib import Path
import polars as pl
from unflip._app.persistence import load_model

rows, paths, seen = pl.read_csv(sys.argv[1]), [*map(Path, sys.argv[2:])], []

def predicted(path):
    model, _ = load_model(path)
    return model.predict(model.encode(rows))[1].tobytes().hex()

def hook(event, arguments):
    if event in ("open", "os.fork", "os.posix_spawn", "subprocess.Popen"):
        seen.append(f"{event} {arguments[0]}")

print(predicted(paths[0]))  # imports modules
sys.addaudithook(hook)
for path in paths[1:]:
    seen.clear()
    print(predicted(path))
    assert set(seen) == {f"open {path}"}, seen
"""


@pytest.fixture(scope="module")
def genuine(tmp_path_factory):
    """Return model files by the kind of their classifier."""
    rng = np.random.default_rng(0)
    y = np.arange(150) % 2
    words = np.array(["late angry refund", "fine good thanks"])[y]
    rows = pl.DataFrame(
        {
            "x": [None, *rng.normal(2 * y, 1)[1:]],
            "plan": rng.choice(["a", "b", "c"], 150),
            "note": [f"{text} {k}" for k, text in enumerate(words)],
            "y": y,
        }
    )
    data, files = split_label(rows, "y"), {}
    columns = {name: kind_of(data.features[name]) for name in data.features.columns}
    for kind in ("logistic", "boosting"):
        learnt = learn(data, estimator=make_estimator(kind), rates=NoiseRates(0.01, 0.01))
        path = tmp_path_factory.mktemp("models") / kind
        save_model(path, learnt.model, {"label": "y", "columns": columns, "set_aside": []})
        files[kind] = path
    return files


@contextmanager
def members_of(path, out):
    """Yield the members of a file, to be changed and written to another one."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    note = json.loads(members[NOTE])
    yield note, members
    members[NOTE] = json.dumps(note).encode()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def array(content):
    return np.load(io.BytesIO(content))


PARAMETERS = [
    {"input": "filename"},
    {"analyzer": "word", "token_pattern": "(a+)+$"},
    {"n_jobs": 16},
    {"_n_features_outs": [10**6], "fill_value": "/etc/passwd"},
    {"_preprocessor": {"kind": "category"}, "strategy": "constant"},
]


def test_parameters_in_a_file_change_nothing(genuine, tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("late angry refund")
    notes = ["fine good thanks", str(secret), "a" * 41 + "!"]
    table = pl.DataFrame({"x": [1.0, None, 3.0], "plan": ["a", str(secret), "?"], "note": notes})
    table.write_csv(tmp_path / "table.csv")
    paths = [genuine["logistic"]]
    for k, parameters in enumerate(PARAMETERS):
        paths.append(tmp_path / f"{k}.unflip")
        with members_of(genuine["logistic"], paths[-1]) as (note, _):
            for state in (note, note["model"], *note["model"]["columns"]):
                state.update(parameters)
            note["model"]["classifier"].update(parameters)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", WATCHED, tmp_path / "table.csv", *paths],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    as_it_is, *others = done.stdout.split()
    assert others == [as_it_is] * len(PARAMETERS)


def more_categories(note, members):
    column = next(each for each in note["model"]["columns"] if each["kind"] == "category")
    column["values"] += [f"more {k}" for k in range(10)]


def columns_beyond_the_row(note, members):
    feature = array(members["classifier_feature.npy"])
    members["classifier_feature.npy"] = as_npy(feature + 1000)


def nodes_beyond_the_tree(note, members):
    left = array(members["classifier_left.npy"])
    members["classifier_left.npy"] = as_npy(np.where(left == 1, 10**6, left).astype(np.int32))


def fewer_components(note, members):
    name = next(name for name in members if name.endswith("_components.npy"))
    members[name] = as_npy(array(members[name])[:, :-1])


@pytest.mark.parametrize(
    "change",
    [more_categories, columns_beyond_the_row, nodes_beyond_the_tree, fewer_components],
)
def test_arrays_of_other_sizes_than_the_columns_imply_are_refused(genuine, tmp_path, change):
    with members_of(genuine["boosting"], tmp_path / "changed") as (note, members):
        change(note, members)
    with pytest.raises(ValueError, match="not a model file of unflip, or it is damaged"):
        load_model(tmp_path / "changed")


def of_texts(parameter, value):
    texts = make_pipeline(TfidfVectorizer(), LogisticRegression())
    texts.fit(["late angry refund", "fine good thanks"], [0, 1])[0].set_params(**{parameter: value})
    return texts


def opens_files():
    return of_texts("input", "filename")


def starts_processes():
    forest = RandomForestClassifier(2, random_state=0).fit([[0.0], [1.0]], [0, 1])
    return forest.set_params(n_jobs=16)


def writes_beyond_its_matrix():
    categories = make_pipeline(OneHotEncoder(), LogisticRegression()).fit([["a"], ["b"]], [0, 1])
    categories[0]._n_features_outs = np.array([10**6])
    return categories


def reads_beyond_its_rows():
    boosting = HistGradientBoostingClassifier().fit([[0.0], [1.0]] * 20, [0, 1] * 20)
    boosting._preprocessor = FunctionTransformer()
    return boosting


def never_ends():
    return of_texts("token_pattern", "(a+)+$")


OBJECTS = [
    opens_files,
    starts_processes,
    writes_beyond_its_matrix,
    reads_beyond_its_rows,
    never_ends,
]


@pytest.mark.parametrize("make", OBJECTS)
@pytest.mark.parametrize("stated", [["sklearn.dummy.DummyClassifier"], ["sklearn.pipeline.Steps"]])
def test_an_object_is_refused_by_its_own_type_whatever_the_file_states(
    genuine, tmp_path, make, stated
):
    with members_of(genuine["logistic"], tmp_path / "changed") as (note, members):
        for name in [name for name in members if name.startswith("classifier_")]:
            del members[name]
        members[OTHER] = skops.io.dumps(make())
        note["model"]["classifier"] = {"kind": "other", "types": stated}
    for trusted in ([], stated):
        with pytest.raises(ValueError, match="--trust sklearn") as error:
            load_model(tmp_path / "changed", trusted=trusted)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize("make", OBJECTS)
def test_an_object_of_the_first_format_is_not_read(tmp_path, monkeypatch, make):
    data = skops.io.dumps(make())
    for name in ("loads", "load", "get_untrusted_types"):
        monkeypatch.setattr(f"skops.io.{name}", lambda *_, **__: pytest.fail("was read"))
    path = tmp_path / "model.unflip"
    path.write_bytes(data)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(NOTE, json.dumps({"format": 1, "label": "y", "versions": {}}))
    with pytest.raises(ValueError, match="fit the model again") as error:
        load_model(path)
    assert "\n" not in str(error.value)
