"""Read what a model takes of clips from stores whose features are of the kind that it was trained on."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

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
    read_padded,
    unusable,
)
from obygaze_models.errors import ModelError
from obygaze_models.persistence.card import Card, Input
from obygaze_models.reduction import TokenRule, reduce_tokens

PART = 1 << 26
"""Bytes of tokens that are read at a time."""

CLIPS = 1024
"""Clips of several modalities that are read at a time."""

NO_ROW = -1
"""In place of a row's number, of a clip that a store does not have."""

WITHOUT = "without_"
"""Begins the flag of a modality that a clip lacks."""


Wanted = Callable[[StoredClip], bool]
"""Whether a clip is to be read."""


class ClipBlock(NamedTuple):
    """Clips that are read together.

    Attributes
    ----------
    clips : list of StoredClip
        N of them.
    X : ndarray, shape [N, ...]
        What the model reads of each; NaN where a clip lacks a modality.
    """

    clips: list[StoredClip]
    X: NDArray[Any]


@dataclass(frozen=True, eq=False, slots=True)
class _Source:
    """A store that has a modality of clips.

    Attributes
    ----------
    store : Store
    rows : ndarray of int, shape [N]
        Of each clip in this store, or `NO_ROW`.
    """

    store: Store
    rows: NDArray[np.intp]


@dataclass(frozen=True, eq=False, slots=True)
class ReadableClips:
    """The clips of some stores that have features which a model reads, unread.

    Attributes
    ----------
    card : Card
        Of the model.
    clips : list of StoredClip
        N of them, in the order of the stores and of their rows.
    sources : tuple of tuple of _Source
        Of each modality the stores that have it.
    excluded : dict of str to list of str
        Clips without features, by reason.
    """

    card: Card
    clips: list[StoredClip]
    sources: tuple[tuple[_Source, ...], ...]
    excluded: dict[str, list[str]]

    def __len__(self) -> int:
        return len(self.clips)

    def blocks(self, progress: Progress | bool | None = None) -> Iterator[ClipBlock]:
        """Yield the clips in their order with what the model reads, a block in memory at a time.

        A block is what is stored together, which is read once; of several modalities it is `CLIPS` clips.

        Parameters
        ----------
        progress : callable or bool, optional
            Called with the numbers of clips whose tokens are reduced and of all, where they are.
        """
        if self.card.modalities:
            for first in range(0, len(self.clips), CLIPS):
                places = slice(first, first + CLIPS)
                yield ClipBlock(self.clips[places], self._read_modalities(places))
            return
        (sources,) = self.sources
        for source in sources:
            own = np.flatnonzero(source.rows != NO_ROW)
            longest = _longest_of(self.card, source.store, source.rows[own])
            for part in _parts(self.card, source.store, source.rows[own]):
                X = _read_rows(self.card, source.store, source.rows[own[part]], longest, progress)
                yield ClipBlock([self.clips[place] for place in own[part].tolist()], X)

    def _read_modalities(self, places: slice) -> NDArray[np.float32]:
        """Read all modalities of some clips, side by side [n, D]."""
        X = np.full((len(self.clips[places]), self.card.n_features), np.nan, np.float32)
        for (modality, columns), sources in zip(self.card.input_columns(), self.sources, strict=True):
            for source in sources:
                rows = source.rows[places]
                own = np.flatnonzero(rows != NO_ROW)
                if len(own):
                    X[own, columns] = _read_input(modality, source.store, rows[own])
        return X


def find_clips(card: Card, stores: Sequence[Store], wanted: Wanted) -> ReadableClips:
    """Find the clips of stores that a model can read, and say why it can't read the others.

    Parameters
    ----------
    card : Card
    stores : sequence of Store
    wanted : callable
        Whether a clip is to be read.

    Raises
    ------
    ModelError
        A store's features are not of the kind that the model reads, a clip is in two stores, or a modality is
        in none.
    """
    if card.modalities:
        return _find_joined(card, stores, wanted)
    groups = [(store, find_group(card, store)) for store in stores]
    _refuse_twins(stores)
    usable = [_usable(store, group, wanted) for store, group in groups]
    n_clips = sum(len(of_store.rows) for of_store in usable)
    clips: list[StoredClip] = []
    sources: list[_Source] = []
    excluded: dict[str, list[str]] = {}
    for store, of_store in zip(stores, usable, strict=True):
        rows = np.full(n_clips, NO_ROW, np.intp)
        rows[len(clips) : len(clips) + len(of_store.rows)] = of_store.rows
        sources.append(_Source(store, rows))
        clips += [store.clips[row] for row in of_store.rows.tolist()]
        for reason, clip_ids in of_store.excluded.items():
            excluded.setdefault(reason, []).extend(clip_ids)
    return ReadableClips(card, clips, (tuple(sources),), excluded)


def _find_joined(card: Card, stores: Sequence[Store], wanted: Wanted) -> ReadableClips:
    """Find the clips that have one modality at least."""
    holders = _find_modalities(card, stores)
    known: dict[str, StoredClip] = {}
    for store in dict.fromkeys(store for of_modality in holders for store, _ in of_modality):
        for clip in filter(wanted, store.clips):
            if clip.clip_id not in known or clip.status == "partial":
                known[clip.clip_id] = clip
    place_of = {clip_id: place for place, clip_id in enumerate(known)}
    sources: list[list[_Source]] = []
    reasons: dict[str, list[str]] = {}
    for of_modality in holders:
        _refuse_twins([store for store, _ in of_modality])
        sources.append([])
        for store, group in of_modality:
            of_store = _usable(store, group, lambda clip: clip.clip_id in place_of)
            for reason, clip_ids in of_store.excluded.items():
                reasons.setdefault(reason, []).extend(clip_ids)
            rows = np.full(len(known), NO_ROW, np.intp)
            for row in of_store.rows.tolist():
                rows[place_of[store.clips[row].clip_id]] = row
            sources[-1].append(_Source(store, rows))
    has_any = np.zeros(len(known), np.bool_)
    for source in chain.from_iterable(sources):
        has_any |= source.rows != NO_ROW
    places = np.flatnonzero(has_any)
    clips = list(known.values())
    lost = {clips[place].clip_id for place in np.flatnonzero(~has_any).tolist()}
    readable = [
        tuple(_Source(source.store, source.rows[places]) for source in of_modality) for of_modality in sources
    ]
    own = [clips[place] for place in places.tolist()]
    return ReadableClips(card, own, tuple(readable), _first_reasons(reasons, lost))


def _first_reasons(reasons: Mapping[str, list[str]], lost: set[str]) -> dict[str, list[str]]:
    """Keep of each clip that is lost the first reason, and no clip that is not."""
    excluded: dict[str, list[str]] = {}
    told: set[str] = set()
    for reason, clip_ids in reasons.items():
        own = [clip_id for clip_id in clip_ids if clip_id in lost and clip_id not in told]
        if own:
            excluded[reason] = own
            told.update(own)
    return excluded


class _UsableRows(NamedTuple):
    """The rows of a store that have features, and the other clips by reason."""

    rows: NDArray[np.intp]
    excluded: dict[str, list[str]]


def _usable(store: Store, group: Group, wanted: Wanted) -> _UsableRows:
    """List the rows of wanted clips that have features; note the others by reason."""
    is_wanted = np.fromiter(map(wanted, store.clips), np.bool_, len(store.clips))
    excluded: dict[str, list[str]] = {}
    for row in np.flatnonzero(is_wanted & ~group.usable).tolist():
        reason = unusable(store, group, row)
        if reason is not None:
            excluded.setdefault(reason, []).append(store.clips[row].clip_id)
    return _UsableRows(np.flatnonzero(is_wanted & group.usable), excluded)


def _refuse_twins(stores: Sequence[Store]) -> None:
    """Refuse a clip that is in two stores."""
    if len(stores) < 2:
        return
    place_of: dict[str, str] = {}
    for store in stores:
        for clip in store.clips:
            if clip.clip_id in place_of:
                other = place_of[clip.clip_id]
                raise ModelError(f"clip {clip.clip_id} is in two stores, {other} and {store.where}: give one")
            place_of[clip.clip_id] = store.where


def _parts(card: Card, store: Store, rows: NDArray[np.intp]) -> Iterator[NDArray[np.intp]]:
    """Cut rising rows of clips [N] into those to read together; yield the places of each part's rows."""
    group = store[card.backbone]
    if card.reduced_by:
        reduced = reduce_tokens(store, card.backbone, card.reduced_by)
        size = max(PART // (4 * math.prod(reduced.plan.shape)), 1)
        part_of = np.arange(len(rows)) // size
    elif _reads_tokens(card):
        size = max(PART // (2 * math.prod(group.shape("tokens")[1:])), 1)
        part_of = np.arange(len(rows)) // size
    else:
        starts = [piece.start for piece in group.pieces(card.features)]
        part_of = np.searchsorted(starts, rows, side="right")
    if len(rows):
        yield from np.split(np.arange(len(rows)), np.flatnonzero(np.diff(part_of)) + 1)


def _reads_tokens(card: Card) -> bool:
    return card.pool == "none" and card.features == "tokens" and not card.reduced_by


def _longest_of(card: Card, store: Store, rows: NDArray[np.intp]) -> int | None:
    """Count the frames of the longest clip where clips have any number and all are read, else None."""
    group = store[card.backbone]
    if card.pool == "none" and not card.reduced_by and group.is_ragged(card.features):
        return int(group.row_size[rows].max(initial=1))
    return None


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


def _read_rows(
    card: Card,
    store: Store,
    rows: NDArray[np.intp],
    longest: int | None,
    progress: Progress | bool | None,
) -> NDArray[Any]:
    """Read the model's input for some clips: vectors [N, D], frames or tokens as stored, or reduced.

    Where clips have frames of any number, they are filled up with NaN to the number of the longest.
    """
    if card.reduced_by:
        return reduce_tokens(store, card.backbone, card.reduced_by, progress=progress).read(rows)
    group = store[card.backbone]
    if longest is not None:
        return read_padded(group, card.features, rows, longest)
    if _reads_tokens(card):
        return np.asarray(StoredClips(group, "tokens", rows))
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
