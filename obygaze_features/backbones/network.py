"""Wrap a torch network as a `Backbone`, for built-in and custom networks."""

from collections.abc import Mapping
from typing import Any

from torch import nn

from obygaze_features.backbones.activations import fuse_activations
from obygaze_features.backbones.backbone import Backbone, Output
from obygaze_features.backbones.checkpoint import ATTENTION
from obygaze_features.backbones.compute import Compute
from obygaze_features.backbones.presets import Preset
from obygaze_features.backbones.runner import Runner
from obygaze_features.backbones.weights import Weights


def network_backbone(
    name: str,
    network: nn.Module,
    *,
    n_frames: int,
    shapes: Mapping[str, tuple[int, ...]],
    meanings: Mapping[str, str],
    weights: Weights,
    preset: Preset,
    compute: Compute,
    head: str | None,
    layer: str | None,
    architecture: Mapping[str, Any],
    citation: str,
    libraries: tuple[str, ...] = ("torch", "transformers"),
) -> Backbone:
    """Build a backbone from a frozen network; its activations are fused in place.

    Parameters
    ----------
    network
        Takes float `[B, F, 3, h, w]`, normalised, and gives a dict of tensors `[B, ...]`.
    shapes
        Array (`pooled`, `frames`, `tokens`) -> its shape for one clip. Pooled is stored as float32, tokens as
        float16, frames as `compute` says.
    meanings
        Array -> its description, for the provenance.
    head, layer
        The head, and the layer whose output is `frames`.
    """
    dtypes: dict[str, Any] = {"pooled": "float32", "frames": compute.frames_dtype(), "tokens": "float16"}
    outputs = tuple(Output(array, shape, dtypes[array]) for array, shape in shapes.items())
    size = preset.geometry.size
    fused = fuse_activations(network)
    return Backbone(
        name=name,
        n_frames=n_frames,
        prepare=preset.geometry,
        encode=Runner(
            name, network, preset.require_affine(), outputs, n_frames=n_frames, size=size, compute=compute
        ),
        outputs=outputs,
        provenance={
            "head": head,
            "layer": layer,
            "arrays": {array: meanings[array] for array in shapes},
            **weights.record(),
            "architecture": dict(architecture),
            "preset": preset.record(),
            "compute": {**compute.record(ATTENTION), **({"activations": fused} if fused else {})},
            "citation": citation,
        },
        libraries=libraries,
    )
