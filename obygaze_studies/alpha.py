"""Compute Cronbach's alpha, the agreement of raters of the same items with their sum (Cronbach 1951)."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from obygaze_models.report import Picture, Report, cell
from obygaze_studies.audit_common.audit_tables import audit_report, drawn_by, number, read_rows, table
from obygaze_studies.errors import AuditError


@dataclass(frozen=True)
class Alpha:
    """Cronbach's alpha of some raters, or why there is none.

    Attributes
    ----------
    alpha : float or None
    reason : str
        Why there is no alpha; empty if there is one.
    n_items : int
        Items that all of the raters rated.
    n_incomplete : int
        Items left out because a rating is missing.
    """

    alpha: float | None
    reason: str
    n_items: int
    n_incomplete: int


def cronbach_alpha(ratings: NDArray[np.float64]) -> Alpha:
    """Measure Cronbach's alpha; of ratings 0 and 1 it is Kuder and Richardson's formula 20.

    Parameters
    ----------
    ratings : float64 [n_items, n_raters]
        NaN where a rating is missing: the item is left out, and counted.
    """
    complete = ratings[~np.isnan(ratings).any(axis=1)]
    n_items, n_raters = complete.shape
    total, alpha, reason = complete.sum(axis=1), None, ""
    if n_raters < 2:
        reason = "fewer than two raters"
    elif n_items < 2:
        reason = "fewer than two items that all raters rated"
    # Not variance == 0: the mean of equal numbers such as .1 may differ from them in the last bit.
    elif np.ptp(total) <= 1e-12 * max(1.0, float(np.abs(complete).max())):
        reason = "the sums of the ratings do not vary"
    else:
        own = complete.var(axis=0, ddof=1).sum()
        alpha = float(n_raters / (n_raters - 1) * (1 - own / total.var(ddof=1)))
    return Alpha(alpha, reason, n_items, len(ratings) - n_items)


def read_ratings(path: Path) -> tuple[tuple[str, ...], NDArray[np.float64]]:
    """Read ratings: the column item_id, and one column per rater; an empty cell is a missing rating.

    Returns
    -------
    raters
        Names of the columns.
    ratings : float64 [n_items, n_raters]
        NaN where missing.

    Raises
    ------
    AuditError
        Naming the file, the item and the rater: a rating is not a finite number, an item comes twice.
    """
    rows = read_rows(path, ["item_id"], unique=["item_id"])
    raters = tuple(name for name in rows[0] if name != "item_id")
    ratings = np.full((len(rows), len(raters)), np.nan)
    for index, row in enumerate(rows):
        for column, rater in enumerate(raters):
            if row[rater].strip():
                ratings[index, column] = number(path, row, rater, "item_id")
                if not np.isfinite(ratings[index, column]):
                    raise AuditError(
                        f"{path}: the rating of item_id {row['item_id']!r} by {rater} is not finite; "
                        "leave the cell of a missing rating empty"
                    )
    return raters, ratings


def audit_alpha(raters: Sequence[str], ratings: NDArray[np.float64], *, pairs: bool = False) -> Report:
    """Measure alpha of all raters and, if asked, of every two of them."""
    sets = [tuple(range(len(raters)))]
    if pairs:
        sets += [pair for pair in combinations(range(len(raters)), 2) if pair not in sets]
    rows: list[dict[str, Any]] = []
    for chosen in sets:
        measured = asdict(cronbach_alpha(ratings[:, list(chosen)]))
        named = {"raters": "+".join(raters[rater] for rater in chosen), "n_raters": len(chosen)}
        rows.append(named | {name: measured[name] for name in ("n_items", "n_incomplete", "alpha", "reason")})
    record = {"source": "Cronbach, Psychometrika 1951; items with a missing rating left out"}
    alphas = {"alpha": [row["alpha"] for row in rows]}
    labels = [f"{row['raters']} (n = {row['n_items']:,})" for row in rows]
    bars = drawn_by("draw_bars", labels=labels, series=alphas, axis="Cronbach's alpha")
    shown = table("Agreement", rows, ("raters", "n_items", "n_incomplete", "alpha", "reason"))
    picture = Picture("alpha", "Cronbach's alpha; n: items that all of these rated", bars)
    first = rows[0]
    answer = f"Cronbach's alpha of {first['n_raters']} raters: {cell(first['alpha'])}"
    answer += f", on {first['n_items']:,} items that all of them rated"
    return audit_report("alpha", "Agreement of raters", rows, [shown], record, answer=answer, picture=picture)
