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
        """Take the columns of all clips of a store from its table."""
        return cls(
            clip_ids=table.clip_ids,
            movies=table.movies,
            start_s=table.start_s,
            end_s=table.end_s,
            is_partial=np.array([status == "partial" for status in table.status], np.bool_),
        )

    @classmethod
    def joined(cls, several: Sequence["ClipColumns"]) -> "ClipColumns":
        """Concatenate the columns of the clips of several stores."""
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
        # numpy sorts numbers faster than texts: each text is replaced by its rank.
        ranks_of_ids = _ranks(self.clip_ids)
        ranks_of_movies = _ranks(self.movies)
        # lexsort sorts by its last key first. It puts NaN, of clips without times, last.
        return np.lexsort((ranks_of_ids, self.end_s, self.start_s, ranks_of_movies))


def _ranks(texts: Sequence[str]) -> NDArray[np.intp]:
    """Return the rank of each text [N] among the different texts, in sorted order, from 0.

    Equal texts have the same rank: of "b", "a", "b" the ranks are 1, 0, 1.
    """
    rank_of = {text: rank for rank, text in enumerate(sorted(set(texts)))}
    return np.array([rank_of[text] for text in texts], np.intp)
