"""Density ratios p(x | noisy y = 1) / p(x), whose numerator rows are rows of the denominator."""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from benchmarks.case import SEED, Array, Case, Work, noisy_gaussians
from unflip._utils.gaussian_kernel import width_grid
from unflip.density_ratio import KLIEP, KMM, ULSIF, RuLSIF

N_CENTERS = 100
PENALTY = 0.3  # about what cross-validation chooses on these data
ALPHA = 0.1
FLOOR_ROWS = 2000  # so that a block of kernel values stays in the processor's cache
JUDGED_ROWS = 200_000  # the KKT gap takes whole matrices: it is judged where they are small


def width(d: int) -> float:
    """Return about what cross-validation chooses on these data."""
    return float(np.sqrt(d))


def widths(X_num: Array) -> Array:
    """Return nine widths for all who choose one."""
    return width_grid(X_num[:N_CENTERS])


class Fitted:
    """A ratio at all rows and, where it is a sum of kernels, their centres, weights and width."""

    def __init__(
        self,
        ratio: Array,
        centers: Array | None = None,
        coef: Array | None = None,
        width: float | None = None,
    ) -> None:
        self.ratio, self.centers, self.coef, self.width = ratio, centers, coef, width


Solver = Callable[[Array, Array, bool], Fitted]
"""(X_num, X, choose the width?) -> the ratio."""


def ratio_work(n: int, d: int, *, solve: Solver, choose: bool, kkt: bool) -> Work:
    X, y_noisy, _ = noisy_gaussians(n, d)
    X_num = X[y_noisy == 1]
    judge = partial(judge_ratio, X=X, num=y_noisy == 1, kkt=kkt, choose=choose)
    return Work(lambda: solve(X_num, X, choose), judge)


def judge_ratio(fitted: Fitted, X: Array, num: Array, *, kkt: bool, choose: bool) -> str:
    """Say mean_num log r with r scaled to mean_den r = 1, and how far KLIEP is from optimal.

    The gap is max_l mean_num(phi_l / r) / mean_den(phi_l) - 1: it bounds what the objective lacks.
    """
    ratio = np.maximum(fitted.ratio, 1e-300)
    words = [f"objective {np.log(ratio[num] / ratio.mean()).mean():.5f}"]
    if choose and fitted.width is not None:
        words.append(f"width {fitted.width:.3g}")
    if kkt and fitted.centers is not None and fitted.coef is not None and len(X) <= JUDGED_ROWS:
        phi = np.exp(cdist(X, fitted.centers, "sqeuclidean") / (-2 * fitted.width**2))  # type: ignore[operator]
        mean_den = phi.mean(axis=0)
        scaled = mean_den @ fitted.coef / (phi[num] @ fitted.coef)
        relative = phi[num].T @ scaled / num.sum() / mean_den
        words.append(f"KKT gap {relative.max() - 1:.0e}")
    return ", ".join(words)


def unflip_ratio(X_num: Array, X: Array, choose: bool, *, make: Callable[..., Any]) -> Fitted:
    bandwidth: Any = "cv" if choose else width(X.shape[1])
    tried = widths(X_num) if choose else None
    model = make(bandwidth, bandwidths=tried, random_state=SEED).fit(X_num, X)
    return Fitted(model.predict(X), model.centers_, model.coef_, model.bandwidth_)


def least_squares(make: Callable[..., Any], bandwidth: Any, **parameters: Any) -> Any:
    """Return ULSIF or RuLSIF, whose penalty is given where the width is."""
    penalty = "cv" if bandwidth == "cv" else PENALTY
    return make(bandwidth=bandwidth, regularization=penalty, **parameters)


def densratio_ratio(X_num: Array, X: Array, choose: bool, *, method: str) -> Fitted:
    np.random.seed(SEED)  # noqa: NPY002  draws the same centres as unflip's random_state
    fitted = import_module("densratio").densratio(
        X_num,
        X,
        method,
        sigma=widths(X_num) if choose else width(X.shape[1]),
        lambda_="auto" if choose else PENALTY,
        alpha=ALPHA,
        kernel_num=N_CENTERS,
        verbose=False,
    )
    kernel = fitted.kernel_info
    ratio = fitted.compute_density_ratio(X)
    return Fitted(ratio, kernel.centers, fitted.theta, float(kernel.sigma))


def skada_ratio(X_num: Array, X: Array, choose: bool, *, adapter: str) -> Fitted:
    rows, domain = np.vstack([X, X_num]), np.repeat([1, -2], [len(X), len(X_num)])
    gamma = 0.5 / width(X.shape[1]) ** 2
    parameters: dict[str, Any] = {"gamma": gamma}
    if adapter.startswith("KLIEP"):
        tried = list(0.5 / widths(X_num) ** 2)
        parameters |= {"n_centers": N_CENTERS, "random_state": SEED}
        parameters |= {"gamma": tried if choose else gamma, "cv": 5}
    fitted = getattr(import_module("skada"), adapter)(**parameters)
    fitted.fit(rows, sample_domain=domain)
    ratio = fitted.compute_weights(rows, sample_domain=domain)[: len(X)]
    if not adapter.startswith("KLIEP"):
        return Fitted(ratio)
    chosen = float((0.5 / fitted.best_gamma_) ** 0.5) if choose else width(X.shape[1])
    return Fitted(ratio, fitted.centers_, fitted.alpha_, chosen)


def adapt_ratio(X_num: Array, X: Array, choose: bool, *, method: str) -> Fitted:
    """Return the weights of adapt, which needs TensorFlow; its KLIEP runs Frank-Wolfe."""
    make = getattr(import_module("adapt.instance_based"), method)
    gamma = 0.5 / (widths(X_num) if choose else np.array([width(X.shape[1])])) ** 2
    parameters: dict[str, Any] = {"kernel": "rbf", "gamma": gamma.tolist(), "verbose": 0}
    if method == "KMM":
        parameters |= {"gamma": float(gamma[0])}
    else:
        parameters |= {"max_centers": N_CENTERS}
    if method == "ULSIF":
        parameters |= {"lambdas": np.logspace(-3, 1, 9).tolist() if choose else [PENALTY]}
    model = make(random_state=SEED, **parameters)
    weights = model.fit_weights(X, X_num)
    if method != "KMM":  # which has weights for its own rows only
        weights = model.predict_weights(X)
    return Fitted(np.asarray(weights).ravel())


def kmm_ratio(X_num: Array, X: Array, choose: bool) -> Fitted:
    model = KMM(width(X.shape[1]), random_state=SEED).fit(X_num, X)
    return Fitted(model.weights_)


def floor_work(n: int, d: int) -> Work:
    """One matrix product whose entries are the exponents, and their exp: kernel values, no more."""
    X, y_noisy, _ = noisy_gaussians(n, d)
    centers = X[y_noisy == 1][:N_CENTERS]
    norms, center_norms = (X**2).sum(axis=1), (centers**2).sum(axis=1)
    left = np.column_stack([X, norms, np.ones(n)])
    right = np.vstack([-2 * centers.T, np.ones(len(centers)), center_norms]) / (-2 * width(d) ** 2)
    block = np.empty((min(n, FLOOR_ROWS), len(centers)))

    def run() -> None:
        for start in range(0, n, FLOOR_ROWS):
            part = left[start : start + FLOOR_ROWS]
            np.exp(np.matmul(part, right, out=block[: len(part)]), out=block[: len(part)])

    return Work(run, lambda _: f"one GEMM + exp, n x {len(centers)}")


def _contenders(
    solvers: dict[str, Solver], *, choose: bool = False, kkt: bool = False
) -> dict[str, Callable[[int, int], Work]]:
    works: dict[str, Callable[[int, int], Work]] = {
        who: partial(ratio_work, solve=solve, choose=choose, kkt=kkt)
        for who, solve in solvers.items()
    }
    return works | {"floor": floor_work}


KLIEP_SOLVERS: dict[str, Solver] = {
    "unflip": partial(unflip_ratio, make=KLIEP),
    "densratio": partial(densratio_ratio, method="KLIEP"),
    "skada": partial(skada_ratio, adapter="KLIEPReweightAdapter"),
    "adapt": partial(adapt_ratio, method="KLIEP"),
}
PUBLISHED: dict[str, Solver] = {
    "unflip, published steps": partial(
        unflip_ratio, make=partial(KLIEP, solver="projected_gradient")
    )
}
ULSIF_SOLVERS: dict[str, Solver] = {
    "unflip": partial(unflip_ratio, make=partial(least_squares, ULSIF)),
    "densratio": partial(densratio_ratio, method="uLSIF"),
    "adapt": partial(adapt_ratio, method="ULSIF"),
}
RULSIF_SOLVERS: dict[str, Solver] = {
    "unflip": partial(unflip_ratio, make=partial(least_squares, partial(RuLSIF, ALPHA))),
    "densratio": partial(densratio_ratio, method="RuLSIF"),
}

RATIO_CASES = {
    "KLIEP": Case(
        _contenders(KLIEP_SOLVERS | PUBLISHED, kkt=True),
        quick=(1_000, 20),
        shapes=((1_000, 20), (10_000, 20), (100_000, 20), (200_000, 20), (200_000, 100)),
        more=(
            *((n, d) for n in (1_000, 10_000, 100_000, 1_000_000) for d in (2, 100)),
            (1_000_000, 20),
        ),
        limits=(("skada", 10_000), ("adapt", 100_000), ("unflip, published steps", 100_000)),
    ),
    "KLIEP, width chosen": Case(
        _contenders(KLIEP_SOLVERS, choose=True),
        quick=(1_000, 20),
        shapes=((1_000, 20), (10_000, 20), (100_000, 20)),
        limits=(("densratio", 10_000), ("skada", 1_000), ("adapt", 1_000)),
    ),
    "uLSIF": Case(
        _contenders(ULSIF_SOLVERS),
        quick=(1_000, 20),
        shapes=((10_000, 20), (100_000, 20)),
        more=((1_000, 20), (1_000_000, 20)),
    ),
    "uLSIF, width and penalty chosen": Case(
        _contenders(ULSIF_SOLVERS, choose=True),
        quick=(1_000, 20),
        shapes=((1_000, 20), (10_000, 20), (100_000, 20)),
        limits=(("densratio", 10_000), ("adapt", 10_000)),
    ),
    "RuLSIF, width and penalty chosen": Case(
        _contenders(RULSIF_SOLVERS, choose=True),
        quick=(1_000, 20),
        shapes=((1_000, 20),),
        more=((10_000, 20),),
    ),
    "KMM": Case(
        {
            "unflip": partial(ratio_work, solve=kmm_ratio, choose=False, kkt=False),
            "skada": partial(
                ratio_work,
                solve=partial(skada_ratio, adapter="KMMReweightAdapter"),
                choose=False,
                kkt=False,
            ),
            "adapt": partial(
                ratio_work, solve=partial(adapt_ratio, method="KMM"), choose=False, kkt=False
            ),
        },
        quick=(500, 20),
        shapes=((1_000, 20), (10_000, 20)),
        more=((100_000, 20),),
        limits=(("skada", 1_000), ("adapt", 1_000)),
    ),
}
