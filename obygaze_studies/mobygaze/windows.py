"""Cut films into windows of one length, with what each expert marked there and what is said there.

Experts drew their segments, so a segment's length tells its level: windows have no such borders. The words of
a window are those of the *other* expert's segments, spread evenly over each, so that no border of the expert
who is to be predicted leaks in by where a subtitle begins.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import Clip, Manifest


def expert_windows(
    segments: Manifest, subtitles: Mapping[str, str], marks: Sequence[str], *, seconds: float = 30.0
) -> pd.DataFrame:
    """Cut each film of two annotators' segments into windows, a row an annotator.

    Parameters
    ----------
    segments : Manifest
        Segments with times and annotators.
    subtitles : mapping of str to str
        What is said in a segment, by its id.
    marks : sequence of str
        Levels and concepts to measure.
    seconds : float
        Length of a window; what is left at a film's end is no window.

    Returns
    -------
    DataFrame
        `movie`, `expert`, `place` (of the window's start in the film, 0 to 1), `words` (text); for each mark
        `MARK`, the share of the window's time that this expert marked so, and `other MARK`, the other's.

    Raises
    ------
    ManifestError
        There are not two annotators, or a segment has no times.
    """
    experts = sorted({clip.annotator for clip in segments})
    if len(experts) != 2:
        raise ManifestError(f"segments of two annotators are needed, not of {len(experts)}", "annotator")
    of_film: dict[str, dict[str, list[tuple[Clip, float, float]]]] = {}
    for clip in segments:
        if clip.start_s is None or clip.end_s is None:
            raise ManifestError(f"segment {clip.clip_id} has no times", "start_s")
        own = of_film.setdefault(clip.movie, {expert: [] for expert in experts})[clip.annotator]
        own.append((clip, clip.start_s, clip.end_s))
    tables = []
    for movie, film in of_film.items():
        n = int(max(end for own in film.values() for _, _, end in own) // seconds)
        shares = {expert: _shares(own, marks, n, seconds) for expert, own in film.items()}
        words = {expert: _words(own, subtitles, n, seconds) for expert, own in film.items()}
        for expert, other in (experts, experts[::-1]):
            table = pd.DataFrame({"movie": movie, "expert": expert, "place": np.arange(n) / max(n, 1)})
            table["words"] = words[other]
            table[list(marks)] = shares[expert]
            table[[f"other {mark}" for mark in marks]] = shares[other]
            tables.append(table)
    return pd.concat(tables, ignore_index=True)


def _shares(
    own: Sequence[tuple[Clip, float, float]], marks: Sequence[str], n: int, seconds: float
) -> NDArray[np.float64]:
    """Measure the share of each window's time [N, M] that is marked with each mark."""
    edges = seconds * np.arange(n + 1)
    covered = np.zeros((n, len(marks)))
    for clip, start, end in own:
        inside = np.clip(np.minimum(end, edges[1:]) - np.maximum(start, edges[:-1]), 0, None)
        covered += inside[:, None] * [mark == clip.level or mark in clip.concepts for mark in marks]
    return covered / seconds


def _words(
    own: Sequence[tuple[Clip, float, float]], subtitles: Mapping[str, str], n: int, seconds: float
) -> list[str]:
    """Spread the words of each segment evenly over it, and gather them by window."""
    found: list[list[str]] = [[] for _ in range(n)]
    for clip, start, end in own:
        words = subtitles.get(clip.clip_id, "").split()
        for number, word in enumerate(words):
            window = int((start + (number + 0.5) / len(words) * (end - start)) // seconds)
            if window < n:
                found[window].append(word)
    return [" ".join(words) for words in found]
