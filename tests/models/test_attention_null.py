"""Where nothing is planted the tables say that nothing is found, in at least 9 of 10 corpora."""

from dataclasses import replace

import numpy as np
import pytest

from obygaze_features.manifest import builtin_codebook
from obygaze_models.dataset import Dataset
from obygaze_models.evaluation.evaluate import evaluate
from obygaze_models.evaluation.localise import localise
from obygaze_models.models.attention import AttentionPooling
from obygaze_models.models.registry import BUILTIN_MODELS
from obygaze_models.protocol.targets import Labels
from tests.evaluation.test_localise import frames_of, segments_of
from tests.planted_frames import planted_frames

N_MOVIES, N_FRAMES = 6, 16


class Framed(Dataset):
    """Clips with frames in memory."""

    def read(self, what, *, stream=False):
        del stream
        return self.frames if what == "frames" else self.X


def corpus(seed, *, event, n_per_movie, correlation):
    """Make 6 movies of clips, and where the event would be."""
    settings = {"n_event": 2, "size": 8.0, "seed": seed, "event": event, "correlation": correlation}
    X, y, movies, where = planted_frames(N_MOVIES, n_per_movie, N_FRAMES, 6, **settings)
    names = np.array([f"film{movie}" for movie in movies])
    ids = np.array([f"{name}-c{clip:03}" for clip, name in enumerate(names)])
    levels = np.where(y == 1, "S", "HN")
    labels = Labels(ids, names, levels, np.zeros((len(y), 0), dtype=np.bool_), (), {})
    book = builtin_codebook("obygaze12")
    data = Framed(X.mean(axis=1), labels, book, "toy", "pooled", "as stored", "0" * 64)
    object.__setattr__(data, "frames", X)
    return data, X, y, where


def found(seed, *, event, n_per_movie=16, correlation=0.0):
    """Say whether a table of metrics, and each row of one of localisation, is above chance.

    The statements are the interval of "average precision by movie" of attention on movies left out, and the
    shifts of the weights of two models, each trained on half of the movies, in the other half.
    """
    data, X, y, where = corpus(seed, event=event, n_per_movie=n_per_movie, correlation=correlation)
    run = evaluate(data, [replace(BUILTIN_MODELS["attention"], beside=())], "hn_s", seed=seed)
    row = run.metrics.set_index(["model", "metric"]).loc[("attention", "average_precision")]
    half = np.isin(data.movies, ["film0", "film1", "film2"])
    weights = np.empty(X.shape[:2])
    for train in (half, ~half):
        model = AttentionPooling(max_epochs=40, random_state=seed).fit(X[train], y[train])
        weights[~train] = model.weights(X[~train])
    segments = segments_of(where & (y == 1)[:, None], data.movies)
    pooled = localise(frames_of(weights, data.movies), segments).pooled
    above = (pooled["value"] > pooled["chance"]) & (pooled["p"] <= 0.05)
    # Where every film has an average precision of 1 its interval is undefined.
    low = row["movie_mean"] if row["movie_mean"] == 1 else row["movie_low"]
    return low > row["movie_chance"], *above


@pytest.mark.long
def test_of_10_corpora_without_an_event_the_tables_say_so():
    """Every second corpus has smooth frames. No single corpus can show how often nothing is found."""
    said = np.array([found(seed, event=False, correlation=0.9 * (seed % 2)) for seed in range(10)])
    assert (said.sum(axis=0) <= 1).all()


@pytest.mark.long
def test_the_same_tables_find_an_event_that_is_there():
    """Without it the corpora above would pass with tables that never find anything."""
    assert all(found(0, event=True, n_per_movie=100))
