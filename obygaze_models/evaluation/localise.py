"""Measure whether a model looks at the right moments: its frames against the segments that people marked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from obygaze_features.errors import first_line
from obygaze_features.manifest import Manifest
from obygaze_models.errors import ProtocolError
from obygaze_models.evaluation.intervals import t_interval
from obygaze_models.evaluation.metrics import average_precision, expected_average_precision

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
                "average_precision": average_precision(truth.astype(np.int64), scores),
                "chance_average_precision": expected_average_precision(truth.size, int(truth.sum())),
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
        interval = t_interval(by_movie[measure].to_numpy(), bounds=(0.0, 1.0))
        pooled.append(
            {
                "measure": measure,
                "value": interval.mean,
                "low": interval.low,
                "high": interval.high,
                "chance": float(by_movie[chance[measure]].mean()),
            }
        )
    shown = by_movie.drop(columns="chance_average_precision").reset_index()
    return Localisation(shown, pd.DataFrame(pooled), left_out)


def marked_segments(
    manifest: Manifest, positive: Sequence[str] = (), concept: str | None = None
) -> dict[str, dict[str, list[tuple[float, float]]]]:
    """Collect the segments that each annotator marked: annotator -> movie -> start and end in seconds.

    Parameters
    ----------
    manifest : Manifest
        Annotated spans. Without annotators' names they count as one annotator's.
    positive : sequence of str
        Levels to find.
    concept : str, optional
        Concept to find, instead of levels.

    Raises
    ------
    ProtocolError
        Neither or both are given, the codebook lacks one, a marked clip has no span, or nothing is marked.
    """
    codebook = manifest.codebook
    if bool(positive) == (concept is not None):
        raise ProtocolError("say what is to be found: levels (--positive) or a concept (--concept), not both")
    known = codebook.level_names if positive else codebook.concept_names
    for name in positive or (str(concept),):
        if name not in known:
            raise ProtocolError(
                f"codebook {codebook.name} has no {name!r}: expected one of {', '.join(known)}"
            )
    segments: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for clip in manifest:
        if not (clip.level in positive if positive else concept in clip.concepts):
            continue
        if clip.start_s is None or clip.end_s is None:
            raise ProtocolError(
                f"clip {clip.clip_id} of the manifest has no span: start_s and end_s are needed"
            )
        own = segments.setdefault(clip.annotator or "annotator", {})
        own.setdefault(clip.movie, []).append((clip.start_s, clip.end_s))
    if not segments:
        raise ProtocolError(
            f"no clip of the manifest is marked {', '.join(positive) or concept}: nothing to find"
        )
    return dict(sorted(segments.items()))


def read_frames(path: Path) -> pd.DataFrame:
    """Read a table that `obygaze predict --frames` wrote.

    Raises
    ------
    ProtocolError
        It is no such table, or a column that is not a name holds no numbers.
    """
    names = {"clip_id": str, "movie": str}
    try:
        frames = pd.read_csv(path, dtype=names)
    except (OSError, ValueError) as error:
        raise ProtocolError(f"{path}: {first_line(error)}") from None
    for column in ("clip_id", "movie", "time_s"):
        if column not in frames.columns:
            raise ProtocolError(
                f"{path}: no column {column}: give a table that 'obygaze predict --frames' wrote"
            )
    for column in frames.columns.difference(list(names)):
        if not pd.api.types.is_numeric_dtype(frames[column]):
            raise ProtocolError(f"{path}: column {column} holds something else than numbers")
    return frames


def movies_table(results: Mapping[str, Localisation]) -> pd.DataFrame:
    """Join the numbers of movies of several annotators, whose name is the first column."""
    return pd.concat(
        [result.by_movie.assign(annotator=name) for name, result in results.items()], ignore_index=True
    )[["annotator", *next(iter(results.values())).by_movie.columns]]


def _inside(frames: pd.DataFrame, segments: Mapping[str, Sequence[tuple[float, float]]]) -> NDArray[np.bool_]:
    """Mark the frames that lie in a segment of their movie [N]."""
    times, movies = frames["time_s"].to_numpy(dtype=np.float64), frames["movie"].to_numpy()
    inside = np.zeros(len(frames), dtype=np.bool_)
    for movie, spans in segments.items():
        own = movies == movie
        for start, end in spans:
            inside |= own & (times >= start) & (times < end)
    return inside
