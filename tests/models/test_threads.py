"""The number of threads changes no byte of a model."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from obygaze_models.models import MLPProbe, RidgeLogistic, linear_probe
from obygaze_models.models.attention import AttentionPooling
from obygaze_models.models.attentive import AttentiveProbe
from obygaze_models.models.linear import PENALTIES
from obygaze_models.models.probe_search import TrainingSet, search_probes


def assert_scores_do_not_depend_on_the_number_of_threads(model, X, y):
    with threadpool_limits(1):
        scores_of_one_thread = model.fit(X, y).decision_function(X)
    with threadpool_limits(2):
        scores_of_two_threads = model.fit(X, y).decision_function(X)

    assert scores_of_one_thread.tobytes() == scores_of_two_threads.tobytes()


@pytest.mark.parametrize(
    "model",
    [
        RidgeLogistic(1.0),
        MLPProbe(max_epochs=3, imbalance="none"),
        MLPProbe(max_epochs=3, imbalance="weights"),
        MLPProbe(max_epochs=3, imbalance="subsample"),
    ],
    ids=["ridge", "mlp", "mlp with weights of classes", "mlp of a subsample of the larger class"],
)
def test_the_number_of_threads_changes_no_score(model):
    """A sum that is divided among threads is rounded otherwise, so a record would depend on the machine.

    300 clips of noise, of 512 features, are learnt and scored by one thread and by two.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 512)).astype(np.float32)
    y = (rng.random(300) < 0.2).astype(np.int64)

    assert_scores_do_not_depend_on_the_number_of_threads(model, X, y)


@pytest.mark.parametrize(
    "model", [AttentionPooling(max_epochs=3), AttentiveProbe(max_epochs=3)], ids=["attention", "attentive"]
)
def test_the_number_of_threads_changes_no_score_of_a_model_of_frames(model):
    """300 clips of noise, of 16 frames of 32 features, are learnt and scored by one thread and by two."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 512)).astype(np.float32)
    y = (rng.random(300) < 0.2).astype(np.int64)

    assert_scores_do_not_depend_on_the_number_of_threads(model, X.reshape(300, 16, 32), y)


def two_training_sets(movies):
    """The rows of all movies but movie 0, and of all but movie 1, each in three inner folds."""
    training_sets = []
    for left_out_movie in (0, 1):
        rows = np.flatnonzero(movies != left_out_movie)
        inner_folds = movies[rows] % 3
        training_sets.append(TrainingSet(rows, inner_folds))
    return training_sets


@pytest.mark.long
def test_the_number_of_threads_changes_no_probe_searched_together():
    """A penalty is chosen for two training sets at once, from products of matrices that both share.

    The library of matrix products could divide them among threads, and round otherwise. 300 clips of noise
    are of six movies.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 512)).astype(np.float32)
    y = (rng.random(300) < 0.3).astype(np.int64)
    movies = np.arange(300) % 6
    training_sets = two_training_sets(movies)

    with threadpool_limits(1):
        results_of_one_thread = list(search_probes(linear_probe(), PENALTIES, X, y, training_sets))
    with threadpool_limits(2):
        results_of_two_threads = list(search_probes(linear_probe(), PENALTIES, X, y, training_sets))

    for of_one, of_two in zip(results_of_one_thread, results_of_two_threads, strict=True):
        assert of_one.scores.tobytes() == of_two.scores.tobytes()
        assert of_one.estimator[-1].coef_.tobytes() == of_two.estimator[-1].coef_.tobytes()
