"""Calibrate scores to probabilities: a posterior of sigmoids from held-out scores.

The slope comes from how scores rise with the label within films (`obygaze_models.protocol.slope`), and the
intercept from the share of positive clips, which differs between films. A probability is the mean over draws
of the posterior, and its band are quantiles of these draws. With little evidence of skill the drawn sigmoids
are flat, and every clip's probability is about the share of the training films.

A model may score all clips of one film too high, and all of another too low. Within a film this does no harm,
but of a clip of a new film nobody knows how much of its score is such a shift, so that the score says less.
The slopes are therefore made flatter, by one factor for all draws (`SlopeAcrossFilms`). Where scores of films
are not shifted the factor is 1.
"""

from dataclasses import dataclass, fields
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from obygaze_features.arguments import checked
from obygaze_features.text import counted
from obygaze_models.errors import ProtocolError
from obygaze_models.protocol.held_out import HeldOut, find_intercepts
from obygaze_models.protocol.slope import SlopeLikelihood, SlopePosterior

Floats = NDArray[np.float64]

N_DRAWS = 200
"""Draws of the posterior of all films."""

N_DRAWS_WITHOUT_FILM = 5
"""Draws of the posterior without each film, by which the calibration's errors are measured."""

CALIBRATION_BAND = (0.10, 0.90)
"""Quantiles of the drawn probabilities that bound the 80 % band."""

MIN_VARIANCE_OF_SHARE = 1e-12
"""Least variance of a share that is assumed, so that it can be divided by."""

BRACKET_COVERAGE = 0.80
"""How often the bracket around a new film's expected share should contain the true share."""

MIN_CHANCE_OF_ERRORS = 0.01
"""Films whose errors are smaller than in this share of corpora are taken to be made to have their shares."""

NORMAL_QUANTILE = 1.2815515655446004
"""This many standard deviations to each side of the mean of a normal distribution hold `BRACKET_COVERAGE`."""

MIN_SHARE = 1e-6
"""Least distance of a drawn share from 0 and 1, whose logits are not finite."""

SLOPE_FACTORS: Floats = np.linspace(1.0, 0.05, 20)
"""Factors by which slopes may be multiplied for clips of new films. The first one changes nothing. None is 0,
so that the clips of a film keep the order of their scores."""


@dataclass(frozen=True, eq=False, slots=True)
class Calibration:
    """Sigmoids from scores to probabilities, 1 / (1 + exp(-(slope * score + intercept))), and their errors.

    Attributes
    ----------
    draws : ndarray, shape [B, 2]
        Slope, at least 0, and intercept of each draw of the posterior.
    p_skilled : float
        Posterior probability that scores rise with the label within films.
    error : float
        Expected calibration error: on each film, of probabilities by a calibration on the other films.
    film_error, worst_film_error : float
        Mean and largest distance, over films, between the expected and the true share of positive clips. The
        expected share is the mean probability of the film's clips, by a calibration on the other films.
    film_margin : float
        Half the width of the 80 % bracket around a new film's expected share.
    """

    draws: Floats
    p_skilled: float
    error: float
    film_error: float
    worst_film_error: float
    film_margin: float

    @classmethod
    def fit(
        cls, held_out: HeldOut, training_mean: float | None = None, *, n_draws: int = N_DRAWS, seed: int = 0
    ) -> Self:
        """Calibrate a model on held-out scores, and measure the calibration's errors on films left out.

        Parameters
        ----------
        held_out : HeldOut
            Held-out scores of one model, with clips of both labels.
        training_mean : float, optional
            The mean score that the model to be calibrated, which is trained on all films, gives to training
            clips; by default that of the held-out scores. Held-out scores are by other models, and become
            comparable with its scores once each is taken relative to its own model's mean.
        n_draws : int
            Number of draws, B.
        seed : int
            Seed of the order in which draws of slopes are paired with draws of shares.

        Raises
        ------
        ProtocolError
            The clips are of fewer than two films, so that none can be left out to measure the errors.
        """
        n_films = len(np.unique(held_out.movies))
        if n_films < 2:
            raise ProtocolError(
                f"calibration: held-out clips of {counted(n_films, 'film')}: expected two or more, so that "
                "each can be left out to measure how far probabilities are off"
            )
        # The sigmoids are drawn from the posterior of their slopes.
        likelihood = SlopeLikelihood.of_scores(held_out)
        posterior = likelihood.posterior()
        draws = draw_sigmoids(held_out, posterior, training_mean, n_draws=n_draws, seed=seed)

        # The errors are those of calibrations on the other films.
        labels = held_out.y.astype(np.float64)
        p = left_out_probabilities(held_out, likelihood)
        _, film_of_clip = np.unique(held_out.movies, return_inverse=True)
        n_clips = np.bincount(film_of_clip)
        # For each film, the expected share of positive clips less the true share; and the variance of the
        # true share, if each clip is positive by its probability.
        errors_of_films = np.bincount(film_of_clip, p - labels) / n_clips
        variances_by_chance = np.bincount(film_of_clip, p * (1 - p)) / n_clips**2
        return cls(
            draws=draws,
            p_skilled=posterior.p_skilled,
            error=calibration_error(labels, p),
            film_error=float(np.abs(errors_of_films).mean()),
            worst_film_error=float(np.abs(errors_of_films).max()),
            film_margin=half_width_of_bracket(errors_of_new_films(errors_of_films, variances_by_chance)),
        )

    def to_json(self) -> dict[str, float]:
        """Return all fields except the draws, as JSON values for a model's card."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name != "draws"}

    def probability(self, scores: ArrayLike) -> Floats:
        """Compute the probability [N] of each score [N]: the mean over the draws."""
        return mean_probability(self.draws, np.asarray(scores, dtype=np.float64))

    def band(self, scores: ArrayLike) -> tuple[Floats, Floats]:
        """Compute the lower and upper ends [N] of the 80 % band around each score's probability.

        The band reflects the uncertainty of slope and intercept, not that of the scores. It always contains
        the probability itself.
        """
        values = np.asarray(scores, dtype=np.float64)
        p = self.probability(values)
        if not len(values):
            return p, p
        logits = values[:, None] * self.draws[:, 0] + self.draws[:, 1]
        low, high = np.quantile(expit(logits), CALIBRATION_BAND, axis=1)
        return np.minimum(low, p), np.maximum(high, p)

    def expected_share(self, scores: ArrayLike, seconds: ArrayLike) -> tuple[float, float, float]:
        """Compute the share of a film's time that is expected to be positive, and its 80 % band.

        The share is the mean probability of the film's parts, weighted by their lengths.

        Parameters
        ----------
        scores, seconds : array-like, shape [N]
            Score and length of each part of the film; there is at least one part.

        Returns
        -------
        share : float
        low, high : float
            Ends of the band.
        """
        return mean_and_band(self.draws, np.asarray(scores, np.float64), np.asarray(seconds, np.float64))

    def bracket(self, share: float, extra_variance: float = 0.0) -> tuple[float, float]:
        """Compute the 80 % prediction interval of a new film's share of positive clips, here called bracket.

        The bracket reflects how much films differ from each other; the calibration band (`band`) reflects how
        well the sigmoid is known. It is as wide for every film as the errors of films left out demand
        (`film_margin`), and is cut off at 0 and 1.

        Parameters
        ----------
        share : float
            The expected share of the new film.
        extra_variance : float
            Variance of the new film's share that is added to that of the films from which the bracket was
            estimated, as for a film of few windows (`few_windows_variance`).
        """
        half_width = self.film_margin
        if extra_variance:
            # 80 % of a normal distribution are within 1.28 standard deviations (`NORMAL_QUANTILE`) of the
            # mean. Variances add up, and so do the squares of half widths, as both are multiples of standard
            # deviations.
            extra_half_width = NORMAL_QUANTILE * np.sqrt(extra_variance)
            half_width = float(np.hypot(half_width, extra_half_width))
        return max(share - half_width, 0.0), min(share + half_width, 1.0)


@checked
def few_windows_variance(p: Floats, weights: Floats, n_windows: float, n_clips: float) -> float:
    """Compute the extra variance of a film's share of positive windows that is due to its few windows.

    The share of positives among n independent windows of probability p has the variance p (1 - p) / n. The
    errors of the films left out already contain this variance for films of `n_clips` clips, so only the
    difference is returned: p (1 - p) (1 / n_windows - 1 / n_clips), or 0 for a film with at least `n_clips`
    windows. This is a lower bound, as neighbouring windows are not independent. It is rounded to 12 decimals,
    which hides rounding errors.

    Parameters
    ----------
    p, weights : ndarray, shape [N]
        Probability and weight of each part of the film.
    n_windows : float
        Number of windows that the film would have if they did not overlap.
    n_clips : float
        Mean number of clips in the films left out.

    Examples
    --------
    >>> import numpy as np
    >>> half = np.array([0.5, 0.5])
    >>> [few_windows_variance(half, np.ones(2), n, 25.0) for n in (5, 25, 100)]
    [0.04, 0.0, 0.0]
    """
    extra = 1 / max(n_windows, 1.0) - 1 / n_clips
    # A film with at least as many windows as the films left out had clips.
    if extra <= 0:
        return 0.0
    variance_of_window = float(np.average(p * (1 - p), weights=weights))
    return round(variance_of_window * extra, 12)


@checked
def mean_probability(draws: Floats, scores: Floats) -> Floats:
    """Compute the probability of each score [N]: the mean over draws of slope and intercept [B, 2].

    Examples
    --------
    >>> mean_probability(np.array([[0.0, 0.0], [2.0, 0.0]]), np.array([0.0, 50.0])).tolist()
    [0.5, 0.75]
    """
    total = np.zeros(len(scores))
    for slope, intercept in draws.tolist():
        total += expit(slope * scores + intercept)
    return np.asarray(total / len(draws))


@checked
def mean_and_band(draws: Floats, scores: Floats, weights: Floats) -> tuple[float, float, float]:
    """Compute the weighted mean probability of scores [N], and the ends of its 80 % band.

    Each draw of slope and intercept [B, 2] gives a mean; the ends of the band are quantiles of these B means.
    The band thus shows how uncertain the calibration leaves a mean, such as a film's expected share.
    Averaging the bands of the scores would be wrong, as a draw that raises one probability may lower another.

    Examples
    --------
    >>> draws = np.array([[1.0, 0.0], [3.0, 0.0]])
    >>> mean, low, high = mean_and_band(draws, np.array([-1.0, 1.0]), np.array([1.0, 1.0]))
    >>> round(mean, 3), round(low, 3), round(high, 3)
    (0.5, 0.5, 0.5)
    """
    probabilities = expit(scores[:, None] * draws[:, 0] + draws[:, 1])  # [N, B]
    means = probabilities.T @ (weights / weights.sum())  # [B]
    mean = float(means.mean())
    low, high = np.quantile(means, CALIBRATION_BAND)
    # A few outlying draws can move the mean out of the band, which is widened to contain it.
    return mean, min(float(low), mean), max(float(high), mean)


@dataclass(frozen=True, eq=False)
class SlopeAcrossFilms:
    """By how much slopes within films have to be flattened for clips of films that are new.

    Clips of different films are compared with each other, as a new film's clip is with those of the training
    films: one intercept holds for all films. The factor of the slope is the likeliest of `SLOPE_FACTORS`. It
    is never above 1: where films rich in positives have high scores, slopes stay those within films.

    Attributes
    ----------
    movies : ndarray, shape [M]
    log_likelihoods : ndarray, shape [M, F]
        Log likelihood of each film's labels at each of F factors.
    """

    movies: NDArray[np.str_]
    log_likelihoods: Floats

    @classmethod
    def of_scores(cls, held_out: HeldOut, slope_within: float) -> Self:
        """Compute how likely the labels of each film are, by one model's held-out scores of N clips.

        The logit of a clip is its score, relative to the mean of training clips, times a slope, plus an
        intercept. The slope is `slope_within`, that within films, times each of `SLOPE_FACTORS` in turn. For
        each of them the intercept makes the mean probability of all clips equal to their share of positive
        clips. That one intercept is used for every film, although `factor` then leaves films out.
        """
        movies, film_of_clip = np.unique(held_out.movies, return_inverse=True)
        scores = held_out.relative_scores
        labels = held_out.y.astype(np.float64)
        n_clips = len(labels)

        # As if there were half a clip more of each label: the logits of 0 and 1 are not finite.
        share = (labels.sum() + 0.5) / (n_clips + 1)
        shares = np.full(len(SLOPE_FACTORS), share)
        equal_weights = np.ones((1, n_clips))
        slopes = slope_within * SLOPE_FACTORS
        intercepts = find_intercepts(slopes, scores, equal_weights, shares)

        sums_of_films = []
        for slope, intercept in zip(slopes, intercepts, strict=True):
            logits = slope * scores + intercept
            log_likelihood_of_clips = labels * logits - np.logaddexp(0, logits)
            sums_of_films.append(np.bincount(film_of_clip, log_likelihood_of_clips))
        return cls(movies=movies, log_likelihoods=np.column_stack(sums_of_films))

    def factor(self, without: object = None) -> float:
        """Return the likeliest factor of the slope, from all films, or from all but the movie `without`."""
        sums = self.log_likelihoods.sum(axis=0)
        if without is not None:
            (film,) = np.flatnonzero(self.movies == without)
            sums = sums - self.log_likelihoods[film]
        # If the slope is 0, all factors are equally likely, and the first one, 1, is taken.
        return float(SLOPE_FACTORS[np.argmax(sums)])


def draw_sigmoids(
    held_out: HeldOut, posterior: SlopePosterior, training_mean: float | None, *, n_draws: int, seed: int
) -> Floats:
    """Draw slope and intercept of calibration sigmoids from their posterior, [B, 2].

    The slopes are evenly spaced quantiles of their posterior within films, times the factor by which slopes
    are flattened for clips of new films (`SlopeAcrossFilms`). The shares of positive clips are quantiles of
    their own posterior, which is independent of that of slopes: slopes and shares are paired in a random
    order. Means over such draws have hardly any sampling error. The intercept of a draw makes the mean
    probability of the held-out clips equal to the draw's share.

    Parameters
    ----------
    held_out : HeldOut
        Scores of N clips.
    posterior : SlopePosterior
    training_mean : float or None
        Mean score of training clips by the model that is calibrated; None for that of the held-out scores.
    n_draws : int
        B.
    seed : int
    """
    # For 4 draws the quantiles at .125, .375, .625 and .875.
    levels_of_slopes = (np.arange(n_draws) + 0.5) / n_draws
    levels_of_shares = np.random.default_rng(seed).permutation(levels_of_slopes)
    median_slope = posterior.median_above_0  # within films
    factor = SlopeAcrossFilms.of_scores(held_out, median_slope).factor()
    slopes = factor * posterior.quantiles(levels_of_slopes)
    shares = share_quantiles(held_out, levels_of_shares)

    # All clips count equally in the mean probability, in all draws: [1, N].
    equal_weights = np.ones((1, len(held_out.y)))
    # First for relative scores, which are comparable between the models of different folds.
    intercepts_of_relative = find_intercepts(slopes, held_out.relative_scores, equal_weights, shares)

    if training_mean is None:
        training_mean = float(held_out.training_means.mean())
    # The sigmoids are of the scores themselves. A relative score is a score less the mean of training clips:
    # slope * (score - mean) + intercept = slope * score + (intercept - slope * mean).
    intercepts = intercepts_of_relative - slopes * training_mean
    return np.column_stack([slopes, intercepts])


def share_quantiles(held_out: HeldOut, quantile_levels: Floats) -> Floats:
    """Compute quantiles of the posterior of the share of positive clips, given held-out clips, [B].

    `quantile_levels` [B] say which quantiles: 0.5 is the median. The posterior of a share is a beta
    distribution, whose parameters are the numbers of positive and of negative clips, plus 0.5 each (Jeffreys'
    prior). The clips of a film are alike, and count as fewer (`_count_independent_clips`).
    """
    from scipy.stats import beta  # noqa: PLC0415 - slow to import, and not needed to apply a model

    share = float(held_out.y.astype(np.float64).mean())
    n_independent = max(_count_independent_clips(held_out), 1.0)
    n_positive = n_independent * share
    n_negative = n_independent * (1 - share)
    quantiles = beta.ppf(quantile_levels, n_positive + 0.5, n_negative + 0.5)
    # The logits of 0 and 1 are not finite.
    return np.clip(quantiles, MIN_SHARE, 1 - MIN_SHARE)


def _count_independent_clips(held_out: HeldOut) -> float:
    """Estimate how many independent clips would give the share of positive clips the same variance.

    The share p of n independent clips has the variance p (1 - p) / n. Clips of a film are alike, so that the
    variance of their share is larger, and they count as n = p (1 - p) / variance clips. The result is at most
    the number of clips. For a single film, whose variance is unknown, it is the number of clips.
    """
    labels = held_out.y.astype(np.float64)
    n_clips = len(labels)
    share = float(labels.mean())
    variance = _variance_of_share(labels, held_out.movies)
    if variance is None:
        return float(n_clips)
    n_independent = share * (1 - share) / max(variance, MIN_VARIANCE_OF_SHARE)
    return float(min(n_clips, n_independent))


def _variance_of_share(labels: Floats, movies: NDArray[np.str_]) -> float | None:
    """Estimate the variance of the share of positive clips between sets of films like these.

    It is estimated by the delete-one jackknife: with the shares s_i without each of K films, and their mean
    m, the variance is (K - 1) / K * sum of (s_i - m)^2 (Efron and Stein 1981). An estimate from few films is
    itself uncertain. To allow for this, the standard deviation is multiplied by the ratio of the .9 quantiles
    of Student's t distribution and of the normal distribution.

    Parameters
    ----------
    labels : ndarray, shape [N]
        0 or 1.
    movies : ndarray of str, shape [N]

    Returns
    -------
    float or None
        None for a single film.

    Examples
    --------
    >>> round(_variance_of_share(np.array([1, 0, 0, 0]), np.array(["a", "a", "b", "b"])), 3)
    0.36
    """
    from scipy.stats import norm, t  # noqa: PLC0415 - slow to import, and not needed to apply a model

    _, film_of_clip = np.unique(movies, return_inverse=True)
    n_clips_of_films = np.bincount(film_of_clip)
    n_positives_of_films = np.bincount(film_of_clip, labels)
    n_films = len(n_clips_of_films)
    if n_films < 2:
        return None
    shares_without_film = (labels.sum() - n_positives_of_films) / (len(labels) - n_clips_of_films)
    sum_of_squares = np.sum((shares_without_film - shares_without_film.mean()) ** 2)

    # The quantile at the upper end of the 80 % band, which this variance makes wide enough.
    quantile_level = CALIBRATION_BAND[1]
    t_over_normal = t.ppf(quantile_level, n_films - 1) / norm.ppf(quantile_level)
    return float((n_films - 1) / n_films * sum_of_squares * t_over_normal**2)


def left_out_probabilities(held_out: HeldOut, likelihood: SlopeLikelihood) -> Floats:
    """Compute the probability [N] of each clip by a calibration that is fitted on the other films.

    Such probabilities show how far a calibration is off on a new film. The slope and intercept of the
    calibration are not known exactly; a clip's probability is the mean over several draws of them.
    `likelihood` is the likelihood of slopes of the same held-out scores.
    """
    scores = held_out.relative_scores
    across_films = SlopeAcrossFilms.of_scores(held_out, likelihood.posterior().median_above_0)
    p = np.empty(len(held_out.y))
    for movie in np.unique(held_out.movies):
        in_movie = held_out.movies == movie
        draws = _draw_sigmoids_without(held_out, likelihood, across_films, movie)
        p[in_movie] = mean_probability(draws, scores[in_movie])
    return p


def _draw_sigmoids_without(
    held_out: HeldOut, likelihood: SlopeLikelihood, across_films: SlopeAcrossFilms, movie: str
) -> Floats:
    """Draw slope and intercept of calibration sigmoids from what all films but one tell, [B, 2].

    The few slopes that are drawn are evenly spaced quantiles of their posterior without the film, times the
    factor by which slopes are flattened for clips of new films. The intercept makes the mean probability of
    the other films' clips equal to their share of positive clips. If these clips all have one label, no share
    can be estimated from them: it is then taken from all films.

    The sigmoids are of relative scores: scores less the mean that the same model gives to training clips.
    """
    quantile_levels = (np.arange(N_DRAWS_WITHOUT_FILM) + 0.5) / N_DRAWS_WITHOUT_FILM
    factor = across_films.factor(without=movie)
    slopes = factor * likelihood.posterior(without=movie).quantiles(quantile_levels)

    # The clips from which the share of positive clips is estimated.
    gives_share = held_out.movies != movie
    has_one_label = np.ptp(held_out.y[gives_share]) == 0
    if has_one_label:
        gives_share = np.ones(len(gives_share), dtype=np.bool_)
    # The mean of the posterior with Jeffreys' prior, as if there were half a clip more of each label.
    share = (held_out.y[gives_share].sum() + 0.5) / (gives_share.sum() + 1)

    # Clips that do not give the share have the weight 0 in the mean probability. All draws have the same
    # weights: [1, N].
    clip_weights = gives_share[None].astype(np.float64)
    shares = np.full(N_DRAWS_WITHOUT_FILM, share)
    intercepts = find_intercepts(slopes, held_out.relative_scores, clip_weights, shares)
    return np.column_stack([slopes, intercepts])


def errors_of_new_films(errors: Floats, variances_by_chance: Floats) -> Floats:
    """Return the errors [M] of expected shares that new films are to be expected to have.

    They are those of the films left out, unless these are so small that chance makes them smaller in only one
    corpus of a hundred (`MIN_CHANCE_OF_ERRORS`). Somebody then chose the clips such that films have nearly
    the same share, as if half of each film's clips had to be positive. A new film is not chosen so. Its
    errors are taken to be those of a film whose clips are positive by their probabilities, independently.

    Parameters
    ----------
    errors : ndarray, shape [M]
        Of the films left out.
    variances_by_chance : ndarray, shape [M]
        The variance of each film's share, if its clips are positive by their probabilities p, independently:
        the mean of p (1 - p), divided by the number of clips.
    """
    from scipy.special import chdtr  # noqa: PLC0415 - slow to import, and not needed to apply a model

    if not variances_by_chance.all():
        return errors  # a film of which each clip is certain leaves nothing to chance
    # By chance, the sum of squared standardised errors has the chi-squared distribution.
    sum_of_squares = float(np.sum(errors**2 / variances_by_chance))
    chance_of_smaller_errors = float(chdtr(len(errors), sum_of_squares))
    if chance_of_smaller_errors < MIN_CHANCE_OF_ERRORS:
        return np.sqrt(variances_by_chance)
    return errors


def half_width_of_bracket(errors: Floats) -> float:
    """Compute half the width of the bracket of a new film's share, from the errors [M] of films left out.

    The bracket is a prediction interval. With the variance v of one film's error, estimated by the mean
    square of the errors, half its width is::

        t * sqrt(v + v / M)

    where v / M is the variance of the calibration itself, which is fitted on M films, and t the quantile of
    Student's distribution. It has M degrees of freedom, not M - 1, as no mean is subtracted from the errors.

    The bracket is on the scale of shares, as one on the logit scale would miss films without any positive
    clip (benchmarks/planted/rates.py).
    """
    from scipy.stats import t  # noqa: PLC0415 - slow to import, and not needed to apply a model

    n_films = len(errors)
    variance_of_film = np.mean(errors**2)
    deviation = np.sqrt(variance_of_film * (1 + 1 / n_films))
    upper_quantile = (1 + BRACKET_COVERAGE) / 2
    return float(t.ppf(upper_quantile, n_films) * deviation)


def calibration_error(y: ArrayLike, p: ArrayLike, n_bins: int = 10) -> float:
    """Compute the expected calibration error of probabilities, over bins of equal numbers of clips.

    Parameters
    ----------
    y : array-like of int, shape [N]
        Labels, 0 or 1.
    p : array-like, shape [N]
        Probabilities of label 1.
    n_bins : int

    Returns
    -------
    float
        Mean, over clips, of the distance between their bin's mean probability and share of positives.
    """
    labels = np.asarray(y, dtype=np.float64)
    values = np.asarray(p, dtype=np.float64)
    # The border of two bins may divide clips of equal probability, whose order is arbitrary. The label of
    # each is therefore replaced by the share of positives among all clips of this probability.
    _, group_of_clip, sizes = np.unique(values, return_inverse=True, return_counts=True)
    share_of_group = np.bincount(group_of_clip, labels) / sizes
    shares = share_of_group[group_of_clip]
    order = np.argsort(values, kind="stable")
    total = 0.0
    for rows in np.array_split(order, n_bins):
        # The difference of two sums over the bin is its number of clips times the difference of the means.
        total += abs(values[rows].sum() - shares[rows].sum())
    return float(total / len(labels))
