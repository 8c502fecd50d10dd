"""The API reference lists all that is public, and says what it returns, with an example."""

import inspect
import pkgutil
import re
import runpy
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

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
def writer() -> dict[str, Any]:
    """Return what `make docs` writes the reference with."""
    if not WRITER.exists():
        pytest.skip("docs are not in this copy")
    return runpy.run_path(str(WRITER))


@pytest.fixture(scope="module")
def reference(writer) -> str:
    """Return all pages in one."""
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


def test_a_name_that_the_template_does_not_list_joins_the_table_of_its_module(writer) -> None:
    template = (
        ".. currentmodule:: unflip.datasets\n\n.. autosummary::\n\n   make_separable\n   ...\n\n"
        "``BENCHMARKS``\n\n.. currentmodule:: unflip.learners\n\n   LinearClassifier\n"
    )
    completed = writer["completed"](template)
    assert completed == template.replace("   ...\n", "   load_benchmark\n")


def test_every_listed_name_exists(reference: str) -> None:
    for where, names in listed_names(reference).items():
        assert not [name for name in names if not hasattr(import_module(where), name)]


def public_objects() -> dict[str, Any]:
    """Return all classes and functions that the public modules export, each once, by a name."""
    walked = pkgutil.walk_packages(unflip.__path__, "unflip.")
    names = [module.name for module in walked if "._" not in module.name]
    found = {}
    for where in ["unflip", *(name for name in names if ".cli" not in name)]:
        module = import_module(where)
        for name in sorted(public_names(module)):
            value = getattr(module, name)
            if inspect.isclass(value) or inspect.isfunction(value):
                found.setdefault(value, f"{where}.{name}")
    return {name: value for value, name in found.items()}


PUBLIC = public_objects()


@pytest.mark.parametrize("name", PUBLIC)
def test_what_is_returned_is_said(name: str, writer) -> None:
    value = PUBLIC[name]
    methods = writer["public_methods"](value) if inspect.isclass(value) else [("", [value])]
    silent = [
        method
        for method, functions in methods
        if inspect.signature(functions[0]).return_annotation not in (None, "None")
        and writer["returned"](functions) is None
    ]
    assert not silent, f"these of {name} need a section Returns: {silent}"


# the fields of an experiment and of its results are described where they are defined
ELSEWHERE = ("experiments", "Warning")


@pytest.mark.parametrize(
    "name", [name for name in PUBLIC if not any(part in name for part in ELSEWHERE)]
)
def test_every_parameter_is_described(name: str) -> None:
    text = inspect.getdoc(PUBLIC[name]) or ""
    section = re.search(r"Parameters\n---+\n(.*?)(?=\n\w+\n---|\Z)", text, re.DOTALL)
    entries = re.findall(r"(?m)^(\S.*?)(?: :|$)", section[1] if section else "")
    described = {each.lstrip("*") for entry in entries for each in entry.split(", ")}
    parameters = inspect.signature(PUBLIC[name]).parameters.values()
    names = {
        each.name for each in parameters if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
    }
    missing = [each for each in names - described if not each.startswith("_")]
    assert not missing, f"describe these parameters of {name}: {missing}"


@pytest.mark.parametrize("name", [name for name in PUBLIC if inspect.isclass(PUBLIC[name])])
def test_every_class_has_an_example(name: str) -> None:
    assert ">>> " in (PUBLIC[name].__doc__ or ""), f"{name} needs a section Examples"


def test_a_method_says_what_the_one_that_it_overrides_returns(writer) -> None:
    text = writer["with_returns"](
        "unflip.losses.Hinge.slope", "-1 below m = 1, else 0.\n\nNotes\n-----\nA kink."
    )
    assert text == (
        "-1 below m = 1, else 0.\n\n"
        "Returns\n-------\nndarray\n    One value per margin.\n\n"
        "Notes\n-----\nA kink."
    )
    assert writer["with_returns"]("unflip.losses.Hinge.slope", text) == text


def test_every_module_has_a_page_and_the_first_page_lists_them_by_topic(writer) -> None:
    template = (
        "Reference\n=========\n\nAll.\n\nOne\n===\n\nunflip.noise\n------------\n\nNoise. More.\n\n"
        "Two\n===\n\nunflip.audit\n------------\n\nWhich labels\nare wrong.\n"
    )
    made = writer["pages"](template)
    assert list(made) == ["index", "unflip.noise", "unflip.audit"]
    assert made["unflip.noise"] == "unflip.noise\n============\n\nNoise. More.\n"
    assert "One\n---\n\n- :doc:`unflip.noise`: Noise.\n" in made["index"]
    assert "- :doc:`unflip.audit`: Which labels are wrong.\n" in made["index"]
    assert "toctree::\n   :hidden:\n\n   unflip.audit\n" in made["index"]
