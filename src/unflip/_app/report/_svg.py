"""Small drawings in SVG that follow the page's colours, light or dark."""

import html
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike

SVG_WIDTH, HEIGHT = 480, 250
"""Size in user units; a phone scales the width to three quarters, where text of 13 is readable."""

LEFT, RIGHT, BOTTOM = 46, 12, 44
"""Margins for the vertical scale, the right edge and the horizontal scale."""

LEGEND, BARE, LINE = 44, 12, 14
"""Top margin with a legend and without one; height of a line of text."""

CHARACTER = 7.0
"""Average width of a character, by which text is cut to the space it has."""


def draw_histogram(
    edges: ArrayLike,
    counts: ArrayLike,
    names: Sequence[str],
    *,
    axis: str,
    marks: Sequence[tuple[float, str]] = (),
) -> str:
    """Return stacked bars as SVG, one colour per name; marks are named vertical lines."""
    ends = np.asarray(edges, dtype=float)
    bars = np.asarray(counts, dtype=float)
    low, high = float(ends[0]), float(ends[-1])
    tallest = max(float(bars.sum(axis=0).max()), 1.0)
    step = max(1.0, _step(tallest))
    ceiling = (LEGEND if len(names) > 1 else BARE) + LINE * len(marks)
    height = HEIGHT - LEGEND + ceiling
    top = step * np.ceil(tallest / step)
    inner = SVG_WIDTH - LEFT - RIGHT

    def across(value: float) -> float:
        return round(LEFT + (value - low) / (high - low) * inner, 1)

    def up(value: float) -> float:
        return round(height - BOTTOM - value / top * (height - ceiling - BOTTOM), 1)

    parts = []
    for value in np.arange(0, top + step / 2, step):
        y = up(float(value))
        parts.append(f'<path class="grid" d="M{LEFT} {y}H{SVG_WIDTH - RIGHT}"/>')
        parts.append(_text("end", LEFT - 6, y + 4, f"{value:g}"))
    tick = _step(high - low)
    for value in np.arange(low, high + tick / 1000, tick):
        parts.append(_text("mid", across(float(value)), height - BOTTOM + 16, f"{value:.3g}"))
    parts.append(_text("mid", LEFT + inner / 2, height - 8, axis))
    below = np.zeros(bars.shape[1])
    for k, series in enumerate(bars):
        for left, right, base, rows in zip(ends[:-1], ends[1:], below, series, strict=True):
            if rows:
                x, y = across(float(left)), up(float(base + rows))
                width = across(float(right)) - x - 0.8
                parts.append(_rect(f"series{k}", x, y, width, up(float(base)) - y))
        below = below + series
    for k, (value, name) in enumerate(marks):
        x, y = across(value), ceiling - 12 - LINE * (len(marks) - 1 - k)
        parts.append(f'<path class="mark" d="M{x} {y + 4}V{height - BOTTOM}"/>')
        parts.append(_text("start" if value < (low + high) / 2 else "end", x, y, name))
    for k, name in enumerate(names if len(names) > 1 else ()):
        x, room = LEFT + k * inner / len(names), inner / len(names) - 24
        parts.append(_rect(f"series{k}", x, 6, 12, 12))
        parts.append(_text("start", x + 18, 16, _cut_to(name, int(room / CHARACTER))))
    return _svg(SVG_WIDTH, height, parts)


def draw_matrix(
    matrix: ArrayLike, names: Sequence[str], *, rows: str, columns: str, notes: Sequence[str] = ()
) -> str:
    """Return a matrix of shares as SVG: the darker a cell, the larger its share of the row."""
    shares = np.asarray(matrix, dtype=float)
    n = len(shares)
    side = max(26.0, min(64.0, (SVG_WIDTH - 142) / n))
    left, top = 130.0, 110.0
    parts = [_text("mid", left + n * side / 2, 14, columns), _text("end", left - 8, top - 8, rows)]
    for k, name in enumerate(names):
        short, middle = _cut_to(name, 14), (k + 0.5) * side
        parts.append(_text("end", left - 8, top + middle + 4, short))
        x, y = left + middle, top - 8
        parts.append(_text("start", x, y, short, f' transform="rotate(-45 {x:.1f} {y:g})"'))
    for i, j in np.ndindex(n, n):
        x, y, share = left + j * side, top + i * side, shares[i, j]
        note = f"<title>{html.escape(notes[i * n + j])}</title>" if notes else ""
        opacity = f' fill-opacity="{0.04 + 0.86 * share**0.5:.2f}"'
        kind = "right" if i == j else "wrong"
        parts.append(f"<g>{note}{_rect(kind, x, y, side - 1, side - 1, opacity)}")
        if share >= 0.005:
            parts.append(_text("mid share", x + side / 2, y + side / 2 + 4, f"{100 * share:.0f}"))
        parts.append("</g>")
    return _svg(left + n * side + 12, top + n * side + 12, parts)


def draw_intervals(
    values: ArrayLike,
    intervals: ArrayLike,
    names: Sequence[str],
    *,
    axis: str,
    band: tuple[float, float],
    n_banded: int | None = None,
) -> str:
    """Return shares with intervals as SVG, one line each; the band is of the first `n_banded`."""
    ends = np.asarray(intervals, dtype=float)
    largest = max(float(ends.max()), band[1], 0.01)
    tick = _step(100 * largest) / 100
    top = tick * np.ceil(largest / tick - 1e-9)
    left, line = 150, 26
    floor = BARE + len(names) * line

    def across(share: float) -> float:
        return round(left + share / top * (SVG_WIDTH - left - 24), 1)

    low, high = map(across, band)
    tall = line * (len(names) if n_banded is None else n_banded)
    parts = [_rect("band", low, BARE, max(high - low, 1), tall)]
    for share in np.arange(0, top + tick / 2, tick):
        x = across(float(share))
        parts.append(f'<path class="grid" d="M{x} {BARE}V{floor}"/>')
        parts.append(_text("mid", x, floor + 16, f"{100 * share:.3g}%"))
    parts.append(_text("mid", (left + SVG_WIDTH - 24) / 2, floor + BOTTOM - 8, axis))
    shares = np.asarray(values, dtype=float)
    for k, (value, (start, end), name) in enumerate(zip(shares, ends, names, strict=True)):
        y = BARE + (k + 0.5) * line
        parts.append(_text("end", left - 10, y + 4, _cut_to(name, int((left - 10) / CHARACTER))))
        parts.append(f'<path class="whisker" d="M{across(start)} {y:g}H{across(end)}"/>')
        parts.append(f'<circle class="series0" cx="{across(value)}" cy="{y:g}" r="4.5"/>')
    return _svg(SVG_WIDTH, floor + BOTTOM, parts)


def _svg(width: float, height: float, parts: Iterable[str]) -> str:
    space = 'xmlns="http://www.w3.org/2000/svg"'
    size = f'viewBox="0 0 {width:g} {height:g}"'
    return f'<svg class="drawn" {space} {size}>{"".join(parts)}</svg>'


def _text(kind: str, x: float, y: float, words: str, more: str = "") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}"{more}>{html.escape(words)}</text>'


def _rect(kind: str, x: float, y: float, width: float, height: float, more: str = "") -> str:
    size = f'width="{width:.1f}" height="{height:.1f}"'
    return f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" {size}{more}/>'


def _cut_to(name: str, longest: int) -> str:
    return name if len(name) <= longest else name[: longest - 1] + "…"


def _step(length: float) -> float:
    """Return a round step that cuts a scale into at most five."""
    power = 10.0 ** np.floor(np.log10(length / 5))
    return float(power * min(k for k in (1, 2, 5, 10) if 5 * k * power >= length * (1 - 1e-9)))
