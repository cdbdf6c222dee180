"""Write and read lines: of CSV tables, of JSON, and of journals, where a damaged or torn line is found."""

import json
import os
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import TypeVar

import msgspec

from obygaze_features.io import close_naming, force_to_disk, naming, open_binary, write_all
from obygaze_features.text import not_a_formula
from obygaze_features.untrusted import MAX_LINES, read_bytes


def csv_line(cells: Sequence[str]) -> str:
    r"""Write one line of a CSV table, quoting only where needed.

    The csv module is not used, because up to Python 3.12 it does not quote a lone carriage return, which ends
    a line.

    Examples
    --------
    >>> csv_line(["tt0108160-003", 'a "quoted", word'])
    'tt0108160-003,"a ""quoted"", word"\n'
    """
    return ",".join(map(_quoted, cells)) + "\n"


def _quoted(cell: str) -> str:
    """Put a cell of a CSV table in quotes if it holds a comma, a quote or a line break."""
    if not _NEEDS_QUOTES.search(cell):
        return cell
    doubled = cell.replace('"', '""')
    return f'"{doubled}"'


_NEEDS_QUOTES = re.compile(r'[,"\r\n]')


def sheet_line(cells: Sequence[str]) -> str:
    r"""Write one line of a CSV table for people; cells that a spreadsheet would run as a formula are escaped.

    Examples
    --------
    >>> sheet_line(["=1+1", "-0.5", "Body"])
    "'=1+1,-0.5,Body\n"
    """
    return ",".join(map(sheet_cell, cells)) + "\n"


def sheet_cell(cell: str) -> str:
    """Write one cell of a CSV table for people; one that a spreadsheet would run as a formula is disarmed."""
    return _quoted(not_a_formula(cell))


def json_bytes(document: object) -> bytes:
    """Write a JSON document for people to read, the same bytes every time."""
    return (json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


# --- journals: JSON lines with a checksum, so that a damaged or torn line is found
# ---------------------------------------------------------------------------
T = TypeVar("T")
UNREADABLE = (msgspec.MsgspecError, ValueError, RecursionError)
"""Exceptions raised by damaged or malicious JSON."""
_HEAD, _MIDDLE, _TAIL = b'{"crc32":"', b'","entry":', b"}"
CHECKSUM_DIGITS = 8
_CANONICAL_JSON = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False, default=msgspec.to_builtins
)


def encode_line(entry: object) -> bytes:
    """Encode an entry of a journal as one line of JSON with its checksum.

    The line is `{"crc32":"<8 hex digits>","entry":{...}}`.
    """
    text = _CANONICAL_JSON.encode(entry).encode()
    return b"%b%08x%b%b%b\n" % (_HEAD, zlib.crc32(text), _MIDDLE, text, _TAIL)


def checked_entry(line: bytes) -> bytes | None:
    """Return the JSON of the entry in a line of a journal; None if the line is damaged.

    Parameters
    ----------
    line
        A line as `encode_line` writes it, without its line break.
    """
    start = len(_HEAD) + CHECKSUM_DIGITS + len(_MIDDLE)
    text = line[start : -len(_TAIL)]
    expected = b"%b%08x%b%b%b" % (_HEAD, zlib.crc32(text), _MIDDLE, text, _TAIL)
    return text if line == expected else None


def read_lines(path: Path, kind: type[T]) -> Iterator[tuple[int, T | None]]:
    """Read a journal: yield the number of each line, from 1, and its entry, or None if the line is damaged.

    A last line without a line break was not finished. It is yielded only if it has a complete entry.

    Parameters
    ----------
    path
        The journal.
    kind
        The type of its entries: a struct, or any other that JSON may be read as.
    """
    decoder = msgspec.json.Decoder(kind)
    *lines, unfinished_line = read_bytes(path, MAX_LINES).split(b"\n")  # b"" if nothing is unfinished
    for number, line in enumerate(lines, start=1):
        yield number, _decoded_entry(line, decoder)
    last_entry = _decoded_entry(unfinished_line, decoder)
    if last_entry is not None:
        yield len(lines) + 1, last_entry


def _decoded_entry(line: bytes, decoder: msgspec.json.Decoder[T]) -> T | None:
    """Return the entry in a line of a journal; None if the line is damaged, or its entry of another type."""
    text = checked_entry(line)
    if text is None:
        return None
    try:
        return decoder.decode(text)
    except UNREADABLE:
        return None


def journals_in(folder: Path) -> list[Path]:
    """List the journals (`*.jsonl`) in a folder, by name; none where there is no such folder.

    Path.glob is not used, as it takes a folder that can't be read for an empty one.

    Raises
    ------
    OSError
        The folder can't be read; the error names it.
    """
    try:
        paths = list(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(path for path in paths if path.name.endswith(".jsonl"))


class LineJournal:
    """Append lines to a journal, durably; thread-safe.

    A line that a killed process left torn is ended first. After an error nothing more is appended: the last
    line may be torn then, and a line that followed it would be lost.
    """

    def __init__(self, path: Path) -> None:
        """Open a journal to append to, and end an incomplete last line; create the file if it is missing."""
        self._path = path
        self._lock = Lock()
        self._failed: OSError | None = None  # the error that made appending fail
        with naming(path):
            self.descriptor = open_binary(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
            is_empty = os.fstat(self.descriptor).st_size == 0
            if not is_empty:
                os.lseek(self.descriptor, -1, os.SEEK_END)
                last_byte = os.read(self.descriptor, 1)
                if last_byte != b"\n":
                    write_all(self.descriptor, b"\n")

    def append(self, entry: object, *, force: bool = True) -> None:
        """Append an entry, and flush it to the disk if `force`.

        After an error, every later call raises the same error: what the file then holds is not known.
        """
        with self._lock:
            if self._failed is not None:
                raise self._failed
            with self._storing_errors():
                write_all(self.descriptor, encode_line(entry))
        # Outside of the lock, as flushing takes long: other threads may append meanwhile.
        if force:
            with self._storing_errors():
                force_to_disk(self.descriptor)

    @contextmanager
    def _storing_errors(self) -> Iterator[None]:
        """Store an OSError of the `with` block, which every later `append` raises again."""
        with naming(self._path):
            try:
                yield
            except OSError as error:
                self._failed = error
                raise

    def close(self) -> None:
        """Close the file."""
        close_naming(self.descriptor, self._path)
