"""A kept model tells how well concepts are found, how far films were off, and how long its clips were."""

import numpy as np
import pytest
from msgspec.structs import replace
from scipy.special import expit

from obygaze_models.errors import ModelError
from obygaze_models.evaluation.metrics import average_precision
from obygaze_models.persistence.card import parse_card
from obygaze_models.prediction.calibration import Calibration, half_width_of_bracket, left_out_probabilities
from obygaze_models.prediction.final import concept_metrics
from obygaze_models.prediction.saved_model import load_model
from obygaze_models.protocol import HeldOut
from obygaze_models.protocol.slope import SlopeLikelihood


def test_a_planted_concept_is_found_and_noise_is_not():
    rng = np.random.default_rng(0)
    movies = np.repeat([f"f{number}" for number in range(6)], 40)
    present = (rng.random((240, 3)) < 0.3).astype(float)
    values = rng.normal(size=(240, 3)) + np.array([2.0, 0.0, 0.0]) * present
    present[:, 2] = 0
    result, noise, never = concept_metrics("m", ("Gun", "Light", "Never"), values, present, movies)
    assert result["movie_low"] > result["movie_chance"]
    assert noise["movie_low"] < noise["movie_chance"] < noise["movie_high"]
    own = [average_precision(present[movies == m, 0], values[movies == m, 0]) for m in np.unique(movies)]
    assert result["movie_mean"] == pytest.approx(np.mean(own))
    assert (result["task"], result["n_movies"]) == ("concept:Gun", 6)
    assert (never["movie_mean"], never["movie_low"], never["n_movies"]) == (None, None, 0)


def test_the_error_of_films_shares_is_of_films_left_out():
    rng = np.random.default_rng(1)
    movies = np.repeat(["a", "b", "c", "d"], [20, 30, 40, 50])
    scores = rng.normal(size=140)
    held_out = HeldOut(scores, (rng.random(140) < expit(2 * scores - 1)).astype(int), movies)
    result = Calibration.fit(held_out, n_draws=10)
    p = left_out_probabilities(held_out, SlopeLikelihood.of_scores(held_out))
    errors = [abs((p - held_out.y)[movies == movie].mean()) for movie in np.unique(movies)]
    assert result.film_error == pytest.approx(np.mean(errors))
    assert result.worst_film_error == pytest.approx(max(errors))
    factor = 1.533 * np.sqrt(1 + 1 / 4)  # of Student's t with 4 degrees of freedom, 90 % lie below 1.533
    assert result.film_margin == pytest.approx(factor * np.sqrt(np.mean(np.square(errors))), rel=1e-3)
    assert result.bracket(0.5) == (0.5 - result.film_margin, 0.5 + result.film_margin)
    assert result.bracket(0.001)[0] == 0
    assert result.bracket(0.999)[1] == 1


def test_a_film_left_out_has_no_part_in_its_own_probabilities():
    rng = np.random.default_rng(2)
    movies, scores = np.repeat(np.arange(5), 30), rng.normal(size=150)
    y = (rng.random(150) < expit(scores)).astype(int)
    out = movies == 3
    turned = np.where(out, 1 - y, y)
    of_others = []
    for labels in (y, turned):
        held_out = HeldOut(scores, labels, movies)
        of_others.append(left_out_probabilities(held_out, SlopeLikelihood.of_scores(held_out))[out])
    np.testing.assert_array_equal(*of_others)


@pytest.mark.parametrize("n_films", [3, 6, 12, 40])
def test_the_margin_holds_four_new_errors_in_five_whatever_the_number_of_films(n_films):
    rng = np.random.default_rng(n_films)
    known, new = rng.normal(size=(4000, n_films)), rng.normal(size=4000)
    # The new film's error has the spread of the sigmoid's own error beside that of films.
    held = np.abs(new) * np.sqrt(1 + 1 / n_films) <= [half_width_of_bracket(errors) for errors in known]
    assert held.mean() == pytest.approx(0.8, abs=0.02)


@pytest.mark.long
def test_a_card_keeps_them_and_may_lack_what_is_not_known(shelf):
    model = load_model(shelf.paths["pcbm_lr"])
    card = model.card
    assert card.clip_s == 4.0
    assert 0 < card.calibration["film_error"] <= card.calibration["worst_film_error"] < 1
    rows = {row["task"]: row for row in card.metrics if row["task"].startswith("concept:")}
    assert rows.keys() == {"concept:Gun", "concept:Dim light"}
    assert all(row["movie_low"] > row["movie_chance"] for row in rows.values())
    without = replace(card, clip_s=None, evidence=None)
    read = parse_card(without.to_json() | {"arrays": {}}, "without.model")
    assert (read.clip_s, read.evidence) == (None, None)
    with pytest.raises(ModelError, match="clip_s"):
        parse_card(card.to_json() | {"arrays": {}, "clip_s": -1}, "bad.model")
