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
def test_the_bracket_has_a_width_though_all_training_films_were_chosen_to_be_half_positive(n_films, skill):
    """The bracket says how far the share of a new film may be from .3, which the model expects.

    Of each training film 20 positive and 20 negative clips were chosen, so that the model's shares of these
    films have hardly an error. A new film isn't chosen so. By chance alone, the share of 40 clips that are
    positive by the model's probabilities p varies with the standard deviation sqrt(mean of p (1 - p) / 40).
    To each side the bracket is wider than a third of that. It is narrower than two deviations of clips of
    which nothing is known: p = .5, so p (1 - p) = .25.
    """
    n_clips_of_film = 40
    held_out = held_out_films(np.repeat([0, 1], n_clips_of_film // 2), n_films=n_films, skill=skill)

    calibration = Calibration.fit(held_out)

    p = calibration.probability(held_out.scores)
    deviation = np.sqrt((p * (1 - p)).mean() / n_clips_of_film)
    low, high = calibration.bracket(0.3)
    half_width = (high - low) / 2
    assert half_width > deviation / 3
    assert half_width < 2 * np.sqrt(0.25 / n_clips_of_film)


def test_errors_of_films_that_differ_by_chance_alone_are_believed_in_99_of_100_corpora():
    """In each of 2,000 corpora, the shares of eight films have errors as chance gives them.

    Errors that are smaller than those of 99 in 100 such corpora are taken for those of chosen clips, and
    replaced. So they must be replaced in one corpus of a hundred, 20. A film has 40 clips, which are positive
    with the probability .5: the variance of its share is .25 / 40.
    """
    rng = np.random.default_rng(0)
    variances_by_chance = np.full(8, 0.25 / 40)
    n_corpora = 2000

    n_replaced = 0
    for _ in range(n_corpora):
        measured_errors = rng.normal(0, np.sqrt(variances_by_chance))
        is_replaced = errors_of_new_films(measured_errors, variances_by_chance) is not measured_errors
        if is_replaced:
            n_replaced += 1

    assert n_replaced == pytest.approx(0.01 * n_corpora, abs=12)  # 2.7 standard errors


def test_errors_of_shares_that_are_larger_than_chance_gives_them_are_kept_as_they_were_measured():
    """The shares of three films are off by .1 to .2; by chance alone they would be by .03, the root of .001.

    Such films differ from each other, and their own errors say by how much.
    """
    measured_errors = np.array([0.1, -0.2, 0.15])
    variances_by_chance = np.full(3, 0.001)

    assert errors_of_new_films(measured_errors, variances_by_chance) is measured_errors


def test_errors_stay_as_they_were_measured_if_a_model_is_certain_of_every_clip_of_a_film():
    """Errors of shares in films left out are raised if they are smaller than chance would leave them.

    Chance leaves none, a variance of 0, in the first of two films here: what is measured can't be compared.
    """
    errors = np.zeros(2)
    variances_by_chance = np.array([0.0, 0.01])

    assert errors_of_new_films(errors, variances_by_chance) is errors
