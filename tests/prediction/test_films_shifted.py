"""Scores of whole films may be shifted: a clip of a new film is then less sure than within its film."""

import numpy as np
import pytest
from scipy.special import expit

from obygaze_models.errors import ProtocolError
from obygaze_models.prediction.calibration import Calibration, SlopeAcrossFilms
from obygaze_models.protocol import HeldOut
from obygaze_models.protocol.slope import SlopeLikelihood


def films_of(*, n_films, shift, rise, seed):
    """Draw 60 clips a film: the log odds of a clip are twice its score, before its film is shifted.

    A film's scores are shifted by `shift` times a standard normal number, which is unknown to its labels. By
    `rise` times another such number both its scores and its log odds are higher.
    """
    rng = np.random.default_rng(seed)
    movies = np.repeat(np.arange(n_films), 60)
    content = rng.normal(size=movies.size)
    rise_of_clip = rise * rng.normal(size=n_films)[movies]
    y = (rng.random(movies.size) < expit(2 * content - 1 + 3 * rise_of_clip)).astype(int)
    scores = content + rise_of_clip + shift * rng.normal(size=n_films)[movies]
    return HeldOut(scores, y, movies)


def test_a_probability_of_nine_tenths_is_right_nine_times_in_ten_in_new_films_that_are_shifted():
    """Within a film the log odds rise by 2 a unit of the score; a film's shift has the SD 1.

    With the slope within films, clips of new films with p above .8 would be positive in two thirds only.
    """
    training = films_of(n_films=30, shift=1.0, rise=0.0, seed=0)
    new_films = films_of(n_films=200, shift=1.0, rise=0.0, seed=1)

    calibration = Calibration.fit(training)

    p = calibration.probability(new_films.scores)
    is_sure = p > 0.8
    assert is_sure.sum() > 100
    assert new_films.y[is_sure].mean() == pytest.approx(p[is_sure].mean(), abs=0.07)


def test_slopes_stay_those_within_films_where_no_film_is_shifted():
    """One sigmoid holds for all clips of twelve films: they need not be flattened, but for the draw."""
    held_out = films_of(n_films=12, shift=0.0, rise=0.0, seed=2)
    slope_within = SlopeLikelihood.of_scores(held_out).posterior().median_above_0

    across_films = SlopeAcrossFilms.of_scores(held_out, slope_within)

    assert across_films.factor() >= 0.95


def test_slopes_are_never_steeper_than_within_films():
    """Films whose scores are higher by 1 have log odds that are higher by 3, where 2 are due to the clips."""
    held_out = films_of(n_films=30, shift=0.0, rise=1.0, seed=3)
    slope_within = SlopeLikelihood.of_scores(held_out).posterior().median_above_0

    across_films = SlopeAcrossFilms.of_scores(held_out, slope_within)

    assert across_films.factor() == 1.0


def test_the_factor_without_a_film_is_that_of_the_other_films():
    """One film of thirteen is shifted by 6, and without it the slopes need not be flattened."""
    alike = films_of(n_films=13, shift=0.0, rise=0.0, seed=4)
    is_film_5 = alike.movies == 5
    held_out = HeldOut(alike.scores + 6 * is_film_5, alike.y, alike.movies)
    slope_within = SlopeLikelihood.of_scores(held_out).posterior().median_above_0

    across_films = SlopeAcrossFilms.of_scores(held_out, slope_within)

    assert across_films.factor() < 0.8
    assert across_films.factor(without=5) > 0.9


def test_clips_of_a_film_keep_the_order_of_their_scores_even_if_scores_fall_from_film_to_film():
    """Films with the highest scores have the fewest positives, by their shifts; within films labels rise."""
    alike = films_of(n_films=8, shift=0.0, rise=0.0, seed=5)
    share_of_film = np.bincount(alike.movies, alike.y) / 60
    held_out = HeldOut(alike.scores - 40 * share_of_film[alike.movies], alike.y, alike.movies)

    p_of_lower, p_of_higher = Calibration.fit(held_out).probability([0.0, 1.0])

    assert p_of_lower < p_of_higher


@pytest.mark.parametrize(("movies", "said"), [(["a"] * 4, "of 1 film:"), ([], "of 0 films:")])
def test_clips_of_a_single_film_cannot_be_calibrated(movies, said):
    """No film can be left out, so that nothing tells how far probabilities are off on a new film."""
    n_clips = len(movies)
    held_out = HeldOut(
        np.arange(n_clips) + 0.5, np.arange(n_clips) % 2, np.array(movies, dtype=str), training_means=0.0
    )

    with pytest.raises(ProtocolError, match=said):
        Calibration.fit(held_out)
