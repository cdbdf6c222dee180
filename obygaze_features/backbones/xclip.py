"""`xclip` and `xclip-text`: X-CLIP (Ni et al., ECCV 2022), CLIP with attention across frames.

The default weights were trained on Kinetics-400.

Token flow, for T frames: every frame goes through the vision transformer, whose message tokens attend to each
other across the frames; the class token is projected, c `[T, 512]`; the multi-frame integration transformer
(MIT) gives t = layer(c + position) + c, `[T, 512]`; the video vector is the mean of t over the frames, as in
`XCLIPModel.get_video_features`.

The network's own classifier adds a prompt to each text that depends on the video (their section 3.3). A
store's text vector cannot depend on a video, so it is the text embedding before that prompt.
"""

from typing import Any, Literal

import torch
from torch import nn
from transformers import XCLIPConfig, XCLIPModel

from obygaze_features.backbones.backbone import Backbone, TextBackbone
from obygaze_features.backbones.checkpoint import auto_config, load_pretrained, plain_config
from obygaze_features.backbones.compute import Compute
from obygaze_features.backbones.network import check_frames, choose_tokens, network_backbone, text_backbone
from obygaze_features.backbones.presets import choose_preset
from obygaze_features.backbones.tokenizer import Tokenizer, check_end, refuse_untrained
from obygaze_features.backbones.weights import HUB, find_weights

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
    source = find_weights(weights)
    config = XCLIPConfig(vision_config={"patch_size": 16, "num_frames": 32})
    if source.seed is None:
        source.config_of_type(["xclip"])
        config = auto_config(source)
    model: Any = load_pretrained(XCLIPModel, source, config)
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
        weights=source,
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


def xclip_text(*, weights: str = HUB["xclip-text"], compute: Compute | None = None) -> TextBackbone:
    """Build the text half of the network whose visual half is `xclip`; both map to one space."""
    source = find_weights(weights)
    refuse_untrained(source)
    source.config_of_type(["xclip"])
    config = auto_config(source)
    text: Any = config.text_config
    tokenizer = Tokenizer(source, text.max_position_embeddings)
    check_end(source, tokenizer, text.eos_token_id)
    # The whole model: transformers loads nothing from it into the halves alone.
    model: Any = load_pretrained(XCLIPModel, source, config)
    return text_backbone(
        "xclip-text",
        XClipText(model),
        width=config.projection_dim,
        tokenizer=tokenizer,
        weights=source,
        space="xclip",
        compute=compute,
        head="text projection",
        meaning="text embedding before video-specific prompts, not normalised",
        architecture={"type": "xclip", "projection_dim": config.projection_dim, **plain_config(text)},
        citation=CITATION,
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
