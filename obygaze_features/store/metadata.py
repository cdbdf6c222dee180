"""Write all files of a store but chunks and shards: metadata, ids, table of clips, bag, card, croissant.json.

The card, README.md, has the front matter that dataset hubs read. croissant.json follows Croissant 1.0
(MLCommons 2024); no reader of it decodes Zarr, so it describes the table of clips and names the features in
words.
"""

import json
import re
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from zarr.storage import LocalStore

from obygaze_features.io import NO_LICENCE, json_bytes, sha256_of
from obygaze_features.store.arrays import create_array
from obygaze_features.store.format import (
    ATTRIBUTE,
    CROISSANT,
    FEATURES,
    GROUP_STATUSES,
    PROVENANCE,
    STATUSES,
    TABLE,
    TEXTS,
)
from obygaze_features.store.records import (
    COLUMNS,
    TEXT_COLUMN,
    GroupSpec,
    StoredClip,
    absent_counts,
    clips_csv_bytes,
)
from obygaze_features.store.store_files import write_bag

# Licences that the Hugging Face Hub has a name for (its documentation, "Licenses"), by their SPDX names.
_SAME_NAME = (
    "Apache-2.0 MIT BSD-2-Clause BSD-3-Clause BSL-1.0 CC0-1.0 CC-BY-2.0 CC-BY-2.5 CC-BY-3.0 CC-BY-4.0 "
    "CC-BY-SA-3.0 CC-BY-SA-4.0 CC-BY-NC-2.0 CC-BY-NC-3.0 CC-BY-NC-4.0 CC-BY-ND-4.0 CC-BY-NC-ND-3.0 "
    "CC-BY-NC-ND-4.0 CC-BY-NC-SA-2.0 CC-BY-NC-SA-3.0 CC-BY-NC-SA-4.0 CDLA-Permissive-1.0 "
    "CDLA-Permissive-2.0 CDLA-Sharing-1.0 ECL-2.0 EPL-2.0 etalab-2.0 EUPL-1.2 MPL-2.0 Unlicense WTFPL"
)
HUB_LICENCES = {name.lower(): name.lower() for name in _SAME_NAME.split()} | {
    "agpl-3.0-only": "agpl-3.0",
    "agpl-3.0-or-later": "agpl-3.0",
    "gpl-3.0-only": "gpl-3.0",
    "gpl-3.0-or-later": "gpl-3.0",
    "odbl-1.0": "odbl",
    "odc-by-1.0": "odc-by",
    "pddl-1.0": "pddl",
    NO_LICENCE.lower(): "unknown",
}
_SIZES = ("n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M")
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


def write_all_but_parts(
    root: Path,
    clips: Sequence[StoredClip],
    groups: Sequence[GroupSpec],
    about: dict[str, Any],
    *,
    version: str,
    parts: Mapping[str, str],
) -> None:
    """Write a store's files other than chunks and shards.

    Parameters
    ----------
    root
        Folder of the store, with all chunks and shards.
    clips, groups
        The rows of every array, in order, and the backbones.
    about
        The store's attributes.
    parts
        File -> SHA-256 of every chunk and shard.
    """
    node = zarr.create_group(LocalStore(root / FEATURES), zarr_format=3, attributes={ATTRIBUTE: about})
    for group in groups:
        below = node.create_group(group.name, attributes={PROVENANCE: _provenance(group, about["corpus"])})
        for name, (shape, dtype) in group.clip_arrays().items():
            create_array(below, name, (len(clips), *shape), dtype.name, group.dimensions(name))
        _write_ids(below, [clip.within(group.name) for clip in clips])
        _consolidate(root, group.name)
    _consolidate(root, None)
    names = [f"{group.name}/{array}" for group in groups for array in group.clip_arrays()]
    (root / TABLE).write_bytes(clips_csv_bytes(clips, names))
    counts = Counter(clip.status for clip in clips)
    descriptions = [(group.name, group.provenance, _describe(group)) for group in groups]
    by_status = {status: counts[status] for status in STATUSES}
    facts = Facts(about, by_status, descriptions, absent_counts(clips))
    table = (root / TABLE).read_bytes()
    (root / CROISSANT).write_bytes(croissant(facts, version, sha256_of(table), len(table)))
    info = {
        "External-Description": f"obygaze feature store, format {about['spec_version']}",
        "Store-Version": version,
    }
    write_bag(root, info, readme(facts), parts)


def _provenance(group: GroupSpec, corpus: dict[str, object]) -> dict[str, object]:
    storage = {spec.name: spec.dtype for spec in sorted(group.arrays, key=lambda spec: spec.name)}
    return {**group.provenance, "storage": storage, "source": corpus}


def _describe(group: GroupSpec) -> list[str]:
    return [describe(spec.name, spec.dtype, spec.shape, group.dimensions(spec.name)) for spec in group.arrays]


def _write_ids(node: Any, clips: Sequence[StoredClip]) -> None:
    ids = create_array(node, "clip", (len(clips),), "string", ("clip",))
    ids[:] = np.array([clip.clip_id for clip in clips], dtype=np.dtypes.StringDType())
    status = create_array(node, "status", (len(clips),), "uint8", ("clip",))
    status[:] = np.array([GROUP_STATUSES.index(clip.status) for clip in clips], dtype=np.uint8)
    texts = [clip.text for clip in clips if clip.text is not None]
    if texts:
        text = create_array(node, "text", (len(clips),), "string", ("clip",))
        text[:] = np.array(texts, dtype=np.dtypes.StringDType())


def _consolidate(building: Path, group: str | None) -> None:
    """Consolidate the metadata, for readers that cannot list folders; each group can be opened alone too."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Consolidated metadata is currently not part")
        zarr.consolidate_metadata(LocalStore(building / FEATURES), path=group)


# --- the card
# ---------------------------------------------------------------------------
@dataclass(frozen=True)
class Facts:
    """The content of a card.

    Attributes
    ----------
    about
        The store's attributes: licence, citation, corpus, parent.
    counts
        Status -> number of clips.
    groups
        (name, provenance, lines that describe its arrays) of every backbone.
    absent
        Backbone -> clips that it has no features of, and others have.
    """

    about: Mapping[str, Any]
    counts: Mapping[str, int]
    groups: Sequence[tuple[str, Mapping[str, Any], Sequence[str]]]
    absent: Mapping[str, int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """Number of clips."""
        return sum(self.counts.values())

    @property
    def rows(self) -> str:
        """Name of the rows: clips or texts."""
        texts = any(provenance["sampling"]["policy"] == TEXTS for _, provenance, _ in self.groups)
        return TEXTS if texts else "clips"


def describe(array: str, dtype: str, shape: Sequence[int], names: Sequence[str]) -> str:
    """Describe an array in a line; `shape` is one clip's, `names` the dimensions' with the clips' first."""
    return f"{array}: {dtype} [{', '.join(names)}], {' x '.join(map(str, shape))} a clip"


def readme(facts: Facts) -> str:
    """Write the card: front matter, then the same as text."""
    about = facts.about
    counts = ", ".join(f"{facts.counts[status]} {status}" for status in (*STATUSES[1:], STATUSES[0]))
    summary = f"{facts.total} {facts.rows}, of which {counts}"
    lines = [
        *_front_matter(facts),
        "",
        f"# Features of {about['corpus']['name']}",
        "",
        f"An obygaze feature store, format {about['spec_version']}: {summary}.",
        f"Rows of failed and missing {facts.rows} hold no features; `{TABLE}` says why.",
        "",
        f"- Licence: {about['licence']}",
        f"- Citation: {about['citation'] or 'none given'}",
    ]
    if about["parent"]:
        lines.append(f"- Grown from the store with fingerprint {about['parent']}")
    lines += [
        f"- Merged with the store with fingerprint {fingerprint}"
        for fingerprint in about.get("merged_with", ())
    ]
    lines += [
        f"- {clips} {facts.rows} computed on {name}" for name, clips in about.get("devices", {}).items()
    ]
    for name, provenance, arrays in facts.groups:
        absent = facts.absent.get(name)
        lines += [
            "",
            f"## {name}",
            "",
            *([f"- No features of {absent} {facts.rows} (absent); `{TABLE}` says why"] if absent else []),
            *(f"- {line}" for line in arrays),
            *(f"- {line}" for line in _origin(provenance)),
        ]
    lines += [
        "",
        "Check it with `sha256sum -c manifest-sha256.txt`, or better with `obygaze store verify --full`.",
        "",
    ]
    return "\n".join(lines)


def _front_matter(facts: Facts) -> list[str]:
    """Write the fields of the Hub's dataset cards; JSON strings are YAML strings."""
    licence = facts.about["licence"]
    known = HUB_LICENCES.get(licence.lower(), "other")
    tags = [
        "obygaze",
        "text-features" if facts.rows == TEXTS else "video-features",
        "zarr",
        *(name for name, *_ in facts.groups),
    ]
    size = _SIZES[min(len(_SIZES) - 1, max(0, len(str(facts.total)) - 3))]
    return [
        "---",
        f"license: {known}",
        *([f"license_name: {json.dumps(licence)}"] if known == "other" else []),
        f"pretty_name: {json.dumps('Features of ' + facts.about['corpus']['name'])}",
        f"size_categories: [{json.dumps(size)}]",
        f"tags: {json.dumps(tags)}",
        "configs:",
        "- config_name: clips",
        f"  data_files: {TABLE}",
        "---",
    ]


def _decoder(decoder: Mapping[str, Any]) -> str:
    pyav = f"PyAV {_known(decoder['av'])}"
    return f"{decoder['name']} ({decoder.get('package', 'unknown')}), {pyav}" if "name" in decoder else pyav


def _origin(provenance: Mapping[str, Any]) -> list[str]:
    hub, sampling, decoder, compute = (provenance[name] for name in ("hub", "sampling", "decoder", "compute"))
    lines = []
    if provenance.get("imported"):
        lines.append("IMPORTED: obygaze did not extract them; what follows is as declared, not observed")
    if provenance.get("untrained"):
        lines.append("UNTRAINED: the weights are random, the features mean nothing")
    if hub:
        lines.append(f"Weights: {hub['repository']} at revision {hub['revision']}")
    if provenance["weights_sha256"]:
        lines.append(f"SHA-256 of the weights: {provenance['weights_sha256']}")
    if sampling["policy"] != TEXTS:
        how_many = "" if sampling["n"] is None else f", {sampling['n']} frames a clip"
        lines += [
            f"Frames: {_known(sampling['policy'])}{how_many}",
            f"Decoded by {_decoder(decoder)} (FFmpeg {_known(decoder['ffmpeg'])})",
        ]
    lines += [
        f"Computed in {_known(compute['dtype'])} on {_known(compute['device'])}",
        f"Licence of the backbone: {provenance['licence']}",
        f"Citation of the backbone: {provenance['citation'] or 'none given'}",
    ]
    return lines


def _known(value: str | None) -> str:
    return "unknown" if value is None else value


# --- croissant.json
# ---------------------------------------------------------------------------
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
    summary = "; ".join(f"{name} ({', '.join(arrays)})" for name, _, arrays in facts.groups)
    document: dict[str, object] = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": _name(about["corpus"]["name"]),
        "description": f"Features that frozen models gave for {facts.total} "
        f"{facts.rows} of {about['corpus']['name']}: {summary}. "
        "The features are the Zarr group data/features.zarr.",
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
    """Return a name of letters, digits, '-' and '_', as Croissant demands."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", f"Features of {corpus}").strip("-")


def _licence(licence: str) -> str:
    """Return the URL of a licence at SPDX; an expression of several stays as it is."""
    if (
        licence == NO_LICENCE
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
