"""Stop cleanly on Ctrl-C, on the scheduler's SIGTERM before the time limit, or when a terminal closes."""

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
    """Turn SIGINT, SIGTERM and SIGHUP into a stop request; a second SIGINT has its usual effect.

    A second SIGTERM is ignored: schedulers send several for one request, to the script and its children.
    """
    stop = Stop()
    wanted = [getattr(signal, name, None) for name in ("SIGINT", "SIGTERM", "SIGHUP")]  # None on Windows
    before = {number: signal.getsignal(number) for number in wanted if number is not None}
    # As nohup has the hangup ignored.
    before = {number: handler for number, handler in before.items() if handler is not signal.SIG_IGN}

    def ask(number: int, _: FrameType | None) -> None:
        stop.signal = stop.signal or signal.Signals(number)
        if number == signal.SIGINT:
            signal.signal(number, before[signal.SIGINT])

    for number in before:
        signal.signal(number, ask)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
