"""Load networks for Grad-CAM: CLIPs of transformers and OpenCLIP, image networks built by a function."""

import importlib
import importlib.metadata
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn
from transformers import CLIPVisionModelWithProjection

from obygaze_features.backbones import Compute, Preset, TextBackbone, Weights, find_weights, space_of
from obygaze_features.backbones.checkpoint import (
    check_keys,
    check_model_type,
    frozen,
    load_pretrained,
    load_state_dict,
    untrained,
)
from obygaze_features.backbones.clip_siglip import TEXT_HALF, vision_config
from obygaze_features.backbones.clip_text import clip_text
from obygaze_features.backbones.openclip import (
    PREPROCESSING,
    configuration,
    find_openclip,
    image_size,
    is_resnet,
    load_openclip,
    stated_preset,
)
from obygaze_features.backbones.openclip_text import openclip_text
from obygaze_features.backbones.presets import choose_preset
from obygaze_features.errors import BackboneError
from obygaze_studies.saliency.class_activation import MappedNetwork

LIBRARIES = ("grad-cam", "torch")
Embed = Callable[[str], torch.Tensor]
"""From a text to its embedding, [D], not normalised."""


class ImageHalf(nn.Module):
    """The image half of a CLIP: pixels [B, 3, h, w] to embeddings [B, D], not normalised."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        """Embed pictures."""
        embeddings: torch.Tensor = self.model(pixel_values=pixels).image_embeds
        return embeddings


def clip_to_map(source: str, compute: Compute) -> tuple[MappedNetwork, Embed]:
    """Load the image half of a CLIP (Radford et al. 2021), and its text half.

    The layer is the first normalisation in the last block of its vision transformer. It is the last point
    where patches affect the embedding, which depends only on the class token after that block.

    Raises
    ------
    BackboneError
        There is no such CLIP, or it lacks its tokenizer. `Embed` raises it for a text that is too long.
    """
    weights = find_weights(source)
    check_model_type(weights, ["clip"])
    texts = clip_text(weights=source, compute=compute)
    _, config = vision_config(weights)
    model = load_pretrained(CLIPVisionModelWithProjection, weights, config, allow_unexpected=TEXT_HALF).to(
        compute.torch_device()
    )
    side = config.image_size // config.patch_size
    layers = model.vision_model.encoder.layers
    preset = choose_preset("clip", ("clip",), size=config.image_size)
    name = f"vision_model.encoder.layers.{len(layers) - 1}.layer_norm1"
    about = {
        "space": space_of("clip", weights),
        **_about(weights, name, preset, (*LIBRARIES, "transformers")),
        "tokenizer": texts.provenance["tokenizer"],
    }
    mapped = MappedNetwork(ImageHalf(model), layers[-1].layer_norm1, _patches(side), preset, about)
    return mapped, _embedder(texts, weights.name, model.device)


def openclip_to_map(source: str, compute: Compute) -> tuple[MappedNetwork, Embed]:
    """Load the image half of a CLIP of OpenCLIP, and its text half.

    Of a ResNet the layer is `layer4`, the last convolutions, from which CLIP's attention pooling makes the
    embedding, as in Wolfe et al. (FAccT 2023). Of a vision transformer it is that of `clip_to_map`.

    Raises
    ------
    BackboneError
        There is no such network, or its embedding is not made of its class token or by attention pooling.
        `Embed` raises it for a text that is too long.
    """
    weights = find_openclip(source)
    config = configuration(weights)
    texts = openclip_text(weights=source, compute=compute)
    device = compute.torch_device()
    visual: Any = load_openclip(weights, config).visual.to(device)
    places: Callable[[torch.Tensor], torch.Tensor] | None
    if is_resnet(config):
        name, layer, places = "visual.layer4", visual.layer4, None
    elif getattr(visual, "pool_type", None) == "tok":
        blocks = visual.transformer.resblocks
        name, layer = f"visual.transformer.resblocks.{len(blocks) - 1}.ln_1", blocks[-1].ln_1
        places = _patches(visual.grid_size[0])
    else:
        raise BackboneError(
            f"{weights.name}: its embedding is not that of a class token, so it is not mapped"
        )
    preset = choose_preset(stated_preset(weights), tuple(PREPROCESSING), size=image_size(config))
    about = {
        "space": space_of("openclip", weights),
        **_about(weights, name, preset, (*LIBRARIES, "open_clip_torch")),
        "tokenizer": texts.provenance["tokenizer"],
    }
    return MappedNetwork(visual, layer, places, preset, about), _embedder(texts, weights.name, device)


def _patches(side: int) -> Callable[[torch.Tensor], torch.Tensor]:
    """Make the function from the tokens [1, 1 + h w, C] of a square picture to [1, C, h, w]."""
    return lambda tokens: tokens[:, 1:].transpose(1, 2).reshape(len(tokens), -1, side, side)


def _embedder(texts: TextBackbone, name: str, device: Any) -> Embed:
    """Make the function that embeds texts, and refuses those that would be cut."""

    def embed(text: str) -> torch.Tensor:
        (tokens,) = texts.tokenize([text])
        if tokens.is_cut:
            raise BackboneError(
                f"text {text!r} has {tokens.found} tokens; {name} takes {tokens.limit}: shorten it"
            )
        return torch.from_numpy(texts.encode(np.array([tokens.ids]))[0]).to(device)

    return embed


def classifier_to_map(function: str, source: str, layer: str, compute: Compute) -> MappedNetwork:
    """Build an image network by a function and load all its weights.

    Parameters
    ----------
    function
        `module:function`, such as `torchvision.models:resnet50`; called without arguments it gives a network
        from [B, 3, 224, 224], with ImageNet's mean and deviation, to the scores of classes [B, D].
    source
        A file of tensors by name, or `random:SEED`.
    layer
        The module's name in the network, such as `layer4`.

    Raises
    ------
    BackboneError
        There is no such function or layer, or the weights are not the network's.
    """
    weights = find_weights(source)
    make = _function(function)
    if weights.seed is not None:
        network = untrained(lambda: _network(function, make), weights.seed)
    else:
        network = _network(function, make)
        _load(network, weights)
    network = frozen(network).to(compute.torch_device())
    try:
        found = network.get_submodule(layer)
    except AttributeError:
        names = ", ".join(name for name, _ in network.named_children())
        raise BackboneError(f"{function} has no layer '{layer}'; it begins with {names}") from None
    preset = choose_preset("xclip", ("xclip",))  # the full square, normalised as for ImageNet
    about = {"space": None, "function": function, **_about(weights, layer, preset, LIBRARIES)}
    return MappedNetwork(network, found, None, preset, about)


def _about(weights: Weights, layer: str, preset: Preset, libraries: Sequence[str]) -> dict[str, object]:
    return {
        **weights.record(),
        "layer": layer,
        "preset": preset.record(),
        "software": {name: importlib.metadata.version(name) for name in libraries},
    }


def _function(written: str) -> Callable[[], Any]:
    module, colon, name = written.partition(":")
    if not (module and colon and name):
        raise BackboneError(f"'{written}' is not module:function, as in torchvision.models:resnet50")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise BackboneError(f"{written}: {error}") from None
    if not callable(found):
        raise BackboneError(f"{written} is not a function")
    function: Callable[[], Any] = found
    return function


def _network(written: str, make: Callable[[], Any]) -> nn.Module:
    network = make()
    if not isinstance(network, nn.Module):
        raise BackboneError(f"{written} gave {type(network).__name__}, not a network of torch")
    return network


def _load(network: nn.Module, weights: Weights) -> None:
    if len(weights.files) != 1:
        raise BackboneError(f"{weights.name}: its weights are in {len(weights.files)} files, and one is read")
    tensors, wanted = load_state_dict(weights), network.state_dict()
    check_keys(
        weights.name,
        missing=sorted(name for name in wanted.keys() - tensors.keys() if not _counts_batches(name)),
        unexpected=sorted(tensors.keys() - wanted.keys()),
        mismatched=_mismatched(tensors, wanted),
    )
    network.load_state_dict(tensors, strict=False)


def _counts_batches(name: str) -> bool:
    """Return whether a tensor is a counter of training batches, which old files lack."""
    return name.endswith("num_batches_tracked")


def _mismatched(tensors: Mapping[str, torch.Tensor], wanted: Mapping[str, torch.Tensor]) -> list[str]:
    return [
        f"{name} {list(tensors[name].shape)}, not {list(wanted[name].shape)}"
        for name in sorted(tensors.keys() & wanted.keys())
        if tensors[name].shape != wanted[name].shape
    ]
