"""The counts and ratios printed on the Gender Score poster (Sabir & Padró, 2023)."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

_PRINTED = """
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

OBJECTS = ("skateboard", "kitchen", "motorcycle", "baseball")


@dataclass(frozen=True)
class Totals:
    """What is printed of one captioner.

    Attributes
    ----------
    cooc, gender_score
        Gender -> its count; what the second counts is not said.
    object_to_man, object_to_woman
        Object -> its co-occurrence ratio, cut to two decimals.
    """

    cooc: Mapping[str, int]
    gender_score: Mapping[str, int]
    object_to_man: Mapping[str, float]
    object_to_woman: Mapping[str, float]


def _totals() -> dict[str, Totals]:
    ratios = {line.split()[0]: [float(cell) for cell in line.split()[1:]] for line in _lines(_OBJECTS)}
    found = {}
    for line in _lines(_PRINTED):
        model, *cells = line.split()
        counts = [int(cell) for cell in cells]
        found[model] = Totals(
            {"man": counts[0], "woman": counts[1]},
            {"man": counts[2], "woman": counts[3]},
            dict(zip(OBJECTS, ratios[model][:4], strict=True)),
            dict(zip(OBJECTS, ratios[model][4:], strict=True)),
        )
    return found


def _lines(table: str) -> list[str]:
    return table.strip().splitlines()


TOTALS: Mapping[str, Totals] = MappingProxyType(_totals())
"""Captioner -> what is printed of it."""


def cut(part: int, other: int) -> float:
    """Give the part of both as the poster prints it: cut to two decimals, not rounded."""
    return 100 * part // (part + other) / 100
