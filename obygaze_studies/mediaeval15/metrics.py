"""Compute the measures of both subtasks: a ranking's as trec_eval does, ties included; accuracy.

Clips are ranked by score, the highest first. Tied clips are ranked by their ids, the *last* in byte order
first: with tied scores a measure depends on how files are named.

The measures are those of trec_eval 9, the tool of 2015. It holds scores as float32, so that scores tie which
version 10, with double precision, tells apart; and the two round a share of the relevant clips differently
(`iprec_at_recall` alone).
"""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from obygaze_features.arguments import checked
from obygaze_studies.errors import TaskError

CUTOFFS = (5, 10, 15, 20, 30, 100, 200, 500, 1000)

RECALLS = tuple(tenth / 10 for tenth in range(11))


def held_scores(run: Mapping[str, float]) -> NDArray[np.float64]:
    """Return a run's scores in the precision that they are ranked in.

    Raises
    ------
    TaskError
        A score is not finite, or too large for float32.
    """
    values = np.array(list(run.values()), dtype=np.float64)
    with np.errstate(over="ignore"):
        held = values.astype(np.float32).astype(np.float64)
    for clip_id, value, score in zip(run, values, held, strict=True):
        if not np.isfinite(score):
            too_large = "is too large for float32" if np.isfinite(value) else "is not finite"
            raise TaskError(f"clip {clip_id!r}: score {value} {too_large}")
    return held


@checked
def ranked(run: Mapping[str, float]) -> list[str]:
    """Rank clips by score, descending; ties by id in descending byte order.

    Raises
    ------
    TaskError
        A score is not finite.
    """
    keys = zip(held_scores(run), (clip_id.encode() for clip_id in run), run, strict=True)
    return [clip_id for _, _, clip_id in sorted(keys, reverse=True)]


def tie_share(run: Mapping[str, float]) -> float:
    """Return the share of clips whose score is another clip's too."""
    _, counts = np.unique(held_scores(run), return_counts=True)
    return float(counts[counts > 1].sum() / max(len(run), 1))


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
        0 without a relevant clip, as the tool says.

    Raises
    ------
    TaskError
        A score is not finite.
    """
    return measures(run, qrels)["map"]


@checked
def measures(run: Mapping[str, float], qrels: Mapping[str, int]) -> dict[str, float]:
    """Compute trec_eval's measures of one topic, by the tool's names.

    Besides `map` there are `P_k` and `recall_k` (k clips looked at, whether the run has so many or not),
    `Rprec`, `bpref` (judged clips only), `recip_rank`, `iprec_at_recall_r` and counts.

    Raises
    ------
    TaskError
        A score is not finite.
    """
    judged = np.array([qrels.get(clip_id, -1) for clip_id in ranked(run)], dtype=np.int64)
    relevant = judged >= 1
    n_found = np.cumsum(relevant)
    ranks = np.arange(1, len(judged) + 1)
    n_relevant = sum(value >= 1 for value in qrels.values())
    n_rejected = sum(value == 0 for value in qrels.values())
    places = np.flatnonzero(relevant)
    precision = n_found / ranks

    def found_by(k: int) -> int:
        return int(n_found[min(k, len(n_found)) - 1]) if len(n_found) and k else 0

    result: dict[str, float] = {
        "num_ret": len(judged),
        "num_rel": n_relevant,
        "num_rel_ret": len(places),
        "map": float(precision[places].sum() / n_relevant) if n_relevant else 0.0,
        "Rprec": found_by(n_relevant) / max(n_relevant, 1),
        "bpref": _bpref(judged[judged >= 0], n_relevant, n_rejected),
        "recip_rank": 1 / (int(places[0]) + 1) if len(places) else 0.0,
    }
    for recall in RECALLS:
        # Version 9 adds 0.9 and cuts off the fraction.
        n_wanted = int(recall * n_relevant + 0.9)
        beyond = n_wanted > len(places) or not len(places)
        from_rank = 0 if beyond or not n_wanted else places[n_wanted - 1]
        result[f"iprec_at_recall_{recall:.2f}"] = 0.0 if beyond else float(precision[from_rank:].max())
    for k in CUTOFFS:
        result[f"P_{k}"] = found_by(k) / k
    for k in CUTOFFS:
        result[f"recall_{k}"] = found_by(k) / max(n_relevant, 1)
    return result


def _bpref(judged: NDArray[np.int64], n_relevant: int, n_rejected: int) -> float:
    """Binary preference (Buckley and Voorhees 2004): how few rejected clips stand above each relevant one."""
    if not n_relevant:
        return 0.0
    above = np.cumsum(judged == 0)[judged >= 1]
    return float((1 - np.minimum(above, n_relevant) / max(min(n_rejected, n_relevant), 1)).sum() / n_relevant)


@checked
def accuracy(called: Mapping[str, str], truth: Mapping[str, str]) -> tuple[dict[str, float], float, int]:
    """Compare the classes that a run calls with the true ones, by clip id; `truth` must not be empty.

    Returns
    -------
    values : dict of str to float
        `accuracy_all`, the share of all clips, a missing one counting as wrong; `accuracy_returned`, of the
        returned ones, the paper's words, which rewards leaving out difficult clips; `coverage`, the share
        returned: only at 1 is an accuracy official, as both agree; and the counts behind them.
    majority : float
        Accuracy of calling every clip the class that is the most frequent among those with a known class.
    unknown : int
        Clips of the run without a known class; they count nowhere.
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
    return values, max(Counter(truth.values()).values()) / len(truth), len(called) - len(returned)


@checked
def confusion(
    called: Mapping[str, str], truth: Mapping[str, str], classes: Sequence[str]
) -> NDArray[np.int64]:
    """Count the clips of each true class (rows) that are called each class (columns)."""
    counts = np.zeros((len(classes), len(classes)), dtype=np.int64)
    for clip_id, name in called.items():
        if clip_id in truth:
            counts[classes.index(truth[clip_id]), classes.index(name)] += 1
    return counts
