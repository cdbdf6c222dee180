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
    MIN_FRAMES,
    SKETCH_BYTES,
    mean_frames,
    sketch_likeness,
    sketches,
)
from obygaze_features.store import Group, Store
from obygaze_features.text import is_address
from obygaze_models.dataset.dataset import Dataset
from obygaze_models.errors import ModelError
from obygaze_models.persistence.card import DIGEST_BYTES, Card, Input

KEPT_VIEWS = ("picture", "inner")
"""Views of a clip's signature that a model file keeps: the whole picture, and the picture without a twentieth
at each side."""

COMPARED_VIEWS = (("picture", "picture"), ("inner", "picture"), ("picture", "inner"))
"""Pairs of views that are compared, of a new clip and of a training clip: either may have lost its sides."""

MIN_COSINE = 0.5
"""Two clips count as the same if the cosine of their sketches is at least this.

The number is measured (`benchmarks/planted known_films`)."""

MIN_COSINE_OF_FEW_CLIPS = 0.7
"""Like `MIN_COSINE`, if one of the two films has fewer than `FEW_CLIPS` clips.

So few clips may be similar by chance."""

FEW_CLIPS = 3
"""For films with fewer clips than this, `MIN_COSINE_OF_FEW_CLIPS` is used."""

COMMON_FILMS, COMMON_SHARE = 4, 0.25
"""A row that is in at least this number of training films, and in more than this share of them, is ignored.

It does not identify a film: the row of a black clip, for instance."""

SAME_FILM_SHARE = 0.5
"""A film is recognised if more than this share of its clips is the same."""

COPY_SHARE = 0.9
"""Training films that have at least this share of rows in common count as one film under two names."""

MIN_ROWS = 3
"""Number of different rows of a film that must equal training rows, for its clips to count as trained on."""

ROWS_FOR_EACH_COINCIDENCE = 2
"""By how much `MIN_ROWS` is raised for each row that two different training films have in common."""

MIN_WORDS = 8
"""A text with at least this many words is recognised by itself. Shorter texts occur in many films."""

N_CLIPS_AT_ONCE = 2048
"""Clips whose pictures are compared at a time."""

DIGEST = f"S{DIGEST_BYTES}"
"""Data type of arrays of digests: byte strings. numpy strips zero bytes from the end of their values, which
does not matter for comparisons, as all digests have this length."""

NO_DIGEST = bytes(DIGEST_BYTES)
"""Stands for the digest of a row without features."""

NEXT_STORE = "(for the next store: --backbone signature beside the others)"
"""What to type so that copies of films are recognised by their pictures."""

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
    why_no_pictures : str
        The reason if pictures of some film were not compared, so that it is not recognised if it was encoded
        anew; else "".
    """

    films: Mapping[str, KnownFilm] = field(default_factory=dict)
    clips: frozenset[str] = frozenset()
    why_no_pictures: str = ""

    def knows(self, clip_id: str, movie: str) -> bool:
        """Tell whether a clip is of a film that the model was trained on, or was trained on itself."""
        return movie in self.films or clip_id in self.clips


@dataclass(frozen=True, eq=False)
class TrainingFilms:
    """What a model file keeps of the clips that it was trained on.

    Attributes
    ----------
    digests : ndarray of uint8, shape [N, M, 16]
        Beginning of the SHA-256 of each row in each of M modalities; zeros where a clip lacks the modality.
    films_of_digests : ndarray of int64, shape [N]
        Index of each row's film among the card's movies.
    pictures : ndarray of uint8, shape [P, 2, 33]
        Sketches of the clips that have a signature and show something, in the `KEPT_VIEWS`; P may be 0.
    picture_films : ndarray of int64, shape [P]
        Index of each sketch's film among the card's movies.
    """

    digests: NDArray[np.uint8]
    films_of_digests: NDArray[np.int64]
    pictures: NDArray[np.uint8]
    picture_films: NDArray[np.int64]

    @classmethod
    def of_clips(cls, data: Dataset, rows: NDArray[np.intp]) -> "TrainingFilms":
        """Collect digests of features, and sketches of pictures, of the clips in some rows of a dataset.

        Films are numbered in the order of their names. Only clips that have stored pictures have a sketch.
        """
        clip_ids = data.clip_ids[rows].tolist()
        _, film_of_clip = np.unique(data.movies[rows], return_inverse=True)
        modalities = data.parts or (data,)  # a dataset of several modalities has a part for each
        digests_of_modalities = [_digests_of(modality, clip_ids) for modality in modalities]

        # Sketches have film numbers of their own, as not every clip has a sketch.
        sketch_of_clip = _sketch_clips(modalities, clip_ids)
        sketches_of_clips = []
        film_of_sketch = []
        for clip_id, film in zip(clip_ids, film_of_clip.tolist(), strict=True):
            if clip_id in sketch_of_clip:
                sketches_of_clips.append(sketch_of_clip[clip_id])
                film_of_sketch.append(film)

        return cls(
            digests=np.stack(digests_of_modalities, axis=1),  # [N, M, 16]
            films_of_digests=film_of_clip.astype(np.int64),
            # The shape must be stated for the case that there are no sketches.
            pictures=np.array(sketches_of_clips, np.uint8).reshape(-1, len(KEPT_VIEWS), SKETCH_BYTES),
            picture_films=np.array(film_of_sketch, np.int64),
        )

    def of_films(self, films: Sequence[int]) -> "TrainingFilms":
        """Select the clips of some films, given their numbers, and renumber the films in the given order.

        With `films` 7 and 2, film 7 becomes film 0 and film 2 becomes film 1. Digests of features and
        sketches of pictures are selected each by its own list of films, as not all clips have a sketch.
        """
        rows_of_digests, films_of_digests = _clips_of_films(self.films_of_digests, films)
        rows_of_pictures, picture_films = _clips_of_films(self.picture_films, films)
        return TrainingFilms(
            digests=self.digests[rows_of_digests],
            films_of_digests=films_of_digests,
            pictures=self.pictures[rows_of_pictures],
            picture_films=picture_films,
        )

    @classmethod
    def concatenated(cls, several: Sequence["TrainingFilms"], n_films: Sequence[int]) -> "TrainingFilms":
        """Concatenate what files of several labs keep of their training clips.

        Parameters
        ----------
        several : sequence of TrainingFilms
            One for each lab.
        n_films : sequence of int
            Number of films of each lab. The films of a lab are numbered after those of the labs before.
        """
        films_of_digests = []
        picture_films = []
        n_films_before = 0
        for training, n_films_of_lab in zip(several, n_films, strict=True):
            films_of_digests.append(training.films_of_digests + n_films_before)
            picture_films.append(training.picture_films + n_films_before)
            n_films_before += n_films_of_lab
        return cls(
            digests=np.concatenate([training.digests for training in several]),
            films_of_digests=np.concatenate(films_of_digests),
            pictures=np.concatenate([training.pictures for training in several]),
            picture_films=np.concatenate(picture_films),
        )

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays that are stored in a model file, by name."""
        arrays: dict[str, NDArray[Any]] = {
            "trained_rows": self.digests,
            "trained_row_films": self.films_of_digests,
        }
        if len(self.pictures):
            arrays |= {"trained_pictures": self.pictures, "trained_picture_films": self.picture_films}
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> "TrainingFilms":
        """Read the arrays that `to_arrays` returned."""
        no_pictures = np.empty((0, len(KEPT_VIEWS), SKETCH_BYTES), np.uint8)
        no_films = np.empty(0, np.int64)
        return cls(
            digests=arrays["trained_rows"],
            films_of_digests=arrays["trained_row_films"],
            pictures=arrays.get("trained_pictures", no_pictures),
            picture_films=arrays.get("trained_picture_films", no_films),
        )


def _sketch_clips(modalities: Sequence[Dataset], clip_ids: Sequence[str]) -> dict[str, NDArray[np.uint8]]:
    """Sketch the pictures of the clips that have a signature and are not blank: clip id -> sketch [2, 33].

    If the stores of several modalities have a clip's signature, the first one is used.
    """
    sketch_of_clip: dict[str, NDArray[np.uint8]] = {}
    for modality in modalities:
        if modality.signatures is None:
            continue
        for clip_id, mean_pictures in _mean_pictures(modality.signatures, clip_ids):
            if clip_id not in sketch_of_clip:
                sketch_of_clip[clip_id] = sketches(_kept_views(mean_pictures))
    return sketch_of_clip


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
    # For each modality that the model reads, the rows trained on and the rows of the stores.
    n_modalities = training.digests.shape[1]
    trained_rows = [_collect_trained_rows(training, modality) for modality in range(n_modalities)]
    stored_rows = [_collect_stored_rows(reads, stores) for reads in card.inputs]

    movies = _movies_of_stores(stores)
    by_name = _recognise_by_name(card, movies)
    by_pictures, why_no_pictures = _recognise_by_pictures(card, training, stores)
    by_features = _recognise_by_features(card, trained_rows, stored_rows)

    # A film that is recognised in several ways is listed by the most reliable one.
    films = {}
    for movie in movies:
        for known in (by_features, by_pictures, by_name):
            if movie in known:
                films[movie] = known[movie]
                break

    # Single clips of the other films may have been trained on, too.
    clips = _find_trained_clips(trained_rows, stored_rows, films)
    return Recognition(films, clips, why_no_pictures)


def _movies_of_stores(stores: Sequence[Store]) -> list[str]:
    """List the films of some stores, each once, in the order of the stores and their rows."""
    movies_of_clips: list[str] = []
    for store in stores:
        movies_of_clips += store.table.movies
    movies = dict.fromkeys(movies_of_clips)
    return [movie for movie in movies if movie]  # a clip of an unknown film has ""


def _recognise_by_name(card: Card, movies: Sequence[str]) -> dict[str, KnownFilm]:
    """Recognise films that a model was trained on by their names, also if these are spelt differently.

    The names on the model's card are compared with `movies`, the films of the stores. The result maps each
    name in the stores that is recognised to the film.
    """
    # Name of a training film, as on the card or spelt differently -> its name on the card.
    name_on_card = {movie: movie for movie in card.movies}
    # Pairs of a name and the first one in the list that is the same but for the spelling. The card's names
    # come first in the list, so that the first one is the card's if the film is there.
    for name, first_spelling in same_films([*card.movies, *movies]):
        is_training_film = first_spelling in card.movies
        if is_training_film:
            name_on_card[name] = first_spelling
    known = {}
    for movie in movies:
        if movie in name_on_card:
            # A name stands for the whole film: a share of 1.
            known[movie] = KnownFilm(movie, trained_as=name_on_card[movie], by="name", share=1.0)
    return known


# --- by features
# ---------------------------------------------------------------------------
@dataclass(frozen=True, eq=False, slots=True)
class _StoredRows:
    """The rows of stores that a model reads in one modality.

    Attributes
    ----------
    clip_ids, movies : list of str
        Clip and film of each of N rows; the film is "" if it is not known.
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
        """Select the rows whose digest is among the given ones, such as those of training rows."""
        rows = np.flatnonzero(np.isin(self.digests, np.array(list(digests), DIGEST)))
        return _StoredRows(
            clip_ids=[self.clip_ids[row] for row in rows.tolist()],
            movies=[self.movies[row] for row in rows.tolist()],
            n_words=self.n_words[rows],
            digests=self.digests[rows],
        )

    def digests_by_movie(self) -> dict[str, set[bytes]]:
        """Collect the different digests of each film's rows; rows of unknown films are left out."""
        digests_of_movie: dict[str, set[bytes]] = {}
        for movie, digest in zip(self.movies, self.digests.tolist(), strict=True):
            if not movie:
                continue
            # numpy strips zero bytes from the end of byte strings: they are put back.
            whole_digest = digest.ljust(DIGEST_BYTES, b"\0")
            digests_of_movie.setdefault(movie, set()).add(whole_digest)
        return digests_of_movie

    def count_different_rows(self) -> dict[str, int]:
        """Count the different rows of each film, by their digests: film -> number.

        Rows without features, whose digest is `NO_DIGEST`, do not count.
        """
        # Films are numbered in the order in which they first appear.
        number_of_movie: dict[str, int] = {}
        film = np.empty(len(self.movies), np.int32)
        for row, movie in enumerate(self.movies):
            film[row] = number_of_movie.setdefault(movie, len(number_of_movie))
        has_digest = self.digests != NO_DIGEST
        counts = _count_different_values(film[has_digest], self.digests[has_digest], len(number_of_movie))
        return dict(zip(number_of_movie, counts, strict=True))


def _count_different_values(
    groups: NDArray[np.int32], values: NDArray[np.bytes_], n_groups: int
) -> list[int]:
    """Count the different values of each group, given the group of each value, 0 to `n_groups` - 1.

    The values are sorted: there may be millions of them, which would take more time and memory in sets.
    """
    order = np.lexsort((values, groups))  # by group, and by value within each group
    groups = groups[order]
    values = values[order]
    # Equal values of a group follow each other now. The first of them counts.
    is_first = np.ones(len(groups), np.bool_)
    is_first[1:] = (groups[1:] != groups[:-1]) | (values[1:] != values[:-1])
    counts: list[int] = np.bincount(groups[is_first], minlength=n_groups).tolist()
    return counts


def _digests_of(data: Dataset, clip_ids: Sequence[str]) -> NDArray[np.uint8]:
    """Return the first `DIGEST_BYTES` (16) bytes of the digest of each clip's row, [N, 16].

    The row is that of the array that a model reads. Clips without features there get zeros.

    Raises
    ------
    ModelError
        The features are of no store.
    """
    if data.group is None:
        raise ModelError("these features are of no store, so that no row has a digest")
    # Hexadecimal digests, two digits a byte; empty for clips without features.
    digest_of_clip = dict(zip(data.group.clip_ids, data.group.digests(data.features), strict=True))

    # All are joined to one text, so that one conversion makes bytes of it.
    n_digits = 2 * DIGEST_BYTES
    no_digest = "0" * n_digits
    hex_digests = []
    for clip_id in clip_ids:
        # A clip that is not in the group has no features there, either.
        digest = digest_of_clip.get(clip_id, "")
        hex_digests.append(digest[:n_digits] if digest else no_digest)
    digest_bytes = bytes.fromhex("".join(hex_digests))
    return np.frombuffer(digest_bytes, np.uint8).reshape(-1, DIGEST_BYTES)


def _collect_stored_rows(reads: Input, stores: Sequence[Store]) -> _StoredRows:
    """Collect the rows of some stores that one input of a model reads: clips, films, words and digests.

    A row whose digest is that of a training row is probably of the same film. The number of words of a text
    goes with it, as two films may well have the same short text. Stores without the input's array are
    skipped.
    """
    array_name = f"{reads['backbone']}/{reads['features']}"
    clip_ids: list[str] = []
    movies: list[str] = []
    # The first arrays are empty, so that there is one to concatenate if no store has the array.
    n_words = [np.empty(0, np.int64)]
    digests = [np.empty(0, DIGEST)]
    for store in stores:
        table = store.table
        if array_name not in table.digests:
            continue
        clip_ids += table.clip_ids
        movies += table.movies
        n_words.append(table.n_words)
        digests.append(_shorten_digests(table.digests[array_name]))
    return _StoredRows(clip_ids, movies, np.concatenate(n_words), np.concatenate(digests))


def _shorten_digests(digests: NDArray[Any]) -> NDArray[np.bytes_]:
    """Return the first `DIGEST_BYTES` bytes of each of N digests, as byte strings [N]."""
    # Seen as single bytes, [N, bytes of a digest].
    digest_bytes = digests.view(np.uint8).reshape(len(digests), -1)
    first_bytes = np.ascontiguousarray(digest_bytes[:, :DIGEST_BYTES])
    shortened: NDArray[np.bytes_] = first_bytes.view(DIGEST).ravel()
    return shortened


FilmsOfDigest = Mapping[bytes, set[int]]
"""Digest of a row -> numbers of the films that have such a row."""


def _films_of_digests(training: TrainingFilms, modality: int) -> dict[bytes, set[int]]:
    """Map the digest of each training row of a modality to the films that have such a row.

    `modality` is the index of the modality.
    """
    films_of_digest: dict[bytes, set[int]] = {}
    for digest, film in zip(training.digests[:, modality], training.films_of_digests.tolist(), strict=True):
        # The digest is all zeros for a clip that lacks the modality.
        has_modality = digest.any()
        if has_modality:
            films_of_digest.setdefault(digest.tobytes(), set()).add(film)
    return films_of_digest


def _count_rows(films_of_digest: FilmsOfDigest) -> Counter[int]:
    """Count the different rows of each film: film -> number."""
    n_rows = Counter[int]()
    for films in films_of_digest.values():
        n_rows.update(films)
    return n_rows


@dataclass(frozen=True, slots=True)
class _TrainedRows:
    """The rows of a modality that a model was trained on.

    Attributes
    ----------
    films_of_digest : dict of bytes to set of int
        Digest of a row -> the films that have it. Rows that are in many films (`COMMON_FILMS`) are left out.
    n_rows : Counter of int
        Film -> how many different rows it has, including those that are in many films.
    min_share : float
        A film must have more than this share of its rows in common with a film trained on.
    """

    films_of_digest: dict[bytes, set[int]]
    n_rows: Counter[int]
    min_share: float


def _collect_trained_rows(training: TrainingFilms, modality: int) -> _TrainedRows:
    """Collect the training rows of a modality, given its index, without those that are in many films.

    Such rows do not identify a film: the row of a black clip, for instance. They are in at least
    `COMMON_FILMS` (4) films, and in more than `COMMON_SHARE` (a quarter) of all.
    """
    all_films_of_digest = _films_of_digests(training, modality)
    n_rows_of_film = _count_rows(all_films_of_digest)
    n_films = len(n_rows_of_film)
    max_films_of_row = max(COMMON_FILMS - 1, int(COMMON_SHARE * n_films))
    films_of_digest = {
        digest: films for digest, films in all_films_of_digest.items() if len(films) <= max_films_of_row
    }
    min_share = _least_share_of_rows(films_of_digest, n_rows_of_film)
    return _TrainedRows(films_of_digest, n_rows_of_film, min_share)


def _least_share_of_rows(films_of_digest: FilmsOfDigest, n_rows_of_film: Mapping[int, int]) -> float:
    """Return the share of common rows above which a film is recognised as a training film.

    If features take few values, different films have equal rows by chance. The share therefore lies half way
    between 1 and the largest share that two different training films have in common: if that is 20 %, it is
    60 %. Training films with nearly all rows in common (`COPY_SHARE`) are copies, not different films.
    """
    largest_share_by_chance = 0.0
    for _, _, share in _shares_of_pairs(films_of_digest, n_rows_of_film):
        are_copies = share >= COPY_SHARE
        if not are_copies:
            largest_share_by_chance = max(largest_share_by_chance, share)
    return 0.5 + 0.5 * largest_share_by_chance


def _shares_of_pairs(
    films_of_digest: FilmsOfDigest, n_rows: Mapping[int, int]
) -> list[tuple[int, int, float]]:
    """List the pairs of films that have rows in common, with the share of common rows.

    `n_rows` maps a film to its number of different rows.

    Returns
    -------
    list of (film, other, share)
        The share is that of common rows among the rows of the film that has fewer.
    """
    n_common_rows = Counter[tuple[int, int]]()
    for films in films_of_digest.values():
        # All films that have the row have it in common in pairs.
        n_common_rows.update(combinations(sorted(films), 2))

    pairs = []
    for (film, other), n_common in sorted(n_common_rows.items()):
        n_rows_of_smaller = min(n_rows[film], n_rows[other])
        pairs.append((film, other, n_common / n_rows_of_smaller))
    return pairs


def _recognise_by_features(
    card: Card, trained_rows: Sequence[_TrainedRows], stored_rows: Sequence[_StoredRows]
) -> dict[str, KnownFilm]:
    """Recognise films whose rows equal rows that were trained on: name of a film in the stores -> the film.

    A film that resembles several films trained on is taken for the one with the largest share of equal rows,
    over all modalities.

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
        for movie, film, share in _shares_of_equal_rows(trained, stored):
            best_share = known[movie].share if movie in known else 0.0
            if share > trained.min_share and share > best_share:
                known[movie] = KnownFilm(movie, trained_as=card.movies[film], by="features", share=share)
    return known


def _shares_of_equal_rows(trained: _TrainedRows, stored: _StoredRows) -> Iterator[tuple[str, int, float]]:
    """Yield the pairs of a stored film and a film trained on that have equal rows, with their share.

    Rows that occur several times in a film count once. The share is the number of equal rows over the number
    of rows of the film that has fewer.

    Parameters
    ----------
    trained : _TrainedRows
        The rows trained on in one modality, by digest.
    stored : _StoredRows
        The rows of the stores in the same modality.

    Yields
    ------
    movie : str
        Name of the film in the stores.
    film : int
        Number of the film trained on.
    share : float
    """
    equal_rows = stored.with_digests(trained.films_of_digest)
    equal_digests_of_movie = equal_rows.digests_by_movie()
    if not equal_digests_of_movie:
        return
    n_stored_rows = stored.count_different_rows()
    for movie, digests in equal_digests_of_movie.items():
        # Each row of the stored film that was trained on -> the films trained on that have it.
        films_of_equal_rows = {digest: trained.films_of_digest[digest] for digest in digests}
        n_equal_by_film = _count_rows(films_of_equal_rows)
        for film, n_equal in n_equal_by_film.items():
            n_rows_of_smaller = min(n_stored_rows[movie], trained.n_rows[film])
            yield movie, film, n_equal / n_rows_of_smaller


def _find_trained_clips(
    trained_rows: Sequence[_TrainedRows],
    stored_rows: Sequence[_StoredRows],
    known: Mapping[str, KnownFilm],
) -> frozenset[str]:
    """Find clips that were trained on although their film is not recognised as a whole.

    A clip counts if its row of features equals a training row, and this is hardly a coincidence. That is so
    in two cases:

    - the row is of a text of at least `MIN_WORDS` words;
    - at least `_least_equal_rows` different rows of the clip's film equal training rows.

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
        # The stored rows that equal a training row, and how many different ones there are in each film.
        equal = stored.with_digests(trained.films_of_digest)
        n_equal_rows = {movie: len(digests) for movie, digests in equal.digests_by_movie().items()}
        min_rows = _least_equal_rows(trained)
        for clip_id, movie, n_words in zip(equal.clip_ids, equal.movies, equal.n_words.tolist(), strict=True):
            if n_words >= MIN_WORDS:
                clip_ids.add(clip_id)
                continue
            # All clips of a recognised film count as trained on in any case, and need no entry of their own.
            is_of_known_film = movie in known
            has_enough_rows = n_equal_rows.get(movie, 0) >= min_rows
            if has_enough_rows and not is_of_known_film:
                clip_ids.add(clip_id)
    return frozenset(clip_ids)


def _least_equal_rows(trained: _TrainedRows) -> int:
    """Return how many different rows of a film must equal training rows for its clips to count as trained on.

    A row that two training films have in common shows that features can be equal by coincidence. The more
    such rows there are, the more equal rows of a new film may be coincidences.
    """
    rows_of_several_films = [films for films in trained.films_of_digest.values() if len(films) > 1]
    return MIN_ROWS + ROWS_FOR_EACH_COINCIDENCE * len(rows_of_several_films)


def films_with_equal_clips(data: Dataset) -> list[tuple[str, str, float]]:
    """List pairs of a dataset's films that have rows in common, with their share, the largest first.

    Films that share more than half of their rows (`SAME_FILM_SHARE`) are probably one under two names. Others
    share a recap, a trailer or an excerpt, which is then in training and in the test. A row that is in many
    films (`COMMON_FILMS`, 4), as one of a black clip may be, says nothing of two of them: films that have
    only such rows in common are not listed. In a dataset of several modalities, the rows of the first one are
    compared.

    Returns
    -------
    list of (film, other film, share)
        The share is that of common rows among the rows of the film that has fewer.
    """
    compared = data.parts[0] if data.parts else data
    if compared.group is None:
        return []
    without_pictures = replace(compared, signatures=None)  # only features are compared
    # A black or silent clip may have one number throughout, and so be equal to those of other films.
    telling_rows = np.flatnonzero(np.ptp(compared.X, axis=1) > 0)
    if not len(telling_rows):
        return []
    training = TrainingFilms.of_clips(without_pictures, telling_rows)
    only_modality = 0
    films_of_digest = _films_of_digests(training, modality=only_modality)  # row -> numbers of films with it
    names = np.unique(compared.movies[telling_rows])  # films are numbered in sorted order
    n_rows = _count_rows(films_of_digest)
    pairs_with_rare_rows = _pairs_with_rare_rows(films_of_digest)
    pairs = []
    for film, other, share in _shares_of_pairs(films_of_digest, n_rows):
        if share > SAME_FILM_SHARE or (film, other) in pairs_with_rare_rows:
            pairs.append((str(names[film]), str(names[other]), share))
    return sorted(pairs, key=lambda pair: -pair[2])


def _pairs_with_rare_rows(films_of_digest: FilmsOfDigest) -> set[tuple[int, int]]:
    """Find the pairs of films that have a row in common which is in fewer than `COMMON_FILMS` (4) films."""
    pairs = set[tuple[int, int]]()
    for films in films_of_digest.values():
        if len(films) < COMMON_FILMS:
            pairs.update(combinations(sorted(films), 2))
    return pairs


# --- by pictures
# ---------------------------------------------------------------------------
def _mean_pictures(group: Group, clip_ids: Sequence[str]) -> Iterator[tuple[str, NDArray[np.float32]]]:
    """Yield the ids of clips whose pictures are not blank, each with its mean frame per view, [views, 264].

    Clips with fewer than `MIN_FRAMES` frames that are not blank are left out: blank frames of all films are
    alike.
    A view of a frame is described by 264 numbers (`obygaze_features.same_pictures`).

    Parameters
    ----------
    group : Group
        The signatures of pictures.
    clip_ids : sequence of str
        Clips that are not among these are left out.
    """
    wanted = set(clip_ids)
    for start, block in group.blocks("frames"):
        for row, frames in enumerate(block, start=start):
            clip_id = group.clip_ids[row]
            if clip_id not in wanted or not group.usable[row]:
                continue

            # A row for each frame: its views side by side, and then a number that is 0 if the frame is blank.
            signature = signs_of(frames, f"frames of {SIGNATURE} of clip {clip_id}")
            n_frames = len(signature)
            views = signature[:, :-1].reshape(n_frames, len(VIEWS), -1)  # [frames, views, 264]
            is_not_blank = signature[:, -1] != 0
            if np.count_nonzero(is_not_blank) >= MIN_FRAMES:
                yield clip_id, mean_frames(views, is_not_blank)


def _kept_views(means: NDArray[np.float32]) -> NDArray[np.float32]:
    """Select the views that a model file holds, [2, 264], from the mean frame of a clip in all, [views, 264].

    They are the whole picture, and the picture without a twentieth at each side (`KEPT_VIEWS`).
    """
    return means[[VIEWS.index(view) for view in KEPT_VIEWS]]


def _recognise_by_pictures(
    card: Card, training: TrainingFilms, stores: Sequence[Store]
) -> tuple[dict[str, KnownFilm], str]:
    """Recognise films whose pictures are similar to pictures that were trained on.

    Returns
    -------
    known : dict of str to KnownFilm
    why_no_pictures : str
        Why the pictures of some film could not be compared; "" if those of every film were.
    """
    if not len(training.pictures):
        return {}, f"the model's file has no pictures: its store had no signature {NEXT_STORE}"
    # Signatures of stores on a server are not read: they take 40 kB per clip.
    with_signatures = [store for store in stores if has_signatures(store) and not is_address(store.where)]

    known: dict[str, KnownFilm] = {}
    for movie, mean_pictures_of_clips in _mean_pictures_of_movies(with_signatures).items():
        film, share = _most_similar_film(np.stack(mean_pictures_of_clips), training)
        if share > SAME_FILM_SHARE:
            known[movie] = KnownFilm(movie, trained_as=card.movies[film], by="pictures", share=share)
    return known, _why_not_compared(stores, with_signatures)


def _why_not_compared(stores: Sequence[Store], with_signatures: Sequence[Store]) -> str:
    """Say of which stores the pictures of some films were not compared, and why; "" if there is no such film.

    A film whose signature is in one store needs none in another, such as that of another modality.

    Parameters
    ----------
    stores : sequence of Store
        All stores of which films were to be recognised.
    with_signatures : sequence of Store
        Those whose signatures were read.
    """
    compared_movies = set(_movies_of_stores(with_signatures))
    on_server: list[str] = []
    without_signature: list[str] = []
    for store in stores:
        # A clip of an unknown film is of "", which no compared film is called.
        all_are_compared = store in with_signatures or compared_movies.issuperset(store.table.movies)
        if all_are_compared:
            continue
        (on_server if has_signatures(store) else without_signature).append(store.name)
    reasons = []
    if without_signature:
        reasons.append(f"no signature is in {', '.join(without_signature)} {NEXT_STORE}")
    if on_server:
        reasons.append(
            f"signatures are not read from a server: pull {', '.join(on_server)} (obygaze store pull)"
        )
    return "; ".join(reasons)


def _mean_pictures_of_movies(stores: Sequence[Store]) -> dict[str, list[NDArray[np.float32]]]:
    """Map each film of some stores to the mean frames of its clips, each an array [views, 264].

    The stores have signatures: 264 numbers for each view of a frame, by which pictures are recognised. Clips
    whose pictures are blank are left out.
    """
    means_of_movie: dict[str, list[NDArray[np.float32]]] = {}
    for store in stores:
        clip_ids = store.table.clip_ids
        movie_of_clip = dict(zip(clip_ids, store.table.movies, strict=True))
        for clip_id, mean_pictures in _mean_pictures(store[SIGNATURE], clip_ids):
            means_of_movie.setdefault(movie_of_clip[clip_id], []).append(mean_pictures)
    return means_of_movie


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
        Number of the film trained on; 0 if no film has clips in common.
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
    """Compute the share of the clips of the shorter film that the longer one has too.

    A film of which the other is a part so gets the share 1, however much longer one of the two is. If both
    films have as many clips, it is the share of the clips of the new film.

    Parameters
    ----------
    means : ndarray, shape [n, views, 264]
        The mean frames of the new film's clips.
    trained : ndarray of uint8, shape [m, 2, 33]
        Sketches of the clips of a film trained on.
    """
    has_few_clips = min(len(means), len(trained)) < FEW_CLIPS
    min_cosine = MIN_COSINE_OF_FEW_CLIPS if has_few_clips else MIN_COSINE

    # All clips of one film are compared with all of the other, a block at a time to save memory.
    new_clip_is_in_trained = np.zeros(len(means), bool)
    trained_clip_is_in_new = np.zeros(len(trained), bool)
    for first in range(0, len(means), N_CLIPS_AT_ONCE):
        block = slice(first, first + N_CLIPS_AT_ONCE)
        is_same = _picture_similarity(means[block], trained) >= min_cosine  # [clips of the block, m]
        new_clip_is_in_trained[block] = is_same.any(axis=1)
        trained_clip_is_in_new |= is_same.any(axis=0)

    new_film_is_shorter = len(means) <= len(trained)
    clip_is_in_longer = new_clip_is_in_trained if new_film_is_shorter else trained_clip_is_in_new
    return float(clip_is_in_longer.mean())


def _picture_similarity(means: NDArray[np.float32], trained: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Compute the similarity of each of n clips with each of m clips, [n, m].

    It is the largest cosine over the pairs of views in `COMPARED_VIEWS`: the whole pictures, and the whole
    picture of one clip with the inner picture of the other, which lacks the sides: a copy of a film may be
    cropped.

    Parameters
    ----------
    means : ndarray, shape [n, views, 264]
        Mean frames of clips, in all `VIEWS`, of 264 numbers each.
    trained : ndarray of uint8, shape [m, 2, 33]
        Sketches of clips in the `KEPT_VIEWS`: the signs of the 264 numbers, a bit each.
    """
    similarities = []
    for view, trained_view in COMPARED_VIEWS:
        new_clips = means[:, VIEWS.index(view)]
        trained_clips = trained[:, KEPT_VIEWS.index(trained_view)]
        similarities.append(sketch_likeness(new_clips, trained_clips))
    largest: NDArray[np.float32] = np.max(similarities, axis=0)
    return largest
