"""Decode pictures and sound together, as a player does, on the time line of the pictures."""

import math
from collections.abc import Iterator
from contextlib import suppress
from heapq import merge
from pathlib import Path
from typing import Any

from obygaze_features.arguments import checked
from obygaze_features.errors import VideoError
from obygaze_features.video.decode import Decoder
from obygaze_features.video.picture import pictures as converted
from obygaze_features.video.sound import bytes_to_probe_for_track, opened_track, timed_packets
from obygaze_features.video.source import opened_to


@checked
def played(path: Path, *, pictures: bool = True) -> Iterator[tuple[float, Any]]:
    """Yield the pictures of a file and the frames of its sound in the order of their times.

    The sound is the track that players choose, as in `SoundTrack`.

    Parameters
    ----------
    path
        A video file.
    pictures
        Whether pictures are decoded; if not, only the sound is yielded.

    Yields
    ------
    float
        Seconds of the player's clock, the same as `read_frames` gives. Frames without a time are left out.
    NDArray[np.uint8] or av.AudioFrame
        A picture as `read_frames` gives it, [H, W, 3], or a frame of sound.
    """
    if not pictures:
        return _sound_frames(path)
    return merge(_timed_pictures(path), _sound_frames(path), key=lambda timed: timed[0])


def _timed_pictures(path: Path) -> Iterator[tuple[float, Any]]:
    """Yield the time in seconds and the RGB pixels of each picture that has a time."""
    decoder = Decoder(path)
    times = decoder.table.frame_times.time_s.tolist()
    stream = decoder.table.stream
    for number, picture in converted(decoder.decode_sequentially(range(len(times))), path, stream):
        if math.isfinite(times[number]):
            yield times[number], picture.rgb


def _sound_frames(path: Path) -> Iterator[tuple[float, Any]]:
    """Yield the time in seconds and each frame of sound; nothing if the sound cannot be read."""
    decoder = Decoder(path)  # whose `frames` decodes packets of any kind
    offset_s = decoder.table.part_offset_s.tolist()
    # A file without sound, or with sound that cannot be read, is played silently.
    with suppress(VideoError), opened_to(path, bytes_to_probe_for_track(path)) as source:
        track = opened_track(source)
        packets = (placed.packet for placed in timed_packets(source, track, offset_s))
        for frame in decoder.frames(track.codec_context, packets):
            if frame.pts is not None and frame.time_base is not None:
                yield float(frame.pts * frame.time_base - source.origin), frame
