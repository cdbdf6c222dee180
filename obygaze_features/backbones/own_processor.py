"""Prepare pictures with the very processor that transformers has for a class, in the workers that decode.

A processor gives normalised numbers. Here they are turned back into 8 bits, as all frames are held: what it
gives for a black and for a white picture says how values 0 and 255 come out, and so what each value was.
Then one picture of noise is prepared both ways. A processor for which they differ by more than the rounding
to 8 bits does more than resize, cut and scale, and is refused.

A processor of patches gives P patches `[P, D]` and their grid, where P depends on the frame's form. They are
packed into an array whose size does not: a first row with numbers (P and the sides of the grid), then a row
for each patch, then unused rows. The row of numbers must survive the network's input, whose precision may be
half, so that each bit of a number is a value of its own, 0 or 255.
"""

import inspect
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch
import transformers
from numpy.typing import NDArray
from transformers import AutoImageProcessor
from transformers.utils.import_utils import is_torchvision_available

from obygaze_features.backbones.checkpoint import load_from_folder, quiet
from obygaze_features.backbones.class_calls import (
    CLIPS_ARGUMENT,
    MASK_ARGUMENTS,
    SHAPES_ARGUMENT,
    ClassCall,
    processor_names,
)
from obygaze_features.backbones.presets import Affine
from obygaze_features.backbones.processor import read_processor
from obygaze_features.backbones.weights import PROCESSOR_FILES, Weights, file_of, object_beside
from obygaze_features.errors import BackboneError, first_line

LEVEL_SLACK = 0.51
"""Levels of 255 by which a picture may differ: rounding takes half a level, float32 a little."""
NUMBER_BITS = 16
"""Bits of a number in the first row of packed patches."""
MAX_NUMBERS = 4
"""Numbers in that row at most: how many patches are used, and time, height and width of the grid."""
TRIED_SIDES = ((360, 640), (640, 360), (480, 480), (270, 640), (1080, 1920), (1920, 1080), (2048, 2048))
"""Heights and widths of pictures that a processor is asked about: from a phone's form to a wide film's."""
MAX_PATCHES = 1 << 15
"""Patches of a picture at most, so that a clip of frames fits in memory."""


NEEDS_TORCHVISION = "needs torchvision, of the same build as torch (pip install torchvision)"
"""The end of a message about a processor."""


class Picture(NamedTuple):
    """What a processor gives of one picture.

    Attributes
    ----------
    values
        `[3, h, w]`, or patches `[P, D]`.
    grid
        Of patches: time, height and width, or height and width; empty for pictures.
    other_arguments
        Other outputs by their names, such as the side of merged patches.
    """

    values: NDArray[np.float32]
    grid: tuple[int, ...]
    other_arguments: Mapping[str, Any]


@dataclass(frozen=True)
class OwnProcessor:
    """A backbone's `prepare`: one frame, uint8 `[H, W, 3]`, as a class's own processor prepares it.

    Parameters
    ----------
    name
        Class of transformers.
    settings
        Its settings, as JSON.
    scale, shift
        What turns a value of 0 to 255 into the processor's: of each channel; of patches, of each element.
    sides
        Height and width of the result. Of packed patches: one row more than there is room for patches, since
        the first row is a header; and a third of a patch's elements, as each pixel holds three.
    is_packed
        Whether it gives patches, which are packed.
    """

    name: str
    settings: str
    scale: tuple[float, ...]
    shift: tuple[float, ...]
    sides: tuple[int, int]
    is_packed: bool = False

    def __call__(self, frame: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Prepare a frame with the processor, and store the result as uint8 `[*sides, 3]`.

        Raises
        ------
        BackboneError
            If the picture comes out in another size, or has more patches than there is room for.
        """
        picture = call_processor(self.name, self.settings, frame)
        if self.is_packed:
            return self._packed(picture)
        if picture.values.shape[1:] != self.sides:
            raise BackboneError(
                f"{self.name} makes {list(picture.values.shape[1:])} of a frame of {list(frame.shape[:2])}, "
                f"expected {list(self.sides)}: its size must not depend on the frame's"
            )
        channels_last = picture.values.transpose(1, 2, 0)  # [h, w, 3], as there is a scale for each channel
        return np.ascontiguousarray(self._levels(channels_last))

    def _levels(self, values: NDArray[np.float32]) -> NDArray[np.uint8]:
        """Return a processor's values in 8 bits: the levels x, 0 to 255, of which they are scale x + shift.

        The last axis of the values is that of the channels, or of the elements of a patch.
        """
        levels = np.rint((values - np.array(self.shift)) / np.array(self.scale))
        return np.asarray(levels.clip(0, 255), dtype=np.uint8)

    def _packed(self, picture: Picture) -> NDArray[np.uint8]:
        """Pack the patches `[P, D]` of a picture into an array whose size does not depend on P.

        It has the form of a picture, uint8 `[room + 1, D / 3, 3]`, as frames have on their way to the
        network. The first row of D elements is a header with the numbers that the network's module needs: P,
        then the sides of the grid. The patches follow, one a row; unused rows are 0.

        Raises
        ------
        BackboneError
            The picture has more patches than there is room for.
        """
        n_patches, n_elements = picture.values.shape
        n_rows, _width = self.sides
        room = n_rows - 1  # all rows but the header
        if n_patches > room:
            raise BackboneError(
                f"{self.name} makes {n_patches} patches of a frame, and there is room for {room}"
            )

        header_bits: list[int] = []
        for number in (n_patches, *picture.grid):
            header_bits += _bits_of(number)

        rows = np.zeros((n_rows, n_elements), np.uint8)
        # The network's module may get the rows in half precision, in which large numbers would be rounded. A
        # bit that is 0 or 255 can be told in any precision.
        rows[0, : len(header_bits)] = 255 * np.array(header_bits, np.uint8)
        rows[1 : n_patches + 1] = self._levels(picture.values)
        return rows.reshape(*self.sides, 3)

    @property
    def affine(self) -> Affine:
        """Return scale and shift of each of three channels, by which a network normalises what we prepare.

        Patches are packed into a picture whose channels are no colours and whose first row is a header of
        numbers. Normalising it by channels would spoil both, so that it gets a scale of 1 and a shift of 0.
        The network's module (`PackedPictures`) unpacks the patches and normalises each of their elements.
        """
        if self.is_packed:
            scale_of_channels = (1.0, 1.0, 1.0)
            shift_of_channels = (0.0, 0.0, 0.0)
            return Affine(scale_of_channels, shift_of_channels)
        return Affine(self.scale, self.shift)

    def record(self) -> dict[str, Any]:
        """Return, for the provenance of features, how a frame is prepared: in words, and with all settings.

        A class of transformers prepares it (its "own processor"), whose values are stored in 8 bits. The
        network gets them back as scale * x + shift for each stored x of 0 to 255; scale and shift were found
        out from what the processor makes of a black and of a white picture.
        """
        settings = json.loads(self.settings)
        # The processor's settings that are set, such as its size, mean and deviation.
        constants = {field: value for field, value in settings.items() if value is not None}
        return {
            "name": self.name,
            "resize": "by the class's own processor, of these settings",
            "crop": None,
            "constants": constants,
            "order": "the processor; rounded to uint8; scale * x + shift, as a black and a white picture say",
        }


def _bits_of(number: int) -> list[int]:
    """Return the `NUMBER_BITS` bits of a number, the lowest one first: 5 is [1, 0, 1, 0, 0, ...]."""
    return [(number >> index) & 1 for index in range(NUMBER_BITS)]


class Samples(NamedTuple):
    """What a processor returned for pictures that are known: noise, black and white.

    Attributes
    ----------
    label
        Names of the weights and the processor, for messages.
    name, settings
        Class of transformers, and its settings as JSON.
    noise
        For pictures of noise, one of each of `TRIED_SIDES`.
    black, white
        For a black and for a white picture, of the first of `TRIED_SIDES`.
    """

    label: str
    name: str
    settings: str
    noise: list[Picture]
    black: Picture
    white: Picture


def own_processor(weights: Weights, call: ClassCall, cls: Any) -> OwnProcessor:
    """Load the processor in the weights' folder, and check that it only resizes, cuts and scales.

    A backbone stores what it gives in 8 bits a value, which would lose the result of anything else.
    Random weights have the default processor of their class.

    Parameters
    ----------
    weights
        The weights.
    call, cls
        How the network is called, and its class.

    Raises
    ------
    BackboneError
        If there is no processor, it cannot be loaded, or its pictures do not fit into 8 bits.
    """
    loaded = _load_processor(weights, call, cls)
    samples = _run_on_known_pictures(loaded, weights)
    processor = _patch_processor(samples) if call.takes_patches else _picture_processor(samples)
    _refuse_if_inexact(processor, samples)
    return processor


def _run_on_known_pictures(processor: Any, weights: Weights) -> Samples:
    """Prepare known pictures with a transformers processor: noise of several sizes, a black and a white one.

    What comes out tells the size, the scale and the shift of its results.

    Raises
    ------
    BackboneError
        The processor cannot prepare them.
    """
    name = type(processor).__name__
    settings = _settings(processor, weights)
    label = f"{weights.name}: its processor {name}"
    height, width = TRIED_SIDES[0]
    black = np.zeros((height, width, 3), np.uint8)
    white = 255 - black
    try:
        return Samples(
            label,
            name,
            settings,
            noise=[call_processor(name, settings, _noise(*sides)) for sides in TRIED_SIDES],
            black=call_processor(name, settings, black),
            white=call_processor(name, settings, white),
        )
    except Exception as error:  # noqa: BLE001 - a stranger's settings raise anything
        raise BackboneError(f"{label} cannot prepare a picture: {first_line(error)}") from None


def _settings(processor: Any, weights: Weights) -> str:
    """Return the settings from which a transformers processor can be made again, as JSON.

    Arguments that its class requires but does not save, as the class for networks of timm does, are taken
    from the network's configuration.
    """
    settings: dict[str, Any] = json.loads(processor.to_json_string())
    parameters = inspect.signature(type(processor).__init__).parameters
    for name, parameter in parameters.items():
        has_no_default = parameter.default is parameter.empty
        is_required = has_no_default and parameter.kind == parameter.POSITIONAL_OR_KEYWORD
        if is_required and name != "self" and name not in settings:
            settings[name] = weights.config().get(name)
    return json.dumps(settings, sort_keys=True)


def _picture_processor(samples: Samples) -> OwnProcessor:
    """Describe a processor of whole pictures so that its results can be stored in 8 bits a value.

    Its size, scale and shift follow from what it gave for known pictures: the value of a black pixel is the
    shift, and that of a white one is 255 times the scale above it.

    Raises
    ------
    BackboneError
        The results are not pictures of one size with three channels, or black equals white.
    """
    shapes = {picture.values.shape for picture in samples.noise}
    shape = samples.noise[0].values.shape
    if len(shape) != 3 or shape[0] != 3:
        raise BackboneError(
            f"{samples.label} makes {list(shape)} of a picture, expected three channels of one picture"
        )
    if len(shapes) > 1:
        raise BackboneError(
            f"{samples.label} makes pictures of sizes that depend on the frame, such as {min(shapes)[1:]} "
            f"and {max(shapes)[1:]}: give its size as height and width, or a crop"
        )

    _, height, width = shape
    # In the middle of the picture, as some processors add a margin.
    black = samples.black.values[:, height // 2, width // 2].astype(float)  # [3]
    white = samples.white.values[:, height // 2, width // 2]
    scale = (white - black) / 255
    if not (np.isfinite(scale).all() and (scale != 0).all()):
        raise BackboneError(f"{samples.label} makes the same of black and white")
    return OwnProcessor(
        samples.name,
        samples.settings,
        scale=tuple(scale.tolist()),
        shift=tuple(black.tolist()),
        sides=(int(height), int(width)),
    )


def _patch_processor(samples: Samples) -> OwnProcessor:
    """Describe a processor of patches so that its results can be stored in 8 bits a value.

    Such a processor cuts a picture into P patches of D elements, and P depends on the picture's form. All
    that is known of it is what it gave for known pictures (`samples`). Patches of noise pictures of many
    forms say how many rows to reserve. A black and a white picture say how levels 0 to 255 come out: the
    value of a black element is the shift, and that of a white one is 255 times the scale above it. Each
    element of a patch has its own scale and shift, as channels lie in another order in each class.

    Raises
    ------
    BackboneError
        The results are not patches of three channels with a grid, or too many or too large.
    """
    gives_patches_with_grid = all(picture.values.ndim == 2 and picture.grid for picture in samples.noise)
    if not gives_patches_with_grid:
        raise BackboneError(f"{samples.label} gives no patches with a grid, which the network takes")

    black = samples.black.values[0].astype(float)  # [D], the first patch
    white = samples.white.values[0]
    scale = (white - black) / 255
    n_elements = len(black)
    # In patches of three channels, black and white differ in every element.
    black_differs_from_white = np.isfinite(scale).all() and (scale != 0).all()
    if n_elements % 3 != 0 or not black_differs_from_white:
        raise BackboneError(
            f"{samples.label} gives patches of {n_elements} elements that are not three channels"
        )

    max_patches = max(len(picture.values) for picture in samples.noise)
    # An eighth more, as frames of a shape that was not tried may have a few more patches.
    room = max_patches + max_patches // 8
    # The patches are stored as the rows of an array, below a header. This is a row too, of as many elements
    # as a patch, and each bit of its numbers takes one.
    has_room_for_header = n_elements >= MAX_NUMBERS * NUMBER_BITS
    if room > MAX_PATCHES or not has_room_for_header:
        raise BackboneError(
            f"{samples.label} makes {max_patches} patches of {n_elements} elements of a picture"
        )
    return OwnProcessor(
        samples.name,
        samples.settings,
        scale=tuple(scale.tolist()),
        shift=tuple(black.tolist()),
        sides=(room + 1, n_elements // 3),
        is_packed=True,
    )


def _refuse_if_inexact(processor: OwnProcessor, samples: Samples) -> None:
    """Raise an error if storing a processor's values in 8 bits changes them by more than rounding.

    That is tried on a picture of noise: what is stored of it, scaled and shifted, must be what the processor
    gave itself. Rounding changes it by half a level of 255, and float32 by a little more. A larger difference
    shows that the processor does what 8 bits cannot hold.

    Parameters
    ----------
    processor
        Stores what the processor gives in 8 bits.
    samples
        What the processor gave itself, for pictures of noise of the sides `TRIED_SIDES`.
    """
    first_noise_picture = _noise(*TRIED_SIDES[0])
    expected = samples.noise[0].values  # of the same picture
    stored = processor(first_noise_picture).astype(np.float64)
    scale = np.array(processor.scale)
    shift = np.array(processor.shift)
    gives_patches = processor.is_packed
    if gives_patches:
        n_patches = len(expected)
        n_rows, _width = processor.sides
        rows = stored.reshape(n_rows, -1)  # a header, the patches, unused rows
        stored = rows[1 : 1 + n_patches]  # [P, D]
    else:
        expected = expected.transpose(1, 2, 0)  # [h, w, 3]

    restored = stored * scale + shift
    errors = np.abs(restored - expected) / np.abs(scale)  # in levels of 255
    if errors.max() > LEVEL_SLACK:
        raise BackboneError(
            f"{samples.label} does more than resize, cut and scale: of a picture of noise, values differ by "
            f"up to {errors.max():.1f} levels of 255"
        )


def _noise(height: int, width: int) -> NDArray[np.uint8]:
    """Make a picture of noise, uint8 `[height, width, 3]`, the same at every call."""
    return np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8)


def _load_processor(weights: Weights, call: ClassCall, cls: Any) -> Any:
    """Load the transformers processor that prepares pictures for a network, from the folder of its weights.

    Random weights have the default processor of the network's class.

    Parameters
    ----------
    weights
        The weights.
    call, cls
        How the network is called, and its class.

    Raises
    ------
    BackboneError
        There is no processor, or it cannot be loaded.
    """
    if weights.seed is not None:
        return default_processor(weights, cls)

    # Networks of timm have no such file; the network's own configuration says how pictures are prepared.
    _fetch_processor_files(weights)
    processor_config = read_processor(weights)
    is_in_network_config = "pretrained_cfg" in weights.config()
    if not processor_config and not is_in_network_config:
        raise BackboneError(
            f"{weights.name}: no processor beside the weights ({' or '.join(PROCESSOR_FILES)}) says how "
            "pictures are prepared"
        )

    # There may be a processor of videos, of pictures, or both. Networks of clips get that of videos, all
    # others that of pictures if there is one.
    takes_clips = call.pixels_argument == CLIPS_ARGUMENT
    has_video_processor = "video_processor_type" in processor_config
    uses_video_processor = has_video_processor and (takes_clips or not _has_image_processor(weights))
    if uses_video_processor and not is_torchvision_available():
        name = processor_config["video_processor_type"]
        raise BackboneError(f"{weights.name}: its processor {name} {NEEDS_TORCHVISION}")
    if uses_video_processor:
        processor = load_from_folder(transformers.AutoVideoProcessor, weights, "its processor")
    else:
        # The variant of the class that uses Pillow; the other one needs torchvision.
        processor = load_from_folder(AutoImageProcessor, weights, "its processor", backend="pil")

    # Only classes of transformers can be made again, by their name, in the processes that decode.
    if not hasattr(transformers, type(processor).__name__):
        raise BackboneError(
            f"{weights.name}: its processor {type(processor).__name__} is none of transformers'"
        )
    return processor


def _fetch_processor_files(weights: Weights) -> None:
    """Fetch the files that configure a processor to the hub's cache, where the folder of the weights is.

    Nothing is fetched for weights that are not the hub's.
    """
    for name in PROCESSOR_FILES:
        file_of(weights, name)


def _has_image_processor(weights: Weights) -> bool:
    """Return whether the weights come with a processor of pictures, and not only with one of videos.

    It is a field of the newer `processor_config.json`, or all of the older `preprocessor_config.json`.
    """
    newer = object_beside(weights, "processor_config.json").get("image_processor")
    older = object_beside(weights, "preprocessor_config.json")
    return bool(newer or older)


def default_processor(weights: Weights, cls: Any) -> Any:
    """Make the processor that transformers has for the family of a class, with its default settings.

    Raises
    ------
    BackboneError
        If there is none, or it cannot be made here.
    """
    family = cls.__module__.split(".")[-2]  # `vit` of `transformers.models.vit.modeling_vit`
    reason = f"transformers has no processor for {cls.__name__}"
    for name in processor_names(family):
        try:
            with quiet():
                return getattr(transformers, name)()
        except ImportError:
            reason = f"its processor {name} {NEEDS_TORCHVISION}"
        except Exception as error:  # noqa: BLE001 - defaults of some classes make no processor
            reason = f"its processor {name} cannot be made: {first_line(error)}"
    raise BackboneError(f"{weights.name}: {reason}")


@cache
def _processor(name: str, settings: str) -> Any:
    """Make a transformers processor of a class by its name, with its settings as JSON.

    It is made once in each process, and then kept.
    """
    with quiet():
        return getattr(transformers, name).from_dict(json.loads(settings))


def call_processor(name: str, settings: str, frame: NDArray[np.uint8]) -> Picture:
    """Prepare one frame, uint8 `[H, W, 3]`, with a transformers processor.

    The processor returns several results by name. Those that begin with `pixel_values` are the pixels or
    patches. The grid of the patches is called `image_grid_thw`, `video_grid_thw`, `grid_thw` or
    `spatial_shapes`. All others are `other_arguments`.

    Parameters
    ----------
    name, settings
        Class of the processor, and its settings as JSON.
    frame
        The frame.

    Raises
    ------
    ValueError
        If its result has no pixels.
    """
    processor = _processor(name, settings)
    results = _run(processor, frame)

    values: NDArray[np.float32] | None = None
    grid: tuple[int, ...] = ()
    other_arguments: dict[str, Any] = {}
    for key, result in results.items():
        # Arguments of networks have no such prefix: `image_grid_thw` and `video_grid_thw` are `grid_thw`.
        argument = key.removeprefix("image_").removeprefix("video_")
        if key.startswith("pixel_values"):
            values = np.asarray(result, dtype=np.float32)
        elif argument in ("grid_thw", SHAPES_ARGUMENT):  # time, height and width; or height and width
            grid = tuple(int(side) for side in np.asarray(result).reshape(-1))
        else:
            other_arguments[argument] = result
    if values is None:
        raise ValueError(f"it gives {', '.join(results)} and no pixel_values")

    if not grid:
        picture = _without_batch_axes(values, n_axes=3)  # [3, h, w]
        return Picture(picture, grid, other_arguments)
    patches = _without_batch_axes(values, n_axes=2)  # [P, D], perhaps with padding at the end
    for mask_name in MASK_ARGUMENTS:
        if mask_name in other_arguments:
            mask = np.asarray(other_arguments[mask_name])  # 1 for patches, 0 for padding
            patches = patches[: int(mask.sum())]
            break
    return Picture(patches, grid, other_arguments)


def _without_batch_axes(values: NDArray[np.float32], n_axes: int) -> NDArray[np.float32]:
    """Drop leading axes of length 1, such as that of a batch of one picture, until `n_axes` axes are left.

    Examples
    --------
    >>> _without_batch_axes(np.zeros((1, 1, 4, 4)), n_axes=3).shape  # one picture of one channel
    (1, 4, 4)
    """
    while values.ndim > n_axes and len(values) == 1:
        values = values[0]
    return values


def _run(processor: Any, frame: NDArray[np.uint8]) -> Mapping[str, Any]:
    """Call a transformers processor with one frame, uint8 `[H, W, 3]`; return its results by name.

    A processor of videos gets a video of one frame.
    """
    takes_videos = "VideoProcessor" in type(processor).__name__
    with torch.inference_mode():
        if takes_videos:
            video = torch.from_numpy(frame.copy()).permute(2, 0, 1)[None]  # [1, 3, H, W]
            results = processor(videos=[video], do_sample_frames=False, return_tensors="pt")
        else:
            results = processor([frame], return_tensors="pt")
    return {key: value.numpy() if torch.is_tensor(value) else value for key, value in results.items()}
