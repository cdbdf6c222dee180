"""Define and check the parts of a codebook: levels, concepts with their instances, scales and tasks."""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from obygaze_features.errors import ManifestError
from obygaze_features.identity import plain
from obygaze_features.manifest.spans.names import NO_MARKUP, suggestion
from obygaze_features.manifest.text_tables import CODEBOOK_COLUMN, FIELDS
from obygaze_features.perception import MODALITIES, SHOWN_BY_PICTURES
from obygaze_features.text import number_of, unsuitable

if TYPE_CHECKING:
    from obygaze_features.manifest.codebook import Codebook

POLICIES: tuple[str, ...] = ("raw", "paper", "released")
"""Label policies that a codebook may list; `raw` can be used with every codebook."""

LANGUAGE = re.compile("[a-z]{2,3}")
"""A language as texts of codebooks name it: `fr`."""

ORDINAL_TASK = "levels"
"""Stands for all levels in order wherever a task is named, so no task may be called that."""


class Translation(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A level or concept in another language: its name in full and its meaning; empty where not translated.

    A codebook file has them as `title.fr` and `means.fr`.
    """

    title: str = ""
    means: str = ""


class CodebookTexts(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a codebook says in another language; without what it does not translate.

    Parameters
    ----------
    construct
        What the levels measure.
    levels, concepts
        By name.
    """

    construct: str = ""
    levels: dict[str, Translation] = {}
    concepts: dict[str, Translation] = {}


class Level(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One level of an ordered label.

    Parameters
    ----------
    name
        The name in manifests.
    title
        The name in full, for people; also accepted as a spelling.
    label
        Whether the level can be in a task; False for "not sure" levels.
    synonyms
        Other spellings in annotation files; case and repeated blanks do not matter.
    position
        Place of the level on its axis, for distances between levels; None for equal steps.
    means
        How a clip of the level is staged, in words that complete "the model marks a passage as".
    translations
        By language, as `fr`.
    """

    name: str
    title: str = ""
    label: bool = True
    synonyms: tuple[str, ...] = ()
    position: float | None = None
    means: str = ""
    translations: dict[str, Translation] = {}

    @property
    def spellings(self) -> tuple[str, ...]:
        """All texts that stand for the level: name, title, synonyms."""
        return tuple(spelling for spelling in (self.name, self.title, *self.synonyms) if spelling)

    def in_language(self, language: str) -> Translation:
        """Return the level's title and meaning in a language, or in English where they are not translated.

        A level without a title has its name in place of it.
        """
        translation = self.translations.get(language, Translation())
        title = translation.title or self.title or self.name
        return Translation(title, translation.means or self.means)


class Instance(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A typical instance of a concept, and examples of it from films."""

    name: str
    examples: tuple[str, ...] = ()


class Concept(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Something that annotators mark in a clip.

    Parameters
    ----------
    name
        The name in manifests.
    group
        Heading that the concept belongs under, if there are several.
    visual
        Whether an image can show it.
    synonyms
        Other spellings in annotation files; case and repeated blanks do not matter.
    instances
        Typical instances.
    definition
        One line.
    means
        What is seen or heard where the concept is there, in one line.
    modality
        How a film conveys it, one of MODALITIES; empty for what `visual` says.
    translations
        By language, as `fr`.
    """

    name: str
    group: str = ""
    visual: bool = True
    synonyms: tuple[str, ...] = ()
    instances: tuple[Instance, ...] = ()
    definition: str = ""
    means: str = ""
    modality: str = ""
    translations: dict[str, Translation] = {}

    def in_language(self, language: str) -> Translation:
        """Return the concept's name and meaning in a language, or in English where they are not translated.

        A concept without a meaning has its definition in place of it.
        """
        translation = self.translations.get(language, Translation())
        means = translation.means or self.means or self.definition
        return Translation(translation.title or self.name, means)

    @property
    def conveyed(self) -> str:
        """The modality in which a film conveys it, one of MODALITIES; "" if the codebook does not say."""
        return self.modality or ("visual" if self.visual else "")

    @property
    def spellings(self) -> tuple[str, ...]:
        """All texts that stand for the concept: name and synonyms."""
        return (self.name, *self.synonyms)


class Scale(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A further ordered label, kept in the manifest's extra column of the same name.

    Parameters
    ----------
    name
        The column.
    levels
        From low to high.
    cuts
        Numbers between consecutive levels, rising, one fewer than levels; then a cell may also be a number. A
        number equal to a cut belongs to the level nearer to the middle, of two equally near the upper one.
    """

    name: str
    levels: tuple[Level, ...]
    cuts: tuple[float, ...] = ()

    @property
    def level_names(self) -> tuple[str, ...]:
        """The names of its levels, from low to high."""
        return tuple(level.name for level in self.levels)

    def level_of(self, cell: str) -> str | None:
        """Read a cell as the name of a level; None if it is empty.

        Raises
        ------
        ManifestError
            If the cell is neither a level nor, where the scale has cuts, a number.
        """
        if not cell:
            return None
        name_of = spellings_of(self.levels)
        if plain(cell) in name_of:
            return name_of[plain(cell)]
        number = number_of(cell) if self.cuts else math.nan  # NaN for a text that is no number
        if math.isnan(number):
            or_number = " or a number" if self.cuts else ""
            names = ", ".join(self.level_names)
            raise ManifestError(
                f"{cell!r} is no level of {self.name}: expected {names}{or_number}", self.name
            )
        return self.levels[self._n_cuts_below(number)].name

    def _n_cuts_below(self, number: float) -> int:
        """Count the cuts below a number: that many levels are below its level.

        A number that equals a cut gets the level nearer to the middle of the scale. So a cut in the lower
        half counts as below it, and one in the upper half does not: with the cuts 2 and 4 between low, middle
        and high, both 2 and 4 are middle.
        """
        n_lower_cuts = (len(self.cuts) + 1) // 2  # a cut in the middle counts as one in the lower half
        n_below = 0
        for index, cut in enumerate(self.cuts):
            is_lower_cut = index < n_lower_cuts
            if cut < number or (cut == number and is_lower_cut):
                n_below += 1
        return n_below


@dataclass(frozen=True, slots=True)
class Task:
    """Two sets of levels to classify; clips of any other level are not in the task."""

    name: str
    negatives: tuple[str, ...]
    positives: tuple[str, ...]

    @property
    def levels(self) -> tuple[str, ...]:
        """The levels of the task, negatives first."""
        return self.negatives + self.positives

    @property
    def title(self) -> str:
        """The task as the papers write it, e.g. ``(EN or HN) vs S``."""
        sides = []
        for levels in (self.negatives, self.positives):
            side = " or ".join(levels)
            sides.append(f"({side})" if " or " in side else side)
        return " vs ".join(sides)

    def labels(self, levels: NDArray[np.str_]) -> NDArray[np.int64]:
        """Return 1 for each positive level of ``levels`` [N] and 0 for every other."""
        return np.isin(levels, np.array(self.positives, dtype=str)).astype(np.int64)


def spellings_of(
    parts: Sequence[Level | Concept], as_compared: Callable[[str], str] = plain
) -> dict[str, str]:
    """Return a look-up of levels or concepts: spelling as it is compared -> name.

    A spelling with signs of markup, such as `<i>`, may also be written as subtitles show it (`NO_MARKUP`),
    unless that is a spelling itself or would be one of several names.

    `as_compared` writes a spelling in the form in which spellings are compared.
    """
    name_of: dict[str, str] = {}
    names_as_shown: dict[str, set[str]] = {}
    for part in parts:
        for spelling in part.spellings:
            name_of[as_compared(spelling)] = part.name
            as_shown = as_compared(spelling.translate(NO_MARKUP))
            names_as_shown.setdefault(as_shown, set()).add(part.name)
    for shown, names in names_as_shown.items():
        if len(names) == 1:
            name_of.setdefault(shown, *names)
    return name_of


def check_names_and_spellings(parts: Sequence[Level | Concept], key: str) -> None:
    """Refuse levels or concepts with invalid or repeated names, or with a spelling that two of them share.

    `key` is their key in the codebook file, for messages: `levels` or `concepts`.
    """
    check_unique([part.name for part in parts], key)
    name_of_spelling: dict[str, str] = {}
    for part in parts:
        check_word(part.name, f"{key}: name")
        for spelling in part.spellings:
            check_text(spelling, f"{key}: {part.name}: synonyms", empty=False)
            first = name_of_spelling.setdefault(plain(spelling), part.name)
            if first != part.name:
                raise ManifestError(f"{key}: {spelling!r} could be {first!r} or {part.name!r}")


def check_positions(levels: tuple[Level, ...]) -> None:
    """Refuse levels if only some of them have a position, or if the positions do not rise."""
    positions = [level.position for level in levels if level.position is not None]
    if positions and len(positions) != len(levels):
        raise ManifestError("levels: position: give it for all levels, or for none")
    check_rising(positions, "levels: position")


def check_scale(scale: Scale) -> None:
    """Refuse a scale whose name, levels or cuts are not valid."""
    key = f"scales: {scale.name}"
    check_word(scale.name, "scales: name")
    if scale.name in (*FIELDS, CODEBOOK_COLUMN):
        raise ManifestError(f"{key}: every manifest has a column of this name: choose another")
    if len(scale.levels) < 2:
        raise ManifestError(f"{key}: levels: at least two are needed")
    check_names_and_spellings(scale.levels, f"{key}: levels")
    if scale.cuts and len(scale.cuts) != len(scale.levels) - 1:
        raise ManifestError(
            f"{key}: cuts: {len(scale.levels)} levels need {len(scale.levels) - 1}, found {len(scale.cuts)}"
        )
    check_rising(scale.cuts, f"{key}: cuts")


def check_rising(numbers: Sequence[float], key: str) -> None:
    """Refuse numbers that are not finite or not rising; `key` is their key in the codebook file."""
    are_finite = all(math.isfinite(number) for number in numbers)
    are_rising = all(low < high for low, high in pairwise(numbers))
    if not are_finite or not are_rising:
        raise ManifestError(f"{key}: must rise, found {', '.join(map(str, numbers))}")


def check_unique(names: Iterable[str], key: str) -> None:
    """Refuse names if one is there twice; `key` is their key in the codebook file, for the message."""
    names_before: set[str] = set()
    for name in names:
        if name in names_before:
            raise ManifestError(f"{key}: {name!r} is there twice")
        names_before.add(name)


def check_word(word: str, key: str) -> None:
    """Refuse a name that cannot be used in manifests, options and file names; `key` is for the message."""
    check_text(word, key, empty=False)
    if any(sign in word for sign in "/\\;") or word.startswith((".", "-")):
        raise ManifestError(
            f"{key}: {word!r} holds a slash, a backslash or a semicolon, or begins with a dot or a dash"
        )


def check_text(text: str, key: str, *, empty: bool = True) -> None:
    """Refuse a text with control characters or spaces around it, and an empty one unless `empty` is true.

    `key` is the key of the codebook that it is from, for the message.
    """
    if not text and not empty:
        raise ManifestError(f"{key}: is empty")
    problem = unsuitable(text)
    if problem:
        raise ManifestError(f"{key}: {text!r} {problem}")
    if text != text.strip():
        raise ManifestError(f"{key}: {text!r} begins or ends with a space")


def check_codebook(codebook: "Codebook") -> None:
    """Refuse an invalid codebook.

    Raises
    ------
    ManifestError
        Naming the key.
    """
    check_word(codebook.name, "name")
    check_word(codebook.version, "version")

    if not codebook.levels:
        raise ManifestError("levels: there are none; a codebook needs at least one")
    check_names_and_spellings(codebook.levels, "levels")
    check_names_and_spellings(codebook.concepts, "concepts")
    check_positions(codebook.levels)

    for task in codebook.tasks:
        _check_task(task, codebook)
    check_unique([task.name for task in codebook.tasks], "tasks")

    for policy in codebook.policies:
        if policy not in POLICIES:
            near = suggestion(policy, POLICIES)
            raise ManifestError(f"policies: unknown label policy {policy!r}{near}")
    check_unique(codebook.policies, "policies")

    for scale in codebook.scales:
        check_scale(scale)
    check_unique([scale.name for scale in codebook.scales], "scales")

    _check_languages(codebook.constructs, "construct")
    translated_parts: tuple[Level | Concept, ...] = (*codebook.levels, *codebook.concepts)
    for part in translated_parts:
        _check_languages(part.translations, part.name)

    for concept in codebook.concepts:
        _check_modality(concept)
        for instance in concept.instances:
            check_text(instance.name, f"concepts: {concept.name}: instances: name", empty=False)

    for text in _texts_for_people(codebook):
        check_text(text, "text")


def _texts_for_people(codebook: "Codebook") -> list[str]:
    """Return all texts of a codebook that explain it to people: titles, meanings, examples, translations."""
    texts = [codebook.source, codebook.construct, *codebook.constructs.values(), *codebook.sub_constructs]
    for level in codebook.levels:
        texts += [level.title, level.means]
    for scale in codebook.scales:
        texts += [level.title for level in scale.levels]
    for concept in codebook.concepts:
        texts += [concept.group, concept.definition, concept.means]
        for instance in concept.instances:
            texts += instance.examples
    parts: tuple[Level | Concept, ...] = (*codebook.levels, *codebook.concepts)
    for part in parts:
        for translation in part.translations.values():
            texts += [translation.title, translation.means]
    return texts


def _check_languages(languages: Iterable[str], key: str) -> None:
    """Refuse translations under a key that is no language, such as `French` for `fr`."""
    for language in languages:
        if not LANGUAGE.fullmatch(language):
            raise ManifestError(
                f"{key}: {language!r} is no language: expected two or three letters, as in fr"
            )


def _check_modality(concept: Concept) -> None:
    """Refuse a modality that is none of MODALITIES, or that contradicts `visual` on whether pictures show it.

    A concept without a modality contradicts nothing.
    """
    if concept.modality and concept.modality not in MODALITIES:
        known = ", ".join(MODALITIES)
        raise ManifestError(
            f"concepts: {concept.name}: modality {concept.modality!r}: expected one of {known}"
        )
    is_shown_by_pictures = concept.modality in SHOWN_BY_PICTURES
    if concept.modality and concept.visual != is_shown_by_pictures:
        needed = "true" if is_shown_by_pictures else "false"
        raise ManifestError(
            f"concepts: {concept.name}: modality {concept.modality!r} needs visual = {needed}"
        )


def _check_task(task: Task, codebook: "Codebook") -> None:
    """Refuse a task with an invalid name, or whose two sides are not disjoint, non-empty sets of labels."""
    key = f"tasks.{task.name}"
    check_word(task.name, key)
    if task.name == ORDINAL_TASK or ":" in task.name:
        raise ManifestError(
            f"{key}: no name for a task: {ORDINAL_TASK!r} and names with a colon have a meaning of their own"
        )

    level_names = set(codebook.level_names)
    labels = set(codebook.labels)  # the levels that may be in a task
    for side, names in (("negative", task.negatives), ("positive", task.positives)):
        if not names:
            raise ManifestError(f"{key}: {side}: names no level")
        check_unique(names, f"{key}: {side}")
        for name in names:
            if name not in level_names:
                near = suggestion(name, spellings_of(codebook.levels))
                raise ManifestError(f"{key}: {side}: unknown level {name!r}{near}")
            if name not in labels:
                raise ManifestError(
                    f"{key}: {side}: the level {name!r} has label = false, so it can be in no task"
                )

    positives = set(task.positives)
    shared = [name for name in task.negatives if name in positives]
    if shared:
        raise ManifestError(f"{key}: the level {shared[0]!r} is both negative and positive")
