"""Sample a clip's training frames: every int(rate)-th, at most 12 of them, as 8-bit squares.

This module runs in the decode workers and must not import torch.
"""

from dataclasses import dataclass
from pathlib import Path

import av
import numpy as np
from numpy.typing import NDArray

from obygaze_features.backbones.presets import Geometry
from obygaze_features.errors import VideoError
from obygaze_features.video import at, probe, read_frames, uniform

Pixels = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Sampled:
    """Frames of one clip.

    Parameters
    ----------
    images
        uint8 `[F, h, w, 3]`.
    index
        `[F]`: frame numbers in the video.
    damage
        Description of what is missing or damaged in the file; empty for a complete file.
    """

    images: Pixels
    index: NDArray[np.int64]
    damage: str


def sample_frames(path: Path, geometry: Geometry, most: int) -> Sampled:
    """Take frames 0, f, 2f, ... with f = int(frames per second), and at most `most` of them.

    In a damaged file the same rule is applied to the decodable frames, numbered in order.

    Raises
    ------
    VideoError
        If no frame can be read.
    """
    stride = max(int(frame_rate(path)), 1)
    total = probe(path).frames
    try:
        found = read_frames(path, at(_taken(total, stride, most)), each=geometry)
    except VideoError:
        existing = np.unique(read_frames(path, uniform(total), each=_nothing).index)
        numbers = existing[_taken(len(existing), stride, most)]
        found = read_frames(path, at(numbers), each=geometry)
    damage = "; ".join(found.notes) if found.status != "ok" else ""
    return Sampled(np.stack(found.images), found.index, damage)


def kept_frames(sampled: int, most: int) -> NDArray[np.int64]:
    """Choose at most `most` of `sampled` frames: all, or linspace truncated."""
    if sampled <= most:
        return np.arange(sampled)
    return np.linspace(0, sampled - 1, num=most, dtype=np.int64)


def frame_rate(path: Path) -> float:
    """Read the frame rate stated in the file, which the original's decoder (OpenCV) uses.

    Raises
    ------
    VideoError
        If the file cannot be opened or states none.
    """
    probe(path)  # raises a clear error if the file cannot be opened
    with av.open(str(path), metadata_errors="replace") as container:
        stream = container.streams.best("video")
        rate = None if stream is None else stream.guessed_rate
    if not rate:
        raise VideoError("the file states no frame rate", path)
    return float(rate)


def _taken(frames: int, stride: int, most: int) -> NDArray[np.int64]:
    return kept_frames(-(-frames // stride), most) * stride


def _nothing(_: Pixels) -> None:
    return None
