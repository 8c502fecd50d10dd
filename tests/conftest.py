"""One BLAS thread per worker: several that each take all cores would wait for one another."""

import os

from threadpoolctl import threadpool_limits

if "PYTEST_XDIST_WORKER" in os.environ:
    threadpool_limits(limits=1)
