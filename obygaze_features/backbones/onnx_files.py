"""Run a network of an ONNX file as a backbone; a TOML beside it says what goes in.

    onnx:FILE[:LAYER]        FILE is net.onnx, and net.toml lies beside it

What the TOML does not say is refused, since a wrong guess (blue before red, a squash for a crop) gives
features that look like any others. docs/backbones.md lists its fields.
"""

import os
import re
from collections import Counter
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from msgspec import UNSET, Meta, Struct, UnsetType
from numpy.typing import NDArray
from scipy.special import softmax

from obygaze_features.backbones.backbone import (
    ANSWERS,
    Backbone,
    BackboneOutput,
    SideGroup,
    fields_without_weights,
)
from obygaze_features.backbones.presets import Affine, Geometry, Preset, Resample
from obygaze_features.backbones.registry import ONNX, backbone_names
from obygaze_features.errors import BackboneError, first_line
from obygaze_features.file_kinds import UNKNOWN, file_kind, why_not
from obygaze_features.io import NO_LICENCE, sha256_of
from obygaze_features.perception import PICTURES
from obygaze_features.schema import Licence, Name, SomeText, check
from obygaze_features.text import counted, unsuitable
from obygaze_features.untrusted import MAX_TOML_BYTES, parse_toml, read_bytes, read_text

MAX_NETWORK = 1 << 31
"""Most bytes of an ONNX file: protocol buffers end there."""

CLASSIFIER = "classifier"
"""The head that gives answers, in their provenance."""

AXES_OF_MAPS = 4
"""Number of axes of feature maps: frame, channel, height and width, in the order NCHW or NHWC."""

VALUE_INFO_NAME, GRAPH_OUTPUT, MODEL_GRAPH = 0x0A, 0x62, 0x3A
"""Tags of ONNX's protocol buffers: ValueInfoProto.name, GraphProto.output, ModelProto.graph.

A tag is 8 times the number of the field, plus 2 for fields that begin with their length.
"""

MAX_NAME = 100
"""Most characters of a group's name that is derived from a file's."""
NOT_IN_NAMES = r"[^A-Za-z0-9._-]+"
NOT_FIRST_IN_NAMES = r"^[^A-Za-z0-9]+"
"""Regular expressions of characters that a group's name may not have, and may not begin with."""

PAGE = "docs/backbones.md#a-network-in-an-onnx-file"
Three = Meta(min_length=3, max_length=3, description="three numbers from 0 (std: .001) to 1")
Mean = Annotated[list[Annotated[float, Meta(ge=0, le=1)]], Three]
Std = Annotated[list[Annotated[float, Meta(ge=0.001, le=1)]], Three]
Side = Annotated[int, Meta(ge=1, le=8192, description="a number of pixels")]
Sides = Annotated[list[Side], Meta(min_length=2, max_length=2, description="height and width")]
Score = Annotated[float, Meta(gt=0, le=1, description="a number above 0, at most 1")]


class Description(Struct, kw_only=True, forbid_unknown_fields=True):
    """The fields of a TOML: which pictures a network takes, and what it gives."""

    layout: Literal["NCHW", "NHWC"]
    type: Literal["float32", "float16", "uint8"]
    channels: Literal["RGB", "BGR"]
    resize: Resample
    size: Side | Sides
    fit: Literal["crop", "squash", "pad"]
    shortest: Side | UnsetType = UNSET
    step: Side | UnsetType = UNSET
    score: Score | UnsetType = UNSET
    mean: Mean | UnsetType = UNSET
    std: Std | UnsetType = UNSET
    classes: SomeText | UnsetType = UNSET
    gives: Literal["logits", "probabilities", "faces", "joints"] | UnsetType = UNSET
    name: Name | UnsetType = UNSET
    licence: Licence | UnsetType = UNSET
    citation: SomeText | UnsetType = UNSET

    @property
    def detects(self) -> str:
        """What a detector finds, `faces` or `joints`; empty for other networks.

        The field `gives` says what a network's output is. Classifiers give `logits` or `probabilities`, and
        for a network that gives features the field is not in the file.
        """
        is_detector = self.gives in ("faces", "joints")
        return str(self.gives) if is_detector else ""

    @property
    def geometry(self) -> Geometry:
        """How a frame is resized, cropped or squashed to the network's size."""
        if isinstance(self.size, list):
            height, width = self.size
        else:
            height = self.size
            width = self.size
        return Geometry(
            self.resize,
            size=height,
            shortest=self.shortest or None,  # UNSET, of a field that is not in the file, is false
            crop_rounding="even",  # as in torchvision
            width=width,
        )

    @property
    def affine(self) -> Affine:
        """The normalisation of pixels from 0 to 255, channels in the network's order.

        For a network that takes uint8, which states no mean and deviation, it changes nothing.
        """
        mean = self.mean or (0.0, 0.0, 0.0)
        std = self.std or (1 / 255, 1 / 255, 1 / 255)
        return Affine.of(mean, std)

    def values(self, clip: NDArray[np.uint8]) -> NDArray[Any]:
        """Return RGB frames, uint8 `[F, h, w, 3]`, as the network takes them.

        They are normalised, and get the network's order of channels, its layout of axes and its data type.
        """
        in_channel_order = clip if self.channels == "RGB" else clip[..., ::-1]  # BGR
        scale = np.array(self.affine.scale, np.float32)
        shift = np.array(self.affine.shift, np.float32)
        pixels = in_channel_order.astype(np.float32) * scale + shift
        axes = ["NHWC".index(axis) for axis in self.layout]  # where each axis of the layout is now
        return np.ascontiguousarray(pixels.transpose(axes), dtype=self.type)


@dataclass(frozen=True, slots=True)
class OnnxNetwork:
    """An ONNX file that encodes clips, uint8 `[B, F, h, w, 3]`, one at a time and on one thread.

    It can be sent to another process, which reads the file again and compares its digest.

    Attributes
    ----------
    layer
        Name of the output, or of a layer inside, that is read.
    description
        What the TOML says of the network.
    width
        Length of the vectors of every picture, by the picture that was tried first; None before.
    classes
        Names of the classes whose logits or probabilities the layer gives; empty if it gives vectors.
    """

    path: Path
    sha256: str
    layer: str
    description: Description
    width: int | None = None
    classes: tuple[str, ...] = ()

    def __call__(self, batch: NDArray[np.uint8]) -> dict[str, NDArray[Any]]:
        """Encode clips, uint8 `[B, F, h, w, 3]`, one after the other; return name -> array `[B, ...]`."""
        arrays_of_clips = [self.arrays(clip) for clip in batch]
        results = {}
        for name in arrays_of_clips[0]:
            results[name] = np.stack([arrays[name] for arrays in arrays_of_clips])
        return results

    @np.errstate(over="ignore", invalid="ignore")  # values that are not finite are refused with their clip
    def arrays(self, clip: NDArray[np.uint8]) -> dict[str, NDArray[Any]]:
        """Encode one clip, `[F, h, w, 3]`: `frames` [F, D], `pooled` [D] and perhaps class probabilities.

        The layer gives a vector of each frame `[F, D]`, several `[F, T, D]`, or feature maps, `[F, D, h, w]`
        or `[F, h, w, D]`. The vector of a frame is the mean of what the layer gives of it.

        Raises
        ------
        BackboneError
            The layer's output is not vectors, or they have another length than before.
        """
        output = self.run(clip)
        n_frames, height, width, _ = clip.shape
        has_vectors = output.dtype.kind == "f" and 2 <= output.ndim <= AXES_OF_MAPS and output.size > 0
        if not has_vectors or len(output) != n_frames:
            raise self._not_vectors(output, n_frames)

        channel_axis = output.ndim - 1  # the numbers of a vector stand last, except in some maps
        if output.ndim == AXES_OF_MAPS:
            channel_axis = self._channel_axis(output, ratio=height / width)
        vector_length = output.shape[channel_axis]
        if self.width is not None and vector_length != self.width:  # found when the network was loaded
            raise self._not_vectors(output, n_frames)

        vectors = np.moveaxis(output.astype(np.float32), channel_axis, -1)
        frames = vectors.reshape(n_frames, -1, vectors.shape[-1]).mean(axis=1)  # [F, D]
        results = {"frames": frames, "pooled": frames.mean(axis=0)}
        if self.classes:
            results[f"{ANSWERS}/pooled"] = self.probabilities(output).mean(axis=0)
        return results

    def _not_vectors(self, output: NDArray[Any], n_frames: int) -> BackboneError:
        """Return the error for an output that is no vectors of the frames of a clip, or of another length.

        `n_frames` is the number of frames of the clip.
        """
        return BackboneError(
            f"{self.path.name}: it gives {output.dtype} {list(output.shape)} as {self.layer}, and "
            f"vectors were expected: [{n_frames}, D], [{n_frames}, T, D] or a map of features; "
            f"D is {self.width or 'any'}"
        )

    def _channel_axis(self, maps: NDArray[Any], ratio: float) -> int:
        """Return the axis of the channels, 1 or 3, of feature maps `[F, C, h, w]` or `[F, h, w, C]`.

        A layer inside the network may have another layout than its input. Maps have about the same ratio of
        height and width as the pictures, which tells which axes are height and width. If both layouts fit
        equally well, the maps have the layout of the input.

        Parameters
        ----------
        maps
            The feature maps.
        ratio
            Height by width of the pictures.
        """
        _, second, third, fourth = maps.shape
        misfit_of_axis = {
            1: abs(np.log(third / fourth / ratio)),  # height and width are the axes 2 and 3
            3: abs(np.log(second / third / ratio)),  # height and width are the axes 1 and 2
        }
        axis_of_input = 1 if self.description.layout == "NCHW" else 3
        other_axis = 3 if axis_of_input == 1 else 1
        if misfit_of_axis[other_axis] < misfit_of_axis[axis_of_input]:
            return other_axis
        return axis_of_input

    def probabilities(self, output: NDArray[Any]) -> NDArray[np.float32]:
        """Return the probability of each class in each picture, `[F, Q]`; logits go through a softmax.

        Parameters
        ----------
        output
            Output of the layer for a clip.

        Raises
        ------
        BackboneError
            It has not one number for each class, or probabilities are not from 0 to 1.
        """
        has_number_per_class = output.ndim == 2 and output.shape[1] == len(self.classes)
        if not has_number_per_class:
            raise BackboneError(
                f"{self.path.name}: {self.description.classes} names {len(self.classes)} classes, and the "
                f"network gives {list(output.shape[1:])} numbers of a picture as {self.layer}"
            )
        values = output.astype(np.float32)
        if self.description.gives == "logits":
            return np.asarray(softmax(values, axis=1), np.float32)
        if not ((values >= 0) & (values <= 1)).all():
            raise BackboneError(
                f"{self.path.name}: as {self.layer} it gives {values.min():g} to {values.max():g}, which "
                'are no probabilities; if they are logits, its TOML should say gives = "logits"'
            )
        return values

    def run(self, clip: NDArray[np.uint8]) -> NDArray[Any]:
        """Run the network over the frames of a clip, uint8 `[F, h, w, 3]`; return the output of the layer.

        Raises
        ------
        BackboneError
            The network fails on it.
        """
        session = _session(self.path, self.sha256, self.layer)
        try:
            return self._run_in_batches(session, self.description.values(clip))
        except Exception as error:
            inputs = [f"{value.name}, {value.type} {value.shape}" for value in session.get_inputs()]
            raise BackboneError(
                f"{self.path.name}: it takes {', '.join(inputs)}; it does not run on what its TOML says, "
                f"{self.description.type} {self.description.layout}, "
                f"{counted(len(clip), 'frame')} a clip (--n) of "
                f"{clip.shape[1]} x {clip.shape[2]} pixels of 3 channels: "
                f"{type(error).__name__}: {first_line(error, longest=200)}"
            ) from error

    def _run_in_batches(self, session: Any, values: NDArray[Any]) -> NDArray[Any]:
        """Run the network on the values of F frames, and return the output of the layer for all of them.

        If the network takes a fixed number of frames at once, it gets as many at a time, else all of them.

        Parameters
        ----------
        session
            The network in onnxruntime.
        values
            Normalised frames in the network's layout, F on the first axis.
        """
        network_input = session.get_inputs()[0]
        has_fixed_batch = network_input.shape and isinstance(network_input.shape[0], int)
        frames_at_once = network_input.shape[0] if has_fixed_batch else len(values)
        outputs = []
        for first in range(0, len(values), frames_at_once):
            batch = values[first : first + frames_at_once]
            (output,) = session.run([self.layer], {network_input.name: batch})
            outputs.append(np.atleast_1d(output))
        return np.concatenate(outputs)


def onnx_backbone(source: str, n_frames: int = 16) -> Backbone:
    """Build the backbone of an ONNX file, `FILE[:LAYER]`, as the TOML file next to it describes.

    It gives `frames` and `pooled`, their mean. Where a picture has several vectors (positions, tokens), a
    frame is their mean. Where the TOML names classes, their probabilities are a side group, `answers`.

    Parameters
    ----------
    source
        The file and, if wanted, one of its outputs or layers: `net.onnx:embedding`.
    n_frames
        Frames of a clip.

    Raises
    ------
    BackboneError
        If a file is damaged, there is no TOML, it leaves something out or contradicts the network, or the
        layer gives no vectors.
    InputError, OSError
        If a file is too large, or cannot be read.
    """
    network = read_network(source)
    path = network.path
    description = network.description
    if description.detects:
        raise BackboneError(
            f"{path}: it finds {description.detects}: --people onnx:{path.name}, and no backbone"
        )
    width = _vector_width(network, n_frames)
    name = description.name or _name_of_file(path) or "onnx"
    if name in backbone_names():
        raise BackboneError(f"{path}: {name!r} is another backbone: say another name in its TOML (name)")
    provenance = _provenance(network, name)
    return Backbone(
        name=name,
        n_frames=n_frames,
        prepare=description.geometry,
        encode=replace(network, width=width),
        outputs=(BackboneOutput("frames", (n_frames, width)), BackboneOutput("pooled", (width,))),
        provenance=provenance,
        libraries=("onnxruntime",),
        encode_in_worker=True,
        side_groups=_side_group_of_answers(network, name, provenance),
    )


def _provenance(network: OnnxNetwork, name: str) -> dict[str, Any]:
    """Return the provenance of the vectors that an ONNX network gives.

    Parameters
    ----------
    network
        The network.
    name
        Name of its backbone.
    """
    description = network.description
    network_input = f"{description.channels}, {description.layout}, {description.type}"
    order = f"resize, crop, uint8; scale * x + shift a channel; {network_input}"
    preset = Preset(name, description.geometry, description.affine)
    return {
        **fields_without_weights(description.type),
        "layer": network.layer,
        "weights_sha256": network.sha256,
        "architecture": {"type": "onnx", "file": network.path.name},
        "preset": {**preset.record(), "order": order},
        "licence": description.licence or NO_LICENCE,
        "citation": description.citation or "",
    }


def _vector_width(network: OnnxNetwork, n_frames: int) -> int:
    """Return the length of a network's vectors, by encoding a clip of stripes twice.

    Twice, because a network that was exported in training mode gives something else each time.

    Raises
    ------
    BackboneError
        The two results differ, as those of a network that was exported in training mode.
    """
    # Stripes, and not black: a random factor would not show where it multiplies zeros.
    height, width = network.description.geometry.sides
    clip = np.resize(np.arange(7, dtype=np.uint8), (n_frames, height, width, 3))
    first_vector = network.arrays(clip)["pooled"]
    second_vector = network.arrays(clip)["pooled"]
    if not np.array_equal(first_vector, second_vector, equal_nan=True):
        raise BackboneError(
            f"{network.path}: it gives other vectors of a picture each time: export it for inference"
        )
    return first_vector.size


def _name_of_file(path: Path) -> str:
    """Return a name for a group of features from a file's name, without its suffix.

    Characters that a group's name may not have become hyphens. Empty if nothing else is left.
    """
    with_hyphens = re.sub(f"{NOT_IN_NAMES}|{NOT_FIRST_IN_NAMES}", "-", path.stem)
    return with_hyphens.lstrip("-.")[:MAX_NAME]


def _side_group_of_answers(
    network: OnnxNetwork, name: str, provenance: dict[str, Any]
) -> tuple[SideGroup, ...]:
    """Describe the group of class probabilities that a network gives besides its vectors.

    Parameters
    ----------
    network
        The network.
    name
        Name of its backbone.
    provenance
        Provenance of its vectors.

    Returns
    -------
    tuple
        The group; empty for a network without classes.
    """
    if not network.classes:
        return ()
    record = {
        **provenance,
        "beside": name,
        "head": CLASSIFIER,
        "arrays": {"pooled": "probability of each class, mean over the frames"},
        "architecture": {"type": "onnx", "file": network.path.name, "features": list(network.classes)},
        "perceives": list(PICTURES),
    }
    output = BackboneOutput("pooled", (len(network.classes),))
    return (SideGroup(ANSWERS, (output,), record),)


def read_network(source: str) -> OnnxNetwork:
    """Read an ONNX file, `FILE[:LAYER]`, and the TOML file next to it.

    Raises
    ------
    BackboneError
        If a file is damaged, there is no TOML, it leaves something out or contradicts the network.
    InputError, OSError
        If a file is too large, or cannot be read.
    """
    match = re.fullmatch(r"(.+?\.onnx)(?::(.+))?", source, re.DOTALL | re.IGNORECASE)
    if match is None:
        raise BackboneError(f"backbone '{ONNX}{source}': expected onnx:FILE.onnx or onnx:FILE.onnx:LAYER")
    file_part, layer = match.groups()  # the layer is None if there is none
    path = Path(file_part).expanduser().absolute()
    sha256 = sha256_of(read_bytes(path, MAX_NETWORK))
    description = _read_description(path.with_suffix(".toml"))

    outputs = [output.name for output in _session(path, sha256).get_outputs()]
    if layer is None and len(outputs) != 1:
        raise BackboneError(
            f"{path}: choose one of its outputs, as in {ONNX}{path.name}:{outputs[0]}: {outputs}"
        )
    return OnnxNetwork(path, sha256, layer or outputs[0], description, classes=_classes(path, description))


def _classes(path: Path, description: Description) -> tuple[str, ...]:
    """Read the names of classes, one per line, from the file that a network's TOML names.

    Empty if the TOML names no such file.

    Parameters
    ----------
    path
        The ONNX file, in whose folder the file of names is.
    description
        What the TOML says of the network.

    Raises
    ------
    BackboneError
        There is no such file in the folder of the network, or it names fewer than two classes.
    """
    if not description.classes:
        return ()
    if Path(description.classes).name != description.classes:
        toml = path.with_suffix(".toml")
        raise BackboneError(f"{toml}: classes names {description.classes!r}: a file beside it")

    file_of_names = path.with_name(description.classes)
    lines = [line.strip() for line in read_text(file_of_names, MAX_TOML_BYTES).splitlines()]
    names = tuple(line for line in lines if line)

    repeated_names = [name for name, times in Counter(names).items() if times > 1]
    problem = ""
    if repeated_names:
        problem = f"{repeated_names[0]!r:.80} twice"
    elif len(names) < 2:
        problem = f"{len(names)} names"
    if problem:
        raise BackboneError(
            f"{file_of_names}: expected a class a line, each of its own name; found {problem}"
        )
    return names


def _read_description(path: Path) -> Description:
    """Read the TOML file next to an ONNX file.

    Raises
    ------
    BackboneError
        There is none, a field is missing or unknown, or fields contradict each other.
    """
    exists = path.exists()
    try:
        document = parse_toml(read_text(path, MAX_TOML_BYTES)) if exists else {}
    except ValueError as error:
        raise BackboneError(f"{path}: no TOML that can be read: {error}") from None
    location = str(path) if exists else f"{path} (no such file)"
    # A file that does not exist is checked as an empty one, so that the message says what it should have.
    check(document, (Description,), location, error=BackboneError, page=PAGE)
    description = msgspec.convert(document, Description)
    _check_description(description, path)
    return description


def _check_description(description: Description, path: Path) -> None:
    """Raise an error if fields of a network's description contradict each other.

    Parameters
    ----------
    description
        What the TOML file beside an ONNX file says of the network.
    path
        The TOML file, for messages.

    Raises
    ------
    BackboneError
        They do; the message says what belongs together.
    """
    # Fields that are not in the file are UNSET, which is false. Some fields belong together: the file must
    # have both or neither.
    names_classes = bool(description.classes)
    gives_classes = description.gives in {"logits", "probabilities"}
    if names_classes != gives_classes:
        raise BackboneError(
            f"{path}: classes names a file with a class a line, gives says what the network gives of them, "
            '"logits" or "probabilities": give both or neither'
        )

    problem_of_citation = unsuitable(description.citation or "")
    if problem_of_citation:
        raise BackboneError(f"{path}: citation {problem_of_citation}")

    # Pixels of 8 bits are passed on as they are; others are normalised, by mean and standard deviation.
    needs_mean_and_std = description.type != "uint8"
    has_mean = bool(description.mean)
    has_std = bool(description.std)
    if has_mean != needs_mean_and_std or has_std != needs_mean_and_std:
        raise BackboneError(f"{path}: expected mean and std of pixels from 0 to 1; for uint8, neither")

    # `fit` says how pictures get the network's size; each way goes with other fields on sizes.
    if not _sizes_suit_fit(description):
        raise BackboneError(
            f'{path}: fit = "crop" takes a square size, a shortest that is no less, and a filter other than '
            'opencv-bilinear; fit = "squash" takes no shortest; fit = "pad" takes one size, a step that '
            "divides it, and no shortest; step is for it alone"
        )

    is_detector = bool(description.detects)
    has_score = bool(description.score)
    if is_detector != has_score:
        raise BackboneError(f"{path}: gives and score say what a detector finds: both or neither")
    # A crop would hide people at the edges from a detector.
    fits_of_network = {"squash", "pad"} if is_detector else {"squash", "crop"}
    if description.fit not in fits_of_network:
        raise BackboneError(f'{path}: a detector sees whole pictures, squashed or padded: "squash" or "pad"')


def _sizes_suit_fit(description: Description) -> bool:
    """Return whether a description's sizes and filter suit the way in which pictures are made to fit.

    The field `fit` says whether pictures are squashed, padded or cropped to the network's size; each needs
    other fields.
    """
    size = description.size
    shortest = description.shortest
    step = description.step
    if description.fit == "squash":
        return not shortest and not step
    if not isinstance(size, int):  # only squashed pictures may have a height and a width
        return False
    if description.fit == "pad":
        is_multiple_of_step = isinstance(step, int) and size % step == 0
        return is_multiple_of_step and not shortest
    # The fit is a crop.
    is_within_shortest = isinstance(shortest, int) and size <= shortest
    return is_within_shortest and not step and description.resize != "opencv-bilinear"


@lru_cache(maxsize=4)
def _session(path: Path, sha256: str, layer: str = "") -> Any:
    """Load a network into onnxruntime. A layer that is none of its outputs becomes one more output.

    The last few sessions are kept, so that a process loads a network once.

    Parameters
    ----------
    path, sha256
        The file, and the digest that it must have.
    layer
        Name of the layer, or of an output; empty for the outputs alone.

    Raises
    ------
    BackboneError
        The file has changed, onnxruntime cannot load it, or it has no such layer.
    """
    if layer:
        return _session_with_layer(path, sha256, layer)
    content = _read_unchanged(path, sha256)
    try:
        return inference_session(content)
    except Exception as error:
        if file_kind(content) != UNKNOWN:
            raise BackboneError(f"{path}: {why_not(content, 'an ONNX file')}") from error
        import onnxruntime  # noqa: PLC0415 - an extra

        raise BackboneError(
            f"{path}: onnxruntime {onnxruntime.__version__} cannot load it (damaged, of a newer version, or "
            f"weights in other files: save it as one file): {first_line(error, longest=200)}"
        ) from error


def _session_with_layer(path: Path, sha256: str, layer: str) -> Any:
    """Load an ONNX network so that it gives the values of a layer inside, as one more output.

    A file of an ONNX model lists the outputs that the model gives. Behind its bytes, some more add the layer
    to this list (`_encoded_output` explains why that works), so that the file need not be decoded.

    Parameters
    ----------
    path, sha256
        The file, and the digest that it must have.
    layer
        Name of the layer, or of an output.

    Raises
    ------
    BackboneError
        The network has no such layer, or the file has changed.
    """
    session = _session(path, sha256)
    outputs = [output.name for output in session.get_outputs()]
    if layer in outputs:
        return session
    model_with_output = _read_unchanged(path, sha256) + _encoded_output(layer)
    try:
        return inference_session(model_with_output)
    except Exception as error:  # the model can be loaded without this output: it has no such layer
        raise BackboneError(
            f"{path}: no node gives {layer!r}; its outputs are {', '.join(outputs)}; "
            "viewers of ONNX files show the names of others"
        ) from error


def _read_unchanged(path: Path, sha256: str) -> bytes:
    """Read an ONNX file, which may be long after the backbone was built, perhaps in another process.

    Raises
    ------
    BackboneError
        The file has another digest than it had then.
    """
    content = read_bytes(path, MAX_NETWORK)
    if sha256_of(content) != sha256:
        raise BackboneError(f"{path}: it has changed since the backbone was built")
    return content


def inference_session(content: bytes) -> Any:
    """Load the bytes of an ONNX file into onnxruntime, to run on one thread of the CPU.

    Raises
    ------
    Exception
        onnxruntime raises errors of any kind if it cannot load them.
    """
    import onnxruntime  # noqa: PLC0415 - an extra

    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = 1
    settings.inter_op_num_threads = 1
    settings.log_severity_level = 4  # nothing but fatal errors: callers report the others
    # Loaded from memory it would read weights in files of their own, which the digest has not seen.
    settings.add_session_config_entry("session.model_external_initializers_file_folder_path", os.devnull)
    return onnxruntime.InferenceSession(content, settings, providers=["CPUExecutionProvider"])


def _encoded_output(layer: str) -> bytes:
    """Return the bytes that add a layer to the outputs of an ONNX model.

    They are a protocol buffer with one output of the graph, of which only the name is given. They are
    appended to the bytes of the model: parsers merge messages that follow each other, and a field that may
    occur several times, as outputs may, gets all of them.
    """
    output = _encoded_field(VALUE_INFO_NAME, layer.encode())  # an output with a name
    graph = _encoded_field(GRAPH_OUTPUT, output)  # a graph with this output
    return _encoded_field(MODEL_GRAPH, graph)  # a model with this graph


def _encoded_field(tag: int, content: bytes) -> bytes:
    """Return the bytes of a field of a protocol buffer: its tag, the length of its content, its content."""
    return bytes([tag]) + _encoded_length(len(content)) + content


def _encoded_length(length: int) -> bytes:
    """Encode a length as a varint of protocol buffers: 7 bits in each byte, the lowest first.

    The highest bit of a byte tells that another byte follows. Varints may be longer than they need be. Here
    they always have four bytes, which is enough for any length below 2^28.
    """
    seven_bits = 0x7F
    another_follows = 0x80
    first_three = [((length >> shift) & seven_bits) | another_follows for shift in (0, 7, 14)]
    last = length >> 21
    return bytes([*first_three, last])
