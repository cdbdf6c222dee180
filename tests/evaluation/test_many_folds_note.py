"""Many folds are announced with what they will take, before the work begins."""

from types import SimpleNamespace

import numpy as np
import pytest

from obygaze_models.commands.evaluate_commands import _announce_folds


@pytest.mark.parametrize(
    ("n_movies", "folds", "note"),
    [
        (100, None, ""),
        (101, None, "101 folds, one for each movie"),
        (501, None, ""),
        (101, 20, ""),
        (110, 105, "105 folds:"),
    ],
    ids=[
        "up to a hundred movies",
        "a fold for each of more movies",
        "twenty groups by default above 500 movies",
        "twenty groups on request",
        "some folds of two movies",
    ],
)
def test_more_than_a_hundred_folds_are_announced(capsys, n_movies, folds, note):
    movies = np.repeat(np.arange(n_movies), 5).astype(str)
    data = SimpleNamespace(movies=movies, X=np.zeros((len(movies), 8)))
    _announce_folds(data, folds, seen=False)
    printed = capsys.readouterr().err
    assert note in printed
    assert bool(printed) == bool(note)
