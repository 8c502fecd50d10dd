"""The diagram of packages in CONTRIBUTING.md: `python -m benchmarks.packages` writes it.

The order is that of the layers in `.importlinter`, the text the first sentence of each docstring.
"""

import ast
import re
from configparser import ConfigParser
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "CONTRIBUTING.md"
BLOCK = re.compile(r"(?s)(<!-- `python -m benchmarks\.packages` -->\n\n```text\n).*?(```)")


def diagram() -> str:
    """Return one line for each module, from those that import to those that are imported."""
    config = ConfigParser()
    config.read(ROOT / ".importlinter")
    layers = config["importlinter:contract:stages"]["layers"].split("\n")
    rows = [
        (name.strip(), purpose(name.strip())) for line in layers if line for name in line.split("|")
    ]
    width = max(len(name) for name, _ in rows) + 2
    return "".join(f"{name:{width}}{text}\n" for name, text in rows)


def purpose(name: str) -> str:
    """Return the first sentence of a module's docstring, without its full stop."""
    path = ROOT / "src" / "unflip" / name
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return text.split("\n")[0].removesuffix(".")


def main() -> None:
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(
        BLOCK.sub(lambda found: found[1] + diagram() + found[2], text), encoding="utf-8"
    )


if __name__ == "__main__":
    main()
