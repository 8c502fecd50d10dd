"""The report in a browser: it loads nothing, runs nothing, and looks as it should."""

import numpy as np
import pytest

from tests.report.test_document import ITEMS, SVG, TABLE
from unflip import ImportanceReweightingClassifier, NoiseRates, flip_labels
from unflip._app.report import Heading, Picture, make_report, to_html

RATES = NoiseRates(positive=0.3, negative=0.1)
STYLED = SVG.replace("<path", '<style>*{stroke: none}</style><path style="fill: #ff0000"')


@pytest.fixture(scope="module")
def report():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400)
    X = rng.normal(2.4 * y[:, None], 1.0, (400, 2))
    noisy = flip_labels(y, RATES, random_state=0)
    clf = ImportanceReweightingClassifier(noise_rates=RATES, random_state=0).fit(X, noisy)
    return make_report(clf, X, noisy).to_html()


@pytest.fixture
def opened(browser, tmp_path):
    """Open a page from a file; return it, and what it asked for and complained of."""
    context = browser.new_context()

    def show(html, width=1280):
        path = tmp_path / "page.html"
        path.write_text(html, encoding="utf-8")
        page = context.new_page()
        page.set_viewport_size({"width": width, "height": 900})
        asked, said = [], []
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda line: said.append(line.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(path.as_uri())
        assert asked[:1] == [path.as_uri()]
        return page, asked[1:], said

    yield show
    context.close()


def style_of(page, selector, name):
    return page.eval_on_selector(selector, f"element => getComputedStyle(element)['{name}']")


@pytest.mark.parametrize("width", [1280, 400])
def test_the_page_is_styled_and_asks_for_nothing(opened, report, width):
    page, asked, said = opened(report, width)
    assert (asked, said) == ([], [])
    assert style_of(page, "table", "borderCollapse") == "collapse"
    assert style_of(page, "svg.drawn .series0", "fill") == "rgb(0, 114, 178)"
    # only tables are moved sideways
    assert page.evaluate("document.documentElement.scrollWidth") <= width


INJECTIONS = {
    "script": "<script>document.title = 'run'</script>",
    "handler": "<p onclick=\"document.title = 'run'\" id=there>here</p>",
    "image": '<img src="http://127.0.0.1:9/x.png">',
    "style": "<style>h1 { color: rgb(1, 2, 3) }</style>",
    "frame": '<iframe src="data:text/html,hello"></iframe>',
}


@pytest.mark.parametrize("kind", INJECTIONS)
def test_what_might_slip_into_the_page_does_nothing(opened, report, kind):
    page, _, said = opened(report.replace("</h1>", f"</h1>{INJECTIONS[kind]}"))
    if kind == "handler":
        page.click("#there")
    assert page.title() != "run"
    assert style_of(page, "h1", "color") != "rgb(1, 2, 3)"
    assert "Content Security Policy" in " ".join(said)


def test_drawings_with_styles_of_their_own_keep_them(opened):
    page, asked, said = opened(to_html("t", [Heading("h", 1), *ITEMS, TABLE]))
    assert (asked, said) == ([], [])
    assert "unsafe-inline" not in page.content()
    page, asked, said = opened(to_html("t", [TABLE, Picture("p.svg", STYLED, "a path")]))
    assert (asked, said) == ([], [])
    assert style_of(page, "svg path", "fill") == "rgb(255, 0, 0)"
