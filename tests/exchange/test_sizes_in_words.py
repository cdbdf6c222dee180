"""An import says the size of its features in words, in the singular where there is one frame or number."""

import numpy as np
import pytest

from obygaze_features.manifest import Clip, Manifest, write_manifest
from tests.command import obygaze


@pytest.fixture
def import_frames(tmp_path):
    """Return a function that saves an array for the clip a, and imports it as frames without an option."""

    def import_frames(values, *options):
        write_manifest(Manifest([Clip("a", "tt1", "a.mp4", 0.0, 5.0)], tmp_path), tmp_path / "films.csv")
        (tmp_path / "npy").mkdir()
        np.save(tmp_path / "npy" / "a.npy", values)
        settings = ("--from", "npy", "--array", "frames", "--backbone", "lab", "--licence", "MIT")
        folder = (tmp_path / "films.csv", tmp_path / "npy", tmp_path / "lab")
        return obygaze("store", "import", *folder, *settings, *options)

    return import_frames


@pytest.mark.parametrize(
    ("shape", "size"), [((1, 16), "1 frame of 16 numbers"), ((7, 16), "7 frames of 16 numbers")]
)
def test_each_clip_has_one_frame_or_several(import_frames, capsys, shape, size):
    import_frames(np.ones(shape, np.float32))

    assert f"each clip has: {size}" in capsys.readouterr().out


def test_a_doubt_about_axes_counts_one_number_in_the_singular(import_frames, capsys):
    """Seven rows of one number may be one row of seven: the import says so."""
    import_frames(np.ones((7, 1), np.float32))

    assert "axes: 7 frames of 1 number in a clip" in capsys.readouterr().err
