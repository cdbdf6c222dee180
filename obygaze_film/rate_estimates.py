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
"""Halvings of the unit interval by which a root is found: it is then known to 2e-13."""

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
    value_without_model, low_without_model, high_without_model : ndarray, shape [B]
        Rate and interval from the judgements alone.
    """

    value: Floats
    low: Floats
    high: Floats
    gain: Floats
    value_without_model: Floats
    low_without_model: Floats
    high_without_model: Floats


def estimate_rate(
    cells: Cells,
    judged: NDArray[np.int64],
    y: Floats,
    *,
    sampling: Sampling = SUCCESSIVE,
    denominator: int = 1,
) -> Estimates:
    """Estimate the positive share of a film's content from draws of its cells.

    Of cells drawn by successive sampling:

    - `difference_estimate` computes the estimate and a score interval. Each cell is weighted by its content
      over its chance to be among those drawn (`inclusion_chances`).
    - `widened_to_exact` widens the interval to an exact one. Of few judgements a score interval holds some
      shares too seldom: with 10 of 130 windows judged, a share of .4 in 91 % of draws.
    - `PossibleShares` moves its ends to the nearest possible shares: what was judged is certain, and each
      other cell is positive as a whole, or not at all. It also keeps the interval wide enough that the
      longest cell left may be judged otherwise than the model expects.

    Cells drawn by sequential Poisson sampling are estimated as in earlier versions
    (`_estimate_sequential_poisson`): of these steps, only that what was judged is certain.

    Parameters
    ----------
    cells : Cells
        Those of which nobody was sure have no content here (`Cells.without`).
    judged : ndarray of int, shape [B, n]
        The cells of B draws, each in the order of its draw (`Cells.order_of_draw`).
    y : ndarray, shape [B, n]
        Their judgements, 0 to 1.
    sampling : str
        Method by which they were drawn.
    denominator : int
        The judgements are multiples of 1 / `denominator`.
    """
    if sampling == SEQUENTIAL_POISSON:
        return _within_the_possible(_estimate_sequential_poisson(cells, judged, y), cells, judged, y)
    chances = inclusion_chances(cells.content_s, judged.shape[1])
    weights = np.divide(cells.content_s, chances, out=np.zeros_like(chances), where=chances > 0)
    film_p = float(np.average(cells.p, weights=cells.content_s))
    film_variance = float(np.average((cells.p - film_p) ** 2, weights=cells.content_s))
    by_score = difference_estimate(
        y, cells.p[judged], weights[judged], chances[judged], film_p=film_p, film_variance=film_variance
    )
    estimates = widened_to_exact(by_score, y, weights[judged], chances[judged])
    return _within_the_possible(estimates, cells, judged, y, denominator=denominator)


def _within_the_possible(
    estimates: Estimates,
    cells: Cells,
    judged: NDArray[np.int64],
    y: Floats,
    *,
    denominator: int | None = None,
) -> Estimates:
    """Move estimates and the ends of their intervals to shares that are possible (`PossibleShares`).

    Parameters as of `estimate_rate`; without a `denominator`, any part of a cell may be positive.
    """
    with_model = []
    alone = []
    for draw, (order, labels) in enumerate(zip(judged, y, strict=True)):
        possible = PossibleShares(cells.content_s, order, labels, denominator)
        with_model.append(possible.estimate(estimates.value[draw], estimates.low[draw], estimates.high[draw]))
        alone.append(
            possible.estimate(
                estimates.value_without_model[draw],
                estimates.low_without_model[draw],
                estimates.high_without_model[draw],
            )
        )
    values, lows, highs = np.array(with_model).T
    values_without_model, lows_without_model, highs_without_model = np.array(alone).T
    return replace(
        estimates,
        value=values,
        low=np.minimum(lows, values),
        high=np.maximum(highs, values),
        value_without_model=values_without_model,
        low_without_model=lows_without_model,
        high_without_model=highs_without_model,
    )


def widened_to_exact(estimates: Estimates, y: Floats, weights: Floats, chances: Floats) -> Estimates:
    """Widen intervals that do not contain the exact interval of level `LEAST_LEVEL` (`exact_interval`).

    The exact interval is that of as many independent draws as would have the same variance. It widens the
    interval from the judgements alone; the interval with a model is stretched in the same proportion, each
    side by itself.

    Parameters
    ----------
    estimates : Estimates
        By `difference_estimate`.
    y, weights, chances : ndarray, shape [B, n]
        As in `difference_estimate`.
    """
    parts = weights / weights.sum(axis=1)[:, None]
    share = np.clip((parts * y).sum(axis=1), 0, 1)
    # The variance is share (1 - share) times this correction; that of n independent draws is
    # share (1 - share) / n.
    correction = _correction(parts, y, chances).at(share)
    n_independent = 1 / np.maximum(correction, 1e-9)
    exact_low, exact_high = exact_interval(share, n_independent)
    low_without_model = np.minimum(estimates.low_without_model, exact_low)
    high_without_model = np.maximum(estimates.high_without_model, exact_high)
    stretch_below = _stretch(share - low_without_model, share - estimates.low_without_model)
    stretch_above = _stretch(high_without_model - share, estimates.high_without_model - share)
    return replace(
        estimates,
        low=np.maximum(estimates.value - stretch_below * (estimates.value - estimates.low), 0),
        high=np.minimum(estimates.value + stretch_above * (estimates.high - estimates.value), 1),
        low_without_model=low_without_model,
        high_without_model=high_without_model,
    )


def _stretch(widened: Floats, former: Floats) -> Floats:
    """Divide lengths [B] of widened sides of intervals by the former lengths [B]; 1 where these are 0."""
    return np.divide(widened, former, out=np.ones_like(former), where=former > ROUNDING)


def exact_interval(share: ArrayLike, n: ArrayLike) -> tuple[Floats, Floats]:
    """Compute the exact interval of a share, of level `LEAST_LEVEL`, from n independent draws.

    The interval of Clopper and Pearson (Biometrika 26, 1934). For draws that are not independent, n is the
    number of independent draws with the same variance (Korn and Graubard, Survey Methodology 24, 1998).

    Parameters
    ----------
    share : array-like, shape [B]
        Share of the n draws that is positive.
    n : array-like, shape [B]
        Number of draws; it need not be whole.

    Examples
    --------
    >>> low, high = exact_interval([0.4], [10])
    >>> print(low.round(2), high.round(2))
    [0.13] [0.72]
    """
    from scipy.special import betaincinv  # noqa: PLC0415 - slow, and films are opened without it

    shares = np.asarray(share, dtype=np.float64)
    n_draws = np.asarray(n, dtype=np.float64)
    n_positive = shares * n_draws
    n_negative = (1 - shares) * n_draws
    tail = (1 - LEAST_LEVEL) / 2
    # Quantiles of beta distributions, whose parameters must be above 0.
    low = betaincinv(np.maximum(n_positive, ROUNDING), n_negative + 1, tail)
    high = betaincinv(n_positive + 1, np.maximum(n_negative, ROUNDING), 1 - tail)
    return np.where(shares > 0, low, 0.0), np.where(shares < 1, high, 1.0)


class PossibleShares:
    """The positive shares that a film can have, given the cells that were judged in one draw.

    Parameters
    ----------
    content_s : ndarray, shape [C]
        Seconds of each cell.
    judged : ndarray of int, shape [n]
        Judged cells, in the order of their draw.
    labels : ndarray, shape [n]
        Their judgements, multiples of 1 / `denominator`.
    denominator : int or None
        The positive part of each cell that is not judged is a multiple of 1 / `denominator`; None if it may
        be any part.
    """

    def __init__(
        self, content_s: Floats, judged: NDArray[np.int64], labels: Floats, denominator: int | None = 1
    ) -> None:
        """Compute the seconds that are judged positive, and those of the cells left to judge."""
        self._content_s = content_s
        self._judged = judged
        self._labels = labels
        self._whole_s = float(content_s.sum())  # of all cells
        self._positive_s = float(content_s[judged] @ labels)  # of judged cells
        is_judged = np.zeros(len(content_s), dtype=np.bool_)
        is_judged[judged] = True
        left_cells_s = content_s[~is_judged & (content_s > 0)]  # seconds of each cell that is not judged
        self._left_s = float(left_cells_s.sum())
        self._longest_left_s = float(left_cells_s.max(initial=0.0))
        self._is_by_whole_cells = denominator is not None
        # The possible positive seconds of the cells left to judge, in rising order. None if they may be any
        # number, or so many that any number is near one of them.
        self._sums_s = None if denominator is None else sums_of_whole(left_cells_s, denominator)

    def estimate(self, value: float, low: float, high: float) -> tuple[float, float, float]:
        """Move an estimate and the ends of its interval to possible shares; return all three."""
        least_share = self._share_of(0.0)
        largest_share = self._share_of(self._left_s)
        possible_value = min(max(value, least_share), largest_share)
        return possible_value, *self.interval(possible_value, low, high)

    def interval(self, value: float, low: float, high: float) -> tuple[float, float]:
        """Move the ends of an interval to the nearest possible shares.

        If no judged cell is positive, or all are, the exact interval replaces it. In any case it reaches to
        either side of the estimate (`value`) by the longest cell left: no model knows how that one is judged.
        """
        if self._left_s == 0:
            known_share = self._share_of(0.0)
            return known_share, known_share
        ends = self._exact_ends_s()
        low_s, high_s = ends if ends is not None else (self._left_s_of(low), self._left_s_of(high))
        value_s = self._left_s_of(value)
        low_s = self._nearest_s(min(low_s, value_s - self._longest_left_s))
        high_s = self._nearest_s(max(high_s, value_s + self._longest_left_s))
        return max(0.0, self._share_of(low_s) - ROUNDING), min(1.0, self._share_of(high_s) + ROUNDING)

    def _share_of(self, left_s: float) -> float:
        """Return the film's share if so many seconds of the cells left to judge are positive."""
        return min(1.0, (self._positive_s + left_s) / self._whole_s)

    def _left_s_of(self, share: float) -> float:
        """Return how many seconds of the cells left are positive if the film's share is this one."""
        return share * self._whole_s - self._positive_s

    def _nearest_s(self, left_s: float) -> float:
        """Return the possible positive seconds of the cells left that are nearest to a number of seconds."""
        if self._sums_s is None:
            return min(max(left_s, 0.0), self._left_s)
        return float(self._sums_s[np.abs(self._sums_s - left_s).argmin()])

    def _exact_ends_s(self) -> tuple[float, float] | None:
        """Return the exact bounds of the positive seconds of the cells left.

        They are known if all judged cells have the same label; else, and if cells need not be positive as a
        whole, it is None.
        """
        if self._is_by_whole_cells and not self._labels.any():
            return 0.0, self._most_unseen_s()
        if self._is_by_whole_cells and (self._labels == 1).all():
            return self._left_s - self._most_unseen_s(), self._left_s
        return None

    def _most_unseen_s(self) -> float:
        """Return an upper bound of the seconds with a label that no judged cell has (`most_unseen`).

        It is the largest possible number of seconds up to that bound.
        """
        bound_s = most_unseen(self._content_s, self._judged)
        if self._sums_s is None:
            return bound_s
        is_possible = self._sums_s <= bound_s + 1e-6  # so that rounding does not exclude the bound itself
        return float(self._sums_s[is_possible].max())


def sums_of_whole(content: Floats, denominator: int = 1) -> Floats | None:
    """List the positive seconds that cells [C] may have together, if each is positive as a whole or not.

    Of two cells of 46 s and one of 20 s these are 0, 20, 46, 66, 92 and 112 s.

    Parameters
    ----------
    content : ndarray, shape [C]
        Seconds of each cell.
    denominator : int
        Each cell may also be positive by a multiple of 1 / `denominator`, as several judges may differ.

    Returns
    -------
    ndarray, shape [S], or None
        Possible sums in rising order, of those equal to a millisecond one; None if there are more than
        `MOST_SUMS`.
    """
    sums = np.zeros(1)
    for cell_s, n_cells in _sizes(content):
        positive_s = np.arange(n_cells * denominator + 1) * (cell_s / denominator)
        all_sums = np.add.outer(sums, positive_s).ravel()  # each sum so far plus each of these
        _, first_of_each = np.unique(np.round(all_sums, 3), return_index=True)
        sums = all_sums[first_of_each]
        if len(sums) > MOST_SUMS:
            return None
    return sums


def _sizes(content: Floats) -> list[tuple[float, int]]:
    """List the different contents of cells in seconds, each with the number of cells that have it.

    Contents that are equal to a millisecond are one.
    """
    _, first_of_each, counts = np.unique(np.round(content, 3), return_index=True, return_counts=True)
    return list(zip(content[first_of_each].tolist(), counts.tolist(), strict=True))


def most_unseen(content: Floats, order: NDArray[np.int64]) -> float:
    """Compute an upper bound of a film's positive seconds, of level .975, if no judged cell is positive.

    If S seconds are positive, the k-th cell drawn is negative with chance 1 - S / left[k], where left[k] are
    the seconds of the cells not drawn before. The bound is the largest S for which the product of these
    chances is at least .025: a larger S is rejected in at most .025 of draws. Of cells of equal content, the
    product is the chance of the draw (hypergeometric).

    Parameters
    ----------
    content : ndarray, shape [C]
        Seconds.
    order : ndarray of int, shape [n]
        Judged cells, in the order of a successive draw.

    Returns
    -------
    float
        The largest number of seconds that is not rejected.
    """
    from scipy.optimize import brentq  # noqa: PLC0415 - slow, and films are opened without it

    drawn_s = content[order]
    left_s = content.sum() - np.concatenate([[0.0], np.cumsum(drawn_s)[:-1]])  # [n]: before each draw
    log_least_chance = float(np.log((1 - LEVEL) / 2))
    never_drawn_s = max(float(left_s[-1] - drawn_s[-1]), 0.0)  # all that can be positive

    def excess(positive_s: float) -> float:
        """Return the logarithm of the product of chances less that of .025: seconds below 0 are rejected."""
        positive_shares = np.minimum(positive_s / left_s, 1 - 1e-12)  # log(1 - share) needs a share below 1
        return float(np.log1p(-positive_shares).sum()) - log_least_chance

    if excess(never_drawn_s) >= 0:
        return never_drawn_s
    return float(brentq(excess, 0.0, never_drawn_s))


def _estimate_sequential_poisson(cells: Cells, judged: NDArray[np.int64], y: Floats) -> Estimates:
    """Estimate rates from draws by sequential Poisson sampling; parameters as those of `estimate_rate`.

    Long cells are certain to be drawn: their positive share of the film is counted. The rate of the other
    cells, which are drawn by chance, is estimated:

        rate = counted share + (1 - share of certain cells) * rate of the others
    """
    chances = inclusion_chances(cells.content_s, judged.shape[1], SEQUENTIAL_POISSON)
    is_by_chance = chances < 1
    seconds_by_chance = cells.content_s[is_by_chance]
    # Share of the film's content of each judged cell that was certain to be drawn; 0 of the others.
    certain_share = np.where(is_by_chance, 0.0, cells.content_s / cells.content_s.sum())[judged]
    counted_share = (certain_share * y).sum(axis=1)
    share_by_chance = 1 - certain_share.sum(axis=1)
    if not seconds_by_chance.any():
        rate = counted_share / (1 - share_by_chance)  # exactly 1 where all are positive
        no_gain = np.zeros(len(y))
        return Estimates(rate, rate, rate, no_gain, rate, rate, rate)
    p_by_chance = cells.p[is_by_chance]
    mean_p = float(np.average(p_by_chance, weights=seconds_by_chance))
    weights = is_by_chance[judged].astype(
        np.float64
    )  # 1 of a cell drawn by chance; certain ones are left out
    others = difference_estimate(
        y,
        cells.p[judged],
        weights,
        chances[judged],
        film_p=mean_p,
        film_variance=float(np.average((p_by_chance - mean_p) ** 2, weights=seconds_by_chance)),
        is_chance_by_label=False,
    )
    if y.shape[1] < LEAST_SURE:  # earlier versions gave no interval of so few, which would have to stay
        others = widened_to_exact(others, y, weights, chances[judged])
    return _rescaled(others, counted_share, share_by_chance)


def _rescaled(estimates: Estimates, offset: Floats, factor: Floats) -> Estimates:
    """Return the estimates of offset + factor * rate [B] from those of the rate."""
    return replace(
        estimates,
        value=offset + factor * estimates.value,
        low=offset + factor * estimates.low,
        high=offset + factor * estimates.high,
        value_without_model=offset + factor * estimates.value_without_model,
        low_without_model=offset + factor * estimates.low_without_model,
        high_without_model=offset + factor * estimates.high_without_model,
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
    Angelopoulos et al., Science 2023) with power tuning (Angelopoulos, Duchi and Zrnic 2023) corrects a
    model's mean probability by the judged cells. It is nearly unbiased for any model. With weighted means
    over the judged cells, and the mean and the variance V of p over the film:

        rate     R    = mean(y) + g (film's mean of p - mean(p))
        gain     g    = cov / V, within 0 and 1: 0 for a useless model, 1 for a calibrated one
                 cov  = R (1 - R) D
                 D    = mean(p) of judged positives - mean(p) of judged negatives
        variance var  = R (1 - R) - 2 g cov + g^2 V, of y - g p
        error    se^2 = var C, where C is the finite-population correction
                 C    = (1 - R) C1 + R C0
                 C1   = mean of (1 - chance) weight over judged positives; C0: over judged negatives

    The interval is that of a score test: the rates that lie at most z standard errors from the estimate, the
    errors computed at these rates. For a useless model and equal cells it is Wilson's interval.

    C1 and C0 differ, as positive cells may be longer or shorter than others and so be drawn more or less
    often; (1 - R)^2 and R^2 are the squared distances of their labels from R. To each mean by label one cell
    with the mean of all is added, so that D is 0 if one label is missing.
    `benchmarks/planted/rates.py` measures coverage and width.

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
        Whether C1 and C0 are computed for positives and negatives; else both are the mean over all.
    """
    from scipy.special import ndtri  # noqa: PLC0415 - slow, and films are opened without it

    labels = np.asarray(y, dtype=np.float64)
    judged_p = np.asarray(p, dtype=np.float64)
    raw_weights = np.asarray(weights, dtype=np.float64)
    parts = raw_weights / raw_weights.sum(axis=1)[:, None]
    means_p = _means_by_label(parts, labels, judged_p)
    variance_p = np.maximum(film_variance, MIN_VARIANCE)
    # 0 for a model that says the same of every cell, or the contrary of the judges.
    difference_p = np.maximum(means_p.positives - means_p.negatives, 0)
    difference_p = np.where(variance_p > MIN_VARIANCE, difference_p, 0)
    with_model = _ScoreTest(
        mean_y=(parts * labels).sum(axis=1),
        mean_p=(parts * judged_p).sum(axis=1),
        film_p=film_p,
        variance_p=variance_p,
        difference_p=difference_p,
        correction=_correction(parts, labels, np.asarray(chances, dtype=np.float64)),
        z_squared=float(ndtri((1 + LEVEL) / 2)) ** 2,
        is_chance_by_label=is_chance_by_label,
    )
    alone = replace(with_model, uses_model=False)
    value, low, high = with_model.interval()
    value_without_model, low_without_model, high_without_model = alone.interval()
    return Estimates(
        value, low, high, with_model.gain(value), value_without_model, low_without_model, high_without_model
    )


@dataclass(frozen=True, eq=False, slots=True)
class _ScoreTest:
    """The score test of rates R [B], by the formulas of `difference_estimate`.

    Attributes
    ----------
    mean_y, mean_p : ndarray, shape [B]
        Weighted means over the judged cells.
    film_p : float or ndarray, shape [B]
        The film's mean of p.
    variance_p : ndarray, shape [B]
        V, the film's variance of p.
    difference_p : ndarray, shape [B]
        D.
    correction : _MeansByLabel
        C1 of positives and C0 of negatives, and the mean over all cells.
    z_squared : float
        Square of the number of standard errors of the interval.
    is_chance_by_label : bool
    uses_model : bool
        Whether g is the best gain; else it is 0.
    """

    mean_y: Floats
    mean_p: Floats
    film_p: float | Floats
    variance_p: Floats
    difference_p: Floats
    correction: "_MeansByLabel"
    z_squared: float
    is_chance_by_label: bool
    uses_model: bool = True

    def interval(self) -> tuple[Floats, Floats, Floats]:
        """Return the estimate, and the low and the high end of its interval."""
        zeros, ones = np.zeros(len(self.mean_y)), np.ones(len(self.mean_y))
        value = _root(self.distance, zeros, ones)
        high = _root(lambda rate: self.distance(rate) - self.margin(rate), value, ones)
        low = _root(lambda rate: self.distance(rate) + self.margin(rate), zeros, value)
        return value, low, high

    def gain(self, rate: Floats) -> Floats:
        """Return g, the weight of p."""
        if not self.uses_model:
            return np.zeros_like(rate)
        return np.asarray(np.clip(rate * (1 - rate) * self.difference_p / self.variance_p, 0, 1))

    def distance(self, rate: Floats) -> Floats:
        """Return how far a rate lies above its estimate; the estimate depends on the rate by g."""
        return np.asarray(rate - self.mean_y + self.gain(rate) * (self.mean_p - self.film_p))

    def margin(self, rate: Floats) -> Floats:
        """Return z standard errors of the estimate if the rate is this one."""
        variance_y = rate * (1 - rate)
        g = self.gain(rate)
        variance = variance_y - 2 * g * variance_y * self.difference_p + g * g * self.variance_p
        correction = self.correction.at(rate) if self.is_chance_by_label else self.correction.all_cells
        return np.asarray(np.sqrt(self.z_squared * correction * np.maximum(variance, 0)))


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
    The added cell weighs as much as a judged cell on average, 1 / n.
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
    """Find the roots [B] of a function that is at most 0 at `below` and at least 0 at `above`.

    They are rounded to 12 decimals.
    """
    for _ in range(BISECTIONS):
        middle = (below + above) / 2
        is_below = function(middle) <= 0
        below, above = np.where(is_below, middle, below), np.where(is_below, above, middle)
    return np.round((below + above) / 2, 12)
