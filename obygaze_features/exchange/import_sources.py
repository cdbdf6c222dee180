"""Find features from other tools, in one file or HDF5 group per clip, and match them to clips."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tokenize import TokenError
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from obygaze_features.errors import StoreError

MOST_BYTES = 1 << 30
"""More than this for one clip is no clip's features: the file is refused before it is read."""

DEEPEST = 8
"""Groups within groups: a file may link a group into itself, and would never end."""

NOT_NPY = (ValueError, TypeError, KeyError, EOFError, OverflowError, RuntimeError, SyntaxError, TokenError)
"""What numpy raises for a header that is none; it reads the header as Python text."""

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Piece:
    """One clip's features, where others keep them.

    Attributes
    ----------
    where
        What messages call it.
    load
        Reads its arrays by name; a single array's name does not matter.
    status, reason
        Status of the clip, if known.
    """

    where: str
    load: Callable[[], Arrays]
    status: str = "ok"
    reason: str = ""


@dataclass(frozen=True)
class Matched:
    """The matching of features to clips.

    Attributes
    ----------
    pieces
        Clip id -> its features.
    unknown
        Names that belong to no clip.
    absent
        Clips without features.
    """

    pieces: Mapping[str, Piece]
    unknown: tuple[str, ...]
    absent: tuple[str, ...]


def match(found: Mapping[str, Piece], wanted: Mapping[str, str]) -> Matched:
    """Match features to clips by exact name.

    Parameters
    ----------
    found
        Path without suffix -> features.
    wanted
        Clip id -> name. If no name has a '/', only the last part of the paths is compared.

    Raises
    ------
    StoreError
        If features have the name of two clips, or two files have the name of one.
    """
    clips: dict[str, str] = {}
    twins: dict[str, str] = {}
    for clip, name in wanted.items():
        if clips.setdefault(name, clip) != clip:
            twins.setdefault(name, clip)
    deep = any("/" in name for name in clips)
    named: dict[str, Piece] = {}
    unknown = []
    for path, piece in found.items():
        name = path if deep else path.rpartition("/")[2]
        if name not in clips:
            unknown.append(path)
        elif name in twins:
            raise StoreError(
                f"clips {clips[name]} and {twins[name]}: "
                f"both would be called {name!r}; tell them apart with --pattern"
            )
        elif name in named:
            raise StoreError(
                f"{piece.where} and {named[name].where}: both are called {name!r}, clip {clips[name]}; tell "
                "them apart with a --pattern that has the folder, such as {movie}/{video}"
            )
        else:
            named[name] = piece
    pieces = {clip: named[name] for clip, name in wanted.items() if name in named}
    return Matched(pieces, tuple(unknown), tuple(clip for clip in wanted if clip not in pieces))


def files_below(folder: Path, suffix: str, read: Callable[[Path], NDArray[Any]]) -> dict[str, Piece]:
    """Find every file with a suffix: path without it, relative, with '/' -> its features."""
    if not folder.is_dir():
        raise StoreError(
            f"{folder}: is a file; --from {suffix[1:]} reads a folder with a file per clip. "
            "One matrix with a row per clip: --from table --ids FILE"
        )
    found = {}
    for place, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(place, name)
            if name.endswith(suffix) and path.is_file():
                key = path.relative_to(folder).as_posix().removesuffix(suffix)
                found[key] = Piece(str(path), partial(_single, read, path))
    if not found:
        raise StoreError(f"{folder}: no file {suffix} in it or below")
    return found


def _single(read: Callable[[Path], NDArray[Any]], path: Path) -> Arrays:
    return {"": read(path)}


def read_npy(path: Path) -> NDArray[Any]:
    """Read a .npy file; refuses pickles and headers larger than the file.

    Raises
    ------
    StoreError
        If it is not such a file.
    """
    try:
        with path.open("rb") as file:
            head = file.read(12)
        if head[6:7] > b"\x01" and int.from_bytes(head[8:], "little") > path.stat().st_size:
            raise ValueError("its header is said to be longer than the file")
        mapped = np.lib.format.open_memmap(path, mode="r")
        refuse_giants(mapped.nbytes, str(path))
        if not mapped.size:
            raise ValueError(f"its shape {mapped.shape} holds no number")
        return np.array(mapped)
    except StoreError:
        raise
    except NOT_NPY as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0][:200]
        raise StoreError(f"{path}: not a readable .npy file ({reason})") from error


def refuse_giants(size: int, where: str) -> None:
    """Refuse arrays too large for one clip before reading them."""
    if size > MOST_BYTES:
        raise StoreError(f"{where}: {size} bytes for one clip; expected at most {MOST_BYTES}")


@contextmanager
def hdf5_pieces(path: Path) -> Iterator[tuple[dict[str, Piece], dict[str, str]]]:
    """Open an HDF5 file with one group per clip; yield path -> features, and the file's own texts.

    An exported group has its clip and status in its attributes.

    Raises
    ------
    StoreError
        If it is no such file. Links, and datasets that lie in other files, are never followed.
    """
    with naming_damage(str(path)):
        file = h5py.File(path, "r")
    with file:
        found: dict[str, Piece] = {}
        with naming_damage(str(path)):
            if "X" in file and "obs" in file:
                raise StoreError(f"{path}: is AnnData; --from table reads it")
            for group in _groups(file, str(path), {}):
                key = text_of(group.attrs, "clip") or group.name.strip("/")
                where = f"{path}, group {group.name}"
                if key in found:
                    raise StoreError(f"{where}: clip {key} is in the file twice")
                load = partial(_read_group, group, where)
                found[key] = Piece(
                    where, load, text_of(group.attrs, "status") or "ok", text_of(group.attrs, "reason")
                )
            texts = {name: text_of(file.attrs, name) for name in ("provenance", "backbone")}
        if not found:
            raise StoreError(
                f"{path}: expected a group for each clip, with a dataset in it; "
                "found none. One matrix with a row per clip: --from table"
            )
        yield found, texts


@contextmanager
def naming_damage(where: str) -> Iterator[None]:
    """Turn what h5py raises for damaged bytes into an error that says where they are."""
    try:
        yield
    except StoreError:
        raise
    except OSError as error:
        if error.errno is not None:
            raise
        raise StoreError(f"{where}: not readable as HDF5 ({str(error)[:200]})") from error
    except (RuntimeError, KeyError, ValueError, TypeError, UnicodeDecodeError) as error:
        raise StoreError(f"{where}: damaged HDF5 ({str(error)[:200]})") from error


def _groups(node: h5py.Group, where: str, seen: dict[int, str], depth: int = 0) -> Iterator[h5py.Group]:
    """Yield every group below that holds a dataset; `seen` is where the others lie -> their first name.

    Hard links give a group many names: a few levels of such groups have more paths than could ever be walked.
    """
    if depth > DEEPEST:
        raise StoreError(f"{where}: groups within groups, more than {DEEPEST} deep")
    for name in node:
        if not isinstance(node.get(name, getlink=True), h5py.HardLink):
            raise StoreError(f"{where}: {node.name.rstrip('/')}/{name} is a link; only plain groups are read")
        child = node[name]
        if isinstance(child, h5py.Group):
            if any(isinstance(plain_node(child, key), h5py.Dataset) for key in child):
                yield child
                continue
            place = h5py.h5o.get_info(child.id).addr
            if place in seen:
                raise StoreError(
                    f"{where}: {node.name.rstrip('/')}/{name} is the same group as {seen[place]}; "
                    "expected one place for every group of clips"
                )
            seen[place] = f"{node.name.rstrip('/')}/{name}"
            yield from _groups(child, where, seen, depth + 1)


def plain_node(group: h5py.Group, name: str) -> object:
    """Return what a group holds under a name, or None where it is a link."""
    return group[name] if isinstance(group.get(name, getlink=True), h5py.HardLink) else None


def _read_group(group: h5py.Group, where: str) -> dict[str, NDArray[Any]]:
    arrays = {}
    size = 0
    with naming_damage(where):
        for name in group:
            dataset = plain_node(group, name)
            if not isinstance(dataset, h5py.Dataset) or dataset.external or dataset.is_virtual:
                raise StoreError(f"{where}: {name} is not a plain dataset of this file")
            if dataset.dtype.kind not in "fiu" or dataset.shape is None:
                raise StoreError(f"{where}: {name} holds {dataset.dtype}, expected numbers")
            size += int(dataset.size) * dataset.dtype.itemsize
            refuse_giants(size, where)
            arrays[name] = np.asarray(dataset[()])
    return arrays


def text_of(attributes: Mapping[str, Any], name: str) -> str:
    """Read an attribute that is a text; empty where there is none."""
    value = attributes.get(name, "")
    return value if isinstance(value, str) else ""
