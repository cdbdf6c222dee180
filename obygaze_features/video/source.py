"""Open one video stream for single-threaded reading, or report why it cannot be opened."""

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import av
from av import FFmpegError
from av.bitstream import BitStreamFilterContext
from av.codec.context import Flags
from av.codec.hwaccel import HWAccel
from av.container import InputContainer
from av.stream import Discard, Disposition
from av.video.codeccontext import VideoCodecContext
from av.video.stream import VideoStream

from obygaze_features.arguments import checked
from obygaze_features.errors import VideoError
from obygaze_features.file_kinds import HEIF, MP4, UNKNOWN, file_kind, why_not
from obygaze_features.io import NO_SUCH_FILE
from obygaze_features.video.boxes import is_scrambled
from obygaze_features.video.file_facts import files_of
from obygaze_features.video.late_streams import bytes_to_probe_whole_film
from obygaze_features.video.packets import demux

# Accepted formats, by FFmpeg's names. FFmpeg has about 300 more, including playlists and text formats that
# open files other than the named one.
CONTAINERS = (
    "mov", "matroska", "avi", "mpegts", "mpeg", "flv", "asf", "ogg", "mxf", "nut", "rm", "dv", "wtv", "gif",
    "ivf", "yuv4mpegpipe", "h264", "hevc", "m4v", "mpegvideo", "obu", "av1", "vc1",
)  # fmt: skip
MAX_PIXELS = 89_478_485
"""Pixels of the largest picture that is decoded, as for still images (8K has 33 million)."""

LIMITS = {"max_pixels": str(MAX_PIXELS)}
OPTIONS = {"format_whitelist": ",".join(CONTAINERS), "protocol_whitelist": "file", **LIMITS}
BEGIN_ANYWHERE = frozenset({"mpegts", "mpeg", "flv"})
"""Formats in which streams may begin anywhere, by FFmpeg's names."""
LONGEST_US = 1 << 52
"""Microseconds of streams that FFmpeg looks through: so many that only the number of bytes is a limit."""
Item = TypeVar("Item")


@dataclass(frozen=True)
class Source:
    """An open file and the video stream that is read from it.

    Parameters
    ----------
    path
        The file.
    container, stream
        The file as FFmpeg has it open, and its stream of pictures.
    loaded
        The packets, if they are in memory.
    usual_origin
        `origin` of the file as it is usually opened, if more of it was looked through.
    """

    path: Path
    container: InputContainer
    stream: VideoStream
    loaded: "Sequence[av.Packet[Any]]" = ()
    usual_origin: Fraction | None = None

    @property
    def context(self) -> VideoCodecContext:
        """The decoder of the stream."""
        return self.stream.codec_context

    @property
    def codec(self) -> str:
        """Name of the codec, e.g. ``h264``, not of the decoder (AV1 has several)."""
        return self.context.codec.canonical_name

    @property
    def formats(self) -> list[str]:
        """Short names of the container format, e.g. ``matroska`` and ``webm``."""
        return self.container.format.name.split(",")

    @property
    def origin(self) -> Fraction:
        """Time stamp in seconds at which the player's clock is zero: the start of the earliest stream.

        FFmpeg rounds the start of the earliest stream to microseconds. If the pictures are this stream, their
        own start is returned, which is exact.
        """
        if self.usual_origin is not None:
            return self.usual_origin
        microsecond = Fraction(1, av.time_base)
        earliest_start = (self.container.start_time or 0) * microsecond
        if self.stream.start_time is None or self.stream.time_base is None:
            return earliest_start
        exact_start_of_pictures = self.stream.start_time * self.stream.time_base
        is_same_start = abs(exact_start_of_pictures - earliest_start) <= microsecond
        return exact_start_of_pictures if is_same_start else earliest_start

    @property
    def declared(self) -> int:
        """Number of packets of the stream by the container's header; 0 if it does not state it."""
        n_declared = self.stream.frames
        n_entries = len(self.stream.index_entries)
        if "mov" in self.formats and n_declared and n_entries:
            # An edit list may leave out samples that the MP4 header still counts.
            return min(n_declared, n_entries)
        return n_declared

    def set_decoder(self, *, strict: bool = False) -> None:
        """Set up FFmpeg's decoder before it decodes anything: one thread, limits and error detection.

        Parameters
        ----------
        strict
            Whether errors in the data are raised that the decoder would otherwise conceal.
        """
        self.context.thread_count = 1
        # Frame threads lose the last pictures after an error.
        self.context.thread_type = "SLICE"
        # Else FFmpeg crops columns at the left in steps of 32 bytes.
        self.context.flags |= Flags.unaligned
        options = dict(LIMITS)
        if strict:
            options["err_detect"] = "explode"
        self.context.options = options

    def demux(self, *streams: Any) -> "Iterator[av.Packet[Any]]":
        """Yield the packets of some streams of the file, and an empty one at the end of each.

        Raises
        ------
        av.FFmpegError
            FFmpeg cannot read on.
        """
        return demux(self.container, *streams)

    def stored(self) -> "Iterator[av.Packet[Any]]":
        """Yield the packets of the pictures in decoding order, including the empty ones that a file stores.

        MPEG-4 in AVI may have two pictures in a packet and an empty packet behind it. Each of the two
        pictures is then put into a packet of its own.
        """
        filter_of_double_packets = None
        if self.codec == "mpeg4":
            filter_of_double_packets = BitStreamFilterContext("mpeg4_unpack_bframes", self.stream)
        for packet in self.demux(self.stream):
            is_empty = packet.size == 0
            is_end_of_file = is_empty and packet.dts is None  # one that PyAV adds
            if is_end_of_file:
                continue
            if filter_of_double_packets is not None and not is_empty:
                yield from filter_of_double_packets.filter(packet)
            else:
                yield packet

    def packets(self) -> "Iterator[av.Packet[Any]]":
        """Yield the packets that are not empty. Packets in memory are usable once, as readers change them."""
        if self.loaded:
            return iter(self.loaded)
        return (packet for packet in self.stored() if packet.size)


ReusableFile: TypeAlias = tuple[Source, ExitStack]
"""A small file that is still open after its packets were read, with an unused decoder; and what closes it."""


@checked
@contextmanager
def opened(path: Path, accelerator: HWAccel | None = None) -> Iterator[Source]:
    """Open a file's video stream with one thread; other streams are not read.

    With several video streams, the stream that players choose is opened.

    Parameters
    ----------
    path
        A video file.
    accelerator
        The GPU that decodes its pictures; None decodes them on a core.

    Raises
    ------
    VideoError
        The path is no file, or the file is empty, not a video, or has no decodable video stream.
    """
    with _with_pictures(path, accelerator) as container:
        may_be_scrambled = container.format.name in ("mpegts", "mpeg")
        if may_be_scrambled and is_scrambled(files_of(path)[0]):
            raise VideoError(
                "its packets are encrypted (scrambled): decrypt the file, or get it without", path
            )
        # FFmpeg reads HEIF too, but gives a tile of the picture, or one of several pictures.
        if container.format.name.startswith("mov") and file_kind(path).name == HEIF:
            raise VideoError(why_not(path, "a video file"), path)
        source = Source(path, container, choose_stream(container, path))
        source.set_decoder()
        yield source


@contextmanager
def opened_to(path: Path, bytes_to_probe: int) -> Iterator[Source]:
    """Open a video file with all streams, such as sound, that begin in its first `bytes_to_probe` bytes.

    FFmpeg usually looks through 5 million bytes, and does not know streams that begin later. Looking farther,
    it may choose other pictures, or count times from another origin. So the file is first opened as usual, to
    see which stream has the pictures and where times begin; both are kept.

    Parameters
    ----------
    path
        A video file.
    bytes_to_probe
        Bytes that FFmpeg looks through, and holds in memory; 0 for its usual 5 million.

    Raises
    ------
    VideoError
        The file cannot be opened.
    """
    with opened(path) as usual:
        if not bytes_to_probe:
            yield usual
            return
        index_of_pictures = usual.stream.index
        origin = usual.origin
    with _container(path, accelerator=None, **_options_to_look_through(bytes_to_probe)) as container:
        stream = container.streams[index_of_pictures]
        if not isinstance(stream, VideoStream):
            raise VideoError("its streams are others where more of the file is looked through", path)
        _skip_other_streams(container, stream)
        yield Source(path, container, stream, usual_origin=origin)


@contextmanager
def naming_file(path: Path) -> Iterator[None]:
    """Add the path to a `VideoError` raised within a `with` block that does not name the file."""
    try:
        yield
    except VideoError as error:
        raise VideoError(error.reason, path) from None


def damage_as_video_error(items: Iterable[Item], path: Path) -> Iterator[Item]:
    """Yield what an iterator decodes from a file, and convert its FFmpeg errors to a `VideoError`.

    Such an error means that the file is damaged. Errors of the code that uses the items are not converted.

    Parameters
    ----------
    items
        Decodes the next item, such as a frame, when it is asked for.
    path
        The file, for the error.
    """
    iterator = iter(items)
    while True:
        try:
            item = next(iterator)
        except StopIteration:
            return
        except FFmpegError as error:
            raise VideoError("the file is damaged: its pictures cannot be read", path) from error
        yield item


@contextmanager
def _with_pictures(path: Path, accelerator: HWAccel | None) -> Iterator[InputContainer]:
    """Open a file; if FFmpeg finds no pictures at its beginning, make it look through more of the file.

    This is done only for formats in which streams may begin anywhere. A file that has no pictures there
    either is opened all the same.
    """
    with ExitStack() as still_open:
        container = still_open.enter_context(_container(path, accelerator))
        stream = container.streams.best("video")
        # A codec that FFmpeg does not know has no context.
        has_pictures = stream is not None and getattr(stream.codec_context, "width", 0) > 0
        if container.format.name in BEGIN_ANYWHERE and not has_pictures:
            still_open.close()
            options_to_look_farther = _options_to_look_through(bytes_to_probe_whole_film(path))
            container = still_open.enter_context(_container(path, accelerator, **options_to_look_farther))
        yield container


def _options_to_look_through(n_bytes: int) -> dict[str, str]:
    """Return the options with which FFmpeg looks through the first bytes of a file for streams."""
    return {"probesize": str(n_bytes), "analyzeduration": str(LONGEST_US)}


@contextmanager
def _container(path: Path, accelerator: HWAccel | None = None, **options: str) -> Iterator[InputContainer]:
    """Open a video file with FFmpeg, or the files of a DVD's title as one; close it after the `with` block.

    Raises
    ------
    VideoError
        It cannot be opened.
    """
    check_file(path)
    options = OPTIONS | options
    # "file:" keeps FFmpeg from reading a prefix before a colon as a protocol.
    names = [f"file:{file}" for file in files_of(path)]
    name = names[0]
    if len(names) > 1:  # the files of a DVD's title
        if "|" in str(path):
            raise VideoError("its folder's name has a '|', by which FFmpeg parts the files of a title", path)
        name = f"concat:{'|'.join(names)}"
        options["protocol_whitelist"] = "file,concat"

    try:
        container = av.open(name, options=options, metadata_errors="replace", hwaccel=accelerator)
    except FFmpegError as error:
        raise VideoError(diagnose(path), path) from error
    with container:
        yield container


@checked
def check_file(path: Path) -> None:
    """Raise a VideoError if a video file is missing, empty, no regular file, or may not be read.

    All files of a DVD's title are checked.
    """
    try:
        states = {file: file.stat() for file in files_of(path)}
    except FileNotFoundError:
        raise VideoError(NO_SUCH_FILE, path) from None
    except OSError as error:
        raise VideoError(f"the file cannot be reached ({error.strerror})", path) from None
    for file, status in states.items():
        if not stat.S_ISREG(status.st_mode):
            raise VideoError("this is not a regular file", file)
        if status.st_size == 0:
            raise VideoError("the file is empty (0 bytes)", file)
        if not os.access(file, os.R_OK):
            raise VideoError("the file may not be read (permission denied)", file)


def choose_stream(container: InputContainer, path: Path) -> VideoStream:
    """Choose the video stream that players choose, and make FFmpeg skip the packets of the others.

    Parameters
    ----------
    container
        The file, as FFmpeg has it open.
    path
        The file, for messages.

    Raises
    ------
    VideoError
        There is none, or its pictures cannot be decoded.
    """
    stream = container.streams.best("video")
    if not isinstance(stream, VideoStream):
        raise VideoError("the file has no video stream (sound only?)", path)
    if stream.disposition & Disposition.attached_pic:
        raise VideoError("the file has no video stream, only a cover picture", path)
    if stream.codec_context is None:
        raise VideoError(
            "the codec of its pictures is not known here: a new one, encrypted, or damaged", path
        )

    width = stream.codec_context.width
    height = stream.codec_context.height
    n_pixels = width * height
    if n_pixels == 0:  # also where FFmpeg drops a huge size
        raise VideoError(
            f"no header of pictures of up to {MAX_PIXELS:,} pixels was found: "
            "the recording begins after it, or holds no pictures",
            path,
        )
    if n_pixels > MAX_PIXELS:
        raise VideoError(
            f"its pictures are {width} x {height} pixels, and up to {MAX_PIXELS:,} pixels are decoded "
            "(a decompression bomb?)",
            path,
        )

    _skip_other_streams(container, stream)
    return stream


def _skip_other_streams(container: InputContainer, stream: VideoStream) -> None:
    """Make FFmpeg read the packets of one stream, and skip those of all others."""
    for other in container.streams:
        if other.index != stream.index:
            other.discard = Discard.all


def diagnose(path: Path) -> str:
    """Return why a file that FFmpeg refuses is not a video."""
    kind = file_kind(path).name
    if kind == MP4:
        return "the index (MP4 box 'moov') is missing, damaged or cut off: an unfinished recording or copy?"
    if kind.endswith(" film"):  # the kinds of video files have such names, as "Matroska film"
        return "the file ends after its header, or the header is damaged: no picture can be read"
    if kind == UNKNOWN.name:
        return "this is not a video file that can be read (damaged, or no format of video)"
    return why_not(path, "a video file")
