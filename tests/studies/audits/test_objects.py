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
    """Embeddings of three images, and of the texts of four objects, which lie along the four axes.

    Image k is mostly object k, and a little the next one: i0 is (2, 1, 0, 0) but for its length.
    """
    texts = {f"t{index}": text for index, text in enumerate(needed_texts(OBJECTS))}
    vectors = np.eye(4)[:3] + 0.5 * np.eye(4)[1:]
    images = read_embeddings(save_vectors(tmp_path / "images", IMAGES, 7 * vectors))
    return images, read_embeddings(save_vectors(tmp_path / "texts", texts, np.eye(4), texts=texts))


def objects_of_images(report):
    """Return the objects that were found in each image, in the order of their rows."""
    objects = {}
    for row in records(report.data):
        objects.setdefault(row["image_id"], []).append(row["object"])
    return objects


def test_the_three_most_probable_objects_of_an_image_are_listed_in_their_order(stores):
    """Each image has two planted objects: i0 a motorcycle, and less so a kitchen, i1 a kitchen and so on.

    Two other objects of the list are equally improbable: the one that stands first there is listed, the
    motorcycle if it is one of them.
    """
    images, texts = stores

    report = audit_objects(images, texts, ("motorcycle", "kitchen", "umbrella", "tennis ball"))

    assert objects_of_images(report) == {
        "i0": ["motorcycle", "kitchen", "umbrella"],
        "i1": ["kitchen", "umbrella", "motorcycle"],
        "i2": ["umbrella", "tennis ball", "motorcycle"],
    }


def test_a_list_of_two_objects_is_enough(stores):
    """Of the two, the motorcycle is planted in image i0, and the kitchen in i1."""
    images, texts = stores

    objects = objects_of_images(audit_objects(images, texts, ("motorcycle", "kitchen")))

    assert objects["i0"][0] == "motorcycle"
    assert objects["i1"][0] == "kitchen"


def test_probabilities_are_a_softmax_over_the_scaled_cosines(stores):
    """The vectors of four texts are axes, and that of the first image is (2, 1, 0, 0), made as long as 1.

    So its cosines with the texts, of a motorcycle, a kitchen and two more, are 2, 1, 0 and 0 over the root of
    5.
    """
    motorcycle, kitchen, *_ = records(audit_objects(*stores, OBJECTS, scale=10).data)
    cosines = np.array([2, 1, 0, 0]) / math.sqrt(5)
    probabilities = np.exp(10 * cosines) / np.exp(10 * cosines).sum()
    assert [motorcycle["p_c"], kitchen["p_c"]] == pytest.approx(probabilities[:2])


def test_images_whose_objects_are_all_less_probable_than_the_minimum_are_counted(stores):
    """Probabilities are a softmax over cosines; with the scale 1, those of four objects are nearly equal.

    So none of them reaches .9 in any of the three images.
    """
    images, texts = stores

    report = audit_objects(images, texts, OBJECTS, scale=1, minimum=0.9)

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
