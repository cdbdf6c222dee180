"""Read what a model takes of clips from stores whose features are of the kind that it was trained on."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from obygaze_features.screen import Progress
from obygaze_features.store import Group, Store, same_numerics
from obygaze_features.store.records import StoredClip
from obygaze_models.dataset.features import (
    REDUCE,
    Features,
    Pool,
    StoredClips,
    read_array,
    read_features,
    unusable,
)
from obygaze_models.errors import ModelError
from obygaze_models.persistence.card import Card, Input
from obygaze_models.reduction import TokenRule, reduce_tokens

Clips = Sequence[StoredClip]

PART = 1 << 26
"""Bytes of tokens that are read at a time."""

WITHOUT = "without_"
"""Begins the flag of a modality that a clip lacks."""


Wanted = Callable[[StoredClip], bool]
"""Whether a clip is to be read."""


def read_clips(
    card: Card,
    stores: Sequence[Store],
    excluded: dict[str, list[str]],
    wanted: Wanted,
    progress: Progress | bool | None = None,
) -> Iterator[tuple[Clips, NDArray[Any]]]:
    """Yield clips with what a model reads of them, as much as is in memory at a time: of vectors a block.

    Of a model of several modalities, the clips of all stores at once; features that a clip lacks are NaN.

    Parameters
    ----------
    excluded
        Receives the clips without features, by reason.

    Raises
    ------
    ModelError
        A store's features are not of the kind that the model reads, a clip is in two stores, or a modality is
        in none.
    """
    if card.modalities:
        yield from _read_joined(card, stores, excluded, wanted)
        return
    seen: dict[str, str] = {}
    for store in stores:
        rows = _usable(store, find_group(card, store), wanted, seen, excluded)
        for part in _parts(card, store, np.array(rows, np.intp)):
            X = read_rows(card, store, part, progress=progress)
            yield [store.clips[row] for row in part], X


def _parts(card: Card, store: Store, rows: NDArray[np.intp]) -> Iterator[NDArray[np.intp]]:
    """Cut rows of clips [N], rising, into those whose features are in memory together."""
    if not len(rows):
        return
    group = store[card.backbone]
    if _reads_tokens(card):
        _, *shape = group.shape("tokens")
        size = max(PART // (2 * math.prod(shape)), 1)
        for first in range(0, len(rows), size):
            yield rows[first : first + size]
    elif card.features == "pooled" and not card.reduced_by:
        # What is stored together is read together, and once.
        size = group.pieces("pooled")[0].stop
        yield from np.split(rows, np.flatnonzero(np.diff(rows // size)) + 1)
    else:
        yield rows


def _reads_tokens(card: Card) -> bool:
    return card.pool == "none" and card.features == "tokens" and not card.reduced_by


def _read_joined(
    card: Card, stores: Sequence[Store], excluded: dict[str, list[str]], wanted: Wanted
) -> Iterator[tuple[Clips, NDArray[np.float32]]]:
    """Yield the clips of all stores, if any, with the features of all modalities."""
    held = _find_modalities(card, stores)
    clips: dict[str, StoredClip] = {}
    for store in dict.fromkeys(store for stored in held for store, _ in stored):
        for clip in filter(wanted, store.clips):
            if clip.clip_id not in clips or clip.status == "partial":
                clips[clip.clip_id] = clip
    place_of = {known: place for place, known in enumerate(clips)}
    X = np.full((len(clips), card.n_features), np.nan, np.float32)
    without: dict[str, list[str]] = {}
    for (each, columns), stored in zip(card.input_columns(), held, strict=True):
        seen: dict[str, str] = {}
        for store, group in stored:
            rows = _usable(store, group, lambda clip: clip.clip_id in place_of, seen, without)
            if rows:
                places = [place_of[store.clips[row].clip_id] for row in rows]
                X[places, columns] = _read_input(each, store, np.array(rows, np.intp))
    kept = np.flatnonzero(np.isfinite(X).any(axis=1)).tolist()
    every = list(clips.values())
    read = [every[place] for place in kept]
    left = clips.keys() - {clip.clip_id for clip in read}
    for reason, ids in without.items():
        if lost := [known for known in ids if known in left]:
            excluded.setdefault(reason, []).extend(lost)
            left -= set(lost)
    if kept:
        yield read, X[kept]


def _usable(
    store: Store, group: Group, wanted: Wanted, seen: dict[str, str], without: dict[str, list[str]]
) -> list[int]:
    """List the rows of wanted clips that have features; note the others by reason, and where clips are."""
    rows = []
    for row, clip in enumerate(store.clips):
        if clip.clip_id in seen:
            raise ModelError(
                f"clip {clip.clip_id} is in two stores, {seen[clip.clip_id]} and {store.where}: give one"
            )
        seen[clip.clip_id] = store.where
        if wanted(clip):
            reason = unusable(store, group, row)
            if reason is None:
                rows.append(row)
            else:
                without.setdefault(reason, []).append(clip.clip_id)
    return rows


def _find_modalities(card: Card, stores: Sequence[Store]) -> list[list[tuple[Store, Group]]]:
    """Find each modality of a model in the stores that have it; refuse a store of which it reads nothing."""
    held: list[list[tuple[Store, Group]]] = [[] for _ in card.modalities]
    for store in stores:
        own = [index for index, each in enumerate(card.modalities) if _is_of(each, store)]
        if not own:
            named = (each for each in card.modalities if each["backbone"] in store.names)
            _find_group(next(named, card.modalities[0]), store)
        for index in own:
            held[index].append((store, _find_group(card.modalities[index], store)))
    missing = [each["name"] for each, stored in zip(card.modalities, held, strict=True) if not stored]
    if missing:
        names = " and ".join(each["name"] for each in card.modalities)
        raise ModelError(
            f"model {card.model} reads {names}: no store given has features of {missing[0]}; "
            "give the store that has them too"
        )
    return held


def _is_of(modality: Input, store: Store) -> bool:
    """Return whether a store has features that were made as a modality's."""
    name = modality["backbone"]
    return name in store.names and not same_numerics(modality["provenance"], store[name].provenance)


def lacking(card: Card, X: NDArray[Any]) -> list[list[str]]:
    """List the flags of the modalities that each clip lacks [N]."""
    lacks = {WITHOUT + each["name"]: np.isnan(X[:, own]).all(axis=1) for each, own in card.input_columns()}
    return [[flag for flag, rows in lacks.items() if rows[row]] for row in range(len(X))]


def read_rows(
    card: Card, store: Store, rows: NDArray[np.intp], *, progress: Progress | bool | None = None
) -> NDArray[Any]:
    """Read the model's input for some clips: vectors [N, D], frames or tokens as stored, or reduced."""
    if card.reduced_by:
        return reduce_tokens(store, card.backbone, card.reduced_by, progress=progress).read(rows)
    if _reads_tokens(card):
        return np.asarray(StoredClips(store[card.backbone], "tokens", rows))
    return _read_input(card.inputs[0], store, rows)


def _read_input(reads: Input, store: Store, rows: NDArray[np.intp]) -> NDArray[Any]:
    group = store[reads["backbone"]]
    array: Features = reads["features"]  # type: ignore[assignment]  # the card's rule allows these words alone
    if reads["pool"] == "none":
        return read_array(group, array, rows)
    pool: Pool = "max"  # "as stored" of vectors, which are not pooled
    if reads["pool"] in REDUCE:
        pool = reads["pool"]  # type: ignore[assignment]  # one of its keys
    return read_features(group, array, pool, rows)


def find_group(card: Card, store: Store) -> Group:
    """Find the group that a model reads; refuse it if its features were made differently.

    Raises
    ------
    ModelError
        The backbone or array is missing, or a field of the provenance differs.
    """
    return _find_group(card.inputs[0], store, card.reduced_by)


def _find_group(reads: Input, store: Store, reduced_by: str = "") -> Group:
    backbone, array, made = reads["backbone"], reads["features"], reads["provenance"]
    if backbone not in store.names:
        raise ModelError(
            f"store {store.name} has no features of {backbone}, "
            f"which the model reads, but of {', '.join(store.names)}"
        )
    group = store[backbone]
    fields = same_numerics(made, group.provenance)
    if fields:
        there, here = (_look_up(provenance, fields[0]) for provenance in (made, group.provenance))
        more = f"; and {len(fields) - 1} more: {', '.join(fields[1:4])}" if fields[1:] else ""
        raise ModelError(
            f"store {store.name}: its features of {backbone} were made otherwise than "
            f"those the model was trained on: {fields[0]} is {here:.80}, was {there:.80}{more}"
        )
    if array not in group.arrays:
        raise ModelError(
            f"store {store.name} has no {array} features of {backbone}, which the model reads, "
            f"but {', '.join(group.arrays)}"
        )
    width = group.shape(array)[-1]
    if reduced_by:
        width = TokenRule.parse(reduced_by).size or width
    if width != reads["n_features"]:
        raise ModelError(
            f"store {store.name} has {width} features a clip of {backbone}; "
            f"the model reads {reads['n_features']}"
        )
    return group


def _look_up(provenance: Mapping[str, Any], dotted: str) -> str:
    """Show a field of a provenance by its dotted name."""
    value: Any = provenance
    for name in dotted.split("."):
        if not isinstance(value, Mapping) or name not in value:
            return "absent"
        value = value[name]
    return repr(value)
