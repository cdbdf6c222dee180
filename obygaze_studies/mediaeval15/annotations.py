"""Read the annotations of each clip: movie, side of the split, three labels."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from obygaze_features.manifest import Manifest, Problems, read_table
from obygaze_studies.errors import TaskError
from obygaze_studies.mediaeval15.labels import AXES, Axis, read_class

COLUMNS = ("split", *AXES, "violence")
"""Columns that are read, beside the clip's id (`clip`, or `clip_id` in a manifest) and `movie`."""

SPLITS = ("dev", "test", "")


@dataclass(frozen=True, slots=True)
class Annotated:
    """A clip as the organisers describe it.

    Attributes
    ----------
    clip_id, movie
        `movie` is "" where the file has no such column.
    split
        "dev", "test", or "" where the file does not say.
    classes
        The class of each axis that is known.
    violent
        None where unknown.
    """

    clip_id: str
    movie: str
    split: str
    classes: Mapping[Axis, str]
    violent: bool | None


def annotated(clip_id: str, movie: str, cells: Mapping[str, str]) -> Annotated:
    """Read one clip's cells; a column that is absent is unknown.

    Raises
    ------
    TaskError
        Names the column whose cell can't be read.
    """
    split = cells.get("split", "")
    if split not in SPLITS:
        raise TaskError(f"split {split!r} is neither dev nor test")
    violence = cells.get("violence", "")
    if violence not in {"0", "1", ""}:
        raise TaskError(f"violence {violence!r} is neither 0 nor 1; leave it empty if unknown")
    classes: dict[Axis, str] = {}
    for axis in AXES:
        try:
            found = read_class(cells.get(axis, ""), axis)
        except TaskError as error:
            raise TaskError(f"column {axis}: {error}") from None
        if found is not None:
            classes[axis] = found
    return Annotated(clip_id, movie, split, classes, None if not violence else violence == "1")


def read_annotations(path: Path) -> tuple[Annotated, ...]:
    """Read a table with a column clip, or a manifest; valence and arousal are classes or scores.

    Raises
    ------
    ManifestError, TaskError
        Naming file, line and column; or there is no column of labels, or a clip twice.
    """
    table = read_table(path, needed=())
    key = next((name for name in ("clip", "clip_id") if name in table.columns), None)
    if key is None or not {*AXES, "violence"} & set(table.columns):
        raise TaskError(
            f"{path}: expected a column clip (or clip_id) and valence, arousal or violence; "
            f"found {', '.join(table.columns)}"
        )
    problems = Problems(path)
    lines: dict[str, int] = {}
    clips = []
    for row in table.rows:
        clip_id = row.cells[key]
        if not clip_id:
            problems.add(row.line, "is empty", key)
        elif lines.setdefault(clip_id, row.line) != row.line:
            problems.add(row.line, f"clip {clip_id!r} is already on line {lines[clip_id]}", key)
        try:
            clips.append(annotated(clip_id, row.cells.get("movie", ""), row.cells))
        except TaskError as error:
            problems.add(row.line, str(error))
    problems.refuse()
    return tuple(clips)


def of_manifest(manifest: Manifest) -> tuple[Annotated, ...]:
    """Read the extra columns of a manifest.

    Raises
    ------
    TaskError
        It has no column split, or a cell can't be read; names the clip.
    """
    if not len(manifest) or "split" not in manifest.clips[0].extras:
        raise TaskError(
            "the manifest has no column split that says which clips are dev and which test; "
            "make it with: obygaze manifest import mediaeval15"
        )
    clips = []
    for clip in manifest:
        try:
            clips.append(annotated(clip.clip_id, clip.movie, clip.extras))
        except TaskError as error:
            raise TaskError(f"clip {clip.clip_id!r}: {error}") from None
    return tuple(clips)


def scored_clips(clips: Sequence[Annotated]) -> tuple[Annotated, ...]:
    """Return the test clips, or all where no clip is said to be one."""
    return tuple(clip for clip in clips if clip.split == "test") or tuple(clips)


def leaking_movies(clips: Iterable[Annotated]) -> tuple[str, ...]:
    """Name the movies that have clips in dev and in test, sorted."""
    sides: dict[str, set[str]] = {}
    for clip in clips:
        if clip.movie and clip.split:
            sides.setdefault(clip.movie, set()).add(clip.split)
    return tuple(sorted(movie for movie, splits in sides.items() if len(splits) > 1))


def refuse_leak(clips: Sequence[Annotated]) -> None:
    """Refuse a split with a movie on both sides.

    Raises
    ------
    TaskError
        Names the first such movie and counts the others.
    """
    leaking = leaking_movies(clips)
    if leaking:
        more = f" and {len(leaking) - 1} more" if leaking[1:] else ""
        raise TaskError(f"the split leaks: movie {leaking[0]!r}{more} has clips in dev and in test")


def true_classes(clips: Iterable[Annotated], axis: Axis) -> dict[str, str]:
    """Return the known classes of an axis by clip id."""
    return {clip.clip_id: clip.classes[axis] for clip in clips if axis in clip.classes}


def violence_qrels(clips: Iterable[Annotated]) -> dict[str, int]:
    """Return the known violence labels by clip id, as trec_eval's relevances."""
    return {clip.clip_id: int(clip.violent) for clip in clips if clip.violent is not None}
