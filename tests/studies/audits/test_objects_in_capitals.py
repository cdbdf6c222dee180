"""Captions are counted without upper case, so that objects that differ in it alone are one object."""

import pytest

from obygaze_studies.errors import AuditError
from obygaze_studies.gender_score.cooc import audit_cooc

CAPTIONS = [
    {"caption_id": "a", "caption": "A man on a horse"},
    {"caption_id": "b", "caption": "a woman with a Tennis racket."},
]


def row_of(report, label):
    """Return the row of an object."""
    return report.data.set_index("object").loc[label]


@pytest.mark.parametrize(
    "objects", [["horse", "Horse"], ["tennis racket", "dog", "Tennis Racket"]], ids=["a word", "two words"]
)
def test_an_object_that_is_listed_in_two_spellings_is_refused(objects):
    """Its captions would be counted twice, in two rows that look like two objects."""
    with pytest.raises(AuditError, match=f"has twice: {objects[0]}, also as '{objects[-1]}'"):
        audit_cooc(CAPTIONS, objects)


def test_an_object_keeps_its_spelling_and_is_counted_without_it():
    report = audit_cooc(CAPTIONS, ["Horse", "TENNIS racket"])

    assert row_of(report, "Horse")["man"] == 1
    assert row_of(report, "TENNIS racket")["woman"] == 1


def test_an_object_in_capitals_has_the_published_values_too():
    report = audit_cooc(CAPTIONS, ["Skateboard"], model="Transformer")

    assert row_of(report, "Skateboard")["published_to_man"] == 0.96
