"""Compare a file with what its container declares, to detect truncation."""

import re

import av

from obygaze_features.video.source import Source

TRUNCATED_BELOW = 0.98
# Matroska's duration may be that of the sound, so a difference of one second is not evidence.
DURATION_SLACK_S = 1.0


def declared_packets(source: Source) -> int:
    """Return the number of packets that the container declares; 0 if it declares none."""
    declared = source.stream.frames
    entries = len(source.stream.index_entries)
    # An edit list may leave out samples that the MP4 header still counts.
    return min(declared, entries) if source.format.startswith("mov") and declared and entries else declared


def promised_seconds(source: Source) -> float:
    """Return the time at which the video ends according to the container; 0 if it declares none.

    Matroska declares no packet count. Its overall duration may be that of the sound, so it is used only if
    the file has one stream.
    """
    if not source.format.startswith("matroska"):
        return 0.0
    tag = source.stream.metadata.get("DURATION", "")
    if re.fullmatch(r"\d+:\d\d:\d\d(\.\d+)?", tag):
        hours, minutes, rest = tag.split(":")
        return 3600 * int(hours) + 60 * int(minutes) + float(rest)
    if len(source.container.streams) == 1 and source.container.duration:
        return source.container.duration / av.time_base
    return 0.0


def truncation(read: int, declared: int, last_s: float, promised_s: float) -> str:
    """Describe what a file lacks of what its container declares; empty if it is complete.

    Parameters
    ----------
    read, declared
        Packets present, and packets declared (0: none declared).
    last_s, promised_s
        When the last frame is shown, and when the video should end (0: unknown).
    """
    if declared and read < TRUNCATED_BELOW * declared:
        return f"the file is cut off: {read} of {declared} packets are there"
    if last_s < TRUNCATED_BELOW * promised_s - DURATION_SLACK_S:
        return f"the file is cut off: pictures end at {last_s:.2f} s of {promised_s:.2f} s"
    return ""
