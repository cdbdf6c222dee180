"""Read the features that a model needs from stores, and refuse features of another kind."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from obygaze_features.screen import Progress
from obygaze_features.store import Group, Store, same_numerics
from obygaze_features.text import is_address
from obygaze_models.dataset.features import (
    REDUCTIONS,
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

BYTES_OF_TOKENS = 1 << 26
"""Number of bytes of tokens that are read at a time."""

BYTES_OF_FLOAT32 = 4
"""Size of a number of reduced tokens."""

BYTES_OF_FLOAT16 = 2
"""Size of a number of tokens as stored."""

MAX_CHARACTERS = 80
"""Number of characters of a provenance's value that a message shows."""

N_PARTS_AT_ONCE = 8
"""Number of parts of vectors that are requested from a server at once."""

N_CLIPS_AT_ONCE = 1024
"""Number of clips of several modalities that are read at a time."""

NO_ROW = -1
"""Row number for a clip that is not in a store."""

WITHOUT = "without_"
"""A clip that lacks a modality has the flag of this and the modality's name."""


class ClipBlock(NamedTuple):
    """Clips that are read together.

    Attributes
    ----------
    clips : ClipColumns
        N clips.
    X : ndarray, shape [N, ...]
        The features that the model reads; NaN where a clip lacks a modality.
    """

    clips: ClipColumns
    X: NDArray[Any]


@dataclass(frozen=True, eq=False, slots=True)
class _Source:
    """A store that has a modality of some clips.

    Attributes
    ----------
    store : Store
    rows : ndarray of int, shape [N]
        Row of each clip in this store, or `NO_ROW`.
    """

    store: Store
    rows: NDArray[np.intp]


@dataclass(frozen=True, eq=False, slots=True)
class ReadableClips:
    """The clips of some stores that have the features which a model reads; the features are not read yet.

    Attributes
    ----------
    card : Card
        The model's card.
    clips : ClipColumns
        N clips, in the order of the stores and of their rows.
    sources : tuple of tuple of _Source
        For each modality, the stores that have it.
    excluded : dict of str to list of str
        Reason -> ids of clips that have no features.
    """

    card: Card
    clips: ClipColumns
    sources: tuple[tuple[_Source, ...], ...]
    excluded: dict[str, list[str]]

    def __len__(self) -> int:
        return len(self.clips)

    def blocks(self, progress: Progress | bool | None = None) -> Iterator[ClipBlock]:
        """Yield the clips in order, block by block, with the features that the model reads.

        A block holds clips that are stored together, so that each part of the store is read once. For a model
        of several modalities a block holds `N_CLIPS_AT_ONCE` clips.

        Parameters
        ----------
        progress : callable or bool, optional
            If tokens are reduced: called with the number of clips done and the number of all clips.
        """
        if self.card.modalities:
            for first in range(0, len(self), N_CLIPS_AT_ONCE):
                indices = np.arange(first, min(first + N_CLIPS_AT_ONCE, len(self)))
                yield ClipBlock(self.clips.take(indices), self._read_modalities(indices))
            return
        sources_of_only_modality = self.sources[0]
        for source in sources_of_only_modality:
            yield from self._blocks_of_store(source, progress)

    def _blocks_of_store(self, source: _Source, progress: Progress | bool | None) -> Iterator[ClipBlock]:
        """Yield the clips of one store with their features, block by block, for a model of one modality.

        A block is a part of the store (`_divide_into_parts`), whose clips are stored together. Several parts
        may be read at once, from a server. `source` says which rows of the store are the clips;
        `progress` is called with the number of clips done and that of all clips, if tokens are reduced.
        """
        clips_in_store = np.flatnonzero(source.rows != NO_ROW)
        rows = source.rows[clips_in_store]  # of these clips, in the store
        padded_length = _padded_length(self.card, source.store, rows)
        parts = list(_divide_into_parts(self.card, source.store, rows))
        n_at_once = _count_parts_at_once(self.card, source.store)
        for first in range(0, len(parts), n_at_once):
            parts_to_read = parts[first : first + n_at_once]
            rows_to_read = np.concatenate([rows[part] for part in parts_to_read])
            X = _read_rows(self.card, source.store, rows_to_read, padded_length, progress)
            # X holds the clips of one part after the other.
            start = 0
            for part in parts_to_read:
                stop = start + len(rows[part])
                yield ClipBlock(self.clips.take(clips_in_store[part]), X[start:stop])
                start = stop

    def _read_modalities(self, indices: NDArray[np.intp]) -> NDArray[np.float32]:
        """Read the features of all modalities of some clips, side by side: [n, D].

        `indices` [n] are the clips' positions in `clips`; features of a modality that a clip lacks are NaN.
        """
        X = np.full((len(indices), self.card.n_features), np.nan, np.float32)
        modalities = list(self.card.input_columns())  # each with its columns in X
        for (modality, columns), sources_of_modality in zip(modalities, self.sources, strict=True):
            for source in sources_of_modality:
                rows = source.rows[indices]
                is_in_store = rows != NO_ROW
                if is_in_store.any():
                    X[is_in_store, columns] = _read_input(modality, source.store, rows[is_in_store])
        return X


def find_clips(
    card: Card,
    stores: Sequence[Store],
    *,
    movies: Collection[str] | None = None,
    clip_id: str | None = None,
) -> ReadableClips:
    """Find the clips of stores that have the features which a model reads, and why the others lack them.

    Parameters
    ----------
    card : Card
    stores : sequence of Store
    movies : collection of str, optional
        Find the clips of these movies only.
    clip_id : str, optional
        Find this clip only.

    Raises
    ------
    ModelError
        No store is given, a store's features are not of the kind that the model reads, a clip is in two
        stores, or a modality is in none.
    """
    if not stores:
        raise ModelError("no store is given: expected one or more, as in [open_store(PATH)]")
    clip_filter = ClipFilter(movies, clip_id)
    if card.modalities:
        return _find_clips_of_modalities(card, _stores_of_modalities(card, stores), clip_filter)
    return _find_clips_of_one_modality(card, stores, clip_filter)


def _find_clips_of_one_modality(
    card: Card, stores: Sequence[Store], clip_filter: "ClipFilter"
) -> ReadableClips:
    """Find the clips that have features, for a model of one modality."""
    groups = [find_group_for_model(card, store) for store in stores]
    _refuse_repeated_clips(stores)
    clips_of_stores: list[ClipColumns] = []  # for each store, the clips that have features
    rows_of_stores: list[NDArray[np.intp]] = []  # the rows of these clips in their store
    excluded: dict[str, list[str]] = {}
    for store, group in zip(stores, groups, strict=True):
        clips = ClipColumns.of_table(store.table)
        is_selected = clip_filter.mark(clips)
        rows = np.flatnonzero(is_selected & group.usable)
        rows_of_stores.append(rows)
        all_are_readable = len(rows) == len(clips)
        clips_of_stores.append(clips if all_are_readable else clips.take(rows))
        for row in np.flatnonzero(is_selected & ~group.usable).tolist():
            reason = store.table.describe_absence(row, group.name)
            excluded.setdefault(reason, []).append(clips.clip_ids[row])
    sources_of_only_modality = _sources(stores, rows_of_stores)
    return ReadableClips(
        card=card,
        clips=ClipColumns.joined(clips_of_stores),
        sources=(sources_of_only_modality,),
        excluded=excluded,
    )


def _sources(stores: Sequence[Store], rows_of_stores: Sequence[NDArray[np.intp]]) -> tuple[_Source, ...]:
    """Make the sources of a model of one modality, which reads each clip from one store.

    The clips are numbered store by store. With two clips in rows 0 and 3 of the first store, and one in row 1
    of the second, the rows of the sources are [0, 3, `NO_ROW`] and [`NO_ROW`, `NO_ROW`, 1]: a source has an
    entry for every clip, as a model of several modalities may read a clip from several stores.

    Parameters
    ----------
    stores : sequence of Store
    rows_of_stores : sequence of ndarray of int
        For each store, the rows of its clips.
    """
    n_clips = sum(len(rows) for rows in rows_of_stores)
    sources = []
    n_before = 0
    for store, rows in zip(stores, rows_of_stores, strict=True):
        row_of_clip = np.full(n_clips, NO_ROW, np.intp)
        row_of_clip[n_before : n_before + len(rows)] = rows
        n_before += len(rows)
        sources.append(_Source(store, row_of_clip))
    return tuple(sources)


class ClipFilter(NamedTuple):
    """Which clips to read: those of some movies, a single clip, or all clips if both fields are None."""

    movies: Collection[str] | None
    clip_id: str | None

    def mark(self, clips: ClipColumns) -> NDArray[np.bool_]:
        """Mark the clips [N] that the filter selects: those of its movies, its one clip, or all."""
        marks = np.ones(len(clips), np.bool_)
        if self.movies is not None:
            marks &= np.fromiter((movie in self.movies for movie in clips.movies), np.bool_, len(clips))
        if self.clip_id is not None:
            marks &= np.fromiter((known == self.clip_id for known in clips.clip_ids), np.bool_, len(clips))
        return marks


def _find_clips_of_modalities(
    card: Card, stores_of_modalities: Sequence[Sequence[Store]], clip_filter: ClipFilter
) -> ReadableClips:
    """Find the clips that have at least one modality, for a model of several modalities.

    Parameters
    ----------
    card : Card
    stores_of_modalities : sequence of sequence of Store
        For each modality, the stores that have it.
    clip_filter : ClipFilter
    """
    # Each store once, though it may have several modalities.
    stores = list(dict.fromkeys(chain.from_iterable(stores_of_modalities)))
    clips = _merged_clips(stores, clip_filter)
    index_of_clip = {clip_id: index for index, clip_id in enumerate(clips.clip_ids)}

    # --- where each modality of the clips is
    sources: list[tuple[_Source, ...]] = []  # by modality
    for modality, stores_of_modality in zip(card.modalities, stores_of_modalities, strict=True):
        _refuse_repeated_clips(stores_of_modality)
        sources_of_modality = [
            _find_rows(store, modality["backbone"], index_of_clip) for store in stores_of_modality
        ]
        sources.append(tuple(sources_of_modality))

    # --- the clips that have at least one, and why the others have none
    has_any = np.zeros(len(clips), np.bool_)
    for source in chain.from_iterable(sources):
        has_any |= source.rows != NO_ROW
    readable = np.flatnonzero(has_any)
    clip_ids_without_any = {clips.clip_ids[index] for index in np.flatnonzero(~has_any).tolist()}
    reasons = _reasons_of_modalities(card, stores_of_modalities, index_of_clip)
    return ReadableClips(
        card=card,
        clips=clips.take(readable),
        sources=tuple(_take_clips(sources_of_modality, readable) for sources_of_modality in sources),
        excluded=_first_reasons(reasons, clip_ids_without_any),
    )


def _reasons_of_modalities(
    card: Card, stores_of_modalities: Sequence[Sequence[Store]], clip_ids: Collection[str]
) -> dict[str, list[str]]:
    """Collect why modalities of clips are absent: reason -> ids of clips, also of clips with another one.

    A clip may have several reasons, one for each modality and store without it. `stores_of_modalities` has,
    for each modality, the stores that have it; `clip_ids` are the clips that matter.
    """
    reasons: dict[str, list[str]] = {}
    for modality, stores_of_modality in zip(card.modalities, stores_of_modalities, strict=True):
        for store in stores_of_modality:
            for clip_id, reason in _reasons_of_absence(store, modality["backbone"], clip_ids):
                reasons.setdefault(reason, []).append(clip_id)
    return reasons


def _take_clips(sources: Sequence[_Source], clips: NDArray[np.intp]) -> tuple[_Source, ...]:
    """Restrict sources to some of the clips, given their indices."""
    return tuple(_Source(source.store, source.rows[clips]) for source in sources)


def _find_rows(store: Store, backbone: str, index_of_clip: Mapping[str, int]) -> _Source:
    """Find the rows in a store of those clips that have features of a backbone there; `NO_ROW` for others.

    `index_of_clip` maps the id of each clip to its index in the result.
    """
    row_of_clip = np.full(len(index_of_clip), NO_ROW, np.intp)
    usable = store[backbone].usable.tolist()
    for row, clip_id in enumerate(store.table.clip_ids):
        if clip_id in index_of_clip and usable[row]:
            row_of_clip[index_of_clip[clip_id]] = row
    return _Source(store, row_of_clip)


def _reasons_of_absence(store: Store, backbone: str, clip_ids: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield the ids of clips that a store has without features of a backbone, each with the reason.

    Clips that are not among `clip_ids` are left out.
    """
    usable = store[backbone].usable.tolist()
    for row, clip_id in enumerate(store.table.clip_ids):
        if clip_id in clip_ids and not usable[row]:
            yield clip_id, store.table.describe_absence(row, backbone)


def _merged_clips(stores: Sequence[Store], clip_filter: ClipFilter) -> ClipColumns:
    """List the selected clips of several stores, each once, for a model of several modalities.

    A clip is partial (a part of its video could not be read) if it is so in any store.
    """
    clips_of_stores = ClipColumns.joined([ClipColumns.of_table(store.table) for store in stores])
    index_of_clip: dict[str, int] = {}
    for index in np.flatnonzero(clip_filter.mark(clips_of_stores)).tolist():
        clip_id = clips_of_stores.clip_ids[index]
        # The first entry of a clip is used, unless a later one says that the clip is partial.
        is_new = clip_id not in index_of_clip
        if is_new or clips_of_stores.is_partial[index]:
            index_of_clip[clip_id] = index
    return clips_of_stores.take(np.array(list(index_of_clip.values()), np.intp))


def _first_reasons(reasons: Mapping[str, list[str]], clip_ids: Collection[str]) -> dict[str, list[str]]:
    """Keep the first reason for each of some clips, so that a clip is counted once: reason -> ids of clips.

    Parameters
    ----------
    reasons : mapping of str to list of str
        Reason -> ids of clips, also of others. A clip may have several reasons.
    clip_ids : collection of str
        The clips.
    """
    first_reasons: dict[str, list[str]] = {}
    remaining = set(clip_ids)
    for reason, clip_ids_of_reason in reasons.items():
        clip_ids_with_reason = [clip_id for clip_id in clip_ids_of_reason if clip_id in remaining]
        if clip_ids_with_reason:
            first_reasons[reason] = clip_ids_with_reason
            remaining.difference_update(clip_ids_with_reason)
    return first_reasons


def _refuse_repeated_clips(stores: Sequence[Store]) -> None:
    """Raise if a clip is in two of the stores, so that its features would be ambiguous."""
    if len(stores) < 2:
        return
    location: dict[str, str] = {}
    for store in stores:
        for clip_id in store.table.clip_ids:
            if clip_id in location:
                both = f"{location[clip_id]} and {store.where}"
                raise ModelError(f"clip {clip_id} is in two stores, {both}: give one")
            location[clip_id] = store.where


def _divide_into_parts(card: Card, store: Store, rows: NDArray[np.intp]) -> Iterator[NDArray[np.intp]]:
    """Divide clips into parts that are read together; yield the indices in `rows` of the clips of each part.

    Tokens are divided by the memory that they take, other features by the pieces in which they are stored.
    `rows` [N] are the clips' rows in the store, in rising order.
    """
    if not len(rows):
        return
    group = store[card.backbone]
    # A clip's reduced tokens are [T', D'] float32, its stored ones [T, D] float16.
    if card.reduced_by:
        reduced = reduce_tokens(store, card.backbone, card.reduced_by)
        numbers_of_clip = math.prod(reduced.plan.shape)
        yield from _divide_by_memory(len(rows), numbers_of_clip * BYTES_OF_FLOAT32)
    elif _reads_tokens(card):
        numbers_of_clip = math.prod(group.shape("tokens")[1:])
        yield from _divide_by_memory(len(rows), numbers_of_clip * BYTES_OF_FLOAT16)
    else:
        for piece in group.pieces(card.features):
            # Rows rise, so that those in the piece follow each other.
            first, end = np.searchsorted(rows, [piece.start, piece.stop])
            if first < end:
                yield np.arange(first, end)


def _divide_by_memory(n_clips: int, bytes_of_clip: int) -> Iterator[NDArray[np.intp]]:
    """Yield the indices of the clips of each part: as many as `BYTES_OF_TOKENS` can hold, at least one."""
    n_clips_of_part = max(BYTES_OF_TOKENS // bytes_of_clip, 1)
    for first in range(0, n_clips, n_clips_of_part):
        yield np.arange(first, min(first + n_clips_of_part, n_clips))


def _count_parts_at_once(card: Card, store: Store) -> int:
    """Return how many parts to request at once.

    Vectors on a server are requested several parts at once, so that the server's delay is waited for once.
    Other features are larger, and those on a disk have no delay.
    """
    is_on_server = is_address(store.where)
    reads_vectors = card.features == "pooled" and not card.reduced_by
    if is_on_server and reads_vectors:
        return N_PARTS_AT_ONCE
    return 1


def _reads_tokens(card: Card) -> bool:
    """Tell whether a model reads all tokens of a clip as stored, neither pooled nor reduced."""
    return card.pool == "none" and card.features == "tokens" and not card.reduced_by


def _padded_length(card: Card, store: Store, rows: NDArray[np.intp]) -> int | None:
    """Return the number of frames to which clips are padded: that of the longest clip, at least 1.

    Clips are padded if the model reads all their frames, and their numbers of frames differ. Otherwise the
    result is None.
    """
    group = store[card.backbone]
    reads_all_frames = card.pool == "none" and not card.reduced_by
    if reads_all_frames and group.is_ragged(card.features):
        return int(group.row_size[rows].max(initial=1))
    return None


def _stores_of_modalities(card: Card, stores: Sequence[Store]) -> list[list[Store]]:
    """List, for each modality of a model, the stores that have its features.

    Raises
    ------
    ModelError
        The model reads nothing of a store, or no store has a modality.
    """
    stores_of_modalities: list[list[Store]] = [[] for _ in card.modalities]
    for store in stores:
        in_store = [index for index, modality in enumerate(card.modalities) if _has_modality(modality, store)]
        if not in_store:
            _refuse_store(card, store)  # raises
        for index in in_store:
            _check_features(card.modalities[index], store)
            stores_of_modalities[index].append(store)
    for modality, stores_of_modality in zip(card.modalities, stores_of_modalities, strict=True):
        if not stores_of_modality:
            names = " and ".join(known["name"] for known in card.modalities)
            raise ModelError(
                f"model {card.model} reads {names}: no store given has features of {modality['name']}; "
                "give the store that has them too"
            )
    return stores_of_modalities


def _refuse_store(card: Card, store: Store) -> None:
    """Raise the error that says why a store, which has none of a model's modalities, does not fit the model.

    The error is that of the first modality whose backbone the store has, as the user probably means the store
    for this one; if it has no such backbone, of the model's first modality.
    """
    expected = card.modalities[0]
    for modality in card.modalities:
        if modality["backbone"] in store.names:
            expected = modality
            break
    # This raises, as the store has not these features.
    _check_features(expected, store)


def _has_modality(modality: Input, store: Store) -> bool:
    """Tell whether a store has features of a model's modality: of the same backbone, made in the same way."""
    backbone = modality["backbone"]
    if backbone not in store.names:
        return False
    return not _differing_fields(modality, store[backbone])


def missing_modality_flags(card: Card, X: NDArray[Any]) -> list[list[str]]:
    """Return, for each clip of X [N, D], flags such as ``without_sound`` of the modalities that it lacks."""
    flags: list[list[str]] = [[] for _ in range(len(X))]
    for modality, columns in card.input_columns():
        lacks_modality = np.isnan(X[:, columns]).all(axis=1)
        for row in np.flatnonzero(lacks_modality).tolist():
            flags[row].append(WITHOUT + modality["name"])
    return flags


def _read_rows(
    card: Card,
    store: Store,
    rows: NDArray[np.intp],
    padded_length: int | None,
    progress: Progress | bool | None,
) -> NDArray[Any]:
    """Read a model's input for some clips of a store: vectors [N, D], or frames or tokens [N, F, D].

    There are four cases: reduced tokens, frames of clips of different lengths, tokens as stored (which are
    read when they are needed), and all others.

    Parameters
    ----------
    card : Card
        Says which features the model reads, and how they are pooled or reduced.
    store : Store
    rows : ndarray of int, shape [N]
        The clips' rows in the store.
    padded_length : int or None
        Number of frames to which clips are padded with NaN; None for no padding.
    progress : callable, bool or None
        For the reduction of tokens.
    """
    if card.reduced_by:
        return reduce_tokens(store, card.backbone, card.reduced_by, progress=progress).read(rows)
    group = store[card.backbone]
    if padded_length is not None:
        return read_padded(group, card.features, rows, padded_length)
    if _reads_tokens(card):
        return np.asarray(StoredClips(group, "tokens", rows))
    only_input = card.inputs[0]
    return _read_input(only_input, store, rows)


def _read_input(model_input: Input, store: Store, rows: NDArray[np.intp]) -> NDArray[Any]:
    """Read the features of one modality of some clips: vectors [N, D], or frames that are not pooled.

    `model_input` says which array of which backbone, and how frames or tokens are pooled to a vector; `rows`
    [N] are the clips' rows in the store.
    """
    group = store[model_input["backbone"]]
    array: Features = model_input["features"]  # type: ignore[assignment]  # the card allows these words alone
    pool_of_model = model_input["pool"]
    # A model of frames reads them as they are.
    if pool_of_model == "none":
        return read_array(group, array, rows)
    # A model of vectors that were made of frames or tokens says how: "mean" or "max", for example. One of
    # stored vectors says "as stored". `read_features` needs a pool all the same, and does not use it then.
    pool: Pool = "max"
    if pool_of_model in REDUCTIONS:
        pool = pool_of_model  # type: ignore[assignment]  # the keys of `REDUCTIONS` are the pools
    return read_features(group, array, pool, rows)


def find_group_for_model(card: Card, store: Store) -> Group:
    """Return the group of a store that a model reads, after checking that its features are of the same kind.

    Raises
    ------
    ModelError
        The backbone or array is missing, or a field of the provenance differs.
    """
    only_input = card.inputs[0]
    _check_features(only_input, store, card.reduced_by)
    return store[only_input["backbone"]]


def _check_features(model_input: Input, store: Store, reduced_by: str = "") -> None:
    """Raise unless a store has the features of one input of a model, and they were made in the same way.

    `reduced_by` is the rule by which the model's tokens are reduced; "" if they are not.
    """
    backbone = model_input["backbone"]
    array = model_input["features"]
    if backbone not in store.names:
        raise ModelError(
            f"store {store.name} has no features of {backbone}, "
            f"which the model reads, but of {', '.join(store.names)}"
        )
    group = store[backbone]
    if array not in group.arrays:
        raise ModelError(
            f"store {store.name} has no {array} features of {backbone}, which the model reads, "
            f"but {', '.join(group.arrays)}"
        )
    _refuse_other_provenance(model_input, store, group)
    # How many numbers a vector of the array has.
    width = group.shape(array)[-1]
    if reduced_by:
        # The rule may project tokens to fewer numbers.
        projected_width = TokenRule.parse(reduced_by).size
        if projected_width is not None:
            width = projected_width
    if width != model_input["n_features"]:
        raise ModelError(
            f"store {store.name} has {width} features a clip of {backbone}; "
            f"the model reads {model_input['n_features']}"
        )


def _refuse_other_provenance(model_input: Input, store: Store, group: Group) -> None:
    """Raise if a group's features were made differently from a model's input, naming the first difference."""
    differing_fields = _differing_fields(model_input, group)
    if not differing_fields:
        return
    first, *others = differing_fields
    value_of_model = _field_text(model_input["provenance"], first)[:MAX_CHARACTERS]
    value_of_store = _field_text(group.provenance, first)[:MAX_CHARACTERS]
    and_others = f"; and {len(others)} more: {', '.join(others[:3])}" if others else ""
    raise ModelError(
        f"store {store.name}: its features of {group.name} were made otherwise than "
        f"those the model was trained on: {first} is {value_of_store}, was {value_of_model}{and_others}"
    )


def _differing_fields(model_input: Input, group: Group) -> list[str]:
    """Return the fields that say that the features which a model reads were made otherwise in a group.

    Other arrays do not count: a model of pooled vectors reads a store with or without tokens.
    """
    array: Features = model_input["features"]  # type: ignore[assignment]  # the card allows these words alone
    return same_numerics(model_input["provenance"], group.provenance, array=array)


def _field_text(provenance: Mapping[str, Any], dotted: str) -> str:
    """Return the text of a field of a provenance for a message; "absent" if it has no such field.

    The dotted name "decoder.version" is the field "version" of the object "decoder".
    """
    value: Any = provenance
    for name in dotted.split("."):
        if not isinstance(value, Mapping) or name not in value:
            return "absent"
        value = value[name]
    return repr(value)
