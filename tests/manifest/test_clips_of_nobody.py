"""Two people's files of the same clips that name neither: the message says how to name them."""

import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import Clip, Manifest


def manifest_of(tmp_path, *annotators):
    """A manifest with a row of one clip for each annotator."""
    rows = [Clip("c", "f", "", start_s=0.0, end_s=1.0, level="S", annotator=name) for name in annotators]
    return Manifest(tuple(rows), tmp_path)


def test_clips_that_name_nobody_are_told_where_to_name_them(tmp_path):
    with pytest.raises(ManifestError, match="two people labelled it, name them in a column annotator"):
        manifest_of(tmp_path, "", "")


def test_an_annotator_who_has_a_clip_twice_is_not_told_so(tmp_path):
    with pytest.raises(ManifestError, match="there twice, of AB") as refusal:
        manifest_of(tmp_path, "AB", "AB")

    assert "two people" not in str(refusal.value)


def test_two_annotators_may_have_one_clip(tmp_path):
    assert len(manifest_of(tmp_path, "AB", "CD")) == 2
