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
from typing import Any, TypeGuard

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
from obygaze_features.errors import BackboneError, first_line
from obygaze_features.file_kinds import SAFETENSORS, file_kind, why_not
from obygaze_features.text import counted, first_few
from obygaze_features.torch_files import load_torch
from obygaze_features.untrusted import open_regular

POSITION_IDS = r".*position_ids"
"""Buffers 0, 1, 2, ... that older versions saved."""
NAMES_SHOWN = 5
"""Tensors that a message names."""

REAL_TYPES = {"float64", "float32", "float16", "bfloat16"}
"""Types of tensors that are weights as they are; all others are codes of a quantisation, or no weights."""

SAFETENSORS_TYPES = {"BF": "bfloat", "F": "float", "I": "int", "U": "uint", "C": "complex"}
"""Letters of a type of safetensors -> the same in torch."""

ADAPTER_FILE = "adapter_config.json"
"""A file that peft saves; transformers applies it if peft is installed."""

MAX_TENSORS = 20_000
"""Most tensors of a network."""
SPARE_NUMBERS = 1 << 24
"""Numbers that a network may have beyond the bytes of its files, such as masks."""


def load_pretrained(
    cls: Any, weights: Weights, config: Any, *, allow_unexpected: Sequence[str] = (), **settings: Any
) -> Any:
    """Load a network of the transformers library with its weights, in float32; raise if any does not fit.

    Transformers itself would only warn, and leave the weights that it cannot load random. For random weights,
    an untrained network of the configuration is made.

    Parameters
    ----------
    cls
        The network's class, a `PreTrainedModel`.
    weights
        The weights.
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
        try:
            return untrained(make, weights.seed)
        except ImportError as error:
            raise BackboneError(f"{weights.name}: {_library_missing(error)}") from None

    # Check the configuration and the files before values are read.
    refuse_quantised(weights)
    allowed = (POSITION_IDS, *allow_unexpected)  # older versions saved the positions 0, 1, 2, ... too
    network_tensors = check_size(weights, CONFIG, make).state_dict()
    _check_files(weights.files, network_tensors, allowed)

    network, report = _load_with_report(cls, weights, config, settings)
    mismatched = []  # sentences on tensors of another shape
    for name, shape, expected_shape in report["mismatched_keys"]:
        mismatched.append(f"{name} {list(shape)}, not {list(expected_shape)}")
    check_keys(
        weights.name,
        missing=sorted(report["missing_keys"]),
        unexpected=list(report["unexpected_keys"]),
        mismatched=mismatched,
        allowed=allowed,
    )
    return frozen(network, weights.name)


def _load_with_report(
    cls: Any, weights: Weights, config: Any, settings: Mapping[str, Any]
) -> tuple[Any, Mapping[str, Any]]:
    """Load a network with transformers; return it with the report on tensors that do not fit.

    Parameters
    ----------
    cls, config
        Class and configuration of the network.
    weights
        The weights, which are read from their folder.
    settings
        Further arguments of the class.

    Raises
    ------
    BackboneError
        The weights make no such network.
    """
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
                ignore_mismatched_sizes=True,  # the report then names them, and the caller raises an error
                output_loading_info=True,
                **settings,
            )
    except Exception as error:  # noqa: BLE001 - transformers lets any of them out of strangers' files
        raise BackboneError(
            f"{weights.name}: the weights cannot be read: their tensors are whole, and make no such network "
            f"({type(error).__name__}); is {CONFIG} that of these weights?"
        ) from None
    return network, report


def _check_files(
    paths: Sequence[Path], network_tensors: Mapping[str, torch.Tensor], allowed: Sequence[str]
) -> None:
    """Raise an error if files of weights have tensors of a wrong type, or one tensor is in two files.

    Parameters
    ----------
    paths
        Files of the weights.
    network_tensors
        Tensors of the network by name; they may be on the meta device.
    allowed
        Regular expressions of tensors that the network does not use.
    """
    integer_suffixes = _integer_suffixes(network_tensors)
    file_of_tensor: dict[str, Path] = {}
    for path in paths:
        types = {}  # of the tensors that the network uses, or that it does not know
        for name, type_name in _types_in(path).items():
            is_unused = name not in network_tensors and _matches(name, allowed)
            if not is_unused:
                types[name] = type_name
        check_types(str(path), types, integer_suffixes)
        repeated_names = sorted(file_of_tensor.keys() & types.keys())
        if repeated_names:
            earlier_file = file_of_tensor[repeated_names[0]]
            raise BackboneError(
                f"{path}: {_first_names(repeated_names)} also in {earlier_file.name}: which are the weights?"
            )
        file_of_tensor |= dict.fromkeys(types, path)


def _integer_suffixes(network_tensors: Mapping[str, torch.Tensor]) -> tuple[str, ...]:
    """Return the last parts of the names of a network's tensors of whole numbers.

    For example `num_batches_tracked` of `bn1.num_batches_tracked`. Only the last parts, because names in a
    file may have another prefix than in the network.
    """
    suffixes = set()
    for name, tensor in network_tensors.items():
        if not tensor.is_floating_point():
            _, _, last_part = name.rpartition(".")
            suffixes.add(last_part)
    return tuple(suffixes)


def _attention(cls: Any) -> str:
    """Return the attention implementation for a class of networks of transformers.

    It is PyTorch's ("sdpa") if the class supports that, else the plain one ("eager").
    """
    return ATTENTION if cls._supports_sdpa else "eager"


def check_size(weights: Weights, config: str, make: Callable[[], nn.Module]) -> nn.Module:
    """Build a network without values, on torch's meta device; raise if it is too large for its files.

    A file has at least one byte for each number, so a network with more numbers than bytes cannot be that of
    the files. A stranger's configuration that asks for a huge network is so refused before any memory is
    allocated.

    Parameters
    ----------
    weights
        The weights.
    config
        Name of the configuration's file.
    make
        Builds the network.

    Raises
    ------
    BackboneError
        Naming the file and the tensor that was too much, or why there is no such network.
    """
    n_bytes = sum(path.stat().st_size for path in weights.files)
    max_numbers = n_bytes + SPARE_NUMBERS  # some tensors, such as masks, are in no file
    n_tensors = 0
    n_numbers = 0

    def count(_module: nn.Module, name: str, tensor: torch.Tensor | None) -> None:
        """Add a tensor to the totals as the network registers it; raise once they exceed the limits."""
        nonlocal n_tensors, n_numbers
        if tensor is None:
            return
        n_tensors += 1
        n_numbers += tensor.numel()
        if n_tensors > MAX_TENSORS or n_numbers > max_numbers:
            raise BackboneError(
                f"{weights.name}/{config}: asks for more than these weights of {n_bytes} bytes can be: "
                f"tensor {n_tensors}, {name} {list(tensor.shape)}"
            )

    hooks = (
        register_module_parameter_registration_hook(count),
        register_module_buffer_registration_hook(count),
    )
    try:
        with quiet(), torch.device("meta"):
            return make()
    except BackboneError:  # raised by `count`
        raise
    except ImportError as error:
        raise BackboneError(f"{weights.name}: {_library_missing(error)}") from None
    except Exception as error:  # noqa: BLE001 - wrong values in a configuration can raise any error
        field = re.search(r"argument '(\w+)'", str(error))
        wrong = f"no network takes {field[1]!r}" if field else "its values make no network"
        raise BackboneError(
            f"{weights.name}/{config}: {wrong} ({type(error).__name__}); is it that of these weights?"
        ) from None
    finally:
        for hook in hooks:
            hook.remove()


def _library_missing(error: ImportError) -> str:
    """Return which library a network needs, from transformers' error message.

    Such a message is several lines long, and begins "NAME requires the X library but it was not found".
    """
    sentence, _, _ = str(error).strip().partition(" but it was not found")
    return first_line(sentence)


@checked
def check_keys(
    name: str,
    *,
    missing: Sequence[str],
    unexpected: Sequence[str],
    mismatched: Sequence[str] = (),
    allowed: Sequence[str] = (),
) -> None:
    """Raise an error for a checkpoint whose tensors are not exactly the network's.

    Parameters
    ----------
    name
        The weights, for messages.
    missing, unexpected
        Names of tensors that only the network, or only the checkpoint, has.
    mismatched
        Names of tensors with both shapes, where these differ.
    allowed
        Regular expressions of unexpected tensors that the network does not use.

    Raises
    ------
    BackboneError
        Naming the first few tensors. If the checkpoint's names only have a prefix too many, it names the
        prefix.
    """
    unexpected = [key for key in unexpected if not _matches(key, allowed)]
    problems = []
    if missing:
        problems.append(f"{len(missing)} tensors missing: {_first_names(missing)}")
    if unexpected:
        problems.append(
            f"{len(unexpected)} tensors that the network has no place for: {_first_names(unexpected)}"
        )
    if mismatched:
        problems.append(f"{len(mismatched)} tensors of another shape: {_first_names(mismatched)}")
    problems += [
        f"all their names begin with {prefix!r}: save them without it, and they fit"
        for prefix in _superfluous_prefixes(missing, unexpected, allowed)
    ]
    if problems:
        raise BackboneError(f"{name}: these weights are not this network's: {'; '.join(problems)}")


def _superfluous_prefixes(
    missing: Sequence[str], unexpected: Sequence[str], allowed: Sequence[str]
) -> Iterator[str]:
    """Yield each prefix whose removal turns the unexpected names of tensors into the missing ones.

    An example: `model.head.weight` is unexpected, `head.weight` is missing, and the prefix is `model.`.

    Parameters
    ----------
    missing, unexpected
        Names of tensors that only the network, or only the file, has.
    allowed
        Regular expressions of names that do not count, once they are without the prefix.
    """
    if not missing:
        return
    # A right prefix turns some unexpected name into the first missing one, so this gives all candidates.
    first_missing = missing[0]
    for name in unexpected:
        if name == first_missing or not name.endswith(first_missing):
            continue
        prefix = name.removesuffix(first_missing)
        names_without_prefix = [unexpected_name.removeprefix(prefix) for unexpected_name in unexpected]
        names_that_count = [short for short in names_without_prefix if not _matches(short, allowed)]
        if sorted(names_that_count) == sorted(missing):
            yield prefix


def check_types(name: str, types: Mapping[str, str], integer_suffixes: tuple[str, ...] = ()) -> None:
    """Raise an error for tensors of another type than the network's, which torch would cast silently.

    Parameters
    ----------
    name
        The weights, for messages.
    types
        Tensor -> its type, such as float16.
    integer_suffixes
        Ends of the names of tensors that are whole numbers in the network.

    Raises
    ------
    BackboneError
        Naming the first few tensors.
    """
    wrong = []
    for key, dtype in types.items():
        is_integer = re.fullmatch(r"u?int\d+", dtype) is not None
        fits = is_integer if key.endswith(integer_suffixes) else dtype in REAL_TYPES
        if not fits:
            wrong.append(f"{key} is {dtype}")
    if wrong:
        raise BackboneError(
            f"{name}: {len(wrong)} tensors of another type than the network's, quantised or no weights: "
            f"{_first_names(wrong)}; get the unquantised weights (float32, float16 or bfloat16)"
        )


def refuse_quantised(weights: Weights) -> None:
    """Raise an error for weights that are quantised by their configuration, or that have an adapter (LoRA).

    Quantised weights are codes, which would be read as if they were numbers. An adapter changes the weights,
    but only if the package peft is installed: features would depend on that.

    Raises
    ------
    BackboneError
        Naming the method of quantisation, or the adapter's file.
    """
    if weights.folder and (weights.folder / ADAPTER_FILE).exists():
        raise BackboneError(
            f"{weights.folder / ADAPTER_FILE}: "
            "an adapter (LoRA) lies beside these weights and is not applied: "
            "merge both (merge_and_unload of peft), or move it away"
        )
    config = weights.config()
    configs_of_parts = [value for value in config.values() if isinstance(value, dict)]  # `vision_config`, ...
    for fields in (config, *configs_of_parts):
        method = _quantisation_method(fields)
        if method:
            raise BackboneError(
                f"{weights.name}/{CONFIG}: these weights are quantised ({method}); get the "
                "unquantised ones (float32, float16 or bfloat16)"
            )


def _quantisation_method(fields: Mapping[str, Any]) -> str:
    """Return the method by which weights are quantised, such as "gptq"; "" if they are not.

    If a configuration says that they are quantised and not how, the name of that field is returned.

    Parameters
    ----------
    fields
        Fields of the network's configuration.
    """
    for field in ("quantization_config", "compression_config"):
        quantisation = fields.get(field)
        if not quantisation:
            continue
        method = None
        if isinstance(quantisation, dict):
            method = quantisation.get("quant_method")
        return str(method or field)
    return ""


def check_tensors(
    name: str,
    tensors: Mapping[str, torch.Tensor],
    wanted: Mapping[str, Sequence[int]],
    *,
    optional_integers: tuple[str, ...] = (),
) -> None:
    """Raise an error unless tensors are exactly those of a network, by name, shape and type.

    Parameters
    ----------
    name
        The weights, for messages.
    tensors
        The tensors by name.
    wanted
        Name of each of the network's tensors -> its shape.
    optional_integers
        Ends of the names of tensors of whole numbers, which may be missing.

    Raises
    ------
    BackboneError
        Naming the first few tensors that are missing, unexpected, or of another shape or type.
    """
    types = {key: _type(tensor) for key, tensor in tensors.items() if key in wanted}
    check_types(name, types, optional_integers)
    mismatched = []
    for key in wanted.keys() & tensors.keys():
        shape = list(tensors[key].shape)
        if shape != list(wanted[key]):
            mismatched.append(f"{key} {shape}, not {list(wanted[key])}")
    absent = wanted.keys() - tensors.keys()
    check_keys(
        name,
        missing=[key for key in absent if not key.endswith(optional_integers)],
        unexpected=list(tensors.keys() - wanted.keys()),
        mismatched=mismatched,
    )


def auto_config(weights: Weights, random_type: str = "", changes: Mapping[str, Any] | None = None) -> Any:
    """Read the configuration of weights, of any type that transformers supports.

    Code in the folder is never run; by default, transformers would ask the user for permission.

    Parameters
    ----------
    weights
        The weights.
    random_type
        `model_type` of random weights, which have no file: they get the default configuration of this type.
    changes
        Fields to set in that default configuration, or in its vision part if it has one.

    Raises
    ------
    BackboneError
        If there is none, or transformers does not support its type or a field's value.
    """
    if weights.seed is not None and random_type:
        return _default_config(random_type, changes or {})
    model_type = str(weights.config().get("model_type"))  # raises a clear error if there is none
    try:
        return AutoConfig.from_pretrained(str(weights.folder), local_files_only=True, trust_remote_code=False)
    except Exception as error:  # noqa: BLE001 - transformers lets any of them out of strangers' files
        reason = _reason_of_no_config(error, model_type)
        raise BackboneError(f"{weights.name}/{CONFIG}: {reason}") from None


def _reason_of_no_config(error: Exception, model_type: str) -> str:
    """Return why transformers cannot read a configuration: an unsupported type, or the value of a field.

    Parameters
    ----------
    error
        The error that transformers has raised.
    model_type
        Type of the network by the configuration.
    """
    if model_type not in CONFIG_MAPPING:
        return f"transformers has no network of type {model_type!r}"
    field = re.search(r"for field '(\w+)'", str(error))
    value = f"the value of {field[1]}" if field else f"something ({type(error).__name__})"
    return f"{value} is none that a network of type {model_type!r} has; is it that of these weights?"


def _default_config(model_type: str, changes: Mapping[str, Any]) -> Any:
    """Return transformers' default configuration of a type of network, with some fields changed.

    Parameters
    ----------
    model_type
        The type, such as `vit`.
    changes
        Field -> its value, of the vision part. A configuration without one is that of a vision network, and
        its own fields are changed.
    """
    with quiet():
        config = AutoConfig.for_model(model_type)
    vision_config = getattr(config, "vision_config", config)
    for name, value in changes.items():
        setattr(vision_config, name, value)
    return config


def load_from_folder(cls: Any, weights: Weights, description: str, **settings: Any) -> Any:
    """Load a tokenizer, processor or other transformers object from the folder of weights.

    Code in the folder is never run.

    Parameters
    ----------
    cls
        Class of the object.
    weights
        The weights.
    description
        The object, for messages.
    settings
        Further arguments of `cls.from_pretrained`.

    Raises
    ------
    BackboneError
        Naming the weights and what cannot be loaded.
    """
    try:
        with quiet():
            return cls.from_pretrained(
                str(weights.folder), local_files_only=True, trust_remote_code=False, **settings
            )
    except Exception as error:  # noqa: BLE001 - transformers lets any of them out of strangers' files
        raise BackboneError(
            f"{weights.name}: {description} cannot be read ({type(error).__name__}): get its files again"
        ) from None


@checked
def untrained(make: Callable[[], Any], seed: int) -> Any:
    """Build a network with random weights that depend only on the seed, and freeze it.

    The state of torch's generator stays as it was.

    Parameters
    ----------
    make
        Builds the network: its class, or a function without arguments.
    seed
        That of the weights `random:SEED`.

    Examples
    --------
    >>> from torch import nn
    >>> from obygaze_features.backbones import untrained
    >>> first, second = (untrained(lambda: nn.Linear(3, 2), seed=7) for _ in range(2))
    >>> bool((first.weight == second.weight).all())
    True
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return frozen(make())


def frozen(network: Any, name: str = "") -> Any:
    """Set a network to float32, evaluation mode and no gradients, and return it.

    `name` is that of its weights, for the message.

    Raises
    ------
    BackboneError
        Some weights are not finite, which might not show in the features.
    """
    network = network.float().eval().requires_grad_(requires_grad=False)
    not_finite = [key for key, value in network.named_parameters() if not torch.isfinite(value).all()]
    if not_finite:
        raise BackboneError(
            f"{name}: weights that are not finite numbers (damaged, or too large for float32): "
            f"{_first_names(not_finite)}; get them again"
        )
    return network


@checked
def load_state_dict(weights: Weights) -> dict[str, torch.Tensor]:
    """Read a file of tensors by name, safetensors or a dict that `torch.save` wrote.

    Nothing else is unpickled.

    Raises
    ------
    BackboneError
        If the file is damaged or holds anything but tensors by name, or if the weights are random.
    """
    if not weights.files:
        raise BackboneError(f"{weights.name}: random weights have no file of tensors; give a file")
    return _read_state_dict(weights.files[0])


def _read_state_dict(path: Path) -> dict[str, torch.Tensor]:
    """Read one file of tensors by name.

    Raises
    ------
    BackboneError
        The file holds something else, or its tensors claim more numbers than it has bytes.
    """
    document = load_torch(path, BackboneError)
    if not _is_state_dict(document):
        # Training scripts often save the state dict inside another dict, with the epoch and so on.
        keys_of_dicts = []
        if isinstance(document, dict):
            keys_of_dicts = [repr(key) for key, value in document.items() if isinstance(value, dict)]
        advice = f"; save what it has under {' or '.join(keys_of_dicts)}" if keys_of_dicts else ""
        raise BackboneError(f"{path}: expected a state dict (tensors by name), found something else{advice}")
    # A tensor may repeat one stored number along an axis, and so claim any size.
    n_numbers = sum(tensor.numel() for tensor in document.values())
    if n_numbers > path.stat().st_size:
        raise BackboneError(f"{path}: refused: its tensors have more numbers than it has bytes")
    return document


def _is_state_dict(document: object) -> TypeGuard[dict[str, torch.Tensor]]:
    """Return whether a document is a dict of tensors by name."""
    if not isinstance(document, dict):
        return False
    return all(isinstance(key, str) and isinstance(value, torch.Tensor) for key, value in document.items())


def _types_in(path: Path) -> dict[str, str]:
    """Return name -> type of each tensor in a file of weights, such as float16.

    Of a safetensors file only the header is read.

    Raises
    ------
    BackboneError
        The file is damaged, or the suffix of its name is not that of its format.
    """
    if path.suffix != ".safetensors":
        if file_kind(path).name == SAFETENSORS:  # transformers chooses the reader by the file's name
            raise BackboneError(f"{path}: this is {SAFETENSORS}: let its name end in .safetensors")
        return {key: _type(tensor) for key, tensor in _read_state_dict(path).items()}
    open_regular(path).close()  # refuse pipes and devices: safetensors opens the path itself
    types = {}
    try:
        with safe_open(path, "pt") as file:
            for key in file.keys():  # noqa: SIM118 - `file` is no dict, and cannot be iterated
                types[key] = _plain_type(file.get_slice(key).get_dtype())
    except Exception:  # noqa: BLE001 - safetensors lets several out of damaged bytes
        raise BackboneError(f"{path}: cannot be read: {why_not(path, SAFETENSORS)}") from None
    return types


def _type(tensor: torch.Tensor) -> str:
    """Describe the type of a tensor for checks and messages, such as "float16" or "float32 (sparse)".

    The words that are added to a sparse tensor, and to one without values, make its type none of those that
    are accepted.
    """
    description = str(tensor.dtype).removeprefix("torch.")
    if tensor.layout != torch.strided:
        description += " (sparse)"
    if tensor.is_meta:
        description += " with no values"
    return description


def _plain_type(name: str) -> str:
    """Translate a type of safetensors, such as BF16 or F8_E4M3, to torch's name: bfloat16, float8_e4m3."""
    letters = re.match(r"(BF|F|I|U|C)(?=\d)", name)
    if letters:
        digits = name[letters.end() :]
        name = SAFETENSORS_TYPES[letters[0]] + digits
    return name.lower()


def load_exactly(network: nn.Module, weights: Weights, rename: Callable[[str], str] = str) -> None:
    """Load the tensors of a file of weights into a network; raise an error unless it has exactly these.

    Parameters
    ----------
    network
        The network.
    weights
        Weights of one file.
    rename
        Turns a tensor's name in the file into its name in the network; empty leaves the tensor out.

    Raises
    ------
    BackboneError
        If there are several files, or a tensor is missing, unexpected or of another shape.
    """
    if len(weights.files) != 1:
        raise BackboneError(
            f"{weights.name}: its weights are in {counted(len(weights.files), 'file')}, and one is read"
        )
    tensors = {}
    for file_name, tensor in load_state_dict(weights).items():
        name = rename(file_name)
        if name:
            tensors[name] = tensor
    wanted = {name: value.shape for name, value in network.state_dict().items()}
    # Old files lack the counters of training batches.
    check_tensors(weights.name, tensors, wanted, optional_integers=("num_batches_tracked",))
    network.load_state_dict(tensors, strict=False)


def plain_config(config: Any) -> dict[str, Any]:
    """Return the fields of a transformers configuration that describe the network, as plain JSON.

    Fields of values that JSON does not have, and nested configurations, are left out.
    """
    plain: dict[str, Any] = {}
    for key, value in sorted(config.to_dict().items()):
        if key in NOT_OF_THE_NETWORK:
            continue
        if isinstance(value, tuple):
            plain[key] = list(value)
        elif isinstance(value, str | int | float | bool | list | None):
            plain[key] = value
    return plain


NOT_OF_THE_NETWORK = {
    "_name_or_path",
    "architectures",
    "chunk_size_feed_forward",
    "dtype",
    "id2label",
    "initializer_factor",
    "initializer_range",
    "is_encoder_decoder",
    "label2id",
    "output_attentions",
    "output_hidden_states",
    "problem_type",
    "return_dict",
    "torch_dtype",
    "transformers_version",
}
"""Fields of a configuration that do not describe the network, or depend on the machine and libraries."""


def _matches(key: str, patterns: Sequence[str]) -> bool:
    """Return whether a tensor's name (`key`) matches one of the regular expressions in full."""
    return any(re.fullmatch(pattern, key) for pattern in patterns)


def _first_names(keys: Sequence[str]) -> str:
    """Format names of tensors for a message: sorted, the first few of them, and how many more there are."""
    return first_few(sorted(keys), NAMES_SHOWN)


@contextmanager
def quiet() -> Iterator[None]:
    """Silence the log messages and progress bars of transformers within a `with` block."""
    logging: Any = transformers_logging
    verbosity = logging.get_verbosity()
    had_bars = logging.is_progress_bar_enabled()
    logging.set_verbosity(CRITICAL)
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if had_bars:
            logging.enable_progress_bar()
