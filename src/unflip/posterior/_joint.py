"""The contract of a posterior that estimates the noise together with P(observed y | x)."""

from abc import abstractmethod
from typing import Any

from sklearn.utils.validation import check_is_fitted

from unflip._utils.typing import Floats, Rows
from unflip.diagnostics import channel_range
from unflip.noise import Noise, RatesInterval
from unflip.posterior._base import BasePosterior


class JointPosterior(BasePosterior):
    """P(observed y | x) = sum_k P(true=k | x) T[k, y], estimated together with T.

    Callers ask for this class where they need the rates and the posterior of one fit. Besides what
    is below, a fit has `rates_`, and the unfitted object has the parameters `known`, `estimate`,
    `features`, `max_rows` and `random_state`.
    """

    estimates_rates = True

    known: Any
    estimate: str
    features: Any
    max_rows: int
    random_state: Any
    rates_: Any
    features_: Any

    @abstractmethod
    def predict_clean_proba(self, X: Rows) -> Floats:
        """Return P(true y | x), one column per class in the order of `classes_`."""

    @abstractmethod
    def mean_rates(self) -> Noise:
        """Return the mean of the rates' distribution, which never rules noise out."""

    @abstractmethod
    def interval(self, level: float = 0.95) -> RatesInterval:
        """Return the shortest range that holds each rate with probability `level`."""

    @property
    @abstractmethod
    def check_(self) -> Any:
        """The goodness of fit; None where it was not tested."""

    @property
    @abstractmethod
    def noise_test_(self) -> Any:
        """The test of the hypothesis that no label is flipped; None where there is none."""

    @property
    @abstractmethod
    def symmetry_test_(self) -> Any:
        """The test of the hypothesis that all classes are flipped equally often; or None."""

    @property
    def interval_(self) -> RatesInterval:
        """Bounds of every rate that hold it with probability 0.95."""
        return self.interval()

    @property
    def label_error_range_(self) -> tuple[float, float]:
        """(low, high) of the label error rate, if errors may depend on the sample.

        It rests on `check_`, and raises AttributeError where there is none.
        """
        check_is_fitted(self)
        check, at_random = self.check_, self.interval_.label_error_rate
        if check is None or at_random is None:
            raise AttributeError(
                "label_error_range_ rests on the goodness of fit, which is tested if "
                f"features='auto'; here features={self.features!r}."
            )
        # features beyond the columns may follow errors, too, such as those of a rule
        follows = self.features_ != "linear" or check.verdict != "not_rejected"
        return channel_range(
            check.disagreement,
            check.n_rows,
            at_random,
            simple_disagreement=check.simple_disagreement if follows else None,
            n_classes=self.classes_.size,
            by_a_rule=check.verdict == "rule" and self.classes_.size > 2,
        )
