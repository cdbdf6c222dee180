"""Values that are equal in all movies have no interval: a width of 0 would be taken for certainty."""

import numpy as np
import pandas as pd
import pytest

from obygaze_models.evaluation import Predictions, summarise
from obygaze_models.evaluation.intervals import jackknife_interval, ratio_interval, t_interval
from obygaze_models.prediction.final import concept_metrics

MOVIES = np.repeat(["heat", "jaws", "up"], 4)


def assert_has_no_interval(interval, *, mean):
    assert interval.mean == pytest.approx(mean)
    assert np.isnan(interval.low)
    assert np.isnan(interval.high)


@pytest.mark.parametrize("covers", ["models", "method"])
@pytest.mark.parametrize("bounds", [None, (0, 1), (0, np.inf)])
def test_a_metric_that_is_equal_in_all_movies_has_no_interval(bounds, covers):
    """In each of three movies the AUC is .75. An interval from values without spread would be [.75, .75].

    That would claim too much: movies of few clips have few possible values, which are often equal by chance.
    This holds within any bounds, for trained models and for the method that trains them.
    """
    assert_has_no_interval(t_interval([0.75, 0.75, 0.75], bounds=bounds, covers=covers), mean=0.75)


def test_a_metric_that_can_have_one_value_only_has_an_interval_of_no_width():
    """The AUC of scores that do not vary is .5 in any movie: equal values are no luck here."""
    interval = t_interval([0.5, 0.5, 0.5], bounds=(0, 1), possible=(0.5, 0.5))

    assert (interval.low, interval.high) == (0.5, 0.5)


def test_a_statistic_that_is_the_same_without_each_movie_has_no_interval():
    """Each of three movies has four clips, of which three are right: the share is .75, also without any.

    The jackknife, which leaves out one movie after the other, then sees no variation to make an interval of.
    """
    is_right = np.tile([True, True, True, False], 3)

    share = jackknife_interval(lambda rows: float(is_right[rows].mean()), MOVIES, bounds=(0, 1))

    assert_has_no_interval(share, mean=0.75)


def test_a_ratio_that_is_the_same_in_all_movies_has_no_interval():
    """In each of three movies the numerator is half of the denominator."""
    assert_has_no_interval(ratio_interval([0.1, 0.2, 0.3], [0.2, 0.4, 0.6]), mean=0.5)


def test_a_concept_found_without_error_in_three_films_of_two_clips_may_be_found_by_luck():
    """Each of three films has two clips, one with a body. In all of them its score is the higher one: AP 1.

    By luck a film has the AP 1 or 1/2, .75 on average, and all three have 1 in one of eight cases. So the
    interval of the mean AP must reach below .75. Its low end is that of a film which has the AP 1 with a
    probability q, and else 1/2, where q is the least with which all three have it in 2.5 % of cases.
    """
    presence = np.tile([1, 0], 3)[:, None]
    scores = presence.astype(np.float64)
    films = np.repeat(["heat", "jaws", "up"], 2)

    (row,) = concept_metrics("linear", ("Body",), scores, presence, films)

    q = 0.025 ** (1 / 3)  # q ** 3 is .025
    assert row["movie_mean"] == 1
    assert row["movie_low"] == pytest.approx(q * 1 + (1 - q) * 0.5)
    assert row["movie_low"] < 0.75  # which is chance
    assert row["movie_high"] == 1


def predictions(scores):
    """Make predictions of one model on twelve clips of three movies, of which every other one is positive."""
    table = pd.DataFrame(
        {
            "model": "linear",
            "task": "en_s",
            "fold": 0,
            "seed": 0,
            "clip_id": [f"clip{number}" for number in range(12)],
            "movie": MOVIES,
            "label": np.tile([0, 1], 6),
            "score": scores,
            "threshold": 0.5,
            "store": "",
        }
    )
    return Predictions(table)


def auc_by_movie(scores):
    table = summarise(predictions(scores)).set_index("metric")
    return table.loc["auc"]


def test_an_auc_that_is_equal_in_all_movies_has_no_interval():
    """In each of three movies of four clips, one of two positive clips is ranked below one negative clip.

    Three of four pairs are in the right order, so the AUC is .75. Equal values do not tell how movies differ.
    """
    auc = auc_by_movie(np.tile([0.1, 0.4, 0.3, 0.2], 3))

    assert auc["movie_mean"] == 0.75
    assert np.isnan(auc["movie_low"])


def test_the_auc_of_scores_that_do_not_vary_is_one_half_in_whatever_movies():
    """All twelve clips of three movies have the score .4. The interval of the AUC has no width."""
    auc = auc_by_movie(np.full(12, 0.4))

    assert (auc["movie_low"], auc["movie_high"]) == (0.5, 0.5)
