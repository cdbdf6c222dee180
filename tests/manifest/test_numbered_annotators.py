"""Annotators who are numbers are one person with and without zeros, as spreadsheets write one for the other.

A person under two numbers agrees with themselves: gamma is 1.
"""

import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import Clip, import_spans
from obygaze_features.manifest.identity import check_identity


def clips_labelled_by(*annotators):
    """Make a clip of one span by each annotator; their ids are f-0, f-1, ..."""
    return [
        Clip(f"f-{n}", "f", "", start_s=1.0, end_s=3.0, level="S", annotator=name)
        for n, name in enumerate(annotators)
    ]


@pytest.mark.parametrize(
    ("first", "second"),
    [("1", "01"), ("007", "7"), ("1", "1.0"), ("01", "1,0"), ("2", "\uff10\uff12")],
    ids=["01", "007", "decimal point", "decimal comma", "02 in wide digits"],
)
def test_one_number_in_two_forms_is_refused(first, second):
    """Two clips, f-0 and f-1, were labelled by annotators whose names are one number, such as 1 and 01."""
    clips = clips_labelled_by(first, second)

    with pytest.raises(ManifestError) as refusal:
        check_identity(clips)

    assert f"annotator {second!r} and {first!r} (clip 'f-0') are one name" in str(refusal.value)


def test_the_refusal_of_one_number_in_two_forms_names_both_lines_of_an_imported_table(tmp_path):
    """The table has one number in two forms: annotator 1 in line 2, and annotator 01 in line 3."""
    path = tmp_path / "t.csv"
    path.write_text("movie,start_s,end_s,level,annotator\nf,1,2,S,1\nf,1,2,EN,01\n")

    with pytest.raises(ManifestError, match=r"line 3: annotator '01' and '1' \(line 2\) are one name"):
        import_spans([path], tmp_path)


@pytest.mark.parametrize(
    ("first", "second"), [("1", "10"), ("0", "00 7"), ("1", "11"), ("AB", "CD"), ("0", "1")]
)
def test_different_numbers_are_different_people(first, second):
    """Two annotators with these names have labelled a clip each: there is nothing to say of their names."""
    clips = clips_labelled_by(first, second)

    notes = check_identity(clips)

    assert notes == []


@pytest.mark.parametrize(("first", "second"), [("R1", "R01"), ("coder 3", "coder 03")])
def test_names_with_letters_that_differ_in_zeros_alone_are_noted_and_not_refused(first, second):
    """Two clips were labelled by R1 and R01, or coder 3 and coder 03: two people perhaps, but hardly."""
    clips = clips_labelled_by(first, second)

    notes = check_identity(clips)

    assert notes == [f"annotator {second!r} and {first!r} look alike: if they are one, spell both alike"]


def test_titles_of_films_that_differ_in_zeros_alone_are_two_films():
    """Zeros in titles are not those of a spreadsheet: Agent 007 and Agent 7 are two works."""
    clips = [
        Clip("a", "Agent 007", "", start_s=1.0, end_s=3.0),
        Clip("b", "Agent 7", "", start_s=1.0, end_s=3.0),
    ]

    notes = check_identity(clips)

    assert notes == []
