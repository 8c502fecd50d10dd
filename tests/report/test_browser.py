"""The report in a browser: it loads nothing, runs its own script only, and looks as it should."""

import numpy as np
import pytest

from tests.report.test_document import ITEMS, SVG, TABLE
from unflip import ImportanceReweightingClassifier, NoiseRates, flip_labels
from unflip._app.report import Cell, Details, Heading, Picture, Table, Text, to_html
from unflip.report import make_report

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


ROWS = (("a", "9.5%"), ("b", "less than 0.1%"), ("c", "12%"), ("d", "1,000%"), ("e", ""))
COUNTED = [
    Table(
        ("name", "share"),
        tuple((Cell(name), Cell(share, "0% to 13%")) for name, share in ROWS * 3),
        sortable=True,
    ),
    *(
        Details(f"{name} of {share}", (("more", f"word{k}"),))
        for k, (name, share) in enumerate(ROWS * 3)
    ),
    Text("after"),
]


def shown_rows(page):
    return page.eval_on_selector_all(
        "tbody tr", "rows => rows.filter(r => !r.hidden).map(r => r.cells[0].textContent)"
    )


def test_rows_are_sorted_by_numbers_and_by_words_gaps_last(opened):
    page, asked, said = opened(to_html("t", COUNTED))
    page.click("text=share")
    assert "".join(shown_rows(page)) == "bbbaaacccdddeee"
    assert page.get_attribute("th:nth-child(2)", "aria-sort") == "ascending"
    page.click("text=share")
    assert "".join(shown_rows(page)) == "dddcccaaabbbeee"
    page.click("th button:has-text('name')")
    assert "".join(shown_rows(page)) == "aaabbbcccdddeee"
    assert page.get_attribute("th:nth-child(2)", "aria-sort") is None
    # the lines that open are in the same order, and still before what follows them
    lines = page.eval_on_selector_all("summary", "all => all.map(s => s.textContent[0])")
    assert "".join(lines) == "aaabbbcccdddeee"
    assert page.text_content("main > :last-child") == "after"
    assert (asked, said) == ([], [])


def test_rows_are_filtered_by_words_of_theirs_and_of_what_opens(opened):
    page, _, _ = opened(to_html("t", COUNTED))
    page.fill("input[type=search]", "12% C")
    assert shown_rows(page) == ["c", "c", "c"]
    assert page.text_content("output") == "3 of 15 rows"
    page.fill("input[type=search]", "word13")
    assert shown_rows(page) == ["d"]
    assert page.eval_on_selector_all("details", "all => all.filter(d => !d.hidden).length") == 1
    page.fill("input[type=search]", "")
    assert len(shown_rows(page)) == 15
    assert page.text_content("output") == ""


def test_the_most_suspicious_rows_of_a_report_can_be_sorted(opened, report):
    page, _, said = opened(report)
    page.click("table.sortable th:first-child button")
    rows = [int(row) for row in shown_rows_of(page)]
    assert rows == sorted(rows)
    assert len(rows) == 50
    assert said == []


def shown_rows_of(page):
    """Return the first cells of the last table that can be sorted."""
    return page.evaluate(
        "[...[...document.querySelectorAll('table.sortable')].at(-1).tBodies[0].rows]"
        ".map(row => row.cells[0].textContent)"
    )


def test_drawings_with_styles_of_their_own_keep_them(opened):
    page, asked, said = opened(to_html("t", [Heading("h", 1), *ITEMS, TABLE]))
    assert (asked, said) == ([], [])
    assert "unsafe-inline" not in page.content()
    page, asked, said = opened(to_html("t", [TABLE, Picture("p.svg", STYLED, "a path")]))
    assert (asked, said) == ([], [])
    assert style_of(page, "svg path", "fill") == "rgb(255, 0, 0)"
