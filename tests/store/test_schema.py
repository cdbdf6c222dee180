"""docs/store-format.md and its schema are true: of every store there was, of the code, of each other."""

import copy
import itertools
import json
import re
from pathlib import Path
from typing import NamedTuple

import jsonschema
import numpy as np
import pytest

from obygaze_features.errors import StoreError
from obygaze_features.exchange.import_features import Declared, import_features
from obygaze_features.exchange.import_items import ImportItem
from obygaze_features.exchange.merge import merge
from obygaze_features.store import open_store, validate_provenance
from obygaze_features.store.arrays import array_layout, without_empty_fields
from obygaze_features.store.format import ARRAYS, ATTRIBUTE, RAGGED_ARRAYS, block_rows
from obygaze_features.store.journal import SHA256_HEX, read_journals
from obygaze_features.store.provenance import validate_corpus, validate_licence
from obygaze_features.store.records import COLUMNS
from obygaze_features.store.store import read_attributes
from obygaze_features.store.testing import seal_arrays
from tests.files import rows_of

from .toy_stores import CORPUS, PlannedClip, group, make_sealed_store, provenance, ragged_group

DOCS = Path(__file__).parents[2] / "docs"
FROZEN = Path(__file__).parent / "frozen"
SCHEMA = json.loads((DOCS / "store-format.schema.json").read_text(encoding="utf-8"))
PAGE = (DOCS / "store-format.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```json (\w+)\n(.*?)\n```", PAGE, flags=re.DOTALL)


def check_against_schema(kind, document):
    jsonschema.Draft202012Validator({"$ref": f"#/$defs/{kind}", "$defs": SCHEMA["$defs"]}).validate(document)


def check_store(path):
    root = json.loads((path / "data/features.zarr/zarr.json").read_bytes())
    check_against_schema("attributes", root["attributes"]["obygaze"])
    for node in (path / "data/features.zarr").glob("*/zarr.json"):
        check_against_schema("provenance", json.loads(node.read_bytes())["attributes"]["provenance"])
    arrays = list((path / "data/features.zarr").glob("*/*/zarr.json"))
    assert {node.parent.name for node in arrays} <= ARRAYS.keys()
    for node in arrays:
        check_against_schema("array", json.loads(node.read_bytes()))
    lines = rows_of(path / "data/clips.csv")
    assert len(lines) == len(open_store(path).clips)
    for line in lines:
        check_against_schema("clip", line)


def test_the_schema_is_valid_and_lists_the_columns_and_arrays_of_the_code():
    """The schema of the format is docs/store-format.schema.json.

    Of some arrays it has two kinds: that of groups with as many frames of each clip, and that of ragged ones.
    """
    jsonschema.Draft202012Validator.check_schema(SCHEMA)

    columns_of_clips = SCHEMA["$defs"]["clip"]["required"]
    assert columns_of_clips == list(COLUMNS)

    kinds_of_arrays = [kind["title"] for kind in SCHEMA["$defs"]["array"]["anyOf"]]
    ragged_kinds = [f"{name} of a ragged group" for name in RAGGED_ARRAYS]
    assert kinds_of_arrays == [*ARRAYS, *ragged_kinds]


def test_frozen_stores_of_every_format_version_obey_the_schema():
    """The schema describes all versions. Stages have a layout, of which 3 and 4 can still be read."""
    stores = [path for path in FROZEN.iterdir() if (path / "bagit.txt").exists()]
    assert stores
    for path in stores:
        check_store(path)

    for journal in FROZEN.glob("layout-[34].staging/journal/*.jsonl"):
        for line in journal.read_bytes().splitlines():
            check_against_schema("journal", json.loads(line))


def test_a_store_and_its_journal_that_are_written_today_obey_the_schema(tmp_path):
    """The store has a group of all arrays, one of an untrained network's frames, and one of ragged frames."""
    groups = [group(), group("b", ("frames",), untrained=True), ragged_group("c")]
    store = make_sealed_store(tmp_path, 20, groups)

    check_store(store)
    for journal in (tmp_path / "toy.staging/journal").iterdir():
        for line in journal.read_bytes().splitlines():
            check_against_schema("journal", json.loads(line))


def test_a_merged_store_obeys_the_schema(tmp_path):
    """Of two stores of a clip each, one has a clip that failed, whose row of the table has empty cells.

    `check_store` compares the documents and the table of their merged store with the schema of the format.
    """
    vectors = np.ones((1, 4), np.float32)
    whole = seal_arrays(tmp_path / "a", {"a": "m"}, {"toy": {"pooled": vectors}})
    reason_of_failed_clip = {"b": "no such file"}
    of_a_failed_clip = seal_arrays(
        tmp_path / "b", {"b": "m"}, {"toy": {"pooled": vectors}}, failed=reason_of_failed_clip
    )

    merged = merge([open_store(whole), open_store(of_a_failed_clip)], tmp_path / "merged")

    check_store(merged)


def test_an_imported_store_obeys_the_schema(tmp_path):
    """One vector of a clip is imported from a file a.npy, as pooled features of a group "lab".

    Nothing was declared of how it was made, so that most fields of its provenance are unknown. `check_store`
    compares the documents and the table of the store with the schema of the format.
    """
    unnamed_array = {"": np.ones((1, 4), np.float32)}
    items = {"a": ImportItem("a.npy", lambda: unnamed_array)}
    declared = Declared(backbone="lab", array="pooled", provenance={})
    about = {"corpus": {"name": "Toy"}, "licence": "MIT"}

    imported = import_features(items, [PlannedClip("a", "m")], declared, tmp_path / "in", **about)

    check_store(imported)


FIELDS_OF_SEALING = {"storage": {"pooled": "float32"}, "source": CORPUS}
VALID_PROVENANCE = {**provenance(), **FIELDS_OF_SEALING}
FIELDS = [(name,) for name in VALID_PROVENANCE if name not in FIELDS_OF_SEALING]
for section in ("hub", "preset", "sampling", "decoder", "compute"):
    FIELDS += [(section, name) for name in VALID_PROVENANCE[section]]
REMOVED = object()
"""Stands for a field that is not there."""
ODD_VALUES = (
    None,
    "",
    " ",
    "text",
    0,
    1,
    -1,
    1.5,
    True,
    False,
    [],
    {},
    ["a"],
    {"a": "1"},
    {"a": ""},
    "0" * 40,
    "0" * 64,
    "MIT OR",
)


def with_field(provenance, field, value):
    """Copy a provenance with another value of a field, or of a field in a section."""
    changed = copy.deepcopy(provenance)
    section = changed if len(field) == 1 else changed[field[0]]
    name = field[-1]
    if value is REMOVED:
        del section[name]
    else:
        section[name] = value
    return changed


def is_accepted_by_code(document):
    try:
        validate_provenance(document, sealed=True)
    except StoreError:
        return False
    return True


@pytest.mark.parametrize("imported", [False, True], ids=["extracted", "imported"])
def test_the_schema_and_the_code_agree_on_every_field_of_a_provenance(imported):
    """The JSON schema of the format and our code must accept the same provenances.

    In a valid one each field in turn gets each of 18 odd values, or is removed. Of imported features more
    fields may be null.
    """
    schema = jsonschema.Draft202012Validator({"$ref": "#/$defs/provenance", "$defs": SCHEMA["$defs"]})
    valid = VALID_PROVENANCE | ({"imported": True} if imported else {})

    n_accepted = 0
    for field, odd_value in itertools.product(FIELDS, (*ODD_VALUES, REMOVED)):
        document = with_field(valid, field, odd_value)
        accepted = is_accepted_by_code(document)
        n_accepted += accepted
        assert schema.is_valid(document) == accepted, (field, odd_value)

    assert n_accepted > 50  # so that the two do not agree in refusing everything


def blocks_of(kind):
    """The JSON blocks of one kind in docs/store-format.md."""
    return [text for kind_of_block, text in BLOCKS if kind_of_block == kind]


@pytest.mark.parametrize(("kind", "text"), BLOCKS, ids=[kind for kind, _ in BLOCKS])
def test_every_json_block_in_store_format_obeys_the_schema(kind, text):
    """A block is marked in docs/store-format.md with the kind of document that it shows."""
    check_against_schema(kind, json.loads(text))
    assert kind in {"array", "attributes", "provenance", "journal"}  # each has a test below


@pytest.mark.parametrize("text", blocks_of("array"))
def test_the_array_in_store_format_is_the_one_that_is_written(text):
    """docs/store-format.md shows the metadata of an array `frames`. We write the same for such an array."""
    document = json.loads(text)

    layout = array_layout("frames", tuple(document["shape"]), document["data_type"], ARRAYS["frames"].dims)

    assert without_empty_fields(layout) == document


@pytest.mark.parametrize("text", blocks_of("attributes"))
def test_the_attributes_in_store_format_are_read_by_the_code(text, tmp_path):
    """docs/store-format.md shows the attributes of a store. Here they are written where a store has them."""
    document = json.loads(text)
    node = tmp_path / "data/features.zarr"
    node.mkdir(parents=True)
    (node / "zarr.json").write_text(json.dumps({"attributes": {ATTRIBUTE: document}}), encoding="utf-8")

    assert read_attributes(tmp_path) == document
    validate_corpus(document["corpus"])
    validate_licence(document["licence"])


@pytest.mark.parametrize("text", blocks_of("provenance"))
def test_the_provenance_in_store_format_is_valid(text):
    """docs/store-format.md shows the provenance of a sealed group. The validation returns it unchanged."""
    document = json.loads(text)

    assert validate_provenance(document, sealed=True) == document


@pytest.mark.parametrize("text", blocks_of("journal"))
def test_the_journal_in_store_format_is_read_by_the_code(text, tmp_path):
    """docs/store-format.md shows a line of a journal, with its rows.

    In a row, the digests of all arrays stand one behind the other, of 64 digits each; a failed row has none.
    """
    (tmp_path / "0001.jsonl").write_text(f"{text}\n", encoding="utf-8")
    rows = json.loads(text)["entry"]["rows"]
    n_arrays = max(len(row.get("sha256", "")) // SHA256_HEX for row in rows)

    lines, damage = read_journals(tmp_path, n_arrays)

    (line,) = lines
    assert line.rows
    assert damage == []


ROW_OF_ARRAYS = re.compile(
    r"""
    ^\|\ `(\w+)`\       # name
    \|\ ([\w,\ ]+)\     # dimensions
    \|\ ([^|]+)\        # types
    \|\ ([^|]+)\        # rows of a chunk
    \|\ ([^|]+)\ \|$    # fill value
    """,
    re.MULTILINE | re.VERBOSE,
)


N_ROWS_OF_A_LARGE_STORE = 10**6


class RowOfArrays(NamedTuple):
    """A row of the page's table of arrays, as it is written there."""

    name: str
    dimensions: str
    types: str
    rows_of_chunk: str
    fill: str


def test_the_table_of_arrays_in_store_format_is_that_of_the_code():
    """docs/store-format.md lists each array with its dimensions, types, rows of a chunk and fill value."""
    rows = [RowOfArrays(*cells) for cells in ROW_OF_ARRAYS.findall(PAGE)]
    assert [row.name for row in rows] == list(ARRAYS)
    for row in rows:
        array = ARRAYS[row.name]
        assert tuple(row.dimensions.strip().split(", ")) == array.dims
        assert tuple(re.findall(r"string|uint8|float\d+|int64", row.types)) == array.dtypes
        # The cell may say "1, in shards of 16": the last number is that of rows in one file.
        *_, rows_of_file = re.findall(r"\d+", row.rows_of_chunk)
        assert int(rows_of_file) == block_rows(row.name, N_ROWS_OF_A_LARGE_STORE)
        assert row.fill.strip() == json.dumps(array.fill)
