"""`xclip-text`: the text half of X-CLIP (Ni et al. 2022), in the space of `xclip`'s video vectors.

The network's own classifier adds a prompt to each text that depends on the video (their section 3.3). A
store's text vector cannot depend on a video, so it is the text embedding before that prompt.
"""

from typing import Any

import torch
from torch import nn
from transformers import XCLIPConfig, XCLIPModel

from obygaze_features.backbones.checkpoint import ATTENTION, check_model_type, load_pretrained, plain_config
from obygaze_features.backbones.clip_text import check_end
from obygaze_features.backbones.compute import Compute
from obygaze_features.backbones.text_backbone import TextBackbone
from obygaze_features.backbones.text_runner import TextRunner
from obygaze_features.backbones.tokenizer import Tokenizer
from obygaze_features.backbones.weights import HUB, find_weights, space_of
from obygaze_features.backbones.xclip import CITATION
from obygaze_features.errors import BackboneError


def xclip_text(*, weights: str = HUB["xclip-text"], compute: Compute | None = None) -> TextBackbone:
    """Build the text half of the network whose visual half is `xclip`; both map to one space."""
    found = find_weights(weights)
    compute = compute or Compute()
    if found.seed is not None:
        raise BackboneError(f"{found.name}: a text backbone needs a tokenizer; name a folder or repository")
    check_model_type(found, ["xclip"])
    config = XCLIPConfig.from_pretrained(str(found.folder))
    text: Any = config.text_config
    tokenizer = Tokenizer(found, text.max_position_embeddings)
    check_end(found, tokenizer, text.eos_token_id)
    # The whole model: transformers loads nothing from it into the halves alone.
    model: Any = load_pretrained(XCLIPModel, found, config)
    return TextBackbone(
        name="xclip-text",
        width=config.projection_dim,
        tokenize=tokenizer,
        encode=TextRunner("xclip-text", XClipText(model), compute),
        provenance={
            "head": "text projection",
            "layer": "text embedding",
            "arrays": {"pooled": "text embedding before video-specific prompts, not normalised"},
            "space": space_of("xclip", found),
            **found.record(),
            "architecture": {"type": "xclip", "projection_dim": config.projection_dim, **plain_config(text)},
            "tokenizer": tokenizer.record(),
            "compute": compute.record(ATTENTION),
            "citation": CITATION,
        },
        libraries=("torch", "transformers", "tokenizers"),
    )


class XClipText(nn.Module):
    """The text half of an X-CLIP."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.text_model = model.text_model
        self.text_projection = model.text_projection

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Encode tokens, `[B, L]`."""
        vectors: torch.Tensor = self.text_projection(self.text_model(input_ids=tokens).pooler_output)
        return vectors
