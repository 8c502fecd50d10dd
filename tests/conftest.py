"""Settings of all tests."""

import gc
import os

from hypothesis import settings

# One thread per test worker. There are as many workers as cores; if each also took all cores, its
# threads would wait for the other workers' and the tests would take several times as long. What one
# thread hides is tested in test_threads.py, in processes that have the threads of a fresh shell;
# `pytest -n0` has them too.
if "PYTEST_XDIST_WORKER" in os.environ:  # read once, when numpy is loaded
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

# no test asserts a time, on a busy machine least of all
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

# Modules and collected tests, half a million objects, live to the end: looking through them for
# garbage as often as Python does by itself takes a quarter of the collection's time.
gc.set_threshold(50_000)
