"""Docstrings that share parameters: each parameter is described in one place."""

import re
from collections.abc import Callable, Iterable
from inspect import getdoc, signature
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

ORDER = ("", "Parameters", "Attributes", "Returns", "Yields", "Notes", "References", "Examples")

SHARED = ("Returns", "Yields")


def documented_like(*models: Callable[..., Any]) -> Callable[[F], F]:
    """Return a decorator that completes a docstring by those of other functions or classes.

    Parameters and attributes that it does not describe, and the section `Returns` if it has none,
    are described as in the first model that does.
    """

    def add(function: F) -> F:
        if not function.__doc__:  # python -OO
            return function
        parameters: dict[str, str] = {}
        attributes: dict[str, str] = {}
        sections: dict[str, str] = {}
        for each in (*reversed(models), function):
            found = _sections(each)
            parameters |= _entries(found.pop("Parameters", ""))
            attributes |= _entries(found.pop("Attributes", ""))
            sections |= {name: found[name] for name in found if each is function or name in SHARED}
        names = [name for name in signature(function).parameters if name not in ("self", "cls")]
        sections["Parameters"] = _section("Parameters", [parameters[name] for name in names])
        if attributes and isinstance(function, type):
            sections["Attributes"] = _section("Attributes", attributes.values())
        text = "\n\n".join(sections[name] for name in ORDER if name in sections)
        function.__doc__ = f"{text}\n"
        return function

    return add


def _sections(function: Callable[..., Any]) -> dict[str, str]:
    """Return the sections of a docstring by name; what is above the first one has the name ""."""
    parts = re.split(r"\n(?=\w+\n-{3,}\n)", getdoc(function) or "")
    return {"": parts[0].rstrip()} | {part.partition("\n")[0]: part.rstrip() for part in parts[1:]}


def _section(name: str, entries: Iterable[str]) -> str:
    """Return a section, in which names described together have one entry."""
    return "\n".join([name, "-" * len(name), *dict.fromkeys(entries)])


def _entries(section: str) -> dict[str, str]:
    """Return the entries of a section by name."""
    entries = {}
    for entry in re.split(r"\n(?=\S)", section)[2:]:
        for name in entry.partition("\n")[0].partition(" : ")[0].split(", "):
            entries[name] = entry
    return entries
