"""Draw contact sheets of clips: one sheet per concept, or per kind of error of a model.

A sheet holds frames of films, which nothing else here stores: it is drawn only into a folder that was asked
for, and films' rights apply to it.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from io import BytesIO
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from obygaze_features.door import read_bytes
from obygaze_features.errors import ManifestError, VideoError
from obygaze_features.file_kinds import where_damaged
from obygaze_features.io import make_folder, refuse_existing, write_together
from obygaze_features.lines import csv_line
from obygaze_features.manifest import Clip, Manifest
from obygaze_features.screen import progress_bar
from obygaze_features.text import file_name
from obygaze_features.video import read_frames, uniform
from obygaze_features.video.file_facts import is_here
from obygaze_features.video.sheet import contact_sheet, thumbnail

COLUMNS = ("sheet", "number", "clip_id", "movie", "time_s", "level", "concepts", "score", "threshold")
"""Of `index.csv`, the table of the clips on the sheets."""

NUMBERS = ["label", "score", "threshold"]

Groups = Mapping[str, Mapping[Clip, Sequence[float]]]
"""Name of a sheet -> clips to choose from, in order of interest, with score and threshold or without."""


def concept_groups(manifest: Manifest, concepts: Sequence[str] = ()) -> Groups:
    """Group the clips that have each concept; by default each visual concept of the codebook.

    Clips of the films take turns, so that a sheet shows many films.

    Raises
    ------
    ManifestError
        The codebook has no such concept.
    """
    names = [manifest.codebook.concept_spelled(name) for name in concepts]
    groups = {}
    for concept in names or manifest.codebook.visual_concepts:
        clips = [clip for clip in manifest if concept in clip.concepts]
        movies = pd.Series([clip.movie for clip in clips], dtype=str)
        turns = movies.groupby(movies).cumcount().sort_values(kind="stable")
        groups[concept] = dict.fromkeys((clips[place] for place in turns.index), ())
    return groups


def error_groups(
    manifest: Manifest, predictions: Path, model: str | None = None, task: str | None = None
) -> Groups:
    """Group the clips that a model called wrongly, the clearest errors first.

    Parameters
    ----------
    predictions
        `predictions.csv` of a run.
    model, task
        Which of its models and tasks; may be left out where there is one. Of several folds or seeds the
        scores of a clip, less their thresholds, are averaged.

    Raises
    ------
    ManifestError
        The table lacks columns or has bad numbers, clips are not in the manifest, or a model or task must be
        chosen.
    """
    columns, data = ["model", "task", "clip_id", *NUMBERS], read_bytes(predictions)
    try:
        table = pd.read_csv(BytesIO(data), usecols=columns, dtype=str, keep_default_na=False)
    except ValueError as error:
        wanted = f"a table of predictions, with the columns {', '.join(columns)}"
        raise ManifestError(f"{predictions}: {where_damaged(error, data, wanted)}") from None
    for column, value in (("model", model), ("task", task)):
        there = table[column].unique().tolist()
        chosen = there[0] if value is None and len(there) == 1 else value
        if chosen not in there:
            names = ", ".join(there) or "none"
            raise ManifestError(f"{predictions}: choose one {column} with --{column}: there are {names}")
        table = table[table[column] == chosen]
    numbers = table[NUMBERS].apply(pd.to_numeric, errors="coerce")
    wrong = numbers.isna().any(axis=1) | ~table["clip_id"].isin(manifest.by_id.keys())
    if wrong.any():
        raise ManifestError(
            f"{predictions}, line {wrong.idxmax() + 2}: no clip of the manifest, or no number"
        )
    means = numbers.groupby(table["clip_id"]).mean()
    means["margin"] = means["score"] - means["threshold"]
    errors = means[(means["margin"] >= 0) != (means["label"] == 1)]
    errors = errors.sort_values("margin", key=abs, ascending=False, kind="stable")
    return {
        kind: {
            manifest.by_id[clip_id]: (score, threshold)
            for clip_id, label, score, threshold, _ in errors.itertuples()
            if label == wanted
        }
        for wanted, kind in enumerate(("false alarms", "misses"))
    }


def write_sheets(
    manifest: Manifest, groups: Groups, folder: Path, *, n: int, force: bool
) -> list[dict[str, str | int]]:
    """Draw a sheet of each group into a folder: the middle frame of its first clips that have a video.

    Frames are numbered; `index.csv` says which clip each number is. Groups without a drawable clip have no
    sheet. Videos that give no frame are left out.

    Parameters
    ----------
    n
        Clips of a sheet at most.
    force
        Replace earlier sheets; other files of the folder stay.

    Returns
    -------
    list of dict
        Of each group its `name`, the `file` of its sheet or an empty text, and how many clips it has
        (`n_clips`), whose video is here (`n_with_video`), and which are on the sheet (`n_drawn`).

    Raises
    ------
    ManifestError
        No group has a clip whose video is here.
    OutputError
        The folder exists and is not to be replaced.
    """
    refuse_existing(folder, force=force)
    drawn: list[dict[str, str | int]] = []
    files: dict[Path, bytes] = {}
    lines = [csv_line(COLUMNS)]
    with progress_bar("drawing", "sheet") as show:
        for name, clips in groups.items():
            file = f"{file_name('-'.join(name.lower().split()))}.png"
            paths = {clip: manifest.video_path(clip) for clip in clips}
            here = {clip: path for clip, path in paths.items() if path is not None and is_here(path)}
            pictures: list[NDArray[np.uint8]] = []
            times: list[float] = []
            for clip, path in here.items():
                if len(pictures) == n:
                    break
                with suppress(VideoError, OSError):
                    start_s, end_s = clip.start_s, clip.end_s
                    taken = read_frames(path, uniform(2), start_s=start_s, end_s=end_s, each=thumbnail)
                    pictures.append(taken.images[-1])
                    times.append(float(taken.time_s[-1]))
                    cells = [file, str(len(times)), clip.clip_id, clip.movie, f"{times[-1]:.3f}"]
                    scores = [f"{value:.6g}" for value in clips[clip]] or ["", ""]
                    lines.append(csv_line([*cells, clip.level or "", ";".join(clip.concepts), *scores]))
            if pictures:
                files[folder / file] = contact_sheet(pictures, range(1, len(times) + 1), times)
            counts = {"n_clips": len(clips), "n_with_video": len(here), "n_drawn": len(pictures)}
            drawn.append({"name": name, "file": file if pictures else "", **counts})
            show(len(drawn), len(groups))
    if not files:
        raise ManifestError(f"nothing to draw of {', '.join(groups)}: no clip has a video on this machine")
    make_folder(folder)
    write_together({**files, folder / "index.csv": "".join(lines).encode()})
    return drawn
