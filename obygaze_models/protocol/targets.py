"""Define targets: a task of levels, the presence of a concept, or ordered levels."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from shlex import quote
from typing import Annotated, Literal, NotRequired, TypedDict

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from obygaze_features.arguments import checked, made_by
from obygaze_features.manifest import (
    BUILTIN,
    MODEL,
    SEEN_SCORE,
    Clip,
    Codebook,
    Manifest,
    Task,
    counted,
    judgements_of,
    machines_of,
    merge_annotators,
)
from obygaze_features.schema import Text
from obygaze_models.errors import ProtocolError

Classes = Annotated[
    list[Annotated[list[str], Meta(description="a list of levels")]],
    Meta(description="a list of lists of levels, from low to high"),
]


class TargetRecord(TypedDict):
    """A target, in the records of runs and models."""

    name: Text
    title: Text
    kind: Text
    classes: Classes


class TranslationRecord(TypedDict, total=False):
    """A level or concept in another language: its name in full and its meaning."""

    title: Text
    means: Text


class TextsRecord(TypedDict, total=False):
    """What a codebook says in another language: its construct, its levels and its concepts, by name."""

    construct: Text
    levels: dict[str, TranslationRecord]
    concepts: dict[str, TranslationRecord]


class CodebookRecord(TypedDict):
    """The codebook of the labels: its name, and the SHA-256 of its content ("" if that is not known).

    A codebook that is not built in also has its texts, if it states them: its construct, the meaning of its
    levels and concepts, the titles of its levels, and all of these in other languages, by language.
    """

    name: Text
    digest: Text
    construct: NotRequired[Text]
    means: NotRequired[dict[str, Text]]
    titles: NotRequired[dict[str, Text]]
    translations: NotRequired[dict[str, TextsRecord]]


def codebook_record(codebook: Codebook) -> CodebookRecord:
    """Make the record of a codebook for runs and models: its name, digest and texts.

    The texts are the construct (what the levels measure), the titles of levels, and what each level and
    concept means, in all languages. Those of built-in codebooks are not recorded, as every reader has them.
    """
    record: CodebookRecord = {"name": codebook.name, "digest": codebook.digest()}
    if codebook.name in BUILTIN:
        return record

    if codebook.construct:
        record["construct"] = codebook.construct
    if codebook.means:
        record["means"] = codebook.means
    titles = {level.name: level.title for level in codebook.levels if level.title}
    if titles:
        record["titles"] = titles
    if codebook.languages:
        texts = {language: codebook.texts(language) for language in codebook.languages}
        record["translations"] = msgspec.to_builtins(texts)
    return record


Kind = Literal["levels", "concept", "ordinal"]

Sides = tuple[tuple[str, ...], tuple[str, ...]]
"""Negative and positive levels of a task."""

NOT_ASKED = -1
"""The label of a clip that is not in a target, and the rank of a clip that is not on a scale."""


@dataclass(frozen=True, eq=False, slots=True)
class Labels:
    """The labels of N clips.

    Attributes
    ----------
    clip_ids, movies : ndarray of str, shape [N]
    levels : ndarray of str, shape [N]
        "" for a clip without a level.
    present : ndarray of bool, shape [N, K]
        Presence of each of `concepts`.
    concepts : tuple of str
        The visual concepts, which concept models learn.
    scales : dict of str to ndarray of int64, shape [N]
        The rank of each clip on each further scale of the codebook; -1 where unknown.
    seen_score : ndarray of bool, shape [N], optional
        Marks clips whose annotator saw a model's score (column `seen_score` of the manifest); None if the
        manifest has no such column.
    not_visual : dict of str to ndarray of bool, shape [N]
        Presence of each concept that is not visual. Such a concept can be a target, for features of texts or
        sound.
    experts : dict of str to Labels
        If several annotators labelled the clips: name -> this annotator's labels of the same N clips; a clip
        that the annotator did not label has no level there. The other attributes are then merged labels
        (`merge_annotators`). If people and machines labelled the clips, people's labels alone are merged.
    annotators : tuple of str
        Names of those whose labels these are; empty if the manifest does not say.
    machines : dict of str to int
        Machines that labelled clips (column `model`) -> number of their labels: those among `experts`, or, if
        each clip has one row, those whose labels are among these.
    """

    clip_ids: NDArray[np.str_]
    movies: NDArray[np.str_]
    levels: NDArray[np.str_]
    present: NDArray[np.bool_]
    concepts: tuple[str, ...]
    scales: dict[str, NDArray[np.int64]]
    seen_score: NDArray[np.bool_] | None = None
    not_visual: dict[str, NDArray[np.bool_]] = field(default_factory=dict)
    experts: dict[str, "Labels"] = field(default_factory=dict)
    annotators: tuple[str, ...] = ()
    machines: dict[str, int] = field(default_factory=dict)

    @property
    def people(self) -> dict[str, "Labels"]:
        """The labels of each person among `experts`; of all of them if all are machines."""
        of_people = {name: labels for name, labels in self.experts.items() if name not in self.machines}
        return of_people or self.experts

    def take(self, rows: NDArray[np.intp]) -> "Labels":
        """Select the clips in some rows."""
        return Labels(
            clip_ids=self.clip_ids[rows],
            movies=self.movies[rows],
            levels=self.levels[rows],
            present=self.present[rows],
            concepts=self.concepts,
            scales={name: ranks[rows] for name, ranks in self.scales.items()},
            seen_score=None if self.seen_score is None else self.seen_score[rows],
            not_visual={name: present[rows] for name, present in self.not_visual.items()},
            experts={name: labels.take(rows) for name, labels in self.experts.items()},
            annotators=self.annotators,
            machines=self.machines,
        )

    def has(self, concept: str) -> NDArray[np.bool_]:
        """Mark the clips [N] that have a concept, visual or not."""
        if concept in self.not_visual:
            return self.not_visual[concept]
        return self.present[:, self.concepts.index(concept)]


@checked
def labels_of(manifest: Manifest) -> Labels:
    """Collect the labels of a manifest's clips, in its order.

    Rows of several annotators are merged; each annotator's labels are kept too (`Labels.experts`). If there
    are people among them, the labels of machines (column `model`) are not merged with theirs: models are to
    be trained and tested on what people say.

    Raises
    ------
    ManifestError
        A cell in the column of a scale is no level of this scale, or labels were given under two definitions
        of a level or concept.
    """
    judgements_of(manifest).refuse_two_definitions()
    if not manifest.is_per_annotator:
        return _labels_of_clips(manifest)
    return labels_by_annotator(manifest, merge_annotators(labels_of_people(manifest)))


def without_seen_scores(
    classes: NDArray[np.int64], seen_score: NDArray[np.bool_] | None
) -> NDArray[np.int64]:
    """Return classes [N] in a target as they are tested: `NOT_ASKED` for labels given in sight of a score.

    Who sees a model's score tends to agree with it, so that such labels would flatter the model.

    Parameters
    ----------
    classes
        The class of each clip in the target, as `Target.of` returns it.
    seen_score
        Marks the clips whose annotator saw a model's score (`Labels.seen_score`).
    """
    if seen_score is None:
        return classes
    return np.where(seen_score, NOT_ASKED, classes)


@checked
def labels_in_sight_note(
    n_clips: int, trained_levels: Collection[str], tested_levels: Collection[str]
) -> list[str]:
    """Write what becomes of clips that were judged in sight of a model's score; nothing if there are none.

    They are not tested (`without_seen_scores`). A test may ask for levels that models are not trained on.

    Parameters
    ----------
    n_clips
        Number of such clips that the tests ask for.
    trained_levels, tested_levels
        Levels of the clips that models are trained on, and of those that they are tested on.
    """
    if not n_clips:
        return []
    all_are_trained_on = set(tested_levels) <= set(trained_levels)
    trained_on = "trained on" if all_are_trained_on else "trained on if the task has their level"
    return [f"{counted(n_clips, 'clip')} judged with a model's score in sight: {trained_on}, not tested"]


def labels_by_annotator(manifest: Manifest, merged: Manifest) -> Labels:
    """Collect the labels of a merged manifest, and those that each annotator gave to its clips.

    `manifest` has the rows of all annotators, and `merged` a row for each clip.
    """
    return replace(
        _labels_of_clips(merged),
        experts=experts_of(manifest, merged),
        annotators=_annotators(labels_of_people(manifest)),
        machines=_count_labels_of_machines(manifest),
    )


def labels_of_people(manifest: Manifest) -> Manifest:
    """Return a manifest in which the rows of machines have no label, so that people's labels remain.

    The rows of people come before those of machines on the same clip, as merging takes what it does not
    merge, such as notes, from the first row. If no person labelled a clip, the manifest is returned
    as it is.
    """
    machines = machines_of(manifest)
    codebook = manifest.codebook
    place_of_clip: dict[str, int] = {}  # among the clips, each counted once
    for clip in manifest:
        place_of_clip.setdefault(clip.clip_id, len(place_of_clip))
    people_first = sorted(
        manifest, key=lambda clip: (place_of_clip[clip.clip_id], clip.annotator in machines)
    )

    rows = []
    for clip in people_first:
        is_of_machine = clip.annotator in machines
        rows.append(_without_label(clip, codebook) if is_of_machine else clip)

    has_label_of_people = any(has_level_or_rank(clip, codebook) for clip in rows)
    return manifest.with_clips(rows) if has_label_of_people else manifest


def has_level_or_rank(clip: Clip, codebook: Codebook) -> bool:
    """Tell whether a row judges its clip: it has a level, or a rank on a scale of the codebook.

    Concepts alone are labels (`has_labels` of `obygaze_features.manifest.clip`) and no judgement: they may be
    of an annotator who was still to choose a level.
    """
    if clip.level is not None:
        return True
    return any(scale.level_of(clip.extras.get(scale.name, "")) is not None for scale in codebook.scales)


def _without_label(clip: Clip, codebook: Codebook) -> Clip:
    """Return a clip without what somebody said of it: no level, no concepts and no rank on any scale."""
    extras = dict(clip.extras)
    for scale in codebook.scales:
        if scale.name in extras:
            extras[scale.name] = ""
    return replace(clip, level=None, concepts=(), extras=extras)


def _count_labels_of_machines(manifest: Manifest) -> dict[str, int]:
    """Count the labels of each machine among a manifest's annotators: name -> number of labelled rows."""
    counts = dict.fromkeys(machines_of(manifest), 0)
    for clip in manifest:
        if clip.annotator in counts and has_level_or_rank(clip, manifest.codebook):
            counts[clip.annotator] += 1
    return counts


def _count_labels_of_models(clips: Iterable[Clip], codebook: Codebook) -> dict[str, int]:
    """Count the labels that each machine gave, in a manifest with one row for each clip.

    The column `model` of such a row names the machine that gave its label; it is empty for people's labels.
    """
    counts = Counter[str]()
    for clip in clips:
        machine = clip.extras.get(MODEL, "")
        if machine and has_level_or_rank(clip, codebook):
            counts[machine] += 1
    return dict(counts)


def _labels_of_clips(manifest: Manifest) -> Labels:
    """Collect the labels of the clips of a manifest in which each clip has one row, in its order."""
    codebook = manifest.codebook
    clips = manifest.clips

    visual_concepts = codebook.visual_concepts
    present = np.empty((len(clips), len(visual_concepts)), dtype=np.bool_)
    for index, name in enumerate(visual_concepts):
        present[:, index] = _mark_concept(clips, name)
    other_concepts = [concept.name for concept in codebook.concepts if concept.name not in visual_concepts]

    seen_score = None
    if _has_column(clips, SEEN_SCORE):
        seen_score = np.array([clip.extras[SEEN_SCORE] == "1" for clip in clips])

    return Labels(
        clip_ids=np.array([clip.clip_id for clip in clips], dtype=str),
        movies=np.array([clip.movie for clip in clips], dtype=str),
        levels=np.array([clip.level or "" for clip in clips], dtype=str),
        present=present,
        concepts=visual_concepts,
        scales=_read_scale_ranks(manifest),
        seen_score=seen_score,
        not_visual={name: _mark_concept(clips, name) for name in other_concepts},
        annotators=_annotators(manifest),
        machines=_count_labels_of_models(clips, codebook),
    )


def _has_column(clips: Sequence[Clip], name: str) -> bool:
    """Tell whether the manifest of these clips has a further column, which not every manifest has.

    All clips of a manifest have the same columns, so that the first one tells.
    """
    return len(clips) > 0 and name in clips[0].extras


def _annotators(manifest: Manifest) -> tuple[str, ...]:
    """List who labelled the clips of a manifest, sorted.

    The list is empty if a labelled clip does not state its annotator.
    """
    names = {clip.annotator for clip in manifest if has_level_or_rank(clip, manifest.codebook)}
    some_are_unknown = "" in names
    return () if some_are_unknown else tuple(sorted(names))


def _mark_concept(clips: Sequence[Clip], concept: str) -> NDArray[np.bool_]:
    """Mark the clips [N] that have a concept, as booleans."""
    return np.array([concept in clip.concepts for clip in clips], dtype=np.bool_)


def _read_scale_ranks(manifest: Manifest) -> dict[str, NDArray[np.int64]]:
    """Read the rank of each clip on each further scale of the codebook: scale -> ranks [N].

    The rank is `NOT_ASKED` for clips without a level on the scale. Scales without a column in the manifest
    are left out.
    """
    clips = manifest.clips
    ranks_on_scales = {}
    for scale in manifest.codebook.scales:
        if not _has_column(clips, scale.name):
            continue
        rank_of_level = {level.name: rank for rank, level in enumerate(scale.levels)}
        ranks = np.full(len(clips), NOT_ASKED, dtype=np.int64)
        for row, clip in enumerate(clips):
            level = scale.level_of(clip.extras[scale.name])
            if level is not None:
                ranks[row] = rank_of_level[level]
        ranks_on_scales[scale.name] = ranks
    return ranks_on_scales


def experts_of(manifest: Manifest, merged: Manifest) -> dict[str, Labels]:
    """Collect the labels that each annotator gave to the clips of a merged manifest: annotator -> labels.

    Clips that an annotator did not judge have no level, no concepts, and no rank on a scale.
    """
    codebook = manifest.codebook
    rows_of_annotators: dict[str, dict[str, Clip]] = {}  # annotator -> clip id -> row with a label
    for clip in manifest:
        rows_of_annotator = rows_of_annotators.setdefault(clip.annotator, {})
        if has_level_or_rank(clip, codebook):
            rows_of_annotator[clip.clip_id] = clip

    labels_of_annotator = {}
    for annotator, labelled in sorted(rows_of_annotators.items()):
        clips = []
        for clip in merged:
            row = labelled.get(clip.clip_id)
            clips.append(_without_label(clip, codebook) if row is None else row)
        labels_of_annotator[annotator] = labels_of(merged.with_clips(clips))
    return labels_of_annotator


@made_by("find_target(NAME, CODEBOOK)")
@dataclass(frozen=True, slots=True)
class Target:
    """The target of a model: which clips are used, and the class of each.

    Attributes
    ----------
    name : str
        Such as ``hn_s``, ``concept:Body``, ``levels`` or ``scale:valence``.
    title : str
        The name that tables and sentences show.
    kind : {"levels", "concept", "ordinal"}
        Two classes of levels, a concept present or not, or ordered levels.
    classes : tuple of tuple of str
        The levels of each class, from low to high: two classes for a task, one level each for ordered levels.
        For a concept it has one entry, the levels of the clips that are used: all levels that are labels.
    concept : str
        The concept whose presence is the label; "" otherwise.
    scale : str
        The codebook's further scale whose levels `classes` are; "" for the codebook's own levels.
    against : tuple of str
        For a concept, the levels of clips without the concept that are used; empty for all levels that are
        labels.
    """

    name: str
    title: str
    kind: Kind
    classes: tuple[tuple[str, ...], ...]
    concept: str = ""
    scale: str = ""
    against: tuple[str, ...] = ()

    def record(self) -> TargetRecord:
        """Return the target as JSON values."""
        return {
            "name": self.name,
            "title": self.title,
            "kind": self.kind,
            "classes": [list(side) for side in self.classes],
        }

    @property
    def n_classes(self) -> int:
        """Number of classes: two of a task or a concept, and as many as there are of ordered levels."""
        if self.kind == "concept":
            # Clips with the concept, and clips without it. `classes` does not list these: of a concept it has
            # a single entry, the levels of all clips that are used.
            return 2
        return len(self.classes)

    @property
    def levels(self) -> tuple[str, ...]:
        """The levels of the clips that are used."""
        return tuple(level for side in self.classes for level in side)

    def of(self, labels: Labels) -> NDArray[np.int64]:
        """Return the class of each clip [N] in this target, or `NOT_ASKED` (-1) for clips that are not in it.

        Classes are numbered from 0. For ordered levels the number is the level's rank.

        Raises
        ------
        ProtocolError
            The manifest has no column of the scale.
        """
        if self.scale:
            if self.scale not in labels.scales:
                raise ProtocolError(f"the manifest has no column {self.scale}, which {self.name} asks for")
            return labels.scales[self.scale]

        if self.kind == "concept":
            return self._presence(labels)

        class_of_clip = np.full(len(labels.levels), NOT_ASKED, dtype=np.int64)
        for index, levels_of_class in enumerate(self.classes):
            class_of_clip[_has_level(labels, levels_of_class)] = index
        return class_of_clip

    def _presence(self, labels: Labels) -> NDArray[np.int64]:
        """Return whether each clip has the concept [N], 1 or 0, or `NOT_ASKED` for clips that are not used.

        If `against` names levels, clips without the concept are used only if they have one of these.
        """
        is_present = labels.has(self.concept)
        is_used = _has_level(labels, self.levels)
        if self.against:
            is_used &= is_present | _has_level(labels, self.against)
        return np.where(is_used, is_present.astype(np.int64), NOT_ASKED)


def _has_level(labels: Labels, levels: Sequence[str]) -> NDArray[np.bool_]:
    """Mark the clips [N] that have one of some levels."""
    return np.isin(labels.levels, np.array(levels, dtype=str))


@checked
def concept_target(concept: str, codebook: Codebook, against: Sequence[str] = ()) -> Target:
    """Make the target of a concept's presence.

    Clips without the concept are limited to the levels in `against`, if any are given.

    Only clips of a level that is a label are used (`Target.levels`, which runs record): corpora are made of
    these, for all of their targets, as in the papers. What a clip says of the concept does not depend on its
    level: judgements of films are counted at any level, "not sure" too (`obygaze_film.positive.Positive`).

    Raises
    ------
    ManifestError
        The concept or a level is not in the codebook.
    """
    # The names as the codebook spells them.
    name = codebook.concept_spelled(concept)
    levels = tuple(codebook.level_spelled(level) for level in against)

    concept_title = name if name in codebook.visual_concepts else f"{name} (not visual)"
    if levels:
        target_name = f"concept:{name}-vs-{'+'.join(levels)}"
        union_of_levels = " u ".join(levels)  # u stands for the sign of the union
        title = f"{concept_title} vs {union_of_levels} without it"
    else:
        target_name = f"concept:{name}"
        title = f"{concept_title}, present or not"

    return Target(
        name=target_name,
        title=title,
        kind="concept",
        classes=(codebook.labels,),
        concept=name,
        against=levels,
    )


def task_target(task: Task) -> Target:
    """Make the target of a task: its negative and its positive levels."""
    return Target(task.name, task.title, "levels", (task.negatives, task.positives))


@checked
def find_target(name: str, codebook: Codebook) -> Target:
    """Find a target by name: a task, ``concept:NAME``, ``levels``, or ``scale:NAME``.

    Raises
    ------
    ManifestError
        The codebook has no such task, concept or scale; the message suggests the nearest one.
    ProtocolError
        The target is ``levels``, and the codebook has fewer than two levels that are labels.

    Examples
    --------
    >>> import obygaze_features as of
    >>> import obygaze_models as om
    >>> codebook = of.read_manifest("films.csv").codebook
    >>> om.find_target("hn_s", codebook).classes
    (('HN',), ('S',))
    >>> om.find_target("concept:Body", codebook).kind
    'concept'
    """
    if name == "levels":
        if len(codebook.labels) < 2:
            raise ProtocolError(f"the codebook {codebook.name!r} has no two levels to put in order")
        return _ordinal_target(name, codebook.labels)

    prefix, colon, name_after_colon = name.partition(":")
    if colon and prefix == "concept":
        return concept_target(name_after_colon, codebook)
    if colon and prefix == "scale":
        scale = codebook.scale(name_after_colon)
        levels = tuple(level.name for level in scale.levels)
        return _ordinal_target(name, levels, scale.name)

    return task_target(codebook.task(name))


def all_levels(codebook: Codebook) -> Target:
    """Make the target of all levels of a codebook, in their order, including levels that no task uses."""
    return replace(_ordinal_target("levels", codebook.level_names), title="all levels")


def _ordinal_target(name: str, levels: tuple[str, ...], scale: str = "") -> Target:
    """Make the target of ordered levels, from low to high.

    Two levels need no order: their target is one of two classes, like that of a task. `scale` is the name of
    the further scale that the levels are of, or "".
    """
    kind: Kind = "ordinal" if len(levels) > 2 else "levels"
    classes = tuple((level,) for level in levels)
    return Target(name, title=" < ".join(levels), kind=kind, classes=classes, scale=scale)


@checked
def level_target(negatives: tuple[str, ...], positives: tuple[str, ...], codebook: Codebook) -> Target:
    """Make a target of two classes from negative and positive levels of a codebook.

    Raises
    ------
    ManifestError
        A level is not in the codebook.
    ProtocolError
        There are no negative or no positive levels; or a level is both; or the codebook does not count a
        level as a label.
    """
    negative = tuple(codebook.level_spelled(level) for level in negatives)
    positive = tuple(codebook.level_spelled(level) for level in positives)

    if not negative or not positive:
        raise ProtocolError("a task needs negative and positive levels: give --negative and --positive")
    for level in (*negative, *positive):
        if level not in codebook.labels:
            raise ProtocolError(
                f"level {level!r} does not count as a label in the codebook {codebook.name!r}"
            )
    repeated = set(negative) & set(positive)
    if repeated:
        raise ProtocolError(f"level {min(repeated)!r} is both negative and positive")

    name = f"{'+'.join(negative)}-vs-{'+'.join(positive)}"
    return task_target(Task(name, negative, positive))


@checked
def choose_targets(
    codebook: Codebook, task: str | None, test: str | None, *, sides: Sides = ((), ())
) -> tuple[Target, Target]:
    """Choose the targets of training and of testing, by name or by levels.

    Parameters
    ----------
    codebook : Codebook
    task, test : str, optional
        Names of targets (`find_target`). By default the task is the codebook's only one, and the test is the
        task.
    sides : tuple of two tuples of str
        Negative and positive levels to train on, in place of a name.

    Raises
    ------
    ProtocolError
        Both a name and levels are given; or neither is, and the codebook has several tasks.
    ManifestError
        The codebook has no such task, concept or level.
    """
    negatives, positives = sides
    has_levels = bool(negatives or positives)
    if task is not None and has_levels:
        raise ProtocolError("--task names a task and --negative and --positive make one: give one of the two")

    if has_levels:
        train = level_target(negatives, positives, codebook)
    elif task is not None:
        train = find_target(task, codebook)
    elif len(codebook.tasks) == 1:
        train = task_target(codebook.tasks[0])
    else:
        names = ", ".join([*(choice.name for choice in codebook.tasks), "concept:NAME", "levels"])
        raise ProtocolError(
            f"no task is given (--task): expected one of {names} (codebook {codebook.name!r}), or two sides "
            f"of levels{_example_of_sides(codebook)}"
        )

    tested = train if test is None else find_target(test, codebook)
    return train, tested


def _example_of_sides(codebook: Codebook) -> str:
    """Write example options that make a task of a codebook's lowest and highest level, for a message.

    The text is empty if the codebook has one level only.
    """
    if len(codebook.levels) < 2:
        return ""
    lowest, *_, highest = codebook.level_names
    return f", such as --negative {quote(lowest)} --positive {quote(highest)}"
