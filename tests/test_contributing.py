"""CONTRIBUTING agrees with the code: its diagram of packages, and its examples of new parts."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
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


def test_the_diagram_of_packages_names_all_in_the_order_of_imports() -> None:
    packages = pytest.importorskip("benchmarks.packages")
    found = packages.BLOCK.search(PAGE.read_text(encoding="utf-8"))
    assert found
    shown = [line.split()[0] for line in found[0].removeprefix(found[1]).splitlines()[:-1]]
    wanted = [line.split()[0] for line in packages.diagram().splitlines()]
    assert shown == wanted, "run `python -m benchmarks.packages`"


FINDERS = ["test_common", "test_row_weights", "test_typing", "test_reference", "cli/test_commands"]
"""Files whose tests find new parts by themselves."""

CHOSEN = "TailMean or tail_mean or test_classes or every_command or reference or knows_the_names"


def run_tests(project: Path, files: list[str]) -> int:
    """Run the chosen tests of some files of a copy, and return how many have passed."""
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files, "-k", CHOSEN],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(project / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout
    return int(re.search(r"(\d+) passed", result.stdout)[1])


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
    # a doctest of a module imports it once more, and the first one can then not be pickled
    passed = run_tests(tmp_path, touched) + run_tests(tmp_path, [f"tests/{x}.py" for x in FINDERS])
    assert passed > 60
