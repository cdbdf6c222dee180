"""Generate the JSON schemas of docs/ (JSON Schema 2020-12): of stores, model cards and run records.

Run it with: python docs/schemas.py (`make schema`)
"""

import json
from inspect import cleandoc
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from obygaze_features.lines import json_bytes
from obygaze_features.schema import END, Hex64, Licence, SomeText, Text
from obygaze_features.store.format import (
    ARRAYS,
    FEATURE_ARRAYS,
    RAGGED_ARRAYS,
    SPEC_VERSION,
    STATUSES,
    TIME_ARRAYS,
    ArrayKind,
)
from obygaze_features.store.provenance import Corpus, FilledIn, ImportedProvenance, Provenance
from obygaze_features.store.records import (
    ABSENT_PREFIX,
    COLUMNS,
    DIGEST_PREFIX,
    TEXT_COLUMN,
    WITHOUT_PICTURES,
)
from obygaze_models.evaluation.run import RunDocument
from obygaze_models.persistence.card import ModelCard

Schema = dict[str, Any]
_SECONDS: Schema = {
    "description": "Seconds, or nothing",
    "type": "string",
    "pattern": r"^(-?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?)?$",
}
_DIGEST: Schema = {"description": "SHA-256, or nothing", "type": "string", "pattern": "^([0-9a-f]{64})?$"}
_TEXT: Schema = {"type": "string"}
_STRETCH = r"-?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)? -?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?"
_STRETCHES: Schema = {
    "description": "The stretches in which the clip's file has no pictures: START END;START END in seconds",
    "type": "string",
    "pattern": f"^({_STRETCH}(;{_STRETCH})*)?$",
}
_SIZES: Schema = {"type": "array", "items": {"type": "integer", "minimum": 1}}
_SHAPE: Schema = {"type": "array", "items": {"type": "integer", "minimum": 0}}
_BYTES: Schema = {
    "properties": {
        "name": {"const": "bytes"},
        "configuration": {"properties": {"endian": {"const": "little"}}},
    },
    "required": ["name"],
}


def store_format() -> Schema:
    """Return the schema of a store; each part is under `$defs` by its name in docs/store-format.md."""
    kinds = (Provenance, ImportedProvenance, FilledIn, Corpus, Hex64, Licence, SomeText, Text)
    refs, components = msgspec.json.schema_components(kinds, ref_template="#/$defs/{name}")
    extracted, imported, filled_in, corpus, sha256, licence, some_text, text = refs
    document: Schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"The store format, version {SPEC_VERSION}",
        "description": "The parts of a store that are JSON or a table, each under $defs by the name that "
        "docs/store-format.md gives it. What a schema cannot say (digests, one size per dimension, rows that "
        "agree) is in that document and checked by `obygaze store verify --full`.",
        "$defs": {
            "array": _array(),
            "attributes": {
                "description": "Attribute `obygaze` of the root group",
                **_object(
                    spec_version={"type": "string", "pattern": r"^1\.[0-9]{1,6}$"},
                    licence=licence,
                    citation=text,
                    corpus=corpus,
                    parent={"anyOf": [sha256, {"type": "null"}]},
                ),
            },
            "provenance": {
                "description": "Attribute `provenance` of a backbone's group",
                "if": {"required": ["imported"], "properties": {"imported": {"const": True}}},
                "then": imported,
                "else": extracted,
                "allOf": [filled_in],
            },
            **components,
            "clip": _clip(some_text),
            "journal": _journal(sha256),
        },
    }
    document["$defs"]["attributes"]["properties"]["merged_with"] = {
        "type": "array",
        "items": sha256,
        "minItems": 1,
    }
    document["$defs"]["attributes"]["properties"]["devices"] = {
        "type": "object",
        "additionalProperties": {"type": "integer", "minimum": 1},
    }
    document["$defs"]["attributes"]["properties"]["streams"] = {
        "type": "array",
        "items": {"type": "object", "properties": {"clips": {"type": "integer", "minimum": 1}}},
        "minItems": 1,
    }
    return _plain(document)


def model_card() -> Schema:
    """Return the schema of card.json in a model file."""
    return _document(
        ModelCard,
        "The card of a model file, format 4",
        "The field provenance is what docs/store-format.schema.json has under $defs/provenance.",
    )


def run_record() -> Schema:
    """Return the schema of run.json in a run's folder."""
    return _document(RunDocument, "The record of a run", "The JSON document run.json of an evaluation.")


def _document(kind: type[Struct], title: str, description: str) -> Schema:
    (ref,), components = msgspec.json.schema_components((kind,), ref_template="#/$defs/{name}")
    return _plain(
        {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": title,
            "description": description,
            **ref,
            "$defs": components,
        }
    )


def _plain(document: Schema) -> Schema:
    """Write patterns as JSON Schema does: Python's `$` stands before a last line break too."""
    text = json.dumps(document).replace(json.dumps(END)[1:-1], "$")
    plain: Schema = json.loads(text, object_hook=_flush_left)
    return plain


def _flush_left(found: Schema) -> Schema:
    """Take the indentation from a description: docstrings keep theirs before Python 3.13."""
    text = found.get("description")
    return found | {"description": cleandoc(text)} if isinstance(text, str) else found


def _object(**properties: Schema) -> Schema:
    return {"type": "object", "required": list(properties), "properties": properties}


def _array() -> Schema:
    grid = _object(name={"const": "regular"}, configuration=_object(chunk_shape=_SIZES))
    keys: Schema = {
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": {"const": "default"},
            "configuration": {"properties": {"separator": {"const": "/"}}},
        },
    }
    common = _object(
        zarr_format={"const": 3},
        node_type={"const": "array"},
        shape=_SHAPE,  # 0: a ragged array of clips without any features
        data_type={},
        chunk_grid=grid,
        chunk_key_encoding=keys,
        fill_value={},
        codecs={},
        dimension_names={},
    )
    return {
        "description": "zarr.json of one of the arrays of a sealed store",
        **common,
        "anyOf": [
            *(_kind(kind.name, kind) for kind in ARRAYS.values()),
            *(_kind(f"{kind.name} of a ragged group", kind) for kind in RAGGED_ARRAYS.values()),
        ],
    }


def _kind(title: str, kind: ArrayKind) -> Schema:
    dims = [list(kind.dims)]
    if kind.name == "frames" and kind.dims[0] == "clip":
        dims.append(["clip", "tubelet", "feature"])
    return {
        "title": title,
        "properties": {
            "dimension_names": {"enum": dims},
            "data_type": {"enum": list(kind.dtypes)},
            "fill_value": {"const": "NaN" if isinstance(kind.fill, float) else kind.fill},
            "codecs": _codecs(kind),
            "shape": {"minItems": len(kind.dims), "maxItems": len(kind.dims)},
        },
    }


def _codecs(kind: ArrayKind) -> Schema:
    plain = _items(_BYTES, _named("crc32c"))
    if kind.dtypes == ("string",):
        return _items(_named("vlen-utf8"), _named("zstd"), _named("crc32c"))
    if not kind.sharded:
        return plain
    inner = _object(
        chunk_shape={"type": "array", "prefixItems": [{"const": 1}]}, codecs=plain, index_codecs=plain
    )
    inner["properties"]["index_location"] = {"const": "end"}
    return _items(_object(name={"const": "sharding_indexed"}, configuration=inner))


def _named(codec: str) -> Schema:
    return {"properties": {"name": {"const": codec}}, "required": ["name"]}


def _items(*schemas: Schema) -> Schema:
    return {
        "type": "array",
        "prefixItems": list(schemas),
        "minItems": len(schemas),
        "maxItems": len(schemas),
    }


def _clip(some_text: Schema) -> Schema:
    special: dict[str, Schema] = {
        "row": {"type": "string", "pattern": "^(0|[1-9][0-9]*)$"},
        "clip": {"type": "string", "minLength": 1},
        "status": {"enum": list(STATUSES)},
        "start_s": _SECONDS,
        "end_s": _SECONDS,
        "source_bytes": {"type": "string", "pattern": "^[0-9]*$"},
        "source_duration_s": _SECONDS,
        "source_sha256": _DIGEST,
    }
    arrays = "|".join((*FEATURE_ARRAYS, *TIME_ARRAYS))
    digests, absent = f"^{DIGEST_PREFIX}", f"^{ABSENT_PREFIX}"
    group = "[A-Za-z0-9][A-Za-z0-9._-]*"
    with_reason: Schema = {
        "if": {"properties": {"status": {"enum": ["partial", "failed"]}}},
        "then": {"properties": {"reason": {"minLength": 1}}},
    }
    with_digests: Schema = {
        "if": {"properties": {"status": {"enum": ["missing", "failed"]}}},
        "then": {"patternProperties": {digests: {"const": ""}, absent: {"const": ""}}},
        "else": {
            "if": {"patternProperties": {absent: {"const": ""}}},
            "then": {"patternProperties": {digests: {"minLength": 64}}},
        },
    }
    without_any: Schema = {
        "if": {"properties": {"status": {"const": "partial"}}},
        "else": {"properties": {WITHOUT_PICTURES: {"const": ""}}},
    }
    line = _object(**{column: special.get(column, _TEXT) for column in COLUMNS})
    line["properties"][WITHOUT_PICTURES] = _STRETCHES
    line["properties"][TEXT_COLUMN] = {**some_text, "description": "In a store of texts alone"}
    return {
        "description": "A line of data/clips.csv: column -> text",
        **line,
        "patternProperties": {f"{digests}{group}/({arrays})$": _DIGEST, f"{absent}{group}$": _TEXT},
        "additionalProperties": False,
        "allOf": [with_reason, with_digests, without_any],
    }


def _journal(sha256: Schema) -> Schema:
    source: Schema = {
        "bytes": {"type": "integer", "minimum": 0},
        "duration_s": {"type": "number"},
        "sha256": sha256,
        "device": {"type": "string", "minLength": 1},
    }
    required = ["row", "clip_id", "status", "attempt", "writer"]
    row = _object(
        row={"type": "integer", "minimum": 0},
        clip_id={"type": "string", "minLength": 1},
        status={"enum": [*STATUSES[1:], STATUSES[0]]},
        reason=_TEXT,
        attempt={"type": "integer", "minimum": 1},
        writer={"type": "string", "minLength": 1},
        sha256={"type": "string", "pattern": "^([0-9a-f]{64}|-{64})*$"},
        source={"type": "object", "properties": source, "additionalProperties": False},
        absent={
            "description": "Group -> why it has no features of the clip",
            "type": "object",
            "additionalProperties": {"type": "string", "minLength": 1},
        },
        frames={
            "description": "Ragged group -> where its frames of the clip are: the first, and how many",
            "type": "object",
            "additionalProperties": _items(
                {"type": "integer", "minimum": 0}, {"type": "integer", "minimum": 1}
            ),
        },
        without_pictures_s={
            "description": "The stretches in which the clip's file has no pictures: start and end in seconds",
            "type": "array",
            "items": _items({"type": "number"}, {"type": "number"}),
        },
    )
    rows: Schema = {"type": "array", "items": {**row, "required": required, "additionalProperties": False}}
    entry = {**_object(rows=rows, whole={"const": True}), "required": ["rows"], "additionalProperties": False}
    return {
        "description": "A line of a stage's journal",
        **_object(crc32={"type": "string", "pattern": "^[0-9a-f]{8}$"}, entry=entry),
        "additionalProperties": False,
    }


DOCUMENTS = {
    "store-format.schema.json": store_format,
    "model-card.schema.json": model_card,
    "run-record.schema.json": run_record,
}
"""File beside this one -> what makes its content."""


if __name__ == "__main__":
    for name, document in DOCUMENTS.items():
        (Path(__file__).parent / name).write_bytes(json_bytes(document()))
