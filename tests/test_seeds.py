"""One seed gives one result, to the last bit, and nobody else's random numbers change."""

import inspect
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, SGDClassifier

from tests.cli.mixed import mixed_table
from tests.seeded import fitted_parts, parts, table
from tests.test_common import BY_BLOCKS, ESTIMATORS, INSTANCES
from tests.test_reference import PUBLIC
from unflip import (
    CheckedLabels,
    ImportanceReweightingClassifier,
    LabelAudit,
    NoiseRates,
    find_label_issues,
    flip_labels,
    noise_by_slice,
)
from unflip.dask import DaskAudit, DaskReweighting
from unflip.datasets import make_separable
from unflip.density_ratio import KLIEP
from unflip.learners import KernelClassifier
from unflip.noise_rates import estimate_rates, make_rates
from unflip.paper import eiw, iw
from unflip.paper.bounds import kernel_rademacher, linear_rademacher
from unflip.posterior import fit_posterior, make_posterior
from unflip.streaming import ArrayBatches, StreamingAudit, StreamingReweighting

ROOT = Path(__file__).parents[1]

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def seeded(estimator: BaseEstimator) -> BaseEstimator:
    """Return a clone with a seed of its own, or with one in each part that takes one."""
    copy = clone(estimator)
    own = [name for name in copy.get_params(deep=False) if name == "random_state"]
    every = [name for name in copy.get_params() if name.endswith("random_state")]
    return copy.set_params(**dict.fromkeys(own or every, 0))


@contextmanager
def untouched(seed: int) -> Iterator[None]:
    """Seed the global generators, and check that nobody has drawn from them."""
    before = np.random.get_state(), random.getstate()  # noqa: NPY002
    np.random.seed(seed)  # noqa: NPY002
    random.seed(seed)
    expected = dict(parts([np.random.get_state(), random.getstate()]))  # noqa: NPY002
    try:
        yield
        found = dict(parts([np.random.get_state(), random.getstate()]))  # noqa: NPY002
        assert found == expected, "a global generator was used"
    finally:
        np.random.set_state(before[0])  # noqa: NPY002
        random.setstate(before[1])


def assert_repeats(result: Callable[[], Any]) -> None:
    """Check that two calls give the same bits, whatever the global generators hold."""
    with untouched(1):
        first = dict(parts(result()))
    with untouched(2):
        second = dict(parts(result()))
    assert first, "nothing was compared"
    assert [name for name in first | second if first.get(name) != second.get(name)] == []


def assert_fits_repeat(estimator: BaseEstimator, kind: str, n_classes: int) -> bool:
    """Check two fits, and return whether the estimator takes such a table at all."""
    X, y = table(kind, n_classes)
    try:
        assert_repeats(lambda: fitted_parts(seeded(estimator).fit(X, y), X))
    except ValueError as error:
        reasons = ("Only binary", "could not convert string")
        if not any(reason in str(error) for reason in reasons):
            raise
        return False
    return True


def names_of(estimators: list[BaseEstimator]) -> list[str]:
    return [f"{type(each).__name__}-{k}" for k, each in enumerate(estimators)]


@pytest.mark.parametrize("estimator", INSTANCES, ids=names_of(INSTANCES))
def test_a_seed_repeats_the_fit_of_every_estimator(estimator: BaseEstimator) -> None:
    assert assert_fits_repeat(estimator, "numbers", 2)


@pytest.mark.slow
@pytest.mark.parametrize("estimator", INSTANCES, ids=names_of(INSTANCES))
def test_a_seed_repeats_the_fit_to_every_kind_of_table(estimator: BaseEstimator) -> None:
    for kind, n_classes in [("numbers", 3), ("mixed", 2), ("mixed", 3)]:
        assert_fits_repeat(estimator, kind, n_classes)


CLASSIFIERS = [ImportanceReweightingClassifier(), LabelAudit("probabilistic", cv=2)]


@pytest.mark.parametrize("estimator", CLASSIFIERS, ids=names_of(CLASSIFIERS))
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_seed_repeats_the_fit_to_text_categories_dates_and_gaps(estimator, n_classes) -> None:
    assert assert_fits_repeat(estimator, "mixed", n_classes)


@pytest.mark.parametrize(
    "estimator",
    [
        KernelClassifier("hinge"),  # solved by libsvm
        ImportanceReweightingClassifier(
            RandomForestClassifier(5), posterior=RandomForestClassifier(5), noise_rates="quantile"
        ),
        pytest.param(
            ImportanceReweightingClassifier(
                LogisticRegression(solver="saga", max_iter=20),
                posterior="kde",
                noise_rates="cv",
                cv=2,
            ),
            marks=pytest.mark.slow,
        ),
    ],
    ids=["libsvm", "forests", "cv"],
)
def test_the_seed_reaches_every_part(estimator: BaseEstimator) -> None:
    assert assert_fits_repeat(estimator, "numbers", 2)


X, Y = table("numbers", 2)
P = np.column_stack([1 / (1 + np.exp(2 * X[:, 0])), 1 / (1 + np.exp(-2 * X[:, 0]))])
RATES = NoiseRates(0.1, 0.2)
CHECKED = CheckedLabels(np.arange(10), Y[:10], probability=np.full(10, 0.1))

FUNCTIONS = {
    "unflip.find_label_issues": lambda: [
        find_label_issues(X, Y, random_state=0),
        find_label_issues(y=Y, pred_probs=P, random_state=0),
    ],
    "unflip.flip_labels": lambda: flip_labels(Y, RATES, random_state=0),
    "unflip.noise_by_slice": lambda: noise_by_slice(X, Y, by=X[:, 2] > 0, cv=2, random_state=0),
    "unflip.datasets.make_separable": lambda: make_separable(50, random_state=0),
    "unflip.noise_rates.estimate_rates": lambda: estimate_rates("scott", X, Y, random_state=0),
    "unflip.noise_rates.make_rates": lambda: make_rates("scott", random_state=0).fit(X, Y).rates_,
    "unflip.paper.eiw": lambda: eiw(random_state=0).fit(X, Y),
    "unflip.paper.iw": lambda: iw(random_state=0).set_params(noise_rates=RATES).fit(X, Y),
    "unflip.paper.bounds.kernel_rademacher": lambda: kernel_rademacher(
        np.eye(9), 1.0, n_draws=99, random_state=0
    ),
    "unflip.paper.bounds.linear_rademacher": lambda: linear_rademacher(
        X, 1.0, n_draws=99, random_state=0
    ),
    "unflip.posterior.fit_posterior": lambda: fit_posterior(
        make_posterior("kde"), X, Y, cv=2, random_state=0
    ),
    "unflip.posterior.make_posterior": lambda: make_posterior("kliep", random_state=0).fit(X, Y),
    # not functions with a seed of their own, but ways through them
    "LabelAudit.fit_posterior": lambda: LabelAudit(random_state=0).fit_posterior(P, Y),
    "CheckedLabels.next_rows": lambda: CHECKED.next_rows(Y, P, goal="count", random_state=0),
    "checked": lambda: ImportanceReweightingClassifier(random_state=0).fit(X, Y, checked=CHECKED),
    "KLIEP": lambda: KLIEP(random_state=0).fit(X[Y == "cat"], X).predict(X),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_seed_repeats_what_functions_return(name: str) -> None:
    assert_repeats(FUNCTIONS[name])


def test_every_public_function_with_a_seed_is_tried() -> None:
    seeded = {
        name
        for name, value in PUBLIC.items()
        if inspect.isfunction(value) and "random_state" in inspect.signature(value).parameters
    }
    assert seeded - {"unflip.review.serve"} <= set(FUNCTIONS)  # the server has tests of its own


def streamed(estimator: BaseEstimator) -> Any:
    data = ArrayBatches(X, Y, batch_rows=40)
    fitted = estimator.fit(data)
    predicted = list(fitted.predict(data)) if hasattr(fitted, "predict") else fitted.issues(data)
    return fitted, predicted


def on_dask(estimator: BaseEstimator) -> Any:
    rows, labels = da.from_array(X, chunks=(40, 3)), da.from_array(Y, chunks=40)
    with dask.config.set(scheduler="synchronous"):
        fitted = estimator.fit(rows, labels)
        if hasattr(fitted, "predict"):
            return vars(fitted), fitted.predict(rows).compute()
        return vars(fitted), fitted.mislabel_proba(rows, labels).compute()


SGD = SGDClassifier(loss="log_loss", max_iter=2)
BLOCKWISE = {
    StreamingReweighting: lambda: streamed(StreamingReweighting(SGD, random_state=0)),
    StreamingAudit: lambda: streamed(StreamingAudit(random_state=0)),
    DaskReweighting: lambda: on_dask(DaskReweighting(SGD, random_state=0)),
    DaskAudit: lambda: on_dask(DaskAudit(random_state=0)),
}


@pytest.mark.parametrize("estimator", BLOCKWISE, ids=lambda each: each.__name__)
def test_a_seed_repeats_fits_by_blocks(estimator: type[BaseEstimator]) -> None:
    assert_repeats(BLOCKWISE[estimator])


def test_every_estimator_by_blocks_is_tried() -> None:
    assert {each for each, module in ESTIMATORS.items() if module in BY_BLOCKS} == set(BLOCKWISE)


def in_process(*arguments: object, cwd: Path, n_threads: int, hash_seed: int) -> str:
    """Return what a Python process prints."""
    variables = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    environment = os.environ | dict.fromkeys(variables, str(n_threads))
    environment |= {"PYTHONHASHSEED": str(hash_seed)}
    run = subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_a_seed_repeats_in_other_processes_with_other_threads_and_hashes() -> None:
    one, two = (
        json.loads(in_process("-m", "tests.seeded", cwd=ROOT, n_threads=n, hash_seed=n))
        for n in (1, 2)
    )
    assert len(one) > 200
    assert [name for name in one | two if one.get(name) != two.get(name)] == []


COLUMNS = ("noisy.csv", "--label", "churn", "--id", "customer", "--drop", "truth", "--seed", "3")
KNOWN = ("--rates", "0.3,0.1")
COMMANDS = (
    [
        "flip",
        "clean.csv",
        "--label",
        "churn",
        "--rates",
        "0.3,0.1",
        "--truth",
        "truth",
        "--seed",
        "3",
        "--out",
        "noisy.csv",
    ],
    ["audit", *COLUMNS, *KNOWN, "--out", "audit.csv", "--json"],
    ["fit", *COLUMNS, "--out", "model.unflip", "--weights", "weights.csv", "--report", "fit.html"],
    ["predict", "model.unflip", "noisy.csv", "--out", "predicted.csv"],
)
MORE_COMMANDS = (
    ["audit", *COLUMNS, "--out", "estimated.csv"],
    ["report", *COLUMNS, "--by", "plan", "--out", "report.html"],
    ["fit", *COLUMNS, "--estimator", "boosting", "--out", "boosting.unflip"],
    ["fit", *COLUMNS, "--estimator", "svm", "--out", "svm.unflip"],
    ["predict", "boosting.unflip", "noisy.csv", "--out", "boosted.csv"],
    ["estimate", *COLUMNS, "--json"],
)

RUN_ALL = """
import json, sys
from typer.testing import CliRunner
from unflip.cli import app
for command in json.loads(sys.argv[1]):
    sys.argv[1:] = command
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    print(result.output)
"""


def assert_commands_repeat(folder: Path, commands: tuple[list[str], ...]) -> None:
    """Check that commands print and write the same in two processes, byte for byte."""
    found = []
    for n in (1, 2):
        place = folder / str(n)
        place.mkdir()
        mixed_table(150).write_csv(place / "clean.csv")
        said = in_process("-c", RUN_ALL, json.dumps(commands), cwd=place, n_threads=n, hash_seed=n)
        found.append({path.name: path.read_bytes() for path in place.iterdir()} | {"": said})
    one, two = found
    assert [name for name in one | two if one.get(name) != two.get(name)] == []
    assert len(one) > len(commands)


def test_a_seed_repeats_the_files_of_commands(tmp_path: Path) -> None:
    assert_commands_repeat(tmp_path, COMMANDS)


@pytest.mark.slow
def test_a_seed_repeats_the_files_of_more_commands(tmp_path: Path) -> None:
    assert_commands_repeat(tmp_path, COMMANDS + MORE_COMMANDS)
