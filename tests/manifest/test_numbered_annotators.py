"""Annotators who are numbers are one person with and without zeros, as spreadsheets write one for the other.

A person under two numbers agrees with themselves: gamma is 1.
"""

import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import Clip, import_spans
from obygaze_features.manifest.identity import check_identity


def labelled_by(*annotators):
    """Make a clip of one span by each annotator."""
    return [Clip(f"f-{n}", "f", "", 1.0, 3.0, "S", annotator=name) for n, name in enumerate(annotators)]


@pytest.mark.parametrize(
    ("first", "second"), [("1", "01"), ("007", "7"), ("1", "1.0"), ("01", "1,0"), ("2", "\uff10\uff12")]
)
def test_one_number_in_two_forms_is_refused(first, second):
    with pytest.raises(ManifestError) as refusal:
        check_identity(labelled_by(first, second))

    assert f"annotator {second!r} and {first!r} (clip 'f-0') are one name" in str(refusal.value)


def test_an_import_names_both_lines(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("movie,start_s,end_s,level,annotator\nf,1,2,S,1\nf,1,2,EN,01\n")

    with pytest.raises(ManifestError, match=r"line 3: annotator '01' and '1' \(line 2\) are one name"):
        import_spans([path], tmp_path)


@pytest.mark.parametrize(
    ("first", "second"), [("1", "10"), ("0", "00 7"), ("1", "11"), ("AB", "CD"), ("0", "1")]
)
def test_different_numbers_are_different_people(first, second):
    assert check_identity(labelled_by(first, second)) == []


@pytest.mark.parametrize(("first", "second"), [("R1", "R01"), ("coder 3", "coder 03")])
def test_names_that_differ_in_zeros_alone_are_said(first, second):
    """Somebody may have numbered people so on purpose, but hardly."""
    notes = check_identity(labelled_by(first, second))

    assert notes == [f"annotator {second!r} and {first!r} look alike: if they are one, spell both alike"]


def test_films_are_not_compared_so():
    """Titles with letters and numbers keep their zeros: they are names of works."""
    clips = [Clip("a", "Agent 007", "", 1.0, 3.0), Clip("b", "Agent 7", "", 1.0, 3.0)]

    assert check_identity(clips) == []
