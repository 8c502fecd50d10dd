"""The report in a browser: it loads nothing, runs its own script only, and looks as it should."""

import numpy as np
import pytest

from tests.experiments.made import made_results
from unflip import ImportanceReweightingClassifier, NoiseRates, flip_labels
from unflip.paper.experiments import save_results
from unflip.report import Report, make_report

RATES = NoiseRates(positive=0.3, negative=0.1)


@pytest.fixture(scope="module")
def made():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400)
    X = rng.normal(2.4 * y[:, None], 1.0, (400, 2))
    noisy = flip_labels(y, RATES, random_state=0)
    clf = ImportanceReweightingClassifier(noise_rates=RATES, random_state=0).fit(X, noisy)
    return make_report(clf, X, noisy)


@pytest.fixture(scope="module")
def report(made):
    return made.to_html()


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


NAMES, SHARES = "abcd" * 4, (0.095, 0.0001, 0.12, 10.0) * 4
SLICES = {
    "by": "'shop'",
    "sentence": "",
    "slices": [
        {"name": name, "n_rows": 9, "label_error_rate": share, "interval": [0.0, 0.13]}
        for name, share in zip(NAMES, SHARES, strict=True)
    ],
    "overall": {"label_error_rate": 0.1, "interval": [0.0, 0.2]},
}
SUSPECTS = [
    {
        "row": k,
        "label": f"{name} of {share or 0}",
        "suggested": name,
        "unclear": False,
        "p_wrong": 0.9,
        "p_none": 0.0,
        "values": {"share": share} | {f"column {j}": f"word{k}" for j in range(9)},
    }
    for k, (name, share) in enumerate(zip("abcde" * 3, (1.5, "", 3.0, None, 2.0) * 3, strict=True))
]


@pytest.fixture(scope="module")
def listing(made):
    """Return a report with tables of many rows."""
    return Report(made.content | {"slices": [SLICES], "suspects": SUSPECTS}).to_html()


def shown(page, head, column):
    """Return the first characters of a column of the table that has this head."""
    cells = page.evaluate(
        "([head, column]) => [...[...document.querySelectorAll('table.sortable')]"
        ".find(t => t.tHead.textContent.includes(head)).tBodies[0].rows]"
        ".filter(row => !row.hidden).map(row => row.cells[column].textContent)",
        [head, column],
    )
    return "".join(cell[0] for cell in cells)


def test_rows_are_sorted_by_numbers_and_by_words_gaps_last(opened, listing):
    page, asked, said = opened(listing)
    rate = "th button:has-text('wrong labels')"
    page.click(rate)
    assert shown(page, "shop", 0) == "bbbbaaaaccccdddd"
    page.click(rate)
    assert shown(page, "shop", 0) == "ddddccccaaaabbbb"
    page.click("th button:has-text('share')")
    assert shown(page, "P(wrong)", 1) == "aaaeeecccbdbdbd"
    page.click("th button:has-text('suggested')")
    assert shown(page, "P(wrong)", 1) == "aaabbbcccdddeee"
    # the details are in the same order, and still before what follows them
    lines = page.eval_on_selector_all("summary strong", "all => all.map(s => s.textContent[0])")
    assert "".join(lines) == "aaabbbcccdddeee"
    assert (
        page.evaluate("[...document.querySelectorAll('details')].at(-1).nextElementSibling.tagName")
        == "SPAN"
    )
    assert (asked, said) == ([], [])


def test_rows_are_filtered_by_words_of_theirs_and_of_what_opens(opened, listing):
    page, _, _ = opened(listing)
    box = "p.tools:has(+ .table th button:has-text('P(wrong)'))"
    page.fill(f"{box} input", "3.0 C")
    assert shown(page, "P(wrong)", 1) == "ccc"
    assert page.text_content(f"{box} output") == "3 of 15 rows"
    page.fill(f"{box} input", "word13")
    assert shown(page, "P(wrong)", 1) == "d"
    assert page.eval_on_selector_all("details", "all => all.filter(d => !d.hidden).length") == 1
    page.fill(f"{box} input", "")
    assert len(shown(page, "P(wrong)", 1)) == 15
    assert page.text_content(f"{box} output") == ""


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


def test_drawings_with_styles_of_their_own_keep_them(opened, report, tmp_path):
    assert "unsafe-inline" not in report
    save_results(made_results(["figure1"]), 2, tmp_path)
    page, asked, said = opened((tmp_path / "index.html").read_text(encoding="utf-8"))
    assert (asked, said) == ([], [])
    assert style_of(page, "svg [style*='stroke: #']", "stroke").startswith("rgb")
