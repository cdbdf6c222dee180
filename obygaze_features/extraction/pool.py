"""Decode clips in worker processes that can be killed, with back-pressure; yield clips as they finish."""

import tempfile
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from obygaze_features.extraction.decode import DecodedClip, DecodeTask, decode_clips, pieces
from obygaze_features.extraction.decoders import PYAV, load_decoder
from obygaze_features.extraction.slots import Slot, Slots, pack
from obygaze_features.video import share_in
from obygaze_features.workers import Event, WorkerPool

ATTEMPTS = 3  # a machine may also kill a worker: a file fails after three deaths
POLL_S = 0.2  # delay before a stop request is noticed while a long clip is decoded


class DecodePool:
    """Decode clips in separate processes; adjacent spans of a file share a pass.

    A file fails if it crashes the decoder three times in a row. It also fails, without a retry, if it exceeds
    the time limit. Other clips are not affected: if several clips were decoded together, the remaining ones
    are retried alone.

    Parameters
    ----------
    workers
        Number of processes; each decodes with one thread.
    timeout_s
        Time limit for one clip, in seconds; clips decoded together share the sum of their limits.
    decoder
        Name of the decoder.
    """

    def __init__(self, workers: int, timeout_s: float, decoder: str = PYAV) -> None:
        self.workers = workers
        self.timeout_s = timeout_s
        self.decoder = decoder
        # Workers share what they compute for a large file: its packet index and its digest.
        self._learnt = tempfile.TemporaryDirectory(prefix="obygaze-", ignore_cleanup_errors=True)
        self._pool = WorkerPool(
            workers, partial(_decode, decoder=decoder), partial(share_in, Path(self._learnt.name))
        )
        self._slots = Slots()
        self._keys = count()
        self._out: dict[Hashable, _Attempt] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._pool.close()
        self._slots.close()
        self._learnt.cleanup()

    def decode(
        self, tasks: Sequence[DecodeTask], ahead: int, stopped: Callable[[], bool] = lambda: False
    ) -> Iterator[DecodedClip]:
        """Decode clips, and yield them in the order in which they finish.

        The frames of a clip are in shared memory, which is reused when no reference to them is left.

        Parameters
        ----------
        ahead
            Most clips that are being decoded or waiting at any time; limits the memory. Every worker gets a
            piece of the work in any case.
        stopped
            Polled regularly; once true, nothing more is yielded. The workers are stopped with the pool.
        """
        queue = iter(pieces(tasks, self.workers))
        while not stopped():
            while (len(self._out) < self.workers or self._n_out() < ahead) and (
                piece := next(queue, None)
            ) is not None:
                self._put(piece)
            if not self._out:
                return
            event = self._pool.get(POLL_S)
            if event is not None:
                yield from self._take(event)

    def pids(self) -> list[int]:
        """List the worker processes."""
        return self._pool.pids()

    def _n_out(self) -> int:
        return sum(len(attempt.left) for attempt in self._out.values())

    def _put(self, tasks: Sequence[DecodeTask], number: int = 1) -> None:
        key = next(self._keys)
        slots = [self._slots.take() for _ in tasks]
        self._out[key] = _Attempt(dict(enumerate(tasks)), slots, number)
        self._pool.put(
            key,
            (tuple(tasks), [slot.number for slot in slots]),
            self.timeout_s * len(tasks),
            {slot.number: slot.descriptor for slot in slots},
        )

    def _take(self, event: Event) -> list[DecodedClip]:
        """Return the clips of an event; retry the clips of a worker that died."""
        attempt = self._out[event.key]
        if event.kind == "item":
            number, parcel = event.value
            del attempt.left[number]
            return [self._slots.unpack(attempt.slots[number], parcel)]
        del self._out[event.key]
        for number in attempt.left:
            self._slots.free(attempt.slots[number])
        left = list(attempt.left.values())
        if not left:  # every clip was yielded, even if the worker died after the last
            return []
        if event.kind == "done":
            reason = f"the decoder '{self.decoder}' gave nothing for this clip"
        elif len(attempt.slots) > 1:
            for task in left:
                self._put([task])
            return []
        elif event.kind == "late":
            reason = f"decoding took longer than the limit of {self.timeout_s:g} s"
        elif attempt.number < ATTEMPTS:
            self._put(left, attempt.number + 1)
            return []
        else:
            reason = f"the decoder crashed on this file {ATTEMPTS} times ({event.value})"
        return [DecodedClip(task.clip_id, "failed", reason) for task in left]


@dataclass(slots=True)
class _Attempt:
    """Clips in the `number`-th attempt at decoding, each with its slot."""

    left: dict[int, DecodeTask]
    slots: list[Slot]
    number: int = 1


def _decode(
    work: tuple[Sequence[DecodeTask], Sequence[int]], files: Mapping[int, int], *, decoder: str
) -> Iterator[tuple[int, Any]]:
    """Decode clips in a worker, and write each into its slot."""
    tasks, slots = work
    for number, clip in decode_clips(tasks, load_decoder(decoder)):
        yield number, pack(clip, files[slots[number]])
