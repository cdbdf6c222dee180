"""Small real films, made here: every picture carries its own number, so that a wrong picture shows."""

from collections.abc import Callable, Collection, Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from obygaze_features.errors import VideoError
from obygaze_features.video import Sampling, read_frames, uniform
from tests.video.encoding import encode
from tests.video.sounding import RATE, write_film

WIDTH = 96
HEIGHT = 64
BITS = 8
"""A picture's number is drawn in bars, one for each bit: black for 0, white for 1."""
BAR_WIDTH = WIDTH // BITS
VOP_START = b"\x00\x00\x01\xb6"
"""The start code of a picture of MPEG-4; the two highest bits of the next byte are its kind."""
B_VOP = 2
"""The kind of a B-picture."""


def draw_number(number: int) -> np.ndarray:
    """Draw a picture with its number as 8 black or white bars, above a texture that moves."""
    picture = np.empty((HEIGHT, WIDTH, 3), np.uint8)
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
    # Waves in red and green and a ramp in blue, which move by a few pixels from picture to picture.
    picture[..., 0] = 128 + 90 * np.sin((x + 3 * number) / 7)
    picture[..., 1] = 128 + 90 * np.cos((y - 2 * number) / 5)
    picture[..., 2] = (x + y + 5 * number) % 256
    for bit in range(BITS):
        left = bit * BAR_WIDTH
        is_set = number >> bit & 1
        picture[: HEIGHT // 2, left : left + BAR_WIDTH] = 255 if is_set else 0
    return picture


def read_drawn_number(picture: np.ndarray) -> int:
    """Read the number that `draw_number` has drawn, in a picture that was encoded and decoded."""
    number = 0
    for bit in range(BITS):
        left = bit * BAR_WIDTH
        # The edges of a bar are left out: encoding blurs them.
        middle_of_bar = picture[2 : HEIGHT // 2 - 2, left + 3 : left + BAR_WIDTH - 3]
        if middle_of_bar.mean() > 128:
            number += 1 << bit
    return number


def read_drawn_numbers(pictures: Iterable[np.ndarray]) -> list[int]:
    """Read the number that is drawn in each picture."""
    return [read_drawn_number(picture) for picture in pictures]


def remux(
    source: Path,
    target: Path,
    edit: Callable[[list[av.Packet]], list[av.Packet]],
    kinds: Collection[str] = ("video",),
    **options: str,
) -> Path:
    """Copy a film into another container: streams of these kinds, and the packets that `edit` returns."""
    with av.open(str(source)) as film, av.open(str(target), "w", options=options) as output:
        sources = [stream for stream in film.streams if stream.type in kinds]
        copy_of = {stream.index: output.add_stream_from_template(stream) for stream in sources}
        packets = [packet for packet in film.demux(sources) if packet.size]
        for packet in edit(packets):
            stream = packet.stream or sources[0]
            packet.stream = copy_of[stream.index]
            output.mux(packet)
    return target


def reason_of_refusal(path: Path, sampling: Sampling | None = None, **settings: object) -> str:
    """Return why no frames can be read of a file."""
    with pytest.raises(VideoError) as caught:
        read_frames(path, sampling or uniform(1), **settings)
    assert str(caught.value) == f"{path}: {caught.value.reason}"
    return caught.value.reason


def packets_of(path: Path) -> list[av.Packet]:
    """Read the packets of a film's pictures."""
    with av.open(str(path)) as container:
        return [packet for packet in container.demux(video=0) if packet.size]


def spoiled(source: Path, target: Path, numbers: Iterable[int], byte: bytes = b"\x00") -> Path:
    """Copy a film with a byte in place of all bytes of some packets."""
    data = bytearray(source.read_bytes())
    packets = packets_of(source)
    for packet in (packets[number] for number in numbers):
        start = data.index(bytes(packet))
        data[start : start + packet.size] = byte * packet.size
    target.write_bytes(data)
    return target


def cut_first_ten(packets: list[av.Packet]) -> list[av.Packet]:
    """Move everything 10 frames of 1/25 s earlier, before zero: the muxer writes an edit list."""
    shift = int(Fraction(10, 25) / packets[0].time_base)
    for packet in packets:
        packet.pts = packet.pts - shift
        packet.dts = packet.dts - shift
    return packets


def cut_first_group(packets: list[av.Packet]) -> list[av.Packet]:
    """Leave out what is before the second key frame, as a recording that begins in a film's middle."""
    keys = [number for number, packet in enumerate(packets) if packet.is_keyframe]
    return packets[keys[1] :]


def pack(packets: list[av.Packet]) -> list[av.Packet]:
    """Put pictures of MPEG-4 into packets as XviD does ("packed bitstream")."""
    # The first of some B-pictures stands in one packet with the picture before it; an empty picture behind
    # the last of them makes the number of packets that of pictures again.
    pictures = [bytes(packet) for packet in packets]
    is_b = [_kind_of_vop(picture) == B_VOP for picture in pictures]
    is_b.append(False)  # behind the last picture
    empty_picture = VOP_START + b"\x50\x10"  # a P-picture whose bit "coded" is 0
    contents: list[bytes] = []
    number = 0
    while number < len(pictures):
        if not is_b[number + 1]:
            contents.append(pictures[number])
            number += 1
            continue
        contents.append(pictures[number] + pictures[number + 1])
        number += 2
        while is_b[number]:
            contents.append(pictures[number])
            number += 1
        contents.append(empty_picture)
    # The name of an encoder with a "p" at its end says that the stream is packed.
    user_data = b"\x00\x00\x01\xb2DivX503b1393p"
    contents[0] = user_data + contents[0]
    packed = []
    for number, content in enumerate(contents):
        packet = av.Packet(content)
        packet.pts = packet.dts = number
        packet.time_base = packets[0].time_base
        packet.is_keyframe = number == 0
        packed.append(packet)
    return packed


def _kind_of_vop(picture: bytes) -> int:
    """Return the kind of a picture of MPEG-4: 0 I, 1 P, 2 B, 3 S."""
    kind_byte = picture[picture.find(VOP_START) + len(VOP_START)]
    return kind_byte >> 6


IRREGULAR_TIMES = np.cumsum(1 + np.arange(100) % 3).tolist()
"""Times of 100 pictures in hundredths of a second, with steps of 1, 2, 3, 1, 2, 3, ..."""


def _other_codecs() -> dict[str, dict[str, Any]]:
    """Return how films are encoded whose codec is neither H.264 nor MPEG-4; all are read from key frames.

    In names of HEVC films, "cra" are open groups (pictures behind the key frame refer to the group before),
    "radl" pictures that are shown before a key frame and refer to it alone, "layers" temporal layers.
    """
    x265_settings = "keyint=24:min-keyint=24:scenecut=0:bframes=4:log-level=none:pools=none:frame-threads=1:"
    vpx = {
        "g": "24",
        "keyint_min": "24",
        "b": "400k",
        "deadline": "good",
        "cpu-used": "8",
        "lag-in-frames": "16",
        "auto-alt-ref": "1",  # pictures that are not shown
    }
    av1 = {"g": "24", "preset": "12", "crf": "20", "svtav1-params": "lp=1"}
    mpeg = {"g": "12", "bf": "2", "qscale": "2"}
    interlaced_mpeg = mpeg | {"flags": "+ildct+ilme", "alternate_scan": "1", "top": "1"}

    def hevc(params: str) -> dict[str, Any]:
        options = {"preset": "fast", "crf": "16", "x265-params": x265_settings + params}
        return {"codec": "libx265", "options": options}

    return {
        "hevc.mp4": hevc("open-gop=0"),
        "hevc_cra.mp4": hevc("open-gop=1"),
        "hevc_cra.mkv": hevc("open-gop=1:b-pyramid=0"),
        "hevc_cra.ts": hevc("open-gop=1"),
        "hevc_layers.mp4": hevc("open-gop=1:temporal-layers=3"),
        "hevc_radl.mp4": hevc("open-gop=0:radl=2"),
        "hevc_uneven.mkv": hevc("open-gop=1") | {"times": IRREGULAR_TIMES, "time_base": Fraction(1, 100)},
        "vp9.webm": {"codec": "libvpx-vp9", "options": vpx},
        "vp9.mp4": {"codec": "libvpx-vp9", "options": vpx},
        "vp8.webm": {"codec": "libvpx", "options": vpx},
        "av1.mkv": {"codec": "libsvtav1", "options": av1},
        "av1.mp4": {"codec": "libsvtav1", "options": av1},
        "mpeg2.ts": {"codec": "mpeg2video", "options": mpeg},
        "mpeg2.mkv": {"codec": "mpeg2video", "options": mpeg},
        "mpeg2_fields.mpg": {"codec": "mpeg2video", "options": interlaced_mpeg},
        "mpeg2.vob": {"codec": "mpeg2video", "options": mpeg},
        "mpeg2.avi": {"codec": "mpeg2video", "options": mpeg},
        "mpeg1.mpg": {"codec": "mpeg1video", "options": mpeg},
        "mpeg1.mkv": {"codec": "mpeg1video", "options": mpeg},
        "motion.mkv": {"codec": "mjpeg", "pix_fmt": "yuvj420p", "options": {"qscale": "2"}},
        "prores.mov": {"codec": "prores", "pix_fmt": "yuv422p10le"},
        "ffv1.mkv": {"codec": "ffv1", "options": {"g": "12"}},
        "wmv2.asf": {"codec": "wmv2", "options": {"g": "12", "qscale": "2"}},
        "raw.hevc": hevc("open-gop=0"),
    }


def _of_x264_and_mpeg4() -> dict[str, dict[str, Any]]:
    """Return how films of H.264 and MPEG-4 are encoded; `g` is the length of a group of pictures."""
    x264 = {"preset": "veryfast", "crf": "18"}
    gop = x264 | {"g": "24", "bf": "3", "sc_threshold": "0"}
    every_second = list(range(0, 200, 2))
    return {
        "no_b.mp4": {"options": x264 | {"g": "24", "bf": "0"}},
        "b1.mp4": {"options": gop | {"bf": "1"}},
        "b2.mkv": {"options": gop | {"bf": "2"}},
        "pyramid.mp4": {"options": gop | {"b-pyramid": "normal", "x264-params": "b-adapt=0"}},
        "pyramid_strict.mkv": {"options": gop | {"b-pyramid": "strict"}},
        "open_gop.mp4": {"options": gop | {"x264-params": "open-gop=1:b-adapt=0"}},
        "open_gop.ts": {"options": gop | {"x264-params": "open-gop=1:b-adapt=0"}},
        "refresh.mkv": {"options": gop | {"intra-refresh": "1"}},
        "closed.ts": {"options": gop},
        "interlaced.mp4": {"options": gop | {"flags": "+ildct+ilme"}},
        "flash.flv": {"options": gop},
        "uneven.mp4": {"options": gop, "times": IRREGULAR_TIMES, "time_base": Fraction(1, 100)},
        "uneven.mkv": {"options": gop, "times": IRREGULAR_TIMES, "time_base": Fraction(1, 100)},
        "fragmented.mp4": {"options": gop, "container_options": {"movflags": "frag_keyframe+empty_moov"}},
        # MPEG-4: "asp" is the advanced simple profile, with B-pictures; "sp" the simple one, without.
        "asp.avi": {"codec": "mpeg4", "options": {"g": "24", "bf": "2", "qscale": "3"}},
        "sp.avi": {"codec": "mpeg4", "options": {"g": "24", "bf": "0", "qscale": "3"}},
        "asp.mp4": {"codec": "mpeg4", "options": {"g": "24", "bf": "2", "qscale": "3"}},
        "h264.avi": {"options": gop},
        "dropped.avi": {
            "codec": "mpeg4",
            "options": {"g": "24", "bf": "0", "qscale": "3"},
            "times": every_second,
        },
        "fast.mp4": {"options": gop, "container_options": {"movflags": "faststart"}},
        "raw.h264": {"options": gop},
    }


HOW = _of_x264_and_mpeg4() | _other_codecs()
"""How each film is encoded."""


class Films(dict[str, Path]):
    """Name of a film -> its path; each film is encoded when its path is first asked for.

    Names are those of `HOW`, and packed.avi: asp.avi with packets as XviD writes them.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __missing__(self, name: str) -> Path:
        """Encode a film that has not been asked for before."""
        path = self.folder / name
        if name == "packed.avi":
            remux(self["asp.avi"], path, pack)
        else:
            encode(path, map(draw_number, range(100)), **HOW[name])
        self[name] = path
        return path


@pytest.fixture(scope="session")
def numbered_films(tmp_path_factory: pytest.TempPathFactory) -> Films:
    """One small film of each kind; 100 numbered pictures each."""
    return Films(tmp_path_factory.mktemp("films"))


@pytest.fixture(scope="session")
def cut_film(numbered_films: dict[str, Path]) -> Path:
    """A film whose edit list leaves out its first 10 of 100 pictures."""
    return remux(
        numbered_films["pyramid.mp4"],
        numbered_films["pyramid.mp4"].with_name("cut.mp4"),
        cut_first_ten,
        avoid_negative_ts="disabled",
    )


@pytest.fixture(scope="session")
def short_film(numbered_films: dict[str, Path]) -> Path:
    """A film whose edit list shows 45 of 100 pictures: its index ends early, its header still counts 100."""
    path = numbered_films["pyramid.mp4"].with_name("short.mp4")
    data = bytearray(numbered_films["pyramid.mp4"].read_bytes())
    duration = data.index(b"elst") + 12  # of the one edit, in milliseconds
    data[duration : duration + 4] = (1800).to_bytes(4, "big")
    path.write_bytes(data)
    return path


@pytest.fixture(scope="session")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with sound alone."""
    folder = tmp_path_factory.mktemp("sound")
    film = write_film(folder / "film.mp4", {"eng": np.zeros(RATE, np.float32)}, seconds=1.0)
    return remux(film, folder / "sound.mp4", list, kinds=("audio",))


@pytest.fixture(scope="session")
def beginless(numbered_films: dict[str, Path]) -> Callable[[str], Path]:
    """Make a film without its first group of pictures."""

    def make(name: str) -> Path:
        path = numbered_films[name].with_name(f"beginless-{numbered_films[name].stem}.mkv")
        return path if path.exists() else remux(numbered_films[name], path, cut_first_group)

    return make
