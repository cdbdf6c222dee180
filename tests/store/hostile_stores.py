"""Stores whose digests fit and whose content was made to do harm."""

import gzip
import json

from fastcrc.crc32 import iscsi as crc32c
from numcodecs.zstd import Zstd

from obygaze_features.io import file_sha256
from obygaze_features.store.store_files import digests_bytes, parse_info, tag_files, write_bag

MANIFEST = "manifest-sha256.txt"
TAGS = "tagmanifest-sha256.txt"


def retag(store):
    (store / TAGS).write_bytes(digests_bytes({name: file_sha256(store / name) for name in tag_files(store)}))


def resealed(store):
    """Make every digest, and the sizes, fit what is in the store now."""
    info = parse_info((store / "bag-info.txt").read_bytes())
    write_bag(store, info, (store / "README.md").read_bytes().decode(), {})


def with_checksum(data):
    return data + crc32c(data).to_bytes(4, "little")


ZSTANDARD = b"\x28\xb5\x2f\xfd"
"""The magic number with which a frame of Zstandard begins (RFC 8878, 3.1.1)."""
BLOCK_BYTES = 1 << 17
RUN = 1
"""The type of a block that repeats one byte."""


def blocks_of_zeros(n_blocks):
    """Write blocks of a Zstandard frame: 4 bytes each, that decompress to 128 KB of zeros."""
    blocks = []
    for number in range(n_blocks):
        is_last = number == n_blocks - 1
        header = BLOCK_BYTES << 3 | RUN << 1 | int(is_last)
        blocks.append(header.to_bytes(3, "little") + b"\0")
    return b"".join(blocks)


def frame_without_size(n_blocks):
    """Write a Zstandard frame of zeros that does not say how many bytes it decompresses to."""
    descriptor = b"\x00"  # neither size nor checksum
    window = b"\x58"  # 2 MB
    return ZSTANDARD + descriptor + window + blocks_of_zeros(n_blocks)


def frame_with_size(n_blocks, n_bytes):
    """Write a Zstandard frame of zeros that says how many bytes it decompresses to, true or not."""
    descriptor = b"\xa0"  # a size of 4 bytes, and no window
    return ZSTANDARD + descriptor + n_bytes.to_bytes(4, "little") + blocks_of_zeros(n_blocks)


STRING_BOMBS = {
    "claims 1.2e9 items": with_checksum(Zstd().encode((1_200_000_000).to_bytes(4, "little"))),
    "runs of 8 GB": with_checksum(frame_without_size(n_blocks=65_536)),
    "says 512 MB": with_checksum(frame_with_size(n_blocks=4096, n_bytes=1 << 29)),
    "longer than itself": with_checksum(Zstd().encode(b"\x14\0\0\0" + b"\xff" * 8)),
}


def compress_otherwise(store, size):
    """Replace the one chunk of toy/pooled by `size` zeros, a multiple of 10 MB, compressed with gzip.

    The metadata of the array, and their copy in those of the store, state gzip too.
    """
    codecs = [
        {"name": "bytes", "configuration": {"endian": "little"}},
        {"name": "gzip", "configuration": {"level": 9}},
    ]
    array = store / "data/features.zarr/toy/pooled"
    document = json.loads((array / "zarr.json").read_bytes())
    document["codecs"] = codecs
    (array / "zarr.json").write_text(json.dumps(document), encoding="utf-8")
    root = store / "data/features.zarr/zarr.json"
    document = json.loads(root.read_bytes())
    document["consolidated_metadata"]["metadata"]["toy/pooled"]["codecs"] = codecs
    root.write_text(json.dumps(document), encoding="utf-8")

    # A stream of gzip may have several members, one behind the other: each is 10 MB of zeros.
    n_bytes_of_member = 10_000_000
    member = gzip.compress(bytes(n_bytes_of_member), 1)
    (array / "c/0/0").write_bytes(member * (size // n_bytes_of_member))


def change_attributes(store, change):
    """Change what a store says of itself; `change` gets the attributes of its root and of its group."""
    root = store / "data/features.zarr/zarr.json"
    document = json.loads(root.read_bytes())
    inner = store / "data/features.zarr/toy/zarr.json"
    group = json.loads(inner.read_bytes())
    change(document["attributes"]["obygaze"], group["attributes"]["provenance"])
    document["consolidated_metadata"]["metadata"]["toy"]["attributes"] = group["attributes"]
    root.write_text(json.dumps(document), encoding="utf-8")
    inner.write_text(json.dumps(group), encoding="utf-8")
    resealed(store)
