"""Measure whether a model looks at the right moments: its frames against the segments that people marked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score

from obygaze_models.errors import ProtocolError
from obygaze_models.evaluation.intervals import t_interval

MEASURES = ("average_precision", "pointing")


@dataclass(frozen=True, eq=False, slots=True)
class Localisation:
    """How well frames are ranked by when something happens.

    Attributes
    ----------
    by_movie : DataFrame
        For each movie: ``movie``, ``n_clips``, ``n_frames``, ``share`` of frames inside a segment,
        ``average_precision`` of frames within clips and ``pointing``, the share of clips whose first frame by
        score lies in a segment.
    pooled : DataFrame
        For each measure: ``value`` (mean over movies), ``low`` and ``high`` (95 %, movies left out one by
        one), ``chance``: what frames in random order have.
    n_left_out : int
        Clips without a boundary: no frame inside a segment, or all.
    """

    by_movie: pd.DataFrame
    pooled: pd.DataFrame
    n_left_out: int


def localise(
    frames: pd.DataFrame, segments: Mapping[str, Sequence[tuple[float, float]]], score: str = "weight"
) -> Localisation:
    """Compare frames' scores with the segments of their movies.

    Only clips with frames inside a segment and outside of all are asked: in the others there is nothing to
    find.

    Parameters
    ----------
    frames : DataFrame
        As `predict_frames` gives it: columns clip_id, movie, time_s and `score`.
    segments : mapping of str to sequence of (float, float)
        Start and end in seconds, end exclusive, of what is to be found in each movie.
    score : str
        Column to rank frames by: "weight", "contribution", or a concept's value.

    Raises
    ------
    ProtocolError
        No clip has a boundary, a frame has no time, or there is no such column.

    Examples
    --------
    >>> import pandas as pd
    >>> import obygaze_models as om
    >>> frames = pd.DataFrame({
    ...     "movie": "film0", "clip_id": "film0-c000", "time_s": [0.5, 1.5, 2.5], "weight": [0.1, 0.7, 0.2]
    ... })
    >>> om.localise(frames, {"film0": [(1.0, 2.0)]}).pooled["value"].tolist()
    [1.0, 1.0]
    """
    if score not in frames.columns:
        raise ProtocolError(f"no column {score!r} among {', '.join(frames.columns)}")
    known = frames[frames[score].notna()]
    if known["time_s"].isna().any():
        raise ProtocolError("a frame has no time: these features were imported without times")
    inside = _inside(known, segments)
    rows, left_out = [], 0
    for key, places in known.groupby(["movie", "clip_id"], sort=True).indices.items():
        movie, clip_id = cast("tuple[str, str]", key)
        truth, scores = inside[places], known[score].to_numpy(dtype=np.float64)[places]
        if truth.all() or not truth.any():
            left_out += 1
            continue
        best = scores == scores.max()
        rows.append(
            {
                "movie": movie,
                "clip_id": clip_id,
                "n_frames": truth.size,
                "share": truth.mean(),
                "average_precision": average_precision_score(truth, scores),
                "chance_average_precision": _chance(int(truth.sum()), truth.size),
                "pointing": truth[best].mean(),  # of equal scores each is as good
            }
        )
    if not rows:
        raise ProtocolError("no clip has frames inside a segment and outside of all: nothing to find")
    clips = pd.DataFrame(rows)
    by_movie = clips.groupby("movie", sort=True).agg(
        n_clips=("clip_id", "size"),
        n_frames=("n_frames", "sum"),
        share=("share", "mean"),
        average_precision=("average_precision", "mean"),
        chance_average_precision=("chance_average_precision", "mean"),
        pointing=("pointing", "mean"),
    )
    chance = {"average_precision": "chance_average_precision", "pointing": "share"}
    pooled = []
    for measure in MEASURES:
        found = t_interval(by_movie[measure].to_numpy(), bounds=(0.0, 1.0))
        pooled.append(
            {
                "measure": measure,
                "value": found.mean,
                "low": found.low,
                "high": found.high,
                "chance": float(by_movie[chance[measure]].mean()),
            }
        )
    shown = by_movie.drop(columns="chance_average_precision").reset_index()
    return Localisation(shown, pd.DataFrame(pooled), left_out)


def _inside(frames: pd.DataFrame, segments: Mapping[str, Sequence[tuple[float, float]]]) -> NDArray[np.bool_]:
    """Mark the frames that lie in a segment of their movie [N]."""
    times, movies = frames["time_s"].to_numpy(dtype=np.float64), frames["movie"].to_numpy()
    found = np.zeros(len(frames), dtype=np.bool_)
    for movie, spans in segments.items():
        own = movies == movie
        for start, end in spans:
            found |= own & (times >= start) & (times < end)
    return found


def _chance(n_positive: int, n: int) -> float:
    """Compute the expected average precision of n frames in random order, exactly.

    The k-th positive frame is at each rank with a known chance; it is Bestgen's (2015) closed form
    (m - 1) / (n - 1) (1 - H / n) + H / n with the n-th harmonic number H.
    """
    if n == 1:
        return float(n_positive)
    harmonic = float(np.sum(1 / np.arange(1, n + 1)))
    return (n_positive - 1) / (n - 1) * (1 - harmonic / n) + harmonic / n
