"""Index a stream by demuxing alone (pass 1): packets, display times and random access points."""

from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from av import FFmpegError
from av.bitstream import BitStreamFilterContext
from numpy.typing import NDArray

from obygaze_features.errors import VideoError
from obygaze_features.video.av1 import FrameReferences
from obygaze_features.video.av_errors import UNREADABLE
from obygaze_features.video.completeness import declared_packets, promised_seconds, truncation
from obygaze_features.video.heads import MPEG12, READABLE, Head, Packet, head_reader
from obygaze_features.video.learnt import LARGE_BYTES, learnt
from obygaze_features.video.packet_table import PacketTable
from obygaze_features.video.pictures import display_ranks, vop_type
from obygaze_features.video.source import Kept, Source, opened

# Containers with presentation time stamps; AVI and raw streams store none.
TIMED_FORMATS = frozenset({"mov", "matroska", "mpegts", "flv", "ivf", "nut"})
# Containers where a seek finds a packet by its time stamp; in others the target is unreliable.
SEEKABLE_FORMATS = frozenset({"mov", "matroska", "flv"})
SPELLED = {"h264": "H.264", "hevc": "HEVC", "vp8": "VP8", "vp9": "VP9", "av1": "AV1"}
# Such a packet holds no picture: the previous picture is repeated, or nothing is shown.
EMPTY_VOP_BYTES = 8
# Spans of one film come one after the other, and a film is not asked for again.
TABLES = 4
_tables: dict[tuple[Path, int, int], PacketTable] = {}


@dataclass(slots=True)
class Packets:
    """Columns of the packet table under construction."""

    pts: list[int | None] = field(default_factory=list)
    dts: list[int | None] = field(default_factory=list)
    size: list[int] = field(default_factory=list)
    discard: list[bool] = field(default_factory=list)
    key: list[bool] = field(default_factory=list)
    heads: list[Head] = field(default_factory=list)
    references: FrameReferences = field(default_factory=FrameReferences)
    corrupt: bool = False
    changes: bool = False
    declared: int = 0
    read: int = 0
    error: str = ""


def index_packets(path: Path, kept: Kept | None = None) -> PacketTable:
    """Read all packets of a file's video stream (10-30 ms per clip); the last few files are cached.

    A large file is read once for all processes that share a cache (`share_in`).

    Parameters
    ----------
    path
        The file.
    kept
        Receives the packets of a small file that can be decoded sparsely, so that it need not be read again.

    Raises
    ------
    VideoError
        The file can't be opened or holds no pictures.
    """
    try:
        status = path.stat()
    except OSError:
        return _read_index(path)  # raises the error with its cause
    key = (path, status.st_size, status.st_mtime_ns)
    table = _tables.pop(key, None)
    if table is None and status.st_size < LARGE_BYTES:
        table = _read_index(path, kept)
    elif table is None:
        table = PacketTable.from_bytes(learnt(path, "packets", lambda: _read_index(path).to_bytes()))
    _tables[key] = table
    while len(_tables) > TABLES:
        del _tables[next(iter(_tables))]
    return table


class Pictures:
    """Types and time stamps of unpacked MPEG-4 pictures, collected packet by packet."""

    def __init__(self, source: Source) -> None:
        self.kinds: list[str] = []
        self.pts: list[int | None] = []
        self.small = False
        self.broken = False
        self._unpack = BitStreamFilterContext("mpeg4_unpack_bframes", source.stream)

    def add(self, packet: "Packet | None") -> None:
        """Add a packet, which the filter consumes; None marks the end."""
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


def _read_index(path: Path, kept: Kept | None = None) -> PacketTable:
    with ExitStack() as still_open:
        source = still_open.enter_context(opened(path))
        try:
            pictures = Pictures(source) if source.codec == "mpeg4" else None
            keep = kept.packets if kept is not None and pictures is None else None
            packets = _gather(source, pictures, keep)
        except UNREADABLE as error:
            raise VideoError("the file is damaged: its packets cannot be read", path) from error
        if all(packets.discard):
            raise VideoError(
                "the file holds a video stream without a single picture (cut off after its header?)", path
            )
        table = _table(source, packets, pictures)
        if keep and kept is not None:
            if table.unsafe:
                keep.clear()
            else:
                kept.keep(source, still_open.pop_all())
        return table


def _gather(source: Source, pictures: Pictures | None, kept: list[Packet] | None) -> Packets:
    packets = Packets(declared=declared_packets(source))
    head = head_reader(source.codec, source.context.extradata)
    is_av1 = source.codec == "av1"
    try:
        for packet in source.container.demux(source.stream):
            packets.read += packet.size > 0 or packet.dts is not None
            if not packet.size:
                continue
            own = head(packet)
            packets.pts.append(packet.pts)
            packets.dts.append(packet.dts)
            packets.size.append(packet.size)
            packets.discard.append(packet.is_discard or own.hidden)
            packets.key.append(packet.is_keyframe)
            packets.heads.append(own)
            packets.corrupt |= packet.is_corrupt
            if next(packet.iter_sidedata(), None) is not None:  # few packets have any; has_sidedata is slow
                packets.changes |= packet.has_sidedata("new_extradata")
            if is_av1:
                packets.references.add(memoryview(packet))
            if pictures is not None:
                pictures.add(packet)
            if kept is not None:
                kept.append(packet)
        if pictures is not None:
            pictures.add(None)
        if source.format == "avi" and packets.dts and packets.dts[-1] is not None:
            # AVI counts ticks, not packets: a dropped frame has a number but may have no packet.
            packets.read = packets.dts[-1] + 1
    except FFmpegError:
        packets.error = f"reading stopped at damaged data after {len(packets.pts)} packets"
    return packets


def _table(source: Source, packets: Packets, vops: Pictures | None) -> PacketTable:
    count = len(packets.pts)
    formats = set(source.format.split(","))
    discard = np.array(packets.discard, np.bool_)
    pts = np.array([-1 if value is None else value for value in packets.pts], np.int64)
    unique = None not in packets.pts and len(set(packets.pts)) == count
    # AVI stores no presentation times, and FFmpeg's estimates are wrong with B-frames.
    labelled = unique and source.codec != "mpeg4" and source.format != "avi"
    rank = pts
    random_access = _random_access(packets.heads)
    if vops is not None:
        random_access = np.array([kind == "I" for kind in vops.kinds], np.bool_)
    kinds = "".join(head.kind for head in packets.heads)
    by_kind = source.codec in MPEG12 and len(kinds) == count and not packets.error
    if by_kind and not (labelled and (np.argsort(pts) == np.argsort(display_ranks(kinds))).all()):
        labelled, rank = False, display_ranks(kinds)
    unsafe = _why_unsafe(source, packets, vops, unique=unique, by_kind=by_kind, access=random_access)
    unpacked = vops is not None and not unsafe
    if vops is not None and unpacked:
        rank = display_ranks("".join(vops.kinds))
        pts = np.array(vops.pts, np.int64)
    ordered = labelled or not unsafe
    shown = np.flatnonzero(~discard)
    if ordered:
        shown = shown[np.argsort(rank[shown], kind="stable")]
    time_s, note = _times(source, packets, ~discard)
    guessed = "" if unique or not by_kind else "not every picture has a time of its own: some are estimates"
    flagged = random_access if not unsafe else np.array(packets.key, np.bool_)
    return PacketTable(
        pts=pts,
        size=np.array(packets.size, np.int64),
        rank=rank,
        random_access=random_access,
        spare=_spare(packets.heads),
        frames=packets.references.table(),
        shown=shown,
        time_s=time_s,
        key=flagged[shown] if ordered else None,
        codec=source.codec,
        unsafe=unsafe,
        labelled=labelled,
        unpacked=unpacked,
        seekable=labelled and bool(formats & SEEKABLE_FORMATS),
        truncated=packets.error
        or truncation(packets.read, packets.declared, float(np.max(time_s)), promised_seconds(source)),
        notes=tuple(filter(None, (note, guessed, _shape(source)))),
    )


def _shape(source: Source) -> str:
    """Return a note if pixels are not square; empty if they are, or if the file does not state it."""
    ratio = source.stream.sample_aspect_ratio
    if not ratio or ratio == 1:
        return ""
    width, height = source.context.width, source.context.height
    shown = f"{round(width * ratio)}x{height}"
    return (
        f"pixels are not square ({ratio.numerator}:{ratio.denominator}): the pictures are given as stored, "
        f"{width}x{height}, and players show {shown}"
    )


def _random_access(heads: list[Head]) -> NDArray[np.bool_]:
    """Mark random access points; exclude packets that need parameter sets from earlier packets."""
    carried = {head.sets for head in heads if head.sets}
    # If they never change, the parameter sets of the container or first packet hold everywhere.
    return np.array([head.start and (len(carried) < 2 or bool(head.sets)) for head in heads], np.bool_)


def _spare(heads: list[Head]) -> NDArray[np.bool_]:
    """Mark pictures that can be left out: those of the highest layer that no other picture refers to."""
    top = max(head.layer for head in heads)
    return np.array([head.unreferenced and head.layer == top for head in heads], np.bool_)


def _why_unsafe(
    source: Source,
    packets: Packets,
    vops: Pictures | None,
    *,
    unique: bool,
    by_kind: bool,
    access: NDArray[np.bool_],
) -> str:
    """Return why this stream must be decoded sequentially; empty if it need not."""
    codec, formats = source.codec, set(source.format.split(","))
    if codec not in READABLE | {"mpeg4"}:
        return f"the codec is {codec}"
    by_time = codec != "mpeg4" and not by_kind
    checks = (
        (bool(packets.error), packets.error),
        (packets.corrupt, "the container flags damaged packets"),
        (packets.changes, "the codec's settings change within the stream"),
        (codec in MPEG12 and not by_kind, "packets without exactly one picture"),
        (
            by_time and not formats & TIMED_FORMATS,
            f"{SPELLED.get(codec, codec)} in {source.format} has no reliable time stamps",
        ),
        (by_time and None in packets.pts, "time stamps are missing"),
        (by_time and not unique, "time stamps repeat"),
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
    """Return the frames' times in display order, and a note if they are not presentation times."""
    chosen = np.flatnonzero(kept)
    tick = source.stream.time_base
    for stamps, note in (
        (packets.pts, ""),
        (packets.dts, "the file stores no presentation times: decoding times stand in"),
    ):
        ticks = [stamps[number] for number in chosen.tolist()]
        if tick is not None and None not in ticks:
            return seconds([value for value in ticks if value is not None], source), note
    return np.full(len(chosen), np.nan), "the file stores no times: they are not known"


def seconds(ticks: list[int], source: Source) -> NDArray[np.float64]:
    """Sort a stream's ticks and convert them to seconds of the player's clock, each rounded once."""
    tick: Any = source.stream.time_base
    origin = source.origin
    # One common denominator for tick * value - origin: Python's integer division rounds once.
    denominator = tick.denominator * origin.denominator
    scale, shift = tick.numerator * origin.denominator, origin.numerator * tick.denominator
    return np.array([(value * scale - shift) / denominator for value in sorted(ticks)], np.float64)
