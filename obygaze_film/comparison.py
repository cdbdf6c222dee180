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
"""A difference of shares, or a residual's part of a variance, that is smaller is an error of rounding."""


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
        Mean probability over the judged windows.
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
        Each judge's share of these judgements.
    sampling : str
        By which they were drawn.
    """
    expected = float(np.average(cells.p, weights=cells.content_s))
    n = len(judged)
    if not n:
        return FilmSample(expected)
    chances = inclusion_chances(cells.content_s, n, sampling)[judged]
    weights = cells.content_s[judged] / chances
    weights = weights / weights.sum()
    p = cells.p[judged]
    mean_y = float(weights @ y)
    mean_p = float(weights @ p)
    # A variance between windows times this factor is that of their weighted mean over draws: the sum of
    # squared weights, each times 1 - chance, as windows are drawn from a finite film.
    draw_factor = float(((1 - chances) * weights**2).sum())
    covariance = float(weights @ ((y - mean_y) * (p - mean_p))) * n / max(n - 1, 1)
    variance = float(np.average((cells.p - expected) ** 2, weights=cells.content_s))
    return FilmSample(
        expected,
        judged=mean_y,
        drawn=mean_p,
        covariance=draw_factor * covariance,
        variance=draw_factor * variance,
        n=n,
        judges={name: float(weights @ share) for name, share in (judges or {}).items()},
    )


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean, a difference or a slope with its 95 % interval, or the reason why there is none.

    Attributes
    ----------
    value, low, high : float
        NaN if it is refused.
    worth : float
        Of a mean: how many times the judgements would be needed without the model.
    reason : str
    n_any : int
        How many judged films have any positive judgement, or lack any: the fewer of both.
    accounts_for_judges : bool
        Of a contrast: whether films were judged by different people, and it accounts for who judged which.
    """

    value: float = np.nan
    low: float = np.nan
    high: float = np.nan
    worth: float = np.nan
    reason: str = ""
    n_any: int = 0
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
    design = np.repeat(np.eye(len(groups)), sizes, axis=0)
    with_model = _fit(design, films, use_model=True)
    alone = _fit(design, films, use_model=False)
    estimates = []
    for index, group in enumerate(groups):
        shares = [film.judged for film in group if film.n]
        value = min(max(float(with_model.values[index]), 0.0), 1.0)
        low, high = _interval(with_model, index, shares)
        low_alone, high_alone = _interval(alone, index, shares)
        # An interval's squared width is proportional to 1 / n: so many times n windows are needed without it.
        worth = ((high_alone - low_alone) / (high - low)) ** 2 if high > low else 1.0
        estimates.append(Estimate(value, low, high, worth, n_any=_n_any(np.array(shares))))
    return estimates


def estimate_contrast(films: Sequence[FilmSample], x: Floats) -> Estimate:
    """Estimate the least-squares slope of films' rates on a number x [N]: a year, or 0 and 1 for two groups.

    It is refused where the judged films of a group, or all of a trend, have the same share, as nothing is
    known then of how films differ. It is refused too where judges and x vary together, so that the slope on x
    is not determined, or by a single judged film.
    """
    is_judged = np.array([film.n > 0 for film in films])
    shares = np.array([film.judged for film in films])[is_judged]
    n_any = _n_any(shares)
    judges = _judge_covariates(films)
    n_judge_columns = judges.shape[1]
    # x is scaled to at most 1, so that `MIN_SPREAD` means the same for years as for shares.
    unit = float(np.abs(x - x.mean()).max()) or 1.0
    design = np.column_stack([np.ones(len(x)), (x - x.mean()) / unit])
    slope = 1  # the second coefficient: the first is the mean
    fit = _fit(design, films, use_model=True, judges=judges)
    reason = _why_all_alike(shares, x[is_judged])
    if not reason and n_judge_columns and not fit.is_determined[slope]:
        names = sorted({name for film in films for name in film.judges})
        reason = message("reason_judges", names=", ".join(map(judge_name, names)))
    if reason:
        return Estimate(reason=reason, n_any=n_any)
    robust = _half_interval(fit.variances[slope], fit.freedom[slope])
    classical = _half_interval(fit.classical[slope], freedom=len(shares) - 2 - n_judge_columns)
    half = float(max(robust, classical)) / unit
    value = float(fit.values[slope]) / unit
    # Rates lie between 0 and 1, and so no group's mean is more than 1 above the other's.
    is_of_two_groups = len(np.unique(x)) == 2
    most = 1 / float(np.ptp(x)) if is_of_two_groups else np.inf
    value, low, high = np.clip([value, value - half, value + half], -most, most).tolist()
    return Estimate(value, low, high, n_any=n_any, accounts_for_judges=n_judge_columns > 0)


def _n_any(shares: Floats) -> int:
    """Count the films with any positive window, and those with any negative one; return the smaller count."""
    n_with_positives = (shares > MIN_SPREAD).sum()
    n_with_negatives = (shares < 1 - MIN_SPREAD).sum()
    return int(min(n_with_positives, n_with_negatives))


def _why_all_alike(shares: Floats, x: Floats) -> str:
    """Say that the judged films' shares [n] are alike, so that nothing is known of how films differ.

    Return "" if they differ. Of two groups (x [n] has two values) the shares of each must differ.
    """
    groups = np.unique(x)
    is_alike = np.ptp(shares) < MIN_SPREAD
    if len(groups) != 2:
        return message("reason_alike") if is_alike else ""
    is_group_alike = any(np.ptp(shares[x == group]) < MIN_SPREAD for group in groups)
    return message("reason_alike_group") if is_alike or is_group_alike else ""


def _half_interval(variance: float, freedom: float) -> float:
    """Give half the width of Student's interval for a coefficient with this variance."""
    from scipy.special import stdtrit  # noqa: PLC0415 - slow, and films are opened without it

    return float(stdtrit(freedom, (1 + LEVEL) / 2) * np.sqrt(variance))


def _judge_covariates(films: Sequence[FilmSample]) -> Floats:
    """Make a column of each judge's share of the judgements of the n judged films [n, at most J - 1].

    The shares of a film add up to 1, so the first judge's says nothing that the others don't; nor does a
    share that is the same in all films.
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
    values, variances, freedom : ndarray, shape [k]
        Robust variances, and their degrees of freedom.
    classical : ndarray, shape [k]
        Variances under the assumption that the residuals of all films have the same variance.
    is_determined : ndarray of bool, shape [k]
        Whether the judged films determine a coefficient, even without any single one of them.
    """

    values: Floats
    variances: Floats
    freedom: Floats
    classical: Floats
    is_determined: NDArray[np.bool_]


@dataclass(frozen=True, eq=False, slots=True)
class _SampleArrays:
    """The numbers of N films' samples as arrays [N]: see `FilmSample`; NaN where nobody judged a film."""

    expected: Floats
    judged: Floats
    drawn: Floats
    covariance: Floats
    variance: Floats

    @classmethod
    def of(cls, films: Sequence[FilmSample]) -> "_SampleArrays":
        """Collect the numbers of films."""
        return cls(
            expected=np.array([film.expected for film in films]),
            judged=np.array([film.judged for film in films]),
            drawn=np.array([film.drawn for film in films]),
            covariance=np.array([film.covariance for film in films]),
            variance=np.array([film.variance for film in films]),
        )


class _LeastSquares:
    """Least squares on a design [n, k].

    Attributes
    ----------
    design : ndarray, shape [n, k]
    inverse : ndarray, shape [k, n]
        The design's pseudo-inverse: times values [n], it gives their coefficients [k].
    free : ndarray, shape [n]
        1 - leverage of each row: the part of a row's value that stays in its residual.
    """

    def __init__(self, design: Floats) -> None:
        self.design = design
        self.inverse: NDArray[Any] = np.linalg.pinv(design, MIN_SPREAD)
        self.free: Floats = 1 - (design * self.inverse.T).sum(axis=1)

    def residuals(self, values: Floats) -> Floats:
        """Return the residuals of values [n]: what the design does not fit of them."""
        residuals: Floats = values - self.design @ (self.inverse @ values)
        return residuals

    def is_determined(self, n_columns: int) -> NDArray[np.bool_]:
        """Tell which of the first `n_columns` coefficients the rows determine, even without any single row.

        A row without which a coefficient is not determined is fitted exactly: it has no residual, and so says
        nothing of the coefficient's error.
        """
        is_estimable = np.isclose(np.diag(self.inverse @ self.design)[:n_columns], 1)
        is_fitted_exactly = self.free < MIN_SPREAD
        weights_of_such_rows = self.inverse[:n_columns, is_fitted_exactly]
        needs_no_such_row = np.all(np.abs(weights_of_such_rows) < MIN_SPREAD, axis=1)
        return np.logical_and(is_estimable, needs_no_such_row)

    def degrees_of_freedom(self, n_columns: int) -> Floats:
        """Return Satterthwaite's degrees of freedom of the first `n_columns` coefficients' robust variances.

        Bell and McCaffrey, Survey Methodology 28, 2002.
        """
        to_residuals = np.eye(len(self.design)) - self.design @ self.inverse
        free = np.maximum(self.free, MIN_SPREAD)
        freedom = []
        for weights in self.inverse[:n_columns]:
            spread = to_residuals * (weights**2 / free) @ to_residuals
            freedom.append(np.trace(spread) ** 2 / (spread * spread).sum())
        return np.array(freedom)


def _fit(
    design: Floats, films: Sequence[FilmSample], *, use_model: bool, judges: Floats | None = None
) -> _Fit:
    """Fit the rates of N films, of which n are judged, by a design.

    Parameters
    ----------
    design : ndarray, shape [N, k]
    films : sequence of FilmSample
    use_model : bool
        Whether the model's means move the judged films' rates; see this module's text.
    judges : ndarray, shape [n, j], optional
        Covariates of the judged films.
    """
    sample = _SampleArrays.of(films)
    is_judged = ~np.isnan(sample.judged)
    n_columns = design.shape[1]
    of_all = _LeastSquares(design)
    own_design = design[is_judged]
    if judges is not None:
        own_design = np.column_stack([own_design, judges - judges.mean(axis=0)])
    of_judged = _LeastSquares(own_design)
    free = np.maximum(of_judged.free, MIN_SPREAD)  # the part of a film's variance that its residual has

    # The judged films' rates, moved by the model: within each film, and between films.
    rates = sample.judged[is_judged]
    apart = of_all.residuals(sample.expected)  # how far the model's mean of a film lies from its group's
    slopes_between = np.zeros(len(rates))
    if use_model:
        slopes_within = _slopes_of_others(sample.covariance[is_judged], sample.variance[is_judged])
        rates = rates - slopes_within * (sample.drawn - sample.expected)[is_judged]
        # Of films that are all judged, and by the same people, there is nothing to move.
        is_nothing_to_move = is_judged.all() and own_design.shape == design.shape
        if not is_nothing_to_move:
            of_rates = of_judged.residuals(rates)
            of_model = of_judged.residuals(apart[is_judged])
            # A least-squares slope without film i: its products of residuals count 1 / free times.
            slopes_between = _slopes_of_others(
                of_rates * of_model / free,
                of_model**2 / free,
                sum_of_products=float(of_rates @ of_model),
                sum_of_squares=float(of_model @ of_model),
            )
            rates = rates - slopes_between * apart[is_judged]

    # The robust variance of each coefficient: the squares of what each film adds to its error. A judged film
    # adds what its residual tells, every film what the model's mean of it tells.
    weights = of_judged.inverse[:n_columns]
    weights_of_all = of_all.inverse
    residuals = of_judged.residuals(rates)
    scaled = weights * (residuals / np.sqrt(free))  # HC2
    from_model = slopes_between.mean() * apart
    of_films = weights_of_all * from_model
    of_films[:, is_judged] += scaled
    variances = (of_films**2).sum(axis=1)
    variance_judged = (scaled**2).sum(axis=1)
    variance_model = np.maximum(variances - variance_judged, 0)

    # Degrees of freedom of the sum of both parts, each part's weighted by its share (Satterthwaite).
    freedom_model = len(films) - n_columns
    tiny = 1e-300  # if both variances are 0, the share of the first is 1: nothing is divided by 0
    total = np.maximum(variance_judged + variance_model, tiny)
    share_judged = np.maximum(variance_judged, tiny) / total
    share_model = variance_model / total
    freedom_judged = of_judged.degrees_of_freedom(n_columns)
    freedom = 1 / (share_judged**2 / freedom_judged + share_model**2 / freedom_model)

    # The classical variance, of the same two parts: residuals of judged films, and the model's means of all.
    n_free = max(len(own_design) - own_design.shape[1], 1)
    residual_variance = residuals @ residuals / n_free
    model_variance = from_model @ from_model / max(freedom_model, 1)
    covariance = residuals @ from_model[is_judged] / n_free
    classical = (
        residual_variance * (weights**2).sum(axis=1)
        + model_variance * (weights_of_all**2).sum(axis=1)
        + 2 * covariance * (weights * weights_of_all[:, is_judged]).sum(axis=1)
    )
    return _Fit(
        values=weights @ rates,
        variances=variances,
        freedom=freedom,
        classical=np.maximum(classical, 0),
        is_determined=of_judged.is_determined(n_columns),
    )


def _slopes_of_others(
    products: Floats,
    squares: Floats,
    sum_of_products: float | None = None,
    sum_of_squares: float | None = None,
) -> Floats:
    """Give each of n films the slope of all the others, cut at 0 and 1; 0 where the others don't vary.

    Parameters
    ----------
    products, squares : ndarray, shape [n]
        What each film adds to the slope's numerator and to its denominator.
    sum_of_products, sum_of_squares : float, optional
        Numerator and denominator of all films; by default the sums.
    """
    numerator = products.sum() if sum_of_products is None else sum_of_products
    denominator = squares.sum() if sum_of_squares is None else sum_of_squares
    numerators = numerator - products
    denominators = denominator - squares
    varies = denominators > 1e-12  # smaller ones are errors of rounding
    slopes = np.divide(numerators, denominators, out=np.zeros_like(numerators), where=varies)
    return np.clip(slopes, 0, 1)


def _interval(fit: _Fit, index: int, shares: Sequence[float]) -> tuple[float, float]:
    """Find the interval of a group's mean rate: all rates at most t standard errors from it.

    The standard error is that which the estimate would have at each of these rates: its variance at rate R is
    (R (1 - R))^1.5 times a factor, known from the judged films. The power is between 1, of windows (Wilson's
    interval), and 2, of films that differ in their odds.

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

    variance = float(fit.variances[index])
    freedom = float(fit.freedom[index])
    mean = min(max(float(fit.values[index]), 0.0), 1.0)
    share = float(np.mean(shares))
    spread = share * (1 - share)
    power = POWER
    # Where all judged films are alike, the variance is unknown: R (1 - R) / n of n films is taken, as if each
    # were one judgement. Shares are sums of weights, which rounding may bring above 1, and `spread` below 0.
    if spread < MIN_SPREAD or variance < MIN_VARIANCE:
        variance, spread, power = 1 / len(shares), 1.0, 1.0
    t_squared = float(stdtrit(freedom, (1 + LEVEL) / 2)) ** 2

    def excess(rate: float) -> float:
        """Say how far a rate lies outside: its squared distance from the mean less what t errors allow."""
        return (rate - mean) ** 2 - t_squared * variance * float((rate * (1 - rate) / spread) ** power)

    inside = min(max(mean, 1e-9), 1 - 1e-9)
    return float(brentq(excess, 0.0, inside)), float(brentq(excess, inside, 1.0))
