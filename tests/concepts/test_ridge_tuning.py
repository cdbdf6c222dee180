"""Ridge CAVs choose their penalty by movies left out, in closed form, and from training clips alone."""

import numpy as np
import pytest

from obygaze_models.concepts import feature_axes, ridge_hyperplanes
from obygaze_models.concepts.feature_axes import mean_variance
from obygaze_models.concepts.ridge_tuning import PENALTIES, tuned_ridge
from obygaze_models.errors import ConceptError


def planted(n, n_features, *, strength=(1.5, 0.0), n_movies=6, seed=0):
    """Features with a direction for each concept, of the given strength, and films apart."""
    rng = np.random.default_rng(seed)
    movies = np.array([f"m{place % n_movies}" for place in range(n)])
    present = rng.random((n, len(strength))) < 0.4
    axes = np.linalg.qr(rng.normal(size=(n_features, n_features)))[0]
    X = rng.normal(size=(n, n_features)) + 5 + (present * strength) @ axes[: len(strength)]
    X += rng.normal(size=(n_movies, n_features))[np.arange(n) % n_movies]
    return X.astype(np.float32), present, movies


@pytest.mark.long  # alone it refits without each movie, clips fewer than features and more
@pytest.mark.parametrize(("n", "n_features"), [(240, 12), (60, 150)])
def test_losses_distances_and_planes_are_those_of_refitting_without_each_movie(n, n_features):
    X, present, movies = planted(n, n_features)
    found = tuned_ridge(X, present, movies)
    unit = mean_variance(X - X.mean(axis=0, dtype=np.float64))
    for concept in range(present.shape[1]):
        y = present[:, [concept]]
        losses = []
        for penalty in PENALTIES:
            error = np.empty(n)
            for movie in np.unique(movies):
                out = movies == movie
                # Ridge with an intercept that is not penalised, as scikit-learn has it.
                train = X[~out].astype(np.float64)
                centred = train - train.mean(axis=0)
                w = np.linalg.solve(
                    centred.T @ centred + penalty * unit * np.eye(n_features), centred.T @ y[~out, 0]
                )
                error[out] = (X[out] - train.mean(axis=0)) @ w + y[~out].mean() - y[out, 0]
            losses.append(np.mean(error**2))
        np.testing.assert_allclose(found.losses[:, concept], losses, rtol=1e-8)
        assert found.chosen[concept] == np.argmin(losses)
        C = 1 / (found.penalties[concept] * unit)
        whole = ridge_hyperplanes(X, y, C).distances(X)[:, 0]
        plane = found.planes.distances(X)[:, concept]
        np.testing.assert_allclose(plane, whole, atol=1e-8)
        for movie in np.unique(movies):
            out = movies == movie
            left_out = ridge_hyperplanes(X[~out], y[~out], C).distances(X[out])[:, 0]
            np.testing.assert_allclose(found.distances[out, concept], left_out, atol=1e-8)


def test_a_concept_that_is_not_there_is_shrunk_more_than_one_that_is():
    X, present, movies = planted(300, 40, strength=(3.0, 0.0))
    found = tuned_ridge(X, present, movies)
    assert found.penalties[1] == max(PENALTIES) > found.penalties[0]


def test_penalties_do_not_depend_on_the_unit_of_the_features_nor_on_the_other_concepts():
    X, present, movies = planted(240, 20)
    found, large = tuned_ridge(X, present, movies), tuned_ridge(1000 * X, present, movies)
    np.testing.assert_allclose(found.losses, large.losses, rtol=1e-5)
    alone = tuned_ridge(X, present[:, [1]], movies)
    np.testing.assert_allclose(alone.losses[:, 0], found.losses[:, 1], rtol=1e-10)
    np.testing.assert_allclose(alone.distances[:, 0], found.distances[:, 1], rtol=1e-8, atol=1e-10)


def test_a_concept_of_one_movie_and_constant_features_are_refused_by_name():
    X, present, movies = planted(60, 5)
    present[:, 1] = (movies == "m3") & present[:, 1]
    with pytest.raises(ConceptError, match="concept 1, without movie m3"):
        tuned_ridge(X, present, movies)
    with pytest.raises(ConceptError, match="constant"):
        tuned_ridge(np.ones_like(X), present[:, [0]], movies)


def test_what_is_kept_of_the_same_features_changes_no_bit_whatever_the_movies_and_concepts():
    X, present, movies = planted(90, 20)
    others = np.roll(movies, 45)
    others[:7] = "m0"
    cases = [(present, movies), (present[:, :1], others), (present[:, 1:], movies), (present, others)]

    def tuned(marks, films):
        found = tuned_ridge(X, marks, films)
        return found.losses.tobytes(), found.distances.tobytes(), found.planes.weights.tobytes()

    fresh = []
    for case in cases:
        feature_axes._KEPT.clear()
        fresh.append(tuned(*case))
    assert [tuned(*case) for case in cases] == fresh
