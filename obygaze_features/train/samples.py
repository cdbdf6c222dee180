"""Order the samples of an epoch, and tokenise captions."""

import html
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import ftfy
import numpy as np
import torch
from numpy.typing import NDArray

from obygaze_features.backbones.checkpoint import quiet
from obygaze_features.backbones.tokenizer import load_tokenizer
from obygaze_features.backbones.weights import Weights
from obygaze_features.errors import TrainError

ORDER_SEED = 0  # default of torch's DistributedSampler, which the original keeps


def steps_of_an_epoch(samples: int, batch: int) -> int:
    """Count the full batches of an epoch; the remaining samples are dropped.

    Raises
    ------
    TrainError
        If there is no full batch.
    """
    if samples < batch:
        raise TrainError(
            f"--batch {batch} is more than the {samples} training sentences there are: "
            "not one step could be done"
        )
    return samples // batch


def epoch_order(samples: int, epoch: int) -> list[int]:
    """Permute an epoch's samples as torch's DistributedSampler does; step k takes the k-th batch."""
    generator = torch.Generator().manual_seed(ORDER_SEED + epoch)
    order: list[int] = torch.randperm(samples, generator=generator).tolist()
    return order


def clean_caption(text: str) -> str:
    """Clean a caption as CLIP's preprocessing does: encoding errors, HTML, white space, lower case."""
    text = html.unescape(html.unescape(ftfy.fix_text(text))).strip()
    return re.sub(r"\s+", " ", text).strip().lower()


class CaptionTokenizer:
    """CLIP's tokenizer for training: start, at most `max_words - 2` pieces, end, padded with 0.

    Parameters
    ----------
    weights
        The CLIP, whose folder holds the tokenizer's files.
    vocabulary
        Number of rows of its token embedding.
    max_words
        Tokens per caption, start and end included.

    Raises
    ------
    TrainError
        If the tokenizer is not this CLIP's.
    """

    def __init__(self, weights: Weights, *, vocabulary: int, max_words: int) -> None:
        if weights.folder is None:
            weights = replace(weights, folder=weights.files[0].parent)
        self._tokenizer: Any
        self._tokenizer, self.digests = load_tokenizer(weights)
        self.max_words = max_words
        self.start, self.end = self._tokenizer.bos_token_id, self._tokenizer.eos_token_id
        # The sentence is pooled at the largest id, so this must be the end token.
        if self.start is None or self.end != vocabulary - 1 or len(self._tokenizer) != vocabulary:
            raise TrainError(
                f"{weights.name}: its tokenizer has {len(self._tokenizer)} tokens and ends with {self.end}; "
                f"expected {vocabulary} and {vocabulary - 1}, as the network has them"
            )

    def __call__(self, captions: Sequence[str]) -> NDArray[np.int64]:
        """Return the ids of captions, `[N, max_words]`."""
        ids = np.zeros((len(captions), self.max_words), np.int64)
        if not captions:
            return ids
        with quiet():
            pieces: list[list[int]] = self._tokenizer(
                [clean_caption(caption) for caption in captions], add_special_tokens=False
            )["input_ids"]
        for row, found in zip(ids, pieces, strict=True):
            kept = [self.start, *found[: self.max_words - 2], self.end]
            row[: len(kept)] = kept
        return ids
