"""From a list of texts to an audit: the text store carries its texts, and audits read them there."""

import numpy as np
import pytest

from obygaze_studies.audit_common.embeddings import read_embeddings
from obygaze_studies.errors import AuditError

from .conftest import keep_vectors

TEXTS = {"t1": "a man", "t2": "a woman", "t3": "a dog"}


def sealed(folder, texts=TEXTS, **changes):
    return keep_vectors(folder / "texts", TEXTS, np.eye(3, 4), texts=texts, **changes)


def ids(folder, listed=None):
    return read_embeddings(folder / "texts").text_ids(
        listed and {text: name for name, text in listed.items()}
    )


def test_the_ids_of_texts_are_those_of_the_store(tmp_path):
    sealed(tmp_path, failed={"t3": "no token"})
    assert ids(tmp_path) == {text: name for name, text in TEXTS.items()}


def test_a_table_may_say_it_too_and_chooses_among_equal_texts(tmp_path):
    sealed(tmp_path, TEXTS | {"t3": "a man"})
    with pytest.raises(AuditError, match=r"group toy.*'a man'"):
        ids(tmp_path)
    assert ids(tmp_path, {"t3": "a man", "t2": "a woman"}) == {"a man": "t3", "a woman": "t2"}


def test_a_table_that_contradicts_the_store_is_refused(tmp_path):
    sealed(tmp_path)
    with pytest.raises(AuditError, match=r"t2.*'a girl'.*'a woman'"):
        ids(tmp_path, {"t2": "a girl"})


def test_a_store_without_texts_needs_a_table(tmp_path):
    sealed(tmp_path, None)
    with pytest.raises(AuditError, match="--text-items"):
        ids(tmp_path)
    result = ids(tmp_path, TEXTS)
    assert result == {text: name for name, text in TEXTS.items()}
