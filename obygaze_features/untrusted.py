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
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Final

from obygaze_features.errors import InputError, LinkError

STANDARD: Final = Path("-")
"""Standard input where a file is read, standard output where one is written."""

MAX_BYTES: Final = 1 << 28
"""Most bytes of a file that is held in memory, unless its reader sets another limit."""

MAX_LINES: Final = 1 << 30
"""Most bytes of a journal, or of a table that may have a line for each frame."""

NOT_A_FILE: Final = "a pipe or a device, and a file was expected"

MIN_READ_BYTES: Final = 1 << 16
"""Least bytes that are asked for at a time."""

MAX_TOML_BYTES: Final = 1 << 22
"""Most bytes of a TOML document."""

MAX_POINTS_IN_LINE: Final = 200
"""Most points in a line of TOML, in a key or not: memory grows with the square of those of a key."""

MAX_SIGNS: Final = 500
CHARACTERS_PER_FURTHER_SIGN: Final = 24
"""Most points and opening brackets of a TOML document, and for how many characters it may have one more.

Each may begin a table, which takes about a kilobyte. They are counted wherever they stand, in texts and
comments too: what a simpler grammar takes for a text may be a key to the parser. Files that people write have
one in 20 to 80 characters."""

MAX_DIGITS: Final = 1000
"""Digits in a row, hexadecimal ones and `_` too, that a TOML document may have, in a number or not: to parse
a number takes more than a hundred bytes for each digit."""

_NAMED_TWICE: Final = "a name that is there already; expected each name, and each [NAME], once"
_KEY_AND_VALUE: Final = "expected NAME = VALUE, or [NAME] of a table"
_BACKSLASH: Final = "a backslash in a text; expected two, or the text in single quotes"
EXPECTED_IN_TOML: Final = {
    "Invalid value": 'expected a value, such as a text in quotes ("calm"), a number, true or false',
    "Illegal character": "expected the closing quote of a text in its own line",
    "Unterminated string": "expected the closing quotes of a text",
    "Cannot overwrite": _NAMED_TWICE,
    "Cannot declare": _NAMED_TWICE,
    "Cannot mutate": _NAMED_TWICE,
    "Cannot redefine": _NAMED_TWICE,
    "Duplicate": _NAMED_TWICE,
    "Expected '='": _KEY_AND_VALUE,
    "Invalid statement": _KEY_AND_VALUE,
    "Invalid initial character": _KEY_AND_VALUE,
    "Expected ']": "expected the closing bracket of [NAME]",
    "Unclosed array": "expected the closing bracket of a list",
    "Unescaped": _BACKSLASH,
    "Invalid hex value": _BACKSLASH,
}
"""How Python's parser of TOML begins its messages -> what was expected. Its own words name no remedy."""

_LONG_NUMBER = re.compile(rf"(?<![0-9A-Fa-f_])[0-9A-Fa-f_]{{{MAX_DIGITS + 1}}}")

_NAME_OF_STREAM = re.compile(r"/(dev|proc/self)/fd/\d+|/dev/stdin")
"""Names of streams that are open already, such as the pipe of a shell's `<(...)`."""


def open_regular(path: Path | str, maximum: int | None = None, *, within: Path | None = None) -> io.FileIO:
    """Open a regular file for reading; a pipe or device, on which reading might wait for ever, is refused.

    Every error of the file names it, also those of reading and closing it.

    Parameters
    ----------
    maximum
        Largest size in bytes that is accepted; None for any size.
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
    # Each system has only some of these flags.
    binary = getattr(os, "O_BINARY", 0)  # Windows would convert line ends
    without_waiting = getattr(os, "O_NONBLOCK", 0)  # opening a pipe would wait until somebody writes to it
    no_link = getattr(os, "O_NOFOLLOW", 0)
    flags = os.O_RDONLY | binary | without_waiting
    if within is not None:
        flags |= no_link
        _refuse_links(path, within)

    try:
        descriptor = os.open(path, flags)
    except OSError as error:
        if error.errno == errno.ENXIO:  # a socket, which cannot be opened
            raise InputError(f"{path}: {NOT_A_FILE}") from None
        raise

    # What was opened counts, and not its name, which another file may have got meanwhile.
    try:
        _refuse_unsuitable(os.fstat(descriptor), path, maximum)
    except (OSError, InputError):
        os.close(descriptor)
        raise
    return _NamingFile(descriptor, path)


class _NamingFile(io.FileIO):
    """A file opened for reading whose errors name it, as those of the system name only what it can't open."""

    def __init__(self, descriptor: int, path: Path | str) -> None:
        super().__init__(descriptor)
        self._path = str(path)

    def read(self, size: int | None = -1, /) -> bytes | Any:
        """Read up to so many bytes, or all that follow."""
        with self._naming():
            return super().read(size)

    def readall(self) -> bytes | Any:
        """Read all bytes that follow."""
        with self._naming():
            return super().readall()

    def readinto(self, buffer: Any, /) -> int | Any:
        """Read into a buffer."""
        with self._naming():
            return super().readinto(buffer)

    def close(self) -> None:
        """Close the file; an OSError that the system raises then, as of a network drive, names the file."""
        with self._naming():
            super().close()

    @contextmanager
    def _naming(self) -> Iterator[None]:
        """Put the file's path into an OSError of the `with` block."""
        try:
            yield
        except OSError as error:
            error.filename = self._path
            raise


def _refuse_links(path: Path | str, within: Path) -> None:
    """Refuse a path in which a part below the folder `within` is a symbolic link."""
    inside = os.path.relpath(path, within)
    # The path without any link, compared with one in which only links above the folder are resolved.
    path_without_links = os.path.join(os.path.realpath(within), inside)  # noqa: PTH118
    if os.path.realpath(path) != path_without_links:
        raise LinkError(f"{path}: a link, and a file of this folder was expected")


def _refuse_unsuitable(status: os.stat_result, path: Path | str, maximum: int | None) -> None:
    """Refuse what was opened if it is no regular file, or too large."""
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(status.st_mode):
        raise InputError(f"{path}: {NOT_A_FILE}")
    if maximum is not None and status.st_size > maximum:
        raise InputError(_too_large(path, maximum))


def is_stream(path: Path) -> bool:
    """Return whether a path names standard input, or a pipe that the caller's shell has opened."""
    return path == STANDARD or _NAME_OF_STREAM.fullmatch(str(path)) is not None


def read_bytes(path: Path, maximum: int = MAX_BYTES, *, within: Path | None = None) -> bytes:
    """Read a file that has at most `maximum` bytes, or standard input.

    What standard input held is cached, so that it can be read again.

    Parameters
    ----------
    path
        The file; `STANDARD` for standard input.
    maximum
        Most bytes that are accepted.
    within
        An untrusted folder that contains the file: links below it are refused. None for a path that the user
        named.

    Raises
    ------
    InputError, OSError
        In the cases of `open_regular`.
    """
    if is_stream(path):
        data = _read_stream(str(path))
    else:
        with open_regular(path, maximum, within=within) as file:
            data = _read_up_to(file, maximum)
    if len(data) > maximum:
        raise InputError(_too_large(path, maximum))
    return data


def _read_up_to(file: io.FileIO, maximum: int) -> bytes:
    """Read a file to its end, or until more than `maximum` bytes were read."""
    # Each read reserves memory for all that it asks for, so it asks for the size that the file has now.
    # The byte more than that shows whether the file has grown meanwhile.
    file_bytes = os.fstat(file.fileno()).st_size
    bytes_at_once = max(file_bytes + 1, MIN_READ_BYTES)
    blocks = []
    n_bytes = 0
    while n_bytes <= maximum:
        block = file.read(bytes_at_once)
        if not block:
            break
        blocks.append(block)
        n_bytes += len(block)
    return b"".join(blocks)


def read_text(path: Path, maximum: int = MAX_BYTES) -> str:
    """Read a file of UTF-8 as `read_bytes` does, and decode it (`decoded`)."""
    return decoded(read_bytes(path, maximum))


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
    _refuse_costly_toml(text)
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except tomllib.TOMLDecodeError as error:
        raise ValueError(_describe_toml_error(str(error))) from None
    except ValueError:  # Python's own, for whole numbers of thousands of digits
        raise ValueError("a number has too many digits") from None


def _describe_toml_error(message: str) -> str:
    """Return where a text is no TOML, and what was expected there, without quoting any of it.

    Parameters
    ----------
    message
        What Python's parser says, such as "Invalid value (at line 2, column 8)".

    Examples
    --------
    >>> _describe_toml_error("Expected '=' after a key in a key/value pair (at line 3, column 3)")
    'damaged at line 3: expected NAME = VALUE, or [NAME] of a table'
    >>> _describe_toml_error("Some other error (at end of document)")
    'damaged at its end'
    """
    line = re.search(r"line (\d+)", message)
    place = f"line {line[1]}" if line else "its end"
    for beginning, expectation in EXPECTED_IN_TOML.items():
        if message.startswith(beginning):
            return f"damaged at {place}: {expectation}"
    return f"damaged at {place}"


def _refuse_costly_toml(text: str) -> None:
    """Raise a ValueError for TOML that may take much memory or time to parse.

    Each point or opening bracket may begin a table, which takes a kilobyte; keys of many parts and numbers of
    many digits take memory that grows faster than their length.
    """
    if len(text) > MAX_TOML_BYTES:
        raise ValueError(f"more than the {MAX_TOML_BYTES >> 20} MB that are read")
    for number, row in enumerate(text.split("\n"), start=1):
        if row.count(".") > MAX_POINTS_IN_LINE:
            raise ValueError(
                f"more than {MAX_POINTS_IN_LINE} points in line {number}; expected keys of few parts"
            )
    if _LONG_NUMBER.search(text):
        raise ValueError(f"more than {MAX_DIGITS:,} digits in a row")
    n_signs = text.count(".") + text.count("[") + text.count("{")
    max_signs = MAX_SIGNS + len(text) // CHARACTERS_PER_FURTHER_SIGN
    if n_signs > max_signs:
        raise ValueError(f"{n_signs:,} points and brackets in {len(text):,} characters: too many")


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
def _read_stream(name: str) -> bytes:
    """Read a stream and cache its bytes, because it can be read only once.

    One byte more than `MAX_BYTES` is read, which shows that there are too many.
    """
    if name in {str(STANDARD), "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"}:
        return sys.stdin.buffer.read(MAX_BYTES + 1)
    with open(name, "rb") as file:  # noqa: PTH123 - a pipe that the caller's shell fills
        return file.read(MAX_BYTES + 1)


def _too_large(path: Path | str, maximum: int) -> str:
    """Return the message for a file of more than `maximum` bytes."""
    n_megabytes = maximum >> 20
    n_kilobytes = maximum >> 10
    size = f"{n_megabytes} MB" if n_megabytes else f"{n_kilobytes} KB"
    return f"{path}: larger than the {size} that such a file may have"
