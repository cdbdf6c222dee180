"""Count levels and concepts, as in section 3.4 and Figure 2 of Tores et al., CVPR 2024."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

import obygaze_features.manifest as manifests
from obygaze_features.arguments import checked
from obygaze_features.errors import ManifestError
from obygaze_features.manifest import Clip, Codebook, Manifest
from obygaze_features.screen import table
from obygaze_features.text import counted as number_with_noun
from obygaze_models.report import Column, Picture, Report, block
from obygaze_studies.audit_common.findings import drawn_by, share
from obygaze_studies.obygaze12.corpus import VISUAL_CONCEPTS, refuse_other_codebook
from obygaze_studies.obygaze12.import_annotations import CODEBOOK, is_obygaze12
from obygaze_studies.obygaze12.printed_values import PUBLISHED

PRINTED_COUNTS: Mapping[str, str] = PUBLISHED["counts"]
"""Name of a number -> what sections 3.4 and 4.1, App. 8.2 and Figure 2 print, under label policy `paper`."""


@dataclass(frozen=True, slots=True)
class Statistics:
    """Counts of a manifest's levels and concepts. Shares are among the rows that have a level.

    A row is a clip, or a clip as one of several annotators labelled it.

    Parameters
    ----------
    n_clips
        Number of all clips, with or without a level; one that several annotators labelled is counted once.
    n_rows
        Number of all rows.
    clips
        Level -> number of its rows.
    with_concept
        Level -> concept -> number of the level's rows that have the concept.
    codebook
        The codebook of the manifest.
    """

    n_clips: int
    n_rows: int
    clips: Mapping[str, int]
    with_concept: Mapping[str, Mapping[str, int]]
    codebook: Codebook

    @property
    def unlabelled(self) -> int:
        """The number of rows without a level."""
        return self.n_rows - sum(self.clips.values())

    @property
    def content(self) -> str:
        """How much was counted, in words: "8 clips", or "8 clips, 10 rows of annotators"."""
        clips = number_with_noun(self.n_clips, "clip")
        if self.n_rows == self.n_clips:
            return clips
        return f"{clips}, {number_with_noun(self.n_rows, 'row of annotators', 'rows of annotators')}"

    def share(self, level: str, *among: str) -> float | None:
        """Compute the share of a level among the clips of some levels, by default of all levels."""
        levels = among or tuple(self.clips)
        n_clips = sum(self.clips[level_name] for level_name in levels)
        return _ratio(self.clips[level], n_clips)

    def mean_concepts(self, level: str) -> float | None:
        """Compute the mean number of visual concepts of the clips of a level."""
        return _ratio(self._marks(level), self.clips[level])

    def share_of_clips(self, level: str, concept: str) -> float | None:
        """Compute the share of a level's clips that have a concept."""
        return _ratio(self.with_concept[level][concept], self.clips[level])

    def share_of_marks(self, level: str, concept: str) -> float | None:
        """Compute the share of a concept among all marks of visual concepts at a level, as in Figure 2."""
        return _ratio(self.with_concept[level][concept], self._marks(level))

    def record(self, printed: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Return every count and share as JSON values.

        Parameters
        ----------
        printed
            Name of a number -> what the paper prints for it.
        """
        printed = printed or {}
        numbers = []
        for number in count_table(self):
            entry: dict[str, Any] = {"name": number.name, "ours": number.value}
            if number.name in printed:
                entry["printed"] = printed[number.name]
            numbers.append(entry)
        concepts = {}
        for level in self.codebook.level_names:
            names = self.codebook.concept_names
            concepts[level] = {concept: self._concept_record(level, concept) for concept in names}
        return {
            "clips": self.n_clips,
            "rows": self.n_rows,
            "unlabelled": self.unlabelled,
            "levels": {level: self.clips[level] for level in self.codebook.level_names},
            "numbers": numbers,
            "concepts": concepts,
        }

    def _concept_record(self, level: str, concept: str) -> dict[str, Any]:
        """Return the count and shares of a concept at a level as JSON values."""
        record: dict[str, Any] = {
            "clips": self.with_concept[level][concept],
            "share_of_clips": self.share_of_clips(level, concept),
        }
        if concept in self.codebook.visual_concepts:
            record["share_of_marks"] = self.share_of_marks(level, concept)
        return record

    def _marks(self, level: str) -> int:
        """Count the marks of visual concepts in the clips of a level."""
        return sum(self.with_concept[level][concept] for concept in self.codebook.visual_concepts)


@checked
def statistics(manifest: Manifest) -> Statistics:
    """Count the levels of a manifest's clips, and the concepts at each level."""
    codebook = manifest.codebook
    clips = dict.fromkeys(codebook.level_names, 0)
    with_concept = {level: dict.fromkeys(codebook.concept_names, 0) for level in codebook.level_names}
    for clip in manifest:
        if clip.level is not None:
            clips[clip.level] += 1
            for concept in clip.concepts:
                with_concept[clip.level][concept] += 1
    return Statistics(len(manifest.clips_once), len(manifest), clips, with_concept, codebook)


def clip_table(manifest: Manifest) -> pd.DataFrame:
    """List the clips that have a level, as a table.

    Its columns are clip_id, movie, level, concepts (the visual ones), n_concepts (how many these are), and
    shots: the number of shots, where the manifest's column scene_shots names the clip's first and last shot.
    """
    concepts = [manifest.codebook.visual(clip.concepts) for clip in manifest]
    scene_shots = pd.Series([clip.extras.get("scene_shots", "") for clip in manifest], dtype="str")
    # `ss-4.es-9` is a clip from shot 4 to shot 9. Other texts give NaN.
    shot_numbers = scene_shots.str.extract(r"ss-(\d+)\.es-(\d+)").astype(float)
    first_shot = shot_numbers[0]
    last_shot = shot_numbers[1]
    table = pd.DataFrame(
        {
            "clip_id": [clip.clip_id for clip in manifest],
            "movie": [clip.movie for clip in manifest],
            "level": [clip.level for clip in manifest],
            "concepts": concepts,
            "n_concepts": [len(concepts_of_clip) for concepts_of_clip in concepts],
            "shots": last_shot - first_shot + 1,
        }
    )
    return table[table["level"].notna()]


def by_film(table: pd.DataFrame, values: str, group: str) -> pd.DataFrame:
    """Average a column within each film and group: a row per film, a column per group."""
    return table.pivot_table(values, "movie", group)


@checked
def grouped(manifest: Manifest, column: str) -> dict[str, Manifest]:
    """Group the clips of a manifest by the values of a column.

    Parameters
    ----------
    column
        `annotator`, `movie` or an extra column. A cell may list several values joined by semicolons, as
        `genres` does: the clip is then in several groups. Clips whose cell is empty are in the group "".

    Returns
    -------
    Value of the column -> its clips, sorted by value.

    Raises
    ------
    ManifestError
        If the manifest has no such column, or the column is empty throughout.
    """
    extras = tuple(manifest.clips[0].extras) if len(manifest) else ()
    columns = ("annotator", "movie", *extras)
    if column not in columns:
        raise ManifestError(f"no column {column!r} to group clips by: there are {', '.join(columns)}", column)

    groups: dict[str, list[Clip]] = {}
    for clip in manifest:
        cell: str = clip.extras[column] if column in extras else getattr(clip, column)
        values = [part.strip() for part in cell.split(";")]
        different_values = dict.fromkeys(values)
        for value in different_values:
            groups.setdefault(value, []).append(clip)

    has_empty_cells_only = set(groups) <= {""}
    if has_empty_cells_only:
        raise ManifestError(f"column {column!r} is empty for all clips: nothing to group by", column)
    return {value: manifest.with_clips(groups[value]) for value in sorted(groups)}


def clips_onto(annotations: Manifest, onto: Path | None) -> tuple[Manifest, str]:
    """Return the clips to project annotations onto, and words for them, such as "windows of 4 s".

    They are the clips of the manifest `onto`; without it, windows of the annotated films.
    """
    if onto is not None:
        return manifests.read_manifest(onto), f"the clips of {onto.name}"
    seconds = manifests.DEFAULT_WINDOW_S
    return manifests.windows(annotations, seconds), f"windows of {seconds:g} s"


@dataclass(frozen=True, slots=True)
class Number:
    """One number that describes a corpus.

    Attributes
    ----------
    name
        Name of the number.
    value
        Its value; None if it is undefined.
    style
        Format specification to print it with.
    """

    name: str
    value: float | None
    style: str

    @property
    def formatted(self) -> str:
        """The number, written as the paper writes it."""
        if self.value is None:
            return "undefined"
        return format(self.value, self.style)


@checked
def count_table(counted: Statistics) -> tuple[Number, ...]:
    """List the numbers that section 3.4 and App. 8.2 of the paper give of a corpus, for any codebook.

    They are the share of each level among all clips, and among the clips of the levels that are in a task;
    the share of positives in each task; and the mean number of visual concepts per clip of each level.
    """
    codebook = counted.codebook
    numbers = [Number(f"{level} of all clips", counted.share(level), ".1%") for level in codebook.level_names]

    # The codebook's `labels` are the levels that are in a task.
    in_no_task = [level for level in codebook.level_names if level not in codebook.labels]
    if in_no_task:
        for level in codebook.labels:
            share_in_tasks = counted.share(level, *codebook.labels)
            numbers.append(Number(f"{level} without {_join_names(in_no_task)}", share_in_tasks, ".1%"))

    for task in codebook.tasks:
        levels = [level for level in codebook.level_names if level in task.levels]
        name = f"{_join_names(task.positives)} of {_join_names(levels)}"
        numbers.append(Number(name, _share_of_levels(counted, task.positives, levels), ".1%"))

    if codebook.visual_concepts:
        for level in codebook.level_names:
            mean = counted.mean_concepts(level)
            numbers.append(Number(f"visual concepts per {level} clip", mean, ".2f"))
    return tuple(numbers)


def _share_of_levels(counted: Statistics, levels: Sequence[str], among: Sequence[str]) -> float | None:
    """Compute the share that the clips of some levels have together among those of the levels `among`.

    It is None if these have no clips.
    """
    shares = []
    for level in levels:
        share_of_level = counted.share(level, *among)
        if share_of_level is None:
            return None
        shares.append(share_of_level)
    return sum(shares)


@checked
def printed_count_table(manifest: Manifest) -> Mapping[str, str]:
    """Return the numbers that the paper prints, by their names in `count_table`; none for another corpus.

    Our numbers agree when rounded, except one: the share of S in EN and S is 23.6 %, printed as 23 %.
    """
    return PRINTED_COUNTS if is_obygaze12(manifest) else {}


def as_text(counted: Statistics, n_read: int, printed: Mapping[str, str]) -> str:
    """Write the counts under a label policy as a line and tables, separated by empty lines.

    Parameters
    ----------
    counted
        The counts.
    n_read
        Number of rows before the policy left some out.
    printed
        Name of a number -> what the paper prints for it.
    """
    left_out = f"{counted.unlabelled:,} without level, {n_read - counted.n_rows:,} left out by the policy"
    parts = [
        f"{counted.content}, {left_out}",
        _level_table(counted),
        _number_table(counted, printed),
    ]
    if counted.codebook.concept_names:
        parts.append(_concept_table(counted))
    return "\n\n".join(parts) + "\n"


def _level_table(counted: Statistics) -> str:
    """Write the number of clips of each level, or of rows of annotators, as a table of one row."""
    levels = counted.codebook.level_names
    is_per_annotator = counted.n_rows != counted.n_clips
    row = ["rows" if is_per_annotator else "clips", *(f"{counted.clips[level]:,}" for level in levels)]
    return table([row], ["level", *levels], right=range(1, len(row)))


def _number_table(counted: Statistics, printed: Mapping[str, str]) -> str:
    """Write the numbers of `count_table` as a table, with those that the paper prints if there are any."""
    headers = ["share or mean", "ours", "printed"] if printed else ["share or mean", "value"]
    rows = []
    for number in count_table(counted):
        row = [number.name, number.formatted]
        if printed:
            row.append(printed.get(number.name, ""))
        rows.append(row)
    return table(rows, headers, right=range(1, len(headers)))


def _concept_table(counted: Statistics) -> str:
    """Write as a table the share of each concept among the clips, and among the marks, of each level.

    Levels at which nothing was marked have no column.
    """
    visual = counted.codebook.visual_concepts
    levels = counted.codebook.level_names
    levels_of_clips = [level for level in levels if any(counted.with_concept[level].values())]
    # Marks are of visual concepts only.
    levels_of_marks = [level for level in levels_of_clips if counted.mean_concepts(level)]
    headers = ["concept"]
    headers += [f"of {level}\nclips" for level in levels_of_clips]
    headers += [f"of {level}\nmarks" for level in levels_of_marks]

    rows = []
    for concept in counted.codebook.concept_names:
        title = concept
        shares_of_clips = [share(counted.share_of_clips(level, concept)) for level in levels_of_clips]
        shares_of_marks = [share(counted.share_of_marks(level, concept)) for level in levels_of_marks]
        if concept not in visual:
            title = f"{concept} (not visual)"
            shares_of_marks = [""] * len(levels_of_marks)
        rows.append([title, *shares_of_clips, *shares_of_marks])
    return table(rows, headers, right=range(1, len(headers)))


def _join_names(names: Sequence[str]) -> str:
    """Join names as in a sentence: "EN, HN and S"."""
    *first_names, last = names
    if not first_names:
        return last
    return f"{', '.join(first_names)} and {last}"


def _ratio(part: int, total: int) -> float | None:
    """Return part / total; None if the total is 0."""
    if not total:
        return None
    return part / total


# --- Figure 2
# ---------------------------------------------------------------------------
def figure2(manifest: Manifest) -> Report:
    """Reproduce Figure 2 and the numbers of section 3.4, under every label policy of the codebook.

    Raises
    ------
    ProtocolError
        The labels are not those of the paper.
    """
    refuse_other_codebook(manifest.codebook, "Figure 2")
    counted = {}  # label policy -> the counts under it
    for policy in manifests.policies_of(manifest.codebook):
        counted[str(policy)] = statistics(manifests.apply_policy(manifest, policy))

    printed = printed_count_table(manifest)
    columns: list[Column] = [("share or mean", "number", str), ("ours", "ours", str)]
    if printed:
        columns.append(("printed", "printed", str))
    rows: list[dict[str, str]] = []
    blocks = []
    answers = []
    for policy_name, counts in counted.items():
        rows_of_policy = _printed_rows(policy_name, counts, printed)
        rows += rows_of_policy
        title = f"label policy {policy_name}, {counts.content}"
        blocks.append(block(title, columns, rows_of_policy))
        levels = ", ".join(f"{n:,} {level}" for level, n in counts.clips.items())
        answers.append(f"label policy {policy_name}: {counts.content}, {levels}")

    first_policy = next(iter(counted))
    caption = (
        f"Visual concepts marked at each level under the label policy {first_policy}, "
        "and levels by label policy"
    )
    draw = drawn_by("draw_stacks", panels=_panels(counted), axis="share")
    return Report(
        name="figure2",
        title="Figure 2 and section 3.4: levels and concepts",
        notes=("the printed numbers follow the paper policy",) if printed else (),
        blocks=tuple(blocks),
        data=pd.DataFrame(rows),
        record={"manifest_sha256": manifest.digest()},
        answers=tuple(answers),
        pictures=(Picture("figure2", caption, draw),),
    )


def _printed_rows(policy: str, counts: Statistics, printed: Mapping[str, str]) -> list[dict[str, str]]:
    """List our numbers under a label policy that the paper prints as well, with the printed ones if given.

    `printed` is empty for another corpus than ObyGaze12: its rows are of the same numbers, without printed
    ones.
    """
    rows = []
    for number in count_table(counts):
        if number.name in PRINTED_COUNTS:
            row = {"policy": policy, "number": number.name, "ours": number.formatted}
            if printed:
                row["printed"] = printed[number.name]
            rows.append(row)
    return rows


def _panels(counted: Mapping[str, Statistics]) -> dict[str, dict[str, dict[str, float]]]:
    """Arrange the counts as the figure's two panels: title of a panel -> label of a bar -> part -> its share.

    The concepts are shown under the first policy only. Policies differ in clips without a visual concept, so
    that the shares of the concepts are the same under the others, or nearly.
    """
    first_policy, first_counts = next(iter(counted.items()))
    concept_bars = {}
    for level in CODEBOOK.level_names:
        mean = first_counts.mean_concepts(level) or 0
        label = (
            f"{level}: {number_with_noun(first_counts.clips[level], 'clip')},\n{mean:.2f} concepts per clip"
        )
        shares = {concept: first_counts.share_of_marks(level, concept) or 0.0 for concept in VISUAL_CONCEPTS}
        concept_bars[label] = shares

    level_bars = {}
    for policy_name, counts in counted.items():
        label = f"{policy_name}\n{number_with_noun(sum(counts.clips.values()), 'clip')}"
        level_bars[label] = {level: counts.share(level) or 0.0 for level in CODEBOOK.level_names}

    return {
        f"a   visual concepts marked at each level, label policy {first_policy}": concept_bars,
        "b   levels by label policy": level_bars,
    }
