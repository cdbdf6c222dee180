"""A rate where judges are not sure of many windows: the model is compared with all that was judged."""

from typing import NamedTuple

import numpy as np
import pytest
from scipy.special import expit, logit

from obygaze_film.comparison import sample_of
from obygaze_film.draws import SEQUENTIAL_POISSON
from obygaze_film.rate_estimates import estimate_rate
from obygaze_film.workspace.anytime import anytime_interval
from tests.film.films import planted_cells

N_WINDOWS = 130


class PlantedFilm(NamedTuple):
    """Windows of a film [C]: the model's probabilities, which are positive, and which a judge is sure of."""

    cells: object
    y: np.ndarray
    is_sure: np.ndarray

    @property
    def share(self):
        """The positive share of the content that the judge is sure of."""
        sure_s = self.cells.content_s * self.is_sure
        return (sure_s * self.y).sum() / sure_s.sum()


def planted_film(rng, *, unsure_positives, unsure_negatives, n_windows=N_WINDOWS):
    """Plant a film of a good model: three in ten windows are positive; a share of each label is unsure."""
    y = (rng.random(n_windows) < 0.3).astype(float)
    score = 2 * (y - 0.5) + rng.normal(size=n_windows)
    p = expit(2 * score + logit(0.3))
    is_unsure = rng.random(n_windows) < np.where(y == 1, unsure_positives, unsure_negatives)
    cells = planted_cells(content_s=np.full(n_windows, 46.0), p=p)
    return PlantedFilm(cells, y, ~is_unsure)


def estimate(film, drawn, **options):
    """Estimate the share from drawn windows, of which the judge is not sure of some."""
    sure = drawn[film.is_sure[drawn]]
    unsure = drawn[~film.is_sure[drawn]].tolist()
    return estimate_rate(film.cells, sure[None], film.y[sure][None], unsure=unsure, **options)


@pytest.mark.long
@pytest.mark.parametrize(("unsure_positives", "unsure_negatives"), [(0.2, 0.2), (0.6, 0.1), (0.1, 0.6)])
def test_the_interval_holds_the_share_of_what_judges_are_sure_of(unsure_positives, unsure_negatives):
    """A judge who is unsure of six in ten negatives is sure of other windows than the film has.

    Compared with the mean probability of the film, those windows looked too high, and .78 of intervals held.
    """
    rng = np.random.default_rng(2)
    n_films = 100

    n_held = 0
    for _ in range(n_films):
        film = planted_film(rng, unsure_positives=unsure_positives, unsure_negatives=unsure_negatives)
        drawn = rng.permutation(N_WINDOWS)[:60]
        estimates = estimate(film, drawn)
        n_held += bool(estimates.low[0] <= film.share <= estimates.high[0])

    assert n_held / n_films >= 0.92


def test_a_good_model_narrows_the_interval_also_if_a_judge_is_unsure_of_windows():
    """A judge sees 60 windows of a film, and is not sure of a fifth of the positive and of the negative ones.

    The film's model tells positive windows well. So the interval of the film's share is at least a tenth
    narrower than that from the judge's answers alone.
    """
    rng = np.random.default_rng(3)
    film = planted_film(rng, unsure_positives=0.2, unsure_negatives=0.2)
    sixty_windows = rng.permutation(N_WINDOWS)[:60]

    estimates = estimate(film, sixty_windows)

    (width,) = estimates.high - estimates.low
    (width_without_model,) = estimates.high_without_model - estimates.low_without_model
    assert width < 0.9 * width_without_model


def test_an_estimate_by_hand_where_the_judge_is_not_sure_of_half():
    """Of ten windows 4 are judged: two surely, at p .9 (yes) and .1 (no), and two not, at p .1.

    The mean p of all judged windows is .3, as that of the film. So the model corrects nothing, and the share
    is what was judged: a half.
    """
    p = [0.9, 0.1, 0.1, 0.1, 0.9, 0.1, 0.1, 0.1, 0.3, 0.3]
    cells = planted_cells(content_s=np.full(10, 46.0), p=p)

    estimates = estimate_rate(cells, np.array([[0, 1]]), np.array([[1.0, 0.0]]), unsure=[2, 3])

    assert estimates.gain[0] > 0
    assert estimates.value[0] == pytest.approx(0.5)


def test_windows_of_an_earlier_draw_with_unsure_ones_are_estimated_without_the_model():
    """Its estimate has no place for what a judge was not sure of."""
    rng = np.random.default_rng(4)
    film = planted_film(rng, unsure_positives=0.1, unsure_negatives=0.6)

    estimates = estimate(film, rng.permutation(N_WINDOWS)[:60], sampling=SEQUENTIAL_POISSON)

    assert estimates.gain[0] == 0
    assert estimates.low[0] == estimates.low_without_model[0]


@pytest.mark.long
def test_the_interval_at_any_time_holds_the_share_of_what_judges_are_sure_of():
    """Bets on differences from the model won against the right share in one of five draws of 400 windows."""
    rng = np.random.default_rng(5)
    n_windows = 400
    n_films = 40

    n_held = 0
    for _ in range(n_films):
        film = planted_film(rng, unsure_positives=0.1, unsure_negatives=0.6, n_windows=n_windows)
        drawn = rng.permutation(n_windows)[:150]
        is_sure = film.is_sure[drawn]
        sure = drawn[is_sure]
        low, high = anytime_interval(film.cells, sure, film.y[sure], drawn[~is_sure].tolist())
        n_held += low <= film.share <= high

    assert n_held / n_films >= 0.95


@pytest.mark.long
def test_the_rate_of_a_group_is_of_what_judges_are_sure_of():
    """The model's mean over a film is compared with its mean over all that was drawn, surely judged or not.

    Over 1,000 films, the share that the judgements give, corrected by that difference, has no bias.
    """
    rng = np.random.default_rng(6)
    errors = []
    for _ in range(1000):
        film = planted_film(rng, unsure_positives=0.1, unsure_negatives=0.6)
        drawn = rng.permutation(N_WINDOWS)[:30]
        sure = drawn[film.is_sure[drawn]]
        unsure = drawn[~film.is_sure[drawn]].tolist()
        sample = sample_of(film.cells, sure, film.y[sure], unsure=unsure)
        gain = sample.covariance / sample.variance
        corrected = sample.judged + gain * (sample.expected - sample.drawn)
        errors.append(corrected - film.share)

    assert np.mean(errors) == pytest.approx(0, abs=0.01)
