"""The number of threads changes no byte of a model."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from obygaze_models.models import MLPProbe, RidgeLogistic, linear_probe
from obygaze_models.models.attention import AttentionPooling
from obygaze_models.models.attentive import AttentiveProbe
from obygaze_models.models.linear import PENALTIES
from obygaze_models.models.probe_search import TrainingSet, search_probes

MODELS = {
    "ridge": RidgeLogistic(1.0),
    "attention": AttentionPooling(max_epochs=3),
    "attentive": AttentiveProbe(max_epochs=3),
    **{name: MLPProbe(max_epochs=3, imbalance=name) for name in ("none", "weights", "subsample")},
}


@pytest.mark.parametrize("name", MODELS)
def test_the_number_of_threads_changes_no_byte(name):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 512)).astype(np.float32)
    y = (rng.random(300) < 0.2).astype(np.int64)
    if name in ("attention", "attentive"):
        X = X.reshape(300, 16, 32)  # frames
    scores = []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads):
            scores.append(MODELS[name].fit(X, y).decision_function(X))
    assert scores[0].tobytes() == scores[1].tobytes()


def test_the_number_of_threads_changes_no_byte_of_probes_that_share_their_products():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 512)).astype(np.float32)
    y = (rng.random(300) < 0.3).astype(np.int64)
    movies = np.arange(300) % 6
    sides = []
    for left_out in (0, 1):
        rows = np.flatnonzero(movies != left_out)
        sides.append(TrainingSet(rows, movies[rows] % 3))
    results = []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads):
            chosen = list(search_probes(linear_probe(), PENALTIES, X, y, sides))
        results.append([part for fit in chosen for part in (fit.scores, fit.estimator[-1].coef_)])
    for with_one, with_two in zip(*results, strict=True):
        assert with_one.tobytes() == with_two.tobytes()
