"""List the printed numbers of Sabir and Padró, 2023."""

from collections.abc import Mapping, Sequence

from obygaze_features.templates import packaged

_PRINTED = packaged(__package__, "published_values.toml")

TOTALS: Mapping[str, Mapping[str, Mapping[str, float]]] = _PRINTED["totals"]
"""Captioner -> what is printed of it: by gender the counts `cooc` and `gender_score`, of which the paper does
not define the second; by object `object_to_man`, `object_to_woman`, its ratios of co-occurrence, cut to two
decimals, and `score_to_man`, `score_to_woman`, its ratios of Gender Scores, likewise."""

EXAMPLE_VALUES = ("distance_man", "distance_woman", "gs_man", "gs_woman")
"""Columns of an example's values."""

EXAMPLES: Sequence[Mapping[str, str | float]] = _PRINTED["examples"]
"""Examples of the poster: what is seen, the caption, and distance and Gender Score of both genders."""
