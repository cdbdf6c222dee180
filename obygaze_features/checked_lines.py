"""Read and write JSON lines that carry a checksum, so that a damaged or torn line is found."""

import json
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path

_HEAD, _MIDDLE, _TAIL = b'{"crc32":"', b'","entry":', b"}"


def encode_line(entry: Mapping[str, object]) -> bytes:
    """Write one entry as one line: `{"crc32":"<8 hex digits>","entry":{...}}`."""
    text = json.dumps(
        entry, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    ).encode()
    return b"%b%08x%b%b%b\n" % (_HEAD, zlib.crc32(text), _MIDDLE, text, _TAIL)


def checked_entry(line: bytes) -> bytes | None:
    """Return the JSON of an entry, of a line without its line break; None if a single bit of it is wrong."""
    start = len(_HEAD) + 8
    text = line[start + len(_MIDDLE) : -len(_TAIL)]
    return text if line == b"%b%08x%b%b%b" % (_HEAD, zlib.crc32(text), _MIDDLE, text, _TAIL) else None


def decode_line(line: bytes) -> dict[str, object] | None:
    """Read one line without its line break; None if a single bit of it is wrong."""
    text = checked_entry(line)
    if text is None:
        return None
    try:
        entry = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return entry if isinstance(entry, dict) else None


def read_lines(path: Path) -> Iterator[tuple[int, dict[str, object] | None]]:
    """Yield (line number from 1, entry or None if damaged); a torn last line is taken as never written."""
    *lines, last = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines, start=1):
        yield number, decode_line(line)
    if last and (entry := decode_line(last)) is not None:
        yield len(lines) + 1, entry
