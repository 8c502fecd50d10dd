"""The maximum of the evidence over the parameters of one structure of T."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh, solve_triangular

from unflip._typing import Floats
from unflip.posterior._softmax_channel._evidence import SoftmaxDesign, SoftmaxFit, fit_softmax
from unflip.posterior._softmax_channel._structure import (
    LARGEST_LOGIT,
    LOG_2_PI,
    NoiseStructure,
)

MAX_STEPS, MAX_SHORTER, LONGEST_STEP = 15, 5, 1.5
"""Steps of a climb, tries of a shorter step, and the largest change of a parameter in one."""

INFORMATION_ROWS, STEP_ROWS = 2000, 500
"""Rows that stand for all in the information about T, and where it only sets the steps."""

SAME_VARIANCE = 0.1
"""Change of the logarithm of a variance that ends a climb."""


@dataclass(frozen=True)
class Peak:
    """The maximum of a structure's evidence, and the curvature there."""

    fit: SoftmaxFit

    @cached_property
    def _root(self) -> tuple[Floats, float]:
        return _covariance_root(self.fit, self.fit.information(INFORMATION_ROWS))

    @property
    def structure(self) -> NoiseStructure:
        """The structure."""
        return self.fit.structure

    @property
    def mean_matrix(self) -> Floats:
        """T."""
        return self.fit.T

    @property
    def log_evidence(self) -> float:
        """Log P(noisy labels | structure): the parameters integrated out."""
        n = self.structure.n_parameters
        if not n:
            return self.fit.log_evidence
        volume = 0.5 * n * LOG_2_PI + self._root[1]
        return self.fit.log_evidence + volume + self.structure.laplace_correction(self.fit.counts)

    def draws(self, size: int, random: np.random.RandomState) -> Floats:
        """Return matrices from the distribution of T, of shape (size, n_classes, n_classes)."""
        n = self.structure.n_parameters
        theta = np.zeros((size, 0))
        if n:
            theta = self.fit.theta + random.standard_normal((size, n)) @ self._root[0].T
        K = self.fit.design.n_classes
        return np.array([self.structure.matrix(each) for each in theta]).reshape(size, K, K)


def climb(
    design: SoftmaxDesign,
    structure: NoiseStructure,
    theta: Floats,
    variance: Floats,
    coef: Floats | None = None,
    *,
    T: Floats | None = None,
    tol: float = 0.1,
) -> Peak:
    """Maximise the evidence by scoring: steps by the expected information.

    Parameters
    ----------
    design : SoftmaxDesign
        The noisy data.
    structure : NoiseStructure
        Structure of T.
    theta, variance, coef
        Where to start.
    T : ndarray of shape (n_classes, n_classes), default=None
        T where it is known: the variances alone are sought.
    tol : float, default=0.1
        Predicted gain of the log-evidence at which to stop.
    """
    fit = fit_softmax(design, structure, theta, variance, coef, T=T, tol=5 * tol)
    for n_steps in range(MAX_STEPS):
        variance, step, gain = fit.variance_step(), np.zeros(fit.theta.size), 0.0
        if T is None and step.size:
            gradient = fit.gradient()
            step = np.clip(_solve(fit, gradient), -LONGEST_STEP, LONGEST_STEP)
            step = np.clip(fit.theta + step, -LARGEST_LOGIT, LARGEST_LOGIT) - fit.theta
            gain = 0.5 * float(gradient @ step)
        change = np.log(variance / fit.variance)
        if gain < tol / 2 and np.abs(change).max() < SAME_VARIANCE:
            break
        for _ in range(MAX_SHORTER):
            trial = fit_softmax(
                design,
                structure,
                fit.theta + step,
                fit.variance * np.exp(change),
                fit.unscaled_coef,
                T=T,
                tol=tol / 5,
            )
            if trial.log_evidence > fit.log_evidence - tol / 5:
                break
            step, change = step / 3, change / 2
        else:
            break
        gained, fit = trial.log_evidence - fit.log_evidence, trial
        if n_steps and gained < tol / 2 and gain < tol:
            break
    return Peak(fit)


def _solve(fit: SoftmaxFit, gradient: Floats) -> Floats:
    """Return the information's inverse times the gradient."""
    information = fit.information(STEP_ROWS)
    try:
        return np.asarray(cho_solve(cho_factor(information), gradient))
    except LinAlgError:
        root, _ = _covariance_root(fit, information)
        return np.asarray(root @ (root.T @ gradient))


def _covariance_root(fit: SoftmaxFit, information: Floats) -> tuple[Floats, float]:
    """Return R with R R' the covariance of theta, and the logarithm of R's determinant.

    What the labels say is bounded from below: at the least, nothing.
    """
    prior = fit.structure.log_prior(fit.theta)[2]
    root = np.linalg.cholesky(prior)
    half = solve_triangular(root, information, lower=True)
    values, vectors = eigh(solve_triangular(root, half.T, lower=True))
    values = np.maximum(values, 1.0)
    covariance_root = solve_triangular(root.T, vectors, lower=False) / np.sqrt(values)
    log_determinant = -0.5 * float(np.log(values).sum()) - float(np.log(np.diag(root)).sum())
    return np.asarray(covariance_root), log_determinant
