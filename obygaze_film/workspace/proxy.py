"""Make a copy of a film that browsers play, where they don't play the film: as little anew as possible.

The container alone, where the codecs are played; the sound, where only that is foreign; the pictures last.
Times are the film's.
"""

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, Literal

import av
import numpy as np
from av.audio.resampler import AudioResampler
from av.stream import Discard
from av.video.reformatter import ColorPrimaries, ColorRange, Colorspace, ColorTrc
from numpy.typing import NDArray

from obygaze_features.door import open_regular
from obygaze_features.errors import VideoError
from obygaze_features.io import sha256_of
from obygaze_features.video import Frames, at, files_of, frame_times, opened, played, probe, read_frames
from obygaze_film.notes import said

MOST_LINES: Final = 540
KEY_S: Final = 2
"""Seconds between key frames, for quick jumps."""

KEPT_S: Final = 90 * 86_400
"""Seconds after which a copy that nobody played is removed, when another is made."""

TICK: Final = Fraction(1, 90_000)

SLACK_S: Final = 0.01
"""By which a frame's time in a copy may differ: containers count in ticks of their own."""

RATE: Final = 48_000
"""Of sound, in samples a second."""

PLAYED: Final = {
    "mov": ({"h264", "av1", "vp9"}, {"aac", "mp3", "opus", "flac"}),
    "webm": ({"vp8", "vp9", "av1"}, {"opus", "vorbis"}),
}
"""Codecs of pictures and of sound that all common browsers play, by container (FFmpeg's names)."""

Anew = Literal["nothing", "container", "sound", "pictures"]

CHUNK, CHUNKS = 1 << 16, 16
"""Bytes of a film at so many places that tell it from others."""


def made_anew(path: Path) -> Anew:
    """Say what of a film must be made anew so that common browsers play it at its times.

    They play 8 bits, one part and no crop, of `PLAYED`.

    Raises
    ------
    VideoError
        It is no video.
    """
    with opened(path) as source:
        container = "webm" if path.suffix.lower() == ".webm" else source.formats[0]
        audio = [each.codec_context.codec.canonical_name for each in _sound(source.container)]
        is_8_bit = source.context.pix_fmt in {"yuv420p", "yuvj420p"}
        codec = source.codec
    film = probe(path)
    stream = film.stream
    appears_later = "sound" in film.besides and not audio
    if appears_later or not is_8_bit or stream is None or stream.parts != 1 or stream.crop:
        return "pictures"
    pictures, sounds = PLAYED.get(container, (set(), set()))
    if codec in pictures and sounds.issuperset(audio):
        return "nothing"
    pictures, sounds = PLAYED["mov"]
    return "pictures" if codec not in pictures else "container" if sounds.issuperset(audio) else "sound"


def content_key(path: Path) -> str:
    """Tell a film from others by its size and bytes at some places, wherever it lies."""
    told = []
    for each in files_of(path):
        size = each.stat().st_size
        told.append(f"{size}".encode())
        with open_regular(each) as file:
            for place in range(CHUNKS):
                file.seek(size * place // CHUNKS)
                told.append(file.read(CHUNK))
    return sha256_of(b"".join(told))[:32]


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
    """Return where the copy of a film is, or would be."""
    return cache_folder() / f"{content_key(path)}.mp4"


def private_cache(folder: Path) -> dict[Path, int]:
    """Make the folder of copies, for its owner alone; remove what nobody used for long, and list the rest."""
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)  # nobody else's business
    kept = {}
    for path in folder.iterdir():
        with suppress(OSError):  # somebody uses it, or removed it just now
            state = path.stat()
            if path.is_file() and time.time() - max(state.st_atime, state.st_mtime) > KEPT_S:
                path.unlink()
            else:
                kept[path] = state.st_size
    return kept


def make_proxy(path: Path, out: Path, progress: Callable[[float], None]) -> None:
    """Copy a film into MP4, what is foreign as H.264 (at most 540 lines high) and AAC, at the film's times.

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
    private_cache(out.parent)
    partial = out.with_name(f"{out.stem}.{os.getpid()}.part")
    try:
        if made_anew(path) == "pictures" or not _copied(path, partial, progress):
            with av.open(str(partial), "w", format="mp4") as made:
                _transcode(path, made, progress)
        partial.replace(out)
    except av.FFmpegError as error:
        raise VideoError(said("no_copy", path=path, error=error), path) from error
    finally:
        partial.unlink(missing_ok=True)


def _sound(film: Any) -> list[Any]:
    """List the sound track that players choose, if there is one that can be decoded."""
    track = film.streams.best("audio")
    return [] if track is None or track.codec_context is None else [track]


def _in_order(packets: Iterable[Any]) -> Iterator[Any]:
    """Give packets without a time of decoding, as Matroska's first ones are, those before the next."""
    held: dict[int, list[Any]] = {}
    for packet in packets:
        if packet.pts is None or packet.time_base is None:
            continue
        waiting = held.setdefault(packet.stream.index, [])
        waiting.append(packet)
        if packet.dts is not None:
            for place, each in enumerate(waiting):
                each.dts = packet.dts - len(waiting) + 1 + place
                yield each
            waiting.clear()


def _copied(path: Path, out: Path, progress: Callable[[float], None]) -> bool:
    """Copy the pictures as they are, and the sound if browsers play it; False where times would move."""
    keep_sound = made_anew(path) == "container"
    try:
        with av.open(str(out), "w", format="mp4") as made, opened(path) as source:
            tracks = _sound(source.container)
            copied = [source.stream, *(tracks if keep_sound else ())]
            streams = {each.index: made.add_stream_from_template(each) for each in copied}
            sound = _Sound(made) if tracks and not keep_sound else None
            for track in tracks:
                track.discard = Discard.default
            for packet in _in_order(source.demux(source.stream, *tracks)):
                if packet.stream.index in streams:
                    moved = round(source.origin / packet.time_base)
                    packet.pts, packet.dts = packet.pts - moved, packet.dts - moved
                    progress(max(float(packet.pts * packet.time_base), 0.0))
                    packet.stream = streams[packet.stream.index]
                    made.mux(packet)
                elif sound is not None:
                    for frame in packet.decode():
                        sound.add(frame, float(frame.pts * frame.time_base - source.origin))
            if sound is not None:
                made.mux(sound.stream.encode(None))
        before, after = frame_times(path), frame_times(out)
    except (av.FFmpegError, ValueError, VideoError):
        return False
    return len(before) == len(after) and bool(np.all(np.abs(before - after) < SLACK_S))


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
