"""Encode decoded clips with the backbones; shared by all engines."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from obygaze_features.backbones import Backbone
from obygaze_features.extraction.decode_clips import DecodedClip, Prepared, not_finite
from obygaze_features.store import ClipFeatures, ClipResult


def encode_batches(
    backbones: Sequence[Backbone],
    batches: Iterable[Sequence[DecodedClip]],
    clock: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> Iterator[list[ClipResult]]:
    """Encode batches; a GPU computes one batch while the host prepares and writes others.

    Every clip comes once, in order. Frames of a batch may be overwritten when the next one is asked for.

    Parameters
    ----------
    backbones
        Those with a method `start` (`Runner`) are all started before any is waited for.
    clock
        Entered for the time of the backbones.
    """
    on_card = any(uses_gpu(backbone) for backbone in backbones)
    begun: deque[_Begun] = deque()
    for batch in batches:
        with clock():
            begun.append(_Begun(backbones, batch))
            results = begun.popleft().results() if len(begun) > on_card else []
        if results:
            yield results
    if begun:
        with clock():
            results = begun.popleft().results()
        yield results


def encode_batch(backbones: Sequence[Backbone], batch: Sequence[DecodedClip]) -> list[ClipResult]:
    """Run every backbone over the readable clips of a batch; a clip with NaN or inf has failed."""
    return _Begun(backbones, batch).results()


def warm_up(backbones: Sequence[Backbone]) -> None:
    """Call once each network that is compiled or runs on a GPU, before decoding or timing starts.

    Raises
    ------
    BackboneError
        If one does not fit in GPU memory, or cannot be compiled.
    """
    for backbone in backbones:
        compiled = backbone.provenance.get("compute", {}).get("compiled", False)
        if (compiled or uses_gpu(backbone)) and hasattr(backbone.encode, "warm_up"):
            backbone.encode.warm_up()


def uses_gpu(backbone: Backbone) -> bool:
    """Return whether a backbone's record names a device other than the CPU."""
    return bool(backbone.provenance.get("compute", {}).get("device", "cpu") != "cpu")


def fallback(backbones: Sequence[Backbone]) -> str | None:
    """Name the networks that run on the CPU for lack of a GPU, and why; None if there is no such network."""
    computes = {backbone.name: getattr(backbone.encode, "compute", None) for backbone in backbones}
    reasons = {name: compute.fallback() for name, compute in computes.items() if compute is not None}
    names = [name for name, reason in reasons.items() if reason]
    return f"{', '.join(names)} on cpu: {reasons[names[0]]}" if names else None


def clips_at_once(backbones: Sequence[Backbone]) -> int:
    """Return the most clips that a backbone encodes at once: a batch should not be smaller."""
    return max((getattr(backbone.encode, "clips_at_once", 1) for backbone in backbones), default=1)


def gpu_busy_s(backbones: Sequence[Backbone]) -> float | None:
    """Sum the seconds for which backbones kept a GPU busy so far; None if none of them uses a GPU."""
    busy = [getattr(backbone.encode, "busy_s", 0.0) for backbone in backbones if uses_gpu(backbone)]
    return float(sum(busy)) if busy else None


def gpu_record(backbones: Sequence[Backbone]) -> dict[str, Any]:
    """Describe the GPUs in use, with peak memory and the current clips at once; empty without a GPU."""
    used: list[Any] = [backbone.encode for backbone in backbones if uses_gpu(backbone)]
    encoders = [each for each in used if hasattr(each, "card_record")]
    records = {each.card: each.card_record() for each in encoders}
    return {
        name: {
            **record,
            "clips_at_once": {each.name: each.clips_at_once for each in encoders if each.card == name},
        }
        for name, record in records.items()
    }


class _Begun:
    """Batch that every backbone has started to encode; keeps its clips without their frames."""

    def __init__(self, backbones: Sequence[Backbone], batch: Sequence[DecodedClip]) -> None:
        readable = [clip for clip in batch if clip.status != "failed"]
        self._clips = {}
        for clip in batch:
            self._clips[clip.clip_id] = replace(clip, frames={}, absent=_absent(backbones, clip))
        self._pending = []
        for backbone in backbones:
            name = backbone.name
            having = {clip.clip_id: clip.frames[name] for clip in readable if name in clip.frames}
            if having:
                times = {clip_id: (taken.time_s, taken.frame_index) for clip_id, taken in having.items()}
                self._pending.append((backbone, times, _start(backbone, list(having.values()))))

    def results(self) -> list[ClipResult]:
        """Wait for the backbones."""
        groups = {clip_id: dict(clip.encoded) for clip_id, clip in self._clips.items()}
        devices: dict[str, dict[str, None]] = {clip_id: {} for clip_id in groups}
        wrong: dict[str, str] = {}
        for backbone, times, pending in self._pending:
            arrays, finite, cards = _outcome(backbone, pending)
            by_group = backbone.by_group(arrays)
            for row, (clip_id, moments) in enumerate(times.items()):
                if not finite[row]:
                    every = {array: values[row] for array, values in arrays.items()}
                    wrong.setdefault(clip_id, not_finite(backbone.name, every))
                for group, own in by_group.items():
                    of_clip = {array: values[row] for array, values in own.items()}
                    groups[clip_id][group] = ClipFeatures(*moments, of_clip)
                devices[clip_id] |= dict.fromkeys(cards[row : row + 1])
        results = []
        for clip_id, clip in self._clips.items():
            source, cards = clip.source, ", ".join(devices[clip_id])
            if clip.status == "failed" or clip_id in wrong:
                results.append(ClipResult(clip_id, "failed", wrong.get(clip_id, clip.reason), source))
                continue
            source = {**source, "device": cards} if cards else source
            results.append(
                ClipResult(clip_id, clip.status, clip.reason, source, groups[clip_id], clip.absent)
            )
        return results


def _absent(backbones: Sequence[Backbone], clip: DecodedClip) -> dict[str, str]:
    """Return why groups have nothing of a clip: what a backbone lacks, the groups beside its own lack too."""
    reasons = {}
    for backbone in backbones:
        if backbone.name in clip.absent:
            for group in backbone.group_names():
                reasons[group] = clip.absent[backbone.name]
    return reasons


def _start(backbone: Backbone, clips: Sequence[Prepared]) -> Any:
    images = [clip.images for clip in clips]
    start = getattr(backbone.encode, "start", None)  # a Runner has `start`, and also `compute` and `card`
    return backbone.encode(np.stack(images)) if start is None else start(images)


def _outcome(
    backbone: Backbone, pending: Any
) -> tuple[Mapping[str, Sequence[NDArray[Any]] | NDArray[Any]], NDArray[np.bool_], Sequence[str]]:
    """Give a backbone's arrays for a batch, which clips are finite, and the card that each was made on."""
    if isinstance(pending, dict):
        finite = [np.isfinite(values).reshape(len(values), -1).all(axis=1) for values in pending.values()]
        return pending, np.all(finite, axis=0), ()
    encoded, encode = pending.result(), cast("Any", backbone.encode)
    if encoded.at_once is None:
        return encoded.arrays, encoded.finite, ()
    wanted, card = encode.compute.first_size(), encode.card
    devices = [
        card if n == wanted else f"{card} ({backbone.name}: {n} at once)" for n in encoded.at_once.tolist()
    ]
    return encoded.arrays, encoded.finite, devices if uses_gpu(backbone) else ()
