"""Limit retries of clips that crash the encoder process.

Ray restarts a dead worker and sends it the same batch. The new worker does not know which clip killed the
previous one, so a process beside them counts.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from obygaze_features.extraction.decode import DecodedClip
from obygaze_features.store import ClipResult

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
