"""Join films byte by byte, as DVDs, recordings and downloads are, of numbered pictures."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.video.conftest import draw_number
from tests.video.encoding import encode

FRAME_RATE = 25
X264_OPTIONS = {"preset": "ultrafast", "crf": "16", "g": "10", "bf": "2", "x264-params": "b-adapt=0"}
X265_OPTIONS = {
    "preset": "ultrafast",
    "crf": "16",
    "x265-params": "keyint=10:bframes=2:log-level=none:pools=none",
}
MPEG_2_OPTIONS = {"g": "9", "bf": "2", "qscale": "2"}
VPX_OPTIONS = {
    "g": "10",
    "crf": "10",
    "b": "1M",
    "deadline": "realtime",
    "cpu-used": "8",
    "auto-alt-ref": "0",
}
FRAGMENTS_OPTIONS = {"movflags": "frag_keyframe+empty_moov+default_base_moof"}
SETTINGS_OF_KINDS: dict[str, dict[str, object]] = {
    "mpeg2.vob": {"codec": "mpeg2video", "options": MPEG_2_OPTIONS},
    "mpeg1.mpg": {"codec": "mpeg1video", "options": MPEG_2_OPTIONS},
    "h264.ts": {"options": X264_OPTIONS},
    "hevc.ts": {"codec": "libx265", "options": X265_OPTIONS},
    "mpeg2.ts": {"codec": "mpeg2video", "options": MPEG_2_OPTIONS},
    "h264.mkv": {"options": X264_OPTIONS},
    "hevc.mkv": {"codec": "libx265", "options": X265_OPTIONS},
    "mpeg4.mkv": {"codec": "mpeg4", "options": {"g": "10", "bf": "2", "qscale": "2"}},
    "vp8.webm": {"codec": "libvpx", "options": VPX_OPTIONS},
    "vp9.webm": {"codec": "libvpx-vp9", "options": VPX_OPTIONS},
    "fragments.mp4": {"options": X264_OPTIONS, "container_options": FRAGMENTS_OPTIONS},
}
"""Codecs and containers of parts that FFmpeg reads on after the first; two at most in Matroska."""


def encode_part(path: Path, first: int, count: int, start_s: float = 0.0) -> Path:
    """Encode `count` pictures of the kind in the name, numbered from `first` on, shown from `start_s` on."""
    kind = next(kind for kind in SETTINGS_OF_KINDS if path.name.endswith(kind))
    settings: dict[str, Any] = dict(SETTINGS_OF_KINDS[kind])
    if kind == "hevc.ts" and count <= 2:
        # With B-frames, x265 sometimes gives so short a part a wrong time.
        settings["options"] = {"x265-params": "bframes=0:log-level=none:pools=none"}
    pictures = (draw_number(first + number) for number in range(count))
    first_time = round(FRAME_RATE * start_s)
    times = range(first_time, first_time + count)
    return encode(path, pictures, rate=FRAME_RATE, times=times, **settings)


def joined_byte_by_byte(path: Path, parts: Sequence[Path], cut: int = 0) -> Path:
    """Join files byte by byte, the first without its last `cut` bytes."""
    contents = [file.read_bytes() for file in parts]
    contents[0] = contents[0][: len(contents[0]) - cut]
    path.write_bytes(b"".join(contents))
    return path
