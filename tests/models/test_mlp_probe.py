"""The probe learns what is planted, and gives the same bytes for the same seed."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from obygaze_models.evaluation.metrics import auc
from obygaze_models.models import AlwaysNegative, AlwaysPositive, MLPProbe, MoviePrior, RandomGuess
from obygaze_models.models.scaling import mean_and_scale


def y_of(data):
    """1 for S clips."""
    return (data.levels == "S").astype(np.int64)


ESTIMATORS = [
    MLPProbe(max_epochs=20),
    MLPProbe(max_epochs=20, imbalance="subsample"),
    AlwaysPositive(),
    AlwaysNegative(),
    RandomGuess(),
    MoviePrior(),
]

BY_PLACE = "a random guess looks at no feature, so that its draws depend on a clip's place alone"


def checks_that_an_estimator_cannot_pass(estimator):
    """Return the checks of scikit-learn that an estimator fails by its nature, each with the reason.

    Two checks want the same clip to get the same score among other clips, or in another order. A random guess
    does not know a clip by its features, and cannot.
    """
    if isinstance(estimator, RandomGuess):
        return {
            "check_methods_sample_order_invariance": BY_PLACE,
            "check_methods_subset_invariance": BY_PLACE,
        }
    return {}


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=checks_that_an_estimator_cannot_pass)
def test_estimators_keep_the_conventions_of_scikit_learn(estimator, check):
    """Each check that scikit-learn has for estimators runs on perceptrons and on baselines.

    The checks that an estimator cannot pass by its nature, two of a random guess, are expected to fail.
    """
    check(estimator)


@pytest.fixture(scope="module")
def separable_data(make_synthetic_data):
    """S clips lie 3 standard deviations from the others along one direction, in every movie alike."""
    return make_synthetic_data(direction=3.0, film=1.0)


def test_a_planted_direction_is_learnt_and_holds_in_a_movie_not_seen(separable_data):
    """S clips lie 3 standard deviations from the others along one direction, in every movie alike."""
    X = separable_data.X
    y = y_of(separable_data)
    is_new = separable_data.movies == separable_data.movies[-1]

    probe = MLPProbe(max_epochs=20).fit(X[~is_new], y[~is_new])

    assert auc(y[is_new], probe.decision_function(X[is_new])) > 0.9


def test_constant_and_huge_features_do_no_harm(separable_data):
    """The first feature is constant, the second is multiplied by a million."""
    y = y_of(separable_data)
    X = separable_data.X.copy()
    X[:, 0] = 1e7
    X[:, 1] *= 1e6

    scores = MLPProbe(max_epochs=20).fit(X, y).decision_function(X)

    assert np.isfinite(scores).all()
    assert auc(y, scores) > 0.9


def test_a_feature_beyond_five_deviations_counts_as_one_at_five_deviations(separable_data):
    """A clip has the feature 1e9, and another is equal but for that feature, at five deviations of training.

    Both get the same score: no strange value decides a score alone. Without the limit (`clip=None`) it does.
    """
    X = separable_data.X
    y = y_of(separable_data)
    probe = MLPProbe(max_epochs=10).fit(X, y)
    unlimited_probe = MLPProbe(max_epochs=10, clip=None).fit(X, y)
    far_clip = X[:1].copy()
    far_clip[0, 3] = 1e9
    clip_at_limit = X[:1].copy()
    clip_at_limit[0, 3] = probe.mean_[3] + 5 * probe.scale_[3]

    (score_of_far_clip,) = probe.decision_function(far_clip)
    (score_at_limit,) = probe.decision_function(clip_at_limit)
    (unlimited_score,) = unlimited_probe.decision_function(far_clip)

    assert score_of_far_clip == pytest.approx(score_at_limit, rel=1e-4, abs=0)
    assert abs(unlimited_score) > 1e6


def test_the_threshold_is_0_where_no_scores_of_held_out_clips_could_choose_another(separable_data):
    """A probe that is trained without movies and without clips to validate on has no held-out clips."""
    probe = MLPProbe(max_epochs=10).fit(separable_data.X, y_of(separable_data))

    assert probe.threshold_ == 0.0


def test_a_perceptron_with_validation_clips_is_the_one_of_its_best_epoch_on_these(separable_data):
    """The last movie's clips are for validation: on these the loss is lowest some epochs before the end.

    The perceptron must have, to the byte, the weights of a training that ends after that epoch.
    """
    X = separable_data.X
    y = y_of(separable_data)
    train = separable_data.movies != separable_data.movies[-1]

    probe = MLPProbe(learning_rate=0.02).fit(X[train], y[train], X_val=X[~train], y_val=y[~train])

    best_epoch = probe.n_epochs_
    assert best_epoch < len(probe.curve_.validation_loss)
    ended_there = MLPProbe(learning_rate=0.02, max_epochs=best_epoch).fit(X[train], y[train])
    assert ended_there.parameters_.tobytes() == probe.parameters_.tobytes()


def test_features_are_standardised_by_training_clips_without_validation_clips(separable_data):
    """The clips of the last movie are for validation."""
    X = separable_data.X
    y = y_of(separable_data)
    train = separable_data.movies != separable_data.movies[-1]

    probe = MLPProbe(learning_rate=0.02).fit(X[train], y[train], X_val=X[~train], y_val=y[~train])

    mean, scale = mean_and_scale(X[train])
    assert np.array_equal(probe.mean_, mean)
    assert np.array_equal(probe.scale_, scale)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_same_seed_gives_the_same_bytes_and_another_seed_does_not(separable_data, dtype):
    """The seed decides the weights that a training begins with and the order of clips."""
    X = separable_data.X.astype(dtype)
    y = y_of(separable_data)

    seed_0 = MLPProbe(max_epochs=4, random_state=0).fit(X, y)
    seed_0_again = MLPProbe(max_epochs=4, random_state=0).fit(X, y)
    seed_1 = MLPProbe(max_epochs=4, random_state=1).fit(X, y)

    assert seed_0.parameters_.dtype == dtype
    assert seed_0.parameters_.tobytes() == seed_0_again.parameters_.tobytes()
    assert seed_0.parameters_.tobytes() != seed_1.parameters_.tobytes()


def test_training_clips_of_one_class_are_refused(separable_data):
    """All labels are 0: there is nothing to tell apart."""
    all_negative = np.zeros(len(separable_data.X), np.int64)

    with pytest.raises(ValueError, match="two classes"):
        MLPProbe().fit(separable_data.X, all_negative)


def test_validation_clips_without_labels_or_with_unknown_ones_are_refused(separable_data):
    """Labels are 0 and 1; here validation clips have 1 and 2."""
    X = separable_data.X
    y = y_of(separable_data)

    with pytest.raises(ValueError, match="X_val and y_val"):
        MLPProbe().fit(X, y, X_val=X)
    with pytest.raises(ValueError, match="label 2"):
        MLPProbe().fit(X, y, X_val=X, y_val=y + 1)
