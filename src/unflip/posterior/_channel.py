"""P(noisy y | x) as the clean posterior passed through a noisy channel."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.decomposition import TruncatedSVD
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from unflip._diagnostics.error_range import wrong_share_bounds
from unflip._utils.progress import tick, work
from unflip._utils.row_weights import relative_weights
from unflip._utils.sampling import drawn_rows
from unflip._utils.threads import one_blas_thread
from unflip._utils.typing import Floats
from unflip._utils.validation import (
    check_choice,
    check_count,
    check_labels,
    check_level,
    check_table,
    training_rows,
)
from unflip.noise import NoiseRates, RatesInterval
from unflip.posterior._base import BasePosterior
from unflip.posterior._checked_range import checked_range
from unflip.posterior._noisy_channel import (
    N_GRID,
    ChannelSample,
    Evidence,
    EvidenceTest,
    ModelCheck,
    NoisyChannel,
    ScoredChannel,
    box_of,
    check_channel,
    dense,
    fit_noisy_channel,
    fit_scored_channel,
)
from unflip.posterior._wide_rows import RidgeScores, fit_reducer, reducer


class ChannelPosterior(BasePosterior):
    r"""P(noisy=+1 | x) = rho_neg + (1 - rho_pos - rho_neg) g(x), rates and g fitted together.

    g = sigmoid(t) is the clean posterior, t a linear function plus a sum of Gaussian bumps with a
    Gaussian prior on its coefficients. For every pair of rates the coefficients are integrated out
    (Laplace), which gives the evidence of the noisy labels as a function of the rates; the rates
    are those in the middle of their distribution given it.

    Parameters
    ----------
    features : {"auto", "nystroem", "linear", "trees"} or transformer, default="auto"
        What t is linear in. "nystroem": the columns and, where they help, Gaussian bumps, with the
        bumps' width chosen by the evidence. "linear": the columns. "trees": held-out scores of
        boosted trees, and bumps on them. A transformer: what it makes of the rows (it is fitted on
        them). "auto": "nystroem", and "trees" where its residuals can be predicted (see `check_`).
    n_centers : int, default=60
        How many bumps, at most.
    known : NoiseRates, default=None
        Rates that are known, or bounds of them: `NoiseRates(positive=None, negative=0.0)` where
        only positives may be mislabelled. A rate of which nothing is known lies in [0, 0.5].
    estimate : {"median", "mean"}, default="median"
        Which rates of their distribution to take. The median is (0, 0) where no noise is more
        likely than any, and then nothing is changed; the mean never rules noise out, as suits the
        search for wrong labels.
    max_rows : int, default=20_000
        Of more rows, a random sample of so many is used for the fit.
    random_state : int, RandomState instance or None, default=None
        Seed of the centers and the sample. None is a seed too, so that the same rows always give
        the same rates.

    Attributes
    ----------
    rates_ : NoiseRates
        The estimate.
    interval_ : RatesInterval
        Bounds (low, high) of either: the shortest range that holds the rate with probability 0.95.
    noise_test_ : EvidenceTest or None
        The hypothesis that no label is flipped: `statistic`, `p_value`, and `probability` given the
        labels. None where `known` rules it out.
    symmetry_test_ : EvidenceTest or None
        The same of the hypothesis that both classes are flipped equally often.
    check_ : ModelCheck or None
        Whether the channel explains the labels: `statistic`, by how many standard errors boosted
        trees predict what it leaves unexplained, `p_value`, and `verdict`, "believed", "doubted",
        "refuted" or "rule". None where `features` is not "auto".
    classes_ : ndarray of shape (2,)
        The labels, the positive class last.

    Notes
    -----
    Before the data, the rates are (0, 0) with probability 0.1, equal to each other with probability
    0.225, and otherwise anywhere within their bounds alike. Equal rates have a share of their own
    because they need no correction of the decision: where the data say little, this keeps the
    estimate from inventing a difference.

    What identifies the rates is the shape of g: overlap of the classes is told from noise by the
    plateaus that noise leaves. g is as sharp as the labels of left-out rows say: where classes
    hardly overlap, the likeliest coefficients are too small.

    The scale of `sample_weight` does not matter, and an integer weight is as good as so many copies
    of a row. Copies are not evidence: repeated rows that all carry the same label count as their
    effective number of distinct rows. Where repeated rows carry both labels, as rows of a few
    categories do, each of them counts.

    Dense rows of more than 100 columns are reduced to an out-of-fold score of the noisy label by
    ridge regression and 30 principal components, sparse ones of more than 500 to 100 by
    :class:`~sklearn.decomposition.TruncatedSVD`.

    References
    ----------
    Bootkrajang and Kabán (2012), "Label-noise robust logistic regression and its applications",
    ECML PKDD. MacKay (1992), "The evidence framework applied to classification networks", Neural
    Computation.

    Examples
    --------
    >>> import numpy as np
    >>> from unflip import NoiseRates, flip_labels
    >>> from unflip.posterior import ChannelPosterior
    >>> X = np.random.default_rng(0).uniform(size=(2000, 2))
    >>> y = flip_labels(X.sum(axis=1) > 1, NoiseRates(positive=0.3, negative=0.1), random_state=0)
    >>> channel = ChannelPosterior(random_state=0).fit(X, y)
    >>> print(channel.rates_)
    NoiseRates(positive=0.314, negative=0.0735)
    >>> channel.predict_proba([[0.9, 0.9], [0.1, 0.1]]).round(2)
    array([[0.31, 0.69],
           [0.93, 0.07]])
    """

    _fold_length = 0.1

    rates_: NoiseRates

    estimates_rates = True

    def __init__(
        self,
        features: Any = "auto",
        n_centers: int = 60,
        *,
        known: NoiseRates | None = None,
        estimate: str = "median",
        max_rows: int = 20_000,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.features = features
        self.n_centers = n_centers
        self.known = known
        self.estimate = estimate
        self.max_rows = max_rows
        self.random_state = random_state

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Estimate the rates and the clean posterior.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Noisy labels, of two classes.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts.
        """
        self._fit(X, y, sample_weight)
        return self

    def _fit(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None
    ) -> tuple[NDArray[np.intp], Floats]:
        """Fit, and return the positions of the rows that took part, and P(true=+1 | x) held out."""
        check_count(self.n_centers, "n_centers", least=1)
        check_count(self.max_rows, "max_rows", least=N_GRID)
        check_choice(self.estimate, ("median", "mean"), "estimate")
        box_of(self.known)  # refused before any work is done
        classes, codes = check_labels(y)
        check_consistent_length(X, codes)
        weight = relative_weights(sample_weight, codes.size)
        counts = np.flatnonzero(weight)
        if not 0 < codes[counts].mean() < 1:
            raise ValueError(
                "every row of one of the classes has sample_weight 0, and rows of both are needed."
            )
        # drawn before all else, so that the fit to these rows alone is the same fit
        counts = counts[drawn_rows(counts.size, self.max_rows, self.random_state)]
        random = check_random_state(0 if self.random_state is None else self.random_state)
        rows = self._numbers(X)
        transformer = self._transformer_for(rows, random)
        rows = _safe_indexing(rows, counts)
        if transformer is not None:
            rows = _checked(fit_reducer(transformer, rows, codes[counts], weight[counts]))
        sample = ChannelSample(dense(rows), codes[counts] == 1, weight[counts])
        with one_blas_thread():
            evidence = sample.merged(random)
            channel, check, held_out = self._fit_evidence(evidence, transformer)
        check_table(self, X, reset=True)
        self.classes_, self.rates_ = classes, NoiseRates(*channel.rates)
        self._channel, self._transformer, self.check_ = channel, transformer, check
        self._noisy_prior = float(np.average(sample.positive, weights=sample.weight))
        return counts, held_out

    def fit_predict_proba(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """Fit, and return P(noisy y | x) of the rows, each without its own label.

        The rates and the prior are those of all rows, and so are the directions of wide rows, in
        which a row's own scores are out of fold.
        """
        rows, held_out = self._fit(X, y, sample_weight)
        own = self._noisy_proba(held_out)
        if rows.size == np.shape(y)[0]:
            return own
        proba = self.predict_proba(X)  # rows that were not drawn for the fit are held out already
        proba[rows] = own
        return proba

    @work((1.0, 1.0))
    def _fit_evidence(
        self, evidence: Evidence, transformer: Any
    ) -> tuple[NoisyChannel | ScoredChannel, ModelCheck | None, Floats]:
        """Return the channel, its check, and P(true=+1 | x) of rows without their own labels."""
        by_name = isinstance(self.features, str)
        channel = fit_noisy_channel(
            evidence,
            self.known,
            bumps=by_name and self.features != "linear",
            n_centers=self.n_centers,
            one_scale=by_name and isinstance(transformer, TruncatedSVD),
            estimate=self.estimate,
        )
        tick()
        is_wide = isinstance(transformer, RidgeScores)
        if is_wide:  # scores are nearly all there is to see, and trees see if they are flat
            channel = channel.sharpened(evidence)
        settings = self.known, self.n_centers, self.estimate
        scored, check = None, None
        if by_name and self.features == "auto":
            scored, check = check_channel(channel, evidence, *settings)
        elif by_name and self.features == "trees":
            scored = fit_scored_channel(channel, evidence, *settings)
        if scored is not None:
            return scored.channel, check, scored.held_out[evidence.place]
        channel = channel if is_wide else channel.sharpened(evidence)
        return channel, check, channel.held_out(evidence)[evidence.place]

    def predict_proba(self, X: Any) -> Floats:
        """Return P(noisy y | x), one column per class in the order of `classes_`."""
        return self._noisy_proba(self.predict_clean_proba(X)[:, 1])

    @one_blas_thread()
    def predict_clean_proba(self, X: Any) -> Floats:
        """Return P(true y | x), one column per class in the order of `classes_`.

        Returns
        -------
        ndarray of shape (n_rows, 2)
            Probabilities.
        """
        check_is_fitted(self)
        check_table(self, X, reset=False)
        rows = self._numbers(X)
        if self._transformer is not None:
            rows = _checked(self._transformer.transform(rows))
        clean = self._channel.clean_posterior(rows)
        return np.column_stack([1 - clean, clean])

    def mean_rates(self) -> NoiseRates:
        """Return the mean of the rates' distribution, which never rules noise out.

        Returns
        -------
        NoiseRates
            The mean.
        """
        check_is_fitted(self)
        return NoiseRates(*self._channel.distribution.estimate("mean"))

    def interval(self, level: float = 0.95) -> RatesInterval:
        """Return for either rate the shortest range that holds it with probability `level`.

        Returns
        -------
        RatesInterval
            The ends for each rate.
        """
        check_is_fitted(self)
        positive, negative = self._channel.interval(check_level(level))
        wrong = wrong_share_bounds(positive, negative, self._noisy_prior)
        return RatesInterval.from_pairs(positive, negative, level, wrong)

    @property
    def interval_(self) -> RatesInterval:
        """Bounds (low, high) of either rate, that hold it with probability 0.95."""
        return self.interval()

    @property
    def wrong_share_range_(self) -> tuple[float, float]:
        """(low, high) of the share of wrong labels, if mistakes may depend on the row."""
        return checked_range(self)

    @property
    def noise_test_(self) -> EvidenceTest | None:
        """The hypothesis that no label is flipped, tested."""
        check_is_fitted(self)
        return self._channel.distribution.noise_test

    @property
    def symmetry_test_(self) -> EvidenceTest | None:
        """The hypothesis that both classes are flipped equally often, tested."""
        check_is_fitted(self)
        return self._channel.distribution.symmetry_test

    def for_folds(self) -> "ChannelPosterior":
        """Return the same channel with the rates as they were estimated on all rows."""
        features = self.features
        if isinstance(features, str) and features == "auto":
            features = "trees" if isinstance(self._channel, ScoredChannel) else "nystroem"
        return clone(self).set_params(features=features, known=self.rates_)

    @property
    def out_of_fold(self) -> bool:
        """Whether a row's own label has no part in what `fit_predict_proba` returns of it."""
        return isinstance(self.features, str)

    def _noisy_proba(self, clean: Floats) -> Floats:
        noisy = self.rates_.noisy_posterior(clean)
        return np.column_stack([1 - noisy, noisy])

    def _numbers(self, X: Any) -> Any:
        """Return the rows as numbers; a user's transformer has them as they are."""
        return _checked(X) if isinstance(self.features, str) else X

    def _transformer_for(self, rows: Any, random: np.random.RandomState) -> Any:
        """Return the transformer of the rows, or None if none is needed."""
        if not isinstance(self.features, str):
            return clone(self.features)
        check_choice(self.features, ("auto", "nystroem", "linear", "trees"), "features")
        return reducer(rows, random)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def _checked(X: Any) -> Any:
    return training_rows(X, dtype=np.float64)
