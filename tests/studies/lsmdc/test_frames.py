"""Which frames of a clip are taken, against the original's (check 8), and the cache of them."""

import errno
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest

from obygaze_features.backbones.presets import choose_preset
from obygaze_features.errors import VideoError
from obygaze_features.video import at, read_frames
from obygaze_studies.errors import TrainError
from obygaze_studies.lsmdc import frame_cache
from obygaze_studies.lsmdc.frame_cache import (
    INDEX,
    RECIPE,
    CachedClip,
    FrameCache,
    digest_of,
    frame_rate,
    sample_frames,
)

from .corpus import picture, write_video

PRESET = choose_preset("clip", ("clip",), size=32)
MORE_FRAMES_THAN_ANY_VIDEO_HAS = 10**6

OPENCV_TAKES_OTHER_FRAMES = {
    "nasa_13013.mp4",  # has two video streams: ours takes the one that players take, OpenCV the other
    "corrupted.mp4",  # OpenCV delivers frames that a decoding in order does not have
}
"""Videos of which the original code, which reads with OpenCV, takes other frames than ours."""


def test_frames_of_real_videos_are_those_that_the_original_code_takes(oracle, shared_data):
    """The original takes a frame each second, by the frame rate without its fraction.

    Of a video with 29.97 frames a second it takes frame 0, 29, 58 and so on. Recorded is, for each video, its
    rate ("fps") and the number of frames taken.
    """
    original = json.loads((oracle.folder / "frames_of_videos.json").read_text())["videos"]
    for name in sorted(original.keys() - OPENCV_TAKES_OTHER_FRAMES):
        rate = original[name]["fps"]
        n_taken = original[name]["taken"]
        path = shared_data / "videos" / name
        assert frame_rate(path) == pytest.approx(rate), name

        frames = sample_frames(path, PRESET.geometry, max_frames=MORE_FRAMES_THAN_ANY_VIDEO_HAS)

        frames_from_one_to_the_next = int(rate)
        expected = [frames_from_one_to_the_next * second for second in range(n_taken)]
        assert frames.index.tolist() == expected, name
        assert frames.status == "ok", name


def test_pixels_are_the_presets_and_no_more_than_asked_for(shared_data):
    """The video has 19 frames a second and lasts 19 s. Of its 19 seconds twelve are taken, spread evenly.

    The second one taken is the second 1, whose frame is number 19.
    """
    path = shared_data / "videos" / "v_GGSY1Qvo990.mp4"

    frames = sample_frames(path, PRESET.geometry, max_frames=12)

    seconds_taken = np.linspace(0, 18, 12, dtype=int)
    assert frames.index.tolist() == [19 * second for second in seconds_taken]
    assert np.stack(frames.images).shape == (12, 32, 32, 3)
    frame_19 = read_frames(path, at([19]), each=PRESET.geometry).images[0]
    assert np.array_equal(frames.images[1], frame_19)


@pytest.mark.long
def test_a_damaged_video_gives_what_can_be_decoded_and_says_so(shared_data):
    """Of corrupted.mp4 some frames can't be decoded; a note says it, and the others are sampled."""
    frames = sample_frames(shared_data / "videos" / "corrupted.mp4", PRESET.geometry, max_frames=12)
    assert len(frames.images)
    assert frames.status == "partial"
    assert frames.notes


@pytest.fixture(scope="module")
def videos(tmp_path_factory):
    """A video of 4 frames and one of 7, both of two frames a second, and one that cannot be read."""
    folder = tmp_path_factory.mktemp("videos")
    rng = np.random.default_rng(0)
    broken = folder / "broken.avi"
    broken.write_bytes(b"RIFF and nothing else")
    return {
        "a": write_video(folder / "a.avi", [picture(pattern=0, rng=rng)] * 4),
        "b": write_video(folder / "b.avi", [picture(pattern=0, rng=rng)] * 7),
        "broken": broken,
    }


class Filled(NamedTuple):
    """A cache that was filled."""

    cache: FrameCache
    entries: Mapping[str, CachedClip]
    """What the cache says of each clip."""
    n_decoded: int
    """Clips that were decoded for it, since it did not have them yet."""


def fill(folder, videos, preset=PRESET, stopped=lambda: False):
    """Fill the cache of a folder with at most 12 frames a clip, by one process."""
    numbers_done = [0]
    cache = FrameCache(folder, preset, max_frames=12)
    entries = cache.fill(videos, 1, lambda done, _: numbers_done.append(done), stopped)
    return Filled(cache, entries, max(numbers_done))


@pytest.fixture(scope="module")
def filled_once(videos, tmp_path_factory):
    """A cache of the three videos. Tests damage copies of it: decoders take seconds to start."""
    return fill(tmp_path_factory.mktemp("filled") / "cache", videos)


@pytest.fixture
def copy_of_cache(filled_once, tmp_path):
    return shutil.copytree(filled_once.cache.folder, tmp_path / "copy")


@pytest.mark.long
def test_a_cache_has_one_frame_a_second_of_each_clip_or_says_why_not(filled_once, videos):
    """Videos `a` and `b` have 4 and 7 frames, two a second: the cache has each second one, 2 and 4.

    The file `broken` cannot be decoded, and the cache notes why.
    """
    n_frames = {name: entry.frames for name, entry in filled_once.entries.items()}
    assert n_frames == {"a": 2, "b": 4, "broken": 0}
    reason = filled_once.entries["broken"].note
    assert reason != ""

    taken_from_video = sample_frames(videos["b"], PRESET.geometry, max_frames=12).images
    assert np.array_equal(filled_once.cache.read("b"), taken_from_video)


@pytest.mark.long
def test_a_cache_that_is_filled_decodes_no_clip_again(filled_once, copy_of_cache, videos):
    """Decoding was tried of all three videos, of which one is broken; that one is not tried again either."""
    assert filled_once.n_decoded == 3

    filled_again = fill(copy_of_cache, videos)

    assert filled_again.n_decoded == 0


@pytest.mark.long
def test_clips_whose_lines_in_the_index_were_lost_are_decoded_again(filled_once, copy_of_cache, videos):
    """A process that is killed while it writes leaves a part of a line: here of the second of three."""
    index = copy_of_cache / INDEX
    first, second, _third = index.read_bytes().splitlines(keepends=True)
    index.write_bytes(first + second[:20])
    again = fill(copy_of_cache, videos)
    assert again.n_decoded == 2
    assert digest_of(again.entries.values()) == digest_of(filled_once.entries.values())
    assert fill(copy_of_cache, videos).n_decoded == 0


@pytest.mark.long
def test_a_damaged_file_of_frames_is_named_and_is_made_anew_when_it_is_deleted(copy_of_cache, videos):
    """The file of the frames of clip a lacks its last byte. The message names it, and says to delete it.

    Then filling the cache decodes this clip alone.
    """
    cache = fill(copy_of_cache, videos).cache
    (frames_of_a,) = (copy_of_cache / "frames").rglob("a.npy")
    frames_of_a.write_bytes(frames_of_a.read_bytes()[:-1])

    with pytest.raises(TrainError, match=r"a\.npy"):
        cache.read("a")

    frames_of_a.unlink()
    assert fill(copy_of_cache, videos).n_decoded == 1


def begin_cache(folder, videos):
    """Make a cache in a folder, and stop before the first video is decoded: it has its recipe alone."""
    begun = fill(folder, videos, stopped=lambda: True)
    assert not begun.entries


def test_a_folder_in_which_a_process_was_killed_at_its_first_write_becomes_a_cache(videos, tmp_path):
    """The first write is that of the recipe, by which frames are made. A part of it lies in the folder."""
    (tmp_path / f".{RECIPE}.0123456789ab.partial").touch()

    begin_cache(tmp_path, videos)

    assert (tmp_path / RECIPE).is_file()


def test_a_cache_of_frames_of_another_size_is_refused(videos, tmp_path):
    """The cache was made for frames of 32 pixels, and is to be filled with frames of 64."""
    begin_cache(tmp_path / "cache", videos)

    with pytest.raises(TrainError, match="cache"):
        fill(tmp_path / "cache", videos, preset=choose_preset("clip", ("clip",), size=64))


def test_a_cache_with_a_damaged_recipe_is_refused(videos, tmp_path):
    """The recipe, a JSON object that says how the frames were made, is cut after its first character."""
    begin_cache(tmp_path / "cache", videos)
    (tmp_path / "cache" / RECIPE).write_text("{")

    with pytest.raises(TrainError, match="cache"):
        fill(tmp_path / "cache", videos)


def test_a_folder_with_files_of_something_else_does_not_become_a_cache(videos, tmp_path):
    """A cache of frames is to be made in a folder that holds somebody's thesis."""
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").touch()
    with pytest.raises(TrainError, match="full"):
        fill(tmp_path / "full", videos)


def test_a_video_that_does_not_exist_is_refused_by_its_name():
    with pytest.raises(VideoError, match=r"nowhere\.avi"):
        sample_frames(Path("nowhere.avi"), PRESET.geometry, max_frames=12)


def test_a_video_that_states_no_frame_rate_is_refused_by_its_name(videos):
    """The file broken.avi has the first letters of an AVI file and no video."""
    with pytest.raises(VideoError, match=r"broken\.avi"):
        frame_rate(videos["broken"])


def test_a_clip_on_a_disk_that_fails_is_left_out_with_the_reason_of_the_disk(tmp_path, monkeypatch):
    """The other clips of a training are still cached; a clip without any record would be waited for."""

    def cannot_be_read(*_):
        raise OSError(errno.EIO, "Input/output error")

    video = tmp_path / "a.avi"
    video.write_bytes(b"on bad sectors")
    sent = []
    monkeypatch.setattr(frame_cache, "sample_frames", cannot_be_read)

    task = ("a", video, tmp_path / "frames/a.npy")
    frame_cache._decode_clip(task, SimpleNamespace(send=sent.append), geometry=None, max_frames=12)

    (record,) = sent
    assert record.clip_id == "a"
    assert record.frames == 0
    assert "Input/output error" in record.note
    assert not (tmp_path / "frames").exists()
