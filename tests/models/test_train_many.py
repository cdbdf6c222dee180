"""Models trained together have, each, the bytes they'd have alone: whatever company and threads."""

import numpy as np
import pytest
from sklearn.base import clone

from obygaze_models.models import MLPProbe, fit_many, neural_classifiers
from obygaze_models.models.adam import Adam, adam_step
from obygaze_models.models.perceptron import Perceptron
from obygaze_models.models.scaling import CLIP
from tests.models.test_mlp_probe import y_of


@pytest.fixture(scope="module")
def learnable(make_planted):
    return make_planted(direction=2.0, film=1.0, n_features=20)


def leave_out(data):
    """Return the rows of all movies but one, movie by movie; each next one lacks seven clips more."""
    rng = np.random.default_rng(0)
    sides = []
    for index, movie in enumerate(np.unique(data.movies)):
        rows = np.flatnonzero(data.movies != movie)
        kept = rng.permutation(rows)[: len(rows) - 7 * index]
        sides.append(np.sort(kept))
    return sides


def bytes_of(probe):
    """Return all that a fitted probe learnt, to the last bit."""
    curve = probe.curve_
    arrays = (probe.parameters_, curve.validation_loss, curve.train_loss)
    return [probe.threshold_, probe.n_epochs_, *(array.tobytes() for array in arrays)]


@pytest.mark.parametrize(
    ("dtype", "imbalance"),
    [(np.float32, "none"), (np.float64, "none"), (np.float32, "weights"), (np.float32, "subsample")],
)
def test_without_anything_to_stop_on_together_equals_one_by_one(learnable, dtype, imbalance):
    X, y, sides = learnable.X.astype(dtype), y_of(learnable), leave_out(learnable)
    settings = {"n_hidden": 16, "max_epochs": 5, "imbalance": imbalance}
    together = [MLPProbe(**settings, random_state=seed) for seed in range(len(sides))]
    fit_many(together, X, y, sides)
    for probe, rows in zip(together, sides, strict=True):
        alone = clone(probe).fit(X[rows], y[rows])
        assert bytes_of(probe) == bytes_of(alone)


def n_epochs_of_probes(data, variant, seeds, sides, held_out):
    """Train on each side, stopped by the clips held out, together and one by one; these must be the same.

    Returns the different numbers of epochs that were run.
    """
    X, y = data.X, y_of(data)
    settings = {"n_hidden": 16, "variant": variant, "learning_rate": 0.004, "max_epochs": 40}
    together = [MLPProbe(**settings, random_state=seed) for seed in seeds]
    alone = []
    for probe, rows, validation in zip(together, sides, held_out, strict=True):
        alone.append(clone(probe).fit(X[rows], y[rows], X_val=X[validation], y_val=y[validation]))
    fit_many(together, X, y, sides, validation=held_out)
    assert [bytes_of(probe) for probe in together] == [bytes_of(probe) for probe in alone]
    return {len(probe.curve_.validation_loss) for probe in together}


@pytest.mark.parametrize("variant", ["strict", "paper"])
def test_models_that_stop_at_different_epochs_don_t_disturb_one_another(learnable, variant):
    held_out = [np.flatnonzero(learnable.movies == movie) for movie in np.unique(learnable.movies)]
    seeds = range(len(held_out))
    assert len(n_epochs_of_probes(learnable, variant, seeds, leave_out(learnable), held_out)) > 2


@pytest.mark.parametrize("variant", ["strict", "paper"])
def test_models_that_differ_in_what_they_are_validated_on_alone_are_trained_once(
    learnable, monkeypatch, variant
):
    n_models_of_trainings = []
    train_network = neural_classifiers.train_network

    def counted(*arguments, validation):
        n_models_of_trainings.append(len(validation))
        return train_network(*arguments, validation=validation)

    monkeypatch.setattr(neural_classifiers, "train_network", counted)
    names = np.unique(learnable.movies)
    rows = np.flatnonzero(np.isin(learnable.movies, names[:3]))
    held_out = [np.flatnonzero(learnable.movies == movie) for movie in names[3:]]
    n = len(held_out)
    assert len(n_epochs_of_probes(learnable, variant, [0] * n, [rows] * n, held_out)) > 1
    # Alone one after the other, then all of them in one training.
    assert n_models_of_trainings == [1] * n + [n]


def test_an_epoch_of_short_batches_equals_the_plain_mean_over_their_clips(learnable):
    """21 clips in batches of 16: the second step's gradient is the mean over 5 clips, not over 16."""
    X, y = learnable.X[:21].astype(np.float64), y_of(learnable)[:21].copy()
    y[:4] = [0, 1, 0, 1]
    probe = MLPProbe(8, max_epochs=1).fit(X, y)
    rng = np.random.default_rng((0, 0))
    network = Perceptron(X.shape[1], 8)
    parameters = network.initial_parameters(rng, X, y)[0]
    order, state = rng.permutation(21), Adam.zeros_like(parameters)
    standard = np.clip((X - probe.mean_) / probe.scale_, -CLIP, CLIP)
    gradient = np.empty_like(parameters)
    layers = network.layers_of(parameters)
    gradient_layers = network.layers_of(gradient)
    for rows in (order[:16], order[16:]):
        network.backward(layers, standard[rows], y[rows] * 1.0, gradient_layers)
        adam_step(parameters, gradient, state, 1e-3)
    np.testing.assert_allclose(probe.parameters_, parameters, atol=1e-12)


def test_probes_of_unlike_settings_are_refused(learnable):
    rows = np.arange(len(learnable.X))
    with pytest.raises(ValueError, match="random_state"):
        fit_many([MLPProbe(4), MLPProbe(5)], learnable.X, y_of(learnable), [rows, rows])


def test_training_rows_of_one_class_are_refused(learnable):
    y = y_of(learnable)
    rows = np.arange(len(y))
    negatives = np.flatnonzero(y == 0)
    with pytest.raises(ValueError, match="two classes"):
        fit_many([MLPProbe(4), MLPProbe(4)], learnable.X, y, [rows, negatives])


def test_validation_rows_that_are_trained_on_are_refused(learnable):
    rows = np.arange(len(learnable.X))
    trained_on = np.array([3])
    with pytest.raises(ValueError, match="trained on"):
        fit_many([MLPProbe(4)], learnable.X, y_of(learnable), [rows], validation=[trained_on])
