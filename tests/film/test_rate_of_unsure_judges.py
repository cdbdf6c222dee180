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
    """The windows of a film, and what a judge would say of each.

    Attributes
    ----------
    cells
        The windows with the model's probabilities, some of them wrong.
    y : ndarray, shape [C]
        1 for positive windows, 0 for negative ones.
    is_sure : ndarray of bool, shape [C]
        Of which the judge is sure.
    """

    cells: object
    y: np.ndarray
    is_sure: np.ndarray

    @property
    def share(self):
        """The positive share of the content that the judge is sure of."""
        sure_s = self.cells.content_s * self.is_sure
        return (sure_s * self.y).sum() / sure_s.sum()


def planted_film(rng, *, unsure_positives, unsure_negatives, n_windows=N_WINDOWS):
    """Plant a film of which three in ten windows are positive, which a model tells well.

    The judge is not sure of these shares of the positive windows, and of the negative ones.
    """
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
    """60 of a film's 130 windows are judged; the share is of the windows that the judge would be sure of.

    A judge who is unsure of six in ten negatives is sure of windows with higher probabilities than those of
    the film. The estimate must not take that difference for an error of the model: over 100 films the 95 %
    interval must hold the share in .92 at least, and would in .78 if it did.
    """
    rng = np.random.default_rng(2)
    n_films = 100

    n_held = 0
    for _ in range(n_films):
        film = planted_film(rng, unsure_positives=unsure_positives, unsure_negatives=unsure_negatives)
        drawn = rng.permutation(N_WINDOWS)[:60]
        estimates = estimate(film, drawn)
        [low], [high] = estimates.low, estimates.high
        n_held += bool(low <= film.share <= high)

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
    """Of ten windows 4 are judged: two surely, at p .9 (positive) and .1 (negative), and two not, at p .1.

    The model corrects by how far the mean p of what was drawn is from that of the film. Unsure windows were
    drawn, too: the mean over all four is .3, as in the film. So the model, though it counts (`gain`),
    corrects nothing, and the share is that of the two sure windows: a half.
    """
    p_of_sure, p_of_unsure = [0.9, 0.1], [0.1, 0.1]
    p_of_others = [0.9, 0.1, 0.1, 0.1, 0.3, 0.3]
    cells = planted_cells(content_s=np.full(10, 46.0), p=[*p_of_sure, *p_of_unsure, *p_of_others])
    sure_windows, answers = np.array([[0, 1]]), np.array([[1.0, 0.0]])  # [1 draw, 2 windows]

    estimates = estimate_rate(cells, sure_windows, answers, unsure=[2, 3])

    assert estimates.gain[0] > 0
    assert estimates.value[0] == pytest.approx(0.5)


def test_the_model_corrects_no_share_by_a_judge_with_unsure_windows_that_were_drawn_as_poisson():
    """Earlier versions drew windows by sequential Poisson sampling; 60 of them are judged, some not surely.

    How a model corrects such draws is worked out only for judges who are sure of all. So the share and its
    interval are those of the judgements alone: the model counts by 0 (`gain`).
    """
    rng = np.random.default_rng(4)
    film = planted_film(rng, unsure_positives=0.1, unsure_negatives=0.6)

    estimates = estimate(film, rng.permutation(N_WINDOWS)[:60], sampling=SEQUENTIAL_POISSON)

    assert estimates.gain[0] == 0
    assert estimates.low[0] == estimates.low_without_model[0]


@pytest.mark.long
def test_the_interval_at_any_time_holds_the_share_of_what_judges_are_sure_of():
    """The interval that a judge may look at after every window bets on differences from the model.

    The judge is unsure of a tenth of the positive windows and of six in ten negative ones, so that the model
    is right of other windows than those that the judge is sure of. The bets must not win against the right
    share for that: over 40 films, of 400 windows of which 150 are judged, the interval holds it in .95.
    """
    rng = np.random.default_rng(5)
    n_windows = 400
    n_films = 40

    n_held = 0
    for _ in range(n_films):
        film = planted_film(rng, unsure_positives=0.1, unsure_negatives=0.6, n_windows=n_windows)
        drawn = rng.permutation(n_windows)[:150]
        is_sure = film.is_sure[drawn]
        sure_windows, unsure_windows = drawn[is_sure], drawn[~is_sure].tolist()
        low, high = anytime_interval(film.cells, sure_windows, film.y[sure_windows], unsure_windows)
        n_held += low <= film.share <= high

    assert n_held / n_films >= 0.95


@pytest.mark.long
def test_shares_for_groups_of_films_have_no_bias_if_judges_are_not_sure_of_all_windows():
    """A group's rate is made of each film's judged share, corrected by the model.

    It becomes judged + gain * (expected - drawn): `expected` is the model's mean over the film and `drawn`
    its mean over the 30 windows drawn, of which the judge was sure or not; `gain` is by how much judgements
    differ with the model. The truth is the share of all that the judge would be sure of: over 1,000 films the
    mean error is 0.
    """
    rng = np.random.default_rng(6)
    errors = []
    for _ in range(1000):
        film = planted_film(rng, unsure_positives=0.1, unsure_negatives=0.6)
        drawn = rng.permutation(N_WINDOWS)[:30]
        sure_windows = drawn[film.is_sure[drawn]]
        unsure_windows = drawn[~film.is_sure[drawn]].tolist()
        sample = sample_of(film.cells, sure_windows, film.y[sure_windows], unsure=unsure_windows)
        gain = sample.covariance / sample.variance
        corrected_share = sample.judged + gain * (sample.expected - sample.drawn)
        errors.append(corrected_share - film.share)

    assert np.mean(errors) == pytest.approx(0, abs=0.01)
