"""Score runs with the official measures, chance levels and published results, and check their folder."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from obygaze_features.arguments import checked
from obygaze_features.errors import ObygazeError
from obygaze_features.io import file_sha256
from obygaze_features.options import PROBLEMS_FOUND, Answer
from obygaze_features.screen import table
from obygaze_features.text import counted
from obygaze_models.evaluation import NAN, expected_average_precision
from obygaze_models.report import NOTHING, Column, Picture, Report, block, number
from obygaze_studies.audit_common.findings import bar_chart, share
from obygaze_studies.audit_common.inputs import refuse_duplicates
from obygaze_studies.errors import AuditError, TaskError
from obygaze_studies.mediaeval15 import annotations, run_files
from obygaze_studies.mediaeval15.annotations import AXES, CLASSES, Annotated, Axis
from obygaze_studies.mediaeval15.metrics import accuracy, confusion, measures, tie_share

TIE_WARNING = 0.1
"""Share of tied clips above which a notice says that AP depends on file names."""

OFFICIAL_TEST_CLIPS = 4756
"""Published numbers are shown only beside a test set of this size."""

PUBLISHED: Mapping[tuple[str, str], tuple[float, str]] = {
    (run_files.TOPIC, "map"): (0.296, "Fudan-Huawei 2015 (CEUR-WS 1436, paper 29)"),
    (run_files.TOPIC, "P_100"): (0.55, "Li et al. 2016 (arXiv 1604.08088), whose AP is .303"),
    ("valence", "accuracy_all"): (0.488, "Fudan-Huawei 2015 (CEUR-WS 1436, paper 29)"),
    ("arousal", "accuracy_all"): (0.418, "Fudan-Huawei 2015 (CEUR-WS 1436, paper 29)"),
}
"""Topic or axis and measure -> the value that a participant's abstract prints, and its source.

The paper of the task prints no values.
"""

OFFICIAL_MEASURES = ("map", "accuracy_all")
"""The official measures of both subtasks."""

SHOWN_MEASURES = (
    "map",
    "P_10",
    "P_100",
    "recall_100",
    "Rprec",
    "accuracy_all",
    "accuracy_returned",
    "coverage",
)
"""Measures of the printed table; the CSV has all."""


NOTES = (
    "map: average precision as trec_eval computes it, ties by file name; official for violence",
    "accuracy_all: share of all clips called correctly; official for affect where coverage is 1",
    "chance: mean AP over all orders of the clips; accuracy of the most frequent class",
)

Row = dict[str, Any]


class Scored(NamedTuple):
    """The scores of a run on the topic of violence, or on an axis.

    Attributes
    ----------
    on
        The topic, or the axis.
    values
        Measure -> its value.
    chance
        Measure -> its chance level, for the measures that have one.
    notices
        Notes that readers need.
    n_clips
        Number of clips that the run is scored on.
    """

    on: str
    values: Mapping[str, float]
    chance: Mapping[str, float]
    notices: Sequence[str]
    n_clips: int


def _format_number(value: float, digits: int = 3) -> str:
    """Format a number; a dash for NaN."""
    if math.isnan(value):
        return NOTHING
    return number(value, digits)


COLUMNS: Sequence[Column] = (
    *((name, name, str) for name in ("run", "on", "measure")),
    ("value", "value", partial(number, digits=4)),
    ("chance", "chance", partial(_format_number, digits=4)),
    ("published", "published", _format_number),
)


def score_report(truth: Path, runs: Sequence[Path]) -> Report:
    """Score run files against the file of the true labels.

    Parameters
    ----------
    truth
        Table or manifest of the clips with their labels.
    runs
        The run files; those that end in .csv are affect runs, all others TREC runs of violence.

    Raises
    ------
    AuditError
        Two runs have the same name.
    TaskError
        As `score_run` raises.
    """
    refuse_duplicates((path.stem for path in runs), "rename a run, or score them apart: two are named")
    clips = annotations.read_annotations(truth)
    rows: list[Row] = []
    notices: list[str] = []
    for path in runs:
        read_run = run_files.read_affect if path.suffix == ".csv" else run_files.read_trec
        rows_of_run, notices_of_run = score_run(path.stem, read_run(path), clips)
        rows += rows_of_run
        notices += notices_of_run
    data = pd.DataFrame(rows)
    published = data.dropna(subset=["published"])[["on", "measure"]].itertuples(index=False, name=None)
    printed = [f"published {name} of {on}: {PUBLISHED[on, name][1]}" for on, name in dict.fromkeys(published)]
    shown_rows = data[data["measure"].isin(SHOWN_MEASURES)].to_dict(orient="records")
    official = [row for row in shown_rows if row["measure"] in OFFICIAL_MEASURES]
    draw = bar_chart(
        labels=["{run}\n{on} (by chance {chance:.3f})".format_map(row) for row in official],
        series={"official measure": [row["value"] for row in official]},
        axis="average precision (map) of violence, accuracy of valence and arousal",
        published={"official measure": [row["published"] for row in official]},
    )
    # Names without folders, which differ between machines; the digests identify the files.
    inputs = [{"name": path.name, "sha256": file_sha256(path)} for path in (truth, *runs)]
    return Report(
        name="scores",
        title="MediaEval 2015 Affective Impact of Movies",
        notes=(*NOTES, *printed, *notices),
        answers=tuple(
            "{run}, {on}: {measure} {value:.3f} (by chance {chance:.3f})".format_map(row) for row in official
        ),
        blocks=(block("Measures", COLUMNS, shown_rows),),
        data=data,
        record={"inputs": inputs, "scores_held_as": "float32"},
        pictures=(Picture("scores", "The official measures of every run", draw),),
    )


def score_run(name: str, run: Any, clips: Sequence[Annotated]) -> tuple[list[Row], list[str]]:
    """Score a run of either subtask against the test clips.

    Parameters
    ----------
    name
        Name of the run.
    run
        The run as it was read: of an affect run, axis -> clip id -> class; of a TREC run, topic -> clip id ->
        score.
    clips
        The clips with their labels.

    Returns
    -------
    rows, notices
        A row for each measure; and notes on ties, missing clips and clips without a known class.

    Raises
    ------
    TaskError
        The truth lacks the labels, the run the topic, or a score is not finite.
    """
    test = annotations.scored_clips(clips)
    is_affect_run = set(run) == set(AXES)
    if is_affect_run:
        subtask = "affect"
        parts = [_score_axis(axis, run[axis], annotations.true_classes(test, axis)) for axis in AXES]
    else:
        subtask = "violence"
        parts = [_score_violence(name, run, test)]
    rows: list[Row] = []
    notices: list[str] = []
    for part in parts:
        run_columns = {"run": name, "subtask": subtask, "on": part.on}
        rows += [run_columns | row for row in _measure_rows(part)]
        notices += [f"run {name}, {part.on}: {notice}" for notice in part.notices]
    return rows, notices


def _measure_rows(part: Scored) -> list[Row]:
    """List the measures of a scored run as rows, with their chance levels.

    The published values are added if the run was scored on all the official test clips.
    """
    rows = []
    for measure, value in part.values.items():
        published = NAN
        if part.n_clips == OFFICIAL_TEST_CLIPS and (part.on, measure) in PUBLISHED:
            published, _ = PUBLISHED[part.on, measure]
        row: Row = {"measure": measure, "value": float(value), "chance": part.chance.get(measure, NAN)}
        rows.append(row | {"published": published})
    return rows


def _score_violence(name: str, run: Mapping[str, Any], test: Sequence[Annotated]) -> Scored:
    """Score the ranking of a run of violence on the test clips."""
    judged = annotations.violence_qrels(test)
    if not judged:
        raise TaskError("no clip of the truth has a violence label: there is nothing to score against")
    if run_files.TOPIC not in run:
        raise TaskError(f"run {name}: no topic {run_files.TOPIC}, but {', '.join(sorted(run))}")
    scores: Mapping[str, float] = run[run_files.TOPIC]
    values = measures(scores, judged)
    n_relevant = int(values["num_rel"])
    n_clips = len(judged)
    notices = []
    if not n_relevant:
        notices.append("no relevant clip: every measure is 0")
    n_missing = len(judged.keys() - scores.keys())
    if n_missing:
        notices.append(f"{n_missing} of {n_clips} judged clips are missing from the run; relevant ones add 0")
    n_not_judged = len(scores.keys() - judged.keys())
    if n_not_judged:
        notices.append(f"not judged, and counted as not relevant: {counted(n_not_judged, 'clip')} of the run")
    notices += _tie_notices(tie_share(scores))
    chance = {"map": expected_average_precision(n_clips, n_relevant)}
    return Scored(run_files.TOPIC, values, chance, notices, n_clips)


def _score_axis(axis: Axis, calls: Mapping[str, str], truth: Mapping[str, str]) -> Scored:
    """Score the called classes of an axis; `accuracy_all` is official if `coverage` is 1."""
    if not truth:
        raise TaskError(f"no clip of the truth has a class of {axis}: there is nothing to score against")
    values, majority, n_unknown = accuracy(calls, truth)
    n_clips = int(values["num_clips"])
    n_returned = int(values["num_returned"])
    classes = CLASSES[axis]
    counts = confusion(calls, truth, classes).tolist()
    for true_class, counts_of_class in zip(classes, counts, strict=True):
        for called_class, n_called in zip(classes, counts_of_class, strict=True):
            values[f"{true_class}_called_{called_class}"] = n_called
    notices = []
    if n_returned < n_clips:
        notices.append(
            f"{n_returned} of {counted(n_clips, 'clip')} returned, so none is official: accuracy_all counts "
            "missing ones as wrong, accuracy_returned leaves them out"
        )
    if n_unknown:
        notices.append(f"without a known class, and counted nowhere: {counted(n_unknown, 'clip')}")
    chance = {"accuracy_all": majority, "accuracy_returned": majority}
    return Scored(axis, values, chance, notices, n_clips)


def _tie_notices(share: float) -> list[str]:
    """Return a notice if a large share of the clips is tied, so that AP depends on file names."""
    if share <= TIE_WARNING:
        return []
    return [f"{share:.0%} of the clips tie with another; their order, and so AP, follows file names"]


# --- checks of a folder of runs
# ---------------------------------------------------------------------------
MOST_RUNS = 5
"""Largest number of runs per subtask (section 5 of the paper)."""


def find_runs(folder: Path) -> list[run_files.RunFile]:
    """List the runs in a folder, sorted: `violence-NAME.trec` and `affect-NAME.csv`.

    Raises
    ------
    TaskError
        There is no such folder, or no run in it.
    """
    if not folder.is_dir():
        raise TaskError(f"{folder}: no such folder of runs")
    runs = []
    for subtask in run_files.SUBTASKS:
        paths = sorted(folder.glob(f"{subtask}-*{run_files.SUFFIXES[subtask]}"))
        names = [path.stem.removeprefix(f"{subtask}-") for path in paths]
        runs += [run_files.RunFile(folder, subtask, name) for name in names]
    if not runs:
        raise TaskError(f"{folder}: no run here; expected files named violence-NAME.trec or affect-NAME.csv")
    return runs


@checked
def check_runs(folder: Path, clips: Sequence[Annotated]) -> Answer:
    """Check all runs of a folder against the clips of the task.

    Parameters
    ----------
    folder
        Folder of the runs and their records.
    clips
        All clips; those with split "test" must be in every run.

    Returns
    -------
    Answer
        For each run external_data, coverage and ties, which are None if neither its record nor its file
        states them; and the findings. Problems break the rules of the task; warnings affect how a number is
        to be read.

    Raises
    ------
    TaskError
        There is no folder, no run in it, or no clip with split "test".
    """
    if not any(clip.split == "test" for clip in clips):
        raise TaskError("no clip of the truth has the split test: coverage can't be checked")
    findings: list[dict[str, str]] = []

    def note(about: str, problem: str, severity: str = "problem") -> None:
        """Add a finding about a run, a subtask or the split."""
        findings.append({"severity": severity, "about": about, "what": problem})

    for movie in annotations.leaking_movies(clips):
        note("split", f"movie {movie!r} has clips in dev and in test")
    runs = [_check_run(file, clips, partial(note, file.path.name)) for file in find_runs(folder)]
    for subtask in run_files.SUBTASKS:
        runs_of_subtask = [run for run in runs if run["subtask"] == subtask]
        if len(runs_of_subtask) > MOST_RUNS:
            note(subtask, f"{len(runs_of_subtask)} runs; at most {MOST_RUNS} may be submitted")
        if runs_of_subtask and not any(run["external_data"] is False for run in runs_of_subtask):
            note(subtask, "no run without external data; at least one is required")
    problems = any(finding["severity"] == "problem" for finding in findings)
    external = {True: "yes", False: "no", None: "not said"}
    rows = []
    for run in runs:
        shares = (share(run["coverage"]), share(run["ties"]))
        rows.append((run["subtask"], run["name"], external[run["external_data"]], *shares))
    remarks = list(map("{severity}: {about}: {what}".format_map, findings))
    if not problems:
        remarks.append("no problem found: the folder keeps the rules of the task")
    return Answer(
        {"runs": runs, "findings": findings},
        text=table(rows, ("subtask", "run", "external data", "coverage", "ties")),
        remarks=remarks,
        code=PROBLEMS_FOUND if problems else 0,
    )


def _check_run(file: run_files.RunFile, clips: Sequence[Annotated], note: Callable[..., None]) -> Row:
    """Check a run and its record.

    Parameters
    ----------
    file
        The run.
    clips
        All clips.
    note
        Called with a problem of the run or, with "warning" as second argument, a warning.

    Returns
    -------
    The run's subtask, name, external_data, coverage and ties.
    """
    test_clips = [clip for clip in clips if clip.split == "test"]
    test_ids = {clip.clip_id for clip in test_clips}
    run: Row = {"subtask": file.subtask, "name": file.name}
    run |= dict.fromkeys(("external_data", "coverage", "ties"))
    try:
        record = run_files.read_record(file.record_path)
        run["external_data"] = record.external_data
        _check_record(record, {clip.movie for clip in test_clips if clip.movie}, note)
    except (TaskError, AuditError) as error:
        note(str(error))
    try:
        ids, ties = _read_clips_and_ties(file)
    except ObygazeError as error:
        note(str(error))
        return run
    not_in_test = sorted(ids - test_ids)
    if not_in_test:
        note(f"{counted(len(not_in_test), 'clip')} that are no test clips; the first is {not_in_test[0]!r}")
    missing = sorted(test_ids - ids)
    if missing:
        problem = (
            f"{len(missing)} of {counted(len(test_ids), 'test clip')} are missing; the first is "
            f"{missing[0]!r}"
        )
        note(problem, "warning")
    for notice in _tie_notices(ties):
        note(notice, "warning")
    run["coverage"] = len(ids & test_ids) / len(test_ids)
    run["ties"] = ties
    return run


def _check_record(
    record: run_files.SubmissionRecord, test_movies: set[str], note: Callable[..., None]
) -> None:
    """Call `note` if a run was trained on test movies, or may have used external data without saying so."""
    leaks = sorted(test_movies.intersection(record.dev_movies))
    if leaks:
        note(f"trained on movie {leaks[0]!r}, which is a test movie ({len(leaks)} of them)")
    if not record.external_data and record.pretrained is not False:
        origin = "a pretrained backbone" if record.pretrained else "an unknown origin"
        note(f"its record says external_data false, and that its features are of {origin}")


def _read_clips_and_ties(file: run_files.RunFile) -> tuple[set[str], float]:
    """Read the clips of a run, and the share of them that are tied."""
    if file.subtask == "affect":
        return set(run_files.read_affect(file.path)["valence"]), 0.0
    topics = run_files.read_trec(file.path)
    if set(topics) != {run_files.TOPIC}:
        raise TaskError(f"its topics are {', '.join(sorted(topics))}; expected {run_files.TOPIC} alone")
    return set(topics[run_files.TOPIC]), tie_share(topics[run_files.TOPIC])
