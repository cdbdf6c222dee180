"""Import the annotations of ObyGaze12 (Tores et al., CVPR 2024): 1,914 MovieGraphs clips of 12 films."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import obygaze_features.manifest as manifests
from obygaze_features.arguments import checked
from obygaze_features.errors import ManifestError
from obygaze_studies.obygaze12.printed_values import PUBLISHED

CODEBOOK: manifests.Codebook = manifests.builtin_codebook("obygaze12")

ANNOTATIONS: Mapping[str, Any] = PUBLISHED["annotations"]
"""The released file of annotations: its name, its columns, and our names of those that are kept as extras."""

Split = Mapping[str, Any]
"""A released split file: its `path`, and in `meaning` label -> the levels that the label stands for."""


@checked
def import_obygaze12(source: Path, root: Path, videos: Path | None = None) -> manifests.Imported:
    """Read ObyGaze12's annotations, and its split files if `source` is the folder that holds them.

    Each clip has the year and the genres of its film, from the paper's Table 3, in the columns `year` and
    `genres`.

    Parameters
    ----------
    source
        The file of annotations (CSV), or its folder. In a folder the split files are read too: each becomes
        an extra column with the clips' folds, empty for the clips that the file lacks.
    root
        Folder that the manifest will lie in.
    videos
        Folder of the clips' video files; without it videos are bare file names, beside the manifest.

    Raises
    ------
    ManifestError
        Naming file, line and column, if a row is broken or a split file contradicts the annotations.
    """
    path = manifests.file_in(source, (ANNOTATIONS["file"],))
    table = manifests.read_table(path, needed=ANNOTATIONS["columns"])
    collected = manifests.Collected(table.problems, "id")
    for row in table.checked():
        collected.add(_clip(row, table.problems, root, videos), row.line)
    clips = collected.clips

    notices = _notices_on_lines(table.rows, clips)
    if videos:
        notices.append(manifests.videos_found(clips, root, videos))
    if source.is_dir():
        clips, notices_on_folds = _with_fold_columns(clips, source)
        notices += notices_on_folds

    return manifests.Imported(manifests.Manifest(tuple(clips), root, CODEBOOK), tuple(notices))


def _notices_on_lines(rows: Iterable[manifests.Row], clips: Iterable[manifests.Clip]) -> list[str]:
    """Say how many lines are empty, and how many clips have no video."""
    notices = []
    n_empty = sum(row.is_empty for row in rows)
    if n_empty:
        notices.append(f"left out {manifests.counted(n_empty, 'line')} of empty cells")
    n_without_video = sum(not clip.video for clip in clips)
    if n_without_video:
        clips_have = manifests.counted(n_without_video, "clip has", "clips have")
        notices.append(f"{clips_have} no video_name: no video is known for them")
    return notices


@checked
def is_obygaze12(manifest: manifests.Manifest) -> bool:
    """Return whether a manifest is of ObyGaze12: its codebook and its twelve films, no more and no fewer."""
    has_its_codebook = manifest.codebook.name == CODEBOOK.name
    has_its_films = set(manifest.movies) == set(PUBLISHED["films"])
    return has_its_codebook and has_its_films


def _clip(
    row: manifests.Row, problems: manifests.Problems, root: Path, videos: Path | None
) -> manifests.Clip | None:
    """Make a clip of a row of the annotations; None if the row is broken.

    Each step may find a problem. `problems.attempt(line, column, function, ...)` calls the function, and if
    it raises an error, adds the error to the problems and returns None.

    Parameters
    ----------
    row
        The row.
    problems
        The list to which the row's problems are added. All of them are reported together.
    root
        Folder of the manifest.
    videos
        Folder of the clips' video files; without it, videos are bare file names.
    """
    n_problems_before = len(problems.messages)
    cells = row.cells
    level = problems.attempt(row.line, "label", CODEBOOK.level_spelled, cells["label"])
    concepts = problems.attempt(row.line, "concepts", manifests.concept_list, cells["concepts"], CODEBOOK)
    if not cells["id"].startswith(f"{cells['movie']}-"):
        problems.add(row.line, f"{cells['id']!r} does not begin with the movie {cells['movie']!r}", "id")
    has_new_problems = len(problems.messages) > n_problems_before
    if has_new_problems:
        return None

    video = cells["video_name"]
    if video and videos:
        video = manifests.stored_path(videos / video, root)

    # Further columns: of the annotations, under our names, and year and genres from the paper's Table 3.
    extras = {ours: cells[theirs] for ours, theirs in ANNOTATIONS["extras"].items()}
    film = PUBLISHED["films"].get(cells["movie"], {})  # empty for a film that Table 3 does not list
    extras |= {name: film.get(name, "") for name in ("year", "genres")}

    return problems.attempt(
        row.line,
        "",  # the error names the column
        manifests.Clip,
        clip_id=cells["id"],
        movie=cells["movie"],
        video=video,
        level=level,
        concepts=concepts or (),
        extras=extras,
    )


def _with_fold_columns(clips: list[manifests.Clip], folder: Path) -> tuple[list[manifests.Clip], list[str]]:
    """Add to the clips a column of folds for each split file in the folder.

    Returns
    -------
    clips, notices
        The clips with their folds; for each split file, how many clips have a fold, or that it is missing.
    """
    notices = []
    by_id = {clip.clip_id: clip for clip in clips}
    for column, split in PUBLISHED["splits"].items():
        path = folder / split["path"]
        if not path.is_file():
            notices.append(f"no {split['path']}: no column {column}")
            continue

        fold_of_clip = _read_split_file(path, split, by_id)
        clips_with_fold = []
        for clip in clips:
            fold = fold_of_clip.get(clip.clip_id, "")
            clips_with_fold.append(replace(clip, extras={**clip.extras, column: fold}))
        clips = clips_with_fold
        notices.append(f"{column}: the folds of {manifests.counted(len(fold_of_clip), 'clip')}")
    return clips, notices


def _read_split_file(path: Path, split: Split, clips: Mapping[str, manifests.Clip]) -> dict[str, str]:
    """Read a split file: clip id -> its fold.

    The file's columns `label` and `reason` (the concepts) must agree with the annotations.

    Raises
    ------
    ManifestError
        A clip is not in the annotations or is listed twice, or its label or concepts contradict them.
    """
    table = manifests.read_table(path, needed=("id", "label", "reason", "fold"), named=False)
    problems = table.problems
    fold_of_clip: dict[str, str] = {}
    for row in table.checked():
        clip_id = row.cells["id"]
        clip = clips.get(clip_id)
        if clip is None:
            problems.add(row.line, f"clip {clip_id!r} is not in the annotations", "id")
            continue
        if clip_id in fold_of_clip:
            problems.add(row.line, f"clip {clip_id!r} is there twice", "id")

        # `attempt` calls a function, and notes the error that it raises as a problem of this line.
        fold = problems.attempt(row.line, "fold", manifests.whole_number, row.cells["fold"])
        problems.attempt(row.line, "label", _check_label, row.cells["label"], split, clip)
        problems.attempt(row.line, "reason", _check_concepts, row.cells["reason"], clip)
        fold_of_clip[clip_id] = str(fold)
    return fold_of_clip


def _check_label(label: str, split: Split, clip: manifests.Clip) -> None:
    """Raise a ManifestError if a split file's label is unknown, or does not mean the clip's level.

    A split file has labels of its own, each of which stands for some levels (``split["meaning"]``).
    """
    if label not in split["meaning"]:
        raise ManifestError(f"unknown label {label!r} (expected {', '.join(split['meaning'])})")
    if clip.level not in split["meaning"][label]:
        raise ManifestError(f"clip {clip.clip_id!r} is {label!r} here and {clip.level} in the annotations")


def _check_concepts(concepts_cell: str, clip: manifests.Clip) -> None:
    """Check that a split file lists the same visual concepts of a clip as the annotations.

    A split file repeats the concepts, so that one that was made from other annotations is noticed. Only
    visual concepts are compared, in any order.

    Parameters
    ----------
    concepts_cell
        The list of concepts in the split file, from its column `reason`.
    clip
        The clip as the annotations have it.

    Raises
    ------
    ManifestError
        The visual concepts differ, or the list names a concept that the codebook does not have.
    """
    concepts = manifests.concept_list(concepts_cell, CODEBOOK)
    in_split_file = frozenset(CODEBOOK.visual(concepts))
    in_annotations = frozenset(CODEBOOK.visual(clip.concepts))
    if in_split_file != in_annotations:
        raise ManifestError(
            f"clip {clip.clip_id!r} has {sorted(in_split_file)} here and {sorted(in_annotations)} in the "
            "annotations"
        )
