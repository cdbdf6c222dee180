"""Compare two stores (clips, provenance, values), such as two labs' extractions of the same films."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from obygaze_features.arguments import checked
from obygaze_features.store.format import TIME_ARRAYS
from obygaze_features.store.group import Group, rows_of
from obygaze_features.store.provenance import Contrast, clipped, contrasts, same_numerics
from obygaze_features.store.records import StoredClip
from obygaze_features.store.store import Store
from obygaze_features.text import counted, first_few

Contrasts = tuple[Contrast, ...]
"""Fields with the values in the first and in the second store."""

CLIP_FIELDS = (
    "status",
    "reason",
    "without_pictures_s",
    "absent",
    "movie",
    "start_s",
    "end_s",
    "source",
    "text",
)
"""Fields of a clip that are compared, besides its features."""


@dataclass(frozen=True, slots=True)
class ArrayDiff:
    """How one array differs over the clips that both stores have features of.

    Attributes
    ----------
    array
        `group/array`.
    unlike
        Why the arrays cannot be compared; then nothing else is known. Empty if they can.
    clips
        Number of clips compared.
    changed
        Number of clips of which any value differs in any bit, or whose number of frames differs.
    resized
        Number of clips whose number of frames differs; their values are not compared.
    max_abs
        Largest absolute difference of two values, computed in float64.
    max_abs_clip
        The clip with this difference; empty if nothing differs.
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
        Clips that only the first or only the second store has.
    clips
        Field (status, reason, movie, ...) -> common clips in which it differs.
    statuses
        (status in the first, in the second) -> number of common clips, where they differ.
    groups_first, groups_second
        Backbones that only the first or only the second store has.
    provenance
        Backbone -> fields of the provenance that differ.
    numerics
        Backbone -> names of the differing fields that forbid mixing the features.
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
        """Whether nothing differs: attributes, clips with their statuses, groups, provenance and features."""
        differences = (
            self.about,
            self.only_first,
            self.only_second,
            self.clips,
            self.groups_first,
            self.groups_second,
            any(self.provenance.values()),
            any(array.unlike or array.changed for array in self.arrays),
        )
        return not any(differences)

    def record(self) -> dict[str, object]:
        """Return all differences as plain values for JSON.

        Each differing field of the provenance has the key `numerics`: true if features of two groups that
        differ in this field must not be mixed, false if the field does not affect the numbers.
        """
        provenance = {}
        for name, contrasts_of_group in self.provenance.items():
            fields_against_mixing = self.numerics[name]
            provenance[name] = [
                {"field": contrast.field, "numerics": contrast.field in fields_against_mixing}
                for contrast in contrasts_of_group
            ]
        return {
            "equal": self.equal,
            "about": [contrast.field for contrast in self.about],
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
    """Compare the attributes, clips, provenance and features of two stores.

    Features are read in blocks, so memory stays bounded.

    Raises
    ------
    StoreError
        If a store's bytes are damaged or gone.

    Examples
    --------
    >>> from obygaze_features import diff, open_store
    >>> differences = diff(open_store("stores/films"), open_store("stores/films-1.0.0"))
    >>> differences.equal
    True
    """
    second_clips = {clip.clip_id: clip for clip in second.clips}
    first_ids = {clip.clip_id for clip in first.clips}
    ids_only_in_first = [clip.clip_id for clip in first.clips if clip.clip_id not in second_clips]
    ids_only_in_second = sorted(second_clips.keys() - first_ids)
    # Each clip that both stores have, as the first and as the second store record it.
    common = [(clip, second_clips[clip.clip_id]) for clip in first.clips if clip.clip_id in second_clips]

    # The groups that both stores have
    provenance: dict[str, Contrasts] = {}
    fields_against_mixing: dict[str, tuple[str, ...]] = {}
    arrays: list[ArrayDiff] = []
    for name in first:
        if name not in second:
            continue
        first_provenance = first[name].provenance
        second_provenance = second[name].provenance
        provenance[name] = tuple(contrasts(first_provenance, second_provenance))
        # `same_numerics` returns fields that differ: those for which features must not be mixed.
        fields_against_mixing[name] = tuple(same_numerics(first_provenance, second_provenance))
        arrays += _compare_groups(first[name], second[name])

    attribute_contrasts = contrasts(dict(first.attributes), dict(second.attributes))
    return StoreDiff(
        about=tuple(attribute_contrasts),
        only_first=tuple(ids_only_in_first),
        only_second=tuple(ids_only_in_second),
        clips=_changed_clips(common),
        statuses=_changed_statuses(common),
        groups_first=tuple(name for name in first if name not in second),
        groups_second=tuple(name for name in second if name not in first),
        provenance=provenance,
        numerics=fields_against_mixing,
        arrays=tuple(arrays),
    )


def _changed_clips(common: Sequence[tuple[StoredClip, StoredClip]]) -> dict[str, tuple[str, ...]]:
    """Return field -> ids of the clips in which it differs, without fields that are equal in all clips.

    `common` has each clip that both stores have, as the first and as the second store record it.
    """
    changed_clips = {}
    for field in CLIP_FIELDS:
        changed_ids = []
        for in_first, in_second in common:
            if getattr(in_first, field) != getattr(in_second, field):
                changed_ids.append(in_first.clip_id)
        if changed_ids:
            changed_clips[field] = tuple(changed_ids)
    return changed_clips


def _changed_statuses(common: Sequence[tuple[StoredClip, StoredClip]]) -> Counter[tuple[str, str]]:
    """Count the clips with different statuses: (status in the first, in the second) -> number of clips.

    Parameters
    ----------
    common
        Each clip that both stores have, as the first and as the second store record it.
    """
    counter = Counter[tuple[str, str]]()
    for in_first, in_second in common:
        if in_first.status != in_second.status:
            counter[in_first.status, in_second.status] += 1
    return counter


def _compare_groups(first: Group, second: Group) -> list[ArrayDiff]:
    """Compare every array of a group in two stores, over the clips for which both have usable features.

    The clips may be in different rows of the stores.
    """
    usable_in_second = {clip: row for row, clip in enumerate(second.clip_ids) if second.usable[row]}
    rows_in_first = []  # of the same clips, in the same order, as `rows_in_second`
    rows_in_second = []
    for row, clip in enumerate(first.clip_ids):
        if first.usable[row] and clip in usable_in_second:
            rows_in_first.append(row)
            rows_in_second.append(usable_in_second[clip])

    all_arrays = dict.fromkeys((*first.arrays, *second.arrays, *TIME_ARRAYS))  # each name once, in order
    diffs = []
    for array in all_arrays:
        type_in_first = _type_and_shape(first, array)
        type_in_second = _type_and_shape(second, array)
        if type_in_first == type_in_second:
            diffs.append(_compare_values(array, first, rows_in_first, second, rows_in_second))
        else:
            diffs.append(ArrayDiff(f"{first.name}/{array}", f"{type_in_first} against {type_in_second}"))
    return diffs


def _type_and_shape(group: Group, array: str) -> str:
    """Return an array's data type and shape for one clip as text, such as "float32 [768] a clip"."""
    if array not in (*group.arrays, *TIME_ARRAYS):
        return "no such array"
    return f"{group.dtype(array).name} {group.shown_shape(array)} a clip"


def _compare_values(
    array: str, first: Group, rows_in_first: Sequence[int], second: Group, rows_in_second: Sequence[int]
) -> ArrayDiff:
    """Compare an array of two stores over the same clips, clip by clip.

    Counted are the clips whose values differ, and those among them with another number of frames. Of the
    others, the largest absolute difference and the smallest cosine are found.

    The rows are those of the clips in each store, in the same order.
    """
    n_changed = 0
    n_with_other_length = 0
    max_abs = 0.0
    max_abs_clip = ""  # until a clip with the same number of frames differs
    has_vectors = len(rows_in_first) > 0 and array not in TIME_ARRAYS
    smallest_cosine = 1.0
    values_in_first = rows_of(first, array, rows_in_first)
    values_in_second = rows_of(second, array, rows_in_second)
    for row, a, b in zip(rows_in_first, values_in_first, values_in_second, strict=True):
        if a.tobytes() == b.tobytes():
            continue
        n_changed += 1
        have_same_length = len(a) == len(b)
        if not have_same_length:
            n_with_other_length += 1
            continue
        difference = _max_abs(a, b)
        is_first = max_abs_clip == ""
        if is_first or difference > max_abs:
            max_abs = difference
            max_abs_clip = first.clip_ids[row]
        if has_vectors:
            smallest_cosine = min(smallest_cosine, min_cosine(a, b))
    return ArrayDiff(
        array=f"{first.name}/{array}",
        clips=len(rows_in_first),
        changed=n_changed,
        resized=n_with_other_length,
        max_abs=max_abs,
        max_abs_clip=max_abs_clip,
        min_cosine=smallest_cosine if has_vectors else None,
    )


def _max_abs(a: NDArray[Any], b: NDArray[Any]) -> float:
    """Return the largest absolute difference of two arrays of one shape, computed in float64.

    Differences with NaN, which stands for an unknown time, do not count.
    """
    differences = np.abs(a.astype(np.float64) - b.astype(np.float64))
    return float(differences.max(where=~np.isnan(differences), initial=0.0))


def min_cosine(a: NDArray[Any], b: NDArray[Any]) -> float:
    """Return the smallest cosine of corresponding vectors of two arrays [..., D], computed in float64.

    Equal vectors count as 1, also if they are zero. A zero vector and another one count as 0.
    """
    x = a.astype(np.float64)
    y = b.astype(np.float64)
    norms = np.linalg.norm(x, axis=-1) * np.linalg.norm(y, axis=-1)
    products = (x * y).sum(axis=-1)
    cosines = np.divide(products, norms, out=np.zeros_like(products), where=norms > 0)
    within_bounds = np.clip(cosines, -1.0, 1.0)  # rounding may leave them
    is_equal = (x == y).all(axis=-1)
    return float(np.where(is_equal, 1.0, within_bounds).min())


def describe_differences(result: StoreDiff, first: str, second: str, *, maximum: int = 5) -> list[str]:
    """Return the differences in words, one line each.

    Parameters
    ----------
    result
        The differences.
    first, second
        What the lines call the stores.
    maximum
        Number of clips that a line names at most.
    """
    lines = [f"store: {_contrast_in_words(contrast, first, second)}" for contrast in result.about]
    lines += _only_in_one(first, result.only_first, result.groups_first, maximum)
    lines += _only_in_one(second, result.only_second, result.groups_second, maximum)
    for (status_in_first, status_in_second), n_clips in sorted(result.statuses.items()):
        lines.append(f"clips: {n_clips} {status_in_first} in {first}, {status_in_second} in {second}")
    for field, clips in result.clips.items():
        lines.append(f"clips: {field} differs for {len(clips)}: {first_few(clips, maximum)}")
    for name, differing in result.provenance.items():
        for contrast in differing:
            line = f"provenance of {name}: {_contrast_in_words(contrast, first, second)}"
            if contrast.field in result.numerics[name]:
                line += " (so the features must not be mixed)"
            lines.append(line)
    lines += [_array_in_words(array) for array in result.arrays if array.unlike or array.changed]
    return lines


def _contrast_in_words(contrast: Contrast, first: str, second: str) -> str:
    """Return a field with its values in both stores, such as "licence is MIT in a, CC0-1.0 in b"."""
    in_first = f"{clipped(contrast.first)} in {first}"
    in_second = f"{clipped(contrast.second)} in {second}"
    return f"{contrast.field} is {in_first}, {in_second}"


def _only_in_one(store: str, clips: Sequence[str], groups: Sequence[str], maximum: int) -> list[str]:
    """Return lines on the clips and the groups that only one store has; at most `maximum` clips are named."""
    lines = []
    if clips:
        lines.append(f"clips: {len(clips)} only in {store}: {first_few(clips, maximum)}")
    lines += [f"features of {name}: only in {store}" for name in groups]
    return lines


def _array_in_words(array: ArrayDiff) -> str:
    """Return the differences of one array in words, in one line."""
    if array.unlike:
        return f"values of {array.array}: {array.unlike}"
    text = f"values of {array.array}: {array.changed} of {counted(array.clips, 'clip')} differ"
    if array.resized:
        text += f", {array.resized} of them in their number of frames"
    if array.resized < array.changed:
        text += f", by at most {array.max_abs:.6g} ({array.max_abs_clip})"
        if array.min_cosine is not None:
            text += f", smallest cosine {array.min_cosine:.9f}"
    return text
