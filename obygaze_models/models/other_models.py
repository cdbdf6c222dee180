"""Find models that are not the zoo's own: of entry points and modules, or estimators handed over."""

import importlib
import inspect
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePath
from typing import Any

from obygaze_features.manifest.spans.names import suggestion
from obygaze_features.plugins import MODELS, points
from obygaze_features.schema import Name, expected, fits
from obygaze_models.errors import ModelError
from obygaze_models.models.names import HOMES
from obygaze_models.models.spec import ModelSpec

SEED_NAMES = ("seed", "random_state")
"""Names of a factory's parameter for the seed. A function's first one without a default is the seed too."""

POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def find_other_model(text: str) -> ModelSpec:
    """Find a model by the name of its entry point, or as ``[name=]module:factory``.

    Raises
    ------
    ModelError
        No such model, a module that can't be imported, one that gives no estimator, or a name that is none.
    """
    if ":" in text:
        return _from_module(text)
    return _from_entry_point(text)


# --- from an object
# ---------------------------------------------------------------------------


def as_spec(name: str, given: Any) -> ModelSpec:
    """Make a spec of an estimator, of a function that makes one (of a seed, or of nothing), or of a spec.

    Raises
    ------
    ModelError
        It is none of these.
    """
    if isinstance(given, ModelSpec):
        return given
    if hasattr(given, "fit") and not isinstance(given, type):
        return ModelSpec(name, name, partial(_seeded_clone, given))
    if not callable(given):
        raise ModelError(
            f"{name} is a {type(given).__name__}: expected a ModelSpec, an estimator or a factory"
        )
    product = _call(name, given, 0)
    if isinstance(product, ModelSpec):
        return product
    if not hasattr(product, "fit"):
        raise ModelError(f"{name} gives a {type(product).__name__}, which has no fit: expected an estimator")
    return ModelSpec(name, name, partial(_call, name, given))


def _seeded_clone(estimator: Any, seed: int) -> Any:
    """Copy an estimator, unfitted, with a seed."""
    from sklearn.base import clone  # noqa: PLC0415  only for estimators handed over as they are

    return _seeded(clone(estimator), seed)


def _call(name: str, factory: Callable[..., Any], seed: int) -> Any:
    """Call a factory, with a seed if it takes one; a model's name is for messages."""
    try:
        parameters = list(inspect.signature(factory).parameters.values())
    except (TypeError, ValueError):
        # Some functions that are not written in Python have no signature.
        parameters = []
    keyword = _seed_keyword(parameters)
    # A class's first parameter is a setting; a function's is the seed.
    takes_seed_first = _has_required_argument(parameters) and not isinstance(factory, type)
    try:
        if keyword:
            return factory(**{keyword: seed})
        if takes_seed_first:
            return factory(seed)
        product = factory()
        if isinstance(product, type):
            product = product()
        return _seeded(product, seed)
    except Exception as error:
        raise ModelError(f"{name} can't be made: {type(error).__name__}: {error}") from error


def _seed_keyword(parameters: list[inspect.Parameter]) -> str:
    """Return the name of the first parameter that is called like a seed; empty if there is none."""
    for parameter in parameters:
        if parameter.name in SEED_NAMES and parameter.kind != inspect.Parameter.POSITIONAL_ONLY:
            return parameter.name
    return ""


def _has_required_argument(parameters: list[inspect.Parameter]) -> bool:
    """Tell whether a positional parameter has no default."""
    positional = [parameter for parameter in parameters if parameter.kind in POSITIONAL]
    return any(parameter.default is inspect.Parameter.empty for parameter in positional)


def _seeded(estimator: Any, seed: int) -> Any:
    """Seed every part of an estimator that takes a ``random_state``: a run's seed decides all draws."""
    if isinstance(estimator, type) or not hasattr(estimator, "get_params"):
        return estimator
    seeds = {}
    for name in estimator.get_params():
        if name.rsplit("__", maxsplit=1)[-1] == "random_state":
            seeds[name] = seed
    return estimator.set_params(**seeds) if seeds else estimator


# --- from a name
# ---------------------------------------------------------------------------


def _from_module(text: str) -> ModelSpec:
    """Import a model of ``[NAME=]MODULE:FACTORY``; a module may also be the path of a file."""
    name, equals, location = text.rpartition("=")
    if equals:
        _check_new_name(name, text)
    module_or_path, _, member_path = location.partition(":")
    # my/forest.py is my.forest.
    module_name = ".".join(PurePath(module_or_path.removesuffix(".py")).parts)
    current_folder = str(Path.cwd())
    if current_folder not in sys.path:
        # Last, so that no file of the folder stands in for an installed package.
        sys.path.append(current_folder)
    try:
        member: Any = importlib.import_module(module_name)
    except Exception as error:
        raise ModelError(f"--model {text}: module {module_name} can't be imported: {error}") from error
    for part in member_path.split("."):
        if not hasattr(member, part):
            raise ModelError(f"--model {text}: module {module_name} has no {member_path}")
        member = getattr(member, part)
    if equals:
        return replace(as_spec(name, member), name=name)
    return as_spec(location, member)


def _check_new_name(name: str, text: str) -> None:
    """Refuse a name that a model of the zoo has, or that is no name; `text` is the whole option."""
    if name in _builtin_names():
        problem = "is a model of the zoo"
    elif not fits(name, Name):
        problem = f"expected {expected(Name)}"
    else:
        return
    raise ModelError(f"--model {text}: {name!r}: {problem}; give NAME=MODULE:FACTORY a name of its own")


def _from_entry_point(name: str) -> ModelSpec:
    """Load a model that an installed package offers."""
    offered = {point.name: point for point in points(MODELS)}
    if name in offered:
        try:
            offer = offered[name].load()
        except Exception as error:
            raise ModelError(f"model {name} of {offered[name].value} can't be imported: {error}") from error
        return as_spec(name, offer)
    if "," in name:
        raise ModelError(f"unknown model {name!r}: give each model a --model of its own")
    hint = suggestion(name, [*_builtin_names(), *offered])
    raise ModelError(f"unknown model {name!r}{hint}; or give [NAME=]MODULE:FACTORY")


def _builtin_names() -> list[str]:
    """List the names of the zoo's own models."""
    return [name for names in HOMES.values() for name in names]
