"""Decode text files: UTF-8, what marks name, or what the person names; anything else is said."""

import re

from obygaze_features.errors import ManifestError
from obygaze_features.file_kinds import no_text
from obygaze_features.text import first_few
from obygaze_features.text_records import marked_encoding

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
        What the person says, as Python names it; a mark in the file wins.

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
    if why := no_text(content):
        raise ManifestError(why)
    wide = marked_encoding(content) or _unmarked(content)
    if wide or encoding:
        name = wide or encoding
        try:
            text = content.decode("utf-8-sig" if name.lower() in {"utf-8", "utf8"} else name)
        except LookupError:
            raise ManifestError(f"--encoding {name}: no encoding that is known") from None
        except ValueError:
            raise ManifestError(f"its bytes are no text in {name}: give --encoding") from None
        if not isinstance(text, str):
            raise ManifestError(f"--encoding {name}: no encoding of texts")
        guessed = bool(wide) and not marked_encoding(content)
        return text, f"read as {name}{GUESS}" * guessed
    lines = content.decode("utf-8-sig", "surrogateescape").split("\n")
    others = [at for at, line in enumerate(lines) if not line.isascii() and _ESCAPED.search(line)]
    if not others:
        return "\n".join(lines), ""
    try:
        if sum(not line.isascii() for line in lines) >= 2 * len(others):  # most are UTF-8
            for at in others:
                lines[at] = lines[at].encode("utf-8", "surrogateescape").decode("cp1252")
            where = first_few([f"line {at + 1}" for at in others], 1)
            return "\n".join(lines), f"{where}: not UTF-8 as the others are, read as Windows-1252"
        text = content.decode("cp1252")
    except UnicodeDecodeError:
        raise ManifestError(
            f"line {others[0] + 1}: neither UTF-8 nor Windows-1252: give its encoding (--encoding cp1251)"
        ) from None
    return text, f"read as Windows-1252{GUESS}"


def _unmarked(content: bytes) -> str:
    """Return the encoding that a text without a mark shows: UTF-16 by its zeros, Japanese by its escapes."""
    if b"\x1b$B" in content or b"\x1b$@" in content:  # escapes to Japanese letters, all in ASCII
        return "iso2022_jp"
    head = content[:4096]
    even, odd = head[::2].count(0), head[1::2].count(0)
    if min(even, odd) > 0.05 * len(head) or max(even, odd) < 0.3 * len(head):
        return ""
    return "utf-16-le" if odd > even else "utf-16-be"
