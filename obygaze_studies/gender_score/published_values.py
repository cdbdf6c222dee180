"""List the printed numbers of Sabir and Padró, 2023."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files

_PRINTED = tomllib.loads(files(__package__).joinpath("published_values.toml").read_text(encoding="utf-8"))


OBJECTS = ("skateboard", "kitchen", "motorcycle", "baseball")


@dataclass(frozen=True)
class Totals:
    """Printed values of one captioner.

    Attributes
    ----------
    cooc, gender_score
        Gender -> its count; the paper does not define the second.
    object_to_man, object_to_woman
        Object -> its co-occurrence ratio, cut to two decimals.
    score_to_man, score_to_woman
        Object -> its ratio of Gender Scores, likewise.
    """

    cooc: Mapping[str, int]
    gender_score: Mapping[str, int]
    object_to_man: Mapping[str, float]
    object_to_woman: Mapping[str, float]
    score_to_man: Mapping[str, float]
    score_to_woman: Mapping[str, float]


def _totals(model: str) -> Totals:
    counts, ratios, scores = (_PRINTED[name][model] for name in ("counts", "ratios", "score_ratios"))
    genders = (dict(zip(("man", "woman"), own, strict=True)) for own in (counts[:2], counts[2:]))
    values = (own for of in (ratios, scores) for own in (of[:4], of[4:]))
    return Totals(*genders, *(dict(zip(OBJECTS, own, strict=True)) for own in values))


TOTALS: Mapping[str, Totals] = {model: _totals(model) for model in _PRINTED["counts"]}
"""Captioner -> what is printed of it."""

EXAMPLE_VALUES = ("distance_man", "distance_woman", "gs_man", "gs_woman")
"""Columns of an example's values."""


EXAMPLES: tuple[Mapping[str, str | float], ...] = tuple(
    {"visual": example["visual"], "caption": example["caption"]}
    | dict(zip(EXAMPLE_VALUES, example["values"], strict=True))
    for example in _PRINTED["examples"]
)
"""Examples of the poster: what is seen, the caption, and distance and Gender Score of both genders."""
