"""Take back the realtime priority that SVT-AV1 gives to a process of root when it encodes."""

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def ordinary_priority() -> Iterator[None]:
    """Run what may encode AV1; without this, the tests that follow starve every other process of a core."""
    if not hasattr(os, "sched_getscheduler"):  # macOS
        yield
        return
    before, priority = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        yield
    finally:
        os.sched_setscheduler(0, before, priority)
