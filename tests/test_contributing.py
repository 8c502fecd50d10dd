"""What CONTRIBUTING says of the code is so: its walks, and its examples of new parts."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "CONTRIBUTING.md"

pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="CONTRIBUTING.md is not in this copy")


def blocks(language: str) -> Iterator[tuple[str, str]]:
    """Yield the file that each block of the page is for, and the block."""
    text = PAGE.read_text(encoding="utf-8")
    yield from re.findall(rf"```{language}\n# (\S+)\n(.*?)```", text, re.DOTALL)


def paste_examples(project: Path) -> list[str]:
    """Do in a copy what the page says, and return which files were touched."""
    touched = []
    for path, body in blocks("python"):
        assert not (project / path).exists()
        (project / path).write_text(body, encoding="utf-8")
        touched.append(path)
    for path, body in blocks("diff"):
        text = (project / path).read_text(encoding="utf-8")
        for hunk in body.split("@@\n"):
            lines = hunk.splitlines(keepends=True)
            before = "".join(line[1:] for line in lines if line[0] == " ")
            assert text.count(before) == 1, f"{path}: {before}"
            text = text.replace(before, "".join(line[1:] for line in lines))
        (project / path).write_text(text, encoding="utf-8")
        touched.append(path)
    return touched


def walked() -> list[str]:
    """Return the functions that the walks name."""
    text = PAGE.read_text(encoding="utf-8").split("## Two walks")[1].split("\n## ")[0]
    walks = re.findall(r"```text\n(.*?)```", text, re.DOTALL)
    assert len(walks) == 2
    return [line.split()[0] for walk in walks for line in walk.splitlines()]


@pytest.mark.parametrize("name", walked() if PAGE.exists() else [])
def test_the_walks_name_functions_that_there_are(name: str) -> None:
    module, parts = "unflip", name.split(".")
    value = import_module(module)
    for part in parts:
        module = f"{module}.{part}"
        value = getattr(value, part) if hasattr(value, part) else import_module(module)


def test_a_walk_visits_no_function_twice() -> None:
    names = walked()
    fit = "reweighting.ImportanceReweightingClassifier.fit"
    assert names.count(fit) == 2  # the second walk goes by the first
    assert len(set(names)) == len(names) - 1


def test_the_walk_of_a_command_visits_no_module_twice() -> None:
    names = walked()
    walk = names[names.index("__main__.main") :]
    modules = [re.sub(r"(\.[A-Z]\w*)?\.\w+$", "", name) for name in walk]
    assert len(set(modules)) == len(modules)


FINDERS = ["test_common", "test_row_weights", "test_typing", "test_reference", "cli/test_commands"]
"""Files whose tests find new parts by themselves."""

CHOSEN = "TailMean or tail_mean or test_classes or every_command or reference or knows_the_names"


@pytest.mark.slow
def test_the_examples_of_new_parts_pass_the_tests_that_find_them(tmp_path: Path) -> None:
    ignored = shutil.ignore_patterns("__pycache__", "_build", "auto_examples", "generated")
    for folder in ("src", "tests", "docs"):
        if (ROOT / folder).exists():
            shutil.copytree(ROOT / folder, tmp_path / folder, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    touched = paste_examples(tmp_path)
    assert len([path for path in touched if "noise_rates" in path]) <= 4
    assert len([path for path in touched if "cli" in path]) <= 3
    files = [*touched, *(f"tests/{name}.py" for name in FINDERS)]
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files, "-k", CHOSEN],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout
    assert int(re.search(r"(\d+) passed", result.stdout)[1]) > 60
