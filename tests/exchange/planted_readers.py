"""A reader of files whose text says what their library does wrong, and when.

The text is `MOMENT:ACTION` or `MOMENT:ACTION:ARGUMENT`. The moment is "opening", or "clip c" while the
features of clip c are read; `ACTIONS` lists the actions.
"""

import fcntl
import os
import resource
import signal
import time
from contextlib import contextmanager
from functools import partial

import numpy as np

from obygaze_features.exchange.import_items import ImportItem


@contextmanager
def planted(path, *_):
    """Read clips a, b, c and d, each with four numbers; do at its moment what the file says."""
    planted_moment, action, *arguments = path.read_text(encoding="utf-8").split(":")

    def reach(moment):
        if moment == planted_moment:
            ACTIONS[action](path, *arguments)

    def load(clip):
        reach(f"clip {clip}")
        return {"": np.full(4, ord(clip), np.float32)}

    reach("opening")
    items = {clip: ImportItem(f"{path}, clip {clip}", partial(load, clip)) for clip in "abcd"}
    yield items, {"backbone": "lab"}


def die(_, signal_number):
    """Kill this process by a signal, as a library that crashes."""
    os.kill(os.getpid(), int(signal_number))


def flood(_):
    """Ask for two terabytes of memory, where one may be had."""
    one_terabyte = 1 << 40
    resource.setrlimit(resource.RLIMIT_AS, (one_terabyte, one_terabyte))
    np.ones(1 << 38)  # numbers of eight bytes


def stop_the_import(path, importing_process):
    """Interrupt the process that imports, as Ctrl-C does, and keep a lock on the file.

    By the lock a test sees whether this process ends with the import. The signal is sent again every minute:
    Python may get one just before it begins to wait, and then notices it only after the next.
    """
    file = path.open("a", encoding="utf-8")
    fcntl.flock(file, fcntl.LOCK_EX)
    while True:
        os.kill(int(importing_process), signal.SIGINT)
        time.sleep(60)


ACTIONS = {"die": die, "flood": flood, "stop": stop_the_import}
