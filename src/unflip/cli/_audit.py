"""`unflip audit`: which rows to look at again."""

from pathlib import Path

import polars as pl
from rich.console import JustifyMethod
from rich.table import Table
from rich.text import Text

from unflip._app.tables import TableError, add_columns, check_ending, check_writable, write_table
from unflip._files import check_outputs
from unflip.cli._estimate import say_found
from unflip.cli._options import Method, Source
from unflip.cli._session import session, visible

MOST_SHOWN = 20
MOST_COLUMNS = 4
"""In the terminal: as many rows, and columns of the table itself."""

ADDED = ("row", "p_wrong", "suggested")


def audit(
    source: Source,
    method: Method,
    out: Path | None,
    *,
    top: int | None,
    precision: float | None,
    force: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Rank rows by the probability that their label is wrong; write them, or print the first."""
    with session(as_json=as_json, quiet=quiet) as shell:
        if top is not None and precision is not None:
            raise ValueError("give --top or --precision, not both.")
        if precision is not None and not 0 < precision <= 1:
            raise ValueError(f"--precision {precision}: expected a share above 0, and at most 1.")
        check_outputs({"--out": out}, (source.table,), force=force)
        if out is not None:
            check_ending(out)
        learn = method.learner(source, shell.step)
        data = source.read()
        if out is not None:
            _check_free_names(data.whole)
            check_writable(data.whole, out)
        learnt = learn(data)
        shell.step("ranking the rows")
        found, audit = learnt.found, learnt.audit()
        chosen = audit.issues(precision=precision, n=top)
        columns = {
            "row": chosen,
            "p_wrong": audit.mislabel_proba_[chosen],
            "suggested": audit.suggested_label_[chosen],
        }
        if out is not None:
            table = add_columns(data.whole[chosen], columns)
            write_table(table.select(*ADDED, *data.whole.columns), out)
        first = {name: values.tolist() for name, values in columns.items()}
        first["label"] = data.y[chosen].tolist()
        shell.result(
            {
                "table": None if out is None else str(out),
                "n_rows": chosen.size,
                "expected_wrong": float(columns["p_wrong"].sum()),
                "rows": [
                    dict(zip(first, values, strict=True))
                    for values in zip(*first.values(), strict=True)
                ],
                "summary": found,
            }
        )
        say_found(shell, found)
        shell.say()
        shell.say(
            f"{chosen.size:,} rows to look at, of which {columns['p_wrong'].sum():,.0f} are "
            "expected to be labelled wrongly."
        )
        if out is None and chosen.size:
            shown = pl.DataFrame({**columns, data.label: data.y[chosen]})[:MOST_SHOWN]
            beside = [name for name in data.whole.columns if name not in shown.columns]
            beside.sort(key=lambda name: name != source.identifier)
            beside = beside[:MOST_COLUMNS]
            shown = shown.hstack(data.whole[chosen[:MOST_SHOWN]].select(beside))
            shell.console.print(_terminal_table(shown))
            if chosen.size > MOST_SHOWN:
                shell.say(f"The first {MOST_SHOWN} are shown: --out audit.csv writes them all.")
        shell.written(out)


def _check_free_names(table: pl.DataFrame) -> None:
    """Refuse before long work a table that has a column of an added one's name."""
    taken = [name for name in ADDED if name in table.columns]
    if taken:
        raise TableError(
            f"the table has a column {taken[0]!r}, and the audit adds one of that name: rename it."
        )


def _terminal_table(table: pl.DataFrame) -> Table:
    shown = Table(title_justify="left")
    for name, kind in table.schema.items():
        side: JustifyMethod = "right" if kind.is_numeric() else "left"
        shown.add_column(Text(visible(name)), justify=side, max_width=28)
    for row in table.iter_rows():
        shown.add_row(
            *(
                Text(f"{value:.2f}" if name == "p_wrong" else _shown(value))
                for name, value in zip(table.columns, row, strict=True)
            )
        )
    return shown


def _shown(value: object) -> str:
    return "" if value is None else visible(str(value))
