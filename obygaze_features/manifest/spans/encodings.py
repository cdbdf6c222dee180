"""Decode text files: UTF-8, what marks name, or what the person names; anything else is said."""

import re
from codecs import BOM_UTF8
from contextlib import suppress

from obygaze_features.errors import ManifestError
from obygaze_features.file_kinds import no_text
from obygaze_features.text import first_few
from obygaze_features.text_records import marked_encoding, unmarked_encoding

GUESS = ", which is a guess: if letters are wrong, give --encoding"
_ESCAPED = re.compile("[\udc80-\udcff]")
"""A byte that is no UTF-8, as Python's `surrogateescape` writes it."""


def decoded(content: bytes, encoding: str = "") -> tuple[str, str]:
    """Decode a text, and say how if it was guessed.

    Parameters
    ----------
    content
        Bytes of the whole file.
    encoding
        Of what is not UTF-8, as Python names it; a mark in the file wins.

    Returns
    -------
    text : str
    notice : str
        How it was read where that is a guess; else "".

    Raises
    ------
    ManifestError
        It is no text, or in no encoding that can be; or Python does not know the one given.

    Examples
    --------
    >>> decoded("Déjà vu".encode())
    ('Déjà vu', '')
    >>> decoded("Déjà vu".encode("cp1252"))[1]
    'read as Windows-1252, which is a guess: if letters are wrong, give --encoding'
    """
    if reason := no_text(content):
        raise ManifestError(reason)
    if marked := marked_encoding(content):
        return _text_in(marked, content), ""
    if not content.isascii():
        with suppress(UnicodeDecodeError):
            return content.decode("utf-8-sig"), ""
    name = encoding or unmarked_encoding(content) or "Windows-1252"
    notice = f"read as {name}"
    if content.isascii():
        is_guess = not encoding and name != "Windows-1252"
        return _text_in(name, content), f"{notice}{GUESS}" if is_guess else ""
    lines = content.decode("utf-8-sig", "surrogateescape").split("\n")
    beyond_ascii = [at for at, line in enumerate(lines) if not line.isascii()]
    not_utf8 = [at for at in beyond_ascii if _ESCAPED.search(lines[at])]
    is_mostly_utf8 = len(beyond_ascii) >= 2 * len(not_utf8)
    if not is_mostly_utf8 and not content.startswith(BOM_UTF8):
        return _text_in(name, content), "" if encoding else f"{notice}{GUESS}"
    for at in not_utf8:
        lines[at] = _text_in(name, lines[at].encode("utf-8", "surrogateescape"))
    where = first_few([f"line {at + 1}" for at in not_utf8], 1)
    return "\n".join(lines), f"{where}: not UTF-8 as the others are, {notice}"


def _text_in(name: str, content: bytes) -> str:
    """Decode bytes in an encoding that a mark, the person or the bytes say."""
    try:
        return content.decode(name)
    except (LookupError, ValueError):  # also an encoding of no texts
        raise ManifestError(
            f"its bytes are no text in UTF-8 or {name}: give --encoding, such as gb18030"
        ) from None
