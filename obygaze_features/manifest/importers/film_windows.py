"""Import whole films, cut into windows or scenes, and read and write tables of scenes and shots."""

import json
import math
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from obygaze_features.arguments import checked
from obygaze_features.errors import ManifestError
from obygaze_features.lines import csv_line
from obygaze_features.manifest.clip import Clip, numbered_ids, stored_path
from obygaze_features.manifest.identity import check_identity, refuse_twins, same_films
from obygaze_features.manifest.importers.imported import Imported
from obygaze_features.manifest.manifest import Manifest
from obygaze_features.manifest.spans.names import find_film
from obygaze_features.manifest.text_tables import Row, Table, counted, error_context, read_table
from obygaze_features.text import composed
from obygaze_features.untrusted import open_regular

MIN_HOP_S = 5.0
"""Shortest automatic hop: what annotators agree on is not finer (median segment of MObyGaze 27 s)."""

OVERHANG_S = 1.0
"""Seconds by which a list of scenes may run over its film without a word."""

SHORTEST_WINDOW_S = 0.001
"""Shortest window and shortest hop, as times are rounded to milliseconds."""

# The card in a model file, by the zoo's format.
MODEL_CARD = "card.json"
MAX_CARD_BYTES = 4 << 20
SHOT_COLUMNS = ("movie", "start_s", "end_s", "detector", "flags")
SHOT_FLAGS = ("black", "credits", "bars")
# Parts of a table whose times are rounded to milliseconds may overlap by this much.
SLACK_S = 0.001


@dataclass(frozen=True, slots=True)
class Film:
    """A video file and the facts read from its packets.

    Parameters
    ----------
    path
        The file.
    end_s
        When its last picture ends, in seconds of the player's clock.
    damage
        What the file lacks, in words; empty for a whole one.
    frame_s
        When each of its frames is shown, for windows that are counted in frames.

    Raises
    ------
    ManifestError
        The file does not say when its pictures are shown, as a still.
    """

    path: Path
    end_s: float
    damage: str = ""
    frame_s: Sequence[float] = ()

    def __post_init__(self) -> None:
        """Refuse a file without times, such as a still picture: there is nothing to cut into windows."""
        has_times = math.isfinite(self.end_s)
        if not has_times:
            raise ManifestError(f"{self.path}: the file does not say when its pictures are shown")

    @property
    def movie(self) -> str:
        """Name of the movie: that of its file without suffix, in Unicode's form NFC."""
        return composed(self.path.stem)


@dataclass(frozen=True, slots=True)
class FilmPart:
    """A stretch of a film, from `start_s` to `end_s` in seconds of the player's clock.

    Parameters
    ----------
    start_s, end_s
        Times in seconds; the end is exclusive.
    flags
        Of `SHOT_FLAGS`.
    detector
        What found a shot; empty if the table does not say.
    """

    start_s: float
    end_s: float
    flags: tuple[str, ...] = ()
    detector: str = ""


class FilmSpans(NamedTuple):
    """The spans that a film is cut into.

    Attributes
    ----------
    spans
        Start and end of each, in seconds.
    remainder_s
        Seconds at the end of the film that fill no window, or come after its last scene.
    notices
        Notices on how the film was cut.
    """

    spans: list[tuple[float, float]]
    remainder_s: float
    notices: tuple[str, ...] = ()


@checked
def import_film(
    films: Sequence[Film],
    root: Path,
    window_s: float | None = None,
    hop_s: float | None = None,
    scenes: Mapping[str, Sequence[FilmPart]] | None = None,
    *,
    frames: tuple[int, int] | None = None,
) -> Imported:
    """Make a manifest of whole films, cut into windows of one length or into their scenes.

    Parameters
    ----------
    films
        The films. Each becomes a movie, named by its file without suffix.
    root
        Folder that the manifest will be written to.
    window_s
        Length of a window in seconds. Needed unless `scenes` or `frames` is given.
    hop_s
        Seconds from the start of a window to the start of the next; None for `automatic_hop(window_s)`.
    scenes
        Movie -> its scenes, to make clips of scenes instead of windows.
    frames
        (length of a window, hop), both in frames, to count windows in frames instead of seconds.

    Notes
    -----
    The last window is moved back to end with the film: with windows of 10 s and a hop of 5 s, a film of 22 s
    has windows from 0, 5, 10 and 12 s, and its `remainder_s` is 2. A film that is shorter than a window is
    one clip. Windows that are counted in frames are not moved: frames that fill no window are left out.

    Raises
    ------
    ManifestError
        If a length is not positive, two films would have the same name, a film has no times, or a scene
        begins after its film ends.
    """
    are_windows_of_seconds = scenes is None and frames is None
    if are_windows_of_seconds:
        window_s = window_s or 0.0
        hop_s = automatic_hop(window_s) if hop_s is None else hop_s
        _check_length("window", window_s)
        _check_length("hop", hop_s)
    _refuse_films_of_one_name(films)

    clips: list[Clip] = []
    notices: list[str] = []
    remainder_s: dict[str, float] = {}
    for film in films:
        film_spans = _cut_film(film, window_s or 0.0, hop_s or 0.0, scenes, frames)
        remainder_s[film.movie] = film_spans.remainder_s
        notices += film_spans.notices
        clips += _clips_of_spans(film, film_spans.spans, root)
        if film.damage:
            notices.append(f"{film.path.name}: {film.damage}")

    if window_s is not None and hop_s is not None:
        notices += _window_notices(len(films), window_s, hop_s)
    notices += check_identity(clips, root)
    return Imported(Manifest(tuple(clips), root), tuple(notices), remainder_s=remainder_s)


def _refuse_films_of_one_name(films: Sequence[Film]) -> None:
    """Refuse two files that would be the same movie: their names are spellings of one, or are equal.

    Equal are names that differ in the suffix or folder alone.
    """
    file_of_movie: dict[str, Path] = {}
    for film in films:
        movie = film.movie
        if movie in file_of_movie:
            raise _error_of_one_film(file_of_movie[movie], film.path, movie)
        file_of_movie[movie] = film.path
    for movie, earlier_movie in same_films(file_of_movie):
        raise _error_of_one_film(file_of_movie[earlier_movie], file_of_movie[movie], earlier_movie)


def _error_of_one_film(first_file: Path, second_file: Path, movie: str) -> ManifestError:
    """Return the error for two files that would be the same movie."""
    return ManifestError(
        f"{first_file} and {second_file}: both would be movie {movie!r}; rename one, or leave one out"
    )


def _clips_of_spans(film: Film, spans: Sequence[tuple[float, float]], root: Path) -> list[Clip]:
    """Make a clip of each span (start and end in seconds) of a film, with numbered ids."""
    video = stored_path(film.path, root)
    clip_ids = numbered_ids(film.movie, len(spans))
    clips = []
    with error_context(f"file {str(film.path)!r}", "; rename it"):
        for clip_id, (start_s, end_s) in zip(clip_ids, spans, strict=True):
            clips.append(Clip(clip_id, film.movie, video, start_s, end_s))
    return clips


def _window_notices(n_films: int, window_s: float, hop_s: float) -> list[str]:
    """Return notices that say how films were cut into windows, and how long gaps between windows are.

    `window_s` is the length of a window, and `hop_s` the time from one start to the next.
    """
    windows = (
        f"{counted(n_films, 'film')}: windows of {window_s:g} s every {hop_s:g} s, "
        "the last one of a film moved back to end with it"
    )
    if hop_s <= window_s:
        return [windows]
    gap_s = hop_s - window_s
    return [windows, f"left out {gap_s:g} s between windows: the hop is longer than the window"]


def automatic_hop(window_s: float) -> float:
    """Return the time from one window's start to the next: a quarter of a window, at least 5 s.

    It is at most the length of a window (`window_s`), so that windows leave no gaps.
    """
    return min(max(window_s / 4, MIN_HOP_S), window_s)


@checked
def window_of_model(path: Path) -> float:
    """Read from a model file how long its training clips were: their median, in seconds.

    Windows of a film that the model judges should be as long.

    Raises
    ------
    ManifestError
        If it is no model file, or does not say.
    """
    try:
        # A model file is a zip, with what is known of the model in its member `MODEL_CARD`.
        with open_regular(path) as file, zipfile.ZipFile(file) as archive, archive.open(MODEL_CARD) as member:
            card = json.loads(member.read(MAX_CARD_BYTES))
    except OSError as error:
        raise ManifestError(f"{path}: the model cannot be read: {error.strerror or error}") from None
    except (zipfile.BadZipFile, KeyError, ValueError, RuntimeError, NotImplementedError, RecursionError):
        raise ManifestError(f"{path}: this is not a model file of obygaze") from None
    clip_s = card.get("clip_s") if isinstance(card, dict) else None
    is_number = isinstance(clip_s, int | float) and not isinstance(clip_s, bool)
    if clip_s is None or not is_number or not 0 < clip_s < math.inf:
        raise ManifestError(
            f"{path}: the model does not say how long the clips were that it was trained on; "
            "give --store STORE that they lie in, or --window SECONDS"
        )
    return float(clip_s)


def _check_length(name: str, seconds: float) -> None:
    """Refuse a length of windows or hops (`name`) that is shorter than a millisecond, or infinite."""
    if not SHORTEST_WINDOW_S <= seconds < math.inf:
        raise ManifestError(f"{name} {seconds:g}: expected a number of seconds, at least 0.001")


def _scenes(film: Film, scenes: Sequence[FilmPart]) -> FilmSpans:
    """Cut a film into its scenes; notices tell of a scene that ends after the film, and of gaps.

    Raises
    ------
    ManifestError
        A scene begins after the end of the film.
    """
    after_the_end = [scene for scene in scenes if scene.start_s >= film.end_s]
    if after_the_end:
        start_s = after_the_end[0].start_s
        raise ManifestError(
            f"{film.path}: a scene begins at {start_s:g} s, and the film ends at {film.end_s:g} s; "
            "is the list of another cut?"
        )

    notices = []
    last_end_s = scenes[-1].end_s if scenes else 0.0
    if last_end_s > film.end_s + OVERHANG_S:
        notices.append(
            f"{film.path.name}: its last scene ends at {last_end_s:g} s, "
            f"the film at {film.end_s:.1f} s (another cut?)"
        )

    in_scenes_s = sum(min(scene.end_s, film.end_s) - scene.start_s for scene in scenes)
    outside_s = max(film.end_s - in_scenes_s, 0.0)  # scenes may overlap by a rounding
    notices.append(
        f"{film.path.name}: {counted(len(scenes), 'scene')}; {outside_s:.1f} s lie outside of scenes"
    )
    remainder_s = max(0.0, round(film.end_s - last_end_s, 3))
    spans = [(scene.start_s, scene.end_s) for scene in scenes]
    return FilmSpans(spans, remainder_s, tuple(notices))


def _windows_of_seconds(film: Film, window_s: float, hop_s: float) -> FilmSpans:
    """Cut a film into windows of one length, a hop apart; the last one is moved back to end with the film.

    With windows of 10 s and a hop of 5 s, a film of 22 s has windows from 0, 5, 10 and 12 s: the last 2 s,
    which would fill no window, are the remainder. A film that is shorter than a window is one span.
    """
    # In whole milliseconds, so that no sum of decimal numbers is rounded.
    film_ms = _milliseconds(film.end_s)
    window_ms = _milliseconds(window_s)
    hop_ms = _milliseconds(hop_s)
    if film_ms < window_ms:
        notice = f"{film.path.name} is shorter ({film.end_s:.1f} s) than a window: it is one clip"
        return FilmSpans([(0.0, film_ms / 1000)], film_ms / 1000, (notice,))

    last_start_ms = film_ms - window_ms  # of the window that ends with the film
    starts_ms = [*range(0, last_start_ms, hop_ms), last_start_ms]
    spans = [(start_ms / 1000, (start_ms + window_ms) / 1000) for start_ms in starts_ms]

    remainder_ms = last_start_ms % hop_ms
    if not remainder_ms:  # the last window is where a hop puts it
        return FilmSpans(spans, remainder_s=0.0)
    moved_back_ms = hop_ms - remainder_ms
    notice = (
        f"{film.path.name}: the last {remainder_ms / 1000:g} s fill no window; "
        f"the last window is moved back by {moved_back_ms / 1000:g} s to end with the film"
    )
    return FilmSpans(spans, remainder_ms / 1000, (notice,))


def _milliseconds(seconds: float) -> int:
    """Round seconds to milliseconds, at least one."""
    return max(round(1000 * seconds), 1)


def _cut_film(
    film: Film,
    window_s: float,
    hop_s: float,
    scenes: Mapping[str, Sequence[FilmPart]] | None,
    frames: tuple[int, int] | None,
) -> FilmSpans:
    """Cut a film into windows of frames if `frames` is given, else into its scenes, else into windows.

    The parameters are those of `import_film`.
    """
    if frames is not None:
        n_frames, stride = frames
        return _windows_of_frames(film, n_frames, stride)
    if scenes is not None:
        return _scenes(film, scenes.get(film.movie, ()))
    return _windows_of_seconds(film, window_s, hop_s)


def _windows_of_frames(film: Film, n_frames: int, stride: int) -> FilmSpans:
    """Cut a film into windows of n frames, each beginning `stride` frames after the one before.

    Spans are rounded to milliseconds. The frames at the end that fill no window are in no span.

    Raises
    ------
    ManifestError
        The film has fewer frames than a window, or two frames are shown within a millisecond.
    """
    n_frames_of_film = len(film.frame_s)
    if n_frames_of_film < n_frames:
        raise ManifestError(
            f"{film.path}: it has {counted(n_frames_of_film, 'frame')}, and a window has {n_frames}"
        )
    edges_s = _edges_of_frames(film)
    starts = range(0, n_frames_of_film - n_frames + 1, stride)  # first frame of each window
    n_left = n_frames_of_film - (starts[-1] + n_frames)
    notice = (
        f"{film.path.name}: {counted(len(starts), 'window')} of {counted(n_frames, 'frame')} every {stride}; "
        f"the last {counted(n_left, 'frame')} fill no window"
    )
    spans = [(float(edges_s[start]), float(edges_s[start + n_frames])) for start in starts]
    _, end_s = spans[-1]
    remainder_s = max(0.0, round(film.end_s - end_s, 3))
    return FilmSpans(spans, remainder_s, (notice,))


def _edges_of_frames(film: Film) -> NDArray[np.float64]:
    """Return the times between which each frame lies, in whole milliseconds, [F frames + 1].

    Frame f is shown at edge f or later, and before edge f + 1:

        edge 0  frame 0  edge 1  frame 1  edge 2  ...  frame F - 1  edge F

    An edge is halfway between two frames, so that its rounding moves no frame to another window. The first
    edge is rounded down and the last one up, so that no frame is lost.

    Raises
    ------
    ManifestError
        Two frames are shown within a millisecond.
    """
    shown_s = np.asarray(film.frame_s, dtype=np.float64)  # [F], when each frame is shown
    between_s = np.round((shown_s[:-1] + shown_s[1:]) / 2, 3)  # [F - 1]
    first_s = np.floor(1000 * shown_s[0]) / 1000
    last_s = np.ceil(1000 * film.end_s) / 1000
    edges_s: NDArray[np.float64] = np.array([first_s, *between_s, last_s])
    is_between_its_edges = (edges_s[:-1] <= shown_s) & (shown_s < edges_s[1:])  # [F]
    if not is_between_its_edges.all():
        raise ManifestError(f"{film.path}: frames lie too near for milliseconds; give --window SECONDS")
    return edges_s


@checked
def read_parts(
    path: Path, movies: Sequence[str] | None = None, *, flagged: bool = False
) -> dict[str, list[FilmPart]]:
    """Read a table of scenes or shots, each a row, as movie -> its parts in the order of time.

    Parameters
    ----------
    path
        The table. It has columns `start_s` and `end_s`, in seconds or hh:mm:ss.ms, and `movie`, which may be
        absent if there is a single film. It may have `flags` (of `SHOT_FLAGS`, with ";" between them) and
        `detector`. If semicolons separate the cells, decimal commas are read.
    movies
        The films whose parts are read, whatever form the table has of their names; other films are left out.
        By default all films of the table.
    flagged
        Whether the column `flags` must be there.

    Raises
    ------
    ManifestError
        A time cannot be read, a part ends before it starts or overlaps the one before, a flag is unknown, or
        a film has no part.
    """
    only_movie = movies[0] if movies is not None and len(movies) == 1 else ""
    table = read_table(path, _columns_of_parts(has_movie=not only_movie, flagged=flagged))
    if movies is None:
        movies = _films_of_table(table)
    parts_of_movie = _parts_of_films(table, movies, only_movie)
    for movie, parts in parts_of_movie.items():
        if not parts:
            raise ManifestError(f"{path}: no row of movie {movie!r}; one for each of its parts was expected")
    return parts_of_movie


def _parts_of_films(table: Table, movies: Sequence[str], default_movie: str) -> dict[str, list[FilmPart]]:
    """Return movie -> its parts, from a table's rows; rows of films that are not in `movies` are left out.

    What cannot be read is added to the table's problems, which are refused together behind the last row, so
    that one message names them all.

    `default_movie` is the film of rows that name none; "" to refuse such rows.
    """
    problems = table.problems

    @cache  # as many rows are of few films
    def movie_called(name: str) -> str:
        """Return the one of `movies` that a name means; "" if it means none of them."""
        return find_film(name, movies) or ""

    parts_of_movie: dict[str, list[FilmPart]] = {movie: [] for movie in movies}
    for row in table.timed():
        # `attempt` calls a function with what follows it. If that refuses the row, this becomes a problem,
        # and `attempt` returns None.
        part = problems.attempt(row.line, "", _film_part, row)
        name = _film_named(row)
        if name:
            movie = problems.attempt(row.line, "movie", movie_called, name) or ""
        else:
            movie = default_movie
            if not default_movie:
                problems.add(row.line, "is empty: which film is it of?", "movie")
        is_wanted = movie in parts_of_movie
        if part is None or not is_wanted:
            continue
        parts = parts_of_movie[movie]
        if parts and part.start_s < parts[-1].end_s - SLACK_S:
            problems.add(
                row.line, f"{part.start_s:g} s: the row before ends at {parts[-1].end_s:g} s", "start_s"
            )
        parts.append(part)
    return parts_of_movie


def _columns_of_parts(*, has_movie: bool, flagged: bool) -> list[str]:
    """Return the columns that a table of scenes or shots needs.

    `has_movie` is whether its rows must name their film, and `flagged` whether they must have flags.
    """
    columns = ["start_s", "end_s"]
    if has_movie:
        columns.insert(0, "movie")
    if flagged:
        columns.append("flags")
    return columns


def _films_of_table(table: Table) -> list[str]:
    """Return the films that a table names, in its order; refuse a film that it spells in two ways."""
    first_places: dict[str, tuple[Path, str]] = {}
    for row in table.rows:
        first_places.setdefault(_film_named(row), (table.path, f"line {row.line}"))
    refuse_twins("movie", first_places)
    return [movie for movie in first_places if movie]


def _film_named(row: Row) -> str:
    """Return the film that a row names; "" if it names none."""
    return composed(row.cells.get("movie", "").strip())


def _film_part(row: Row) -> FilmPart:
    """Read the part of a film that a row holds.

    Raises
    ------
    ManifestError
        Its times are missing or in the wrong order, or a flag is unknown.
    """
    start = row.cells["start_s"]
    end = row.cells["end_s"]
    start_s = float(start) if start else math.nan
    end_s = float(end) if end else math.nan
    if not 0 <= start_s < end_s:  # so too if either is NaN
        span = f"from {start or 'nothing'} to {end or 'nothing'} s"
        raise ManifestError(f"{span}: expected times in seconds, the start before the end", "start_s")
    flags = tuple(flag for flag in row.cells.get("flags", "").split(";") if flag)
    unknown = [flag for flag in flags if flag not in SHOT_FLAGS]
    if unknown:
        raise ManifestError(f"{unknown[0]!r}: expected {', '.join(SHOT_FLAGS)}, with ; between", "flags")
    return FilmPart(start_s, end_s, flags, row.cells.get("detector", ""))


@checked
def shots_file(manifest: Path) -> Path:
    """Return the path of the table of shots of a manifest file: `films.shots.csv` next to `films.csv`."""
    return manifest.with_name(f"{manifest.stem}.shots.csv")


@checked
def shots_bytes(shots: Mapping[str, Iterable[FilmPart]], detector: str) -> bytes:
    """Write a table of shots: columns movie, start_s, end_s, detector, flags.

    Parameters
    ----------
    shots
        Movie -> its shots. Times are written unrounded.
    detector
        The detector of shots that do not name theirs.
    """
    lines = [csv_line(SHOT_COLUMNS)]
    for movie, parts in shots.items():
        for part in parts:
            times = repr(part.start_s), repr(part.end_s)
            lines.append(csv_line((movie, *times, part.detector or detector, ";".join(part.flags))))
    return "".join(lines).encode()
