"""Find the videos that people have of scored films, and make the media of the desk from them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from obygaze_features.errors import ObygazeError
from obygaze_film.notes import message
from obygaze_film.timeline import Timeline

if TYPE_CHECKING:
    from obygaze_features.store import Store

# A reader's copy is recognised in the mailed page by the same numbers (page/assets/own_film.js).
SPEEDS: Final = (25 / 24, 24 / 25, 1001 / 1000, 1000 / 1001, 25.025 / 24, 24 / 25.025)
"""How many times as fast films play where they were copied between cinema (24 pictures a second) and the two
systems of television (25, and 24000/1001)."""

SAME_SHARE: Final = 0.0005
"""Share of a film's length by which a copy may differ and be as long."""

SAME_S: Final = 0.5
"""Seconds by which a copy of a short film may differ and be as long: containers count the last pictures
differently."""


def make_media_of_films(films: Mapping[Path, Timeline], tell: Callable[[object], object]) -> None:
    """Make the stills, the colours and the sound curve that the desk shows of films.

    A file that fails does not stop the others.

    Parameters
    ----------
    films : mapping of Path to Timeline
        File of a video -> film.
    tell : callable
        Called with the error of each file that fails.
    """
    from obygaze_film.workspace.media import make_media  # noqa: PLC0415 - slow, and many need no video

    for path, film in films.items():
        try:
            make_media(path, film)
        except (ObygazeError, OSError) as error:
            tell(error)


def videos_of_films(videos: Sequence[Path], films: Sequence[Timeline]) -> Mapping[str, Path]:
    """Find by their names which file of a video is a copy of which film; return movie -> file.

    Raises
    ------
    ObygazeError
        A file is no readable video (`check_file`), a name is no film's, or two files are of one film.
    """
    if not videos:
        return {}
    from obygaze_features.video import check_file  # noqa: PLC0415 - slow, and many need no video
    from obygaze_film.rows import match_files  # noqa: PLC0415 - slow too

    for path in videos:
        check_file(path)
    movies = [film.movie for film in films]
    return match_files(movies, videos)


class ScoredLength(NamedTuple):
    """How long the video is that a film was scored from.

    Attributes
    ----------
    length_s : float
        In seconds.
    unknown_s : float
        Seconds by which it may be longer, if only the end of its last window is known.
    """

    length_s: float
    unknown_s: float


def scored_length(film: Timeline, stores: "Iterable[Store]") -> ScoredLength:
    """Find how long the video is that a film was scored from.

    The store of its windows' features states it. Without that store, or if the windows are of several
    videos, the end of the last window is taken. The video may be a little longer, as there is no window of
    its last seconds if these are fewer than a window has: how many seconds are unknown is returned too.

    Parameters
    ----------
    film : Timeline
    stores : iterable of Store
        Stores among which that of the windows may be (`film_stores.stores_near`).
    """
    lengths_s: set[float] = set()
    for store in stores:
        if store.fingerprint == film.record.store.fingerprint:
            lengths_s |= _lengths_of_videos(store, film.movie)
    end_of_last_window_s = film.record.duration_s
    if len(lengths_s) == 1:
        (length_s,) = lengths_s
        # If it is shorter than the film, the windows are of several videos.
        holds_all_windows = length_s >= end_of_last_window_s * (1 - SAME_SHARE)
        if holds_all_windows:
            return ScoredLength(length_s, unknown_s=0.0)
    return ScoredLength(end_of_last_window_s, unknown_s=film.record.windows.window_s)


def _lengths_of_videos(store: "Store", movie: str) -> set[float]:
    """Return the lengths in seconds of the videos that the windows of a film were read from, each once."""
    lengths_s = set()
    for clip in store.each_clip():
        length_s = clip.source.get("duration_s")
        if clip.movie == movie and isinstance(length_s, float):
            lengths_s.add(length_s)
    return lengths_s


def why_other_film(path: Path, film: Timeline, stores: "Iterable[Store]") -> str:
    """Say that the video at a path can't be the one that a film was scored from: by their lengths.

    The times of scores, passages and decisions are then not those of its scenes. The note tells a copy that
    plays faster or slower from another cut, or another film. It is empty if the video is as long.

    Parameters
    ----------
    path : Path
    film : Timeline
    stores : iterable of Store
        As of `scored_length`.

    Raises
    ------
    VideoError
        The file is no video.
    """
    from obygaze_features.video import probe  # noqa: PLC0415 - slow, and many need no video
    from obygaze_film.claims.words import clock  # noqa: PLC0415 - slow too

    scored = scored_length(film, stores)
    length_s = probe(path).duration_s
    if not length_s > 0 or _is_as_long(length_s, scored):  # NaN if a file does not tell
        return ""
    plays_at_other_speed = any(_is_as_long(length_s * speed, scored) for speed in SPEEDS)
    key = "copy_speed" if plays_at_other_speed else "copy_cut"
    return message(key, path=path, copy=clock(length_s), film=clock(scored.length_s))


def _is_as_long(length_s: float, scored: ScoredLength) -> bool:
    """Whether a video of a length in seconds may be as long as the one that was scored.

    Of some scored videos only the end of the last window is known: they may have been longer, by up to
    `scored.unknown_s`. Then a video may be longer by as much, but not shorter.
    """
    tolerance_s = max(SAME_S, SAME_SHARE * scored.length_s)
    longer_s = length_s - scored.length_s  # negative if it is shorter
    return -tolerance_s <= longer_s <= scored.unknown_s + tolerance_s
