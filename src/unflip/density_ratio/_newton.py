"""One Newton step under theta >= 0."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.linalg.lapack import dposv
from scipy.optimize import nnls

Array = NDArray[Any]

EXCHANGES = 6
"""Bound on the exchanges of variables, after which non-negative least squares decides."""


def nonnegative_newton_target(hessian: Array, gradient: Array, point: Array) -> Array:
    """Return argmin over z >= 0 of (z-p)'H(z-p) / 2 + g'(z-p).

    A ridge, tiny unless H is nearly singular, bends the model around the point only: it leaves a
    minimum where it is.
    """
    ridge = 1e-12 * np.trace(hessian)
    for _ in range(8):
        bent = hessian.copy()
        bent[np.diag_indices(point.size)] += ridge
        linear = bent @ point - gradient
        # those that a step of their own would leave above zero
        free = point * np.diag(bent) > gradient
        try:
            return _by_exchanges(bent, linear, free)
        except (LinAlgError, RuntimeError):  # not positive definite, or nnls cycles
            ridge *= 100
    return point


def _by_exchanges(H: Array, q: Array, free: Array) -> Array:
    """Return argmin over z >= 0 of z'Hz / 2 - q'z, from a guess of which z are above zero.

    All variables on the wrong side of zero, and all zeros at which the slope points down, change
    places at once. From a good guess that takes a round or two; from a bad one it may cycle, so
    that least squares in the Cholesky factor of H, one variable at a time, is the faster way.
    """
    rounding = 1e-13 * np.abs(q).max()
    for _ in range(EXCHANGES):
        z = np.zeros_like(q)
        if free.any():
            places = np.flatnonzero(free)
            _, z[places], failed = dposv(H[places[:, None], places], q[places])
            if failed:
                raise LinAlgError("H is not positive definite.")
        wrong = np.where(free, z < 0, H @ z - q < -rounding)
        if not wrong.any():
            return z
        if wrong.sum() > q.size // 5:
            break
        free = free ^ wrong
    factor = cholesky(H, lower=True)
    return np.asarray(nnls(factor.T, solve_triangular(factor, q, lower=True))[0])
