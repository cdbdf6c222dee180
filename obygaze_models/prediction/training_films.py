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
    why_no_pictures : str
        The reason if pictures were not compared, so that films encoded anew are not recognised; else "".
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

        Films are numbered in the order of their names.
        """
        clip_ids = data.clip_ids[rows].tolist()
        _, films = np.unique(data.movies[rows], return_inverse=True)  # [N]
        modalities = data.parts or (data,)  # a dataset of several modalities has a part for each
        digests_of_modalities = [_digests_of(modality, clip_ids) for modality in modalities]
        sketch_of_clip: dict[str, NDArray[np.uint8]] = {}
        for modality in modalities:
            if modality.signatures is None:
                continue
            for clip_id, mean_pictures in _mean_pictures(modality.signatures, clip_ids):
                # If the stores of several modalities have a clip's signature, the first one is used.
                sketch_of_clip.setdefault(clip_id, sketches(_kept_views(mean_pictures)))
        clips_with_sketch = [index for index, clip_id in enumerate(clip_ids) if clip_id in sketch_of_clip]
        pictures = [sketch_of_clip[clip_ids[index]] for index in clips_with_sketch]
        return cls(
            digests=np.stack(digests_of_modalities, axis=1),  # [N, M, 16]
            films_of_digests=films.astype(np.int64),
            pictures=np.array(pictures, np.uint8).reshape(-1, len(KEPT_VIEWS), SKETCH_BYTES),
            picture_films=films[clips_with_sketch].astype(np.int64),
        )

    def of_films(self, films: Sequence[int]) -> "TrainingFilms":
        """Select the clips of some films, given their numbers, and renumber the films in that order."""
        rows, row_films = _clips_of_films(self.films_of_digests, films)
        pictures, picture_films = _clips_of_films(self.picture_films, films)
        return TrainingFilms(self.digests[rows], row_films, self.pictures[pictures], picture_films)

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
            row_films.append(training.films_of_digests + first)
            picture_films.append(training.picture_films + first)
            first += n_films_of_lab
        return cls(
            digests=np.concatenate([training.digests for training in several]),
            films_of_digests=np.concatenate(row_films),
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
    trained_rows = [
        _collect_trained_rows(training, modality) for modality in range(training.digests.shape[1])
    ]
    stored_rows = [_collect_stored_rows(reads, stores) for reads in card.inputs]
    by_name = _recognise_by_name(card, movies)
    by_pictures, why_no_pictures = _recognise_by_pictures(card, training, stores)
    by_features = _recognise_by_features(card, trained_rows, stored_rows)
    # If a film is recognised in several ways, the last of these is used: features are the most reliable.
    known = {**by_name, **by_pictures, **by_features}
    films = {movie: known[movie] for movie in movies if movie in known}
    clips = _find_trained_clips(trained_rows, stored_rows, films)
    return Recognition(films, clips, why_no_pictures)


def _recognise_by_name(card: Card, movies: Mapping[str, None]) -> dict[str, KnownFilm]:
    """Recognise films by their names, also in another spelling.

    The result maps names of films in the stores to the films that were trained on.
    """
    # Name of a film, or another spelling of it -> its name in the model's file.
    trained_as = {movie: movie for movie in card.movies}
    for spelling, earlier_name in same_films([*card.movies, *movies]):
        is_trained = earlier_name in card.movies
        if is_trained:
            trained_as[spelling] = earlier_name
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
        """Select the rows whose digest is among the given ones."""
        rows = np.flatnonzero(np.isin(self.digests, np.array(list(digests), DIGEST)))
        return _StoredRows(
            clip_ids=[self.clip_ids[row] for row in rows.tolist()],
            movies=[self.movies[row] for row in rows.tolist()],
            n_words=self.n_words[rows],
            digests=self.digests[rows],
        )

    def films_and_digests(self) -> Iterator[tuple[str, bytes]]:
        """Yield the film and the digest of each row, without the rows of unknown films."""
        for movie, digest in zip(self.movies, self.digests.tolist(), strict=True):
            if movie:
                # numpy strips zero bytes from the end of byte strings: they are put back.
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
    """Return the first `DIGEST_BYTES` (16) bytes of the digest of each clip's row, [N, 16].

    The row is that of the array that a model reads; for clips without a row there the bytes are zeros.
    """
    if data.group is None:
        raise ModelError("these features are of no store, so that no row has a digest")
    digest_of = dict(zip(data.group.clip_ids, data.group.digests(data.features), strict=True))
    n_digits = 2 * DIGEST_BYTES  # two hexadecimal digits a byte
    no_digest = "0" * n_digits
    hex_digests = []
    for clip_id in clip_ids:
        # Missing for a clip that is not in the group; empty for one whose row is not there.
        digest = digest_of.get(clip_id, "")
        hex_digests.append(digest[:n_digits] if digest else no_digest)
    return np.frombuffer(bytes.fromhex("".join(hex_digests)), np.uint8).reshape(-1, DIGEST_BYTES)


def _collect_stored_rows(reads: Input, stores: Sequence[Store]) -> _StoredRows:
    """Collect the digests of all rows of some stores, in the array that is one input of a model.

    Stores without that array are skipped.
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
    digest_bytes = digests.view(np.uint8).reshape(len(digests), -1)
    first_bytes = np.ascontiguousarray(digest_bytes[:, :DIGEST_BYTES])
    shortened: NDArray[np.bytes_] = first_bytes.view(DIGEST).ravel()
    return shortened


FilmsOfDigest = Mapping[bytes, set[int]]
"""Digest of a row -> numbers of the films that have such a row."""


def _films_of_digests(training: TrainingFilms, modality: int) -> dict[bytes, set[int]]:
    """Map the digests of all rows of a modality, given its index, to the films that have such a row."""
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
    least_share : float
        A film must have more than this share of its rows in common with a film trained on.
    """

    films_of_digest: dict[bytes, set[int]]
    n_rows: Counter[int]
    least_share: float


def _collect_trained_rows(training: TrainingFilms, modality: int) -> _TrainedRows:
    """Collect a modality's training rows, and the share of common rows by which a film is recognised.

    A film is recognised as a training film if it has at least this share of rows in common with it. If
    features take few values, different films have equal rows by chance. The share therefore lies half way
    between 1 and the largest share that two different training films have in common: if that is 20 %, it is
    60 %. Rows that are in many training films identify none, and are left out. Training films with nearly all
    rows in common (`COPY_SHARE`) are copies, not different films.
    """
    all_films_of_digest = _films_of_digests(training, modality)
    n_rows = _count_rows(all_films_of_digest)  # of each film
    n_films = len(n_rows)
    most_films_of_row = max(COMMON_FILMS - 1, int(COMMON_SHARE * n_films))
    films_of_digest = {
        digest: films for digest, films in all_films_of_digest.items() if len(films) <= most_films_of_row
    }
    largest_share_by_chance = 0.0
    for _, _, share in _shares_of_pairs(films_of_digest, n_rows):
        are_copies = share >= COPY_SHARE
        if not are_copies:
            largest_share_by_chance = max(largest_share_by_chance, share)
    half_way_to_1 = HALF + HALF * largest_share_by_chance
    return _TrainedRows(films_of_digest, n_rows, least_share=half_way_to_1)


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
    n_common = Counter[tuple[int, int]]()
    for films in films_of_digest.values():
        n_common.update(combinations(sorted(films), 2))
    pairs = []
    for (film, other), n_rows_in_common in sorted(n_common.items()):
        pairs.append((film, other, n_rows_in_common / min(n_rows[film], n_rows[other])))
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
        for movie, film, share in _shares_of_equal_rows(trained, stored):
            best_share = known[movie].share if movie in known else 0.0
            if share > trained.least_share and share > best_share:
                known[movie] = KnownFilm(movie, card.movies[film], "features", share)
    return known


def _shares_of_equal_rows(trained: _TrainedRows, stored: _StoredRows) -> Iterator[tuple[str, int, float]]:
    """Yield the pairs of a stored film and a film trained on that have equal rows, with their share.

    The share is that of equal rows among the different rows of the film that has fewer.

    Yields
    ------
    movie : str
        Name of the film in the stores.
    film : int
        Number of the film trained on.
    share : float
    """
    equal_digests_of_movie: dict[str, set[bytes]] = {}
    for movie, digest in stored.with_digests(trained.films_of_digest).films_and_digests():
        equal_digests_of_movie.setdefault(movie, set()).add(digest)
    if not equal_digests_of_movie:
        return
    n_stored_rows = stored.count_different_rows()
    for movie, digests in equal_digests_of_movie.items():
        n_equal_of_film = _count_rows({digest: trained.films_of_digest[digest] for digest in digests})
        for film, n_equal in n_equal_of_film.items():
            yield movie, film, n_equal / min(n_stored_rows[movie], trained.n_rows[film])


def _find_trained_clips(
    trained_rows: Sequence[_TrainedRows],
    stored_rows: Sequence[_StoredRows],
    known: Mapping[str, KnownFilm],
) -> frozenset[str]:
    """Find clips that were trained on although their film is not recognised as a whole.

    A clip counts if its row of features equals a training row, unless that may be a coincidence: its text
    must be long, or its film must have enough different rows that equal training rows (`_least_equal_rows`).

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
        equal = stored.with_digests(trained.films_of_digest)
        # Films that are recognised count no rows here: all of their clips are known already.
        different_rows = {
            (movie, digest) for movie, digest in equal.films_and_digests() if movie not in known
        }
        n_rows_of_film = Counter(movie for movie, _ in different_rows)
        least_rows = _least_equal_rows(trained)
        for clip_id, movie, n_words in zip(equal.clip_ids, equal.movies, equal.n_words.tolist(), strict=True):
            is_long_text = n_words >= LEAST_WORDS
            has_enough_rows = n_rows_of_film[movie] >= least_rows
            if is_long_text or has_enough_rows:
                clip_ids.add(clip_id)
    return frozenset(clip_ids)


def _least_equal_rows(trained: _TrainedRows) -> int:
    """Return how many different rows of a film must equal training rows for its clips to count as trained on.

    The more rows different training films have in common, the more equal rows may be coincidences.
    """
    n_coincidences = sum(len(films) > 1 for films in trained.films_of_digest.values())
    return LEAST_ROWS + ROWS_FOR_EACH_COINCIDENCE * n_coincidences


def films_of_one_content(data: Dataset) -> list[tuple[str, str, float]]:
    """List pairs of a dataset's films that have more than half of their rows in common, with that share.

    Such films are probably the same under two names. Of several modalities the first one is compared.
    """
    compared = data.parts[0] if data.parts else data
    if compared.group is None:
        return []
    without_pictures = replace(compared, signatures=None)
    training = TrainingFilms.of_clips(without_pictures, np.arange(len(compared)))
    films_of_digest = _films_of_digests(training, modality=0)
    names = np.unique(compared.movies)  # films are numbered in sorted order
    pairs = []
    for film, other, share in _shares_of_pairs(films_of_digest, _count_rows(films_of_digest)):
        if share > HALF:
            pairs.append((str(names[film]), str(names[other]), share))
    return pairs


# --- by pictures
# ---------------------------------------------------------------------------
def _mean_pictures(group: Group, clip_ids: Sequence[str]) -> Iterator[tuple[str, NDArray[np.float32]]]:
    """Yield the ids of clips whose pictures are not blank, each with its mean frame per view, [views, 264].

    `group` holds the signatures of pictures; clips that are not among `clip_ids` are left out.
    """
    wanted = set(clip_ids)
    for start, block in group.blocks("frames"):
        for row, frames in enumerate(block, start=start):
            clip_id = group.clip_ids[row]
            if clip_id not in wanted or not group.usable[row]:
                continue
            # A row for each frame: its views side by side, of 264 numbers each, and then a number that is 0
            # if the frame is blank.
            signatures = signs_of(frames, f"frames of {SIGNATURE} of clip {clip_id}")
            n_frames = len(signatures)
            views = signatures[:, :-1].reshape(n_frames, len(VIEWS), -1)  # [frames, views, 264]
            is_not_blank = signatures[:, -1] != 0
            if np.count_nonzero(is_not_blank) >= LEAST_FRAMES:
                yield clip_id, mean_frames(views, is_not_blank)


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
    why_no_pictures : str
        The reason why no pictures could be compared; "" if some were.
    """
    if not len(training.pictures):
        return {}, "the model's file has no pictures: its store had no signature"
    # Stores on a server are skipped: a signature is 40 kB per clip.
    with_pictures = [store for store in stores if has_signatures(store) and "://" not in store.where]
    if not with_pictures:
        names = ", ".join(store.name for store in stores)
        return {}, f"no signature is in {names}"
    mean_pictures_of_movie: dict[str, list[NDArray[np.float32]]] = {}
    for store in with_pictures:
        movie_of = dict(zip(store.table.clip_ids, store.table.movies, strict=True))
        for clip_id, mean_pictures in _mean_pictures(store[SIGNATURE], list(movie_of)):
            mean_pictures_of_movie.setdefault(movie_of[clip_id], []).append(mean_pictures)
    known: dict[str, KnownFilm] = {}
    for movie, mean_pictures_of_clips in mean_pictures_of_movie.items():
        film, share = _most_similar_film(np.stack(mean_pictures_of_clips), training)
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
    """Compute the share of the clips of the shorter film that the longer one has too.

    If both films have as many clips, it is the share of the clips of the new film.

    Parameters
    ----------
    means : ndarray, shape [n, views, 264]
        The clips of the new film.
    trained : ndarray of uint8, shape [m, 2, 33]
        Sketches of the clips of a film trained on.
    """
    has_few_clips = min(len(means), len(trained)) < FEW_CLIPS
    least_cosine = LEAST_COSINE_OF_FEW_CLIPS if has_few_clips else LEAST_COSINE
    # Of each clip of either film, whether the other film has it.
    new_clip_is_in_trained = np.zeros(len(means), bool)
    trained_clip_is_in_new = np.zeros(len(trained), bool)
    for first in range(0, len(means), N_CLIPS_AT_ONCE):
        block = slice(first, first + N_CLIPS_AT_ONCE)
        is_same = _picture_similarity(means[block], trained) >= least_cosine  # [clips of the block, m]
        new_clip_is_in_trained[block] = is_same.any(axis=1)
        trained_clip_is_in_new |= is_same.any(axis=0)
    if len(means) <= len(trained):
        return float(new_clip_is_in_trained.mean())
    return float(trained_clip_is_in_new.mean())


def _picture_similarity(means: NDArray[np.float32], trained: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Compute the similarity of each of n clips with each of m clips, [n, m].

    It is the largest cosine over the pairs of views in `COMPARED_VIEWS`: the whole pictures, and the whole
    picture of one clip with the inner picture of the other.

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
