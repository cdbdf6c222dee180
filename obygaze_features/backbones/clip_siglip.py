"""`clip`: an image network, frame by frame; any CLIP (Radford et al. 2021) or SigLIP (Zhai et al. 2023).

This is the shortest network module and the template for custom networks.
"""

from dataclasses import replace
from typing import Any

import torch
from torch import nn
from transformers import (
    CLIPConfig,
    CLIPVisionConfig,
    CLIPVisionModelWithProjection,
    SiglipConfig,
    SiglipVisionConfig,
)
from transformers import SiglipVisionModel as SiglipVision

from obygaze_features.backbones.backbone import Backbone
from obygaze_features.backbones.checkpoint import check_model_type, load_pretrained, plain_config
from obygaze_features.backbones.compute import Compute
from obygaze_features.backbones.network import network_backbone
from obygaze_features.backbones.presets import choose_preset
from obygaze_features.backbones.weights import HUB, Weights, find_weights, space_of

TEXT_HALF = (r"text_model\..*", r"text_projection\.weight", r"logit_scale", r"logit_bias")
CITATIONS = {
    "clip": "Radford et al., Learning transferable visual models from natural language supervision, "
    "ICML 2021",
    "siglip": "Zhai et al., Sigmoid loss for language image pre-training, ICCV 2023",
}


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
        Preprocessing; None is `clip` for a CLIP and `siglip` for a SigLIP.
    """
    found = find_weights(weights)
    family, config = vision_config(found)
    cls = CLIPVisionModelWithProjection if family == "clip" else SiglipVision
    model = load_pretrained(cls, found, config, allow_unexpected=TEXT_HALF)
    frames = n_frames or 32
    width = config.projection_dim if family == "clip" else config.hidden_size
    backbone = network_backbone(
        "clip",
        FrameByFrame(model, "image_embeds" if family == "clip" else "pooler_output"),
        n_frames=frames,
        shapes={"frames": (frames, width), "pooled": (width,)},
        meanings={
            "frames": "image embedding of each frame, not normalised",
            "pooled": "its mean over the frames",
        },
        weights=found,
        preset=choose_preset(preset or family, (family, "obygaze12"), size=config.image_size),
        compute=compute or Compute(),
        head="visual projection" if family == "clip" else "attention pooling",
        layer="image embedding",
        architecture={"type": family, **plain_config(config)},
        citation=CITATIONS[family],
    )
    # Both arrays share their space with the text embeddings of the same weights.
    return replace(backbone, provenance={**backbone.provenance, "space": space_of(family, found)})


def vision_config(weights: Weights) -> tuple[str, Any]:
    """Return the family, `clip` or `siglip`, and the configuration of its vision half."""
    if weights.seed is not None:
        return "clip", CLIPVisionConfig(patch_size=16)
    folder = str(weights.folder)
    kind = check_model_type(weights, ["clip", "clip_vision_model", "siglip", "siglip_vision_model"])[
        "model_type"
    ]
    if kind == "clip":
        whole = CLIPConfig.from_pretrained(folder)
        half: Any = whole.vision_config
        half.projection_dim = whole.projection_dim  # in some repositories the half's own copy is outdated
        return "clip", half
    if kind == "siglip":
        return "siglip", SiglipConfig.from_pretrained(folder).vision_config
    cls: Any = CLIPVisionConfig if kind == "clip_vision_model" else SiglipVisionConfig
    return kind.removesuffix("_vision_model"), cls.from_pretrained(folder)


class FrameByFrame(nn.Module):
    """An image network applied to every frame of a clip."""

    def __init__(self, model: Any, output: str) -> None:
        super().__init__()
        self.model = model
        self.output = output

    def forward(self, pixels: torch.Tensor) -> dict[str, torch.Tensor]:
        """Encode clips, `[B, F, 3, h, w]`."""
        vectors = getattr(self.model(pixel_values=pixels.flatten(0, 1)), self.output)
        frames = vectors.view(*pixels.shape[:2], -1)
        return {"frames": frames, "pooled": frames.float().mean(dim=1)}
