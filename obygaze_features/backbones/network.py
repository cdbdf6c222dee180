"""Wrap a torch network as a `Backbone`, for built-in and custom networks, and fuse its activations."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn
from transformers.activations import FastGELUActivation, QuickGELUActivation

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


QUICK = 1.702


def fuse_activations(network: nn.Module) -> dict[str, str]:
    """Fuse activations of a network of the transformers library that need several kernels, in place.

    Each extra kernel reads and writes the widest activation of a layer, which dominates the run time in half
    precision on a GPU. The formulas are unchanged; results differ in the last digits.

    `gelu_fast`, x/2 (1 + tanh(0.79788456 x (1 + 0.044715 x^2))) in nine kernels, is torch's GELU by tanh
    (Hendrycks and Gimpel 2016) in one. `quick_gelu`, x sigmoid(1.702 x) in three kernels, is
    silu(1.702 x) / 1.702: between two linear layers one factor goes into the weights of the first and the
    other into those of the second, rounded once from float64.

    Returns
    -------
    dict
        Old -> new activation, for the provenance; empty if nothing was replaced.
    """
    done = {}
    for module in network.modules():
        for name, child in list(module.named_children()):
            if isinstance(child, FastGELUActivation):
                setattr(module, name, nn.GELU(approximate="tanh"))
                done["gelu_fast"] = "gelu_pytorch_tanh"
        if isinstance(getattr(module, "activation_fn", None), QuickGELUActivation) and _is_mlp(module):
            _fold(module)
            done["quick_gelu"] = "silu, with its factor in the weights"
    return done


def _is_mlp(module: Any) -> bool:
    return isinstance(getattr(module, "fc1", None), nn.Linear) and isinstance(
        getattr(module, "fc2", None), nn.Linear
    )


@torch.no_grad()
def _fold(mlp: Any) -> None:
    for parameter, factor in ((mlp.fc1.weight, QUICK), (mlp.fc1.bias, QUICK), (mlp.fc2.weight, 1 / QUICK)):
        if parameter is not None:
            parameter.copy_(parameter.double() * factor)
    mlp.activation_fn = nn.SiLU()
