"""Make a copy of a film that browsers play, where they don't play the film: as little anew as possible.

The container alone, where the codecs are played; the sound, where only that is foreign; the pictures last.
Times are the film's.
"""

import os
from collections.abc import Callable, Iterable, Iterator
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
from obygaze_film.notes import message
from obygaze_film.workspace.cache import cache_folder, prepare_cache

MOST_LINES: Final = 540
"""Maximum height of a copy's pictures, in pixels: enough to judge by, and quick to encode."""

KEY_FRAME_S: Final = 2
"""Seconds between the key frames of a copy; with many key frames players jump quickly."""

TICK_S: Final = Fraction(1, 90_000)
"""Unit of the times in a copy, in seconds."""

SLACK_S: Final = 0.01
"""Seconds by which a frame's time in a copy may differ from the film's: each container rounds to its unit."""

SAMPLE_RATE: Final = 48_000
"""Sampling rate of a copy's sound, in samples per second."""

PLAYED_CODECS: Final = {
    "mov": ({"h264", "av1", "vp9"}, {"aac", "mp3", "opus", "flac"}),
    "webm": ({"vp8", "vp9", "av1"}, {"opus", "vorbis"}),
}
"""Container -> the codecs of pictures, and those of sound, that all common browsers play (FFmpeg's names)."""

Remade = Literal["nothing", "container", "sound", "pictures"]
"""The largest part of a film that must be made anew for browsers. If it is the sound, the container is made
anew too; if it is the pictures, everything is."""

CHUNK_BYTES: Final = 1 << 16
"""Bytes that are read at each of `N_CHUNKS` places of a film to identify it."""

N_CHUNKS: Final = 16
"""Places of a film's file, at equal distances, whose bytes identify it."""


def needs_copy(path: Path) -> bool:
    """Whether common browsers don't play a film as it is (`remade_part`)."""
    return remade_part(path) != "nothing"


def remade_part(path: Path) -> Remade:
    """Say what of a film must be made anew so that common browsers play it, each picture at the right time.

    Browsers play the codecs and containers of `PLAYED_CODECS`, if the film has 8 bits a sample, consists of
    one part and is not cropped.

    Raises
    ------
    VideoError
        The file is no video.
    """
    with opened(path) as source:
        container = "webm" if path.suffix.lower() == ".webm" else source.formats[0]
        sound_tracks = _playable_sound_tracks(source.container)
        sound_codecs = [track.codec_context.codec.canonical_name for track in sound_tracks]
        is_8_bit = source.context.pix_fmt in {"yuv420p", "yuvj420p"}
        picture_codec = source.codec
    film = probe(path)
    stream = film.stream
    sound_appears_later = "sound" in film.besides and not sound_codecs  # not yet where the file begins
    is_whole = stream is not None and stream.parts == 1 and not stream.crop
    if sound_appears_later or not is_8_bit or not is_whole:
        return "pictures"
    played_pictures, played_sounds = PLAYED_CODECS.get(container, (set(), set()))
    if picture_codec in played_pictures and played_sounds.issuperset(sound_codecs):
        return "nothing"
    # The copy is an MP4 file: what of the film may it hold unchanged?
    pictures_of_mp4, sounds_of_mp4 = PLAYED_CODECS["mov"]
    if picture_codec not in pictures_of_mp4:
        return "pictures"
    if sounds_of_mp4.issuperset(sound_codecs):
        return "container"
    return "sound"


def content_key(path: Path) -> str:
    """Return a key of a film's content: a digest of its size and of its bytes at some places.

    The key is the same wherever the file lies.
    """
    parts = []
    for file_path in files_of(path):
        size = file_path.stat().st_size
        parts.append(f"{size}".encode())
        with open_regular(file_path) as file:
            for index in range(N_CHUNKS):
                file.seek(size * index // N_CHUNKS)
                parts.append(file.read(CHUNK_BYTES))
    return sha256_of(b"".join(parts))[:32]


def proxy_path(path: Path) -> Path:
    """Return the path of a film's copy, whether or not the copy is there yet."""
    return cache_folder() / f"{content_key(path)}.mp4"


def make_proxy(path: Path, out: Path, progress: Callable[[float], None]) -> None:
    """Copy a film into an MP4 file that common browsers play, with each frame at its time in the film.

    Pictures and sound that browsers don't play are encoded anew, as H.264 (at most 540 lines high) and AAC.

    Parameters
    ----------
    path : Path
        The film.
    out : Path
        The copy. It is written under another name first, so that a file of this name is complete.
    progress : callable
        Is called with the seconds of the film that are done; may raise to stop the work.

    Raises
    ------
    VideoError
        The film cannot be decoded.
    """
    prepare_cache(out.parent)
    partial = out.with_name(f"{out.stem}.{os.getpid()}.part")
    try:
        remade = remade_part(path)
        is_copied = False
        if remade != "pictures":
            is_copied = _try_to_copy(path, partial, progress, keeps_sound=remade == "container")
        if not is_copied:
            with av.open(str(partial), "w", format="mp4") as made:
                _transcode(path, made, progress)
        partial.replace(out)
    except av.FFmpegError as error:
        raise VideoError(message("no_copy", path=path, error=error), path) from error
    finally:
        partial.unlink(missing_ok=True)


def first_sound(film: Any) -> Any:
    """Return the sound track that players choose, of an open container; None if it can't be decoded."""
    track = film.streams.best("audio")
    return None if track is None or track.codec_context is None else track


def _playable_sound_tracks(film: Any) -> list[Any]:
    """Return the sound track that players choose, in a list; the list is empty if it can't be decoded."""
    track = first_sound(film)
    return [] if track is None else [track]


def _with_decoding_times(packets: Iterable[Any]) -> Iterator[Any]:
    """Yield packets in the order given, each with a time of decoding (dts), which an MP4 file needs.

    The first packets of a Matroska file may lack it. They wait for the next packet of their stream that has
    one. If that is the third packet, with a dts of 10, the first two get 8 and 9. Packets without a time of
    presentation (pts) are left out.
    """
    waiting_of_stream: dict[int, list[Any]] = {}
    for packet in packets:
        if packet.pts is None or packet.time_base is None:
            continue
        waiting = waiting_of_stream.setdefault(packet.stream.index, [])
        waiting.append(packet)
        if packet.dts is not None:
            first_dts = packet.dts - len(waiting) + 1
            for index, waiting_packet in enumerate(waiting):
                waiting_packet.dts = first_dts + index
                yield waiting_packet
            waiting.clear()


def _try_to_copy(path: Path, out: Path, progress: Callable[[float], None], *, keeps_sound: bool) -> bool:
    """Copy a film's pictures without encoding them anew, and with `keeps_sound` its sound too.

    Returns
    -------
    bool
        Whether that worked. False if the film can't be copied so, or if its frames would be at other times.
    """
    try:
        with av.open(str(out), "w", format="mp4") as made, opened(path) as source:
            _copy_streams(source, made, progress, keeps_sound=keeps_sound)
        film_times, copy_times = frame_times(path), frame_times(out)
    except (av.FFmpegError, ValueError, VideoError):
        return False
    if len(film_times) != len(copy_times):
        return False
    return bool(np.all(np.abs(film_times - copy_times) < SLACK_S))


def _copy_streams(source: Any, made: Any, progress: Callable[[float], None], *, keeps_sound: bool) -> None:
    """Copy the pictures of an open film into the open container `made`, and copy its sound or encode it."""
    sound_tracks = _playable_sound_tracks(source.container)
    unchanged = [source.stream]
    if keeps_sound:
        unchanged += sound_tracks
    copied_streams = {stream.index: made.add_stream_from_template(stream) for stream in unchanged}
    sound = _Sound(made) if sound_tracks and not keeps_sound else None
    for track in sound_tracks:
        track.discard = Discard.default  # opening a film discards its sound: here it is read
    for packet in _with_decoding_times(source.demux(source.stream, *sound_tracks)):
        if packet.stream.index in copied_streams:
            # The film's times count from its first frame, those in its file may not. The units of the times
            # differ from stream to stream.
            origin = round(source.origin / packet.time_base)
            packet.pts -= origin
            packet.dts -= origin
            progress(max(float(packet.pts * packet.time_base), 0.0))
            packet.stream = copied_streams[packet.stream.index]
            made.mux(packet)
        elif sound is not None:
            for frame in packet.decode():
                sound.add(frame, float(frame.pts * frame.time_base - source.origin))
    if sound is not None:
        made.mux(sound.stream.encode(None))  # what the encoder still holds


def _transcode(path: Path, made: Any, progress: Callable[[float], None]) -> None:
    """Encode a film's pictures and sound anew into the open container `made`."""
    film = probe(path)
    frames_per_s = film.frames / (film.duration_s or 1)
    pictures = _Pictures(made, read_frames(path, at([0])), frames_per_s)
    sound = _Sound(made) if "sound" in film.besides else None
    for at_s, frame in played(path):
        if not isinstance(frame, av.AudioFrame):
            pictures.add(frame, at_s)
            progress(at_s)
        elif sound is not None:
            sound.add(frame, at_s)
    made.mux(pictures.stream.encode(None))  # what the encoder still holds
    if sound is not None:
        made.mux(sound.stream.encode(None))


class _Pictures:
    """Encodes pictures at their times, with square pixels, in the colours of BT.709.

    Parameters
    ----------
    made
        The open container that is written.
    first : Frames
        The film's first frame, which gives the size of all pictures.
    frames_per_s : float
        Frames per second of the film; gives the number of frames between key frames.

    Attributes
    ----------
    width, height : int
        Size of the pictures in the copy.
    stream
        The copy's stream of pictures.
    last_tick : int
        Time of the latest picture, in units of `TICK_S`; -1 before the first.
    """

    def __init__(self, made: Any, first: Frames[Any], frames_per_s: float) -> None:
        pixel_aspect = Fraction(str(first.stream.get("sample_aspect", "1:1")).replace(":", "/"))
        if first.rotation % 180:  # the frame was turned by a quarter, and its pixels with it
            pixel_aspect = 1 / pixel_aspect
        square_width = first.width * pixel_aspect
        # H.264 halves the resolution of colours: width and height must be even.
        self.height = int(min(MOST_LINES, first.height)) // 2 * 2
        self.width = max(2, round(square_width * self.height / first.height / 2) * 2)
        self.made = made
        self.stream = made.add_stream("libx264", options={"preset": "veryfast", "crf": "26"})
        self.stream.width, self.stream.height, self.stream.pix_fmt = self.width, self.height, "yuv420p"
        self.stream.time_base = self.stream.codec_context.time_base = TICK_S
        coding = self.stream.codec_context
        coding.colorspace, coding.color_range = Colorspace.ITU709, ColorRange.MPEG
        coding.color_primaries, coding.color_trc = ColorPrimaries.BT709, ColorTrc.BT709
        coding.gop_size = round(KEY_FRAME_S * frames_per_s)
        coding.max_b_frames = 0  # with such frames the first picture would get a later time than in the film
        self.last_tick = -1

    def add(self, picture: NDArray[np.uint8], at_s: float) -> None:
        """Encode a picture [H, W, 3] that is shown from `at_s` on, in seconds."""
        tick = round(at_s / TICK_S)
        if tick <= self.last_tick:  # the container can't hold two pictures of one time
            return
        self.last_tick = tick
        frame = av.VideoFrame.from_ndarray(picture, "rgb24").reformat(
            self.width, self.height, "yuv420p", dst_colorspace=Colorspace.ITU709
        )
        frame.pts, frame.time_base = tick, TICK_S
        self.made.mux(self.stream.encode(frame))


class _Sound:
    """Encodes sound as AAC, from the time of its first samples on.

    Samples are written one after another: a gap in the film's sound is closed, and what follows is earlier.

    Parameters
    ----------
    made
        The open container that is written.

    Attributes
    ----------
    stream
        The copy's stream of sound.
    next_sample : int or None
        Number of the next sample, counted from the film's start; None before the first.
    """

    def __init__(self, made: Any) -> None:
        self.made = made
        self.stream = made.add_stream("aac", rate=SAMPLE_RATE, layout="stereo")
        self.resampler = AudioResampler("fltp", "stereo", SAMPLE_RATE)
        self.next_sample: int | None = None

    def add(self, frame: Any, at_s: float) -> None:
        """Encode a frame of samples; `at_s`, its time in seconds, counts only for the first one."""
        if self.next_sample is None:
            self.next_sample = round(at_s * SAMPLE_RATE)
        for block in self.resampler.resample(frame):
            block.pts, block.time_base = self.next_sample, Fraction(1, SAMPLE_RATE)
            self.next_sample += block.samples
            if block.pts >= 0:  # sound from before the film's first picture is left out
                self.made.mux(self.stream.encode(block))
