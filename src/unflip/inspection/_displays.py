"""Displays with scikit-learn's API: `from_estimator` computes and draws, `plot` draws again.

Series differ by colour (the colour-blind safe palette of Okabe and Ito) and by line style or hatch.
"""

from collections.abc import Callable
from inspect import signature
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unflip._utils.validation import plain_labels
from unflip.inspection._compute import (
    MislabelCalibration,
    PosteriorHistogram,
    RateCurve,
    WeightHistogram,
    check_has,
    mislabel_calibration,
    posterior_histogram,
    rate_sensitivity,
    weight_histogram,
)
from unflip.noise import has_names

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""The palette of every picture, of Okabe and Ito: safe for colour-blind readers."""

LINES = ("-", "--", "-.", ":")
HATCHES = ("//", "\\\\", "..", "xx")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")


class Display:
    """What all displays share: the numbers are computed once and can be drawn again."""

    ax_: Any
    figure_: Any
    # the function that computes what is drawn
    _compute: ClassVar[Callable[..., Any]]

    @classmethod
    def from_predictions(cls, *data: Any, ax: Any = None, **kw: Any) -> Self:
        """Compute the numbers and draw them.

        Parameters
        ----------
        *data
            Positional arguments of the function that computes the numbers:
            :func:`posterior_histogram`, :func:`weight_histogram` or :func:`mislabel_calibration`.
        ax : matplotlib Axes, default=None
            Axes to draw on; None: a new figure.
        **kw
            Keyword arguments of that function; all others are passed to matplotlib.

        Returns
        -------
        display
            With what was drawn.
        """
        return cls(cls._computed(data, kw)).plot(ax, **kw)  # type: ignore[call-arg]

    @classmethod
    def _computed(cls, data: tuple[Any, ...], kw: dict[str, Any]) -> Any:
        """Return the numbers; their options are taken out of `kw`."""
        _pyplot()  # raises an error before anything is computed
        names = signature(cls._compute).parameters
        options = {name: kw.pop(name) for name in list(kw) if name in names}
        return cls._compute(*data, **options)

    def plot(self, ax: Any = None, **kw: Any) -> Self:
        """Draw the numbers.

        Parameters
        ----------
        ax : matplotlib Axes, or three for a :class:`SensitivityDisplay`, default=None
            Axes to draw on; None: a new figure.
        **kw
            Passed to `ax.bar` (histograms) or `ax.plot` (curves).

        Returns
        -------
        display
            Itself.
        """
        self.ax_, self.figure_ = _axes(ax, height=self._height())
        self._draw(kw)
        return self

    def _height(self) -> float:
        """Return the height of a new figure, in inches."""
        return 4.8

    def _draw(self, kw: dict[str, Any]) -> None:
        """Draw on `ax_`."""
        raise NotImplementedError


class NoiseRatesDisplay(Display):
    """Histogram of P(noisy=k | x) by observed label, and its values at anchor points.

    At an anchor point, where x surely belongs to class i, P(noisy=k | x) = T[i, k]: for two classes
    rho_neg and 1 - rho_pos. With correct rates the histogram ends or accumulates there. Bars well
    beyond these values mean that a rate is too high or the posterior wrong; a gap between them and
    the bars means that a rate is too low or that the classes overlap everywhere.

    Parameters
    ----------
    histogram : PosteriorHistogram
        The numbers to draw, from :func:`posterior_histogram`.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes.
    figure_ : matplotlib Figure
        The figure.
    bars_ : list of two BarContainers
        Samples with other labels, and samples labelled k on top of them.
    lines_ : list of Line2D
        The values at anchor points, one per class.
    spans_ : list of artists
        Their intervals, if given.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from unflip import ImportanceReweightingClassifier
    >>> from unflip.inspection import NoiseRatesDisplay
    >>> X, y = make_classification(500, flip_y=0.3, class_sep=2.0, random_state=0)
    >>> clf = ImportanceReweightingClassifier(random_state=0).fit(X, y)
    >>> display = NoiseRatesDisplay.from_estimator(clf, X, y)
    >>> display.figure_.savefig("rates.png")  # doctest: +SKIP
    """

    _compute = staticmethod(posterior_histogram)

    def __init__(self, histogram: PosteriorHistogram) -> None:
        self.histogram = histogram

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike, *, ax: Any = None, **kw: Any
    ) -> Self:
        """Draw the posterior of a fitted classifier at samples with noisy labels.

        Parameters
        ----------
        estimator : ImportanceReweightingClassifier
            A fitted classifier.
        X, y : array-like
            Samples and noisy labels: those of the fit, or preferably held-out ones.
        ax : matplotlib Axes, default=None
            Axes to draw on; None: a new figure.
        **kw
            `interval`, `pos_label` and `bins`, as for :func:`posterior_histogram`; all others are
            passed to `ax.bar`.

        Returns
        -------
        NoiseRatesDisplay
            With what was drawn.
        """
        check_has(estimator, "preprocessing_")
        encoder = estimator.preprocessing_
        rows = X if encoder is None else encoder.transform(X)
        return cls.from_predictions(
            estimator.posterior_.predict_proba(rows),
            y,
            estimator.noise_rates_,
            classes=estimator.classes_,
            ax=ax,
            **kw,
        )

    def _draw(self, kw: dict[str, Any]) -> None:
        """Draw the histogram, the values at anchor points and their intervals."""
        shown = self.histogram
        label, two = shown.pos_label, shown.classes.size == 2
        k = shown.classes.tolist().index(label)
        other = shown.classes.tolist()[1 - k] if two else f"not {label}"
        self._draw_bars([f"labelled {other}", f"labelled {label}"], kw)
        self.lines_, self.spans_ = [], []
        for i, level in enumerate(shown.anchor_values.tolist()):
            own = i == k
            self.lines_.append(
                self.ax_.axvline(
                    level,
                    color="black",
                    linestyle="--" if own else ":",
                    linewidth=2 if own or two else 1.2,
                    label=self._name(i, k, level),
                )
            )
            if shown.interval is not None:
                low, high = shown.interval[:, i]
                self.spans_.append(
                    self.ax_.axvspan(low, high, color="black", alpha=0.2, linewidth=0, zorder=1.5)
                )
        named = [*self.bars_, *self.lines_]
        if self.spans_:
            self.spans_[0].set_label("interval")
            named.append(self.spans_[0])
        self.ax_.set(xlim=(0, 1), xlabel=f"P(observed = {label} | x)", ylabel="samples")
        handles = [artist for artist in named if not artist.get_label().startswith("_")]
        # above the axes, so that it hides nothing
        where = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "ncols": 2}
        self.ax_.legend(handles=handles, frameon=False, **where)

    def _draw_bars(self, labels: list[str], kw: dict[str, Any]) -> None:
        shown = self.histogram
        below = np.zeros(shown.counts.shape[1])
        self.bars_ = []
        for counts, name, colour, hatch in zip(
            shown.counts, labels, COLOURS[:2], HATCHES[:2], strict=True
        ):
            style = {"color": colour, "edgecolor": "white", "hatch": hatch, "label": name} | kw
            width = np.diff(shown.edges)
            bars = self.ax_.bar(
                shown.edges[:-1], counts, width, bottom=below, align="edge", **style
            )
            self.bars_.append(bars)
            below = below + counts

    def _name(self, i: int, k: int, level: float) -> str | None:
        classes = self.histogram.classes.tolist()
        if len(classes) == 2 and k == 1 and not has_names(self.histogram.classes):
            return f"{('rho_neg', '1 - rho_pos')[i]} = {level:.3f}"
        if i == k or len(classes) <= 4:
            return f"certainly {classes[i]}: {level:.3f}"
        # one legend entry for all other classes
        first = 0 if k else 1
        return "certainly another class" if i == first else None


class WeightsDisplay(Display):
    """Distribution of the weights beta by observed label, with the bounds 1 / (1 - rho).

    A label with weight 0 is surely wrong. A label whose weight is at the bound 1 / (1 - rho) is
    surely right, and stands for those flipped away. The title gives the effective sample size.

    Parameters
    ----------
    histogram : WeightHistogram
        The numbers to draw, from :func:`weight_histogram`.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes.
    figure_ : matplotlib Figure
        The figure.
    bars_ : list of BarContainer
        One histogram per class, each on its own baseline, all on one scale.
    lines_ : list of Line2D
        The bounds, one per class.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from unflip import ImportanceReweightingClassifier
    >>> from unflip.inspection import WeightsDisplay
    >>> X, y = make_classification(500, flip_y=0.3, class_sep=2.0, random_state=0)
    >>> clf = ImportanceReweightingClassifier(random_state=0).fit(X, y)
    >>> display = WeightsDisplay.from_estimator(clf, y)
    >>> display.figure_.savefig("weights.png")  # doctest: +SKIP
    """

    _compute = staticmethod(weight_histogram)

    def __init__(self, histogram: WeightHistogram) -> None:
        self.histogram = histogram

    @classmethod
    def from_estimator(cls, estimator: Any, y: ArrayLike, *, ax: Any = None, **kw: Any) -> Self:
        """Draw the weights of a fitted classifier.

        Parameters
        ----------
        estimator : ImportanceReweightingClassifier
            A fitted classifier.
        y : array-like of shape (n_samples,)
            The noisy labels of the fit.
        ax : matplotlib Axes, default=None
            Axes to draw on; None: a new figure.
        **kw
            `bins` and `sample_weight` (as given to `fit`), as for :func:`weight_histogram`; all
            others are passed to `ax.bar`.

        Returns
        -------
        WeightsDisplay
            With what was drawn.
        """
        check_has(estimator, "sample_weight_")
        weights, rates = estimator.sample_weight_, estimator.noise_rates_
        return cls.from_predictions(weights, y, rates, classes=estimator.classes_, ax=ax, **kw)

    def _draw(self, kw: dict[str, Any]) -> None:
        """Draw one histogram per class, and its bound."""
        shown = self.histogram
        tallest = shown.shares.max()
        names = []
        self.bars_, self.lines_ = [], []
        for k, label in enumerate(shown.classes.tolist()):
            colour, hatch = COLOURS[k % len(COLOURS)], HATCHES[k % len(HATCHES)]
            style = {"color": colour, "edgecolor": "white", "hatch": hatch} | kw
            height = 0.75 * shown.shares[k] / tallest
            left, width = shown.edges[k, :-1], np.diff(shown.edges[k])
            self.bars_.append(self.ax_.bar(left, height, width, bottom=k, align="edge", **style))
            self.ax_.axhline(k, color="black", linewidth=0.8)
            if np.isfinite(shown.bounds[k]):
                bound = [shown.bounds[k]] * 2
                style = {"color": "black", "linestyle": "--", "linewidth": 2}
                self.lines_ += self.ax_.plot(bound, [k, k + 0.97], **style)
                text = f"1 / (1 - rho) = {shown.bounds[k]:.2f} "
                self.ax_.text(
                    bound[0], k + 0.97, text, horizontalalignment="right", verticalalignment="top"
                )
            shares = (
                f"{shown.label_share[k]:.0%} of labels",
                f"{shown.weight_share[k]:.0%} of weight",
            )
            names.append("\n".join([f"labelled {label}", *shares]))
        size, n = shown.effective_sample_size, shown.n_samples
        self.ax_.set(
            xlim=(0, 1.03 * shown.edges.max()),
            ylim=(0, len(names)),
            xlabel="weight beta = P(true=y | x) / P(noisy=y | x)",
            title=f"effective sample size {size:.0f} of {n} rows ({size / n:.0%})",
        )
        self.ax_.set_yticks(np.arange(len(names)) + 0.4, names)
        self.ax_.tick_params(axis="y", length=0)

    def _height(self) -> float:
        return max(4.8, 0.9 * self.histogram.classes.size)


class MislabelCalibrationDisplay(Display):
    """Reliability diagram: observed against predicted shares of wrong labels.

    Points on the diagonal are calibrated: above it more labels are wrong than predicted, below it
    fewer. The bars are the share of samples in each bin.

    Parameters
    ----------
    calibration : MislabelCalibration
        The numbers to draw, from :func:`mislabel_calibration`.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes.
    figure_ : matplotlib Figure
        The figure.
    line_ : Line2D
        The label error rate against the mean P(mislabelled).
    bars_ : BarContainer
        The share of samples in each bin.

    Examples
    --------
    >>> from unflip.inspection import MislabelCalibrationDisplay
    >>> wrong, proba = [0, 0, 1, 1], [0.1, 0.2, 0.7, 0.9]
    >>> display = MislabelCalibrationDisplay.from_predictions(wrong, proba)
    >>> display.figure_.savefig("calibration.png")  # doctest: +SKIP
    """

    _compute = staticmethod(mislabel_calibration)

    def __init__(self, calibration: MislabelCalibration) -> None:
        self.calibration = calibration

    @classmethod
    def from_estimator(
        cls, estimator: Any, y: ArrayLike, y_true: ArrayLike, *, ax: Any = None, **kw: Any
    ) -> Self:
        """Draw the calibration of a fitted estimator's `mislabel_proba_`.

        Parameters
        ----------
        estimator : ImportanceReweightingClassifier or LabelAudit
            A fitted estimator.
        y : array-like of shape (n_samples,)
            The noisy labels of the fit.
        y_true : array-like of shape (n_samples,)
            The true labels.
        ax : matplotlib Axes, default=None
            Axes to draw on; None: a new figure.
        **kw
            `n_bins` and `strategy`, as for :func:`mislabel_calibration`; all others are passed to
            `ax.plot`.

        Returns
        -------
        MislabelCalibrationDisplay
            With what was drawn.
        """
        check_has(estimator, "mislabel_proba_")
        given, truth = plain_labels(y), plain_labels(y_true, "y_true")
        if given.shape != truth.shape:
            raise ValueError(f"y has shape {given.shape} and y_true {truth.shape}.")
        return cls.from_predictions(given != truth, estimator.mislabel_proba_, ax=ax, **kw)

    def _draw(self, kw: dict[str, Any]) -> None:
        """Draw the diagonal, the observed shares with their 95 % intervals, and the bins."""
        shown = self.calibration
        self.bars_ = self.ax_.bar(
            shown.edges[:, 0],
            shown.counts / shown.counts.sum(),
            np.diff(shown.edges, axis=1)[:, 0],
            align="edge",
            color="#DDDDDD",
            edgecolor="white",
            label="share of rows",
        )
        self.ax_.plot([0, 1], [0, 1], color="black", linestyle=":", label="calibrated")
        style = {"color": COLOURS[0], "marker": "o", "linewidth": 2, "label": "wrong labels"} | kw
        self.ax_.vlines(shown.predicted, *shown.interval, color=style["color"], linewidth=1.2)
        (self.line_,) = self.ax_.plot(shown.predicted, shown.observed, **style)
        self.ax_.set(
            xlim=(0, 1),
            ylim=(0, 1.02),
            xlabel="mean P(mislabelled)",
            ylabel="share",
            title=f"expected calibration error {shown.calibration_error:.3f}",
        )
        self.ax_.legend(loc="upper left", frameon=False)


class SensitivityDisplay(Display):
    """Score, effective sample size and mean weight as one rate is varied.

    A flat score means that the rates need not be precise. With a correct posterior, the mean weight
    is 1 for all rates up to the true ones, and differs from 1 if a rate is too high.

    Parameters
    ----------
    curves : list of RateCurve
        The numbers to draw, from :func:`rate_sensitivity`.
    score_name : str, default="score"
        Axis label of the score.

    Attributes
    ----------
    ax_ : ndarray of three matplotlib Axes
        Score, effective sample size and mean weight.
    figure_ : matplotlib Figure
        The figure.
    lines_ : list of lists of Line2D
        The curves of each of the axes, in order.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from unflip import ImportanceReweightingClassifier, NoiseRates
    >>> from unflip.inspection import SensitivityDisplay
    >>> X, y = make_classification(300, flip_y=0.2, random_state=0)
    >>> clf = ImportanceReweightingClassifier(noise_rates=NoiseRates(0.1, 0.1)).fit(X, y)
    >>> display = SensitivityDisplay.from_estimator(clf, X[:200], y[:200], X[200:], y[200:])
    >>> display.figure_.savefig("sensitivity.png")  # doctest: +SKIP
    """

    _compute = staticmethod(rate_sensitivity)

    def __init__(self, curves: list[RateCurve], *, score_name: str = "score") -> None:
        self.curves = curves
        self.score_name = score_name

    @classmethod
    def from_estimator(cls, *data: Any, ax: Any = None, **kw: Any) -> Self:
        """Retrain with each rate set to values around the estimate, and draw the results.

        Parameters
        ----------
        *data
            `estimator`, `X`, `y`, `X_test` and `y_test`, as for :func:`rate_sensitivity`.
        ax : array-like of three matplotlib Axes, default=None
            Axes to draw on; None: a new figure.
        **kw
            Keyword arguments of :func:`rate_sensitivity`; all others are passed to `ax.plot`.

        Returns
        -------
        SensitivityDisplay
            With what was drawn.
        """
        scoring = kw.get("scoring")
        name = "accuracy" if scoring is None else scoring if isinstance(scoring, str) else "score"
        return cls(cls._computed(data, kw), score_name=name).plot(ax, **kw)

    def plot(self, ax: Any = None, **kw: Any) -> Self:
        """Draw three panels with one curve per rate; a filled marker is the estimate."""
        is_new = ax is None
        if is_new:
            _, ax = _pyplot().subplots(1, 3, figsize=(10, 4), layout="constrained")
        self.ax_ = np.ravel(ax)
        if self.ax_.size != 3:
            raise ValueError(f"ax must be three axes, got {self.ax_.size}.")
        self.figure_ = self.ax_[0].figure
        panels = {
            self.score_name: [curve.scores for curve in self.curves],
            "effective sample size": [curve.effective_sample_sizes for curve in self.curves],
            "mean weight": [curve.mean_weights for curve in self.curves],
        }
        self.lines_ = [
            self._panel(axes, name, values, kw)
            for axes, (name, values) in zip(self.ax_, panels.items(), strict=True)
        ]
        self.ax_[2].axhline(1.0, color="black", linestyle=":", linewidth=1)
        if is_new:
            where = {"loc": "outside upper center", "ncols": min(len(self.curves), 3)}
            self.figure_.legend(handles=self.lines_[0], frameon=False, **where)
        else:
            self.ax_[0].legend(handles=self.lines_[0], frameon=False)
        return self

    def _panel(
        self, axes: Any, name: str, values: list[NDArray[np.float64]], kw: dict[str, Any]
    ) -> list[Any]:
        lines = []
        for k, (curve, height) in enumerate(zip(self.curves, values, strict=True)):
            style = {
                "color": COLOURS[k % len(COLOURS)],
                "linestyle": LINES[k % len(LINES)],
                "marker": MARKERS[k % len(MARKERS)],
                "markerfacecolor": "white",
                "linewidth": 2,
                "label": f"{curve.name} (fitted: {curve.estimate:.2f})",
            } | kw
            lines += axes.plot(curve.rates, height, **style)
            at = curve.rates == curve.estimate
            style |= {"linestyle": "none", "markerfacecolor": style["color"], "label": None}
            axes.plot(curve.rates[at], height[at], **style | {"markersize": 9})
        axes.set(xlabel="rate", ylabel=name)
        return lines


def _pyplot() -> Any:
    """Return matplotlib.pyplot, imported only for drawing."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("drawing needs matplotlib: pip install 'unflip[plot]'") from error
    return plt


def _axes(ax: Any, *, height: float) -> tuple[Any, Any]:
    """Return the given axes, or those of a new figure, with their figure."""
    if ax is None:
        _, ax = _pyplot().subplots(figsize=(6.4, height), layout="constrained")
    return ax, ax.figure
