"""A clip that is in a store under two ids counts twice in training; it is found by what it holds."""

import json

import numpy as np

from obygaze_features.exchange.merge import merge
from obygaze_features.store import open_store
from obygaze_features.store.growth import clips_under_two_ids
from obygaze_features.store.testing import seal_arrays
from tests.command import obygaze

RNG = np.random.default_rng(0)
FIRST, SECOND, THIRD = RNG.normal(size=(3, 5)).astype(np.float32)
"""Features of three clips that look different."""


def make_sealed_store(folder, name, movie_of, features, **settings):
    """Seal a store of clips, given the film and the features of each."""
    groups = {"net": {"pooled": np.stack(features)}}
    return open_store(seal_arrays(folder / name, movie_of, groups, **settings))


def test_renamed_clips_of_two_merged_stores_are_found(tmp_path, capsys):
    """The second store was made of a manifest with other ids, and one more clip."""
    older = make_sealed_store(tmp_path, "older", {"a-0": "a", "a-1": "a"}, [FIRST, SECOND])
    renamed = make_sealed_store(tmp_path, "renamed", {"A0": "a", "A2": "a"}, [FIRST, THIRD])

    merged = open_store(merge([older, renamed], tmp_path / "all"))

    assert clips_under_two_ids(merged) == [("a-0", "A0")]
    obygaze("store", "merge", older.path, renamed.path, "--out", tmp_path / "told", "--json")
    assert json.loads(capsys.readouterr().out)["there_twice"] == {"a-0": "A0"}


def test_clips_that_differ_in_film_times_or_features_are_not_one_clip_under_two_ids(tmp_path):
    """One clip under two ids has the same film, times and features. Here two clips share at most two of them.

    a-0 and a-1 have one film and the same features (both are black, say) at two times. a-0 and b-0 have the
    same times and features, in two films. b-0 and b-1 have one film and time, and other features.
    """
    movie_of = {"a-0": "a", "a-1": "a", "b-0": "b", "b-1": "b"}
    spans = {"a-0": (0.0, 1.0), "a-1": (1.0, 2.0), "b-0": (0.0, 1.0), "b-1": (0.0, 1.0)}
    features = [FIRST, FIRST, FIRST, SECOND]  # of a-0, a-1, b-0, b-1
    store = make_sealed_store(tmp_path, "films", movie_of, features, spans=spans)

    assert clips_under_two_ids(store) == []


def test_clips_without_features_or_without_a_film_are_left_out(tmp_path):
    """Nothing says that two failed clips, or two equal texts, are one."""
    failed = {"a-0": "the file is empty", "a-1": "the file is empty"}
    of_failed = make_sealed_store(tmp_path, "failed", {"a-0": "a", "a-1": "a"}, [FIRST, FIRST], failed=failed)
    texts = {"t0": "Run!", "t1": "Run!"}
    of_texts = make_sealed_store(tmp_path, "texts", {"t0": "", "t1": ""}, [FIRST, FIRST], texts=texts)

    assert clips_under_two_ids(of_failed) == []
    assert clips_under_two_ids(of_texts) == []
