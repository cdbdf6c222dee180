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
    """Yield (time in seconds, RGB pixels [H, W, 3]) for each picture of a file that has a time."""
    decoder = Decoder(path)
    times_s = decoder.table.frame_times.time_s.tolist()
    frames = decoder.decode_sequentially(range(len(times_s)))
    for number, picture in converted(frames, path, decoder.table.stream):
        if math.isfinite(times_s[number]):
            yield times_s[number], picture.rgb


def _sound_frames(path: Path) -> Iterator[tuple[float, Any]]:
    """Yield (time in seconds, frame) for each frame of a file's sound; nothing if it cannot be read."""
    decoder = Decoder(path)  # whose `frames` decodes packets of any kind
    offsets_s = decoder.table.part_offset_s.tolist()  # of the parts of a joined file
    # A file without sound, or with sound that cannot be read, is played silently.
    with suppress(VideoError), opened_to(path, bytes_to_probe_for_track(path)) as source:
        track = opened_track(source)
        # With their times put on the time line of the pictures.
        packets = (placed.packet for placed in timed_packets(source, track, offsets_s))
        for frame in decoder.frames(track.codec_context, packets):
            if frame.pts is not None and frame.time_base is not None:
                yield float(frame.pts * frame.time_base - source.origin), frame
