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
def films(make_synthetic_data):
    """Clips of films, whose level moves them along one direction."""
    return make_synthetic_data(direction=2.0, film=1.0, n_features=20)


def rows_without_each_movie(data):
    """Return for each movie rows of the others: of the n-th movie, 7 n rows less, so that sizes differ."""
    rng = np.random.default_rng(0)
    training_rows = []
    for index, movie in enumerate(np.unique(data.movies)):
        rows = np.flatnonzero(data.movies != movie)
        kept = rng.permutation(rows)[: len(rows) - 7 * index]
        training_rows.append(np.sort(kept))
    return training_rows


def learnt_bytes(probe):
    """Return all that a fitted probe learnt, to the last bit."""
    curve = probe.curve_
    arrays = (probe.parameters_, curve.validation_loss, curve.train_loss)
    return [probe.threshold_, probe.n_epochs_, *(array.tobytes() for array in arrays)]


@pytest.mark.parametrize(
    ("dtype", "imbalance"),
    [(np.float32, "none"), (np.float64, "none"), (np.float32, "weights"), (np.float32, "subsample")],
)
def test_probes_trained_together_learn_what_they_learn_alone(films, dtype, imbalance):
    """Six probes are trained together for speed; each leaves out a movie, and has a seed of its own.

    Each learns, to the last bit, what it learns alone. `imbalance` says what is done about the rarer class.
    """
    X = films.X.astype(dtype)
    y = y_of(films)
    training_rows = rows_without_each_movie(films)
    settings = {"n_hidden": 16, "max_epochs": 5, "imbalance": imbalance}
    together = [MLPProbe(**settings, random_state=seed) for seed in range(len(training_rows))]

    fit_many(together, X, y, training_rows)

    for probe, rows in zip(together, training_rows, strict=True):
        alone = clone(probe).fit(X[rows], y[rows])
        assert learnt_bytes(probe) == learnt_bytes(alone)


def early_stopped_probe(variant, seed):
    """Make a probe of at most 40 epochs, which validation clips may stop earlier."""
    return MLPProbe(n_hidden=16, variant=variant, learning_rate=0.004, max_epochs=40, random_state=seed)


def fitted_one_by_one(probes, data, training_rows, validation_rows):
    """Train clones of probes one after the other, each stopped by its validation clips."""
    X, y = data.X, y_of(data)
    return [
        clone(probe).fit(X[train], y[train], X_val=X[validation], y_val=y[validation])
        for probe, train, validation in zip(probes, training_rows, validation_rows, strict=True)
    ]


def numbers_of_epochs(probes):
    """Return the different numbers of epochs after which probes were stopped."""
    return {len(probe.curve_.validation_loss) for probe in probes}


@pytest.mark.parametrize("variant", ["strict", "paper"])
def test_probes_stopped_at_different_epochs_learn_what_they_learn_alone(films, variant):
    """Probes are trained together for speed. Each leaves out a movie, whose clips say when it is stopped.

    They are stopped after different numbers of epochs, so that some go on while others have ended. Each
    learns, to the last bit, what it learns alone.
    """
    training_rows = rows_without_each_movie(films)
    validation_rows = [np.flatnonzero(films.movies == movie) for movie in np.unique(films.movies)]
    together = [early_stopped_probe(variant, seed) for seed in range(len(training_rows))]
    alone = fitted_one_by_one(together, films, training_rows, validation_rows)

    fit_many(together, films.X, y_of(films), training_rows, validation=validation_rows)

    assert len(numbers_of_epochs(together)) > 2
    assert [learnt_bytes(probe) for probe in together] == [learnt_bytes(probe) for probe in alone]


def record_trainings(monkeypatch):
    """Return a list to which every training of a network adds how many probes it serves."""
    n_probes_of_trainings = []
    train_network = neural_classifiers.train_network

    def record_and_train(*arguments, validation):
        n_probes_of_trainings.append(len(validation))
        return train_network(*arguments, validation=validation)

    monkeypatch.setattr(neural_classifiers, "train_network", record_and_train)
    return n_probes_of_trainings


@pytest.mark.parametrize("variant", ["strict", "paper"])
def test_probes_with_the_same_training_clips_are_trained_once(films, monkeypatch, variant):
    """Three probes are trained on the first three movies; each is stopped by the clips of another movie.

    One training serves all three, for speed. Each learns, to the last bit, what it learns alone.
    """
    names = np.unique(films.movies)
    training_rows = [np.flatnonzero(np.isin(films.movies, names[:3]))] * 3
    validation_rows = [np.flatnonzero(films.movies == movie) for movie in names[3:]]
    together = [early_stopped_probe(variant, seed=0) for _ in range(3)]
    alone = fitted_one_by_one(together, films, training_rows, validation_rows)

    n_probes_of_trainings = record_trainings(monkeypatch)
    fit_many(together, films.X, y_of(films), training_rows, validation=validation_rows)

    assert n_probes_of_trainings == [3]
    are_stopped_at_different_epochs = len(numbers_of_epochs(together)) > 1
    assert are_stopped_at_different_epochs
    assert [learnt_bytes(probe) for probe in together] == [learnt_bytes(probe) for probe in alone]


def train_step_by_step(network, X, y, batches, rng):
    """Train a network by one step of Adam for each batch of clips; return its parameters."""
    parameters = network.initial_parameters(rng, X, y)[0]
    order = rng.permutation(len(X))
    adam = Adam.zeros_like(parameters)
    gradient = np.empty_like(parameters)
    for batch in batches:
        rows = order[batch]
        layers = network.layers_of(parameters)
        layers_of_gradient = network.layers_of(gradient)
        network.backward(layers, X[rows], y[rows], layers_of_gradient)
        adam_step(parameters, gradient, adam, learning_rate=1e-3)
    return parameters


def test_the_gradient_of_a_short_batch_is_the_mean_over_the_clips_that_it_has(films):
    """A probe learns from 21 clips in batches of 16: its second step is the mean over 5 clips, not over 16.

    Its one epoch is done again here, step by step, with the same random numbers.
    """
    X = films.X[:21].astype(np.float64)
    y = y_of(films)[:21].astype(np.float64)
    y[:4] = [0, 1, 0, 1]  # both classes

    probe = MLPProbe(n_hidden=8, max_epochs=1).fit(X, y)

    rng = np.random.default_rng((0, 0))  # the probe's seed, 0, and the stream of numbers for training
    standardised = np.clip((X - probe.mean_) / probe.scale_, -CLIP, CLIP)
    network = Perceptron(X.shape[1], n_hidden=8)
    parameters = train_step_by_step(network, standardised, y, [slice(0, 16), slice(16, 21)], rng)
    np.testing.assert_allclose(probe.parameters_, parameters, atol=1e-12)


def test_probes_that_differ_in_more_than_their_seed_are_not_trained_together(films):
    """One has 4 hidden units, and one has 5."""
    all_rows = np.arange(len(films.X))

    with pytest.raises(ValueError, match="random_state"):
        fit_many([MLPProbe(n_hidden=4), MLPProbe(n_hidden=5)], films.X, y_of(films), [all_rows, all_rows])


def test_a_probe_whose_clips_have_one_class_is_refused_among_others(films):
    """The first probe has all clips, the second has negative ones alone."""
    y = y_of(films)
    all_rows = np.arange(len(y))
    negative_rows = np.flatnonzero(y == 0)

    with pytest.raises(ValueError, match="two classes"):
        fit_many([MLPProbe(n_hidden=4), MLPProbe(n_hidden=4)], films.X, y, [all_rows, negative_rows])


def test_a_validation_clip_that_a_probe_is_trained_on_is_refused(films):
    """One probe is trained on all clips, and clip 3 is given to validate it."""
    all_rows = np.arange(len(films.X))
    one_of_them = np.array([3])

    with pytest.raises(ValueError, match="trained on"):
        fit_many([MLPProbe(n_hidden=4)], films.X, y_of(films), [all_rows], validation=[one_of_them])
