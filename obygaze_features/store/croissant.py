"""croissant.json: how search engines for datasets find a store (Croissant 1.0, MLCommons 2024).

No reader of Croissant decodes Zarr, so it describes the table of clips, and names the rest in words.
"""

import re

from obygaze_features.store.canonical import json_bytes
from obygaze_features.store.layout import TABLE, TEXTS
from obygaze_features.store.readme import NOBODY_SAID, Facts
from obygaze_features.store.table import COLUMNS, TEXT_COLUMN

_TYPES = {
    "row": "sc:Integer",
    "start_s": "sc:Float",
    "end_s": "sc:Float",
    "source_bytes": "sc:Integer",
    "source_duration_s": "sc:Float",
}
_MEANINGS = {
    "row": "Row of the clip in every array",
    "clip": "Id of the clip",
    "status": "missing, ok, partial or failed",
    "reason": "Why the clip is partial or failed",
    "movie": "Id of the movie",
    "start_s": "Begin in the video, in seconds; empty: its begin",
    "end_s": "End in the video, in seconds; empty: its end",
    "source_bytes": "Size of the video file",
    "source_duration_s": "Duration of the video file in seconds",
    "source_sha256": "SHA-256 of the video file",
    TEXT_COLUMN: "The text that the row is the embedding of",
}
_CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileProperty": "cr:fileProperty",
    "fileObject": "cr:fileObject",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}
"""The context that the specification fixes."""


def croissant(
    facts: Facts, version: str, table_sha256: str, table_bytes: int, url: str | None = None
) -> bytes:
    """Write croissant.json, the same bytes for the same store.

    Parameters
    ----------
    version
        Version of the store's content.
    table_sha256, table_bytes
        Digest and size of `data/clips.csv`.
    url
        Where the store's folder is served, if that is known; else addresses are relative to the store.
    """
    base = "" if url is None else url.rstrip("/") + "/"
    about = facts.about
    columns = (*COLUMNS, TEXT_COLUMN) if facts.rows == TEXTS else COLUMNS
    told = "; ".join(f"{name} ({', '.join(arrays)})" for name, _, arrays in facts.groups)
    document: dict[str, object] = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": _name(about["corpus"]["name"]),
        "description": f"Features that frozen models gave for {facts.total} {facts.rows} of "
        f"{about['corpus']['name']}: {told}. The features are the Zarr group data/features.zarr.",
        "license": _licence(about["licence"]),
        "version": version,
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": "clips.csv",
                "name": "clips.csv",
                "description": "What became of every clip",
                "contentUrl": base + TABLE,
                "contentSize": f"{table_bytes} B",
                "encodingFormat": "text/csv",
                "sha256": table_sha256,
            }
        ],
        "recordSet": [
            {
                "@type": "cr:RecordSet",
                "@id": "clips",
                "name": "clips",
                "description": "The clips, in the order of the rows of every array",
                "key": {"@id": "clips/clip"},
                "field": [_field(column) for column in columns],
            }
        ],
    }
    if about["citation"]:
        document["citeAs"] = about["citation"]
    if url is not None:
        document["url"] = url
    return json_bytes(document)


def _name(corpus: str) -> str:
    """Croissant's names are made of letters, digits, '-' and '_'."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", f"Features of {corpus}").strip("-")


def _licence(licence: str) -> str:
    """Give the page that SPDX keeps for one licence; an expression of several stays as it is."""
    if (
        licence == NOBODY_SAID
        or not re.fullmatch(r"[A-Za-z0-9.+-]+", licence)
        or licence.startswith("LicenseRef")
    ):
        return licence
    return f"https://spdx.org/licenses/{licence}.html"


def _field(column: str) -> dict[str, object]:
    return {
        "@type": "cr:Field",
        "@id": f"clips/{column}",
        "name": column,
        "description": _MEANINGS[column],
        "dataType": _TYPES.get(column, "sc:Text"),
        "source": {"fileObject": {"@id": "clips.csv"}, "extract": {"column": column}},
    }
