"""Decode each clip once for all backbones, in the decode workers."""

import json
import math
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
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
ReadWindows = Callable[..., Iterator[tuple[int, tuple[Frames[Pixels], ...] | VideoError]]]
"""Reads windows of a file as `obygaze_features.video.read_windows` does."""

NO_VIDEO = "the manifest names no video for this clip"
"""Reason why a clip has failed."""
NO_TIMES = "the file does not say when its frames are shown; put it into a container that does, such as MKV"
"""Reason why a clip has failed."""
UNREAD_REMARKS = {
    "sound": "the file has sound, which no backbone here hears",
    "subtitles": "the file has subtitles, which give no features",
}
"""What a file holds besides pictures -> the remark where no backbone reads it."""
PASS_CLIPS = 16
"""Most clips that a worker decodes in one pass; limits the frames that it keeps in memory."""


class Request(NamedTuple):
    """What a backbone needs of a clip.

    Parameters
    ----------
    sampling
        Which frames to read. For a backbone that hears, the sound is cut half-way between these frames.
    prepare
        Transform applied to each frame; or to the parts of a clip's sound, `[F, L]` or `[F, L, D]`.
    encode
        The backbone's `encode`, if it runs in the decode worker; else None.
    """

    sampling: Sampling
    prepare: Prepare
    encode: Encode | None = None


@dataclass(frozen=True, slots=True)
class FrameCache:
    """A folder in which sampled frames are kept from run to run (`keep_frames`).

    Parameters
    ----------
    folder
        The folder.
    decoder
        The decoder's record: frames of other decoders or versions are not used.
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
        Name of each backbone that takes pictures -> what it needs.
    strict
        Refuse damaged files that can be read in part.
    hash_source
        Also compute the SHA-256 of the file.
    sounds
        Name of each backbone that hears -> the samples that it takes, and what else it needs.
    frame_cache
        Where to keep frames, and to read those that are kept; None keeps none.
    """

    clip_id: str
    path: Path | None
    start_s: float | None
    end_s: float | None
    requests: Mapping[str, Request]
    strict: bool = False
    hash_source: bool = False
    sounds: Mapping[str, tuple[Hearing, Request]] = field(default_factory=dict)
    frame_cache: FrameCache | None = None

    def frame_requests(self) -> dict[Hashable, tuple[Sampling, Prepare]]:
        """Return which frames to read, and how to prepare them, for all backbones that take pictures.

        Backbones that need the same frames, prepared in the same way, have one entry, so that these frames
        are read and prepared once: `request_key` of their requests -> (sampling, function that prepares).
        """
        distinct_requests = {}
        for request in self.requests.values():
            distinct_requests[request_key(request)] = (request.sampling, request.prepare)
        return distinct_requests


def request_key(request: Request) -> Hashable:
    """Return a key that is equal for requests that need the same frames, prepared in the same way."""
    try:
        hash(request.prepare)
    except TypeError:  # without a hash, only the same object counts as equal
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


class _ClipSound(NamedTuple):
    """The prepared sound of a clip, and a note on a large hole in it; empty if there is none."""

    prepared: Prepared
    hole_note: str


def _read_sound(
    track: SoundTrack, hearing: Hearing, request: Request, span: tuple[float | None, float | None]
) -> _ClipSound:
    """Read the sound of a span, cut half-way between its sampled frames, and prepare it for a backbone.

    Parameters
    ----------
    track
        Sound track of the file.
    hearing
        How the backbone takes samples: their rate, and what it computes from them, if anything.
    request
        Between which frames the sound is cut, and how the parts are prepared.
    span
        Start and end in seconds; None is that of the file.

    Raises
    ------
    VideoError
        There is no sound track, or nothing of it in the span; or the file can't be read.
    """
    frame_index, time_s, end_s = sampled_times(track.path, request.sampling, *span)
    start_s = span[0] or 0.0
    # One part of sound for each sampled frame: it is cut in the middle between two frames.
    cuts_s = [(frame_s + next_frame_s) / 2 for frame_s, next_frame_s in pairwise(time_s.tolist())]
    parts, missing_s = track.parts(
        start_s,
        end_s,
        cuts_s,
        rate=hearing.rate,
        measure=hearing.measure,
        steps_a_second=hearing.steps_a_second,
    )
    hole_note = ""
    if is_large_hole(missing_s, end_s - start_s):
        hole_note = f"no sound for {missing_s:.2f} of {end_s - start_s:.2f} s"
    return _ClipSound(Prepared(request.prepare(parts), frame_index, time_s), hole_note)


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
        What the file holds besides pictures: keys of `UNREAD_REMARKS`.
    absent
        Name of each backbone that has nothing of the clip while others have -> why, such as `no sound track`.
    without_pictures_s
        The stretches of a partial clip in which its file has no pictures: start and end in seconds.
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
    without_pictures_s: tuple[tuple[float, float], ...] = ()


def group_into_passes(tasks: Sequence[DecodeTask], workers: int) -> list[list[DecodeTask]]:
    """Group clips that are decoded together: adjacent tasks that are spans of the same file.

    Such a group is called a pass, because a worker goes through the file once for all of its clips. A pass
    has up to `PASS_CLIPS` clips, and fewer if some workers would otherwise have none.

    Parameters
    ----------
    tasks
        The clips, those of a file next to each other.
    workers
        Number of processes that decode passes at the same time.
    """
    all_passes: list[list[DecodeTask]] = []
    for _, tasks_of_file in groupby(tasks, _pass_key):
        spans = list(tasks_of_file)
        clips_per_pass = min(PASS_CLIPS, math.ceil(len(spans) / workers))
        first_positions = range(0, len(spans), clips_per_pass)
        all_passes.extend(spans[first : first + clips_per_pass] for first in first_positions)
    return all_passes


def _pass_key(task: DecodeTask) -> object:
    """Return a key that is equal for tasks that may be decoded together: spans of a file, same backbones."""
    is_span_of_file = task.path is not None and task.start_s is not None
    if is_span_of_file:
        return task.path, id(task.requests)  # the tasks of a job share one mapping of requests
    return object()  # a new object equals no other key, so that the task has a pass of its own


def take_pictures(tasks: Sequence[DecodeTask]) -> bool:
    """Return whether pictures must be decoded for these tasks; False if all backbones take only sound.

    The tasks are those of one pass over a file, which all have the same backbones.
    """
    if not tasks:  # a pass without clips finds the shots of a part of a film, in its pictures
        return True
    return len(tasks[0].requests) > 0


def decode_clips(
    tasks: Sequence[DecodeTask],
    decode: Callable[[Sequence[DecodeTask]], Iterator[tuple[int, DecodedClip]]],
    clock: Callable[[], float] = time.process_time,
) -> Iterator[tuple[int, DecodedClip]]:
    """Decode clips with a decoder, and encode them for the backbones that run in the decode worker.

    If the decoder raises an error, each clip that it has not yielded yet is decoded alone: a clip fails only
    if the decoder raises an error for this clip.

    Parameters
    ----------
    tasks
        Spans of one file, or a single task.
    decode
        The decoder: yields the position in `tasks` and the result of each clip, in any order.
    clock
        Returns the processor seconds spent so far by this process, or by this thread if others decode too.

    Yields
    ------
    int
        Position of the clip in `tasks`.
    DecodedClip
        Its result.
    """
    # The clips share open tracks: two, as backbones may take two languages.
    open_track: Callable[[Path, str], SoundTrack] = lru_cache(maxsize=2)(SoundTrack)
    decode_pictures = decode
    if not take_pictures(tasks):
        # No backbone takes pictures. The built-in decoder then decodes none, but other decoders would.
        decode_pictures = decode_with_av

    missing_positions = set(range(len(tasks)))  # of the clips that the decoder has not yielded
    watch = _Stopwatch(clock)  # `lap` returns the processor seconds since its last call
    try:
        for position, pictures in decode_pictures(tasks):
            clip = _with_sound_and_features(tasks[position], pictures, open_track)
            missing_positions.discard(position)
            yield position, replace(clip, cpu_s=watch.lap())
    except Exception as error:  # noqa: BLE001 - a custom decoder may raise anything
        is_about_only_clip = len(tasks) == 1 and bool(missing_positions)
        if is_about_only_clip:
            yield 0, DecodedClip(tasks[0].clip_id, "failed", _reason(error), cpu_s=watch.lap())
            return

        # Which clip the error is about is not known, so each is decoded alone.
        for position in sorted(missing_positions):
            for _, clip in decode_clips([tasks[position]], decode, clock):
                yield position, clip


class _Stopwatch:
    """Measure processor seconds from one clip to the next.

    Parameters
    ----------
    clock
        Returns the processor seconds so far.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        """Start the first lap."""
        self._clock = clock
        self._started_s = clock()

    def lap(self) -> float:
        """Return the seconds since the last lap ended, and start the next lap."""
        now_s = self._clock()
        spent_s = now_s - self._started_s
        self._started_s = now_s
        return spent_s


def _with_sound_and_features(
    task: DecodeTask, pictures: DecodedClip, open_track: Callable[[Path, str], SoundTrack]
) -> DecodedClip:
    """Complete a clip whose pictures are decoded: add its sound, features, and remarks on unread streams.

    Parameters
    ----------
    task
        What is wanted of the clip.
    pictures
        The clip as the decoder gave it, with its pictures.
    open_track
        Opens a sound track of a file, by the file's path and the track's name.
    """
    try:
        clip = _with_features(task, _with_sound(task, pictures, open_track))
    except Exception as error:  # noqa: BLE001 - any error fails this clip, and not the other clips of the file
        return DecodedClip(pictures.clip_id, "failed", _reason(error), source=pictures.source)
    reads_sound = len(task.sounds) > 0
    remarks = list(clip.remarks)
    for stream in clip.besides:  # what the file has besides pictures, such as "sound"
        was_read = stream == "sound" and reads_sound
        if not was_read:
            remarks.append(UNREAD_REMARKS[stream])
    return replace(clip, remarks=tuple(remarks))


def _with_sound(
    task: DecodeTask, clip: DecodedClip, open_track: Callable[[Path, str], SoundTrack]
) -> DecodedClip:
    """Add the sound for the backbones that hear; a backbone whose sound cannot be read is noted as `absent`.

    The clip fails if neither pictures nor sound could be read. It is partial if the sound has a large hole;
    with `strict` it then fails.

    Parameters
    ----------
    task
        What is wanted of the clip; `task.sounds` names the backbones that hear.
    clip
        The clip with its pictures.
    open_track
        Opens a sound track of a file, by the file's path and the track's name.
    """
    is_sound_wanted = len(task.sounds) > 0
    if clip.status == "failed" or not is_sound_wanted or task.path is None:
        return clip

    # Read the sound for each backbone.
    heard: dict[str, Prepared] = {}  # backbone -> its sound
    absent: dict[str, str] = {}  # backbone -> why it has none
    hole_notes: list[str] = []  # on large holes in the sound, each once
    for name, (hearing, request) in task.sounds.items():
        try:
            track = open_track(task.path, hearing.track)
            sound = _read_sound(track, hearing, request, (task.start_s, task.end_s))
        except Exception as error:  # noqa: BLE001 - others may have what they need of the clip
            absent[name] = _reason(error)
            continue
        heard[name] = sound.prepared
        if sound.hole_note and sound.hole_note not in hole_notes:
            hole_notes.append(sound.hole_note)

    # Does the clip fail?
    if task.strict and hole_notes:
        return DecodedClip(clip.clip_id, "failed", "; ".join(hole_notes), source=clip.source)
    nothing_was_read = not clip.frames and not heard
    if nothing_was_read:
        distinct_reasons = dict.fromkeys(absent.values())
        return DecodedClip(clip.clip_id, "failed", "; ".join(distinct_reasons), source=clip.source)

    # No: the sound is added to the pictures. Prepared sound counts as frames of its backbone.
    reasons_of_damage = [reason for reason in (clip.reason, *hole_notes) if reason]
    return replace(
        clip,
        status="partial" if hole_notes else clip.status,
        reason="; ".join(reasons_of_damage),
        frames={**clip.frames, **heard},
        absent=absent,
    )


def _with_features(task: DecodeTask, clip: DecodedClip) -> DecodedClip:
    """Run the backbones that encode in the decode worker; return the clip with features instead of frames.

    The clip fails if a feature is not finite. Frames for other backbones stay: the main process encodes them.

    Parameters
    ----------
    task
        What each backbone needs of the clip, and its `encode` if it runs here.
    clip
        The clip, with prepared frames or sound for each backbone.
    """
    requests = dict(task.requests)  # of the backbones that take pictures, and of those that hear
    for backbone_name, (_, sound_request) in task.sounds.items():
        requests[backbone_name] = sound_request

    remaining_frames = dict(clip.frames)  # backbone -> frames that are not encoded here
    features: dict[str, ClipFeatures] = {}  # group of features -> those of the clip
    for backbone_name, request in requests.items():
        encode = request.encode
        if encode is None:  # the main process encodes for this backbone
            continue
        if backbone_name not in remaining_frames:  # the clip has nothing for this backbone, such as no sound
            continue
        prepared = remaining_frames.pop(backbone_name)
        arrays_of_batch = encode(prepared.images[np.newaxis])  # a batch of this clip alone
        arrays = {array: values[0] for array, values in arrays_of_batch.items()}
        reason = not_finite(backbone_name, arrays)
        if reason:
            return DecodedClip(clip.clip_id, "failed", reason, source=clip.source)
        for group, group_arrays in arrays_by_group(backbone_name, arrays).items():
            features[group] = ClipFeatures(prepared.time_s, prepared.frame_index, group_arrays)

    if not features:
        return clip
    return replace(clip, frames=remaining_frames, encoded=features)


def not_finite(name: str, arrays: Mapping[str, NDArray[Any]]) -> str:
    """Return a message that names the first array with NaN or infinite values; "" if all are finite.

    Parameters
    ----------
    name
        Name of the backbone, for the message.
    arrays
        Name -> features of one clip, as the backbone computed them.
    """
    for array, values in arrays.items():
        if not np.isfinite(values).all():
            return f"{name} gave values that are not finite in '{array}'"
    return ""


def decode_stretch(
    tasks: Sequence[DecodeTask],
    *,
    path: Path,
    stretch: tuple[float, float],
    others: Sequence[DecodeTask],
    stretch_results: list[Rest[Pixels]],
) -> Iterator[tuple[int, DecodedClip]]:
    """Decode all frames of a part of a film, once for two purposes: its windows, and its shots.

    The part is called a stretch. Windows are time spans of which features are wanted; for the shots every
    frame is measured.

    Nothing is raised. At an error, decoding ends: the windows that were not yielded are decoded again by the
    caller, by themselves, and fail there with a reason if they must. `stretch_results` then stays empty.

    Parameters
    ----------
    tasks
        Windows of the film. Windows that are not entirely in the stretch, or cannot be read, are not yielded.
    path
        The film.
    stretch
        Start and end in seconds.
    others
        Windows that other passes decode, and that may need frames of the stretch.
    stretch_results
        If all of the stretch is decoded without errors, its measurements and its frames for `others` are
        appended to this list. They are known only after the last window, and a generator cannot return them
        to a loop.

    Yields
    ------
    int
        Position of the window in `tasks`.
    DecodedClip
        Its result.
    """
    frame_requests: list[tuple[Sampling, Prepare]] = []
    strict = False
    hash_source = False
    all_tasks = [*tasks, *others]
    if all_tasks:  # they have the same settings, as they are of one film
        frame_requests = list(all_tasks[0].frame_requests().values())
        strict = all_tasks[0].strict
        hash_source = all_tasks[0].hash_source

    windows = [(task.start_s, task.end_s) for task in tasks]
    other_windows = [(task.start_s, task.end_s) for task in others]
    with suppress(Exception):  # see the docstring: the caller decodes the remaining windows again
        source = _source(path, hash_source=hash_source)
        for item in read_stretch(path, stretch, windows, other_windows, frame_requests, strict=strict):
            if isinstance(item, Rest):  # the last item: what the stretch gave in addition to its windows
                stretch_results.append(item)
            else:
                position, frames = item
                yield position, _clip(tasks[position], path, frames, source)


def decode_with_av(
    tasks: Sequence[DecodeTask],
    known: Mapping[int, Known[Pixels]] | None = None,
    read: ReadWindows = read_windows,
) -> Iterator[tuple[int, DecodedClip]]:
    """Decode clips of one file in one pass with PyAV; the result is the same as for each clip alone.

    This is the built-in decoder. Decoders of the entry-point group `obygaze.decoders` take the same arguments
    and yield the same results.

    Parameters
    ----------
    tasks
        Spans of one file, with the same requests; or a single task.
    known
        Frame number -> what `decode_stretch` gave of this frame, for the same requests: such frames are not
        decoded again. Custom decoders get none.
    read
        Reads the windows on a core; the GPU decoder gives a function that reads them on the GPU. Custom
        decoders are not given it.

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
    first_task = tasks[0]  # whose file and settings are those of all
    path = first_task.path
    if path is None:
        raise VideoError(NO_VIDEO)

    # Decode the frames; or, if no backbone takes pictures, none.
    windows = [(task.start_s, task.end_s) for task in tasks]
    frame_requests = list(first_task.frame_requests().values())
    results: Iterable[tuple[int, tuple[Frames[Pixels], ...] | VideoError]]
    if frame_requests:
        results = read(path, windows, frame_requests, strict=first_task.strict, known=known)
    else:
        results = [(position, ()) for position in range(len(tasks))]

    source: dict[str, Any] | None = None  # properties of the file, which the store records
    for position, frames in results:
        # The properties are read after the first frames: reading frames indexes the file, and the index is
        # then in the cache.
        if source is None:
            source = _source(path, hash_source=first_task.hash_source)
        yield position, _clip(tasks[position], path, frames, source)


def _reason(error: Exception) -> str:
    """Return in one line why a clip failed, without the name of the file, which the store records anyway."""
    if isinstance(error, ObygazeError):
        return str(getattr(error, "reason", error))  # `reason` is the message without the file's name
    if isinstance(error, OSError):
        return f"the file cannot be read: {error.strerror or error}"
    return f"the decoder failed: {type(error).__name__}: {first_line(error, longest=200)}"


def _clip(
    task: DecodeTask,
    path: Path,
    frames: tuple[Frames[Pixels], ...] | VideoError,
    source: dict[str, Any],
) -> DecodedClip:
    """Return the result of a clip (ok, partial or failed, with notes) from the frames that were read for it.

    Parameters
    ----------
    task, path
        The clip's task, and its file.
    frames
        Frames of each request, in the order of `task.frame_requests()`; or why the clip cannot be read.
    source
        Properties of the file.
    """
    if isinstance(frames, VideoError):
        return DecodedClip(task.clip_id, "failed", frames.reason)
    for frames_of_request in frames:
        if not np.isfinite(frames_of_request.time_s).all():
            return DecodedClip(task.clip_id, "failed", NO_TIMES, source=source)

    clip = DecodedClip(
        task.clip_id,
        "ok",
        frames=_frames_by_backbone(task, frames),
        source=source,
        besides=probe(path).besides,
    )
    if not frames:  # no backbone takes pictures
        return clip

    # All requests of a clip are read in one pass, so they have the same status, gaps and number of decoded
    # frames.
    first_request = frames[0]
    clip = replace(clip, n_decoded=first_request.decoded)
    notes = _distinct_notes(frames)
    if first_request.status == "ok":
        return replace(clip, remarks=notes)

    # Of a clip that was read in part, the notes say why.
    return replace(
        clip,
        status=first_request.status,
        reason="; ".join(notes),
        without_pictures_s=first_request.without_pictures_s,
    )


def _frames_by_backbone(task: DecodeTask, frames: Sequence[Frames[Pixels]]) -> dict[str, Prepared]:
    """Return name of each backbone -> its frames; backbones with the same request share one object.

    Parameters
    ----------
    task
        The clip's task.
    frames
        Frames of each distinct request, in the order of `task.frame_requests()`.
    """
    prepared_of_key: dict[Hashable, Prepared] = {}
    for key, frames_of_request in zip(task.frame_requests(), frames, strict=True):
        prepared_of_key[key] = Prepared(
            np.stack(frames_of_request.images), frames_of_request.index, frames_of_request.time_s
        )
    frames_of_backbone = {}
    for backbone_name, request in task.requests.items():
        frames_of_backbone[backbone_name] = prepared_of_key[request_key(request)]
    return frames_of_backbone


def _distinct_notes(frames: Sequence[Frames[Pixels]]) -> tuple[str, ...]:
    """Return the notes of all requests of a clip in their order, each once."""
    notes: list[str] = []
    for frames_of_request in frames:
        for note in frames_of_request.notes:
            if note not in notes:
                notes.append(note)
    return tuple(notes)


def _source(path: Path, *, hash_source: bool) -> dict[str, Any]:
    """Return the properties of a video file that the store records for a clip.

    They are its size, its duration, its stream of pictures as JSON and, if asked, its SHA-256.
    """
    video = probe(path)  # this worker has indexed the file already
    source: dict[str, Any] = {"bytes": video.bytes}
    if math.isfinite(video.duration_s):
        source["duration_s"] = video.duration_s
    if video.stream is not None:
        source["stream"] = json.dumps(video.stream.record(), sort_keys=True)
    if hash_source:
        source["sha256"] = file_digest(path)
    return source
