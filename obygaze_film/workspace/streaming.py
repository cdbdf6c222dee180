"""Encode a film that browsers don't play while it plays, from where one looks, as fragments of MP4."""

from collections.abc import Iterator
from contextlib import ExitStack
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import Any, Final

import av
from av.stream import Discard
from av.video.reformatter import Interpolation

from obygaze_features.errors import VideoError
from obygaze_features.video import opened, probe
from obygaze_film.notes import message
from obygaze_film.workspace.proxy import (
    TICK_S,
    Sound,
    first_sound,
    needs_copy,
    size_with_square_pixels,
)

MAX_LINES: Final = 480
"""Maximum height of the pictures, in pixels: enough to judge by, and quick to encode."""

FRAGMENT_S: Final = 1
"""Length of a fragment in seconds; each begins with a key frame."""

SLACK_S: Final = 0.001
"""Seconds by which a picture may be before the time asked for: containers round times to milliseconds."""

TYPE_WITH_SOUND: Final = 'video/mp4; codecs="avc1.42E01F, mp4a.40.2"'
TYPE_WITHOUT_SOUND: Final = 'video/mp4; codecs="avc1.42E01F"'
"""Media types of the stream: H.264 in its plainest profile, with AAC or without sound."""

PRIMING_SAMPLES: Final = 1024
"""Samples that AAC puts before the first sound. The sound begins at least that much after the pictures:
otherwise the stream would begin before 0, and FFmpeg would shift all of it."""

CONSTANT_QUALITY: Final = "24"
"""Quality of the pictures, as x264 counts it (crf): 0 is lossless, 23 its default, 51 the worst."""

DEFAULT_FPS: Final = Fraction(25)
"""Frames per second of a film whose file does not state them."""

FRAGMENTED: Final = {"movflags": "frag_keyframe+empty_moov+default_base_moof", "flush_packets": "1"}
"""Options of FFmpeg's MP4: the header has no pictures, and each fragment is written at once."""


def stream_type(path: Path) -> str:
    """Return the media type under which a film is encoded while browsers play it; empty if it is not.

    It is not needed for a film that browsers play as it is. One that consists of several parts, is cropped or
    turned, or is not in one file can't be sent so: it needs a copy (`proxy.make_proxy`).

    Raises
    ------
    VideoError
        The file is no video.
    """
    not_streamed = ""
    if not path.is_file():
        return not_streamed
    plays_as_it_is = not needs_copy(path)
    if plays_as_it_is:
        return not_streamed

    film = probe(path)
    pictures = film.stream
    if pictures is None or pictures.parts != 1 or pictures.crop:
        return not_streamed
    with opened(path) as source:
        first_frame = next(source.container.decode(source.stream), None)
        if first_frame is None or first_frame.rotation:
            return not_streamed
    has_sound = "sound" in film.besides  # what there is besides pictures
    return TYPE_WITH_SOUND if has_sound else TYPE_WITHOUT_SOUND


class _Chunks:
    """A file in memory for FFmpeg to write into, from which the data are taken while it is written."""

    def __init__(self) -> None:
        """Begin with an empty file in memory."""
        self._not_taken: list[bytes] = []  # what was written since `take` was called last

    def write(self, data: bytes) -> int:
        """Keep data until they are taken; return their length, as files do."""
        self._not_taken.append(bytes(data))
        return len(data)

    def take(self) -> bytes:
        """Return what was written since the last call, and clear it."""
        data = b"".join(self._not_taken)
        self._not_taken.clear()
        return data


def _decoded(source: Any, sound_track: Any, start_s: float) -> Iterator[tuple[float, Any]]:
    """Yield frames with their times in seconds: pictures from `start_s` on, sound after the first picture.

    `sound_track` is one of the tracks of the open film; None for no sound.
    """
    _seek_key_frame(source, start_s)
    streams = [source.stream]
    if sound_track is not None:
        sound_track.discard = Discard.default  # opening a film discards its sound: here it is read
        streams.append(sound_track)

    has_picture = False  # whether a picture was yielded, so that sound may follow
    for packet in source.demux(*streams):
        for frame in _frames_of(packet):
            at_s = float(frame.pts * frame.time_base - source.origin)
            is_before_start = at_s < start_s - SLACK_S  # between the key frame and the time
            if is_before_start:
                continue
            if isinstance(frame, av.VideoFrame):
                has_picture = True
            if has_picture:
                yield at_s, frame


def _seek_key_frame(source: Any, start_s: float) -> None:
    """Go to the last key frame at or before a time of an open film: there decoding can begin."""
    video = source.stream
    if start_s > 0 and video.time_base is not None:
        position = int((start_s + source.origin) / video.time_base)
        source.container.seek(position, stream=video, backward=True)


def _frames_of(packet: Any) -> list[Any]:
    """Decode the frames of a packet that have a time; [] if it is damaged: players leave it out too."""
    try:
        frames = packet.decode()
    except av.InvalidDataError:
        return []
    return [frame for frame in frames if frame.pts is not None and frame.time_base is not None]


def _unplayable(path: Path, problem: str) -> VideoError:
    """Return the error that says why a film can't be sent."""
    return VideoError(message("no_copy", path=path, error=problem), path)


class FilmStream:
    """A film from a time on, encoded while it is read.

    Parameters
    ----------
    path : Path
    start_s : float
        Time in the film, in seconds from its first picture.

    Attributes
    ----------
    start_s : float
        Time of the first picture that is sent: the stream's own times count from it.

    Raises
    ------
    VideoError
        The film can't be decoded there.
    """

    def __init__(self, path: Path, start_s: float) -> None:
        """Open a film at a time, and decode its first picture from there on.

        It is decoded at once, so that errors are raised before the answer to the browser begins.
        """
        self._open_film = ExitStack()  # keeps the film open until `chunks` ends
        try:
            source = self._open_film.enter_context(opened(path))
            self._sound_track = first_sound(source.container)  # None if the film is silent
            # Pictures and pieces of sound with their times, each decoded when it is asked for
            self._frames = _decoded(source, self._sound_track, start_s)
            time_and_picture = next(self._frames, None)
        except (av.FFmpegError, ValueError) as error:
            self._open_film.close()
            raise _unplayable(path, str(error)) from None
        if time_and_picture is None:
            self._open_film.close()
            raise _unplayable(path, f"no picture from {start_s:g} s on")

        # The first picture is at the time asked for, or up to one frame later.
        self.start_s, self._first_picture = time_and_picture
        self._pixel_aspect = Fraction(source.stream.codec_context.sample_aspect_ratio or 1)
        self._frames_per_s = source.stream.average_rate or DEFAULT_FPS

    def chunks(self) -> Iterator[bytes]:
        """Encode the film to its end; yield the bytes of the stream as they are encoded."""
        memory = _Chunks()  # the encoder writes into it
        with self._open_film, av.open(memory, "w", format="mp4", options=FRAGMENTED) as output:
            pictures = self._add_pictures(output)
            sound = None
            if self._sound_track is not None:
                sound = Sound(output, earliest_sample=PRIMING_SAMPLES)

            next_free_tick = 0  # a tick is `TICK_S` seconds, the unit of the pictures' times
            first = (self.start_s, self._first_picture)  # which was decoded before
            for at_s, frame in chain([first], self._frames):
                time_in_stream_s = at_s - self.start_s
                if isinstance(frame, av.VideoFrame):
                    tick = round(time_in_stream_s / TICK_S)
                    # Two pictures of one time, as damaged files have them, cannot both be shown.
                    if tick >= next_free_tick:
                        next_free_tick = tick + 1
                        output.mux(pictures.encode(self._scaled(frame, pictures, tick)))
                elif sound is not None:
                    sound.add(frame, time_in_stream_s)
                data = memory.take()
                if data:
                    yield data

            output.mux(pictures.encode(None))  # what the encoder still holds
            if sound is not None:
                sound.end()
        yield memory.take()  # what closing the container wrote

    def _add_pictures(self, output: Any) -> Any:
        """Add a stream of pictures to the container that is written: with square pixels, quick to encode.

        Returns the stream.
        """
        options = {
            "preset": "superfast",
            "crf": CONSTANT_QUALITY,
            "profile": "baseline",
            "tune": "fastdecode",
        }
        stream = output.add_stream("libx264", options=options)
        first = self._first_picture
        stream.width, stream.height = size_with_square_pixels(
            first.width, first.height, self._pixel_aspect, max_lines=MAX_LINES
        )
        stream.pix_fmt = "yuv420p"
        stream.time_base = TICK_S
        coding = stream.codec_context
        coding.time_base = TICK_S
        coding.gop_size = max(1, round(FRAGMENT_S * self._frames_per_s))
        coding.max_b_frames = 0  # no picture refers to a later one, so that each can be sent at once
        return stream

    def _scaled(self, frame: Any, stream: Any, tick: int) -> Any:
        """Scale a picture to the size of the stream, and give it its time in units of `TICK_S`."""
        scaled = frame.reformat(
            stream.width, stream.height, "yuv420p", interpolation=Interpolation.FAST_BILINEAR
        )
        scaled.pts = tick
        scaled.time_base = TICK_S
        scaled.pict_type = 0  # the encoder chooses which pictures are key frames, not the film
        return scaled
