"""Recognise films that a model was trained on: by their features, by their pictures, by their names.

A model file keeps the digest of each row it was trained on, and a sketch of the pictures of each clip whose
store has the group `signature`. A film counts as one that the model was trained on if more than half of its
clips are the same as clips of that film, where the share is counted in the film with fewer clips. Names are
compared too, but are less reliable, as another lab may give the same film another name.
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
"""Views of a clip's signature that a model file keeps: the whole picture, and the picture without a twentieth
at each side."""

COMPARED_VIEWS = (("picture", "picture"), ("inner", "picture"), ("picture", "inner"))
"""Pairs of views that are compared, of a new clip and of a training clip: either may have lost its sides."""

LEAST_COSINE = 0.5
"""Two clips count as the same if the cosine of their sketches is at least this.

The number is measured (`benchmarks/planted known_films`)."""

LEAST_COSINE_OF_FEW_CLIPS = 0.7
"""Like `LEAST_COSINE`, if one of the two films has fewer than `FEW_CLIPS` clips.

So few clips may be similar by chance."""

FEW_CLIPS = 3
"""For films with fewer clips than this, `LEAST_COSINE_OF_FEW_CLIPS` is used."""

COMMON_FILMS, COMMON_SHARE = 4, 0.25
"""A row that is in at least this number of training films, and in more than this share of them, is ignored.

It does not identify a film: the row of a black clip, for instance."""

HALF = 0.5
"""A film is recognised if more than this share of its clips is the same."""

COPY_SHARE = 0.9
"""Training films that have at least this share of rows in common count as one film under two names."""

LEAST_ROWS = 3
"""Number of different rows of a film that must equal training rows, for its clips to count as trained on."""

ROWS_FOR_EACH_COINCIDENCE = 2
"""By how much `LEAST_ROWS` is raised for each row that two different training films have in common."""

LEAST_WORDS = 8
"""A text with at least this many words is recognised by itself. Shorter texts occur in many films."""

N_CLIPS_AT_ONCE = 2048
"""Clips whose pictures are compared at a time."""

DIGEST = f"S{DIGEST_BYTES}"
"""Data type of digests. numpy takes off zeros at their end, which does no harm, as all have this length."""

NO_DIGEST = bytes(DIGEST_BYTES)
"""Stands for the digest of a row without features."""

RecognisedBy = Literal["features", "pictures", "name"]
"""How a film was recognised as one that a model was trained on."""


@dataclass(frozen=True, slots=True)
class KnownFilm:
    """A film of a store that a model was trained on.

    Attributes
    ----------
    movie : str
        The film's name in the store.
    trained_as : str
        The film's name in the model's file.
    by : {"features", "pictures", "name"}
        How it was recognised: features are compared first, then pictures, then names.
    share : float
        Share of the clips of the film with fewer clips that are the same in both; 1 if recognised by name.
    """

    movie: str
    trained_as: str
    by: RecognisedBy
    share: float


@dataclass(frozen=True)
class Recognition:
    """The films and clips of some stores that a model was trained on.

    Attributes
    ----------
    films : mapping of str to KnownFilm
        The films that were recognised, by their names in the stores.
    clips : frozenset of str
        Ids of clips of other films whose rows were trained on.
    no_pictures : str
        The reason if pictures were not compared, so that films encoded anew are not recognised; else "".
    """

    films: Mapping[str, KnownFilm] = field(default_factory=dict)
    clips: frozenset[str] = frozenset()
    no_pictures: str = ""

    def knows(self, clip_id: str, movie: str) -> bool:
        """Tell whether a clip is of a film that the model was trained on, or was trained on itself."""
        return movie in self.films or clip_id in self.clips


@dataclass(frozen=True, eq=False)
class TrainingFilms:
    """What a model file keeps of the clips that it was trained on.

    Attributes
    ----------
    rows : ndarray of uint8, shape [N, M, 16]
        Beginning of the SHA-256 of each row in each of M modalities; zeros where a clip lacks the modality.
    row_films : ndarray of int64, shape [N]
        Index of each row's film among the card's movies.
    pictures : ndarray of uint8, shape [P, 2, 33]
        Sketches of the clips that have a signature and show something, in the `KEPT_VIEWS`; P may be 0.
    picture_films : ndarray of int64, shape [P]
        Index of each sketch's film among the card's movies.
    """

    rows: NDArray[np.uint8]
    row_films: NDArray[np.int64]
    pictures: NDArray[np.uint8]
    picture_films: NDArray[np.int64]

    @classmethod
    def of_clips(cls, data: Dataset, rows: NDArray[np.intp]) -> "TrainingFilms":
        """Collect digests and sketches of the clips in some rows of a dataset.

        Films are numbered in the order of their names.
        """
        clip_ids = data.clip_ids[rows].tolist()
        films = np.unique(data.movies[rows], return_inverse=True)[1]
        parts = data.parts or (data,)
        digests = np.stack([_digests_of(part, clip_ids) for part in parts], axis=1)
        sketch_of: dict[str, NDArray[np.uint8]] = {}
        # If several parts have a clip's signature, that of the first part is used: it is written last.
        for part in reversed(parts):
            if part.signatures is not None:
                for clip_id, means in _mean_pictures(part.signatures, clip_ids):
                    sketch_of[clip_id] = sketches(_kept_views(means))
        with_picture = [row for row, clip_id in enumerate(clip_ids) if clip_id in sketch_of]
        pictures = [sketch_of[clip_ids[row]] for row in with_picture]
        return cls(
            rows=digests,
            row_films=films.astype(np.int64),
            pictures=np.array(pictures, np.uint8).reshape(-1, len(KEPT_VIEWS), SKETCH_BYTES),
            picture_films=films[with_picture].astype(np.int64),
        )

    def of_films(self, films: Sequence[int]) -> "TrainingFilms":
        """Select the clips of some films, given their numbers, and renumber the films in that order."""
        rows, row_films = _clips_of_films(self.row_films, films)
        pictures, picture_films = _clips_of_films(self.picture_films, films)
        return TrainingFilms(self.rows[rows], row_films, self.pictures[pictures], picture_films)

    @classmethod
    def concatenated(cls, several: Sequence["TrainingFilms"], n_films: Sequence[int]) -> "TrainingFilms":
        """Concatenate the training clips of several labs.

        Parameters
        ----------
        several : sequence of TrainingFilms
            One for each lab.
        n_films : sequence of int
            Number of films of each lab. Films are numbered on from lab to lab.
        """
        row_films = []
        picture_films = []
        first = 0
        for training, n_films_of_lab in zip(several, n_films, strict=True):
            row_films.append(training.row_films + first)
            picture_films.append(training.picture_films + first)
            first += n_films_of_lab
        return cls(
            rows=np.concatenate([training.rows for training in several]),
            row_films=np.concatenate(row_films),
            pictures=np.concatenate([training.pictures for training in several]),
            picture_films=np.concatenate(picture_films),
        )

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays that are stored in a model file, by name."""
        arrays: dict[str, NDArray[Any]] = {"trained_rows": self.rows, "trained_row_films": self.row_films}
        if len(self.pictures):
            arrays |= {"trained_pictures": self.pictures, "trained_picture_films": self.picture_films}
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> "TrainingFilms":
        """Read the arrays that `to_arrays` returned."""
        no_pictures = np.empty((0, len(KEPT_VIEWS), SKETCH_BYTES), np.uint8)
        no_films = np.empty(0, np.int64)
        return cls(
            rows=arrays["trained_rows"],
            row_films=arrays["trained_row_films"],
            pictures=arrays.get("trained_pictures", no_pictures),
            picture_films=arrays.get("trained_picture_films", no_films),
        )


def _clips_of_films(
    film_of_clip: NDArray[np.int64], films: Sequence[int]
) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
    """Select the clips of some films, in the order of the films.

    Returns
    -------
    clips : ndarray of int
        Indices of the clips; those of a film stay in their order.
    new_films : ndarray of int64
        The index of each clip's film among `films`.
    """
    new_number = {film: number for number, film in enumerate(films)}
    clips = np.flatnonzero(np.isin(film_of_clip, films))
    new_films = np.array([new_number[film] for film in film_of_clip[clips].tolist()], np.int64)
    order = np.argsort(new_films, kind="stable")
    return clips[order], new_films[order]


def recognise(card: Card, training: TrainingFilms, stores: Sequence[Store]) -> Recognition:
    """Find the films and clips of some stores that a model was trained on.

    Parameters
    ----------
    card : Card
        The model's card.
    training : TrainingFilms
        What the model's file holds of the clips trained on.
    stores : sequence of Store
    """
    movies: dict[str, None] = {}  # an ordered set
    for store in stores:
        movies.update(dict.fromkeys(store.table.movies))
    movies.pop("", None)  # of clips without a film
    trained_rows = [_collect_trained_rows(training, modality) for modality in range(training.rows.shape[1])]
    stored_rows = [_collect_stored_rows(reads, stores) for reads in card.inputs]
    pictures, no_pictures = _recognise_by_pictures(card, training, stores)
    # A film may be recognised in several ways. Later ones replace earlier ones, so features, which are the
    # most reliable, come last.
    known = _recognise_by_name(card, movies)
    known |= pictures
    known |= _recognise_by_features(card, trained_rows, stored_rows)
    films = {movie: known[movie] for movie in movies if movie in known}
    clips = _find_trained_clips(trained_rows, stored_rows, films)
    return Recognition(films, clips, no_pictures)


def _recognise_by_name(card: Card, movies: Mapping[str, None]) -> dict[str, KnownFilm]:
    """Recognise films by their names, also in another spelling.

    The result maps names of films in the stores to the films that were trained on.
    """
    trained_as = {movie: movie for movie in card.movies}
    other_spellings = same_films([*card.movies, *movies])
    trained_as |= {movie: trained for movie, trained in other_spellings if trained in card.movies}
    known = {}
    for movie in movies:
        if movie in trained_as:
            known[movie] = KnownFilm(movie, trained_as[movie], "name", 1.0)
    return known


# --- by features
# ---------------------------------------------------------------------------
@dataclass(frozen=True, eq=False, slots=True)
class _StoredRows:
    """The rows of stores that a model reads in one modality.

    Attributes
    ----------
    clip_ids, movies : list of str
        Clip and film of each of N rows; the film may be "".
    n_words : ndarray of int, shape [N]
        Words of each row's text; 0 of rows that are of no text.
    digests : ndarray of bytes, shape [N]
        The beginning of each row's digest.
    """

    clip_ids: list[str]
    movies: list[str]
    n_words: NDArray[np.int64]
    digests: NDArray[np.bytes_]

    def with_digests(self, digests: Collection[bytes]) -> "_StoredRows":
        """Select the rows whose digest is among the given ones."""
        rows = np.flatnonzero(np.isin(self.digests, np.array(list(digests), DIGEST)))
        return _StoredRows(
            clip_ids=[self.clip_ids[row] for row in rows.tolist()],
            movies=[self.movies[row] for row in rows.tolist()],
            n_words=self.n_words[rows],
            digests=self.digests[rows],
        )

    def films_and_digests(self) -> Iterator[tuple[str, bytes]]:
        """Yield the film and the digest of each row, without rows that have no film."""
        for movie, digest in zip(self.movies, self.digests.tolist(), strict=True):
            if movie:
                # numpy strips zero bytes from the end of byte strings.
                yield movie, digest.ljust(DIGEST_BYTES, b"\0")

    def count_different_rows(self) -> dict[str, int]:
        """Count the different rows of each film, by their digests: film -> number.

        Rows are sorted, as stores may have millions of them.
        """
        number_of: dict[str, int] = {}
        film = np.empty(len(self.movies), np.int32)
        for row, movie in enumerate(self.movies):
            film[row] = number_of.setdefault(movie, len(number_of))
        has_digest = self.digests != NO_DIGEST
        film = film[has_digest]
        digests = self.digests[has_digest]
        order = np.lexsort((digests, film))
        film = film[order]
        digests = digests[order]
        # Equal rows of a film follow each other now: only the first of them counts.
        is_first = np.ones(len(film), np.bool_)
        is_first[1:] = (film[1:] != film[:-1]) | (digests[1:] != digests[:-1])
        counts = np.bincount(film[is_first], minlength=len(number_of)).tolist()
        return dict(zip(number_of, counts, strict=True))


def _digests_of(data: Dataset, clip_ids: Sequence[str]) -> NDArray[np.uint8]:
    """Return the first 16 bytes of the digest of each clip's row, [N, 16], in the array that a model reads.

    They are zeros for clips that have no row in the array.
    """
    if data.group is None:
        raise ModelError("these features are of no store, so that no row has a digest")
    digest_of = dict(zip(data.group.clip_ids, data.group.digests(data.features), strict=True))
    n_digits = 2 * DIGEST_BYTES  # two hexadecimal digits a byte
    beginnings = []
    for clip_id in clip_ids:
        beginning = digest_of.get(clip_id, "")[:n_digits]
        beginnings.append(beginning or "0" * n_digits)
    return np.frombuffer(bytes.fromhex("".join(beginnings)), np.uint8).reshape(-1, DIGEST_BYTES)


def _collect_stored_rows(reads: Input, stores: Sequence[Store]) -> _StoredRows:
    """Collect the digests of all rows of some stores, in the array that is one input of a model.

    Stores without that array are skipped.
    """
    array_name = f"{reads['backbone']}/{reads['features']}"
    clip_ids: list[str] = []
    movies: list[str] = []
    n_words = [np.empty(0, np.int64)]
    digests = [np.empty(0, DIGEST)]
    for store in stores:
        table = store.table
        if array_name not in table.digests:
            continue
        clip_ids += table.clip_ids
        movies += table.movies
        n_words.append(table.n_words)
        whole_digests = table.digests[array_name].view(np.uint8).reshape(len(table), -1)
        beginnings = np.ascontiguousarray(whole_digests[:, :DIGEST_BYTES])
        digests.append(beginnings.view(DIGEST).ravel())
    return _StoredRows(clip_ids, movies, np.concatenate(n_words), np.concatenate(digests))


def _films_of_rows(training: TrainingFilms, modality: int) -> dict[bytes, set[int]]:
    """Map each digest of a modality to the numbers of the films that have a row with it."""
    films_of: dict[bytes, set[int]] = {}
    for row, film in zip(training.rows[:, modality], training.row_films.tolist(), strict=True):
        has_modality = row.any()
        if has_modality:
            films_of.setdefault(row.tobytes(), set()).add(film)
    return films_of


def _count_rows(films_of: Mapping[bytes, set[int]]) -> Counter[int]:
    """Count the different rows of each film, given the films of each digest: film -> number."""
    n_rows = Counter[int]()
    for films in films_of.values():
        n_rows.update(films)
    return n_rows


@dataclass(frozen=True, slots=True)
class _TrainedRows:
    """The rows of a modality that a model was trained on.

    Attributes
    ----------
    films_of : dict of bytes to set of int
        Digest of a row -> the films that have it. Rows that are in many films (`COMMON_FILMS`) are left out.
    n_rows : Counter of int
        Film -> how many different rows it has, including those that are in many films.
    least_share : float
        A film must have more than this share of its rows in common with a film trained on.
    """

    films_of: dict[bytes, set[int]]
    n_rows: Counter[int]
    least_share: float


def _collect_trained_rows(training: TrainingFilms, modality: int) -> _TrainedRows:
    """Collect a modality's training rows, and the share of common rows from which on a film is recognised.

    If features take few values, different films have equal rows too. The share is therefore half way between
    1 and the largest share of rows that two different training films have in common. Rows that are in many
    training films are left out, and training films that are copies of each other are not compared.
    """
    films_of = _films_of_rows(training, modality)
    n_rows = _count_rows(films_of)
    most_films = max(COMMON_FILMS - 1, int(COMMON_SHARE * len(n_rows)))
    distinctive = {digest: films for digest, films in films_of.items() if len(films) <= most_films}
    largest_by_chance = 0.0
    for _, _, share in _shares_of_pairs(distinctive, n_rows):
        is_copy = share >= COPY_SHARE
        if not is_copy:
            largest_by_chance = max(largest_by_chance, share)
    least_share = HALF + HALF * largest_by_chance
    return _TrainedRows(distinctive, n_rows, least_share)


def _shares_of_pairs(
    films_of: Mapping[bytes, set[int]], n_rows: Mapping[int, int]
) -> list[tuple[int, int, float]]:
    """List the pairs of films that have rows in common, with the share of common rows.

    Parameters
    ----------
    films_of : mapping of bytes to set of int
        Digest -> the films that have such a row.
    n_rows : mapping of int to int
        Film -> how many different rows it has.

    Returns
    -------
    list of (film, other, share)
        The share is that of common rows among the rows of the film that has fewer.
    """
    n_common = Counter[tuple[int, int]]()
    for films in films_of.values():
        n_common.update(combinations(sorted(films), 2))
    pairs = []
    for (film, other), n_shared in sorted(n_common.items()):
        pairs.append((film, other, n_shared / min(n_rows[film], n_rows[other])))
    return pairs


def _recognise_by_features(
    card: Card, trained_rows: Sequence[_TrainedRows], stored_rows: Sequence[_StoredRows]
) -> dict[str, KnownFilm]:
    """Recognise films whose rows equal rows that were trained on.

    A film that resembles several films trained on is taken for the one with the largest share of equal rows.

    Parameters
    ----------
    card : Card
    trained_rows : sequence of _TrainedRows
        For each modality, the rows trained on.
    stored_rows : sequence of _StoredRows
        For each modality, the rows of the stores.
    """
    known: dict[str, KnownFilm] = {}
    for trained, stored in zip(trained_rows, stored_rows, strict=True):
        equal_rows: dict[str, set[bytes]] = {}
        for movie, digest in stored.with_digests(trained.films_of).films_and_digests():
            equal_rows.setdefault(movie, set()).add(digest)
        if not equal_rows:
            continue
        n_different = stored.count_different_rows()
        for movie, digests in equal_rows.items():
            n_common = _count_rows({digest: trained.films_of[digest] for digest in digests})
            for film, n_shared in n_common.items():
                share = n_shared / min(n_different[movie], trained.n_rows[film])
                best_share = known[movie].share if movie in known else 0.0
                if share > max(trained.least_share, best_share):
                    known[movie] = KnownFilm(movie, card.movies[film], "features", share)
    return known


def _find_trained_clips(
    trained_rows: Sequence[_TrainedRows],
    stored_rows: Sequence[_StoredRows],
    known: Mapping[str, KnownFilm],
) -> frozenset[str]:
    """Find clips that were trained on although their film is not recognised as a whole.

    A clip counts if its row equals a training row, unless that may be a coincidence: its text must be long,
    or at least `LEAST_ROWS` different rows of its film must equal training rows. More rows are required if
    different training films have rows in common.

    Parameters
    ----------
    trained_rows : sequence of _TrainedRows
        For each modality, the rows trained on.
    stored_rows : sequence of _StoredRows
        For each modality, the rows of the stores.
    known : mapping of str to KnownFilm
        The films that are recognised.

    Returns
    -------
    frozenset of str
        Ids of the clips.
    """
    clip_ids: set[str] = set()
    for trained, stored in zip(trained_rows, stored_rows, strict=True):
        equal = stored.with_digests(trained.films_of)
        n_coincidences = sum(len(films) > 1 for films in trained.films_of.values())
        least_rows = LEAST_ROWS + ROWS_FOR_EACH_COINCIDENCE * n_coincidences
        different_rows = {
            (movie, digest) for movie, digest in equal.films_and_digests() if movie not in known
        }
        n_rows = Counter(movie for movie, _ in different_rows)
        for clip_id, movie, n_words in zip(equal.clip_ids, equal.movies, equal.n_words.tolist(), strict=True):
            if n_words >= LEAST_WORDS or n_rows[movie] >= least_rows:
                clip_ids.add(clip_id)
    return frozenset(clip_ids)


def films_of_one_content(data: Dataset) -> list[tuple[str, str, float]]:
    """List pairs of a dataset's films that have more than half of their rows in common, with that share.

    Such films are probably the same under two names.
    """
    if data.parts:
        return films_of_one_content(data.parts[0])
    if data.group is None:
        return []
    training = TrainingFilms.of_clips(replace(data, signatures=None), np.arange(len(data)))
    films_of = _films_of_rows(training, modality=0)
    names = np.unique(data.movies)  # films are numbered in sorted order
    pairs = []
    for film, other, share in _shares_of_pairs(films_of, _count_rows(films_of)):
        if share > HALF:
            pairs.append((str(names[film]), str(names[other]), share))
    return pairs


# --- by pictures
# ---------------------------------------------------------------------------
def _mean_pictures(group: Group, clip_ids: Sequence[str]) -> Iterator[tuple[str, NDArray[np.float32]]]:
    """Yield the ids of clips whose pictures are not blank, each with its mean frame per view, [views, 264].

    `group` holds the signatures of pictures; only clips among `clip_ids` are read.
    """
    wanted = set(clip_ids)
    for start, block in group.blocks("frames"):
        for row, frames in enumerate(block, start=start):
            clip_id = group.clip_ids[row]
            if clip_id not in wanted or not group.usable[row]:
                continue
            signs = signs_of(frames, f"frames of {SIGNATURE} of clip {clip_id}")
            # The last column marks frames that are not blank; the others are the views, side by side.
            is_shown = signs[:, -1] != 0
            if np.count_nonzero(is_shown) >= LEAST_FRAMES:
                views = signs[:, :-1].reshape(len(signs), len(VIEWS), -1)
                yield clip_id, mean_frames(views, is_shown)


def _kept_views(means: NDArray[np.float32]) -> NDArray[np.float32]:
    """Select from all views of a clip [views, 264] those that a model file holds, [2, 264]."""
    return means[[VIEWS.index(view) for view in KEPT_VIEWS]]


def _recognise_by_pictures(
    card: Card, training: TrainingFilms, stores: Sequence[Store]
) -> tuple[dict[str, KnownFilm], str]:
    """Recognise films whose pictures are similar to pictures that were trained on.

    Returns
    -------
    known : dict of str to KnownFilm
    no_pictures : str
        The reason why no pictures could be compared; "" if some were.
    """
    if not len(training.pictures):
        return {}, "the model's file has no pictures: its store had no signature"
    # Stores on a server are skipped: a signature is 40 kB per clip.
    with_pictures = [store for store in stores if has_signatures(store) and "://" not in store.where]
    if not with_pictures:
        names = ", ".join(store.name for store in stores)
        return {}, f"no signature is in {names}"
    means_of_film: dict[str, list[NDArray[np.float32]]] = {}
    for store in with_pictures:
        movie_of = dict(zip(store.table.clip_ids, store.table.movies, strict=True))
        for clip_id, means in _mean_pictures(store[SIGNATURE], list(movie_of)):
            means_of_film.setdefault(movie_of[clip_id], []).append(means)
    known: dict[str, KnownFilm] = {}
    for movie, clips in means_of_film.items():
        film, share = _most_similar_film(np.stack(clips), training)
        if share > HALF:
            known[movie] = KnownFilm(movie, card.movies[film], "pictures", share)
    return known, ""


def _most_similar_film(means: NDArray[np.float32], training: TrainingFilms) -> tuple[int, float]:
    """Find the film trained on that has the largest share of clips in common with a film.

    Parameters
    ----------
    means : ndarray, shape [n, views, 264]
        The mean frames of the film's clips.
    training : TrainingFilms

    Returns
    -------
    film : int
        Number of the film trained on.
    share : float
        Share of clips in common; 0 if there are none.
    """
    best_film = 0
    best_share = 0.0
    for film in np.unique(training.picture_films).tolist():
        sketches_of_film = training.pictures[training.picture_films == film]
        share = _share_of_same_clips(means, sketches_of_film)
        if share > best_share:
            best_film = film
            best_share = share
    return best_film, best_share


def _share_of_same_clips(means: NDArray[np.float32], trained: NDArray[np.uint8]) -> float:
    """Compute the share of clips that two films have in common, counted in the film with fewer clips.

    Parameters
    ----------
    means : ndarray, shape [n, views, 264]
        The clips of one film.
    trained : ndarray of uint8, shape [m, 2, 33]
        Sketches of the clips of a film trained on.
    """
    n_fewer = min(len(means), len(trained))
    least_cosine = LEAST_COSINE if n_fewer >= FEW_CLIPS else LEAST_COSINE_OF_FEW_CLIPS
    # Of each clip of one film, whether the other film has it.
    new_clip_is_in_trained = np.zeros(len(means), bool)
    trained_clip_is_in_new = np.zeros(len(trained), bool)
    for first in range(0, len(means), N_CLIPS_AT_ONCE):
        block = slice(first, first + N_CLIPS_AT_ONCE)
        is_same = _picture_similarity(means[block], trained) >= least_cosine
        new_clip_is_in_trained[block] = is_same.any(axis=1)
        trained_clip_is_in_new |= is_same.any(axis=0)
    if len(means) <= len(trained):
        return float(new_clip_is_in_trained.mean())
    return float(trained_clip_is_in_new.mean())


def _picture_similarity(means: NDArray[np.float32], trained: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Compute the similarity of each of n clips with each of m clips, [n, m].

    It is the largest over the pairs of views in `COMPARED_VIEWS`.

    Parameters
    ----------
    means : ndarray, shape [n, views, 264]
    trained : ndarray of uint8, shape [m, 2, 33]
        Sketches of the `KEPT_VIEWS`.
    """
    similarities = []
    for view, trained_view in COMPARED_VIEWS:
        new_clips = means[:, VIEWS.index(view)]
        trained_clips = trained[:, KEPT_VIEWS.index(trained_view)]
        similarities.append(sketch_likeness(new_clips, trained_clips))
    largest: NDArray[np.float32] = np.max(similarities, axis=0)
    return largest
