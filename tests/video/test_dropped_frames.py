"""AVI files with an empty entry for each frame that was dropped, as cameras and converters write them."""

import struct

import numpy as np
import pytest

from obygaze_features.video import probe, read_frames, uniform
from tests.video.conftest import draw_number, pack, read_drawn_numbers, remux
from tests.video.encoding import encode

PAUSE = [*range(10), *range(25, 75)]
"""Numbers of the frames of a film that were not dropped: there is a pause from frame 10 to frame 24."""
SECOND_FRAME_LATE = [0, *range(10, 70)]
"""The same for a film whose pause comes at once, behind its first frame."""

CODECS = {
    "no B-pictures": ("mpeg4", {"qscale": "2"}),
    "MPEG-4": ("mpeg4", {"bf": "2", "qscale": "2"}),
    "MPEG-2": ("mpeg2video", {"bf": "2", "g": "12", "qscale": "2"}),
    "H.264": ("libx264", {"bf": "2", "g": "12"}),
    "H.264 with a pyramid": ("libx264", {"bf": "4", "b-pyramid": "normal", "g": "30"}),
}


def encode_with_dropped_frames(path, numbers_left, codec_name):
    """Encode an AVI film at 25 frames a second, of which only some frames are left.

    Frame n, shown at n / 25 s, has the number n drawn in it. The file has an empty entry for each frame
    between those that are left. `codec_name` is a key of `CODECS`.
    """
    codec, options = CODECS[codec_name]
    return encode(path, map(draw_number, numbers_left), codec, times=numbers_left, options=options)


@pytest.mark.parametrize("codec_name", CODECS)
@pytest.mark.parametrize("numbers_left", [PAUSE, SECOND_FRAME_LATE], ids=["pause", "late"])
def test_a_pause_of_dropped_frames_comes_where_a_player_shows_it(tmp_path, codec_name, numbers_left):
    """An AVI has an entry for each 1/25 s, in the order of decoding, and an empty one for a dropped frame.

    A decoder that reorders pictures holds some back: it gives a picture out when it gets one or more further
    entries. An encoder therefore writes the empty entries of a pause so many pictures too late. All the same,
    frame n is read at n / 25 s.
    """
    film = encode_with_dropped_frames(tmp_path / "a.avi", numbers_left, codec_name)

    frames = read_frames(film, uniform(len(numbers_left)))

    assert read_drawn_numbers(frames.images) == numbers_left
    np.testing.assert_allclose(frames.time_s, np.array(numbers_left) / 25, atol=1e-6)


@pytest.mark.parametrize("codec_name", ["MPEG-4", "MPEG-2"])
def test_frames_have_their_times_if_every_third_frame_was_dropped(tmp_path, codec_name):
    """A film of 90 numbered frames, 25 a second, has an empty entry in place of every third.

    Frame n is still shown at n / 25 s.
    """
    numbers_left = [number for number in range(90) if number % 3 != 2]
    film = encode_with_dropped_frames(tmp_path / "a.avi", numbers_left, codec_name)

    frames = read_frames(film, uniform(60))

    assert read_drawn_numbers(frames.images) == numbers_left
    np.testing.assert_allclose(frames.time_s, np.array(numbers_left) / 25, atol=1e-6)


def test_the_last_picture_comes_the_usual_step_behind_the_one_before(tmp_path):
    """A film of 30 pictures, 25 a second, is in a file of 100 entries a second.

    So a picture comes every four entries, the last one too.
    """
    numbers = list(range(30))
    film = encode(
        tmp_path / "a.avi",
        map(draw_number, numbers),
        "mpeg4",
        rate=100,
        times=[4 * number for number in numbers],
        options={"bf": "2", "qscale": "2"},
    )

    frames = read_frames(film, uniform(30))

    assert read_drawn_numbers(frames.images) == numbers
    np.testing.assert_allclose(frames.time_s, np.array(numbers) / 25, atol=1e-6)


def test_a_span_that_begins_in_a_pause_of_dropped_frames_has_the_frames_behind_the_pause(tmp_path):
    """A film of 25 frames a second has lost the frames 10 to 24; frame 25 is shown at 1 s.

    Between 0.9 and 1.2 s, the frames 25 to 29 are shown, five in all, and five are asked for.
    """
    film = encode_with_dropped_frames(tmp_path / "a.avi", PAUSE, "MPEG-4")

    frames = read_frames(film, uniform(5), start_s=0.9, end_s=1.2)

    assert read_drawn_numbers(frames.images) == [25, 26, 27, 28, 29]


def without_last_pictures(data, n_left):
    """Empty all entries of an AVI file but the first ones; its header counts them still."""
    list_start = data.index(b"movi") - 8
    entry_start = list_start + 12
    entries = b""
    index = b""
    n_entries = 0
    while data[entry_start : entry_start + 4] == b"00dc":
        size = int.from_bytes(data[entry_start + 4 : entry_start + 8], "little")
        content = data[entry_start + 8 : entry_start + 8 + size] if n_entries < n_left else b""
        offset = 4 + len(entries)  # from "movi" on
        index += struct.pack("<4sIII", b"00dc", 0x10, offset, len(content))
        entries += struct.pack("<4sI", b"00dc", len(content)) + content + bytes(len(content) % 2)
        entry_start += 8 + size + size % 2
        n_entries += 1
    movie = struct.pack("<4sI4s", b"LIST", 4 + len(entries), b"movi") + entries
    head = data[8:list_start]
    riff = head + movie + struct.pack("<4sI", b"idx1", len(index)) + index
    return struct.pack("<4sI", b"RIFF", len(riff)) + riff


def test_a_film_whose_last_frames_were_dropped_is_whole(tmp_path):
    """The header of an AVI film counts 60 frames. Behind 45 pictures are 15 empty entries of dropped frames.

    It has 45 frames, and is not damaged.
    """
    film = encode(tmp_path / "a.avi", map(draw_number, range(60)), "mpeg4", options={"qscale": "2"})
    film.write_bytes(without_last_pictures(film.read_bytes(), n_left=45))

    assert probe(film).frames == 45
    assert probe(film).damage == ""


def test_a_film_that_lacks_the_empty_entries_of_its_last_frames_is_cut_off(tmp_path):
    """Of a film of 60 frames, the last 15 were dropped: the file should have an empty entry for each.

    The file was cut off behind the 45th picture, before the first empty entry. Nobody can tell whether these
    frames were dropped or lost, and the file is shorter than its header states: it counts as cut off.
    """
    film = encode(tmp_path / "a.avi", map(draw_number, range(60)), "mpeg4", options={"qscale": "2"})
    data = without_last_pictures(film.read_bytes(), n_left=45)
    empty_entry = b"00dc" + bytes(4)  # the name of an entry with pictures, and 0 as its length
    start_of_pictures = data.index(b"movi")
    first_empty_entry = data.index(empty_entry, start_of_pictures)
    film.write_bytes(data[:first_empty_entry])

    assert "cut off" in probe(film).damage


def test_a_pause_in_a_film_of_xvid_comes_where_the_empty_entries_are(tmp_path):
    """An AVI file has an entry for each 1/25 s; this one has 25 with pictures, 15 empty ones, and 35 more.

    XviD writes a picture that is decoded early, because others need it, into one entry with the picture
    before it ("packed"). So a decoder need hold nothing back: entry n is shown at n / 25 s. This holds for
    the pause, too, which must not be moved as for other codecs.
    """
    plain = encode(tmp_path / "plain.avi", map(draw_number, range(60)), "mpeg4", options={"bf": "2"})

    def pack_with_pause(packets):
        """Pack pictures as XviD does, and leave 15 entries empty behind the first 25."""
        packed = pack(packets)
        for packet in packed[25:]:
            packet.pts = packet.dts = packet.pts + 15
        return packed

    film = remux(plain, tmp_path / "packed.avi", pack_with_pause)

    frames = read_frames(film, uniform(probe(film).frames))

    entries_with_pictures = [*range(25), *range(25 + 15, 60 + 15)]
    np.testing.assert_allclose(frames.time_s, np.array(entries_with_pictures) / 25, atol=1e-6)
