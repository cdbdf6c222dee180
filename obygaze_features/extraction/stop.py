"""Stop cleanly on Ctrl-C or on the scheduler's SIGTERM before the time limit."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Stop:
    """Whether the extraction was asked to stop, and by which signal."""

    def __init__(self) -> None:
        self.signal: signal.Signals | None = None

    def __call__(self) -> bool:
        """Return whether to stop."""
        return self.signal is not None

    @property
    def exit_code(self) -> int:
        """Exit code by shell convention: 128 plus the signal number."""
        return 128 + self.signal if self.signal else 0


@contextmanager
def stop_on_signals() -> Iterator[Stop]:
    """Turn SIGINT and SIGTERM into a stop request; a second SIGINT has its usual effect.

    A second SIGTERM is ignored: schedulers send several for one request, to the script and its children.
    """
    stop = Stop()
    before = {wanted: signal.getsignal(wanted) for wanted in (signal.SIGINT, signal.SIGTERM)}

    def ask(number: int, _: FrameType | None) -> None:
        stop.signal = stop.signal or signal.Signals(number)
        if number == signal.SIGINT:
            signal.signal(number, before[signal.SIGINT])

    for wanted in before:
        signal.signal(wanted, ask)
    try:
        yield stop
    finally:
        for wanted, handler in before.items():
            signal.signal(wanted, handler)
