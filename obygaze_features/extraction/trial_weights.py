"""Networks with random weights in place of weights that are not here, to estimate what they would cost."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.util import find_spec

from obygaze_features.backbones.weights import HUB, how_to_get, is_cached
from obygaze_features.extraction.job import Recipe

RANDOM_WEIGHTS = "random:0"
"""Name of random weights with the seed 0."""


def with_untrained_networks(recipes: Sequence[Recipe], note: Callable[[str], object]) -> tuple[Recipe, ...]:
    """Replace default weights that are not on this machine by random weights of the same network.

    A network costs the same whatever its weights are, so the cost of a run can be estimated before the
    weights are downloaded.

    Parameters
    ----------
    recipes
        Recipes of backbones; those whose weights were named are returned as they are.
    note
        Called with a sentence for each replaced one.

    Returns
    -------
    tuple of Recipe
        In the same order.
    """
    return tuple(_with_weights(recipe, note) for recipe in recipes)


def _with_weights(recipe: Recipe, note: Callable[[str], object]) -> Recipe:
    """Return a recipe with random weights if its default ones are not in the cache, else the recipe.

    Parameters
    ----------
    recipe
        Arguments to build a backbone.
    note
        Called with a sentence if the weights are replaced.
    """
    default_weights = HUB.get(recipe.name)
    if default_weights is None or "weights" in recipe.options:
        return recipe
    if find_spec("huggingface_hub") is None:  # building the backbone then names the missing extra
        return recipe
    if is_cached(default_weights):
        return recipe

    note(
        f"the weights of {recipe.name} are not here: estimated with random ones of the same network. "
        f"{how_to_get(default_weights)}"
    )
    return replace(recipe, options={**recipe.options, "weights": RANDOM_WEIGHTS})
