"""The API reference: `_templates/reference.rst`, with the public names that it does not list."""

import re
from importlib import import_module
from pathlib import Path

TEMPLATE = Path(__file__).parent / "_templates" / "reference.rst"
PAGE = Path(__file__).parent / "reference" / "index.rst"


def completed(text: str) -> str:
    """Return the page: a line `...` in a table becomes the rest of the module's `__all__`."""
    head, *sections = re.split(r"(?m)^\.\. currentmodule:: ", text)
    for section in sections:
        if "   ...\n" in section:
            names = import_module(section.partition("\n")[0]).__all__
            # constants are named in a sentence
            others = [name for name in names if not re.search(rf"(?m)^   {name}$|``{name}``", text)]
            section = section.replace("   ...\n", "".join(f"   {name}\n" for name in others))
        head += f".. currentmodule:: {section}"
    return head


def write_page() -> None:
    """Write the page where it has changed, so that an unchanged one is not read again."""
    page = completed(TEMPLATE.read_text(encoding="utf-8"))
    PAGE.parent.mkdir(exist_ok=True)
    if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != page:
        PAGE.write_text(page, encoding="utf-8")
