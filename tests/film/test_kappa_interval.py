"""The interval of Cohen's kappa of two judges is that of its posterior, and holds the true kappa."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from obygaze_film.agreement import kappa_of
from obygaze_film.kappa_interval import _Posterior, kappa_interval


def calls_with(*, neither, only_second, only_first, both):
    """Make the calls of two judges, with so many windows of each pair of answers."""
    first = np.repeat([False, False, True, True], [neither, only_second, only_first, both])
    second = np.repeat([False, True, False, True], [neither, only_second, only_first, both])
    return first, second


def drawn_kappas(n_draws, *, neither, only_second, only_first, both):
    """Draw kappas that may be behind the counts of four pairs of answers.

    Each pair has an unknown share of all windows. The posterior of the four shares, by Jeffreys' prior of 1/2
    each, is the Dirichlet distribution with the parameters count + 1/2. A kappa follows from each draw of it.
    """
    prior = 0.5
    parameters = np.array([neither, only_second, only_first, both]) + prior
    shares = np.random.default_rng(0).dirichlet(parameters, n_draws)
    of_neither, of_only_second, of_only_first, of_both = shares.T
    positive_by_first = of_both + of_only_first
    positive_by_second = of_both + of_only_second
    return kappa_of(first=positive_by_first, second=positive_by_second, alike=of_both + of_neither)


def ends_by_simulation(**counts):
    """Compute the ends of the 95 % interval from 300,000 draws of kappa."""
    return np.quantile(drawn_kappas(300_000, **counts), (0.025, 0.975))


@pytest.mark.parametrize(
    "counts",
    [
        pytest.param({"neither": 20, "only_second": 0, "only_first": 0, "both": 5}, id="all alike"),
        pytest.param({"neither": 15, "only_second": 0, "only_first": 0, "both": 1}, id="one positive"),
        pytest.param({"neither": 18, "only_second": 0, "only_first": 2, "both": 0}, id="one marks nothing"),
        pytest.param({"neither": 30, "only_second": 4, "only_first": 3, "both": 20}, id="usual"),
        pytest.param({"neither": 5, "only_second": 5, "only_first": 5, "both": 5}, id="by chance"),
        pytest.param({"neither": 1, "only_second": 12, "only_first": 9, "both": 2}, id="mostly unlike"),
        pytest.param({"neither": 900, "only_second": 20, "only_first": 10, "both": 40}, id="many windows"),
    ],
)
def test_the_interval_is_that_of_many_draws_of_the_four_shares(counts):
    """Two judges give four pairs of answers, each with an unknown share of all windows.

    Which shares may be behind the counts is a Dirichlet distribution (the posterior). The oracle draws the
    shares from it 300,000 times, and takes the middle 95 % of the kappas that they give.
    """
    first, second = calls_with(**counts)

    interval = kappa_interval(first, second)

    drawn_low, drawn_high = ends_by_simulation(**counts)
    # An interval reaches as far as the kappa itself, even if the draws do not.
    expected_low = min(drawn_low, interval.kappa)
    expected_high = max(drawn_high, interval.kappa)
    # 300,000 draws leave an end uncertain by .0015 at most.
    assert interval.low == pytest.approx(expected_low, abs=0.005)
    assert interval.high == pytest.approx(expected_high, abs=0.005)


eight_to_sixty_answers = st.lists(st.booleans(), min_size=8, max_size=60)


@pytest.mark.long
@given(st.data(), eight_to_sixty_answers)
def test_the_interval_of_a_kappa_stays_if_the_judges_are_swapped_or_yes_and_no(data, answers_of_first):
    """Two judges answer yes or no for 8 to 60 windows.

    Kappa treats both judges alike, and both answers: the interval changes by .002 at most, as its ends are
    computed numerically. Without a kappa (both gave one and the same answer to all) it has no numbers (NaN).
    """
    n_windows = len(answers_of_first)
    answers_of_second = data.draw(st.lists(st.booleans(), min_size=n_windows, max_size=n_windows))
    by_first, by_second = np.array(answers_of_first), np.array(answers_of_second)

    interval = kappa_interval(by_first, by_second)
    with_judges_swapped = kappa_interval(by_second, by_first)
    with_answers_swapped = kappa_interval(~by_first, ~by_second)

    assert with_judges_swapped == pytest.approx(interval, abs=0.002, nan_ok=True)
    assert with_answers_swapped == pytest.approx(interval, abs=0.002, nan_ok=True)


@given(st.data(), eight_to_sixty_answers)
def test_the_interval_contains_the_kappa_and_lies_between_its_bounds(data, first):
    """Two judges answer yes or no for 8 to 60 windows. Kappa is from -1 to 1, or undefined (nan)."""
    n_windows = len(first)
    second = data.draw(st.lists(st.booleans(), min_size=n_windows, max_size=n_windows))

    interval = kappa_interval(np.array(first), np.array(second))

    if not np.isnan(interval.kappa):
        assert -1 <= interval.low <= interval.kappa <= interval.high <= 1


def test_kappa_of_a_judge_who_marks_nothing_is_0_with_an_interval():
    """Of 20 windows the first judge marks two, and the second none: they agree as by chance, and kappa is 0.

    With any window left out it is 0 again, so that an interval from these (jackknife) would have no width.
    The interval must be wide, as 20 windows say little: from below -.05 to above .3.
    """
    first_marks_two_of_twenty = np.array([True] * 2 + [False] * 18)
    second_marks_none = np.array([False] * 20)

    interval = kappa_interval(first_marks_two_of_twenty, second_marks_none)

    assert interval.kappa == 0.0
    assert interval.low < -0.05
    assert interval.high > 0.3


def calls_with_errors(rng, is_positive, error_rate):
    """Let a judge call each window as it is, or wrongly with the chance `error_rate`."""
    errs = rng.random(len(is_positive)) < error_rate
    return np.where(errs, ~is_positive, is_positive)


@cache
def interval_of(neither, only_second, only_first, both):
    """Compute the interval of kappa of so many windows of each pair of answers; few windows repeat them."""
    first, second = calls_with(neither=neither, only_second=only_second, only_first=only_first, both=both)
    return kappa_interval(first, second)


@pytest.mark.long  # simulates
def test_intervals_of_kappa_hold_it_where_few_windows_are_positive():
    """Of 20 windows .1 are positive, and each of two judges errs on .05 of them: kappa is .605.

    Both call a window alike with chance .95² + .05² = .905. Each calls it positive with chance .1 * .95 +
    .9 * .05 = .14. If their calls were independent, they would be alike with chance .14² + .86² = .759: kappa
    is (.905 - .759) / (1 - .759).

    Intervals of 95 % should hold it in .95 of 300 simulations, give or take .013 (one standard error).
    """
    rng = np.random.default_rng(0)
    true_kappa = 0.605
    holds_true_kappa = []
    for _ in range(300):
        is_positive = rng.random(20) < 0.1
        by_first = calls_with_errors(rng, is_positive, error_rate=0.05)
        by_second = calls_with_errors(rng, is_positive, error_rate=0.05)
        neither, only_second, only_first, both = np.bincount(2 * by_first + by_second, minlength=4).tolist()
        interval = interval_of(neither, only_second, only_first, both)
        if not np.isnan(interval.kappa):
            holds_true_kappa.append(interval.low <= true_kappa <= interval.high)

    assert np.mean(holds_true_kappa) > 0.92


@pytest.mark.parametrize(
    "counts",
    [
        pytest.param({"neither": 1, "only_second": 0, "only_first": 0, "both": 0}, id="one, and no"),
        pytest.param({"neither": 0, "only_second": 0, "only_first": 0, "both": 1}, id="one, and yes"),
        pytest.param({"neither": 40, "only_second": 0, "only_first": 0, "both": 0}, id="never"),
        pytest.param({"neither": 0, "only_second": 0, "only_first": 0, "both": 40}, id="always"),
    ],
)
def test_judges_who_both_say_one_thing_of_all_windows_have_neither_kappa_nor_interval(counts):
    """Chance would let them agree on all: that they do says nothing, and no number may stand for it."""
    assert np.isnan(kappa_interval(*calls_with(**counts))).all()


@pytest.mark.parametrize(
    ("counts", "kappa"),
    [
        pytest.param(
            {"neither": 0, "only_second": 0, "only_first": 1, "both": 0}, 0, id="one window, unlike"
        ),
        pytest.param({"neither": 1, "only_second": 0, "only_first": 0, "both": 1}, 1, id="two, alike"),
        pytest.param({"neither": 0, "only_second": 1, "only_first": 1, "both": 0}, -1, id="two, unlike"),
        pytest.param({"neither": 0, "only_second": 6, "only_first": 6, "both": 0}, -1, id="always unlike"),
        pytest.param({"neither": 6, "only_second": 0, "only_first": 0, "both": 6}, 1, id="always alike"),
    ],
)
def test_the_interval_of_a_kappa_contains_it_even_if_draws_of_the_posterior_would_not(counts, kappa):
    """Two judges answer for few windows, or always alike or unlike, so that kappa is at a bound, 1 or -1.

    The interval is from the posterior of what kappa may be behind such answers. Of a kappa of 1 this lies
    wholly below 1: the interval is widened up to 1, and its lower end is the posterior's. Likewise for -1.
    """
    interval = kappa_interval(*calls_with(**counts))

    drawn_low, drawn_high = ends_by_simulation(**counts)
    assert interval.kappa == pytest.approx(kappa)
    assert interval.low == pytest.approx(min(drawn_low, kappa), abs=0.005)
    assert interval.high == pytest.approx(max(drawn_high, kappa), abs=0.005)


# Two judges agree on six windows, and in others one or the other alone calls a window positive.
AGREEING_ON_SIX_WINDOWS = pytest.mark.parametrize(
    "counts",
    [
        pytest.param({"neither": 4, "only_second": 0, "only_first": 0, "both": 2}, id="never unlike"),
        pytest.param({"neither": 4, "only_second": 1, "only_first": 1, "both": 2}, id="unlike in 2"),
        pytest.param({"neither": 4, "only_second": 10, "only_first": 10, "both": 2}, id="unlike in 20"),
    ],
)


@pytest.mark.parametrize("value", [-1.0, -0.5, 0.0, 0.25, 0.5, 1.0])
@AGREEING_ON_SIX_WINDOWS
def test_the_probability_of_a_kappa_is_the_share_of_draws_up_to_it(value, counts):
    """What two judges say leaves the true kappa uncertain: it is at most `value` with some probability.

    The probability is computed, and must be the share of 100,000 drawn kappas that are at most `value`. Such
    a share is uncertain by .0016.
    """
    probability = _Posterior(**counts).probability_of_at_most(value)

    share_of_draws = (drawn_kappas(100_000, **counts) <= value).mean()
    assert probability == pytest.approx(share_of_draws, abs=0.006)


@AGREEING_ON_SIX_WINDOWS
def test_the_posterior_of_a_kappa_lies_wholly_between_minus_1_and_1(counts):
    """Two judges agreed on six windows, and differed on none, 2 or 20 others.

    Whatever the counts, the probability that kappa is at most -1 is 0, and that it is at most 1 is 1.
    """
    posterior = _Posterior(**counts)

    assert posterior.probability_of_at_most(-1.0) == pytest.approx(0, abs=1e-9)
    assert posterior.probability_of_at_most(1.0) == pytest.approx(1, abs=1e-9)
