"""Cells of one estimate have no lowest and no highest among them."""

import pytest

from obygaze_studies.groups import audit_groups


def report_on_cells(*, m_old, f_old, m_young, f_young):
    """Audit eight items by gender and age; each of the four cells has two items of the given value."""
    value_of_cell = {
        ("m", "old"): m_old,
        ("f", "old"): f_old,
        ("m", "young"): m_young,
        ("f", "young"): f_young,
    }
    items = {}
    for number, ((gender, age), value) in enumerate(2 * list(value_of_cell.items())):
        items[str(number)] = {"gender": gender, "age": age, "y": value}
    return audit_groups(items, outcome="y", by=["gender", "age"])


@pytest.mark.parametrize("value", ["1", "0"])
def test_the_answer_names_no_lowest_and_no_highest_cell_where_all_items_are_alike(value):
    """Four cells, of gender and age, have items of one value: any would be the lowest and the highest."""
    report = report_on_cells(m_old=value, f_old=value, m_young=value, f_young=value)

    assert report.answers[0].endswith("all have the same estimate")


def test_the_answer_names_the_cells_with_the_lowest_and_the_highest_estimate():
    """Two items of one value are in each of four cells, of gender and age."""
    report = report_on_cells(m_old="1.5", f_old="2.5", m_young="9", f_young="10")

    assert report.answers[0].endswith("the estimate is lowest for m old and highest for f young")
