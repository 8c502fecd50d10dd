"""Labels that a person has checked: read and matched with their table, and what they show."""

from pathlib import Path
from typing import TYPE_CHECKING

import narwhals as nw

from unflip._app.row_hashes import hash_rows, hash_texts
from unflip._app.table_files import TableError, listed, read_table
from unflip._app.tables import LabelledTable
from unflip._utils.typing import Array, PlainLabel, Record
from unflip._utils.validation import find_class
from unflip.checked import CheckedLabels
from unflip.checked.internals import NONE, UNSURE
from unflip.estimate import NoiseEstimate

if TYPE_CHECKING:
    import polars as pl


def read_reviewed(path: Path, data: LabelledTable) -> CheckedLabels:
    """Return the labels that a person has checked."""
    table = read_table(path)
    lacking = [name for name in ("row", "label") if name not in table.columns]
    if lacking:
        raise TableError(
            f"{path} has no column {lacking[0]!r}: a file of checked labels needs the columns row "
            f"(counted from 0) and label. It has: {listed(table.columns)}."
        )
    if not table["row"].dtype.is_integer() or table["row"].null_count():
        odd = [value for value in table["row"].to_list() if not _is_number(value, int)]
        raise TableError(
            f"the column row of {path} must hold row numbers counted from 0, got {odd[0]!r}."
        )
    if table["label"].null_count():
        row = table["row"][table["label"].is_null().arg_true()[0]]
        raise TableError(
            f"{path} has no label for row {row}: leave out rows that were not decided."
        )
    labels: dict[int, PlainLabel] = {}
    answers = []
    for row, label in zip(table["row"].to_list(), table["label"].to_list(), strict=True):
        if not 0 <= row < data.y.size:
            raise TableError(
                f"{path} names row {row}, but the table has rows 0 to {data.y.size - 1}."
            )
        decided = label if label in (NONE, UNSURE) else find_class(data.classes, label)
        if decided is None:
            raise TableError(
                f"{path} gives row {row} the label {label!r}, which is not one of the classes "
                f"{listed(data.classes.tolist())}, {NONE!r} or {UNSURE!r}."
            )
        if labels.setdefault(row, decided) != decided:
            raise TableError(f"{path} gives row {row} two labels, {labels[row]!r} and {decided!r}.")
        answers.append(decided)
    _check_same_rows(path, table, data)
    chances = _chances(path, table)
    try:
        return CheckedLabels(table["row"].to_list(), answers, chances)
    except ValueError as error:
        raise TableError(f"{path}: {error}") from error


def _chances(path: Path, table: "pl.DataFrame") -> list[float] | None:
    """Return the column `probability`, with NaN for missing values; None without the column."""
    if "probability" not in table.columns or not table["probability"].count():
        return None
    if not table["probability"].dtype.is_numeric():
        given = table[["row", "probability"]].drop_nulls()
        row, value = next(each for each in given.iter_rows() if not _is_number(each[1], float))
        raise TableError(
            f"the column probability of {path} must hold numbers, or nothing for rows chosen by "
            f"hand: row {row} has {value!r}."
        )
    return [float("nan") if each is None else each for each in table["probability"].to_list()]


def _is_number(value: object, kind: type[int] | type[float]) -> bool:
    try:
        kind(str(value))
    except ValueError:
        return False
    return True


def add_checked(found: Record, reviewed: CheckedLabels, noise: NoiseEstimate) -> None:
    """Add to a summary what the checked rows show, or a note that they were chosen by hand."""
    by_hand = [str(one) for one in noise.findings if one.code == "convenience_sample"]
    found["notes"] = [*found["notes"], *by_hand]
    if noise.checked is None or noise.counted is None:  # too few rows were drawn at random
        return
    before, labels = noise.checked.before, noise.observed
    rates = reviewed.noise_rates(labels, before.label_proba)
    found["checked"] = {
        "n_rows": noise.counted.n_rows,
        "label_error_rate": noise.counted.as_record(),
        "labels_alone": before.error_rate.value,
        "contradicted": any(finding.code == "checked_disagree" for finding in noise.findings),
        "flip_rates": [{"label": label, **rate.as_record()} for label, rate in rates.items()],
        "hypotheses": noise.checked.hypotheses,
        "rows_for_two_points": reviewed.rows_needed(labels, before.label_proba, half_width=0.02),
    }


def class_named(classes: Array, text: object) -> PlainLabel:
    """Return the class with this text, or raise an error that lists the classes."""
    found = find_class(classes, text)
    if found is None:
        raise TableError(f"{text!r} is not one of the classes: {listed(classes.tolist())}.")
    return found


def _check_same_rows(path: Path, reviewed: "pl.DataFrame", data: LabelledTable) -> None:
    """Raise an error if reviewed rows have changed, as far as the file shows."""
    rows = reviewed["row"].to_list()
    # the fingerprint includes the observed label
    name = next((name for name in ("fingerprint", "given") if name in reviewed.columns), None)
    if name is None:
        return
    then = [str(value) for value in reviewed[name].to_list()]
    if name == "fingerprint":
        frame = nw.from_native(data.reviewed_as, eager_only=True)
        now = hash_texts(hash_rows({column: frame[column] for column in frame.columns})[rows])
        same = [old == new for old, new in zip(then, now, strict=True)]
    else:
        same = [
            label == find_class(data.classes, old)
            for label, old in zip(data.y[rows], then, strict=True)
        ]
    wrong = [row for row, is_same in zip(rows, same, strict=True) if not is_same]
    if wrong:
        raise TableError(
            f"{len(wrong)} of the {len(rows)} rows in {path} differ from those reviewed, according "
            f"to the column {name!r}: rows {listed(wrong, 5)}, counted from 0. Use the table that "
            "was reviewed, or export the review again with this one. If you know that these are "
            "the right rows, keep only the columns row and label."
        )
