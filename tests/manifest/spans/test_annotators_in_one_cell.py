"""A cell that lists annotators stays one name, since a name may have a comma; the import says so."""

import pytest

from obygaze_features.manifest import import_spans

ALONE = "f,1,2,S,AB\nf,1,2,EN,CD\n"
"""Rows of AB and of CD, each alone."""


def notes_on(tmp_path, annotator, rows=ALONE):
    """Import a row of `annotator`, and others; return what the import says of names."""
    table = tmp_path / "table.csv"
    table.write_text(f'movie,start_s,end_s,level,annotator\nf,0,1,S,"{annotator}"\n{rows}', encoding="utf-8")
    imported = import_spans([table], tmp_path)
    return [notice for notice in imported.notices if "taken as one name" in notice]


@pytest.mark.parametrize("annotator", ["AB;CD", "AB, CD", "AB/CD", "AB + CD", "AB and CD"])
def test_annotators_of_other_rows_in_one_cell_are_named(tmp_path, annotator):
    (notice,) = notes_on(tmp_path, annotator)

    sentence = f"annotator {annotator!r} taken as one name beside 'AB' and 'CD': write a row for each of them"
    assert sentence in notice


@pytest.mark.parametrize("annotator", ["O'Brien, J", "AB, EF", "Sand"])
def test_a_name_with_a_comma_is_a_name(tmp_path, annotator):
    assert notes_on(tmp_path, annotator) == []


def test_a_name_with_a_sign_behind_it_lists_no_one_else(tmp_path):
    """A row without an annotator is none of somebody called ''."""
    assert notes_on(tmp_path, "AB;", rows=f"{ALONE}f,2,3,S,\n") == []
