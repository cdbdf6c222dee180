"""Decode clips in worker processes that can be killed, with back-pressure; first done, first given."""

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

ATTEMPTS = 3  # a worker may also die of its machine: only a file that kills three of them is to blame
POLL_S = 0.2  # how soon a wish to stop is noticed while a long clip is being decoded


class DecodePool:
    """Workers that decode clips in separate processes; adjacent spans of a file share a pass.

    A file that crashes the decoder three times in a row has failed, and so has one that holds it beyond the
    time limit, which is not tried again: another clip's time is not spent on it. Neither costs anything else:
    where several clips were decoded together, those that are left are then tried alone.

    Parameters
    ----------
    workers
        How many processes; each decodes with one thread.
    timeout_s
        The longest that one clip may take; clips decoded together have the sum.
    decoder
        Name of the decoder.
    """

    def __init__(self, workers: int, timeout_s: float, decoder: str = PYAV) -> None:
        self.workers = workers
        self.timeout_s = timeout_s
        self.decoder = decoder
        # What a worker learns of a large file (its packets, its digest) serves the others.
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
        """Decode clips, given back in the order in which they are done.

        The frames of a clip lie in shared memory that is used again once they are forgotten.

        Parameters
        ----------
        ahead
            How many clips may be decoded or waiting at any moment: what bounds the memory. Every worker has a
            piece of the work in any case.
        stopped
            Asked now and then; once true, nothing more is given and the workers are left to be stopped.
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
        """Return the clips that are in an event; try again what a worker died of."""
        attempt = self._out[event.key]
        if event.kind == "item":
            number, parcel = event.value
            del attempt.left[number]
            return [self._slots.unpack(attempt.slots[number], parcel)]
        del self._out[event.key]
        for number in attempt.left:
            self._slots.free(attempt.slots[number])
        left = list(attempt.left.values())
        if not left:  # every clip was given, even if the worker died after the last
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
    """Clips that a worker is trying to decode, for the `number`-th time, each with its slot."""

    left: dict[int, DecodeTask]
    slots: list[Slot]
    number: int = 1


def _decode(
    work: tuple[Sequence[DecodeTask], Sequence[int]], files: Mapping[int, int], *, decoder: str
) -> Iterator[tuple[int, Any]]:
    """Decode clips in a worker, each into its slot."""
    tasks, slots = work
    for number, clip in decode_clips(tasks, load_decoder(decoder)):
        yield number, pack(clip, files[slots[number]])
