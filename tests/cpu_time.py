"""Work that must end in time, however busy the machine is."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def within_cpu_s(limit_s: float) -> Iterator[None]:
    """Assert that the block takes less than so many seconds of the processor in this process."""
    begin_s = time.process_time()
    yield
    took_s = time.process_time() - begin_s
    assert took_s < limit_s, f"took {took_s:.1f} s"
