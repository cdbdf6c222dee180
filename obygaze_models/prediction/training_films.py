"""Know a film again that a model was trained on: by its features, by its pictures, by its name.

A model file keeps the digest of each row it was trained on, and of clips whose store has the group
`signature` a sketch of their pictures. A film is known again if more than half of its clips, or of those of
one film trained on, whichever are fewer, are the same. Names are a second witness: who has the film may call
it otherwise.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from obygaze_features.manifest.identity import same_films
from obygaze_features.same_pictures import GROUP as SIGNATURE
from obygaze_features.same_pictures import VIEWS, has_signatures, signs_of
from obygaze_features.signature_likeness import (
    LEAST_FRAMES,
    SKETCH_BYTES,
    mean_frames,
    sketch_likeness,
    sketches,
)
from obygaze_features.store import Group, Store
from obygaze_models.dataset.dataset import Dataset
from obygaze_models.errors import ModelError
from obygaze_models.persistence.card import DIGEST_BYTES, Card, Input

KEPT_VIEWS = ("picture", "inner")
"""Views of the signature that are kept of a clip: the picture, and it without a twentieth at each side."""

WAYS = (("picture", "picture"), ("inner", "picture"), ("picture", "inner"))
"""Views of a new clip and of one trained on that are compared: either may have lost its sides."""

ALIKE = 0.5
"""Least cosine of clips of one picture; `benchmarks/planted known_films` measures it."""

SURELY_ALIKE = 0.7
"""The same where one of two films has fewer clips than `FEW`."""

FEW = 3

COMMON_FILMS, COMMON_SHARE = 4, 0.25
"""A row that as many films trained on have, and more than this share of them, tells none, such as black."""

HALF = 0.5
"""Share of clips that must be the same, at least."""

COPY = 0.9
"""Share of rows that two films trained on have in common if they are one film under two names."""

LEAST_ROWS, FOR_EACH_COINCIDENCE = 3, 2
"""Different rows of a film that must be rows trained on before these clips are said to be, and how many more
for each row that two films trained on have in common by chance."""

LEAST_WORDS = 8
"""Words of a text that is known again by itself: shorter ones are said in many films."""

BLOCK = 2048
"""Clips whose pictures are compared at a time."""

DIGEST = f"S{DIGEST_BYTES}"
"""Data type of digests: all are of this length, so it is no matter that numpy takes off zeros at the end."""

NO_DIGEST = bytes(DIGEST_BYTES)
"""Of a row without features."""

Witness = Literal["features", "pictures", "name"]


@dataclass(frozen=True, slots=True)
class KnownFilm:
    """A film of a store that a model was trained on.

    Attributes
    ----------
    movie : str
        As the store names it.
    trained_as : str
        As the model's file names it.
    by : {"features", "pictures", "name"}
        The first of these that knows it.
    share : float
        Share of clips that are the same, of the film that has fewer; 1 by name.
    """

    movie: str
    trained_as: str
    by: Witness
    share: float


@dataclass(frozen=True)
class Recognition:
    """What of some stores a model was trained on.

    Attributes
    ----------
    films : mapping of str to KnownFilm
        By movie.
    clips : frozenset of str
        Ids of clips of other films whose rows were trained on.
    no_pictures : str
        Why pictures were not compared, so that copies that were encoded again are not known; "" if they were.
    """

    films: Mapping[str, KnownFilm] = field(default_factory=dict)
    clips: frozenset[str] = frozenset()
    no_pictures: str = ""

    def knows(self, clip_id: str, movie: str) -> bool:
        """Return whether a clip is of a film trained on, or was trained on itself."""
        return movie in self.films or clip_id in self.clips


@dataclass(frozen=True, eq=False)
class TrainingFilms:
    """What a model file keeps of the clips trained on.

    Attributes
    ----------
    rows : ndarray of uint8, shape [N, M, 16]
        Beginning of the SHA-256 of each row, in each of M modalities; zeros of one that a clip lacks.
    row_films : ndarray of int64, shape [N]
        Each row's film, by its place in the card's movies.
    pictures : ndarray of uint8, shape [P, 2, 33]
        Sketches of the clips that have a signature and show something; P may be 0.
    picture_films : ndarray of int64, shape [P]
    """

    rows: NDArray[np.uint8]
    row_films: NDArray[np.int64]
    pictures: NDArray[np.uint8]
    picture_films: NDArray[np.int64]

    @classmethod
    def of_clips(cls, data: Dataset, rows: NDArray[np.intp]) -> "TrainingFilms":
        """Collect what is kept of clips of a dataset, by their rows; films are numbered in sorted order."""
        clip_ids, films = data.clip_ids[rows].tolist(), np.unique(data.movies[rows], return_inverse=True)[1]
        parts = data.parts or (data,)
        digests = np.stack([_digests_of(part, clip_ids) for part in parts], axis=1)
        sketched: dict[str, NDArray[np.uint8]] = {}
        for part in reversed(parts):
            if part.signatures is not None:
                sketched |= {
                    known: sketches(_kept(means)) for known, means in _pictures(part.signatures, clip_ids)
                }
        with_picture = [place for place, clip_id in enumerate(clip_ids) if clip_id in sketched]
        pictures = [sketched[clip_ids[place]] for place in with_picture]
        return cls(
            digests,
            films.astype(np.int64),
            np.array(pictures, np.uint8).reshape(-1, len(KEPT_VIEWS), SKETCH_BYTES),
            films[with_picture].astype(np.int64),
        )

    def of_films(self, films: Sequence[int]) -> "TrainingFilms":
        """Keep the clips of some films, which are numbered anew in this order."""
        place_of = {film: place for place, film in enumerate(films)}
        rows = np.flatnonzero(np.isin(self.row_films, films))
        clips = np.flatnonzero(np.isin(self.picture_films, films))
        rows = rows[np.argsort([place_of[film] for film in self.row_films[rows].tolist()], kind="stable")]
        clips = clips[
            np.argsort([place_of[film] for film in self.picture_films[clips].tolist()], kind="stable")
        ]
        return TrainingFilms(
            self.rows[rows],
            np.array([place_of[film] for film in self.row_films[rows].tolist()], np.int64),
            self.pictures[clips],
            np.array([place_of[film] for film in self.picture_films[clips].tolist()], np.int64),
        )

    @classmethod
    def concatenated(cls, several: Sequence["TrainingFilms"], n_films: Sequence[int]) -> "TrainingFilms":
        """Put those of several labs one after the other; the films of each are numbered on."""
        starts = np.cumsum([0, *n_films])[:-1].tolist()
        pairs = list(zip(several, starts, strict=True))
        return cls(
            np.concatenate([each.rows for each in several]),
            np.concatenate([each.row_films + start for each, start in pairs]),
            np.concatenate([each.pictures for each in several]),
            np.concatenate([each.picture_films + start for each, start in pairs]),
        )

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of a file."""
        arrays: dict[str, NDArray[Any]] = {"trained_rows": self.rows, "trained_row_films": self.row_films}
        if len(self.pictures):
            arrays |= {"trained_pictures": self.pictures, "trained_picture_films": self.picture_films}
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> "TrainingFilms":
        """Read what `to_arrays` gave."""
        none = np.empty((0, len(KEPT_VIEWS), SKETCH_BYTES), np.uint8)
        return cls(
            arrays["trained_rows"],
            arrays["trained_row_films"],
            arrays.get("trained_pictures", none),
            arrays.get("trained_picture_films", np.empty(0, np.int64)),
        )


def recognise(card: Card, training: TrainingFilms, stores: Sequence[Store]) -> Recognition:
    """Find the films and clips of some stores that a model was trained on.

    Parameters
    ----------
    card : Card
    training : TrainingFilms
        Of the same file.
    stores : sequence of Store
    """
    movies: dict[str, None] = {}
    for store in stores:
        movies.update(dict.fromkeys(store.table.movies))
    movies.pop("", None)
    rows = [_rows_of(each, stores) for each in card.inputs]
    trained = [_rows_trained_on(training, modality) for modality in range(training.rows.shape[1])]
    known = _by_name(card, movies)
    pictures, no_pictures = _by_pictures(card, training, stores)
    known |= pictures
    known |= _by_features(card, trained, rows)
    films = {movie: known[movie] for movie in movies if movie in known}
    return Recognition(films, _trained_clips(trained, rows, films), no_pictures)


def _by_name(card: Card, movies: Mapping[str, None]) -> dict[str, KnownFilm]:
    """Know films by name, however it is spelled."""
    named = {movie: movie for movie in card.movies}
    named |= {movie: other for movie, other in same_films([*card.movies, *movies]) if other in named}
    return {movie: KnownFilm(movie, named[movie], "name", 1.0) for movie in movies if movie in named}


# --- by features
# ---------------------------------------------------------------------------
@dataclass(frozen=True, eq=False, slots=True)
class _StoredRows:
    """The rows of stores that a model reads in one modality.

    Attributes
    ----------
    clip_ids, movies : list of str
        Of N rows.
    n_words : ndarray of int, shape [N]
        Of the texts whose rows these are.
    digests : ndarray of bytes, shape [N]
        The beginning of each row's digest.
    """

    clip_ids: list[str]
    movies: list[str]
    n_words: NDArray[np.int64]
    digests: NDArray[np.bytes_]

    def of_digests(self, wanted: Collection[bytes]) -> "_StoredRows":
        """Keep the rows whose digests are among some."""
        places = np.flatnonzero(np.isin(self.digests, np.array(list(wanted), DIGEST)))
        return _StoredRows(
            [self.clip_ids[place] for place in places.tolist()],
            [self.movies[place] for place in places.tolist()],
            self.n_words[places],
            self.digests[places],
        )

    def of_films(self) -> Iterator[tuple[str, bytes]]:
        """Yield each row's film and digest; of rows that are of a film."""
        for movie, digest in zip(self.movies, self.digests.tolist(), strict=True):
            if movie:
                yield movie, digest.ljust(DIGEST_BYTES, b"\0")

    def n_different(self) -> dict[str, int]:
        """Count the different digests of each film."""
        place_of: dict[str, int] = {}
        places = (place_of.setdefault(movie, len(place_of)) for movie in self.movies)
        film = np.fromiter(places, np.int32, len(self.movies))
        has_digest = self.digests != NO_DIGEST
        film, digests = film[has_digest], self.digests[has_digest]
        order = np.lexsort((digests, film))
        film, digests = film[order], digests[order]
        is_new = np.ones(len(film), np.bool_)
        is_new[1:] = (film[1:] != film[:-1]) | (digests[1:] != digests[:-1])
        counts = np.bincount(film[is_new], minlength=len(place_of)).tolist()
        return dict(zip(place_of, counts, strict=True))


def _digests_of(data: Dataset, clip_ids: Sequence[str]) -> NDArray[np.uint8]:
    """Return the digests [N, 16] of clips' rows in the array that a model reads; zeros of clips it lacks."""
    if data.group is None:
        raise ModelError("these features are of no store, so that no row has a digest")
    known = dict(zip(data.group.clip_ids, data.group.digests(data.features), strict=True))
    short = [known.get(clip_id, "")[: 2 * DIGEST_BYTES] or "00" * DIGEST_BYTES for clip_id in clip_ids]
    return np.frombuffer(bytes.fromhex("".join(short)), np.uint8).reshape(-1, DIGEST_BYTES)


def _rows_of(reads: Input, stores: Sequence[Store]) -> _StoredRows:
    """Collect the rows of stores that have the features which a model reads in a modality."""
    name = f"{reads['backbone']}/{reads['features']}"
    tables = [store.table for store in stores if name in store.table.digests]
    clip_ids: list[str] = []
    movies: list[str] = []
    beginnings = [np.empty(0, DIGEST)]
    for table in tables:
        clip_ids += table.clip_ids
        movies += table.movies
        bytes_of_rows = table.digests[name].view(np.uint8).reshape(len(table), -1)
        beginnings.append(np.ascontiguousarray(bytes_of_rows[:, :DIGEST_BYTES]).view(DIGEST).ravel())
    n_words = np.concatenate([np.empty(0, np.int64), *(table.n_words for table in tables)])
    return _StoredRows(clip_ids, movies, n_words, np.concatenate(beginnings))


def _films_of_rows(training: TrainingFilms, modality: int) -> dict[bytes, set[int]]:
    """Map each digest of a modality to the films that have it."""
    films_of: dict[bytes, set[int]] = {}
    for row, film in zip(training.rows[:, modality], training.row_films.tolist(), strict=True):
        if row.any():
            films_of.setdefault(row.tobytes(), set()).add(film)
    return films_of


@dataclass(frozen=True, slots=True)
class _Rows:
    """Digests of a modality that films trained on have.

    Attributes
    ----------
    films_of : dict of bytes to set of int
        Of those that tell films apart, the films that have it.
    n_rows : Counter of int
        Different rows of each film, those that tell nothing too.
    least : float
        Share of rows that a film must have in common with one of them.
    """

    films_of: dict[bytes, set[int]]
    n_rows: Counter[int]
    least: float


def _rows_trained_on(training: TrainingFilms, modality: int) -> _Rows:
    """Collect the digests of a modality, and how many of them films have in common by chance."""
    films_of = _films_of_rows(training, modality)
    n_rows = Counter(film for films in films_of.values() for film in films)
    most = max(COMMON_FILMS - 1, int(COMMON_SHARE * len(n_rows)))
    telling = {digest: films for digest, films in films_of.items() if len(films) <= most}
    by_chance = [share for _, _, share in _shares_of_pairs(telling, n_rows) if share < COPY]
    # Half way between what different films have in common, whose features may take few values, and all.
    least = HALF + HALF * max(by_chance, default=0.0)
    return _Rows(telling, n_rows, least)


def _shares_of_pairs(
    films_of: Mapping[bytes, set[int]], n_rows: Mapping[int, int]
) -> list[tuple[int, int, float]]:
    """List pairs of films that have rows in common, and the share of the one that has fewer."""
    shared = Counter(pair for films in films_of.values() for pair in combinations(sorted(films), 2))
    return [(a, b, n_shared / min(n_rows[a], n_rows[b])) for (a, b), n_shared in sorted(shared.items())]


def _by_features(card: Card, trained: Sequence[_Rows], rows: Sequence[_StoredRows]) -> dict[str, KnownFilm]:
    """Know films by rows that are equal."""
    known: dict[str, KnownFilm] = {}
    for of_model, of_stores in zip(trained, rows, strict=True):
        equal: dict[str, set[bytes]] = {}
        for movie, digest in of_stores.of_digests(of_model.films_of).of_films():
            equal.setdefault(movie, set()).add(digest)
        n_different = of_stores.n_different() if equal else {}
        for movie, digests in equal.items():
            shared = Counter(film for digest in digests for film in of_model.films_of[digest])
            for film, n_shared in shared.items():
                share = n_shared / min(n_different[movie], of_model.n_rows[film])
                best = known[movie].share if movie in known else 0.0
                if share > max(of_model.least, best):
                    known[movie] = KnownFilm(movie, card.movies[film], "features", share)
    return known


def _trained_clips(
    trained: Sequence[_Rows], rows: Sequence[_StoredRows], known: Mapping[str, KnownFilm]
) -> frozenset[str]:
    """Find the clips of films that are not known again whose rows were trained on."""
    clip_ids: set[str] = set()
    for of_model, of_stores in zip(trained, rows, strict=True):
        equal = of_stores.of_digests(of_model.films_of)
        coincidences = sum(len(films) > 1 for films in of_model.films_of.values())
        least = LEAST_ROWS + FOR_EACH_COINCIDENCE * coincidences
        different = {(movie, digest) for movie, digest in equal.of_films() if movie not in known}
        n_rows = Counter(movie for movie, _ in different)
        for clip_id, movie, n_words in zip(equal.clip_ids, equal.movies, equal.n_words.tolist(), strict=True):
            if n_words >= LEAST_WORDS or n_rows[movie] >= least:
                clip_ids.add(clip_id)
    return frozenset(clip_ids)


def films_of_one_content(data: Dataset) -> list[tuple[str, str, float]]:
    """List pairs of a dataset's films that have more than half of their rows in common, and the share."""
    if data.parts:
        return films_of_one_content(data.parts[0])
    if data.group is None:
        return []
    training = TrainingFilms.of_clips(replace(data, signatures=None), np.arange(len(data)))
    films_of = _films_of_rows(training, 0)
    n_rows = Counter(film for films in films_of.values() for film in films)
    names = np.unique(data.movies)
    pairs = _shares_of_pairs(films_of, n_rows)
    return [(str(names[film]), str(names[other]), share) for film, other, share in pairs if share > HALF]


# --- by pictures
# ---------------------------------------------------------------------------
def _pictures(group: Group, clip_ids: Sequence[str]) -> Iterator[tuple[str, NDArray[np.float32]]]:
    """Yield the clips that show something, and their mean frames [views, 264]."""
    wanted = set(clip_ids)
    for start, block in group.blocks("frames"):
        for place, frames in enumerate(block, start=start):
            clip_id = group.clip_ids[place]
            if clip_id not in wanted or not group.usable[place]:
                continue
            signs = signs_of(frames, f"frames of {SIGNATURE} of clip {clip_id}")
            shown = signs[:, -1] != 0
            if np.count_nonzero(shown) >= LEAST_FRAMES:
                yield clip_id, mean_frames(signs[:, :-1].reshape(len(signs), len(VIEWS), -1), shown)


def _kept(means: NDArray[np.float32]) -> NDArray[np.float32]:
    return means[[VIEWS.index(view) for view in KEPT_VIEWS]]


def _by_pictures(
    card: Card, training: TrainingFilms, stores: Sequence[Store]
) -> tuple[dict[str, KnownFilm], str]:
    """Know films by their pictures; and say why none could be compared."""
    if not len(training.pictures):
        return {}, "the model's file has no pictures: its store had no signature"
    # A signature is 40 kB a clip: too much to fetch unasked.
    with_pictures = [store for store in stores if has_signatures(store) and "://" not in store.where]
    if not with_pictures:
        names = ", ".join(store.name for store in stores)
        return {}, f"no signature is in {names}"
    means, movies = [], []
    for store in with_pictures:
        movie_of = dict(zip(store.table.clip_ids, store.table.movies, strict=True))
        for clip_id, frames in _pictures(store[SIGNATURE], list(movie_of)):
            means.append(frames)
            movies.append(movie_of[clip_id])
    known: dict[str, KnownFilm] = {}
    movie_of_clip = np.array(movies, dtype=str)
    for movie in dict.fromkeys(movies):
        own = np.stack([means[place] for place in np.flatnonzero(movie_of_clip == movie)])
        film, share = _most_alike(own, training)
        if share > HALF:
            known[movie] = KnownFilm(movie, card.movies[film], "pictures", share)
    return known, ""


def _most_alike(means: NDArray[np.float32], training: TrainingFilms) -> tuple[int, float]:
    """Find the film trained on that is most like a film's clips [n, views, 264], and the share of them."""
    best, best_share = 0, 0.0
    for film in np.unique(training.picture_films).tolist():
        kept = training.pictures[training.picture_films == film]
        fewer = min(len(means), len(kept))
        least = ALIKE if fewer >= FEW else SURELY_ALIKE
        ours, theirs = np.zeros(len(means), bool), np.zeros(len(kept), bool)
        for first in range(0, len(means), BLOCK):
            part = slice(first, first + BLOCK)
            alike = _likeness(means[part], kept) >= least
            ours[part] = alike.any(axis=1)
            theirs |= alike.any(axis=0)
        share = float(ours.mean() if len(means) <= len(kept) else theirs.mean())
        if share > best_share:
            best, best_share = film, share
    return best, best_share


def _likeness(means: NDArray[np.float32], kept: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Compare clips [n, views, 264] with sketches [m, 2, 33] in all ways: the best of each pair [n, m]."""
    likenesses = [
        sketch_likeness(means[:, VIEWS.index(view)], kept[:, KEPT_VIEWS.index(other)]) for view, other in WAYS
    ]
    best: NDArray[np.float32] = np.max(likenesses, axis=0)
    return best
