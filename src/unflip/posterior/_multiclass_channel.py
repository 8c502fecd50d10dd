"""P(noisy | x) = g(x) T for any number of classes, T and g fitted together."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from unflip._utils.progress import work
from unflip._utils.row_weights import relative_weights
from unflip._utils.sampling import drawn_rows
from unflip._utils.threads import by_threads, one_blas_thread, threads_for
from unflip._utils.typing import Array, Floats
from unflip._utils.validation import (
    check_choice,
    check_class_weights,
    check_count,
    check_labels,
    check_level,
    check_table,
    training_rows,
)
from unflip.noise import RatesInterval, TransitionMatrix, as_transition_matrix
from unflip.posterior._base import BasePosterior
from unflip.posterior._checked_range import checked_range
from unflip.posterior._noisy_channel import EvidenceTest, ModelCheck, dense
from unflip.posterior._softmax_channel import (
    FEATURES,
    FittedRows,
    SoftmaxSample,
    fit_softmax_channel,
    shortest_ranges,
)
from unflip.posterior._wide_rows import fit_reducer, reducer

USUAL_STEPS = 40
"""Steps that climbs of the evidence take in all; for progress only."""

PREDICTED_AT_ONCE = 4096
"""Rows whose features are made at a time."""


class MulticlassChannelPosterior(BasePosterior):
    r"""P(noisy | x) = g(x) T, the transition matrix T and g fitted together.

    g = softmax(t) is the clean posterior, t linear in columns, Gaussian bumps or the scores of
    trees, with a Gaussian prior on its coefficients. They are integrated out (Laplace), which gives
    the evidence of the noisy labels as a function of T; T is found by climbing it.

    Parameters
    ----------
    features : {"auto", "linear", "nystroem", "forest"} or transformer, default="auto"
        What t is linear in: the columns; the columns and Gaussian bumps; the columns and the scores
        of a random forest, held out for its own rows; the columns unless others help by 0.003 of
        the log-evidence per row ("auto"; tried where few trees see more than the columns do); or
        what a transformer makes of the rows (it is fitted on them).
    n_centers : int, default=60
        How many bumps, at most.
    known : TransitionMatrix or array-like of shape (n_classes, n_classes), default=None
        T, where it is known.
    estimate : {"median", "mean"}, default="median"
        "median": no noise where that has a probability above 1/2 given the labels, else the mean of
        T given noise, less where no noise is likely too. "mean" never rules noise out, as suits the
        search for wrong labels.
    max_rows : int, default=20_000
        Of more rows, a random sample of so many is used for the fit.
    random_state : int, RandomState instance or None, default=None
        Seed of the centers and the sample. None is a seed too, so that the same rows always give
        the same T.

    Attributes
    ----------
    rates_ : TransitionMatrix
        The estimate of T.
    interval_ : RatesInterval
        Bounds of every entry of T and of the share of wrong labels: the shortest ranges that hold
        them with probability 0.95, and never narrower than what no flip in so many rows tells.
    structure_probability_ : dict of str to float
        Probability of each structure of T given the labels: "none", "one rate", "one rate per
        class", "one rate, one target", "one rate per class, one target", "one rate, few targets",
        "one rate per class, few targets", "free". Structures that few rows, or the
        expected counts of classes and labels, rule out are left out; empty where T is known.
    noise_test_ : EvidenceTest or None
        The hypothesis that no label is flipped: `statistic`, `p_value` (conservative), and
        `probability` given the labels. None where T is known.
    symmetry_test_ : EvidenceTest or None
        The same of the hypothesis that all classes are flipped equally often.
    features_ : str or transformer
        What t is linear in.
    check_ : ModelCheck or None
        With features="auto", how well the channel explains labels that it has not seen: the
        `statistic` by which trees predict its residuals out of fold, its `p_value`, and the
        `verdict`, "believed", "doubted", "refuted" or "rule"; the `disagreement` with the labels.
    wrong_share_range_ : (low, high)
        The share of labels that may be wrong, if mistakes may depend on the row.
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.

    Notes
    -----
    T has K (K - 1) rates, too many for few rows. So T is one of several structures, each with its
    own prior: no noise; one rate for all classes; one rate per class; and for either kind of rate,
    a class's flips go to all other classes alike, to one of them, to few, or anywhere. The evidence
    weighs them against each other, and the estimate is their mean. Before the data, no noise has
    the probability 0.1, the others share the rest, and every rate has a Beta(1, 4) distribution.
    Where classes hardly overlap, noise is believed no more than held-out labels bear out; and where
    these say that g is sharper than the likeliest coefficients make it, T is found anew with them.

    Above 50 classes flips are taken to go to all other classes alike, or to one. A class of few
    rows has the rate that the others, or the prior, suggest; its interval says so.

    Dense rows of more than 100 columns are reduced to out-of-fold scores of the noisy classes by
    ridge regression and 30 principal components, sparse ones of more than 500 to 100 by
    :class:`~sklearn.decomposition.TruncatedSVD`.

    Weights and copies of rows are taken as by :class:`~unflip.posterior.ChannelPosterior`, which is
    the same model for two classes with the evidence on a grid of the two rates.

    References
    ----------
    MacKay (1998), "Choice of basis for Laplace approximation", Machine Learning 33. Patrini et al.
    (2017), "Making deep neural networks robust to label noise: a loss correction approach", CVPR.

    Examples
    --------
    >>> import numpy as np
    >>> from unflip import TransitionMatrix, flip_labels
    >>> from unflip.posterior import MulticlassChannelPosterior
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 3, 1500)
    >>> X = rng.normal(size=(1500, 2)) + 3 * np.array([[0, 0], [1, 0], [0, 1]])[y]
    >>> y_noisy = flip_labels(y, TransitionMatrix.pair_flip(3, 0.3), random_state=0)
    >>> channel = MulticlassChannelPosterior(random_state=0).fit(X, y_noisy)
    >>> channel.rates_.matrix.round(1) + 0.0
    array([[0.7, 0.3, 0. ],
           [0. , 0.7, 0.3],
           [0.3, 0. , 0.7]])
    """

    rates_: TransitionMatrix
    structure_probability_: dict[str, float]
    features_: Any

    estimates_rates = True

    def __init__(
        self,
        features: Any = "auto",
        n_centers: int = 60,
        *,
        known: Any = None,
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
        """Estimate T and the clean posterior.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Noisy labels, of two or more classes.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts.
        """
        self._fit(X, y, sample_weight)
        return self

    @property
    def out_of_fold(self) -> bool:
        """Whether a row's own label has no part in what `fit_predict_proba` returns of it."""
        return isinstance(self.features, str)

    def fit_predict_proba(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Floats:
        """Fit, and return P(noisy y | x) of the rows, each without its own label.

        T and the variances are those of all rows; a forest's scores are those of the trees that did
        not see the row.
        """
        rows, fitted = self._fit(X, y, sample_weight)
        clean = fitted.held_out()
        if rows.size == len(clean) == _n_rows(X):
            proba = np.empty_like(clean)
        else:
            proba = self.predict_proba(X)
        proba[rows] = clean @ self.rates_.matrix
        return proba

    def _fit(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None
    ) -> tuple[Array, FittedRows]:
        """Fit, and return the positions of the rows that took part, and what became of them."""
        check_count(self.n_centers, "n_centers", least=1)
        check_count(self.max_rows, "max_rows", least=1000)
        check_choice(self.estimate, ("median", "mean"), "estimate")
        by_name = isinstance(self.features, str)
        candidates = FEATURES if self.features == "auto" else (self.features,)
        if by_name:
            check_choice(self.features, ("auto", *FEATURES), "features")
        classes, codes = check_labels(y, binary=False)
        known = None
        if self.known is not None:
            known = as_transition_matrix(self.known, classes.size).matrix
        check_consistent_length(X, codes)
        weight = relative_weights(sample_weight, codes.size)
        check_class_weights(weight, codes, classes)
        counts = np.flatnonzero(weight)
        # drawn before all else, so that the fit to these rows alone is the same fit
        counts = counts[drawn_rows(counts.size, self.max_rows, self.random_state)]
        random = check_random_state(0 if self.random_state is None else self.random_state)
        rows = self._numbers(X)
        with work(USUAL_STEPS), threads_for(counts.size):
            transformer = reducer(rows, random) if by_name else clone(self.features)
            some = _safe_indexing(rows, counts)
            if transformer is not None:
                some = _checked(fit_reducer(transformer, some, codes[counts], weight[counts]))
            channel, fitted = fit_softmax_channel(
                SoftmaxSample(dense(some), codes[counts], weight[counts], classes.size),
                known,
                random,
                candidates=candidates if by_name else ("linear",),
                n_centers=self.n_centers,
                estimate=self.estimate,
                checked=by_name and self.features == "auto",
            )
        check_table(self, X, reset=True)
        self.classes_, self.rates_ = classes, TransitionMatrix(channel.T)
        self.structure_probability_ = channel.structure_probability
        self.features_ = channel.features_name if by_name else transformer
        self._channel, self._transformer = channel, transformer
        self._label_counts = np.bincount(codes[counts], weight[counts], minlength=classes.size)
        return counts, fitted

    @one_blas_thread()
    def predict_proba(self, X: Any) -> Floats:
        """Return P(noisy y | x), one column per class in the order of `classes_`."""
        return np.asarray(self.predict_clean_proba(X) @ self.rates_.matrix)

    @one_blas_thread()
    def predict_clean_proba(self, X: Any) -> Floats:
        """Return P(true y | x), one column per class in the order of `classes_`.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Probabilities.
        """
        check_is_fitted(self)
        check_table(self, X, reset=False)
        rows = self._numbers(X)
        n_rows = rows.shape[0]

        def by_chunks(part: slice) -> Floats:
            first, last, _ = part.indices(n_rows)
            clean = np.empty((last - first, self.classes_.size))
            for start in range(first, last, PREDICTED_AT_ONCE):
                some = rows[start : min(start + PREDICTED_AT_ONCE, last)]
                if self._transformer is not None:
                    some = _checked(self._transformer.transform(some))
                done = self._channel.clean_posterior(dense(some))
                clean[start - first : start - first + len(done)] = done
            return clean

        return np.concatenate(by_threads(by_chunks, n_rows, n_rows))

    def mean_rates(self) -> TransitionMatrix:
        """Return the mean of T's distribution, which never rules noise out.

        Returns
        -------
        TransitionMatrix
            The mean.
        """
        check_is_fitted(self)
        return TransitionMatrix(self._channel.mean_matrix)

    def interval(self, level: float = 0.95) -> RatesInterval:
        """Return for every entry of T the shortest range that holds it with probability `level`.

        Returns
        -------
        RatesInterval
            The ends for each entry.
        """
        check_is_fitted(self)
        low, high = shortest_ranges(self._channel.draws, check_level(level))
        share = shortest_ranges(self._channel.wrong_share, level)
        ends = float(share[0]), float(share[1])
        if self.known is not None:
            return RatesInterval(low, high, level, ends)
        # so often may happen what has not happened once in so many rows
        unseen = _largest_unseen(self._label_counts, level)
        high = np.maximum(high, unseen[:, None])
        np.fill_diagonal(low, np.minimum(np.diag(low), 1 - unseen))
        most = _largest_unseen(self._label_counts.sum(), level)
        return RatesInterval(low, high, level, (ends[0], max(ends[1], float(most))))

    @property
    def interval_(self) -> RatesInterval:
        """Bounds of every entry of T, that hold it with probability 0.95."""
        return self.interval()

    @property
    def check_(self) -> ModelCheck | None:
        """How well the channel explains labels that it has not seen."""
        check_is_fitted(self)
        return self._channel.check

    @property
    def wrong_share_range_(self) -> tuple[float, float]:
        """(low, high) of the share of wrong labels, if mistakes may depend on the row."""
        return checked_range(self)

    @property
    def noise_test_(self) -> EvidenceTest | None:
        """The hypothesis that no label is flipped, tested."""
        check_is_fitted(self)
        return self._channel.noise_test

    @property
    def symmetry_test_(self) -> EvidenceTest | None:
        """The hypothesis that all classes are flipped equally often, tested."""
        check_is_fitted(self)
        return self._channel.alike_test

    def for_folds(self) -> "MulticlassChannelPosterior":
        """Return the same channel with T and the kind of features as all rows gave them."""
        features = self.features_ if isinstance(self.features, str) else self.features
        return clone(self).set_params(known=self.rates_, features=features)

    def _numbers(self, X: Any) -> Any:
        """Return the rows as numbers; a user's transformer has them as they are."""
        return _checked(X) if isinstance(self.features, str) else X


def _largest_unseen(counts: Any, level: float) -> Any:
    """Return the largest rate at which none of so many rows is flipped with chance 1 - `level`."""
    return -np.expm1(np.log1p(-level) / (counts + 1))


def _n_rows(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def _checked(X: Any) -> Any:
    return training_rows(X, dtype=np.float64)
