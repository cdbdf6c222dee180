"""Find features from other tools, in one file per clip, and match them to clips."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
from numpy.typing import NDArray

from obygaze_features.errors import StoreError, first_line

MOST_BYTES = 1 << 30
"""More than this for one clip is no clip's features: the file is refused before it is read."""

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
        reason = first_line(error, 200)
        raise StoreError(f"{path}: not a readable .npy file ({reason})") from error


def refuse_giants(size: int, where: str) -> None:
    """Refuse arrays too large for one clip before reading them."""
    if size > MOST_BYTES:
        raise StoreError(f"{where}: {size} bytes for one clip; expected at most {MOST_BYTES}")
