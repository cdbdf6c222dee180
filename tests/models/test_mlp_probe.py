"""The probe learns what is planted, and gives the same bytes for the same seed."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from obygaze_models.evaluation.metrics import auc
from obygaze_models.models import AlwaysNegative, AlwaysPositive, MLPProbe, MoviePrior, RandomGuess
from obygaze_models.models.scaling import CLIP, mean_and_scale


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
    X, y = learnable.X, y_of(learnable)
    is_new = learnable.movies == learnable.movies[-1]
    probe = MLPProbe(max_epochs=20).fit(X[~is_new], y[~is_new])
    assert auc(y[is_new], probe.decision_function(X[is_new])) > 0.9


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
    X, y = learnable.X, y_of(learnable)
    train = learnable.movies != learnable.movies[0]
    probe = MLPProbe(max_epochs=1).fit(X[train], y[train], X_val=X[~train], y_val=y[~train])
    mean, scale = mean_and_scale(X[train])
    assert np.array_equal(probe.mean_, mean)
    assert np.array_equal(probe.scale_, scale)


def test_given_validation_clips_choose_the_epoch_and_the_best_is_restored(learnable):
    X, y = learnable.X, y_of(learnable)
    train = learnable.movies != learnable.movies[-1]
    probe = MLPProbe(learning_rate=0.02).fit(X[train], y[train], X_val=X[~train], y_val=y[~train])
    curve = probe.curve_
    assert probe.n_epochs_ == curve.kept < len(curve.validation_loss)
    # The same training stopped there by hand has the same parameters.
    stopped = MLPProbe(learning_rate=0.02, max_epochs=curve.kept).fit(X[train], y[train])
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


def test_validation_clips_without_labels_are_refused(learnable):
    with pytest.raises(ValueError, match="X_val and y_val"):
        MLPProbe().fit(learnable.X, y_of(learnable), X_val=learnable.X)


def test_a_label_that_is_in_validation_clips_alone_is_refused(learnable):
    X, y = learnable.X, y_of(learnable)
    with pytest.raises(ValueError, match="label 2"):
        MLPProbe().fit(X, y, X_val=X, y_val=y + 1)


def test_clips_of_one_class_are_refused(learnable):
    with pytest.raises(ValueError, match="two classes"):
        MLPProbe().fit(learnable.X, np.zeros_like(y_of(learnable)))
