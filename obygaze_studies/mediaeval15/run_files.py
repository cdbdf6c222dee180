"""Write and read run files: TREC's six columns for violence, CSV for affect, each with a JSON record."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import msgspec

from obygaze_features.io import write_whole
from obygaze_features.lines import csv_line, json_bytes
from obygaze_features.text import number_of
from obygaze_studies.audit_common.inputs import read_json, read_rows, read_text
from obygaze_studies.errors import TaskError
from obygaze_studies.mediaeval15.annotations import AXES, CLASSES, Axis
from obygaze_studies.mediaeval15.metrics import ranked

Subtask = Literal["violence", "affect"]

SUBTASKS: tuple[Subtask, ...] = get_args(Subtask)
SUFFIXES: Mapping[Subtask, str] = {"violence": ".trec", "affect": ".csv"}
"""Subtask -> ending of its run files."""

TOPIC = "violence"
"""The topic in TREC run files."""

TREC_COLUMNS = "topic Q0 clip rank score name"
"""The columns of TREC run files, for messages."""

RUN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
"""An allowed name of a run."""

Calls = dict[Axis, dict[str, str]]
"""Axis -> clip id -> the class that the run calls."""


@dataclass(frozen=True)
class RunFile:
    """The place of a run in a folder.

    Attributes
    ----------
    folder
        The folder of runs.
    subtask
        The subtask of the run.
    name
        Name of the run: letters, digits, '.', '_' and '-'.
    """

    folder: Path
    subtask: Subtask
    name: str

    def __post_init__(self) -> None:
        """Refuse a name with other characters, since it becomes part of a file name."""
        if not RUN_NAME.fullmatch(self.name):
            raise TaskError(f"{self.name!r} is no name for a run: use letters, digits, '.', '_' and '-'")

    @property
    def path(self) -> Path:
        """The file of the run."""
        return self.folder / f"{self.subtask}-{self.name}{SUFFIXES[self.subtask]}"

    @property
    def record_path(self) -> Path:
        """The file of the run's record."""
        return self.path.with_suffix(f"{self.path.suffix}.json")


def trec_lines(run: Mapping[str, float], name: str) -> str:
    """Format scores as the text of a TREC run file, ranked as the tool of 2015, trec_eval 9, ranks them.

    A line is `violence Q0 CLIP RANK SCORE NAME`; Q0 is always the same.

    Parameters
    ----------
    run
        Clip id -> score.
    name
        Name of the run.

    Raises
    ------
    TaskError
        A score is not finite, or a clip's id has a space, which the format cannot hold.
    """
    for clip_id in run:
        if len(clip_id.split()) != 1:
            raise TaskError(f"clip {clip_id!r}: a TREC run can't hold an id with a space")
    lines = []
    for rank, clip_id in enumerate(ranked(run), start=1):
        lines.append(f"{TOPIC} Q0 {clip_id} {rank} {run[clip_id]!r} {name}\n")
    return "".join(lines)


def affect_lines(calls: Calls) -> str:
    """Format the classes that a run calls (axis -> clip id -> class) as CSV: clip, valence, arousal.

    Both axes have the same clips.
    """
    lines = [csv_line(["clip", *AXES])]
    for clip_id in calls["valence"]:
        classes = [calls[axis][clip_id] for axis in AXES]
        lines.append(csv_line([clip_id, *classes]))
    return "".join(lines)


def write_run(file: RunFile, text: str, record: Mapping[str, object]) -> None:
    """Write the text of a run and its record as JSON into the run's files; existing files are replaced."""
    file.folder.mkdir(parents=True, exist_ok=True)
    write_whole(file.path, text)
    write_whole(file.record_path, json_bytes(record))


def read_trec(path: Path) -> dict[str, dict[str, float]]:
    """Read a TREC run: topic -> clip id -> score. Like trec_eval, it ignores the column of ranks.

    Raises
    ------
    TaskError
        Naming the line: it does not have six columns, its score is not a finite number, or its clip comes a
        second time.
    """
    topics: dict[str, dict[str, float]] = {}
    for where, cells in _lines_in_columns(path):
        topic, _, clip_id, _, score_text, _ = cells
        score = _number(score_text)
        if score is None:
            raise TaskError(f"{where}: score {score_text!r} is not a finite number")
        scores_of_topic = topics.setdefault(topic, {})
        if clip_id in scores_of_topic:
            raise TaskError(f"{where}: clip {clip_id!r} of topic {topic} is there twice")
        scores_of_topic[clip_id] = score
    return topics


def read_affect(path: Path) -> Calls:
    """Read an affect run: clip, valence, arousal, all cells filled with classes.

    Raises
    ------
    ManifestError, AuditError
        A cell is empty or not a class, or a clip has two rows; the message names the place.
    """
    rows = read_rows(path, ["clip", *AXES], choices=CLASSES, unique=["clip"])
    calls = {}
    for axis in AXES:
        calls[axis] = {row["clip"]: row[axis] for row in rows}
    return calls


class SubmissionRecord(msgspec.Struct):
    """The fields of a run's record that the rules of the task need.

    Attributes
    ----------
    external_data
        Whether the run used external data.
    pretrained
        Whether the features were made with trained weights; None if that is unknown.
    dev_movies
        The movies that the run was trained on.
    """

    external_data: bool
    pretrained: bool | None = False
    dev_movies: tuple[str, ...] = ()


def read_record(path: Path) -> SubmissionRecord:
    """Read a run's record.

    Raises
    ------
    TaskError, AuditError
        There is no record, or it is not a JSON object with external_data true or false.
    """
    if not path.is_file():
        raise TaskError(
            f"no {path.name} beside it: whether external data was used must be said, as "
            '{"external_data": true} or false'
        )
    record: SubmissionRecord = read_json(path, SubmissionRecord, "record of a run")
    return record


def _lines_in_columns(path: Path) -> list[tuple[str, list[str]]]:
    """Read the lines of a TREC run that are not empty, as six cells each.

    Returns for each line its place, which messages name, such as "run.trec: line 3", and its cells.

    Raises
    ------
    TaskError
        A line has another number of cells, or all lines are empty.
    """
    n_columns = len(TREC_COLUMNS.split())
    rows = []
    for number, text in enumerate(read_text(path).split("\n"), start=1):
        if not text.strip():
            continue
        where = f"{path}: line {number}"
        cells = text.split()
        if len(cells) != n_columns:
            raise TaskError(f"{where}: expected {n_columns} columns ({TREC_COLUMNS}), found {len(cells)}")
        rows.append((where, cells))
    if not rows:
        raise TaskError(
            f"{path}: nothing but empty lines; lines of {n_columns} columns ({TREC_COLUMNS}) were expected"
        )
    return rows


def _number(text: str) -> float | None:
    """Convert a text to a finite number; None if it is no number, or an infinite one."""
    value = number_of(text)  # NaN if the text is no number
    if not math.isfinite(value):
        return None
    return value
