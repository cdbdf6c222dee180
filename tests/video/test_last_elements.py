"""Files that state no length, and end inside of an element: they were cut off while recorded or copied."""

import pytest

from obygaze_features.video import probe, read_frames, uniform
from obygaze_features.video.boxes import find_second_file
from obygaze_features.video.last_elements import ends_as_riff
from tests.video.conftest import draw_number, read_drawn_numbers
from tests.video.encoding import encode

FRAGMENTS = {"movflags": "frag_keyframe+empty_moov"}
RECORDINGS = {  # as cameras, browsers and servers write them, without knowing how long they will be
    "fragments.mp4": {"options": {"g": "6"}, "container_options": FRAGMENTS},
    "browser.webm": {"codec": "libvpx", "options": {"g": "6"}, "container_options": {"live": "1"}},
    "page.ogg": {"codec": "libvpx", "options": {"g": "6"}},
    "picture.gif": {"codec": "gif", "pix_fmt": "rgb8"},
}


@pytest.fixture(scope="module", params=RECORDINGS)
def recording(request, tmp_path_factory):
    """A film of 48 pictures, each with its number drawn in it."""
    path = tmp_path_factory.mktemp("recordings") / request.param
    return encode(path, map(draw_number, range(48)), **RECORDINGS[request.param])


def cut(recording, tmp_path, n_bytes):
    path = tmp_path / f"cut{recording.suffix}"
    path.write_bytes(recording.read_bytes()[:n_bytes])
    return path


def test_a_recording_that_ends_where_its_last_element_ends_is_whole(recording):
    """A film is a row of elements, as boxes of MP4, that state their lengths; the last one ends the file."""
    assert probe(recording).damage == ""
    assert read_frames(recording, uniform(8)).status == "ok"


@pytest.mark.parametrize("share", [0.5, 0.9])
def test_a_recording_that_is_cut_off_inside_of_an_element_is_partial(recording, tmp_path, share):
    """Of a film of 48 pictures, only a `share` of its bytes is left.

    Its header says nothing of what is missing, and FFmpeg reads the rest without an error.
    """
    n_bytes = int(share * recording.stat().st_size)
    cut_film = cut(recording, tmp_path, n_bytes)

    frames = read_frames(cut_film, uniform(4))

    assert frames.status == "partial"
    assert "cut off" in frames.notes[0]
    assert frames.total < 48
    assert "cut off" in probe(cut_film).damage


def test_a_span_before_the_cut_is_whole(recording, tmp_path):
    """A film of 48 pictures is cut through at nine tenths of its bytes, far behind its first half second."""
    cut_film = cut(recording, tmp_path, int(0.9 * recording.stat().st_size))

    frames = read_frames(cut_film, uniform(4), start_s=0.0, end_s=0.5, strict=True)

    assert frames.status == "ok"


@pytest.mark.parametrize("recording", ["fragments.mp4", "picture.gif"], indirect=True)
def test_a_recording_with_zeros_for_some_bytes_is_partial_where_ffmpeg_stops(recording, tmp_path):
    """Of a film of 48 pictures, a fifth of the bytes, from its middle on, is replaced with zeros.

    FFmpeg reads what is before the zeros, and stops there without an error.
    """
    data = recording.read_bytes()
    middle = len(data) // 2
    n_lost = len(data) // 5
    path = tmp_path / f"lost{recording.suffix}"
    path.write_bytes(data[:middle] + bytes(n_lost) + data[middle + n_lost :])

    frames = read_frames(path, uniform(4))

    assert frames.status == "partial"
    assert "what follows is not read" in frames.notes[0]
    assert frames.total < 48
    assert read_drawn_numbers(frames.images)[0] == 0


@pytest.mark.parametrize("tail", [bytes(500), b"<html>not found</html>" * 30], ids=["zeros", "text"])
def test_other_bytes_behind_a_whole_recording_do_no_harm(recording, tmp_path, tail):
    """A download may append a page or zeros to a film, which has all its pictures nevertheless."""
    film_with_tail = tmp_path / f"tail{recording.suffix}"
    film_with_tail.write_bytes(recording.read_bytes() + tail)

    assert probe(film_with_tail).damage == ""


def test_a_recording_whose_last_box_goes_to_its_end_is_whole(tmp_path):
    """An MP4 is a row of boxes, each with its size in 4 bytes before its type.

    The last one of this film, with its 12 pictures, states the size 0, which means "to the end of the file"
    (ISO/IEC 14496-12, 4.2).
    """
    film = encode(
        tmp_path / "a.mp4", map(draw_number, range(12)), options={"g": "12"}, container_options=FRAGMENTS
    )
    data = film.read_bytes()
    last_box = data.rindex(b"mdat") - 4
    index_of_fragments = data.rindex(b"mfra") - 4
    film_with_open_end = tmp_path / "open.mp4"
    film_with_open_end.write_bytes(data[:last_box] + bytes(4) + data[last_box + 4 : index_of_fragments])

    assert probe(film_with_open_end).frames == 12
    assert probe(film_with_open_end).damage == ""


@pytest.mark.parametrize(
    ("name", "index"), [("a.mp4", b"mfra"), ("a.mkv", b"\x1c\x53\xbb\x6b")], ids=["mp4", "matroska"]
)
def test_an_index_behind_the_pictures_may_be_cut_off(tmp_path, name, index):
    """A film of 12 pictures has an index at its end (`mfra` of MP4, Cues of Matroska), which is cut through.

    All pictures are before it, so none is missed.
    """
    options = FRAGMENTS if name.endswith(".mp4") else {}
    path = encode(tmp_path / name, map(draw_number, range(12)), container_options=options)
    middle_of_index = path.read_bytes().rindex(index) + 9

    cut_path = cut(path, tmp_path, middle_of_index)

    assert probe(cut_path).frames == 12
    assert probe(cut_path).damage == ""


def box(kind, content, *, is_large=False):
    """Make a box of MP4; a large one states its size in 8 bytes behind its type, as boxes of 4 GB do."""
    if not is_large:
        return (8 + len(content)).to_bytes(4, "big") + kind + content
    return (1).to_bytes(4, "big") + kind + (16 + len(content)).to_bytes(8, "big") + content


@pytest.mark.parametrize("is_large", [False, True], ids=["a head of 8 bytes", "a head of 16 bytes"])
def test_a_second_file_is_found_where_its_first_box_begins(tmp_path, is_large):
    """An MP4 is a row of boxes, of which the first has the type `ftyp`. Two files are joined here.

    A box has a head of 8 bytes or, if it is large, of 16; the second file begins with that head.
    """
    first_file = box(b"ftyp", b"isom0000") + box(b"moov", b"") + box(b"mdat", b"pictures")
    second_file = box(b"ftyp", b"isom0000", is_large=is_large) + box(b"moov", b"")
    film = tmp_path / "joined.mp4"
    film.write_bytes(first_file + second_file)

    start_of_second_file = find_second_file(film, ["mov", "mp4"], [])

    assert start_of_second_file == len(first_file)


@pytest.mark.parametrize(
    ("stated_size", "is_whole"), [(4, True), (5, False), (0, False)], ids=["whole", "cut off", "not finished"]
)
def test_an_avi_is_whole_if_it_has_the_bytes_that_its_chunk_states(tmp_path, stated_size, is_whole):
    """An AVI file begins with "RIFF" and the number of bytes that follow, which are the four of "AVI ".

    A recording that was not finished states 0, as its number was to be written at the end.
    """
    film = tmp_path / "film.avi"
    film.write_bytes(b"RIFF" + stated_size.to_bytes(4, "little") + b"AVI ")

    assert ends_as_riff(film) == is_whole
