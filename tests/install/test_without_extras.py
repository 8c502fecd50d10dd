"""The library imports without any extra, and the command line says which one it lacks."""

import subprocess
import sys

import pytest

BLOCK = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {extras}:
            raise ImportError(f"No module named {{name!r}}", name=name)

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
    "starlette",
    "typer",
    "uvicorn",
}


def run_without(extras: set[str], code: str) -> subprocess.CompletedProcess[str]:
    script = BLOCK.format(extras=extras) + code
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)


def test_the_core_works_without_any_extra():
    code = """
import numpy as np
import unflip, unflip.density_ratio, unflip.posterior, unflip.noise_rates, unflip.streaming
X = np.random.default_rng(0).normal(size=(100, 2))
y = unflip.flip_labels(X[:, 0] > 0, unflip.NoiseRates(0.2, 0.1), random_state=0)
print(unflip.ImportanceReweightingClassifier().fit(X, y).predict(X).dtype)
"""
    run = run_without(EXTRAS, code)
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == "bool"


@pytest.mark.parametrize("missing", ["typer", "rich"])
def test_the_command_line_names_the_extra_it_lacks(missing):
    run = run_without({missing}, "from unflip.__main__ import main; main()")
    assert run.returncode == 2
    assert run.stderr == f"the command line needs {missing}: pip install 'unflip[cli]'\n"


@pytest.mark.parametrize("missing", ["dask", "distributed"])
def test_the_cluster_names_the_extra_it_lacks(missing):
    run = run_without({missing}, "import unflip.dask")
    assert f"unflip.dask needs {missing}: pip install 'unflip[dask]'" in run.stderr


def test_parquet_names_the_extra_it_lacks(tmp_path):
    (tmp_path / "a.parquet").touch()
    code = f"""
from unflip.streaming import ParquetBatches
ParquetBatches({str(tmp_path / "a.parquet")!r}, label="y")
"""
    run = run_without({"pyarrow"}, code)
    assert "Parquet files need pyarrow: pip install 'unflip[arrow]'" in run.stderr


def test_importing_the_library_loads_no_extra():
    loaded = "sorted({name.split('.')[0] for name in sys.modules})"
    run = run_without(set(), f"import unflip; print(*{loaded})")
    assert "unflip" in run.stdout.split()
    # pandas, its pyarrow and rich are left out: scikit-learn itself may load them
    assert not set(run.stdout.split()) & (EXTRAS - {"pandas", "pyarrow", "rich"})
