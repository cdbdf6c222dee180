"""Write all files of a store but chunks and shards: metadata, ids, table of clips, bag, card, croissant.json.

The card, README.md, has the front matter that dataset hubs read; `card.md.jinja` is its template.
croissant.json follows Croissant 1.0 (MLCommons 2024); no reader of it decodes Zarr, so it describes the table
of clips and names the features in words. What all stores have in common of it is `croissant.json` here.
"""

import atexit
import json
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from zarr.codecs import BytesCodec, Crc32cCodec, VLenUTF8Codec, ZstdCodec
from zarr.core import sync
from zarr.storage import LocalStore

from obygaze_features.errors import StoreError
from obygaze_features.io import NO_LICENCE, sha256_of
from obygaze_features.lines import json_bytes
from obygaze_features.store.format import (
    ARRAYS,
    ATTRIBUTE,
    CROISSANT,
    FEATURES,
    GROUP_STATUSES,
    PROVENANCE,
    STATUSES,
    TABLE,
    TEXTS,
    block_rows,
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

if not __debug__:  # zarr's assertions have effects: without them a whole store looks damaged
    raise StoreError("stores can't be sealed by python -O: start it without -O and PYTHONOPTIMIZE")

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


def write_all_but_parts(
    root: Path,
    clips: Sequence[StoredClip],
    groups: Sequence[GroupSpec],
    about: dict[str, Any],
    *,
    version: str,
    parts: Mapping[str, str],
    digests: Iterable[Mapping[str, str]],
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
    digests
        `group/array` -> SHA-256 of the row, of every clip.
    """
    node = zarr.create_group(LocalStore(root / FEATURES), zarr_format=3, attributes={ATTRIBUTE: about})
    for group in groups:
        below = node.create_group(group.name, attributes={PROVENANCE: _provenance(group, about["corpus"])})
        for name, (shape, dtype) in group.clip_arrays().items():
            _create_array(below, name, (len(clips), *shape), dtype.name, group.dimensions(name))
        _write_ids(below, [clip.within(group.name) for clip in clips])
        _consolidate(root, group.name)
    _consolidate(root, None)
    names = [f"{group.name}/{array}" for group in groups for array in group.clip_arrays()]
    (root / TABLE).write_bytes(clips_csv_bytes(clips, names, digests))
    facts = facts_of(about, clips, groups)
    table = (root / TABLE).read_bytes()
    (root / CROISSANT).write_bytes(croissant(facts, version, sha256_of(table), len(table)))
    info = {
        "External-Description": f"obygaze feature store, format {about['spec_version']}",
        "Store-Version": version,
    }
    write_bag(root, info, readme(facts), parts)


@atexit.register
def _stop_zarr() -> None:
    """Wait for zarr's thread: zarr gives it 0.2 s, and on a busy machine ends a program with a traceback."""
    loop, thread = sync.loop[0], sync.iothread[0]
    if loop is not None and thread is not None:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


def _create_array(
    node: zarr.Group, name: str, shape: tuple[int, ...], dtype: str, dimension_names: tuple[str, ...]
) -> zarr.Array[Any]:
    """Create an array of a group; its first dimension is the clips."""
    block = (block_rows(name, shape[0]), *shape[1:])
    sharded = ARRAYS[name].sharded
    text = dtype == "string"
    return node.create_array(
        name,
        shape=shape,
        dtype=dtype,
        chunks=(1, *shape[1:]) if sharded else block,
        shards=block if sharded else None,
        serializer=VLenUTF8Codec()
        if text
        else BytesCodec(endian="little" if np.dtype(dtype).itemsize > 1 else None),
        compressors=[ZstdCodec(level=3, checksum=False), Crc32cCodec()] if text else [Crc32cCodec()],
        fill_value=ARRAYS[name].fill,
        dimension_names=dimension_names,
        config={"write_empty_chunks": True},
    )


def _provenance(group: GroupSpec, corpus: dict[str, object]) -> dict[str, object]:
    storage = {spec.name: spec.dtype for spec in sorted(group.arrays, key=lambda spec: spec.name)}
    return {**group.provenance, "storage": storage, "source": corpus}


def _write_ids(node: Any, clips: Sequence[StoredClip]) -> None:
    ids = _create_array(node, "clip", (len(clips),), "string", ("clip",))
    ids[:] = np.array([clip.clip_id for clip in clips], dtype=np.dtypes.StringDType())
    status = _create_array(node, "status", (len(clips),), "uint8", ("clip",))
    status[:] = np.array([GROUP_STATUSES.index(clip.status) for clip in clips], dtype=np.uint8)
    texts = [clip.text for clip in clips if clip.text is not None]
    if texts:
        text = _create_array(node, "text", (len(clips),), "string", ("clip",))
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


def facts_of(about: Mapping[str, Any], clips: Sequence[StoredClip], groups: Sequence[GroupSpec]) -> Facts:
    """Gather the content of a card."""
    counts = Counter(clip.status for clip in clips)
    described = []
    for group in groups:
        arrays = [
            f"{spec.name}: {spec.dtype} [{', '.join(group.dimensions(spec.name))}], "
            f"{' x '.join(map(str, spec.shape))} a clip"
            for spec in group.arrays
        ]
        described.append((group.name, group.provenance, arrays))
    return Facts(about, {status: counts[status] for status in STATUSES}, described, absent_counts(clips))


def readme(facts: Facts) -> str:
    """Write the card: front matter as the Hub's dataset cards have it, then the same as text."""
    from jinja2 import Environment, StrictUndefined  # noqa: PLC0415 - reading stores needs no templates

    licence = facts.about["licence"]
    kind = "text-features" if facts.rows == TEXTS else "video-features"
    markdown = Environment(  # noqa: S701 - no HTML
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True, undefined=StrictUndefined
    )
    markdown.filters |= {"json": json.dumps, "known": lambda value: "unknown" if value is None else value}
    return markdown.from_string(_packaged("card.md.jinja")).render(
        facts=facts,
        about=facts.about,
        known=HUB_LICENCES.get(licence.lower(), "other"),
        size=_SIZES[min(len(_SIZES) - 1, max(0, len(str(facts.total)) - 3))],
        tags=["obygaze", kind, "zarr", *(name for name, *_ in facts.groups)],
        counts=", ".join(f"{facts.counts[status]} {status}" for status in (*STATUSES[1:], STATUSES[0])),
        table=TABLE,
    )


def _packaged(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


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
    document: dict[str, Any] = json.loads(_packaged("croissant.json"))
    document |= {
        "name": _name(about["corpus"]["name"]),
        "description": f"Features that frozen models gave for {facts.total} "
        f"{facts.rows} of {about['corpus']['name']}: {summary}. "
        "The features are the Zarr group data/features.zarr.",
        "license": _licence(about["licence"]),
        "version": version,
        **_responsible(facts),
    }
    document["distribution"][0] |= {
        "contentUrl": base + TABLE,
        "contentSize": f"{table_bytes} B",
        "sha256": table_sha256,
    }
    table = document["recordSet"][0]
    table["field"] = [field for field in table["field"] if field["name"] in columns]
    if about["citation"]:
        document["citeAs"] = about["citation"]
    if url is not None:
        document["url"] = url
    return json_bytes(document)


def _responsible(facts: Facts) -> dict[str, object]:
    """Say what the card says, in the terms of Croissant RAI 1.0 (MLCommons 2024)."""
    without, partial = facts.counts["failed"] + facts.counts["missing"], facts.counts["partial"]
    limits = [f"{without} of {facts.total} {facts.rows} have no features, {partial} were read in part."]
    limits += [f"{name} has none of {number} others." for name, number in facts.absent.items() if number]
    steps = []
    for name, provenance, _ in facts.groups:
        if provenance.get("untrained"):
            limits.append(f"{name} is of random weights: its features mean nothing.")
        if provenance.get("imported"):
            limits.append(f"{name} is imported: its origin is as declared, not observed.")
        policy, frames = provenance["sampling"]["policy"], provenance["sampling"]["n"]
        steps.append(f"{name}: {policy}" + (f", {frames} frames a clip" if frames else ""))
    return {"rai:dataLimitations": " ".join(limits), "rai:dataPreprocessingProtocol": "; ".join(steps)}


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
