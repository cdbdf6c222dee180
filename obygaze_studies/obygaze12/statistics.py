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
from obygaze_models.report import Column, Picture, Report, block
from obygaze_studies.audit_common.findings import drawn_by, share
from obygaze_studies.obygaze12.corpus import VISUAL_CONCEPTS, refuse_other_codebook
from obygaze_studies.obygaze12.import_annotations import CODEBOOK, is_obygaze12
from obygaze_studies.obygaze12.printed_values import PUBLISHED

PRINTED_COUNTS: Mapping[str, str] = PUBLISHED["counts"]
"""What section 3.4, section 4.1, App. 8.2 and Figure 2 print of ObyGaze12 under the label policy `paper`."""


@dataclass(frozen=True, slots=True)
class Statistics:
    """Counts of a manifest's levels and concepts; every share is of clips that have a level.

    Parameters
    ----------
    n_clips
        All clips, with a level or without.
    clips
        Clips of each level.
    with_concept
        Clips of each level with each concept.
    codebook
        Of the manifest.
    """

    n_clips: int
    clips: Mapping[str, int]
    with_concept: Mapping[str, Mapping[str, int]]
    codebook: Codebook

    @property
    def unlabelled(self) -> int:
        """Clips without a level."""
        return self.n_clips - sum(self.clips.values())

    def share(self, level: str, *among: str) -> float | None:
        """Share of a level among the clips of some levels (all if none is named)."""
        n_clips = sum(self.clips[level_name] for level_name in (among or self.clips))
        return _ratio(self.clips[level], n_clips)

    def mean_concepts(self, level: str) -> float | None:
        """Visual concepts per clip of a level, on average."""
        return _ratio(self._marks(level), self.clips[level])

    def share_of_clips(self, level: str, concept: str) -> float | None:
        """Share of a level's clips that have a concept."""
        return _ratio(self.with_concept[level][concept], self.clips[level])

    def share_of_marks(self, level: str, concept: str) -> float | None:
        """Share of a visual concept among all visual concepts marked at a level: Figure 2's distribution."""
        return _ratio(self.with_concept[level][concept], self._marks(level))

    def record(self, printed: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Give every count and share as JSON values; `printed` has the paper's words for some numbers."""
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
            "unlabelled": self.unlabelled,
            "levels": {level: self.clips[level] for level in self.codebook.level_names},
            "numbers": numbers,
            "concepts": concepts,
        }

    def _concept_record(self, level: str, concept: str) -> dict[str, Any]:
        record: dict[str, Any] = {
            "clips": self.with_concept[level][concept],
            "share_of_clips": self.share_of_clips(level, concept),
        }
        if concept in self.codebook.visual_concepts:
            record["share_of_marks"] = self.share_of_marks(level, concept)
        return record

    def _marks(self, level: str) -> int:
        return sum(self.with_concept[level][concept] for concept in self.codebook.visual_concepts)


@checked
def statistics(manifest: Manifest) -> Statistics:
    """Count levels and concepts."""
    codebook = manifest.codebook
    clips = dict.fromkeys(codebook.level_names, 0)
    with_concept = {level: dict.fromkeys(codebook.concept_names, 0) for level in codebook.level_names}
    for clip in manifest:
        if clip.level is not None:
            clips[clip.level] += 1
            for concept in clip.concepts:
                with_concept[clip.level][concept] += 1
    return Statistics(len(manifest), clips, with_concept, codebook)


def clip_table(manifest: Manifest) -> pd.DataFrame:
    """List id, movie, level, visual concepts, their number and that of shots of clips that have a level."""
    concepts = [manifest.codebook.visual(clip.concepts) for clip in manifest]
    written = pd.Series([clip.extras.get("scene_shots", "") for clip in manifest], dtype="str")
    shots = written.str.extract(r"ss-(\d+)\.es-(\d+)").astype(float)
    table = pd.DataFrame(
        {
            "clip_id": [clip.clip_id for clip in manifest],
            "movie": [clip.movie for clip in manifest],
            "level": [clip.level for clip in manifest],
            "concepts": concepts,
            "n": list(map(len, concepts)),
            "shots": shots[1] - shots[0] + 1,
        }
    )
    return table[table["level"].notna()]


def by_film(table: pd.DataFrame, values: str, group: str) -> pd.DataFrame:
    """Average a column in each film [M] and group."""
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
        for value in dict.fromkeys(part.strip() for part in cell.split(";")):
            groups.setdefault(value, []).append(clip)
    if not any(groups):
        raise ManifestError(f"column {column!r} is empty for all clips: nothing to group by", column)
    return {value: manifest.with_clips(groups[value]) for value in sorted(groups)}


def clips_onto(annotations: Manifest, onto: Path | None) -> tuple[Manifest, str]:
    """Return the clips to project annotations onto, by default windows of them, and what they are."""
    if onto is not None:
        return manifests.read_manifest(onto), f"the clips of {onto.name}"
    seconds = manifests.DEFAULT_WINDOW_S
    return manifests.windows(annotations, seconds), f"windows of {seconds:g} s"


@dataclass(frozen=True, slots=True)
class Number:
    """One number of a corpus: its name, its value (None if undefined), and how it is written."""

    name: str
    value: float | None
    style: str

    @property
    def shown(self) -> str:
        """The number, written as the paper writes it."""
        return "undefined" if self.value is None else format(self.value, self.style)


@checked
def count_table(counted: Statistics) -> tuple[Number, ...]:
    """List what section 3.4 and App. 8.2 of the paper state of a corpus, for the levels of any codebook.

    Shares of each level, among all clips and without the levels that are in no task; the share of positives
    in each task; visual concepts per clip of each level.
    """
    codebook = counted.codebook
    numbers = [Number(f"{level} of all clips", counted.share(level), ".1%") for level in codebook.level_names]
    in_no_task = [level for level in codebook.level_names if level not in codebook.labels]
    if in_no_task:
        for level in codebook.labels:
            share_in_tasks = counted.share(level, *codebook.labels)
            numbers.append(Number(f"{level} without {_listed(in_no_task)}", share_in_tasks, ".1%"))
    for task in codebook.tasks:
        levels = [level for level in codebook.level_names if level in task.levels]
        shares = [counted.share(level, *levels) for level in task.positives]
        defined = [value for value in shares if value is not None]
        share_of_positives = sum(defined) if len(defined) == len(shares) else None
        numbers.append(Number(f"{_listed(task.positives)} of {_listed(levels)}", share_of_positives, ".1%"))
    if codebook.visual_concepts:
        for level in codebook.level_names:
            mean = counted.mean_concepts(level)
            numbers.append(Number(f"visual concepts per {level} clip", mean, ".2f"))
    return tuple(numbers)


@checked
def printed_count_table(manifest: Manifest) -> Mapping[str, str]:
    """Return what the paper prints, by the names of `count_table`; nothing but for ObyGaze12.

    Ours agree when rounded, but for one: S of EN and S is 23.6 %, printed as 23 %.
    """
    return PRINTED_COUNTS if is_obygaze12(manifest) else {}


def as_text(counted: Statistics, n_read: int, printed: Mapping[str, str]) -> str:
    """Write the counts under a label policy: a line, and tables, each with an empty line after it."""
    left_out = f"{counted.unlabelled:,} without level, {n_read - counted.n_clips:,} left out by the policy"
    parts = [f"{counted.n_clips:,} clips, {left_out}", _level_table(counted), _number_table(counted, printed)]
    if counted.codebook.concept_names:
        parts.append(_concept_table(counted))
    return "\n\n".join(parts) + "\n"


def _level_table(counted: Statistics) -> str:
    levels = counted.codebook.level_names
    row = ["clips", *(f"{counted.clips[level]:,}" for level in levels)]
    return table([row], ["level", *levels], right=range(1, len(row)))


def _number_table(counted: Statistics, printed: Mapping[str, str]) -> str:
    """Write the numbers of `count_table`, beside those that the paper prints."""
    headers = ["share or mean", "ours", "printed"] if printed else ["share or mean", "value"]
    rows = []
    for number in count_table(counted):
        row = [number.name, number.shown]
        if printed:
            row.append(printed.get(number.name, ""))
        rows.append(row)
    return table(rows, headers, right=range(1, len(headers)))


def _concept_table(counted: Statistics) -> str:
    """Write the share of each concept among clips and marks of the levels that have any."""
    visual = counted.codebook.visual_concepts
    with_any = [level for level in counted.codebook.level_names if any(counted.with_concept[level].values())]
    with_visual = [level for level in with_any if counted.mean_concepts(level)]
    headers = ["concept"]
    headers += [f"of {level}\nclips" for level in with_any]
    headers += [f"of {level}\nmarks" for level in with_visual]
    rows = []
    for concept in counted.codebook.concept_names:
        of_clips = [share(counted.share_of_clips(level, concept)) for level in with_any]
        if concept in visual:
            of_marks = [share(counted.share_of_marks(level, concept)) for level in with_visual]
            rows.append([concept, *of_clips, *of_marks])
        else:
            rows.append([f"{concept} (not visual)", *of_clips, *("" for _ in with_visual)])
    return table(rows, headers, right=range(1, len(headers)))


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _ratio(part: int, total: int) -> float | None:
    return part / total if total else None


# --- Figure 2
# ---------------------------------------------------------------------------
def figure2(manifest: Manifest) -> Report:
    """Reproduce Figure 2 and the numbers of section 3.4, under the label policies.

    Raises
    ------
    ProtocolError
        The labels are not those of the paper.
    """
    refuse_other_codebook(manifest.codebook, "Figure 2")
    counted = {}
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
        title = f"label policy {policy_name}, {counts.n_clips} clips"
        blocks.append(block(title, columns, rows_of_policy))
        levels = ", ".join(f"{n:,} {level}" for level, n in counts.clips.items())
        answers.append(f"label policy {policy_name}: {counts.n_clips:,} clips, {levels}")
    first = next(iter(counted))
    caption = (
        f"Visual concepts marked at each level under the label policy {first}, and levels by label policy"
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
    """List the numbers under a label policy that the paper prints of its corpus, beside the printed ones."""
    rows = []
    for number in count_table(counts):
        if number.name in PRINTED_COUNTS:
            row = {"policy": policy, "number": number.name, "ours": number.shown}
            if printed:
                row["printed"] = printed[number.name]
            rows.append(row)
    return rows


def _panels(counted: Mapping[str, Statistics]) -> dict[str, dict[str, dict[str, float]]]:
    """Lay out the shares of the visual concepts marked at each level, and of the levels by label policy.

    Concepts are those of the first policy: policies move or leave out clips without a visual concept, so that
    the shares of the others are the same, or nearly.
    """
    policy, first = next(iter(counted.items()))
    marks = {}
    for level in CODEBOOK.level_names:
        mean = first.mean_concepts(level) or 0
        bar = f"{level}: {first.clips[level]:,} clips,\n{mean:.2f} concepts per clip"
        marks[bar] = {concept: first.share_of_marks(level, concept) or 0.0 for concept in VISUAL_CONCEPTS}
    levels = {}
    for policy_name, counts in counted.items():
        bar = f"{policy_name}\n{sum(counts.clips.values()):,} clips"
        levels[bar] = {level: counts.share(level) or 0.0 for level in CODEBOOK.level_names}
    return {
        f"a   visual concepts marked at each level, label policy {policy}": marks,
        "b   levels by label policy": levels,
    }
