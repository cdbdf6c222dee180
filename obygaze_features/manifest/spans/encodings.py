"""Decode text files: UTF-8, what marks name, or what the person names; anything else is said."""

import re
from codecs import BOM_UTF8
from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import islice
from typing import NamedTuple

from obygaze_features.errors import ManifestError
from obygaze_features.file_kinds import no_text
from obygaze_features.manifest.spans.likely_encodings import (
    MOST_LINE,
    MOST_LINES,
    decoded_line,
    likely_encodings,
)
from obygaze_features.manifest.spans.one_line import one_line
from obygaze_features.text import first_few
from obygaze_features.text_records import marked_encoding, unmarked_encoding

GUESS = ", which is a guess: if letters are wrong, give --encoding"
SHOWN_ENCODINGS = 8
"""How many of the likeliest encodings are shown."""
SHOWN_SIGNS = 30
"""How many signs of a line are shown."""
_ESCAPED = re.compile("[\udc80-\udcff]")
"""A byte that is no UTF-8, as Python's `surrogateescape` writes it."""


def decoded(content: bytes, encoding: str = "") -> tuple[str, str]:
    """Decode the bytes of a text file: UTF-8, what a byte order mark says, the given encoding, or a guess.

    Parameters
    ----------
    content
        Bytes of the whole file.
    encoding
        Python's name of the encoding of text that is not UTF-8 and has no mark. By default the likeliest one.

    Returns
    -------
    text : str
    notice : str
        Says which encoding was guessed, and what the next likely ones would give; "" if nothing was guessed
        and the whole file has one encoding.

    Raises
    ------
    ManifestError
        The bytes are no text, or cannot be decoded, or Python does not know the given encoding.

    Examples
    --------
    >>> decoded("Déjà vu".encode())
    ('Déjà vu', '')
    >>> decoded("Déjà vu".encode("cp1252"))[1].partition(":")[0]
    "not UTF-8, read as cp1252, which is a guess (line 1 'Déjà vu')"
    """
    reason = no_text(content)
    if reason:
        raise ManifestError(reason)
    marked = marked_encoding(content)
    if marked:
        return _text_in(marked, content), ""
    if content.isascii():
        # Bytes of UTF-16 without a mark may all be ASCII, zeros included.
        name = encoding or unmarked_encoding(content)
        is_guess = bool(name) and not encoding
        return _text_in(name or "ascii", content), f"read as {name}{GUESS}" if is_guess else ""
    with suppress(UnicodeDecodeError):
        return content.decode("utf-8-sig"), ""
    return _decoded_not_utf8(content, encoding)


def _decoded_not_utf8(content: bytes, encoding: str) -> tuple[str, str]:
    """Decode a text that is not UTF-8, or not in all of its lines; return it with a notice, as `decoded`."""
    # Bytes that are not UTF-8 become lone surrogates, which `_ESCAPED` finds.
    lines = content.decode("utf-8-sig", "surrogateescape").split("\n")
    beyond_ascii = [index for index, line in enumerate(lines) if not line.isascii()]
    not_utf8 = [index for index in beyond_ascii if _ESCAPED.search(lines[index])]
    bytes_not_utf8 = {index: lines[index].encode("utf-8", "surrogateescape") for index in not_utf8}
    name = encoding or unmarked_encoding(content)
    if encoding:
        notice = ""
    elif name:
        notice = f"read as {name}{GUESS}"
    else:
        guess = _guessed({index + 1: line_bytes for index, line_bytes in bytes_not_utf8.items()})
        name = guess.name
        notice = guess.notice
    is_mostly_utf8 = len(beyond_ascii) >= 2 * len(not_utf8) or content.startswith(BOM_UTF8)
    if not is_mostly_utf8:
        return _text_in(name, content), notice
    # A file that is UTF-8 but for a few lines: only these are decoded in the other encoding.
    for index, line_bytes in bytes_not_utf8.items():
        lines[index] = _text_in(name, line_bytes)
    where = first_few([f"line {index + 1}" for index in not_utf8], 1)
    return "\n".join(lines), f"{where}: not UTF-8 as the others are, {notice or f'read as {name}'}"


class _Guess(NamedTuple):
    """The likeliest encoding, and a notice on it and the next ones."""

    name: str
    notice: str


def _guessed(lines: Mapping[int, bytes]) -> _Guess:
    """Guess the encoding of lines, and say what each of the likeliest encodings would make of them.

    Parameters
    ----------
    lines
        Line number -> bytes of the line.
    """
    likely = [guess.name for guess in likely_encodings(lines.values())]
    name = next(encoding for encoding in likely if _can_decode(lines.values(), encoding))
    sample = dict(islice(lines.items(), MOST_LINES))
    texts = _texts(sample, name)
    shown = [texts]
    alternatives: list[str] = []
    for other in likely:
        other_texts = _texts(sample, other)
        # An encoding that gives the same texts as an earlier one is no alternative to a reader.
        if other_texts in shown or len(alternatives) == SHOWN_ENCODINGS - 1:
            continue
        shown.append(other_texts)
        number = next(line for line in sample if texts[line] != other_texts[line])
        alternatives.append(f"{other} (line {number} {_shown(other_texts[number])})")
    first = next(iter(texts))
    notice = f"not UTF-8, read as {name}, which is a guess (line {first} {_shown(texts[first])})"
    return _Guess(name, f"{notice}: if letters are wrong, give --encoding, of {', '.join(alternatives)}")


def _can_decode(lines: Iterable[bytes], name: str) -> bool:
    """Return whether all lines can be decoded in an encoding."""
    try:
        for line in lines:
            line.decode(name)
    except UnicodeDecodeError:
        return False
    return True


def _texts(lines: Mapping[int, bytes], name: str) -> dict[int, str]:
    """Return the beginnings of lines as an encoding reads them, by their numbers."""
    return {number: decoded_line(line[:MOST_LINE], name) or "" for number, line in lines.items()}


def _shown(text: str) -> str:
    """Return the part of a line around its first character beyond ASCII, quoted."""
    text = one_line(text)
    first_place = next((place for place, sign in enumerate(text) if not sign.isascii()), 0)
    begin = max(0, min(first_place - SHOWN_SIGNS // 3, len(text) - SHOWN_SIGNS))
    return repr(text[begin : begin + SHOWN_SIGNS])


def _text_in(name: str, content: bytes) -> str:
    """Decode bytes in an encoding; refuse bytes that it cannot decode, and an unknown encoding."""
    try:
        return content.decode(name)
    except (LookupError, ValueError):  # LookupError also for codecs of bytes, such as base64
        raise ManifestError(
            f"its bytes are no text in UTF-8 or {name}: give --encoding, such as gb18030"
        ) from None
