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
from tests.labelled_clips import LabelledClips


@parametrize_with_checks([ClippedScaler(), ClippedScaler(limit=0.5)])
def test_the_scaler_keeps_the_conventions_of_scikit_learn(estimator, check):
    """Each check of scikit-learn runs on a scaler with the default limit and on one with the limit 0.5."""
    check(estimator)


@pytest.fixture(scope="module")
def clips(make_synthetic_data):
    """Features, labels (1 for S) and movies; S clips lie along one direction, and movies are moved."""
    data = make_synthetic_data(direction=2.0, film=1.0, n_movies=5, n_features=20)
    return LabelledClips(data.X, (data.levels == "S").astype(np.int64), data.movies)


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
    """The expected scores are of scikit-learn's logistic regression on features standardised and limited."""
    X = clips.X.astype(np.float64)

    scores = precise_probe(C).fit(X, clips.y).decision_function(X)

    np.testing.assert_allclose(scores, scikit_learn_scores(X, clips.y, C, X), atol=1e-6)


def scores_of_held_out_films(X, y, folds, C):
    """Score the clips of each fold by scikit-learn's model of the other folds."""
    scores = np.empty(len(y))
    for fold in np.unique(folds):
        held_out = folds == fold
        scores[held_out] = scikit_learn_scores(X[~held_out], y[~held_out], C, X[held_out])
    return scores


def test_a_linear_probe_chooses_as_scikit_learn_on_the_same_folds(clips):
    """The penalty has the lowest loss on held-out films, and the threshold is the best for those scores.

    All is computed here again by scikit-learn. The final model has that penalty, and is trained on all films.
    """
    X = clips.X.astype(np.float64)
    folds = inner_folds(clips.y, clips.movies)

    selection = GroupedSelection(precise_probe(), PENALTIES).fit(X, clips.y, groups=clips.movies)

    expected_scores = [scores_of_held_out_films(X, clips.y, folds, C) for C in PENALTIES.values]
    expected_losses = [log_loss(clips.y, scores) for scores in expected_scores]
    best = int(np.argmin(expected_losses))
    losses = [candidate.inner_loss for candidate in selection.candidates_]
    is_chosen = [candidate.chosen for candidate in selection.candidates_]
    assert losses == pytest.approx(expected_losses, abs=1e-6)
    assert is_chosen.index(True) == best

    np.testing.assert_allclose(selection.held_out_.scores, expected_scores[best], atol=1e-6)
    assert selection.threshold_ == pytest.approx(best_threshold(clips.y, expected_scores[best]), abs=1e-6)

    scores_of_final_model = scikit_learn_scores(X, clips.y, PENALTIES.values[best], X)
    np.testing.assert_allclose(selection.decision_function(X), scores_of_final_model, atol=1e-6)


def test_features_in_single_precision_give_the_scores_of_double_precision(clips):
    """Stores keep single precision, in which scikit-learn's solver gives up before the minimum."""
    assert clips.X.dtype == np.float32

    scores = linear_probe(C=10.0).fit(clips.X, clips.y).decision_function(clips.X)

    scores_in_double_precision = scikit_learn_scores(clips.X, clips.y, 10.0, clips.X)
    np.testing.assert_allclose(scores, scores_in_double_precision, atol=1e-3)


def test_a_feature_that_hardly_varies_in_training_does_not_decide(clips):
    """A feature is 1, give or take a millionth, in all training clips, and 2 in new ones.

    That is a million standard deviations away: without a limit, the new clips would score about 1e6.
    """
    nearly_constant = 1 + 1e-6 * np.random.default_rng(0).normal(size=len(clips.X))
    training_clips = np.column_stack([clips.X, nearly_constant])
    probe = linear_probe(C=1.0).fit(training_clips, clips.y)
    new_clips = training_clips[:5].copy()
    new_clips[:, -1] = 2.0

    change = probe.decision_function(new_clips) - probe.decision_function(training_clips[:5])

    assert np.abs(change).max() < 5


def test_a_feature_that_is_constant_in_training_does_not_change_the_scores(clips):
    """Its standard deviation, 0, cannot be divided by; 1 is taken in its place."""
    constant = np.full(len(clips.X), 0.1, np.float32)
    with_constant = np.column_stack([clips.X, constant])

    scores = linear_probe(C=1.0).fit(with_constant, clips.y).decision_function(with_constant)

    assert mean_and_scale(with_constant).scale[-1] == 1
    scores_without = linear_probe(C=1.0).fit(clips.X, clips.y).decision_function(clips.X)
    np.testing.assert_allclose(scores, scores_without, atol=1e-3)
