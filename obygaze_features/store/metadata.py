"""Write the files of a store except chunks and shards: metadata, ids, table, bag, card, croissant.json.

The card, README.md, has the front matter that dataset hubs read; `card.md.jinja` is its template.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from obygaze_features.io import sha256_of
from obygaze_features.store.arrays import array_layout, string_chunk, with_checksum
from obygaze_features.store.croissant import croissant
from obygaze_features.store.facts import Facts
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

_SIZE_CATEGORIES = ("n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M")
"""The Hub's categories of sizes, by the digits of the number of rows: up to 3, 4, 5, 6, and more."""


def write_metadata_files(
    root: Path,
    clips: Sequence[StoredClip],
    groups: Sequence[GroupSpec],
    about: dict[str, Any],
    *,
    version: str,
    feature_files: Mapping[str, str],
    digests: Iterable[Mapping[str, str]],
    row_sizes: Mapping[str, NDArray[np.int64]],
) -> None:
    """Write all files of a store except the chunks and shards of its features.

    They are the metadata of Zarr, the table of clips, the card for Croissant and the files of the bag.

    Parameters
    ----------
    root
        Folder of the store, which already has all chunks and shards.
    clips
        The clips, in the order of the rows.
    groups
        Declarations of the groups.
    about
        The store's attributes.
    version
        The store's version.
    feature_files
        File -> SHA-256 of every chunk and shard.
    digests
        For each clip in order: `group/array` -> SHA-256 of its row.
    row_sizes
        Name of a ragged group -> number of frames of every clip, int64 [N].
    """
    _write_zarr_metadata(root, clips, groups, about, row_sizes)

    array_names: list[str] = []  # `group/array`
    for group in groups:
        array_names += [f"{group.name}/{array}" for array in group.clip_arrays()]
    table = clips_csv_bytes(clips, array_names, digests)
    (root / TABLE).write_bytes(table)

    facts = facts_of(about, clips, groups)
    description = croissant(facts, version, table_sha256=sha256_of(table), table_bytes=len(table))
    (root / CROISSANT).write_bytes(description)

    bag_info = {
        "External-Description": f"obygaze feature store, format {about['spec_version']}",
        "Store-Version": version,
    }
    write_bag(root, bag_info, readme(facts), feature_files)


def _write_zarr_metadata(
    root: Path,
    clips: Sequence[StoredClip],
    groups: Sequence[GroupSpec],
    about: dict[str, Any],
    row_sizes: Mapping[str, NDArray[np.int64]],
) -> None:
    """Write the Zarr metadata of a store: of its groups, their arrays and the root group.

    The root group has the metadata of all others too, so that a reader needs only one file. The parameters
    are those of `write_metadata_files`.
    """
    nodes: dict[str, dict[str, Any]] = {}  # path of each group and array -> its metadata
    for group in groups:
        attributes = {PROVENANCE: _provenance(group, about["corpus"])}
        metadata_of_array = _write_arrays(root, group, clips, row_sizes.get(group.name))
        _write_node(root, group.name, _group_node(attributes, metadata_of_array))
        # In the root group's list the arrays stand beside their group, and not in its metadata.
        nodes[group.name] = _group_node(attributes, {})
        for name, metadata in metadata_of_array.items():
            nodes[f"{group.name}/{name}"] = metadata

    def order_of_zarr_python(path: str) -> tuple[int, str, str]:
        """Order all groups before all arrays, each by name."""
        return path.count("/"), path.casefold(), path

    nodes_in_order = {path: nodes[path] for path in sorted(nodes, key=order_of_zarr_python)}
    _write_node(root, "", _group_node({ATTRIBUTE: about}, nodes_in_order))


def _provenance(group: GroupSpec, corpus: dict[str, object]) -> dict[str, object]:
    """Return the provenance of a group as it is sealed: with the data types of its arrays, and the corpus."""
    storage = {spec.name: spec.dtype for spec in sorted(group.arrays, key=lambda spec: spec.name)}
    return {**group.provenance, "storage": storage, "source": corpus}


def _write_arrays(
    root: Path, group: GroupSpec, clips: Sequence[StoredClip], row_sizes: NDArray[np.int64] | None
) -> dict[str, dict[str, Any]]:
    """Write the metadata of a group's arrays, and the arrays that describe its rows.

    The latter are the clips' ids and statuses; in a store of texts the texts, and in a ragged group the
    numbers of frames.

    Parameters
    ----------
    root
        Folder of the store.
    group
        Declaration of the group.
    clips
        All clips of the store, in the order of the rows.
    row_sizes
        In a ragged group, the number of frames of every clip, [N]; else None.

    Returns
    -------
    dict
        Name of each array -> its metadata.
    """
    # The arrays that describe the rows: name -> a value for each clip
    clips_of_group = [clip.within(group.name) for clip in clips]  # with their status in this group
    statuses = [GROUP_STATUSES.index(clip.status) for clip in clips_of_group]
    columns: dict[str, Sequence[str] | NDArray[Any]] = {
        "clip": [clip.clip_id for clip in clips_of_group],
        "status": np.array(statuses, np.uint8),
    }
    texts = [clip.text for clip in clips_of_group if clip.text is not None]
    if texts:
        columns["text"] = texts
    n_frames = 0
    if row_sizes is not None:
        columns[ROW_SIZE] = row_sizes.astype("<i8")
        n_frames = int(row_sizes.sum())

    # The metadata of these arrays and of those with features, and the values of these
    metadata_of_array = array_nodes(group, len(clips), texts="text" in columns, n_frames=n_frames)
    for name, metadata in metadata_of_array.items():
        _write_node(root, f"{group.name}/{name}", metadata)
    for name, column in columns.items():
        _write_column(root, f"{group.name}/{name}", column, block_rows(name, len(clips)))
    return metadata_of_array


def _write_column(root: Path, array: str, column: Sequence[str] | NDArray[Any], chunk_rows: int) -> None:
    """Write the chunks of an array that has one value for each clip."""
    for start in range(0, len(column), chunk_rows):
        values = column[start : start + chunk_rows]
        if isinstance(values, np.ndarray):
            # Filled up with 0, the fill value of statuses and of numbers of frames.
            chunk = values.tobytes().ljust(chunk_rows * values.itemsize, b"\0")
        else:
            chunk = string_chunk(values, chunk_rows)
        path = root / chunk_file(array, start // chunk_rows)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(with_checksum(chunk))


def array_nodes(
    group: GroupSpec, n_clips: int, *, texts: bool, n_frames: int = 0
) -> dict[str, dict[str, Any]]:
    """Return the metadata of a group's arrays, by name.

    Parameters
    ----------
    group
        The group.
    n_clips
        Number of clips of the store.
    texts
        Whether the rows of the store are texts.
    n_frames
        Number of frames of all clips, in a ragged group.
    """
    shapes: dict[str, tuple[int, ...]] = {}  # of whole arrays
    dtypes: dict[str, str] = {}

    # The arrays of features and times.
    for name, (clip_shape, dtype) in group.clip_arrays().items():
        if group.ragged and name in RAGGED_ARRAYS:
            shapes[name] = (n_frames, *clip_shape[1:])
        else:
            shapes[name] = (n_clips, *clip_shape)
        dtypes[name] = dtype.name

    # The arrays with one value for each clip.
    column_names = ["clip", "status"]
    if texts:
        column_names.append("text")
    if group.ragged:
        column_names.append(ROW_SIZE)
    for name in column_names:
        shapes[name] = (n_clips,)
        dtypes[name] = ARRAYS[name].dtypes[0]

    return {
        name: array_layout(name, shapes[name], dtypes[name], group.dimensions(name), ragged=group.ragged)
        for name in sorted(shapes)
    }


def _group_node(attributes: dict[str, Any], nodes: Mapping[str, object]) -> dict[str, Any]:
    """Return the Zarr metadata of a group, with a copy of the metadata of the nodes below it.

    With this copy ("consolidated metadata"), readers over HTTP need not list folders.
    """
    inline = {"kind": "inline", "must_understand": False, "metadata": nodes}
    return {"attributes": attributes, "zarr_format": 3, "consolidated_metadata": inline, "node_type": "group"}


def _write_node(root: Path, name: str, node: Mapping[str, object]) -> None:
    """Write the zarr.json of a group or an array, with the bytes that zarr-python would write.

    Parameters
    ----------
    root
        Folder of the store.
    name
        Path of the node below the root group; empty for the root group.
    node
        Its metadata.
    """
    path = root / FEATURES / name / ZARR_METADATA
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(json.dumps(node, indent=2, allow_nan=False).encode())


# --- the card
# ---------------------------------------------------------------------------
def facts_of(about: Mapping[str, Any], clips: Sequence[StoredClip], groups: Sequence[GroupSpec]) -> Facts:
    """Gather what README.md and croissant.json say of a store.

    Parameters
    ----------
    about
        The store's attributes: licence, citation, corpus and so on.
    clips, groups
        Its clips, and the declarations of its groups.
    """
    counter = Counter(clip.status for clip in clips)
    counts = {status: counter[status] for status in STATUSES}
    described_groups = []
    for group in groups:
        array_lines = []
        for spec in group.arrays:
            dimensions = ", ".join(group.dimensions(spec.name))
            clip_shape = _shown_clip_shape(spec)
            array_lines.append(f"{spec.name}: {spec.dtype} [{dimensions}], {clip_shape} a clip")
        described_groups.append((group.name, group.provenance, array_lines))
    return Facts(about, counts, described_groups, absent_counts(clips))


def _shown_clip_shape(spec: ArraySpec) -> str:
    """Return the shape of one clip's array as text, such as "32 x 768" or "any number x 768"."""
    if spec.ragged:
        return f"any number x {spec.shape[1]}"
    return " x ".join(map(str, spec.shape))


def _hub_licence(licence: str) -> str:
    """Return the name that the Hugging Face Hub uses for a licence; "other" if it has none.

    Parameters
    ----------
    licence
        SPDX expression in small letters.
    """
    names = packaged(__package__, "hub_licences.toml")
    same_names = names["same"].lower().split()
    if licence in same_names:
        return licence
    return str(names["others"].get(licence, "other"))


def _size_category(n_rows: int) -> str:
    """Return the Hub's category of sizes for a number of rows, such as "1K<n<10K"."""
    n_digits = len(str(n_rows))  # the categories end at powers of ten: the first one has up to three digits
    position = min(max(0, n_digits - 3), len(_SIZE_CATEGORIES) - 1)
    return _SIZE_CATEGORIES[position]


def readme(facts: Facts, citing: Sequence[str] = ()) -> str:
    """Return the text of README.md: the front matter of a dataset card of the Hub, then a description.

    Parameters
    ----------
    facts
        Corpus, groups and clip counts of the store.
    citing
        Lines with citations to paste. The README inside a store has none, because citations name the
        fingerprint, which exists only after all files are written.
    """
    tag = "text-features" if facts.rows == TEXTS else "video-features"
    group_names = [name for name, *_ in facts.groups]

    # The numbers of clips by status; those that nobody computed come last.
    statuses = [status for status in STATUSES if status != "missing"]
    counts = [f"{facts.counts[status]} {status}" for status in (*statuses, "missing")]

    values_of_template = {
        "facts": facts,
        "citing": citing,
        "about": facts.about,
        "hub_licence": _hub_licence(facts.about["licence"].lower()),
        "size": _size_category(facts.total),
        "tags": ["obygaze", tag, "zarr", *group_names],
        "counts": ", ".join(counts),
        "table": TABLE,
    }
    return filled(
        __package__,
        "card.md.jinja",
        values_of_template,
        filters={"json": json.dumps, "known": _known},
    )


def _known(value: object) -> object:
    """Return a value, or "unknown" for None; a filter of the template of README.md."""
    return "unknown" if value is None else value
