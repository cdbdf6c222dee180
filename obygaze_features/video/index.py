"""Pass 1, demuxing only: every packet of the stream, what it shows when, and where decoding can start."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import av
import numpy as np
from av import FFmpegError
from av.bitstream import BitStreamFilterContext
from numpy.typing import NDArray

from obygaze_features.errors import VideoError
from obygaze_features.video.bitstream import (
    is_h264_random_access,
    nal_length_size,
    vop_display_ranks,
    vop_type,
)
from obygaze_features.video.completeness import declared_packets, promised_seconds, truncation
from obygaze_features.video.errors import UNREADABLE
from obygaze_features.video.sampling import Timeline
from obygaze_features.video.source import Source, opened

# Containers whose time stamps say how H.264 is shown; AVI stores none, and raw streams neither.
H264_TIMED_FORMATS = frozenset({"mov", "matroska", "mpegts", "flv"})
# Such a picture holds no picture: the one before it is shown again, or nothing is.
EMPTY_VOP_BYTES = 8


@dataclass(frozen=True, slots=True)
class PacketTable:
    """The packets of a stream in decoding order, and what is known of them before decoding.

    Parameters
    ----------
    pts
        Shape [P]: presentation time stamps, in ticks of the stream; -1 where missing (then not `labelled`).
    rank
        Shape [P]: any numbers that grow in display order; meaningless unless `ordered`.
    random_access
        Shape [P]: decoding can start here and give exact pictures.
    shown
        Shape [L]: packets that are shown, in display order (in decoding order unless `ordered`).
    time_s
        Shape [L]: when they are shown, in seconds of the player's clock; NaN where unknown.
    key
        Shape [L]: key frames, or None where the order of display is unknown.
    unsafe
        Why single frames can't be decoded by themselves; empty where they can.
    labelled
        A decoded frame is known by its time stamp.
    unpacked
        MPEG-4 whose packets must go through the unpacking filter for this table to hold.
    truncated
        What the container promises and the file lacks, in words; empty for a whole file.
    notes
        Anything else that a person should know.
    """

    pts: NDArray[np.int64]
    rank: NDArray[np.int64]
    random_access: NDArray[np.bool_]
    shown: NDArray[np.int64]
    time_s: NDArray[np.float64]
    key: NDArray[np.bool_] | None
    unsafe: str
    labelled: bool
    unpacked: bool
    truncated: str
    notes: tuple[str, ...]

    @property
    def timeline(self) -> Timeline:
        """The frames to choose from: L of them, by the packets."""
        return Timeline(np.arange(len(self.shown)), self.time_s, self.key)


@dataclass(slots=True)
class Packets:
    """Columns of the packet table while they are gathered."""

    pts: list[int | None]
    dts: list[int | None]
    discard: list[bool]
    key: list[bool]
    corrupt: bool = False
    changes: bool = False
    declared: int = 0
    read: int = 0
    error: str = ""


def index_packets(path: Path) -> PacketTable:
    """Read all packets of a file's video stream, 10-30 ms a clip; the last few files are remembered.

    Raises
    ------
    VideoError
        The file can't be opened or holds no pictures.
    """
    try:
        status = path.stat()
    except OSError:
        return _index(path, 0, 0)  # which says what is the matter
    return _index(path, status.st_size, status.st_mtime_ns)


class Pictures:
    """MPEG-4 pictures after unpacking: their kinds and time stamps, gathered packet by packet."""

    def __init__(self, source: Source) -> None:
        self.kinds: list[str] = []
        self.pts: list[int | None] = []
        self.small = False
        self.broken = False
        self._unpack = BitStreamFilterContext("mpeg4_unpack_bframes", source.stream)

    def add(self, packet: "av.Packet[Any] | None") -> None:
        """Take one more packet, which the filter swallows, or None at the end."""
        if self.broken:
            return
        try:
            pieces = [piece for piece in self._unpack.filter(packet) if piece.size]
        except FFmpegError:
            self.broken = True
            return
        for piece in pieces:
            self.kinds.append(vop_type(bytes(piece)))
            self.pts.append(piece.pts)
            self.small |= piece.size <= EMPTY_VOP_BYTES


@lru_cache(maxsize=4)  # spans of one film come one after the other
def _index(path: Path, _size: int, _modified_ns: int) -> PacketTable:
    with opened(path) as source:
        try:
            pictures = Pictures(source) if source.codec == "mpeg4" else None
            packets, access = _gather(source, pictures)
        except UNREADABLE as error:
            raise VideoError("the file is damaged: its packets cannot be read", path) from error
        if not any(not discarded for discarded in packets.discard):
            raise VideoError(
                "the file holds a video stream without a single picture (cut off after its header?)", path
            )
        return _table(source, packets, access, pictures)


def _gather(source: Source, pictures: Pictures | None) -> tuple[Packets, list[bool]]:
    packets = Packets([], [], [], [], declared=declared_packets(source))
    access: list[bool] = []
    h264 = source.codec == "h264"
    length_size = nal_length_size(source.context.extradata)
    try:
        for packet in source.container.demux(source.stream):
            packets.read += packet.size > 0 or packet.dts is not None
            if not packet.size:
                continue
            packets.pts.append(packet.pts)
            packets.dts.append(packet.dts)
            packets.discard.append(packet.is_discard)
            packets.key.append(packet.is_keyframe)
            packets.corrupt |= packet.is_corrupt
            packets.changes |= packet.has_sidedata("new_extradata")
            access.append(h264 and packet.is_keyframe and is_h264_random_access(bytes(packet), length_size))
            if pictures is not None:
                pictures.add(packet)
        if pictures is not None:
            pictures.add(None)
        if source.format == "avi" and packets.dts and packets.dts[-1] is not None:
            # AVI counts ticks, not packets: a frame that was dropped has a number, but maybe no packet.
            packets.read = packets.dts[-1] + 1
    except FFmpegError:
        packets.error = f"reading stopped at damaged data after {len(packets.pts)} packets"
    return packets, access


def _table(source: Source, packets: Packets, access: list[bool], vops: Pictures | None) -> PacketTable:
    count = len(packets.pts)
    discard = np.array(packets.discard, np.bool_)
    stamped = None not in packets.pts
    pts = np.array([-1 if value is None else value for value in packets.pts], np.int64)
    # AVI stores no presentation times: what FFmpeg guesses there is wrong with B-frames.
    labelled = stamped and len(np.unique(pts)) == count and source.codec != "mpeg4" and source.format != "avi"
    random_access = np.array(access, np.bool_)
    rank = pts
    if vops is not None:
        random_access = np.array([kind == "I" for kind in vops.kinds], np.bool_)
    unsafe = _why_unsafe(
        source, packets, vops, stamped=stamped, unique=len(np.unique(pts)) == count, access=random_access
    )
    unpacked = vops is not None and not unsafe
    if vops is not None and unpacked:
        rank = vop_display_ranks("".join(vops.kinds))
        pts = np.array(vops.pts, np.int64)
    ordered = labelled or unpacked
    shown = np.flatnonzero(~discard)
    if ordered:
        shown = shown[np.argsort(rank[shown], kind="stable")]
    time_s, note = _times(source, packets, ~discard)
    flagged = random_access if not unsafe else np.array(packets.key, np.bool_)
    return PacketTable(
        pts=pts,
        rank=rank,
        random_access=random_access,
        shown=shown,
        time_s=time_s,
        key=flagged[shown] if ordered else None,
        unsafe=unsafe,
        labelled=labelled,
        unpacked=unpacked,
        truncated=packets.error
        or truncation(packets.read, packets.declared, float(np.max(time_s)), promised_seconds(source)),
        notes=(note,) if note else (),
    )


def _why_unsafe(
    source: Source,
    packets: Packets,
    vops: Pictures | None,
    *,
    stamped: bool,
    unique: bool,
    access: NDArray[np.bool_],
) -> str:
    """Say why frames of this stream must be decoded one after the other; empty where they need not."""
    codec, formats = source.codec, set(source.format.split(","))
    if codec not in ("h264", "mpeg4"):
        return f"the codec is {codec}"
    checks = (
        (bool(packets.error), packets.error),
        (packets.corrupt, "the container flags damaged packets"),
        (packets.changes, "the codec's settings change within the stream"),
        (
            codec == "h264" and not formats & H264_TIMED_FORMATS,
            f"H.264 in {source.format} has no reliable time stamps",
        ),
        (not stamped, "time stamps are missing"),
        (not unique, "time stamps repeat"),
    )
    for applies, reason in checks:
        if applies:
            return reason
    if codec == "mpeg4":
        if vops is None or vops.broken or len(vops.kinds) != len(packets.pts) or None in vops.pts:
            return "packed MPEG-4 pictures cannot be taken apart"
        if vops.small:
            return "empty MPEG-4 pictures"
        if "" in vops.kinds:
            return "MPEG-4 packets without exactly one picture"
    return "" if access[0] else "decoding cannot start at the first packet"


def _times(source: Source, packets: Packets, kept: NDArray[np.bool_]) -> tuple[NDArray[np.float64], str]:
    """Give the frames' times in display order, and a note where they are not presentation times."""
    chosen = np.flatnonzero(kept)
    tick = source.stream.time_base
    for stamps, note in (
        (packets.pts, ""),
        (packets.dts, "the file stores no presentation times: decoding times stand in"),
    ):
        ticks = [stamps[number] for number in chosen]
        if tick is not None and None not in ticks:
            return seconds([value for value in ticks if value is not None], source), note
    return np.full(len(chosen), np.nan), "the file stores no times: they are not known"


def seconds(ticks: list[int], source: Source) -> NDArray[np.float64]:
    """Sort ticks of a stream and give them as seconds of the player's clock, each rounded once."""
    tick: Any = source.stream.time_base
    origin = source.origin
    # tick * value - origin over one denominator: Python divides whole numbers with one rounding.
    denominator = tick.denominator * origin.denominator
    scale, shift = tick.numerator * origin.denominator, origin.numerator * tick.denominator
    return np.array([(value * scale - shift) / denominator for value in sorted(ticks)], np.float64)
