"""P(noisy y | x) = g(x) T: the clean posterior passed through a noisy channel."""

from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.decomposition import TruncatedSVD
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from unflip._utils.progress import work
from unflip._utils.row_weights import relative_weights
from unflip._utils.sampling import drawn_rows
from unflip._utils.threads import by_threads, one_blas_thread, threads_for
from unflip._utils.typing import Floats
from unflip._utils.validation import (
    check_choice,
    check_class_weights,
    check_count,
    check_labels,
    check_level,
    check_table,
    training_rows,
)
from unflip.channel import (
    ChannelSample,
    EvidenceTest,
    FittedChannel,
    ModelCheck,
    box_of,
    fit_channel,
    fit_reducer,
    reducer,
)
from unflip.noise import (
    Noise,
    NoiseRates,
    RatesInterval,
    TransitionMatrix,
    as_noise,
    as_transition_matrix,
    known_size,
)
from unflip.posterior._joint import JointPosterior

PREDICTED_AT_ONCE = 4096
"""Rows whose features are made at a time."""

USUAL_STEPS = 40
"""Number of steps that the search for the maxima of the evidence usually takes; for progress."""

LEAST_MAX_ROWS = 1000
"""Smallest `max_rows`."""


class ChannelPosterior(JointPosterior):
    r"""P(noisy | x) = g(x) T, the transition matrix T and g fitted together.

    g = softmax(t) is the clean posterior; t is linear in the columns, in RBF features or in the
    scores of trees, with a Gaussian prior on its coefficients. The coefficients are integrated out
    (Laplace), which gives the evidence of the noisy labels as a function of T alone. For two
    classes T has two rates, rho_pos and rho_neg, and

        P(noisy=+1 | x) = rho_neg + (1 - rho_pos - rho_neg) g(x).

    Parameters
    ----------
    features : {"auto", "linear", "nystroem", "trees"} or transformer, default="auto"
        What t is linear in. "linear": the columns. "nystroem": the columns and RBF features.
        "trees": scores of trees, held out for the rows that the trees are grown on. A
        transformer: what it makes of the rows (it is fitted on them). "auto": the columns, and RBF
        features or trees where they explain the labels better (see Notes and `check_`).
    n_centers : int, default=60
        Number of RBF features, at most.
    known : NoiseRates, TransitionMatrix or array-like of shape (n_classes, n_classes), default=None
        The noise, where it is known. For two classes also bounds, or one of the rates:
        `NoiseRates(positive=None, negative=0.0)` where only positives may be mislabelled. Where
        nothing is known of either rate, both are at most 0.5.
    estimate : {"median", "mean"}, default="median"
        Point estimate of T. "median": no noise where that has a probability above 1/2 given the
        labels, else (two classes) the medians of the rates, or (more) the mean of T given noise,
        less where no noise is likely too. "mean" never rules noise out, as suits the search for
        wrong labels.
    max_rows : int, default=20_000
        If there are more rows, a random sample of this size is used for the fit.
    random_state : int, RandomState instance or None, default=None
        Seed of the centers and the sample. None is a seed too, so that the same rows always give
        the same T.

    Attributes
    ----------
    rates_ : NoiseRates or TransitionMatrix
        The estimate: NoiseRates for two classes, a TransitionMatrix for more.
    interval_ : RatesInterval
        Bounds of every rate (of every entry of T) and of the share of wrong labels: the shortest
        ranges that hold them with probability 0.95.
    structure_probability_ : dict of str to float
        Probability of each structure of T given the labels. For two classes "none", "one rate" and
        "one rate per class"; for more also "one rate, one target", "one rate per class, one
        target", "one rate, few targets", "one rate per class, few targets" and "free". Structures
        that few rows, or the expected counts of classes and labels, rule out are left out. Empty
        where T is known.
    noise_test_ : EvidenceTest or None
        The hypothesis that no label is flipped: `statistic`, `p_value` (conservative for more than
        two classes), and `probability` given the labels. None where `known` rules it out.
    symmetry_test_ : EvidenceTest or None
        The same for the hypothesis that all classes are flipped equally often.
    features_ : {"linear", "nystroem", "trees"} or transformer
        What t is linear in.
    check_ : ModelCheck or None
        Goodness of fit: `statistic`, by how many standard errors trees predict the residuals out of
        fold, its `p_value`, and `verdict`, "not_rejected", "suspect", "rejected" or "rule".
        None where `features` is not "auto".
    label_error_range_ : (low, high)
        The label error rate, if errors may depend on the sample. It needs `check_`.
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted; of two, the positive class last.

    Notes
    -----
    *Two classes.* Before the data, the rates are (0, 0) with probability 0.1, equal to each other
    with probability 0.225, and otherwise uniform within their bounds. Equal rates have a share of
    their own because they need no correction of the decision: where the data say little, this keeps
    the estimate from inventing a difference. The evidence is integrated over a grid of the rates.

    *More classes.* T has K (K - 1) rates, too many for few rows. So T is one of several structures,
    each with its own prior: no noise; one rate for all classes; one rate per class; and for either
    kind of rate, the flips of a class go to all other classes alike, to one of them, to few, or
    anywhere. The evidence weighs them against each other, and the estimate is their mean. Before
    the data, no noise has the probability 0.1, the others share the rest, and every rate has a
    Beta(1, 4) distribution. Where classes hardly overlap, the evidence of noise is at most what
    held-out labels confirm. Above 50 classes flips go to all other classes alike, or to one. A
    class of few rows has the rate that the others, or the prior, suggest; its interval says so.

    What identifies T is the shape of g: the evidence tells overlap of the classes from noise by the
    plateaus that noise leaves. Where held-out labels are likelier with larger
    logits than the likeliest coefficients give, these are multiplied by a factor.

    The scale of `sample_weight` does not matter, and an integer weight is as good as so many copies
    of a row. Copies are not evidence: repeated rows that all carry the same label count as their
    effective number of distinct rows. Where repeated rows carry several labels, as rows of a few
    categories do, each of them counts.

    Dense rows of more than 100 columns are reduced to out-of-fold scores of the noisy classes by
    ridge regression and 30 principal components, sparse ones of more than 500 to 100 by
    :class:`~sklearn.decomposition.TruncatedSVD`.

    References
    ----------
    Bootkrajang and Kabán (2012), "Label-noise robust logistic regression and its applications",
    ECML PKDD. MacKay (1992), "The evidence framework applied to classification networks", Neural
    Computation. MacKay (1998), "Choice of basis for Laplace approximation", Machine Learning 33.
    Patrini et al. (2017), "Making deep neural networks robust to label noise: a loss correction
    approach", CVPR.

    Examples
    --------
    >>> import numpy as np
    >>> from unflip import NoiseRates, TransitionMatrix, flip_labels
    >>> from unflip.posterior import ChannelPosterior
    >>> X = np.random.default_rng(0).uniform(size=(2000, 2))
    >>> y = flip_labels(X.sum(axis=1) > 1, NoiseRates(positive=0.3, negative=0.1), random_state=0)
    >>> channel = ChannelPosterior(random_state=0).fit(X, y)
    >>> print(channel.rates_)
    NoiseRates(positive=0.313, negative=0.0736)
    >>> channel.predict_proba([[0.9, 0.9], [0.1, 0.1]]).round(2)
    array([[0.31, 0.69],
           [0.93, 0.07]])

    Three classes, each taken for the next one:

    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 3, 1500)
    >>> X = rng.normal(size=(1500, 2)) + 3 * np.array([[0, 0], [1, 0], [0, 1]])[y]
    >>> y_noisy = flip_labels(y, TransitionMatrix.pair_flip(3, 0.3), random_state=0)
    >>> ChannelPosterior(random_state=0).fit(X, y_noisy).rates_.matrix.round(1) + 0.0
    array([[0.7, 0.3, 0. ],
           [0. , 0.7, 0.3],
           [0.3, 0. , 0.7]])
    """

    _fold_length = 0.1

    rates_: Noise
    structure_probability_: dict[str, float]
    features_: Any

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

    def fit_predict_proba(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Floats:
        """Fit, and return P(noisy y | x) of the rows, each without its own label.

        T and the prior are those of all rows, and so are the directions of wide rows, in which a
        row's own scores are out of fold. The scores of trees are those of trees that did not see
        the row.
        """
        rows, held_out = self._fit(X, y, sample_weight)
        own = self._noisy_proba(held_out)
        if rows.size == np.shape(y)[0]:
            return own
        proba = self.predict_proba(X)  # rows that were not drawn for the fit are held out already
        proba[rows] = own
        return proba

    def _fit(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None
    ) -> tuple[NDArray[np.intp], Floats]:
        """Fit, and return the positions of the rows that took part, and their clean posterior."""
        check_count(self.n_centers, "n_centers", least=1)
        check_count(self.max_rows, "max_rows", least=LEAST_MAX_ROWS)
        check_choice(self.estimate, ("median", "mean"), "estimate")
        by_name = isinstance(self.features, str)
        if by_name:
            check_choice(self.features, ("auto", "linear", "nystroem", "trees"), "features")
        classes, codes = check_labels(y, binary=False)
        known = _checked_known(self.known, classes.size)
        check_consistent_length(X, codes)
        weight = relative_weights(sample_weight, codes.size)
        check_class_weights(weight, codes, classes)
        counts = np.flatnonzero(weight)
        # drawn before all else, so that the fit to these rows alone is the same fit
        counts = counts[drawn_rows(counts.size, self.max_rows, self.random_state)]
        random = check_random_state(0 if self.random_state is None else self.random_state)
        rows = self._numbers(X)
        with threads_for(counts.size):
            transformer = reducer(rows, random) if by_name else clone(self.features)
            some = _safe_indexing(rows, counts)
            if transformer is not None:
                some = _checked(fit_reducer(transformer, some, codes[counts], weight[counts]))
            sample = ChannelSample(
                _dense(some),
                codes[counts],
                weight[counts],
                classes.size,
                one_scale=by_name and isinstance(transformer, TruncatedSVD),
            )
            with work(USUAL_STEPS):
                fitted, seen = fit_channel(
                    sample,
                    known,
                    random,
                    features=self.features if by_name else "linear",
                    n_centers=self.n_centers,
                    estimate=self.estimate,
                )
        check_table(self, X, reset=True)
        self.classes_, self.rates_ = classes, fitted.rates
        self.structure_probability_ = fitted.found.structure_probability
        self.features_ = fitted.features_name if by_name else transformer
        self._fitted: FittedChannel = fitted
        self._transformer = transformer
        return counts, seen.held_out()

    @one_blas_thread()
    def predict_proba(self, X: Any) -> Floats:
        """Return P(noisy y | x), one column per class in the order of `classes_`."""
        return self._noisy_proba(self.predict_clean_proba(X))

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
        n_rows = int(rows.shape[0]) if hasattr(rows, "shape") else len(rows)

        def by_chunks(part: slice) -> Floats:
            first, last, _ = part.indices(n_rows)
            clean = np.empty((last - first, self.classes_.size))
            for start in range(first, last, PREDICTED_AT_ONCE):
                some = _safe_indexing(rows, slice(start, min(start + PREDICTED_AT_ONCE, last)))
                if self._transformer is not None:
                    some = _checked(self._transformer.transform(some))
                done = self._fitted.clean_posterior(_dense(some))
                clean[start - first : start - first + len(done)] = done
            return clean

        return np.concatenate(by_threads(by_chunks, n_rows, n_rows))

    def mean_rates(self) -> Noise:
        """Return the mean of the distribution of T, which never rules noise out.

        Returns
        -------
        NoiseRates or TransitionMatrix
            The mean.
        """
        check_is_fitted(self)
        return self._fitted.mean_rates

    def interval(self, level: float = 0.95) -> RatesInterval:
        """Return for every rate the shortest range that holds it with probability `level`.

        Returns
        -------
        RatesInterval
            The ends for each rate, or each entry of T.
        """
        check_is_fitted(self)
        return self._fitted.interval(check_level(level))

    @property
    def check_(self) -> ModelCheck | None:
        """How well the model explains labels that it has not seen."""
        check_is_fitted(self)
        return self._fitted.check

    @property
    def noise_test_(self) -> EvidenceTest | None:
        """The hypothesis that no label is flipped, tested."""
        check_is_fitted(self)
        return self._fitted.found.noise_test

    @property
    def symmetry_test_(self) -> EvidenceTest | None:
        """The hypothesis that all classes are flipped equally often, tested."""
        check_is_fitted(self)
        return self._fitted.found.alike_test

    def for_folds(self) -> "ChannelPosterior":
        """Return the same model with T and the kind of features as all rows gave them."""
        features = self.features_ if isinstance(self.features, str) else self.features
        return clone(self).set_params(known=self.rates_, features=features)

    @property
    def out_of_fold(self) -> bool:
        """Whether a row's own label has no part in what `fit_predict_proba` returns of it."""
        return isinstance(self.features, str)

    def _noisy_proba(self, clean: Floats) -> Floats:
        return np.asarray(clean @ as_transition_matrix(self.rates_).matrix)

    def _numbers(self, X: Any) -> Any:
        """Return the rows as numbers; a user's transformer has them as they are."""
        return _checked(X) if isinstance(self.features, str) else X


def _checked_known(known: Any, n_classes: int) -> NoiseRates | TransitionMatrix | None:
    """Return what is known of the noise, checked against the number of classes."""
    if known is None:
        return None
    if known_size(known) is None:
        raise TypeError(
            "known must be NoiseRates(positive=..., negative=...), where each may be a number, "
            f"bounds or None, or a TransitionMatrix, got {known!r}."
        )
    noise = as_noise(known, n_classes)
    if n_classes == 2:
        box_of(cast("NoiseRates", noise))  # bounds are refused before any work is done
    return noise


def _checked(X: Any) -> Any:
    return training_rows(X, dtype=np.float64)


def _dense(rows: Any) -> Floats:
    """Return the rows as a dense array."""
    return np.asarray(rows.toarray() if issparse(rows) else rows)
