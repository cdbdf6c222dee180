"""How windows are drawn: the laws, the chances they give, and what is written down of a draw."""

from itertools import permutations

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from obygaze_film.draws import (
    SEQUENTIAL_POISSON,
    SUCCESSIVE,
    Draw,
    inclusion_chances,
    random_order,
)
from tests.film.films import planted_cells

SECONDS_OF_WINDOWS = st.lists(st.floats(0.1, 200), min_size=2, max_size=40)


@given(SECONDS_OF_WINDOWS, st.integers(1, 40))
def test_chances_of_a_successive_draw_add_up_to_n(seconds, n):
    """Of 2 to 40 windows n are drawn. Each has a chance of being among them: the chances add up to n."""
    n = min(n, len(seconds))

    chances = inclusion_chances(np.array(seconds), n)

    assert chances.sum() == pytest.approx(n)


@given(SECONDS_OF_WINDOWS)
def test_if_all_windows_are_drawn_each_chance_is_1(seconds):
    """Of 2 to 40 windows, of .1 to 200 s each, as many are drawn as there are."""
    n_windows = len(seconds)

    chances = inclusion_chances(np.array(seconds), n_windows)

    assert chances.tolist() == [1] * n_windows


@given(SECONDS_OF_WINDOWS, st.integers(1, 40))
def test_the_chance_of_a_window_in_a_successive_draw(seconds, n):
    """A window of s seconds has the chance 1 - exp(-s t), where t is the same for all windows.

    So t is -log(1 - chance) / s, which must be one number. A chance of 1 tells nothing of it.
    """
    seconds = np.array(seconds)
    chances = inclusion_chances(seconds, min(n, len(seconds)))
    are_all_uncertain = chances.max() < 1 - 1e-9
    if are_all_uncertain:
        t = -np.log(1 - chances) / seconds
        assert t == pytest.approx(t[0], rel=1e-5)


@given(SECONDS_OF_WINDOWS, st.integers(1, 40))
def test_the_chances_of_a_sequential_poisson_draw(seconds, n):
    """Of a film's windows n are drawn, so that their chances to be drawn add up to n.

    Chances are in proportion to the seconds of content, but for the longest windows, of which they would be
    over 1. These have 1, and the others share what is left.
    """
    seconds = np.array(seconds)
    n = min(n, len(seconds))

    chances = inclusion_chances(seconds, n, SEQUENTIAL_POISSON)

    assert (chances <= 1).all()
    assert chances.sum() == pytest.approx(n)
    is_uncertain = chances < 1
    if is_uncertain.any():
        chances_per_second = chances[is_uncertain] / seconds[is_uncertain]
        assert chances_per_second.max() - chances_per_second.min() <= 1e-9
        longest_uncertain_s = seconds[is_uncertain].max()
        assert (seconds[~is_uncertain] >= longest_uncertain_s).all()


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
def test_each_window_is_drawn_in_proportion_to_its_content(n):
    """A window of twice the content is drawn twice as often, among those that are left at each step.

    The exact chances are computed from all orders of six windows; 4,000 draws leave a share uncertain by
    .008. The chances that an estimate uses are those of many windows, and nearly right even of six.
    """
    content_s = np.array([46.0, 46.0, 30.0, 23.0, 6.0, 6.0])
    exact = exact_chances(content_s, n)

    times_drawn = np.zeros(6)
    for seed in range(4000):
        drawn = random_order(content_s, "film", seed)[:n]
        times_drawn[drawn] += 1

    assert times_drawn / 4000 == pytest.approx(exact, abs=0.03)
    assert inclusion_chances(content_s, n) == pytest.approx(exact, abs=0.05)


@pytest.mark.parametrize("law", [SUCCESSIVE, SEQUENTIAL_POISSON])
def test_an_order_depends_on_the_films_name_and_the_seed(law):
    """A draw can be repeated by anybody who knows the film's name and the seed.

    The film has 40 windows of three lengths.
    """
    seconds = np.array([46.0] * 20 + [23.0] * 10 + [5.0] * 10)

    order = random_order(seconds, "a", seed=0, sampling=law)
    order_again = random_order(seconds, "a", seed=0, sampling=law)
    order_of_another_film = random_order(seconds, "b", seed=0, sampling=law)
    order_by_another_seed = random_order(seconds, "a", seed=1, sampling=law)

    assert order_again == order
    assert order_of_another_film != order
    assert order_by_another_seed != order


@pytest.mark.parametrize("law", [SUCCESSIVE, SEQUENTIAL_POISSON])
def test_windows_without_content_are_not_drawn(law):
    """The last five of 45 windows have 0 s of content: the order is of the first 40, 0 to 39."""
    seconds = np.array([46.0] * 20 + [23.0] * 10 + [5.0] * 10 + [0.0] * 5)
    order = random_order(seconds, "a", seed=0, sampling=law)
    assert sorted(order) == list(range(40))


@pytest.fixture
def random_numbers():
    """A number between 0 and 1 for each of three windows, from the seed 5 and the bytes of a name, film."""
    return np.random.default_rng([5, *b"film"]).random(3)


def test_the_order_of_a_successive_draw(random_numbers):
    """Three windows of the film called "film" get random numbers u, by the seed 5 (`random_numbers`).

    They come in the order of -log(u) / content: long windows come early.
    """
    content_s = np.array([10.0, 20.0, 40.0])
    keys = -np.log(random_numbers) / content_s
    windows_by_key = np.argsort(keys).tolist()
    assert random_order(content_s, "film", seed=5, sampling=SUCCESSIVE) == windows_by_key


def test_the_order_of_a_sequential_poisson_draw(random_numbers):
    """Three windows of the film called "film" get random numbers u, by the seed 5 (`random_numbers`).

    They come in the order of u / content: long windows come early.
    """
    content_s = np.array([10.0, 20.0, 40.0])
    keys = random_numbers / content_s
    windows_by_key = np.argsort(keys).tolist()
    assert random_order(content_s, "film", seed=5, sampling=SEQUENTIAL_POISSON) == windows_by_key


def test_a_draw_that_is_read_back_has_the_same_order():
    """The draw of 50 windows is kept as JSON. Its order is that in which the film's cells are drawn."""
    seconds = np.random.default_rng(0).uniform(0, 46, 50)
    draw = Draw(sampling=SUCCESSIVE, seed=3, movie="tt01", content=tuple(seconds.tolist()))

    read_back = msgspec.json.decode(msgspec.json.encode(draw), type=Draw)

    assert read_back == draw
    cells = planted_cells(content_s=seconds)
    assert read_back.order() == cells.order_of_draw("tt01", seed=3)


@pytest.mark.parametrize(
    "senseless", [{"law": "another"}, {"seed": -1}, {"content": [-1.0]}, {"content": "all"}, {"movie": None}]
)
def test_a_draw_with_a_senseless_field_is_refused(senseless):
    """A draw is read from files of strangers. One field of a good draw, of one window of 1 s, is replaced."""
    good_draw = {"law": SUCCESSIVE, "seed": 0, "movie": "m", "content": [1.0]}
    assert msgspec.convert(good_draw, Draw).movie == "m"
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(good_draw | senseless, Draw)
