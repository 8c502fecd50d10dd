"""One Newton step under theta >= 0."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.optimize import nnls

Array = NDArray[Any]


def nonnegative_newton_target(hessian: Array, gradient: Array, point: Array) -> Array:
    """Return argmin over z >= 0 of (z-p)'H(z-p) / 2 + g'(z-p).

    Non-negative least squares in the Cholesky factor of H. A ridge, tiny unless H is nearly
    singular, bends the model around the point only: it leaves a minimum where it is.
    """
    ridge = 1e-12 * np.trace(hessian)
    for _ in range(8):
        try:
            bent = hessian + ridge * np.eye(point.size)
            factor = cholesky(bent, lower=True)
            linear = bent @ point - gradient
            return nnls(factor.T, solve_triangular(factor, linear, lower=True))[0]
        except (LinAlgError, RuntimeError):  # not positive definite, or nnls cycles
            ridge *= 100
    return point
