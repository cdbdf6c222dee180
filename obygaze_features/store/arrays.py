"""The arrays of a sealed store, exactly as the format lays them out."""

from typing import Any

import numpy as np
import zarr
from zarr.codecs import BytesCodec, Crc32cCodec, VLenUTF8Codec, ZstdCodec

from obygaze_features.store.layout import FILLS, block_rows

_BYTES = {"name": "bytes", "configuration": {"endian": "little"}}
_CRC32C = {"name": "crc32c"}
_ZSTD = {"name": "zstd", "configuration": {"level": 3, "checksum": False}}


def create_array(
    node: zarr.Group, name: str, shape: tuple[int, ...], dtype: str, dimension_names: tuple[str, ...]
) -> zarr.Array[Any]:
    """Create an array of a group; its first dimension is the clips."""
    block = (block_rows(name, shape[0]), *shape[1:])
    sharded = name == "tokens"
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
        fill_value=FILLS[name],
        dimension_names=dimension_names,
        config={"write_empty_chunks": True},
    )


def array_layout(
    name: str, shape: tuple[int, ...], dtype: str, dimension_names: tuple[str, ...]
) -> dict[str, object]:
    """Give the metadata that the format demands of an array, without the fields that may be left out."""
    block = [block_rows(name, shape[0]), *shape[1:]]
    codecs: list[object] = [_BYTES, _CRC32C]
    if dtype == "string":
        codecs = [{"name": "vlen-utf8"}, _ZSTD, _CRC32C]
    elif dtype == "uint8":
        codecs = [{"name": "bytes"}, _CRC32C]
    elif name == "tokens":
        inner = {
            "chunk_shape": [1, *shape[1:]],
            "codecs": codecs,
            "index_codecs": codecs,
            "index_location": "end",
        }
        codecs = [{"name": "sharding_indexed", "configuration": inner}]
    fill = FILLS[name]
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": list(shape),
        "data_type": dtype,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": block}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": "NaN" if isinstance(fill, float) else fill,
        "codecs": codecs,
        "dimension_names": list(dimension_names),
    }
