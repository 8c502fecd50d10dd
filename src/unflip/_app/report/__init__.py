"""The page on noisy labels, and the blocks of which it and the page on the paper are made."""

from unflip._app.report._document import (
    Block,
    Cell,
    Details,
    Heading,
    Picture,
    Table,
    Text,
    pictures_of,
    to_html,
    to_markdown,
)
from unflip._app.report._report import Report, make_report

__all__ = [
    "Block",
    "Cell",
    "Details",
    "Heading",
    "Picture",
    "Report",
    "Table",
    "Text",
    "make_report",
    "pictures_of",
    "to_html",
    "to_markdown",
]
