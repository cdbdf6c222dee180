"""Estimate the positive share of a film's content from windows that were drawn at random and judged."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from obygaze_film.cells import Cells, Floats
from obygaze_film.draws import SEQUENTIAL_POISSON, SUCCESSIVE, Sampling, inclusion_chances
from obygaze_film.judged_windows import MIN_SURE_WINDOWS

LEVEL: Final = 0.95
"""Nominal level of every interval."""

MIN_LEVEL: Final = 0.93
"""Level that an interval has whatever the share: that of the exact interval that it is widened to contain."""

MIN_VARIANCE: Final = 1e-12
"""Variance of p below which a model says the same of every cell."""

BISECTIONS: Final = 42
"""Halvings of the unit interval by which a root is found: it is then known to 2e-13."""

ROUNDING: Final = 1e-9
"""By how much an end lies beyond a possible share, so that rounding does not put this share outside."""

MAX_SUMS: Final = 2000
"""Most sums of whole cells that are listed. More lie so close together that any number is near one."""

SUM_SLACK_S: Final = 1e-6
"""Seconds by which a sum of cells may exceed a bound, so that rounding does not exclude the bound itself."""

MIN_VARIANCE_FACTOR: Final = 1e-9
"""Least variance factor by which is divided: that of a film of which all is judged is 0."""

BELOW_ONE: Final = 1 - 1e-12
"""Largest share S of which log(1 - S) is computed: 0 has no logarithm."""


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
    unsure: Sequence[int] = (),
    sampling: Sampling = SUCCESSIVE,
    denominator: int = 1,
) -> Estimates:
    """Estimate the positive share of a film's content from draws of its cells, with an interval.

    A cell is a window that may be drawn and judged; its content are its seconds that can be judged. The
    model's probabilities help the estimate, and the judgements correct them. The share is that of the cells
    that judges are sure of: the cells in `unsure` are no part of it, and only show what the model says of
    drawn cells.

    Three steps follow each other: the estimate with the interval of a score test (`difference_estimate`); a
    wider interval after few judgements (`widened_to_exact`); and both moved to shares that the film can still
    have (`_within_the_possible`).

    Parameters
    ----------
    cells : Cells
        All cells of the film, those of which nobody was sure among them.
    judged : ndarray of int, shape [B, n]
        The cells of B draws that judges were sure of, each in the order of its draw (`Cells.order_of_draw`).
    y : ndarray, shape [B, n]
        Their judgements, 0 to 1.
    unsure : sequence of int
        Cells that were judged too, in each of the draws, and that judges were not sure of.
    sampling : str
        Method by which they were drawn.
    denominator : int
        The judgements are multiples of 1 / `denominator`.
    """
    unsure_cells = np.array(unsure, dtype=np.int64)
    cells_of_rate = cells.without(unsure)  # the share is of these
    if sampling == SEQUENTIAL_POISSON:  # as earlier versions drew, and estimated
        if len(unsure_cells):
            # These versions did not use the model then. A model that says the same of every cell is not used.
            cells_of_rate = replace(cells_of_rate, p=np.full_like(cells.p, 0.5))
        estimates = _estimate_sequential_poisson(cells_of_rate, judged, y)
        return _within_the_possible(estimates, cells_of_rate, judged, y, denominator=None)

    # How cells were drawn. The cells of which judges were not sure were drawn too, and count here. The weight
    # of a cell is its content divided by its chance to be drawn. Cells without content are never drawn: they
    # have neither a chance nor a weight.
    n_drawn = judged.shape[1] + len(unsure_cells)
    chances = inclusion_chances(cells.content_s, n_drawn)  # [C]
    weights = np.divide(cells.content_s, chances, out=np.zeros_like(chances), where=chances > 0)
    judged_chances = chances[judged]  # [B, n]
    judged_weights = weights[judged]

    # 1. The estimate and the interval of a score test. The model's mean probability over the film is compared
    # with that over all judged cells, those that judges were not sure of among them: such cells may have
    # other probabilities than the rest, and which of the cells not judged are such ones is not known.
    p_of_film = _mean_and_variance(cells.p, cells.content_s)
    by_score_test = difference_estimate(
        y,
        cells.p[judged],
        judged_weights,
        judged_chances,
        film_p=p_of_film.mean,
        film_variance=p_of_film.variance,
        unsure_p=cells.p[unsure_cells],
        unsure_weights=weights[unsure_cells],
    )
    # 2. After few judgements, such an interval contains some shares too rarely: with 10 of 130 windows
    # judged, a share of .4 in 91 % of draws. It is widened.
    widened = widened_to_exact(by_score_test, y, judged_weights, judged_chances)
    # 3. What was judged is certain, and each other cell is positive as a whole, or not at all: the estimate
    # and the ends are moved to shares that the film can still have.
    return _within_the_possible(widened, cells_of_rate, judged, y, denominator=denominator)


class _MeanAndVariance(NamedTuple):
    """Weighted mean and variance of some values."""

    mean: float
    variance: float


def _mean_and_variance(values: Floats, weights: Floats) -> _MeanAndVariance:
    """Compute the mean and the variance of values [C], weighted by weights [C]."""
    mean = float(np.average(values, weights=weights))
    variance = float(np.average((values - mean) ** 2, weights=weights))
    return _MeanAndVariance(mean, variance)


def _within_the_possible(
    estimates: Estimates,
    cells: Cells,
    judged: NDArray[np.int64],
    y: Floats,
    *,
    denominator: int | None,
) -> Estimates:
    """Move estimates and the ends of their intervals to shares that the film can have.

    Each draw judged other cells, and so leaves other shares possible (`PossibleShares`). What was judged is
    certain: if 40 s of 100 s were judged positive and 20 s negative, the share lies from .4 to .8.

    Parameters
    ----------
    estimates : Estimates
        Of B draws.
    cells : Cells
        The film's cells.
    judged : ndarray of int, shape [B, n]
        The judged cells of each draw.
    y : ndarray, shape [B, n]
        Their judgements, 0 to 1.
    denominator : int or None
        The judgements are multiples of 1 / `denominator`. None if any part of a cell may be positive.
    """
    possible_shares = [
        PossibleShares(cells.content_s, order, labels, denominator)
        for order, labels in zip(judged, y, strict=True)
    ]
    with_model = _moved_to_possible(possible_shares, estimates.value, estimates.low, estimates.high)
    without_model = _moved_to_possible(
        possible_shares,
        estimates.value_without_model,
        estimates.low_without_model,
        estimates.high_without_model,
    )
    # The interval with the model contains its estimate, wherever each of the three was moved to.
    return replace(
        estimates,
        value=with_model.value,
        low=np.minimum(with_model.low, with_model.value),
        high=np.maximum(with_model.high, with_model.value),
        value_without_model=without_model.value,
        low_without_model=without_model.low,
        high_without_model=without_model.high,
    )


class _Intervals(NamedTuple):
    """Estimated shares of B draws with the ends of their intervals, each [B]."""

    value: Floats
    low: Floats
    high: Floats


def _moved_to_possible(
    possible_shares: Sequence["PossibleShares"], values: Floats, lows: Floats, highs: Floats
) -> _Intervals:
    """Move the estimate and both ends of its interval, for each of B draws, to shares that the film can have.

    Parameters
    ----------
    possible_shares
        For each draw, the shares that the film can have given what was judged in it.
    values, lows, highs : ndarray, shape [B]
        Estimated shares, and the ends of their intervals.
    """
    moved = []  # [B, 3]
    for possible, value, low, high in zip(possible_shares, values, lows, highs, strict=True):
        moved.append(possible.move(value, low, high))
    moved_values, moved_lows, moved_highs = np.array(moved).T
    return _Intervals(moved_values, moved_lows, moved_highs)


def widened_to_exact(estimates: Estimates, y: Floats, weights: Floats, chances: Floats) -> Estimates:
    """Widen intervals until they contain the exact interval of level `MIN_LEVEL` (`exact_interval`).

    After few judgements, other intervals contain some shares too rarely. Three steps widen them:

    1. The exact interval is that of independent draws. So these draws are replaced by as many independent
       ones as give the judged share the same variance: the effective sample size.
    2. The interval from the judgements alone is widened to contain the exact one.
    3. For an interval with a model there is no exact one. It is stretched by the factors by which the
       interval from the judgements alone became longer, on either side of the estimate.

    Parameters
    ----------
    estimates : Estimates
        By `difference_estimate`.
    y : ndarray, shape [B, n]
        Judgements, 0 to 1, of B draws of n cells.
    weights, chances : ndarray, shape [B, n]
        The cells' weights in a mean, and their chances to be drawn.
    """
    normalised_weights = weights / weights.sum(axis=1)[:, None]  # [B, n]: they add up to 1
    share = np.clip((normalised_weights * y).sum(axis=1), 0, 1)

    # The variance of the judged share is share (1 - share) factor. That of n independent draws would be
    # share (1 - share) / n. Both are equal if n is 1 / factor.
    factor = _variance_factors(normalised_weights, y, chances).at_rate(share)
    effective_n = 1 / np.maximum(factor, MIN_VARIANCE_FACTOR)
    exact_low, exact_high = exact_interval(share, effective_n)

    # The interval from the judgements alone
    low_without_model = np.minimum(estimates.low_without_model, exact_low)
    high_without_model = np.maximum(estimates.high_without_model, exact_high)
    stretch_below = _stretch(share - low_without_model, share - estimates.low_without_model)
    stretch_above = _stretch(high_without_model - share, estimates.high_without_model - share)

    # The interval with a model, stretched alike
    low = estimates.value - stretch_below * (estimates.value - estimates.low)
    high = estimates.value + stretch_above * (estimates.high - estimates.value)
    return replace(
        estimates,
        low=np.maximum(low, 0),
        high=np.minimum(high, 1),
        low_without_model=low_without_model,
        high_without_model=high_without_model,
    )


def _stretch(widened: Floats, former: Floats) -> Floats:
    """Divide the widened lengths [B] of sides of intervals by the former ones [B]; 1 where these are 0."""
    return np.divide(widened, former, out=np.ones_like(former), where=former > ROUNDING)


def exact_interval(share: ArrayLike, n: ArrayLike) -> tuple[Floats, Floats]:
    """Compute the exact interval of a share, of level `MIN_LEVEL`, from n independent draws.

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
    tail = (1 - MIN_LEVEL) / 2
    # Quantiles of beta distributions, whose parameters must be above 0.
    low = betaincinv(np.maximum(n_positive, ROUNDING), n_negative + 1, tail)
    high = betaincinv(n_positive + 1, np.maximum(n_negative, ROUNDING), 1 - tail)
    return np.where(shares > 0, low, 0.0), np.where(shares < 1, high, 1.0)


class PossibleShares:
    """The positive shares that a film can have, given the cells that were judged in one draw.

    The cells that nobody judged are "left": how many of their seconds are positive, `left_s`, is all that is
    not known of the share.

    Parameters
    ----------
    content_s : ndarray, shape [C]
        Seconds of each cell.
    judged : ndarray of int, shape [n]
        Judged cells, in the order of their draw.
    labels : ndarray, shape [n]
        Their judgements, multiples of 1 / `denominator`.
    denominator : int or None
        The positive part of each cell left is a multiple of 1 / `denominator`; None if it may be any part.
    """

    def __init__(
        self, content_s: Floats, judged: NDArray[np.int64], labels: Floats, denominator: int | None = 1
    ) -> None:
        """Compute the seconds that are judged positive, and list those that the cells left can add.

        The cells left are those that nobody judged. The parameters are described at the class.
        """
        self._content_s = content_s
        self._judged = judged
        self._labels = labels
        is_judged = np.zeros(len(content_s), dtype=np.bool_)
        is_judged[judged] = True
        is_left = ~is_judged & (content_s > 0)
        cells_left_s = content_s[is_left]
        self._film_s = float(content_s.sum())
        self._judged_positive_s = float(content_s[judged] @ labels)
        self._max_left_s = float(cells_left_s.sum())  # if all cells left are positive
        self._longest_cell_s = float(cells_left_s.max(initial=0.0))  # of the cells left
        self._is_by_whole_cells = denominator is not None
        # The values that `left_s` can have, in rising order. None in two cases that are treated alike: any
        # part of a cell may be positive, or there are so many values that any number is near one of them.
        self._possible_left_s: Floats | None = None
        if denominator is not None:
            self._possible_left_s = possible_sums_s(cells_left_s, denominator)

    def move(self, value: float, low: float, high: float) -> tuple[float, float, float]:
        """Move an estimate and the ends of its interval to shares that the film can have; return all three.

        What was judged is known: the least possible share is that of a film whose other cells are negative,
        and the largest is that of a film whose other cells are all positive. The estimate is moved between
        these two. The ends are moved further, to the nearest share that whole cells can give (`interval`): an
        end that no film could have would say more than is known.
        """
        least_share = self._share_of(left_s=0.0)
        largest_share = self._share_of(left_s=self._max_left_s)
        possible_value = min(max(value, least_share), largest_share)
        possible_low, possible_high = self.interval(possible_value, low, high)
        return possible_value, possible_low, possible_high

    def interval(self, value: float, low: float, high: float) -> tuple[float, float]:
        """Move the ends of an interval around an estimate (`value`) to the nearest possible shares.

        If all judged cells are negative, or all are positive, exact bounds replace the ends. In any case the
        interval reaches as far from the estimate as a single cell can move it, the longest that nobody
        judged: no model knows how people would judge one cell.
        """
        # All content was judged: the share is known.
        if self._max_left_s == 0:
            known_share = self._share_of(left_s=0.0)
            return known_share, known_share

        # In seconds of the cells left
        exact_ends_s = self._exact_ends_s()
        if exact_ends_s is not None:
            low_s, high_s = exact_ends_s
        else:
            low_s = self._left_s_of(low)
            high_s = self._left_s_of(high)
        value_s = self._left_s_of(value)
        low_s = min(low_s, value_s - self._longest_cell_s)
        high_s = max(high_s, value_s + self._longest_cell_s)

        # Back to shares. The interval is made a little longer (`ROUNDING`), so that a film whose share is
        # exactly that of an end lies within it.
        possible_low = self._share_of(self._nearest_possible(low_s))
        possible_high = self._share_of(self._nearest_possible(high_s))
        return max(0.0, possible_low - ROUNDING), min(1.0, possible_high + ROUNDING)

    def _share_of(self, left_s: float) -> float:
        """Return the film's share if so many seconds of the cells left are positive."""
        return min(1.0, (self._judged_positive_s + left_s) / self._film_s)

    def _left_s_of(self, share: float) -> float:
        """Return how many seconds of the cells left are positive if the film's share is this one."""
        return share * self._film_s - self._judged_positive_s

    def _nearest_possible(self, left_s: float) -> float:
        """Move a number of positive seconds of the cells left to the nearest one that is possible.

        If cells are positive as a whole or not at all, only sums of their lengths are possible: of cells of
        20 and 30 s these are 0, 20, 30 and 50 s, and 22 is moved to 20. Otherwise any number from 0 to the
        sum of all is possible.
        """
        if self._possible_left_s is None:  # any number
            return min(max(left_s, 0.0), self._max_left_s)
        distances_s = np.abs(self._possible_left_s - left_s)
        return float(self._possible_left_s[distances_s.argmin()])

    def _exact_ends_s(self) -> tuple[float, float] | None:
        """Return exact bounds of the positive seconds of the cells left, if all judged cells have one label.

        If no judged cell is positive, the cells left may all be negative, and only so many seconds of them
        can be positive that a draw without any positive cell is not too unlikely (`bound_of_unseen_s`). If
        all judged cells are positive, the same holds of negative seconds.

        None if judged cells have different labels, or if any part of a cell may be positive: then no exact
        bounds are known.
        """
        if not self._is_by_whole_cells:
            return None
        are_all_negative = not self._labels.any()
        if are_all_negative:
            max_positive_s = self._bound_of_other_label_s()
            return 0.0, max_positive_s
        are_all_positive = (self._labels == 1).all()
        if are_all_positive:
            max_negative_s = self._bound_of_other_label_s()
            min_positive_s = self._max_left_s - max_negative_s
            return min_positive_s, self._max_left_s  # the latter if all cells left are positive
        return None

    def _bound_of_other_label_s(self) -> float:
        """Return an upper bound, of level .975, of the seconds that have the label that no judged cell has.

        If all judged cells are negative, it is of positive seconds; if all are positive, of negative ones.
        Such seconds can only be in the cells left, those that nobody judged.
        """
        bound_s = bound_of_unseen_s(self._content_s, self._judged)
        if self._possible_left_s is None:  # any number of seconds is possible
            return bound_s
        # As cells are positive as a whole, or by given parts, only some numbers of seconds are possible: the
        # bound is lowered to the largest of these that is not above it.
        is_within_bound = self._possible_left_s <= bound_s + SUM_SLACK_S
        return float(self._possible_left_s[is_within_bound].max())


def possible_sums_s(content_s: Floats, denominator: int = 1) -> Floats | None:
    """List the positive seconds that cells [C] can have together.

    With a `denominator` of 1, each cell is positive as a whole or not at all: two cells of 46 s and one of
    20 s can have 0, 20, 46, 66, 92 or 112 s.

    Parameters
    ----------
    content_s : ndarray, shape [C]
        Seconds of each cell.
    denominator : int
        The positive part of each cell is a multiple of 1 / `denominator`, as several judges may differ.

    Returns
    -------
    ndarray, shape [S], or None
        Possible sums in rising order; sums that are equal to a millisecond are listed once. None if there are
        more than `MAX_SUMS`.
    """
    sums = np.zeros(1)
    for cell_s, n_cells in _lengths_with_counts(content_s):
        # Together, the cells of this length add from 0 to all of their parts to each sum of those before.
        part_s = cell_s / denominator
        added_s = np.arange(n_cells * denominator + 1) * part_s
        all_sums = np.add.outer(sums, added_s).ravel()
        # `unique` sorts the sums, and finds the first of those that are equal to a millisecond.
        _, indices = np.unique(np.round(all_sums, 3), return_index=True)
        sums = all_sums[indices]
        if len(sums) > MAX_SUMS:
            return None
    return sums


def _lengths_with_counts(content_s: Floats) -> list[tuple[float, int]]:
    """List the different lengths of cells in seconds, each with the number of cells that have it.

    Lengths that are equal to a millisecond are listed once.
    """
    _, indices, counts = np.unique(np.round(content_s, 3), return_index=True, return_counts=True)
    return list(zip(content_s[indices].tolist(), counts.tolist(), strict=True))


def bound_of_unseen_s(content_s: Floats, order: NDArray[np.int64]) -> float:
    """Compute an upper bound, of level .975, of a film's positive seconds if no judged cell is positive.

    Parameters
    ----------
    content_s : ndarray, shape [C]
        Seconds of each cell.
    order : ndarray of int, shape [n]
        Judged cells, in the order of a successive draw.

    Returns
    -------
    float
        Seconds.

    Notes
    -----
    If S seconds of the film are positive, the next cell drawn is negative with the chance 1 - S / left, where
    `left` are the seconds of the cells not drawn before. The product of these chances over the draw is the
    chance that all judged cells are negative. The bound is the largest S for which it is at least .025
    ((1 - `LEVEL`) / 2, for one end of an interval). If more seconds are positive, at most .025 of draws give
    a bound below them. For cells of equal content the chance is that of the hypergeometric distribution.
    """
    from scipy.optimize import brentq  # noqa: PLC0415 - slow, and films are opened without it

    drawn_s = content_s[order]
    drawn_before_s = np.concatenate([[0.0], np.cumsum(drawn_s)[:-1]])
    left_s = content_s.sum() - drawn_before_s  # [n]: before each cell was drawn
    never_drawn_s = max(float(left_s[-1] - drawn_s[-1]), 0.0)
    log_least_chance = float(np.log((1 - LEVEL) / 2))

    def log_excess(positive_s: float) -> float:
        """Return log(chance that all judged cells are negative) - log(.025): negative above the bound."""
        positive_shares = np.minimum(positive_s / left_s, BELOW_ONE)
        return float(np.log1p(-positive_shares).sum()) - log_least_chance

    # Only what was never drawn can be positive: that is the bound if its chance is large enough.
    if log_excess(never_drawn_s) >= 0:
        return never_drawn_s
    return float(brentq(log_excess, 0.0, never_drawn_s))


def _estimate_sequential_poisson(cells: Cells, judged: NDArray[np.int64], y: Floats) -> Estimates:
    """Estimate rates from draws by sequential Poisson sampling.

    Long cells are certain to be drawn, and their positive share of the film is counted. The other cells are
    drawn by chance, and their rate is estimated:

        rate = positive share of certain cells + share of the other cells * rate of the other cells

    Shares are of the film's content.

    Parameters
    ----------
    cells : Cells
        The C cells of the film.
    judged : ndarray of int, shape [B, n]
        The judged cells of B draws.
    y : ndarray, shape [B, n]
        Their judgements, 0 to 1.
    """
    chances = inclusion_chances(cells.content_s, judged.shape[1], SEQUENTIAL_POISSON)
    is_certain = chances >= 1  # [C]

    # The certain cells: the share of the film of each one; 0 for other judged cells.
    shares = np.where(is_certain, cells.content_s / cells.content_s.sum(), 0.0)[judged]  # [B, n]
    certain_positive_share = (shares * y).sum(axis=1)
    certain_share = shares.sum(axis=1)

    others_s = cells.content_s[~is_certain]
    if not others_s.any():
        # All content was judged. The share of certain cells is 1 but for rounding, so that dividing by it
        # gives exactly 1 where all cells are positive.
        return _without_error(certain_positive_share / certain_share)

    # The other cells count equally in their rate, as they were drawn with chances in proportion to their
    # content; certain ones do not count in it.
    weights = (~is_certain)[judged].astype(np.float64)
    p_of_others = _mean_and_variance(cells.p[~is_certain], others_s)
    rate_of_others = difference_estimate(
        y,
        cells.p[judged],
        weights,
        chances[judged],
        film_p=p_of_others.mean,
        film_variance=p_of_others.variance,
        is_chance_by_label=False,  # as earlier versions estimated
    )
    # Earlier versions showed intervals from `MIN_SURE_WINDOWS` judgements on, and these stay as they were.
    # Intervals of fewer judgements are new, and would be too short.
    if y.shape[1] < MIN_SURE_WINDOWS:
        rate_of_others = widened_to_exact(rate_of_others, y, weights, chances[judged])
    return _rescaled(rate_of_others, offset=certain_positive_share, factor=1 - certain_share)


def _without_error(rate: Floats) -> Estimates:
    """Return the estimates of B films' rates [B] of which all content was judged, and nothing is uncertain.

    Such rates are counted: both ends of each interval are the rate, and no model is used.
    """
    return Estimates(
        value=rate,
        low=rate,
        high=rate,
        gain=np.zeros(len(rate)),
        value_without_model=rate,
        low_without_model=rate,
        high_without_model=rate,
    )


def _rescaled(estimates: Estimates, offset: Floats, factor: Floats) -> Estimates:
    """Return the estimates of offset + factor * rate [B], with their intervals, from those of the rate."""
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
    unsure_p: ArrayLike = (),
    unsure_weights: ArrayLike = (),
    is_chance_by_label: bool = True,
) -> Estimates:
    """Estimate the positive share of a population of cells from a sample that was drawn and judged.

    The positive share of the sample is corrected by how much the model's mean probability over the sample
    differs from that over the population, so that the estimate is nearly right whatever errors the model
    makes:

        rate = mean_y + gain (film_p - mean_p)

    Here mean_y is the positive share of the sample, mean_p the model's mean over it, film_p its mean over the
    population, and the gain says how far the model is trusted: 0 not at all, 1 fully.

    The interval is that of a score test (`_ScoreTest`). Sources: Cassel, Särndal and Wretman, Biometrika 1976
    (difference estimate); Angelopoulos et al., Science 2023 (prediction-powered inference); Angelopoulos,
    Duchi and Zrnic 2023 (the gain of the smallest variance).

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
        Mean and variance of p over the population, all cells that may be drawn, weighted by content.
    unsure_p, unsure_weights : array-like, shape [m]
        Probabilities and weights of further cells of each sample, of which judges were not sure. They count
        in the sample's mean p, as cells like them do in that of the population, and not in the rate.
    is_chance_by_label : bool
        Whether the variance accounts for positive cells that are drawn more, or less, often than others, as
        they may be longer or shorter.
    """
    from scipy.special import ndtri  # noqa: PLC0415 - slow, and films are opened without it

    # 1. mean_y: over the cells that judges were sure of
    labels = np.asarray(y, dtype=np.float64)
    judged_p = np.asarray(p, dtype=np.float64)
    raw_weights = np.asarray(weights, dtype=np.float64)
    weight_of_sure = raw_weights.sum(axis=1)  # [B]
    parts = raw_weights / weight_of_sure[:, None]  # weights that add up to 1 in each draw
    mean_y = (parts * labels).sum(axis=1)

    # 2. mean_p: over all cells of each sample, those that judges were not sure of among them
    p_of_unsure = np.asarray(unsure_p, dtype=np.float64)
    weights_of_unsure = np.asarray(unsure_weights, dtype=np.float64)
    share_sure = weight_of_sure / (weight_of_sure + weights_of_unsure.sum())
    sum_of_p = (raw_weights * judged_p).sum(axis=1) + weights_of_unsure @ p_of_unsure
    mean_p = sum_of_p / (weight_of_sure + weights_of_unsure.sum())

    # 3. What the gain follows from: how much higher p is in positive cells than in negative ones, and how
    # much p varies. If the model contradicts the judges, or says the same of every cell, the difference is
    # set to 0, and so the model is not used.
    variance_p = np.maximum(film_variance, MIN_VARIANCE)
    means_p = _means_by_label(parts, labels, judged_p)
    difference_p = np.maximum(means_p.positives - means_p.negatives, 0)
    difference_p = np.where(variance_p > MIN_VARIANCE, difference_p, 0)

    # 4. The test tells which rates are compatible with the judgements. Its estimate is the rate of the
    # formula above, where the gain depends on the rate itself.
    with_model = _ScoreTest(
        mean_y=mean_y,
        mean_p=mean_p,
        share_sure=share_sure,
        film_p=film_p,
        variance_p=variance_p,
        difference_p=difference_p,
        variance_factors=_variance_factors(parts, labels, np.asarray(chances, dtype=np.float64)),
        z_squared=float(ndtri((1 + LEVEL) / 2)) ** 2,
        is_chance_by_label=is_chance_by_label,
    )
    without_model = replace(with_model, uses_model=False)

    value, low, high = with_model.interval()
    value_without_model, low_without_model, high_without_model = without_model.interval()
    return Estimates(
        value=value,
        low=low,
        high=high,
        gain=with_model.gain(value),
        value_without_model=value_without_model,
        low_without_model=low_without_model,
        high_without_model=high_without_model,
    )


@dataclass(frozen=True, eq=False, slots=True)
class _ScoreTest:
    """Test for each of B draws which rates the judgements are compatible with.

    A score test computes the standard error at the rate that is tested, and not at the estimate. If the rate
    of positive cells is `rate`, then

        variance_y = rate (1 - rate)                    of the judgements
        covariance = variance_y difference_p            of judgements and probabilities
        gain       = covariance / variance_p            cut to 0 and 1
        variance   = variance_y - share_sure (2 gain covariance - gain² variance_p)
        error²     = variance variance_factor           of the estimate

    If judges were sure of all judged cells, `variance` is that of y - gain p. Otherwise `share_sure` of them
    say something of the rate, and all of them of the mean of p: the estimate is that of a ratio, of the
    positive cells among those that judges are sure of.

    The gain is the slope of judgements on probabilities, with which y - gain p varies least: 0 for a useless
    model, 1 for a calibrated one. A rate is rejected if it lies more than z errors from the estimate.

    Attributes
    ----------
    mean_y, mean_p : ndarray, shape [B]
        Weighted means of the judgements over the cells that judges were sure of, and of p over all judged
        cells.
    share_sure : ndarray, shape [B]
        Share of the judged cells, by their weights, that judges were sure of.
    film_p : float or ndarray, shape [B]
        The film's mean of p.
    variance_p : ndarray, shape [B]
        The film's variance of p.
    difference_p : ndarray, shape [B]
        Mean of p over the judged positive cells less that over the judged negative ones, at least 0.
    variance_factors : _MeansByLabel
        See `_variance_factors`.
    z_squared : float
        Square of z, the number of standard errors on either side of the estimate.
    is_chance_by_label : bool
        Whether the variance factor depends on the rate; else it is the mean over all cells.
    uses_model : bool
        If False, the gain is 0.
    """

    mean_y: Floats
    mean_p: Floats
    share_sure: Floats
    film_p: float | Floats
    variance_p: Floats
    difference_p: Floats
    variance_factors: "_MeansByLabel"
    z_squared: float
    is_chance_by_label: bool
    uses_model: bool = True

    def interval(self) -> tuple[Floats, Floats, Floats]:
        """Return the estimate, and the low and the high end of its interval.

        At the estimate, `distance` is 0; at the low end it is - `margin`, and at the high end + `margin`.
        """

        def beyond_high_end(rate: Floats) -> Floats:
            """Return how far a rate lies above the high end: negative within the interval."""
            return self.distance(rate) - self.margin(rate)

        def within_low_end(rate: Floats) -> Floats:
            """Return how far a rate lies above the low end: negative outside the interval."""
            return self.distance(rate) + self.margin(rate)

        zeros = np.zeros(len(self.mean_y))
        ones = np.ones(len(self.mean_y))
        value = _root(self.distance, zeros, ones)
        high = _root(beyond_high_end, value, ones)
        low = _root(within_low_end, zeros, value)
        return value, low, high

    def gain(self, rate: Floats) -> Floats:
        """Return how far the model's probabilities p are trusted in the estimates, 0 to 1, at rates [B].

        It is the slope of judgements on probabilities: their covariance, rate (1 - rate) difference_p,
        divided by the variance of p. It is 0 if the test does not use the model.
        """
        if not self.uses_model:
            return np.zeros_like(rate)
        slope = rate * (1 - rate) * self.difference_p / self.variance_p
        return np.asarray(np.clip(slope, 0, 1))

    def distance(self, rate: Floats) -> Floats:
        """Return how far rates [B] lie above their estimates; an estimate depends on the rate by the gain."""
        return np.asarray(rate - self.mean_y + self.gain(rate) * (self.mean_p - self.film_p))

    def margin(self, rate: Floats) -> Floats:
        """Return z standard errors of the estimates if the rates are these [B].

        The steps are the class's formulas: the variance of a single cell's judgement, less what the model
        saves of it, times the factor that makes of it the variance of the estimate.
        """
        variance_y = rate * (1 - rate)
        gain = self.gain(rate)
        # 2 gain covariance - gain² variance_p, where the covariance is variance_y difference_p.
        saved_by_model = 2 * gain * variance_y * self.difference_p - gain * gain * self.variance_p
        variance = variance_y - self.share_sure * saved_by_model
        if self.is_chance_by_label:  # positive and negative cells have chances of their own to be drawn
            variance_factor = self.variance_factors.at_rate(rate)
        else:
            variance_factor = self.variance_factors.all_cells
        # Rounding may bring a variance of 0 below 0.
        return np.asarray(np.sqrt(self.z_squared * variance_factor * np.maximum(variance, 0)))


@dataclass(frozen=True, eq=False, slots=True)
class _MeansByLabel:
    """Means over all judged cells of B draws, over the positive ones and over the negative ones, each [B]."""

    all_cells: Floats
    positives: Floats
    negatives: Floats

    def at_rate(self, rate: Floats) -> Floats:
        """Return the mean over all cells that is expected if the share `rate` [B] of them is positive.

        It is for means of variance factors (`_variance_factors`): a cell adds to the variance of the judged
        rate its squared deviation from this rate, times its variance factor. `positives` and `negatives` are
        the mean factors of cells of either label. If the share `rate` of cells is positive (1) and the others
        are negative (0), the mean is `rate`, and the squared deviations are

            positive cells: a share `rate` with (1 - rate)², so that they add rate (1 - rate)² positives
            negative cells: a share 1 - rate with rate², so that they add (1 - rate) rate² negatives

        The sum is rate (1 - rate) ((1 - rate) positives + rate negatives). Its first part, rate (1 - rate),
        is the variance of a single judgement, by which the caller multiplies; the last one is the factor.
        """
        factor_of_positives = (1 - rate) * self.positives
        factor_of_negatives = rate * self.negatives
        return factor_of_positives + factor_of_negatives


def _variance_factors(weights: Floats, labels: Floats, chances: Floats) -> _MeansByLabel:
    """Compute by what the variance of one judgement is multiplied to give that of their weighted mean.

    The variance of a weighted mean is the sum of weights² times the variance of one judgement. A cell that is
    drawn in any case (chance 1) adds nothing, as it does not vary between draws. So the factor is

        sum of weights² (1 - chances)  =  sum of weights * value,  with value = weights (1 - chances)

    which is the weighted mean of a value of each cell. Positive and negative cells may have other chances:
    the same mean is also returned of each of the two.

    Parameters
    ----------
    weights : ndarray, shape [B, n]
        Weights of the judged cells of each of B draws, which add up to 1.
    labels : ndarray, shape [B, n]
        Their judgements, 0 to 1.
    chances : ndarray, shape [B, n]
        How probable it was that each cell is drawn.
    """
    return _means_by_label(weights, labels, values=(1 - chances) * weights)


def _means_by_label(weights: Floats, labels: Floats, values: Floats) -> _MeansByLabel:
    """Average values [B, n] by weights [B, n] that add up to 1 in each draw, over all cells and by label.

    If all judged cells have one label, there are none to average of the other. So one made-up cell is added
    to the positives, and one to the negatives: its value is the mean over all cells, and its weight is 1 / n,
    that of a judged cell on average. The mean of the positives is then

        (sum of weights * values of positives  +  mean / n)  /  (sum of weights of positives  +  1 / n)

    An example, of n = 2 cells of weight 1/2, a positive of value 3 and a negative of value 1: the mean is 2,
    that of the positives (1.5 + 1) / (.5 + .5) = 2.5, and that of the negatives 1.5.
    """
    n = (weights > 0).sum(axis=1)  # [B]: cells of each draw; others of a row only fill it up
    mean = (weights * values).sum(axis=1)
    positive_weight = (weights * labels).sum(axis=1)
    sum_of_positives = (weights * labels * values).sum(axis=1)
    sum_of_negatives = mean - sum_of_positives
    # Numerator and denominator are multiplied by n.
    return _MeansByLabel(
        all_cells=mean,
        positives=(n * sum_of_positives + mean) / (n * positive_weight + 1),
        negatives=(n * sum_of_negatives + mean) / (n * (1 - positive_weight) + 1),
    )


def _root(function: Callable[[Floats], Floats], below: Floats, above: Floats) -> Floats:
    """Find the roots [B] of a function that is at most 0 at `below` and at least 0 at `above`.

    The interval between the two is halved `BISECTIONS` times, for all roots at once. The roots
    are rounded to 12 decimals.

    Parameters
    ----------
    function : callable
        From numbers [B] to values [B]; each value depends on the number at its place.
    below, above : ndarray, shape [B]
    """
    for _ in range(BISECTIONS):
        middle = (below + above) / 2
        is_below_root = function(middle) <= 0
        below = np.where(is_below_root, middle, below)
        above = np.where(is_below_root, above, middle)
    return np.round((below + above) / 2, 12)
