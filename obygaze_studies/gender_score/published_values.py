"""List the printed numbers of Sabir and Padró, 2023."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from obygaze_studies.packaged import packaged

_PRINTED = packaged(__package__, "published_values.toml")


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


TOTALS: Mapping[str, Totals] = msgspec.convert(_PRINTED["totals"], dict[str, Totals])
"""Captioner -> what is printed of it."""

EXAMPLE_VALUES = ("distance_man", "distance_woman", "gs_man", "gs_woman")
"""Columns of an example's values."""


EXAMPLES: Sequence[Mapping[str, str | float]] = _PRINTED["examples"]
"""Examples of the poster: what is seen, the caption, and distance and Gender Score of both genders."""
