"""Small drawings in SVG that follow the page's colours, light or dark."""

import html
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

SVG_WIDTH, HEIGHT = 480, 250
"""A phone shows the width in three quarters, in which text of 13 is still read."""

LEFT, RIGHT, BOTTOM = 46, 12, 44
"""Room for the rows' scale, the edge, and the other scale."""

LEGEND, BARE = 50, 12
"""Room at the top with a legend and marks, and without."""

CHARACTER = 7.0
"""Width of a character on average, where text is cut to its room."""


class Mark(NamedTuple):
    """A vertical line at a value, and its name."""

    value: float
    name: str


def draw_histogram(
    edges: ArrayLike,
    counts: ArrayLike,
    names: Sequence[str],
    *,
    axis: str,
    marks: Sequence[Mark] = (),
) -> str:
    """Return stacked bars as SVG: rows per bin, one colour per name."""
    ends = np.asarray(edges, dtype=float)
    bars = np.asarray(counts, dtype=float)
    low, high = float(ends[0]), float(ends[-1])
    tallest = max(float(bars.sum(axis=0).max()), 1.0)
    step = max(1.0, _step(tallest))
    ceiling = LEGEND if len(names) > 1 or marks else BARE
    height = HEIGHT - LEGEND + ceiling
    top = step * np.ceil(tallest / step)

    def across(value: float) -> float:
        return round(LEFT + (value - low) / (high - low) * (SVG_WIDTH - LEFT - RIGHT), 1)

    def up(value: float) -> float:
        return round(height - BOTTOM - value / top * (height - ceiling - BOTTOM), 1)

    parts = [
        f'<svg class="drawn" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {SVG_WIDTH} {height}">'
    ]
    for value in np.arange(0, top + step / 2, step):
        y = up(float(value))
        parts.append(f'<path class="grid" d="M{LEFT} {y}H{SVG_WIDTH - RIGHT}"/>')
        parts.append(f'<text class="end" x="{LEFT - 6}" y="{y + 4}">{value:g}</text>')
    tick = _step(high - low)
    for value in np.arange(low, high + tick / 1000, tick):
        x = across(float(value))
        parts.append(f'<text class="mid" x="{x}" y="{height - BOTTOM + 16}">{value:.3g}</text>')
    middle = (LEFT + SVG_WIDTH - RIGHT) / 2
    parts.append(f'<text class="mid" x="{middle}" y="{height - 8}">{html.escape(axis)}</text>')
    below = np.zeros(bars.shape[1])
    for k, series in enumerate(bars):
        for left, right, base, rows in zip(ends[:-1], ends[1:], below, series, strict=True):
            if rows:
                x, y = across(float(left)), up(float(base + rows))
                wide, tall = across(float(right)) - x - 0.8, up(float(base)) - y
                parts.append(
                    f'<rect class="series{k}" x="{x}" y="{y}" width="{wide:.1f}" '
                    f'height="{tall:.1f}"/>'
                )
        below = below + series
    for mark in marks:
        x = across(mark.value)
        anchor = "start" if mark.value < (low + high) / 2 else "end"
        parts.append(f'<path class="mark" d="M{x} {ceiling - 8}V{height - BOTTOM}"/>')
        parts.append(
            f'<text class="{anchor}" x="{x}" y="{ceiling - 12}">{html.escape(mark.name)}</text>'
        )
    for k, name in enumerate(names if len(names) > 1 else ()):
        x = LEFT + k * (SVG_WIDTH - LEFT - RIGHT) / len(names)
        room = (SVG_WIDTH - LEFT - RIGHT) / len(names) - 24
        short = _cut_to(name, int(room / CHARACTER))
        parts.append(f'<rect class="series{k}" x="{x:.1f}" y="6" width="12" height="12"/>')
        parts.append(f'<text class="start" x="{x + 18:.1f}" y="16">{html.escape(short)}</text>')
    return "".join([*parts, "</svg>"])


def draw_matrix(
    matrix: ArrayLike, names: Sequence[str], *, rows: str, columns: str, notes: Sequence[str] = ()
) -> str:
    """Return a matrix of shares as SVG: the darker a cell, the larger its share of the row."""
    shares = np.asarray(matrix, dtype=float)
    n = len(shares)
    side = max(26.0, min(64.0, (SVG_WIDTH - 142) / n))
    left, top = 130.0, 92.0
    wide, tall = left + n * side + 12, top + n * side + 12
    parts = [
        f'<svg class="drawn" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide:g} {tall:g}">',
        f'<text class="mid" x="{left + n * side / 2:.1f}" y="16">{html.escape(columns)}</text>',
        f'<text class="end" x="{left - 8:g}" y="{top - 8:g}">{html.escape(rows)}</text>',
    ]
    for k, name in enumerate(names):
        short = html.escape(_cut_to(name, 14))
        middle = (k + 0.5) * side
        beside = top + middle + 4
        parts.append(f'<text class="end" x="{left - 8:g}" y="{beside:.1f}">{short}</text>')
        x, y = left + middle, top - 8
        turned = f'transform="rotate(-45 {x:.1f} {y:g})"'
        parts.append(f'<text class="start" x="{x:.1f}" y="{y:g}" {turned}>{short}</text>')
    for i, row in enumerate(shares):
        for j, share in enumerate(row):
            x, y = left + j * side, top + i * side
            kind = "right" if i == j else "wrong"
            note = f"<title>{html.escape(notes[i * n + j])}</title>" if notes else ""
            parts.append(
                f'<g>{note}<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{side - 1:.1f}" '
                f'height="{side - 1:.1f}" fill-opacity="{0.04 + 0.86 * share**0.5:.2f}"/>'
            )
            if share >= 0.005:
                text = f"{100 * share:.0f}"
                x, y = x + side / 2, y + side / 2 + 4
                parts.append(f'<text class="mid share" x="{x:.1f}" y="{y:.1f}">{text}</text>')
            parts.append("</g>")
    return "".join([*parts, "</svg>"])


def draw_intervals(
    values: ArrayLike,
    intervals: ArrayLike,
    names: Sequence[str],
    *,
    axis: str,
    band: tuple[float, float],
    n_banded: int | None = None,
) -> str:
    """Return shares with their intervals as SVG, one line each, the first few over a band.

    The band is of the first `n_banded` lines; None: of all.
    """
    ends = np.asarray(intervals, dtype=float)
    largest = max(float(ends.max()), band[1], 0.01)
    tick = _step(100 * largest) / 100
    top = tick * np.ceil(largest / tick - 1e-9)
    left, line = 150, 26
    height = BARE + len(names) * line + BOTTOM

    def across(share: float) -> float:
        return round(left + share / top * (SVG_WIDTH - left - 24), 1)

    low, high = map(across, band)
    floor = height - BOTTOM
    parts = [
        '<svg class="drawn" xmlns="http://www.w3.org/2000/svg" '
        f'viewBox="0 0 {SVG_WIDTH} {height}">',
        f'<rect class="band" x="{low}" y="{BARE}" width="{max(high - low, 1):.1f}" '
        f'height="{line * (len(names) if n_banded is None else n_banded)}"/>',
    ]
    for share in np.arange(0, top + tick / 2, tick):
        x = across(float(share))
        parts.append(f'<path class="grid" d="M{x} {BARE}V{floor}"/>')
        parts.append(f'<text class="mid" x="{x}" y="{floor + 16}">{100 * share:.3g}%</text>')
    middle = (left + SVG_WIDTH - 24) / 2
    parts.append(f'<text class="mid" x="{middle}" y="{height - 8}">{html.escape(axis)}</text>')
    for k, (value, (start, end), name) in enumerate(
        zip(np.asarray(values, dtype=float), ends, names, strict=True)
    ):
        y = BARE + (k + 0.5) * line
        short = html.escape(_cut_to(name, int((left - 10) / CHARACTER)))
        parts.append(f'<text class="end" x="{left - 10}" y="{y + 4:g}">{short}</text>')
        parts.append(f'<path class="whisker" d="M{across(start)} {y:g}H{across(end)}"/>')
        parts.append(f'<circle class="series0" cx="{across(value)}" cy="{y:g}" r="4.5"/>')
    return "".join([*parts, "</svg>"])


def _cut_to(name: str, longest: int) -> str:
    return name if len(name) <= longest else name[: longest - 1] + "…"


def _step(length: float) -> float:
    """Return a round step that cuts a scale into at most five."""
    power = 10.0 ** np.floor(np.log10(length / 5))
    return float(power * min(k for k in (1, 2, 5, 10) if 5 * k * power >= length * (1 - 1e-9)))
