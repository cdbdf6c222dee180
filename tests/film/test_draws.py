"""How windows are drawn: the laws, the chances they give, and what is written down of a draw."""

from itertools import permutations

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from obygaze_film.draws import (
    SEQUENTIAL_POISSON,
    SUCCESSIVE,
    Draw,
    inclusion_chances,
    random_order,
)
from tests.film.films import planted_cells

CONTENTS = st.lists(st.floats(0.1, 200), min_size=2, max_size=40)


@settings(deadline=None, max_examples=100)
@given(CONTENTS, st.integers(1, 40))
def test_chances_of_a_successive_draw_add_up_and_follow_from_one_threshold(seconds, n):
    seconds, n = np.array(seconds), min(n, len(seconds))
    chances = inclusion_chances(seconds, n)
    assert chances.sum() == pytest.approx(n)
    if n == len(seconds):
        assert (chances == 1).all()
    elif chances.max() < 1 - 1e-9:
        thresholds = -np.log1p(-chances) / seconds
        assert thresholds == pytest.approx(thresholds[0], rel=1e-5)


@settings(deadline=None, max_examples=100)
@given(CONTENTS, st.integers(1, 40))
def test_chances_of_a_sequential_poisson_draw_are_proportional_to_content_below_1(seconds, n):
    seconds, n = np.array(seconds), min(n, len(seconds))
    chances = inclusion_chances(seconds, n, SEQUENTIAL_POISSON)
    assert chances.sum() == pytest.approx(n)
    assert (chances <= 1).all()
    below = chances < 1
    assert not below.any() or np.ptp(chances[below] / seconds[below]) <= 1e-9
    assert seconds[~below].min(initial=np.inf) >= seconds[below].max(initial=0)


def exact_chances(content, n):
    """Chance of each window to be among the first n, each drawn in proportion to content among the rest."""
    chances = np.zeros(len(content))
    for order in permutations(range(len(content)), n):
        chance, left = 1.0, sum(content)
        for window in order:
            chance *= content[window] / left
            left -= content[window]
        chances[list(order)] += chance
    return chances


@pytest.mark.parametrize("n", [1, 2, 4])
def test_a_draw_is_in_proportion_to_content_among_what_is_left(n):
    """Held against all orders of six windows; 4,000 draws leave a share uncertain by .008."""
    content = np.array([46.0, 46.0, 30.0, 23.0, 6.0, 6.0])
    counts = np.zeros(6)
    for seed in range(4000):
        counts[random_order(content, "film", seed)[:n]] += 1
    exact = exact_chances(content, n)
    assert counts / 4000 == pytest.approx(exact, abs=0.03)
    assert inclusion_chances(content, n) == pytest.approx(exact, abs=0.05)  # nearly, even of six windows


@pytest.mark.parametrize("law", [SUCCESSIVE, SEQUENTIAL_POISSON])
def test_an_order_has_all_windows_with_content_and_depends_on_name_and_seed(law):
    seconds = np.array([46.0] * 20 + [23.0] * 10 + [5.0] * 10 + [0.0] * 5)
    orders = [random_order(seconds, name, seed, law) for name, seed in (("a", 0), ("b", 0), ("a", 1))]
    assert [sorted(order) for order in orders] == [list(range(40))] * 3
    assert orders[0] != orders[1] != orders[2] != orders[0]
    assert random_order(seconds, "a", 0, law) == orders[0]


def test_windows_are_drawn_by_the_law_that_they_name():
    """Planted: of one u for all laws, -log(u) / content and u / content."""
    content = np.array([10.0, 20.0, 40.0])
    u = np.random.default_rng([5, *b"film"]).random(3)
    assert random_order(content, "film", 5, SUCCESSIVE) == np.argsort(-np.log(u) / content).tolist()
    assert random_order(content, "film", 5, SEQUENTIAL_POISSON) == np.argsort(u / content).tolist()


def test_a_draw_that_was_written_down_puts_the_windows_in_the_same_order():
    seconds = np.random.default_rng(0).uniform(0, 46, 50)
    cells = planted_cells(content_s=seconds, p=0.5)
    draw = Draw(sampling=SUCCESSIVE, seed=3, movie="tt01", content=tuple(seconds.tolist()))
    again = msgspec.json.decode(msgspec.json.encode(draw), type=Draw)
    assert again == draw
    assert again.order() == cells.order_of_draw("tt01", 3)


@pytest.mark.parametrize(
    "change", [{"law": "another"}, {"seed": -1}, {"content": [-1.0]}, {"content": "all"}, {"movie": None}]
)
def test_a_draw_that_makes_no_sense_is_refused(change):
    draw = {"law": SUCCESSIVE, "seed": 0, "movie": "m", "content": [1.0]} | change
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(draw, Draw)
