"""`unflip audit`: the rows that are probably mislabelled."""

from pathlib import Path
from typing import Annotated

import numpy as np
import polars as pl
import typer
from rich.console import JustifyMethod
from rich.table import Table
from rich.text import Text

from unflip._app.reviewed import read_reviewed
from unflip._app.table_files import TableError, check_ending, check_writable, write_table
from unflip._app.tables import add_columns
from unflip._app.words import is_meaningless
from unflip._utils.files import check_outputs
from unflip._utils.typing import Array, Record
from unflip.audit import LabelAudit
from unflip.cli import _options as options
from unflip.cli._estimate import say_checked, say_found
from unflip.cli._session import session, visible

MOST_SHOWN = 20
"""Maximum number of rows shown in the terminal."""

MOST_FEATURES = 4
"""Maximum number of the table's own columns shown in the terminal."""

ADDED = ("row", "p_wrong", "suggested")
"""Columns that the audit adds to the table."""

NONE = "p_none"
"""Another one, if some rows may belong to no class."""


def audit(
    source: options.Source,
    method: options.Method,
    out: Annotated[
        Path | None, typer.Option(help="File to write the suspicious rows to, such as audit.csv.")
    ] = None,
    top: Annotated[int | None, typer.Option(min=1, help="Number of rows to list.")] = None,
    precision: Annotated[
        float | None,
        typer.Option(
            help="List as many rows as possible such that this share of them is expected to be "
            "wrong, such as 0.9."
        ),
    ] = None,
    proba: options.Proba = None,
    reviewed: options.Reviewed = None,
    force: options.Force = False,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """List the rows whose labels are probably wrong, with suggested labels.

    Without --top and --precision, the list is as long as the expected number of errors. With
    --proba, the column p_none is the probability that a row belongs to no class.
    """
    with session(as_json=as_json, quiet=quiet) as shell:
        _check_wanted(top, precision)
        check_outputs({"--out": out}, (source.table, reviewed), force=force)
        if out is not None:
            check_ending(out)
        learn = method.auditor(source, shell.step, proba)
        data = source.read(check_columns=proba is None)
        if out is not None:
            _check_free_names(data.whole)
            check_writable(data.for_format(out), out)
        checked = None if reviewed is None else read_reviewed(reviewed, data)
        audited = learn(data, reviewed=checked)
        shell.step("ranking the rows")
        if top is None and precision is None and not len(audited.reviewed):
            # with a copy of the label among the columns, no row is suspicious
            top = 0 if is_meaningless(audited.found) else round(audited.found["expected_errors"])
        chosen, columns = _ranked(audited.audit(), top, precision, audited.reviewed.rows)
        if out is not None:
            listed = add_columns(data.for_format(out)[chosen], columns)
            write_table(listed[[*columns, *data.whole.columns]], out)
        shell.result(_as_json(out, columns, data.y[chosen], audited.found))
        say_found(shell, audited.found)
        say_checked(shell, audited.found)
        if chosen.size or not is_meaningless(audited.found):
            shell.say()
            shell.say(_to_look_at(chosen.size, columns["p_wrong"].sum()))
        if out is None and chosen.size:
            shown = pl.DataFrame({**columns, data.label: data.y[chosen]})[:MOST_SHOWN]
            shown = _beside_features(shown, data.cells[chosen[:MOST_SHOWN]], source.identifier)
            shell.console.print(_terminal_table(shown))
            if chosen.size > MOST_SHOWN:
                shell.say(f"The first {MOST_SHOWN} rows are shown; --out audit.csv writes all.")
        shell.written(out)


def _to_look_at(n_rows: int, n_wrong: float) -> str:
    if not n_rows:
        return "No row is expected to be mislabelled. List the most suspicious ones with --top 20."
    return f"{n_rows:,} rows to check; about {n_wrong:,.0f} of them are expected to be mislabelled."


def _check_wanted(top: int | None, precision: float | None) -> None:
    """Raise an error for both --top and --precision, and for a precision outside (0, 1]."""
    if top is not None and precision is not None:
        raise ValueError("give --top or --precision, not both.")
    if precision is not None and not 0 < precision <= 1:
        raise ValueError(f"--precision {precision}: expected a share above 0, and at most 1.")


def _ranked(
    audit: LabelAudit, top: int | None, precision: float | None, reviewed: Array
) -> tuple[Array, dict[str, Array]]:
    """Return the rows to check, most suspicious first, and the columns that the audit adds."""
    wanted = None if top is None else top + reviewed.size
    chosen = audit.issues(precision=precision, n=wanted)
    chosen = chosen[~np.isin(chosen, reviewed)][:top]  # these were checked already
    p_wrong = audit.mislabel_proba_[chosen].round(4)  # no more digits are known
    suggested = audit.suggested_label_[chosen]
    columns = dict(zip(ADDED, (chosen, p_wrong, suggested), strict=True))
    if not audit.none_proba_.any():
        return chosen, columns
    return chosen, {**columns, NONE: audit.none_proba_[chosen].round(4)}


def _as_json(out: Path | None, columns: dict[str, Array], labels: Array, found: Record) -> Record:
    """Return the result for --json, one object a row."""
    lists = {name: values.tolist() for name, values in {**columns, "label": labels}.items()}
    rows = [dict(zip(lists, values, strict=True)) for values in zip(*lists.values(), strict=True)]
    return {
        "table": None if out is None else str(out),
        "n_rows": labels.size,
        "expected_wrong": float(columns["p_wrong"].sum()),
        "rows": rows,
        "summary": found,
    }


def _check_free_names(table: pl.DataFrame) -> None:
    """Raise an error, before the long work, if the table has a column of an added name."""
    taken = [name for name in (*ADDED, NONE) if name in table.columns]
    if taken:
        raise TableError(
            f"the table has a column {taken[0]!r}, but the audit adds one of that name: rename it."
        )


def _beside_features(
    shown: pl.DataFrame, rows: pl.DataFrame, identifier: str | None
) -> pl.DataFrame:
    """Return the columns, and beside them the table's first ones, the identifier before all."""
    features = [name for name in rows.columns if name not in shown.columns]
    features.sort(key=lambda name: name != identifier)
    return shown.hstack([rows[name] for name in features[:MOST_FEATURES]])


def _terminal_table(table: pl.DataFrame) -> Table:
    shown = Table(title_justify="left")
    for name, kind in table.schema.items():
        side: JustifyMethod = "right" if kind.is_numeric() else "left"
        shown.add_column(Text(visible(name)), justify=side, max_width=28)
    for row in table.iter_rows():
        shown.add_row(
            *(
                Text(f"{value:.2f}" if name in ("p_wrong", NONE) else _shown(value))
                for name, value in zip(table.columns, row, strict=True)
            )
        )
    return shown


def _shown(value: object) -> str:
    return "" if value is None else visible(str(value))
