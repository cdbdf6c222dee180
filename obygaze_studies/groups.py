"""Estimate the mean of every cell of crossed attributes, with small cells shrunk towards an additive model.

The observed mean of a cell is taken as normal around its true mean, and the true means as normal around a
sum of the attributes' effects (Fay and Herriot, JASA 1979). The spread of the true means around that sum is
unknown and is averaged over. Cells of few items are therefore shrunk towards the sum as far as the other
cells follow it, and their intervals include this uncertainty.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit, logit, stdtr, stdtrit

from obygaze_studies.audit_common.findings import Finding, Wording, audited
from obygaze_studies.audit_common.inputs import Row, complete_items, read_number, refuse_duplicates
from obygaze_studies.errors import AuditError

Floats = NDArray[np.float64]

INTERVAL_QUANTILES = (0.025, 0.975)
"""Quantiles at the ends of a 95 % interval."""
CELL_COLUMNS = ("cell", "n", "mean", "estimate", "low", "high")
"""Columns of the results before the attributes."""
N_SPREADS = 60
"""Number of values of the spread around the additive model that are averaged over."""
N_ROUNDS = 8
"""Steps of iterated least squares for shares; the estimates no longer change after a few."""
REDUNDANT_SHARE = 1e-9
"""A singular value of the design up to this share of the largest one belongs to redundant effects."""
MIN_DISTANCE_FROM_ENDS = 0.002
"""Fitted shares are kept this far from 0 and 1, where a logit would be unbounded."""
MIN_DEVIATION = 1e-12
"""Added to standard deviations, so that none is 0 where all outcomes are equal."""
MIN_VARIANCE = 1e-12
"""Smallest variance of the items of a cell, for outcomes that are equal within every cell."""
ROUNDING_OF_OUTCOME = 1e-12
"""Outcomes that differ by no more, in parts of their largest distance from the median, are equal."""
MIN_OUTCOME = 1e-300
"""Smallest number that outcomes are divided by, where all of them are 0."""


class CellEstimates(NamedTuple):
    """The estimates of C cells, and the lower and upper ends of their 95 % intervals, [C] each."""

    estimate: Floats
    low: Floats
    high: Floats


def shrunken(
    means: Floats, variances: Floats, design: Floats, degrees_of_freedom: float = np.inf
) -> CellEstimates:
    """Estimate the true means of cells by empirical-Bayes shrinkage towards an additive model (Fay-Herriot).

    The true means are taken to lie around the sums of effects with an unknown spread. The estimates average
    over the posterior distribution of this spread, on a grid.

    Parameters
    ----------
    means : ndarray, shape [C]
        Observed mean of each cell.
    variances : ndarray, shape [C]
        Sampling variance of each observed mean.
    design : ndarray, shape [C, K]
        Design matrix of the additive model: which effects add up in each cell.
    degrees_of_freedom : float
        Those of the variances, where they were estimated.

    Returns
    -------
    CellEstimates
        Posterior means with their 95 % intervals.
    """
    basis = _orthonormal_basis(design)

    # The spreads of the grid, from 0 on. Three times the total spread of the observed means is beyond any
    # plausible spread of the true ones.
    largest_spread = 3 * float(np.sqrt(means.var() + variances.mean())) + MIN_DEVIATION
    spreads = np.linspace(0.0, largest_spread, N_SPREADS)

    # Estimates for each spread, and how probable the spread is
    fits = [_fit_spread(spread, means, variances, basis) for spread in spreads]
    posterior = _posterior_of_spreads(spreads, fits, variances)
    centre = np.array([fit.centre for fit in fits])  # [N_SPREADS, C]
    error = np.sqrt(np.array([fit.squared_error for fit in fits])) + MIN_DEVIATION  # [N_SPREADS, C]

    # The ends of each cell's interval are quantiles of the mixture of these estimates.
    low = np.empty(len(means))
    high = np.empty(len(means))
    for cell in range(len(means)):
        mixture = (posterior, centre[:, cell], error[:, cell], degrees_of_freedom)
        low[cell] = _quantile(*mixture, probability=INTERVAL_QUANTILES[0])
        high[cell] = _quantile(*mixture, probability=INTERVAL_QUANTILES[1])
    return CellEstimates(estimate=posterior @ centre, low=low, high=high)


def _orthonormal_basis(design: Floats) -> Floats:
    """Return an orthonormal basis [C, R] of the columns of a design matrix [C, K].

    Redundant effects, as those of some cells may be, are left out, so that the information matrix of the
    basis can be inverted.
    """
    all_directions, sizes, _ = np.linalg.svd(design, full_matrices=False)
    basis: Floats = all_directions[:, sizes > REDUNDANT_SHARE * sizes[0]]
    return basis


def _posterior_of_spreads(spreads: Floats, fits: "Sequence[_FitOfSpread]", variances: Floats) -> Floats:
    """Compute the posterior probability of each spread of a grid, [N_SPREADS].

    A spread is the standard deviation of the cells' true means around the additive model.

    Parameters
    ----------
    spreads, fits
        The spreads, and the model's fit with each of them.
    variances : ndarray, shape [C]
        Sampling variance of the observed mean of each cell.
    """
    # Nearly uniform in the logarithm of the spread, so that small spreads are as likely as large ones.
    prior = 1 / (spreads + float(np.sqrt(np.median(variances))))
    log_likelihoods = np.array([fit.log_likelihood for fit in fits])
    # Relative to the largest likelihood, so that the exponentials do not all underflow to 0.
    posterior: Floats = prior * np.exp(log_likelihoods - log_likelihoods.max())
    posterior /= posterior.sum()
    return posterior


class _FitOfSpread(NamedTuple):
    """Estimates of C cells for one spread of the true means around the additive model.

    Attributes
    ----------
    log_likelihood
        Restricted log likelihood (REML) of the spread, with the effects integrated out.
    centre, squared_error : ndarray, shape [C]
        Posterior mean and variance of each cell's true mean.
    """

    log_likelihood: float
    centre: Floats
    squared_error: Floats


def _fit_spread(spread: float, means: Floats, variances: Floats, basis: Floats) -> _FitOfSpread:
    """Estimate the true means of cells if they lie around the additive model with a known spread.

    The effects are estimated by generalised least squares, the true means by their best linear unbiased
    predictor (BLUP): a weighted mean of a cell's observed mean and the sum of its effects.

    Parameters
    ----------
    spread
        Standard deviation of the true means around the sums of effects.
    means, variances : ndarray, shape [C]
        Observed mean of each cell, and its sampling variance.
    basis : ndarray, shape [C, R]
        Orthonormal basis of the design of the additive model.
    """
    # Generalised least squares, where the observed means have independent errors.
    precision = 1 / (variances + spread**2)  # [C]
    information = basis.T @ (precision[:, None] * basis)  # [R, R]
    covariance_of_effects = np.linalg.inv(information)
    effects = covariance_of_effects @ (basis.T @ (precision * means))  # [R]
    fitted = basis @ effects  # [C], the sums of effects
    fitted_variances = np.einsum("ck,kl,cl->c", basis, covariance_of_effects, basis)  # [C]

    residuals = means - fitted
    _, log_determinant = np.linalg.slogdet(information)
    log_likelihood = 0.5 * (np.log(precision).sum() - log_determinant - precision @ residuals**2)

    # Weight of a cell's observed mean, against that of the additive model.
    weight = spread**2 * precision
    return _FitOfSpread(
        log_likelihood=float(log_likelihood),
        centre=weight * means + (1 - weight) * fitted,
        squared_error=weight * variances + (1 - weight) ** 2 * fitted_variances,
    )


def _quantile(
    share: Floats, centre: Floats, error: Floats, degrees_of_freedom: float, *, probability: float
) -> float:
    """Compute a quantile of a mixture of Student's t distributions.

    Parameters
    ----------
    share, centre, error : ndarray, shape [G]
        Weight, centre and scale of each of the G distributions.
    degrees_of_freedom
        Those of all of them.
    probability
        Which quantile: the probability below it.
    """
    # The quantile is searched between two numbers that certainly lie on either side of it. A quantile of the
    # mixture is never outside the same quantiles of its single distributions. To be sure, quantiles further
    # out are taken: below the lower number is half as much of each distribution as below an interval (.0125,
    # not .025), and above the upper number likewise.
    tail = INTERVAL_QUANTILES[0] / 2
    reach = error * float(stdtrit(degrees_of_freedom, 1 - tail))
    lowest = float((centre - reach).min())
    highest = float((centre + reach).max())

    def excess(x: float) -> float:
        """Compute by how much the probability below x is above that of the quantile."""
        return float(share @ stdtr(degrees_of_freedom, (x - centre) / error)) - probability

    quantile: float = brentq(excess, lowest, highest)
    return quantile


class _Scale(NamedTuple):
    """A linear scale of an outcome: y = (scaled * half_range + median) * largest.

    Attributes
    ----------
    largest
        Largest absolute outcome.
    median, half_range
        Median of the outcomes and largest distance from it, both in units of `largest`.
    """

    largest: float
    median: float
    half_range: float

    def scaled(self, y: Floats) -> Floats:
        """Convert outcomes to the scale."""
        return (y / self.largest - self.median) / self.half_range

    def unscaled(self, number: float) -> float:
        """Convert a number on the scale back to the outcome's own."""
        return float((number * self.half_range + self.median) * self.largest)


_OWN_SCALE = _Scale(largest=1.0, median=0.0, half_range=1.0)
"""The scale that leaves outcomes as they are."""


def _scale_of(y: Floats) -> _Scale:
    """Choose a linear scale that moves the median of outcomes [N] to 0 and the farthest one to -1 or 1.

    On it, rounding errors are small beside the differences of the items.
    """
    largest = max(float(np.abs(y).max()), MIN_OUTCOME)
    outcomes = y / largest
    median = float(np.median(outcomes))
    half_range = float(np.abs(outcomes - median).max())
    if half_range == 0:  # all outcomes are equal
        half_range = 1.0
    return _Scale(largest, median, half_range)


def estimate_cells(y: Floats, attributes: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
    """Estimate the mean of a number, or the share of ones, in each cell that has items.

    The observed mean of a cell with few items is drawn towards an additive model: the sum of the effects of
    the cell's attributes. Outcomes of 0 and 1 are shares, and are modelled on the logit scale. Other numbers
    are first moved to a scale of their own, so that results do not depend on their unit.

    Parameters
    ----------
    y : ndarray, shape [N]
        Outcome of each item.
    attributes : sequence of sequence of str, each of length N
        For each attribute, its value of each item.

    Returns
    -------
    A row for each cell: `cell`, the values of its attributes, `n`, `mean`, `estimate`, `low`, `high`. The
    ends of intervals are None if the outcome is a number and the items of each cell are equal: of few items
    with few possible values this is chance, and tells nothing of how far the items of a cell differ.

    Raises
    ------
    AuditError
        The outcome is a number and no cell has two items.
    """
    is_share = bool(np.isin(y, (0.0, 1.0)).all())
    scale = _OWN_SCALE if is_share else _scale_of(y)

    # The number of items and the mean of each cell
    names = [f"attribute {k}" for k in range(len(attributes))]
    table = pd.DataFrame(dict(zip(names, attributes, strict=True))).assign(y=scale.scaled(y))
    outcomes_of_cell = table.groupby(names)["y"]
    cells = outcomes_of_cell.agg(["size", "mean"]).reset_index()
    n = cells["size"].to_numpy()
    means = cells["mean"].to_numpy()

    # The additive model: an intercept, and an effect of every value of an attribute but the first.
    effects = pd.get_dummies(cells[names], drop_first=True, dtype=float)
    design = np.column_stack([np.ones(len(cells)), effects])

    scaled_y = table["y"].to_numpy()
    has_intervals = True
    if is_share:
        estimates = _shrunken_shares(means, n, float(scaled_y.mean()), design)
    else:
        if n.max() == 1:
            raise AuditError("no cell has two items, so how far the items of a cell differ is unknown")
        # The items of all cells are taken to have the same variance around the mean of their cell. If they
        # all equal this mean, but for rounding, it is not known how far items differ.
        degrees_of_freedom = len(scaled_y) - len(cells)
        residuals = scaled_y - outcomes_of_cell.transform("mean").to_numpy()
        do_items_differ = bool(np.abs(residuals).max() > ROUNDING_OF_OUTCOME)
        has_intervals = do_items_differ
        variance_within = max(float(residuals @ residuals) / degrees_of_freedom, MIN_VARIANCE)
        estimates = shrunken(means, variance_within / n, design, degrees_of_freedom)

    rows: list[dict[str, Any]] = []
    for k, cell in enumerate(cells[names].itertuples(index=False, name=None)):
        rows.append(
            {
                "cell": cell,
                "n": int(n[k]),
                "mean": scale.unscaled(means[k]),
                "estimate": scale.unscaled(estimates.estimate[k]),
                "low": scale.unscaled(estimates.low[k]) if has_intervals else None,
                "high": scale.unscaled(estimates.high[k]) if has_intervals else None,
            }
        )
    return rows


def _shrunken_shares(
    shares: Floats, n: NDArray[np.int64], overall_share: float, design: Floats
) -> CellEstimates:
    """Estimate the true shares of cells by shrinkage towards an additive model on the logit scale.

    Shares of cells with few items are drawn towards the sum of the effects of their attributes. `shrunken`
    does this for values that are about normally distributed, which shares are not. So, as in iterated least
    squares of a logistic regression, each share is replaced by a working value on the logit scale. It is the
    logit of the current estimate p, moved by the distance of the share from p, on that scale:

        logit(p) + (share - p) / (p (1 - p)),  with the variance 1 / (n p (1 - p))

    `shrunken` gives the next estimates from these values, `N_ROUNDS` times.

    Parameters
    ----------
    shares, n : ndarray, shape [C]
        Share of ones among the items of each cell, and the number of its items.
    overall_share
        Share of ones among all items.
    design : ndarray, shape [C, K]
        Design matrix of the additive model.

    Returns
    -------
    CellEstimates
        The estimated shares with their 95 % intervals.
    """
    logits = np.zeros(len(n))
    if 0 < overall_share < 1:
        # One item with the overall share is added to each cell, so that no logit is infinite.
        logits = logit((n * shares + overall_share) / (n + 1))
    # Estimates are kept away from 0 and 1, where the variance would be 0: by the share that half an item is
    # of all items, or by a small constant.
    min_share = max(MIN_DISTANCE_FROM_ENDS, 0.5 / (n.sum() + 1))

    for _ in range(N_ROUNDS):
        p = np.clip(expit(logits), min_share, 1 - min_share)
        variance = p * (1 - p)  # of the outcome of one item
        working_values = logit(p) + (shares - p) / variance
        logits, low, high = shrunken(working_values, 1 / (n * variance), design)
    return CellEstimates(expit(logits), expit(low), expit(high))


@audited(
    Wording(  # texts of the report; what stands in braces is filled from the finding's `sentence_values`
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
        sentence="of {n_cells:cell} with {n_items:item} {extremes}",
        source="Fay and Herriot, JASA 1979; the spread around the sum is averaged over",
    )
)
def audit_groups(items: Mapping[str, Row], *, outcome: str, by: Sequence[str]) -> Finding:
    """Estimate the mean of a column in every cell of crossed attributes, such as women in films of the 1980s.

    The mean of few items is uncertain: estimates of all cells are made together (`estimate_cells`).

    Parameters
    ----------
    items
        Item id -> columns. Items with an empty cell in `outcome` or `by` are left out and counted.
    outcome
        Column of numbers; of 0 and 1 for a share.
    by
        Columns of attributes, any number of them.
    """
    refuse_duplicates([*by, *CELL_COLUMNS], "--by: two columns of the results would be called")
    ids, remarks = complete_items(items, (outcome, *by))
    values = [read_number(items[name][outcome], f"{outcome} of {name}") for name in ids]
    for name, value in zip(ids, values, strict=True):
        if not math.isfinite(value):
            raise AuditError(f"column {outcome}: a value of {name} is not finite")

    # A row for each cell. It has a column for the cell's name, and one for its value of each attribute.
    attributes = [_cells_of_column(items, ids, column) for column in by]
    rows = []
    for estimated in estimate_cells(np.array(values), attributes):
        values_of_cell = estimated["cell"]
        value_of_attribute = dict(zip(by, values_of_cell, strict=True))
        rows.append({**estimated, "cell": " ".join(values_of_cell), **value_of_attribute})
    notes = []
    if any(row["low"] is None for row in rows):
        notes.append(
            f"no intervals: the items of each cell have one {outcome}, so how far items differ is unknown"
        )
    return Finding(
        rows=rows,
        notes=notes,
        sentence_values={
            "extremes": _extremes(rows),
            "n_cells": len(rows),
            "n_items": len(ids),
        },
        record={"outcome": outcome, "by": list(by), "left_out": len(items) - len(ids)},
        remarks=remarks,
    )


def _extremes(rows: Sequence[Mapping[str, Any]]) -> str:
    """Say which cells have the lowest and the highest estimate, or that all have one.

    Parameters
    ----------
    rows
        A row for each cell, with the fields `cell` and `estimate`.
    """
    lowest = min(rows, key=lambda row: row["estimate"])
    highest = max(rows, key=lambda row: row["estimate"])
    if len(rows) == 1:
        return f"the estimate of {lowest['cell']} is the only one"
    # Estimates are sums of logarithms and exponentials, equal but for rounding.
    if math.isclose(lowest["estimate"], highest["estimate"], rel_tol=1e-9):
        return "all have the same estimate"
    return f"the estimate is lowest for {lowest['cell']} and highest for {highest['cell']}"


def _cells_of_column(items: Mapping[str, Row], ids: Sequence[str], column: str) -> list[str]:
    """Return the cells of some items in a column."""
    return [items[name][column] for name in ids]
