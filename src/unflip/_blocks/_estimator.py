"""Base class of the streaming and Dask estimators."""

from inspect import signature
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import check_is_fitted

from unflip._blocks._fit import BlockFit, fit_blocks
from unflip._blocks._label_model import LabelModel
from unflip._blocks._rows import Blocks
from unflip._estimators import clone_seeded
from unflip._label_posterior import Totals
from unflip._typing import Array, Floats
from unflip.noise import as_transition_matrix


def seeded_classifier(estimator: Any, random_state: np.random.RandomState | None) -> Any:
    """Return a seeded clone of the classifier, or None if none is given.

    The classifier's seed is drawn first, as in memory, even if there is no classifier: one seed
    then gives the same rows and centres everywhere.

    Parameters
    ----------
    estimator : classifier or None
        The user's classifier.
    random_state : RandomState instance or None
        Generator of the seeds.
    """
    seeded = clone_seeded(LogisticRegression() if estimator is None else estimator, random_state)
    return None if estimator is None else seeded


def learns_by_blocks(estimator: Any) -> bool:
    """Return whether `partial_fit` takes `sample_weight`.

    Parameters
    ----------
    estimator : classifier
        The classifier.
    """
    method = getattr(estimator, "partial_fit", None)
    return method is not None and "sample_weight" in signature(method).parameters


class BlockwiseEstimator(BaseEstimator):
    """Parameters and fitted attributes shared by the streaming and Dask estimators.

    Subclasses have the parameters `posterior`, `noise_rates`, `max_rows` and `random_state`.
    """

    posterior: Any
    noise_rates: Any
    max_rows: int
    random_state: Any

    rates_taken = "median"
    """Point estimate of the rates if the channel is given by name."""

    classes_: Array
    noise_rates_: Any
    posterior_: Any
    rate_estimator_: Any
    diagnostics_: list[str]
    totals_: Totals

    @property
    def transition_matrix_(self) -> Floats:
        """T[i, j] = P(noisy=classes_[j] | true=classes_[i]), as used."""
        return as_transition_matrix(self.noise_rates_).matrix

    @property
    def n_errors_(self) -> float:
        """Expected number of wrong labels, by `sample_weight`."""
        return self.totals_.n_errors

    @property
    def effective_sample_size_(self) -> float:
        """(sum w)^2 / sum w^2 of beta times `sample_weight`."""
        return self.totals_.effective_sample_size

    @property
    def clipped_share_(self) -> float:
        """Share of rows whose beta was clipped because the rates do not allow P(noisy y | x)."""
        return self.totals_.clipped_share

    @property
    def _model(self) -> LabelModel:
        check_is_fitted(self)
        return LabelModel(self.posterior_, self.noise_rates_, self.classes_)

    def _fit_blocks(self, blocks: Blocks, random_state: np.random.RandomState | None) -> BlockFit:
        return fit_blocks(
            blocks,
            self.posterior,
            self.noise_rates,
            max_rows=self.max_rows,
            random_state=random_state,
            estimate=self.rates_taken,
        )

    def _take(self, found: BlockFit, diagnostics: list[str]) -> None:
        self.classes_, self.totals_ = found.model.classes, found.totals
        self.posterior_, self.noise_rates_ = found.model.posterior, found.model.rates
        self.rate_estimator_, self.diagnostics_ = found.rate_estimator, diagnostics
