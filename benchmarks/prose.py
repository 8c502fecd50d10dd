"""Size and language of the pages: `python -m benchmarks.prose [folder ...]`.

Counts the pages and words of the user guide, the lines of the README, the occurrences of patterns
that the project avoids in pages (outside code and quotes) and in the comments and texts of the
source, and numpydoc sections of private names. With the folders of two checkouts it shows both.
`--where` lists the lines.
"""

import argparse
import ast
import io
import re
import tokenize
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
    "agentless 'is said', 'is told'": r"\b(is|are|was|were|be) (said|told|doubted)\b(?! apart)",
    "message without a next step": r"\bwould tell\b",
    "metaphors": rf"\b({METAPHORS.replace(' ', '|')})\b",
    "wrong share, given label, gaps": r"\b(wrong shares?|given labels?|gaps)\b",
    "sure rows, made-up, beside others": r"\b(sure rows|made-up|beside others|by lot)\b",
}
UNREAD = re.compile(
    r"```+.*?^ *```+|\$\$.*?\$\$|\$[^$\n]+\$|`[^`\n]*`|\]\([^)]*\)|\"[^\"\n]{1,80}\"|<!--.*?-->",
    re.DOTALL | re.MULTILINE,
)
"""Code, formulas, targets of links, and quotes."""
SECTION = re.compile(r"(?m)^(Parameters|Returns|Attributes|Raises)\n-{3,}$")


def pages(root: Path) -> list[Path]:
    """Return the pages that people write."""
    made = ("_build", "auto_examples", "reference", "reproduction")
    found = [*root.glob("*.md"), *(root / "docs").rglob("*.md")]
    return sorted(path for path in found if not set(made) & set(path.parts))


def words_of(source: str) -> Iterator[tuple[int, str]]:
    """Yield the comments and strings of a module, each with its line."""
    texts = (tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", None))
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in texts and re.search(r"\s", token.string):
            yield token.start[0], re.sub(r"`[^`\n]*`|(?m:^ *(>>>|\.\.\.).*$)", " x ", token.string)


def source_occurrences(path: Path) -> Iterator[tuple[str, int, str]]:
    """Yield each pattern in the comments and strings of a module, its line and the words."""
    for line, text in words_of(path.read_text("utf-8")):
        for name, pattern in PATTERNS.items():
            for found in re.finditer(pattern, text, re.IGNORECASE | re.MULTILINE):
                yield name, line + text.count("\n", 0, found.start()), found[0].strip()


def private_docstrings(path: Path) -> Iterator[str]:
    """Yield the docstrings of functions and classes whose names begin with an underscore."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and re.match(r"_[^_]", node.name):
            yield ast.get_docstring(node) or ""


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
    source = sorted((root / "src").rglob("*.py"))
    counts["patterns in the source"] = sum(1 for path in source for _ in source_occurrences(path))
    counts["numpydoc sections of private names"] = sum(
        bool(SECTION.search(text)) for path in source for text in private_docstrings(path)
    )
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
        for path in sorted((options.folders[-1] / "src").rglob("*.py")):
            for _, line, words in source_occurrences(path):
                print(f"{path}:{line}: {words}")


if __name__ == "__main__":
    main()
