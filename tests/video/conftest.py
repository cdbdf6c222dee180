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
VOP_START = b"\x00\x00\x01\xb6"


def draw(number: int) -> np.ndarray:
    """A picture with its number as 8 black or white bars, over a texture that moves."""
    picture = np.empty((HEIGHT, WIDTH, 3), np.uint8)
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
    picture[..., 0] = 128 + 90 * np.sin((x + 3 * number) / 7)
    picture[..., 1] = 128 + 90 * np.cos((y - 2 * number) / 5)
    picture[..., 2] = (x + y + 5 * number) % 256
    for bit in range(BITS):
        picture[: HEIGHT // 2, bit * 12 : bit * 12 + 12] = 255 * (number >> bit & 1)
    return picture


def number_in(picture: np.ndarray) -> int:
    """Read the number back."""
    bars = picture[2 : HEIGHT // 2 - 2, :WIDTH].mean(axis=(0, 2)).reshape(BITS, -1)[:, 3:-3].mean(axis=1)
    return sum(1 << bit for bit in range(BITS) if bars[bit] > 128)


def numbers_of(pictures: Iterable[np.ndarray]) -> list[int]:
    """Read the numbers in pictures."""
    return [number_in(picture) for picture in pictures]


def remux(
    source: Path,
    target: Path,
    edit: Callable[[list[av.Packet]], list[av.Packet]],
    kinds: Collection[str] = ("video",),
    **options: str,
) -> Path:
    """Copy the packets of a film's streams of some kinds into another container, edited on the way."""
    with av.open(str(source)) as opened, av.open(str(target), "w", options=options) as output:
        given = [stream for stream in opened.streams if stream.type in kinds]
        streams = {stream.index: output.add_stream_from_template(stream) for stream in given}
        for packet in edit([packet for packet in opened.demux(given) if packet.size]):
            packet.stream = streams[(packet.stream or given[0]).index]
            output.mux(packet)
    return target


def refused(path: Path, sampling: Sampling | None = None, **settings: object) -> str:
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
    """Begin at the second key frame, as a recording may: pictures follow that are shown before it."""
    keys = [number for number, packet in enumerate(packets) if packet.is_keyframe]
    return packets[keys[1] :]


def pack(packets: list[av.Packet]) -> list[av.Packet]:
    """Pack B-pictures as XviD does: one with the picture before it, an empty picture in its place."""
    pictures = [bytes(packet) for packet in packets]
    time_base = packets[0].time_base
    is_b = [picture[picture.find(VOP_START) + 4] >> 6 == 2 for picture in pictures]
    is_b.append(False)  # behind the last picture
    empty_picture = VOP_START + b"\x50\x10"
    packed: list[bytes] = []
    number = 0
    while number < len(pictures):
        if is_b[number + 1]:
            packed.append(pictures[number] + pictures[number + 1])
            number += 2
            while is_b[number]:
                packed.append(pictures[number])
                number += 1
            packed.append(empty_picture)
        else:
            packed.append(pictures[number])
            number += 1
    packed[0] = b"\x00\x00\x01\xb2DivX503b1393p" + packed[0]
    made = []
    for number, data in enumerate(packed):
        packet = av.Packet(data)
        packet.pts = packet.dts = number
        packet.time_base = time_base
        packet.is_keyframe = number == 0
        made.append(packet)
    return made


def _other_codecs() -> dict[str, dict[str, Any]]:
    """Films of all other codecs that are read from key frames."""
    quiet = "keyint=24:min-keyint=24:scenecut=0:bframes=4:log-level=none:pools=none:frame-threads=1:"
    vpx = {"g": "24", "keyint_min": "24", "b": "400k", "deadline": "good", "cpu-used": "8"}
    vpx |= {"lag-in-frames": "16", "auto-alt-ref": "1"}
    svt = {"g": "24", "preset": "12", "crf": "20", "svtav1-params": "lp=1"}
    mpeg = {"g": "12", "bf": "2", "qscale": "2"}
    field = mpeg | {"flags": "+ildct+ilme", "alternate_scan": "1", "top": "1"}

    def hevc(params: str) -> dict[str, Any]:
        return {"codec": "libx265", "options": {"preset": "fast", "crf": "16", "x265-params": quiet + params}}

    irregular = np.cumsum(1 + np.arange(100) % 3).tolist()
    return {
        "hevc.mp4": hevc("open-gop=0"),
        "hevc_cra.mp4": hevc("open-gop=1"),
        "hevc_cra.mkv": hevc("open-gop=1:b-pyramid=0"),
        "hevc_cra.ts": hevc("open-gop=1"),
        "hevc_layers.mp4": hevc("open-gop=1:temporal-layers=3"),
        "hevc_radl.mp4": hevc("open-gop=0:radl=2"),
        "hevc_uneven.mkv": hevc("open-gop=1") | {"times": irregular, "time_base": Fraction(1, 100)},
        "vp9.webm": {"codec": "libvpx-vp9", "options": vpx},
        "vp9.mp4": {"codec": "libvpx-vp9", "options": vpx},
        "vp8.webm": {"codec": "libvpx", "options": vpx},
        "av1.mkv": {"codec": "libsvtav1", "options": svt},
        "av1.mp4": {"codec": "libsvtav1", "options": svt},
        "mpeg2.ts": {"codec": "mpeg2video", "options": mpeg},
        "mpeg2.mkv": {"codec": "mpeg2video", "options": mpeg},
        "mpeg2_fields.mpg": {"codec": "mpeg2video", "options": field},
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
    """Films of the codecs that most have."""
    x264 = {"preset": "veryfast", "crf": "18"}
    gop = x264 | {"g": "24", "bf": "3", "sc_threshold": "0"}
    every_second = list(range(0, 200, 2))
    irregular = np.cumsum(1 + np.arange(100) % 3).tolist()
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
        "uneven.mp4": {"options": gop, "times": irregular, "time_base": Fraction(1, 100)},
        "uneven.mkv": {"options": gop, "times": irregular, "time_base": Fraction(1, 100)},
        "fragmented.mp4": {"options": gop, "container_options": {"movflags": "frag_keyframe+empty_moov"}},
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
    """Films by name, each encoded when it is first asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __missing__(self, name: str) -> Path:
        """Encode a film."""
        path = self.folder / name
        if name == "packed.avi":
            remux(self["asp.avi"], path, pack)
        else:
            encode(path, map(draw, range(100)), **HOW[name])
        self[name] = path
        return path


@pytest.fixture(scope="session")
def films(tmp_path_factory: pytest.TempPathFactory) -> Films:
    """One small film of each kind; 100 numbered pictures each."""
    return Films(tmp_path_factory.mktemp("films"))


@pytest.fixture(scope="session")
def cut_film(films: dict[str, Path]) -> Path:
    """A film whose edit list leaves out its first 10 of 100 pictures."""
    return remux(
        films["pyramid.mp4"],
        films["pyramid.mp4"].with_name("cut.mp4"),
        cut_first_ten,
        avoid_negative_ts="disabled",
    )


@pytest.fixture(scope="session")
def short_film(films: dict[str, Path]) -> Path:
    """A film whose edit list shows 45 of 100 pictures: its index ends early, its header still counts 100."""
    path = films["pyramid.mp4"].with_name("short.mp4")
    data = bytearray(films["pyramid.mp4"].read_bytes())
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
def beginless(films: dict[str, Path]) -> Callable[[str], Path]:
    """Make a film without its first group of pictures."""

    def make(name: str) -> Path:
        path = films[name].with_name(f"beginless-{films[name].stem}.mkv")
        return path if path.exists() else remux(films[name], path, cut_first_group)

    return make
