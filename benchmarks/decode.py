"""Time to get 32 evenly spread frames of a clip: ours against decord and OpenCV, one thread each.

Run by hand, with the dev extra: python benchmarks/decode.py [--seconds 60] [--repeats 5] [VIDEO ...]
Without videos, movie-like clips are made: pans, a walking figure, grain, a cut every few seconds. What is
gained hangs on the length of the groups of pictures and the share of B-frames: measure on your own films.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import av
import cv2
import decord
import numpy as np
from numpy.typing import NDArray
from tabulate import tabulate

from obygaze_features.video import index as video_index
from obygaze_features.video import read_frames, uniform

FRAMES = 32
RATE = 24
H264 = {"preset": "medium", "crf": "20", "profile": "high"}
CLIPS: dict[str, tuple[int, int, str, dict[str, str]]] = {
    "h264-640x272.mp4": (640, 272, "libx264", H264),
    "h264-1280x544.mp4": (1280, 544, "libx264", H264),
    "h264-1280x544.mkv": (1280, 544, "libx264", H264 | {"x264-params": "open-gop=1:keyint=120"}),
    "mpeg4-b-640x272.avi": (640, 272, "mpeg4", {"g": "250", "bf": "2", "qscale": "4"}),
}


def scenes(width: int, height: int, count: int, seed: int = 0) -> Iterator[NDArray[np.uint8]]:
    """Yield RGB frames: every 1 to 5 s another wall, panned, a figure walking before it, and grain."""
    rng = np.random.default_rng(seed)
    grain = rng.normal(0, 3, (24, height, width, 1)).astype(np.float32)
    done = 0
    while done < count:
        wall, figure = texture(rng, height, width + 512), texture(rng, height * 2 // 3, height // 3)
        pan, walk = rng.uniform(-3, 3), rng.uniform(-6, 6)
        length = min(int(rng.uniform(1, 5) * RATE), count - done)
        for step in range(length):
            left = int(np.clip(256 + pan * (step - length / 2), 0, 512))
            picture = wall[:, left : left + width].copy()
            place = int(np.clip(width / 2 + walk * (step - length / 2), 0, width - figure.shape[1]))
            picture[-figure.shape[0] :, place : place + figure.shape[1]] = figure
            yield (picture + grain[rng.integers(24)]).clip(0, 255).astype(np.uint8)
        done += length


def texture(rng: np.random.Generator, height: int, width: int) -> NDArray[np.float32]:
    """Make a picture of soft blobs with some fine detail."""
    blobs = rng.integers(0, 256, (height // 16 + 2, width // 16 + 2, 3), np.uint8)
    detail = rng.normal(0, 12, (height // 2, width // 2, 1)).astype(np.float32)
    soft = cv2.resize(blobs, (width, height), interpolation=cv2.INTER_CUBIC).astype(np.float32)
    return soft + cv2.resize(detail, (width, height), interpolation=cv2.INTER_LINEAR)[..., None]


def make(path: Path, seconds: int) -> Path:
    """Encode one clip of the table."""
    width, height, codec, options = CLIPS[path.name]
    with av.open(str(path), "w") as output:
        stream = output.add_stream(codec, rate=RATE, options=options)
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        stream.time_base = Fraction(1, RATE)
        for number, picture in enumerate(scenes(width, height, seconds * RATE)):
            frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
            frame.pts, frame.time_base = number, Fraction(1, RATE)
            output.mux(stream.encode(frame))
        output.mux(stream.encode(None))
    return path


def ours(path: Path) -> None:
    """Read the frames our way, cold: the packets are indexed anew."""
    video_index._index.cache_clear()
    read_frames(path, uniform(FRAMES))


def by_decord(path: Path) -> None:
    """Read the frames as the published features were read."""
    reader = decord.VideoReader(str(path), num_threads=1)
    reader.get_batch([i * len(reader) // FRAMES for i in range(FRAMES)]).asnumpy()


def by_opencv(path: Path) -> None:
    """Read the frames by grabbing every frame and retrieving those wanted."""
    capture = cv2.VideoCapture(str(path), cv2.CAP_FFMPEG, [cv2.CAP_PROP_N_THREADS, 1])
    count = int(capture.get(cv2.CAP_PROP_FRAME_COUNT))
    wanted = {i * count // FRAMES for i in range(FRAMES)}
    for number in range(max(wanted) + 1):
        capture.grab()
        if number in wanted:
            found, picture = capture.retrieve()
            if found:
                cv2.cvtColor(picture, cv2.COLOR_BGR2RGB)
    capture.release()


READERS: dict[str, Callable[[Path], None]] = {"ours": ours, "decord": by_decord, "OpenCV": by_opencv}


def measure(path: Path, repeats: int) -> dict[str, float]:
    """Median CPU milliseconds of each reader, their runs interleaved."""
    times: dict[str, list[float]] = {name: [] for name in READERS}
    for _ in range(repeats):
        for name, reader in READERS.items():
            begin = time.process_time()
            try:
                reader(path)
            except (decord.DECORDError, RuntimeError, cv2.error):
                times[name].append(float("nan"))
                continue
            times[name].append(1000 * (time.process_time() - begin))
    return {name: statistics.median(values) for name, values in times.items()}


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("videos", nargs="*", type=Path, help="videos of your own")
    parser.add_argument("--seconds", type=int, default=60, help="length of the clips that are made")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    cv2.setNumThreads(1)
    with tempfile.TemporaryDirectory() as folder:
        paths = options.videos or [make(Path(folder) / name, options.seconds) for name in CLIPS]
        rows = []
        for path in paths:
            took = measure(path, options.repeats)
            frames = read_frames(path, uniform(FRAMES))
            speed = {f"to {name}": took[name] / took["ours"] for name in took if name != "ours"}
            share = f"{frames.decoded}/{frames.total}"
            rows.append({"clip": path.name, "method": frames.method, "decoded": share} | took | speed)
    print(f"CPU milliseconds for {FRAMES} frames, one thread, median of {options.repeats} interleaved runs")
    print(tabulate(rows, headers="keys", tablefmt="github", floatfmt=".2f"))


if __name__ == "__main__":
    main()
