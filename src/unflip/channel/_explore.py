"""How T is explored: at one matrix, over two rates, or over the structures of many classes.

An exploration finds the maxima of the evidence on some rows, with the columns and then with other
features. It ends with T, its distribution, and the coefficients at T.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from unflip._utils.typing import Floats
from unflip.channel._compare import compared, first_modes, probabilities, refined, tests
from unflip.channel._design import ChannelDesign, affordable_rows
from unflip.channel._distribution import Distribution, DrawnMatrices, RatesOfTwo
from unflip.channel._evidence import ChannelFit, fit_coefficients
from unflip.channel._maximise import Mode, at_matrix
from unflip.channel._outcomes import EvidenceTest
from unflip.channel._rates import Box
from unflip.channel._settings import SETTINGS
from unflip.channel._temperature import held_out_logits, temperature_scaling
from unflip.channel._two_classes import (
    Quadrature,
    finer_quadrature,
    first_quadrature,
    two_rates,
)

Designs = Callable[[int], ChannelDesign]
"""Returns the features of the first rows, as many as are asked for."""


@dataclass(frozen=True)
class Found:
    """T with its distribution."""

    T: Floats
    mean_matrix: Floats
    distribution: Distribution
    structure_probability: dict[str, float]
    noise_test: EvidenceTest | None = None
    alike_test: EvidenceTest | None = None


class Exploration(Protocol):
    """How T is explored. What it finds on some rows is for its own use."""

    @property
    def least_noise(self) -> Floats | None:
        """T without noise, or with as little as is known to be there."""

    def explored(self, design: ChannelDesign, columns: Any = None) -> Any:
        """Return the maxima on some rows, from those with the columns as features if known."""

    def height(self, maxima: Any) -> float:
        """Return the log-evidence of the features, T integrated out."""

    def best(self, maxima: Any) -> ChannelFit:
        """Return the fit of the highest evidence."""

    def finished(
        self, maxima: Any, designs: Designs, n_rows: int, random: np.random.RandomState
    ) -> tuple[ChannelFit, Found]:
        """Return the coefficients at T on all rows, and T with its distribution."""


@dataclass(frozen=True)
class AtOneMatrix:
    """T is known."""

    T: Floats

    @property
    def least_noise(self) -> Floats:
        """T."""
        return self.T

    def explored(self, design: ChannelDesign, columns: ChannelFit | None = None) -> ChannelFit:
        """Return the maximum over the coefficients and their variances."""
        return at_matrix(design, self.T, tol=SETTINGS.rough_tolerance)

    def height(self, maxima: ChannelFit) -> float:
        """Return the log-evidence of the labels at T."""
        return maxima.log_likelihood

    def best(self, maxima: ChannelFit) -> ChannelFit:
        """Return the fit."""
        return maxima

    def finished(
        self, maxima: ChannelFit, designs: Designs, n_rows: int, random: np.random.RandomState
    ) -> tuple[ChannelFit, Found]:
        """Return T as it is known."""
        fit, design = maxima, designs(n_rows)
        counts = np.bincount(design.codes, design.weight, minlength=len(self.T))
        wrong = np.array([1 - np.diag(self.T) @ _shares(fit)])
        known = DrawnMatrices(self.T[None], wrong.clip(0.0, 1.0), counts, is_known=True)
        return _refitted(fit, design, self.T), Found(self.T, self.T, known, {})


@dataclass(frozen=True)
class OverTwoRates:
    """Two classes: the distribution of both rates within a box, by quadrature."""

    box: Box
    # The point estimate: "median" or "mean".
    estimate: str

    @property
    def least_noise(self) -> Floats:
        """T at the lowest rates."""
        return two_rates([low for low, _ in self.box])

    def explored(self, design: ChannelDesign, columns: Quadrature | None = None) -> Quadrature:
        """Return the evidence on a coarse grid."""
        return first_quadrature(design, self.box)

    def height(self, maxima: Quadrature) -> float:
        """Return the log-evidence of the labels, the rates integrated out."""
        return maxima.distribution.log_evidence

    def best(self, maxima: Quadrature) -> ChannelFit:
        """Return the fit at the pair of rates of the highest evidence."""
        return maxima.best

    def finished(
        self, maxima: Quadrature, designs: Designs, n_rows: int, random: np.random.RandomState
    ) -> tuple[ChannelFit, Found]:
        """Return the estimate of the rates by a finer grid on all rows."""
        design = maxima.best.design
        if n_rows > len(design.codes):
            design = designs(n_rows)
        quadrature = finer_quadrature(design, self.box, maxima)
        rates = quadrature.distribution
        T = two_rates(rates.estimate(self.estimate))
        positive = float(np.average(design.codes == 1, weights=design.weight))
        return quadrature.at(rates.estimate(self.estimate)), Found(
            T,
            two_rates(rates.estimate("mean")),
            RatesOfTwo(rates, positive),
            rates.structure_probability,
            rates.noise_test,
            rates.symmetry_test,
        )


@dataclass(frozen=True)
class OverStructures:
    """Many classes: the maximum of each structure of T, and Laplace's method around it."""

    # The point estimate: "median" or "mean".
    estimate: str

    @property
    def least_noise(self) -> None:
        """No T in particular."""

    def explored(
        self, design: ChannelDesign, columns: dict[str, Mode] | None = None
    ) -> dict[str, Mode]:
        """Return the maxima of one rate and of few targets, by the names of their structures.

        Few targets are first looked for with the columns, which cannot explain by themselves what
        noise does, and from there with other features, which might.
        """
        return first_modes(design, columns or {}, design.first_variance())

    def height(self, maxima: dict[str, Mode]) -> float:
        """Return the highest log-evidence of a structure with noise, its parameters integrated."""
        return max(mode.log_evidence for mode in maxima.values())

    def best(self, maxima: dict[str, Mode]) -> ChannelFit:
        """Return the highest maximum, but for that of one target, which is the best of many."""
        modes = [mode for mode in maxima.values() if mode.structure.targets is None]
        return max(modes, key=lambda mode: mode.log_evidence).fit

    def finished(
        self, maxima: dict[str, Mode], designs: Designs, n_rows: int, random: np.random.RandomState
    ) -> tuple[ChannelFit, Found]:
        """Return the mean over the structures by their probability."""
        modes = compared(maxima)
        first = modes[0].fit.design
        most = affordable_rows(first.n_classes, first.block.size, SETTINGS.final_work)
        n_final = min(n_rows, most)
        if n_final > len(first.codes):
            modes = refined(modes, designs(n_final))
        probability = probabilities(modes)
        noise_test, alike_test = tests(modes, probability)
        least = SETTINGS.negligible_structure
        modes = [
            _scaled(mode) if p > least and mode.structure.n_parameters else mode
            for mode, p in zip(modes, probability, strict=True)
        ]
        draws, shares = _draws(modes, probability, random)
        T, mean_matrix = _estimates(modes, probability, shares)
        T = mean_matrix if self.estimate == "mean" else T
        design, best = designs(n_rows), modes[int(np.argmax(probability))].fit
        counts = np.bincount(design.codes, design.weight, minlength=len(T))
        return _refitted(best, design, T), Found(
            T,
            mean_matrix,
            DrawnMatrices(draws, shares, counts, is_known=False),
            {p.structure.name: float(c) for p, c in zip(modes, probability, strict=True)},
            noise_test,
            alike_test,
        )


def _refitted(fit: ChannelFit, design: ChannelDesign, T: Floats) -> ChannelFit:
    """Return the maximum over the coefficients at another T, on other rows."""
    start = fit.theta, fit.variance, fit.unscaled_coef
    return fit_coefficients(design, fit.structure, *start, T=T, max_iter=100)


def _shares(fit: ChannelFit) -> Floats:
    """Return the shares of the true classes."""
    true = fit.counts.sum(axis=1)
    return np.asarray(true / true.sum())


def _scaled(mode: Mode) -> Mode:
    """Return a mode moved to the T at which held-out labels are likeliest, along with g."""
    fit = mode.fit
    found = temperature_scaling(held_out_logits(fit), fit.design, fit.structure, fit.theta)
    return mode if found.factor == 1 else mode.at(found.theta, found.spread)


def _estimates(modes: list[Mode], probability: Floats, shares: Floats) -> tuple[Floats, Floats]:
    """Return the estimate of T, and the mean of its distribution.

    The estimate is the mean given noise, and less by as much as the median share of wrong labels is
    less than their median given noise: nothing where noise has a probability below 1/2.
    """
    matrices = np.array([mode.mean_matrix for mode in modes])
    mean = np.tensordot(probability, matrices, axes=1)
    noisy = np.array([mode.structure.n_parameters > 0 for mode in modes])
    clean = np.eye(len(mean))
    if probability[~noisy].sum() > 0.5 or not noisy.any():
        return clean, mean
    given_noise = np.tensordot(probability * noisy / probability[noisy].sum(), matrices, axes=1)
    left = float(np.median(shares) / np.median(shares[shares > 0])) if shares.any() else 0.0
    return clean + left * (given_noise - clean), mean


def _draws(
    modes: list[Mode], probability: Floats, random: np.random.RandomState
) -> tuple[Floats, Floats]:
    """Return draws of T's entries, and of the share of wrong labels, each sorted."""
    K = modes[0].fit.design.n_classes
    size = max(200, min(SETTINGS.n_draws, SETTINGS.block_values // K**2))
    matrices, shares = [], []
    for mode, p in zip(modes, probability, strict=True):
        n = round(p * size)
        if not n or p <= SETTINGS.negligible_structure:
            continue
        drawn = mode.draws(n, random)
        stays = np.diagonal(drawn, axis1=1, axis2=2)
        matrices.append(drawn)
        shares.append(np.clip(1 - stays @ _shares(mode.fit), 0.0, 1.0))  # but for rounding
    return np.sort(np.concatenate(matrices), axis=0), np.sort(np.concatenate(shares))
