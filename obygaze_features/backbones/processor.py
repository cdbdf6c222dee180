"""Prepare pictures as a network's own processor does, by its configuration beside the weights."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, structs

from obygaze_features.backbones.presets import HALF, IMAGENET, OPENAI, PRESETS, Affine, Geometry, Preset
from obygaze_features.backbones.weights import (
    CONFIG,
    PROCESSOR_FILES,
    TOKENIZER_CONFIG,
    Weights,
    object_beside,
    read_specs,
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


PROCESSORS = read_specs("processors", Processor)
"""Class of transformers -> what it does."""
CONSTANTS = {"imagenet": IMAGENET, "openai": OPENAI, "half": HALF}
ALIASES = {"FeatureExtractor": "ImageProcessor", "ViViT": "Vivit", "Fast": "", "Pil": ""}
"""Parts of a class's name in older and newer versions -> the name here."""

STEPS_OF_PRESETS = {"do_resize": True, "do_rescale": True, "do_pad": False}
"""Step -> whether all presets do it; a configuration that says otherwise is refused."""
STEPS = {"do_resize", "do_rescale", "do_pad", "do_center_crop", "do_normalize", "do_convert_rgb"} | {
    *("do_sample_frames", "do_reduce_labels", "do_convert_annotations")
}
"""Steps of processors that are read, are always done, or are not of pictures; others change them."""


def preset_of_processor(
    weights: Weights, usual_class: str, *, side: int | None, multiple: int = 1, names: Sequence[str] = ()
) -> Preset:
    """Make the preset that resizes and normalises pictures as a network's processor configuration says.

    A processor of transformers prepares pictures; the file beside the weights that configures it names its
    class and its settings. For what the file leaves out, `PROCESSORS` has what the class does by default.

    Parameters
    ----------
    weights
        The weights.
    usual_class
        Class of the processor if there is no configuration, or it names no class.
    side
        Height and width of the network's input in pixels; None: any multiple of `multiple`.
    multiple
        What the size of the pictures must be a multiple of.
    names
        Presets to compare with. If one does the same, apart from how half a pixel is rounded, its name and
        constants are used.

    Raises
    ------
    BackboneError
        If the configuration cannot be read, asks for what no preset can do, or makes pictures of another size
        than the network's; the message names the field.
    """
    configuration = read_processor(weights)
    class_name = _class_name(configuration, usual_class)
    file_name = "its processor's configuration" if configuration else CONFIG
    fields = _ProcessorFields(f"{weights.name}: {file_name}", configuration)

    # What the class does where the configuration says nothing.
    if class_name not in PROCESSORS:
        raise fields.refusal("image_processor_type", class_name, " or ".join(PROCESSORS))
    defaults = PROCESSORS[class_name]
    if not configuration and side is not None:
        # No file states the size of pictures: it is that of the network's input.
        defaults = _scaled(defaults, side)

    # How pictures are resized, cropped and normalised. They must come out in a size that the network takes.
    geometry = fields.geometry(defaults)
    has_network_side = side is None or geometry.size == side
    has_whole_patches = geometry.size % multiple == 0
    if not has_network_side or not has_whole_patches:
        wanted = side or f"a multiple of {multiple}"
        raise fields.refusal("size after the crop", geometry.size, f"{wanted}, as the network takes it")
    preset = Preset(class_name, geometry, fields.affine(defaults))

    # A preset that does the same has a better known name.
    for known_name in names:
        known_preset = preset.same_as(PRESETS[known_name])
        if known_preset is not None:
            return known_preset
    return preset


def _scaled(defaults: Processor, side: int) -> Processor:
    """Scale the default sizes of a class of processors, so that its pictures have `side` x `side` pixels."""
    if defaults.crop is None:
        return structs.replace(defaults, size=side)
    # The edge before the crop stays in proportion to the crop.
    return structs.replace(defaults, size=defaults.size * side // defaults.crop, crop=side)


def _class_name(configuration: Mapping[str, Any], usual_class: str) -> str:
    """Return the name by which `networks.toml` knows the class of processor that a configuration names.

    Versions of transformers call one class by several names: `ViTImageProcessorFast` is `ViTImageProcessor`.

    Parameters
    ----------
    configuration
        The processor's configuration.
    usual_class
        Name of the class if the configuration names none.
    """
    name = usual_class
    for field in ("video_processor_type", "image_processor_type", "feature_extractor_type"):
        if configuration.get(field):
            name = str(configuration[field])
            break
    for text_in_other_versions, text_here in ALIASES.items():
        name = name.replace(text_in_other_versions, text_here)
    return name


def read_processor(weights: Weights) -> dict[str, Any]:
    """Read the configuration of the image or video processor beside the weights; empty if there is none.

    Raises
    ------
    BackboneError
        If it is no JSON object, or the hub cannot be asked.
    """
    # The newer file has a field for each processor; the older ones are the configuration of one.
    newer_file, *older_files = PROCESSOR_FILES
    document = object_beside(weights, newer_file)
    for processor in ("video_processor", "image_processor"):
        configuration = document.get(processor)
        if isinstance(configuration, dict):
            return dict(configuration)
    for file_name in older_files:
        configuration = object_beside(weights, file_name)
        if configuration:
            return configuration
    return {}


GEMMA_TOKENIZERS = ("GemmaTokenizer", "Siglip2Tokenizer")
"""Tokenizers of SigLIP 2, in repositories and in newer transformers."""


def is_siglip_2(weights: Weights) -> bool:
    """Return whether the weights of a SigLIP network are those of SigLIP 2.

    `config.json` has one type for both generations. Only SigLIP 2 has Gemma's tokenizer and resizes by the
    bilinear filter (Tschannen et al. 2025; the repositories of Google).
    """
    tokenizer_config = object_beside(weights, TOKENIZER_CONFIG)
    tokenizer_class = str(tokenizer_config.get("tokenizer_class")).removesuffix("Fast")
    if tokenizer_class in GEMMA_TOKENIZERS:
        return True
    # A configuration that states no filter is of the first generation, whose default is bicubic.
    resample: Any = read_processor(weights).get("resample")
    return FILTERS.get(resample) == "bilinear"


class _ProcessorFields:
    """The fields of a processor's configuration; each is checked when it is read, and refused by its name.

    Parameters
    ----------
    location
        The weights and the file, for messages.
    written
        The fields of the configuration; a null counts as absent.

    Raises
    ------
    BackboneError
        If it asks for a step that no preset does, such as `do_thumbnail`.
    """

    def __init__(self, location: str, written: Mapping[str, Any]) -> None:
        """Take over the fields of a configuration, except null ones, and check its steps."""
        self.where = location
        self.fields = {field: value for field, value in written.items() if value is not None}
        # A step is switched on by a field such as `do_resize`. A step that is unknown here, such as
        # `do_thumbnail`, would silently be left out: it is refused where it is switched on.
        for field in self.fields:
            is_unknown_step = field.startswith("do_") and field not in STEPS
            if is_unknown_step and self.read(field, Flag, default=False):
                is_on = True
                raise self.refusal(field, is_on, "false: nothing here does it")

    def get(self, field: str, default: Any = None) -> Any:
        """Return the value of a field; the default if it is absent."""
        return self.fields.get(field, default)

    def refusal(self, field: str, value: object, expected: object) -> BackboneError:
        """Return the error for a field with another value than expected."""
        return BackboneError(f"{self.where}: {field} is {value}, expected {expected}")

    def read(self, field: str, value_type: Any, default: Any) -> Any:
        """Return the value of a field, or the default if the configuration does not have it.

        Raises
        ------
        BackboneError
            The value is not of `value_type`, which may also bound it.
        """
        value = self.get(field, default)
        if not fits(value, value_type):
            raise self.refusal(field, repr(value), expected(value_type))
        return value

    def geometry(self, defaults: Processor) -> Geometry:
        """Return how a picture is resized and cropped.

        Either its shortest edge gets a length and the centre is cropped, or the whole picture is squashed to
        a square. The field `size` decides: {"shortest_edge": 224} or {"height": 224, "width": 224}.

        Parameters
        ----------
        defaults
            What the processor's class does where a field is absent.

        Raises
        ------
        BackboneError
            If a field has a wrong value, or asks for what no preset can do.
        """
        # Presets always resize and rescale, and never pad: the configuration must not say otherwise.
        for step, presets_do_it in STEPS_OF_PRESETS.items():
            does_it = self.read(step, Flag, default=presets_do_it)
            if does_it != presets_do_it:
                raise self.refusal(step, self.get(step), presets_do_it)

        filter_name = FILTERS[self.read("resample", Filter, defaults.resample)]
        resample: Any = f"{defaults.library}-{filter_name}"  # such as "pillow-bicubic"
        crop = self._crop_side(defaults)

        size = self.get("size", defaults.size)
        class_crops = defaults.crop is not None
        if isinstance(size, int) and class_crops:
            # A single number is the shortest edge in classes that crop, and both sides in all others.
            size = {"shortest_edge": size}
        is_shortest_edge = isinstance(size, dict) and set(size) == {"shortest_edge"}
        if is_shortest_edge:
            return self._cropped(resample, size, crop)
        return self._squashed(resample, size, crop)

    def _crop_side(self, defaults: Processor) -> int | None:
        """Return the side of the centre crop in pixels; None if there is no crop.

        `defaults` is what the processor's class does where a field is absent.
        """
        class_crops = defaults.crop is not None
        if not self.read("do_center_crop", Flag, class_crops):
            return None
        default_side = defaults.crop or defaults.size
        return self._side("crop_size", self.get("crop_size", default_side))

    def _cropped(self, resample: Any, size: dict[str, Any], crop: int | None) -> Geometry:
        """Return the geometry that resizes the shortest edge, then crops the centre to `crop` x `crop`.

        Parameters
        ----------
        resample
            The filter, such as "pillow-bicubic".
        size
            The field of the size, {"shortest_edge": pixels}.
        crop
            Side of the crop in pixels; None if there is no crop.

        Raises
        ------
        BackboneError
            If there is no crop, or it is larger than the shortest edge.
        """
        shortest = self._side("size", size["shortest_edge"])
        if crop is None or crop > shortest:
            asked_for = f"{size} with do_center_crop {crop is not None}, crop_size {crop}"
            raise self.refusal("size", asked_for, "a square, or a crop within the shortest edge")
        return Geometry(resample, crop, shortest)

    def _squashed(self, resample: Any, size: Any, crop: int | None) -> Geometry:
        """Return the geometry that squashes the whole picture to a square.

        Parameters
        ----------
        resample
            The filter, such as "pillow-bicubic".
        size
            The field of the size: a number of pixels, or {"height": pixels, "width": pixels}.
        crop
            Side of a crop in pixels, which must then be the whole square; None if there is no crop.
        """
        side = self._side("size", size)
        if crop not in (None, side):
            raise self.refusal("crop_size", crop, f"{side}, the size of the whole picture, or no crop")
        return Geometry(resample, side)

    def _side(self, field: str, value: Any) -> int:
        """Return the side of a square in pixels, by a field's value.

        The value is a number, `224`, or both sides, `{"height": 224, "width": 224}`.

        Raises
        ------
        BackboneError
            If the value is something else, such as an oblong.
        """
        side = value
        if isinstance(value, dict) and set(value) == {"height", "width"}:
            is_square = value["height"] == value["width"]
            side = value["height"] if is_square else None
        if not fits(side, Edge):
            raise self.refusal(field, value, expected(Edge))
        return int(side)

    def affine(self, defaults: Processor) -> Affine:
        """Return how pixels of 0 to 255 are normalised: rescaled, then standardised by mean and deviation.

        A processor computes `((factor * x + offset) - mean) / std` of a pixel x. This is `scale * x + shift`,
        which the result holds for each channel.

        Parameters
        ----------
        defaults
            What the processor's class does where a field is absent.
        """
        factor = self.read("rescale_factor", Factor, defaults.factor)
        # What a class adds after the multiplication (-1 in ViViT's) is not a field; `offset: false` switches
        # it off.
        offset = 0.0 if self.get("offset") is False else defaults.offset
        mean: tuple[float, ...] = (0.0,) * 3  # these change nothing
        std: tuple[float, ...] = (1.0,) * 3
        if self.read("do_normalize", Flag, defaults.normalise is not None):
            # A class that does not normalise by default has no constants: the configuration must give them.
            default_mean, default_std = CONSTANTS.get(defaults.normalise or "", (None, None))
            mean = self._three("image_mean", default_mean)
            std = self._three("image_std", default_std)
        if min(std) <= 0:
            raise self.refusal("image_std", list(std), "numbers above 0")
        scale = tuple(factor / deviation for deviation in std)
        shift = tuple((offset - middle) / deviation for middle, deviation in zip(mean, std, strict=True))
        return Affine(scale, shift)

    def _three(self, field: str, default: Sequence[float] | None) -> tuple[float, ...]:
        """Return the numbers of red, green and blue in a field, which may have one number for all three.

        `default` has those of a configuration without the field; None if it must have one.
        """
        value = self.get(field, default)
        numbers = value if isinstance(value, list | tuple) else [value] * 3
        if not fits(numbers, Three):
            raise self.refusal(field, value, expected(Three))
        return tuple(float(number) for number in numbers)
