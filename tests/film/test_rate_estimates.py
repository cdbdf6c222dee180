"""A rate from windows drawn by each law: exact where it can be, and never beside what whole windows allow."""

from itertools import combinations
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, hypergeom

from obygaze_film.draws import SEQUENTIAL_POISSON, random_order
from obygaze_film.rate_estimates import (
    MAX_SUMS,
    bound_of_unseen_s,
    estimate_rate,
    exact_interval,
    possible_sums_s,
)
from tests.film.films import planted_cells

FIRST_12_WINDOWS = np.arange(12)[None]  # [1 draw, 12 judged windows]


def equal_windows(n_windows, p=0.5):
    """Plant windows of 46 s of content, all alike."""
    return planted_cells(content_s=[46.0] * n_windows, p=p)


def test_no_positive_in_12_of_21_windows_leaves_at_most_3():
    """Of 21 windows that are alike the first 12 of a draw are judged, and none is positive.

    If 3 of the 21 were positive, the 12 would miss all of them in .063 of draws; 4 only in .021, less than
    the .025 that an interval of 95 % leaves out at one end.
    """
    all_negative = np.zeros((1, 12))
    estimates = estimate_rate(equal_windows(n_windows=21), FIRST_12_WINDOWS, all_negative)
    assert estimates.value[0] == pytest.approx(0)
    assert estimates.low[0] == pytest.approx(0)
    assert estimates.high[0] == pytest.approx(3 / 21)


def test_12_positives_in_12_of_21_windows_leave_at_least_18():
    """Of 21 windows that are alike the first 12 of a draw are judged, and all are positive.

    How many of the other nine may be negative? If 3 are, a draw misses them with the chance C(18, 12) /
    C(21, 12) = .063; if 4 are, with C(17, 12) / C(21, 12) = .021, less than the .025 that an end of the
    interval allows. So at most 3 are negative, and 18 of the 21 or more are positive.
    """
    all_positive = np.ones((1, 12))
    estimates = estimate_rate(equal_windows(n_windows=21), FIRST_12_WINDOWS, all_positive)
    assert estimates.value[0] == pytest.approx(1)
    assert estimates.low[0] == pytest.approx(18 / 21)
    assert estimates.high[0] == pytest.approx(1)


@pytest.mark.parametrize("n_positive", [1, 2, 5])
@pytest.mark.parametrize("positives_are", ["short", "long"])
def test_the_bound_on_unseen_positives_is_rarely_too_low(positives_are, n_positive):
    """Twelve windows of a film are judged, and none is positive, although one to five of some 30 windows are.

    `bound_of_unseen_s` says how many seconds may be positive at most; it may be too low in one draw of 40.
    The positive windows last 6 s where the others last 46 s, or the other way round. In 2,000 draws the share
    of 1 / 40 has a standard error of .0035.
    """
    if positives_are == "short":
        positive_windows, negative_windows = [6.0] * n_positive, [46.0] * (30 - n_positive)
    else:
        positive_windows, negative_windows = [46.0] * n_positive, [6.0] * 25
    content = np.array(positive_windows + negative_windows)
    n_too_low = 0
    for seed in range(2000):
        judged = np.array(random_order(content, "film", seed))[:12]
        none_is_positive = (judged >= n_positive).all()  # the positive windows have the numbers before
        if none_is_positive and bound_of_unseen_s(content, judged) < sum(positive_windows) - 1e-9:
            n_too_low += 1

    standard_error = 0.0035
    assert n_too_low / 2000 <= 1 / 40 + 3 * standard_error


def sums_of_subsets(sizes):
    """Return the sum of every subset of the sizes, that of none included."""
    sums = set()
    for n_chosen in range(len(sizes) + 1):
        sums |= {round(sum(subset), 3) for subset in combinations(sizes, n_chosen)}
    return sums


window_sizes = st.lists(st.sampled_from([6.0, 23.0, 46.0, 11.5]), min_size=1, max_size=6)


@given(window_sizes)
def test_sums_of_whole_windows_are_those_of_all_subsets(sizes):
    """A window is positive or not as a whole: the positive seconds are the sum of some windows' seconds."""
    sums = possible_sums_s(np.array(sizes))
    assert sums.tolist() == sorted(sums_of_subsets(sizes))


@given(window_sizes)
def test_the_positive_seconds_by_two_judges_are_means_of_the_seconds_by_each(sizes):
    """Each judge calls some windows positive as a whole; a window that one of them does is positive by half.

    `possible_sums_s` lists the positive seconds that a film may have so: with halves of windows
    (`denominator`) they are all means of a sum that the first judge may give and one that the second may.
    """
    sums_by_one_judge = sums_of_subsets(sizes)
    means_of_two = set()
    for by_first in sums_by_one_judge:
        for by_second in sums_by_one_judge:
            means_of_two.add(round(by_first / 2 + by_second / 2, 3))

    sums = possible_sums_s(np.array(sizes), denominator=2)

    assert set(np.round(sums, 3)) == means_of_two


def test_too_many_sums_are_not_listed():
    """The positive seconds are the sum of some windows: 30 windows of different lengths have 2**30 sums.

    So many are not listed, and the function returns None.
    """
    different_lengths = np.random.default_rng(0).random(30)
    assert possible_sums_s(different_lengths) is None


def test_possible_sums_are_listed_up_to_the_limit_inclusively():
    """How many seconds of a film can be positive is listed, if there are at most `MAX_SUMS` such sums.

    Of N windows of equal length 0, 1, ... or N can be positive: these are N + 1 sums. With one window less
    than the limit there are exactly as many as may be listed.
    """
    seconds_of_windows = np.full(MAX_SUMS - 1, 46.0)
    sums = possible_sums_s(seconds_of_windows)
    assert len(sums) == MAX_SUMS


@given(
    seed=st.integers(0, 10**6),
    seconds=st.sampled_from([[46.0], [23.0, 46.0], [6.0, 46.0]]),
    n_judges=st.integers(1, 3),
    n_judged=st.sampled_from([10, 18, 25]),
)
def test_an_interval_lies_within_what_the_judged_windows_leave_open(seed, seconds, n_judges, n_judged):
    """Of a film's 25 windows 10, 18 or 25 are judged; a label is the share of judges who call one positive.

    The film's rate is least if all unjudged windows are negative, and largest if all are positive. The
    interval lies between the two, and is one number if no window is left to judge.
    """
    rng = np.random.default_rng(seed)
    content_s = rng.choice(seconds, 25)
    labels = rng.integers(0, n_judges + 1, 25) / n_judges
    cells = planted_cells(content_s=content_s, p=rng.random(25))
    order_of_draw = np.array(random_order(content_s, "film", seed))
    judged = order_of_draw[:n_judged]
    unjudged = order_of_draw[n_judged:]

    one_draw = judged[None]  # [1 draw, judged windows]
    estimates = estimate_rate(cells, one_draw, labels[one_draw], denominator=n_judges)
    low, value, high = estimates.low[0], estimates.value[0], estimates.high[0]

    rate_if_rest_is_negative = (content_s[judged] * labels[judged]).sum() / content_s.sum()
    rate_if_rest_is_positive = rate_if_rest_is_negative + content_s[unjudged].sum() / content_s.sum()
    rounding = 1e-8
    assert rate_if_rest_is_negative - rounding <= low <= value
    assert value <= high <= rate_if_rest_is_positive + rounding
    if n_judged == 25:
        assert low == pytest.approx(rate_if_rest_is_negative)
        assert high == pytest.approx(rate_if_rest_is_negative)


@pytest.mark.parametrize(("k", "n"), [(0, 5), (2, 5), (5, 5), (4, 10), (13, 40)])
def test_the_exact_interval_is_that_of_clopper_and_pearson(k, n):
    """Of n windows k are positive. The level is `MIN_LEVEL`, .93; scipy computes the same interval."""
    expected = binomtest(k, n).proportion_ci(0.93, method="exact")
    low, high = exact_interval([k / n], [n])
    assert low[0] == pytest.approx(expected.low, abs=1e-6)
    assert high[0] == pytest.approx(expected.high, abs=1e-6)


def min_exact_coverage(n_windows, n_judged):
    """Compute how often the interval holds the share, for the share from .05 to .95 where it is seldomest.

    Windows are alike, so that a draw of n is known by its count of positives, k, from 0 to n. Where m of all
    windows are positive, k has the hypergeometric distribution.
    """
    counts = np.arange(n_judged + 1)  # [n + 1 draws]
    # Of the draw with k positives the first k of the n labels are positive.  [n + 1 draws, n labels]
    labels = (np.arange(n_judged)[None, :] < counts[:, None]).astype(float)
    judged = np.tile(np.arange(n_judged), (n_judged + 1, 1))
    estimates = estimate_rate(equal_windows(n_windows), judged, labels)
    least = 1.0
    for n_positive in range(round(0.05 * n_windows), round(0.95 * n_windows) + 1):
        share = n_positive / n_windows
        is_held = (estimates.low <= share) & (share <= estimates.high)  # [n + 1 draws]
        chances_of_counts = hypergeom(n_windows, n_positive, n_judged).pmf(counts)
        least = min(least, chances_of_counts @ is_held)
    return least


@pytest.mark.parametrize("n_windows", [40, pytest.param(130, marks=pytest.mark.long)])
def test_intervals_of_few_windows_hold_every_share(n_windows):
    """Of a film's windows 3 to 30 are judged. A 95 % interval must hold the share in .93 of draws at least.

    `min_exact_coverage` computes this for each possible share, and returns the least. A score interval, which
    is usual, would not do: of 130 windows with 10 judged it holds the share .4 in .912 of draws.
    """
    for n_judged in (3, 5, 7, 9, 10, 12, 15, 20, 25, 30):
        assert min_exact_coverage(n_windows, n_judged) >= 0.93, n_judged


def planted_p(rng, labels, knowledge, noise=1.0):
    """Plant probabilities whose logit is `knowledge` for positives and -`knowledge` for negatives, and noise.

    A model with a `knowledge` below 0 is wrong, and one of 0 knows nothing.
    """
    right_logit = knowledge * (2 * labels - 1)  # labels are 0 and 1
    return 1 / (1 + np.exp(-right_logit - noise * rng.normal(size=len(labels))))


@pytest.mark.long  # simulates
@pytest.mark.parametrize("knowledge", [0.0, 1.0, -1.0], ids=["knows nothing", "knows something", "is wrong"])
def test_intervals_of_10_of_130_windows_hold_the_share_with_any_model(knowledge):
    """52 of a film's 130 windows are positive, and ten windows are judged, whatever the model says of them.

    A 95 % interval of the share of positive windows must hold it in .93 of 3,000 draws, or hardly fewer: so
    many draws, 20 of each of 150 films, leave the coverage uncertain by .005 (one standard error).
    """
    n_windows, n_judged, n_positive = 130, 10, 52
    share = n_positive / n_windows  # .4
    rng = np.random.default_rng(5)
    is_held = []
    for _ in range(150):
        labels = rng.permuted(np.arange(n_windows) < n_positive).astype(float)
        p = planted_p(rng, labels, knowledge, noise=0.2)
        orders = rng.permuted(np.tile(np.arange(n_windows), (20, 1)), axis=1)  # [20 draws, 130]
        judged = orders[:, :n_judged]
        estimates = estimate_rate(equal_windows(n_windows, p), judged, labels[judged])
        is_held.append((estimates.low <= share) & (share <= estimates.high))

    assert np.mean(is_held) >= 0.93 - 2 * 0.005


class World(NamedTuple):
    """Between how many seconds the content of positive windows lies, and that of the others.

    `own_min_coverage` is how often the interval must hold the share at least; None: as often as in most
    worlds. It is lower where positives are few and short, which say little.
    """

    positive_s: tuple[float, float]
    negative_s: tuple[float, float]
    own_min_coverage: float | None = None

    def min_coverage(self, *, in_most_worlds):
        if self.own_min_coverage is None:
            return in_most_worlds
        return self.own_min_coverage


WORLDS = {
    "alike": World((46, 46), (46, 46)),
    "positives half as long": World((23, 23), (46, 46)),
    "positives twice as long": World((46, 46), (23, 23)),
    "up to twofold": World((23, 46), (23, 46)),
    "positives 6 s, others 46 s": World((6, 6), (46, 46), own_min_coverage=0.85),
}


def coverage_in(world, *, n_windows, n_judged, knowledge, n_films=25, n_draws=20):
    """Return in which share of draws the interval holds the film's share.

    A third of each film's windows is positive. `knowledge` is how well the model's probabilities tell them
    (`planted_p`): below 0 it is wrong, and with 0 it knows nothing.
    """
    is_held = []
    for film in range(n_films):
        rng = np.random.default_rng([film, n_windows, n_judged])
        labels = rng.permuted(np.arange(n_windows) < n_windows // 3).astype(float)
        content_if_positive = rng.uniform(*world.positive_s, n_windows)
        content_if_negative = rng.uniform(*world.negative_s, n_windows)
        content = np.where(labels > 0, content_if_positive, content_if_negative)
        cells = planted_cells(content_s=content, p=planted_p(rng, labels, knowledge))
        draws = [random_order(content, str(film), seed)[:n_judged] for seed in range(n_draws)]
        judged = np.array(draws)  # [draws, n_judged]
        estimates = estimate_rate(cells, judged, labels[judged])
        share = np.average(labels, weights=content)
        is_held.append((estimates.low <= share) & (share <= estimates.high))
    return np.mean(is_held)


@pytest.mark.long  # simulates
@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)
@pytest.mark.parametrize("judged_part", [0.3, 0.85])
def test_the_interval_holds_the_share_if_positives_differ_in_length(world, judged_part):
    """A third of a film's 130 windows is positive; worlds differ in how long positive windows and others are.

    A part of the windows is judged, and a model knows something of the labels (1). The 95 % interval must
    hold the share in .93 of the draws at least, and in a world of few and short positives in .85. 500 draws
    leave a coverage uncertain by .01 to .012 (one standard error).
    """
    coverage = coverage_in(world, n_windows=130, n_judged=round(130 * judged_part), knowledge=1.0)
    standard_error = 0.012
    assert coverage >= world.min_coverage(in_most_worlds=0.93) - 2 * standard_error


@pytest.mark.nightly
@pytest.mark.long  # simulates
@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)
@pytest.mark.parametrize(
    ("n_windows", "min_coverage_in_most_worlds"),
    [pytest.param(130, 0.93, id="130 windows"), pytest.param(40, 0.9, id="40 windows")],
)
@pytest.mark.parametrize(
    "knowledge",
    [
        pytest.param(0.0, id="a model that knows nothing"),
        pytest.param(2.0, id="a model that knows much"),
        pytest.param(-2.0, id="a model that is wrong"),
    ],
)
def test_the_interval_holds_the_share_whatever_the_model_knows_and_however_many_windows_are_judged(
    world, n_windows, min_coverage_in_most_worlds, knowledge
):
    """A third of each film's windows is positive; worlds differ in how long positive windows and others are.

    A tenth to .85 of the windows are judged. The 95 % interval must hold the share in .93 of the draws at
    least, in .9 if a film has 40 windows, and in .85 in a world of few and short positives. In 1,000 draws
    this part is uncertain by .008 (one standard error).
    """
    min_coverage = world.min_coverage(in_most_worlds=min_coverage_in_most_worlds)
    standard_error = 0.008
    for judged_part in (0.1, 0.3, 0.6, 0.85):
        n_judged = max(10, round(judged_part * n_windows))
        coverage = coverage_in(world, n_windows=n_windows, n_judged=n_judged, knowledge=knowledge, n_films=50)
        assert coverage >= min_coverage - 2 * standard_error, judged_part


def test_a_window_certain_to_be_drawn_counts_by_its_content():
    """Three windows of five are drawn, by sequential Poisson sampling: of 100 s for certain, and two of 10 s.

    The first is positive, and stands for itself: 100 of 140 s. The other two stand for the 40 s of short
    windows, and one of them is positive: half of these.
    """
    cells = planted_cells(content_s=np.array([100.0, 10, 10, 10, 10]))
    judged = np.array([[0, 1, 2]])
    labels = np.array([[1.0, 0.0, 1.0]])

    estimates = estimate_rate(cells, judged, labels, sampling=SEQUENTIAL_POISSON)

    assert estimates.value[0] == pytest.approx(100 / 140 + 40 / 140 * 0.5)
