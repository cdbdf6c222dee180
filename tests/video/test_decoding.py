"""The right frames, from films whose pictures carry their own numbers."""

from pathlib import Path

import av
import numpy as np
import pytest

from obygaze_features.video import (
    at,
    find_shots,
    fps,
    index,
    keyframes,
    probe,
    read_frames,
    sampled_times,
    uniform,
)
from obygaze_features.video.decode import Decoder, NotSafe, needed_packets
from obygaze_features.video.index import index_packets
from obygaze_features.video.picture import Converter
from tests.video.conftest import HOW, draw, numbers_of, remux
from tests.video.encoding import encode

SEQUENTIAL = {
    "h264.avi": "H.264 in avi has no reliable time stamps",
    "raw.h264": "H.264 in h264 has no reliable time stamps",
    "raw.hevc": "HEVC in hevc has no reliable time stamps",
    "wmv2.asf": "the codec is wmv2",
}
SPARSE = [name for name in (*HOW, "packed.avi") if name not in {*SEQUENTIAL, "dropped.avi", "fast.mp4"}]
RULES = [uniform(32), uniform(7), fps(3), keyframes(5), at([99, 0, 50, 50, 23, 24, 25]), at([97])]


def plainly(path: Path) -> np.ndarray:
    """Every picture, by PyAV's own loop, [T, H, W, 3]."""
    with av.open(str(path)) as container:
        stream = container.streams.best("video")
        stream.thread_count = 1
        convert = Converter()
        return np.stack([convert(frame).rgb for frame in container.decode(stream)])


@pytest.mark.parametrize("name", [*SPARSE, *SEQUENTIAL])
def test_every_frame_is_the_one_that_its_number_says(films, name):
    frames = read_frames(films[name], at(range(100)), strict=True)
    assert numbers_of(frames.images) == list(range(100))
    assert frames.total == 100
    assert frames.status == "ok"


@pytest.mark.parametrize("name", SPARSE)
def test_sparse_frames_are_bit_equal_to_those_of_sequential_decoding(films, name):
    reference = plainly(films[name])
    for rule in RULES:
        frames = read_frames(films[name], rule)
        assert (frames.method, frames.why_sequential) == ("sparse", "")
        assert np.array_equal(frames.images, reference[frames.index])
    assert read_frames(films[name], at([3, 60])).decoded < len(reference) / 2


@pytest.mark.parametrize("name", SPARSE)
def test_frames_are_the_same_where_sparse_decoding_is_switched_off(films, monkeypatch, name):
    sparse = read_frames(films[name], uniform(25))
    monkeypatch.setattr(index, "_tables", {})
    monkeypatch.setattr(index, "_why_unsafe", lambda *_, **__: "switched off")
    ordered = read_frames(films[name], uniform(25))
    assert (ordered.method, ordered.why_sequential) == ("sequential", "switched off")
    assert np.array_equal(ordered.images, sparse.images)
    assert np.array_equal(ordered.index, sparse.index)
    assert np.array_equal(ordered.time_s, sparse.time_s)


@pytest.mark.parametrize(("name", "reason"), SEQUENTIAL.items())
def test_what_is_not_safe_is_decoded_in_order_and_says_why(films, name, reason):
    frames = read_frames(films[name], uniform(16))
    assert (frames.method, frames.why_sequential) == ("sequential", reason)
    assert numbers_of(frames.images) == frames.index.tolist() == [int(i * 100 / 16) for i in range(16)]


@pytest.mark.parametrize("name", SPARSE)
def test_times_are_those_of_presentation(films, name):
    frames = read_frames(films[name], at(range(100)))
    expected = np.arange(100) / 25
    if "uneven" in name:
        expected = np.cumsum(1 + np.arange(100) % 3) / 100
        expected -= expected[0]
    # Matroska rounds to milliseconds; in this VOB not every picture has a time of its own.
    tolerance = {"mkv": 0.0006, "ebm": 0.0006, "vob": 0.09}.get(name[-3:], 1e-9)
    np.testing.assert_allclose(frames.time_s, expected, atol=tolerance)


def test_an_edit_list_leaves_frames_out_of_the_count_but_not_of_the_decoding(cut_film):
    frames = read_frames(cut_film, uniform(10))
    assert (frames.total, frames.method, frames.status) == (90, "sparse", "ok")
    assert numbers_of(frames.images) == list(range(10, 100, 9))
    assert frames.time_s[0] == 0.0


@pytest.mark.parametrize(
    "name", ["pyramid.mp4", "open_gop.ts", "uneven.mkv", "asp.avi", "mpeg2.ts", "h264.avi"]
)
def test_a_span_gives_frames_inside_it_alone(films, name):
    whole = read_frames(films[name], at(range(100)))
    frames = read_frames(films[name], uniform(8), start_s=1.0, end_s=1.8)
    inside = np.flatnonzero((whole.time_s >= 1.0) & (whole.time_s < 1.8))
    assert frames.index.tolist() == [inside[i * len(inside) // 8] for i in range(8)]
    assert numbers_of(frames.images) == frames.index.tolist()
    assert np.array_equal(frames.time_s, whole.time_s[frames.index])
    assert frames.status == "ok"


def test_a_span_that_runs_over_the_end_is_partial_and_says_so(films):
    frames = read_frames(films["b1.mp4"], uniform(4), start_s=2.0, end_s=9.0)
    assert frames.status == "partial"
    assert "up to 9 s" in frames.notes[0]
    assert "4.00 s" in frames.notes[0]
    assert read_frames(films["b1.mp4"], uniform(4), start_s=2.0, end_s=4.0).status == "ok"


def test_a_span_that_begins_long_before_the_pictures_is_partial_and_says_so(films):
    frames = read_frames(films["b1.mp4"], uniform(4), start_s=-3.0, end_s=1.0)
    assert frames.status == "partial"
    assert any("no pictures for 3.00 s" in note for note in frames.notes)


@pytest.mark.parametrize("start_s", [-0.1, None], ids=["a tenth of a second before", "no start"])
def test_a_span_that_begins_about_where_the_pictures_do_is_whole(films, start_s):
    frames = read_frames(films["b1.mp4"], uniform(4), start_s=start_s, end_s=1.0)
    assert frames.status == "ok"
    assert not any("no pictures" in note for note in frames.notes)


def test_keyframes_are_key_frames_and_need_no_others(films):
    frames = read_frames(films["b1.mp4"], keyframes(4))
    assert frames.index.tolist() == [0, 24, 48, 72]
    assert numbers_of(frames.images) == [0, 24, 48, 72]
    assert frames.decoded == 4


def test_an_error_of_the_callers_function_is_raised_as_it_is(films):
    def broken(_: np.ndarray) -> None:
        raise IndexError("mine")

    with pytest.raises(IndexError, match="mine"):
        read_frames(films["b1.mp4"], uniform(2), each=broken)


@pytest.mark.parametrize("last", [40, -1])
def test_anything_odd_in_sparse_decoding_falls_back_to_sequential(films, monkeypatch, last):
    decode_sparsely = Decoder.decode_sparsely

    def odd(decoder, targets):
        for number, frame in decode_sparsely(decoder, targets):
            if number > last:
                break
            yield number, frame
        raise NotSafe("a frame did not come out of the decoder")

    monkeypatch.setattr(Decoder, "decode_sparsely", odd)
    frames = read_frames(films["pyramid.mp4"], uniform(8))
    assert frames.method == "sequential"
    assert frames.why_sequential
    assert numbers_of(frames.images) == frames.index.tolist()


def test_sparse_decoding_notices_another_file_in_the_old_ones_place(films):
    index_packets(films["pyramid.mp4"])  # whose packets are not kept
    decoder = Decoder(films["pyramid.mp4"])
    decoder.path = films["uneven.mp4"]
    with pytest.raises(NotSafe, match="other packets"):
        list(decoder.decode_sparsely([50]))


def test_the_random_access_of_an_open_group_serves_only_what_is_shown_after_it(films):
    table = index_packets(films["open_gop.mp4"])
    starts = np.flatnonzero(table.random_access)
    after = starts[1] + 1  # a B-picture: decoded after the second start, shown before it
    assert table.rank[after] < table.rank[starts[1]]
    frame = int(np.flatnonzero(table.shown == after)[0])
    assert np.flatnonzero(needed_packets(table, [frame]))[0] == starts[0]
    shown_after = int(np.flatnonzero(table.shown == starts[1])[0])
    assert np.flatnonzero(needed_packets(table, [shown_after])).tolist() == [starts[1]]


def test_pictures_before_the_first_random_access_are_decoded_where_they_can_be(beginless):
    whole = read_frames(beginless("hevc_radl.mp4"), uniform(200))
    assert (whole.method, whole.status) == ("sparse", "ok")
    assert numbers_of(whole.images[::2]) == [
        number + 100 - whole.total for number in whole.index[::2].tolist()
    ]
    for name in ("hevc_cra.mp4", "mpeg2.mkv"):
        frames = read_frames(beginless(name), uniform(8))
        reference = plainly(beginless(name))
        assert (frames.method, frames.status) == ("sequential", "partial")
        assert frames.notes[0].startswith(f"{len(reference)} of ")
        first = int(frames.index[0])
        assert first > 0
        assert np.array_equal(frames.images, reference[frames.index - first])
        assert read_frames(beginless(name), at([first, first + 30])).method == "sparse"


@pytest.mark.parametrize("suffix", ["mp4", "mkv"])
def test_a_last_picture_that_is_held_is_shown_as_long_as_the_file_says(tmp_path, suffix):
    def held(packets):
        packets[-1].duration = int(5 / packets[-1].time_base)
        return packets

    source = encode(tmp_path / f"a.{suffix}", map(draw, range(26)), options={"bf": "0"})
    film = remux(source, tmp_path / f"held.{suffix}", held)
    assert (probe(film).duration_s, probe(film).damage) == (pytest.approx(6.0), "")
    assert read_frames(film, uniform(4), start_s=0.0, end_s=5.9).status == "ok"
    assert sampled_times(film, uniform(4), None, None)[2] == pytest.approx(6.0)
    assert find_shots(film)[-1].end_s == pytest.approx(6.0)


def test_probe_counts_without_decoding(films):
    whole = probe(films["b2.mkv"])
    assert (whole.frames, whole.damage) == (100, "")
    assert whole.bytes == films["b2.mkv"].stat().st_size
    assert whole.duration_s == pytest.approx(4.0)
