"""Measure what films left out show of a model."""

from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from obygaze_models.evaluation.intervals import auc_interval
from obygaze_models.evaluation.metrics import auc
from obygaze_models.evaluation.summary import UNVARYING_AUC, do_not_vary
from obygaze_models.persistence.evidence import Evidence


def collect_evidence(left_out: pd.DataFrame, p_skilled: float | None) -> Evidence:
    """Measure how well a model tells apart the clips of films that it was not trained on.

    It is the AUC within films, averaged over films, with the numbers of the clips and films that it is of.

    Parameters
    ----------
    left_out : DataFrame
        Columns clip_id, movie, seed, label and score; scores are by models that did not see the clip's movie.
    p_skilled : float or None
        The posterior probability of skill from the model's calibration.

    Examples
    --------
    >>> films = pd.DataFrame({"clip_id": list("abcdef"), "movie": list("AABBCC"), "seed": 0})
    >>> films = films.assign(label=[0, 1] * 3, score=[0.0, 1.0] * 3)
    >>> evidence = collect_evidence(films, 0.7)
    >>> evidence["auc"], round(evidence["auc_low"], 3), evidence["n_clips"]
    (1.0, 0.292, 6)
    """
    auc_of_movie_and_seed = {}
    has_unvarying_scores = True
    for movie_and_seed, rows in left_out.groupby(["movie", "seed"]):
        scores = rows["score"].to_numpy()
        auc_of_movie_and_seed[movie_and_seed] = auc(rows["label"].to_numpy(), scores)
        has_unvarying_scores = has_unvarying_scores and do_not_vary(scores)
    # More seeds of one movie are no more evidence: they are averaged. The first level of the index is the
    # movie.
    aucs = pd.Series(auc_of_movie_and_seed, dtype=np.float64)
    means_over_seeds = aucs.groupby(level=0).mean()
    # The mean over movies with its 95 % interval; movies of one class have no AUC and are left out.
    interval = auc_interval(means_over_seeds.to_numpy(dtype=np.float64))
    if has_unvarying_scores and not np.isnan(interval.mean):
        # Scores that are equal within each movie have an AUC of .5 whatever movies are drawn: no uncertainty.
        interval = replace(interval, low=UNVARYING_AUC, high=UNVARYING_AUC)
    # The AUC is of the movies with clips of both classes, whose clips are counted. If no movie has both
    # classes, there is no AUC, and all clips are counted.
    movies_with_auc = means_over_seeds.index[means_over_seeds.notna()]
    counted_clips = left_out
    if len(movies_with_auc):
        counted_clips = left_out[left_out["movie"].isin(movies_with_auc)]
    return Evidence(
        n_clips=int(counted_clips["clip_id"].nunique()),
        n_movies=int(counted_clips["movie"].nunique()),
        auc=_none_if_nan(interval.mean),
        auc_low=_none_if_nan(interval.low),
        auc_high=_none_if_nan(interval.high),
        p_skilled=p_skilled,
    )


def _none_if_nan(value: float) -> float | None:
    """Return a number, or None in place of NaN."""
    return None if np.isnan(value) else value


def as_left_out(
    clip_ids: NDArray[np.str_],
    movies: NDArray[np.str_],
    labels: NDArray[np.int64],
    scores: NDArray[np.float64],
) -> pd.DataFrame:
    """Make the table of held-out scores that `collect_evidence` reads, from arrays [N] of one seed.

    The seed is called 0: it only tells apart the scores of several seeds.
    """
    columns = {"clip_id": clip_ids, "movie": movies, "seed": 0, "label": labels, "score": scores}
    return pd.DataFrame(columns)
