"""Load networks of any kind and wrap them as a `Backbone`, with layers in fewer kernels; for all families."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from torch import nn
from transformers.activations import FastGELUActivation, QuickGELUActivation
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING

from obygaze_features.arguments import checked
from obygaze_features.backbones.backbone import (
    Backbone,
    BackboneOutput,
    LoadedNetwork,
    SideGroup,
    TextBackbone,
)
from obygaze_features.backbones.checkpoint import auto_config, load_pretrained
from obygaze_features.backbones.compute import ATTENTION, Compute
from obygaze_features.backbones.encoder_specs import ReadText
from obygaze_features.backbones.own_processor import OwnProcessor
from obygaze_features.backbones.presets import Preset
from obygaze_features.backbones.runner import Runner, TextRunner
from obygaze_features.backbones.tokenizer import load_tokenizer
from obygaze_features.backbones.weights import Weights, find_weights, space_of
from obygaze_features.errors import BackboneError


@checked
def network_backbone(
    name: str,
    network: nn.Module,
    *,
    n_frames: int,
    shapes: Mapping[str, tuple[int, ...]],
    meanings: Mapping[str, str],
    weights: Weights,
    preset: Preset | OwnProcessor,
    compute: Compute,
    head: str | None,
    layer: str | None,
    architecture: Mapping[str, Any],
    citation: str,
    attention: str = ATTENTION,
    libraries: tuple[str, ...] = ("torch", "transformers"),
    side_group_fields: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
    **other_fields: object,
) -> Backbone:
    """Build a backbone from a frozen network of pictures or clips, whose slow layers are replaced.

    Parameters
    ----------
    name, n_frames
        Name of the group in the store, and number of frames per clip.
    network
        Takes normalised clips, float `[B, F, 3, h, w]`, and returns a dict of tensors `[B, ...]`.
    shapes
        Array (`pooled`, `frames`, `tokens`) -> its shape for one clip. Pooled is stored as float32, tokens as
        float16, frames as `compute` says. An array of a side group is called `GROUP/ARRAY`, as in `8/pooled`.
    meanings
        Array -> its description, for the provenance.
    weights, architecture, citation
        What the network is, for the provenance.
    preset
        What prepares a frame, and normalises it: a preset, or the processor of the network's class.
    compute
        Device, precision and clips per call.
    head, layer
        The head, and the layer whose output is `frames`.
    attention
        Implementation of attention.
    libraries
        Distributions whose versions affect the numbers.
    side_group_fields
        Side group -> the fields in which its provenance differs, `arrays` among them.
    other_fields
        Further fields of the provenance.
    """
    all_outputs = _outputs(shapes, compute)
    outputs = tuple(output for output in all_outputs if "/" not in output.name)  # of the main group
    geometry = preset if isinstance(preset, OwnProcessor) else preset.geometry
    replaced_layers = fuse_layers(network)
    encode = Runner(
        name,
        network,
        preset.affine,
        tuple(all_outputs),
        n_frames=n_frames,
        size=geometry.sides,
        compute=compute,
    )
    provenance = {
        "head": head,
        "layer": layer,
        "arrays": {output.name: meanings[output.name] for output in outputs},
        **weights.record(),
        "architecture": dict(architecture),
        "preset": preset.record(),
        "compute": {**compute.record(attention), **replaced_layers},
        "citation": citation,
        **other_fields,
    }
    side_groups = []
    for group_name, fields in side_group_fields.items():
        side_groups.append(side_group(name, group_name, all_outputs, provenance, fields))
    return Backbone(
        name=name,
        n_frames=n_frames,
        prepare=geometry,
        encode=encode,
        outputs=outputs,
        provenance=provenance,
        libraries=libraries,
        side_groups=tuple(side_groups),
    )


def _outputs(shapes: Mapping[str, tuple[int, ...]], compute: Compute) -> list[BackboneOutput]:
    """Describe the arrays that a network gives of a clip: name, shape, and data type in the store.

    Parameters
    ----------
    shapes
        Array, or `GROUP/ARRAY` of a side group -> its shape for one clip.
    compute
        Says in which type `frames` are stored.
    """
    dtypes: dict[str, Any] = {"pooled": "float32", "frames": compute.frames_dtype(), "tokens": "float16"}
    outputs = []
    for name, shape in shapes.items():
        _, _, array = name.rpartition("/")
        outputs.append(BackboneOutput(name, shape, dtypes[array]))
    return outputs


def side_group(
    backbone: str,
    name: str,
    outputs: Iterable[BackboneOutput],
    provenance: Mapping[str, Any],
    fields: Mapping[str, Any],
) -> SideGroup:
    """Describe a further group of features that a backbone gives, such as a layer's, with its provenance.

    Parameters
    ----------
    backbone, name
        Name of the backbone, and that of the group after the dot: `8` of `xclip.8`.
    outputs
        All arrays of the backbone; those of the group are called `NAME/ARRAY`, as in `8/pooled`.
    provenance
        Provenance of the backbone's main group. The group's has the same fields, except `space`: only the
        vectors of the main group share a space with those of texts.
    fields
        Fields in which the provenance of the group differs.
    """
    group_outputs = []
    for output in outputs:
        group, _, array = output.name.rpartition("/")
        if group == name:
            group_outputs.append(replace(output, name=array))
    shared_fields = {field: value for field, value in provenance.items() if field != "space"}
    return SideGroup(name, tuple(group_outputs), {**shared_fields, "beside": backbone, **fields})


def text_backbone(
    name: str,
    model: nn.Module,
    read: ReadText,
    *,
    tokenizer: Any,
    weights: Weights,
    space: str,
    compute: Compute | None,
    head: str | None,
    meaning: str,
    architecture: Mapping[str, Any],
    citation: str,
    layer: str = "text embedding",
    attention: str = ATTENTION,
    libraries: tuple[str, ...] = ("torch", "transformers", "tokenizers"),
    **other_fields: object,
) -> TextBackbone:
    """Build a text backbone from a frozen network.

    Parameters
    ----------
    name
        Name of the group in the store.
    model, read
        The network, and the function that calls it with tokens `[B, L]` and returns vectors `[B, width]`.
    tokenizer
        Turns texts into tokens; has a `record` of itself for the provenance.
    weights, architecture, citation
        What the network is, for the provenance.
    space
        Name of the family of networks whose vectors share a space with these.
    compute
        Device, precision and texts per call.
    head, layer, meaning
        Head, layer and description of a vector, for the provenance.
    attention
        Implementation of attention.
    libraries
        Distributions whose versions affect the numbers.
    other_fields
        Further fields of the provenance.
    """
    compute = compute or Compute()
    (tokens,) = tokenizer(["a"])  # the vector of any text tells the width
    with torch.inference_mode():
        width = read(model, torch.tensor([tokens.ids])).shape[1]
    return TextBackbone(
        name=name,
        width=width,
        tokenize=tokenizer,
        encode=TextRunner(name, model, read, compute),
        provenance={
            "head": head,
            "layer": layer,
            "arrays": {"pooled": meaning},
            "space": space_of(space, weights),
            **weights.record(),
            "architecture": dict(architecture),
            "tokenizer": tokenizer.record(),
            "compute": compute.record(attention),
            "citation": citation,
            **other_fields,
        },
        libraries=libraries,
    )


QUICK_GELU_FACTOR = 1.702
"""Factor of x in quick GELU, x sigmoid(1.702 x)."""


class PatchProduct(nn.Module):
    """A convolution over patches side by side [B, C, T, H, W] -> [B, D, t, h, w], as one matrix product.

    Parameters
    ----------
    convolution
        Of patches side by side: its stride is the size of its kernel.
    """

    def __init__(self, convolution: nn.Conv3d) -> None:
        """Take over the weights of the convolution."""
        super().__init__()
        self.weight = convolution.weight
        self.bias = convolution.bias

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        """Multiply every patch of pixels `[B, C, T, H, W]` with the kernel: `[B, D, t, h, w]`.

        Pixels that fill no whole patch at the ends are unused, as in the convolution.
        """
        patches = pixels  # [B, C, T, H, W]
        kernel_sizes = self.weight.shape[2:]  # kT, kH, kW
        for axis, size in enumerate(kernel_sizes, start=2):
            # Divides an axis into patches. The places within a patch become one more axis, at the end.
            patches = patches.unfold(axis, size, size)
        patches = patches.movedim(1, 4)  # [B, C, t, h, w, kT, kH, kW] to [B, t, h, w, C, kT, kH, kW]
        patch_rows = patches.flatten(4)  # [B, t, h, w, C kT kH kW]
        kernel_rows = self.weight.flatten(1)  # [D, C kT kH kW]
        products = nn.functional.linear(patch_rows, kernel_rows, self.bias)
        return products.movedim(4, 1)  # [B, t, h, w, D] to [B, D, t, h, w]


def fuse_layers(network: nn.Module) -> dict[str, dict[str, str]]:
    """Replace layers of a network of the transformers library that are slow on a GPU, in place.

    The formulas are unchanged; results differ in the last digits.

    - The activation `gelu_fast` becomes torch's GELU with the same tanh approximation (Hendrycks and Gimpel
      2016). In transformers it is nine kernels, each of which reads and writes the widest values of the
      network.
    - The activation `quick_gelu`, which is several kernels too, becomes torch's SiLU, with a factor in the
      weights of the linear layers around it.
    - A `conv3d` over patches side by side becomes a matrix product (`PatchProduct`): torch 2.9 has no quick
      kernel for it in bfloat16 (pytorch/pytorch#174051).

    Returns
    -------
    dict
        `activations` and `convolutions` -> name of a replaced layer -> name of its replacement, for the
        provenance; empty if nothing was replaced.
    """
    replaced: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for module in network.modules():
        for name, child in list(module.named_children()):
            if isinstance(child, FastGELUActivation):
                setattr(module, name, nn.GELU(approximate="tanh"))
                replaced["activations"]["gelu_fast"] = "gelu_pytorch_tanh"
            if isinstance(child, nn.Conv3d) and _maps_patches_side_by_side(child):
                setattr(module, name, PatchProduct(child))
                replaced["convolutions"]["conv3d"] = "product over patches"
        if _is_quick_gelu_between_layers(module):
            _replace_quick_gelu(module)
            replaced["activations"]["quick_gelu"] = "silu, with its factor in the weights"
    return dict(replaced)


def _maps_patches_side_by_side(convolution: nn.Conv3d) -> bool:
    """Return whether the patches of a convolution lie side by side, without overlaps and gaps.

    Its stride is then the size of its kernel, and it has no padding, dilation or groups.
    """
    is_padded = set(convolution.padding) != {0}
    is_dilated = set(convolution.dilation) != {1}
    is_grouped = convolution.groups != 1
    if is_padded or is_dilated or is_grouped:
        return False
    return convolution.kernel_size == convolution.stride


def _is_quick_gelu_between_layers(module: nn.Module) -> bool:
    """Return whether a module is an MLP of transformers: linear `fc1`, quick GELU, linear `fc2`."""
    has_both_layers = all(isinstance(getattr(module, name, None), nn.Linear) for name in ("fc1", "fc2"))
    return has_both_layers and isinstance(getattr(module, "activation_fn", None), QuickGELUActivation)


@torch.no_grad()
def _replace_quick_gelu(mlp: Any) -> None:
    """Replace quick GELU, x sigmoid(1.702 x), between two linear layers by SiLU, x sigmoid(x), in place.

    Quick GELU is silu(1.702 x) / 1.702. One factor goes into the weights of the layer before, the other into
    those of the layer after, rounded once from float64.

    Parameters
    ----------
    mlp
        A module with the layers `fc1` and `fc2`, and the activation `activation_fn` between them.
    """
    factors = (
        (mlp.fc1.weight, QUICK_GELU_FACTOR),
        (mlp.fc1.bias, QUICK_GELU_FACTOR),
        (mlp.fc2.weight, 1 / QUICK_GELU_FACTOR),
    )
    for parameter, factor in factors:
        if parameter is not None:
            parameter.copy_(parameter.double() * factor)
    mlp.activation_fn = nn.SiLU()


def causal_lm(weights: str | Path | Weights) -> LoadedNetwork:
    """Load a causal language model of the transformers library, with its tokenizer.

    `weights` are a folder, a repository or `random:SEED:TYPE`, as for `find_weights`.

    Raises
    ------
    BackboneError
        The weights are of another type of network, or cannot be loaded.
    """
    source = find_weights(weights)
    tokenizer, digests = load_tokenizer(source)
    config = auto_config(source)
    if type(config) not in MODEL_FOR_CAUSAL_LM_MAPPING:
        raise BackboneError(
            f"{source.name}: transformers has no causal language model of type {config.model_type!r}"
        )
    cls = MODEL_FOR_CAUSAL_LM_MAPPING[type(config)]
    return LoadedNetwork(
        load_pretrained(cls, source, config),
        source,
        preset=None,
        tokenizer=tokenizer,
        tokenizer_sha256=digests,
    )
