"""Pieces of a store for PyTorch's DataLoader."""

import pickle
from importlib.util import find_spec

import numpy as np
import pytest

import obygaze_features as of
from obygaze_features.errors import ArgumentError, StoreError
from obygaze_features.store.testing import seal_arrays, seal_frames
from tests.later import later

torch = later("torch")
pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="no PyTorch here")

N = 70


@pytest.fixture
def group(tmp_path):
    """Seventy clips with frames and tokens; the seventh has no features."""
    rng = np.random.default_rng(0)
    arrays = {
        "frames": rng.standard_normal((N, 2, 8)).astype(np.float16),
        "tokens": rng.standard_normal((N, 3, 5)).astype(np.float16),
    }
    clips = {f"a-{i:02d}": "a" for i in range(N)}
    return of.open_store(seal_arrays(tmp_path / "s", clips, {"net": arrays}, failed={"a-06": "no video"}))[
        "net"
    ]


@pytest.mark.parametrize("array", ["frames", "tokens"])
def test_each_row_that_has_a_class_and_features_comes_once_with_its_class(group, array):
    y = np.arange(N)
    y[60:] = -1
    pieces, seen = of.Pieces(group, array, y), {}
    for number in range(len(pieces)):
        X, classes = pieces[number]
        seen |= dict(zip(classes.tolist(), X.numpy(), strict=True))
    assert sorted(seen) == [row for row in range(60) if row != 6]
    rows = group.rows(array)
    assert all(np.array_equal(values, rows[row]) for row, values in seen.items())


def test_pieces_without_any_row_that_is_used_are_not_read(group):
    y = np.full(N, -1)
    y[20] = 3
    pieces = of.Pieces(group, "tokens", y)
    X, classes = pieces[0]
    assert len(pieces) == 1
    assert (tuple(X.shape), classes.tolist()) == ((1, 3, 5), [3])


def test_a_worker_reads_into_memory_that_the_main_process_sees(group, monkeypatch):
    monkeypatch.setattr("torch.utils.data.get_worker_info", object)
    X, _ = of.Pieces(group, "tokens", np.ones(N, np.int64))[1]
    assert X.is_shared()
    assert np.array_equal(X.numpy(), group.rows("tokens", slice(16, 32)))


def test_pieces_pickle_without_features(group):
    pieces = of.Pieces(group, "frames", range(N))
    pickled = pickle.dumps(pieces)
    again = pickle.loads(pickled)  # noqa: S301 - made a line above
    assert torch.equal(again[0][0], pieces[0][0])
    assert len(pickled) < 5000


@pytest.mark.parametrize(
    ("array", "y"),
    [("frames", [0] * (N - 1)), ("patches", [0] * N)],
    ids=["too few classes", "no such array"],
)
def test_classes_and_arrays_that_do_not_fit_the_store_are_refused(group, array, y):
    with pytest.raises(StoreError):
        of.Pieces(group, array, y)


def test_clips_that_each_have_their_own_number_of_frames_are_no_batch(tmp_path):
    frames = {"a-0": np.ones((3, 4), np.float32), "a-1": np.ones((5, 4), np.float32)}
    group = of.open_store(seal_frames(tmp_path / "r", dict.fromkeys(frames, "a"), frames))
    [name] = group
    with pytest.raises(StoreError, match="its own number"):
        of.Pieces(group[name], "frames", [0, 1])


def test_rows_are_read_into_an_array_that_fits_and_no_other(group):
    into = np.empty((5, 2, 8), np.float16)
    assert group.rows("frames", slice(10, 15), out=into) is into
    assert np.array_equal(into, group.frames()[10:15])
    others = [
        np.empty((4, 2, 8), np.float16),
        np.empty((5, 2, 8), np.float32),
        np.empty((5, 2, 16), np.float16)[:, :, ::2],
        "frames",
    ]
    for other in others:
        with pytest.raises(ArgumentError):
            group.rows("frames", slice(10, 15), out=other)
