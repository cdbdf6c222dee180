"""Hold BLAS to one thread: the rounding of a product depends on the number of threads."""

from contextlib import AbstractContextManager
from functools import cache

import scipy.linalg  # noqa: F401  scipy's BLAS beside numpy's: only loaded libraries are found
from threadpoolctl import ThreadpoolController


@cache
def _libraries() -> ThreadpoolController:
    """Look for the process's BLAS libraries once: that takes milliseconds, as long as a small model."""
    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[object]:
    """Hold BLAS to one thread while the context lasts."""
    limited: AbstractContextManager[object] = _libraries().limit(limits=1, user_api="blas")
    return limited
