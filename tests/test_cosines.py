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


def draw_features(*, centre, n_clips, width):
    """Draw features [n_clips, width] whose columns have different scales, and means of about `centre`."""
    rng = np.random.default_rng(1)
    scale = np.exp(rng.normal(size=width))
    mean = centre * rng.normal(size=width)
    return (mean + scale * rng.normal(size=(n_clips, width))).astype(np.float32)


@pytest.fixture(scope="module", params=[0, 1, 1000], ids=lambda centre: f"centre-{centre}")
def group(request, tmp_path_factory):
    """2,500 clips, c00000 to c02499, more than two of the blocks of 1,024 that are read at once.

    c00003 and c02499 have failed, c00007 and c02040 are equal, and column 5 does not vary.
    """
    X = draw_features(centre=request.param, n_clips=2500, width=64)
    X[:, 5] = 3.25 + request.param
    X[7] = X[2040]
    movie_of = {f"c{row:05}": "film" for row in range(2500)}
    failed = {"c00003": "no picture", "c02499": "no picture"}
    path = seal_arrays(tmp_path_factory.mktemp("s") / "s", movie_of, {"toy": {"pooled": X}}, failed=failed)
    return open_store(path)["toy"]


def cosines_of_whole_array(X, vector, *, standard):
    """Compute the cosines of all rows with a vector in float64; `standard` standardises columns first."""
    if standard:
        varies = X.std(axis=0) > 0
        X, vector = (X - X.mean(axis=0))[:, varies], (vector - X.mean(axis=0))[varies]
        X, vector = X / X.std(axis=0), vector / X.std(axis=0)
    return X @ vector / np.linalg.norm(X, axis=1) / np.linalg.norm(vector)


@pytest.mark.long
@pytest.mark.parametrize("standard", [False, True])
def test_cosines_by_blocks_are_those_of_the_whole_array(group, standard):
    """Of 2,500 clips, read in blocks of 1,024, those of rows 3 and 2499 have failed, and get NaN.

    Clip c00007 is asked for: it is most like itself and the clip of row 2040, which has the same features.
    With `standard` each column is standardised first.
    """
    vector = group.read("c00007", "pooled").astype(np.float64)

    scores = cosines(group, vector, standard=standard)

    X = group.pooled()[group.usable].astype(np.float64)
    expected = cosines_of_whole_array(X, vector, standard=standard)
    np.testing.assert_allclose(scores[group.usable], expected, atol=1e-6)
    assert np.isnan(scores[3])
    assert np.isnan(scores[2499])
    assert best(scores, top=2).tolist() == [7, 2040]


@pytest.mark.parametrize("unit", [1e25, 1e-25, 1e-40])
@pytest.mark.parametrize("standard", [False, True])
def test_cosines_of_features_in_huge_and_tiny_units_are_exact(tmp_path, unit, standard):
    """In float32, squares of such features would overflow to infinity, or vanish."""
    features = draw_features(centre=1, n_clips=50, width=8).astype(np.float64)
    stored = (unit * features).astype(np.float32)
    movie_of = {f"c{row:02}": "film" for row in range(50)}
    store = open_store(seal_arrays(tmp_path / "s", movie_of, {"toy": {"pooled": stored}}))
    X = stored.astype(np.float64)
    vector = X[7]

    scores = cosines(store["toy"], vector, standard=standard)

    expected = cosines_of_whole_array(X, vector, standard=standard)
    np.testing.assert_allclose(scores, expected, atol=1e-6)


@pytest.mark.long
def test_mean_and_deviation_by_blocks_are_those_of_the_whole_array(group):
    """The group has features of 2,500 clips, which are read in blocks of 1,024; column 5 does not vary.

    The means are compared in units of the largest deviation, as some are 1,000 times as large.
    """
    X = group.pooled()[group.usable].astype(np.float64)

    mean, deviation = group.moments

    np.testing.assert_allclose((mean - X.mean(axis=0)) / X.std(axis=0).max(), 0, atol=1e-7)
    np.testing.assert_allclose(deviation, X.std(axis=0), rtol=1e-6)
    assert deviation[5] == 0


@given(
    scores=st.lists(st.sampled_from([0.5, 0.25, -1.0, float("nan")]), min_size=1), n_best=st.integers(1, 30)
)
def test_the_best_rows_have_the_highest_scores_and_of_equal_ones_the_first_comes_first(scores, n_best):
    """Rows without a score, NaN, are never among the best."""
    rows_with_score = [row for row, score in enumerate(scores) if not np.isnan(score)]
    from_highest = sorted(
        rows_with_score, key=lambda row: -scores[row]
    )  # Python's sort keeps equal ones in order

    assert best(np.array(scores, np.float32), n_best).tolist() == from_highest[:n_best]


@pytest.mark.long
@pytest.mark.nightly
def test_a_search_takes_less_memory_than_half_of_the_features(tmp_path):
    """Cosines are computed block by block: 20,000 clips of 128 numbers are never all in memory."""
    n_clips, width = 20_000, 128
    features = draw_features(centre=1, n_clips=n_clips, width=width)
    movie_of = {f"c{row:05}": "film" for row in range(n_clips)}
    store = open_store(seal_arrays(tmp_path / "s", movie_of, {"toy": {"pooled": features}}))
    group = store["toy"]
    vector = group.read("c00007", "pooled").astype(np.float64)  # also makes the index of ids

    tracemalloc.start()
    rows = best(cosines(group, vector, standard=True), top=20).tolist()
    clips = store.clips_at(rows)
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    bytes_of_features = n_clips * width * 4  # float32
    assert peak_bytes < bytes_of_features / 2
    assert rows[0] == 7, "c00007 is most like itself"
    for row in rows:
        assert clips[row] == store.clips[row]


def test_a_row_that_the_table_of_clips_lacks_is_refused(tmp_path):
    """The store has one clip, in row 0, and row 1 is asked for too."""
    features = np.ones((1, 2), np.float32)
    store_of_one_clip = open_store(seal_arrays(tmp_path / "s", {"a": "m"}, {"toy": {"pooled": features}}))

    with pytest.raises(StoreError):
        store_of_one_clip.clips_at([0, 1])


def test_a_table_of_clips_that_is_one_endless_line_is_refused():
    """The table comes in blocks of 64 KiB without any end of a line, 64 GiB in all; few of them are read."""
    blocks = (bytes(1 << 16) for _ in range(1 << 20))

    with pytest.raises(StoreError):
        parse_clips_csv(blocks, "here")
