"""A fitted estimator as one plain dictionary."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from unflip._utils.typing import Record
from unflip.diagnostics import diagnose_weight_summary, sentences, true_shares
from unflip.estimate import NoiseEstimate

MIN_P = 1e-4
"""Minimum p-value or probability that is reported; smaller ones are replaced by this bound."""

QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)


def summary(estimator: Any) -> dict[str, Any]:
    """Return the results of a fitted estimator as numbers, lists and text, ready for `json.dumps`.

    Parameters
    ----------
    estimator : ImportanceReweightingClassifier or LabelAudit
        A fitted estimator.

    Returns
    -------
    summary : dict
        With these keys, None where something does not apply (infinite numbers are None, too):

        - `estimator`, `n_samples`, `classes`.
        - `noise_rates`: `positive` and `negative`, for two classes.
        - `interval`: its `level`, and (low, high) of `positive` and `negative`, for two classes
          whose rates were estimated.
        - `tests` of no noise and of equal rates; p-values and probabilities below 0.0001 are given
          as 0.0001.
        - `check`, the goodness of fit of the noise model: its `verdict` and `statistic`.
        - `rates_given`: whether the rates were given.
        - `label_error_range`: (low, high) of the label error rate, `at_random` if errors depend on
          the true class only, and `by_row` if they may depend on the sample.
        - `verdict`: the `code` and the `sentence` on how many labels are wrong.
        - `range`: the sentence on what the verdict assumes; empty with checked samples.
        - `checked`: `n_rows`, the `label_error_rate` (its `value`, and intervals at a number
          `fixed_n` in advance and `at_any_time`), and the weight of each of the `hypotheses` on how
          errors arise; None unless checked samples were drawn.
        - `transition_matrix`, and `transition_interval`: the `level`, and the `low` and `high` ends
          of every entry, where T was estimated.
        - `information_left`: 1 - rho_pos - rho_neg, or its generalisation to more classes.
        - `expected_errors` and `expected_error_share`: the number and share of wrong labels.
        - `weights`: `mean`, `quantiles`, `effective_sample_size`, `effective_share` and
          `clipped_share`, for a classifier.
        - `per_class`: `label`, `flip_rate`, `largest_weight`, `n_labels`, `label_share`,
          `true_share`, `expected_errors` and `expected_error_share` of each class.
        - `warnings` and `notes`: lists of sentences.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from unflip import ImportanceReweightingClassifier, NoiseRates, flip_labels
    >>> from unflip.inspection import summary
    >>> X, y = make_classification(2000, class_sep=1.5, random_state=0)
    >>> rates = NoiseRates(positive=0.4, negative=0.1)
    >>> y_noisy = flip_labels(y, rates, random_state=0)
    >>> found = summary(ImportanceReweightingClassifier(noise_rates=rates).fit(X, y_noisy))
    >>> found["noise_rates"]
    {'positive': 0.4, 'negative': 0.1}
    >>> [round(a["true_share"], 2) for a in found["per_class"]]
    [0.51, 0.49]
    """
    check_is_fitted(estimator)
    try:
        noise: NoiseEstimate = estimator.noise_
    except AttributeError as error:
        raise TypeError(
            f"{type(estimator).__name__} has no noise_: give a fitted "
            "ImportanceReweightingClassifier or LabelAudit."
        ) from error
    n_samples = noise.codes.size
    _, at_random, by_row = noise.error_rate
    weights, matrix = _weights(estimator), noise.transition
    interval = noise.transition_interval
    if interval is None and estimator.rate_estimator_ is not None:  # a bootstrap, if there is time
        interval = getattr(estimator.rate_estimator_, "interval_", None)
    for_two = noise.classes.size == 2
    return {
        "estimator": type(estimator).__name__,
        "n_samples": n_samples,
        "classes": noise.classes.tolist(),
        "noise_rates": _by_class((matrix[1, 0], matrix[0, 1])) if for_two else None,
        "interval": {"level": interval.level, **_by_class(interval.both())}
        if for_two and interval is not None
        else None,
        "tests": _tests(estimator.rate_estimator_),
        "check": _check(noise),
        "rates_given": not noise.estimated,
        "label_error_range": {"at_random": list(at_random), "by_row": list(by_row)},
        "verdict": {"code": noise.verdict.code, "sentence": str(noise.verdict)},
        "range": " ".join(sentences(noise.findings, "assumption")),
        "checked": _checked(noise),
        "transition_matrix": matrix.tolist(),
        "transition_interval": None
        if interval is None
        else {
            "level": interval.level,
            "low": interval.low.tolist(),
            "high": interval.high.tolist(),
        },
        "information_left": noise.noise_rates.information_left,
        "expected_errors": noise.n_errors,
        "expected_error_share": noise.error_rate.value,
        "weights": weights,
        "per_class": _per_class(noise),
        "warnings": noise.warnings,
        "notes": _notes(noise, weights),
    }


def _checked(noise: NoiseEstimate) -> Record | None:
    if noise.checked is None or noise.counted is None:
        return None
    return {
        "n_rows": noise.counted.n_rows,
        "label_error_rate": noise.counted.as_record(),
        "hypotheses": noise.checked.hypotheses,
    }


def _by_class(pair: Any) -> Record:
    """Return what belongs to the positive and to the negative class, by these names."""
    positive, negative = np.asarray(pair, dtype=float).tolist()
    return {"positive": positive, "negative": negative}


def _tests(rate_estimator: Any) -> Record | None:
    noise = getattr(rate_estimator, "noise_test_", None)
    symmetry = getattr(rate_estimator, "symmetry_test_", None)
    if noise is None or symmetry is None:
        return None
    return {
        "noise": _test(noise, "probability_of_none"),
        "symmetry": _test(symmetry, "probability_of_equal"),
    }


def _test(test: Any, probability: str) -> dict[str, float]:
    return {
        "p_value": max(test.p_value, MIN_P),
        probability: min(max(test.probability, MIN_P), 1 - MIN_P),
    }


def _check(noise: NoiseEstimate) -> Record | None:
    fit = noise.goodness_of_fit
    return None if fit is None else {"verdict": fit.verdict, "statistic": fit.statistic}


def _weights(estimator: Any) -> Record | None:
    beta = getattr(estimator, "sample_weight_", None)
    if beta is None:
        return None
    size = float(estimator.effective_sample_size_)
    quantiles = np.quantile(beta, QUANTILES).tolist()
    return {
        "mean": float(np.average(beta, weights=estimator.noise_.sample_weight)),
        "quantiles": {f"{q:g}": value for q, value in zip(QUANTILES, quantiles, strict=True)},
        "effective_sample_size": size,
        "effective_share": size / beta.size,
        "clipped_share": float(estimator.clipped_share_),
    }


def _per_class(noise: NoiseEstimate) -> list[Record]:
    n_classes, matrix = noise.classes.size, noise.transition
    n_labels = np.bincount(noise.codes, minlength=n_classes)
    counts = np.bincount(noise.codes, noise.sample_weight, minlength=n_classes).astype(float)
    errors, true_share = noise.errors_by_label, true_shares(matrix, counts)
    return [
        {
            "label": label,
            "flip_rate": float(np.delete(matrix[k], k).sum()),
            "largest_weight": float(1 / matrix[k, k]) if matrix[k, k] > 0 else None,
            "n_labels": int(n_labels[k]),
            "label_share": float(counts[k] / counts.sum()),
            "true_share": float(true_share[k]),
            "expected_errors": float(errors[k]),
            "expected_error_share": float(errors[k] / counts[k]) if counts[k] else None,
        }
        for k, label in enumerate(noise.classes.tolist())
    ]


def _notes(noise: NoiseEstimate, weights: Record | None) -> list[str]:
    """Return the notes on the estimate and on the weights."""
    findings = list(noise.findings)
    if weights is not None:
        findings += diagnose_weight_summary(
            weights["effective_sample_size"],
            weights["effective_share"],
            weights["clipped_share"],
            weights["mean"],
        )
    return sentences(findings, "note")
