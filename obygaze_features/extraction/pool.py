"""Run decode workers in processes that can be killed, with back-pressure."""

import multiprocessing
import os
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from pebble import ProcessExpired, ProcessFuture, ProcessPool

from obygaze_features.extraction.decode import DecodedClip, DecodeTask, decode_clips, pieces
from obygaze_features.video import share_in

ATTEMPTS = 3  # a worker may also die of its machine: only a file that kills three of them is to blame
POLL_S = 0.2  # how soon a wish to stop is noticed while a long clip is being decoded


class DecodePool:
    """Workers that decode clips in separate processes; adjacent spans of a file share a pass.

    A file that crashes the decoder three times in a row has failed, and so has one that holds it beyond the
    time limit, which is not tried again: another clip's time is not spent on it. Neither costs anything else:
    where several clips were decoded together, each is then tried alone.

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
        # What a worker learns of a large file (its packets, its digest) serves the others.
        self._learnt = tempfile.TemporaryDirectory(prefix="obygaze-", ignore_cleanup_errors=True)
        self._pool = ProcessPool(
            max_workers=workers,
            initializer=_begin,
            initargs=[Path(self._learnt.name)],
            context=multiprocessing.get_context("spawn"),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._pool.stop()  # type: ignore[no-untyped-call]  # pebble is not typed
        self._pool.join()
        self._learnt.cleanup()

    def decode(
        self, tasks: Sequence[DecodeTask], ahead: int, stopped: Callable[[], bool] = lambda: False
    ) -> Iterator[DecodedClip]:
        """Decode clips, given back in the order of `tasks`.

        Parameters
        ----------
        ahead
            How many clips may be decoded or waiting at any moment: what bounds the memory. Every worker has a
            piece of the work in any case.
        stopped
            Asked now and then; once true, nothing more is given and the workers are left to be stopped.
        """
        waiting: deque[_Attempt] = deque()
        queue = iter(pieces(tasks, self.workers))
        while not stopped():
            while (
                len(waiting) < self.workers or sum(len(attempt.tasks) for attempt in waiting) < ahead
            ) and (piece := next(queue, None)) is not None:
                waiting.append(_Attempt(piece, self._schedule(piece)))
            if not waiting:
                return
            decoded = self._result(waiting)
            if decoded is not None:
                waiting.popleft()
                yield from decoded

    def _schedule(self, tasks: Sequence[DecodeTask]) -> ProcessFuture[list[DecodedClip]]:
        return self._pool.schedule(decode_clips, args=[tasks], timeout=self.timeout_s)

    def _result(self, waiting: "deque[_Attempt]") -> list[DecodedClip] | None:
        """Wait a little for the first clips, trying again after a crash: None if they are not there yet."""
        attempt = waiting[0]
        try:
            return attempt.future.result(timeout=POLL_S)
        except ProcessExpired as expired:
            if len(attempt.tasks) > 1:
                self._singly(waiting)
                return None
            if attempt.number < ATTEMPTS:
                attempt.number += 1
                attempt.future = self._schedule(attempt.tasks)
                return None
            how = f"signal {-expired.exitcode}" if expired.exitcode < 0 else f"exit code {expired.exitcode}"
            reason = f"the decoder crashed on this file {ATTEMPTS} times ({how})"
        except FutureTimeoutError:
            if not attempt.future.done():
                return None
            if len(attempt.tasks) > 1:
                self._singly(waiting)
                return None
            reason = f"decoding took longer than the limit of {self.timeout_s:g} s"
        return [DecodedClip(attempt.tasks[0].clip_id, "failed", reason)]

    def _singly(self, waiting: "deque[_Attempt]") -> None:
        """Try the first clips one by one, after a worker failed at all of them together."""
        tasks = waiting.popleft().tasks
        waiting.extendleft(_Attempt([task], self._schedule([task])) for task in reversed(tasks))


@dataclass(slots=True)
class _Attempt:
    """Clips that a worker is trying to decode, for the `number`-th time."""

    tasks: list[DecodeTask]
    future: ProcessFuture[list[DecodedClip]]
    number: int = 1


def usable_cores() -> int:
    """Count the cores that this process may use; of a Slurm task no more than were asked for.

    Slurm binds tasks to their cores only where its site has set that up.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    given = os.environ.get("SLURM_CPUS_PER_TASK") or os.environ.get("SLURM_CPUS_ON_NODE") or ""
    return min(cores, int(given)) if given.isdecimal() else cores


def _begin(learnt: Path) -> None:
    """Share what is learnt of files, and leave as soon as the extraction is gone, even if it was killed."""
    share_in(learnt)
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
