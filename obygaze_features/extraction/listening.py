"""Read what backbones hear of a clip, in the decode workers."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from obygaze_features.backbones import Hearing
from obygaze_features.video import Sampling, SoundTrack, sampled_times
from obygaze_features.video.sampling import LARGEST_HOLE, LONGEST_HOLE_S


class SoundRequest(NamedTuple):
    """What a backbone needs to hear of a clip.

    Parameters
    ----------
    hearing
        The samples.
    sampling
        Frames between whose midpoints the sound is cut.
    prepare
        Transform applied to the parts of a clip, `[F, L]` or `[F, L, D]`.
    encode
        The backbone's `encode`, if it runs in the decode worker; else None.
    """

    hearing: Hearing
    sampling: Sampling
    prepare: Callable[[NDArray[Any]], NDArray[Any]]
    encode: Callable[[NDArray[Any]], dict[str, NDArray[Any]]] | None = None


class Heard(NamedTuple):
    """The prepared sound of a clip, and index and time of the frames that it lies around, `[F]`.

    `note` says what is missing of it; empty if nothing is.
    """

    images: NDArray[Any]
    frame_index: NDArray[np.int64]
    time_s: NDArray[np.float64]
    note: str = ""


class Listener:
    """Reads the sound of clips; that of clips of one file is decoded once for all of them."""

    def __init__(self) -> None:
        self._tracks: dict[tuple[Path, str], SoundTrack] = {}

    def hear(self, request: SoundRequest, path: Path, span: tuple[float | None, float | None]) -> Heard:
        """Read the sound of a span, cut half-way between its sampled frames.

        Raises
        ------
        VideoError
            There is no sound track, or nothing of it in the span; or the file can't be read.
        """
        key = path, request.hearing.track
        if key not in self._tracks:
            self._tracks = {key: SoundTrack(*key)} | dict(list(self._tracks.items())[:1])
        index, time_s, end_s = sampled_times(path, request.sampling, *span)
        start_s = span[0] or 0.0
        edges_s = [(before + after) / 2 for before, after in pairwise(time_s.tolist())]
        hearing = request.hearing
        parts, missing_s = self._tracks[key].parts(
            start_s,
            end_s,
            edges_s,
            rate=hearing.rate,
            measure=hearing.measure,
            steps_a_second=hearing.steps_a_second,
        )
        note = ""
        if missing_s > min(LONGEST_HOLE_S, LARGEST_HOLE * (end_s - start_s)):
            note = f"no sound for {missing_s:.2f} of {end_s - start_s:.2f} s"
        return Heard(request.prepare(parts), index, time_s, note)
