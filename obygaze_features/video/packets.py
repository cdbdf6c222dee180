"""The door by which packets come out of a file: to its end, whatever streams appear on the way.

FFmpeg finds the streams of a file in its header, or in the first megabytes where it has none. Transport and
program streams may begin a sound track or subtitles anywhere (ISO/IEC 13818-1, 2.4.4), and so may FLV.
"""

import re
from collections.abc import Iterator
from threading import Lock
from typing import Any, NamedTuple

import av
from av.container import InputContainer

_LISTED_STREAM = re.compile(
    r"^  Stream #\d++:(?P<index>\d++)(?:\[0x(?P<id>[0-9a-f]+)\])?[^:]*: (?P<kind>\w+): (?P<codec>\w+)",
    re.MULTILINE,
)
_dumping = Lock()
"""Held while the level of FFmpeg's log, which is one for the whole process, is raised."""
ANNOUNCED = frozenset({"mov", "matroska", "avi"})
"""Formats whose header lists all streams, by FFmpeg's names (ISO/IEC 14496-12, 8.3; RFC 9559, 5.1.4)."""


class ListedStream(NamedTuple):
    """A stream as FFmpeg lists it.

    Parameters
    ----------
    stream_index
        Its place among the streams of the file.
    id
        The number by which the container calls it: of a transport stream its PID; -1 if it has none.
    kind
        `video`, `audio`, `subtitle`, `data`.
    codec
        Name of its codec; `none` if it is not known.
    """

    stream_index: int
    id: int
    kind: str
    codec: str


def demux(container: InputContainer, *streams: Any) -> Iterator["av.Packet[Any]"]:
    """Yield the packets of some streams in the file's order, and an empty one at the end of each stream.

    Raises
    ------
    av.FFmpegError
        FFmpeg cannot read on.
    """
    try:
        yield from container.demux(*streams)
    except IndexError:
        # After the last packet, PyAV 18 ends each stream of the file. For a stream that appeared while
        # reading it looks in the list from opening, and fails. A second call reads on from here: it ends at
        # once, unless there are packets left after all.
        yield from container.demux(*streams)


def describe_streams(container: InputContainer) -> str:
    """Return FFmpeg's description of a file and its streams, as text, with those found while it was read."""
    with _dumping:  # the level of the log is one for the whole process
        level_before = av.logging.get_level()
        av.logging.set_level(av.logging.INFO)  # else nothing is printed
        try:
            return str(container.dumps_format())  # type: ignore[attr-defined]
        finally:
            av.logging.set_level(level_before)


def listed_streams(container: InputContainer) -> list[ListedStream]:
    """List the streams of a file that FFmpeg knows until now, from its description of the file.

    A line of the description is such as "  Stream #0:1[0x101](eng): Audio: ac3, 48000 Hz".
    """
    streams = []
    for line in _LISTED_STREAM.finditer(describe_streams(container)):
        place = int(line["index"])
        stream_id = int(line["id"], 16) if line["id"] else -1
        streams.append(ListedStream(place, stream_id, line["kind"].lower(), line["codec"]))
    return streams


def appeared_later(container: InputContainer) -> list[ListedStream]:
    """List the streams that were not known when the file was opened; call it after reading to the end."""
    formats = container.format.name.split(",")
    if not ANNOUNCED.isdisjoint(formats):
        return []  # none can appear, and listing streams takes 4 % of the time of reading a short clip
    n_opened = len(container.streams)
    return [stream for stream in listed_streams(container) if stream.stream_index >= n_opened]
