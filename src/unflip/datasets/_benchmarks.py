"""The paper's six benchmark tables: from a folder, else from OpenML, checked either way."""

import csv
import io
import os
from dataclasses import dataclass
from functools import lru_cache
from http.client import HTTPException
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import fetch_openml, get_data_home

from unflip._utils.files import write_whole
from unflip._utils.validation import check_choice
from unflip.datasets._convert import RECIPES, LabelledArrays, convert


@dataclass(frozen=True)
class Counts:
    """What the paper says of a table."""

    features: int
    positives: int
    negatives: int

    @property
    def columns(self) -> list[str]:
        """The header of the table's file."""
        return [f"x{j + 1}" for j in range(self.features)] + ["y"]


COUNTS = {
    "breast-cancer": Counts(9, 77, 186),
    "diabetis": Counts(8, 268, 500),
    "german": Counts(20, 300, 700),
    "heart": Counts(13, 120, 150),
    "image": Counts(18, 1188, 898),
    "thyroid": Counts(5, 65, 150),
}

BENCHMARKS = tuple(COUNTS)
"""Names of the benchmark tables, as in the paper."""


def load_benchmark(name: str, *, data_home: str | os.PathLike[str] | None = None) -> LabelledArrays:
    """Return (X, y) of one of the paper's benchmark tables, y in {-1, +1}.

    The tables are UCI's, made binary and standardised as in Rätsch's collection. They are read
    from `<name>.csv` (columns x1, ..., xm, y) in a folder: `data_home`, else the environment
    variable `UNFLIP_DATA`. With neither, the raw table is fetched from OpenML once, converted and
    kept in scikit-learn's data folder. Wherever it comes from, it must have the paper's counts.

    Parameters
    ----------
    name : {"breast-cancer", "diabetis", "german", "heart", "image", "thyroid"}
        Which table.
    data_home : str or path-like, default=None
        Folder that holds the files. None: `UNFLIP_DATA`, and OpenML where that is not set.

    Returns
    -------
    X : array of shape (n_samples, n_features)
        Standardised features.
    y : array of shape (n_samples,)
        Classes, -1 and +1.

    Examples
    --------
    >>> from unflip.datasets import load_benchmark
    >>> X, y = load_benchmark("heart")  # doctest: +SKIP
    >>> X.shape, int((y == 1).sum())  # doctest: +SKIP
    ((270, 13), 120)
    """
    check_choice(name, BENCHMARKS, "name")
    if data_home is not None:
        path = _in_folder(name, Path(data_home), "data_home")
    elif os.environ.get("UNFLIP_DATA"):
        path = _in_folder(name, Path(os.environ["UNFLIP_DATA"]), "UNFLIP_DATA")
    else:
        path = Path(get_data_home()) / "unflip" / f"{name}.csv"
        if not path.exists():
            _write(path, *_download(name))
    X, y = _read(name, path, path.stat().st_mtime_ns)
    return X.copy(), y.copy()


def _in_folder(name: str, folder: Path, origin: str) -> Path:
    """Return the path of the table's file in a folder that the user named."""
    folder = folder.expanduser()
    path = folder / f"{name}.csv"
    if not folder.is_dir():
        raise FileNotFoundError(
            f"{origin} names {folder}, which is not a folder. Name the folder that holds "
            f"{path.name}, or unset {origin} to fetch the table from OpenML."
        )
    if not path.is_file():
        raise FileNotFoundError(
            f"{path} does not exist. Put the file there ({_columns(name)}), or unset {origin} to "
            "fetch the table from OpenML."
        )
    return path


@lru_cache(maxsize=2 * len(BENCHMARKS))
def _read(name: str, path: Path, modified: int) -> LabelledArrays:
    """Parse and check a file; `modified` makes a changed file a new one."""
    advice = f"Replace the file, or delete it from its folder; it needs {_columns(name)}."
    with path.open(newline="", encoding="utf-8-sig") as file:
        header, *rows = [row for row in csv.reader(file) if row] or [[]]
    expected = COUNTS[name].columns
    if header != expected:
        raise ValueError(f"{path} has the header {header}, expected {expected}. {advice}")
    try:
        table = np.array(rows, dtype=np.float64).reshape(len(rows), len(expected))
    except ValueError as error:
        raise ValueError(f"{path} is not a table of numbers: {error}. {advice}") from error
    return _checked(name, table[:, :-1], table[:, -1], source=str(path), advice=advice)


def _download(name: str) -> LabelledArrays:
    """Fetch the raw table from OpenML and convert it."""
    try:
        # this parser and arrays, not frames, because they do without pandas
        raw = fetch_openml(data_id=RECIPES[name].openml_id, as_frame=False, parser="liac-arff")
    except (OSError, HTTPException) as error:
        raise OSError(
            f"the table {name!r} could not be fetched from OpenML ({error}). There are two ways to "
            "get it: connect to the network and call again, or put the file "
            f"{name}.csv ({_columns(name)}) into a folder and pass data_home=folder or set the "
            "environment variable UNFLIP_DATA to it."
        ) from error
    rows = np.array(raw.data, dtype=object)
    for column, feature in enumerate(raw.feature_names):
        if feature in raw.categories:  # nominal columns come as positions in these lists
            categories = np.array([*raw.categories[feature], "?"], dtype=object)
            rows[:, column] = categories[np.nan_to_num(raw.data[:, column], nan=-1).astype(int)]
    source = f"OpenML's table {RECIPES[name].openml_id}, converted,"
    advice = "OpenML's table has changed: take it from a folder, with data_home= or UNFLIP_DATA."
    return _checked(name, *convert(name, rows, raw.target), source=source, advice=advice)


def _checked(
    name: str,
    X: NDArray[np.float64],
    y: NDArray[np.float64] | NDArray[np.int_],
    *,
    source: str,
    advice: str,
) -> LabelledArrays:
    """Return the table if it is the paper's: finite, labelled -1 and +1, and of the same counts."""
    if not (np.isfinite(X).all() and np.isin(y, (-1, 1)).all()):
        raise ValueError(
            f"{source} holds values that are not finite, or a y that is neither -1 nor 1. {advice}"
        )
    found = Counts(X.shape[1], int((y == 1).sum()), int((y == -1).sum()))
    if found != COUNTS[name]:
        raise ValueError(f"{source} has {found}, expected the paper's {COUNTS[name]}. {advice}")
    return X, y.astype(int)


def _write(path: Path, X: NDArray[np.float64], y: NDArray[np.int_]) -> None:
    """Write the table whole or not at all."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COUNTS[path.stem].columns)
    writer.writerows([*row, label] for row, label in zip(X.tolist(), y.tolist(), strict=True))
    write_whole(path, text.getvalue())


def _columns(name: str) -> str:
    """Say what the table's file must look like."""
    return f"columns x1, ..., x{COUNTS[name].features}, y with y in {{-1, 1}}"
