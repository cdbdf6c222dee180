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

_FACTS: Mapping[str, Mapping[str, Any]] = TABLES["backbones"]
BACKBONES: dict[str, str] = {name: facts["function"] for name, facts in _FACTS.items()}
TEXT_BACKBONES: dict[str, str] = TABLES["text_backbones"]
NETWORKS: dict[str, str] = TABLES["networks"]
"""Name -> module:function, imported on demand, since networks need large libraries."""
WITHOUT_NETWORK = frozenset(name for name, facts in _FACTS.items() if not facts.get("runs_network", True))
"""Backbones of this package that run no network; known here, as loading one to ask takes seconds."""

ONNX = "onnx:"
"""What the name of a backbone begins with that is a file: `onnx:FILE[:LAYER]`."""


@checked
def load_backbone(name: str, n_frames: int | None = None, **options: Any) -> Backbone:
    """Build a backbone by its name.

    Parameters
    ----------
    name
        Name of a backbone of this package or of an installed plugin, or `onnx:FILE[:LAYER]`.
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
    all_options = options if n_frames is None else {"n_frames": n_frames, **options}
    build = _function_for_options(name, all_options)
    try:
        backbone = build(**all_options)
    except Exception as error:
        is_of_this_package = name in BACKBONES or name.startswith(ONNX)
        if is_of_this_package:  # its errors tell what is wrong, and others are bugs here
            raise
        # A plugin may raise our errors for what is wrong with its input. An ArgumentError is its own bug.
        is_for_users = isinstance(error, ObygazeError | OSError) and not isinstance(error, ArgumentError)
        if is_for_users:
            raise
        raise BackboneError(f"backbone '{name}' fails to load: {type(error).__name__}: {error}") from error
    if not isinstance(backbone, Backbone):
        raise BackboneError(f"backbone '{name}': its function gave {type(backbone).__name__}, not a Backbone")
    return backbone


class BackboneCall(NamedTuple):
    """The arguments of `load_backbone` with which a group's features were extracted.

    Attributes
    ----------
    name
        Name of the backbone.
    weights
        Where its weights are; None if they cannot be found by their name alone.
    options
        Further options without which the backbone does not give the group, such as the layer.
    """

    name: str
    weights: str | None
    options: dict[str, Any]


def backbone_call(provenance: Mapping[str, Any], weights: str | None) -> BackboneCall:
    """Return the arguments of `load_backbone` that load the network of a group's features again.

    A side group, such as `xclip.8` for layer 8, has no backbone of its own: `xclip` makes it, with an option.
    The provenance of a side group names that backbone in the field `beside`.

    Parameters
    ----------
    provenance
        Provenance of the group of a store.
    weights
        Weights that the user gives; None are the recorded ones, if they can be found by their name alone. A
        network of an ONNX file is given as that file, with the same TOML beside it.

    Raises
    ------
    BackboneError
        The ONNX file is not given, or it or its TOML is another one.
    """
    architecture = provenance.get("architecture") or {}
    if architecture.get("type") == "onnx":
        return _onnx_call(provenance, weights)

    name = str(provenance["name"])
    backbone = str(provenance.get("beside", name))
    hub = provenance.get("hub")
    recorded_weights = provenance.get("weights")  # of random ones, such as `random:0`
    if hub:
        recorded_weights = f"{hub['repository']}@{hub['revision']}"
    options = _side_group_options(provenance, backbone, name)
    return BackboneCall(backbone, weights or recorded_weights, options)


def _onnx_call(provenance: Mapping[str, Any], weights: str | None) -> BackboneCall:
    """Return the arguments of `load_backbone` that load the network of an ONNX file again.

    A group of a store was made by such a network, and more vectors of it are wanted. So the backbone is built
    from the file, and must record the same as the group's provenance: another file, or a changed TOML beside
    it, would give vectors that cannot be compared.

    Parameters
    ----------
    provenance
        Provenance of the group of a store that the network made.
    weights
        The file by the user: `NAME=FILE`, as for other groups, or `onnx:FILE`. None is the recorded file.

    Raises
    ------
    BackboneError
        There is no such file, or with its TOML it is not what made the group.
    """
    name = str(provenance["name"])
    recorded_file = provenance["architecture"]["file"]
    # "NAME=FILE" and "onnx:FILE" become "FILE".
    file_name = (weights or recorded_file).removeprefix(f"{name}=").removeprefix(ONNX)
    file = Path(file_name).expanduser()
    source = f"{ONNX}{file}:{provenance['layer']}"  # the name of the backbone, `onnx:FILE:LAYER`
    rebuilt = _rebuilt_provenance(source, provenance) if file.is_file() else {}
    for field in ("architecture", "preset", "weights_sha256"):
        if rebuilt.get(field) != provenance[field]:
            raise BackboneError(
                f"{file}: with its TOML it is not what made the features of {name} ({recorded_file}, SHA-256 "
                f"{provenance['weights_sha256']}): name that with --weights {name}=FILE"
            )
    return BackboneCall(source, weights=None, options={})  # no weights: the name has the file


def _rebuilt_provenance(source: str, provenance: Mapping[str, Any]) -> Mapping[str, Any]:
    """Load the backbone of an ONNX file, and return what it records now of a group that it made before.

    A network fills a group of its own name, such as `lab`, and may fill side groups, such as `lab.answers`
    with the answers of its classifier; the provenance of a side group has the main one's name as `beside`.

    Parameters
    ----------
    source
        Name of the backbone, `onnx:FILE:LAYER`.
    provenance
        The provenance of the group, as it was recorded.

    Returns
    -------
    Mapping
        The group's provenance by the backbone as it is now; empty if it has no such side group.
    """
    backbone = load_backbone(source, provenance["sampling"].get("n"))
    is_main_group = "beside" not in provenance
    if is_main_group:
        return backbone.provenance
    side_name = str(provenance["name"]).removeprefix(f"{provenance['beside']}.")  # such as `answers`
    for side in backbone.side_groups:
        if side.name == side_name:
            return side.provenance
    return {}


def _side_group_options(provenance: Mapping[str, Any], backbone: str, name: str) -> dict[str, Any]:
    """Return the options with which a backbone gives a side group; empty for the backbone's own group.

    The side group is that of the answers of a classifier, or else that of a layer.

    Parameters
    ----------
    provenance, name
        Provenance and name of the group.
    backbone
        Name of the backbone.
    """
    if name == backbone:
        return {}
    if name == f"{backbone}.{ANSWERS}":
        return {"answers": True}
    number = int(provenance["layer"])
    has_norm = provenance["norm"] is not None
    has_frames = "frames" in provenance["arrays"]
    return {"layers": Layers((number,), norm=has_norm, frames=has_frames)}


@checked
def load_text_backbone(name: str, **options: Any) -> TextBackbone:
    """Build a text backbone by its name; see `load_backbone`."""
    if name not in TEXT_BACKBONES:
        raise BackboneError(f"no backbone '{name}' reads texts; those that do: {', '.join(TEXT_BACKBONES)}")
    build = _function_for_options(name, options)
    backbone: TextBackbone = build(**options)
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
    >>> load_network("clip", "random:0").module.training
    False
    """
    if name not in NETWORKS:
        raise BackboneError(f"no network is called '{name}'; there is {', '.join(NETWORKS)}")
    load = _imported(NETWORKS[name])
    network: LoadedNetwork = load(weights, **options)
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
    parameters = inspect.signature(_find_function(name)).parameters
    return tuple(option for option in parameters if option != "n_frames")


def is_known_network(name: str) -> bool:
    """Return whether a backbone is one of this package that runs a network of torch; nothing is loaded."""
    return (name in BACKBONES or name in TEXT_BACKBONES) and name not in WITHOUT_NETWORK


def _function_for_options(name: str, options: Mapping[str, Any]) -> Callable[..., Any]:
    """Return the function that builds a backbone, once it is checked that it takes some options.

    Raises
    ------
    BackboneError
        There is no such backbone, it does not take an option, or needs one that is not given.
    """
    function = _find_function(name)
    try:
        inspect.signature(function).bind(**options)  # raises if it cannot be called with these
    except TypeError as error:
        known = ", ".join(backbone_options(name)) or "none"
        missing = re.search("missing a required argument: '(.+)'", str(error))
        hint = f"give --{missing[1]}" if missing else f"its options: {known}"
        raise BackboneError(f"backbone '{name}': {error}; {hint}") from None
    return function


def _near_backbone(name: str) -> str:
    """Return the end of a message on a backbone that does not exist: the most similar name, or all names."""
    names = backbone_names()
    closest = get_close_matches(name, names, n=1)
    return f" (did you mean '{closest[0]}'?)" if closest else f"; there is {', '.join(names)}"


def _find_function(name: str) -> Callable[..., Any]:
    """Import the function that builds a backbone: of an ONNX file, of this package or of a plugin.

    Raises
    ------
    BackboneError
        There is none of the name, there are several, or a plugin cannot be loaded.
    """
    if name.startswith(ONNX):
        onnx_backbone = _imported("obygaze_features.backbones.onnx_files:onnx_backbone")
        return partial(onnx_backbone, name.removeprefix(ONNX))

    # A target is `module:function`, as entry points have it.
    target_here = BACKBONES.get(name) or TEXT_BACKBONES.get(name)
    targets = {entry.value for entry in plugins.points(plugins.BACKBONES) if entry.name == name}
    if target_here is not None:
        targets.add(target_here)
    if len(targets) > 1:
        listed = ", ".join(sorted(targets))
        raise BackboneError(f"more than one backbone is called '{name}': {listed}; uninstall one")
    if target_here is not None:
        return _imported(target_here)
    if not targets:
        raise BackboneError(f"no backbone is called '{name}'{_near_backbone(name)}")

    (target,) = targets  # of a plugin, which may raise anything
    try:
        function = _imported(target)
    except Exception as error:
        raise BackboneError(f"backbone '{name}': {target} cannot be loaded: {error}") from error
    if not callable(function):
        raise BackboneError(f"backbone '{name}': {target} is not a function")
    return function


def _imported(value: str) -> Callable[..., Any]:
    """Import a function, given as `module:function`."""
    function: Callable[..., Any] = EntryPoint("", value, plugins.BACKBONES).load()
    return function
