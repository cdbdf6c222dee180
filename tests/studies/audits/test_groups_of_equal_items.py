"""Cells whose items are all equal have no interval of no width: few ratings are often equal by chance."""

import pytest

from obygaze_models.report import records
from obygaze_studies.groups import audit_groups


def report_on_ratings(ratings_of_cell):
    """Audit ratings by their cell, of which each has two items with these ratings: ("3", "3")."""
    items = {}
    for cell, ratings in ratings_of_cell.items():
        for number, rating in enumerate(ratings):
            items[f"{cell}{number}"] = {"cell_of_item": cell, "rating": rating}
    return audit_groups(items, outcome="rating", by=["cell_of_item"])


@pytest.mark.parametrize(
    "ratings_of_cell",
    [
        {"a": ("3", "3"), "b": ("4", "4")},
        {"a": (".1", ".1"), "b": ("2.7", "2.7"), "c": ("4", "4")},
    ],
    ids=["two cells", "three cells"],
)
def test_cells_of_two_equal_ratings_each_have_an_estimate_and_no_interval(ratings_of_cell):
    """Nothing shows how far ratings differ within a cell: two may be equal by chance.

    An interval of no width would say that the mean is certain. So there is none, and a note says why.
    """
    report = report_on_ratings(ratings_of_cell)

    rows = records(report.data)
    rating_of_cells = [float(ratings[0]) for ratings in ratings_of_cell.values()]
    assert [row["estimate"] for row in rows] == pytest.approx(rating_of_cells, abs=1e-4)
    for row in rows:
        assert row["low"] is None
        assert row["high"] is None
    assert any("how far items differ is unknown" in note for note in report.notes)


def test_one_cell_with_unlike_ratings_gives_all_cells_an_interval():
    """Cell a has two equal ratings, and b has 4 and 5, which differ by 1.

    How far ratings differ is taken to be the same in all cells. As it is known of two ratings alone, the
    intervals are wider than 1.
    """
    report = report_on_ratings({"a": ("3", "3"), "b": ("4", "5")})

    for row in records(report.data):
        assert row["high"] - row["low"] > 1
    assert not any("unknown" in note for note in report.notes)


def test_the_share_of_yes_has_an_interval_even_if_all_answers_of_a_group_are_equal():
    """Group a has two answers 0, and group b two answers 1: shares of 0 and of 1.

    The interval of a share follows from the share and the number of answers. Of two it is wide, above .3. The
    interval of a mean of equal ratings would have no width, and is not given.
    """
    report = report_on_ratings({"a": ("0", "0"), "b": ("1", "1")})

    for row in records(report.data):
        assert row["high"] - row["low"] > 0.3
