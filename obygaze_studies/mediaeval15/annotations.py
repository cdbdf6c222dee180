"""Read annotations of clips, and turn scores into classes of each axis (Sjöberg et al. 2015, section 4)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from obygaze_features.arguments import checked
from obygaze_features.manifest import Manifest, same_films
from obygaze_features.options import Answer
from obygaze_studies.audit_common.findings import write_rows
from obygaze_studies.audit_common.inputs import Row, read_items, read_rows
from obygaze_studies.errors import TaskError, regarding

Axis = Literal["valence", "arousal"]

AXES: tuple[Axis, ...] = ("valence", "arousal")

CLASSES: Mapping[Axis, tuple[str, str, str]] = {
    "valence": ("negative", "neutral", "positive"),
    "arousal": ("calm", "neutral", "active"),
}
"""The classes of each axis, from low scores to high."""

NEUTRAL_LIMIT = 0.15
"""Scores from -0.15 to 0.15, both included, are neutral ("smaller than", "higher than" in the paper)."""

SPLITS = ("dev", "test", "")
"""Allowed values of the column split."""

VIOLENT_OF_CELL: Mapping[str, bool | None] = {"0": False, "1": True, "": None}
"""Allowed cell of the column violence -> whether the clip is violent; None if that is unknown."""

PIVOT_CHOICES = {"axis": AXES, "pivot": ("low", "high"), "above": ("0", "1")}
"""Column of a table of pivot judgements -> its allowed values."""

N_JUDGEMENTS = 3
"""Number of annotators who compared each new clip with each pivot; the majority counts."""


@checked
def discretise(score: float, axis: Axis) -> str:
    """Return the class of a score in [-1, 1] on an axis; scores from -0.15 to 0.15 are neutral.

    Raises
    ------
    TaskError
        The score is not a number in [-1, 1].
    """
    if not -1.0 <= score <= 1.0:
        raise TaskError(f"{axis} score {score} is not in [-1, 1]")
    low, middle, high = CLASSES[axis]
    if score < -NEUTRAL_LIMIT:
        return low
    if score > NEUTRAL_LIMIT:
        return high
    return middle


def read_class(cell: str, axis: Axis) -> str:
    """Read a class name, or a score in [-1, 1] as its class; "" if the cell is empty.

    Raises
    ------
    TaskError
        The cell is anything else.
    """
    if not cell or cell in CLASSES[axis]:
        return cell
    try:
        return discretise(float(cell), axis)
    except ValueError:
        names = ", ".join(CLASSES[axis])
        raise TaskError(f"{axis} {cell!r} is neither {names} nor a score in [-1, 1]") from None


@dataclass(frozen=True, slots=True)
class Annotated:
    """A clip with its annotations.

    Attributes
    ----------
    clip_id
        The clip.
    movie
        Its movie; "" if the file has no such column.
    split
        "dev", "test", or "" if the file does not say it.
    classes
        Axis -> class, for the axes whose class is known.
    violent
        Whether it is violent; None if unknown.
    """

    clip_id: str
    movie: str
    split: str
    classes: Mapping[Axis, str]
    violent: bool | None


def make_annotated(clip_id: str, cells: Mapping[str, str]) -> Annotated:
    """Make an annotated clip of the cells of a row.

    Parameters
    ----------
    clip_id
        The clip.
    cells
        Column -> cell. What an absent column or an empty cell would say is unknown.

    Raises
    ------
    TaskError
        Naming the clip and the column: its cell cannot be read.
    """
    with regarding(TaskError, f"clip {clip_id!r}"):
        split = _read_choice(cells, "split", SPLITS)
        violence = _read_choice(cells, "violence", tuple(VIOLENT_OF_CELL))
        classes: dict[Axis, str] = {}
        for axis in AXES:
            name = read_class(cells.get(axis, ""), axis)
            if name:
                classes[axis] = name
    return Annotated(
        clip_id=clip_id,
        movie=cells.get("movie", ""),
        split=split,
        classes=classes,
        violent=VIOLENT_OF_CELL[violence],
    )


def _read_choice(cells: Mapping[str, str], column: str, choices: Sequence[str]) -> str:
    """Return the cell of a column, after checking that it is one of some choices.

    It is "", which must be one of the choices, if the row has no such column.
    """
    cell = cells.get(column, "")
    if cell not in choices:
        expected = " nor ".join(choice for choice in choices if choice)
        raise TaskError(f"{column} {cell!r} is neither {expected}")
    return cell


@checked
def read_annotations(path: Path) -> tuple[Annotated, ...]:
    """Read a table with a column clip, or a manifest; valence and arousal are classes or scores.

    Raises
    ------
    ManifestError, AuditError, TaskError
        Naming file, clip and column: a cell cannot be read, a clip comes twice, or there is no column of
        labels.
    """
    rows = read_items(path, "clip", "clip_id")  # clip id -> its cells; the id is in one of these columns
    first_row = next(iter(rows.values()))
    if not any(column in first_row for column in (*AXES, "violence")):
        raise TaskError(f"{path}: expected a column valence, arousal or violence")
    with regarding(TaskError, str(path)):
        return tuple(make_annotated(clip_id, row) for clip_id, row in rows.items())


@checked
def of_manifest(manifest: Manifest) -> tuple[Annotated, ...]:
    """Read the annotations of a manifest from its extra columns.

    Raises
    ------
    TaskError
        The manifest has no column split, or a cell cannot be read; names the clip.
    """
    # All clips of a manifest have the same extra columns.
    if not len(manifest) or "split" not in manifest.clips[0].extras:
        raise TaskError(
            "the manifest has no column split that says which clips are dev and which test; "
            "make it with: obygaze manifest import mediaeval15"
        )
    return tuple(make_annotated(clip.clip_id, {**clip.extras, "movie": clip.movie}) for clip in manifest)


def scored_clips(clips: Sequence[Annotated]) -> tuple[Annotated, ...]:
    """Return the test clips, or all clips if none is marked as a test clip."""
    test_clips = tuple(clip for clip in clips if clip.split == "test")
    return test_clips or tuple(clips)


def leaking_movies(clips: Iterable[Annotated]) -> tuple[str, ...]:
    """List the movies that have clips in dev and in test, sorted.

    Such a movie leaks: a model would be tested on films that it was trained on. It may be spelt in several
    ways, of which the first is listed. Clips whose movie or split is unknown are skipped.
    """
    placed_clips = [clip for clip in clips if clip.movie and clip.split]
    first_spellings = dict(same_films(dict.fromkeys(clip.movie for clip in placed_clips)))
    splits_of_movie: dict[str, set[str]] = {}
    for clip in placed_clips:
        movie = first_spellings.get(clip.movie, clip.movie)
        splits_of_movie.setdefault(movie, set()).add(clip.split)
    return tuple(sorted(movie for movie, splits in splits_of_movie.items() if len(splits) > 1))


def refuse_leak(clips: Sequence[Annotated]) -> None:
    """Check that no movie has clips in dev and in test.

    Raises
    ------
    TaskError
        Naming the first such movie and the number of others.
    """
    leaking = leaking_movies(clips)
    if leaking:
        n_others = len(leaking) - 1
        others = f" and {n_others} more" if n_others else ""
        raise TaskError(f"the split leaks: movie {leaking[0]!r}{others} has clips in dev and in test")


def true_classes(clips: Iterable[Annotated], axis: Axis) -> dict[str, str]:
    """Return the known classes of an axis: clip id -> class."""
    return {clip.clip_id: clip.classes[axis] for clip in clips if axis in clip.classes}


def violence_qrels(clips: Iterable[Annotated]) -> dict[str, int]:
    """Return the known violence labels as relevances of trec_eval ("qrels"): clip id -> 1 if violent, else 0.

    Clips of which it is unknown are left out.
    """
    return {clip.clip_id: int(clip.violent) for clip in clips if clip.violent is not None}


@checked
def pivot_class(low: Sequence[bool], high: Sequence[bool], axis: Axis) -> str | None:
    """Return the class of a clip that was compared with the two pivots of an axis.

    A pivot is a clip at the border of two classes. Three annotators say whether a clip is above it, and the
    majority counts. A clip below the low pivot gets the lowest class, one above the high pivot the highest.

    Parameters
    ----------
    low
        Three judgements of whether the clip is above the pivot near -0.15.
    high
        Three judgements of whether it is above the pivot near 0.15.
    axis
        The axis, which gives the classes.

    Returns
    -------
    str or None
        None if the majorities contradict each other (above the high pivot, but not above the low one). The
        paper says nothing about such clips; here they are left out.

    Raises
    ------
    TaskError
        There are not three judgements of each pivot.
    """
    for pivot, judgements in (("low", low), ("high", high)):
        if len(judgements) != N_JUDGEMENTS:
            raise TaskError(
                f"expected {N_JUDGEMENTS} judgements of the {pivot} {axis} pivot, found {len(judgements)}"
            )
    above_low = 2 * sum(low) > N_JUDGEMENTS  # by the majority
    above_high = 2 * sum(high) > N_JUDGEMENTS
    if above_high and not above_low:
        return None
    lowest, middle, highest = CLASSES[axis]
    if above_high:
        return highest
    return middle if above_low else lowest


Judgements = dict[tuple[str, str, str], list[bool]]
"""Clip, axis and pivot -> each annotator's judgement of whether the clip is above the pivot."""


def read_judgements(path: Path) -> Judgements:
    """Read a table of pivot judgements: clip, axis (valence, arousal), pivot (low, high), above (0, 1).

    Returns
    -------
    dict
        (clip, axis, pivot) -> the judgements of this clip, in the order of the file: True for above.

    Raises
    ------
    ManifestError, AuditError
        Naming file, line and column.
    """
    judgements: Judgements = {}
    for row in read_rows(path, ["clip", *PIVOT_CHOICES], choices=PIVOT_CHOICES):
        key = (row["clip"], row["axis"], row["pivot"])
        judgements.setdefault(key, []).append(row["above"] == "1")
    return judgements


def make_labels(scores: Path, pivots: Path | None = None) -> tuple[list[Row], dict[str, Axis]]:
    """Replace the scores of clips by classes, and fill empty cells from pivot judgements.

    Parameters
    ----------
    scores
        A table with the columns clip, valence, arousal; further columns are kept.
    pivots
        A table of judgements of clips without scores, as `read_judgements` takes it.

    Returns
    -------
    rows
        The labelled clips as rows of cells, in the order of the file.
    rejected
        Clip -> axis, for the clips that are left out because their judgements on the axis contradict each
        other.

    Raises
    ------
    ManifestError, AuditError, TaskError
        A cell cannot be read; a clip comes twice; a judged clip is not in the table, has a score as well, or
        does not have three judgements of each pivot.
    """
    rows = read_rows(scores, ["clip"], columns=AXES, unique=["clip"])
    judgements = read_judgements(pivots) if pivots else {}
    judged_clips = {clip_id for clip_id, _, _ in judgements}
    not_in_table = sorted(judged_clips - {row["clip"] for row in rows})
    if not_in_table:
        raise TaskError(f"{pivots}: clip {not_in_table[0]!r} is judged but not in {scores}")
    labelled: list[dict[str, Any]] = []
    with regarding(TaskError, str(scores)):
        for row in rows:
            classes: dict[str, str | None] = {axis: _class_of_clip(row, axis, judgements) for axis in AXES}
            labelled.append({**row, **classes})
    rejected = _rejected_clips(labelled)
    return [row for row in labelled if row["clip"] not in rejected], rejected


def _rejected_clips(labelled: Sequence[Mapping[str, Any]]) -> dict[str, Axis]:
    """Return the clips whose judgements contradict each other: clip -> axis.

    The clips that are rejected on arousal come first, then those on valence alone. A clip that is rejected on
    both is listed with valence.

    Parameters
    ----------
    labelled
        The clips as rows, with None as the class on such an axis.
    """
    rejected: dict[str, Axis] = {}
    axes: tuple[Axis, ...] = ("arousal", "valence")
    for axis in axes:
        for row in labelled:
            if row[axis] is None:
                rejected[row["clip"]] = axis  # keeps the place of a clip that has one, and changes its axis
    return rejected


def write_labels(scores: Path, out: Path, *, pivots: Path | None = None, force: bool = False) -> Answer:
    """Write the clips with classes in place of scores to a file, and report what is missing.

    The answer counts the clips without labels, and names those that are left out because their judgements
    contradict each other.

    Parameters
    ----------
    scores, pivots
        As `make_labels` takes them.
    out
        The file to write.
    force
        Whether an existing file is replaced.
    """
    rows, rejected = make_labels(scores, pivots)
    columns = list(rows[0]) if rows else ["clip", *AXES]
    cells = [[row[name] for name in columns] for row in rows]
    sentence = write_rows([columns, *cells], out, "clips", force=force)
    unlabelled = {}
    for axis in AXES:
        unlabelled[axis] = sum(row[axis] == "" for row in rows)
    counts = ", ".join(f"{n_clips} without {axis}" for axis, n_clips in unlabelled.items())
    return Answer(
        {"file": str(out), "clips": len(rows), "unlabelled": unlabelled, "left_out": list(rejected)},
        text=f"{sentence} ({counts}), {len(rejected)} left out",
        remarks=[
            f"left out {clip_id}: its judgements on {axis} contradict each other"
            for clip_id, axis in rejected.items()
        ],
    )


def _class_of_clip(row: Row, axis: Axis, judgements: Judgements) -> str | None:
    """Return the class of a clip on an axis, from its score or from judgements.

    It is "" (unknown) if there are neither, and None if the judgements contradict each other.

    Parameters
    ----------
    row
        The clip, with a score, a class or nothing in the column of the axis.
    axis
        "valence" or "arousal".
    judgements
        Clip, axis and pivot ("low" or "high") -> for each annotator, whether the clip is above the pivot.

    Raises
    ------
    TaskError
        The clip has a score and judgements, or not three judgements of each pivot.
    """
    low = judgements.get((row["clip"], axis, "low"), [])
    high = judgements.get((row["clip"], axis, "high"), [])
    is_judged = bool(low or high)
    with regarding(TaskError, f"clip {row['clip']!r}"):
        class_by_score = read_class(row[axis], axis)
        if not is_judged:
            return class_by_score
        if class_by_score:
            raise TaskError(f"it has {axis} {row[axis]!r} and pivot judgements as well")
        return pivot_class(low, high, axis)
