"""A rate from windows drawn by each law: exact where it can be, and never beside what whole windows allow."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
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


@pytest.mark.parametrize("positives", [1, 2, 5])
def test_none_positive_misleads_in_at_most_one_of_forty_draws_whatever_the_contents(positives):
    """Planted: the positives are short, or long. 2,000 draws leave a share uncertain by .0035."""
    short = np.array([6.0] * positives + [46.0] * (30 - positives))
    long = np.array([46.0] * positives + [6.0] * 25)
    for content in (short, long):
        missed = 0
        for seed in range(2000):
            order = np.array(random_order(content, "film", seed))[:12]
            if (order >= positives).all():
                missed += most_unseen(content, order) < content[:positives].sum() - 1e-9
        assert missed / 2000 <= 0.025 + 0.0105


@settings(deadline=None, max_examples=60)
@given(st.lists(st.sampled_from([6.0, 23.0, 46.0, 11.5]), min_size=1, max_size=6))
def test_sums_of_whole_windows_are_those_of_all_subsets(sizes):
    subsets = {round(sum(part), 3) for k in range(len(sizes) + 1) for part in combinations(sizes, k)}
    assert sums_of_whole(np.array(sizes)).tolist() == sorted(subsets)
    halves = {round(a / 2 + b / 2, 3) for a in subsets for b in subsets}
    assert set(np.round(sums_of_whole(np.array(sizes), denominator=2), 3)) <= halves


def test_too_many_sums_are_not_listed():
    assert sums_of_whole(np.random.default_rng(0).random(30)) is None
    assert len(sums_of_whole(np.full(MOST_SUMS - 1, 46.0))) == MOST_SUMS


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10**6), st.sampled_from([[46.0], [23.0, 46.0], [6.0, 46.0]]), st.integers(1, 3))
def test_an_interval_lies_within_what_the_judged_windows_leave_open(seed, sizes, judges):
    rng = np.random.default_rng(seed)
    content = rng.choice(sizes, 25)
    y = rng.integers(0, judges + 1, 25) / judges
    order = np.array(random_order(content, "film", seed))
    for n in (10, 18, 25):
        judged = order[:n]
        cells = planted_cells(content_s=content, p=rng.random(25))
        found = estimate_rate(cells, judged[None], y[judged][None], denominator=judges)
        known = content[judged] @ y[judged] / content.sum()
        most = known + content[order[n:]].sum() / content.sum()
        assert known - 1e-8 <= found.low[0] <= found.value[0] <= found.high[0] <= most + 1e-8
    assert (found.low[0], found.high[0]) == pytest.approx((known, known))


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


WORLDS = {
    "alike": ((46, 46), (46, 46)),
    "positives half as long": ((23, 23), (46, 46)),
    "positives twice as long": ((46, 46), (23, 23)),
    "up to twofold": ((23, 46), (23, 46)),
    "positives 6 s, others 46 s": ((6, 6), (46, 46)),
}
"""Between how many seconds the content of positives lies, and that of the others."""


def held(world, n_windows, n_judged, model, n_films=25, n_draws=20):
    """How often the interval holds the share; a third of the windows is positive."""
    holds = []
    for film in range(n_films):
        rng = np.random.default_rng([film, n_windows, n_judged])
        y = rng.permuted(np.arange(n_windows) < n_windows // 3).astype(float)
        positives, others = WORLDS[world]
        content = np.where(y > 0, rng.uniform(*positives, n_windows), rng.uniform(*others, n_windows))
        p = 1 / (1 + np.exp(-model * (2 * y - 1) - rng.normal(size=n_windows)))
        orders = [random_order(content, str(film), seed)[:n_judged] for seed in range(n_draws)]
        judged = np.array(orders)
        found = estimate_rate(planted_cells(content_s=content, p=p), judged, y[judged])
        truth = np.average(y, weights=content)
        holds.append((found.low <= truth) & (truth <= found.high))
    return np.mean(holds)


@pytest.mark.long  # simulates
@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("part", [0.3, 0.85])
def test_the_interval_holds_where_content_goes_with_the_label_and_most_is_judged(world, part):
    """500 draws leave a coverage uncertain by .01 to .012 (one standard error)."""
    least = 0.85 if "6 s" in world else 0.93
    assert held(world, 130, round(130 * part), 1.0) >= least - 0.024


@pytest.mark.long
@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize(("n_windows", "least"), [(130, 0.93), (40, 0.9)])
def test_the_interval_holds_at_any_part_judged_whatever_the_model(world, n_windows, least):
    """1,000 draws: .008."""
    least = 0.85 if "6 s" in world else least
    for part in (0.1, 0.3, 0.6, 0.85):
        for model in (0.0, 2.0, -2.0):
            n_judged = max(10, round(part * n_windows))
            found = held(world, n_windows, n_judged, model, n_films=50)
            assert found >= least - 0.016, (part, model, found)


def test_a_draw_by_the_earlier_law_is_estimated_as_it_was():
    """By hand: one window is certain to be drawn, and counts by its content; the others count alike."""
    content = np.array([100.0, 10, 10, 10, 10])
    y = np.array([[1.0, 0.0, 1.0]])
    found = estimate_rate(
        planted_cells(content_s=content), np.array([[0, 1, 2]]), y, sampling=SEQUENTIAL_POISSON
    )
    assert found.value[0] == pytest.approx(100 / 140 + 40 / 140 * 0.5)
