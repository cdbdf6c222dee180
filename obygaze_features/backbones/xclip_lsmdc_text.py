"""`xclip-lsmdc-text`: the text half of the LSMDC X-CLIP (Ma et al. 2022), in the space of its video vectors.

The network compares a sentence s with a video vector v by s^T G v, G a learnt matrix (their section 3.2). The
stored vector is G^T s of the unit s, so that its dot product with `pooled` of `xclip-lsmdc` is that score.
The three other scores need every word and every frame; `xclip_lsmdc_scores.similarities` computes all four.
"""

from typing import Any

import torch
from torch import nn
from torch.nn.functional import normalize

from obygaze_features.backbones.checkpoint import ATTENTION
from obygaze_features.backbones.compute import Compute
from obygaze_features.backbones.text_backbone import TextBackbone
from obygaze_features.backbones.text_runner import TextRunner
from obygaze_features.backbones.tokenizer import CaptionTokenizer
from obygaze_features.backbones.weights import find_weights, space_of
from obygaze_features.backbones.xclip_lsmdc import CITATION, load, training_record
from obygaze_features.backbones.xclip_lsmdc_network import XClipLsmdc
from obygaze_features.errors import BackboneError


def xclip_lsmdc_text(*, weights: str | None = None, compute: Compute | None = None) -> TextBackbone:
    """Build the text half of the network whose visual half is `xclip-lsmdc`; both map to one space.

    Parameters
    ----------
    weights
        As for `xclip-lsmdc`, with CLIP's tokenizer (vocab.json, merges.txt, tokenizer_config.json) beside the
        file or in the folder. `obygaze train` puts it there.
    """
    if weights is None:
        raise BackboneError("backbone 'xclip-lsmdc-text' has no public weights: name a checkpoint file")
    found = find_weights(weights)
    if found.seed is not None:
        raise BackboneError(f"{found.name}: a text backbone needs a tokenizer; name a file or folder")
    compute = compute or Compute()
    network, size = load(found)
    tokenizer = CaptionTokenizer(found, vocabulary=size.vocabulary, max_words=size.max_words)
    trained = training_record(found)
    return TextBackbone(
        name="xclip-lsmdc-text",
        width=size.embed,
        tokenize=tokenizer.tokens,
        encode=TextRunner("xclip-lsmdc-text", XClipLsmdcText(network), compute),
        provenance={
            "head": "text projection and matrix of the video-sentence score",
            "layer": "sentence embedding",
            "arrays": {"pooled": "unit sentence embedding times the matrix of the video-sentence score"},
            "space": space_of("xclip-lsmdc", found),
            **found.record(),
            "architecture": size.record(),
            "tokenizer": tokenizer.record(),
            "compute": compute.record(ATTENTION),
            "citation": CITATION,
            **({"training": trained} if trained else {}),
        },
        libraries=("torch", "transformers", "tokenizers", "ftfy"),
    )


class XClipLsmdcText(nn.Module):
    """The text half, with the matrix that compares sentences with videos."""

    def __init__(self, network: XClipLsmdc) -> None:
        super().__init__()
        del network.vision, network.temporal  # not used for texts
        self.network: Any = network

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Encode tokens, `[B, W]` padded with 0."""
        sentences, _ = self.network.encode_text(tokens)
        vectors: torch.Tensor = normalize(sentences, dim=-1) @ self.network.global_mat_weight
        return vectors
