"""Stop cleanly on Ctrl-C, on the scheduler's SIGTERM before the time limit, or when a terminal closes."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


class Stop:
    """A request to stop the extraction; a call returns whether there is one.

    Attributes
    ----------
    signal
        The signal that made the request; None if there is none.
    """

    def __init__(self) -> None:
        """Begin without a request."""
        self.signal: signal.Signals | None = None

    def __call__(self) -> bool:
        """Return whether a stop was requested."""
        return self.signal is not None

    @property
    def exit_code(self) -> int:
        """Exit code by shell convention: 128 plus the signal number; 0 if nothing was asked."""
        if self.signal is None:
            return 0
        return 128 + self.signal


@contextmanager
def stop_on_signals() -> Iterator[Stop]:
    """Turn SIGINT (Ctrl-C), SIGTERM and SIGHUP into a request to stop, within a `with` block.

    A second SIGINT has its usual effect. A second SIGTERM is ignored: schedulers send several for one
    request, to the script and its children. Signals that were ignored before stay ignored: nohup, for
    instance, has SIGHUP ignored.

    Yields
    ------
    Stop
        A function that returns whether there is a request to stop.
    """
    stop = Stop()
    handlers_before: dict[int, Any] = {}  # of the signals that are not ignored
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)  # None on Windows for some
        if number is None:
            continue
        handler = signal.getsignal(number)
        is_ignored = handler is signal.SIG_IGN
        if not is_ignored:
            handlers_before[number] = handler

    def request_stop(number: int, _frame: FrameType | None) -> None:
        """Record the first signal; after a SIGINT the next one has its usual effect."""
        if stop.signal is None:
            stop.signal = signal.Signals(number)
        if number == signal.SIGINT:
            signal.signal(number, handlers_before[signal.SIGINT])

    for number in handlers_before:
        signal.signal(number, request_stop)
    try:
        yield stop
    finally:
        for number, handler in handlers_before.items():
            signal.signal(number, handler)
