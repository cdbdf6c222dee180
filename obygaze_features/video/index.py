"""Index a stream by demuxing alone (pass 1): packets, display times and random access points.

The packets of a large file take seconds to read, so they are cached across the processes of a run. A file is
compared with what its container declares, to detect truncation.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from av import FFmpegError
from numpy.typing import NDArray

from obygaze_features.errors import VideoError
from obygaze_features.video.bitstream import (
    MPEG12,
    ORDERED_BY_KIND,
    READERS,
    Packet,
    PictureHeader,
    display_ranks,
    header_reader,
    second_fields,
)
from obygaze_features.video.boxes import (
    BLOCK_HEAD,
    heads,
    odd_edits,
    ordered_chapters,
    scrambled,
    second_file,
    stated_bytes,
    states_rate,
)
from obygaze_features.video.display_order import first_suspect, reorders
from obygaze_features.video.file_facts import cached_fact, file_state, files_of, is_large
from obygaze_features.video.late_streams import LateStream, late_notes, late_streams
from obygaze_features.video.packet_table import MISSING, PacketTable
from obygaze_features.video.packets import appeared_later
from obygaze_features.video.sampling import LONG_STEP, FrameTimes
from obygaze_features.video.source import KeptFile, Source, check_file, opened
from obygaze_features.video.stream import describe, note_side_data
from obygaze_features.video.time_line import JUMP_S, USUAL_RATE, TimeLine, settled, time_line, unbroken

# Containers with presentation time stamps; AVI and raw streams store none.
TIMED_FORMATS = frozenset({"mov", "matroska", "mpegts", "flv", "ivf", "nut"})
# Containers where a seek finds a packet by its time stamp; in others the target is unreliable.
SEEKABLE_FORMATS = frozenset({"mov", "matroska", "flv"})
# Few pictures have a time of their own, in a bare stream (mpegvideo) none: FFmpeg's parser makes them up.
PROGRAM_FORMATS = frozenset({"mpeg", "mpegvideo"})
# Containers that store when packets are decoded.
DECODING_FORMATS = frozenset({"mpegts", "mpeg", "mov", "flv"})
NOT_FOLLOWED = "which is not followed: players may show other pictures at these times"
ODD_EDITS = f"its edit list holds a picture, changes the rate or leaves a hole, {NOT_FOLLOWED}"
ORDERED_CHAPTERS = f"its chapters have an order of their own, {NOT_FOLLOWED}"
# Codecs whose pictures carry all settings that decoding needs.
SELF_DESCRIBED = MPEG12 | {"vp8", "vp9", "av1", "mjpeg", "prores", "dnxhd"}
JOIN = "join films with FFmpeg"
DECODING_TIMES = "its time stamps are those of decoding"
CHUNK_TIMES = (
    "AVI states no times of presentation: pictures have those of its entries, in the order of display"
)
OTHER_SETTINGS = f"a joined file has other settings of its codec, which are not read: {JOIN}"
RESET = "the codec's settings change within the video: the shape of its pixels may, and is not followed"
SOME_TIMES = "not every picture has a time of its own: the others have those that a steady rate leaves free"
TURNED = "its packets ask to turn the pictures, which is done for those alone that say so themselves"
SPELLED = {"h264": "H.264", "hevc": "HEVC", "vp8": "VP8", "vp9": "VP9", "av1": "AV1"}
TRUNCATED_BELOW = 0.98
# Where the pictures of a transport stream end so early, others follow that a joined recording has.
ANOTHER_BELOW = 0.9
BESIDES = {"sound": "audio", "subtitles": "subtitle"}
MOST_TICKS = np.iinfo(np.int64).max
# Spans of one film are read one after the other, and a film is not read again.
TABLES = 4
_tables: dict[tuple[Path, int, int], PacketTable] = {}


def index_packets(path: Path, kept: list[KeptFile] | None = None) -> PacketTable:
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
    check_file(path)
    key = (path, *file_state(path))
    table = _tables.pop(key, None)
    if table is None:
        keep = None if is_large(key[1]) else kept
        table = cached_fact(path, "packets", lambda: _read_index(path, keep), PacketTable)
    _tables[key] = table  # behind the others: the first one was used least lately
    while len(_tables) > TABLES:
        del _tables[next(iter(_tables))]
    return table


class Packets(NamedTuple):
    """The packets of a stream in decoding order: columns [P]; and how reading them ended.

    Parameters
    ----------
    read
        Packets and, of AVI, empty ones that it counts.
    late
        Streams that appeared on the way.
    error
        Why there are no more, if the file is damaged.
    """

    pts: NDArray[np.int64]
    dts: NDArray[np.int64]
    pos: NDArray[np.int64]
    size: NDArray[np.int64]
    duration: NDArray[np.int64]
    key: NDArray[np.bool_]
    hidden: NDArray[np.bool_]
    corrupt: NDArray[np.bool_]
    headers: list[PictureHeader]
    side_data: set[str]
    late: list[LateStream]
    read: int
    error: str


def _read_index(path: Path, kept: list[KeptFile] | None = None) -> PacketTable:
    with ExitStack() as still_open:
        source = still_open.enter_context(opened(path))
        try:
            packets, every = _gather(source, keep=kept is not None)
        except FFmpegError as error:
            raise VideoError("the file is damaged: its packets cannot be read", path) from error
        if packets.hidden.all():
            raise VideoError(
                "the file holds a video stream without a single picture that is shown (cut off after its "
                "header, or with an edit list that leaves all out?)",
                path,
            )
        table = _table(source, packets)
        if kept is not None and not table.unsafe:
            kept.append((replace(source, kept=every), still_open.pop_all()))
        return table


def _gather(source: Source, *, keep: bool) -> tuple[Packets, list[Packet]]:
    """Read all packets; return their columns and, to keep them, themselves."""
    rows: list[tuple[int | None, ...]] = []
    headers: list[PictureHeader] = []
    side_data = set[str]()
    packets_kept: list[Packet] = []
    empty = 0
    error = ""
    read_header = header_reader(source.codec, source.context.extradata)
    try:
        for packet in source.stored():
            n_bytes = packet.size
            if not n_bytes:
                empty += 1
                continue
            header = read_header(packet)
            flags = packet.is_keyframe, packet.is_discard or header.hidden, packet.is_corrupt
            rows.append((packet.pts, packet.dts, packet.pos, n_bytes, packet.duration or 0, *flags))
            headers.append(header)
            note_side_data(packet, side_data)
            if keep:
                packets_kept.append(packet)
    except FFmpegError:
        error = f"reading stopped at damaged data after {len(rows)} packets"
    numbers = [MISSING if value is None else value for row in rows for value in row]
    pts, dts, pos, size, duration, *marks = np.array(numbers, np.int64).reshape(-1, 8).T.copy()
    key, hidden, corrupt = (mark > 0 for mark in marks)
    if second := second_fields([header.field for header in headers]):
        first = np.array(second) - 1
        pts[second] = pts[first]
        hidden[second] = True
        dts[second] = np.maximum(dts[first], dts[second])  # `MISSING` is below all
    columns = pts, dts, pos, size, duration, key, hidden, corrupt
    late = late_streams(files_of(source.path), source.formats, appeared_later(source.container))
    return Packets(*columns, headers, side_data, late, len(rows) + empty, error), packets_kept


def _table(source: Source, packets: Packets) -> PacketTable:
    count = len(packets.pts)
    formats = {*source.formats}
    starts, _, unreferenced, layers, kinds, sets, turned, _ = zip(*packets.headers, strict=True)
    by_kind = source.codec in ORDERED_BY_KIND and all(kinds) and not packets.error
    ranks = display_ranks("".join(kinds)) if by_kind else None
    program = by_kind and bool(formats & PROGRAM_FORMATS)
    estimated = program and MISSING not in packets.dts and not np.array_equal(packets.pts, packets.dts)
    line, note = _line(source, packets, program=program, estimated=estimated)
    if not states_rate(files_of(source.path)[0], source.formats[0]):
        note = _by_rate(source)[1]
    cut, wrong = _seams(source, packets, line)
    hidden = packets.hidden.copy()
    hidden[cut] = True
    if estimated and line.known:
        line = line._replace(ticks=_following(line.ticks, _step(source))[ranks])
    if program and "mpegvideo" in formats:
        line = line._replace(ticks=line.ticks - line.ticks.min())
    unique = line.known and not note and len({*line.ticks[~hidden].tolist()}) == (~hidden).sum()
    rank = line.ticks if ranks is None else ranks
    # Others store no presentation times, and FFmpeg's estimates are wrong with B-frames (AVI, ASF).
    labelled = by_kind or (unique and source.codec != "mpeg4" and bool(formats & TIMED_FORMATS))
    # If they never change, the parameter sets of the container or first packet hold everywhere.
    resets = len({*sets} - {b""}) > 1
    random_access = np.array(starts) & (np.array([bool(settings) for settings in sets]) if resets else True)
    unsafe = _why_unsafe(source, packets, unique=unique, by_kind=by_kind, access=random_access)
    if labelled and not by_kind and source.context.has_b_frames:
        suspect = first_suspect(rank, packets.pts, packets.dts, random_access)
        if suspect >= 0 and reorders(source.path, random_access, suspect):
            labelled = False
            unsafe = DECODING_TIMES
    ordered = labelled or not unsafe
    shown = np.flatnonzero(~hidden)
    if line.known:
        steady = DECODING_FORMATS & formats and not unique and len(line.first) == 1
        ticks = _steady_times(line.ticks[shown], packets.dts[shown]) if steady else line.ticks[shown]
        time_s = seconds(ticks.tolist(), source)
    else:
        time_s, note = _stand_in_times(source, packets, len(shown))
    if ordered:
        shown = shown[np.argsort(rank[shown], kind="stable")]
    first = line.first.tolist()
    torn = _torn(line, rank, packets.key)
    flawed = _flawed(packets, first)
    remarks = {
        note: bool(note),
        f"times start again or jump: {len(first)} parts are put one after the other": len(first) > 1,
        f"where films were joined, {_counted(len(cut), 'picture')} cut through: left out": bool(cut),
        RESET: resets,
        TURNED: any(turned),
        f"{torn} pictures at the start of parts refer to pictures before the part: they may be wrong": torn,
        f"the container flags {_counted(flawed, 'packet')} as damaged": flawed,
        "not every picture has a time of its own: some are estimates": line.known and not (unique or note),
        ODD_EDITS: "mov" in formats and odd_edits(source.path, source.stream.id),
        ORDERED_CHAPTERS: "matroska" in formats
        and ordered_chapters(source.path, int(packets.pos[0]), int(packets.pos[-1])),
    }
    is_last = line.known and shown[-1] == count - 1
    tick_s = source.stream.time_base or 0
    last_s = float(packets.duration[-1] * tick_s) if is_last else 0.0
    key = (packets.key if unsafe else random_access)[shown] if ordered else None
    times = FrameTimes(np.arange(len(shown)), time_s, key, last_s)
    stream, said = describe(source, packets.side_data, len(first))
    kinds_beside: set[str] = {beside.type for beside in source.container.streams}
    kinds_beside |= {beside.kind for beside in packets.late}
    return PacketTable(
        pts=packets.pts,
        size=packets.size,
        rank=rank,
        random_access=random_access,
        # No other picture of the highest layer refers to it.
        spare=np.array(unreferenced) & (np.array(layers) == max(layers)),
        shown=shown,
        frame_times=times,
        # A table of frames has one for each, whatever is lost; and long steps that were meant.
        holes=np.zeros((0, 2)) if source.declared else times.holes(),
        unsafe=unsafe,
        labelled=labelled,
        seekable=labelled and MISSING not in packets.pts and bool(formats & SEEKABLE_FORMATS),
        losses=tuple(_losses(source, packets, line, time_s, wrong)),
        part_first=line.first,
        part_offset_s=(line.offset * float(tick_s)).astype(np.float64),
        stream=stream,
        notes=(*(remark for remark, holds in remarks.items() if holds), *said, *late_notes(packets.late)),
        besides=tuple(name for name, kind in BESIDES.items() if kind in kinds_beside),
        late=tuple(packets.late),
    )


def _flawed(packets: Packets, first: Sequence[int]) -> int:
    """Count the packets that the container flags as damaged, but for those where parts meet.

    There packets are flagged whatever they hold.
    """
    flagged = {*np.flatnonzero(packets.corrupt).tolist()}
    if len(first) > 1:
        for number in first:
            flagged -= {number - 2, number - 1, number}
    return len(flagged)


def _counted(n: int, noun: str) -> str:
    return f"{n} {noun}s" if n > 1 else f"{n} {noun}"


def _why_unsafe(
    source: Source, packets: Packets, *, unique: bool, by_kind: bool, access: NDArray[np.bool_]
) -> str:
    """Return why this stream must be decoded sequentially; empty if it need not."""
    codec = source.codec
    by_time = source.codec not in ORDERED_BY_KIND
    untimed = by_time and not TIMED_FORMATS & {*source.formats}
    checks = {
        f"the codec is {codec}": codec not in READERS,
        packets.error: bool(packets.error),
        "the container flags damaged packets": packets.corrupt.any(),
        "the codec's settings change within the stream": "new_extradata" in packets.side_data,
        "packets without exactly one picture": not by_time and not by_kind,
        "fields have packets of their own": bool(second_fields([each.field for each in packets.headers])),
        f"{SPELLED.get(codec, codec)} in {source.formats[0]} has no reliable time stamps": untimed,
        "time stamps are missing": by_time and MISSING in packets.pts,
        "time stamps repeat": by_time and not unique,
        "decoding cannot start at the first packet": not access[0],
    }
    return next((reason for reason, applies in checks.items() if applies), "")


def _line(source: Source, packets: Packets, *, program: bool, estimated: bool) -> tuple[TimeLine, str]:
    """Return the line of the stream's times, and a note if they are not times of presentation.

    It is not known if all times but one are equal, or some are missing for which no steady rate has room.
    """
    tick_s = source.stream.time_base
    stored = MISSING not in packets.dts
    for ticks, note in (
        (packets.dts if estimated else packets.pts, ""),
        (packets.dts, "the file stores no presentation times: decoding times stand in"),
        (packets.pts, SOME_TIMES),
    ):
        timed = ticks[~packets.hidden] != MISSING
        lacking = not timed.any() if note == SOME_TIMES else MISSING in ticks
        if not tick_s or lacking or (len(ticks) > 1 and not _differ(ticks)):
            continue
        if "avi" in source.formats:  # it counts entries, whatever it was joined from
            if MISSING in packets.dts or np.array_equal(np.sort(ticks), packets.dts):
                return unbroken(ticks), note
            return unbroken(packets.dts), CHUNK_TIMES
        ticks_settled = settled(ticks, _step(source)) if program and stored else ticks
        decoding = stored and DECODING_FORMATS & {*source.formats}
        # Times of transport and program streams wrap around; MP4 lists how long each picture is shown. Of
        # others a step of over an hour to a key picture is no pause, but another part.
        listed = "mov" in source.formats and source.declared > 0
        jumps = packets.key & (not listed) | bool({"mpegts", "mpeg"} & {*source.formats})
        line = time_line(
            ticks_settled,
            step=_step(source, stated=note == SOME_TIMES),
            longest=np.where(jumps, int(JUMP_S / tick_s), MOST_TICKS),
            key=packets.key,
            shown=~packets.hidden,
            decoding=(ticks_settled if estimated else packets.dts) if decoding else None,
        )
        return line, note
    return unbroken(packets.pts, known=False), ""


def _stand_in_times(source: Source, packets: Packets, count: int) -> tuple[NDArray[np.float64], str]:
    """Return times by the rate if the file states none, and NaN if it states some; with a note."""
    if any(map(_differ, (packets.pts, packets.dts))):
        return np.full(count, np.nan), "not every frame has a time: they are not known"
    rate, note = _by_rate(source)
    return np.arange(count) / rate, note


def _differ(stamps: NDArray[np.int64]) -> bool:
    """Return whether time stamps are times; where they are none, FFmpeg may estimate one that differs."""
    return bool(np.count_nonzero(np.diff(stamps)) > (len(stamps) > 2))


def _by_rate(source: Source) -> tuple[float, str]:
    rate = float(source.stream.guessed_rate or USUAL_RATE)
    return rate, f"the file states no times: {rate:g} frames a second are taken"


def _torn(line: TimeLine, rank: NDArray[np.int64], key: NDArray[np.bool_]) -> int:
    """Count the pictures that are shown before the first key picture of a part that is not the first."""
    torn = 0
    for first, end in pairwise([*line.first[1:].tolist(), len(rank)]):
        keys = first + np.flatnonzero(key[first:end])
        torn += int((rank[first:end] < rank[keys[0]]).sum()) if len(keys) else end - first
    return torn


def _seams(source: Source, packets: Packets, line: TimeLine) -> tuple[list[int], int]:
    """Find where Matroska was joined: packets that were cut through, the first that is wrongly decoded."""
    starts = line.first[1:].tolist()
    settings = source.context.extradata or b""
    if "matroska" not in source.formats or not starts:
        return [], 0
    position = packets.pos.tolist()
    size = packets.size.tolist()
    matches = heads(source.path, [(position[first - 1], position[first]) for first in starts])
    cut = []
    wrong = 0
    for first, (begin, head) in zip(starts, matches, strict=True):
        if 0 < begin < position[first - 1] + BLOCK_HEAD + size[first - 1]:
            cut.append(first - 1)
        described = source.codec in SELF_DESCRIBED or packets.headers[first].sets
        if begin and not described and settings not in head and not wrong:
            wrong = first
    return cut, wrong


def _losses(
    source: Source, packets: Packets, line: TimeLine, time_s: NDArray[np.float64], wrong: int
) -> Iterator[tuple[float, str]]:
    """Yield what a file lacks, or was joined to it and is not read as it should be; and from when on."""
    if cut_off := truncation(source, packets):
        yield -np.inf, cut_off
    if wrong:
        yield float(seconds([int(line.ticks[wrong])], source)[0]), OTHER_SETTINGS
        return
    position = packets.pos
    # A VP8 decoder shows nothing of what other codecs' packets hold.
    ends = (position + packets.size)[(position >= 0) & ~packets.hidden]
    at = second_file(files_of(source.path)[-1], source.formats, ends.tolist())
    tail = int(ends.max(initial=0))
    from_s = float(time_s.max())
    early = tail < ANOTHER_BELOW * file_state(source.path)[0]
    if {"mpegts", "mpeg"} & {*source.formats} and scrambled(files_of(source.path)[-1], tail):
        yield from_s, f"from byte {tail:,} on its packets are encrypted (scrambled), and are not read"
        return
    # The map of a transport stream may name another stream of pictures: what follows is then there alone.
    follows = any(stream.kind == "video" and stream.byte > position.max(initial=0) for stream in packets.late)
    ends_early = "mpegts" in source.formats and len(source.container.streams.video) > 1 and early
    if follows or ends_early:
        yield from_s, f"from byte {tail:,} on the file has pictures of another stream: {JOIN}"
        return
    behind = np.flatnonzero((position > at) & ~packets.hidden)
    # FFmpeg leaves out what fragments decode before those ahead of them.
    fragmented = "mov" in source.formats and not source.declared
    latest = np.maximum.accumulate(np.append(MISSING, packets.dts[:-1]))
    dropped = np.flatnonzero(fragmented & packets.hidden & (packets.dts <= latest))
    if at and (len(dropped) or not (fragmented and len(behind))):
        start = np.append(behind, line.first[1:])
        if len(start) and line.known:
            from_s = min(from_s, float(seconds([int(line.ticks[int(start.min())])], source)[0]))
        joined = f"a second file begins at byte {at:,}, of which pictures are missing: {JOIN}"
        yield from_s, joined
    elif len(dropped):
        from_s = float(seconds([int(line.ticks[dropped[0] - 1])], source)[0])
        yield from_s, f"{len(dropped)} pictures are left out, because times of fragments step back: {JOIN}"


def _step(source: Source, *, stated: bool = False) -> int:
    """Return the ticks between two pictures, by headers of MPEG-1 and MPEG-2, else by FFmpeg's guess.

    It guesses by times of pictures: where some have none, `stated` takes that of other headers too.
    """
    header = source.context.framerate if stated or source.codec in MPEG12 else None
    rate = header or source.stream.guessed_rate or USUAL_RATE
    tick_s = source.stream.time_base or 1
    return int(1 / (rate * tick_s))


def _steady_times(ticks: NDArray[np.int64], decoding: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return times of pictures [N], some of which are estimates; those of decoding where they are steady.

    To a picture that states no time of presentation FFmpeg gives that of decoding, which another may have.
    At a steady rate pictures are shown as they are decoded, a constant delay later.
    """
    steps = np.diff(decoding)
    if MISSING in decoding or not len(steps) or steps.min() <= 0 or np.ptp(steps) > 1:
        return ticks
    shifted: NDArray[np.int64] = decoding - decoding[0] + ticks.min()
    return shifted


def _following(ticks: NDArray[np.int64], step: int) -> NDArray[np.int64]:
    """Return when the picture after each is decoded; a step later at the end, and where a gap follows."""
    steps = np.diff(ticks, append=ticks[-1] + step)
    return ticks + np.where(steps > LONG_STEP * step, step, steps)


def seconds(ticks: list[int], source: Source) -> NDArray[np.float64]:
    """Sort a stream's ticks and convert them to seconds of the player's clock, each rounded once."""
    tick: Any = source.stream.time_base
    origin = source.origin
    # One common denominator for tick * value - origin: Python's integer division rounds once.
    denominator = tick.denominator * origin.denominator
    scale = tick.numerator * origin.denominator
    shift = origin.numerator * tick.denominator
    return np.array([(value * scale - shift) / denominator for value in sorted(ticks)], np.float64)


def truncation(source: Source, packets: Packets) -> str:
    """Describe what a file lacks of what its container declares; empty if it is complete."""
    size = file_state(source.path)[0]
    stated = stated_bytes(files_of(source.path)[0])
    if packets.error:
        return packets.error
    # AVI counts ticks, not packets: a dropped frame has a number but may have no packet.
    read = packets.dts[-1] + 1 if "avi" in source.formats and packets.dts[-1] != MISSING else packets.read
    if read < TRUNCATED_BELOW * source.declared:
        return f"the file is cut off: {read} of {source.declared} packets are there"
    if size < TRUNCATED_BELOW * stated:
        return f"the file is cut off: {size:,} of {stated:,.0f} bytes are there"
    if "yuv4mpegpipe" in source.formats:
        bytes_of_last = size - packets.pos[-1] - packets.size[-1]
        if bytes_of_last:
            return f"the file is cut off within its last picture, of which {bytes_of_last:,} bytes are there"
    return ""
