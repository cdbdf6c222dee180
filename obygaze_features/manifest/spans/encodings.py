"""Decode text files: UTF-8, what marks name, or what the person names; anything else is said."""

from obygaze_features.errors import ManifestError

MARKS = {b"\xff\xfe\0\0": "utf-32", b"\0\0\xfe\xff": "utf-32", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
"""Byte order marks; those of UTF-32 first, which begin as those of UTF-16 do."""


def marked_encoding(content: bytes) -> str:
    """Return the encoding that a byte order mark names; "" if there is none."""
    return next((name for mark, name in MARKS.items() if content.startswith(mark)), "")


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
        It is in no encoding that can be, or Python does not know the one given.

    Examples
    --------
    >>> decoded("Déjà vu".encode())
    ('Déjà vu', '')
    >>> decoded("Déjà vu".encode("cp1252"))[1]
    'read as Windows-1252, which is a guess: if letters are wrong, give --encoding'
    """
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
        guessed = wide and not marked_encoding(content)
        return text, f"read as {name}, which is a guess: if letters are wrong, give --encoding" * bool(
            guessed
        )
    try:
        return content.decode("utf-8-sig"), ""
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
    lines = content.split(b"\n")
    others = [number for number, each in enumerate(lines, start=1) if not _is_utf8(each)]
    try:
        if sum(not each.isascii() for each in lines) >= 2 * len(others):  # most are UTF-8
            text = "\n".join(each.decode("utf-8" if _is_utf8(each) else "cp1252") for each in lines)
            where = f"line {others[0]}" + (f" and {len(others) - 1} more" if len(others) > 1 else "")
            return text.removeprefix("\ufeff"), f"{where}: not UTF-8 as the others are, read as Windows-1252"
        text = content.decode("cp1252")
    except UnicodeDecodeError:
        raise ManifestError(
            f"line {line}: neither UTF-8 nor Windows-1252: give its encoding, as in --encoding cp1251"
        ) from None
    return text, "read as Windows-1252, which is a guess: if letters are wrong, give --encoding"


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _unmarked(content: bytes) -> str:
    """Return the encoding that a text without a mark shows: UTF-16 by its zeros, Japanese by its escapes."""
    if b"\x1b$B" in content or b"\x1b$@" in content:  # escapes to Japanese letters, all in ASCII
        return "iso2022_jp"
    head = content[:4096]
    even, odd = head[::2].count(0), head[1::2].count(0)
    if min(even, odd) > 0.05 * len(head) or max(even, odd) < 0.3 * len(head):
        return ""
    return "utf-16-le" if odd > even else "utf-16-be"
