"""What a reader of frames can do at best."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
from av.video.reformatter import VideoReformatter
from numpy.typing import NDArray

from obygaze_features.video import decode as sparse
from obygaze_features.video import index as video_index
from obygaze_features.video.bitstream import (
    SKIPS_UNREFERENCED,
    mpeg12_type,
    nal_length_size,
    nal_units,
    vop_type,
)
from obygaze_features.video.source import opened

CLOCK = Fraction(1, 1000)
"""Matroska's."""
EARLIER = 1000
"""Ticks by which decoding times come first: more than any decoder holds pictures back."""

Images = list[NDArray[np.uint8]]


def limit(path: Path, targets: Sequence[int], packets: Path) -> Callable[[], Images]:
    """Give the function that has FFmpeg decode exactly the packets that ours feeds, and give RGB.

    The packets are copied into a Matroska file, which is opened and demuxed as any program must. Finding out
    which packets they are is not measured; RGB of the wanted frames is, as every reader has to give it.

    Parameters
    ----------
    path
        The video.
    targets
        Numbers of the wanted frames.
    packets
        The file that is made.
    """
    table = video_index.index_packets(path)
    wanted = {int(table.shown[target]) for target in targets}
    ticks = EARLIER + np.argsort(np.argsort(table.rank))
    by_itself = unreferenced(path, table.codec)
    starts = set()
    with opened(path) as source, av.open(str(packets), "w") as output:
        stream = output.add_stream_from_template(source.stream, opaque=True)
        feed = sparse.PacketFeed(source, table, wanted, seeks=False)
        for first, last in sparse.runs(sparse.needed_packets(table, targets)):
            starts.add(int(ticks[first]))
            for number, packet in feed.needed(first, last):
                if by_itself[number] and number not in wanted:
                    continue
                copy = av.Packet(bytes(packet))
                copy.pts, copy.dts, copy.time_base = int(ticks[number]), number, CLOCK
                copy.is_keyframe, copy.stream = bool(table.random_access[number]), stream
                output.mux(copy)
    asked = {int(ticks[number]) for number in wanted}

    def decode() -> Images:
        reformatter, given = VideoReformatter(), Images()

        def convert(frames: list[av.VideoFrame]) -> None:
            given.extend(
                reformatter.reformat(frame, format="rgb24", threads=1).to_ndarray()
                for frame in frames
                if frame.pts in asked
            )

        with av.open(str(packets)) as container:
            stream = container.streams.video[0]
            stream.thread_count = 1
            for packet in container.demux(stream):
                if packet.pts in starts:
                    convert(stream.decode(None))
                    stream.codec_context.flush_buffers()
                convert(stream.decode(packet))
        return given

    return decode


def unreferenced(path: Path, codec: str) -> NDArray[np.bool_]:
    """Mark the pictures that libavcodec leaves out by itself when it is told to."""
    flags = []
    with opened(path) as source:
        size = nal_length_size(source.context.extradata)
        for packet in source.packets():
            data = bytes(packet)
            if codec == "h264":
                slices = (unit[0] >> 5 == 0 for unit in nal_units(data, size) if unit[0] & 31 in (1, 5))
                flags.append(next(slices, False))
            else:
                kind = vop_type if codec == "mpeg4" else mpeg12_type
                flags.append(codec in SKIPS_UNREFERENCED and kind(data) == "B")
    return np.array(flags, np.bool_)
