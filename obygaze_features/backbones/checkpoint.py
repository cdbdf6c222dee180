"""Load checkpoints and check that no weight remains random.

`from_pretrained` only prints what it could not load: `XCLIPVisionModel.from_pretrained` on a whole X-CLIP
loads nothing and returns a random network. Here every missing, unexpected or misshapen tensor raises an
error that names it.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from logging import CRITICAL
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import nn
from torch.nn.modules.module import (
    register_module_buffer_registration_hook,
    register_module_parameter_registration_hook,
)
from transformers import CONFIG_MAPPING, AutoConfig
from transformers.utils import logging as transformers_logging

from obygaze_features.arguments import checked
from obygaze_features.backbones.compute import ATTENTION
from obygaze_features.backbones.weights import CONFIG, Weights
from obygaze_features.door import open_regular
from obygaze_features.errors import BackboneError
from obygaze_features.file_kinds import SAFETENSORS, what, why_not
from obygaze_features.text import first_few
from obygaze_features.torch_files import load_torch

POSITION_IDS = r".*position_ids"  # buffers 0, 1, 2, ... saved by older versions
NAMES_SHOWN = 5

REAL = {"float64", "float32", "float16", "bfloat16"}
"""Types of tensors that are weights as they are; all others are codes of a quantisation, or no weights."""

SAFETENSORS_TYPES = {"BF": "bfloat", "F": "float", "I": "int", "U": "uint", "C": "complex"}

ADAPTER = "adapter_config.json"
"""What peft saves; transformers applies it where peft is installed."""

MOST_TENSORS, SPARE = 20_000, 1 << 24
"""Tensors of a network, and numbers that it may have beyond the bytes of its files, such as masks."""


def load_pretrained(
    cls: Any, weights: Weights, config: Any, *, allow_unexpected: Sequence[str] = (), **settings: Any
) -> Any:
    """Load a network of the transformers library in float32, or make an untrained one of its configuration.

    Parameters
    ----------
    cls
        The network's class, a `PreTrainedModel`.
    config
        The network's configuration object.
    allow_unexpected
        Regular expressions of tensors in the file that the network does not use.
    settings
        Further arguments of the class.

    Raises
    ------
    BackboneError
        If the file is damaged, or a tensor is missing, unexpected or of another shape or type; the message
        names it.
    """
    make = partial(cls._from_config, config, attn_implementation=_attention(cls), **settings)
    if weights.seed is not None:
        return untrained(make, weights.seed)
    refuse_quantised(weights)
    allowed = (POSITION_IDS, *allow_unexpected)
    whole = check_size(weights, CONFIG, make).state_dict()
    integers = {name.rpartition(".")[2] for name, value in whole.items() if not value.is_floating_point()}
    seen = dict[str, Path]()
    for path in weights.files:
        types = {
            key: dtype for key, dtype in _types_in(path).items() if key in whole or not _allowed(key, allowed)
        }
        check_types(str(path), types, tuple(integers))
        if twice := sorted(seen.keys() & types.keys()):
            raise BackboneError(
                f"{path}: {_shown(twice)} also in {seen[twice[0]].name}: which are the weights?"
            )
        seen |= dict.fromkeys(types, path)
    try:
        with quiet():
            network, report = cls.from_pretrained(
                weights.folder,
                config=config,
                dtype=torch.float32,
                attn_implementation=_attention(cls),
                local_files_only=True,
                use_safetensors=weights.files[0].suffix == ".safetensors",
                weights_only=True,
                ignore_mismatched_sizes=True,  # the report then names them, and an error is raised
                output_loading_info=True,
                **settings,
            )
    except Exception as error:  # noqa: BLE001 - transformers lets any of them out of strangers' files
        raise BackboneError(
            f"{weights.name}: the weights cannot be read: their tensors are whole, and make no such network "
            f"({type(error).__name__}); is {CONFIG} that of these weights?"
        ) from None
    mismatched = [
        f"{name} {list(shape)}, not {list(wanted)}" for name, shape, wanted in report["mismatched_keys"]
    ]
    check_keys(
        weights.name,
        missing=sorted(report["missing_keys"]),
        unexpected=list(report["unexpected_keys"]),
        mismatched=mismatched,
        allowed=allowed,
    )
    return frozen(network, weights.name)


def _attention(cls: Any) -> str:
    return ATTENTION if cls._supports_sdpa else "eager"


def check_size(weights: Weights, config: str, make: Callable[[], nn.Module]) -> nn.Module:
    """Refuse a configuration whose network is larger than the files, before memory is asked for.

    The network is made on torch's meta device, of shapes alone, and returned. Files have more bytes than
    numbers.

    Parameters
    ----------
    config
        Name of the configuration's file.

    Raises
    ------
    BackboneError
        Naming the file and the tensor that was too much, or why there is no such network.
    """
    octets = sum(path.stat().st_size for path in weights.files)
    tensors = numbers = 0

    def count(_module: nn.Module, name: str, tensor: torch.Tensor | None) -> None:
        nonlocal tensors, numbers
        if tensor is not None:
            tensors, numbers = tensors + 1, numbers + tensor.numel()
            if tensors > MOST_TENSORS or numbers > octets + SPARE:
                raise BackboneError(
                    f"{weights.name}/{config}: asks for more than these weights of {octets} bytes can be: "
                    f"tensor {tensors}, {name} {list(tensor.shape)}"
                )

    hooks = (
        register_module_parameter_registration_hook(count),
        register_module_buffer_registration_hook(count),
    )
    try:
        with quiet(), torch.device("meta"):
            return make()
    except BackboneError:
        raise
    except Exception as error:  # noqa: BLE001 - a stranger's numbers raise anything
        field = re.search(r"argument '(\w+)'", str(error))
        wrong = f"no network takes {field[1]!r}" if field else "its values make no network"
        raise BackboneError(
            f"{weights.name}/{config}: {wrong} ({type(error).__name__}); is it that of these weights?"
        ) from None
    finally:
        for hook in hooks:
            hook.remove()


@checked
def check_keys(
    name: str,
    *,
    missing: Sequence[str],
    unexpected: Sequence[str],
    mismatched: Sequence[str] = (),
    allowed: Sequence[str] = (),
) -> None:
    """Refuse a checkpoint whose tensors are not exactly the network's.

    Parameters
    ----------
    allowed
        Regular expressions of unexpected tensors that the network does not use.

    Raises
    ------
    BackboneError
        Naming the first few tensors, and the prefix without which the names are the network's.
    """
    unexpected = [key for key in unexpected if not _allowed(key, allowed)]
    problems = [
        f"{len(keys)} tensors {what}: {_shown(keys)}"
        for what, keys in (
            ("missing", missing),
            ("that the network has no place for", unexpected),
            ("of another shape", mismatched),
        )
        if keys
    ]
    ends = (key.removesuffix(missing[0]) for key in unexpected if missing and key.endswith(missing[0]))
    for prefix in filter(None, ends):
        rest = (key.removeprefix(prefix) for key in unexpected)
        if sorted(key for key in rest if not _allowed(key, allowed)) == sorted(missing):
            problems.append(f"all their names begin with {prefix!r}: save them without it, and they fit")
    if problems:
        raise BackboneError(f"{name}: these weights are not this network's: {'; '.join(problems)}")


def check_types(name: str, types: Mapping[str, str], integers: tuple[str, ...] = ()) -> None:
    """Refuse tensors of another type than the network's, which torch casts without a word.

    Parameters
    ----------
    types
        Tensor -> its type, such as float16.
    integers
        Ends of the names of tensors that are whole numbers in the network.

    Raises
    ------
    BackboneError
        Naming the first few tensors.
    """
    strange = [
        f"{key} is {dtype}"
        for key, dtype in types.items()
        if (not re.fullmatch(r"u?int\d+", dtype) if key.endswith(integers) else dtype not in REAL)
    ]
    if strange:
        raise BackboneError(
            f"{name}: {len(strange)} tensors of another type than the network's, quantised or no weights: "
            f"{_shown(strange)}; get the unquantised weights (float32, float16 or bfloat16)"
        )


def refuse_quantised(weights: Weights) -> None:
    """Refuse weights that their configuration calls quantised, or beside which an adapter lies.

    Raises
    ------
    BackboneError
        Naming the method.
    """
    if weights.folder and (weights.folder / ADAPTER).exists():
        raise BackboneError(
            f"{weights.folder / ADAPTER}: an adapter (LoRA) lies beside these weights and is not applied: "
            "merge both (merge_and_unload of peft), or move it away"
        )
    config = weights.config()
    for fields in (config, *(value for value in config.values() if isinstance(value, dict))):
        for field in ("quantization_config", "compression_config"):
            if stated := fields.get(field):
                method = stated.get("quant_method") if isinstance(stated, dict) else None
                raise BackboneError(
                    f"{weights.name}/{CONFIG}: these weights are quantised ({method or field}); get the "
                    "unquantised ones (float32, float16 or bfloat16)"
                )


def check_tensors(
    name: str,
    tensors: Mapping[str, torch.Tensor],
    wanted: Mapping[str, Sequence[int]],
    *,
    optional: tuple[str, ...] = (),
) -> None:
    """Refuse tensors that are not exactly the wanted ones, by name and shape, or no real numbers.

    Parameters
    ----------
    wanted
        Name -> shape.
    optional
        Ends of the names of those that may be missing, and are whole numbers.
    """
    check_types(name, {key: _type(tensor) for key, tensor in tensors.items() if key in wanted}, optional)
    check_keys(
        name,
        missing=[key for key in wanted.keys() - tensors.keys() if not key.endswith(optional)],
        unexpected=list(tensors.keys() - wanted.keys()),
        mismatched=[
            f"{key} {list(tensors[key].shape)}, not {list(wanted[key])}"
            for key in wanted.keys() & tensors.keys()
            if tuple(tensors[key].shape) != tuple(wanted[key])
        ],
    )


def auto_config(weights: Weights, kind: str = "", changes: Mapping[str, Any] | None = None) -> Any:
    """Read the configuration of a folder, of any type that transformers supports.

    Of random weights it is the own one of type `kind`, with changed fields of the half that sees.

    Code in the folder is never run; by default, transformers asks the user for permission.

    Raises
    ------
    BackboneError
        If there is none, or transformers does not support its type or a field's value.
    """
    if weights.seed is not None and kind:
        with quiet():
            config = AutoConfig.for_model(kind)
        for name, value in (changes or {}).items():
            setattr(getattr(config, "vision_config", config), name, value)
        return config
    kind = str(weights.config().get("model_type"))  # raises a clear error if there is none
    try:
        return AutoConfig.from_pretrained(str(weights.folder), local_files_only=True, trust_remote_code=False)
    except Exception as error:  # noqa: BLE001 - transformers lets any of them out of strangers' files
        field = re.search(r"for field '(\w+)'", str(error))
        wrong = f"the value of {field[1]}" if field else f"something ({type(error).__name__})"
        known = f"{wrong} is none that a network of type {kind!r} has; is it that of these weights?"
        unknown = f"transformers has no network of type {kind!r}"
        raise BackboneError(
            f"{weights.name}/{CONFIG}: {known if kind in CONFIG_MAPPING else unknown}"
        ) from None


def read_beside(cls: Any, weights: Weights, what: str, **settings: Any) -> Any:
    """Make an object of transformers of the files beside weights; code among them is never run.

    Raises
    ------
    BackboneError
        Naming the weights and what cannot be made.
    """
    try:
        with quiet():
            return cls.from_pretrained(
                str(weights.folder), local_files_only=True, trust_remote_code=False, **settings
            )
    except Exception as error:  # noqa: BLE001 - transformers lets any of them out of strangers' files
        raise BackboneError(
            f"{weights.name}: {what} cannot be read ({type(error).__name__}): get its files again"
        ) from None


def untrained(make: Any, seed: int) -> Any:
    """Make a network with random weights that depend on the seed only."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return frozen(make())


def frozen(network: Any, name: str = "") -> Any:
    """Set a network to evaluation mode in float32, without gradients.

    Raises
    ------
    BackboneError
        Naming the weights that are not finite; of some, features would be finite.
    """
    network = network.float().eval().requires_grad_(requires_grad=False)
    broken = [name for name, value in network.named_parameters() if not torch.isfinite(value).all()]
    if broken:
        raise BackboneError(
            f"{name}: weights that are not finite numbers (damaged, or too large for float32): "
            f"{_shown(broken)}; get them again"
        )
    return network


@checked
def load_state_dict(weights: Weights) -> dict[str, torch.Tensor]:
    """Read a file of tensors by name, safetensors or a dict that `torch.save` wrote; unpickle nothing else.

    Raises
    ------
    BackboneError
        If the file is damaged or holds anything but tensors by name.
    """
    return _load(weights.files[0])


def _load(path: Path) -> dict[str, torch.Tensor]:
    tensors = load_torch(path, BackboneError)
    if not isinstance(tensors, dict) or not all(
        isinstance(key, str) and isinstance(value, torch.Tensor) for key, value in tensors.items()
    ):
        parts = tensors.items() if isinstance(tensors, dict) else ()
        inner = " or ".join(repr(key) for key, value in parts if isinstance(value, dict))
        raise BackboneError(
            f"{path}: expected a state dict (tensors by name), found something else"
            + (f"; save what it has under {inner}" if inner else "")
        )
    if sum(tensor.numel() for tensor in tensors.values()) > path.stat().st_size:
        raise BackboneError(f"{path}: refused: its tensors have more numbers than it has bytes")
    return tensors


def _types_in(path: Path) -> dict[str, str]:
    """Read the type of each tensor of a file, of safetensors from its header alone, which must fit it."""
    if path.suffix != ".safetensors":
        if what(path).name == SAFETENSORS:  # transformers goes by names
            raise BackboneError(f"{path}: this is {SAFETENSORS}: let its name end in .safetensors")
        return {key: _type(tensor) for key, tensor in _load(path).items()}
    open_regular(path).close()  # safetensors opens the name itself
    try:
        with safe_open(path, "pt") as file:
            return {key: _plain_type(file.get_slice(key).get_dtype()) for key in file.keys()}  # noqa: SIM118 - no dict
    except Exception:  # noqa: BLE001 - safetensors lets several out of damaged bytes
        raise BackboneError(f"{path}: cannot be read: {why_not(path, SAFETENSORS)}") from None


def _type(tensor: torch.Tensor) -> str:
    kind = str(tensor.dtype).removeprefix("torch.")
    kind += " (sparse)" * (tensor.layout != torch.strided)
    return f"{kind} with no values" if tensor.is_meta else kind


def _plain_type(name: str) -> str:
    """Write a type of safetensors, such as BF16 or F8_E4M3, as torch does."""
    return re.sub(r"^(BF|F|I|U|C)(?=\d)", lambda found: SAFETENSORS_TYPES[found[0]], name).lower()


def load_exactly(network: nn.Module, weights: Weights, rename: Callable[[str], str] = str) -> None:
    """Load the tensors of one file into a network that has exactly these.

    Parameters
    ----------
    rename
        Gives a tensor's name in the network; empty for one that is left out.

    Raises
    ------
    BackboneError
        If there are several files, or a tensor is missing, unexpected or of another shape.
    """
    if len(weights.files) != 1:
        raise BackboneError(f"{weights.name}: its weights are in {len(weights.files)} files, and one is read")
    tensors = {own: value for name, value in load_state_dict(weights).items() if (own := rename(name))}
    wanted = {name: value.shape for name, value in network.state_dict().items()}
    # Old files lack the counters of training batches.
    check_tensors(weights.name, tensors, wanted, optional=("num_batches_tracked",))
    network.load_state_dict(tensors, strict=False)


def plain_config(config: Any) -> dict[str, Any]:
    """Convert a configuration to plain JSON, without names of machines and libraries."""
    noise = {
        *("_name_or_path", "architectures", "dtype", "torch_dtype", "transformers_version", "id2label"),
        *("label2id", "problem_type", "return_dict", "is_encoder_decoder", "chunk_size_feed_forward"),
        *("initializer_factor", "initializer_range", "output_attentions", "output_hidden_states"),
    }
    return {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in sorted(config.to_dict().items())
        if key not in noise and isinstance(value, str | int | float | bool | tuple | list | None)
    }


def _allowed(key: str, patterns: Sequence[str]) -> bool:
    return any(re.fullmatch(pattern, key) for pattern in patterns)


def _shown(keys: Sequence[str]) -> str:
    return first_few(sorted(keys), NAMES_SHOWN)


@contextmanager
def quiet() -> Iterator[None]:
    """Silence the report and progress bar of transformers; this module checks the findings itself."""
    logging: Any = transformers_logging
    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity(CRITICAL)
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()
