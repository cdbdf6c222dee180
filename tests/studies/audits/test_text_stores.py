"""From a list of texts to an audit: the text store carries its texts, and audits read them there."""

import numpy as np
import pytest

from obygaze_studies.audit_common.embeddings import read_embeddings
from obygaze_studies.errors import AuditError

from .conftest import save_vectors_to

TEXTS = {"t1": "a man", "t2": "a woman", "t3": "a dog"}


def seal_store_of_texts(folder, texts=TEXTS, **changes):
    return save_vectors_to(folder / "texts", TEXTS, np.eye(3, 4), texts=texts, **changes)


def ids_of_texts(folder, table=None):
    """Return the id of each text of the store; `table` is a table of texts that is given beside it, by id."""
    id_of_text = {text: name for name, text in table.items()} if table else None
    return read_embeddings(folder / "texts").text_ids(id_of_text)


def test_the_ids_of_texts_are_those_of_the_store_which_a_table_may_not_contradict(tmp_path):
    seal_store_of_texts(tmp_path, failed={"t3": "no token"})
    assert ids_of_texts(tmp_path) == {text: name for name, text in TEXTS.items()}
    with pytest.raises(AuditError, match=r"t2.*'a girl'.*'a woman'"):
        ids_of_texts(tmp_path, {"t2": "a girl"})


def test_a_table_has_to_choose_which_of_two_equal_texts_is_used(tmp_path):
    """A store has the text "a man" twice, as t1 and as t3, whose embeddings might differ."""
    seal_store_of_texts(tmp_path, {"t1": "a man", "t2": "a woman", "t3": "a man"})

    with pytest.raises(AuditError, match=r"group toy.*'a man'"):
        ids_of_texts(tmp_path)

    ids = ids_of_texts(tmp_path, table={"t3": "a man", "t2": "a woman"})
    assert ids == {"a man": "t3", "a woman": "t2"}


def test_a_store_without_texts_needs_a_table(tmp_path):
    seal_store_of_texts(tmp_path, texts=None)
    with pytest.raises(AuditError, match="--text-items"):
        ids_of_texts(tmp_path)
    result = ids_of_texts(tmp_path, TEXTS)
    assert result == {text: name for name, text in TEXTS.items()}
