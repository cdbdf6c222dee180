"""CLIP as visual classifier: planted objects are found, their probabilities are a softmax over the list."""

import numpy as np
import pytest

from obygaze_models.report import records
from obygaze_studies.audit_common.embeddings import read_embeddings
from obygaze_studies.errors import AuditError
from obygaze_studies.gender_score.image_objects import audit_objects, needed_texts

OBJECTS = ("motorcycle", "kitchen", "umbrella", "tennis ball")
IMAGES = ("i0", "i1", "i2")


@pytest.fixture
def stores(tmp_path, keep):
    """Texts along the axes; image k is mostly object k, and a little the next one."""
    texts = {f"t{place}": text for place, text in enumerate(needed_texts(OBJECTS))}
    vectors = np.eye(4)[:3] + 0.5 * np.eye(4)[1:]
    images = read_embeddings(keep(tmp_path / "images", IMAGES, 7 * vectors))
    return images, read_embeddings(keep(tmp_path / "texts", texts, np.eye(4), texts=texts))


def test_planted_objects_are_found_most_probable_first(stores):
    rows = records(audit_objects(*stores, OBJECTS).data)
    result = [(row["image_id"], row["object"]) for row in rows]
    others = "umbrella", "motorcycle", "motorcycle"  # equal ones come in the order of the list
    expected = [(OBJECTS[place], OBJECTS[place + 1], others[place]) for place in range(3)]
    assert result == [(name, each) for name, three in zip(IMAGES, expected, strict=True) for each in three]
    near, far = np.array([2, 1]) / 5**0.5
    mass = np.exp(10 * np.array([near, far, 0, 0]))
    rows = records(audit_objects(*stores, OBJECTS, scale=10).data)
    assert [row["p_c"] for row in rows[:2]] == pytest.approx(mass[:2] / mass.sum())


def test_two_objects_are_enough_to_tell_apart(stores):
    rows = records(audit_objects(*stores, OBJECTS[:2]).data)
    assert [row["object"] for row in rows[:3:2]] == list(OBJECTS[:2])


def test_what_is_improbable_is_left_out_and_counted(stores):
    report = audit_objects(*stores, OBJECTS, scale=1, least=0.9)
    assert report.data.empty
    assert "3 images have no object with a probability of 0.9 or more" in report.notes


def test_mistakes_are_named(stores, tmp_path, keep):
    images, texts = stores
    embeddings = read_embeddings(keep(tmp_path / "other", ["a"], np.ones((1, 4)), space="another"))
    for given, objects, place in (
        (images, (*OBJECTS, "vase"), "a photo of a vase"),
        (images, OBJECTS[:1], "at least two"),
        (images, (*OBJECTS, "kitchen"), "kitchen"),
        (embeddings, OBJECTS, "another"),
    ):
        with pytest.raises(AuditError, match=place):
            audit_objects(given, texts, objects)
