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


MORE_CLIPS_OR_MORE_FEATURES = pytest.mark.parametrize(
    ("n", "n_features"), [(240, 12), (60, 150)], ids=["more clips than features", "more features than clips"]
)


@pytest.mark.long  # refits without each movie
@MORE_CLIPS_OR_MORE_FEATURES
def test_the_loss_of_a_penalty_is_the_squared_error_of_refits_without_each_movie(n, n_features):
    """For each of two concepts and each penalty, the loss is the mean squared error on movies left out.

    It is found in closed form; here a ridge regression is fitted for each penalty without each movie.
    Penalties are multiples of the features' mean variance, so that they suit features of any size. The
    penalty of the lowest loss must be chosen.
    """
    X, present, movies = planted(n, n_features)
    variance = variance_per_direction(X - X.mean(axis=0, dtype=np.float64))

    tuned = tuned_ridge(X, present, movies)

    for concept in (0, 1):
        expected_losses = []
        for penalty in PENALTIES:
            errors = errors_of_refits(X, present[:, concept], movies, penalty * variance)
            expected_losses.append(np.mean(errors**2))
        np.testing.assert_allclose(tuned.losses[:, concept], expected_losses, rtol=1e-8)
        assert tuned.chosen[concept] == np.argmin(expected_losses)


@pytest.mark.long  # refits without each movie
@MORE_CLIPS_OR_MORE_FEATURES
def test_planes_and_held_out_distances_are_those_of_ridge_fits_with_the_chosen_penalty(n, n_features):
    """A plane is fitted on all clips. The held-out distance of a clip is to a plane without its movie.

    Two concepts are learnt, each with a penalty of its own; all fits are made at once, in closed form. Here
    each is fitted by itself. Penalties are multiples of the features' mean variance, and C is the inverse.
    """
    X, present, movies = planted(n, n_features)
    variance = variance_per_direction(X - X.mean(axis=0, dtype=np.float64))

    tuned = tuned_ridge(X, present, movies)

    for concept in (0, 1):
        presence = present[:, [concept]]  # of this concept alone, [n, 1]
        C = 1 / (tuned.penalties[concept] * variance)
        expected = ridge_hyperplanes(X, presence, C).distances(X)[:, 0]
        np.testing.assert_allclose(tuned.hyperplanes.distances(X)[:, concept], expected, atol=1e-8)
        for movie in np.unique(movies):
            held_out = movies == movie
            plane_without_movie = ridge_hyperplanes(X[~held_out], presence[~held_out], C)
            expected = plane_without_movie.distances(X[held_out])[:, 0]
            np.testing.assert_allclose(tuned.distances[held_out, concept], expected, atol=1e-8)


def test_a_concept_that_features_do_not_show_is_shrunk_more_than_one_that_they_show():
    """The first concept moves clips by 3 along a direction, the second by nothing.

    So the best penalty of the second is the strongest that is tried.
    """
    X, present, movies = planted(300, n_features=40, strength=(3.0, 0.0))

    penalty_of_shown, penalty_of_not_shown = tuned_ridge(X, present, movies).penalties

    assert penalty_of_not_shown == max(PENALTIES)
    assert penalty_of_shown < penalty_of_not_shown


def test_losses_do_not_depend_on_the_unit_of_the_features():
    """As metres may be written in millimetres, features are multiplied by 1000."""
    X, present, movies = planted(240, n_features=20)

    losses = tuned_ridge(X, present, movies).losses
    losses_in_other_unit = tuned_ridge(1000 * X, present, movies).losses

    np.testing.assert_allclose(losses, losses_in_other_unit, rtol=1e-5)


def test_what_is_learnt_of_a_concept_does_not_depend_on_the_other_concepts():
    """The second of two concepts is fitted beside the first, and then alone."""
    X, present, movies = planted(240, n_features=20)
    second_concept = present[:, [1]]

    beside_first = tuned_ridge(X, present, movies)
    alone = tuned_ridge(X, second_concept, movies)

    np.testing.assert_allclose(alone.losses[:, 0], beside_first.losses[:, 1], rtol=1e-10)
    np.testing.assert_allclose(alone.distances[:, 0], beside_first.distances[:, 1], rtol=1e-8, atol=1e-10)


def test_features_that_are_all_equal_are_refused():
    """All are 1: penalties are multiples of the features' variance, which is 0."""
    X, present, movies = planted(60, n_features=5)
    constant_features = np.ones_like(X)

    with pytest.raises(ConceptError, match="constant"):
        tuned_ridge(constant_features, present[:, [0]], movies)


def test_a_concept_that_is_in_one_movie_alone_is_refused():
    """Without this movie, m3, there is no clip with the second concept (number 1) to learn from."""
    X, present, movies = planted(60, n_features=5)
    present[movies != "m3", 1] = False

    with pytest.raises(ConceptError, match="concept 1, without movie m3"):
        tuned_ridge(X, present, movies)


def bytes_of_fit(X, present, movies):
    """Fit concepts, and return the losses, held-out distances and weights as bytes."""
    tuned = tuned_ridge(X, present, movies)
    return tuned.losses.tobytes(), tuned.distances.tobytes(), tuned.hyperplanes.weights.tobytes()


def forget_what_is_kept_of_features():
    feature_axes._CACHE.clear()


def test_what_is_kept_of_the_same_features_changes_no_bit_whatever_the_movies_and_concepts():
    """What depends on features alone is kept in memory for the next fit on them.

    Each of four cases, of concepts and movies, is computed with nothing kept, and then with what was kept.
    """
    X, present, movies = planted(90, n_features=20)
    first_concept, second_concept = present[:, :1], present[:, 1:]
    other_movies = np.roll(movies, 45)
    other_movies[:7] = "m0"
    cases = [
        (present, movies),
        (first_concept, other_movies),
        (second_concept, movies),
        (present, other_movies),
    ]

    with_nothing_kept = []
    for presences, movies_of_clips in cases:
        forget_what_is_kept_of_features()
        with_nothing_kept.append(bytes_of_fit(X, presences, movies_of_clips))
    with_kept = [bytes_of_fit(X, presences, movies_of_clips) for presences, movies_of_clips in cases]

    assert with_kept == with_nothing_kept
