"""List the zoo's own models, in the order of every table, and find others by name."""

import importlib
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePath
from typing import Any

from obygaze_features.arguments import checked
from obygaze_features.manifest.spans.names import suggestion
from obygaze_features.plugins import MODELS, points
from obygaze_features.schema import Name, expected, fits
from obygaze_models.errors import ModelError
from obygaze_models.models.binary import Imbalance
from obygaze_models.models.names import BASELINES, HOMES
from obygaze_models.models.spec import ModelSpec
from obygaze_models.protocol.targets import Kind

SEEDS = ("seed", "random_state")
"""Names of a factory's parameter for the seed. A function's first one without a default is the seed too."""

POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class BuiltinModels(Mapping[str, ModelSpec]):
    """The zoo's models by name; a model's module is imported when the model is asked for."""

    def __init__(self, homes: Mapping[str, tuple[str, ...]]) -> None:
        self._home_of = {name: home for home, names in homes.items() for name in names}

    def __getitem__(self, name: str) -> ModelSpec:
        module = importlib.import_module(self._home_of[name])
        spec: ModelSpec = next(spec for spec in module.SPECS if spec.name == name)
        return spec

    def __contains__(self, name: object) -> bool:
        return name in self._home_of

    def __iter__(self) -> Iterator[str]:
        return iter(self._home_of)

    def __len__(self) -> int:
        return len(self._home_of)


BUILTIN_MODELS: Mapping[str, ModelSpec] = BuiltinModels(HOMES)


def models_for(
    kind: Kind, wanted: Iterable[str | ModelSpec] | Mapping[str, Any] | None, *, imbalance: Imbalance = "none"
) -> list[ModelSpec]:
    """List the requested models, the ones that stand beside them, and their baselines.

    Parameters
    ----------
    kind : {"levels", "concept", "ordinal"}
    wanted : iterable of str or ModelSpec, mapping of str to estimator, or None
        Names (`find_model`) and specs, or estimators, factories and specs by name; None for the zoo's own.
    imbalance : {"none", "weights", "subsample"}
        How the zoo's own perceptron handles class imbalance.

    Raises
    ------
    ModelError
        A model that can't be found, an estimator without a name, or two of one name.
    """
    if isinstance(wanted, Mapping):
        specs = [replace(as_spec(name, given), name=name) for name, given in wanted.items()]
    else:
        listed: list[Any] = [wanted] if hasattr(wanted, "fit") else list(wanted or ())
        if wanted is None:
            listed = [
                each for each in BUILTIN_MODELS.values() if kind in each.kinds and each.looks_at_features
            ]
        specs = []
        for item in dict.fromkeys(listed):
            if not isinstance(item, str | ModelSpec):
                given = type(item).__name__
                raise ModelError(f"a {given} has no name here: give models={{'my_model': {given}(...)}}")
            specs.append(item if isinstance(item, ModelSpec) else find_model(item))
    if imbalance != "none":
        from obygaze_models.models.mlp import SPECS, make_mlp  # noqa: PLC0415 - for this model alone

        changed = replace(SPECS[0], make=partial(make_mlp, imbalance=imbalance))
        specs = [changed if spec is SPECS[0] else spec for spec in specs]
    named = {spec.name for spec in specs}
    for name in dict.fromkeys(name for spec in specs for name in spec.beside):
        if name not in named:
            specs.append(BUILTIN_MODELS[name])
            named.add(name)
    for spec in specs:
        if sum(spec.name == other.name for other in specs) > 1:
            raise ModelError(f"two models are called {spec.name!r}: give each a name of its own")
    baselines = (BUILTIN_MODELS[name] for name in HOMES[BASELINES] if name not in named)
    return [*specs, *(spec for spec in baselines if kind in spec.kinds)]


# --- others
# ---------------------------------------------------------------------------
@checked
def find_model(name: str) -> ModelSpec:
    """Find a model by its name among the zoo's own and entry points, or as ``[name=]module:factory``.

    Raises
    ------
    ModelError
        No such model, a module that can't be imported, one that gives no estimator, or a name that is none.
    """
    if name in BUILTIN_MODELS:
        return BUILTIN_MODELS[name]
    return _from_module(name) if ":" in name else _from_entry_point(name)


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
    made = _call(name, given, 0)
    if isinstance(made, ModelSpec):
        return made
    if not hasattr(made, "fit"):
        raise ModelError(f"{name} gives a {type(made).__name__}, which has no fit: expected an estimator")
    return ModelSpec(name, name, partial(_call, name, given))


def _seeded_clone(given: Any, seed: int) -> Any:
    """Copy an estimator, unfitted, with a seed."""
    from sklearn.base import clone  # noqa: PLC0415  only for estimators handed over as they are

    return _seeded(clone(given), seed)


def _call(name: str, factory: Callable[..., Any], seed: int) -> Any:
    """Call a factory with a seed if it takes one."""
    try:
        taken = list(inspect.signature(factory).parameters.values())
    except (TypeError, ValueError):
        taken = []
    named = [each.name for each in taken if each.name in SEEDS and each.kind != each.POSITIONAL_ONLY]
    needs = any(each.kind in POSITIONAL and each.default is each.empty for each in taken)
    try:
        if named:
            return factory(**{named[0]: seed})
        if needs and not isinstance(factory, type):
            return factory(seed)
        made = factory()
        return _seeded(made() if isinstance(made, type) else made, seed)
    except Exception as error:
        raise ModelError(f"{name} can't be made: {type(error).__name__}: {error}") from error


def _seeded(made: Any, seed: int) -> Any:
    """Seed every part of an estimator that takes a ``random_state``: a run's seed decides all draws."""
    params = made.get_params() if hasattr(made, "get_params") and not isinstance(made, type) else {}
    seeds = {name: seed for name in params if name.rsplit("__", maxsplit=1)[-1] == "random_state"}
    return made.set_params(**seeds) if seeds else made


def _from_module(asked: str) -> ModelSpec:
    name, has_name, place = asked.rpartition("=")
    if has_name and (not fits(name, Name) or name in BUILTIN_MODELS):
        taken = "is a model of the zoo" if name in BUILTIN_MODELS else f"expected {expected(Name)}"
        raise ModelError(f"--model {asked}: {name!r}: {taken}; give NAME=MODULE:FACTORY a name of its own")
    module, _, factory = place.partition(":")
    module = ".".join(PurePath(module.removesuffix(".py")).parts)  # my/forest.py is my.forest
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.append(here)  # last, so that no file of the folder stands in for an installed package
    try:
        member: Any = importlib.import_module(module)
    except Exception as error:
        raise ModelError(f"--model {asked}: module {module} can't be imported: {error}") from error
    for part in factory.split("."):
        if not hasattr(member, part):
            raise ModelError(f"--model {asked}: module {module} has no {factory}")
        member = getattr(member, part)
    return replace(as_spec(name, member), name=name) if has_name else as_spec(place, member)


def _from_entry_point(name: str) -> ModelSpec:
    offered = {point.name: point for point in points(MODELS)}
    if name in offered:
        try:
            offer = offered[name].load()
        except Exception as error:
            raise ModelError(f"model {name} of {offered[name].value} can't be imported: {error}") from error
        return as_spec(name, offer)
    if "," in name:
        raise ModelError(f"unknown model {name!r}: give each model a --model of its own")
    known = suggestion(name, [*BUILTIN_MODELS, *offered])
    raise ModelError(f"unknown model {name!r}{known}; or give [NAME=]MODULE:FACTORY")
