"""Define the names and constants of the on-disk format.

The prose is docs/store-format.md; a change here is a change of the format.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final, Literal

from obygaze_features.templates import packaged

Status = Literal["ok", "partial", "failed"]

STATUSES: Final = ("missing", "ok", "partial", "failed")
"""Status of a clip; the index is the code in the `status` arrays."""

ABSENT: Final = "absent"
"""Status of a clip in a group that has no features of it, while other groups have."""

ABSENT_SINCE: Final = "1.2"
"""Version of the format that added this status."""

WITHOUT_PICTURES_SINCE: Final = "1.4"
"""Version of the format that added the column of the stretches in which a clip has no pictures."""

GROUP_STATUSES: Final = (*STATUSES, ABSENT)
"""Status of a clip in one group; the index is the code in the group's `status` array."""

STATUSES_WITH_FEATURES: Final = ("ok", "partial")
"""The statuses whose rows hold features."""

# --- a stage: mutable, never shared
# ---------------------------------------------------------------------------
STAGING_SUFFIX: Final = ".staging"
BUILDING_SUFFIX: Final = ".building"
PULLING_SUFFIX: Final = ".pulling"
MERGING_SUFFIX: Final = ".merging"
IMPORTING_SUFFIX: Final = ".importing"

LAYOUT: Final = 3
"""Version of the layout of stages; stages of another layout are refused."""
RAGGED_LAYOUT: Final = 4
"""Version of the layout of stages in which a group is ragged, and of no others."""
STAGE: Final = "stage.json"
"""In a stage: its layout, groups, corpus, and the store that it extends, if any."""
PLAN: Final = "plan.jsonl"
JOURNALS: Final = "journal"
PIECES: Final = "pieces"
"""Folder of the rows: a few files for every attempt at a piece."""

# --- a sealed store: a BagIt bag around one Zarr group
# ----------------------------------------------------------
BAGIT: Final = "bagit.txt"
BAG_INFO: Final = "bag-info.txt"
DIGESTS: Final = "manifest-sha256.txt"
TAG_DIGESTS: Final = "tagmanifest-sha256.txt"
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

ROW_CHUNK: Final = 1024
"""Clips in a chunk of every small array: all pooled vectors of a corpus in a few reads."""


@dataclass(frozen=True, slots=True)
class ArrayKind:
    """One array that a group of a store may have; codecs, checks, choices and versions follow from it.

    Attributes
    ----------
    name
        As on the disk.
    dims
        Names of its dimensions, the clips' first; one name has one size within a group.
    dtypes
        Data types that it may have, the usual one first.
    chunk
        Clips in one stored object (a chunk, or a shard of chunks of one clip).
    since
        Version of the format that added it.
    features
        Whether it holds what a backbone gave. The others say which clips and frames the rows are.
    sharded
        Whether every clip is its own chunk within a shard, so that one clip can be read alone.
    ragged_chunk
        Rows in one stored object where clips have frames of any number; 0 for arrays that have one row a clip
        in every group.
    empty
        Fill value, where it is not the usual one of the data type.
    """

    name: str
    dims: tuple[str, ...]
    dtypes: tuple[str, ...]
    chunk: int = ROW_CHUNK
    since: str = "1.0"
    features: bool = False
    sharded: bool = False
    ragged_chunk: int = 0
    empty: int | None = None

    @property
    def fill(self) -> float | int | str:
        """Fill value: what stands in rows without features; `status` says which rows these are.

        It is `empty` if the array has one, else that of its data type: NaN for floats.
        """
        if self.empty is not None:
            return self.empty
        fill_of_type: dict[str, float | int | str] = {"string": "", "uint8": 0, "int64": -1}
        return fill_of_type.get(self.dtypes[0], float("nan"))


ARRAYS: Final = {
    name: ArrayKind(name, tuple(facts.pop("dims")), tuple(facts.pop("dtypes")), **facts)
    for name, facts in packaged(__package__, "arrays.toml").items()
}
"""Every array of the format, by name."""

RAGGED_ARRAYS: Final = {
    name: replace(kind, dims=("row", *kind.dims[2:]), chunk=kind.ragged_chunk, since="1.3")
    for name, kind in ARRAYS.items()
    if kind.ragged_chunk
}
"""The arrays that have a row for each frame of each clip in a ragged group, one clip's after another's.

They are contiguous ragged arrays as the CF conventions define them (section 9.3.3); `ROW_SIZE` has the number
of rows of every clip.
"""

ROW_SIZE: Final = "row_size"
"""The array of a ragged group that has the number of frames of every clip; 0 of a clip without features."""

ANY_NUMBER: Final = 0
"""Number of frames of a clip in a ragged group, in which every clip has its own."""

PIECE_ROWS: Final = ARRAYS["tokens"].chunk
"""Rows of a piece: neighbouring clips that are written and journalled as one; a shard of tokens."""

FEATURE_ARRAYS: Final = tuple(name for name, kind in ARRAYS.items() if kind.features)
TIME_ARRAYS: Final = ("time_s", "frame_index")
"""Presentation time and index of every sampled frame, which every clip with features has."""
FEATURE_DTYPES: Final = tuple(sorted({dtype for name in FEATURE_ARRAYS for dtype in ARRAYS[name].dtypes}))


def spec_version(arrays: Iterable[str], *, absent: bool = False, without_pictures: bool = False) -> str:
    """Return the oldest version of the format that has all of the given arrays.

    It is the newest of the versions that brought one of them.

    Parameters
    ----------
    arrays
        Names of arrays.
    absent
        Whether the version must also allow rows that are absent in a group.
    without_pictures
        Whether the version must also have a place for the stretches of clips that lack pictures.
    """
    versions = [ARRAYS[name].since for name in arrays]
    if absent:
        versions.append(ABSENT_SINCE)
    if without_pictures:
        versions.append(WITHOUT_PICTURES_SINCE)
    return max(versions, key=_numbers)


def is_newer(version: str, other: str) -> bool:
    """Return whether a version, of the format or of a store, is newer than another."""
    return _numbers(version) > _numbers(other)


def next_patch(version: str) -> str:
    """Return the version of a store with the same rows and other metadata: 1.0.1 after 1.0.0."""
    major, minor, patch = _numbers(version)
    return f"{major}.{minor}.{patch + 1}"


def _numbers(version: str) -> tuple[int, ...]:
    """Return a version such as `1.2` as numbers, by which versions are ordered."""
    return tuple(map(int, version.split(".")))


SPEC_VERSION: Final = spec_version(ARRAYS, absent=True, without_pictures=True)
"""Newest version of the format, not of this library: stores of newer ones are refused."""


def dimensions(array: str, sizes: tuple[int, ...], n_frames: int) -> tuple[str, ...]:
    """Return the names of the dimensions of an array, the clips' first.

    A network may join neighbouring frames (into "tubelets"), and so give fewer vectors than frames were
    sampled. Its `frames` then have the dimension `tubelet` in place of `frame`; `time_s` still has `frame`.

    Parameters
    ----------
    array
        Name of the array.
    sizes
        Its shape.
    n_frames
        Frames sampled from every clip; `ANY_NUMBER` in a ragged group.
    """
    if n_frames == ANY_NUMBER and array in RAGGED_ARRAYS:
        return RAGGED_ARRAYS[array].dims
    if array == "frames" and sizes[1] != n_frames:
        return ("clip", "tubelet", "feature")
    return ARRAYS[array].dims


def kind_of(array: str, *, ragged: bool = False) -> ArrayKind:
    """Return what the format says of an array: its dimensions, data types, chunks and so on.

    Parameters
    ----------
    array
        Name of the array.
    ragged
        Whether it is in a ragged group, in which arrays of frames have another layout.
    """
    if ragged and array in RAGGED_ARRAYS:
        return RAGGED_ARRAYS[array]
    return ARRAYS[array]


def chunk_file(array: str, number: int, *, ragged: bool = False) -> str:
    """Return the relative path of a chunk or shard, such as `data/features.zarr/toy/frames/c/3/0/0`.

    Parameters
    ----------
    array
        The array, `group/array`.
    number
        Number of the chunk along the first axis; along the others there is one chunk only, 0.
    ragged
        Whether the group is ragged, so that arrays of frames have fewer axes.
    """
    _group, _, name = array.partition("/")
    n_other_axes = len(kind_of(name, ragged=ragged).dims) - 1
    zeros = ["0"] * n_other_axes
    return "/".join([FEATURES, array, "c", str(number), *zeros])


def block_rows(array: str, n_rows: int, *, ragged: bool = False) -> int:
    """Return how many rows one stored object (chunk or shard) of an array has.

    A row is a clip, or, in a ragged array, a frame.

    Parameters
    ----------
    array
        Name of the array.
    n_rows
        Number of all its rows; an object has no more.
    ragged
        Whether the array is in a ragged group.
    """
    return max(1, min(kind_of(array, ragged=ragged).chunk, n_rows))
