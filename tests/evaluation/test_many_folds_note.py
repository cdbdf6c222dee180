"""Many folds are announced with what they will take, before the work begins."""

from types import SimpleNamespace

import numpy as np
import pytest

from obygaze_models.commands.evaluate_commands import _announce_folds


def note_on(capsys, *, n_movies, folds=None):
    """Return the note printed before an evaluation of a corpus of five clips a movie."""
    movies = np.repeat(np.arange(n_movies), 5).astype(str)
    data = SimpleNamespace(movies=movies, X=np.zeros((len(movies), 8)))
    _announce_folds(data, folds, seen=False)
    return capsys.readouterr().err


def test_up_to_a_hundred_movies_nothing_is_announced(capsys):
    assert note_on(capsys, n_movies=100) == ""


def test_the_folds_of_more_movies_are_announced_one_for_each_movie(capsys):
    assert "101 folds, one for each movie" in note_on(capsys, n_movies=101)


@pytest.mark.parametrize(
    ("n_movies", "folds"), [(501, None), (101, 20)], ids=["by default above 500 movies", "on request"]
)
def test_twenty_groups_of_movies_are_not_announced(capsys, n_movies, folds):
    assert note_on(capsys, n_movies=n_movies, folds=folds) == ""


def test_folds_of_which_some_have_two_movies_are_not_announced_as_one_for_each_movie(capsys):
    note = note_on(capsys, n_movies=110, folds=105)
    assert "105 folds:" in note
    assert "each movie" not in note
