"""An import says the size of its features in words, in the singular where there is one frame or number."""

import numpy as np
import pytest

from .lab_features import import_frames, write_films


def import_array(folder, values):
    """Save an array for the clip a, and import it as frames without an option."""
    write_films(folder, "a")
    np.save(folder / "a.npy", values)
    assert import_frames(folder, ".", "npy") == 0


@pytest.mark.parametrize(
    ("shape", "size"), [((1, 16), "1 frame of 16 numbers"), ((7, 16), "7 frames of 16 numbers")]
)
def test_each_clip_has_one_frame_or_several(tmp_path, capsys, shape, size):
    import_array(tmp_path, np.ones(shape, np.float32))

    assert f"each clip has: {size}" in capsys.readouterr().out


def test_a_doubt_about_axes_counts_one_number_in_the_singular(tmp_path, capsys):
    """Seven rows of one number may be one row of seven: the import says so."""
    import_array(tmp_path, np.ones((7, 1), np.float32))

    assert "axes: 7 frames of 1 number in a clip" in capsys.readouterr().err
