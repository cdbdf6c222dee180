"""From a list of texts to an audit: the text store carries its texts, and audits read them there."""

import numpy as np
import pytest

from obygaze_studies.audit_common.embeddings import read_embeddings
from obygaze_studies.errors import AuditError

from .conftest import save_vectors_to

TEXTS = {"t1": "a man", "t2": "a woman", "t3": "a dog"}


def seal_store_of_texts(folder, texts=TEXTS, **changes):
    """Seal a store of embeddings of t1, t2 and t3, with their texts, or without any if `texts` is None."""
    return save_vectors_to(folder / "texts", TEXTS, np.eye(3, 4), texts=texts, **changes)


def ids_of_texts(folder, table=None):
    """Return the id of each text of the store; `table` is a table of texts that is given beside it, by id."""
    id_of_text = {text: name for name, text in table.items()} if table else None
    return read_embeddings(folder / "texts").text_ids(id_of_text)


def test_the_ids_of_texts_are_those_of_the_store_which_embedded_them(tmp_path):
    """A text that could not be embedded, here t3, has its id too: an audit that needs it names its reason."""
    seal_store_of_texts(tmp_path, failed={"t3": "no token"})

    assert ids_of_texts(tmp_path) == {"a man": "t1", "a woman": "t2", "a dog": "t3"}


def test_a_table_that_gives_an_id_another_text_than_the_store_is_refused(tmp_path):
    """In the store t2 is "a woman", and in the table "a girl"; both texts are named."""
    seal_store_of_texts(tmp_path)

    with pytest.raises(AuditError, match=r"t2.*'a girl'.*'a woman'"):
        ids_of_texts(tmp_path, table={"t2": "a girl"})


def test_a_table_has_to_choose_which_of_two_equal_texts_is_used(tmp_path):
    """A store has the text "a man" twice, as t1 and as t3, whose embeddings might differ."""
    seal_store_of_texts(tmp_path, {"t1": "a man", "t2": "a woman", "t3": "a man"})

    with pytest.raises(AuditError, match=r"group toy.*'a man'"):
        ids_of_texts(tmp_path)

    ids = ids_of_texts(tmp_path, table={"t3": "a man", "t2": "a woman"})
    assert ids == {"a man": "t3", "a woman": "t2"}


def test_a_store_that_does_not_know_its_texts_needs_a_table_of_them(tmp_path):
    """The store has embeddings with ids alone. A table (`--text-items`) says which text an id stands for."""
    seal_store_of_texts(tmp_path, texts=None)

    with pytest.raises(AuditError, match="--text-items"):
        ids_of_texts(tmp_path)

    ids = ids_of_texts(tmp_path, table={"t1": "a man", "t2": "a woman", "t3": "a dog"})
    assert ids == {"a man": "t1", "a woman": "t2", "a dog": "t3"}
