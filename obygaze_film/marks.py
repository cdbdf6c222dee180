"""Collect the marks of models and annotators in films: seconds, segments, rates."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from obygaze_features.manifest import Manifest
from obygaze_film.agreement import Spans, merged, seconds_in
from obygaze_film.errors import FilmError
from obygaze_film.rows import is_counted
from obygaze_film.timeline import Timeline

N_LISTED = 100
"""Maximum number of ranked segments of a model."""


@dataclass(frozen=True, eq=False)
class Marks:
    """The marks of a model, an annotator or a rule in a film.

    Attributes
    ----------
    seconds : ndarray of bool, shape [n]
        The seconds marked.
    segments : ndarray, shape [S, 2]
        The segments marked.
    rate : float
        Share of the film; NaN if it is refused.
    scores : ndarray, shape [n], optional
        A score for each second, NaN where it is missing.
    listed : ndarray, shape [L, 2], optional
        Segments, best first, including those below the threshold.
    listed_scores : ndarray, shape [L], optional
    """

    seconds: NDArray[np.bool_]
    segments: Spans
    rate: float
    scores: NDArray[np.float64] | None = None
    listed: Spans | None = None
    listed_scores: NDArray[np.float64] | None = None


def annotated(truth: Manifest, positive: set[str]) -> dict[str, dict[str, Spans]]:
    """Collect positive spans by film and annotator; annotators without any are included.

    Raises
    ------
    FilmError
        The codebook lacks the levels, or an annotated clip has no span.
    """
    if unknown := sorted(positive - set(truth.codebook.level_names)):
        raise FilmError(
            f"the model calls {unknown[0]!r} positive, which is no level of the truth's codebook "
            f"{truth.codebook.name!r}"
        )
    found: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for clip in truth:
        if clip.level is None:
            continue
        if clip.start_s is None or clip.end_s is None:
            raise FilmError(f"clip {clip.clip_id} of the truth has no span: start_s and end_s are needed")
        own = found.setdefault(clip.movie, {}).setdefault(clip.annotator or "annotator", [])
        if clip.level in positive:
            own.append((clip.start_s, clip.end_s))
    return {movie: {name: merged(own) for name, own in people.items()} for movie, people in found.items()}


def ends(spans: Spans) -> float:
    """Return the end of the last span; 0 without any."""
    return float(spans[:, 1].max()) if len(spans) else 0.0


def human_marks(spans: Spans, n: int) -> Marks:
    """Collect the marks of an annotator in a film of n seconds."""
    seconds = seconds_in(spans, n)
    return Marks(seconds, spans, float(seconds.mean()))


def marks_of(film: Timeline, key: str | None, n: int) -> Marks:
    """Collect the marks of a model in a film of n seconds: called rows, segments, probabilities."""
    rows = film.rows(key)
    spans = rows[["start_s", "end_s"]].to_numpy(dtype=np.float64)
    place = np.clip(np.searchsorted(spans[:, 0], np.arange(n) + 0.5, side="right") - 1, 0, None)
    inside = np.arange(n) + 0.5 < spans[place, 1]
    counted = is_counted(rows)
    p = np.where(counted, rows["p"].to_numpy(dtype=np.float64), np.nan)
    called = counted & (rows["called"].fillna(0).to_numpy(dtype=np.float64) == 1)
    listed = film.segments(key, top=N_LISTED)
    reaching = listed[listed["reaches"] == 1]
    rate = film.rate(key).value
    return Marks(
        seconds=np.where(inside, called[place], False),
        segments=merged(zip(reaching["start_s"].astype(float), reaching["end_s"].astype(float), strict=True)),
        rate=np.nan if rate is None else rate,
        scores=np.where(inside, p[place], np.nan),
        listed=listed[["start_s", "end_s"]].to_numpy(dtype=np.float64),
        listed_scores=listed["p"].to_numpy(dtype=np.float64),
    )
