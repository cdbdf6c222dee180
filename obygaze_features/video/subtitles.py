"""Read subtitles: a file of them, or those that a film holds as text."""

import io
import re
import unicodedata
from pathlib import Path
from typing import Any, NamedTuple

import av

from obygaze_features.errors import VideoError, first_line
from obygaze_features.video.source import OPTIONS, UNREADABLE, check_file

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
    source: Any = f"file:{path}"
    kind = FILES.get(path.suffix.lower())
    if kind is not None:
        source = io.BytesIO(_text(path.read_bytes()).encode("utf-8"))
    found: list[Subtitle] = []
    try:
        options = OPTIONS if kind is None else {}
        with av.open(source, format=kind, options=options, metadata_errors="replace") as film:
            streams = [one for one in film.streams.subtitles if one.codec_context.name in TEXTUAL]
            for packet in film.demux(streams[0]) if streams else ():
                shown: list[Any] = list(packet.decode())
                text = " ".join(_plain(rect.dialogue.decode("utf-8", "replace")) for rect in shown).strip()
                if text and packet.pts is not None and packet.duration and packet.time_base is not None:
                    start = float(packet.pts * packet.time_base)
                    found.append(Subtitle(start, start + float(packet.duration * packet.time_base), text))
    except UNREADABLE as error:
        raise VideoError(f"its subtitles cannot be read ({first_line(error)})", path) from error
    if not found:
        raise VideoError("it has no subtitles that are text", path)
    return _apart(sorted(found))


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
