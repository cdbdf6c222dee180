"""Read clips' annotations, and turn scores into the classes of each axis (Sjöberg et al. 2015, 4)."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from obygaze_features.lines import csv_line
from obygaze_features.manifest import Manifest, Problems, Row, read_table
from obygaze_studies.errors import TaskError

Axis = Literal["valence", "arousal"]

AXES: tuple[Axis, ...] = ("valence", "arousal")

CLASSES: Mapping[Axis, tuple[str, str, str]] = {
    "valence": ("negative", "neutral", "positive"),
    "arousal": ("calm", "neutral", "active"),
}
"""The classes of each axis, from low scores to high."""

LIMIT = 0.15
"""Classes part at -0.15 and 0.15; both are neutral ("smaller than", "higher than")."""

SPLITS = ("dev", "test", "")

PIVOT_COLUMNS = ("clip", "axis", "pivot", "above")

JUDGEMENTS = 3
"""Annotators who compared each new clip with each pivot; the majority counts."""


def discretise(score: float, axis: Axis) -> str:
    """Return the class of an absolute score in [-1, 1].

    Raises
    ------
    TaskError
        The score is not a number in [-1, 1].
    """
    if not -1.0 <= score <= 1.0:
        raise TaskError(f"{axis} score {score} is not in [-1, 1]")
    return CLASSES[axis][0 if score < -LIMIT else 2 if score > LIMIT else 1]


def read_class(cell: str, axis: Axis) -> str | None:
    """Read a class name, or a score in [-1, 1] as its class; None if the cell is empty.

    Raises
    ------
    TaskError
        The cell is anything else.
    """
    if not cell or cell in CLASSES[axis]:
        return cell or None
    try:
        score = float(cell)
    except ValueError:
        score = math.nan
    if math.isnan(score):
        raise TaskError(
            f"{cell!r} is neither {', '.join(CLASSES[axis])} nor a score in [-1, 1]; empty if unknown"
        )
    return discretise(score, axis)


@dataclass(frozen=True, slots=True)
class Annotated:
    """A clip as the organisers describe it.

    Attributes
    ----------
    clip_id, movie
        `movie` is "" where the file has no such column.
    split
        "dev", "test", or "" where the file does not say.
    classes
        The class of each axis that is known.
    violent
        None where unknown.
    """

    clip_id: str
    movie: str
    split: str
    classes: Mapping[Axis, str]
    violent: bool | None


def annotated(clip_id: str, movie: str, cells: Mapping[str, str]) -> Annotated:
    """Read one clip's cells; a column that is absent is unknown.

    Raises
    ------
    TaskError
        Names the column whose cell can't be read.
    """
    split = cells.get("split", "")
    if split not in SPLITS:
        raise TaskError(f"split {split!r} is neither dev nor test")
    violence = cells.get("violence", "")
    if violence not in {"0", "1", ""}:
        raise TaskError(f"violence {violence!r} is neither 0 nor 1; leave it empty if unknown")
    classes: dict[Axis, str] = {}
    for axis in AXES:
        try:
            name = read_class(cells.get(axis, ""), axis)
        except TaskError as error:
            raise TaskError(f"column {axis}: {error}") from None
        if name is not None:
            classes[axis] = name
    return Annotated(clip_id, movie, split, classes, None if not violence else violence == "1")


def read_annotations(path: Path) -> tuple[Annotated, ...]:
    """Read a table with a column clip, or a manifest; valence and arousal are classes or scores.

    Raises
    ------
    ManifestError, TaskError
        Naming file, line and column; or there is no column of labels, or a clip twice.
    """
    table = read_table(path, needed=())
    key = next((name for name in ("clip", "clip_id") if name in table.columns), None)
    if key is None or not {*AXES, "violence"} & set(table.columns):
        raise TaskError(
            f"{path}: expected a column clip (or clip_id) and valence, arousal or violence; "
            f"found {', '.join(table.columns)}"
        )
    problems = Problems(path)
    _lines_of(table.rows, key, problems)
    clips = []
    for row in table.rows:
        try:
            clips.append(annotated(row.cells[key], row.cells.get("movie", ""), row.cells))
        except TaskError as error:
            problems.add(row.line, str(error))
    problems.refuse()
    return tuple(clips)


def _lines_of(rows: Sequence[Row], key: str, problems: Problems) -> dict[str, int]:
    """Return the line of each clip; note those without an id, and those that are there twice."""
    lines: dict[str, int] = {}
    for row in rows:
        clip_id = row.cells[key]
        if not clip_id:
            problems.add(row.line, "is empty", key)
        elif lines.setdefault(clip_id, row.line) != row.line:
            problems.add(row.line, f"clip {clip_id!r} is already on line {lines[clip_id]}", key)
    return lines


def of_manifest(manifest: Manifest) -> tuple[Annotated, ...]:
    """Read the extra columns of a manifest.

    Raises
    ------
    TaskError
        It has no column split, or a cell can't be read; names the clip.
    """
    if not len(manifest) or "split" not in manifest.clips[0].extras:
        raise TaskError(
            "the manifest has no column split that says which clips are dev and which test; "
            "make it with: obygaze manifest import mediaeval15"
        )
    clips = []
    for clip in manifest:
        try:
            clips.append(annotated(clip.clip_id, clip.movie, clip.extras))
        except TaskError as error:
            raise TaskError(f"clip {clip.clip_id!r}: {error}") from None
    return tuple(clips)


def scored_clips(clips: Sequence[Annotated]) -> tuple[Annotated, ...]:
    """Return the test clips, or all where no clip is said to be one."""
    return tuple(clip for clip in clips if clip.split == "test") or tuple(clips)


def leaking_movies(clips: Iterable[Annotated]) -> tuple[str, ...]:
    """Name the movies that have clips in dev and in test, sorted."""
    sides: dict[str, set[str]] = {}
    for clip in clips:
        if clip.movie and clip.split:
            sides.setdefault(clip.movie, set()).add(clip.split)
    return tuple(sorted(movie for movie, splits in sides.items() if len(splits) > 1))


def refuse_leak(clips: Sequence[Annotated]) -> None:
    """Refuse a split with a movie on both sides.

    Raises
    ------
    TaskError
        Names the first such movie and counts the others.
    """
    leaking = leaking_movies(clips)
    if leaking:
        more = f" and {len(leaking) - 1} more" if leaking[1:] else ""
        raise TaskError(f"the split leaks: movie {leaking[0]!r}{more} has clips in dev and in test")


def true_classes(clips: Iterable[Annotated], axis: Axis) -> dict[str, str]:
    """Return the known classes of an axis by clip id."""
    return {clip.clip_id: clip.classes[axis] for clip in clips if axis in clip.classes}


def violence_qrels(clips: Iterable[Annotated]) -> dict[str, int]:
    """Return the known violence labels by clip id, as trec_eval's relevances."""
    return {clip.clip_id: int(clip.violent) for clip in clips if clip.violent is not None}


def pivot_class(low: Sequence[bool], high: Sequence[bool], axis: Axis) -> str | None:
    """Return the class of a clip that was compared with the two pivots of an axis.

    Parameters
    ----------
    low, high
        Three judgements each, of whether the clip is above the pivot near -0.15 and above the one near 0.15.
    axis
        Names the classes.

    Returns
    -------
    str or None
        None if the majorities contradict each other (above the high pivot, not above the low): the paper is
        silent on such clips, and here they are rejected.

    Raises
    ------
    TaskError
        There are not three judgements of each pivot.
    """
    for pivot, judgements in (("low", low), ("high", high)):
        if len(judgements) != JUDGEMENTS:
            raise TaskError(
                f"expected {JUDGEMENTS} judgements of the {pivot} {axis} pivot, found {len(judgements)}"
            )
    above_low, above_high = (2 * sum(judgements) > JUDGEMENTS for judgements in (low, high))
    if above_high and not above_low:
        return None
    return CLASSES[axis][above_low + above_high]


Judgements = dict[tuple[str, str, str], list[bool]]
"""Clip, axis and pivot -> whether the clip is above the pivot, an answer an annotator."""


def read_judgements(path: Path) -> Judgements:
    """Read pivot judgements, a row each: clip, axis (valence, arousal), pivot (low, high), above (0, 1).

    Raises
    ------
    ManifestError
        Naming file, line and column.
    """
    table = read_table(path, needed=PIVOT_COLUMNS)
    problems = Problems(path)
    judgements: Judgements = {}
    for row in table.rows:
        allowed = {"axis": AXES, "pivot": ("low", "high"), "above": ("0", "1")}
        for column, words in allowed.items():
            if row.cells[column] not in words:
                problems.add(row.line, f"{row.cells[column]!r} is not {' or '.join(words)}", column)
        key = (row.cells["clip"], row.cells["axis"], row.cells["pivot"])
        judgements.setdefault(key, []).append(row.cells["above"] == "1")
    problems.refuse()
    return judgements


@dataclass(frozen=True)
class ClassTable:
    """A table of clips with classes in place of scores.

    Attributes
    ----------
    columns
        In the order of the file read.
    rows
        Cells by column.
    rejected
        Clips left out because their pivot judgements contradict each other, and on which axis.
    unlabelled
        Clips that lack a class, by axis.
    """

    columns: tuple[str, ...]
    rows: tuple[Mapping[str, str], ...]
    rejected: Mapping[str, str] = field(default_factory=dict)
    unlabelled: Mapping[str, int] = field(default_factory=dict)

    def to_csv(self) -> str:
        """Write the table as CSV."""
        lines = (self.columns, *([row[column] for column in self.columns] for row in self.rows))
        return "".join(csv_line(list(cells)) for cells in lines)


def make_labels(scores: Path, pivots: Path | None = None) -> ClassTable:
    """Put classes in place of scores, and of the empty cells that pivot judgements fill.

    Parameters
    ----------
    scores
        A table with columns clip, valence, arousal; others are kept.
    pivots
        Judgements of clips that have no score, see `read_judgements`.

    Raises
    ------
    ManifestError, TaskError
        A cell can't be read; a clip is there twice, or judged but not in the table, or has a score as well,
        or not three judgements of each pivot.
    """
    table = read_table(scores, needed=("clip", *AXES))
    judgements = read_judgements(pivots) if pivots else {}
    problems = Problems(scores)
    lines = _lines_of(table.rows, "clip", problems)
    rows: list[Mapping[str, str]] = []
    rejected: dict[str, str] = {}
    for row in table.rows:
        clip_id, cells = row.cells["clip"], dict(row.cells)
        for axis in AXES:
            try:
                class_name, contradictory = _class(row, axis, judgements)
            except TaskError as error:
                problems.add(row.line, str(error), axis)
                continue
            cells[axis] = class_name or ""
            if contradictory:
                rejected.setdefault(clip_id, axis)
        if clip_id not in rejected:
            rows.append(cells)
    problems.refuse()
    strange = sorted({clip_id for clip_id, _, _ in judgements} - lines.keys())
    if strange:
        raise TaskError(f"{pivots}: clip {strange[0]!r} is judged but not in {scores}")
    unlabelled: dict[str, int] = {axis: sum(not cells[axis] for cells in rows) for axis in AXES}
    return ClassTable(table.columns, tuple(rows), rejected, unlabelled)


def _class(row: Row, axis: Axis, judgements: Judgements) -> tuple[str | None, bool]:
    """Return a clip's class on an axis, and whether its judgements contradict each other."""
    clip_id = row.cells["clip"]
    low, high = (judgements.get((clip_id, axis, pivot)) for pivot in ("low", "high"))
    class_name = read_class(row.cells[axis], axis)
    if low is None and high is None:
        return class_name, False
    if class_name is not None:
        raise TaskError(f"clip {clip_id!r} has {row.cells[axis]!r} here and pivot judgements as well")
    class_name = pivot_class(low or (), high or (), axis)
    return class_name, class_name is None
