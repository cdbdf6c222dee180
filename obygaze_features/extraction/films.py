"""Find the shots of films on the frames that are decoded for their windows, each frame once.

A window is a clip of the film. A stretch is a part of the film of `PASS_CLIPS` windows, which a worker
decodes whole: it gives the windows inside it, the measurements of its frames, and the frames that windows
across its ends need. Those windows are put together when all stretches that they reach into are decoded.
Measurements are kept in the stage, so that a run that was stopped measures only the stretches that are left.
Where a stretch cannot be decoded exactly, its windows are read as without stretches, and the film is decoded
once more for its shots.
"""

import hashlib
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from pathlib import Path

from obygaze_features.errors import ExtractError, VideoError
from obygaze_features.extraction.decode_clips import PASS_CLIPS, DecodeTask, group_into_passes
from obygaze_features.io import refuse_existing, write_whole
from obygaze_features.manifest import FilmPart, Manifest, shots_bytes
from obygaze_features.untrusted import read_bytes
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
    """A part of a film that a worker decodes whole.

    Parameters
    ----------
    movie, path
        The film and its file.
    number
        Position of the stretch in the film, from 0.
    start_s, end_s
        Start, and end, which is the start of the next stretch, in seconds; infinite at the ends of the film.
        Its first frame is the first at or after the start from which decoding can start.
    """

    movie: str
    path: Path
    number: int
    start_s: float
    end_s: float


class StretchFrames:
    """A file with frames of a stretch that windows of other stretches need.

    The file is removed when nothing refers to this object any more.
    """

    def __init__(self, path: Path) -> None:
        """Keep the path of the file."""
        self.path = path

    def __del__(self) -> None:
        """Remove the file."""
        self.path.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True, eq=False)
class FilePass:
    """Clips of one file that a worker decodes in one pass over it.

    Parameters
    ----------
    tasks
        The clips.
    stretch
        Stretch of a film that is decoded whole, in which the clips begin; None if only clips are read.
    others
        Clips of other passes that may need frames of the stretch.
    stretch_frames
        Frames that the clips need and that were decoded with stretches already.
    """

    tasks: Sequence[DecodeTask]
    stretch: Stretch | None = None
    others: Sequence[DecodeTask] = ()
    stretch_frames: Sequence[StretchFrames] = ()


class Films:
    """The films of a manifest of windows, and the measurements of their stretches, which give the shots.

    Parameters
    ----------
    manifest
        Its clips are windows or scenes of films.
    folder
        Folder of the measurements, which may not exist yet.

    Attributes
    ----------
    paths
        Movie -> its file.
    stretches
        Movie -> its stretches, in order.
    n_decoded, cpu_s
        Frames decoded and processor seconds spent for measurements, beyond those counted with the windows.

    Raises
    ------
    ExtractError
        A clip is no span of a video, or a movie has several files.
    """

    def __init__(self, manifest: Manifest, folder: Path) -> None:
        """Find the file of each film, and divide the film into stretches: parts that workers decode whole.

        The clips of the manifest are windows of the films. Measurements of the stretches will be in `folder`.
        """
        self._folder = folder
        # What measuring has cost so far
        self.n_decoded = 0  # frames
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

        self.stretches: dict[str, list[Stretch]] = {}
        for movie, starts_s in starts_of_windows.items():
            self.stretches[movie] = _divide_film(movie, self.paths[movie], sorted(starts_s))

    def unmeasured(self) -> dict[str, list[Stretch]]:
        """Return movie -> its stretches (parts of the film) that are not measured for shots yet.

        Movies that are measured whole are left out.
        """
        unmeasured_of_movie = {}
        for movie, stretches in self.stretches.items():
            unmeasured = [stretch for stretch in stretches if not self._file(stretch).exists()]
            if unmeasured:
                unmeasured_of_movie[movie] = unmeasured
        return unmeasured_of_movie

    def write_measurements(self, stretch: Stretch, measurements: bytes, n_decoded: int, cpu_s: float) -> None:
        """Write the measurements of a stretch (part of a film), by which its shots are found, to their file.

        Parameters
        ----------
        stretch
            The part of the film.
        measurements
            The measurements, as `video.file_facts.packed` encodes them.
        n_decoded, cpu_s
            Frames decoded and processor seconds spent for the measurements alone, without those that are
            counted with the windows of the stretch. They are added to the totals of the films.
        """
        self._folder.mkdir(exist_ok=True)
        write_whole(self._file(stretch), measurements)
        self.n_decoded += n_decoded
        self.cpu_s += cpu_s

    def write(self, out: Path, note: Callable[[str], object]) -> None:
        """Write the table of the shots of all films to a CSV file.

        A film of which a part is not measured is decoded once more for its shots.

        Parameters
        ----------
        out
            The file.
        note
            Called with a sentence for each film that is decoded once more, or whose shots cannot be found.

        Raises
        ------
        OutputError
            The file exists with other content.
        """
        shots_of_movie: dict[str, list[FilmPart]] = {}
        for movie, path in self.paths.items():
            try:
                shots_of_movie[movie] = self._find_shots(movie, path, note)
            except VideoError as error:
                note(f"{path.name}: no shots: {error.reason}")

        table = shots_bytes(shots_of_movie, DETECTOR)
        with suppress(FileNotFoundError):
            if read_bytes(out) == table:  # an earlier run has written it
                return
        refuse_existing(out, force=False)
        write_whole(out, table)

    def _find_shots(self, movie: str, path: Path, note: Callable[[str], object]) -> list[FilmPart]:
        """Return the shots of a film: from the measurements of its parts, or by decoding it once more.

        Parameters
        ----------
        movie, path
            The film, and its file.
        note
            Called with a sentence if the film has to be decoded once more.
        """
        shots = joined_shots(list(self._measured(movie)))
        if shots is None:  # the measurements of a stretch are missing
            reason = why_not_in_stretches(path) or "it could not be decoded without errors"
            note(f"{path.name} is decoded a second time for its shots: {reason}")
            shots = find_shots(path, DETECTOR)
        return [FilmPart(shot.start_s, shot.end_s, shot.flags) for shot in shots]

    def _measured(self, movie: str) -> Iterator[Measured]:
        """Yield the measurements of a movie's stretches, in order; those that cannot be read are left out."""
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
        """Queue the parts of films that are to be measured for shots, then all other clips.

        A part of a film is called a stretch; a worker decodes it whole, in one pass. A window that begins in
        such a stretch is decoded in the same pass.
        """
        super().__init__()
        # Movie -> which of its stretches and windows are still to be decoded, for movies to be measured.
        self._progress: dict[str, _FilmProgress] = {}
        if films is not None:
            for movie, stretches_to_measure in films.unmeasured().items():
                self._progress[movie] = _FilmProgress(films.stretches[movie], pending=stretches_to_measure)

        # A window that begins in a stretch to be measured is decoded with it; all others by themselves.
        progress_of_path = {film_progress.path: film_progress for film_progress in self._progress.values()}
        other_tasks = []
        for task in tasks:
            film_of_task = None if task.path is None else progress_of_path.get(task.path)
            if film_of_task is not None and film_of_task.begins_in_pending_stretch(task):
                film_of_task.add(task)
            else:
                other_tasks.append(task)

        for film_progress in self._progress.values():
            self.extend(film_progress.passes_over_pending())
        self.extend(FilePass(pass_tasks) for pass_tasks in group_into_passes(other_tasks, workers))

    def end_stretch(
        self, stretch: Stretch, undone: Iterable[DecodeTask], stretch_frames: StretchFrames | None
    ) -> None:
        """Mark a part of a film as decoded, and queue the windows that waited for it at the front.

        Parameters
        ----------
        stretch
            The part of the film, which was decoded or could not be.
        undone
            The windows that begin in it and that its pass did not decode.
        stretch_frames
            Its frames that other windows need; None if it could not be decoded.
        """
        progress = self._progress[stretch.movie]
        progress.end_stretch(stretch.number, undone, stretch_frames)
        ready_passes = progress.take_ready_passes()
        progress.drop_unneeded_frames()
        self.extendleft(reversed(ready_passes))  # in their order, as `extendleft` reverses them


class _FilmProgress:
    """Which stretches of a film are still to be decoded, and which of its windows wait for them.

    A window is first to be decoded with the stretch in which it begins. If it also needs frames of other
    stretches, it waits until all of these are decoded.

    Parameters
    ----------
    stretches
        All stretches of the film, in order.
    pending
        Those to decode, at least one.
    """

    def __init__(self, stretches: Sequence[Stretch], pending: Sequence[Stretch]) -> None:
        """Begin with the parts (stretches) of a film, all and those to decode; `add` adds windows.

        A window is a clip of the film, with a task that says what is wanted of it.
        """
        self.path = stretches[0].path
        self._starts_s = [stretch.start_s for stretch in stretches]
        # Number of each stretch that is not decoded yet -> the stretch.
        self._pending = {stretch.number: stretch for stretch in pending}
        # Number of a decoded stretch -> its frames that windows of other stretches need.
        self._frames_of_stretch: dict[int, StretchFrames] = {}
        # Clip id -> task of each window that is not decoded yet.
        self._tasks: dict[str, DecodeTask] = {}
        # The same, of those windows whose own stretch is decoded, and which wait for other stretches.
        self._waiting: dict[str, DecodeTask] = {}

    def begins_in_pending_stretch(self, task: DecodeTask) -> bool:
        """Return whether a window begins in a part of the film (stretch) that is still to be decoded."""
        return self._first_stretch_of(task) in self._pending

    def add(self, task: DecodeTask) -> None:
        """Add a window, a clip of the film, to those that are decoded together with parts of the film."""
        self._tasks[task.clip_id] = task

    def passes_over_pending(self) -> list[FilePass]:
        """Return a worker's task for each part of the film (stretch) that is to be decoded."""
        return [self._pass_over(stretch) for stretch in self._pending.values()]

    def _pass_over(self, stretch: Stretch) -> FilePass:
        """Return a worker's task: a part of a film (stretch), and the windows that need frames of this part.

        They are the windows that begin in the stretch, and others that may need its frames. A window that
        begins after the stretch may need them, because the stretch goes on to the first frame from which
        decoding can start: up to about `NEAR_S` after its end.
        """
        tasks_of_stretch = []
        other_tasks = []
        for task in self._tasks.values():
            if self._first_stretch_of(task) == stretch.number:
                tasks_of_stretch.append(task)
                continue
            start_s = task.start_s or 0.0
            ends_after_start = _end_s(task) > stretch.start_s
            begins_before_end = start_s < stretch.end_s + NEAR_S
            if ends_after_start and begins_before_end:
                other_tasks.append(task)
        return FilePass(tasks_of_stretch, stretch, other_tasks)

    def end_stretch(
        self, number: int, undone: Iterable[DecodeTask], stretch_frames: StretchFrames | None
    ) -> None:
        """Mark a part of the film (stretch) as decoded, and forget the windows that were decoded with it.

        The other windows that begin in it need frames of other stretches too: now they wait for these.

        Parameters
        ----------
        number
            Number of the stretch.
        undone
            The windows that begin in it and were not decoded with it.
        stretch_frames
            Its frames that other windows need; None if it could not be decoded.
        """
        del self._pending[number]
        if stretch_frames is not None:
            self._frames_of_stretch[number] = stretch_frames

        undone_by_id = {task.clip_id: task for task in undone}
        tasks_of_stretch = [task for task in self._tasks.values() if self._first_stretch_of(task) == number]
        for task in tasks_of_stretch:
            was_decoded = task.clip_id not in undone_by_id
            if was_decoded:
                del self._tasks[task.clip_id]
        self._waiting |= undone_by_id  # they are also still in `_tasks`, which has all undecoded windows

    def take_ready_passes(self) -> list[FilePass]:
        """Return passes over the file for the windows that need not wait any longer; forget these windows.

        A window waits as long as a part of the film (stretch) that it needs frames of is to be decoded. Each
        pass has up to `PASS_CLIPS` windows, and those of their frames that were decoded with stretches.
        """
        ready = [task for task in self._waiting.values() if not self._needs_pending_stretch(task)]
        for task in ready:
            del self._waiting[task.clip_id]
            del self._tasks[task.clip_id]
        ready_passes = []
        for first in range(0, len(ready), PASS_CLIPS):
            pass_tasks = ready[first : first + PASS_CLIPS]
            needed_numbers = self._stretches_of_all(pass_tasks)
            # A stretch that could not be decoded has no frames.
            decoded_numbers = [number for number in needed_numbers if number in self._frames_of_stretch]
            stretch_frames = [self._frames_of_stretch[number] for number in decoded_numbers]
            ready_passes.append(FilePass(pass_tasks, stretch_frames=stretch_frames))
        return ready_passes

    def _needs_pending_stretch(self, task: DecodeTask) -> bool:
        """Return whether a window may have frames in a part of the film that is still to be decoded."""
        return not self._pending.keys().isdisjoint(self._stretches_of(task))

    def drop_unneeded_frames(self) -> None:
        """Drop the frames of decoded parts of the film (stretches) that no window needs any more."""
        still_needed = self._stretches_of_all(self._tasks.values())
        for number in list(self._frames_of_stretch):
            if number not in still_needed:
                del self._frames_of_stretch[number]

    def _first_stretch_of(self, task: DecodeTask) -> int:
        """Return the number of the stretch (part of the film) in which a window begins."""
        return bisect_right(self._starts_s, task.start_s or 0.0) - 1

    def _stretches_of(self, task: DecodeTask) -> range:
        """Return the numbers of the parts of the film (stretches) that may have frames of a window.

        They are the stretches that overlap the window, and the one before. Decoding can start only at some
        frames (key frames): a stretch goes on beyond its end, up to the first of these, and the next one
        starts there. So the window's first frames may be in the stretch before.
        """
        first_overlapping = self._first_stretch_of(task)
        first = max(first_overlapping - 1, 0)
        n_begun = bisect_left(self._starts_s, _end_s(task))  # stretches that begin before the window's end
        return range(first, n_begun)

    def _stretches_of_all(self, tasks: Iterable[DecodeTask]) -> list[int]:
        """Return the numbers of the stretches that may have frames of any of the windows, in order."""
        numbers: set[int] = set()
        for task in tasks:
            numbers.update(self._stretches_of(task))
        return sorted(numbers)


def _end_s(task: DecodeTask) -> float:
    """Return the end of a window in seconds; infinite if it ends with the film."""
    return inf if task.end_s is None else task.end_s


def _divide_film(movie: str, path: Path, starts_s: Sequence[float]) -> list[Stretch]:
    """Divide a film into parts (stretches) that workers decode whole: one for every `PASS_CLIPS` windows.

    A stretch begins where a window begins, so that few windows reach across its ends.

    Parameters
    ----------
    movie, path
        The film, and its file.
    starts_s
        Starts of the windows in seconds, rising.
    """
    inner_starts_s = dict.fromkeys(starts_s[PASS_CLIPS::PASS_CLIPS])  # each once: windows may share a start
    # The first and the last stretch reach to the film's ends, beyond the windows.
    edges_s = [-inf, *inner_starts_s, inf]
    return [
        Stretch(movie, path, number, start_s, end_s)
        for number, (start_s, end_s) in enumerate(pairwise(edges_s))
    ]
