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


@pytest.fixture(scope="module")
def values_and_presences():
    """Values [N, 3] and presences [N, 3] of a planted concept, of noise, and of a concept that never is."""
    rng = np.random.default_rng(0)
    present = (rng.random((240, 3)) < 0.3).astype(float)
    values = rng.normal(size=(240, 3)) + np.array([2.0, 0.0, 0.0]) * present
    present[:, 2] = 0
    return values, present


@pytest.fixture(scope="module")
def metrics(values_and_presences):
    """The rows of a card for the three concepts."""
    return concept_metrics("m", ("Gun", "Light", "Never"), *values_and_presences, MOVIES)


def test_the_interval_of_a_planted_concept_is_above_chance(metrics):
    planted, _, _ = metrics
    assert planted["task"] == "concept:Gun"
    assert planted["movie_low"] > planted["movie_chance"]


def test_the_metric_of_a_concept_is_the_mean_average_precision_of_films(metrics, values_and_presences):
    planted, _, _ = metrics
    values, present = values_and_presences
    of_films = [
        average_precision(present[film == MOVIES, 0], values[film == MOVIES, 0]) for film in np.unique(MOVIES)
    ]
    assert planted["movie_mean"] == pytest.approx(np.mean(of_films))
    assert planted["n_movies"] == 6


def test_the_interval_of_values_of_noise_includes_chance(metrics):
    _, noise, _ = metrics
    assert noise["movie_low"] < noise["movie_chance"] < noise["movie_high"]


def test_a_concept_that_no_clip_has_is_without_a_metric(metrics):
    _, _, never = metrics
    assert (never["movie_mean"], never["movie_low"], never["n_movies"]) == (None, None, 0)


@pytest.fixture(scope="module")
def held_out():
    """Held-out scores and labels of four films."""
    rng = np.random.default_rng(1)
    movies = np.repeat(["a", "b", "c", "d"], [20, 30, 40, 50])
    scores = rng.normal(size=140)
    y = (rng.random(140) < expit(2 * scores - 1)).astype(int)
    return HeldOut(scores, y, movies)


@pytest.fixture(scope="module")
def calibration(held_out):
    return Calibration.fit(held_out, n_draws=10)


@pytest.fixture(scope="module")
def errors_of_films(held_out):
    """How far the mean probability of each film, calibrated without it, is from its share of positives."""
    p = left_out_probabilities(held_out, SlopeLikelihood.of_scores(held_out))
    return [abs((p - held_out.y)[held_out.movies == film].mean()) for film in np.unique(held_out.movies)]


def test_a_calibration_has_the_mean_and_the_largest_error_of_films_left_out(calibration, errors_of_films):
    assert calibration.film_error == pytest.approx(np.mean(errors_of_films))
    assert calibration.worst_film_error == pytest.approx(max(errors_of_films))


def test_the_margin_of_a_new_film_is_the_80_percent_prediction_interval_by_students_t(
    calibration, errors_of_films
):
    n_films = len(errors_of_films)
    root_mean_square = np.sqrt(np.mean(np.square(errors_of_films)))
    # 80 % of a t distribution with 4 degrees of freedom lie between its quantiles of .1 and .9.
    expected = student_t(n_films).ppf(0.9) * np.sqrt(1 + 1 / n_films) * root_mean_square
    assert calibration.film_margin == pytest.approx(expected, rel=1e-3)


def test_the_bracket_of_a_share_is_the_margin_to_both_sides_within_0_and_1(calibration):
    margin = calibration.film_margin
    assert calibration.bracket(0.5) == (0.5 - margin, 0.5 + margin)
    assert calibration.bracket(0.001)[0] == 0
    assert calibration.bracket(0.999)[1] == 1


def test_the_labels_of_a_film_do_not_change_its_own_left_out_probabilities():
    rng = np.random.default_rng(2)
    movies, scores = np.repeat(np.arange(5), 30), rng.normal(size=150)
    y = (rng.random(150) < expit(scores)).astype(int)
    is_left_out = movies == 3
    with_reversed_film = np.where(is_left_out, 1 - y, y)

    def probabilities_of_film(labels):
        held_out = HeldOut(scores, labels, movies)
        return left_out_probabilities(held_out, SlopeLikelihood.of_scores(held_out))[is_left_out]

    np.testing.assert_array_equal(probabilities_of_film(with_reversed_film), probabilities_of_film(y))


@pytest.mark.parametrize("n_films", [3, 6, 12, 40])
def test_the_error_of_a_new_film_is_within_the_margin_in_four_of_five_cases(n_films):
    rng = np.random.default_rng(n_films)
    errors_of_known_films = rng.normal(size=(4000, n_films))
    # Of a new film, the error of the sigmoid, which is fitted on n films, adds to that of the film.
    error_of_new_film = rng.normal(size=4000) * np.sqrt(1 + 1 / n_films)
    margins = [half_width_of_bracket(errors) for errors in errors_of_known_films]
    assert (np.abs(error_of_new_film) <= margins).mean() == pytest.approx(0.8, abs=0.02)


@pytest.fixture(scope="module")
def card(shelf):
    """The card of a bottleneck of the concepts Gun and Dim light, which are both planted."""
    return load_model(shelf.paths["pcbm_lr"]).card


@pytest.mark.long
def test_a_card_has_the_length_of_clips_and_the_errors_of_films(card):
    assert card.clip_s == 4.0
    assert 0 < card.calibration["film_error"] <= card.calibration["worst_film_error"] < 1


def test_a_card_has_a_metric_of_each_concept(card):
    low_and_chance = {
        row["task"]: (row["movie_low"], row["movie_chance"])
        for row in card.metrics
        if row["task"].startswith("concept:")
    }
    assert low_and_chance.keys() == {"concept:Gun", "concept:Dim light"}
    assert all(low > chance for low, chance in low_and_chance.values())


def test_a_card_without_length_of_clips_and_evidence_is_read(card):
    without = replace(card, clip_s=None, evidence=None)
    read = parse_card(without.to_json() | {"arrays": {}}, "without.model")
    assert read.clip_s is None
    assert read.evidence is None


def test_a_card_with_clips_of_a_negative_length_is_refused(card):
    with pytest.raises(ModelError, match="clip_s"):
        parse_card(card.to_json() | {"arrays": {}, "clip_s": -1}, "bad.model")
