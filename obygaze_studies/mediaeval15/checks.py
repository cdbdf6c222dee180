"""Check a folder of runs for what makes it invalid or its numbers misleading."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from obygaze_features.errors import ManifestError
from obygaze_studies.errors import TaskError
from obygaze_studies.mediaeval15.annotations import Annotated, leaking_movies
from obygaze_studies.mediaeval15.metrics import held_scores, tie_share
from obygaze_studies.mediaeval15.run_files import (
    SUBTASKS,
    SUFFIXES,
    TOPIC,
    RunFile,
    Subtask,
    read_affect,
    read_record,
    read_trec,
)
from obygaze_studies.mediaeval15.score import TIE_WARNING

MOST_RUNS = 5
"""Of each subtask (section 5 of the paper)."""


@dataclass(frozen=True, slots=True)
class RunFinding:
    """A problem, which breaks the task's rules, or a warning, which affects how a number is read."""

    severity: Literal["problem", "warning"]
    about: str
    what: str


@dataclass(frozen=True, slots=True)
class CheckedRun:
    """A run of the folder; None where neither its record nor its file states a value."""

    subtask: Subtask
    name: str
    external_data: bool | None
    coverage: float | None
    ties: float | None


@dataclass(frozen=True, slots=True)
class CheckedFolder:
    """The runs of a folder, and what was found wrong."""

    runs: tuple[CheckedRun, ...]
    findings: tuple[RunFinding, ...]

    @property
    def ok(self) -> bool:
        """Whether no problem was found; warnings may be there."""
        return not any(finding.severity == "problem" for finding in self.findings)


def find_runs(folder: Path) -> list[RunFile]:
    """List the runs in a folder, sorted: `violence-NAME.trec` and `affect-NAME.csv`.

    Raises
    ------
    TaskError
        There is no such folder, or no run in it.
    """
    if not folder.is_dir():
        raise TaskError(f"{folder}: no such folder of runs")
    runs = [
        RunFile(folder, subtask, path.name.removeprefix(f"{subtask}-").removesuffix(SUFFIXES[subtask]))
        for subtask in SUBTASKS
        for path in sorted(folder.glob(f"{subtask}-*{SUFFIXES[subtask]}"))
    ]
    if not runs:
        raise TaskError(f"{folder}: no run here; expected files named violence-NAME.trec or affect-NAME.csv")
    return runs


def check_runs(folder: Path, clips: Sequence[Annotated]) -> CheckedFolder:
    """Check all runs of a folder against the clips of the task.

    Parameters
    ----------
    folder
        Of the runs and their records.
    clips
        All clips; those with split "test" must be in every run.

    Raises
    ------
    TaskError
        No folder, no run, or no clip that is said to be a test clip.
    """
    test = [clip for clip in clips if clip.split == "test"]
    if not test:
        raise TaskError("no clip of the truth has the split test: coverage can't be checked")
    findings = [
        RunFinding("problem", "split", f"movie {movie!r} has clips in dev and in test")
        for movie in leaking_movies(clips)
    ]
    runs = [_check_run(file, clips, findings) for file in find_runs(folder)]
    for subtask in SUBTASKS:
        here = [run for run in runs if run.subtask == subtask]
        if len(here) > MOST_RUNS:
            findings.append(
                RunFinding("problem", subtask, f"{len(here)} runs; at most {MOST_RUNS} may be submitted")
            )
        if here and not any(run.external_data is False for run in here):
            findings.append(
                RunFinding("problem", subtask, "no run without external data; at least one is required")
            )
    return CheckedFolder(tuple(runs), tuple(findings))


def _check_run(file: RunFile, clips: Sequence[Annotated], findings: list[RunFinding]) -> CheckedRun:
    about = file.path.name

    def problem(what: str) -> None:
        findings.append(RunFinding("problem", about, what))

    record = _record(file, problem)
    movies = {clip.movie for clip in clips if clip.split == "test" and clip.movie}
    seen = record.get("dev_movies", ())
    leaks = sorted(movies & {str(movie) for movie in seen}) if isinstance(seen, list) else []
    if leaks:
        problem(f"trained on movie {leaks[0]!r}, which is a test movie ({len(leaks)} of them)")
    if record.get("external_data") is False and record.get("pretrained", False) is not False:
        origin = "a pretrained backbone" if record["pretrained"] is True else "an unknown origin"
        problem(f"its record says external_data false, and that its features are of {origin}")
    returned = _returned(file, problem)
    if returned is None:
        return CheckedRun(file.subtask, file.name, record.get("external_data"), None, None)
    ids, ties = returned
    wanted = {clip.clip_id for clip in clips if clip.split == "test"}
    strange = sorted(ids - wanted)
    if strange:
        problem(f"{len(strange)} clips that are no test clips; the first is {strange[0]!r}")
    coverage = len(ids & wanted) / len(wanted)
    if coverage < 1:
        missing = sorted(wanted - ids)
        what = f"{len(missing)} of {len(wanted)} test clips are missing; the first is {missing[0]!r}"
        findings.append(RunFinding("warning", about, what))
    if ties > TIE_WARNING:
        what = f"{ties:.0%} of the clips tie with another; their order, and so AP, follows file names"
        findings.append(RunFinding("warning", about, what))
    return CheckedRun(file.subtask, file.name, record.get("external_data"), coverage, ties)


def _record(file: RunFile, problem: Any) -> dict[str, Any]:
    if not file.record_path.is_file():
        problem(
            f"no {file.record_path.name} beside it: whether external data was used must be said, as "
            '{"external_data": true} or false'
        )
        return {}
    try:
        return read_record(file.record_path)
    except TaskError as error:
        problem(str(error))
        return {}


def _returned(file: RunFile, problem: Any) -> tuple[set[str], float] | None:
    """Read a run's clips and its share of ties; that a file can't be read is a problem."""
    try:
        if file.subtask == "affect":
            return set(read_affect(file.path)["valence"]), 0.0
        topics = read_trec(file.path)
        if set(topics) != {TOPIC}:
            problem(f"its topics are {', '.join(sorted(topics))}; expected {TOPIC} alone")
        if TOPIC not in topics:
            return None
        scores = topics[TOPIC]
        held_scores(scores)
        return set(scores), tie_share(scores)
    except (TaskError, ManifestError) as error:
        problem(str(error))
        return None
