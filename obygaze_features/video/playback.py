"""Decode pictures and sound together, as a player does, on the time line of the pictures."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from av import FFmpegError
from av.audio.stream import AudioStream
from av.stream import Discard

from obygaze_features.video.index import index_packets
from obygaze_features.video.packet_table import PacketTable
from obygaze_features.video.source import Source
from obygaze_features.video.time_line import TrackLine


def played(source: Source, sound: AudioStream | None) -> Iterator[tuple[float, Any]]:
    """Yield frames of pictures and of a sound track in the order of the file, with their times.

    Parameters
    ----------
    source
        A file that was just opened; it is decoded whole.
    sound
        One of its sound tracks.

    Yields
    ------
    float
        Seconds of the player's clock, the same as `read_frames` gives. Frames without a time are left out.
    av.VideoFrame or av.AudioFrame
        The frame.
    """
    table = index_packets(source.path)
    if sound is not None:
        sound.discard = Discard.default  # nothing else of it is read for features
    pictures, line = _Numbers(table), TrackLine(table.part_offset_s.tolist())
    for packet in source.container.demux([each for each in (source.stream, sound) if each is not None]):
        is_picture = packet.stream.index == source.stream.index
        if is_picture:
            pictures.label(packet)
        elif packet.pts is not None and packet.time_base:
            packet.pts = round(line.place(float(packet.pts * packet.time_base)) / packet.time_base)
        try:
            frames: list[Any] = list(packet.decode())
        except FFmpegError:
            continue
        for frame in frames:
            if is_picture:
                time_s = pictures.time_of(frame)
            else:
                time_s = np.nan if frame.pts is None else float(frame.pts * frame.time_base - source.origin)
            if np.isfinite(time_s):
                yield time_s, frame


class _Numbers:
    """Finds the times of pictures by the numbers of their packets, or by counting."""

    def __init__(self, table: PacketTable) -> None:
        self._table = table
        self._numbers = {int(packet): number for number, packet in enumerate(table.shown)}
        self._sent = self._given = 0

    def label(self, packet: Any) -> None:
        """Give a packet its number as time stamp."""
        if self._table.labelled and packet.size:
            packet.pts, packet.dts = self._sent, None
            self._sent += 1

    def time_of(self, frame: Any) -> float:
        """Return the time of the next frame; NaN if it is none that is shown."""
        number = self._numbers.get(frame.pts, -1) if self._table.labelled else self._given
        self._given += 1
        return float(self._table.time_s[number]) if 0 <= number < len(self._table.time_s) else np.nan
