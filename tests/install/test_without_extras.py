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
EXTRAS = {"typer", "rich", "polars", "matplotlib", "dask", "starlette", "uvicorn", "pandas"}


def run_without(extras: set[str], code: str) -> subprocess.CompletedProcess[str]:
    script = BLOCK.format(extras=extras) + code
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)


def test_the_core_works_without_any_extra():
    code = """
import numpy as np
import unflip, unflip.density_ratio, unflip.posterior, unflip.noise_rates, unflip.review
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


@pytest.mark.parametrize("missing", ["starlette", "uvicorn"])
def test_the_review_page_names_the_extra_it_lacks(missing, tmp_path):
    code = f"""
from unflip.review import sample_estimate, serve
try:
    serve({{"x": [1, 2], "y": [0, 1]}}, "y", None, {str(tmp_path / "d.sqlite")!r})
except ImportError as error:
    print(error)
"""
    run = run_without({missing}, code)
    assert run.returncode == 0, run.stderr
    assert run.stdout == f"the review page needs {missing}: pip install 'unflip[review]'\n"
    assert not (tmp_path / "d.sqlite").exists()


def test_importing_the_library_loads_no_extra():
    loaded = "sorted({name.split('.')[0] for name in sys.modules})"
    run = run_without(set(), f"import unflip; print(*{loaded})")
    assert "unflip" in run.stdout.split()
    # pandas and rich are left out: scikit-learn itself may load them
    assert not set(run.stdout.split()) & (EXTRAS - {"pandas", "rich"})
