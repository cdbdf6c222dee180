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
from obygaze_features.video.late_streams import reach
from obygaze_features.video.packet_table import PacketTable
from obygaze_features.video.source import Source, opened_to

TEXTUAL = {"mov_text", "subrip", "srt", "ass", "ssa", "webvtt", "text"}
"""Codecs of subtitles that are text, and no pictures of text."""

CLEAN = {"ass": ass_text, "ssa": ass_text, "webvtt": vtt_text}
"""What takes words out of the texts of a codec; the others write tags as SubRip does."""

Line = tuple[float, float, str]
"""Start and end in seconds, and the text on one line."""


@checked
def read_subtitle_track(path: Path, tell: Callable[[str], None] = lambda _: None) -> list[Line]:
    """Read the text track of a film in time order, on the time line of its pictures.

    Of several, the first that the film marks as its default is read, or else the first; forced ones, which
    hold only what is said in other languages, come last. `tell` gets which it is.

    All of it: a line that ends before the first picture begins below zero, one without a duration ends where
    it begins, and one without a time has NaN.

    Raises
    ------
    VideoError
        It cannot be read, or has no subtitles that are text.
    """
    table = index_packets(path)
    late_tracks = [stream for stream in table.late if stream.codec in TEXTUAL]
    try:
        with opened_to(path, reach(path, late_tracks)) as source:
            subtitles = [
                # A line that is still shown when the pictures begin begins with them.
                (0.0 if start + offset_s < 0 < end + offset_s else start + offset_s, end + offset_s, text)
                for offset_s, packet in _placed(source, table, tell)
                for start, end, text in _lines(packet)
            ]
    except FFmpegError as error:
        raise VideoError(f"its subtitles cannot be read ({first_line(error)})", path) from error
    if not subtitles:
        kinds = "pictures, TTML, teletext and WebVTT in MP4 cannot be read: convert them to SubRip"
        raise VideoError(f"it has no subtitles that are text ({kinds})", path)
    return sorted(subtitles, key=lambda line: line[0])


def _placed(source: Source, table: PacketTable, tell: Callable[[str], None]) -> Iterator[tuple[float, Any]]:
    """Yield the packets of a film's text track, and the seconds to add for the pictures' line."""
    every = source.container.streams.subtitles
    # A codec that is not known has no context.
    tracks = [track for track in every if getattr(track.codec_context, "name", "") in TEXTUAL]
    if unread := len(every) - len(tracks):
        tell(f"{unread} of {len(every)} subtitle tracks hold no text that can be read")
    if not tracks:
        return

    def rank(track: Any) -> tuple[int, int]:
        """Put what is not forced first, and of that what players show by default."""
        return track.disposition & Disposition.forced, -(track.disposition & Disposition.default)

    track = min(tracks, key=rank)
    if len(tracks) > 1:
        language = track.language or "of no language"
        tell(f"text track {tracks.index(track) + 1} of {len(tracks)} ({language}) is read")
    track.discard = Discard.default
    n_pictures = 0
    for packet in source.demux(track, source.stream):
        if packet.stream.index == track.index:
            part = int(np.searchsorted(table.part_first, max(n_pictures - 1, 0), side="right")) - 1
            yield float(table.part_offset_s[part]) - float(source.origin), packet
        elif packet.size > 0:
            n_pictures += 1


def _lines(packet: Any) -> Iterator[Line]:
    """Yield what a packet shows, with its own times."""
    tick = math.nan if packet.pts is None else float(packet.time_base or math.nan)
    text = _words(packet.stream.codec_context.name, bytes(packet))
    if text:
        pts = packet.pts or 0
        duration = packet.duration or 0
        start = pts * tick
        yield start, start + duration * tick, text


def _words(codec: str, content: bytes) -> str:
    """Take the words out of a packet, as out of a line of a file; FFmpeg's decoders change them."""
    if codec == "mov_text":  # its length, and settings behind it
        content = content[2 : 2 + int.from_bytes(content[:2])]
    text = content.decode("utf-16" if content[:2] in {b"\xfe\xff", b"\xff\xfe"} else "utf-8", "replace")
    if codec in {"ass", "ssa"}:
        text = text.split(",", 8)[-1]
    words = " ".join(CLEAN.get(codec, srt_text)(text).split())
    return "".join(sign for sign in words if unsuitable(sign) is None)
