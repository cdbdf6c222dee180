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
    LEAST_LEVEL,
    MOST_SUMS,
    estimate_rate,
    exact_interval,
    most_unseen,
    sums_of_whole,
)
from tests.film.films import planted_cells


def test_none_of_12_of_21_windows_leaves_3_of_21_possible():
    """By hand: 3 positives are missed by 12 of 21 in .063 of draws, 4 in .021."""
    chances = [hypergeom(21, positives, 12).pmf(0) for positives in (3, 4)]
    assert chances == pytest.approx([0.0632, 0.0211], abs=1e-4)
    found = estimate_rate(planted_cells(content_s=[46.0] * 21), np.arange(12)[None], np.zeros((1, 12)))
    assert (found.value[0], found.low[0], found.high[0]) == pytest.approx((0, 0, 3 / 21))
    found = estimate_rate(planted_cells(content_s=[46.0] * 21), np.arange(12)[None], np.ones((1, 12)))
    assert (found.value[0], found.low[0], found.high[0]) == pytest.approx((1, 18 / 21, 1))


CONTENTS = {
    "short positives": lambda n: np.array([6.0] * n + [46.0] * (30 - n)),
    "long positives": lambda n: np.array([46.0] * n + [6.0] * 25),
}
"""Seconds of windows of which the first n are positive."""


@pytest.mark.parametrize("n_positive", [1, 2, 5])
@pytest.mark.parametrize("contents", CONTENTS.values(), ids=CONTENTS)
def test_the_most_that_no_positive_leaves_possible_is_too_little_in_one_of_forty_draws(contents, n_positive):
    """Of draws of 12 windows among which no positive is. 2,000 draws leave a share uncertain by .0035."""
    content = contents(n_positive)
    positive_s = content[:n_positive].sum()
    n_too_little = 0
    for seed in range(2000):
        drawn = np.array(random_order(content, "film", seed))[:12]
        has_positive = (drawn < n_positive).any()
        if not has_positive and most_unseen(content, drawn) < positive_s - 1e-9:
            n_too_little += 1
    assert n_too_little / 2000 <= 1 / 40 + 3 * 0.0035


@given(st.lists(st.sampled_from([6.0, 23.0, 46.0, 11.5]), min_size=1, max_size=6))
def test_sums_of_whole_windows_are_those_of_all_subsets(sizes):
    subsets = {round(sum(part), 3) for k in range(len(sizes) + 1) for part in combinations(sizes, k)}
    assert sums_of_whole(np.array(sizes)).tolist() == sorted(subsets)
    halves = {round(a / 2 + b / 2, 3) for a in subsets for b in subsets}
    assert set(np.round(sums_of_whole(np.array(sizes), denominator=2), 3)) <= halves


def test_too_many_sums_are_not_listed():
    assert sums_of_whole(np.random.default_rng(0).random(30)) is None
    assert len(sums_of_whole(np.full(MOST_SUMS - 1, 46.0))) == MOST_SUMS


@given(
    seed=st.integers(0, 10**6),
    seconds=st.sampled_from([[46.0], [23.0, 46.0], [6.0, 46.0]]),
    n_judges=st.integers(1, 3),
    n_judged=st.sampled_from([10, 18, 25]),
)
def test_an_interval_lies_within_what_the_judged_windows_leave_open(seed, seconds, n_judges, n_judged):
    """A window is positive to the share of the judges who say so. If all 25 are judged nothing is open."""
    rng = np.random.default_rng(seed)
    content = rng.choice(seconds, 25)
    y = rng.integers(0, n_judges + 1, 25) / n_judges
    order = np.array(random_order(content, "film", seed))
    judged, unjudged = order[:n_judged], order[n_judged:]
    cells = planted_cells(content_s=content, p=rng.random(25))
    found = estimate_rate(cells, judged[None], y[judged][None], denominator=n_judges)
    least = content[judged] @ y[judged] / content.sum()
    most = least + content[unjudged].sum() / content.sum()
    assert least - 1e-8 <= found.low[0] <= found.value[0] <= found.high[0] <= most + 1e-8
    if n_judged == 25:
        assert (found.low[0], found.high[0]) == pytest.approx((least, least))


@pytest.mark.parametrize(("k", "n"), [(0, 5), (2, 5), (5, 5), (4, 10), (13, 40)])
def test_the_exact_interval_is_that_of_clopper_and_pearson(k, n):
    expected = binomtest(k, n).proportion_ci(LEAST_LEVEL, method="exact")
    low, high = exact_interval([k / n], [n])
    assert (low[0], high[0]) == pytest.approx((expected.low, expected.high), abs=1e-6)


def coverages(n_windows, n):
    """By hand: a judge judges n of windows alike; the chance that each possible share is held, .05 to .95."""
    labels = (np.arange(n)[None] < np.arange(n + 1)[:, None]).astype(float)
    cells = planted_cells(content_s=[46.0] * n_windows)
    found = estimate_rate(cells, np.tile(np.arange(n), (n + 1, 1)), labels)
    shares = {k: k / n_windows for k in range(round(0.05 * n_windows), round(0.95 * n_windows) + 1)}
    holds = {k: (found.low <= share) & (share <= found.high) for k, share in shares.items()}
    return [hypergeom(n_windows, k, n).pmf(np.arange(n + 1)) @ holds[k] for k in shares]


@pytest.mark.parametrize("n_windows", [40, pytest.param(130, marks=pytest.mark.long)])
def test_no_share_is_held_less_often_than_stated_however_few_are_judged(n_windows):
    """Of 10 of 130 windows alike a score interval holds the share .4 in .912 of draws."""
    for n in (3, 5, 7, 9, 10, 12, 15, 20, 25, 30):
        assert min(coverages(n_windows, n)) >= 0.93, n


@pytest.mark.long  # simulates
@pytest.mark.parametrize("model", [0.0, 1.0, -1.0])
def test_a_model_leaves_what_a_few_judgements_hold(model):
    """Where the judge marks .4 of 130 windows, and judged 10; 3,000 draws leave it uncertain by .005."""
    rng = np.random.default_rng(5)
    held_draws = []
    for _ in range(150):
        y = rng.permuted(np.arange(130) < 52).astype(float)
        p = 1 / (1 + np.exp(-model * (2 * y - 1) - 0.2 * rng.normal(size=130)))
        judged = rng.permuted(np.tile(np.arange(130), (20, 1)), axis=1)[:, :10]
        found = estimate_rate(planted_cells(content_s=[46.0] * 130, p=p), judged, y[judged])
        held_draws.append((found.low <= 0.4) & (found.high >= 0.4))
    assert np.mean(held_draws) >= 0.93 - 0.01


class World(NamedTuple):
    """Between how many seconds the content of positive windows lies, and that of the others.

    `least_coverage` is how often the interval must hold the share at least, where it is below what it is
    elsewhere: a few short positives say little.
    """

    positive_s: tuple[float, float]
    negative_s: tuple[float, float]
    least_coverage: float | None = None


WORLDS = {
    "alike": World((46, 46), (46, 46)),
    "positives half as long": World((23, 23), (46, 46)),
    "positives twice as long": World((46, 46), (23, 23)),
    "up to twofold": World((23, 46), (23, 46)),
    "positives 6 s, others 46 s": World((6, 6), (46, 46), least_coverage=0.85),
}


def coverage_in(world, *, n_windows, n_judged, knowledge, n_films=25, n_draws=20):
    """Return how often the interval holds the share; a third of the windows is positive.

    `knowledge` is by how much the model's logit is above 0 for positives and below 0 for others; a model
    below 0 is wrong.
    """
    holds = []
    for film in range(n_films):
        rng = np.random.default_rng([film, n_windows, n_judged])
        y = rng.permuted(np.arange(n_windows) < n_windows // 3).astype(float)
        content = np.where(
            y > 0, rng.uniform(*world.positive_s, n_windows), rng.uniform(*world.negative_s, n_windows)
        )
        p = 1 / (1 + np.exp(-knowledge * (2 * y - 1) - rng.normal(size=n_windows)))
        orders = [random_order(content, str(film), seed)[:n_judged] for seed in range(n_draws)]
        judged = np.array(orders)
        found = estimate_rate(planted_cells(content_s=content, p=p), judged, y[judged])
        share = np.average(y, weights=content)
        holds.append((found.low <= share) & (share <= found.high))
    return np.mean(holds)


@pytest.mark.long  # simulates
@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)
@pytest.mark.parametrize("judged_part", [0.3, 0.85])
def test_the_interval_holds_the_share_where_content_goes_with_the_label(world, judged_part):
    """500 draws leave a coverage uncertain by .01 to .012 (one standard error)."""
    coverage = coverage_in(world, n_windows=130, n_judged=round(130 * judged_part), knowledge=1.0)
    assert coverage >= (world.least_coverage or 0.93) - 2 * 0.012


@pytest.mark.long  # simulates
@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)
@pytest.mark.parametrize(("n_windows", "least_coverage"), [(130, 0.93), (40, 0.9)])
@pytest.mark.parametrize("knowledge", [0.0, 2.0, -2.0], ids=["knows nothing", "knows much", "is wrong"])
def test_the_interval_holds_at_any_part_judged_whatever_the_model(
    world, n_windows, least_coverage, knowledge
):
    """1,000 draws leave a coverage uncertain by .008 (one standard error)."""
    for judged_part in (0.1, 0.3, 0.6, 0.85):
        n_judged = max(10, round(judged_part * n_windows))
        coverage = coverage_in(world, n_windows=n_windows, n_judged=n_judged, knowledge=knowledge, n_films=50)
        assert coverage >= (world.least_coverage or least_coverage) - 2 * 0.008, judged_part


def test_a_draw_by_the_earlier_law_is_estimated_as_it_was():
    """By hand: one window is certain to be drawn, and counts by its content; the others count alike."""
    content = np.array([100.0, 10, 10, 10, 10])
    y = np.array([[1.0, 0.0, 1.0]])
    found = estimate_rate(
        planted_cells(content_s=content), np.array([[0, 1, 2]]), y, sampling=SEQUENTIAL_POISSON
    )
    assert found.value[0] == pytest.approx(100 / 140 + 40 / 140 * 0.5)
