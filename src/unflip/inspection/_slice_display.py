"""The picture of noise by slice."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from unflip._utils.validation import check_choice
from unflip.inspection._displays import COLOURS, MARKERS, _axes, _pyplot
from unflip.inspection._slices import NoiseBySlice, noise_by_slice


class NoiseBySliceDisplay:
    """Expected share of wrong labels in every slice, or either rate, with 95 % intervals.

    The band is one pair of rates for all slices. Where intervals lie apart from it, and from each
    other, the noise differs; the title says how likely such differences are by chance.

    Parameters
    ----------
    found : NoiseBySlice
        The numbers to draw, from :func:`noise_by_slice`.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes.
    figure_ : matplotlib Figure
        The figure.
    points_ : list of ErrorbarContainer
        The estimates and intervals: one series, or one for either rate.
    band_ : artist or None
        One share for all slices; None where rates are drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_classification
    >>> from unflip.inspection import NoiseBySliceDisplay
    >>> X, y = make_classification(1000, class_sep=2.0, random_state=0)
    >>> source = np.repeat(["clinic", "survey"], 500)
    >>> display = NoiseBySliceDisplay.from_data(X, y, by=source, random_state=0)
    >>> display.figure_.savefig("slices.png")  # doctest: +SKIP
    """

    def __init__(self, found: NoiseBySlice) -> None:
        self.found = found

    @classmethod
    def from_data(
        cls,
        X: Any,
        y: ArrayLike,
        *,
        by: Any,
        bins: int = 5,
        max_slices: int = 20,
        cv: Any = 5,
        random_state: int | np.random.RandomState | None = None,
        kind: str = "share",
        ax: Any = None,
        **kw: Any,
    ) -> Self:
        """Estimate the noise of every slice, and draw it.

        Parameters
        ----------
        X, y, by, bins, max_slices, cv, random_state
            As for :func:`noise_by_slice`.
        kind, ax, **kw
            As for :meth:`plot`.

        Returns
        -------
        NoiseBySliceDisplay
            With what was drawn.
        """
        _pyplot()
        found = noise_by_slice(
            X, y, by=by, bins=bins, max_slices=max_slices, cv=cv, random_state=random_state
        )
        return cls(found).plot(ax, kind=kind, **kw)

    def plot(self, ax: Any = None, *, kind: str = "share", **kw: Any) -> Self:
        """Draw one line per slice, the first on top.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on; None: a new figure.
        kind : {"share", "rates"}, default="share"
            The share of wrong labels, or the rate at which either class is flipped.
        **kw
            Passed to `ax.errorbar`.

        Returns
        -------
        NoiseBySliceDisplay
            Itself.
        """
        check_choice(kind, ("share", "rates"), "kind")
        found = self.found
        if kind == "rates" and found.classes.size > 2:
            raise ValueError(
                f"kind='rates' draws the two rates of two classes, and there are "
                f"{found.classes.size}: use kind='share'."
            )
        n_slices = len(found.slices)
        self.ax_, self.figure_ = _axes(ax, height=max(2.4, 1.4 + 0.45 * n_slices))
        self.band_: Any = None
        self.points_: list[Any] = []
        if kind == "share":
            low, high = found.overall_interval
            self.band_ = self.ax_.axvspan(
                low, high, color="#DDDDDD", zorder=0, label="all slices alike"
            )
            self._draw(
                found.label_error_rate, found.label_error_rate_interval, 0, 0.0, "by slice", kw
            )
            self.ax_.set_xlabel("share of wrong labels, with 95 % intervals")
        else:
            for k, label in enumerate(found.classes.tolist()[::-1]):
                ends = found.rates_interval[:, k]
                self._draw(found.rates[:, k], ends, k, 0.12 - 0.24 * k, f"{label} flipped", kw)
            self.ax_.set_xlabel("flip rate, with 95 % intervals")
        names = [f"{s}  (n = {n})" for s, n in zip(found.slices, found.n_rows, strict=True)]
        self.ax_.set_yticks(-np.arange(n_slices), names)
        self.ax_.set(ylim=(0.6 - n_slices, 0.6), xlim=(0, None))
        p = f"p = {found.p_value:.2g}" if found.p_value >= 0.001 else "p < 0.001"
        self.ax_.set_title(f"noise by {found.by} (no difference: {p})")
        self.ax_.legend(frameon=False, loc="best")
        return self

    def _draw(
        self, at: Any, ends: Any, k: int, offset: float, name: str, kw: dict[str, Any]
    ) -> None:
        style = {
            "fmt": MARKERS[k],
            "color": COLOURS[k],
            "capsize": 4,
            "linewidth": 2,
            "label": name,
        } | kw
        heights = offset - np.arange(at.size)
        arms = np.maximum([at - ends[:, 0], ends[:, 1] - at], 0)
        self.points_.append(self.ax_.errorbar(at, heights, xerr=arms, **style))
