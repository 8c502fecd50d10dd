"""Held-out probabilities of any model for the rows of a table: read, validated, audited."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from unflip._app.reviewed import add_checked
from unflip._app.table_files import TableError, listed, read_table
from unflip._app.tables import LabelledTable, check_has_columns
from unflip._app.workflow import Audited, GivenRates, oriented, rates_by_class
from unflip._utils.typing import Array, Floats
from unflip.audit import LabelAudit
from unflip.checked import CheckedLabels
from unflip.checked.internals import correct
from unflip.inspection import summary

if TYPE_CHECKING:
    import polars as pl


def audit_probabilities(
    data: LabelledTable,
    proba: str,
    *,
    rates: GivenRates | None = None,
    positive: str | None = None,
    reviewed: CheckedLabels | None = None,
    random_state: int = 0,
    say: Callable[[str], None] = lambda step: None,
) -> Audited:
    """Audit a table's labels by probabilities."""
    known, positive_class = rates_by_class(rates, data.classes, positive)
    say("reading the probabilities")
    values = read_probabilities(proba, data)
    say("estimating how many labels are wrong")
    audit = LabelAudit(noise_rates="auto" if known is None else known, random_state=random_state)
    try:
        audit.fit_posterior(values, data.y)
    except ValueError as error:
        raise TableError(f"--proba {proba}: {error}".replace("pred_probs", "it")) from error
    found = oriented(summary(audit), positive_class) | {"leaks": []}
    reviewed = CheckedLabels([], []) if reviewed is None else reviewed
    noise = correct(audit.noise_, reviewed)
    if len(reviewed):
        add_checked(found, reviewed, noise)
    return Audited(found, noise, audit, reviewed, None)


def read_probabilities(proba: str, data: LabelledTable) -> Floats:
    """Return P(noisy y | x), one column per sorted class."""
    path = Path(proba)
    names = [name.strip() for name in proba.split(",")]
    if all(name in data.whole.columns for name in names):
        table = data.whole[names]
    elif path.suffix.lower() == ".npy":
        return _sized(_read_npy(path), proba, data)
    elif path.suffix and path.exists():
        table = read_table(path)
    elif len(names) == 1 and path.suffix:
        raise TableError(f"--proba {proba}: there is no such file, and no such column.")
    else:
        check_has_columns(data.whole, names)
    return _sized(_by_class(table, proba, data), proba, data)


def _by_class(table: "pl.DataFrame", proba: str, data: LabelledTable) -> Floats:
    """Return the numbers of a table, with columns in the order of the classes if names show it."""
    for name, kind in table.schema.items():
        if not kind.is_numeric():
            raise TableError(f"--proba {proba}: column {name!r} holds {kind}, not probabilities.")
        if table[name].null_count():
            row = table[name].is_null().arg_true()[0]
            raise TableError(f"--proba {proba}: column {name!r} has no value in row {row}.")
    order = _named_after(table.columns, data.classes)
    return np.asarray(table[order].to_numpy(), dtype=np.float64)


def _named_after(names: list[str], classes: Array) -> list[str]:
    """Return the columns in the order of the classes if each class ends exactly one's name."""
    ordered = []
    for label in map(str, classes.tolist()):
        exact = [name for name in names if name == label]
        ending = [name for name in names if name.endswith(("_" + label, " " + label, "." + label))]
        matching = exact or ending
        if len(matching) != 1:
            return names
        ordered += matching
    return ordered if len(set(ordered)) == len(names) else names


def _read_npy(path: Path) -> Floats:
    if not path.exists():
        raise TableError(f"--proba {path}: there is no such file.")
    try:
        values = np.load(path, allow_pickle=False)  # pickles may run programs
    except (ValueError, OSError, EOFError) as error:
        raise TableError(f"--proba {path} cannot be read as an array of numbers: {error}") from None
    if values.dtype.kind not in "fiu":
        raise TableError(f"--proba {path} holds {values.dtype}, not probabilities.")
    return np.asarray(values)


def _sized(values: Floats, proba: str, data: LabelledTable) -> Floats:
    """Check that there is one row per label and one column per class."""
    classes = data.classes
    if values.ndim != 2 or len(values) != data.y.size:
        rows = f"has shape {values.shape}" if values.ndim != 2 else f"has {len(values)} rows"
        raise TableError(
            f"--proba {proba} {rows}, but the table has {data.y.size} labels: give one row for "
            "each, in the same order."
        )
    if values.shape[1] != classes.size:
        raise TableError(
            f"--proba {proba} has {values.shape[1]} columns, but the labels have {classes.size} "
            f"classes: {listed(classes.tolist(), 5)}. Give one column for each, in this order."
        )
    return values
