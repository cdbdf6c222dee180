"""Ask a class of transformers how its network is called with pictures: its signature says so, no list.

There are three forms. A *dense* network takes pictures `[N, 3, h, w]`, or clips `[B, T, 3, h, w]`. A network
of *patches with a grid* takes the patches of all pictures one after the other, `[P, D]`, and how many lie in
time, height and width of each picture, `[N, 3]`. A network of *patches with shapes* (NaFlex) takes as many
patches of each picture, `[N, P, D]`, a mask of those that are used, and their height and width, `[N, 2]`.
"""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from transformers import CONFIG_MAPPING
from transformers.models.auto import image_processing_auto
from transformers.models.auto.auto_mappings import VIDEO_PROCESSOR_MAPPING_NAMES
from transformers.models.auto.configuration_auto import model_type_to_module_name
from transformers.models.auto.modeling_auto import MODEL_MAPPING

from obygaze_features.errors import BackboneError, first_line

Form = Literal["pictures", "clips", "grid", "shapes"]
Parameters = Mapping[str, inspect.Parameter]

FEATURE_METHODS = {"image": "get_image_features", "video": "get_video_features"}
"""Backbone -> the method by which networks that read texts too give what they see alone."""
PIXELS_ARGUMENTS = ("pixel_values", "pixel_values_videos", "hidden_states")
"""Names of the argument that takes pictures; the last one is that of towers which take packed patches."""
GRID_ARGUMENTS = ("image_grid_thw", "grid_thw")
"""Names of the argument that takes the grids of packed patches."""
SHAPES_ARGUMENT = "spatial_shapes"
"""The argument that takes height and width in patches of each picture (NaFlex)."""
MASK_ARGUMENTS = ("pixel_attention_mask", "attention_mask")
"""Names of the argument that takes the mask of used patches (NaFlex)."""
CLIPS_ARGUMENT = "pixel_values_videos"
"""The argument of `PIXELS_ARGUMENTS` that takes clips."""
POOLER_ARGUMENT = "add_pooling_layer"
"""The argument of a class's `__init__` that asks for a pooler."""


@dataclass(frozen=True)
class ClassCall:
    """How a class of transformers is called with pictures alone.

    Parameters
    ----------
    method
        Its method: `forward`, or one that gives features without texts.
    form
        Which of the forms it takes.
    pixels
        Argument that takes the pictures or their patches.
    grid
        Argument that takes grids `[N, 3]` or shapes `[N, 2]`; empty in a dense form.
    mask
        Argument that takes the mask of used patches; empty without.
    other_arguments
        Other arguments without a default, which the processor must give.
    """

    method: str
    form: Form
    pixels: str
    grid: str = ""
    mask: str = ""
    other_arguments: tuple[str, ...] = ()

    @property
    def is_packed(self) -> bool:
        """Return whether the network takes patches in place of pictures."""
        return self.form in ("grid", "shapes")


def network_class(model_type: str, where: str) -> Any:
    """Return the transformers class that loads networks of a type.

    Parameters
    ----------
    model_type
        Type of the network.
    where
        The weights, for messages.

    Raises
    ------
    BackboneError
        If transformers has none, or lacks a library for it.
    """
    if model_type not in CONFIG_MAPPING:
        raise BackboneError(f"{where}: transformers has no network of type {model_type!r}")
    try:
        cls: Any = MODEL_MAPPING[CONFIG_MAPPING[model_type]]
    except (KeyError, ValueError):
        raise BackboneError(
            f"{where}: transformers has no network of type {model_type!r} that gives vectors alone"
        ) from None
    if isinstance(cls, tuple):  # a type with several classes, the usual one first
        cls = cls[0]
    if getattr(cls, "is_dummy", False):  # what stands in for a class whose libraries are missing
        raise BackboneError(f"{where}: a network of type {model_type!r} needs {_missing_libraries(cls)}")
    return cls


def _missing_libraries(cls: Any) -> str:
    """Return which libraries a class lacks, as transformers says when the class is called."""
    try:
        cls()
    except ImportError as error:
        return first_line(error)
    return "other libraries"


def call_of(cls: Any, backbone: str, where: str) -> ClassCall:
    """Determine from the signature of a transformers class how its network is called with pictures alone.

    Parameters
    ----------
    cls
        The class.
    backbone
        `image` or `video`: which features to take from a class that has both.
    where
        The weights, for messages.

    Raises
    ------
    BackboneError
        If it cannot be called with pictures alone.
    """
    method = _method(cls, backbone)
    parameters = inspect.signature(getattr(cls, method)).parameters
    pixels = _first_parameter(PIXELS_ARGUMENTS, parameters)
    if not pixels or not _takes_pictures_alone(method, parameters, pixels):
        raise BackboneError(
            f"{where}: a network of type {cls.config_class.model_type!r} takes no pictures alone "
            f"({cls.__name__}.{method})"
        )
    form: Form = "clips" if pixels == CLIPS_ARGUMENT else "pictures"
    grid = _first_parameter(GRID_ARGUMENTS, parameters)
    mask = ""
    if grid:
        form = "grid"
    elif SHAPES_ARGUMENT in parameters:
        form = "shapes"
        grid = SHAPES_ARGUMENT
        mask = _first_parameter(MASK_ARGUMENTS, parameters)
    other_arguments = []
    for name, parameter in parameters.items():
        is_required = parameter.default is parameter.empty and parameter.kind != parameter.VAR_KEYWORD
        if is_required and name not in {"self", pixels, grid, mask}:
            other_arguments.append(name)
    return ClassCall(method, form, pixels, grid, mask, tuple(other_arguments))


def _first_parameter(names: Sequence[str], parameters: Parameters) -> str:
    """Return the first of some names that a method has as a parameter; empty if it has none of them."""
    for name in names:
        if name in parameters:
            return name
    return ""


def _method(cls: Any, backbone: str) -> str:
    """Choose the method to call: one that gives vision features alone, if there is one, else `forward`."""
    wanted = FEATURE_METHODS[backbone]
    other = FEATURE_METHODS["video" if backbone == "image" else "image"]
    for name in (wanted, other):
        if hasattr(cls, name):
            return name
    return "forward"


def _takes_pictures_alone(method: str, parameters: Parameters, pixels: str) -> bool:
    """Return whether a method can be called with pictures alone, without a text.

    A `forward` that needs a text too takes the text first, and pictures are optional.

    Parameters
    ----------
    method, parameters
        Name of the method, and its parameters by name.
    pixels
        Name of the parameter that takes pictures.
    """
    if method != "forward":  # a method for the features of pictures or videos
        return True
    is_required = parameters[pixels].default is inspect.Parameter.empty
    arguments = [name for name in parameters if name != "self"]
    return is_required or arguments[0] == pixels


def settings_of(cls: Any) -> dict[str, bool]:
    """Return the arguments that switch off the pooling layer of a class, which may be untrained."""
    parameters = inspect.signature(cls.__init__).parameters
    return {POOLER_ARGUMENT: False} if POOLER_ARGUMENT in parameters else {}


def processor_names(family: str) -> list[str]:
    """List the transformers processors of pictures, then of videos, for a family of networks.

    Those that use Pillow, whose names end in `Pil`, come first.
    """
    names: list[str] = []
    # This mapping has the families that share a processor too; that of auto_mappings does not.
    of_pictures: Mapping[str, Any] = vars(image_processing_auto)["IMAGE_PROCESSOR_MAPPING_NAMES"]
    for mapping in (of_pictures, VIDEO_PROCESSOR_MAPPING_NAMES):
        for model_type, entry in mapping.items():
            if model_type_to_module_name(model_type) != family or not entry:
                continue
            classes = entry.values() if isinstance(entry, dict) else [entry]
            named = [name for name in classes if name]
            names += sorted(named, key=lambda name: not name.endswith("Pil"))
    return names


class ClipFields(NamedTuple):
    """Fields of a configuration about the frames of a clip.

    Attributes
    ----------
    frames
        Field with their number; empty in networks of pictures.
    step
        Field with the frames of one step in time; empty where a step is one frame.
    """

    frames: str
    step: str


def clip_fields(config: Any) -> ClipFields:
    """Find the names of the configuration fields that hold a clip's number of frames and of frames a step."""
    frames = next((name for name in ("num_frames", "frames_per_clip") if hasattr(config, name)), "")
    step = next((name for name in ("tubelet_size", "temporal_patch_size") if hasattr(config, name)), "")
    return ClipFields(frames, step)
