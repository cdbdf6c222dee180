"""Stop cleanly on Ctrl-C or on the scheduler's SIGTERM before the time limit."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Stop:
    """Whether somebody asked the extraction to stop, and by which signal."""

    def __init__(self) -> None:
        self.signal: signal.Signals | None = None

    def __call__(self) -> bool:
        """Return whether to stop."""
        return self.signal is not None

    @property
    def exit_code(self) -> int:
        """128 plus the signal, as shells count."""
        return 128 + self.signal if self.signal else 0


@contextmanager
def stop_on_signals() -> Iterator[Stop]:
    """Turn SIGINT and SIGTERM into a wish to stop; a second SIGINT acts as it did before.

    A second SIGTERM changes nothing: schedulers send several for one wish, to the script and to all below it.
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
