"""Define the workers on the nodes of a Ray cluster: decoders, and encoders that hold the networks.

A node at fault returns a `Refusal` in place of results.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from obygaze_features.errors import BackboneError, ExtractError
from obygaze_features.extraction.decode import DecodedClip, DecodeTask
from obygaze_features.extraction.decoders import decoder_record
from obygaze_features.extraction.encode import encode_batch, gpu_busy_s
from obygaze_features.extraction.job import Job
from obygaze_features.extraction.pool import DecodePool
from obygaze_features.extraction.ray_cluster import ray
from obygaze_features.extraction.ray_messages import Encoded
from obygaze_features.store import ClipResult
from obygaze_features.store.missing_videos import LOST, host_name, missing_files
from obygaze_features.store.provenance import clipped, contrasts

ATTEMPTS = 3  # a machine may also kill a worker: a clip fails after three crashes

Encode = Callable[[Sequence[DecodedClip]], list[ClipResult]]


class CrashCounts:
    """Count how often each clip was begun and not finished; one object for all encoders of a run."""

    def __init__(self) -> None:
        self._begun: Counter[str] = Counter()

    def begin(self, clip_ids: Sequence[str]) -> None:
        """Record that an encoder begins these clips."""
        self._begun.update(clip_ids)

    def finish(self, clip_ids: Sequence[str]) -> None:
        """Record that the encoder has finished these clips."""
        for clip_id in clip_ids:
            self._begun.pop(clip_id, None)

    def crashes(self, clip_ids: Sequence[str]) -> list[int]:
        """Count, for each clip, the encoders that crashed while encoding it."""
        return [self._begun[clip_id] for clip_id in clip_ids]


def encode_carefully(
    clips: Sequence[DecodedClip], encode: Encode, ask: Callable[..., Any]
) -> list[ClipResult]:
    """Encode a batch; clip by clip if an encoder crashed on it before, so that only the crashing clip fails.

    Parameters
    ----------
    encode
        Turns decoded clips into results; it may crash the process.
    ask
        Calls a method of the run's `CrashCounts`, by name, and returns its result.
    """
    ids = [clip.clip_id for clip in clips]
    crashes = ask("crashes", ids)
    if not any(crashes):
        return _noted(clips, encode, ask)
    results = []
    for clip, times in zip(clips, crashes, strict=True):
        if times < ATTEMPTS:
            results += _noted([clip], encode, ask)
        else:
            reason = f"the process that held the networks died on this clip {times} times"
            results.append(ClipResult(clip.clip_id, "failed", reason, clip.source))
    return results


def _noted(clips: Sequence[DecodedClip], encode: Encode, ask: Callable[..., Any]) -> list[ClipResult]:
    ids = [clip.clip_id for clip in clips]
    ask("begin", ids)
    results = encode(clips)
    ask("finish", ids)
    return results


@dataclass(frozen=True, slots=True)
class Refusal:
    """Reason why a worker cannot work. A value, because Ray turns an exception into a page of traceback.

    Parameters
    ----------
    path
        The video that the node lacks; None if the node would compute other features.
    """

    reason: str
    path: Path | None = None

    def error(self) -> ExtractError:
        """Return the error; check the main process's machine once more for the video."""
        if self.path is None:
            return ExtractError(self.reason)
        if missing_files([self.path]):
            return ExtractError(
                f"{self.path} was there when the run began and is not any more: {self.reason}"
            )
        return ExtractError(
            f"{self.reason}, and {host_name()}, which leads the run, does: mount it on every node, or leave "
            "that node out. The same command goes on"
        )


class RayDecoder:
    """Decode the clips of one file at a time, in a child process that can be killed.

    The main process sends only videos that it finds, so a node that lacks one is at fault.
    """

    def __init__(self, timeout_s: float, decoder: str, record: Mapping[str, Any]) -> None:
        self.refusal = _refusal(decoder_record(decoder), record, "decoder")
        self.pool = DecodePool(1, timeout_s, decoder)

    def __call__(self, row: dict[str, Any]) -> list[dict[str, Any]]:
        """Turn a row of tasks into one row per clip, with the decoded clip or the reason for the failure."""
        tasks: list[DecodeTask] = row["tasks"]
        if self.refusal:
            return [{"clip": self.refusal}]
        clips: list[DecodedClip | Refusal] = []
        for clip in self.pool.decode(tasks, ahead=len(tasks)):
            if clip.status == "failed" and clip.reason in LOST:
                path = next(task.path for task in tasks if task.clip_id == clip.clip_id)
                clips.append(Refusal(f"node {_node()} does not find {path}", path))
            else:
                clips.append(clip)
        return [{"clip": clip} for clip in clips]


class RayEncoder:
    """Build the backbones, and turn batches of decoded clips into features."""

    def __init__(self, job: Job, provenance: Mapping[str, Any], crash_counts: Any) -> None:
        self.crash_counts = crash_counts
        try:
            self.job = job.with_backbones()
        except BackboneError as error:
            self.refusal: Refusal | None = Refusal(f"node {_node()} cannot build a backbone: {error}")
            return
        here = {group.name: group.provenance for group in self.job.groups()}
        self.refusal = _refusal(here, provenance, "provenance")

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Turn rows of decoded clips into one row with all their results."""
        clips = list(batch["clip"])
        refusals = [self.refusal, *(clip for clip in clips if isinstance(clip, Refusal))]
        for refusal in refusals:
            if refusal is not None:
                return {"encoded": [refusal]}
        backbones = self.job.backbones
        busy_before = gpu_busy_s(backbones)
        started = time.perf_counter()
        results = encode_carefully(clips, lambda some: encode_batch(backbones, some), self._ask)
        infer_s = time.perf_counter() - started
        encoded = Encoded(
            results,
            infer_s,
            None if busy_before is None else (gpu_busy_s(backbones) or 0.0) - busy_before,
            sum(clip.cpu_s for clip in clips),
            sum(clip.n_decoded for clip in clips),
            tuple(remark for clip in clips for remark in clip.remarks),
        )
        return {"encoded": [encoded]}

    def _ask(self, method: str, *words: Any) -> Any:
        return ray.get(getattr(self.crash_counts, method).remote(*words))


def _node() -> str:
    return f"{host_name()} ({ray.util.get_node_ip_address()})"  # type: ignore[no-untyped-call]  # untyped in Ray


def _refusal(there: object, leading: object, what: str) -> Refusal | None:
    fields = contrasts(there, leading)
    if not fields:
        return None
    contrast = "; ".join(f"{field} is {clipped(a)} there and {clipped(b)} here" for field, a, b in fields[:3])
    return Refusal(
        f"node {_node()} has another {what} than the process that leads the run: {contrast}; "
        "give every node the same installation and the same kind of device"
    )
