"""Natarajan et al.'s two methods: unbiased losses, and label-dependent costs."""

from abc import ABCMeta, abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.utils import Tags, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from unflip._utils.docs import documented_like
from unflip._utils.estimators import clone_seeded, delegated, optional_generator
from unflip._utils.threads import one_blas_thread
from unflip._utils.typing import Array, RandomState, Record, Rows
from unflip._utils.validation import (
    check_class_weights,
    check_enough_rows,
    check_labels,
    check_table,
    check_weights,
    is_number,
)
from unflip.learners import LinearClassifier, LossClassifier, as_learner
from unflip.losses import Loss, get_loss
from unflip.noise import NoiseRates, as_transition_matrix
from unflip.noise_rates import RatesLike, estimate_rates

Generator = np.random.RandomState | None


class UnbiasedLoss(Loss):
    r"""l~(t, y) = [(1 - rho_other) l(t, y) - rho_own l(t, -y)] / (1 - rho_pos - rho_neg).

    Its expectation over the noisy label, given the true one, is l(t, true label), for every t.

    Parameters
    ----------
    loss : str or Loss
        l.
    rates : NoiseRates
        Both noise rates.
    reach : float, default=2.0
        Beyond |t| = reach a non-convex l~ is continued by its tangent. Otherwise it may decrease
        faster than any penalty increases.

    Notes
    -----
    l~ is convex if l is convex and l''(t, +1) = l''(t, -1): logistic, squared, modified Huber and
    unhinged. It is not bounded below in general.

    Examples
    --------
    >>> import numpy as np
    >>> from unflip import NoiseRates
    >>> from unflip.baselines import UnbiasedLoss
    >>> from unflip.losses import logistic
    >>> rates = NoiseRates(positive=0.3, negative=0.1)
    >>> t, kept, flipped = np.array([0.7]), np.array([1]), np.array([-1])
    >>> unbiased = UnbiasedLoss("logistic", rates)
    >>> expected = 0.7 * unbiased.value(t, kept) + 0.3 * unbiased.value(t, flipped)
    >>> np.allclose(expected, logistic.value(t, kept))
    True
    """

    smooth = True
    bounded = False

    def __init__(self, loss: str | Loss, rates: NoiseRates, reach: float = 2.0) -> None:
        self.loss = get_loss(loss)
        self.rates = rates
        self.reach = reach
        self.convex = self.loss.convex and self.loss.even_curvature
        self.even_curvature = self.loss.even_curvature
        self.smooth = self.loss.smooth
        self.calibrated = self.loss.calibrated
        self.symmetric = self.loss.symmetric
        self.probability = self.loss.probability

    def _mix(self, of_label: Any, t: Array, y: Array) -> Array:
        """Return [(1 - rho_other) g(t, y) - rho_own g(t, -y)] / (1 - rho_pos - rho_neg)."""
        positive, negative = self.rates.both()
        own, other = np.where(y > 0, positive, negative), np.where(y > 0, negative, positive)
        return ((1 - other) * of_label(t, y) - own * of_label(t, -y)) / self.rates.information_left

    def _value(self, t: Array, y: Array) -> Array:
        return self._mix(self._continued, t, y)

    def _derivative(self, t: Array, y: Array) -> Array:
        near = t if self.convex else np.clip(t, -self.reach, self.reach)
        return self._mix(self.loss.derivative, near, y)

    def _second(self, t: Array, y: Array) -> Array:
        curvature = self._mix(self.loss.second, t, y)
        return curvature if self.convex else np.where(np.abs(t) <= self.reach, curvature, 0.0)

    def _continued(self, t: Array, y: Array) -> Array:
        if self.convex:
            return self.loss.value(t, y)
        near = np.clip(t, -self.reach, self.reach)
        return self.loss.value(near, y) + (t - near) * self.loss.derivative(near, y)

    def __repr__(self) -> str:
        return f"UnbiasedLoss({self.loss!r}, {self.rates})"


class _RatesClassifier(ClassifierMixin, BaseEstimator, metaclass=ABCMeta):
    """Base class of learners that take noise rates."""

    loss: str | Loss
    noise_rates: RatesLike
    learner: LossClassifier | None
    random_state: RandomState

    classes_: Array
    noise_rates_: NoiseRates
    learner_: BaseEstimator

    @documented_like(LinearClassifier.fit)
    @one_blas_thread()
    def fit(self, X: Rows, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Estimate the rates that are not known, then train the learner."""
        classes, codes = check_labels(y)
        check_enough_rows(X, codes)
        weight = check_weights(sample_weight, codes.size)
        check_class_weights(weight, codes, classes)
        random_state = optional_generator(self.random_state)
        learner = clone_seeded(self._template(), random_state)
        fitted = self._fit(learner, X, classes[codes], weight, random_state)
        check_table(self, X, reset=True)
        self.classes_ = classes
        self.__dict__.update(fitted)
        return self

    def predict(self, X: Rows) -> Array:
        """Return the most likely true label of every sample.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.
        """
        return np.asarray(self._fitted_for(X).predict(X))

    def decision_function(self, X: Rows) -> Array:
        """Return the decision value of every sample: positive for the positive class.

        Returns
        -------
        ndarray of shape (n_samples,)
            Decision values.
        """
        return np.asarray(self._fitted_for(X).decision_function(X))

    @abstractmethod
    def _fit(
        self, learner: BaseEstimator, X: Rows, y: Array, weight: Array, random_state: Generator
    ) -> Record:
        """Return the fitted attributes, including `learner_`."""

    def _rates(self, X: Rows, y: Array, weight: Array, random_state: Generator) -> NoiseRates:
        classifier = clone(self)
        rates = estimate_rates(self.noise_rates, X, y, weight, random_state, classifier=classifier)
        return as_transition_matrix(rates).rates

    def _template(self) -> LossClassifier:
        return as_learner(self.learner).set_params(loss=self.loss)

    def _fitted_for(self, X: Rows) -> BaseEstimator:
        check_is_fitted(self)
        check_table(self, X, reset=False)
        return self.learner_

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = get_tags(self._template()).input_tags.sparse
        return tags


class UnbiasedLossClassifier(_RatesClassifier):
    r"""Natarajan's method of unbiased estimators.

    Minimises the mean of l~(t, y) = [(1 - rho_other) l(t, y) - rho_own l(t, -y)] / (1 - rho_pos -
    rho_neg) plus the learner's penalty: its expectation on noisy labels is that of l on clean ones.

    Parameters
    ----------
    loss : str or Loss, default="logistic"
        l: any of :mod:`unflip.losses`.
    noise_rates : str, NoiseRates or rate estimator, default="auto"
        As for :class:`~unflip.ImportanceReweightingClassifier`.
    learner : LinearClassifier or KernelClassifier, default=None
        The learner and its penalty; its `loss` is replaced.
        None: :class:`~unflip.learners.LinearClassifier` with defaults.
    random_state : int, RandomState instance or None, default=None
        Seed of the rate estimator and the learner.

    Attributes
    ----------
    learner_ : LinearClassifier or KernelClassifier
        The fitted learner, whose loss is an :class:`UnbiasedLoss`.
    noise_rates_ : NoiseRates
        The rates used.
    classes_ : ndarray of shape (2,)
        The labels, the positive class last.

    Notes
    -----
    The objective is convex for the logistic, squared, modified Huber and unhinged losses. The
    others are minimised from several starts, and l is continued by its tangent beyond |t| = 2;
    otherwise no penalty would bound the objective below. The intercept is penalised too, as the
    objective may be unbounded along it. No negative sample weights are used. The variance grows as
    1 / (1 - rho_pos - rho_neg)^2: raise the learner's `alpha` with the noise.

    References
    ----------
    Natarajan, Dhillon, Ravikumar, Tewari (2013), "Learning with noisy labels", NeurIPS.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from unflip import NoiseRates, flip_labels
    >>> from unflip.baselines import UnbiasedLossClassifier
    >>> X, y = make_classification(2000, class_sep=1.5, random_state=0)
    >>> rates = NoiseRates(positive=0.4, negative=0.1)
    >>> clf = UnbiasedLossClassifier(noise_rates=rates).fit(X, flip_labels(y, rates, 0))
    >>> clf.score(X, y)
    0.9...
    """

    def __init__(
        self,
        loss: str | Loss = "logistic",
        noise_rates: RatesLike = "auto",
        *,
        learner: LossClassifier | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.loss = loss
        self.noise_rates = noise_rates
        self.learner = learner
        self.random_state = random_state

    @available_if(delegated("predict_proba", to="learner_", unfitted="_template"))
    def predict_proba(self, X: Rows) -> Array:
        """Return P(true y | x), one column per class in the order of `classes_`.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Probabilities.
        """
        return np.asarray(self._fitted_for(X).predict_proba(X))

    def _fit(
        self, learner: BaseEstimator, X: Rows, y: Array, weight: Array, random_state: Generator
    ) -> Record:
        rates = self._rates(X, y, weight, random_state)
        if any(rates.both()):
            learner.set_params(loss=UnbiasedLoss(self.loss, rates))
        return {"noise_rates_": rates, "learner_": learner.fit(X, y, sample_weight=weight)}


@documented_like(UnbiasedLossClassifier)
class LabelDependentCostClassifier(_RatesClassifier):
    r"""Natarajan's method of label-dependent costs.

    Minimises the mean of (1 - a) l(t, +1) over positive labels and a l(t, -1) over negative ones.
    With a = (1 - rho_pos + rho_neg) / 2 the minimiser of a calibrated loss has the sign of the
    clean Bayes rule.

    Parameters
    ----------
    noise_rates : str, NoiseRates or rate estimator, default="auto"
        As for :class:`~unflip.ImportanceReweightingClassifier`. Not used with another `cost`.
    cost : "rates", "cv" or float, default="rates"
        a: from the rates; or the best of 0.05, 0.1, ..., 0.95 by threefold cross-validated accuracy
        on noisy labels, as published (which tends to 1/2 whatever the noise); or a number in
        (0, 1).

    Attributes
    ----------
    cost_ : float
        a.
    noise_rates_ : NoiseRates
        The rates used; absent with another `cost`.

    Notes
    -----
    Only rho_pos - rho_neg matters, so symmetric noise is not corrected. A learner that cannot
    express the Bayes rule converges to another classifier than with clean labels, unlike with
    importance weights and unbiased losses. Decision values are not clean probabilities.

    References
    ----------
    Natarajan, Dhillon, Ravikumar, Tewari (2013), "Learning with noisy labels", NeurIPS.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from unflip import NoiseRates, flip_labels
    >>> from unflip.baselines import LabelDependentCostClassifier
    >>> X, y = make_classification(1000, class_sep=2.0, random_state=0)
    >>> rates = NoiseRates(positive=0.4, negative=0.1)
    >>> y_noisy = flip_labels(y, rates, random_state=0)
    >>> clf = LabelDependentCostClassifier(noise_rates=rates).fit(X, y_noisy)
    >>> round(clf.score(X, y), 2)
    0.97
    """

    cost_: float

    def __init__(
        self,
        loss: str | Loss = "logistic",
        noise_rates: RatesLike = "auto",
        *,
        cost: str | float = "rates",
        learner: LossClassifier | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.loss = loss
        self.noise_rates = noise_rates
        self.cost = cost
        self.learner = learner
        self.random_state = random_state

    def _fit(
        self, learner: BaseEstimator, X: Rows, y: Array, weight: Array, random_state: Generator
    ) -> Record:
        found: Record = {}
        by_name = self.cost if isinstance(self.cost, str) else None
        if by_name == "rates":
            rates = self._rates(X, y, weight, random_state)
            positive, negative = rates.both()
            cost = (1 - positive + negative) / 2
            found["noise_rates_"] = rates
        elif by_name == "cv":
            cost = self._choose_cost(X, y, weight, random_state)
        elif is_number(self.cost) and 0 < self.cost < 1:
            cost = float(self.cost)
        else:
            raise ValueError(f"cost must be 'rates', 'cv' or in (0, 1), got {self.cost!r}.")
        # with factors 2 (1-a) and 2 a the weights do not change at a = 1/2
        factor = np.where(y == np.unique(y)[1], 2 * (1 - cost), 2 * cost)
        return found | {"cost_": cost, "learner_": learner.fit(X, y, sample_weight=weight * factor)}

    def _choose_cost(self, X: Rows, y: Array, weight: Array, random_state: Generator) -> float:
        seed = None if random_state is None else random_state.randint(np.iinfo(np.int32).max)
        folds = StratifiedKFold(3, shuffle=True, random_state=seed)
        search = GridSearchCV(clone(self), {"cost": list(np.linspace(0.05, 0.95, 19))}, cv=folds)
        return float(search.fit(X, y, sample_weight=weight).best_params_["cost"])
