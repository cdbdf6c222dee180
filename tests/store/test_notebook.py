"""Stores and groups in a notebook: pandas tables, xarray, HTML."""

from pathlib import Path

import numpy as np
import pytest

from obygaze_features.manifest import Clip, Manifest, builtin_codebook
from obygaze_features.store import open_store
from obygaze_features.store.testing import seal_arrays

CLIPS = {"a-0": "a", "a-1": "a", "b-0": "b", "b-1": "b"}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Four clips: b-0 failed; tokens and two frames of 3 features."""
    rng = np.random.default_rng(0)
    pooled = rng.normal(size=(4, 3)).astype(np.float32)
    arrays = {
        "pooled": pooled,
        "frames": rng.normal(size=(4, 2, 3)).astype(np.float32),
        "tokens": rng.normal(size=(4, 5, 7)).astype(np.float16),
    }
    path = seal_arrays(
        tmp_path_factory.mktemp("notebook") / "films",
        CLIPS,
        {"net": arrays},
        failed={"b-0": "the file is empty"},
        spans={"a-1": (1.5, 3.0)},
    )
    return open_store(path)


@pytest.fixture
def manifest():
    """Three of the clips: b-1 is not in it."""
    clips = (
        Clip("a-1", "a", level="S", concepts=("Body", "Look")),
        Clip("a-0", "a"),
        Clip("b-0", "b", level="EN"),
    )
    return Manifest(clips, Path())


def test_a_table_has_a_row_for_each_clip_with_features_and_counts_the_others(store):
    """Of the clips a-0, a-1, b-0 and b-1, b-0 has failed. Features are in the columns f0, f1 and f2.

    Clip a-1 is the span from 1.5 to 3 s of its video, and a-0 a whole file, which has no times.
    """
    group = store["net"]

    frame = group.to_frame()

    assert frame["clip_id"].tolist() == ["a-0", "a-1", "b-1"]
    assert frame["movie"].tolist() == ["a", "a", "b"]
    features = frame[["f0", "f1", "f2"]].to_numpy()
    assert np.array_equal(features, group.pooled()[group.usable])
    assert frame.columns[-1] == "f2"
    assert "level" not in frame
    assert frame.attrs == {"left_out": {"failed": 1}}

    times = frame.set_index("clip_id")[["start_s", "end_s"]]
    assert times.loc["a-1"].tolist() == [1.5, 3.0]
    assert times.loc["a-0"].isna().all()


def test_a_manifest_adds_levels_and_a_column_for_each_concept_to_the_table(store, manifest):
    """Of four clips, b-0 failed and b-1 is not in the manifest, which gives a-1 the level S, and a-0 none."""
    frame = store["net"].to_frame(manifest).set_index("clip_id")

    assert frame.index.tolist() == ["a-0", "a-1"]
    assert frame.attrs == {"left_out": {"failed": 1, "not in the manifest": 1}}
    assert frame["level"]["a-1"] == "S"
    assert frame["level"].isna()["a-0"]

    concepts = list(builtin_codebook("obygaze12").concept_names)
    columns = frame.columns.tolist()
    first_after_level = columns.index("level") + 1
    assert columns[first_after_level : first_after_level + len(concepts)] == concepts
    assert frame[concepts].dtypes.eq("boolean").all()
    concepts_of_clip = [concept for concept in concepts if frame.loc["a-1", concept]]
    assert sorted(concepts_of_clip) == ["Body", "Look"]


def test_xarray_gets_a_group_with_named_dimensions(store):
    """Four clips of the movies a and b, of which each has 2 frames of 3 features, and 5 tokens of 7.

    Clip b-0 has failed, and a-1 ends at second 3.
    """
    data = store["net"].to_xarray()

    assert np.array_equal(data.pooled, store["net"].pooled(), equal_nan=True)
    assert dict(data.sizes) == {"clip": 4, "feature": 3, "frame": 2, "token": 5, "token_feature": 7}

    assert data["status"].sel(clip="b-0") == "failed"
    assert data["movie"].values.tolist() == ["a", "a", "b", "b"]
    assert float(data["end_s"].sel(clip="a-1")) == 3.0

    means_by_movie = data.pooled.groupby("movie").mean()
    assert means_by_movie.shape == (2, 3)


def test_xarray_gets_a_store_as_a_tree_of_its_groups(store):
    """The store, of version 1.0.0, has one group of features: "net"."""
    tree = store.to_xarray()

    assert tree["net"].pooled.identical(store["net"].to_xarray().pooled)
    assert tree.attrs["version"] == "1.0.0"


@pytest.mark.parametrize(
    "index",
    [np.s_[-1], np.s_[1:3], np.s_[::-2], np.s_[2:2], np.s_[0, ::2, 3], np.s_[..., -1]],
    ids=["the last clip", "a slice", "backwards", "nothing", "tokens of a clip", "one feature"],
)
def test_xarray_reads_the_values_of_an_index(store, index):
    """Tokens [4 clips, 5 tokens, 7 features] are read when they are indexed; NumPy says what is right."""
    values = store["net"].tokens()
    lazy = store["net"].to_xarray().tokens

    assert np.array_equal(lazy[index].values, values[index], equal_nan=True)


def test_xarray_indexes_each_dimension_by_itself(store):
    """Clips 1 and 0 and features 2 and 3 give all four pairs, not (1, 2) and (0, 3) alone as in NumPy.

    Tokens are [4 clips, 5 tokens, 7 features].
    """
    values = store["net"].tokens()
    lazy = store["net"].to_xarray().tokens
    clips = [1, 0]
    features = [2, 3]

    indexed = lazy[clips, :, features].values

    expected = values[clips][:, :, features]
    assert np.array_equal(indexed, expected, equal_nan=True)


def test_html_names_what_there_is_and_is_escaped(tmp_path):
    """A store called "R&D" must be shown as R&amp;D, which browsers display as R&D."""
    path = seal_arrays(tmp_path / "R&D", CLIPS, {"net": {"pooled": np.ones((4, 3), dtype=np.float32)}})
    store = open_store(path)

    html = store._repr_html_()
    html_of_group = store["net"]._repr_html_()

    assert "R&amp;D 1.0.0" in html
    assert "R&D" not in html
    assert "<td>pooled [3]</td>" in html
    assert "<td>4 of 4</td>" in html
    assert "<td>clip x feature</td>" in html_of_group
