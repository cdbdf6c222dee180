"""Encode a film that browsers don't play while it plays, from where one looks, as fragments of MP4."""

from collections.abc import Iterator
from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import av
from av.audio.resampler import AudioResampler
from av.stream import Discard
from av.video.reformatter import Interpolation

from obygaze_features.errors import VideoError
from obygaze_features.video import opened, probe
from obygaze_film.notes import said
from obygaze_film.workspace.proxy import RATE, TICK, first_sound, made_anew

MOST_LINES: Final = 480
"""Maximum height of the pictures, in pixels: enough to judge by, and quick to encode."""

FRAGMENT_S: Final = 1
"""Seconds of a fragment, which begins with a key frame."""

EARLIER_S: Final = 0.001
"""Seconds by which times of containers are rounded."""

WITH_SOUND: Final = 'video/mp4; codecs="avc1.42E01F, mp4a.40.2"'
SILENT: Final = 'video/mp4; codecs="avc1.42E01F"'
"""What is sent, as the browser is told: H.264 in its plainest profile, and AAC."""

AHEAD: Final = 1024
"""Samples by which AAC begins before its first sound. Sound begins that much later than the pictures; FFmpeg
shifts a stream that begins before 0."""

FRAGMENTED: Final = {"movflags": "frag_keyframe+empty_moov+default_base_moof", "flush_packets": "1"}
"""Options of FFmpeg's MP4: the header has no pictures, and a fragment is written at once."""


def streamed_type(path: Path) -> str:
    """Say what kind of stream a film is encoded as while it plays; empty where none is needed, or possible.

    A film of several parts, one that is cropped, turned or not in one file, is only copied: its pictures are
    converted one by one (`proxy.make_proxy`).

    Raises
    ------
    VideoError
        The file is no video.
    """
    if not path.is_file() or made_anew(path) == "nothing":
        return ""
    film = probe(path)
    stream = film.stream
    if stream is None or stream.parts != 1 or stream.crop:
        return ""
    with opened(path) as source:
        frame = next(source.container.decode(source.stream), None)
        if frame is None or frame.rotation:
            return ""
    return WITH_SOUND if "sound" in film.besides else SILENT


class _Chunks:
    """A file that is only written, and read by taking what was written."""

    def __init__(self) -> None:
        self.written: list[bytes] = []

    def write(self, data: bytes) -> int:
        """Keep data until it is taken."""
        self.written.append(bytes(data))
        return len(data)

    def take(self) -> bytes:
        """Return what was written since the last time."""
        data = b"".join(self.written)
        self.written.clear()
        return data


class _Sound:
    """The sound of a stream, encoded as AAC without gaps.

    Parameters
    ----------
    made
        The container that it is written into.
    """

    def __init__(self, made: Any) -> None:
        self._made = made
        self._stream = made.add_stream("aac", rate=RATE, layout="stereo")
        self._resampler = AudioResampler("fltp", "stereo", RATE)
        self._next_sample: int | None = None

    def add(self, frame: Any, from_start_s: float) -> None:
        """Encode sound that begins so many seconds after the stream; times of later sound are counted on."""
        if self._next_sample is None:
            first_sample = round(from_start_s * RATE)
            if first_sample < AHEAD:
                return
            self._next_sample = first_sample
        for block in self._resampler.resample(frame):
            block.pts = self._next_sample
            block.time_base = Fraction(1, RATE)
            self._next_sample += block.samples
            self._made.mux(self._stream.encode(block))

    def end(self) -> None:
        """Encode what is left."""
        self._made.mux(self._stream.encode(None))


class FilmStream:
    """A film from a time on, encoded as it is read.

    Parameters
    ----------
    path : Path
    start_s : float
        Seconds of the film's time line.

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
        self._stack = ExitStack()
        self._frames = self._decoded(path, start_s)
        first = None
        why = f"no picture from {start_s:g} s on"
        try:
            first = next(self._frames, None)
        except (av.FFmpegError, ValueError) as error:
            why = str(error)
        if first is None:
            self._stack.close()
            raise VideoError(said("no_copy", path=path, error=why), path)
        self.start_s, self._first = first

    def _decoded(self, path: Path, start_s: float) -> Iterator[tuple[float, Any]]:
        """Yield the pictures from a time on, and the sound from the first of them on, with their times."""
        source = self._stack.enter_context(opened(path))
        container, video = source.container, source.stream
        self._pixel_aspect = Fraction(video.codec_context.sample_aspect_ratio or 1)
        self._rate = video.average_rate or Fraction(25)
        self._track = first_sound(container)
        if start_s > 0 and video.time_base is not None:
            container.seek(int((start_s + source.origin) / video.time_base), stream=video, backward=True)
        is_started = False
        streams = [video]
        if self._track is not None:
            self._track.discard = Discard.default
            streams.append(self._track)
        for packet in source.demux(*streams):
            try:
                frames = packet.decode()
            except av.InvalidDataError:
                continue  # a damaged picture is left out, as players do
            for frame in frames:
                if frame.pts is None or frame.time_base is None:
                    continue
                at_s = float(frame.pts * frame.time_base - source.origin)
                if at_s < start_s - EARLIER_S:
                    continue
                if isinstance(frame, av.VideoFrame):
                    is_started = True
                if is_started:
                    yield at_s, frame

    def chunks(self) -> Iterator[bytes]:
        """Encode the film to its end; yield what was encoded since the chunk before."""
        written = _Chunks()
        with self._stack, av.open(written, "w", format="mp4", options=FRAGMENTED) as made:
            pictures = self._add_pictures(made)
            sound = None if self._track is None else _Sound(made)
            last_tick = -1
            for at_s, frame in self._from_first():
                from_start_s = at_s - self.start_s
                if isinstance(frame, av.VideoFrame):
                    tick = round(from_start_s / TICK)
                    # Two pictures of one time, as damaged files have them, cannot both be shown.
                    if tick > last_tick:
                        last_tick = tick
                        made.mux(pictures.encode(self._scaled(frame, pictures, tick)))
                elif sound is not None:
                    sound.add(frame, from_start_s)
                if written.written:
                    yield written.take()
            made.mux(pictures.encode(None))
            if sound is not None:
                sound.end()
        yield written.take()

    def _from_first(self) -> Iterator[tuple[float, Any]]:
        yield self.start_s, self._first
        yield from self._frames

    def _add_pictures(self, made: Any) -> Any:
        """Add the stream of pictures: square pixels, no picture that refers to a later one."""
        first = self._first
        high = min(MOST_LINES, first.height) // 2 * 2
        width = max(2, round(first.width * self._pixel_aspect * high / first.height / 2) * 2)
        options = {"preset": "superfast", "crf": "24", "profile": "baseline", "tune": "fastdecode"}
        stream = made.add_stream("libx264", options=options)
        stream.width, stream.height, stream.pix_fmt = width, high, "yuv420p"
        stream.time_base = stream.codec_context.time_base = TICK
        stream.codec_context.gop_size = max(1, round(FRAGMENT_S * self._rate))
        stream.codec_context.max_b_frames = 0
        return stream

    def _scaled(self, frame: Any, stream: Any, tick: int) -> Any:
        """Scale a picture, quickly, and give it its time in the stream."""
        scaled = frame.reformat(
            stream.width, stream.height, "yuv420p", interpolation=Interpolation.FAST_BILINEAR
        )
        scaled.pts, scaled.time_base, scaled.pict_type = tick, TICK, 0
        return scaled
