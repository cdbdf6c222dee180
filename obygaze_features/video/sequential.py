"""Decode sequentially (pass 2): all frames in order with one thread, keeping the wanted ones."""

from collections.abc import Collection, Iterator

import numpy as np
from av import FFmpegError
from av.video.frame import VideoFrame

from obygaze_features.video.index import seconds
from obygaze_features.video.packet_table import PacketTable
from obygaze_features.video.sampling import FrameTimes
from obygaze_features.video.source import Source, Tally


def decode_all(source: Source, tally: Tally) -> Iterator[VideoFrame]:
    """Yield every decoded frame in display order; count packets that the decoder refuses."""
    source.context.skip_frame = "DEFAULT"
    packets = source.packets()
    while True:
        try:
            packet = next(packets)
        except StopIteration:
            break
        except FFmpegError:  # an error of the demuxer ends the stream
            tally.errors += 1
            break
        try:
            frames = source.context.decode(packet)
        except FFmpegError:
            tally.errors += 1
            continue
        tally.decoded += len(frames)
        yield from frames
    try:
        frames = source.context.decode(None)
    except FFmpegError:
        tally.errors += 1
        return
    tally.decoded += len(frames)
    yield from frames


def numbered(source: Source, table: PacketTable, tally: Tally) -> Iterator[tuple[int, VideoFrame]]:
    """Yield every frame with its number, by time stamp if time stamps are unique, else by counting."""
    if not table.labelled:
        yield from enumerate(decode_all(source, tally))
        return
    numbers = {int(table.pts[packet]): number for number, packet in enumerate(table.shown)}
    for frame in decode_all(source, tally):
        number = numbers.get(frame.pts) if frame.pts is not None else None
        if number is not None:
            yield number, frame


def decode_sequential(
    source: Source, table: PacketTable, targets: Collection[int], tally: Tally
) -> Iterator[tuple[int, VideoFrame]]:
    """Yield the wanted frames with their numbers and stop after the last; frames may be missing.

    Parameters
    ----------
    source
        The stream, freshly opened.
    table
        Its packets.
    targets
        Numbers of the wanted frames.
    tally
        Counts frames and errors.
    """
    missing = set(targets)
    for number, frame in numbered(source, table, tally):
        if number in missing:
            missing.discard(number)
            yield number, frame
            if not missing:
                return


def survey(source: Source, table: PacketTable, tally: Tally) -> FrameTimes:
    """Decode the whole stream to find which frames exist and which are key frames."""
    numbers: list[int] = []
    keys: list[bool] = []
    stamps: dict[str, list[int]] = {"pts": [], "dts": []}
    for number, frame in numbered(source, table, tally):
        numbers.append(number)
        keys.append(frame.key_frame)
        for name, column in stamps.items():
            value = getattr(frame, name)
            if value is not None:
                column.append(value)
    # In a damaged file, time stamps may be out of order or duplicated.
    index, first = np.unique(np.array(numbers, np.int64), return_index=True)
    if table.labelled or len(index) == len(table.time_s):
        time_s = table.time_s[index]
    else:
        time_s = np.full(len(index), np.nan)
        for column in stamps.values():
            if len(set(column)) == len(index):  # as in the table: stamps increase in display order
                time_s = seconds(column, source)
                break
    return FrameTimes(index, time_s, np.array(keys, np.bool_)[first])
