"""What is odd about a table's rows and columns, told before anything is learnt from them."""

import shlex
from collections.abc import Sequence

import polars as pl

from unflip._app.table_files import unnamed
from unflip._app.tables import LabelledTable, without
from unflip.diagnostics import Diagnostic, named

LEAST_ID_ROWS = 20
"""In fewer rows values differ by chance."""

LONGEST_NAME = 40
"""Characters of a text that may be a name; longer ones are messages."""

DENSE = 3
"""Whole numbers that number rows leave no more than so many times as many out."""

OWN_VALUES = 0.5
"""Share of the rows, each counted once, that a column tells apart: equal rows are then copies, and
not only alike, as rows of a few categories are."""

MOST_NAMED_COLUMNS = 5
"""Columns that are named."""


def notice(data: LabelledTable) -> list[Diagnostic]:
    """Return which columns look like identifiers, and how many rows are copies of others."""
    names = [name for name in data.features.columns if is_identifier(data.features[name])]
    return [*_identifiers(names), *_copies(data, names)]


def is_identifier(column: pl.Series) -> bool:
    """Return whether a column seems to name or to number the rows.

    Every row has a value of its own: words without a blank between, or whole numbers that lie
    close together.
    """
    column = unnamed(column)
    if len(column) < LEAST_ID_ROWS or column.null_count() or column.n_unique() < len(column):
        return False
    kind = column.dtype
    if kind.is_integer():
        low, high = column.min(), column.max()
        return int(high) - int(low) < DENSE * len(column)  # type: ignore[arg-type]
    if kind != pl.String:
        return False
    text = column.str.strip_chars()
    return not (text.str.contains(r"\s") | (text.str.len_chars() > LONGEST_NAME)).any()


def _identifiers(names: Sequence[str]) -> list[Diagnostic]:
    if not names:
        return []
    first, *others = names[:MOST_NAMED_COLUMNS]
    options = [f"--id {shlex.quote(first)}", *(f"--drop {shlex.quote(name)}" for name in others)]
    code = "identifier" if len(names) == 1 else "identifiers"
    numbers = {"columns": named(map(repr, names)), "options": " ".join(options)}
    return [Diagnostic(code, "note", numbers)]


def _copies(data: LabelledTable, names: Sequence[str]) -> list[Diagnostic]:
    """Return how many rows are copies of others, and how many have another label than theirs."""
    # as the file holds them: whole numbers of more than 64 bits lose digits as features
    cells = without(data.cells, [data.label, *data.set_aside, *names])
    # polars takes names such as * and ^x$ for patterns
    cells = cells.rename(dict(zip(cells.columns, map(str, range(cells.width)), strict=True)))
    if not cells.width or cells.height < LEAST_ID_ROWS:
        return []
    repeated = cells.is_duplicated()
    if not repeated.any():
        return []
    most = max(cells[name].n_unique() for name in cells.columns)
    if most < OWN_VALUES * cells.n_unique():
        return []
    rows = cells.with_columns(pl.Series("label", data.y)).with_row_index("row").filter(repeated)
    n_copies = rows.height - rows.drop("row").n_unique()
    groups = rows.group_by(cells.columns, maintain_order=True)
    cases = groups.agg(pl.col("row"), pl.col("label").n_unique()).filter(pl.col("label") > 1)
    found = []
    if n_copies:
        counts = {"n_copies": n_copies, "n_rows": cells.height}
        found.append(Diagnostic("copies", "note", counts))
    if cases.height:
        first = named(str(k) for k in cases["row"][0].to_list())
        numbers = {"n_cases": cases.height, "first": first}
        found.append(Diagnostic("contradicting_copies", "note", numbers))
    return found
