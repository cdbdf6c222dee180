"""Compute the four text-video similarities of X-CLIP for retrieval (Ma et al. 2022, sections 3.2, 3.3)."""

from typing import Any

import torch
from torch.nn.functional import normalize

TEMPERATURE = 0.01


def similarities(
    network: Any,
    *,
    sentences: torch.Tensor,
    words: torch.Tensor,
    frames: torch.Tensor,
    videos: torch.Tensor,
) -> dict[str, torch.Tensor]:
    """Score every caption against every video, each score times exp(logit_scale).

    Parameters
    ----------
    network
        An `XClipLsmdc`, for its matrices.
    sentences, words
        `[N, E]` and `[N, W, E]`, as `encode_text` gives them.
    frames
        v, `[B, F, E]`, as `encode_frames` gives it: the losses use it and not u, and padded frames take part.
    videos
        `[B, E]`, as `video_vector` gives it.

    Returns
    -------
    `video_sentence`, `video_word`, `sentence_frame`, `frame_word` and their mean `logits`, each `[N, B]`.
    """
    sentences, words, frames = (normalize(x, dim=-1) for x in (sentences, words, frames))
    by_word = torch.einsum("nwe,be->nbw", words, videos)
    by_frame = torch.einsum("ne,bfe->nbf", sentences, frames)
    fine = torch.einsum("nwe,ed,bfd->nbwf", words, network.local_mat_weight, frames)
    over_words = attend(fine.transpose(2, 3), network.word_mat_weight)
    over_frames = attend(fine, network.frame_mat_weight)
    scores = {
        "video_sentence": sentences @ network.global_mat_weight @ videos.T,
        "video_word": attend(by_word, network.word_logit_weight),
        "sentence_frame": attend(by_frame, network.frame_logit_weight),
        "frame_word": (
            attend(over_words, network.frame_mat_weight2) + attend(over_frames, network.word_mat_weight2)
        )
        / 2,
    }
    scores["logits"] = torch.stack(list(scores.values())).mean(dim=0)
    scale = network.logit_scale.exp()
    return {name: score * scale for name, score in scores.items()}


def attend(similarity: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
    """Sum up the last axis by attention over the similarities: sum_i (softmax(x / 0.01) M)_i x_i."""
    return ((similarity / TEMPERATURE).softmax(dim=-1) @ matrix * similarity).sum(dim=-1)
