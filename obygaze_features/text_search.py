"""Rank a store's clips by their similarity to a text, or to a clip."""

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from obygaze_features.answer_search import NearClasses, class_scores, near_classes
from obygaze_features.arguments import checked
from obygaze_features.backbones import load_text_backbone
from obygaze_features.backbones.packaged_sentence import packaged_sentence_encoder
from obygaze_features.backbones.registry import backbone_call
from obygaze_features.cosines import best, cosines
from obygaze_features.errors import BackboneError, SearchError
from obygaze_features.store import (
    Group,
    Store,
    classes_of,
    groups_of_classes,
    open_store,
    same_numerics,
)
from obygaze_features.store.answers import LIKELY
from obygaze_features.store.labelled import html_table
from obygaze_features.store.provenance import clipped, embedding_space
from obygaze_features.store.records import StoredClip
from obygaze_features.text import counted, known_spelling

if TYPE_CHECKING:
    import pandas as pd

TEXT_HALF = {
    "clip": "clip-text",
    "image": "text",
    "openclip": "openclip-text",
    "video": "text",
    "xclip": "xclip-text",
    "xclip-lsmdc": "xclip-lsmdc-text",
}
"""Backbone of clips -> the backbone of its text encoder, which maps texts to the same space."""
COLUMNS = ("rank", "clip_id", "movie", "start_s", "end_s", "score")


@dataclass(frozen=True, slots=True)
class Hit:
    """A clip that was found.

    Attributes
    ----------
    rank : int
        From 1; clips of equal scores are in the order of the store.
    clip_id, movie : str
    start_s, end_s : float or None
        Times in the video; None where the clip is a whole file.
    score : float
        Cosine of the clip's pooled vector with the text's vector; of clips like one, of the vectors
        standardised by the store's mean and deviation.
    """

    rank: int
    clip_id: str
    movie: str
    start_s: float | None
    end_s: float | None
    score: float


@dataclass(frozen=True)
class Ranking:
    """The clips nearest to a text or a clip, best first.

    Attributes
    ----------
    query : str
    hits : tuple of Hit
    backbone : str
        Group of the store that was searched.
    space : str
        Network and weights that both sides come from.
    fingerprint : str
        Of the store.
    n_clips : int
        Clips that were ranked.
    n_without : int
        Clips without features, which were not.
    notes : tuple of str
        What limits the result, such as a query that was cut.
    """

    query: str
    hits: tuple[Hit, ...]
    backbone: str
    space: str
    fingerprint: str
    n_clips: int
    n_without: int
    notes: tuple[str, ...] = field(default=())

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)

    def rows(self) -> list[tuple[Any, ...]]:
        """Return the hits as rows of `COLUMNS`."""
        return [tuple(getattr(hit, name) for name in COLUMNS) for hit in self.hits]

    def to_frame(self) -> "pd.DataFrame":
        """Return the hits as a table."""
        import pandas as pd  # noqa: PLC0415 - slow, and needed here alone

        return pd.DataFrame(self.rows(), columns=list(COLUMNS))

    def _repr_html_(self) -> str:
        return html_table(self.query, COLUMNS, self.rows(), self.notes)


@dataclass(frozen=True, eq=False)
class Query:
    """A text, or a clip, as a vector [D] of a space."""

    text: str
    vector: NDArray[np.float64]
    space: str
    where: str
    notes: tuple[str, ...] = ()


@checked
def search(
    store: Store | Path | str,
    query: str,
    *,
    text_store: Store | Path | str | None = None,
    backbone: str | None = None,
    weights: str | None = None,
    top: int = 10,
    device: str = "auto",
) -> Ranking:
    """Rank the clips of a store by the cosine of their pooled vectors with a text's vector.

    If the store has no vectors that can be compared with texts, but probabilities of named classes, clips are
    ranked by the probabilities of the classes whose names are near the text. There are then no hits if no
    class is near, or if no clip is likely to show one.

    Parameters
    ----------
    store
        An open store, its path or its URL.
    query
        The text to look for; with `text_store`, a text of that store or its id.
    text_store
        Store that holds the query's vector, so that no network runs.
    backbone
        Group of the store; needed if several can be searched.
    weights
        Weights of the text encoder; None for those on the hub that the store's provenance names.
    top
        Number of clips to return.
    device
        Device that the text encoder runs on.

    Raises
    ------
    SearchError
        The store has no group to search, or texts and clips come from different weights.

    Examples
    --------
    >>> import obygaze_features as of
    >>> try:
    ...     of.search("stores/films", "a woman seen from behind")
    ... except of.ObygazeError as error:
    ...     print(error)
    stores/films-1.0.0: no group can read texts (toy); clip, image, openclip, video, xclip, xclip-lsmdc may
    """
    if not query.strip():
        raise SearchError("the query is empty")
    opened = _opened(store)
    group_of_classes = _find_group_of_classes(opened, backbone)
    if group_of_classes is None:
        return _search_vectors(
            opened, query, backbone=backbone, text_store=text_store, weights=weights, device=device, top=top
        )
    if text_store is not None:
        raise SearchError(
            f"group {group_of_classes.name} is searched by names of classes: leave out the text store"
        )
    near = _find_near_classes(group_of_classes, query, weights, device)
    return _rank_by_classes(opened, group_of_classes, query, near, top)


def _search_vectors(
    store: Store,
    text: str,
    *,
    backbone: str | None,
    text_store: Store | Path | str | None,
    weights: str | None,
    device: str,
    top: int,
) -> Ranking:
    """Rank clips by the cosines of their pooled vectors with the vector of a text.

    With `text_store`, which holds the vector of the text, `text` is one of its texts or its id; without, the
    vector is computed by a text encoder of these weights on this device.

    Raises
    ------
    SearchError
        The store has no group to search, texts and clips come from different weights, or the text's vector
        has no direction.
    """
    group = choose_group(store, backbone, by_text=True)
    location = f"{store.where}, group {group.name}"
    space_of_clips = embedding_space(group.provenance)
    if space_of_clips is None:
        raise SearchError(
            f"{location}: nothing says which texts its vectors compare with; {', '.join(TEXT_HALF)} may"
        )
    if text_store is None:
        query = encode_query(group, text, weights, device)
    else:
        query = stored_query(text_store, text, space_of_clips)
    if query.space != space_of_clips:
        raise SearchError(
            f"texts and clips of different weights do not compare: {query.where} is of {query.space!r}, "
            f"{location} of {space_of_clips!r}"
        )

    length = float(np.linalg.norm(query.vector))
    if length == 0.0 or not np.isfinite(length):
        raise SearchError(f"{query.where}: the vector of the text is zero or not finite")
    return _make_ranking(store, group, cosines(group, query.vector), query, top)


def _find_group_of_classes(store: Store, backbone: str | None) -> Group | None:
    """Return the group of class probabilities to search a text in; None to search vectors instead.

    Vectors that can be compared with texts are preferred. If a backbone is named that has none, its group of
    class probabilities is returned. If no backbone is named and no group of the store has such vectors, it is
    the store's only group of class probabilities. In all other cases vectors are searched, and the search
    says what is wrong.

    Parameters
    ----------
    store
        The store.
    backbone
        Name of a group of class probabilities, or of the backbone that they belong to; None if not named.
    """
    # Groups whose vectors can be compared with texts: their provenance names the space that both share.
    comparable_groups = [name for name in store.names if embedding_space(store[name].provenance) is not None]
    class_groups = groups_of_classes(store)
    if backbone is None:
        is_only_choice = len(class_groups) == 1 and not comparable_groups
        return store[class_groups[0]] if is_only_choice else None
    if backbone in comparable_groups:
        return None
    for name in class_groups:
        backbone_of_classes = store[name].provenance.get("beside")  # a group of classes lies beside features
        if backbone in (name, backbone_of_classes):
            return store[name]
    return None


def _find_near_classes(group: Group, text: str, weights: str | None, device: str) -> NearClasses:
    """Compare a text with the names of the classes of a group, by a sentence encoder.

    `weights` is the folder of the encoder's weights; None for those that a package brings.
    """
    from obygaze_features.backbones.compute import Compute  # noqa: PLC0415 - loads torch

    folder_of_weights = nullcontext(weights) if weights else packaged_sentence_encoder()
    with folder_of_weights as folder:
        encoder = load_text_backbone("sentence", weights=str(folder), compute=Compute(device))
    return near_classes(classes_of(group), text, encoder)


def _rank_by_classes(store: Store, group: Group, text: str, near: NearClasses, top: int) -> Ranking:
    """Rank clips by the probability that they show the classes whose names are near a text.

    If no class is near, no clip is ranked; clips with a score below `LIKELY` are left out. A note says which
    classes are nearest.

    Parameters
    ----------
    store
        The store.
    group
        Its group of class probabilities.
    text
        The text.
    near
        How near the name of each class is to the text, and whether any is near enough (`is_near`).
    top
        Number of clips to return.
    """
    scores = class_scores(group, near)  # [N clips]; NaN for clips without features
    is_likely = scores >= LIKELY
    is_ranked = is_likely if near.is_near else np.zeros_like(is_likely)

    nearest = near.in_words()
    if not near.is_near:
        note = f"no class near; the nearest are {nearest}"
    elif not is_ranked.any():
        note = f"the nearest classes are {nearest}, and no clip is likely to show them"
    else:
        note = f"found by the classes {nearest}"

    # Instead of a vector of the text, the weight of each class says what was searched.
    query = Query(text, near.shares, f"classes of {group.name}", store.where, (note,))
    scores_to_rank = np.where(is_ranked, scores, np.nan).astype(np.float32)
    ranking = _make_ranking(store, group, scores_to_rank, query, top)
    # It counts the clips that have a score to rank. Those that are too unlikely were searched too.
    n_searched = int((~np.isnan(scores)).sum())
    return replace(ranking, n_clips=n_searched)


@checked
def search_like(
    store: Store | Path | str,
    clip_id: str,
    *,
    other: Store | Path | str | None = None,
    backbone: str | None = None,
    top: int = 10,
) -> Ranking:
    """Rank the clips of a store by their likeness to one clip.

    The score is the cosine of the pooled vectors, standardised by their mean and deviation over the store:
    what all clips have in common then does not count.

    Parameters
    ----------
    store
        An open store, its path or its URL.
    clip_id
        Id of a clip of `store`, which is not ranked itself; or of a clip of `other`.
    other
        Store that has the clip, with features of the same backbone and settings; None for `store`.
    backbone
        Group of the store; needed if several have pooled vectors.
    top
        Number of clips to return.

    Raises
    ------
    SearchError
        There is no such clip, it has no features, or they were computed with other settings.

    Examples
    --------
    >>> import obygaze_features as of
    >>> hits = of.search_like("stores/films", "film0-c003", top=2)
    >>> [hit.rank for hit in hits]
    [1, 2]
    """
    opened = _opened(store)
    group = choose_group(opened, backbone)
    store_of_clip = opened if other is None else _opened(other)
    if group.name not in store_of_clip.names:
        raise SearchError(
            f"{store_of_clip.where}: has no features of {group.name}, of which {opened.where} is searched"
        )
    group_of_clip = store_of_clip[group.name]
    differing_fields = same_numerics(group.provenance, group_of_clip.provenance, array="pooled")
    if differing_fields:
        raise SearchError(
            f"{store_of_clip.where}: its features of {group.name} were made otherwise than those of "
            f"{opened.where}: {', '.join(differing_fields[:4])}"
        )

    clip_id = known_spelling(clip_id, group_of_clip.clip_ids)
    vector = group_of_clip.read(clip_id, "pooled").astype(np.float64)
    scores = cosines(group, vector, standard=True)
    if other is None:  # the clip itself is not ranked
        scores[group.clip_ids.index(clip_id)] = np.nan

    # A group whose vectors compare with no texts has no named space: its vectors compare with each other.
    space = embedding_space(group.provenance) or group.name
    query = Query(f"like {clip_id}", vector, space, store_of_clip.where)
    return _make_ranking(opened, group, scores, query, top)


def _make_ranking(store: Store, group: Group, scores: NDArray[np.float32], query: Query, top: int) -> Ranking:
    """Make the ranking of the clips with the highest scores.

    `scores` are those of all clips [N]; NaN for clips that are not ranked.
    """
    if top < 1:
        raise SearchError(f"top {top}: expected 1 or more")

    rows = best(scores, top).tolist()
    clip_of_row = store.clips_at(rows)
    hits = []
    for rank, row in enumerate(rows, start=1):
        clip = clip_of_row[row]
        start_s, end_s = _span_of_clip(clip)
        hits.append(Hit(rank, clip.clip_id, clip.movie, start_s, end_s, float(scores[row])))

    is_untrained = bool(group.provenance.get("untrained"))
    notes = ("the network is untrained: the order says nothing",) if is_untrained else ()
    return Ranking(
        query=query.text,
        hits=tuple(hits),
        backbone=group.name,
        space=query.space,
        fingerprint=store.fingerprint,
        n_clips=int((~np.isnan(scores)).sum()),
        n_without=len(scores) - int(group.usable.sum()),
        notes=(*query.notes, *notes),
    )


def choose_group(store: Store, backbone: str | None, *, by_text: bool = False) -> Group:
    """Return the group of a store to search: the named one, or the only one that can be searched.

    A group can be searched if it has pooled vectors of clips. For a search by text, it must also be possible
    to compare texts with them. A named group needs pooled vectors alone: if texts do not compare with them,
    the caller says why.

    Parameters
    ----------
    store
        The store.
    backbone
        Name of the group; None if not named.
    by_text
        Whether the query is a text, and not a clip.

    Raises
    ------
    SearchError
        There is no such group, or there are several.
    """
    pooled = [name for name in store.names if "pooled" in store[name].arrays]
    if not pooled:
        arrays: set[str] = set()  # of all groups
        for name in store.names:
            arrays.update(store[name].arrays)
        raise SearchError(
            f"{store.where}: search compares pooled vectors, one a clip, and the store has "
            f"{', '.join(sorted(arrays))} alone"
        )

    if backbone in pooled:
        return store[backbone]

    searchable = []
    for name in pooled:
        # Groups beside a backbone's own, such as class probabilities, are no features to compare clips by.
        is_of_clips = name in store.backbones and not store[name].text
        is_comparable = not by_text or embedding_space(store[name].provenance) is not None
        if is_of_clips and is_comparable:
            searchable.append(name)

    if backbone is None and by_text and not searchable:
        raise SearchError(
            f"{store.where}: no group can read texts ({', '.join(store.names)}); {', '.join(TEXT_HALF)} may"
        )
    if backbone is None and len(searchable) == 1:
        return store[searchable[0]]
    raise SearchError(
        f"{store.where} has pooled vectors of {', '.join(searchable) or 'no clips'}: "
        "choose one with --backbone (backbone=)"
    )


def encode_query(group: Group, text: str, weights: str | None, device: str) -> Query:
    """Encode a text with the text encoder of the network that made a group's features.

    Parameters
    ----------
    group
        The group of clips, whose provenance names the network.
    text
        The text.
    weights
        Weights of the text encoder; None for those on the hub that the provenance names.
    device
        Where the encoder runs, such as "cpu".

    Raises
    ------
    SearchError
        The network has no text encoder, or the provenance does not say where its weights are.
    BackboneError
        The encoder has no token for the text.
    """
    from obygaze_features.backbones.compute import Compute  # noqa: PLC0415 - loads torch

    backbone = str(group.provenance.get("name"))
    if backbone not in TEXT_HALF:
        raise SearchError(
            f"group {group.name}: no backbone maps texts to the space of {backbone!r}; "
            "name a store of texts with --text-store (text_store=)"
        )
    place_of_weights = backbone_call(group.provenance, weights).weights
    if place_of_weights is None:
        raise SearchError(
            f"group {group.name} was made with weights that are not on the hub: name them with --weights "
            "(weights=), or a text store with --text-store (text_store=)"
        )

    text_encoder = load_text_backbone(TEXT_HALF[backbone], weights=place_of_weights, compute=Compute(device))
    (tokens,) = text_encoder.tokenize([text])  # a batch of one text
    if not tokens.ids:
        raise BackboneError(f"{text_encoder.name} has no token for the query {text!r}")
    notes: tuple[str, ...] = ()
    if tokens.is_cut:
        notes = (f"the query was cut at {tokens.limit} of {tokens.n_tokens} tokens",)

    token_ids = np.array([tokens.ids], np.int64)  # [1, tokens]
    vectors = text_encoder.encode(token_ids)  # [1, D]
    vector = vectors[0].astype(np.float64)
    location = f"the query ({text_encoder.name}, weights {place_of_weights})"
    return Query(text, vector, str(text_encoder.provenance["space"]), location, notes)


def stored_query(store: Store | Path | str, query: str, wanted: str) -> Query:
    """Read the vector of a query from a store of texts, from the group whose embedding space is wanted.

    If no group has this space, the query is read from the store's first group: the caller compares the spaces
    and says how they differ.

    Parameters
    ----------
    store
        The store of texts.
    query
        A text, exactly as it is stored, or its id; in a store of imported features, its id.
    wanted
        Name of the embedding space of the clips' vectors, see `embedding_space`.

    Raises
    ------
    SearchError
        There is no such text, or two rows have it.
    """
    opened = _opened(store)
    group = opened[opened.names[0]]
    for name in opened.names:
        if embedding_space(opened[name].provenance) == wanted:
            group = opened[name]
            break

    location = f"{opened.where}, group {group.name}"
    text_ids = group.clip_ids
    texts = group.text or text_ids  # imported features have ids alone
    row = _row_of_query(query, texts, text_ids, location)
    vector = group.read(text_ids[row], "pooled").astype(np.float64)
    return Query(texts[row], vector, str(embedding_space(group.provenance)), location)


def _row_of_query(query: str, texts: Sequence[str], text_ids: Sequence[str], location: str) -> int:
    """Return the row whose text is the query, or if no text is, the row whose id is.

    Parameters
    ----------
    query
        A text or an id.
    texts, text_ids
        The text and the id of each row.
    location
        What messages call the texts.

    Raises
    ------
    SearchError
        There is no such row, or there are two.
    """
    rows = [row for row, text in enumerate(texts) if text == query]
    if not rows:
        rows = [row for row, text_id in enumerate(text_ids) if text_id == query]
    if not rows:
        raise SearchError(f"{location}: has no text or id {clipped(query)!r}")
    if len(rows) > 1:
        raise SearchError(f"{location}: has {counted(len(rows), 'row')} of the text {clipped(query)!r}")
    return rows[0]


def _span_of_clip(clip: StoredClip) -> tuple[float | None, float | None]:
    """Return start and end of a clip in its video, in seconds; of a whole file, 0 and its duration."""
    is_whole_file = clip.start_s is None and clip.end_s is None
    if is_whole_file and clip.duration_s is not None:
        return 0.0, clip.duration_s
    return clip.start_s, clip.end_s


def _opened(store: Store | Path | str) -> Store:
    """Return a store as it is if it is open; open it if it is a path or URL."""
    return store if isinstance(store, Store) else open_store(store)
