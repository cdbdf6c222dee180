"""`obygaze film variables`: measure sound, cuts and camera in windows of films."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import obygaze_features as of
from obygaze_features import manifest as manifests
from obygaze_features.errors import ManifestError
from obygaze_features.io import write_whole
from obygaze_features.lines import csv_line
from obygaze_features.options import PROBLEMS_FOUND, Answer, Output, declared
from obygaze_features.screen import progress_bar

if TYPE_CHECKING:
    from obygaze_features.extraction.variables import Motions

WINDOW_S = 10.0
"""Length of windows where none are given."""

Window = tuple[str, str, float, float]
"""Id, movie, start and end of a clip of a film."""

Values = dict[str, float]


@declared(__package__, "film variables")
def variables(
    films: tuple[Path, ...],
    source: Path | None,
    shots: Path | None,
    sound: bool,
    faces: str | None,
    output: Output,
) -> Answer:
    """Measure how films are staged, window by window: sound, cuts and camera; nobody is recognised.

    \b
    loudness  LUFS of the mixed channels (ITU-R BS.1770, EBU R 128)
    speech    share of time with speech (Silero VAD), with --sound
    cuts      cuts a minute
    black     share of time in black shots
    camera    how fast the picture moves, in its widths a second, by
              one or two pairs of frames; needs OpenCV (extra extract)
    pan, tilt, zoom, roll
              to the right and up in widths a second, logarithm of the
              growth a second, degrees clockwise a second
    inliers   share of the picture's corners that move so
    faces     mean number of faces in a picture, with --faces
    face      height of the largest, as a share of the picture's

    What cannot be told is an empty cell, and what no window has is no column. A film is decoded once.

    \b
    Exit codes: 3 if no window of a film has pictures that can be decoded.

    \b
    Examples:
      obygaze film variables film.mkv --out variables.csv
      obygaze film variables films/*.mkv --windows windows.csv --sound \\
          --out variables.csv
    """
    from obygaze_features.backbones.faces import FaceDetector
    from obygaze_features.extraction.variables import VARIABLES, film_variables

    output.refuse_existing()
    detector = FaceDetector(faces) if faces else None
    windows, cameras = _windows(films, source), _cameras(source)
    movies = [own[0][1] for own in windows.values()]
    beside = shots or (source and manifests.shots_file(source))
    parts: dict[str, list[manifests.FilmPart]] = {}
    if beside and (shots or beside.is_file()):
        if len({*movies}) < len(movies):
            raise ManifestError(f"{beside}: it has shots of whole films, and several files are of one movie")
        told = manifests.read_parts(beside, movies if len(movies) == 1 else None)
        parts = {manifests.find_film(name, movies) or name: own for name, own in told.items()}
        if left := [movie for movie in movies if movie not in parts]:
            click.echo(f"{beside}: no shots of {', '.join(left)}: they are found", err=True)
    rows: list[tuple[Window, Values]] = []
    code = 0
    for path, own in windows.items():
        with progress_bar(f"variables of {path.name}", "window") as show:
            found = film_variables(
                path,
                [(start_s, end_s) for *_, start_s, end_s in own],
                shots=parts.get(own[0][1]),
                camera=None if cameras is None else [cameras.get(clip_id) for clip_id, *_ in own],
                speech=sound,
                faces=detector,
                note=lambda line: click.echo(line, err=True),
                show=show,
            )
        rows += zip(own, found, strict=True)
        code = code if any("cuts" in values for values in found) else PROBLEMS_FOUND
    columns = [name for name in VARIABLES if any(name in values for _, values in rows)]
    lines = [csv_line(["clip_id", "movie", "start_s", "end_s", *columns])]
    for (clip_id, movie, *span), values in rows:
        measured = [f"{values[name]:.5g}" if name in values else "" for name in columns]
        lines.append(csv_line([clip_id, movie, *map(repr, span), *measured]))
    write_whole(output.path, "".join(lines).encode())
    document = {"file": str(output.path), "windows": len(rows), "columns": columns}
    return Answer(document, f"{output.path}: {len(rows):,} windows; {', '.join(columns)}", code=code)


def _windows(films: Sequence[Path], source: Path | None) -> dict[Path, list[Window]]:
    """Find the windows of each film.

    They are the clips of its file, and those of the movie that its file is named after that have times and no
    other of the files: without times, a clip is the whole of its own file.
    """
    known = [manifests.Film(path, (video := of.probe(path)).start_s + video.duration_s) for path in films]
    clips: Sequence[Any]
    if source is not None and source.is_dir():
        clips, files = of.open_store(source).clips, dict[str, Path]()
    else:
        if source is None:
            manifest = manifests.import_film(known, Path(), WINDOW_S, WINDOW_S).manifest
        else:
            manifest = manifests.merge_annotators(of.read_manifest(source))
        clips = manifest.clips
        files = {clip.clip_id: path.resolve() for clip in clips if (path := manifest.video_path(clip))}
    by_file, movies = {film.path.resolve(): [film] for film in known}, {clip.movie: "" for clip in clips}
    named = {film.path: manifests.find_film(film.movie, movies) for film in known}
    windows: dict[Path, list[Window]] = {path: [] for path in named}
    for clip in clips:
        own = by_file.get(files.get(clip.clip_id, Path())) or [
            film for film in known if named[film.path] == clip.movie and clip.start_s is not None
        ]
        if len(own) > 1:
            raise ManifestError(f"{source}: two files have the window {clip.clip_id}: give one file a film")
        for film in own:
            span = clip.start_s or 0.0, clip.end_s or film.end_s
            windows[film.path].append((clip.clip_id, clip.movie, *span))
    for film in known:
        if not windows[film.path]:
            hint = manifests.name_hint(film.movie, movies)
            hint = ": its clips are whole files: give these, and their manifest" if named[film.path] else hint
            raise ManifestError(f"{film.path}: {source} has no window of this file or movie{hint}")
    if left := len(clips) - sum(map(len, windows.values())):
        click.echo(f"left out {left:,} of {len(clips):,} windows, of films not given", err=True)
    return windows


def _cameras(source: Path | None) -> "Mapping[str, Motions] | None":
    """Read what is known of the camera in the windows of a store."""
    from obygaze_features.backbones.camera import FEATURES

    if source is None or not source.is_dir() or "camera" not in (store := of.open_store(source)):
        return None
    group = store["camera"]
    if group.provenance["architecture"].get("features") != [*FEATURES]:
        return None
    read = zip(group.clip_ids, group.usable, group.raw("frames"), group.time_s, strict=True)
    return {clip: (moved, time_s) for clip, there, moved, time_s in read if there}
