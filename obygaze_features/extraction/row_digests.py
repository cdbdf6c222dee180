"""Compute the digests of large rows in a worker process, from the files that they were written to."""

from collections.abc import Callable
from contextlib import suppress
from itertools import count

from obygaze_features.store.writer import digest_of_part
from obygaze_features.workers import Parent, WorkerPool

PATIENCE_S = 60.0
"""Seconds after which this process computes a digest itself."""


class RowDigests(WorkerPool):
    """Computes the SHA-256 of parts of files, in the order in which they are asked for.

    Whatever becomes of the worker, the digests come: this process then computes them.
    """

    def __init__(self) -> None:
        super().__init__(1, _digest)
        self._keys = count()
        self._digests: dict[int, str] = {}

    def __call__(self, path: str, offset: int, size: int) -> Callable[[], str]:
        """Begin to compute a digest; return a function that waits for it."""
        key = next(self._keys)
        self.put(key, (path, offset, size))

        def digest() -> str:
            return self._wait(key) or digest_of_part(path, offset, size)

        return digest

    def _wait(self, key: int) -> str:
        """Wait for the worker's digest; return an empty one if the worker does not give it."""
        with suppress(Exception):  # whatever the worker raises, or that no worker could be started
            while key not in self._digests:
                event = self.get(PATIENCE_S)
                if event is None:  # the worker takes too long
                    break
                if event.kind == "item":
                    self._digests[event.key] = event.value  # type: ignore[index]  # our keys are numbers
                elif event.kind != "done":
                    self._digests[event.key] = ""  # type: ignore[index]
        return self._digests.pop(key, "")


def _digest(part: tuple[str, int, int], parent: Parent) -> None:
    """Send the digest of a part of a file: its path, offset and size in bytes."""
    path, offset, size = part
    parent.send(digest_of_part(path, offset, size))
