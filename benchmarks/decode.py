"""Time to get 32 evenly spread frames of clips, and spans and windows of films: ours against other readers.

Run by hand, with the dev extra: python benchmarks/decode.py [--videos FOLDER] [--seconds 60] [--repeats 3]

The clips are cut, scaled, zoomed and panned from real videos with some grain, and encoded anew at film-like
rates; films are those clips over and over. What is gained hangs on the length of the groups of pictures and
on the bytes of the pictures to which no other refers: `--clips` measures videos of your own. All times are
CPU milliseconds of this process (all its threads), medians of interleaved runs with one decoding thread.
"""

import argparse
import importlib.util
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import Any

import av
import cv2
import decord
import numpy as np
from av.video.reformatter import VideoReformatter
from numpy.typing import NDArray
from tabulate import tabulate

from obygaze_features.video import Frames, VideoError, needed, read_frames, read_windows, sparse, uniform
from obygaze_features.video import index as video_index
from obygaze_features.video.heads import SKIPS_UNREFERENCED
from obygaze_features.video.nal import nal_length_size, nal_units
from obygaze_features.video.pictures import mpeg12_type, vop_type
from obygaze_features.video.source import opened

FRAMES = 32
RATE = 24
GRAIN = 4.0
MOST_PICTURES = 240
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
LOSSY = (decord.DECORDError, RuntimeError, cv2.error, ValueError)


def shots(videos: Sequence[Path], width: int, height: int, count: int) -> Iterator[NDArray[np.uint8]]:
    """Yield RGB frames: cuts of 1.5 to 6 s from real videos, slowly zoomed and panned, with grain."""
    rng = np.random.default_rng(0)
    grain = rng.normal(0, GRAIN, (12, height, width, 1)).astype(np.float32)
    films = [_pictures(video, width) for video in videos]
    done = 0
    while done < count:
        film = films[int(rng.integers(len(films)))]
        length = min(int(rng.uniform(1.5, 6) * RATE), len(film), count - done)
        first = int(rng.integers(len(film) - length + 1))
        zoom, drift = rng.uniform(1.15, 1.4, 2), rng.uniform(-0.5, 0.5, (2, 2))
        for step in range(length):
            scale, place = (a + (b - a) * step / length for a, b in (zoom, drift))
            picture = _crop(film[first + step], (width, height), scale, place)
            yield (picture + grain[rng.integers(12)]).clip(0, 255).astype(np.uint8)
        done += length


def _pictures(video: Path, width: int) -> list[NDArray[np.uint8]]:
    """Decode the beginning of a video, no wider than it is needed."""
    pictures = []
    with av.open(str(video)) as container:
        for frame in islice(container.decode(video=0), MOST_PICTURES):
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
    left, top = np.array([columns - width / scale, rows - height / scale]) / 2 * (1 + place)
    matrix = np.array([[1 / scale, 0, left], [0, 1 / scale, top]])
    moved = cv2.warpAffine(picture, matrix, size, flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP)
    return np.asarray(moved, np.uint8)


def make(folder: Path, names: Sequence[str], videos: Sequence[Path], seconds: int) -> None:
    """Encode some clips of the table, those of one size from the same pictures."""
    for size in sorted({CLIPS[name][:2] for name in names}):
        with ExitStack() as outputs:
            streams = []
            for name in (name for name in names if CLIPS[name][:2] == size):
                output = outputs.enter_context(av.open(str(folder / name), "w"))
                stream = output.add_stream(CLIPS[name][2], rate=RATE, options=CLIPS[name][3])
                stream.width, stream.height, stream.pix_fmt = *size, "yuv420p"
                stream.time_base = Fraction(1, RATE)
                streams.append((output, stream))
            for number, picture in enumerate(shots(videos, *size, seconds * RATE)):
                frame = av.VideoFrame.from_ndarray(picture, format="rgb24").reformat(format="yuv420p")
                frame.pts, frame.time_base = number, Fraction(1, RATE)
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
        kept = [(bytes(packet), packet.pts, packet.dts, packet.is_keyframe) for packet in packets]
        target, base = output.add_stream_from_template(stream), stream.time_base
        for time_ in range(times):
            for data, pts, dts, key in kept:
                packet = av.Packet(data)
                packet.pts, packet.dts = pts + time_ * length, dts + time_ * length
                packet.time_base, packet.is_keyframe, packet.stream = base, key, target
                output.mux(packet)
    return film


def ours(path: Path) -> None:
    """Read the frames our way, cold: the packets are indexed anew."""
    video_index._tables.clear()
    read_frames(path, uniform(FRAMES))


def by_decord(path: Path) -> None:
    """Read the frames as the published features were read."""
    reader = decord.VideoReader(str(path), num_threads=1)
    reader.get_batch([i * len(reader) // FRAMES for i in range(FRAMES)]).asnumpy()


def by_torchcodec(path: Path) -> None:
    """Read the frames with torchcodec's exact seeking."""
    from torchcodec.decoders import VideoDecoder

    decoder = VideoDecoder(str(path), num_ffmpeg_threads=1, seek_mode="exact")
    count = len(decoder)
    decoder.get_frames_at([i * count // FRAMES for i in range(FRAMES)])


def by_opencv(path: Path) -> None:
    """Read the frames by grabbing every frame and retrieving those wanted."""
    capture = cv2.VideoCapture(str(path), cv2.CAP_FFMPEG, [cv2.CAP_PROP_N_THREADS, 1])
    count = int(capture.get(cv2.CAP_PROP_FRAME_COUNT))
    if count <= 0:
        raise ValueError("OpenCV opens it without a picture")
    wanted = {i * count // FRAMES for i in range(FRAMES)}
    for number in range(max(wanted) + 1):
        capture.grab()
        if number in wanted:
            found, picture = capture.retrieve()
            if not found:
                raise ValueError("OpenCV lost a picture")
            cv2.cvtColor(picture, cv2.COLOR_BGR2RGB)
    capture.release()


def by_pyav(path: Path) -> None:
    """Decode everything up to the last frame wanted with PyAV."""
    table = video_index.index_packets(path)
    count = len(table.shown)
    wanted = {i * count // FRAMES for i in range(FRAMES)}
    with av.open(str(path)) as container:
        container.streams.video[0].thread_count = 1
        for number, frame in enumerate(container.decode(video=0)):
            if number in wanted:
                frame.to_ndarray(format="rgb24")
            if number == max(wanted):
                break


READERS: dict[str, Callable[[Path], None]] = {
    "ours": ours,
    "decord": by_decord,
    **({"torchcodec": by_torchcodec} if importlib.util.find_spec("torchcodec") else {}),
    "OpenCV": by_opencv,
    "PyAV": by_pyav,
}


def limit(path: Path) -> Callable[[], None]:
    """Give the function that has libavcodec decode exactly the packets that ours feeds, and give RGB.

    The packets are known and in memory beforehand: without opening, reading and indexing the file. RGB of the
    wanted frames belongs to it, as every reader has to give them.
    """
    table = video_index.index_packets(path)
    targets = [i * len(table.shown) // FRAMES for i in range(FRAMES)]
    wanted = {int(table.shown[target]) for target in targets}
    with opened(path) as source:
        feed = sparse.Feed(source, table, wanted, seeks=False)
        kept = [
            [(number, bytes(packet)) for number, packet in feed.needed(first, last)]
            for first, last in needed.runs(needed.needed_packets(table, targets))
        ]
        codec, extradata = source.context.name, source.context.extradata
    others: Any = "NONREF" if table.codec in SKIPS_UNREFERENCED else "DEFAULT"

    def decode() -> None:
        context = av.CodecContext.create(codec, "r")
        if extradata:
            context.extradata = extradata
        context.thread_count = 1
        reformatter = VideoReformatter()
        given = []

        def convert(frames: list[av.VideoFrame]) -> None:
            given.extend(
                reformatter.reformat(frame, format="rgb24", threads=1).to_ndarray()
                for frame in frames
                if frame.pts in wanted
            )

        for run in kept:
            for number, data in run:
                packet = av.Packet(data)
                packet.pts = number
                context.skip_frame = "DEFAULT" if number in wanted else others
                convert(context.decode(packet))
            convert(context.decode(None))
            context.flush_buffers()

    return decode


def left_out(path: Path, frames: Frames[Any]) -> str:
    """Say which share of the file's bytes is not decoded for these frames."""
    table = video_index.index_packets(path)
    if frames.method != "sparse":
        return "-"
    wanted = table.shown[frames.index].tolist()
    skipped, cuts = needed.left_out(table, wanted)
    by_itself = unreferenced(path, table.codec)
    by_itself[wanted] = False
    outside = ~needed.needed_packets(table, frames.index.tolist())
    cut = sum(stop - start for ranges in cuts.values() for start, stop in ranges)
    return f"{(table.size[outside | skipped | by_itself].sum() + cut) / table.size.sum():.0%}"


def unreferenced(path: Path, codec: str) -> NDArray[np.bool_]:
    """Mark the pictures that libavcodec leaves out by itself when it is told to."""
    flags = []
    with opened(path) as source:
        size = nal_length_size(source.context.extradata)
        for packet in source.packets():
            data = bytes(packet)
            if codec == "h264":
                slices = (unit[0] >> 5 == 0 for unit in nal_units(data, size) if unit[0] & 31 in (1, 5))
                flags.append(next(slices, False))
            else:
                kind = vop_type if codec == "mpeg4" else mpeg12_type
                flags.append(codec in SKIPS_UNREFERENCED and kind(data) == "B")
    return np.array(flags, np.bool_)


def medians(works: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Median CPU milliseconds of each work, their runs interleaved; NaN for one that can't be done."""
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(repeats):
        for name, work in works.items():
            begin = time.process_time()
            try:
                work()
            except LOSSY:
                times[name].append(float("nan"))
                continue
            times[name].append(1000 * (time.process_time() - begin))
    return {name: statistics.median(values) for name, values in times.items()}


def clips_table(paths: Sequence[Path], repeats: int) -> list[dict[str, object]]:
    """Measure every reader on every clip."""
    rows = []
    for path in paths:
        frames = read_frames(path, uniform(FRAMES))
        works: dict[str, Callable[[], object]] = {
            name: (lambda reader=reader, path=path: reader(path)) for name, reader in READERS.items()
        }
        if frames.method == "sparse" and path.suffix != ".avi":
            works["limit"] = limit(path)
        took = medians(works, repeats)
        speed = {f"to {name}": took[name] / took["ours"] for name in took if name not in ("ours", "limit")}
        speed["of limit"] = took["ours"] / took.get("limit", float("nan"))
        facts = {"clip": path.name, "method": frames.method, "decoded": f"{frames.decoded}/{frames.total}"}
        rows.append(facts | {"bytes left out": left_out(path, frames)} | took | speed)
        print(json.dumps(rows[-1]), flush=True)
    return rows


def quarter(frame: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Keep little of a frame: what a backbone would make of it is not measured here."""
    return frame[::4, ::4].copy()


def films_table(folder: Path, repeats: int) -> list[dict[str, object]]:
    """Measure spans and windows of films."""
    hevc, h264, ten = folder / "film-hevc.mp4", folder / "film-90.mp4", folder / "film-10.mp4"
    for film, clip, times in ((hevc, "hevc.mp4", 10), (h264, "h264.mp4", 90), (ten, "h264.mp4", 10)):
        if not film.exists():
            repeat(folder / clip, film, times)
        video_index.index_packets(film)
    rows: list[dict[str, object]] = []

    def row(what: str, new: Callable[[], object], old: Callable[[], object], at_most: float) -> None:
        took = medians({"ms": new, "compared with": old}, repeats)
        ratio = took["ms"] / took["compared with"]
        rows.append({"what": what} | took | {"ratio": ratio, "at most": at_most})
        print(json.dumps(rows[-1]), flush=True)

    def span(film: Path, start: float, length: float = 5.0) -> Callable[[], object]:
        return lambda: read_frames(film, uniform(FRAMES), start_s=start, end_s=start + length, each=quarter)

    row("5 s of HEVC at 9:20, against 0:20", span(hevc, 560), span(hevc, 20), 1.5)
    starts = np.random.default_rng(0).uniform(0, 5390, 20).tolist()

    def spans(ahead: int) -> None:
        sparse.SEEK_AHEAD, before = ahead, sparse.SEEK_AHEAD
        for start in starts:
            span(h264, start)()
        sparse.SEEK_AHEAD = before

    row(
        "20 spans of 5 s of 90 minutes, against no seeks",
        lambda: spans(sparse.SEEK_AHEAD),
        lambda: spans(1 << 40),
        0.4,
    )
    windows = [(4.0 * i, 4.0 * i + 8) for i in range(149)]

    def one_pass() -> None:
        for _, result in read_windows(ten, windows, [(uniform(FRAMES), quarter)]):
            if isinstance(result, VideoError):
                raise result

    row(
        "149 windows of 8 s every 4 s, against one by one with seeks",
        one_pass,
        lambda: [span(ten, start, 8.0)() for start, _ in windows],
        0.45,
    )
    return rows


def equal(path: Path) -> bool:
    """Whether the frames are bit-equal to those of decoding everything."""
    frames = read_frames(path, uniform(FRAMES))
    wanted = dict(zip(frames.index.tolist(), frames.images, strict=True))
    with av.open(str(path)) as container:
        container.streams.video[0].thread_count = 1
        return all(
            np.array_equal(frame.to_ndarray(format="rgb24"), wanted[number])
            for number, frame in enumerate(container.decode(video=0))
            if number in wanted
        )


def main() -> None:
    """Measure and print tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--clips", nargs="*", type=Path, default=[], help="videos of your own, as they are")
    parser.add_argument("--videos", type=Path, default=Path("../shared/data/videos"), help="what to cut from")
    parser.add_argument("--seconds", type=int, default=60, help="length of the clips that are made")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="keep what is made here, and use what is there")
    options = parser.parse_args()
    cv2.setNumThreads(1)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        paths = options.clips
        if not paths:
            videos = sorted(options.videos.glob("*"), key=lambda path: -path.stat().st_size)[:4]
            make(folder, [name for name in CLIPS if not (folder / name).exists()], videos, options.seconds)
            paths = [folder / name for name in CLIPS]
        rows = clips_table(paths, options.repeats)
        exact = {path.name: equal(path) for path in paths}
        films = [] if options.clips else films_table(folder, options.repeats)
    print(f"CPU milliseconds for {FRAMES} frames, one thread, median of {options.repeats} interleaved runs")
    print(tabulate(rows, headers="keys", tablefmt="github", floatfmt=".2f"))
    print(f"bit-equal to decoding everything: {', '.join(name for name, same in exact.items() if same)}")
    print(f"not equal: {', '.join(name for name, same in exact.items() if not same) or 'none'}")
    if films:
        print(tabulate(films, headers="keys", tablefmt="github", floatfmt=".2f"))


if __name__ == "__main__":
    main()
