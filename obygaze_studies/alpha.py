"""Compute Cronbach's alpha, the agreement of raters of the same items with their sum (Cronbach 1951)."""

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from obygaze_studies.audit_common.findings import Finding, Wording, audited, bar_chart
from obygaze_studies.audit_common.inputs import Row, read_numbers_of_items


def cronbach_alpha(ratings: NDArray[np.float64]) -> dict[str, Any]:
    """Compute Cronbach's alpha: how far n raters of the same items agree (Cronbach, Psychometrika 1951).

        alpha = n / (n - 1) * (1 - sum of the raters' variances / variance of the items' sums)

    For ratings 0 and 1 it equals Kuder and Richardson's formula 20.

    Parameters
    ----------
    ratings : float64 [n_items, n_raters]
        NaN where a rating is missing: the item is left out, and counted.

    Returns
    -------
    dict
        `n_items` that all of the raters rated; `n_incomplete`, left out because a rating is missing; `alpha`,
        or None with the `reason` why there is none, which is empty otherwise.
    """
    complete = ratings[~np.isnan(ratings).any(axis=1)]
    n_items, n_raters = complete.shape
    sums_of_items = complete.sum(axis=1)  # over the raters

    alpha = None
    reason = ""
    if n_raters < 2:
        reason = "fewer than two raters"
    elif n_items < 2:
        reason = "fewer than two items that all raters rated"
    # Not variance == 0: the mean of equal numbers such as .1 may differ from them in the last bit.
    elif np.ptp(sums_of_items) <= 1e-12 * float(np.abs(complete).max()):
        reason = "the sums of the ratings do not vary"
    else:
        sum_of_variances = complete.var(axis=0, ddof=1).sum()  # each rater's variance over the items
        variance_of_sums = sums_of_items.var(ddof=1)
        alpha = float(n_raters / (n_raters - 1) * (1 - sum_of_variances / variance_of_sums))

    n_incomplete = len(ratings) - n_items
    return {"n_items": n_items, "n_incomplete": n_incomplete, "alpha": alpha, "reason": reason}


def read_ratings(path: Path) -> Sequence[Row]:
    """Read a table of ratings: item_id, then one column per rater; an empty cell is a missing rating."""
    return read_numbers_of_items(path, "item_id")


@audited(
    Wording(  # texts of the report; what stands in braces is filled from the finding
        name="alpha",
        title="Agreement of raters",
        table="Agreement",
        columns=(
            "raters",
            "n_items",
            "n_incomplete",
            "alpha",
            "reason",
        ),
        sentence=("Cronbach's alpha of {n_raters:rater}: {alpha}, on {n_items:item} that all of them rated"),
        source="Cronbach, Psychometrika 1951; items with a missing rating left out",
        figure="Cronbach's alpha; n: items that all of these rated",
    )
)
def audit_alpha(ratings: Sequence[Row], *, pairs: bool = False) -> Finding:
    """Compute alpha of all raters together and, on request, of every pair of raters.

    The finding has a row for each of these sets of raters, with the columns raters (their names joined by
    "+"), n_raters, and those that `cronbach_alpha` returns.

    Parameters
    ----------
    ratings
        One row per item: `item_id`, and the rating by each rater, NaN where it is missing.
    pairs
        Whether every pair of raters gets a row as well.
    """
    raters = [name for name in ratings[0] if name != "item_id"]
    ratings_of = {}
    for rater in raters:
        ratings_of[rater] = np.array([row[rater] for row in ratings], dtype=np.float64)

    rater_sets = [tuple(raters)]
    if pairs:
        # With two raters in all, their pair is the set of all raters, which is there already.
        rater_sets += [pair for pair in combinations(raters, 2) if pair not in rater_sets]

    rows = []
    for rater_set in rater_sets:
        ratings_of_set = np.column_stack([ratings_of[rater] for rater in rater_set])
        raters_columns = {"raters": "+".join(rater_set), "n_raters": len(rater_set)}
        rows.append(raters_columns | cronbach_alpha(ratings_of_set))

    labels = [f"{row['raters']} (n = {row['n_items']:,})" for row in rows]
    series = {"alpha": [row["alpha"] for row in rows]}
    return Finding(rows=rows, draw=bar_chart(labels=labels, series=series, axis="Cronbach's alpha"))
