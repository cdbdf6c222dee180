"""Ridge CAVs choose their penalty by movies left out, in closed form, and from training clips alone."""

import numpy as np
import pytest

from obygaze_models.concepts import feature_axes, ridge_hyperplanes
from obygaze_models.concepts.feature_axes import variance_per_direction
from obygaze_models.concepts.ridge_tuning import PENALTIES, tuned_ridge
from obygaze_models.errors import ConceptError


def planted(n, n_features, *, strength=(1.5, 0.0), n_movies=6, seed=0):
    """Draw features that move along a direction for each concept, by its strength, and with each film."""
    rng = np.random.default_rng(seed)
    movies = np.array([f"m{row % n_movies}" for row in range(n)])
    present = rng.random((n, len(strength))) < 0.4
    axes = np.linalg.qr(rng.normal(size=(n_features, n_features)))[0]
    X = rng.normal(size=(n, n_features)) + 5 + (present * strength) @ axes[: len(strength)]
    X += rng.normal(size=(n_movies, n_features))[np.arange(n) % n_movies]
    return X.astype(np.float32), present, movies


def errors_of_refits(X, y, movies, penalty):
    """Compute the error of each clip's presence y [N] by a ridge regression without its movie.

    The intercept is not penalised, as scikit-learn has it.
    """
    errors = np.empty(len(y))
    for movie in np.unique(movies):
        held_out = movies == movie
        train = X[~held_out].astype(np.float64)
        centred = train - train.mean(axis=0)
        hessian = centred.T @ centred + penalty * np.eye(X.shape[1])
        weights = np.linalg.solve(hessian, centred.T @ y[~held_out])
        predicted = (X[held_out] - train.mean(axis=0)) @ weights + y[~held_out].mean()
        errors[held_out] = predicted - y[held_out]
    return errors


@pytest.mark.long  # refits without each movie
@pytest.mark.parametrize(("n", "n_features"), [(240, 12), (60, 150)], ids=["more clips", "more features"])
def test_losses_distances_and_planes_are_those_of_refitting_without_each_movie(n, n_features):
    X, present, movies = planted(n, n_features)
    tuned = tuned_ridge(X, present, movies)
    unit = variance_per_direction(X - X.mean(axis=0, dtype=np.float64))
    for concept in range(present.shape[1]):
        y = present[:, concept]
        losses = []
        for penalty in PENALTIES:
            errors = errors_of_refits(X, y, movies, penalty * unit)
            losses.append(np.mean(errors**2))
        np.testing.assert_allclose(tuned.losses[:, concept], losses, rtol=1e-8)
        assert tuned.chosen[concept] == np.argmin(losses)
        C = 1 / (tuned.penalties[concept] * unit)
        expected = ridge_hyperplanes(X, y[:, None], C).distances(X)[:, 0]
        np.testing.assert_allclose(tuned.hyperplanes.distances(X)[:, concept], expected, atol=1e-8)
        for movie in np.unique(movies):
            held_out = movies == movie
            plane = ridge_hyperplanes(X[~held_out], y[~held_out, None], C)
            expected = plane.distances(X[held_out])[:, 0]
            np.testing.assert_allclose(tuned.distances[held_out, concept], expected, atol=1e-8)


def test_a_concept_that_is_not_there_is_shrunk_more_than_one_that_is():
    X, present, movies = planted(300, 40, strength=(3.0, 0.0))
    there, not_there = tuned_ridge(X, present, movies).penalties
    assert not_there == max(PENALTIES)
    assert there < not_there


def test_penalties_do_not_depend_on_the_unit_of_the_features_nor_on_the_other_concepts():
    X, present, movies = planted(240, 20)
    tuned = tuned_ridge(X, present, movies)
    in_other_unit = tuned_ridge(1000 * X, present, movies)
    np.testing.assert_allclose(tuned.losses, in_other_unit.losses, rtol=1e-5)
    alone = tuned_ridge(X, present[:, [1]], movies)
    np.testing.assert_allclose(alone.losses[:, 0], tuned.losses[:, 1], rtol=1e-10)
    np.testing.assert_allclose(alone.distances[:, 0], tuned.distances[:, 1], rtol=1e-8, atol=1e-10)


def test_constant_features_and_a_concept_of_one_movie_are_refused():
    X, present, movies = planted(60, 5)
    with pytest.raises(ConceptError, match="constant"):
        tuned_ridge(np.ones_like(X), present[:, [0]], movies)
    present[:, 1] = (movies == "m3") & present[:, 1]
    with pytest.raises(ConceptError, match="concept 1, without movie m3"):
        tuned_ridge(X, present, movies)


def test_what_is_kept_of_the_same_features_changes_no_bit_whatever_the_movies_and_concepts():
    X, present, movies = planted(90, 20)
    other_movies = np.roll(movies, 45)
    other_movies[:7] = "m0"
    cases = [
        (present, movies),
        (present[:, :1], other_movies),
        (present[:, 1:], movies),
        (present, other_movies),
    ]

    def bytes_of(presences, movies_of_clips):
        tuned = tuned_ridge(X, presences, movies_of_clips)
        return tuned.losses.tobytes(), tuned.distances.tobytes(), tuned.hyperplanes.weights.tobytes()

    fresh = []
    for case in cases:
        feature_axes._CACHE.clear()
        fresh.append(bytes_of(*case))
    assert [bytes_of(*case) for case in cases] == fresh
