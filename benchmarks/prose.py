"""Size and language of the pages: `python -m benchmarks.prose [folder ...]`.

Counts the pages and words of the user guide, the lines of the README, and the occurrences of
patterns that the project avoids, outside code and quotes. With the folders of two checkouts it
shows both. `--where` lists the lines.
"""

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

METAPHORS = (
    r"blame\w* witness\w* taught teach\w* peaks? climb\w* bumps? worlds? judge[sd]? desk "
    r"doubt\w* sharpen\w* plateaus? junk blurred scout\w* hopeless\w* beliefs? believe[sd]? "
    r"refute\w* doors? houses? walks? rooms? sittings? spoilt mends? mended"
)
PATTERNS = {
    "so many, so often as a placeholder": r"\bso (many|often|few)\b",
    "'Of more ...' as a condition": r"(?:^|[.:;]\s+)(?-i:Of) (more|many|few|a|two|columns|rows)\b",
    "agentless 'is said', 'is told'": r"\b(is|are|was|were|be) (said|told|doubted)\b",
    "message without a next step": r"\bwould tell\b",
    "metaphors": rf"\b({METAPHORS.replace(' ', '|')})\b",
    "wrong share, given label, gaps": r"\b(wrong shares?|given labels?|gaps)\b",
    "sure rows, made-up, beside others": r"\b(sure rows|surely|made-up|beside others|by lot)\b",
}
UNREAD = re.compile(
    r"```+.*?^ *```+|\$\$.*?\$\$|\$[^$\n]+\$|`[^`\n]*`|\]\([^)]*\)|\"[^\"\n]{1,80}\"|<!--.*?-->",
    re.DOTALL | re.MULTILINE,
)
"""Code, formulas, targets of links, and quotes."""


def pages(root: Path) -> list[Path]:
    """Return the pages that people write."""
    made = ("_build", "auto_examples", "reference", "reproduction")
    found = [*root.glob("*.md"), *(root / "docs").rglob("*.md")]
    return sorted(path for path in found if not set(made) & set(path.parts))


def occurrences(path: Path) -> Iterator[tuple[str, int, str]]:
    """Yield each pattern that a page has, its line and the words."""
    text = UNREAD.sub(lambda found: "\n" * found[0].count("\n") or " x ", path.read_text("utf-8"))
    for name, pattern in PATTERNS.items():
        for found in re.finditer(pattern, text, re.IGNORECASE | re.MULTILINE):
            yield name, text.count("\n", 0, found.start()) + 1, found[0].strip()


def measure(root: Path) -> dict[str, int]:
    """Return the counts of one checkout."""
    guide = sorted((root / "docs" / "user_guide").glob("*.md"))
    texts = [path.read_text("utf-8") for path in guide]
    counts = {
        "pages of the guide": len(guide),
        "words of the guide": sum(len(text.split()) for text in texts),
        "lines of the README": len((root / "README.md").read_text("utf-8").splitlines()),
    }
    counts |= dict.fromkeys(PATTERNS, 0)
    for path in pages(root):
        for name, _, _ in occurrences(path):
            counts[name] += 1
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path, default=[Path()])
    parser.add_argument("--where", action="store_true", help="list the lines")
    options = parser.parse_args()
    columns = [measure(folder) for folder in options.folders]
    for name in columns[0]:
        print(f"{name:36}", *(f"{column[name]:>8,}" for column in columns))
    if options.where:
        for path in pages(options.folders[-1]):
            for _, line, words in occurrences(path):
                print(f"{path}:{line}: {words}")


if __name__ == "__main__":
    main()
