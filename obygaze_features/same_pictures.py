"""Find clips that look alike: re-encoded, graded, letterboxed, cropped, mirrored, or a little later.

Frames of the group `signature` are compared in the order of time. The likeness of two clips is the best, over
views and small shifts, of the median cosine of frames at the same place. Clips of the very same signature
are grouped first; of the others, products of clips' mean frames say which are compared frame by frame. A clip
that looks like another may be another moment of its scene; films share pictures if several clips in a row do.

Every pair is looked at. An index by bands of bits would not spare that: clips that look alike may differ in
so many signs that nearly every other pair agrees in some band too. Of 264 signs 79 may differ where a cosine
is `NEAR`; one of 80 bands of 3 or 4 signs then agrees, as it does in 99.9 % of unlike pairs. With the 53 of
`ALIKE` one of 54 bands of about 5 signs agrees in 84 % of them.
"""

import hashlib
from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import combinations, combinations_with_replacement

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from obygaze_features.errors import StoreError
from obygaze_features.screen import Progress, ShowProgress, shown_progress
from obygaze_features.signature_likeness import (
    LEAST_FRAMES,
    SIGNS,
    Floats,
    Signs,
    likeness,
    mirror_halves,
    mirrored,
    weights,
)
from obygaze_features.store.store import Store

GROUP = "signature"
"""Backbone whose frames are compared."""
EXTRACT = f"extract them: obygaze extract MANIFEST STORE --backbone {GROUP}"

ALIKE = 0.6
"""Least likeness of clips that look alike: half way between the copies and the others it was fixed on."""

SAME = 0.7
"""Least likeness of clips in a row before films are said to share pictures."""

ROW = 4
"""Clips in a row, in both films, before films are said to share pictures."""

NEAR = 0.4
"""Least cosine of clips' mean frames of which the frames are compared."""

CLEARLY = 0.05
"""Cosine by which means must be nearer in other views than in those before: it saves comparisons."""

LEAST_TEXTURE = 0.2
"""Share of a frame's pixels that its commonest lightness must leave: less is black, a title, credits."""

MOST_MOVIES = 20
"""Movies that may share a picture before it says nothing of them, such as a distributor's title."""

BLOCK = 256
"""Clips that are compared at a time with as many others."""

PAIR_S = (0.13e-6, 1.5e-6)
"""CPU seconds that a pair takes of clips that are not near, and of clips that are (AMD EPYC, one core)."""

VIEWS = ("frame", "upper", "picture", "inner", "middle")
FEATURES = [*(f"{view}_{k}" for view in VIEWS for k in range(SIGNS)), "texture"]
"""What a frame of `signature` is, by its provenance: models read it, and import no backbone."""

WAYS = [
    (VIEWS.index(a), VIEWS.index(b), mirror)
    for mirror in (False, True)
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
"""Views of two clips that are compared, and whether the second is mirrored: one of them may have lost its
borders, its sides or its subtitles. Mirrored ones come last, in the order of the others."""

_OF_VIEW = [slice(k * SIGNS, (k + 1) * SIGNS) for k in range(len(VIEWS))]
"""Signs of each view."""

_ONE, _MINUS_ONE = 0x3C00, 0xBC00
"""Bits of 1 and -1 in float16."""


@dataclass(frozen=True, slots=True)
class SameClip:
    """A clip of a group that looks alike.

    Attributes
    ----------
    group : int
        From 1, in falling order of likeness.
    clip, movie : str
    store : int
        1, or 2 for a clip of the second store.
    likeness : float
        To the clip of another movie, or of the other store, that it is most like; 1 for the same signature.
    """

    group: int
    clip: str
    movie: str
    store: int
    likeness: float


@dataclass(frozen=True, slots=True)
class Shared:
    """Two movies that share pictures, and the most clips in a row that they share."""

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
        Movies that share at least `ROW` clips in a row.
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


@dataclass(frozen=True, eq=False)
class _Clips:
    """Clips of one or two stores in the order of time, film by film, and their signatures.

    Attributes
    ----------
    clips : list of tuple
        [C]: store, movie, start, row and id.
    films : list of tuple
        Store and movie.
    film_of : ndarray
        [C]: number of a clip's film.
    moments : ndarray
        [C]: number of a clip in the order of time, one left out between films so that no row goes on there.
    same : list of list of int
        [S]: the clips of a signature.
    signs : ndarray
        [S, F, 1321]: signs of frames in all views and, last, whether a frame shows something.
    weights : ndarray
        [views, S, F]: by what products of frames are multiplied.
    plain : list of int
        Clips of each store that show too little.
    """

    clips: list[tuple[int, str, float, int, str]]
    films: list[tuple[int, str]]
    film_of: NDArray[np.int64]
    moments: NDArray[np.int64]
    same: list[list[int]]
    signs: Signs
    weights: Floats
    plain: list[int]


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

    Raises
    ------
    StoreError
        A store has no frames of `signature`, or the stores have other numbers of frames.
    """
    both = [store] if other is None else [store, other]
    clips = _read_signatures(both, only)
    with shown_progress(progress, "comparing clips", "clip") as show:
        found = _compare_clips(clips, show)
    stores = [clip[0] for clip in clips.clips]
    return Duplicates(
        tuple(_list_groups(clips, found.nearest, found.group_of)),
        tuple(_find_shared_movies(clips, found.pairs())),
        tuple(stores.count(number) for number in range(1, len(clips.plain) + 1)),
        tuple(clips.plain),
        tuple(int((~each[GROUP].usable).sum()) for each in both),
    )


def has_signatures(store: Store) -> bool:
    """Return whether a store has frames of `signature` as this version makes them, and enough per clip."""
    if GROUP not in store.names or "frames" not in store[GROUP].arrays:
        return False
    named = (store[GROUP].provenance.get("architecture") or {}).get("features")
    _, n_frames, width = store[GROUP].shape("frames")
    return named == FEATURES and width == len(FEATURES) and n_frames >= LEAST_FRAMES


def expected_s(store: Store, other: Store | None = None) -> tuple[float, float]:
    """Estimate the CPU seconds that `duplicates` takes.

    Returns
    -------
    tuple of float
        The estimate if no two clips look similar, and that if all do.
    """
    n_clips = _n_with_signatures(store)
    n_pairs = n_clips * (n_clips - 1) / 2 if other is None else n_clips * _n_with_signatures(other)
    if_none_near, if_all_near = PAIR_S
    return n_pairs * if_none_near, n_pairs * if_all_near


def _n_with_signatures(store: Store) -> int:
    """Count the clips of a store whose pictures can be compared."""
    return len(store[GROUP]) if has_signatures(store) else 0


def _compare_clips(clips: _Clips, show: ShowProgress) -> "_Likenesses":
    """Compare the signatures of all clips of different sides, and return those that are alike.

    A side is a store, or, if there is only one store, a movie. Clips with equal signatures share one, which
    is compared once.

    Parameters
    ----------
    clips
        The clips of one or two stores.
    show
        Called with the numbers of signatures done and of all.
    """
    if len(clips.plain) == 1:
        side_of_clip = clips.film_of
    else:
        side_of_clip = np.array([clip[0] for clip in clips.clips], int)
    own_side = np.full(len(clips.same), -1)  # of each signature; -1 if it has several
    for signature, clips_of_it in enumerate(clips.same):
        sides = set(side_of_clip[clips_of_it].tolist())
        if len(sides) == 1:
            own_side[signature] = sides.pop()
    found = _Likenesses(clips, has_several_sides=own_side < 0)
    for n_done, rows, columns, how in _find_near_clips(clips, own_side):
        for some, others, values in _compare_frames(clips, rows, columns, how):
            found.add(some, others, values)
        show(n_done, len(clips.signs))
    return found


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
        [S]: the largest likeness of a signature to another so far, 1 if several sides have it; else 0.
    group_of : ndarray
        [S]: number of its group; those that are alike, or linked by others that are, have one.
    """

    def __init__(self, clips: _Clips, has_several_sides: NDArray[np.bool_]) -> None:
        """Begin with what equal signatures show: clips of several sides that share one are the same."""
        self.nearest = has_several_sides.astype(np.float32)
        self.group_of: NDArray[np.int64] = np.arange(len(self.nearest))
        self._clips = clips
        self._is_of_one_clip = np.array([len(rows) == 1 for rows in clips.same], bool)
        self._first_moment = clips.moments[[rows[0] for rows in clips.same]]
        self._pairs: list[NDArray[np.int64]] = []
        self._groups = [rows for rows in clips.same if len(rows) > 1]

    def add(self, some: NDArray[np.int64], others: NDArray[np.int64], values: NDArray[np.float32]) -> None:
        """Add the likenesses of pairs of signatures: to the nearest, to the groups and to the pairs of clips.

        Parameters
        ----------
        some, others
            Numbers of the signatures, [A] and [B].
        values
            Likeness of each of `some` to each of `others`, [A, B].
        """
        self._raise_nearest(some, values.max(axis=1))
        self._raise_nearest(others, values.max(axis=0))
        self._join_groups(some, others, values >= ALIKE)
        self._add_pairs(some, others, values >= SAME)

    def pairs(self) -> NDArray[np.int64]:
        """Return the numbers of the pairs of clips that share pictures, as `_pair_numbers` gives them."""
        return np.concatenate([*self._pairs, _pairs_within_groups(self._clips, self._groups)])

    def _raise_nearest(self, signatures: NDArray[np.int64], best: NDArray[np.float32]) -> None:
        """Raise `nearest` of signatures to new likenesses that are larger, and at least `ALIKE`."""
        self.nearest[signatures] = np.maximum(self.nearest[signatures], np.where(best >= ALIKE, best, 0))

    def _join_groups(
        self, some: NDArray[np.int64], others: NDArray[np.int64], is_alike: NDArray[np.bool_]
    ) -> None:
        """Merge the groups of signatures that are alike.

        Groups that a chain of such pairs connects become one.
        """
        is_new = self.group_of[some][:, None] != self.group_of[others]
        i, j = np.nonzero(is_alike & is_new)
        if not len(i):
            return
        links = np.ones(len(i), bool), (self.group_of[some[i]], self.group_of[others[j]])
        graph = coo_array(links, shape=(len(self.nearest), len(self.nearest)))
        _, joined = connected_components(graph, directed=False)
        self.group_of = joined.astype(np.int64)[self.group_of]

    def _add_pairs(
        self, some: NDArray[np.int64], others: NDArray[np.int64], is_same: NDArray[np.bool_]
    ) -> None:
        """Store the pairs of clips that share pictures.

        Two signatures that belong to one clip each give a pair. If one belongs to several clips, all clips of
        both are stored as a group, which `pairs` divides into pairs at the end.
        """
        is_pair = self._is_of_one_clip[some][:, None] & self._is_of_one_clip[others]
        numbers = _pair_numbers(
            self._first_moment[some][:, None], self._first_moment[others], len(self._clips.clips)
        )
        self._pairs.append(numbers[is_same & is_pair])
        for i, j in np.argwhere(is_same & ~is_pair).tolist():
            self._groups.append(self._clips.same[some[i]] + self._clips.same[others[j]])


def _find_near_clips(
    clips: _Clips, own_side: NDArray[np.int64]
) -> Iterator[tuple[int, NDArray[np.int64], NDArray[np.int64], NDArray[np.int8]]]:
    """Find the pairs of signatures whose mean frames are similar.

    Only of these pairs, single frames are compared later. All pairs of signatures of different sides are gone
    through in blocks.

    Parameters
    ----------
    clips
        The clips.
    own_side
        Shape [S]: the side of each signature; -1 if clips of several sides have it.

    Yields
    ------
    int
        Number of signatures that are done.
    ndarray
        Numbers of some signatures, [R].
    ndarray
        Numbers of the signatures to compare them with, [C].
    ndarray
        Shape [R, C]: the way to compare each pair (an index of `WAYS`) in which its mean frames are most
        similar; -1 for pairs that are not similar, or of the same side.
    """
    # Those of several sides, whose own side is -1, come last and are compared with all.
    order = np.argsort(own_side < 0, kind="stable")
    halves = _Halves.of(clips.signs, order)
    for top, left in combinations_with_replacement(range(0, len(own_side), BLOCK), 2):
        rows = order[top : top + BLOCK]
        columns = order[left : left + BLOCK]
        is_compared = (own_side[rows, None] != own_side[columns]) | (own_side[columns] < 0)
        is_compared &= np.arange(top, top + len(rows))[:, None] < np.arange(left, left + len(columns))
        least = np.where(is_compared, np.float32(NEAR), np.float32(np.inf))
        how = np.full(least.shape, -1, np.int8)
        if is_compared.any():  # else no view can be nearer
            for way, cosine in enumerate(halves.cosines(slice(top, top + BLOCK), slice(left, left + BLOCK))):
                nearer = cosine > least
                if nearer.any():
                    np.copyto(how, np.int8(way), where=nearer)
                    np.copyto(least, cosine + np.float32(CLEARLY), where=nearer)
        yield top + len(rows), rows, columns, how


@dataclass(frozen=True, eq=False)
class _Halves:
    """Mean frames of signatures, in coordinates in which a mirror leaves some and negates the others.

    The cosine of two clips is the product of the first halves plus that of the second; with one of them
    mirrored, it is the first less the second: one product gives both.

    Attributes
    ----------
    stays, turns : ndarray of float32, shapes [views, S, 126] and [views, S, 138]
    """

    stays: Floats
    turns: Floats

    @classmethod
    def of(cls, signs: Signs, order: NDArray[np.int64]) -> "_Halves":
        """Compute the mean frame of each signature in each view, in the basis of `mirror_halves`.

        Frames that show too little do not count. Mean frames have length 1, or 0 without any frame.

        Parameters
        ----------
        signs
            Signatures [S, F, 1321].
        order
            Shape [S]: the order of the signatures in the result.
        """
        to_stays, to_turns = mirror_halves()
        stays = np.empty((len(VIEWS), len(order), to_stays.shape[1]), np.float32)
        turns = np.empty((len(VIEWS), len(order), to_turns.shape[1]), np.float32)
        for start in range(0, len(order), BLOCK):
            some = slice(start, start + BLOCK)
            frames = signs[order[some]].astype(np.float32)
            sums = np.matmul(frames[:, None, :, -1], frames[:, :, :-1])
            means = sums.reshape(-1, len(VIEWS), SIGNS).transpose(1, 0, 2)
            means /= np.maximum(np.linalg.norm(means, axis=2, keepdims=True), 1)
            stays[:, some] = means @ to_stays
            turns[:, some] = means @ to_turns
        return cls(stays, turns)

    def cosines(self, rows: slice, columns: slice) -> Iterator[NDArray[np.float32]]:
        """Yield, for each of `WAYS`, the cosines [R, C] of the mean frames of some signatures with others.

        A mirror changes only the sign of the second half. So the cosine with the mirrored frame is the
        difference of the same two products whose sum is the cosine with the frame as it is.
        """
        mirrored_last: list[NDArray[np.float32]] = []
        for view_a, view_b, is_mirrored in WAYS:
            if is_mirrored:
                yield mirrored_last.pop(0)
                continue
            first = self.stays[view_a, rows] @ self.stays[view_b, columns].T
            second = self.turns[view_a, rows] @ self.turns[view_b, columns].T
            mirrored_last.append(first - second)
            first += second
            yield first


def _compare_frames(
    clips: _Clips, rows: NDArray[np.int64], columns: NDArray[np.int64], how: NDArray[np.int8]
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]]:
    """Compare the single frames of pairs of signatures whose mean frames are similar.

    Parameters
    ----------
    clips
        The clips.
    rows, columns, how
        Signatures [R] and [C], and the way to compare each pair [R, C], as `_find_near_clips` yields them.

    Yields
    ------
    ndarray, ndarray
        Some of the signatures in `rows`, [A], and some of those in `columns`, [B].
    ndarray
        Shape [A, B]: their likeness; -1 for pairs that are not compared.
    """
    for way in np.unique(how[how >= 0]).tolist():
        view_a, view_b, mirror = WAYS[way]
        near = how == way
        i = np.flatnonzero(near.any(axis=1))
        j = np.flatnonzero(near.any(axis=0))
        ours = rows[i]
        theirs = columns[j]
        a = clips.signs[ours, :, _OF_VIEW[view_a]]
        b = clips.signs[theirs, :, _OF_VIEW[view_b]]
        if mirror:
            b = mirrored(b)
        values = likeness(a, clips.weights[view_a, ours], b, clips.weights[view_b, theirs])
        values[~near[np.ix_(i, j)]] = -1
        yield ours, theirs, values


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
    found = defaultdict(list)
    for place in np.flatnonzero(nearest).tolist():
        found[group_of[place]].append(place)
    ranked = sorted(found.values(), key=lambda places: (-nearest[places].max(), places[0]))
    for number, places in enumerate(ranked, start=1):
        likeness_of_clip = {}
        for place in places:
            for row in clips.same[place]:
                likeness_of_clip[row] = round(float(nearest[place]), 4)
        for row in sorted(likeness_of_clip, key=lambda row: (-likeness_of_clip[row], row)):
            store, movie, _, _, clip_id = clips.clips[row]
            yield SameClip(number, clip_id, movie, store, likeness_of_clip[row])


def _pairs_within_groups(clips: _Clips, groups: list[list[int]]) -> NDArray[np.int64]:
    """Return the numbers (see `_pair_numbers`) of the pairs of clips in groups that share a picture.

    In each group, the clips of two films are paired in the order of time, until one film has no more. Groups
    with clips of more than `MOST_MOVIES` films are left out: their picture may be a company's title.
    """
    pairs: set[tuple[int, int]] = set()
    for rows in groups:
        by_film: dict[int, list[int]] = defaultdict(list)
        for row in rows:
            by_film[int(clips.film_of[row])].append(row)
        if len(by_film) <= MOST_MOVIES:
            for one, other in combinations(sorted(by_film), 2):
                pairs.update(zip(by_film[one], by_film[other], strict=False))
    a, b = clips.moments[np.array(sorted(pairs), np.int64).reshape(-1, 2).T]
    return _pair_numbers(a, b, len(clips.clips))


def _pair_numbers(a: NDArray[np.int64], b: NDArray[np.int64], n_clips: int) -> NDArray[np.int64]:
    """Assign numbers to pairs of moments; the pair of the next moments of both films has the next number.

    A run of consecutive numbers is then a series of successive clips that two films share.

    Parameters
    ----------
    a, b
        Moments, as `_Clips` numbers them.
    n_clips
        Number of all clips.
    """
    numbers: NDArray[np.int64] = np.abs(b - a) * (2 * n_clips) + np.minimum(a, b)
    return numbers


def _find_shared_movies(clips: _Clips, pairs: NDArray[np.int64]) -> list[Shared]:
    """Find pairs of movies in which at least `ROW` successive clips share pictures.

    Parameters
    ----------
    clips
        The clips.
    pairs
        Numbers (see `_pair_numbers`) of the pairs of clips that share pictures; they are sorted in place.
    """
    # A pair's number holds the distance between its clips, and the place of the first of them. So successive
    # clips of one movie that share pictures with successive clips of another have consecutive numbers: a run.
    pairs.sort()
    run_starts = np.append(0, np.flatnonzero(np.diff(pairs) != 1) + 1)
    run_lengths = np.diff(run_starts, append=len(pairs))
    is_long = run_lengths >= ROW
    run_starts = run_starts[is_long]
    run_lengths = run_lengths[is_long]
    distances, first_places = np.divmod(pairs[run_starts], 2 * len(clips.clips))
    movies = clips.film_of[np.searchsorted(clips.moments, first_places)]
    other_movies = clips.film_of[np.searchsorted(clips.moments, first_places + distances)]
    # Of each pair of movies the longest run is kept: sorted by pair and length, it is the pair's last.
    movie_pairs = movies * len(clips.films) + other_movies
    order = np.lexsort((run_lengths, movie_pairs))
    is_last_of_pair = np.diff(movie_pairs[order], append=-1) != 0
    is_one_store = len(clips.plain) == 1
    shared = []
    for run in order[is_last_of_pair].tolist():
        store, movie = clips.films[movies[run]]
        other_store, other_movie = clips.films[other_movies[run]]
        if is_one_store or store != other_store:
            shared.append(Shared(movie, other_movie, int(run_lengths[run])))
    return sorted(shared, key=lambda each: (-each.clips, each.movie_a, each.movie_b))


def _read_signatures(stores: list[Store], only: Collection[str] | None) -> _Clips:
    """Read the signatures of all clips that show enough to compare; equal signatures are stored once.

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
    n_frames = _n_frames_of(stores[0])
    for store in stores:
        if _n_frames_of(store) != n_frames:
            raise StoreError(
                f"{store.where}: has {_n_frames_of(store)} frames a clip, {stores[0].where} has {n_frames}: "
                "extract both with the same --n"
            )
    found: list[tuple[tuple[int, str, float, int, str], int]] = []
    n_plain = [0] * len(stores)
    distinct = _DistinctSigns(n_most=sum(len(store[GROUP]) for store in stores), n_frames=n_frames)
    for number, store in enumerate(stores, start=1):
        usable = store[GROUP].usable.copy()
        if number == 1 and only is not None:
            usable &= np.array([clip.clip_id in only for clip in store.clips], bool)
        for start, block in store[GROUP].blocks("frames"):
            for row in (start + np.flatnonzero(usable[start : start + len(block)])).tolist():
                clip = store.clips[row]
                digest = clip.digests.get(f"{GROUP}/frames", f"{number} {row}")
                where = f"{store.where}: frames of {GROUP} of clip {clip.clip_id}"
                place = distinct.place_of(digest, block[row - start], where)
                if place is None:
                    n_plain[number - 1] += 1
                else:
                    about = number, clip.movie, clip.start_s or 0.0, row, clip.clip_id
                    found.append((about, place))
    found.sort()
    clips = [clip for clip, _ in found]
    signs = distinct.signs()
    same: list[list[int]] = [[] for _ in signs]
    for moment, (_, place) in enumerate(found):
        same[place].append(moment)
    films = sorted({clip[:2] for clip in clips})
    numbers = {film: number for number, film in enumerate(films)}
    film_of = np.array([numbers[clip[:2]] for clip in clips], int)
    small = 2 * len(clips) * (len(clips) + len(films)) < 2**31  # pairs then take half the memory
    moments = (np.arange(len(clips)) + film_of).astype(np.int32 if small else np.int64)
    weight = np.array([weights(signs[:, :, view], signs[:, :, -1] != 0) for view in _OF_VIEW])
    return _Clips(clips, films, film_of, moments, same, signs, weight, n_plain)


class _DistinctSigns:
    """The signs of clips, those that are the same once.

    Parameters
    ----------
    n_most : int
        Clips that there may be.
    n_frames : int
    """

    def __init__(self, n_most: int, n_frames: int) -> None:
        """Reserve room for `n_most` signatures of `n_frames` frames each."""
        # Only the part that is written takes memory. A list would have to be copied at the end.
        self._signs = np.empty((n_most, n_frames, len(FEATURES)), np.int8)
        self._place_of_signs: dict[bytes, int] = {}  # by the digest of signs
        self._place_of_frames: dict[str, int | None] = {}  # by the digest of frames

    def signs(self) -> Signs:
        """Return the signs [S, F, 1321] of all places."""
        return self._signs[: len(self._place_of_signs)]

    def place_of(self, digest: str, frames: NDArray[np.floating], where: str) -> int | None:
        """Return the position of a clip's signs among the distinct ones; new signs are added.

        None if too few of the clip's frames show anything.

        Parameters
        ----------
        digest
            Digest of the frames. Frames with a digest that was seen before are not converted again.
        frames
            Signature of the clip, [F, 1321].
        where
            What messages call it.
        """
        if digest in self._place_of_frames:
            return self._place_of_frames[digest]
        signs = signs_of(frames, where)
        place = None
        if np.count_nonzero(signs[:, -1]) >= LEAST_FRAMES:
            of_signs = hashlib.sha256(signs.tobytes()).digest()
            place = self._place_of_signs.setdefault(of_signs, len(self._place_of_signs))
            self._signs[place] = signs
        self._place_of_frames[digest] = place
        return place


def signs_of(frames: NDArray[np.floating], where: str) -> Signs:
    """Convert a signature [F, 1321] to int8: the signs -1, 0 or 1, and last whether a frame shows anything.

    The values of float16 are compared by their bits, which is ten times as fast.
    """
    bits = frames.astype(np.float16, copy=False).view(np.uint16)
    signs: Signs = (bits == _ONE).view(np.int8) - (bits == _MINUS_ONE).view(np.int8)
    if np.count_nonzero(bits[:, :-1] << 1) != np.count_nonzero(signs[:, :-1]):
        raise StoreError(f"{where} have values other than -1, 0 and 1; {EXTRACT}")
    signs[:, -1] = frames[:, -1] >= LEAST_TEXTURE
    return signs


def _n_frames_of(store: Store) -> int:
    """Return the number of frames in a clip's signature; refuse a store without signatures."""
    if not has_signatures(store):
        raise StoreError(
            f"{store.where}: has no frames of {GROUP}, {LEAST_FRAMES} or more a clip as this version makes "
            f"them, to compare; {EXTRACT}"
        )
    n_frames: int = store[GROUP].shape("frames")[1]
    return n_frames
