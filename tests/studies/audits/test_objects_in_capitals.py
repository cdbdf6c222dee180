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


def estimate_by_object(objects, **options):
    """Estimate genders by object, of no caption."""
    return by_object((), objects, **options)


@pytest.mark.parametrize("objects", TWO_SPELLINGS, ids=["a word", "two words"])
def test_the_audit_of_captions_refuses_an_object_that_is_listed_in_two_spellings(objects):
    """The first and the last object of the list differ in upper case alone, as horse and Horse.

    The captions of a horse would be counted twice, in two rows that look like two objects.
    """
    with pytest.raises(AuditError, match=f"has twice: {objects[0]}, also as '{objects[-1]}'"):
        audit_cooc(CAPTIONS, objects)


@pytest.mark.parametrize("objects", TWO_SPELLINGS, ids=["a word", "two words"])
@pytest.mark.parametrize(
    "audit", [needed_texts, estimate_by_object], ids=["the audit of images", "the audit of scores"]
)
def test_audits_of_images_and_of_scores_refuse_an_object_that_is_listed_in_two_spellings(audit, objects):
    """The first and the last object of the list differ in upper case alone, as horse and Horse.

    As two labels, the object would share its probability in an image with itself, and its scores would count
    twice.
    """
    with pytest.raises(AuditError, match=f"has twice: {objects[0]}, also as '{objects[-1]}'"):
        audit(objects)


def test_captions_with_an_object_are_counted_whatever_is_in_upper_case():
    """The captions are of a man on a "horse" and of a woman with a "Tennis racket".

    The rows of the objects keep the spelling of the list.
    """
    report = audit_cooc(CAPTIONS, ["Horse", "TENNIS racket"])

    assert row_of(report, "Horse")["man"] == 1
    assert row_of(report, "TENNIS racket")["woman"] == 1


def test_the_audit_of_captions_finds_the_published_ratio_of_an_object_in_capitals():
    """Of the captioner Transformer and a skateboard, the ratio to man .96 was published, in small letters."""
    report = audit_cooc(CAPTIONS, ["Skateboard"], model="Transformer")

    assert row_of(report, "Skateboard")["published_to_man"] == 0.96


def test_the_audit_of_scores_finds_the_published_ratio_of_an_object_in_capitals():
    """Of the captioner Transformer and a skateboard, the ratio to man .96 was published, in small letters.

    There is no caption here, and so no score of our own beside it.
    """
    (row,) = estimate_by_object(["Skateboard"], model="Transformer")

    assert row["published_to_man"] == 0.96
