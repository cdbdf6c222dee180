"""Estimate the positive share of a film's content from windows that were drawn at random and judged."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from obygaze_film.cells import Cells, Floats
from obygaze_film.draws import SEQUENTIAL_POISSON, SUCCESSIVE, Sampling, inclusion_chances
from obygaze_film.judged_windows import LEAST_SURE

LEVEL: Final = 0.95
"""Nominal level of every interval."""

LEAST_LEVEL: Final = 0.93
"""Level that an interval has whatever the share: that of the exact interval that it is widened to contain."""

MIN_VARIANCE: Final = 1e-12
"""Variance of p below which a model says the same of every cell."""

BISECTIONS: Final = 42
"""Halvings of the unit interval: a root is then known to 2e-13, and is rounded to 12 decimals."""

ROUNDING: Final = 1e-9
"""By how much an end lies beyond a possible share, so that rounding does not put this share outside."""

MOST_SUMS: Final = 2000
"""Sums of whole windows beyond which they lie so close together that no end of an interval need be moved."""


@dataclass(frozen=True, eq=False, slots=True)
class Estimates:
    """Estimated rates of B draws.

    Attributes
    ----------
    value, low, high : ndarray, shape [B]
        Rate and interval from the judgements and the model.
    gain : ndarray, shape [B]
        Weight of the model's probabilities, 0 (unused) to 1.
    alone_value, alone_low, alone_high : ndarray, shape [B]
        Rate and interval from the judgements alone.
    """

    value: Floats
    low: Floats
    high: Floats
    gain: Floats
    alone_value: Floats
    alone_low: Floats
    alone_high: Floats


def estimate_rate(
    cells: Cells,
    judged: NDArray[np.int64],
    y: Floats,
    *,
    sampling: Sampling = SUCCESSIVE,
    denominator: int = 1,
) -> Estimates:
    """Estimate the share of a film's content that is positive from draws of its cells.

    Of cells drawn by successive sampling each weighs its content over its chance to be among those drawn
    (`inclusion_chances`, `difference_estimate`). The interval is then corrected by four facts:

    - Judgements are counts. With few of them, a score interval holds some shares far less often than others:
      with 10 of 130 windows judged, a share of .4 in 91 % of draws. Its ends are moved out to those of an
      exact interval (`moved_out`).
    - A judge calls a cell as a whole. Where the cells that are not judged have few different contents, only
      some shares are possible, and the ends of an interval are moved to the nearest of these.
    - Where none of the judged cells is positive, or all are, the exact interval is known (`most_unseen`).
    - What was judged is certain: the share is at least that of the judged positives, and at most that of all
      but the judged negatives. The interval always leaves open that the longest cell that is not judged is
      called otherwise than expected, whatever the model says of it (`PossibleShares.interval`).

    Cells drawn by sequential Poisson sampling are estimated as in earlier versions, and only the last fact is
    used. Cells so large that they are certain to be drawn count by their content; the others' share is the
    plain mean of those drawn.

    Parameters
    ----------
    cells : Cells
        Those of which nobody was sure have no content here (`Cells.without`).
    judged : ndarray of int, shape [B, n]
        The cells of B draws, each in the order of its draw (`Cells.order_of_draw`).
    y : ndarray, shape [B, n]
        Their judgements, 0 to 1.
    sampling : str
        By which they were drawn.
    denominator : int
        The judgements are multiples of 1 / denominator.
    """
    if sampling == SEQUENTIAL_POISSON:
        return _within_the_possible(_estimate_sequential_poisson(cells, judged, y), cells, judged, y)
    chances = inclusion_chances(cells.content_s, judged.shape[1])
    weights = np.divide(cells.content_s, chances, out=np.zeros_like(chances), where=chances > 0)
    film_p = float(np.average(cells.p, weights=cells.content_s))
    variance = float(np.average((cells.p - film_p) ** 2, weights=cells.content_s))
    by_score = difference_estimate(
        y, cells.p[judged], weights[judged], chances[judged], film_p=film_p, film_variance=variance
    )
    estimates = moved_out(by_score, y, weights[judged], chances[judged])
    return _within_the_possible(estimates, cells, judged, y, denominator=denominator)


def _within_the_possible(
    estimates: Estimates,
    cells: Cells,
    judged: NDArray[np.int64],
    y: Floats,
    *,
    denominator: int | None = None,
) -> Estimates:
    """Move estimates and the ends of their intervals to what the judged cells leave possible.

    With a `denominator` each cell counts as a whole. Without, as for a sequential Poisson draw, any part
    of the cells that are not judged may be positive.
    """
    value, alone_value = estimates.value.copy(), estimates.alone_value.copy()
    low, high = estimates.low.copy(), estimates.high.copy()
    alone_low, alone_high = estimates.alone_low.copy(), estimates.alone_high.copy()
    for draw, (order, labels) in enumerate(zip(judged, y, strict=True)):
        possible = PossibleShares(cells.content_s, order, labels, denominator)
        value[draw] = possible.within(value[draw])
        alone_value[draw] = possible.within(alone_value[draw])
        low[draw], high[draw] = possible.interval(value[draw], low[draw], high[draw])
        ends = possible.interval(alone_value[draw], alone_low[draw], alone_high[draw])
        alone_low[draw], alone_high[draw] = ends
    return replace(
        estimates,
        value=value,
        low=np.minimum(low, value),
        high=np.maximum(high, value),
        alone_value=alone_value,
        alone_low=alone_low,
        alone_high=alone_high,
    )


def moved_out(estimates: Estimates, y: Floats, weights: Floats, chances: Floats) -> Estimates:
    """Widen intervals where an exact one of `LEAST_LEVEL` goes further.

    The interval from the judgements alone is widened to hold the exact interval of its share, from the number
    of independent draws that would have the same variance. The interval with a model is stretched in the same
    proportion, each side by itself.

    Parameters
    ----------
    estimates : Estimates
        By `difference_estimate`.
    y, weights, chances : ndarray, shape [B, n]
        As there.
    """
    parts = weights / weights.sum(axis=1)[:, None]
    alone = np.clip((parts * y).sum(axis=1), 0, 1)
    # The variance is R (1 - R) times this correction, and R (1 - R) / n of n independent draws.
    n_independent = 1 / np.maximum(_correction(parts, y, chances).at(alone), 1e-9)
    exact_low, exact_high = exact_interval(alone, n_independent)
    alone_low = np.minimum(estimates.alone_low, exact_low)
    alone_high = np.maximum(estimates.alone_high, exact_high)
    stretch_below = _stretch(alone - alone_low, alone - estimates.alone_low)
    stretch_above = _stretch(alone_high - alone, estimates.alone_high - alone)
    return replace(
        estimates,
        low=np.maximum(estimates.value - stretch_below * (estimates.value - estimates.low), 0),
        high=np.minimum(estimates.value + stretch_above * (estimates.high - estimates.value), 1),
        alone_low=alone_low,
        alone_high=alone_high,
    )


def _stretch(widened: Floats, former: Floats) -> Floats:
    """Divide lengths [B] of widened sides of intervals by the former lengths [B]; 1 where these are 0."""
    return np.divide(widened, former, out=np.ones_like(former), where=former > ROUNDING)


def exact_interval(share: ArrayLike, n: ArrayLike) -> tuple[Floats, Floats]:
    """Compute the exact interval of a share, of level `LEAST_LEVEL`, from n independent draws.

    Clopper and Pearson (Biometrika 26, 1934). Of draws that are not independent, n is the number of
    independent ones that would have the same variance, which need not be whole (Korn and Graubard, Survey
    Methodology 24, 1998).

    Parameters
    ----------
    share : array-like, shape [B]
        Share of the n draws that is positive.
    n : array-like, shape [B]
        Number of draws.

    Examples
    --------
    >>> low, high = exact_interval([0.4], [10])
    >>> print(low.round(2), high.round(2))
    [0.14] [0.72]
    """
    from scipy.special import betaincinv  # noqa: PLC0415 - slow, and films are opened without it

    shares, number = np.asarray(share, dtype=np.float64), np.asarray(n, dtype=np.float64)
    tail = (1 - LEAST_LEVEL) / 2
    positive, negative = shares * number, (1 - shares) * number
    low = betaincinv(np.maximum(positive, ROUNDING), negative + 1, tail)
    high = betaincinv(positive + 1, np.maximum(negative, ROUNDING), 1 - tail)
    return np.where(shares > 0, low, 0.0), np.where(shares < 1, high, 1.0)


class PossibleShares:
    """What a film's share can be, given the cells that were judged in one draw.

    Parameters
    ----------
    content : ndarray, shape [C]
        Seconds of each cell.
    order : ndarray of int, shape [n]
        Judged cells, in the order of their draw.
    labels : ndarray, shape [n]
        Their judgements, multiples of 1 / `denominator`.
    denominator : int or None
        The positive part of each cell that is not judged is a multiple of 1 / `denominator`; None if it may
        be any part.
    """

    def __init__(
        self, content: Floats, order: NDArray[np.int64], labels: Floats, denominator: int | None = 1
    ) -> None:
        self._content = content
        self._order = order
        self._labels = labels
        self._whole_s = float(content.sum())  # of all cells
        self._positive_s = float(content[order] @ labels)  # of judged cells
        is_judged = np.zeros(len(content), dtype=np.bool_)
        is_judged[order] = True
        left_cells = content[~is_judged & (content > 0)]  # seconds of each cell that is not judged
        self._left_s = float(left_cells.sum())
        self._longest_left_s = float(left_cells.max(initial=0.0))
        self._is_by_whole_cells = denominator is not None
        # What the positive seconds of the cells not judged may add up to; None if it may be anything.
        self._sums = None if denominator is None else sums_of_whole(left_cells, denominator)

    def within(self, share: float) -> float:
        """Cut a share [0, 1] to what is possible: all that is not judged negative, or all of it positive."""
        return min(max(share, self._share_of(0.0)), self._share_of(self._left_s))

    def interval(self, value: float, low: float, high: float) -> tuple[float, float]:
        """Move the ends of an interval to the nearest possible shares.

        Where none of the judged cells is positive, or all are, the exact interval takes its place. In either
        case the interval is widened by the longest cell that is not judged to both sides of the estimate
        (`value`): no model knows what the last of 13 windows will be called.
        """
        if self._left_s == 0:
            return self._share_of(0.0), self._share_of(0.0)
        # Shares as seconds of the cells that are not judged.
        value_s = value * self._whole_s - self._positive_s
        low_s = low * self._whole_s - self._positive_s
        high_s = high * self._whole_s - self._positive_s
        if self._is_by_whole_cells and not self._labels.any():
            low_s, high_s = 0.0, self._unseen_s()
        elif self._is_by_whole_cells and (self._labels == 1).all():
            low_s, high_s = self._left_s - self._unseen_s(), self._left_s
        low_s = self._nearest(min(low_s, value_s - self._longest_left_s))
        high_s = self._nearest(max(high_s, value_s + self._longest_left_s))
        return max(0.0, self._share_of(low_s) - ROUNDING), min(1.0, self._share_of(high_s) + ROUNDING)

    def _share_of(self, seconds: float) -> float:
        """Return the film's share if so many seconds of the cells that are not judged are positive."""
        return min(1.0, (self._positive_s + seconds) / self._whole_s)

    def _nearest(self, seconds: float) -> float:
        """Find the possible positive seconds of the cells that are not judged nearest to some seconds."""
        if self._sums is None:
            return min(max(seconds, 0.0), self._left_s)
        return float(self._sums[np.abs(self._sums - seconds).argmin()])

    def _unseen_s(self) -> float:
        """Bound the seconds of one label if all judged cells have the other (`most_unseen`).

        Where only some sums of cells are possible, it is the largest of these that is not refuted.
        """
        seconds = most_unseen(self._content, self._order)
        if self._sums is None:
            return seconds
        is_possible = self._sums <= seconds + 1e-6  # so that rounding does not exclude the bound itself
        return float(self._sums[is_possible].max())


def sums_of_whole(content: Floats, denominator: int = 1) -> Floats | None:
    """List the positive seconds that cells [C] may have, each positive by a multiple of 1 / denominator.

    Parameters
    ----------
    content : ndarray, shape [C]
        Seconds of each cell.
    denominator : int

    Returns
    -------
    ndarray, shape [S], or None
        Possible sums in rising order, those alike to a millisecond once; None if there are more than
        `MOST_SUMS`.
    """
    sums = np.zeros(1)
    for cell_s, n_cells in _sizes(content):
        positive_s = np.arange(n_cells * denominator + 1) * (cell_s / denominator)
        all_sums = np.add.outer(sums, positive_s).ravel()
        _, first_of_each = np.unique(np.round(all_sums, 3), return_index=True)
        sums = all_sums[first_of_each]
        if len(sums) > MOST_SUMS:
            return None
    return sums


def _sizes(content: Floats) -> list[tuple[float, int]]:
    """List the contents of cells in seconds, those alike to a millisecond once, with the number of cells."""
    _, first_of_each, counts = np.unique(np.round(content, 3), return_index=True, return_counts=True)
    return list(zip(content[first_of_each].tolist(), counts.tolist(), strict=True))


def most_unseen(content: Floats, order: NDArray[np.int64]) -> float:
    """Bound the positive seconds of a film of which no judged cell is positive, at .975.

    If S seconds are positive, the k-th cell drawn is one of the others with chance 1 - S / left, where left
    is the content of all that were not drawn before it. The product of these chances is below .025 in at most
    .025 of draws that meet none of the positive cells: what has a product below .025 is refuted. Of cells
    alike in content the product is the chance itself (hypergeometric).

    Parameters
    ----------
    content : ndarray, shape [C]
        Seconds.
    order : ndarray of int, shape [n]
        Judged cells, in the order of a successive draw.

    Returns
    -------
    float
        The largest number of seconds that is not refuted.
    """
    from scipy.optimize import brentq  # noqa: PLC0415 - slow, and films are opened without it

    drawn_s = content[order]
    left_s = content.sum() - np.concatenate([[0.0], np.cumsum(drawn_s)[:-1]])  # [n]: before each draw
    log_least_chance = float(np.log((1 - LEVEL) / 2))
    never_drawn_s = max(float(left_s[-1] - drawn_s[-1]), 0.0)

    def excess(positive_s: float) -> float:
        """Say how far the logarithm of the product of chances lies above that of .025; below 0 is refuted."""
        positive_shares = np.minimum(positive_s / left_s, 1 - 1e-12)  # below 1, which has no logarithm
        return float(np.log1p(-positive_shares).sum()) - log_least_chance

    if excess(never_drawn_s) >= 0:
        return never_drawn_s
    return float(brentq(excess, 0.0, never_drawn_s))


def _estimate_sequential_poisson(cells: Cells, judged: NDArray[np.int64], y: Floats) -> Estimates:
    """Estimate rates from draws by sequential Poisson sampling; parameters as those of `estimate_rate`.

    A rate has two parts: what is counted of the cells that are certain to be drawn, and what is estimated of
    the others, which are drawn by chance.
    """
    chances = inclusion_chances(cells.content_s, judged.shape[1], SEQUENTIAL_POISSON)
    is_open = chances < 1
    # Shares of the film's content: of each judged cell that was certain to be drawn, of those among them that
    # are positive, and of all cells that were not certain.
    certain_share = np.where(is_open, 0.0, cells.content_s / cells.content_s.sum())[judged]
    counted_share = (certain_share * y).sum(axis=1)
    open_share = 1 - certain_share.sum(axis=1)
    if not cells.content_s[is_open].any():
        counted_share /= 1 - open_share  # exactly 1 where all are positive
        no_gain = np.zeros(len(y))
        rate = low = high = counted_share
        return Estimates(rate, low, high, no_gain, rate, low, high)
    open_p, seconds = cells.p[is_open], cells.content_s[is_open]
    mean = float(np.average(open_p, weights=seconds))
    of_open = difference_estimate(
        y, cells.p[judged], is_open[judged], chances[judged],
        film_p=mean, film_variance=float(np.average((open_p - mean) ** 2, weights=seconds)),
        is_chance_by_label=False,
    )  # fmt: skip
    if y.shape[1] < LEAST_SURE:  # of so few, earlier versions gave no interval that would have to stay
        of_open = moved_out(of_open, y, np.where(is_open[judged], 1.0, 0.0), chances[judged])

    def of_film(open_rate: Floats) -> Floats:
        rate: Floats = counted_share + open_share * open_rate
        return rate

    return replace(
        of_open,
        value=of_film(of_open.value),
        low=of_film(of_open.low),
        high=of_film(of_open.high),
        alone_value=of_film(of_open.alone_value),
        alone_low=of_film(of_open.alone_low),
        alone_high=of_film(of_open.alone_high),
    )


def difference_estimate(
    y: ArrayLike,
    p: ArrayLike,
    weights: ArrayLike,
    chances: ArrayLike,
    *,
    film_p: float | Floats,
    film_variance: float | Floats,
    is_chance_by_label: bool = True,
) -> Estimates:
    """Estimate the positive share of the cells that may be drawn from those that were.

    The difference estimate (Cassel, Särndal and Wretman, Biometrika 1976; prediction-powered inference:
    Angelopoulos et al., Science 2023) of a rate R is the judged cells' mean of y - g p plus g times the
    film's mean of p. It is nearly unbiased for any model and any g; the g with the smallest variance is
    cov(y, p) / V (power tuning: Angelopoulos, Duchi and Zrnic 2023), here within 0 and 1, where V is the
    film's variance of p. It is 0 for a useless model and 1 for a calibrated one.

    The interval is that of a score test: the rates R at most z standard errors from their estimate. A rate R
    gives cov(y, p) = R (1 - R) D, with D the difference of the mean p of judged positives and negatives, and
    the variance R (1 - R) - 2 g cov + g^2 V of y - g p. To each of the two means one cell is added that has
    the mean p of all judged cells: D is 0 without a positive or without a negative.

    The squared standard error is this variance times the mean of (1 - chance) weight over the cells (Hájek's
    finite-population correction). Positive cells may be longer or shorter than others and so be drawn more or
    less often: the mean is (1 - R) times that of judged positives and R times that of negatives, as their
    squared distances from R are (1 - R)^2 and R^2; one cell with the mean of all is added to each. For a
    useless model and equal cells this is Wilson's interval. `benchmarks/planted/rates.py` measures coverage
    and width.

    Parameters
    ----------
    y : array-like, shape [B, n]
        Judgements, 0 to 1, of B draws of n cells.
    p : array-like, shape [B, n]
        The model's probabilities of the judged cells.
    weights : array-like, shape [B, n]
        Their weights in a mean, normalised here; 0 for those that are left out.
    chances : array-like, shape [B, n]
        Their chances to be drawn (`inclusion_chances`).
    film_p, film_variance : float or ndarray, shape [B]
        Mean and variance of p over all cells that may be drawn, weighted by content.
    is_chance_by_label : bool
        Whether (1 - chance) weight has a mean of its own for positives and for negatives.
    """
    from scipy.special import ndtri  # noqa: PLC0415 - slow, and films are opened without it

    labels = np.asarray(y, dtype=np.float64)
    judged_p = np.asarray(p, dtype=np.float64)
    raw_weights = np.asarray(weights, dtype=np.float64)
    parts = raw_weights / raw_weights.sum(axis=1)[:, None]
    z_squared = float(ndtri((1 + LEVEL) / 2)) ** 2
    mean_y = (parts * labels).sum(axis=1)
    mean_p = (parts * judged_p).sum(axis=1)
    means_p = _means_by_label(parts, labels, judged_p)
    variance_p = np.maximum(film_variance, MIN_VARIANCE)
    # D of the docstring; 0 for a model that says the same of every cell, or the contrary of the judges.
    difference_p = np.maximum(means_p.positives - means_p.negatives, 0)
    difference_p = np.where(variance_p > MIN_VARIANCE, difference_p, 0)
    correction = _correction(parts, labels, np.asarray(chances, dtype=np.float64))

    def factor(rate: Floats) -> Floats:
        """Give the mean of (1 - chance) weight if the rate is this one."""
        return correction.at(rate) if is_chance_by_label else correction.all_cells

    def best_gain(rate: Floats) -> Floats:
        """Give g = cov(y, p) / V, within 0 and 1."""
        return np.asarray(np.clip(rate * (1 - rate) * difference_p / variance_p, 0, 1))

    def no_gain(rate: Floats) -> Floats:
        return np.zeros_like(rate)

    def interval(gain: Callable[[Floats], Floats]) -> tuple[Floats, Floats, Floats]:
        """Estimate the rate, and both ends of its interval, by a weight g of p."""

        def distance(rate: Floats) -> Floats:
            """Say how far a rate lies above its estimate."""
            return np.asarray(rate - mean_y + gain(rate) * (mean_p - film_p))

        def error(rate: Floats) -> Floats:
            """Give z standard errors of the estimate if the rate is this one."""
            variance_y = rate * (1 - rate)
            g = gain(rate)
            variance = variance_y - 2 * g * variance_y * difference_p + g * g * variance_p
            return np.asarray(np.sqrt(z_squared * factor(rate) * np.maximum(variance, 0)))

        zeros, ones = np.zeros(len(labels)), np.ones(len(labels))
        value = _root(distance, zeros, ones)
        high = _root(lambda rate: distance(rate) - error(rate), value, ones)
        low = _root(lambda rate: distance(rate) + error(rate), zeros, value)
        return value, low, high

    value, low, high = interval(best_gain)
    alone_value, alone_low, alone_high = interval(no_gain)
    return Estimates(value, low, high, best_gain(value), alone_value, alone_low, alone_high)


@dataclass(frozen=True, eq=False, slots=True)
class _MeansByLabel:
    """Means over all judged cells of B draws, over the positive ones and over the others, each [B]."""

    all_cells: Floats
    positives: Floats
    negatives: Floats

    def at(self, rate: Floats) -> Floats:
        """Average over squared distances from a rate [B]: (1 - rate)^2 of positives, rate^2 of the others."""
        return (1 - rate) * self.positives + rate * self.negatives


def _correction(parts: Floats, labels: Floats, chances: Floats) -> _MeansByLabel:
    """Average (1 - chance) weight over judged cells [B, n], whose weights add up to 1."""
    return _means_by_label(parts, labels, (1 - chances) * parts)


def _means_by_label(weights: Floats, labels: Floats, values: Floats) -> _MeansByLabel:
    """Average values [B, n] by weights [B, n] that add up to 1 in each draw, over all cells and by label.

    To the positives, and to the negatives, one cell with the mean of all is added, so that neither is empty.
    """
    n = (weights > 0).sum(axis=1)
    positive_share = (weights * labels).sum(axis=1)
    mean = (weights * values).sum(axis=1)
    sum_of_positives = (weights * labels * values).sum(axis=1)
    return _MeansByLabel(
        all_cells=mean,
        positives=(n * sum_of_positives + mean) / (n * positive_share + 1),
        negatives=(n * (mean - sum_of_positives) + mean) / (n * (1 - positive_share) + 1),
    )


def _root(function: Callable[[Floats], Floats], below: Floats, above: Floats) -> Floats:
    """Bisect for the roots of a function that is at most 0 at `below` and at least 0 at `above`, [B]."""
    for _ in range(BISECTIONS):
        middle = (below + above) / 2
        is_below = function(middle) <= 0
        below, above = np.where(is_below, middle, below), np.where(is_below, above, middle)
    return np.round((below + above) / 2, 12)
