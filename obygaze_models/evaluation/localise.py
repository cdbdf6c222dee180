"""Measure whether a model looks at the right moments: its frames against the segments that people marked.

Chance is read from other clips' scores: a shift gives each clip of a movie the scores of the clip some places
further on, and the last ones those of the first. Frames resemble their neighbours, and segments are runs of
frames. Average precision of frames in random order is therefore lower than that of smooth scores that know
nothing. That of frames shifted in a circle within each clip is higher where segments lie inside clips, and
lower where they pass the ends. Scores of other clips keep their runs, and where in a clip they lie.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from obygaze_features.arguments import checked
from obygaze_features.manifest import Manifest, read_table
from obygaze_models.errors import ProtocolError
from obygaze_models.evaluation.intervals import t_interval
from obygaze_models.evaluation.significance import circular_shifts

MEASURES = ("average_precision", "pointing")
POOLED = ("measure", "value", "low", "high", "chance", "p")
SEED = 0
"""Of the shifts."""


@dataclass(frozen=True, eq=False, slots=True)
class Localisation:
    """How well frames are ranked by when something happens.

    Attributes
    ----------
    by_movie : DataFrame
        For each movie: ``movie``, ``n_clips``, ``n_frames``, ``share`` of frames inside a segment,
        ``average_precision`` of frames within clips and ``pointing``, the share of clips whose first frame by
        score lies in a segment; ``average_precision_chance`` and ``pointing_chance``: the same with the
        scores of the movie's other clips, NaN where it has no other.
    pooled : DataFrame
        For each measure: ``value`` (mean over movies), ``low`` and ``high`` (95 %, of the mean over movies
        like these, movies left out one by one), ``chance`` (mean over movies) and ``p``: how often scores
        shifted within movies are as far from chance on one side, times two for either side (Phipson and
        Smyth 2010).
    n_left_out : int
        Clips without a boundary: no frame inside a segment, or all.
    n_shifts : int
        Shifts drawn for `p`.
    """

    by_movie: pd.DataFrame
    pooled: pd.DataFrame
    n_left_out: int
    n_shifts: int


@checked
def localise(
    frames: pd.DataFrame,
    segments: Mapping[str, Sequence[tuple[float, float]]],
    score: str = "weight",
    *,
    n_shifts: int = 1000,
) -> Localisation:
    """Compare frames' scores with the segments of their movies.

    Only clips with frames inside a segment and outside of all are asked: in the others there is nothing to
    find. Their scores count for chance, as those of every clip of the movie.

    Parameters
    ----------
    frames : DataFrame
        As `predict_frames` gives it: columns clip_id, movie, time_s and `score`.
    segments : mapping of str to sequence of (float, float)
        Start and end in seconds, end exclusive, of what is to be found in each movie.
    score : str
        Column to rank frames by: "weight", "contribution", or a concept's value.
    n_shifts : int

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
    table = known[["movie", "clip_id", "time_s"]].assign(
        score=known[score].astype(np.float64), inside=_inside(known, segments)
    )
    table = table.sort_values(["time_s", "clip_id"], kind="stable")
    rng = np.random.default_rng(SEED)
    rows, shifted, left_out = [], [], 0
    for movie, own in table.groupby("movie", sort=True):
        clip_of, names = pd.factorize(own["clip_id"])  # in the order of their first frames
        rows_of = [np.flatnonzero(clip_of == clip) for clip in range(len(names))]
        inside, scores = (
            [own[column].to_numpy()[clip_rows] for clip_rows in rows_of] for column in ("inside", "score")
        )
        marked = [clip for clip, truth in enumerate(inside) if truth.any() and not truth.all()]
        left_out += len(names) - len(marked)
        if not marked:
            continue
        # Scores [K, size] of all clips at as many places; of more or fewer frames, those at the same part.
        given = {
            size: np.stack([of_clip[np.arange(size) * of_clip.size // size] for of_clip in scores])
            for size in {inside[clip].size for clip in marked}
        }
        # By measure, marked clip, and clip whose scores it is given.
        values = np.stack([_measured(inside[clip], given[inside[clip].size]) for clip in marked], axis=1)
        orders = circular_shifts(np.zeros(len(names), np.intp), n_shifts, rng)
        shifted.append(values[:, np.arange(len(marked)), orders[:, marked]].mean(axis=2))
        is_own = np.arange(len(names)) == np.array(marked)[:, None]
        row = {
            "movie": movie,
            "n_clips": len(marked),
            "n_frames": sum(inside[clip].size for clip in marked),
            "share": np.mean([inside[clip].mean() for clip in marked]),
        }
        for measure, value in zip(MEASURES, values, strict=True):
            row[measure] = value[is_own].mean()
            row[f"{measure}_chance"] = value[~is_own].mean() if len(names) > 1 else np.nan
        rows.append(row)
    if not rows:
        raise ProtocolError("no clip has frames inside a segment and outside of all: nothing to find")
    by_movie = pd.DataFrame(rows)
    pooled = []
    for measure, null in zip(MEASURES, np.mean(shifted, axis=0), strict=True):
        interval = t_interval(by_movie[measure].to_numpy(), bounds=(0.0, 1.0))
        # Rounding parts values that are equal in truth; a shift that changes nothing must count.
        above, below = null >= interval.mean - 1e-9, null <= interval.mean + 1e-9
        p = min(1.0, 2 * (1 + int(min(above.sum(), below.sum()))) / (1 + n_shifts))
        ends, chance = (interval.low, interval.high), float(by_movie[f"{measure}_chance"].mean())
        pooled.append((measure, interval.mean, *ends, chance, p))
    return Localisation(by_movie, pd.DataFrame(pooled, columns=POOLED), left_out, n_shifts)


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
    ManifestError
        It is no such table.
    ProtocolError
        A column that is not a name holds no numbers.
    """
    advice = "give a table that 'obygaze predict --frames' wrote"
    table = read_table(path, ("clip_id", "movie", "time_s"), advice=advice)
    names = {name: str for name in ("clip_id", "movie", "flags") if name in table.columns}
    missing = {column: ["", "nan", "NaN"] for column in table.columns if column not in names}
    frames = pd.read_csv(  # a clip may be named NA
        StringIO(table.as_csv(names)), dtype=names, keep_default_na=False, na_values=missing
    )
    for column in frames.columns.difference(list(names)):
        if not pd.api.types.is_numeric_dtype(frames[column]):
            raise ProtocolError(f"{path}: column {column} holds something else than numbers")
    return frames


def trained_on(frames: pd.DataFrame) -> list[str]:
    """List the movies of a table of frames that the model was trained on, in order of first appearance.

    A table that another tool wrote has no flags.
    """
    if "flags" not in frames.columns:
        return []
    seen = frames.loc[frames["flags"].str.split(";").map(lambda flags: "trained_on" in flags), "movie"]
    return list(seen.unique())


def _inside(frames: pd.DataFrame, segments: Mapping[str, Sequence[tuple[float, float]]]) -> NDArray[np.bool_]:
    """Mark the frames that lie in a segment of their movie [N]."""
    times, movies = frames["time_s"].to_numpy(dtype=np.float64), frames["movie"].to_numpy()
    inside = np.zeros(len(frames), dtype=np.bool_)
    for movie, spans in segments.items():
        own = movies == movie
        for start, end in spans:
            inside |= own & (times >= start) & (times < end)
    return inside


def _measured(inside: NDArray[np.bool_], scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute average precision and pointing [2, K] of a clip's frames [F] with each of K scores [K, F]."""
    # Frames [K, P, F] as high as each frame inside: equal ones together, as `average_precision` does.
    as_high = scores[:, None] >= scores[:, inside, None]
    precision = as_high[..., inside].sum(axis=2) / as_high.sum(axis=2)
    best = scores == scores.max(axis=1, keepdims=True)
    return np.stack([precision.mean(axis=1), best[:, inside].sum(axis=1) / best.sum(axis=1)])
