"""Limit retries of clips that crash the encoder process.

Ray starts a dead worker again and gives it the same batch. A worker cannot remember what killed the one
before it, so a ledger in another process does.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from obygaze_features.extraction.decode import DecodedClip
from obygaze_features.store import ClipResult

ATTEMPTS = 3  # a worker may also die of its machine: only a clip that three of them die on is to blame

Encode = Callable[[Sequence[DecodedClip]], list[ClipResult]]


class Ledger:
    """Counts how often each clip was begun and not finished; one for all encoders of a run."""

    def __init__(self) -> None:
        self._begun: Counter[str] = Counter()

    def begin(self, clip_ids: Sequence[str]) -> None:
        """Note that an encoder takes these clips into its hands."""
        self._begun.update(clip_ids)

    def finish(self, clip_ids: Sequence[str]) -> None:
        """Note that it has survived them."""
        for clip_id in clip_ids:
            self._begun.pop(clip_id, None)

    def deaths(self, clip_ids: Sequence[str]) -> list[int]:
        """Count the encoders that died with each of these clips in their hands."""
        return [self._begun[clip_id] for clip_id in clip_ids]


def encode_carefully(
    clips: Sequence[DecodedClip], encode: Encode, ask: Callable[..., Any]
) -> list[ClipResult]:
    """Encode a batch, or, if an encoder died on it before, clip by clip, so that only the guilty one fails.

    Parameters
    ----------
    encode
        Turns decoded clips into results; it may take the process with it.
    ask
        Calls a method of the run's `Ledger`, by name, and waits for what it says.
    """
    ids = [clip.clip_id for clip in clips]
    deaths = ask("deaths", ids)
    if not any(deaths):
        return _noted(clips, encode, ask)
    results = []
    for clip, times in zip(clips, deaths, strict=True):
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
