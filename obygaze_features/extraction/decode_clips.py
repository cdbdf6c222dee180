"""Decode each clip once for all backbones, in the decode workers."""

import json
import math
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from obygaze_features.backbones import Hearing
from obygaze_features.backbones.backbone import arrays_by_group
from obygaze_features.errors import ObygazeError, VideoError, first_line
from obygaze_features.store import ClipFeatures
from obygaze_features.video import (
    Frames,
    Known,
    Rest,
    Sampling,
    SoundTrack,
    file_digest,
    probe,
    read_stretch,
    read_windows,
    sampled_times,
)
from obygaze_features.video.sampling import is_large_hole

Pixels = NDArray[np.uint8]
Prepare = Callable[[NDArray[Any]], NDArray[Any]]
Encode = Callable[[NDArray[Any]], dict[str, NDArray[Any]]]
NO_VIDEO = "the manifest names no video for this clip"
UNREAD = {
    "sound": "the file has sound, which no backbone here hears",
    "subtitles": "the file has subtitles, which give no features",
}
"""What a file holds beside pictures -> what is said where nothing reads it."""
PASS_CLIPS = 16
"""Most clips that a worker decodes in one pass; limits the frames that it keeps in memory."""


class Request(NamedTuple):
    """What a backbone needs of a clip.

    Parameters
    ----------
    sampling
        Which frames to read; of a backbone that hears, between whose midpoints the sound is cut.
    prepare
        Transform applied to each frame; or to the parts of a clip's sound, `[F, L]` or `[F, L, D]`.
    encode
        The backbone's `encode`, if it runs in the decode worker; else None.
    """

    sampling: Sampling
    prepare: Prepare
    encode: Encode | None = None


@dataclass(frozen=True, slots=True)
class Keep:
    """Where frames are kept between runs, of which `keep_frames` makes those that backbones see.

    Parameters
    ----------
    decoder
        The decoder's record.
    """

    folder: Path
    decoder: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class DecodeTask:
    """Input of a decode worker for one clip.

    Parameters
    ----------
    path
        The video file, or None if the manifest names none.
    start_s, end_s
        The span in seconds, or None for the whole file.
    requests
        Backbone name -> what it needs, of those that take pictures.
    strict
        Refuse damaged files that can be read in part.
    hash_source
        Also compute the SHA-256 of the file.
    sounds
        Backbone name -> the samples and what else it needs, of those that hear.
    keep
        Keep frames, and read those that are kept.
    """

    clip_id: str
    path: Path | None
    start_s: float | None
    end_s: float | None
    requests: Mapping[str, Request]
    strict: bool = False
    hash_source: bool = False
    sounds: Mapping[str, tuple[Hearing, Request]] = field(default_factory=dict)
    keep: Keep | None = None

    def wishes(self) -> dict[Hashable, tuple[Sampling, Prepare]]:
        """Return the distinct pairs of sampling and `prepare`, each shared by all backbones that need it."""
        return {wish_of(request): request[:2] for request in self.requests.values()}


def wish_of(request: Request) -> Hashable:
    """Return the key of the frames of a request: equal for backbones that need the same frames."""
    try:
        hash(request.prepare)
    except TypeError:
        return request.sampling, id(request.prepare)
    return request.sampling, request.prepare


@dataclass(frozen=True, slots=True)
class Prepared:
    """Sampled and prepared frames of one clip, for one or more backbones that need the same frames.

    Parameters
    ----------
    images
        uint8 `[F, h, w, c]`; or what a backbone's `prepare` makes of sound.
    frame_index, time_s
        `[F]`.
    """

    images: NDArray[Any]
    frame_index: NDArray[np.int64]
    time_s: NDArray[np.float64]


def _hear(
    track: SoundTrack, hearing: Hearing, request: Request, span: tuple[float | None, float | None]
) -> tuple[Prepared, str]:
    """Read the sound of a span, cut half-way between its sampled frames, and say what is missing of it.

    Raises
    ------
    VideoError
        There is no sound track, or nothing of it in the span; or the file can't be read.
    """
    index, time_s, end_s = sampled_times(track.path, request.sampling, *span)
    start_s = span[0] or 0.0
    edges_s = [(before + after) / 2 for before, after in pairwise(time_s.tolist())]
    parts, missing_s = track.parts(
        start_s,
        end_s,
        edges_s,
        rate=hearing.rate,
        measure=hearing.measure,
        steps_a_second=hearing.steps_a_second,
    )
    note = ""
    if is_large_hole(missing_s, end_s - start_s):
        note = f"no sound for {missing_s:.2f} of {end_s - start_s:.2f} s"
    return Prepared(request.prepare(parts), index, time_s), note


@dataclass(frozen=True, slots=True)
class DecodedClip:
    """Result of a decode worker: prepared frames per backbone, or the reason for a failure.

    Parameters
    ----------
    frames
        Backbone name -> its frames; backbones that need the same frames share one object. Empty if the status
        is `failed`.
    encoded
        Group -> its features, for backbones that run in the decode worker.
    source
        Size in bytes and other properties of the file.
    cpu_s
        Processor seconds that the worker spent.
    n_decoded
        Frames that the decoder decoded for this clip; if clips were decoded together, those decoded since
        the previous clip.
    remarks
        Notes for the user about a clip that is not at fault.
    besides
        What the file holds beside pictures, of `UNREAD`.
    absent
        Backbone name -> why it has nothing of the clip, such as `no sound track`, while others have.
    """

    clip_id: str
    status: Literal["ok", "partial", "failed"]
    reason: str = ""
    frames: Mapping[str, Prepared] = field(default_factory=dict)
    encoded: Mapping[str, ClipFeatures] = field(default_factory=dict)
    source: Mapping[str, object] = field(default_factory=dict)
    cpu_s: float = 0.0
    n_decoded: int = 0
    remarks: tuple[str, ...] = ()
    besides: tuple[str, ...] = ()
    absent: Mapping[str, str] = field(default_factory=dict)


def passes(tasks: Sequence[DecodeTask], workers: int) -> list[list[DecodeTask]]:
    """Group tasks that are decoded in one pass: adjacent tasks that are spans of the same file.

    A pass has up to `PASS_CLIPS` clips, and fewer if workers would otherwise have none.
    """
    cut = []
    for run in ([*run] for _, run in groupby(tasks, _shared)):
        size = min(PASS_CLIPS, -(-len(run) // workers))
        cut += [run[first : first + size] for first in range(0, len(run), size)]
    return cut


def _shared(task: DecodeTask) -> object:
    """Return what tasks of one pass share; spans of one file do."""
    alone = task.path is None or task.start_s is None
    return object() if alone else (task.path, id(task.requests))


def decode_clips(
    tasks: Sequence[DecodeTask], decode: Callable[[Sequence[DecodeTask]], Iterator[tuple[int, DecodedClip]]]
) -> Iterator[tuple[int, DecodedClip]]:
    """Decode clips with a decoder, and encode them for the backbones that run in the decode worker.

    Yields
    ------
    int
        Position of the clip in `tasks`.
    DecodedClip
        Its result.
    """
    started = time.process_time()
    tracks, left = lru_cache(2)(SoundTrack), set(range(len(tasks)))  # clips of a file share its sound
    try:
        sound_alone = tasks and not tasks[0].requests
        for number, clip in decode_with_av(tasks) if sound_alone else decode(tasks):
            try:
                encoded = _encoded(tasks[number], _with_sound(tasks[number], clip, tracks))
            except Exception as error:  # noqa: BLE001 - whatever it is, it is this clip's
                encoded = DecodedClip(clip.clip_id, "failed", _reason(error), source=clip.source)
            before, started = started, time.process_time()
            left.discard(number)
            heard = {"sound"} if tasks[number].sounds else set()
            unread = tuple(UNREAD[name] for name in encoded.besides if name not in heard)
            yield number, replace(encoded, cpu_s=started - before, remarks=encoded.remarks + unread)
    except Exception as error:  # noqa: BLE001 - the decoder's: of one of these clips, which are decoded alone
        for number in sorted(left):
            if len(tasks) == 1:
                spent_s = time.process_time() - started
                yield number, DecodedClip(tasks[number].clip_id, "failed", _reason(error), cpu_s=spent_s)
            else:
                yield from ((number, clip) for _, clip in decode_clips([tasks[number]], decode))


def _with_sound(
    task: DecodeTask, clip: DecodedClip, tracks: Callable[[Path, str], SoundTrack]
) -> DecodedClip:
    """Add what backbones hear; a clip of which none of the backbones has anything has failed."""
    if clip.status == "failed" or not task.sounds or task.path is None:
        return clip
    heard: dict[str, Prepared] = {}
    missing: dict[str, None] = {}
    absent: dict[str, str] = {}
    for name, needed in task.sounds.items():
        try:
            track = tracks(task.path, needed[0].track)
            heard[name], note = _hear(track, *needed, (task.start_s, task.end_s))
            missing[note] = None
        except Exception as error:  # noqa: BLE001 - others may have what they need of the clip
            absent[name] = _reason(error)
    notes = list(filter(None, missing))
    if not (clip.frames or heard) or (task.strict and notes):
        reasons = dict.fromkeys(notes or absent.values())
        return DecodedClip(clip.clip_id, "failed", "; ".join(reasons), source=clip.source)
    return replace(
        clip,
        status="partial" if notes else clip.status,
        reason="; ".join(filter(None, (clip.reason, *notes))),
        frames={**clip.frames, **heard},
        absent=absent,
    )


def _encoded(task: DecodeTask, clip: DecodedClip) -> DecodedClip:
    """Replace the frames of backbones that run in the decode worker by their features."""
    frames, encoded = dict(clip.frames), {}
    encoders = {name: request.encode for name, request in task.requests.items()}
    encoders |= {name: request.encode for name, (_, request) in task.sounds.items()}
    for name, encode in encoders.items():
        if encode is not None and name in frames:
            taken = frames.pop(name)
            arrays = {array: values[0] for array, values in encode(taken.images[None]).items()}
            if reason := not_finite(name, arrays):
                return DecodedClip(clip.clip_id, "failed", reason, source=clip.source)
            for group, own in arrays_by_group(name, arrays).items():
                encoded[group] = ClipFeatures(taken.time_s, taken.frame_index, own)
    return replace(clip, frames=frames, encoded=encoded) if encoded else clip


def not_finite(name: str, arrays: Mapping[str, NDArray[Any]]) -> str:
    """Say which of the arrays that a backbone gave of a clip is not finite; empty if none."""
    wrong = [array for array, values in arrays.items() if not np.isfinite(values).all()]
    return f"{name} gave values that are not finite in '{wrong[0]}'" if wrong else ""


def decode_stretch(
    tasks: Sequence[DecodeTask],
    *,
    path: Path,
    stretch: tuple[float, float],
    others: Sequence[DecodeTask],
    rests: list[Rest[Pixels]],
) -> Iterator[tuple[int, DecodedClip]]:
    """Decode a stretch of a film whole with PyAV, and measure its frames for the detection of shots.

    Parameters
    ----------
    tasks
        Windows of the film; those that leave the stretch, or cannot be read, are not yielded.
    path
        The film.
    stretch
        Start and end in seconds.
    others
        Windows that are yielded elsewhere and may need frames of the stretch.
    rests
        Receives what the stretch gives beside the windows, unless it cannot be decoded without errors.
    """
    first = next(iter((*tasks, *others)), None)
    wishes = list(first.wishes().values()) if first else []
    windows, near = ([(task.start_s, task.end_s) for task in some] for some in (tasks, others))
    strict = first is not None and first.strict
    with suppress(Exception):  # the windows are read again, and tell why they cannot be
        source = _source(path, hashed=first is not None and first.hash_source)
        for given in read_stretch(path, stretch, windows, near, wishes, strict=strict):
            if isinstance(given, Rest):
                rests.append(given)
            else:
                yield given[0], _clip(tasks[given[0]], path, given[1], source)


def decode_with_av(
    tasks: Sequence[DecodeTask], known: Mapping[int, Known[Pixels]] | None = None
) -> Iterator[tuple[int, DecodedClip]]:
    """Decode clips of one file in one pass with PyAV; the result is the same as for each clip alone.

    This is the built-in decoder. Decoders of the entry-point group `obygaze.decoders` take the same arguments
    and yield the same results.

    Parameters
    ----------
    tasks
        Spans of one file, with the same requests; or a single task.
    known
        Frames of the file that `decode_stretch` decoded for the same requests. Custom decoders get none.

    Yields
    ------
    int
        Position of a clip in `tasks`; each position once, in any order.
    DecodedClip
        Its prepared frames for every request, or the reason for the failure.

    Raises
    ------
    VideoError, OSError
        The file cannot be read at all.
    """
    first, path, source = tasks[0], tasks[0].path, dict[str, Any]()
    if path is None:
        raise VideoError(NO_VIDEO)
    spans, wishes = [(task.start_s, task.end_s) for task in tasks], list(first.wishes().values())
    read = read_windows(path, spans, wishes, strict=first.strict, known=known)
    for number, result in read if wishes else ((number, ()) for number in range(len(tasks))):
        # After the first frames: a small file that is read first is opened once.
        source = source or _source(path, hashed=first.hash_source)
        yield number, _clip(tasks[number], path, result, source)


def _reason(error: Exception) -> str:
    if isinstance(error, ObygazeError):
        return str(getattr(error, "reason", error))
    if isinstance(error, OSError):
        return f"the file cannot be read: {error.strerror or error}"
    return f"the decoder failed: {type(error).__name__}: {first_line(error, 200)}"


def _clip(
    task: DecodeTask, path: Path, read: tuple[Frames[Pixels], ...] | VideoError, source: dict[str, Any]
) -> DecodedClip:
    if isinstance(read, VideoError):
        return DecodedClip(task.clip_id, "failed", read.reason)
    if not all(np.isfinite(frames.time_s).all() for frames in read):
        reason = (
            "the file does not say when its frames are shown; put it into a container that does, such as MKV"
        )
        return DecodedClip(task.clip_id, "failed", reason, source=source)
    notes = tuple(dict.fromkeys(note for frames in read for note in frames.notes))
    images = [Prepared(np.stack(frames.images), frames.index, frames.time_s) for frames in read]
    prepared = dict(zip(task.wishes(), images, strict=True))
    status = read[0].status if read else "ok"
    return DecodedClip(
        task.clip_id,
        status,
        "; ".join(notes) if status != "ok" else "",
        {name: prepared[wish_of(request)] for name, request in task.requests.items()},
        source=source,
        n_decoded=read[0].decoded if read else 0,
        remarks=notes if status == "ok" else (),
        besides=probe(path).besides,
    )


def _source(path: Path, *, hashed: bool) -> dict[str, Any]:
    video = probe(path)  # this worker has indexed the file already
    source: dict[str, Any] = {"bytes": video.bytes}
    if math.isfinite(video.duration_s):
        source["duration_s"] = video.duration_s
    if video.stream is not None:
        source["stream"] = json.dumps(video.stream.record(), sort_keys=True)
    if hashed:
        source["sha256"] = file_digest(path)
    return source
