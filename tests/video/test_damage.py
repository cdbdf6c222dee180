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

SEQUENCE_HEADER, NO_HEADER = b"\0\0\1\xb3", b"\0\0\1\xb2"
"""Start codes of MPEG-2: of a sequence's header, and of data of users."""


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
    """Without "moov", the index of an MP4 file, no picture can be found."""
    whole = films["b1.mp4"].read_bytes()
    assert "'moov'" in refused(written(tmp_path, "b1.mp4", whole[: len(whole) // 2]))


@pytest.mark.parametrize(("name", "n_bytes"), [("b2.mkv", 700), ("asp.avi", 2048), ("flash.flv", 300)])
def test_the_first_bytes_of_a_film_without_any_picture_are_refused(films, tmp_path, name, n_bytes):
    reason = refused(written(tmp_path, name, films[name].read_bytes()[:n_bytes]))
    assert re.search("header|picture", reason)


def test_what_is_no_file_of_pictures_is_refused_by_what_it_is(tmp_path, sound):
    os.mkfifo(tmp_path / "pipe.mp4")
    assert "no such file" in refused(tmp_path / "none.mp4")
    assert "directory" in refused(tmp_path)
    assert "regular file" in refused(tmp_path / "pipe.mp4")
    assert "no video stream" in refused(sound)


@pytest.mark.long
def test_a_film_with_a_damaged_index_gives_frames_or_a_reason(films, tmp_path):
    """Each of 60 trials changes 12 bytes of the index."""
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


def test_a_recording_without_the_headers_of_its_sequences_is_refused_for_that(films, tmp_path):
    """Without them its pictures have no size, which must not be taken for a size that is too large."""
    headless = films["mpeg2.ts"].read_bytes().replace(SEQUENCE_HEADER, NO_HEADER)
    reason = refused(written(tmp_path, "headless.ts", headless))
    assert "header" in reason
    assert "bomb" not in reason


def damaged_at_random(data, rng):
    """Invert thirty bytes of a film behind its first tenth, and cut it somewhere in its second half."""
    damaged = np.frombuffer(data, np.uint8).copy()
    damaged[rng.integers(len(data) // 10, len(data), 30)] ^= 0xFF
    end = rng.integers(len(data) // 2, len(data) + 1)
    return damaged[:end].tobytes()


def check_frames_or_reason(path):
    """Check that a film gives as many frames as asked for, in their order and with notes, or a reason."""
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
def test_a_film_damaged_at_random_gives_frames_or_a_reason(films, tmp_path, name):
    """Each of 15 trials changes 30 bytes and cuts the film somewhere."""
    data = films[name].read_bytes()
    rng = np.random.default_rng(2)
    for trial in range(15):
        check_frames_or_reason(written(tmp_path, f"{trial}-{name}", damaged_at_random(data, rng)))


@pytest.mark.parametrize("name", ["asp.avi", "b2.mkv", "fast.mp4"])
def test_a_truncated_file_is_partial_or_refused_by_strict(films, tmp_path, name):
    """60 % of the film are left: its frames have the right numbers, and a note says that it is cut off."""
    data = films[name].read_bytes()
    path = written(tmp_path, name, data[: len(data) * 6 // 10])

    frames = read_frames(path, uniform(8))

    assert frames.status == "partial"
    assert "cut off" in frames.notes[0]
    assert numbers_of(frames.images) == frames.index.tolist()
    assert "cut off" in refused(path, strict=True)
    assert "cut off" in probe(path).damage


@pytest.fixture(params=[".mkv", ".mp4"])
def whole_and_cut_film(request, shared_data, tmp_path):
    """A real film of 13 s in a container that states its length first, and 55 % of its bytes."""
    options = {"movflags": "faststart"} if request.param == ".mp4" else {}
    real = shared_data / "videos" / "nasa_13013.mp4"
    whole = remux(real, tmp_path / f"whole{request.param}", edit=list, **options)
    data = whole.read_bytes()
    return whole, written(tmp_path, f"cut{request.param}", data[: len(data) * 55 // 100])


def test_a_film_that_is_cut_off_has_the_end_that_it_states_and_spans_over_its_end_are_partial(
    whole_and_cut_film,
):
    """The film states 13 s; 55 % of its bytes hold about 7 s of pictures."""
    whole, cut = whole_and_cut_film
    facts = probe(cut)
    end_of_pictures_s = facts.start_s + facts.duration_s
    assert facts.stated_end_s == pytest.approx(13.0, abs=0.05)
    assert 5 < end_of_pictures_s < 9
    assert math.isnan(probe(whole).stated_end_s)  # it ends where it says

    over_the_end = read_frames(cut, uniform(8), start_s=4.0, end_s=12.0)
    assert over_the_end.status == "partial"
    assert over_the_end.without_pictures_s == ((end_of_pictures_s, 12.0),)

    before_the_end = read_frames(cut, uniform(8), start_s=0.0, end_s=4.0, strict=True)

    assert before_the_end.status == "ok"
    assert any("cut off" in note for note in before_the_end.notes)


def test_a_film_whose_header_counts_more_frames_than_are_shown_is_whole(films, short_film):
    """One was written with every second of 199 frames dropped; the other's edit list shows 45 of 100."""
    for path, n_counted, n_shown in ((films["dropped.avi"], 199, 100), (short_film, 100, 45)):
        with av.open(str(path)) as container:
            assert container.streams.video[0].frames == n_counted

        frames = read_frames(path, uniform(9), strict=True)

        assert (frames.total, frames.status, frames.method) == (n_shown, "ok", "sparse")
        assert numbers_of(frames.images) == [i * n_shown // 9 for i in range(9)]


@pytest.fixture
def frame_90_damaged(films, tmp_path):
    """A film without B-frames whose frame 90 cannot be decoded; frames 96 and on begin at a key frame."""
    data = bytearray(films["no_b.mp4"].read_bytes())
    damaged = packets_of(films["no_b.mp4"])[90]
    data[damaged.pos : damaged.pos + 4] = b"\x7f\xff\xff\xff"  # the length of its first NAL unit
    return written(tmp_path, "hole.mp4", data)


def test_frames_before_a_damaged_one_and_behind_the_next_key_frame_are_read(frame_90_damaged):
    """Decoding starts anew at a key frame, so damage reaches no further than the next one."""
    frames = read_frames(frame_90_damaged, at([10, 50]))
    assert (frames.status, frames.method) == ("ok", "sparse")

    before = read_frames(frame_90_damaged, at(range(85, 90)))

    assert numbers_of(before.images) == list(range(85, 90))
    assert read_frames(frame_90_damaged, at([99]), strict=True).status == "ok"


def test_a_frame_between_a_damaged_one_and_the_next_key_frame_is_partial(frame_90_damaged):
    """Without B-frames each refers to the one before, so that 94 goes back to 90."""
    frames = read_frames(frame_90_damaged, at([94]))
    assert (frames.status, frames.method) == ("partial", "sequential")
    assert frames.notes[0] == "the decoder refused 1 packet on the way"

    assert "refused 1 packet" in refused(frame_90_damaged, at([94]), strict=True)
    assert "frame 90" in refused(frame_90_damaged, at([90]))


def test_a_film_without_times_is_partial_where_a_frame_cannot_be_decoded(films, tmp_path):
    """Its frames are known by counting them, so that all behind the damage get other numbers."""
    frames = read_frames(spoiled(films["h264.avi"], tmp_path / "hole.avi", [50]), uniform(10))

    n_decoded = 99
    assert (frames.status, frames.method, frames.total) == ("partial", "sequential", n_decoded)
    assert frames.notes[0].startswith(f"{n_decoded} of 100 frames")
    assert frames.index.tolist() == [i * n_decoded // 10 for i in range(10)]

    before_the_damage = slice(5)

    assert numbers_of(frames.images[before_the_damage]) == frames.index[before_the_damage].tolist()
    assert (np.diff(frames.time_s) > 0).all()


def test_errors_travel_between_processes():
    """An error raised in a worker process is pickled on its way, with its reason and path."""
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
def test_a_file_with_fewer_bytes_than_it_states_is_partial(tmp_path, name, codec):
    """Each container states a length of the file or of its last part; the last 5,000 bytes are missing."""
    film = encode(tmp_path / name, map(draw, range(60)), codec=codec)
    assert read_frames(film, uniform(4)).status == "ok"
    cut = written(tmp_path, f"cut-{name}", film.read_bytes()[:-5000])
    assert read_frames(cut, uniform(4)).status == "partial"


def test_bytes_that_a_broadcast_states_are_not_believed(tmp_path):
    """A broadcast is written before its size is known, so the size in its header means nothing."""
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
    """One packet of a transport stream is lost, which the counters of its packets show."""
    packet_bytes = 188  # of every packet of a transport stream
    data = bytearray(films["hevc_cra.ts"].read_bytes())
    middle = len(data) // packet_bytes // 2 * packet_bytes
    del data[middle : middle + packet_bytes]

    notes = read_frames(written(tmp_path, "lost.ts", bytes(data)), uniform(4)).notes

    assert any("flags" in note for note in notes)
    assert not any("flags" in note for note in read_frames(films["hevc_cra.ts"], uniform(4)).notes)
