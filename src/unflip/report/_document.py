"""Blocks of a page, and the two ways to write them down.

Text may hold **bold** and `code`. HTML shows all else as it is; Markdown is not escaped.
"""

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources

MARKS = {-2: "▼", -1: "", 0: "", 1: "", 2: "▲"}
"""Beside a shaded figure, for eyes and printers that do not tell the shades apart."""


@dataclass(frozen=True)
class Heading:
    """A heading of level 1, 2 or 3."""

    text: str
    level: int = 2


@dataclass(frozen=True)
class Text:
    """A paragraph, or one item of a list."""

    text: str
    item: bool = False


@dataclass(frozen=True)
class Cell:
    """A figure, and what to compare it with below it."""

    text: str
    below: str = ""
    bold: bool = False
    below_bold: bool = False
    shade: int = 0
    """From -2 (far below the other figure) to 2 (far above)."""


@dataclass(frozen=True)
class Table:
    """Rows of cells; the first `n_labels` columns name the row."""

    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    caption: str = ""
    n_labels: int = 1


@dataclass(frozen=True)
class Picture:
    """A drawing in SVG."""

    name: str
    """Of its file, beside the Markdown page."""
    svg: str
    alternative: str
    """What it shows, in words."""


Block = Heading | Text | Table | Picture


def to_markdown(blocks: Sequence[Block]) -> str:
    """Return the page as Markdown; pictures are referred to by name.

    Parameters
    ----------
    blocks : sequence of blocks
        The page, from top to bottom.
    """
    parts = []
    previous_is_item = False
    for block in blocks:
        is_item = isinstance(block, Text) and block.item
        parts.append("\n" if is_item and previous_is_item else "\n\n")
        previous_is_item = is_item
        match block:
            case Heading(text, level):
                parts.append(f"{'#' * level} {text}")
            case Text(text, item):
                parts.append(f"- {text}" if item else text)
            case Table():
                parts.append(_markdown_table(block))
            case Picture(name, _, alternative):
                parts.append(f"![{alternative}]({name})")
    return "".join(parts).strip() + "\n"


def to_html(title: str, blocks: Sequence[Block]) -> str:
    """Return the page as one HTML file that needs nothing else.

    Parameters
    ----------
    title : str
        Of the browser's window.
    blocks : sequence of blocks
        The page, from top to bottom.
    """
    parts = []
    previous_is_item = False
    for block in blocks:
        is_item = isinstance(block, Text) and block.item
        if is_item != previous_is_item:
            parts.append("<ul>" if is_item else "</ul>")
        previous_is_item = is_item
        match block:
            case Heading(text, level):
                parts.append(f"<h{level}>{_inline(text)}</h{level}>")
            case Text(text, item):
                tag = "li" if item else "p"
                parts.append(f"<{tag}>{_inline(text)}</{tag}>")
            case Table():
                parts.append(_html_table(block))
            case Picture(_, svg, alternative):
                drawing = svg[svg.index("<svg") :]
                label = html.escape(alternative, quote=True)
                parts.append(f'<figure role="img" aria-label="{label}">{drawing}</figure>')
    if previous_is_item:
        parts.append("</ul>")
    style = resources.files("unflip.report").joinpath("page.css").read_text(encoding="utf-8")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(parts)
        + "\n</main>\n</body>\n</html>\n"
    )


def _markdown_table(table: Table) -> str:
    def cell(part: Cell) -> str:
        text = f"**{part.text}**" if part.bold else part.text
        below = f"**{part.below}**" if part.below_bold else part.below
        figure = " ".join(word for word in (text, MARKS[part.shade]) if word)
        return f"{figure}<br>{below}" if below else figure

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(text.replace("|", "\\|") for text in cells) + " |"

    n_figures = len(table.head) - table.n_labels
    rule = ["---"] * table.n_labels + ["---:"] * n_figures
    lines = [line(table.head), line(rule)]
    lines += [line([cell(part) for part in row]) for row in table.rows]
    caption = [f"*{table.caption}*", ""] if table.caption else []
    return "\n".join([*caption, *lines])


def _html_table(table: Table) -> str:
    def figure(part: Cell) -> str:
        strong = "strong" if part.bold else "span"
        mark = MARKS[part.shade]
        text = f"<{strong}>{_inline(part.text)}</{strong}>{f' {mark}' if mark else ''}"
        if part.below:
            strong = "strong" if part.below_bold else "span"
            text += f"<small><{strong}>{_inline(part.below)}</{strong}></small>"
        return text

    head = "".join(
        f'<th scope="col"{" class=label" if k < table.n_labels else ""}>{_inline(text)}</th>'
        for k, text in enumerate(table.head)
    )
    body = []
    for row in table.rows:
        labels, figures = row[: table.n_labels], row[table.n_labels :]
        cells = [f'<th scope="row">{figure(part)}</th>' for part in labels]
        for part in figures:
            shade = f' class="shade{part.shade:+d}"' if part.shade else ""
            cells.append(f"<td{shade}>{figure(part)}</td>")
        body.append(f"<tr>{''.join(cells)}</tr>")
    caption = f"<caption>{_inline(table.caption)}</caption>" if table.caption else ""
    return (
        f'<div class="table" tabindex="0"><table>{caption}<thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table></div>"
    )


def _inline(text: str) -> str:
    """Escape the text, then let **bold** and `code` through."""
    escaped = html.escape(text)
    escaped = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", escaped)
    return re.sub(r"`(.+?)`", r"<code>\1</code>", escaped)
