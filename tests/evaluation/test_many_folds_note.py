"""Many folds are announced with what they will take, before the work begins."""

from types import SimpleNamespace

import numpy as np
import pytest

from obygaze_models.commands.evaluate_commands import _announce_folds


@pytest.mark.parametrize(
    ("n_movies", "n_folds_asked_for", "note"),
    [(101, None, "101 folds, one for each movie"), (110, 105, "105 folds:")],
    ids=["a fold for each movie", "some folds of two movies"],
)
def test_more_than_a_hundred_folds_are_announced(capsys, n_movies, n_folds_asked_for, note):
    """Unless a number of folds is asked for, there is one for each of up to 500 movies.

    So 101 movies have 101 folds. If somebody asks for 105 folds of 110 movies, some have two movies.
    """
    data = movies_of_five_clips(n_movies)

    _announce_folds(data, n_folds_asked_for, seen=False)

    assert note in capsys.readouterr().err


@pytest.mark.parametrize(
    ("n_movies", "n_folds_asked_for"),
    [(100, None), (501, None), (101, 20)],
    ids=["a hundred movies", "twenty groups by default above 500 movies", "twenty groups on request"],
)
def test_up_to_a_hundred_folds_are_not_announced(capsys, n_movies, n_folds_asked_for):
    """A hundred movies have a fold each. 501 movies have 20 folds, and so have 101 if 20 are asked for."""
    data = movies_of_five_clips(n_movies)

    _announce_folds(data, n_folds_asked_for, seen=False)

    assert capsys.readouterr().err == ""


def movies_of_five_clips(n_movies):
    """Make what `_announce_folds` reads of a dataset: the movie of each clip, and features."""
    movies = np.repeat(np.arange(n_movies), 5).astype(str)
    return SimpleNamespace(movies=movies, X=np.zeros((len(movies), 8)))
