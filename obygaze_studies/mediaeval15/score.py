"""Score runs: official measures, further measures, chance levels, and published results."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from obygaze_models.evaluation import expected_average_precision
from obygaze_studies.errors import TaskError
from obygaze_studies.mediaeval15.annotations import (
    AXES,
    CLASSES,
    Annotated,
    Axis,
    scored_clips,
    true_classes,
    violence_qrels,
)
from obygaze_studies.mediaeval15.metrics import (
    Accuracy,
    accuracy,
    confusion,
    mean_measures,
    measures,
    precision_recall,
    tie_share,
)
from obygaze_studies.mediaeval15.run_files import TOPIC, Calls

TIE_WARNING = 0.1
"""Share of tied clips above which a notice says that AP depends on file names."""

OFFICIAL_TEST_CLIPS = 4756
"""Published numbers are shown only beside a test set of this size."""

PUBLISHED: Mapping[tuple[str, str], tuple[float, str]] = {
    (TOPIC, "map"): (0.296, "Fudan-Huawei 2015 (CEUR-WS 1436, paper 29)"),
    (TOPIC, "P_100"): (0.55, "Li et al. 2016 (arXiv 1604.08088), whose AP is .303"),
    ("valence", "accuracy_all"): (0.488, "Fudan-Huawei 2015 (CEUR-WS 1436, paper 29)"),
    ("arousal", "accuracy_all"): (0.418, "Fudan-Huawei 2015 (CEUR-WS 1436, paper 29)"),
}
"""Numbers of participants' abstracts; the paper of the task prints none."""

COLUMNS = ("run", "subtask", "on", "measure", "value", "chance", "published")
NAN = float("nan")


@dataclass(frozen=True, eq=False)
class PrecisionRecall:
    """A run's precision at every recall that it reaches, and the share of relevant clips."""

    name: str
    recall: NDArray[np.float64]
    precision: NDArray[np.float64]
    prevalence: float


@dataclass(frozen=True, eq=False)
class Confusion:
    """How many clips of each true class (rows) a run calls each class (columns) of an axis."""

    name: str
    axis: Axis
    counts: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Scored:
    """Scores of one or more runs.

    Attributes
    ----------
    table : DataFrame
        `COLUMNS`, a row a measure; `chance` is E[AP] for `map` and the majority class's share for
        accuracies, `published` a participant's number.
    notices : tuple of str
        Notes for readers: ties, missing clips, clips without a known class.
    curves, confusions
        For the figures.
    """

    table: pd.DataFrame
    notices: tuple[str, ...]
    curves: tuple[PrecisionRecall, ...] = ()
    confusions: tuple[Confusion, ...] = field(default=())


def score_violence(
    name: str,
    runs: Mapping[str, Mapping[str, float]],
    qrels: Mapping[str, Mapping[str, int]],
    *,
    double: bool = False,
) -> Scored:
    """Score a TREC run: `map` is the official measure of the violence subtask.

    Parameters
    ----------
    name
        Of the run.
    runs, qrels
        By topic, then by clip. Topics of one side only are left out, and said to be, as the tool does.
    double
        Hold scores as doubles.

    Raises
    ------
    TaskError
        Run and relevances have no topic in common, or a score is not finite.
    """
    topics = [topic for topic in runs if topic in qrels]
    if not topics:
        raise TaskError(
            f"run {name}: no topic in common: the run has {', '.join(sorted(runs))}, "
            f"the relevances {', '.join(sorted(qrels))}"
        )
    rows, notices, curves, by_topic = [], [], [], []
    lone = sorted(set(runs) ^ set(qrels))
    if lone:
        notices.append(f"run {name}: left out topics of run or relevances alone: {', '.join(lone)}")
    for topic in topics:
        run, judged = runs[topic], qrels[topic]
        result = measures(run, judged, double=double)
        by_topic.append(result)
        n_relevant = int(result["num_rel"])
        official = topic == TOPIC and len(judged) == OFFICIAL_TEST_CLIPS
        chance = {"map": expected_average_precision(len(judged), n_relevant)}
        rows += _rows(name, "violence", topic, result, chance, official=official)
        notices += [f"run {name}, {topic}: {notice}" for notice in _said(run, judged, n_relevant, double)]
        label = name if len(topics) == 1 else f"{name}, {topic}"
        curves.append(
            PrecisionRecall(
                label, *precision_recall(run, judged, double=double), n_relevant / max(len(judged), 1)
            )
        )
    if len(topics) > 1:
        rows += _rows(name, "violence", "all", mean_measures(by_topic), {}, official=False)
    return Scored(pd.DataFrame(rows, columns=list(COLUMNS)), tuple(notices), tuple(curves))


def _said(run: Mapping[str, float], judged: Mapping[str, int], n_relevant: int, double: bool) -> list[str]:
    """List what affects AP: no relevant clip, missing or unjudged clips, ties."""
    notices = []
    if not n_relevant:
        notices.append("no relevant clip: every measure is 0")
    missing = len(judged.keys() - run.keys())
    if missing:
        notices.append(
            f"{missing} of {len(judged)} judged clips are missing from the run; relevant ones add 0"
        )
    strange = len(run.keys() - judged.keys())
    if strange:
        notices.append(f"{strange} clips of the run are not judged; they count as not relevant")
    ties = tie_share(run, double=double)
    if ties > TIE_WARNING:
        notices.append(
            f"{ties:.0%} of the clips tie with another; their order, and so AP, follows file names"
        )
    return notices


def score_affect(name: str, calls: Calls, clips: Sequence[Annotated]) -> Scored:
    """Score an affect run against annotated clips: `accuracy_all` is official where `coverage` is 1.

    Raises
    ------
    TaskError
        No clip has a class on an axis.
    """
    rows, notices, confusions = [], [], []
    for axis in AXES:
        truth = true_classes(clips, axis)
        if not truth:
            raise TaskError(f"no clip of the truth has a class of {axis}: there is nothing to score against")
        result = accuracy(calls[axis], truth)
        counts = confusion(calls[axis], truth, CLASSES[axis])
        values: dict[str, float] = {
            "accuracy_all": result.accuracy_all,
            "accuracy_returned": result.accuracy_returned,
            "coverage": result.coverage,
            "num_clips": result.total,
            "num_returned": result.returned,
            "num_correct": result.correct,
        }
        for true, row in zip(CLASSES[axis], counts.tolist(), strict=True):
            values |= {
                f"{true}_called_{called}": number for called, number in zip(CLASSES[axis], row, strict=True)
            }
        chance = dict.fromkeys(("accuracy_all", "accuracy_returned"), result.majority)
        official = result.total == OFFICIAL_TEST_CLIPS
        rows += _rows(name, "affect", axis, values, chance, official=official)
        notices += _missing(name, axis, result)
        confusions.append(Confusion(name, axis, counts))
    return Scored(pd.DataFrame(rows, columns=list(COLUMNS)), tuple(notices), confusions=tuple(confusions))


def _missing(name: str, axis: Axis, result: Accuracy) -> list[str]:
    notices = []
    if result.returned < result.total:
        notices.append(
            f"run {name}, {axis}: {result.returned} of {result.total} clips returned, so none is official: "
            "accuracy_all counts missing ones as wrong, accuracy_returned leaves them out"
        )
    if result.unknown:
        notices.append(f"run {name}, {axis}: {result.unknown} clips have no known class; they count nowhere")
    return notices


def score_run(
    name: str, run: "Mapping[str, Mapping[str, float]] | Calls", clips: Sequence[Annotated], *, double: bool
) -> Scored:
    """Score a run of either subtask, as its file was read, against the truth's test clips.

    Raises
    ------
    TaskError
        The truth lacks the labels, or the run the topic.
    """
    wanted = scored_clips(clips)
    if set(run) == set(AXES):
        calls: Any = run
        return score_affect(name, calls, wanted)
    judged = violence_qrels(wanted)
    if not judged:
        raise TaskError("no clip of the truth has a violence label: there is nothing to score against")
    topics: Any = run
    return score_violence(name, topics, {TOPIC: judged}, double=double)


def together(scored: Sequence[Scored]) -> Scored:
    """Combine the results of several runs.

    Raises
    ------
    TaskError
        Two runs have the same name.
    """
    named = [name for result in scored for name in result.table["run"].unique()]
    twice = next((name for name in named if named.count(name) > 1), None)
    if twice is not None:
        raise TaskError(f"two runs are named {twice}: rename one, or score them apart")
    return Scored(
        pd.concat([result.table for result in scored], ignore_index=True),
        tuple(notice for result in scored for notice in result.notices),
        tuple(curve for result in scored for curve in result.curves),
        tuple(matrix for result in scored for matrix in result.confusions),
    )


def _rows(
    name: str,
    subtask: str,
    on: str,
    values: Mapping[str, float],
    chance: Mapping[str, float],
    *,
    official: bool,
) -> list[tuple[object, ...]]:
    return [
        (
            name,
            subtask,
            on,
            measure,
            float(value),
            chance.get(measure, NAN),
            PUBLISHED.get((on, measure), (NAN, ""))[0] if official else NAN,
        )
        for measure, value in values.items()
    ]
