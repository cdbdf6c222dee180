"""Captions are counted without upper case, so that objects that differ in it alone are one object."""

import pytest

from obygaze_studies.errors import AuditError
from obygaze_studies.gender_score.cooc import audit_cooc
from obygaze_studies.gender_score.gender_audit import by_object
from obygaze_studies.gender_score.image_objects import needed_texts

TWO_SPELLINGS = [["horse", "Horse"], ["tennis racket", "dog", "Tennis Racket"]]

CAPTIONS = [
    {"caption_id": "a", "caption": "A man on a horse"},
    {"caption_id": "b", "caption": "a woman with a Tennis racket."},
]


def row_of(report, label):
    """Return the row of an object."""
    return report.data.set_index("object").loc[label]


@pytest.mark.parametrize("objects", TWO_SPELLINGS, ids=["a word", "two words"])
def test_an_object_that_is_listed_in_two_spellings_is_refused(objects):
    """Its captions would be counted twice, in two rows that look like two objects."""
    with pytest.raises(AuditError, match=f"has twice: {objects[0]}, also as '{objects[-1]}'"):
        audit_cooc(CAPTIONS, objects)


@pytest.mark.parametrize("objects", TWO_SPELLINGS, ids=["a word", "two words"])
@pytest.mark.parametrize("audit", [needed_texts, lambda objects: by_object((), objects)])
def test_audits_of_images_and_of_scores_refuse_it_as_that_of_captions_does(audit, objects):
    """As two labels it would share its probability with itself, and its scores would count twice."""
    with pytest.raises(AuditError, match=f"has twice: {objects[0]}, also as '{objects[-1]}'"):
        audit(objects)


def test_an_object_keeps_its_spelling_and_is_counted_without_it():
    report = audit_cooc(CAPTIONS, ["Horse", "TENNIS racket"])

    assert row_of(report, "Horse")["man"] == 1
    assert row_of(report, "TENNIS racket")["woman"] == 1


def test_an_object_in_capitals_has_the_published_values_too():
    report = audit_cooc(CAPTIONS, ["Skateboard"], model="Transformer")

    assert row_of(report, "Skateboard")["published_to_man"] == 0.96


def test_scores_of_an_object_in_capitals_stand_beside_the_published_ones_too():
    (row,) = by_object((), ["Skateboard"], model="Transformer")

    assert row["published_to_man"] == 0.96
