"""`obygaze manifest import film`: cut whole films into windows or scenes, and find their shots."""

import math
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import click

import obygaze_features as of
from obygaze_features import manifest as manifests
from obygaze_features import video
from obygaze_features.commands.manifest_file import NewManifest, folder_for, write_imported
from obygaze_features.errors import ManifestError
from obygaze_features.io import refuse_existing
from obygaze_features.options import Answer
from obygaze_features.screen import progress_bar
from obygaze_features.signatures import Force, Json, argument, command, option
from obygaze_features.text import counted
from obygaze_features.untrusted import STANDARD

DETECTORS = ("own", "transnet", "scenedetect")

Hop = Annotated[
    str,
    option(
        "Seconds from the start of a window to the start of the next. auto: a quarter of the window, but not "
        "less than 5 s (in windows shorter than 5 s: their length).",
        metavar="auto|SECONDS",
    ),
]


@command()
def film(
    films: Annotated[tuple[Path, ...], argument(metavar="FILM...")],
    *,
    window: Annotated[
        str | None,
        option(
            "Length of a window in seconds. train: the median length of the training clips of --model or "
            "--store.",
            metavar="train|SECONDS",
        ),
    ] = None,
    hop: Hop = "auto",
    frames: Annotated[
        int | None,
        option("Length of a window in frames, in place of --window.", type=click.IntRange(1)),
    ] = None,
    stride: Annotated[
        int | None,
        option(
            "With --frames: frames from the start of a window to the start of the next.  [default: --frames]",
            type=click.IntRange(1),
        ),
    ] = None,
    model: Annotated[Path | None, option("Saved model, for --window train.")] = None,
    store: Annotated[Path | None, option("Store of training clips, for --window train.")] = None,
    scenes: Annotated[
        Path | None,
        option("Table of scenes; each becomes a clip, in place of windows.", metavar="FILE.csv"),
    ] = None,
    shots: Annotated[
        str,
        option(
            "Detector that finds the shots, or a table of them. A detector decodes every frame. To save that "
            "time, give none here and --shots to 'obygaze extract', which finds them on the frames that it "
            "decodes anyway. transnet and scenedetect need the extra shots.",
            type=click.STRING,
            metavar="own|transnet|scenedetect|none|FILE.csv",
        ),
    ] = "own",
    out: NewManifest,
    force: Force = False,
    json: Json = False,
) -> Answer:
    """Cut whole films into windows of equal length or into scenes, and write them as a manifest.

    Give one of --window SECONDS, --window train (with --model or --store), --frames and --scenes. Each window
    or scene becomes a clip. A clip's id is the film's file name without suffix, and a number. Windows may
    overlap; `obygaze extract` decodes overlapping windows together.

    \b
    --window   The last window of a film is moved back so that it ends with
               the film. A film shorter than a window is one clip.
    --frames   Every window has exactly this many frames, whatever the frame
               rate. Frames at the end that fill no window are left out.
    --scenes   Time outside of the scenes is left out.

    The time at the end of a film that fills no window, or comes after its last scene, is printed (--json:
    remainder_s). With --window, the window that was moved back covers this time.

    Shots are written beside the manifest (films.shots.csv for films.csv): columns movie, start_s, end_s,
    detector, flags (black: black pictures; credits; bars: black bars).

    The tables that you give to --scenes and --shots need the columns start_s and end_s, and movie if there
    are several films.

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
    # Check the options and the files to write.
    hop_s = _parse_seconds(hop, "auto", "'--hop'")
    typed_window_s = None if window is None else _parse_seconds(window, "train", "'--window'")
    folder = folder_for(out, force=force)
    shots_file = None if shots == "none" else manifests.shots_file(out)
    if shots_file is not None and out == STANDARD:
        raise click.UsageError("--out - has no place for shots: give --shots none, or --out FILE")
    refuse_existing(shots_file, force=force)
    if out.stem.endswith(".shots"):
        raise click.UsageError(f"--out {out}: so the table of shots of another manifest is called")
    if stride is not None and frames is None:
        raise click.UsageError("--stride is in frames: give --frames too")
    _require_one_way_to_cut(typed_window_s, model, store, scenes, frames, is_train_typed=window == "train")

    # Cut the films into windows or scenes.
    window_s = typed_window_s  # None with --scenes or --frames, too
    if model is not None:
        window_s = manifests.window_of_model(model)
    if store is not None:
        window_s = _median_duration(store)
    read_films = [_read_film(path, with_frames=frames is not None) for path in films]
    movies = [film.movie for film in read_films]
    scenes_of_movie = manifests.read_parts(scenes, movies) if scenes else None
    window_and_hop_in_frames = None if frames is None else (frames, stride or frames)
    imported = manifests.import_film(
        read_films, folder, window_s, hop_s, scenes_of_movie, frames=window_and_hop_in_frames
    )
    films_in_document = _clips_of_films(imported)
    if shots_file is None:
        return write_imported(imported, out, more={"shots": None, "films": films_in_document})

    # Find or read the shots, and write both.
    if shots in DETECTORS:
        detector = shots
        parts = {film.movie: _find_shots(film, shots) for film in read_films}
    else:  # a table of shots
        detector = Path(shots).name
        parts = manifests.read_parts(Path(shots), movies)
    shots_table = manifests.shots_bytes(parts, detector)
    more = {"shots": str(shots_file), "films": films_in_document}
    answer = write_imported(imported, out, beside={shots_file: shots_table}, more=more)
    n_shots = shots_table.count(b"\n") - 1  # without the header
    remark = f"{shots_file}: {counted(n_shots, 'shot')} ({detector})"
    return replace(answer, text=f"{answer.text}\n{remark}", remarks=[remark] if json else [])


def _parse_seconds(text: str, word: str, option_name: str) -> float | None:
    """Parse an option that takes seconds or one word, such as `--window train`; return None for the word.

    Parameters
    ----------
    text
        The value as typed.
    word
        The word.
    option_name
        The option, for messages.
    """
    if text == word:
        return None
    try:
        seconds = float(text or 0)
    except ValueError:
        seconds = 0.0
    if not 0.001 <= seconds < math.inf:
        raise click.BadParameter(f"seconds or {word} is expected, not {text!r}", param_hint=option_name)
    return seconds


def _require_one_way_to_cut(
    window_s: float | None,
    model: Path | None,
    store: Path | None,
    scenes: Path | None,
    frames: int | None,
    *,
    is_train_typed: bool,
) -> None:
    """Raise a UsageError unless exactly one option says how films are cut into clips.

    Parameters
    ----------
    window_s, model, store, scenes, frames
        The options, None if not given. The first is --window in seconds; it is also None for
        `--window train`, which states no length.
    is_train_typed
        Whether `--window train` was given: the clips get the length of those that a model was trained on, or
        that a store has. So --model or --store must be given too.
    """
    ways_to_cut = (window_s, model, store, scenes, frames)
    n_given = sum(value is not None for value in ways_to_cut)
    lacks_length = is_train_typed and model is None and store is None
    if lacks_length or n_given != 1:
        raise click.UsageError(
            "give one of --window SECONDS, --model MODEL or --store STORE (for --window train), --frames N, "
            "and --scenes FILE.csv"
        )


def _read_film(path: Path, *, with_frames: bool) -> "manifests.Film":
    """Read a film's end and damage and, if asked, the times of all its frames.

    The file of a damaged film may state a later end than that of its pictures. The stated end is used then,
    so that the windows of the missing part are in the manifest; they fail when they are extracted. If windows
    are counted in frames, the film ends with its last frame.

    Parameters
    ----------
    path
        The file of the film.
    with_frames
        Whether to read the times of all frames, because windows are counted in frames.
    """
    probed = of.probe(path)
    end_s = probed.start_s + probed.duration_s
    if with_frames:
        return manifests.Film(path, end_s, probed.damage, video.frame_times(path).tolist())
    states_later_end = not math.isnan(probed.stated_end_s)
    if not states_later_end:
        return manifests.Film(path, end_s, probed.damage)
    damage = (
        f"{probed.damage}; its pictures end at {end_s:.1f} s, and not at {probed.stated_end_s:.1f} s, as it "
        "says: windows behind its last picture fail"
    )
    return manifests.Film(path, probed.stated_end_s, damage)


def _clips_of_films(imported: "manifests.Imported") -> list[dict[str, object]]:
    """Return for each film its movie, number of clips, and the seconds at its end that are in no clip."""
    n_clips = Counter(clip.movie for clip in imported.manifest)
    rows: list[dict[str, object]] = []
    for movie, remainder_s in imported.remainder_s.items():
        rows.append({"movie": movie, "clips": n_clips[movie], "remainder_s": remainder_s})
    return rows


def _median_duration(path: Path) -> float:
    """Return the median duration of a store's clips with features, in seconds rounded to milliseconds.

    Raises
    ------
    ManifestError
        The duration of a clip is not known.
    """
    import numpy as np

    from obygaze_features.store.format import STATUSES_WITH_FEATURES

    clips = [clip for clip in of.open_store(path).clips if clip.status in STATUSES_WITH_FEATURES]
    durations_s = [clip.duration_s for clip in clips if clip.duration_s is not None]
    n_unknown = len(clips) - len(durations_s)
    if not durations_s or n_unknown:
        raise ManifestError(
            f"{path}: the store does not say the length of {n_unknown:,} of "
            f"{counted(len(clips), 'clip')}; give --window SECONDS"
        )
    median_s = float(np.median(durations_s))
    return round(median_s, 3)


def _find_shots(film: "manifests.Film", detector: str) -> "list[manifests.FilmPart]":
    """Find the shots of a film with a detector, which decodes every frame; show a progress bar."""
    with progress_bar(f"shots of {film.movie}", "frame") as show_progress:
        shots = video.find_shots(film.path, detector, show_progress)
    return [manifests.FilmPart(*shot) for shot in shots]
