"""`clip` and `clip-text`: both halves of any CLIP or SigLIP.

CLIP is of Radford et al. (2021), SigLIP of Zhai et al. (2023), SigLIP 2 of Tschannen et al. (2025).
The image half, frame by frame, is the shortest network and the template for custom networks.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from PIL.Image import Resampling
from torch import nn
from transformers import (
    CLIPImageProcessorPil,
    CLIPTextModelWithProjection,
    CLIPVisionConfig,
    CLIPVisionModelWithProjection,
    SiglipImageProcessorPil,
)
from transformers import SiglipTextModel as SiglipText
from transformers import SiglipVisionModel as SiglipVision

from obygaze_features.backbones.backbone import Backbone, LoadedNetwork, TextBackbone
from obygaze_features.backbones.checkpoint import auto_config, load_pretrained, plain_config
from obygaze_features.backbones.compute import Compute
from obygaze_features.backbones.network import (
    FRAME_BY_FRAME,
    FrameByFrame,
    network_backbone,
    text_backbone,
)
from obygaze_features.backbones.presets import Preset, choose_preset
from obygaze_features.backbones.tokenizer import Tokenizer, check_end, refuse_untrained
from obygaze_features.backbones.weights import (
    HUB,
    PROCESSOR_FILES,
    TOKENIZER_CONFIG,
    Weights,
    find_weights,
    object_beside,
    space_of,
)
from obygaze_features.errors import BackboneError, first_line

TEXT_HALF = (r"text_model\..*", r"text_projection\.weight", r"logit_scale", r"logit_bias")
IMAGE_HALF = (r"vision_model\..*", r"visual_projection\.weight", r"logit_scale", r"logit_bias")
CITATIONS = {
    "clip": "Radford et al., Learning transferable visual models from natural language supervision, "
    "ICML 2021",
    "siglip": "Zhai et al., Sigmoid loss for language image pre-training, ICCV 2023",
    "siglip2": "Tschannen et al., SigLIP 2: Multilingual vision-language encoders with improved semantic "
    "understanding, localization, and dense features, arXiv:2502.14786, 2025",
}
PRESETS_OF = {"clip": ("clip",), "siglip": ("siglip", "siglip2"), "siglip2": ("siglip2", "siglip")}
"""Generation -> the presets that its processor may ask for, the usual one first."""
GEMMA = ("GemmaTokenizer", "Siglip2Tokenizer")
"""Tokenizers of SigLIP 2, in repositories and in newer transformers."""


def clip(
    n_frames: int | None = None,
    *,
    weights: str = HUB["clip"],
    preset: str | None = None,
    compute: Compute | None = None,
) -> Backbone:
    """Build a frame-wise image network.

    Parameters
    ----------
    n_frames
        Frames per clip, any number; None is 32.
    preset
        Preprocessing; None is what the processor's configuration beside the weights asks for, or without one
        `clip` for a CLIP and `siglip` or `siglip2` for a SigLIP.
    """
    source = find_weights(weights)
    family, config = half_config(source, "vision")
    generation = generation_of(source, family)
    presets = PRESETS_OF[generation]
    if preset is None:
        preset = preset_of_processor(source, presets, size=config.image_size)
    cls = CLIPVisionModelWithProjection if family == "clip" else SiglipVision
    model = load_pretrained(cls, source, config, allow_unexpected=TEXT_HALF)
    frames = n_frames or 32
    width = config.projection_dim if family == "clip" else config.hidden_size
    return network_backbone(
        "clip",
        FrameByFrame(model, "image_embeds" if family == "clip" else "pooler_output"),
        n_frames=frames,
        shapes={"frames": (frames, width), "pooled": (width,)},
        meanings=FRAME_BY_FRAME,
        weights=source,
        preset=choose_preset(preset, (*presets, "obygaze12"), size=config.image_size),
        compute=compute or Compute(),
        head="visual projection" if family == "clip" else "attention pooling",
        layer="image embedding",
        architecture={"type": family, **plain_config(config)},
        citation=CITATIONS[generation],
        # Both arrays share their space with the text embeddings of the same weights.
        space=space_of(family, source),
    )


def clip_network(weights: str | Path | Weights) -> LoadedNetwork:
    """Load the image half of a CLIP itself; its output has `image_embeds`, `[B, D]`."""
    source = find_weights(weights)
    source.config_of_type(["clip"])
    _, config = half_config(source, "vision")
    name = preset_of_processor(source, ("clip",), size=config.image_size)
    module = load_pretrained(CLIPVisionModelWithProjection, source, config, allow_unexpected=TEXT_HALF)
    return LoadedNetwork(module, source, choose_preset(name, ("clip",), size=config.image_size))


def generation_of(weights: Weights, family: str) -> str:
    """Return the family, or `siglip2` where tokenizer or processor are those of SigLIP 2.

    `config.json` has one type for both generations of SigLIP. Only the second has Gemma's tokenizer and
    resizes by the bilinear filter (Tschannen et al. 2025; the repositories of Google).
    """
    if family != "siglip":
        return family
    tokenizer = str(object_beside(weights, TOKENIZER_CONFIG).get("tokenizer_class")).removesuffix("Fast")
    second = tokenizer in GEMMA or read_processor(weights).get("resample") == Resampling.BILINEAR
    return "siglip2" if second else family


def half_config(weights: Weights, half: Literal["vision", "text"]) -> tuple[str, Any]:
    """Return the family, `clip` or `siglip`, and the configuration of one half of the network."""
    if weights.seed is not None:
        return "clip", CLIPVisionConfig(patch_size=16)
    kinds = ("clip", f"clip_{half}_model", "siglip", f"siglip_{half}_model")
    kind = weights.config_of_type(kinds)["model_type"]
    family, config = kind.partition("_")[0], auto_config(weights)
    if kind != family:
        return family, config
    own = getattr(config, f"{half}_config")
    if family == "clip" and config.projection_dim:
        own.projection_dim = config.projection_dim  # in some repositories the half's own copy is outdated
    return family, own


def clip_text(*, weights: str = HUB["clip-text"], compute: Compute | None = None) -> TextBackbone:
    """Build the text half of the network whose image half is `clip`; both map to one space."""
    source = find_weights(weights)
    tokenizer, family, config = _prepare(source)
    cls = CLIPTextModelWithProjection if family == "clip" else SiglipText
    model = load_pretrained(cls, source, config, allow_unexpected=IMAGE_HALF)
    return text_backbone(
        "clip-text",
        TextHalf(model, "text_embeds" if family == "clip" else "pooler_output"),
        width=config.projection_dim if family == "clip" else config.projection_size,
        tokenizer=tokenizer,
        weights=source,
        space=family,
        compute=compute,
        head="text projection" if family == "clip" else "head over the last token",
        meaning="text embedding, not normalised",
        architecture={"type": family, **plain_config(config)},
        citation=CITATIONS[generation_of(source, family)],
    )


def _prepare(weights: Weights) -> tuple[Tokenizer, str, Any]:
    """Return the tokenizer, the family (`clip` or `siglip`) and the configuration of the text half."""
    refuse_untrained(weights)
    family, config = half_config(weights, "text")
    tokenizer = Tokenizer(weights, config.max_position_embeddings, pad=family == "siglip")
    # SigLIP 2 was trained on lower case, and Gemma's tokenizer ignores its own do_lower_case.
    trained_lower = generation_of(weights, family) == "siglip2"
    asked = object_beside(weights, TOKENIZER_CONFIG).get("do_lower_case", trained_lower)
    tokenizer.lower = bool(asked) and tokenizer.sees_case()
    if family == "clip":
        check_end(weights, tokenizer, config.eos_token_id)
    return tokenizer, family, config


class TextHalf(nn.Module):
    """A text network that returns its output of the given name."""

    def __init__(self, model: Any, output: str) -> None:
        super().__init__()
        self.model = model
        self.output = output

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Encode tokens, `[B, L]`."""
        vectors: torch.Tensor = getattr(self.model(input_ids=tokens), self.output)
        return vectors


# --- the preset that the processor's configuration beside the weights asks for
# ---------------------------------------------------------------------------
CLASSES: Mapping[str, Any] = {
    "CLIPImageProcessor": CLIPImageProcessorPil,
    "CLIPFeatureExtractor": CLIPImageProcessorPil,  # its name before 2023
    "SiglipImageProcessor": SiglipImageProcessorPil,
}
"""Classes whose configurations are understood; a class fills in what its configuration leaves out."""


def preset_of_processor(weights: Weights, names: Sequence[str], *, size: int) -> str:
    """Choose the preset that prepares pictures as the configuration beside the weights says.

    Parameters
    ----------
    names
        Presets for networks of this family, the usual one first: it is taken where there is no configuration.
    size
        Input size of the network.

    Raises
    ------
    BackboneError
        If the configuration cannot be read, or no preset does what it says; the message names the fields.
    """
    written = read_processor(weights)
    if not written:
        return names[0]
    kind = written.get("image_processor_type") or written.get("feature_extractor_type")
    usual = "CLIPImageProcessor" if names[0] == "clip" else "SiglipImageProcessor"
    cls = CLASSES.get(str(kind or usual).removesuffix("Fast").removesuffix("Pil"))
    if cls is None:
        raise _refusal(weights, names[0], f"image_processor_type is {kind}, expected {usual}")
    try:
        found = cls.from_dict(written).to_dict()
        found["resample"] = Resampling(found["resample"]).name.lower()
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise BackboneError(
            f"{weights.name}: the processor's configuration cannot be read: {first_line(error)}"
        ) from None
    apart = [_differences(found, choose_preset(name, tuple(names), size=size)) for name in names]
    if all(apart):
        raise _refusal(weights, names[0], "; ".join(apart[0]))
    return names[apart.index([])]


def read_processor(weights: Weights) -> dict[str, Any]:
    """Read the image processor's configuration; empty where there is none.

    Raises
    ------
    BackboneError
        If it is no JSON object, or the hub cannot be asked.
    """
    newer, older = PROCESSOR_FILES
    nested = object_beside(weights, newer).get("image_processor")
    return nested if isinstance(nested, dict) else object_beside(weights, older)


def _differences(found: Mapping[str, Any], preset: Preset) -> list[str]:
    """Say in which fields a configuration is not the preset's, with what is found and what is expected."""
    geometry, affine = preset.geometry, preset.require_affine()
    square = {"height": geometry.size, "width": geometry.size}
    expected: dict[str, Any] = {
        "do_resize": True,
        "resample": geometry.resample.removeprefix("pillow-"),
        "size": {"shortest_edge": geometry.shortest} if geometry.shortest else square,
        "do_center_crop": geometry.shortest is not None,
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        "image_mean": [
            -shift / (255 * scale) for scale, shift in zip(affine.scale, affine.shift, strict=True)
        ],
        "image_std": [1 / (255 * scale) for scale in affine.scale],
    }
    if geometry.shortest is not None:
        expected["crop_size"] = square
    return [
        f"{field} is {_shown(found.get(field))}, expected {_shown(value)}"
        for field, value in expected.items()
        if not _equal(found.get(field), value)
    ]


def _equal(found: Any, expected: Any) -> bool:
    if isinstance(expected, bool):
        return bool(found) is expected
    if isinstance(expected, list):
        return (
            isinstance(found, list | tuple)
            and len(found) == len(expected)
            and all(map(_equal, found, expected))
        )
    if isinstance(expected, float):  # files round the constants to seven digits
        return isinstance(found, int | float) and math.isclose(found, expected, abs_tol=1e-6)
    return bool(found == expected)


def _shown(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_shown, value))}]"
    return f"{value:.8g}" if isinstance(value, float) else str(value)


def _refusal(weights: Weights, name: str, differences: str) -> BackboneError:
    return BackboneError(
        f"{weights.name}: its processor prepares pictures as no preset does; by preset '{name}' "
        f"{differences} (`extract --preset {name}` takes the preset all the same)"
    )
