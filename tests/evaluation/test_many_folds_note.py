"""Many folds are announced with what they will take, before the work begins."""

from types import SimpleNamespace

import numpy as np
import pytest

from obygaze_models.commands.evaluate_commands import _announce_folds


def said_of(capsys, n_movies, folds=None):
    """Return what is said before an evaluation of a corpus of five clips a movie."""
    movies = np.repeat(np.arange(n_movies), 5).astype(str)
    data = SimpleNamespace(movies=movies, X=np.zeros((len(movies), 8)))
    _announce_folds(data, folds, seen=False)
    return capsys.readouterr().err


def test_up_to_a_hundred_movies_nothing_is_announced(capsys):
    assert said_of(capsys, 100) == ""


def test_each_of_more_movies_is_a_fold_of_its_own_and_is_announced(capsys):
    assert "101 folds, one for each movie" in said_of(capsys, 101)


@pytest.mark.parametrize(("n_movies", "folds"), [(501, None), (101, 20)])
def test_twenty_groups_of_movies_are_not_announced(capsys, n_movies, folds):
    assert said_of(capsys, n_movies, folds) == ""


def test_folds_of_several_movies_are_not_called_those_of_each_movie(capsys):
    said = said_of(capsys, 110, 105)
    assert "105 folds:" in said
    assert "each movie" not in said
