"""Find the shots of films on the frames that are decoded for their windows, each frame once.

A film is cut into stretches, at the start of every `PASS_CLIPS`-th window. A worker decodes a stretch whole:
it gives the windows inside it, the measurements of its frames, and the frames that windows across its ends
need. Those windows are put together when all stretches they reach into are done. Measurements are kept in the
stage, so that a run that was stopped measures only the stretches that are left. Where a stretch cannot be
decoded exactly, its windows are read as without stretches, and the film is decoded once more for its shots.
"""

import hashlib
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf
from pathlib import Path

from obygaze_features.door import read_bytes
from obygaze_features.errors import ExtractError, VideoError
from obygaze_features.extraction.decode_clips import PASS_CLIPS, DecodeTask, passes
from obygaze_features.io import refuse_existing, write_whole
from obygaze_features.manifest import FilmPart, Manifest, shots_bytes
from obygaze_features.video import Measured, find_shots, is_still, joined_shots, why_not_in_stretches
from obygaze_features.video.file_facts import unpacked

DETECTOR = "own"
MEASURED = "shots"  # folder of a stage, one file per measured stretch
NEAR_S = 60.0
"""Seconds after the end of a stretch up to which decoding is expected to be able to start."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Part `number` of a film, from `start_s` to before `end_s` in seconds; the film's ends are infinite."""

    movie: str
    path: Path
    number: int
    edges: tuple[float, ...] = field(repr=False)

    @property
    def start_s(self) -> float:
        """Its start, which is moved to where decoding can start."""
        return self.edges[self.number]

    @property
    def end_s(self) -> float:
        """The start of the next stretch."""
        return self.edges[self.number + 1]


class KeptFrames:
    """Frames of a stretch that other windows need, in a file that is removed when nothing refers to this."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __del__(self) -> None:
        self.path.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True, eq=False)
class Pass:
    """Clips that a worker decodes in one pass.

    Parameters
    ----------
    stretch
        Stretch that is decoded whole; the clips begin in it.
    others
        Clips that begin elsewhere and may need frames of the stretch.
    known
        Frames of stretches that are done.
    """

    tasks: Sequence[DecodeTask]
    stretch: Stretch | None = None
    others: Sequence[DecodeTask] = ()
    known: Sequence[KeptFrames] = ()


class Films:
    """The films of a manifest of windows, and the measurements of their stretches.

    Parameters
    ----------
    manifest
        Its clips are windows or scenes of films.
    folder
        Folder of the measurements, which may not exist yet.

    Attributes
    ----------
    n_decoded, cpu_s
        Frames and processor seconds of workers that no clip counts.

    Raises
    ------
    ExtractError
        A clip is no span of a video, or a movie has several files.
    """

    def __init__(self, manifest: Manifest, folder: Path) -> None:
        self._folder = folder
        self.n_decoded = 0
        self.cpu_s = 0.0
        self.paths: dict[str, Path] = {}
        starts: dict[str, list[float]] = {}
        for clip in manifest:
            path = manifest.video_path(clip)
            if path is None or clip.start_s is None or is_still(path):
                raise ExtractError(
                    f"--shots: clip {clip.clip_id} is no window of a film; "
                    "make the manifest by 'obygaze manifest import film'"
                )
            if self.paths.setdefault(clip.movie, path) != path:
                raise ExtractError(
                    f"--shots: movie {clip.movie} lies in {self.paths[clip.movie]} and in {path}: shots are "
                    "found in films of one file"
                )
            starts.setdefault(clip.movie, []).append(clip.start_s)
        self.stretches = {
            movie: _stretches(movie, self.paths[movie], sorted(times)) for movie, times in starts.items()
        }

    def unmeasured(self) -> dict[str, list[Stretch]]:
        """List the stretches of each movie that are left to measure."""
        left = {
            movie: [stretch for stretch in stretches if not self._file(stretch).exists()]
            for movie, stretches in self.stretches.items()
        }
        return {movie: stretches for movie, stretches in left.items() if stretches}

    def keep(self, stretch: Stretch, measured: bytes, n_decoded: int, cpu_s: float) -> None:
        """Keep the measurements of a stretch, and count what it cost beside its windows."""
        self._folder.mkdir(exist_ok=True)
        write_whole(self._file(stretch), measured)
        self.n_decoded += n_decoded
        self.cpu_s += cpu_s

    def write(self, out: Path, note: Callable[[str], object]) -> None:
        """Write the table of shots; a film without all measurements is decoded once more for them.

        Raises
        ------
        OutputError
            The file exists with other content.
        """
        table: dict[str, list[FilmPart]] = {}
        for movie, path in self.paths.items():
            shots = joined_shots([*self._measured(movie)])
            try:
                if shots is None:
                    reason = why_not_in_stretches(path) or "it could not be decoded without errors"
                    note(f"{path.name} is decoded a second time for its shots: {reason}")
                    shots = find_shots(path, DETECTOR)
            except VideoError as error:
                note(f"{path.name}: no shots: {error.reason}")
                continue
            table[movie] = [FilmPart(*shot) for shot in shots]
        written = shots_bytes(table, DETECTOR)
        with suppress(FileNotFoundError):
            if read_bytes(out) == written:
                return
        refuse_existing(out, force=False)
        write_whole(out, written)

    def _measured(self, movie: str) -> Iterator[Measured]:
        for stretch in self.stretches[movie]:
            with suppress(OSError, ValueError):  # joining notices that it is not there
                yield unpacked(read_bytes(self._file(stretch)), Measured)

    def _file(self, stretch: Stretch) -> Path:
        key = f"{stretch.movie}\0{stretch.start_s}\0{stretch.end_s}"
        return self._folder / hashlib.sha256(key.encode()).hexdigest()[:32]


class WorkQueue(deque[Pass]):
    """Passes over files in the order in which workers get them.

    Parameters
    ----------
    tasks
        Clips to decode.
    workers
        Number of processes.
    films
        Measure the stretches of these films too.
    """

    def __init__(self, tasks: Sequence[DecodeTask], workers: int, films: Films | None = None) -> None:
        left = {} if films is None else films.unmeasured()
        self._films = {movie: _Film(stretches) for movie, stretches in left.items()}
        by_path = {film.path: film for film in self._films.values()}
        others = [task for task in tasks if task.path not in by_path or not by_path[task.path].takes(task)]
        super().__init__(
            self._films[movie].pass_of(stretch) for movie, every in left.items() for stretch in every
        )
        self.extend(Pass(some) for some in passes(others, workers))

    def done(self, stretch: Stretch, left: Iterable[DecodeTask], known: KeptFrames | None) -> None:
        """Add the windows that need no further stretch.

        Parameters
        ----------
        stretch
            A stretch that is done, or was given up.
        left
            Its windows that it did not give.
        known
            Its frames that other windows need; None if it was given up.
        """
        film = self._films[stretch.movie]
        self.extendleft(reversed(film.done(stretch.number, left, known)))


class _Film:
    """A film whose stretches are being decoded, and its windows to do."""

    def __init__(self, stretches: Sequence[Stretch]) -> None:
        self.path = stretches[0].path
        self._pending = {stretch.number for stretch in stretches}
        self._edges = stretches[0].edges
        self._tasks: dict[str, DecodeTask] = {}
        self._waiting: dict[str, DecodeTask] = {}
        self._known: dict[int, KeptFrames] = {}

    def takes(self, task: DecodeTask) -> bool:
        """Take a window if it begins in a stretch that is to be decoded."""
        if self._first(task) in self._pending:
            self._tasks[task.clip_id] = task
            return True
        return False

    def pass_of(self, stretch: Stretch) -> Pass:
        """Return the pass over a stretch."""
        near = [
            task
            for task in self._tasks.values()
            if _end_s(task) > stretch.start_s and (task.start_s or 0.0) < stretch.end_s + NEAR_S
        ]
        mine = [task for task in near if self._first(task) == stretch.number]
        return Pass(mine, stretch, [task for task in near if self._first(task) != stretch.number])

    def done(self, number: int, left: Iterable[DecodeTask], known: KeptFrames | None) -> list[Pass]:
        """Return the windows that need no further stretch, and forget frames that no window needs."""
        self._pending.discard(number)
        if known is not None:
            self._known[number] = known
        again = {task.clip_id: task for task in left}
        for task in [task for task in self._tasks.values() if self._first(task) == number]:
            if task.clip_id not in again:
                del self._tasks[task.clip_id]
        self._waiting |= again
        ready = [task for task in self._waiting.values() if self._pending.isdisjoint(self._reach(task))]
        for task in ready:
            del self._waiting[task.clip_id], self._tasks[task.clip_id]
        ready_passes = [
            self._known_pass(ready[at : at + PASS_CLIPS]) for at in range(0, len(ready), PASS_CLIPS)
        ]
        reached = set[int]().union(*map(self._reach, self._tasks.values()))
        self._known = {at: held for at, held in self._known.items() if at in reached}
        return ready_passes

    def _known_pass(self, tasks: Sequence[DecodeTask]) -> Pass:
        reached = sorted(set[int]().union(*map(self._reach, tasks)))
        return Pass(tasks, known=[self._known[at] for at in reached if at in self._known])

    def _first(self, task: DecodeTask) -> int:
        return bisect_right(self._edges, task.start_s or 0.0) - 1

    def _reach(self, task: DecodeTask) -> range:
        """Return the stretches that may hold frames of a window; one begins up to a key frame late."""
        return range(
            max(self._first(task) - 1, 0), min(bisect_left(self._edges, _end_s(task)), len(self._edges) - 1)
        )


def _end_s(task: DecodeTask) -> float:
    return inf if task.end_s is None else task.end_s


def _stretches(movie: str, path: Path, starts: Sequence[float]) -> list[Stretch]:
    edges = (-inf, *dict.fromkeys(starts[PASS_CLIPS::PASS_CLIPS]), inf)
    return [Stretch(movie, path, number, edges) for number in range(len(edges) - 1)]
