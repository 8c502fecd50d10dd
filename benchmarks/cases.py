"""What is measured: each case is one task, done by unflip first and then by its peers."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KernelDensity
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from unflip import ImportanceReweightingClassifier, NoiseRates, flip_labels
from unflip.density_ratio import KLIEP, ULSIF
from unflip.learners import KernelClassifier, LinearClassifier
from unflip.posterior import KernelDensityPosterior

Array = NDArray[Any]
Fitted = tuple[Array, Array, Array]
"""A kernel ratio's centres, its coefficients, and the ratio at all rows."""

PEERS = ("densratio", "skada", "cleanlab")
"""Contenders that are left out where the package of that name is not installed."""

SEED = 0
N_FEATURES = 20
N_CENTERS = 100
WIDTH = 4.5  # about what cross-validation chooses on these data
PENALTY = 0.3  # likewise
RATES = NoiseRates(positive=0.1, negative=0.3)
FLOOR_ROWS = 2000  # so that a block of kernel values stays in the processor's cache


@dataclass(frozen=True)
class Work:
    """What is timed, and what to say afterwards of the result it returns."""

    run: Callable[[], Any]
    judge: Callable[[Any], str]


@dataclass(frozen=True)
class Case:
    """A task at several numbers of rows; `contenders` prepare their work for n rows."""

    sizes: tuple[int, ...]
    quick_size: int
    contenders: dict[str, Callable[[int], Work]]


def noisy_gaussians(
    n: int, seed: int = SEED, n_features: int = N_FEATURES
) -> tuple[Array, Array, Array]:
    """Return rows of two Gaussians (Bayes accuracy 0.90), their noisy and their true labels."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, n_features)) + (y[:, None] - 0.5) * 2.56 / np.sqrt(n_features)
    return X, flip_labels(y, RATES, random_state=seed), y


# Density ratios: p(x | noisy y = 1) / p(x), whose numerator rows are rows of the denominator.


def ratio_work(n: int, solve: Callable[[Array, Array], Fitted], *, kkt: bool) -> Work:
    X, y_noisy, _ = noisy_gaussians(n)
    X_num = X[y_noisy == 1]
    return Work(lambda: solve(X_num, X), partial(judge_ratio, X=X, num=y_noisy == 1, kkt=kkt))


def judge_ratio(fitted: Fitted, X: Array, num: Array, *, kkt: bool) -> str:
    """Say mean_num log r with r scaled to mean_den r = 1, and how far KLIEP is from optimal.

    The gap is max_l mean_num(phi_l / r) / mean_den(phi_l) - 1: it bounds what the objective lacks.
    """
    centers, coef, ratio = fitted
    note = f"objective {np.log(ratio[num] / ratio.mean()).mean():.5f}"
    if not kkt:
        return note
    phi = np.exp(cdist(X, centers, "sqeuclidean") / (-2 * WIDTH**2))
    mean_den = phi.mean(axis=0)
    relative = phi[num].T @ (mean_den @ coef / (phi[num] @ coef)) / num.sum() / mean_den
    return f"{note}, KKT gap {relative.max() - 1:.0e}"


def unflip_ratio(X_num: Array, X: Array, *, model: Any) -> Fitted:
    model.fit(X_num, X)
    return model.centers_, model.coef_, model.predict(X)


def densratio_ratio(X_num: Array, X: Array, *, method: str) -> Fitted:
    np.random.seed(SEED)  # noqa: NPY002  draws the same centres as unflip's random_state
    fitted = import_module("densratio").densratio(
        X_num, X, method, sigma=WIDTH, lambda_=PENALTY, kernel_num=N_CENTERS, verbose=False
    )
    return fitted.kernel_info.centers, fitted.theta, fitted.compute_density_ratio(X)


def skada_kliep(X_num: Array, X: Array) -> Fitted:
    rows, domain = np.vstack([X, X_num]), np.repeat([1, -2], [len(X), len(X_num)])
    adapter = import_module("skada").KLIEPReweightAdapter(
        gamma=0.5 / WIDTH**2, n_centers=N_CENTERS, random_state=SEED
    )
    adapter.fit(rows, sample_domain=domain)
    ratio = adapter.compute_weights(rows, sample_domain=domain)[: len(X)]
    return adapter.centers_, adapter.alpha_, ratio


def floor_work(n: int) -> Work:
    """One matrix product whose entries are the exponents, and their exp: kernel values, no more."""
    X, y_noisy, _ = noisy_gaussians(n)
    centers = X[y_noisy == 1][:N_CENTERS]
    norms, center_norms = (X**2).sum(axis=1), (centers**2).sum(axis=1)
    left = np.column_stack([X, norms, np.ones(n)])
    right = np.vstack([-2 * centers.T, np.ones(len(centers)), center_norms]) / (-2 * WIDTH**2)
    block = np.empty((min(n, FLOOR_ROWS), len(centers)))

    def run() -> None:
        for start in range(0, n, FLOOR_ROWS):
            part = left[start : start + FLOOR_ROWS]
            np.exp(np.matmul(part, right, out=block[: len(part)]), out=block[: len(part)])

    return Work(run, lambda _: f"one GEMM + exp, n x {len(centers)}")


# Classifiers on noisy labels, judged by true ones.


def classifier_work(n: int, make: Callable[..., Any], n_features: int = N_FEATURES) -> Work:
    X, y_noisy, _ = noisy_gaussians(n, n_features=n_features)

    def judge(fitted: Any) -> str:
        X_test, _, y_test = noisy_gaussians(20_000, seed=SEED + 1, n_features=n_features)
        return f"clean accuracy {np.mean(fitted.predict(X_test) == y_test):.4f}"

    return Work(lambda: make().fit(X, y_noisy), judge)


def same_logistic(n: int) -> Work:
    """LogisticRegression with the penalty and the tolerance of LinearClassifier's defaults."""
    ours = LinearClassifier()
    make = partial(LogisticRegression, C=1 / (ours.alpha * n), tol=ours.tol)
    return classifier_work(n, make, n_features=50)


def clean_learning() -> Any:
    module = import_module("cleanlab.classification")
    # one process: the memory of others would not be seen
    return module.CleanLearning(seed=SEED, find_label_issues_kwargs={"n_jobs": 1})


# P(noisy y | x) by kernel densities; only the evaluation is timed.


def kernel_density_work(n: int, *, peer: bool) -> Work:
    X, y_noisy, _ = noisy_gaussians(n)
    scaled = StandardScaler().fit_transform(X)
    posterior = KernelDensityPosterior(bandwidth=1.0).fit(X, y_noisy)
    densities = [KernelDensity(bandwidth=1.0).fit(scaled[y_noisy == k]) for k in (0, 1)]
    prior = np.bincount(y_noisy) / n

    def bayes_rule() -> Array:
        logs = [np.log(prior[k]) + densities[k].score_samples(scaled) for k in (0, 1)]
        joint = np.exp(np.column_stack(logs))
        return joint / joint.sum(axis=1, keepdims=True)

    def judge(proba: Array) -> str:
        kernel = np.exp(-cdist(scaled[:200], scaled, "sqeuclidean") / 2)
        direct = kernel @ y_noisy / kernel.sum(axis=1)
        return f"largest error {np.abs(proba[:200, 1] - direct).max():.0e}"

    return Work(bayes_rule if peer else lambda: posterior.predict_proba(X), judge)


def _ratio_case(kkt: bool, solvers: dict[str, Callable[[Array, Array], Fitted]]) -> Case:
    contenders = {who: partial(ratio_work, solve=solve, kkt=kkt) for who, solve in solvers.items()}
    return Case((1_000, 10_000, 100_000), 1_000, {**contenders, "floor": floor_work})


def _kliep(solver: str) -> KLIEP:
    return KLIEP(WIDTH, N_CENTERS, solver=solver, random_state=SEED)


CASES = {
    "KLIEP": _ratio_case(
        True,
        {
            "unflip": partial(unflip_ratio, model=_kliep("newton")),
            "unflip, published steps": partial(unflip_ratio, model=_kliep("projected_gradient")),
            "densratio": partial(densratio_ratio, method="KLIEP"),
            "skada": skada_kliep,
        },
    ),
    "uLSIF": _ratio_case(
        False,
        {
            "unflip": partial(
                unflip_ratio, model=ULSIF(WIDTH, PENALTY, N_CENTERS, random_state=SEED)
            ),
            "densratio": partial(densratio_ratio, method="uLSIF"),
        },
    ),
    "classifier": Case(
        (1_000, 10_000, 100_000),
        1_000,
        {
            "unflip": partial(classifier_work, make=ImportanceReweightingClassifier),
            "plain logistic": partial(classifier_work, make=LogisticRegression),
            "cleanlab": partial(classifier_work, make=clean_learning),
        },
    ),
    "linear logistic": Case(
        (100_000,),
        1_000,
        {
            "unflip": partial(classifier_work, make=LinearClassifier, n_features=50),
            "scikit-learn": same_logistic,
        },
    ),
    "kernel logistic": Case(
        (2_000,),
        500,
        {
            "unflip": partial(classifier_work, make=KernelClassifier),
            "SVC": partial(classifier_work, make=SVC),
        },
    ),
    "kernel posterior": Case(
        (5_000,),
        500,
        {
            "unflip": partial(kernel_density_work, peer=False),
            "scikit-learn": partial(kernel_density_work, peer=True),
        },
    ),
}
"""By name; unflip comes first in each, and the others are compared with it."""
