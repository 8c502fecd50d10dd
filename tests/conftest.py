"""One thread per test worker: several that each take all cores would wait for one another."""

import os

if "PYTEST_XDIST_WORKER" in os.environ:  # read once, when numpy is loaded
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")
