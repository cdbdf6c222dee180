"""Read files that strangers may have made: opened once, regular, of bounded size, and never waited for.

A pipe or a device in the place of a file would be waited for, or read without end. What matters is what was
opened, so the open file is looked at, not its name.
"""

import errno
import io
import json
import os
import re
import stat
import sys
import tomllib
from functools import cache
from pathlib import Path
from typing import Any, Final

from obygaze_features.errors import InputError, LinkError

STANDARD: Final = Path("-")
"""Standard input where a file is read, standard output where one is written."""

MOST_BYTES: Final = 1 << 28
"""Most bytes of a file that is held in memory, unless its reader sets another limit."""

MOST_LINES: Final = 1 << 30
"""Most bytes of a journal, or of a table that may have a line for each frame."""

NO_FILE: Final = "a pipe or a device, and a file was expected"

LEAST_STEP: Final = 1 << 16
"""Least bytes that are asked for at a time."""

MOST_TOML: Final = 1 << 22
"""Most bytes of a TOML document."""

MOST_DOTS: Final = 200
"""Most points in a line of TOML, in a key or not: memory grows with the square of those of a key."""

FREE_SIGNS: Final = 500
CHARACTERS_OF_A_SIGN: Final = 24
"""Points and opening brackets that any TOML document may have, and characters for each that a longer one has.

Each may begin a table, which takes about a kilobyte. They are counted wherever they stand, in texts and
comments too: what a simpler grammar takes for a text may be a key to the parser. Files that people write have
one in 20 to 80 characters."""

MOST_DIGITS: Final = 1000
"""Digits in a row, hexadecimal ones and `_` too, that a TOML document may have, in a number or not: to parse
a number takes more than a hundred bytes for each digit."""

_LONG_NUMBER = re.compile(rf"(?<![0-9A-Fa-f_])[0-9A-Fa-f_]{{{MOST_DIGITS + 1}}}")

_GIVEN_OPEN = re.compile(r"/(dev|proc/self)/fd/\d+|/dev/stdin")
"""Names of what the caller has opened already, such as the pipe of a shell's `<(...)`."""


def open_regular(path: Path | str, most: int | None = None, *, within: Path | None = None) -> io.FileIO:
    """Open a regular file for reading; a pipe or device, on which reading might wait for ever, is refused.

    Parameters
    ----------
    most
        Largest size in bytes that is accepted; None for any size, if the file is not read into memory.
    within
        An untrusted folder that contains the file: symbolic links below it are not followed. None for a path
        that the user named.

    Raises
    ------
    LinkError
        A part of the path below `within` is a link.
    InputError
        It is a pipe, a device or a socket, or larger.
    OSError
        It cannot be opened, or is a folder; the error names it.
    """
    flags = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
    if within is not None:
        flags |= getattr(os, "O_NOFOLLOW", 0)
        place = os.path.relpath(path, within)
        if os.path.realpath(path) != os.path.join(os.path.realpath(within), place):  # noqa: PTH118
            raise LinkError(f"{path}: a link, and a file of this folder was expected")
    try:
        descriptor = os.open(path, flags)
    except OSError as error:
        if error.errno == errno.ENXIO:  # a socket
            raise InputError(f"{path}: {NO_FILE}") from None
        raise
    status = os.fstat(descriptor)
    wrong: OSError | InputError | None = None
    if stat.S_ISDIR(status.st_mode):
        wrong = IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    elif not stat.S_ISREG(status.st_mode):
        wrong = InputError(f"{path}: {NO_FILE}")
    elif most is not None and status.st_size > most:
        wrong = InputError(_too_large(path, most))  # type: ignore[arg-type]
    if wrong is not None:
        os.close(descriptor)
        raise wrong
    return io.FileIO(descriptor)


def is_given_open(path: Path) -> bool:
    """Return whether a path names standard input, or what the caller's shell has opened."""
    return path == STANDARD or _GIVEN_OPEN.fullmatch(str(path)) is not None


def read_bytes(path: Path, most: int = MOST_BYTES, *, within: Path | None = None) -> bytes:
    """Read a file that has at most `most` bytes, or standard input.

    What standard input held is cached, so that it can be read again.

    Raises
    ------
    InputError, OSError
        In the cases of `open_regular`.
    """
    if is_given_open(path):
        data = _given_open(str(path))
    else:
        with open_regular(path, most, within=within) as file:
            try:
                data = _read_up_to(file, most)
            except OSError as error:
                error.filename = error.filename or str(path)
                raise
    if len(data) > most:
        raise InputError(_too_large(path, most))
    return data


def _read_up_to(file: io.FileIO, most: int) -> bytes:
    """Read a file to its end, or until more than `most` bytes were read."""
    # Each read reserves memory for all that it asks for, so it asks for the size that the file has now.
    step = max(os.fstat(file.fileno()).st_size + 1, LEAST_STEP)
    parts = []
    n_bytes = 0
    while n_bytes <= most:
        part = file.read(step)
        if not part:
            break
        parts.append(part)
        n_bytes += len(part)
    return b"".join(parts)


def read_text(path: Path, most: int = MOST_BYTES) -> str:
    """Read a file of UTF-8 as `read_bytes` does, and decode it (`decoded`)."""
    return decoded(read_bytes(path, most))


def decoded(data: bytes) -> str:
    r"""Decode UTF-8 text with line ends as ``\n``, without the byte order mark that Windows editors write.

    Examples
    --------
    >>> decoded(b"\xef\xbb\xbfname = 1\r\n")
    'name = 1\n'
    """
    return io.TextIOWrapper(io.BytesIO(data), encoding="utf-8-sig").read()


def parse_toml(text: str) -> dict[str, Any]:
    """Parse untrusted TOML; refuse texts that would need much memory or time for their size.

    Raises
    ------
    ValueError
        It is no TOML, is too long, is nested too deeply, has a number without end, or has more points and
        brackets than its size allows.

    Examples
    --------
    >>> parse_toml("a.b = 1")
    {'a': {'b': 1}}
    """
    if len(text) > MOST_TOML:
        raise ValueError(f"more than the {MOST_TOML >> 20} MB that are read")
    for number, row in enumerate(text.split("\n"), start=1):
        if row.count(".") > MOST_DOTS:
            raise ValueError(f"more than {MOST_DOTS} points in line {number}; expected keys of few parts")
    if _LONG_NUMBER.search(text):
        raise ValueError(f"more than {MOST_DIGITS:,} digits in a row")
    n_signs = sum(map(text.count, ".[{"))
    if n_signs > FREE_SIGNS + len(text) // CHARACTERS_OF_A_SIGN:
        raise ValueError(f"{n_signs:,} points and brackets in {len(text):,} characters: too many")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"line (\d+)", str(error))
        raise ValueError(f"damaged at {f'line {line[1]}' if line else 'its end'}") from None
    except ValueError:
        raise ValueError("a number has too many digits") from None


def parse_json(data: bytes | str) -> Any:
    """Parse untrusted JSON; raise a ValueError, and no RecursionError, if it is nested too deeply.

    Raises
    ------
    ValueError
        It is no JSON, or is nested too deeply.
    """
    try:
        return json.loads(data)
    except RecursionError:
        raise ValueError("nested too deeply") from None


@cache
def _given_open(name: str) -> bytes:
    """Read standard input, or a pipe that the shell fills, and cache the bytes: it can be read only once."""
    if name in {str(STANDARD), "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"}:
        return sys.stdin.buffer.read(MOST_BYTES + 1)
    with open(name, "rb") as file:  # noqa: PTH123 - a pipe that the caller's shell fills
        return file.read(MOST_BYTES + 1)


def _too_large(path: Path, most: int) -> str:
    """Return the message for a file of more than `most` bytes."""
    size = f"{most >> 20} MB" if most >> 20 else f"{most >> 10} KB"
    return f"{path}: larger than the {size} that such a file may have"
