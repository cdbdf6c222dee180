"""The zoo's own models, in the order of every table."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from obygaze_models.concepts import bottleneck, cav
from obygaze_models.models import baselines, linear, mlp, ordinal
from obygaze_models.models.spec import Kind, ModelSpec, as_spec, find_models

BUILTIN: Mapping[str, ModelSpec] = {
    spec.name: spec
    for spec in (
        *linear.SPECS,
        *mlp.SPECS,
        *bottleneck.SPECS,
        *cav.SPECS,
        *baselines.SPECS,
        *ordinal.SPECS,
    )
}


def default_models(kind: Kind) -> list[ModelSpec]:
    """List the zoo's models for a kind of target."""
    return [spec for spec in BUILTIN.values() if kind in spec.kinds]


def models_for(
    kind: Kind, asked: Iterable[str] | Mapping[str, Any] | None, **changed: Callable[[int], Any]
) -> list[ModelSpec]:
    """List the models that were asked for, and the baselines that they must beat.

    Parameters
    ----------
    kind : {"levels", "concept", "ordinal"}
    asked : iterable of str, mapping of str to estimator, or None
        Names (`find_models`), or estimators, factories and specs by name; None for the zoo's own.
    **changed : callable
        Another ``make`` for a built-in model.

    Raises
    ------
    ModelError
        A model that can't be found.
    """
    own = default_models(kind)
    if isinstance(asked, Mapping):
        specs = [as_spec(name, given) for name, given in asked.items()]
    elif asked is None:
        specs = find_models([spec.name for spec in own if spec.looks_at_features], BUILTIN, **changed)
    else:
        specs = find_models(dict.fromkeys(asked), BUILTIN, **changed)
    named = {spec.name for spec in specs}
    return [*specs, *(spec for spec in own if not spec.looks_at_features and spec.name not in named)]
