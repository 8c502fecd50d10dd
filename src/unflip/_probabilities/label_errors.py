"""Which mistakes explain the labels, from held-out probabilities of any model.

P(noisy | x) alone does not tell overlap of classes from mistakes. Explanations are fitted to the
labels, each with the model's probabilities recalibrated, and averaged by their evidence:

- *alike*: every label is wrong at one rate, and wrong labels are drawn by their shares;
- *by class*: T[i, j] = P(noisy=j | true=i), at rows as hard as the probabilities have them;
- *exact*: the same T, which is first taken out of the probabilities: class-conditional noise that
  the model has learnt. Where no row is sure of its class, T is also read off those that come
  nearest, and such a plateau taken for noise rather than for overlap;
- the likeliest of these again, with rows that are of no class.

What is left of the doubt may be overlap, or mistakes that are made where rows are hard. The rows
that the model is surest of tell how much to blame on labels: where classes merely overlap, next to
none of those disagrees with the model; where people err, they err there too.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from unflip._probabilities.hypotheses import (
    FEWEST_CLASSES,
    Explanation,
    FittedRows,
    centred_logs,
    fit_again,
    fit_alike,
    fit_by_class,
    row_sums,
)
from unflip._utils.simplex import of_another_class, scaled_rows
from unflip._utils.threads import one_blas_thread
from unflip._utils.typing import Array, Floats
from unflip._utils.warning import silenced
from unflip.noise_rates import SelectiveRates
from unflip.weights import SURE

FITTED = 80_000
"""Numbers that the explanations are fitted to: of more, rows are drawn."""

ROWS_OF_A_CLASS = 60
"""But not fewer than so many of each class, on average, where each has a row of T."""

FEW_ROWS = 2000
"""So many of them decide where the fit of T starts."""

MANY_CLASSES = 100
"""Of more classes than this no T is fitted, which has as many entries as there are pairs."""

LARGEST_RATE = 0.5
"""Prior rate of the rows of T; the fitted ones may be higher."""

SURE_SHARE = 0.01
"""A class has sure rows where this share of its rows surely is of it."""

NO_SURE_ROWS = 4.0
"""Nats of prior odds against classes none of which has any: nearly all data have some."""

COARSE_ROWS = 100
"""Explanations are weighed as if there were no more rows: none is quite right, and rows without end
do not make the nearest one so. Their average ranks better than the likeliest alone in
`benchmarks.probability_worlds`."""

SUREST = 1 / 6
"""The rows that the model is surest of: so many of all."""

SUREST_OVERLAP = 0.05
"""Disagreement among the surest rows, as a share of that of all rows, at even odds of overlap and
mistakes; this and the next by `python -m benchmarks.probability_worlds --blame`."""

PLAIN, BLURRED = 0.6, 1.0
"""Where rows of middling sureness disagree so rarely, as a share of all, most rows are plain, and
what disagrees is mistakes; where as often, rows are hard everywhere, and the surest say little."""

LEAST_BLURRED, EVEN_RATE, EVERYWHERE = 0.08, 0.07, (0.12, 0.2)
"""There, so much of the doubt is mistakes at least; and about half of it where labels are wrong
whatever the row at this rate, as a share of disagreement, if the surest rows disagree too, more
than so rarely up to so often. Labels that are right rarely have such a rate, however weak the
model."""

EXPLAINED_AT_ONCE, ROWS_AT_ONCE = 1 << 16, 1 << 10
"""Numbers that are computed at a time, which fit a processor's own memory; rows at least."""


@dataclass(frozen=True)
class Applied:
    """What explanations say of rows."""

    # P(true | x), if x is of some class.
    clean_proba: Floats
    # P(true | x, given label), if x is of some class.
    proba: Floats
    # P(x is of no class | x, given label).
    none_proba: Floats
    # P(the label is wrong | x, the label): of another class, or of none.
    mislabel_proba: Floats
    # P(noisy=given label | x), recalibrated.
    given: Floats


@dataclass(frozen=True)
class Mistakes:
    """Explanations of the labels and how far each is to be believed."""

    # Those that count.
    explanations: tuple[Explanation, ...]
    # Their probabilities given the labels; they sum to one.
    weights: Floats
    # What was fitted to.
    sample: FittedRows
    # The share of wrong labels if mistakes depend on the true class alone; low is 0 where most of
    # the doubt may as well be overlap.
    expected: tuple[float, float]

    @property
    def shares(self) -> Floats:
        """How frequent each label is."""
        return self.sample.shares

    @property
    def matrix(self) -> Floats:
        """T, averaged over the explanations."""
        return np.asarray(
            sum(w * e.matrix for w, e in zip(self.weights, self.explanations, strict=True))
        )

    def apply(self, noisy_posterior: Floats, codes: Array) -> Applied:
        """Return what the explanations say of rows, those in single precision in the same."""
        n_rows, n_classes = noisy_posterior.shape
        kind = np.float32 if noisy_posterior.dtype == np.float32 else np.float64
        clean, proba = (np.zeros((n_rows, n_classes), dtype=kind) for _ in range(2))
        none, wrong, given = (np.zeros(n_rows) for _ in range(3))
        step = max(ROWS_AT_ONCE, EXPLAINED_AT_ONCE // n_classes)
        with one_blas_thread():
            for start in range(0, n_rows, step):
                rows = slice(start, start + step)
                p = np.asarray(noisy_posterior[rows], dtype=np.float64)
                clean[rows], proba[rows], none[rows], wrong[rows], given[rows] = self._said(
                    p, codes[rows]
                )
        return Applied(clean, proba, none, wrong, given)

    def _said(self, p: Floats, codes: Array) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """Return the arrays of :class:`Applied`, of a block of rows."""
        clean, joint = np.zeros_like(p), np.zeros_like(p)
        none, given = np.zeros(len(p)), np.zeros(len(p))
        as_given = centred_logs(p)
        for weight, one in zip(self.weights, self.explanations, strict=True):
            logs = as_given if one.taken_out is None else one.logs(p)
            beliefs, junk = one.beliefs(logs, self.shares)
            posterior, by_class = one.label_posterior(beliefs, codes)
            if junk is not None:
                at_random = junk * self.shares[codes]
                by_class = (1 - junk) * by_class + at_random
                of_none = at_random / by_class
                none += weight * of_none
                posterior *= (1 - of_none)[:, None]
            beliefs *= weight
            posterior *= weight
            clean += beliefs
            joint += posterior
            given += weight * by_class
        wrong = of_another_class(joint, codes)
        joint /= row_sums(joint)[:, None]
        return clean, joint, none, wrong, np.minimum(given, 1.0)


def fit_mistakes(
    noisy_posterior: Floats,
    codes: NDArray[np.intp],
    weight: Floats | None = None,
    random_state: np.random.RandomState | None = None,
) -> Mistakes:
    """Fit the explanations to the labels and weigh them by their evidence."""
    n_rows, n_classes = noisy_posterior.shape
    weight = np.ones(n_rows) if weight is None else weight
    most = max(FITTED // n_classes, 2000)
    if n_classes <= MANY_CLASSES:
        most = max(most, ROWS_OF_A_CLASS * n_classes)
    if n_rows > most:
        generator = np.random.RandomState(0) if random_state is None else random_state
        drawn = np.sort(generator.choice(n_rows, most, replace=False))
        noisy_posterior, codes, weight = noisy_posterior[drawn], codes[drawn], weight[drawn]
    p = np.asarray(noisy_posterior, dtype=np.float64)
    # by their values: sums, and where the climbs end, do not depend on the order that rows came in
    order = np.lexsort(((p * np.sqrt(np.arange(1, n_classes + 1))).sum(axis=1), codes))
    with one_blas_thread():
        return _fitted(p[order], codes[order], weight[order])


def _fitted(p: Floats, codes: NDArray[np.intp], weight: Floats) -> Mistakes:
    n_classes = p.shape[1]
    blank = Explanation(np.eye(n_classes), 1.0, np.zeros(n_classes))
    sample = FittedRows(blank.logs(p), codes, weight)
    found = [fit_alike(sample)]
    rate = float(np.clip(1 - found[0].matrix[0, 0], 0.01, LARGEST_RATE))
    if n_classes <= MANY_CLASSES:
        counted = replace(blank, matrix=_counted(p, sample), scale=2.0)
        few = sample.every(max(1, codes.size // FEW_ROWS))
        start = max(
            (fit_by_class(few, rate, start) for start in (found[0], counted)),
            key=lambda one: one.evidence,
        )
        by_class = fit_by_class(sample, rate, start)
        inverted = sample.with_logs(replace(blank, taken_out=by_class.matrix).logs(p))
        exact = fit_by_class(inverted, rate, by_class)
        found += [by_class, replace(exact, taken_out=by_class.matrix)]
        if _share_without_sure_rows(found[0].beliefs(sample.logs, sample.shares)[0]):
            found += _plateaus(p, sample)
    if n_classes >= FEWEST_CLASSES:
        found.append(_with_junk(max(found, key=lambda one: one.evidence), p, sample, rate))
    return _weighed(found, p, sample)


def _with_junk(one: Explanation, p: Floats, sample: FittedRows, rate: float) -> Explanation:
    """Fit an explanation again, with rows that are of no class."""
    rows = sample if one.taken_out is None else sample.with_logs(one.logs(p))
    for _ in range(2):  # flatness is that of the fit before
        one = fit_again(rows, one, junk=True, rate=rate)
    return one


def _weighed(found: list[Explanation], p: Floats, sample: FittedRows) -> Mistakes:
    """Return the explanations that count, with their weights and what doubt they leave."""
    beliefs = [one.beliefs(one.logs(p), sample.shares) for one in found]
    rate = 1 - float(found[0].matrix[0, 0])
    weights = _weights(
        np.array([one.evidence for one in found]),
        np.array([_share_without_sure_rows(believed) for believed, _ in beliefs]),
        np.array([one.junk > 0 for one in found]),
        float(sample.weight.sum()),
    )
    kept, low, high = [], 0.0, 0.0
    for one, weight, (believed, junk) in zip(found, weights, beliefs, strict=True):
        if weight < 1e-3:
            continue
        doubts = _Doubts(one, believed, junk, sample, rate)
        kept.append((weight, replace(one, blame=doubts.blame())))
        low += weight * (doubts.expected if doubts.explained > 0.5 else 0.0)
        high += weight * doubts.expected
    weights = np.array([weight for weight, _ in kept])
    return Mistakes(
        tuple(one for _, one in kept),
        weights / weights.sum(),
        sample,
        (float(low / weights.sum()), float(high / weights.sum())),
    )


def _weights(
    evidence: Floats, without_sure_rows: Floats, has_junk: NDArray[np.bool_], n_rows: float
) -> Floats:
    """Return how far each explanation is believed.

    Those without junk by coarsened evidence (Miller and Dunson, JASA 2019); junk by its own odds.
    """
    weights = np.zeros(evidence.size)
    coarse = evidence * min(1.0, COARSE_ROWS / n_rows) - NO_SURE_ROWS * without_sure_rows
    weights[~has_junk] = softmax(coarse[~has_junk])
    if has_junk.any():
        none = float(expit(evidence[has_junk].max() - evidence[~has_junk].max()))
        weights *= 1 - none
        weights[np.argmax(np.where(has_junk, evidence, -np.inf))] = none
    return weights


class _Doubts:
    """What an explanation says of wrong labels, and what it leaves open."""

    def __init__(
        self,
        one: Explanation,
        beliefs: Floats,
        junk: Floats | None,
        sample: FittedRows,
        rate: float,
    ) -> None:
        self.one, self.beliefs, self.sample, self.rate = one, beliefs, sample, rate
        posterior, given = one.label_posterior(beliefs, sample.codes)
        self.weight = sample.weight
        if junk is not None:
            real = (1 - junk) * given
            self.weight = sample.weight * real / (real + junk * sample.shares[sample.codes])
        self.expected = self._mean(1 - posterior[sample.own])
        self.doubt = self._mean(1 - beliefs[sample.own])
        self.explained = min(1.0, self.expected / max(self.doubt, 1e-12))

    def _mean(self, values: Array) -> float:
        return float(np.average(values, weights=self.weight))

    def blame(self) -> float:
        """Return how much of the doubt that T leaves is taken for mistakes.

        Where most rows are plain there are two witnesses of the share of wrong labels: T alone; and
        the doubt, as far as the surest rows disagree with the model, which overlap alone would not
        make them. Where T explains all that the surest rows do, both are as likely: elsewhere there
        may be more noise, or not. Where rows are hard everywhere, the rate of mistakes that are
        made whatever the row tells how many are made beside them.
        """
        if not self.one.is_alike and self.explained > 0.5:
            return 0.0  # T by class that explains most of the doubt leaves overlap
        sample, noisy = self.sample, self.beliefs @ self.one.matrix
        largest = noisy.max(axis=1)
        disagrees = noisy.argmax(axis=1) != sample.codes
        third, two_thirds, sure = np.quantile(largest, [1 / 3, 2 / 3, 1 - SUREST])
        surest, middle = largest >= sure, (largest >= third) & (largest <= two_thirds)
        overall = max(self._mean(disagrees), 1e-12)
        among, between = (
            float(np.average(disagrees[rows], weights=self.weight[rows] + 1e-12))
            # of two samples, none lies in the middle third
            for rows in (surest, middle if middle.any() else np.ones_like(middle))
        )
        odds = among / (SUREST_OVERLAP * overall)
        sharp = scaled_rows(self.one.sharpened(self.beliefs))
        sharp_doubt = self._mean(1 - sharp[sample.own])
        overlap = float(np.mean(1 - self.beliefs[surest].max(axis=1)))
        by_noise = np.clip(1 - overlap / max(among, 1e-12), 0.0, 1.0) / 2
        by_noise *= min(1.0, among / max(self.expected, 1e-12))
        plain = by_noise * self.expected + (1 - by_noise) * sharp_doubt * odds / (1 + odds)
        everywhere = np.interp(among / overall, EVERYWHERE, [0.0, 1.0])
        everywhere *= self.rate / (self.rate + EVEN_RATE * overall)
        hard = sharp_doubt * (LEAST_BLURRED + (1 - LEAST_BLURRED) * everywhere)
        blurred = np.interp(between / overall, [PLAIN, BLURRED], [0.0, 1.0])
        likely = (1 - blurred) * plain + blurred * hard
        return _blame_for(likely, self.expected, self.doubt, sharp_doubt)


def _blame_for(likely: float, expected: float, doubt: float, sharp_doubt: float) -> float:
    """Return the blame c at which so many labels are said to be wrong, if any does.

    (1 - c) expected + c (1 - c) doubt + c^2 sharp_doubt = likely, as
    :meth:`Explanation.label_posterior` has it.
    """
    more, slope = max(likely - expected, 0.0), max(doubt - expected, 1e-12)
    root = np.sqrt(max(slope**2 - 4 * (doubt - sharp_doubt) * more, 0.0))
    return float(min(2 * more / (slope + root), 1.0))


def _plateaus(p: Floats, sample: FittedRows) -> list[Explanation]:
    """Take out the noise that is read off the rows that come nearest to being sure."""
    n_classes = sample.shares.size
    selective = np.eye(n_classes)
    among = np.searchsorted(sample.present, sample.codes)
    with silenced():  # the evidence decides whether these rates count
        rates = SelectiveRates().fit_posterior(p[:, sample.present], among, sample.weight)
    selective[np.ix_(sample.present, sample.present)] = rates.transition_matrix_
    rate = float(np.clip(sample.shares @ (1 - np.diag(selective)), 0.01, LARGEST_RATE))
    found = []
    for matrix in (sample.noise(rate), selective):
        one = Explanation(matrix, 1.0, np.zeros(n_classes), taken_out=matrix)
        inverted = sample.with_logs(one.logs(p))
        fitted = fit_by_class(inverted, rate, one) if matrix is selective else fit_alike(inverted)
        found.append(replace(fitted, taken_out=matrix))
    return found


def _share_without_sure_rows(beliefs: Floats) -> float:
    """Return the share of the classes that have next to no row that surely is of them."""
    guess, sure = beliefs.argmax(axis=1), beliefs.max(axis=1) >= SURE
    rows = np.bincount(guess, minlength=beliefs.shape[1])
    sure_rows = np.bincount(guess[sure], minlength=beliefs.shape[1])
    return float(np.mean((rows > 0) & (sure_rows < SURE_SHARE * rows)))


def _counted(p: Floats, sample: FittedRows) -> Floats:
    """Return T by counting guesses and labels."""
    n_classes = p.shape[1]
    counts = np.full((n_classes, n_classes), 1 / n_classes)
    np.add.at(counts, (p.argmax(axis=1), sample.codes), sample.weight)
    return scaled_rows(counts)
