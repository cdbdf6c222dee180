"""Make a copy of a film that browsers play, where they don't play the film itself; its times are the film's."""

import os
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import av
from av.audio.resampler import AudioResampler
from av.stream import Discard

from obygaze_features.errors import VideoError
from obygaze_features.io import sha256_of
from obygaze_features.video.source import opened

MOST_LINES: Final = 540
KEY_S: Final = 2
"""Seconds between key frames, for quick jumps."""

TICK: Final = Fraction(1, 90_000)

PLAYED: Final = {
    "mov": ({"h264", "av1", "vp9"}, {"aac", "mp3", "opus", "flac"}),
    "webm": ({"vp8", "vp9", "av1"}, {"opus", "vorbis"}),
}
"""Codecs of pictures and of sound that all common browsers play, by container (FFmpeg's names)."""

CLOCK_S: Final = 0.02
"""Difference from the player's clock that nobody sees."""


def plays_in_browser(path: Path) -> bool:
    """Tell whether common browsers play a file: container, codecs and 8-bit pictures.

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
        return source.codec in pictures and is_8_bit and all(name in sounds for name in audio[:1])


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
    partial = out.with_name(f"{out.stem}.{os.getpid()}.part")
    try:
        with opened(path) as source, av.open(str(partial), "w", format="mp4") as made:
            _transcode(source, made, progress)
        partial.replace(out)
    except av.FFmpegError as error:
        raise VideoError(f"no copy for the browser could be made ({error})", path) from error
    finally:
        partial.unlink(missing_ok=True)


def _transcode(source: Any, made: Any, progress: Callable[[float], None]) -> None:
    film, origin = source.container, source.origin
    pictures: Any = source.stream
    sounds: Any = next(iter(film.streams.audio), None)
    if sounds is not None:
        sounds.discard = Discard.default  # nothing else of it is read for features
    height = min(MOST_LINES, pictures.height) // 2 * 2
    shape: Any = pictures.sample_aspect_ratio or Fraction(1)
    width = max(2, round(pictures.width * shape * height / pictures.height / 2) * 2)
    video = made.add_stream("libx264", options={"preset": "veryfast", "crf": "26"})
    video.width, video.height, video.pix_fmt = width, height, "yuv420p"
    video.time_base = video.codec_context.time_base = TICK
    video.codec_context.gop_size = round(KEY_S * float(pictures.average_rate or 25))
    video.codec_context.max_b_frames = 0  # the first picture's time is then the film's
    audio = made.add_stream("aac", rate=48_000, layout="stereo") if sounds is not None else None
    resampler = AudioResampler("fltp", "stereo", 48_000)
    last, heard = -1, None
    for frame in _frames(film, pictures, sounds):
        at = frame.pts * frame.time_base - origin
        if isinstance(frame, av.AudioFrame):
            if heard is None:
                heard = round(at * 48_000)
            for piece in resampler.resample(frame):
                # Samples follow each other: a track with holes keeps its beginning.
                piece.pts, piece.time_base = heard, Fraction(1, 48_000)
                heard += piece.samples
                if piece.pts >= 0:
                    made.mux(audio.encode(piece))
            continue
        ticks = round(at / TICK)
        if ticks <= last or ticks < 0:
            continue
        last = ticks
        small = frame.reformat(width, height, "yuv420p")
        small.pts, small.time_base, small.pict_type = ticks, TICK, 0
        made.mux(video.encode(small))
        progress(float(at))
    made.mux(video.encode(None))
    if audio is not None:
        made.mux(audio.encode(None))


def _frames(film: Any, *streams: Any) -> Any:
    for packet in film.demux([stream for stream in streams if stream is not None]):
        try:
            yield from (frame for frame in packet.decode() if frame.pts is not None)
        except av.error.InvalidDataError:
            continue
