"""Index a stream by demuxing alone (pass 1): packets, display times and random access points.

The packets of a large file take seconds to read, so they are cached across the processes of a run. A file is
compared with what its container declares, to detect truncation.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import av
import numpy as np
from av import FFmpegError
from numpy.typing import NDArray

from obygaze_features.errors import VideoError
from obygaze_features.text import counted
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
    find_file_heads,
    find_second_file,
    has_ordered_chapters,
    has_unsupported_edits,
    is_scrambled,
    stated_bytes,
    states_rate,
)
from obygaze_features.video.display_order import find_suspect_group, reorders
from obygaze_features.video.file_facts import cached_fact, file_state, files_of, is_large
from obygaze_features.video.late_streams import LateStream, late_notes, late_streams
from obygaze_features.video.packet_table import MISSING, PacketTable
from obygaze_features.video.packets import appeared_later
from obygaze_features.video.sampling import LONG_STEP, FrameTimes
from obygaze_features.video.source import ReusableFile, Source, check_file, opened
from obygaze_features.video.stream import describe, note_side_data
from obygaze_features.video.time_line import (
    JUMP_S,
    USUAL_RATE,
    TimeLine,
    correct_outliers,
    time_line,
    unbroken,
)

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
SPAN_SLACK_S = 0.1
"""Seconds by which a whole span may end behind the time of the last picture of a file that is cut off."""
TRUNCATED_BELOW = 0.98
"""Share of the declared packets or bytes below which a file counts as cut off: containers count inexactly."""
MOST_TIMES_LONGER = 1000.0
"""How many times longer than what is there a file that is cut off may claim to be: else it is damaged."""
ANOTHER_BELOW = 0.9
"""Share of a transport stream. If its pictures end before it, those of another stream follow."""
BESIDES = {"sound": "audio", "subtitles": "subtitle"}
"""What a file may hold beside pictures -> FFmpeg's kind of its streams."""
MOST_TICKS = np.iinfo(np.int64).max
MOST_TABLES = 4
"""Tables that are kept in memory: spans of one film are read one after the other, without reading it
again."""
_tables: dict[tuple[Path, int, int], PacketTable] = {}
_changing_tables = Lock()
"""Held while the tables in memory change: the process of a card decodes in several threads."""


def index_packets(path: Path, reusable: list[ReusableFile] | None = None) -> PacketTable:
    """Read all packets of a file's video stream (10-30 ms per clip); the last few files are cached.

    A large file is read once for all processes that share a cache (`share_in`).

    Parameters
    ----------
    path
        The file.
    reusable
        A list, or None. A small file that can be decoded sparsely is appended to it, still open and with its
        packets, so that it need not be read again. The caller must close it.

    Raises
    ------
    VideoError
        The file can't be opened or holds no pictures.
    """
    check_file(path)
    key = (path, *file_state(path))
    with _changing_tables:
        table = _tables.pop(key, None)
    if table is None:
        keep = None if is_large(key[1]) else reusable
        table = cached_fact(path, "packets", lambda: _read_table(path, keep), PacketTable)
    with _changing_tables:
        _tables[key] = table  # at the end, so that the table at the front is the one used longest ago
        while len(_tables) > MOST_TABLES:
            oldest = next(iter(_tables))
            del _tables[oldest]
    return table


class Packets(NamedTuple):
    """The packets of a stream in decoding order, as columns of shape [P], and how reading them ended.

    Parameters
    ----------
    pts, dts
        Times of presentation and of decoding, in ticks of the stream, or `MISSING`.
    pos, size
        Byte at which the packet begins in the file, or `MISSING`, and its number of bytes.
    duration
        Ticks that its picture is shown; 0 if the file does not say.
    key
        Whether the container flags it as a key frame.
    hidden
        Whether no picture is shown for it.
    corrupt
        Whether the container flags it as damaged.
    headers
        What the header of each packet says.
    side_data
        Names of the kinds of side data that packets have.
    late
        Streams that appeared while the file was read.
    read
        Number of packets, with the empty ones, which AVI counts.
    error
        Why reading stopped before the end, if the file is damaged.
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


class ReadPackets(NamedTuple):
    """The columns of a stream's packets, and the packets themselves if they were asked for."""

    columns: Packets
    loaded: list[Packet]


def _read_table(path: Path, reusable: list[ReusableFile] | None = None) -> PacketTable:
    """Read the packets of a file and build their table.

    Parameters
    ----------
    path
        The file.
    reusable
        If given, and the stream can be decoded sparsely, the open file is appended with its packets.
    """
    with ExitStack() as still_open:
        source = still_open.enter_context(opened(path))
        try:
            packets, loaded_packets = _read_packets(source, keep=reusable is not None)
        except FFmpegError as error:
            raise VideoError("the file is damaged: its packets cannot be read", path) from error
        if packets.hidden.all():
            raise VideoError(
                "the file holds a video stream without a single picture that is shown (cut off after its "
                "header, or with an edit list that leaves all out?)",
                path,
            )
        table = _build_table(source, packets)
        if reusable is not None and not table.unsafe:
            reusable.append((replace(source, loaded=loaded_packets), still_open.pop_all()))
        return table


def _read_packets(source: Source, *, keep: bool) -> ReadPackets:
    """Read all packets of the stream, up to the end of the file or to where it is damaged.

    Parameters
    ----------
    source
        The open file.
    keep
        Whether to return the packets themselves, too.
    """
    rows: list[tuple[int | None, ...]] = []  # 8 values a packet
    headers: list[PictureHeader] = []
    side_data = set[str]()
    loaded: list[Packet] = []
    n_empty = 0
    error = ""
    read_header = header_reader(source.codec, source.context.extradata)
    try:
        for packet in source.stored():
            n_bytes = packet.size
            if not n_bytes:
                n_empty += 1
                continue
            header = read_header(packet)
            flags = packet.is_keyframe, packet.is_discard or header.hidden, packet.is_corrupt
            rows.append((packet.pts, packet.dts, packet.pos, n_bytes, packet.duration or 0, *flags))
            headers.append(header)
            note_side_data(packet, side_data)
            if keep:
                loaded.append(packet)
    except FFmpegError:
        error = f"reading stopped at damaged data after {len(rows)} packets"
    values = [MISSING if value is None else value for row in rows for value in row]
    pts, dts, pos, size, duration, *flag_columns = np.array(values, np.int64).reshape(-1, 8).T.copy()
    key, hidden, corrupt = (column > 0 for column in flag_columns)
    _merge_fields(headers, pts, dts, hidden)
    late = late_streams(files_of(source.path), source.formats, appeared_later(source.container))
    columns = Packets(
        pts=pts,
        dts=dts,
        pos=pos,
        size=size,
        duration=duration,
        key=key,
        hidden=hidden,
        corrupt=corrupt,
        headers=headers,
        side_data=side_data,
        late=late,
        read=len(rows) + n_empty,
        error=error,
    )
    return ReadPackets(columns, loaded)


def _merge_fields(
    headers: Sequence[PictureHeader],
    pts: NDArray[np.int64],
    dts: NDArray[np.int64],
    hidden: NDArray[np.bool_],
) -> None:
    """Merge pictures whose two fields have a packet each: mark the packets of second fields as hidden.

    A second field also gets the presentation time of the first, and a time of decoding not before it. The
    arrays, each of shape [P], are changed in place.
    """
    second_packets = second_fields([header.field for header in headers])
    if not second_packets:
        return
    first_packets = np.array(second_packets) - 1
    pts[second_packets] = pts[first_packets]
    hidden[second_packets] = True
    dts[second_packets] = np.maximum(dts[first_packets], dts[second_packets])  # `MISSING` is below all


class NotedLine(NamedTuple):
    """The time line of a stream, and a note if its times are not the stated times of presentation."""

    line: TimeLine
    note: str


class Seams(NamedTuple):
    """Where files of Matroska were joined byte by byte.

    Parameters
    ----------
    cut
        Packets whose picture was cut through.
    wrongly_decoded
        The first packet that would be decoded with the settings of another file; 0 if there is none.
    """

    cut: list[int]
    wrongly_decoded: int


class _StreamFacts:
    """Facts derived from the packets of a stream; each is computed once, when it is first needed.

    Parameters
    ----------
    source
        The open file.
    packets
        All packets of its stream.
    """

    def __init__(self, source: Source, packets: Packets) -> None:
        self.source = source
        self.packets = packets
        self.formats = {*source.formats}

    @cached_property
    def kind_ranks(self) -> NDArray[np.int64] | None:
        """Shape [P]: display position of each packet, by the types of the pictures (I, P, B).

        None for codecs that are ordered by time stamps, and where a packet's type is not known.
        """
        kinds = [header.kind for header in self.packets.headers]
        if self.source.codec not in ORDERED_BY_KIND or not all(kinds) or self.packets.error:
            return None
        return display_ranks("".join(kinds))

    @property
    def is_ordered_by_kind(self) -> bool:
        """Whether the types of the pictures give the display order."""
        return self.kind_ranks is not None

    @cached_property
    def is_program(self) -> bool:
        """Whether this is an MPEG program stream, where few pictures have a time stamp of their own."""
        return self.is_ordered_by_kind and bool(self.formats & PROGRAM_FORMATS)

    @cached_property
    def has_estimated_times(self) -> bool:
        """Whether presentation times are FFmpeg's estimates that decoding times can replace."""
        packets = self.packets
        has_all_decoding_times = MISSING not in packets.dts
        return self.is_program and has_all_decoding_times and not np.array_equal(packets.pts, packets.dts)

    @cached_property
    def stated(self) -> NotedLine:
        """The time line by the time stamps that the file states, with a note on them."""
        source = self.source
        stated = _stated_line(
            source, self.packets, program=self.is_program, estimated=self.has_estimated_times
        )
        if not states_rate(files_of(source.path)[0], source.formats[0]):
            return stated._replace(note=_rate_note(source))
        return stated

    @cached_property
    def line(self) -> TimeLine:
        """The time line of presentation.

        Where FFmpeg estimated the times of presentation, `stated` has times of decoding, and those of
        presentation are computed from them: the k-th picture shown appears when picture k + 1 is decoded.
        Pictures that are decoded at 0, 10, 20, 30 and are shown in the order 1, 3, 2, 4 get the times of
        presentation 10, 30, 20, 40.
        """
        line = self.stated.line
        if self.has_estimated_times and line.known:
            next_decoded = _times_of_next(line.ticks, _ticks_per_picture(self.source))
            line = line._replace(ticks=next_decoded[self.kind_ranks])
        if self.is_program and "mpegvideo" in self.formats:  # it states no times: they begin with 0
            line = line._replace(ticks=line.ticks - line.ticks.min())
        return line

    @cached_property
    def seams(self) -> Seams:
        """Pictures cut off, or decoded with wrong settings, where Matroska files were joined."""
        return _find_seams(self.source, self.packets, self.stated.line)

    @cached_property
    def hidden(self) -> NDArray[np.bool_]:
        """Shape [P]: whether no picture is shown for a packet, or its picture was cut off at a join."""
        hidden = self.packets.hidden.copy()
        hidden[self.seams.cut] = True
        return hidden

    @cached_property
    def has_unique_times(self) -> bool:
        """Whether every shown picture has a stated time of presentation that no other picture has."""
        if not self.line.known or self.stated.note:
            return False
        shown_ticks = self.line.ticks[~self.hidden]
        return len(np.unique(shown_ticks)) == len(shown_ticks)

    @cached_property
    def rank(self) -> NDArray[np.int64]:
        """Shape [P]: numbers that increase in display order."""
        return self.line.ticks if self.kind_ranks is None else self.kind_ranks

    @cached_property
    def settings_change(self) -> bool:
        """Whether packets bring different parameter sets."""
        parameter_sets = {header.sets for header in self.packets.headers if header.sets}
        return len(parameter_sets) > 1

    @cached_property
    def random_access(self) -> NDArray[np.bool_]:
        """Shape [P]: whether decoding can start at a packet.

        If the parameter sets never change, those of the container or the first packet hold everywhere. If
        they change, decoding can only start at packets that bring some.
        """
        headers = self.packets.headers
        if self.settings_change:
            return np.array([header.start and bool(header.sets) for header in headers])
        return np.array([header.start for header in headers])

    @cached_property
    def may_be_known_by_packet(self) -> bool:
        """Whether the display order is known without decoding, if time stamps are presentation times.

        Formats that are not in `TIMED_FORMATS` store no presentation times, and FFmpeg's estimates are wrong
        with B-frames (AVI, ASF).
        """
        if self.is_ordered_by_kind:
            return True
        has_presentation_times = bool(self.formats & TIMED_FORMATS) and self.source.codec != "mpeg4"
        return has_presentation_times and self.has_unique_times

    @cached_property
    def stamps_are_decoding_times(self) -> bool:
        """Whether the presentation time stamps are really times of decoding, so that they give a wrong order.

        Stamps that may be so are tested by decoding some pictures.
        """
        may_reorder = self.source.context.has_b_frames
        if not self.may_be_known_by_packet or self.is_ordered_by_kind or not may_reorder:
            return False
        packets = self.packets
        group_start = find_suspect_group(self.rank, packets.pts, packets.dts, self.random_access)
        has_suspect_group = group_start >= 0
        return has_suspect_group and reorders(self.source.path, self.random_access, group_start)

    @property
    def known_by_packet(self) -> bool:
        """Whether a decoded frame's place in the display order follows from the number of its packet."""
        return self.may_be_known_by_packet and not self.stamps_are_decoding_times

    @property
    def seekable(self) -> bool:
        """Whether a packet after a seek is identified by its time stamp and size."""
        has_all_stamps = MISSING not in self.packets.pts
        return self.known_by_packet and has_all_stamps and bool(self.formats & SEEKABLE_FORMATS)

    @cached_property
    def unsafe(self) -> str:
        """Why the stream cannot be decoded sparsely; empty if it can."""
        if self.stamps_are_decoding_times:
            return DECODING_TIMES
        return _why_unsafe(
            self.source,
            self.packets,
            unique=self.has_unique_times,
            by_kind=self.is_ordered_by_kind,
            access=self.random_access,
        )

    @property
    def ordered(self) -> bool:
        """Whether the display order of the packets is known without decoding."""
        return self.known_by_packet or not self.unsafe

    @cached_property
    def shown(self) -> NDArray[np.int64]:
        """Shape [L]: displayed packets in display order, or in decoding order if that is unknown."""
        shown = np.flatnonzero(~self.hidden)
        if not self.ordered:
            return shown
        return shown[np.argsort(self.rank[shown], kind="stable")]

    @cached_property
    def times(self) -> "NotedTimes":
        """Times of the displayed pictures in seconds, rising, with a note on how they were obtained."""
        if not self.line.known:
            return _times_by_rate(self.source, self.packets, len(self.shown))
        shown = np.flatnonzero(~self.hidden)
        ticks = self.line.ticks[shown]
        # Times that repeat are FFmpeg's estimates. In a joined file, decoding times are not of one time line.
        has_estimates = bool(self.formats & DECODING_FORMATS) and not self.has_unique_times
        is_joined = len(self.line.first) > 1
        if has_estimates and not is_joined:
            ticks = _replace_estimates(ticks, self.packets.dts[shown])
        return NotedTimes(seconds(ticks.tolist(), self.source), self.stated.note)

    @cached_property
    def frame_times(self) -> FrameTimes:
        """The displayed frames with their times, and whether each is a key frame (None if not known)."""
        packets = self.packets
        shown = self.shown
        key = None
        if self.ordered:
            key = packets.key[shown] if self.unsafe else self.random_access[shown]
        last_s = 0.0
        last_packet_is_last_shown = shown[-1] == len(packets.pts) - 1
        if self.line.known and last_packet_is_last_shown:
            last_s = float(packets.duration[-1] * (self.source.stream.time_base or 0))
        return FrameTimes(np.arange(len(shown)), self.times.time_s, key, last_s)

    def time_of(self, packet: int) -> float:
        """Return the time of a packet in seconds."""
        return float(seconds([int(self.line.ticks[packet])], self.source)[0])


def _build_table(source: Source, packets: Packets) -> PacketTable:
    """Build the table of a stream's packets."""
    facts = _StreamFacts(source, packets)
    times = facts.frame_times
    line = facts.line
    tick_s = float(source.stream.time_base or 0)
    notes = [*_notes(facts)]
    stream, notes_on_stream = describe(source, packets.side_data, len(line.first))
    unreferenced = np.array([header.unreferenced for header in packets.headers])
    layers = np.array([header.layer for header in packets.headers])
    return PacketTable(
        pts=packets.pts,
        size=packets.size,
        rank=facts.rank,
        random_access=facts.random_access,
        # Pictures of a lower layer that none of that layer refers to may be needed by a higher one.
        skippable=unreferenced & (layers == layers.max()),
        shown=facts.shown,
        frame_times=times,
        # A container that declares its frames has an entry for each, so its long steps are meant.
        holes=np.zeros((0, 2)) if source.declared else times.holes(),
        unsafe=facts.unsafe,
        known_by_packet=facts.known_by_packet,
        seekable=facts.seekable,
        losses=tuple(_losses(facts)),
        part_first=line.first,
        part_offset_s=(line.offset * tick_s).astype(np.float64),
        stream=stream,
        notes=(*notes, *notes_on_stream, *late_notes(packets.late)),
        besides=_kinds_beside(source, packets.late),
        late=tuple(packets.late),
        stated_end_s=_stated_end_s(facts),
    )


def _kinds_beside(source: Source, late: Sequence[LateStream]) -> tuple[str, ...]:
    """Return what a file holds besides pictures: `sound`, `subtitles` or both."""
    kinds: set[str] = {stream.type for stream in source.container.streams}
    kinds |= {stream.kind for stream in late}
    return tuple(name for name, kind in BESIDES.items() if kind in kinds)


def _notes(facts: _StreamFacts) -> Iterator[str]:
    """Yield notes for the user on the times and packets of a stream."""
    note_on_times = facts.times.note
    if note_on_times:
        yield note_on_times
    yield from _notes_on_packets(facts)
    if facts.line.known and not facts.has_unique_times and not note_on_times:
        yield "not every picture has a time of its own: some are estimates"
    source = facts.source
    if "mov" in facts.formats and has_unsupported_edits(source.path, source.stream.id):
        yield ODD_EDITS
    if "matroska" in facts.formats:
        first_byte = int(facts.packets.pos[0])
        last_byte = int(facts.packets.pos[-1])
        if has_ordered_chapters(source.path, first_byte, last_byte):
            yield ORDERED_CHAPTERS


def _notes_on_packets(facts: _StreamFacts) -> Iterator[str]:
    """Yield notes for the user on joined files, changed settings and damage."""
    packets = facts.packets
    n_parts = len(facts.line.first)
    if n_parts > 1:
        yield f"times start again or jump: {n_parts} parts are put one after the other"
    n_cut = len(facts.seams.cut)
    if n_cut:
        yield f"where films were joined, {_counted(n_cut, 'picture')} cut through: left out"
    if facts.settings_change:
        yield RESET
    if any(header.turned for header in packets.headers):
        yield TURNED
    n_torn = _count_torn_pictures(facts.line, facts.rank, packets.key)
    if n_torn:
        torn = counted(n_torn, "picture refers", "pictures refer")
        yield f"at the start of parts {torn} to pictures before the part: they may be wrong"
    n_flawed = _count_damaged_packets(packets, facts.line.first.tolist())
    if n_flawed:
        yield f"the container flags {_counted(n_flawed, 'packet')} as damaged"


def _count_damaged_packets(packets: Packets, first: Sequence[int]) -> int:
    """Count the packets that the container flags as damaged, except around the joins of a joined file.

    At a join, the counters of packets jump, so FFmpeg flags packets that are not damaged.

    Parameters
    ----------
    packets
        The packets.
    first
        The first packet of each part.
    """
    flagged = {*np.flatnonzero(packets.corrupt).tolist()}
    if len(first) > 1:
        for packet in first:
            flagged -= {packet - 2, packet - 1, packet}
    return len(flagged)


def _counted(n: int, noun: str) -> str:
    """Write a number with its noun, in the plural if it is above 1."""
    return f"{n} {noun}s" if n > 1 else f"{n} {noun}"


def _why_unsafe(
    source: Source, packets: Packets, *, unique: bool, by_kind: bool, access: NDArray[np.bool_]
) -> str:
    """Return the first reason why a stream must be decoded sequentially; empty if there is none.

    Parameters
    ----------
    source, packets
        The stream and its packets.
    unique
        Whether every picture has a time of its own.
    by_kind
        Whether the types of the pictures give the display order.
    access
        Shape [P]: whether decoding can start at a packet.
    """
    codec = source.codec
    # Other codecs are put in display order by the types of pictures, and need no time stamps.
    by_time = codec not in ORDERED_BY_KIND
    codec_name = SPELLED.get(codec, codec)
    has_no_times = by_time and not TIMED_FORMATS & {*source.formats}
    has_second_fields = bool(second_fields([header.field for header in packets.headers]))
    reasons = {  # reason -> whether it applies
        f"the codec is {codec}": codec not in READERS,
        packets.error: bool(packets.error),
        "the container flags damaged packets": bool(packets.corrupt.any()),
        "the codec's settings change within the stream": "new_extradata" in packets.side_data,
        "packets without exactly one picture": not by_time and not by_kind,
        "fields have packets of their own": has_second_fields,
        f"{codec_name} in {source.formats[0]} has no reliable time stamps": has_no_times,
        "time stamps are missing": by_time and MISSING in packets.pts,
        "time stamps repeat": by_time and not unique,
        "decoding cannot start at the first packet": not access[0],
    }
    for reason, applies in reasons.items():
        if applies:
            return reason
    return ""


def _stated_line(source: Source, packets: Packets, *, program: bool, estimated: bool) -> NotedLine:
    """Return the time line by the time stamps of the file.

    Presentation times are used if the file has all of them, else decoding times, else the presentation times
    that it has, with the missing ones filled in at a steady rate. The times are unknown if nothing of this is
    possible, or if all stamps but one are equal.

    Parameters
    ----------
    source, packets
        The stream and its packets.
    program
        Whether it is a program stream.
    estimated
        Whether its times of presentation are FFmpeg's estimates: then times of decoding are used.
    """
    candidates = (  # times, whether missing ones are filled in, and the note on it
        (packets.dts if estimated else packets.pts, False, ""),
        (packets.dts, False, "the file stores no presentation times: decoding times stand in"),
        (packets.pts, True, SOME_TIMES),
    )
    for ticks, fills_in_times, note in candidates:
        is_timed = ticks != MISSING
        has_enough_times = is_timed[~packets.hidden].any() if fills_in_times else is_timed.all()
        are_all_equal = len(ticks) > 1 and not _are_times(ticks)
        if not source.stream.time_base or not has_enough_times or are_all_equal:
            continue
        if "avi" in source.formats:
            return _line_of_entries(ticks, packets.dts, note)
        has_all_decoding_times = MISSING not in packets.dts
        corrected = ticks
        if program and has_all_decoding_times:
            corrected = correct_outliers(ticks, _ticks_per_picture(source))
        decoding = None
        if has_all_decoding_times and DECODING_FORMATS & {*source.formats}:
            decoding = corrected if estimated else packets.dts
        line = time_line(
            corrected,
            step=_ticks_per_picture(source, stated=fills_in_times),
            longest_pause=_longest_steps(source, packets),
            key=packets.key,
            shown=~packets.hidden,
            decoding=decoding,
        )
        return NotedLine(line, note)
    return NotedLine(unbroken(packets.pts, known=False), "")


def _line_of_entries(ticks: NDArray[np.int64], entries: NDArray[np.int64], note: str) -> NotedLine:
    """Return the time line of an AVI file.

    AVI numbers its entries through, also in a file that was joined from several. If the time stamps are these
    numbers in another order, they are used. Otherwise the pictures get the numbers in display order.

    Parameters
    ----------
    ticks
        Shape [P]: time stamps that can be used.
    entries
        Shape [P]: times of decoding, which are the numbers of the entries.
    note
        Note on the time stamps.
    """
    if MISSING in entries or np.array_equal(np.sort(ticks), entries):
        return NotedLine(unbroken(ticks), note)
    return NotedLine(unbroken(entries), CHUNK_TIMES)


def _longest_steps(source: Source, packets: Packets) -> NDArray[np.int64]:
    """Return how long a step between two packets may be before it counts as a join of two recordings.

    In transport and program streams, whose times wrap around, every step longer than `JUMP_S` is a join. In
    MP4 none is, because the file lists how long each picture is shown. In other files, only a step to a key
    picture is.

    Returns
    -------
    NDArray
        Shape [P]: for each packet, the longest step to it in ticks that is a mere pause.
    """
    formats = {*source.formats}
    lists_durations = "mov" in formats and source.declared > 0
    if formats & {"mpegts", "mpeg"}:
        may_jump = np.ones(len(packets.pts), np.bool_)
    elif lists_durations:
        may_jump = np.zeros(len(packets.pts), np.bool_)
    else:
        may_jump = packets.key
    jump = int(JUMP_S / (source.stream.time_base or 1))
    return np.where(may_jump, jump, MOST_TICKS)


class NotedTimes(NamedTuple):
    """Times of the shown pictures in seconds, shape [L], and a note if they are not stated times."""

    time_s: NDArray[np.float64]
    note: str


def _times_by_rate(source: Source, packets: Packets, count: int) -> NotedTimes:
    """Return times of `count` pictures in a file without a full time line.

    If the file states no times at all, they follow from an assumed rate. If it states some, they are NaN.
    """
    if _are_times(packets.pts) or _are_times(packets.dts):
        return NotedTimes(np.full(count, np.nan), "not every frame has a time: they are not known")
    return NotedTimes(np.arange(count) / _assumed_rate(source), _rate_note(source))


def _are_times(stamps: NDArray[np.int64]) -> bool:
    """Return whether time stamps are real times, which differ from each other.

    In a file without times all are equal, except one that FFmpeg may estimate.
    """
    n_changes = np.count_nonzero(np.diff(stamps))
    n_estimated = 1 if len(stamps) > 2 else 0
    return bool(n_changes > n_estimated)


def _assumed_rate(source: Source) -> float:
    """Return the pictures a second that are assumed where a file states no times."""
    return float(source.stream.guessed_rate or USUAL_RATE)


def _rate_note(source: Source) -> str:
    """Return the note that a rate is assumed, as the file states no times."""
    return f"the file states no times: {_assumed_rate(source):g} frames a second are taken"


def _count_torn_pictures(line: TimeLine, rank: NDArray[np.int64], key: NDArray[np.bool_]) -> int:
    """Count the pictures of later parts of a joined file that may refer to pictures before their part.

    Such pictures are shown before the first key picture of their part.

    Parameters
    ----------
    line
        The time line, with the first packet of each part.
    rank, key
        Shape [P]: display rank of each packet, and whether it is a key picture.
    """
    n_torn = 0
    edges = [*line.first[1:].tolist(), len(rank)]
    for first, end in pairwise(edges):
        keys = first + np.flatnonzero(key[first:end])
        if len(keys):
            first_key = keys[0]
            n_torn += int((rank[first:end] < rank[first_key]).sum())
        else:  # all pictures refer to others before the part
            n_torn += end - first
    return n_torn


def _find_seams(source: Source, packets: Packets, line: TimeLine) -> Seams:
    """Find damage where files of Matroska were joined without remuxing.

    Returns
    -------
    Seams
        Packets whose picture is cut off by the header of the next file, and the first packet that is decoded
        with the codec settings of another file; 0 if there is none.
    """
    starts = line.first[1:].tolist()  # the first packet of each further file
    if "matroska" not in source.formats or not starts:
        return Seams([], 0)
    settings = source.context.extradata or b""
    position = packets.pos.tolist()
    size = packets.size.tolist()
    file_heads = find_file_heads(source.path, [(position[first - 1], position[first]) for first in starts])
    cut = []
    wrongly_decoded = 0
    for first, (head_position, head) in zip(starts, file_heads, strict=True):
        last = first - 1
        end_of_last = position[last] + BLOCK_HEAD + size[last]  # where the last block should end
        if 0 < head_position < end_of_last:
            cut.append(last)
        brings_settings = source.codec in SELF_DESCRIBED or bool(packets.headers[first].sets)
        has_same_settings = settings in head
        has_wrong_settings = head_position > 0 and not brings_settings and not has_same_settings
        if has_wrong_settings and wrongly_decoded == 0:  # only the first such packet is returned
            wrongly_decoded = first
    return Seams(cut, wrongly_decoded)


def _losses(facts: _StreamFacts) -> Iterator[tuple[float, str]]:
    """Yield what is missing in a file, or is decoded wrongly, because it is cut off or was joined.

    Yields
    ------
    float
        The time in seconds from which pictures are missing or wrong.
    str
        What is wrong.
    """
    cut_off = truncation(facts.source, facts.packets)
    if cut_off:
        # After an error it is unknown of which time the packets are that were not read.
        from_s = -np.inf if facts.packets.error else _last_picture_s(facts) + SPAN_SLACK_S
        yield from_s, cut_off
    if facts.seams.wrongly_decoded:
        yield facts.time_of(facts.seams.wrongly_decoded), OTHER_SETTINGS
        return
    unread_tail = _unread_tail(facts.source, facts.packets)
    if unread_tail:
        yield _last_picture_s(facts), unread_tail
        return
    yield from _lost_in_joins(facts)


def _last_picture_s(facts: _StreamFacts) -> float:
    """Return the time of the last picture in seconds."""
    return float(facts.times.time_s.max())


def _picture_ends(packets: Packets) -> NDArray[np.int64]:
    """Return the byte positions at which the packets of shown pictures end, where these are known."""
    # Hidden ones are left out: a VP8 decoder shows nothing of what packets of other codecs hold.
    is_placed = (packets.pos >= 0) & ~packets.hidden
    ends: NDArray[np.int64] = (packets.pos + packets.size)[is_placed]
    return ends


def _unread_tail(source: Source, packets: Packets) -> str:
    """Return a sentence if the end of a transport or program stream is encrypted or of another stream."""
    formats = {*source.formats}
    end_of_pictures = int(_picture_ends(packets).max(initial=0))  # byte behind the last picture
    if {"mpegts", "mpeg"} & formats and is_scrambled(files_of(source.path)[-1], end_of_pictures):
        return f"from byte {end_of_pictures:,} on its packets are encrypted (scrambled), and are not read"
    # The map of a transport stream may name another stream of pictures: only that goes on then.
    last_position = packets.pos.max(initial=0)
    another_begins_behind = any(
        stream.kind == "video" and stream.byte > last_position for stream in packets.late
    )
    has_several = "mpegts" in formats and len(source.container.streams.video) > 1
    file_bytes, _ = file_state(source.path)
    ends_early = end_of_pictures < ANOTHER_BELOW * file_bytes
    if another_begins_behind or (has_several and ends_early):
        return f"from byte {end_of_pictures:,} on the file has pictures of another stream: {JOIN}"
    return ""


def _lost_in_joins(facts: _StreamFacts) -> Iterator[tuple[float, str]]:
    """Yield losses in files that were joined, in the form of `_losses`: time in seconds, and description.

    They are a second file that was appended and is not read, or fragments of MP4 whose times step back, so
    that FFmpeg drops their pictures.
    """
    source = facts.source
    packets = facts.packets
    second_start = find_second_file(
        files_of(source.path)[-1], source.formats, _picture_ends(packets).tolist()
    )
    # Shown pictures that FFmpeg nevertheless read of the second file.
    read_of_second = np.flatnonzero((packets.pos > second_start) & ~packets.hidden)
    is_fragmented = "mov" in source.formats and not source.declared
    dropped = _packets_dropped_by_times(packets) if is_fragmented else np.zeros(0, np.int64)
    # FFmpeg reads the fragments of a second file as it reads those of the first.
    is_second_read_whole = is_fragmented and len(read_of_second) > 0 and len(dropped) == 0
    if second_start > 0 and not is_second_read_whole:
        from_s = _start_of_unread_second_file_s(facts, read_of_second)
        yield (
            from_s,
            f"a second file begins at byte {second_start:,}, of which pictures are missing: {JOIN}",
        )
    elif len(dropped):
        last_kept = int(dropped[0]) - 1
        n_dropped = counted(len(dropped), "picture is", "pictures are")
        yield (
            facts.time_of(last_kept),
            f"{n_dropped} left out, because times of fragments step back: {JOIN}",
        )


def _start_of_unread_second_file_s(facts: _StreamFacts, read_of_second: NDArray[np.int64]) -> float:
    """Return the time in seconds from which a second file that is not read, or not whole, is lost.

    It is the time of the last picture. But what was read of the second file may be wrong too: it begins at
    the first packet of `read_of_second`, or where a second part of the time line begins.
    """
    from_s = _last_picture_s(facts)
    possible_starts = np.append(read_of_second, facts.line.first[1:])
    if len(possible_starts) and facts.line.known:
        from_s = min(from_s, facts.time_of(int(possible_starts.min())))
    return from_s


def _packets_dropped_by_times(packets: Packets) -> NDArray[np.int64]:
    """Return the packets that FFmpeg drops because an earlier one has no earlier decoding time."""
    latest_before = np.maximum.accumulate(np.append(MISSING, packets.dts[:-1]))
    return np.flatnonzero(packets.hidden & (packets.dts <= latest_before))


def _ticks_per_picture(source: Source, *, stated: bool = False) -> int:
    """Return the usual number of ticks between two pictures.

    For MPEG-1 and MPEG-2 it follows from the rate in their headers, else from the rate that FFmpeg guesses.

    Parameters
    ----------
    source
        The open file.
    stated
        Whether to use the rate in the headers of other codecs, too: FFmpeg guesses by the times of pictures,
        of which some may be missing.
    """
    rate = None
    if stated or source.codec in MPEG12:
        rate = source.context.framerate
    rate = rate or source.stream.guessed_rate or USUAL_RATE
    tick_s = source.stream.time_base or 1
    return int(1 / (rate * tick_s))


def _replace_estimates(ticks: NDArray[np.int64], decoding: NDArray[np.int64]) -> NDArray[np.int64]:
    """Replace presentation times, some of which are estimates, by decoding times if these are steady.

    To a picture without a presentation time, FFmpeg gives its decoding time, which may be that of another
    picture. At a steady rate the displayed times are the decoding times plus a constant delay.

    Parameters
    ----------
    ticks, decoding
        Shape [N]: times of presentation and of decoding, in decoding order.
    """
    steps = np.diff(decoding)
    if MISSING in decoding or not len(steps):
        return ticks
    is_steady = steps.min() > 0 and np.ptp(steps) <= 1
    if not is_steady:
        return ticks
    shifted: NDArray[np.int64] = decoding - decoding[0] + ticks.min()
    return shifted


def _times_of_next(ticks: NDArray[np.int64], step: int) -> NDArray[np.int64]:
    """Return for each picture, in ticks, when the next picture is decoded.

    For the last picture, and before a gap, it is one usual step later.

    Parameters
    ----------
    ticks
        Times of decoding.
    step
        Ticks between two pictures.
    """
    steps = np.diff(ticks, append=ticks[-1] + step)
    has_gap = steps > LONG_STEP * step
    return ticks + np.where(has_gap, step, steps)


def seconds(ticks: list[int], source: Source) -> NDArray[np.float64]:
    """Sort time stamps in ticks of a stream, and convert them to seconds of the player's clock.

    The result is exact up to one rounding for each value.
    """
    tick: Any = source.stream.time_base
    origin = source.origin
    # tick * value - origin as one fraction of integers, so that only the division rounds.
    denominator = tick.denominator * origin.denominator
    scale = tick.numerator * origin.denominator
    shift = origin.numerator * tick.denominator
    return np.array([(value * scale - shift) / denominator for value in sorted(ticks)], np.float64)


def _stated_end_s(facts: _StreamFacts) -> float:
    """Return when the pictures of a file that is cut off would end, by what its container states.

    NaN if the file is whole, or states nothing that can be.
    """
    source = facts.source
    if not facts.line.known or not truncation(source, facts.packets):
        return math.nan
    times = facts.frame_times
    ends_s = []
    if source.stream.duration and source.stream.time_base:
        ends_s.append(float(times.time_s[0]) + float(source.stream.duration * source.stream.time_base))
    if source.container.duration:  # of all streams, and of what an edit list shows
        ends_s.append(source.container.duration / av.time_base - float(source.origin))
    stated_s = min(ends_s, default=math.nan)
    is_possible = times.end_s < stated_s < times.end_s * MOST_TIMES_LONGER
    return stated_s if is_possible else math.nan


def truncation(source: Source, packets: Packets) -> str:
    """Return in words how a file is cut off, by what its container states; empty if it is whole."""
    size, _ = file_state(source.path)
    stated = stated_bytes(files_of(source.path)[0])
    if packets.error:
        return packets.error
    n_read = packets.read
    if "avi" in source.formats and packets.dts[-1] != MISSING:
        # AVI declares frames: the decoding time of a packet is the number of its frame, from 0. A dropped
        # frame has a number but may have no packet.
        n_read = packets.dts[-1] + 1
    if n_read < TRUNCATED_BELOW * source.declared:  # 0 if the container declares no number
        return f"the file is cut off: {n_read} of {source.declared} packets are there"
    if size < TRUNCATED_BELOW * stated:
        return f"the file is cut off: {size:,} of {stated:,.0f} bytes are there"
    if "yuv4mpegpipe" in source.formats:
        bytes_of_last = size - packets.pos[-1] - packets.size[-1]
        if bytes_of_last:
            return f"the file is cut off within its last picture, of which {bytes_of_last:,} bytes are there"
    return ""
