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
    weightless,
)
from obygaze_features.backbones.presets import Affine, Geometry, Preset, Resample
from obygaze_features.backbones.registry import ONNX, backbone_names
from obygaze_features.door import MOST_TOML, parse_toml, read_bytes, read_text
from obygaze_features.errors import BackboneError, first_line
from obygaze_features.file_kinds import UNKNOWN, what, why_not
from obygaze_features.io import NO_LICENCE, sha256_of
from obygaze_features.perception import PICTURES
from obygaze_features.schema import Licence, Name, SomeText, check
from obygaze_features.text import unsuitable

MOST_NETWORK = 1 << 31
"""Most bytes of an ONNX file: protocol buffers end there."""

CLASSIFIER = "classifier"
"""What the provenance of answers calls their head."""

PAGE = "docs/backbones.md#a-network-in-an-onnx-file"
Three = Meta(min_length=3, max_length=3, description="three numbers from 0 (std: .001) to 1")
Mean = Annotated[list[Annotated[float, Meta(ge=0, le=1)]], Three]
Std = Annotated[list[Annotated[float, Meta(ge=0.001, le=1)]], Three]
Side = Annotated[int, Meta(ge=1, le=8192, description="a number of pixels")]
Sides = Annotated[list[Side], Meta(min_length=2, max_length=2, description="height and width")]


class Description(Struct, kw_only=True, forbid_unknown_fields=True):
    """What a TOML says of the pictures that a network takes, and of what it gives."""

    layout: Literal["NCHW", "NHWC"]
    type: Literal["float32", "float16", "uint8"]
    channels: Literal["RGB", "BGR"]
    resize: Resample
    size: Side | Sides
    fit: Literal["crop", "squash", "pad"]
    shortest: Side | UnsetType = UNSET
    step: Side | UnsetType = UNSET
    score: Annotated[float, Meta(gt=0, le=1)] | UnsetType = UNSET
    mean: Mean | UnsetType = UNSET
    std: Std | UnsetType = UNSET
    classes: SomeText | UnsetType = UNSET
    gives: Literal["logits", "probabilities", "faces", "joints"] | UnsetType = UNSET
    name: Name | UnsetType = UNSET
    licence: Licence | UnsetType = UNSET
    citation: SomeText | UnsetType = UNSET

    @property
    def finds(self) -> str:
        """What a detector finds; empty for other networks."""
        return "" if self.gives in {UNSET, "logits", "probabilities"} else str(self.gives)

    @property
    def geometry(self) -> Geometry:
        """How a frame becomes a picture of this size."""
        height, width = self.size if isinstance(self.size, list) else (self.size, self.size)
        return Geometry(self.resize, height, self.shortest or None, "even", width)

    @property
    def affine(self) -> Affine:
        """What is done to pixels, in the network's order of channels; those of uint8 stay as they are."""
        return Affine.of(self.mean or (0.0,) * 3, self.std or (1 / 255,) * 3)

    def values(self, clip: NDArray[np.uint8]) -> NDArray[Any]:
        """Make what the network takes of a clip, `[F, h, w, 3]`."""
        pixels = (clip if self.channels == "RGB" else clip[..., ::-1]).astype(np.float32)
        pixels = pixels * np.array(self.affine.scale, np.float32) + np.array(self.affine.shift, np.float32)
        axes = ["NHWC".index(axis) for axis in self.layout]
        return np.ascontiguousarray(pixels.transpose(axes), dtype=self.type)


@dataclass(frozen=True, slots=True)
class OnnxNetwork:
    """An ONNX file that encodes clips, uint8 `[B, F, h, w, 3]`, one at a time and on one thread.

    It can be sent to another process, which reads the file again and holds it against the digest.
    """

    path: Path
    sha256: str
    layer: str
    told: Description
    width: int | None = None
    """Length of a vector of the picture tried first, which those of every picture have."""
    classes: tuple[str, ...] = ()
    """Names of the classes whose logits or probabilities the layer gives; empty where it gives vectors."""

    def __call__(self, batch: NDArray[np.uint8]) -> dict[str, NDArray[Any]]:
        """Encode clips; gives one array for each of the backbone's outputs."""
        clips = [self.arrays(clip) for clip in batch]
        return {name: np.stack([clip[name] for clip in clips]) for name in clips[0]}

    @np.errstate(over="ignore", invalid="ignore")
    def arrays(self, clip: NDArray[np.uint8]) -> dict[str, NDArray[Any]]:
        """Make a backbone's arrays of what the layer gives of a clip."""
        found, n = self.run(clip), len(clip)
        axis = -1
        if found.ndim == len("NCHW") and found.size:
            # A map of features has its channels beside the sides that have the pictures' ratio: layers inside
            # a network may lie otherwise than its pictures, as they do where both fit.
            axes, ratio = (1, 3) if self.told.layout == "NCHW" else (3, 1), clip.shape[1] / clip.shape[2]
            sides = [np.delete(found.shape, (0, each)) for each in axes]
            axis = axes[int(np.argmin([abs(np.log(height / width / ratio)) for height, width in sides]))]
        fits = found.dtype.kind == "f" and 2 <= found.ndim <= 4 and len(found) == n and found.size
        if not fits or self.width not in (None, found.shape[axis]):
            raise BackboneError(
                f"{self.path.name}: it gives {found.dtype} {list(found.shape)} as {self.layer}, and vectors "
                f"were expected: [{n}, D], [{n}, T, D] or a map of features; D is {self.width or 'any'}"
            )
        vectors = np.moveaxis(found.astype(np.float32), axis, -1)
        frames = vectors.reshape(n, -1, vectors.shape[-1]).mean(axis=1)
        results = {"frames": frames, "pooled": frames.mean(axis=0)}
        if self.classes:
            results[f"{ANSWERS}/pooled"] = self.probabilities(found).mean(axis=0)
        return results

    def probabilities(self, found: NDArray[Any]) -> NDArray[np.float32]:
        """Give the probability of each class in each picture, `[F, Q]`, of what the layer gives.

        Raises
        ------
        BackboneError
            It gives other numbers than of each class one, or what are called probabilities are none.
        """
        if found.ndim != len("FQ") or found.shape[1] != len(self.classes):
            raise BackboneError(
                f"{self.path.name}: {self.told.classes} names {len(self.classes)} classes, and the network "
                f"gives {list(found.shape[1:])} numbers of a picture as {self.layer}"
            )
        values = found.astype(np.float32)
        if self.told.gives == "logits":
            return np.asarray(softmax(values, axis=1), np.float32)
        if not ((values >= 0) & (values <= 1)).all():
            raise BackboneError(
                f"{self.path.name}: as {self.layer} it gives {values.min():g} to {values.max():g}, which "
                'are no probabilities; if they are logits, its TOML should say gives = "logits"'
            )
        return values

    def run(self, clip: NDArray[np.uint8]) -> NDArray[Any]:
        """Give what the layer gives of a clip, `[F, h, w, 3]`.

        Raises
        ------
        BackboneError
            The network fails on it.
        """
        session, told = _session(self.path, self.sha256, self.layer), self.told
        try:
            given, values = session.get_inputs()[0], told.values(clip)
            size = given.shape[0] if given.shape and isinstance(given.shape[0], int) else len(values)
            parts = [values[n : n + size] for n in range(0, len(values), size)]
            found = [session.run([self.layer], {given.name: part})[0] for part in parts]
            return np.concatenate([np.atleast_1d(part) for part in found])
        except Exception as error:
            takes = ", ".join(f"{each.name}, {each.type} {each.shape}" for each in session.get_inputs())
            raise BackboneError(
                f"{self.path.name}: it takes {takes}; it does not run on what its TOML says, {told.type} "
                f"{told.layout}, {len(clip)} frames a clip (--n) of {clip.shape[1]} x {clip.shape[2]} pixels "
                f"of 3 channels: {type(error).__name__}: {first_line(error, 200)}"
            ) from error


def onnx_backbone(source: str, n_frames: int = 16) -> Backbone:
    """Build the backbone of an ONNX file, `FILE[:LAYER]`, by the TOML beside it.

    It gives `frames` and `pooled`, their mean. Where a picture has several vectors (positions, tokens), a
    frame is their mean. Where the TOML names classes, their probabilities stand beside, as `answers`.

    Parameters
    ----------
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
    path, told = network.path, network.told
    if told.finds:
        raise BackboneError(f"{path}: it finds {told.finds}: --people onnx:{path.name}, and no backbone")
    # Not black: chance that multiplies zeros would not show.
    clip = np.resize(np.arange(7, dtype=np.uint8), (n_frames, *told.geometry.sides, 3))
    first, again = (network.arrays(clip)["pooled"] for _ in range(2))
    if not np.array_equal(first, again, equal_nan=True):
        raise BackboneError(f"{path}: it gives other vectors of a picture each time: export it for inference")
    width = first.size
    stem = re.sub(r"[^A-Za-z0-9._-]+|^[^A-Za-z0-9]+", "-", path.stem).lstrip("-.")[:100]
    name = told.name or stem or "onnx"
    if name in backbone_names():
        raise BackboneError(f"{path}: {name!r} is another backbone: say another name in its TOML (name)")
    order = f"resize, crop, uint8; scale * x + shift a channel; {told.channels}, {told.layout}, {told.type}"
    provenance = {
        **weightless(told.type),
        "layer": network.layer,
        "weights_sha256": network.sha256,
        "architecture": {"type": "onnx", "file": path.name},
        "preset": {**Preset(name, told.geometry, told.affine).record(), "order": order},
        "licence": told.licence or NO_LICENCE,
        "citation": told.citation or "",
    }
    return Backbone(
        name=name,
        n_frames=n_frames,
        prepare=told.geometry,
        encode=replace(network, width=width),
        outputs=(BackboneOutput("frames", (n_frames, width)), BackboneOutput("pooled", (width,))),
        provenance=provenance,
        libraries=("onnxruntime",),
        encode_in_worker=True,
        beside=_answers(network, name, provenance),
    )


def _answers(network: OnnxNetwork, name: str, provenance: dict[str, Any]) -> tuple[SideGroup, ...]:
    """Describe the group of the probabilities of a network's classes, if it has any."""
    if not network.classes:
        return ()
    architecture = {"type": "onnx", "file": network.path.name, "features": list(network.classes)}
    record = {
        **provenance,
        "beside": name,
        "head": CLASSIFIER,
        "arrays": {"pooled": "probability of each class, mean over the frames"},
        "architecture": architecture,
        "perceives": list(PICTURES),
    }
    return (SideGroup(ANSWERS, (BackboneOutput("pooled", (len(network.classes),)),), record),)


def read_network(source: str) -> OnnxNetwork:
    """Read an ONNX file, `FILE[:LAYER]`, and the TOML beside it.

    Raises
    ------
    BackboneError, InputError, OSError
        As `onnx_backbone`.
    """
    found = re.fullmatch(r"(.+?\.onnx)(?::(.+))?", source, re.DOTALL | re.IGNORECASE)
    if found is None:
        raise BackboneError(f"backbone '{ONNX}{source}': expected onnx:FILE.onnx or onnx:FILE.onnx:LAYER")
    path = Path(found[1]).expanduser().absolute()
    sha256 = sha256_of(read_bytes(path, MOST_NETWORK))
    told = _description(path.with_suffix(".toml"))
    names = [output.name for output in _session(path, sha256).get_outputs()]
    if found[2] is None and len(names) != 1:
        raise BackboneError(f"{path}: choose one of its outputs, as in {ONNX}{path.name}:{names[0]}: {names}")
    return OnnxNetwork(path, sha256, found[2] or names[0], told, classes=_classes(path, told))


def _classes(path: Path, told: Description) -> tuple[str, ...]:
    """Read the names of classes, a line each, from the file beside a network that its TOML names.

    Raises
    ------
    BackboneError
        The file is no name of one beside it, or does not tell at least two classes apart.
    """
    if not told.classes:
        return ()
    if Path(told.classes).name != told.classes:
        raise BackboneError(f"{path.with_suffix('.toml')}: classes names {told.classes!r}: a file beside it")
    labels = path.with_name(told.classes)
    names = tuple(line.strip() for line in read_text(labels, MOST_TOML).splitlines() if line.strip())
    twice = [name for name, times in Counter(names).items() if times > 1]
    if len(names) < 2 or twice:
        found = f"{twice[0]!r:.80} twice" if twice else f"{len(names)} names"
        raise BackboneError(f"{labels}: expected a class a line, each of its own name; found {found}")
    return names


def _description(path: Path) -> Description:
    """Read the TOML beside a network."""
    is_there = path.exists()
    try:
        document = parse_toml(read_text(path, MOST_TOML)) if is_there else {}
    except ValueError as error:
        raise BackboneError(f"{path}: no TOML that can be read: {error}") from None
    where = str(path) if is_there else f"{path} (no such file)"
    check(document, (Description,), where, error=BackboneError, page=PAGE)
    told = msgspec.convert(document, Description)
    if bool(told.classes) != (bool(told.gives) and not told.finds):
        raise BackboneError(
            f"{path}: classes names a file with a class a line, gives says what the network gives of them, "
            '"logits" or "probabilities": give both or neither'
        )
    wrong = unsuitable(told.citation or "")
    if wrong:
        raise BackboneError(f"{path}: citation {wrong}")
    if [bool(told.mean), bool(told.std)] != [told.type != "uint8"] * 2:
        raise BackboneError(f"{path}: expected mean and std of pixels from 0 to 1; for uint8, neither")
    if not _fits(told):
        raise BackboneError(
            f'{path}: fit = "crop" takes a square size, a shortest that is no less, and a filter other than '
            'opencv-bilinear; fit = "squash" takes no shortest; fit = "pad" takes one size, a step that '
            "divides it, and no shortest; step is for it alone"
        )
    if bool(told.finds) != bool(told.score):
        raise BackboneError(f"{path}: gives and score say what a detector finds: both or neither")
    if (told.fit == "pad" and not told.finds) or (told.fit == "crop" and told.finds):
        raise BackboneError(f'{path}: a detector sees whole pictures, squashed or padded: "squash" or "pad"')
    return told


def _fits(told: Description) -> bool:
    """Tell whether sizes go together with how pictures come to have them."""
    if told.fit == "pad":
        if not isinstance(told.size, int) or not told.step or told.shortest:
            return False
        return told.size % told.step == 0
    if told.step:
        return False
    if told.fit == "squash":
        return not told.shortest
    crops = isinstance(told.size, int) and told.size <= (told.shortest or 0)
    return crops and told.resize != "opencv-bilinear"


@lru_cache(maxsize=4)
def _session(path: Path, sha256: str, layer: str = "") -> Any:
    """Load a network, with a layer inside it as one more output."""
    import onnxruntime  # noqa: PLC0415 - an extra

    names = [output.name for output in _session(path, sha256).get_outputs()] if layer else []
    if layer in names:
        return _session(path, sha256)
    content = read_bytes(path, MOST_NETWORK)
    if sha256_of(content) != sha256:
        raise BackboneError(f"{path}: it has changed since the backbone was built")
    content += _output(layer) if layer else b""
    try:
        return inference_session(content)
    except Exception as error:
        reason = (
            f"onnxruntime {onnxruntime.__version__} cannot load it (damaged, of a newer version, or weights "
            f"in other files: save it as one file): {first_line(error, 200)}"
        )
        if layer:
            outputs = f"its outputs are {', '.join(names)}; viewers of ONNX files show the names of others"
            reason = f"no node gives {layer!r}; {outputs}"
        elif what(content) != UNKNOWN:
            reason = why_not(content, "an ONNX file")
        raise BackboneError(f"{path}: {reason}") from error


def inference_session(content: bytes) -> Any:
    """Load the bytes of an ONNX file, for one thread.

    Raises
    ------
    Exception
        Whatever onnxruntime has against them.
    """
    import onnxruntime  # noqa: PLC0415 - an extra

    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = settings.inter_op_num_threads = 1
    settings.log_severity_level = 4  # what it says of a file is said by our own sentence
    # Loaded from memory it would read weights in files of their own, which the digest has not seen.
    settings.add_session_config_entry("session.model_external_initializers_file_folder_path", os.devnull)
    return onnxruntime.InferenceSession(content, settings, providers=["CPUExecutionProvider"])


def _output(layer: str) -> bytes:
    """Encode an output of a graph as a protocol buffer: appended to a model's, it joins its outputs."""
    message = layer.encode()
    for tag in (0x0A, 0x62, 0x3A):  # ValueInfoProto.name, GraphProto.output, ModelProto.graph
        sizes = [len(message) >> shift & 0x7F | 0x80 for shift in (0, 7, 14)]  # 0x80: more follows
        message = bytes([tag, *sizes, len(message) >> 21]) + message
    return message
