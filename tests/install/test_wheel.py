"""The wheel in an environment of its own: what is in it, and what each extra brings."""

import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

CLASSIFIER = """
import numpy as np
from unflip import ImportanceReweightingClassifier, NoiseRates, flip_labels
X = np.random.default_rng(0).normal(size=(200, 2))
y = flip_labels(X[:, 0] > 0, NoiseRates(0.3, 0.1), random_state=0)
assert ImportanceReweightingClassifier(random_state=0).fit(X, y).score(X, X[:, 0] > 0) > 0.8
"""
EXAMPLE = """
import doctest, sys
flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
found = doctest.testfile(sys.argv[1], module_relative=False, optionflags=flags)
sys.exit(0 if found.attempted and not found.failed else 1)
"""
"""Runs a page's examples."""

BY_EXTRA = {
    "": "import unflip",
    "plot": "from unflip.inspection import WeightsDisplay\n"
    "WeightsDisplay.from_predictions([1.0, 0.5, 1.2, 0.9], list('aabb'), [[0.9, 0.1], [0.1, 0.9]])",
    "cli": "from unflip.cli import load_command\nload_command('estimate'), load_command('fit')",
    "review": "import starlette, uvicorn\nfrom unflip.review import serve",
    "arrow": "from unflip.streaming import ParquetBatches\nimport pyarrow",
    "excel": "import openpyxl",
    "dask": "from unflip.dask import DaskReweighting",
    "all": "from unflip.cli import load_command\nload_command('review'), load_command('report')",
}
"""What must work after `pip install unflip[extra]`."""


def run(*words: object, code: int = 0) -> str:
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", folder, ROOT)
    return next(folder.glob("*.whl"))


def in_new_environment(folder: Path, wheel: Path, extra: str) -> Path:
    venv.create(folder, with_pip=True, symlinks=True)
    scripts = (folder / "bin" / "python", folder / "Scripts" / "python.exe")
    python = next(path for path in scripts if path.exists())
    wanted = f"{wheel}[{extra}]" if extra else str(wheel)
    # pandas is not unflip's to bring: whoever has the README's dataframe has it
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wanted, "pandas")
    return python


@pytest.mark.slow
def test_the_wheel_has_the_package_its_types_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert "unflip/py.typed" in names
    assert {name.split("/")[0].split("-")[0] for name in names} == {"unflip"}
    assert not [name for name in names if "test" in Path(name).name or name.endswith(".pyc")]


@pytest.mark.slow
@pytest.mark.parametrize("extra", BY_EXTRA)
def test_each_extra_brings_what_it_needs(wheel: Path, extra: str, tmp_path: Path) -> None:
    python = in_new_environment(tmp_path / "env", wheel, extra)
    run(python, "-c", CLASSIFIER)
    run(python, "-c", BY_EXTRA[extra])
    mixed_columns = extra in ("cli", "all")
    said = run(python, "-c", EXAMPLE, ROOT / "README.md", code=0 if mixed_columns else 1)
    if not mixed_columns:
        assert "categories or dates need polars: pip install 'unflip[cli]'" in said


@pytest.mark.slow
def test_the_command_runs_from_the_wheel_alone_as_by_pipx(wheel: Path, tmp_path: Path) -> None:
    python = in_new_environment(tmp_path / "env", wheel, "cli")
    command = python.with_name("unflip" + python.suffix)
    table = tmp_path / "cancer.csv"
    run(command, "demo", "--quiet", "--out", table)
    said = run(command, "estimate", table, "--label", "diagnosis", "--rates", "0.1,0.1")
    assert "569" in said
    run(python, "-m", "unflip", "--version")
