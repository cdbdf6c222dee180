"""The linear probe is scikit-learn's logistic regression on bounded features; movies choose its penalty."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from obygaze_models.models import ClippedScaler, GroupedSelection, linear_probe
from obygaze_models.models.choices import log_loss
from obygaze_models.models.linear import PENALTIES
from obygaze_models.models.scaling import CLIP, mean_and_scale
from obygaze_models.protocol import best_threshold, inner_folds


@parametrize_with_checks([ClippedScaler(), ClippedScaler(0.5)])
def test_the_scaler_keeps_the_conventions_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def clips(make_planted):
    """Features, labels (1 for S) and movies; S clips lie along one direction, and movies are moved."""
    data = make_planted(direction=2.0, film=1.0, n_movies=5, n_features=20)
    return data.X, (data.levels == "S").astype(np.int64), data.movies


def scikit_learn_scores(X, y, C, new_X):
    """Score `new_X` by scikit-learn's logistic regression, trained on standardised and clipped X."""
    scaler = StandardScaler().fit(X.astype(np.float64))

    def standardise(rows):
        return np.clip(scaler.transform(rows.astype(np.float64)), -CLIP, CLIP)

    model = LogisticRegression(C=C, tol=1e-10, max_iter=100_000).fit(standardise(X), y)
    return model.decision_function(standardise(new_X))


def precise_probe(C=1.0):
    """Make a linear probe that is as close to its minimum as scikit-learn's is above."""
    return linear_probe(C).set_params(ridgelogistic__tol=1e-10)


@pytest.mark.parametrize("C", PENALTIES.values)
def test_a_linear_probe_of_a_given_penalty_has_the_scores_of_scikit_learn(clips, C):
    X, y, _ = clips
    X = X.astype(np.float64)
    scores = precise_probe(C).fit(X, y).decision_function(X)
    np.testing.assert_allclose(scores, scikit_learn_scores(X, y, C, X), atol=1e-6)


def test_a_linear_probe_chooses_as_scikit_learn_on_the_same_folds(clips):
    """The penalty has the lowest loss on held-out films, and the threshold is the best for those scores.

    All is computed here by scikit-learn.
    """
    X, y, movies = clips
    X = X.astype(np.float64)
    selection = GroupedSelection(precise_probe(), PENALTIES).fit(X, y, groups=movies)
    folds = inner_folds(y, movies)
    losses = []
    scores_of_penalties = []
    for C in PENALTIES.values:
        scores = np.empty(len(y))
        for fold in np.unique(folds):
            held_out = folds == fold
            scores[held_out] = scikit_learn_scores(X[~held_out], y[~held_out], C, X[held_out])
        scores_of_penalties.append(scores)
        losses.append(log_loss(y, scores))
    best = int(np.argmin(losses))
    best_scores = scores_of_penalties[best]
    assert [candidate.inner_loss for candidate in selection.candidates_] == pytest.approx(losses, abs=1e-6)
    assert [candidate.chosen for candidate in selection.candidates_].index(True) == best
    np.testing.assert_allclose(selection.held_out_.scores, best_scores, atol=1e-6)
    assert selection.threshold_ == pytest.approx(best_threshold(y, best_scores), abs=1e-6)
    expected = scikit_learn_scores(X, y, PENALTIES.values[best], X)
    np.testing.assert_allclose(selection.decision_function(X), expected, atol=1e-6)


def test_features_in_single_precision_give_the_scores_of_double_precision(clips):
    """Stores keep single precision, in which scikit-learn's solver gives up before the minimum."""
    X, y, _ = clips
    assert X.dtype == np.float32
    scores = linear_probe(10.0).fit(X, y).decision_function(X)
    np.testing.assert_allclose(scores, scikit_learn_scores(X, y, 10.0, X), atol=1e-3)


def test_a_feature_that_does_not_or_hardly_vary_in_training_does_not_decide(clips):
    """A quarter of the demo's descriptors hardly vary: without a limit, other clips would score 1e6."""
    X, y, _ = clips
    nearly_constant = 1 + 1e-6 * np.random.default_rng(0).normal(size=len(X))
    with_feature = np.column_stack([X, nearly_constant])
    probe = linear_probe(1.0).fit(with_feature, y)
    clips_of_another_value = with_feature[:5].copy()
    clips_of_another_value[:, -1] = 2.0  # a million standard deviations away
    change = probe.decision_function(clips_of_another_value) - probe.decision_function(with_feature[:5])
    assert np.abs(change).max() < 5

    with_constant = np.column_stack([X, np.full(len(X), 0.1, np.float32)])
    assert mean_and_scale(with_constant).scale[-1] == 1  # not the 0 by which nothing can be divided
    scores = linear_probe(1.0).fit(with_constant, y).decision_function(with_constant)
    np.testing.assert_allclose(scores, linear_probe(1.0).fit(X, y).decision_function(X), atol=1e-3)
