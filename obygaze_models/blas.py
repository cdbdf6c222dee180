"""Hold BLAS to one thread: the rounding of a product depends on the number of threads."""

from contextlib import AbstractContextManager
from functools import cache

import scipy.linalg  # noqa: F401  scipy's BLAS beside numpy's: only loaded libraries are found
from threadpoolctl import ThreadpoolController


@cache
def _blas_libraries() -> ThreadpoolController:
    """Find the BLAS libraries that this process has loaded; searched once, as a search takes milliseconds."""
    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[object]:
    """Return a context manager within which BLAS computes in one thread.

    The rounding of matrix products depends on the number of threads: results would differ between machines.
    """
    limited: AbstractContextManager[object] = _blas_libraries().limit(limits=1, user_api="blas")
    return limited
