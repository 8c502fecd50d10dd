"""Held-out probabilities as users bring them: of one model or several, checked and put in order."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment, minimize
from scipy.special import softmax

from unflip._utils.typing import Array, Floats
from unflip._utils.validation import check_labels, plain_labels
from unflip.diagnostics import Diagnostic

LARGEST_SUM_ERROR = 0.02
"""How far a row's sum may be from one: half precision and rounded text are let through."""

LEAST_DISAGREEMENT, LEAST_CONFIDENCE = 0.001, 0.98
"""Labels that a model agrees with more often, and is surer of on average, it has probably seen."""

NOTED_DISAGREEMENT = 0.02
"""Labels that a model agrees with more often it may have seen, or its classes are easy: a note."""

SMALLEST_SAMPLE = 100
"""On fewer rows agreement and order are chance."""

CHECKED_AT_ONCE = 1 << 22
"""Numbers that are checked at a time."""

POOLED = 300_000
"""Numbers that the pool of several models is fitted to: of more, rows are taken evenly."""


def held_out_labels(
    pred_probs: Any, y: ArrayLike, classes: ArrayLike | None, *, normalized: bool = True
) -> tuple[Array, NDArray[np.intp], list[Floats]]:
    """Return the sorted classes, the labels' positions, and each model's probabilities."""
    known, codes = check_labels(y, classes=classes, binary=False)
    order = None if classes is None else _column_order(classes, known)
    several = isinstance(pred_probs, (list, tuple)) and any(np.ndim(one) == 2 for one in pred_probs)
    models = list(pred_probs) if several else [pred_probs]
    names = [f"pred_probs[{k}]" for k in range(len(models))] if several else ["pred_probs"]
    return (
        known,
        codes,
        [
            _checked(model, codes.size, known, order, name, normalized)
            for model, name in zip(models, names, strict=True)
        ],
    )


def judge_held_out(
    probabilities: Floats, codes: NDArray[np.intp], classes: Array
) -> list[Diagnostic]:
    """Refuse columns in another order than the classes, and doubt probabilities of seen labels."""
    if codes.size < SMALLEST_SAMPLE:
        return []
    guess = probabilities.argmax(axis=1)
    counts = np.zeros((classes.size, classes.size))
    np.add.at(counts, (codes, guess), 1.0)
    agree = float(np.trace(counts)) / codes.size
    rows, columns = linear_sum_assignment(-counts)
    permuted = float(counts[rows, columns].sum()) / codes.size
    if permuted > 2 * agree and permuted - agree > 0.2:
        moved = int(np.flatnonzero(columns != rows)[0])
        raise ValueError(
            "the columns of pred_probs seem to be in another order than the classes: the labels "
            f"are the likeliest class in {agree:.0%} of the rows, and would be in {permuted:.0%} "
            f"if the column of {classes.item(columns[moved])!r} were that of "
            f"{classes.item(rows[moved])!r}, and so on. Columns follow the sorted labels, "
            f"{_some(classes)}; give classes=[...] in the order of your columns."
        )
    own = probabilities[np.arange(codes.size), codes]
    confidence = float(own.mean(dtype=np.float64))
    if 1 - agree > NOTED_DISAGREEMENT:
        return []
    is_sure = 1 - agree <= LEAST_DISAGREEMENT and confidence >= LEAST_CONFIDENCE
    numbers = {"agree": agree, "confidence": confidence}
    return [Diagnostic("not_held_out", "warning" if is_sure else "note", numbers)]


def pooled(models: list[Floats], codes: NDArray[np.intp]) -> Floats:
    r"""Return one model's probabilities, or those of several, pooled.

    Candidates are each model alone, softmax(a log p + b); the product of all,
    softmax(sum_m a_m log p_m + b); and the mean of those recalibrated ones, by weights. All are
    fitted to half of the labels by likelihood, and the one under which the other half is likeliest
    is taken.
    """
    if len(models) == 1:
        return models[0]
    n_rows, n_classes = models[0].shape
    step = max(1, n_rows * n_classes * len(models) // POOLED)
    sample = slice(None, None, step)
    logs = [_logs(model[sample]) for model in models]
    labels = codes[sample]
    together = list(range(len(models)))
    choices = [*([k] for k in together), together]
    half = np.arange(labels.size) % 2 == 0
    scores = np.zeros(len(choices) + 1)
    for fitted in (half, ~half):
        parts = [_product([logs[k][fitted] for k in some], labels[fitted]) for some in choices]
        seen = [_apply([logs[k][fitted]], parts[k]) for k in together]
        held = [
            _apply([logs[k][~fitted] for k in some], part)
            for some, part in zip(choices, parts, strict=True)
        ]
        held.append(_mean(_mean_weights(seen, labels[fitted]), held[:-1]))
        own = np.array([part[np.arange(len(part)), labels[~fitted]] for part in held])
        scores += np.log(np.maximum(own, 1e-12)).sum(axis=1)
    best = int(np.argmax(scores))
    if best < len(choices):
        part = _product([logs[k] for k in choices[best]], labels)
        return _apply([_logs(models[k]) for k in choices[best]], part)
    alone = [_product([logs[k]], labels) for k in together]
    weight = _mean_weights([_apply([logs[k]], alone[k]) for k in together], labels)
    return _mean(weight, [_apply([_logs(models[k])], alone[k]) for k in together])


def _mean(weight: Floats, parts: list[Floats]) -> Floats:
    return np.asarray(sum(w * part for w, part in zip(weight, parts, strict=True)))


def _product(logs: list[Floats], labels: NDArray[np.intp]) -> Floats:
    """Return the scales a_m and the shift b under which the labels are likeliest."""
    n_models, (n_rows, n_classes) = len(logs), logs[0].shape
    own = np.arange(n_rows), labels

    def loss(at: Floats) -> tuple[float, Floats]:
        p = _apply(logs, at)
        prior = at - np.r_[np.full(n_models, 1 / n_models), np.zeros(n_classes)]
        value = -np.log(np.maximum(p[own], 1e-300)).sum() + prior @ prior / 2
        p[own] -= 1
        gradient = np.r_[[np.sum(p * one) for one in logs], p.sum(axis=0)] + prior
        return value / n_rows, gradient / n_rows

    start = np.r_[np.full(n_models, 1 / n_models), np.zeros(n_classes)]
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 100})
    return np.asarray(found.x)


def _apply(logs: list[Floats], at: Floats) -> Floats:
    total = sum(scale * one for scale, one in zip(at, logs, strict=False))
    return np.asarray(softmax(total + at[len(logs) :], axis=1))


def _mean_weights(parts: list[Floats], labels: NDArray[np.intp]) -> Floats:
    """Return the weights of the mean under which the labels are likeliest, by EM."""
    own = np.array([part[np.arange(len(part)), labels] for part in parts])
    weight = np.full(len(parts), 1 / len(parts))
    for _ in range(100):
        joint = weight[:, None] * np.maximum(own, 1e-300)
        weight = np.mean(joint / joint.sum(axis=0), axis=1)
    return weight


def _logs(model: Floats) -> Floats:
    logs = np.log(np.maximum(model, 1e-6), dtype=np.float64)
    return np.asarray(logs - logs.mean(axis=1, keepdims=True))


def _column_order(classes: ArrayLike, known: Array) -> NDArray[np.intp]:
    """Return, for every sorted class, the column that holds it."""
    given = plain_labels(classes, "classes")
    if given.size != known.size:
        raise ValueError(
            f"classes names {given.size} columns, of which {known.size} are different: name the "
            "class of each column once."
        )
    return np.argsort(given)


def _checked(
    values: Any,
    n_rows: int,
    classes: Array,
    order: NDArray[np.intp] | None,
    name: str,
    normalized: bool,
) -> Floats:
    """Return one model's probabilities, columns by sorted classes, or say what they are not."""
    if order is None:
        order = _order_by_name(values, classes)
    array = _as_floats(values, name)
    expected = f"expected ({n_rows}, {classes.size}): one row per label, one column per class"
    if array.ndim == 1 and classes.size == 2:
        raise ValueError(
            f"{name} has shape {array.shape}, {expected}. Where p is the probability of "
            f"{classes.item(1)!r}, give np.column_stack([1 - p, p])."
        )
    if array.ndim != 2 or array.shape[0] != n_rows:
        raise ValueError(f"{name} has shape {array.shape}, {expected}.")
    if array.shape[1] != classes.size:
        raise ValueError(
            f"{name} has {array.shape[1]} columns, and the labels are of {classes.size} classes, "
            f"{_some(classes)}. Where some class has no label, name the class of every column in "
            "classes=[...]."
        )
    _check_values(array, name, normalized)
    return array if order is None else np.ascontiguousarray(array[:, order])


def _check_values(array: Floats, name: str, normalized: bool) -> None:
    """Refuse what is no probability, block by block."""
    step = max(1, CHECKED_AT_ONCE // array.shape[1])
    for start in range(0, len(array), step):
        block = array[start : start + step]
        finite = np.isfinite(block).all(axis=1)
        if not finite.all():
            row = start + int(np.argmin(finite))
            raise ValueError(
                f"{name} holds NaN or infinity, first in row {row}. Leave such rows out of "
                f"{name} and of the labels."
            )
        low, high = float(block.min()), float(block.max())
        if low < 0 or high > 1 + 1e-3:
            hint = (
                "These look like logits: take their softmax"
                if low < 0
                else "These look like percentages: divide by 100"
                if high <= 100
                else "These look like counts: divide every row by its sum"
            )
            raise ValueError(
                f"{name} must hold probabilities in [0, 1], got values from {low:.4g} to "
                f"{high:.4g}. {hint}."
            )
        if not normalized:
            continue
        sums = block.sum(axis=1, dtype=np.float64)
        far = int(np.argmax(np.abs(sums - 1)))
        if abs(sums[far] - 1) > LARGEST_SUM_ERROR:
            raise ValueError(
                f"row {start + far} of {name} sums to {sums[far]:.4g}, and every row must sum to "
                "1. One score per class that does not (one-vs-rest, sigmoids) must be divided by "
                "the row's sum."
            )


def _order_by_name(values: Any, classes: Array) -> NDArray[np.intp] | None:
    """Return the order of a table's columns where they are named after the classes."""
    names = getattr(values, "columns", None)
    if names is None:
        return None
    named = [str(name) for name in names]
    wanted = [str(label) for label in classes.tolist()]
    if sorted(named) != sorted(wanted) or len(set(named)) < len(named):
        return None
    return np.array([named.index(label) for label in wanted], dtype=np.intp)


def _as_floats(values: Any, name: str) -> Floats:
    """Return an array of floats; single precision is kept."""
    if values is None:
        raise ValueError(
            f"{name} is None: held-out probabilities are needed, one column per class."
        )
    if hasattr(values, "toarray"):
        raise ValueError(f"{name} is a sparse matrix: give {name}.toarray().")
    try:
        array = np.asarray(values)
        if array.dtype.kind == "b":
            raise TypeError
        if array.dtype.kind != "c":  # numpy would drop the imaginary parts
            return np.asarray(array, dtype=np.float32 if array.dtype == np.float32 else np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"{name} must hold numbers, one row per label and one column per class, got "
            f"{type(values).__name__}."
        ) from None
    raise ValueError(f"{name} holds complex numbers: give real probabilities.")


def _some(classes: Array) -> str:
    names = ", ".join(repr(label) for label in classes[:5].tolist())
    return names + (", ..." if classes.size > 5 else "")
