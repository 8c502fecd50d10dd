"""A table of mixed columns: numbers, categories, dates, text, gaps."""

import numpy as np
import polars as pl
from sklearn.linear_model import LogisticRegression

ANGRY = ["angry", "refund", "late", "broken", "call"]
GLAD = ["thanks", "gift", "fine", "fast", "call"]


def mixed_table(n_rows: int = 500, seed: int = 0) -> pl.DataFrame:
    """Return customers whose `churn` is true, and can be told from the other columns."""
    rng = np.random.default_rng(seed)
    churn = rng.random(n_rows) < 0.45
    words = np.where(churn[:, None], rng.choice(ANGRY, (n_rows, 4)), rng.choice(GLAD, (n_rows, 4)))
    day = np.datetime64("2020-01-01") + rng.integers(0, 1500, n_rows).astype("timedelta64[D]")
    table = pl.DataFrame(
        {
            "customer": [f"C{k:04d}" for k in range(n_rows)],
            "amount": rng.normal(50 - 20 * churn, 10).round(2),
            "visits": rng.poisson(np.where(churn, 2, 8)),
            "plan": np.where(churn, rng.choice(["basic", "plus"], n_rows), "pro"),
            "since": day,
            "note": [" ".join(row) for row in words],
            "churn": np.where(churn, "yes", "no"),
        }
    )
    gaps = {"amount": 0.08, "visits": 0.03, "plan": 0.1, "since": 0.05, "note": 0.1}
    return table.with_columns(
        pl.when(pl.Series(rng.random(n_rows) >= share)).then(pl.col(name)).alias(name)
        for name, share in gaps.items()
    )


RATES = ("--rates", "0.3,0.1")
"""For commands whose claim is not the estimate: given the rates, they take half the time."""

COLUMNS = ("--label", "churn", "--id", "customer", "--drop", "truth")
"""What the commands are told about the table whose labels were flipped."""


class TalkativeClassifier(LogisticRegression):
    """A classifier that prints while it is trained, as some do."""

    def fit(self, X, y, sample_weight=None):
        """Fit, and say so."""
        print("[Info] Number of rows:", len(y))
        return super().fit(X, y, sample_weight)
