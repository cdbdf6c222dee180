"""Write a sealed store's files other than chunks and shards: metadata, ids, table, card and bag."""

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from zarr.storage import LocalStore

from obygaze_features.io import sha256_of
from obygaze_features.store.arrays import create_array
from obygaze_features.store.dataset_card import Facts, croissant, describe, readme
from obygaze_features.store.format import ATTRIBUTE, CROISSANT, FEATURES, PROVENANCE, STATUSES, TABLE
from obygaze_features.store.records import GroupSpec, StoredClip, clips_csv_bytes
from obygaze_features.store.store_files import write_bag


def write_all_but_parts(
    root: Path,
    clips: Sequence[StoredClip],
    groups: Sequence[GroupSpec],
    about: dict[str, Any],
    *,
    version: str,
    parts: Mapping[str, str],
) -> None:
    """Write a store's files around its chunks and shards.

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
        _write_ids(below, clips)
        _consolidate(root, group.name)
    _consolidate(root, None)
    names = [f"{group.name}/{array}" for group in groups for array in group.clip_arrays()]
    (root / TABLE).write_bytes(clips_csv_bytes(clips, names))
    counts = Counter(clip.status for clip in clips)
    told = [(group.name, group.provenance, _describe(group)) for group in groups]
    facts = Facts(about, {status: counts[status] for status in STATUSES}, told)
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
    status[:] = np.array([STATUSES.index(clip.status) for clip in clips], dtype=np.uint8)
    texts = [clip.text for clip in clips if clip.text is not None]
    if texts:
        text = create_array(node, "text", (len(clips),), "string", ("clip",))
        text[:] = np.array(texts, dtype=np.dtypes.StringDType())


def _consolidate(building: Path, group: str | None) -> None:
    """Consolidate the metadata, for readers that cannot list folders; each group can be opened alone too."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Consolidated metadata is currently not part")
        zarr.consolidate_metadata(LocalStore(building / FEATURES), path=group)
