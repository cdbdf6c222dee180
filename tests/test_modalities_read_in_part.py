"""Clips of several stores are counted as what they are together, in training as in predictions."""

import numpy as np

import obygaze_features as of
import obygaze_models as om
from obygaze_features.store.testing import seal_arrays
from obygaze_models.dataset import load_datasets


def keep_store(folder, backbone, *, partial, n_clips=4):
    """Keep a store of the clips c0, c1, ..., of which those in `partial` could be read in part only."""
    movie_of = {f"c{number}": f"f{number % 2}" for number in range(n_clips)}
    vectors = np.arange(3 * n_clips, dtype=np.float32).reshape(n_clips, 3)
    reasons = dict.fromkeys(partial, "cut short")
    return of.open_store(seal_arrays(folder, movie_of, {backbone: {"pooled": vectors}}, partial=reasons))


def manifest_of_four_clips(folder):
    """List the clips c0 to c3 of two films: two of the level S and two of EN."""
    clips = (
        of.Clip("c0", "f0", level="S"),
        of.Clip("c1", "f1", level="S"),
        of.Clip("c2", "f0", level="EN"),
        of.Clip("c3", "f1", level="EN"),
    )
    return of.Manifest(clips, folder)


def test_clips_that_were_read_in_part_in_either_store_are_counted_once_each(tmp_path):
    """The pictures of c0 and c1 were cut short, and the sound of c1 and c2: three clips are partial."""
    seen = keep_store(tmp_path / "seen", "eyes", partial=["c0", "c1"])
    heard = keep_store(tmp_path / "heard", "ears", partial=["c1", "c2"])

    data = om.load_dataset([seen, heard], manifest_of_four_clips(tmp_path))

    assert data.counts["partial"] == 3


def test_clips_of_either_store_that_the_manifest_lacks_are_counted_once_each(tmp_path):
    """Of six clips with pictures and seven with sound the manifest has four."""
    seen = keep_store(tmp_path / "seen", "eyes", partial=[], n_clips=6)
    heard = keep_store(tmp_path / "heard", "ears", partial=[], n_clips=7)

    data = om.load_dataset([seen, heard], manifest_of_four_clips(tmp_path))

    assert data.counts["in_store_only"] == 3


def test_backbones_that_are_compared_count_the_clips_that_all_of_them_have(tmp_path):
    """The second store lacks c3. In the first one, c0 and c3 could be read in part only."""
    seen = keep_store(tmp_path / "seen", "eyes", partial=["c0", "c3"])
    heard = keep_store(tmp_path / "heard", "ears", partial=[], n_clips=3)

    of_eyes, of_ears = load_datasets([seen, heard], manifest_of_four_clips(tmp_path))

    assert of_eyes.counts["with_features"] == of_ears.counts["with_features"] == 3
    assert of_eyes.counts["partial"] == 1
