"""A clip of several stores is partial if it is so in any of them, in training as in predictions."""

import numpy as np

import obygaze_features as of
import obygaze_models as om
from obygaze_features.store.testing import seal_arrays


def keep_store(folder, backbone, *, partial):
    """Keep a store of four clips, of which those in `partial` could be read in part only."""
    movie_of = {f"c{number}": f"f{number % 2}" for number in range(4)}
    vectors = np.arange(12, dtype=np.float32).reshape(4, 3)
    reasons = dict.fromkeys(partial, "cut short")
    return of.open_store(seal_arrays(folder, movie_of, {backbone: {"pooled": vectors}}, partial=reasons))


def test_clips_that_were_read_in_part_in_either_store_are_counted_once_each(tmp_path):
    """The pictures of c0 and c1 were cut short, and the sound of c1 and c2: three clips are partial."""
    seen = keep_store(tmp_path / "seen", "eyes", partial=["c0", "c1"])
    heard = keep_store(tmp_path / "heard", "ears", partial=["c1", "c2"])
    clips = [
        of.Clip(f"c{number}", f"f{number % 2}", level="S" if number < 2 else "EN") for number in range(4)
    ]

    data = om.load_dataset([seen, heard], of.Manifest(tuple(clips), tmp_path))

    assert data.counts["partial"] == 3
