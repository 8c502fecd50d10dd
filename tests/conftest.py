"""Settings of all tests."""

import os

from hypothesis import settings

# one thread per test worker: several that each take all cores would wait for one another
if "PYTEST_XDIST_WORKER" in os.environ:  # read once, when numpy is loaded
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

# no test asserts a time, on a busy machine least of all
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
