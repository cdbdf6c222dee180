"""Check codebooks: valid names, unambiguous spellings, possible tasks."""

from collections.abc import Iterable
from itertools import pairwise
from typing import TYPE_CHECKING

from obygaze_features.errors import ManifestError
from obygaze_features.manifest.clip import CODEBOOK_COLUMN, FIELDS
from obygaze_features.manifest.codebook_parts import (
    Level,
    Named,
    Scale,
    Task,
    plain,
    spellings_of,
    suggestion,
)
from obygaze_features.text import unsuitable

if TYPE_CHECKING:
    from obygaze_features.manifest.codebook import Codebook

POLICIES: tuple[str, ...] = ("raw", "paper", "released")
"""Label policies that a codebook may list; `raw` can be used with every codebook."""

ORDINAL_TASK = "levels"
"""Stands for all levels in order wherever a task is named, so no task may be called that."""


def check_codebook(codebook: "Codebook") -> None:
    """Refuse an invalid codebook.

    Raises
    ------
    ManifestError
        Naming the key.
    """
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


def _check_task(task: Task, codebook: "Codebook") -> None:
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
    if what := unsuitable(text):
        raise ManifestError(f"{key}: {text!r} {what}")
    if text != text.strip():
        raise ManifestError(f"{key}: {text!r} begins or ends with a space")
