"""HTML and SVG, read strictly."""

import re
from html.parser import HTMLParser
from xml.etree import ElementTree

VOID = {"meta", "path", "rect", "circle"}
SPACE = "{http://www.w3.org/2000/svg}"


class Tags(HTMLParser):
    """Check that tags are closed in the order in which they were opened, and keep them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open, self.found = [], []
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        if tag == "li":
            assert self.open[-1] == "ul"
        if tag not in VOID:
            self.open.append(tag)
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag


def drawing(page: str, words: str) -> ElementTree.Element:
    """Return the picture of a page whose alternative text starts with these words."""
    figure = page.split(f'<figure role="img" aria-label="{words}')[1]
    return ElementTree.fromstring(figure[figure.index("<svg") : figure.index("</figure>")])  # noqa: S314


def bars(picture: ElementTree.Element, series: int) -> list[dict[str, str]]:
    """Return the bars of one colour, without the square of the legend."""
    found = picture.iter(f"{SPACE}rect")
    return [bar.attrib for bar in found if bar.get("class") == f"series{series}"]


def scale(picture: ElementTree.Element) -> list[float]:
    """Return the numbers of the vertical scale."""
    texts = [text.text or "" for text in picture.iter(f"{SPACE}text") if text.get("class") == "end"]
    return [float(text) for text in texts if re.fullmatch(r"[\d.e+]+", text)]
