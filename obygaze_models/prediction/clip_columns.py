"""Hold what predictions say of clips beside the model's words, as columns."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from obygaze_features.store.clip_table import ClipTable


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
    def of_table(cls, table: ClipTable) -> "ClipColumns":
        """Take what is said of all clips of a store."""
        is_partial = np.fromiter((status == "partial" for status in table.status), np.bool_, len(table))
        return cls(table.clip_ids, table.movies, table.start_s, table.end_s, is_partial)

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
