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


def frame_of_runs(blocks):
    """A Zstandard frame of blocks of 128 KB of one byte each, 4 bytes a block, that does not say its size."""
    head = b"\x28\xb5\x2f\xfd\x00\x58"
    body = [
        (1 << 17 << 3 | 1 << 1 | (number == blocks - 1)).to_bytes(3, "little") for number in range(blocks)
    ]
    return head + b"".join(block + b"\0" for block in body)


STRING_BOMBS = {
    "claims 1.2e9 items": with_checksum(Zstd().encode((1_200_000_000).to_bytes(4, "little"))),
    "runs of 8 GB": with_checksum(frame_of_runs(65_536)),
    "says 512 MB": with_checksum(
        b"\x28\xb5\x2f\xfd\xa0" + (1 << 29).to_bytes(4, "little") + frame_of_runs(4096)[6:]
    ),
    "longer than itself": with_checksum(Zstd().encode(b"\x14\0\0\0" + b"\xff" * 8)),
}


def compress_otherwise(store, size):
    """Make the one chunk of toy/pooled a gzip stream, with metadata that say so, of so many bytes."""
    array = store / "data/features.zarr/toy/pooled"
    for file in (array / "zarr.json", store / "data/features.zarr/zarr.json"):
        document = json.loads(file.read_bytes())
        within = document
        if "consolidated_metadata" in document:
            within = document["consolidated_metadata"]["metadata"]["toy/pooled"]
        within["codecs"] = [
            {"name": "bytes", "configuration": {"endian": "little"}},
            {"name": "gzip", "configuration": {"level": 9}},
        ]
        file.write_text(json.dumps(document), encoding="utf-8")
    piece = 10_000_000
    (array / "c/0/0").write_bytes(gzip.compress(bytes(piece), 1) * (size // piece))


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
