"""Pieces of a store for PyTorch's DataLoader."""

import pickle
from importlib.util import find_spec

import numpy as np
import pytest

import obygaze_features as of
from obygaze_features.errors import ArgumentError, StoreError
from obygaze_features.store.testing import seal_arrays, seal_frames
from tests.lazy_import import lazy_import

torch = lazy_import("torch")
pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="no PyTorch here")


@pytest.fixture
def group(tmp_path):
    """Seventy clips with frames [2, 8] and tokens [3, 5] of float16; that of row 6 has no features."""
    rng = np.random.default_rng(0)
    arrays = {
        "frames": rng.standard_normal((70, 2, 8)).astype(np.float16),
        "tokens": rng.standard_normal((70, 3, 5)).astype(np.float16),
    }
    movie_of = {f"a-{row:02d}": "a" for row in range(70)}
    failed = {"a-06": "no video"}
    return of.open_store(seal_arrays(tmp_path / "s", movie_of, {"net": arrays}, failed=failed))["net"]


@pytest.mark.parametrize("array", ["frames", "tokens"])
def test_each_row_that_has_a_class_and_features_comes_once_with_its_class(group, array):
    """The class of a row is its number here, and -1, none, from row 60 on. Row 6 has no features."""
    classes = np.arange(70)
    classes[60:] = -1
    pieces = of.Pieces(group, array, classes)

    features_of_class = {}
    for number in range(len(pieces)):
        X, classes_of_piece = pieces[number]
        for class_of_row, features in zip(classes_of_piece.tolist(), X.numpy(), strict=True):
            assert class_of_row not in features_of_class, "it came before"
            features_of_class[class_of_row] = features

    rows_with_both = [row for row in range(60) if row != 6]
    assert sorted(features_of_class) == rows_with_both
    stored = group.rows(array)
    for row in rows_with_both:
        assert np.array_equal(features_of_class[row], stored[row])


def test_pieces_without_any_row_that_has_a_class_are_not_read(group):
    """Of 70 rows one has a class, 3: there is one piece, of this row alone."""
    classes = np.full(70, -1)
    classes[20] = 3
    pieces = of.Pieces(group, "tokens", classes)

    assert len(pieces) == 1
    X, classes_of_piece = pieces[0]
    assert tuple(X.shape) == (1, 3, 5)
    assert classes_of_piece.tolist() == [3]


def test_a_worker_reads_into_memory_that_the_main_process_sees(group, monkeypatch):
    """PyTorch says that this process is a worker of its DataLoader.

    The second piece of tokens has the rows 16 to 31.
    """
    monkeypatch.setattr("torch.utils.data.get_worker_info", object)
    pieces = of.Pieces(group, "tokens", np.ones(70, np.int64))

    X, _ = pieces[1]

    assert X.is_shared()
    assert np.array_equal(X.numpy(), group.rows("tokens", slice(16, 32)))


def test_pieces_are_pickled_without_features_and_read_them_from_the_store_again(group):
    """PyTorch's DataLoader sends its dataset to worker processes as a pickle.

    The group has 70 clips, each with a class (a number). Pickled are the path of the store and these classes,
    in less than 5,000 bytes; the frames of one clip take 32 bytes, those of all 2,240.
    """
    class_of_each_row = range(70)
    pieces = of.Pieces(group, "frames", class_of_each_row)

    pickled = pickle.dumps(pieces)
    unpickled = pickle.loads(pickled)  # noqa: S301 - made a line above

    assert len(pickled) < 5000
    X, _ = pieces[0]
    X_of_unpickled, _ = unpickled[0]
    assert torch.equal(X_of_unpickled, X)


@pytest.mark.parametrize(
    ("array", "classes"),
    [("frames", [0] * 69), ("patches", [0] * 70)],
    ids=["too few classes", "no such array"],
)
def test_classes_and_arrays_that_do_not_fit_the_store_are_refused(group, array, classes):
    """The store has 70 clips, with the arrays `frames` and `tokens`."""
    with pytest.raises(StoreError):
        of.Pieces(group, array, classes)


def test_clips_that_each_have_their_own_number_of_frames_are_no_batch(tmp_path):
    """One clip has three frames and the other five: no array holds both."""
    frames = {"a-0": np.ones((3, 4), np.float32), "a-1": np.ones((5, 4), np.float32)}
    store = of.open_store(seal_frames(tmp_path / "r", dict.fromkeys(frames, "a"), frames))
    (name,) = store

    with pytest.raises(StoreError, match="its own number"):
        of.Pieces(store[name], "frames", [0, 1])


def test_rows_are_read_into_an_array_of_ones_own(group):
    """A clip has frames [2, 8] of float16; five clips are read."""
    into = np.empty((5, 2, 8), np.float16)

    result = group.rows("frames", slice(10, 15), out=into)

    assert result is into
    assert np.array_equal(into, group.frames()[10:15])


@pytest.mark.parametrize(
    "into",
    [
        np.empty((4, 2, 8), np.float16),
        np.empty((5, 2, 8), np.float32),
        np.empty((5, 2, 16), np.float16)[:, :, ::2],
        "frames",
    ],
    ids=["for four clips", "of another type", "not contiguous", "no array"],
)
def test_rows_are_not_read_into_an_array_that_does_not_fit(group, into):
    """A clip has frames [2, 8] of float16; five clips are asked for."""
    with pytest.raises(ArgumentError):
        group.rows("frames", slice(10, 15), out=into)
