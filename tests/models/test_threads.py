"""The number of threads changes no byte of a model."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from obygaze_models.models import MLPProbe, RidgeLogistic, linear_probe
from obygaze_models.models.attention import AttentionPooling
from obygaze_models.models.attentive import AttentiveProbe
from obygaze_models.models.linear import PENALTIES
from obygaze_models.models.probe_search import TrainingSet, search_probes


@pytest.mark.parametrize(
    ("model", "reads_frames"),
    [
        (RidgeLogistic(1.0), False),
        (AttentionPooling(max_epochs=3), True),
        (AttentiveProbe(max_epochs=3), True),
        (MLPProbe(max_epochs=3, imbalance="none"), False),
        (MLPProbe(max_epochs=3, imbalance="weights"), False),
        (MLPProbe(max_epochs=3, imbalance="subsample"), False),
    ],
    ids=["ridge", "attention", "attentive", "none", "weights", "subsample"],
)
def test_the_number_of_threads_changes_no_score(model, reads_frames):
    """300 clips are of noise: of 512 features, or of 16 frames of 32 features."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 512)).astype(np.float32)
    y = (rng.random(300) < 0.2).astype(np.int64)
    if reads_frames:
        X = X.reshape(300, 16, 32)

    with threadpool_limits(1):
        scores_of_one_thread = model.fit(X, y).decision_function(X)
    with threadpool_limits(2):
        scores_of_two_threads = model.fit(X, y).decision_function(X)

    assert scores_of_one_thread.tobytes() == scores_of_two_threads.tobytes()


@pytest.mark.long
def test_the_number_of_threads_changes_no_probe_searched_together():
    """Probes of several training sets share their matrix products, which BLAS could divide among threads.

    There are two training sets, of all movies but movie 0, and of all but movie 1.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 512)).astype(np.float32)
    y = (rng.random(300) < 0.3).astype(np.int64)
    movies = np.arange(300) % 6
    training_sets = []
    for left_out_movie in (0, 1):
        rows = np.flatnonzero(movies != left_out_movie)
        inner_folds = movies[rows] % 3
        training_sets.append(TrainingSet(rows, inner_folds))

    with threadpool_limits(1):
        results_of_one_thread = list(search_probes(linear_probe(), PENALTIES, X, y, training_sets))
    with threadpool_limits(2):
        results_of_two_threads = list(search_probes(linear_probe(), PENALTIES, X, y, training_sets))

    for of_one, of_two in zip(results_of_one_thread, results_of_two_threads, strict=True):
        assert of_one.scores.tobytes() == of_two.scores.tobytes()
        assert of_one.estimator[-1].coef_.tobytes() == of_two.estimator[-1].coef_.tobytes()
