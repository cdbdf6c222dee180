"""Find clips that look alike: re-encoded, graded, letterboxed, cropped, mirrored, or a little later.

Frames of the group `signature` are compared in the order of time. The likeness of two clips is the best, over
views and small shifts, of the median cosine of frames at the same place. Clips of the very same signature
are grouped first; of the others, products of clips' mean frames say which are compared frame by frame. A clip
that looks like another may be another moment of its scene; films share pictures if several clips in a row do.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from obygaze_features.errors import StoreError
from obygaze_features.screen import Progress, progress_hook
from obygaze_features.store.group import rows_of
from obygaze_features.store.store import Store

GROUP = "signature"
"""Backbone whose frames are compared."""

ALIKE = 0.6
"""Least likeness of clips that look alike: half way between the copies and the others it was fixed on."""

SAME = 0.7
"""Least likeness of clips in a row before films are said to share pictures."""

ROW = 4
"""Clips in a row, in both films, before films are said to share pictures."""

NEAR = 0.4
"""Least cosine of clips' mean frames of which the frames are compared."""

LEAST_TEXTURE = 0.2
"""Share of a frame's pixels that its commonest lightness must leave: less is black, a title, credits."""

LEAST_FRAMES = 4
"""Frames that show something which a clip must have; others are counted as plain."""

SHIFTS = range(-3, 4)
"""Samples by which one clip may be later than the other."""

MOST_MOVIES = 20
"""Movies that may share a picture before it says nothing of them, such as a distributor's title."""

BLOCK = 512
"""Clips whose mean frames, or pairs whose frames, are compared at a time."""

VIEWS = ("frame", "upper", "picture", "inner", "middle")
CELLS = 12
SIGNS = 2 * CELLS * (CELLS - 1)
"""Of a view: differences of [12, 11] across, then [11, 12] down."""
FEATURES = [*(f"{view}_{k}" for view in VIEWS for k in range(SIGNS)), "texture"]
"""What a frame of `signature` is, by its provenance: models read it, and import no backbone."""

PAIRS = tuple(
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
)
"""Views of two clips that are compared: one of them may have lost its borders, its sides or its subtitles."""

Signs = NDArray[np.int8]
Floats = NDArray[np.float32]


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
    links: dict[tuple[int, int], float] = {}
    for done, pairs in _near(clips, sides):
        values = likeness(clips.signs, clips.shown, pairs)
        kept = np.flatnonzero(values >= ALIKE)
        links.update(zip(map(tuple, pairs[kept, :2].tolist()), values[kept].round(4).tolist(), strict=True))
        if show is not None:
            show(done, len(clips.signs))
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


def likeness(
    signs: Sequence[Signs], shown: Sequence[NDArray[np.bool_]], pairs: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Compute how alike pairs of clips are, 1 for the same frames.

    Parameters
    ----------
    signs
        Of each clip, signatures [F, 5, 264].
    shown
        Of each clip [F], which frames show something; others are not compared.
    pairs
        [P, 5]: two clips, the view of each, and whether the second is mirrored.

    Returns
    -------
    ndarray
        [P]: the best over `SHIFTS` of the median cosine; -1 where fewer than `LEAST_FRAMES` meet.
    """
    best = np.full(len(pairs), -1.0)
    for start in range(0, len(pairs), BLOCK):
        part = pairs[start : start + BLOCK].tolist()
        a = np.array([signs[i][:, view] for i, _, view, _, _ in part], np.float32)
        b = np.array([signs[j][:, view] for _, j, _, view, _ in part], np.float32)
        mirror = [place for place, pair in enumerate(part) if pair[-1]]
        b[mirror] = mirrored(b[mirror])
        lengths = np.sqrt((a * a).sum(axis=2))[:, :, None] * np.sqrt((b * b).sum(axis=2))[:, None, :]
        cosine = np.divide(a @ b.transpose(0, 2, 1), lengths, where=lengths > 0, out=np.zeros_like(lengths))
        apart = [~(shown[i][:, None] & shown[j]) for i, j, *_ in part]
        cosine[np.array(apart)] = np.nan
        for shift in SHIFTS:
            met = np.sort(np.diagonal(cosine, shift, axis1=1, axis2=2), axis=1)  # NaN last
            n = (~np.isnan(met)).sum(axis=1)
            enough = np.flatnonzero(n >= LEAST_FRAMES)
            middle = (met[enough, (n[enough] - 1) // 2] + met[enough, n[enough] // 2]) / 2
            best[start + enough] = np.maximum(best[start + enough], middle)
    return best


def mirrored(signs: NDArray[Any]) -> NDArray[Any]:
    """Mirror signatures [..., 264]: differences across change their sign and their order."""
    n = CELLS * (CELLS - 1)
    across = signs[..., :n].reshape(*signs.shape[:-1], CELLS, CELLS - 1)
    down = signs[..., n:].reshape(*signs.shape[:-1], CELLS - 1, CELLS)
    turned = [part[..., ::-1].reshape(*signs.shape[:-1], n) for part in (-across, down)]
    return np.concatenate(turned, axis=-1)


def _near(clips: _Clips, sides: list[str]) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Yield how many clips are done, and pairs of clips whose mean frames are near, as `likeness` takes them.

    Clips of one side alone, a movie or a store, are not compared. The two views of a pair are those in which
    its means are nearest.
    """
    sums = [
        (signs * shown[:, None, None]).sum(axis=0)
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
    for start in range(0, len(one), BLOCK):
        rows = one[start : start + BLOCK]
        best = np.full((len(rows), len(two)), np.float32(NEAR))
        how = np.full(best.shape, -1, np.int8)
        for code, (mirror, (a, b)) in enumerate((mirror, pair) for mirror in (0, 1) for pair in PAIRS):
            cosine = means[rows, a] @ (turned if mirror else means)[two, b].T
            nearer = cosine > best
            best[nearer], how[nearer] = cosine[nearer], code
        how[(own[rows, None] == own[two]) & (own[two] != "")] = -1
        how[both[rows, None] & both[two] & (rows[:, None] >= two)] = -1  # they meet twice
        i, j = np.nonzero(how >= 0)
        codes = how[i, j].astype(np.int64)
        views = np.array(PAIRS)[codes % len(PAIRS)]
        yield start + len(rows), np.column_stack([rows[i], two[j], views, codes // len(PAIRS)])


def _groups(clips: _Clips, sides: list[str], links: Mapping[tuple[int, int], float]) -> Iterator[SameClip]:
    """Join what looks alike into groups, and list their clips."""
    nearest: dict[int, float] = defaultdict(float)
    parent = list(range(len(clips.same)))

    def root(row: int) -> int:
        while parent[row] != row:
            parent[row] = parent[parent[row]]
            row = parent[row]
        return row

    for place, rows in enumerate(clips.same):
        if len({sides[row] for row in rows}) > 1:
            nearest[place] = 1.0
    for (i, j), value in links.items():
        nearest[i], nearest[j] = max(nearest[i], value), max(nearest[j], value)
        parent[root(i)] = root(j)
    found = defaultdict(list)
    for place in nearest:
        found[root(place)].append(place)
    ranked = sorted(found.values(), key=lambda places: (-max(nearest[each] for each in places), min(places)))
    for number, places in enumerate(ranked, start=1):
        alike = [(-nearest[place], clips.order[row], row) for place in places for row in clips.same[place]]
        for value, _, row in sorted(alike):
            yield SameClip(number, clips.ids[row], clips.movies[row], clips.stores[row], -value)


def _shared(clips: _Clips, links: Mapping[tuple[int, int], float]) -> list[Shared]:
    """Find movies that share clips in a row, by the order of their clips in time."""
    place_of: dict[int, int] = {}
    last: dict[tuple[int, str], int] = defaultdict(int)
    for _, row in sorted((order, row) for row, order in enumerate(clips.order)):
        film = clips.stores[row], clips.movies[row]
        place_of[row] = last[film]
        last[film] += 1
    met: dict[tuple[tuple[int, str], tuple[int, str]], set[tuple[int, int]]] = defaultdict(set)
    alike = [(rows, rows) for rows in clips.same]
    alike += [(clips.same[i], clips.same[j]) for (i, j), value in links.items() if value >= SAME]
    two = 2 in clips.stores
    for ours, theirs in alike:
        by_film: dict[tuple[int, str], list[int]] = defaultdict(list)
        for row in {*ours, *theirs}:
            by_film[clips.stores[row], clips.movies[row]].append(place_of[row])
        if len(by_film) > MOST_MOVIES:
            continue
        for a, b in combinations(sorted(by_film), 2):
            if not two or a[0] != b[0]:
                met[a, b].update(zip(sorted(by_film[a]), sorted(by_film[b]), strict=False))
    shared = []
    for (a, b), places in met.items():
        length: dict[tuple[int, int], int] = {}
        for i, j in sorted(places):
            length[i, j] = 1 + length.get((i - 1, j - 1), 0)
        if (most := max(length.values(), default=0)) >= ROW:
            shared.append(Shared(a[1], b[1], most))
    return sorted(shared, key=lambda each: (-each.clips, each.movie_a, each.movie_b))


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
        wanted = group.clip_ids if number == 2 or only is None else only
        usable = [row for row in np.flatnonzero(group.usable).tolist() if group.clip_ids[row] in wanted]
        for row, values in zip(usable, rows_of(group, "frames", usable), strict=True):
            shown = values[:, -1] >= LEAST_TEXTURE
            if shown.sum() < LEAST_FRAMES:
                clips.plain[number - 1] += 1
                continue
            signs = values[:, :-1].astype(np.int8).reshape(n_frames, len(VIEWS), SIGNS)
            place = known.setdefault(signs.tobytes() + shown.tobytes(), len(clips.same))
            if place == len(clips.same):
                clips.signs.append(signs)
                clips.shown.append(shown)
                clips.same.append([])
            clips.same[place].append(len(clips.ids))
            clip = store.clips[row]
            clips.ids.append(clip.clip_id)
            clips.movies.append(clip.movie)
            clips.stores.append(number)
            clips.order.append((number, clip.movie, clip.start_s or 0.0, row))
    return clips


def _frames(store: Store) -> int:
    """Return how many frames a clip has in a store's signatures."""
    if not has_signatures(store):
        raise StoreError(
            f"{store.where}: has no frames of {GROUP}, as this version makes them, to compare; "
            f"extract them: obygaze extract MANIFEST STORE --backbone {GROUP}"
        )
    n_frames: int = store[GROUP].shape("frames")[1]
    return n_frames
