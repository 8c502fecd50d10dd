"""The library imports without any extra, and the command line says which one it lacks."""

import json
import re
import subprocess
import sys

import pytest

BLOCK = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in self.extras:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

def block(*extras):
    Blocked.extras = extras
    for name in list(sys.modules):
        if name.split(".")[0] in extras:
            del sys.modules[name]

sys.meta_path.insert(0, Blocked())
"""
EXTRAS = {
    "dask",
    "distributed",
    "matplotlib",
    "pandas",
    "polars",
    "pyarrow",
    "rich",
    "skops",
    "starlette",
    "typer",
    "uvicorn",
}


def run_without(extras: set[str], code: str) -> subprocess.CompletedProcess[str]:
    script = f"{BLOCK}\nblock(*{sorted(extras)})\n{code}"
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)


def test_the_core_works_without_any_extra():
    code = """
import numpy as np
import unflip, unflip.density_ratio, unflip.posterior, unflip.noise_rates
import unflip._app.review, unflip.streaming
X = np.random.default_rng(0).normal(size=(100, 2))
y = unflip.flip_labels(X[:, 0] > 0, unflip.NoiseRates(0.2, 0.1), random_state=0)
print(unflip.ImportanceReweightingClassifier().fit(X, y).predict(X).dtype)
"""
    run = run_without(EXTRAS, code)
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == "bool"


@pytest.fixture(scope="module")
def named(tmp_path_factory):
    """Return what is said where one library after another is missing, and a folder left empty."""
    folder = tmp_path_factory.mktemp("named")
    (folder / "a.parquet").touch()
    code = f"""
from unflip.__main__ import main
from unflip._app.review import serve
from unflip.streaming import ParquetBatches

def cluster():
    import unflip.dask

def page():
    serve({{"x": [1, 2], "y": [0, 1]}}, "y", None, {str(folder / "d.sqlite")!r})

def parquet():
    ParquetBatches({str(folder / "a.parquet")!r}, label="y")

def said(action):
    try:
        action()
    except ImportError as error:
        return str(error)
    except SystemExit as end:
        return end.code

lacking = {{}}
for action, extras in (
    (page, ["starlette", "uvicorn"]),
    (cluster, ["dask", "distributed"]),
    (parquet, ["pyarrow"]),
    (main, ["typer", "rich"]),
):
    for missing in extras:
        block(missing)
        lacking[missing] = said(action)
print(json.dumps(lacking))
"""
    run = run_without(set(), f"import json\n{code}")
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout), run.stderr, folder


def test_the_command_line_names_the_extra_it_lacks(named):
    codes, said, _ = named
    assert (codes["typer"], codes["rich"]) == (2, 2)
    assert said.splitlines() == [
        f"the command line needs {missing}: pip install 'unflip[cli]'"
        for missing in ("typer", "rich")
    ]


@pytest.mark.parametrize("missing", ["starlette", "uvicorn"])
def test_the_review_page_names_the_extra_it_lacks(named, missing):
    said, _, folder = named
    assert said[missing] == f"the review page needs {missing}: pip install 'unflip[review]'"
    assert not (folder / "d.sqlite").exists()


@pytest.mark.parametrize("missing", ["dask", "distributed"])
def test_the_cluster_names_the_extra_it_lacks(named, missing):
    said, _, _ = named
    assert said[missing] == f"unflip.dask needs {missing}: pip install 'unflip[dask]'"


def test_parquet_names_the_extra_it_lacks(named):
    said, _, _ = named
    assert "Parquet files need pyarrow: pip install 'unflip[arrow]'" in said["pyarrow"]


def test_a_command_names_the_extra_it_lacks(tmp_path):
    table = tmp_path / "table.csv"
    lines = [f"{k},{k > 50}" for k in range(100)]
    table.write_text("x,y\n" + "\n".join(lines))
    words = ["unflip", "fit", str(table), "--label", "y", "--rates", "0,0", "--out"]
    code = f"""
from unflip.__main__ import main
for missing in ("polars",):
    block(missing)
    sys.argv = {[*words, str(tmp_path / "m")]!r}
    try:
        main()
    except SystemExit as end:
        print(missing, end.code, flush=True)
"""
    run = run_without(set(), code)
    assert run.stdout.splitlines() == ["polars 2"]
    said = " ".join(run.stderr.split())
    for missing in ("polars",):
        assert re.search(rf"needs? {missing}: pip install 'unflip\[cli\]'", said)
    assert "Traceback" not in run.stderr


@pytest.fixture(scope="module")
def loaded():
    """Return the modules that importing the library loads, and those after `unflip --help`."""
    code = """
import unflip, unflip.inspection
print(*sys.modules)
sys.argv = ["unflip", "--help"]
from unflip.__main__ import main
try:
    main()
except SystemExit:
    print(*sys.modules)
"""
    run = run_without(set(), code)
    assert run.returncode == 0, run.stderr
    lines = run.stdout.splitlines()
    return set(lines[0].split()), set(lines[-1].split())


def test_importing_the_library_loads_no_extra(loaded):
    packages = {name.split(".")[0] for name in loaded[0]}
    assert {"unflip", "unflip.inspection"} <= loaded[0]
    # pandas, its pyarrow and rich are left out: scikit-learn itself may load them
    assert not packages & (EXTRAS - {"pandas", "pyarrow", "rich"})


def test_help_loads_neither_tables_nor_experiments(loaded):
    _, after = loaded
    assert "unflip.cli" in after
    assert not after & {"polars", "skops", "unflip.paper.experiments", "unflip._app.demo"}
