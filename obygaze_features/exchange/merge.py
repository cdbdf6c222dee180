"""Combine stores: merge the clips of compatible stores, or make the next version of one."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

from numpy.typing import NDArray

from obygaze_features.arguments import checked
from obygaze_features.errors import StoreError
from obygaze_features.io import sha256_of, store_path
from obygaze_features.screen import Progress, shown_progress
from obygaze_features.store.arrays import row_view
from obygaze_features.store.format import (
    MERGING_SUFFIX,
    STATUSES,
    STATUSES_WITH_FEATURES,
    TABLE,
    TIME_ARRAYS,
    Status,
)
from obygaze_features.store.group import rows_of, spec_of
from obygaze_features.store.growth import combine_specs, refuse_two_spellings, refuse_version
from obygaze_features.store.provenance import differing_fields, validate_licence
from obygaze_features.store.records import ClipFeatures, ClipResult, GroupSpec, StoredClip, checked_line
from obygaze_features.store.sealing import seal, temporary_stage, versioned_path
from obygaze_features.store.store import Place, Store, files_of, open_files
from obygaze_features.store.store_files import damaged, digest_of, read_digests

_MISSING = STATUSES[0]


@checked
def merge(
    places: Sequence[Place],
    destination: Path | str,
    *,
    version: str = "1.0.0",
    licence: str | None = None,
    citation: str | None = None,
    corpus: str | None = None,
    progress: Progress | bool | None = None,
) -> Path:
    """Seal the clips of several stores as `DESTINATION-VERSION` and return its path.

    The result is what sealing all clips at once would have given, except for its attributes: `parent` names
    the first store, and `merged_with` the others. A merge that was killed begins again.

    Parameters
    ----------
    places
        The stores, or their paths or URLs.
    destination, version
        Path of the result without its version, and its version. If the path is that of the first store, the
        result is its next version, with a higher number.
    licence, citation
        Licence and citation of the result; None for those of the stores, which must then agree.
    corpus
        Name of the result's corpus; None for that of the stores, which must then agree.
    progress
        Called with (clips copied, all clips), and then with (rows sealed, all rows). Or whether to show a
        bar: by default only in a notebook.

    Raises
    ------
    StoreError
        If backbones, shapes or provenance differ; if a clip differs between two stores that both have it; if
        a table of clips, or the bytes of a row, do not have the digest that their store records; if a store
        is given twice; or if the destination exists. The message names the field, or the clip and what
        differs.

    Examples
    --------
    >>> from obygaze_features import merge, open_store
    >>> merged = merge(["stores/films", "stores/more"], "stores/all")
    >>> merged.name
    'all-1.0.0'
    >>> len(open_store(merged).clips)
    192
    """
    if len(places) < 2:
        raise StoreError("merging needs two stores at least")
    stores = [store if isinstance(store, Store) else open_files(files_of(store)) for store in places]
    for store in stores:
        _refuse_changed_table(store)
    _refuse_store_given_twice(stores)

    # What the result will have: each of these raises an error where the stores contradict each other.
    destination = store_path(destination)
    attributes = _agreed_attributes(stores, {"licence": licence, "citation": citation, "corpus": corpus})
    validate_licence(attributes["licence"])
    checked_line(attributes["citation"], "citation")
    groups = _merged_groups(stores)
    chosen_rows = _choose_rows(stores)  # clip id -> its row in the store that it is copied from
    refuse_two_spellings(
        (row.clip.movie for row in chosen_rows.values()),
        "extract one of the stores anew, from a manifest that names both alike",
    )
    first, *others = stores
    path_if_next_version = versioned_path(destination, first.version)
    is_next_version = path_if_next_version.absolute() == Path(first.where).absolute()
    if is_next_version:
        refuse_version(first, version, n_new_clips=len(chosen_rows) - len(first.clips))

    # Copy each clip from one of the stores into a stage, and seal it.
    planned = [row.clip.planned for row in chosen_rows.values()]
    position_of_clip = _positions_to_copy_from(chosen_rows)
    with (
        temporary_stage(destination, version, MERGING_SUFFIX) as open_stage,
        shown_progress(progress, "merge") as show,
    ):
        stage = open_stage(planned, groups, _common_corpus(stores, corpus))
        with stage.writer(position_of_clip) as writer:
            for n_copied, result in enumerate(_results_to_copy(stores, position_of_clip), start=1):
                writer.commit([result])
                show(n_copied, len(planned))
        return seal(
            stage.path,
            destination,
            version=version,
            licence=attributes["licence"],
            citation=attributes["citation"],
            allow_missing=True,
            parent=first.fingerprint,
            merged_with=[store.fingerprint for store in others],
            counted=_attributes_with_counts(stores, n_clips=len(chosen_rows)),
            progress=show,
        )


def _refuse_store_given_twice(stores: Sequence[Store]) -> None:
    """Refuse a store that is given twice, by one path or by two: another one was likely meant.

    Stores of the same clips at two places may be merged, as parts that overlap may.
    """
    seen = set[str]()
    for store in stores:
        location = store.where if "://" in store.where else str(Path(store.where).resolve())
        if location in seen:
            raise StoreError(
                f"{store.where}: this store is given twice; give each once, and with it the others to merge"
            )
        seen.add(location)


def _refuse_changed_table(store: Store) -> None:
    """Raise if a store's table of clips, or a manifest of digests, is not as it was sealed.

    The merged store gets digests of its own. Clips that were changed after the seal would have valid ones
    there, under the fingerprint of a store that never had them as its `parent`. Features need no such check
    here: the table has the digest of each row, which is compared when the row is copied.
    """
    listed_digests = read_digests(store.files)
    if digest_of(store.files, TABLE) != listed_digests.get(TABLE):
        raise StoreError(
            f"{store.where}/{TABLE}: changed after the store was sealed; run: obygaze store verify "
            f"{store.where}"
        )


def _attributes_with_counts(stores: Sequence[Store], n_clips: int) -> list[Mapping[str, Any]]:
    """Return the attributes of the stores whose counts of clips, for example by GPU, are to be added up.

    They are those of all stores if no clip is in two of them; else of none, as clips would count twice.

    Parameters
    ----------
    stores
        The stores to merge.
    n_clips
        Number of different clips in all stores together.
    """
    n_rows_of_stores = sum(len(store.clips) for store in stores)
    are_disjoint = n_rows_of_stores == n_clips
    return [store.attributes for store in stores] if are_disjoint else []


def _merged_groups(stores: Sequence[Store]) -> list[GroupSpec]:
    """Return name, arrays and provenance of each group of the merged store.

    Raises
    ------
    StoreError
        If backbones, shapes or provenance of the stores differ.
    """
    groups = []
    for name in _same_backbones(stores):
        specs = [spec_of(store[name]) for store in stores]
        groups.append(combine_specs(specs[0], specs))
    return groups


def _same_backbones(stores: Sequence[Store]) -> tuple[str, ...]:
    """Return the names of the groups; raise a StoreError unless they are the same in all stores."""
    first = stores[0]
    for store in stores[1:]:
        if store.names != first.names:
            raise StoreError(
                f"{first.where} has features of {', '.join(first.names)}, "
                f"{store.where} of {', '.join(store.names)}: merging needs the same backbones"
            )
    return first.names


class _ChosenRow(NamedTuple):
    """The row that a merged store has for a clip.

    Attributes
    ----------
    clip
        The clip, as its store describes it.
    position
        Position of that store among the stores to merge.
    """

    clip: StoredClip
    position: int


def _choose_rows(stores: Sequence[Store]) -> dict[str, _ChosenRow]:
    """Choose for each clip the store to copy it from: clip id -> the choice, sorted by id.

    The first store in which the clip is not missing is chosen, or else the first that has the clip.

    Raises
    ------
    StoreError
        If the content of a clip differs between two stores (`_first_difference`).
    """
    chosen_rows: dict[str, _ChosenRow] = {}
    for position, store in enumerate(stores):
        for clip in store.clips:
            earlier = chosen_rows.get(clip.clip_id)
            if earlier is None:
                chosen_rows[clip.clip_id] = _ChosenRow(clip, position)
                continue
            difference = _first_difference(earlier.clip, clip)
            if difference:
                both = f"{stores[earlier.position].where} and {store.where}"
                raise StoreError(
                    f"clip {clip.clip_id}: {difference} differs between {both}: "
                    "merging needs clips that are disjoint or equal; compare them: obygaze store diff"
                )
            if earlier.clip.status == _MISSING:
                chosen_rows[clip.clip_id] = _ChosenRow(clip, position)
    return dict(sorted(chosen_rows.items()))


def _positions_to_copy_from(chosen_rows: Mapping[str, _ChosenRow]) -> dict[str, int]:
    """Return clip id -> position of the store that it is copied from, without clips missing in all stores."""
    positions = {}
    for clip_id, row in chosen_rows.items():
        if row.clip.status != _MISSING:
            positions[clip_id] = row.position
    return positions


def _results_to_copy(stores: Sequence[Store], position_of_clip: Mapping[str, int]) -> Iterator[ClipResult]:
    """Read the clips to copy and yield them one at a time, so that only one is in memory.

    They come about in the order of `position_of_clip`, so that the pieces of the new store are finished one
    after the other. But each store is read in the order of its own rows: where a clip of a store is due, the
    next one in the order of that store is yielded, which may be another one.

    Parameters
    ----------
    stores
        The stores.
    position_of_clip
        Clip id -> position in `stores` of the store that the clip is copied from.
    """
    results_of_stores = []  # for each store an iterator over its clips that are copied
    for position, store in enumerate(stores):
        clip_ids = {clip_id for clip_id, chosen in position_of_clip.items() if chosen == position}
        results_of_stores.append(_read_results(store, clip_ids))
    for position in position_of_clip.values():
        results_of_store = results_of_stores[position]
        yield next(results_of_store)


def _first_difference(a: StoredClip, b: StoredClip) -> str:
    """Return which field, or which arrays, differ between two stores for one clip; empty if none do.

    If the clip is missing in one store, only its movie, span and text are compared: it has nothing else.
    """
    one_is_missing = _MISSING in (a.status, b.status)
    fields = ["movie", "start_s", "end_s", "text"]
    if not one_is_missing:
        fields += ["status", "reason", "without_pictures_s", "absent", "source"]
    for field in fields:
        if getattr(a, field) != getattr(b, field):
            return field
    if one_is_missing:
        return ""
    return ", ".join(f"array {name}" for name in differing_fields(a.digests, b.digests))


def _common_corpus(stores: Sequence[Store], name: str | None) -> dict[str, object]:
    """Return the fields that describe the merged corpus: those that are equal in all stores.

    `name`, unless it is None, is the name of the merged corpus in place of theirs.
    """
    first, *others = [dict(store.attributes["corpus"]) for store in stores]

    def is_common(key: str) -> bool:
        """Return whether all stores have the same value of a field of the first one."""
        return all(key in corpus and not differing_fields(first[key], corpus[key]) for corpus in others)

    common = {key: value for key, value in first.items() if is_common(key)}
    if name is not None:
        return {**common, "name": name}
    return common


def _agreed_attributes(stores: Sequence[Store], choices: Mapping[str, str | None]) -> dict[str, str]:
    """Return the attributes of the merged store: the chosen values, or those that all stores have.

    Raises
    ------
    StoreError
        Naming all attributes that differ and are not chosen.
    """
    attributes = {}
    disagreements = []
    for field, choice in choices.items():
        if choice is not None:
            attributes[field] = choice
            continue
        values = [store.attributes[field] for store in stores]
        if field == "corpus":
            values = [corpus["name"] for corpus in values]
        different_texts = sorted({str(value) for value in values})
        attributes[field] = different_texts[0]
        if len(different_texts) > 1:
            stated = "; ".join(different_texts)
            disagreements.append(f"{field} differs ({stated}): choose the result's (--{field})")
    if disagreements:
        raise StoreError(f"the stores' {', and their '.join(disagreements)}")
    return attributes


def _read_results(store: Store, clip_ids: Collection[str]) -> Iterator[ClipResult]:
    """Read some clips of a store, in the order of its rows, and yield them as results for the merged stage.

    Each row of features is checked against its digest.

    Parameters
    ----------
    store
        The store.
    clip_ids
        The clips, none of which is missing.
    """
    rows = [row for row, clip in enumerate(store.clips) if clip.clip_id in clip_ids]
    # Group -> array -> iterator over its values, one for each of these clips that has features in the group.
    # The loop below goes over the clips in the same order, and takes the next value if the clip has features.
    iterators_of_group = {name: _values_of_group(store, name, rows) for name in store}
    for row in rows:
        clip = store.clips[row]
        features_of_group: dict[str, ClipFeatures] = {}
        for name in store:
            if not _has_features(clip, name):
                continue
            values = {array: next(iterator) for array, iterator in iterators_of_group[name].items()}
            _check_digests(store, clip, name, values)
            time_s = values.pop("time_s")
            frame_index = values.pop("frame_index")
            features_of_group[name] = ClipFeatures(time_s, frame_index, values)
        yield ClipResult(
            clip_id=clip.clip_id,
            status=cast("Status", clip.status),  # the only other value is missing
            reason=clip.reason,
            source=clip.source,
            groups=features_of_group,
            absent=clip.absent,
            without_pictures_s=clip.without_pictures_s,
        )


def _values_of_group(store: Store, name: str, rows: Sequence[int]) -> dict[str, Iterator[NDArray[Any]]]:
    """Return array -> iterator over its values, one for each row whose clip has features in a group.

    Parameters
    ----------
    store, name
        The store, and the name of the group.
    rows
        Rows to read; those whose clip has no features in the group are skipped.
    """
    group = store[name]
    rows_with_features = [row for row in rows if _has_features(store.clips[row], name)]
    return {array: rows_of(group, array, rows_with_features) for array in (*group.arrays, *TIME_ARRAYS)}


def _has_features(clip: StoredClip, group: str) -> bool:
    """Return whether a clip has features in a group of its store: its status there is ok or partial."""
    return clip.within(group).status in STATUSES_WITH_FEATURES


def _check_digests(store: Store, clip: StoredClip, group: str, values: Mapping[str, NDArray[Any]]) -> None:
    """Raise a StoreError if a clip's values in an array do not have the digest that its store records.

    Parameters
    ----------
    store, clip
        The store, and its description of the clip, with the digests.
    group, values
        Name of a group, and array -> the clip's values in it.
    """
    for array, row_values in values.items():
        if sha256_of(row_view(row_values)) != clip.digests.get(f"{group}/{array}"):
            location = f"{store.where}: clip {clip.clip_id}, array {group}/{array}"
            raise damaged(f"{location}: not what {TABLE} has a digest of", store.where)
