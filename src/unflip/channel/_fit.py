"""Fit of T and the clean posterior: choice of rows and structures."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from unflip._utils.typing import Floats
from unflip.channel._check import DOUBTED, check_softmax_channel
from unflip.channel._choose import (
    CHOICE_PILOT_ROWS,
    FEATURES,
    LEAST_SCOUTED,
    Candidate,
    Features,
    SoftmaxSample,
    best_features,
    head_of,
    may_bend,
    with_columns,
)
from unflip.channel._climb import Peak
from unflip.channel._compare import (
    compared,
    probabilities,
    refined,
    tests,
)
from unflip.channel._copies import distinct_rows
from unflip.channel._design import SoftmaxDesign, softmax_over_classes
from unflip.channel._distribution import Distribution, DrawnMatrices, RatesOfTwo
from unflip.channel._evidence import (
    SoftmaxFit,
    fit_softmax,
    mean_softmax,
)
from unflip.channel._features import ChannelFeatures
from unflip.channel._forest import ForestFeatures
from unflip.channel._outcomes import EvidenceTest, ModelCheck
from unflip.channel._rates import EXPLORED, Box, box_of
from unflip.channel._sharpness import held_out_logits, sharpened
from unflip.channel._two_classes import (
    Quadrature,
    finer_quadrature,
    first_quadrature,
    fit_at,
    rates_at,
    two_rates,
)
from unflip.noise import Noise, TransitionMatrix

Moderation = tuple[Floats, Floats, Floats]

FINAL_WORK = 6e9
"""Work of one evaluation where little is left to find."""

NEGLIGIBLE_STRUCTURE = 1e-3
"""Structures of a smaller probability are left out."""

SUSPECTED = 1.5
"""Statistic of the check of the columns alone from which on more is tried in any case."""

N_MATRIX_DRAWS, MOST_NUMBERS = 2000, 1_000_000
"""Matrices drawn from the distribution of T, and how many numbers they may hold."""

WIDTHS = (1.0, 0.5)
"""Widths of the bumps that are compared for two classes, in median distances of two rows."""

HELP = 1.0
"""Gain of the log-evidence by bumps from which on they are tried for two classes."""

MODERATED_ROWS = 3000
"""Up to so many rows the uncertainty of w is part of the clean posterior."""


@dataclass(frozen=True)
class SoftmaxChannel:
    """The fitted channel.

    Parameters
    ----------
    T : ndarray of shape (n_classes, n_classes)
        The estimate.
    mean_matrix : ndarray of shape (n_classes, n_classes)
        The mean of the distribution of T, which never rules noise out.
    distribution : Distribution
        The distribution of T.
    structure_probability : dict
        Probability of each structure given the labels.
    noise_test, alike_test : EvidenceTest or None
        Tests of no noise, and of one rate for all classes; None where T is known.
    features_name : str
        Which features the evidence chose.
    features : ChannelFeatures or ForestFeatures
        What t is linear in.
    coef : ndarray of shape (n_features, n_classes)
        w.
    moderation : (root, directions, covariances) or None
        What is known of the uncertainty of w.
    check : ModelCheck or None, default=None
        How well it explains labels that it has not seen, where that was asked.
    """

    T: Floats
    mean_matrix: Floats
    distribution: Distribution
    structure_probability: dict[str, float]
    noise_test: EvidenceTest | None
    alike_test: EvidenceTest | None
    features_name: str
    features: Features
    coef: Floats
    moderation: Moderation | None
    check: ModelCheck | None = None

    def clean_posterior(self, rows: Floats) -> Floats:
        """Return P(true | x) of new rows."""
        F = self.features.transform(rows)
        return _clean(F @ self.coef, F, self.moderation)


def _clean(logits: Floats, F: Floats, moderation: Moderation | None) -> Floats:
    """Return P(true | x), averaged over w where its uncertainty is known."""
    if moderation is None:
        return softmax_over_classes(np.ascontiguousarray(logits.T)).T
    root, directions, covariances = moderation
    return mean_softmax(logits, F * root, directions, covariances)


@dataclass(frozen=True)
class Model:
    """Features that t may be linear in."""

    # "linear", "nystroem" or "trees".
    name: str
    features: Features
    # The scores that a forest has for the rows of its fit.
    held_out: Floats | None


@dataclass(frozen=True)
class FittedRows:
    """The rows of a fit, whose features do not know their labels, even by a forest.

    Parameters
    ----------
    fit : SoftmaxFit
        The fit to distinct pairs of row and label.
    sharpness : float
        What its t is multiplied by.
    moderation : (root, directions, covariances) or None
        What is known of the uncertainty of w.
    position : ndarray of shape (n_samples,)
        The pair of each row.
    sample : SoftmaxSample
        The pairs.
    features : ChannelFeatures or ForestFeatures
        What t is linear in.
    scores : ndarray or None
        The held-out scores that a forest has for them.
    """

    fit: SoftmaxFit
    sharpness: float
    moderation: Moderation | None
    position: NDArray[np.intp]
    sample: SoftmaxSample
    features: Features
    scores: Floats | None

    def held_out(self) -> Floats:
        """Return P(true | x) of the rows, each without its own label; T and variances are held."""
        fit, sample = self.fit, self.sample
        F, logits = fit.design.features, held_out_logits(fit)
        if isinstance(self.features, ForestFeatures) and self.scores is not None:
            # held-out scores of a part of the trees vary more than those that predict new rows
            steadier = self.features.steadier(sample.rows, sample.codes, sample.weight, self.scores)
            before, F = F, F.copy()
            F[: len(steadier), -sample.n_classes :] = steadier
            logits += (F - before) @ fit.unscaled_coef
        return _clean(self.sharpness * logits, F, self.moderation)[self.position]


def fit_softmax_channel(
    sample: SoftmaxSample,
    known: Noise | None,
    random_state: np.random.RandomState,
    *,
    candidates: Sequence[str] = FEATURES,
    n_centers: int = 60,
    estimate: str = "median",
    checked: bool = False,
) -> tuple[SoftmaxChannel, FittedRows]:
    """Fit P(noisy | x) = softmax(t(x)) T, and return it with the rows as it has seen them.

    Parameters
    ----------
    sample : SoftmaxSample
        The noisy data.
    known : NoiseRates, TransitionMatrix or None
        What is known of T: for two classes also bounds of the rates.
    random_state : RandomState instance
        Generator of the centers, of the order of the rows and of the draws.
    candidates : sequence of {"linear", "nystroem", "trees"}
        Features that are compared.
    n_centers : int, default=60
        Maximum number of bumps.
    estimate : {"median", "mean"}, default="median"
        "mean": the mean over all structures. "median": no noise if that has a probability above
        1/2, else the mean over the others, or the medians of two rates.
    checked : bool, default=False
        Whether to ask trees if the channel explains labels that it has not seen.
    """
    found = distinct_rows(sample.rows, sample.codes, sample.weight, random_state)
    position, sample = (
        found.position,
        SoftmaxSample(
            sample.rows[found.first], sample.codes[found.first], found.weight, sample.n_classes
        ),
    )
    matrix = known.matrix if isinstance(known, TransitionMatrix) else None
    if sample.n_classes == 2:
        box = box_of(known.rates if isinstance(known, TransitionMatrix) else known)
        if any(low < high for low, high in box):
            two = _TwoRates(sample, position, box, random_state, n_centers, estimate)
            return two.fitted(candidates, checked=checked)
        matrix = two_rates([low for low, _ in box])
    columns = with_columns(sample, n_centers, matrix)
    finish = partial(_finished, sample, position, matrix, random_state, estimate)
    plain = None
    if candidates[0] == "linear":
        plain = finish(columns)
        if not checked:
            return plain
        if not may_bend(sample, plain[1].fit, plain[1].sharpness):
            plain = _checked(*plain)
            if plain[0].check is not None and plain[0].check.statistic < SUSPECTED:
                return plain
    chosen = best_features(sample, candidates, columns, n_centers, matrix, random_state)
    if plain is not None and chosen is columns:
        return _checked(*plain)
    fitted = finish(chosen)
    return _checked(*fitted) if checked else fitted


def _checked(channel: SoftmaxChannel, fitted: FittedRows) -> tuple[SoftmaxChannel, FittedRows]:
    """Return the same with the check of how well it explains labels that it has not seen."""
    if channel.check is None:
        check = check_softmax_channel(fitted.sample.rows, fitted.fit, fitted.sharpness)
        channel = replace(channel, check=check)
    return channel, fitted


@dataclass(frozen=True)
class _TwoRates:
    """The fit where T has two free parameters."""

    sample: SoftmaxSample
    position: NDArray[np.intp]
    box: Box
    random_state: np.random.RandomState
    n_centers: int
    estimate: str

    def fitted(
        self, candidates: Sequence[str], *, checked: bool
    ) -> tuple[SoftmaxChannel, FittedRows]:
        """Return the fit with the features of the highest evidence.

        Trees are grown where the goodness of fit rejects the columns and the bumps.
        """
        sample = self.sample
        if candidates[0] == "trees":
            return self._finished(self._trees())[0]
        models = [self._columns(None)]
        if "nystroem" in candidates:
            models += [self._columns(width) for width in WIDTHS]
        found, height = self._finished(*self._chosen(models))
        if not checked:
            return found
        found = _checked(*found)
        check, enough = found[0].check, len(sample.rows) >= LEAST_SCOUTED
        if "trees" in candidates and enough and check is not None and check.statistic >= DOUBTED:
            scored, other = self._finished(self._trees())
            if other > height:
                return _checked(*scored)
        return found

    def _pilot(self, model: Model) -> SoftmaxDesign:
        return self.sample.design(model.features, CHOICE_PILOT_ROWS, model.held_out)

    def _chosen(self, models: list[Model]) -> tuple[Model, Quadrature]:
        """Return the columns, or the bumps if these have more evidence, on some rows.

        Bumps are compared where the columns explain most, and where there is no noise.
        """
        columns, *others = models
        first = first_quadrature(self._pilot(columns), self.box)
        lowest = [low for low, _ in self.box]
        places = {tuple(rates_at(first.best)): HELP, tuple(lowest): -EXPLORED}
        best, height = columns, -np.inf
        for model in others:
            design, start = self._pilot(model), None
            for rates, gain in places.items():
                start = fit_at(design, rates, start)
                higher = start.log_likelihood - first.best.log_likelihood - gain
                if higher > max(height, 0.0):
                    best, height = model, higher
        if best is columns:
            return columns, first
        second = first_quadrature(self._pilot(best), self.box)
        if second.distribution.log_evidence > first.distribution.log_evidence:
            return best, second
        return columns, first

    def _columns(self, width: float | None) -> Model:
        features = ChannelFeatures(width, self.n_centers).fit(*head_of(self.sample))
        return Model("linear" if width is None else "nystroem", features, None)

    def _trees(self) -> Model:
        columns = ChannelFeatures(None, self.n_centers).fit(*head_of(self.sample))
        features, seed = ForestFeatures(columns), self.random_state.randint(np.iinfo(np.int32).max)
        sample = self.sample
        held_out = features.fit(sample.rows, sample.codes, sample.weight, 2, seed)
        return Model("trees", features, held_out)

    def _finished(
        self, model: Model, pilot: Quadrature | None = None
    ) -> tuple[tuple[SoftmaxChannel, FittedRows], float]:
        """Return the fit with some features, and its evidence."""
        sample = self.sample
        pilot = pilot or first_quadrature(self._pilot(model), self.box)
        design = pilot.best.design
        if len(sample.rows) > CHOICE_PILOT_ROWS:
            design = sample.design(model.features, len(sample.rows), model.held_out)
        found = finer_quadrature(design, self.box, pilot)
        rates = found.distribution
        T = two_rates(rates.estimate(self.estimate))
        positive = float(np.average(sample.codes == 1, weights=sample.weight))
        result = _Found(
            found.at(rates.estimate(self.estimate)),
            T,
            two_rates(rates.estimate("mean")),
            RatesOfTwo(rates, positive),
            rates.structure_probability,
            rates.noise_test,
            rates.symmetry_test,
        )
        return _assembled(sample, self.position, model, result), rates.log_evidence


@dataclass(frozen=True)
class _Found:
    """T with its distribution, and the coefficients at it."""

    fit: SoftmaxFit
    T: Floats
    mean_matrix: Floats
    distribution: Distribution
    structure_probability: dict[str, float]
    noise_test: EvidenceTest | None = None
    alike_test: EvidenceTest | None = None


def _finished(
    sample: SoftmaxSample,
    position: NDArray[np.intp],
    known: Floats | None,
    random_state: np.random.RandomState,
    estimate: str,
    chosen: Candidate,
) -> tuple[SoftmaxChannel, FittedRows]:
    """Return the channel with the chosen features, on all rows."""
    rows = sample.rows
    features, held_out = chosen.features, chosen.held_out
    noise_test, alike_test = None, None
    if known is not None:
        peaks, probability = list(chosen.found.values()), np.ones(1)
    else:
        n_final = min(len(rows), sample.affordable(features.block.size, FINAL_WORK))
        peaks = compared(chosen.found)
        if n_final > len(peaks[0].fit.design.codes):
            peaks = refined(peaks, sample.design(features, n_final, held_out))
        probability = probabilities(peaks)
        noise_test, alike_test = tests(peaks, probability)
        peaks = [
            _sharpened(peak) if p > NEGLIGIBLE_STRUCTURE and peak.structure.n_parameters else peak
            for peak, p in zip(peaks, probability, strict=True)
        ]
    draws, shares = _draws(peaks, probability, known, random_state)
    if known is not None:
        T = mean_matrix = known
    else:
        T, mean_matrix = _estimates(peaks, probability, shares)
        T = mean_matrix if estimate == "mean" else T
    best = peaks[int(np.argmax(probability))].fit
    final = fit_softmax(
        sample.design(features, len(rows), held_out),
        best.structure,
        best.theta,
        best.variance,
        best.unscaled_coef,
        T=T,
        max_iter=100,
    )
    counts = np.bincount(sample.codes, sample.weight, minlength=sample.n_classes)
    chances = {p.structure.name: float(c) for p, c in zip(peaks, probability, strict=True)}
    distribution = DrawnMatrices(draws, shares, counts.astype(np.float64), known is not None)
    found = _Found(
        final,
        T,
        mean_matrix,
        distribution,
        {} if known is not None else chances,
        noise_test,
        alike_test,
    )
    return _assembled(sample, position, Model(chosen.name, features, held_out), found)


def _assembled(
    sample: SoftmaxSample, position: NDArray[np.intp], model: Model, found: _Found
) -> tuple[SoftmaxChannel, FittedRows]:
    """Return the channel, its clean posterior as sharp as held-out labels say."""
    fit, T = found.fit, found.T
    factor = sharpened(held_out_logits(fit), fit.design, fit.structure, fit.theta, T).factor
    moderation = None
    if len(sample.rows) <= MODERATED_ROWS and factor == 1:
        root = np.sqrt(fit.variance[fit.design.block])
        moderation = root, fit.directions, fit.covariances
    channel = SoftmaxChannel(
        T=T,
        mean_matrix=found.mean_matrix,
        distribution=found.distribution,
        structure_probability=found.structure_probability,
        noise_test=found.noise_test,
        alike_test=found.alike_test,
        features_name=model.name,
        features=model.features,
        coef=factor * fit.unscaled_coef,
        moderation=moderation,
    )
    rows = FittedRows(fit, factor, moderation, position, sample, model.features, model.held_out)
    return channel, rows


def _sharpened(peak: Peak) -> Peak:
    """Return a maximum moved to the T at which held-out labels are likeliest, if g is sharper."""
    fit = peak.fit
    found = sharpened(held_out_logits(fit), fit.design, fit.structure, fit.theta)
    return peak if found.factor == 1 else peak.at(found.theta, found.spread)


def _estimates(peaks: list[Peak], probability: Floats, shares: Floats) -> tuple[Floats, Floats]:
    """Return the estimate of T, and the mean of its distribution.

    The estimate is the mean given noise, and less by as much as the median share of wrong labels is
    less than their median given noise: nothing where noise has a probability below 1/2.
    """
    matrices = np.array([peak.mean_matrix for peak in peaks])
    mean = np.tensordot(probability, matrices, axes=1)
    noisy = np.array([peak.structure.n_parameters > 0 for peak in peaks])
    clean = np.eye(len(mean))
    if probability[~noisy].sum() > 0.5 or not noisy.any():
        return clean, mean
    given_noise = np.tensordot(probability * noisy / probability[noisy].sum(), matrices, axes=1)
    left = float(np.median(shares) / np.median(shares[shares > 0])) if shares.any() else 0.0
    return clean + left * (given_noise - clean), mean


def _draws(
    peaks: list[Peak], probability: Floats, known: Floats | None, random: np.random.RandomState
) -> tuple[Floats, Floats]:
    """Return draws of T's entries, and of the share of wrong labels, each sorted."""
    K = peaks[0].fit.design.n_classes
    size = max(200, min(N_MATRIX_DRAWS, MOST_NUMBERS // K**2))
    matrices, shares = [], []
    for peak, p in zip(peaks, probability, strict=True):
        n = round(p * size)
        if known is not None:
            drawn = known[None]
        elif n and p > NEGLIGIBLE_STRUCTURE:
            drawn = peak.draws(n, random)
        else:
            continue
        true = peak.fit.counts.sum(axis=1)
        stays = np.diagonal(drawn, axis1=1, axis2=2)
        matrices.append(drawn)
        shares.append(np.clip(1 - stays @ (true / true.sum()), 0.0, 1.0))  # but for rounding
    return np.sort(np.concatenate(matrices), axis=0), np.sort(np.concatenate(shares))
