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
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from obygaze_film.cells import Cells
from obygaze_film.draws import SUCCESSIVE, Sampling, inclusion_chances
from obygaze_film.notes import judge_name, message
from obygaze_film.rate_estimates import LEVEL, MIN_VARIANCE

Floats = NDArray[np.float64]

LEAST_FILMS: Final = 5
"""Minimum number of judged films of a group; of fewer, an interval of rare things is too narrow."""

LEAST_OF_TREND: Final = 10
"""Minimum number of judged films of a trend."""

POWER: Final = 1.5
"""The variance of films' estimates at a rate R is (R (1 - R)) to this power, times a factor (`_interval`)."""

MIN_SPREAD = 1e-9
"""Difference of shares below which they are equal but for rounding."""

LEAST_SINGULAR = 1e-9
"""Singular values of a design that are smaller, in parts of the largest, count as 0."""

LEAST_FREE = 1e-9
"""1 - leverage below which a film is fitted exactly, but for rounding."""

LEAST_WEIGHT = 1e-9
"""Weight in a coefficient below which a film has none, but for rounding."""

LEAST_SUM_OF_SQUARES = 1e-12
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
        Mean probability over the judged windows: those that were drawn.
    covariance, variance : float
        Covariance of `judged` and `drawn`, and variance of `drawn`, over draws of the judged windows.
    n : int
        Number of judged windows.
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
    sampling: Sampling = SUCCESSIVE,
) -> FilmSample:
    """Summarise a film and its judged cells, which `Cells.order_of_draw` drew.

    Parameters
    ----------
    cells : Cells
    judged : ndarray of int, shape [n]
    y : ndarray, shape [n]
        Their judgements, 0 to 1.
    judges : mapping of str to ndarray, shape [n], optional
        Judge -> their part of each cell's judgement (`judged_windows.Votes.judge_shares`).
    sampling : str
        Method by which they were drawn.
    """
    film_p = float(np.average(cells.p, weights=cells.content_s))
    n = len(judged)
    if not n:
        return FilmSample(expected=film_p)
    chances = inclusion_chances(cells.content_s, n, sampling)[judged]
    weights = cells.content_s[judged] / chances
    weights = weights / weights.sum()
    p = cells.p[judged]
    mean_y = float(weights @ y)
    mean_p = float(weights @ p)
    # Over single windows. The variance of p is that of all windows of the film. The covariance is known of
    # the judged ones alone, around their own means: n / (n - 1) makes up for that.
    covariance_of_windows = float(weights @ ((y - mean_y) * (p - mean_p))) * n / max(n - 1, 1)
    variance_of_windows = float(np.average((cells.p - film_p) ** 2, weights=cells.content_s))
    # Over draws, the weighted mean of n windows varies by this factor of what single windows do: the sum of
    # squared weights, each times 1 - chance, as windows are drawn from a finite film.
    factor_of_mean = float(((1 - chances) * weights**2).sum())
    judge_shares = {}
    for name, shares in (judges or {}).items():
        judge_shares[name] = float(weights @ shares)
    return FilmSample(
        expected=film_p,
        judged=mean_y,
        drawn=mean_p,
        covariance=factor_of_mean * covariance_of_windows,
        variance=factor_of_mean * variance_of_windows,
        n=n,
        judges=judge_shares,
    )


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

    Parameters
    ----------
    groups : sequence of sequence of FilmSample
        In each, at least `LEAST_FILMS` films are judged.
    """
    films = [film for group in groups for film in group]
    sizes = [len(group) for group in groups]
    design = np.repeat(np.eye(len(groups)), sizes, axis=0)  # [films, groups]: 1 if a film is in a group
    with_model = _fit(design, films, use_model=True)
    without_model = _fit(design, films, use_model=False)
    estimates = []
    for index, group in enumerate(groups):
        shares = [film.judged for film in group if film.n]
        low, high = _interval(with_model, index, shares)
        low_without_model, high_without_model = _interval(without_model, index, shares)
        ratio = 1.0
        if high > low:
            # An interval's squared width is proportional to 1 / the number of judgements.
            ratio = ((high_without_model - low_without_model) / (high - low)) ** 2
        estimates.append(
            Estimate(
                value=_cut_to_share(with_model.values[index]),
                low=low,
                high=high,
                sample_size_ratio=ratio,
                n_with_rarer_answer=_n_with_rarer_answer(np.array(shares)),
            )
        )
    return estimates


def _cut_to_share(value: float) -> float:
    """Return a value, moved to 0 or 1 if it lies below or above."""
    return min(max(float(value), 0.0), 1.0)


def estimate_contrast(films: Sequence[FilmSample], x: Floats) -> Estimate:
    """Estimate the least-squares slope of films' rates on a number x [N]: a year, or 0 and 1 for two groups.

    It is refused in two cases. The judged films (of a trend, or of one of two groups) have the same share, so
    that nothing is known of how films differ. Or the films were judged by different people, and who judged
    varies with x: then the slope depends on some single film, or is larger than any two shares can differ.
    """
    is_judged = np.array([film.n > 0 for film in films])
    shares = np.array([film.judged for film in films])[is_judged]
    n_with_rarer_answer = _n_with_rarer_answer(shares)
    judges = _judge_covariates(films)
    # x is scaled to at most 1, so that tolerances mean the same for years as for shares.
    distances = x - x.mean()
    scale = float(np.abs(distances).max()) or 1.0
    design = np.column_stack([np.ones(len(x)), distances / scale])
    slope = 1  # index of the slope's coefficient; that of the mean is 0
    fit = _fit(design, films, use_model=True, judges=judges)
    value = float(fit.values[slope]) / scale
    largest = _largest_slope(x)
    reason = _why_all_alike(shares, x[is_judged])
    if not reason and judges.shape[1] > 0:
        is_possible = abs(value) <= largest + MIN_SPREAD
        if not (fit.is_determined[slope] and is_possible):
            reason = _why_judges_are_in_the_way(films)
    if reason:
        return Estimate(reason=reason, n_with_rarer_answer=n_with_rarer_answer)
    half_width = _half_width_of_contrast(fit, slope) / scale
    return Estimate(
        value=_cut_to_size(value, largest),
        low=_cut_to_size(value - half_width, largest),
        high=_cut_to_size(value + half_width, largest),
        n_with_rarer_answer=n_with_rarer_answer,
        accounts_for_judges=judges.shape[1] > 0,
    )


def _largest_slope(x: Floats) -> float:
    """Return the largest possible slope of rates on a number x [N]; infinite for a trend.

    Rates lie between 0 and 1, and so one of two groups has a mean at most 1 above the other's.
    """
    is_of_two_groups = len(np.unique(x)) == 2
    return 1 / float(np.ptp(x)) if is_of_two_groups else np.inf


def _cut_to_size(slope: float, largest: float) -> float:
    """Return a slope, moved to the nearest one whose size is at most `largest`."""
    return float(np.clip(slope, -largest, largest))


def _why_judges_are_in_the_way(films: Sequence[FilmSample]) -> str:
    """Say that the films hardly tell a difference in x from one between the judges: by one film at most."""
    names = {name for film in films for name in film.judges}
    return message("reason_judges", names=", ".join(judge_name(name) for name in sorted(names)))


def _half_width_of_contrast(fit: "_Fit", index: int) -> float:
    """Return half the width of a contrast's interval: the wider one by the robust and the classical variance.

    Of rare things, films without any have no residuals, and the robust variance is too small.
    """
    robust = _half_width(fit.variances[index], fit.freedom[index])
    classical = _half_width(fit.classical[index], fit.classical_freedom)
    return float(max(robust, classical))


def _n_with_rarer_answer(shares: Floats) -> int:
    """Count the films with any positive window, and those with any negative one; return the smaller count."""
    n_with_positives = (shares > MIN_SPREAD).sum()
    n_with_negatives = (shares < 1 - MIN_SPREAD).sum()
    return int(min(n_with_positives, n_with_negatives))


def _why_all_alike(shares: Floats, x: Floats) -> str:
    """Say that the judged films' shares [n] are equal, so that nothing is known of how films differ.

    Return "" if they differ. If x [n] has two values, those of two groups, the shares in each must differ.
    """
    groups = np.unique(x)
    if len(groups) != 2:
        are_all_equal = np.ptp(shares) < MIN_SPREAD
        return message("reason_alike") if are_all_equal else ""
    n_alike = sum(np.ptp(shares[x == group]) < MIN_SPREAD for group in groups)
    if n_alike == 0:
        return ""
    return message("reason_alike_groups" if n_alike == 2 else "reason_alike_group")


def _half_width(variance: float, freedom: float) -> float:
    """Return half the width of Student's interval of a coefficient with a variance and degrees of freedom."""
    from scipy.special import stdtrit  # noqa: PLC0415 - slow, and films are opened without it

    return float(stdtrit(freedom, (1 + LEVEL) / 2) * np.sqrt(variance))


def _judge_covariates(films: Sequence[FilmSample]) -> Floats:
    """Make a column of each judge's share of the judgements of the n judged films [n, at most J - 1].

    Two kinds of columns are dropped, as they say nothing beside the others: that of the first judge, because
    the shares of a film add up to 1, and those that are the same in all films.
    """
    judged = [film.judges for film in films if film.n]
    names = sorted({name for shares in judged for name in shares})
    columns = np.zeros((len(judged), max(len(names) - 1, 0)))
    for row, shares in enumerate(judged):
        for column, name in enumerate(names[1:]):
            columns[row, column] = shares.get(name, 0.0)
    if not columns.size:
        return columns
    return columns[:, np.ptp(columns, axis=0) > MIN_SPREAD]


@dataclass(frozen=True, eq=False, slots=True)
class _Fit:
    """Coefficients of a design [k]; see `_fit`.

    Attributes
    ----------
    values : ndarray, shape [k]
    variances, freedom : ndarray, shape [k]
        Robust variances of the values, and their degrees of freedom.
    classical : ndarray, shape [k]
        Variances under the assumption that the residuals of all films have the same variance.
    classical_freedom : int
        The degrees of freedom of these: judged films less columns of their design.
    is_determined : ndarray of bool, shape [k]
        Whether the judged films determine a coefficient, even without any single one of them.
    """

    values: Floats
    variances: Floats
    freedom: Floats
    classical: Floats
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
        """Make an array of each field."""
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
        The design's pseudo-inverse: times values [n], it gives their coefficients [k]. So its row of a
        coefficient has the weights of the films in it.
    free : ndarray, shape [n]
        1 - leverage of each film: the part of its variance that its residual keeps. It is 0 for a film that
        is fitted exactly, as where no other film has a part in some coefficient.
    divisor : ndarray, shape [n]
        `free`, but at least `LEAST_FREE`, so that it can be divided by.
    """

    def __init__(self, design: Floats) -> None:
        """Compute the pseudo-inverse and the leverages."""
        self.design = design
        self.inverse: NDArray[Any] = np.linalg.pinv(design, LEAST_SINGULAR)
        leverages = (design * self.inverse.T).sum(axis=1)
        self.free: Floats = 1 - leverages
        self.divisor: Floats = np.maximum(self.free, LEAST_FREE)

    def residuals(self, values: Floats) -> Floats:
        """Return the residuals of values [n]: the values less what the design fits of them."""
        residuals: Floats = values - self.design @ (self.inverse @ values)
        return residuals

    def is_determined(self, n_columns: int) -> NDArray[np.bool_]:
        """Tell which of the first `n_columns` coefficients the films determine, even without any single film.

        - All films together determine a coefficient if least squares gives it back from the values that it
          fits: its diagonal element of inverse times design is 1. Else columns of the design replace it.
        - A film that is fitted exactly has no residual, and so says nothing of a coefficient's error. Without
          it the coefficient would not be determined if it has any weight in it.
        """
        is_given_back = np.isclose(np.diag(self.inverse @ self.design)[:n_columns], 1)
        is_fitted_exactly = self.free < LEAST_FREE
        weights_of_exact_films = self.inverse[:n_columns, is_fitted_exactly]
        needs_no_exact_film = np.all(np.abs(weights_of_exact_films) < LEAST_WEIGHT, axis=1)
        return np.logical_and(is_given_back, needs_no_exact_film)

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
    """Fit the rates of N films, of which n are judged, by a design.

    With a model, the judged films' rates are first moved in two steps: within each film, for which of its
    windows were judged, and between films, for which of the films were judged.

    Parameters
    ----------
    design : ndarray, shape [N, k]
    films : sequence of FilmSample
    use_model : bool
        Whether the model's means move the rates.
    judges : ndarray, shape [n, j], optional
        Covariates of the judged films.
    """
    sample = _SampleArrays.of(films)
    is_judged = ~np.isnan(sample.judged)
    n_columns = design.shape[1]
    of_all = _LeastSquares(design)
    judged_design = design[is_judged]
    have_same_judges = judges is None or judges.shape[1] == 0
    if judges is not None:
        judged_design = np.column_stack([judged_design, judges - judges.mean(axis=0)])
    of_judged = _LeastSquares(judged_design)
    # Of the model's mean of each film from what the design fits of it, such as the mean of its group.
    model_residuals = of_all.residuals(sample.expected)  # [N]
    rates = sample.judged[is_judged]  # [n]
    slopes_between = np.zeros(len(rates))
    if use_model:
        rates = _moved_within_films(sample, is_judged)
        is_census_of_films = is_judged.all() and have_same_judges
        if not is_census_of_films:
            slopes_between = _slopes_between_films(of_judged, rates, model_residuals[is_judged])
            rates = rates - slopes_between * model_residuals[is_judged]
    errors = _Errors(
        of_all=of_all,
        of_judged=of_judged,
        is_judged=is_judged,
        n_columns=n_columns,
        residuals=of_judged.residuals(rates),
        moves=slopes_between.mean() * model_residuals,
    )
    return _Fit(
        values=of_judged.inverse[:n_columns] @ rates,
        variances=errors.robust_variances(),
        freedom=errors.degrees_of_freedom(),
        classical=errors.classical_variances(),
        classical_freedom=len(rates) - judged_design.shape[1],
        is_determined=of_judged.is_determined(n_columns),
    )


def _moved_within_films(sample: _SampleArrays, is_judged: NDArray[np.bool_]) -> Floats:
    """Correct the rates [n] of the judged films for which of their windows were drawn (difference estimate).

    If the model's mean over the drawn windows is above its mean over the film, the rate is too high: it is
    lowered by a slope times this difference. The slope of a film is that of all other judged films.
    """
    rates = sample.judged[is_judged]
    covariances = sample.covariance[is_judged]
    variances = sample.variance[is_judged]
    excess_p = (sample.drawn - sample.expected)[is_judged]
    slopes = _slopes_of_others(
        products=covariances,
        squares=variances,
        sum_of_products=covariances.sum(),
        sum_of_squares=variances.sum(),
    )
    return np.asarray(rates - slopes * excess_p)


def _slopes_between_films(of_judged: _LeastSquares, rates: Floats, model_means: Floats) -> Floats:
    """Compute for each of n judged films the slope of the others' rates on the model's means [n].

    The slope of all films is the sum of products of both residuals (of rates, and of means), divided by the
    sum of squares of those of means. If a film is left out and the design is fitted anew, each sum falls by
    the film's product, or square, divided by 1 - its leverage.
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
    """Compute for each of n films the slope of all other films, cut at 0 and 1; 0 if the others don't vary.

    Parameters
    ----------
    products, squares : ndarray, shape [n]
        By how much each sum falls if a film is left out.
    sum_of_products, sum_of_squares : float
        Numerator and denominator of the slope of all films.
    """
    numerators = sum_of_products - products
    denominators = sum_of_squares - squares
    do_others_vary = denominators > LEAST_SUM_OF_SQUARES
    slopes = np.divide(numerators, denominators, out=np.zeros_like(numerators), where=do_others_vary)
    return np.clip(slopes, 0, 1)


@dataclass(frozen=True, eq=False, slots=True)
class _Errors:
    """What is known of the errors of a design's k coefficients.

    A coefficient's error is a sum over films, and a film adds to it in two ways:

    - with the error of its judged rate, as far as its residual shows it (n judged films);
    - with what the model's mean of it moves the coefficient by, as the N films are a sample themselves.

    Attributes
    ----------
    of_all, of_judged : _LeastSquares
        On the design of all films, and on that of the judged films with their judges.
    is_judged : ndarray of bool, shape [N]
    n_columns : int
        k.
    residuals : ndarray, shape [n]
        Of the judged films' rates.
    moves : ndarray, shape [N]
        By how much the model's mean of each film moves rates.
    """

    of_all: _LeastSquares
    of_judged: _LeastSquares
    is_judged: NDArray[np.bool_]
    n_columns: int
    residuals: Floats
    moves: Floats

    @property
    def weights(self) -> Floats:
        """The weights [k, n] of the judged films' rates in each coefficient."""
        return np.asarray(self.of_judged.inverse[: self.n_columns])

    def _errors_of_judged(self) -> Floats:
        """Return what each judged film's residual adds to the error of each coefficient [k, n] (HC2)."""
        return self.weights * (self.residuals / np.sqrt(self.of_judged.divisor))

    def robust_variances(self) -> Floats:
        """Return the sums [k] of the squares of what each film adds to a coefficient's error.

        A film adds both of its parts to the same error: they are added before they are squared.
        """
        errors = self.of_all.inverse * self.moves  # [k, N]
        errors[:, self.is_judged] += self._errors_of_judged()
        return np.asarray((errors**2).sum(axis=1))

    def degrees_of_freedom(self) -> Floats:
        """Return the degrees of freedom [k] of the robust variances (Satterthwaite).

        A variance that is the sum of two has the degrees of freedom

            1 / (share_1² / freedom_1 + share_2² / freedom_2)

        where a share is that of the sum. Here the first is of the judged rates, the second all that the model
        adds.
        """
        variance_judged = (self._errors_of_judged() ** 2).sum(axis=1)
        variance_model = np.maximum(self.robust_variances() - variance_judged, 0)
        total = np.maximum(variance_judged + variance_model, TINY)
        share_judged = np.maximum(variance_judged, TINY) / total  # 1 if both variances are 0
        share_model = variance_model / total
        freedom_judged = self.of_judged.degrees_of_freedom(self.n_columns)
        freedom_model = len(self.is_judged) - self.n_columns
        return np.asarray(1 / (share_judged**2 / freedom_judged + share_model**2 / freedom_model))

    def classical_variances(self) -> Floats:
        """Return the variances [k] under the assumption that all films have the same variances.

        A coefficient's error is a sum of weighted residuals (of the judged films) and of weighted moves (of
        all films). With the same variances and covariance in all films, the variance of this sum is

            variance of residuals * sum of squared weights + variance of moves * sum of squared weights
            + 2 * covariance * sum of products of both weights
        """
        weights_of_moves = self.of_all.inverse  # [k, N]
        n_free_judged = max(len(self.residuals) - self.of_judged.design.shape[1], 1)
        n_free_all = max(len(self.is_judged) - self.n_columns, 1)
        residual_variance = self.residuals @ self.residuals / n_free_judged
        move_variance = self.moves @ self.moves / n_free_all
        covariance = self.residuals @ self.moves[self.is_judged] / n_free_judged
        variances = (
            residual_variance * (self.weights**2).sum(axis=1)
            + move_variance * (weights_of_moves**2).sum(axis=1)
            + 2 * covariance * (self.weights * weights_of_moves[:, self.is_judged]).sum(axis=1)
        )
        return np.asarray(np.maximum(variances, 0))


def _interval(fit: _Fit, index: int, shares: Sequence[float]) -> tuple[float, float]:
    """Find the interval of a group's mean rate: the rates that lie at most t standard errors from it.

    The standard error is that which the estimate would have if the rate were R. Its square is

        variance(R) = variance * (R (1 - R) / (S (1 - S)))^1.5

    where S is the mean share of the judged films, at which the variance is known. The power (`POWER`) lies
    between 1, as for windows (Wilson's interval), and 2, as for films that differ in their odds.

    If all judged films are alike, their variance is not known. It is then R (1 - R) / n, as if each of the n
    films were one judgement.

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
    variance = float(fit.variances[index])
    share = float(np.mean(shares))
    spread = share * (1 - share)  # rounding of sums of weights may bring a share above 1, and this below 0
    are_films_alike = spread < MIN_SPREAD or variance < MIN_VARIANCE
    if are_films_alike:
        variance = 1 / len(shares)
    t_squared = float(stdtrit(float(fit.freedom[index]), (1 + LEVEL) / 2)) ** 2

    def variance_factor(rate: float) -> float:
        """Return what the variance is multiplied by if the rate is this one."""
        if are_films_alike:
            return rate * (1 - rate)
        return float((rate * (1 - rate) / spread) ** POWER)

    def excess(rate: float) -> float:
        """Return a rate's squared distance from the mean less that of t errors: negative in the interval."""
        return (rate - mean) ** 2 - t_squared * variance * variance_factor(rate)

    # The excess is negative near the mean, and not negative at 0 and 1, where the factor is 0.
    inside = min(max(mean, MIN_SPREAD), 1 - MIN_SPREAD)
    low = float(brentq(excess, 0.0, inside))
    high = float(brentq(excess, inside, 1.0))
    return low, high
