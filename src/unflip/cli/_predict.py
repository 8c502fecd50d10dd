"""`unflip predict`: a model's answers beside a table's rows."""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from unflip._files import check_outputs
from unflip.cli._session import session
from unflip.persistence import changed_versions, load_model
from unflip.report import plain
from unflip.tables import (
    add_columns,
    check_ending,
    check_writable,
    matched,
    read_table,
    write_table,
)


def predict(
    model: Path,
    table: Path,
    out: Path,
    *,
    separator: str | None,
    trust: Sequence[str],
    force: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Load a model, and write a table with its predictions."""
    with session(as_json=as_json, quiet=quiet) as shell:
        check_outputs({"--out": out}, (model, table), force=force)
        check_ending(out)
        pipeline, provenance = load_model(model, trusted=trust)
        changed = changed_versions(provenance)
        if changed:
            warnings.warn(f"other versions than in training: {', '.join(changed)}.", stacklevel=1)
        rows = read_table(table, separator=separator)
        ignored = [provenance["label"], *provenance["set_aside"]]
        check_writable(rows, out)
        features = matched(rows, provenance["columns"], ignored)
        shell.step("predicting")
        predicted = pipeline.predict(features)
        columns: dict[str, Any] = {"predicted": predicted}
        if hasattr(pipeline, "predict_proba"):
            for label, proba in zip(
                pipeline.classes_.tolist(), pipeline.predict_proba(features).T, strict=True
            ):
                columns[f"probability_{label}"] = proba
        write_table(add_columns(rows, columns), out)
        labels, counts = np.unique(predicted, return_counts=True)
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
