"""A page from plain parts: headings, text, tables and pictures, as Markdown or as one HTML file."""

from unflip.report._document import (
    Block,
    Cell,
    Heading,
    Picture,
    Table,
    Text,
    to_html,
    to_markdown,
)

__all__ = [
    "Block",
    "Cell",
    "Heading",
    "Picture",
    "Table",
    "Text",
    "to_html",
    "to_markdown",
]
