"""Blocks as Markdown and as one HTML file: what is escaped, grouped, and left to nobody else."""

import re
from html.parser import HTMLParser

import pytest

from unflip._app.report import Cell, Heading, Picture, Table, Text, to_html, to_markdown

SVG = (
    '<?xml version="1.0"?>\n<!DOCTYPE svg>\n'
    '<svg xmlns="http://www.w3.org/2000/svg"><path d="M 0 0"/></svg>\n'
)
VOID = {"meta", "path"}


class Tags(HTMLParser):
    """Check that tags are closed in the order in which they were opened, and keep text by tag."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open, self.found = [], []
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag


def body_of(*blocks) -> str:
    page = to_html("title", blocks)
    Tags(page)
    return page.partition("<main>\n")[2].partition("\n</main>")[0]


def test_html_shows_special_characters_as_they_are():
    body = body_of(Heading("a < b & c"), Text('<script>alert("x")</script>'))
    assert "<h2>a &lt; b &amp; c</h2>" in body
    assert "<script" not in body
    assert "&lt;script&gt;" in body


def test_the_title_and_the_words_for_a_picture_are_escaped():
    assert "<title>a &lt; b</title>" in to_html("a < b", [])
    body = body_of(Picture("p.svg", SVG, 'rates "low" & <high>'))
    assert 'aria-label="rates &quot;low&quot; &amp; &lt;high&gt;"' in body


def test_table_cells_heads_and_captions_are_escaped_in_html():
    body = body_of(Table(("a&b",), ((Cell("x<y", "p>q"),),), "c<d"))
    for expected in ("a&amp;b", "x&lt;y", "p&gt;q", "<caption>c&lt;d</caption>"):
        assert expected in body


def test_bold_and_code_go_through_to_html():
    body = body_of(Text("**two** of `a < b` and **three**"))
    assert body == (
        "<p><strong>two</strong> of <code>a &lt; b</code> and <strong>three</strong></p>"
    )


def test_markdown_escapes_the_bar_in_tables_only():
    markdown = to_markdown([Text("P(y|x)"), Table(("P(y|x)", "b"), ((Cell("c|d"), Cell("e")),))])
    assert markdown.startswith("P(y|x)\n")
    assert "| P(y\\|x) | b |" in markdown
    assert "| c\\|d | e |" in markdown


def test_markdown_keeps_text_and_headings_as_they_are():
    markdown = to_markdown([Heading("One", 1), Text("**two** `three`"), Heading("Four", 3)])
    assert markdown == "# One\n\n**two** `three`\n\n### Four\n"


@pytest.mark.parametrize("level", [1, 2, 3])
def test_headings_keep_their_level(level):
    assert body_of(Heading("x", level)) == f"<h{level}>x</h{level}>"
    assert to_markdown([Heading("x", level)]) == "#" * level + " x\n"


ITEMS = [Text("before"), Text("a", item=True), Text("b", item=True), Text("after")]


def test_items_that_follow_one_another_are_one_list():
    assert body_of(*ITEMS).split("\n") == [
        *("<p>before</p>", "<ul>", "<li>a</li>", "<li>b</li>", "</ul>", "<p>after</p>"),
    ]
    assert to_markdown(ITEMS) == "before\n\n- a\n- b\n\nafter\n"


def test_a_list_at_the_end_of_the_page_is_closed():
    assert body_of(*ITEMS[:3]).endswith("<li>b</li>\n</ul>")


def test_lists_apart_are_two_lists():
    body = body_of(ITEMS[1], Heading("between"), ITEMS[2])
    assert body.count("<ul>") == body.count("</ul>") == 2


def test_a_picture_is_drawn_in_html_and_named_in_markdown():
    picture = Picture("rates.svg", SVG, "The rates")
    assert to_markdown([picture]) == "![The rates](rates.svg)\n"
    body = body_of(picture)
    assert '<svg xmlns="http://www.w3.org/2000/svg"><path d="M 0 0"/></svg>' in body
    assert "<?xml" not in body
    assert "DOCTYPE" not in body


TABLE = Table(
    ("data", "noise", "ours"),
    (
        (Cell("heart"), Cell("(0.2, 0.2)"), Cell("71", "70", bold=True, shade=1)),
        (Cell("image"), Cell("(0.2, 0.2)"), Cell("90", "80", below_bold=True, shade=2)),
        (Cell("german"), Cell("(0.2, 0.2)"), Cell("60", shade=-2)),
    ),
    "Accuracy.",
    n_labels=2,
)


def test_a_markdown_table_has_its_caption_rule_marks_and_bold():
    assert to_markdown([TABLE]).splitlines() == [
        "*Accuracy.*",
        "",
        "| data | noise | ours |",
        "| --- | --- | ---: |",
        "| heart | (0.2, 0.2) | **71**<br>70 |",
        "| image | (0.2, 0.2) | 90 ▲<br>**80** |",
        "| german | (0.2, 0.2) | 60 ▼ |",
    ]


def test_an_html_table_has_its_caption_row_headers_shades_and_bold():
    body = body_of(TABLE)
    assert "<caption>Accuracy.</caption>" in body
    assert body.count('<th scope="col" class=label>') == 2
    assert body.count('<th scope="col">') == 1
    assert body.count('<th scope="row">') == 6
    cells = re.findall(r"<td.*?</td>", body)
    assert cells == [
        '<td class="shade+1"><strong>71</strong><small><span>70</span></small></td>',
        '<td class="shade+2"><span>90</span> ▲<small><strong>80</strong></small></td>',
        '<td class="shade-2"><span>60</span> ▼</td>',
    ]


def test_every_shade_has_a_style():
    page = to_html("title", [])
    for shade in ("shade-2", "shade-1", r"shade\+1", r"shade\+2"):
        assert f"td.{shade} {{ background" in page


def test_a_table_without_a_caption_has_none():
    table = Table(("a",), ((Cell("1"),),))
    assert "<caption" not in body_of(table)
    assert to_markdown([table]) == "| a |\n| --- |\n| 1 |\n"


def test_the_page_is_readable_on_a_phone_and_needs_no_other_file():
    page = to_html("title", [*ITEMS, TABLE, Picture("p.svg", SVG, "x")])
    tags = Tags(page).found
    assert ("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}) in tags
    assert ("meta", {"charset": "utf-8"}) in tags
    assert ("html", {"lang": "en"}) in tags
    assert not {tag for tag, _ in tags} & {"script", "link", "img", "iframe", "object"}
    assert not re.search(r"@import|url\((?!#)", page)
    assert set(re.findall(r"https?://[^/\"]+", page)) <= {"http://www.w3.org"}
    # a wide table is moved sideways within the page
    assert ("div", {"class": "table", "tabindex": "0"}) in tags
