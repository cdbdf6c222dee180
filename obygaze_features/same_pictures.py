"""Find clips that look alike: re-encoded, graded, letterboxed, cropped, mirrored, or a little later.

Frames of the group `signature` are compared in the order of time. The likeness of two clips is the best, over
views and small shifts, of the median cosine of frames at the same place. Clips of the very same signature
are grouped first; of the others, products of clips' mean frames say which are compared frame by frame. A clip
that looks like another may be another moment of its scene; films share pictures if several clips in a row do.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from obygaze_features.errors import StoreError
from obygaze_features.screen import Progress, progress_hook
from obygaze_features.signature_likeness import LEAST_FRAMES, SIGNS, Signs, likeness, mirrored
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

BLOCK, TILE = 512, 256
"""Clips whose mean frames, and whose frames, are compared at a time."""

PAIR_S = (0.2e-6, 1.5e-6)
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
borders, its sides or its subtitles."""

_ONE = 0x3C00
"""Bits of 1 in float16."""

LINK = np.dtype([("a", np.int32), ("b", np.int32), ("likeness", np.float32)])


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
    """

    clips: tuple[SameClip, ...]
    movies: tuple[Shared, ...]
    compared: tuple[int, ...]
    plain: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class _Clips:
    """Clips of one or two stores; those of one signature share an entry of `signs`, `shown` and `same`."""

    ids: list[str]
    movies: list[str]
    stores: list[int]
    order: list[tuple[int, str, float, int]]
    signs: list[Signs]
    shown: list[NDArray[np.bool_]]
    same: list[list[int]]
    plain: list[int]


def duplicates(
    store: Store,
    other: Store | None = None,
    *,
    only: Collection[str] | None = None,
    progress: Progress | bool | None = None,
) -> Duplicates:
    """Find the clips of a store that look like clips of another, or of its own other movies.

    Parameters
    ----------
    store
        Of clips, with the frames of `signature`.
    other
        None compares clips of different movies of the one store.
    only
        Clips of the store to compare; None compares all.
    progress
        Called with the numbers of clips done and of all.

    Raises
    ------
    StoreError
        A store has no frames of `signature`, or the stores have other numbers of frames.
    """
    clips = _read([store] if other is None else [store, other], only)
    sides = clips.movies if other is None else [str(number) for number in clips.stores]
    show = progress_hook(progress, "comparing clips", "clip")
    found: list[NDArray[np.void]] = []
    for done, rows, columns, how in _near(clips, sides):
        found.extend(_links(clips, rows, columns, how))
        if show is not None:
            show(done, len(clips.signs))
    links = np.concatenate([np.empty(0, LINK), *found])
    return Duplicates(
        tuple(_groups(clips, sides, links)),
        tuple(_shared(clips, links)),
        tuple(clips.stores.count(number) for number in range(1, len(clips.plain) + 1)),
        tuple(clips.plain),
    )


def has_signatures(store: Store) -> bool:
    """Whether a store has the frames by which pictures are compared."""
    if GROUP not in store.names or "frames" not in store[GROUP].arrays:
        return False
    named = (store[GROUP].provenance.get("architecture") or {}).get("features")
    return named == FEATURES and store[GROUP].shape("frames")[2] == len(FEATURES)


def expected_s(store: Store, other: Store | None = None) -> tuple[float, float]:
    """Estimate the CPU seconds of `duplicates`: if no clips are near each other, and if all are."""
    n = len(store[GROUP]) if has_signatures(store) else 0
    pairs = n * (n - 1) / 2 if other is None else n * (len(other[GROUP]) if has_signatures(other) else 0)
    return pairs * PAIR_S[0], pairs * PAIR_S[1]


def _near(
    clips: _Clips, sides: list[str]
) -> Iterator[tuple[int, NDArray[np.int64], NDArray[np.int64], NDArray[np.int8]]]:
    """Yield how many clips are done; some, those to compare them with, and how.

    How is the number in `WAYS` of the two views in which the mean frames of a pair are nearest; -1 where they
    are not near, or of one side, a movie or a store.
    """
    sums = [
        shown.astype(np.float32) @ signs.reshape(len(signs), -1).astype(np.float32)
        for signs, shown in zip(clips.signs, clips.shown, strict=True)
    ]
    means = np.array(sums, np.float32).reshape(-1, len(VIEWS), SIGNS)
    means /= np.maximum(np.linalg.norm(means, axis=2, keepdims=True), 1)
    turned = mirrored(means)
    of_side = [{sides[row] for row in rows} for rows in clips.same]
    own = np.array([next(iter(each)) if len(each) == 1 else "" for each in of_side])
    of_store = [{clips.stores[row] for row in rows} for rows in clips.same]
    one = np.array([place for place, stores in enumerate(of_store) if 1 in stores], int)
    second = len(clips.plain)  # 1 where the store is compared with itself
    two = np.array([place for place, stores in enumerate(of_store) if second in stores], int)
    both = np.isin(np.arange(len(own)), one) & np.isin(np.arange(len(own)), two)
    every = two
    for start in range(0, len(one), BLOCK):
        rows = one[start : start + BLOCK]
        two = every[start:] if second == 1 else every  # within a store all pairs with earlier ones are done
        least = np.full((len(rows), len(two)), np.float32(NEAR))
        how = np.full(least.shape, -1, np.int8)
        for way, (a, b, mirror) in enumerate(WAYS):
            cosine = means[rows, a] @ (turned if mirror else means)[two, b].T
            nearer = cosine > least
            if not nearer.any():
                continue
            np.copyto(how, np.int8(way), where=nearer)
            np.copyto(least, cosine + np.float32(CLEARLY), where=nearer)
            if least.min() >= 1:  # no view can be nearer
                break
        how[(own[rows, None] == own[two]) & (own[two] != "")] = -1
        how[both[rows, None] & both[two] & (rows[:, None] >= two)] = -1  # they meet twice
        yield start + len(rows), rows, two, how


def _links(
    clips: _Clips, rows: NDArray[np.int64], columns: NDArray[np.int64], how: NDArray[np.int8]
) -> Iterator[NDArray[np.void]]:
    """Compare the frames of clips that are near; yield those that look alike, and how much."""
    for top, left, size in _tiles(how):
        tile = how[top : top + size, left : left + size]
        for way in np.unique(tile[tile >= 0]).tolist():
            view_a, view_b, mirror = WAYS[way]
            near = tile == way
            i, j = np.flatnonzero(near.any(axis=1)), np.flatnonzero(near.any(axis=0))
            ours, theirs = rows[top + i], columns[left + j]
            a, b = (
                np.array([clips.signs[k][:, view] for k in chosen.tolist()])
                for chosen, view in ((ours, view_a), (theirs, view_b))
            )
            shown_a, shown_b = (
                np.array([clips.shown[k] for k in chosen.tolist()]) for chosen in (ours, theirs)
            )
            values = likeness(a, shown_a, mirrored(b) if mirror else b, shown_b)
            at, to = np.nonzero((values >= ALIKE) & near[np.ix_(i, j)])
            links = np.empty(len(at), LINK)
            links["a"], links["b"], links["likeness"] = ours[at], theirs[to], values[at, to]
            yield links


def _tiles(how: NDArray[np.int8]) -> Iterator[tuple[int, int, int]]:
    """Cut pairs into tiles (first row, first column, size): large where most pairs are near, else small."""
    for top in range(0, how.shape[0], TILE):
        for left in range(0, how.shape[1], TILE):
            near = how[top : top + TILE, left : left + TILE] >= 0
            if np.count_nonzero(near) > 0.6 * near.size:
                yield top, left, TILE
            elif near.any():
                small = range(0, TILE, TILE // 4)
                yield from ((top + i, left + j, TILE // 4) for i in small for j in small)


def _groups(clips: _Clips, sides: list[str], links: NDArray[np.void]) -> Iterator[SameClip]:
    """Join what looks alike into groups, and list their clips."""
    n = len(clips.same)
    nearest = np.array([len({sides[row] for row in rows}) > 1 for rows in clips.same], np.float32)
    for end in ("a", "b"):
        np.maximum.at(nearest, links[end], links["likeness"])
    joined = coo_array((np.ones(len(links), bool), (links["a"], links["b"])), shape=(n, n))
    _, group_of = connected_components(joined, directed=False)
    found = defaultdict(list)
    for place in np.flatnonzero(nearest).tolist():
        found[group_of[place]].append(place)
    ranked = sorted(found.values(), key=lambda places: (-nearest[places].max(), places[0]))
    for number, places in enumerate(ranked, start=1):
        alike = [
            (-round(float(nearest[place]), 4), clips.order[row], row)
            for place in places
            for row in clips.same[place]
        ]
        for value, _, row in sorted(alike):
            yield SameClip(number, clips.ids[row], clips.movies[row], clips.stores[row], -value)


def _shared(clips: _Clips, links: NDArray[np.void]) -> list[Shared]:
    """Find movies that share clips in a row, by the order of their clips in time."""
    films = sorted(set(zip(clips.stores, clips.movies, strict=True)))
    number = {film: k for k, film in enumerate(films)}
    film_of = np.array([number[film] for film in zip(clips.stores, clips.movies, strict=True)], np.int32)
    place_of = np.zeros(len(clips.ids), np.int32)
    last = [0] * len(films)
    for row in sorted(range(len(clips.ids)), key=clips.order.__getitem__):
        place_of[row] = last[film_of[row]]
        last[film_of[row]] += 1
    a, b = _pairs_of_clips(clips, links, film_of)
    store = np.array(clips.stores, np.int8)
    kept = film_of[a] != film_of[b]
    if len(clips.plain) > 1:
        kept &= store[a] != store[b]
    if not kept.all():
        a, b = a[kept], b[kept]
    turn = film_of[a] > film_of[b]
    a[turn], b[turn] = b[turn], a[turn]  # the film of the smaller number first
    most = _runs(film_of[a].astype(np.int64) * len(films) + film_of[b], place_of[a], place_of[b])
    shared = [
        Shared(films[pair // len(films)][1], films[pair % len(films)][1], clips)
        for pair, clips in most.items()
        if clips >= ROW
    ]
    return sorted(shared, key=lambda each: (-each.clips, each.movie_a, each.movie_b))


def _runs(pair: NDArray[np.int64], a: NDArray[np.int32], b: NDArray[np.int32]) -> dict[int, int]:
    """Count the most clips in a row, at one distance, that pairs of films share.

    Parameters
    ----------
    pair, a, b
        [P]: a pair of films, and the place of a clip in each.
    """
    if not len(pair):
        return {}
    n = int(max(a.max(), b.max())) + 2  # so that no run goes on in the next distance
    names = None
    if int(pair.max()) >= 2**62 // (n * n):
        names, pair = np.unique(pair, return_inverse=True)
    key = np.sort((pair * (2 * n) + (b - a + n)) * n + a)  # one number is sorted in a tenth of the time
    key = key[np.diff(key, prepend=-1) != 0]
    starts = np.flatnonzero(np.diff(key, prepend=key[0] - 2) != 1)
    of = key[starts] // (2 * n * n)
    first = np.flatnonzero(np.diff(of, prepend=-1))
    longest = np.maximum.reduceat(np.diff(starts, append=len(key)), first)
    found = of[first] if names is None else names[of[first]]
    return dict(zip(found.tolist(), longest.tolist(), strict=True))


def _pairs_of_clips(
    clips: _Clips, links: NDArray[np.void], film_of: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Pair clips, [P] and [P], that share pictures; of one signature as many as the film with fewer has."""
    single = np.array([rows[0] if len(rows) == 1 else -1 for rows in clips.same], np.int32)
    links = links[links["likeness"] >= SAME]
    a, b = single[links["a"]], single[links["b"]]
    alone = (a >= 0) & (b >= 0)
    pairs: list[tuple[int, int]] = []
    groups = [rows for rows in clips.same if len(rows) > 1]
    groups += [clips.same[i] + clips.same[j] for i, j in links[~alone][["a", "b"]].tolist()]
    for rows in groups:
        by_film: dict[int, list[int]] = defaultdict(list)
        for row in rows:
            by_film[int(film_of[row])].append(row)
        if len(by_film) <= MOST_MOVIES:
            for one, other in combinations(sorted(by_film), 2):
                pairs.extend(zip(by_film[one], by_film[other], strict=False))
    if alone.all() and not pairs:
        return a, b
    others = np.array(pairs, np.int32).reshape(-1, 2)
    return np.append(a[alone], others[:, 0]), np.append(b[alone], others[:, 1])


def _read(stores: list[Store], only: Collection[str] | None) -> _Clips:
    """Read the signatures of all clips that show something, those that are the same once."""
    n_frames = _frames(stores[0])
    clips = _Clips([], [], [], [], [], [], [], [0] * len(stores))
    known: dict[bytes, int] = {}
    for number, store in enumerate(stores, start=1):
        if _frames(store) != n_frames:
            raise StoreError(
                f"{store.where}: has {_frames(store)} frames a clip, {stores[0].where} has {n_frames}: "
                "extract both with the same --n"
            )
        group = store[GROUP]
        usable = group.usable.copy()
        if number == 1 and only is not None:
            usable &= np.array([clip_id in only for clip_id in group.clip_ids], bool)
        for start, block in group.blocks("frames"):
            rows = start + np.flatnonzero(usable[start : start + len(block)])
            signatures, wrong = _whole_numbers(block if len(rows) == len(block) else block[rows - start])
            if len(wrong):
                clip_id = group.clip_ids[rows[wrong[0]]]
                raise StoreError(
                    f"{store.where}: frames of {GROUP} of clip {clip_id} have values other than -1, 0 and 1; "
                    f"{EXTRACT}"
                )
            plain = signatures[:, :, -1].sum(axis=1) < LEAST_FRAMES
            clips.plain[number - 1] += int(plain.sum())
            for row, signature, is_plain in zip(rows.tolist(), signatures, plain.tolist(), strict=True):
                if is_plain:
                    continue
                key = signature.tobytes()
                place = known.setdefault(key, len(clips.same))
                if place == len(clips.same):
                    kept = np.frombuffer(key, np.int8).reshape(signature.shape)
                    clips.signs.append(kept[:, :-1].reshape(n_frames, len(VIEWS), SIGNS))
                    clips.shown.append(kept[:, -1] != 0)
                    clips.same.append([])
                clips.same[place].append(len(clips.ids))
                clip = store.clips[row]
                clips.ids.append(clip.clip_id)
                clips.movies.append(clip.movie)
                clips.stores.append(number)
                clips.order.append((number, clip.movie, clip.start_s or 0.0, row))
    return clips


def _whole_numbers(frames: NDArray[np.float16]) -> tuple[Signs, NDArray[np.int64]]:
    """Turn signatures [n, F, 1321] into their signs and, last, whether a frame shows something.

    By bits, which is ten times as fast as by values. The numbers of those come second that have other values
    than -1, 0 and 1.
    """
    bits = np.ascontiguousarray(frames, np.float16).view(np.uint16)
    twice = bits << 1  # without the sign
    twice[:, :, -1] = 0
    ones = twice == 2 * _ONE
    signs: Signs = (bits == _ONE).view(np.int8) * np.int8(2) - ones.view(np.int8)
    signs[:, :, -1] = frames[:, :, -1] >= LEAST_TEXTURE
    if np.count_nonzero(twice) == np.count_nonzero(ones):
        return signs, np.empty(0, np.int64)
    return signs, np.flatnonzero(((twice != 0) != ones).any(axis=(1, 2)))


def _frames(store: Store) -> int:
    """Return how many frames a clip has in a store's signatures."""
    if not has_signatures(store):
        raise StoreError(
            f"{store.where}: has no frames of {GROUP}, as this version makes them, to compare; {EXTRACT}"
        )
    n_frames: int = store[GROUP].shape("frames")[1]
    return n_frames
