"""Classifiers, posteriors and suspicious labels."""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from scipy.stats import gaussian_kde
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KernelDensity
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from benchmarks.case import SEED, Array, Case, Work, noisy_gaussians
from unflip import ImportanceReweightingClassifier, find_label_issues, flip_labels
from unflip.learners import KernelClassifier, LinearClassifier
from unflip.posterior import KernelDensityPosterior

# Classifiers on noisy labels, judged by true ones.


def classifier_work(n: int, d: int, *, make: Callable[..., Any]) -> Work:
    X, y_noisy, _ = noisy_gaussians(n, d)

    def judge(fitted: Any) -> str:
        X_test, _, y_test = noisy_gaussians(20_000, d, seed=SEED + 1)
        return f"clean accuracy {np.mean(fitted.predict(X_test) == y_test):.4f}"

    return Work(lambda: make().fit(X, y_noisy), judge)


def same_logistic(n: int, d: int) -> Work:
    """LogisticRegression with the penalty and the tolerance of LinearClassifier's defaults."""
    ours = LinearClassifier()
    make = partial(LogisticRegression, C=1 / (ours.alpha * n), tol=ours.tol)
    return classifier_work(n, d, make=make)


def clean_learning() -> Any:
    module = import_module("cleanlab.classification")
    # one process: the memory of others would not be seen
    return module.CleanLearning(seed=SEED, find_label_issues_kwargs={"n_jobs": 1})


# P(noisy y | x) by kernel densities at the training rows; the fit is not timed.


def kernel_density_work(n: int, d: int, *, who: str) -> Work:
    X, y_noisy, _ = noisy_gaussians(n, d)
    scaled = StandardScaler().fit_transform(X)
    prior = np.bincount(y_noisy) / n
    log_densities: Callable[[int], Array]
    if who == "scikit-learn":
        trees = [KernelDensity(bandwidth=1.0).fit(scaled[y_noisy == k]) for k in (0, 1)]
        log_densities = lambda k: trees[k].score_samples(scaled)  # noqa: E731
    elif who == "scipy":
        # its kernel has the class's covariance, here nearly the identity: a close relative
        kernels = [gaussian_kde(scaled[y_noisy == k].T, bw_method=1.0) for k in (0, 1)]
        log_densities = lambda k: kernels[k].logpdf(scaled.T)  # noqa: E731

    def bayes_rule() -> Array:
        joint = np.column_stack([np.log(prior[k]) + log_densities(k) for k in (0, 1)])
        joint = np.exp(joint - joint.max(axis=1, keepdims=True))
        return np.asarray(joint / joint.sum(axis=1, keepdims=True))

    def judge(proba: Array) -> str:
        kernel = np.exp(-cdist(scaled[:200], scaled, "sqeuclidean") / 2)
        direct = kernel @ y_noisy / kernel.sum(axis=1)
        error = np.abs(proba[:200, 1] - direct)
        return f"error {error.mean():.0e} on average, {error.max():.0e} at most"

    posterior = KernelDensityPosterior(bandwidth=1.0, random_state=SEED).fit(X, y_noisy)
    return Work(bayes_rule if who != "unflip" else lambda: posterior.predict_proba(X), judge)


# Suspicious labels, given P(noisy y | x).


def issues_work(n: int, d: int, *, find: Callable[[Array, Array], Array]) -> Work:
    """Ten classes of which 20 % of labels are wrong; `d` is their number."""
    rng = np.random.default_rng(SEED)
    clean = rng.dirichlet(np.full(d, 0.1), n)
    y = (rng.uniform(size=(n, 1)) > clean.cumsum(axis=1)[:, :-1]).sum(axis=1)
    noise = np.full((d, d), 0.2 / (d - 1)) + (0.8 - 0.2 / (d - 1)) * np.eye(d)
    y_noisy = flip_labels(y, noise, random_state=SEED)
    noisy_posterior = clean @ noise

    def judge(found: Array) -> str:
        wrong = np.mean(y_noisy[found] != y[found])
        return f"{len(found)} found, of which {wrong:.3f} are wrong"

    return Work(lambda: find(noisy_posterior, y_noisy), judge)


def unflip_issues(noisy_posterior: Array, y: Array) -> Array:
    return np.asarray(find_label_issues(y=y, pred_probs=noisy_posterior))


def cleanlab_issues(noisy_posterior: Array, y: Array) -> Array:
    find = import_module("cleanlab.filter").find_label_issues
    return np.asarray(
        find(y, noisy_posterior, return_indices_ranked_by="self_confidence", n_jobs=1)
    )


MODEL_CASES = {
    "classifier": Case(
        {
            "unflip": partial(classifier_work, make=ImportanceReweightingClassifier),
            "plain logistic": partial(classifier_work, make=LogisticRegression),
            "cleanlab": partial(classifier_work, make=clean_learning),
        },
        quick=(1_000, 20),
        shapes=((1_000, 20), (10_000, 20), (100_000, 20)),
        more=((1_000_000, 20),),
    ),
    "classifier, KLIEP": Case(
        {
            "unflip": partial(
                classifier_work,
                make=partial(
                    ImportanceReweightingClassifier,
                    posterior="kliep",
                    noise_rates="minimum",
                    random_state=SEED,
                ),
            ),
            "plain logistic": partial(classifier_work, make=LogisticRegression),
            "cleanlab": partial(classifier_work, make=clean_learning),
        },
        quick=(1_000, 20),
        shapes=((10_000, 20),),
        more=((100_000, 20), (1_000_000, 20)),
    ),
    "linear logistic": Case(
        {
            "unflip": partial(classifier_work, make=LinearClassifier),
            "scikit-learn": same_logistic,
        },
        quick=(1_000, 50),
        shapes=((100_000, 50),),
    ),
    "kernel logistic": Case(
        {
            "unflip": partial(classifier_work, make=KernelClassifier),
            "SVC": partial(classifier_work, make=SVC),
        },
        quick=(500, 20),
        shapes=((2_000, 20),),
    ),
    "kernel posterior": Case(
        {who: partial(kernel_density_work, who=who) for who in ("unflip", "scikit-learn", "scipy")},
        quick=(500, 20),
        shapes=((5_000, 20), (20_000, 2), (100_000, 2), (100_000, 20)),
        more=((5_000, 2), (20_000, 20), (1_000_000, 2)),
        limits=(("scikit-learn", 20_000), ("scipy", 20_000)),
    ),
    "label issues": Case(
        {
            "unflip": partial(issues_work, find=unflip_issues),
            "cleanlab": partial(issues_work, find=cleanlab_issues),
        },
        quick=(10_000, 10),
        shapes=((1_000_000, 10),),
    ),
}
