"""Estimate mean rates of groups of films, and a trend, from blind judgements in some of the films.

Films are the units, and two things are drawn: the films, from a population of films like these, and the
windows that people judge blindly, in some of the films. Prediction-powered inference (Angelopoulos et al.,
Science 382:669, 2023) uses the model in both places, and is right whatever errors the model makes:

* within a judged film, the rate is the share of its judged windows, less g times the model's mean over
  these windows, plus g times the model's mean over the film (the difference estimate);
* between films, the mean of the judged films is moved by b times the distance of the model's mean over all
  films from its mean over the judged ones (regression with double sampling: Cochran, Sampling Techniques,
  1977, chapter 12). Where all films are judged, nothing is moved: films whose windows are all judged too have
  the least-squares mean or slope of their shares, each film with the same weight.

The slopes g and b, within 0 and 1 (power tuning: Angelopoulos, Duchi and Zrnic 2023, PPI++), are those of
the other judged films, so that no film has a part in its own (cross-prediction: Zrnic and Candès, PNAS
2024).

The variance is that of the judged films' estimates around their group, which has the variance between films
and within films in it (two-stage sampling: Cochran, chapter 10), with that of the model's means of all
films. Groups and trends are coefficients of one linear model: residuals are scaled (HC2), and Student's t
has Satterthwaite's degrees of freedom (Bell and McCaffrey, Survey Methodology 28, 2002). Rates near 0 are
skewed: the interval of a mean is a score interval like Wilson's with an effective sample size (Dean and
Pagano, J. Survey Statistics and Methodology 3, 2015).

A difference of two groups is the slope on 0 and 1, so that differences and trends are one contrast. Where
films were judged by different people, each judge's share of a film's judgements is a covariate of the judged
films, as judges differ; a contrast that judges and groups don't tell apart is refused. Of rare things films
without any have no residuals, and the robust variance is too small: the interval is the wider one of it and
of the classical one. `benchmarks/planted/films.py` measures the coverage.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from obygaze_film.cells import Cells
from obygaze_film.draws import SUCCESSIVE, Sampling, inclusion_chances
from obygaze_film.notes import judge_name, message
from obygaze_film.rate_estimates import LEVEL, MIN_VARIANCE

Floats = NDArray[np.float64]

MIN_FILMS: Final = 5
"""Minimum number of judged films of a group; of fewer, an interval of rare things is too narrow."""

MIN_FILMS_OF_TREND: Final = 10
"""Minimum number of judged films of a trend."""

POWER: Final = 1.5
"""The variance of a mean rate R over films is proportional to (R (1 - R)) to this power (`_VarianceOfMean`).

It lies between 1, as for windows (Wilson's interval), and 2, as for films that differ in their odds."""

MIN_SPREAD = 1e-9
"""Difference of shares below which they are equal but for rounding."""

MIN_SINGULAR = 1e-9
"""Singular values of a design below this part of the largest one count as 0."""

MIN_FREE = 1e-9
"""1 - leverage below which a film is fitted exactly, but for rounding."""

MIN_WEIGHT = 1e-9
"""Weight in a coefficient below which a film has none, but for rounding."""

MIN_SUM_OF_SQUARES = 1e-12
"""Sum of squares below which values do not vary, but for rounding."""

TINY: Final = 1e-300
"""Taken in place of a variance of 0, so that it can be divided by."""


@dataclass(frozen=True, slots=True)
class FilmSample:
    """One film: the model's mean, and its judged windows if there are any.

    Attributes
    ----------
    expected : float
        Mean probability over the film's content.
    judged : float
        Positive share of the judged windows; NaN without any.
    drawn : float
        Mean probability over the windows that were drawn and judged, surely or not.
    covariance, variance : float
        Covariance of `judged` and `drawn`, and variance of `drawn`, over draws of the judged windows.
    n : int
        Number of judged windows that judges were sure of.
    judges : mapping of str to float
        Each judge's share of the judgements.
    """

    expected: float
    judged: float = np.nan
    drawn: float = np.nan
    covariance: float = np.nan
    variance: float = np.nan
    n: int = 0
    judges: Mapping[str, float] = field(default_factory=dict)


def sample_of(
    cells: Cells,
    judged: NDArray[np.int64],
    y: Floats,
    judges: Mapping[str, Floats] | None = None,
    *,
    unsure: Sequence[int] = (),
    sampling: Sampling = SUCCESSIVE,
) -> FilmSample:
    """Summarise a film and its judged cells, which `Cells.order_of_draw` drew, for a comparison of films.

    The summary has the positive share of the judged cells, the model's means over these cells and over the
    film, and how much both would vary between draws.

    Parameters
    ----------
    cells : Cells
        All cells of the film, those of which nobody was sure among them.
    judged : ndarray of int, shape [n]
        Indices of the judged cells that judges were sure of.
    y : ndarray, shape [n]
        Their judgements: 0 is negative, 1 positive, a fraction the share of judges who called it positive.
    judges : mapping of str to ndarray, shape [n], optional
        Judge -> their part of each cell's judgement (`judged_windows.Votes.judge_shares`).
    unsure : sequence of int
        Cells that were judged too, and that judges were not sure of. They count in the model's mean over the
        judged cells, because cells like them count in its mean over the film; they do not count in the
        positive share.
    sampling : str
        Method by which the cells were drawn.
    """
    film_p = float(np.average(cells.p, weights=cells.content_s))
    n = len(judged)
    if not n:
        return FilmSample(expected=film_p)

    # Means over the judged cells, each weighted by content / chance of being drawn (Hájek's estimator). There
    # are two sets of weights, each of sum 1: of all cells drawn, and of those that judges were sure of.
    drawn = np.concatenate([judged, np.array(unsure, dtype=np.int64)])  # the first n were judged surely
    chances = inclusion_chances(cells.content_s, len(drawn), sampling)[drawn]
    raw_weights = cells.content_s[drawn] / chances
    weights_of_drawn = raw_weights / raw_weights.sum()
    weights_of_sure = raw_weights[:n] / raw_weights[:n].sum()
    p_of_sure = cells.p[judged]
    mean_y = float(weights_of_sure @ y)
    mean_p_of_drawn = float(weights_of_drawn @ cells.p[drawn])

    # How single windows vary. The variance of p is that of all windows of the film, as the model's
    # probability of each is known; the covariance of p and judgements is only known from the judged ones.
    covariance_of_windows = _sample_covariance(
        y - mean_y, p_of_sure - float(weights_of_sure @ p_of_sure), weights_of_sure
    )
    variance_of_windows = float(np.average((cells.p - film_p) ** 2, weights=cells.content_s))
    # Their mean varies less, by this factor.
    factor_of_mean = _variance_factor_of_mean(weights_of_drawn, chances)

    judge_shares = {}
    for name, shares in (judges or {}).items():
        judge_shares[name] = float(weights_of_sure @ shares)
    return FilmSample(
        expected=film_p,
        judged=mean_y,
        drawn=mean_p_of_drawn,
        covariance=factor_of_mean * covariance_of_windows,
        variance=factor_of_mean * variance_of_windows,
        n=n,
        judges=judge_shares,
    )


def _sample_covariance(distances: Floats, other_distances: Floats, weights: Floats) -> float:
    """Estimate the covariance of two values of a window, by their distances [n] from the means of n windows.

    As these are the means of the drawn windows, the weighted mean of products is too small by n / (n - 1).
    """
    n = len(weights)
    return float(weights @ (distances * other_distances)) * n / max(n - 1, 1)


def _variance_factor_of_mean(weights: Floats, chances: Floats) -> float:
    """Return the variance of a weighted mean of n drawn windows, in parts of the variance of a single window.

    It is the sum of squared weights [n]. Each is multiplied by 1 - the window's chance to be drawn [n], as
    windows are drawn from a finite film: the mean of windows that are all certain to be drawn does not vary.
    """
    return float(((1 - chances) * weights**2).sum())


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean, a difference or a slope with its 95 % interval, or the reason why there is none.

    Attributes
    ----------
    value, low, high : float
        NaN if it is refused.
    sample_size_ratio : float
        Of a mean: how many times as many judgements would be needed without the model.
    reason : str
    n_with_rarer_answer : int
        The smaller of two numbers: judged films with any positive window, and with any negative window.
    accounts_for_judges : bool
        Of a contrast: whether films were judged by different people, and it accounts for who judged which.
    """

    value: float = np.nan
    low: float = np.nan
    high: float = np.nan
    sample_size_ratio: float = np.nan
    reason: str = ""
    n_with_rarer_answer: int = 0
    accounts_for_judges: bool = False


def estimate_groups(groups: Sequence[Sequence[FilmSample]]) -> list[Estimate]:
    """Estimate the mean rate of the films of each group.

    The groups are the columns of one linear model, in which each film has a 1 in the column of its group: the
    coefficient of a column is then the mean of its films. The model is also fitted without the scoring
    model's probabilities, which tells how many judgements these save.

    Parameters
    ----------
    groups : sequence of sequence of FilmSample
        In each, at least `MIN_FILMS` films are judged.

    Returns
    -------
    list of Estimate
        Of each group, in their order.
    """
    films = [film for group in groups for film in group]
    sizes = [len(group) for group in groups]
    design = np.repeat(np.eye(len(groups)), sizes, axis=0)  # [films, groups]: 1 if a film is in a group
    with_model = _fit(design, films, use_model=True)
    without_model = _fit(design, films, use_model=False)

    estimates = []
    for index, group in enumerate(groups):
        shares = [film.judged for film in group if film.n]
        interval = _interval(with_model, index, shares)
        interval_without_model = _interval(without_model, index, shares)
        estimates.append(
            Estimate(
                value=_cut_to_share(with_model.values[index]),
                low=interval.low,
                high=interval.high,
                sample_size_ratio=_sample_size_ratio(interval, interval_without_model),
                n_with_rarer_answer=_n_with_rarer_answer(np.array(shares)),
            )
        )
    return estimates


class _Interval(NamedTuple):
    """The ends of an interval of a mean rate."""

    low: float
    high: float


def _sample_size_ratio(interval: _Interval, without_model: _Interval) -> float:
    """Return how many times as many judgements an interval of the same width needs without the model.

    The number of judgements is proportional to 1 / width². For an interval of no width the ratio is not
    defined, and 1 is returned.
    """
    width = interval.high - interval.low
    width_without_model = without_model.high - without_model.low
    return (width_without_model / width) ** 2 if width > 0 else 1.0


def _cut_to_share(value: float) -> float:
    """Return a value, moved to 0 or 1 if it lies below or above."""
    return min(max(float(value), 0.0), 1.0)


def estimate_contrast(films: Sequence[FilmSample], x: Floats) -> Estimate:
    """Estimate the least-squares slope of films' rates on a number x [N]: a year, or 0 and 1 for two groups.

    There is no estimate in two cases:

    - the judged films of a trend, or of one of two groups, all have the same share, so that nothing is known
      of how films differ;
    - the films were judged by different people, and x can't be told apart from who judged: the fit does not
      determine the slope, or gives a larger one than rates can have. Means of two groups differ by at most 1:
      a larger difference was made of differences between judges.
    """
    is_judged = np.array([film.n > 0 for film in films])
    shares = np.array([film.judged for film in films])[is_judged]
    n_with_rarer_answer = _n_with_rarer_answer(shares)
    judges = _judge_covariates(films)
    has_different_judges = judges.shape[1] > 0

    # Fit a mean and a slope on x, scaled to at most 1: tolerances then mean the same for years and shares.
    distances = x - x.mean()
    scale = float(np.abs(distances).max()) or 1.0
    design = np.column_stack([np.ones(len(x)), distances / scale])
    slope = 1  # index of the slope's coefficient; that of the mean is 0
    fit = _fit(design, films, use_model=True, judges=judges)
    value = float(fit.values[slope]) / scale
    largest = _largest_slope(x)

    # Is there a reason to give no estimate?
    reason = _why_all_alike(shares, x[is_judged])
    if not reason and has_different_judges:
        can_rates_have_slope = abs(value) <= largest + MIN_SPREAD
        can_be_told_from_judges = fit.is_determined[slope] and can_rates_have_slope
        if not can_be_told_from_judges:
            reason = _why_confounded_with_judges(films)
    if reason:
        return Estimate(reason=reason, n_with_rarer_answer=n_with_rarer_answer)

    half_width = _half_width_of_contrast(fit, slope) / scale
    return Estimate(
        value=_cut_to_size(value, largest),
        low=_cut_to_size(value - half_width, largest),
        high=_cut_to_size(value + half_width, largest),
        n_with_rarer_answer=n_with_rarer_answer,
        accounts_for_judges=has_different_judges,
    )


def _largest_slope(x: Floats) -> float:
    """Return the largest slope that rates of films can have on a number x [N], such as the year.

    Rates lie between 0 and 1. So if x has two values, as for two groups of films, their mean rates differ by
    at most 1, and the slope is at most 1 over the difference of the values. Of a trend over more values it is
    not limited here: infinity.
    """
    is_of_two_groups = len(np.unique(x)) == 2
    if not is_of_two_groups:
        return np.inf
    difference_of_groups = float(np.ptp(x))
    return 1 / difference_of_groups


def _cut_to_size(slope: float, largest: float) -> float:
    """Return a slope, moved to the nearest one whose size is at most `largest`."""
    return float(np.clip(slope, -largest, largest))


def _why_confounded_with_judges(films: Sequence[FilmSample]) -> str:
    """Write why there is no estimate where films that differ in what is compared differ in their judges too.

    An example: AB judged the films of the sixties, and CD those of today. Then no films, or a single one,
    tell whether the decades differ or the judges, whom the reason names.
    """
    names = {name for film in films for name in film.judges}
    return message("reason_judges", names=", ".join(judge_name(name) for name in sorted(names)))


def _half_width_of_contrast(fit: "_Fit", index: int) -> float:
    """Return half the width of the interval of a contrast, coefficient `index` of a fit.

    It is computed twice, and the wider one is returned: with the robust variance, which lets films vary
    differently, and with the classical one, by which all films vary alike. Of something rare most films show
    nothing: their residuals are 0, and the robust variance, which is made of these, is too small.
    """
    robust_half_width = _half_width(fit.robust_variances[index], fit.robust_freedom[index])
    # One number of degrees of freedom serves all coefficients if films vary alike.
    classical_half_width = _half_width(fit.classical_variances[index], fit.classical_freedom)
    return float(max(robust_half_width, classical_half_width))


def _n_with_rarer_answer(shares: Floats) -> int:
    """Count the films with any positive window, and those with any negative one; return the smaller count.

    `shares` [n] are the films' shares of positive windows.
    """
    n_with_positives = (shares > MIN_SPREAD).sum()
    n_with_negatives = (shares < 1 - MIN_SPREAD).sum()
    return int(min(n_with_positives, n_with_negatives))


def _why_all_alike(shares: Floats, x: Floats) -> str:
    """Return the reason for no estimate if judged films have equal shares [n]; "" if their shares differ.

    Films that are all alike say nothing of how films differ by chance. If x [n] has two values, they are two
    groups, and within each of them shares must differ. Otherwise x is the number of a trend, such as a year,
    and it is enough that not all shares are equal.
    """
    groups = np.unique(x)
    is_trend = len(groups) != 2
    if is_trend:
        are_all_equal = np.ptp(shares) < MIN_SPREAD
        return message("reason_alike") if are_all_equal else ""
    n_alike = sum(np.ptp(shares[x == group]) < MIN_SPREAD for group in groups)
    if n_alike == 0:
        return ""
    return message("reason_alike_groups" if n_alike == 2 else "reason_alike_group")


def _half_width(variance: float, freedom: float) -> float:
    """Return half the width of Student's interval of a coefficient with a variance and degrees of freedom."""
    from scipy.special import stdtrit  # noqa: PLC0415 - slow, and films are opened without it

    quantile = stdtrit(freedom, (1 + LEVEL) / 2)  # of Student's t: .975 for a level of .95
    return float(quantile * np.sqrt(variance))


def _judge_covariates(films: Sequence[FilmSample]) -> Floats:
    """Make a column for each judge with their share of the judgements of each judged film; returns [n, j].

    The first of J judges has no column, because the shares of a film add up to 1. Columns that are the same
    in all films are dropped, as they cannot explain how films differ. So j is at most J - 1.
    """
    shares_of_films = [film.judges for film in films if film.n]  # of each judged film, judge -> share
    names = sorted({name for shares in shares_of_films for name in shares})
    names_with_column = names[1:]
    columns = np.zeros((len(shares_of_films), len(names_with_column)))
    for row, shares in enumerate(shares_of_films):
        for column, name in enumerate(names_with_column):
            columns[row, column] = shares.get(name, 0.0)
    if not columns.size:
        return columns
    varies = np.ptp(columns, axis=0) > MIN_SPREAD
    return columns[:, varies]


@dataclass(frozen=True, eq=False, slots=True)
class _Fit:
    """Coefficients of a design [k]; see `_fit`.

    Attributes
    ----------
    values : ndarray, shape [k]
    robust_variances, robust_freedom : ndarray, shape [k]
        Variances of the values if each film may vary in its own way, and their degrees of freedom.
    classical_variances : ndarray, shape [k]
        Variances under the assumption that the residuals of all films have the same variance.
    classical_freedom : int
        The degrees of freedom of these: judged films less columns of their design.
    is_determined : ndarray of bool, shape [k]
        Whether the judged films determine a coefficient, also if any one of them is left out.
    """

    values: Floats
    robust_variances: Floats
    robust_freedom: Floats
    classical_variances: Floats
    classical_freedom: int
    is_determined: NDArray[np.bool_]


@dataclass(frozen=True, eq=False, slots=True)
class _SampleArrays:
    """The fields of N films' samples (`FilmSample`) as arrays [N].

    All but `expected` are NaN where nobody judged a film.
    """

    expected: Floats
    judged: Floats
    drawn: Floats
    covariance: Floats
    variance: Floats

    @classmethod
    def of(cls, films: Sequence[FilmSample]) -> "_SampleArrays":
        """Make for each field the array of its values in the films' samples."""
        return cls(
            expected=np.array([film.expected for film in films]),
            judged=np.array([film.judged for film in films]),
            drawn=np.array([film.drawn for film in films]),
            covariance=np.array([film.covariance for film in films]),
            variance=np.array([film.variance for film in films]),
        )


class _LeastSquares:
    """Least squares on a design [n, k], in which each row is a film.

    Attributes
    ----------
    design : ndarray, shape [n, k]
    inverse : ndarray, shape [k, n]
        The design's pseudo-inverse: its product with values [n] is the coefficients [k]. So its row of a
        coefficient holds the weight of each film's value in that coefficient.
    free : ndarray, shape [n]
        1 - leverage of each film: the part of its variance that its residual keeps. It is 0 for a film that
        is fitted exactly, such as the only film of a group.
    divisor : ndarray, shape [n]
        `free`, but at least `MIN_FREE`, so that it can be divided by.
    """

    def __init__(self, design: Floats) -> None:
        """Compute once what fits on this design need: the weights of films, and how freely each film varies.

        A fit draws towards each film, the more so the higher its leverage: its residual keeps the part
        1 - leverage (`free`) of its variance. Variances are divided by this part to make up for it.
        """
        self.design = design
        # Combinations of columns that are 0 but for rounding (`MIN_SINGULAR`) count as none.
        self.inverse: NDArray[Any] = np.linalg.pinv(design, MIN_SINGULAR)
        leverages = (design * self.inverse.T).sum(axis=1)  # diagonal of the hat matrix, design @ inverse
        self.free: Floats = 1 - leverages
        self.divisor: Floats = np.maximum(self.free, MIN_FREE)  # so that nothing is divided by 0

    def residuals(self, values: Floats) -> Floats:
        """Return values [n] minus their fitted values [n]."""
        fitted = self.design @ (self.inverse @ values)
        residuals: Floats = values - fitted
        return residuals

    def is_determined(self, n_columns: int) -> NDArray[np.bool_]:
        """Return which of the first `n_columns` coefficients the films determine, with any one film left out.

        - All films together determine a coefficient if its column of the design is no combination of the
          other columns. Then fitting this column gives the coefficient 1: the diagonal element of
          inverse @ design.
        - A film that is fitted exactly (`free` is 0) is the only one to say something, such as the only film
          that a person judged. Without it, coefficients in which it has a weight are not determined any more.
          What any other film says can be told from the rest, so that leaving it out changes nothing here.
        """
        is_determined_by_all = np.isclose(np.diag(self.inverse @ self.design)[:n_columns], 1)
        is_fitted_exactly = self.free < MIN_FREE
        weights_of_exact_films = self.inverse[:n_columns, is_fitted_exactly]
        needs_no_exact_film = np.all(np.abs(weights_of_exact_films) < MIN_WEIGHT, axis=1)
        return np.logical_and(is_determined_by_all, needs_no_exact_film)

    def degrees_of_freedom(self, n_columns: int) -> Floats:
        """Return Satterthwaite's degrees of freedom of the first `n_columns` coefficients' robust variances.

        The robust (HC2) variance of a coefficient is the sum of weight² residual² / free over the films. The
        residuals are M e, where e are the films' errors and M = 1 - design inverse is symmetric. So the
        variance is the quadratic form e' G e with G = M diag(weight² / free) M. If all errors have the same
        variance, it has trace(G)² / trace(G G) degrees of freedom (Bell and McCaffrey, Survey Methodology 28,
        2002).
        """
        to_residuals = np.eye(len(self.design)) - self.design @ self.inverse  # M
        freedom = []
        for weights in self.inverse[:n_columns]:
            form = (to_residuals * (weights**2 / self.divisor)) @ to_residuals  # G
            trace_of_square = (form * form).sum()  # as G is symmetric
            freedom.append(np.trace(form) ** 2 / trace_of_square)
        return np.array(freedom)


def _fit(
    design: Floats, films: Sequence[FilmSample], *, use_model: bool, judges: Floats | None = None
) -> _Fit:
    """Fit the rates of N films, of which n are judged, by a linear model.

    The coefficients are least squares of the judged films' rates. The scoring model's mean probabilities,
    which all N films have, can first correct these rates (`_corrected_rates`). Each coefficient gets two
    variances: a robust one, which lets each film vary in its own way, and a classical one, for which all vary
    alike.

    Parameters
    ----------
    design : ndarray, shape [N, k]
        What the rate of each film depends on, such as 1 in the column of its group.
    films : sequence of FilmSample
    use_model : bool
        Whether the scoring model's means correct the rates for which windows, and which films, were judged.
    judges : ndarray, shape [n, j], optional
        Covariates of the judged films: who judged how much of each. Their coefficients are not returned.
    """
    sample = _SampleArrays.of(films)
    is_judged = ~np.isnan(sample.judged)
    n_columns = design.shape[1]
    of_all = _LeastSquares(design)  # fits what all films have: the scoring model's means
    of_judged = _LeastSquares(_with_judges(design[is_judged], judges))  # fits what judged films have: rates

    # How far the scoring model's mean of each film is from that of films like it, such as those of its group.
    model_residuals = of_all.residuals(sample.expected)  # [N]

    corrected = _CorrectedRates(rates=sample.judged[is_judged], mean_slope=0.0)  # not corrected
    if use_model:
        have_same_judges = judges is None or judges.shape[1] == 0
        corrected = _corrected_rates(
            sample, is_judged, of_judged, model_residuals, have_same_judges=have_same_judges
        )

    errors = _Errors(
        of_all=of_all,
        of_judged=of_judged,
        is_judged=is_judged,
        n_columns=n_columns,
        residuals=of_judged.residuals(corrected.rates),
        model_parts=corrected.mean_slope * model_residuals,
    )
    return _Fit(
        values=of_judged.inverse[:n_columns] @ corrected.rates,
        robust_variances=errors.robust_variances(),
        robust_freedom=errors.degrees_of_freedom(),
        classical_variances=errors.classical_variances(),
        classical_freedom=len(corrected.rates) - of_judged.design.shape[1],
        is_determined=of_judged.is_determined(n_columns),
    )


def _with_judges(design: Floats, judges: Floats | None) -> Floats:
    """Add the columns of judges [n, j] to the design of the judged films [n, k], as further columns.

    They are centred, so that the other coefficients are those for the mean share of each judge. None leaves
    the design as it is.
    """
    if judges is None:
        return design
    return np.column_stack([design, judges - judges.mean(axis=0)])


class _CorrectedRates(NamedTuple):
    """Rates of the n judged films after correction by the model.

    Attributes
    ----------
    rates : ndarray, shape [n]
    mean_slope : float
        Mean over the judged films of the slope between films; 0 without such a correction.
    """

    rates: Floats
    mean_slope: float


def _corrected_rates(
    sample: _SampleArrays,
    is_judged: NDArray[np.bool_],
    of_judged: _LeastSquares,
    model_residuals: Floats,
    *,
    have_same_judges: bool,
) -> _CorrectedRates:
    """Correct the judged films' rates by the model's means, within films and between films.

    Within a film: the windows that were drawn may be more, or less, positive than the film, and the model's
    means over both say so. Between films: the judged films may differ from all films, which the model's
    means say as well.

    Parameters
    ----------
    sample : _SampleArrays
        Of all N films.
    is_judged : ndarray of bool, shape [N]
        Films of which windows were judged.
    of_judged : _LeastSquares
        On the design of the judged films.
    model_residuals : ndarray, shape [N]
        Residuals of the model's mean of each film, such as its distance from the mean of the film's group.
    have_same_judges : bool
        Whether the same people judged all films.
    """
    rates = _rates_corrected_within_films(sample, is_judged)

    is_census_of_films = is_judged.all() and have_same_judges
    if is_census_of_films:  # no film is missing, and so there is nothing to correct between films
        return _CorrectedRates(rates, mean_slope=0.0)

    # A film of which the model expects more than of films like it has its rate lowered accordingly.
    residuals_of_judged = model_residuals[is_judged]
    slopes = _slopes_between_films(of_judged, rates, residuals_of_judged)
    corrected_rates = rates - slopes * residuals_of_judged
    return _CorrectedRates(corrected_rates, mean_slope=float(slopes.mean()))


def _rates_corrected_within_films(sample: _SampleArrays, is_judged: NDArray[np.bool_]) -> Floats:
    """Correct the rates [n] of the judged films for which of their windows were drawn (difference estimate).

    If the model's mean over the drawn windows is above its mean over the film, the rate is too high: it is
    lowered by a slope times this difference. The slope for a film is computed from all other judged films.
    """
    rates = sample.judged[is_judged]
    covariances = sample.covariance[is_judged]
    variances = sample.variance[is_judged]
    excess_p = (sample.drawn - sample.expected)[is_judged]  # mean over drawn windows - mean over the film
    # Each film's slope is the others' summed covariances of rate and mean, over their summed variances of
    # the mean: what a film adds to both sums is taken from them.
    slopes = _slopes_of_others(
        products=covariances,
        squares=variances,
        sum_of_products=covariances.sum(),
        sum_of_squares=variances.sum(),
    )
    return np.asarray(rates - slopes * excess_p)


def _slopes_between_films(of_judged: _LeastSquares, rates: Floats, model_means: Floats) -> Floats:
    """Compute how rates change with the model's means [n]: for each of n judged films, from all others.

    First what groups and judges explain is taken from both (`of_judged`, least squares on these): residuals
    are what remains of a film's rate, and of its mean. The slope of all films is then a / b, with

        a = sum of (residual of rate * residual of mean),  b = sum of (residual of mean)²

    If one film is left out and the least squares are fitted without it, a and b fall by its own term divided
    by 1 - its leverage (`_LeastSquares.divisor`): so n fits are not needed.
    """
    rate_residuals = of_judged.residuals(rates)
    mean_residuals = of_judged.residuals(model_means)
    return _slopes_of_others(
        products=rate_residuals * mean_residuals / of_judged.divisor,
        squares=mean_residuals**2 / of_judged.divisor,
        sum_of_products=float(rate_residuals @ mean_residuals),
        sum_of_squares=float(mean_residuals @ mean_residuals),
    )


def _slopes_of_others(
    products: Floats, squares: Floats, sum_of_products: float, sum_of_squares: float
) -> Floats:
    """Compute for each of n films the slope by which its rate is corrected, from all other films.

    A slope says how much rates by people change with the model's means, both as distances from what is usual:
    it is the sum of their products divided by the sum of the means' squares. A film's own terms are taken
    from both sums, so that its correction does not depend on its own error. The slope is 0 if the other films
    don't vary. It is moved into 0 to 1: 0 does not use the model, 1 trusts it fully (power tuning in
    prediction-powered inference, PPI++).

    Parameters
    ----------
    products, squares : ndarray, shape [n]
        What each film adds to the two sums.
    sum_of_products, sum_of_squares : float
        The sums over all films.
    """
    numerators = sum_of_products - products
    denominators = sum_of_squares - squares
    do_others_vary = denominators > MIN_SUM_OF_SQUARES
    slopes = np.divide(numerators, denominators, out=np.zeros_like(numerators), where=do_others_vary)
    return np.clip(slopes, 0, 1)


@dataclass(frozen=True, eq=False, slots=True)
class _Errors:
    """What is known of the errors of a design's k coefficients, from N films of which n are judged.

    A coefficient's error is a weighted sum over films, of two parts:

    - the judged part: the error of each judged film's rate, which its residual estimates;
    - the model part: the residual of the model's mean of each film, times the slope between films. It counts
      because the N films are a sample too, and the correction between films uses their mean.

    Attributes
    ----------
    of_all, of_judged : _LeastSquares
        On the design of all films, and on that of the judged films with their judges.
    is_judged : ndarray of bool, shape [N]
    n_columns : int
        k.
    residuals : ndarray, shape [n]
        Residuals of the judged films' rates.
    model_parts : ndarray, shape [N]
        The model part of each film, before it is weighted.
    """

    of_all: _LeastSquares
    of_judged: _LeastSquares
    is_judged: NDArray[np.bool_]
    n_columns: int
    residuals: Floats
    model_parts: Floats

    @property
    def weights(self) -> Floats:
        """The weights [k, n] of the judged films' rates in each coefficient.

        Least squares estimate coefficients as the pseudo-inverse of the design times the rates, so that the
        pseudo-inverse holds the weights: a row for each column of the design. The first k columns are the
        coefficients asked for; those behind them are of the judges, and not reported.
        """
        weights_of_columns = self.of_judged.inverse
        return np.asarray(weights_of_columns[: self.n_columns])

    def _judged_errors(self) -> Floats:
        """Return the judged part of each film's error in each coefficient [k, n]: a scaled residual (HC2)."""
        return self.weights * (self.residuals / np.sqrt(self.of_judged.divisor))

    def robust_variances(self) -> Floats:
        """Return the variance of each coefficient [k], estimated without assuming that films vary alike.

        A coefficient's error is the sum of what each film adds to it. Films are independent, so that its
        variance is the sum of the variances of what they add; of each, the square of what the film did add is
        the estimate. The two parts of a film (see the class) are added before they are squared, as they vary
        together.
        """
        added_by_film = self.of_all.inverse * self.model_parts  # [k, N]: the model part, weighted
        added_by_film[:, self.is_judged] += self._judged_errors()
        return np.asarray((added_by_film**2).sum(axis=1))

    def degrees_of_freedom(self) -> Floats:
        """Return Satterthwaite's degrees of freedom of each robust variance [k].

        A variance v_1 + v_2 has the degrees of freedom

            1 / (share_1² / freedom_1 + share_2² / freedom_2)

        where share_1 is v_1 / (v_1 + v_2). Here v_1 is the variance of the judged part, and v_2 is the rest
        of the robust variance, which the model adds.
        """
        variance_judged = (self._judged_errors() ** 2).sum(axis=1)
        variance_model = np.maximum(self.robust_variances() - variance_judged, 0)
        total = np.maximum(variance_judged + variance_model, TINY)
        share_judged = np.maximum(variance_judged, TINY) / total  # 1 if both variances are 0
        share_model = variance_model / total
        freedom_judged = self.of_judged.degrees_of_freedom(self.n_columns)
        freedom_model = len(self.is_judged) - self.n_columns
        return np.asarray(1 / (share_judged**2 / freedom_judged + share_model**2 / freedom_model))

    def classical_variances(self) -> Floats:
        """Return the variance of each coefficient [k] if all films have the same variances and covariance.

        A coefficient's error is a sum over films: of a weight times the residual of the film's rate (judged
        films), and of a weight times its model part (all films; see the class). So its variance is

            variance of residuals * sum of (weight of residual)²
            + variance of model parts * sum of (weight of model part)²
            + 2 * covariance * sum of (weight of residual * weight of model part)

        Residuals of n films around a fit of k coefficients are a little too small, so that sums of their
        squares are divided by n - k, the films that are left free.
        """
        residual_weights = self.weights  # [k, n]: the weight of each judged film's residual
        model_weights = self.of_all.inverse  # [k, N]: the weight of each film's model part
        n_free_judged = max(len(self.residuals) - self.of_judged.design.shape[1], 1)
        n_free_all = max(len(self.is_judged) - self.n_columns, 1)
        residual_variance = self.residuals @ self.residuals / n_free_judged
        model_variance = self.model_parts @ self.model_parts / n_free_all
        covariance = self.residuals @ self.model_parts[self.is_judged] / n_free_judged
        variances = (
            residual_variance * (residual_weights**2).sum(axis=1)
            + model_variance * (model_weights**2).sum(axis=1)
            + 2 * covariance * (residual_weights * model_weights[:, self.is_judged]).sum(axis=1)
        )
        return np.asarray(np.maximum(variances, 0))  # rounding may bring one below 0


class _VarianceOfMean(NamedTuple):
    """The variance that the mean rate of a group's judged films would have if the true rate were R.

    An interval of Wilson's kind asks this of each rate that it may hold (`_interval`). The variance is

        `variance` * factor(R)

    - Where films differ, `variance` is the estimated one, and factor(R) is (R (1 - R) / spread)^`POWER`. The
      spread is S (1 - S), with the films' mean share S. So the factor is 1 for R = S.
    - Where all films have the same share (`spread` is None), the variance cannot be estimated. It is taken as
      R (1 - R) / n, as if each of the n films were one judgement.
    """

    variance: float
    spread: float | None

    def factor(self, rate: float) -> float:
        """Return by what `variance` is multiplied if the true rate R is this one.

        An answer varies by R (1 - R) around its rate, and so do means of answers, if R changes: the factor is
        R (1 - R), beside the spread for which `variance` was estimated, to the power `POWER`. Without an
        estimate (`spread` is None) it is R (1 - R) itself.
        """
        variance_of_answer = rate * (1 - rate)
        if self.spread is None:
            return variance_of_answer
        return float((variance_of_answer / self.spread) ** POWER)


def _variance_of_mean(variance: float, shares: Sequence[float]) -> _VarianceOfMean:
    """Say how the variance of a group's mean rate depends on the true rate R (`_VarianceOfMean`).

    The variance is known at the films' mean share S: there it is the estimated one. At other rates it is
    larger or smaller as R (1 - R), the variance of a single answer, is larger or smaller than S (1 - S).

    Parameters
    ----------
    variance
        The estimated variance of the mean. If it is about 0, as where all films have the same share, nothing
        is known of how films differ: each of the n films then counts as one judgement, and the variance is
        R (1 - R) / n.
    shares
        Positive share of each of the group's n judged films.
    """
    share = float(np.mean(shares))
    # S (1 - S) is 0 if all films have the share 0, or all 1. Rounding may bring it a little below 0.
    spread = share * (1 - share)
    are_films_alike = spread < MIN_SPREAD or variance < MIN_VARIANCE
    if are_films_alike:
        variance_of_one_judgement_a_film = 1 / len(shares)
        return _VarianceOfMean(variance_of_one_judgement_a_film, spread=None)
    return _VarianceOfMean(variance, spread)


def _interval(fit: _Fit, index: int, shares: Sequence[float]) -> _Interval:
    """Find the interval of a group's mean rate: a score interval, like Wilson's.

    It holds each rate R that the mean is compatible with: from which it is at most t standard errors away,
    with the standard error that the mean would have if R were the true rate (`_VarianceOfMean`). t is a
    quantile of Student's distribution with the degrees of freedom of the fit.

    Parameters
    ----------
    fit : _Fit
    index : int
        Of the group's coefficient.
    shares : sequence of float
        Of the group's judged films.
    """
    from scipy.optimize import brentq  # noqa: PLC0415 - slow, and films are opened without it
    from scipy.special import stdtrit  # noqa: PLC0415 - as above

    mean = _cut_to_share(fit.values[index])
    variance_of_mean = _variance_of_mean(float(fit.robust_variances[index]), shares)
    t_squared = float(stdtrit(float(fit.robust_freedom[index]), (1 + LEVEL) / 2)) ** 2

    def excess(rate: float) -> float:
        """Return the squared distance of a rate from the mean, less that of t standard errors."""
        return (rate - mean) ** 2 - t_squared * variance_of_mean.variance * variance_of_mean.factor(rate)

    # At the rates 0 and 1 the factor is 0, and so the excess is (rate - mean)², which is not negative. Near
    # the mean, (rate - mean)² is 0 and the excess is negative. So it is 0 once below the mean and once above
    # it: these are the ends. A mean of 0 or 1 is moved inside by a little, to a rate of negative excess.
    inside = min(max(mean, MIN_SPREAD), 1 - MIN_SPREAD)
    low = float(brentq(excess, 0.0, inside))
    high = float(brentq(excess, inside, 1.0))
    return _Interval(low, high)
