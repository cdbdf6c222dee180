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
from obygaze_features.extraction.decode_clips import PASS_CLIPS, DecodeTask, group_into_passes
from obygaze_features.io import refuse_existing, write_whole
from obygaze_features.manifest import FilmPart, Manifest, shots_bytes
from obygaze_features.video import Measured, find_shots, is_still, joined_shots, why_not_in_stretches
from obygaze_features.video.file_facts import unpacked

DETECTOR = "own"
"""Name of this project's detector of shots."""
MEASUREMENTS_FOLDER = "shots"
"""Folder of a stage with a file for each measured stretch."""
NEAR_S = 60.0
"""Seconds after the end of a stretch up to which decoding is expected to be able to start."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of a film.

    Parameters
    ----------
    movie, path
        The film and its file.
    number
        Position of the stretch in the film.
    edges
        Seconds at which the stretches of the film begin, and at which the last one ends; the film's ends are
        infinite.
    """

    movie: str
    path: Path
    number: int
    edges: tuple[float, ...] = field(repr=False)

    @property
    def start_s(self) -> float:
        """Start in seconds; the stretch begins with the next frame from which decoding can start."""
        return self.edges[self.number]

    @property
    def end_s(self) -> float:
        """End in seconds: the start of the next stretch."""
        return self.edges[self.number + 1]


class StretchFrames:
    """A file with frames of a stretch that other windows need; removed when nothing refers to this object."""

    def __init__(self, path: Path) -> None:
        """Keep the path of the file."""
        self.path = path

    def __del__(self) -> None:
        """Remove the file."""
        self.path.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True, eq=False)
class FilePass:
    """Clips that a worker decodes in one pass.

    Parameters
    ----------
    stretch
        Stretch that is decoded whole; the clips begin in it.
    others
        Clips that begin elsewhere and may need frames of the stretch.
    stretch_frames
        Frames of decoded stretches that the clips need.
    """

    tasks: Sequence[DecodeTask]
    stretch: Stretch | None = None
    others: Sequence[DecodeTask] = ()
    stretch_frames: Sequence[StretchFrames] = ()


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
        """Find the file of each film, and divide each film into stretches that begin with a window.

        Raises
        ------
        ExtractError
            A clip is no window of a film, or a film lies in several files.
        """
        self._folder = folder
        self.n_decoded = 0
        self.cpu_s = 0.0
        self.paths: dict[str, Path] = {}  # movie -> its file
        starts_of_windows: dict[str, list[float]] = {}  # movie -> starts in seconds
        for clip in manifest:
            path = manifest.video_path(clip)
            if path is None or clip.start_s is None or is_still(path):
                raise ExtractError(
                    f"--shots: clip {clip.clip_id} is no window of a film; "
                    "make the manifest by 'obygaze manifest import film'"
                )
            first_path = self.paths.setdefault(clip.movie, path)
            if path != first_path:
                raise ExtractError(
                    f"--shots: movie {clip.movie} lies in {first_path} and in {path}: shots are "
                    "found in films of one file"
                )
            starts_of_windows.setdefault(clip.movie, []).append(clip.start_s)
        self.stretches: dict[str, list[Stretch]] = {}  # movie -> its stretches, in order
        for movie, starts_s in starts_of_windows.items():
            self.stretches[movie] = _stretches(movie, self.paths[movie], sorted(starts_s))

    def unmeasured(self) -> dict[str, list[Stretch]]:
        """Return movie -> its stretches that are not measured yet; movies without any are left out."""
        unmeasured = {}
        for movie, stretches in self.stretches.items():
            to_measure = [stretch for stretch in stretches if not self._file(stretch).exists()]
            if to_measure:
                unmeasured[movie] = to_measure
        return unmeasured

    def write_measurements(self, stretch: Stretch, measurements: bytes, n_decoded: int, cpu_s: float) -> None:
        """Write the measurements of a stretch to their file, and add what they cost to the films' totals.

        Parameters
        ----------
        measurements
            The measurements, packed.
        n_decoded, cpu_s
            Frames decoded and processor seconds spent for the measurements alone, without those that are
            counted with the windows of the stretch.
        """
        self._folder.mkdir(exist_ok=True)
        write_whole(self._file(stretch), measurements)
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
            shots = joined_shots(list(self._measured(movie)))
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
        """Yield the measurements of the stretches of a movie that have been measured."""
        for stretch in self.stretches[movie]:
            with suppress(OSError, ValueError):  # `joined_shots` notices that a stretch is missing
                yield unpacked(read_bytes(self._file(stretch)), Measured)

    def _file(self, stretch: Stretch) -> Path:
        """Return the file with the measurements of a stretch, named after its movie and its ends."""
        key = f"{stretch.movie}\0{stretch.start_s}\0{stretch.end_s}"
        return self._folder / hashlib.sha256(key.encode()).hexdigest()[:32]


class WorkQueue(deque[FilePass]):
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
        """Queue a pass for each stretch that is not measured yet, then passes over all other clips.

        Windows that begin in such a stretch are decoded in the pass of the stretch.
        """
        super().__init__()
        unmeasured = {} if films is None else films.unmeasured()
        self._films = {movie: _FilmProgress(stretches) for movie, stretches in unmeasured.items()}
        film_of_path = {film.path: film for film in self._films.values()}
        other_tasks = []
        for task in tasks:
            film = None if task.path is None else film_of_path.get(task.path)
            if film is not None and film.is_in_pending_stretch(task):
                film.add(task)
            else:
                other_tasks.append(task)
        for movie, stretches in unmeasured.items():
            self.extend(self._films[movie].pass_of(stretch) for stretch in stretches)
        self.extend(FilePass(pass_tasks) for pass_tasks in group_into_passes(other_tasks, workers))

    def end_stretch(
        self, stretch: Stretch, undone: Iterable[DecodeTask], stretch_frames: StretchFrames | None
    ) -> None:
        """Mark a stretch as decoded, and put the windows that can be decoded now at the front of the queue.

        Parameters
        ----------
        stretch
            The stretch, which was decoded or could not be.
        undone
            Its windows that its pass did not decode.
        stretch_frames
            Its frames that other windows need; None if it could not be decoded.
        """
        film = self._films[stretch.movie]
        film.end_stretch(stretch.number, undone, stretch_frames)
        ready_passes = film.take_ready_passes()
        film.drop_unneeded_frames()
        self.extendleft(reversed(ready_passes))  # in their order, as `extendleft` reverses them


class _FilmProgress:
    """The stretches of a film that are being decoded, and its windows.

    Parameters
    ----------
    stretches
        Stretches to decode, at least one.
    """

    def __init__(self, stretches: Sequence[Stretch]) -> None:
        """Mark all stretches as pending; windows are added by `add`."""
        self.path = stretches[0].path
        self._pending = {stretch.number for stretch in stretches}  # stretches that are not decoded yet
        self._edges = stretches[0].edges
        # Clip id -> task of each window that is not decoded yet.
        self._tasks: dict[str, DecodeTask] = {}
        # Those of them that began in a stretch that is decoded, and need frames of a stretch that is not.
        self._waiting: dict[str, DecodeTask] = {}
        # Number of a decoded stretch -> its frames that windows of other stretches need.
        self._frames_of_stretch: dict[int, StretchFrames] = {}

    def is_in_pending_stretch(self, task: DecodeTask) -> bool:
        """Return whether a window begins in a stretch that is to be decoded."""
        return self._stretch_of(task) in self._pending

    def add(self, task: DecodeTask) -> None:
        """Add a window to those that are decoded with the stretches."""
        self._tasks[task.clip_id] = task

    def pass_of(self, stretch: Stretch) -> FilePass:
        """Return the pass over a stretch: windows that begin in it, and others that may need its frames."""
        tasks_of_stretch = []
        other_tasks = []
        for task in self._tasks.values():
            start_s = task.start_s or 0.0
            is_near = _end_s(task) > stretch.start_s and start_s < stretch.end_s + NEAR_S
            if self._stretch_of(task) == stretch.number:
                tasks_of_stretch.append(task)
            elif is_near:
                other_tasks.append(task)
        return FilePass(tasks_of_stretch, stretch, other_tasks)

    def end_stretch(
        self, number: int, undone: Iterable[DecodeTask], stretch_frames: StretchFrames | None
    ) -> None:
        """Mark a stretch as decoded; its windows are done, or wait until other stretches are decoded too.

        Parameters
        ----------
        number
            Number of the stretch, which was decoded or could not be.
        undone
            Its windows that its pass did not decode.
        stretch_frames
            Its frames that other windows need; None if it could not be decoded.
        """
        self._pending.discard(number)
        if stretch_frames is not None:
            self._frames_of_stretch[number] = stretch_frames
        undone_tasks = {task.clip_id: task for task in undone}
        tasks_of_stretch = [task for task in self._tasks.values() if self._stretch_of(task) == number]
        for task in tasks_of_stretch:
            if task.clip_id not in undone_tasks:
                del self._tasks[task.clip_id]
        self._waiting |= undone_tasks

    def take_ready_passes(self) -> list[FilePass]:
        """Return passes over the waiting windows whose stretches are all decoded; these wait no longer."""
        ready = [
            task for task in self._waiting.values() if self._pending.isdisjoint(self._stretches_of(task))
        ]
        for task in ready:
            del self._waiting[task.clip_id]
            del self._tasks[task.clip_id]
        ready_passes = []
        for first in range(0, len(ready), PASS_CLIPS):
            pass_tasks = ready[first : first + PASS_CLIPS]
            needed = self._stretches_of_all(pass_tasks)
            frames = [self._frames_of_stretch[k] for k in needed if k in self._frames_of_stretch]
            ready_passes.append(FilePass(pass_tasks, stretch_frames=frames))
        return ready_passes

    def drop_unneeded_frames(self) -> None:
        """Drop the frames of stretches that no window needs any more."""
        still_needed = self._stretches_of_all(self._tasks.values())
        for ended in [*self._frames_of_stretch]:
            if ended not in still_needed:
                del self._frames_of_stretch[ended]

    def _stretch_of(self, task: DecodeTask) -> int:
        """Return the number of the stretch in which a window begins."""
        return bisect_right(self._edges, task.start_s or 0.0) - 1

    def _stretches_of(self, task: DecodeTask) -> range:
        """Return the numbers of the stretches that may have frames of a window."""
        # A stretch begins at the first key frame behind its edge; the one before it has the frames between.
        first = max(self._stretch_of(task) - 1, 0)
        end = bisect_left(self._edges, _end_s(task))
        return range(first, min(end, len(self._edges) - 1))

    def _stretches_of_all(self, tasks: Iterable[DecodeTask]) -> list[int]:
        """Return the numbers of the stretches that may have frames of any of the windows, in order."""
        numbers: set[int] = set()
        for task in tasks:
            numbers.update(self._stretches_of(task))
        return sorted(numbers)


def _end_s(task: DecodeTask) -> float:
    """Return the end of a window in seconds; infinite if it ends with the film."""
    return inf if task.end_s is None else task.end_s


def _stretches(movie: str, path: Path, starts_s: Sequence[float]) -> list[Stretch]:
    """Divide a film into stretches, each begun at every `PASS_CLIPS`-th of the sorted starts of windows."""
    starts_of_stretches = dict.fromkeys(starts_s[PASS_CLIPS::PASS_CLIPS])  # each once
    edges = (-inf, *starts_of_stretches, inf)  # the first and the last stretch hold what is before and behind
    return [Stretch(movie, path, number, edges) for number in range(len(edges) - 1)]
