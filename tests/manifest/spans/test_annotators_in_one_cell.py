"""A cell that lists annotators stays one name, since a name may have a comma; the import says so."""

import pytest

from obygaze_features.manifest import import_spans

ROWS_OF_AB_AND_CD = "f,1,2,S,AB\nf,1,2,EN,CD\n"
"""Two rows, one of AB and one of CD."""


def notices_of_names(tmp_path, annotator, rows=ROWS_OF_AB_AND_CD):
    """Import a row of `annotator` above those of AB and CD; return notices of what is taken as one name."""
    table = tmp_path / "table.csv"
    table.write_text(f'movie,start_s,end_s,level,annotator\nf,0,1,S,"{annotator}"\n{rows}', encoding="utf-8")
    imported = import_spans([table], tmp_path)
    return [notice for notice in imported.notices if "taken as one name" in notice]


@pytest.mark.parametrize("annotator", ["AB;CD", "AB, CD", "AB/CD", "AB + CD", "AB and CD"])
def test_annotators_of_other_rows_in_one_cell_are_named(tmp_path, annotator):
    """AB and CD have a row each, and a third row names both in one cell, with a sign between them.

    The cell is taken as the name of one annotator, which a notice says.
    """
    (notice,) = notices_of_names(tmp_path, annotator)

    sentence = f"annotator {annotator!r} taken as one name beside 'AB' and 'CD': write a row for each of them"
    assert sentence in notice


@pytest.mark.parametrize("annotator", ["O'Brien, J", "AB, EF", "Sand"])
def test_a_name_with_a_comma_is_a_name(tmp_path, annotator):
    """The others are AB and CD. The cell does not list two of them, so there is nothing to notice."""
    assert notices_of_names(tmp_path, annotator) == []


def test_a_name_with_a_semicolon_behind_it_is_no_list_of_two_names(tmp_path):
    """Rows name "AB;", AB, CD, and nobody. A cell that lists two of these names would get a notice.

    "AB;" is AB and an empty text, which is what the row of nobody has as its annotator. That is no name.
    """
    row_of_nobody = "f,2,3,S,\n"
    assert notices_of_names(tmp_path, "AB;", rows=ROWS_OF_AB_AND_CD + row_of_nobody) == []
