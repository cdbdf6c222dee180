"""The bracket of a new film's share has a width also where all films of the training have the same share."""

import numpy as np
import pytest

from obygaze_models.prediction.calibration import Calibration, HeldOut, errors_of_new_films


def held_out_films(labels_of_film, *, n_films, skill, seed=0):
    """Plant films with the labels of one film each, and scores that know them by `skill`."""
    rng = np.random.default_rng(seed)
    labels = np.tile(labels_of_film, n_films)
    scores = skill * (2 * labels - 1) + rng.normal(size=len(labels))
    movies = np.repeat([f"film{number}" for number in range(n_films)], len(labels_of_film))
    return HeldOut(scores=scores, y=labels, movies=movies)


@pytest.mark.parametrize("n_films", [3, 6, 12])
@pytest.mark.parametrize("skill", [0.0, 1.0, 3.0])
def test_films_that_were_made_half_and_half_do_not_say_that_the_next_one_is(n_films, skill):
    """Of each film 20 clips of each class were taken, so that no share was ever wrong by more than .01.

    Of films of 40 clips that are positive by the model's probabilities p, independently, the share has the
    standard deviation sqrt(mean of p (1 - p) / 40). To each side the bracket has at least a third of it,
    which is what one corpus of a hundred has by chance, and no more than where nothing is known of a clip.
    """
    held_out = held_out_films(np.repeat([0, 1], 20), n_films=n_films, skill=skill)

    calibration = Calibration.fit(held_out)

    p = calibration.probability(held_out.scores)
    deviation = np.sqrt((p * (1 - p)).mean() / 40)
    low, high = calibration.bracket(0.3)
    assert (high - low) / 2 > deviation / 3
    assert (high - low) / 2 < 2 * np.sqrt(0.25 / 40)


def test_errors_of_films_that_differ_by_chance_are_as_they_were_measured():
    """Of corpora whose errors are those of chance, one in a hundred has smaller ones than is believed."""
    rng = np.random.default_rng(0)
    variances = np.full(8, 0.25 / 40)
    n_replaced = 0
    for _ in range(2000):
        errors = rng.normal(0, np.sqrt(variances))
        n_replaced += errors_of_new_films(errors, variances) is not errors
    assert n_replaced == pytest.approx(0.01 * 2000, abs=12)  # 2.7 standard errors


def test_errors_larger_than_chance_stay():
    """Films differ from each other: their own errors say by how much."""
    errors = np.array([0.1, -0.2, 0.15])
    assert errors_of_new_films(errors, np.full(3, 0.001)) is errors


def test_a_film_of_which_every_clip_is_certain_leaves_nothing_to_chance():
    errors = np.zeros(2)
    assert errors_of_new_films(errors, np.array([0.0, 0.01])) is errors
