"""What a dry run says: passes that windows share, strata of the work, room on the disk."""

from importlib import import_module

import numpy as np
import pytest

import obygaze_features as of
from obygaze_features.demo.corpus import write_video
from obygaze_features.extraction import estimate
from obygaze_features.extraction.cost_estimate import Estimate
from obygaze_features.store.disk_usage import DiskEstimate, FreeSpace


@pytest.fixture(scope="module")
def film(tmp_path_factory):
    """A film of 20 s."""
    folder = tmp_path_factory.mktemp("film")
    frames = (np.full((48, 64, 3), 5 * (t % 40), np.uint8) for t in range(240))
    write_video(folder / "film.mp4", frames, 12)
    return folder


def windows(folder, n):
    clips = tuple(of.Clip(f"w{i:02d}", "m", "film.mp4", 0.5 * i, 0.5 * i + 2) for i in range(n))
    return of.Manifest(clips, folder)


def test_windows_of_a_film_are_counted_by_the_passes_they_share(film, monkeypatch):
    module = import_module(
        "obygaze_features.extraction.cost_estimate"
    )  # the package has a function of this name
    monkeypatch.setattr(module, "LONGEST_S", float("inf"))
    found = estimate(windows(film, 32), film / "s", n_frames=2, workers=1)
    assert (found.clips, found.files, found.passes, found.tried) == (32, 1, 2, 32)
    assert found.seconds > 0
    assert found.cpu_s > 0
    assert found.gpu_s is None
    alone = 32 * estimate(windows(film, 1), film / "s", n_frames=2, workers=1).cpu_s
    assert found.cpu_s < alone


def test_it_says_room_and_what_is_free_and_warns_if_that_is_too_little(film):
    found = estimate(windows(film, 4), film / "s", n_frames=2, workers=1)
    names = [name for name, _ in found.facts()]
    assert names[-4:] == ["CPU hours", "store on disk", "peak disk", "files on disk"]
    assert found.room.peak_bytes > found.room.store_bytes > found.feature_bytes
    assert found.obstacle() is None
    tight = Estimate(
        *(4, 1, 0, 1, 9, 9, 1),
        room=DiskEstimate(10**9, 10**9, 2 * 10**9, 9, 9, links=True),
        free=FreeSpace(10**9, 5),
    )
    assert "2 GB are needed at the peak, 1 GB are free" in tight.obstacle()
