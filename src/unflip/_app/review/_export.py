"""The corrected table, the log, and the reviewed labels, as files."""

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

from unflip._app.review._source import Source, named_columns
from unflip._app.review._store import Decisions
from unflip._app.row_hashes import hash_texts
from unflip._files import check_free, write_whole

FILES = ("corrected", "reviewed", "log")

LOG_COLUMNS = (
    "number",
    "at",
    "row",
    "id",
    "version",
    "given",
    "action",
    "label",
    "queue",
    "suggested",
    "probability",
    "matched",
)


@dataclass(frozen=True)
class Exported:
    """What was written.

    Parameters
    ----------
    corrected : Path
        The table with the changed labels in place of the given ones.
    reviewed : Path
        The rows of which the true label is known now, kept ones too: `row,label,given,fingerprint`,
        the last two so that a table whose rows are others is told from this one.
    log : Path
        Every decision and every undo, the oldest first.
    n_changed, n_kept, n_unsure : int
        How many rows.
    notes : list of str
        Which decisions were moved with their rows, and which could not be matched.
    """

    corrected: Path
    reviewed: Path
    log: Path
    n_changed: int
    n_kept: int
    n_unsure: int
    notes: list[str]


def export(
    table: Any, label: Any, decisions: str | Path, out: str | Path, *, id_column: str | None = None
) -> Exported:
    """Write the corrected table, the reviewed labels and the log of a review.

    Nothing is read from the table's own file, and nothing is written to it. Decisions are found
    again by the cells of their rows; one that no row matches is not applied, with a warning.

    Parameters
    ----------
    table : dataframe, mapping of columns or array of shape (n_rows, n_columns)
        The table that was reviewed. Its rows may have been sorted, added to or taken from.
    label : str or array-like of shape (n_rows,)
        The name of its label column, or the labels.
    decisions : str or Path
        The file of decisions.
    out : str or Path
        Folder of `corrected.csv`, `reviewed.csv` and `log.csv`.
    id_column : str, default=None
        A column that names the rows, for the log and for warnings.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> from unflip._app.review import Decisions, Source, export
    >>> table = {"size": [1.0, 2.0, 9.0, 8.0], "y": ["small", "small", "small", "big"]}
    >>> folder = Path(mkdtemp())
    >>> with Decisions(folder / "review.sqlite", Source(table, "y").fingerprint) as decisions:
    ...     said = decisions.decide(row=2, version=0, verdict="change", label=0)
    >>> print(export(table, "y", folder / "review.sqlite", folder).corrected.read_text())
    size,y
    1.0,small
    2.0,small
    9.0,big
    8.0,big
    """
    if not Path(decisions).exists():
        raise FileNotFoundError(f"there is no file of decisions {decisions}.")
    source = Source(table, label, id_column=id_column)
    check_export(Path(out))
    with Decisions(Path(decisions), source.fingerprint) as store:
        for note in store.notes:
            warnings.warn(note, UserWarning, stacklevel=2)
        return write_export(source, store, Path(out))


def check_export(out: Path) -> None:
    """Refuse a folder that the files cannot be written to."""
    for name in FILES:
        check_free(out / f"{name}.csv", force=True)


def write_export(source: Source, store: Decisions, out: Path) -> Exported:
    """Write the three files of a review into a folder."""
    current = [decision for _, decision in sorted(store.all().items())]
    known = {d.row: d.label for d in current if d.label is not None}
    files = {
        "corrected": _corrected_table(source, known),
        "reviewed": _csv(
            ["row", "label", "given", "fingerprint"],
            (
                [row, source.names[label], source.given(row), text]
                for (row, label), text in zip(
                    known.items(),
                    hash_texts(source.fingerprint.hashes[list(known)]),
                    strict=True,
                )
            ),
        ),
        "log": _log(source, store),
    }
    paths = {name: out / f"{name}.csv" for name in FILES}
    for name, text in files.items():
        write_whole(paths[name], text)
    verdicts = Counter(decision.verdict for decision in current)
    return Exported(
        **paths,
        n_changed=verdicts["change"],
        n_kept=verdicts["keep"],
        n_unsure=verdicts["unsure"],
        notes=list(store.notes),
    )


def _corrected_table(source: Source, known: dict[int, int]) -> str:
    """Return the table as CSV, with the known labels in place of the given ones."""
    rows = np.array([row for row, label in known.items() if label != source.codes[row]], dtype=int)
    values = source.classes[[known[row] for row in rows.tolist()]]
    labels = source.classes[source.codes]
    labels[rows] = values
    if isinstance(source.table, Mapping | np.ndarray):
        columns = named_columns(source.table) | {source.label_name: labels}
        return _csv(columns, zip(*(column.tolist() for column in columns.values()), strict=True))
    frame: nw.DataFrame[Any] = nw.from_native(source.table, eager_only=True)
    if source.label_name not in frame.columns:
        column = nw.new_series(source.label_name, labels, backend=frame.implementation)
    else:
        # scattering onto the original keeps its type, and the original as it is
        given = frame[source.label_name]
        column = given.scatter(rows, values.astype(bool) if given.dtype == nw.Boolean else values)
    return frame.with_columns(column).write_csv()


def _log(source: Source, store: Decisions) -> str:
    lines = (
        (
            event["number"],
            event["at"],
            event["row"],
            source.ids[event["row"]] if source.ids and event["matched"] else event["id"],
            event["version"],
            event["given"],
            event["verdict"] if event["undoes"] is None else "undo",
            event["label"],
            event["queue"],
            event["suggested"],
            event["probability"],
            "yes" if event["matched"] else "no",
        )
        for event in store.log()
    )
    return _csv(LOG_COLUMNS, lines)


def _csv(header: Iterable[str], lines: Iterable[Iterable[Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(lines)
    return text.getvalue()
