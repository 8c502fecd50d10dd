r"""The evidence of noisy labels at a given T, and its derivatives.

P(noisy=j | x) = sum_k g_k T_kj with g = softmax(t), and t_k = F w_k is linear in features F that
form blocks, each with a Gaussian prior of its own variance, as for two classes:

    w_kf ~ N(0, s_b) for f in block b,    log(s_1 + s_2 + ...) ~ N(log 9, 1).

Integrating w out takes the determinant of the information matrix. It is taken as block-diagonal in
the eigenvectors u_c of the mean information about t, which leaves n_classes - 1 matrices of the
size of one class: H_c = 1 + sum_i (u_c' A_i u_c) F_i F_i', with A_i = D T diag(1/p) T' D - g g',
D = diag(g), the information of row i about t. All features are scaled to unit prior variance here.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, eigh
from scipy.optimize import minimize

from unflip._typing import Codes, Floats
from unflip.posterior._noisy_channel import LATENT_VARIANCE, TINY
from unflip.posterior._softmax_channel._structure import NoiseStructure

SHARE_VARIANCE = 4.0
"""Variance of the intercept of t_k."""

BLOCK = 1 << 22
"""Numbers that are worked on at a time."""

MAX_CONJUGATE, CONJUGATE_TOL = 6, 1e-3
"""Steps of conjugate gradients, and the share of the first decrement at which they end."""

CURVATURE = 0.1
"""Typical information of a row about t, to scale the directions of w by."""


@dataclass(frozen=True)
class SoftmaxDesign:
    """Features, noisy labels and weights.

    Parameters
    ----------
    features : ndarray of shape (n_samples, n_features)
        F, whose first column is one.
    block : ndarray of shape (n_features,)
        The prior block of every column: 0 for the intercept, then 1, 2, ...
    codes : ndarray of shape (n_samples,)
        Positions of the noisy labels among the classes.
    weight : ndarray of shape (n_samples,)
        Weight of each row.
    n_classes : int
        Number of classes.
    """

    features: Floats
    block: NDArray[np.intp]
    codes: Codes
    weight: Floats
    n_classes: int

    def first_variance(self) -> Floats:
        """Return the prior variance of every block before anything is known."""
        n_blocks = int(self.block.max())
        variance = np.full(1 + n_blocks, LATENT_VARIANCE / max(1, n_blocks))
        variance[0] = SHARE_VARIANCE
        return variance

    def counts(self, gamma: Floats) -> Floats:
        """Return the expected number of rows of class k with label j."""
        weighted = gamma * self.weight[:, None]
        counts = np.empty((self.n_classes, self.n_classes))
        for k in range(self.n_classes):
            counts[k] = np.bincount(self.codes, weighted[:, k], minlength=self.n_classes)
        return counts


class Likelihood:
    """The labels' likelihood as a function of w, at one T."""

    def __init__(self, design: SoftmaxDesign, T: Floats) -> None:
        self.design, self.if_class = design, T.T[design.codes]

    def at(self, features: Floats, coef: Floats) -> tuple[float, Floats, Floats]:
        """Return the log-likelihood, P(true | x, label) and g."""
        g = _softmax(features @ coef)
        gamma = g * self.if_class
        p = np.maximum(gamma.sum(axis=1), TINY)
        gamma /= p[:, None]
        return float(self.design.weight @ np.log(p)), gamma, g


@dataclass(frozen=True)
class SoftmaxFit:
    """The maximum over w at one T, and the evidence there with its parts.

    Parameters
    ----------
    design : SoftmaxDesign
        The data.
    structure : NoiseStructure
        Structure of T.
    theta : ndarray
        Its parameters.
    T : ndarray of shape (n_classes, n_classes)
        T.
    variance : ndarray of shape (n_blocks,)
        Prior variance of each block.
    scaled : ndarray of shape (n_samples, n_features)
        Features times the prior standard deviations.
    coef : ndarray of shape (n_features, n_classes)
        w over the prior standard deviations.
    """

    design: SoftmaxDesign
    structure: NoiseStructure
    theta: Floats
    T: Floats
    variance: Floats
    scaled: Floats
    coef: Floats

    @property
    def unscaled_coef(self) -> Floats:
        """W."""
        return self.coef * np.sqrt(self.variance[self.design.block])[:, None]

    @cached_property
    def _likelihood(self) -> tuple[float, Floats, Floats]:
        return Likelihood(self.design, self.T).at(self.scaled, self.coef)

    @property
    def label_posterior(self) -> Floats:
        """P(true | x, label) of the rows."""
        return self._likelihood[1]

    @property
    def clean(self) -> Floats:
        """G of the rows."""
        return self._likelihood[2]

    @cached_property
    def noisy(self) -> Floats:
        """P(noisy | x) of the rows."""
        return np.maximum(self.clean @ self.T, 1e-12)

    @cached_property
    def counts(self) -> Floats:
        """Expected number of rows of class k with label j."""
        return self.design.counts(self._likelihood[1])

    @cached_property
    def directions(self) -> Floats:
        """u_c, in columns: eigenvectors of the mean information about t, but for (1, ..., 1)."""
        g, T = self.clean, self.T
        information = -(g * self.design.weight[:, None]).T @ g
        for j in range(self.design.n_classes):
            ratio = (self.design.weight / self.noisy[:, j])[:, None]
            information += np.outer(T[:, j], T[:, j]) * ((g * ratio).T @ g)
        return np.asarray(eigh(information)[1][:, 1:])

    @cached_property
    def _directed(self) -> Floats:
        """T with the directions: u_kc T_kj, of shape (n_classes, (n_classes - 1) n_classes)."""
        K = self.design.n_classes
        return np.asarray(
            (self.directions[:, :, None] * self.T[:, None, :]).reshape(K, (K - 1) * K)
        )

    def _row_blocks(self) -> list[slice]:
        K, n = self.design.n_classes, len(self.scaled)
        size = max(1, BLOCK // (K * (K - 1)))
        return [slice(first, first + size) for first in range(0, n, size)]

    def _products(self, rows: slice) -> Floats:
        """u_c' D T_j of some rows, of shape (n_rows, n_classes - 1, n_classes)."""
        K = self.design.n_classes
        return (self.clean[rows] @ self._directed).reshape(-1, K - 1, K)

    @cached_property
    def curvature(self) -> Floats:
        """u_c' A_i u_c >= 0, of shape (n_samples, n_classes - 1)."""
        found = -((self.clean @ self.directions) ** 2)
        for rows in self._row_blocks():
            found[rows] += np.einsum("icj,ij->ic", self._products(rows) ** 2, 1 / self.noisy[rows])
        return np.maximum(found, 0.0)

    @cached_property
    def _factored(self) -> tuple[list[Floats], float]:
        """H_c^-1 of every direction, and half the log-determinant of all."""
        inverses, half = [], 0.0
        identity = np.eye(self.scaled.shape[1])
        for c in self.curvature.T:
            rooted = self.scaled * np.sqrt(c * self.design.weight)[:, None]
            factor = cho_factor(identity + rooted.T @ rooted, lower=True)
            half += float(np.log(np.diag(factor[0])).sum())
            inverses.append(cho_solve(factor, identity))
        return inverses, half

    @property
    def covariances(self) -> list[Floats]:
        """H_c^-1: the covariance of w along each direction."""
        return self._factored[0]

    @cached_property
    def log_likelihood(self) -> float:
        """The evidence but for the prior of T: log P(noisy labels | T)."""
        surprise = np.log(self.variance[1:].sum() / LATENT_VARIANCE)
        penalty = (self.coef**2).sum() + surprise**2
        return self._likelihood[0] - 0.5 * float(penalty) - self._factored[1]

    @cached_property
    def log_evidence(self) -> float:
        """Log P(noisy labels | T) + log of the prior density of T's parameters."""
        return self.log_likelihood + self.structure.log_prior(self.theta)[0]

    def variance_step(self) -> Floats:
        """Return the variances after one step towards a stationary point of the evidence."""
        kept = np.sum([np.diag(covariance) for covariance in self.covariances], axis=0)
        determined = self.design.n_classes - 1 - kept
        total, updated = self.variance[1:].sum(), self.variance.copy()
        for b in range(1, updated.size):
            own = self.design.block == b
            squares, effective = (self.coef[own] ** 2).sum(), determined[own].sum()
            pull = np.log(total / LATENT_VARIANCE) * updated[b] / total
            slope = 0.5 * (squares - effective) - pull
            bend = 0.5 * min(squares, effective) + 1 / (updated.size - 1)
            step = np.clip(slope / bend, -1.0, 1.0)
            updated[b] = np.clip(updated[b] * np.exp(step), 1e-2, 400.0)
        return updated

    def gradient(self) -> Floats:
        """Return d/dtheta of the log-evidence, w following its maximum and the variances held."""
        _, slope, _ = self.structure.log_prior(self.theta)
        if not slope.size:
            return slope
        by_T, by_t = self._determinant_slopes()
        # dw/dtheta = H^-1 d(dL/dw)/dtheta, so that w's share is the change of dL/dtheta along
        # H^-1 (slope in w)
        path = self._solved(self.scaled.T @ by_t)
        ends = [self.design.counts(gamma) for gamma, _ in self._beside(path)]
        small = self._small(path)
        lost = self.T * by_T + (ends[0] - ends[1]) / (2 * small)
        return self.structure.gradient(self.counts - lost, self.theta) + slope

    def _small(self, path: Floats) -> float:
        """Return a step along which t changes little."""
        return 1e-2 / max(1e-9, float(np.abs(self.scaled @ path).max()))

    def _beside(self, path: Floats) -> list[tuple[Floats, Floats]]:
        """Return P(true | x, label) and g a small step along a path of w, and against it."""
        model, small = Likelihood(self.design, self.T), self._small(path)
        return [model.at(self.scaled, self.coef + step * path)[1:] for step in (small, -small)]

    def _solved(self, push: Floats) -> Floats:
        """Return H^-1 times a slope in w, H the observed information (conjugate gradients)."""
        U, weight = self.directions, self.design.weight[:, None]

        def preconditioned(slope: Floats) -> Floats:
            along = zip(self.covariances, (slope @ U).T, strict=True)
            return np.column_stack([C @ v for C, v in along]) @ U.T

        solution, residual = np.zeros_like(push), push.copy()
        step = ahead = preconditioned(residual)
        decrement = first = float((residual * step).sum())
        for _ in range(MAX_CONJUGATE):
            if decrement <= CONJUGATE_TOL * first:
                break
            (up, g_up), (down, g_down) = self._beside(step)
            change = (up - g_up) - (down - g_down)
            product = step - self.scaled.T @ (weight * change) / (2 * self._small(step))
            curvature = float((step * product).sum())
            if curvature <= 0:
                break
            solution += (decrement / curvature) * step
            residual -= (decrement / curvature) * product
            ahead = preconditioned(residual)
            last, decrement = decrement, float((residual * ahead).sum())
            step = ahead + (decrement / last) * step
        return solution if solution.any() else preconditioned(push)

    def _determinant_slopes(self) -> tuple[Floats, Floats]:
        """Return the derivatives of half the log-determinant with respect to T, and to t."""
        g, p, U, K = self.clean, self.noisy, self.directions, self.design.n_classes
        leverage = np.column_stack(
            [np.einsum("if,if->i", self.scaled @ C, self.scaled) for C in self.covariances]
        )
        leverage *= 0.5 * self.design.weight[:, None]
        by_T, by_g = np.zeros((K, K)), np.empty_like(g)
        for rows in self._row_blocks():
            q = self._products(rows)
            lq = leverage[rows][:, :, None] * q
            squares = np.einsum("icj,icj->ij", lq, q) / p[rows] ** 2
            lq /= p[rows][:, None, :]
            flat = lq.reshape(len(lq), -1)
            mixed = (g[rows].T @ flat).reshape(K, K - 1, K)
            by_T += 2 * np.einsum("kc,kcj->kj", U, mixed) - g[rows].T @ squares
            by_g[rows] = 2 * flat @ self._directed.T - squares @ self.T.T
        by_g -= 2 * (leverage * (g @ U)) @ U.T
        return by_T, g * (by_g - (by_g * g).sum(axis=1, keepdims=True))

    def information(self, most_rows: int) -> Floats:
        """Return the information about theta with w integrated out, and the prior's.

        Parameters
        ----------
        most_rows : int
            Of more rows, so many are taken to stand for all.
        """
        rows = slice(None, None, max(1, len(self.scaled) // most_rows))
        g, p, F = self.clean[rows], self.noisy[rows], self.scaled[rows]
        weight = self.design.weight[rows]
        weight = weight * (self.design.weight.sum() / weight.sum())
        K, J = self.design.n_classes, self.structure.jacobian(self.theta)
        own, cross = self._scores(g, p, F, weight, J)
        n = K * J.shape[2]
        found = np.einsum("kja,jkl,ljb->kalb", J, own, J, optimize=True).reshape(n, n)
        along = np.tensordot(self.directions.T, cross, axes=(1, 1)).reshape(K - 1, n, -1)
        for X, C in zip(along, self.covariances, strict=True):
            found -= X @ C @ X.T
        place = self.structure.gathered().ravel()
        gather = np.zeros((n, self.structure.n_parameters))
        gather[np.arange(n), place] = 1.0
        information = gather.T @ found @ gather + self.structure.log_prior(self.theta)[2]
        return np.asarray((information + information.T) / 2)

    def _scores(
        self, g: Floats, p: Floats, F: Floats, weight: Floats, J: Floats
    ) -> tuple[Floats, Floats]:
        """Return sum_i g_k g_l / p_j, and the information of T's row k against w_l."""
        K, n_features = self.design.n_classes, F.shape[1]
        own, even = np.zeros((K, K, K)), np.zeros((K, K, n_features))  # j, k, l; k, l, f
        few = J.shape[2] == 1
        mixed = np.zeros((1 if few else K, K, K, n_features))
        by_rows = (J[:, None, :, 0] * self.T[None]).reshape(K * K, K).T  # j, (k, l)
        size = max(1, BLOCK // (K * K))
        for first in range(0, len(g), size):
            part = slice(first, first + size)
            pairs = (g[part, :, None] * g[part, None, :]).reshape(-1, K * K)
            pairs *= weight[part, None]
            own += ((1 / p[part]).T @ pairs).reshape(K, K, K)
            even += (pairs.T @ F[part]).reshape(K, K, -1)
            if few:  # the sum over j comes before that over rows
                ratio = pairs * ((1 / p[part]) @ by_rows)
                mixed[0] += (ratio.T @ F[part]).reshape(K, K, -1)
                continue
            for j in range(K):
                ratio = pairs / p[part, j, None]
                mixed[j] += (ratio.T @ F[part]).reshape(K, K, -1)
        if few:
            cross = mixed[0][:, :, None, :]
        else:  # batches of small products over j
            mixed *= self.T.T[:, None, :, None]
            cross = np.matmul(J.transpose(0, 2, 1)[:, None], mixed.transpose(1, 2, 0, 3))
        return own, cross - J.sum(axis=1)[:, None, :, None] * even[:, :, None, :]


def fit_softmax(
    design: SoftmaxDesign,
    structure: NoiseStructure,
    theta: Floats,
    variance: Floats,
    coef: Floats | None = None,
    *,
    T: Floats | None = None,
    tol: float = 0.02,
    max_iter: int = 60,
) -> SoftmaxFit:
    """Maximise over w at one T and given variances.

    Parameters
    ----------
    design, structure, theta, variance
        See :class:`SoftmaxFit`.
    coef : ndarray of shape (n_features, n_classes), default=None
        w to start at.
    T : ndarray, default=None
        A T that is known, instead of the structure's.
    tol : float, default=0.02
        Gain of the log-likelihood at which to stop.
    max_iter : int, default=60
        Maximum number of steps.
    """
    T = structure.matrix(theta) if T is None else T
    root = np.sqrt(variance[design.block])
    scaled = design.features * root
    shape = scaled.shape[1], design.n_classes
    first = np.zeros(shape) if coef is None else coef / root[:, None]
    values, vectors = eigh((scaled * design.weight[:, None]).T @ scaled)
    length = 1 / np.sqrt(1 + CURVATURE * np.maximum(values, 0.0))
    turned = scaled @ (vectors * length)  # directions of about the same curvature
    precision, weight = length[:, None] ** 2, design.weight[:, None]
    model = Likelihood(design, T)

    def loss(flat: Floats) -> tuple[float, Floats]:
        w = flat.reshape(shape)
        value, residual, g = model.at(turned, w)
        residual -= g
        residual *= weight
        pull = precision * w
        return 0.5 * float((pull * w).sum()) - value, (pull - turned.T @ residual).ravel()

    found: Any = minimize(
        loss,
        ((vectors.T @ first) / length[:, None]).ravel(),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": max_iter, "ftol": tol / design.weight.sum(), "gtol": 1e-6},
    )
    w = (vectors * length) @ found.x.reshape(shape)
    return SoftmaxFit(design, structure, theta, T, variance, scaled, w)


def mean_softmax(
    features: Floats, coef: Floats, directions: Floats, covariances: list[Floats]
) -> Floats:
    """Return the mean of softmax(F w) over w, each t_k shrunk by its own variance (MacKay).

    Parameters
    ----------
    features : ndarray of shape (n_samples, n_features)
        F, scaled as w.
    coef : ndarray of shape (n_features, n_classes)
        Mean of w.
    directions, covariances : ndarray, list of ndarrays
        As of :class:`SoftmaxFit`.
    """
    t = features @ coef
    t -= t.mean(axis=1, keepdims=True)
    variance = np.zeros_like(t)
    for u, C in zip(directions.T, covariances, strict=True):
        along = np.einsum("if,if->i", features @ C, features)
        variance += along[:, None] * u**2
    return _softmax(t / np.sqrt(1 + np.pi / 8 * variance))


def _softmax(t: Floats) -> Floats:
    """Return softmax(t) in its place."""
    t -= t.max(axis=1, keepdims=True)
    np.exp(t, out=t)
    t /= t.sum(axis=1, keepdims=True)
    return t
