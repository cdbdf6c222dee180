"""The linear probe is scikit-learn's logistic regression on bounded features; movies choose its penalty."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from obygaze_models.models import ClippedScaler, GroupedSelection, linear_probe
from obygaze_models.models.choices import log_loss
from obygaze_models.models.linear import PENALTIES
from obygaze_models.models.scaling import CLIP, moments
from obygaze_models.protocol import best_threshold, inner_folds


@parametrize_with_checks([ClippedScaler(), ClippedScaler(0.5)])
def test_the_scaler_keeps_the_conventions_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def clips(make_planted):
    """S clips lie along one direction; movies are moved."""
    data = make_planted(direction=2.0, film=1.0, n_movies=5, n_features=20)
    return data.X, (data.levels == "S").astype(np.int64), data.movies


def reference(X, y, C):
    """Fit scikit-learn's logistic regression on standardised features cut by hand."""
    scaler = StandardScaler().fit(X.astype(np.float64))

    def cut(rows):
        return np.clip(scaler.transform(rows.astype(np.float64)), -CLIP, CLIP)

    model = LogisticRegression(C=C, tol=1e-10, max_iter=100_000).fit(cut(X), y)
    return lambda rows: model.decision_function(cut(rows))


def test_of_one_penalty_it_is_scikit_learns(clips):
    X, y, _ = (values.astype(np.float64) if values.dtype == np.float32 else values for values in clips)
    for C in PENALTIES.values:
        ours = linear_probe(C).set_params(ridgelogistic__tol=1e-10).fit(X, y).decision_function(X)
        np.testing.assert_allclose(ours, reference(X, y, C)(X), atol=1e-6)


def test_penalty_threshold_and_scores_are_those_of_scikit_learn_on_the_same_folds(clips):
    X, y, movies = clips
    X = X.astype(np.float64)
    probe = linear_probe().set_params(ridgelogistic__tol=1e-10)
    found = GroupedSelection(probe, PENALTIES).fit(X, y, groups=movies)
    folds, losses, scores = inner_folds(y, movies), [], []
    for C in PENALTIES.values:
        held_out = np.empty(len(y))
        for fold in np.unique(folds):
            out = folds == fold
            held_out[out] = reference(X[~out], y[~out], C)(X[out])
        scores.append(held_out)
        losses.append(log_loss(y, held_out))
    best = int(np.argmin(losses))
    assert [one.inner_loss for one in found.candidates_] == pytest.approx(losses, abs=1e-6)
    assert [one.chosen for one in found.candidates_].index(True) == best
    np.testing.assert_allclose(found.held_out_.scores, scores[best], atol=1e-6)
    assert found.threshold_ == pytest.approx(best_threshold(y, scores[best]), abs=1e-6)
    np.testing.assert_allclose(
        found.decision_function(X), reference(X, y, PENALTIES.values[best])(X), atol=1e-6
    )


def test_single_precision_features_converge_too(clips):
    """As stored. In single precision the solver gives up, with a warning, before the optimum."""
    X, y, _ = clips
    ours = linear_probe(10.0).fit(X, y).decision_function(X)
    np.testing.assert_allclose(ours, reference(X, y, 10.0)(X), atol=1e-3)


def test_a_feature_that_hardly_varies_in_training_does_not_decide(clips):
    """A quarter of the demo's descriptors hardly vary: one clip unlike the others would be at 1e6."""
    X, y, _ = clips
    nearly = np.column_stack([X, 1 + 1e-6 * np.random.default_rng(0).normal(size=len(X))])
    probe = linear_probe(1.0).fit(nearly, y)
    other = nearly[:5].copy()
    other[:, -1] = 2.0
    shift = probe.decision_function(other) - probe.decision_function(nearly[:5])
    assert np.abs(shift).max() < 5
    constant = np.column_stack([X, np.full(len(X), 0.1, np.float32)])
    assert moments(constant)[1][-1] == 1
    np.testing.assert_allclose(
        linear_probe(1.0).fit(constant, y).decision_function(constant),
        linear_probe(1.0).fit(X, y).decision_function(X),
        atol=1e-3,
    )
