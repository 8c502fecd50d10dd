"""Reweighting and audit of data that do not fit in memory."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from sklearn.base import BaseEstimator
from sklearn.utils.metaestimators import available_if

from unflip._blocks import (
    BlockwiseAudit,
    BlockwiseReweighting,
    LabelModel,
    Suspects,
    block_weights,
    classifier_has,
    learns_by_blocks,
)
from unflip._utils.docs import documented_like
from unflip._utils.files import check_no_input, whole_file
from unflip._utils.typing import Array, Floats, Rows, Vector
from unflip.checked import CheckedLabels
from unflip.streaming._arrow import arrow_modules
from unflip.streaming._batches import Batches, RepeatedBatches, check_batches
from unflip.weights import LabelPosterior


class StreamingReweighting(BlockwiseReweighting):
    r"""beta = P(true=y | x) / P(noisy=y | x) of samples that are read in batches.

    Streaming counterpart of :class:`~unflip.ImportanceReweightingClassifier`: P(noisy y | x) and
    the rates are fitted to samples drawn from all batches (the same ones that the noise model draws
    in memory), and sums over all samples are computed batch by batch.

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
        Number of samples to fit P(noisy y | x) and the rates to. The noise model uses its own
        `max_rows`; "kliep", "ulsif" and "rulsif" use all samples.
    progress : bool, default=False
        Whether to show the progress of every pass of `fit` on stderr.
    random_state : int, RandomState instance or None, default=None
        Seed of the draw, and of every part that has no seed.

    Attributes
    ----------
    noise_rates_, posterior_, rate_estimator_, estimator_, classes_, diagnostics_
        As of :class:`~unflip.ImportanceReweightingClassifier`; `estimator_` is None if none was
        given.
    effective_sample_size_, clipped_share_ : float
        The same, over all samples.
    n_errors_ : float
        Expected number of label errors.
    checked_ : BlockErrorModel or None
        The error model fitted to checked samples: `error_rate`, an
        :class:`~unflip.checked.Estimate`, and `hypotheses`, the weight of each noise hypothesis;
        None without checked samples.
    n_features_in_, feature_names_in_
        The columns of the fit, if the batches name them. Other columns, or another order, then
        raise an error.

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
    NoiseRates(positive=0.40..., negative=0.10...)
    >>> float(np.mean(np.concatenate(list(model.predict(data))) == y))
    0.9...
    """

    def fit(self, data: Batches, *, checked: CheckedLabels | None = None) -> Self:
        """Estimate the posterior, the rates and the sums, then train the classifier.

        Parameters
        ----------
        data : Batches
            The noisy data. There is one pass over the labels, two over the samples (about ten for
            "ulsif" and twenty for "kliep"), and `n_epochs` for the classifier.
        checked : CheckedLabels, default=None
            True labels of some samples, by their positions across all batches. A model of the
            errors is fitted to those that were drawn with known probabilities, whatever the noise;
            rates, P(mislabelled) and weights follow from it, and `partial_fit` trains by soft
            labels. There are three more passes.

        Returns
        -------
        StreamingReweighting
            Itself, fitted.
        """
        return self._fit(RepeatedBatches(data, progress=self.progress), checked)

    def _check_classifier(self, estimator: BaseEstimator) -> None:
        if not learns_by_blocks(estimator):
            raise TypeError(
                f"{type(estimator).__name__} has no partial_fit that takes sample_weight, so it "
                "cannot learn batch by batch. Use one that has, such as SGDClassifier; or use None "
                "and get the weights of each batch from `sample_weight`."
            )

    def sample_weight(self, X: Rows, y: Vector, sample_weight: Vector | None = None) -> Floats:
        """Return beta times `sample_weight` of a batch.

        Parameters
        ----------
        X, y, sample_weight
            A batch of the data of the fit, or other samples with noisy labels. The columns must be
            those of the fit, in the same order; for arrays without names this is not checked.

        Returns
        -------
        ndarray of shape (n_rows,)
            Weights.
        """
        return block_weights(X, y, sample_weight, self._model)

    @available_if(classifier_has("predict"))
    def predict(self, data: Batches) -> Iterator[Array]:
        """Yield the most probable true label of every sample, an array for each batch.

        One batch is in memory at a time; ``np.concatenate(list(model.predict(data)))`` is one array
        of all predictions.

        Parameters
        ----------
        data : Batches
            Samples with the columns of the fit, in the same order. Labels are not needed.

        Yields
        ------
        ndarray
            Labels, batch by batch.
        """
        predictions: Iterator[Array] = self._predictions(check_batches(data), "predict")
        return predictions

    @available_if(classifier_has("predict_proba"))
    @documented_like(predict)
    def predict_proba(self, data: Batches) -> Iterator[Floats]:
        """Yield P(true y | x), an array for each batch, a column per class as in `classes_`.

        Yields
        ------
        ndarray
            Probabilities, batch by batch.
        """
        probabilities: Iterator[Floats] = self._predictions(check_batches(data), "predict_proba")
        return probabilities


class StreamingAudit(BlockwiseAudit):
    """P(true != y | x, noisy=y) of samples that are read in batches.

    Streaming counterpart of :class:`~unflip.audit.LabelAudit`, without cross-fitting:
    P(noisy y | x) is fitted to drawn samples, or is a density ratio with few parameters that is
    fitted to all samples.

    Parameters
    ----------
    posterior, noise_rates
        As for :class:`~unflip.audit.LabelAudit`.
    max_rows, progress, random_state
        As for :class:`StreamingReweighting`.

    Attributes
    ----------
    noise_rates_, rate_estimator_, classes_, diagnostics_, n_errors_
        As of :class:`~unflip.audit.LabelAudit`.
    checked_
        As of :class:`StreamingReweighting`.
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

    @documented_like(StreamingReweighting.fit)
    def fit(self, data: Batches, *, checked: CheckedLabels | None = None) -> Self:
        """Estimate the posterior, the rates and the expected number of label errors.

        Returns
        -------
        StreamingAudit
            Itself, fitted.
        """
        return self._fit(RepeatedBatches(data, progress=self.progress), checked)

    def issues(
        self,
        data: Batches,
        *,
        precision: float | None = None,
        n: int | None = None,
        threshold: float | None = None,
    ) -> Suspects:
        """Return the samples with the most suspicious labels, in descending order.

        Parameters
        ----------
        data : Batches
            The data of the fit, or other samples with noisy labels. There is one pass over them,
            and a second one unless `n` is given. One batch and the result are in memory.
        precision, n, threshold
            As for :meth:`~unflip.audit.LabelAudit.issues`.

        Returns
        -------
        Suspects
            Positions, probabilities and suggested labels.
        """
        return self._issues(check_batches(data), precision, n, threshold)

    def write(self, data: Batches, path: str | Path) -> Path:
        """Write P(mislabelled), suggested label and label of every sample to a Parquet file.

        The columns are `mislabel_proba`, `suggested_label` and `label`, in the order of the data.

        Parameters
        ----------
        data : Batches
            The data of the fit, or other samples with noisy labels.
        path : str or Path
            The file. An existing file is replaced once everything is written. It must not be an
            input of `data`.

        Returns
        -------
        Path
            The file.
        """
        check_batches(data)
        arrow, parquet = arrow_modules()
        model, target = self._model, Path(path)
        check_no_input(target, data.files)
        with whole_file(target) as temporary, ExitStack() as stack:
            writer = None
            for rows in self._checked(data).map(_label_posterior, model):
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


def _label_posterior(
    X: Rows, y: Vector, sample_weight: Vector | None, model: LabelModel
) -> LabelPosterior:
    return model.label_posterior(X, y)
