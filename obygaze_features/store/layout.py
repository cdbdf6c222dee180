"""Every name and number of the on-disk format 1.1, once.

The prose is docs/store-format.md; a change here is a change of the format.
"""

from typing import Final, Literal

SPEC_VERSION: Final = "1.1"
"""Version of the format, not of this library: a newer major is refused, a newer minor only adds."""


def spec_version(*, texts: bool) -> str:
    """Give the oldest version of the format that has a place for all of a store: 1.1 added texts."""
    return SPEC_VERSION if texts else "1.0"


ArrayName = Literal["pooled", "frames", "tokens"]
Status = Literal["ok", "partial", "failed"]

STATUSES: Final = ("missing", "ok", "partial", "failed")
"""What became of a clip; the index is the code in the `status` arrays."""

DONE: Final = ("ok", "partial")
"""The statuses whose rows hold features."""

# --- a stage: mutable, never shared
# ---------------------------------------------------------------------------
STAGING_SUFFIX: Final = ".staging"
BUILDING_SUFFIX: Final = ".building"
PULLING_SUFFIX: Final = ".pulling"
MERGING_SUFFIX: Final = ".merging"
IMPORTING_SUFFIX: Final = ".importing"
PARTIAL_SUFFIX: Final = ".partial"
"""Ends the name of everything that is not finished yet and may be swept once its writer is gone."""

PLAN: Final = "plan.jsonl"
STAGE_ZARR: Final = "stage.zarr"
JOURNALS: Final = "journal"
PARTIALS: Final = "partial"
"""Folder of unfinished chunks, one folder below it a writer."""

COMMIT_GROUP: Final = 16
"""Clips a commit makes durable together: one round of fsync for all of them."""

# --- a sealed store: a BagIt bag around one Zarr group
# ----------------------------------------------------------
BAGIT: Final = "bagit.txt"
BAG_INFO: Final = "bag-info.txt"
MANIFEST: Final = "manifest-sha256.txt"
TAG_MANIFEST: Final = "tagmanifest-sha256.txt"
CARD: Final = "README.md"
CROISSANT: Final = "croissant.json"
PAYLOAD: Final = "data"
FETCH: Final = "fetch.txt"
"""In a partial copy: the payload files that are not there, and where they are (RFC 8493, 2.2.3)."""
TABLE: Final = "data/clips.csv"
FEATURES: Final = "data/features.zarr"
ZARR_METADATA: Final = "zarr.json"
ATTRIBUTE: Final = "obygaze"
"""Attribute of the root group: spec_version, licence, citation, corpus, parent."""
PROVENANCE: Final = "provenance"
"""Attribute of every backbone's group."""

BAGIT_TEXT: Final = "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n"

TEXTS: Final = "texts"
"""`sampling.policy` of a backbone that reads texts, which have no frames."""

FEATURE_ARRAYS: Final[tuple[ArrayName, ...]] = ("pooled", "frames", "tokens")

DIMENSIONS: Final[dict[str, tuple[str, ...]]] = {
    "clip": ("clip",),
    "status": ("clip",),
    "text": ("clip",),
    "time_s": ("clip", "frame"),
    "frame_index": ("clip", "frame"),
    "pooled": ("clip", "feature"),
    "frames": ("clip", "frame", "feature"),
    "tokens": ("clip", "token", "token_feature"),
}
"""Dimension names of every array; one name has one size within a group."""


def dimensions(array: str, sizes: tuple[int, ...], n_frames: int) -> tuple[str, ...]:
    """Name the dimensions of an array whose sizes are these, the clips' first.

    A network that joins neighbouring frames into tubelets gives fewer vectors than frames were sampled: its
    `frames` then have the dimension `tubelet` in place of `frame`, which `time_s` keeps.
    """
    if array == "frames" and sizes[1] != n_frames:
        return ("clip", "tubelet", "feature")
    return DIMENSIONS[array]


DTYPES: Final[dict[str, tuple[str, ...]]] = {
    "clip": ("string",),
    "status": ("uint8",),
    "text": ("string",),
    "time_s": ("float64",),
    "frame_index": ("int64",),
    "pooled": ("float32",),
    "frames": ("float16", "float32"),
    "tokens": ("float16",),
}
"""Data types that an array may have."""

FILLS: Final[dict[str, float | int | str]] = {
    "clip": "",
    "status": 0,
    "text": "",
    "time_s": float("nan"),
    "frame_index": -1,
    "pooled": float("nan"),
    "frames": float("nan"),
    "tokens": float("nan"),
}
"""What rows without features hold; it means nothing by itself, `status` does."""

ROW_CHUNK: Final = 1024
"""Clips in a chunk of every array but frames and tokens: all pooled vectors of a corpus in a few reads."""
FRAMES_CHUNK: Final = 64
"""Clips in a chunk of frames."""
TOKENS_SHARD: Final = 16
"""Clips in a shard of tokens, each its own inner chunk; 64 would cost a writer 1 GB of memory."""


def block_rows(array: str, n_clips: int) -> int:
    """Count the clips that lie in one object (chunk or shard) of an array; never more than there are."""
    rows = {"frames": FRAMES_CHUNK, "tokens": TOKENS_SHARD}.get(array, ROW_CHUNK)
    return max(1, min(rows, n_clips))
