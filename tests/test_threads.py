"""Rows shared out among threads give what one thread gives."""

import threading

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

from unflip import _threads
from unflip._threads import by_threads, one_blas_thread
from unflip.density_ratio import KLIEP, ULSIF
from unflip.posterior import KernelDensityPosterior


def blas_threads():
    blas = ThreadpoolController().select(user_api="blas")
    return [library.num_threads for library in blas.lib_controllers]


@pytest.fixture
def three_threads(monkeypatch):
    monkeypatch.setattr(_threads, "LEAST_ROWS", 100)
    with threadpool_limits(3, user_api="blas"):
        if set(blas_threads()) != {3}:
            pytest.skip("this BLAS cannot have three threads")
        yield


def test_slices_cover_all_items_in_order(three_threads):
    seen = by_threads(lambda items: (items, threading.get_ident()), 10, 1000)
    assert [items for items, _ in seen] == [slice(0, 3), slice(3, 6), slice(6, 10)]
    assert threading.get_ident() not in {thread for _, thread in seen}


def test_few_rows_are_left_to_one_thread(three_threads):
    assert by_threads(lambda items: items, 10, 199) == [slice(0, 10)]
    assert by_threads(lambda items: items, 1, 10**9) == [slice(0, 1)]


def test_where_blas_may_have_one_thread_there_is_no_other(three_threads):
    with threadpool_limits(1, user_api="blas"):
        assert by_threads(lambda items: threading.get_ident(), 10, 1000) == [threading.get_ident()]


def test_blas_has_one_thread_in_each_and_its_own_number_afterwards(three_threads):
    assert {n for part in by_threads(lambda items: blas_threads(), 10, 1000) for n in part} == {1}
    assert set(blas_threads()) == {3}


def test_where_blas_is_kept_to_one_thread_rows_have_as_many_as_it_had(three_threads):
    with one_blas_thread():
        assert set(blas_threads()) == {1}
        seen = by_threads(lambda items: by_threads(lambda inner: inner, 10, 1000), 10, 1000)
    assert seen == [[slice(0, 10)]] * 3  # a thread has no threads of its own
    assert set(blas_threads()) == {3}


def test_an_error_in_a_thread_is_raised(three_threads):
    with pytest.raises(ZeroDivisionError):
        by_threads(lambda items: 1 // items.start, 10, 1000)
    assert set(blas_threads()) == {3}


@pytest.mark.parametrize("ratio", [KLIEP(1.0), KLIEP(1.0, tol=1e-9), ULSIF(1.0, 0.1)])
def test_ratios_do_not_depend_on_the_number_of_threads(ratio, three_threads):
    rng = np.random.default_rng(0)
    X_num, X_den = rng.normal(0.5, 1, (7000, 3)), rng.normal(size=(9000, 3))
    ratio.set_params(random_state=0)
    shared_out = ratio.fit(X_num, X_den).predict(X_den)
    with threadpool_limits(1, user_api="blas"):
        alone = ratio.fit(X_num, X_den).predict(X_den)
    loose = isinstance(ratio, KLIEP) and ratio.tol == 1e-6
    np.testing.assert_allclose(shared_out, alone, rtol=1e-5 if loose else 1e-9)


def test_kernel_posteriors_do_not_depend_on_the_number_of_threads(three_threads):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(600, 2)), rng.integers(0, 2, 600)
    posterior = KernelDensityPosterior().fit(X, y)
    shared_out = posterior.predict_proba(X)
    with threadpool_limits(1, user_api="blas"):
        np.testing.assert_allclose(shared_out, posterior.predict_proba(X), rtol=1e-12)
