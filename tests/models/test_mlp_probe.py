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

BY_PLACE = "a random guess looks at no feature, so that its draws depend on a clip's place alone"
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


def test_a_feature_beyond_five_deviations_counts_as_one_at_five_deviations(learnable):
    """Standardised features are clipped at CLIP deviations. One strange value can't decide a score."""
    X, y = learnable.X, y_of(learnable)
    probe = MLPProbe(max_epochs=10).fit(X, y)
    unlimited = MLPProbe(max_epochs=10, clip=None).fit(X, y)
    far_clip = X[:1].copy()
    far_clip[0, 3] = 1e9
    at_limit = X[:1].copy()
    at_limit[0, 3] = probe.mean_[3] + CLIP * probe.scale_[3]

    scores = probe.decision_function(far_clip)
    np.testing.assert_allclose(scores, probe.decision_function(at_limit), rtol=1e-4)
    assert abs(unlimited.decision_function(far_clip)[0]) > 1e6
    assert probe.threshold_ == 0.0  # without out-of-fold scores


def test_validation_clips_choose_the_epoch_and_do_not_standardise_features(learnable):
    X, y = learnable.X, y_of(learnable)
    train = learnable.movies != learnable.movies[-1]
    probe = MLPProbe(learning_rate=0.02).fit(X[train], y[train], X_val=X[~train], y_val=y[~train])
    best_epoch = probe.n_epochs_
    assert best_epoch < len(probe.curve_.validation_loss)
    stopped_there = MLPProbe(learning_rate=0.02, max_epochs=best_epoch).fit(X[train], y[train])
    assert stopped_there.parameters_.tobytes() == probe.parameters_.tobytes()

    mean, scale = mean_and_scale(X[train])
    assert np.array_equal(probe.mean_, mean)
    assert np.array_equal(probe.scale_, scale)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_same_seed_gives_the_same_bytes_and_another_seed_does_not(learnable, dtype):
    X = learnable.X.astype(dtype)
    first, again, other = (
        MLPProbe(max_epochs=4, random_state=seed).fit(X, y_of(learnable)) for seed in (0, 0, 1)
    )

    assert first.parameters_.dtype == dtype
    assert first.parameters_.tobytes() == again.parameters_.tobytes()
    assert first.parameters_.tobytes() != other.parameters_.tobytes()


def test_clips_without_two_classes_or_labels_are_refused(learnable):
    X, y = learnable.X, y_of(learnable)
    with pytest.raises(ValueError, match="two classes"):
        MLPProbe().fit(X, np.zeros_like(y))
    with pytest.raises(ValueError, match="X_val and y_val"):
        MLPProbe().fit(X, y, X_val=X)
    with pytest.raises(ValueError, match="label 2"):
        MLPProbe().fit(X, y, X_val=X, y_val=y + 1)
