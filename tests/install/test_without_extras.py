"""The library imports without any extra, and the command line says which one it lacks."""

import re
import subprocess
import sys

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
    "skrub",
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


def test_the_command_line_names_the_extra_it_lacks():
    code = """
from unflip.__main__ import main
for missing in ("typer", "rich"):
    block(missing)
    try:
        main()
    except SystemExit as end:
        print(end.code)
"""
    run = run_without(set(), code)
    assert run.stdout.split() == ["2", "2"], run.stderr
    assert run.stderr.splitlines() == [
        f"the command line needs {missing}: pip install 'unflip[cli]'"
        for missing in ("typer", "rich")
    ]


def test_the_review_page_names_the_extra_it_lacks(tmp_path):
    code = f"""
from unflip._app.review import sample_estimate, serve
for missing in ("starlette", "uvicorn"):
    block(missing)
    try:
        serve({{"x": [1, 2], "y": [0, 1]}}, "y", None, {str(tmp_path / "d.sqlite")!r})
    except ImportError as error:
        print(error)
"""
    run = run_without(set(), code)
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines() == [
        f"the review page needs {missing}: pip install 'unflip[review]'"
        for missing in ("starlette", "uvicorn")
    ]
    assert not (tmp_path / "d.sqlite").exists()


def test_a_command_names_the_extra_it_lacks(tmp_path):
    table = tmp_path / "table.csv"
    lines = [f"{k},{k > 50}" for k in range(100)]
    table.write_text("x,y\n" + "\n".join(lines))
    words = ["unflip", "fit", str(table), "--label", "y", "--rates", "0,0", "--out"]
    code = f"""
from unflip.__main__ import main
for missing in ("polars", "skrub", "skops"):
    block(missing)
    sys.argv = {[*words, str(tmp_path / "m")]!r}
    try:
        main()
    except SystemExit as end:
        print(missing, end.code, flush=True)
"""
    run = run_without(set(), code)
    assert run.stdout.splitlines() == ["polars 2", "skrub 2", "skops 2"]
    said = " ".join(run.stderr.split())
    for missing in ("polars", "skrub", "skops"):
        assert re.search(rf"needs? {missing}: pip install 'unflip\[cli\]'", said)
    assert "Traceback" not in run.stderr


def test_help_loads_neither_tables_nor_experiments():
    code = """
sys.argv = ["unflip", "--help"]
from unflip.__main__ import main
try:
    main()
except SystemExit:
    print(*sys.modules)
"""
    run = run_without(set(), code)
    loaded = set(run.stdout.split())
    assert "unflip.cli" in loaded
    assert not loaded & {"polars", "skrub", "skops", "unflip.paper.experiments", "unflip._app.demo"}


def test_the_cluster_names_the_extra_it_lacks():
    code = """
for missing in ("dask", "distributed"):
    block(missing)
    try:
        import unflip.dask
    except ImportError as error:
        print(error)
"""
    run = run_without(set(), code)
    assert run.stdout.splitlines() == [
        f"unflip.dask needs {missing}: pip install 'unflip[dask]'"
        for missing in ("dask", "distributed")
    ]


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
