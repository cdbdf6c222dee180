"""List the zoo's own models, in the order of every table, and those that an evaluation asks for."""

import importlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from obygaze_features.arguments import checked
from obygaze_models.errors import ModelError
from obygaze_models.models.binary import Imbalance
from obygaze_models.models.names import BASELINES, HOMES
from obygaze_models.models.other_models import as_spec, find_other_model
from obygaze_models.models.spec import ModelSpec
from obygaze_models.protocol.targets import Kind


class BuiltinModels(Mapping[str, ModelSpec]):
    """The zoo's models by name; a model's module is imported when the model is asked for."""

    def __init__(self, homes: Mapping[str, tuple[str, ...]]) -> None:
        """Note the module of each model; `homes` are the names of the models in each module."""
        self._module_of = {name: module for module, names in homes.items() for name in names}

    def __getitem__(self, name: str) -> ModelSpec:
        """Import the module of a model, and return the model's spec."""
        module = importlib.import_module(self._module_of[name])
        specs: dict[str, ModelSpec] = {spec.name: spec for spec in module.SPECS}
        return specs[name]

    def __contains__(self, name: object) -> bool:
        return name in self._module_of

    def __iter__(self) -> Iterator[str]:
        return iter(self._module_of)

    def __len__(self) -> int:
        return len(self._module_of)


BUILTIN_MODELS: Mapping[str, ModelSpec] = BuiltinModels(HOMES)


@checked
def find_model(name: str) -> ModelSpec:
    """Find a model by its name among the zoo's own and entry points, or as ``[name=]module:factory``.

    Raises
    ------
    ModelError
        There is no such model; its module can't be imported, or gives no estimator; or the new name is not
        valid.
    """
    if name in BUILTIN_MODELS:
        return BUILTIN_MODELS[name]
    return find_other_model(name)


def models_for(
    kind: Kind, wanted: Iterable[str | ModelSpec] | Mapping[str, Any] | None, *, imbalance: Imbalance = "none"
) -> list[ModelSpec]:
    """List the models of an evaluation: the requested ones, those they are compared with, and the baselines.

    Parameters
    ----------
    kind : {"levels", "concept", "ordinal"}
        The kind of target.
    wanted : iterable of str or ModelSpec, mapping of str to estimator, or None
        Names (`find_model`) and specs, or estimators, factories and specs by name; None for the zoo's own.
    imbalance : {"none", "weights", "subsample"}
        How the zoo's own perceptron handles class imbalance.

    Raises
    ------
    ModelError
        A model can't be found, an estimator has no name, or two models have the same name.
    """
    specs = _requested_specs(kind, wanted)
    if imbalance != "none":
        specs = _with_imbalance(specs, imbalance)
    specs = _with_companions(specs)

    names = [spec.name for spec in specs]
    for name in names:
        if names.count(name) > 1:
            raise ModelError(f"two models are called {name!r}: give each a name of its own")

    # Baselines come last, those that are for this kind of target.
    for name in HOMES[BASELINES]:
        baseline = BUILTIN_MODELS[name]
        if name not in names and kind in baseline.kinds:
            specs.append(baseline)
    return specs


def _requested_specs(
    kind: Kind, wanted: Iterable[str | ModelSpec] | Mapping[str, Any] | None
) -> list[ModelSpec]:
    """Find the requested models, each once; by default those of the zoo that read features.

    Parameters
    ----------
    kind : {"levels", "concept", "ordinal"}
        The kind of target, for which models of the zoo must be made.
    wanted : iterable of str or ModelSpec, mapping of str to estimator, or None
        Names and specs, or estimators, factories and specs by name; None for the zoo's own.
    """
    if isinstance(wanted, Mapping):
        return [replace(as_spec(name, model), name=name) for name, model in wanted.items()]
    if wanted is None:
        return [spec for spec in BUILTIN_MODELS.values() if kind in spec.kinds and spec.looks_at_features]

    # Some estimators are iterable, such as pipelines; they count as one model.
    items: list[Any] = [wanted] if hasattr(wanted, "fit") else list(wanted)
    specs = []
    items_without_repeats = dict.fromkeys(items)
    for item in items_without_repeats:
        if isinstance(item, ModelSpec):
            specs.append(item)
        elif isinstance(item, str):
            specs.append(find_model(item))
        else:
            kind_of_item = type(item).__name__
            hint = f"give models={{'my_model': {kind_of_item}(...)}}"
            raise ModelError(f"a {kind_of_item} has no name here: {hint}")
    return specs


def _with_imbalance(specs: list[ModelSpec], imbalance: Imbalance) -> list[ModelSpec]:
    """Replace the zoo's perceptron, if it is among the models, with one that handles class imbalance.

    Other models are left as they are.
    """
    from obygaze_models.models.mlp import SPECS, make_mlp  # noqa: PLC0415 - for this model alone

    (perceptron,) = SPECS
    changed = replace(perceptron, make=partial(make_mlp, imbalance=imbalance))
    return [changed if spec is perceptron else spec for spec in specs]


def _with_companions(specs: list[ModelSpec]) -> list[ModelSpec]:
    """Add the models that the given ones are compared with, as their field ``compared_with`` names them."""
    completed = list(specs)
    names = {spec.name for spec in specs}
    for spec in specs:
        for name in spec.compared_with:
            if name not in names:
                completed.append(BUILTIN_MODELS[name])
                names.add(name)
    return completed
