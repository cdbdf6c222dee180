"""Draw contact sheets of clips: one sheet per concept, or per kind of error of a model.

A sheet holds frames of films, which nothing else here stores: it is drawn only into a folder that was asked
for, and films' rights apply to it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from io import BytesIO
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from obygaze_features.errors import ManifestError, VideoError
from obygaze_features.file_kinds import where_damaged
from obygaze_features.io import make_folder, refuse_existing, write_together
from obygaze_features.lines import csv_line
from obygaze_features.manifest import Clip, Manifest
from obygaze_features.screen import progress_bar
from obygaze_features.text import file_name
from obygaze_features.untrusted import read_bytes
from obygaze_features.video import read_frames, uniform
from obygaze_features.video.file_facts import is_here
from obygaze_features.video.sheet import contact_sheet, thumbnail

COLUMNS = ("sheet", "number", "clip_id", "movie", "time_s", "level", "concepts", "score", "threshold")
"""Columns of `index.csv`, the table of the clips on the sheets."""

NUMBER_COLUMNS = ["label", "score", "threshold"]
"""Columns of predictions that hold numbers."""

Groups = Mapping[str, Mapping[Clip, Sequence[float]]]
"""Name of a sheet -> clips to choose from, in order of interest -> score and threshold, or nothing."""


def concept_groups(manifest: Manifest, concepts: Sequence[str] = ()) -> Groups:
    """Group clips by their concepts, for one contact sheet (a picture of many frames) a concept.

    The clips of a group come from each film in turn, so that a sheet shows many films.

    Parameters
    ----------
    manifest
        The clips, with the concepts that annotators saw in them.
    concepts
        Names of concepts; by default all visual concepts of the codebook.

    Raises
    ------
    ManifestError
        The codebook has no such concept.
    """
    wanted_concepts: Sequence[str] = manifest.codebook.visual_concepts
    if concepts:
        wanted_concepts = [manifest.codebook.concept_spelled(name) for name in concepts]

    groups: dict[str, dict[Clip, Sequence[float]]] = {}
    no_scores: Sequence[float] = ()  # of a model, as sheets of errors have them
    for concept in wanted_concepts:
        clips = [clip for clip in manifest if concept in clip.concepts]
        groups[concept] = dict.fromkeys(_from_each_film_in_turn(clips), no_scores)
    return groups


def _from_each_film_in_turn(clips: Iterable[Clip]) -> list[Clip]:
    """Return the first clips of all films, then the second ones, and so on."""
    n_clips_of_film = Counter[str]()  # so far
    numbered_clips = []  # (number of the clip within its film, clip)
    for clip in clips:
        numbered_clips.append((n_clips_of_film[clip.movie], clip))
        n_clips_of_film[clip.movie] += 1
    numbered_clips.sort(key=itemgetter(0))  # clips of one number stay in their order
    return [clip for _, clip in numbered_clips]


def error_groups(
    manifest: Manifest, predictions: Path, model: str | None = None, task: str | None = None
) -> Groups:
    """Group clips that a model classified wrongly into false alarms and misses, the clearest errors first.

    Parameters
    ----------
    manifest
        The clips.
    predictions
        `predictions.csv` of a run. A clip's scores of several folds or seeds are averaged, and so are their
        thresholds.
    model, task
        Model and task whose errors are shown; None if the table has only one.

    Raises
    ------
    ManifestError
        The table lacks columns or has bad numbers, clips are not in the manifest, or a model or task must be
        chosen.
    """
    table = _read_predictions(predictions)
    table = _select_rows(table, "model", model, predictions)
    table = _select_rows(table, "task", task, predictions)
    numbers = _checked_numbers(table, manifest, predictions)

    # A clip may have several predictions, of several folds or seeds.
    means = numbers.groupby(table["clip_id"]).mean()
    means["margin"] = means["score"] - means["threshold"]
    is_predicted_positive = means["margin"] >= 0
    is_positive = means["label"] == 1
    errors = means[is_predicted_positive != is_positive]

    # The clearest errors first: those farthest from the threshold, on either side.
    errors = errors.sort_values("margin", key=abs, ascending=False, kind="stable")
    return {
        "false alarms": _scores_of_clips(errors[errors["label"] == 0], manifest),
        "misses": _scores_of_clips(errors[errors["label"] == 1], manifest),
    }


def _checked_numbers(table: pd.DataFrame, manifest: Manifest, path: Path) -> pd.DataFrame:
    """Return the columns of numbers of a table of predictions, one row for each prediction.

    Parameters
    ----------
    table
        The table, whose cells are texts.
    manifest
        The clips.
    path
        The table's file, for messages.

    Raises
    ------
    ManifestError
        A row lacks a number, or is of an unknown clip.
    """
    numbers: pd.DataFrame = table[NUMBER_COLUMNS].apply(pd.to_numeric, errors="coerce")
    lacks_number = numbers.isna().any(axis=1)
    is_unknown_clip = ~table["clip_id"].isin(manifest.by_id.keys())
    is_refused = lacks_number | is_unknown_clip
    if is_refused.any():
        first_row = int(is_refused.to_numpy().argmax())  # from 0
        line = first_row + 2  # the first line of the file is the header
        raise ManifestError(f"{path}, line {line}: no clip of the manifest, or no number")
    return numbers


def _scores_of_clips(errors: pd.DataFrame, manifest: Manifest) -> dict[Clip, tuple[float, float]]:
    """Return clip -> its (score, threshold), in the order of a table whose index is clip ids."""
    scores = {}
    for clip_id, score, threshold in zip(errors.index, errors["score"], errors["threshold"], strict=True):
        scores[manifest.by_id[clip_id]] = (score, threshold)
    return scores


def _read_predictions(path: Path) -> pd.DataFrame:
    """Read the columns of a table of predictions that sheets need, all as texts.

    Raises
    ------
    ManifestError
        The file is no such table, or lacks a column.
    """
    columns = ["model", "task", "clip_id", *NUMBER_COLUMNS]
    data = read_bytes(path)
    try:
        return pd.read_csv(BytesIO(data), usecols=columns, dtype=str, keep_default_na=False)
    except ValueError as error:
        expected = f"a table of predictions, with the columns {', '.join(columns)}"
        raise ManifestError(f"{path}: {where_damaged(error, data, expected)}") from None


def _select_rows(table: pd.DataFrame, column: str, value: str | None, path: Path) -> pd.DataFrame:
    """Return the rows of a table that have a value in a column.

    Parameters
    ----------
    table, path
        The table, and its file for messages.
    column
        `model` or `task`.
    value
        The wanted value; None if all rows have the same value.

    Raises
    ------
    ManifestError
        No row has the value, or it is None and rows have different values.
    """
    values = table[column].unique().tolist()
    if value is None and len(values) == 1:
        value = values[0]
    if value not in values:
        names = ", ".join(values) or "none"
        raise ManifestError(f"{path}: choose one {column} with --{column}: there are {names}")
    return table[table[column] == value]


def write_sheets(
    manifest: Manifest, groups: Groups, folder: Path, *, n: int, force: bool
) -> list[dict[str, str | int]]:
    """Draw contact sheets into a folder, one for each group of clips: the middle frames of its first clips.

    Frames are numbered; `index.csv` says which clip each number is. Videos that give no frame are left out,
    and groups without any frame have no sheet.

    Parameters
    ----------
    manifest
        The clips.
    groups
        Name of each sheet -> its clips, in the order in which they are drawn.
    folder
        The folder, which is made.
    n
        Most clips of a sheet.
    force
        Replace earlier sheets; other files of the folder stay.

    Returns
    -------
    list of dict
        For each group its `name`, the `file` of its sheet or an empty text, and the number of its clips
        (`n_clips`), of those whose video is here (`n_with_video`), and of those on the sheet (`n_drawn`).

    Raises
    ------
    ManifestError
        No group has a clip whose video is here.
    OutputError
        The folder exists and is not to be replaced.
    """
    refuse_existing(folder, force=force)

    records: list[dict[str, str | int]] = []
    files: dict[Path, bytes] = {}
    lines = [csv_line(COLUMNS)]
    with progress_bar("drawing", "sheet") as show_progress:
        for name, scores_of_clip in groups.items():
            path_of_clip = _videos_here(manifest, scores_of_clip)
            frames = _middle_frames(path_of_clip, n)
            sheet_file = _file_of_sheet(name) if frames else ""  # without a frame there is no sheet
            if frames:
                files[folder / sheet_file] = _draw_sheet(frames)
                for number, frame in enumerate(frames, start=1):
                    lines.append(_index_line(sheet_file, number, frame, scores_of_clip[frame.clip]))

            record: dict[str, str | int] = {
                "name": name,
                "file": sheet_file,
                "n_clips": len(scores_of_clip),
                "n_with_video": len(path_of_clip),
                "n_drawn": len(frames),
            }
            records.append(record)
            show_progress(len(records), len(groups))

    if not files:
        raise ManifestError(f"nothing to draw of {', '.join(groups)}: no clip has a video on this machine")
    make_folder(folder)
    write_together({**files, folder / "index.csv": "".join(lines).encode()})
    return records


class _MiddleFrame(NamedTuple):
    """A small picture of the frame in the middle of a clip, uint8 [h, w, 3], and its time in seconds."""

    clip: Clip
    image: NDArray[np.uint8]
    time_s: float


def _file_of_sheet(name: str) -> str:
    """Return the file name of a sheet, such as `false-alarms.png` for the sheet "false alarms"."""
    words = name.lower().split()
    return f"{file_name('-'.join(words))}.png"


def _draw_sheet(frames: Sequence[_MiddleFrame]) -> bytes:
    """Draw frames in rows into one picture (a contact sheet), numbered from 1; return it as PNG."""
    images = [frame.image for frame in frames]
    times_s = [frame.time_s for frame in frames]
    numbers = range(1, len(frames) + 1)
    return contact_sheet(images, numbers, times_s)


def _videos_here(manifest: Manifest, clips: Iterable[Clip]) -> dict[Clip, Path]:
    """Return clip -> its video, for the clips whose video is on this machine."""
    path_of_clip = {}
    for clip in clips:
        path = manifest.video_path(clip)
        if path is not None and is_here(path):
            path_of_clip[clip] = path
    return path_of_clip


def _middle_frames(path_of_clip: Mapping[Clip, Path], n: int) -> list[_MiddleFrame]:
    """Read the frame in the middle of each clip, until `n` frames are read; skip clips that give none.

    Parameters
    ----------
    path_of_clip
        Clip -> its video, in the order in which the clips are tried.
    n
        Most frames to read.
    """
    frames: list[_MiddleFrame] = []
    for clip, path in path_of_clip.items():
        if len(frames) == n:
            break
        with suppress(VideoError, OSError):
            # Of two evenly spaced frames the first is the clip's first, and the second is in its middle.
            two_frames = read_frames(path, uniform(2), start_s=clip.start_s, end_s=clip.end_s, each=thumbnail)
            frames.append(_MiddleFrame(clip, two_frames.images[-1], float(two_frames.time_s[-1])))
    return frames


def _index_line(sheet: str, number: int, frame: _MiddleFrame, scores: Sequence[float]) -> str:
    """Return the line of `index.csv` for a frame on a sheet.

    Parameters
    ----------
    sheet, number
        File of the sheet, and number of the frame on it.
    frame
        The frame.
    scores
        Score and threshold, or nothing.
    """
    clip = frame.clip
    score_cells = [f"{value:.6g}" for value in scores] if scores else ["", ""]
    return csv_line(
        [
            sheet,
            str(number),
            clip.clip_id,
            clip.movie,
            f"{frame.time_s:.3f}",
            clip.level or "",
            ";".join(clip.concepts),
            *score_cells,
        ]
    )
