"""Codebooks: the levels, concepts, scales and tasks of a manifest's labels."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

from obygaze_features.errors import ManifestError
from obygaze_features.manifest.codebook_check import POLICIES, check_codebook
from obygaze_features.manifest.codebook_parts import (
    Concept,
    Instance,
    Level,
    Scale,
    Task,
    plain,
    spellings_of,
    suggestion,
)
from obygaze_features.manifest.codebook_toml import parts_of, record_of, toml_of
from obygaze_features.manifest.table import text_of

Part = TypeVar("Part", Task, Scale)

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

    Examples
    --------
    >>> from obygaze_features import Codebook
    >>> from obygaze_features.manifest import Level, Task
    >>> levels = (Level("calm"), Level("violent"))
    >>> mine = Codebook("fights", "1", levels, tasks=(Task("violence", ("calm",), ("violent",)),))
    >>> mine.level_names
    ('calm', 'violent')
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
            check_codebook(self)
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
        return tuple(
            name for name in concepts if self.concepts[self._places[self.concept_named(name)]].visual
        )

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
        """Find a level's name from its name, title or synonym; case and blanks are ignored."""
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
        """Find a concept's name from its name or synonym; case and blanks are ignored."""
        concept = self._concept_spellings.get(plain(text))
        return concept if concept is not None else self.concept_named(text)

    def task(self, name: str) -> Task:
        """Find a task by its name.

        Raises
        ------
        ManifestError
            If there is no such task; the message suggests the nearest one.
        """
        return self._find("task", self.tasks, name)

    def scale(self, name: str) -> Scale:
        """Find a scale by its name.

        Raises
        ------
        ManifestError
            If there is no such scale; the message suggests the nearest one.
        """
        return self._find("scale", self.scales, name)

    def record(self) -> dict[str, Any]:
        """Return the codebook as plain values, in the keys of its file, without what is empty or default."""
        return record_of(self)

    def to_toml(self) -> str:
        """Write the codebook as the text of a codebook file, which `load_codebook` reads back as equal."""
        return toml_of(self.record())

    def digest(self) -> str:
        """Hash the record as JSON with sorted keys and without blanks: SHA-256, hexadecimal."""
        canonical = json.dumps(self.record(), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(canonical.encode("utf-8")).hexdigest()

    def _find(self, kind: str, things: Sequence[Part], name: str) -> Part:
        for thing in things:
            if thing.name == name:
                return thing
        raise self._unknown(kind, name, {plain(thing.name): thing.name for thing in things})

    def _unknown(self, kind: str, text: str, known: Mapping[str, str], column: str = "") -> ManifestError:
        hint = suggestion(text, known) or f" (it has no {kind}s)"
        return ManifestError(f"unknown {kind} {text!r}{hint} in the codebook {self.name!r}", column)


def load_codebook(path: str | Path) -> Codebook:
    r"""Read and check a codebook file.

    Raises
    ------
    ManifestError
        Naming file and key of what is wrong; or if another codebook than a built-in one has its name.

    Examples
    --------
    >>> from pathlib import Path
    >>> from obygaze_features import load_codebook
    >>> levels = "".join(f'[[levels]]\nname = "{name}"\n' for name in ("calm", "violent"))
    >>> _ = Path("fights.codebook.toml").write_text(f'name = "fights"\nversion = "1"\n{levels}')
    >>> load_codebook("fights.codebook.toml").name
    'fights'
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
    """Read a built-in codebook.

    Raises
    ------
    ManifestError
        If there is none of this name; the message suggests the nearest one.

    Examples
    --------
    >>> from obygaze_features import builtin_codebook
    >>> builtin_codebook("obygaze12").level_names
    ('EN', 'HN', 'NS', 'S')
    """
    if name not in BUILTIN:
        hint = suggestion(name, {one: one for one in BUILTIN})
        raise ManifestError(f"unknown codebook {name!r}{hint}")
    return Codebook(**parts_of(_packaged(f"{name}.codebook.toml")))


def starter() -> str:
    """Return the text of a commented codebook file to begin with."""
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
