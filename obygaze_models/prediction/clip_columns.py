"""Hold the facts of clips that tables of predictions repeat, such as film and times, as columns."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from obygaze_features.store.clip_table import ClipTable


@dataclass(frozen=True, eq=False, slots=True)
class ClipColumns:
    """Facts of N clips, a column each.

    Attributes
    ----------
    clip_ids, movies : list of str
    start_s, end_s : ndarray, shape [N]
        Start and end in seconds; NaN of a clip that is a whole file.
    is_partial : ndarray of bool, shape [N]
        Whether a part of the clip's video could not be read.
    """

    clip_ids: list[str]
    movies: list[str]
    start_s: NDArray[np.float64]
    end_s: NDArray[np.float64]
    is_partial: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.clip_ids)

    def take(self, indices: NDArray[np.intp]) -> "ClipColumns":
        """Select the clips at some indices, in the order of the indices."""
        return ClipColumns(
            clip_ids=[self.clip_ids[index] for index in indices.tolist()],
            movies=[self.movies[index] for index in indices.tolist()],
            start_s=self.start_s[indices],
            end_s=self.end_s[indices],
            is_partial=self.is_partial[indices],
        )

    @classmethod
    def of_table(cls, table: ClipTable) -> "ClipColumns":
        """Read the facts of all clips of a store."""
        is_partial = np.fromiter((status == "partial" for status in table.status), np.bool_, len(table))
        return cls(table.clip_ids, table.movies, table.start_s, table.end_s, is_partial)

    @classmethod
    def joined(cls, several: Sequence["ClipColumns"]) -> "ClipColumns":
        """Concatenate the facts of the clips of several stores."""
        if len(several) == 1:
            return several[0]
        clip_ids: list[str] = []
        movies: list[str] = []
        for clips in several:
            clip_ids += clips.clip_ids
            movies += clips.movies
        return cls(
            clip_ids=clip_ids,
            movies=movies,
            start_s=np.concatenate([clips.start_s for clips in several]),
            end_s=np.concatenate([clips.end_s for clips in several]),
            is_partial=np.concatenate([clips.is_partial for clips in several]),
        )

    def order(self) -> NDArray[np.intp]:
        """Return the indices [N] that sort the clips by movie, start, end and id.

        Clips without times, which are whole files, come after the other clips of their movie.
        """
        # Clips are sorted by id first, and the clips in that order by movie and times. The second sort is
        # stable, so that clips of the same movie and times stay sorted by id.
        by_id = np.array(sorted(range(len(self)), key=self.clip_ids.__getitem__), np.intp)
        rank_of_movie = {movie: rank for rank, movie in enumerate(sorted(set(self.movies)))}
        movie_ranks = np.array([rank_of_movie[movie] for movie in self.movies], np.intp)
        # The last key of lexsort comes first in the order.
        order_of_sorted = np.lexsort((self.end_s[by_id], self.start_s[by_id], movie_ranks[by_id]))
        return by_id[order_of_sorted]
