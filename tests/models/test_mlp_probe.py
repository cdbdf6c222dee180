"""The probe learns what is planted, and gives the same bytes for the same seed."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from obygaze_models.evaluation.metrics import auc
from obygaze_models.models import AlwaysNegative, AlwaysPositive, MLPProbe, MoviePrior, RandomGuess
from obygaze_models.models.scaling import CLIP, moments


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

BY_PLACE = "the draws go by a clip's place, not by what the clip is: that is what looking at no feature means"
EXPECTED_FAILURES = {
    RandomGuess: {
        "check_methods_sample_order_invariance": BY_PLACE,
        "check_methods_subset_invariance": BY_PLACE,
    }
}


@parametrize_with_checks(
    ESTIMATORS, expected_failed_checks=lambda estimator: EXPECTED_FAILURES.get(type(estimator), {})
)
def test_estimators_keep_the_conventions_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def learnable(make_planted):
    """S clips lie 3 standard deviations from the others along one direction, in every movie alike."""
    return make_planted(direction=3.0, film=1.0)


@pytest.fixture(scope="module")
def fitted(learnable):
    return MLPProbe(max_epochs=10).fit(learnable.X, y_of(learnable))


def test_a_planted_direction_is_learnt_and_holds_in_a_movie_not_seen(learnable):
    new = learnable.movies == learnable.movies[-1]
    probe = MLPProbe(max_epochs=20).fit(learnable.X[~new], y_of(learnable)[~new])
    assert auc(y_of(learnable)[new], probe.decision_function(learnable.X[new])) > 0.9


def test_constant_and_huge_features_do_no_harm(learnable):
    X = learnable.X.copy()
    X[:, 0] = 1e7
    X[:, 1] *= 1e6
    probe = MLPProbe(max_epochs=20).fit(X, y_of(learnable))
    assert np.isfinite(probe.decision_function(X)).all()
    assert auc(y_of(learnable), probe.decision_function(X)) > 0.9


def test_a_clip_unlike_any_other_has_the_score_of_one_at_the_limit(fitted, learnable):
    """Without the limit its logit would grow with its distance."""
    far = learnable.X[:1].copy()
    far[0, 3] = 1e9
    at_limit = far.copy()
    at_limit[0, 3] = fitted.mean_[3] + CLIP * fitted.scale_[3]
    np.testing.assert_allclose(fitted.decision_function(far), fitted.decision_function(at_limit), rtol=1e-4)
    unlimited = MLPProbe(max_epochs=10, clip=None).fit(learnable.X, y_of(learnable))
    assert abs(unlimited.decision_function(far)[0]) > 1e6


def test_features_are_standardised_by_the_training_clips_alone(learnable):
    here = learnable.movies != learnable.movies[0]
    probe = MLPProbe(max_epochs=1).fit(
        learnable.X[here], y_of(learnable)[here], X_val=learnable.X[~here], y_val=y_of(learnable)[~here]
    )
    mean, scale = moments(learnable.X[here])
    assert np.array_equal(probe.mean_, mean)
    assert np.array_equal(probe.scale_, scale)


def test_given_validation_clips_choose_the_epoch_and_the_best_is_restored(learnable):
    held_out = learnable.movies == learnable.movies[-1]
    X, y = learnable.X[~held_out], y_of(learnable)[~held_out]
    probe = MLPProbe(learning_rate=0.02).fit(
        X, y, X_val=learnable.X[held_out], y_val=y_of(learnable)[held_out]
    )
    curve = probe.curve_
    assert probe.n_epochs_ == curve.kept < len(curve.validation_loss)
    # The same training stopped there by hand has the same parameters.
    stopped = MLPProbe(learning_rate=0.02, max_epochs=curve.kept).fit(X, y)
    assert stopped.parameters_.tobytes() == probe.parameters_.tobytes()
    assert probe.threshold_ == 0.0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_same_seed_gives_the_same_bytes_and_another_seed_does_not(learnable, dtype):
    X = learnable.X.astype(dtype)
    first, again, other = (
        MLPProbe(max_epochs=4, random_state=seed).fit(X, y_of(learnable)) for seed in (0, 0, 1)
    )
    assert first.parameters_.dtype == dtype
    assert first.parameters_.tobytes() == again.parameters_.tobytes()
    assert first.parameters_.tobytes() != other.parameters_.tobytes()


def test_half_a_validation_pair_unknown_labels_and_one_class_are_refused(learnable):
    X, y = learnable.X, y_of(learnable)
    for labels, held_out, place in (
        (y, {"X_val": X}, "X_val and y_val"),
        (y, {"X_val": X, "y_val": y + 1}, "label 2"),
        (np.zeros_like(y), {}, "two classes"),
    ):
        with pytest.raises(ValueError, match=place):
            MLPProbe().fit(X, labels, **held_out)
