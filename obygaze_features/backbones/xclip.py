"""`xclip`: X-CLIP (Ni et al., ECCV 2022), CLIP with attention across frames, trained on Kinetics-400.

Token flow, for T frames: every frame goes through the vision transformer, whose message tokens attend to each
other across the frames; the class token is projected, c `[T, 512]`; the multi-frame integration transformer
(MIT) gives t = layer(c + position) + c, `[T, 512]`; the video vector is the mean of t over the frames, as in
`XCLIPModel.get_video_features`.
"""

from collections.abc import Mapping
from typing import Any, Literal

import torch
from torch import nn
from transformers import XCLIPConfig, XCLIPModel

from obygaze_features.backbones.backbone import Backbone
from obygaze_features.backbones.checkpoint import check_model_type, load_pretrained, plain_config
from obygaze_features.backbones.compute import Compute
from obygaze_features.backbones.network import network_backbone
from obygaze_features.backbones.presets import choose_preset
from obygaze_features.backbones.weights import HUB, find_weights
from obygaze_features.errors import BackboneError

CITATION = "Ni et al., Expanding language-image pretrained models for general video recognition, ECCV 2022"
MEANINGS = {
    "frames": "output of the multi-frame integration transformer, one a frame",
    "pooled": "mean of it over the frames, the published video vector",
}
TOKENS = {
    "frames": "projected class token of each frame, before the multi-frame integration transformer",
    "patches": "last hidden state of the vision transformer before its last normalisation, "
    "without the class token, frame by frame and row by row",
}


def xclip(
    n_frames: int | None = None,
    *,
    weights: str = HUB["xclip"],
    preset: str = "obygaze12",
    tokens: Literal["none", "frames", "patches"] = "none",
    compute: Compute | None = None,
) -> Backbone:
    """Build X-CLIP.

    Parameters
    ----------
    n_frames
        Must be what the network was made for (32 for the default one), since its frames are mixed.
    tokens
        What to store beside frames and pooled: `frames`, c `[T, 512]`, or `patches`, `[T * 196, 768]`.
    """
    found = find_weights(weights)
    config = XCLIPConfig(vision_config={"patch_size": 16, "num_frames": 32})
    if found.seed is None:
        check_model_type(found, ["xclip"])
        config = XCLIPConfig.from_pretrained(str(found.folder))
    model: Any = load_pretrained(XCLIPModel, found, config)
    vision: Any = config.vision_config
    frames = check_frames("xclip", n_frames, vision.num_frames)
    patches = (vision.image_size // vision.patch_size) ** 2
    width = config.projection_dim
    shapes: dict[str, tuple[int, ...]] = {"frames": (frames, width), "pooled": (width,)}
    if tokens != "none":
        extra = {"frames": (frames, width), "patches": (frames * patches, vision.hidden_size)}
        shapes["tokens"] = choose_tokens("xclip", tokens, extra)
    return network_backbone(
        "xclip",
        XClipTokens(model, tokens),
        n_frames=frames,
        shapes=shapes,
        meanings=MEANINGS | {"tokens": TOKENS.get(tokens, "")},
        weights=found,
        preset=choose_preset(preset, ("xclip", "obygaze12"), size=vision.image_size),
        compute=compute or Compute(),
        head="visual projection and multi-frame integration transformer",
        layer="multi-frame integration transformer",
        architecture={"type": "xclip", "projection_dim": width, **plain_config(vision)},
        citation=CITATION,
    )


class XClipTokens(nn.Module):
    """The visual half of an X-CLIP, called part by part, since the library does not return t."""

    def __init__(self, model: Any, tokens: str = "none") -> None:
        super().__init__()
        self.vision_model = model.vision_model
        self.visual_projection = model.visual_projection
        self.mit = model.mit
        self.tokens = tokens

    def forward(self, pixels: torch.Tensor) -> dict[str, torch.Tensor]:
        """Encode clips, `[B, T, 3, h, w]`."""
        clips, frames = pixels.shape[:2]
        vision = self.vision_model(pixel_values=pixels.flatten(0, 1))
        before = self.visual_projection(vision.pooler_output).view(clips, frames, -1)
        after = self.mit(before).last_hidden_state
        results = {"frames": after, "pooled": after.float().mean(dim=1)}
        if self.tokens == "frames":
            results["tokens"] = before
        elif self.tokens == "patches":
            hidden = vision.last_hidden_state[:, 1:]
            results["tokens"] = hidden.reshape(clips, -1, hidden.shape[-1])
        return results


def check_frames(name: str, wanted: int | None, fixed: int) -> int:
    """Refuse a number of frames that a network does not support: it would mix clips, or fail later."""
    if wanted not in (None, fixed):
        raise BackboneError(f"backbone '{name}' with these weights takes {fixed} frames a clip, not {wanted}")
    return fixed


def choose_tokens(name: str, tokens: str, known: Mapping[str, tuple[int, ...]]) -> tuple[int, ...]:
    """Return the shape of the requested tokens."""
    if tokens not in known:
        raise BackboneError(f"backbone '{name}' has no tokens '{tokens}'; there is none, {', '.join(known)}")
    return known[tokens]
