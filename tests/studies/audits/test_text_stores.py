"""From a list of texts to an audit: the text store carries its texts, and audits read them there."""

import numpy as np
import pytest

from obygaze_studies.audit_common.embeddings import read_stored_text_ids
from obygaze_studies.errors import AuditError
from tests.files import written

from .conftest import keep_vectors

TEXTS = {"t1": "a man", "t2": "a woman", "t3": "a dog"}


def sealed(folder, texts=TEXTS, **changes):
    return keep_vectors(folder / "texts", TEXTS, np.eye(3, 4), texts=texts, **changes)


def table(path, rows):
    return written(path, "text_id,text\n" + "".join(f"{name},{text}\n" for name, text in rows.items()))


def test_the_ids_of_texts_are_those_of_the_store(tmp_path):
    sealed(tmp_path, failed={"t3": "no token"})
    assert read_stored_text_ids(tmp_path / "texts") == {text: name for name, text in TEXTS.items()}


def test_a_table_may_say_it_too_and_chooses_among_equal_texts(tmp_path):
    sealed(tmp_path, TEXTS | {"t3": "a man"})
    with pytest.raises(AuditError, match=r"group toy.*'a man'"):
        read_stored_text_ids(tmp_path / "texts")
    chosen = table(tmp_path / "t.csv", {"t3": "a man", "t2": "a woman"})
    assert read_stored_text_ids(tmp_path / "texts", chosen) == {"a man": "t3", "a woman": "t2"}


def test_a_table_that_contradicts_the_store_is_refused(tmp_path):
    sealed(tmp_path)
    with pytest.raises(AuditError, match=r"t2.*'a girl'.*'a woman'"):
        read_stored_text_ids(tmp_path / "texts", table(tmp_path / "t.csv", {"t2": "a girl"}))


def test_a_store_without_texts_needs_a_table(tmp_path):
    sealed(tmp_path, None)
    with pytest.raises(AuditError, match="--text-items"):
        read_stored_text_ids(tmp_path / "texts")
    found = read_stored_text_ids(tmp_path / "texts", table(tmp_path / "t.csv", TEXTS))
    assert found == {text: name for name, text in TEXTS.items()}
