"""L-BFGS in the metric of a kernel: one product with K per step, and no factorisation."""

import numpy as np

from unflip._utils.typing import Array
from unflip.losses import Loss

MEMORY = 10
"""Number of past steps that approximate the Hessian."""


class KernelProblem:
    """sum_i w_i l(f(x_i) + b, y_i) / sum_i w_i + alpha |f|^2 / 2 over f = sum_l c_l k(z_l, .).

    A point or direction is an array of two rows: (c, b) and its image (K c, b). The inner product
    is that of the functions plus that of the intercepts. Linear combinations preserve the image, so
    only a new gradient needs a product with K.
    """

    def __init__(
        self, K: Array, position: Array, y: Array, weight: Array, loss: Loss, alpha: float
    ) -> None:
        self.K, self.position, self.y, self.loss, self.alpha = K, position, y, loss, alpha
        self.share = weight / weight.sum()
        self.intercept_penalty = 0.0 if loss.bounded else alpha

    def with_loss(self, loss: Loss) -> "KernelProblem":
        """Return the same problem with another loss."""
        return KernelProblem(self.K, self.position, self.y, self.share, loss, self.alpha)

    def origin(self) -> Array:
        """Return f = 0, b = 0."""
        return np.zeros((2, len(self.K) + 1))

    def value(self, point: Array) -> float:
        """Return the objective."""
        decision = point[1, :-1][self.position] + point[0, -1]
        norm = float(point[0, :-1] @ point[1, :-1])
        with np.errstate(over="ignore"):  # a trial step that overflows is rejected
            risk = float(self.loss.value(decision, self.y, self.share).sum())
        return risk + self.alpha * norm / 2 + self.intercept_penalty * point[0, -1] ** 2 / 2

    def gradient(self, point: Array) -> Array:
        """Return the gradient in the metric of the kernel."""
        decision = point[1, :-1][self.position] + point[0, -1]
        slope = self.loss.derivative(decision, self.y, self.share)
        gradient = np.empty_like(point)
        gradient[0, :-1] = np.bincount(self.position, slope, minlength=len(self.K))
        gradient[0, :-1] += self.alpha * point[0, :-1]
        gradient[1, :-1] = self.K @ gradient[0, :-1]
        gradient[:, -1] = slope.sum() + self.intercept_penalty * point[0, -1]
        return gradient


def inner(a: Array, b: Array) -> float:
    """Return the inner product of two points or directions."""
    return float(a[0] @ b[1])


def minimise(
    problem: KernelProblem, point: Array, tol: float, max_iter: int
) -> tuple[Array, float, int]:
    """Return a minimiser, the norm of its gradient, and the number of steps."""
    value, gradient = problem.value(point), problem.gradient(point)
    history: list[tuple[Array, Array, float]] = []  # step, change of gradient, 1 / their product
    for n_iter in range(max_iter):
        norm = np.sqrt(max(inner(gradient, gradient), 0.0))
        if norm <= tol:
            return point, norm, n_iter
        direction = _two_loops(gradient, history) if history else -gradient / max(norm, 1.0)
        slope, length = inner(gradient, direction), 1.0
        while True:
            trial = point + length * direction
            trial_value = problem.value(trial)
            if trial_value <= value + 1e-4 * length * slope:
                break
            length /= 2
            if length < 1e-10:  # rounding errors prevent further progress
                return point, norm, n_iter
        new_gradient = problem.gradient(trial)
        step, change = trial - point, new_gradient - gradient
        product = inner(step, change)
        if product > 1e-12 * inner(change, change):
            history = [*history[-(MEMORY - 1) :], (step, change, 1 / product)]
        point, value, gradient = trial, trial_value, new_gradient
    return point, float(np.sqrt(max(inner(gradient, gradient), 0.0))), max_iter


def _two_loops(gradient: Array, history: list[tuple[Array, Array, float]]) -> Array:
    """Return minus the approximate inverse Hessian times the gradient."""
    q, shares = gradient.copy(), []
    for step, change, inverse in reversed(history):
        shares.append(inverse * inner(step, q))
        q -= shares[-1] * change
    _, change, inverse = history[-1]
    q /= inverse * inner(change, change)
    for (step, change, inverse), share in zip(history, reversed(shares), strict=True):
        q += (share - inverse * inner(change, q)) * step
    return -q
