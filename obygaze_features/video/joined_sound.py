"""Find where sound of joined Matroska files would be decoded with the settings of another file.

FFmpeg takes the header of a second file for a block that was cut off, and decodes its sound with the settings
of the first. If these are not the same, it is heard at another pitch, or as noise, without an error.
"""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import av
from av import FFmpegError

from obygaze_features.untrusted import open_regular
from obygaze_features.video.boxes import find_file_heads
from obygaze_features.video.source import OPTIONS

SELF_DESCRIBED_SOUND: Final = frozenset(
    {"mp1", "mp2", "mp3", "ac3", "eac3", "dts", "truehd", "mlp", "flac", "opus"}
)
"""Codecs whose packets state their own rate and channels, so that settings of the file are not needed."""
HEAD_BYTES: Final = 1 << 20
"""Bytes of a further file that are looked at: its header and its first blocks."""


class SoundSettings(NamedTuple):
    """What a file states of a sound track, and its packets do not."""

    codec: str
    rate: int
    n_channels: int
    extradata: bytes


class Seam(NamedTuple):
    """Where a further file begins: the bytes of the last sound packet before it, and of its own first one."""

    last_before: int
    first: int


def settings_of(stream: Any) -> SoundSettings:
    """Return the settings of a sound track of an open file."""
    context = stream.codec_context
    return SoundSettings(
        context.codec.canonical_name, context.sample_rate, context.channels, bytes(context.extradata or b"")
    )


def parts_of_other_settings(
    path: Path, settings: SoundSettings, index: int, seams: Sequence[Seam]
) -> frozenset[int]:
    """Return the numbers of the parts of a joined Matroska file whose sound needs other settings.

    Where a further file was appended, its header states the settings of its own sound. A part may also begin
    without a header: then times start again within one file, which has one set of settings. Codecs that state
    the settings in each packet need none of the file.

    Parameters
    ----------
    path
        The file.
    settings
        Those of its sound track, by which FFmpeg decodes all parts.
    index
        Place of the track among the streams of the file.
    seams
        Where its second part begins, its third, and so on.

    Returns
    -------
    frozenset of int
        Numbers of parts, from 0; the first part, 0, is never among them.
    """
    if settings.codec in SELF_DESCRIBED_SOUND:
        return frozenset()
    heads_of_later_parts = find_file_heads(path, seams)
    parts = set()
    for part, head in enumerate(heads_of_later_parts, start=1):
        has_head = head.start > 0
        if has_head and _read_settings(path, head.start, index) != settings:
            parts.add(part)
    return frozenset(parts)


def _read_settings(path: Path, start: int, index: int) -> SoundSettings | None:
    """Read the settings of a sound track from the header of a file that was appended to another.

    Parameters
    ----------
    path
        The joined file.
    start
        The byte at which the appended file begins. Its header, and no more, is opened as a file of its own.
    index
        Place of the track among the streams.

    Returns
    -------
    SoundSettings or None
        None if they cannot be read, or the stream at this place is no sound.
    """
    with open_regular(path) as file:
        file.seek(start)
        head = io.BytesIO(file.read(HEAD_BYTES))
    try:
        with av.open(head, format="matroska", options=dict(OPTIONS), metadata_errors="replace") as further:
            stream: Any = further.streams[index]
            can_be_decoded = stream.type == "audio" and stream.codec_context is not None
            return settings_of(stream) if can_be_decoded else None
    except (FFmpegError, IndexError):
        return None
