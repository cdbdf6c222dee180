"""A film whose clips are all of one level shows how far calls are off, and nothing of how they agree."""

import numpy as np
import pytest

from obygaze_models import evaluate
from obygaze_models.evaluation.metrics import LEVEL_METRICS
from obygaze_models.report.run_tables import short_report
from tests.conftest import dataset

ALL_AT_1 = np.array([1, 1, 1, 1])
"""The levels of a film of four clips, which are all of the level 1."""

SCORES = np.array([0.8, 1.1, 1.3, 1.9])
"""A model's scores of these clips."""


@pytest.mark.parametrize("called", [[1, 1, 1, 1], [1, 1, 1, 2]], ids=["all right", "one of four wrong"])
def test_a_film_of_clips_of_one_level_has_no_kappa_whether_a_model_calls_all_or_nearly_all_of_them_rightly(
    called,
):
    """All four clips of a film have the level 1, and a model calls three or four of them 1.

    Kappa is (agreement - expected agreement) / (1 - expected agreement). If all calls are right, that is
    0 / 0, undefined. If one is wrong, three of four agree, as expected of a model that mostly calls 1: kappa
    would be 0, the same as chance, for calls that are nearly right. So it is undefined there too.
    """
    kappa = LEVEL_METRICS["quadratic_kappa"].of_movie(ALL_AT_1, SCORES, np.array(called))

    assert np.isnan(kappa)


def test_the_mean_absolute_error_of_a_film_of_one_level_is_defined():
    """All four clips have the level 1. Three are called 1, and one is called 2: it is off by 1, a fourth."""
    called = np.array([1, 1, 1, 2])

    error = LEVEL_METRICS["mean_absolute_error"].of_movie(ALL_AT_1, SCORES, called)

    assert error == 1 / 4


def test_the_table_says_of_how_many_films_a_metric_is_if_not_of_all():
    """Of five films one has clips of HN alone: kappa and rank correlation are of the other four."""
    rng = np.random.default_rng(0)
    movies = np.repeat([f"tt{number}" for number in range(5)], 30)
    levels = np.tile(["EN", "HN", "S"], 50)
    levels[movies == "tt0"] = "HN"
    clips = dataset(rng.normal(size=(150, 4)), levels, movies)

    report = short_report(evaluate(clips, ["linear"], task="levels"))

    (table,) = report.blocks
    assert "by movie, mean of 5" in table.title
    assert table.headers[1:] == ("MAE (levels) [95 %]", "kappa (quadratic), of 4", "Spearman, of 4")
