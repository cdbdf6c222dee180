"""Every fact that a file states of its pictures is used, noted, refused or listed: read from pixels."""

import json
import re
import struct
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import get_args

import av
import numpy as np
import pytest
from av.bitstream import BitStreamFilterContext
from av.packet import PktSideDataT
from av.sidedata.sidedata import Type
from av.stream import Disposition
from click.testing import CliRunner

from obygaze.cli import root_command
from obygaze_features.errors import VideoError
from obygaze_features.manifest import import_folder
from obygaze_features.store import same_numerics
from obygaze_features.video import (
    at,
    decoder_versions,
    file_digest,
    find_shots,
    probe,
    read_frames,
    uniform,
)
from obygaze_features.video.file_facts import is_here
from obygaze_features.video.sound import SoundTrack
from obygaze_features.video.stream import DISPOSITIONS, FATES, FRAMES, PACKETS, STREAMS
from tests.video.conftest import draw_number, read_drawn_numbers, remux, spoiled
from tests.video.encoding import encode
from tests.video.inserting import crc32
from tests.video.joining import VPX_OPTIONS, X264_OPTIONS, joined_byte_by_byte
from tests.video.sounding import tone, write_film


@pytest.mark.parametrize(
    ("table", "kinds_of_pyav"),
    [
        (PACKETS, set(get_args(PktSideDataT))),
        (FRAMES, {kind.name for kind in Type}),
        (DISPOSITIONS, {disposition.name for disposition in Disposition}),
    ],
    ids=["packets", "frames", "dispositions"],
)
def test_every_kind_of_side_data_that_pyav_names_is_handled(table, kinds_of_pyav):
    """Side data are what a file says besides its pictures; a kind that is new in PyAV fails here."""
    assert set(table) == kinds_of_pyav


def test_side_data_of_streams_are_treated_as_a_kind_of_side_data_of_packets():
    """The table of streams names, for each kind, the kind of packets by which it is treated."""
    for kind_of_packets in STREAMS.values():
        assert kind_of_packets in PACKETS


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("packets", id="side data of packets"),
        pytest.param("frames", id="side data of decoded frames"),
        pytest.param("dispositions", id="dispositions of streams, such as default or karaoke"),
        pytest.param("pictures", id="facts of single pictures"),
    ],
)
def test_each_fact_that_a_file_may_state_is_in_one_group_of_the_table_of_fates_alone(kind):
    """The table `fates.toml` says what is done with each fact that a video file may state of its pictures.

    It has four treatments. Facts are used; listed, if they change no picture; refused, so that the file is
    not read; or noted, in a sentence for the user. Each treatment has groups of facts. A fact in two groups
    would have two treatments or sentences, of which one would be lost.
    """
    facts = []
    for treatment in ("used", "listed", "refused", "noted"):
        for group in FATES[treatment]:
            facts += group.get(kind, [])

    assert facts
    assert len(facts) == len(set(facts))


@pytest.mark.parametrize(
    ("treatment", "has_sentence"),
    [("used", False), ("listed", False), ("refused", True), ("noted", True)],
)
def test_only_facts_that_are_refused_or_noted_have_a_sentence_for_the_user(treatment, has_sentence):
    """The table `fates.toml` has the facts that a video file may state of its pictures, in groups.

    A group of facts that make the file unreadable (refused), or may make its pictures wrong (noted), has the
    sentence that tells the user. Facts that are used, or merely listed, have none: nothing is wrong there.
    """
    for group_of_facts in FATES[treatment]:
        assert ("sentence" in group_of_facts) == has_sentence


BOXES_AROUND_ENTRY = (b"moov", b"trak", b"mdia", b"minf", b"stbl", b"stsd")
"""Boxes of an MP4 around the description of a track's samples, from the outer to the inner one."""
SIZE_BEFORE_INNER_BOXES = {b"stsd": 16}
"""Bytes of a box before the first one inside it, where these are not 8 (size and name)."""


def boxes_to(data: bytes, entry: bytes) -> list[int]:
    """Find the places of the boxes from moov down to the one entry of a description; of the first track."""
    places = []
    place = 0
    for name in (*BOXES_AROUND_ENTRY, entry):
        while data[place + 4 : place + 8] != name:
            place += size_of_box(data, place)
            assert place < len(data)
        places.append(place)
        place += SIZE_BEFORE_INNER_BOXES.get(name, 8)
    return places


def size_of_box(data: bytes, place: int) -> int:
    """Return the size of a box, which its first four bytes state."""
    return int.from_bytes(data[place : place + 4], "big")


def with_box(path: Path, target: Path, entry: bytes, box: bytes) -> Path:
    """Copy a film whose index is at its end, with a box behind the description of its pictures (`entry`)."""
    data = bytearray(path.read_bytes())
    assert data.index(b"mdat") < data.index(b"moov")
    places = boxes_to(data, entry)
    end_of_entry = places[-1] + size_of_box(data, places[-1])
    for place in places:
        larger = size_of_box(data, place) + len(box)
        data[place : place + 4] = larger.to_bytes(4, "big")
    data[end_of_entry:end_of_entry] = box
    target.write_bytes(data)
    return target


def box(kind: bytes, content: bytes) -> bytes:
    """Make a box of MP4: its size, its type and its content."""
    return (8 + len(content)).to_bytes(4, "big") + kind + content


BT709 = 1
UNSPECIFIED = 2
BT601_OF_PAL = 5
BT601_OF_NTSC = 6
BT2020 = 9
PQ = 16
"""Numbers of matrices, transfer characteristics and primaries in H.273."""


def colour_box(primaries: int, transfer: int, matrix: int, *, full_range: bool = False) -> bytes:
    """Make a box that states colours (ISO/IEC 14496-12, 12.1.5)."""
    tags = b"".join(tag.to_bytes(2, "big") for tag in (primaries, transfer, matrix))
    range_flag = b"\x80" if full_range else b"\0"
    return box(b"colr", b"nclx" + tags + range_flag)


def clean_aperture_box(width: int, height: int, right: int, down: int) -> bytes:
    """Make a box that crops pictures to a size whose centre lies to the right and down of theirs (12.1.4)."""
    content = b""
    for numerator in (width, height, right, down):
        denominator = 1
        content += struct.pack(">2i", numerator, denominator)
    return box(b"clap", content)


QUIET_X265 = {"preset": "ultrafast", "x265-params": "log-level=none:pools=none"}


@pytest.fixture(scope="module")
def plain(tmp_path_factory) -> Path:
    """A film of twelve pictures of 96 x 64 pixels in H.264 and MP4, which states nothing special."""
    folder = tmp_path_factory.mktemp("plain")
    return encode(folder / "plain.mp4", map(draw_number, range(12)), options=X264_OPTIONS)


def test_a_crop_that_the_container_states_is_applied(plain, tmp_path):
    """The middle of what remains, 64 x 40 of 96 x 64 pixels, lies 4 pixels to the right and 6 above.

    So of the 32 columns that go, 16 + 4 are at the left, and of the 24 rows, 12 - 6 are at the top.
    """
    crop = clean_aperture_box(width=64, height=40, right=4, down=-6)
    film_with_crop = with_box(plain, tmp_path / "crop.mp4", b"avc1", crop)

    cropped_frames = read_frames(film_with_crop, at([0, 5]))
    whole_frames = read_frames(plain, at([0, 5]))

    top, bottom, left, right = 6, 18, 20, 12
    assert cropped_frames.stream["crop"] == [top, bottom, left, right]
    for cropped, whole in zip(cropped_frames.images, whole_frames.images, strict=True):
        assert np.array_equal(cropped, whole[6 : 6 + 40, 20 : 20 + 64])


def with_matrix(path: Path, target: Path, matrix: tuple[int, int, int, int]) -> Path:
    """Copy a film, and write a matrix that turns its pictures into the header of its track (14496-12, 8.3.2).

    The matrix is [[a, b], [c, d]] in numbers of which 65536 is 1.
    """
    data = bytearray(path.read_bytes())
    a, b, c, d = matrix
    one = 1 << 30  # in the last column, whose numbers have other units
    rows = struct.pack(">9i", a, b, 0, c, d, 0, 0, 0, one)
    # Behind the box's name: version (4 bytes), times, track and duration (20), and 16 of other fields.
    start = data.index(b"tkhd") + 4 + 4 + 20 + 16
    data[start : start + len(rows)] = rows
    target.write_bytes(data)
    return target


@pytest.mark.parametrize(
    ("matrix", "rotation", "is_noted"),
    [((7, 65536, -65536, 7), 90, False), ((60000, 25000, -25000, 60000), 0, True)],
    ids=["nearly a quarter: 7 is a rounding error of 0", "about 23 degrees"],
)
def test_a_quarter_turn_is_made_and_an_oblique_one_is_noted(plain, tmp_path, matrix, rotation, is_noted):
    """The matrix of a quarter turn is (0, 65536, -65536, 0); other turns would need new pixels."""
    film = with_matrix(plain, tmp_path / "turned.mp4", matrix)

    frames = read_frames(film, uniform(1))

    assert frames.rotation == rotation
    has_note = any("oblique" in note for note in frames.notes)
    assert has_note == is_noted


def filtered(film: Path, target: Path, bitstream_filter: str) -> Path:
    """Copy a film through a filter of FFmpeg that edits its packets."""
    with av.open(str(film)) as source, av.open(str(target), "w") as output:
        stream = output.add_stream_from_template(source.streams.video[0])
        context = BitStreamFilterContext(bitstream_filter, source.streams.video[0], stream)
        for packet in source.demux(video=0):
            if not packet.size:
                continue
            for edited in context.filter(packet):
                edited.stream = stream
                output.mux(edited)
    return target


@pytest.mark.parametrize(("codec", "metadata"), [("libx264", "h264_metadata"), ("libx265", "hevc_metadata")])
@pytest.mark.parametrize("left", [2, 40])
def test_a_crop_in_the_settings_of_the_codec_is_exact(tmp_path, codec, metadata, left):
    """The settings leave out columns at the left, two or forty, and four rows at the bottom."""
    # Without pictures that refer to later ones, whose order x265's threads decide.
    options = {"preset": "ultrafast", "bf": "0"}
    film = encode(tmp_path / "a.mkv", [draw_number(5)] * 2, codec, options=options)
    film_with_crop = filtered(film, tmp_path / "cropped.ts", f"{metadata}=crop_left={left}:crop_bottom=4")

    (whole,) = read_frames(film, at([1])).images
    (cropped,) = read_frames(film_with_crop, at([1])).images

    assert np.array_equal(cropped, whole[:-4, left:])


def test_a_turn_that_a_picture_states_by_itself_is_noted(plain, tmp_path):
    """A message in the stream of H.264 says that players must turn the picture; the container does not."""
    turn = "h264_metadata=display_orientation=insert:rotate=-90"
    film = filtered(plain, tmp_path / "turned.mkv", turn)

    notes = read_frames(film, at([5])).notes

    assert any("turn" in note for note in notes)


def test_what_the_stream_and_its_pictures_both_state_is_noted_once(tmp_path):
    """Pictures say that they are stereoscopic, with the two views side by side, and the file says it too.

    H.264 has the number 3 for that, and MP4 the number 2 in a box of four zeros and a byte.
    """
    pictures_say_side_by_side = {"x264-params": "frame-packing=3"}
    stream_says_side_by_side = box(b"st3d", bytes(4) + b"\x02")
    film = encode(
        tmp_path / "a.mp4", [draw_number(255)] * 3, options=X264_OPTIONS | pictures_say_side_by_side
    )
    film = with_box(film, tmp_path / "b.mp4", b"avc1", stream_says_side_by_side)

    notes = read_frames(film, uniform(2)).notes

    assert notes == ("stereoscopic: the pictures are given as stored",)


def dolby_vision_box(profile: int, base_layer: int) -> bytes:
    """Make a box that states a profile of Dolby Vision, and what its base layer is; 0: no film of its own."""
    return box(b"dvcC", bytes([1, 0, profile << 1, 1 << 3 | 0b101, base_layer << 4]) + bytes(19))


@pytest.fixture(scope="module")
def ten_bit_hevc(tmp_path_factory) -> Path:
    """Four pictures of ten bits in HEVC."""
    return encode(
        tmp_path_factory.mktemp("hevc") / "a.mp4",
        map(draw_number, range(4)),
        "libx265",
        pix_fmt="yuv420p10le",
        options=QUIET_X265,
        codec_tag="hvc1",
    )


@pytest.mark.parametrize("profile", [5, 10])
def test_dolby_vision_without_a_base_layer_of_its_own_is_refused(ten_bit_hevc, tmp_path, profile):
    """The film is HEVC of ten bits whose container says that it is Dolby Vision of profile 5 or 10.

    With a base layer, an ordinary decoder shows usual colours. Here there is none: the pictures are in
    colours that only Dolby's own decoder can show.
    """
    no_base_layer = dolby_vision_box(profile, base_layer=0)
    film = with_box(ten_bit_hevc, tmp_path / "dv.mp4", b"hvc1", no_base_layer)

    with pytest.raises(VideoError, match="Dolby Vision"):
        read_frames(film, uniform(1))


def test_dolby_vision_is_known_by_its_tag_alone(ten_bit_hevc, tmp_path):
    """The tag of the codec is dvh1, in place of hvc1 of ordinary HEVC."""
    film = tmp_path / "named.mp4"
    film.write_bytes(ten_bit_hevc.read_bytes().replace(b"hvc1", b"dvh1"))

    with pytest.raises(VideoError, match="Dolby Vision"):
        probe(film)


def test_the_base_layer_of_dolby_vision_is_read_and_noted(ten_bit_hevc, tmp_path):
    """Profile 8 has a base layer that any decoder can show, here of pictures 0 to 3."""
    with_base_layer = dolby_vision_box(profile=8, base_layer=1)
    film = with_box(ten_bit_hevc, tmp_path / "dv.mp4", b"hvc1", with_base_layer)

    frames = read_frames(film, at([0, 1, 2, 3]))

    assert read_drawn_numbers(frames.images) == [0, 1, 2, 3]
    assert any("Dolby Vision" in note for note in frames.notes)


def encryption_by(key: int) -> dict[str, str]:
    """The options of FFmpeg's MP4 muxer that encrypt a film by a key."""
    return {
        "encryption_scheme": "cenc-aes-ctr",
        "encryption_key": f"{key:032x}",
        "encryption_kid": "0" * 32,
    }


def assert_encrypted(path: Path) -> None:
    """Assert that reading and probing a film are refused because it is encrypted."""
    with pytest.raises(VideoError, match="encrypted"):
        read_frames(path, uniform(2))
    with pytest.raises(VideoError, match="encrypted"):
        probe(path)


TRANSPORT_PACKET = 188
"""Bytes of a packet of a transport stream."""


def with_scrambled_pictures(film: bytes, first_packet: int = 0) -> bytearray:
    """Scramble the pictures of a transport stream from a packet on, and mark these packets as scrambled."""
    data = bytearray(film)
    marked_as_scrambled = 0x80
    any_key = 0x5A
    for start in range(first_packet * TRANSPORT_PACKET, len(data), TRANSPORT_PACKET):
        high_bits_of_pid = data[start + 1] & 0x1F
        if high_bits_of_pid == 1:  # the PID of pictures is 256
            data[start + 3] |= marked_as_scrambled
            # What is before byte 40 may be headers of the packet, which stay clear.
            payload = slice(start + 40, start + TRANSPORT_PACKET)
            data[payload] = bytes(byte ^ any_key for byte in data[payload])
    return data


@pytest.mark.parametrize("key", [0, 20])
def test_a_film_with_encrypted_pictures_is_refused_by_any_key(plain, tmp_path, key):
    """Two keys are tried: the pictures are other noise by each, of which a decoder may make something."""
    film = remux(plain, tmp_path / "secret.mp4", edit=list, **encryption_by(key))

    assert_encrypted(film)


@pytest.mark.parametrize("bytes_before_packet", [b"", bytes(4)], ids=["transport stream", "Blu-ray"])
def test_a_scrambled_transport_stream_is_refused_as_encrypted(tmp_path, bytes_before_packet):
    """Packets have 188 bytes; those of a Blu-ray have four bytes before them."""
    clear = encode(tmp_path / "a.ts", map(draw_number, range(12)), options=X264_OPTIONS).read_bytes()
    scrambled = with_scrambled_pictures(clear)
    data = b""
    for start in range(0, len(scrambled), 188):
        data += bytes_before_packet + scrambled[start : start + 188]
    film = tmp_path / "secret.m2ts"
    film.write_bytes(data)

    assert_encrypted(film)


def test_a_recording_scrambled_from_its_middle_on_is_partial(tmp_path):
    """Broadcasters scramble (encrypt) recordings, here one from the middle of the file on.

    Decoding ends there, and encryption is named as the damage. Small files are searched for the mark of
    scrambling as a whole; this one has more than 3 MiB, so that the mark must be found behind the pictures.
    """
    noise = np.random.default_rng(0).integers(0, 255, (60, 192, 256, 3), np.uint8)
    film = encode(tmp_path / "a.ts", noise, options=X264_OPTIONS | {"crf": "4"})
    unscrambled = film.read_bytes()
    assert len(unscrambled) > 3 * 2**20
    n_packets = len(unscrambled) // TRANSPORT_PACKET
    film.write_bytes(with_scrambled_pictures(unscrambled, first_packet=n_packets // 2))

    assert read_frames(film, uniform(2)).status == "partial"
    assert "encrypted" in probe(film).damage


MAP_PID = 0x1000
"""The number of packets that FFmpeg gives to the map of its programme."""


def set_type_of_pictures(data: bytearray, stream_type: int) -> None:
    """Let the map of the programme of a transport stream (13818-1, 2.4.4.8) give its pictures a type.

    A map has, behind its table's number (1 byte) and its length (2), 9 bytes, and then the first stream,
    which begins with its type; its last 4 bytes are a checksum.
    """
    for packet in range(0, len(data), TRANSPORT_PACKET):
        pid = int.from_bytes(data[packet + 1 : packet + 3], "big") & 0x1FFF
        if pid != MAP_PID:
            continue
        section = packet + 5  # behind the packet's header (4 bytes) and a pointer
        length = int.from_bytes(data[section + 1 : section + 3], "big") & 0xFFF
        end = section + 3 + length
        checksum = end - 4
        data[section + 12] = stream_type
        data[checksum:end] = crc32(data[section:checksum])


def test_a_transport_stream_whose_pictures_are_of_an_encrypted_type_is_refused(tmp_path):
    """HTTP Live Streaming encrypts parts of packets alone; a type of its own, 0xDB, says so."""
    h264_of_sample_aes = 0xDB
    film = encode(tmp_path / "a.ts", map(draw_number, range(12)), options=X264_OPTIONS)
    data = bytearray(film.read_bytes())
    set_type_of_pictures(data, h264_of_sample_aes)
    film.write_bytes(data)

    with pytest.raises(VideoError, match="encrypted"):
        read_frames(film, uniform(2))


CONTENT_ENCRYPTION = bytes.fromhex("14E68A292226174CB935DAE07EE9289C")
"""The object of an ASF header that says how the content is encrypted, as its GUID is written."""


def add_to_asf_header(data: bytearray, guid: bytes, content: bytes) -> None:
    """Add an object to the header of an ASF file.

    The header has a GUID (16 bytes), its size (8), the number of its objects (4), 2 other bytes, and the
    objects: each has a GUID, its size and its content.
    """
    size_at, n_objects_at = slice(16, 24), slice(24, 28)
    header_size = int.from_bytes(data[size_at], "little")
    n_objects = int.from_bytes(data[n_objects_at], "little")
    object_size = len(guid) + 8 + len(content)
    new_object = guid + object_size.to_bytes(8, "little") + content
    data[header_size:header_size] = new_object
    data[size_at] = (header_size + object_size).to_bytes(8, "little")
    data[n_objects_at] = (n_objects + 1).to_bytes(4, "little")


def test_a_windows_media_file_whose_header_says_that_it_is_encrypted_is_refused(tmp_path):
    """The header gets an object on encryption: a text behind its length in bytes, 4."""
    film = encode(tmp_path / "a.wmv", map(draw_number, range(4)), "wmv2")
    data = bytearray(film.read_bytes())
    length = (4).to_bytes(4, "little")
    add_to_asf_header(data, CONTENT_ENCRYPTION, length + b"<W>\0")
    film.write_bytes(data)

    with pytest.raises(VideoError, match="encrypted"):
        probe(film)


def say_that_pictures_are_clear(path: Path) -> None:
    """Rename the boxes of the first track, that of the pictures, that say that it is encrypted."""
    data = path.read_bytes()
    for kind, clear in ((b"encv", b"avc1"), (b"sinf", b"free"), (b"senc", b"free")):
        data = data.replace(kind, clear, 1)
    path.write_bytes(data)


def test_encrypted_sound_is_refused_beside_clear_pictures(tmp_path):
    """Pictures and sound are encrypted, and the pictures are then declared to be clear.

    The film has 50 pictures in two seconds.
    """
    clear_film = write_film(tmp_path / "a.mp4", {"eng": tone(hz=440, seconds=2)}, seconds=2)
    film = remux(clear_film, tmp_path / "secret.mp4", list, ("video", "audio"), **encryption_by(key=0))
    say_that_pictures_are_clear(film)

    assert probe(film).frames == 50
    with pytest.raises(VideoError, match="sound is encrypted"):
        SoundTrack(film)


def test_a_transport_stream_that_lost_a_byte_is_not_taken_for_a_scrambled_one(tmp_path):
    """A lost byte shifts the packets behind it. Then their marks of scrambling are read at wrong places.

    More than 25 of the 30 pictures can be read all the same.
    """
    whole = encode(tmp_path / "a.ts", map(draw_number, range(30)), options=X264_OPTIONS).read_bytes()
    without_byte_9000 = whole[:9000] + whole[9001:]
    film = tmp_path / "torn.ts"
    film.write_bytes(without_byte_9000)

    assert probe(film).frames > 25


@dataclass(frozen=True)
class Disc:
    """A folder VIDEO_TS with two files of one title, and the bytes of its film of forty pictures."""

    folder: Path
    film: bytes


@pytest.fixture
def dvd(tmp_path) -> Disc:
    """A DVD whose first title lies in two files."""
    path = encode(
        tmp_path / "film.vob", map(draw_number, range(40)), "mpeg2video", options={"g": "9", "bf": "2"}
    )
    film = path.read_bytes()
    folder = tmp_path / "VIDEO_TS"
    folder.mkdir()
    (folder / "VTS_01_1.VOB").write_bytes(film[:6144])
    (folder / "VTS_01_2.VOB").write_bytes(film[6144:])
    return Disc(folder, film)


@pytest.mark.parametrize("place", [".", "VTS_01_1.VOB"], ids=["the folder", "its first file"])
def test_the_files_of_a_dvds_title_are_read_and_digested_as_one_film(dvd, place):
    """The title of 40 pictures lies in two files; the cut between them is within a picture."""
    path = dvd.folder / place

    frames = read_frames(path, at(range(40)))

    assert frames.status == "ok"
    assert read_drawn_numbers(frames.images) == list(range(40))
    assert file_digest(path) == sha256(dvd.film).hexdigest()
    assert is_here(path)


def test_a_title_is_imported_as_one_clip(dvd):
    """The title lies in the files VTS_01_1.VOB and VTS_01_2.VOB; its clip is named by the first."""
    manifest = import_folder(dvd.folder, dvd.folder).manifest

    assert [clip.video for clip in manifest] == ["VTS_01_1.VOB"]


@pytest.mark.parametrize("place", ["..", "../VTS_01_1.VOB"], ids=["no disc", "no file"])
def test_a_folder_that_is_no_disc_and_a_file_that_is_absent_are_not_films(dvd, place):
    """The folder above that of the disc has no VOB files."""
    path = (dvd.folder / place).resolve()

    assert not is_here(path)


@pytest.mark.parametrize(
    ("added_file", "reason"),
    [("VTS_01_4.VOB", "missing"), ("VTS_02_1.VOB", "2 titles")],
    ids=["files 1, 2 and 4 of a title", "a second title"],
)
def test_a_disc_of_which_it_is_not_clear_what_the_film_is_is_refused(dvd, added_file, reason):
    """The disc has files 1 and 2 of title 01."""
    (dvd.folder / added_file).write_bytes(dvd.film)

    with pytest.raises(VideoError, match=reason):
        probe(dvd.folder)


def test_an_encrypted_disc_is_refused_as_encrypted(tmp_path):
    """A packet of a disc has a start code (4 bytes), a length (2) and flags, two of which mark scrambling."""
    film = encode(tmp_path / "film.vob", map(draw_number, range(12)), "mpeg2video")
    flags_of_clear_pictures = re.compile(rb"(?<=\x00\x00\x01\xe0..)[\x80-\x8f]", re.DOTALL)
    flags_of_scrambled_pictures = b"\x90"
    scrambled = flags_of_clear_pictures.sub(flags_of_scrambled_pictures, film.read_bytes())
    film.write_bytes(scrambled)

    with pytest.raises(VideoError, match="encrypted"):
        probe(film)


OPAQUE = np.dstack([draw_number(3), np.full((64, 96), 255, np.uint8)])
"""Picture number 3 with an alpha channel."""
HALF_TRANSPARENT = OPAQUE.copy()
"""The picture whose lower left quarter is transparent."""
HALF_TRANSPARENT[32:, :48, 3] = 0


@pytest.mark.parametrize(
    ("name", "codec", "pixels"),
    [
        ("a.mov", "png", "rgba"),
        ("a.mov", "qtrle", "argb"),
        ("a.mkv", "ffv1", "bgra"),
        ("a.mkv", "ffv1", "yuva420p"),
        ("a.mov", "prores_ks", "yuva444p10le"),
        ("a.avi", "utvideo", "gbrap"),
    ],
    ids=["png", "qtrle", "ffv1 in RGB", "ffv1 in YUV", "prores", "utvideo"],
)
def test_transparent_pictures_lie_over_white_as_stills_do(tmp_path, name, codec, pixels):
    """Picture number 3, of 96 x 64 pixels, is encoded with its lower left quarter transparent.

    That quarter becomes white, and the rest, whose upper half holds the number, stays. Codecs lose a little:
    2 of 255 levels of white, and less than 6 in the mean elsewhere.
    """
    rgba = av.VideoFrame.from_ndarray(HALF_TRANSPARENT, format="rgba")
    film = encode(tmp_path / name, [rgba.reformat(format=pixels)] * 3, codec, pix_fmt=pixels)

    frames = read_frames(film, uniform(1))

    (image,) = frames.images
    # Each region ends four pixels before the border between what is transparent and what is not.
    transparent_region = np.s_[36:60, 4:44]
    opaque_region = np.s_[36:60, 56:92]
    assert image[transparent_region].min() >= 253
    difference = image[opaque_region].astype(int) - OPAQUE[opaque_region][..., :3]
    assert np.abs(difference).mean() < 6
    assert read_drawn_numbers([image]) == [3]

    assert any("white" in note for note in frames.notes)
    assert frames.stream["alpha"] is True


def test_the_fourth_byte_of_a_pixel_in_avi_is_no_alpha(tmp_path):
    """Windows' uncompressed pixels have four bytes: blue, green, red, and one that means nothing.

    In a quarter of this picture it is 0. If it were transparency (alpha), that quarter would become white,
    and a note would say so.
    """
    bgra = av.VideoFrame.from_ndarray(HALF_TRANSPARENT, format="rgba").reformat(format="bgra")
    film = encode(tmp_path / "a.avi", [bgra] * 2, "rawvideo", pix_fmt="bgra")
    bi_rgb = b"\0\0\0\0"  # the code of Windows for pixels whose fourth byte means nothing
    film.write_bytes(film.read_bytes().replace(b"BGRA", bi_rgb))

    frames = read_frames(film, uniform(1))

    red_green_blue = OPAQUE[..., :3]
    assert np.array_equal(frames.images[0], red_green_blue)
    assert frames.notes == ()
    assert len(find_shots(film)) == 1


def test_opaque_pictures_with_an_alpha_channel_have_no_note(tmp_path):
    """The alpha of every pixel is 255: nothing lies under the picture that would have to be chosen."""
    opaque = av.VideoFrame.from_ndarray(OPAQUE, format="rgba")
    film = encode(tmp_path / "a.mov", [opaque] * 2, "png", pix_fmt="rgba")

    frames = read_frames(film, uniform(1))

    red_green_blue = OPAQUE[..., :3]
    assert np.array_equal(frames.images[0], red_green_blue)
    assert frames.notes == ()


def test_a_second_video_stream_is_noted(tmp_path):
    """The film has two streams of the same four pictures; one is read, and the other is counted."""
    film = tmp_path / "two.mkv"
    with av.open(str(film), "w") as output:
        streams = [output.add_stream("libx264", rate=25, options=X264_OPTIONS) for _ in range(2)]
        for stream in streams:
            stream.width = 96
            stream.height = 64
            stream.pix_fmt = "yuv420p"
        for number in range(4):
            for stream in streams:
                output.mux(stream.encode(av.VideoFrame.from_ndarray(draw_number(number))))
        for stream in streams:
            output.mux(stream.encode(None))

    frames = read_frames(film, uniform(2))

    assert any("more video streams" in note for note in frames.notes)
    assert frames.stream["other_streams"] == 1


def film_without_its_first(n_lost: int, path: Path) -> Path:
    """Make a film of 24 pictures, of which the first ones cannot be decoded."""
    film = encode(path, map(draw_number, range(24)), "mjpeg", pix_fmt="yuvj420p")
    return spoiled(film, film, range(n_lost))


def test_a_clip_that_lost_a_quarter_of_its_frames_is_partial(tmp_path):
    """Pictures 0 to 5 of 24 cannot be decoded."""
    film = film_without_its_first(n_lost=6, path=tmp_path / "a.mkv")

    frames = read_frames(film, uniform(8))

    assert frames.status == "partial"
    number_of_last_frame = read_drawn_numbers(frames.images)[-1]
    assert number_of_last_frame > 6


def test_of_a_clip_that_lost_more_than_half_only_frames_asked_for_by_number_are_read(tmp_path):
    """Pictures 0 to 13 of 24 cannot be decoded.

    AVI states no reliable times: its frames are counted from the first that can be decoded, picture 14.
    """
    matroska = film_without_its_first(n_lost=14, path=tmp_path / "a.mkv")
    avi = film_without_its_first(n_lost=14, path=tmp_path / "a.avi")

    for film in (matroska, avi):
        with pytest.raises(VideoError, match="half"):
            read_frames(film, uniform(8))
    frames_of_matroska = read_frames(matroska, at([20, 23]))
    frames_of_avi = read_frames(avi, at([5, 6]))

    assert read_drawn_numbers(frames_of_matroska.images) == [20, 23]
    assert read_drawn_numbers(frames_of_avi.images) == [19, 20]  # 14 + 5 and 14 + 6


def test_the_command_frames_describes_the_stream_in_its_json(plain):
    """The fixture `plain` is the path of a film in H.264 about which nothing is unusual."""
    result = CliRunner().invoke(root_command(), ["frames", str(plain), "--n", "2", "--json"])

    stream = json.loads(result.output)["stream"]
    assert stream["codec"] == "h264"
    assert stream["pixels"] == "yuv420p"


def test_a_title_that_looks_like_side_data_does_not_crop_pictures(tmp_path):
    """A file may state how much is to be cropped from its pictures, which FFmpeg prints as "side data".

    Here the titles of the film and of its stream hold such lines, and are titles all the same.
    """
    title = "x\n    Side data:\n      Frame Cropping: 10/10/10/10"
    film = write_film_with_title(tmp_path / "named.mkv", title)

    facts_of_stream = read_frames(film, uniform(1)).stream

    assert "crop" not in facts_of_stream


def write_film_with_title(path: Path, title: str) -> Path:
    """Write a film of one picture, which has a title, as its stream has."""
    with av.open(str(path), "w") as output:
        output.metadata["title"] = title
        stream = output.add_stream("libvpx", rate=Fraction(25), options=VPX_OPTIONS)
        stream.width = 96
        stream.height = 64
        stream.pix_fmt = "yuv420p"
        stream.metadata["title"] = title
        output.mux(stream.encode(av.VideoFrame.from_ndarray(draw_number(1))))
        output.mux(stream.encode(None))
    return path


def test_another_version_of_the_conversion_to_rgb_is_another_decoder():
    """In the record of a decoder, `pixels` is the version of the conversion; it was once 1."""
    record = decoder_versions() | {"on_damage": "partial"}
    earlier_record = record | {"pixels": "1"}

    keys_that_differ = same_numerics({"decoder": earlier_record}, {"decoder": record})

    assert keys_that_differ == ["decoder.pixels"]


def encode_with_tags_of_colours(path: Path, first: int, **tags: int) -> Path:
    """Encode twenty pictures, numbered from the first on, whose frames and stream have tags of colours."""
    frames = [av.VideoFrame.from_ndarray(draw_number(first + number), format="rgb24") for number in range(20)]
    frames = [frame.reformat(format="yuv420p", dst_colorspace=tags.get("colorspace")) for frame in frames]
    for frame in frames:
        for name, value in tags.items():
            setattr(frame, name, value)
    return encode(path, frames, codec="libvpx-vp9", options=VPX_OPTIONS, **tags)


def test_a_matrix_that_changes_within_a_clip_is_noted(tmp_path):
    """A matrix says how the colours of a film become RGB; a clip is converted by that of its first picture.

    Of 40 numbered pictures, 25 a second, the first 20 state BT.601; at 0.8 s, BT.709 begins. A span from 0.9
    s on has the second matrix alone.
    """
    bt601 = encode_with_tags_of_colours(tmp_path / "bt601.webm", first=0, colorspace=BT601_OF_PAL)
    bt709 = encode_with_tags_of_colours(tmp_path / "bt709.webm", first=20, colorspace=BT709)
    film = joined_byte_by_byte(tmp_path / "both.webm", [bt601, bt709])

    whole = read_frames(film, at(range(40)))
    after_the_change = read_frames(film, uniform(4), start_s=0.9, end_s=1.5)

    assert read_drawn_numbers(whole.images) == list(range(40))
    assert whole.matrix == "bt601"
    assert any("changes" in note for note in whole.notes)
    assert after_the_change.matrix == "bt709"
    assert not any("changes" in note for note in after_the_change.notes)


def test_a_change_of_the_shape_of_pixels_is_noted(tmp_path):
    """A film states how wide its pixels are. One of square pixels is joined with one of pixels 16/11 as wide.

    The pictures would have to be stretched in the second half alone, so that a note says it.
    """
    square_film = encode(
        tmp_path / "square.mpg",
        map(draw_number, range(20)),
        codec="mpeg2video",
        sample_aspect_ratio=Fraction(1),
    )
    wide_film = encode(
        tmp_path / "wide.mpg",
        map(draw_number, range(20)),
        codec="mpeg2video",
        sample_aspect_ratio=Fraction(16, 11),
    )
    both = joined_byte_by_byte(tmp_path / "both.mpg", [square_film, wide_film])

    notes_on_both = read_frames(both, uniform(4)).notes
    notes_on_square_film = read_frames(square_film, uniform(4)).notes

    assert any("shape" in note for note in notes_on_both)
    assert not any("shape" in note for note in notes_on_square_film)


@pytest.mark.parametrize(
    ("tags", "words_of_note"),
    [
        ({"color_primaries": 12}, "Display P3"),
        ({"color_primaries": BT2020}, "BT.2020"),
        ({"color_trc": 8}, "linear"),
        ({"color_trc": 10}, "logarithmic"),
        ({"color_trc": 17}, "cinema"),
    ],
    ids=["Display P3", "BT.2020", "linear", "logarithmic", "cinema"],
)
def test_colours_of_no_ordinary_screen_are_noted(tmp_path, tags, words_of_note):
    """Primaries and transfer characteristics (trc) are stated by their numbers in H.273."""
    film = encode_with_tags_of_colours(tmp_path / "film.mkv", first=0, **tags)

    notes = read_frames(film, uniform(2)).notes

    assert any(words_of_note in note for note in notes)


def test_colours_of_an_ordinary_screen_have_no_note(tmp_path):
    """A film states the primaries and the transfer function of BT.709, which ordinary screens have."""
    film = encode_with_tags_of_colours(tmp_path / "film.mkv", first=0, color_primaries=BT709, color_trc=BT709)

    notes = read_frames(film, uniform(2)).notes

    assert notes == ()


def film_whose_container_states(colours, folder: Path) -> Path:
    """Write an MP4 whose pictures state no colours; its container states these (`colour_box`)."""
    film = encode(folder / "a.mp4", [draw_number(5)] * 3, "libx265", options=QUIET_X265, codec_tag="hvc1")
    return with_box(film, folder / "b.mp4", b"hvc1", colours)


@pytest.mark.parametrize(
    ("colours", "used_matrix"),
    [
        (colour_box(primaries=BT709, transfer=BT709, matrix=BT709), "bt709"),
        (
            colour_box(primaries=UNSPECIFIED, transfer=UNSPECIFIED, matrix=UNSPECIFIED),
            "bt601 (untagged)",
        ),
    ],
    ids=["BT.709", "unspecified"],
)
def test_colours_that_the_container_alone_states_are_used(tmp_path, colours, used_matrix):
    """The matrix, by which colours become RGB, is that of the container where the pictures state none.

    Where the container says that it is not specified, BT.601 is used.
    """
    frames = read_frames(film_whose_container_states(colours, tmp_path), uniform(1))

    assert frames.matrix == used_matrix
    assert frames.notes == ()


def test_hdr_that_the_container_alone_states_is_noted(tmp_path):
    """PQ is the brightness curve of films of high dynamic range; the pictures themselves state nothing."""
    hdr = colour_box(primaries=BT2020, transfer=PQ, matrix=BT2020)

    frames = read_frames(film_whose_container_states(hdr, tmp_path), uniform(1))

    assert frames.matrix == "bt2020"
    assert any("HDR" in note for note in frames.notes)


def test_a_container_that_states_another_range_of_colours_than_the_pictures_is_noted(tmp_path):
    """The pictures state the limited range, and the container the full one.

    They are read as limited, as most players do.
    """
    full_range = colour_box(primaries=BT709, transfer=BT709, matrix=BT709, full_range=True)

    frames = read_frames(film_whose_container_states(full_range, tmp_path), uniform(1))

    assert frames.matrix == "bt709"
    assert any("another" in note for note in frames.notes)


@pytest.mark.parametrize(
    ("matrix_of_container", "is_noted"),
    [(BT709, True), (BT601_OF_NTSC, False)],
    ids=["BT.709", "BT.601 by its other number"],
)
def test_a_container_that_states_another_matrix_than_the_pictures_is_noted(
    tmp_path, matrix_of_container, is_noted
):
    """A film states in its pictures by which matrix colours become RGB; its container may state it too.

    These pictures state BT.601. If the container states BT.709, the pictures are believed, and a note says
    that the two differ. The matrix of BT.601 has two numbers: one for PAL, which the encoder calls bt470bg
    and these pictures state, and one for NTSC. If the container states the other number, nothing differs.
    """
    bt601_by_its_number_for_pal = {
        "preset": "ultrafast",
        "x265-params": "log-level=none:pools=none:colormatrix=bt470bg",
    }
    film = encode(
        tmp_path / "a.mp4",
        [draw_number(5)] * 3,
        "libx265",
        options=bt601_by_its_number_for_pal,
        codec_tag="hvc1",
    )
    colours_of_container = colour_box(primaries=BT709, transfer=BT709, matrix=matrix_of_container)
    film = with_box(film, tmp_path / "b.mp4", b"hvc1", colours_of_container)

    frames = read_frames(film, uniform(1))

    assert frames.matrix == "bt601"
    has_note = any("another" in note for note in frames.notes)
    assert has_note == is_noted


def test_colours_are_read_by_the_matrix_that_the_container_names_if_the_pictures_name_none(tmp_path):
    """A matrix says how RGB becomes the colours of a film, and back; red is encoded by that of BT.709.

    The pictures do not say so, but the container does. Red, (200, 30, 30), comes back to within 5 of 255
    levels. By BT.601, which is used where no matrix is named, its green would be off by more.
    """
    fine_and_quiet = {"preset": "ultrafast", "crf": "1", "x265-params": "log-level=none:pools=none"}
    red = np.full((64, 96, 3), (200, 30, 30), np.uint8)
    frame = av.VideoFrame.from_ndarray(red, format="rgb24").reformat(format="yuv420p", dst_colorspace=BT709)
    frame.colorspace = UNSPECIFIED  # so that the encoder states no matrix
    film_without_matrix = encode(
        tmp_path / "a.mp4", [frame] * 3, "libx265", options=fine_and_quiet, codec_tag="hvc1"
    )
    colours_of_container = colour_box(primaries=BT709, transfer=BT709, matrix=BT709)
    film = with_box(film_without_matrix, tmp_path / "b.mp4", b"hvc1", colours_of_container)

    (picture,) = read_frames(film, uniform(1)).images

    largest_difference = np.abs(picture.astype(int) - red).max()
    assert largest_difference < 5


@pytest.mark.parametrize(("number_of_range", "is_noted"), [(1, True), (2, False)], ids=["limited", "full"])
def test_rgb_of_limited_range_is_noted(tmp_path, number_of_range, is_noted):
    """RGB usually has the full range; FFmpeg numbers the ranges."""
    film = encode(
        tmp_path / "film.mkv",
        [draw_number(3)] * 3,
        codec="libx264rgb",
        pix_fmt="bgr24",
        color_range=number_of_range,
    )

    notes = read_frames(film, uniform(1)).notes

    has_note = any("limited" in note for note in notes)
    assert has_note == is_noted
