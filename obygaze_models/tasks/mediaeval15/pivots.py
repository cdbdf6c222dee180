"""Making the table of classes: scores discretised, judgements against pivots counted."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from obygaze_features.manifest.table import Problems, Row, read_table
from obygaze_models.errors import TaskError
from obygaze_models.tasks.mediaeval15.labels import AXES, Axis, pivot_class, read_class

PIVOT_COLUMNS = ("clip", "axis", "pivot", "above")

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
    """Give a clip's class on an axis, and whether its judgements contradict each other."""
    clip_id = row.cells["clip"]
    low, high = (judgements.get((clip_id, axis, pivot)) for pivot in ("low", "high"))
    found = read_class(row.cells[axis], axis)
    if low is None and high is None:
        return found, False
    if found is not None:
        raise TaskError(f"clip {clip_id!r} has {row.cells[axis]!r} here and pivot judgements as well")
    found = pivot_class(low or (), high or (), axis)
    return found, found is None
