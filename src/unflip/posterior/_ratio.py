"""P(observed y | x) as the noisy prior times a density ratio."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from unflip._utils.compat import validate_data
from unflip._utils.docs import documented_like
from unflip._utils.samples import Samples, TwoSamples
from unflip._utils.threads import one_blas_thread
from unflip._utils.typing import Array, Rows
from unflip._utils.validation import check_class_weights, new_rows
from unflip.density_ratio import BaseDensityRatio, as_density_ratio
from unflip.posterior._base import BasePosterior, check_rows


class DensityRatioPosterior(BasePosterior):
    r"""P(observed y | x) = P(observed y) p(x | observed y) / p(x), one density ratio per class.

    Parameters
    ----------
    ratio : density-ratio estimator, default=None
        One of :mod:`unflip.density_ratio`, used for every class: numerator the class's samples,
        denominator all samples. None: :class:`~unflip.density_ratio.KLIEP` with its defaults.
    normalize : bool, default=False
        Whether the probabilities of a sample are scaled to sum to one. The ratios are estimated
        separately, so by themselves they need not; the paper leaves them so. None exceeds one
        either way.

    Attributes
    ----------
    ratios_ : list of density-ratio estimators
        The fitted ratios, in the order of `classes_`.
    prior_ : ndarray of shape (n_classes,)
        The noisy class shares.
    classes_ : ndarray of shape (n_classes,)
        The labels.

    Notes
    -----
    Features are taken as they are, as density ratios take them: standardise the columns first, for
    example by `make_pipeline(StandardScaler(), ImportanceReweightingClassifier(...))`.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from unflip.density_ratio import ULSIF
    >>> from unflip.posterior import DensityRatioPosterior
    >>> X, y = make_moons(noise=0.2, random_state=0)
    >>> posterior = DensityRatioPosterior(ULSIF(random_state=0), normalize=True).fit(X, y)
    >>> posterior.predict_proba(X[:2]).round(1)
    array([[0.9, 0.1],
           [0. , 1. ]])
    """

    ratios_: list[Any]
    prior_: Array

    def __init__(self, ratio: BaseDensityRatio | None = None, *, normalize: bool = False) -> None:
        self.ratio = ratio
        self.normalize = normalize

    @documented_like(BasePosterior.fit)
    @one_blas_thread()
    def fit(self, X: Rows, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit one density ratio per noisy class."""
        rows, classes, codes, weight = check_rows(self, X, y, sample_weight)
        samples = [TwoSamples.within(rows, codes == k, weight) for k in range(classes.size)]
        return self._fit_samples(samples, classes, X, rows)

    @property
    def by_sums(self) -> bool:
        return as_density_ratio(self.ratio)._by_sums

    def _fit_samples(self, samples: Sequence[Samples], classes: Array, X: Rows, rows: Rows) -> Self:
        """Fit every class against all samples; `rows` are some of `X` as numbers."""
        mass = np.array([sample.total_num for sample in samples])
        check_class_weights(mass, np.arange(classes.size), classes)
        ratios = [as_density_ratio(self.ratio)._fit_samples(sample, rows) for sample in samples]
        validate_data(self, X, skip_check_array=True)
        self.classes_, self.ratios_, self.prior_ = classes, ratios, mass / mass.sum()
        return self

    @one_blas_thread()
    def predict_proba(self, X: Rows) -> Array:
        """Return P(observed y | x), one column per class in the order of `classes_`."""
        check_is_fitted(self)
        X = new_rows(self, X)
        ratios = np.column_stack([ratio.predict(X) for ratio in self.ratios_]).astype(float)
        joint = self.prior_ * ratios
        if not self.normalize:
            return np.minimum(joint, 1.0)
        total = joint.sum(axis=1, keepdims=True)
        # far from all kernels, only the prior is known
        return np.where(total > 0, joint / np.where(total > 0, total, 1), self.prior_)
