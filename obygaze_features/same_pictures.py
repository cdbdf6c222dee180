"""Find clips that look alike: re-encoded, graded, letterboxed, cropped, mirrored, or a little later.

Frames of the group `signature` are compared in the order of time. The likeness of two clips is the best, over
views and small shifts, of the median cosine of frames at the same place. Clips of the very same signature
are grouped first; of the others, products of clips' mean frames say which are compared frame by frame. A clip
that looks like another may be another moment of its scene; films share pictures if several clips in a row do.

Terms: a *side* is what clips are not compared within: a store if two are compared, else a movie. A *view* is
a part of the picture (`VIEWS`). A *way* to compare two clips is a view of each, with the second clip as it is
or mirrored (`WAYS`). A *moment* is the number of a clip in the order of films and times.

Every pair is looked at. An index by bands of bits would not spare that: clips that look alike may differ in
so many signs that nearly every other pair agrees in some band too. Of 264 signs 79 may differ where a cosine
is `NEAR`; one of 80 bands of 3 or 4 signs then agrees, as it does in 99.9 % of unlike pairs. With the 53 of
`ALIKE` one of 54 bands of about 5 signs agrees in 84 % of them.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations, combinations_with_replacement
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from obygaze_features.errors import StoreError
from obygaze_features.screen import Progress, ShowProgress, shown_progress
from obygaze_features.signature_likeness import (
    MIN_FRAMES,
    SIGNS,
    Floats,
    Signs,
    inverse_lengths,
    likeness,
    mirror_halves,
    mirrored,
)
from obygaze_features.store.store import Store

GROUP = "signature"
"""Backbone whose frames are compared."""
HOW_TO_EXTRACT = f"extract them: obygaze extract MANIFEST STORE --backbone {GROUP}"

ALIKE = 0.6
"""Least likeness of clips that look alike: half way between the copies and the others it was fixed on."""

SAME = 0.7
"""Least likeness of clips that share pictures."""

MIN_RUN = 4
"""Least number of successive clips of two films that share pictures, for the films to be listed."""

NEAR = 0.4
"""Least cosine of two clips' mean frames; clips with a smaller one are not compared frame by frame."""

MIN_GAIN = 0.05
"""By how much the cosine in a later one of `WAYS` must be larger to be preferred: it saves comparisons."""

MIN_TEXTURE = 0.2
"""Share of a frame's pixels that its commonest lightness must leave: less is black, a title, credits."""

MAX_MOVIES = 20
"""Movies that may share a picture before it says nothing of them, such as a distributor's title."""

BLOCK = 256
"""Clips that are compared at a time with as many others."""

PAIR_CPU_S = (0.13e-6, 1.5e-6)
"""CPU seconds for a pair of clips below `NEAR`, and for one above it (AMD EPYC, one core)."""

VIEWS = ("frame", "upper", "picture", "inner", "middle")
FEATURES = [*(f"{view}_{k}" for view in VIEWS for k in range(SIGNS)), "texture"]
"""What a frame of `signature` is, by its provenance: models read it, and import no backbone."""

VIEW_PAIRS = [
    (VIEWS.index(a), VIEWS.index(b))
    for a, b in (
        ("frame", "frame"),
        ("upper", "upper"),
        ("picture", "picture"),
        ("inner", "picture"),
        ("picture", "inner"),
        ("middle", "picture"),
        ("picture", "middle"),
    )
]
"""Views in which two clips are compared: one may have lost its borders, its sides or its subtitles."""

WAYS = [(a, b, is_mirrored) for is_mirrored in (False, True) for a, b in VIEW_PAIRS]
"""Ways to compare two clips: the view of each, and whether the second is mirrored left to right."""

_PLACES_OF_VIEW = [slice(k * SIGNS, (k + 1) * SIGNS) for k in range(len(VIEWS))]
"""Where the signs of each view lie in a frame."""

_SEVERAL_SIDES = -1
"""Side of a signature that clips of several sides have."""

_NOT_COMPARED = -1
"""Way of a pair of signatures that are not compared, and likeness of such a pair."""

_BITS_OF_ONE = 0x3C00
_BITS_OF_MINUS_ONE = 0xBC00
"""Bits of these numbers in float16."""


@dataclass(frozen=True, slots=True)
class SameClip:
    """A clip of a group of clips that look alike.

    Attributes
    ----------
    group : int
        Number of the group, from 1, in falling order of likeness.
    clip, movie : str
        Id of the clip, and its movie.
    store : int
        1, or 2 for a clip of the second store.
    likeness : float
        Its largest likeness to a clip of another movie, or of the other store; 1 for the same signature.
    """

    group: int
    clip: str
    movie: str
    store: int
    likeness: float


@dataclass(frozen=True, slots=True)
class Shared:
    """Two movies that share pictures, and the largest number of successive clips that they share."""

    movie_a: str
    movie_b: str
    clips: int


@dataclass(frozen=True, slots=True)
class Duplicates:
    """What was found.

    Attributes
    ----------
    clips : tuple of SameClip
        Group by group, the most alike first.
    movies : tuple of Shared
        Movies that share at least `MIN_RUN` clips in a row.
    compared : tuple of int
        Clips of each store that were compared.
    plain : tuple of int
        Clips of each store that show too little to be compared, such as black or a title.
    without : tuple of int
        Clips of each store that have no signature.
    """

    clips: tuple[SameClip, ...]
    movies: tuple[Shared, ...]
    compared: tuple[int, ...]
    plain: tuple[int, ...]
    without: tuple[int, ...]


class _Film(NamedTuple):
    """A movie of one of the stores, whose number is 1 or 2."""

    store: int
    movie: str


class _Clip(NamedTuple):
    """A clip of a store. Clips are sorted by these fields: film by film, and in the order of time.

    Attributes
    ----------
    store : int
        1 or 2.
    movie, clip_id : str
    start_s : float
        0 for a clip without times.
    row : int
        Row of the clip in its store.
    """

    store: int
    movie: str
    start_s: float
    row: int
    clip_id: str

    @property
    def film(self) -> _Film:
        """The film of the clip."""
        return _Film(self.store, self.movie)


@dataclass(frozen=True, eq=False)
class _Clips:
    """Clips of one or two stores in the order of `_Clip`, and their signatures.

    Attributes
    ----------
    clips : list of _Clip
        The clips, [C].
    films : list of _Film
        The films, in the order of the clips.
    film_of_clip : ndarray
        [C]: number of each clip's film, its place in `films`.
    moments : ndarray
        [C]: rising numbers of the clips. They are consecutive within a film; between two films one is left
        out, so that no run of numbers goes on from one film to the next.
    clips_of_signature : list of list of int
        [S]: places in `clips` of the clips that have each signature.
    signs : ndarray
        [S, F, 1321]: signs of frames in all views and, last, whether a frame shows something.
    inverse_lengths : ndarray
        [views, S, F]: 1 / the length of each frame in each view; NaN for frames that show too little.
    n_showing_too_little : list of int
        Number of clips of each store that show too little.
    """

    clips: list[_Clip]
    films: list[_Film]
    film_of_clip: NDArray[np.int64]
    moments: NDArray[np.int64]
    clips_of_signature: list[list[int]]
    signs: Signs
    inverse_lengths: Floats
    n_showing_too_little: list[int]

    @property
    def is_one_store(self) -> bool:
        """Whether all clips are of one store."""
        return len(self.n_showing_too_little) == 1


class _NearPairs(NamedTuple):
    """Pairs of signatures of a block, and how to compare those whose mean frames are similar.

    Attributes
    ----------
    rows, columns : ndarray
        Numbers of signatures, [R] and [C]; each of `rows` is paired with each of `columns`.
    ways : ndarray
        [R, C]: the way to compare each pair (an index of `WAYS`) in which its mean frames are most similar;
        `_NOT_COMPARED` (-1) for pairs that are not compared.
    n_done : int
        Number of signatures that have been gone through.
    """

    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    ways: NDArray[np.int8]
    n_done: int


def duplicates(
    store: Store,
    other: Store | None = None,
    *,
    only: Collection[str] | None = None,
    progress: Progress | bool | None = None,
) -> Duplicates:
    """Find clips of a store that look like clips of another store, or of other movies in the same store.

    Parameters
    ----------
    store
        A store of clips, with frames of the backbone `signature`.
    other
        The store to compare it with; None compares clips of different movies in `store`.
    only
        Ids of the clips of `store` to compare; None for all.
    progress
        Called with (clips compared, all clips). Or whether to show a bar.

    Returns
    -------
    Duplicates
        Groups of clips that look alike, movies that share pictures, and for each store the numbers of clips
        that were compared, that show too little, and that have no signature.

    Raises
    ------
    StoreError
        A store has no frames of `signature`, or the stores have other numbers of frames.
    """
    stores = [store] if other is None else [store, other]
    clips = _read_signatures(stores, only)
    with shown_progress(progress, "comparing clips", "clip") as show:
        likenesses = _compare_clips(clips, show)

    n_compared = Counter(clip.store for clip in clips.clips)  # store, 1 or 2 -> number of its clips
    store_numbers = range(1, len(stores) + 1)
    n_without = []
    for compared_store in stores:
        is_without_signature = ~compared_store[GROUP].usable
        n_without.append(int(np.count_nonzero(is_without_signature)))

    return Duplicates(
        clips=tuple(_list_groups(clips, likenesses.nearest, likenesses.group_of)),
        movies=tuple(_find_shared_movies(clips, likenesses.pairs())),
        compared=tuple(n_compared[number] for number in store_numbers),
        plain=tuple(clips.n_showing_too_little),
        without=tuple(n_without),
    )


def has_signatures(store: Store) -> bool:
    """Return whether a store has frames of `signature` as this version makes them, and enough per clip."""
    if GROUP not in store.names or "frames" not in store[GROUP].arrays:
        return False
    architecture = store[GROUP].provenance.get("architecture") or {}
    _, n_frames, width = store[GROUP].shape("frames")
    has_these_features = architecture.get("features") == FEATURES and width == len(FEATURES)
    return has_these_features and n_frames >= MIN_FRAMES


def expected_s(store: Store, other: Store | None = None) -> tuple[float, float]:
    """Estimate the CPU seconds that `duplicates` takes.

    Returns
    -------
    tuple of float
        The estimate if no two clips look similar, and that if all do.
    """
    n_clips = _n_with_signatures(store)
    n_pairs = n_clips * (n_clips - 1) / 2 if other is None else n_clips * _n_with_signatures(other)
    s_if_not_near, s_if_near = PAIR_CPU_S
    return n_pairs * s_if_not_near, n_pairs * s_if_near


def _n_with_signatures(store: Store) -> int:
    """Count the clips of a store whose pictures can be compared."""
    return len(store[GROUP]) if has_signatures(store) else 0


def _compare_clips(clips: _Clips, show: ShowProgress) -> "_Likenesses":
    """Compare the signatures of all clips of different sides, and return those that are alike.

    A side is a store, or, if there is only one store, a movie: clips of one side are not compared with each
    other. A signature that several clips have is compared once.

    Signatures are gone through in blocks. The mean frames of two clips say whether their single frames are
    compared, which takes longer. `show` is called with the number of signatures that are done, of all.
    """
    side_of_signature = _sides_of_signatures(clips)
    likenesses = _Likenesses(clips, has_several_sides=side_of_signature == _SEVERAL_SIDES)
    for near_pairs in _find_near_pairs(clips, side_of_signature):
        for compared_pairs in _compare_frames(clips, near_pairs):
            likenesses.add(compared_pairs)
        show(near_pairs.n_done, len(clips.signs))
    return likenesses


def _sides_of_signatures(clips: _Clips) -> NDArray[np.int64]:
    """Return the side of each signature, [S]: number of a film or store, or `_SEVERAL_SIDES` (-1).

    A side is what clips are not compared within: a store if two are compared, else a film.
    """
    if clips.is_one_store:
        side_of_clip = clips.film_of_clip
    else:
        side_of_clip = np.array([clip.store for clip in clips.clips], int)
    side_of_signature = np.full(len(clips.clips_of_signature), _SEVERAL_SIDES)
    for signature, clip_indices in enumerate(clips.clips_of_signature):
        sides = set(side_of_clip[clip_indices].tolist())
        if len(sides) == 1:
            side_of_signature[signature] = sides.pop()
    return side_of_signature


class _ComparedPairs(NamedTuple):
    """Likenesses of pairs of signatures.

    Attributes
    ----------
    rows, columns : ndarray
        Numbers of signatures, [A] and [B].
    likenesses : ndarray
        [A, B]: likeness of each of `rows` to each of `columns`; `_NOT_COMPARED` (-1) for pairs that are not
        compared, which is below every likeness that counts.
    """

    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    likenesses: NDArray[np.float32]


class _Likenesses:
    """Collects which clips are alike while they are compared, block by block.

    Parameters
    ----------
    clips
        All clips, of S signatures.
    has_several_sides
        [S]: whether clips of several sides, movies or stores, have the signature.

    Attributes
    ----------
    nearest : ndarray
        [S]: the largest likeness of a signature to another so far; 1 if several sides have it, and 0 if it
        is like no other.
    group_of : ndarray
        [S]: number of a signature's group. Signatures that a chain of alike ones connects have one group.
    """

    def __init__(self, clips: _Clips, has_several_sides: NDArray[np.bool_]) -> None:
        """Begin with the clips of equal signatures, which are alike without a comparison."""
        clips_of_signature = clips.clips_of_signature
        n_signatures = len(clips_of_signature)
        self._clips = clips
        # A signature that clips of several sides have makes these alike: their likeness is 1. For the others,
        # no other clip was compared yet: 0.
        self.nearest = np.zeros(n_signatures, np.float32)
        self.nearest[has_several_sides] = 1
        self.group_of: NDArray[np.int64] = np.arange(n_signatures)  # each is a group of its own
        # Of each signature, [S]: whether only one clip has it, and the moment of the first clip that has it.
        self._is_of_one_clip = np.array([len(clip_indices) == 1 for clip_indices in clips_of_signature], bool)
        self._first_moment = clips.moments[[clip_indices[0] for clip_indices in clips_of_signature]]
        # Clips that share pictures are collected in two forms. A pair of clips is one number, which tells the
        # moments of both (`_pair_numbers`), in arrays as they come. Where several clips have one signature,
        # all clips of a list share pictures: `pairs` makes pairs of them at the end.
        self._pair_numbers: list[NDArray[np.int64]] = []
        self._clips_that_share = [clips_of for clips_of in clips_of_signature if len(clips_of) > 1]

    def add(self, compared: _ComparedPairs) -> None:
        """Add the likenesses of pairs of signatures.

        Two thresholds serve two questions. Which clips look alike: a likeness of `ALIKE` puts two signatures
        into one group. Which films share a run of pictures: a likeness of `SAME`, which is higher, makes two
        clips a pair that shares pictures.
        """
        rows, columns, likenesses = compared
        largest_of_rows = likenesses.max(axis=1)
        largest_of_columns = likenesses.max(axis=0)
        self._raise_nearest(rows, largest_of_rows)
        self._raise_nearest(columns, largest_of_columns)
        self._join_groups(rows, columns, likenesses >= ALIKE)
        is_same = likenesses >= SAME
        self._add_pairs_of_single_clips(rows, columns, is_same)
        self._add_clips_of_common_signatures(rows, columns, is_same)

    def pairs(self) -> NDArray[np.int64]:
        """Return the numbers of the pairs of clips that share pictures (see `_pair_numbers`), rising."""
        pairs_within_groups = _pairs_within_groups(self._clips, self._clips_that_share)
        numbers = np.concatenate([*self._pair_numbers, pairs_within_groups])
        numbers.sort()
        return numbers

    def _raise_nearest(self, signatures: NDArray[np.int64], best: NDArray[np.float32]) -> None:
        """Raise `nearest` of signatures to new likenesses that are larger, and at least `ALIKE`.

        `best` is the largest new likeness of each signature.
        """
        best_if_alike = np.where(best >= ALIKE, best, 0)
        self.nearest[signatures] = np.maximum(self.nearest[signatures], best_if_alike)

    def _join_groups(
        self, rows: NDArray[np.int64], columns: NDArray[np.int64], is_alike: NDArray[np.bool_]
    ) -> None:
        """Merge the groups of signatures that are alike, and store the group of each in `group_of`.

        In a graph whose nodes are the groups so far, and whose edges join groups with alike signatures, each
        connected component is a merged group.

        Parameters
        ----------
        rows, columns
            Numbers of signatures, [A] and [B].
        is_alike
            Shape [A, B]: whether each of `rows` is like each of `columns`.
        """
        groups = self.group_of[rows]
        other_groups = self.group_of[columns]
        is_edge = is_alike & (groups[:, None] != other_groups)  # [A, B]
        i, j = np.nonzero(is_edge)
        if not len(i):
            return
        n_nodes = len(self.nearest)  # there are no more groups than signatures
        ends_of_edges = (groups[i], other_groups[j])
        graph = coo_array((np.ones(len(i), bool), ends_of_edges), shape=(n_nodes, n_nodes))
        _, component_of_group = connected_components(graph, directed=False)
        self.group_of = component_of_group.astype(np.int64)[self.group_of]

    def _are_of_one_clip_each(self, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return for each pair of A signatures and B others, [A, B], whether each has only one clip.

        Several clips may have one and the same signature; these were grouped before, and are left out of the
        comparison of different signatures.
        """
        row_is_of_one_clip = self._is_of_one_clip[rows][:, np.newaxis]  # [A, 1]
        column_is_of_one_clip = self._is_of_one_clip[columns]  # [B]
        both: NDArray[np.bool_] = row_is_of_one_clip & column_is_of_one_clip
        return both

    def _add_pairs_of_single_clips(
        self, rows: NDArray[np.int64], columns: NDArray[np.int64], is_same: NDArray[np.bool_]
    ) -> None:
        """Store which pairs of signatures share pictures, where each of the two belongs to a single clip.

        Then a pair of signatures is a pair of clips, and is stored as one number (`_pair_numbers`). Those
        of several clips are left to `_add_clips_of_common_signatures`.

        Parameters
        ----------
        rows, columns
            Numbers of signatures, [A] and [B].
        is_same
            Shape [A, B]: whether the clips of each pair share pictures.
        """
        # A moment is a clip's number in the order of films and times. Here the first clip is the only one.
        row_moments = self._first_moment[rows][:, None]  # [A, 1]
        column_moments = self._first_moment[columns]  # [B]
        numbers = _pair_numbers(row_moments, column_moments, len(self._clips.clips))  # [A, B]
        is_pair_of_clips = is_same & self._are_of_one_clip_each(rows, columns)
        self._pair_numbers.append(numbers[is_pair_of_clips])

    def _add_clips_of_common_signatures(
        self, rows: NDArray[np.int64], columns: NDArray[np.int64], is_same: NDArray[np.bool_]
    ) -> None:
        """Store which clips share pictures, where several clips have one of two signatures that do.

        All clips that have the one or the other signature then share pictures: they are stored as one list.

        Parameters
        ----------
        rows, columns
            Numbers of signatures, [A] and [B].
        is_same
            Shape [A, B]: whether the clips of each pair share pictures.
        """
        clips_of_signature = self._clips.clips_of_signature
        is_of_several_clips = is_same & ~self._are_of_one_clip_each(rows, columns)
        for i, j in np.argwhere(is_of_several_clips).tolist():
            clips_of_both = [*clips_of_signature[rows[i]], *clips_of_signature[columns[j]]]
            self._clips_that_share.append(clips_of_both)


def _find_near_pairs(clips: _Clips, side_of_signature: NDArray[np.int64]) -> Iterator[_NearPairs]:
    """Find the pairs of signatures whose mean frames are similar, so that their frames are to be compared.

    All pairs of signatures of different sides are gone through in blocks. (A side is a store if two are
    compared, else a film: clips of one side are not compared.)

    Parameters
    ----------
    clips
        The clips.
    side_of_signature
        Shape [S]: the side of each signature; `_SEVERAL_SIDES` (-1) if clips of several sides have it.
    """
    # Each pair is looked at once, the earlier signature as row and the later one as column. Signatures of
    # several sides come last, so that it is enough to look for them among the columns (`_is_compared`).
    order = np.argsort(side_of_signature == _SEVERAL_SIDES, kind="stable")
    sides = side_of_signature[order]
    mean_frames = _MeanFrames.of(clips.signs, order)

    blocks = [slice(start, start + BLOCK) for start in range(0, len(order), BLOCK)]
    for row_block, column_block in combinations_with_replacement(blocks, 2):
        is_compared = _is_compared(sides, row_block, column_block)
        ways = np.full(is_compared.shape, _NOT_COMPARED, np.int8)
        if is_compared.any():
            ways = _best_ways(mean_frames.cosines(row_block, column_block), is_compared)
        rows = order[row_block]
        n_done = row_block.start + len(rows)
        yield _NearPairs(rows, order[column_block], ways, n_done)


def _is_compared(sides: NDArray[np.int64], row_block: slice, column_block: slice) -> NDArray[np.bool_]:
    """Return which pairs of signatures of two blocks are compared: those of different sides, each pair once.

    A signature that clips of several sides have differs in side from any other, also from one like itself.

    Parameters
    ----------
    sides
        Shape [S]: the side of each signature. Signatures of several sides have `_SEVERAL_SIDES` (-1), and
        are the last ones.
    row_block, column_block
        The blocks, of R and C signatures.

    Returns
    -------
    ndarray
        Shape [R, C].
    """
    signature_indices = np.arange(len(sides))
    sides_of_rows = sides[row_block][:, None]  # [R, 1]: compared with [C], they give a table [R, C]
    sides_of_columns = sides[column_block]  # [C]
    are_of_different_sides = sides_of_rows != sides_of_columns
    # If both have several sides, the numbers are equal. It is enough to look at the column: as such
    # signatures are last, and the column is behind the row, the column has several sides if the row has.
    has_column_several_sides = sides_of_columns == _SEVERAL_SIDES
    is_row_before_column = signature_indices[row_block][:, None] < signature_indices[column_block]
    is_compared: NDArray[np.bool_] = (
        are_of_different_sides | has_column_several_sides
    ) & is_row_before_column
    return is_compared


def _best_ways(
    cosines_by_way: Iterable[NDArray[np.float32]], is_compared: NDArray[np.bool_]
) -> NDArray[np.int8]:
    """Return for pairs of signatures the way (of WAYS) in which their mean frames are most similar.

    A way is a view of each of the two pictures, such as the whole frame or its middle, with the second one as
    it is or mirrored. A later way replaces an earlier one only if its cosine is larger by more than
    `MIN_GAIN`.

    Parameters
    ----------
    cosines_by_way
        For each way, the cosine of the mean frames of each pair, [rows, columns].
    is_compared
        Shape [rows, columns]: which pairs count.

    Returns
    -------
    ndarray
        Shape [rows, columns]: number of the way; `_NOT_COMPARED` if no cosine is above `NEAR`, or the pair
        does not count.
    """
    ways = np.full(is_compared.shape, _NOT_COMPARED, np.int8)
    # What the cosine of the next way must exceed; no cosine exceeds infinity.
    cosine_to_exceed = np.where(is_compared, np.float32(NEAR), np.float32(np.inf))
    for way, cosine in enumerate(cosines_by_way):
        is_nearer = cosine > cosine_to_exceed
        if not is_nearer.any():
            continue
        np.copyto(ways, np.int8(way), where=is_nearer)
        np.copyto(cosine_to_exceed, cosine + np.float32(MIN_GAIN), where=is_nearer)
    return ways


@dataclass(frozen=True, eq=False)
class _MeanFrames:
    """Mean frames of signatures in each view, as their symmetric and antisymmetric parts (`mirror_halves`).

    Mirroring a frame leaves its symmetric coordinates as they are, and multiplies the antisymmetric ones by
    -1. So the cosine of two frames is the product of their symmetric parts plus that of their antisymmetric
    parts, and if one of the frames is mirrored, it is the first product minus the second: the same products
    give both cosines.

    Attributes
    ----------
    symmetric, antisymmetric : ndarray of float32, shapes [views, S, 126] and [views, S, 138]
    """

    symmetric: Floats
    antisymmetric: Floats

    @classmethod
    def of(cls, signs: Signs, order: NDArray[np.int64]) -> "_MeanFrames":
        """Compute the parts of the mean frame of each signature in each view.

        The mean frame of a view has 264 numbers. They are expressed in a basis of 126 symmetric and 138
        antisymmetric vectors, so that `cosines` needs no mirrored copy of them.

        Parameters
        ----------
        signs
            Signatures [S, F, 1321]: of each frame the 264 signs of five views, and whether it shows enough.
        order
            Shape [S]: the order of the signatures in the result.
        """
        symmetric_basis, antisymmetric_basis = mirror_halves()  # [264, 126] and [264, 138]
        symmetric = np.empty((len(VIEWS), len(order), symmetric_basis.shape[1]), np.float32)
        antisymmetric = np.empty((len(VIEWS), len(order), antisymmetric_basis.shape[1]), np.float32)
        for start in range(0, len(order), BLOCK):
            block = slice(start, start + BLOCK)
            means = _means_of_views(signs[order[block]])  # [views, B, 264]
            symmetric[:, block] = means @ symmetric_basis
            antisymmetric[:, block] = means @ antisymmetric_basis
        return cls(symmetric, antisymmetric)

    def cosines(self, rows: slice, columns: slice) -> Iterator[NDArray[np.float32]]:
        """Yield, for each of `WAYS` in their order, the cosines [R, C] of some mean frames with others.

        A way to compare two frames is a view of each (a part of the picture), with the second frame as it is
        or mirrored. A frame is the sum of a symmetric and an antisymmetric part, and symmetric vectors are
        orthogonal to antisymmetric ones. So with a = s + t and b = u + v, the product a * b is s * u + t * v.
        Mirroring turns b into u - v, and the product into s * u - t * v.

        Parameters
        ----------
        rows, columns
            The R and C signatures whose mean frames are compared.
        """
        mirrored_cosines: list[NDArray[np.float32]] = []
        # `WAYS` lists all pairs of views as they are first, and then all of them mirrored.
        for view_a, view_b in VIEW_PAIRS:
            of_symmetric_parts = self.symmetric[view_a, rows] @ self.symmetric[view_b, columns].T
            of_antisymmetric_parts = self.antisymmetric[view_a, rows] @ self.antisymmetric[view_b, columns].T
            yield of_symmetric_parts + of_antisymmetric_parts
            mirrored_cosines.append(of_symmetric_parts - of_antisymmetric_parts)
        yield from mirrored_cosines


def _means_of_views(signs: Signs) -> Floats:
    """Compute the mean frame of signatures in each view, [views, B, 264].

    Frames that show too little do not count. Mean frames have length 1, or 0 if no frame counts.

    Parameters
    ----------
    signs
        Signatures [B, F, 1321]: 264 signs of a frame in each of five views, and whether it shows something.
    """
    frames = signs.astype(np.float32)
    signs_of_views = frames[:, :, :-1]  # [B, F, 1320]: the five views of a frame one after the other
    is_shown = frames[:, None, :, -1]  # [B, 1, F]: 1, or 0 for frames that show too little
    # As a product with ones and zeros, the sum over the frames that count: [B, 1, F] @ [B, F, 1320].
    sums = np.matmul(is_shown, signs_of_views)  # [B, 1, 1320]
    sums_of_views = sums.reshape(-1, len(VIEWS), SIGNS)  # [B, views, 264]
    means: Floats = sums_of_views.transpose(1, 0, 2)  # [views, B, 264]; divided by their lengths below
    lengths = np.linalg.norm(means, axis=2, keepdims=True)
    # Sums of whole numbers have the length 0, or 1 and more: only zeros are divided by 1 in place of 0.
    means /= np.maximum(lengths, 1)
    return means


def _compare_frames(clips: _Clips, near: _NearPairs) -> Iterator[_ComparedPairs]:
    """Compare the single frames of pairs of signatures whose mean frames are similar.

    For each pair, `near.ways` names one way to compare it: a view (part of the picture) of each of the two
    signatures, and whether the second is mirrored. The pairs of a way are compared together, and yielded
    together.
    """
    for way in np.unique(near.ways[near.ways != _NOT_COMPARED]).tolist():
        view_a, view_b, is_mirrored = WAYS[way]
        is_compared = near.ways == way
        # Rows and columns without any pair to compare are left out.
        in_rows = is_compared.any(axis=1)
        in_columns = is_compared.any(axis=0)
        rows = near.rows[in_rows]
        columns = near.columns[in_columns]

        signs_a = clips.signs[rows, :, _PLACES_OF_VIEW[view_a]]
        signs_b = clips.signs[columns, :, _PLACES_OF_VIEW[view_b]]
        if is_mirrored:
            signs_b = mirrored(signs_b)
        inverse_lengths_a = clips.inverse_lengths[view_a, rows]
        inverse_lengths_b = clips.inverse_lengths[view_b, columns]
        likenesses = likeness(signs_a, inverse_lengths_a, signs_b, inverse_lengths_b)
        # All rows were compared with all columns; pairs that are compared in another way do not count here.
        is_pair_compared = is_compared[in_rows][:, in_columns]  # [A, B]
        likenesses[~is_pair_compared] = _NOT_COMPARED
        yield _ComparedPairs(rows, columns, likenesses)


def _list_groups(
    clips: _Clips, nearest: NDArray[np.float32], group_of: NDArray[np.int64]
) -> Iterator[SameClip]:
    """Yield the clips of each group of clips that look alike; the group with the highest likeness first.

    Parameters
    ----------
    clips
        The clips.
    nearest
        Shape [S]: largest likeness of each signature to another one; 0 if it is like none.
    group_of
        Shape [S]: number of each signature's group.
    """
    signatures_like_another = np.flatnonzero(nearest > 0).tolist()
    signatures_of_group = defaultdict(list)
    for signature in signatures_like_another:
        signatures_of_group[group_of[signature]].append(signature)

    def falling_likeness(signatures: list[int]) -> tuple[float, int]:
        """Return the key by which groups are sorted: by falling likeness, then by their first signature."""
        return -float(nearest[signatures].max()), signatures[0]

    groups = sorted(signatures_of_group.values(), key=falling_likeness)
    for number, signatures in enumerate(groups, start=1):
        likeness_of_clip = {}  # place of a clip -> likeness
        for signature in signatures:
            for clip_index in clips.clips_of_signature[signature]:
                likeness_of_clip[clip_index] = round(float(nearest[signature]), 4)
        # By falling likeness, then in the order of the clips, as sorting leaves equal ones in order.
        in_order = sorted(likeness_of_clip)
        in_order.sort(key=likeness_of_clip.__getitem__, reverse=True)
        for clip_index in in_order:
            clip = clips.clips[clip_index]
            yield SameClip(number, clip.clip_id, clip.movie, clip.store, likeness_of_clip[clip_index])


def _pairs_within_groups(clips: _Clips, groups: list[list[int]]) -> NDArray[np.int64]:
    """Pair the clips of groups whose clips all share a picture; return the numbers of the pairs.

    In each group, the first clip of one film is paired with the first of another, the second with the second
    and so on, in the order of time, until one film has no more. Groups with clips of more than `MAX_MOVIES`
    films are left out: their picture may be a company's title.

    Parameters
    ----------
    clips
        The clips.
    groups
        Places in `clips` of the clips of each group.

    Returns
    -------
    ndarray
        Shape [pairs]: one number for each pair, such that successive clips have successive numbers
        (`_pair_numbers`).
    """
    pairs: set[tuple[int, int]] = set()
    for clip_indices in groups:
        clips_of_film: dict[int, list[int]] = defaultdict(list)
        for clip_index in clip_indices:
            clips_of_film[int(clips.film_of_clip[clip_index])].append(clip_index)
        if len(clips_of_film) > MAX_MOVIES:
            continue
        for film, other_film in combinations(sorted(clips_of_film), 2):
            pairs.update(zip(clips_of_film[film], clips_of_film[other_film], strict=False))

    clips_of_pairs = np.array(sorted(pairs), np.int64).reshape(-1, 2)  # also if there are none
    moments = clips.moments[clips_of_pairs[:, 0]]  # the numbers of the clips in the order of films and times
    other_moments = clips.moments[clips_of_pairs[:, 1]]
    return _pair_numbers(moments, other_moments, len(clips.clips))


def _pair_numbers(a: NDArray[np.int64], b: NDArray[np.int64], n_clips: int) -> NDArray[np.int64]:
    """Assign numbers to pairs of clips such that a run of consecutive numbers is a run of successive clips.

    If two clips have the number n, the clips that follow them in their films have the number n + 1: the
    number is made of the distance between the clips and of the moment of the earlier one. With 10 clips, the
    clips at the moments 2 and 7 have the number 5 * 20 + 2 = 102, and those at 3 and 8 have 103.

    Parameters
    ----------
    a, b
        Moments of the clips (`_Clips.moments`), which are all below 2 * n_clips.
    n_clips
        Number of all clips.
    """
    numbers: NDArray[np.int64] = np.abs(b - a) * (2 * n_clips) + np.minimum(a, b)
    return numbers


def _moments_of_pairs(
    numbers: NDArray[np.int64], n_clips: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Read two clips from the one number of each pair: undo `_pair_numbers`.

    A clip is named by its moment, its place in the order of all films and times. A pair's number is
    distance of the clips * 2 * n_clips + moment of the earlier one, and moments are below 2 * n_clips.

    Examples
    --------
    >>> _moments_of_pairs(np.array([102]), n_clips=10)  # 102 = 5 * 20 + 2
    (array([2]), array([7]))
    """
    distances, earlier_moments = np.divmod(numbers, 2 * n_clips)
    later_moments = earlier_moments + distances
    return earlier_moments, later_moments


def _longest_of_each_pair(
    movies: NDArray[np.int64], other_movies: NDArray[np.int64], lengths: NDArray[np.int64], n_movies: int
) -> list[int]:
    """Return the indices of the longest run of each pair of movies.

    Parameters
    ----------
    movies, other_movies, lengths
        The two movies of each run, and its length, [R].
    n_movies
        Number of all movies.
    """
    movie_pairs = movies * n_movies + other_movies  # one number for each pair
    # By pair, then by length: the last run of a pair is its longest.
    order = np.lexsort((lengths, movie_pairs))
    is_last_of_pair = np.diff(movie_pairs[order], append=-1) != 0
    longest: list[int] = order[is_last_of_pair].tolist()
    return longest


def _find_shared_movies(clips: _Clips, pairs: NDArray[np.int64]) -> list[Shared]:
    """Find pairs of movies in which at least `MIN_RUN` successive clips share pictures.

    Parameters
    ----------
    clips
        The clips.
    pairs
        Numbers of the pairs of clips that share pictures, rising. One number tells both clips of a pair. If
        successive clips of a movie share pictures with successive clips of another, their pairs have
        successive numbers (`_pair_numbers`).
    """
    runs = _long_runs(pairs)
    # The movies of a run are those of its first pair of clips. The number of the pair gives the moments of
    # its clips, and `clips.moments`, which rises, tells the place of a clip from its moment.
    moments, other_moments = _moments_of_pairs(runs.first_pairs, len(clips.clips))
    movies = clips.film_of_clip[np.searchsorted(clips.moments, moments)]
    other_movies = clips.film_of_clip[np.searchsorted(clips.moments, other_moments)]

    shared = []
    for run in _longest_of_each_pair(movies, other_movies, runs.lengths, len(clips.films)):
        film = clips.films[movies[run]]
        other_film = clips.films[other_movies[run]]
        if clips.is_one_store or film.store != other_film.store:
            shared.append(Shared(film.movie, other_film.movie, int(runs.lengths[run])))
    return sorted(shared, key=lambda pair: (-pair.clips, pair.movie_a, pair.movie_b))


class _Runs(NamedTuple):
    """Runs of pairs of successive clips: the number of the first pair of each, and its length, [R]."""

    first_pairs: NDArray[np.int64]
    lengths: NDArray[np.int64]


def _long_runs(pair_numbers: NDArray[np.int64]) -> _Runs:
    """Find the runs of at least `MIN_RUN` (4) pairs of clips that follow one another in their two films.

    Such pairs have consecutive numbers (`_pair_numbers`). Of the pairs 102, 103, 104, 105 and 310, the first
    four are a run, which begins at 102; 310 is a run of one, too short.

    Parameters
    ----------
    pair_numbers
        One number for each pair of clips, rising.
    """
    continues_run = np.diff(pair_numbers) == 1  # whether each number but the first follows the one before it
    starts = np.append(0, np.flatnonzero(~continues_run) + 1)  # index of each run's first number
    lengths = np.diff(starts, append=len(pair_numbers))
    is_long = lengths >= MIN_RUN
    return _Runs(pair_numbers[starts[is_long]], lengths[is_long])


def _read_signatures(stores: list[Store], only: Collection[str] | None) -> _Clips:
    """Read the signatures of all clips that show enough to compare; equal signatures are stored once.

    A signature is the frames of a clip as the backbone `signature` describes them: as signs -1, 0 and 1.

    Parameters
    ----------
    stores
        One or two stores.
    only
        Ids of the clips of the first store to read; None for all.

    Raises
    ------
    StoreError
        A store has no signatures, or the stores have other numbers of frames.
    """
    n_frames = _common_n_frames(stores)
    distinct = _DistinctSigns(max_signatures=sum(len(store[GROUP]) for store in stores), n_frames=n_frames)
    signature_of_clip: dict[_Clip, int] = {}  # clip -> place of its signature in `distinct`
    n_showing_too_little = []  # for each store, the number of clips that show too little
    for number, store in enumerate(stores, start=1):
        is_read = store[GROUP].usable.copy()
        if number == 1 and only is not None:
            is_read &= np.array([clip.clip_id in only for clip in store.clips], bool)
        signatures_of_store = _signatures_of_store(store, number, is_read, distinct)
        signature_of_clip |= signatures_of_store
        n_read = int(np.count_nonzero(is_read))
        n_showing_too_little.append(n_read - len(signatures_of_store))
    return _sorted_clips(signature_of_clip, distinct.signs(), n_showing_too_little)


def _signatures_of_store(
    store: Store, number: int, is_read: NDArray[np.bool_], distinct: "_DistinctSigns"
) -> dict[_Clip, int]:
    """Read the signatures of some clips of a store, add them to the others, and return their places.

    Clips that show too little to be compared (fewer than `MIN_FRAMES` frames that show something) are left
    out.

    Parameters
    ----------
    store
        The store.
    number
        Its number, 1 or 2.
    is_read
        Shape [N]: whether to read the signature of each row.
    distinct
        The different signatures so far, to which new ones are added.

    Returns
    -------
    dict
        Clip -> the index of its signature in `distinct`.
    """
    signature_of_clip: dict[_Clip, int] = {}
    for start, block in store[GROUP].blocks("frames"):
        indices_in_block = np.flatnonzero(is_read[start : start + len(block)])
        for index_in_block in indices_in_block.tolist():
            row = start + index_in_block
            stored = store.clips[row]
            # Rows of equal digests are converted once. A row without a digest gets a name of its own.
            name_of_this_row = f"{number} {row}"
            digest = stored.digests.get(f"{GROUP}/frames", name_of_this_row)
            location = f"{store.where}: frames of {GROUP} of clip {stored.clip_id}"
            signature = distinct.add(digest, block[index_in_block], location)
            if signature is not None:  # the clip shows enough
                clip = _Clip(number, stored.movie, stored.start_s or 0.0, row, stored.clip_id)
                signature_of_clip[clip] = signature
    return signature_of_clip


def _common_n_frames(stores: list[Store]) -> int:
    """Return the number of frames in the signatures of stores; refuse stores with different numbers."""
    n_frames = _n_frames_of(stores[0])
    for store in stores:
        if _n_frames_of(store) != n_frames:
            raise StoreError(
                f"{store.where}: has {_n_frames_of(store)} frames a clip, {stores[0].where} has {n_frames}: "
                "extract both with the same --n"
            )
    return n_frames


def _sorted_clips(
    signature_of_clip: dict[_Clip, int], signs: Signs, n_showing_too_little: list[int]
) -> _Clips:
    """Put clips in the order of films and times, and collect what comparing them needs.

    Clips and films are numbered in this order. A clip's moment is a further number, which rises by 1 from
    clip to clip within a film, and by 2 from film to film: so successive moments are successive clips of one
    film.

    Parameters
    ----------
    signature_of_clip
        Clip -> its signature, a place in `signs`.
    signs
        The signatures, [S, F, 1321]: of each frame the signs of five views, and last 1 if it shows something.
    n_showing_too_little
        Number of clips of each store that show too little, which is handed on.
    """
    clips = sorted(signature_of_clip)  # by the fields of `_Clip`: store, movie, start
    films = sorted({clip.film for clip in clips})
    number_of_film = {film: number for number, film in enumerate(films)}
    film_of_clip = np.array([number_of_film[clip.film] for clip in clips], int)
    moments = _moments(film_of_clip, len(films))

    clips_of_signature: list[list[int]] = [[] for _ in signs]
    for index, clip in enumerate(clips):
        clips_of_signature[signature_of_clip[clip]].append(index)

    shows_something = signs[:, :, -1] != 0  # of each frame
    inverse_lengths_of_views = [
        inverse_lengths(signs[:, :, signs_of_view], shows_something) for signs_of_view in _PLACES_OF_VIEW
    ]
    return _Clips(
        clips=clips,
        films=films,
        film_of_clip=film_of_clip,
        moments=moments,
        clips_of_signature=clips_of_signature,
        signs=signs,
        inverse_lengths=np.array(inverse_lengths_of_views),
        n_showing_too_little=n_showing_too_little,
    )


def _moments(film_of_clip: NDArray[np.int64], n_films: int) -> NDArray[np.int64]:
    """Give clips numbers (moments), such that consecutive numbers are successive clips of one film.

    Between two films a number is left out. Otherwise the last clip of a film and the first of the next would
    be taken for successive ones.

    Parameters
    ----------
    film_of_clip
        Shape [C]: number of each clip's film, rising.
    n_films
        Number of films.

    Returns
    -------
    ndarray
        Shape [C]. The numbers have 32 bits if these hold all that is computed from them, which saves half the
        memory, else 64: pairs of clips get numbers up to 2 * C * (C + n_films) (`_pair_numbers`).

    Examples
    --------
    >>> _moments(np.array([0, 0, 0, 1, 1]), n_films=2).tolist()  # three clips of a film, two of another
    [0, 1, 2, 4, 5]
    """
    n_clips = len(film_of_clip)
    moments = np.arange(n_clips) + film_of_clip  # the film's number adds 1 from film to film
    above_all_moments = n_clips + n_films
    above_all_pair_numbers = 2 * n_clips * above_all_moments
    fits_32_bits = above_all_pair_numbers < 2**31
    return moments.astype(np.int32 if fits_32_bits else np.int64)


class _DistinctSigns:
    """The signatures of clips, converted to signs (-1, 0 and 1); equal ones are stored once.

    A signature is looked up in two steps: by the digest of its frames as the store has them, so that it is
    not converted again; and by its signs, which may be equal for frames that differ.

    Parameters
    ----------
    max_signatures : int
        Largest number of different signatures.
    n_frames : int
        Number of frames in a signature.
    """

    def __init__(self, max_signatures: int, n_frames: int) -> None:
        """Reserve room for `max_signatures` signatures of `n_frames` frames each."""
        # Only the part that is written takes memory. A list would have to be copied at the end.
        self._signs = np.empty((max_signatures, n_frames, len(FEATURES)), np.int8)
        self._index_of_signs: dict[bytes, int] = {}  # digest of signs -> their index in `_signs`
        # Digest of a clip's frames in the store -> the index of their signs in `_signs`. None if too few of
        # the frames show anything: such a clip has no signs here, but need not be converted again either.
        self._index_of_frames: dict[str, int | None] = {}

    def signs(self) -> Signs:
        """Return the different signs, [S, F, 1321]."""
        return self._signs[: len(self._index_of_signs)]

    def add(self, digest: str, frames: NDArray[np.floating], location: str) -> int | None:
        """Add a clip's signs, unless they are there; return their index in `signs()`.

        None, and nothing is added, if too few of the clip's frames show anything.

        Parameters
        ----------
        digest
            Digest of the frames. Frames with a digest that was seen before are not converted again.
        frames
            Signature of the clip, [F, 1321].
        location
            What messages call it.
        """
        if digest in self._index_of_frames:
            return self._index_of_frames[digest]

        signs = signs_of(frames, location)
        shows_something = signs[:, -1]  # by frame, 1 or 0
        index = None
        if np.count_nonzero(shows_something) >= MIN_FRAMES:
            digest_of_signs = hashlib.sha256(signs.tobytes()).digest()
            index = self._index_of_signs.setdefault(digest_of_signs, len(self._index_of_signs))
            self._signs[index] = signs
        self._index_of_frames[digest] = index
        return index


def signs_of(frames: NDArray[np.floating], location: str) -> Signs:
    """Convert a signature [F, 1321] to int8: the signs -1, 0 or 1, and last whether a frame shows anything.

    Parameters
    ----------
    frames
        The signature; the last value of each frame is its texture.
    location
        What messages call the frames.

    Raises
    ------
    StoreError
        A value is none of -1, 0 and 1.
    """
    # The bits of half-precision numbers are compared ten times as fast as the numbers.
    bits = frames.astype(np.float16, copy=False).view(np.uint16)
    is_one = bits == _BITS_OF_ONE
    is_minus_one = bits == _BITS_OF_MINUS_ONE
    signs: Signs = is_one.view(np.int8) - is_minus_one.view(np.int8)  # 0 for all other numbers
    n_one_or_minus_one = np.count_nonzero(signs[:, :-1])
    n_not_zero = np.count_nonzero(bits[:, :-1] << 1)  # without the first bit, in which -0 differs from 0
    if n_one_or_minus_one != n_not_zero:
        raise StoreError(f"{location} have values other than -1, 0 and 1; {HOW_TO_EXTRACT}")
    signs[:, -1] = frames[:, -1] >= MIN_TEXTURE
    return signs


def _n_frames_of(store: Store) -> int:
    """Return the number of frames in a clip's signature.

    A store is refused that has no signatures, or such as cannot be compared: with fewer than `MIN_FRAMES`
    frames a clip, or made otherwise than this version makes them.
    """
    if not has_signatures(store):
        raise StoreError(
            f"{store.where}: has no frames of {GROUP}, {MIN_FRAMES} or more a clip as this version makes "
            f"them, to compare; {HOW_TO_EXTRACT}"
        )
    n_frames: int = store[GROUP].shape("frames")[1]
    return n_frames
