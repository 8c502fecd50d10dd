"""The API reference lists all that is public."""

import pkgutil
import re
import runpy
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import unflip

WRITER = Path(__file__).parents[1] / "docs" / "_reference.py"
NOT_IMPORTED = {"cli"}  # a command, with a page of its own
MODULES = sorted(
    module.name
    for module in pkgutil.iter_modules(unflip.__path__)
    if not module.name.startswith("_") and module.name not in NOT_IMPORTED
)


@pytest.fixture(scope="module")
def reference() -> str:
    """Return the page as `make docs` writes it."""
    if not WRITER.exists():
        pytest.skip("docs are not in this copy")
    writer = runpy.run_path(str(WRITER))
    return writer["completed"](writer["TEMPLATE"].read_text(encoding="utf-8"))


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
def test_every_public_name_is_in_the_reference(name: str, reference: str) -> None:
    module = import_module(f"unflip.{name}" if name else "unflip")
    listed = listed_names(reference)
    objects = [
        getattr(import_module(where), what) for where, names in listed.items() for what in names
    ]
    missing = {
        public
        for public in public_names(module)
        if not any(getattr(module, public) is known for known in objects)
        and f"``{public}``" not in reference  # constants are named in a sentence
    }
    assert not missing, f"add to {module.__name__} in docs/_templates/reference.rst: {missing}"


def test_a_name_that_the_template_does_not_list_joins_the_table_of_its_module() -> None:
    template = (
        ".. currentmodule:: unflip.datasets\n\n.. autosummary::\n\n   make_separable\n   ...\n\n"
        "``BENCHMARKS``\n\n.. currentmodule:: unflip.learners\n\n   LinearClassifier\n"
    )
    completed = runpy.run_path(str(WRITER))["completed"](template)
    assert completed == template.replace("   ...\n", "   load_benchmark\n")


def test_every_listed_name_exists(reference: str) -> None:
    for where, names in listed_names(reference).items():
        assert not [name for name in names if not hasattr(import_module(where), name)]
