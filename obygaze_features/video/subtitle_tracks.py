"""Read the subtitles that a film holds as text; files of subtitles are read by `manifest.read_subtitles`."""

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from av import FFmpegError
from av.stream import Discard, Disposition

from obygaze_features.arguments import checked
from obygaze_features.errors import VideoError, first_line
from obygaze_features.subtitle_text import ass_text, srt_text, vtt_text
from obygaze_features.text import unsuitable
from obygaze_features.video.index import index_packets
from obygaze_features.video.late_streams import bytes_to_probe
from obygaze_features.video.packet_table import PacketTable
from obygaze_features.video.source import Source, opened_to

TEXTUAL = {"mov_text", "subrip", "srt", "ass", "ssa", "webvtt", "text"}
"""Codecs of subtitles that are text, and no pictures of text."""

WORDS_OF = {"ass": ass_text, "ssa": ass_text, "webvtt": vtt_text}
"""Codec -> the function that removes tags from its texts; the other codecs write tags as SubRip does."""

N_ASS_FIELDS = 8
"""Fields before the text in a packet of ASS, such as its style and margins, each with a comma behind it."""

Line = tuple[float, float, str]
"""Start and end in seconds, and the text on one line."""


@checked
def read_subtitle_track(path: Path, tell: Callable[[str], None] = lambda _: None) -> list[Line]:
    """Read the lines of a film's subtitle track of texts, in time order, on the time line of the pictures.

    Of several tracks, the first that the film marks as default is read, or else the first. Forced tracks,
    which have only what is said in other languages, are read only if there are no others.

    No line is left out. One that ends before the first picture has negative times, one without a duration
    ends when it begins, and one without a time has NaN for both.

    Parameters
    ----------
    path
        A video file.
    tell
        Called with notes: which track is read, and how many cannot be read.

    Raises
    ------
    VideoError
        It cannot be read, or has no subtitles that are text.
    """
    table = index_packets(path)
    late_tracks = [stream for stream in table.late if stream.codec in TEXTUAL]
    try:
        with opened_to(path, bytes_to_probe(path, late_tracks)) as source:
            lines = list(_lines(source, table, tell))
    except FFmpegError as error:
        raise VideoError(f"its subtitles cannot be read ({first_line(error)})", path) from error
    if not lines:
        kinds = "pictures, TTML, teletext and WebVTT in MP4 cannot be read: convert them to SubRip"
        raise VideoError(f"it has no subtitles that are text ({kinds})", path)
    return sorted(lines, key=lambda line: line[0])


def _lines(source: Source, table: PacketTable, tell: Callable[[str], None]) -> Iterator[Line]:
    """Yield the lines of a film's subtitles: start and end in seconds of the pictures' time line, and text.

    A film may be joined from several parts, whose times are shifted. The part that a line belongs to is that
    of the last picture read before it. So pictures are read along with the subtitles, and counted.

    Parameters
    ----------
    source
        The open film.
    table
        Its pictures: the number of the first one of each part (`part_first`), and the seconds by which the
        times of each part are shifted (`part_offset_s`).
    tell
        Called with notes on the choice of the track.
    """
    track = _chosen_track(source, tell)
    if track is None:
        return
    track.discard = Discard.default  # FFmpeg reads streams that are not discarded
    origin_s = float(source.origin)  # the time in the file that is 0 for a player
    n_pictures = 0
    for packet in source.demux(track, source.stream):
        is_picture = packet.stream.index != track.index
        if is_picture:
            if packet.size > 0:  # the table does not count empty packets
                n_pictures += 1
            continue
        last_picture = max(n_pictures - 1, 0)
        n_parts_begun = int(np.searchsorted(table.part_first, last_picture, side="right"))
        part = n_parts_begun - 1
        offset_s = float(table.part_offset_s[part]) - origin_s
        line = _line(packet, offset_s)
        if line is not None:
            yield line


def _chosen_track(source: Source, tell: Callable[[str], None]) -> Any:
    """Choose which subtitle track of texts to read; None if the film has none.

    Tracks that are not forced come first, and of those the one that the film marks as default. (A forced
    track has only what is said in other languages.)
    """
    subtitle_tracks = source.container.streams.subtitles
    # A codec that FFmpeg does not know has no context.
    text_tracks = [track for track in subtitle_tracks if getattr(track.codec_context, "name", "") in TEXTUAL]
    n_unread = len(subtitle_tracks) - len(text_tracks)
    if n_unread:
        tell(f"{n_unread} of {len(subtitle_tracks)} subtitle tracks hold no text that can be read")
    if not text_tracks:
        return None

    def rank(track: Any) -> tuple[bool, bool]:
        """Put tracks that are not forced first, and of those the ones that players show by default."""
        is_forced = bool(track.disposition & Disposition.forced)
        is_default = bool(track.disposition & Disposition.default)
        return is_forced, not is_default

    track = min(text_tracks, key=rank)
    if len(text_tracks) > 1:
        language = track.language or "of no language"
        tell(f"text track {text_tracks.index(track) + 1} of {len(text_tracks)} ({language}) is read")
    return track


def _line(packet: Any, offset_s: float) -> Line | None:
    """Return the line of subtitles in a packet: start and end in seconds, and text; None without words."""
    text = _words(packet.stream.codec_context.name, bytes(packet))
    if not text:
        return None
    if packet.pts is None or not packet.time_base:
        return math.nan, math.nan, text
    tick_s = float(packet.time_base)
    stated_start_s = packet.pts * tick_s
    stated_end_s = stated_start_s + (packet.duration or 0) * tick_s
    start_s = stated_start_s + offset_s
    end_s = stated_end_s + offset_s
    if start_s < 0 < end_s:
        start_s = 0.0  # it is shown when the pictures begin, and so begins with them
    return start_s, end_s, text


def _words(codec: str, content: bytes) -> str:
    """Return the words of a subtitle packet, on one line and without tags such as those of italics.

    FFmpeg's own decoders are not used, because they change the words.
    """
    if codec == "mov_text":
        # Two bytes of length come before the text, and settings behind it.
        n_bytes = int.from_bytes(content[:2])
        content = content[2 : 2 + n_bytes]
    has_utf16_mark = content[:2] in {b"\xfe\xff", b"\xff\xfe"}
    text = content.decode("utf-16" if has_utf16_mark else "utf-8", "replace")
    if codec in {"ass", "ssa"}:
        *_, text = text.split(",", N_ASS_FIELDS)
    without_tags = WORDS_OF.get(codec, srt_text)
    words = " ".join(without_tags(text).split())
    printable = [sign for sign in words if unsuitable(sign) is None]  # no control signs and the like
    return "".join(printable)
