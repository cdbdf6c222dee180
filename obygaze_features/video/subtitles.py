"""Read subtitles: a file of them, or those that a film holds as text."""

import io
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import av
import numpy as np
from av.stream import Discard

from obygaze_features.errors import VideoError, first_line
from obygaze_features.video.index import index_packets
from obygaze_features.video.source import UNREADABLE, Source, check_file, opened

FILES = {".srt": "srt", ".vtt": "webvtt", ".ass": "ass", ".ssa": "ass"}
"""Suffix of a file of subtitles -> FFmpeg's name of its format."""

TEXTUAL = {"mov_text", "subrip", "srt", "ass", "ssa", "webvtt", "text"}
"""Codecs of subtitles that are text, and no pictures of text."""

_OVERRIDES = re.compile(r"\{\\[^}]*\}|<[^>]*>")
"""Settings of fonts and places, which FFmpeg gives as those of ASS."""


class Subtitle(NamedTuple):
    """A line that is shown, with its times in seconds."""

    start_s: float
    end_s: float
    text: str


def read_subtitles(path: Path) -> list[Subtitle]:
    """Read the subtitles of a file in time order: SRT, WebVTT, ASS, or the first text track of a film.

    Lines of one subtitle are joined by blanks; settings of fonts are left out. A text file that is not UTF-8
    is read as Windows-1252.

    Raises
    ------
    VideoError
        It cannot be read, or has no subtitles that are text.
    """
    check_file(path)
    kind = FILES.get(path.suffix.lower())
    try:
        if kind is None:
            with opened(path) as source:
                found = [
                    _moved(line, offset_s) for offset_s, packet in _placed(source) for line in _lines(packet)
                ]
        else:
            text: Any = io.BytesIO(_text(path.read_bytes()).encode("utf-8"))
            with av.open(text, format=kind, options={}, metadata_errors="replace") as file:
                found = [line for packet in file.demux(file.streams.subtitles) for line in _lines(packet)]
    except UNREADABLE as error:
        raise VideoError(f"its subtitles cannot be read ({first_line(error)})", path) from error
    if not found:
        raise VideoError("it has no subtitles that are text", path)
    return _apart(sorted(found))


def _placed(source: Source) -> Iterator[tuple[float, Any]]:
    """Yield the packets of a film's first text track, and the seconds to add for the pictures' line."""
    tracks = [one for one in source.container.streams.subtitles if one.codec_context.name in TEXTUAL]
    if not tracks:
        return
    tracks[0].discard = Discard.default
    table, seen = index_packets(source.path), 0
    for packet in source.container.demux([tracks[0], source.stream]):
        if packet.stream.index == tracks[0].index:
            part = int(np.searchsorted(table.part_first, max(seen - 1, 0), side="right")) - 1
            yield float(table.part_offset_s[part]) - float(source.origin), packet
        else:
            seen += packet.size > 0


def _lines(packet: Any) -> Iterator[Subtitle]:
    """Yield what a packet shows, with its own times."""
    text = " ".join(_plain(rect.dialogue.decode("utf-8", "replace")) for rect in packet.decode()).strip()
    if text and packet.pts is not None and packet.duration and packet.time_base is not None:
        start = float(packet.pts * packet.time_base)
        yield Subtitle(start, start + float(packet.duration * packet.time_base), text)


def _moved(line: Subtitle, offset_s: float) -> Subtitle:
    return Subtitle(line.start_s + offset_s, line.end_s + offset_s, line.text)


def _apart(found: list[Subtitle]) -> list[Subtitle]:
    """End each where the next begins, and join those that begin together."""
    apart: list[Subtitle] = []
    for one in found:
        if apart and one.start_s <= apart[-1].start_s:
            apart[-1] = Subtitle(one.start_s, max(one.end_s, apart[-1].end_s), f"{apart[-1].text} {one.text}")
            continue
        if apart and one.start_s < apart[-1].end_s:
            apart[-1] = apart[-1]._replace(end_s=one.start_s)
        if one.start_s >= 0:
            apart.append(one)
    return apart


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")


def _plain(text: str) -> str:
    """Leave out settings, and signs that control; one line."""
    words = _OVERRIDES.sub("", text).replace("\\N", " ").split()
    return "".join(sign for sign in " ".join(words) if unicodedata.category(sign) not in {"Cc", "Cf", "Cs"})
