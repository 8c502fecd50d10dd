r"""The evidence of noisy labels at a given T, and its derivatives.

P(noisy=j | x) = sum_k g_k T_kj with g = softmax(t), and t_k = F w_k is linear in features F that
form blocks, each with a Gaussian prior of its own variance:

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
from scipy.linalg import LinAlgError, eigh
from scipy.linalg.lapack import dpotrf, dtrtri
from scipy.optimize import Bounds, minimize

from unflip._utils.typing import Codes, Floats
from unflip.channel._design import ChannelDesign, likelihood, singles, softmax_over_classes
from unflip.channel._determinant import determinant_slopes, directed_products, row_blocks
from unflip.channel._settings import SETTINGS
from unflip.channel._structure import NoiseStructure


@dataclass(frozen=True)
class ChannelFit:
    """The maximum over w at one T, and the evidence there with its parts."""

    design: ChannelDesign
    # Structure of T.
    structure: NoiseStructure
    theta: Floats
    T: Floats
    # Prior variance of each block.
    variance: Floats
    unscaled_coef: Floats
    # What the search for it has gained.
    gain: float = 0.0

    @property
    def root(self) -> Floats:
        """Prior standard deviation of every feature's w."""
        return np.asarray(np.sqrt(self.variance[self.design.block]))

    @property
    def coef(self) -> Floats:
        """W over the prior standard deviations."""
        return self.unscaled_coef / self.root[:, None]

    @cached_property
    def _likelihood(self) -> tuple[float, Floats, Floats]:
        design = self.design
        return likelihood(design, self.unscaled_coef, self.T[:, design.codes])

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
        return np.maximum(self.clean @ self.T, SETTINGS.smallest_divisor)

    @cached_property
    def counts(self) -> Floats:
        """Expected number of rows of class k with label j."""
        return self.design.counts(self._likelihood[1])

    @cached_property
    def directions(self) -> Floats:
        """u_c, in columns: eigenvectors of the mean information about t, but for (1, ..., 1)."""
        some, weight = self.design.some(SETTINGS.information_samples)
        g, T = singles(self.clean[some]), self.T
        over = singles(weight[:, None] / self.noisy[some])
        information = -(g * weight[:, None]).T @ g
        for j in range(self.design.n_classes):
            information += np.outer(T[:, j], T[:, j]) * ((g * over[:, j, None]).T @ g)
        information += 1 + np.trace(information)  # its own is none, and is made the largest
        return np.asarray(eigh(information)[1][:, :-1])

    @cached_property
    def curvature(self) -> Floats:
        """u_c' A_i u_c >= 0, of shape (n_classes - 1, n_samples)."""
        g, over = singles(self.clean.T), singles(1 / self.noisy.T)
        U, T = singles(self.directions), singles(self.T)
        found = -((self.directions.T @ self.clean.T) ** 2)
        for rows in row_blocks(self.design.n_classes, g.shape[1]):
            products = directed_products(U, T, g[:, rows])
            products *= products
            found[:, rows] += np.einsum("cji,ji->ci", products, over[:, rows])
        return np.maximum(found, 0.0)

    @cached_property
    def _factored(self) -> tuple[Floats, float]:
        """R_c with R_c R_c' = H_c^-1 for every direction, and half the log-determinant of all."""
        F, root = self.design.single, self.root
        roots, half = np.empty((self.design.n_classes - 1, root.size, root.size)), 0.0
        for k, c in enumerate(self.curvature):
            rooted = F * singles(np.sqrt(c * self.design.weight))[:, None]
            information = (rooted.T @ rooted) * np.outer(root, root)
            information.flat[:: root.size + 1] += 1.0
            factor, failed = dpotrf(information.T, lower=True, overwrite_a=True)
            if failed:
                raise LinAlgError("the information matrix is not positive definite")
            half += float(np.log(np.diag(factor)).sum())
            roots[k] = dtrtri(factor, lower=True, overwrite_c=True)[0].T
        return roots, half

    @property
    def roots(self) -> Floats:
        """R_c with R_c R_c' = H_c^-1, of shape (n_classes - 1, n_features, n_features)."""
        return self._factored[0]

    @property
    def covariances(self) -> Floats:
        """H_c^-1: the covariance of w along each direction."""
        return np.matmul(self.roots, self.roots.transpose(0, 2, 1))

    @cached_property
    def log_likelihood(self) -> float:
        """The evidence but for the prior of T: log P(noisy labels | T)."""
        penalty = (self.coef**2).sum()
        if self.variance.size > 1:
            surprise = np.log(self.variance[1:].sum() / self.design.latent_variance)
            penalty += surprise**2
        return self._likelihood[0] - 0.5 * float(penalty) - self._factored[1]

    @cached_property
    def log_evidence(self) -> float:
        """Log P(noisy labels | T) + log of the prior density of T's parameters."""
        return self.log_likelihood + self.structure.log_prior(self.theta)[0]

    @property
    def unscaled_roots(self) -> Floats:
        """The same for w as it is."""
        return np.asarray(self.root[:, None] * self.roots)

    def parameter_scale(self) -> Floats:
        """Return about the standard deviations of theta, were the true classes known."""
        J, tiny = self.structure.jacobian(self.theta), SETTINGS.smallest_probability
        over = 1 / np.maximum(self.T, tiny)
        known = np.einsum("k,kja,kj->ka", self.counts.sum(axis=1), J**2, over)
        information = np.diag(self.structure.log_prior(self.theta)[2]).copy()
        np.add.at(information, self.structure.gathered(), known)
        return np.asarray(1 / np.sqrt(np.maximum(information, tiny)))

    @cached_property
    def _determinant_slopes(self) -> tuple[Floats, Floats]:
        return determinant_slopes(
            self.design, self.T, self.unscaled_coef, self.directions, self.unscaled_roots, self.root
        )

    @property
    def determinant_slope(self) -> Floats:
        """d/dT of half the log-determinant, w following its maximum."""
        return self._determinant_slopes[0]

    def variance_step(self) -> Floats:
        """Return a step of the variances' logarithms towards a stationary point of the evidence.

        MacKay's slope leaves out that the determinant changes with w, which moves with the
        variance. Where the two slopes differ in sign, the variance stays: there Laplace's method
        fails, and the evidence would increase with w without end.
        """
        determined = self.design.n_classes - 1 - (self.roots**2).sum(axis=(0, 2))
        follows = (self._determinant_slopes[1] * self.unscaled_coef).sum(axis=1) / self.root**2
        squares, (s, block) = (self.coef**2).sum(axis=1), (self.variance, self.design.block)
        step, total = np.zeros(s.size), s[1:].sum()
        offset = SETTINGS.variance_offset
        least, most = SETTINGS.smallest_variance, SETTINGS.largest_variance
        for b in range(1, s.size):
            own = block == b
            size, effective = squares[own].sum(), determined[own].sum()
            slope = (
                0.5 * (size - effective)
                - np.log(total / self.design.latent_variance) * s[b] / total
            )
            in_all = slope - follows[own].sum()
            slope = min(slope, in_all, key=abs) if slope * in_all > 0 else 0.0
            bend = 0.5 * min(size, effective) + 1 / (s.size - 1)
            # the step is one of log(s + offset)
            push = np.clip(slope / bend * s[b] / (s[b] + offset), -1.0, 1.0)
            moved = (s[b] + offset) * np.exp(push) - offset
            step[b] = np.log(np.clip(moved, least, most) / s[b])
        return step

    def gradient(self) -> Floats:
        """Return d/dtheta of the log-evidence, w following its maximum and the variances held."""
        _, slope, _ = self.structure.log_prior(self.theta)
        if not slope.size:
            return slope
        lost = self.T * self.determinant_slope
        return self.structure.gradient(self.counts - lost, self.theta) + slope

    def information(self, most_rows: int) -> Floats:
        """Return the information about theta with w integrated out, and the prior's."""
        rows, weight = self.design.some(most_rows)
        g, p, F = self.clean[rows], self.noisy[rows], self.design.features[rows] * self.root
        K, J = self.design.n_classes, self.structure.jacobian(self.theta)
        own, cross = self._scores(g, p, F, weight, J)
        n = K * J.shape[2]
        found = np.einsum("kja,jkl,ljb->kalb", J, own, J, optimize=True).reshape(n, n)
        along = np.tensordot(self.directions.T, cross, axes=(1, 1)).reshape(K - 1, n, -1)
        for X, R in zip(along, self.roots, strict=True):
            reduced = X @ R
            found -= reduced @ reduced.T
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
        size = max(1, SETTINGS.block_values // (K * K))
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


def fit_coefficients(
    design: ChannelDesign,
    structure: NoiseStructure,
    theta: Floats,
    variance: Floats,
    coef: Floats | None = None,
    *,
    T: Floats | None = None,
    near: "ChannelFit | None" = None,
    slope: Floats | None = None,
    reach: float = SETTINGS.longest_step,
    tol: float = 0.02,
    max_iter: int = 60,
) -> ChannelFit:
    """Maximise over w at one T and given variances, or over w and T."""
    if T is None:
        T = structure.matrix(theta)
    alone = _Search(design, variance, T, coef, near)
    search: _Search | _JointSearch = alone
    if slope is not None and near is not None:
        search = _JointSearch(alone, structure, near, slope, reach)
    first = np.zeros(search.size)
    before = search.loss(first)[0]
    found: Any = minimize(
        search.loss,
        first,
        jac=True,
        method="L-BFGS-B",
        bounds=search.bounds,
        options={"maxiter": max_iter, "ftol": tol / design.weight.sum(), "gtol": 1e-6},
    )
    if isinstance(search, _JointSearch):
        theta, w = search.parts(found.x)
        T = structure.matrix(theta)
    else:
        w = alone.coef(found.x)
    return ChannelFit(design, structure, theta, T, variance, w, before - float(found.fun))


def fit_without(fit: ChannelFit, kept: Codes, weight: Floats, tol: float) -> ChannelFit:
    """Maximise over w on some of the rows; T and the variances are held."""
    design = fit.design
    some = design.subset(kept, weight)
    start = fit.theta, fit.variance, fit.unscaled_coef
    return fit_coefficients(some, fit.structure, *start, T=fit.T, near=fit, tol=tol)


class _Search:
    """What is minimised over w, in coordinates in which its curvature is about one."""

    bounds = None

    def __init__(
        self,
        design: ChannelDesign,
        variance: Floats,
        T: Floats,
        start: Floats | None,
        near: ChannelFit | None,
    ) -> None:
        self.design, self.if_class = design, T[:, design.codes]
        self.precision = 1 / variance[design.block][:, None]
        shape = design.block.size, design.n_classes
        self.first = np.zeros(shape) if start is None else start
        if near is None:
            root = np.sqrt(variance[design.block])
            values, vectors = eigh(design.gram * np.outer(root, root))
            # the information of a sample about t is p (1 - p), at most 1/4: a guess between sets
            # the scale of the first steps, and nothing else
            information = 0.1 * np.maximum(values, 0.0)
            basis = root[:, None] * vectors / np.sqrt(1 + information)
            self.turns, self.directions = basis[None], np.eye(design.n_classes)
        else:
            self.turns, self.directions = near.unscaled_roots, near.directions
        self.shape = self.directions.shape[1], shape[0]
        self.size = self.shape[0] * self.shape[1]

    def coef(self, flat: Floats) -> Floats:
        """Return w."""
        along = np.matmul(self.turns, flat.reshape(*self.shape, 1))[:, :, 0]
        return np.asarray(self.first + (self.directions @ along).T)

    def loss(self, flat: Floats) -> tuple[float, Floats]:
        """Return minus the penalised log-likelihood, and its gradient."""
        value, gradient, _ = self.at(flat)
        return value, gradient

    def at(self, flat: Floats) -> tuple[float, Floats, Floats]:
        """Return the same, and P(true | x, label)."""
        w = self.coef(flat)
        value, gamma, g = likelihood(self.design, w, self.if_class)
        pull = self.precision * w
        residual = (gamma - g).T
        residual *= self.design.weight
        slope = self.directions.T @ (pull.T - residual @ self.design.features)
        gradient = np.matmul(slope[:, None, :], self.turns).ravel()
        return 0.5 * float((pull * w).sum()) - value, gradient, gamma


class _JointSearch:
    """What is minimised over w and theta together."""

    def __init__(
        self,
        search: _Search,
        structure: NoiseStructure,
        near: ChannelFit,
        slope: Floats,
        reach: float,
    ) -> None:
        self.search, self.structure, self.slope = search, structure, slope
        self.theta, self.scale = near.theta, near.parameter_scale()
        self.size = search.size + self.theta.size
        low = np.maximum(self.theta - reach, -SETTINGS.largest_logit) - self.theta
        high = np.minimum(self.theta + reach, SETTINGS.largest_logit) - self.theta
        free = np.full(search.size, np.inf)
        self.bounds = Bounds(
            np.append(-free, np.minimum(low, 0.0) / self.scale),
            np.append(free, np.maximum(high, 0.0) / self.scale),
        )

    def parts(self, flat: Floats) -> tuple[Floats, Floats]:
        """Return theta and w."""
        n = self.search.size
        return self.theta + self.scale * flat[n:], self.search.coef(flat[:n])

    def loss(self, flat: Floats) -> tuple[float, Floats]:
        """Return what is minimised, and its gradient."""
        search, structure = self.search, self.structure
        theta = self.theta + self.scale * flat[search.size :]
        T = structure.matrix(theta)
        search.if_class = T[:, search.design.codes]
        value, by_w, gamma = search.at(flat[: search.size])
        prior, of_prior, _ = structure.log_prior(theta)
        counts = search.design.counts(gamma) - T * self.slope
        by_theta = structure.gradient(counts, theta) + of_prior
        value += float((self.slope * T).sum()) - prior
        return value, np.append(by_w, -self.scale * by_theta)


def mean_softmax(
    logits: Floats, features: Floats, directions: Floats, covariances: Floats
) -> Floats:
    """Return the mean of softmax(t) over w, each t_k shrunk by its own variance (MacKay)."""
    t = np.ascontiguousarray(logits.T)
    t = t - t.mean(axis=0)
    variance = np.zeros_like(t)
    for u, C in zip(directions.T, covariances, strict=True):
        along = np.einsum("if,if->i", features @ C, features)
        variance += u[:, None] ** 2 * along
    return softmax_over_classes(t / np.sqrt(1 + np.pi / 8 * variance)).T
