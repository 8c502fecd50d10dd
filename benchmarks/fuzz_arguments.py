"""What `benchmarks.fuzz` calls every parameter with, by its name."""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import KFold
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from benchmarks.fuzz_inputs import (
    ODD,
    Sizes,
    batches,
    classes,
    codes_of,
    fitted,
    known_rates_or_a_way,
    labels,
    noise,
    probabilities,
    rows,
    scores,
    weights,
)
from unflip import CheckedLabels, InverseRates, NoiseRates
from unflip.density_ratio import KLIEP, KMM, ULSIF, BasuDivergence, BregmanRatio
from unflip.learners import KernelClassifier, LinearClassifier
from unflip.losses import LOSSES, Cauchy
from unflip.noise import RatesInterval
from unflip.posterior import (
    ChannelPosterior,
    KernelDensityPosterior,
    ProbabilisticPosterior,
)

INTERVAL = RatesInterval.from_pairs((0.1, 0.4), (0.0, 0.2))


def count(*choices: Any) -> Callable[[Sizes], Any]:
    """Return what draws one of the choices, or what is odd."""
    return lambda s: s.made(ODD) if s.is_odd() else s.one_of(choices)


def made(*choices: Callable[[], Any]) -> Callable[[Sizes], Any]:
    """Return what makes one of the choices anew, or what is odd."""
    return lambda s: s.made(ODD) if s.is_odd() else s.made(choices)


def counts_of_labels(s: Sizes) -> Any:
    """Return counts, one a class."""
    return s.random.integers(0, 9, s.k) if not s.is_odd() else s.one_of([[-1, 2], [np.nan], "a", 3])


def checked_rows(s: Sizes) -> Any:
    """Return true labels of some rows, or what is none."""
    if s.is_odd():
        return s.one_of([{0: 1}, "checked", [0, 1], CheckedLabels([10**6], [0])])
    chosen = s.random.permutation(s.n)[: max(s.n // 2, 1)]
    chance = s.one_of([None, 0.5, s.random.uniform(0.01, 0.05, chosen.size)])
    return CheckedLabels(chosen, codes_of(s)[chosen] if s.n else [], chance) if s.n else None


def positions(s: Sizes) -> Any:
    """Return positions of rows."""
    if s.is_odd():
        return s.one_of([[-1, 2], [0.5], "ab", 3, [[1]], None])
    return np.arange(s.n)


ARGUMENTS: dict[str, Callable[[Sizes], Any]] = {
    # data
    "X": rows,
    "X_num": rows,
    "X_den": rows,
    "X_test": rows,
    "K": lambda s: rows(s) if s.is_odd() else np.eye(s.n),
    "K_diagonal": lambda s: scores(s) if s.is_odd() else np.ones(s.n),
    "y": labels,
    "y_noisy": labels,
    "y_pred": labels,
    "y_test": labels,
    "codes": lambda s: labels(s) if s.is_odd() else codes_of(s),
    "wrong": lambda s: labels(s) if s.is_odd() else s.random.random(s.n) < 0.3,
    "proba": lambda s: probabilities(s) if s.is_odd() else s.random.random(s.n),
    "by": lambda s: labels(s) if s.is_odd() else s.random.integers(0, 3, s.n),
    "labels": lambda s: labels(s) if s.is_odd() else None,
    "y_score": scores,
    "y_proba": probabilities,
    "noisy_posterior": probabilities,
    "pred_probs": probabilities,
    "clean_posterior": probabilities,
    "sample_weight": weights,
    "checked": checked_rows,
    "code": made(lambda: "clipped", lambda: "mean_weight"),
    "severity": count("note", "warning", "error", "loud"),
    "numbers": made(dict, lambda: {"share": 0.1}),
    "error_rate": made(lambda: None),
    "hypotheses": made(dict, lambda: {"flips": 1.0}),
    "before": made(lambda: None),
    "determined": count("auto", True, False, "yes", 2),
    "rows": positions,
    "probability": lambda s: weights(s) if s.is_odd() else s.random.uniform(0.1, 1, s.n),
    "weights": lambda s: weights(s) if s.is_odd() else s.random.random(s.n),
    "weight_num": weights,
    "weight_den": weights,
    "classes": classes,
    "data": batches,
    # noise
    "rates": noise,
    "noise_rates": known_rates_or_a_way,
    "known": lambda s: noise(s) if s.is_odd() else s.one_of([None, NoiseRates(None, 0.0)]),
    "inverse_rates": lambda s: noise(s) if s.is_odd() else InverseRates(0.1, 0.2),
    "noisy_prior": count(0.5, 0.3),
    "clean_prior": count(None, 0.4),
    "positive": count(0.0, 0.1, 0.3, (0.1, 0.2), None),
    "negative": count(0.0, 0.1, 0.3, (0.1, 0.2), None),
    "matrix": noise,
    "rate": count(0.1, 0.4),
    "interval": lambda s: noise(s) if s.is_odd() else s.one_of([None, INTERVAL]),
    "low": lambda s: noise(s) if s.is_odd() else np.full((s.k, s.k), 0.1),
    "high": lambda s: noise(s) if s.is_odd() else np.full((s.k, s.k), 0.7),
    "label_error_rate": count(None, (0.0, 0.2), 0.1),
    "grid": count([(0.0, 0.0), (0.1, 0.2)], [(0.0, 0.0)]),
    # parts
    "estimator": made(
        lambda: None,
        LogisticRegression,
        lambda: DecisionTreeClassifier(max_depth=2),
        SVC,
        lambda: SGDClassifier("log_loss"),
    ),
    "posterior": made(
        lambda: "auto",
        lambda: "probabilistic",
        lambda: "kde",
        lambda: "kliep",
        lambda: "ulsif",
        lambda: "kmm",
        lambda: DecisionTreeClassifier(max_depth=2),
        KernelDensityPosterior,
        ProbabilisticPosterior,
        lambda: ChannelPosterior("linear"),
    ),
    "candidates": made(
        lambda: None,
        lambda: [LogisticRegression(), GaussianNB()],
        lambda: [HistGradientBoostingClassifier(max_iter=3)],
    ),
    "learner": made(lambda: None, LinearClassifier, lambda: KernelClassifier(alpha=0.1)),
    "ratio": made(lambda: None, KLIEP, ULSIF, lambda: KMM(1.0), BregmanRatio),
    "loss": made(*(lambda name=name: name for name in LOSSES), Cauchy),
    "divergence": made(lambda: "kl", lambda: "squared", lambda: "basu", BasuDivergence),
    "features": made(lambda: "nystroem", lambda: "linear", lambda: "auto", lambda: "trees"),
    "kernel": count("rbf", "linear", "poly", "laplacian"),
    "calibration": count(None, None, "sigmoid", "isotonic"),
    "metric": count("accuracy", "f1", "roc_auc", "neg_log_loss"),
    "classifier": fitted,
    "audit": count(None),
    "method": count(None),
    "scoring": count("forward_loglik", "noisy_accuracy", None),
    # parameters
    "cv": made(lambda: None, lambda: 2, lambda: 3, lambda: KFold(2)),
    "random_state": count(0, 1, None),
    "weighting": count("auto", "relabel", "rho", "rho", "pi", "pi_printed"),
    "bandwidth": count("cv", "median", 1.0, 0.3),
    "bandwidths": count(None, [0.5, 1.0]),
    "widths": count(None, [1.0, 4.0]),
    "regularization": count("cv", 0.1, 0.0),
    "regularizations": count(None, [0.1, 1.0]),
    "n_centers": count(5, 100),
    "solver": count("newton", "projected_gradient"),
    "search": count("grid", "grid", "downward"),
    "alpha": count(0.1, 0.001, 1.0),
    "gamma": count("scale", 0.5),
    "penalty": count("l2", "elasticnet"),
    "l1_ratio": count(0.5, 0.0, 1.0),
    "fit_intercept": count(True, False),
    "degree": count(2, 3),
    "coef0": count(1, 0),
    "quantile": count(0.0, 0.03, 0.2),
    "delta": count(0.1, 0.05),
    "hardened": count(True, False),
    "normalize": count(True, False),
    "progress": count(True, False),
    "estimate": count("median", "mean"),
    "cost": count("rates", 0.4),
    "epsilon": count(None, 0.1),
    "upper_bound": count(1000.0, 1.0),
    "block_size": count(2000, 10),
    "n_landmarks": count(300, 5, None),
    "max_exact": count(3000, 10),
    "exact_rows": count(20_000, 10, None),
    "max_rows": count(20_000, 10_000, 1),
    "n_epochs": count(1, 2),
    "tol": count(1e-3, 1e-6),
    "max_iter": count(30, 100),
    "C": count(1.0, 0.1),
    "power": count(0.5, 1.0),
    "scale": count(1.0, 2.0),
    "reach": count(2.0),
    "n_classes": lambda s: s.made(ODD) if s.is_odd() else s.k,
    "n_samples": count(10, 100, 2),
    "n_features": count(1, 3),
    "n_ratio": count(None, 50),
    "n_draws": count(5, 10),
    "bins": count(3, 30),
    "n_bins": count(3, 10),
    "max_slices": count(20, 2),
    "strategy": count("uniform", "quantile"),
    "pos_label": count(None, 1, "bee"),
    "precision": count(None, 0.5),
    "threshold": count(None, 0.5, 1, 0),
    "return_frame": count(None, True, False),
    "ignore": made(lambda: None, lambda: ["few_rows"], lambda: "few_rows", lambda: [1]),
    "level": count(0.95, 0.5),
    "batch_rows": count(7, 100),
    # bounds and counts
    "radius": count(1.0, 5.0),
    "lipschitz": count(1.0, 0.5),
    "rademacher": count(0.1, 0.01),
    "rademacher_ratio": count(0.1, 0.01),
    "loss_bound": count(1.0, 5.0),
    "u": count(None, 0.0, 0.1),
    "empirical": count(True, False),
    "minimum_gap": count(0.0, 0.1),
    "constant": count(1.0),
    "value": count(0.5, 1.0),
    "standard_error": count(0.1),
    "estimated": noise,
    "clip": count(True, False),
    "found": count(3, 0, [1, 2]),
    "n": count(10, 5, [3, 4]),
    "counts": lambda s: (
        s.made(ODD) if s.is_odd() else s.random.integers(0, 9, (s.k, s.k)).astype(float)
    ),
    "unsure": counts_of_labels,
    "label_counts": counts_of_labels,
}
"""What to call any parameter of this name with."""
