"""`vivit`: ViViT-B/16x2 (Arnab et al., ICCV 2021), attention over tubelets, trained on Kinetics-400.

Every 2 x 16 x 16 pixels make a token: for 32 frames, 1 class token and 16 x 14 x 14 others, time first. One
frame vector is the mean over the 196 tokens of one pair of frames. The pooled vector is the **maximum** over
all tokens, the class token included, as the original study read these features.
"""

from typing import Any, Literal

import torch
from torch import nn
from transformers import VivitConfig, VivitModel

from obygaze_features.backbones.backbone import Backbone
from obygaze_features.backbones.checkpoint import auto_config, load_pretrained, plain_config
from obygaze_features.backbones.compute import Compute
from obygaze_features.backbones.network import check_frames, choose_tokens, network_backbone
from obygaze_features.backbones.presets import choose_preset
from obygaze_features.backbones.weights import HUB, find_weights

CITATION = "Arnab et al., ViViT: a video vision transformer, ICCV 2021"
MEANINGS = {
    "tokens": "last hidden state: the class token, then time by row by column",
    "frames": "mean of the last hidden state over the tokens of one tubelet in time",
    "pooled": "max of the last hidden state over all tokens, the class token included",
}


def vivit(
    n_frames: int | None = None,
    *,
    weights: str = HUB["vivit"],
    preset: str = "obygaze12",
    tokens: Literal["none", "all"] = "all",
    compute: Compute | None = None,
) -> Backbone:
    """Build ViViT.

    Parameters
    ----------
    n_frames
        Must be what the network was made for (32 for the default one).
    tokens
        `all` stores the 3137 tokens, 4.8 MB a clip; `none` frames and pooled alone.
    """
    source = find_weights(weights)
    config = VivitConfig()
    if source.seed is None:
        source.config_of_type(["vivit"])
        config = auto_config(source)
    model: Any = load_pretrained(
        VivitModel,
        source,
        config,
        allow_unexpected=(
            r"(vivit\.)?pooler\..*",
            r"classifier\..*",
        ),  # of the Kinetics classifier, after the tokens
        add_pooling_layer=False,  # the published checkpoint has none, it would be random
    )
    frames = check_frames("vivit", n_frames, config.num_frames)
    depth, height, width = config.tubelet_size
    size = config.image_size if isinstance(config.image_size, int) else config.image_size[0]
    steps, patches = frames // depth, (size // height) * (size // width)
    hidden = config.hidden_size
    shapes: dict[str, tuple[int, ...]] = {"frames": (steps, hidden), "pooled": (hidden,)}
    if tokens != "none":
        shapes["tokens"] = choose_tokens("vivit", tokens, {"all": (1 + steps * patches, hidden)})
    return network_backbone(
        "vivit",
        VivitTokens(model, steps),
        n_frames=frames,
        shapes=shapes,
        meanings=MEANINGS,
        weights=source,
        preset=choose_preset(preset, ("vivit-hub", "vivit-scenic", "obygaze12"), size=size),
        compute=compute or Compute(),
        head=None,
        layer="last hidden state",
        architecture={"type": "vivit", **plain_config(config)},
        citation=CITATION,
    )


class VivitTokens(nn.Module):
    """ViViT's tokens, their means in time and their maximum."""

    def __init__(self, model: Any, steps: int) -> None:
        super().__init__()
        self.model = model
        self.steps = steps

    def forward(self, pixels: torch.Tensor) -> dict[str, torch.Tensor]:
        """Encode clips, `[B, T, 3, h, w]`."""
        tokens = self.model(pixel_values=pixels).last_hidden_state.float()
        by_step = tokens[:, 1:].unflatten(1, (self.steps, -1))
        return {"tokens": tokens, "frames": by_step.mean(dim=2), "pooled": tokens.amax(dim=1)}
