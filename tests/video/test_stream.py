"""Every fact that a file states of its pictures is used, noted, refused or listed: read from pixels."""

import json
import re
import struct
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

from obygaze.cli import table_of_contents
from obygaze_features.errors import VideoError
from obygaze_features.manifest import import_folder
from obygaze_features.store import same_numerics
from obygaze_features.video import at, decoder_versions, file_digest, find_shots, probe, read_frames, uniform
from obygaze_features.video.file_facts import is_here
from obygaze_features.video.sound import SoundTrack
from obygaze_features.video.stream import DISPOSITIONS, FATES, FRAMES, PACKETS, STREAMS
from tests.video.conftest import draw, numbers_of, remux, spoiled
from tests.video.encoding import encode
from tests.video.joining import VPX, X264, joined
from tests.video.sounding import tone, write_film


@pytest.mark.parametrize(
    ("table", "named"),
    [
        (PACKETS, set(get_args(PktSideDataT))),
        (FRAMES, {each.name for each in Type}),
        (DISPOSITIONS, {each.name for each in Disposition}),
    ],
    ids=["packets", "frames", "dispositions"],
)
def test_every_kind_that_pyav_names_has_a_fate_and_what_is_left_out_a_sentence(table, named):
    assert set(table) == named
    for fate in ("used", "listed", "refused", "noted"):
        assert all(("sentence" in group) == (fate in {"noted", "refused"}) for group in FATES[fate])
    assert set(STREAMS.values()) <= set(PACKETS)


def boxes_to(data: bytes, entry: bytes) -> list[int]:
    """Find the boxes around a track's sample description, and its one entry."""
    result = []
    start = 0
    end = len(data)
    for name in (b"moov", b"trak", b"mdia", b"minf", b"stbl", b"stsd", entry):
        while data[start + 4 : start + 8] != name:
            start += int.from_bytes(data[start : start + 4], "big")
            assert start < end
        result.append(start)
        start += {b"stsd": 16, entry: 86}.get(name, 8)
    return result


def with_box(path: Path, target: Path, entry: bytes, box: bytes) -> Path:
    """Put a box into the description of a film's pictures, at its end; the index lies behind the pictures."""
    data = bytearray(path.read_bytes())
    around = boxes_to(bytes(data), entry)
    end = around[-1] + int.from_bytes(data[around[-1] : around[-1] + 4], "big")
    for start in around:
        data[start : start + 4] = (int.from_bytes(data[start : start + 4], "big") + len(box)).to_bytes(
            4, "big"
        )
    data[end:end] = box
    target.write_bytes(data)
    return target


def box(kind: bytes, content: bytes) -> bytes:
    return (8 + len(content)).to_bytes(4, "big") + kind + content


BT709 = 1
UNSPECIFIED = 2
"""Numbers of matrices, transfer characteristics and primaries in H.273."""


def colour_box(primaries: int, transfer: int, matrix: int, *, full_range: bool = False) -> bytes:
    """Make a box that states colours (ISO/IEC 14496-12, 12.1.5)."""
    tags = b"".join(tag.to_bytes(2, "big") for tag in (primaries, transfer, matrix))
    range_flag = b"\x80" if full_range else b"\0"
    return box(b"colr", b"nclx" + tags + range_flag)


def clap(width: int, height: int, right: int, down: int) -> bytes:
    """Clean aperture: its size, and how far its centre lies from that of the picture."""
    values = (width, 1, height, 1, right, 1, down, 1)
    return box(b"clap", b"".join(value.to_bytes(4, "big", signed=True) for value in values))


@pytest.fixture(scope="module")
def plain(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("plain")
    return encode(folder / "plain.mp4", map(draw, range(12)), options=X264)


def test_a_crop_is_applied_at_its_place(plain, tmp_path):
    whole = read_frames(plain, at([0, 5]))
    path = with_box(plain, tmp_path / "clap.mp4", b"avc1", clap(64, 40, 4, -6))
    frames = read_frames(path, at([0, 5]))
    assert (frames.width, frames.height) == (64, 40)
    for mine, full in zip(frames.images, whole.images, strict=True):
        assert np.array_equal(mine, full[6:46, 20:84])
    assert frames.stream["crop"] == [6, 18, 20, 12]


@pytest.mark.parametrize(
    ("matrix", "rotation"), [((7, 65536, -65536, 7), 90), ((60000, 25000, -25000, 60000), 0)]
)
def test_a_matrix_of_nearly_a_quarter_turns_and_an_oblique_one_is_said(plain, tmp_path, matrix, rotation):
    data = bytearray(plain.read_bytes())
    a, b, c, d = matrix
    start = data.index(b"tkhd") + 44
    data[start : start + 36] = struct.pack(">9i", a, b, 0, c, d, 0, 0, 0, 1 << 30)
    (tmp_path / "turned.mp4").write_bytes(data)
    frames = read_frames(tmp_path / "turned.mp4", uniform(1))
    assert frames.rotation == rotation
    assert any("oblique" in note for note in frames.notes) == (rotation == 0)


@pytest.mark.parametrize(("codec", "told"), [("libx264", "h264_metadata"), ("libx265", "hevc_metadata")])
@pytest.mark.parametrize("left", [2, 10, 40])
def test_a_crop_in_the_settings_of_the_codec_is_exact(tmp_path, codec, told, left):
    film = encode(tmp_path / "a.mkv", [draw(5)] * 2, codec, options={"preset": "ultrafast"})
    with av.open(str(film)) as source, av.open(str(tmp_path / "cropped.ts"), "w") as made:
        stream = made.add_stream_from_template(source.streams.video[0])
        cropping = BitStreamFilterContext(
            f"{told}=crop_left={left}:crop_bottom=4", source.streams.video[0], stream
        )
        for packet in source.demux(video=0):
            for each in cropping.filter(packet) if packet.size else ():
                each.stream = stream
                made.mux(each)
    (whole,) = read_frames(film, at([1])).images
    (cropped,) = read_frames((tmp_path / "cropped.ts"), at([1])).images
    assert np.array_equal(cropped, whole[:-4, left:])


def test_a_turn_that_packets_ask_for_and_the_decoder_gives_to_one_picture_alone_is_said(plain, tmp_path):
    with av.open(str(plain)) as film, av.open(str(tmp_path / "turned.mkv"), "w") as made:
        stream = made.add_stream_from_template(film.streams.video[0])
        told = "h264_metadata=display_orientation=insert:rotate=-90"
        turning = BitStreamFilterContext(told, film.streams.video[0], stream)
        for packet in film.demux(video=0):
            for each in turning.filter(packet) if packet.size else ():
                each.stream = stream
                made.mux(each)
    assert any("turn" in note for note in read_frames(tmp_path / "turned.mkv", at([5])).notes)


def test_what_the_stream_and_its_pictures_state_is_said_once(tmp_path):
    film = encode(tmp_path / "a.mp4", [draw(255)] * 3, options=X264 | {"x264-params": "frame-packing=3"})
    path = with_box(film, tmp_path / "b.mp4", b"avc1", box(b"st3d", bytes(4) + b"\x02"))
    assert read_frames(path, uniform(2)).notes == ("stereoscopic: the pictures are given as stored",)


def dolby(profile: int, compatibility: int) -> bytes:
    return box(b"dvcC", bytes([1, 0, profile << 1, 1 << 3 | 0b101, compatibility << 4]) + bytes(19))


def test_dolby_vision_without_a_base_layer_of_its_own_is_refused(tmp_path):
    quiet = {"preset": "ultrafast", "x265-params": "log-level=none:pools=none"}
    film = encode(
        tmp_path / "a.mp4",
        map(draw, range(4)),
        "libx265",
        pix_fmt="yuv420p10le",
        options=quiet,
        codec_tag="hvc1",
    )
    for profile in (5, 10):
        with pytest.raises(VideoError, match="Dolby Vision"):
            read_frames(with_box(film, tmp_path / "dv.mp4", b"hvc1", dolby(profile, 0)), uniform(1))
    (tmp_path / "named.mp4").write_bytes(film.read_bytes().replace(b"hvc1", b"dvh1"))
    with pytest.raises(VideoError, match="Dolby Vision"):
        probe(tmp_path / "named.mp4")
    frames = read_frames(with_box(film, tmp_path / "dv.mp4", b"hvc1", dolby(8, 1)), at(range(4)))
    assert any("Dolby Vision" in note for note in frames.notes)
    assert numbers_of(frames.images) == list(range(4))


@pytest.mark.parametrize("key", range(0, 120, 10))
def test_encrypted_pictures_are_refused_as_such(plain, tmp_path, key):
    secret = {
        "encryption_scheme": "cenc-aes-ctr",
        "encryption_key": f"{key:032x}",
        "encryption_kid": "0" * 32,
    }
    path = remux(plain, tmp_path / "secret.mp4", list, **secret)
    for read in (lambda: read_frames(path, uniform(2)), lambda: probe(path)):
        with pytest.raises(VideoError, match="encrypted"):
            read()


@pytest.mark.parametrize("blu_ray", [False, True])
def test_a_scrambled_transport_stream_is_refused_as_such(tmp_path, blu_ray):
    clear = encode(tmp_path / "a.ts", map(draw, range(12)), options=X264).read_bytes()
    packets = [bytearray(clear[at : at + 188]) for at in range(0, len(clear), 188)]
    for packet in packets:
        if packet[1] & 0x1F == 1:  # of the pictures, whose number is 256
            packet[3] |= 0x80
            packet[40:] = bytes(each ^ 0x5A for each in packet[40:])
    path = tmp_path / "secret.m2ts"
    path.write_bytes(b"".join(bytes(4) * blu_ray + packet for packet in packets))
    for read in (lambda: read_frames(path, uniform(2)), lambda: probe(path)):
        with pytest.raises(VideoError, match="encrypted"):
            read()


def test_a_recording_that_is_scrambled_from_its_middle_on_is_partial_and_says_so(tmp_path):
    noise = np.random.default_rng(0).integers(0, 255, (60, 192, 256, 3), np.uint8)
    film = encode(tmp_path / "a.ts", noise, options=X264 | {"crf": "4"})
    data = bytearray(film.read_bytes())
    assert len(data) > 3 << 20  # its start is searched as a whole
    for start in range(len(data) // 376 * 188, len(data), 188):
        if data[start + 1] & 0x1F == 1:  # of the pictures, whose number is 256
            data[start + 3] |= 0x80
            data[start + 4 : start + 188] = bytes(each ^ 0x5A for each in data[start + 4 : start + 188])
    film.write_bytes(data)
    assert read_frames(film, uniform(2)).status == "partial"
    assert "encrypted" in probe(film).damage


def test_a_transport_stream_of_encrypted_samples_is_refused_as_such(tmp_path):
    """SAMPLE-AES of HLS: the map of the programme (13818-1, 2.4.4.8) gives the pictures the type 0xDB."""
    film = encode(tmp_path / "a.ts", map(draw, range(12)), options=X264)
    data = bytearray(film.read_bytes())
    for start in range(0, len(data), 188):
        section = start + 5
        if data[start + 1 : start + 3] == b"\x50\x00" and data[section] == 2:
            data[section + 12] = 0xDB
            end = section - 1 + (int.from_bytes(data[section + 1 : section + 3], "big") & 0xFFF)
            remainder = 0xFFFFFFFF
            for bit in "".join(f"{byte:08b}" for byte in data[section:end]):
                carried = (remainder >> 31) ^ int(bit)
                remainder = (remainder << 1 & 0xFFFFFFFF) ^ 0x04C11DB7 * carried
            data[end : end + 4] = remainder.to_bytes(4, "big")
    film.write_bytes(data)
    with pytest.raises(VideoError, match="encrypted"):
        read_frames(film, uniform(2))


def test_encrypted_windows_media_is_refused_as_such(tmp_path):
    film = encode(tmp_path / "a.wmv", map(draw, range(4)), "wmv2")
    data = bytearray(film.read_bytes())
    size = int.from_bytes(data[16:24], "little")
    content = (4).to_bytes(4, "little") + b"<W>\0"
    kind = bytes.fromhex("14E68A292226174CB935DAE07EE9289C")
    data[size:size] = kind + (24 + len(content)).to_bytes(8, "little") + content
    data[16:28] = (size + 32).to_bytes(8, "little") + (data[24] + 1).to_bytes(4, "little")
    film.write_bytes(data)
    with pytest.raises(VideoError, match="encrypted"):
        probe(film)


def test_encrypted_sound_is_refused_as_such_beside_clear_pictures(tmp_path):
    film = write_film(tmp_path / "a.mp4", {"eng": tone(440, 2)}, seconds=2)
    secret = {"encryption_scheme": "cenc-aes-ctr", "encryption_key": "0" * 32, "encryption_kid": "0" * 32}
    path = remux(film, tmp_path / "secret.mp4", list, ("video", "audio"), **secret)
    data = path.read_bytes()
    for kind, clear in ((b"encv", b"avc1"), (b"sinf", b"free"), (b"senc", b"free")):  # of the first track
        data = data.replace(kind, clear, 1)
    path.write_bytes(data)
    assert probe(path).frames == 50
    with pytest.raises(VideoError, match="sound is encrypted"):
        SoundTrack(path)


def test_a_transport_stream_that_lost_a_byte_is_not_taken_for_a_scrambled_one(tmp_path):
    whole = encode(tmp_path / "a.ts", map(draw, range(30)), options=X264).read_bytes()
    (tmp_path / "torn.ts").write_bytes(whole[:9000] + whole[9001:])
    assert probe(tmp_path / "torn.ts").frames > 25


def test_the_files_of_a_dvd_s_title_are_one_film_with_one_time_line(tmp_path):
    film = encode(tmp_path / "film.vob", map(draw, range(40)), "mpeg2video", options={"g": "9", "bf": "2"})
    disc = tmp_path / "VIDEO_TS"
    disc.mkdir()
    data = film.read_bytes()
    for number, first in enumerate((0, 6144), start=1):
        (disc / f"VTS_01_{number}.VOB").write_bytes(
            data[first : first + 6144] if number == 1 else data[first:]
        )
    for place in (disc, disc / "VTS_01_1.VOB"):
        frames = read_frames(place, at(range(40)))
        assert (frames.status, numbers_of(frames.images)) == ("ok", list(range(40)))
        assert file_digest(place) == sha256(data).hexdigest()
        assert is_here(place)
    assert not any(map(is_here, (tmp_path, tmp_path / "VTS_01_1.VOB")))
    assert [clip.video for clip in import_folder(disc, disc).manifest] == ["VTS_01_1.VOB"]
    for name, wrong in (("VTS_01_4.VOB", disc / "VTS_01_1.VOB"), ("VTS_02_1.VOB", disc)):
        (disc / name).write_bytes(data)
        with pytest.raises(VideoError, match=r"missing|2 titles"):
            probe(wrong)
        (disc / name).unlink()


def test_an_encrypted_disc_is_refused_as_such(tmp_path):
    film = encode(tmp_path / "film.vob", map(draw, range(12)), "mpeg2video")
    data = re.sub(
        rb"(\x00\x00\x01\xe0..)[\x80-\x8f]",
        lambda match: match[1] + b"\x90",
        film.read_bytes(),
        flags=re.DOTALL,
    )
    film.write_bytes(data)
    with pytest.raises(VideoError, match="encrypted"):
        probe(film)


HALF = np.dstack([draw(3), np.full((64, 96), 255, np.uint8)])
HALF[32:, :48, 3] = 0


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
)
def test_transparent_pictures_lie_over_white_as_stills_do(tmp_path, name, codec, pixels):
    pictures = [av.VideoFrame.from_ndarray(HALF, format="rgba").reformat(format=pixels) for _ in range(3)]
    frames = read_frames(encode(tmp_path / name, pictures, codec, pix_fmt=pixels), uniform(1))
    (image,) = frames.images
    assert image[36:60, 4:44].min() >= 253
    assert numbers_of([image]) == [3]
    assert np.abs(image[36:60, 56:92].astype(int) - HALF[36:60, 56:92, :3]).mean() < 6
    assert any("white" in note for note in frames.notes)
    assert frames.stream["alpha"] is True


def test_a_fourth_byte_of_pixels_without_a_codec_in_avi_is_not_transparency(tmp_path):
    pictures = [av.VideoFrame.from_ndarray(HALF, format="rgba").reformat(format="bgra")] * 2
    path = encode(tmp_path / "a.avi", pictures, "rawvideo", pix_fmt="bgra")
    path.write_bytes(path.read_bytes().replace(b"BGRA", b"\0\0\0\0"))  # BI_RGB
    frames = read_frames(path, uniform(1))
    assert np.array_equal(frames.images[0], HALF[..., :3])
    assert frames.notes == ()
    assert len(find_shots(path)) == 1


def test_what_is_opaque_is_not_said_to_be_transparent(tmp_path):
    opaque = np.dstack([draw(3), np.full((64, 96), 255, np.uint8)])
    path = encode(
        tmp_path / "a.mov", [av.VideoFrame.from_ndarray(opaque, format="rgba")] * 2, "png", pix_fmt="rgba"
    )
    frames = read_frames(path, uniform(1))
    assert np.array_equal(frames.images[0], opaque[..., :3])
    assert frames.notes == ()


def test_more_video_streams_are_noted_and_covers_are_not(tmp_path):
    with av.open(str(tmp_path / "two.mkv"), "w") as made:
        streams = [made.add_stream("libx264", rate=25, options=X264) for _ in range(2)]
        for stream in streams:
            stream.width = 96
            stream.height = 64
            stream.pix_fmt = "yuv420p"
        for number in range(4):
            for stream in streams:
                made.mux(stream.encode(av.VideoFrame.from_ndarray(draw(number))))
        for stream in streams:
            made.mux(stream.encode(None))
    frames = read_frames(tmp_path / "two.mkv", uniform(2))
    assert any("more video streams" in note for note in frames.notes)
    assert frames.stream["other_streams"] == 1


@pytest.mark.parametrize(("lost", "status"), [(6, "partial"), (14, "failed")])
def test_a_clip_with_under_half_of_its_frames_has_failed(tmp_path, lost, status):
    film = encode(tmp_path / "a.mkv", map(draw, range(24)), "mjpeg", pix_fmt="yuvj420p")
    spoiled(film, film, range(lost))
    if status == "failed":
        with pytest.raises(VideoError, match="half"):
            read_frames(film, uniform(8))
        assert numbers_of(read_frames(film, at([20, 23])).images) == [20, 23]
    else:
        frames = read_frames(film, uniform(8))
        assert (frames.status, numbers_of(frames.images)[-1] > lost) == ("partial", True)


def test_the_record_holds_the_stream(plain):
    result = CliRunner().invoke(table_of_contents(), ["frames", str(plain), "--n", "2", "--json"])
    stream = json.loads(result.output)["stream"]
    assert (stream["codec"], stream["pixels"]) == ("h264", "yuv420p")


def test_a_name_in_the_metadata_is_no_side_data(tmp_path):
    path = tmp_path / "named.mkv"
    with av.open(str(path), "w") as made:
        made.metadata["title"] = "x\n    Side data:\n      Frame Cropping: 10/10/10/10"
        stream = made.add_stream("libvpx", rate=Fraction(25), options=VPX)
        stream.width = 96
        stream.height = 64
        stream.pix_fmt = "yuv420p"
        stream.metadata["title"] = "x\n    Side data:\n      Frame Cropping: 10/10/10/10"
        made.mux(stream.encode(av.VideoFrame.from_ndarray(draw(1))))
        made.mux(stream.encode(None))
    assert "crop" not in read_frames(path, uniform(1)).stream


def test_a_change_of_the_conversion_is_a_change_of_the_decoder_in_the_record():
    record = {"decoder": decoder_versions() | {"on_damage": "partial"}}
    before = {"decoder": {**record["decoder"], "pixels": "1"}}
    assert same_numerics(before, record) == ["decoder.pixels"]


def tagged(path: Path, first: int, **tags: int) -> Path:
    """Twenty pictures whose frames and stream have tags of colours."""
    frames = [av.VideoFrame.from_ndarray(draw(first + number), format="rgb24") for number in range(20)]
    frames = [frame.reformat(format="yuv420p", dst_colorspace=tags.get("colorspace")) for frame in frames]
    for frame in frames:
        for name, value in tags.items():
            setattr(frame, name, value)
    return encode(path, frames, codec="libvpx-vp9", options=VPX, **tags)


def test_what_changes_from_picture_to_picture_is_said(tmp_path):
    parts = [
        tagged(tmp_path / f"{matrix}.webm", 20 * n, colorspace=matrix) for n, matrix in enumerate((5, 1))
    ]
    film = joined(tmp_path / "both.webm", parts)
    frames = read_frames(film, at(range(40)))
    assert numbers_of(frames.images) == [*range(40)]
    assert any("changes" in note for note in frames.notes)
    later = read_frames(film, uniform(4), start_s=0.9, end_s=1.5)
    assert (frames.matrix, later.matrix) == ("bt601", "bt709")
    assert not any("changes" in note for note in later.notes)


def test_a_change_of_the_shape_of_pixels_is_said(tmp_path):
    shapes = [Fraction(1), Fraction(16, 11)]
    parts = [
        encode(tmp_path / f"{n}.mpg", map(draw, range(20)), codec="mpeg2video", sample_aspect_ratio=shape)
        for n, shape in enumerate(shapes)
    ]
    film = joined(tmp_path / "both.mpg", parts)
    assert any("shape" in note for note in read_frames(film, uniform(4)).notes)
    assert not any("shape" in note for note in read_frames(parts[0], uniform(4)).notes)


@pytest.mark.parametrize(
    ("tags", "said"),
    [
        ({"color_primaries": 12}, "Display P3"),
        ({"color_primaries": 9}, "BT.2020"),
        ({"color_trc": 8}, "linear"),
        ({"color_trc": 10}, "logarithmic"),
        ({"color_trc": 17}, "cinema"),
        ({"color_primaries": 1, "color_trc": 1}, ""),
    ],
)
def test_colours_of_no_ordinary_screen_are_said(tmp_path, tags, said):
    notes = read_frames(tagged(tmp_path / "film.mkv", 0, **tags), uniform(2)).notes
    assert any(said in note for note in notes) if said else not notes


@pytest.mark.parametrize(
    ("stated", "matrix", "said"),
    [
        (colour_box(9, 16, 9), "bt2020", "HDR"),
        (colour_box(BT709, BT709, BT709), "bt709", ""),
        (colour_box(BT709, BT709, BT709, full_range=True), "bt709", "another"),
        (colour_box(UNSPECIFIED, UNSPECIFIED, UNSPECIFIED), "bt601 (untagged)", ""),
    ],
)
def test_colours_that_the_container_alone_states_are_used(tmp_path, stated, matrix, said):
    quiet = {"preset": "ultrafast", "x265-params": "log-level=none:pools=none"}
    film = encode(tmp_path / "a.mp4", [draw(5)] * 3, "libx265", options=quiet, codec_tag="hvc1")
    frames = read_frames(with_box(film, tmp_path / "b.mp4", b"hvc1", stated), uniform(1))
    assert frames.matrix == matrix
    if said:
        assert any(said in note for note in frames.notes)
    else:
        assert not frames.notes


@pytest.mark.parametrize(("stated", "said"), [(1, True), (6, False)])  # 5 and 6 are one matrix
def test_a_matrix_of_the_container_that_is_another_than_the_pictures_is_said(tmp_path, stated, said):
    quiet = {"preset": "ultrafast", "x265-params": "log-level=none:pools=none:colormatrix=bt470bg"}
    film = encode(tmp_path / "a.mp4", [draw(5)] * 3, "libx265", options=quiet, codec_tag="hvc1")
    colours = colour_box(BT709, BT709, stated)
    frames = read_frames(with_box(film, tmp_path / "b.mp4", b"hvc1", colours), uniform(1))
    assert frames.matrix == "bt601"
    assert any("another" in note for note in frames.notes) == said


def test_a_matrix_that_the_container_alone_names_makes_the_colours(tmp_path):
    quiet = {"preset": "ultrafast", "crf": "1", "x265-params": "log-level=none:pools=none"}
    red = np.full((64, 96, 3), (200, 30, 30), np.uint8)
    frame = av.VideoFrame.from_ndarray(red, format="rgb24").reformat(format="yuv420p", dst_colorspace=BT709)
    frame.colorspace = UNSPECIFIED  # so that the encoder states no matrix
    film = encode(tmp_path / "a.mp4", [frame] * 3, "libx265", options=quiet, codec_tag="hvc1")
    film = with_box(film, tmp_path / "b.mp4", b"hvc1", colour_box(BT709, BT709, BT709))
    (picture,) = read_frames(film, uniform(1)).images
    largest_difference = np.abs(picture.astype(int) - red).max()
    assert largest_difference < 5


@pytest.mark.parametrize(("tag", "said"), [(1, True), (2, False)])
def test_rgb_of_limited_range_is_said(tmp_path, tag, said):
    film = encode(tmp_path / "film.mkv", [draw(3)] * 3, codec="libx264rgb", pix_fmt="bgr24", color_range=tag)
    notes = read_frames(film, uniform(1)).notes
    assert any("limited" in note for note in notes) == said
