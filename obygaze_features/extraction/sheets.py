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

from obygaze_features.errors import ManifestError, OutputError, VideoError
from obygaze_features.io import csv_line, whole_folder, write_whole
from obygaze_features.manifest import Clip, Manifest
from obygaze_features.manifest.text_tables import Problems, read_table, text_of
from obygaze_features.video import read_frames, uniform
from obygaze_features.video.sheet import contact_sheet, thumbnail

N_CLIPS = 24
"""Clips of a sheet by default: three rows."""

INDEX = "index.csv"
"""Table of the clips on the sheets, by sheet and number."""

COLUMNS = ("sheet", "number", "clip_id", "movie", "time_s", "level", "concepts", "score", "threshold")

ERRORS = ("false alarms", "misses")

NUMBERS = ("label", "score", "threshold")


@dataclass(frozen=True, slots=True)
class SheetGroup:
    """Clips to choose from for a sheet, in order of interest.

    Attributes
    ----------
    name : str
        Of the sheet.
    clips : tuple of Clip
    scores : mapping of str to tuple of float
        Clip id -> score and threshold, for kinds of errors.
    """

    name: str
    clips: tuple[Clip, ...]
    scores: Mapping[str, tuple[float, float]]


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


def concept_groups(manifest: Manifest, concepts: Sequence[str] = ()) -> tuple[SheetGroup, ...]:
    """Group the clips that have each concept; by default each visual concept of the codebook.

    Clips of the films take turns, so that a sheet shows many films.

    Raises
    ------
    ManifestError
        The codebook has no such concept.
    """
    names = [manifest.codebook.concept_spelled(name) for name in concepts]
    groups = []
    for concept in names or manifest.codebook.visual_concepts:
        turns: defaultdict[str, count[int]] = defaultdict(count)
        clips = [clip for clip in manifest if concept in clip.concepts]
        clips.sort(key=lambda clip, turns=turns: next(turns[clip.movie]))  # type: ignore[misc]
        groups.append(SheetGroup(concept, tuple(clips), {}))
    return tuple(groups)


def error_groups(
    manifest: Manifest, predictions: Path, model: str | None = None, task: str | None = None
) -> tuple[SheetGroup, ...]:
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
    table = read_table(predictions, needed=("model", "task", "clip_id", *NUMBERS))
    chosen = {"model": model, "task": task}
    for column, value in chosen.items():
        there = list(dict.fromkeys(row.cells[column] for row in table.rows))
        if value is None and len(there) == 1:
            chosen[column] = there[0]
        elif value not in there:
            raise ManifestError(
                f"{predictions}: choose one {column} with --{column}: there are {', '.join(there) or 'none'}",
                column,
            )
    problems = Problems(predictions)
    rows: defaultdict[str, list[list[float]]] = defaultdict(list)
    for row in table.rows:
        cells = row.cells
        if (cells["model"], cells["task"]) != (chosen["model"], chosen["task"]):
            continue
        if cells["clip_id"] not in manifest.by_id:
            problems.add(row.line, f"the manifest has no clip {cells['clip_id']!r}", "clip_id")
        numbers = [problems.attempt(row.line, name, _number, cells[name]) for name in NUMBERS]
        rows[cells["clip_id"]].append([number or 0.0 for number in numbers])
    problems.refuse()
    means = {name: np.mean(numbers, axis=0).tolist() for name, numbers in rows.items()}
    margins = {name: score - threshold for name, (_, score, threshold) in means.items()}
    scores = {name: (score, threshold) for name, (_, score, threshold) in means.items()}
    groups = []
    for kind, label in zip(ERRORS, (0, 1), strict=True):
        wrong = [name for name, margin in margins.items() if means[name][0] == label != (margin >= 0)]
        wrong.sort(key=lambda name: (-abs(margins[name]), name))
        groups.append(SheetGroup(kind, tuple(manifest.by_id[name] for name in wrong), scores))
    return tuple(groups)


def write_sheets(
    manifest: Manifest,
    groups: Sequence[SheetGroup],
    folder: Path,
    *,
    n: int = N_CLIPS,
    force: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[Drawn, ...]:
    """Draw a sheet of each group into a new folder: the middle frame of its first clips that have a video.

    Frames are numbered; `index.csv` says which clip each number is. Groups without a drawable clip have no
    sheet.

    Parameters
    ----------
    n
        Clips of a sheet at most.
    progress
        Called with the numbers of groups done and of all.

    Raises
    ------
    ManifestError
        No group has a clip whose video is here.
    OutputError
        The folder exists and is not to be replaced, or holds something else.
    """
    check_folder(folder, force=force)
    wanted = {clip.clip_id: clip for group in groups for clip in group.clips}.values()
    if not any(_is_here(manifest, clip) for clip in wanted):
        lacks = (
            f"clips: {len(wanted)}, with a video on this machine: 0" if wanted else "no clip belongs there"
        )
        raise ManifestError(f"nothing to draw of {', '.join(group.name for group in groups)} ({lacks})")
    drawn: list[Drawn] = []
    lines = [csv_line(COLUMNS)]
    with whole_folder(folder) as partial:
        for n_sheets, group in enumerate(groups, start=1):
            here = [clip for clip in group.clips if _is_here(manifest, clip)]
            shown, problems = _frames(manifest, here, n)
            file = f"{'-'.join(group.name.lower().split())}.png" if shown else ""
            if shown:
                clips, pictures, seconds = zip(*shown, strict=True)
                png = contact_sheet(pictures, np.arange(1, len(shown) + 1), np.array(seconds))
                write_whole(partial / file, png)
                for number, (clip, second) in enumerate(zip(clips, seconds, strict=True), start=1):
                    score = [format(value, ".6g") for value in group.scores.get(clip.clip_id, ())] or ["", ""]
                    time_s = "" if math.isnan(second) else f"{second:.3f}"
                    cells = [file, str(number), clip.clip_id, clip.movie, time_s, clip.level or ""]
                    lines.append(csv_line([*cells, ";".join(clip.concepts), *score]))
            drawn.append(Drawn(group.name, file, len(group.clips), len(here), len(shown), tuple(problems)))
            if progress:
                progress(n_sheets, len(groups))
        write_whole(partial / INDEX, "".join(lines))
    return tuple(drawn)


def check_folder(folder: Path, *, force: bool) -> None:
    """Refuse an existing folder, unless `force` is given and it holds sheets of ours alone.

    Raises
    ------
    OutputError
        Naming what is in the way.
    """
    if folder.is_file():
        raise OutputError(f"{folder} is a file: sheets need a folder of their own")
    there = {path.name for path in folder.iterdir()} if folder.exists() else set()
    ours = {line.split(",")[0] for line in text_of(folder / INDEX).splitlines()} if INDEX in there else set()
    if strangers := sorted(there - ours - {INDEX}):
        what = f"holds what is no sheet of ours ({strangers[0]})"
        raise OutputError(f"{folder} {what}: choose another with --out")
    if there and not force:
        raise OutputError(f"{folder} holds sheets already: give --force to replace them, or another --out")


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        raise ManifestError(f"{cell!r} is not a number") from None


def _is_here(manifest: Manifest, clip: Clip) -> bool:
    path = manifest.video_path(clip)
    return path is not None and path.is_file()


def _frames(
    manifest: Manifest, clips: Sequence[Clip], n: int
) -> tuple[list[tuple[Clip, NDArray[np.uint8], float]], list[str]]:
    """Read the middle frame of the first n clips that give one, as thumbnails with their times."""
    shown: list[tuple[Clip, NDArray[np.uint8], float]] = []
    problems: list[str] = []
    for clip in clips:
        path = manifest.video_path(clip)
        if path is None or len(shown) == n:
            break
        try:
            taken = read_frames(path, uniform(2), start_s=clip.start_s, end_s=clip.end_s, each=thumbnail)
            shown.append((clip, taken.images[-1], float(taken.time_s[-1])))
        except (VideoError, OSError) as error:
            problems.append(f"{clip.clip_id}: {error}")
    return shown, problems
