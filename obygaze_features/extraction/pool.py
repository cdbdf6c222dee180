"""Decode workers: processes that can be killed, fed no faster than their clips are used."""

import multiprocessing
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from pebble import ProcessExpired, ProcessFuture, ProcessPool

from obygaze_features.extraction.decode import DecodedClip, DecodeTask, decode_clip

ATTEMPTS = 3  # a worker may also die of its machine: only a file that kills three of them is to blame
POLL_S = 0.2  # how soon a wish to stop is noticed while a long clip is being decoded


class DecodePool:
    """Workers that decode clips one at a time, each in a process of its own.

    A file that crashes the decoder three times in a row has failed, and so has one that holds it beyond the
    time limit, which is not tried again: another clip's time is not spent on it. Neither costs anything else.

    Parameters
    ----------
    workers
        How many processes; each decodes with one thread.
    timeout_s
        The longest that one clip may take.
    """

    def __init__(self, workers: int, timeout_s: float) -> None:
        self.workers = workers
        self.timeout_s = timeout_s
        # Not fork: the parent holds zarr's event loop and perhaps a GPU, which do not survive it.
        self._pool = ProcessPool(
            max_workers=workers, initializer=_die_with_parent, context=multiprocessing.get_context("spawn")
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._pool.stop()  # type: ignore[no-untyped-call]
        self._pool.join()

    def decode(
        self, tasks: Sequence[DecodeTask], ahead: int, stopped: Callable[[], bool] = lambda: False
    ) -> Iterator[DecodedClip]:
        """Decode clips, given back in the order of `tasks`.

        Parameters
        ----------
        ahead
            How many clips may be decoded or waiting at any moment: what bounds the memory.
        stopped
            Asked now and then; once true, nothing more is given and the workers are left to be stopped.
        """
        waiting: deque[_Attempt] = deque()
        queue = iter(tasks)
        while not stopped():
            while len(waiting) < ahead and (task := next(queue, None)) is not None:
                waiting.append(_Attempt(task, self._schedule(task)))
            if not waiting:
                return
            decoded = self._result(waiting[0])
            if decoded is not None:
                waiting.popleft()
                yield decoded

    def _schedule(self, task: DecodeTask) -> ProcessFuture[DecodedClip]:
        return self._pool.schedule(decode_clip, args=[task], timeout=self.timeout_s)

    def _result(self, attempt: "_Attempt") -> DecodedClip | None:
        """Wait a little for a clip, trying again after a crash: None if it is not there yet."""
        task = attempt.task
        try:
            return attempt.future.result(timeout=POLL_S)
        except ProcessExpired as expired:
            if attempt.number < ATTEMPTS:
                attempt.number += 1
                attempt.future = self._schedule(task)
                return None
            how = f"signal {-expired.exitcode}" if expired.exitcode < 0 else f"exit code {expired.exitcode}"
            reason = f"the decoder crashed on this file {ATTEMPTS} times ({how})"
            return DecodedClip(task.clip_id, "failed", reason)
        except FutureTimeoutError:
            if not attempt.future.done():
                return None
            reason = f"decoding took longer than the limit of {self.timeout_s:g} s"
            return DecodedClip(task.clip_id, "failed", reason)


@dataclass(slots=True)
class _Attempt:
    """A clip that a worker is trying to decode, for the `number`-th time."""

    task: DecodeTask
    future: ProcessFuture[DecodedClip]
    number: int = 1


def usable_cores() -> int:
    """Count the cores that this process may use, which under Slurm are fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _die_with_parent() -> None:
    """Leave as soon as the extraction is gone, even if it was killed outright."""
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
