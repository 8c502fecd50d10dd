"""The pictures are sound SVG, the same every time."""

import sys
from xml.etree import ElementTree

import pytest

from tests.experiments.made import made_results
from unflip._app.report import Picture
from unflip.paper.experiments import reproduction_page, require_matplotlib

pytest.importorskip("matplotlib")

SVG = "{http://www.w3.org/2000/svg}svg"


def figure_results(**options):
    return made_results(["figure1"], lambda run: 95 - 50 * run.rho_pos + run.repeat, **options)


def level_results():
    return made_results(["levels"], lambda run: 100 - 90 * run.rho_pos, repeats=1)


def draw(results) -> str:
    """Return the one picture of the page on results."""
    (picture,) = (b for b in reproduction_page(results, 2) if isinstance(b, Picture))
    return picture.svg


@pytest.mark.parametrize("make", [figure_results, level_results])
def test_a_picture_is_sound_svg_the_same_when_drawn_again_and_leaves_nothing_open(make):
    import matplotlib.pyplot as plt

    before = plt.get_fignums()
    text = draw(make())
    root = ElementTree.fromstring(text)  # noqa: S314  (our own)
    assert root.tag == SVG
    assert "viewBox" in root.attrib  # it can be made smaller on a phone
    assert draw(make()) == text
    assert plt.get_fignums() == before


def test_one_split_is_enough_for_the_figure_and_draws_another():
    text = draw(figure_results(repeats=1))
    ElementTree.fromstring(text)  # noqa: S314
    assert text != draw(figure_results())


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install 'unflip\[plot\]'"):
        require_matplotlib()
