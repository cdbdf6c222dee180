"""Scores by blocks are those of the whole array, and take the room of a block."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from obygaze_features.cosines import best, cosines
from obygaze_features.errors import StoreError
from obygaze_features.store import open_store
from obygaze_features.store.records import parse_clips_csv
from obygaze_features.store.testing import seal_arrays

N, WIDTH = 2500, 64  # more than two blocks of 1,024


def spread(centre, width=WIDTH, n=N):
    rng = np.random.default_rng(1)
    scale = np.exp(rng.normal(size=width))
    return (centre * rng.normal(size=width) + scale * rng.normal(size=(n, width))).astype(np.float32)


@pytest.fixture(scope="module", params=[0, 1, 1000], ids=lambda centre: f"centre-{centre}")
def group(request, tmp_path_factory):
    X = spread(request.param)
    X[:, 5] = 3.25 + request.param  # does not vary
    X[7] = X[2040]
    ids = {f"c{row:05}": "film" for row in range(N)}
    failed = {"c00003": "no picture", "c02499": "no picture"}
    path = seal_arrays(tmp_path_factory.mktemp("s") / "s", ids, {"toy": {"pooled": X}}, failed=failed)
    return open_store(path)["toy"]


def directly(X, vector, *, standard):
    """The same scores in float64 from the whole array."""
    if standard:
        varies = X.std(axis=0) > 0
        X, vector = (X - X.mean(axis=0))[:, varies], (vector - X.mean(axis=0))[varies]
        X, vector = X / X.std(axis=0), vector / X.std(axis=0)
    return X @ vector / np.linalg.norm(X, axis=1) / np.linalg.norm(vector)


@pytest.mark.long
@pytest.mark.parametrize("standard", [False, True])
def test_scores_are_those_of_the_whole_array(group, standard):
    X = group.pooled()[group.usable].astype(np.float64)
    vector = group.read("c00007", "pooled").astype(np.float64)
    scores = cosines(group, vector, standard=standard)
    assert np.isnan(scores[[3, 2499]]).all()
    np.testing.assert_allclose(scores[group.usable], directly(X, vector, standard=standard), atol=1e-6)
    assert best(scores, 2).tolist() == [7, 2040]


@pytest.mark.parametrize("unit", [1e25, 1e-25, 1e-40])
def test_scores_do_not_depend_on_the_unit_of_the_features(tmp_path, unit):
    X = (unit * spread(1, 8, 50).astype(np.float64)).astype(np.float32)
    group = open_store(
        seal_arrays(tmp_path / "s", {f"c{row:02}": "film" for row in range(50)}, {"toy": {"pooled": X}})
    )["toy"]
    X = X.astype(np.float64)
    for standard in (False, True):
        scores = cosines(group, X[7], standard=standard)
        np.testing.assert_allclose(scores, directly(X, X[7], standard=standard), atol=1e-6)


@pytest.mark.long
def test_moments_are_those_of_the_whole_array(group):
    X = group.pooled()[group.usable].astype(np.float64)
    mean, deviation = group.moments
    np.testing.assert_allclose((mean - X.mean(axis=0)) / X.std(axis=0).max(), 0, atol=1e-7)
    np.testing.assert_allclose(deviation, X.std(axis=0), rtol=1e-6)
    assert deviation[5] == 0


@given(st.lists(st.sampled_from([0.5, 0.25, -1.0, float("nan")]), min_size=1), st.integers(1, 30))
def test_the_best_are_the_first_of_a_stable_order(scores, top):
    scores = np.array(scores, np.float32)
    order = [row for row in np.argsort(-scores, kind="stable") if not np.isnan(scores[row])]
    assert best(scores, top).tolist() == order[:top]


@pytest.mark.long
@pytest.mark.nightly
def test_a_search_takes_the_room_of_a_block(tmp_path):
    n, width = 20_000, 128
    ids = {f"c{row:05}": "film" for row in range(n)}
    store = open_store(seal_arrays(tmp_path / "s", ids, {"toy": {"pooled": spread(1, width, n)}}))
    group = store["toy"]
    vector = group.read("c00007", "pooled").astype(np.float64)  # makes the index of ids
    tracemalloc.start()
    rows = best(cosines(group, vector, standard=True), 20).tolist()
    clips = store.clips_at(rows)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert rows[0] == 7
    assert peak < n * width * 4 / 2
    assert all(clips[row] == store.clips[row] for row in rows)


def test_a_table_without_the_row_and_an_endless_line_are_refused(tmp_path):
    store = open_store(seal_arrays(tmp_path / "s", {"a": "m"}, {"toy": {"pooled": np.ones((1, 2), "f4")}}))
    with pytest.raises(StoreError):
        store.clips_at([0, 1])
    zeros = (bytes(1 << 16) for _ in range(1 << 20))
    with pytest.raises(StoreError):
        parse_clips_csv(zeros, "here")
