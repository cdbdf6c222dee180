"""Cells of one estimate have no lowest and no highest among them."""

import pytest

from obygaze_studies.groups import audit_groups


def items_of(values):
    """Eight items, two of one value in each cell of two attributes."""
    cells = [("m", "old"), ("f", "old"), ("m", "young"), ("f", "young")]
    items = {}
    for number, ((gender, age), value) in enumerate(zip(2 * cells, 2 * values, strict=True)):
        items[str(number)] = {"gender": gender, "age": age, "y": value}
    return items


@pytest.mark.parametrize("value", ["1", "0"])
def test_cells_in_which_all_items_are_alike_are_not_ranked(value):
    """One cell was named as the lowest and as the highest."""
    report = audit_groups(items_of([value] * 4), outcome="y", by=["gender", "age"])

    assert report.answers[0].endswith("all have the same estimate")


def test_cells_of_different_estimates_are_ranked():
    report = audit_groups(items_of(["1.5", "2.5", "9", "10"]), outcome="y", by=["gender", "age"])

    assert report.answers[0].endswith("the estimate is lowest for m old and highest for f young")
