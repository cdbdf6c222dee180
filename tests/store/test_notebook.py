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
    group = store["net"]
    frame = group.to_frame()
    assert frame["clip_id"].tolist() == ["a-0", "a-1", "b-1"]
    assert frame["movie"].tolist() == ["a", "a", "b"]
    assert np.array_equal(frame.loc[:, "f0":].to_numpy(), group.pooled()[group.usable])
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
    behind_level = frame.columns.get_loc("level") + 1
    assert frame.columns[behind_level : behind_level + len(concepts)].tolist() == concepts
    assert frame[concepts].dtypes.eq("boolean").all()
    marked = frame.loc["a-1", concepts]
    assert sorted(marked[marked.astype(bool)].index) == ["Body", "Look"]


def test_xarray_gets_a_group_with_named_dimensions(store):
    """Four clips, of which each has 2 frames of 3 features, and 5 tokens of 7."""
    data = store["net"].to_xarray()
    assert np.array_equal(data.pooled, store["net"].pooled(), equal_nan=True)
    assert dict(data.sizes) == {"clip": 4, "feature": 3, "frame": 2, "token": 5, "token_feature": 7}

    assert data["status"].sel(clip="b-0") == "failed"
    assert data["movie"].values.tolist() == list(CLIPS.values())
    assert float(data["end_s"].sel(clip="a-1")) == 3.0
    assert data.pooled.groupby("movie").mean().shape == (2, 3)


def test_xarray_gets_a_store_as_a_tree_of_its_groups(store):
    tree = store.to_xarray()
    assert tree["net"].pooled.identical(store["net"].to_xarray().pooled)
    assert tree.attrs["version"] == "1.0.0"


@pytest.mark.parametrize(
    "index",
    [np.s_[-1], np.s_[1:3], np.s_[::-2], np.s_[2:2], np.s_[0, ::2, 3], np.s_[..., -1]],
    ids=["the last clip", "a slice", "backwards", "nothing", "tokens of a clip", "one feature"],
)
def test_xarray_reads_the_values_of_an_index(store, index):
    values = store["net"].tokens()
    lazy = store["net"].to_xarray().tokens
    assert np.array_equal(lazy[index].values, values[index], equal_nan=True)


def test_xarray_indexes_each_dimension_by_itself(store):
    values = store["net"].tokens()
    lazy = store["net"].to_xarray().tokens
    clips, features = [1, 0], [2, 3]
    expected = values[np.ix_(clips, range(5), features)]
    assert np.array_equal(lazy[clips, :, features].values, expected, equal_nan=True)


def test_html_names_what_there_is_and_is_escaped(tmp_path):
    """A store called "R&D" must be shown as R&amp;D, which browsers display as R&D."""
    path = seal_arrays(tmp_path / "R&D", CLIPS, {"net": {"pooled": np.ones((4, 3), dtype=np.float32)}})
    html = open_store(path)._repr_html_()
    assert "R&amp;D 1.0.0" in html
    assert "R&D" not in html
    assert "<td>pooled [3]</td>" in html
    assert "<td>4 of 4</td>" in html
    assert "<td>clip x feature</td>" in open_store(path)["net"]._repr_html_()
