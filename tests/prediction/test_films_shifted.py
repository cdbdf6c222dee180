"""Scores of whole films may be shifted: a clip of a new film is then less sure than within its film.

The logit of a clip is its score times a slope, plus an intercept. If all scores of a film may be too high or
too low, a score says less of a clip in a new film: the slope that holds within films is flattened, that is
multiplied by a factor of at most 1.
"""

import numpy as np
import pytest
from scipy.special import expit

from obygaze_models.errors import ProtocolError
from obygaze_models.prediction.calibration import Calibration, SlopeAcrossFilms
from obygaze_models.protocol import HeldOut
from obygaze_models.protocol.slope import SlopeLikelihood

CLIPS_A_FILM = 60


def clips_of_films(*, n_films, sd_of_shift=0.0, sd_of_positive_films=0.0, seed):
    """Draw 60 clips a film, whose log odds are twice their score less 1, where no film differs.

    The scores of a film are shifted by a normal number of the SD `sd_of_shift`, of which its labels know
    nothing. Where films differ in how positive they are, a normal number of the SD `sd_of_positive_films` is
    added to the scores of a film, and three times that number to its log odds.
    """
    rng = np.random.default_rng(seed)
    movies = np.repeat(np.arange(n_films), CLIPS_A_FILM)
    content = rng.normal(size=movies.size)
    rise_of_clip = sd_of_positive_films * rng.normal(size=n_films)[movies]
    y = (rng.random(movies.size) < expit(2 * content - 1 + 3 * rise_of_clip)).astype(int)
    scores = content + rise_of_clip + sd_of_shift * rng.normal(size=n_films)[movies]
    return HeldOut(scores, y, movies)


def fit_factor_of_slope(held_out):
    """Estimate the factor by which the slope within films is multiplied for clips of new films."""
    slope_within_films = SlopeLikelihood.of_scores(held_out).posterior().median_above_0
    return SlopeAcrossFilms.of_scores(held_out, slope_within_films)


def test_probabilities_of_clips_are_right_in_new_films_whose_scores_are_shifted():
    """Within a film the log odds rise by 2 a unit of the score; films are shifted with an SD of 1.

    Clips of 200 new films with a probability above .8 must be positive as often as these say, to .07. With
    the slope that holds within films, only two thirds of them would be.
    """
    training = clips_of_films(n_films=30, sd_of_shift=1.0, seed=0)
    new_films = clips_of_films(n_films=200, sd_of_shift=1.0, seed=1)

    calibration = Calibration.fit(training)

    p = calibration.probability(new_films.scores)
    is_sure = p > 0.8
    assert is_sure.sum() > 100
    assert new_films.y[is_sure].mean() == pytest.approx(p[is_sure].mean(), abs=0.07)


def test_the_slope_is_hardly_flattened_where_the_scores_of_no_film_are_shifted():
    """One slope and one intercept hold for the clips of all twelve films; only their draw may flatten it."""
    held_out = clips_of_films(n_films=12, seed=2)

    assert fit_factor_of_slope(held_out).factor() >= 0.95


def test_the_slope_is_never_made_steeper_than_it_is_within_films():
    """Within a film the log odds rise by 2 a unit of the score, and from film to film by 3.

    So a steeper slope than that within films would fit all clips best, but the factor is 1 at most.
    """
    held_out = clips_of_films(n_films=30, sd_of_positive_films=1.0, seed=3)

    assert fit_factor_of_slope(held_out).factor() == 1.0


def test_a_film_that_is_left_out_does_not_count_in_the_factor_of_the_slope():
    """Of thirteen films only film 5 is shifted, by 6; scores within a film have an SD of 1.

    With it the slope is flattened, to less than .8 of that within films. Without it the factor is near 1.
    """
    alike = clips_of_films(n_films=13, seed=4)
    is_film_5 = alike.movies == 5
    held_out = HeldOut(alike.scores + 6 * is_film_5, alike.y, alike.movies)

    across_films = fit_factor_of_slope(held_out)

    assert across_films.factor() < 0.8
    assert across_films.factor(without=5) > 0.9


def test_a_clip_of_a_higher_score_is_the_more_probable_even_if_films_of_higher_scores_have_fewer_positives():
    """Within each of eight films, clips of higher scores are more often positive.

    From film to film it is the other way: the scores of a film are lowered by 40 times its share of positive
    clips, far more than the clips of a film differ by. The slope must not turn round for that.
    """
    alike = clips_of_films(n_films=8, seed=5)
    share_of_film = np.bincount(alike.movies, weights=alike.y) / CLIPS_A_FILM
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
