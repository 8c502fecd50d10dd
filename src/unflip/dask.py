"""Reweighting and audit of dask arrays and dataframes.

The drawn samples are sent to the client once, the fitted posterior to the workers once, and a few
sums from every block. The data stay on the workers, and the weights are lazy.
"""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import reduce
from operator import add, methodcaller
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.metaestimators import available_if

from unflip._blocks import (
    Blocks,
    BlockwiseAudit,
    BlockwiseReweighting,
    LabelModel,
    Suspects,
    block_labels,
    block_weights,
    classifier_has,
    first_rows,
    learns_by_blocks,
)
from unflip._utils.docs import documented_like
from unflip._utils.typing import Array, Rows
from unflip.checked import CheckedLabels

if TYPE_CHECKING:
    import dask
    import dask.array
    import distributed
    from dask.delayed import Delayed
    from dask.diagnostics import ProgressBar
    from dask.typing import DaskCollection
    from pandas import DataFrame, Series
else:
    try:
        import dask
        import dask.array
        import distributed
        from dask.delayed import Delayed
        from dask.diagnostics import ProgressBar
        from dask.typing import DaskCollection
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
    y : dask array or series of shape (n_samples,), default=None
        Noisy labels, in blocks of the same rows; an array of known chunk sizes is rechunked. None:
        the rows are only to be predicted.
    sample_weight : dask array or series of shape (n_samples,), default=None
        Weight of each row, in blocks of the same rows.
    progress : bool, default=False
        Whether to show a progress bar of every pass.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from unflip.dask import DaskBlocks
    >>> X, y = np.arange(8.0).reshape(4, 2), np.array([0, 1, 0, 1])
    >>> blocks = DaskBlocks(da.from_array(X, chunks=(2, 2)), da.from_array(y, chunks=2))
    >>> blocks.map_labels(lambda y, sample_weight: int(y.sum()))
    [1, 1]
    """

    def __init__(
        self,
        X: DaskCollection,
        y: DaskCollection | None = None,
        sample_weight: DaskCollection | None = None,
        *,
        progress: bool = False,
    ) -> None:
        for name, value in {"X": X, "y": y, "sample_weight": sample_weight}.items():
            if value is not None and not dask.is_dask_collection(value):
                raise TypeError(
                    f"{name} must be a dask array or dataframe, got {type(value).__name__}. Use "
                    "ImportanceReweightingClassifier for data in memory, unflip.streaming for "
                    "files."
                )
        if isinstance(X, dask.array.Array):
            X = X.rechunk({1: -1})
        self.X, self.y = X, _in_blocks_of(X, y, "y")
        self.progress = progress
        self._rows = _delayed(X)
        self._labels, self._weights = (
            [None] * len(self._rows) if values is None else _delayed(values)
            for values in (self.y, _in_blocks_of(X, sample_weight, "sample_weight"))
        )

    def map_labels(self, function: Callable[..., T]) -> list[T]:
        """Return function(y, sample_weight) of every block, in order."""
        task = dask.delayed(function)
        return self._computed(
            [task(y, weight) for y, weight in zip(self._labels, self._weights, strict=True)]
        )

    def map(
        self, function: Callable[..., T], shared: Any, items: Sequence[Any] | None = None
    ) -> list[T]:
        """Return function(X, y, sample_weight, shared) of every block, in order."""
        return self._computed(self._delayed(function, shared, *([] if items is None else [items])))

    def sum(self, function: Callable[..., T], shared: Any) -> T:
        """Return the sum of function(X, y, sample_weight, shared), added on the cluster."""
        tasks, total = self._delayed(function, shared), dask.delayed(_sum_parts)
        while len(tasks) > 1:
            tasks = [total(tasks[k : k + FAN_IN]) for k in range(0, len(tasks), FAN_IN)]
        return self._computed(tasks)[0]

    def head(self, k: int) -> Rows:
        """Return the first rows of block k."""
        return self._computed([dask.delayed(first_rows)(self._rows[k])])[0]

    def fold(self, function: Callable[..., T], state: T, shared: Any) -> T:
        """Return state = function(state, X, y, sample_weight, shared), one block after another.

        The state is sent to the worker that holds the block, not the block to the client.
        """
        task, common = dask.delayed(function), dask.delayed(shared, traverse=False)
        for block in zip(self._rows, self._labels, self._weights, strict=True):
            (state,) = dask.compute(task(state, *block, common))
        return state

    def row_values(
        self, function: Callable[..., Array], shared: Any, name: str | Array, like: Array
    ) -> DaskCollection:
        """Return function(X, y, sample_weight, shared) of every row, lazily.

        The result is a dask array if X is one, else a series or dataframe with the index of X.
        """
        tasks = self._delayed(function, shared)
        if isinstance(self.X, dask.array.Array):
            parts = [
                dask.array.from_delayed(task, shape=(n_rows, *like.shape[1:]), dtype=like.dtype)
                for task, n_rows in zip(tasks, self.X.chunks[0], strict=True)
            ]
            return dask.array.concatenate(parts)
        from dask.dataframe import from_delayed

        meta = _beside(like, self.X._meta_nonempty.iloc[:1], name).iloc[:0]
        if self.y is None:  # an expression of X alone: dask assigns it to X without a shuffle
            common = dask.delayed(shared, traverse=False)
            return self.X.map_partitions(_of_rows, function, common, name, meta=meta)
        task = dask.delayed(_beside)
        parts = [task(values, rows, name) for values, rows in zip(tasks, self._rows, strict=True)]
        return from_delayed(parts, meta=meta, divisions=self.X.divisions)

    def no_rows(self) -> Rows:
        """Return a table with the columns of X."""
        if isinstance(self.X, dask.array.Array):
            return np.empty((0, self.X.shape[1]))
        return self.X._meta

    def _delayed(
        self, function: Callable[..., T], shared: Any, *each: Sequence[Any]
    ) -> list[Delayed]:
        """Return function(X, y, sample_weight, *each[k], shared) of every block k, delayed.

        `shared` is a part of the graph: it is sent once, and is not lost with a worker.
        """
        task, common = dask.delayed(function), dask.delayed(shared, traverse=False)
        blocks = zip(self._rows, self._labels, self._weights, *each, strict=True)
        return [task(*block, common) for block in blocks]

    def _computed(self, tasks: list[Delayed]) -> list[Any]:
        client = _client() if self.progress else None
        if client is None:
            with ProgressBar() if self.progress else nullcontext():
                return list(dask.compute(*tasks))
        futures = client.compute(tasks)
        distributed.progress(futures, notebook=False)
        return list(client.gather(futures))


class DaskReweighting(BlockwiseReweighting):
    r"""beta = P(true=y | x) / P(noisy=y | x) of samples on a cluster.

    Counterpart of :class:`~unflip.ImportanceReweightingClassifier` on dask: P(noisy y | x) and the
    rates are fitted on the client to samples drawn from all blocks (the same ones that the noise
    model draws in memory), sums are computed block by block, and the weights are lazy.

    Parameters
    ----------
    estimator : classifier, default=None
        The classifier to train. Either its `fit` takes dask collections and `sample_weight`, such
        as LightGBM's `DaskLGBMClassifier` and XGBoost's `DaskXGBClassifier`; or its `partial_fit`
        takes `sample_weight`, and it is trained on one block after the other. None: only the
        weights are computed.
    posterior, noise_rates, n_epochs, max_rows, random_state
        As for :class:`~unflip.streaming.StreamingReweighting`.
    progress : bool, default=False
        Whether to show a progress bar of every pass over the blocks.

    Attributes
    ----------
    noise_rates_, posterior_, rate_estimator_, estimator_, classes_, diagnostics_, n_errors_
        As of :class:`~unflip.streaming.StreamingReweighting`.
    effective_sample_size_, clipped_share_, n_features_in_, feature_names_in_
        As of :class:`~unflip.streaming.StreamingReweighting`.

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
    NoiseRates(positive=0.40..., negative=0.10...)
    >>> model.sample_weight(X, y)
    dask.array<concatenate, shape=(30000,), dtype=float64, chunksize=(5000,), ...>
    """

    def fit(
        self,
        X: DaskCollection,
        y: DaskCollection,
        sample_weight: DaskCollection | None = None,
        *,
        checked: CheckedLabels | None = None,
    ) -> Self:
        """Estimate the posterior, the rates and the sums, then train the classifier.

        Parameters
        ----------
        X : dask array or dataframe of shape (n_samples, n_features)
            Samples. There are two passes over them (about ten for "ulsif" and twenty for "kliep"),
            and more for the classifier: call `persist()` if the memory of the cluster allows.
        y : dask array or series of shape (n_samples,)
            Noisy labels.
        sample_weight : dask array or series of shape (n_samples,), default=None
            Weight of each row.
        checked : CheckedLabels, default=None
            As for :meth:`~unflip.streaming.StreamingReweighting.fit`; a classifier that takes dask
            collections trains by weights.

        Returns
        -------
        DaskReweighting
            Itself, fitted.
        """
        return self._fit(DaskBlocks(X, y, sample_weight, progress=self.progress), checked)

    def _check_classifier(self, estimator: BaseEstimator) -> None:
        from_sklearn = type(estimator).__module__.startswith("sklearn.")
        if from_sklearn and not learns_by_blocks(estimator):
            raise TypeError(
                f"{type(estimator).__name__} needs all rows in memory. Use a dask classifier of "
                "LightGBM or XGBoost, or one whose partial_fit takes sample_weight, such as "
                "SGDClassifier."
            )

    def _trained(self, estimator: BaseEstimator, blocks: Any, model: LabelModel) -> BaseEstimator:
        if learns_by_blocks(estimator):
            return super()._trained(estimator, blocks, model)
        weights = blocks.row_values(block_weights, model, "weight", FLOAT_META)
        return estimator.fit(blocks.X, blocks.y, sample_weight=weights)

    def sample_weight(
        self, X: DaskCollection, y: DaskCollection, sample_weight: DaskCollection | None = None
    ) -> DaskCollection:
        """Return beta times `sample_weight`, lazily: an array, or a series if X is a dataframe.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`: the same collections, or other samples with noisy labels.

        Returns
        -------
        dask array or series
            One weight per row.
        """
        blocks = self._checked(DaskBlocks(X, y, sample_weight))
        return blocks.row_values(block_weights, self._model, "weight", FLOAT_META)

    @available_if(classifier_has("predict"))
    def predict(self, X: DaskCollection) -> DaskCollection:
        """Return the most probable true labels, lazily: an array, or a series if X is a dataframe.

        Parameters
        ----------
        X : dask array or dataframe of shape (n_samples, n_features)
            Samples with the columns of the fit, in the same order.

        Returns
        -------
        dask array or series
            One label per row.
        """
        return self._predictions(DaskBlocks(X), "predict")

    @available_if(classifier_has("predict_proba"))
    @documented_like(predict)
    def predict_proba(self, X: DaskCollection) -> DaskCollection:
        """Return P(true y | x), lazily: an array or dataframe, a column per class of `classes_`.

        Returns
        -------
        dask array or dataframe
            One row per row of X.
        """
        return self._predictions(DaskBlocks(X), "predict_proba")

    def _predictions(self, blocks: Any, method: str) -> DaskCollection:
        rows = self._checked(blocks).X
        if learns_by_blocks(self.estimator_):
            return super()._predictions(blocks, method)
        return methodcaller(method, rows)(self.estimator_)  # takes and returns collections


class DaskAudit(BlockwiseAudit):
    """P(true != y | x, noisy=y) of samples on a cluster.

    Counterpart of :class:`~unflip.streaming.StreamingAudit` on dask.

    Parameters
    ----------
    posterior, noise_rates
        As for :class:`~unflip.audit.LabelAudit`.
    max_rows, progress, random_state
        As for :class:`DaskReweighting`.

    Attributes
    ----------
    noise_rates_, posterior_, rate_estimator_, classes_, diagnostics_, n_errors_
        As of :class:`~unflip.streaming.StreamingAudit`.

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

    @documented_like(DaskReweighting.fit)
    def fit(
        self,
        X: DaskCollection,
        y: DaskCollection,
        sample_weight: DaskCollection | None = None,
        *,
        checked: CheckedLabels | None = None,
    ) -> Self:
        """Estimate the posterior, the rates and the expected number of label errors.

        Returns
        -------
        DaskAudit
            Itself, fitted.
        """
        return self._fit(DaskBlocks(X, y, sample_weight, progress=self.progress), checked)

    def mislabel_proba(self, X: DaskCollection, y: DaskCollection) -> DaskCollection:
        """Return P(the label is wrong | x, the label), lazily.

        Parameters
        ----------
        X, y
            The collections of the fit, or other samples with noisy labels.

        Returns
        -------
        dask array or series
            One value per row.
        """
        return self._label_values(X, y, "mislabel_proba", FLOAT_META)

    @documented_like(mislabel_proba)
    def suggested_label(self, X: DaskCollection, y: DaskCollection) -> DaskCollection:
        """Return the most probable true label given x and the label, lazily.

        Returns
        -------
        dask array or series
            One label per row.
        """
        return self._label_values(X, y, "suggested_label", self._model.classes[:1])

    def _label_values(
        self, X: DaskCollection, y: DaskCollection, name: str, like: Array
    ) -> DaskCollection:
        blocks = self._checked(DaskBlocks(X, y))
        return blocks.row_values(block_labels, (self._model, name), name, like)

    def issues(
        self,
        X: DaskCollection,
        y: DaskCollection,
        *,
        precision: float | None = None,
        n: int | None = None,
        threshold: float | None = None,
    ) -> Suspects:
        """Return the samples with the most suspicious labels, in descending order.

        Parameters
        ----------
        X, y
            The collections of the fit, or other samples with noisy labels. There is one pass over
            them, and a second one unless `n` is given. Every block sends at most as many samples
            as are returned.
        precision, n, threshold
            As for :meth:`~unflip.audit.LabelAudit.issues`.

        Returns
        -------
        Suspects
            Positions, probabilities and suggested labels.
        """
        return self._issues(DaskBlocks(X, y, progress=self.progress), precision, n, threshold)


def _in_blocks_of(
    X: DaskCollection, values: DaskCollection | None, name: str
) -> DaskCollection | None:
    """Return `values` in the blocks of X, or raise an error if they do not match."""
    if values is None:
        return None
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


def _delayed(collection: DaskCollection) -> list[Delayed]:
    """Return the blocks of a collection, delayed."""
    if isinstance(collection, dask.array.Array):
        return list(collection.to_delayed().ravel())
    # read only the columns that are needed; full optimisation would also merge partitions of few
    # columns, and the blocks of labels would no longer match those of the rows
    return list(collection.simplify().to_delayed(optimize_graph=False))


def _sum_parts(parts: list[T]) -> T:
    return reduce(add, parts)


def _of_rows(
    rows: "DataFrame", function: Callable[..., Array], shared: Any, name: str | Array
) -> "Series | DataFrame":
    """Return a function of a block without labels, with the index of its rows."""
    return _beside(function(rows, None, None, shared), rows, name)


def _beside(values: Array, rows: "DataFrame", name: str | Array) -> "Series | DataFrame":
    """Return a series of the values, or a dataframe of their columns, with the index of `rows`."""
    from pandas import DataFrame, Series

    if values.ndim == 1:
        return Series(values, index=rows.index, name=name)
    return DataFrame(values, index=rows.index, columns=name)


def _client() -> distributed.Client | None:
    """Return the client of the current cluster, or None."""
    try:
        return distributed.get_client()
    except ValueError:
        return None
