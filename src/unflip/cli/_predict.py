"""`unflip predict`: a model's predictions beside the rows of a table."""

import warnings
from pathlib import Path
from typing import Annotated

import numpy as np
import polars as pl
import typer
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from unflip._app.markup import plain
from unflip._app.persistence import ModelFileError, changed_versions, load_model
from unflip._app.table_files import check_ending, check_writable, for_format, read_file, write_table
from unflip._app.tables import add_columns, matched
from unflip._files import check_outputs
from unflip._progress import tick, work
from unflip._typing import Floats, Record
from unflip.cli import _options as options
from unflip.cli._session import session

BLOCK_ROWS = 20_000
"""Rows that are predicted at a time."""


def predict(
    model: Annotated[Path, typer.Argument(help="File written by `unflip fit`.")],
    table: options.TableFile,
    out: Annotated[Path, typer.Option(help="The table with predictions; its ending tells how.")],
    separator: options.Separator = None,
    encoding: options.Encoding = None,
    trust: Annotated[
        list[str] | None,
        typer.Option(
            help="A type that the model may hold, besides those of logistic, boosting and svm: it "
            "may run code. Repeatable."
        ),
    ] = None,
    force: options.Force = False,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Add the true label's prediction, and its probabilities, to a table."""
    with session(as_json=as_json, quiet=quiet) as shell:
        check_outputs({"--out": out}, (model, table), force=force)
        check_ending(out)
        pipeline, provenance = load_model(model, trusted=trust or ())
        changed = changed_versions(provenance)
        if changed:
            warnings.warn(f"other versions than in training: {', '.join(changed)}.", stacklevel=1)
        read = read_file(table, separator=separator, encoding=encoding)
        ignored = [provenance["label"], *provenance["set_aside"]]
        rows = for_format(read, out)
        check_writable(rows, out)
        features = matched(read.values, provenance["columns"], ignored)
        shell.step("predicting")
        try:
            columns = _predictions(pipeline, features)
        except Exception as error:  # a model from elsewhere may fail in any way
            words = " ".join(str(error).split())[:200]
            raise ModelFileError(
                f"the model in {model} cannot predict these rows: {type(error).__name__}: {words}"
            ) from error
        write_table(add_columns(rows, columns), out)
        labels, counts = np.unique(columns["predicted"], return_counts=True)
        pairs = list(zip(labels.tolist(), counts.tolist(), strict=True))
        shell.result(
            {
                "table": str(out),
                "n_rows": rows.height,
                "columns": list(columns),
                "predicted": [{"label": label, "n_rows": n} for label, n in pairs],
            }
        )
        shares = ", ".join(f"**{plain(str(label))}** {n:,}" for label, n in pairs)
        shell.say(f"Predicted {rows.height:,} rows: {shares}.")
        shell.written(out)


@work((1.0, 1.0))
def _predictions(pipeline: Pipeline, features: pl.DataFrame) -> Record:
    """Return the columns to add, which are made of all rows at once and predicted block by block.

    Of the columns one thing is said, such as what was not seen in training.
    """
    rows, classifier = pipeline[:-1].transform(features), pipeline[-1]
    tick()
    blocks = []
    starts = range(0, features.height, BLOCK_ROWS)
    with work(len(starts)):
        for start in starts:
            blocks.append(_predicted(classifier, rows[start : start + BLOCK_ROWS]))
            tick()
    columns = {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}
    for values in columns.values():
        if values.shape != (features.height,) or values.dtype.hasobject:
            raise TypeError("expected one label and one probability of each class for every row")
    return columns


def _predicted(classifier: BaseEstimator, rows: Floats) -> Record:
    """Return labels, and probabilities where the model has them."""
    columns = {"predicted": classifier.predict(rows)}
    if hasattr(classifier, "predict_proba"):
        probabilities = classifier.predict_proba(rows)
        for label, proba in zip(classifier.classes_.tolist(), probabilities.T, strict=True):
            columns[f"probability_{label}"] = proba.astype(float)
    return columns
