"""A fitted estimator as one plain dictionary."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from unflip._diagnostics.error_range import true_shares
from unflip._diagnostics.findings import Diagnostic, judge_weight_summary, range_sentence
from unflip._utils.typing import Floats, Record
from unflip._utils.validation import check_labels, check_weights
from unflip.checked import Estimate
from unflip.estimate import NoiseEstimate
from unflip.noise import NoiseRates, RatesInterval, as_transition_matrix

LEAST_P = 1e-4
"""No smaller p-value or probability is believed: it is an upper bound then."""

QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)


def summary(
    estimator: Any, y: ArrayLike | None = None, *, sample_weight: ArrayLike | None = None
) -> dict[str, Any]:
    """Return the results of a fitted estimator as numbers, lists and text, ready for `json.dumps`.

    Parameters
    ----------
    estimator : ImportanceReweightingClassifier or LabelAudit
        A fitted estimator.
    y : array-like of shape (n_samples,), default=None
        The noisy labels of the fit, for counts per class and warnings about classes.
    sample_weight : array-like of shape (n_samples,), default=None
        As given to `fit`: the weights of the expected numbers of errors.

    Returns
    -------
    summary : dict
        `estimator`, `n_samples`, `classes`; `noise_rates` (`positive` and `negative`, None for more
        than two classes), `interval` (the `level`, and (low, high) of each; None if the rates were
        given, or for more classes), `tests` of no noise and of equal rates (None if the estimator
        has none; p-values and probabilities below 0.0001 are given as 0.0001), `check` of the
        noise model: its `verdict`, "believed", "doubted" or "refuted", and `statistic` (None if
        there is none); `rates_given`, whether the rates were; `wrong_share`: (low, high) of the
        share of wrong labels, `at_random` if labels were flipped at random within each class, and
        `by_row` if mistakes depend on the row, and `range`, the sentence that says so, by checked
        rows where there are enough; `checked`: what these count, `n_rows`, their `wrong_share`
        (`value`, and the ends of its interval at a number `fixed_n` in advance and
        `at_any_time`), and `explanations`, the weight of each way in which errors come about (None
        without checked rows that were drawn); `transition_matrix`, `transition_interval` (the
        `level`, and the `low` and `high` ends of every entry; None if the rates were given),
        `information_left` (1 - rho_pos - rho_neg, or its generalisation to more classes);
        `expected_errors` and `expected_error_share`, by the rates (by the rows' probabilities where
        checked rows or held-out probabilities tell of mistakes that depend on the row);
        `weights`: `mean`, `quantiles`, `effective_sample_size`, `effective_share` and
        `clipped_share` (None for an audit, which has none); `per_class`: for each class its
        `label`, `flip_rate` and `largest_weight`, and with `y` also `n_labels`, `label_share`,
        `true_share`, `expected_errors` and `expected_error_share`; `warnings`: a list of
        sentences. Infinite numbers are None, as JSON has no infinity.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from unflip import ImportanceReweightingClassifier, NoiseRates, flip_labels
    >>> from unflip.inspection import summary
    >>> X, y = make_classification(2000, class_sep=1.5, random_state=0)
    >>> rates = NoiseRates(positive=0.4, negative=0.1)
    >>> y_noisy = flip_labels(y, rates, random_state=0)
    >>> found = summary(ImportanceReweightingClassifier(noise_rates=rates).fit(X, y_noisy), y_noisy)
    >>> found["noise_rates"]
    {'positive': 0.4, 'negative': 0.1}
    >>> [round(a["true_share"], 2) for a in found["per_class"]]
    [0.51, 0.49]
    """
    check_is_fitted(estimator)
    lacking = [name for name in ("mislabel_proba_", "noise_rates_") if not hasattr(estimator, name)]
    if lacking:
        raise TypeError(
            f"{type(estimator).__name__} has no {lacking[0]}: give a fitted "
            "ImportanceReweightingClassifier or LabelAudit."
        )
    wrong = estimator.mislabel_proba_
    noise_estimate = estimator.noise_
    _, at_random, by_row = noise_estimate.error_rate
    counted = noise_estimate.counted
    noise = as_transition_matrix(estimator.noise_rates_)
    if sample_weight is not None:
        counts = check_weights(sample_weight, wrong.size)
        noise_estimate = replace(noise_estimate, sample_weight=counts)
    elif noise_estimate.sample_weight is None:
        counts = np.ones(wrong.size)
    else:
        counts = noise_estimate.sample_weight
    weights = _weights(estimator, counts)
    errors, expected = noise_estimate.errors_by_label, noise_estimate.n_errors
    return {
        "estimator": type(estimator).__name__,
        "n_samples": int(wrong.size),
        "classes": estimator.classes_.tolist(),
        "noise_rates": _two_rates(estimator.noise_rates_),
        "interval": _interval(estimator),
        "tests": _tests(estimator),
        "check": _check(estimator),
        "rates_given": not noise_estimate.estimated,
        "wrong_share": {"at_random": list(at_random), "by_row": list(by_row)},
        "range": _counted(counted)
        if counted is not None
        else range_sentence(at_random, by_row, wrong.size),
        "checked": _checked(noise_estimate),
        "transition_matrix": noise.matrix.tolist(),
        "transition_interval": _matrix_interval(estimator),
        "information_left": estimator.noise_rates_.information_left,
        "expected_errors": expected,
        "expected_error_share": noise_estimate.error_rate.value,
        "weights": weights,
        "per_class": _per_class(estimator.classes_, noise.matrix, errors, y, counts),
        "warnings": _warnings(estimator, weights),
    }


def _checked(noise: NoiseEstimate) -> Record | None:
    if noise.checked is None or noise.counted is None:
        return None
    return {
        "n_rows": noise.counted.n_rows,
        "wrong_share": noise.counted.as_record(),
        "explanations": noise.checked.hypotheses,
    }


def _counted(share: Estimate) -> str:
    numbers = {"n_rows": share.n_rows, "low": share.interval[0], "high": share.interval[1]}
    return str(Diagnostic("checked_range", "note", numbers))


def _two_rates(rates: Any) -> dict[str, float] | None:
    if not isinstance(rates, NoiseRates):
        return None
    positive, negative = rates.both()
    return {"positive": float(positive), "negative": float(negative)}


def _rates_interval(estimator: Any) -> RatesInterval | None:
    interval = getattr(getattr(estimator, "rate_estimator_", None), "interval_", None)
    return interval if isinstance(interval, RatesInterval) else None


def _matrix_interval(estimator: Any) -> dict[str, Any] | None:
    interval = _rates_interval(estimator)
    if interval is None:
        return None
    return {
        "level": interval.level,
        "low": interval.low.tolist(),
        "high": interval.high.tolist(),
    }


def _interval(estimator: Any) -> dict[str, Any] | None:
    interval = _rates_interval(estimator)
    if interval is None or estimator.classes_.size != 2:
        return None
    positive, negative = interval.both()
    return {"level": interval.level, "positive": list(positive), "negative": list(negative)}


def _tests(estimator: Any) -> dict[str, Any] | None:
    source = getattr(estimator, "rate_estimator_", None)
    noise = getattr(source, "noise_test_", None)
    symmetry = getattr(source, "symmetry_test_", None)
    if noise is None or symmetry is None:
        return None
    return {
        "noise": _test(noise, "probability_of_none"),
        "symmetry": _test(symmetry, "probability_of_equal"),
    }


def _test(test: Any, probability: str) -> dict[str, float]:
    return {
        "p_value": max(test.p_value, LEAST_P),
        probability: min(max(test.probability, LEAST_P), 1 - LEAST_P),
    }


def _check(estimator: Any) -> dict[str, Any] | None:
    fit = estimator.noise_.goodness_of_fit
    return None if fit is None else {"verdict": fit.verdict, "statistic": fit.statistic}


def _weights(estimator: Any, counts: Floats) -> dict[str, Any] | None:
    beta = getattr(estimator, "sample_weight_", None)
    if beta is None:
        return None
    size = float(estimator.effective_sample_size_)
    quantiles = np.quantile(beta, QUANTILES).tolist()
    return {
        "mean": float(np.average(beta, weights=counts)),
        "quantiles": {f"{q:g}": value for q, value in zip(QUANTILES, quantiles, strict=True)},
        "effective_sample_size": size,
        "effective_share": size / beta.size,
        "clipped_share": float(estimator.clipped_share_),
    }


def _per_class(
    classes: NDArray[Any], matrix: Floats, errors: Floats, y: ArrayLike | None, counts: Floats
) -> list[dict[str, Any]]:
    table: list[dict[str, Any]] = [
        {
            "label": label,
            "flip_rate": float(np.delete(row, k).sum()),
            "largest_weight": float(1 / row[k]) if row[k] > 0 else None,
        }
        for k, (label, row) in enumerate(zip(classes.tolist(), matrix, strict=True))
    ]
    if y is None:
        return table
    _, codes = check_labels(y, classes=classes, binary=False)
    if codes.size != counts.size:
        raise ValueError(
            f"y has {codes.size} labels, but the estimator was fitted to {counts.size} rows: give "
            "the labels that it was fitted to."
        )
    size = classes.size
    of_labels = np.asarray(np.bincount(codes, counts, minlength=size), dtype=float)
    label_share, true_share = of_labels / of_labels.sum(), true_shares(matrix, of_labels)
    for k, row in enumerate(table):
        row["n_labels"] = int(np.sum(codes == k))
        row["label_share"] = float(label_share[k])
        row["true_share"] = float(true_share[k])
        row["expected_errors"] = float(errors[k])
        row["expected_error_share"] = float(errors[k] / of_labels[k]) if of_labels[k] else None
    return table


def _warnings(estimator: Any, weights: dict[str, Any] | None) -> list[str]:
    """Return the distinct warnings."""
    said = list(estimator.diagnostics_)
    if weights is None:
        return said
    notes = judge_weight_summary(
        weights["effective_sample_size"],
        weights["effective_share"],
        weights["clipped_share"],
        weights["mean"],
    )
    return list(dict.fromkeys([*said, *map(str, notes)]))
