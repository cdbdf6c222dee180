"""Score all sentences against all clips of a split, and compute retrieval measures of the scores.

The measures are as published, and with ties and repeated clips handled. Published (CLIP4Clip's metrics, used
by X-CLIP): row i is sorted, and every position whose value equals the diagonal's counts as a rank. Ties
therefore add ranks, and the denominator is the number of ranks. A clip with two sentences has two equal
columns and so causes a tie.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from obygaze_features.text import counted
from obygaze_studies.errors import TrainError
from obygaze_studies.lsmdc.execution import Arithmetic, Processes, tower_precision
from obygaze_studies.lsmdc.samples import Pairs
from obygaze_studies.lsmdc.step import VideoEmbeddings, embed_videos, similarities

N_AT_ONCE = 64
"""Number of sentences, and of clips, that are scored together, as in the original."""

RECALL_RANKS = (1, 5, 10)
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
    clip_ids = list(dict.fromkeys(pairs.clip_ids))  # each clip once
    # This process embeds its share of the clips, and scores its share of the sentences against all clips.
    clips_of_process = clip_ids[processes.share(len(clip_ids))]
    tokens_of_process = pairs.token_ids[processes.share(len(pairs))]
    n_clips = len(clips_of_process)
    total = n_clips + len(tokens_of_process)
    runner = _Runner(network, device, arithmetic)

    embeddings = runner.embed_clips(pairs, clips_of_process, lambda n_done: progress(n_done, total))
    all_embeddings = VideoEmbeddings(
        frames=processes.gather(embeddings.frames, len(clip_ids)),
        videos=processes.gather(embeddings.videos, len(clip_ids)),
    )
    scores_of_process = runner.score_sentences(
        tokens_of_process, all_embeddings, lambda n_done: progress(n_clips + n_done, total)
    )
    scores = processes.gather(scores_of_process, len(pairs))  # [sentences, clips]

    column_of_clip = {clip_id: column for column, clip_id in enumerate(clip_ids)}
    column_of_text = np.array([column_of_clip[clip_id] for clip_id in pairs.clip_ids])
    return measures(scores.cpu().numpy(), column_of_text)


class _Runner(NamedTuple):
    """Runs a network on blocks of clips and of sentences.

    Attributes
    ----------
    network
        The LSMDC X-CLIP.
    device
        Its device.
    arithmetic
        Numeric precision of its towers.
    """

    network: Any
    device: torch.device
    arithmetic: Arithmetic

    def embed_clips(
        self, pairs: Pairs, clip_ids: Sequence[str], progress: Callable[[int], None]
    ) -> VideoEmbeddings:
        """Read and embed clips, block by block; `progress` is called with the number of clips done."""
        blocks = []
        for block in _blocks(len(clip_ids)):
            with tower_precision(self.arithmetic, self.device):
                pixels, mask = pairs.read_clips(clip_ids[block])
                blocks.append(embed_videos(self.network, pixels.to(self.device), mask.to(self.device)))
            progress(block.stop)
        frames = torch.cat([embeddings.frames for embeddings in blocks])
        videos = torch.cat([embeddings.videos for embeddings in blocks])
        return VideoEmbeddings(frames, videos)

    def score_sentences(
        self, tokens: NDArray[np.int64], clips: VideoEmbeddings, progress: Callable[[int], None]
    ) -> torch.Tensor:
        """Score sentences against all clips, block by block.

        Parameters
        ----------
        tokens
            `[N, W]`: tokens of the sentences.
        clips
            Embeddings of V clips.
        progress
            Called with the number of sentences done.

        Returns
        -------
        `[N, V]`, the logits.
        """
        n_clips = len(clips.videos)
        scores = torch.zeros((len(tokens), n_clips), device=self.device)
        for rows in _blocks(len(tokens)):
            with tower_precision(self.arithmetic, self.device):
                tokens_of_block = torch.from_numpy(tokens[rows]).to(self.device)
                sentences, words = self.network.encode_text(tokens_of_block)
                sentences = sentences.float()
                words = words.float()
            for columns in _blocks(n_clips):
                block_scores = similarities(
                    self.network,
                    sentences=sentences,
                    words=words,
                    frames=clips.frames[columns],
                    videos=clips.videos[columns],
                )
                scores[rows, columns] = block_scores["logits"]
            progress(rows.stop)
        return scores


def recall_line(measures: Mapping[str, Any]) -> str:
    """Format the R@1 of an evaluation as one line, with the numbers of sentences and clips it depends on."""
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

    Retrieval ranks clips by their scores with a sentence, and sentences by their scores with a clip. In the
    published code a match whose score ties with others has several ranks, which all count, and a clip with
    several sentences occurs once for each. Tie-safe measures do neither: each match has one rank, with the
    best and the worst that it can be given the ties.

    Parameters
    ----------
    scores
        `[N, V]`, a row for each sentence, a column for each clip.
    column_of_text
        `[N]`: the column of each sentence's clip.

    Returns
    -------
    A nested dictionary. `sentences` and `clips` are their numbers. `published` has the measures of
    `summarise` for each direction, `text_to_video` and `video_to_text`. `tie_safe` has for each direction
    these measures three times: `optimistic`, `mean` and `pessimistic`.

    Raises
    ------
    TrainError
        If a score is NaN.
    """
    undefined = np.argwhere(np.isnan(scores))
    if len(undefined):
        row, column = undefined[0]
        raise TrainError(f"the score of sentence {row} and clip {column} is not a number")

    # The published code has a column for each sentence, so that matches are on the diagonal, and the column
    # of a clip with several sentences occurs several times, [N, N].
    square = scores[:, column_of_text]
    return {
        "sentences": scores.shape[0],
        "clips": scores.shape[1],
        "published": {
            "text_to_video": summarise(published_ranks(square)),
            "video_to_text": summarise(published_ranks(square.T)),
        },
        "tie_safe": {
            "text_to_video": _summarise_ties(text_to_video(scores, column_of_text)),
            "video_to_text": _summarise_ties(video_to_text(scores, column_of_text)),
        },
    }


def _summarise_ties(ranks: Ranks) -> dict[str, dict[str, float]]:
    """Summarise the ranks under each way to rank ties: "optimistic", "mean" and "pessimistic"."""
    return {way: summarise(ranks_of_way) for way, ranks_of_way in ranks.items()}


def _blocks(items: int) -> Iterator[slice]:
    """Yield slices that split a number of items into blocks of at most `N_AT_ONCE`."""
    for start in range(0, items, N_AT_ONCE):
        yield slice(start, min(start + N_AT_ONCE, items))


def published_ranks(scores: NDArray[np.floating[Any]]) -> NDArray[np.int64]:
    """Compute the 0-based rank of each query's match as the published code does.

    The published code finds a rank by comparing sorted scores with the match's score. So a query whose match
    ties with other candidates has several ranks, and one whose match has a score of NaN has none.

    Parameters
    ----------
    scores
        `[N, N]`, queries in rows, matches on the diagonal.

    Returns
    -------
    The ranks of all queries, one after the other; usually N.
    """
    score_of_match = np.diagonal(scores)[:, None]
    descending = -np.sort(-scores, axis=1)
    is_score_of_match = descending == score_of_match
    ranks: NDArray[np.int64]
    _, ranks = np.nonzero(is_score_of_match)  # the columns, which are positions in the sorted scores
    return ranks


def text_to_video(scores: NDArray[np.floating[Any]], column_of_text: NDArray[np.int64]) -> Ranks:
    """Compute the 0-based rank of each text's clip among all clips, by descending score.

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
    """Compute the 0-based rank of each clip's best sentence among the sentences of other clips.

    A clip may have several sentences, of which only the one with the highest score is ranked.

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
    """Summarise ranks: R@1, R@5, R@10 in percent, and the 1-based median and mean rank.

    R@k is the share of queries whose match is among the first k candidates. `ranks` are 0-based, and there is
    usually one for each query.

    Raises
    ------
    TrainError
        There are no ranks, as all scores are NaN.
    """
    if not len(ranks):
        raise TrainError("no score is a number, so nothing can be ranked")
    summary = {f"R@{k}": 100 * float((ranks < k).sum()) / len(ranks) for k in RECALL_RANKS}
    summary["median_rank"] = float(np.median(ranks)) + 1
    summary["mean_rank"] = float(ranks.mean()) + 1
    return summary


def _ranks_with_ties(better: NDArray[Any], equal: NDArray[Any]) -> Ranks:
    """Compute the ranks of N queries from their numbers of better and of equally good candidates, [N] each.

    A tie is ranked in three ways: before all equally good candidates, in their middle, and behind them.
    """
    better = better.astype(float)
    equal = equal.astype(float)
    return {"optimistic": better, "mean": better + equal / 2, "pessimistic": better + equal}
