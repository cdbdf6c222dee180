"""The right frames, from films whose pictures carry their own numbers."""

import shutil
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
from tests.video.conftest import HOW, draw_number, read_drawn_numbers, remux
from tests.video.encoding import encode

SEQUENTIAL = {
    "h264.avi": "H.264 in avi has no reliable time stamps",
    "raw.h264": "H.264 in h264 has no reliable time stamps",
    "raw.hevc": "HEVC in hevc has no reliable time stamps",
    "wmv2.asf": "the codec is wmv2",
}
SPARSE = [name for name in (*HOW, "packed.avi") if name not in {*SEQUENTIAL, "dropped.avi", "fast.mp4"}]


def decoded_by_pyav(path: Path) -> np.ndarray:
    """Every picture, by PyAV's own loop, [T, H, W, 3]."""
    with av.open(str(path)) as container:
        stream = container.streams.best("video")
        stream.thread_count = 1
        convert = Converter()
        return np.stack([convert(frame).rgb for frame in container.decode(stream)])


TOLERANCE_S = {".mkv": 0.0006, ".webm": 0.0006, ".vob": 0.09}
"""Matroska rounds to milliseconds; in this VOB not every picture has a time of its own."""


def times_by_which_it_was_encoded(name: str) -> np.ndarray:
    """Return the seconds at which the 100 pictures of one of `numbered_films` are shown."""
    how_it_was_encoded = HOW.get(name, {})
    if "times" not in how_it_was_encoded:
        return np.arange(100) / 25
    ticks = np.array(how_it_was_encoded["times"])
    return (ticks - ticks[0]) * float(how_it_was_encoded["time_base"])


@pytest.mark.parametrize("name", [*SPARSE, *SEQUENTIAL])
def test_every_frame_is_the_one_that_its_number_and_time_say(numbered_films, name):
    """Every film has 100 pictures, and each has its own number drawn in it.

    Most films show 25 pictures a second; the others are encoded with times of their own. Films that are
    decoded in order (SEQUENTIAL) state no times that can be relied on.
    """
    frames = read_frames(numbered_films[name], at(range(100)), strict=True)

    assert read_drawn_numbers(frames.images) == list(range(100))
    assert frames.total == 100
    assert frames.status == "ok"
    if name not in SEQUENTIAL:
        tolerance_s = TOLERANCE_S.get(numbered_films[name].suffix, 1e-9)
        np.testing.assert_allclose(frames.time_s, times_by_which_it_was_encoded(name), atol=tolerance_s)


@pytest.mark.parametrize("name", SPARSE)
def test_sparse_frames_are_bit_equal_to_those_of_sequential_decoding(numbered_films, name):
    """PyAV decodes all 100 pictures of a film in order. Sparse decoding seeks, and decodes what is needed.

    Both give the same bytes of whatever is sampled, such as 32 pictures spread evenly, or those of some
    numbers.
    """
    all_pictures = decoded_by_pyav(numbered_films[name])
    spread_evenly = [uniform(32), uniform(7), fps(rate=3), keyframes(5)]
    by_numbers = [at([99, 0, 50, 50, 23, 24, 25]), at([97])]

    for sampling in [*spread_evenly, *by_numbers]:
        frames = read_frames(numbered_films[name], sampling)

        assert frames.method == "sparse"
        assert frames.why_sequential == ""
        assert np.array_equal(frames.images, all_pictures[frames.index])


@pytest.mark.parametrize("name", SPARSE)
def test_two_frames_of_a_film_are_read_by_decoding_less_than_half_of_it(numbered_films, name):
    """The film has 100 pictures. Sparse decoding starts at a key frame near each of the two frames."""
    frames = read_frames(numbered_films[name], at([3, 60]))

    assert frames.decoded < 50


@pytest.fixture
def switch_off_sparse_decoding(monkeypatch):
    """Have every film called unsafe for sparse decoding from now on, also if it was called safe before."""

    def switch_off():
        monkeypatch.setattr(index, "_tables", {})
        monkeypatch.setattr(index, "_why_unsafe", lambda *_, **__: "switched off")

    return switch_off


@pytest.mark.parametrize(
    "name", ["pyramid.mp4", "open_gop.ts", "hevc_cra.mp4", "vp9.webm", "mpeg2.vob", "asp.avi"]
)
def test_frames_are_the_same_where_sparse_decoding_is_switched_off(
    numbered_films, switch_off_sparse_decoding, name
):
    """Sparse decoding reads the packets that the wanted frames need, sequential all up to the last one."""
    sparse = read_frames(numbered_films[name], uniform(25))

    switch_off_sparse_decoding()
    sequential = read_frames(numbered_films[name], uniform(25))

    assert (sequential.method, sequential.why_sequential) == ("sequential", "switched off")
    assert np.array_equal(sequential.images, sparse.images)
    assert np.array_equal(sequential.index, sparse.index)
    assert np.array_equal(sequential.time_s, sparse.time_s)


@pytest.mark.parametrize(("name", "reason"), SEQUENTIAL.items())
def test_films_unsafe_for_sparse_decoding_are_decoded_in_order(numbered_films, name, reason):
    """Without reliable times or key frames, a picture's number is known only by counting from the first."""
    evenly_spaced = [0, 6, 12, 18, 25, 31, 37, 43, 50, 56, 62, 68, 75, 81, 87, 93]  # of 100, rounded down

    frames = read_frames(numbered_films[name], uniform(16))

    assert frames.method == "sequential"
    assert frames.why_sequential == reason
    assert frames.index.tolist() == evenly_spaced
    assert read_drawn_numbers(frames.images) == evenly_spaced


def test_an_edit_list_leaves_out_the_first_frames(cut_film):
    """The film's edit list says not to show pictures 0 to 9 of 100.

    Of the 90 left, ten frames are every ninth, from picture 10 on, which is shown at 0 s.
    """
    frames = read_frames(cut_film, uniform(10))

    assert frames.total == 90
    assert frames.method == "sparse"
    assert frames.status == "ok"
    assert read_drawn_numbers(frames.images) == [10, 19, 28, 37, 46, 55, 64, 73, 82, 91]
    assert frames.time_s[0] == 0.0


@pytest.mark.parametrize(
    "name", ["pyramid.mp4", "open_gop.ts", "uneven.mkv", "asp.avi", "mpeg2.ts", "h264.avi"]
)
def test_a_span_gives_frames_inside_it_alone(numbered_films, name):
    """Eight frames are spread evenly over those whose times lie in the span from 1 to 1.8 s."""
    whole = read_frames(numbered_films[name], at(range(100)))
    is_in_span = (whole.time_s >= 1.0) & (whole.time_s < 1.8)
    numbers_in_span = np.flatnonzero(is_in_span)
    evenly_spaced = [numbers_in_span[place * len(numbers_in_span) // 8] for place in range(8)]

    frames = read_frames(numbered_films[name], uniform(8), start_s=1.0, end_s=1.8)

    assert frames.index.tolist() == evenly_spaced
    assert read_drawn_numbers(frames.images) == frames.index.tolist()
    assert np.array_equal(frames.time_s, whole.time_s[frames.index])
    assert frames.status == "ok"


@pytest.mark.parametrize(
    ("start_s", "end_s", "words_of_note"),
    [
        pytest.param(2.0, 9.0, ["up to 9 s", "4.00 s"], id="over the end"),
        pytest.param(-3.0, 1.0, ["no pictures for 3.00 s"], id="long before the first picture"),
    ],
)
def test_a_span_beyond_the_4_s_of_a_film_is_partial_with_a_note(
    numbered_films, start_s, end_s, words_of_note
):
    """The film has 100 pictures, 25 a second, from 0 to 4 s. A span of it is asked for that reaches further.

    The note says how much of the span has no pictures, or where the film ends.
    """
    frames = read_frames(numbered_films["b1.mp4"], uniform(4), start_s=start_s, end_s=end_s)

    assert frames.status == "partial"
    note = frames.notes[0]
    for words in words_of_note:
        assert words in note


@pytest.mark.parametrize(
    ("start_s", "end_s"),
    [(2.0, 4.0), (None, 1.0), (-0.1, 1.0)],
    ids=["to the end", "no start", "a tenth of a second before"],
)
def test_a_span_within_a_film_or_a_tenth_of_a_second_before_it_is_whole(numbered_films, start_s, end_s):
    """The film lasts 4 s. Clocks of sound and pictures differ a little, so 0.1 s before it is no hole."""
    frames = read_frames(numbered_films["b1.mp4"], uniform(4), start_s=start_s, end_s=end_s)

    assert frames.status == "ok"
    assert frames.notes == ()


def test_keyframes_are_key_frames_and_need_no_others(numbered_films):
    """The film has 100 pictures, every 24th of which is a key frame: 0, 24, 48, 72 and 96.

    Four of them are asked for, and only these four are decoded.
    """
    frames = read_frames(numbered_films["b1.mp4"], keyframes(4))

    assert frames.index.tolist() == [0, 24, 48, 72]
    assert read_drawn_numbers(frames.images) == [0, 24, 48, 72]
    assert frames.decoded == 4


def test_an_error_of_the_callers_function_is_raised_as_it_is(numbered_films):
    """A caller's function is called with each frame; its error must not look like a damaged film."""

    def mistaken_function(_: np.ndarray) -> None:
        raise IndexError("the caller's mistake")

    with pytest.raises(IndexError, match="the caller's mistake"):
        read_frames(numbered_films["b1.mp4"], uniform(2), each=mistaken_function)


def let_sparse_decoding_fail(monkeypatch, *, behind_picture: int) -> None:
    """Let the decoder give pictures sparsely up to this one, and then fail."""
    decode_sparsely = Decoder.decode_sparsely

    def fail_behind_picture(decoder, targets):
        for number, frame in decode_sparsely(decoder, targets):
            if number > behind_picture:
                break
            yield number, frame
        raise NotSafe("a frame did not come out of the decoder")

    monkeypatch.setattr(Decoder, "decode_sparsely", fail_behind_picture)


@pytest.mark.parametrize("last_picture", [40, -1], ids=["after picture 40", "at once"])
def test_a_film_whose_sparse_decoding_fails_on_the_way_is_decoded_in_order(
    numbered_films, monkeypatch, last_picture
):
    """To decode sparsely is to seek, and to decode what is needed alone. Here that fails behind a picture.

    The whole film is then decoded, and the reason is told; each picture has its own number drawn in it.
    """
    let_sparse_decoding_fail(monkeypatch, behind_picture=last_picture)

    frames = read_frames(numbered_films["pyramid.mp4"], uniform(8))

    assert frames.method == "sequential"
    assert frames.why_sequential == "a frame did not come out of the decoder"
    assert read_drawn_numbers(frames.images) == frames.index.tolist()


def test_sparse_decoding_is_refused_if_the_file_was_replaced(numbered_films, tmp_path):
    """A decoder takes the table of packets when it is made, and opens the file when it decodes.

    If the file was replaced between, the table would give wrong frames.
    """
    path = tmp_path / "film.mp4"
    shutil.copy(numbered_films["pyramid.mp4"], path)
    index_packets(path)
    decoder = Decoder(path)

    shutil.copy(numbered_films["uneven.mp4"], path)

    with pytest.raises(NotSafe, match="other packets"):
        list(decoder.decode_sparsely([50]))


def packets_needed_for(table, packet):
    """List the packets that must be decoded to get the picture of one."""
    number_of_picture = int(np.flatnonzero(table.shown == packet)[0])
    return np.flatnonzero(needed_packets(table, [number_of_picture])).tolist()


def test_a_picture_shown_before_the_start_of_its_open_group_needs_the_group_before(numbered_films):
    """Decoding can start at the first packet of a group.

    In an open group the packet behind it may be of a picture that is shown before, and that refers to the
    group before.
    """
    table = index_packets(numbered_films["open_gop.mp4"])
    starts_of_groups = np.flatnonzero(table.random_access)
    start_of_first_group = starts_of_groups[0]
    start_of_second_group = starts_of_groups[1]
    packet_behind = start_of_second_group + 1
    place_in_order_of_display = table.rank
    assert place_in_order_of_display[packet_behind] < place_in_order_of_display[start_of_second_group]

    assert packets_needed_for(table, start_of_second_group) == [start_of_second_group]
    assert packets_needed_for(table, packet_behind)[0] == start_of_first_group


def test_pictures_that_are_shown_before_the_first_key_picture_and_need_no_other_are_read(beginless):
    """A film of HEVC of 100 numbered pictures lacks its first group: it begins with a later key picture.

    Some pictures behind the key picture in the file are shown before it. In HEVC they may be of a kind
    ("RADL") that refers to the key picture alone. So nothing that is left of the film refers to what was cut
    off, and every picture is read: the last ones of the 100, as many as are left.
    """
    film_without_first_group = beginless("hevc_radl.mp4")
    n_left = probe(film_without_first_group).frames

    frames = read_frames(film_without_first_group, at(range(n_left)))

    assert frames.method == "sparse"
    assert frames.status == "ok"
    assert 0 < n_left < 100
    assert read_drawn_numbers(frames.images) == list(range(100 - n_left, 100))


@pytest.mark.parametrize("name", ["hevc_cra.mp4", "mpeg2.mkv"])
def test_pictures_that_need_a_group_that_was_cut_off_are_left_out(beginless, name):
    """The film lacks its first group. The next one is open: its first pictures refer to the lost group, too.

    The file still lists these pictures, so that they have the numbers 0, 1 and so on; but they cannot be
    decoded, and PyAV leaves them out too. Eight pictures are asked for, spread over the film. The first of
    all is missing: so all pictures are decoded in order, and eight are chosen among those that exist, which
    have the pixels of PyAV's. The first note says how many of all pictures exist.

    If only pictures that exist are asked for, nothing is missing, and they are decoded sparsely.
    """
    film_without_first_group = beginless(name)
    decodable_pictures = decoded_by_pyav(film_without_first_group)

    frames = read_frames(film_without_first_group, uniform(8))

    assert frames.method == "sequential"
    assert frames.status == "partial"
    note_on_decodable_pictures = frames.notes[0]
    assert note_on_decodable_pictures.startswith(f"{len(decodable_pictures)} of ")
    first_decodable = int(frames.index[0])  # number of the first picture that exists, PyAV's picture 0
    assert first_decodable > 0
    assert np.array_equal(frames.images, decodable_pictures[frames.index - first_decodable])

    decodable_frames = read_frames(film_without_first_group, at([first_decodable, first_decodable + 30]))
    assert decodable_frames.method == "sparse"


@pytest.fixture(params=["mp4", "mkv"])
def film_with_held_picture(request, tmp_path):
    """A film of 25 pictures in its first second, and one that the file says to be shown for 5 s more."""

    def hold_last_picture(packets):
        packets[-1].duration = int(5 / packets[-1].time_base)
        return packets

    film = encode(tmp_path / f"a.{request.param}", map(draw_number, range(26)), options={"bf": "0"})
    return remux(film, tmp_path / f"held.{request.param}", hold_last_picture)


def test_a_film_lasts_as_long_as_its_last_picture_is_shown(film_with_held_picture):
    """A film has 25 pictures in its first second, and one more that is shown for 5 s.

    So it lasts 6 s for whatever asks for its end: its facts, the times of samples, its shots, and a span.
    """
    film = film_with_held_picture

    facts = probe(film)
    _numbers, _times, sampled_duration_s = sampled_times(film, uniform(4), start_s=None, end_s=None)
    last_shot = find_shots(film)[-1]
    frames_nearly_to_the_end = read_frames(film, uniform(4), start_s=0.0, end_s=5.9)

    assert facts.duration_s == pytest.approx(6.0)
    assert facts.damage == ""
    assert sampled_duration_s == pytest.approx(6.0)
    assert last_shot.end_s == pytest.approx(6.0)
    assert frames_nearly_to_the_end.status == "ok"


def test_probe_gives_the_pictures_bytes_and_seconds_of_a_film(numbered_films):
    """The film has 100 pictures, 25 a second."""
    film = numbered_films["b2.mkv"]

    facts = probe(film)

    assert facts.frames == 100
    assert facts.duration_s == pytest.approx(4.0)
    assert facts.bytes == film.stat().st_size
    assert facts.damage == ""
