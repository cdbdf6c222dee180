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
"""Names by which a factory's parameter is known to be the seed.

In a function without them, the first parameter without a default is the seed.
"""

POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
"""The kinds of parameters that take positional arguments."""


def find_other_model(text: str) -> ModelSpec:
    """Find a model by the name of its entry point, or as ``[name=]module:factory``.

    Raises
    ------
    ModelError
        There is no such model; or its module can't be imported, or gives no estimator; or the new name is not
        valid.
    """
    if ":" in text:
        return _import_model(text)
    return _load_entry_point(text)


# --- from an object
# ---------------------------------------------------------------------------


def as_spec(name: str, model: Any) -> ModelSpec:
    """Make the spec of a model that was handed over as an object.

    Parameters
    ----------
    name : str
        Name and title of the model, unless it is a spec.
    model : ModelSpec, estimator or callable
        A callable takes a seed or nothing, and returns an estimator or a spec.

    Raises
    ------
    ModelError
        It is none of these.
    """
    if isinstance(model, ModelSpec):
        return model
    is_estimator = hasattr(model, "fit") and not isinstance(model, type)
    if is_estimator:
        return ModelSpec(name, name, partial(_seeded_clone, model))
    if not callable(model):
        raise ModelError(
            f"{name} is a {type(model).__name__}: expected a ModelSpec, an estimator or a factory"
        )

    # The factory is called once with any seed, to see whether it makes a spec or an estimator.
    made = _call_factory(name, model, seed=0)
    if isinstance(made, ModelSpec):
        return made
    if not hasattr(made, "fit"):
        raise ModelError(f"{name} gives a {type(made).__name__}, which has no fit: expected an estimator")
    return ModelSpec(name, name, partial(_call_factory, name, model))


def _seeded_clone(estimator: Any, seed: int) -> Any:
    """Clone an estimator, unfitted, and set its seeds."""
    from sklearn.base import clone  # noqa: PLC0415  slow to import, and not needed for the zoo's own models

    return _set_seeds(clone(estimator), seed)


def _call_factory(name: str, factory: Callable[..., Any], seed: int) -> Any:
    """Make a model by calling its factory, with the seed if the factory takes one.

    Otherwise the seeds of the estimator that it returns are set. A factory may also return a class of
    estimators, of which one is made. `name` is the model's, for messages.
    """
    positional, by_name = _arguments_of_factory(factory, seed)
    takes_seed = bool(positional or by_name)
    try:
        result = factory(*positional, **by_name)
        if takes_seed:
            return result
        estimator = result() if isinstance(result, type) else result
        return _set_seeds(estimator, seed)
    except Exception as error:
        raise ModelError(f"{name} can't be made: {type(error).__name__}: {error}") from error


def _arguments_of_factory(factory: Callable[..., Any], seed: int) -> tuple[tuple[int, ...], dict[str, int]]:
    """Return the positional and the named arguments that pass the seed to a factory.

    - The first parameter that is named like a seed, and can be passed by name, gets the seed.
    - Otherwise the first parameter of a function gets it, if the function has a required one. A required
      parameter of a class is a setting, not a seed.
    - Any other factory takes no arguments.
    """
    try:
        parameters = list(inspect.signature(factory).parameters.values())
    except (TypeError, ValueError):
        # Some built-in functions have no signature.
        parameters = []

    for parameter in parameters:
        if parameter.name in SEED_NAMES and parameter.kind != inspect.Parameter.POSITIONAL_ONLY:
            return (), {parameter.name: seed}

    is_class = isinstance(factory, type)
    if not is_class and _has_required_argument(parameters):
        return (seed,), {}
    return (), {}


def _has_required_argument(parameters: list[inspect.Parameter]) -> bool:
    """Tell whether any positional parameter has no default."""
    positional = [parameter for parameter in parameters if parameter.kind in POSITIONAL]
    return any(parameter.default is inspect.Parameter.empty for parameter in positional)


def _set_seeds(estimator: Any, seed: int) -> Any:
    """Set the ``random_state`` of an estimator and of those nested in it to the seed.

    Classes and objects without ``get_params`` are returned as they are.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> _set_seeds(LogisticRegression(), 7).random_state
    7
    >>> _set_seeds(LogisticRegression, 7) is LogisticRegression
    True
    """
    if isinstance(estimator, type) or not hasattr(estimator, "get_params"):
        return estimator
    seeds = {}
    for name in estimator.get_params():
        # A nested estimator's parameter is named like "step__random_state".
        if name.rsplit("__", maxsplit=1)[-1] == "random_state":
            seeds[name] = seed
    if seeds:
        estimator.set_params(**seeds)
    return estimator


# --- from a name
# ---------------------------------------------------------------------------


def _import_model(text: str) -> ModelSpec:
    """Import a model that is given as ``[NAME=]MODULE:FACTORY``; MODULE may be the path of a Python file."""
    if "=" not in text:
        return as_spec(text, _import_member(text, text))
    name, location = text.rsplit("=", maxsplit=1)
    _check_new_name(name, text)
    spec = as_spec(name, _import_member(location, text))
    # A factory may return a spec, which has a name of its own.
    return replace(spec, name=name)


def _import_member(location: str, text: str) -> Any:
    """Import what ``MODULE:FACTORY`` names; `text` is the whole option, for messages.

    Modules and files of the current folder can be named too.
    """
    module_or_path, _, member_path = location.partition(":")
    # The file my/forest.py is the module my.forest.
    path = PurePath(module_or_path.removesuffix(".py"))
    module_name = ".".join(path.parts)

    _make_current_folder_importable()
    try:
        member: Any = importlib.import_module(module_name)
    except Exception as error:
        raise ModelError(f"--model {text}: module {module_name} can't be imported: {error}") from error

    # The factory may be nested, as in module:Class.method.
    for part in member_path.split("."):
        if not hasattr(member, part):
            raise ModelError(f"--model {text}: module {module_name} has no {member_path}")
        member = getattr(member, part)
    return member


def _make_current_folder_importable() -> None:
    """Add the current folder to `sys.path`, so that models in it can be imported by their modules' names.

    It stays there, as these modules may import others later.
    """
    current_folder = str(Path.cwd())
    if current_folder not in sys.path:
        # At the end, so that files of the folder do not hide installed packages.
        sys.path.append(current_folder)


def _check_new_name(name: str, text: str) -> None:
    """Raise if a new model's name is taken by the zoo or not a valid name; `text` is the whole option."""
    problem = ""
    if name in _builtin_names():
        problem = "is a model of the zoo"
    elif not fits(name, Name):
        problem = f"expected {expected(Name)}"
    if problem:
        raise ModelError(f"--model {text}: {name!r}: {problem}; give NAME=MODULE:FACTORY a name of its own")


def _load_entry_point(name: str) -> ModelSpec:
    """Load a model that an installed package offers."""
    entry_points = {point.name: point for point in points(MODELS)}  # of all installed packages
    if name in entry_points:
        entry_point = entry_points[name]
        try:
            model = entry_point.load()
        except Exception as error:
            raise ModelError(f"model {name} of {entry_point.value} can't be imported: {error}") from error
        return as_spec(name, model)

    if "," in name:
        # A list of models, as other options take it.
        raise ModelError(f"unknown model {name!r}: give each model a --model of its own")
    hint = suggestion(name, [*_builtin_names(), *entry_points])
    raise ModelError(f"unknown model {name!r}{hint}; or give [NAME=]MODULE:FACTORY")


def _builtin_names() -> list[str]:
    """List the names of the zoo's own models, without importing their modules."""
    return [name for names in HOMES.values() for name in names]
