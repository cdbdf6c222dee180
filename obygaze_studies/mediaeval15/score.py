"""Score runs: official measures, chance levels, published results; tables and figures of them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from obygaze_features.errors import ManifestError
from obygaze_models.evaluation import NAN, expected_average_precision
from obygaze_models.report import NOTHING, Column, Picture, Report, block, number
from obygaze_studies.errors import TaskError
from obygaze_studies.mediaeval15.annotations import (
    AXES,
    CLASSES,
    Annotated,
    Axis,
    leaking_movies,
    scored_clips,
    true_classes,
    violence_qrels,
)
from obygaze_studies.mediaeval15.metrics import (
    accuracy,
    confusion,
    measures,
    precision_recall,
    tie_share,
)
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

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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

KEYS = ("run", "subtask", "on", "measure", "value", "chance", "published")
"""Columns of the data, a row a measure; `chance` is E[AP] for `map` and the share of the most frequent class
for accuracies, `published` a participant's number."""

OFFICIAL = ("map", "accuracy_all")

SHOWN = ("map", "P_10", "P_100", "recall_100", "Rprec", "accuracy_all", "accuracy_returned", "coverage")
"""Measures of the printed table; the CSV has all."""


def _known(value: float, digits: int = 3) -> str:
    return NOTHING if math.isnan(value) else number(value, digits)


COLUMNS: Sequence[Column] = (
    *((name, name, str) for name in ("run", "on", "measure")),
    ("value", "value", partial(number, digits=4)),
    ("chance", "chance", partial(_known, digits=4)),
    ("published", "published", _known),
)

LOOKS = (
    *(("#4477aa", "o", "-"), ("#ee6677", "s", "--"), ("#228833", "^", "-.")),
    *(("#ccbb44", "D", "-"), ("#66ccee", "v", "--"), ("#aa3377", "P", "-.")),
)
"""Colour, marker and line: told apart without colours too; used again from the seventh run on."""


class PrecisionRecall(NamedTuple):
    """A run's precision at every recall that it reaches, and the share of relevant clips."""

    recall: NDArray[np.float64]
    precision: NDArray[np.float64]
    prevalence: float


@dataclass(eq=False)
class Scored:
    """Scores of runs, added one after the other.

    Attributes
    ----------
    rows
        Of the data.
    notices
        Notes for readers: ties, missing clips, clips without a known class.
    curves, confusions
        For the figures, by run; how many clips of each true class (rows) it calls each class (columns) of an
        axis.
    """

    rows: list[dict[str, object]] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    curves: dict[str, PrecisionRecall] = field(default_factory=dict)
    confusions: dict[tuple[str, Axis], NDArray[np.int64]] = field(default_factory=dict)

    def add(self, name: str, run: Any, clips: Sequence[Annotated], *, double: bool) -> None:
        """Score a run of either subtask, as its file was read, against the truth's test clips.

        Raises
        ------
        TaskError
            The truth lacks the labels, the run the topic, or a score is not finite.
        """
        wanted = scored_clips(clips)
        if set(run) == set(AXES):
            for axis in AXES:
                self._add_axis(name, axis, run[axis], true_classes(wanted, axis))
            return
        judged = violence_qrels(wanted)
        if not judged:
            raise TaskError("no clip of the truth has a violence label: there is nothing to score against")
        if TOPIC not in run:
            raise TaskError(f"run {name}: no topic {TOPIC}, but {', '.join(sorted(run))}")
        scores: Mapping[str, float] = run[TOPIC]
        result = measures(scores, judged, double=double)
        n_relevant, n = int(result["num_rel"]), len(judged)
        chance = {"map": expected_average_precision(n, n_relevant)}
        notices = _said(scores, judged, n_relevant, double)
        self._add((name, "violence", TOPIC), result, chance, notices, n)
        curve = precision_recall(scores, judged, double=double)
        self.curves[name] = PrecisionRecall(*curve, n_relevant / n)

    def _add_axis(self, name: str, axis: Axis, calls: Mapping[str, str], truth: Mapping[str, str]) -> None:
        """Score the calls of an axis: `accuracy_all` is official where `coverage` is 1."""
        if not truth:
            raise TaskError(f"no clip of the truth has a class of {axis}: there is nothing to score against")
        result, counts = accuracy(calls, truth), confusion(calls, truth, CLASSES[axis])
        values: dict[str, float] = {
            "accuracy_all": result.accuracy_all,
            "accuracy_returned": result.accuracy_returned,
            "coverage": result.coverage,
            "num_clips": result.total,
            "num_returned": result.returned,
            "num_correct": result.correct,
        }
        for true, row in zip(CLASSES[axis], counts.tolist(), strict=True):
            values |= {f"{true}_called_{called}": n for called, n in zip(CLASSES[axis], row, strict=True)}
        chance = dict.fromkeys(("accuracy_all", "accuracy_returned"), result.majority)
        notices = []
        if result.returned < result.total:
            notices.append(
                f"{result.returned} of {result.total} clips returned, so none is official: "
                "accuracy_all counts missing ones as wrong, accuracy_returned leaves them out"
            )
        if result.unknown:
            notices.append(f"{result.unknown} clips have no known class; they count nowhere")
        self._add((name, "affect", axis), values, chance, notices, result.total)
        self.confusions[name, axis] = counts

    def _add(
        self,
        about: tuple[str, str, str],
        values: Mapping[str, float],
        chance: Mapping[str, float],
        notices: Sequence[str],
        n_clips: int,
    ) -> None:
        name, _, on = about
        for measure, value in values.items():
            published = PUBLISHED.get((on, measure), (NAN,))[0] if n_clips == OFFICIAL_TEST_CLIPS else NAN
            cells = (*about, measure, float(value), chance.get(measure, NAN), published)
            self.rows.append(dict(zip(KEYS, cells, strict=True)))
        self.notices += [f"run {name}, {on}: {notice}" for notice in notices]


def _said(run: Mapping[str, float], judged: Mapping[str, int], n_relevant: int, double: bool) -> list[str]:
    """List what affects AP: no relevant clip, missing or unjudged clips, ties."""
    notices = []
    if not n_relevant:
        notices.append("no relevant clip: every measure is 0")
    if missing := len(judged.keys() - run.keys()):
        notices.append(
            f"{missing} of {len(judged)} judged clips are missing from the run; relevant ones add 0"
        )
    if strange := len(run.keys() - judged.keys()):
        notices.append(f"{strange} clips of the run are not judged; they count as not relevant")
    return [*notices, *_tied(tie_share(run, double=double))]


def _tied(share: float) -> list[str]:
    words = f"{share:.0%} of the clips tie with another; their order, and so AP, follows file names"
    return [words] if share > TIE_WARNING else []


def make_report(scored: Scored, record: Mapping[str, object]) -> Report:
    """Make the report of scored runs: a table, precision and recall, confusion matrices."""
    table, pictures = pd.DataFrame(scored.rows), []
    if scored.curves:
        caption = "Precision and recall; dotted, the share of relevant clips"
        pictures.append(Picture("precision_recall", caption, partial(draw_curves, scored.curves)))
    if scored.confusions:
        caption = "Clips of each true class by the class they are called"
        pictures.append(Picture("confusion", caption, partial(draw_confusions, scored.confusions)))
    notes = [
        "map: average precision as trec_eval computes it, ties by file name; official for violence",
        "accuracy_all: share of all clips called correctly; official for affect where coverage is 1",
        "chance: mean AP over all orders of the clips; accuracy of the most frequent class",
    ]
    shown = table.dropna(subset=["published"])[["on", "measure"]].itertuples(index=False, name=None)
    for on, measure in dict.fromkeys(shown):
        notes.append(f"published {measure} of {on}: {PUBLISHED[on, measure][1]}")
    rows = table[table["measure"].isin(SHOWN)].to_dict(orient="records")
    return Report(
        name="scores",
        title="MediaEval 2015 Affective Impact of Movies",
        notes=(*notes, *scored.notices),
        answers=tuple(
            "{run}, {on}: {measure} {value:.3f} (by chance {chance:.3f})".format_map(row)
            for row in rows
            if row["measure"] in OFFICIAL
        ),
        blocks=(block("Measures", COLUMNS, rows),),
        data=table,
        record=record,
        pictures=tuple(pictures),
    )


def draw_curves(curves: Mapping[str, PrecisionRecall], path: Path) -> None:
    """Draw precision at each relevant clip against recall, and the share of relevant clips, which is chance.

    Parameters
    ----------
    curves
        One a run.
    path
        A .pdf, .png or .svg file.
    """
    from obygaze_studies.figure import GREY, save  # noqa: PLC0415 - matplotlib is slow

    def draw(figure: "Figure") -> None:
        axes = figure.subplots()
        for (name, curve), (colour, marker, line) in zip(curves.items(), cycle(LOOKS), strict=False):
            look: dict[str, Any] = {"color": colour, "linestyle": line, "marker": marker, "markersize": 4}
            every = max(1, len(curve.recall) // 12)
            axes.plot(curve.recall, curve.precision, markevery=every, label=name, **look)
        for share in sorted({curve.prevalence for curve in curves.values()}):
            label = f"share of relevant clips, {share:.3f}"
            axes.axhline(share, color=GREY, linestyle=":", linewidth=1, label=label)
        axes.set(xlim=(0, 1.02), ylim=(0, 1.02), xlabel="recall", ylabel="precision")
        figure.legend(loc="outside upper left")  # above: a perfect run fills the corners

    save(path, (5.0, 4.0 + 0.2 * len(curves)), draw)


def draw_confusions(matrices: Mapping[tuple[str, Axis], NDArray[np.int64]], path: Path) -> None:
    """Draw confusion matrices side by side: counts, shaded by their share of the true class.

    Parameters
    ----------
    matrices
        Of a run and an axis; a panel each, two a row.
    path
        A .pdf, .png or .svg file.
    """
    from obygaze_studies.figure import WIDTH, save  # noqa: PLC0415 - matplotlib is slow

    n_rows = (len(matrices) + 1) // 2

    def draw(figure: "Figure") -> None:
        panels = figure.subplots(n_rows, 2, squeeze=False).ravel()
        for axes in panels[len(matrices) :]:
            axes.set_axis_off()
        for axes, ((name, axis), counts) in zip(panels, matrices.items(), strict=False):
            _draw_matrix(axes, counts, CLASSES[axis])
            axes.set_title(f"{name}, {axis}", loc="left")

    save(path, (WIDTH, 0.4 + 3.1 * n_rows), draw)


def _draw_matrix(axes: "Axes", counts: NDArray[np.int64], names: Sequence[str]) -> None:
    shares = counts / counts.sum(axis=1, keepdims=True).clip(min=1)
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    for (row, column), share in np.ndenumerate(shares):
        ink = "white" if share > 0.5 else "black"
        axes.text(column, row, f"{counts[row, column]:,}\n{share:.0%}", ha="center", va="center", color=ink)
    axes.set_xticks(range(len(names)), names)
    axes.set_yticks(range(len(names)), names)
    axes.set(xlabel="called class", ylabel="true class (clips, share of the class)")
    axes.spines[:].set_visible(True)


# --- checks of a folder of runs
# ---------------------------------------------------------------------------
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
    problem = partial(RunFinding, "problem")
    findings = [
        problem("split", f"movie {movie!r} has clips in dev and in test") for movie in leaking_movies(clips)
    ]
    runs = [_check_run(file, clips, findings) for file in find_runs(folder)]
    for subtask in SUBTASKS:
        here = [run for run in runs if run.subtask == subtask]
        if len(here) > MOST_RUNS:
            findings.append(problem(subtask, f"{len(here)} runs; at most {MOST_RUNS} may be submitted"))
        if here and not any(run.external_data is False for run in here):
            findings.append(problem(subtask, "no run without external data; at least one is required"))
    return CheckedFolder(tuple(runs), tuple(findings))


def _check_run(file: RunFile, clips: Sequence[Annotated], findings: list[RunFinding]) -> CheckedRun:
    def note(what: str, severity: Literal["problem", "warning"] = "problem") -> None:
        findings.append(RunFinding(severity, file.path.name, what))

    test = [clip for clip in clips if clip.split == "test"]
    wanted, external = {clip.clip_id for clip in test}, None
    try:
        record = read_record(file.record_path)
        external = record.external_data
        if leaks := sorted({clip.movie for clip in test if clip.movie}.intersection(record.dev_movies)):
            note(f"trained on movie {leaks[0]!r}, which is a test movie ({len(leaks)} of them)")
        if not external and record.pretrained is not False:
            origin = "a pretrained backbone" if record.pretrained else "an unknown origin"
            note(f"its record says external_data false, and that its features are of {origin}")
    except TaskError as error:
        note(str(error))
    try:
        ids, ties = _returned(file)
    except (TaskError, ManifestError) as error:
        note(str(error))
        return CheckedRun(file.subtask, file.name, external, None, None)
    if strange := sorted(ids - wanted):
        note(f"{len(strange)} clips that are no test clips; the first is {strange[0]!r}")
    if missing := sorted(wanted - ids):
        what = f"{len(missing)} of {len(wanted)} test clips are missing; the first is {missing[0]!r}"
        note(what, "warning")
    for tied in _tied(ties):
        note(tied, "warning")
    return CheckedRun(file.subtask, file.name, external, len(ids & wanted) / len(wanted), ties)


def _returned(file: RunFile) -> tuple[set[str], float]:
    """Read a run's clips and its share of ties."""
    if file.subtask == "affect":
        return set(read_affect(file.path)["valence"]), 0.0
    topics = read_trec(file.path)
    if set(topics) != {TOPIC}:
        raise TaskError(f"its topics are {', '.join(sorted(topics))}; expected {TOPIC} alone")
    return set(topics[TOPIC]), tie_share(topics[TOPIC])
