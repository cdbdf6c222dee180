"""Split movies into blocks of scenes, so that every movie is on both sides of every fold.

What a model knows of a movie helps it on the movie's other clips: these splits show how much, beside those
that leave movies out. Neighbouring clips look alike, so blocks are contiguous, and the `GAP` clips on either
side of a tested block are in neither side.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from obygaze_models.protocol.folds import FoldTable, Split, check_split

N_BLOCKS = 5
GAP = 4
"""Clips left out on either side of a tested block. Labels of ObyGaze12 correlate .48 with those of the next
clip, .27 at distance 2, .17 at 3 and .07 at 5."""


def scene_blocks(clip_ids: Sequence[str], movies: Sequence[str], n_blocks: int = N_BLOCKS) -> FoldTable:
    """Cut each movie's clips, in the order given, into blocks of about as many; fold k tests block k.

    The order must be that of the film, as in the manifest; it is not checked.
    """
    folds = np.empty(len(clip_ids), dtype=np.int64)
    of = np.asarray(movies)
    for movie in np.unique(of):
        for fold, block in enumerate(np.array_split(np.flatnonzero(of == movie), n_blocks)):
            folds[block] = fold
    return FoldTable(tuple(clip_ids), tuple(movies), folds, by_movie=False)


def seen_splits(
    table: FoldTable, train: NDArray[np.bool_], test: NDArray[np.bool_], gap: int = GAP
) -> Iterator[Split]:
    """Cut a table of blocks into sides, as `splits` does, without the `gap` clips around a tested block.

    Raises
    ------
    ProtocolError
        A clip is on two sides.
    """
    movies = np.asarray(table.movies)
    for fold in range(int(table.folds.max()) + 1):
        here = table.folds == fold
        near = np.zeros(len(here), dtype=np.bool_)
        for movie in np.unique(movies):
            own = np.flatnonzero(movies == movie)
            near[own] = np.convolve(here[own], np.ones(2 * gap + 1), mode="full")[gap : gap + own.size] > 0
        split = Split(
            fold, np.flatnonzero(train & ~near), np.empty(0, dtype=np.intp), np.flatnonzero(test & here)
        )
        if split.test.size:
            check_split(split, table.clip_ids, table.movies, by_movie=False)
            yield split
