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
        self._known: dict[int, str] = {}

    def __call__(self, path: str, offset: int, size: int) -> Callable[[], str]:
        """Begin to compute a digest; return a function that waits for it."""
        key = next(self._keys)
        self.put(key, (path, offset, size))
        return lambda: self._wait(key) or digest_of_part(path, offset, size)

    def _wait(self, key: int) -> str:
        with suppress(Exception):  # the worker's, or of a machine that has no room for one
            while key not in self._known and (event := self.get(PATIENCE_S)) is not None:
                if event.kind != "done":
                    self._known[event.key] = event.value if event.kind == "item" else ""  # type: ignore[index]
        return self._known.pop(key, "")


def _digest(part: tuple[str, int, int], parent: Parent) -> None:
    parent.send(digest_of_part(*part))
