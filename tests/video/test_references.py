"""AV1: which frames lead to a wanted one, and that all others can be left out."""

import re
from collections.abc import Iterator
from pathlib import Path

import av
import av.logging
import numpy as np
import pytest
from av.bitstream import BitStreamFilterContext
from hypothesis import given, settings
from hypothesis import strategies as st

from obygaze_features.video import at, av1, read_frames, uniform
from obygaze_features.video.av1 import FrameReferences
from obygaze_features.video.index import index_packets
from obygaze_features.video.source import opened
from obygaze_features.video.sparse import left_out, needed_frames, without
from tests.video.test_decoding import plainly

NO_PARSER = av.container.Flags.no_parse.value

# What encoders may do, as parameters of SVT-AV1.
KINDS = {
    "pyramid": "lp=1",
    "low delay": "lp=1:pred-struct=1",
    "film grain": "lp=1:film-grain=20",
    "screen": "lp=1:scm=1",
    "overlays": "lp=1:enable-overlays=1",
    "forward key frames": "lp=1:irefresh-type=1",
    "error resilience": "lp=1:pred-struct=1:rtc=1",
}


@pytest.fixture(scope="module")
def kinds(tmp_path_factory, encode_film) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("av1")
    return {
        kind: encode_film(
            folder / f"{number}.mkv",
            "libsvtav1",
            70,
            {"g": "40", "preset": "8", "crf": "30", "svtav1-params": parameters},
        )
        for number, (kind, parameters) in enumerate(KINDS.items())
    }


def traced(path: Path) -> list[dict[str, list[int]]]:
    """What FFmpeg's own parser reads in each frame's header, by the names of the specification."""
    av.logging.set_level(av.logging.TRACE)
    try:
        with av.open(str(path)) as container, av.logging.Capture() as lines:
            stream = container.streams.video[0]
            trace = BitStreamFilterContext("trace_headers", stream)
            for packet in container.demux(stream):
                trace.filter(packet if packet.size else None)
    finally:
        av.logging.set_level(None)
    frames: list[dict[str, list[int]]] = []
    for _, _, line in lines:
        match = re.search(r"\d+\s+(\w+)(?:\[\d+\])?\s+[01]+ = (\d+)", line)
        if match and match[1] == "show_existing_frame":
            frames.append({})
        if match and frames:
            frames[-1].setdefault(match[1], []).append(int(match[2]))
    return frames


def references(frames: list[dict[str, list[int]]]) -> Iterator[list[int]]:
    """The frames that each one refers to, by the process of reference frame updates (7.20, 7.21)."""
    slots, types = [-1] * 8, []
    for number, frame in enumerate(frames):
        if frame["show_existing_frame"][0]:
            shown = slots[frame["frame_to_show_map_idx"][0]]
            yield [shown]
            types.append(types[shown])
            if types[shown] == 0:
                slots = [number] * 8
            continue
        yield [slots[slot] for slot in frame.get("ref_frame_idx", [])]
        types.append(frame["frame_type"][0])
        [flags] = frame.get("refresh_frame_flags", [255])
        slots = [number if flags >> slot & 1 else before for slot, before in enumerate(slots)]


@pytest.mark.parametrize("kind", KINDS)
def test_references_are_those_that_ffmpegs_parser_reads(kinds, kind):
    table = index_packets(kinds[kind]).frames
    expected = [[*frame, *[-1] * (7 - len(frame))] for frame in references(traced(kinds[kind]))]
    assert table[:, 3:].tolist() == expected
    with av.open(str(kinds[kind])) as container:
        sizes = [packet.size for packet in container.demux(video=0) if packet.size]
    assert sorted(set(table[:, 0].tolist())) == list(range(len(sizes)))
    assert all(0 <= start < stop <= sizes[packet] for packet, start, stop in table[:, :3].tolist())


@pytest.mark.parametrize("kind", KINDS)
def test_any_frame_alone_is_bit_equal_to_that_of_decoding_everything(kinds, kind):
    reference = plainly(kinds[kind])
    for number in range(0, 70, 3):
        frames = read_frames(kinds[kind], at([number]))
        assert (frames.method, frames.why_sequential) == ("sparse", "")
        assert np.array_equal(frames.images[0], reference[number])
    frames = read_frames(kinds[kind], uniform(9))
    assert all(map(np.array_equal, frames.images, (reference[number] for number in frames.index)))


def referred(path: Path) -> np.ndarray:
    stream = FrameReferences()
    with av.open(str(path)) as container:
        for packet in container.demux(video=0):
            if packet.size:
                stream.add(bytes(packet))
    return stream.table()


@pytest.mark.parametrize("kind", KINDS)
def test_slots_are_followed_from_one_block_of_headers_to_the_next(kinds, kind, monkeypatch):
    whole = referred(kinds[kind])
    monkeypatch.setattr(av1, "BLOCK", 5)
    assert len(whole) >= 70
    assert np.array_equal(referred(kinds[kind]), whole)


KEY, INTER, INTRA, SHOWN_AGAIN = 0, 1, 2, -1
SLOT_NUMBERS = st.integers(0, 7)
FRAME = st.tuples(
    st.sampled_from([KEY, INTER, INTER, INTRA, SHOWN_AGAIN]),
    st.booleans(),
    st.integers(0, 255),
    st.lists(SLOT_NUMBERS, min_size=7, max_size=7),
)


def sequence_of(path: Path) -> tuple[bytes, av1.SequenceHeader]:
    """The unit with a film's sequence header, and what it says."""
    with av.open(str(path)) as container:
        first = bytes(next(container.demux(video=0)))
    units = np.column_stack(av1.units(np.frombuffer(first + b"\0", np.uint8), np.array([len(first)])))
    [(start, payload, stop)] = [span for _, kind, *span in units.tolist() if kind == av1.SEQUENCE_HEADER]
    return first[start:stop], av1.sequence_header(first[payload:stop])


def written(kind: int, shown: bool, refreshed: int, slots: list[int], sequence: av1.SequenceHeader) -> bytes:
    """A unit with the header of one frame, by 5.9.2."""
    if kind == SHOWN_AGAIN:
        bits = f"1{slots[0]:03b}"
    else:
        bits = f"0{kind:02b}" + ("1" if shown else "01")
        resets = kind == KEY and shown
        bits += ("" if resets else "0") + "0" + "0" * (sequence.screen_content == av1.SELECT) + "0"
        bits += "0" * sequence.order_hint_bits + "000" * (kind == INTER)
        bits += "" if resets else f"{refreshed:08b}"
        bits += "0" + "".join(f"{slot:03b}" for slot in slots) if kind == INTER else ""
    data = int(bits.ljust(64, "0"), 2).to_bytes(8, "big")
    return bytes([0x32, len(data)]) + data


@settings(deadline=None, max_examples=60)
@given(st.lists(FRAME, max_size=30), st.sampled_from([5, 4096]))
def test_references_follow_the_slots_through_any_frames(kinds, frames, block):
    data, sequence = sequence_of(kinds["pyramid"])
    frames = [(KEY, True, 255, [0] * 7), *frames, (KEY, True, 255, [0] * 7)]
    stream = FrameReferences()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(av1, "BLOCK", block)
        patch.setattr(av1, "MOST_KEYS_SHOWN_AGAIN", 100)
        for frame in frames:
            data += written(*frame, sequence)
            if frame[0] == SHOWN_AGAIN or frame[1]:
                stream.add(data)
                data = b""
    expected = references(
        [
            {"show_existing_frame": [kind == SHOWN_AGAIN], "frame_to_show_map_idx": slots[:1]}
            | {"frame_type": [kind], "refresh_frame_flags": [255 if kind == KEY and shown else refreshed]}
            | ({"ref_frame_idx": slots} if kind == INTER else {})
            for kind, shown, refreshed, slots in frames
        ]
    )
    assert stream.table()[:, 3:].tolist() == [[*own, *[-1] * (7 - len(own))] for own in expected]


def test_a_stream_that_shows_key_frames_again_and_again_is_decoded_whole(kinds, monkeypatch):
    header, sequence = sequence_of(kinds["pyramid"])
    hidden = written(KEY, False, 1, [0] * 7, sequence) + written(SHOWN_AGAIN, True, 0, [0] * 7, sequence)
    for most, rows in ((3, 4), (2, 0)):
        monkeypatch.setattr(av1, "MOST_KEYS_SHOWN_AGAIN", most)
        stream = FrameReferences()
        stream.add(header + hidden)
        stream.add(hidden)
        assert len(stream.table()) == rows


@pytest.mark.parametrize("suffix", ["mkv", "mp4"])
def test_the_parser_that_is_left_out_would_say_nothing_else_of_a_packet(kinds, tmp_path, suffix):
    for number, kind in enumerate(KINDS):
        path = kinds[kind]
        if suffix == "mp4":
            with av.open(str(path)) as film, av.open(str(tmp_path / f"{number}.mp4"), "w") as output:
                stream = output.add_stream_from_template(film.streams.video[0], opaque=True)
                for packet in film.demux(video=0):
                    if packet.size:
                        packet.stream = stream
                        output.mux(packet)
            path = tmp_path / f"{number}.mp4"
        with av.open(str(path)) as plainly, opened(path) as source:
            assert source.container.flags & NO_PARSER
            assert not plainly.flags & NO_PARSER
            assert facts(source.container) == facts(plainly)


def facts(container: av.container.InputContainer) -> list[tuple[object, ...]]:
    return [
        (packet.pts, packet.dts, packet.size, packet.duration, packet.is_keyframe, packet.is_discard)
        for packet in container.demux(video=0)
    ]


def test_of_a_pyramid_few_frames_lead_to_one(kinds):
    table = index_packets(kinds["pyramid"])
    coded = (table.frames[:, 0] <= 30).sum()
    assert needed_frames(table, [30]).sum() < coded / 1.5
    skipped, cuts = left_out(table, [30])
    assert not skipped[30]
    assert skipped[:31].sum() >= 10
    assert cuts  # a packet holds frames that are shown later


def test_streams_that_are_read_otherwise_are_decoded_whole():
    delimiter, sequence = b"\x12\x00", b"\x0a\x0b\x00\x00\x00\x04\x3c\xff\xbc\xff\xfb\xf9\x80"
    for odd in (b"", sequence, b"\x36\x00\x00" + sequence, b"\x32\x01\x10", b"\x0a\x01\x18"):
        stream = FrameReferences()
        stream.add(delimiter + odd)
        assert stream.table().shape == (0, 10)


@settings(deadline=None)
@given(st.lists(st.binary(max_size=60), max_size=4))
def test_no_bytes_upset_the_parser(packets):
    stream = FrameReferences()
    for data in packets:
        stream.add(data)
    assert len(stream.table()) <= sum(map(len, packets))


def test_ranges_are_cut_out_of_bytes():
    assert without(b"0123456789", [(0, 2), (4, 5), (5, 7)]) == b"23789"
