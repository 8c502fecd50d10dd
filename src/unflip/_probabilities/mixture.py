"""Noise hypotheses about the labels, weighted by their evidence.

P(observed | x) alone does not tell classes that overlap from label errors. Hypotheses are fitted to
the labels, each with the model's probabilities recalibrated, and averaged by their evidence:

- *alike*: every label is wrong at one rate, and wrong labels are drawn by their shares (three
  classes or more);
- *by class*: T[i, j] = P(observed = j | true = i), on top of the probabilities;
- *inverted*: the same T, removed from the probabilities first: the model has learnt the noise. If
  no class has anchor points, T is also read off the most confident samples;
- the likeliest of these again, with samples that belong to no class.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from unflip._probabilities.hypotheses import (
    FittedSamples,
    NoiseHypothesis,
    fit_again,
    fit_alike,
    fit_by_class,
    row_sums,
)
from unflip._probabilities.settings import SETTINGS
from unflip._utils.simplex import scaled_rows
from unflip._utils.threads import one_blas_thread
from unflip._utils.typing import Array, Floats
from unflip._utils.warning import silenced
from unflip.noise_rates import SelectiveRates
from unflip.weights import ANCHOR_PROBABILITY


class LabelProbabilities(NamedTuple):
    """What the hypotheses imply for each sample."""

    # P(true | x), if x belongs to some class.
    clean: Floats
    # P(true | x, label); a row sums to the probability that x belongs to some class.
    label: Floats
    # P(label | x), recalibrated.
    observed: Floats
    # P(label is wrong), if only T makes labels wrong, and if each sample determines its true label.
    wrong_by_class: Floats
    wrong_if_determined: Floats


@dataclass(frozen=True)
class HypothesisMixture:
    """Noise hypotheses and their probabilities given the labels."""

    hypotheses: tuple[NoiseHypothesis, ...]
    # They sum to one.
    weights: Floats
    # What the hypotheses were fitted to.
    sample: FittedSamples

    def predict(self, noisy_proba: Floats, codes: Array, determined: bool) -> LabelProbabilities:
        """Return what the hypotheses imply; single precision stays single."""
        n_samples, n_classes = noisy_proba.shape
        kind = np.float32 if noisy_proba.dtype == np.float32 else np.float64
        clean, label = (np.zeros((n_samples, n_classes), dtype=kind) for _ in range(2))
        found = LabelProbabilities(clean, label, *(np.zeros(n_samples) for _ in range(3)))
        step = max(SETTINGS.block_samples, SETTINGS.block_values // n_classes)
        with one_blas_thread():
            for start in range(0, n_samples, step):
                block = slice(start, start + step)
                p = np.asarray(noisy_proba[block], dtype=np.float64)
                for whole, part in zip(
                    found, self._block(p, codes[block], determined), strict=True
                ):
                    whole[block] = part
        return found

    def _block(self, p: Floats, codes: Array, determined: bool) -> LabelProbabilities:
        """Return the weighted mean over the hypotheses."""
        rows = np.arange(codes.size), codes
        total = LabelProbabilities(
            np.zeros_like(p), np.zeros_like(p), *(np.zeros(codes.size) for _ in range(3))
        )
        for weight, one in zip(self.weights, self.hypotheses, strict=True):
            clean, none = one.clean_posterior(one.logs(p), self.sample.shares)
            perceived, observed = one.label_posterior(clean, codes)
            of_some_class = np.ones(codes.size)
            if none is not None:
                at_random = none * self.sample.shares[codes]
                some = (1 - none) * observed
                observed = some + at_random
                of_some_class = some / observed
            agreed, true = agreed_posterior(clean, perceived)
            means = (
                agreed if determined else clean,
                (true if determined else perceived) * of_some_class[:, None],
                observed,
                1 - of_some_class * perceived[rows],
                1 - of_some_class * true[rows],
            )
            for sum_, mean in zip(total, means, strict=True):
                sum_ += weight * mean
        np.minimum(total.observed, 1.0, out=total.observed)
        return total


def agreed_posterior(clean: Floats, perceived: Floats) -> tuple[Floats, Floats]:
    r"""Return P(true | x) and P(true | x, label) if each sample determines its true label.

    What the label reads before flips by T, z', is then one reading of the sample, drawn from
    c = P(z' | x), and the model's doubt is that of readings. The true label z is the one on which
    two independent readings agree,

        s_k = P(z = k | x) = c_k^2 / sum_l c_l^2,

    and of all joint distributions of z and z' with these margins, the one with the fewest errors is
    taken: P(z = z' = k | x) = min(s_k, c_k). It keeps z' with probability min(1, s / c) and moves
    the rest to classes in proportion to max(s - c, 0).

    Parameters
    ----------
    clean : P(z' | x)
    perceived : P(z' | x, label)
    """
    agreed = clean * clean
    agreed /= row_sums(agreed)[:, None]
    gain = np.maximum(agreed - clean, 0.0)
    kept = perceived * np.minimum(1.0, agreed / np.maximum(clean, np.finfo(float).tiny))
    moved = np.maximum(1 - row_sums(kept), 0.0)
    gain *= (moved / np.maximum(row_sums(gain), np.finfo(float).tiny))[:, None]
    return agreed, kept + gain


def fit_hypotheses(
    noisy_proba: Floats,
    codes: NDArray[np.intp],
    weight: Floats | None = None,
    random_state: np.random.RandomState | None = None,
) -> HypothesisMixture:
    """Fit the noise hypotheses to the labels and weight them by their evidence."""
    n_samples, n_classes = noisy_proba.shape
    weight = np.ones(n_samples) if weight is None else weight
    most = max(SETTINGS.fitted_values // n_classes, SETTINGS.fewest_fitted)
    if n_classes <= SETTINGS.most_classes:
        most = max(most, SETTINGS.fitted_per_class * n_classes)
    if n_samples > most:
        generator = np.random.RandomState(0) if random_state is None else random_state
        drawn = np.sort(generator.choice(n_samples, most, replace=False))
        noisy_proba, codes, weight = noisy_proba[drawn], codes[drawn], weight[drawn]
    p = np.asarray(noisy_proba, dtype=np.float64)
    # sorted by value, so that sums and optima do not depend on the order of the samples
    order = np.lexsort(((p * np.sqrt(np.arange(1, n_classes + 1))).sum(axis=1), codes))
    with one_blas_thread():
        return _fitted(p[order], codes[order], weight[order])


def _fitted(p: Floats, codes: NDArray[np.intp], weight: Floats) -> HypothesisMixture:
    """Fit every hypothesis and keep those that count."""
    n_classes = p.shape[1]
    blank = NoiseHypothesis(np.eye(n_classes), 1.0, np.zeros(n_classes))
    sample = FittedSamples(blank.logs(p), codes, weight)
    found = [fit_alike(sample)]
    rate = float(np.clip(1 - found[0].matrix[0, 0], 0.01, SETTINGS.largest_prior_rate))
    if n_classes <= SETTINGS.most_classes:
        counted = replace(blank, matrix=_counted(p, sample), scale=2.0)
        few = sample.every(max(1, codes.size // SETTINGS.starting_samples))
        start = max(
            (fit_by_class(few, rate, start) for start in (found[0], counted)),
            key=lambda one: one.evidence,
        )
        by_class = fit_by_class(sample, rate, start)
        without_noise = sample.with_logs(replace(blank, inverted=by_class.matrix).logs(p))
        exact = fit_by_class(without_noise, rate, by_class)
        found += [by_class, replace(exact, inverted=by_class.matrix)]
        if _share_without_anchors(found[0].clean_posterior(sample.logs, sample.shares)[0]):
            found += _by_confidence(p, sample)
    if n_classes == 2:
        # T has two entries: one rate for both classes is no simpler, and averaging it in pulls
        # unequal rates together (`BENCHMARK --gaussian`)
        found = [one for one in found if not one.is_alike]
    if n_classes >= SETTINGS.fewest_classes_with_none:
        found.append(_with_none(max(found, key=lambda one: one.evidence), p, sample, rate))
    return _weighted(found, p, sample)


def _with_none(
    one: NoiseHypothesis, p: Floats, sample: FittedSamples, rate: float
) -> NoiseHypothesis:
    """Fit a hypothesis again, with samples that belong to no class."""
    rows = sample if one.inverted is None else sample.with_logs(one.logs(p))
    for _ in range(2):  # flatness is that of the fit before
        one = fit_again(rows, one, with_none=True, rate=rate)
    return one


def _weighted(found: list[NoiseHypothesis], p: Floats, sample: FittedSamples) -> HypothesisMixture:
    """Return the hypotheses that are not negligible, with their weights."""
    clean = (one.clean_posterior(one.logs(p), sample.shares)[0] for one in found)
    weights = hypothesis_weights(
        np.array([one.evidence for one in found]),
        np.array([_share_without_anchors(one) for one in clean]),
        np.array([one.none_odds > 0 for one in found]),
        float(sample.weight.sum()),
    )
    kept = np.flatnonzero(weights >= 1e-3)  # the others cannot change a digit that is shown
    return HypothesisMixture(
        tuple(found[k] for k in kept), weights[kept] / weights[kept].sum(), sample
    )


def hypothesis_weights(
    evidence: Floats, without_anchors: Floats, has_none: NDArray[np.bool_], n_samples: float
) -> Floats:
    """Return the hypotheses' probabilities: tempered evidence, and full odds of having no class."""
    weights = np.zeros(evidence.size)
    tempered = evidence * min(1.0, SETTINGS.coarse_samples / n_samples)
    tempered -= SETTINGS.no_anchors * without_anchors
    weights[~has_none] = softmax(tempered[~has_none])
    if has_none.any():
        none = float(expit(evidence[has_none].max() - evidence[~has_none].max()))
        weights *= 1 - none
        weights[np.argmax(np.where(has_none, evidence, -np.inf))] = none
    return weights


def _by_confidence(p: Floats, sample: FittedSamples) -> list[NoiseHypothesis]:
    """Remove the noise that is read off the most confident samples."""
    n_classes = sample.shares.size
    selective = np.eye(n_classes)
    among = np.searchsorted(sample.present, sample.codes)
    with silenced():  # the evidence decides whether these rates count
        rates = SelectiveRates().fit_posterior(p[:, sample.present], among, sample.weight)
    selective[np.ix_(sample.present, sample.present)] = rates.transition_matrix_
    rate = float(
        np.clip(sample.shares @ (1 - np.diag(selective)), 0.01, SETTINGS.largest_prior_rate)
    )
    found = []
    for matrix in (sample.noise(rate), selective):
        one = NoiseHypothesis(matrix, 1.0, np.zeros(n_classes), inverted=matrix)
        without_noise = sample.with_logs(one.logs(p))
        fitted = (
            fit_by_class(without_noise, rate, one)
            if matrix is selective
            else fit_alike(without_noise)
        )
        found.append(replace(fitted, inverted=matrix))
    return found


def _share_without_anchors(clean: Floats) -> float:
    """Return the share of the classes that next to no sample surely belongs to."""
    guess, sure = clean.argmax(axis=1), clean.max(axis=1) >= ANCHOR_PROBABILITY
    samples = np.bincount(guess, minlength=clean.shape[1])
    anchors = np.bincount(guess[sure], minlength=clean.shape[1])
    return float(np.mean((samples > 0) & (anchors < SETTINGS.anchor_share * samples)))


def _counted(p: Floats, sample: FittedSamples) -> Floats:
    """Return T by counting the likeliest classes and the labels."""
    n_classes = p.shape[1]
    counts = np.full((n_classes, n_classes), 1 / n_classes)
    np.add.at(counts, (p.argmax(axis=1), sample.codes), sample.weight)
    return scaled_rows(counts)
