"""Choose the preset that the processor's configuration beside a CLIP's or SigLIP's weights asks for."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from PIL.Image import Resampling
from transformers import CLIPImageProcessorPil, SiglipImageProcessorPil

from obygaze_features.backbones.presets import Preset, choose_preset
from obygaze_features.backbones.weights import PROCESSOR_FILES, Weights, object_beside
from obygaze_features.errors import BackboneError, first_line

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
