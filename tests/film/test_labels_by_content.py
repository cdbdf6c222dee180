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


def drawn_windows(content_s, n, seed=0):
    """Draw n windows in proportion to their content; all are judged positive."""
    rng = np.random.default_rng(seed)
    drawn = np.argsort(-np.log(rng.random(len(content_s))) / content_s)[:n]
    by_cell = {int(cell): {"AB": True} for cell in drawn}
    return JudgedWindows(planted_cells(content_s=content_s), by_cell, (), SUCCESSIVE)


def test_labels_may_miss_windows_of_a_few_seconds():
    """Fifteen windows are credits but for two seconds; whoever labelled the film left these out.

    Of 60 windows drawn hardly any is one of them, whoever labels what.
    """
    content_s = np.full(N_WINDOWS, 46.0)
    content_s[-15:] = 2.0
    labelled_s = np.where(content_s > 2, content_s, 0)

    for seed in range(20):
        windows = drawn_windows(content_s, 60, seed)
        labelled = replace(windows.cells, counted_s=labelled_s)
        refuse_labels_of_drawn_windows(labelled, windows, "tt0000001")


def test_labels_of_drawn_windows_are_refused_where_their_times_were_rounded():
    """Labels in whole seconds reach into the neighbours of the drawn windows, and do not label these."""
    windows = drawn_windows(np.full(N_WINDOWS, 46.0), 60)
    labelled_s = np.full(N_WINDOWS, 0.4)
    labelled_s[[*windows.by_cell]] = 46.0
    labelled = replace(windows.cells, counted_s=labelled_s)

    with pytest.raises(FilmError, match="0 of 60 judged windows and 70 of all 130 have none"):
        refuse_labels_of_drawn_windows(labelled, windows, "tt0000001")


def test_labels_that_miss_windows_by_chance_are_accepted_of_a_hundred_films():
    """A machine did not answer 20 windows of each film. A film that is refused stops the whole comparison."""
    rng = np.random.default_rng(1)
    content_s = np.full(N_WINDOWS, 46.0)

    for seed in range(100):
        windows = drawn_windows(content_s, 60, seed)
        labelled_s = content_s.copy()
        labelled_s[rng.permutation(N_WINDOWS)[:20]] = 0
        refuse_labels_of_drawn_windows(replace(windows.cells, counted_s=labelled_s), windows, f"tt{seed}")


@pytest.mark.parametrize("n", [0, 2, 5])
def test_windows_of_equal_content_have_the_hypergeometric_distribution(n):
    """Of 30 windows 8 are marked, and 12 are drawn."""
    is_marked = np.arange(30) < 8

    chance = _chance_of_at_most(n, is_marked, np.full(30, 12 / 30), n_drawn=12)

    assert chance == pytest.approx(hypergeom.cdf(n, 30, 8, 12))
