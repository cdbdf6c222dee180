"""What is done about the larger class is done to training clips alone, and is the same in any company."""

import numpy as np
import pytest
from sklearn.utils.class_weight import compute_sample_weight

from obygaze_models.models import EarlyStopping, GroupedSelection, MLPProbe
from obygaze_models.models.binary import balanced_weights, undersample_rows
from obygaze_models.models.perceptron import Perceptron

REMEDIES = ("weights", "subsample")


def planted(n=480, n_movies=6, share=0.05, strength=1.5):
    """Clips of which a twentieth is positive, and lies along one direction."""
    rng = np.random.default_rng(0)
    y = (rng.random(n) < share).astype(np.int64)
    X = rng.normal(size=(n, 10))
    X[:, 3] += strength * y
    return X.astype(np.float32), y, np.arange(n) % n_movies


def gradient_of(parameters, X, y, weights=1.0):
    """Compute the gradient of a perceptron's mean weighted loss."""
    gradient = np.empty_like(parameters)
    network = Perceptron(X.shape[1], 5)
    network.backward(network.layers_of(parameters), X, y, network.layers_of(gradient), weights)
    return gradient


def test_weights_are_those_that_scikit_learn_calls_balanced():
    y = np.repeat([1.0, 0.0], [4, 12])
    weights = balanced_weights(y)
    np.testing.assert_allclose(weights, compute_sample_weight("balanced", y), rtol=1e-15)
    assert weights.mean() == 1


def test_a_weight_does_what_repeating_the_clip_does():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(16, 4))
    y = np.repeat([1.0, 0.0], [4, 12])
    # Three negatives to a positive: as if each positive clip were there three times.
    repeated = np.repeat(np.arange(16), np.where(y == 1, 3, 1))
    parameters = Perceptron(4, 5).initial_parameters(rng, X, y)[0]
    weighted = gradient_of(parameters, X, y, balanced_weights(y))
    np.testing.assert_allclose(weighted, gradient_of(parameters, X[repeated], y[repeated]), atol=1e-14)


def test_a_subsample_is_even_in_order_and_keeps_the_smaller_class():
    y = planted()[1].astype(np.float32)
    for labels in (y, 1 - y):
        smaller_label = 1 if labels.mean() < 0.5 else 0
        smaller = np.flatnonzero(labels == smaller_label)
        rows = undersample_rows(labels, np.random.default_rng(0))
        assert (np.diff(rows) > 0).all()
        assert set(smaller) <= set(rows)
        assert len(rows) == 2 * len(smaller)


def test_a_subsample_goes_by_its_seed():
    y = planted()[1].astype(np.float32)
    first, again, other = (undersample_rows(y, np.random.default_rng(seed)) for seed in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("remedy", REMEDIES)
def test_a_planted_imbalance_no_longer_makes_every_clip_negative(remedy):
    X, y, _ = planted()
    plain = MLPProbe(max_epochs=8, imbalance="none").fit(X, y)
    mended = MLPProbe(max_epochs=8, imbalance=remedy).fit(X, y)
    is_positive = y == 1
    assert plain.predict(X)[is_positive].mean() < 0.1
    assert mended.predict(X)[is_positive].mean() > 0.6
    new = np.random.default_rng(9).normal(size=(2000, 10)).astype(np.float32)
    # Without evidence a clip is as likely positive as its class is weighed: one half, not a twentieth.
    assert plain.predict_proba(new)[:, 1].mean() < 0.15
    assert mended.predict_proba(new)[:, 1].mean() > 0.25


def test_a_subsample_trains_as_if_the_clips_drawn_were_all_there_are():
    X, y, _ = planted()
    rng = np.random.default_rng((7, 0))
    rows = undersample_rows(y.astype(np.float32), rng.spawn(1)[0])
    drawn = MLPProbe(max_epochs=4, imbalance="subsample", random_state=7).fit(X, y)
    by_hand = MLPProbe(max_epochs=4, random_state=7).fit(X[rows], y[rows])
    assert drawn.parameters_.tobytes() == by_hand.parameters_.tobytes()
    assert drawn.mean_.tobytes() == by_hand.mean_.tobytes()


@pytest.mark.parametrize("remedy", REMEDIES)
def test_the_epoch_is_chosen_by_the_plain_loss_of_all_validation_clips(remedy):
    X, y, movies = planted()
    held_out = movies == 0
    probe = MLPProbe(imbalance=remedy, max_epochs=8)
    probe.fit(X[~held_out], y[~held_out], X_val=X[held_out], y_val=y[held_out])
    # As if there were no remedy: every clip of the movie counts, and counts once.
    scores = probe.decision_function(X[held_out])
    unweighted_loss = Perceptron(10, 128).loss(scores, y[held_out].astype(np.float32))
    loss_of_chosen_epoch = probe.curve_.validation_loss[probe.curve_.kept - 1]
    assert loss_of_chosen_epoch == pytest.approx(unweighted_loss, rel=1e-6)


@pytest.mark.parametrize("remedy", REMEDIES)
def test_the_threshold_is_chosen_on_held_out_scores_of_every_clip(remedy):
    X, y, movies = planted()
    selection = GroupedSelection(MLPProbe(imbalance=remedy, max_epochs=4), EarlyStopping())
    selection.fit(X, y, groups=movies)
    assert len(selection.held_out_.scores) == len(y)
    assert np.isfinite(selection.held_out_.scores).all()


def test_the_papers_model_is_refused():
    X, y, _ = planted(60, share=0.3)
    with pytest.raises(ValueError, match="imbalance"):
        MLPProbe(variant="paper", imbalance="weights").fit(X, y)
