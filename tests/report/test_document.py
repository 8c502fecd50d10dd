"""Blocks as Markdown and as one HTML file: what is escaped, grouped, and left to nobody else."""

import re
from html.parser import HTMLParser

from unflip._app.report import Cell, Table, Text, to_html, to_markdown

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


def test_markdown_escapes_the_bar_in_tables_only():
    markdown = to_markdown([Text("P(y|x)"), Table(("P(y|x)", "b"), ((Cell("c|d"), Cell("e")),))])
    assert markdown.startswith("P(y|x)\n")
    assert "| P(y\\|x) | b |" in markdown
    assert "| c\\|d | e |" in markdown


ITEMS = [Text("before"), Text("a", item=True), Text("b", item=True), Text("after")]


def test_items_that_follow_one_another_are_one_list():
    assert body_of(*ITEMS).split("\n") == [
        *("<p>before</p>", "<ul>", "<li>a</li>", "<li>b</li>", "</ul>", "<p>after</p>"),
    ]
    assert to_markdown(ITEMS) == "before\n\n- a\n- b\n\nafter\n"


def test_a_list_at_the_end_of_the_page_is_closed():
    assert body_of(*ITEMS[:3]).endswith("<li>b</li>\n</ul>")


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
        '<td class="shade+1"><strong>71</strong> <small><span>70</span></small></td>',
        '<td class="shade+2"><span>90</span> ▲ <small><strong>80</strong></small></td>',
        '<td class="shade-2"><span>60</span> ▼</td>',
    ]
