"""One clip, decoded once for every backbone: what runs in the decode workers."""

import hashlib
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from obygaze_features.video import Frames, Sampling, VideoError, probe, read_samplings

Pixels = NDArray[np.uint8]
Prepare = Callable[[Pixels], Pixels]


@dataclass(frozen=True, slots=True)
class DecodeTask:
    """What a worker needs to know of one clip.

    Parameters
    ----------
    path
        The video file, or None where the manifest names none.
    start_s, end_s
        The span in seconds, or None for the whole file.
    requests
        Backbone name -> which frames it takes, and its `prepare`.
    strict
        Refuse damaged files that could be read in part.
    hash_source
        Also take the SHA-256 of the file.
    """

    clip_id: str
    path: Path | None
    start_s: float | None
    end_s: float | None
    requests: Mapping[str, tuple[Sampling, Prepare]]
    strict: bool = False
    hash_source: bool = False


@dataclass(frozen=True, slots=True)
class Prepared:
    """The sampled frames of one clip as one backbone takes them.

    Parameters
    ----------
    images
        uint8 `[F, h, w, c]`.
    frame_index, time_s
        `[F]`.
    """

    images: Pixels
    frame_index: NDArray[np.int64]
    time_s: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class DecodedClip:
    """What a worker gives back: prepared frames by backbone, or the reason why there are none.

    Parameters
    ----------
    frames
        Backbone name -> its frames; empty when the status is `failed`.
    source
        Size in bytes, and what else is known of the file.
    cpu_s
        Processor seconds that the worker spent.
    n_decoded
        Frames that the decoder had to decode to get them.
    """

    clip_id: str
    status: Literal["ok", "partial", "failed"]
    reason: str = ""
    frames: Mapping[str, Prepared] = field(default_factory=dict)
    source: Mapping[str, object] = field(default_factory=dict)
    cpu_s: float = 0.0
    n_decoded: int = 0


def decode_clip(task: DecodeTask) -> DecodedClip:
    """Decode one clip and prepare its frames for every backbone; a bad file is a result, not an error."""
    started = time.process_time()
    if task.path is None:
        return DecodedClip(task.clip_id, "failed", "the manifest names no video for this clip")
    requests = list(task.requests.values())
    try:
        read = read_samplings(task.path, requests, start_s=task.start_s, end_s=task.end_s, strict=task.strict)
        source = _source(task.path, hashed=task.hash_source)
    except VideoError as error:
        return DecodedClip(task.clip_id, "failed", error.reason, cpu_s=time.process_time() - started)
    except OSError as error:
        return DecodedClip(task.clip_id, "failed", f"the file cannot be read: {error.strerror or error}")
    if not all(np.isfinite(frames.time_s).all() for frames in read):
        reason = (
            "the file does not say when its frames are shown; put it into a container that does, such as MKV"
        )
        return DecodedClip(task.clip_id, "failed", reason, source=source)
    return DecodedClip(
        task.clip_id,
        read[0].status,
        "; ".join(read[0].notes) if read[0].status != "ok" else "",
        {name: _prepared(frames) for name, frames in zip(task.requests, read, strict=True)},
        source,
        time.process_time() - started,
        read[0].decoded,
    )


def _prepared(frames: Frames[Pixels]) -> Prepared:
    return Prepared(np.stack(frames.images), frames.index, frames.time_s)


def _source(path: Path, *, hashed: bool) -> dict[str, Any]:
    video = probe(path)  # indexed already by this worker
    source: dict[str, Any] = {"bytes": video.bytes}
    if math.isfinite(video.duration_s):
        source["duration_s"] = video.duration_s
    if hashed:
        with path.open("rb") as file:
            source["sha256"] = hashlib.file_digest(file, "sha256").hexdigest()
    return source
