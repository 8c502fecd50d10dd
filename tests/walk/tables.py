"""Tables as strangers bring them, made up, with labels whose truth is known."""

from pathlib import Path

import numpy as np
import polars as pl

PLANS = np.array(["month-to-month", "one year", "two years"])
WORDS = np.array(["the", "a", "call", "ticket", "order", "again", "today", "please", "about", "my"])


def flipped(true: np.ndarray, rate: float, rng: np.random.Generator) -> np.ndarray:
    """Return labels of which a share was replaced by another one, drawn evenly."""
    classes, codes = np.unique(true, return_inverse=True)
    shift = rng.integers(1, classes.size, codes.size)
    wrong = rng.random(codes.size) < rate
    return classes[(codes + wrong * shift) % classes.size]


def churn(n_rows: int, rng: np.random.Generator) -> tuple[pl.DataFrame, np.ndarray]:
    """Return numbers, categories, dates and text with gaps, and true labels."""
    months, plan = rng.exponential(24, n_rows), rng.integers(0, 3, n_rows)
    charge = rng.normal(60, 20, n_rows)
    margin = (months - 20) / 4 + np.array([-5.0, 2.0, 6.0])[plan] - (charge - 60) / 10
    true = np.where(margin + rng.logistic(size=n_rows) > 0, "stayed", "left")
    day = np.datetime64("2022-01-01") + rng.integers(0, 900, n_rows).astype("timedelta64[D]")
    notes = rng.choice(WORDS, (n_rows, 6))
    table = pl.DataFrame(
        {
            "customer": [f"C{k:06d}" for k in range(n_rows)],
            "months": months.round(1),
            "charge": charge.round(2),
            "plan": PLANS[plan],
            "since": day,
            "note": [" ".join(words) for words in notes],
        }
    )
    gaps = pl.Series(rng.random(n_rows) < 0.05)
    return table.with_columns(pl.when(~gaps).then(pl.col("charge")).alias("charge")), true


def blobs(
    n_rows: int, n_classes: int, n_columns: int, rng: np.random.Generator, distance: float = 6.0
) -> tuple[pl.DataFrame, np.ndarray]:
    """Return Gaussian classes around corners, and their letters."""
    centres = rng.normal(size=(n_classes, n_columns))
    centres *= distance / np.sqrt(2 * n_columns)
    codes = rng.integers(0, n_classes, n_rows)
    X = centres[codes] + rng.normal(size=(n_rows, n_columns))
    letters = np.array([chr(ord("A") + k) for k in range(n_classes)])
    return pl.DataFrame({f"x{k}": X[:, k].round(4) for k in range(n_columns)}), letters[codes]


def texts(n_rows: int, rng: np.random.Generator) -> tuple[pl.DataFrame, np.ndarray]:
    """Return a column of messages, and whether they are spam."""
    spam = rng.random(n_rows) < 0.4
    own = np.where(
        spam[:, None],
        rng.choice(["win", "free", "prize", "click"], (n_rows, 3)),
        rng.choice(["meeting", "report", "lunch", "family"], (n_rows, 3)),
    )
    words = np.column_stack([rng.choice(WORDS, (n_rows, 6)), own])
    rng.permuted(words, axis=1, out=words)
    table = pl.DataFrame({"message": [" ".join(row) for row in words]})
    return table, np.where(spam, "spam", "ham")


def write(table: pl.DataFrame, labels: np.ndarray, path: Path, **options: object) -> Path:
    """Write a table with its labels in a last column, as CSV."""
    table.with_columns(status=pl.Series(labels)).write_csv(path, **options)  # type: ignore[arg-type]
    return path
