"""Compute the digests of large rows in a worker process, from the files that they were written to."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import count

from obygaze_features.store.writer import digest_of_part
from obygaze_features.workers import Parent, WorkerPool

LONGEST_WAIT_S = 60.0
"""Seconds after which this process computes a digest itself."""


class RowDigests(WorkerPool):
    """A worker process that computes the SHA-256 of parts of files, in the order of the calls.

    If the worker fails or is too slow, this process computes the digest itself.
    """

    def __init__(self) -> None:
        """Make a pool of one worker that computes digests."""
        super().__init__(1, _digest)
        self._keys = count()
        self._digests: dict[int, str] = {}  # key of a call -> digest; "" if the worker failed

    def __call__(self, path: str, offset: int, size: int) -> Callable[[], str]:
        """Start to compute the digest of a part of a file; return a function that waits for the result."""
        key = next(self._keys)
        self.put(key, (path, offset, size))
        return partial(self._result, key, path, offset, size)

    def _result(self, key: int, path: str, offset: int, size: int) -> str:
        """Wait for the digest of a part of a file; compute it here if the worker does not send it."""
        digest = self._wait(key)
        if digest == "":
            return digest_of_part(path, offset, size)
        return digest

    def _wait(self, key: int) -> str:
        """Wait for a digest from the worker; return an empty text if it does not come."""
        with suppress(Exception):  # whatever the worker raises, or that no worker could be started
            while key not in self._digests:
                event = self.get(LONGEST_WAIT_S)
                if event is None:  # the worker takes too long
                    break
                if event.kind == "item":
                    self._digests[event.key] = event.value  # type: ignore[index]  # our keys are numbers
                elif event.kind != "done":  # the worker has failed
                    self._digests[event.key] = ""  # type: ignore[index]
        return self._digests.pop(key, "")


def _digest(part: tuple[str, int, int], parent: Parent) -> None:
    """Send the digest of a part of a file, which is given as path, offset and size in bytes."""
    path, offset, size = part
    parent.send(digest_of_part(path, offset, size))
