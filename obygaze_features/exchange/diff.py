"""Compare two stores (clips, provenance, values), such as two labs' extractions of the same films."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from obygaze_features.arguments import checked
from obygaze_features.store.format import TIME_ARRAYS
from obygaze_features.store.group import Group, rows_of
from obygaze_features.store.provenance import clipped, contrasts, same_numerics
from obygaze_features.store.store import Store
from obygaze_features.text import first_few

Contrasts = tuple[tuple[str, str, str], ...]
"""Dotted fields with the values in the first and in the second store, as JSON."""

TOLD = ("status", "reason", "absent", "movie", "start_s", "end_s", "source", "text")
"""Fields of a clip that are compared beside its features."""


@dataclass(frozen=True, slots=True)
class ArrayDiff:
    """How one array differs over the clips that both stores have features of.

    Attributes
    ----------
    array
        `group/array`.
    unlike
        In words, if the arrays cannot be compared; then nothing else is known.
    clips
        Clips compared.
    changed
        Clips of which any value differs in any bit, or whose number of frames differs.
    resized
        Those of them whose number of frames differs: their values are not compared.
    max_abs
        Largest absolute difference of two values, computed in float64.
    max_abs_clip
        The clip that has it; empty if nothing differs.
    min_cosine
        Smallest cosine of two corresponding vectors; None for times and indices, which are no vectors.
    """

    array: str
    unlike: str = ""
    clips: int = 0
    changed: int = 0
    resized: int = 0
    max_abs: float = 0.0
    max_abs_clip: str = ""
    min_cosine: float | None = None


@dataclass(frozen=True)
class StoreDiff:
    """The differences between two stores; `equal` if there are none.

    Attributes
    ----------
    about
        Fields of the attributes that differ: licence, citation, corpus, parent.
    only_first, only_second
        Clips of one store alone.
    clips
        Field (status, reason, movie, ...) -> common clips in which it differs.
    statuses
        (status in the first, in the second) -> number of common clips, where they differ.
    groups_first, groups_second
        Backbones of one store alone.
    provenance
        Backbone -> fields that differ.
    numerics
        Backbone -> names of those that forbid mixing the features.
    arrays
        One entry for each array of the common backbones.
    """

    about: Contrasts
    only_first: tuple[str, ...]
    only_second: tuple[str, ...]
    clips: Mapping[str, tuple[str, ...]]
    statuses: Mapping[tuple[str, str], int]
    groups_first: tuple[str, ...]
    groups_second: tuple[str, ...]
    provenance: Mapping[str, Contrasts]
    numerics: Mapping[str, tuple[str, ...]]
    arrays: tuple[ArrayDiff, ...]

    @property
    def equal(self) -> bool:
        """Whether nothing differs."""
        alone = (self.about, self.only_first, self.only_second, self.groups_first, self.groups_second)
        changed = any(array.unlike or array.changed for array in self.arrays)
        return not (any(alone) or self.clips or any(self.provenance.values()) or changed)

    def record(self) -> dict[str, object]:
        """Return all of it as plain JSON."""
        provenance = {}
        for name, contrasts_of_group in self.provenance.items():
            numerics = self.numerics[name]
            provenance[name] = [
                {"field": field, "numerics": field in numerics} for field, _, _ in contrasts_of_group
            ]
        return {
            "equal": self.equal,
            "about": [field for field, _, _ in self.about],
            "only_first": list(self.only_first),
            "only_second": list(self.only_second),
            "clips": {field: list(clips) for field, clips in self.clips.items()},
            "groups_first": list(self.groups_first),
            "groups_second": list(self.groups_second),
            "provenance": provenance,
            "arrays": [asdict(array) for array in self.arrays],
        }


@checked
def diff(first: Store, second: Store) -> StoreDiff:
    """Compare two stores; features are streamed, so memory stays bounded.

    Raises
    ------
    StoreError
        If a store's bytes are damaged or gone.

    Examples
    --------
    >>> from obygaze_features import diff, open_store
    >>> found = diff(open_store("stores/films"), open_store("stores/films-1.0.0"))
    >>> found.equal
    True
    """
    theirs = {clip.clip_id: clip for clip in second.clips}
    common = [(clip, theirs[clip.clip_id]) for clip in first.clips if clip.clip_id in theirs]
    changed = {}
    for field in TOLD:
        changed[field] = tuple(
            clip.clip_id for clip, twin in common if getattr(clip, field) != getattr(twin, field)
        )
    shared = [name for name in first if name in second]
    provenance = {name: (first[name].provenance, second[name].provenance) for name in shared}
    return StoreDiff(
        about=tuple(contrasts(dict(first.attributes), dict(second.attributes))),
        only_first=tuple(clip.clip_id for clip in first.clips if clip.clip_id not in theirs),
        only_second=tuple(sorted(theirs.keys() - {clip.clip_id for clip in first.clips})),
        clips={field: clips for field, clips in changed.items() if clips},
        statuses=Counter((a.status, b.status) for a, b in common if a.status != b.status),
        groups_first=tuple(name for name in first if name not in second),
        groups_second=tuple(name for name in second if name not in first),
        provenance={name: tuple(contrasts(*provenances)) for name, provenances in provenance.items()},
        numerics={name: tuple(same_numerics(*provenances)) for name, provenances in provenance.items()},
        arrays=tuple(array for name in shared for array in _compare(first[name], second[name])),
    )


def _compare(first: Group, second: Group) -> list[ArrayDiff]:
    usable = {clip: row for row, clip in enumerate(second.clip_ids) if second.usable[row]}
    mine = [row for row, clip in enumerate(first.clip_ids) if first.usable[row] and clip in usable]
    theirs = [usable[first.clip_ids[row]] for row in mine]
    diffs = []
    for array in dict.fromkeys((*first.arrays, *second.arrays, *TIME_ARRAYS)):
        if unlike := _unlike(first, second, array):
            diffs.append(ArrayDiff(f"{first.name}/{array}", unlike))
        else:
            diffs.append(_compare_values(array, _Rows(first, mine), _Rows(second, theirs)))
    return diffs


def _unlike(first: Group, second: Group, array: str) -> str:
    """Explain why an array cannot be compared, if so."""
    kinds = []
    for group in (first, second):
        if array not in (*group.arrays, *TIME_ARRAYS):
            kinds.append("no such array")
        else:
            kinds.append(f"{group.dtype(array).name} {group.shown_shape(array)} a clip")
    return "" if kinds[0] == kinds[1] else f"{kinds[0]} against {kinds[1]}"


class _Rows(NamedTuple):
    """Rows of a backbone's arrays."""

    group: Group
    rows: Sequence[int]

    def values(self, array: str) -> Iterator[NDArray[Any]]:
        return rows_of(self.group, array, self.rows)


def _compare_values(array: str, first: _Rows, second: _Rows) -> ArrayDiff:
    """Compare an array of the same clips, row by row."""
    changed = 0
    resized = 0
    max_abs = 0.0
    max_abs_clip = ""
    has_cosine = bool(first.rows) and array not in TIME_ARRAYS
    cosine = 1.0
    for row, ours, theirs in zip(first.rows, first.values(array), second.values(array), strict=True):
        if ours.tobytes() == theirs.tobytes():
            continue
        changed += 1
        if len(ours) != len(theirs):
            resized += 1
            continue
        largest = _max_abs(ours, theirs)
        if largest > max_abs or not max_abs_clip:
            max_abs = largest
            max_abs_clip = first.group.clip_ids[row]
        if has_cosine:
            cosine = min(cosine, min_cosine(ours, theirs))
    return ArrayDiff(
        array=f"{first.group.name}/{array}",
        clips=len(first.rows),
        changed=changed,
        resized=resized,
        max_abs=max_abs,
        max_abs_clip=max_abs_clip,
        min_cosine=cosine if has_cosine else None,
    )


def _max_abs(a: NDArray[Any], b: NDArray[Any]) -> float:
    apart = np.abs(a.astype(np.float64) - b.astype(np.float64))
    return float(apart.max(where=~np.isnan(apart), initial=0.0))  # NaN is an unknown time


def min_cosine(a: NDArray[Any], b: NDArray[Any]) -> float:
    """Return the smallest cosine of corresponding vectors of two arrays [..., D], in float64.

    Two zero vectors are alike (1); a zero vector and another have none, which counts as 0.
    """
    x = a.astype(np.float64)
    y = b.astype(np.float64)
    norms = np.linalg.norm(x, axis=-1) * np.linalg.norm(y, axis=-1)
    alike = (x == y).all(axis=-1)
    products = (x * y).sum(axis=-1)
    cosines = np.divide(products, norms, out=np.zeros_like(products), where=norms > 0)
    return float(np.where(alike, 1.0, np.clip(cosines, -1.0, 1.0)).min())


def in_words(result: StoreDiff, first: str, second: str, *, most: int = 5) -> list[str]:
    """Describe the differences, one line each, naming at most `most` clips."""

    def values(field: str, in_first: str, in_second: str) -> str:
        return f"{field} is {clipped(in_first)} in {first}, {clipped(in_second)} in {second}"

    lines = [f"store: {values(*contrast)}" for contrast in result.about]
    for where, clips, names in (
        (first, result.only_first, result.groups_first),
        (second, result.only_second, result.groups_second),
    ):
        if clips:
            lines.append(f"clips: {len(clips)} only in {where}: {first_few(clips, most)}")
        lines += [f"features of {name}: only in {where}" for name in names]
    for (a, b), count in sorted(result.statuses.items()):
        lines.append(f"clips: {count} {a} in {first}, {b} in {second}")
    for field, clips in result.clips.items():
        lines.append(f"clips: {field} differs for {len(clips)}: {first_few(clips, most)}")
    for name, fields in result.provenance.items():
        for contrast in fields:
            matters = " (so the features must not be mixed)" if contrast[0] in result.numerics[name] else ""
            lines.append(f"provenance of {name}: {values(*contrast)}{matters}")
    return [*lines, *filter(None, map(_array_in_words, result.arrays))]


def _array_in_words(array: ArrayDiff) -> str:
    if array.unlike:
        return f"values of {array.array}: {array.unlike}"
    if not array.changed:
        return ""
    text = f"values of {array.array}: {array.changed} of {array.clips} clips differ"
    if array.resized:
        text += f", {array.resized} of them in their number of frames"
    if array.resized < array.changed:
        text += f", by at most {array.max_abs:.6g} ({array.max_abs_clip})"
        if array.min_cosine is not None:
            text += f", smallest cosine {array.min_cosine:.9f}"
    return text
