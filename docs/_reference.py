"""The API reference: pages by topic from `_templates/reference.rst`, and what they say of returns.

The template is one text: a topic is underlined with `=`, a module with `-`. Every module becomes a
page, and the first page lists them by topic.
"""

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

TEMPLATE = Path(__file__).parent / "_templates" / "reference.rst"
FOLDER = Path(__file__).parent / "reference"
SECTION = r"(?m)^\s*(?:{})\n\s*-+$"


def completed(text: str) -> str:
    """Return the template: a line `...` in a table becomes the rest of the module's `__all__`."""
    head, *sections = re.split(r"(?m)^\.\. currentmodule:: ", text)
    for section in sections:
        if "   ...\n" in section:
            names = import_module(section.partition("\n")[0]).__all__
            # constants are named in a sentence
            others = [name for name in names if not re.search(rf"(?m)^   {name}$|``{name}``", text)]
            section = section.replace("   ...\n", "".join(f"   {name}\n" for name in others))
        head += f".. currentmodule:: {section}"
    return head


def pages(text: str) -> dict[str, str]:
    """Return the pages of a completed template by their names, `index` first."""
    topics = _headed(text, "=")
    title, introduction = next(topics)
    index, made = f"{title}\n{'=' * len(title)}\n\n{introduction}\n", {}
    for topic, body in topics:
        modules = dict(_headed(body, "-"))
        index += f"\n{topic}\n{'-' * len(topic)}\n\n"
        for name, page in modules.items():
            # the first sentence says what the module is for
            purpose = re.split(r"(?<=[.])\s", page.strip(), maxsplit=1)[0].replace("\n", " ")
            index += f"- :doc:`{name}`: {purpose}\n"
            made[name] = f"{name}\n{'=' * len(name)}\n\n{page}"
        listed = "".join(f"   {name}\n" for name in modules)
        index += f"\n.. toctree::\n   :hidden:\n\n{listed}"
    return {"index": index, **made}


def _headed(text: str, mark: str) -> Iterator[tuple[str, str]]:
    """Yield the headings that are underlined with a mark, each with the text below it."""
    parts = re.split(rf"(?m)^(.+)\n\{mark}{{3,}}\n", text)[1:]
    for heading, body in zip(parts[::2], parts[1::2], strict=True):
        yield heading, body.strip("\n") + "\n"


def write_pages() -> None:
    """Write the pages that have changed, so that unchanged ones are not read again."""
    FOLDER.mkdir(exist_ok=True)
    for name, page in pages(completed(TEMPLATE.read_text(encoding="utf-8"))).items():
        path = FOLDER / f"{name}.rst"
        if not path.exists() or path.read_text(encoding="utf-8") != page:
            path.write_text(page, encoding="utf-8")


def public_methods(value: type) -> Iterator[tuple[str, list[Any]]]:
    """Yield a class's public methods: the functions of that name, the one that is called first."""
    ours = [each for each in value.__mro__ if each.__module__.startswith("unflip")]
    for name in sorted({name for each in ours for name in vars(each) if not name.startswith("_")}):
        found = [vars(each)[name] for each in ours if name in vars(each)]
        functions = [getattr(each, "__func__", getattr(each, "fn", each)) for each in found]
        if inspect.isfunction(functions[0]):
            yield name, [each for each in functions if inspect.isfunction(each)]


def returned(functions: list[Any]) -> str | None:
    """Return the section on what is returned: of a method, or of the one that it overrides."""
    for function in functions:
        found = re.search(
            SECTION.format("Returns|Yields") + r"(?:\n(?!\s*\n).*)*", function.__doc__ or ""
        )
        if found:
            return inspect.cleandoc(found[0])
    return None


def with_returns(name: str, text: str) -> str:
    """Return a method's text with the section of the method that it overrides, if it has none."""
    where, class_name, method = name.rsplit(".", 2)
    if re.search(SECTION.format("Returns|Yields"), text):
        return text
    section = returned(
        dict(public_methods(getattr(import_module(where), class_name))).get(method, [])
    )
    if section is None:
        return text
    later = re.search(SECTION.format("Raises|Notes|References|Examples"), text)
    at = later.start() if later else len(text)
    return f"{text[:at].rstrip()}\n\n{section}\n\n{text[at:].lstrip()}"
