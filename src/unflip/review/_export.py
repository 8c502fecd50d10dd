"""The corrected table, the log, and the reviewed labels, as files."""

import csv
import io
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np

from unflip._files import write_whole
from unflip.review._source import Source, named_columns
from unflip.review._store import Decisions

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
)


@dataclass(frozen=True)
class Exported:
    """What was written.

    Parameters
    ----------
    corrected : Path
        The table with the changed labels in place of the given ones.
    reviewed : Path
        `row,label`: the rows of which the true label is known now, kept ones too.
    log : Path
        Every decision and every undo, the oldest first.
    n_changed, n_kept, n_unsure : int
        How many rows.
    """

    corrected: Path
    reviewed: Path
    log: Path
    n_changed: int
    n_kept: int
    n_unsure: int


def export(
    table: Any, label: Any, decisions: str | Path, out: str | Path, *, id_column: str | None = None
) -> Exported:
    """Write the corrected table, the reviewed labels and the log of a review.

    Nothing is read from the table's own file, and nothing is written to it.

    Parameters
    ----------
    table : dataframe, mapping of columns or array of shape (n_rows, n_columns)
        The table that was reviewed.
    label : str or array-like of shape (n_rows,)
        The name of its label column, or the labels.
    decisions : str or Path
        The file of decisions.
    out : str or Path
        Folder of `corrected.csv`, `reviewed.csv` and `log.csv`.
    id_column : str, default=None
        A column that names the rows, for the log.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> from unflip.review import Decisions, Source, export
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
    with Decisions(Path(decisions), source.fingerprint) as store:
        return write_export(source, store, Path(out))


def write_export(source: Source, store: Decisions, out: Path) -> Exported:
    """Write the three files of a review into a folder."""
    current = [decision for _, decision in sorted(store.all().items())]
    known = {d.row: d.label for d in current if d.label is not None}
    files = {
        "corrected": _corrected_table(source, known),
        "reviewed": _csv(
            ["row", "label"], ([row, source.names[label]] for row, label in known.items())
        ),
        "log": _log(source, store),
    }
    paths = {name: out / f"{name}.csv" for name in files}
    for name, text in files.items():
        write_whole(paths[name], text)
    verdicts = Counter(decision.verdict for decision in current)
    return Exported(
        **paths,
        n_changed=verdicts["change"],
        n_kept=verdicts["keep"],
        n_unsure=verdicts["unsure"],
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
    def name(position: int | None) -> str | None:
        return None if position is None else source.names[position]

    lines = (
        (
            event["number"],
            event["at"],
            event["row"],
            None if source.ids is None else source.ids[event["row"]],
            event["version"],
            source.given(event["row"]),
            event["verdict"] if event["undoes"] is None else "undo",
            name(event["label"]),
            event["queue"],
            name(event["suggested"]),
            event["probability"],
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
