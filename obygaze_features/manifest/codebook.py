"""Codebooks: which levels, concepts, scales and tasks the labels of a manifest have."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import Any

from .clip import CODEBOOK_COLUMN, FIELDS, is_printable
from .codebook_parts import (
    Concept,
    Instance,
    Level,
    Named,
    Scale,
    Task,
    plain,
    spellings_of,
    suggestion,
)
from .codebook_toml import parts_of, toml_of
from .errors import ManifestError
from .table import text_of

__all__ = [
    "BUILTIN",
    "POLICIES",
    "Codebook",
    "Concept",
    "Instance",
    "Level",
    "Scale",
    "Task",
    "builtin_codebook",
    "find_codebook",
    "load_codebook",
    "starter",
]

BUILTIN: tuple[str, ...] = ("obygaze12", "mobygaze", "mediaeval15")
"""Codebooks that come with the package; the first is that of a manifest that names none."""

POLICIES: tuple[str, ...] = ("raw", "paper", "released")
"""Label policies that a codebook may list; `raw` can be used with every codebook."""

ORDINAL_TASK = "levels"
"""Stands for all levels in order wherever a task is named, so no task may be called that."""


@dataclass(frozen=True, slots=True)
class Codebook:
    """Levels in rising order, concepts in canonical order, and the tasks that they make.

    Parameters
    ----------
    name, version
        Manifests name their codebook by its name.
    levels
        From low to high.
    concepts
        In the order in which manifests list them.
    tasks
        Sets of levels to tell apart.
    policies
        Label policies that make sense for it, of POLICIES.
    scales
        Further ordered labels.
    sub_constructs
        What the concepts together stand for, as the source lists it.
    source
        Where it is from, for people.

    Raises
    ------
    ManifestError
        Naming the codebook and the key: no levels, a name twice or not allowed, a task of unknown levels, ...
    """

    name: str
    version: str
    levels: tuple[Level, ...]
    concepts: tuple[Concept, ...] = ()
    tasks: tuple[Task, ...] = ()
    policies: tuple[str, ...] = ()
    scales: tuple[Scale, ...] = ()
    sub_constructs: tuple[str, ...] = ()
    source: str = ""
    _ranks: Mapping[str, int] = field(init=False, repr=False, compare=False)
    _places: Mapping[str, int] = field(init=False, repr=False, compare=False)
    _level_spellings: Mapping[str, str] = field(init=False, repr=False, compare=False)
    _concept_spellings: Mapping[str, str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_ranks", {one.name: rank for rank, one in enumerate(self.levels)})
        object.__setattr__(self, "_places", {one.name: place for place, one in enumerate(self.concepts)})
        object.__setattr__(self, "_level_spellings", spellings_of(self.levels))
        object.__setattr__(self, "_concept_spellings", spellings_of(self.concepts))
        try:
            _check(self)
        except ManifestError as error:
            raise ManifestError(f"codebook {self.name!r}: {error}") from None

    @property
    def level_names(self) -> tuple[str, ...]:
        """All levels, from low to high."""
        return tuple(self._ranks)

    @property
    def labels(self) -> tuple[str, ...]:
        """The levels that can be in a task, from low to high."""
        return tuple(level.name for level in self.levels if level.label)

    @property
    def concept_names(self) -> tuple[str, ...]:
        """All concepts, in canonical order."""
        return tuple(self._places)

    @property
    def visual_concepts(self) -> tuple[str, ...]:
        """The concepts that an image can show."""
        return tuple(concept.name for concept in self.concepts if concept.visual)

    @property
    def non_visual_concepts(self) -> tuple[str, ...]:
        """The concepts that no image shows."""
        return tuple(concept.name for concept in self.concepts if not concept.visual)

    def rank(self, level: str) -> int:
        """Count the levels below a level."""
        return self._ranks[self.level_named(level)]

    def in_order(self, concepts: Iterable[str]) -> tuple[str, ...]:
        """Put concepts in canonical order, each once."""
        return tuple(sorted({self.concept_named(name) for name in concepts}, key=self._places.__getitem__))

    def visual(self, concepts: Iterable[str]) -> tuple[str, ...]:
        """Keep the visual concepts."""
        return tuple(name for name in concepts if self.concepts[self._places[name]].visual)

    def level_named(self, name: str) -> str:
        """Return a level's name if it is exactly one of this codebook's.

        Raises
        ------
        ManifestError
            If no level has this name; the message suggests the nearest one.
        """
        if name not in self._ranks:
            raise self._unknown("level", name, self._level_spellings, "level")
        return name

    def level_spelled(self, text: str) -> str:
        """Find a level's name from its name, title or synonym, whatever the case and blanks."""
        level = self._level_spellings.get(plain(text))
        return level if level is not None else self.level_named(text)

    def concept_named(self, name: str) -> str:
        """Return a concept's name if it is exactly one of this codebook's.

        Raises
        ------
        ManifestError
            If no concept has this name; the message suggests the nearest one.
        """
        if name not in self._places:
            raise self._unknown("concept", name, self._concept_spellings, "concepts")
        return name

    def concept_spelled(self, text: str) -> str:
        """Find a concept's name from its name or synonym, whatever the case and blanks."""
        concept = self._concept_spellings.get(plain(text))
        return concept if concept is not None else self.concept_named(text)

    def task(self, name: str) -> Task:
        """Find a task by its name.

        Raises
        ------
        ManifestError
            If there is no such task; the message suggests the nearest one.
        """
        for task in self.tasks:
            if task.name == name:
                return task
        raise self._unknown("task", name, {plain(task.name): task.name for task in self.tasks})

    def scale(self, name: str) -> Scale:
        """Find a scale by its name.

        Raises
        ------
        ManifestError
            If there is no such scale; the message suggests the nearest one.
        """
        for scale in self.scales:
            if scale.name == name:
                return scale
        raise self._unknown("scale", name, {plain(scale.name): scale.name for scale in self.scales})

    def record(self) -> dict[str, Any]:
        """Give the codebook as plain values, in the keys of its file, without what is empty or default."""
        return _without_defaults(
            {
                "name": self.name,
                "version": self.version,
                "source": self.source,
                "policies": list(self.policies),
                "sub_constructs": list(self.sub_constructs),
                "levels": [_level_record(level) for level in self.levels],
                "concepts": [
                    _without_defaults(
                        {
                            "name": one.name,
                            "group": one.group,
                            "visual": one.visual,
                            "definition": one.definition,
                            "synonyms": list(one.synonyms),
                            "instances": [
                                _without_defaults({"name": it.name, "examples": list(it.examples)})
                                for it in one.instances
                            ],
                        }
                    )
                    for one in self.concepts
                ],
                "tasks": {
                    task.name: {"negative": list(task.negatives), "positive": list(task.positives)}
                    for task in self.tasks
                },
                "scales": [
                    _without_defaults(
                        {
                            "name": one.name,
                            "cuts": list(one.cuts),
                            "levels": [_level_record(level) for level in one.levels],
                        }
                    )
                    for one in self.scales
                ],
            }
        )

    def to_toml(self) -> str:
        """Write the codebook as the text of a codebook file, which `load_codebook` reads back as equal."""
        return toml_of(self.record())

    def digest(self) -> str:
        """Hash the record as JSON with sorted keys and without blanks: SHA-256, hexadecimal."""
        canonical = json.dumps(self.record(), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(canonical.encode("utf-8")).hexdigest()

    def _unknown(self, kind: str, text: str, known: Mapping[str, str], column: str = "") -> ManifestError:
        hint = suggestion(text, known) or f" (it has no {kind}s)"
        return ManifestError(f"unknown {kind} {text!r}{hint} in the codebook {self.name!r}", column)


def load_codebook(path: str | Path) -> Codebook:
    """Read and check a codebook file.

    Raises
    ------
    ManifestError
        Naming file and key of what is wrong; or if another codebook than a built-in one has its name.
    """
    path = Path(path)
    text = text_of(path)
    try:
        codebook = Codebook(**parts_of(text))
    except ManifestError as error:
        raise ManifestError(f"{path}: {error}") from None
    if codebook.name in BUILTIN and codebook != builtin_codebook(codebook.name):
        raise ManifestError(
            f"{path}: name: {codebook.name!r} is a built-in codebook, and this one differs: "
            "give it another name"
        )
    return codebook


@cache
def builtin_codebook(name: str) -> Codebook:
    """Read a codebook that comes with the package.

    Raises
    ------
    ManifestError
        If there is none of this name; the message suggests the nearest one.
    """
    if name not in BUILTIN:
        hint = suggestion(name, {one: one for one in BUILTIN})
        raise ManifestError(f"unknown codebook {name!r}{hint}")
    return Codebook(**parts_of(_packaged(f"{name}.codebook.toml")))


def starter() -> str:
    """Give the text of a commented codebook file to begin with."""
    return _packaged("starter.toml")


def find_codebook(name_or_path: str) -> Codebook:
    """Find a codebook by the name of a built-in one, or by its file.

    Raises
    ------
    ManifestError
        If it is neither; or the file is no codebook.
    """
    if name_or_path in BUILTIN:
        return builtin_codebook(name_or_path)
    path = Path(name_or_path)
    if not path.is_file() and path.suffix != ".toml":
        hint = suggestion(name_or_path, {one: one for one in BUILTIN})
        raise ManifestError(f"{name_or_path}: neither a file nor a built-in codebook{hint}")
    return load_codebook(path)


def _packaged(name: str) -> str:
    return resources.files(__package__).joinpath("codebooks", name).read_text(encoding="utf-8")


def _without_defaults(record: dict[str, Any]) -> dict[str, Any]:
    """Leave out empty values and what is true: the defaults of every key that a file may lack."""
    return {
        key: value for key, value in record.items() if value not in ("", [], {}, None) and value is not True
    }


def _level_record(level: Level) -> dict[str, Any]:
    return _without_defaults(
        {
            "name": level.name,
            "title": level.title,
            "label": level.label,
            "synonyms": list(level.synonyms),
            "position": level.position,
        }
    )


def _check(codebook: Codebook) -> None:
    """Refuse what no codebook can be, naming the key."""
    _check_word(codebook.name, "name")
    _check_word(codebook.version, "version")
    if not codebook.levels:
        raise ManifestError("levels: there are none; a codebook needs at least one")
    _check_named(codebook.levels, "levels")
    _check_named(codebook.concepts, "concepts")
    _check_positions(codebook.levels)
    for task in codebook.tasks:
        _check_task(task, codebook)
    _check_once([task.name for task in codebook.tasks], "tasks")
    for policy in codebook.policies:
        if policy not in POLICIES:
            near = suggestion(policy, {one: one for one in POLICIES})
            raise ManifestError(f"policies: unknown label policy {policy!r}{near}")
    _check_once(codebook.policies, "policies")
    for scale in codebook.scales:
        _check_scale(scale)
    _check_once([scale.name for scale in codebook.scales], "scales")
    texts = [codebook.source, *codebook.sub_constructs]
    texts += [level.title for level in codebook.levels]
    texts += [level.title for scale in codebook.scales for level in scale.levels]
    for concept in codebook.concepts:
        texts += [concept.group, concept.definition]
        for instance in concept.instances:
            _check_text(instance.name, f"concepts: {concept.name}: instances: name", empty=False)
            texts += instance.examples
    for text in texts:
        _check_text(text, "text")


def _check_task(task: Task, codebook: Codebook) -> None:
    key = f"tasks.{task.name}"
    _check_word(task.name, key)
    if task.name == ORDINAL_TASK or ":" in task.name:
        raise ManifestError(
            f"{key}: no name for a task: {ORDINAL_TASK!r} and names with a colon have a meaning of their own"
        )
    for side, names in (("negative", task.negatives), ("positive", task.positives)):
        if not names:
            raise ManifestError(f"{key}: {side}: names no level")
        _check_once(names, f"{key}: {side}")
        for name in names:
            if name not in codebook.level_names:
                near = suggestion(name, spellings_of(codebook.levels))
                raise ManifestError(f"{key}: {side}: unknown level {name!r}{near}")
            if name not in codebook.labels:
                raise ManifestError(
                    f"{key}: {side}: the level {name!r} has label = false, so it can be in no task"
                )
    both = [name for name in task.negatives if name in task.positives]
    if both:
        raise ManifestError(f"{key}: the level {both[0]!r} is both negative and positive")


def _check_scale(scale: Scale) -> None:
    key = f"scales: {scale.name}"
    _check_word(scale.name, "scales: name")
    if scale.name in (*FIELDS, CODEBOOK_COLUMN):
        raise ManifestError(f"{key}: every manifest has a column of this name: choose another")
    if len(scale.levels) < 2:
        raise ManifestError(f"{key}: levels: at least two are needed")
    _check_named(scale.levels, f"{key}: levels")
    if scale.cuts and len(scale.cuts) != len(scale.levels) - 1:
        raise ManifestError(
            f"{key}: cuts: {len(scale.levels)} levels need {len(scale.levels) - 1}, found {len(scale.cuts)}"
        )
    if any(low >= high for low, high in pairwise(scale.cuts)):
        raise ManifestError(f"{key}: cuts: must rise, found {', '.join(map(str, scale.cuts))}")


def _check_positions(levels: tuple[Level, ...]) -> None:
    positions = [level.position for level in levels if level.position is not None]
    if positions and len(positions) != len(levels):
        raise ManifestError("levels: position: give it for all levels, or for none")
    if any(low >= high for low, high in pairwise(positions)):
        raise ManifestError(f"levels: position: must rise, found {', '.join(map(str, positions))}")


def _check_named(named: Iterable[Named], key: str) -> None:
    """Check names, and that no spelling stands for two of them."""
    meant: dict[str, str] = {}
    names: set[str] = set()
    for one in named:
        _check_word(one.name, f"{key}: name")
        if one.name in names:
            raise ManifestError(f"{key}: {one.name!r} is there twice")
        names.add(one.name)
        for spelling in one.spellings:
            _check_text(spelling, f"{key}: {one.name}: synonyms", empty=False)
            other = meant.setdefault(plain(spelling), one.name)
            if other != one.name:
                raise ManifestError(f"{key}: {spelling!r} could be {other!r} or {one.name!r}")


def _check_once(names: Iterable[str], key: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ManifestError(f"{key}: {name!r} is there twice")
        seen.add(name)


def _check_word(word: str, key: str) -> None:
    """Check a name that manifests, options and files hold."""
    _check_text(word, key, empty=False)
    if any(sign in word for sign in "/\\;") or word.startswith((".", "-")):
        raise ManifestError(
            f"{key}: {word!r} holds a slash, a backslash or a semicolon, or begins with a dot or a dash"
        )


def _check_text(text: str, key: str, *, empty: bool = True) -> None:
    if not (text or empty):
        raise ManifestError(f"{key}: is empty")
    if not is_printable(text):
        raise ManifestError(f"{key}: {text!r} holds a character that cannot be printed")
    if text != text.strip():
        raise ManifestError(f"{key}: {text!r} begins or ends with a space")
