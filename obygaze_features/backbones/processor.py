"""Prepare pictures as a network's own processor does, by its configuration beside the weights."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from obygaze_features.backbones.presets import HALF, IMAGENET, OPENAI, PRESETS, Affine, Geometry, Preset
from obygaze_features.backbones.weights import (
    CONFIG,
    PROCESSOR_FILES,
    TOKENIZER_CONFIG,
    Weights,
    kinds,
    object_beside,
)
from obygaze_features.errors import BackboneError
from obygaze_features.schema import Flag, Number, expected, fits

FILTERS = {2: "bilinear", 3: "bicubic"}
"""Pillow's numbers of filters, which processors name."""
Filter = Annotated[Literal[2, 3], Meta(description="2 (bilinear) or 3 (bicubic)")]
Edge = Annotated[int, Meta(ge=1, le=4096, description="the side of a square, in pixels")]
Factor = Annotated[float, Meta(gt=0, le=1, description="a number above 0, at most 1")]
Three = Annotated[list[Number], Meta(min_length=3, max_length=3, description="three numbers")]


class Processor(Struct, frozen=True, forbid_unknown_fields=True):
    """What a class of processors does where its configuration says nothing.

    Parameters
    ----------
    resample
        Pillow's number of the filter.
    size
        The shortest edge where the class crops, else both sides.
    crop
        Both sides of the centre crop; None: no crop.
    normalise
        Name of mean and standard deviation in `CONSTANTS`; None: values stay in 0 to 1.
    library
        Whose 8-bit arithmetic resizes.
    factor, offset
        What values of 0 to 255 are multiplied with, and what is added then.
    """

    resample: int
    size: int
    crop: int | None = None
    normalise: str | None = None
    library: Literal["pillow", "torch"] = "pillow"
    factor: float = 1 / 255
    offset: float = 0.0


PROCESSORS = kinds("processors", Processor)
"""Class of transformers -> what it does."""
CONSTANTS = {"imagenet": IMAGENET, "openai": OPENAI, "half": HALF}
ALIASES = {"FeatureExtractor": "ImageProcessor", "ViViT": "Vivit", "Fast": "", "Pil": ""}
"""Parts of a class's name in older and newer versions -> the name here."""

STEPS = {"do_resize", "do_rescale", "do_pad", "do_center_crop", "do_normalize", "do_convert_rgb"} | {
    *("do_sample_frames", "do_reduce_labels", "do_convert_annotations")
}
"""Steps of processors that are read, are always done, or are not of pictures; others change them."""


def preset_of_processor(
    weights: Weights, usual: str, *, side: int | None, multiple: int = 1, names: Sequence[str] = ()
) -> Preset:
    """Make the preset that prepares pictures as the configuration beside the weights says.

    Parameters
    ----------
    usual
        Class of the processor where there is no configuration, or it does not say.
    side
        Input size of the network; None: any multiple of `multiple`.
    names
        Presets whose name and constants are taken where the numbers are theirs, apart from how half a pixel
        is rounded.

    Raises
    ------
    BackboneError
        If the configuration cannot be read, asks for what no preset can do, or makes pictures of another size
        than the network's; the message names the field.
    """
    written = read_processor(weights)
    name = written.get("video_processor_type") or written.get("image_processor_type")
    name = str(name or written.get("feature_extractor_type") or usual)
    for part, ours in ALIASES.items():
        name = name.replace(part, ours)
    where = "its processor's configuration" if written else CONFIG
    reading = _Reading(f"{weights.name}: {where}", written)
    if name not in PROCESSORS:
        raise reading.refusal("image_processor_type", name, " or ".join(PROCESSORS))
    geometry = reading.geometry(PROCESSORS[name], None if written else side)
    if geometry.size % multiple or side not in (None, geometry.size):
        wanted = side or f"a multiple of {multiple}"
        raise reading.refusal("size after the crop", geometry.size, f"{wanted}, as the network takes it")
    preset = Preset(name, geometry, reading.affine(PROCESSORS[name]))
    same = [preset.named(PRESETS[one]) for one in names]
    return next((known for known in same if known), preset)


def read_processor(weights: Weights) -> dict[str, Any]:
    """Read the processor's configuration of pictures or videos; empty where there is none.

    Raises
    ------
    BackboneError
        If it is no JSON object, or the hub cannot be asked.
    """
    newer, *older = PROCESSOR_FILES
    document = object_beside(weights, newer)
    for part in ("video_processor", "image_processor"):
        if isinstance(document.get(part), dict):
            return dict(document[part])
    return next((found for name in older if (found := object_beside(weights, name))), {})


GEMMA = ("GemmaTokenizer", "Siglip2Tokenizer")
"""Tokenizers of SigLIP 2, in repositories and in newer transformers."""


def second_siglip(weights: Weights) -> bool:
    """Return whether a SigLIP is of the second generation.

    `config.json` has one type for both. Only the second has Gemma's tokenizer and resizes by the bilinear
    filter (Tschannen et al. 2025; the repositories of Google).
    """
    tokenizer = str(object_beside(weights, TOKENIZER_CONFIG).get("tokenizer_class")).removesuffix("Fast")
    return tokenizer in GEMMA or FILTERS.get(read_processor(weights).get("resample", 3)) == "bilinear"


class _Reading:
    """The fields of a configuration, each read or refused by its name."""

    def __init__(self, where: str, written: Mapping[str, Any]) -> None:
        self.where = where
        self.get = {field: value for field, value in written.items() if value is not None}.get
        for field in written:
            if field.startswith("do_") and field not in STEPS and self.read(field, Flag, usual=False):
                raise self.refusal(field, True, "false: nothing here does it")

    def refusal(self, field: str, found: object, expected: object) -> BackboneError:
        return BackboneError(f"{self.where}: {field} is {found}, expected {expected}")

    def read(self, field: str, kind: Any, usual: Any) -> Any:
        if not fits(found := self.get(field, usual), kind):
            raise self.refusal(field, repr(found), expected(kind))
        return found

    def geometry(self, usual: Processor, side: int | None) -> Geometry:
        """Read resizing and crop; what is not written is the class's, scaled to pictures of `side`."""
        get, own = self.get, usual.crop or usual.size
        for field, wanted in (("do_resize", True), ("do_rescale", True), ("do_pad", False)):
            if self.read(field, Flag, wanted) is not wanted:
                raise self.refusal(field, get(field), wanted)
        resample: Any = f"{usual.library}-{FILTERS[self.read('resample', Filter, usual.resample)]}"
        crops = self.read("do_center_crop", Flag, usual.crop is not None)
        crop = self._side("crop_size", get("crop_size", side or own)) if crops else None
        size = get("size", usual.size * (side or own) // own)
        if isinstance(size, int) and usual.crop is not None:
            size = {"shortest_edge": size}
        if not isinstance(size, dict) or set(size) != {"shortest_edge"}:
            side = self._side("size", size)
            if crop not in (None, side):
                raise self.refusal("crop_size", crop, f"{side}, the size of the whole picture, or no crop")
            return Geometry(resample, side)
        shortest = self._side("size", size["shortest_edge"])
        if crop is None or crop > shortest:
            found = f"{size} with do_center_crop {crops}, crop_size {crop}"
            raise self.refusal("size", found, "a square, or a crop within the shortest edge")
        return Geometry(resample, crop, shortest)

    def _side(self, field: str, found: Any) -> int:
        side = found
        if isinstance(found, dict) and set(found) == {"height", "width"} and len(set(found.values())) == 1:
            side = found["height"]
        if not fits(side, Edge):
            raise self.refusal(field, found, expected(Edge))
        return int(side)

    def affine(self, usual: Processor) -> Affine:
        factor = self.read("rescale_factor", Factor, usual.factor)
        offset = 0.0 if self.get("offset") is False else usual.offset
        mean: tuple[float, ...] = (0.0,) * 3
        std: tuple[float, ...] = (1.0,) * 3
        if self.read("do_normalize", Flag, usual.normalise is not None):
            mean, std = map(
                self._three, ("image_mean", "image_std"), CONSTANTS.get(usual.normalise or "", (None, None))
            )
        if min(std) <= 0:
            raise self.refusal("image_std", list(std), "numbers above 0")
        shift = tuple((offset - middle) / deviation for middle, deviation in zip(mean, std, strict=True))
        return Affine(tuple(factor / deviation for deviation in std), shift)

    def _three(self, field: str, usual: Sequence[float] | None) -> tuple[float, ...]:
        found = self.get(field, usual)
        numbers = found if isinstance(found, list | tuple) else [found] * 3
        if not fits(numbers, Three):
            raise self.refusal(field, found, expected(Three))
        return tuple(map(float, numbers))
