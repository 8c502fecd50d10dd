"""The API reference lists all that is public."""

import pkgutil
import re
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import unflip

REFERENCE = Path(__file__).parents[1] / "docs" / "reference" / "index.rst"
NOT_IMPORTED = {"cli"}  # a command, with a page of its own
MODULES = sorted(
    module.name
    for module in pkgutil.iter_modules(unflip.__path__)
    if not module.name.startswith("_") and module.name not in NOT_IMPORTED
)

pytestmark = pytest.mark.skipif(not REFERENCE.exists(), reason="docs are not in this copy")


def public_names(module: ModuleType) -> set[str]:
    """Return what a module says it exports, or else what it defines."""
    if hasattr(module, "__all__"):
        return {name for name in module.__all__ if not name.startswith("_")}
    return {
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    }


def listed_names(text: str) -> dict[str, set[str]]:
    """Return the names in the autosummary tables, by module."""
    listed: dict[str, set[str]] = {}
    for section in re.split(r"(?m)^\.\. currentmodule:: ", text)[1:]:
        module, _, rest = section.partition("\n")
        listed.setdefault(module, set()).update(re.findall(r"(?m)^   (\w+)$", rest))
    return listed


@pytest.mark.parametrize("name", ["", *MODULES])
def test_every_public_name_is_in_the_reference(name: str) -> None:
    module = import_module(f"unflip.{name}" if name else "unflip")
    text = REFERENCE.read_text()
    listed = listed_names(text)
    objects = [
        getattr(import_module(where), what) for where, names in listed.items() for what in names
    ]
    missing = {
        public
        for public in public_names(module)
        if not any(getattr(module, public) is known for known in objects)
        and f"``{public}``" not in text  # constants are named in a sentence
    }
    assert not missing


def test_every_listed_name_exists() -> None:
    for where, names in listed_names(REFERENCE.read_text()).items():
        assert not [name for name in names if not hasattr(import_module(where), name)]
