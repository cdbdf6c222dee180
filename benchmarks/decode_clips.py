"""Make the clips and films of `decode.py`: cuts of real videos, encoded anew by every codec."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from fractions import Fraction
from itertools import islice
from pathlib import Path

import av
import cv2
import numpy as np
from numpy.typing import NDArray

VIDEOS = Path(__file__).parents[2] / "shared" / "data" / "videos"
"""What is cut from."""

RATE = 24
GRAIN = 4.0
MAX_PICTURES = 240
X265 = "keyint=250:bframes=4:open-gop=1:log-level=none:pools=none:frame-threads=1"
VPX = {
    "g": "120",
    "b": "900k",
    "deadline": "good",
    "cpu-used": "5",
    "auto-alt-ref": "1",
    "lag-in-frames": "25",
}
CLIPS: dict[str, tuple[int, int, str, dict[str, str]]] = {
    "h264.mp4": (640, 272, "libx264", {"preset": "medium", "b": "900k"}),
    "h264-1280x544.mp4": (1280, 544, "libx264", {"preset": "medium", "b": "2500k"}),
    "h264-open.mkv": (640, 272, "libx264", {"preset": "medium", "b": "900k", "x264-params": "open-gop=1"}),
    "hevc.mp4": (640, 272, "libx265", {"preset": "fast", "b": "600k", "x265-params": X265}),
    "mpeg2.mkv": (640, 272, "mpeg2video", {"g": "12", "bf": "2", "b": "3000k", "maxrate": "6000k"}),
    "vp9.webm": (640, 272, "libvpx-vp9", VPX),
    "av1.mkv": (640, 272, "libsvtav1", {"g": "120", "preset": "10", "crf": "34", "svtav1-params": "lp=1"}),
    "mpeg4-b.avi": (640, 272, "mpeg4", {"g": "250", "bf": "2", "b": "1200k"}),
}


def shots(videos: Sequence[Path], width: int, height: int, count: int) -> Iterator[NDArray[np.uint8]]:
    """Yield RGB frames: cuts of 1.5 to 6 s from real videos, slowly zoomed and panned, with grain."""
    rng = np.random.default_rng(0)
    grain = rng.normal(0, GRAIN, (12, height, width, 1)).astype(np.float32)
    films = [_pictures(video, width) for video in videos]
    n_drawn = 0
    while n_drawn < count:
        film = films[int(rng.integers(len(films)))]
        length = min(int(rng.uniform(1.5, 6) * RATE), len(film), count - n_drawn)
        first = int(rng.integers(len(film) - length + 1))
        zoom = rng.uniform(1.15, 1.4, 2)
        drift = rng.uniform(-0.5, 0.5, (2, 2))
        for step in range(length):
            scale, place = (a + (b - a) * step / length for a, b in (zoom, drift))
            picture = _crop(film[first + step], (width, height), scale, place)
            yield (picture + grain[rng.integers(12)]).clip(0, 255).astype(np.uint8)
        n_drawn += length


def _pictures(video: Path, width: int) -> list[NDArray[np.uint8]]:
    """Decode the beginning of a video, no wider than it is needed."""
    pictures = []
    with av.open(str(video)) as container:
        for frame in islice(container.decode(video=0), MAX_PICTURES):
            small = frame.reformat(width=width, height=max(frame.height * width // frame.width, 2) & ~1)
            pictures.append(small.to_ndarray(format="rgb24"))
    return pictures


def _crop(
    picture: NDArray[np.uint8], size: tuple[int, int], zoom: float, place: NDArray[np.float64]
) -> NDArray[np.uint8]:
    """Cut a window of the film's shape out of a picture, at a place and size between pixels."""
    width, height = size
    rows, columns = picture.shape[:2]
    scale = zoom * max(width / columns, height / rows)
    margin, top = np.array([columns - width / scale, rows - height / scale]) / 2 * (1 + place)
    matrix = np.array([[1 / scale, 0, margin], [0, 1 / scale, top]])
    moved = cv2.warpAffine(picture, matrix, size, flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP)
    return np.asarray(moved, np.uint8)


def make(folder: Path, names: Sequence[str], videos: Path, seconds: int) -> None:
    """Encode some clips of the table from a folder of videos, those of one size from the same pictures."""
    largest = sorted(videos.iterdir(), key=lambda path: -path.stat().st_size)[:4]
    for size in sorted({CLIPS[name][:2] for name in names}):
        with ExitStack() as outputs:
            streams = []
            for name in (name for name in names if CLIPS[name][:2] == size):
                output = outputs.enter_context(av.open(str(folder / name), "w"))
                stream = output.add_stream(CLIPS[name][2], rate=RATE, options=CLIPS[name][3])
                stream.width, stream.height, stream.pix_fmt = *size, "yuv420p"
                stream.time_base = Fraction(1, RATE)
                streams.append((output, stream))
            for number, picture in enumerate(shots(largest, *size, seconds * RATE)):
                frame = av.VideoFrame.from_ndarray(picture, format="rgb24").reformat(format="yuv420p")
                frame.pts = number
                frame.time_base = Fraction(1, RATE)
                for output, stream in streams:
                    output.mux(stream.encode(frame))
            for output, stream in streams:
                output.mux(stream.encode(None))


def repeat(clip: Path, film: Path, times: int) -> Path:
    """Copy a clip's packets one after the other, so often: a long film that costs no encoding."""
    with av.open(str(clip)) as source, av.open(str(film), "w") as output:
        stream = source.streams.video[0]
        packets = [packet for packet in source.demux(stream) if packet.size]
        times_shown = [packet.pts for packet in packets]
        length = round((max(times_shown) - min(times_shown)) * len(packets) / (len(packets) - 1))
        packet_data = [(bytes(packet), packet.pts, packet.dts, packet.is_keyframe) for packet in packets]
        target = output.add_stream_from_template(stream)
        base = stream.time_base
        for time_ in range(times):
            for data, pts, dts, key in packet_data:
                packet = av.Packet(data)
                packet.pts = pts + time_ * length
                packet.dts = dts + time_ * length
                packet.time_base = base
                packet.is_keyframe = key
                packet.stream = target
                output.mux(packet)
    return film
