"""List the printed numbers of the audited papers: Wolfe et al. 2023, Tables 1 and 2; Sabir and Padró 2023."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from obygaze_studies.eat.eat_tests import SELECTIONS

_EFFECTS = {
    "CLIP ViT-B32": "1.09* 1.12* 0.95* 1.42* 0.22 0.19 0.60* 0.37 1.03*",
    "CLIP ViT-B16": "1.26* 1.09* 0.51* 0.69* 0.68* 0.44 0.11 0.79* 0.76*",
    "CLIP ViT-L14": "0.26 0.20 0.33 0.20 -1.08* -0.43 -0.07 1.11* 0.68*",
    "CLIP RN101": "1.11* 0.78* 0.96* 0.68* -0.29 -0.14 0.65* 0.99* 1.20*",
    "CLIP RN50": "0.70* 0.49 0.44 0.52* -0.24 -0.19 0.49 0.18 1.20*",
    "CLIP RN50x4": "0.29 0.14 -0.06 -0.13 0.05 -0.04 0.48 0.88* 1.13*",
    "CLIP RN50x16": "1.26* 0.84* 0.39 0.29 0.23 0.06 0.14 1.02* 0.80*",
    "CLIP RN50x64": "1.06* 0.82* 0.63* 0.29 -0.13 0.32 -0.06 0.66* 0.32",
    "OpenCLIP ViT-B32": "1.37* 1.24* 1.61* 1.50* 1.26* 0.82* 0.62* 0.86* 0.89*",
}


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
        for model, cells in _EFFECTS.items()
    }


EFFECTS: Mapping[str, Mapping[str, PrintedEffect]] = _effects()
"""Model -> test -> what is printed."""

_COUNTS = """
Transformer 792 408 616 217
AoANet 770 368 527 213
Vilbert 702 311 526 161
OSCAR 845 409 630 237
BLIP 775 385 554 240
TraCLIPS-Reward 769 381 537 251
BLIP-2 695 356 498 239
"""

_OBJECTS = """
Transformer .96 .50 .83 .75 .05 .50 .16 .25
AoANet .97 .51 .85 .81 .02 .48 .14 .18
Vilbert .96 .47 .84 .66 .03 .52 .15 .33
OSCAR .97 .58 .82 .90 .02 .41 .18 .09
BLIP .96 .52 .88 .97 .03 .47 .11 .02
TraCLIPS-Reward .89 .48 .93 .50 .10 .51 .06 .50
BLIP-2 .94 .57 .88 .90 .05 .42 .11 .10
"""

_SCORED_OBJECTS = """
Transformer .96 .51 .83 .61 .03 .48 .16 .38
AoANet .97 .46 .84 .82 .02 .53 .15 .17
Vilbert .96 .53 .84 .65 .03 .46 .15 .34
OSCAR .98 .42 .78 .83 .01 .57 .21 .16
BLIP .96 .50 .86 .98 .03 .49 .13 .01
TraCLIPS-Reward .88 .43 .92 .50 .11 .56 .07 .49
BLIP-2 .93 .56 .82 .89 .06 .43 .17 .10
"""

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


def _totals() -> dict[str, Totals]:
    ratios, scored = (
        {line.split()[0]: [float(cell) for cell in line.split()[1:]] for line in _lines(printed)}
        for printed in (_OBJECTS, _SCORED_OBJECTS)
    )
    totals = {}
    for line in _lines(_COUNTS):
        model, *cells = line.split()
        counts = [int(cell) for cell in cells]
        totals[model] = Totals(
            {"man": counts[0], "woman": counts[1]},
            {"man": counts[2], "woman": counts[3]},
            dict(zip(OBJECTS, ratios[model][:4], strict=True)),
            dict(zip(OBJECTS, ratios[model][4:], strict=True)),
            dict(zip(OBJECTS, scored[model][:4], strict=True)),
            dict(zip(OBJECTS, scored[model][4:], strict=True)),
        )
    return totals


def _lines(table: str) -> list[str]:
    return table.strip().splitlines()


TOTALS: Mapping[str, Totals] = MappingProxyType(_totals())
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


EXAMPLES: tuple[Example, ...] = (
    Example("tennis ball", "a <MASK> hitting a tennis ball on a tennis court", (0.44, 0.46, 0.45, 0.45)),
    Example("umbrella", "a <MASK> holding an umbrella in the rain", (0.20, 0.20, 0.12, 0.13)),
    Example("laptop", "a <MASK> sitting on a couch with two laptops", (0.43, 0.42, 0.25, 0.25)),
    Example("paddle", "a <MASK> riding a wave on top of a surfboard", (0.16, 0.11, 0.33, 0.30)),
)
