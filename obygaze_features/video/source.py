"""One video stream, opened for one-threaded reading, or the reason why it can't be."""

import os
import stat
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
from av.bitstream import BitStreamFilterContext
from av.container import InputContainer
from av.stream import Discard, Disposition
from av.video.codeccontext import VideoCodecContext
from av.video.stream import VideoStream

from obygaze_features.errors import VideoError
from obygaze_features.video.errors import UNREADABLE

HEAD_BYTES = 1 << 16


@dataclass(frozen=True)
class Source:
    """An open file and the one video stream that is read from it."""

    path: Path
    container: InputContainer
    stream: VideoStream

    @property
    def context(self) -> VideoCodecContext:
        """The decoder of the stream."""
        return self.stream.codec_context

    @property
    def codec(self) -> str:
        """Name of the codec, e.g. ``h264``."""
        return self.context.name

    @property
    def format(self) -> str:
        """Short names of the container format, e.g. ``matroska,webm``."""
        return self.container.format.name

    @property
    def origin(self) -> Fraction:
        """Time stamp in seconds at which a player's clock shows zero: where the earliest stream starts."""
        start = Fraction(self.container.start_time or 0, av.time_base)
        own = self.stream.start_time
        if own is not None and self.stream.time_base is not None:
            exact = own * self.stream.time_base
            # The container rounds to microseconds; our own stream knows the exact value.
            if abs(exact - start) <= Fraction(1, av.time_base):
                return exact
        return start

    def packets(self) -> "Iterator[av.Packet[Any]]":
        """Yield the non-empty packets of the stream in decoding order."""
        for packet in self.container.demux(self.stream):
            if packet.size:
                yield packet

    def unpacked(self) -> "Iterator[av.Packet[Any]]":
        """Yield MPEG-4 packets with one picture each, packed B-frames taken apart."""
        unpack = BitStreamFilterContext("mpeg4_unpack_bframes", self.stream)
        for packet in self.packets():
            yield from (piece for piece in unpack.filter(packet) if piece.size)
        yield from (piece for piece in unpack.filter(None) if piece.size)


@dataclass(slots=True)
class Tally:
    """Frames that a decoder gave, and packets that it refused."""

    decoded: int = 0
    errors: int = 0


@contextmanager
def opened(path: Path, *, strict: bool = False) -> Iterator[Source]:
    """Open a file's video stream with one thread; everything else in the file is left unread.

    With several video streams it is the one that players choose.

    Raises
    ------
    VideoError
        The file is missing, is no file, is empty, is no video, or holds no video stream that can be decoded.
    """
    check_file(path)
    try:
        container = av.open(str(path), mode="r", metadata_errors="replace")
    except UNREADABLE as error:
        raise VideoError(diagnose(path), path) from error
    with container:
        try:
            source = Source(path, container, choose_stream(container, path))
            source.context.thread_count = 1
            # Frame threads lose the last pictures at an error.
            source.context.thread_type = "SLICE"
            if strict:
                source.context.options = {"err_detect": "explode"}
        except UNREADABLE as error:
            raise VideoError(diagnose(path), path) from error
        yield source


def check_file(path: Path) -> None:
    """Refuse what is not a non-empty, readable file."""
    try:
        status = path.stat()
    except FileNotFoundError:
        raise VideoError("there is no such file", path) from None
    except OSError as error:
        raise VideoError(f"the file cannot be reached ({error.strerror})", path) from None
    if stat.S_ISDIR(status.st_mode):
        raise VideoError("this is a directory, not a video file", path)
    if not stat.S_ISREG(status.st_mode):
        raise VideoError("this is not a regular file", path)
    if status.st_size == 0:
        raise VideoError("the file is empty (0 bytes)", path)
    if not os.access(path, os.R_OK):
        raise VideoError("the file may not be read (permission denied)", path)


def choose_stream(container: InputContainer, path: Path) -> VideoStream:
    """Choose the video stream that players choose, and switch the others off."""
    stream = container.streams.best("video")
    if not isinstance(stream, VideoStream):
        raise VideoError("the file has no video stream (sound only?)", path)
    if stream.disposition & Disposition.attached_pic:
        raise VideoError("the file has no video stream, only a cover picture", path)
    if stream.codec_context is None:
        raise VideoError("the codec of the video stream is not known here", path)
    for other in container.streams:
        if other.index != stream.index:
            other.discard = Discard.all
    return stream


def diagnose(path: Path) -> str:
    """Say why a file that FFmpeg refuses is no video."""
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    if not any(head):
        return "the file holds zeros, not video (an unfinished copy or download?)"
    if head[4:8] in (b"ftyp", b"moov", b"mdat", b"wide", b"free"):
        if b"moov" not in top_level_boxes(path):
            return "the file has no index (MP4 box 'moov'): it was cut off or never finished"
        return "the header (MP4 box 'moov') is damaged or cut off"
    if head[:4] in (b"\x1aE\xdf\xa3", b"RIFF", b"FLV\x01") or head[:1] == b"G":
        return "the file ends after its header, or the header is damaged: no picture can be read"
    return "this is not a video file that can be read (unknown or damaged format)"


def top_level_boxes(path: Path) -> set[bytes]:
    """Names of an MP4 file's outermost boxes that are there in full."""
    names: set[bytes] = set()
    size = path.stat().st_size
    position = 0
    with path.open("rb") as file:
        while position + 8 <= size:
            file.seek(position)
            length, name = struct.unpack(">I4s", file.read(8))
            if length == 1:
                length = int.from_bytes(file.read(8), "big")
            elif length == 0:
                length = size - position
            if length < 8 or position + length > size:
                break
            names.add(name)
            position += length
    return names
