"""Which frames of a clip are taken, against the original's (check 8), and the cache of them."""

import json
from pathlib import Path

import numpy as np
import pytest

from obygaze_features.backbones.presets import choose_preset
from obygaze_features.errors import VideoError
from obygaze_features.video import at, read_frames
from obygaze_studies.errors import TrainError
from obygaze_studies.lsmdc.frame_cache import INDEX, RECIPE, FrameCache, digest_of, frame_rate, sample_frames

from .corpus import picture, write_video

PRESET = choose_preset("clip", ("clip",), size=32)
ALL = 10**6


def test_frames_of_real_videos_are_those_that_the_original_takes(oracle, shared_data):
    original = json.loads((oracle.folder / "frames_of_videos.json").read_text())["videos"]
    # nasa_13013.mp4 has two video streams: ours takes the one that players take, OpenCV the other.
    # corrupted.mp4: OpenCV delivers frames that a decoding in order does not have.
    for name in sorted(original.keys() - {"nasa_13013.mp4", "corrupted.mp4"}):
        path = shared_data / "videos" / name
        assert frame_rate(path) == pytest.approx(original[name]["fps"]), name
        frames = sample_frames(path, PRESET.geometry, ALL)
        assert len(frames.index) == original[name]["taken"], name
        assert frames.index.tolist() == [
            int(original[name]["fps"]) * s for s in range(original[name]["taken"])
        ]
        assert frames.status == "ok"


def test_pixels_are_the_presets_and_no_more_than_asked_for(shared_data):
    """The video has 19 frames a second, and one frame each second is taken (19 s).

    Twelve of these are spread evenly.
    """
    path = shared_data / "videos" / "v_GGSY1Qvo990.mp4"
    frames = sample_frames(path, PRESET.geometry, 12)
    assert frames.index.tolist() == [19 * s for s in np.linspace(0, 18, 12, dtype=int)]
    plain = read_frames(path, at([19]), each=PRESET.geometry).images[0]
    assert np.stack(frames.images).shape == (12, 32, 32, 3)
    assert np.array_equal(frames.images[1], plain)


@pytest.mark.long
def test_a_damaged_video_gives_what_can_be_decoded_and_says_so(shared_data):
    frames = sample_frames(shared_data / "videos" / "corrupted.mp4", PRESET.geometry, 12)
    assert len(frames.images)
    assert (frames.status, bool(frames.notes)) == ("partial", True)


@pytest.fixture(scope="module")
def videos(tmp_path_factory):
    folder = tmp_path_factory.mktemp("videos")
    rng = np.random.default_rng(0)
    paths = {
        name: write_video(folder / f"{name}.avi", [picture(0, rng)] * n) for name, n in (("a", 4), ("b", 7))
    }
    paths["broken"] = folder / "broken.avi"
    paths["broken"].write_bytes(b"RIFF and nothing else")
    return paths


@pytest.fixture
def fill(tmp_path):
    """Fill a cache and give it with its entries and the number of clips that were decoded for it."""

    def run(videos, folder=tmp_path / "cache", preset=PRESET, stopped=lambda: False):
        cache = FrameCache(folder, preset, 12)
        decoded = [0]
        entries = cache.fill(videos, 1, lambda done, _: decoded.append(done), stopped)
        return cache, entries, max(decoded)

    return run


@pytest.mark.long
def test_clips_are_decoded_once_and_the_unreadable_are_named(fill, videos, tmp_path):
    """It alone fills one cache three times, after a torn line and a damaged file: each starts decoders."""
    cache, entries, decoded = fill(videos)
    assert decoded == 3
    assert {name: entry.frames for name, entry in entries.items()} == {"a": 2, "b": 4, "broken": 0}
    assert entries["broken"].note
    expected = sample_frames(videos["b"], PRESET.geometry, 12).images
    assert np.array_equal(cache.read("b"), expected)
    assert fill(videos)[2] == 0

    index = tmp_path / "cache" / INDEX
    lines = index.read_bytes().splitlines(keepends=True)
    index.write_bytes(b"".join(lines[:1]) + lines[1][:20])  # killed while writing the second line
    reopened, entries_again, decoded = fill(videos)
    assert decoded == 2, "the clips whose lines were lost"
    assert digest_of(entries_again.values()) == digest_of(entries.values())
    assert fill(videos)[2] == 0

    (path,) = (tmp_path / "cache" / "frames").rglob("a.npy")
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(TrainError, match=r"a\.npy"):
        reopened.read("a")
    path.unlink()
    assert fill(videos)[2] == 1, "what the message says to do"


def test_a_stopped_cache_keeps_what_it_has_and_other_recipes_are_refused(fill, videos, tmp_path):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / f".{RECIPE}.0123456789ab.partial").touch()  # killed at its first write
    _, entries, _ = fill(videos, stopped=lambda: True)
    assert not entries
    second_preset = choose_preset("clip", ("clip",), size=64)
    with pytest.raises(TrainError, match="cache"):
        fill(videos, preset=second_preset)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").touch()
    with pytest.raises(TrainError, match="full"):
        fill(videos, folder=tmp_path / "full")
    (tmp_path / "cache" / RECIPE).write_text("{")

    with pytest.raises(TrainError, match="cache"):
        fill(videos)


def test_a_video_without_a_rate_or_without_pictures_is_an_error_in_words(videos):
    with pytest.raises(VideoError, match=r"nowhere\.avi"):
        sample_frames(Path("nowhere.avi"), PRESET.geometry, 12)
    with pytest.raises(VideoError, match=r"broken\.avi"):
        frame_rate(videos["broken"])
