"""`xclip-lsmdc`: X-CLIP for retrieval (Ma et al., ACM MM 2022), of LSMDC; another X-CLIP than `xclip`.

Every frame is embedded by CLIP on its own, v `[12, 512]`; a small transformer relates the frames, u =
transformer(v + position) + v; the video vector is the unit mean of the unit u. One group of the store holds
all three: `frames` is u, `pooled` the video vector, and `tokens` v, in float16, which is what the original's
CLIP half computes in.
"""

import json
from dataclasses import replace
from typing import Any, Literal

import torch
from safetensors import SafetensorError, safe_open
from torch import nn

from obygaze_features.backbones.backbone import Backbone
from obygaze_features.backbones.checkpoint import frozen, load_state_dict, untrained
from obygaze_features.backbones.compute import Compute
from obygaze_features.backbones.network import network_backbone
from obygaze_features.backbones.presets import choose_preset
from obygaze_features.backbones.weights import Weights, find_weights
from obygaze_features.backbones.xclip import check_frames
from obygaze_features.backbones.xclip_lsmdc_checkpoint import (
    RECORD_KEY,
    Architecture,
    to_port,
    without_prefix,
)
from obygaze_features.backbones.xclip_lsmdc_network import XClipLsmdc
from obygaze_features.errors import BackboneError

CITATION = (
    "Ma et al., X-CLIP: end-to-end multi-grained contrastive learning for video-text retrieval, ACM MM 2022"
)
MEANINGS = {
    "frames": "u: output of the temporal transformer plus its input without positions, one a frame",
    "pooled": "unit mean of the unit u, the video vector of the retrieval model",
    "tokens": "v: CLIP image embedding of each frame, before the temporal transformer, not normalised",
}


def xclip_lsmdc(
    n_frames: int | None = None,
    *,
    weights: str | None = None,
    preset: str = "clip",
    tokens: Literal["none", "frames"] = "frames",
    compute: Compute | None = None,
) -> Backbone:
    """Build the LSMDC X-CLIP.

    Parameters
    ----------
    n_frames
        Must be what the network was made for (12 for the published one).
    weights
        A checkpoint of the original code (`pytorch_model.bin.4`, or the same tensors as safetensors), the
        folder of a run of `obygaze train xclip-lsmdc`, or `random:SEED`. There is no public one to fetch.
    tokens
        `frames` stores v; `none` leaves it out.
    """
    if weights is None:
        raise BackboneError(
            "backbone 'xclip-lsmdc' has no public weights: name a checkpoint file, or random:SEED"
        )
    found = find_weights(weights)
    network, size = load(found)
    frames = check_frames("xclip-lsmdc", n_frames, size.max_frames)
    if tokens not in ("none", "frames"):
        raise BackboneError(f"backbone 'xclip-lsmdc' has no tokens '{tokens}'; there is none, frames")
    shapes: dict[str, tuple[int, ...]] = {"frames": (frames, size.embed), "pooled": (size.embed,)}
    if tokens == "frames":
        shapes["tokens"] = (frames, size.embed)
    backbone = network_backbone(
        "xclip-lsmdc",
        XClipLsmdcTokens(network),
        n_frames=frames,
        shapes=shapes,
        meanings=MEANINGS,
        weights=found,
        preset=choose_preset(preset, ("clip", "obygaze12"), size=size.image),
        compute=compute or Compute(),
        head="visual projection and temporal transformer",
        layer="temporal transformer",
        architecture=size.record(),
        citation=CITATION,
    )
    trained = training_record(found)
    return replace(backbone, provenance={**backbone.provenance, "training": trained}) if trained else backbone


def load(weights: Weights) -> tuple[XClipLsmdc, Architecture]:
    """Load the whole network, text half included, from the original's format; or make an untrained one.

    Raises
    ------
    BackboneError
        If the file is of another format, or a tensor is missing, unexpected or of another shape.
    """
    if weights.seed is not None:
        size = Architecture()
        return untrained(lambda: XClipLsmdc(size), weights.seed), size
    if weights.folder is not None and training_record(weights) is None:
        raise BackboneError(
            f"{weights.name}: backbone 'xclip-lsmdc' loads one file of the original's format, "
            "or the folder of a run of obygaze train xclip-lsmdc"
        )
    tensors = without_prefix(load_state_dict(weights))
    size = Architecture.of(weights.name, tensors)
    port = to_port(weights.name, tensors, size)
    network = XClipLsmdc(size)
    network.load_state_dict(port, strict=True)
    return frozen(network), size


def training_record(weights: Weights) -> dict[str, Any] | None:
    """Read the training record that `obygaze train` wrote to a file; None for other files."""
    if not weights.files or weights.files[0].suffix != ".safetensors":
        return None
    try:
        with safe_open(weights.files[0], framework="pt") as file:
            written = (file.metadata() or {}).get(RECORD_KEY)
        record: dict[str, Any] | None = None if written is None else json.loads(written)
    except (SafetensorError, OSError, ValueError):  # loading reports the error
        return None
    return record


class XClipLsmdcTokens(nn.Module):
    """The visual half, over clips of which every frame is one."""

    def __init__(self, network: XClipLsmdc) -> None:
        super().__init__()
        del network.text  # 63 million parameters that are not used for frames
        self.network = network

    def forward(self, pixels: torch.Tensor) -> dict[str, torch.Tensor]:
        """Encode clips, `[B, F, 3, h, w]`."""
        frames = self.network.encode_frames(pixels)
        related = self.network.relate_frames(frames)
        return {"frames": related, "pooled": self.network.video_vector(related), "tokens": frames}
