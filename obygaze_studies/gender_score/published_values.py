"""List the printed numbers of the audited papers: Wolfe et al. 2023, Tables 1 and 2; Sabir and Padró 2023."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files

from obygaze_studies.eat.eat_tests import SELECTIONS

_PRINTED = tomllib.loads(files(__package__).joinpath("published_values.toml").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class PrintedEffect:
    """A printed effect size, rounded to two decimals, and whether it has a star; 20 + 20 images."""

    d: float
    star: bool


def _effects() -> dict[str, dict[str, PrintedEffect]]:
    names = [test.name for table in ("table1", "table2") for test in SELECTIONS[table]]
    return {
        model: {
            name: PrintedEffect(float(cell.rstrip("*")), cell.endswith("*"))
            for name, cell in zip(names, cells.split(), strict=True)
        }
        for model, cells in _PRINTED["effects"].items()
    }


EFFECTS: Mapping[str, Mapping[str, PrintedEffect]] = _effects()
"""Model -> test -> what is printed."""

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


@dataclass(frozen=True)
class Example:
    """An example of the Gender Score poster: what is seen, the caption, and four values.

    Attributes
    ----------
    visual, caption
    values
        Gender Object Distance of man and woman, Gender Score of man and woman.
    """

    visual: str
    caption: str
    values: tuple[float, float, float, float]


EXAMPLES: tuple[Example, ...] = tuple(Example(**example) for example in _PRINTED["examples"])
