"""Encode decoded clips with the backbones; shared by all engines."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from obygaze_features.backbones import Backbone
from obygaze_features.extraction.decode_clips import DecodedClip, not_finite
from obygaze_features.store import ClipFeatures, ClipResult


def encode_batches(
    backbones: Sequence[Backbone],
    batches: Iterable[Sequence[DecodedClip]],
    measure_time: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> Iterator[list[ClipResult]]:
    """Encode batches of clips, and yield the results of each; a GPU computes one while the next is decoded.

    Every clip comes once, in order. Frames of a batch may be overwritten when the next batch is asked for.

    Parameters
    ----------
    backbones
        Backbones whose `encode` has a method `start` are all started before any is waited for.
    batches
        Decoded clips.
    measure_time
        Returns a context manager, within which the backbones run, so that their time can be measured.
    """
    # While a GPU computes one batch, the next one is decoded and started.
    on_gpu = any(uses_gpu(backbone) for backbone in backbones)
    max_started = 2 if on_gpu else 1
    started_batches: deque[_StartedBatch] = deque()  # the oldest first
    for batch in batches:  # asking for a batch decodes it
        results: list[ClipResult] = []
        with measure_time():
            started_batches.append(_StartedBatch(backbones, batch))
            if len(started_batches) == max_started:
                results = started_batches.popleft().results()
        if results:
            yield results
    if started_batches:
        with measure_time():
            results = started_batches.popleft().results()
        yield results


def encode_batch(backbones: Sequence[Backbone], batch: Sequence[DecodedClip]) -> list[ClipResult]:
    """Run every backbone over the readable clips of a batch, and return the result of each clip.

    A clip that could not be read, or gets a feature that is NaN or inf, has failed.
    """
    started_batch = _StartedBatch(backbones, batch)
    return started_batch.results()  # waits for the backbones


def warm_up(backbones: Sequence[Backbone]) -> None:
    """Call once each network that is compiled or runs on a GPU, before decoding or timing starts.

    The first call takes long, as it compiles the network or reserves memory.

    Raises
    ------
    BackboneError
        If one does not fit in GPU memory, or cannot be compiled.
    """
    for backbone in backbones:
        is_compiled = backbone.provenance.get("compute", {}).get("compiled", False)
        has_slow_start = is_compiled or uses_gpu(backbone)
        if has_slow_start and hasattr(backbone.encode, "warm_up"):
            backbone.encode.warm_up()


def uses_gpu(backbone: Backbone) -> bool:
    """Return whether a backbone's record names a device other than the CPU."""
    return bool(backbone.provenance.get("compute", {}).get("device", "cpu") != "cpu")


def cpu_fallback_note(backbones: Sequence[Backbone]) -> str | None:
    """Return a note that networks run on the CPU because no GPU is usable; None if no network does."""
    reasons: dict[str, str] = {}  # backbone -> why it runs on the CPU
    for backbone in backbones:
        compute = getattr(backbone.encode, "compute", None)
        reason = None if compute is None else compute.fallback()
        if reason:
            reasons[backbone.name] = reason
    if not reasons:
        return None
    first_reason = next(iter(reasons.values()))  # the same for all, as they run on one machine
    return f"{', '.join(reasons)} on cpu: {first_reason}"


def clips_at_once(backbones: Sequence[Backbone]) -> int:
    """Return the largest number of clips that one of the backbones encodes at once, at least 1.

    A batch should not be smaller, or this backbone's GPU would not be used to the full.
    """
    numbers = [getattr(backbone.encode, "clips_at_once", 1) for backbone in backbones]
    return max(numbers, default=1)


def gpu_busy_s(backbones: Sequence[Backbone]) -> float | None:
    """Sum the seconds for which backbones kept a GPU busy so far; None if none of them uses a GPU."""
    backbones_on_gpu = [backbone for backbone in backbones if uses_gpu(backbone)]
    if not backbones_on_gpu:
        return None
    busy_s = [getattr(backbone.encode, "busy_s", 0.0) for backbone in backbones_on_gpu]
    return float(sum(busy_s))


def gpu_record(backbones: Sequence[Backbone]) -> dict[str, Any]:
    """Describe the GPUs in use for the report of a run: model of a GPU -> its record.

    A record has the GPU's peak memory, and for each backbone on it `clips_at_once`: how many clips it encodes
    in one call, as memory allows. Empty without a GPU.
    """
    records: dict[str, dict[str, Any]] = {}
    for backbone in backbones:
        encoder: Any = backbone.encode
        if not uses_gpu(backbone) or not hasattr(encoder, "card_record"):
            continue

        clips_at_once_of: dict[str, int] = {}  # backbone -> its clips at once, of the backbones on this GPU
        if encoder.card in records:
            clips_at_once_of = records[encoder.card]["clips_at_once"]
        clips_at_once_of[encoder.name] = encoder.clips_at_once
        records[encoder.card] = {**encoder.card_record(), "clips_at_once": clips_at_once_of}
    return records


class _FrameTimes(NamedTuple):
    """When the frames of a clip are shown: seconds and numbers of frames, [F]."""

    time_s: NDArray[np.float64]
    frame_index: NDArray[np.int64]


class _Call(NamedTuple):
    """A call of a backbone for those clips of a batch that have frames or sound for it.

    Attributes
    ----------
    frame_times
        Id of each clip -> when its frames are shown; in the order of the arrays' rows.
    returned
        What the backbone's `start` or `encode` returned: an object whose `result` waits for the arrays, or
        the arrays.
    """

    backbone: Backbone
    frame_times: dict[str, _FrameTimes]
    returned: Any


class _StartedBatch:
    """A batch of clips that every backbone has started to encode; the clips are kept without their frames."""

    def __init__(self, backbones: Sequence[Backbone], batch: Sequence[DecodedClip]) -> None:
        """Start every backbone on the clips of the batch that have frames or sound for it."""
        # Clip id -> the clip without its frames, in the order of the batch.
        self._clips: dict[str, DecodedClip] = {}
        for clip in batch:
            self._clips[clip.clip_id] = replace(clip, frames={}, absent=_absent_groups(backbones, clip))

        # Start each backbone on those clips that have something for it; the calls go on in the background.
        self._calls: list[_Call] = []
        readable_clips = [clip for clip in batch if clip.status != "failed"]
        for backbone in backbones:
            frame_times = {}
            images = []
            for clip in readable_clips:
                prepared = clip.frames.get(backbone.name)
                if prepared is not None:
                    frame_times[clip.clip_id] = _FrameTimes(prepared.time_s, prepared.frame_index)
                    images.append(prepared.images)
            if images:
                returned = _start(backbone, images)
                self._calls.append(_Call(backbone, frame_times, returned))

    def results(self) -> list[ClipResult]:
        """Wait for the backbones, and return the result of every clip in the order of the batch."""
        # Decode workers may have computed some features already.
        outcomes = {clip_id: _Outcome(dict(clip.encoded)) for clip_id, clip in self._clips.items()}
        for call in self._calls:
            _add_features(call, outcomes)
        results = []
        for clip_id, clip in self._clips.items():
            outcome = outcomes[clip_id]
            if clip.status == "failed":
                results.append(ClipResult(clip_id, "failed", clip.reason, clip.source))
            elif outcome.not_finite:
                results.append(ClipResult(clip_id, "failed", outcome.not_finite, clip.source))
            else:
                results.append(_result(clip, outcome))
        return results


@dataclass(slots=True)
class _Outcome:
    """What the backbones gave of a clip.

    Attributes
    ----------
    features
        Group -> features.
    devices
        The GPUs that computed them, each once.
    not_finite
        Which values are not finite, for the first backbone with such values; "" if all are finite.
    """

    features: dict[str, ClipFeatures]
    devices: list[str] = field(default_factory=list)
    not_finite: str = ""


def _add_features(call: _Call, outcomes: Mapping[str, _Outcome]) -> None:
    """Wait for a call of a backbone to end, and add what it gave of each clip to the clip's outcome.

    These are the features, by groups of the store; the GPU that computed them; and, if they have NaN or
    infinity, a note that says so.

    Parameters
    ----------
    call
        The call, which was started for some clips together.
    outcomes
        Clip id -> its outcome, which is changed.
    """
    encoded = _wait_for(call)
    arrays_of_group = call.backbone.by_group(encoded.arrays)  # layers, for example, are groups of their own
    # `frame_times` has the clips of the call, with the times of their frames. Clip k is row k of the arrays.
    for row, (clip_id, times) in enumerate(call.frame_times.items()):
        outcome = outcomes[clip_id]
        for group, arrays in arrays_of_group.items():
            clip_arrays = _arrays_of_clip(arrays, row)
            outcome.features[group] = ClipFeatures(times.time_s, times.frame_index, clip_arrays)

        if encoded.devices:  # the GPU that computed each row; empty without one
            device = encoded.devices[row]
            if device not in outcome.devices:
                outcome.devices.append(device)

        has_earlier_note = outcome.not_finite != ""
        if not encoded.finite[row] and not has_earlier_note:
            outcome.not_finite = not_finite(call.backbone.name, _arrays_of_clip(encoded.arrays, row))


def _result(clip: DecodedClip, outcome: _Outcome) -> ClipResult:
    """Return the result of a clip that did not fail: its features, and the status of its decoding.

    Its source, the record of its video file, gets the names of the GPUs that computed the features.
    """
    source = dict(clip.source)
    if outcome.devices:
        source["device"] = ", ".join(outcome.devices)
    return ClipResult(
        clip_id=clip.clip_id,
        status=clip.status,
        reason=clip.reason,
        source=source,
        groups=outcome.features,
        absent=clip.absent,
        without_pictures_s=clip.without_pictures_s,
    )


def _arrays_of_clip(
    arrays: Mapping[str, Sequence[NDArray[Any]] | NDArray[Any]], row: int
) -> dict[str, NDArray[Any]]:
    """Return the values of one clip from arrays of a batch, which have a row for each clip."""
    return {name: values[row] for name, values in arrays.items()}


def _absent_groups(backbones: Sequence[Backbone], clip: DecodedClip) -> dict[str, str]:
    """Return group of features -> why a clip has none, such as `no sound track`; empty if it has all groups.

    A backbone may give several groups, which are then absent for the same reason.
    """
    reasons = {}
    for backbone in backbones:
        if backbone.name in clip.absent:
            for group in backbone.group_names():
                reasons[group] = clip.absent[backbone.name]
    return reasons


def _start(backbone: Backbone, images: Sequence[NDArray[Any]]) -> Any:
    """Give a backbone the frames of some clips to encode.

    If its `encode` has a method `start`, encoding goes on after this function returns an object, whose method
    `result` waits for the arrays. A plain function encodes the frames now, and its arrays are returned.

    Parameters
    ----------
    backbone
        The backbone.
    images
        Frames of each clip, [F, h, w, c]; or its prepared sound.
    """
    start = getattr(backbone.encode, "start", None)
    if start is None:
        return backbone.encode(np.stack(images))
    return start(images)


class _Encoded(NamedTuple):
    """What a backbone gave of B clips.

    Attributes
    ----------
    arrays
        Name -> array of each clip.
    finite
        Whether all values of a clip are finite, [B].
    devices
        The GPU that each clip was computed on, and how many clips at once if fewer than usual; empty on CPU.
    """

    arrays: Mapping[str, Sequence[NDArray[Any]] | NDArray[Any]]
    finite: NDArray[np.bool_]
    devices: Sequence[str]


def _wait_for(call: _Call) -> _Encoded:
    """Wait until a call of a backbone has ended; return its arrays, and the GPU that computed each clip."""
    if isinstance(call.returned, dict):  # the arrays, of a plain function
        is_finite_in_arrays = [_finite_rows(values) for values in call.returned.values()]
        return _Encoded(call.returned, np.all(is_finite_in_arrays, axis=0), devices=())
    encoded = call.returned.result()
    devices: list[str] = []
    clips_at_once = encoded.at_once  # for each clip, how many were computed together with it; or None
    if clips_at_once is not None and uses_gpu(call.backbone):
        devices = _devices(call.backbone, clips_at_once.tolist())
    return _Encoded(encoded.arrays, encoded.finite, devices)


def _devices(backbone: Backbone, clips_at_once: Sequence[int]) -> list[str]:
    """Return the GPU that each clip was computed on, as the store records it.

    If a GPU had no memory for the usual number of clips at once, the number that it took is added, as in
    "NVIDIA H200 (clip: 4 at once)".

    Parameters
    ----------
    clips_at_once
        For each clip, how many clips were computed in its call.
    """
    encode = cast("Any", backbone.encode)
    usual_n_clips = encode.compute.initial_batch_size()
    devices = []
    for n_clips in clips_at_once:
        device = encode.card
        if n_clips != usual_n_clips:
            device = f"{device} ({backbone.name}: {n_clips} at once)"
        devices.append(device)
    return devices


def _finite_rows(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return for each row of an array [B, ...] whether all its values are finite, [B]."""
    finite: NDArray[np.bool_] = np.isfinite(values).reshape(len(values), -1).all(axis=1)
    return finite
