"""Compute retrieval measures of a score matrix: as published, and with ties and repeated clips handled.

Published (CLIP4Clip's metrics, used by X-CLIP): row i is sorted, and every position whose value equals the
diagonal's counts as a rank. Ties therefore add ranks, and the denominator is the number of ranks. A clip with
two sentences has two equal columns and so causes a tie.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from obygaze_studies.errors import TrainError

AT = (1, 5, 10)
Ranks = NDArray[np.float64]


def published_ranks(scores: NDArray[np.floating[Any]]) -> NDArray[np.int64]:
    """Compute 0-based ranks as the published code does; there may be more or fewer ranks than rows.

    Parameters
    ----------
    scores
        `[N, N]`, queries in rows, matches on the diagonal. A row with NaN on the diagonal has no rank.
    """
    descending = -np.sort(-scores, axis=1)
    ranks: NDArray[np.int64] = np.nonzero(descending == np.diagonal(scores)[:, None])[1]
    return ranks


@dataclass(frozen=True, slots=True)
class TieSafeRanks:
    """0-based ranks of N queries, each counted once.

    Parameters
    ----------
    optimistic
        Number of candidates that score strictly better than the match.
    mean
        The optimistic rank plus half of the number of ties.
    pessimistic
        The optimistic rank plus the number of ties.
    """

    optimistic: Ranks
    mean: Ranks
    pessimistic: Ranks


def text_to_video(scores: NDArray[np.floating[Any]], own: NDArray[np.int64]) -> TieSafeRanks:
    """Rank each text's clip among all clips.

    Parameters
    ----------
    scores
        `[N, V]`, one column per clip.
    own
        `[N]`: the column of each text's clip.

    Raises
    ------
    TrainError
        If a score is NaN.
    """
    _refuse_nan(scores)
    right = scores[np.arange(len(scores)), own][:, None]
    return _ties((scores > right).sum(axis=1), (scores == right).sum(axis=1) - 1)


def video_to_text(scores: NDArray[np.floating[Any]], own: NDArray[np.int64]) -> TieSafeRanks:
    """Rank each clip's best own sentence among other clips' sentences; otherwise as `text_to_video`."""
    _refuse_nan(scores)
    better, equal = [], []
    for column in range(scores.shape[1]):
        ours = own == column
        best, others = scores[ours, column].max(), scores[~ours, column]
        better.append((others > best).sum())
        equal.append((others == best).sum())
    return _ties(np.array(better), np.array(equal))


def summarise(ranks: NDArray[Any]) -> dict[str, float]:
    """Return R@1, R@5, R@10 in percent, and the 1-based median and mean rank."""
    if not len(ranks):
        raise TrainError("no score is a number, so nothing can be ranked")
    return {f"R@{k}": 100 * float((ranks < k).sum()) / len(ranks) for k in AT} | {
        "median_rank": float(np.median(ranks)) + 1,
        "mean_rank": float(ranks.mean()) + 1,
    }


def measures(scores: NDArray[np.floating[Any]], own: NDArray[np.int64]) -> dict[str, Any]:
    """Measure retrieval in both directions, as published and tie-safe.

    Parameters
    ----------
    scores, own
        As for `text_to_video`.

    Returns
    -------
    `sentences`, `clips`; `published` -> direction -> measures; `tie_safe` -> direction -> `optimistic`,
    `mean`, `pessimistic` -> measures.
    """
    square = scores[:, own]
    both: Mapping[str, TieSafeRanks] = {
        "text_to_video": text_to_video(scores, own),
        "video_to_text": video_to_text(scores, own),
    }
    return {
        "sentences": scores.shape[0],
        "clips": scores.shape[1],
        "published": {
            "text_to_video": summarise(published_ranks(square)),
            "video_to_text": summarise(published_ranks(square.T)),
        },
        "tie_safe": {
            direction: {how: summarise(getattr(ranks, how)) for how in ("optimistic", "mean", "pessimistic")}
            for direction, ranks in both.items()
        },
    }


def _ties(better: NDArray[Any], equal: NDArray[Any]) -> TieSafeRanks:
    better, equal = better.astype(float), equal.astype(float)
    return TieSafeRanks(better, better + equal / 2, better + equal)


def _refuse_nan(scores: NDArray[np.floating[Any]]) -> None:
    if np.isnan(scores).any():
        row, column = np.argwhere(np.isnan(scores))[0]
        raise TrainError(
            f"the score of sentence {row} and clip {column} is not a number: the network is broken"
        )
