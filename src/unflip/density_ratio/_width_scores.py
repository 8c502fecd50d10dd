"""Likelihood cross-validation of KLIEP's width."""

from collections.abc import Callable
from functools import partial
from itertools import pairwise

import numpy as np

from unflip._utils.gaussian_kernel import gaussian_at_widths, reached, squared_distances
from unflip._utils.samples import TwoSamples
from unflip._utils.typing import Array
from unflip.density_ratio._likelihood import (
    LOG_TINY,
    LikelihoodSums,
    RelativeBlock,
    maximise,
    sums_over,
)

Solver = Callable[[Array, Array, Array], Array]
"""(phi at training samples, their weights, mean_den phi) -> theta."""

FOLD_TOLERANCE = 1e-4
"""KKT gap at which the solver of a fold stops."""


class WidthScores:
    """Mean over folds of the held-out mean log r, minus log mean r of held-out X_den.

    Distances are computed once for all widths. The rows of `samples` are in random order.
    """

    def __init__(
        self,
        samples: TwoSamples,
        centers: Array,
        n_folds: int,
        *,
        hold_out_den: bool,
        max_iter: int,
        solver: Solver | None = None,
    ) -> None:
        self.n_num = samples.num.shape[0]
        self.distances = np.concatenate(
            [squared_distances(rows, centers) for rows in (samples.num, samples.den)]
        )
        self.weight_num = samples.weight_num / samples.weight_num.mean()
        self.weight_den = samples.weight_den
        self.folds_num = _folds(self.n_num, n_folds)
        self.folds_den = _folds(samples.den.shape[0], n_folds)
        self.hold_out_den = hold_out_den
        self.max_iter = max_iter
        self.solver = solver
        self._start = np.full(centers.shape[0], 1 / centers.shape[0])

    def at(self, widths: Array) -> Array:
        """Return the score of every width."""
        scores = np.empty(len(widths))
        for k, phi in gaussian_at_widths(self.distances, widths):
            scores[k] = self._score(phi[: self.n_num], phi[self.n_num :])
        return scores

    def _score(self, phi_num: Array, phi_den: Array) -> float:
        masses = np.array([self.weight_den[fold] @ phi_den[fold] for fold in self.folds_den])
        weights = np.array([self.weight_den[fold].sum() for fold in self.folds_den])
        included = 1 - np.eye(len(masses)) if self.hold_out_den else np.ones((len(masses),) * 2)
        means = included @ masses / (included @ weights)[:, None]
        usable = np.asarray(reached(means).all(axis=0))
        if not usable.any():
            return LOG_TINY
        coefs = self._solve(phi_num, means, usable)
        values = []
        for k, coef in enumerate(coefs):
            held_out = self.folds_num[k]
            log_ratio = np.log(np.maximum(phi_num[held_out] @ coef, np.exp(LOG_TINY)))
            value = np.average(log_ratio, weights=self.weight_num[held_out])
            if self.hold_out_den:
                value -= np.log(max(masses[k] @ coef / weights[k], np.exp(LOG_TINY)))
            values.append(value)
        return float(np.mean(values))

    def _solve(self, phi: Array, means: Array, usable: Array) -> list[Array]:
        """Return theta fitted without each fold; `means` are mean_den phi without the fold."""
        if self.solver is not None:
            rows = np.arange(self.n_num)
            trains = [np.delete(rows, held_out) for held_out in self.folds_num]
            return [
                self.solver(phi[train], self.weight_num[train], mean)
                for train, mean in zip(trains, means, strict=True)
            ]
        # the fit to all folds gives each fold a start and a Hessian, and the next width a start
        mean_all = means[:, usable].mean(axis=0)
        blocks = [
            RelativeBlock.from_values(
                phi[fold][:, usable] / mean_all, self.weight_num[fold], np.float32
            )
            for fold in self.folds_num
        ]
        overall = maximise(
            partial(sums_over, blocks),
            _inside(self._start[usable], 0.1),
            tol=10 * FOLD_TOLERANCE,
            max_iter=self.max_iter,
        )
        self._start = np.zeros(usable.size)
        self._start[usable] = overall.alpha
        coefs = np.zeros(means.shape)
        for k, mean in enumerate(means[:, usable]):
            solution = maximise(
                partial(_scaled_sums, blocks[:k] + blocks[k + 1 :], mean_all / mean),
                _inside(overall.alpha, 0.001),
                tol=FOLD_TOLERANCE,
                max_iter=self.max_iter,
                hessian=overall.hessian,
            )
            coefs[k, usable] = solution.alpha / mean
        return list(coefs)


def _scaled_sums(
    blocks: list[RelativeBlock], columns: Array, alpha: Array, hessian: bool
) -> LikelihoodSums:
    """Return the sums with psi_l scaled by `columns`_l, for another mean_den."""
    return sums_over(blocks, alpha * columns, hessian).scaled(columns)


def _inside(alpha: Array, share: float) -> Array:
    """Give every basis function a share of the weight, so that all likelihoods are positive."""
    mixed = (1 - share) * alpha + share / alpha.size
    return np.asarray(mixed / mixed.sum())


def _folds(n_rows: int, n_folds: int) -> list[slice]:
    """Return folds of consecutive samples, of nearly equal size."""
    edges = -(-np.arange(n_folds + 1) * n_rows // n_folds)
    return [slice(start, stop) for start, stop in pairwise(edges.tolist())]
