"""docs/store-format.md is true: its examples pass the checks of stores, its numbers are the code's."""

import json
import re
from pathlib import Path

import pytest

from obygaze_features.store import SPEC_VERSION
from obygaze_features.store.arrays import array_layout
from obygaze_features.store.format import ARRAYS, ATTRIBUTE, GROUP_STATUSES, block_rows
from obygaze_features.store.journal import SHA256_HEX, read_journals
from obygaze_features.store.provenance import validate_corpus, validate_licence, validate_provenance
from obygaze_features.store.records import COLUMNS
from obygaze_features.store.store import check_version

DOCUMENT = (Path(__file__).parents[2] / "docs" / "store-format.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```json (\w+)\n(.*?)\n```", DOCUMENT, flags=re.DOTALL)


def check_array(text):
    found = json.loads(text)
    assert found == array_layout("frames", tuple(found["shape"]), found["data_type"], ARRAYS["frames"].dims)


def check_attributes(text, tmp_path):
    found = json.loads(text)
    node = tmp_path / "data/features.zarr"
    node.mkdir(parents=True)
    (node / "zarr.json").write_text(json.dumps({"attributes": {ATTRIBUTE: found}}), encoding="utf-8")
    assert check_version(tmp_path) == found
    validate_corpus(found["corpus"])
    validate_licence(found["licence"])


@pytest.mark.parametrize(("kind", "text"), BLOCKS, ids=[kind for kind, _ in BLOCKS])
def test_every_json_block_of_the_document_is_valid(kind, text, tmp_path):
    if kind == "array":
        check_array(text)
    elif kind == "attributes":
        check_attributes(text, tmp_path)
    elif kind == "provenance":
        assert validate_provenance(json.loads(text), sealed=True) == json.loads(text)
    else:
        assert kind == "journal"
        (tmp_path / "0001.jsonl").write_text(f"{text}\n", encoding="utf-8")
        n_arrays = max(len(row.get("sha256", "")) for row in json.loads(text)["entry"]["rows"]) // SHA256_HEX
        (line,), damage = read_journals(tmp_path, n_arrays)
        assert line.rows
        assert damage == []


def test_no_json_block_escapes_the_check():
    assert len(BLOCKS) == DOCUMENT.count("```json") == 4


def test_the_table_of_arrays_is_the_one_of_the_code():
    rows = re.findall(
        r"^\| `(\w+)` \| ([\w, ]+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", DOCUMENT, flags=re.MULTILINE
    )
    assert [name for name, *_ in rows] == list(ARRAYS)
    for name, dimensions, types, chunk, fill in rows:
        assert tuple(dimensions.strip().split(", ")) == ARRAYS[name].dims
        assert tuple(re.findall(r"string|uint8|float\d+|int64", types)) == ARRAYS[name].dtypes
        assert int(re.findall(r"\d+", chunk)[-1]) == block_rows(name, 10**6)
        assert fill.strip() == json.dumps(ARRAYS[name].fill)


def test_words_and_columns_are_those_of_the_code():
    assert f"version {SPEC_VERSION}" in DOCUMENT.splitlines()[0]
    assert ", ".join(f"{code} {status}" for code, status in enumerate(GROUP_STATUSES)) in DOCUMENT
    section = DOCUMENT.split("### data/clips.csv")[1].split("###")[0]
    named = [name for name in re.findall(r"`(\w+)`", section) if name in COLUMNS]
    assert tuple(named[: len(COLUMNS)]) == COLUMNS
