"""Decode text files: UTF-8, what marks name, or what the person names; anything else is said."""

import re
from codecs import BOM_UTF8
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import NamedTuple

from obygaze_features.errors import ManifestError
from obygaze_features.file_kinds import no_text
from obygaze_features.manifest.spans.likely_encodings import (
    MAX_LINE,
    MAX_LINES,
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
        return _decoded_ascii(content, encoding)
    with suppress(UnicodeDecodeError):
        return content.decode("utf-8-sig"), ""
    return _decoded_not_utf8(content, encoding)


def _decoded_ascii(content: bytes, encoding: str) -> tuple[str, str]:
    """Decode bytes that are all below 128; return the text and a notice, as `decoded` does.

    They are ASCII, or the person's encoding, or UTF-16 without a mark, whose bytes may all be ASCII, zeros
    included.
    """
    if encoding:
        return _text_in(encoding, content), ""
    utf_16 = unmarked_encoding(content)
    if utf_16:
        return _text_in(utf_16, content), f"read as {utf_16}{GUESS}"
    return _text_in("ascii", content), ""


def _decoded_not_utf8(content: bytes, encoding: str) -> tuple[str, str]:
    """Decode a text that is not UTF-8, or not in all of its lines; return it with a notice, as `decoded`.

    If at least half of the lines are UTF-8, files in several encodings were probably joined: only the other
    lines are decoded in another encoding. So they are if the text begins with the byte order mark of UTF-8.
    """
    # `surrogateescape` keeps each byte that is not UTF-8 as a lone surrogate, which `_ESCAPED` finds, and
    # from which `encode` makes the byte again.
    lines = content.decode("utf-8-sig", "surrogateescape").split("\n")
    bytes_not_utf8 = {}  # index of a line that is not UTF-8 -> its bytes
    for index, line in enumerate(lines):
        if _ESCAPED.search(line):
            bytes_not_utf8[index] = line.encode("utf-8", "surrogateescape")
    choice = _encoding_of_lines(content, encoding, bytes_not_utf8)

    # Lines of nothing but ASCII are the same in all encodings, and show nothing.
    n_telling_lines = sum(not line.isascii() for line in lines)
    n_utf8 = n_telling_lines - len(bytes_not_utf8)
    is_half_utf8 = n_utf8 >= len(bytes_not_utf8)
    if not is_half_utf8 and not content.startswith(BOM_UTF8):
        return _text_in(choice.name, content), choice.notice

    for index, line_bytes in bytes_not_utf8.items():
        lines[index] = _text_in(choice.name, line_bytes)
    location = first_few([f"line {index + 1}" for index in bytes_not_utf8], maximum=1)
    notice = choice.notice or f"read as {choice.name}"
    return "\n".join(lines), f"{location}: not UTF-8 as the others are, {notice}"


class _Choice(NamedTuple):
    """The encoding in which lines are decoded, and a notice if it is a guess; "" if it is none."""

    name: str
    notice: str


def _encoding_of_lines(content: bytes, encoding: str, bytes_not_utf8: Mapping[int, bytes]) -> _Choice:
    """Choose the encoding of lines that are not UTF-8: the person's, that of UTF-16, or the likeliest.

    `content` is the whole file, and `bytes_not_utf8` is index of a line, from 0 -> bytes of the line.
    """
    if encoding:
        return _Choice(encoding, "")
    unmarked = unmarked_encoding(content)
    if unmarked:
        return _Choice(unmarked, f"read as {unmarked}{GUESS}")
    return _guessed({index + 1: line_bytes for index, line_bytes in bytes_not_utf8.items()})


def _guessed(lines: Mapping[int, bytes]) -> _Choice:
    """Guess the encoding of lines; the notice shows what each of the likeliest encodings makes of them.

    So a person can see which one gives the right letters, and name it by --encoding.

    `lines` is line number -> bytes of the line.
    """
    likely = [guess.name for guess in likely_encodings(lines.values())]
    # They are told by the first lines; the encoding must be able to decode all. One always is: some encodings
    # have a character for every byte.
    name = next(encoding for encoding in likely if _can_decode(lines.values(), encoding))
    first_lines = dict(islice(lines.items(), MAX_LINES))
    texts = _texts(first_lines, name)
    first_line = min(texts)
    example = f"line {first_line} {_shown(texts[first_line])}"
    alternatives = ", ".join(_alternatives(first_lines, texts, likely))
    return _Choice(
        name,
        f"not UTF-8, read as {name}, which is a guess ({example}): if letters are wrong, give --encoding, "
        f"of {alternatives}",
    )


def _alternatives(
    lines: Mapping[int, bytes], texts: Mapping[int, str], encodings: Sequence[str]
) -> list[str]:
    """Describe the encodings that read lines differently, each by the first line that differs.

    An encoding that gives the same texts as an earlier one is no alternative to a reader.

    `texts` is line number -> text of the line in the guessed encoding; `encodings` are the likeliest first.
    """
    texts_so_far = [texts]
    descriptions: list[str] = []
    for encoding in encodings:
        if len(descriptions) == SHOWN_ENCODINGS - 1:  # the guessed encoding is shown too
            break
        other_texts = _texts(lines, encoding)
        if other_texts in texts_so_far:
            continue
        texts_so_far.append(other_texts)
        line = next(line for line in lines if texts[line] != other_texts[line])
        descriptions.append(f"{encoding} (line {line} {_shown(other_texts[line])})")
    return descriptions


def _can_decode(lines: Iterable[bytes], name: str) -> bool:
    """Return whether all lines can be decoded in an encoding."""
    try:
        for line in lines:
            line.decode(name)
    except UnicodeDecodeError:
        return False
    return True


def _texts(lines: Mapping[int, bytes], name: str) -> dict[int, str]:
    """Return line number -> the beginning of the line as an encoding reads it; "" if it cannot."""
    return {number: decoded_line(line[:MAX_LINE], name) or "" for number, line in lines.items()}


def _shown(text: str) -> str:
    """Return the part of a line around its first character beyond ASCII, quoted.

    That character shows a person whether the text was read in the right encoding.
    """
    text = one_line(text)
    first_place = next((index for index, sign in enumerate(text) if not sign.isascii()), 0)
    # A third of what is shown stands before that character, and more if the line ends soon after it.
    wanted_begin = first_place - SHOWN_SIGNS // 3
    latest_begin = len(text) - SHOWN_SIGNS
    begin = max(0, min(wanted_begin, latest_begin))
    return repr(text[begin : begin + SHOWN_SIGNS])


def _text_in(name: str, content: bytes) -> str:
    """Decode bytes in an encoding, by Python's name of it.

    Raises
    ------
    ManifestError
        The bytes are no text in this encoding, or Python does not know the encoding.
    """
    try:
        return content.decode(name)
    except (LookupError, ValueError):  # LookupError also for codecs of bytes, such as base64
        raise ManifestError(
            f"its bytes are no text in UTF-8 or {name}: give --encoding, such as gb18030"
        ) from None
