"""Decode pictures and sound together, as a player does, on the time line of the pictures."""

from collections.abc import Iterator
from heapq import merge
from pathlib import Path
from typing import Any

import numpy as np

from obygaze_features.errors import VideoError
from obygaze_features.video.decode import decoded, numbered
from obygaze_features.video.index import index_packets
from obygaze_features.video.picture import pictures as converted
from obygaze_features.video.sound import opened_track, placed
from obygaze_features.video.source import Tally, opened


def played(path: Path, *, pictures: bool = True) -> Iterator[tuple[float, Any]]:
    """Yield the pictures of a file and the frames of its sound in the order of their times.

    The sound is the track that players choose, as in `SoundTrack`.

    Without `pictures` none is decoded.

    Yields
    ------
    float
        Seconds of the player's clock, the same as `read_frames` gives. Frames without a time are left out.
    NDArray[np.uint8] or av.AudioFrame
        A picture as `read_frames` gives it, [H, W, 3], or a frame of sound.
    """
    return merge(_seen(path), _heard(path), key=lambda shown: shown[0]) if pictures else _heard(path)


def _seen(path: Path) -> Iterator[tuple[float, Any]]:
    table = index_packets(path)
    with opened(path) as source:
        for number, picture in converted(numbered(source, table, Tally()), path, table.stream.crop):
            if number < len(table.time_s) and np.isfinite(table.time_s[number]):
                yield float(table.time_s[number]), picture.rgb


def _heard(path: Path) -> Iterator[tuple[float, Any]]:
    offset_s = index_packets(path).part_offset_s.tolist()
    with opened(path) as source:
        try:
            track = opened_track(source)
        except VideoError:  # the pictures are played all the same
            return
        packets = (packet for _, packet, _ in placed(source, track, offset_s))
        for frame in decoded(track.codec_context, packets, Tally()):
            if frame.pts is not None and frame.time_base is not None:
                yield float(frame.pts * frame.time_base - source.origin), frame
