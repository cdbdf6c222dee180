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
    BLOCK_HEAD_BYTES,
    find_edits,
    find_file_heads,
    find_second_file,
    has_ordered_chapters,
    is_scrambled,
    stated_bytes,
    states_rate,
)
from obygaze_features.video.display_order import (
    NO_SUSPECT_GROUP,
    count_held_back,
    find_suspect_group,
    reorders,
)
from obygaze_features.video.file_facts import cached_fact, file_state, files_of, is_large
from obygaze_features.video.last_elements import (
    ends_as_riff,
    find_damage_before_fragments,
    find_end_of_gif,
    missing_bytes,
)
from obygaze_features.video.late_streams import LateStream, late_notes, late_streams
from obygaze_features.video.packet_table import MISSING, PacketTable, stamp
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
SEVERAL_EDITS = (
    "its edit list shows several parts: FFmpeg may give pictures behind the first part some frames too late"
)
ORDERED_CHAPTERS = f"its chapters have an order of their own, {NOT_FOLLOWED}"
# Codecs whose pictures carry all settings that decoding needs.
SELF_DESCRIBED = MPEG12 | {"vp8", "vp9", "av1", "mjpeg", "prores", "dnxhd"}
ADVICE_TO_JOIN = "join films with FFmpeg"
DECODING_TIMES = "its time stamps are those of decoding"
CHUNK_TIMES = (
    "AVI states no times of presentation: pictures have those of its entries, in the order of display"
)
OTHER_CODEC_SETTINGS = f"a joined file has other settings of its codec, which are not read: {ADVICE_TO_JOIN}"
CHANGING_SETTINGS = (
    "the codec's settings change within the video: the shape of its pixels may, and is not followed"
)
SOME_TIMES = "not every picture has a time of its own: the others have those that a steady rate leaves free"
TURNED_BY_PACKETS = (
    "its packets ask to turn the pictures, which is done for those alone that say so themselves"
)
NAME_OF_CODEC = {"h264": "H.264", "hevc": "HEVC", "vp8": "VP8", "vp9": "VP9", "av1": "AV1"}
SPAN_SLACK_S = 0.1
"""Seconds by which a whole span may end behind the time of the last picture of a file that is cut off."""
TRUNCATED_BELOW = 0.98
"""Share of the declared packets or bytes below which a file counts as cut off: containers count inexactly."""
MAX_TIMES_LONGER = 1000.0
"""How many times longer than what is there a file that is cut off may claim to be: else it is damaged."""
ANOTHER_BELOW = 0.9
"""Share of a transport stream. If its pictures end before it, those of another stream follow."""
KINDS_BESIDES_PICTURES = {"sound": "audio", "subtitles": "subtitle"}
"""What a file may hold beside pictures -> FFmpeg's kind of its streams."""
MAX_TICKS = np.iinfo(np.int64).max
MAX_TABLES = 4
"""Tables that are kept in memory: spans of one film are read one after the other, without reading it
again."""
_tables: dict[tuple[Path, int, int], PacketTable] = {}
"""The tables in memory, by path, size and date of the file; the one that was used last is at the end."""
_lock_of_tables = Lock()
"""Held while the tables in memory change: the process of a GPU decodes in several threads."""


def index_packets(path: Path, reusable: list[ReusableFile] | None = None) -> PacketTable:
    """Return the table of all packets of a file's video stream, which takes 10-30 ms per clip to read.

    The tables of the last few files stay in memory. A large file is read once for all processes that share a
    cache (`share_in`).

    Parameters
    ----------
    path
        The file.
    reusable
        A list that this function adds to, or None. If the file is read now, small, and can be decoded
        sparsely, it is appended, still open and with its packets, so that it need not be read again. The
        caller must close it.

    Raises
    ------
    VideoError
        The file can't be opened or holds no pictures.
    """
    check_file(path)
    n_bytes, modified = file_state(path)
    key = (path, n_bytes, modified)
    with _lock_of_tables:
        table = _tables.pop(key, None)
    if table is None:
        if is_large(n_bytes):
            reusable = None
        table = cached_fact(path, "packets", lambda: _read_table(path, reusable), PacketTable)
    with _lock_of_tables:
        _tables[key] = table  # at the end, as the table that was used last
        while len(_tables) > MAX_TABLES:
            used_longest_ago = next(iter(_tables))
            del _tables[used_longest_ago]
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


class _PacketRow(NamedTuple):
    """Properties of one packet, as of `Packets`."""

    pts: int
    dts: int
    pos: int
    size: int
    duration: int
    key: bool
    hidden: bool
    corrupt: bool


class ReadPackets(NamedTuple):
    """The columns of a stream's packets, and the packets themselves if they were asked for."""

    columns: Packets
    loaded: list[Packet]


def _read_table(path: Path, reusable: list[ReusableFile] | None = None) -> PacketTable:
    """Read the packets of a file's video stream, and build their table.

    Parameters
    ----------
    path
        The file.
    reusable
        A list, to which the open file is appended with its packets if the stream can be decoded sparsely,
        that is, if only the packets of wanted pictures are needed; or None, to close the file.

    Raises
    ------
    VideoError
        The packets cannot be read, or none shows a picture.
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
        can_be_decoded_sparsely = not table.unsafe  # `unsafe` is the reason why not, or empty
        if reusable is not None and can_be_decoded_sparsely:
            source_in_memory = replace(source, loaded=loaded_packets)
            left_open = still_open.pop_all()  # so that the file is not closed here, but by the caller
            reusable.append((source_in_memory, left_open))
        return table


def _read_packets(source: Source, *, keep: bool) -> ReadPackets:
    """Read all packets of the stream, up to the end of the file or to where it is damaged."""
    rows: list[_PacketRow] = []  # of the packets that hold bytes
    headers: list[PictureHeader] = []  # of the same packets
    loaded: list[Packet] = []  # the same packets, if they are to be kept
    side_data = set[str]()  # `note_side_data` adds to it
    n_empty = 0  # packets without bytes, which hold no picture
    error = ""
    read_header = header_reader(source.codec, source.context.extradata)
    try:
        for packet in source.stored():
            if not packet.size:
                n_empty += 1
                continue
            header = read_header(packet)
            headers.append(header)
            rows.append(_packet_row(packet, header))
            note_side_data(packet, side_data)
            if keep:
                loaded.append(packet)
    except FFmpegError:
        error = f"reading stopped at damaged data after {len(rows)} packets"

    columns = Packets(
        pts=np.array([row.pts for row in rows], np.int64),
        dts=np.array([row.dts for row in rows], np.int64),
        pos=np.array([row.pos for row in rows], np.int64),
        size=np.array([row.size for row in rows], np.int64),
        duration=np.array([row.duration for row in rows], np.int64),
        key=np.array([row.key for row in rows], np.bool_),
        hidden=np.array([row.hidden for row in rows], np.bool_),
        corrupt=np.array([row.corrupt for row in rows], np.bool_),
        headers=headers,
        side_data=side_data,
        late=late_streams(files_of(source.path), source.formats, appeared_later(source.container)),
        read=len(rows) + n_empty,
        error=error,
    )
    # The second field of a picture is no picture of its own: the columns are changed, so that it is hidden.
    _merge_fields(headers, columns.pts, columns.dts, columns.hidden)
    return ReadPackets(columns, loaded)


def _packet_row(packet: Packet, header: PictureHeader) -> _PacketRow:
    """Return the properties of one packet, some of which its header states."""
    return _PacketRow(
        pts=stamp(packet.pts),
        dts=stamp(packet.dts),
        pos=stamp(packet.pos),
        size=packet.size,
        duration=packet.duration or 0,
        key=packet.is_keyframe,
        hidden=packet.is_discard or header.hidden,
        corrupt=packet.is_corrupt,
    )


def _merge_fields(
    headers: Sequence[PictureHeader],
    pts: NDArray[np.int64],
    dts: NDArray[np.int64],
    hidden: NDArray[np.bool_],
) -> None:
    """Merge pictures whose two fields have a packet each: mark the packets of second fields as hidden.

    A second field also gets the presentation time of the first, and a time of decoding not before it. The
    arrays, [P], are changed in place.
    """
    for second in second_fields([header.field for header in headers]):
        first = second - 1
        pts[second] = pts[first]
        dts[second] = max(dts[first], dts[second])  # also if one is `MISSING`, which is below all times
        hidden[second] = True


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

    Attributes
    ----------
    formats
        FFmpeg's names of the format of the file, such as `mov` and `mp4`.
    """

    def __init__(self, source: Source, packets: Packets) -> None:
        """Store the file and its packets; every fact is computed when it is first needed."""
        self.source = source
        self.packets = packets
        self.formats = {*source.formats}

    @cached_property
    def kind_ranks(self) -> NDArray[np.int64] | None:
        """Shape [P]: display position of each packet, by the types of the pictures (I, P, B).

        None for codecs that are ordered by time stamps, and where a packet's type is not known.
        """
        kinds = [header.kind for header in self.packets.headers]
        are_all_known = all(kinds) and not self.packets.error
        if self.source.codec not in ORDERED_BY_KIND or not are_all_known:
            return None
        return display_ranks("".join(kinds))

    @property
    def is_ordered_by_kind(self) -> bool:
        """Whether the types of the pictures give the display order."""
        return self.kind_ranks is not None

    @cached_property
    def is_program(self) -> bool:
        """Whether this is an MPEG program stream whose times can be mended by the types of its pictures.

        In a program stream few pictures have a time stamp of their own. Those that FFmpeg makes up for the
        others can be replaced where the types of the pictures (I, P, B) say in which order they are shown.
        Where they do not, as for H.264, this is false.
        """
        has_format_of_program_streams = bool(self.formats & PROGRAM_FORMATS)
        return self.is_ordered_by_kind and has_format_of_program_streams

    @cached_property
    def has_estimated_times(self) -> bool:
        """Whether presentation times are FFmpeg's estimates that decoding times can replace.

        In a program stream few pictures have a time of their own, so FFmpeg estimates those of the others. If
        no picture is reordered, it gives each its time of decoding, which is right and needs no replacement.
        """
        packets = self.packets
        has_all_decoding_times = MISSING not in packets.dts
        are_the_same_times = np.array_equal(packets.pts, packets.dts)
        return self.is_program and has_all_decoding_times and not are_the_same_times

    @cached_property
    def noted_line(self) -> NotedLine:
        """The time line by the time stamps of the packets, and a note if these are not what the file states.

        A file without a container, such as a bare stream, may state no rate. FFmpeg then counts its pictures
        at 25 a second, and gives them time stamps: the note says so.
        """
        source = self.source
        noted_line = _line_by_stamps(self)
        first_file = files_of(source.path)[0]
        if not states_rate(first_file, source.formats[0]):
            return noted_line._replace(note=_rate_note(source))
        return noted_line

    @cached_property
    def line(self) -> TimeLine:
        """The time line of presentation: when each picture is shown.

        Where FFmpeg estimated the times of presentation, `noted_line` has times of decoding. While a decoder
        shows one picture, it decodes the next one. So the picture that is shown first appears at the time at
        which the second packet is decoded, the picture shown second when the third packet is decoded, and so
        on. For example, four packets are decoded at 0, 10, 20 and 30, and their places in the display order
        (`kind_ranks`) are 0, 2, 1, 3: they are shown at 10, 30, 20 and 40.
        """
        line = self.noted_line.line
        if self.has_estimated_times and line.is_known:
            display_times = _times_of_next(line.ticks, _ticks_per_picture(self.source))  # in display order
            line = line._replace(ticks=display_times[self.kind_ranks])  # in decoding order
        states_no_times = self.is_program and "mpegvideo" in self.formats
        if states_no_times:  # FFmpeg made them up: they begin with 0
            line = line._replace(ticks=line.ticks - line.ticks.min())
        return line

    @cached_property
    def seams(self) -> Seams:
        """What was damaged where Matroska files were joined byte by byte (their seams).

        At a seam the last picture of a file may be cut off, and the pictures of the next file may be decoded
        with the settings of the first. Time stamps start again there, which is how seams are found.
        """
        line_by_stamps = self.noted_line.line  # says at which packets time stamps start again
        return _find_seams(self.source, self.packets, line_by_stamps)

    @cached_property
    def hidden(self) -> NDArray[np.bool_]:
        """Shape [P]: whether no picture is shown for a packet, or its picture was cut off at a join."""
        hidden = self.packets.hidden.copy()
        hidden[self.seams.cut] = True
        return hidden

    @cached_property
    def has_unique_times(self) -> bool:
        """Whether the file states a time for every shown picture, and no two pictures have the same.

        A note on the times says that other times stand in for some that the file doesn't state.
        """
        are_stated = self.line.is_known and not self.noted_line.note
        if not are_stated:
            return False
        shown_ticks = self.line.ticks[~self.hidden]
        return len(np.unique(shown_ticks)) == len(shown_ticks)

    @cached_property
    def rank(self) -> NDArray[np.int64]:
        """A number for each of the P packets, [P]: a picture with a lower number is shown earlier.

        If the types of the pictures give the display order, it is the picture's position in that order. Else
        it is the time at which the picture is shown, in ticks. Only which of two numbers is lower counts.
        """
        if self.kind_ranks is not None:
            return self.kind_ranks
        return self.line.ticks

    @cached_property
    def settings_change(self) -> bool:
        """Whether packets bring different parameter sets."""
        parameter_sets = {header.sets for header in self.packets.headers if header.sets}
        return len(parameter_sets) > 1

    @cached_property
    def random_access(self) -> NDArray[np.bool_]:
        """Shape [P]: whether decoding can start at a packet.

        A decoder needs the parameter sets (settings) of the stream. If they never change, those of the
        container or of the first packet hold everywhere. If they change, decoding can only start at packets
        that bring their own, because those of the container may be others.
        """
        headers = self.packets.headers
        are_start_pictures = np.array([header.start for header in headers])
        if not self.settings_change:
            return are_start_pictures
        bring_settings = np.array([bool(header.sets) for header in headers])
        starts: NDArray[np.bool_] = are_start_pictures & bring_settings
        return starts

    @cached_property
    def may_be_known_by_packet(self) -> bool:
        """Whether the display order follows from the packets, provided that stamps are presentation times.

        If so, a decoded frame is known by the number of its packet; else frames must be counted.

        Formats that are not in `TIMED_FORMATS` store no presentation times, and FFmpeg's estimates are wrong
        with B-frames (AVI, ASF).
        """
        if self.is_ordered_by_kind:
            return True
        if self.source.codec == "mpeg4":
            # Its pictures' types are not known, as packets hold several pictures or none (XviD's "packed"
            # streams): then a frame doesn't belong to one packet, whatever the time stamps are.
            return False
        stores_presentation_times = bool(self.formats & TIMED_FORMATS)
        return stores_presentation_times and self.has_unique_times

    @cached_property
    def stamps_are_decoding_times(self) -> bool:
        """Whether the presentation time stamps are really times of decoding, so that they give a wrong order.

        Some recorders write such files. If the stamps of a group of pictures rise from packet to packet, they
        may be of this kind. Then the group is decoded: if its pictures come out in another order than that of
        the packets, the stamps cannot be times of presentation.
        """
        is_ordered_by_stamps = self.may_be_known_by_packet and not self.is_ordered_by_kind
        may_reorder = self.source.context.has_b_frames
        if not is_ordered_by_stamps or not may_reorder:
            return False
        packets = self.packets
        group_start = find_suspect_group(self.rank, packets.pts, packets.dts, self.random_access)
        if group_start == NO_SUSPECT_GROUP:
            return False
        return reorders(self.source.path, self.random_access, group_start)

    @property
    def known_by_packet(self) -> bool:
        """Whether a decoded frame's place in the display order follows from the number of its packet.

        A stream of which this is not true is `unsafe`: it is decoded from its beginning, counting frames.
        """
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
        return _why_unsafe(self)

    @cached_property
    def shown(self) -> NDArray[np.int64]:
        """The numbers of the packets whose pictures are shown, in display order; L are shown.

        They stay in decoding order if the display order is not known without decoding.
        """
        shown = np.flatnonzero(~self.hidden)
        is_display_order_known = self.known_by_packet
        if not is_display_order_known:
            return shown
        return shown[np.argsort(self.rank[shown], kind="stable")]

    @cached_property
    def times(self) -> "NotedTimes":
        """Times of the displayed pictures in seconds, [L], rising; and a note if they are not stated."""
        if not self.line.is_known:
            return _times_by_rate(self.source, self.packets, len(self.shown))
        shown = np.flatnonzero(~self.hidden)
        ticks = self.line.ticks[shown]
        # Times that repeat are estimates of FFmpeg. Stored times of decoding give better ones at a steady
        # rate, unless the file was joined: then they start again with each part.
        has_estimates = not self.has_unique_times
        stores_decoding_times = bool(self.formats & DECODING_FORMATS)
        is_joined = len(self.line.first_packets) > 1
        if has_estimates and stores_decoding_times and not is_joined:
            ticks = _replace_estimates(ticks, self.packets.dts[shown])
        return NotedTimes(seconds(ticks.tolist(), self.source), self.noted_line.note)

    @cached_property
    def frame_times(self) -> FrameTimes:
        """The displayed frames with their times, and whether each is a key frame (None if not known)."""
        numbers = np.arange(len(self.shown))
        return FrameTimes(numbers, self.times.time_s, self._shown_keys(), self._last_duration_s())

    def _shown_keys(self) -> NDArray[np.bool_] | None:
        """Return for each displayed frame, [L], whether it is a key frame; None if that is not known.

        It is not known if a frame cannot be assigned to its packet without decoding. Where frames are decoded
        sparsely, key frames are those at which decoding can start, as the pictures' headers say. Else the
        headers may say nothing, and key frames are those that the container flags.
        """
        if not self.known_by_packet:
            return None
        is_decoded_sparsely = not self.unsafe
        is_key_packet = self.random_access if is_decoded_sparsely else self.packets.key
        return is_key_packet[self.shown]

    def _last_duration_s(self) -> float:
        """Return how long the last displayed frame is shown, in seconds; 0 if the file does not say.

        The duration of a packet is used only if the packet that is stored last is also shown last.
        """
        last_stored = len(self.packets.pts) - 1
        last_shown = self.shown[-1]
        if not self.line.is_known or last_shown != last_stored:
            return 0.0
        return float(self.packets.duration[-1] * (self.source.stream.time_base or 0))

    def time_of(self, packet: int) -> float:
        """Return the time of a packet in seconds."""
        return float(seconds([int(self.line.ticks[packet])], self.source)[0])


def _build_table(source: Source, packets: Packets) -> PacketTable:
    """Build the table of a stream's packets: order, times and properties that are known before decoding.

    `PacketTable` says what each field holds; most are worked out by `_StreamFacts`.
    """
    facts = _StreamFacts(source, packets)
    times = facts.frame_times
    line = facts.line
    tick_s = float(source.stream.time_base or 0)
    # A container that declares its frames says how long each is shown, so that a long step is no hole.
    no_holes = np.zeros((0, 2))
    declares_frames = source.declared > 0
    holes = no_holes if declares_frames else times.holes()
    notes = list(_notes(facts))
    n_parts = len(line.first_packets)
    stream, notes_on_stream = describe(source, packets.side_data, n_parts)
    return PacketTable(
        pts=packets.pts,
        size=packets.size,
        rank=facts.rank,
        random_access=facts.random_access,
        skippable=_skippable(packets.headers),
        shown=facts.shown,
        frame_times=times,
        holes=holes,
        unsafe=facts.unsafe,
        known_by_packet=facts.known_by_packet,
        seekable=facts.seekable,
        losses=tuple(_losses(facts)),
        part_first=line.first_packets,
        part_offset_s=(line.offsets * tick_s).astype(np.float64),
        stream=stream,
        notes=(*notes, *notes_on_stream, *late_notes(packets.late)),
        besides=_kinds_beside(source, packets.late),
        late=tuple(packets.late),
        stated_end_s=_stated_end_s(facts),
    )


def _skippable(headers: Sequence[PictureHeader]) -> NDArray[np.bool_]:
    """Return for each packet whether no other picture needs its picture, bool [P].

    A header says only whether other pictures of the same temporal layer need a picture. Pictures of higher
    layers may need it too. So only pictures of the highest layer are known to be needed by none.
    """
    unreferenced = np.array([header.unreferenced for header in headers])
    layers = np.array([header.layer for header in headers])
    is_in_highest_layer: NDArray[np.bool_] = layers == layers.max()
    return unreferenced & is_in_highest_layer


def _kinds_beside(source: Source, late: Sequence[LateStream]) -> tuple[str, ...]:
    """Return what a file holds besides pictures: `sound`, `subtitles` or both."""
    kinds: set[str] = {stream.type for stream in source.container.streams}
    kinds |= {stream.kind for stream in late}
    return tuple(name for name, kind in KINDS_BESIDES_PICTURES.items() if kind in kinds)


def _notes(facts: _StreamFacts) -> Iterator[str]:
    """Yield notes for the user on the times and packets of a stream."""
    note_on_times = facts.times.note
    if note_on_times:
        yield note_on_times
    yield from _notes_on_packets(facts)
    has_repeated_times = facts.line.is_known and not facts.has_unique_times
    if has_repeated_times and not note_on_times:
        yield "not every picture has a time of its own: some are estimates"
    source = facts.source
    if "mov" in facts.formats:
        # An edit list says which parts of the stream a player shows, when, and how fast.
        edits = find_edits(source.path, source.stream.id)
        shows_several_parts = edits.n_shown > 1
        are_pictures_reordered = source.context.has_b_frames  # FFmpeg then errs behind the first part
        if edits.are_unsupported:
            yield ODD_EDITS
        elif shows_several_parts and are_pictures_reordered:
            yield SEVERAL_EDITS
    if "matroska" in facts.formats:
        # The chapters are stored before the first packet or behind the last one.
        first_byte = int(facts.packets.pos[0])
        last_byte = int(facts.packets.pos[-1])
        if has_ordered_chapters(source.path, first_byte, last_byte):
            yield ORDERED_CHAPTERS


def _notes_on_packets(facts: _StreamFacts) -> Iterator[str]:
    """Yield notes for the user on joined files, changed settings and damage."""
    packets = facts.packets
    n_parts = len(facts.line.first_packets)
    if n_parts > 1:
        yield f"times start again or jump: {n_parts} parts are put one after the other"
    n_cut = len(facts.seams.cut)
    if n_cut:  # their bytes end in the header of the next film
        yield f"where films were joined, {_counted(n_cut, 'picture')} cut through: left out"

    if facts.settings_change:
        yield CHANGING_SETTINGS
    if any(header.turned for header in packets.headers):
        yield TURNED_BY_PACKETS

    n_without_reference = _count_without_reference(facts.line, facts.rank, packets.key)
    if n_without_reference:
        pictures_refer = counted(n_without_reference, "picture refers", "pictures refer")
        yield f"at the start of parts {pictures_refer} to pictures before the part: they may be wrong"
    n_damaged = _count_damaged_packets(packets, facts.line.first_packets.tolist())
    if n_damaged:
        yield f"the container flags {_counted(n_damaged, 'packet')} as damaged"


def _count_damaged_packets(packets: Packets, first: Sequence[int]) -> int:
    """Count the packets that the container flags as damaged, except around the joins of a joined file.

    At a join, the counters of packets jump, so FFmpeg flags packets that are not damaged: the first one of
    the later part, or one of the two before it.
    """
    flagged_packets = {*np.flatnonzero(packets.corrupt).tolist()}
    is_joined = len(first) > 1
    if is_joined:
        for first_of_part in first:
            around_join = {first_of_part - 2, first_of_part - 1, first_of_part}
            flagged_packets -= around_join
    return len(flagged_packets)


def _counted(n: int, noun: str) -> str:
    """Write a number with its noun: `1 packet`, `2 packets`."""
    return f"{n} {noun}s" if n > 1 else f"{n} {noun}"


def _why_unsafe(facts: _StreamFacts) -> str:
    """Return the first reason why a stream must be decoded sequentially; empty if there is none."""
    source = facts.source
    packets = facts.packets
    codec = source.codec
    codec_name = NAME_OF_CODEC.get(codec, codec)
    # Other codecs are put in display order by the types of pictures, and need no time stamps.
    needs_times = codec not in ORDERED_BY_KIND
    lacks_times = needs_times and not TIMED_FORMATS & {*source.formats}
    lacks_kinds = not needs_times and not facts.is_ordered_by_kind
    has_second_fields = bool(second_fields([header.field for header in packets.headers]))
    reasons = (  # whether a reason applies, and the reason
        (codec not in READERS, f"the codec is {codec}"),
        (packets.error != "", packets.error),
        (packets.corrupt.any(), "the container flags damaged packets"),
        ("new_extradata" in packets.side_data, "the codec's settings change within the stream"),
        (lacks_kinds, "packets without exactly one picture"),
        (has_second_fields, "fields have packets of their own"),
        (lacks_times, f"{codec_name} in {source.formats[0]} has no reliable time stamps"),
        (needs_times and MISSING in packets.pts, "time stamps are missing"),
        (needs_times and not facts.has_unique_times, "time stamps repeat"),
        (not facts.random_access[0], "decoding cannot start at the first packet"),
    )
    for applies, reason in reasons:
        if applies:
            return reason
    return ""


def _line_by_stamps(facts: _StreamFacts) -> NotedLine:
    """Return the times of a stream's packets on one rising line, by the time stamps of the file.

    Presentation times are used if the file has all of them, else decoding times, else the presentation times
    that it has, with the missing ones filled in at a steady rate. The times are unknown if nothing of this is
    possible, or if all stamps but one are equal.

    Where FFmpeg made the presentation times up (`has_estimated_times`), the line has decoding times instead.
    """
    source = facts.source
    packets = facts.packets
    stamps = _usable_stamps(packets, has_estimated_times=facts.has_estimated_times)
    if stamps is None or not source.stream.time_base:
        return NotedLine(unbroken(packets.pts, is_known=False), "")
    if "avi" in source.formats:
        return _line_of_entries(source, stamps.ticks, packets.dts, stamps.note)

    has_all_decoding_times = MISSING not in packets.dts
    ticks = stamps.ticks
    if facts.is_program and has_all_decoding_times:
        # FFmpeg misplaces the few times that a program stream states, so that single ones stand out.
        ticks = correct_outliers(ticks, _ticks_per_picture(source))

    decoding = None  # times of decoding, if the container stores all of them
    stores_decoding_times = bool(DECODING_FORMATS & {*source.formats})
    if has_all_decoding_times and stores_decoding_times:
        # If the times of presentation are estimates, `ticks` are the times of decoding, already corrected.
        decoding = ticks if facts.has_estimated_times else packets.dts

    line = time_line(
        ticks,
        # FFmpeg guesses the rate by the times, which is of no use if some of these are missing.
        step=_ticks_per_picture(source, trusts_headers=stamps.are_filled_in),
        longest_pause=_longest_steps(source, packets),
        key=packets.key,
        shown=~packets.hidden,
        decoding=decoding,
    )
    return NotedLine(line, stamps.note)


class _Stamps(NamedTuple):
    """Time stamps of all packets, [P], whether missing ones are to be filled in, and a note on them."""

    ticks: NDArray[np.int64]
    are_filled_in: bool
    note: str


def _usable_stamps(packets: Packets, *, has_estimated_times: bool) -> _Stamps | None:
    """Return the best time stamps that a file has; None if it has none that can be times.

    The first of these that can be used: the times of presentation; the times of decoding; the times of
    presentation that some packets have, so that those of the others must be filled in.

    Parameters
    ----------
    packets
        The packets.
    has_estimated_times
        Whether the times of presentation are FFmpeg's estimates: then times of decoding are used.
    """
    usual_stamps = packets.dts if has_estimated_times else packets.pts
    best_first = (
        _Stamps(usual_stamps, are_filled_in=False, note=""),
        _Stamps(
            packets.dts,
            are_filled_in=False,
            note="the file stores no presentation times: decoding times stand in",
        ),
        _Stamps(packets.pts, are_filled_in=True, note=SOME_TIMES),
    )
    for stamps in best_first:
        is_timed = stamps.ticks != MISSING
        if stamps.are_filled_in:
            has_enough_times = bool(is_timed[~packets.hidden].any())  # one of a shown picture
        else:
            has_enough_times = bool(is_timed.all())
        has_one_packet = len(stamps.ticks) == 1  # whose time has no other time to differ from
        if has_enough_times and (has_one_packet or _are_times(stamps.ticks)):
            return stamps
    return None


def _line_of_entries(
    source: Source, ticks: NDArray[np.int64], entries: NDArray[np.int64], note: str
) -> NotedLine:
    """Return the times of the pictures of an AVI file, on one rising line.

    AVI stores no times: its entries (packets) are numbered, also if the file was joined from several, and
    FFmpeg gives these numbers as times of decoding. If the time stamps are the same numbers in another order,
    they are used. Otherwise FFmpeg made them up, and the pictures get the numbers of the entries in display
    order instead, without the delay of the decoder.

    Parameters
    ----------
    source
        The open file.
    ticks
        Shape [P]: time stamps of the packets, with the `note` on them.
    entries
        Shape [P]: numbers of the entries, rising, or `MISSING`.
    note
        Note on the time stamps, "" if there is none.
    """
    are_entries_known = MISSING not in entries
    are_stamps_entries = np.array_equal(np.sort(ticks), entries)
    if not are_entries_known or are_stamps_entries:
        return NotedLine(unbroken(ticks), note)

    # Without a pause the entries are 0, 1, 2 and so on, and a delay moves none of them. So it is counted,
    # which takes time, only where frames were dropped.
    has_pauses = bool((np.diff(entries) > 1).any())
    n_held_back = count_held_back(source.path) if has_pauses else 0
    return NotedLine(unbroken(_without_delay(entries, n_held_back)), CHUNK_TIMES)


def _without_delay(entries: NDArray[np.int64], n_held_back: int) -> NDArray[np.int64]:
    """Return when the pictures of an AVI file are shown, in its entries, if the first is shown at once.

    A decoder that holds back one picture, to put pictures in display order, puts the first one out when it
    gets the second packet, and so on. Players begin with the first picture, so this delay is subtracted.

    For example, five pictures are in the entries 0, 1, 2, 8, 9; those between were dropped. The first four
    come out of the decoder at the entries 1, 2, 8, 9, which is 0, 1, 7, 8 without the delay. The last picture
    comes out at the end of the file, and is shown a usual step later, at 9. So the pause begins one picture
    earlier than in the entries.

    Parameters
    ----------
    entries
        Shape [P]: numbers of the entries that hold pictures, rising.
    n_held_back
        How many pictures the decoder holds back.
    """
    n_held_back = min(n_held_back, len(entries) - 1)
    if n_held_back == 0:
        return entries
    delay = entries[n_held_back] - entries[0]
    put_out_before_end = entries[n_held_back:] - delay
    usual_step = int(np.median(np.diff(entries)))  # the median, as pauses are rare
    put_out_at_end = put_out_before_end[-1] + usual_step * np.arange(1, n_held_back + 1)
    return np.concatenate((put_out_before_end, put_out_at_end))


def _longest_steps(source: Source, packets: Packets) -> NDArray[np.int64]:
    """Return how long a step in time to each packet may be before it counts as a join of two recordings.

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
    return np.where(may_jump, jump, MAX_TICKS)


class NotedTimes(NamedTuple):
    """Times of the shown pictures in seconds, shape [L], and a note if they are not stated times."""

    time_s: NDArray[np.float64]
    note: str


def _times_by_rate(source: Source, packets: Packets, count: int) -> NotedTimes:
    """Return times of the shown pictures of a file that does not state all of them.

    If it states no times at all, they follow from an assumed rate. If it states some, all are NaN (unknown).
    """
    if _are_times(packets.pts) or _are_times(packets.dts):
        return NotedTimes(np.full(count, np.nan), "not every frame has a time: they are not known")
    return NotedTimes(np.arange(count) / _assumed_rate(source), _rate_note(source))


def _are_times(stamps: NDArray[np.int64]) -> bool:
    """Return whether time stamps are real times, which change from packet to packet.

    In a file without times all stamps are equal. But FFmpeg may estimate the first or the last one, so that
    a single change in three stamps or more is no sign of times: 0, 0, 0, 40.
    """
    n_changes = int(np.count_nonzero(np.diff(stamps)))
    if len(stamps) == 2:
        return n_changes == 1
    return n_changes >= 2


def _assumed_rate(source: Source) -> float:
    """Return the pictures a second that are assumed where a file states no times."""
    return float(source.stream.guessed_rate or USUAL_RATE)


def _rate_note(source: Source) -> str:
    """Return the note that a rate is assumed, as the file states no times."""
    return f"the file states no times: {_assumed_rate(source):g} frames a second are taken"


def _count_without_reference(line: TimeLine, rank: NDArray[np.int64], key: NDArray[np.bool_]) -> int:
    """Count the pictures of later parts of a joined file that may refer to pictures before their part.

    Such pictures are shown before the first key picture of their part.

    Parameters
    ----------
    line
        The time line, with the first packet of each part.
    rank, key
        Shape [P]: display rank of each packet, and whether it is a key picture.
    """
    n_without_reference = 0
    edges = [*line.first_packets[1:].tolist(), len(rank)]
    for first, end in pairwise(edges):
        keys = first + np.flatnonzero(key[first:end])
        if len(keys):
            first_key = keys[0]
            n_without_reference += int((rank[first:end] < rank[first_key]).sum())
        else:  # all pictures refer to others before the part
            n_without_reference += end - first
    return n_without_reference


def _find_seams(source: Source, packets: Packets, line: TimeLine) -> Seams:
    """Find damaged pictures where Matroska files were joined byte by byte.

    FFmpeg reads the joined files as one. It takes the header of a further file for bytes of the picture
    before it, and decodes the further file with the settings of the first.

    Returns
    -------
    Seams
        Packets whose picture is cut off by the header of the next file, and the first packet that is decoded
        with the codec settings of another file; 0 if there is none.
    """
    further_starts = line.first_packets[1:].tolist()  # the first packet of each further file
    if "matroska" not in source.formats or not further_starts:
        return Seams([], wrongly_decoded=0)
    positions = packets.pos.tolist()
    sizes = packets.size.tolist()
    # The header of a further file is between the last packet before it and its own first one.
    places_of_heads = [(positions[first - 1], positions[first]) for first in further_starts]
    file_heads = find_file_heads(source.path, places_of_heads)

    cut_packets: list[int] = []
    wrongly_decoded_starts: list[int] = []  # of further files
    settings_of_first_file = source.context.extradata or b""  # of the codec
    for first, head in zip(further_starts, file_heads, strict=True):
        has_head = head.start > 0  # without one, times start again within one file
        if not has_head:
            continue
        last_before = first - 1
        end_of_its_block = positions[last_before] + BLOCK_HEAD_BYTES + sizes[last_before]  # as it states
        is_cut_through = head.start < end_of_its_block
        if is_cut_through:
            cut_packets.append(last_before)

        pictures_bring_settings = source.codec in SELF_DESCRIBED or bool(packets.headers[first].sets)
        has_same_settings = settings_of_first_file in head.content
        if not pictures_bring_settings and not has_same_settings:
            wrongly_decoded_starts.append(first)
    return Seams(cut_packets, wrongly_decoded=next(iter(wrongly_decoded_starts), 0))


def _losses(facts: _StreamFacts) -> Iterator[tuple[float, str]]:
    """Yield what is missing in a video file, or decoded wrongly, because it is cut off or was joined.

    A file may be cut off and also joined. Of the losses in joined files, only the first that is found is
    yielded: it says already that the parts should be joined anew, which would mend the others too.

    Yields
    ------
    float
        The time in seconds from which pictures are missing or wrong.
    str
        What is wrong.
    """
    cut_off = truncation(facts.source, facts.packets)
    if cut_off:
        # A whole span may end a little behind its last picture, and lacks nothing.
        from_s = _last_picture_s(facts) + SPAN_SLACK_S
        if facts.packets.error:  # the packets that were not read may be of any time
            from_s = -np.inf
        yield from_s, cut_off
    first_wrongly_decoded = facts.seams.wrongly_decoded  # packet; 0 if there is none
    if first_wrongly_decoded:
        yield facts.time_of(first_wrongly_decoded), OTHER_CODEC_SETTINGS
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
    """Return the bytes of the file at which the packets of shown pictures end, [N], where they are known."""
    # Hidden packets do not count: if a file of another codec was appended to one of VP8, FFmpeg reads its
    # packets, but they show nothing.
    is_placed = (packets.pos >= 0) & ~packets.hidden
    ends: NDArray[np.int64] = (packets.pos + packets.size)[is_placed]
    return ends


def _unread_tail(source: Source, packets: Packets) -> str:
    """Return a sentence if the end of a file is not read, as it is encrypted or of another stream; else "".

    This happens in recordings of broadcasts and discs: MPEG transport and program streams. FFmpeg passes over
    what it cannot read of these without an error.
    """
    formats = {*source.formats}
    last_file = files_of(source.path)[-1]  # where several files make one video, the end is in the last
    end_of_pictures = int(_picture_ends(packets).max(initial=0))  # byte behind the last picture
    may_be_scrambled = bool({"mpegts", "mpeg"} & formats)
    if may_be_scrambled and is_scrambled(last_file, end_of_pictures):
        return f"from byte {end_of_pictures:,} on its packets are encrypted (scrambled), and are not read"
    if _goes_on_in_late_stream(packets) or _goes_on_in_announced_stream(source, end_of_pictures):
        return f"from byte {end_of_pictures:,} on the file has pictures of another stream: {ADVICE_TO_JOIN}"
    return ""


def _goes_on_in_late_stream(packets: Packets) -> bool:
    """Return whether the film goes on in a stream of pictures that its beginning does not announce.

    Such a stream (`late`) begins behind the last packet of the stream that is read, as where recordings were
    joined: its pictures are the rest of the film, and are not read. One that begins earlier runs beside the
    stream that is read, which then lacks nothing.
    """
    start_of_last_packet = packets.pos.max(initial=0)  # byte of the file
    for late_stream in packets.late:
        if late_stream.kind == "video" and late_stream.byte > start_of_last_packet:
            return True
    return False


def _goes_on_in_announced_stream(source: Source, end_of_pictures: int) -> bool:
    """Return whether a transport stream goes on in another of its streams of pictures than the one read.

    It does if it lists several, and the pictures of the one that is read end early.
    """
    if "mpegts" not in source.formats or len(source.container.streams.video) < 2:
        return False
    file_bytes, _ = file_state(source.path)
    return end_of_pictures < ANOTHER_BELOW * file_bytes


def _lost_in_joins(facts: _StreamFacts) -> Iterator[tuple[float, str]]:
    """Yield what is lost in a file that was joined from several: (time in seconds, description).

    Either a second file was appended, of which pictures are not read. Or there is none, but an MP4 in
    fragments (as streams are sent) has fragments whose times step back, so that FFmpeg drops their pictures.
    """
    packets = facts.packets
    # The header of an MP4 declares its pictures. If it declares none, they are in fragments behind it.
    is_fragmented_mp4 = "mov" in facts.source.formats and facts.source.declared == 0
    dropped = np.zeros(0, np.int64)  # numbers of the packets that FFmpeg drops
    if is_fragmented_mp4:
        dropped = _packets_dropped_by_times(packets)

    last_file = files_of(facts.source.path)[-1]
    ends_of_pictures = _picture_ends(packets).tolist()
    second_start = find_second_file(last_file, facts.source.formats, ends_of_pictures)  # byte; 0 if none
    has_second_file = second_start > 0
    if has_second_file:
        shown_of_second = np.flatnonzero((packets.pos > second_start) & ~packets.hidden)
        # FFmpeg reads the fragments of a second MP4 as if they were of the first. So nothing is lost if it
        # has read some of them, and has dropped none.
        is_second_read_whole = is_fragmented_mp4 and len(shown_of_second) > 0 and len(dropped) == 0
        if not is_second_read_whole:
            from_s = _time_from_which_second_file_lacks_s(facts, shown_of_second)
            begins = f"a second file begins at byte {second_start:,}"
            yield from_s, f"{begins}, of which pictures are missing: {ADVICE_TO_JOIN}"
        return

    if len(dropped) > 0:
        last_before = int(dropped[0]) - 1
        n_dropped = counted(len(dropped), "picture is", "pictures are")
        left_out = f"{n_dropped} left out, because times of fragments step back: {ADVICE_TO_JOIN}"
        yield facts.time_of(last_before), left_out


def _time_from_which_second_file_lacks_s(facts: _StreamFacts, shown_of_second: NDArray[np.int64]) -> float:
    """Return the time in seconds from which pictures of a second file, appended to the first, are missing.

    If no picture of the second file was read, this is the time of the last picture that was read. If some
    were, this is the time of the first of them, because they may be wrong, too.

    Parameters
    ----------
    facts
        Facts of the joined file.
    shown_of_second
        Numbers of the packets that lie in the second file and whose pictures are shown.
    """
    last_picture_s = _last_picture_s(facts)
    starts_of_later_parts = facts.line.first_packets[1:]  # times that start again also show a second file
    possible_starts = np.append(shown_of_second, starts_of_later_parts)
    if len(possible_starts) == 0 or not facts.line.is_known:
        return last_picture_s
    first_of_second = int(possible_starts.min())
    return min(last_picture_s, facts.time_of(first_of_second))


def _packets_dropped_by_times(packets: Packets) -> NDArray[np.int64]:
    """Return the numbers of the packets that FFmpeg drops because their times step back.

    Times step back at a packet if one before it is decoded at the same time or later. FFmpeg marks packets
    that it drops as hidden. It marks others too, such as those that an edit list leaves out, and it may show
    a packet whose time steps back: so a dropped one is both.
    """
    dts_before = np.append(MISSING, packets.dts[:-1])  # of the packet before each; none before the first
    latest_before = np.maximum.accumulate(dts_before)
    steps_back = packets.dts <= latest_before
    return np.flatnonzero(packets.hidden & steps_back)


def _ticks_per_picture(source: Source, *, trusts_headers: bool = False) -> int:
    """Return the usual number of ticks between two pictures.

    For MPEG-1 and MPEG-2 it follows from the rate in their headers, else from the rate that FFmpeg guesses.

    Parameters
    ----------
    source
        The open file.
    trusts_headers
        Whether to use the rate in the headers of other codecs, too: FFmpeg guesses by the times of pictures,
        of which some may be missing.
    """
    rate_in_headers = None
    if trusts_headers or source.codec in MPEG12:
        rate_in_headers = source.context.framerate
    rate = rate_in_headers or source.stream.guessed_rate or USUAL_RATE
    tick_s = source.stream.time_base or 1
    return int(1 / (rate * tick_s))


def _replace_estimates(ticks: NDArray[np.int64], decoding: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return presentation times without FFmpeg's estimates, by the decoding times if these are steady.

    To a picture without a presentation time, FFmpeg gives its decoding time, which may be the presentation
    time of another picture. At a steady rate the presentation times are the decoding times plus a constant
    delay. If the rate is not steady, the times are returned as they are.

    Parameters
    ----------
    ticks, decoding
        Shape [N]: times of presentation and of decoding, in decoding order.

    Examples
    --------
    >>> decoding = np.array([0, 2, 4, 6])
    >>> estimated = np.array([4, 2, 4, 10])  # the second picture has its decoding time
    >>> _replace_estimates(estimated, decoding)
    array([2, 4, 6, 8])
    """
    steps = np.diff(decoding)
    if MISSING in decoding or not len(steps):
        return ticks
    is_steady = steps.min() > 0 and np.ptp(steps) <= 1  # steps may differ by a tick, from rounding
    if not is_steady:
        return ticks
    delayed_by_constant: NDArray[np.int64] = decoding - decoding[0] + ticks.min()
    return delayed_by_constant


def _times_of_next(ticks: NDArray[np.int64], step: int) -> NDArray[np.int64]:
    """Return for each picture the time at which the next one is decoded, in ticks, [P].

    For the last picture, and before a gap, it is one usual step later.
    """
    steps = np.diff(ticks, append=ticks[-1] + step)
    has_gap = steps > LONG_STEP * step
    return ticks + np.where(has_gap, step, steps)


def seconds(ticks: list[int], source: Source) -> NDArray[np.float64]:
    """Sort time stamps in ticks of a stream, and convert them to seconds of the player's clock.

    The result is exact up to one rounding for each value: value * tick_s - origin_s is computed with integers
    over a common denominator, and only the division rounds.
    """
    tick_s: Any = source.stream.time_base  # a fraction
    origin_s = source.origin  # a fraction
    denominator = tick_s.denominator * origin_s.denominator
    tick_numerator = tick_s.numerator * origin_s.denominator
    origin_numerator = origin_s.numerator * tick_s.denominator
    time_s = [(value * tick_numerator - origin_numerator) / denominator for value in sorted(ticks)]
    return np.array(time_s, np.float64)


def _stated_end_s(facts: _StreamFacts) -> float:
    """Return when the pictures of a file that is cut off would end, by what its container states.

    NaN if the file is whole, or if what it states is impossible: earlier than its last picture, or more than
    `MAX_TIMES_LONGER` times as long as what is there.
    """
    source = facts.source
    if not facts.line.is_known or not truncation(source, facts.packets):
        return math.nan

    times = facts.frame_times
    stated_ends_s = []
    if source.stream.duration and source.stream.time_base:
        duration_s = float(source.stream.duration * source.stream.time_base)
        stated_ends_s.append(float(times.time_s[0]) + duration_s)
    if source.container.duration:  # of all streams, and of what an edit list shows
        end_of_streams_s = source.container.duration / av.time_base
        stated_ends_s.append(end_of_streams_s - float(source.origin))

    earliest_end_s = min(stated_ends_s, default=math.nan)
    is_possible = times.end_s < earliest_end_s < times.end_s * MAX_TIMES_LONGER
    return earliest_end_s if is_possible else math.nan


def truncation(source: Source, packets: Packets) -> str:
    """Return in words how a file is cut off, by what its container states; empty if it is whole.

    A container may state how many packets or bytes there are, both, or nothing. It counts them inexactly, so
    that 2 % of them may be missing (`TRUNCATED_BELOW`). If it states nothing, the structure of the file's end
    decides.
    """
    if packets.error:
        return packets.error

    n_packets = packets.read
    if "avi" in source.formats and packets.dts[-1] != MISSING:
        # AVI declares frames: the decoding time of a packet is the number of its frame, from 0. A dropped
        # frame has a number but may have no packet.
        n_packets = packets.dts[-1] + 1
    declares_number = source.declared > 0
    lacks_packets = declares_number and n_packets < TRUNCATED_BELOW * source.declared
    if lacks_packets and not _is_whole_avi(source, packets):
        return f"the file is cut off: {n_packets} of {source.declared} packets are there"

    n_bytes, _ = file_state(source.path)  # of all files that make the video
    n_stated_bytes = stated_bytes(files_of(source.path)[0])  # 0 if the container states none
    if n_bytes < TRUNCATED_BELOW * n_stated_bytes:
        return f"the file is cut off: {n_bytes:,} of {n_stated_bytes:,.0f} bytes are there"

    if "yuv4mpegpipe" in source.formats:
        # It has nothing but pictures of equal size: bytes behind the last whole one are of another.
        bytes_of_last = n_bytes - packets.pos[-1] - packets.size[-1]
        if bytes_of_last:
            return f"the file is cut off within its last picture, of which {bytes_of_last:,} bytes are there"
    return _loss_by_elements(source, packets)


def _is_whole_avi(source: Source, packets: Packets) -> bool:
    """Return whether a file is an AVI file with all its packets, also if its header counts more frames.

    A recorder may drop frames at the end: the header counts them, but they have empty entries or none. The
    index of a whole file lists the entries that are not empty, and the file ends where its header says. As in
    `truncation`, 2 % of the packets may be missing.
    """
    if "avi" not in source.formats:
        return False
    n_listed = len(source.stream.index_entries)
    has_listed_packets = packets.read >= TRUNCATED_BELOW * n_listed
    return has_listed_packets and ends_as_riff(files_of(source.path)[-1])


def _loss_by_elements(source: Source, packets: Packets) -> str:
    """Return in words how a file is cut off or damaged, by the elements that it is made of; empty if whole.

    The elements (boxes of MP4, pages of Ogg, blocks of GIF) state their own lengths, also in files whose
    header states none because they were written while they were recorded.
    """
    last_file = files_of(source.path)[-1]
    n_missing = missing_bytes(last_file, source.formats)
    if n_missing:
        n_bytes = counted(n_missing, "byte is", "bytes are")
        return f"the file is cut off: {n_bytes} missing in its last part, and all that followed"

    damaged_from = 0  # byte; 0 if nothing is damaged
    if "mov" in source.formats:
        unread_from = find_damage_before_fragments(last_file)
        end_of_pictures = int(_picture_ends(packets).max(initial=0))  # byte behind the last picture
        was_read_beyond = end_of_pictures > unread_from  # FFmpeg found pictures behind the damaged box
        damaged_from = 0 if was_read_beyond else unread_from
    elif "gif" in source.formats:
        damaged_from = find_end_of_gif(last_file)
    if damaged_from:
        return f"the file is damaged or cut off at byte {damaged_from:,}: what follows is not read"
    return ""
