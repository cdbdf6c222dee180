"""`openclip-text`: the text half of a CLIP of OpenCLIP (Ilharco et al. 2021)."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import nn

from obygaze_features.backbones.checkpoint import ATTENTION
from obygaze_features.backbones.compute import Compute
from obygaze_features.backbones.openclip import (
    CITATION,
    LIBRARIES,
    configuration,
    find_openclip,
    load_openclip,
)
from obygaze_features.backbones.text_backbone import TextBackbone, Tokens
from obygaze_features.backbones.text_runner import TextRunner
from obygaze_features.backbones.weights import HUB, digest, space_of
from obygaze_features.errors import BackboneError


def openclip_text(*, weights: str = HUB["openclip-text"], compute: Compute | None = None) -> TextBackbone:
    """Build the text half of the network whose image half is `openclip`; both map to one space.

    Parameters
    ----------
    weights
        As for `openclip`.
    """
    found = find_openclip(weights)
    compute = compute or Compute()
    config = configuration(found)
    tokenizer = OpenClipTokenizer(found.name, config["text_cfg"])
    return TextBackbone(
        name="openclip-text",
        width=int(config["embed_dim"]),
        tokenize=tokenizer,
        encode=TextRunner("openclip-text", OpenClipText(load_openclip(found, config)), compute),
        provenance={
            "head": "text projection",
            "layer": "text embedding",
            "arrays": {"pooled": "text embedding, not normalised"},
            "space": space_of("openclip", found),
            **found.record(),
            "architecture": {"type": "openclip", **config},
            "tokenizer": tokenizer.record(),
            "compute": compute.record(ATTENTION),
            "citation": CITATION,
        },
        libraries=(*LIBRARIES, "ftfy", "regex"),
    )


class OpenClipText(nn.Module):
    """The text half of a CLIP of OpenCLIP."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        del model.visual  # not used for texts
        self.model = model

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Encode tokens, `[B, L]` padded with 0."""
        vectors: torch.Tensor = self.model.encode_text(tokens)
        return vectors


class OpenClipTokenizer:
    """OpenCLIP's own tokenizer of byte pairs, with the network's number of tokens.

    Parameters
    ----------
    name
        The weights, for messages.
    config
        The configuration of the text half.

    Raises
    ------
    BackboneError
        If the network was made for another vocabulary.
    """

    def __init__(self, name: str, config: dict[str, Any]) -> None:
        self.limit = int(config.get("context_length", 77))
        self._tokenizer, path = _vocabulary()
        size = config.get("vocab_size", self._tokenizer.vocab_size)
        if size != self._tokenizer.vocab_size:
            raise BackboneError(
                f"{name}: the network has {size} tokens, and OpenCLIP's tokenizer "
                f"{self._tokenizer.vocab_size}: only networks of this tokenizer are read"
            )
        self._digests = {path.name: digest([path])}

    def __call__(self, texts: Sequence[str]) -> list[Tokens]:
        """Turn texts into tokens, cut at the limit and padded with 0 to it."""
        if not texts:
            return []
        ids = self._tokenizer(list(texts), self.limit).tolist()
        # Begin and end tokens count.
        return [
            Tokens(tuple(row), len(self._tokenizer.encode(text)) + 2, self.limit)
            for row, text in zip(ids, texts, strict=True)
        ]

    def record(self) -> dict[str, Any]:
        """Return the digest of its vocabulary and its settings, in the store's terms."""
        return {"sha256": self._digests, "max_tokens": self.limit, "lower_case": True, "padded": True}


@cache
def _vocabulary() -> tuple[Any, Path]:
    """Read OpenCLIP's vocabulary, a second's work; gives its tokenizer and the file."""
    from open_clip import tokenizer  # noqa: PLC0415 - an extra, and slow

    path = tokenizer.default_bpe()
    return tokenizer.SimpleTokenizer(path), Path(path)
