"""Combine stores: merge the clips of compatible stores, or make the next version of one."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

from obygaze_features.arguments import checked
from obygaze_features.errors import StoreError
from obygaze_features.identity import same_names
from obygaze_features.io import sha256_of, store_path
from obygaze_features.screen import Progress, shown_progress
from obygaze_features.store.arrays import row_view
from obygaze_features.store.format import DONE, MERGING_SUFFIX, STATUSES, TABLE, TIME_ARRAYS, Status
from obygaze_features.store.group import rows_of, spec_of
from obygaze_features.store.growth import combined
from obygaze_features.store.provenance import differences, validate_licence
from obygaze_features.store.records import ClipFeatures, ClipResult, StoredClip, one_line
from obygaze_features.store.sealing import passing_stage, seal
from obygaze_features.store.store import Place, Store, files_of, open_files
from obygaze_features.store.store_files import damaged

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

    The result is what sealing all clips at once would have given, but for its attributes: `parent` is the
    first store, `merged_with` the others. A killed merge begins again.

    Parameters
    ----------
    places
        The stores, or their paths or URLs.
    licence, citation
        Of the result; None: those of the stores, which must then agree.
    corpus
        Name of the result's corpus; None: that of the stores, which must then agree.
    progress
        Called with (rows done, rows in all), twice from 0: clips copied, rows sealed. Or
        whether to show a bar: by default in a notebook alone.

    Raises
    ------
    StoreError
        If backbones, shapes or provenance differ (the field is named), a clip is in two stores and not the
        same (the clip and what differs are named), the bytes of a row are not what its store has a digest
        of, or the destination exists.

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
    destination = store_path(destination)
    stated = _stated(stores, {"licence": licence, "citation": citation, "corpus": corpus})
    validate_licence(stated["licence"])
    one_line(stated["citation"], "citation")
    groups = []
    for name in _same_backbones(stores):
        specs = [spec_of(store[name]) for store in stores]
        groups.append(combined(specs[0], specs))
    owners = _owners(stores)
    _refuse_one_name(clip.movie for clip, _ in owners.values())
    planned = [clip.planned for clip, _ in owners.values()]
    about = _corpus(stores, corpus)
    rows = {clip_id: at for clip_id, (clip, at) in owners.items() if clip.status != _MISSING}
    results = [_results(store, position, rows) for position, store in enumerate(stores)]
    taken = sum(len(store.clips) for store in stores) == len(owners)
    with (
        passing_stage(destination, version, MERGING_SUFFIX) as open_stage,
        shown_progress(progress, "merge") as show,
    ):
        stage = open_stage(planned, groups, about)
        with stage.writer(rows) as writer:
            for n_copied, position in enumerate(rows.values(), start=1):
                writer.commit([next(results[position])])
                show(n_copied, len(planned))
        return seal(
            stage.path,
            destination,
            version=version,
            licence=stated["licence"],
            citation=stated["citation"],
            allow_missing=True,
            parent=stores[0].fingerprint,
            merged_with=[store.fingerprint for store in stores[1:]],
            counted=[store.attributes for store in stores if taken],
            progress=show,
        )


def _same_backbones(stores: Sequence[Store]) -> tuple[str, ...]:
    first = stores[0]
    for store in stores[1:]:
        if store.names != first.names:
            raise StoreError(
                f"{first.where} has features of {', '.join(first.names)}, "
                f"{store.where} of {', '.join(store.names)}: merging needs the same backbones"
            )
    return first.names


def _owners(stores: Sequence[Store]) -> dict[str, tuple[StoredClip, int]]:
    """Map clip id to the clip and the position of the store that its row is taken from, sorted by id.

    A clip that several stores have must be the same in all of them, but where it is missing.
    """
    owners: dict[str, tuple[StoredClip, int]] = {}
    for position, store in enumerate(stores):
        for clip in store.clips:
            first_clip, owner = owners.setdefault(clip.clip_id, (clip, position))
            if owner == position:
                continue
            if difference := _apart(first_clip, clip):
                places = f"{stores[owner].where} and {store.where}"
                raise StoreError(
                    f"clip {clip.clip_id}: {difference} differs between {places}: "
                    "merging needs clips that are disjoint or equal; compare them: obygaze store diff"
                )
            if first_clip.status == _MISSING:
                owners[clip.clip_id] = (clip, position)
    return dict(sorted(owners.items()))


def _refuse_one_name(movies: Iterable[str]) -> None:
    """Refuse films of the stores whose names are one: their clips would be of two films."""
    for movie, twin in same_names(movie for movie in movies if movie).one:
        raise StoreError(
            f"movies {twin!r} and {movie!r} are one name: one film would be two in the merged store; "
            "extract one of the stores anew, from a manifest that names both alike"
        )


def _apart(a: StoredClip, b: StoredClip) -> str:
    """Name what differs between two rows of the same clip; a missing one has only its span and text."""
    fields = ["movie", "start_s", "end_s", "text"]
    if _MISSING not in (a.status, b.status):
        fields += ["status", "reason", "absent", "source"]
    if apart := [field for field in fields if getattr(a, field) != getattr(b, field)]:
        return apart[0]
    if _MISSING in (a.status, b.status):
        return ""
    return ", ".join(f"array {name}" for name in differences(a.digests, b.digests))


def _corpus(stores: Sequence[Store], name: str | None) -> dict[str, object]:
    """Return the corpus fields common to all stores; a manifest's digest does not hold for several."""
    corpora = [dict(store.attributes["corpus"]) for store in stores]

    def is_common(key: str) -> bool:
        value = corpora[0][key]
        return all(key in corpus and not differences(value, corpus[key]) for corpus in corpora)

    common = {key: value for key, value in corpora[0].items() if is_common(key)}
    if name is not None:
        return {**common, "name": name}
    return common


def _stated(stores: Sequence[Store], choices: Mapping[str, str | None]) -> dict[str, str]:
    """Return the attributes that are given or common; refuse those that differ, all in one message."""
    stated = {}
    disagreements = []
    for field, chosen in choices.items():
        if chosen is not None:
            stated[field] = chosen
            continue
        values = [store.attributes[field] for store in stores]
        if field == "corpus":
            values = [corpus["name"] for corpus in values]
        texts = sorted({str(value) for value in values})
        stated[field] = texts[0]
        if len(texts) > 1:
            disagreements.append(f"{field} differs ({'; '.join(texts)}): choose the result's (--{field})")
    if disagreements:
        raise StoreError(f"the stores' {', and their '.join(disagreements)}")
    return stated


def _results(store: Store, position: int, owners: Mapping[str, int]) -> Iterator[ClipResult]:
    """Read the rows that are taken from a store, checking every one against the store's own digest of it."""
    rows = [row for row, clip in enumerate(store.clips) if owners.get(clip.clip_id) == position]
    streams = {}
    for name in store:
        rows_done = [row for row in rows if store.clips[row].within(name).status in DONE]
        arrays = (*store[name].arrays, *TIME_ARRAYS)
        streams[name] = {array: rows_of(store[name], array, rows_done) for array in arrays}
    for row in rows:
        clip = store.clips[row]
        features: dict[str, ClipFeatures] = {}
        for name, of_group in streams.items():
            if clip.within(name).status not in DONE:
                continue
            values = {array: next(stream) for array, stream in of_group.items()}
            for array, row_values in values.items():
                if sha256_of(row_view(row_values)) != clip.digests.get(f"{name}/{array}"):
                    where = f"{store.where}: clip {clip.clip_id}, array {name}/{array}"
                    raise damaged(f"{where}: not what {TABLE} has a digest of", store.where)
            features[name] = ClipFeatures(values.pop("time_s"), values.pop("frame_index"), values)
        # Missing clips are not copied.
        status = cast("Status", clip.status)
        yield ClipResult(clip.clip_id, status, clip.reason, clip.source, features, clip.absent)
