"""Define values of backbones: `Backbone`, `BackboneOutput`, `TextBackbone`, `Tokens`, `LoadedNetwork`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from obygaze_features.arguments import made_by
from obygaze_features.backbones.weights import Weights


@dataclass(frozen=True, slots=True)
class BackboneOutput:
    """One array that a backbone computes per clip.

    Parameters
    ----------
    name
        `frames` (one vector per sampled frame), `tokens` (everything) or `pooled` (one vector per clip).
    shape
        Of one clip: `(F, D)`, `(T, D)` or `(D,)`.
    dtype
        Data type of the backbone's array and of the store.
    """

    name: str
    shape: tuple[int, ...]
    dtype: Literal["float32", "float16"] = "float32"


ANSWERS = "answers"
"""Name of the side group with the answers of a backbone's head."""


@dataclass(frozen=True, slots=True)
class SideGroup:
    """A further group of a store that a backbone gives in the same call: a layer, or a head's answers.

    Parameters
    ----------
    name
        Its name in the store, without the backbone's name and a dot: `8` of `xclip.8`.
    outputs
        Its arrays. `encode` returns them as `8/pooled`.
    provenance
        Its complete provenance.
    """

    name: str
    outputs: tuple[BackboneOutput, ...]
    provenance: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Hearing:
    """What a backbone needs of the sound of a clip.

    Parameters
    ----------
    rate
        Samples a second.
    track
        Language (`fra`) or number, from 0, of the sound track; empty is the one that players choose.
    measure
        Turns samples into `[steps, D]`, with `steps_a_second`, in place of the samples themselves. Must be
        importable by name.
    """

    rate: int
    track: str = ""
    measure: Callable[[NDArray[np.float32]], NDArray[np.float32]] | None = None
    steps_a_second: int = 0


@made_by("load_backbone(NAME)")
@dataclass(frozen=True)
class Backbone:
    """A frozen network or descriptor that turns sampled frames, or the sound around them, into vectors.

    Parameters
    ----------
    name
        Name of the group in the store.
    n_frames
        Number of frames per clip.
    prepare
        Turns one full-size RGB frame, uint8 `[H, W, 3]`, into what `encode` takes, uint8 `[h, w, c]`. It runs
        in the decode workers, so it must be importable by name.
    encode
        Turns a batch of prepared clips, uint8 `[B, F, h, w, c]`, into one array `[B, ...]` per output. The
        result of a clip must not depend on the other clips of the batch.
    outputs
        The arrays that `encode` returns.
    provenance
        Everything needed to reproduce the numbers: head, layer, hub, architecture, preset, compute.
    libraries
        Distributions besides numpy whose versions affect the numbers.
    encode_in_worker
        Run `encode` in the worker that decoded the clip, one clip at a time, so that only results are sent
        between processes: for backbones without weights and device. `encode` must then be importable by
        name, like `prepare`.
    hears
        The sound that it takes in place of frames. `prepare` then turns the sound of a whole clip, float32
        `[F, L]` (or `[F, L, D]` of what is measured), one row a sampled frame with NaN after its end, into
        what `encode` takes.
    pair_gap_s
        Seconds between two frames, if frames are taken in pairs; 0 if they are spread as the job says.
    side_groups
        Further groups that `encode` gives, such as layers.

    Examples
    --------
    >>> import numpy as np
    >>> from obygaze_features.backbones import Backbone, BackboneOutput
    >>> def mean_colour(batch):
    ...     return {"pooled": batch.mean(axis=(1, 2, 3), dtype=np.float32)}
    >>> outputs = (BackboneOutput("pooled", (3,)),)
    >>> backbone = Backbone("colour", 4, np.array, mean_colour, outputs, {"head": None})
    >>> backbone.encode(np.zeros((1, 4, 16, 16, 3), dtype=np.uint8))["pooled"]
    array([[0., 0., 0.]], dtype=float32)
    """

    name: str
    n_frames: int
    prepare: Callable[[NDArray[Any]], NDArray[Any]]
    encode: Callable[[NDArray[Any]], dict[str, NDArray[Any]]]
    outputs: tuple[BackboneOutput, ...]
    provenance: Mapping[str, Any]
    libraries: tuple[str, ...] = ()
    encode_in_worker: bool = False
    hears: Hearing | None = None
    pair_gap_s: float = 0.0
    side_groups: tuple[SideGroup, ...] = ()

    def group_names(self) -> tuple[str, ...]:
        """Return the names of the groups of a store that the backbone fills, its main group first."""
        side_names = [f"{self.name}.{side.name}" for side in self.side_groups]
        return (self.name, *side_names)

    def by_group(self, arrays: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """Sort the arrays that `encode` returned by groups of the store: group -> array -> values."""
        return arrays_by_group(self.name, arrays)


def arrays_by_group(backbone: str, arrays: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Sort the arrays that a backbone's `encode` returned by groups of the store: group -> array -> values.

    Examples
    --------
    >>> from obygaze_features.backbones.backbone import arrays_by_group
    >>> arrays_by_group("xclip", {"pooled": 1, "8/pooled": 2})
    {'xclip': {'pooled': 1}, 'xclip.8': {'pooled': 2}}
    """
    groups: dict[str, dict[str, Any]] = {}
    for key, values in arrays.items():
        side_group, _, array = key.rpartition("/")  # "" for the main group
        group = f"{backbone}.{side_group}" if side_group else backbone
        groups.setdefault(group, {})[array] = values
    return groups


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of one text.

    Parameters
    ----------
    ids
        The tokens that go in, begin and end tokens and padding included.
    n_tokens
        How many tokens the text has, begin and end tokens included, before it was cut or padded.
    limit
        Maximum number of tokens of the network.
    """

    ids: tuple[int, ...]
    n_tokens: int
    limit: int

    @property
    def is_cut(self) -> bool:
        """Whether the text is longer than the network takes."""
        return self.n_tokens > self.limit


@dataclass(frozen=True)
class TextBackbone:
    """A frozen network that turns a text into one vector.

    Parameters
    ----------
    name
        Name of the group in the store.
    width
        Length of a vector.
    tokenize
        Turns texts into tokens, cut at the limit.
    encode
        Turns tokens of one length, int64 `[B, L]`, into vectors, float32 `[B, width]`. Batches need no
        padding, so other texts affect a result only through the matrix library.
    provenance
        Everything needed to reproduce the numbers: `space`, hub, architecture, tokenizer, compute.
    libraries
        Distributions besides numpy whose versions affect the numbers.
    """

    name: str
    width: int
    tokenize: Callable[[Sequence[str]], list[Tokens]]
    encode: Callable[[NDArray[np.int64]], NDArray[np.float32]]
    provenance: Mapping[str, Any]
    libraries: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class LoadedNetwork:
    """A network itself, with what prepares its inputs.

    Attributes
    ----------
    module : torch.nn.Module
        In float32 and evaluation mode, without gradients, on the CPU.
    weights
        The source; `weights.record()` is for the provenance.
    preset : Preset or None
        Preprocessing of a picture; None if the network prescribes none.
    tokenizer
        Tokenizer of a network that reads texts; None for others.
    tokenizer_sha256
        Digests of the tokenizer's files by name.
    """

    module: Any
    weights: Weights
    preset: Any = None
    tokenizer: Any = None
    tokenizer_sha256: Mapping[str, str] = field(default_factory=dict)


def fields_without_weights(dtype: str) -> dict[str, Any]:
    """Return the provenance fields on network and device for features that no network computes.

    Most of the fields are None, as there are no weights.

    Parameters
    ----------
    dtype
        Data type of the computation, such as `float32`.
    """
    compute = {"dtype": dtype, "autocast": None, "attention": None, "tf32": False, "device": "cpu"}
    return {"head": None, "layer": None, "hub": None, "weights_sha256": None, "compute": compute}


def descriptor(
    name: str,
    n_frames: int,
    features: Sequence[str],
    prepare: Callable[[NDArray[Any]], NDArray[Any]],
    encode: Callable[[NDArray[Any]], dict[str, NDArray[Any]]],
    *,
    resize: str,
    crop: str | None,
    order: str,
    citation: str,
    arrays: Sequence[str] = ("frames", "pooled"),
    dtype: Literal["float32", "float16"] = "float32",
    hears: Hearing | None = None,
    perceives: Sequence[str] = (),
    **other_fields: Any,
) -> Backbone:
    """Make a backbone of classical descriptors, such as colour histograms, which need no network.

    It encodes each clip in the worker process that decodes it.

    Parameters
    ----------
    name, n_frames
        Name of the group in the store, and number of frames per clip.
    features
        Names of the D columns of the arrays.
    prepare, encode
        As in `Backbone`.
    resize, crop
        How frames are resized and cropped, in words, for the provenance; for sound, how samples are read.
    order
        The steps of the preparation in their order, in words, for the provenance.
    citation
        Papers that describe the descriptors.
    arrays, dtype
        Names and data type of the arrays that `encode` returns: `frames` [F, D] and `pooled` [D].
    hears
        What the descriptors need of the sound; None for descriptors of pictures.
    perceives
        What they perceive, such as `visual`, for the provenance; without it, what any backbone of frames, or
        of sound, is taken to perceive.
    other_fields
        Further fields of `Backbone`.
    """
    shapes = {"frames": (n_frames, len(features)), "pooled": (len(features),)}
    outputs = tuple(BackboneOutput(array, shapes[array], dtype) for array in arrays)
    preset = {"name": name, "resize": resize, "crop": crop, "constants": None, "order": order}
    if hears is not None:
        preset["track"] = hears.track
    provenance = {
        **fields_without_weights("float32"),
        "architecture": {"features": list(features)},
        "preset": preset,
        "licence": "Apache-2.0",
        "citation": citation,
    }
    if perceives:
        provenance["perceives"] = list(perceives)
    return Backbone(
        name=name,
        n_frames=n_frames,
        prepare=prepare,
        encode=encode,
        outputs=outputs,
        provenance=provenance,
        encode_in_worker=True,
        hears=hears,
        **other_fields,
    )
