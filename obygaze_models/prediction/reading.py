"""Read what a model takes of clips from stores whose features are of the kind that it was trained on."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from obygaze_features.screen import Progress
from obygaze_features.store import Group, Store, same_numerics
from obygaze_models.dataset.features import (
    REDUCE,
    Features,
    Pool,
    StoredClips,
    read_array,
    read_features,
    read_padded,
)
from obygaze_models.errors import ModelError
from obygaze_models.persistence.card import Card, Input
from obygaze_models.prediction.clip_columns import ClipColumns
from obygaze_models.reduction import TokenRule, reduce_tokens

PART = 1 << 26
"""Bytes of tokens that are read at a time."""

AT_ONCE = 8
"""Blocks of vectors that are asked of a server at once."""

CLIPS = 1024
"""Clips of several modalities that are read at a time."""

NO_ROW = -1
"""In place of a row's number, of a clip that a store does not have."""

WITHOUT = "without_"
"""Begins the flag of a modality that a clip lacks."""


class ClipBlock(NamedTuple):
    """Clips that are read together.

    Attributes
    ----------
    clips : ClipColumns
        N of them.
    X : ndarray, shape [N, ...]
        What the model reads of each; NaN where a clip lacks a modality.
    """

    clips: ClipColumns
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
    clips : ClipColumns
        N clips, in the order of the stores and of their rows.
    sources : tuple of tuple of _Source
        Of each modality the stores that have it.
    excluded : dict of str to list of str
        Clips without features, by reason.
    """

    card: Card
    clips: ClipColumns
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
            for first in range(0, len(self), CLIPS):
                places = np.arange(first, min(first + CLIPS, len(self)))
                yield ClipBlock(self.clips.take(places), self._read_modalities(places))
            return
        (sources,) = self.sources
        for source in sources:
            own = np.flatnonzero(source.rows != NO_ROW)
            longest = _longest_of(self.card, source.store, source.rows[own])
            parts = list(_parts(self.card, source.store, source.rows[own]))
            n_at_once = _parts_at_once(self.card, source.store)
            for first in range(0, len(parts), n_at_once):
                together = parts[first : first + n_at_once]
                places = own[np.concatenate(together)]
                X = _read_rows(self.card, source.store, source.rows[places], longest, progress)
                ends = np.cumsum([len(part) for part in together])[:-1]
                for part, of_part in zip(together, np.split(X, ends), strict=True):
                    yield ClipBlock(self.clips.take(own[part]), of_part)

    def _read_modalities(self, places: NDArray[np.intp]) -> NDArray[np.float32]:
        """Read all modalities of some clips, side by side [n, D]."""
        X = np.full((len(places), self.card.n_features), np.nan, np.float32)
        for (modality, columns), sources in zip(self.card.input_columns(), self.sources, strict=True):
            for source in sources:
                rows = source.rows[places]
                own = np.flatnonzero(rows != NO_ROW)
                if len(own):
                    X[own, columns] = _read_input(modality, source.store, rows[own])
        return X


def find_clips(
    card: Card,
    stores: Sequence[Store],
    *,
    movies: Collection[str] | None = None,
    clip_id: str | None = None,
) -> ReadableClips:
    """Find the clips of stores that a model can read, and say why it can't read the others.

    Parameters
    ----------
    card : Card
    stores : sequence of Store
    movies : collection of str, optional
        The clips of these movies alone.
    clip_id : str, optional
        This clip alone.

    Raises
    ------
    ModelError
        A store's features are not of the kind that the model reads, a clip is in two stores, or a modality is
        in none.
    """
    if card.modalities:
        return _find_joined(card, _find_modalities(card, stores), Wanted(movies, clip_id))
    groups = [find_group(card, store) for store in stores]
    _refuse_twins(stores)
    readable: list[ClipColumns] = []
    rows_of_stores: list[NDArray[np.intp]] = []
    excluded: dict[str, list[str]] = {}
    for store, group in zip(stores, groups, strict=True):
        clips = ClipColumns.of_table(store.table)
        is_wanted = Wanted(movies, clip_id).among(clips)
        rows = np.flatnonzero(is_wanted & group.usable)
        rows_of_stores.append(rows)
        readable.append(clips if len(rows) == len(clips) else clips.take(rows))
        for row in np.flatnonzero(is_wanted & ~group.usable).tolist():
            reason = store.table.why_without(row, group.name)
            excluded.setdefault(reason, []).append(clips.clip_ids[row])
    every = ClipColumns.joined(readable)
    ends = np.cumsum([len(rows) for rows in rows_of_stores]).tolist()
    sources: list[_Source] = []
    for store, rows, end in zip(stores, rows_of_stores, ends, strict=True):
        of_clips = np.full(len(every), NO_ROW, np.intp)
        of_clips[end - len(rows) : end] = rows
        sources.append(_Source(store, of_clips))
    return ReadableClips(card, every, (tuple(sources),), excluded)


class Wanted(NamedTuple):
    """Which clips are to be read: those of some movies, or one, or all."""

    movies: Collection[str] | None
    clip_id: str | None

    def among(self, clips: ClipColumns) -> NDArray[np.bool_]:
        """Mark them [N]."""
        marks = np.ones(len(clips), np.bool_)
        if self.movies is not None:
            marks &= np.fromiter((movie in self.movies for movie in clips.movies), np.bool_, len(clips))
        if self.clip_id is not None:
            marks &= np.fromiter((known == self.clip_id for known in clips.clip_ids), np.bool_, len(clips))
        return marks


def _find_joined(card: Card, holders: Sequence[Sequence[Store]], wanted: Wanted) -> ReadableClips:
    """Find the clips that have one modality at least, which several stores may hold."""
    stores = list(dict.fromkeys(store for of_modality in holders for store in of_modality))
    every = ClipColumns.joined([ClipColumns.of_table(store.table) for store in stores])
    place_of: dict[str, int] = {}
    for place in np.flatnonzero(wanted.among(every)).tolist():
        # Of a clip that is partial in one of the stores, that is said.
        if every.clip_ids[place] not in place_of or every.is_partial[place]:
            place_of[every.clip_ids[place]] = place
    clips = every.take(np.fromiter(place_of.values(), np.intp, len(place_of)))
    number_of = {clip_id: number for number, clip_id in enumerate(clips.clip_ids)}
    sources: list[list[_Source]] = []
    reasons: dict[str, list[str]] = {}
    has_any = np.zeros(len(clips), np.bool_)
    for modality, of_modality in zip(card.modalities, holders, strict=True):
        _refuse_twins(of_modality)
        sources.append([])
        for store in of_modality:
            rows = np.full(len(clips), NO_ROW, np.intp)
            usable = store[modality["backbone"]].usable.tolist()
            for row, clip_id in enumerate(store.table.clip_ids):
                if clip_id not in number_of:
                    continue
                if usable[row]:
                    rows[number_of[clip_id]] = row
                else:
                    reason = store.table.why_without(row, modality["backbone"])
                    reasons.setdefault(reason, []).append(clip_id)
            has_any |= rows != NO_ROW
            sources[-1].append(_Source(store, rows))
    places = np.flatnonzero(has_any)
    lost = {clips.clip_ids[place] for place in np.flatnonzero(~has_any).tolist()}
    readable = [
        tuple(_Source(source.store, source.rows[places]) for source in of_modality) for of_modality in sources
    ]
    return ReadableClips(card, clips.take(places), tuple(readable), _first_reasons(reasons, lost))


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


def _refuse_twins(stores: Sequence[Store]) -> None:
    """Refuse a clip that is in two stores."""
    if len(stores) < 2:
        return
    place_of: dict[str, str] = {}
    for store in stores:
        for clip_id in store.table.clip_ids:
            if clip_id in place_of:
                places = f"{place_of[clip_id]} and {store.where}"
                raise ModelError(f"clip {clip_id} is in two stores, {places}: give one")
            place_of[clip_id] = store.where


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


def _parts_at_once(card: Card, store: Store) -> int:
    """Count the parts to read together: of vectors on a server several, which then cost one wait."""
    is_on_server = "://" in store.where
    return AT_ONCE if is_on_server and card.features == "pooled" and not card.reduced_by else 1


def _reads_tokens(card: Card) -> bool:
    return card.pool == "none" and card.features == "tokens" and not card.reduced_by


def _longest_of(card: Card, store: Store, rows: NDArray[np.intp]) -> int | None:
    """Count the frames of the longest clip where clips have any number and all are read, else None."""
    group = store[card.backbone]
    if card.pool == "none" and not card.reduced_by and group.is_ragged(card.features):
        return int(group.row_size[rows].max(initial=1))
    return None


def _find_modalities(card: Card, stores: Sequence[Store]) -> list[list[Store]]:
    """Find the stores that have each modality of a model; refuse a store of which it reads nothing."""
    holders: list[list[Store]] = [[] for _ in card.modalities]
    for store in stores:
        own = [index for index, modality in enumerate(card.modalities) if _is_of(modality, store)]
        if not own:
            named = (modality for modality in card.modalities if modality["backbone"] in store.names)
            _find_group(next(named, card.modalities[0]), store)
        for index in own:
            _find_group(card.modalities[index], store)
            holders[index].append(store)
    for modality, having in zip(card.modalities, holders, strict=True):
        if not having:
            names = " and ".join(each["name"] for each in card.modalities)
            raise ModelError(
                f"model {card.model} reads {names}: no store given has features of {modality['name']}; "
                "give the store that has them too"
            )
    return holders


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
