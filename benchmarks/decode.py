"""Time to get 32 evenly spread frames of clips, spans and windows of films, and to convert frames to RGB.

    python benchmarks/decode.py [--videos FOLDER] [--seconds 60] [--repeats 3] [--only hevc films] [--check]
    python benchmarks/decode.py --clips VIDEO...      measures videos of your own

With --check, exit code 1 if a figure misses its goal, or if frames are not equal.

The clips are cut, scaled, zoomed and panned from real videos with some grain, and encoded anew at film-like
rates; films are those clips over and over. What is gained hangs on the length of the groups of pictures and
on the bytes of the pictures to which no other refers: `--clips` measures videos of your own. All times are
CPU milliseconds of this process (all its threads), the least of interleaved runs with one decoding thread:
others on the machine only add to it.
"""

import ctypes
import importlib
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import av
import decord
import numpy as np
from av.container import InputContainer
from av.video.reformatter import VideoReformatter
from av.video.stream import VideoStream
from decode_clips import CLIPS, VIDEOS, make, repeat
from measure import arguments, in_turn, show, verdict
from numpy.typing import NDArray

from obygaze_features.errors import VideoError
from obygaze_features.video import decode as sparse
from obygaze_features.video import index as video_index
from obygaze_features.video import read_frames, read_windows, uniform
from obygaze_features.video.picture import Converter

FRAMES = 32
AT_LEAST: dict[str, tuple[str, float]] = {
    "h264.mp4": ("decord", 1.5),
    "h264-1280x544.mp4": ("decord", 1.5),
    "h264-open.mkv": ("decord", 1.5),
    "hevc.mp4": ("decord", 1.8),
    "mpeg2.mkv": ("decord", 3.0),
    "vp9.webm": ("decord", 1.15),
    "av1.mkv": ("PyAV", 1.15),  # decord cannot decode it
    "mpeg4-b.avi": ("decord", 1.0),
}
"""The reader to which a clip is compared, and the least ratio of its time to ours."""

FILMS = "films"
FILMED = ("hevc.mp4", "h264.mp4")
"""Clips that films are made of."""

M_TRIM_THRESHOLD = -1
M_MMAP_THRESHOLD = -3

MAX_CONVERSION = {"yuv420p": 1.1, "nv12": 1.7, "yuv420p10le": 1.7, "yuv422p10le": 1.7, "yuv420p12le": 1.7}
"""The format of a frame, and the most that its conversion to RGB may take, in times swscale's default."""

LOSSY = (decord.DECORDError, RuntimeError)


def ours(path: Path) -> None:
    """Read the frames our way, cold: the packets are indexed anew."""
    video_index._tables.clear()
    read_frames(path, uniform(FRAMES))


def by_decord(path: Path) -> None:
    """Read the frames as the published features were read."""
    reader = decord.VideoReader(str(path), num_threads=1)
    reader.get_batch([i * len(reader) // FRAMES for i in range(FRAMES)]).asnumpy()


def by_pyav(path: Path) -> None:
    """Decode everything up to the last frame wanted with PyAV."""
    count = len(video_index.index_packets(path).shown)
    numbers = {i * count // FRAMES for i in range(FRAMES)}
    with av.open(str(path)) as container:
        for number, frame in enumerate(container.decode(pictures_of(container))):
            if number in numbers:
                frame.to_ndarray(format="rgb24")
            if number == max(numbers):
                break


READERS: dict[str, Callable[[Path], None]] = {"ours": ours, "decord": by_decord, "PyAV": by_pyav}


def add_torchcodec() -> str:
    """Add torchcodec to the readers; say why if it cannot be loaded (it needs shared libraries of FFmpeg)."""
    try:
        decoders = importlib.import_module("torchcodec.decoders")
    except (ImportError, OSError, RuntimeError) as error:
        return f"torchcodec is left out: {str(error).splitlines()[0]}"

    def by_torchcodec(path: Path) -> None:
        reader = decoders.VideoDecoder(str(path), num_ffmpeg_threads=1, dimension_order="NHWC")
        count = reader.metadata.num_frames
        reader.get_frames_at([i * count // FRAMES for i in range(FRAMES)]).data.numpy()

    READERS["torchcodec"] = by_torchcodec
    return ""


def conversion_table(repeats: int) -> list[dict[str, Any]]:
    """Measure what the conversion of frames of 1920 x 1080 costs, against swscale's default."""
    y, x = np.mgrid[:1080, :1920]
    waves = [120 + 90 * np.sin(x / 97 + y / 210), 120 + 80 * np.cos(y / 133), 90 + 70 * np.sin((x + y) / 150)]
    grain = np.random.default_rng(0).normal(0, 3, (1080, 1920, 3))
    picture = av.VideoFrame.from_ndarray((np.stack(waves, axis=-1) + grain).clip(0, 255).astype(np.uint8))
    rows = []
    for name, most in MAX_CONVERSION.items():
        frame = picture.reformat(format=name)
        convert = Converter()
        plain = VideoReformatter()
        works: dict[str, Callable[[], object]] = {
            "ours": lambda frame=frame, convert=convert: [convert(frame) for _ in range(20)],
            "swscale": lambda frame=frame, plain=plain: [
                plain.reformat(frame, format="rgb24", threads=1).to_ndarray() for _ in range(20)
            ],
        }
        took = milliseconds(works, repeats)
        ratio = took["ours"] / took["swscale"]
        rows.append({"what": f"20 frames of {name}"} | took | {"ratio": ratio, "at most": most})
    return rows


def keep_memory() -> None:
    """Have glibc keep freed memory, as a worker does that reads one clip after the other.

    Else the figures depend on which reader gives its memory back to the system and which must get it anew
    (up to 4,700 page faults, or 4 ms, for 32 frames).
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_TRIM_THRESHOLD, 2**31 - 1)
        mallopt(M_MMAP_THRESHOLD, 1 << 25)


def clips_table(paths: Sequence[Path], repeats: int) -> list[dict[str, Any]]:
    """Measure every reader on every clip."""
    rows = []
    for path in paths:
        frames = read_frames(path, uniform(FRAMES))
        works: dict[str, Callable[[], object]] = {
            name: partial(reader, path) for name, reader in READERS.items()
        }
        took = milliseconds(works, repeats)
        speed = {f"to {name}": took[name] / took["ours"] for name in READERS if name != "ours"}
        facts = {"clip": path.name, "decoded": f"{frames.decoded} of {frames.total}", "equal": equal(path)}
        rows.append(facts | took | speed)
    return rows


def milliseconds(works: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Least CPU milliseconds of each work; NaN for one that can't be done."""
    taken = in_turn(works, repeats, least=True, lossy=LOSSY)
    return {name: 1e3 * took.cpu_s for name, took in taken.items()}


def quarter(frame: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Keep little of a frame: what a backbone would make of it is not measured here."""
    return frame[::4, ::4].copy()


def films_table(folder: Path, repeats: int) -> list[dict[str, Any]]:
    """Measure spans and windows of films, which are the clips of the folder over and over."""
    hevc = folder / "film-hevc.mp4"
    h264 = folder / "film-90.mp4"
    ten = folder / "film-10.mp4"
    for film, clip, times in ((hevc, "hevc.mp4", 10), (h264, "h264.mp4", 90), (ten, "h264.mp4", 10)):
        repeat(folder / clip, film, times)
        video_index.index_packets(film)

    def span(film: Path, start: float, length: float = 5.0) -> None:
        read_frames(film, uniform(FRAMES), start_s=start, end_s=start + length, each=quarter)

    starts = np.random.default_rng(0).uniform(0, 5390, 20).tolist()

    def spans(ahead: int) -> None:
        sparse.SEEK_AHEAD, before = ahead, sparse.SEEK_AHEAD
        for start in starts:
            span(h264, start)
        sparse.SEEK_AHEAD = before

    windows = [(4.0 * i, 4.0 * i + 8) for i in range(149)]

    def one_pass() -> None:
        for _, result in read_windows(ten, windows, [(uniform(FRAMES), quarter)]):
            if isinstance(result, VideoError):
                raise result

    pairs: dict[str, tuple[Callable[[], object], Callable[[], object], float]] = {
        "5 s of HEVC at 9:20 of 10 minutes, against 0:20": (
            lambda: span(hevc, 560),
            lambda: span(hevc, 20),
            1.5,
        ),
        "20 spans of 5 s of 90 minutes, against no seeks": (
            lambda: spans(sparse.SEEK_AHEAD),
            lambda: spans(1 << 40),
            0.4,
        ),
        "149 windows of 8 s every 4 s, against one by one": (
            one_pass,
            lambda: [span(ten, start, 8.0) for start, _ in windows],
            0.45,
        ),
    }
    rows = []
    for measure, (new, old, most) in pairs.items():
        took = milliseconds({"ours": new, "compared with": old}, repeats)
        rows.append(
            {"what": measure} | took | {"ratio": took["ours"] / took["compared with"], "at most": most}
        )
    return rows


def equal(path: Path) -> bool:
    """Whether the frames are bit-equal to those of decoding everything."""
    frames = read_frames(path, uniform(FRAMES))
    frame_of = dict(zip(frames.index.tolist(), frames.images, strict=True))
    with av.open(str(path)) as container:
        return all(
            np.array_equal(frame.to_ndarray(format="rgb24"), frame_of[number])
            for number, frame in enumerate(container.decode(pictures_of(container)))
            if number in frame_of
        )


def pictures_of(container: InputContainer) -> VideoStream:
    """Choose the stream of pictures that FFmpeg prefers, as `read_frames` does: a file may hold several."""
    stream = container.streams.best("video")
    assert isinstance(stream, VideoStream)
    stream.thread_count = 1
    return stream


def main() -> None:
    """Measure and print tables."""
    codecs = list(dict.fromkeys(Path(name).stem.partition("-")[0] for name in CLIPS))
    options = arguments(
        __doc__, videos=VIDEOS, seconds=60, repeats=3, only=[*codecs, FILMS], clips=[Path()], check=False
    )
    keep_memory()
    if missing := add_torchcodec():
        print(missing)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        films = FILMS in options.only
        names = [clip for clip in CLIPS if Path(clip).stem.partition("-")[0] in options.only]
        if has_own_clips := options.clips != [Path()]:
            paths = options.clips
            films = False
        else:
            make(
                folder,
                list(dict.fromkeys((*names, *(FILMED if films else ())))),
                options.videos,
                options.seconds,
            )
            paths = [folder / clip for clip in names]
        rows = clips_table(paths, options.repeats)
        show(rows)
        spans = films_table(folder, options.repeats) if films else []
        show(spans)
    conversions = [] if has_own_clips else conversion_table(options.repeats)
    show(conversions)
    wrong = [
        f"{row['clip']}: frames that decoding everything does not give" for row in rows if not row["equal"]
    ]
    for row in [] if has_own_clips else rows:
        reader, goal = AT_LEAST[row["clip"]]
        if row[f"to {reader}"] < goal:
            wrong.append(f"{row['clip']}: {row[f'to {reader}']:.2f} times {reader}, {goal} asked")
    wrong += [
        f"{row['what']}: {row['ratio']:.2f}"
        for row in [*spans, *conversions]
        if row["ratio"] > row["at most"]
    ]
    verdict(wrong, check=options.check)


if __name__ == "__main__":
    main()
