"""Hold what predictions say of a store's clips, and by what they are known again, as columns.

A row takes a tenth of the memory of a clip's record, and is read once.
"""

import sys
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from obygaze_features.store import Store
from obygaze_models.persistence.card import DIGEST_BYTES, Card, Input

DIGEST = f"S{DIGEST_BYTES}"
"""Data type of digests: all are of this length, so it is no matter that numpy takes off zeros at the end."""

NO_DIGEST = bytes(DIGEST_BYTES)
"""Of a row without features."""


@dataclass(frozen=True, eq=False, slots=True)
class ClipColumns:
    """What predictions say of N clips.

    Attributes
    ----------
    clip_ids, movies : list of str
    start_s, end_s : ndarray, shape [N]
        NaN of a clip that is a whole file.
    is_partial : ndarray of bool, shape [N]
        Whether a part of its video could not be read.
    """

    clip_ids: list[str]
    movies: list[str]
    start_s: NDArray[np.float64]
    end_s: NDArray[np.float64]
    is_partial: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.clip_ids)

    def take(self, places: NDArray[np.intp]) -> "ClipColumns":
        """Keep the clips at some places, in their order."""
        listed = places.tolist()
        return ClipColumns(
            [self.clip_ids[place] for place in listed],
            [self.movies[place] for place in listed],
            self.start_s[places],
            self.end_s[places],
            self.is_partial[places],
        )

    @classmethod
    def joined(cls, several: Sequence["ClipColumns"]) -> "ClipColumns":
        """Put the clips of several stores one after the other."""
        if len(several) == 1:
            return several[0]
        clip_ids: list[str] = []
        movies: list[str] = []
        for clips in several:
            clip_ids += clips.clip_ids
            movies += clips.movies
        return cls(
            clip_ids,
            movies,
            np.concatenate([clips.start_s for clips in several]),
            np.concatenate([clips.end_s for clips in several]),
            np.concatenate([clips.is_partial for clips in several]),
        )

    def order(self) -> NDArray[np.intp]:
        """Give the order [N] by movie, time and id; a movie's whole files come after its spans."""
        by_id = np.array(sorted(range(len(self)), key=self.clip_ids.__getitem__), np.intp)
        place_of = {movie: place for place, movie in enumerate(sorted(set(self.movies)))}
        movie = np.fromiter((place_of[movie] for movie in self.movies), np.intp, len(self))
        return by_id[np.lexsort((self.end_s[by_id], self.start_s[by_id], movie[by_id]))]


@dataclass(frozen=True, eq=False, slots=True)
class ClipTable:
    """The rows of a store, as a model reads them.

    Attributes
    ----------
    store : Store
    clips : ClipColumns
        All N of its clips.
    n_words : ndarray of int, shape [N]
        Words of the text that a row is the embedding of; 0 in a store of clips.
    reasons : dict of str to dict of int to str
        By backbone and row, why a clip has no features of it.
    digests : dict of tuple to ndarray of bytes, shape [N]
        By backbone and array, the beginning of each row's digest; `NO_DIGEST` of rows without features.
    """

    store: Store
    clips: ClipColumns
    n_words: NDArray[np.int64]
    reasons: dict[str, dict[int, str]]
    digests: dict[tuple[str, str], NDArray[np.bytes_]]


def read_clip_table(card: Card, store: Store) -> ClipTable:
    """Read the rows of a store, those of all modalities of a model that it has."""
    inputs: list[Input] = [each for each in card.inputs if each["backbone"] in store.names]
    usable = {each["backbone"]: store[each["backbone"]].usable.tolist() for each in inputs}
    reasons: dict[str, dict[int, str]] = {backbone: {} for backbone in usable}
    digests = {(each["backbone"], each["features"]): bytearray() for each in inputs}
    clip_ids: list[str] = []
    movies: list[str] = []
    start_s, end_s, n_words = array("d"), array("d"), array("q")
    is_partial = bytearray()
    for row, clip in enumerate(store.each_clip()):
        clip_ids.append(clip.clip_id)
        movies.append(sys.intern(clip.movie))  # one text for all clips of a film
        start_s.append(np.nan if clip.start_s is None else clip.start_s)
        end_s.append(np.nan if clip.end_s is None else clip.end_s)
        n_words.append(len(clip.text.split()) if clip.text else 0)
        is_partial.append(clip.status == "partial")
        for backbone, is_usable in usable.items():
            if not is_usable[row]:
                of_group = clip.within(backbone)
                reason = f"{of_group.status}: {of_group.reason}" if of_group.reason else of_group.status
                reasons[backbone][row] = reason
        for (backbone, features), beginnings in digests.items():
            digest = clip.digests.get(f"{backbone}/{features}", "")
            beginnings.extend(bytes.fromhex(digest[: 2 * DIGEST_BYTES]) or NO_DIGEST)
    clips = ClipColumns(
        clip_ids, movies, _numbers(start_s), _numbers(end_s), np.frombuffer(is_partial, np.uint8).astype(bool)
    )
    known = {name: np.frombuffer(beginnings, DIGEST) for name, beginnings in digests.items()}
    return ClipTable(store, clips, np.frombuffer(n_words, np.int64), reasons, known)


def _numbers(values: "array[float]") -> NDArray[Any]:
    return np.frombuffer(values, np.float64)
