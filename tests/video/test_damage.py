"""Files that give no frames, or fewer: each with a reason that a person understands."""

import os
import pickle
from pathlib import Path

import av
import numpy as np
import pytest

from obygaze_features.errors import VideoError
from obygaze_features.video import at, probe, read_frames, uniform


def refused(path: Path, **settings) -> str:
    with pytest.raises(VideoError) as caught:
        read_frames(path, uniform(8), **settings)
    assert str(caught.value) == f"{path}: {caught.value.reason}"
    return caught.value.reason


def written(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def test_no_file_a_directory_and_an_empty_file(tmp_path):
    assert refused(tmp_path / "none.mp4") == "there is no such file"
    assert refused(tmp_path) == "this is a directory, not a video file"
    assert refused(written(tmp_path, "empty.mp4", b"")) == "the file is empty (0 bytes)"


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.mp4")
    assert refused(tmp_path / "pipe.mp4") == "this is not a regular file"


def test_zeros_text_and_noise(tmp_path):
    assert "holds zeros" in refused(written(tmp_path, "zeros.mp4", bytes(5000)))
    assert "not a video file" in refused(written(tmp_path, "text.mp4", b"clip_id,movie\n" * 50))
    noise = np.random.default_rng(0).integers(0, 256, 50_000, np.uint8).tobytes()
    refused(written(tmp_path, "noise.avi", noise))


def test_sound_alone(sound):
    assert refused(sound) == "the file has no video stream (sound only?)"


def test_an_mp4_without_its_index(films, tmp_path):
    data = films["b1.mp4"].read_bytes()
    assert "no index (MP4 box 'moov')" in refused(written(tmp_path, "cut.mp4", data[: len(data) // 2]))


def test_a_header_and_nothing_else(films, tmp_path):
    for name, size in (("b2.mkv", 700), ("asp.avi", 2048), ("flash.flv", 300)):
        reason = refused(written(tmp_path, name, films[name].read_bytes()[:size]))
        assert "header" in reason or "picture" in reason


def test_a_damaged_index_never_ends_in_anything_but_frames_or_a_reason(films, tmp_path):
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


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_pictures_end_in_frames_or_a_reason(films, tmp_path, name):
    data = np.frombuffer(films[name].read_bytes(), np.uint8)
    rng = np.random.default_rng(2)
    reasons: list[str] = []
    for trial in range(15):
        broken = data.copy()
        broken[rng.integers(len(data) // 10, len(data), 30)] ^= 0xFF
        path = written(
            tmp_path, f"{trial}-{name}", broken[: rng.integers(len(data) // 2, len(data) + 1)].tobytes()
        )
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
def test_a_truncated_file_is_partial_or_refused_by_strict(films, tmp_path, numbers, name):
    data = films[name].read_bytes()
    path = written(tmp_path, name, data[: len(data) * 6 // 10])
    frames = read_frames(path, uniform(8))
    assert frames.status == "partial"
    assert "cut off" in frames.notes[0]
    assert numbers(frames.images) == frames.index.tolist()
    assert "cut off" in refused(path, strict=True)
    assert "cut off" in probe(path).damage


def test_a_container_that_counts_more_than_it_shows_is_not_taken_for_truncated(films, short_film, numbers):
    with av.open(str(films["dropped.avi"])) as container:
        assert container.streams.video[0].frames == 199  # every second one was dropped
    with av.open(str(short_film)) as container:
        assert container.streams.video[0].frames == 100  # an edit list shows 45
    for path, count in ((films["dropped.avi"], 100), (short_film, 45)):
        frames = read_frames(path, uniform(9), strict=True)
        assert (frames.total, frames.status, frames.method) == (count, "ok", "sparse")
        assert numbers(frames.images) == [i * count // 9 for i in range(9)]


def test_a_packet_that_cannot_be_decoded_costs_only_its_frame(films, tmp_path, numbers):
    source = films["no_b.mp4"]
    with av.open(str(source)) as container:
        packets = [packet for packet in container.demux(video=0) if packet.size]
    data = bytearray(source.read_bytes())
    victim = packets[90]
    data[victim.pos : victim.pos + 4] = b"\x7f\xff\xff\xff"  # the length of its first NAL unit
    path = written(tmp_path, "hole.mp4", data)
    frames = read_frames(path, at([10, 50]))
    assert (frames.status, frames.method) == ("ok", "sparse")
    with pytest.raises(VideoError, match="frame 90 is not among the 99 from 0 to 99"):
        read_frames(path, at([90]))
    around = read_frames(path, at(range(85, 90)))
    assert numbers(around.images) == list(range(85, 90))
    after = read_frames(path, at([94]))
    assert (after.status, after.method) == ("partial", "sequential")
    assert after.notes[0] == "the decoder refused 1 packet on the way"
    with pytest.raises(VideoError, match="refused 1 packet"):
        read_frames(path, at([94]), strict=True)
    assert read_frames(path, at([99]), strict=True).status == "ok"  # a key frame lies between


def test_where_frames_are_counted_an_error_does_not_shift_the_numbers_unsaid(films, tmp_path, numbers):
    source = films["h264.avi"]
    with av.open(str(source)) as container:
        packets = [packet for packet in container.demux(video=0) if packet.size]
    data = bytearray(source.read_bytes())
    victim = packets[50]
    start = data.index(bytes(victim))
    data[start : start + victim.size] = bytes(victim.size)
    frames = read_frames(written(tmp_path, "hole.avi", data), uniform(10))
    assert (frames.status, frames.method, frames.total) == ("partial", "sequential", 99)
    assert frames.notes[:2] == (
        "99 of 100 frames can be decoded; the choice was among those",
        "the decoder refused 1 packet on the way",
    )
    assert frames.index.tolist() == [i * 99 // 10 for i in range(10)]
    assert numbers(frames.images[:5]) == frames.index[:5].tolist()
    assert (np.diff(frames.time_s) > 0).all()


def test_frames_outside_and_spans_outside(films):
    path = films["b1.mp4"]
    with pytest.raises(VideoError, match="frame 100 is not among the 100 from 0 to 99"):
        read_frames(path, at([0, 100]))
    with pytest.raises(VideoError, match="no frame from 4 s on"):
        read_frames(path, uniform(2), start_s=4.0)
    with pytest.raises(VideoError, match="no frame between 10 and 12 s"):
        probe(path, start_s=10, end_s=12)


def test_errors_travel_between_processes():
    error = VideoError("the file is empty (0 bytes)", Path("a.mp4"))
    back = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert (back.reason, back.path, str(back)) == (error.reason, error.path, str(error))
