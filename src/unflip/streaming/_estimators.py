"""Reweighting and audit of data that do not fit in memory."""

from contextlib import ExitStack
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any, Self

import numpy as np

from unflip._blocks import (
    MAX_ROWS,
    BlockwiseEstimator,
    Suspects,
    block_mislabel_histogram,
    block_suspects,
    block_weights,
    learns_by_blocks,
    most_suspect,
    seeded_classifier,
)
from unflip._diagnostics import judge_weights, raise_or_warn
from unflip._estimators import optional_generator, stage_generator
from unflip._files import check_no_input, whole_file
from unflip._typing import Floats
from unflip._validation import check_count, check_precision_or_n, plain_labels
from unflip.streaming._arrow import arrow_modules
from unflip.streaming._batches import Batches, RepeatedBatches, check_batches, single_pass


class StreamingReweighting(BlockwiseEstimator):
    r"""beta = P(true=y | x) / P(noisy=y | x) of rows that are read in batches.

    Does what :class:`~unflip.ImportanceReweightingClassifier` does in memory: P(noisy y | x) and
    the rates are fitted to rows drawn from all batches (the same rows that a channel draws in
    memory), and every sum over rows is taken batch by batch.

    Parameters
    ----------
    estimator : classifier, default=None
        The classifier to train: `partial_fit` must take `sample_weight`. None: only the weights
        are computed.
    posterior, noise_rates
        As for :class:`~unflip.ImportanceReweightingClassifier`.
    n_epochs : int, default=1
        Number of passes to train `estimator`.
    max_rows : int, default=20_000
        Number of rows to fit P(noisy y | x) and the rates to. A channel uses its own `max_rows`;
        "kliep", "ulsif" and "rulsif" use all rows.
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
    >>> import numpy as np
    >>> from sklearn.linear_model import SGDClassifier
    >>> from unflip import NoiseRates, flip_labels
    >>> from unflip.streaming import ArrayBatches, StreamingReweighting
    >>> X = np.random.default_rng(0).normal(size=(30_000, 2))
    >>> y = X[:, 0] > 0.5
    >>> y_noisy = flip_labels(y, NoiseRates(positive=0.4, negative=0.1), random_state=0)
    >>> data = ArrayBatches(X, y_noisy, batch_rows=5000)
    >>> model = StreamingReweighting(SGDClassifier(loss="log_loss"), random_state=0).fit(data)
    >>> print(model.noise_rates_)
    NoiseRates(positive=0.398, negative=0.102)
    >>> model.estimator_.score(X, y)
    0.9...
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
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.estimator = estimator
        self.posterior = posterior
        self.noise_rates = noise_rates
        self.n_epochs = n_epochs
        self.max_rows = max_rows
        self.random_state = random_state

    def fit(self, data: Batches) -> Self:
        """Estimate the posterior, the rates and the sums, then train the classifier.

        Parameters
        ----------
        data : Batches
            The noisy data. There is one pass over the labels, two over the rows (about ten for
            "ulsif" and twenty for "kliep"), and `n_epochs` for the classifier.
        """
        data = RepeatedBatches(data)
        check_count(self.n_epochs, "n_epochs", least=1)
        random_state = optional_generator(self.random_state)
        estimator = seeded_classifier(self.estimator, random_state)
        if not (estimator is None or learns_by_blocks(estimator)):
            raise TypeError(
                f"{type(estimator).__name__} has no partial_fit that takes sample_weight, so it "
                "cannot learn batch by batch. Use one that has, such as SGDClassifier; or use None "
                "and take each batch's weights from `sample_weight`."
            )
        found = self._fit_blocks(data, random_state)
        classes = found.model.classes
        diagnostics = raise_or_warn(
            [*judge_weights(found.totals, classes, found.model.rates), *found.diagnostics]
        )
        if estimator is not None:
            for _ in range(self.n_epochs):
                for X, y, sample_weight in data:
                    weights = block_weights(X, y, sample_weight, found.model)
                    estimator.partial_fit(
                        X, plain_labels(y), classes=classes, sample_weight=weights
                    )
        self._take(found, diagnostics)
        self.estimator_ = estimator
        return self

    def sample_weight(self, X: Any, y: Any, sample_weight: Any = None) -> Floats:
        """Return beta times `sample_weight` of a batch.

        Parameters
        ----------
        X, y, sample_weight
            A batch of the data of the fit, or other rows with noisy labels.
        """
        return block_weights(X, y, sample_weight, self._model)


class StreamingAudit(BlockwiseEstimator):
    """P(true != y | x, noisy=y) of rows that are read in batches.

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
    >>> import numpy as np
    >>> from unflip import NoiseRates, flip_labels
    >>> from unflip.streaming import ArrayBatches, StreamingAudit
    >>> X = np.random.default_rng(0).normal(size=(30_000, 2))
    >>> y = X[:, 0] > 0.5
    >>> y_noisy = flip_labels(y, NoiseRates(positive=0.3, negative=0.1), random_state=0)
    >>> data = ArrayBatches(X, y_noisy, batch_rows=5000)
    >>> suspects = StreamingAudit(random_state=0).fit(data).issues(data, n=100)
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
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.posterior = posterior
        self.noise_rates = noise_rates
        self.max_rows = max_rows
        self.random_state = random_state

    def fit(self, data: Batches) -> Self:
        """Estimate the posterior, the rates and the expected number of wrong labels.

        Parameters
        ----------
        data : Batches
            The noisy data; there are as many passes as in :meth:`StreamingReweighting.fit`.
        """
        found = self._fit_blocks(RepeatedBatches(data), stage_generator(self.random_state))
        self._take(found, raise_or_warn(found.diagnostics))
        return self

    def issues(
        self, data: Batches, *, precision: float | None = None, n: int | None = None
    ) -> Suspects:
        """Return the rows whose labels to look at, the most suspicious first.

        Parameters
        ----------
        data : Batches
            The data of the fit, or other rows with noisy labels. There is one pass over them, and
            one more if `n` is not given. Memory is that of a batch and of the rows returned.
        precision, n
            As for :meth:`~unflip.audit.LabelAudit.issues`.
        """
        check_batches(data)
        check_precision_or_n(precision, n)
        model = self._model
        if n is None:
            parts = (block_mislabel_histogram(*batch, model) for batch in single_pass(data))
            n = reduce(add, parts).n_issues(precision)
        return most_suspect((block_suspects(*batch, (model, n)) for batch in single_pass(data)), n)

    def write(self, data: Batches, path: str | Path) -> Path:
        """Write every row's P(mislabelled), suggested label and label to a Parquet file.

        The columns are `mislabel_proba`, `suggested_label` and `label`, in the order of the rows.

        Parameters
        ----------
        data : Batches
            The data of the fit, or other rows with noisy labels.
        path : str or Path
            The file. An existing file is replaced once everything is written. It must not be a
            file that the data are read from.
        """
        check_batches(data)
        arrow, parquet = arrow_modules()
        model, target = self._model, Path(path)
        check_no_input(target, data.files)
        with whole_file(target) as temporary, ExitStack() as stack:
            writer = None
            for X, y, _ in single_pass(data):
                rows = model.label_posterior(X, y)
                table = arrow.table(
                    {
                        "mislabel_proba": rows.mislabel_proba,
                        "suggested_label": rows.suggested_label,
                        "label": rows.labels,
                    }
                )
                if writer is None:
                    writer = stack.enter_context(parquet.ParquetWriter(temporary, table.schema))
                writer.write_table(table)
        return target
