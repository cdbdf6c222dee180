"""Captions from a table, or from the texts of a store: the same words are counted."""

import numpy as np
import pytest

from obygaze_features.store import open_store
from obygaze_studies.caption_words import read_captions
from obygaze_studies.errors import AuditError
from tests.files import written

TEXTS = {"c1": "a sad, sad woman", "c2": "a woman,\nfrowning", "c3": "a man", "c4": "sad"}


@pytest.fixture(scope="module")
def store(tmp_path_factory, save_vectors):
    return save_vectors(tmp_path_factory.mktemp("texts") / "captions", TEXTS, np.eye(len(TEXTS)), texts=TEXTS)


@pytest.fixture
def write_table(tmp_path):
    """Return a function that writes a table of captions, captions.csv."""
    return lambda text: written(tmp_path / "captions.csv", text)


def test_a_store_gives_the_captions_that_the_table_names(store, write_table):
    """The store has the texts c1 to c4. A table says of which image a caption is, and does not name c4."""
    table = write_table("caption_id,image_id\nc1,i1\nc2,i1\nc3,i2\n")

    captions = read_captions(table, store)

    assert captions.pairs == (("i1", TEXTS["c1"]), ("i1", TEXTS["c2"]), ("i2", TEXTS["c3"]))
    assert captions.n_unnamed == 1
    assert captions.fingerprint == open_store(store).fingerprint


def test_a_table_may_hold_the_captions_themselves(write_table):
    """Two captions of one image are equal, and both count. No store is involved, and so no fingerprint."""
    captions = read_captions(write_table("image_id,caption\ni1,a\ni1,a\n"))

    assert captions.pairs == (("i1", "a"), ("i1", "a"))
    assert captions.n_unnamed == 0
    assert captions.fingerprint is None


@pytest.mark.parametrize(
    ("text", "of_store", "message"),
    [
        ("caption_id,image_id,caption\nc1,i1,a\nc1,i2,b\n", False, "caption_id c1"),
        ("caption_id,image_id\nc1,i1\nc1,i2\n", True, "caption_id c1"),
        ("caption_id,image_id\nc9,i1\n", True, "caption_id c9 of image i1"),
    ],
    ids=["twice in a table of captions", "twice in a table of a store", "not in the store"],
)
def test_a_caption_that_is_missing_or_listed_twice_is_named(store, write_table, text, of_store, message):
    """A table has the captions themselves, or, `of_store`, names texts of a store, which are c1 to c4."""
    table = write_table(text)

    with pytest.raises(AuditError, match=rf"captions\.csv.*{message}"):
        read_captions(table, store if of_store else None)


@pytest.mark.parametrize(
    "rows", ["", ",\n", ",\n,\n"], ids=["none", "one of empty cells", "two of empty cells"]
)
def test_a_table_without_a_caption_is_refused(write_table, rows):
    with pytest.raises(AuditError, match=r"captions\.csv has a header but no row"):
        read_captions(write_table(f"image_id,caption\n{rows}"))


def test_a_store_whose_features_are_not_of_texts_is_refused_as_a_store_of_captions(
    save_vectors, write_table, tmp_path
):
    """The table names the caption c1, whose text should be in the store.

    The store has features of a clip c1 in its group `toy`, and no text. The refusal names the group.
    """
    store_of_clips = save_vectors(tmp_path / "clips", ["c1"], [[1.0, 0.0]])
    table = write_table("caption_id,image_id\nc1,i1\n")

    with pytest.raises(AuditError, match="group toy"):
        read_captions(table, store_of_clips)
