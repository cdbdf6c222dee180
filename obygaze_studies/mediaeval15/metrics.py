"""Compute the measures of both subtasks: those of rankings exactly as trec_eval does, and accuracy.

Clips are ranked by score, the highest first. Tied clips are ranked by their ids, the *last* in byte order
first: with tied scores, a measure depends on how files are named.

The measures are those of trec_eval 9, the tool of 2015. It holds scores as float32, so that some scores tie
which differ in version 10 with its double precision. The versions also round a share of the relevant clips
differently, which changes only `iprec_at_recall`.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from obygaze_features.arguments import checked
from obygaze_studies.errors import TaskError

CUTOFFS = (5, 10, 15, 20, 30, 100, 200, 500, 1000)
"""Numbers of top clips at which precision and recall are measured."""

RECALLS = tuple(tenth / 10 for tenth in range(11))
"""Levels of recall at which interpolated precision is measured."""


def scores_as_ranked(run: Mapping[str, float]) -> NDArray[np.float64]:
    """Round the scores of a run to float32, the precision in which trec_eval 9 ranks them.

    Parameters
    ----------
    run
        Clip id -> score.

    Returns
    -------
    The N rounded scores, as float64.

    Raises
    ------
    TaskError
        A score is not finite, or too large for float32.
    """
    values = np.array(list(run.values()), dtype=np.float64)
    with np.errstate(over="ignore"):
        rounded = values.astype(np.float32).astype(np.float64)
    for clip_id, value, score in zip(run, values, rounded, strict=True):
        if not np.isfinite(score):
            problem = "is too large for float32" if np.isfinite(value) else "is not finite"
            raise TaskError(f"clip {clip_id!r}: score {value} {problem}")
    return rounded


@checked
def ranked(run: Mapping[str, float]) -> list[str]:
    """List the clip ids of a run by descending score, tied clips by descending byte order of their ids.

    Raises
    ------
    TaskError
        A score is not finite.
    """
    score_of = dict(zip(run, scores_as_ranked(run), strict=True))
    return sorted(run, key=lambda clip_id: (score_of[clip_id], clip_id.encode()), reverse=True)


def tie_share(run: Mapping[str, float]) -> float:
    """Compute the share of clips whose score is equal to that of another clip, in float32; 0 without clips.

    `run` is clip id -> score.
    """
    _, n_clips_of_score = np.unique(scores_as_ranked(run), return_counts=True)
    n_tied = n_clips_of_score[n_clips_of_score > 1].sum()
    return float(n_tied / max(len(run), 1))


@checked
def average_precision(run: Mapping[str, float], qrels: Mapping[str, int]) -> float:
    """Compute trec_eval's average precision (`map` of one topic).

    AP is the sum over retrieved relevant clips of (relevant so far / rank), over all relevant clips.

    Parameters
    ----------
    run
        Score by clip id.
    qrels
        Relevance by clip id: relevant from 1 on. Clips of the run that are not here count as not relevant;
        relevant clips that the run lacks add 0.

    Returns
    -------
    float
        0 without a relevant clip, as trec_eval returns.

    Raises
    ------
    TaskError
        A score is not finite.
    """
    return measures(run, qrels)["map"]


@checked
def measures(run: Mapping[str, float], qrels: Mapping[str, int]) -> dict[str, float]:
    """Compute trec_eval's measures of one topic, under the tool's names.

    All are computed from the ranked list of the run's clips:

    - `num_ret`, `num_rel`, `num_rel_ret`: numbers of clips in the run, of relevant ones, and of those in it;
    - `map`: average precision;
    - `Rprec`: precision at as many clips as are relevant;
    - `bpref`: how few rejected clips precede relevant ones, of judged clips only;
    - `recip_rank`: 1 / rank of the first relevant clip;
    - `iprec_at_recall_r`: highest precision at recall r or more;
    - `P_k`, `recall_k`: precision and recall of the first k clips, even if the run has fewer.

    Parameters
    ----------
    run
        Score by clip id.
    qrels
        Relevance by clip id: relevant from 1 on, 0 is judged not relevant (rejected), and negative is not
        judged. A clip of the run that is not here is not judged either.

    Raises
    ------
    TaskError
        A score is not finite.
    """
    # Relevance of the clips in the order of their ranks, -1 for a clip that is not judged.
    relevance = np.array([qrels.get(clip_id, -1) for clip_id in ranked(run)], dtype=np.int64)
    is_relevant = relevance >= 1
    indices_of_relevant = np.flatnonzero(is_relevant)
    n_relevant_so_far = np.cumsum(is_relevant)
    ranks = np.arange(1, len(relevance) + 1)
    precision = n_relevant_so_far / ranks
    n_relevant = sum(value >= 1 for value in qrels.values())  # in the run or not
    n_rejected = sum(value == 0 for value in qrels.values())  # likewise; a negative value is not judged

    def n_relevant_in_first(k: int) -> int:
        """Count the relevant ones among the first k clips; of a shorter run, among all."""
        return int(np.count_nonzero(is_relevant[:k]))

    # Measures are 0 where nothing is relevant, as in trec_eval.
    average_of_precision = 0.0
    if n_relevant:
        average_of_precision = float(precision[indices_of_relevant].sum() / n_relevant)
    reciprocal_rank = 0.0
    if len(indices_of_relevant):
        reciprocal_rank = 1 / (int(indices_of_relevant[0]) + 1)

    result: dict[str, float] = {
        "num_ret": len(relevance),
        "num_rel": n_relevant,
        "num_rel_ret": len(indices_of_relevant),
        "map": average_of_precision,
        "Rprec": n_relevant_in_first(n_relevant) / max(n_relevant, 1),
        "bpref": _bpref(relevance[relevance >= 0], n_relevant, n_rejected),
        "recip_rank": reciprocal_rank,
    }
    for recall in RECALLS:  # 0, 0.1, ..., 1
        # trec_eval 9 rounds in this way: it adds 0.9 and cuts off the fraction.
        n_wanted = int(recall * n_relevant + 0.9)
        interpolated = _interpolated_precision(precision, indices_of_relevant, n_wanted)
        result[f"iprec_at_recall_{recall:.2f}"] = interpolated
    for k in CUTOFFS:
        result[f"P_{k}"] = n_relevant_in_first(k) / k
    for k in CUTOFFS:
        result[f"recall_{k}"] = n_relevant_in_first(k) / max(n_relevant, 1)
    return result


def _interpolated_precision(
    precision: NDArray[np.float64], indices_of_relevant: NDArray[np.intp], n_wanted: int
) -> float:
    """Compute the highest precision of the first k clips, for any k that includes `n_wanted` relevant ones.

    It is 0 if the run has fewer relevant clips, or none at all.

    Parameters
    ----------
    precision
        Precision of the first k clips of the run, for each k.
    indices_of_relevant
        Where the relevant clips are in the run, from 0.
    n_wanted
        Number of relevant clips.
    """
    if n_wanted > len(indices_of_relevant) or not len(indices_of_relevant):
        return 0.0
    first_index = 0  # of the clip with which the run has as many relevant ones as wanted
    if n_wanted:
        first_index = int(indices_of_relevant[n_wanted - 1])
    return float(precision[first_index:].max())


def _bpref(relevance: NDArray[np.int64], n_relevant: int, n_rejected: int) -> float:
    """Compute binary preference (Buckley and Voorhees 2004): how few rejected clips precede relevant ones.

    With R relevant and N rejected (judged, but not relevant) clips, bpref is 1 / R times the sum, over the
    relevant clips of the run, of 1 - min(rejected clips before it, R) / min(N, R). It is 0 if R is 0.

    Parameters
    ----------
    relevance
        Relevance of the judged clips of the run, in the order of their ranks: 0, or relevant from 1 on.
    n_relevant, n_rejected
        R and N: clips that the run lacks count too.
    """
    if not n_relevant:
        return 0.0
    n_rejected_before = np.cumsum(relevance == 0)[relevance >= 1]  # of each relevant clip in the run
    # As in trec_eval, at most as many rejected clips count as there are relevant ones.
    n_counted_before = np.minimum(n_rejected_before, n_relevant)
    n_counted = max(min(n_rejected, n_relevant), 1)
    preferences = 1 - n_counted_before / n_counted
    return float(preferences.sum() / n_relevant)


class Accuracy(NamedTuple):
    """How the classes that a run calls compare with the true ones.

    Attributes
    ----------
    values : dict of str to float
        `accuracy_all`: the share of correct calls among all clips; a missing clip counts as wrong.
        `accuracy_returned`: their share among the clips of the run. These are the paper's words, but it
        rewards leaving out difficult clips.
        `coverage`: the share of clips that the run has. An accuracy is official only if it is 1, when both
        accuracies agree.
        `num_clips`, `num_returned`, `num_correct`: the counts behind these.
    majority : float
        Accuracy of calling every clip the most frequent class.
    n_unknown : int
        Number of clips of the run without a known class; they are not counted in `values`.
    """

    values: dict[str, float]
    majority: float
    n_unknown: int


@checked
def accuracy(called: Mapping[str, str], truth: Mapping[str, str]) -> Accuracy:
    """Compare the classes that a run calls (predicts) with the true ones.

    Parameters
    ----------
    called, truth
        Clip id -> class; `truth` must not be empty.

    Returns
    -------
    Accuracy
    """
    returned = [clip_id for clip_id in called if clip_id in truth]
    correct = sum(called[clip_id] == truth[clip_id] for clip_id in returned)
    values = {
        "accuracy_all": correct / len(truth),
        "accuracy_returned": correct / len(returned) if returned else float("nan"),
        "coverage": len(returned) / len(truth),
        "num_clips": len(truth),
        "num_returned": len(returned),
        "num_correct": correct,
    }
    majority = max(Counter(truth.values()).values()) / len(truth)
    n_unknown = len(called) - len(returned)
    return Accuracy(values, majority, n_unknown)


@checked
def confusion(
    called: Mapping[str, str], truth: Mapping[str, str], classes: Sequence[str]
) -> NDArray[np.int64]:
    """Count the clips by their true class (rows) and the class that the run calls (columns).

    Parameters
    ----------
    called, truth
        Clip id -> class. Clips without a true class are not counted.
    classes
        The classes, in the order of rows and columns.
    """
    counts = np.zeros((len(classes), len(classes)), dtype=np.int64)
    for clip_id, name in called.items():
        if clip_id in truth:
            counts[classes.index(truth[clip_id]), classes.index(name)] += 1
    return counts
