"""CLIP as visual classifier: planted objects are found, their probabilities are a softmax over the list."""

import math

import numpy as np
import pytest

from obygaze_models.report import records
from obygaze_studies.audit_common.embeddings import read_embeddings
from obygaze_studies.errors import AuditError
from obygaze_studies.gender_score.image_objects import audit_objects, needed_texts

OBJECTS = ("motorcycle", "kitchen", "umbrella", "tennis ball")
IMAGES = ("i0", "i1", "i2")


@pytest.fixture
def stores(tmp_path, save_vectors):
    """Texts along the axes; image k is mostly object k, and a little the next one."""
    texts = {f"t{index}": text for index, text in enumerate(needed_texts(OBJECTS))}
    vectors = np.eye(4)[:3] + 0.5 * np.eye(4)[1:]
    images = read_embeddings(save_vectors(tmp_path / "images", IMAGES, 7 * vectors))
    return images, read_embeddings(save_vectors(tmp_path / "texts", texts, np.eye(4), texts=texts))


def test_planted_objects_are_found_most_probable_first(stores):
    """Of objects that are equally improbable, the first of the list is the third. Two objects are enough."""
    rows = records(audit_objects(*stores, OBJECTS).data)
    assert [(row["image_id"], row["object"]) for row in rows] == [
        *(("i0", "motorcycle"), ("i0", "kitchen"), ("i0", "umbrella")),
        *(("i1", "kitchen"), ("i1", "umbrella"), ("i1", "motorcycle")),
        *(("i2", "umbrella"), ("i2", "tennis ball"), ("i2", "motorcycle")),
    ]
    first_of_i0, _, first_of_i1, *_ = records(audit_objects(*stores, OBJECTS[:2]).data)
    assert (first_of_i0["object"], first_of_i1["object"]) == OBJECTS[:2]


def test_probabilities_are_a_softmax_over_the_scaled_cosines(stores):
    """The first image is (2, 1, 0, 0) along the four texts, but for its length."""
    motorcycle, kitchen, *_ = records(audit_objects(*stores, OBJECTS, scale=10).data)
    cosines = np.array([2, 1, 0, 0]) / math.sqrt(5)
    probabilities = np.exp(10 * cosines) / np.exp(10 * cosines).sum()
    assert [motorcycle["p_c"], kitchen["p_c"]] == pytest.approx(probabilities[:2])


def test_improbable_objects_are_left_out_and_counted(stores):
    report = audit_objects(*stores, OBJECTS, scale=1, minimum=0.9)
    assert report.data.empty
    assert "3 images have no object with a probability of 0.9 or more" in report.notes


@pytest.mark.parametrize(
    ("objects", "message"),
    [
        ((*OBJECTS, "vase"), "a photo of a vase"),
        (OBJECTS[:1], "at least two"),
        ((*OBJECTS, "kitchen"), "kitchen"),
    ],
    ids=["an object without an embedding", "one object", "an object twice"],
)
def test_a_list_of_objects_that_cannot_be_told_apart_is_refused(stores, objects, message):
    """The store of texts has four objects, as "a photo of a kitchen": `OBJECTS`, of which kitchen is one."""
    images, texts = stores

    with pytest.raises(AuditError, match=message):
        audit_objects(images, texts, objects)


def test_images_of_another_space_than_the_texts_are_refused(stores, tmp_path, save_vectors):
    """Images and texts can be compared where one network embedded both, as the space of a store says."""
    _, texts = stores
    store = save_vectors(tmp_path / "other", ["a"], np.ones((1, 4)), space="another")
    images_of_another_space = read_embeddings(store)

    with pytest.raises(AuditError, match="another"):
        audit_objects(images_of_another_space, texts, OBJECTS)
