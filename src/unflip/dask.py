"""The method on dask arrays and dataframes.

The drawn rows are sent to the client once, the fitted posterior to the workers once, and a few sums
from every block. The rows stay where they are, and the weights are lazy.
"""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from copy import deepcopy
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np

from unflip._blocks import (
    MAX_ROWS,
    BlockFunction,
    Blocks,
    BlockwiseEstimator,
    LabelModel,
    Suspects,
    block_mislabel_histogram,
    block_mislabel_proba,
    block_suggested_label,
    block_suspects,
    block_weights,
    first_rows,
    learns_by_blocks,
    most_suspect,
    seeded_classifier,
)
from unflip._diagnostics import judge_weights, raise_or_warn
from unflip._estimators import optional_generator, stage_generator
from unflip._validation import check_count, check_precision_or_n, plain_labels

if TYPE_CHECKING:
    import dask
    import dask.array
    import distributed
    from dask.diagnostics import ProgressBar
else:
    try:
        import dask
        import dask.array
        import distributed
        from dask.diagnostics import ProgressBar
    except ImportError as error:
        raise ImportError(f"unflip.dask needs {error.name}: pip install 'unflip[dask]'") from error

T = TypeVar("T")

FAN_IN = 8
"""Fan-in of the tree reduction."""

FLOAT_META = np.zeros(1)
"""Example value of a lazy collection of floats."""

__all__ = ["DaskAudit", "DaskBlocks", "DaskReweighting"]


class DaskBlocks(Blocks):
    """The blocks of dask collections: chunks of an array, partitions of a dataframe.

    Parameters
    ----------
    X : dask array or dataframe of shape (n_samples, n_features)
        Rows. An array is rechunked to have all columns in each block.
    y : dask array or series of shape (n_samples,)
        Noisy labels, in blocks of the same rows; an array of known chunk sizes is rechunked.
    sample_weight : dask array or series of shape (n_samples,), default=None
        Weight of each row, in blocks of the same rows.
    progress : bool, default=False
        Whether to show a progress bar of every pass.
    """

    def __init__(
        self, X: Any, y: Any, sample_weight: Any = None, *, progress: bool = False
    ) -> None:
        for name, value in {"X": X, "y": y, "sample_weight": sample_weight}.items():
            if value is not None and not dask.is_dask_collection(value):
                raise TypeError(
                    f"{name} must be a dask array or dataframe, got {type(value).__name__}. Use "
                    "ImportanceReweightingClassifier for rows in memory, unflip.streaming for "
                    "files."
                )
        if isinstance(X, dask.array.Array):
            X = X.rechunk({1: -1})
        self.X, self.y = X, _in_blocks_of(X, y, "y")
        self.progress = progress
        self._rows, self._labels = _delayed(self.X), _delayed(self.y)
        self._weights: Sequence[Any] = [None] * len(self._rows)
        if sample_weight is not None:
            self._weights = _delayed(_in_blocks_of(X, sample_weight, "sample_weight"))

    def map_labels(self, function: Callable[[Any, Any], T]) -> list[T]:
        """Return function(y, sample_weight) of every block, in order."""
        task = dask.delayed(function)
        return self._computed(
            [task(y, weight) for y, weight in zip(self._labels, self._weights, strict=True)]
        )

    def map(self, function: BlockFunction[T], shared: Any) -> list[T]:
        """Return function(X, y, sample_weight, shared) of every block, in order."""
        return self._computed(self.delayed(function, shared))

    def map_each(
        self, function: Callable[[Any, Any, Any, Any, Any], T], items: Sequence[Any], shared: Any
    ) -> list[T]:
        """Return function(X, y, sample_weight, items[k], shared) of every block k, in order."""
        task, common = dask.delayed(function), dask.delayed(shared, traverse=False)
        blocks = zip(self._rows, self._labels, self._weights, items, strict=True)
        return self._computed([task(*block, common) for block in blocks])

    def sum(self, function: BlockFunction[T], shared: Any) -> T:
        """Return the sum of function(X, y, sample_weight, shared), added on the cluster."""
        tasks, total = self.delayed(function, shared), dask.delayed(_sum_parts)
        while len(tasks) > 1:
            tasks = [total(tasks[k : k + FAN_IN]) for k in range(0, len(tasks), FAN_IN)]
        return self._computed(tasks)[0]

    def head(self, k: int) -> Any:
        """Return the first rows of block k."""
        return self._computed([dask.delayed(first_rows)(self._rows[k])])[0]

    def delayed(self, function: BlockFunction[T], shared: Any) -> list[Any]:
        """Return function(X, y, sample_weight, shared) of every block, delayed.

        `shared` is a part of the graph: it is sent once, and is not lost with a worker.
        """
        task, common = dask.delayed(function), dask.delayed(shared, traverse=False)
        blocks = zip(self._rows, self._labels, self._weights, strict=True)
        return [task(*block, common) for block in blocks]

    def collection(
        self, function: BlockFunction[Any], model: LabelModel, name: str, like: Any
    ) -> Any:
        """Return function(X, y, sample_weight, model) of all blocks, lazily: one value per row.

        The result is a dask array if X is one, else a series with the index of X. `like` is an
        array of one such value.
        """
        tasks = self.delayed(function, model)
        if isinstance(self.X, dask.array.Array):
            parts = [
                dask.array.from_delayed(task, shape=(n_rows,), dtype=like.dtype)
                for task, n_rows in zip(tasks, self.X.chunks[0], strict=True)
            ]
            return dask.array.concatenate(parts)
        from dask.dataframe import from_delayed

        task = dask.delayed(_series)
        return from_delayed(
            [task(values, rows, name) for values, rows in zip(tasks, self._rows, strict=True)],
            meta=_series(like, self.X._meta_nonempty.iloc[:1], name).iloc[:0],
            divisions=self.X.divisions,
        )

    def learn(self, estimator: Any, model: LabelModel, n_epochs: int) -> Any:
        """Return `estimator` trained by `partial_fit` on one block after the other.

        The estimator is sent to the worker that holds the block, not the block to the client.
        """
        task, common = dask.delayed(_partial_fit), dask.delayed(model, traverse=False)
        blocks = list(zip(self._rows, self._labels, self._weights, strict=True))
        for _ in range(n_epochs):
            for block in blocks:
                (estimator,) = dask.compute(task(estimator, *block, common))
        return estimator

    def _computed(self, tasks: list[Any]) -> list[Any]:
        client = _client() if self.progress else None
        if client is None:
            with ProgressBar() if self.progress else nullcontext():
                return list(dask.compute(*tasks))
        futures = client.compute(tasks)
        distributed.progress(futures, notebook=False)
        return list(client.gather(futures))


class DaskReweighting(BlockwiseEstimator):
    r"""beta = P(true=y | x) / P(noisy=y | x) of rows on a cluster.

    Does what :class:`~unflip.ImportanceReweightingClassifier` does in memory: P(noisy y | x) and
    the rates are fitted on the client to rows drawn from all blocks (the same rows that a channel
    draws in memory), every sum over rows is taken block by block, and the weights are lazy.

    Parameters
    ----------
    estimator : classifier, default=None
        The classifier to train. Either its `fit` takes dask collections and `sample_weight`, such
        as LightGBM's `DaskLGBMClassifier` and XGBoost's `DaskXGBClassifier`; or its `partial_fit`
        takes `sample_weight`, and it is trained on one block after the other. None: only the
        weights are computed.
    posterior, noise_rates
        As for :class:`~unflip.ImportanceReweightingClassifier`.
    n_epochs : int, default=1
        Number of passes to train an estimator with `partial_fit`.
    max_rows : int, default=20_000
        Number of rows to fit P(noisy y | x) and the rates to. A channel uses its own `max_rows`;
        "kliep", "ulsif" and "rulsif" use all rows.
    progress : bool, default=False
        Whether to show a progress bar of every pass over the blocks.
    random_state : int, RandomState instance or None, default=None
        Seed of the draw, and of every part without a seed.

    Attributes
    ----------
    noise_rates_, posterior_, rate_estimator_, estimator_, classes_, diagnostics_
        As of :class:`~unflip.ImportanceReweightingClassifier`; `estimator_` is None if none was
        given.
    effective_sample_size_, clipped_share_ : float
        The same, over all rows.
    n_errors_ : float
        Expected number of wrong labels.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from unflip import NoiseRates, flip_labels
    >>> from unflip.dask import DaskReweighting
    >>> X = np.random.default_rng(0).normal(size=(30_000, 2))
    >>> y = flip_labels(X[:, 0] > 0.5, NoiseRates(positive=0.4, negative=0.1), random_state=0)
    >>> X, y = da.from_array(X, chunks=(5000, 2)), da.from_array(y, chunks=5000)
    >>> model = DaskReweighting(random_state=0).fit(X, y)
    >>> print(model.noise_rates_)
    NoiseRates(positive=0.398, negative=0.102)
    >>> model.sample_weight(X, y)
    dask.array<concatenate, shape=(30000,), dtype=float64, chunksize=(5000,), ...>
    """

    estimator_: Any

    def __init__(
        self,
        estimator: Any = None,
        *,
        posterior: Any = "auto",
        noise_rates: Any = "auto",
        n_epochs: int = 1,
        max_rows: int = MAX_ROWS,
        progress: bool = False,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.estimator = estimator
        self.posterior = posterior
        self.noise_rates = noise_rates
        self.n_epochs = n_epochs
        self.max_rows = max_rows
        self.progress = progress
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Estimate the posterior, the rates and the sums, then train the classifier.

        Parameters
        ----------
        X : dask array or dataframe of shape (n_samples, n_features)
            Rows. There are two passes over them (about ten for "ulsif" and twenty for "kliep"),
            and more for the classifier: `persist()` them if the cluster's memory allows.
        y : dask array or series of shape (n_samples,)
            Noisy labels.
        sample_weight : dask array or series of shape (n_samples,), default=None
            Weight of each row.
        """
        check_count(self.n_epochs, "n_epochs", least=1)
        random_state = optional_generator(self.random_state)
        estimator = seeded_classifier(self.estimator, random_state)
        _check_dask_aware(estimator)
        blocks = DaskBlocks(X, y, sample_weight, progress=self.progress)
        found = self._fit_blocks(blocks, random_state)
        classes = found.model.classes
        diagnostics = raise_or_warn(
            [*judge_weights(found.totals, classes, found.model.rates), *found.diagnostics]
        )
        if learns_by_blocks(estimator):
            estimator = blocks.learn(estimator, found.model, self.n_epochs)
        elif estimator is not None:
            weights = blocks.collection(block_weights, found.model, "weight", FLOAT_META)
            estimator.fit(blocks.X, blocks.y, sample_weight=weights)
        self._take(found, diagnostics)
        self.estimator_ = estimator
        return self

    def sample_weight(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Return beta times `sample_weight`, lazily: an array, or a series if X is a dataframe.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`: the same collections, or other rows with noisy labels.
        """
        blocks = DaskBlocks(X, y, sample_weight)
        return blocks.collection(block_weights, self._model, "weight", FLOAT_META)


class DaskAudit(BlockwiseEstimator):
    """P(true != y | x, noisy=y) of rows on a cluster.

    Does what :class:`~unflip.audit.LabelAudit` does in memory, but without cross-fitting:
    P(noisy y | x) is fitted to drawn rows only, or is a density ratio with few parameters that is
    fitted to all rows.

    Parameters
    ----------
    posterior, noise_rates
        As for :class:`~unflip.audit.LabelAudit`.
    max_rows : int, default=20_000
        Number of rows to fit P(noisy y | x) and the rates to. A channel uses its own `max_rows`;
        "kliep", "ulsif" and "rulsif" use all rows.
    progress : bool, default=False
        Whether to show a progress bar of every pass over the blocks.
    random_state : int, RandomState instance or None, default=None
        Seed of the draw, and of every part without a seed.

    Attributes
    ----------
    noise_rates_, rate_estimator_, classes_, diagnostics_, n_errors_
        As of :class:`~unflip.audit.LabelAudit`.
    posterior_ : posterior
        The fitted estimator of P(noisy y | x).

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from unflip import NoiseRates, flip_labels
    >>> from unflip.dask import DaskAudit
    >>> X = np.random.default_rng(0).normal(size=(30_000, 2))
    >>> y = X[:, 0] > 0.5
    >>> y_noisy = flip_labels(y, NoiseRates(positive=0.3, negative=0.1), random_state=0)
    >>> rows, labels = da.from_array(X, chunks=(5000, 2)), da.from_array(y_noisy, chunks=5000)
    >>> suspects = DaskAudit(random_state=0).fit(rows, labels).issues(rows, labels, n=100)
    >>> float(np.mean(suspects.suggested_label == y[suspects.position]))
    1.0
    """

    rates_taken = "mean"

    def __init__(
        self,
        posterior: Any = "auto",
        noise_rates: Any = "auto",
        *,
        max_rows: int = MAX_ROWS,
        progress: bool = False,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.posterior = posterior
        self.noise_rates = noise_rates
        self.max_rows = max_rows
        self.progress = progress
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Estimate the posterior, the rates and the expected number of wrong labels.

        Parameters
        ----------
        X, y, sample_weight
            As for :meth:`DaskReweighting.fit`.
        """
        blocks = DaskBlocks(X, y, sample_weight, progress=self.progress)
        found = self._fit_blocks(blocks, stage_generator(self.random_state))
        self._take(found, raise_or_warn(found.diagnostics))
        return self

    def mislabel_proba(self, X: Any, y: Any) -> Any:
        """Return P(the label is wrong | x, the label), lazily.

        Parameters
        ----------
        X, y
            The collections of the fit, or other rows with noisy labels.
        """
        blocks = DaskBlocks(X, y)
        return blocks.collection(block_mislabel_proba, self._model, "mislabel_proba", FLOAT_META)

    def suggested_label(self, X: Any, y: Any) -> Any:
        """Return the likeliest true label given x and the label, lazily.

        Parameters
        ----------
        X, y
            The collections of the fit, or other rows with noisy labels.
        """
        model = self._model
        return DaskBlocks(X, y).collection(
            block_suggested_label, model, "suggested_label", model.classes[:1]
        )

    def issues(
        self, X: Any, y: Any, *, precision: float | None = None, n: int | None = None
    ) -> Suspects:
        """Return the rows whose labels to look at, the most suspicious first.

        Parameters
        ----------
        X, y
            The collections of the fit, or other rows with noisy labels. There is one pass over
            them, and one more if `n` is not given. Every block sends at most as many rows as are
            returned.
        precision, n
            As for :meth:`~unflip.audit.LabelAudit.issues`.
        """
        check_precision_or_n(precision, n)
        model, blocks = self._model, DaskBlocks(X, y, progress=self.progress)
        if n is None:
            n = blocks.sum(block_mislabel_histogram, model).n_issues(precision)
        return most_suspect(blocks.map(block_suspects, (model, n)), n)


def _in_blocks_of(X: Any, values: Any, name: str) -> Any:
    """Return `values` in the blocks of X, or raise an error if they do not match."""
    if values.ndim != 1:
        raise ValueError(f"{name} has {values.ndim} dimensions, expected one value per row.")
    both_arrays = isinstance(X, dask.array.Array) and isinstance(values, dask.array.Array)
    if both_arrays and not np.isnan([X.shape[0], values.shape[0]]).any():
        if X.shape[0] != values.shape[0]:
            raise ValueError(f"X has {X.shape[0]} rows and {name} has {values.shape[0]}.")
        return values.rechunk((X.chunks[0],))
    n_rows, n_values = len(_delayed(X)), len(_delayed(values))
    if n_rows != n_values:
        raise ValueError(
            f"X has {n_rows} blocks and {name} has {n_values}: their blocks must hold the same "
            "rows. Take both from one dataframe, or call compute_chunk_sizes() on arrays first."
        )
    return values


def _delayed(collection: Any) -> list[Any]:
    """Return the blocks of a collection, delayed."""
    if isinstance(collection, dask.array.Array):
        return list(collection.to_delayed().ravel())
    # read only the columns that are needed; full optimisation would also merge partitions of few
    # columns, and the blocks of labels would no longer match those of the rows
    return list(collection.simplify().to_delayed(optimize_graph=False))


def _sum_parts(parts: list[Any]) -> Any:
    return reduce(add, parts)


def _series(values: Any, rows: Any, name: str) -> Any:
    """Return a series of the values with the index of `rows`."""
    from pandas import Series

    return Series(values, index=rows.index, name=name)


def _partial_fit(estimator: Any, X: Any, y: Any, sample_weight: Any, model: LabelModel) -> Any:
    """Return a copy of the estimator trained on a block; a copy, as a task may run twice."""
    trained = deepcopy(estimator)
    weights = block_weights(X, y, sample_weight, model)
    return trained.partial_fit(X, plain_labels(y), classes=model.classes, sample_weight=weights)


def _check_dask_aware(estimator: Any) -> None:
    """Raise an error if the classifier needs all rows in memory."""
    from_sklearn = type(estimator).__module__.startswith("sklearn.")
    if from_sklearn and not learns_by_blocks(estimator):
        raise TypeError(
            f"{type(estimator).__name__} needs all rows in memory. Use a dask classifier of "
            "LightGBM or XGBoost, or one whose partial_fit takes sample_weight, such as "
            "SGDClassifier."
        )


def _client() -> Any:
    """Return the client of the current cluster, or None."""
    try:
        return distributed.get_client()
    except ValueError:
        return None
