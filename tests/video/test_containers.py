"""Only containers are videos; pictures have a largest size; what is odd about them is said."""

from pathlib import Path

import av
import numpy as np
import pytest
from av.codec import codecs_available

from obygaze_features.errors import VideoError
from obygaze_features.video import find_shots, probe, read_frames, uniform
from tests.video.conftest import draw_number, reason_of_refusal
from tests.video.encoding import encode
from tests.video.test_decoding import decoded_by_pyav

# Encoders of the installed PyAV, each in a container that takes it.
SPARSE = "av1 ffv1 hevc libsvtav1 libvpx libvpx-vp9 libx264 libx265 mpeg1video mpeg2video mpeg4"
SPARSE += " prores prores_ks vp8 vp9"
NUT = "amv:yuvj420p asv1 asv2 cfhd:yuv422p10le cinepak:rgb24 cljr:yuv411p dpx:gray ffvhuff flashsv:bgr24 flv"
NUT += " gif:rgb8 h263p huffyuv:yuv422p jpegls:bgr24 magicyuv msmpeg4v2 msvideo1:rgb555le png:rgb24"
NUT += " r10k:gbrp10le r210:gbrp10le rpza:rgb555le speedhq svq1:yuv410p targa:bgr24 utvideo v210:yuv422p10le"
NUT += " v308:yuv444p v410:yuv444p10le wmv1 wmv2 y41p:yuv411p yuv4 zlib:bgr24"
MOV = "avrp:gbrp10le dxv:rgba exr:grayf32le qtrle:rgb24 sgi:rgb24 tiff:rgb24"
MKV = "jpeg2000 msmpeg4 rawvideo snow"


def three_grey_pictures(width: int, height: int, pix_fmt: str = "yuv420p") -> list[av.VideoFrame]:
    picture = np.full((height, width, 3), 120, np.uint8)
    return [av.VideoFrame.from_ndarray(picture, format="rgb24").reformat(format=pix_fmt) for _ in range(3)]


CASES = [
    *((name, "mkv", "sparse") for name in SPARSE.split()),
    *((name, "nut", "sequential") for name in NUT.split()),
    *((name, "mov", "sequential") for name in MOV.split()),
    *((name, "mkv", "sequential") for name in MKV.split()),
]


@pytest.mark.parametrize(("name", "suffix", "method"), CASES)
def test_frames_of_every_encoder_equal_those_of_decoding_everything(tmp_path, name, suffix, method):
    """Seven of a film's 20 pictures are read sparsely where the codec allows it, else by decoding in order.

    `name` is an encoder's, such as "dpx:gray": before the colon the codec, behind it the format of pixels.
    PyAV decodes all pictures.
    """
    codec, _colon, pix_fmt = name.partition(":")
    if codec not in codecs_available:
        pytest.skip(f"this PyAV has no encoder {codec}")
    if not pix_fmt:
        pix_fmt = "yuv422p10le" if codec.startswith("prores") else "yuv420p"
    path = tmp_path / f"film.{suffix}"
    a_key_frame_every_8 = {"g": "8"}
    encode(path, map(draw_number, range(20)), codec, pix_fmt=pix_fmt, options=a_key_frame_every_8)
    all_pictures = decoded_by_pyav(path)

    frames = read_frames(path, uniform(7))

    assert frames.method == method
    assert frames.status == "ok"
    assert frames.total == 20
    has_a_reason = frames.why_sequential != ""
    assert has_a_reason == (method == "sequential")
    assert np.array_equal(frames.images, all_pictures[frames.index])


FILES_OF_TEXT = {
    "passwd.txt": ("root:x:0:0:root:/root:/bin/bash\n" * 20, "this is a text file, not a video file"),
    "art.ans": ("\x1b[31mhello\x1b[0m\n" * 50, "this is a text file, not a video file"),
    "concat.mp4": ("ffconcat version 1.0\nfile '{secret.name}'\n", "a list of other files (ffconcat)"),
    "hls.m3u8": (
        "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\nfile://{secret}\n#EXT-X-ENDLIST\n",
        "a list of other files (HLS)",
    ),
    "dash.mpd": ('<?xml version="1.0"?>\n<MPD></MPD>\n', "a list of other files (DASH)"),
    "session.sdp": ("v=0\no=- 0 0 IN IP4 127.0.0.1\n", "a list of other files (SDP)"),
}
"""Name -> content, in which {secret} is a film that exists, and why it is refused."""


@pytest.mark.parametrize(("name", "text", "reason"), [(n, *file) for n, file in FILES_OF_TEXT.items()])
def test_a_text_file_or_a_list_of_other_files_is_refused_as_what_it_is(numbered_films, name, text, reason):
    """FFmpeg would draw a text, and read the films of a list, which may be those of somebody else.

    Each list names a film that exists and lies beside it.
    """
    other_film = numbered_films["b1.mp4"]
    path = other_film.with_name(name)
    path.write_text(text.format(secret=other_film))

    try:
        assert reason in reason_of_refusal(path)
    finally:
        path.unlink()


@pytest.mark.parametrize("name", ["a:b.mp4", "http:x.mp4", "concat:one.mp4|two.mp4", "100%d.mp4"])
def test_a_file_whose_name_looks_like_a_protocol_is_read_as_a_file(
    numbered_films, tmp_path, monkeypatch, name
):
    """FFmpeg takes the beginning of a relative path, up to the colon, for a protocol.

    The file is a copy of a film of 100 pictures.
    """
    absolute_path = tmp_path / name
    absolute_path.write_bytes(numbered_films["b1.mp4"].read_bytes())
    monkeypatch.chdir(tmp_path)
    relative_path = Path(name)

    for path in (relative_path, absolute_path):
        assert read_frames(path, uniform(2)).status == "ok"
        assert probe(path).frames == 100


def test_huge_pictures_are_refused(tmp_path):
    """9500 x 9500 pixels are more than 89,478,485, Pillow's limit against files that fill the memory."""
    film = encode(tmp_path / "huge.mov", [av.VideoFrame(9500, 9500, "gray")], "png")

    reason = reason_of_refusal(film)

    assert "89,478,485 pixels" in reason


def test_pictures_and_shots_of_a_film_in_the_colours_of_ictcp_are_refused(tmp_path):
    """A matrix of colours leads to RGB, but that of ICtCp not by itself."""
    number_of_ictcp = 14  # in H.273
    film = encode(tmp_path / "a.mp4", three_grey_pictures(width=64, height=48), colorspace=number_of_ictcp)

    assert "ICtCp" in reason_of_refusal(film)
    with pytest.raises(VideoError, match=r"a\.mp4.*ICtCp"):
        find_shots(film)


BT709, UNSPECIFIED = 1, 2
"""Numbers of matrices in H.273."""


@pytest.mark.parametrize(
    ("height", "stated_matrix", "used_matrix", "is_noted"),
    [
        (48, UNSPECIFIED, "bt601 (untagged)", False),
        (720, UNSPECIFIED, "bt601 (untagged)", True),
        (720, BT709, "bt709", False),
    ],
    ids=["small, none stated", "HD, none stated", "HD, stated"],
)
def test_the_matrix_of_colours_is_recorded_and_noted_where_hd_states_none(
    tmp_path, height, stated_matrix, used_matrix, is_noted
):
    """A matrix says how a film's colours become RGB. Where the film states none, that of BT.601 is used.

    Films in HD, here of 720 rows, usually have that of BT.709, so a note warns there.
    """
    film = encode(tmp_path / "b.mp4", three_grey_pictures(height, height), colorspace=stated_matrix)

    frames = read_frames(film, uniform(1))

    assert frames.matrix == used_matrix
    assert frames.record()["matrix"] == used_matrix
    has_note = any("no colour matrix" in note for note in frames.notes)
    assert has_note == is_noted


@pytest.mark.parametrize("n_comments", [1, 2])
def test_a_comment_at_the_end_of_a_gif_is_no_picture(tmp_path, n_comments):
    """A GIF of three pictures gets comments between its last picture and the ";" that ends the file."""
    film = encode(tmp_path / "a.gif", three_grey_pictures(width=32, height=24, pix_fmt="rgb8"), "gif")
    # A comment: its two blocks, each behind its length, and an empty one. Outside a block, "," would begin
    # a picture, and ";" ends the file.
    comment = b"!\xfe" + b"\x03abc" + b"\x02,;" + b"\0"
    without_end = film.read_bytes().removesuffix(b";")
    film.write_bytes(without_end + comment * n_comments + b";")

    frames = read_frames(film, uniform(3), strict=True)

    assert frames.status == "ok"
    assert frames.index.tolist() == [0, 1, 2]
