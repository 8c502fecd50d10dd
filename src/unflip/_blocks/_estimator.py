"""Base classes of the streaming and Dask estimators, which turn their arguments into blocks."""

from collections.abc import Callable
from inspect import signature
from typing import Any, Self, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import check_is_fitted

from unflip._blocks._error_model import BlockErrorModel
from unflip._blocks._fit import MAX_ROWS, BlockFit, fit_blocks
from unflip._blocks._label_model import (
    LabelModel,
    Suspects,
    block_mislabel_histogram,
    block_partial_fit,
    block_predictions,
    block_suspects,
    most_suspect,
)
from unflip._blocks._rows import Blocks
from unflip._utils.estimators import clone_seeded, optional_generator, stage_generator
from unflip._utils.typing import Array, Classifier, Floats, RandomState
from unflip._utils.validation import check_count, check_flag, check_selection, check_table
from unflip.checked import CheckedLabels
from unflip.diagnostics import diagnose_weights, raise_or_warn
from unflip.estimate import Bounds, NoiseEstimate
from unflip.noise import Noise, as_transition_matrix
from unflip.noise_rates import BaseRates, RatesLike
from unflip.posterior import BasePosterior, PosteriorLike
from unflip.weights import Totals

B = TypeVar("B", bound=Blocks)


def learns_by_blocks(estimator: BaseEstimator) -> bool:
    """Return whether `partial_fit` of a classifier takes `sample_weight`."""
    method = getattr(estimator, "partial_fit", None)
    return method is not None and "sample_weight" in signature(method).parameters


class BlockwiseEstimator(BaseEstimator):
    """Fitted attributes of reweighting and audit, which have the parameters declared here."""

    posterior: PosteriorLike
    noise_rates: RatesLike
    max_rows: int
    progress: bool
    random_state: RandomState

    classes_: Array
    noise_rates_: Noise
    posterior_: BasePosterior
    rate_estimator_: BaseRates | None
    diagnostics_: list[str]
    totals_: Totals
    checked_: BlockErrorModel | None
    _fitted_model: LabelModel
    # the estimate from the samples that were drawn for the fit
    _drawn: NoiseEstimate

    @property
    def transition_matrix_(self) -> Floats:
        """T[i, j] = P(noisy=classes_[j] | true=classes_[i]), as used."""
        return as_transition_matrix(self.noise_rates_).matrix

    @property
    def n_errors_(self) -> float:
        """Expected number of label errors, weighted by `sample_weight`."""
        return self.totals_.n_errors

    @property
    def label_error_rate_(self) -> float:
        """The label error rate: the weighted mean of P(mislabelled)."""
        return self.totals_.error_rate

    @property
    def effective_sample_size_(self) -> float:
        """(sum w)^2 / sum w^2 of beta times `sample_weight`."""
        return self.totals_.effective_sample_size

    @property
    def clipped_share_(self) -> float:
        """Share of samples whose beta was clipped: the rates do not allow their P(noisy y | x)."""
        return self.totals_.clipped_share

    @property
    def label_error_interval_(self) -> Bounds:
        """(low, high) of the error rate if errors depend on nothing but the true class."""
        return self._drawn.error_rate.interval

    @property
    def label_error_range_(self) -> Bounds:
        """(low, high) of the error rate if errors may also depend on the sample."""
        return self._drawn.error_rate.range

    @property
    def _model(self) -> LabelModel:
        check_is_fitted(self)
        return self._fitted_model

    def _checked(self, blocks: B) -> B:
        """Return the blocks, after checking that their columns are those of the fit."""
        check_is_fitted(self)
        table = blocks.no_rows()
        if table is not None:
            check_table(self, table, reset=False)
        return blocks

    def _fit_blocks(
        self,
        blocks: Blocks,
        random_state: np.random.RandomState | None,
        checked: CheckedLabels | None,
    ) -> BlockFit:
        check_flag(self.progress, "progress")
        return fit_blocks(
            blocks,
            self.posterior,
            self.noise_rates,
            max_rows=self.max_rows,
            random_state=random_state,
            checked=checked,
        )

    def _take(self, blocks: Blocks, found: BlockFit, diagnostics: list[str]) -> None:
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
        table = blocks.no_rows()
        if table is not None:
            check_table(self, table, reset=True)
        self._fitted_model, self._drawn, self.totals_ = found.model, found.drawn, found.totals
        self.classes_ = found.model.classes
        self.posterior_, self.noise_rates_ = found.model.posterior, found.model.rates
        self.rate_estimator_, self.diagnostics_ = found.rate_estimator, diagnostics
        self.checked_ = found.error_model


class BlockwiseReweighting(BlockwiseEstimator):
    """Weights of rows in blocks, and a classifier that is trained with them."""

    estimator_: BaseEstimator

    def __init__(
        self,
        estimator: Classifier | None = None,
        *,
        posterior: PosteriorLike = "auto",
        noise_rates: RatesLike = "auto",
        n_epochs: int = 1,
        max_rows: int = MAX_ROWS,
        progress: bool = False,
        random_state: RandomState = None,
    ) -> None:
        self.estimator = estimator
        self.posterior = posterior
        self.noise_rates = noise_rates
        self.n_epochs = n_epochs
        self.max_rows = max_rows
        self.progress = progress
        self.random_state = random_state

    def _fit(self, blocks: Blocks, checked: CheckedLabels | None) -> Self:
        check_count(self.n_epochs, "n_epochs", least=1)
        random_state = optional_generator(self.random_state)
        # its seed is drawn first, as in memory, even if there is no classifier: one seed then gives
        # the same rows and centres everywhere
        seeded = clone_seeded(
            LogisticRegression() if self.estimator is None else self.estimator, random_state
        )
        estimator = None if self.estimator is None else seeded
        if estimator is not None:
            self._check_classifier(estimator)
        found = self._fit_blocks(blocks, random_state, checked)
        model = found.model
        diagnostics = raise_or_warn(
            [*diagnose_weights(found.totals, model.classes, model.rates), *found.diagnostics]
        )
        if estimator is not None:
            estimator = self._trained(estimator, blocks, model)
        self._take(blocks, found, diagnostics)
        self.estimator_ = estimator
        return self

    def _check_classifier(self, estimator: BaseEstimator) -> None:
        """Raise an error if the classifier cannot be trained."""
        raise NotImplementedError

    def _trained(self, estimator: BaseEstimator, blocks: B, model: LabelModel) -> BaseEstimator:
        """Return the classifier trained by `partial_fit` on one block after another."""
        for _ in range(self.n_epochs):
            estimator = blocks.fold(block_partial_fit, estimator, model)
        return estimator

    def _predictions(self, blocks: Blocks, method: str) -> Any:
        """Return what a method of the classifier gives for every row, lazily."""
        self._checked(blocks)
        one_value = method == "predict"
        name = "prediction" if one_value else self.classes_
        like = self.classes_[:1] if one_value else np.zeros((1, self.classes_.size))
        return blocks.row_values(block_predictions, (self.estimator_, method, like), name, like)


def classifier_has(method: str) -> Callable[[BlockwiseReweighting], bool]:
    """Return the condition that the classifier of a reweighting has a method."""

    def check(self: BlockwiseReweighting) -> bool:
        if self.estimator is None:
            raise AttributeError(
                f"{type(self).__name__} has no {method} without a classifier: estimator=None "
                "computes weights only. Give it one whose partial_fit takes sample_weight, such as "
                'SGDClassifier(loss="log_loss").'
            )
        getattr(getattr(self, "estimator_", self.estimator), method)
        return True

    return check


class BlockwiseAudit(BlockwiseEstimator):
    """P(mislabelled) of rows in blocks."""

    def __init__(
        self,
        posterior: PosteriorLike = "auto",
        noise_rates: RatesLike = "auto",
        *,
        max_rows: int = MAX_ROWS,
        progress: bool = False,
        random_state: RandomState = None,
    ) -> None:
        self.posterior = posterior
        self.noise_rates = noise_rates
        self.max_rows = max_rows
        self.progress = progress
        self.random_state = random_state

    def _fit(self, blocks: Blocks, checked: CheckedLabels | None) -> Self:
        found = self._fit_blocks(blocks, stage_generator(self.random_state), checked)
        self._take(blocks, found, raise_or_warn(found.diagnostics))
        return self

    def _issues(
        self, blocks: Blocks, precision: float | None, n: int | None, threshold: float | None
    ) -> Suspects:
        check_selection(None, precision=precision, n=n, threshold=threshold)
        model = self._model
        self._checked(blocks)
        if n is None:
            histogram = blocks.sum(block_mislabel_histogram, model)
            n = histogram.n_issues(precision)
            if threshold is not None:
                n = histogram.most_above(threshold)
        found = most_suspect(blocks.map(block_suspects, (model, n)), n)
        return found if threshold is None else found.first(found.n_above(threshold))
