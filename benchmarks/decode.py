"""Time to get 32 evenly spread frames of clips, and spans and windows of films: ours against other readers.

Run by hand, with the dev extra:

    python benchmarks/decode.py [--videos FOLDER] [--seconds 60] [--repeats 3] [--only hevc vp9] [--check]

With --check, exit code 1 if a figure misses its goal that a reader could reach, or if frames are not equal.

The clips are cut, scaled, zoomed and panned from real videos with some grain, and encoded anew at film-like
rates; films are those clips over and over. What is gained hangs on the length of the groups of pictures and
on the bytes of the pictures to which no other refers: `--clips` measures videos of your own. All times are
CPU milliseconds of this process (all its threads), the least of interleaved runs with one decoding thread:
others on the machine only add to it.
"""

import argparse
import ctypes
import importlib.util
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import av
import cv2
import decord
import numpy as np
from decode_clips import CLIPS, make, repeat
from decode_goals import MISSED, figures
from decode_limit import left_out, limit
from numpy.typing import NDArray
from tabulate import tabulate

from obygaze_features.errors import VideoError
from obygaze_features.video import decode as sparse
from obygaze_features.video import index as video_index
from obygaze_features.video import read_frames, read_windows, uniform

FRAMES = 32
FILMS = "films"
FILMED = ("hevc.mp4", "h264.mp4")
"""Clips that films are made of."""

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3

LOSSY = (decord.DECORDError, RuntimeError, cv2.error, ValueError)


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


def keep_memory() -> None:
    """Have glibc keep freed memory, as a worker does that reads one clip after the other.

    Else the figures depend on which reader gives its memory back to the system and which must get it anew
    (up to 4,700 page faults, or 4 ms, for 32 frames).
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_TRIM_THRESHOLD, 2**31 - 1)
        mallopt(M_MMAP_THRESHOLD, 1 << 25)


def fastest(works: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Least CPU milliseconds of each work, their runs interleaved; NaN for one that can't be done."""
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
    return {name: min(values) for name, values in times.items()}


def demux(path: Path) -> None:
    """Read all packets with PyAV, and do nothing with them."""
    with av.open(str(path)) as container:
        for _ in container.demux(video=0):
            pass


def clips_table(paths: Sequence[Path], repeats: int, folder: Path) -> list[dict[str, Any]]:
    """Measure every reader on every clip."""
    rows = []
    for path in paths:
        frames = read_frames(path, uniform(FRAMES))
        works: dict[str, Callable[[], object]] = {
            name: (lambda reader=reader, path=path: reader(path)) for name, reader in READERS.items()
        }
        if frames.method == "sparse" and path.suffix != ".avi":
            needed = folder / f"{path.stem}.needed.mkv"
            works["limit"] = limit(path, frames.index.tolist(), needed)
            works["demuxing needed"] = lambda needed=needed: demux(needed)
            if not all(map(np.array_equal, works["limit"](), frames.images)):
                raise ValueError(f"{path.name}: the limit gives other frames")
        works["demuxing"] = lambda path=path: demux(path)
        took = fastest(works, repeats)
        speed = {f"to {name}": took[name] / took["ours"] for name in READERS if name != "ours"}
        speed["of limit"] = took["ours"] / took.get("limit", float("nan"))
        facts: dict[str, Any] = {
            "clip": path.name,
            "method": frames.method,
            "decoded": f"{frames.decoded}/{frames.total}",
        }
        facts |= {"bytes left out": left_out(path, frames), "equal": equal(path)}
        rows.append(facts | took | speed)
        print(json.dumps(rows[-1]), flush=True)
    return rows


def quarter(frame: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Keep little of a frame: what a backbone would make of it is not measured here."""
    return frame[::4, ::4].copy()


def films_table(folder: Path, repeats: int) -> list[dict[str, object]]:
    """Measure spans and windows of films, which are the clips of the folder over and over."""
    hevc, h264, ten = folder / "film-hevc.mp4", folder / "film-90.mp4", folder / "film-10.mp4"
    for film, clip, times in ((hevc, "hevc.mp4", 10), (h264, "h264.mp4", 90), (ten, "h264.mp4", 10)):
        if not film.exists():
            repeat(folder / clip, film, times)
        video_index.index_packets(film)
    rows: list[dict[str, object]] = []

    def row(what: str, new: Callable[[], object], old: Callable[[], object], at_most: float) -> None:
        took = fastest({"ms": new, "compared with": old}, repeats)
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
    codecs = sorted({Path(name).stem.partition("-")[0] for name in CLIPS})
    parser.add_argument("--only", nargs="+", choices=[*codecs, FILMS], help="measure these alone")
    parser.add_argument("--check", action="store_true", help="exit 1 if a figure misses a goal within reach")
    options = parser.parse_args()
    only = options.only or [*codecs, *([] if options.clips else [FILMS])]
    cv2.setNumThreads(1)
    keep_memory()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        paths = options.clips
        if not paths:
            videos = sorted(options.videos.glob("*"), key=lambda path: -path.stat().st_size)[:4]
            names = [name for name in CLIPS if Path(name).stem.partition("-")[0] in only]
            missing = dict.fromkeys((*names, *(FILMED if FILMS in only else ())))
            make(folder, [name for name in missing if not (folder / name).exists()], videos, options.seconds)
            paths = [folder / name for name in names]
        rows = clips_table(paths, options.repeats, Path(temporary))
        films = films_table(folder, options.repeats) if FILMS in only else []
    print(
        f"CPU milliseconds for {FRAMES} frames, one thread, the least of {options.repeats} interleaved runs"
    )
    print(tabulate(rows, headers="keys", tablefmt="github", floatfmt=".2f"))
    if films:
        print(tabulate(films, headers="keys", tablefmt="github", floatfmt=".2f"))
    goals = list(figures(rows, films))
    print(tabulate([goal.row() for goal in goals], headers="keys", tablefmt="github", floatfmt=".2f"))
    unequal = [row["clip"] for row in rows if not row["equal"]]
    print(f"frames that are not bit-equal to those of decoding everything: {', '.join(unequal) or 'none'}")
    if options.check and (unequal or any(goal.verdict == MISSED for goal in goals)):
        sys.exit(1)


if __name__ == "__main__":
    main()
