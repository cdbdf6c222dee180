"""Stores of texts: a row is a text, which the store carries; everything else is as with clips."""

import json

import h5py
import numpy as np
import pytest

from obygaze_features.errors import StoreError
from obygaze_features.exchange.diff import describe_differences, diff
from obygaze_features.exchange.export import export_anndata, export_hdf5
from obygaze_features.exchange.merge import merge
from obygaze_features.exchange.publish import pack
from obygaze_features.store import (
    ArraySpec,
    ClipFeatures,
    ClipResult,
    GroupSpec,
    PlannedClip,
    Stage,
    open_store,
    staging_path,
    verify,
)
from obygaze_features.store.growth import plan_growth
from obygaze_features.store.testing import toy_provenance
from tests.files import rows_of
from tests.store.toy_stores import seal_stage_of

TEXTS = {"b-02": "a woman,\nsmiling", "a-01": "a man", "é-03": "ein Mädchen", "c-04": "a man"}
SAMPLING = {"policy": "texts", "n": None}


def vector(text, width=3):
    return np.random.default_rng(len(text)).normal(size=width).astype(np.float32)


def make_stage(path, texts, failed=()):
    """Commit what is missing in a stage of texts, id -> text: their vectors of 3 numbers, or failures."""
    provenance = toy_provenance("toy", space="toy sha256:0", sampling=SAMPLING)
    pooled = ArraySpec("pooled", (3,), "float32")
    group = GroupSpec("toy", (pooled,), n_frames=1, provenance=provenance)
    no_movie = ""
    planned = [PlannedClip(name, no_movie, text=text) for name, text in texts.items()]
    stage = Stage.open(staging_path(path), planned, [group], {"name": "prompts"})
    results = []
    for name in stage.missing():
        if name in failed:
            results.append(ClipResult(name, "failed", "no token"))
        else:
            results.append(ClipResult(name, "ok", groups={"toy": features_of(texts[name])}))
    with stage.writer() as writer:
        writer.commit(results)
    return stage


def features_of(text):
    """Give a text its vector. A text is stored as one frame, at 0 s."""
    time_s = np.zeros(1)
    frame_number = np.zeros(1, np.int64)
    return ClipFeatures(time_s, frame_number, {"pooled": vector(text)})


def make_sealed_store(path, texts=TEXTS, failed=(), **options):
    make_stage(path, texts, failed)
    return seal_stage_of(path, licence="CC0-1.0", **options)


@pytest.fixture
def store_of_four_texts(tmp_path):
    """A store of four texts; that of c-04 failed."""
    return make_sealed_store(tmp_path / "texts", failed=["c-04"])


def test_a_store_of_texts_carries_them_in_the_order_of_its_rows(store_of_four_texts):
    """Rows are sorted by id. The text of c-04 failed, and has a row and its text all the same."""
    store = open_store(store_of_four_texts)

    group = store["toy"]
    assert group.clip_ids == ("a-01", "b-02", "c-04", "é-03")
    assert group.text == ("a man", "a woman,\nsmiling", "a man", "ein Mädchen")
    assert [clip.text for clip in store.clips] == list(group.text)


def test_a_store_of_texts_has_a_vector_of_each(store_of_four_texts):
    """Each text counts as one frame. Texts need version 1.1 of the format."""
    store = open_store(store_of_four_texts)

    vector_of_b_02 = store["toy"].read("b-02", "pooled")
    assert np.array_equal(vector_of_b_02, vector("a woman,\nsmiling"))
    assert store["toy"].n_frames == 1
    assert store.attributes["spec_version"] == "1.1"
    assert verify(store_of_four_texts, "full").ok


def test_the_table_and_the_card_of_a_store_of_texts_have_the_texts(store_of_four_texts):
    """The card for dataset search engines (croissant.json) describes the column `text` of the table."""
    table = rows_of(store_of_four_texts / "data/clips.csv")
    assert {row["clip"]: row["text"] for row in table} == TEXTS

    card = json.loads((store_of_four_texts / "croissant.json").read_bytes())
    fields = card["recordSet"][0]["field"]
    assert fields[-1]["name"] == "text"


def test_the_card_of_a_store_of_texts_speaks_of_texts_and_not_of_videos(tmp_path):
    """The card is the README.md of a store, here of four texts; format 1.1 is the first with texts."""
    store = make_sealed_store(tmp_path / "texts")

    card = (store / "README.md").read_text(encoding="utf-8")

    assert "format 1.1: 4 texts" in card
    assert "text-features" in card
    assert "video-features" not in card
    assert "Decoded by" not in card


@pytest.mark.parametrize("odd", ["x\ry", "\rz", 'say "a\r\nb"', "a,b\nc", " a ", "a\u2028\tb", "'"])
def test_texts_with_line_breaks_quotes_and_spaces_are_read_as_they_were_sealed(odd, tmp_path):
    """A store has two texts, one of which has a line break, a quote, a comma, or blanks at its ends.

    In the table clips.csv such signs have a meaning, and must be quoted. The text comes back as it was, from
    the store and from the table.
    """
    path = make_sealed_store(tmp_path / "texts", {"odd": odd, "plain": "a man"})

    assert open_store(path)["toy"].text == (odd, "a man")
    assert verify(path, "full").ok
    texts_of_table = [row["text"] for row in rows_of(path / "data/clips.csv")]
    assert texts_of_table == [odd, "a man"]


def test_a_merged_or_packed_store_keeps_its_texts(tmp_path):
    """Of four texts, the first store has two, and the second has the last three: they share one."""
    ids_and_texts = list(TEXTS.items())
    whole = open_store(make_sealed_store(tmp_path / "whole"))
    first = open_store(make_sealed_store(tmp_path / "1", dict(ids_and_texts[:2])))
    second = open_store(make_sealed_store(tmp_path / "2", dict(ids_and_texts[1:])))

    merged = open_store(merge([first, second], tmp_path / "merged"))
    assert merged["toy"].text == whole["toy"].text
    assert verify(merged.path, "full").ok

    packed = open_store(pack(whole.files, tmp_path / "whole.zip"))
    assert packed["toy"].text == whole["toy"].text
    assert diff(whole, packed).equal


def test_a_store_of_texts_grows_by_more_texts_but_not_by_one_that_changed(tmp_path):
    """The store has one text, a-01, which is one of the four that are planned.

    The same id with another text would make old features those of the new text.
    """
    first = open_store(make_sealed_store(tmp_path / "1", {"a-01": "a man"}))
    stage = make_stage(tmp_path / "whole", TEXTS)

    planned_clips, *_ = plan_growth(first, "1.1.0", stage.clips, stage.groups, stage.corpus)
    assert tuple(planned_clips) == stage.clips

    no_movie = ""
    changed = [PlannedClip("a-01", no_movie, text="A man")]
    with pytest.raises(StoreError, match="clip a-01"):
        plan_growth(first, "1.1.0", changed, stage.groups, stage.corpus)


def test_stores_whose_texts_differ_are_not_merged_and_diff_names_the_rows(tmp_path):
    """Row a-01 has another text in the second store, so its features cannot be those of both."""
    first = open_store(make_sealed_store(tmp_path / "1"))
    second = open_store(make_sealed_store(tmp_path / "2", TEXTS | {"a-01": "a MAN"}))

    difference = diff(first, second)
    assert difference.clips["text"] == ("a-01",)
    assert "clips: text differs for 1: a-01" in describe_differences(difference, "1", "2")

    with pytest.raises(StoreError, match="clip a-01"):
        merge([first, second], tmp_path / "merged")


def test_exports_carry_the_texts(tmp_path):
    """In HDF5 each row is a group with its text, in AnnData a column of the table `obs` has all of them."""
    store = open_store(make_sealed_store(tmp_path / "texts"))

    export_hdf5(store, "toy", tmp_path / "t.h5")
    with h5py.File(tmp_path / "t.h5") as file:
        assert file["b-02"].attrs["text"] == "a woman,\nsmiling"

    export_anndata(store, "toy", tmp_path / "t.h5ad")
    with h5py.File(tmp_path / "t.h5ad") as file:
        assert file["obs/text"].asstr()[:].tolist() == list(store["toy"].text)


def test_a_text_in_the_table_that_differs_from_the_one_in_the_array_is_found(tmp_path):
    """A store keeps each text twice: in its table of clips and in an array beside the features."""
    path = make_sealed_store(tmp_path / "texts")
    table = path / "data/clips.csv"
    table.write_text(table.read_text(encoding="utf-8").replace("Mädchen", "Junge"), encoding="utf-8")

    problem_of_file = {problem.file: problem.what for problem in verify(path, "full").problems}
    assert "clip é-03: 'ein Mädchen', but 'ein Junge'" in problem_of_file["data/features.zarr/toy/text"]
