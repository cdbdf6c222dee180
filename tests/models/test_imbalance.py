"""What is done about the larger class is done to training clips alone, and is the same in any company."""

import numpy as np
import pytest
from sklearn.utils.class_weight import compute_sample_weight

from obygaze_models.models import EarlyStopping, GroupedSelection, MLPProbe
from obygaze_models.models.binary import balanced_weights, undersample_rows
from obygaze_models.models.choices import log_loss
from obygaze_models.models.perceptron import Perceptron
from obygaze_models.protocol import best_threshold

REMEDIES = ("weights", "subsample")


def clips_of_a_rare_class(n=480, n_movies=6, share=0.05, strength=1.5):
    """Make features, labels and movies of clips; a share is positive, and moved along one direction."""
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
    """Each class gets the same total weight, and the mean weight is 1."""
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


@pytest.mark.parametrize("rare_label", [0, 1])
def test_a_subsample_has_as_many_clips_of_either_class(rare_label):
    """It has all clips of the smaller class and as many of the larger, in the order of the clips.

    The smaller class takes no random number, whichever it is: here the first draw is of 24 from 456.
    """
    labels = np.full(480, 1 - rare_label, dtype=np.float32)
    labels[::20] = rare_label
    rare = np.flatnonzero(labels == rare_label)
    common = np.flatnonzero(labels != rare_label)
    drawn = np.random.default_rng(0).choice(common, 24, replace=False)

    rows = undersample_rows(labels, np.random.default_rng(0))
    rows_by_another_seed = undersample_rows(labels, np.random.default_rng(1))

    assert set(rows) == {*rare, *drawn}
    assert (np.diff(rows) > 0).all()
    assert len(rows_by_another_seed) == len(rows)
    assert not np.array_equal(rows_by_another_seed, rows)


def test_of_two_classes_of_one_size_all_clips_are_kept_and_none_is_drawn():
    rng = np.random.default_rng(0)
    rows = undersample_rows(np.array([0, 1, 1, 0], dtype=np.float32), rng)
    assert rows.tolist() == [0, 1, 2, 3]
    assert rng.random() == np.random.default_rng(0).random()


@pytest.mark.parametrize("remedy", REMEDIES)
def test_a_remedy_lets_most_clips_of_a_rare_class_be_called_positive(remedy):
    """A model gives clips of noise about the share that positive clips have: .05, or .5 by a remedy."""
    X, y, _ = clips_of_a_rare_class(share=0.05)
    noise = np.random.default_rng(9).normal(size=(2000, 10)).astype(np.float32)
    without_remedy = MLPProbe(max_epochs=8, imbalance="none").fit(X, y)
    with_remedy = MLPProbe(max_epochs=8, imbalance=remedy).fit(X, y)
    is_positive = y == 1
    assert without_remedy.predict(X)[is_positive].mean() < 0.1
    assert with_remedy.predict(X)[is_positive].mean() > 0.6
    assert without_remedy.predict_proba(noise)[:, 1].mean() < 0.15
    assert with_remedy.predict_proba(noise)[:, 1].mean() > 0.25
    with pytest.raises(ValueError, match="imbalance"):
        MLPProbe(variant="paper", imbalance=remedy).fit(X, y)


def test_a_subsample_trains_as_if_the_clips_drawn_were_all_there_are():
    X, y, _ = clips_of_a_rare_class()
    probe = MLPProbe(max_epochs=4, imbalance="subsample", random_state=7).fit(X, y)
    (rng_of_subsample,) = np.random.default_rng((7, 0)).spawn(1)  # as the training draws with this seed
    rows = undersample_rows(y.astype(np.float32), rng_of_subsample)
    probe_of_rows = MLPProbe(max_epochs=4, random_state=7).fit(X[rows], y[rows])

    assert probe.parameters_.tobytes() == probe_of_rows.parameters_.tobytes()
    assert probe.mean_.tobytes() == probe_of_rows.mean_.tobytes()


@pytest.mark.parametrize("remedy", REMEDIES)
def test_epoch_and_threshold_are_chosen_on_all_clips_held_out_without_weights(remedy):
    X, y, movies = clips_of_a_rare_class()
    held_out = movies == 0
    probe = MLPProbe(imbalance=remedy, max_epochs=8)
    probe.fit(X[~held_out], y[~held_out], X_val=X[held_out], y_val=y[held_out])
    unweighted_loss = log_loss(y[held_out], probe.decision_function(X[held_out]))
    assert probe.curve_.validation_loss.min() == pytest.approx(unweighted_loss, rel=1e-6)

    selection = GroupedSelection(MLPProbe(imbalance=remedy, max_epochs=4), EarlyStopping())
    held_out_scores = selection.fit(X, y, groups=movies).held_out_.scores
    assert held_out_scores.shape == y.shape
    assert selection.threshold_ == best_threshold(y, held_out_scores)
