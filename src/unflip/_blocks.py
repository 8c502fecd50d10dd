"""The method on rows that come in blocks, each of which fits in memory.

P(noisy y | x) and the rates are fitted to rows drawn from all blocks: the very rows that would be
drawn from the same table in memory. All else is a map over blocks, and sums of what it gives.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from inspect import signature
from operator import add
from typing import Any, TypeVar

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.utils import _safe_indexing
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from unflip._beliefs import Beliefs, Totals
from unflip._estimators import clone_seeded
from unflip._sampling import drawn_rows
from unflip._validation import MINIMUM_ROWS, check_count, check_labels, check_weights
from unflip.noise import as_transition_matrix
from unflip.noise_rates import fit_stages
from unflip.noise_rates._estimate import choose_posterior
from unflip.noise_rates._identifiability import doubts_by_shares
from unflip.posterior import ChannelPosterior

Array = NDArray[Any]
Floats = NDArray[np.float64]
T = TypeVar("T")

MAX_ROWS = 20_000
"""Rows that P(noisy y | x) and the rates are fitted to, where nothing else is said."""


class Blocks(ABC):
    """Rows, noisy labels and the rows' own weights, in blocks whose order does not change.

    A weight block is None where every row counts once. Kernels are pure functions of a block, so
    that one may be run again.
    """

    @abstractmethod
    def map_labels(self, kernel: Callable[[Any, Any], T]) -> list[T]:
        """Return kernel(y, weight) of every block, in order."""

    @abstractmethod
    def map(self, kernel: Callable[[Any, Any, Any, Any], T], shared: Any) -> list[T]:
        """Return kernel(X, y, weight, shared) of every block, in order."""

    @abstractmethod
    def map_each(self, kernel: Callable[[Any, Any, Any, Any], T], own: Sequence[Any]) -> list[T]:
        """Return kernel(X, y, weight, own[k]) of every block k, in order."""


@dataclass(frozen=True)
class LabelModel:
    """P(noisy y | x) and the rates, fitted: what the labels of any block are judged by.

    Parameters
    ----------
    posterior : BasePosterior
        P(noisy y | x).
    rates : NoiseRates or TransitionMatrix
        The noise.
    classes : ndarray of shape (n_classes,)
        The labels, sorted.
    """

    posterior: Any
    rates: Any
    classes: Array

    def beliefs(self, X: Any, y: Any) -> Beliefs:
        """Return what is to be believed of the labels of some rows."""
        check_consistent_length(X, y)
        if not len(y):
            none = np.empty((0, self.classes.size))
            return Beliefs(none, np.empty(0, dtype=np.intp), self.rates, self.classes)
        labels = np.asarray(y).astype(self.classes.dtype, copy=False)
        _, codes = check_labels(labels, classes=self.classes, binary=False)
        noisy_posterior = np.asarray(self.posterior.predict_proba(X), dtype=float)
        return Beliefs(noisy_posterior, codes, self.rates, self.classes)


@dataclass(frozen=True)
class BlockFit:
    """What was found of all blocks.

    Parameters
    ----------
    model : LabelModel
        What the labels of any block are judged by.
    rate_estimator : BaseRates or None
        What the rates were estimated by; None where they were given.
    totals : Totals
        The sums over all rows.
    diagnostics : list of str
        Why the rates may not be trusted, in words.
    """

    model: LabelModel
    rate_estimator: Any
    totals: Totals
    diagnostics: list[str]


def fit_blocks(
    blocks: Blocks,
    posterior: Any,
    noise_rates: Any,
    *,
    max_rows: int = MAX_ROWS,
    random_state: np.random.RandomState | None = None,
    estimate: str = "median",
) -> BlockFit:
    """Fit stages 1 and 2 to drawn rows, and sum up what they say of all rows.

    Three passes: over the labels, to know how many rows there are and of which classes; over all
    rows, to take those that are drawn; and over all rows, for the sums.

    Parameters
    ----------
    blocks : Blocks
        The noisy data.
    posterior, noise_rates, random_state, estimate
        As for :func:`~unflip.noise_rates.fit_stages`.
    max_rows : int, default=20_000
        How many rows are drawn; a channel has a `max_rows` of its own, which holds for it.
    """
    check_count(max_rows, "max_rows", least=MINIMUM_ROWS)
    counts = blocks.map_labels(_counted)
    classes = _classes_of(counts)
    chosen = choose_posterior(
        posterior, noise_rates, classes.size, random_state=random_state, estimate=estimate
    )
    # a channel would draw from rows in memory itself: these are the rows that it would take
    drawing: Any = chosen if isinstance(chosen, ChannelPosterior) else None
    X, y, weight = _drawn(
        blocks,
        [count.n_counting for count in counts],
        max_rows if drawing is None else drawing.max_rows,
        random_state if drawing is None else drawing.random_state,
    )
    y = y.astype(classes.dtype, copy=False)
    missing = classes[~np.isin(classes, y)]
    if missing.size:
        raise ValueError(
            f"no row of class {missing[0].item()!r} is among the {len(y)} that were drawn to "
            "estimate P(noisy y | x) from: it is too rare. Raise max_rows; or leave out that "
            "class, or merge it with another."
        )
    stages = fit_stages(chosen, noise_rates, X, y, weight, random_state=random_state)
    model = LabelModel(stages.posterior, stages.rates, classes)
    totals = reduce(add, blocks.map(block_totals, model))
    diagnostics = doubts_by_shares(totals.sure_share, classes, stages.rates, stages.estimator)
    return BlockFit(model, stages.estimator, totals, diagnostics)


def block_totals(X: Any, y: Any, weight: Any, model: LabelModel) -> Totals:
    """Return the sums over the rows of a block."""
    return model.beliefs(X, y).totals(_own_weight(weight, len(y)))


def block_mislabel_proba(X: Any, y: Any, weight: Any, model: LabelModel) -> Floats:
    """Return P(the label is wrong | x, the label), of a block."""
    return model.beliefs(X, y).mislabel_proba


def block_suggested_label(X: Any, y: Any, weight: Any, model: LabelModel) -> Array:
    """Return the likeliest true label given x and the label, of a block."""
    return model.beliefs(X, y).suggested_label


def block_weights(X: Any, y: Any, weight: Any, model: LabelModel) -> Floats:
    """Return beta times the rows' own weights, of a block."""
    beta = model.beliefs(X, y).weights
    own = _own_weight(weight, len(y))
    return beta if own is None else beta * own


@dataclass(frozen=True)
class Suspects:
    """Rows whose labels are probably wrong, the surest first.

    Parameters
    ----------
    position : ndarray of shape (n,)
        Positions of the rows among all.
    mislabel_proba : ndarray of shape (n,)
        P(the label is wrong | x, the label).
    label, suggested_label : ndarray of shape (n,)
        The label, and the likeliest true one.
    n_rows : int
        How many rows were looked at.
    """

    position: NDArray[np.intp]
    mislabel_proba: Floats
    label: Array
    suggested_label: Array
    n_rows: int

    def __len__(self) -> int:
        return self.position.size

    def __add__(self, after: "Suspects") -> "Suspects":
        """Return these and those of the rows that come after these."""
        return Suspects(
            np.concatenate([self.position, self.n_rows + after.position]),
            np.concatenate([self.mislabel_proba, after.mislabel_proba]),
            np.concatenate([self.label, after.label]),
            np.concatenate([self.suggested_label, after.suggested_label]),
            self.n_rows + after.n_rows,
        )

    def first(self, n: int) -> "Suspects":
        """Return the `n` of highest probability; of equal ones, those that come first."""
        order = np.lexsort((self.position, -self.mislabel_proba))[:n]
        return replace(
            self,
            position=self.position[order],
            mislabel_proba=self.mislabel_proba[order],
            label=self.label[order],
            suggested_label=self.suggested_label[order],
        )


def block_suspects(X: Any, y: Any, weight: Any, shared: tuple[LabelModel, int]) -> Suspects:
    """Return the n rows of a block whose labels are most probably wrong."""
    model, n = shared
    beliefs = model.beliefs(X, y)
    found = Suspects(
        np.arange(len(y)), beliefs.mislabel_proba, beliefs.labels, beliefs.suggested_label, len(y)
    )
    return found.first(n)


def most_suspect(parts: Iterable[Suspects], n: int) -> Suspects:
    """Return the n most suspicious rows of consecutive blocks, keeping no more on the way."""
    return reduce(lambda worst, found: (worst + found).first(n), parts)


def seeded_classifier(estimator: Any, random_state: np.random.RandomState | None) -> Any:
    """Return the classifier to train, seeded, or None where there is none.

    Its seed is drawn before those of the other parts, as in memory, even where there is none, so
    that one seed means the same rows and centres everywhere.

    Parameters
    ----------
    estimator : classifier or None
        What the user asks for.
    random_state : RandomState instance or None
        What draws the seeds.
    """
    seeded = clone_seeded(LogisticRegression() if estimator is None else estimator, random_state)
    return None if estimator is None else seeded


def learns_by_blocks(estimator: Any) -> bool:
    """Return whether `partial_fit` takes `sample_weight`.

    Parameters
    ----------
    estimator : classifier
        What to train.
    """
    method = getattr(estimator, "partial_fit", None)
    return method is not None and "sample_weight" in signature(method).parameters


class BlockwiseEstimator(BaseEstimator):
    """What rows out of core and rows on a cluster share: parameters, and what is found.

    Subclasses have the parameters `posterior`, `noise_rates`, `max_rows` and `random_state`.
    """

    posterior: Any
    noise_rates: Any
    max_rows: int
    random_state: Any

    rates_taken = "median"
    """Which rates a channel takes that is given by name."""

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
        """Expected number of wrong labels, by the rows' own weights."""
        return self.totals_.n_errors

    @property
    def effective_sample_size_(self) -> float:
        """(sum w)^2 / sum w^2 of beta times the rows' own weights."""
        return self.totals_.effective_sample_size

    @property
    def clipped_share_(self) -> float:
        """Share of rows whose P(noisy y | x) the rates do not allow, so that beta was clipped."""
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

    def _take(self, found: BlockFit) -> None:
        self.classes_, self.totals_ = found.model.classes, found.totals
        self.posterior_, self.noise_rates_ = found.model.posterior, found.model.rates
        self.rate_estimator_, self.diagnostics_ = found.rate_estimator, found.diagnostics


@dataclass(frozen=True)
class _Count:
    """What a first look at the labels of a block tells."""

    labels: Array
    n_counting: int


def _counted(y: Any, weight: Any) -> _Count:
    labels = np.asarray(y)
    if not labels.size:
        return _Count(labels, 0)
    check_classification_targets(labels)
    own = _own_weight(weight, len(labels))
    n_counting = len(labels) if own is None else int(np.count_nonzero(own))
    return _Count(np.unique(labels), n_counting)


def _classes_of(counts: list[_Count]) -> Array:
    n_counting = sum(count.n_counting for count in counts)
    if n_counting < MINIMUM_ROWS:
        raise ValueError(
            f"Found {n_counting} rows that count, at least {MINIMUM_ROWS} are required: label "
            "noise cannot be told apart from chance on fewer."
        )
    labels = np.concatenate([count.labels for count in counts if count.labels.size])
    if all(isinstance(label, str) for label in labels):
        labels = labels.astype(str)  # from objects, as dataframes have them
    return check_labels(labels, binary=False)[0]


def _drawn(
    blocks: Blocks, n_counting: list[int], size: int, random_state: Any
) -> tuple[Any, Array, Floats | None]:
    """Return `size` of the rows that count, drawn at random, in their order."""
    positions = drawn_rows(sum(n_counting), size, random_state)
    ends = np.cumsum(n_counting)
    cuts = np.searchsorted(positions, ends)
    own = [
        positions[first:last] - start
        for first, last, start in zip([0, *cuts[:-1]], cuts, [0, *ends[:-1]], strict=True)
    ]
    parts = [part for part in blocks.map_each(_rows_at, own) if part is not None]
    rows, labels, weights = zip(*parts, strict=True)
    weight = None if weights[0] is None else np.concatenate(weights)
    return _stacked(rows), np.concatenate(labels), weight


def _rows_at(X: Any, y: Any, weight: Any, positions: Array) -> Any:
    """Return the rows at these positions among those that count; None: nothing is shipped."""
    if not positions.size:
        return None
    check_consistent_length(X, y)
    own = _own_weight(weight, len(y))
    chosen = positions if own is None else np.flatnonzero(own)[positions]
    return (
        _safe_indexing(X, chosen),
        np.asarray(y)[chosen],
        None if own is None else own[chosen],
    )


def _stacked(parts: Sequence[Any]) -> Any:
    if sparse.issparse(parts[0]):
        return sparse.vstack(parts, format="csr")
    if hasattr(parts[0], "columns"):
        return nw.concat([nw.from_native(part) for part in parts]).to_native()
    return np.concatenate(parts)


def _own_weight(weight: Any, n_rows: int) -> Floats | None:
    return None if weight is None or not n_rows else check_weights(weight, n_rows, all_zero=True)
