"""Folds that contain every class."""

from collections.abc import Iterable
from typing import TypeVar

import numpy as np
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import check_random_state

from unflip._utils.typing import Array, ArrayLike, CrossValidation, Splitter

C = TypeVar("C", bound=CrossValidation)


def folds_within_classes(cv: C, codes: Array) -> C | int:
    """Return cv; a number of folds is at most the size of the rarest class."""
    if not isinstance(cv, (int, np.integer)):
        return cv
    return min(int(cv), max(2, int(np.bincount(codes).min())))


def check_splits(cv: CrossValidation) -> Splitter | list[tuple[ArrayLike, ArrayLike]]:
    """Return a splitter, or an iterable of splits as a list, which can be used repeatedly."""
    is_text = isinstance(cv, (str, bytes))
    if isinstance(cv, Splitter) and not is_text:
        return cv
    is_scalar = isinstance(cv, np.ndarray) and not cv.ndim
    splits = list(cv) if isinstance(cv, Iterable) and not (is_text or is_scalar) else []
    if not splits or not all(isinstance(pair, (tuple, list)) and len(pair) == 2 for pair in splits):
        raise ValueError(
            "cv must be a number of folds, a splitter such as KFold, or a list of pairs (rows to "
            f"train on, rows to hold out), got {cv!r}."
        )
    return splits


def stratified_folds(
    n_folds: int,
    classes: Array,
    codes: Array,
    random_state: int | np.random.RandomState | None,
    *,
    none_allowed: bool,
) -> StratifiedKFold:
    """Return shuffled folds that each contain every class."""
    if n_folds < 2:
        otherwise = ", or None for none" if none_allowed else ""
        raise ValueError(f"cv must be at least 2 folds{otherwise}, got {n_folds}.")
    counts = np.bincount(codes)
    rarest = int(np.argmin(counts))
    if counts[rarest] < n_folds:
        remedies = ["cv=None" if none_allowed else "more rows"]
        if counts[rarest] > 1:
            remedies.insert(0, f"cv={counts[rarest]} or fewer")
        raise ValueError(
            f"class {classes.item(rarest)!r} has {counts[rarest]} rows, fewer than the "
            f"cv={n_folds} folds, so some folds would lack it. Use {', or '.join(remedies)}; or "
            "drop the rows of that class, or merge it with another."
        )
    seed = check_random_state(random_state).randint(np.iinfo(np.int32).max)
    return StratifiedKFold(n_folds, shuffle=True, random_state=seed)
