"""Decode clips in worker processes that can be killed, with back-pressure; yield clips as they finish."""

import pickle
import tempfile
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Self

from obygaze_features.extraction.decode_clips import (
    PASS_CLIPS,
    DecodedClip,
    DecodeTask,
    Pixels,
    decode_clips,
    decode_stretch,
    decode_with_av,
)
from obygaze_features.extraction.decoders import PYAV, load_decoder
from obygaze_features.extraction.films import Films, KeptFrames, Pass, WorkQueue
from obygaze_features.extraction.keep_frames import as_jpegs, keeping
from obygaze_features.video import Known, Rest, share_in
from obygaze_features.video.file_facts import packed
from obygaze_features.workers import Event, Parent, WorkerPool

REST = -1  # number of the item that a stretch gives beside its windows
ATTEMPTS = 3  # a machine may also kill a worker: a file fails after three crashes
POLL_S = 0.2  # delay before a stop request is noticed while a long clip is decoded


class DecodePool:
    """Decode clips in separate processes; adjacent spans of a file share a pass.

    A file fails if it crashes the decoder three times in a row. It also fails, without a retry, if it exceeds
    the time limit. Other clips are not affected: if several clips were decoded together, the remaining ones
    are retried alone.

    Memory holds at most `2 * workers + batch_size` prepared clips, and one full-size frame per worker. The
    windows of a film are decoded in one pass: up to `PASS_CLIPS` prepared clips per worker.

    Parameters
    ----------
    workers
        Number of processes; each decodes with one thread.
    timeout_s
        Time limit for one clip, in seconds; clips decoded together share the sum of their limits.
    decoder
        Name of the decoder.
    batch_size
        Clips that are taken together.
    """

    def __init__(self, workers: int, timeout_s: float, decoder: str = PYAV, batch_size: int = 1) -> None:
        self.workers, self.timeout_s, self.decoder = workers, timeout_s, decoder
        self._ahead = 2 * workers + batch_size
        # Workers share what they compute for a large file, and frames that several of them need.
        self._shared = tempfile.TemporaryDirectory(prefix="obygaze-", ignore_cleanup_errors=True)
        self._pool = WorkerPool(workers, partial(_decode, decoder=decoder, folder=Path(self._shared.name)))
        self._keys = count()
        self._out: dict[Hashable, _Attempt] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.close()
        self._shared.cleanup()

    def decode(
        self,
        tasks: Sequence[DecodeTask],
        stopped: Callable[[], bool] = lambda: False,
        films: Films | None = None,
    ) -> Iterator[DecodedClip]:
        """Decode clips, and yield them in the order in which they finish.

        The frames of a clip are in shared memory, which is reused when no reference to them is left.

        Parameters
        ----------
        stopped
            Polled regularly; once true, nothing more is yielded. The workers are stopped with the pool.
        films
            Measures these films too; with the decoder PyAV.
        """
        queue = WorkQueue(tasks, self.workers, films)
        while not stopped():
            while queue and (len(self._out) < self.workers or self._n_out() < self._ahead):
                self._put(queue.popleft())
            if not self._out:
                return
            event = self._pool.get(POLL_S)
            if event is None:
                continue
            if event.kind == "item" and event.value[0] == REST and films is not None:
                self._take_rest(event, films)
            elif event.kind != "item" and self._out[event.key].work.stretch is not None:
                self._end_stretch(event, queue)
            else:
                yield from self._take(event)

    def _n_out(self) -> int:
        return sum(max(len(attempt.left), 1) for attempt in self._out.values())

    def _put(self, work: Pass, number: int = 1) -> None:
        key = next(self._keys)
        kept = Path(self._shared.name, f"frames-{key}")
        self._out[key] = _Attempt(dict(enumerate(work.tasks)), work, kept, number)
        task = replace(work, known=()), kept, [frames.path for frames in work.known]
        self._pool.put(key, task, self.timeout_s * (PASS_CLIPS if work.stretch else len(work.tasks)))

    def _take_rest(self, event: Event, films: Films) -> None:
        """Keep what a stretch gave beside its windows."""
        attempt = self._out[event.key]
        _, measured, n_decoded, cpu_s = event.value
        if attempt.work.stretch is not None:
            attempt.known = KeptFrames(attempt.kept)
            films.keep(attempt.work.stretch, measured, n_decoded, cpu_s)

    def _end_stretch(self, event: Event, queue: WorkQueue) -> None:
        """Queue the windows that a stretch has left, or the stretch again if its worker died."""
        attempt = self._out.pop(event.key)
        left = list(attempt.left.values())
        if event.kind == "died" and attempt.known is None and attempt.number < ATTEMPTS:
            self._put(replace(attempt.work, tasks=left), attempt.number + 1)
        elif attempt.work.stretch is not None:
            queue.done(attempt.work.stretch, left, attempt.known)

    def _take(self, event: Event) -> list[DecodedClip]:
        """Return the clips of an event; retry the clips of a worker that died."""
        attempt = self._out[event.key]
        if event.kind == "item":
            number, clip = event.value
            del attempt.left[number]
            return [clip]
        del self._out[event.key]
        left = list(attempt.left.values())
        if not left:  # every clip was yielded, even if the worker died after the last
            return []
        if event.kind == "done":
            reason = f"the decoder '{self.decoder}' gave nothing for this clip"
        elif len(attempt.work.tasks) > 1:
            for task in left:
                self._put(Pass([task]))
            return []
        elif event.kind == "late":
            reason = f"decoding took longer than the limit of {self.timeout_s:g} s"
        elif attempt.number < ATTEMPTS:
            self._put(Pass(left), attempt.number + 1)
            return []
        else:
            reason = f"the decoder crashed on this file {ATTEMPTS} times ({event.value})"
        return [DecodedClip(task.clip_id, "failed", reason) for task in left]


@dataclass(slots=True)
class _Attempt:
    """Clips left in the `number`-th attempt at a pass; the file for frames of its stretch."""

    left: dict[int, DecodeTask]
    work: Pass
    kept: Path
    number: int
    known: KeptFrames | None = None


def _decode(task: tuple[Pass, Path, Sequence[Path]], parent: Parent, *, decoder: str, folder: Path) -> None:
    """Decode a pass in a worker, given a file for the frames of its stretch, and files of such frames."""
    work, kept, known_files = task
    share_in(folder)
    started, spent_s = time.process_time(), 0.0
    known: dict[int, Known[Pixels]] = {}
    for path in known_files:
        known |= pickle.loads(path.read_bytes())  # noqa: S301 - from our own process
    rests: list[Rest[Pixels]] = []
    decode = load_decoder(decoder)
    if work.stretch is not None:
        film, ends = work.stretch.path, (work.stretch.start_s, work.stretch.end_s)
        others = [as_jpegs(task) for task in work.others]
        decode = partial(decode_stretch, path=film, stretch=ends, others=others, rests=rests)
        if work.tasks and not work.tasks[0].requests:  # what hears takes no picture
            list(decode_stretch((), path=film, stretch=ends, others=(), rests=rests))
    elif known:
        decode = partial(decode_with_av, known=known)
    decode = keeping(decode, always=work.stretch is not None)
    for number, clip in decode_clips(work.tasks, decode):
        spent_s += clip.cpu_s
        parent.send((number, clip))
    for rest in rests:
        kept.write_bytes(pickle.dumps(rest.known))
        cpu_s = time.process_time() - started - spent_s
        parent.send((REST, packed(rest.measured), rest.decoded, cpu_s))
