"""Compute Grad-CAM maps of a loaded network (Selvaraju et al., 2017) with the package grad-cam."""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from obygaze_features.backbones import Preset
from obygaze_features.backbones.precision import products
from obygaze_features.errors import BackboneError

Target = Callable[[torch.Tensor], torch.Tensor]
"""From a network's output for one image, [D], to the number whose gradient is taken."""


@dataclass(frozen=True, eq=False)
class MappedNetwork:
    """A network prepared for Grad-CAM.

    Attributes
    ----------
    network
        Maps float [1, 3, h, w], normalised, to [1, D].
    layer
        The module of the network whose output is weighted.
    places
        Function from that output to [1, C, h, w]; None if it has that shape already.
    preset
        Preprocessing of a picture.
    about
        Description of what affects the maps.
    """

    network: nn.Module
    layer: nn.Module
    places: Callable[[torch.Tensor], torch.Tensor] | None
    preset: Preset
    about: Mapping[str, object]

    def pixels(self, frame: NDArray[np.uint8]) -> torch.Tensor:
        """Prepare a picture, RGB uint8 [H, W, 3], for the network: [1, 3, h, w]."""
        affine = self.preset.require_affine()
        some = next(self.network.parameters())
        scale, shift = (some.new_tensor(values)[:, None, None] for values in (affine.scale, affine.shift))
        prepared = torch.from_numpy(self.preset.geometry(frame)).to(some.device).permute(2, 0, 1)
        return (prepared * scale + shift)[None]


@dataclass(frozen=True, eq=False)
class LiveMap:
    """The saliency map of an image for a target.

    Attributes
    ----------
    score : float
        The target value whose gradient was taken.
    cam : float64 [h, w]
        Sum of the channels weighted by their mean gradients, clipped at 0, at the layer's resolution.
    """

    score: float
    cam: NDArray[np.float64]


def similarity(text: torch.Tensor, score: Literal["cosine", "dot"]) -> Target:
    """Compute the cosine or dot product of an image embedding and a text embedding [D]."""
    if score == "dot":
        return lambda image: image @ text
    return lambda image: (image @ text) / (image.norm() * text.norm())


def class_score(number: int) -> Target:
    """Return the logit of one class (0-based)."""

    def score(scores: torch.Tensor) -> torch.Tensor:
        if number >= len(scores):
            raise BackboneError(f"the network has {len(scores)} classes, from 0 on, and none is {number}")
        return scores[number]

    return score


def live_map(mapped: MappedNetwork, pixels: torch.Tensor, target: Target) -> LiveMap:
    """Compute the Grad-CAM map of a scalar output of a network.

    Parameters
    ----------
    pixels
        As `MappedNetwork.pixels` gives them, [1, 3, h, w].

    Raises
    ------
    BackboneError
        The layer has no activations that can be mapped, or does not affect the target; or the target or its
        map is not finite, as for a zero embedding.
    ModuleNotFoundError
        Without the package grad-cam.
    """
    package = importlib.import_module("pytorch_grad_cam")  # slow, and an extra
    checking = mapped.layer.register_forward_hook(_check_output(mapped))
    cam = package.GradCAM(mapped.network, [mapped.layer], mapped.places)
    hooks = cam.activations_and_grads
    try:
        with torch.enable_grad(), products(tf32=False):
            # The weights are frozen, so the input must require a gradient.
            score = target(hooks(pixels.detach().requires_grad_())[0])
            if not score.requires_grad:
                raise BackboneError("the network gives numbers without a gradient (does it detach them?)")
            torch.autograd.backward([score])
        if len(hooks.activations) != 1 or len(hooks.gradients) != 1:
            raise BackboneError(
                f"{_layer(mapped)} runs {len(hooks.activations)} times and got {len(hooks.gradients)} "
                "gradients: a layer that runs once and decides the output is needed"
            )
        acts, gradients = (each[0].double().numpy() for each in (hooks.activations, hooks.gradients))
        # Calling `cam` itself scales every map to 0 .. 1, which makes images incomparable.
        summed = cam.get_cam_image(pixels, mapped.layer, [target], acts, gradients)[0]
    finally:
        hooks.release()
        checking.remove()
    value = float(score.detach())
    if not (np.isfinite(value) and np.isfinite(summed).all()):
        raise BackboneError("the score or its gradient is not finite (an embedding of zeros?)")
    return LiveMap(value, np.maximum(summed, 0.0))


def enlarged(cam: NDArray[np.float64], side: int) -> NDArray[np.float32]:
    """Enlarge a map [h, w] to a square, bicubic with a = -0.75; clip negative values to 0."""
    whole = torch.from_numpy(cam)[None, None]
    big = nn.functional.interpolate(whole, size=(side, side), mode="bicubic", align_corners=False)
    found: NDArray[np.float32] = big[0, 0].clamp(min=0.0).float().numpy()
    return found


def _check_output(mapped: MappedNetwork) -> Callable[[Any, Any, Any], None]:
    """Check the output of the layer."""

    def check(_: Any, __: Any, output: Any) -> None:
        if not isinstance(output, torch.Tensor):
            raise BackboneError(f"{_layer(mapped)} gives {type(output).__name__}, and one tensor is needed")
        shape = list(output.shape)
        if mapped.places is None and (output.ndim != 4 or shape[0] != 1):
            raise BackboneError(f"{_layer(mapped)} gives {shape}, and [1, C, h, w] is needed")

    return check


def _layer(mapped: MappedNetwork) -> str:
    return f"layer '{mapped.about.get('layer')}'"
