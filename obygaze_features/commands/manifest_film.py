"""`obygaze manifest import film`: cut whole films into windows or scenes, and find their shots."""

import math
from collections import Counter
from dataclasses import replace
from pathlib import Path

import click

import obygaze_features as of
from obygaze_features import manifest as manifests
from obygaze_features import video
from obygaze_features.commands.manifest_file import folder_for, write_imported
from obygaze_features.door import STANDARD
from obygaze_features.errors import ManifestError
from obygaze_features.io import refuse_existing
from obygaze_features.options import Answer, Output, declared
from obygaze_features.screen import progress_bar

DETECTORS = ("own", "transnet", "scenedetect")


def _seconds(ctx: click.Context, param: click.Parameter, value: str | None) -> float | str | None:
    """Parse seconds; the word that the option may have in their place stays."""
    word = str(param.metavar).partition("|")[0]
    if value in (None, word):
        return value
    try:
        seconds = float(value or 0)
    except ValueError:
        seconds = 0.0
    if not 0.001 <= seconds < math.inf:
        raise click.BadParameter(f"seconds or {word} is expected, not {value!r}", ctx, param)
    return seconds


@declared(__package__, "manifest import film", window={"callback": _seconds}, hop={"callback": _seconds})
def film(
    films: tuple[Path, ...],
    window: float | str | None,
    hop: float | str,
    frames: int | None,
    stride: int | None,
    model: Path | None,
    store: Path | None,
    scenes: Path | None,
    shots: str,
    output: Output,
) -> Answer:
    """Import whole films, each cut into windows of equal length that may overlap, or into scenes.

    Makes one clip per window; its id is the film's file name without suffix, and a number. The last window of
    a film is moved back to end with it; a film shorter than a window is one clip. The seconds at the end of a
    film that fill no window, or come after its last scene, are printed (--json: remainder_s). Windows counted
    in --frames hold exactly these, whatever the frame rate; what fills none at the end is left out.
    `obygaze extract` decodes overlapping windows in one pass.

    Shots are written beside the manifest (films.shots.csv for films.csv): columns movie, start_s, end_s,
    detector, flags (black, credits, bars).

    Tables of scenes and shots have the columns start_s and end_s, and movie if there are several films.

    \b
    Examples:
      obygaze manifest import film film.mkv --window 46 --out windows.csv
      obygaze manifest import film films/*.mkv --window train \\
          --model pcbm.model --out windows.csv
      obygaze manifest import film film.mkv --scenes scenes.csv --shots none \\
          --out scenes-of-film.csv
      obygaze manifest import film films/*.mkv --window 20 --hop 5 \\
          --shots transnet --out windows.csv
      obygaze manifest import film films/*.mkv --frames 16 --shots none \\
          --out windows.csv
    """
    folder = folder_for(output)
    beside = None if shots == "none" else manifests.shots_file(output.path)
    if beside is not None and output.path == STANDARD:
        raise click.UsageError("--out - has no place for shots: give --shots none, or --out FILE")
    refuse_existing(beside, force=output.force)
    if output.path.stem.endswith(".shots"):
        raise click.UsageError(f"--out {output.path}: so the table of shots of another manifest is called")
    if stride is not None and frames is None:
        raise click.UsageError("--stride is in frames: give --frames too")
    window_s = _window_s(window, model, store, scenes, frames)
    probed = [(path, of.probe(path)) for path in films]
    shown = {path: video.frame_times(path).tolist() for path in films if frames is not None}
    read = [
        manifests.Film(path, video.start_s + video.duration_s, video.damage, shown.get(path, []))
        for path, video in probed
    ]
    movies = [film.movie for film in read]
    imported = manifests.import_film(
        read,
        folder,
        window_s,
        hop if isinstance(hop, float) else None,
        manifests.read_parts(scenes, movies) if scenes else None,
        frames=None if frames is None else (frames, stride or frames),
    )
    if shots in DETECTORS:
        table = manifests.shots_bytes({film.movie: _parts(film, shots) for film in read}, shots)
    elif shots != "none":
        table = manifests.shots_bytes(manifests.read_parts(Path(shots), movies), Path(shots).name)
    clips, rest = Counter(clip.movie for clip in imported.manifest), imported.remainder_s
    cut = [{"movie": movie, "clips": clips[movie], "remainder_s": rest[movie]} for movie in rest]
    more = {"shots": beside and str(beside), "films": cut}
    answer = write_imported(imported, output, beside=None if beside is None else {beside: table}, more=more)
    if beside is None:
        return answer
    n = table.count(b"\n") - 1
    said = f"{beside}: {n:,} shots ({Path(shots).name})"
    return replace(answer, text=f"{answer.text}\n{said}", remarks=[said] * output.json)


def _window_s(
    window: float | str | None,
    model: Path | None,
    store: Path | None,
    scenes: Path | None,
    frames: int | None,
) -> float | None:
    """Return the window length in seconds; None for scenes and for windows counted in frames."""
    seconds = window if isinstance(window, float) else None
    ways = (seconds, model, store, scenes, frames)
    untrained = window == "train" and model is None and store is None
    if untrained or sum(way is not None for way in ways) != 1:
        raise click.UsageError(
            "give one of --window SECONDS, --model MODEL or --store STORE (for --window train), --frames N, "
            "and --scenes FILE.csv"
        )
    if model is not None:
        return manifests.window_of_model(model)
    return seconds if store is None else _window_of_store(store)


def _window_of_store(path: Path) -> float:
    """Compute the median duration of a store's clips (spans or whole files), to the millisecond."""
    import numpy as np

    clips = [clip for clip in of.open_store(path).clips if clip.status != "failed"]
    lengths = [clip.duration_s for clip in clips if clip.duration_s is not None]
    if not lengths or len(lengths) < len(clips):
        raise ManifestError(
            f"{path}: the store does not say the length of {len(clips) - len(lengths):,} of {len(clips):,} "
            "clips; give --window SECONDS"
        )
    return round(float(np.median(lengths)), 3)


def _parts(film: "manifests.Film", detector: str) -> "list[manifests.FilmPart]":
    """Find the shots of a film, with a progress bar."""
    with progress_bar(f"shots of {film.movie}", "frame") as show:
        return [manifests.FilmPart(*shot) for shot in video.find_shots(film.path, detector, show)]
