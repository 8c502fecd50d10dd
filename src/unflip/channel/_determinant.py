"""The derivative in T of the determinant that integrating w out leaves in the evidence."""

import numpy as np

from unflip._utils.typing import Floats, Singles
from unflip.channel._design import ChannelDesign, likelihood, singles
from unflip.channel._settings import SETTINGS


def row_blocks(n_classes: int, n_rows: int) -> list[slice]:
    """Return slices of rows to take at a time."""
    size = max(1, SETTINGS.block_values // (n_classes * (n_classes - 1)))
    return [slice(first, first + size) for first in range(0, n_rows, size)]


def directed_products(directions: Singles, T: Singles, g: Singles) -> Singles:
    """Return u_c' D T_j of rows, of shape (n_classes - 1, n_classes, n_samples)."""
    K = len(T)
    return np.asarray((_directed(directions, T).T @ g).reshape(K - 1, K, -1))


def _directed(directions: Singles, T: Singles) -> Singles:
    """Return u_kc T_kj, of shape (n_classes, (n_classes - 1) n_classes)."""
    return np.asarray((directions[:, :, None] * T[:, None, :]).reshape(len(T), -1))


def leverages(F: Singles, roots: Floats) -> Singles:
    """Return the variance of every row's t along each direction."""
    found = np.empty((len(roots), len(F)), dtype=np.float32)
    for along, R in zip(found, singles(roots), strict=True):
        spread = F @ R
        np.einsum("if,if->i", spread, spread, out=along)
    return found


def determinant_slopes(
    design: ChannelDesign, T: Floats, coef: Floats, directions: Floats, roots: Floats, root: Floats
) -> tuple[Floats, Floats]:
    """Return d/dT of half the log-determinant, w following its maximum, and H^-1 d/dw."""
    around = _Around(design, T, coef, directions, roots, root)
    by_T, by_t = around.slopes()
    # dw/dT = H^-1 d(dL/dw)/dT, so that w's share is the change of dL/dT along H^-1 (slope in w)
    path = around.solved(design.features.T @ by_t.T)
    changed = design.counts(around.gamma_change(path).T)
    return np.asarray(by_T + changed / np.maximum(T, SETTINGS.smallest_divisor)), path


class _Around:
    """The likelihood around one w."""

    def __init__(
        self,
        design: ChannelDesign,
        T: Floats,
        coef: Floats,
        directions: Floats,
        roots: Floats,
        root: Floats,
    ) -> None:
        self.design, self.T, self.coef, self.U, self.roots = design, T, coef, directions, roots
        self.precision = 1 / root[:, None] ** 2
        found = likelihood(design, coef, T[:, design.codes])
        self.gamma, self.g = found[1].T, found[2].T

    def slopes(self) -> tuple[Floats, Floats]:
        """Return the derivatives of half the log-determinant with respect to T, and to t."""
        F, K = self.design.single, self.design.n_classes
        g, T, U = singles(self.g), singles(self.T), singles(self.U)
        p = np.maximum(T.T @ g, np.float32(SETTINGS.smallest_divisor))
        leverage = leverages(F, self.roots)
        leverage *= singles(0.5 * self.design.weight)
        by_T, by_g = np.zeros((K, K)), np.empty(g.shape)
        directed = _directed(U, T)
        for rows in row_blocks(K, g.shape[1]):
            q = directed_products(U, T, g[:, rows])
            lq = leverage[:, None, rows] * q
            squares = np.einsum("cji,cji->ji", lq, q) / p[:, rows] ** 2
            lq /= p[:, rows]
            flat = lq.reshape((K - 1) * K, -1)
            mixed = (g[:, rows] @ flat.T).reshape(K, K - 1, K)
            by_T += 2 * np.einsum("kc,kcj->kj", U, mixed) - g[:, rows] @ squares.T
            by_g[:, rows] = 2 * directed @ flat - T @ squares
        by_g -= 2 * U @ (leverage * (U.T @ g))
        return by_T, self.g * (by_g - (by_g * self.g).sum(axis=0))

    def gamma_change(self, path: Floats) -> Floats:
        """Return the change of P(true | x, label) along a path of w."""
        return _change(self.gamma, path.T @ self.design.features.T)

    def product(self, path: Floats) -> Floats:
        """Return H times a path of w, H the observed information."""
        moved = path.T @ self.design.features.T
        change = _change(self.gamma, moved)
        change -= _change(self.g, moved)
        change *= self.design.weight
        return np.asarray(self.precision * path - (change @ self.design.features).T)

    def solved(self, push: Floats) -> Floats:
        """Return H^-1 times a slope in w, H the observed information (conjugate gradients)."""

        def preconditioned(slope: Floats) -> Floats:
            half = np.matmul((slope @ self.U).T[:, None, :], self.roots)
            return np.matmul(self.roots, half.transpose(0, 2, 1))[:, :, 0].T @ self.U.T

        solution, residual = np.zeros_like(push), push.copy()
        step = ahead = preconditioned(residual)
        decrement = first = float((residual * step).sum())
        for _ in range(SETTINGS.conjugate_steps):
            if decrement <= SETTINGS.conjugate_tolerance * first:
                break
            product = self.product(step)
            curvature = float((step * product).sum())
            if curvature <= 0:
                break
            solution += (decrement / curvature) * step
            residual -= (decrement / curvature) * product
            ahead = preconditioned(residual)
            last, decrement = decrement, float((residual * ahead).sum())
            step = ahead + (decrement / last) * step
        return solution if solution.any() else preconditioned(push)


def _change(shares: Floats, moved: Floats) -> Floats:
    """Return the change of softmax-like shares, of shape (n_classes, n_samples), with t's."""
    change = shares * moved
    change -= shares * change.sum(axis=0)
    return np.asarray(change)
