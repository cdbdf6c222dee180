"""Score all sentences against all clips of a split, and compute retrieval measures of the scores.

The measures are as published, and with ties and repeated clips handled. Published (CLIP4Clip's metrics, used
by X-CLIP): row i is sorted, and every position whose value equals the diagonal's counts as a rank. Ties
therefore add ranks, and the denominator is the number of ranks. A clip with two sentences has two equal
columns and so causes a tie.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from obygaze_features.text import counted
from obygaze_studies.errors import TrainError
from obygaze_studies.lsmdc.execution import Arithmetic, Processes, tower_precision
from obygaze_studies.lsmdc.samples import Pairs
from obygaze_studies.lsmdc.step import embed_videos, similarities

BLOCK = 64
"""Number of sentences, and of clips, that are scored together, as in the original."""

AT = (1, 5, 10)
"""The k of the measures R@k."""

Ranks = dict[str, NDArray[np.float64]]
"""0-based ranks of N queries, each counted once: `optimistic`, the number of candidates that score strictly
better than the match; `mean`, that and half of the number of ties; `pessimistic`, that and all of them."""


@torch.no_grad()
def evaluate(
    network: Any,
    pairs: Pairs,
    device: torch.device,
    *,
    processes: Processes,
    arithmetic: Arithmetic,
    progress: Callable[[int, int], None],
) -> dict[str, Any]:
    """Measure retrieval on a split; all processes return the same result.

    Parameters
    ----------
    network
        The LSMDC X-CLIP.
    pairs
        The sentences of the split with their clips.
    device
        Device of the network.
    processes
        The processes that share the work.
    arithmetic
        Numeric precision of the towers.
    progress
        Called with the number of clips and sentences that this process has done, and of all of its own.

    Returns
    -------
    As `retrieval.measures`: published measures have one column per sentence, tie-safe ones one per clip.
    """
    clip_ids = list(dict.fromkeys(pairs.clip_ids))
    column = {clip_id: number for number, clip_id in enumerate(clip_ids)}
    column_of_text = np.array([column[clip_id] for clip_id in pairs.clip_ids])
    # This process embeds its share of the clips, and scores its share of the sentences against all clips.
    rows = processes.share(len(pairs))
    own_clips = clip_ids[processes.share(len(clip_ids))]
    own_ids = pairs.ids[rows]
    total = len(own_clips) + len(own_ids)
    encoded = []
    for block in _blocks(len(own_clips)):
        with tower_precision(arithmetic, device):
            pixels, mask = pairs.read_clips(own_clips[block])
            encoded.append(embed_videos(network, pixels.to(device), mask.to(device)))
        progress(block.stop, total)
    own_parts = [torch.cat(tensors) for tensors in zip(*encoded, strict=True)]
    frames, videos = (processes.gather(part, len(clip_ids)) for part in own_parts)
    scores = torch.zeros((len(pairs), len(clip_ids)), device=device)
    for block in _blocks(len(own_ids)):
        with tower_precision(arithmetic, device):
            ids = torch.from_numpy(own_ids[block]).to(device)
            sentences, words = (tensor.float() for tensor in network.encode_text(ids))
        block_rows = slice(rows.start + block.start, rows.start + block.stop)
        for clips in _blocks(len(clip_ids)):
            block_scores = similarities(
                network, sentences=sentences, words=words, frames=frames[clips], videos=videos[clips]
            )
            scores[block_rows, clips] = block_scores["logits"]
        progress(len(own_clips) + block.stop, total)
    processes.add_up([scores])
    return measures(scores.cpu().numpy(), column_of_text)


def in_words(measures: Mapping[str, Any]) -> str:
    """Format the result of an evaluation as one line, with the set sizes it depends on."""
    parts = []
    for direction in ("text_to_video", "video_to_text"):
        published = measures["published"][direction]["R@1"]
        safe = measures["tie_safe"][direction]["mean"]["R@1"]
        parts.append(f"{direction.replace('_', ' ')} R@1 {published:.1f} (tie-safe {safe:.1f})")
    return (
        f"{', '.join(parts)} among {measures['sentences']} sentences of {counted(measures['clips'], 'clip')}"
    )


def measures(scores: NDArray[np.floating[Any]], column_of_text: NDArray[np.int64]) -> dict[str, Any]:
    """Measure retrieval in both directions, as published and tie-safe.

    Parameters
    ----------
    scores, column_of_text
        As for `text_to_video`.

    Returns
    -------
    `sentences`, `clips`; `published` -> direction -> measures; `tie_safe` -> direction -> `optimistic`,
    `mean`, `pessimistic` -> measures.

    Raises
    ------
    TrainError
        If a score is NaN.
    """
    undefined = np.argwhere(np.isnan(scores))
    if len(undefined):
        row, column = undefined[0]
        raise TrainError(f"the score of sentence {row} and clip {column} is not a number")

    def summarise_all(ranks: Ranks) -> dict[str, Any]:
        """Summarise the ranks under each of their names."""
        return {order: summarise(ranks_of_order) for order, ranks_of_order in ranks.items()}

    square = scores[:, column_of_text]
    published = {"text_to_video": published_ranks(square), "video_to_text": published_ranks(square.T)}
    tie_safe = {
        "text_to_video": text_to_video(scores, column_of_text),
        "video_to_text": video_to_text(scores, column_of_text),
    }
    return {
        "sentences": scores.shape[0],
        "clips": scores.shape[1],
        "published": {direction: summarise(ranks) for direction, ranks in published.items()},
        "tie_safe": {direction: summarise_all(ranks) for direction, ranks in tie_safe.items()},
    }


def _blocks(items: int) -> Iterator[slice]:
    """Yield slices that split a number of items into blocks of at most `BLOCK`."""
    for start in range(0, items, BLOCK):
        yield slice(start, min(start + BLOCK, items))


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


def text_to_video(scores: NDArray[np.floating[Any]], column_of_text: NDArray[np.int64]) -> Ranks:
    """Rank each text's clip among all clips.

    Parameters
    ----------
    scores
        `[N, V]`, one column per clip.
    column_of_text
        `[N]`: the column of each text's clip.
    """
    score_of_match = scores[np.arange(len(scores)), column_of_text][:, None]
    n_better = (scores > score_of_match).sum(axis=1)
    n_equal = (scores == score_of_match).sum(axis=1) - 1  # without the match itself
    return _ranks_with_ties(n_better, n_equal)


def video_to_text(scores: NDArray[np.floating[Any]], column_of_text: NDArray[np.int64]) -> Ranks:
    """Rank the best of each clip's sentences among the sentences of other clips.

    Parameters
    ----------
    scores, column_of_text
        As for `text_to_video`.
    """
    n_better = []
    n_equal = []
    for column in range(scores.shape[1]):
        is_of_clip = column_of_text == column
        best = scores[is_of_clip, column].max()
        scores_of_others = scores[~is_of_clip, column]
        n_better.append((scores_of_others > best).sum())
        n_equal.append((scores_of_others == best).sum())
    return _ranks_with_ties(np.array(n_better), np.array(n_equal))


def summarise(ranks: NDArray[Any]) -> dict[str, float]:
    """Return R@1, R@5, R@10 in percent, and the 1-based median and mean rank."""
    if not len(ranks):
        raise TrainError("no score is a number, so nothing can be ranked")
    summary = {f"R@{k}": 100 * float((ranks < k).sum()) / len(ranks) for k in AT}
    summary["median_rank"] = float(np.median(ranks)) + 1
    summary["mean_rank"] = float(ranks.mean()) + 1
    return summary


def _ranks_with_ties(better: NDArray[Any], equal: NDArray[Any]) -> Ranks:
    """Compute ranks from the numbers of better and of equally good candidates of each query, [N] each."""
    better = better.astype(float)
    equal = equal.astype(float)
    return {"optimistic": better, "mean": better + equal / 2, "pessimistic": better + equal}
