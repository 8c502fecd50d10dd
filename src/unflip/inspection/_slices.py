"""Whether noise differs between the parts of a table: sources, months, annotators."""

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike

from unflip._features import choose_posterior, encode, estimate_from_features
from unflip._utils.estimators import stage_generator
from unflip._utils.folds import folds_within_classes
from unflip._utils.frames import column_values
from unflip._utils.threads import one_blas_thread
from unflip._utils.typing import Array, Codes, Floats, Record
from unflip._utils.validation import check_choice, check_count, check_enough_rows, check_labels
from unflip.channel import GroupNoise, fit_groups
from unflip.diagnostics import LEVEL, raise_or_warn
from unflip.estimate import NoiseEstimate
from unflip.noise import as_transition_matrix

OTHER, MISSING = "(other)", "(missing)"
"""Names of the slices of rare values, and of rows without a value."""


@dataclass(frozen=True, repr=False)
class NoiseBySlice:
    """Noise rates of every slice, and whether they differ; `str` says it in words.

    Shown by itself, it is a table of the slices and the words.

    Parameters
    ----------
    by : str
        What the rows were cut by.
    slices : list of str
        Names of the slices.
    n_rows : ndarray of shape (n_slices,)
        Rows of each.
    rates : ndarray of shape (n_slices, n_classes)
        rho_pos and rho_neg of each; of more classes, how often each is flipped, in their order.
    rates_interval : ndarray of shape (n_slices, n_classes, 2)
        Their 95 % intervals: for each rate its lower and upper end.
    label_error_rate : ndarray of shape (n_slices,)
        Expected share of wrong labels.
    label_error_rate_interval : ndarray of shape (n_slices, 2)
        Lower and upper ends of its 95 % interval.
    overall : float
        Expected share of wrong labels, if the rates were the same in all slices.
    overall_interval : tuple of float
        Ends of its 95 % interval.
    statistic, degrees_of_freedom, p_value : float, int, float
        The likelihood-ratio test of the same rates for all slices.
    classes : ndarray of shape (n_classes,)
        The labels, of two the positive class last.
    diagnostics : list of str
        Why the rates may not be trusted, in words.
    backend : str or None
        The library of the table that was given, for :meth:`to_frame`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_classification
    >>> from unflip import flip_labels, NoiseRates
    >>> from unflip.inspection import noise_by_slice
    >>> X, y = make_classification(2000, class_sep=2.0, random_state=0)
    >>> source = np.repeat(["clinic", "survey"], 1000)
    >>> y[1000:] = flip_labels(y[1000:], NoiseRates(positive=0.3, negative=0.3), random_state=0)
    >>> found = noise_by_slice(X, y, by=source, random_state=0)
    >>> dict(zip(found.slices, found.label_error_rate.round(1).tolist(), strict=True))
    {'clinic': 0.0, 'survey': 0.3}
    """

    by: str
    slices: list[str]
    n_rows: Codes
    rates: Floats
    rates_interval: Floats
    label_error_rate: Floats
    label_error_rate_interval: Floats
    overall: float
    overall_interval: tuple[float, float]
    statistic: float
    degrees_of_freedom: int
    p_value: float
    classes: Array
    diagnostics: list[str]
    backend: str | None = None

    def __str__(self) -> str:
        """Return what was found, with its assumption and what is doubtful about it."""
        p = f"p = {self.p_value:.2g}" if self.p_value >= 0.001 else "p < 0.001"
        if self.p_value >= 1 - LEVEL:
            low, high = self.overall_interval
            said = (
                f"No difference in noise between the {len(self.slices)} slices by {self.by} is to "
                f"be seen ({p}), and about {self.overall:.0%} of the labels are wrong "
                f"({low:.0%} to {high:.0%})"
            )
        else:
            least, most = np.argmin(self.label_error_rate), np.argmax(self.label_error_rate)
            said = (
                f"The noise differs between slices by {self.by} ({p}): from {self._part(least)} to "
                f"{self._part(most)}"
            )
        said += ", if within a slice and a class labels are flipped at random"
        said += ", and everywhere into the same others." if self.classes.size > 2 else "."
        if self.diagnostics:
            said += f" But that is not sure: {' '.join(self.diagnostics)}"
        return said

    def __repr__(self) -> str:
        wide = max(len(self.by), *map(len, self.slices))
        lines = [f"{self.by:<{wide}}  {'samples':>9}  wrong labels"]
        for k, name in enumerate(self.slices):
            low, high = self.label_error_rate_interval[k]
            share = f"{self.label_error_rate[k]:>12.1%}  ({low:.1%} to {high:.1%})"
            lines.append(f"{name:<{wide}}  {self.n_rows[k]:>9,}  {share}")
        return "\n".join([*lines, "", str(self)])

    def _part(self, k: int | np.intp) -> str:
        low, high = self.label_error_rate_interval[k]
        rate = self.label_error_rate[k]
        return f"{rate:.0%} wrong labels ({low:.0%} to {high:.0%}) in {self.slices[k]}"

    def to_frame(self, backend: str | None = None) -> Any:
        """Return one row per slice as a dataframe.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}, default=None
            Of which library. None: as the rows were given, else pandas.

        Returns
        -------
        dataframe
            One row per slice.
        """
        columns = {
            "slice": self.slices,
            "n_rows": self.n_rows.tolist(),
            "label_error_rate": self.label_error_rate.tolist(),
            "label_error_rate_low": self.label_error_rate_interval[:, 0].tolist(),
            "label_error_rate_high": self.label_error_rate_interval[:, 1].tolist(),
        }
        for k, name in enumerate(("positive", "negative") if self.classes.size == 2 else ()):
            columns[name] = self.rates[:, k].tolist()
            columns[f"{name}_low"] = self.rates_interval[:, k, 0].tolist()
            columns[f"{name}_high"] = self.rates_interval[:, k, 1].tolist()
        chosen: Any = self.backend or "pandas" if backend is None else backend
        check_choice(chosen, ("pandas", "polars", "pyarrow"), "backend")
        try:
            return nw.from_dict(columns, backend=chosen).to_native()
        except ImportError as error:
            raise ImportError(
                f"to_frame needs {chosen}, which is not installed: install it, or name another "
                "backend, 'pandas', 'polars' or 'pyarrow'."
            ) from error


@one_blas_thread()
def noise_by_slice(
    X: Any,
    y: ArrayLike,
    *,
    by: Any,
    bins: int = 5,
    max_slices: int = 20,
    cv: Any = 5,
    random_state: int | np.random.RandomState | None = None,
) -> NoiseBySlice:
    r"""Return P(noisy=+1 | x, s) = rho_neg_s + (1 - rho_pos_s - rho_neg_s) g_s(x) of all slices s.

    g comes from the channel, fitted to all rows and cross-fitted; within a slice its log odds may
    be shifted, since a source or a month may have more of a class. The rates of a slice maximise
    the evidence of its labels, the shift integrated out, and their intervals are all rates whose
    evidence is near the maximum, widened by how far g itself is uncertain. One pair of rates for
    all slices is tested against them by the likelihood ratio. With more classes, a slice has a
    matrix T_s = I + s (T - I), with the T of all rows: classes are confused alike in all slices,
    and more or less often.

    Parameters
    ----------
    X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
        Rows; of text, categories, dates and gaps numbers are made, as by the command line.
    y : array-like of shape (n_samples,)
        Noisy labels.
    by : str or array-like of shape (n_samples,)
        What to cut the rows by: the name of a column of the dataframe `X`, which is then not
        learnt from, or a value for every row. It should not be among the columns of `X`
        otherwise: g would follow the noise of each slice. Numbers and dates of many values are
        cut into `bins`.
    bins : int, default=5
        Slices of numbers, with about equal numbers of rows.
    max_slices : int, default=20
        Of more values, the commonest are slices, and all others are one together.
    cv : int or cross-validation splitter, default=5
        Folds of the cross-fitting.
    random_state : int, RandomState instance or None, default=None
        Seed of the folds and of the channel.

    Returns
    -------
    found : NoiseBySlice
        Rates, shares and intervals by slice; `p_value`; `to_frame()`; `str` is a sentence.

    Notes
    -----
    Within a slice labels must be flipped at random given the class. The test holds for slices
    that were chosen before one looks at the labels; of twenty columns one will differ by chance.

    Examples
    --------
    >>> import numpy as np
    >>> from unflip import noise_by_slice
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 3))
    >>> annotator = rng.choice(["anna", "ben", "carl"], 2000)
    >>> wrong = rng.random(2000) < np.where(annotator == "ben", 0.3, 0.05)
    >>> found = noise_by_slice(X, (X.sum(axis=1) > 0) ^ wrong, by=annotator, random_state=0)
    >>> found.p_value < 0.001
    True
    >>> found.slices, found.label_error_rate.round(2)
    (['anna', 'ben', 'carl'], array([0.04, 0.29, 0.06]))
    """
    check_count(bins, "bins", least=2)
    check_count(max_slices, "max_slices", least=2)
    labels = check_labels(y, binary=False)
    classes, codes = labels
    check_enough_rows(X, codes)
    rows, values, name, backend = _taken_out(X, by, codes.size)
    names, places = _cut(values, bins, max_slices)
    random = stage_generator(random_state)
    numbers, _ = encode("auto", "auto", rows, classes.size)
    model = choose_posterior("auto", "auto", classes.size, random_state=random)
    # the mean never rules noise out, so that slices have something to differ by
    model.set_params(estimate="mean")
    noise = estimate_from_features(
        model, "auto", numbers, labels, cv=folds_within_classes(cv, codes), random_state=random
    ).noise
    diagnostics = raise_or_warn(noise.findings)
    found = _compared(noise, places)
    return NoiseBySlice(
        by=name,
        slices=names,
        n_rows=np.bincount(places, minlength=len(names)),
        classes=classes,
        diagnostics=diagnostics,
        backend=backend,
        **found,
    )


def _compared(noise: NoiseEstimate, places: Codes) -> Record:
    """Return the noise of every slice, and how likely it is the same."""
    clean = as_transition_matrix(noise.noise_rates).clean_posterior(noise.noisy_proba)
    fitted = fit_groups(clean, noise.codes, None, places, noise.transition)
    spread = _spread_of_posterior(noise, fitted.common)
    slices = [_widened(each, spread) for each in fitted.groups]
    common = _widened(fitted.common, spread)
    order = slice(None, None, -1 if clean.shape[1] == 2 else 1)  # of two, the positive one first
    return {
        "rates": np.array([each.rates[order] for each in slices]),
        "rates_interval": np.array([each.rates_interval[order] for each in slices]),
        "label_error_rate": np.array([each.label_error_rate for each in slices]),
        "label_error_rate_interval": np.array([each.label_error_rate_interval for each in slices]),
        "overall": common.label_error_rate,
        "overall_interval": common.label_error_rate_interval,
        "statistic": fitted.statistic,
        "degrees_of_freedom": fitted.degrees_of_freedom,
        "p_value": fitted.p_value,
    }


def _spread_of_posterior(noise: NoiseEstimate, common: GroupNoise) -> Floats:
    """Return by how much both rates of two classes, else the share, are uncertain because g is.

    Down and up. The interval of the noise model knows of both uncertainties, the evidence given g
    of one. With more classes, a difference between the two shares is due to g too.
    """
    interval, share = noise.transition_interval, common.label_error_rate
    if len(noise.transition) == 2:
        if interval is None:
            return np.zeros((2, 2))
        of_both = np.abs(interval.flip_rates - (1 - np.diag(noise.transition))[:, None])
        of_one = np.abs(common.rates_interval - common.rates[:, None])
    else:
        if interval is None or interval.label_error_rate is None:
            return np.zeros(2)
        low, high = interval.label_error_rate
        of_both = np.maximum([share - low, high - share], 0.0)
        of_one = np.abs(np.array(common.label_error_rate_interval) - share)
    return np.asarray(np.sqrt(np.maximum(of_both**2 - of_one**2, 0.0)))


def _widened(noise: GroupNoise, spread: Floats) -> GroupNoise:
    """Return intervals with more spread of both rates, or of the share, added in squares."""
    if spread.ndim == 2:
        of_rates = spread
        of_share = np.sqrt(((noise.class_shares[:, None] * spread) ** 2).sum(axis=0))
    else:  # there is one free number: the rates are in proportion to the share
        share = noise.label_error_rate
        of_rates = np.outer(noise.rates / share if share > 0 else np.ones(len(noise.T)), spread)
        of_share = spread
    return replace(
        noise,
        rates_interval=np.array(
            [
                _wider(*each)
                for each in zip(noise.rates, noise.rates_interval, of_rates, strict=True)
            ]
        ),
        label_error_rate_interval=_wider(
            noise.label_error_rate, noise.label_error_rate_interval, of_share
        ),
    )


def _wider(centre: float, interval: Any, spread: Floats) -> tuple[float, float]:
    """Return an interval about `centre` with more spread, down and up, added in squares."""
    down = np.hypot(centre - interval[0], spread[0])
    up = np.hypot(interval[1] - centre, spread[1])
    return float(max(centre - down, 0.0)), float(min(centre + up, 1.0))


def _taken_out(X: Any, by: Any, n_rows: int) -> tuple[Any, Array, str, str | None]:
    """Return the rows to learn from, what to cut them by and its name, and X's library."""
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    is_frame = isinstance(frame, nw.DataFrame)
    backend = frame.implementation.value if is_frame else None
    if isinstance(by, str):
        if not (is_frame and by in frame.columns):
            known = f"its columns are {frame.columns}" if is_frame else "X is no dataframe"
            raise ValueError(
                f"by={by!r} is not the name of a column of X: {known}. Name one of a dataframe, "
                "or give a value for every row."
            )
        return frame.drop(by).to_native(), column_values(frame[by]), repr(by), backend
    values = _as_array(by)
    if values.shape != (n_rows,):
        raise ValueError(
            f"by has shape {values.shape}, expected ({n_rows},): one value for every row, or the "
            "name of a column of a dataframe X."
        )
    name = getattr(by, "name", None)
    return X, values, "the given values" if name is None else repr(name), backend


def _as_array(by: Any) -> Array:
    """Return values as an array, text as objects: numpy's strings take the longest one's room."""
    if hasattr(by, "to_numpy"):
        return np.asarray(by.to_numpy())
    has_text = isinstance(by, list | tuple) and any(isinstance(value, str) for value in by)
    return np.array(by, dtype=object) if has_text else np.asarray(by)


def _cut(values: Array, bins: int, max_slices: int) -> tuple[list[str], Codes]:
    """Return the names of the slices, and the slice of every row."""
    missing = np.array([value is None or value != value for value in values.tolist()])
    told = values[~missing]
    ordered = told.dtype.kind in "iufM"
    if ordered and np.unique(told).size > max_slices:
        names, places = _intervals(told, bins)
    else:
        names, places = _commonest(told if ordered else _texts(told), max_slices)
    if missing.any():
        names.append(MISSING)
    if len(names) < 2:
        raise ValueError(
            f"by has one value only ({', '.join(names)}), and slices are compared: give a column "
            "of two values or more."
        )
    all_places = np.full(values.size, len(names) - 1)
    all_places[~missing] = places
    return names, all_places


def _texts(values: Array) -> Array:
    """Return values as strings, each of its own length where they come as objects."""
    if values.dtype.kind != "O":
        return values.astype(str)
    return np.array([str(value) for value in values], dtype=object)


def _intervals(values: Array, bins: int) -> tuple[list[str], Codes]:
    """Return slices of about equal numbers of rows."""
    edges = np.unique(np.quantile(values, np.linspace(0, 1, bins + 1), method="nearest"))
    # a value at an edge belongs to the slice above it, but for the last
    places = np.searchsorted(edges[1:-1], values, side="right")
    written = [
        str(edge.astype("datetime64[D]")) if values.dtype.kind == "M" else f"{edge:.4g}"
        for edge in edges
    ]
    return [f"{a} to {b}" for a, b in pairwise(written)], places


def _commonest(values: Array, max_slices: int) -> tuple[list[str], Codes]:
    """Return a slice for each value, or for the commonest and the others together."""
    distinct, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    names = [str(value) for value in distinct.tolist()]
    if distinct.size <= max_slices:
        return names, places
    kept = np.sort(np.argsort(-counts, kind="stable")[: max_slices - 1])
    new_place = np.full(distinct.size, kept.size)
    new_place[kept] = np.arange(kept.size)
    return [names[k] for k in kept] + [OTHER], new_place[places]
