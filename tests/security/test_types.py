"""The list of what may be loaded is what `unflip fit` writes: all of it, and no more."""

import importlib
import io
import json
import warnings
import zipfile
from datetime import date, datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import sklearn
import skops.io

from tests.security.hostile import SPECIAL
from unflip import CheckedLabels, LabelNoiseWarning
from unflip._app.persistence import CHILDREN, TYPES, Survey, share
from unflip._app.tables import split_label
from unflip._app.workflow import ESTIMATORS, learn, make_estimator, parse_rates
from unflip._compat import LOSSES_MODULE

HARMLESS = {
    "sklearn.base.BaseEstimator.__setstate__",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor.__setstate__",
    f"{LOSSES_MODULE}.CyLossFunction.__reduce__",
    f"{LOSSES_MODULE}.CyHalfMultinomialLoss.__reduce__",
    f"{LOSSES_MODULE}.CyHalfMultinomialLoss.__setstate__",
    f"{LOSSES_MODULE}.CyHalfBinomialLoss.__new__",
    f"{LOSSES_MODULE}.CyHalfMultinomialLoss.__new__",
    "unflip.noise.TransitionMatrix.__reduce__",
}
"""What of the classes on the list was read, and found to do no more than `_types` says."""


def table(n_rows=150, n_classes=2, columns=None, seed=0):
    """Return a table of columns of every kind, and labels that can be told from some."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n_rows)
    days = [date(2020, 1, 1) + timedelta(days=int(k)) for k in rng.integers(0, 1500, n_rows)]
    moments = [datetime(2020, 1, 1, 5) + timedelta(minutes=int(k)) for k in range(n_rows)]
    names = [f"name {k} of {v}" for k, v in enumerate(rng.integers(0, 9, n_rows))]
    few = pl.Series(rng.choice(["p", "q"], n_rows))
    kinds = {
        "float": rng.normal(3 * y, 1),
        "integer": rng.poisson(2 + 4 * y),
        "float32": pl.Series(rng.normal(size=n_rows), dtype=pl.Float32),
        "uint8": pl.Series(rng.integers(0, 5, n_rows), dtype=pl.UInt8),
        "boolean": rng.random(n_rows) < 0.4,
        "decimal": pl.Series(rng.integers(0, 50, n_rows)).cast(pl.Decimal(10, 2)),
        "word": rng.choice(["a", "b", "c"], n_rows),
        "text": names,
        "number as text": [str(k) for k in range(n_rows)],
        "day": days,
        "day as text": [str(day) for day in days],
        "moment": moments,
        "moment there": pl.Series(moments).dt.replace_time_zone("Asia/Tokyo"),
        "duration": [timedelta(seconds=int(k)) for k in rng.integers(0, 10**6, n_rows)],
        "time": [datetime.min.time().replace(hour=int(k)) for k in rng.integers(0, 24, n_rows)],
        "categorical": few.cast(pl.Categorical),
        "many categories": pl.Series(names).cast(pl.Categorical),
        "enum": few.cast(pl.Enum(["p", "q"])),
        "constant": ["z"] * n_rows,
        "constant number": [1.0] * n_rows,
        "nothing": pl.Series([None] * n_rows, dtype=pl.Null),
        "no text": pl.Series([None] * n_rows, dtype=pl.String),
    }
    gaps = pl.Series(rng.random(n_rows) < 0.1)
    frame = pl.DataFrame({name: kinds[name] for name in columns or kinds})
    holes = [
        pl.when(~gaps).then(pl.col(name)).alias(f"{name} with gaps")
        for name in ("float", "word", "text", "day", "boolean")
        if name in frame.columns
    ]
    y = np.where(rng.random(n_rows) < 0.1, rng.integers(0, n_classes, n_rows), y)
    return split_label(frame.with_columns(holes).with_columns(pl.Series("y", y)), "y")


def curved(n_rows, n_classes):
    """Return labels that trees can tell, and a smooth function cannot."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 4, (n_rows, 3))
    y = (np.floor(X[:, 0]) + np.floor(X[:, 1])).astype(int) % n_classes
    y = np.where(rng.random(n_rows) < 0.1, rng.integers(0, n_classes, n_rows), y)
    frame = pl.DataFrame({f"x{k}": X[:, k] for k in range(3)})
    return split_label(frame.with_columns(pl.Series("y", y)), "y")


NUMBERS = ("float", "integer")


def types_of(data, estimator="logistic", rates=None, **options):
    known = None if rates is None else parse_rates(rates)
    model = learn(data, estimator=make_estimator(estimator), rates=known, **options).model
    with zipfile.ZipFile(io.BytesIO(skops.io.dumps(model))) as archive:
        schema = json.loads(archive.read("schema.json"))
    survey = Survey()
    survey.visit(share(schema))
    return survey.types


ON_THE_LIST = {(loader, name) for loader, names in TYPES.items() for name in names}


def test_the_list_is_what_fitting_writes_all_of_it_and_no_more():
    few = table(columns=NUMBERS)
    written = types_of(table(60), rates="0.1,0.1")
    written |= types_of(few, "svm") | types_of(few, "boosting", rates="?,0.1")
    with warnings.catch_warnings():
        # few rows of three classes tell little, and the channel is refuted, as is wanted
        warnings.simplefilter("ignore", LabelNoiseWarning)
        written |= types_of(table(90, n_classes=3, columns=NUMBERS), "boosting")
        written |= types_of(curved(600, n_classes=2)) | types_of(curved(600, n_classes=3))
    # boosting keeps no encoder of its labels before scikit-learn 1.7
    later = {("ObjectNode", "sklearn.preprocessing._label.LabelEncoder")}
    assert written == ON_THE_LIST - (later if sklearn.__version__ < "1.7" else set())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")  # about rates that these rows do not tell
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_nothing_else_is_written_whatever_is_fitted(estimator):
    written = set()
    for n_classes in (2, 3, 5):
        written |= types_of(table(600, n_classes=n_classes), estimator)
    few = table(columns=NUMBERS)
    for rates in ("0,0", "0.1,0.1", "?,0.1", "0.05,?", "0.02:0.3,0.1", "0:0.2,0:0.2", "?,?"):
        written |= types_of(few, estimator, rates)
    for n_rows in (30, 3000, 25_000):
        for n_classes in (2, 3):
            written |= types_of(table(n_rows, n_classes, NUMBERS), estimator)
    written |= types_of(few, estimator, reviewed=CheckedLabels([0, 5], [1, 0]))
    for name in table().features.columns:
        if name not in NUMBERS:
            wanted = (*NUMBERS, name.removesuffix(" with gaps"))
            written |= types_of(table(columns=wanted), estimator, "0.1,0.1")
    assert written <= ON_THE_LIST


def test_no_class_on_the_list_does_anything_when_it_is_made_but_what_was_read():
    made = {"ObjectNode", "LossNode", "ConstructorFromReduceNode"}
    done = set()
    for loader, name in ON_THE_LIST:
        if loader not in made:
            continue
        module, _, cls = name.rpartition(".")
        kind = getattr(importlib.import_module(module), cls)
        for special in (*SPECIAL, "__new__", "__getattr__", "__getattribute__"):
            owner = next((base for base in kind.__mro__ if special in vars(base)), object)
            if owner is not object:
                done.add(f"{owner.__module__}.{owner.__qualname__}.{special}")
    assert done == HARMLESS


def test_functions_on_the_list_are_looked_up_and_never_called():
    functions = TYPES["FunctionNode"]
    for loader in CHILDREN:
        if loader != "FunctionNode":
            assert not functions & TYPES.get(loader, frozenset())


def test_the_module_of_losses_is_scikit_learns_whatever_a_file_is_called(tmp_path, monkeypatch):
    (tmp_path / "_loss.py").write_text("raise SystemExit('a file was imported')")
    monkeypatch.syspath_prepend(tmp_path)
    losses = importlib.import_module(LOSSES_MODULE)
    assert Path(losses.__file__).parent == Path(sklearn.__file__).parent / "_loss"
