"""Files that state times of decoding as those of presentation: pictures come in the order of display."""

from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from obygaze_features.video import display_order, index, read_frames, uniform
from obygaze_features.video.display_order import number_frames
from tests.video.conftest import draw_number, read_drawn_numbers, remux, spoiled
from tests.video.encoding import encode
from tests.video.inserting import with_wrong_counter
from tests.video.joining import X264_OPTIONS, X265_OPTIONS, joined_byte_by_byte

CODECS = {"h264": {"options": X264_OPTIONS}, "hevc": {"codec": "libx265", "options": X265_OPTIONS}}


def state_times_of_decoding(packets):
    """State the times of decoding as those of presentation, as recorders do that do not know of B-frames."""
    first = packets[0].dts
    for packet in packets:
        packet.pts = packet.dts = packet.dts - first
    return packets


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    """Make films of pictures numbered from `first` on, whose stamps are times of decoding."""
    folder = tmp_path_factory.mktemp("recordings")

    def make(codec: str, suffix: str, first: int = 0) -> Path:
        film = folder / f"{codec}-{first}{suffix}"
        if not film.exists():
            right = with_right_times(folder / "right.mp4", codec, first)
            remux(right, film, state_times_of_decoding)
        return film

    return make


def with_right_times(path: Path, codec: str, first: int) -> Path:
    """Write a film of pictures numbered from `first` on, whose stamps are those of presentation."""
    numbers = range(first, first + 60)
    return encode(path, map(draw_number, numbers), times=numbers, **CODECS[codec])


def assert_sixty_pictures_in_order_of_display(film):
    frames = read_frames(film, uniform(60))
    assert read_drawn_numbers(frames.images) == list(range(60))
    assert (np.diff(frames.time_s) > 0).all()


@pytest.mark.parametrize("suffix", [".ts", ".mp4", ".mkv", ".flv"])
@pytest.mark.parametrize("codec", CODECS)
def test_pictures_of_a_film_that_states_times_of_decoding_are_in_the_order_of_display(
    recording, codec, suffix
):
    """A film has 60 pictures with the numbers 0 to 59 drawn on them, in the order in which they are shown.

    They are decoded in another order. The time stamps that should say when pictures are shown say when they
    are decoded, so that sorting by them would give a wrong order. Read, the pictures are 0 to 59 in order.
    """
    film = recording(codec, suffix)

    assert_sixty_pictures_in_order_of_display(film)


@pytest.mark.parametrize("codec", CODECS)
def test_a_packet_flagged_as_damaged_does_not_change_the_order(recording, tmp_path, codec):
    """Packets of a transport stream are counted; FFmpeg flags one whose counter is wrong as damaged.

    Its picture, and the other 59, are whole.
    """
    undamaged = recording(codec, ".ts").read_bytes()
    film = tmp_path / "film.ts"
    film.write_bytes(with_wrong_counter(undamaged, nth=31))

    assert_sixty_pictures_in_order_of_display(film)


@pytest.mark.parametrize(
    ("is_first_right", "is_second_right"),
    [(False, False), (True, False), (False, True)],
    ids=["neither", "the first", "the second"],
)
def test_pictures_of_joined_films_of_which_some_state_right_times_are_in_the_order_of_display(
    recording, tmp_path, is_first_right, is_second_right
):
    """Some films state in place of times of display those of decoding, which has another order.

    Two films of 60 pictures, numbered from 0 and from 100 on, are joined, of which neither or one states
    right times.
    """
    if is_first_right:
        first = with_right_times(tmp_path / "right-0.ts", "h264", first=0)
    else:
        first = recording("h264", ".ts", first=0)
    if is_second_right:
        second = with_right_times(tmp_path / "right-100.ts", "h264", first=100)
    else:
        second = recording("h264", ".ts", first=100)
    film = joined_byte_by_byte(tmp_path / "film.ts", [first, second])

    frames = read_frames(film, uniform(120))

    assert read_drawn_numbers(frames.images) == [*range(60), *range(100, 160)]


def test_a_span_has_its_own_pictures(recording):
    """Ten frames from 0.8 to 1.6 s of a film of 60 numbered pictures that states times of decoding."""
    film = recording("h264", ".ts")
    whole = read_frames(film, uniform(60))

    span = read_frames(film, uniform(10), start_s=0.8, end_s=1.6)

    assert read_drawn_numbers(span.images) == span.index.tolist()
    assert np.array_equal(span.time_s, whole.time_s[span.index])


@pytest.fixture
def beginning_seems_in_order(monkeypatch):
    """Let decoding learn only later that a film's pictures are reordered, as where a still is shown."""
    monkeypatch.setattr(index, "_tables", {})  # of films that were read before
    monkeypatch.setattr(index, "reorders", lambda *_: False)


def decode_one_by_one(monkeypatch):
    """Let no film be decoded sparsely: by seeking, and decoding what is needed alone."""
    monkeypatch.setattr(index, "_why_unsafe", lambda *_, **__: "switched off")


@pytest.mark.usefixtures("beginning_seems_in_order")
@pytest.mark.parametrize("is_sparse", [True, False], ids=["decoded sparsely", "decoded one by one"])
def test_pictures_reordered_later_on_are_in_the_order_of_display(recording, monkeypatch, is_sparse):
    """A film of 60 numbered pictures says of each when it is decoded, and not when it is shown.

    Its beginning looks as if both orders were one. Pictures must come in the order in which they are shown,
    whether all are decoded or only those around the needed ones ("sparsely").
    """
    if not is_sparse:
        decode_one_by_one(monkeypatch)

    assert_sixty_pictures_in_order_of_display(recording("hevc", ".ts"))


@pytest.mark.usefixtures("beginning_seems_in_order")
@pytest.mark.parametrize("start_s", [0.0, 1.6], ids=["from the beginning", "behind the error"])
def test_if_an_undecodable_picture_makes_later_pictures_get_too_low_a_number_a_note_says_so(
    recording, tmp_path, monkeypatch, start_s
):
    """Picture 31 of a film of 60 pictures, 25 a second, is damaged. Each picture has its number drawn on it.

    The film's time stamps are useless, so that all pictures are decoded and counted (`frames.index`). Before
    picture 31, the drawn number of a picture is the counted one. Behind it, up to picture 41, pictures may be
    torn. From 42 on, they are whole again. If no picture came out of the decoder for the damaged one, drawn
    numbers are one more than the counted ones there, and a note says that 59 of 60 can be decoded.
    """
    damaged_picture = 31
    first_whole_again = 42
    decode_one_by_one(monkeypatch)
    film = spoiled(recording("h264", ".mkv"), tmp_path / "film.mkv", [damaged_picture])

    frames = read_frames(film, uniform(20), start_s=start_s)

    drawn_numbers = np.array(read_drawn_numbers(frames.images))
    assert drawn_numbers.tolist() == sorted(drawn_numbers)
    is_before_damage = frames.index < damaged_picture
    assert np.array_equal(drawn_numbers[is_before_damage], frames.index[is_before_damage])
    is_behind_damage = drawn_numbers >= first_whole_again
    (n_lost,) = set((drawn_numbers - frames.index)[is_behind_damage].tolist())  # the same for all of them
    assert n_lost in (0, 1)
    if n_lost == 1:
        assert frames.status == "partial"
        assert any("59 of 60 frames can be decoded" in note for note in frames.notes)


@pytest.fixture
def reading_fails_behind_20_packets(monkeypatch):
    """Let probing the order of a film's pictures end with an error behind the first 20 packets."""
    number_packets = display_order.number_packets

    def fail_after_twenty(packets):
        yield from islice(number_packets(packets), 20)
        raise display_order.FFmpegError(code=1, message="damaged")

    monkeypatch.setattr(display_order, "number_packets", fail_after_twenty)


@pytest.mark.usefixtures("reading_fails_behind_20_packets")
def test_pictures_are_taken_for_reordered_if_damage_ends_the_probe_of_their_order(recording):
    """Whether a film's pictures are decoded in another order than shown is probed on its first packets.

    In this film of 60 pictures, of which only the first is a key picture, reading fails behind 20 packets.
    Pictures then count as reordered, and will be sorted. That does no harm to pictures that are in order, but
    reordered ones that are not sorted would be wrong.
    """
    film = recording("h264", ".ts")
    is_key_picture = np.zeros(60, bool)
    is_key_picture[0] = True

    assert display_order.reorders(film, is_key_picture)


class LabelledFrame:
    """A frame that a decoder gives out, labelled with the packet that it should be of."""

    def __init__(self, packet: int | None) -> None:
        self.pts = packet


@pytest.mark.parametrize(
    ("labels", "numbers"),
    [
        pytest.param([0, 1, 2, 3], [0, 1, 2, 3], id="in order"),
        pytest.param([0, 2, 3], [0, 2, 3], id="one missing: the others keep their numbers"),
        pytest.param([0, 2, 1, 4, 3], [0, 1, 2, 3, 4], id="a step back at the beginning"),
        pytest.param([0, 1, 2, 5, 3, 4], [0, 1, 2, 3, 4, 5], id="a step back later"),
        pytest.param([], [], id="none"),
    ],
)
def test_frames_have_the_numbers_of_their_packets_until_these_step_back(labels, numbers):
    """A decoder labels each frame with a packet. In this film, packet n is of picture n.

    A step back means that the labels are not in the order of display: all frames are then counted.
    """
    frames = [LabelledFrame(packet) for packet in labels]
    picture_of_packet = {packet: packet for packet in range(9)}

    numbered_frames = number_frames(frames, picture_of_packet, rising=True)

    assert [number for number, *_ in numbered_frames] == numbers


def test_frames_keep_the_numbers_of_their_packets_if_time_stamps_say_that_packets_are_reordered():
    """A film has three packets. By their time stamps packet 0 is shown first, then packet 2, then packet 1.

    Such stamps do not rise from packet to packet (`rising` is false), so they are no times of decoding and
    can be trusted. A decoder gives out the frames in this order, and labels each with its packet. That the
    label steps back from 2 to 1 is therefore right: each frame has the number that its packet has by the
    stamps, and is not counted.
    """
    frames = [LabelledFrame(packet=0), LabelledFrame(packet=2), LabelledFrame(packet=1)]
    picture_of_packet = {0: 0, 2: 1, 1: 2}

    numbered_frames = list(number_frames(frames, picture_of_packet, rising=False))

    assert [numbered.number for numbered in numbered_frames] == [0, 1, 2]
    assert not any(numbered.counted for numbered in numbered_frames)
