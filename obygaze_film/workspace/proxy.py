"""Make a copy of a film that browsers play, where they don't play the film; its times are the film's."""

import os
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import av
import numpy as np
from av.audio.resampler import AudioResampler
from av.video.reformatter import ColorPrimaries, ColorRange, Colorspace, ColorTrc
from numpy.typing import NDArray

from obygaze_features.errors import VideoError
from obygaze_features.io import sha256_of
from obygaze_features.video import Frames, at, opened, played, probe, read_frames

MOST_LINES: Final = 540
KEY_S: Final = 2
"""Seconds between key frames, for quick jumps."""

KEPT_S: Final = 90 * 86_400
"""Seconds after which a copy that nobody played is removed, when another is made."""

TICK: Final = Fraction(1, 90_000)

RATE: Final = 48_000
"""Of sound, in samples a second."""

PLAYED: Final = {
    "mov": ({"h264", "av1", "vp9"}, {"aac", "mp3", "opus", "flac"}),
    "webm": ({"vp8", "vp9", "av1"}, {"opus", "vorbis"}),
}
"""Codecs of pictures and of sound that all common browsers play, by container (FFmpeg's names)."""


def plays_in_browser(path: Path) -> bool:
    """Tell whether common browsers play a file at its times: container, codecs, 8 bits, one part, no crop.

    Raises
    ------
    VideoError
        It is no video.
    """
    with opened(path) as source:
        container = "webm" if path.suffix.lower() == ".webm" else source.format.partition(",")[0]
        pictures, sounds = PLAYED.get(container, (set(), set()))
        audio = [stream.codec_context.codec.canonical_name for stream in source.container.streams.audio]
        is_8_bit = source.context.pix_fmt in {"yuv420p", "yuvj420p"}
        plays = source.codec in pictures and is_8_bit and all(name in sounds for name in audio[:1])
    stream = probe(path).stream
    return plays and stream is not None and stream.parts == 1 and not stream.crop


def cache_folder() -> Path:
    """Return the folder for copies of films: the system's for caches."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or str(Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = str(Path.home() / "Library" / "Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "obygaze" / "films"


def proxy_path(path: Path) -> Path:
    """Return where the copy of a film in its present state is, or would be."""
    status = path.stat()
    state = f"{path.absolute()}\0{status.st_size}\0{status.st_mtime_ns}"
    return cache_folder() / f"{sha256_of(os.fsencode(state))[:32]}.mp4"


def make_proxy(path: Path, out: Path, progress: Callable[[float], None]) -> None:
    """Transcode a film to H.264 and AAC in MP4, at most 540 lines high, each frame at its time in the film.

    Parameters
    ----------
    path : Path
    out : Path
        Written under another name first: what has this name is whole.
    progress : callable
        Called with the seconds done; may raise to stop.

    Raises
    ------
    VideoError
        The film cannot be decoded.
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    out.parent.chmod(0o700)  # nobody else's business
    for old in out.parent.glob("*.mp4"):
        if time.time() - max(old.stat().st_atime, old.stat().st_mtime) > KEPT_S:
            old.unlink(missing_ok=True)
    partial = out.with_name(f"{out.stem}.{os.getpid()}.part")
    try:
        with av.open(str(partial), "w", format="mp4") as made:
            _transcode(path, made, progress)
        partial.replace(out)
    except av.FFmpegError as error:
        raise VideoError(f"no copy for the browser could be made ({error})", path) from error
    finally:
        partial.unlink(missing_ok=True)


def _transcode(path: Path, made: Any, progress: Callable[[float], None]) -> None:
    film = probe(path)
    pictures = _Pictures(made, read_frames(path, at([0])), film.frames / (film.duration_s or 1))
    audio = _Sound(made) if "sound" in film.besides else None
    for at_s, shown in played(path):
        if not isinstance(shown, av.AudioFrame):
            pictures.add(shown, at_s)
            progress(at_s)
        elif audio is not None:
            audio.add(shown, at_s)
    made.mux(pictures.stream.encode(None))
    if audio is not None:
        made.mux(audio.stream.encode(None))


class _Pictures:
    """Encode pictures at their times, with square pixels, in BT.709; the first one gives their size."""

    def __init__(self, made: Any, first: Frames[Any], rate: float) -> None:
        shape = Fraction(str(first.stream.get("sample_aspect", "1:1")).replace(":", "/"))
        wide = first.width * (1 / shape if first.rotation % 180 else shape)
        self.height = int(min(MOST_LINES, first.height)) // 2 * 2
        self.width = max(2, round(wide * self.height / first.height / 2) * 2)
        self.made = made
        self.stream = made.add_stream("libx264", options={"preset": "veryfast", "crf": "26"})
        self.stream.width, self.stream.height, self.stream.pix_fmt = self.width, self.height, "yuv420p"
        self.stream.time_base = self.stream.codec_context.time_base = TICK
        coding = self.stream.codec_context
        coding.colorspace, coding.color_range = Colorspace.ITU709, ColorRange.MPEG
        coding.color_primaries, coding.color_trc = ColorPrimaries.BT709, ColorTrc.BT709
        coding.gop_size = round(KEY_S * rate)
        coding.max_b_frames = 0  # the first picture's time is then the film's
        self.last = -1

    def add(self, picture: NDArray[np.uint8], at_s: float) -> None:
        """Encode a picture [H, W, 3]."""
        ticks = round(at_s / TICK)
        if ticks <= self.last:
            return
        self.last = ticks
        frame = av.VideoFrame.from_ndarray(picture, "rgb24").reformat(
            self.width, self.height, "yuv420p", dst_colorspace=Colorspace.ITU709
        )
        frame.pts, frame.time_base = ticks, TICK
        self.made.mux(self.stream.encode(frame))


class _Sound:
    """Encode sound from its first time on; samples follow each other, so a hole moves what is after it."""

    def __init__(self, made: Any) -> None:
        self.made, self.stream = made, made.add_stream("aac", rate=RATE, layout="stereo")
        self.resampler = AudioResampler("fltp", "stereo", RATE)
        self.next: int | None = None

    def add(self, frame: Any, at_s: float) -> None:
        """Take samples."""
        if self.next is None:
            self.next = round(at_s * RATE)
        for block in self.resampler.resample(frame):
            block.pts, block.time_base = self.next, Fraction(1, RATE)
            self.next += block.samples
            if block.pts >= 0:
                self.made.mux(self.stream.encode(block))
