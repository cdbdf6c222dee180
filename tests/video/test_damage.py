"""Files that give no frames, or fewer: each with a reason that a person understands."""

import math
import os
import pickle
import re
from pathlib import Path
from types import SimpleNamespace

import av
import numpy as np
import pytest

from obygaze_features.errors import VideoError
from obygaze_features.video import at, probe, read_frames, uniform
from obygaze_features.video.index import _count_damaged_packets
from tests.video.conftest import (
    draw_number,
    packets_of,
    read_drawn_numbers,
    reason_of_refusal,
    remux,
    spoiled,
)
from tests.video.encoding import encode


def written(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


NOISE = np.random.default_rng(0).integers(0, 256, 50_000, np.uint8).tobytes()
ANY_REASON = "."
"""A pattern that any text but an empty one matches."""


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("empty.mp4", b"", "empty"),
        ("zeros.mp4", bytes(5000), "zeros"),
        ("text.mp4", b"clip_id,movie\n" * 50, "not a video file"),
        ("noise.avi", NOISE, ANY_REASON),
    ],
    ids=["empty", "zeros", "text", "noise"],
)
def test_a_file_without_pictures_is_refused_with_its_reason(tmp_path, name, data, reason):
    """A file is named like a video and has other bytes; the error says what is wrong with it.

    Noise may look like many things, so any reason will do.
    """
    path = written(tmp_path, name, data)

    assert re.search(reason, reason_of_refusal(path))


def test_the_first_half_of_a_film_whose_index_is_at_its_end_is_refused(numbered_films, tmp_path):
    """Without "moov", the index of an MP4 file, no picture can be found."""
    whole = numbered_films["b1.mp4"].read_bytes()
    first_half = written(tmp_path, "b1.mp4", whole[: len(whole) // 2])

    assert "'moov'" in reason_of_refusal(first_half)


@pytest.mark.parametrize(("name", "n_bytes"), [("b2.mkv", 700), ("asp.avi", 2048), ("flash.flv", 300)])
def test_the_first_bytes_of_a_film_without_any_picture_are_refused(numbered_films, tmp_path, name, n_bytes):
    """Of a film, only the first 300 to 2048 bytes are there: its container's header, or a part of it.

    The first picture comes behind them. The refusal says so, or that there is no whole header.
    """
    first_bytes = numbered_films[name].read_bytes()[:n_bytes]
    path = written(tmp_path, name, first_bytes)

    assert re.search("header|picture", reason_of_refusal(path))


def test_refusing_a_path_without_a_video_says_what_is_there_instead(tmp_path, sound):
    """At the path there is no file, a folder, a pipe, or a file that has sound alone."""
    absent = tmp_path / "none.mp4"
    folder = tmp_path
    pipe = tmp_path / "pipe.mp4"
    os.mkfifo(pipe)
    file_with_sound_alone = sound

    assert "no such file" in reason_of_refusal(absent)
    assert "directory" in reason_of_refusal(folder)
    assert "regular file" in reason_of_refusal(pipe)
    assert "no video stream" in reason_of_refusal(file_with_sound_alone)


@pytest.mark.long
def test_a_film_with_a_damaged_index_gives_frames_or_a_reason(numbered_films, tmp_path):
    """An MP4 has an index of where its pictures are, from "moov" to its end, of which 12 bytes are changed.

    Sixty times at random: any other error than VideoError fails the test, and more than two outcomes show
    that the damages differ.
    """
    whole = numbered_films["b1.mp4"].read_bytes()
    start_of_index = whole.index(b"moov")
    rng = np.random.default_rng(1)
    statuses_and_reasons = set()

    for trial in range(60):
        damaged = bytearray(whole)
        for position in rng.integers(start_of_index, len(whole), 12):
            damaged[position] = int(rng.integers(256))
        path = written(tmp_path, f"{trial}.mp4", damaged)
        try:
            statuses_and_reasons.add(read_frames(path, uniform(8)).status)
        except VideoError as error:
            statuses_and_reasons.add(error.reason)

    assert len(statuses_and_reasons) > 2
    assert "" not in statuses_and_reasons


DAMAGED = ["open_gop.mp4", "b2.mkv", "closed.ts", "asp.avi", "packed.avi", "h264.avi", "mpeg2.ts"]
DAMAGED += ["hevc_cra.mp4", "hevc_cra.mkv", "hevc_cra.ts", "vp9.webm", "vp8.webm", "av1.mkv", "av1.mp4"]
DAMAGED += ["mpeg2.mkv", "mpeg2.vob", "mpeg1.mpg", "motion.mkv", "prores.mov", "ffv1.mkv", "wmv2.asf"]


def test_a_recording_without_the_headers_of_its_sequences_is_refused_for_that(numbered_films, tmp_path):
    """Without these headers of MPEG-2, pictures have no size.

    The reason says so; it does not say that they are too large ("decompression bomb").
    """
    start_of_sequence_header = b"\0\0\1\xb3"
    start_of_user_data = b"\0\0\1\xb2"  # which decoders pass over
    recording = numbered_films["mpeg2.ts"].read_bytes()
    without_headers = recording.replace(start_of_sequence_header, start_of_user_data)
    path = written(tmp_path, "headless.ts", without_headers)

    reason = reason_of_refusal(path)

    assert "header" in reason
    assert "bomb" not in reason


def damaged_at_random(data, rng):
    """Invert thirty bytes of a film behind its first tenth, and cut it somewhere in its second half."""
    damaged = np.frombuffer(data, np.uint8).copy()
    damaged[rng.integers(len(data) // 10, len(data), 30)] ^= 0xFF
    end = rng.integers(len(data) // 2, len(data) + 1)
    return damaged[:end].tobytes()


def assert_eight_frames_or_a_reason(path):
    """Check that a film gives eight frames in their order, with notes if some are missing, or a reason."""
    try:
        frames = read_frames(path, uniform(8))
    except VideoError as error:
        if not error.reason:
            pytest.fail("an error without a reason")
        return
    assert len(frames.images) == 8
    assert (np.diff(frames.index) >= 0).all()
    assert frames.status == "ok" or frames.notes


@pytest.mark.long
@pytest.mark.parametrize("name", DAMAGED)
def test_a_film_damaged_at_random_gives_frames_or_a_reason(numbered_films, tmp_path, name):
    """Each of 15 trials changes 30 bytes and cuts the film somewhere in its second half."""
    whole = numbered_films[name].read_bytes()
    rng = np.random.default_rng(2)
    for trial in range(15):
        path = written(tmp_path, f"{trial}-{name}", damaged_at_random(whole, rng))
        assert_eight_frames_or_a_reason(path)


@pytest.mark.parametrize("name", ["asp.avi", "b2.mkv", "fast.mp4"])
def test_a_truncated_file_is_partial_or_refused_by_strict(numbered_films, tmp_path, name):
    """60 % of a film's bytes are left. Each of its pictures has its own number drawn in it."""
    whole = numbered_films[name].read_bytes()
    path = written(tmp_path, name, whole[: len(whole) * 6 // 10])

    frames = read_frames(path, uniform(8))

    assert frames.status == "partial"
    assert "cut off" in frames.notes[0]
    drawn_numbers = read_drawn_numbers(frames.images)
    assert drawn_numbers == frames.index.tolist()
    assert "cut off" in reason_of_refusal(path, strict=True)
    assert "cut off" in probe(path).damage


@pytest.fixture(params=[".mkv", ".mp4"])
def whole_and_cut_film(request, shared_data, tmp_path):
    """A real film of 13 s in a container that states its length first, and 55 % of its bytes."""
    options = {"movflags": "faststart"} if request.param == ".mp4" else {}
    real = shared_data / "videos" / "nasa_13013.mp4"
    whole = remux(real, tmp_path / f"whole{request.param}", edit=list, **options)
    data = whole.read_bytes()
    return whole, written(tmp_path, f"cut{request.param}", data[: len(data) * 55 // 100])


def test_a_film_that_is_cut_off_has_its_last_picture_and_the_end_that_it_states(whole_and_cut_film):
    """The film states 13 s; 55 % of its bytes hold about 7 s of pictures. The whole film has no such note."""
    whole, cut = whole_and_cut_film

    facts = probe(cut)

    end_of_pictures_s = facts.start_s + facts.duration_s
    assert 5 < end_of_pictures_s < 9
    assert facts.stated_end_s == pytest.approx(13.0, abs=0.05)
    assert math.isnan(probe(whole).stated_end_s)


def test_only_spans_over_the_end_of_a_film_that_is_cut_off_are_partial(whole_and_cut_film):
    """The film states 13 s; 55 % of its bytes hold about 7 s of pictures."""
    _, cut = whole_and_cut_film
    facts = probe(cut)
    end_of_pictures_s = facts.start_s + facts.duration_s

    over_the_end = read_frames(cut, uniform(8), start_s=4.0, end_s=12.0)
    before_the_end = read_frames(cut, uniform(8), start_s=0.0, end_s=4.0, strict=True)

    assert over_the_end.status == "partial"
    assert over_the_end.without_pictures_s == ((end_of_pictures_s, 12.0),)
    assert before_the_end.status == "ok"
    assert any("cut off" in note for note in before_the_end.notes)


def test_a_film_whose_header_counts_more_frames_than_are_shown_is_whole(numbered_films, short_film):
    """One was written with every second of 199 frames dropped; the other's edit list shows 45 of 100.

    Nine frames at even distances are taken; each picture has its own number drawn in it.
    """
    for path, n_counted, n_shown in ((numbered_films["dropped.avi"], 199, 100), (short_film, 100, 45)):
        with av.open(str(path)) as container:
            assert container.streams.video[0].frames == n_counted

        frames = read_frames(path, uniform(9), strict=True)

        assert frames.total == n_shown
        assert frames.status == "ok"
        assert frames.method == "sparse"
        evenly_spaced = [index * n_shown // 9 for index in range(9)]
        assert read_drawn_numbers(frames.images) == evenly_spaced


@pytest.fixture
def film_with_frame_90_damaged(numbered_films, tmp_path):
    """A film without B-frames whose frame 90 cannot be decoded; frames 96 and on begin at a key frame."""
    data = bytearray(numbered_films["no_b.mp4"].read_bytes())
    damaged = packets_of(numbered_films["no_b.mp4"])[90]
    data[damaged.pos : damaged.pos + 4] = b"\x7f\xff\xff\xff"  # the length of its first NAL unit
    return written(tmp_path, "hole.mp4", data)


def test_frames_before_a_damaged_one_and_behind_the_next_key_frame_are_read(film_with_frame_90_damaged):
    """Decoding starts anew at a key frame, here at frame 96, so damage reaches no further than that."""
    film = film_with_frame_90_damaged

    far_before = read_frames(film, at([10, 50]))
    just_before = read_frames(film, at(range(85, 90)))
    behind_the_key_frame = read_frames(film, at([99]), strict=True)

    assert far_before.status == "ok"
    assert far_before.method == "sparse"
    assert read_drawn_numbers(just_before.images) == [85, 86, 87, 88, 89]
    assert behind_the_key_frame.status == "ok"


def test_a_frame_between_a_damaged_one_and_the_next_key_frame_is_partial(film_with_frame_90_damaged):
    """The film has no B-frames: each refers to the one before, so that 94 needs 90; a key frame is 96."""
    film = film_with_frame_90_damaged

    frames = read_frames(film, at([94]))

    assert frames.status == "partial"
    assert frames.method == "sequential"
    assert frames.notes[0] == "the decoder refused 1 packet on the way"
    assert "refused 1 packet" in reason_of_refusal(film, at([94]), strict=True)
    assert "frame 90" in reason_of_refusal(film, at([90]))


def test_a_film_without_times_is_partial_where_a_frame_cannot_be_decoded(numbered_films, tmp_path):
    """H.264 in AVI has no times: frames are known by counting, so all behind the damage get other numbers.

    Of 100 frames, number 50 cannot be decoded.
    """
    film = spoiled(numbered_films["h264.avi"], tmp_path / "hole.avi", [50])

    frames = read_frames(film, uniform(10))

    assert frames.status == "partial"
    assert frames.method == "sequential"
    assert frames.total == 99
    assert frames.notes[0].startswith("99 of 100 frames")
    assert frames.index.tolist() == [0, 9, 19, 29, 39, 49, 59, 69, 79, 89]  # number i is at i * 99 / 10
    numbers_drawn_before_the_damage = read_drawn_numbers(frames.images[:5])
    assert numbers_drawn_before_the_damage == [0, 9, 19, 29, 39]
    assert (np.diff(frames.time_s) > 0).all()


def test_errors_travel_between_processes():
    """An error that a worker process raises is pickled on its way; its reason and path must arrive."""
    error = VideoError("the file is empty (0 bytes)", Path("a.mp4"))

    received = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes

    assert received.reason == error.reason
    assert received.path == error.path
    assert str(received) == str(error)


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
def test_a_file_with_fewer_bytes_than_it_states_is_partial(tmp_path, name, codec):
    """Each container states a length of the file or of its last part; the last 5,000 bytes are missing."""
    whole = encode(tmp_path / name, map(draw_number, range(60)), codec=codec)
    cut = written(tmp_path, f"cut-{name}", whole.read_bytes()[:-5000])

    assert read_frames(whole, uniform(4)).status == "ok"
    assert read_frames(cut, uniform(4)).status == "partial"


def test_the_size_that_a_broadcast_states_is_not_believed(tmp_path):
    """A broadcast is written before its size is known, so the size in its header means nothing.

    This one states 2**40 bytes, a tebibyte, and has some thousand.
    """
    data = bytearray(encode(tmp_path / "a.asf", map(draw_number, range(60)), codec="wmv2").read_bytes())
    # ASF's file properties: their GUID (16 bytes), their size (8), the file's id (16), the file's size (8),
    # five numbers (8 each) and flags, whose first bit says that the file was broadcast.
    properties = data.index(bytes.fromhex("a1dcab8c47a9cf118ee400c00c205365"))
    file_size = properties + 16 + 8 + 16
    flags = file_size + 8 + 5 * 8
    data[file_size : file_size + 8] = (2**40).to_bytes(8, "little")
    data[flags] = 1
    broadcast = written(tmp_path, "live.asf", bytes(data))

    frames = read_frames(broadcast, uniform(4))

    assert frames.status == "ok"


def test_packets_that_the_container_flags_as_damaged_are_noted(numbered_films, tmp_path):
    """A packet in the middle of a transport stream is lost, which the counters of its packets show."""
    whole = numbered_films["hevc_cra.ts"]
    data = bytearray(whole.read_bytes())
    packet_bytes = 188  # of every packet of a transport stream
    n_packets = len(data) // packet_bytes
    middle = n_packets // 2 * packet_bytes
    del data[middle : middle + packet_bytes]
    film_with_loss = written(tmp_path, "lost.ts", bytes(data))

    notes_of_loss = read_frames(film_with_loss, uniform(4)).notes
    notes_of_whole = read_frames(whole, uniform(4)).notes

    assert any("flags" in note for note in notes_of_loss)
    assert not any("flags" in note for note in notes_of_whole)


FLAGGED_PACKETS = [0, 17, 18, 19, 20, 30]


@pytest.mark.parametrize(
    ("first_of_parts", "damaged_packets"),
    [([0], [0, 17, 18, 19, 20, 30]), ([0, 20], [17, 30]), ([0, 20, 31], [17])],
    ids=["one part", "two parts", "three parts"],
)
def test_packets_flagged_where_parts_of_a_file_join_are_not_damaged(first_of_parts, damaged_packets):
    """Of a file of 40 packets, the container flags the packets 0, 17, 18, 19, 20 and 30 as damaged.

    If the file was joined from parts, counters of its packets jump where a part begins, and FFmpeg flags
    undamaged packets for it: the first of the part, or one of the two before. So these are not counted; if
    parts begin at 0 and 20, they are 0, 18, 19 and 20. Otherwise every joined film would be called damaged.
    If the file is one part, all flagged packets are counted.
    """
    are_flagged = np.zeros(40, np.bool_)
    are_flagged[FLAGGED_PACKETS] = True
    packets = SimpleNamespace(corrupt=are_flagged)

    assert _count_damaged_packets(packets, first_of_parts) == len(damaged_packets)
