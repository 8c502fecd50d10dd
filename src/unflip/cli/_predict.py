"""`unflip predict`: add a model's predictions to a table."""

import warnings
from pathlib import Path
from typing import Annotated

import numpy as np
import polars as pl
import typer

from unflip._app.markup import plain
from unflip._app.persistence import Model, ModelFileError, changed_versions, load_model
from unflip._app.table_files import check_ending, check_writable, for_format, read_file, write_table
from unflip._app.tables import add_columns, matched
from unflip._utils.files import check_outputs
from unflip._utils.progress import tick, work
from unflip._utils.typing import Floats, Record
from unflip.cli import _options as options
from unflip.cli._session import session


def predict(
    model: Annotated[Path, typer.Argument(help="File written by `unflip fit`.")],
    table: options.TableFile,
    out: Annotated[Path, typer.Option(help="File to write the table with predictions to.")],
    separator: options.Separator = None,
    encoding: options.Encoding = None,
    trust: Annotated[
        list[str] | None,
        typer.Option(
            help="Package, such as lightgbm, or type that the model may load, which can run code. "
            "Not needed for logistic, boosting and svm. Repeatable."
        ),
    ] = None,
    force: options.Force = False,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Add predictions of the true label, with probabilities, to a table."""
    with session(as_json=as_json, quiet=quiet) as shell:
        check_outputs({"--out": out}, (model, table), force=force)
        check_ending(out)
        pipeline, provenance = load_model(model, trusted=trust or ())
        changed = changed_versions(provenance)
        if changed and trust:  # unflip's own models do not depend on versions
            warnings.warn(f"versions differ from training: {', '.join(changed)}.", stacklevel=1)
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


def _predictions(model: Model, features: pl.DataFrame) -> Record:
    """Return the columns to add; rows are encoded in blocks, to save memory."""
    model.encoder.warn_of_strangers(features)
    starts = range(0, features.height, model.block_rows)
    blocks = []
    with work(len(starts)):
        for start in starts:
            rows = model.encode(features.slice(start, model.block_rows))
            blocks.append(_predicted(model, rows))
            tick()
    return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}


def _predicted(model: Model, rows: Floats) -> Record:
    """Return labels, and probabilities if the model has them."""
    labels, proba = model.predict(rows)
    n_classes = model.classes.size
    if labels.shape != (len(rows),) or (
        proba is not None and proba.shape != (len(rows), n_classes)
    ):
        raise TypeError("expected one label and one probability of each class for every row")
    columns = {"predicted": labels}
    if proba is not None:
        for label, column in zip(model.classes.tolist(), proba.T, strict=True):
            columns[f"probability_{label}"] = column
    return columns
