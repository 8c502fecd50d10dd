"""The noisy channel: rates and clean posterior fitted together."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from scipy.special import expit
from sklearn.base import clone
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from unflip._validation import (
    check_choice,
    check_count,
    check_enough_rows,
    check_labels,
    check_table,
    check_weights,
)
from unflip.noise import NoiseRates
from unflip.noise_rates._base import LARGEST_TOTAL, BaseRates
from unflip.noise_rates._channel_evidence import (
    ChannelFit,
    Design,
    first_guess,
    fit_channel,
    information_factor,
    mean_sigmoid,
)
from unflip.noise_rates._channel_features import ChannelFeatures, distinct_rows
from unflip.noise_rates._channel_surface import (
    Box,
    GridSurface,
    QuadraticSurface,
    RatePosterior,
    climb,
    explore,
    narrow,
)

Array = NDArray[Any]
Floats = NDArray[np.float64]

WIDTHS = (None, 1.0, 0.5)
"""Widths of the bumps to choose from, in median distances of two rows; None: no bumps."""

N_GRID = 3000
"""Up to so many rows the evidence is computed on a grid; beyond, around its maximum."""

N_COARSE, N_FINE = 6, 5
"""Values per rate in the first grid, and in the one that zooms in."""

PILOT_ROWS, N_PILOT, SCOUT_TOL = 1000, 3, 0.1
"""Of more rows: so many, and a grid so coarse, to find the neighbourhood of the maximum."""

RIVALS, ROUGH = 6.0, 0.5
"""Difference of the log-evidence on few rows up to which all rows choose, and its tolerance."""

RULED_OUT = 40.0
"""Difference of the log-evidence on few rows beyond which more rows need not be asked."""

LARGEST_UNKNOWN = 0.5
"""A rate of which nothing is known is at most this."""

CHUNK = 20_000

MOST_COLUMNS = 500
"""Sparse rows of more columns are not made dense."""


@dataclass(frozen=True)
class _Part:
    """One model's part in the clean posterior; `factor` tells how sure the coefficients are."""

    share: float
    features: ChannelFeatures
    coef: Floats
    factor: Floats | None = None

    def clean_posterior(self, rows: Floats) -> Floats:
        if self.factor is None:
            return np.asarray(expit(self.features.latent(rows, self.coef)))
        return mean_sigmoid(self.features.transform(rows), self.coef, self.factor)


class ChannelRates(BaseRates):
    r"""P(noisy=+1 | x) = rho_neg + (1 - rho_pos - rho_neg) g(x), rates and g fitted together.

    g = sigmoid(t) is the clean posterior, t a linear function plus a sum of Gaussian bumps with a
    Gaussian prior on its coefficients. For every pair of rates the coefficients are integrated out
    (Laplace), which gives the evidence of the noisy labels as a function of the rates; the rates
    are the medians of their distribution given it.

    Parameters
    ----------
    features : {"nystroem", "linear"} or transformer, default="nystroem"
        What t is linear in: the columns and Gaussian bumps, with the bumps' width chosen by the
        evidence; the columns; or what a transformer makes of the rows (it is fitted on them).
    n_centers : int, default=60
        How many bumps, at most.
    known : NoiseRates, default=None
        Rates that are known, or bounds of them: `NoiseRates(positive=None, negative=0.0)` where
        only positives may be mislabelled. A rate of which nothing is known lies in [0, 0.5].
    level : float, default=0.95
        Probability of the interval.
    max_rows : int, default=20_000
        Of more rows, a random sample of so many is used for the rates.
    random_state : int, RandomState instance or None, default=None
        Seed of the centers and the sample.

    Attributes
    ----------
    rates_ : NoiseRates
        The estimate: (0, 0) where no noise is more likely than any, else the medians.
    interval_ : NoiseRates
        Bounds (low, high) of either: the shortest range that holds the rate with probability
        `level`.
    p_clean_ : float
        Probability that no label is flipped.
    classes_ : ndarray of shape (2,)
        The labels, the positive class last.

    Notes
    -----
    Before the data, the rates are (0, 0) with probability 0.1, equal to each other with probability
    0.225, and otherwise anywhere within their bounds alike. Equal rates have a share of their own
    because they need no correction of the decision: where the data say little, this keeps the
    estimate from inventing a difference.

    What identifies the rates is the shape of g: overlap of the classes is told from noise by the
    plateaus that noise leaves. Weights are repetitions, exactly so for up to 3000 rows.

    References
    ----------
    Bootkrajang and Kabán (2012), "Label-noise robust logistic regression and its applications",
    ECML PKDD. MacKay (1992), "The evidence framework applied to classification networks", Neural
    Computation.

    Examples
    --------
    >>> import numpy as np
    >>> from unflip import NoiseRates, flip_labels
    >>> from unflip.noise_rates import ChannelRates
    >>> X = np.random.default_rng(0).uniform(size=(2000, 2))
    >>> y = flip_labels(X.sum(axis=1) > 1, NoiseRates(positive=0.3, negative=0.1), random_state=0)
    >>> channel = ChannelRates(random_state=0).fit(X, y)
    >>> print(channel.rates_)
    NoiseRates(positive=0.313, negative=0.0803)
    """

    rates_: NoiseRates
    interval_: NoiseRates
    p_clean_: float

    def __init__(
        self,
        features: Any = "nystroem",
        n_centers: int = 60,
        *,
        known: NoiseRates | None = None,
        level: float = 0.95,
        max_rows: int = 20_000,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.features = features
        self.n_centers = n_centers
        self.known = known
        self.level = level
        self.max_rows = max_rows
        self.random_state = random_state

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Estimate the rates and the clean posterior.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            Rows; sparse ones of at most 500 columns, or through a transformer that makes them
            dense.
        y : array-like of shape (n_samples,)
            Noisy labels, of two classes.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts.
        """
        box = self._box()
        classes, codes = check_labels(y)
        check_enough_rows(X, codes)
        transformer, rows = self._fitted_rows(X, codes)
        check_consistent_length(rows, codes)
        weight = check_weights(sample_weight, codes.size)
        counts = np.flatnonzero(weight)
        if not 0 < codes[counts].mean() < 1:
            raise ValueError(
                "every row of one of the classes has sample_weight 0, and rows of both are needed."
            )
        random = check_random_state(self.random_state)
        if counts.size > N_GRID:
            counts = random.permutation(counts)[: self.max_rows]
        sample = _Sample(rows[counts], codes[counts] == 1, weight[counts])
        maps = self._feature_maps(sample.head(N_GRID), random)
        if counts.size <= N_GRID:
            posterior, parts = _on_a_grid(sample, maps, box)
        else:
            posterior, parts = _around_the_maximum(sample, maps, box)
        positive, negative = posterior.interval(self.level)
        self.rates_ = NoiseRates(*posterior.rates)
        self.interval_ = NoiseRates(positive=positive, negative=negative)
        self.p_clean_ = posterior.p_origin
        self.classes_ = classes
        self._transformer, self._parts = transformer, parts
        check_table(self, X, reset=True)
        return self

    def predict_clean_proba(self, X: Any) -> Floats:
        """Return P(true y | x), one column per class.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            Rows.
        """
        check_is_fitted(self)
        check_table(self, X, reset=False)
        rows = _dense(X if self._transformer is None else self._transformer.transform(X))
        clean = np.zeros(len(rows))
        for first in range(0, len(rows), CHUNK):
            chunk = slice(first, first + CHUNK)
            for part in self._parts:
                clean[chunk] += part.share * part.clean_posterior(rows[chunk])
        return np.column_stack([1 - clean, clean])

    def predict_noisy_proba(self, X: Any) -> Floats:
        """Return P(noisy y | x), one column per class.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            Rows.
        """
        return self.predict_clean_proba(X) @ self.transition_matrix_

    def _box(self) -> Box:
        """Return the range of either rate, a known one's being a point."""
        check_count(self.n_centers, "n_centers", least=1)
        check_count(self.max_rows, "max_rows", least=N_GRID)
        if not 0 < self.level < 1:
            raise ValueError(f"level must lie between 0 and 1, got {self.level!r}.")
        known = NoiseRates(None, None) if self.known is None else self.known
        rates = known.positive, known.negative
        box = np.array(
            [
                (0.0, LARGEST_UNKNOWN) if rate is None else ends
                for rate, ends in zip(rates, known.bounds, strict=True)
            ]
        )
        lowest = box[:, 0].sum()
        if lowest > LARGEST_TOTAL:
            raise ValueError(
                f"the rates are given to sum to at least {lowest:.3g}; beyond {LARGEST_TOTAL} the "
                "labels say next to nothing about the true classes. Lower them."
            )
        box[:, 1] = np.minimum(box[:, 1], LARGEST_TOTAL - box[::-1, 0])
        return (box[0, 0], box[0, 1]), (box[1, 0], box[1, 1])

    def _fitted_rows(self, X: Any, codes: Array) -> tuple[Any, Floats]:
        """Return the fitted transformer, if any, and the rows it makes, dense."""
        if isinstance(self.features, str):
            check_choice(self.features, ("nystroem", "linear"), "features")
            return None, _dense(X)
        transformer = clone(self.features)
        return transformer, _dense(transformer.fit_transform(X, codes))

    def _feature_maps(
        self, head: "_Sample", random: np.random.RandomState
    ) -> list[ChannelFeatures]:
        """Return the models to choose from."""
        bumps = isinstance(self.features, str) and self.features == "nystroem"
        order = distinct_rows(head.rows, random)
        return [
            ChannelFeatures(width, self.n_centers).fit(head.rows, head.weight, order)
            for width in (WIDTHS if bumps else (None,))
        ]


@dataclass(frozen=True)
class _Sample:
    """The rows that the rates are estimated on."""

    rows: Floats
    positive: NDArray[np.bool_]
    weight: Floats

    def head(self, n_rows: int) -> "_Sample":
        return _Sample(self.rows[:n_rows], self.positive[:n_rows], self.weight[:n_rows])

    def seen_by(self, features: ChannelFeatures) -> Design:
        return Design(features.transform(self.rows), features.block, self.positive, self.weight)


def _dense(X: Any) -> Floats:
    rows = check_array(X, accept_sparse="csr", dtype=np.float64, input_name="X")
    if not issparse(rows):
        return np.asarray(rows)
    if rows.shape[1] > MOST_COLUMNS:
        raise ValueError(
            f"X is sparse with {rows.shape[1]} columns, and more than {MOST_COLUMNS} are not made "
            "dense. Use features=TruncatedSVD(50), or another transformer to fewer columns."
        )
    return np.asarray(rows.toarray())


def _on_a_grid(
    sample: _Sample, maps: list[ChannelFeatures], box: Box
) -> tuple[RatePosterior, list[_Part]]:
    """Return the distribution of the rates, from the evidence on a grid, and the models' parts."""
    models = [_Gridded(sample.seen_by(features), box) for features in maps]
    origin = _total(models, (0.0, 0.0)) if (0.0, 0.0) in models[0].fits else None
    surface = _summed(models)
    region = narrow(surface, box, margin=0.5 / N_COARSE)
    if any(r[1] - r[0] < 0.7 * (b[1] - b[0]) for r, b in zip(region, box, strict=True)):
        for model in models:
            model.explore(region, N_FINE)
        surface = _summed(models)
    posterior = RatePosterior(surface, box, region, origin)
    fits = [model.fit_at(posterior.rates) for model in models]
    shares = np.exp([fit.log_evidence - max(map(_evidence, fits)) for fit in fits])
    shares /= shares.sum()
    parts = [
        _Part(share, features, fit.coef, information_factor(model.design, fit))
        for share, features, fit, model in zip(shares.tolist(), maps, fits, models, strict=True)
        if share > 1e-3
    ]
    return posterior, parts


class _Gridded:
    """One model's fits on the latest grid."""

    def __init__(self, design: Design, box: Box) -> None:
        self.design = design
        self.fits = explore(design, _axes(box, N_COARSE), first_guess(design))

    def explore(self, region: Box, n: int) -> None:
        start = max(self.fits.values(), key=_evidence)
        self.fits = explore(self.design, _axes(region, n), start)

    def fit_at(self, rates: tuple[float, float]) -> ChannelFit:
        near = min(self.fits.values(), key=lambda fit: float(np.abs(fit.rates - rates).sum()))
        return fit_channel(self.design, rates, near)


def _summed(models: list[_Gridded]) -> GridSurface:
    """Return the evidence of all models together."""
    pairs = list(models[0].fits)
    return GridSurface(np.array(pairs), np.array([_total(models, pair) for pair in pairs]))


def _total(models: list[_Gridded], pair: tuple[float, float]) -> float:
    return float(np.logaddexp.reduce([model.fits[pair].log_evidence for model in models]))


def _around_the_maximum(
    sample: _Sample, maps: list[ChannelFeatures], box: Box
) -> tuple[RatePosterior, list[_Part]]:
    """Return the same from the evidence's maximum and its derivatives there.

    A coarse grid on few rows finds the neighbourhood, more rows choose the model, all rows end it.
    """
    scouts: list[_Summit] = []
    for features in maps:
        few = sample.head(N_GRID).seen_by(features)
        start = first_guess(few)
        if len(scouts) < 2:  # the second width begins where the first one ended
            pilot = few.head(PILOT_ROWS)
            fits = explore(pilot, _axes(box, N_PILOT), start, tol=SCOUT_TOL)
            start = max(fits.values(), key=_evidence)
        else:
            start = replace(start, rates=scouts[-1].fit.rates)
        found, _ = climb(few, start, box, tol=SCOUT_TOL)
        scouts.append(_Summit(found, few, features))
    best = max(scouts, key=_height)
    rivals = [scouts[0], *sorted(scouts[1:], key=_height)[-1:]]
    leader, slope = None, None
    for scout in rivals:
        if _height(scout) < _height(best) - RIVALS:
            continue
        design, start = sample.seen_by(scout.features), scout.fit
        if leader is not None and scout is not best:
            start = fit_channel(design, leader.fit.rates, start, tol=ROUGH)
            if start.log_evidence < _height(leader):
                continue
        fit, here = climb(design, start, box)
        if leader is None or fit.log_evidence > _height(leader):
            leader, slope = _Summit(fit, design, scout.features), here
    assert leader is not None
    assert slope is not None
    clean = _clean_fit(best, leader) if box[0][0] == 0 == box[1][0] else None
    surface = QuadraticSurface(leader.fit, slope)
    origin = None if clean is None else clean.log_evidence
    posterior = RatePosterior(surface, box, surface.region(box), origin)
    if clean is not None and posterior.rates == (0.0, 0.0):
        return posterior, [_Part(1.0, leader.features, clean.coef)]
    coef = leader.fit.coef + slope.path @ (posterior.rates - leader.fit.rates)
    return posterior, [_Part(1.0, leader.features, coef)]


@dataclass(frozen=True)
class _Summit:
    """The highest evidence of one model, on some rows."""

    fit: ChannelFit
    design: Design
    features: ChannelFeatures


def _height(summit: _Summit) -> float:
    return summit.fit.log_evidence


def _clean_fit(scout: _Summit, leader: _Summit) -> ChannelFit | None:
    """Return the fit without noise, unless few rows are enough to rule it out."""
    clean = fit_channel(scout.design, (0.0, 0.0), scout.fit)
    if clean.log_evidence < _height(scout) - RULED_OUT:
        return None
    return fit_channel(leader.design, (0.0, 0.0), leader.fit)


def _axes(box: Box, n: int) -> tuple[Floats, Floats]:
    """Return n values of either rate, or the one that is known."""
    axes = [np.linspace(low, high, n) if high > low else np.array([low]) for low, high in box]
    return axes[0], axes[1]


def _evidence(fit: ChannelFit) -> float:
    return fit.log_evidence
