"""A page from plain parts, and the page on noisy labels, as one HTML file, Markdown or JSON."""

from unflip._app.report._document import (
    Block,
    Cell,
    Details,
    Heading,
    Picture,
    Table,
    Text,
    to_fragment,
    to_html,
    to_markdown,
)
from unflip._app.report._findings import findings
from unflip._app.report._report import Report, make_report
from unflip._app.report._svg import Mark, draw_histogram

__all__ = [
    "Block",
    "Cell",
    "Details",
    "Heading",
    "Mark",
    "Picture",
    "Report",
    "Table",
    "Text",
    "draw_histogram",
    "findings",
    "make_report",
    "to_fragment",
    "to_html",
    "to_markdown",
]
