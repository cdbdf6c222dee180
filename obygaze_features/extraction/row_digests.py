"""Compute the digests of large rows in a worker process, from the files that they were written to."""

from collections.abc import Callable
from functools import partial
from itertools import count

from obygaze_features.store.writer import digest_of_part
from obygaze_features.workers import Event, Parent, WorkerPool

LONGEST_WAIT_S = 60.0
"""Seconds after which this process computes a digest itself."""


class RowDigests(WorkerPool):
    """Computes the SHA-256 of large rows in one worker process, while this process goes on.

    A call starts to compute the digest of a part of a file, and returns a function that waits for it. If the
    worker fails or is too slow, this process computes the digest itself.
    """

    def __init__(self) -> None:
        """Make a pool of one worker, which computes digests by `_digest`."""
        super().__init__(1, _digest)
        self._keys = count()  # of calls: 0, 1, ...
        self._digests: dict[int, str | None] = {}  # key of a call -> digest; None if the worker failed

    def __call__(self, path: str, offset: int, size: int) -> Callable[[], str]:
        """Start to compute the SHA-256 of a part of a file; return a function that waits for the result.

        The worker computes it. By a key of its own, the call recognises its digest among those of other calls
        that the worker sends back.

        Parameters
        ----------
        path
            The file.
        offset, size
            First byte of the part, from 0, and its number of bytes.
        """
        key_of_call = next(self._keys)
        self.put(key_of_call, (path, offset, size))
        # Called later in this process, with the part too, to compute the digest here if the worker fails.
        return partial(self._result, key_of_call, path, offset, size)

    def _result(self, key: int, path: str, offset: int, size: int) -> str:
        """Return the SHA-256 of a part of a file: the worker's, or if it sends none, computed here."""
        digest = self._wait(key)
        if digest is None:
            return digest_of_part(path, offset, size)
        return digest

    def _wait(self, key: int) -> str | None:
        """Wait for the digest of a part of a file from the worker; return None if it does not come.

        Digests of other parts that come before are kept for later calls.
        """
        try:
            while key not in self._digests:
                event = self.get(LONGEST_WAIT_S)
                if event is None:  # the worker takes too long
                    return None
                self._record(event)
        except Exception:  # noqa: BLE001 - whatever the worker raises, or that no worker could be started
            return None
        return self._digests.pop(key)

    def _record(self, event: Event) -> None:
        """Store the digest that an event of the worker brings, or None if the worker has died.

        It need not be the digest that is waited for now.
        """
        if event.kind == "done":  # says nothing new, as it follows the digest
            return
        is_digest = event.kind == "item"  # else the worker has died
        self._digests[event.key] = event.value if is_digest else None  # type: ignore[index]  # keys are numbers


def _digest(part: tuple[str, int, int], parent: Parent) -> None:
    """Send the main process the SHA-256 of a part of a file: its path, first byte and number of bytes."""
    path, offset, size = part
    parent.send(digest_of_part(path, offset, size))
