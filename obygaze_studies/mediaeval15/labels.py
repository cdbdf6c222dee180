"""Turn absolute scores and pivot judgements into the three classes of each axis (Sjöberg et al. 2015, 4)."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from obygaze_features.io import csv_line
from obygaze_features.manifest import Problems, Row, read_table
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


Judgements = dict[tuple[str, str, str], list[bool]]
"""Clip, axis and pivot -> whether the clip is above the pivot, an answer an annotator."""


@dataclass(frozen=True)
class Labels:
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


def make_labels(scores: Path, pivots: Path | None = None) -> Labels:
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
    lines: dict[str, int] = {}
    rows: list[Mapping[str, str]] = []
    rejected: dict[str, str] = {}
    for row in table.rows:
        clip_id = row.cells["clip"]
        if lines.setdefault(clip_id, row.line) != row.line:
            problems.add(row.line, f"clip {clip_id!r} is already on line {lines[clip_id]}", "clip")
        cells = dict(row.cells)
        for axis in AXES:
            try:
                found, contradictory = _class(row, axis, judgements)
            except TaskError as error:
                problems.add(row.line, str(error), axis)
                continue
            cells[axis] = found or ""
            if contradictory:
                rejected.setdefault(clip_id, axis)
        if clip_id not in rejected:
            rows.append(cells)
    problems.refuse()
    strange = sorted({clip_id for clip_id, _, _ in judgements} - lines.keys())
    if strange:
        raise TaskError(f"{pivots}: clip {strange[0]!r} is judged but not in {scores}")
    unlabelled: dict[str, int] = {axis: sum(not cells[axis] for cells in rows) for axis in AXES}
    return Labels(table.columns, tuple(rows), rejected, unlabelled)


def _class(row: Row, axis: Axis, judgements: Judgements) -> tuple[str | None, bool]:
    """Return a clip's class on an axis, and whether its judgements contradict each other."""
    clip_id = row.cells["clip"]
    low, high = (judgements.get((clip_id, axis, pivot)) for pivot in ("low", "high"))
    found = read_class(row.cells[axis], axis)
    if low is None and high is None:
        return found, False
    if found is not None:
        raise TaskError(f"clip {clip_id!r} has {row.cells[axis]!r} here and pivot judgements as well")
    found = pivot_class(low or (), high or (), axis)
    return found, found is None
