"""Write and read run files: TREC's six columns for violence, a CSV for affect, a JSON record beside each."""

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
TOPIC = "violence"
COLUMNS = "topic Q0 clip rank score name"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")

Calls = dict[Axis, dict[str, str]]
"""Axis -> clip id -> the class it is called."""


@dataclass(frozen=True)
class RunFile:
    """Where a run of a subtask lies in a folder."""

    folder: Path
    subtask: Subtask
    name: str

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise TaskError(f"{self.name!r} is no name for a run: use letters, digits, '.', '_' and '-'")

    @property
    def path(self) -> Path:
        """The run itself."""
        return self.folder / f"{self.subtask}-{self.name}{SUFFIXES[self.subtask]}"

    @property
    def record_path(self) -> Path:
        """Its record."""
        return self.path.with_suffix(f"{self.path.suffix}.json")


def trec_lines(run: Mapping[str, float], name: str) -> str:
    """Write scores as the lines `violence Q0 CLIP RANK SCORE NAME`, ranked as the tool of 2015 ranks them.

    Raises
    ------
    TaskError
        A score is not finite, or a clip's id has a space, which the format cannot hold.
    """
    for clip_id in run:
        if len(clip_id.split()) != 1:
            raise TaskError(f"clip {clip_id!r}: a TREC run can't hold an id with a space")
    return "".join(
        f"{TOPIC} Q0 {clip_id} {rank} {run[clip_id]!r} {name}\n"
        for rank, clip_id in enumerate(ranked(run), start=1)
    )


def affect_lines(calls: Calls) -> str:
    """Write calls as a CSV: clip, valence, arousal."""

    def cells(clip_id: str) -> list[str]:
        return [clip_id, *(calls[axis][clip_id] for axis in AXES)]

    lines = map(cells, calls["valence"])
    return "".join(map(csv_line, (["clip", *AXES], *lines)))


def write_run(file: RunFile, text: str, record: Mapping[str, object]) -> None:
    """Write a run and its record, in place of an earlier one."""
    file.folder.mkdir(parents=True, exist_ok=True)
    write_whole(file.path, text)
    write_whole(file.record_path, json_bytes(record))


def read_trec(path: Path) -> dict[str, dict[str, float]]:
    """Read a TREC run: scores by topic and clip. Its ranks are not looked at: trec_eval does not either.

    Raises
    ------
    TaskError
        Names the line that has not six columns, a score that is no finite number, or a clip for the second
        time.
    """
    topics: dict[str, dict[str, float]] = {}
    for where, cells in _columns(path):
        score = _number(cells[4])
        if score is None:
            raise TaskError(f"{where}: score {cells[4]!r} is not a finite number")
        clips = topics.setdefault(cells[0], {})
        if cells[2] in clips:
            raise TaskError(f"{where}: clip {cells[2]!r} of topic {cells[0]} is there twice")
        clips[cells[2]] = score
    return topics


def read_affect(path: Path) -> Calls:
    """Read an affect run: clip, valence, arousal, all cells filled with classes.

    Raises
    ------
    ManifestError, AuditError
        Naming file, line and column, or the clip that is there twice.
    """
    rows = read_rows(path, ["clip", *AXES], choices=CLASSES, unique=["clip"])
    calls = {}
    for axis in AXES:
        calls[axis] = {row["clip"]: row[axis] for row in rows}
    return calls


class SubmissionRecord(msgspec.Struct):
    """What the rules of the task ask of a run's record."""

    external_data: bool
    pretrained: bool | None = False
    dev_movies: tuple[str, ...] = ()


def read_record(path: Path) -> SubmissionRecord:
    """Read a run's record.

    Raises
    ------
    TaskError, AuditError
        It is not there, or not a JSON object that says, as true or false, external_data.
    """
    if not path.is_file():
        raise TaskError(
            f"no {path.name} beside it: whether external data was used must be said, as "
            '{"external_data": true} or false'
        )
    record: SubmissionRecord = read_json(path, SubmissionRecord, "record of a run")
    return record


def _columns(path: Path) -> list[tuple[str, list[str]]]:
    """Read the columns of each line that has any, and where it stands."""
    lines = enumerate(read_text(path).split("\n"), start=1)
    rows = [(f"{path}: line {line}", text.split()) for line, text in lines if text.strip()]
    for where, cells in rows:
        if len(cells) != 6:
            raise TaskError(f"{where}: expected 6 columns ({COLUMNS}), found {len(cells)}")
    if not rows:
        raise TaskError(f"{path}: nothing but empty lines; lines of 6 columns ({COLUMNS}) were expected")
    return rows


def _number(text: str) -> float | None:
    value = number_of(text)
    return value if math.isfinite(value) else None
