"""The maximum of the evidence over the parameters of one structure of T."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
from scipy.linalg import eigh, solve_triangular

from unflip._utils.progress import tick
from unflip._utils.typing import Floats
from unflip.channel._design import ChannelDesign
from unflip.channel._evidence import ChannelFit, fit_coefficients
from unflip.channel._settings import SETTINGS
from unflip.channel._structure import LOG_2_PI, NoiseStructure, structures


@dataclass(frozen=True)
class Mode:
    """The maximum of a structure's evidence, and the curvature there."""

    fit: ChannelFit

    @cached_property
    def _root(self) -> tuple[Floats, float]:
        return _covariance_root(self.fit, self.fit.information(SETTINGS.information_samples))

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

    def at(self, theta: Floats, spread: Floats) -> Self:
        """Return the distribution of T around other parameters, uncertain by `spread` too."""
        there = replace(self.fit, theta=theta, T=self.structure.matrix(theta))
        moved = replace(self, fit=there)
        root, log_determinant = self._root
        moved.__dict__["_root"] = np.column_stack([root, spread]), log_determinant
        return moved

    def draws(self, size: int, random: np.random.RandomState) -> Floats:
        """Return matrices from the distribution of T, of shape (size, n_classes, n_classes)."""
        n = self.structure.n_parameters
        if not n:
            return np.repeat(self.fit.T[None], size, axis=0)
        root = self._root[0]
        theta = self.fit.theta + random.standard_normal((size, root.shape[1])) @ root.T
        return self.structure.matrix(theta)


def maximise(
    design: ChannelDesign,
    structure: NoiseStructure,
    theta: Floats,
    variance: Floats,
    coef: Floats | None = None,
    *,
    T: Floats | None = None,
    near: ChannelFit | None = None,
    held: bool = False,
    tol: float = SETTINGS.tolerance,
) -> Mode:
    """Maximise the evidence over theta and the variances.

    A step seeks theta along with w, with the slope of the determinant as it was before the step,
    which has a small share in the evidence's own.
    """
    fit = fit_coefficients(design, structure, theta, variance, coef, T=T, near=near, tol=5 * tol)
    tol *= max(1.0, fit.unscaled_coef.size / SETTINGS.smooth_coefficients)
    reach = SETTINGS.longest_step
    for _ in range(SETTINGS.max_steps if fit.theta.size or not held else 0):
        tick()
        change = np.zeros(variance.size) if held else fit.variance_step()
        settled = np.abs(change).max() < SETTINGS.settled_log_variance
        slope = None
        if T is None and fit.theta.size:
            slope = fit.determinant_slope
        trial = _moved(fit, change, T=T, slope=slope, reach=reach, tol=tol / 5)
        step, rise = trial.theta - fit.theta, 2 * trial.gain
        if settled and rise < tol:
            break
        gained = trial.log_evidence - fit.log_evidence
        shorter = gained < -tol / 5 and rise > tol and step.any()
        if shorter:
            step = np.clip(rise / (2 * (rise - gained)), 0.1, 0.5) * step  # of a parabola
            trial = _moved(fit, change, step, tol=tol / 5)
            gained = trial.log_evidence - fit.log_evidence
        if gained > 0:
            fit = trial
        if gained < tol / 2:
            break
        reach = SETTINGS.longest_step if not shorter else max(0.1, 1.5 * float(np.abs(step).max()))
    return Mode(fit)


def at_matrix(
    design: ChannelDesign,
    T: Floats,
    start: ChannelFit | None = None,
    *,
    tol: float = SETTINGS.tolerance,
) -> ChannelFit:
    """Return the maximum over the coefficients and their variances at one T."""
    none = structures(design.n_classes, free=False)[0]
    if start is None:
        return maximise(design, none, none.start(), design.first_variance(), T=T, tol=tol).fit
    place = none.start(), start.variance, start.unscaled_coef
    near = start if start.design is design else None
    return maximise(design, none, *place, T=T, near=near, tol=tol).fit


def _moved(
    fit: ChannelFit,
    change: Floats,
    step: Floats | float = 0.0,
    *,
    T: Floats | None = None,
    slope: Floats | None = None,
    reach: float = SETTINGS.longest_step,
    tol: float,
) -> ChannelFit:
    """Return the fit at other variances and parameters, found from this one."""
    return fit_coefficients(
        fit.design,
        fit.structure,
        fit.theta + step,
        fit.variance * np.exp(change),
        fit.unscaled_coef,
        T=T,
        near=fit,
        slope=slope,
        reach=reach,
        tol=tol,
    )


def _covariance_root(fit: ChannelFit, information: Floats) -> tuple[Floats, float]:
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
