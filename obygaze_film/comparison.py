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
        Judge -> their part of each cell's judgement (`judged_windows.Votes.judge_shares`).
    sampling : str
        Method by which they were drawn.
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
    # The variance of a weighted mean over draws is that between windows times this factor: the sum of squared
    # weights, each times 1 - chance, as windows are drawn from a finite film.
    draw_factor = float(((1 - chances) * weights**2).sum())
    # Of the judged windows alone, hence n / (n - 1); the variance of p is known of all windows of the film.
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
    alone = _fit(design, films, use_model=False)
    estimates = []
    for index, group in enumerate(groups):
        shares = [film.judged for film in group if film.n]
        value = min(max(float(with_model.values[index]), 0.0), 1.0)
        low, high = _interval(with_model, index, shares)
        low_alone, high_alone = _interval(alone, index, shares)
        # An interval's squared width is proportional to 1 / the number of judgements.
        ratio = ((high_alone - low_alone) / (high - low)) ** 2 if high > low else 1.0
        n_with_rarer_answer = _n_with_rarer_answer(np.array(shares))
        estimates.append(Estimate(value, low, high, ratio, n_with_rarer_answer=n_with_rarer_answer))
    return estimates


def estimate_contrast(films: Sequence[FilmSample], x: Floats) -> Estimate:
    """Estimate the least-squares slope of films' rates on a number x [N]: a year, or 0 and 1 for two groups.

    It is refused in two cases. The judged films (of a trend, or of one of two groups) have the same share, so
    that nothing is known of how films differ. Or the films were judged by different people, and judges and x
    vary together, so that the slope is not determined without some single film, or is larger than the
    difference of any two shares.
    """
    is_judged = np.array([film.n > 0 for film in films])
    shares = np.array([film.judged for film in films])[is_judged]
    n_with_rarer_answer = _n_with_rarer_answer(shares)
    judges = _judge_covariates(films)
    n_judge_columns = judges.shape[1]
    # x is scaled to at most 1, so that tolerances mean the same for years as for shares.
    scale = float(np.abs(x - x.mean()).max()) or 1.0
    design = np.column_stack([np.ones(len(x)), (x - x.mean()) / scale])
    slope = 1  # index of the slope's coefficient; that of the mean is 0
    fit = _fit(design, films, use_model=True, judges=judges)
    value = float(fit.values[slope]) / scale
    # Rates lie between 0 and 1, and so one group's mean is at most 1 above the other's.
    is_of_two_groups = len(np.unique(x)) == 2
    largest = 1 / float(np.ptp(x)) if is_of_two_groups else np.inf
    is_possible = abs(value) <= largest + MIN_SPREAD
    reason = _why_all_alike(shares, x[is_judged])
    if not reason and n_judge_columns and not (fit.is_determined[slope] and is_possible):
        names = sorted({name for film in films for name in film.judges})
        reason = message("reason_judges", names=", ".join(map(judge_name, names)))
    if reason:
        return Estimate(reason=reason, n_with_rarer_answer=n_with_rarer_answer)
    robust = _half_width(fit.variances[slope], fit.freedom[slope])
    classical = _half_width(fit.classical[slope], freedom=len(shares) - 2 - n_judge_columns)
    half_width = float(max(robust, classical)) / scale
    ends = np.clip([value, value - half_width, value + half_width], -largest, largest)
    value, low, high = ends.tolist()
    return Estimate(
        value,
        low,
        high,
        n_with_rarer_answer=n_with_rarer_answer,
        accounts_for_judges=n_judge_columns > 0,
    )


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
    are_equal = np.ptp(shares) < MIN_SPREAD
    if len(groups) != 2:
        return message("reason_alike") if are_equal else ""
    are_equal_in_a_group = any(np.ptp(shares[x == group]) < MIN_SPREAD for group in groups)
    return message("reason_alike_group") if are_equal or are_equal_in_a_group else ""


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
    """Least squares on a design [n, k].

    Attributes
    ----------
    design : ndarray, shape [n, k]
    inverse : ndarray, shape [k, n]
        The design's pseudo-inverse: times values [n], it gives their coefficients [k].
    free : ndarray, shape [n]
        1 - leverage of each row: the part of a row's variance that its residual keeps.
    free_above_0 : ndarray, shape [n]
        The same, at least `LEAST_FREE`, to divide by.
    """

    def __init__(self, design: Floats) -> None:
        """Compute the pseudo-inverse and the leverages."""
        self.design = design
        self.inverse: NDArray[Any] = np.linalg.pinv(design, LEAST_SINGULAR)
        self.free: Floats = 1 - (design * self.inverse.T).sum(axis=1)
        self.free_above_0: Floats = np.maximum(self.free, LEAST_FREE)

    def residuals(self, values: Floats) -> Floats:
        """Return the residuals of values [n]: the values less what the design fits of them."""
        residuals: Floats = values - self.design @ (self.inverse @ values)
        return residuals

    def is_determined(self, n_columns: int) -> NDArray[np.bool_]:
        """Tell which of the first `n_columns` coefficients the rows determine, also without any single row.

        A row that is fitted exactly has no residual, and so says nothing of a coefficient's error: a
        coefficient is not determined if such a row has any weight in it.
        """
        is_estimable = np.isclose(np.diag(self.inverse @ self.design)[:n_columns], 1)
        is_fitted_exactly = self.free < LEAST_FREE
        weights_of_such_rows = self.inverse[:n_columns, is_fitted_exactly]
        needs_no_such_row = np.all(np.abs(weights_of_such_rows) < LEAST_WEIGHT, axis=1)
        return np.logical_and(is_estimable, needs_no_such_row)

    def degrees_of_freedom(self, n_columns: int) -> Floats:
        """Return Satterthwaite's degrees of freedom of the first `n_columns` coefficients' robust variances.

        For rows of equal variance, the robust (HC2) variance of a coefficient with weights w is e' G e, with
        G = M diag(w^2 / free) M, where M = I - H makes residuals of values. Its degrees of freedom are
        trace(G)^2 / trace(G G) (Bell and McCaffrey, Survey Methodology 28, 2002).
        """
        to_residuals = np.eye(len(self.design)) - self.design @ self.inverse
        freedom = []
        for weights in self.inverse[:n_columns]:
            form = to_residuals * (weights**2 / self.free_above_0) @ to_residuals
            freedom.append(np.trace(form) ** 2 / (form * form).sum())
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
    judged_design = design[is_judged]
    if judges is not None:
        judged_design = np.column_stack([judged_design, judges - judges.mean(axis=0)])
    of_judged = _LeastSquares(judged_design)
    distances = of_all.residuals(sample.expected)  # of the model's mean of each film from its group's
    rates = sample.judged[is_judged]
    slopes_between = np.zeros(len(rates))
    if use_model:
        rates = _moved_within_films(sample, is_judged)
        # If all films are judged, and by the same people, there is nothing to move between films.
        is_nothing_to_move = is_judged.all() and judged_design.shape == design.shape
        if not is_nothing_to_move:
            slopes_between = _slopes_between_films(of_judged, rates, distances[is_judged])
            rates = rates - slopes_between * distances[is_judged]
    errors = _Errors(
        of_all=of_all,
        of_judged=of_judged,
        is_judged=is_judged,
        n_columns=n_columns,
        residuals=of_judged.residuals(rates),
        from_model=slopes_between.mean() * distances,
    )
    return _Fit(
        values=of_judged.inverse[:n_columns] @ rates,
        variances=errors.robust_variances(),
        freedom=errors.degrees_of_freedom(),
        classical=errors.classical_variances(),
        is_determined=of_judged.is_determined(n_columns),
    )


def _moved_within_films(sample: _SampleArrays, is_judged: NDArray[np.bool_]) -> Floats:
    """Correct the rates of the n judged films for which of their windows were drawn (difference estimate)."""
    covariance, variance = sample.covariance[is_judged], sample.variance[is_judged]
    slopes = _slopes_of_others(covariance, variance, covariance.sum(), variance.sum())
    return np.asarray(sample.judged[is_judged] - slopes * (sample.drawn - sample.expected)[is_judged])


def _slopes_between_films(of_judged: _LeastSquares, rates: Floats, distances: Floats) -> Floats:
    """Compute for each of n judged films the slope of the others' rates on the model's distances [n].

    The least-squares slope without a film is that of sums without its product of residuals, which counts
    1 / (1 - leverage) times.
    """
    rate_residuals = of_judged.residuals(rates)
    distance_residuals = of_judged.residuals(distances)
    return _slopes_of_others(
        rate_residuals * distance_residuals / of_judged.free_above_0,
        distance_residuals**2 / of_judged.free_above_0,
        float(rate_residuals @ distance_residuals),
        float(distance_residuals @ distance_residuals),
    )


def _slopes_of_others(
    products: Floats, squares: Floats, sum_of_products: float, sum_of_squares: float
) -> Floats:
    """Compute for each of n films the slope of all other films, cut at 0 and 1; 0 if the others don't vary.

    Parameters
    ----------
    products, squares : ndarray, shape [n]
        What the sums lose without each film.
    sum_of_products, sum_of_squares : float
        Numerator and denominator of the slope of all films.
    """
    numerators = sum_of_products - products
    denominators = sum_of_squares - squares
    varies = denominators > 1e-12  # smaller ones are errors of rounding
    slopes = np.divide(numerators, denominators, out=np.zeros_like(numerators), where=varies)
    return np.clip(slopes, 0, 1)


@dataclass(frozen=True, eq=False, slots=True)
class _Errors:
    """What is known of the errors of a design's k coefficients.

    An error has two parts: that of the n judged films' rates, and that of moving them by the model's means of
    all N films.

    Attributes
    ----------
    of_all, of_judged : _LeastSquares
        Of the design, and of its judged films with their judges.
    is_judged : ndarray of bool, shape [N]
    n_columns : int
        k.
    residuals : ndarray, shape [n]
        Of the judged films' rates.
    from_model : ndarray, shape [N]
        How far each film's mean by the model moves the rates.
    """

    of_all: _LeastSquares
    of_judged: _LeastSquares
    is_judged: NDArray[np.bool_]
    n_columns: int
    residuals: Floats
    from_model: Floats

    @property
    def weights(self) -> Floats:
        """The weights [k, n] of the judged films' rates in each coefficient."""
        return np.asarray(self.of_judged.inverse[: self.n_columns])

    def _errors_of_judged(self) -> Floats:
        """Return what each judged film's residual adds to the error of each coefficient [k, n] (HC2)."""
        return self.weights * (self.residuals / np.sqrt(self.of_judged.free_above_0))

    def robust_variances(self) -> Floats:
        """Return the sums [k] of the squares of what each film adds to a coefficient's error."""
        errors = self.of_all.inverse * self.from_model
        errors[:, self.is_judged] += self._errors_of_judged()
        return np.asarray((errors**2).sum(axis=1))

    def degrees_of_freedom(self) -> Floats:
        """Return the degrees of freedom [k] of the robust variances (Satterthwaite).

        1 / freedom is the sum over both parts of share^2 / freedom; shares are those of the variance.
        """
        variance_judged = (self._errors_of_judged() ** 2).sum(axis=1)
        variance_model = np.maximum(self.robust_variances() - variance_judged, 0)
        tiny = 1e-300  # if both variances are 0, the share of the first is 1: nothing is divided by 0
        total = np.maximum(variance_judged + variance_model, tiny)
        share_judged = np.maximum(variance_judged, tiny) / total
        share_model = variance_model / total
        freedom_judged = self.of_judged.degrees_of_freedom(self.n_columns)
        freedom_model = len(self.is_judged) - self.n_columns
        return np.asarray(1 / (share_judged**2 / freedom_judged + share_model**2 / freedom_model))

    def classical_variances(self) -> Floats:
        """Return the variances [k] of both parts if all films have the same variance."""
        n_free = max(len(self.residuals) - self.of_judged.design.shape[1], 1)
        freedom_model = len(self.is_judged) - self.n_columns
        residual_variance = self.residuals @ self.residuals / n_free
        model_variance = self.from_model @ self.from_model / max(freedom_model, 1)
        covariance = self.residuals @ self.from_model[self.is_judged] / n_free
        variances = (
            residual_variance * (self.weights**2).sum(axis=1)
            + model_variance * (self.of_all.inverse**2).sum(axis=1)
            + 2 * covariance * (self.weights * self.of_all.inverse[:, self.is_judged]).sum(axis=1)
        )
        return np.asarray(np.maximum(variances, 0))


def _interval(fit: _Fit, index: int, shares: Sequence[float]) -> tuple[float, float]:
    """Find the interval of a group's mean rate: the rates that lie at most t standard errors from it.

    The standard error is that which the estimate would have if the rate were R. Its square is

        variance(R) = variance * (R (1 - R) / (S (1 - S)))^1.5

    where S is the mean share of the judged films, at which the variance is known. The power lies between 1,
    as for windows (Wilson's interval), and 2, as for films that differ in their odds.

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
    spread = share * (1 - share)  # rounding of sums of weights may bring a share above 1, and this below 0
    power = POWER
    if spread < MIN_SPREAD or variance < MIN_VARIANCE:
        # All judged films are alike, and their variance is not known. That of n films, each of which counts
        # as one judgement, is taken: R (1 - R) / n.
        variance = 1 / len(shares)
        spread = 1.0
        power = 1.0
    t_squared = float(stdtrit(freedom, (1 + LEVEL) / 2)) ** 2

    def excess(rate: float) -> float:
        """Return a rate's squared distance from the mean less that of t standard errors: above 0 outside."""
        return (rate - mean) ** 2 - t_squared * variance * float((rate * (1 - rate) / spread) ** power)

    inside = min(max(mean, 1e-9), 1 - 1e-9)
    return float(brentq(excess, 0.0, inside)), float(brentq(excess, inside, 1.0))
