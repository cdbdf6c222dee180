"""Count levels and concepts, as in section 3.4 and Figure 2 of Tores et al., CVPR 2024."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

import obygaze_features.manifest as manifests
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

    def share(self, level: str, *of: str) -> float | None:
        """Share of a level among the clips of the given levels (all if none is given)."""
        return _ratio(self.clips[level], sum(self.clips[level_name] for level_name in (of or self.clips)))

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
        printed, visual = printed or {}, self.codebook.visual_concepts

        def of_concept(level: str, concept: str) -> dict[str, Any]:
            share, marks = self.share_of_clips(level, concept), self.share_of_marks(level, concept)
            record = {"clips": self.with_concept[level][concept], "share_of_clips": share}
            return record | ({"share_of_marks": marks} if concept in visual else {})

        return {
            "clips": self.n_clips,
            "unlabelled": self.unlabelled,
            "levels": {level: self.clips[level] for level in self.codebook.level_names},
            "numbers": [
                {"name": number.name, "ours": number.value}
                | ({"printed": printed[number.name]} if number.name in printed else {})
                for number in count_table(self)
            ],
            "concepts": {
                level: {concept: of_concept(level, concept) for concept in self.codebook.concept_names}
                for level in self.codebook.level_names
            },
        }

    def _marks(self, level: str) -> int:
        return sum(self.with_concept[level][concept] for concept in self.codebook.visual_concepts)


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
    visual = manifest.codebook.visual
    shots = pd.Series([clip.extras.get("scene_shots", "") for clip in manifest], dtype="str").str.extract(
        r"ss-(\d+)\.es-(\d+)"
    )
    table = pd.DataFrame(
        {
            "clip_id": [clip.clip_id for clip in manifest],
            "movie": [clip.movie for clip in manifest],
            "level": [clip.level for clip in manifest],
            "concepts": [visual(clip.concepts) for clip in manifest],
            "n": [len(visual(clip.concepts)) for clip in manifest],
            "shots": shots[1].astype(float) - shots[0].astype(float) + 1,
        }
    )
    return table[table["level"].notna()]


def by_film(table: pd.DataFrame, values: str, group: str) -> pd.DataFrame:
    """Average a column in each film [M] and group."""
    return table.pivot_table(values, "movie", group)


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
    known = ("annotator", "movie", *extras)
    if column not in known:
        raise ManifestError(f"no column {column!r} to group clips by: there are {', '.join(known)}", column)
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


def count_table(counted: Statistics) -> tuple[Number, ...]:
    """List what section 3.4 and App. 8.2 of the paper state of a corpus, for the levels of any codebook.

    Shares of each level, among all clips and without the levels that are in no task; the share of positives
    in each task; visual concepts per clip of each level.
    """
    codebook, share = counted.codebook, counted.share
    aside = [level for level in codebook.level_names if level not in codebook.labels]
    numbers = [Number(f"{level} of all clips", share(level), ".1%") for level in codebook.level_names]
    if aside:
        numbers += [
            Number(f"{level} without {_listed(aside)}", share(level, *codebook.labels), ".1%")
            for level in codebook.labels
        ]
    for task in codebook.tasks:
        of = [level for level in codebook.level_names if level in task.levels]
        parts = [share(level, *of) for level in task.positives]
        value = None if None in parts else sum(part for part in parts if part is not None)
        numbers.append(Number(f"{_listed(task.positives)} of {_listed(of)}", value, ".1%"))
    if codebook.visual_concepts:
        numbers += [
            Number(f"visual concepts per {level} clip", counted.mean_concepts(level), ".2f")
            for level in codebook.level_names
        ]
    return tuple(numbers)


def printed_count_table(manifest: Manifest) -> Mapping[str, str]:
    """Return what the paper prints, by the names of `count_table`; nothing but for ObyGaze12.

    Ours agree when rounded, but for one: S of EN and S is 23.6 %, printed as 23 %.
    """
    return PRINTED_COUNTS if is_obygaze12(manifest) else {}


def as_text(counted: Statistics, n_read: int, printed: Mapping[str, str]) -> str:
    """Write the counts under a label policy: a line, and tables, each with an empty line after it."""
    codebook, levels = counted.codebook, counted.codebook.level_names
    left_out = f"{counted.unlabelled:,} without level, {n_read - counted.n_clips:,} left out by the policy"
    beside = [[printed.get(number.name, "")] if printed else [] for number in count_table(counted)]
    numbers = [
        [number.name, number.shown, *more] for number, more in zip(count_table(counted), beside, strict=True)
    ]
    tables = [
        (["level", *levels], [["clips", *(f"{counted.clips[level]:,}" for level in levels)]]),
        (["share or mean", *(["ours", "printed"] if printed else ["value"])], numbers),
    ]
    with_any = [level for level in levels if any(counted.with_concept[level].values())]
    with_visual = [level for level in with_any if counted.mean_concepts(level)]
    headings = [f"of {level}\nclips" for level in with_any] + [f"of {level}\nmarks" for level in with_visual]
    rows = [
        [concept if concept in codebook.visual_concepts else f"{concept} (not visual)"]
        + [share(counted.share_of_clips(level, concept)) for level in with_any]
        + [
            share(counted.share_of_marks(level, concept)) if concept in codebook.visual_concepts else ""
            for level in with_visual
        ]
        for concept in codebook.concept_names
    ]
    tables += [(["concept", *headings], rows)] if rows else []
    texts = [table(rows, headers, right=range(1, len(headers))) for headers, rows in tables]
    return "\n\n".join([f"{counted.n_clips:,} clips, {left_out}", *texts]) + "\n"


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


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
    counted: dict[str, Statistics] = {
        str(policy): statistics(manifests.apply_policy(manifest, policy))
        for policy in manifests.policies_of(manifest.codebook)
    }
    printed = printed_count_table(manifest)
    rows = [
        {"policy": policy, "number": count.name, "ours": count.shown}
        | ({"printed": printed[count.name]} if printed else {})
        for policy, counts in counted.items()
        for count in count_table(counts)
        if count.name in PRINTED_COUNTS
    ]
    columns: list[Column] = [("share or mean", "number", str), ("ours", "ours", str)]
    columns += [("printed", "printed", str)] if printed else []
    first = next(iter(counted))
    caption = (
        f"Visual concepts marked at each level under the label policy {first}, and levels by label policy"
    )
    draw = drawn_by("draw_stacks", panels=_panels(counted), axis="share")
    return Report(
        name="figure2",
        title="Figure 2 and section 3.4: levels and concepts",
        notes=("the printed numbers follow the paper policy",) if printed else (),
        blocks=tuple(
            block(
                f"label policy {policy}, {counts.n_clips} clips",
                columns,
                [row for row in rows if row["policy"] == policy],
            )
            for policy, counts in counted.items()
        ),
        data=pd.DataFrame(rows),
        record={"manifest_sha256": manifest.digest()},
        answers=tuple(
            f"label policy {policy}: {counts.n_clips:,} clips, "
            + ", ".join(f"{n:,} {level}" for level, n in counts.clips.items())
            for policy, counts in counted.items()
        ),
        pictures=(Picture("figure2", caption, draw),),
    )


def _panels(counted: Mapping[str, Statistics]) -> dict[str, dict[str, dict[str, float]]]:
    """Lay out the shares of the visual concepts marked at each level, and of the levels by label policy.

    Concepts are those of the first policy: policies move or leave out clips without a visual concept, so that
    the shares of the others are the same, or nearly.
    """
    policy, first = next(iter(counted.items()))
    marks = {
        f"{level}: {first.clips[level]:,} clips,\n{first.mean_concepts(level) or 0:.2f} concepts per clip": {
            concept: first.share_of_marks(level, concept) or 0.0 for concept in VISUAL_CONCEPTS
        }
        for level in CODEBOOK.level_names
    }
    levels = {
        f"{policy}\n{sum(counts.clips.values()):,} clips": {
            level: counts.share(level) or 0.0 for level in CODEBOOK.level_names
        }
        for policy, counts in counted.items()
    }
    return {
        f"a   visual concepts marked at each level, label policy {policy}": marks,
        "b   levels by label policy": levels,
    }
