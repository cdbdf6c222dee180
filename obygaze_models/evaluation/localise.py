"""Measure whether a model looks at the right moments: its frames against the segments that people marked.

Chance is measured with other clips' scores: a shift gives each clip of a movie the scores of a later clip,
and the last clips those of the first. Simpler ways are off. Frames resemble their neighbours, and segments
are runs of frames, so that frames in random order have a lower average precision than smooth scores that know
nothing. Frames shifted in a circle within each clip have a higher one where segments lie inside clips, and a
lower one where these pass the clip's ends. Scores of other clips keep their runs and their place in a clip.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from obygaze_features.arguments import checked
from obygaze_features.manifest import Manifest, blind_labels, judgements_of, read_table
from obygaze_models.errors import ProtocolError
from obygaze_models.evaluation.intervals import t_interval
from obygaze_models.evaluation.significance import circular_shifts

MEASURES = ("average_precision", "pointing")
"""What is measured for each clip: how well its frames are ranked, and whether the best frame is right."""
POOLED_COLUMNS = ("measure", "value", "low", "high", "chance", "p")
"""Columns of `Localisation.pooled`."""
SEED = 0
"""Seed of the shifts."""
UNNAMED_ANNOTATOR = "annotator"
"""Name of the annotator of clips that name none."""
ROUNDING = 1e-9
"""Values that differ by less count as equal, so that a shift that changes nothing counts as reaching them."""


@dataclass(frozen=True, eq=False, slots=True)
class Localisation:
    """How well the scores of frames find the segments that people marked.

    Attributes
    ----------
    by_movie : DataFrame
        For each movie: ``movie``, ``n_clips``, ``n_frames``; ``share`` of frames inside a segment;
        ``average_precision`` of frames within clips, averaged over clips; ``pointing``, the share of clips
        whose frame with the highest score lies in a segment; and ``average_precision_chance`` and
        ``pointing_chance``, the same with the scores of the movie's other clips, NaN if there are none.
    pooled : DataFrame
        For each measure: ``value``, its mean over movies; ``low`` and ``high``, the 95 % jackknife interval
        of that mean; ``chance``, the mean chance level; and ``p``, two-sided: twice the share of shifts of
        scores within movies whose value is as high as measured, or as low, whichever is smaller (Phipson and
        Smyth 2010).
    n_left_out : int
        Number of clips that are not measured, since none of their frames lies in a segment, or all do.
    n_shifts : int
        Number of shifts drawn for `p`.
    n_without_scores : int
        Number of clips that are not measured, since none of their frames has a score, as where they are
        unlike all clips that the model was trained on.
    """

    by_movie: pd.DataFrame
    pooled: pd.DataFrame
    n_left_out: int
    n_shifts: int
    n_without_scores: int = 0


@checked
def localise(
    frames: pd.DataFrame,
    segments: Mapping[str, Sequence[tuple[float, float]]],
    score: str = "weight",
    *,
    n_shifts: int = 1000,
) -> Localisation:
    """Measure how well frames' scores find the segments that people marked, within clips.

    Only clips with frames both inside and outside of segments are measured: in the others there is nothing to
    find. The chance level is measured with the scores of all other clips of the movie.

    Parameters
    ----------
    frames : DataFrame
        As `predict_frames` gives it: columns clip_id, movie, time_s and `score`.
    segments : mapping of str to sequence of (float, float)
        Movie -> start and end, in seconds and end exclusive, of each segment that is to be found.
    score : str
        Column to rank frames by: "weight", "contribution", or a concept's value.
    n_shifts : int
        Number of circular shifts of scores within movies, drawn for p.

    Raises
    ------
    ProtocolError
        In every clip no frame lies in a segment, or all do; or a frame has no time; or there is no such
        column.

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
    table = _scored_frames(frames, segments, score)
    rng = np.random.default_rng(SEED)

    rows = []
    means_of_shifts = []  # for each movie, [measures, n_shifts]
    n_left_out = 0
    for movie, frames_of_movie in table.groupby("movie", sort=True):
        clips = _split_into_clips(frames_of_movie)
        # "Mixed" clips have frames inside and outside of segments: only in these there is something to find.
        mixed = [index for index, clip in enumerate(clips) if clip.inside.any() and not clip.inside.all()]
        n_left_out += len(clips) - len(mixed)
        if not mixed:
            continue
        # Each mixed clip by the scores of every clip of the movie: its own, and as chance those of others.
        values = _measure_movie(clips, mixed)  # [measures, mixed clips, clips]
        means_of_shifts.append(_means_of_shifts(values, mixed, n_shifts, rng))
        rows.append({"movie": movie, **_movie_row(clips, mixed, values)})
    if not rows:
        raise ProtocolError("no clip has frames inside a segment and outside of all: nothing to find")

    # Movies count equally, however many clips they have: they are what is independent.
    by_movie = pd.DataFrame(rows)
    mean_of_movies_by_shift = np.mean(means_of_shifts, axis=0)  # [measures, n_shifts], for p
    pooled = _pooled(by_movie, mean_of_movies_by_shift, n_shifts)
    n_without_scores = frames["clip_id"].nunique() - table["clip_id"].nunique()
    return Localisation(by_movie, pooled, n_left_out, n_shifts, n_without_scores)


def _means_of_shifts(
    values: NDArray[np.float64], mixed: Sequence[int], n_shifts: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Compute for each of many random shifts the mean of each measure over a movie's mixed clips.

    A shift by 3 gives each clip the scores of the third clip after it, and the last clips those of the first.
    Shifts show what scores reach by chance that know nothing of the segments, though they are alike in
    neighbouring clips. Mixed clips are those that are measured: they have frames inside and outside of
    segments.

    Parameters
    ----------
    values : ndarray, shape [measures, mixed clips, clips]
        As `_measure_movie` returns them: each mixed clip measured with the scores of every clip.
    mixed : sequence of int
        Indices of the mixed clips among all clips of the movie.
    n_shifts : int
    rng : Generator

    Returns
    -------
    ndarray, shape [measures, n_shifts]
    """
    n_clips = values.shape[2]
    # All clips of a movie are shifted together: they are one group.
    one_group = np.zeros(n_clips, np.intp)
    orders = circular_shifts(one_group, n_shifts, rng)  # [n_shifts, clips]
    clip_of_scores = orders[:, mixed]  # whose scores each mixed clip takes, [n_shifts, mixed clips]
    every_mixed_clip = np.arange(len(mixed))  # pairs with the columns of `clip_of_scores`
    # Entry [:, shift, m] is the value of the mixed clip m with the scores of clip_of_scores[shift, m].
    values_of_shifts = values[:, every_mixed_clip, clip_of_scores]  # [measures, n_shifts, mixed clips]
    means: NDArray[np.float64] = values_of_shifts.mean(axis=2)
    return means


def _scored_frames(
    frames: pd.DataFrame, segments: Mapping[str, Sequence[tuple[float, float]]], score: str
) -> pd.DataFrame:
    """Select the frames that have a score, in order of time, and mark those that lie in a segment.

    Parameters
    ----------
    frames : DataFrame
        Columns clip_id, movie, time_s and `score`.
    segments : mapping of str to sequence of (float, float)
        Movie -> start and end of each segment, in seconds.
    score : str
        Column that frames are ranked by.

    Returns
    -------
    DataFrame
        Columns movie, clip_id, time_s, score, and inside: whether the frame lies in a segment.

    Raises
    ------
    ProtocolError
        There is no column `score`, or a frame has no time.
    """
    if score not in frames.columns:
        raise ProtocolError(f"no column {score!r} among {', '.join(frames.columns)}")
    scored = frames[frames[score].notna()]
    if scored["time_s"].isna().any():
        raise ProtocolError("a frame has no time: these features were imported without times")
    table = scored[["movie", "clip_id", "time_s"]].assign(
        score=scored[score].astype(np.float64), inside=_is_in_segment(scored, segments)
    )
    return table.sort_values(["time_s", "clip_id"], kind="stable")


class _FramesOfClip(NamedTuple):
    """The frames of a clip in order of time: whether each lies in a segment [F], and its score [F]."""

    inside: NDArray[np.bool_]
    scores: NDArray[np.float64]

    def scores_at(self, n_frames: int) -> NDArray[np.float64]:
        """Return the scores at `n_frames` frames that are spread evenly over the clip.

        The scores of one clip can so be given to another one, which has more frames or fewer: frames are then
        repeated or skipped.
        """
        positions = np.arange(n_frames) * self.scores.size // n_frames
        return self.scores[positions]


def _split_into_clips(frames: pd.DataFrame) -> list[_FramesOfClip]:
    """Split the frames of a movie, sorted by time, into clips in order of their first frames."""
    clips = []
    for _, frames_of_clip in frames.groupby("clip_id", sort=False):
        clips.append(_FramesOfClip(frames_of_clip["inside"].to_numpy(), frames_of_clip["score"].to_numpy()))
    return clips


def _measure_movie(clips: Sequence[_FramesOfClip], mixed: Sequence[int]) -> NDArray[np.float64]:
    """Measure how well each mixed clip's segments are found by its own scores, and by those of other clips.

    A clip is mixed if it has frames inside and outside of segments: only there is something to find. The
    scores of another clip know nothing of its segments. How well they find them is the chance level.

    Parameters
    ----------
    clips : sequence of _FramesOfClip
        All clips of the movie.
    mixed : sequence of int
        Indices of the mixed clips.

    Returns
    -------
    ndarray, shape [measures, mixed clips, clips]
        Entry [a, m, c] is measure a of the frames of mixed clip m, ranked by the scores of clip c.
    """
    # Number of frames -> the scores of all clips, stretched to that number. Most clips have the same number.
    scores_by_n_frames: dict[int, NDArray[np.float64]] = {}
    values = []
    for index in mixed:
        inside = clips[index].inside
        n_frames = inside.size
        if n_frames not in scores_by_n_frames:
            stretched = [clip.scores_at(n_frames) for clip in clips]
            scores_by_n_frames[n_frames] = np.stack(stretched)  # [clips, frames]
        values.append(_measure_clip(inside, scores_by_n_frames[n_frames]))  # [measures, clips]
    return np.stack(values, axis=1)


def _movie_row(
    clips: Sequence[_FramesOfClip], mixed: Sequence[int], values: NDArray[np.float64]
) -> dict[str, float]:
    """Summarise a movie as a row of `Localisation.by_movie`, which describes the columns.

    Parameters
    ----------
    clips : sequence of _FramesOfClip
        All clips of the movie.
    mixed : sequence of int
        Indices of the clips that are measured.
    values : ndarray, shape [measures, mixed clips, clips]
        As `_measure_movie` returns them.
    """
    mixed_clips = [clips[index] for index in mixed]
    # Marks the values that a mixed clip has with its own scores; the others are of chance.
    has_own_scores = np.zeros((len(mixed), len(clips)), np.bool_)
    has_own_scores[np.arange(len(mixed)), mixed] = True
    has_other_clips = len(clips) > 1
    row = {
        "n_clips": len(mixed),
        "n_frames": sum(clip.inside.size for clip in mixed_clips),
        "share": np.mean([clip.inside.mean() for clip in mixed_clips]),
    }
    for measure, values_of_measure in zip(MEASURES, values, strict=True):
        row[measure] = values_of_measure[has_own_scores].mean()
        row[f"{measure}_chance"] = values_of_measure[~has_own_scores].mean() if has_other_clips else np.nan
    return row


def _pooled(by_movie: pd.DataFrame, shifted: NDArray[np.float64], n_shifts: int) -> pd.DataFrame:
    """Average each measure over movies, with its interval, its chance level and p (`POOLED_COLUMNS`).

    Parameters
    ----------
    by_movie : DataFrame
    shifted : ndarray, shape [measures, n_shifts]
        The mean over movies of each measure, for each shift.
    n_shifts : int
    """
    rows = []
    for measure, values_of_shifts in zip(MEASURES, shifted, strict=True):
        interval = t_interval(by_movie[measure].to_numpy(), bounds=(0.0, 1.0))
        # Shifts with a value as high as measured, and as low, but for rounding.
        n_as_high = int((values_of_shifts >= interval.mean - ROUNDING).sum())
        n_as_low = int((values_of_shifts <= interval.mean + ROUNDING).sum())
        # Two-sided; the unshifted scores count as one of the shifts (Phipson and Smyth 2010).
        p = min(1.0, 2 * (1 + min(n_as_high, n_as_low)) / (1 + n_shifts))
        row = {
            "measure": measure,
            "value": interval.mean,
            "low": interval.low,
            "high": interval.high,
            "chance": float(by_movie[f"{measure}_chance"].mean()),
            "p": p,
        }
        rows.append(row)
    return pd.DataFrame(rows, columns=POOLED_COLUMNS)


def marked_segments(
    manifest: Manifest, positive: Sequence[str] = (), concept: str | None = None
) -> dict[str, dict[str, list[tuple[float, float]]]]:
    """Collect the segments that each annotator marked with one of some levels, or with a concept.

    An annotator who saw a model's score in a film is left out of it, as in agreement (`blind_labels`): such
    marks are where the score is high.

    Parameters
    ----------
    manifest : Manifest
        Annotated spans. Clips without an annotator's name count as those of one annotator.
    positive : sequence of str
        Levels to find, in any spelling of the codebook.
    concept : str, optional
        Concept to find, instead of levels.

    Returns
    -------
    dict
        Annotator -> movie -> list of the start and end of each segment, in seconds.

    Raises
    ------
    ProtocolError
        Neither or both of `positive` and `concept` are given; or a marked clip has no span; or nothing is
        marked.
    ManifestError
        The codebook lacks one of the names; the message suggests the nearest one. Or labels were given under
        two definitions of the codebook.
    """
    are_levels_wanted = bool(positive)
    is_concept_wanted = concept is not None
    if are_levels_wanted == is_concept_wanted:
        raise ProtocolError("say what is to be found: levels (--positive) or a concept (--concept), not both")
    # The names as the codebook spells them.
    levels = [manifest.codebook.level_spelled(name) for name in positive]
    name_of_concept = None if concept is None else manifest.codebook.concept_spelled(concept)

    judgements_of(manifest).refuse_two_definitions()
    blind = blind_labels(manifest, whole_films=True)
    segments: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for clip in blind.manifest:
        has_level = clip.level in levels
        has_concept = name_of_concept in clip.concepts
        if not has_level and not has_concept:
            continue
        if clip.start_s is None or clip.end_s is None:
            raise ProtocolError(
                f"clip {clip.clip_id} of the manifest has no span: start_s and end_s are needed"
            )
        segments_of_movies = segments.setdefault(clip.annotator or UNNAMED_ANNOTATOR, {})
        segments_of_movies.setdefault(clip.movie, []).append((clip.start_s, clip.end_s))
    if not segments:
        raise ProtocolError(
            f"no clip of the manifest is marked {', '.join(positive) or concept}: nothing to find"
            f"{blind.reason()}"
        )
    return dict(sorted(segments.items()))


def read_frames(path: Path) -> pd.DataFrame:
    """Read a table that `obygaze predict --frames` wrote.

    Raises
    ------
    ManifestError
        The table lacks one of the columns.
    ProtocolError
        A column of scores or times holds something else than numbers.
    """
    advice = "give a table that 'obygaze predict --frames' wrote"
    table = read_table(path, ("clip_id", "movie", "time_s"), advice=advice)
    columns_of_texts = [name for name in ("clip_id", "movie", "flags") if name in table.columns]
    columns_of_numbers = [name for name in table.columns if name not in columns_of_texts]
    types_of_texts = dict.fromkeys(columns_of_texts, str)

    # `read_table` accepts any spelling of a table, and checks it. pandas reads the numbers, from the same
    # table as plain CSV. Only columns of numbers can have missing values, as a clip may be named NA.
    frames = pd.read_csv(
        StringIO(table.as_csv(types_of_texts)),
        dtype=types_of_texts,
        keep_default_na=False,
        na_values={name: ["", "nan", "NaN"] for name in columns_of_numbers},
    )

    for column in sorted(columns_of_numbers):
        if not pd.api.types.is_numeric_dtype(frames[column]):
            raise ProtocolError(f"{path}: column {column} holds something else than numbers")
    return frames


def trained_on(frames: pd.DataFrame) -> list[str]:
    """List the movies of a table of frames that the model was trained on, in order of first appearance.

    The list is empty for tables of other tools, which have no column `flags`.
    """
    if "flags" not in frames.columns:
        return []
    is_trained_on = frames["flags"].str.split(";").map(lambda flags: "trained_on" in flags)
    return list(frames.loc[is_trained_on, "movie"].unique())


def _is_in_segment(
    frames: pd.DataFrame, segments: Mapping[str, Sequence[tuple[float, float]]]
) -> NDArray[np.bool_]:
    """Mark the frames [N] whose time lies in a segment of their movie."""
    times = frames["time_s"].to_numpy(dtype=np.float64)
    movies = frames["movie"].to_numpy()
    inside = np.zeros(len(frames), dtype=np.bool_)
    for movie, spans in segments.items():
        in_movie = movies == movie
        for start, end in spans:
            inside |= in_movie & (times >= start) & (times < end)
    return inside


def _measure_clip(inside: NDArray[np.bool_], scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute average precision and pointing accuracy of a clip's frames, for each of K sets of scores.

    Parameters
    ----------
    inside : ndarray of bool, shape [F]
        Marks the P frames that lie in a segment.
    scores : ndarray, shape [K, F]

    Returns
    -------
    ndarray, shape [2, K]
        The average precision of ranking the frames, then whether the best frame lies in a segment (with ties,
        the share of the best frames that do).
    """
    # Average precision is the mean precision at the P frames inside. The precision at a frame is the share of
    # frames inside among those that score at least as high, as `average_precision` counts ties.
    scores_inside = scores[:, inside]  # [K, P]
    scores_as_high = scores[:, None, :] >= scores_inside[:, :, None]  # [K, P, F]
    n_as_high = scores_as_high.sum(axis=2)  # [K, P]
    n_as_high_inside = scores_as_high[..., inside].sum(axis=2)
    precision = n_as_high_inside / n_as_high
    average_precision = precision.mean(axis=1)

    # Pointing at the best frame, which may be several frames with the same score.
    has_highest_score = scores == scores.max(axis=1, keepdims=True)  # [K, F]
    n_highest = has_highest_score.sum(axis=1)
    n_highest_inside = has_highest_score[:, inside].sum(axis=1)
    pointing = n_highest_inside / n_highest

    return np.stack([average_precision, pointing])
