"""Estimate the cost of an extraction from a few trial clips; nothing is written."""

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import ClassVar

from obygaze_features.extraction.decode import decode_clip
from obygaze_features.extraction.encode import clips_at_once, encode_batch, warm_up
from obygaze_features.extraction.job import Job

TRIALS = 3


@dataclass(frozen=True, slots=True)
class Estimate:
    """What is to be done.

    Parameters
    ----------
    clips, files, absent
        Clips to do, distinct video files they need, and how many of those files are not there.
    source_bytes, feature_bytes
        Size of the video files, and of the features if every clip can be read.
    seconds
        Expected wall time, or None if no clip could be tried.
    tried
        How many clips the expectation rests on.
    workers
        Decode processes that it counts with.
    """

    clips: int
    files: int
    absent: int
    source_bytes: int
    feature_bytes: int
    seconds: float | None
    tried: int
    workers: int

    unit: ClassVar[str] = "clip"

    def facts(self) -> list[tuple[str, object]]:
        """List the work to be done, as names and words; empty if none."""
        if not self.clips:
            return []
        return [
            ("clips to do", self.clips),
            ("video files", f"{self.files} ({self.absent} absent)"),
            ("video bytes", f"{self.source_bytes:,}"),
        ]

    def record(self) -> dict[str, object]:
        """Return everything as plain values, for `--json`."""
        return asdict(self)


def estimate_clips(job: Job, clip_ids: Sequence[str], workers: int) -> Estimate:
    """Decode and encode up to three clips, spread over the work, and scale up.

    Decoding is shared by the workers and overlaps with the backbones: the slower of the two decides. On a
    card, loading and compiling are counted once, and the backbones are timed with a whole call.
    """
    tasks = job.tasks(clip_ids)
    paths = {task.path for task in tasks if task.path is not None}
    present = [path for path in paths if path.is_file()]
    step = max(len(tasks) // TRIALS, 1)
    seconds = None
    began = time.perf_counter()
    clips = [decode_clip(task) for task in [task for task in tasks if task.path in present][::step][:TRIALS]]
    decoded = time.perf_counter()
    if clips:
        warm_up(job.backbones)
        warm = time.perf_counter()
        batch = (clips * clips_at_once(job.backbones))[: max(clips_at_once(job.backbones), len(clips))]
        encode_batch(job.backbones, batch)
        decode_s, infer_s = (decoded - began) / len(clips), (time.perf_counter() - warm) / len(batch)
        seconds = warm - decoded + len(tasks) * max(decode_s / workers, infer_s)
    return Estimate(
        clips=len(tasks),
        files=len(paths),
        absent=len(paths) - len(present),
        source_bytes=sum(path.stat().st_size for path in present),
        feature_bytes=len(tasks) * job.bytes_per_clip(),
        seconds=seconds,
        tried=len(clips),
        workers=workers,
    )
