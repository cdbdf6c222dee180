"""Stop a run at what it has done, never after a time: the outcome is the same on every machine.

`arm` is called in the process that writes the stage. Once STOP_AT clips stand in its journal and it has
another to write, it sends itself the signal STOP_BY. Where STOP_FOLDER is given instead, it leaves a file
there, named by its pid, and writes no more until the file `go` is there or a signal has come. A process whose
environment was fixed before reads these variables from the file STOP_ORDER, if that is there.
"""

import json
import os
import select
import signal
import threading
from contextlib import suppress
from pathlib import Path


def arm() -> None:
    """Stop this process as the environment says; without STOP_AT do nothing."""
    with suppress(KeyError, FileNotFoundError):
        os.environ.update(json.loads(Path(os.environ["STOP_ORDER"]).read_text(encoding="utf-8")))
    if "STOP_AT" not in os.environ:
        return
    from obygaze_features.store.writer import StageWriter

    lines = int(os.environ.pop("STOP_AT"))  # once in a process, and in none that it starts
    commit, woken = StageWriter.commit, []
    if "STOP_FOLDER" in os.environ and threading.current_thread() is threading.main_thread():
        read, wake = os.pipe()
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake)
        woken = [read]
    written, stopped = 0, False

    def stopping(self, results):
        nonlocal written, stopped
        if written >= lines and not stopped:
            stopped = True
            stop()
        commit(self, results)
        written += len(results)

    def stop() -> None:
        if "STOP_BY" in os.environ:
            signal.pthread_kill(threading.main_thread().ident, signal.Signals[os.environ["STOP_BY"]])
            return
        folder = Path(os.environ["STOP_FOLDER"])
        (folder / str(os.getpid())).touch()
        while not (folder / "go").exists() and not select.select(woken, [], [], 0.05)[0]:
            pass

    StageWriter.commit = stopping
