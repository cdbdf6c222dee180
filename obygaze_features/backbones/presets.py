"""Define named preprocessing presets that give the same pixels on every machine.

A preset is a geometry, which runs on uint8 in the decode workers and needs numpy alone, and an affine, one
multiplication and one addition per channel, which runs on the device. A preset's numbers never change; other
numbers need a new name.

| name | geometry | where it is from |
| --- | --- | --- |
| `obygaze12` | squash to 224 x 224, OpenCV's 8-bit bilinear | the published ObyGaze12 features |
| `xclip` | shortest edge to 224, Pillow's bilinear, centre crop | the processor of microsoft/xclip-* |
| `vivit-hub` | same | the processor of google/vivit-*, in [-3, 1] |
| `vivit-scenic` | shortest edge to 256, Pillow's bilinear, crop of 224 | as ViViT was trained, in [-1, 1] |
| `clip` | shortest edge to 224, Pillow's bicubic, centre crop | CLIP (Radford et al. 2021) with torchvision |
| `siglip` | squash to 224 x 224, Pillow's bicubic | SigLIP (Zhai et al. 2023) |

`obygaze12` uses the affine of the backbone.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from obygaze_features.arguments import checked
from obygaze_features.backbones.resize import PILLOW_BITS, antialiased_resize, opencv_bilinear
from obygaze_features.errors import BackboneError

Resample = Literal["opencv-bilinear", "pillow-bilinear", "pillow-bicubic", "torch-bilinear", "torch-bicubic"]


@dataclass(frozen=True, slots=True)
class Geometry:
    """Geometric preprocessing of a frame in uint8; can be pickled, compared and hashed.

    Parameters
    ----------
    resample
        The filter, bit-identical to that of the named library.
    shortest
        The edge that the shorter side is resized to, the longer one in proportion (truncated); None squashes
        both sides to `size`.
    size
        Height and width of the result, a centre crop where `shortest` is given.
    crop_rounding
        Rounding of half a pixel of margin: `down`, or `even` (torchvision's).
    width
        Width of the result of a squash, where it is not the height.
    """

    resample: Resample
    size: int
    shortest: int | None = None
    crop_rounding: Literal["down", "even"] = "down"
    width: int | None = None

    @property
    def sides(self) -> tuple[int, int]:
        """Height and width of the result."""
        return self.size, self.width or self.size

    def __call__(self, frame: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Resize a frame, uint8 `[H, W, 3]`, and crop its centre if `shortest` is set.

        Returns uint8 `[height, width, 3]`, of the height and width in `sides`.
        """
        if self.resample == "opencv-bilinear":  # always a squash, as OpenCV's filter has no crop here
            return opencv_bilinear(frame, *self.sides)

        library, kernel = self.resample.split("-")  # such as "pillow" and "bicubic"
        height, width = self.resized(*frame.shape[:2])
        # A squash has the size of the result already, so that both margins are 0.
        top = self.margin(height, self.sides[0])
        left = self.margin(width, self.sides[1])
        crop = (top, left, *self.sides)

        # Pillow rounds the weights of its filters to so many bits; torch chooses the number itself.
        bits = PILLOW_BITS if library == "pillow" else None
        return antialiased_resize(frame, (height, width), crop, kernel, bits)

    def resized(self, height: int, width: int) -> tuple[int, int]:
        """Return height and width in pixels that a frame of `height` x `width` is resized to before the crop.

        For example, 720 x 1280 with a shortest edge of 224 is resized to 224 x 398.
        """
        if self.shortest is None:
            return self.sides
        # The shorter side becomes `shortest`. The longer one is scaled as much, and its fraction is cut off.
        if height <= width:
            return self.shortest, self.shortest * width // height
        return self.shortest * height // width, self.shortest

    def margin(self, extent: int, kept: int) -> int:
        """Return how many pixels a centre crop cuts off at the top (or left).

        Parameters
        ----------
        extent
            Height (or width) of the resized frame in pixels.
        kept
            Height (or width) of the crop in pixels.
        """
        n_cut_off = extent - kept  # on both sides
        if self.crop_rounding == "even":
            return round(n_cut_off / 2)  # Python rounds halves to the even number
        return n_cut_off // 2

    def record(self) -> dict[str, Any]:
        """Return the geometry in words, for the provenance."""
        height, width = self.sides
        if not self.shortest:
            return {"resize": f"squash to {height}x{width}, {self.resample}", "crop": None}
        return {
            "resize": f"shortest edge to {self.shortest}, {self.resample}",
            "crop": f"centre {self.size}x{self.size}, half a pixel rounded {self.crop_rounding}",
        }


@dataclass(frozen=True, slots=True)
class Affine:
    """The normalisation of channel c as one step, `scale[c] * x + shift[c]`, for x in 0-255.

    Both are computed in float64 and rounded once, to the network's data type.
    """

    scale: tuple[float, ...]
    shift: tuple[float, ...]

    @classmethod
    def of(cls, mean: Sequence[float], std: Sequence[float]) -> "Affine":
        """Combine `(x / 255 - mean) / std` of each channel into one multiplication and one addition.

        Parameters
        ----------
        mean, std
            Mean and standard deviation of each channel, for pixels scaled to 0-1.
        """
        scale = tuple(1.0 / (255.0 * deviation) for deviation in std)
        shift = tuple(-middle / deviation for middle, deviation in zip(mean, std, strict=True))
        return cls(scale, shift)


IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
OPENAI = ((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711))
HALF = ((0.5,) * 3, (0.5,) * 3)
"""Means and standard deviations of red, green and blue, in 0 to 1."""
MINUS_THREE_TO_ONE = Affine((1 / 63.75,) * 3, (-3.0,) * 3)
MINUS_ONE_TO_ONE = Affine((1 / 127.5,) * 3, (-1.0,) * 3)
"""Affines that bring pixels of 0 to 255 to the range of the name."""


@dataclass(frozen=True, slots=True)
class Preset:
    """A named geometry with its affine."""

    name: str
    geometry: Geometry
    affine: Affine

    def record(self) -> dict[str, Any]:
        """Return the preprocessing of a frame, for the provenance."""
        return {
            "name": self.name,
            **self.geometry.record(),
            "constants": {"scale": list(self.affine.scale), "shift": list(self.affine.shift)},
            "order": "resize, crop, uint8; scale * x + shift a channel, RGB",
        }

    def same_as(self, other: "Preset") -> "Preset | None":
        """Return another preset, scaled to the size of this one, if both do the same to a picture; else None.

        It finds the known preset of a processor whose settings were read from a file. Constants may differ in
        the seventh digit.

        A crop may leave a margin of 10.5 pixels at each side. Which way this is rounded is not compared, as
        the settings of processors do not state it.
        """
        scaled = choose_preset(other.name, allowed=(other.name,), size=self.geometry.size)

        constants = (*self.affine.scale, *self.affine.shift)
        scaled_constants = (*scaled.affine.scale, *scaled.affine.shift)
        for constant, scaled_constant in zip(constants, scaled_constants, strict=True):
            if not math.isclose(constant, scaled_constant, rel_tol=1e-6, abs_tol=1e-6):
                return None

        geometry_rounded_alike = replace(self.geometry, crop_rounding=scaled.geometry.crop_rounding)
        return scaled if geometry_rounded_alike == scaled.geometry else None


OBYGAZE12 = "obygaze12"
"""Name of the preset whose geometry is `SQUASH`, and whose affine is that of another preset."""
SQUASH = Geometry("opencv-bilinear", size=224)
"""Pictures of any form are squashed to a square."""
PRESETS: Mapping[str, Preset] = {
    preset.name: preset
    for preset in (
        Preset("xclip", Geometry("pillow-bilinear", 224, 224), Affine.of(*IMAGENET)),
        Preset("vivit-hub", Geometry("pillow-bilinear", 224, 224), MINUS_THREE_TO_ONE),
        Preset("vivit-scenic", Geometry("pillow-bilinear", 224, 256), MINUS_ONE_TO_ONE),
        Preset("clip", Geometry("pillow-bicubic", 224, 224, "even"), Affine.of(*OPENAI)),
        Preset("siglip", Geometry("pillow-bicubic", 224), MINUS_ONE_TO_ONE),
        Preset("siglip2", Geometry("pillow-bilinear", 224), MINUS_ONE_TO_ONE),
    )
}


@checked
def choose_preset(name: str, allowed: tuple[str, ...], *, size: int = 224) -> Preset:
    """Return a preset by its name, scaled to the input size of a network.

    Parameters
    ----------
    name
        Name of the preset.
    allowed
        Names of the presets that the backbone supports. `obygaze12` states only how pictures are resized, as
        for the published ObyGaze12 features; it normalises pixels as the first of these presets does.
    size
        Side of the network's square input in pixels, which is recorded.

    Raises
    ------
    BackboneError
        If the backbone does not support the preset.
    """
    if name not in allowed:
        raise BackboneError(f"preset '{name}' is none of this backbone's, which are {', '.join(allowed)}")
    if name == OBYGAZE12:
        usual_preset = PRESETS[allowed[0]]
        preset = Preset(name, SQUASH, usual_preset.affine)
    else:
        preset = PRESETS[name]

    # The shorter side before the crop keeps its ratio to the side of the crop.
    geometry = preset.geometry
    shortest = None  # no crop
    if geometry.shortest is not None:
        shortest = geometry.shortest * size // geometry.size
    scaled_geometry = replace(geometry, size=size, shortest=shortest)
    return replace(preset, geometry=scaled_geometry)
