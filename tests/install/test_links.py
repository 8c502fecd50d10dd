"""Links between the files of the project lead somewhere."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    path
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("benchmarks/*.md")]
    if "_build" not in path.parts and "auto_examples" not in path.parts
)
LINK = re.compile(r"(?<!`)!?\[[^\]]*\]\(([^()\s]+)\)|(?:src|srcset|href)=\"([^\"]+)\"")
FENCED = re.compile(r"^ *(```+).*?^ *\1", re.DOTALL | re.MULTILINE)
MADE = {"auto_examples", "reference"}
"""Folders that `make docs` writes."""


def links(path: Path) -> list[str]:
    text = FENCED.sub("", path.read_text(encoding="utf-8"))
    return [a or b for a, b in LINK.findall(text)]


def anchors(path: Path) -> set[str]:
    """Return the names by which the headings of a page are linked to."""
    headings = re.findall(r"(?m)^#+ (.+)$", FENCED.sub("", path.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_local_links_lead_to_files_and_headings(page: Path) -> None:
    lost = []
    for link in links(page):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        example = target.stem + ".py"
        if MADE & set(Path(name).parts):
            known = target.stem == "index" or (ROOT / "examples" / example).exists()
        else:
            known = target.exists()
        if not known or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            lost.append(link)
    assert not lost


def test_there_are_pages_to_look_at() -> None:
    if not (ROOT / "docs").exists():
        pytest.skip("docs are not in this copy")
    assert len(PAGES) > 30
    assert sum(len(links(page)) for page in PAGES) > 150
