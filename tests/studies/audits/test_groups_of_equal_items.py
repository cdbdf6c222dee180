"""Cells whose items are all equal have no interval of no width: few ratings are often equal by chance."""

import pytest

from obygaze_models.report import records
from obygaze_studies.groups import audit_groups


def ratings(*pairs):
    """Items with a rating, two in each cell: a, b and so on."""
    items = {}
    for cell, pair in zip("abcdef", pairs, strict=False):
        for number, rating in enumerate(pair):
            items[f"{cell}{number}"] = {"cell_of_item": cell, "rating": rating}
    return items


@pytest.mark.parametrize("pairs", [[("3", "3"), ("4", "4")], [(".1", ".1"), ("2.7", "2.7"), ("4", "4")]])
def test_two_equal_ratings_in_each_cell_are_no_certainty(pairs):
    """Each cell had an interval of no width. The means stay, and a note says why there is no interval."""
    report = audit_groups(ratings(*pairs), outcome="rating", by=["cell_of_item"])

    rows = records(report.data)
    assert [row["estimate"] for row in rows] == pytest.approx([float(pair[0]) for pair in pairs], abs=1e-4)
    assert [row["low"] for row in rows] == [row["high"] for row in rows] == [None] * len(pairs)
    assert any("how far items differ is unknown" in note for note in report.notes)


def test_one_pair_of_unlike_ratings_gives_all_cells_an_interval():
    report = audit_groups(ratings(("3", "3"), ("4", "5")), outcome="rating", by=["cell_of_item"])

    for row in records(report.data):
        assert row["high"] - row["low"] > 1
    assert not any("unknown" in note for note in report.notes)


def test_equal_answers_of_a_share_keep_their_interval():
    """How far answers of 0 and 1 differ is known from their share."""
    report = audit_groups(ratings(("0", "0"), ("1", "1")), outcome="rating", by=["cell_of_item"])

    for row in records(report.data):
        assert row["high"] - row["low"] > 0.3
