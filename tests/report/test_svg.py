"""Drawings: one bar per filled bin, heights in proportion, names escaped."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from unflip._app.report import draw_histogram

SPACE = "{http://www.w3.org/2000/svg}"


def bars(svg, series):
    found = ElementTree.fromstring(svg).iter(f"{SPACE}rect")  # noqa: S314
    return [rect for rect in found if rect.get("class") == f"series{series}"]


def test_bars_are_as_high_as_their_bins_and_stand_on_one_another():
    svg = draw_histogram([0, 0.5, 1], [[10, 0], [30, 20]], ["a", "b"], axis="p")
    (low,) = bars(svg, 0)[:1]
    left, right = bars(svg, 1)[:2]
    heights = [float(bar.get("height")) for bar in (low, left, right)]
    assert np.divide(heights, heights[0]) == pytest.approx([1, 3, 2], rel=0.01)
    assert float(left.get("y")) + heights[1] == pytest.approx(float(low.get("y")))
    # two filled bins, and the legend's square
    assert len(bars(svg, 0)) == 2


@pytest.mark.parametrize("rows", [0, 1, 7, 1234, 10**7])
def test_the_scale_holds_the_tallest_bar(rows):
    svg = draw_histogram([0, 1], [[rows]], ["a"], axis="p")
    ticks = [float(value) for value in re.findall(r'class="end"[^>]*>([\d.e+]+)<', svg)]
    assert ticks[0] == 0
    assert ticks[-1] >= rows
    assert 2 <= len(ticks) <= 6
