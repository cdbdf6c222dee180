"""Write all files of a store but chunks and shards: metadata, ids, table of clips, bag, card, croissant.json.

The card, README.md, has the front matter that dataset hubs read; `card.md.jinja` is its template.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from obygaze_features.io import NO_LICENCE, sha256_of
from obygaze_features.store.arrays import array_layout, string_chunk, with_checksum
from obygaze_features.store.croissant import croissant as croissant_json
from obygaze_features.store.facts import Facts, limits
from obygaze_features.store.format import (
    ARRAYS,
    ATTRIBUTE,
    CROISSANT,
    FEATURES,
    GROUP_STATUSES,
    PROVENANCE,
    RAGGED_ARRAYS,
    ROW_SIZE,
    STATUSES,
    TABLE,
    TEXTS,
    ZARR_METADATA,
    block_rows,
    chunk_file,
)
from obygaze_features.store.records import (
    ArraySpec,
    GroupSpec,
    StoredClip,
    absent_counts,
    clips_csv_bytes,
)
from obygaze_features.store.store_files import write_bag
from obygaze_features.templates import filled, packaged

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
    row_sizes: Mapping[str, NDArray[np.int64]],
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
    row_sizes
        Name of a ragged group -> number of frames of every clip, int64 [N].
    """
    below: dict[str, dict[str, Any]] = {}
    for group in groups:
        attributes = {PROVENANCE: _provenance(group, about["corpus"])}
        arrays = _write_arrays(root, group, clips, row_sizes.get(group.name))
        _write_node(root, group.name, _group(attributes, arrays))
        below |= {group.name: _group(attributes, {})}
        below |= {f"{group.name}/{name}": array for name, array in arrays.items()}
    in_order = sorted(below, key=lambda name: (name.count("/"), name.casefold(), name))
    _write_node(root, "", _group({ATTRIBUTE: about}, {name: below[name] for name in in_order}))
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


def _provenance(group: GroupSpec, corpus: dict[str, object]) -> dict[str, object]:
    storage = {spec.name: spec.dtype for spec in sorted(group.arrays, key=lambda spec: spec.name)}
    return {**group.provenance, "storage": storage, "source": corpus}


def _write_arrays(
    root: Path, group: GroupSpec, clips: Sequence[StoredClip], row_sizes: NDArray[np.int64] | None
) -> dict[str, dict[str, Any]]:
    """Write the metadata of a group's arrays, which are returned, and the chunks that name its rows."""
    within = [clip.within(group.name) for clip in clips]
    ids: dict[str, Sequence[str] | NDArray[Any]] = {
        "clip": [clip.clip_id for clip in within],
        "status": np.array([GROUP_STATUSES.index(clip.status) for clip in within], np.uint8),
    }
    if texts := [clip.text for clip in within if clip.text is not None]:
        ids["text"] = texts
    n_frames = 0
    if row_sizes is not None:
        ids[ROW_SIZE] = row_sizes.astype("<i8")
        n_frames = int(row_sizes.sum())
    nodes = array_nodes(group, len(clips), texts="text" in ids, n_frames=n_frames)
    for name, node in nodes.items():
        _write_node(root, f"{group.name}/{name}", node)
    for name, rows in ids.items():
        size = block_rows(name, len(clips))
        for start in range(0, len(clips), size):
            part = rows[start : start + size]
            if isinstance(part, np.ndarray):
                chunk = part.tobytes().ljust(size * part.itemsize, b"\0")  # 0 is the fill value of both
            else:
                chunk = string_chunk(part, size)
            path = root / chunk_file(f"{group.name}/{name}", start // size)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(with_checksum(chunk))
    return nodes


def array_nodes(
    group: GroupSpec, n_clips: int, *, texts: bool, n_frames: int = 0
) -> dict[str, dict[str, Any]]:
    """Return the metadata of a group's arrays, by name; `n_frames` is that of all clips of a ragged group."""
    kinds: dict[str, tuple[tuple[int, ...], str]] = {}
    for name, (shape, dtype) in group.clip_arrays().items():
        whole_shape = (n_clips, *shape)
        if group.ragged and name in RAGGED_ARRAYS:
            whole_shape = (n_frames, *shape[1:])
        kinds[name] = (whole_shape, dtype.name)
    ids = ["clip", "status"]
    if texts:
        ids.append("text")
    if group.ragged:
        ids.append(ROW_SIZE)
    for name in ids:
        kinds[name] = ((n_clips,), ARRAYS[name].dtypes[0])
    return {
        name: array_layout(name, shape, dtype, group.dimensions(name), ragged=group.ragged)
        for name, (shape, dtype) in sorted(kinds.items())
    }


def _group(attributes: dict[str, Any], below: Mapping[str, object]) -> dict[str, Any]:
    """Return the metadata of a group, with those of all below it, for readers that cannot list folders."""
    inline = {"kind": "inline", "must_understand": False, "metadata": below}
    return {"attributes": attributes, "zarr_format": 3, "consolidated_metadata": inline, "node_type": "group"}


def _write_node(root: Path, name: str, node: Mapping[str, object]) -> None:
    """Write the metadata of a group or an array as zarr-python does: the bytes of a store hang on it."""
    path = root / FEATURES / name / ZARR_METADATA
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(json.dumps(node, indent=2, allow_nan=False).encode())


# --- the card
# ---------------------------------------------------------------------------
def facts_of(about: Mapping[str, Any], clips: Sequence[StoredClip], groups: Sequence[GroupSpec]) -> Facts:
    """Gather the content of a card."""
    counts = Counter(clip.status for clip in clips)
    described = []
    for group in groups:
        arrays = [
            f"{spec.name}: {spec.dtype} [{', '.join(group.dimensions(spec.name))}], {_size(spec)} a clip"
            for spec in group.arrays
        ]
        described.append((group.name, group.provenance, arrays))
    return Facts(about, {status: counts[status] for status in STATUSES}, described, absent_counts(clips))


def _size(spec: ArraySpec) -> str:
    """Write the shape of a clip's array."""
    if spec.ragged:
        return f"any number x {spec.shape[1]}"
    return " x ".join(map(str, spec.shape))


def _on_hub(licence: str) -> str:
    """Return the Hub's name of a licence; "other" if it has none."""
    names = packaged(__package__, "hub_licences.toml")
    return licence if licence in names["same"].lower().split() else str(names["others"].get(licence, "other"))


def readme(facts: Facts, citing: Sequence[str] = ()) -> str:
    """Write the card: front matter as the Hub's dataset cards have it, then the same as text.

    `citing` are lines to paste; the card inside a store has none, since it is written before there is a
    fingerprint.
    """
    kind = "text-features" if facts.rows == TEXTS else "video-features"
    values = {
        "facts": facts,
        "citing": citing,
        "about": facts.about,
        "known": _on_hub(facts.about["licence"].lower()),
        "size": _SIZES[min(len(_SIZES) - 1, max(0, len(str(facts.total)) - 3))],
        "tags": ["obygaze", kind, "zarr", *(name for name, *_ in facts.groups)],
        "counts": ", ".join(f"{facts.counts[status]} {status}" for status in (*STATUSES[1:], STATUSES[0])),
        "table": TABLE,
    }
    return filled(__package__, "card.md.jinja", values, filters={"json": json.dumps, "known": _known})


def _known(value: object) -> object:
    return "unknown" if value is None else value


# --- croissant.json
# ---------------------------------------------------------------------------
def croissant(facts: Facts, version: str, table_sha256: str, table_bytes: int) -> bytes:
    """Write croissant.json of a card's content, with the digest and the size of `data/clips.csv`."""
    return croissant_json(
        facts,
        name=_name(facts.about["corpus"]["name"]),
        licence=_licence(facts.about["licence"]),
        version=version,
        limits=limits(facts),
        table_sha256=table_sha256,
        table_bytes=table_bytes,
    )


def _name(corpus: str) -> str:
    """Return a name of letters, digits, '-' and '_', as Croissant demands."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", f"Features of {corpus}").strip("-")


def _licence(licence: str) -> str:
    """Return the URL of a licence at SPDX; an expression of several stays as it is."""
    is_one = re.fullmatch(rf"(?!{NO_LICENCE}$|LicenseRef)[A-Za-z0-9.+-]+", licence)
    return f"https://spdx.org/licenses/{licence}.html" if is_one else licence
