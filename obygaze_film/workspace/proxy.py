"""Make a copy of a film that browsers play, where they don't play the film: as little anew as possible.

The container alone, where the codecs are played; the sound, where only that is foreign; the pictures last.
Times are the film's.
"""

import math
import os
from collections.abc import Callable, Collection, Iterable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import av
import numpy as np
from av.audio.resampler import AudioResampler
from av.stream import Discard, Disposition
from av.video.reformatter import ColorPrimaries, ColorRange, Colorspace, ColorTrc
from numpy.typing import NDArray

from obygaze_features.errors import VideoError
from obygaze_features.io import sha256_of
from obygaze_features.untrusted import open_regular
from obygaze_features.video import Frames, at, files_of, frame_times, opened, played, probe, read_frames
from obygaze_film.notes import message
from obygaze_film.workspace.cache import cache_folder, prepare_cache

MAX_LINES: Final = 540
"""Maximum height of a copy's pictures, in pixels: enough to judge by, and quick to encode."""

CONSTANT_QUALITY: Final = "26"
"""Quality of a copy's pictures, as x264 counts it (crf): 0 is lossless, 23 its default, 51 the worst."""

KEY_FRAME_S: Final = 2
"""Seconds between the key frames of a copy; with many key frames players jump quickly."""

TICK_S: Final = Fraction(1, 90_000)
"""Unit of the times in a copy, in seconds."""

SLACK_S: Final = 0.01
"""Seconds by which a frame's time in a copy may differ from the film's: each container rounds to its unit."""

TIMES_OF_COPY: Final = {"movie_timescale": "90000", "video_track_timescale": "90000"}
"""Options of FFmpeg's MP4: the file and its pictures count in `TICK_S`. Where pictures begin after the sound,
MP4 states the gap in units of the file, and Firefox reads it in units of the pictures."""

MARK_OF_COPY: Final = "copy for browsers, made by obygaze"
"""Comment in the metadata of a copy: its times have the units of `TIMES_OF_COPY`."""

MAX_LATE_S: Final = 0.1
"""Maximum time of the first picture, in seconds, in an MP4 file of others that is played as it is."""

SAMPLE_RATE: Final = 48_000
"""Sampling rate of a copy's sound, in samples per second."""

MP4: Final = "mov"
"""FFmpeg's name of the containers MP4 and MOV."""

PLAYED_CODECS: Final = {
    MP4: ({"h264", "av1", "vp9"}, {"aac", "mp3", "opus", "flac"}),
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
    """Find the costliest part of a film that must be made anew so that common browsers play it.

    Returns
    -------
    str
        `nothing` if all browsers play the film as it is, and alike; `container` if pictures and sound can be
        copied into an MP4 file; `sound` if the sound has to be encoded anew; `pictures` if both have to.

    Raises
    ------
    VideoError
        The file is no video.
    """
    encoding = _encoding_of(path)
    if not encoding.can_be_copied:
        return "pictures"

    # Do browsers play the file as it is?
    plays_pictures = _plays_pictures(encoding.container, encoding.picture_codec)
    plays_sound = _plays_sound(encoding.container, encoding.sound_codecs)
    if plays_pictures and plays_sound and encoding.is_alike_in_browsers:
        return "nothing"

    # If not, a copy is made, an MP4 file. What browsers play of such a file need not be encoded anew.
    if not _plays_pictures(MP4, encoding.picture_codec):
        return "pictures"
    if not _plays_sound(MP4, encoding.sound_codecs):
        return "sound"
    return "container"


class _Encoding(NamedTuple):
    """How a film's file is encoded, by FFmpeg's names.

    Attributes
    ----------
    container, picture_codec : str
    sound_codecs : list of str
        The codec of the sound; empty without sound.
    can_be_copied : bool
        Whether a copy can have the film's pictures without encoding them anew.
    is_alike_in_browsers : bool
        Whether every browser that plays the file shows the pictures that are read of it, at their times.
    """

    container: str
    picture_codec: str
    sound_codecs: list[str]
    can_be_copied: bool
    is_alike_in_browsers: bool


def _encoding_of(path: Path) -> _Encoding:
    """Read how a film's file is encoded, as far as it decides whether browsers can play it.

    It has the container, the codecs of pictures and sound, whether the pictures can be copied into another
    file as they are, and whether all browsers show this one alike.
    """
    with opened(path) as source:
        container = "webm" if path.suffix.lower() == ".webm" else source.formats[0]
        picture_codec = source.codec
        is_8_bit = source.context.pix_fmt in {"yuv420p", "yuvj420p"}
        sound_tracks = _playable_sound_tracks(source.container)
        sound_codecs = [track.codec_context.codec.canonical_name for track in sound_tracks]

        # Of films that begin later than at 0, as recordings of streams do, Chromium shows the pictures later
        # than Firefox. And of several tracks browsers play the first: it must be the one that is read here.
        starts_at_0 = abs(float(source.origin)) <= SLACK_S
        begins_alike_in_browsers = starts_at_0 and _do_browsers_agree_on_start(source)
        is_alike_in_browsers = begins_alike_in_browsers and _has_first_tracks(source, sound_tracks)

    film = probe(path)
    stream = film.stream
    is_one_uncropped_part = stream is not None and stream.parts == 1 and not stream.crop
    # A track of sound that only begins later in the file is found by probing it, and has no codec here.
    has_late_sound = "sound" in film.besides and not sound_codecs
    return _Encoding(
        container=container,
        picture_codec=picture_codec,
        sound_codecs=sound_codecs,
        can_be_copied=is_8_bit and is_one_uncropped_part and not has_late_sound,
        is_alike_in_browsers=is_alike_in_browsers,
    )


def _do_browsers_agree_on_start(source: Any) -> bool:
    """Whether all browsers take the pictures of an open film to begin at the same time.

    An MP4 file may have a gap before its first picture. It states the gap in units of the file, and Firefox
    reads it in units of the pictures. In our copies both units are the same; in other files they may differ,
    and then only a short gap does no harm.
    """
    is_mp4 = MP4 in source.formats
    is_our_copy = source.container.metadata.get("comment") == MARK_OF_COPY
    if not is_mp4 or is_our_copy:
        return True
    first_picture_s = float((source.stream.start_time or 0) * source.stream.time_base)
    return first_picture_s <= MAX_LATE_S


def _has_first_tracks(source: Any, sound_tracks: list[Any]) -> bool:
    """Whether the tracks of pictures and of sound that are read of an open film are its first ones.

    Covers do not count. `sound_tracks` has the track of sound that is read, or is empty.
    """
    streams = source.container.streams
    films = [track for track in streams.video if not track.disposition & Disposition.attached_pic]
    are_first_pictures = not films or films[0].index == source.stream.index
    is_first_sound = not sound_tracks or streams.audio[0].index == sound_tracks[0].index
    return are_first_pictures and is_first_sound


def _plays_pictures(container: str, codec: str) -> bool:
    """Whether browsers play pictures of a codec in a container."""
    picture_codecs, _ = PLAYED_CODECS.get(container, (set(), set()))
    return codec in picture_codecs


def _plays_sound(container: str, codecs: Collection[str]) -> bool:
    """Whether browsers play sound of all of these codecs in a container; true for a film without sound."""
    _, sound_codecs = PLAYED_CODECS.get(container, (set(), set()))
    return sound_codecs.issuperset(codecs)


def content_key(path: Path) -> str:
    """Return a key of a film's content: a digest of its size and of its bytes at some places.

    The key is the same wherever the file lies.
    """
    parts = []
    for file_path in files_of(path):  # a film may lie in several files
        size = file_path.stat().st_size
        parts.append(f"{size}".encode())
        with open_regular(file_path) as file:
            for index in range(N_CHUNKS):
                offset = size * index // N_CHUNKS
                file.seek(offset)
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
        # If browsers play the pictures, copying them is much faster than encoding them anew. The sound is
        # copied too if only the container has to be another one.
        remade = remade_part(path)
        is_copied = False
        if remade != "pictures":
            keeps_sound = remade == "container"
            is_copied = _try_to_copy(path, partial, progress, keeps_sound=keeps_sound)
        if not is_copied:
            # With these units of time, and the mark that says so, all browsers show the pictures alike.
            with av.open(str(partial), "w", format="mp4", options=TIMES_OF_COPY) as output:
                output.metadata["comment"] = MARK_OF_COPY
                _transcode(path, output, progress)
        partial.replace(out)
    except av.FFmpegError as error:
        raise VideoError(message("no_copy", path=path, error=error), path) from error
    finally:
        partial.unlink(missing_ok=True)


def first_sound(film: Any) -> Any:
    """Return the sound track of an open film that players choose; None without one that can be decoded."""
    track = film.streams.best("audio")
    if track is None or track.codec_context is None:  # no decoder is known
        return None
    return track


def _playable_sound_tracks(film: Any) -> list[Any]:
    """Return a list of the sound track that players choose, to be read with the pictures; [] without one."""
    track = first_sound(film)
    return [] if track is None else [track]


def _with_decoding_times(packets: Iterable[Any]) -> Iterator[Any]:
    """Yield packets in the order given, each with a time of decoding (dts), which an MP4 file needs.

    The first packets of a Matroska file may lack it: they wait for the first packet of their stream that has
    one. If the third packet has a dts of 10, the first two get 8 and 9. Packets without a time of
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
        Whether that worked. False if FFmpeg can't copy the streams or read the copy, or if the frames of the
        copy are at other times than the film's.
    """
    try:
        with (
            av.open(str(out), "w", format="mp4", options=TIMES_OF_COPY) as output,
            opened(path) as source,
        ):
            output.metadata["comment"] = MARK_OF_COPY
            _copy_streams(source, output, progress, keeps_sound=keeps_sound)
        film_times = frame_times(path)
        copy_times = frame_times(out)
    except (av.FFmpegError, ValueError, VideoError):  # the film is encoded anew instead
        return False
    if len(film_times) != len(copy_times):
        return False
    return bool(np.all(np.abs(film_times - copy_times) < SLACK_S))


def _copy_streams(source: Any, output: Any, progress: Callable[[float], None], *, keeps_sound: bool) -> None:
    """Copy the pictures of an open film into the open container `output`.

    Its sound is copied too with `keeps_sound`; else it is encoded anew. `progress` is called with the seconds
    of the film that are done.
    """
    sound_tracks = _playable_sound_tracks(source.container)
    for track in sound_tracks:
        track.discard = Discard.default  # opening a film discards its sound: here it is read

    # The copy's streams
    copied_tracks = [source.stream]
    if keeps_sound:
        copied_tracks += sound_tracks
    stream_of_copy = {track.index: output.add_stream_from_template(track) for track in copied_tracks}
    is_sound_encoded = bool(sound_tracks) and not keeps_sound
    encoded_sound = Sound(output) if is_sound_encoded else None

    # A packet is copied as it is, or decoded and encoded anew.
    for packet in _with_decoding_times(source.demux(source.stream, *sound_tracks)):
        index = packet.stream.index  # of the packet's track in the film
        if index in stream_of_copy:
            _move_to_film_time(packet, source.origin)
            time_in_film_s = float(packet.pts * packet.time_base)
            progress(max(time_in_film_s, 0.0))
            packet.stream = stream_of_copy[index]
            output.mux(packet)
        elif encoded_sound is not None:
            for frame in packet.decode():
                heard_at_s = float(frame.pts * frame.time_base - source.origin)
                encoded_sound.add(frame, heard_at_s)
    if encoded_sound is not None:
        encoded_sound.end()


def _move_to_film_time(packet: Any, origin_s: Any) -> None:
    """Change the times of a packet, so that they count from the film's first frame.

    That frame is at `origin_s` seconds of the file's times. A packet's times are whole numbers, in units of
    its stream's time base, such as 1 / 90,000 s.
    """
    origin = round(origin_s / packet.time_base)
    packet.pts -= origin
    packet.dts -= origin


def _transcode(path: Path, output: Any, progress: Callable[[float], None]) -> None:
    """Encode a film's pictures and sound anew into the open container `output`.

    `progress` is called with the seconds of the film that are done.
    """
    film = probe(path)
    frames_per_s = film.frames / (film.duration_s or 1)
    first_frame = read_frames(path, at([0]))
    pictures = _Pictures(output, first_frame, frames_per_s)
    has_sound = "sound" in film.besides  # what there is besides pictures
    sound = Sound(output) if has_sound else None
    for at_s, frame in played(path):  # pictures and sound, in the order of their times
        if isinstance(frame, av.AudioFrame):
            if sound is not None:
                sound.add(frame, at_s)
        else:
            pictures.add(frame, at_s)
            progress(at_s)
    output.mux(pictures.stream.encode(None))  # what the encoder still holds
    if sound is not None:
        sound.end()


def size_with_square_pixels(
    width: int, height: int, pixel_aspect: Fraction, *, max_lines: int
) -> tuple[int, int]:
    """Return width and height of a copy's pictures, whose pixels are square.

    Both numbers are even, as H.264 halves the resolution of colours.

    Parameters
    ----------
    width, height : int
        Size of the film's pictures, in their own pixels.
    pixel_aspect : Fraction
        Width of one of these pixels divided by its height.
    max_lines : int
        Maximum height of the copy's pictures.
    """
    even_height = min(max_lines, height) // 2 * 2
    width_in_proportion = width * pixel_aspect * even_height / height
    even_width = round(width_in_proportion / 2) * 2
    return max(2, even_width), even_height


class _Pictures:
    """Encodes pictures at their times, with square pixels, in the colours of BT.709.

    Parameters
    ----------
    output
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

    def __init__(self, output: Any, first: Frames[Any], frames_per_s: float) -> None:
        """Add a stream of H.264 pictures to an open container, for pictures like the film's first frame."""
        self.width, self.height = size_with_square_pixels(
            first.width, int(first.height), _pixel_aspect(first), max_lines=MAX_LINES
        )
        self.output = output
        stream = output.add_stream("libx264", options={"preset": "veryfast", "crf": CONSTANT_QUALITY})
        stream.width = self.width
        stream.height = self.height
        stream.pix_fmt = "yuv420p"
        stream.time_base = TICK_S
        coding = stream.codec_context
        coding.time_base = TICK_S
        _set_colours(coding)
        coding.gop_size = round(KEY_FRAME_S * frames_per_s)  # frames from one key frame to the next
        coding.max_b_frames = 0  # with such frames the first picture would get a later time than in the film
        self.stream = stream
        self.last_tick = -1  # time of the latest picture, in units of `TICK_S`; -1 before the first

    def add(self, picture: NDArray[np.uint8], at_s: float) -> None:
        """Encode a picture [H, W, 3] that is shown from `at_s` on, in seconds."""
        tick = round(at_s / TICK_S)
        has_new_time = tick > self.last_tick
        if not has_new_time:  # the container can't hold two pictures of one time
            return
        self.last_tick = tick

        in_rgb = av.VideoFrame.from_ndarray(picture, "rgb24")
        frame = in_rgb.reformat(self.width, self.height, "yuv420p", dst_colorspace=Colorspace.ITU709)
        frame.pts = tick
        frame.time_base = TICK_S
        self.output.mux(self.stream.encode(frame))


def _pixel_aspect(frame: Frames[Any]) -> Fraction:
    """Return the width of a decoded frame's pixels divided by their height."""
    ratio = str(frame.stream.get("sample_aspect", "1:1"))
    aspect = Fraction(ratio.replace(":", "/"))
    is_turned_by_quarter = frame.rotation % 180 != 0  # by 90 or 270 degrees, and its pixels with it
    return 1 / aspect if is_turned_by_quarter else aspect


def _set_colours(coding: Any) -> None:
    """Declare the colours that an encoder gets: those of BT.709 (HD television), in the limited range."""
    coding.colorspace = Colorspace.ITU709
    coding.color_primaries = ColorPrimaries.BT709
    coding.color_trc = ColorTrc.BT709
    coding.color_range = ColorRange.MPEG


class Sound:
    """Encodes sound as AAC, from the time of its first samples on.

    Samples are written one after another: a gap in the film's sound is closed, and what follows is earlier.

    Parameters
    ----------
    output
        The open container that is written.
    earliest_sample : float
        Frames that begin before this sample, counted from the start of what is written, are left out until
        one begins later.
    """

    def __init__(self, output: Any, earliest_sample: float = -math.inf) -> None:
        """Add a stream of AAC sound to an open container; samples are counted from the start of the film."""
        self._output = output
        self._stream = output.add_stream("aac", rate=SAMPLE_RATE, layout="stereo")
        self._resampler = AudioResampler("fltp", "stereo", SAMPLE_RATE)  # makes the encoder's kind of samples
        self._earliest_sample = earliest_sample  # frames before it are left out until one begins later
        self._next_sample: int | None = None  # number of the next one; None before the first

    def add(self, frame: Any, at_s: float) -> None:
        """Encode a frame of samples that is heard from `at_s` seconds on.

        The time counts only for the first frame that is encoded: samples of later ones follow without gaps.
        """
        if self._next_sample is None:  # nothing was encoded yet
            first_sample = round(at_s * SAMPLE_RATE)
            if first_sample < self._earliest_sample:
                return
            self._next_sample = first_sample
        for block in self._resampler.resample(frame):
            block.pts = self._next_sample
            block.time_base = Fraction(1, SAMPLE_RATE)
            self._next_sample += block.samples
            if block.pts >= 0:  # sound from before the film's first picture is left out
                self._output.mux(self._stream.encode(block))

    def end(self) -> None:
        """Write what the encoder still holds."""
        self._output.mux(self._stream.encode(None))
