"""Files that give no frames, or fewer: each with a reason that a person understands."""

import math
import os
import pickle
import re
from pathlib import Path

import av
import numpy as np
import pytest

from obygaze_features.errors import VideoError
from obygaze_features.video import at, probe, read_frames, uniform
from tests.video.conftest import draw, numbers_of, packets_of, refused, remux, spoiled
from tests.video.encoding import encode


def written(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


NOISE = np.random.default_rng(0).integers(0, 256, 50_000, np.uint8).tobytes()


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("empty.mp4", b"", "empty"),
        ("zeros.mp4", bytes(5000), "zeros"),
        ("text.mp4", b"clip_id,movie\n" * 50, "not a video file"),
        ("noise.avi", NOISE, "."),
    ],
    ids=["empty", "zeros", "text", "noise"],
)
def test_a_file_without_pictures_is_refused_with_its_reason(tmp_path, name, data, reason):
    assert re.search(reason, refused(written(tmp_path, name, data)))


def test_the_first_half_of_a_film_whose_index_is_at_its_end_is_refused(films, tmp_path):
    whole = films["b1.mp4"].read_bytes()
    assert "'moov'" in refused(written(tmp_path, "b1.mp4", whole[: len(whole) // 2]))


@pytest.mark.parametrize(("name", "n_bytes"), [("b2.mkv", 700), ("asp.avi", 2048), ("flash.flv", 300)])
def test_the_first_bytes_of_a_film_without_any_picture_are_refused(films, tmp_path, name, n_bytes):
    reason = refused(written(tmp_path, name, films[name].read_bytes()[:n_bytes]))
    assert re.search("header|picture", reason)


def test_a_video_that_is_not_there_is_named(tmp_path):
    assert "no such file" in refused(tmp_path / "none.mp4")


def test_a_directory_is_no_video(tmp_path):
    assert "directory" in refused(tmp_path)


def test_a_pipe_is_no_video(tmp_path):
    os.mkfifo(tmp_path / "pipe.mp4")
    assert "regular file" in refused(tmp_path / "pipe.mp4")


def test_a_file_of_sound_alone_is_no_video(sound):
    assert "no video stream" in refused(sound)


def test_a_film_with_a_damaged_index_gives_frames_or_a_reason(films, tmp_path):
    data = bytearray(films["b1.mp4"].read_bytes())
    start = data.index(b"moov")
    rng = np.random.default_rng(1)
    outcomes = set()
    for trial in range(60):
        broken = bytearray(data)
        for position in rng.integers(start, len(data), 12):
            broken[position] = int(rng.integers(256))
        try:
            outcomes.add(read_frames(written(tmp_path, f"{trial}.mp4", broken), uniform(8)).status)
        except VideoError as error:
            outcomes.add(error.reason)
    assert len(outcomes) > 2
    assert "" not in outcomes


DAMAGED = ["open_gop.mp4", "b2.mkv", "closed.ts", "asp.avi", "packed.avi", "h264.avi", "mpeg2.ts"]
DAMAGED += ["hevc_cra.mp4", "hevc_cra.mkv", "hevc_cra.ts", "vp9.webm", "vp8.webm", "av1.mkv", "av1.mp4"]
DAMAGED += ["mpeg2.mkv", "mpeg2.vob", "mpeg1.mpg", "motion.mkv", "prores.mov", "ffv1.mkv", "wmv2.asf"]


def test_a_recording_that_lost_its_headers_is_refused_and_not_called_too_large(films, tmp_path):
    name = "headless.ts"
    data = films["mpeg2.ts"].read_bytes()
    reason = refused(written(tmp_path, name, data.replace(b"\0\0\1\xb3", b"\0\0\1\xb2")))
    assert "header" in reason
    assert "bomb" not in reason


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_pictures_end_in_frames_or_a_reason(films, tmp_path, name):
    data = np.frombuffer(films[name].read_bytes(), np.uint8)
    rng = np.random.default_rng(2)
    reasons: list[str] = []
    for trial in range(15):
        broken = data.copy()
        broken[rng.integers(len(data) // 10, len(data), 30)] ^= 0xFF
        end = rng.integers(len(data) // 2, len(data) + 1)
        path = written(tmp_path, f"{trial}-{name}", broken[:end].tobytes())
        try:
            frames = read_frames(path, uniform(8))
        except VideoError as error:
            reasons.append(error.reason)
            continue
        assert len(frames.images) == 8
        assert (np.diff(frames.index) >= 0).all()
        assert frames.status == "ok" or frames.notes
    assert all(reasons)


@pytest.mark.parametrize("name", ["asp.avi", "b2.mkv", "fast.mp4"])
def test_a_truncated_file_is_partial_or_refused_by_strict(films, tmp_path, name):
    data = films[name].read_bytes()
    path = written(tmp_path, name, data[: len(data) * 6 // 10])
    frames = read_frames(path, uniform(8))
    assert frames.status == "partial"
    assert "cut off" in frames.notes[0]
    assert numbers_of(frames.images) == frames.index.tolist()
    assert "cut off" in refused(path, strict=True)
    assert "cut off" in probe(path).damage


@pytest.mark.parametrize("suffix", [".mkv", ".mp4"])
def test_a_file_that_is_cut_off_says_when_it_would_end(shared_data, tmp_path, suffix):
    options = {"movflags": "faststart"} if suffix == ".mp4" else {}
    real = shared_data / "videos" / "nasa_13013.mp4"  # 13.0 seconds
    whole = remux(real, tmp_path / f"whole{suffix}", list, **options)
    data = whole.read_bytes()
    cut = written(tmp_path, f"cut{suffix}", data[: len(data) * 55 // 100])
    assert math.isnan(probe(whole).stated_end_s)
    probed = probe(cut)
    last_s = probed.start_s + probed.duration_s
    assert probed.stated_end_s == pytest.approx(13.0, abs=0.05)
    assert 5 < last_s < 9
    frames = read_frames(cut, uniform(8), start_s=4.0, end_s=12.0)
    assert frames.without_pictures_s == ((last_s, 12.0),)
    assert frames.status == "partial"
    before_the_cut = read_frames(cut, uniform(8), start_s=0.0, end_s=4.0, strict=True)
    assert before_the_cut.status == "ok"
    assert any("cut off" in note for note in before_the_cut.notes)


def frames_that_the_container_counts(path):
    with av.open(str(path)) as container:
        return container.streams.video[0].frames


def assert_whole(path, n_frames):
    frames = read_frames(path, uniform(9), strict=True)
    assert (frames.total, frames.status, frames.method) == (n_frames, "ok", "sparse")
    assert numbers_of(frames.images) == [i * n_frames // 9 for i in range(9)]


def test_an_avi_that_counts_dropped_frames_is_whole(films):
    """Every second of its 199 frames was dropped."""
    assert frames_that_the_container_counts(films["dropped.avi"]) == 199
    assert_whole(films["dropped.avi"], 100)


def test_a_film_of_whose_frames_an_edit_list_shows_some_is_whole(short_film):
    assert frames_that_the_container_counts(short_film) == 100
    assert_whole(short_film, 45)


@pytest.fixture
def frame_90_damaged(films, tmp_path):
    """A film without B-frames whose frame 90 cannot be decoded; frames 96 and on begin at a key frame."""
    data = bytearray(films["no_b.mp4"].read_bytes())
    damaged = packets_of(films["no_b.mp4"])[90]
    data[damaged.pos : damaged.pos + 4] = b"\x7f\xff\xff\xff"  # the length of its first NAL unit
    return written(tmp_path, "hole.mp4", data)


def test_frames_that_do_not_need_a_damaged_one_are_read_as_ever(frame_90_damaged):
    frames = read_frames(frame_90_damaged, at([10, 50]))
    assert (frames.status, frames.method) == ("ok", "sparse")
    before = read_frames(frame_90_damaged, at(range(85, 90)))
    assert numbers_of(before.images) == list(range(85, 90))
    assert read_frames(frame_90_damaged, at([99]), strict=True).status == "ok"


def test_a_damaged_frame_that_is_asked_for_is_refused(frame_90_damaged):
    with pytest.raises(VideoError, match="frame 90"):
        read_frames(frame_90_damaged, at([90]))


def test_a_frame_that_refers_to_a_damaged_one_is_partial(frame_90_damaged):
    frames = read_frames(frame_90_damaged, at([94]))
    assert (frames.status, frames.method) == ("partial", "sequential")
    assert frames.notes[0] == "the decoder refused 1 packet on the way"


def test_a_frame_that_refers_to_a_damaged_one_is_refused_strictly(frame_90_damaged):
    with pytest.raises(VideoError, match="refused 1 packet"):
        read_frames(frame_90_damaged, at([94]), strict=True)


def test_a_damaged_frame_in_a_film_without_times_makes_its_count_partial(films, tmp_path):
    frames = read_frames(spoiled(films["h264.avi"], tmp_path / "hole.avi", [50]), uniform(10))
    assert (frames.status, frames.method, frames.total) == ("partial", "sequential", 99)
    assert frames.notes[0].startswith("99 of 100 frames")
    assert frames.index.tolist() == [i * 99 // 10 for i in range(10)]
    assert numbers_of(frames.images[:5]) == frames.index[:5].tolist()
    assert (np.diff(frames.time_s) > 0).all()


def test_errors_travel_between_processes():
    error = VideoError("the file is empty (0 bytes)", Path("a.mp4"))
    back = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert (back.reason, back.path, str(back)) == (error.reason, error.path, str(error))


@pytest.mark.parametrize(
    ("name", "codec"),
    [
        ("a.flv", "libx264"),
        ("a.asf", "wmv2"),
        ("a.mxf", "mpeg2video"),
        ("b.flv", "flv"),
        ("a.mkv", "libx264"),
        ("a.y4m", "wrapped_avframe"),
    ],
)
def test_a_file_with_fewer_bytes_than_it_says_is_partial(tmp_path, name, codec):
    film = encode(tmp_path / name, map(draw, range(60)), codec=codec)
    assert read_frames(film, uniform(4)).status == "ok"
    cut = written(tmp_path, f"cut-{name}", film.read_bytes()[:-5000])
    assert read_frames(cut, uniform(4)).status == "partial"


def test_bytes_that_a_broadcast_states_are_not_believed(tmp_path):
    data = bytearray(encode(tmp_path / "a.asf", map(draw, range(60)), codec="wmv2").read_bytes())
    # ASF's file properties: their GUID (16 bytes), their size (8), the file's id (16), the file's size (8),
    # five numbers (8 each) and flags, whose first bit says that the file was broadcast.
    properties = data.index(bytes.fromhex("a1dcab8c47a9cf118ee400c00c205365"))
    file_size = properties + 16 + 8 + 16
    flags = file_size + 8 + 5 * 8
    data[file_size : file_size + 8] = (1 << 40).to_bytes(8, "little")
    data[flags] = 1
    assert read_frames(written(tmp_path, "live.asf", bytes(data)), uniform(4)).status == "ok"


def test_packets_that_the_container_flags_as_damaged_are_noted(films, tmp_path):
    packet_bytes = 188  # of every packet of a transport stream
    data = bytearray(films["hevc_cra.ts"].read_bytes())
    middle = len(data) // packet_bytes // 2 * packet_bytes
    del data[middle : middle + packet_bytes]
    notes = read_frames(written(tmp_path, "lost.ts", bytes(data)), uniform(4)).notes
    assert any("flags" in note for note in notes)
    assert not any("flags" in note for note in read_frames(films["hevc_cra.ts"], uniform(4)).notes)
