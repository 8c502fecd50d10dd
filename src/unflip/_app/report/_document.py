"""Blocks of a page, written as HTML or Markdown.

Text may hold **bold** and `code`; a backslash escapes such a mark, as `plain` does for data. HTML
shows everything else literally; Markdown is not escaped.
"""

import base64
import hashlib
import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources

from unflip._app.markup import ESCAPED

ASIDE = 0xF0000
"""Start of the private-use code points that stand for escaped marks while others are replaced."""

MARKS = {-2: "▼", -1: "", 0: "", 1: "", 2: "▲"}
"""Marks of shaded figures, for readers and printers that cannot distinguish the shades."""

LONG_WORDS = 24
"""Number of characters beyond which the text of a cell wraps."""

LONG_PAGE = 4
"""Minimum number of headings of a page with a table of contents."""


@dataclass(frozen=True)
class Heading:
    """A heading of level 1, 2 or 3."""

    text: str
    level: int = 2


@dataclass(frozen=True)
class Text:
    """A paragraph or a list item; a lead is larger, a warning is in a red box."""

    text: str
    item: bool = False
    lead: bool = False
    warning: bool = False


@dataclass(frozen=True)
class Cell:
    """A figure, and below it a second one to compare with."""

    text: str
    below: str = ""
    bold: bool = False
    below_bold: bool = False
    shade: int = 0
    """From -2 (far below the other figure) to 2 (far above)."""
    words: bool = False
    """Whether it is text, aligned left."""


@dataclass(frozen=True)
class Table:
    """Rows of cells; the first `n_labels` columns name the row."""

    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    caption: str = ""
    n_labels: int = 1
    sortable: bool = False
    """Whether readers can sort and filter the rows, with the details that follow the table."""


@dataclass(frozen=True)
class Picture:
    """A drawing in SVG."""

    name: str
    """Name of its file beside the Markdown page."""
    svg: str
    alternative: str
    """Alternative text."""


@dataclass(frozen=True)
class Details:
    """A line that unfolds into names and values."""

    line: str
    values: tuple[tuple[str, str], ...]


Block = Heading | Text | Table | Picture | Details


def to_markdown(blocks: Sequence[Block]) -> str:
    """Return the page as Markdown, which refers to pictures by name."""
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
            case Details(line, values):
                told = "; ".join(f"{name}: {value}" for name, value in values)
                parts.append(f"{line}: {told}")
    return "".join(parts).strip() + "\n"


def to_html(title: str, blocks: Sequence[Block]) -> str:
    """Return the page as one self-contained HTML file."""
    style = _own_file("page.css")
    has_script = any(isinstance(block, Table) and block.sortable for block in blocks)
    script = _own_file("page.js") if has_script else None
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(style, script, blocks)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n<main>\n"
        + _body(blocks)
        + "\n</main>\n"
        + ("" if script is None else f"<script>{script}</script>\n")
        + "</body>\n</html>\n"
    )


def pictures_of(blocks: Sequence[Block]) -> dict[str, str]:
    """Return the pictures of a page by name, as SVG."""
    return {block.name: block.svg for block in blocks if isinstance(block, Picture)}


def _own_file(name: str) -> str:
    text = resources.files("unflip._app.report").joinpath(name).read_text(encoding="utf-8")
    return f"\n{text}"


def _policy(style: str, script: str | None, blocks: Sequence[Block]) -> str:
    """Return the content security policy: the page loads nothing and runs only its own script."""
    # matplotlib's drawings have style attributes; without them only the page's style is allowed
    drawings = pictures_of(blocks).values()
    has_styles = any(re.search(r"<style\b|<[^<>]*\sstyle\s*=", drawing) for drawing in drawings)
    styles = "'unsafe-inline'" if has_styles else _digest(style)
    scripts = "" if script is None else f"script-src {_digest(script)}; "
    return (
        f"default-src 'none'; {scripts}style-src {styles}; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )


def _digest(text: str) -> str:
    """Return the hash by which a policy allows this text only."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def to_fragment(blocks: Sequence[Block], *, anchors: bool = False) -> str:
    """Return the blocks as HTML without a page around them."""
    parts = []
    previous_is_item = False
    for block in blocks:
        is_item = isinstance(block, Text) and block.item
        if is_item != previous_is_item:
            parts.append("<ul>" if is_item else "</ul>")
        previous_is_item = is_item
        match block:
            case Heading(text, level):
                if anchors and level == 2:
                    parts.append(f'<span id="{anchor(text)}"></span>')
                parts.append(f"<h{level}>{_inline(text)}</h{level}>")
            case Text(text, item, lead, warning):
                tag = "li" if item else "p"
                kind = " ".join(["lead"] * lead + ["warning"] * warning)
                opening = f'{tag} class="{kind}"' if kind else tag
                parts.append(f"<{opening}>{_inline(text)}</{tag}>")
            case Table():
                parts.append(_html_table(block))
            case Picture(_, svg, alternative):
                drawing = svg[svg.index("<svg") :]
                label = html.escape(alternative, quote=True)
                parts.append(f'<figure role="img" aria-label="{label}">{drawing}</figure>')
            case Details(line, values):
                told = "".join(
                    f"<dt>{_inline(name)}</dt><dd>{_inline(value)}</dd>" for name, value in values
                )
                parts.append(
                    f"<details><summary>{_inline(line)}</summary><dl>{told}</dl></details>"
                )
    if previous_is_item:
        parts.append("</ul>")
    return "\n".join(parts)


def anchor(text: str) -> str:
    """Return the id of a heading."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _body(blocks: Sequence[Block]) -> str:
    """Return the blocks; a long page gets links to its headings of level 2 after the title."""
    names = [b.text for b in blocks if isinstance(b, Heading) and b.level == 2]
    if len(names) < LONG_PAGE:
        return to_fragment(blocks)
    links = " ".join(f'<a href="#{anchor(name)}">{_inline(name)}</a>' for name in names)
    title, rest = to_fragment(blocks[:1]), to_fragment(blocks[1:], anchors=True)
    return f'{title}\n<nav aria-label="On this page">{links}</nav>\n{rest}'


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
            text += f" <small><{strong}>{_inline(part.below)}</{strong}></small>"
        return text

    first = table.rows[0] if table.rows else ()
    is_left = [k < table.n_labels or (first and first[k].words) for k in range(len(table.head))]
    head = "".join(
        f'<th scope="col"{" class=label" if left else ""}>{_inline(text)}</th>'
        for left, text in zip(is_left, table.head, strict=True)
    )
    body = []
    for row in table.rows:
        labels, figures = row[: table.n_labels], row[table.n_labels :]
        cells = [f'<th scope="row">{figure(part)}</th>' for part in labels]
        for part in figures:
            kinds = [f"shade{part.shade:+d}"] if part.shade else []
            kinds += ["words"] if part.words else []
            kinds += ["long"] if part.words and len(part.text) > LONG_WORDS else []
            names = f' class="{" ".join(kinds)}"' if kinds else ""
            cells.append(f"<td{names}>{figure(part)}</td>")
        body.append(f"<tr>{''.join(cells)}</tr>")
    caption = f"<caption>{_inline(table.caption)}</caption>" if table.caption else ""
    kind = ' class="sortable"' if table.sortable else ""
    return (
        f'<div class="table" tabindex="0"><table{kind}>{caption}<thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table></div>"
    )


def _inline(text: str) -> str:
    """Escape the text, then let **bold** and `code` through."""
    aside = ESCAPED.sub(lambda mark: chr(ASIDE + ord(mark[1])), text)
    escaped = html.escape(aside)
    escaped = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", escaped)
    escaped = re.sub(r"`(.+?)`", r"<code>\1</code>", escaped)
    return re.sub(
        f"[{chr(ASIDE)}-{chr(ASIDE + 127)}]",
        lambda mark: html.escape(chr(ord(mark[0]) - ASIDE)),
        escaped,
    )
