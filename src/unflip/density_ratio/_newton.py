"""One Newton step under theta >= 0."""

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.linalg.lapack import dposv
from scipy.optimize import nnls

from unflip._utils.typing import Array

MAX_EXCHANGES = 6
"""Maximum number of exchanges before non-negative least squares takes over."""


def nonnegative_newton_target(hessian: Array, gradient: Array, point: Array) -> Array:
    """Return argmin over z >= 0 of (z-p)'H(z-p) / 2 + g'(z-p).

    A ridge around the point, tiny unless H is nearly singular, makes H positive definite. It does
    not move a minimum.
    """
    ridge = 1e-12 * np.trace(hessian)
    for _ in range(8):
        ridged = hessian.copy()
        ridged[np.diag_indices(point.size)] += ridge
        linear = ridged @ point - gradient
        # variables that stay positive after a coordinate step
        free = point * np.diag(ridged) > gradient
        try:
            return _by_exchanges(ridged, linear, free)
        except (LinAlgError, RuntimeError):  # not positive definite, or nnls cycles
            ridge *= 100
    return point


def _by_exchanges(H: Array, q: Array, free: Array) -> Array:
    """Return argmin over z >= 0 of z'Hz / 2 - q'z, from a guess of the positive variables.

    All negative variables, and all zeros with a negative slope, are exchanged at once. A good guess
    needs one or two exchanges. A bad one may cycle; then non-negative least squares in the Cholesky
    factor of H, one variable at a time, is faster.
    """
    rounding = 1e-13 * np.abs(q).max()
    for _ in range(MAX_EXCHANGES):
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
