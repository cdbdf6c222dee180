"""Draw contact sheets of clips: one sheet per concept, or per kind of error of a model.

A sheet holds frames of films, which nothing else here stores: it is drawn only into a folder that was asked
for, and films' rights apply to it.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from obygaze_features.errors import ManifestError, VideoError
from obygaze_features.io import make_folder, refuse_existing, write_whole
from obygaze_features.lines import csv_line
from obygaze_features.manifest import Clip, Manifest
from obygaze_features.manifest.text_tables import read_table
from obygaze_features.text import file_name
from obygaze_features.video import read_frames, uniform
from obygaze_features.video.sheet import contact_sheet, thumbnail

INDEX = "index.csv"
"""Table of the clips on the sheets, by sheet and number."""

COLUMNS = ("sheet", "number", "clip_id", "movie", "time_s", "level", "concepts", "score", "threshold")

ERRORS = ("false alarms", "misses")

NUMBERS = ("label", "score", "threshold")

Groups = dict[str, list[Clip]]
"""Name of a sheet -> clips to choose from, in order of interest."""

Scores = Mapping[str, tuple[float, float]]
"""Clip id -> score and threshold."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """What became of a group.

    Attributes
    ----------
    name : str
    file : str
        Of the sheet; empty if no clip could be drawn.
    n_clips, n_with_video, n_drawn : int
        Clips of the group, those whose video is here, and those on the sheet.
    problems : tuple of str
        Videos that gave no frame, and why.
    """

    name: str
    file: str
    n_clips: int
    n_with_video: int
    n_drawn: int
    problems: tuple[str, ...]


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
        turns: defaultdict[str, count[int]] = defaultdict(count)
        clips = [(next(turns[clip.movie]), clip) for clip in manifest if concept in clip.concepts]
        groups[concept] = [clip for _, clip in sorted(clips, key=lambda turn: turn[0])]
    return groups


def error_groups(
    manifest: Manifest, predictions: Path, model: str | None = None, task: str | None = None
) -> tuple[Groups, Scores]:
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
    rows = read_table(predictions, needed=("model", "task", "clip_id", *NUMBERS)).rows
    for column, value in (("model", model), ("task", task)):
        there = list(dict.fromkeys(row.cells[column] for row in rows))
        chosen = there[0] if value is None and len(there) == 1 else value
        if chosen not in there:
            raise ManifestError(
                f"{predictions}: choose one {column} with --{column}: there are {', '.join(there) or 'none'}",
                column,
            )
        rows = tuple(row for row in rows if row.cells[column] == chosen)
    numbers: defaultdict[Clip, list[list[float]]] = defaultdict(list)
    for row in rows:
        try:
            clip = manifest.by_id[row.cells["clip_id"]]
            numbers[clip].append([float(row.cells[name]) for name in NUMBERS])
        except (KeyError, ValueError) as error:
            raise ManifestError(f"{predictions}, line {row.line}: {error} is no clip, or no number") from None
    means = {clip: np.mean(own, axis=0).tolist() for clip, own in numbers.items()}
    wrong = [clip for clip, (label, score, least) in means.items() if label != (score >= least)]
    wrong.sort(key=lambda clip: (-abs(means[clip][1] - means[clip][2]), clip.clip_id))
    groups = {kind: [clip for clip in wrong if means[clip][0] == y] for y, kind in enumerate(ERRORS)}
    return groups, {clip.clip_id: (score, least) for clip, (_, score, least) in means.items()}


def write_sheets(
    manifest: Manifest,
    groups: Groups,
    scores: Scores,
    folder: Path,
    *,
    n: int,
    force: bool,
    progress: Callable[[int, int], None],
) -> tuple[Drawn, ...]:
    """Draw a sheet of each group into a folder: the middle frame of its first clips that have a video.

    Frames are numbered; `index.csv` says which clip each number is. Groups without a drawable clip have no
    sheet.

    Parameters
    ----------
    scores
        To be written beside the clips.
    n
        Clips of a sheet at most.
    force
        Replace earlier sheets; other files of the folder stay.
    progress
        Called with the numbers of groups done and of all.

    Raises
    ------
    ManifestError
        No group has a clip whose video is here.
    OutputError
        The folder exists and is not to be replaced.
    """
    refuse_existing(folder, force=force)
    paths = {clip.clip_id: manifest.video_path(clip) for clips in groups.values() for clip in clips}
    videos = {name: path for name, path in paths.items() if path is not None and path.is_file()}
    if not videos:
        lacks = f"clips: {len(paths)}, with a video on this machine: 0"
        raise ManifestError(f"nothing to draw of {', '.join(groups)} ({lacks})")
    make_folder(folder)
    drawn: list[Drawn] = []
    lines = [csv_line(COLUMNS)]
    for name, clips in groups.items():
        here = [clip for clip in clips if clip.clip_id in videos]
        shown: list[tuple[Clip, NDArray[np.uint8], float]] = []
        problems = []
        for clip in here:
            if len(shown) < n:
                try:
                    shown.append((clip, *_middle(clip, videos[clip.clip_id])))
                except (VideoError, OSError) as error:
                    problems.append(f"{clip.clip_id}: {error}")
        file = f"{file_name('-'.join(name.lower().split()))}.png" if shown else ""
        if shown:
            _, pictures, seconds = zip(*shown, strict=True)
            png = contact_sheet(pictures, np.arange(1, len(shown) + 1), np.array(seconds))
            write_whole(folder / file, png)
        for number, (clip, _, second) in enumerate(shown, start=1):
            score = [format(value, ".6g") for value in scores.get(clip.clip_id, ())] or ["", ""]
            time_s = "" if math.isnan(second) else f"{second:.3f}"
            cells = [file, str(number), clip.clip_id, clip.movie, time_s, clip.level or ""]
            lines.append(csv_line([*cells, ";".join(clip.concepts), *score]))
        drawn.append(Drawn(name, file, len(clips), len(here), len(shown), tuple(problems)))
        progress(len(drawn), len(groups))
    write_whole(folder / INDEX, "".join(lines))
    return tuple(drawn)


def _middle(clip: Clip, path: Path) -> tuple[NDArray[np.uint8], float]:
    """Read the middle frame of a clip, as a thumbnail with its time."""
    taken = read_frames(path, uniform(2), start_s=clip.start_s, end_s=clip.end_s, each=thumbnail)
    return taken.images[-1], float(taken.time_s[-1])
