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
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from obygaze_film.cells import Cells
from obygaze_film.draws import SUCCESSIVE, Law, inclusion_chances
from obygaze_film.notes import judge_name, said
from obygaze_film.rate_estimates import LEVEL, MIN_VARIANCE

Floats = NDArray[np.float64]

LEAST_FILMS: Final = 5
"""Minimum number of judged films of a group; of fewer, an interval of rare things is too narrow."""

LEAST_OF_TREND: Final = 10
"""Minimum number of judged films of a trend."""


POWER: Final = 1.5
"""Of R (1 - R) in the variance at a rate R of films' estimates."""


MIN_SPREAD = 1e-9
"""Of a rate that is neither 0 nor 1; below it is rounding."""


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
        Of the judged windows' means: of `judged` with `drawn`, and of `drawn`, by the draw of the windows.
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
    law: Law = SUCCESSIVE,
) -> FilmSample:
    """Summarise a film and its judged cells, which `Cells.drawn` drew.

    Parameters
    ----------
    cells : Cells
    judged : ndarray of int, shape [n]
    y : ndarray, shape [n]
        Their judgements, 0 to 1.
    judges : mapping of str to ndarray, shape [n], optional
        Each judge's share of these judgements.
    law : str
        By which they were drawn.
    """
    expected, n = float(np.average(cells.p, weights=cells.content)), len(judged)
    if not n:
        return FilmSample(expected)
    chances = inclusion_chances(cells.content, n, law)[judged]
    weights = cells.content[judged] / chances
    weights = weights / weights.sum()
    p = cells.p[judged]
    mean_y, mean_p = float(weights @ y), float(weights @ p)
    factor = float(((1 - chances) * weights**2).sum())
    covariance = float(weights @ ((y - mean_y) * (p - mean_p))) * n / max(n - 1, 1)
    variance = float(np.average((cells.p - expected) ** 2, weights=cells.content))
    shares = {name: float(weights @ share) for name, share in (judges or {}).items()}
    return FilmSample(expected, mean_y, mean_p, factor * covariance, factor * variance, n, shares)


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
        Of a contrast: how many judged films have any positive judgement, or lack any: the fewer of both.
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
    with_model, alone = (_fit(design, films, use_model=use_model) for use_model in (True, False))
    estimates = []
    for place, group in enumerate(groups):
        shares = [film.judged for film in group if film.n]
        value = min(max(float(with_model.values[place]), 0.0), 1.0)
        low, high = _interval(with_model, place, shares)
        low_alone, high_alone = _interval(alone, place, shares)
        worth = ((high_alone - low_alone) / (high - low)) ** 2 if high > low else 1.0
        estimates.append(Estimate(value, low, high, worth))
    return estimates


def estimate_contrast(films: Sequence[FilmSample], x: Floats) -> Estimate:
    """Estimate the least-squares slope of films' rates on a number [N], as on a group's 0 and 1.

    It is refused where the judged films of a group, or all of a trend, are alike, as nothing is known then of
    how films differ; and where one judged film or none tells the number from the judges.
    """
    known = np.array([film.n > 0 for film in films])
    shares, own_x = np.array([film.judged for film in films])[known], x[known]
    n_any = int(min((shares > MIN_SPREAD).sum(), (shares < 1 - MIN_SPREAD).sum()))
    # In units of its own: which coefficients are told must not depend on the number's.
    unit = float(np.abs(x - x.mean()).max()) or 1.0
    design = np.column_stack([np.ones(len(x)), (x - x.mean()) / unit])
    judges = _judges(films)
    fit = _fit(design, films, use_model=True, judges=judges)
    sides = np.unique(own_x)
    reason: str = ""
    if any(np.ptp(shares[own_x == side]) < MIN_SPREAD for side in (sides if len(sides) == 2 else ())) or (
        np.ptp(shares) < MIN_SPREAD
    ):
        reason = said("reason_alike_group" if len(sides) == 2 else "reason_alike")
    elif judges.shape[1] and not fit.is_told[1]:
        names = ", ".join(map(judge_name, sorted({name for film in films for name in film.judges})))
        reason = said("reason_judges", names=names)
    if reason:
        return Estimate(reason=reason, n_any=n_any)
    robust, classical = (
        stdtrit(freedom, (1 + LEVEL) / 2) * np.sqrt(variance)
        for variance, freedom in (
            (fit.variances[1], fit.freedom[1]), (fit.classical[1], len(shares) - 2 - judges.shape[1]),
        )
    )  # fmt: skip
    value, half = float(fit.values[1]) / unit, float(max(robust, classical)) / unit
    # Rates lie between 0 and 1, and so no group's mean is more than 1 above the other's.
    most = 1 / float(np.ptp(x)) if len(np.unique(x)) == 2 else np.inf
    value, low, high = np.clip([value, value - half, value + half], -most, most).tolist()
    return Estimate(value, low, high, n_any=n_any, accounts_for_judges=judges.shape[1] > 0)


def _judges(films: Sequence[FilmSample]) -> Floats:
    """Make covariates of the judged films [n, J - 1]: judges' shares, but for the first and constant ones."""
    judged = [film.judges for film in films if film.n]
    names = sorted({name for shares in judged for name in shares})
    shares = np.array([[shares.get(name, 0.0) for name in names[1:]] for shares in judged])
    shares = shares.reshape(len(judged), -1)
    return shares[:, np.ptp(shares, axis=0) > MIN_SPREAD] if shares.size else shares


@dataclass(frozen=True, eq=False, slots=True)
class _Fit:
    """Coefficients of a design [k]; see `_fit`.

    Attributes
    ----------
    values, variances, freedom : ndarray, shape [k]
        Robust variances, and their degrees of freedom.
    classical : ndarray, shape [k]
        Variances if all films' residuals have one.
    is_told : ndarray of bool, shape [k]
        Whether the judged films tell a coefficient, and go on doing so without any one of them.
    """

    values: Floats
    variances: Floats
    freedom: Floats
    classical: Floats
    is_told: NDArray[np.bool_]


def _fit(
    design: Floats, films: Sequence[FilmSample], *, use_model: bool, judges: Floats | None = None
) -> _Fit:
    """Fit films' rates by a design [N, k], and covariates of the judged films [n, j]."""
    expected, judged, drawn, covariance, variance = (
        np.array([getattr(film, name) for film in films])
        for name in ("expected", "judged", "drawn", "covariance", "variance")
    )
    known = ~np.isnan(judged)
    n_columns = design.shape[1]
    own, y = design[known], judged[known]
    if judges is not None:
        own = np.column_stack([own, judges - judges.mean(axis=0)])
    inverse, weights_of_all = np.linalg.pinv(own, MIN_SPREAD), np.linalg.pinv(design, MIN_SPREAD)
    weights = inverse[:n_columns]
    scale = 1 - (own * inverse.T).sum(axis=1)
    # A film without which a coefficient is not told has no residual, which would say nothing of its error.
    is_told = np.isclose(np.diag(inverse @ own)[:n_columns], 1) & (
        np.abs(weights[:, scale < MIN_SPREAD]) < MIN_SPREAD
    ).all(axis=1)
    scale = np.maximum(scale, MIN_SPREAD)
    apart = expected - design @ (weights_of_all @ expected)
    slope = np.zeros(len(y))
    if use_model:
        y = y - _without_own(covariance[known], variance[known]) * (drawn - expected)[known]
    # Of films that are all judged, and by the same people, there is nothing to move.
    if use_model and not (known.all() and own.shape == design.shape):
        of_y, of_p = (values - own @ (inverse @ values) for values in (y, apart[known]))
        # A least-squares slope without film i: its products of residuals count 1 / scale times.
        slope = _without_own(of_y * of_p / scale, of_p**2 / scale, of_y @ of_p, of_p @ of_p)
        y = y - slope * apart[known]
    residuals = y - own @ (inverse @ y)
    parts = weights * (residuals / np.sqrt(scale))
    of_model = slope.mean() * apart
    of_films = weights_of_all * of_model
    from_judged = (parts**2).sum(axis=1)
    of_films[:, known] += parts
    variances = (of_films**2).sum(axis=1)
    from_model = np.maximum(variances - from_judged, 0)
    hat = np.eye(len(own)) - own @ inverse
    spread = [hat * (row**2 / scale) @ hat for row in weights]
    freedom = np.array([np.trace(matrix) ** 2 / (matrix * matrix).sum() for matrix in spread])
    rest = len(films) - n_columns
    total = np.maximum(from_judged + from_model, 1e-300)
    shares = np.maximum(from_judged, 1e-300) / total, from_model / total
    # As the robust ones, of both what the model leaves of judged films and what it says of all.
    n_free = max(len(own) - own.shape[1], 1)
    classical = (
        residuals @ residuals / n_free * (weights**2).sum(axis=1)
        + of_model @ of_model / max(rest, 1) * (weights_of_all**2).sum(axis=1)
        + 2 * (residuals @ of_model[known]) / n_free * (weights * weights_of_all[:, known]).sum(axis=1)
    )
    freedom = 1 / (shares[0] ** 2 / freedom + shares[1] ** 2 / rest)
    return _Fit(weights @ y, variances, freedom, np.maximum(classical, 0), is_told)


def _without_own(
    top: Floats, bottom: Floats, all_top: float | None = None, all_bottom: float | None = None
) -> Floats:
    """Divide the sums of all films but each one, [n]; slopes outside of 0 and 1 are cut."""
    above = (top.sum() if all_top is None else all_top) - top
    below = (bottom.sum() if all_bottom is None else all_bottom) - bottom
    slopes = np.divide(above, below, out=np.zeros_like(above), where=below > 1e-12)
    return np.clip(slopes, 0, 1)


def _interval(fit: _Fit, place: int, shares: Sequence[float]) -> tuple[float, float]:
    """Find the rates that are at most t standard errors from a mean, where an error depends on the rate.

    The variance at rate R is (R (1 - R))^1.5 times a factor, known from the judged films' `shares`: the power
    is between 1, of windows (Wilson's interval), and 2, of films that differ in their odds.
    """
    mean, variance, freedom = (float(part[place]) for part in (fit.values, fit.variances, fit.freedom))
    from scipy.optimize import brentq  # noqa: PLC0415 - slow, and films are opened without it

    value, share = min(max(mean, 0.0), 1.0), float(np.mean(shares))
    spread, power = share * (1 - share), POWER
    # Unknown, as all judged films are alike: each counts as one judgement. A sum of weights may exceed one.
    if spread < MIN_SPREAD or variance < MIN_VARIANCE:
        variance, spread, power = 1 / len(shares), 1.0, 1.0
    t_squared = float(stdtrit(freedom, (1 + LEVEL) / 2)) ** 2

    def excess(rate: float) -> float:
        return (rate - value) ** 2 - t_squared * variance * float((rate * (1 - rate) / spread) ** power)

    inside = min(max(value, 1e-9), 1 - 1e-9)
    return float(brentq(excess, 0.0, inside)), float(brentq(excess, inside, 1.0))
