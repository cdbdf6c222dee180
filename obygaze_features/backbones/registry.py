"""Load backbones by their name, those of this package and of installed plugins; and networks themselves.

A custom backbone is a function in another package, declared by an entry point of the group
`obygaze.backbones`; docs/extending.md and docs/backbones.md have examples.
"""

import inspect
import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import partial
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, NamedTuple

from obygaze_features import plugins
from obygaze_features.arguments import checked
from obygaze_features.backbones.backbone import ANSWERS, Backbone, LoadedNetwork, TextBackbone
from obygaze_features.backbones.layers import Layers
from obygaze_features.backbones.weights import TABLES, Weights
from obygaze_features.errors import ArgumentError, BackboneError, ObygazeError

BACKBONES: dict[str, str] = TABLES["backbones"]
TEXT_BACKBONES: dict[str, str] = TABLES["text_backbones"]
NETWORKS: dict[str, str] = TABLES["networks"]
"""Name -> module:function, imported on demand, since networks need large libraries."""
WITHOUT_NETWORK = frozenset(TABLES["without_network"]["names"])
"""Backbones of this package that run no network; known here, as loading one to ask takes seconds."""

ONNX = "onnx:"
"""What the name of a backbone begins with that is a file: `onnx:FILE[:LAYER]`."""


@checked
def load_backbone(name: str, n_frames: int | None = None, **options: Any) -> Backbone:
    """Build a backbone by its name.

    Parameters
    ----------
    n_frames
        Frames per clip; None is the backbone's default.
    options
        Options of the backbone's function, listed by `backbone_options`: `weights`, `preset`, `compute`.

    Raises
    ------
    BackboneError
        If there is no such backbone, it does not take an option, or it is not available.

    Examples
    --------
    >>> from obygaze_features import load_backbone
    >>> backbone = load_backbone("descriptors", n_frames=8)
    >>> [(output.name, output.shape) for output in backbone.outputs]
    [('frames', (8, 103)), ('pooled', (103,))]
    """
    if name in TEXT_BACKBONES:
        raise BackboneError(f"backbone '{name}' reads texts, not frames")
    chosen = options if n_frames is None else {"n_frames": n_frames, **options}
    function = _function(name, chosen)
    try:
        backbone = function(**chosen)
    except Exception as error:
        is_ours = name in BACKBONES or name.startswith(ONNX)
        is_said = isinstance(error, ObygazeError | OSError) and not isinstance(error, ArgumentError)
        if is_ours or is_said:
            raise
        raise BackboneError(f"backbone '{name}' fails to load: {type(error).__name__}: {error}") from error
    if not isinstance(backbone, Backbone):
        raise BackboneError(f"backbone '{name}': its function gave {type(backbone).__name__}, not a Backbone")
    return backbone


class Maker(NamedTuple):
    """What made a group's features, as `load_backbone` takes it.

    Attributes
    ----------
    name
        Of the backbone.
    weights
        Where they are; None where they cannot be had by their name alone.
    options
        Further ones, without which it does not give the group: the layer.
    """

    name: str
    weights: str | None
    options: dict[str, Any]


def made_by(provenance: Mapping[str, Any], weights: str | None) -> Maker:
    """Name what made a group's features, as `load_backbone` takes it, and its weights.

    Parameters
    ----------
    weights
        Those that are given; None are the recorded ones, if they can be had by their name alone. A network of
        an ONNX file is named by the very file, beside which the same TOML lies.

    Raises
    ------
    BackboneError
        The file is not given, or it or its TOML is another one.
    """
    name, hub, made = str(provenance["name"]), provenance.get("hub"), provenance.get("architecture") or {}
    if made.get("type") != "onnx":
        recorded = f"{hub['repository']}@{hub['revision']}" if hub else provenance.get("weights")
        backbone = str(provenance.get("beside", name))
        return Maker(backbone, weights or recorded, _beside(provenance, backbone, name))
    file = Path((weights or made["file"]).removeprefix(f"{name}=").removeprefix(ONNX)).expanduser()
    network = f"{ONNX}{file}:{provenance['layer']}"
    built: Mapping[str, Any] = {}
    if file.is_file():
        backbone_now = load_backbone(network, provenance["sampling"].get("n"))
        # A group beside the network's own is named after it: `lab.answers` beside `lab`.
        name_beside = name.removeprefix(f"{provenance.get('beside', name)}.")
        provenances_beside = {side.name: side.provenance for side in backbone_now.beside}
        built = provenances_beside.get(name_beside, {}) if "beside" in provenance else backbone_now.provenance
    if any(built.get(field) != provenance[field] for field in ("architecture", "preset", "weights_sha256")):
        raise BackboneError(
            f"{file}: with its TOML it is not what made the features of {name} ({made['file']}, SHA-256 "
            f"{provenance['weights_sha256']}): name that with --weights {name}=FILE"
        )
    return Maker(network, None, {})


def _beside(provenance: Mapping[str, Any], backbone: str, name: str) -> dict[str, Any]:
    """Return the options by which a backbone gives a group beside its own."""
    if name == backbone:
        return {}
    if name == f"{backbone}.{ANSWERS}":
        return {"answers": True}
    number = str(provenance["layer"])
    has_frames = "frames" in provenance["arrays"]
    return {"layers": Layers((int(number),), norm=provenance["norm"] is not None, frames=has_frames)}


@checked
def load_text_backbone(name: str, **options: Any) -> TextBackbone:
    """Build a text backbone by its name; see `load_backbone`."""
    if name not in TEXT_BACKBONES:
        raise BackboneError(f"no backbone '{name}' reads texts; those that do: {', '.join(TEXT_BACKBONES)}")
    backbone: TextBackbone = _function(name, options)(**options)
    return backbone


@checked
def load_network(name: str, weights: str | Path | Weights, **options: Any) -> LoadedNetwork:
    """Load a network itself, for what a backbone's vectors do not give: gradients, training, probabilities.

    Parameters
    ----------
    name
        `clip` or `openclip`, the image half of a CLIP of transformers or OpenCLIP; `causal-lm`, a causal
        language model; or `xclip-lsmdc`, both halves.
    weights
        As the backbone of that name takes them.
    options
        Of `xclip-lsmdc`: `tensors`, in the published format, in place of those of `weights`.

    Raises
    ------
    BackboneError
        If the weights cannot be found or are not this network's, or a tokenizer is missing.

    Examples
    --------
    >>> from obygaze_features.backbones import load_network
    >>> load_network("xclip-lsmdc", "random:0").module.training
    False
    """
    if name not in NETWORKS:
        raise BackboneError(f"no network is called '{name}'; there is {', '.join(NETWORKS)}")
    network: LoadedNetwork = _imported(NETWORKS[name])(weights, **options)
    return network


def backbone_names() -> tuple[str, ...]:
    """List the backbones of this package and of installed plugins.

    Examples
    --------
    >>> from obygaze_features import backbone_names
    >>> "descriptors" in backbone_names()
    True
    """
    installed = {entry.name for entry in plugins.points(plugins.BACKBONES)}
    return tuple(sorted({*BACKBONES, *TEXT_BACKBONES, *installed}))


@checked
def backbone_options(name: str) -> tuple[str, ...]:
    """List the options of a backbone other than the number of frames.

    Raises
    ------
    BackboneError
        If there is no such backbone.
    """
    return tuple(option for option in inspect.signature(_find(name)).parameters if option != "n_frames")


def is_known_network(name: str) -> bool:
    """Return whether a backbone is one of this package that runs a network of torch; nothing is loaded."""
    return (name in BACKBONES or name in TEXT_BACKBONES) and name not in WITHOUT_NETWORK


def _function(name: str, options: Mapping[str, Any]) -> Callable[..., Any]:
    """Find a backbone's function, and check that it takes these options."""
    function = _find(name)
    try:
        inspect.signature(function).bind(**options)
    except TypeError as error:
        known = ", ".join(backbone_options(name)) or "none"
        missing = re.search("missing a required argument: '(.+)'", str(error))
        hint = f"give --{missing[1]}" if missing else f"its options: {known}"
        raise BackboneError(f"backbone '{name}': {error}; {hint}") from None
    return function


def _near_backbone(name: str) -> str:
    """Propose the backbone whose name is most like one that does not exist, or else list all."""
    names = backbone_names()
    near = get_close_matches(name, names, n=1)
    return f" (did you mean '{near[0]}'?)" if near else f"; there is {', '.join(names)}"


def _find(name: str) -> Callable[..., Any]:
    if name.startswith(ONNX):
        onnx_backbone = _imported("obygaze_features.backbones.onnx_files:onnx_backbone")
        return partial(onnx_backbone, name.removeprefix(ONNX))
    ours = BACKBONES.get(name) or TEXT_BACKBONES.get(name)
    installed = {entry.value for entry in plugins.points(plugins.BACKBONES) if entry.name == name}
    values = sorted({*installed, ours} if ours else installed)
    if len(values) > 1:
        raise BackboneError(f"more than one backbone is called '{name}': {', '.join(values)}; uninstall one")
    if ours is not None:
        return _imported(ours)
    if not installed:
        raise BackboneError(f"no backbone is called '{name}'{_near_backbone(name)}")
    try:
        function = _imported(values[0])
    except Exception as error:
        raise BackboneError(f"backbone '{name}': {values[0]} cannot be loaded: {error}") from error
    if not callable(function):
        raise BackboneError(f"backbone '{name}': {values[0]} is not a function")
    return function


def _imported(value: str) -> Callable[..., Any]:
    function: Callable[..., Any] = EntryPoint("", value, plugins.BACKBONES).load()
    return function
