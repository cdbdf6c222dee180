"""Encode decoded clips with the backbones; shared by all engines."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from obygaze_features.backbones import Backbone
from obygaze_features.extraction.decode import DecodedClip
from obygaze_features.store import ClipFeatures, ClipResult


def encode_batch(backbones: Sequence[Backbone], batch: Sequence[DecodedClip]) -> list[ClipResult]:
    """Run every backbone over the readable clips of a batch; a clip with a value not finite has failed."""
    readable = [clip for clip in batch if clip.status != "failed"]
    outputs: dict[str, dict[str, NDArray[Any]]] = {}
    if readable:
        for backbone in backbones:
            if backbone.name in readable[0].encoded:
                continue
            frames = np.stack([clip.frames[backbone.name].images for clip in readable])
            outputs[backbone.name] = backbone.encode(frames)
    position = {clip.clip_id: i for i, clip in enumerate(readable)}
    return [_result(clip, outputs, position.get(clip.clip_id)) for clip in batch]


def uses_gpu(backbone: Backbone) -> bool:
    """Return whether a backbone runs on something other than the CPU, by its own record."""
    return bool(backbone.provenance.get("compute", {}).get("device", "cpu") != "cpu")


def gpu_busy_s(backbones: Sequence[Backbone]) -> float | None:
    """Add up the seconds that backbones kept a GPU at work so far; None if none of them uses one."""
    busy = [getattr(backbone.encode, "busy_s", 0.0) for backbone in backbones if uses_gpu(backbone)]
    return float(sum(busy)) if busy else None


def _result(clip: DecodedClip, outputs: dict[str, dict[str, NDArray[Any]]], row: int | None) -> ClipResult:
    if row is None:
        return ClipResult(clip.clip_id, "failed", clip.reason, clip.source)
    groups = dict(clip.encoded)
    for name, arrays in outputs.items():
        mine = {array: values[row] for array, values in arrays.items()}
        groups[name] = ClipFeatures(clip.frames[name].time_s, clip.frames[name].frame_index, mine)
    for name, features in groups.items():
        for array, values in features.arrays.items():
            if not np.isfinite(values).all():
                return ClipResult(
                    clip.clip_id,
                    "failed",
                    f"{name} gave values that are not finite in '{array}'",
                    clip.source,
                )
    return ClipResult(clip.clip_id, clip.status, clip.reason, clip.source, groups)
