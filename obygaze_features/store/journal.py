"""Read the journals of a stage: finished clips, the places of their rows, and the digests of their bytes.

A clip is done only if a valid journal line records it. The line is written after the bytes are on the disk.
Every writer has its own file. Order comes from `attempt`, not from the order of files or from clocks.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import msgspec

from obygaze_features.checked_lines import checked_entry
from obygaze_features.store.format import DONE

UNREADABLE = (msgspec.MsgspecError, ValueError, RecursionError)
"""Exceptions raised by damaged or malicious JSON."""

SHA256_HEX, CRC32C_HEX = 64, 8


# gc=False: the garbage collector would visit all lines of a large stage again and again.
class _Line(msgspec.Struct, gc=False):
    row: int
    id: str
    status: Literal["ok", "partial", "failed", "missing"]
    reason: str
    attempt: int
    slot: int
    sha256: str
    crc32c: str
    source: dict[str, int | float | str]


_DECODER = msgspec.json.Decoder(_Line)
_HEX = re.compile("[0-9a-f]*")


class JournalEntry(msgspec.Struct, frozen=True, gc=False):
    """Line of a journal.

    Attributes
    ----------
    status
        ok, partial or failed; `missing` annuls every line of this clip with the same or a lower attempt.
    attempt
        1 for the first try at this clip; 0 if its rows are in the parent store.
    writer, slot
        Writer whose files hold the clip's rows, and the position in these files; -1 for a clip without
        features.
    names
        The stage's arrays, `group/array`, in the order of `sha256` and `crc32c`.
    sha256, crc32c
        Concatenated SHA-256 (64 hexadecimal digits each) and CRC-32C (8 each) of the bytes of this clip's
        rows (little-endian, C order); empty without features.
    """

    row: int
    clip_id: str
    status: str
    reason: str = ""
    attempt: int = 1
    source: Mapping[str, object] = msgspec.field(default_factory=dict)
    writer: str = ""
    slot: int = -1
    names: tuple[str, ...] = ()
    sha256: str = ""
    crc32c: str = ""

    @property
    def digests(self) -> dict[str, str]:
        """`group/array` -> SHA-256 of the bytes of this clip's row."""
        if not self.sha256:
            return {}
        return {name: self.sha256_of(position) for position, name in enumerate(self.names)}

    def sha256_of(self, position: int) -> str:
        """Return the digest of the row of array `names[position]`."""
        return self.sha256[SHA256_HEX * position : SHA256_HEX * (position + 1)]

    def crc32c_of(self, position: int) -> int:
        """Return the checksum of the row of array `names[position]`."""
        return int(self.crc32c[CRC32C_HEX * position : CRC32C_HEX * (position + 1)], 16)

    def record(self) -> dict[str, object]:
        """Return the entry in the form written to the journal."""
        return {
            "row": self.row,
            "id": self.clip_id,
            "status": self.status,
            "reason": self.reason,
            "attempt": self.attempt,
            "slot": self.slot,
            "sha256": self.sha256,
            "crc32c": self.crc32c,
            "source": dict(self.source),
        }


def read_entry(line: bytes, names: tuple[str, ...], writer: str) -> JournalEntry | None:
    """Read a line of a writer's journal, without its line break; None if it is damaged."""
    text = checked_entry(line)
    if text is None:
        return None
    try:
        said = _DECODER.decode(text)
    except UNREADABLE:
        return None
    n_arrays = len(names) if said.status in DONE else 0
    if len(said.sha256) != SHA256_HEX * n_arrays or len(said.crc32c) != CRC32C_HEX * n_arrays:
        return None
    if (said.slot >= 0) != (n_arrays > 0) or not _HEX.fullmatch(said.sha256 + said.crc32c):
        return None
    where = (writer, said.slot, names, said.sha256, said.crc32c)
    return JournalEntry(said.row, said.id, said.status, said.reason, said.attempt, said.source, *where)


@dataclass(slots=True)
class _Read:
    """State of reading one journal."""

    end: int = 0  # end of the last complete line
    lines: int = 0
    seen: tuple[int, int] = (-1, -1)  # size and time of modification
    entries: list[JournalEntry] = field(default_factory=list)
    damage: list[str] = field(default_factory=list)
    torn: JournalEntry | None = None  # last line, complete except for its line break


class Journals:
    """Read all journals of a stage; each byte is read once, however often `refresh` is called.

    Parameters
    ----------
    folder
        Folder of the journals.
    names
        The stage's arrays, in the order of a line's digests.
    """

    def __init__(self, folder: Path, names: tuple[str, ...]) -> None:
        self._folder, self._names = folder, names
        self._read: dict[str, _Read] = {}
        self.version = 0
        """Increases whenever new lines were read."""

    def refresh(self) -> None:
        """Read new lines."""
        for path in sorted(self._folder.glob("*.jsonl")):
            stat = path.stat()
            read = self._read.setdefault(path.name, _Read())
            seen = (stat.st_size, stat.st_mtime_ns)
            if seen == read.seen:
                continue
            if stat.st_size <= read.seen[0]:  # shorter or rewritten: the file was edited by hand
                read = self._read[path.name] = _Read()
            self._follow(path, read)
            read.seen = seen
            self.version += 1

    def _follow(self, path: Path, read: _Read) -> None:
        with path.open("rb") as file:
            file.seek(read.end)
            *lines, last = file.read().split(b"\n")
        writer = path.stem
        for line in lines:
            read.lines += 1
            read.end += len(line) + 1
            entry = read_entry(line, self._names, writer)
            if entry is None:
                read.damage.append(
                    f"{path}, line {read.lines}: damaged and ignored; the clip it told of will be done again"
                )
            else:
                read.entries.append(entry)
        read.torn = read_entry(last, self._names, writer)

    def entries(self) -> Iterator[JournalEntry]:
        """Yield the entries read so far, journal by journal; the last line may lack its line break."""
        for _, read in sorted(self._read.items()):
            yield from read.entries
            if read.torn is not None:
                yield read.torn

    def damage(self) -> list[str]:
        """Describe the damaged lines read so far."""
        return [line for _, read in sorted(self._read.items()) for line in read.damage]


def settle(entries: Iterable[JournalEntry]) -> dict[int, tuple[JournalEntry, ...]]:
    """Return the valid lines of every row, best first: ok, partial, failed; later attempts before earlier.

    Several done lines of one row mean that two writers did the same shard. Sealing checks the bytes of each.
    """
    # Tuples: the garbage collector would visit a list for each clip of a large stage again and again.
    settled: dict[int, tuple[JournalEntry, ...]] = {}
    contested: dict[int, list[JournalEntry]] = {}
    for entry in entries:
        if entry.row in contested:
            contested[entry.row].append(entry)
        elif entry.row in settled or entry.status == "missing":
            contested[entry.row] = [*settled.get(entry.row, ()), entry]
        else:
            settled[entry.row] = (entry,)
    rank = {"ok": 0, "partial": 1, "failed": 2}
    for row, lines in contested.items():
        annulled = max((line.attempt for line in lines if line.status == "missing"), default=-1)
        live = [line for line in lines if line.attempt > annulled]
        live.sort(key=lambda e: (rank[e.status], -e.attempt, e.reason, e.sha256, e.writer))
        settled[row] = tuple(live)
    return {row: lines for row, lines in settled.items() if lines} if contested else settled


def is_done(entry: JournalEntry) -> bool:
    """Return whether an entry's row has features."""
    return entry.status in DONE
