"""Labels in place of a model depend on the draw, or not: windows are drawn in proportion to their content."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import hypergeom

from obygaze_film.draws import SUCCESSIVE
from obygaze_film.errors import FilmError
from obygaze_film.judged_windows import JudgedWindows, _chance_of_at_most, refuse_labels_of_drawn_windows
from tests.film.films import planted_cells

N_WINDOWS = 130
FULL_S = 46.0
"""Seconds of content of a window without credits or a black screen."""


def drawn_windows(content_s, n, seed=0):
    """Draw n windows in proportion to their content; all are judged positive."""
    rng = np.random.default_rng(seed)
    drawn = np.argsort(-np.log(rng.random(len(content_s))) / content_s)[:n]
    by_cell = {int(cell): {"AB": True} for cell in drawn}
    return JudgedWindows(planted_cells(content_s=content_s), by_cell, (), SUCCESSIVE)


def refuse_if_labels_are_of_drawn_windows(windows, labelled_s):
    """Let labels that cover so many seconds of each window stand for a model; raise if that is refused.

    Labels are refused if fewer of the drawn windows lack one than would in 9,999 of 10,000 draws: then
    somebody labelled the windows because they were drawn.
    """
    labelled_cells = replace(windows.cells, counted_s=labelled_s)
    refuse_labels_of_drawn_windows(labelled_cells, windows, "tt0000001")


def test_labels_may_miss_windows_of_little_content_which_are_seldom_drawn():
    """Of 130 windows the last fifteen are credits but for two seconds, and whoever labelled left them out.

    60 windows are drawn in proportion to content, so that hardly any of the fifteen is drawn. Labels are
    refused if suspiciously many drawn windows have one; but here windows without labels are few among the
    drawn as their content is small. So in none of 20 draws are the labels refused: nothing is raised.
    """
    content_s = np.full(N_WINDOWS, FULL_S)
    content_s[-15:] = 2.0
    labelled_s = np.where(content_s > 2, content_s, 0)

    for seed in range(20):
        windows = drawn_windows(content_s, 60, seed)
        refuse_if_labels_are_of_drawn_windows(windows, labelled_s)


def test_labels_of_drawn_windows_alone_are_refused_even_if_rounded_times_reach_into_others():
    """Of 130 windows 60 were drawn and judged, and somebody labelled just these, in whole seconds.

    Rounded so, labels reach .4 s into other windows, which does not count as a label of these. So all 60
    judged windows have one and the other 70 none: the labels depend on the draw.
    """
    windows = drawn_windows(np.full(N_WINDOWS, FULL_S), 60)
    drawn_cells = [*windows.by_cell]
    labelled_s = np.full(N_WINDOWS, 0.4)
    labelled_s[drawn_cells] = FULL_S

    with pytest.raises(FilmError, match="0 of 60 judged windows and 70 of all 130 have none"):
        refuse_if_labels_are_of_drawn_windows(windows, labelled_s)


def test_labels_that_miss_windows_by_chance_are_accepted_of_a_hundred_films():
    """A machine labelled each film, but for 20 windows at random: which were drawn has nothing to do with it.

    No film may be refused (nothing is raised), as one refusal stops the comparison of all hundred.
    """
    rng = np.random.default_rng(1)
    content_s = np.full(N_WINDOWS, FULL_S)

    for seed in range(100):
        windows = drawn_windows(content_s, 60, seed)
        unanswered = rng.permutation(N_WINDOWS)[:20]
        labelled_s = content_s.copy()
        labelled_s[unanswered] = 0
        refuse_if_labels_are_of_drawn_windows(windows, labelled_s)


@pytest.mark.parametrize("n", [0, 2, 5])
def test_windows_of_equal_content_have_the_hypergeometric_distribution(n):
    """Of 30 windows 8 are marked. Twelve are drawn, each with the same chance, 12/30.

    The chance that at most n of the drawn ones are marked is then known in closed form.
    """
    is_marked = np.arange(30) < 8
    chances_to_be_drawn = np.full(30, 12 / 30)

    chance = _chance_of_at_most(n, is_marked, chances_to_be_drawn, n_drawn=12)

    assert chance == pytest.approx(hypergeom.cdf(n, 30, 8, 12))


def test_a_number_of_drawn_windows_that_cannot_be_drawn_arouses_no_suspicion():
    """Labels are suspected to be made of the drawn windows if chance would hardly make so few of them marked.

    Of three windows one has content, and only that can be drawn. A table says that two were drawn: that
    cannot be, so that no chance can be computed, and 1 stands for it, by which nothing is suspected.
    """
    is_marked = np.array([True, False, False])
    chance_to_be_drawn = np.array([1.0, 0.0, 0.0])

    assert _chance_of_at_most(0, is_marked, chance_to_be_drawn, n_drawn=2) == 1
