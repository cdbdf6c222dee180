"""Say between which clips a control exchanges what it must not know."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def rows_that_exchange(movies: NDArray[Any]) -> list[NDArray[np.intp]]:
    """Return groups of clips between which a control exchanges labels, answers or frames.

    They are the clips of each movie, in the order of the movies' names, so that what tells movies apart stays
    where it is. Movies of one clip are one group, the last one: within such a movie there is nothing to
    exchange, and the control would be the model itself.

    Parameters
    ----------
    movies : ndarray, shape [N]
        The movie of each clip.

    Examples
    --------
    >>> movies = np.array(["trailer1", "film", "film", "trailer2"])
    >>> [rows.tolist() for rows in rows_that_exchange(movies)]
    [[1, 2], [0, 3]]
    """
    rows_by_movie = np.argsort(movies, kind="stable")
    _, first_places = np.unique(movies[rows_by_movie], return_index=True)
    groups = []
    only_clips = []
    for rows in np.split(rows_by_movie, first_places)[1:]:  # before the first place there are none
        if len(rows) == 1:
            only_clips.append(rows[0])
        else:
            groups.append(rows)
    if only_clips:
        groups.append(np.array(only_clips))
    return groups
