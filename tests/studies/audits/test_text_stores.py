"""From a list of texts to an audit: the text store carries its texts, and audits read them there."""

import json

import numpy as np
import pytest

from obygaze_features.store import open_store
from obygaze_features.store.testing import seal_arrays
from obygaze_studies.audit_common.embeddings import read_stored_text_ids
from obygaze_studies.errors import AuditError

TEXTS = {"t1": "a man", "t2": "a woman", "t3": "a dog"}


def keep(path, texts=TEXTS, **changes):
    vectors = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    return seal_arrays(path, dict.fromkeys(TEXTS, ""), {"toy": {"pooled": vectors}}, texts=texts, **changes)


def table(path, rows):
    path.write_text("text_id,text\n" + "".join(f"{name},{text}\n" for name, text in rows.items()))
    return path


def test_the_ids_of_texts_are_those_of_the_store(tmp_path):
    keep(tmp_path / "texts", failed={"t3": "no token"})
    assert read_stored_text_ids(tmp_path / "texts") == {text: name for name, text in TEXTS.items()}


def test_a_table_may_say_it_too_and_chooses_among_equal_texts(tmp_path):
    keep(tmp_path / "texts", TEXTS | {"t3": "a man"})
    with pytest.raises(AuditError, match=r"group toy.*'a man'"):
        read_stored_text_ids(tmp_path / "texts")
    chosen = table(tmp_path / "t.csv", {"t3": "a man", "t2": "a woman"})
    assert read_stored_text_ids(tmp_path / "texts", None, chosen) == {"a man": "t3", "a woman": "t2"}


def test_a_table_that_contradicts_the_store_is_refused(tmp_path):
    keep(tmp_path / "texts")
    with pytest.raises(AuditError, match=r"t2.*'a girl'.*'a woman'"):
        read_stored_text_ids(tmp_path / "texts", None, table(tmp_path / "t.csv", {"t2": "a girl"}))


def test_a_store_without_texts_needs_a_table(tmp_path):
    keep(tmp_path / "texts", None)
    with pytest.raises(AuditError, match="--text-items"):
        read_stored_text_ids(tmp_path / "texts")
    found = read_stored_text_ids(tmp_path / "texts", "toy", table(tmp_path / "t.csv", TEXTS))
    assert found == {text: name for name, text in TEXTS.items()}


@pytest.fixture(autouse=True)
def here(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    testing = pytest.importorskip("tests.tiny_checkpoints")
    folder = tmp_path_factory.mktemp("weights")
    return {name: testing.tiny_text_checkpoint(name, folder / name) for name in ("clip", "sentence")}


def test_prompts_to_a_text_store_to_association_tests(obygaze, weights, tmp_path):
    assert obygaze("audit", "eat", "prompts", "--out", "prompts.csv") == 0
    how = ("--backbone", "clip-text", "--weights", weights["clip"], "--device", "cpu")
    assert obygaze("extract", "prompts.csv", "prompts", *how) == 0
    store = open_store(tmp_path / "prompts")
    space = store["clip-text"].provenance["space"]
    names = [
        f"{i}_{e}{n}_{worn}_1" for i in (1, 2) for e in ("AN", "SA", "HA") for n in (1, 2) for worn in "NO"
    ]
    names = [name.replace("_N_", "_NO_") for name in names]
    vectors = np.random.default_rng(0).normal(size=(len(names), 24)).astype(np.float32)
    seal_arrays(tmp_path / "sobem", dict.fromkeys(names, ""), {"clip": {"pooled": vectors}}, space=space)
    stores = ("--images", "sobem", "--texts", "prompts")
    assert obygaze("audit", "eat", *stores, "--out", "eat.csv") == 0
    assert obygaze("audit", "eat", *stores, "--text-items", "prompts.csv", "--out", "again.csv") == 0
    assert (tmp_path / "eat.csv").read_bytes() == (tmp_path / "again.csv").read_bytes()
    assert json.loads((tmp_path / "eat.json").read_bytes())["record"]["space"] == space
