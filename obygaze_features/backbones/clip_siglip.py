"""`clip` and `clip-text`: both halves of any CLIP or SigLIP.

CLIP is of Radford et al. (2021), SigLIP of Zhai et al. (2023), SigLIP 2 of Tschannen et al. (2025).
The image half, frame by frame, is the shortest network and the template for custom networks.
"""

from pathlib import Path
from typing import Any, Literal

import torch
from PIL.Image import Resampling
from torch import nn
from transformers import (
    CLIPTextModelWithProjection,
    CLIPVisionConfig,
    CLIPVisionModelWithProjection,
)
from transformers import SiglipTextModel as SiglipText
from transformers import SiglipVisionModel as SiglipVision

from obygaze_features.backbones.backbone import Backbone, LoadedNetwork, TextBackbone
from obygaze_features.backbones.checkpoint import auto_config, load_pretrained, plain_config
from obygaze_features.backbones.compute import Compute
from obygaze_features.backbones.network import (
    FRAME_BY_FRAME,
    FrameByFrame,
    network_backbone,
    text_backbone,
)
from obygaze_features.backbones.presets import choose_preset
from obygaze_features.backbones.processor import preset_of_processor, read_processor
from obygaze_features.backbones.tokenizer import Tokenizer, check_end, refuse_untrained
from obygaze_features.backbones.weights import (
    HUB,
    TOKENIZER_CONFIG,
    Weights,
    find_weights,
    object_beside,
    space_of,
)

TEXT_HALF = (r"text_model\..*", r"text_projection\.weight", r"logit_scale", r"logit_bias")
IMAGE_HALF = (r"vision_model\..*", r"visual_projection\.weight", r"logit_scale", r"logit_bias")
CITATIONS = {
    "clip": "Radford et al., Learning transferable visual models from natural language supervision, "
    "ICML 2021",
    "siglip": "Zhai et al., Sigmoid loss for language image pre-training, ICCV 2023",
    "siglip2": "Tschannen et al., SigLIP 2: Multilingual vision-language encoders with improved semantic "
    "understanding, localization, and dense features, arXiv:2502.14786, 2025",
}
PRESETS_OF = {"clip": ("clip",), "siglip": ("siglip", "siglip2"), "siglip2": ("siglip2", "siglip")}
"""Generation -> the presets that its processor may ask for, the usual one first."""
GEMMA = ("GemmaTokenizer", "Siglip2Tokenizer")
"""Tokenizers of SigLIP 2, in repositories and in newer transformers."""


def clip(
    n_frames: int | None = None,
    *,
    weights: str = HUB["clip"],
    preset: str | None = None,
    compute: Compute | None = None,
) -> Backbone:
    """Build a frame-wise image network.

    Parameters
    ----------
    n_frames
        Frames per clip, any number; None is 32.
    preset
        Preprocessing; None is what the processor's configuration beside the weights asks for, or without one
        `clip` for a CLIP and `siglip` or `siglip2` for a SigLIP.
    """
    source = find_weights(weights)
    family, config = half_config(source, "vision")
    generation = generation_of(source, family)
    presets = PRESETS_OF[generation]
    if preset is None:
        preset = preset_of_processor(source, presets, size=config.image_size)
    cls = CLIPVisionModelWithProjection if family == "clip" else SiglipVision
    model = load_pretrained(cls, source, config, allow_unexpected=TEXT_HALF)
    frames = n_frames or 32
    width = config.projection_dim if family == "clip" else config.hidden_size
    return network_backbone(
        "clip",
        FrameByFrame(model, "image_embeds" if family == "clip" else "pooler_output"),
        n_frames=frames,
        shapes={"frames": (frames, width), "pooled": (width,)},
        meanings=FRAME_BY_FRAME,
        weights=source,
        preset=choose_preset(preset, (*presets, "obygaze12"), size=config.image_size),
        compute=compute or Compute(),
        head="visual projection" if family == "clip" else "attention pooling",
        layer="image embedding",
        architecture={"type": family, **plain_config(config)},
        citation=CITATIONS[generation],
        # Both arrays share their space with the text embeddings of the same weights.
        space=space_of(family, source),
    )


def clip_network(weights: str | Path | Weights) -> LoadedNetwork:
    """Load the image half of a CLIP itself; its output has `image_embeds`, `[B, D]`."""
    source = find_weights(weights)
    source.config_of_type(["clip"])
    _, config = half_config(source, "vision")
    name = preset_of_processor(source, ("clip",), size=config.image_size)
    module = load_pretrained(CLIPVisionModelWithProjection, source, config, allow_unexpected=TEXT_HALF)
    return LoadedNetwork(module, source, choose_preset(name, ("clip",), size=config.image_size))


def generation_of(weights: Weights, family: str) -> str:
    """Return the family, or `siglip2` where tokenizer or processor are those of SigLIP 2.

    `config.json` has one type for both generations of SigLIP. Only the second has Gemma's tokenizer and
    resizes by the bilinear filter (Tschannen et al. 2025; the repositories of Google).
    """
    if family != "siglip":
        return family
    tokenizer = str(object_beside(weights, TOKENIZER_CONFIG).get("tokenizer_class")).removesuffix("Fast")
    second = tokenizer in GEMMA or read_processor(weights).get("resample") == Resampling.BILINEAR
    return "siglip2" if second else family


def half_config(weights: Weights, half: Literal["vision", "text"]) -> tuple[str, Any]:
    """Return the family, `clip` or `siglip`, and the configuration of one half of the network."""
    if weights.seed is not None:
        return "clip", CLIPVisionConfig(patch_size=16)
    kinds = ("clip", f"clip_{half}_model", "siglip", f"siglip_{half}_model")
    kind = weights.config_of_type(kinds)["model_type"]
    family, config = kind.partition("_")[0], auto_config(weights)
    if kind != family:
        return family, config
    own = getattr(config, f"{half}_config")
    if family == "clip":
        own.projection_dim = config.projection_dim  # in some repositories the half's own copy is outdated
    return family, own


def clip_text(*, weights: str = HUB["clip-text"], compute: Compute | None = None) -> TextBackbone:
    """Build the text half of the network whose image half is `clip`; both map to one space."""
    source = find_weights(weights)
    tokenizer, family, config = _prepare(source)
    cls = CLIPTextModelWithProjection if family == "clip" else SiglipText
    model = load_pretrained(cls, source, config, allow_unexpected=IMAGE_HALF)
    return text_backbone(
        "clip-text",
        TextHalf(model, "text_embeds" if family == "clip" else "pooler_output"),
        width=config.projection_dim if family == "clip" else config.projection_size,
        tokenizer=tokenizer,
        weights=source,
        space=family,
        compute=compute,
        head="text projection" if family == "clip" else "head over the last token",
        meaning="text embedding, not normalised",
        architecture={"type": family, **plain_config(config)},
        citation=CITATIONS[generation_of(source, family)],
    )


def _prepare(weights: Weights) -> tuple[Tokenizer, str, Any]:
    """Return the tokenizer, the family (`clip` or `siglip`) and the configuration of the text half."""
    refuse_untrained(weights)
    family, config = half_config(weights, "text")
    tokenizer = Tokenizer(weights, config.max_position_embeddings, pad=family == "siglip")
    # SigLIP 2 was trained on lower case, and Gemma's tokenizer ignores its own do_lower_case.
    trained_lower = generation_of(weights, family) == "siglip2"
    asked = object_beside(weights, TOKENIZER_CONFIG).get("do_lower_case", trained_lower)
    tokenizer.lower = bool(asked) and tokenizer.sees_case()
    if family == "clip":
        check_end(weights, tokenizer, config.eos_token_id)
    return tokenizer, family, config


class TextHalf(nn.Module):
    """A text network that returns its output of the given name."""

    def __init__(self, model: Any, output: str) -> None:
        super().__init__()
        self.model = model
        self.output = output

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Encode tokens, `[B, L]`."""
        vectors: torch.Tensor = getattr(self.model(input_ids=tokens), self.output)
        return vectors
