"""What is done about the larger class is done to training clips alone, and is the same in any company."""

import numpy as np
import pytest
from sklearn.utils.class_weight import compute_sample_weight

from obygaze_models.models import EarlyStopping, GroupedSelection, MLPProbe
from obygaze_models.models.binary import balanced_weights, undersample_rows
from obygaze_models.models.choices import log_loss
from obygaze_models.models.perceptron import Perceptron
from obygaze_models.protocol import best_threshold
from tests.labelled_clips import LabelledClips

REMEDIES = ("weights", "subsample")


def clips_of_a_rare_class(n=480, n_movies=6, share=0.05, strength=1.5):
    """Make features, labels and movies of clips; a share is positive, and moved along one direction."""
    rng = np.random.default_rng(0)
    y = (rng.random(n) < share).astype(np.int64)
    X = rng.normal(size=(n, 10))
    X[:, 3] += strength * y
    return LabelledClips(X.astype(np.float32), y, np.arange(n) % n_movies)


def gradient_of(parameters, X, y, weights=1.0):
    """Compute the gradient of a perceptron's mean weighted loss."""
    gradient = np.empty_like(parameters)
    network = Perceptron(X.shape[1], n_hidden=5)
    network.backward(network.layers_of(parameters), X, y, network.layers_of(gradient), weights)
    return gradient


def test_weights_are_those_that_scikit_learn_calls_balanced():
    """Each class gets the same total weight, and the mean weight is 1."""
    four_positives_and_twelve_negatives = np.array([1.0] * 4 + [0.0] * 12)

    weights = balanced_weights(four_positives_and_twelve_negatives)

    expected = compute_sample_weight("balanced", four_positives_and_twelve_negatives)
    np.testing.assert_allclose(weights, expected, rtol=1e-15)
    assert weights.mean() == 1


def test_a_weight_does_what_repeating_the_clip_does():
    """There are 4 positive and 12 negative clips: three negatives to a positive.

    So weights are as if each positive clip were there three times. The gradients of a network are compared.
    """
    rng = np.random.default_rng(1)
    X = rng.normal(size=(16, 4))
    y = np.array([1.0] * 4 + [0.0] * 12)
    n_times = np.where(y == 1, 3, 1)
    X_repeated = np.repeat(X, n_times, axis=0)
    y_repeated = np.repeat(y, n_times)
    parameters = Perceptron(n_features=4, n_hidden=5).initial_parameters(rng, X, y)[0]

    with_weights = gradient_of(parameters, X, y, balanced_weights(y))
    of_repeated_clips = gradient_of(parameters, X_repeated, y_repeated)

    np.testing.assert_allclose(with_weights, of_repeated_clips, atol=1e-14)


@pytest.mark.parametrize("rare_label", [0, 1])
def test_a_subsample_has_as_many_clips_of_either_class(rare_label):
    """It has all 24 clips of the smaller class and 24 of the 456 of the larger, in the order of the clips.

    The smaller class takes no random number, whichever it is: the first draw is of the larger one.
    """
    labels = np.full(480, 1 - rare_label, dtype=np.float32)
    labels[::20] = rare_label
    rare = np.flatnonzero(labels == rare_label)
    common = np.flatnonzero(labels != rare_label)

    rows = undersample_rows(labels, np.random.default_rng(0))

    drawn = np.random.default_rng(0).choice(common, 24, replace=False)
    assert set(rows) == set(rare) | set(drawn)
    assert (np.diff(rows) > 0).all()


@pytest.mark.parametrize("rare_label", [0, 1])
def test_another_seed_draws_other_clips_of_the_larger_class(rare_label):
    """Every twentieth of 480 clips has the rare label; as many are drawn of the others."""
    labels = np.full(480, 1 - rare_label, dtype=np.float32)
    labels[::20] = rare_label

    rows = undersample_rows(labels, np.random.default_rng(0))
    rows_by_another_seed = undersample_rows(labels, np.random.default_rng(1))

    assert len(rows_by_another_seed) == len(rows)
    assert not np.array_equal(rows_by_another_seed, rows)


def test_of_two_classes_of_one_size_all_clips_are_kept_and_none_is_drawn():
    """The generator of random numbers is in the same state as a new one."""
    rng = np.random.default_rng(0)

    rows = undersample_rows(np.array([0, 1, 1, 0], dtype=np.float32), rng)

    assert rows.tolist() == [0, 1, 2, 3]
    assert rng.random() == np.random.default_rng(0).random()


@pytest.mark.parametrize("remedy", REMEDIES)
def test_a_remedy_lets_most_clips_of_a_rare_class_be_called_positive(remedy):
    """A twentieth of the clips is positive. Without a remedy, few of them are called so."""
    clips = clips_of_a_rare_class(share=0.05)
    positive_clips = clips.X[clips.y == 1]

    without_remedy = MLPProbe(max_epochs=8, imbalance="none").fit(clips.X, clips.y)
    with_remedy = MLPProbe(max_epochs=8, imbalance=remedy).fit(clips.X, clips.y)

    assert without_remedy.predict(positive_clips).mean() < 0.1
    assert with_remedy.predict(positive_clips).mean() > 0.6


@pytest.mark.parametrize("remedy", REMEDIES)
def test_a_remedy_raises_the_probability_of_clips_that_say_nothing(remedy):
    """A model gives clips of noise about the share that positive clips have: .05, or .5 by a remedy."""
    clips = clips_of_a_rare_class(share=0.05)
    noise = np.random.default_rng(9).normal(size=(2000, 10)).astype(np.float32)

    without_remedy = MLPProbe(max_epochs=8, imbalance="none").fit(clips.X, clips.y)
    with_remedy = MLPProbe(max_epochs=8, imbalance=remedy).fit(clips.X, clips.y)

    assert without_remedy.predict_proba(noise)[:, 1].mean() < 0.15
    assert with_remedy.predict_proba(noise)[:, 1].mean() > 0.25


@pytest.mark.parametrize("remedy", REMEDIES)
def test_the_variant_of_the_paper_takes_no_remedy(remedy):
    """The paper has no remedy for a rare class, so that a probe with one would not be the paper's."""
    clips = clips_of_a_rare_class(share=0.05)

    with pytest.raises(ValueError, match="imbalance"):
        MLPProbe(variant="paper", imbalance=remedy).fit(clips.X, clips.y)


def test_a_subsample_trains_as_if_the_clips_drawn_were_all_there_are():
    """With `imbalance="subsample"`, a probe draws as many clips of the larger class as the rare one has.

    A probe that is given the drawn clips alone must have the same bytes of parameters and of feature means.
    To know the clips, they are drawn here from the stream of random numbers that training with the seed 7
    draws them from: a child of the stream (7, 0), so that the training's own numbers stay the same.
    """
    clips = clips_of_a_rare_class()
    seed = 7
    (rng_of_subsample,) = np.random.default_rng((seed, 0)).spawn(1)
    drawn_rows = undersample_rows(clips.y.astype(np.float32), rng_of_subsample)

    probe = MLPProbe(max_epochs=4, imbalance="subsample", random_state=seed).fit(clips.X, clips.y)
    probe_of_drawn = MLPProbe(max_epochs=4, random_state=seed).fit(clips.X[drawn_rows], clips.y[drawn_rows])

    assert probe.parameters_.tobytes() == probe_of_drawn.parameters_.tobytes()
    assert probe.mean_.tobytes() == probe_of_drawn.mean_.tobytes()


@pytest.mark.parametrize("remedy", REMEDIES)
def test_the_epoch_is_chosen_by_the_loss_of_held_out_clips_without_weights(remedy):
    """The remedy is for training clips alone; movie 0 is held out to choose the epoch."""
    clips = clips_of_a_rare_class()
    held_out = clips.movies == 0
    probe = MLPProbe(imbalance=remedy, max_epochs=8)

    probe.fit(clips.X[~held_out], clips.y[~held_out], X_val=clips.X[held_out], y_val=clips.y[held_out])

    unweighted_loss = log_loss(clips.y[held_out], probe.decision_function(clips.X[held_out]))
    assert probe.curve_.validation_loss.min() == pytest.approx(unweighted_loss, rel=1e-6)


@pytest.mark.parametrize("remedy", REMEDIES)
def test_the_threshold_is_chosen_on_held_out_scores_of_all_clips_without_weights(remedy):
    """The remedy is for training clips alone, and a subsample leaves out none of the held-out clips."""
    clips = clips_of_a_rare_class()
    selection = GroupedSelection(MLPProbe(imbalance=remedy, max_epochs=4), EarlyStopping())

    selection.fit(clips.X, clips.y, groups=clips.movies)

    held_out_scores = selection.held_out_.scores
    assert held_out_scores.shape == clips.y.shape
    assert selection.threshold_ == best_threshold(clips.y, held_out_scores)
