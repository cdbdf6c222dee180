"""Import whole films, cut into windows."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from obygaze_features.errors import ManifestError
from obygaze_features.manifest.clip import Clip
from obygaze_features.manifest.manifest import Manifest
from obygaze_features.manifest.paths import stored_path

from .imported import Imported, counted

LEAST_HOP_S = 5.0
"""Shortest automatic hop: what annotators agree on is not finer (median segment of MObyGaze 27 s)."""


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
    """

    path: Path
    end_s: float
    damage: str = ""


def automatic_hop(window_s: float) -> float:
    """Return the hop for a window length: a quarter of it, at least 5 s, at most the window."""
    return min(max(window_s / 4, LEAST_HOP_S), window_s)


def import_film(films: Sequence[Film], root: Path, window_s: float, hop_s: float | None = None) -> Imported:
    """Make a clip of every window of some films, in the order of time.

    Parameters
    ----------
    films
        Each becomes a movie, named by its file without suffix.
    root
        Folder that the manifest will lie in.
    window_s
        Length of a window in seconds: given, or that of the clips that a model was trained on.
    hop_s
        Seconds from the start of a window to that of the next; None is `automatic_hop`.

    Notes
    -----
    Windows begin at 0, hop, 2 hop, ... The last one is moved back to end with the film, so that all have one
    length, and the whole film is covered unless the hop is longer than the window. A film that is shorter
    than a window is one window. Times are rounded to milliseconds. A clip's id is its movie and its number
    from 0001 on.

    Raises
    ------
    ManifestError
        If a length is not positive, two films would have the same name, or a film has no times.
    """
    hop_s = automatic_hop(window_s) if hop_s is None else hop_s
    for name, seconds in (("window", window_s), ("hop", hop_s)):
        if not 0.001 <= seconds < math.inf:
            raise ManifestError(f"{name} {seconds:g}: expected a number of seconds, at least 0.001")
    clips: list[Clip] = []
    notices: list[str] = []
    named: dict[str, Path] = {}
    for film in films:
        movie = film.path.stem
        if movie in named:
            raise ManifestError(
                f"{named[movie]} and {film.path}: both would be movie {movie!r}; rename one, or leave one out"
            )
        named[movie] = film.path
        if not math.isfinite(film.end_s):
            raise ManifestError(f"{film.path}: the file does not say when its pictures are shown")
        video = stored_path(film.path, root)
        spans = list(_spans(film.end_s, window_s, hop_s))
        try:
            clips += [
                Clip(f"{movie}-{number:04d}", movie, video, start_s, end_s)
                for number, (start_s, end_s) in enumerate(spans, start=1)
            ]
        except ManifestError as error:
            raise ManifestError(f"file {str(film.path)!r}: {error}; rename it", error.column) from None
        if film.end_s < window_s:
            notices.append(f"{film.path.name} is shorter ({film.end_s:.1f} s) than a window: it is one clip")
        if film.damage:
            notices.append(f"{film.path.name}: {film.damage}")
    notices.append(
        f"{counted(len(films), 'film')}: windows of {window_s:g} s every {hop_s:g} s, "
        "the last one of a film moved back to end with it"
    )
    if hop_s > window_s:
        notices.append(f"left out {hop_s - window_s:g} s between windows: the hop is longer than the window")
    return Imported(Manifest(tuple(clips), root), tuple(notices))


def _spans(end_s: float, window_s: float, hop_s: float) -> Iterator[tuple[float, float]]:
    """Yield the start and end of every window of a film that ends at `end_s`, in whole milliseconds."""
    end, window, hop = (max(round(1000 * seconds), 1) for seconds in (end_s, window_s, hop_s))
    for start in range(0, end - window, hop):
        yield start / 1000, (start + window) / 1000
    yield max(end - window, 0) / 1000, end / 1000
