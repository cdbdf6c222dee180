"""List the zoo's own models, in the order of every table."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import Any

from obygaze_models.errors import ModelError
from obygaze_models.models.labels import Imbalance
from obygaze_models.models.mlp import make_mlp
from obygaze_models.models.spec import Kind, ModelSpec, as_spec, find_models

HOMES = (
    "models.linear",
    "models.mlp",
    "models.attention",
    "concepts.bottleneck",
    "concepts.cav",
    "models.baselines",
    "models.ordinal",
)
"""Modules whose `SPECS` are the zoo's models, in the order of every table; a new model is one line here."""

BUILTIN_MODELS: Mapping[str, ModelSpec] = {
    spec.name: spec for home in HOMES for spec in import_module(f"obygaze_models.{home}").SPECS
}


def default_models(kind: Kind) -> list[ModelSpec]:
    """List the zoo's models for a kind of target."""
    return [spec for spec in BUILTIN_MODELS.values() if kind in spec.kinds]


def models_for(
    kind: Kind,
    asked: Iterable[str | ModelSpec] | Mapping[str, Any] | None,
    *,
    imbalance: Imbalance = "none",
) -> list[ModelSpec]:
    """List the requested models, the ones that stand beside them, and their baselines.

    Parameters
    ----------
    kind : {"levels", "concept", "ordinal"}
    asked : iterable of str or ModelSpec, mapping of str to estimator, or None
        Names (`find_models`) and specs, or estimators, factories and specs by name; None for the zoo's own.
    imbalance : {"none", "weights", "subsample"}
        How the zoo's own perceptron handles class imbalance.

    Raises
    ------
    ModelError
        A model that can't be found, an estimator without a name, or two of one name.
    """
    own = default_models(kind)
    changed = {} if imbalance == "none" else {"mlp": partial(make_mlp, imbalance=imbalance)}
    if isinstance(asked, Mapping):
        specs = [replace(as_spec(name, given), name=name) for name, given in asked.items()]
    elif asked is None:
        specs = find_models([spec.name for spec in own if spec.looks_at_features], BUILTIN_MODELS, **changed)
    else:
        listed: list[Any] = [asked] if hasattr(asked, "fit") else list(asked)
        for one in listed:
            if not isinstance(one, str | ModelSpec):
                given = type(one).__name__
                raise ModelError(f"a {given} has no name here: give models={{'my_model': {given}(...)}}")
        specs = [
            one if isinstance(one, ModelSpec) else find_models([one], BUILTIN_MODELS, **changed)[0]
            for one in dict.fromkeys(listed)
        ]
    named = {spec.name for spec in specs}
    for name in dict.fromkeys(name for spec in specs for name in spec.beside):
        if name not in named:
            specs.append(BUILTIN_MODELS[name])
            named.add(name)
    for spec in specs:
        if sum(spec.name == other.name for other in specs) > 1:
            raise ModelError(f"two models are called {spec.name!r}: give each a name of its own")
    return [*specs, *(spec for spec in own if not spec.looks_at_features and spec.name not in named)]
