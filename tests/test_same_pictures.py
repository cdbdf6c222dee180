"""Clips with the same pictures are found whatever was done to them, and others are not."""

import csv
from itertools import combinations

import av
import numpy as np
import pytest

from obygaze_features.backbones.descriptors import FEATURES, encode, prepare
from obygaze_features.errors import StoreError
from obygaze_features.same_pictures import LIMIT, _signatures, distance, duplicates
from obygaze_features.store import open_store
from obygaze_features.store.testing import seal_arrays
from tests.command import obygaze
from tests.store.toy_stores import sealed
from tests.video import encoding

REAL = ("arm_wrestling.mp4", "flipping_a_pancake.mkv", "nasa_13013.mp4", "test.avi", "v_GGSY1Qvo990.mp4")


def noise(seed, n=8, h=96):
    """Draw a clip [F, h, h, 3] of blocks of colour that move."""
    rng = np.random.default_rng(seed)
    small = rng.integers(0, 256, (h // 8 + n, h // 8, 3), dtype=np.uint8)
    whole = small.repeat(8, axis=0).repeat(8, axis=1)
    return np.stack([whole[8 * frame : 8 * frame + h] for frame in range(n)])


def store_of(folder, clips, movies=None):
    """Seal the descriptors of clips [F, h, w, 3]."""
    values = [encode(clip[None]) for clip in clips.values()]
    arrays = {array: np.concatenate([each[array] for each in values]) for array in ("frames", "pooled")}
    movies = movies or {name: name for name in clips}
    known = {"architecture": {"features": list(FEATURES)}}
    return open_store(seal_arrays(folder, movies, {"descriptors": arrays}, n_frames=8, **known))


def pairs(found):
    return {(pair.clip_a, pair.clip_b) for pair in found.pairs}


def test_the_same_pictures_are_found_cropped_mirrored_darker_and_shifted(tmp_path):
    clip = noise(0, n=12)
    changed = {
        "same": clip[:8],
        "mirrored": clip[:8, :, ::-1],
        "cropped": clip[:8, 4:-5, 4:-5],
        "shifted": clip[3:11],
        "coarser": np.clip(clip[:8].astype(int) // 8 * 8 + 3, 0, 255).astype(np.uint8),
    }
    others = {f"other-{seed}": noise(seed) for seed in range(1, 7)}
    first = store_of(tmp_path / "a", {"clip": clip[:8], **others})
    second = store_of(tmp_path / "b", changed)
    found = duplicates(first, second)
    assert pairs(found) == {("clip", name) for name in changed}
    assert found.pairs[0].distance == 0
    exact = [pair for pair in found.pairs if pair.clip_b == "same"]
    assert [pair for pair in duplicates(first, second, limit=0.0).pairs if pair.clip_b == "same"] == exact
    assert (found.clips, found.plain) == ((7, 5), (0, 0))
    assert pairs(duplicates(second, first)) == {(b, a) for a, b in pairs(found)}


def test_within_a_store_clips_of_different_movies_are_compared(tmp_path):
    clip = noise(0)
    clips = {"a-1": clip, "a-2": clip, "b-1": clip, "b-2": noise(1)}
    store = store_of(tmp_path / "a", clips, {name: name[0] for name in clips})
    assert pairs(duplicates(store)) == {("a-1", "b-1"), ("a-2", "b-1")}


def test_clips_that_show_nothing_are_counted_and_not_compared(tmp_path):
    black, fog = np.zeros((8, 96, 96, 3), np.uint8), np.full((8, 96, 96, 3), 200, np.uint8)
    half = np.concatenate([black[:4], noise(0)[:4]])
    store = store_of(tmp_path / "a", {"black": black, "fog": fog, "half": half, "again": half})
    found = duplicates(store)
    assert pairs(found) == {("again", "half")}
    assert found.plain == (2, 2)


def test_the_distance_is_symmetric_and_0_for_the_same(tmp_path):
    a, b = _signatures(store_of(tmp_path / "a", {"a": noise(0), "b": noise(1)})).frames
    assert distance(a, b) == pytest.approx(distance(b, a), abs=1e-12)
    assert distance(a, a[::-1]) < 1e-6 < LIMIT < distance(a, b)


def test_a_store_without_signatures_is_refused(tmp_path):
    with pytest.raises(StoreError):
        duplicates(open_store(sealed(tmp_path, 3)))


def test_the_command_writes_all_pairs_and_prints_the_nearest(tmp_path, capsys):
    clip = noise(0)
    store_of(tmp_path / "a", {"one": clip, "two": clip[:, :, ::-1]})
    there = tmp_path / "a-1.0.0"
    assert obygaze("store", "duplicates", there, "--out", tmp_path / "same.csv") == 0
    with (tmp_path / "same.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert (row["clip_a"], row["movie_b"]) == ("one", "two")
    assert "1 pairs of clips" in capsys.readouterr().out


# --- real clips
# ---------------------------------------------------------------------------
def picture(frame, how):
    height, width = frame.shape[:2]
    if how == "cropped":
        y, x = height // 20, width // 20
        frame = frame[y : height - y, x : width - x]
    elif how == "mirrored":
        frame = frame[:, ::-1]
    return np.ascontiguousarray(frame[: frame.shape[0] // 2 * 2, : frame.shape[1] // 2 * 2])


@pytest.mark.long
def test_real_clips_are_found_and_2000_others_are_not(tmp_path, shared_data):
    """Alone it decodes real films, encodes them in three codecs, and compares every pair."""
    ways = {
        "vp9": ("libvpx-vp9", ".mkv", {"crf": "34", "b": "0", "deadline": "realtime", "cpu-used": "8"}),
        "hevc": ("libx265", ".mkv", {"crf": "24", "preset": "ultrafast", "x265-params": "log-level=error"}),
        "mpeg4": ("mpeg4", ".avi", {"qscale": "8", "flags": "+qscale", "global_quality": "944"}),
        "cropped": ("libx264", ".mp4", {"crf": "23", "preset": "veryfast"}),
        "mirrored": ("libx264", ".mp4", {"crf": "23", "preset": "veryfast"}),
    }
    rate, length, step = 10, 50, 1  # clips of 5 s, every .1 s; of copies every .5 s
    shifted = 2 * rate
    originals, copies = {}, {how: {} for how in (*ways, "shifted")}
    for name in REAL:
        with av.open(str(shared_data / "videos" / name)) as film:
            stream = max(film.streams.video, key=lambda each: each.height)
            small = {"width": 240, "height": 160, "format": "rgb24"}
            frames = [frame.to_ndarray(**small) for frame in film.decode(stream)]
            every = float(stream.average_rate) / rate
        frames = [frames[int(place * every)] for place in range(int(len(frames) / every))]
        versions = {"shifted": frames[shifted:]}
        for how, (codec, suffix, options) in ways.items():
            pictures = [picture(frame, how) for frame in frames]
            path = encoding.encode(tmp_path / f"{how}{suffix}", pictures, codec, rate=rate, options=options)
            with av.open(str(path)) as film:
                versions[how] = [frame.to_ndarray(format="rgb24") for frame in film.decode(video=0)]
        for start in range(0, len(frames) - length, step):
            clip = f"{name}@{start}"
            originals[clip] = sampled(frames[start : start + length])
            for how, own in versions.items():
                if start % 5 == 0 and start + length <= len(own):
                    copies[how][clip] = sampled(own[start : start + length])
    movies = {clip: clip.partition("@")[0] for clip in originals}
    known = store_of(tmp_path / "known", originals, movies)
    unrelated = sum(movies[a] != movies[b] for a, b in combinations(originals, 2))
    assert unrelated >= 2000
    assert not duplicates(known).pairs
    for how, clips in copies.items():
        found = duplicates(known, store_of(tmp_path / how, clips, {clip: movies[clip] for clip in clips}))
        same = sum((clip, clip) in pairs(found) for clip in clips)
        assert same >= 0.95 * len(clips), (how, same, len(clips))
        assert all(pair.movie_a == pair.movie_b for pair in found.pairs), how


def sampled(frames):
    """Take 8 frames of a clip, squashed as the backbone does."""
    return np.stack([prepare(frames[int((place + 0.5) * len(frames) / 8)]) for place in range(8)])
