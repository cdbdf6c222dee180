"""Know a file by its first bytes, whatever its name says, to refuse it with a reason and a remedy.

The kinds stand in file_kinds.toml.
"""

import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

from obygaze_features.templates import packaged
from obygaze_features.untrusted import open_regular

HEAD_BYTES = 1 << 16
FACTS = packaged(__package__, "file_kinds.toml")
PICTURE_SUFFIXES, VIDEO_SUFFIXES, SUBTITLE_SUFFIXES, _OTHERS = map(frozenset, FACTS["suffixes"].values())
FILM_SUFFIXES = VIDEO_SUFFIXES | _OTHERS


class FileKind(NamedTuple):
    """What a file is.

    Attributes
    ----------
    name
        With its article, for messages, e.g. "a git-lfs pointer".
    remedy
        What to do where another file was expected; empty if the kind alone does not say.
    """

    name: str
    remedy: str = ""


AGAIN = "get or write it again"

NPY, NPZ, HDF5, PARQUET = "a .npy array", "a .npz archive", "an HDF5 file", "a Parquet file"
SAFETENSORS, TORCH, TEXT, XML = "a safetensors file", "a PyTorch file", "a text file", "an XML file"
UTF16, MP4, HEIF = "a text file in UTF-16", "an MP4 or QuickTime film", "a HEIF picture"

XML_PROLOGUE = r"(?:(?><(?:\?(?s:.*?)\?|!--(?s:.*?)--)>)\s*+)*+"
"""What may stand before the root of XML; each part ends where it first can, or time is exponential."""
PAGE_START = re.compile(rf"(?i)\s*{XML_PROLOGUE}<(?:!doctype html|html|head|body|table)\b".encode())
TABLE_IN_PAGE = re.compile(rb"(?i)<table\b")
FORM_IN_PAGE = re.compile(rb"(?i)<form\b")
ZIP_START = r"PK\x03\x04.{26}.{0,300}?"
"""How a zip begins: its signature, 26 bytes of facts on the first file, and up to 300 bytes from the start of
that file's name. A pattern goes on behind them."""
ZARR = FileKind("a Zarr store", "save its arrays as .npy or in HDF5")
UNKNOWN = FileKind("a file of unknown content", AGAIN)


@cache
def _known_formats(*, binary: bool) -> list[tuple[bytes, FileKind]]:
    """List the known formats of files: a pattern of their first bytes, and the kind.

    They are read from the package's table of formats (`file_kinds.toml`). Formats of texts come first; with
    `binary`, those of other files follow. The first pattern that fits a file decides.

    In the table, a format is three texts: a pattern, the name of the kind, and a remedy. The pattern may hold
    {XML} or {ZIP}, which stand for the beginning of such a file. The remedy is a text, or the name of a text
    that several formats share.
    """
    xml_start = rf"(?i)\s*{XML_PROLOGUE}"
    formats = list(FACTS["texts"])
    if binary:
        formats += FACTS["binaries"]
    shared_remedies = FACTS["remedies"]  # name of a remedy of several formats -> its text
    kinds = []
    for pattern, name, remedy in formats:
        full_pattern = pattern.replace("{XML}", xml_start).replace("{ZIP}", ZIP_START)
        remedy_text = shared_remedies.get(remedy, remedy)  # the remedy itself if it is no such name
        kinds.append((full_pattern.encode(), FileKind(name, remedy_text)))
    return kinds


def file_kind(file: Path | bytes) -> FileKind:
    """Return the kind of a file, by its first bytes.

    Parameters
    ----------
    file
        The file or folder, or the first bytes of a file.

    Returns
    -------
    FileKind
        `UNKNOWN` for bytes of no known format.

    Raises
    ------
    OSError
        It cannot be read.
    """
    if isinstance(file, bytes):
        return _kind_of_bytes(file[:HEAD_BYTES])
    if file.is_dir():
        is_zarr = any((file / name).is_file() for name in ("zarr.json", ".zgroup", ".zarray"))
        return ZARR if is_zarr else FileKind("a folder")
    if file.exists() and not file.is_file():
        return FileKind("no regular file", "name a file on a disk")
    with open_regular(file) as opened:
        return _kind_of_bytes(opened.read(HEAD_BYTES))


def _kind_of_bytes(head: bytes) -> FileKind:
    """Return the kind of a file, given its first bytes; `UNKNOWN` for bytes of no known format."""
    is_zeros_or_empty = not any(head)
    if is_zeros_or_empty:
        name = "a file of zeros" if head else "an empty file (0 bytes)"
        return FileKind(name, f"an unfinished copy or download? {AGAIN}")

    control_characters = {byte for byte in head if byte < 32}
    is_text = control_characters <= set(b"\t\n\v\f\r\x1b")  # those that texts have
    without_byte_order_mark = head.removeprefix(b"\xef\xbb\xbf")
    for pattern, kind in _known_formats(binary=not is_text):
        if re.match(pattern, without_byte_order_mark, re.DOTALL):
            return kind
    return FileKind(TEXT) if is_text else UNKNOWN


def why_not(file: Path | bytes, wanted: str) -> str:
    """Return a sentence on why a file that a library refuses is not of the expected kind, and what to do.

    Parameters
    ----------
    file
        The file, or its first bytes.
    wanted
        The expected kind with its article, such as "a .npy array".
    """
    kind = file_kind(file)
    if kind.name == wanted:
        return f"{wanted} that is damaged, cut short or of an unsupported version: {AGAIN}"
    if kind == UNKNOWN:
        return f"not {wanted}: damaged, or of another format; {AGAIN}"
    remedy = kind.remedy or f"name {wanted}"
    return f"this is {kind.name}, not {wanted}: {remedy}"


def _is_table_in_page(content: bytes) -> bool:
    """Return whether a file is a web page that a program, such as phpMyAdmin or SPSS, wrote a table into.

    A page with a form is none: a server asks there for a name or for consent, in place of the file.
    """
    head = content[:HEAD_BYTES].removeprefix(b"\xef\xbb\xbf")
    is_page = PAGE_START.match(head) is not None
    has_table = TABLE_IN_PAGE.search(head) is not None
    has_form = FORM_IN_PAGE.search(head) is not None
    return is_page and has_table and not has_form


def no_text(content: bytes) -> str:
    """Return why the content of a file cannot be text in any encoding; "" if it may be text."""
    if _is_table_in_page(content):
        return f"this is a table in a web page (HTML), not {TEXT}: {FACTS['remedies']['table']}"
    kinds_of_text = {TEXT, UTF16, XML, UNKNOWN.name}
    if file_kind(content).name in kinds_of_text:
        return ""
    return why_not(content, TEXT)


def where_damaged(error: Exception, file: Path | bytes, wanted: str) -> str:
    """Return a sentence on why a parser of JSON, TOML or XML refuses a file, with the line if it is known.

    Parameters
    ----------
    error
        The parser's error: the text cannot be decoded, is damaged, or is nested too deeply.
    file
        The file, or its first bytes.
    wanted
        What was expected, with its article, such as "a JSON file".
    """
    if file_kind(file).name not in (TEXT, XML) or isinstance(error, UnicodeDecodeError):
        return why_not(file, wanted)
    if isinstance(error, RecursionError):
        return f"not {wanted}: nested too deeply"
    line = re.search(r"\bline (\d+)", str(error))
    place = f" at line {line[1]}" if line else ""
    return f"not {wanted}: damaged{place}, or cut short; {AGAIN}"
