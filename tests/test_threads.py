"""Rows shared out among threads give what one thread gives."""

import json
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

from tests.cli.mixed import mixed_table
from unflip._utils import threads as _threads
from unflip._utils.threads import by_threads, one_blas_thread, threads_for
from unflip.density_ratio import KLIEP, ULSIF
from unflip.posterior import KernelDensityPosterior

VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def blas_threads():
    blas = ThreadpoolController().select(user_api="blas")
    return [library.num_threads for library in blas.lib_controllers]


@pytest.fixture
def three_threads(monkeypatch):
    monkeypatch.setattr(_threads, "ROWS_PER_THREAD", 100)
    with threadpool_limits(3, user_api="blas"):
        if set(blas_threads()) != {3}:
            pytest.skip("this BLAS cannot have three threads")
        yield


@pytest.mark.parametrize("first_out", ["first in", "last in"])
def test_the_last_thread_to_leave_gives_blas_its_own_number_again(three_threads, first_out):
    entered, leave, seen = threading.Barrier(2), threading.Event(), {}

    def first():
        with one_blas_thread():
            entered.wait()
            if first_out == "last in":
                leave.wait()
        seen["first"] = blas_threads()
        leave.set()

    thread = threading.Thread(target=first)
    thread.start()
    with one_blas_thread():
        entered.wait()
        if first_out == "first in":
            leave.wait()
        seen["last"] = blas_threads()
    leave.set()
    thread.join()
    assert set(seen["last"]) == {1}
    assert set(seen["first"]) == ({1} if first_out == "first in" else {3})
    assert set(blas_threads()) == {3}


def test_a_thread_limits_blas_even_if_another_one_did_so_before(three_threads):
    # threadpoolctl leaves the control to the first thread that asks for it
    limit = threadpool_limits(3, user_api="blas")
    seen = []

    def fit():
        with one_blas_thread():
            seen.extend(blas_threads())

    thread = threading.Thread(target=fit)
    thread.start()
    thread.join()
    limit.restore_original_limits()
    assert set(seen) == {1}


def test_where_blas_is_kept_to_one_thread_rows_have_as_many_as_it_had(three_threads):
    with one_blas_thread():
        assert set(blas_threads()) == {1}
        seen = by_threads(
            lambda items: {
                threading.get_ident(),
                *by_threads(lambda inner: threading.get_ident(), 10, 1000),
            },
            10,
            1000,
        )
    assert all(len(threads) == 1 for threads in seen)  # a thread has no threads of its own
    assert threading.get_ident() not in set.union(*seen)
    assert set(blas_threads()) == {3}


@pytest.mark.parametrize("ratio", [KLIEP(1.0), KLIEP(1.0, tol=1e-9), ULSIF(1.0, 0.1)])
def test_ratios_do_not_depend_on_the_number_of_threads(ratio, three_threads):
    rng = np.random.default_rng(0)
    X_num, X_den = rng.normal(0.5, 1, (7000, 3)), rng.normal(size=(9000, 3))
    ratio.set_params(random_state=0)
    shared_out = ratio.fit(X_num, X_den).predict(X_den)
    with threadpool_limits(1, user_api="blas"):
        alone = ratio.fit(X_num, X_den).predict(X_den)
    np.testing.assert_array_equal(shared_out, alone)


def test_kernel_posteriors_do_not_depend_on_the_number_of_threads(three_threads):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(600, 2)), rng.integers(0, 2, 600)
    posterior = KernelDensityPosterior().fit(X, y)
    shared_out = posterior.predict_proba(X)
    with threadpool_limits(1, user_api="blas"):
        np.testing.assert_array_equal(shared_out, posterior.predict_proba(X))


BITS = """
import hashlib, sys, warnings
import numpy as np
from unflip import NoiseRates
from unflip.baselines import StPMKL
from unflip.density_ratio import KMM, BregmanRatio
from unflip.learners import KernelClassifier, LinearClassifier
from unflip.posterior import DensityRatioPosterior, KernelDensityPosterior

warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
X = rng.normal(size=(700, 10))
y = (X[:, 0] + 0.5 * rng.normal(size=700) > 0).astype(int)
parts = {
    "KMM": DensityRatioPosterior(KMM(random_state=0)),
    "KMM with landmarks": DensityRatioPosterior(KMM(block_size=300, random_state=0)),
    "Bregman": DensityRatioPosterior(BregmanRatio(random_state=0)),
    "KDE": KernelDensityPosterior("cv", random_state=0),
    "StPMKL": StPMKL(NoiseRates(0.1, 0.1)),
    "linear": LinearClassifier("squared"),
}
for loss in ("squared", "asymmetric_exponential", "logistic", "hinge"):
    parts[f"exact {loss}"] = KernelClassifier(loss)
    parts[f"landmarks, {loss}"] = KernelClassifier(
        loss, max_exact=100, n_landmarks=300, random_state=0
    )
for name, part in parts.items():
    part.fit(X, y)
    is_classifier = hasattr(part, "decision_function")
    values = part.decision_function(X) if is_classifier else part.predict_proba(X)
    print(name, hashlib.sha256(np.ascontiguousarray(values)).hexdigest())
"""


def test_fits_are_the_same_to_the_last_bit_with_one_thread_and_with_two():
    def bits(n_threads):
        environment = os.environ | dict.fromkeys(VARIABLES, str(n_threads))
        run = subprocess.run(
            [sys.executable, "-c", BITS],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        return run.stdout.splitlines()

    one = bits(1)
    assert len(one) == 14
    assert bits(2) == one


def test_small_problems_have_one_thread_and_large_ones_all():
    def openmp_threads() -> list[int]:
        found = ThreadpoolController().select(user_api="openmp").lib_controllers
        return [library.num_threads for library in found]

    before = openmp_threads()
    with threads_for(600):
        assert set(openmp_threads()) == {1}
    with threads_for(10**6):
        assert openmp_threads() == before
    assert openmp_threads() == before


def test_a_command_ends_with_the_threads_of_a_fresh_shell(tmp_path):
    """Other tests have one thread, which hides threads that wait for each other."""
    mixed_table(600).write_csv(tmp_path / "table.csv")
    words = ["estimate", str(tmp_path / "table.csv"), "--label", "churn", "--id", "customer"]
    run = subprocess.run(
        [sys.executable, "-m", "unflip", *words, "--json"],
        env={name: value for name, value in os.environ.items() if name not in VARIABLES},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["n_samples"] == 600
