"""Decode each clip once for all backbones, in the decode workers."""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from obygaze_features.video import Frames, Sampling, VideoError, file_digest, probe, read_windows

Pixels = NDArray[np.uint8]
Prepare = Callable[[Pixels], Pixels]
PIECE_CLIPS = 16
"""Clips that a worker decodes in one pass and gives back together: what bounds its memory."""


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
    """Result of a decode worker: prepared frames by backbone, or the reason for a failure.

    Parameters
    ----------
    frames
        Backbone name -> its frames; empty when the status is `failed`.
    source
        Size in bytes, and what else is known of the file.
    cpu_s
        Processor seconds that the worker spent.
    n_decoded
        Frames that the decoder had to decode to get them; of clips decoded together, those since the one
        before.
    remarks
        What a person should know of a clip that nothing is wrong with.
    """

    clip_id: str
    status: Literal["ok", "partial", "failed"]
    reason: str = ""
    frames: Mapping[str, Prepared] = field(default_factory=dict)
    source: Mapping[str, object] = field(default_factory=dict)
    cpu_s: float = 0.0
    n_decoded: int = 0
    remarks: tuple[str, ...] = ()


def pieces(tasks: Sequence[DecodeTask], workers: int) -> list[list[DecodeTask]]:
    """Cut tasks into pieces that a worker decodes in one pass: neighbours that are spans of the same file.

    A piece has up to `PIECE_CLIPS` clips, and fewer where that would leave workers without one.
    """
    runs: list[list[DecodeTask]] = []
    for task in tasks:
        if runs and _same_file(runs[-1][0], task):
            runs[-1].append(task)
        else:
            runs.append([task])
    cut = []
    for run in runs:
        size = min(PIECE_CLIPS, -(-len(run) // workers))
        cut += [run[first : first + size] for first in range(0, len(run), size)]
    return cut


def _same_file(one: DecodeTask, other: DecodeTask) -> bool:
    if one.path is None or one.start_s is None or other.start_s is None:
        return False
    return one.path == other.path and one.requests is other.requests


def decode_clip(task: DecodeTask) -> DecodedClip:
    """Decode one clip and prepare its frames for every backbone; a bad file is a result, not an error."""
    return decode_clips([task])[0]


def decode_clips(tasks: Sequence[DecodeTask]) -> list[DecodedClip]:
    """Decode clips of one file in one pass; the result equals decoding each alone."""
    decoded = dict(_decode(tasks))
    return [decoded[number] for number in range(len(tasks))]


def _decode(tasks: Sequence[DecodeTask]) -> Iterator[tuple[int, DecodedClip]]:
    first, path = tasks[0], tasks[0].path
    if path is None:
        for number, task in enumerate(tasks):
            yield number, DecodedClip(task.clip_id, "failed", "the manifest names no video for this clip")
        return
    started = time.process_time()
    left = set(range(len(tasks)))
    try:
        source = _source(path, hashed=first.hash_source)
        spans = [(task.start_s, task.end_s) for task in tasks]
        for number, result in read_windows(path, spans, list(first.requests.values()), strict=first.strict):
            cpu_s, started = time.process_time() - started, time.process_time()
            left.discard(number)
            yield number, _clip(tasks[number], result, source, cpu_s)
    except VideoError as error:
        reason = error.reason
    except OSError as error:
        reason = f"the file cannot be read: {error.strerror or error}"
    else:
        return
    cpu_s = time.process_time() - started
    for number in sorted(left):
        yield number, DecodedClip(tasks[number].clip_id, "failed", reason, cpu_s=cpu_s)
        cpu_s = 0.0


def _clip(
    task: DecodeTask, read: tuple[Frames[Pixels], ...] | VideoError, source: dict[str, Any], cpu_s: float
) -> DecodedClip:
    if isinstance(read, VideoError):
        return DecodedClip(task.clip_id, "failed", read.reason, cpu_s=cpu_s)
    if not all(np.isfinite(frames.time_s).all() for frames in read):
        reason = (
            "the file does not say when its frames are shown; put it into a container that does, such as MKV"
        )
        return DecodedClip(task.clip_id, "failed", reason, source=source)
    notes = tuple(dict.fromkeys(note for frames in read for note in frames.notes))
    return DecodedClip(
        task.clip_id,
        read[0].status,
        "; ".join(notes) if read[0].status != "ok" else "",
        {name: _prepared(frames) for name, frames in zip(task.requests, read, strict=True)},
        source,
        cpu_s,
        read[0].decoded,
        notes if read[0].status == "ok" else (),
    )


def _prepared(frames: Frames[Pixels]) -> Prepared:
    return Prepared(np.stack(frames.images), frames.index, frames.time_s)


def _source(path: Path, *, hashed: bool) -> dict[str, Any]:
    video = probe(path)  # indexed already by this worker
    source: dict[str, Any] = {"bytes": video.bytes}
    if math.isfinite(video.duration_s):
        source["duration_s"] = video.duration_s
    if hashed:
        source["sha256"] = file_digest(path)
    return source
