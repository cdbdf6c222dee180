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
from obygaze_features.manifest import same_films
from obygaze_features.options import PROBLEMS_FOUND, Answer
from obygaze_features.screen import table
from obygaze_features.text import counted, percentage
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


class PublishedValue(NamedTuple):
    """A published value of a measure, and where it is printed."""

    value: float
    source: str


_FUDAN_HUAWEI = "Fudan-Huawei 2015 (CEUR-WS 1436, paper 29)"

PUBLISHED: Mapping[tuple[str, str], PublishedValue] = {
    (run_files.TOPIC, "map"): PublishedValue(0.296, _FUDAN_HUAWEI),
    (run_files.TOPIC, "P_100"): PublishedValue(0.55, "Li et al. 2016 (arXiv 1604.08088), whose AP is .303"),
    ("valence", "accuracy_all"): PublishedValue(0.488, _FUDAN_HUAWEI),
    ("arousal", "accuracy_all"): PublishedValue(0.418, _FUDAN_HUAWEI),
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

    shown_rows = [row for row in rows if row["measure"] in SHOWN_MEASURES]
    official_rows = [row for row in rows if row["measure"] in OFFICIAL_MEASURES]
    answer = "{run}, {on}: {measure} {value:.3f} (by chance {chance:.3f})"
    # Names without folders, which differ between machines; the digests identify the files.
    inputs = [{"name": path.name, "sha256": file_sha256(path)} for path in (truth, *runs)]

    return Report(
        name="scores",
        title="MediaEval 2015 Affective Impact of Movies",
        notes=(*NOTES, *_sources_of_published(rows), *notices),
        answers=tuple(answer.format_map(row) for row in official_rows),
        blocks=(block("Measures", COLUMNS, shown_rows),),
        data=pd.DataFrame(rows),
        record={"inputs": inputs, "scores_held_as": "float32"},
        pictures=(Picture("scores", "The official measures of every run", _draw_official(official_rows)),),
    )


def _sources_of_published(rows: Sequence[Row]) -> list[str]:
    """Write a note with the source of each published value that stands in the rows of the runs.

    Several runs have the same published values beside them; each source is written once.
    """
    notes: list[str] = []
    for row in rows:
        has_published_value = not math.isnan(row["published"])
        if not has_published_value:
            continue
        measure = row["measure"]
        scored_on = row["on"]
        note = f"published {measure} of {scored_on}: {PUBLISHED[scored_on, measure].source}"
        if note not in notes:
            notes.append(note)
    return notes


def _draw_official(rows: Sequence[Row]) -> Callable[[Any], None]:
    """Return the function that draws the rows of the official measures as bars, beside published values."""
    return bar_chart(
        labels=["{run}\n{on} (by chance {chance:.3f})".format_map(row) for row in rows],
        series={"official measure": [row["value"] for row in rows]},
        axis="average precision (map) of violence, accuracy of valence and arousal",
        published={"official measure": [row["published"] for row in rows]},
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
    is_affect_run = set(run) == set(AXES)  # a TREC run has topics in place of axes
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
    """List the measures of a run on violence or on one axis as rows, with their chance levels.

    The published values are added if the run was scored on as many clips as the official test set has: on
    other clips they are not comparable. NaN stands for a chance level or published value that there is not.
    """
    rows = []
    for measure, value in part.values.items():
        published = NAN
        if part.n_clips == OFFICIAL_TEST_CLIPS and (part.on, measure) in PUBLISHED:
            published = PUBLISHED[part.on, measure].value
        row: Row = {
            "measure": measure,
            "value": float(value),
            "chance": part.chance.get(measure, NAN),
            "published": published,
        }
        rows.append(row)
    return rows


def _score_violence(name: str, run: Mapping[str, Any], test: Sequence[Annotated]) -> Scored:
    """Score the ranking of a run of violence on the test clips.

    Parameters
    ----------
    name
        Name of the run, for messages.
    run
        Topic -> clip id -> score; violence is one topic.
    test
        The test clips.

    Raises
    ------
    TaskError
        No test clip has a label of violence, or the run does not have the topic.
    """
    judged = annotations.violence_qrels(test)
    if not judged:
        raise TaskError("no clip of the truth has a violence label: there is nothing to score against")
    if run_files.TOPIC not in run:
        raise TaskError(f"run {name}: no topic {run_files.TOPIC}, but {', '.join(sorted(run))}")
    scores: Mapping[str, float] = run[run_files.TOPIC]
    values = measures(scores, judged)
    n_relevant = int(values["num_rel"])
    return Scored(
        on=run_files.TOPIC,
        values=values,
        chance={"map": expected_average_precision(len(judged), n_relevant)},
        notices=_notices_on_violence(scores, judged, n_relevant),
        n_clips=len(judged),
    )


def _notices_on_violence(
    scores: Mapping[str, float], judged: Mapping[str, int], n_relevant: int
) -> list[str]:
    """Write the notices on a run of violence: missing clips, clips that are not judged, and ties.

    Parameters
    ----------
    scores
        The run: clip id -> score.
    judged
        The labelled clips: clip id -> 1 for violent, 0 for not.
    n_relevant
        Number of violent clips.
    """
    notices = []
    if not n_relevant:
        notices.append("no relevant clip: every measure is 0")
    n_missing = len(judged.keys() - scores.keys())
    if n_missing:
        notices.append(
            f"{n_missing} of {len(judged)} judged clips are missing from the run; relevant ones add 0"
        )
    n_not_judged = len(scores.keys() - judged.keys())
    if n_not_judged:
        notices.append(f"not judged, and counted as not relevant: {counted(n_not_judged, 'clip')} of the run")
    return notices + _tie_notices(tie_share(scores))


def _score_axis(axis: Axis, calls: Mapping[str, str], truth: Mapping[str, str]) -> Scored:
    """Score the classes that a run calls on an axis.

    The measure `accuracy_all` is official only if the run has all clips, and `coverage` is 1.

    Parameters
    ----------
    axis
        "valence" or "arousal".
    calls, truth
        Clip id -> called class, and -> true class.

    Raises
    ------
    TaskError
        No clip has a true class.
    """
    if not truth:
        raise TaskError(f"no clip of the truth has a class of {axis}: there is nothing to score against")
    compared = accuracy(calls, truth)
    n_clips = int(compared.values["num_clips"])
    n_returned = int(compared.values["num_returned"])
    notices = []
    if n_returned < n_clips:
        notices.append(
            f"{n_returned} of {counted(n_clips, 'clip')} returned, so none is official: accuracy_all counts "
            "missing ones as wrong, accuracy_returned leaves them out"
        )
    if compared.n_unknown:
        notices.append(f"without a known class, and counted nowhere: {counted(compared.n_unknown, 'clip')}")
    return Scored(
        on=axis,
        values=compared.values | _confusion_values(axis, calls, truth),
        chance={"accuracy_all": compared.majority, "accuracy_returned": compared.majority},
        notices=notices,
        n_clips=n_clips,
    )


def _confusion_values(axis: Axis, calls: Mapping[str, str], truth: Mapping[str, str]) -> dict[str, float]:
    """Count the clips of each true and called class, under names such as `neutral_called_positive`.

    Parameters
    ----------
    axis
        "valence" or "arousal", which have three classes each.
    calls, truth
        Clip id -> called class, and -> true class.
    """
    classes = CLASSES[axis]
    counts = confusion(calls, truth, classes).tolist()
    values = {}
    for true_class, counts_of_class in zip(classes, counts, strict=True):
        for called_class, n_called in zip(classes, counts_of_class, strict=True):
            values[f"{true_class}_called_{called_class}"] = n_called
    return values


def _tie_notices(share: float) -> list[str]:
    """Return a notice, in a list, if so many clips are tied that AP depends on file names.

    `share` is the share of clips whose score is equal to that of another clip. Up to a tenth, the list is
    empty.
    """
    if share <= TIE_WARNING:
        return []
    return [f"{percentage(share)}% of the clips tie with another; their order, and so AP, follows file names"]


# --- checks of a folder of runs
# ---------------------------------------------------------------------------
MAX_RUNS = 5
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
    leaking_movies = annotations.leaking_movies(clips)
    findings = [
        _problem("split", f"movie {movie!r} has clips in dev and in test") for movie in leaking_movies
    ]
    runs = []
    for file in find_runs(folder):
        checked_run = _check_run(file, clips)
        runs.append(checked_run.row)
        findings += checked_run.findings
    for subtask in run_files.SUBTASKS:
        runs_of_subtask = [run for run in runs if run["subtask"] == subtask]
        findings += _check_subtask(subtask, runs_of_subtask)
    return _answer_of_check(runs, findings)


Finding = dict[str, str]
"""What a check found: `severity` ("problem" or "warning"), `about` (a run, a subtask, the split), `what`."""


def _problem(about: str, what: str) -> Finding:
    """Make a finding that breaks the rules of the task."""
    return {"severity": "problem", "about": about, "what": what}


def _warning(about: str, what: str) -> Finding:
    """Make a finding that affects how a number is to be read."""
    return {"severity": "warning", "about": about, "what": what}


def _check_subtask(subtask: str, runs: Sequence[Row]) -> list[Finding]:
    """Check the rules of the task for the runs of a subtask together.

    There may be five runs at most, and one of them must do without external data.
    """
    findings = []
    if len(runs) > MAX_RUNS:
        findings.append(_problem(subtask, f"{len(runs)} runs; at most {MAX_RUNS} may be submitted"))
    if runs and not any(run["external_data"] is False for run in runs):
        findings.append(_problem(subtask, "no run without external data; at least one is required"))
    return findings


def _answer_of_check(runs: Sequence[Row], findings: Sequence[Finding]) -> Answer:
    """Make the answer of a check: a table of the runs, and the findings as remarks.

    Its exit code tells whether a finding is a problem. In `runs`, None stands for what is not known of a run.
    """
    external_texts = {True: "yes", False: "no", None: "not said"}
    rows = []
    for run in runs:
        external = external_texts[run["external_data"]]
        rows.append((run["subtask"], run["name"], external, share(run["coverage"]), share(run["ties"])))
    remarks = [f"{finding['severity']}: {finding['about']}: {finding['what']}" for finding in findings]
    has_problem = any(finding["severity"] == "problem" for finding in findings)
    if not has_problem:
        remarks.append("no problem found: the folder keeps the rules of the task")
    return Answer(
        {"runs": runs, "findings": findings},
        text=table(rows, ("subtask", "run", "external data", "coverage", "ties")),
        remarks=remarks,
        code=PROBLEMS_FOUND if has_problem else 0,
    )


class _CheckedRun(NamedTuple):
    """A run that was checked.

    Attributes
    ----------
    row
        Its subtask, name, external_data, coverage and ties; None for what neither record nor file states.
    findings
        What was found.
    """

    row: Row
    findings: list[Finding]


def _check_run(file: run_files.RunFile, clips: Sequence[Annotated]) -> _CheckedRun:
    """Check a run and its record against all clips; what cannot be read is a finding too."""
    test_clips = [clip for clip in clips if clip.split == "test"]
    about = file.path.name
    findings = []
    row: Row = {
        "subtask": file.subtask,
        "name": file.name,
        "external_data": None,
        "coverage": None,
        "ties": None,
    }

    try:
        record = run_files.read_record(file.record_path)
    except (TaskError, AuditError) as error:
        findings.append(_problem(about, str(error)))
    else:
        row["external_data"] = record.external_data
        test_movies = {clip.movie for clip in test_clips if clip.movie}
        findings += [_problem(about, what) for what in _problems_of_record(record, test_movies)]

    try:
        ids, ties = _read_clips_and_ties(file)
    except ObygazeError as error:
        findings.append(_problem(about, str(error)))
    else:
        test_ids = {clip.clip_id for clip in test_clips}
        row["coverage"] = len(ids & test_ids) / len(test_ids)
        row["ties"] = ties
        findings += _check_clips(about, ids, test_ids)
        findings += [_warning(about, notice) for notice in _tie_notices(ties)]

    return _CheckedRun(row, findings)


def _check_clips(about: str, ids: set[str], test_ids: set[str]) -> list[Finding]:
    """Find the clips of a run that are no test clips, a problem, and the test clips that it lacks, a warning.

    Parameters
    ----------
    about
        The run, for the findings.
    ids, test_ids
        Ids of the clips of the run, and of the test clips.
    """
    findings = []
    not_in_test = sorted(ids - test_ids)
    if not_in_test:
        n_clips = counted(len(not_in_test), "clip")
        what = f"{n_clips} that are no test clips; the first is {not_in_test[0]!r}"
        findings.append(_problem(about, what))
    missing = sorted(test_ids - ids)
    if missing:
        n_test_clips = counted(len(test_ids), "test clip")
        what = f"{len(missing)} of {n_test_clips} are missing; the first is {missing[0]!r}"
        findings.append(_warning(about, what))
    return findings


def _problems_of_record(record: run_files.SubmissionRecord, test_movies: set[str]) -> list[str]:
    """List what contradicts the rules in a run's record: training on test movies, and hidden external data.

    A test movie may be in the training data under another spelling of its name. A pretrained backbone counts
    as external data, which the record must declare.

    Parameters
    ----------
    record
        What the run's record says of it.
    test_movies
        The movies of the test clips.
    """
    problems = []
    # Pairs of a name and an earlier name of the same film. The movies of the training come first.
    respelled = same_films([*record.dev_movies, *sorted(test_movies)])
    trained_under_other_name = {movie for movie, earlier in respelled if earlier in record.dev_movies}
    leaks = sorted(test_movies & {*record.dev_movies, *trained_under_other_name})
    if leaks:
        problems.append(f"trained on movie {leaks[0]!r}, which is a test movie ({len(leaks)} of them)")
    may_have_seen_external_data = record.pretrained is not False  # True, or None for unknown
    if may_have_seen_external_data and not record.external_data:
        origin = "a pretrained backbone" if record.pretrained else "an unknown origin"
        problems.append(f"its record says external_data false, and that its features are of {origin}")
    return problems


def _read_clips_and_ties(file: run_files.RunFile) -> tuple[set[str], float]:
    """Read the ids of the clips of a run, and the share of them whose score is equal to another's.

    A run of affect has classes, which are not ranked and cannot tie: the share is 0.

    Raises
    ------
    TaskError
        The file cannot be read, or a run of violence has another topic.
    """
    if file.subtask == "affect":
        classes_of_axis = run_files.read_affect(file.path)
        return set(classes_of_axis["valence"]), 0.0  # every row has a class of both axes
    topics = run_files.read_trec(file.path)
    if set(topics) != {run_files.TOPIC}:
        raise TaskError(f"its topics are {', '.join(sorted(topics))}; expected {run_files.TOPIC} alone")
    return set(topics[run_files.TOPIC]), tie_share(topics[run_files.TOPIC])
