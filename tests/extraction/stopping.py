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
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path


def arm() -> None:
    """Let this process stop where its environment says; without STOP_AT, do nothing."""
    _read_order()
    if "STOP_AT" not in os.environ:
        return
    from obygaze_features.store.writer import StageWriter

    n_before_stop = int(os.environ.pop("STOP_AT"))  # so that processes that it starts do not stop
    stop = _send_signal if "STOP_BY" in os.environ else _pause_at(Path(os.environ["STOP_FOLDER"]))
    commit = StageWriter.commit
    n_written = 0
    has_stopped = False

    def commit_or_stop(self, results):
        nonlocal n_written, has_stopped
        if n_written >= n_before_stop and not has_stopped:
            has_stopped = True
            stop()
        commit(self, results)
        n_written += len(results)

    StageWriter.commit = commit_or_stop


def _read_order() -> None:
    """Take over the variables in the file that STOP_ORDER names, where there is one."""
    with suppress(KeyError, FileNotFoundError):
        order = Path(os.environ["STOP_ORDER"]).read_text(encoding="utf-8")
        os.environ.update(json.loads(order))


def _send_signal() -> None:
    """Send the signal STOP_BY to the main thread of this process."""
    signal.pthread_kill(threading.main_thread().ident, signal.Signals[os.environ["STOP_BY"]])


def _pause_at(folder: Path) -> Callable[[], None]:
    """Return a function that notes this process in a folder and waits for the file `go` or for a signal."""
    pipes_of_signals = _pipes_of_signals()

    def pause() -> None:
        (folder / str(os.getpid())).touch()
        while not (folder / "go").exists():
            signals, _, _ = select.select(pipes_of_signals, [], [], 0.05)
            if signals:
                return

    return pause


def _pipes_of_signals() -> list[int]:
    """Return a pipe that can be read once a signal has come: its handler runs only when the pause is over.

    Python writes signals into a pipe only where the main thread asks for it; elsewhere there is none.
    """
    if threading.current_thread() is not threading.main_thread():
        return []
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    signal.set_wakeup_fd(write_end)
    return [read_end]
