"""Estimate the mean of every cell of crossed attributes, small ones drawn to what attributes add up to.

A cell's mean is normal around its true one, and true means are normal around a sum of the attributes' effects
(Fay and Herriot, JASA 1979). Their spread around the sum is unknown, and is averaged over: cells of a few
items are drawn to the sum as far as the other cells keep to it, and their intervals say so.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit, logit, stdtr, stdtrit

from obygaze_studies.audit_common.findings import Finding, Wording, audited
from obygaze_studies.audit_common.inputs import Row, known_items, read_number, refuse_twins
from obygaze_studies.errors import AuditError

Floats = NDArray[np.float64]

ENDS = (0.025, 0.975)
CELL = ("cell", "n", "mean", "estimate", "low", "high")
"""Columns of the results before the attributes."""
GRID = 60
"""Spreads of cells around the sum that are averaged over."""
ROUNDS = 8
SAME = 1e-9
"""Size of a direction of effects, of the largest, that others make up."""
LEAST = 0.002
"""A share beyond which logits are not followed."""


def shrunken(
    means: Floats, variances: Floats, design: Floats, freedom: float = np.inf
) -> tuple[Floats, Floats, Floats]:
    """Estimate cells' true means.

    Parameters
    ----------
    means, variances : ndarray, shape [C]
        Of each cell, and of its mean.
    design : ndarray, shape [C, K]
        What effects a cell has.
    freedom : float
        Degrees of freedom of the variances, where they were estimated.

    Returns
    -------
    Estimates, and ends of 95 % intervals, [C] each.
    """
    basis, sizes, _ = np.linalg.svd(design, full_matrices=False)
    design = basis[:, sizes > SAME * sizes[0]]
    widest = 3 * float(np.sqrt(means.var() + variances.mean())) + 1e-12
    spreads = np.linspace(0.0, widest, GRID)
    weights = []
    centres = []
    errors = []
    for spread in spreads:
        precision = 1 / (variances + spread**2)
        information = design.T @ (precision[:, None] * design)
        inverse = np.linalg.inv(information)
        effects = inverse @ (design.T @ (precision * means))
        residuals = means - design @ effects
        _, size = np.linalg.slogdet(information)
        weights.append(0.5 * (np.log(precision).sum() - size - precision @ residuals**2))
        weight = spread**2 * precision
        centres.append(weight * means + (1 - weight) * (design @ effects))
        of_effects = np.einsum("ck,kl,cl->c", design, inverse, design)
        errors.append(weight * variances + (1 - weight) ** 2 * of_effects)
    prior = 1 / (spreads + float(np.sqrt(np.median(variances))))  # small ones are as likely as large ones
    share = prior * np.exp(np.array(weights) - max(weights))
    share /= share.sum()
    centre = np.array(centres)
    error = np.sqrt(np.array(errors)) + 1e-12
    cells = range(len(means))

    def quantiles(at: float) -> Floats:
        """Find a quantile of each cell."""
        return np.array([_quantile(share, centre[:, k], error[:, k], freedom, at) for k in cells])

    low, high = map(quantiles, ENDS)
    return share @ centre, low, high


def _quantile(share: Floats, centre: Floats, error: Floats, freedom: float, at: float) -> float:
    """Find a quantile of a mixture of Student's t distributions."""
    reach = error * float(stdtrit(freedom, 1 - ENDS[0] / 2))  # each one's quantile, and more
    low = float((centre - reach).min())
    high = float((centre + reach).max())
    quantile: float = brentq(lambda x: float(share @ stdtr(freedom, (x - centre) / error)) - at, low, high)
    return quantile


def estimate_cells(y: Floats, attributes: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
    """Estimate the mean of a number, or the share of ones, in each cell that has items.

    Parameters
    ----------
    y : ndarray, shape [N]
    attributes : sequence of sequence of str, each of length N

    Returns
    -------
    A row for each cell: the values of its attributes, `n`, `mean`, `estimate`, `low`, `high`.
    """
    is_share = bool(np.isin(y, (0.0, 1.0)).all())
    largest = 1.0
    middle = 0.0
    unit = 1.0
    if not is_share:  # rounding is of how far items differ, wherever they lie
        largest = max(float(np.abs(y).max()), 1e-300)
        middle = float(np.median(y / largest))
        unit = float(np.abs(y / largest - middle).max()) or 1.0
    names = [f"attribute {k}" for k in range(len(attributes))]
    table = pd.DataFrame(dict(zip(names, attributes, strict=True))).assign(y=(y / largest - middle) / unit)
    grouped = table.groupby(names)["y"]
    cells = grouped.agg(["size", "mean"]).reset_index()
    n = cells["size"].to_numpy()
    means = cells["mean"].to_numpy()
    y = table["y"].to_numpy()
    effects = pd.get_dummies(cells[names], drop_first=True, dtype=float)
    design = np.column_stack([np.ones(len(cells)), effects])
    if is_share:
        # Around what is estimated so far, a logit's working value is normal (as in iterated least squares).
        odds = logit((n * means + y.mean()) / (n + 1)) if 0 < y.mean() < 1 else np.zeros(len(n))
        least = max(LEAST, 0.5 / (len(y) + 1))
        for _ in range(ROUNDS):
            p = np.clip(expit(odds), least, 1 - least)
            spread = p * (1 - p)
            odds, low, high = shrunken(logit(p) + (means - p) / spread, 1 / (n * spread), design)
        estimate = expit(odds)
        low = expit(low)
        high = expit(high)
    else:
        if n.max() == 1:
            raise AuditError("no cell has two items, so how far the items of a cell differ is unknown")
        freedom = len(y) - len(cells)
        within = float(((y - grouped.transform("mean")) ** 2).sum()) / freedom
        estimate, low, high = shrunken(means, max(within, 1e-12) / n, design, freedom)
    named = list(cells[names].itertuples(index=False, name=None))
    numbers = ((values * unit + middle) * largest for values in (means, estimate, low, high))
    estimates = pd.DataFrame(dict(zip(CELL, (named, n, *numbers), strict=True)))
    rows: list[dict[Any, Any]] = estimates.to_dict(orient="records")
    return rows


@audited(
    Wording(
        name="groups",
        title="Means of crossed groups",
        table="Means by cell",
        columns=(
            "cell",
            "n",
            "mean",
            "estimate",
            "low",
            "high",
        ),
        sentence=(
            "of {n_cells:,} cells with {n_items:,} items the estimate is lowest for "
            "{least} and highest for {most}"
        ),
        source="Fay and Herriot, JASA 1979; the spread around the sum is averaged over",
    )
)
def audit_groups(items: Mapping[str, Row], *, outcome: str, by: Sequence[str]) -> Finding:
    """Estimate the mean of a column in every cell of crossed attributes.

    Parameters
    ----------
    items
        Item id -> columns; of items with an empty cell in one of these nothing is known.
    outcome, by
        A column of numbers, 0 and 1 for a share; and columns of attributes, any number of them.
    """
    refuse_twins([*by, *CELL], "--by: two columns of the results would be called")
    ids, remarks = known_items(items, (outcome, *by))
    values = [read_number(items[name][outcome], f"{outcome} of {name}") for name in ids]
    if not np.isfinite(values).all():
        raise AuditError(
            f"column {outcome}: a value of {ids[int(np.argmin(np.isfinite(values)))]} is not finite"
        )

    def attribute(column: str) -> list[str]:
        return [items[name][column] for name in ids]

    shown = []
    for row in estimate_cells(np.array(values), list(map(attribute, by))):
        value_of = dict(zip(by, row["cell"], strict=True))
        shown.append({**row, "cell": " ".join(row["cell"]), **value_of})
    least = min(shown, key=lambda row: row["estimate"])
    most = max(shown, key=lambda row: row["estimate"])
    return Finding(
        rows=shown,
        said={"least": least["cell"], "most": most["cell"], "n_cells": len(shown), "n_items": len(ids)},
        record={"outcome": outcome, "by": list(by), "left_out": len(items) - len(ids)},
        remarks=remarks,
    )
