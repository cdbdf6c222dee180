"""Films that all have one number by chance prove no skill, and their interval has a width."""

import numpy as np
import pytest

from obygaze_models.evaluation.intervals import auc_interval, ends_of_equal_values
from obygaze_models.evaluation.metrics import average_precision, min_average_precision
from obygaze_models.persistence.evidence import Evidence, describe_evidence, may_be_chance
from obygaze_models.prediction.final import concept_metrics


def metrics_of_films_with_one_example(n_films, n_clips, scores):
    """Return the metrics of a concept that the first clip of each film has, by scores [films, clips].

    They are a row of a table: the mean average precision within films (`movie_mean`), its interval from
    `movie_low` to `movie_high`, and what chance gives (`movie_chance`).
    """
    present = np.zeros((n_films, n_clips))
    present[:, 0] = 1
    movies = np.repeat([f"f{film}" for film in range(n_films)], n_clips)
    values = np.asarray(scores, np.float64).reshape(-1, 1)
    (row,) = concept_metrics("bank", ("Gun",), values, present.reshape(-1, 1), movies)
    return row


def is_shown_to_be_found(row):
    """Tell whether the interval of a concept's average precision, in a row of metrics, lies above chance."""
    return row["movie_low"] > row["movie_chance"]


@pytest.mark.parametrize(("n_films", "n_clips"), [(3, 2), (3, 3)])
def test_scores_of_chance_are_seldom_shown_to_find_a_concept_in_films_of_few_clips(n_films, n_clips):
    """Of each film one clip has the concept. Scores are random, so no interval should lie above chance.

    In three films of two clips each, chance alone gives that clip the higher score in every film in one
    corpus of eight (1/2 cubed). Then each film's average precision is 1, so that Student's t gives an
    interval without any width, above chance. Intervals of 95 % may lie above chance in 2.5 % of corpora; of
    400 that are drawn here, in at most 4 %.
    """
    rng = np.random.default_rng(0)
    n_corpora_with_concept_found = 0
    for _ in range(400):
        random_scores = rng.normal(size=(n_films, n_clips))
        row = metrics_of_films_with_one_example(n_films, n_clips, random_scores)
        n_corpora_with_concept_found += is_shown_to_be_found(row)
    assert n_corpora_with_concept_found / 400 <= 0.04


def test_a_concept_that_is_first_in_every_film_of_many_clips_is_found():
    """In each of four films one clip of 20, the first, has the concept, and it has the highest score of all.

    All films have an average precision of 1, and noise would hardly give that: the concept is shown to be
    found. Yet the interval of the mean has a width: four films do not prove that every film is so.
    """
    falling_scores = np.tile(np.arange(20, 0, -1), (4, 1))

    row = metrics_of_films_with_one_example(n_films=4, n_clips=20, scores=falling_scores)

    assert row["movie_mean"] == pytest.approx(1)
    assert row["movie_high"] == pytest.approx(1)
    assert is_shown_to_be_found(row)
    assert row["movie_low"] < 0.5


def test_a_concept_whose_clip_has_the_lowest_score_in_every_film_is_not_found():
    """In each of four films, the first of 20 clips has the concept, and its score 0 is the lowest of all.

    The average precision of each film is 1/20, the least that there is. An interval of equal numbers has a
    width all the same: here it reaches up from the mean, but not below it.
    """
    scores_of_film = np.arange(20)

    row = metrics_of_films_with_one_example(n_films=4, n_clips=20, scores=np.tile(scores_of_film, (4, 1)))

    assert not is_shown_to_be_found(row)
    assert row["movie_mean"] == pytest.approx(1 / 20)
    assert row["movie_low"] == pytest.approx(row["movie_mean"])
    assert row["movie_mean"] < row["movie_high"]


def test_the_least_average_precision_is_that_of_the_worst_ranking():
    """Of five clips two are positive. In the worst ranking both have lower scores than all others."""
    labels = np.array([1, 1, 0, 0, 0])
    worst_scores = np.arange(5.0)
    assert min_average_precision(5, n_relevant=2) == pytest.approx(average_precision(labels, worst_scores))


def test_a_model_with_the_same_auc_in_each_of_three_films_may_still_be_chance():
    """The AUC is .75 in three films of four clips each, which chance may bring about.

    So its interval isn't without a width: it is [.22, .93], which contains .5. Nor is the model skilled by
    the other measure, the probability that it is better than chance: that is .4.
    """
    interval = auc_interval([0.75, 0.75, 0.75])
    assert (interval.low, interval.high) == pytest.approx((0.22, 0.93), abs=0.005)

    evidence = Evidence(
        n_clips=12, n_movies=3, auc=0.75, auc_low=interval.low, auc_high=interval.high, p_skilled=0.4
    )

    assert may_be_chance(evidence)
    assert ".75 [.22, .93]" in describe_evidence(evidence)


def test_the_same_auc_above_one_half_in_twenty_films_proves_skill():
    """The AUC is .75 in each of twenty films: chance would hardly give that in so many."""
    assert auc_interval([0.75] * 20).low > 0.5


def test_the_auc_of_a_single_film_has_no_interval_unless_it_is_1_or_0():
    """An interval is computed from how films differ, which one film doesn't show.

    But if one film has the largest AUC, 1, at least 2.5 % of films must have it, as anything less would be
    too improbable. So the mean of all films is at least .025 then.
    """
    assert np.isnan(auc_interval([0.75]).low)
    assert auc_interval([1.0]).low == pytest.approx(0.025)


def test_the_interval_of_equal_values_has_ends_on_both_sides_within_what_is_possible():
    """A number from -.3 to .6 is .2 in each of five films, and the interval of its mean has a width."""
    low, high = ends_of_equal_values(0.2, n_movies=5, minimum=-0.3, maximum=0.6)
    assert -0.3 < low < 0.2 < high < 0.6
