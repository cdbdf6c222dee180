"""A card says how well concepts are found, and how far the predicted share of positives of a film is off."""

import numpy as np
import pytest
from msgspec.structs import replace
from scipy.special import expit
from scipy.stats import t as student_t

from obygaze_models.errors import ModelError
from obygaze_models.evaluation.metrics import average_precision
from obygaze_models.persistence.card import parse_card
from obygaze_models.prediction.calibration import Calibration, half_width_of_bracket, left_out_probabilities
from obygaze_models.prediction.final import concept_metrics
from obygaze_models.prediction.saved_model import load_model
from obygaze_models.protocol import HeldOut
from obygaze_models.protocol.slope import SlopeLikelihood

MOVIES = np.repeat([f"f{number}" for number in range(6)], 40)


def test_a_card_has_the_average_precision_of_each_concept_beside_chance():
    """Gun is planted, Light is noise, and no clip has the third concept, Never."""
    rng = np.random.default_rng(0)
    present = (rng.random((240, 3)) < 0.3).astype(float)
    values = rng.normal(size=(240, 3)) + np.array([2.0, 0.0, 0.0]) * present
    present[:, 2] = 0

    planted, noise, never = concept_metrics("m", ("Gun", "Light", "Never"), values, present, MOVIES)

    assert planted["task"] == "concept:Gun"
    assert planted["n_movies"] == 6
    of_films = []
    for film in np.unique(MOVIES):
        is_in_film = film == MOVIES
        of_films.append(average_precision(present[is_in_film, 0], values[is_in_film, 0]))
    assert planted["movie_mean"] == pytest.approx(np.mean(of_films))
    assert planted["movie_low"] > planted["movie_chance"]
    assert noise["movie_low"] < noise["movie_chance"] < noise["movie_high"]
    assert (never["movie_mean"], never["movie_low"], never["n_movies"]) == (None, None, 0)


@pytest.fixture(scope="module")
def held_out_scores_of_four_films():
    """Films a, b, c and d of 20 to 50 clips, whose labels are more probable the higher the score."""
    rng = np.random.default_rng(1)
    movies = np.repeat(["a", "b", "c", "d"], [20, 30, 40, 50])
    scores = rng.normal(size=140)
    y = (rng.random(140) < expit(2 * scores - 1)).astype(int)
    return HeldOut(scores, y, movies)


def errors_of_films(held_out):
    """Of each film, the error of its mean probability, calibrated without it, as its share of positives."""
    p = left_out_probabilities(held_out, SlopeLikelihood.of_scores(held_out))
    errors = []
    for film in ("a", "b", "c", "d"):
        is_in_film = held_out.movies == film
        errors.append(abs((p - held_out.y)[is_in_film].mean()))
    return errors


def test_a_calibration_has_the_errors_of_films_left_out(held_out_scores_of_four_films):
    """A film's share of positives is predicted by its mean probability, calibrated without that film."""
    calibration = Calibration.fit(held_out_scores_of_four_films, n_draws=10)

    errors = errors_of_films(held_out_scores_of_four_films)
    assert calibration.film_error == pytest.approx(np.mean(errors))
    assert calibration.worst_film_error == pytest.approx(max(errors))


def test_a_calibration_has_a_margin_that_the_share_of_four_new_films_in_five_lies_in(
    held_out_scores_of_four_films,
):
    """The margin is half of the 80 % prediction interval by Student's t, from the errors of four films.

    80 % of the distribution lie between its quantiles of .1 and .9.
    """
    calibration = Calibration.fit(held_out_scores_of_four_films, n_draws=10)

    errors = errors_of_films(held_out_scores_of_four_films)
    root_mean_square = np.sqrt(np.mean(np.square(errors)))
    n_films = 4
    margin = student_t(n_films).ppf(0.9) * np.sqrt(1 + 1 / n_films) * root_mean_square
    assert calibration.film_margin == pytest.approx(margin, rel=1e-3)


def test_a_bracket_lies_a_margin_around_a_share_and_within_0_and_1(held_out_scores_of_four_films):
    calibration = Calibration.fit(held_out_scores_of_four_films, n_draws=10)
    margin = calibration.film_margin

    assert calibration.bracket(0.5) == (0.5 - margin, 0.5 + margin)
    low_of_a_tiny_share, _ = calibration.bracket(0.001)
    assert low_of_a_tiny_share == 0
    _, high_of_almost_all = calibration.bracket(0.999)
    assert high_of_almost_all == 1


def test_the_labels_of_a_film_do_not_change_its_own_left_out_probabilities():
    """Five films have 30 clips each. The probabilities of a film come of a calibration on the four others.

    So those of film 3 stay the same, to the last bit, where all its labels are reversed.
    """
    rng = np.random.default_rng(2)
    movies = np.repeat(np.arange(5), 30)
    scores = rng.normal(size=150)
    y = (rng.random(150) < expit(scores)).astype(int)
    is_film_3 = movies == 3
    y_with_film_3_reversed = np.where(is_film_3, 1 - y, y)

    def probabilities_of_film_3(labels):
        held_out = HeldOut(scores, labels, movies)
        return left_out_probabilities(held_out, SlopeLikelihood.of_scores(held_out))[is_film_3]

    p = probabilities_of_film_3(y)
    p_with_labels_reversed = probabilities_of_film_3(y_with_film_3_reversed)

    np.testing.assert_array_equal(p_with_labels_reversed, p)


@pytest.mark.parametrize("n_films", [3, 40])
def test_the_error_of_a_new_film_is_within_the_margin_in_four_of_five_cases(n_films):
    """4000 times, errors of n known films are drawn, of which a margin is computed, and that of a new film.

    The standard deviation of a film's error is 1. The calibration is fitted on n films, and its own error,
    with the variance 1/n, adds to that of the new film.
    """
    rng = np.random.default_rng(n_films)
    errors_of_known_films = rng.normal(size=(4000, n_films))
    errors_of_new_film = rng.normal(size=4000) * np.sqrt(1 + 1 / n_films)

    margins = [half_width_of_bracket(errors) for errors in errors_of_known_films]

    is_within_margin = np.abs(errors_of_new_film) <= margins
    assert is_within_margin.mean() == pytest.approx(0.8, abs=0.02)


@pytest.mark.long
def test_a_card_has_the_length_of_clips_the_errors_of_films_and_a_metric_of_each_concept(trained_models):
    """Gun and Dim light are both planted, so that both are found better than by chance. Clips last 4 s."""
    card = load_model(trained_models.paths["pcbm_lr"]).card

    assert card.clip_s == 4.0
    assert 0 < card.calibration["film_error"] <= card.calibration["worst_film_error"] < 1
    of_concepts = {row["task"]: row for row in card.metrics if row["task"].startswith("concept:")}
    assert of_concepts.keys() == {"concept:Gun", "concept:Dim light"}
    for row in of_concepts.values():
        assert row["movie_low"] > row["movie_chance"]


@pytest.mark.long
def test_a_card_without_length_of_clips_and_evidence_is_read(trained_models):
    """Both are None where they are not known."""
    card = load_model(trained_models.paths["pcbm_lr"]).card
    without = replace(card, clip_s=None, evidence=None)

    read = parse_card(without.to_json() | {"arrays": {}}, "without.model")

    assert read.clip_s is None
    assert read.evidence is None


@pytest.mark.long
def test_a_card_with_a_negative_length_of_clips_is_refused(trained_models):
    """`clip_s` is in seconds. The card of a sound model gets -1 there."""
    card = load_model(trained_models.paths["pcbm_lr"]).card
    with_negative_length = card.to_json() | {"arrays": {}, "clip_s": -1}

    with pytest.raises(ModelError, match="clip_s"):
        parse_card(with_negative_length, "bad.model")
