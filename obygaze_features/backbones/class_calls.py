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
"""What a network takes: pictures, clips, patches with a grid, or patches with shapes."""
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
        Name of its method: `forward`, or one that gives features without texts.
    form
        What the method takes: `pictures`, `clips`, patches with a `grid`, or patches with `shapes`.
    pixels_argument
        Name of the argument that takes the pictures, the clips or the patches.
    grid_argument
        Name of the argument that takes grids `[N, 3]` or shapes `[N, 2]` of patches; empty without patches.
    mask_argument
        Name of the argument that takes the mask of used patches; empty if there is none.
    other_arguments
        Names of other arguments without a default, which the processor must give.
    """

    method: str
    form: Form
    pixels_argument: str
    grid_argument: str = ""
    mask_argument: str = ""
    other_arguments: tuple[str, ...] = ()

    @property
    def takes_patches(self) -> bool:
        """Return whether the network takes patches, with a grid or shapes, in place of whole pictures."""
        return self.form in ("grid", "shapes")


def network_class(model_type: str, weights_name: str) -> Any:
    """Return the transformers class that loads networks of a type without a head.

    Parameters
    ----------
    model_type
        Type of the network.
    weights_name
        Name of the weights, for messages.

    Raises
    ------
    BackboneError
        If transformers has none, or lacks a library for it.
    """
    if model_type not in CONFIG_MAPPING:
        raise BackboneError(f"{weights_name}: transformers has no network of type {model_type!r}")
    try:
        cls: Any = MODEL_MAPPING[CONFIG_MAPPING[model_type]]
    except (KeyError, ValueError):
        raise BackboneError(
            f"{weights_name}: transformers has no network of type {model_type!r} that gives vectors alone"
        ) from None
    if isinstance(cls, tuple):  # a type with several classes, the usual one first
        cls = cls[0]
    if getattr(cls, "is_dummy", False):  # what stands in for a class whose libraries are missing
        raise BackboneError(
            f"{weights_name}: a network of type {model_type!r} needs {_missing_libraries(cls)}"
        )
    return cls


def _missing_libraries(cls: Any) -> str:
    """Return which libraries a transformers class lacks, as a phrase for a message.

    Transformers says so in the error that it raises when the class is called.
    """
    try:
        cls()
    except ImportError as error:
        return first_line(error)
    return "other libraries"


def call_of(cls: Any, backbone: str, weights_name: str) -> ClassCall:
    """Determine from the signature of a transformers class how its network is called with pictures alone.

    Parameters
    ----------
    cls
        The class.
    backbone
        `image` or `video`: which features to take from a class that has both.
    weights_name
        Name of the weights, for messages.

    Raises
    ------
    BackboneError
        If it cannot be called with pictures alone.
    """
    method = _method(cls, backbone)
    parameters = inspect.signature(getattr(cls, method)).parameters

    pixels_argument = _first_parameter(PIXELS_ARGUMENTS, parameters)  # such as `pixel_values`; "" for none
    if not pixels_argument or not _takes_pictures_alone(method, parameters, pixels_argument):
        raise BackboneError(
            f"{weights_name}: a network of type {cls.config_class.model_type!r} takes no pictures alone "
            f"({cls.__name__}.{method})"
        )

    form = _form(parameters, pixels_argument)
    grid_argument = ""
    mask_argument = ""
    if form == "grid":
        grid_argument = _first_parameter(GRID_ARGUMENTS, parameters)
    elif form == "shapes":
        grid_argument = SHAPES_ARGUMENT
        mask_argument = _first_parameter(MASK_ARGUMENTS, parameters)

    known_arguments = {pixels_argument, grid_argument, mask_argument}
    other_arguments = [name for name in _required(parameters) if name not in known_arguments]
    return ClassCall(
        method=method,
        form=form,
        pixels_argument=pixels_argument,
        grid_argument=grid_argument,
        mask_argument=mask_argument,
        other_arguments=tuple(other_arguments),
    )


def _form(parameters: Parameters, pixels_argument: str) -> Form:
    """Determine from the parameters of a network's method in which form it takes pixels.

    - "pictures": pictures of one size.
    - "clips": clips of such pictures.
    - "grid": patches of pictures of several sizes, all in one sequence; a further argument has the grid of
      each picture, such as 1 x 24 x 32 patches.
    - "shapes": as many patches for each picture, padded; a further argument has the shape of each picture's
      grid.

    Parameters
    ----------
    parameters
        The parameters of the method.
    pixels_argument
        Name of the one that takes the pixels or patches.
    """
    if _first_parameter(GRID_ARGUMENTS, parameters):
        return "grid"
    if SHAPES_ARGUMENT in parameters:
        return "shapes"
    return "clips" if pixels_argument == CLIPS_ARGUMENT else "pictures"


def _required(parameters: Parameters) -> list[str]:
    """Return the names of a method's parameters that have no default, so that a call must give them."""
    names = []
    for name, parameter in parameters.items():
        has_default = parameter.default is not parameter.empty
        is_further_keywords = parameter.kind == parameter.VAR_KEYWORD  # **kwargs
        if name != "self" and not has_default and not is_further_keywords:
            names.append(name)
    return names


def _first_parameter(names: Sequence[str], parameters: Parameters) -> str:
    """Return the first of some names that a method has as a parameter; empty if it has none of them.

    `parameters` are those of the method, by name.
    """
    for name in names:
        if name in parameters:
            return name
    return ""


def _method(cls: Any, backbone: str) -> str:
    """Return the name of the method by which a network of a class is called with pictures alone.

    It is the one that gives the features of pictures (backbone `image`) or of videos (`video`) without
    texts. A class that has only the other one of the two is called by that, and a class that has neither
    by `forward`.
    """
    other_backbone = "video" if backbone == "image" else "image"
    for method in (FEATURE_METHODS[backbone], FEATURE_METHODS[other_backbone]):
        if hasattr(cls, method):
            return method
    return "forward"


def _takes_pictures_alone(method: str, parameters: Parameters, pixels_argument: str) -> bool:
    """Return whether a method can be called with pictures alone, without a text.

    A method for the features of pictures or videos always can. A `forward` that needs a text has the text as
    its first argument, and pictures as an optional one. So a `forward` can be called with pictures alone if
    they are its first argument, or are required.

    Parameters
    ----------
    method, parameters
        Name of the method, and its parameters by name.
    pixels_argument
        Name of the parameter that takes pictures.
    """
    if method != "forward":
        return True
    first_argument = next(name for name in parameters if name != "self")
    return first_argument == pixels_argument or pixels_argument in _required(parameters)


def pooler_off_arguments(cls: Any) -> dict[str, bool]:
    """Return the arguments with which a class builds its network without a pooling layer.

    Such a layer may be untrained. Empty if the class has no such argument.
    """
    parameters = inspect.signature(cls.__init__).parameters
    return {POOLER_ARGUMENT: False} if POOLER_ARGUMENT in parameters else {}


def processor_names(family: str) -> list[str]:
    """List the classes of transformers that prepare pictures, then videos, for a family of networks.

    Where a type of network has several classes, those that use Pillow come first.
    """
    # The table of the same name in `auto_mappings` leaves out families that use the processor of another one.
    classes_for_pictures: Mapping[str, Any] = vars(image_processing_auto)["IMAGE_PROCESSOR_MAPPING_NAMES"]
    names: list[str] = []
    for classes_of_types in (classes_for_pictures, VIDEO_PROCESSOR_MAPPING_NAMES):
        for model_type, entry in classes_of_types.items():
            if model_type_to_module_name(model_type) == family:
                names += _pillow_first(entry)
    return names


def _pillow_first(entry: Mapping[str, str | None] | str | None) -> list[str]:
    """List the classes in an entry of a table of transformers, those that use Pillow first.

    Their names end in `Pil`. An entry is a class, or library -> class; None stands for a missing class.
    """
    classes = entry.values() if isinstance(entry, Mapping) else [entry]
    names = [name for name in classes if name]
    pillow_names = [name for name in names if name.endswith("Pil")]
    other_names = [name for name in names if not name.endswith("Pil")]
    return [*pillow_names, *other_names]


class ClipFields(NamedTuple):
    """Names of the fields of a configuration about the frames of a clip.

    Attributes
    ----------
    frames_field
        Field with the number of frames; empty in networks of pictures.
    step_field
        Field with the number of frames of one step in time; empty where a step is one frame.
    """

    frames_field: str
    step_field: str


def clip_fields(config: Any) -> ClipFields:
    """Find the fields of a configuration that hold the number of frames of a clip, and of a step in time."""
    frames_field = _first_field(("num_frames", "frames_per_clip"), config)
    step_field = _first_field(("tubelet_size", "temporal_patch_size"), config)
    return ClipFields(frames_field, step_field)


def _first_field(names: Sequence[str], config: Any) -> str:
    """Return the first of some names that a configuration has as a field; empty if it has none of them."""
    for name in names:
        if hasattr(config, name):
            return name
    return ""
