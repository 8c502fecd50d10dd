"""Export of the corrected table, the reviewed labels and the log."""

import csv
import io
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np

from unflip._app.review._agreement import agreement
from unflip._app.review._sampled import Draw
from unflip._app.review._store import Decisions
from unflip._app.review._table import ReviewTable, named_columns
from unflip._app.row_hashes import hash_texts
from unflip._utils.files import check_free, write_whole
from unflip._utils.typing import ArrayLike, Rows
from unflip.checked.internals import UNSURE

EXPORTED_FILES = ("corrected", "reviewed", "log")

LOG_COLUMNS = (
    "number at row id version given action label queue suggested probability matched checker"
)


@dataclass(frozen=True)
class Exported:
    """The files of an export, the numbers of rows, and notes on unmatched decisions."""

    # The table with the corrected labels.
    corrected: Path
    # The rows whose true label is known as `row,label,given,fingerprint`, of which the last two
    # identify the row. Drawn rows come first, unsure ones too, with their `probability`.
    reviewed: Path
    # Every decision and undo in chronological order. Beside it is `disagreements.csv` if more than
    # one checker decided.
    log: Path
    n_changed: int
    n_kept: int
    n_unsure: int
    notes: list[str]


def export(
    table: Rows,
    label: ArrayLike,
    decisions: str | Path,
    out: str | Path,
    *,
    id_column: str | None = None,
) -> Exported:
    """Write the corrected table, the reviewed labels and the log of a review.

    Does not touch the table's own file. Decisions are matched by the cells of their rows; one
    without a match is not applied, with a warning.

    Parameters
    ----------
    table : dataframe, mapping of columns or array of shape (n_rows, n_columns)
        The reviewed table, whose rows may have been reordered, added or removed.
    label : str or array-like of shape (n_rows,)
        The name of its label column, or the labels.
    decisions : str or Path
        The file of decisions.
    out : str or Path
        Folder of `corrected.csv`, `reviewed.csv` and `log.csv`.
    id_column : str, default=None
        A column of row names, for the log and for warnings.

    Returns
    -------
    Exported
        The files, and what is in them.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> from unflip._app.review import Decisions, ReviewTable, export
    >>> table = {"size": [1.0, 2.0, 9.0, 8.0], "y": ["small", "small", "small", "big"]}
    >>> folder = Path(mkdtemp())
    >>> with Decisions(folder / "review.sqlite", ReviewTable(table, "y").fingerprint) as decisions:
    ...     decision = decisions.decide(row=2, version=0, verdict="change", label=0)
    >>> print(export(table, "y", folder / "review.sqlite", folder).corrected.read_text())
    size,y
    1.0,small
    2.0,small
    9.0,big
    8.0,big
    """
    if not Path(decisions).exists():
        raise FileNotFoundError(f"there is no file of decisions {decisions}.")
    review_table = ReviewTable(table, label, id_column=id_column)
    check_export(Path(out))
    with Decisions(Path(decisions), review_table.fingerprint) as store:
        for note in store.notes:
            warnings.warn(note, UserWarning, stacklevel=2)
        return write_export(review_table, store, Path(out))


def check_export(out: Path) -> None:
    """Raise an error if the files cannot be written to the folder."""
    for name in EXPORTED_FILES:
        check_free(out / f"{name}.csv", force=True)


def write_export(table: ReviewTable, store: Decisions, out: Path) -> Exported:
    """Write the three files of an export."""
    current = [decision for _, decision in sorted(store.all().items())]
    known = {d.row: d.label for d in current if d.label is not None}
    files = {
        "corrected": _corrected_table(table, known),
        "reviewed": _reviewed(table, known, store.drawn.counted()),
        "log": _log(table, store),
    }
    paths = {name: out / f"{name}.csv" for name in EXPORTED_FILES}
    for name, text in files.items():
        write_whole(paths[name], text)
    if len(store.checkers()) > 1:
        write_whole(out / "disagreements.csv", _disagreements(table, store))
    verdicts = Counter(decision.verdict for decision in current)
    return Exported(
        **paths,
        n_changed=verdicts["change"],
        n_kept=verdicts["keep"],
        n_unsure=verdicts["unsure"],
        notes=list(store.notes),
    )


def _reviewed(table: ReviewTable, known: dict[int, int], drawn: list[Draw]) -> str:
    """Return the rows whose true label is known as CSV, after the drawn rows, known or unsure."""
    chances = {draw.row: draw.probability for draw in drawn}
    rows = [*chances, *(row for row in known if row not in chances)]
    texts = hash_texts(table.fingerprint.hashes[rows])
    lines: list[list[object]] = [
        [row, table.names[known[row]] if row in known else UNSURE, table.given(row), text]
        for row, text in zip(rows, texts, strict=True)
    ]
    header = ["row", "label", "given", "fingerprint"]
    if drawn:
        header.append("probability")
        for line, row in zip(lines, rows, strict=True):
            line.append(chances.get(row))
    return _csv(header, lines)


def _corrected_table(table: ReviewTable, known: dict[int, int]) -> str:
    """Return the table with the known labels, as CSV."""
    rows = np.array([row for row, label in known.items() if label != table.codes[row]], dtype=int)
    if table.cells is not None and table.label_name in table.cells.columns:
        # labels are copied from a row of their class, so that they are written as in the file
        first = np.unique(table.codes, return_index=True)[1]
        places = np.arange(table.n_rows)
        places[rows] = first[[known[row] for row in rows.tolist()]]
        return table.cells.with_columns(table.cells[table.label_name][places]).write_csv()
    values = table.classes[[known[row] for row in rows.tolist()]]
    labels = table.classes[table.codes]
    labels[rows] = values
    if isinstance(table.data, Mapping | np.ndarray):
        columns = named_columns(table.data) | {table.label_name: labels}
        return _csv(columns, zip(*(column.tolist() for column in columns.values()), strict=True))
    frame: nw.DataFrame[Any] = nw.from_native(table.data, eager_only=True)
    if table.label_name not in frame.columns:
        column = nw.new_series(table.label_name, labels, backend=frame.implementation)
    else:
        # scatter keeps the type of the column, and does not change the original
        given = frame[table.label_name]
        column = given.scatter(rows, values.astype(bool) if given.dtype == nw.Boolean else values)
    return frame.with_columns(column).write_csv()


def answers_of(store: Decisions) -> dict[int, dict[str, int | None]]:
    """Return the answers of each checker by row; None: unsure."""
    answers: dict[int, dict[str, int | None]] = {}
    for checker in store.checkers():
        for row, (verdict, label) in store.answers(checker).items():
            if verdict is not None:
                answers.setdefault(row, {})[checker] = label
    return answers


def _disagreements(table: ReviewTable, store: Decisions) -> str:
    """Return the rows for which checkers chose different labels, as CSV."""
    checkers, answers = store.checkers(), answers_of(store)
    _, _, disputed = agreement(answers, table.classes.size)

    def said(row: int, checker: str) -> str | None:
        if checker not in answers[row]:
            return None
        label = answers[row][checker]
        return UNSURE if label is None else table.names[label]

    return _csv(
        ["row", "given", *checkers],
        [[row, table.given(row), *(said(row, name) for name in checkers)] for row in disputed],
    )


def _log(table: ReviewTable, store: Decisions) -> str:
    events, columns = store.log(), LOG_COLUMNS.split()
    for event in events:
        event["action"] = event["verdict"] if event["undoes"] is None else "undo"
        if table.ids and event["matched"]:
            event["id"] = table.ids[event["row"]]
        event["matched"] = "yes" if event["matched"] else "no"
    return _csv(columns, ([event[name] for name in columns] for event in events))


def _csv(header: Iterable[str], lines: Iterable[Iterable[object]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(lines)
    return text.getvalue()
