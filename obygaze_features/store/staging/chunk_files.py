"""One clip's bytes in a stage: one chunk a file, readable by any Zarr library.

The chunks and their metadata are written here, not by zarr: it never forces a file to the disk, and its event
loop must not run in a process that forks.
"""

from pathlib import Path

from obygaze_features.store.canonical import json_bytes
from obygaze_features.store.checksum import crc32c
from obygaze_features.store.layout import DIMENSIONS, FILLS, ZARR_METADATA
from obygaze_features.store.staging.values import GroupSpec


def group_metadata(attributes: dict[str, object]) -> bytes:
    """Write the zarr.json of a group."""
    return json_bytes({"zarr_format": 3, "node_type": "group", "attributes": attributes})


def array_metadata(group: GroupSpec, name: str, n_clips: int) -> bytes:
    """Write the zarr.json of a staged array: one clip a chunk, unsharded, '.' in the keys of chunks."""
    fill = FILLS[name]
    shape, dtype = group.clip_arrays()[name]
    return json_bytes(
        {
            "zarr_format": 3,
            "node_type": "array",
            "shape": [n_clips, *shape],
            "data_type": dtype.name,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1, *shape]}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "."}},
            "fill_value": "NaN" if isinstance(fill, float) else fill,
            "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}],
            "attributes": {},
            "dimension_names": list(group.dimensions(name)),
        }
    )


def arrays_metadata(zarr_root: Path, groups: tuple[GroupSpec, ...], n_clips: int) -> dict[Path, bytes]:
    """Give path -> bytes of the metadata of every staged array, for this number of clips."""
    return {
        zarr_root / group.name / name / ZARR_METADATA: array_metadata(group, name, n_clips)
        for group in groups
        for name in group.clip_arrays()
    }


def chunk_path(zarr_root: Path, group: str, array: str, row: int) -> Path:
    """Say where one clip's chunk lies."""
    return zarr_root / group / array / ".".join(["c", str(row), *["0"] * (len(DIMENSIONS[array]) - 1)])


def encode_chunk(data: bytes) -> bytes:
    """Append the CRC-32C of a row's bytes, as Zarr's crc32c codec does."""
    return data + crc32c(data).to_bytes(4, "little")


def read_row(path: Path) -> bytes | None:
    """Read a row's bytes back; None if the chunk is missing or its checksum is wrong."""
    try:
        chunk = path.read_bytes()
    except FileNotFoundError:
        return None
    data = chunk[:-4]
    return data if encode_chunk(data) == chunk else None
