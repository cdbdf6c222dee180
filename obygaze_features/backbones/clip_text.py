"""`clip-text`: the text half of any CLIP (Radford et al. 2021) or SigLIP (Zhai et al. 2023)."""

from typing import Any

import torch
from torch import nn
from transformers import (
    CLIPConfig,
    CLIPTextConfig,
    CLIPTextModelWithProjection,
    SiglipConfig,
    SiglipTextConfig,
)
from transformers import SiglipTextModel as SiglipText

from obygaze_features.backbones.checkpoint import ATTENTION, check_model_type, load_pretrained, plain_config
from obygaze_features.backbones.clip_siglip import CITATIONS
from obygaze_features.backbones.compute import Compute
from obygaze_features.backbones.text_backbone import TextBackbone
from obygaze_features.backbones.text_runner import TextRunner
from obygaze_features.backbones.tokenizer import Tokenizer
from obygaze_features.backbones.weights import HUB, Weights, find_weights, space_of
from obygaze_features.errors import BackboneError

IMAGE_HALF = (r"vision_model\..*", r"visual_projection\.weight", r"logit_scale", r"logit_bias")
OLD_END = 2
"""A CLIP of this `eos_token_id` takes the highest token for the end, whatever its configuration says."""


def clip_text(*, weights: str = HUB["clip-text"], compute: Compute | None = None) -> TextBackbone:
    """Build the text half of the network whose image half is `clip`; both map to one space."""
    found = find_weights(weights)
    compute = compute or Compute()
    tokenizer, family, config = _prepare(found)
    cls = CLIPTextModelWithProjection if family == "clip" else SiglipText
    model = load_pretrained(cls, found, config, allow_unexpected=IMAGE_HALF)
    return TextBackbone(
        name="clip-text",
        width=config.projection_dim if family == "clip" else config.projection_size,
        tokenize=tokenizer,
        encode=TextRunner(
            "clip-text", Half(model, "text_embeds" if family == "clip" else "pooler_output"), compute
        ),
        provenance={
            "head": "text projection" if family == "clip" else "head over the last token",
            "layer": "text embedding",
            "arrays": {"pooled": "text embedding, not normalised"},
            "space": space_of(family, found),
            **found.record(),
            "architecture": {"type": family, **plain_config(config)},
            "tokenizer": tokenizer.record(),
            "compute": compute.record(ATTENTION),
            "citation": CITATIONS[family],
        },
        libraries=("torch", "transformers", "tokenizers"),
    )


def _prepare(weights: Weights) -> tuple[Tokenizer, str, Any]:
    """Return the tokenizer, the family (`clip` or `siglip`) and the configuration of the text half."""
    if weights.seed is not None:
        raise BackboneError(f"{weights.name}: a text backbone needs a tokenizer; name a folder or repository")
    family, config = text_config(weights)
    tokenizer = Tokenizer(weights, config.max_position_embeddings, pad=family == "siglip")
    if family == "clip":
        check_end(weights, tokenizer, config.eos_token_id)
    return tokenizer, family, config


def check_end(weights: Weights, tokenizer: Tokenizer, end: int) -> None:
    """Refuse a tokenizer whose end token is not the one at which the network reads a text.

    Parameters
    ----------
    end
        `eos_token_id` of the network's configuration.
    """
    (tokens,) = tokenizer(["a"])
    wanted = max(tokens.ids, default=None) if end == OLD_END else end
    if not tokens.ids or tokens.ids[-1] != wanted:
        raise BackboneError(
            f"{weights.name}: the network reads a text at its end token {wanted}, and the tokenizer ends "
            f"texts with {tokens.ids[-1] if tokens.ids else 'nothing'}"
        )


def text_config(weights: Weights) -> tuple[str, Any]:
    """Return the family, `clip` or `siglip`, and the configuration of its text half."""
    folder = str(weights.folder)
    kind = check_model_type(weights, ["clip", "clip_text_model", "siglip", "siglip_text_model"])["model_type"]
    if kind == "clip":
        whole = CLIPConfig.from_pretrained(folder)
        half: Any = whole.text_config
        half.projection_dim = whole.projection_dim  # as for the image half
        return "clip", half
    if kind == "siglip":
        return "siglip", SiglipConfig.from_pretrained(folder).text_config
    cls: Any = CLIPTextConfig if kind == "clip_text_model" else SiglipTextConfig
    return kind.removesuffix("_text_model"), cls.from_pretrained(folder)


class Half(nn.Module):
    """A text network that returns its output of the given name."""

    def __init__(self, model: Any, output: str) -> None:
        super().__init__()
        self.model = model
        self.output = output

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Encode tokens, `[B, L]`."""
        vectors: torch.Tensor = getattr(self.model(input_ids=tokens), self.output)
        return vectors
