"""Decode clips in worker processes that can be killed, with back-pressure; yield clips as they finish."""

import pickle
import tempfile
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import NamedTuple, Self

from obygaze_features.extraction.decode_clips import (
    PASS_CLIPS,
    DecodedClip,
    DecodeTask,
    Pixels,
    decode_clips,
    decode_stretch,
    decode_with_av,
    take_pictures,
)
from obygaze_features.extraction.decoders import PYAV, Decode, load_decoder
from obygaze_features.extraction.films import FilePass, Films, Stretch, StretchFrames, WorkQueue
from obygaze_features.extraction.keep_frames import as_jpegs, with_frame_cache
from obygaze_features.video import Known, Rest, share_in
from obygaze_features.video.file_facts import packed
from obygaze_features.workers import Event, Parent, WorkerPool

MAX_CRASHES = 3
"""Crashes after which a file fails; more than one, since the machine may also have killed the worker."""
POLL_S = 0.2
"""Seconds until a request to stop is noticed while a long clip is decoded."""


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
        """Make a pool without work; its processes start with the first pass (clips of one file)."""
        self.workers = workers
        self.timeout_s = timeout_s
        self.decoder = decoder
        self._max_queued = 2 * workers + batch_size  # clips that are decoded or wait for a worker
        # Workers share what they compute for a large file, and frames that several of them need.
        self._shared = tempfile.TemporaryDirectory(prefix="obygaze-", ignore_cleanup_errors=True)
        self._pool = WorkerPool(workers, partial(_decode, decoder=decoder, folder=Path(self._shared.name)))
        self._keys = count()  # keys for attempts: 0, 1, ...
        self._running: dict[Hashable, _PassAttempt] = {}  # key -> attempt that a worker does or is queued for

    def __enter__(self) -> Self:
        """Return the pool."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the workers, and remove what they share."""
        self._pool.close()
        self._shared.cleanup()

    def decode(
        self,
        tasks: Sequence[DecodeTask],
        stopped: Callable[[], bool] = lambda: False,
        films: Films | None = None,
    ) -> Iterator[DecodedClip]:
        """Decode clips in the worker processes, and yield them in the order in which they finish.

        The frames of a clip are in shared memory, which is reused when no reference to them is left.

        Parameters
        ----------
        tasks
            The clips.
        stopped
            Polled regularly; once true, nothing more is yielded. The workers are stopped with the pool.
        films
            Films whose frames are measured too, to find their shots; with the decoder PyAV.
        """
        queue = WorkQueue(tasks, self.workers, films)
        while not stopped():
            while self._begin_next(queue):  # until the workers have enough to do
                pass
            if self._is_idle():
                return
            event = self._pool.get(POLL_S)
            if event is not None:
                yield from self._handle_event(event, queue, films)

    def _begin_next(self, queue: WorkQueue) -> bool:
        """Give the next pass (clips of one file) to the workers; return False if that is not possible now."""
        if not queue or not self._has_room():
            return False
        self._put(queue.popleft())
        return True

    def _is_idle(self) -> bool:
        """Return whether no pass is being decoded."""
        return not self._running

    def _handle_event(self, event: Event, queue: WorkQueue, films: Films | None) -> list[DecodedClip]:
        """Handle a message of a worker, or the end of its task; return the clips that are finished by it.

        Clips to decode again are queued.

        Parameters
        ----------
        event
            The message or the end; its key names the attempt to decode a pass.
        queue
            Passes that wait.
        films
            Films whose frames are measured; None if there are none.
        """
        is_message = event.kind == "item"
        if is_message:
            return self._handle_message(event.key, event.value, films)
        # The worker has done its task, has died, or was killed at the time limit.
        if self._running[event.key].file_pass.stretch is not None:
            self._end_stretch(event, queue)
            return []
        return self._end_pass(event)

    def _handle_message(
        self, key: Hashable, message: "ClipMessage | StretchMessage", films: Films | None
    ) -> list[DecodedClip]:
        """Return the clip that a worker has sent; or store measurements of a film that it has sent.

        Parameters
        ----------
        key
            Key of the attempt that the worker does.
        message
            A decoded clip, or the measurements of a part of a film.
        films
            Films whose frames are measured.
        """
        attempt = self._running[key]
        if isinstance(message, ClipMessage):
            del attempt.undone[message.position]
            return [message.clip]
        # A part of a film was measured. The worker has also written the frames that other windows need.
        stretch = attempt.file_pass.stretch
        if films is not None and stretch is not None:
            attempt.stretch_frames = StretchFrames(attempt.frames_file)
            films.write_measurements(stretch, message.measurements, message.n_decoded, message.cpu_s)
        return []

    def _has_room(self) -> bool:
        """Return whether another pass may be given to the workers: one is idle, or few enough clips wait."""
        n_clips = 0  # that are decoded or wait
        for attempt in self._running.values():
            n_clips += max(len(attempt.undone), 1)  # a stretch in which no window begins counts as one clip
        a_worker_is_idle = len(self._running) < self.workers
        return a_worker_is_idle or n_clips < self._max_queued

    def _put(self, file_pass: FilePass, n_attempts: int = 1) -> Hashable:
        """Give a pass (clips of one file) to the workers; return a key, which its events will have.

        Parameters
        ----------
        file_pass
            The pass.
        n_attempts
            Number of this attempt at the pass, from 1.
        """
        # Note what is to do. If the pass is over a stretch (a part of a film that is decoded as a whole), the
        # worker will write frames of it that other windows need into a file.
        key = next(self._keys)
        frames_file = Path(self._shared.name, f"frames-{key}")
        undone_tasks = dict(enumerate(file_pass.tasks))
        self._running[key] = _PassAttempt(undone_tasks, file_pass, frames_file, n_attempts)

        # The pass may need such files of stretches that were decoded before. The worker gets their paths, and
        # no `StretchFrames`: such an object removes its file when it is deleted, and the worker's copy would
        # do so too early.
        stretch_files = [frames.path for frames in file_pass.stretch_frames]
        pass_without_frames = replace(file_pass, stretch_frames=())
        task = _PassTask(pass_without_frames, frames_file, stretch_files)

        # The time limit is one for each clip. A stretch takes as long as the most clips of a pass, however
        # few windows begin in it.
        n_clips = PASS_CLIPS if file_pass.stretch else len(file_pass.tasks)
        limit_s = self.timeout_s * n_clips
        self._pool.put(key, task, limit_s)
        return key

    def _end_stretch(self, event: Event, queue: WorkQueue) -> None:
        """Handle the end of an attempt to decode a part of a film (stretch), and windows with it.

        If the worker died before it had measured the stretch, it is decoded again, up to `MAX_CRASHES` times
        in all. Otherwise the queue is told that the stretch has ended, whether it was measured or not. The
        queue also gets the windows that the attempt did not give: they are decoded by passes of their own.

        Parameters
        ----------
        event
            How the attempt ended.
        queue
            Passes that wait for a worker.
        """
        attempt = self._running.pop(event.key)
        undone_tasks = list(attempt.undone.values())
        is_measured = attempt.stretch_frames is not None  # set by the worker's last message of a stretch
        died_early = event.kind == "died" and not is_measured
        if died_early and attempt.number < MAX_CRASHES:
            rest_of_pass = replace(attempt.file_pass, tasks=undone_tasks)
            self._put(rest_of_pass, attempt.number + 1)
            return
        stretch = attempt.file_pass.stretch
        if stretch is not None:  # for type checkers: this is called for passes over stretches only
            queue.end_stretch(stretch, undone_tasks, attempt.stretch_frames)

    def _end_pass(self, event: Event) -> list[DecodedClip]:
        """Handle the end of an attempt to decode clips of a file; return the clips that have failed by it.

        Clips that the attempt did not give are decoded again, unless they have been tried often enough.

        Parameters
        ----------
        event
            How the attempt ended: `done`, `died` (the worker crashed) or `late` (it took too long).
        """
        attempt = self._running.pop(event.key)
        undone_tasks = list(attempt.undone.values())
        if not undone_tasks:  # every clip was given, even if the worker died after the last
            return []
        if event.kind == "done":
            return _failed(undone_tasks, f"the decoder '{self.decoder}' gave nothing for this clip")

        # The worker died or was late. Any of several clips may be at fault: each is decoded alone.
        if len(attempt.file_pass.tasks) > 1:
            for task in undone_tasks:
                self._put(FilePass([task]))
            return []

        if event.kind == "late":
            return _failed(undone_tasks, f"decoding took longer than the limit of {self.timeout_s:g} s")
        if attempt.number < MAX_CRASHES:
            self._put(FilePass(undone_tasks), attempt.number + 1)
            return []
        return _failed(undone_tasks, f"the decoder crashed on this file {MAX_CRASHES} times ({event.value})")


def _failed(tasks: Sequence[DecodeTask], reason: str) -> list[DecodedClip]:
    """Return results of clips that failed, all for the same reason."""
    return [DecodedClip(task.clip_id, "failed", reason) for task in tasks]


@dataclass(slots=True)
class _PassAttempt:
    """An attempt to decode a pass.

    Attributes
    ----------
    undone
        Position in the pass of each clip that was not given yet -> its task.
    file_pass
        The pass.
    frames_file
        File for the frames of its stretch that other windows need.
    number
        Number of the attempt, from 1.
    stretch_frames
        The frames in that file, once the stretch has been decoded; else None.
    """

    undone: dict[int, DecodeTask]
    file_pass: FilePass
    frames_file: Path
    number: int
    stretch_frames: StretchFrames | None = None


class _PassTask(NamedTuple):
    """Input of a decode worker.

    Attributes
    ----------
    file_pass
        The pass, without `stretch_frames`.
    frames_file
        File to write: the frames of the pass's stretch that other windows need.
    stretch_files
        Such files of other stretches, which are decoded already.
    """

    file_pass: FilePass
    frames_file: Path
    stretch_files: Sequence[Path]


class ClipMessage(NamedTuple):
    """Message of a worker with a decoded clip, and its position in the pass."""

    position: int
    clip: DecodedClip


class StretchMessage(NamedTuple):
    """Message of a worker that has decoded a stretch to its end; its windows are messages of their own.

    Attributes
    ----------
    measurements
        Measurements of its frames, packed.
    n_decoded, cpu_s
        Frames decoded and processor seconds spent that are not counted with a window.
    """

    measurements: bytes
    n_decoded: int
    cpu_s: float


def _decode(task: _PassTask, parent: Parent, *, decoder: str, folder: Path) -> None:
    """Decode a pass (clips of one file) in a worker process, and send the clips to the main process.

    A pass may be over a whole part of a film (stretch), whose frames are measured to find shots.

    Parameters
    ----------
    task
        The pass, and the files of frames that were decoded with stretches.
    parent
        The main process. It gets a `ClipMessage` for each clip, and a `StretchMessage` for a stretch.
    decoder
        Name of the decoder.
    folder
        Where the workers of a pool share what they compute for a large file.
    """
    share_in(folder)
    started_s = time.process_time()
    tasks = task.file_pass.tasks
    stretch = task.file_pass.stretch
    # A decoder yields clips and cannot return anything else. If the pass is over a stretch, it puts the
    # result for the stretch into this list when it has decoded all of it; so there are one or none.
    stretch_results: list[Rest[Pixels]] = []
    decode = _decoder_of_pass(task, load_decoder(decoder), stretch_results)
    if stretch is not None and not take_pictures(tasks):
        # All backbones take only sound: `decode_clips` below will not call the decoder of pictures.
        _measure_stretch(stretch, stretch_results)

    clips_cpu_s = 0.0
    for position, clip in decode_clips(tasks, decode):
        clips_cpu_s += clip.cpu_s
        parent.send(ClipMessage(position, clip))

    # The frames of the stretch that windows of other passes need go into a file, its measurements to the main
    # process. Each clip has counted its own processor time, so that the rest is the stretch's.
    for stretch_result in stretch_results:
        task.frames_file.write_bytes(pickle.dumps(stretch_result.known))
        all_cpu_s = time.process_time() - started_s
        stretch_cpu_s = all_cpu_s - clips_cpu_s
        parent.send(StretchMessage(packed(stretch_result.measured), stretch_result.decoded, stretch_cpu_s))


def _decoder_of_pass(task: _PassTask, decode: Decode, stretch_results: list[Rest[Pixels]]) -> Decode:
    """Return the function that decodes a pass (clips of one file), of one of three kinds.

    - A pass over a stretch of a film decodes all of it (`decode_stretch`).
    - A pass over windows that use frames of stretches decodes the other frames with PyAV.
    - All other passes use the usual decoder.

    In each case frames are read from the cache of frames and written to it, if the clips have one.

    Parameters
    ----------
    task
        The pass, and the files of frames that were decoded with stretches.
    decode
        The usual decoder.
    stretch_results
        At the end of a stretch, the returned function appends its result to this list: the measurements
        (`measured`), and the frames that other windows need (`known`).
    """
    # 1. A pass over a stretch
    stretch = task.file_pass.stretch
    if stretch is not None:
        # They may need frames of this stretch, which are kept for them.
        windows_of_other_passes = [as_jpegs(other) for other in task.file_pass.others]
        decode_windows = partial(
            decode_stretch,
            path=stretch.path,
            stretch=(stretch.start_s, stretch.end_s),
            others=windows_of_other_passes,
            stretch_results=stretch_results,
        )
        # Called even if the frames of all windows are in the cache, since it measures the stretch.
        return with_frame_cache(decode_windows, always=True)

    # 2. A pass over windows of which frames were decoded with stretches
    known_frames: dict[int, Known[Pixels]] = {}  # frame number -> what the windows need of the frame
    for path in task.stretch_files:
        known_frames |= pickle.loads(path.read_bytes())  # noqa: S301 - from our own process
    if known_frames:
        return with_frame_cache(partial(decode_with_av, known=known_frames))

    # 3. Any other pass
    return with_frame_cache(decode)


def _measure_stretch(stretch: Stretch, stretch_results: list[Rest[Pixels]]) -> None:
    """Decode a part of a film (stretch) only to measure its frames for the detection of shots.

    Parameters
    ----------
    stretch
        The part of the film.
    stretch_results
        The measurements are appended to this list if all of the stretch can be decoded.
    """
    no_windows = decode_stretch(
        tasks=(),
        path=stretch.path,
        stretch=(stretch.start_s, stretch.end_s),
        others=(),  # nor windows that are read elsewhere
        stretch_results=stretch_results,
    )
    # A generator of the windows, which decodes the stretch only when it is run. It yields none here, but at
    # its end it appends the measurements to `stretch_results`.
    for _window in no_windows:
        pass
