"""The interval at any time: it holds the share however often one looks."""

import numpy as np
import pytest

from obygaze_film.workspace.anytime import STAKES, anytime_interval
from tests.film.films import planted_cells


@pytest.mark.long  # simulates
@pytest.mark.parametrize(("share", "is_useful"), [(0.05, True), (0.2, False), (0.5, True)])
def test_the_interval_at_any_time_holds_the_share_at_every_time(share, is_useful):
    """At all of 40 judgements together at least .95; fixed seeds. It narrows as judgements come."""
    n_cells, missed, widths = 150, 0, []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        p = 1 / (1 + np.exp(-2 * (rng.normal(size=n_cells) + np.log(share / (1 - share)))))
        y = (rng.random(n_cells) < p).astype(float)
        seconds = np.full(n_cells, 8.0)
        shown = p if is_useful else rng.random(n_cells)
        cells = planted_cells(content_s=seconds, p=shown)
        order = rng.permutation(n_cells)[:40]
        low, high = anytime_interval(cells, order, y[order])
        early = anytime_interval(cells, order[:10], y[order[:10]])
        missed += not low - 1e-3 <= y.mean() <= high + 1e-3
        widths.append((high - low) / (early[1] - early[0]))
    assert missed <= 2
    assert np.median(widths) < 0.7


def test_a_share_that_was_refuted_at_any_time_stays_refuted():
    """Planted: 30 windows of one kind, then 15 of the other; the last bet alone would let .7 in again."""
    seconds, y = np.full(450, 8.0), np.repeat([1.0, 0.0], [30, 15])
    cells = planted_cells(content_s=seconds, p=0.5)
    (early, _), (late, high) = (anytime_interval(cells, np.arange(n), y[:n]) for n in (30, 45))
    assert 0.7 < early <= late < high


def test_a_wrong_model_costs_little_width_at_any_time():
    rng = np.random.default_rng(0)
    y, seconds = (rng.random(150) < 0.3).astype(float), np.full(150, 8.0)
    order, width = rng.permutation(150)[:40], {}
    for name, p in {"useless": np.full(150, 0.3), "wrong": 1 - y, "good": y}.items():
        low, high = anytime_interval(planted_cells(content_s=seconds, p=p), order, y[order])
        width[name] = high - low
    assert width["wrong"] < 1.25 * width["useless"]
    assert width["good"] < 0.9 * width["useless"]


def test_capital_at_the_end_of_the_interval_at_any_time_is_20():
    """Of a model that says nothing, and judgements that are all 1: bets on them, and on differences."""
    cells = planted_cells(content_s=np.ones(50), p=0.5)
    low, high = anytime_interval(cells, np.arange(12), np.ones(12))
    assert high == 1

    def capital(share, sign, stake, lowest, highest):
        found = 1.0
        for place in range(12):
            left = ((share + sign * 0.0005) * 50 - place) / (50 - place)  # of windows as yet undrawn
            found *= 1 + sign * stake * (1 - left) / (left - lowest if sign > 0 else highest - left)
        return found

    def of_all(share):
        return np.mean(
            [
                capital(share, sign, stake, *ends)
                for ends in ((0, 1), (-0.5, 1.5))
                for sign in (1, -1)
                for stake in STAKES
            ]
        )

    assert of_all(low) < 20 <= of_all(low - 0.001)


@pytest.mark.parametrize("longer", [1, 30])
def test_windows_with_more_content_where_they_are_negative_mislead_at_no_time(longer):
    """All of 60 are judged: the share is of seconds, not of windows, and in the end it is known."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        y = (rng.random(60) < 0.3).astype(float)
        seconds = np.where(y > 0, 1.0, longer)
        seconds[rng.integers(60)] = 1e-13  # what rounding leaves of a black window
        cells = planted_cells(content_s=seconds, p=rng.random(60))
        order = np.array(cells.order_of_draw(f"{seed}", 0))
        low, high = anytime_interval(cells, order, y[order])
        share = np.average(y, weights=seconds)
        assert low - 1e-3 <= share <= high + 1e-3
        assert high - low < 0.05


def test_judgements_that_refute_every_share_leave_the_least_refuted():
    """Hundreds of positives and then of negatives are no draw at random: a share is given, and not NaN."""
    n, seconds = 800, np.ones(800)
    cells = planted_cells(content_s=seconds, p=0.5)
    low, high = anytime_interval(cells, np.arange(n), np.repeat([1.0, 0.0], n // 2))
    assert low == high
    assert 0 < low < 1
