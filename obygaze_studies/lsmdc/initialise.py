"""Initialise the LSMDC X-CLIP from a CLIP (Ma et al. 2022), without random weights.

The frame positions are CLIP's text positions, the temporal transformer its first text blocks, and the eight
matrices of the similarities are identities.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch

from obygaze_features.backbones import LsmdcFormat, Weights, check_keys, load_state_dict
from obygaze_studies.errors import TrainError

TEMPORAL_LAYERS = 4
MAX_FRAMES = 12
MAX_WORDS = 32
OPENAI_EXTRAS = ("input_resolution", "context_length", "vocab_size")  # scalars in OpenAI's files, not weights
CLIP_EPS = 1e-5
TOWERS = {
    "vision_model.": "vision.vision_model.",
    "visual_projection.": "vision.visual_projection.",
    "text_model.": "text.text_model.",
    "text_projection.": "text.text_projection.",
    "logit_scale": "logit_scale",
}
"""How the hub's names of a CLIP begin -> the port's."""


def load_clip(weights: Weights) -> dict[str, torch.Tensor]:
    """Read a CLIP in the hub's format, or in OpenAI's names as safetensors.

    Returns
    -------
    Tensors by OpenAI's names (`visual.conv1.weight`), in the data type of the file.

    Raises
    ------
    TrainError
        If it is an untrained network or an executable archive.
    BackboneError
        If it is another network, or a CLIP that the port cannot hold.
    """
    if weights.seed is not None:
        raise TrainError(
            f"--clip {weights.name}: training starts from a CLIP; name a file, a folder or a repository"
        )
    if weights.folder is None or not (weights.folder / "config.json").is_file():
        if weights.files[0].suffix != ".safetensors":
            raise TrainError(
                f"--clip {weights.name}: OpenAI's .pt files are programs (TorchScript) and are not run; "
                "name the same network on the hub (openai/clip-vit-base-patch32), "
                "or save its state_dict() with safetensors"
            )
        tensors = load_state_dict(weights)
        return {name: value for name, value in tensors.items() if name not in OPENAI_EXTRAS}
    size = _hub_architecture(weights)
    tensors = {}
    for path in weights.files:
        tensors.update(load_state_dict(replace(weights, files=(path,))))
    port = {
        here + name.removeprefix(there): value
        for name, value in tensors.items()
        for there, here in TOWERS.items()
        if name.startswith(there) and not name.endswith("position_ids")
    }
    wanted = {name for name in _port_names(size) if name.startswith(("vision.", "text.", "logit_scale"))}
    check_keys(weights.name, missing=sorted(wanted - port.keys()), unexpected=sorted(port.keys() - wanted))
    originals = size.from_port(port)
    return {name.removeprefix("clip."): value for name, value in originals.items()}


def initial_tensors(
    name: str,
    clip: Mapping[str, torch.Tensor],
    *,
    temporal_layers: int = TEMPORAL_LAYERS,
    max_frames: int = MAX_FRAMES,
    max_words: int = MAX_WORDS,
) -> dict[str, torch.Tensor]:
    """Build the tensors of the whole network at step 0 from a CLIP.

    Parameters
    ----------
    name
        Name of the CLIP in messages.
    clip
        Tensors by OpenAI's names, without the prefix `clip.`.

    Returns
    -------
    Every tensor of the original format, in float32.

    Raises
    ------
    BackboneError
        If the CLIP is not complete or not a ViT.
    TrainError
        If its text tower cannot become the temporal transformer.
    """
    tensors = {f"clip.{key}": value.float() for key, value in clip.items()}
    needed = (
        "positional_embedding",
        "visual.proj",
        "token_embedding.weight",
        "visual.conv1.weight",
        "logit_scale",
    )
    check_keys(name, missing=[f"clip.{key}" for key in needed if f"clip.{key}" not in tensors], unexpected=[])
    positions, embed = tensors["clip.positional_embedding"], tensors["clip.visual.proj"].shape[1]
    if positions.shape[1] != embed:
        raise TrainError(
            f"{name}: its text tower is {positions.shape[1]} wide and its embedding {embed}; "
            "the temporal transformer, which starts as text blocks, needs both to be equal"
        )
    if len(positions) < (least := max(max_words, max_frames)):
        raise TrainError(f"{name}: its text tower has {len(positions)} positions, expected {least} or more")
    tensors["frame_position_embeddings.weight"] = positions.clone()
    block = "clip.transformer.resblocks."
    for key in [key for key in tensors if key.startswith(block)]:
        layer, _, rest = key.removeprefix(block).partition(".")
        if layer.isdecimal() and int(layer) < temporal_layers:
            tensors[f"transformerClip.resblocks.{layer}.{rest}"] = tensors[key].clone()
    extents = LsmdcFormat(embed=embed, max_frames=max_frames, max_words=max_words)
    tensors |= {key: torch.eye(extent) for key, extent in extents.matrices().items()}
    size = LsmdcFormat.of(name, tensors)
    if size.temporal_layers != temporal_layers:
        raise TrainError(
            f"{name}: its text tower has {size.temporal_layers} blocks, expected {temporal_layers} or more"
        )
    size.to_port(name, tensors)  # raises if a tensor is missing, unexpected or of another shape
    return tensors


def _port_names(size: LsmdcFormat) -> set[str]:
    return {name for tensor in size.tensors() for name in tensor.port}


def _hub_architecture(weights: Weights) -> LsmdcFormat:
    whole = weights.config_of_type(("clip",))
    try:
        vision, text = _known(whole["vision_config"], VISION), _known(whole["text_config"], TEXT)
        embed = int(whole.get("projection_dim", 512))
    except (KeyError, TypeError, ValueError) as error:
        raise TrainError(f"{weights.name}: config.json does not describe a CLIP: {error}") from None
    for tower, config in (("vision", vision), ("text", text)):
        heads = config["hidden_size"] // LsmdcFormat.HEAD_WIDTH
        wanted = {
            "hidden_act": "quick_gelu",
            "num_attention_heads": heads,
            "intermediate_size": 4 * config["hidden_size"],
            "layer_norm_eps": CLIP_EPS,
        }
        for key, value in wanted.items():
            if config[key] != value:
                raise TrainError(
                    f"{weights.name}: {tower} tower has {key} {config[key]}, "
                    f"expected {value}, as in every CLIP of OpenAI's"
                )
    return LsmdcFormat(
        embed=embed,
        vision_width=vision["hidden_size"],
        vision_layers=vision["num_hidden_layers"],
        patch=vision["patch_size"],
        image=vision["image_size"],
        text_width=text["hidden_size"],
        text_layers=text["num_hidden_layers"],
        context=text["max_position_embeddings"],
        vocabulary=text["vocab_size"],
    )


# Defaults of transformers for fields missing from config.json (openai/clip-vit-base-patch32).
_COMMON: dict[str, Any] = {"num_hidden_layers": 12, "hidden_act": "quick_gelu", "layer_norm_eps": CLIP_EPS}
VISION = _COMMON | {
    "hidden_size": 768,
    "intermediate_size": 3072,
    "num_attention_heads": 12,
    "patch_size": 32,
    "image_size": 224,
}
TEXT = _COMMON | {
    "hidden_size": 512,
    "intermediate_size": 2048,
    "num_attention_heads": 8,
    "max_position_embeddings": 77,
    "vocab_size": 49408,
}


def _known(config: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    return {key: config.get(key, default) for key, default in defaults.items()}
