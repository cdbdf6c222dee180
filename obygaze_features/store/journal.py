"""Read and write the journals of a stage: finished clips and the digests of their bytes.

A clip is done if a valid line says so, and by nothing else: the line is written after the bytes are on the
disk. Every writer has its own file. No order between files is assumed and no clock is read: `attempt` counts.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from obygaze_features.io import read_lines
from obygaze_features.store.format import DONE


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One line of a journal.

    Attributes
    ----------
    status
        ok, partial or failed; `missing` annuls every line of this clip with the same or a lower attempt.
    attempt
        1 for the first try at this clip.
    digests
        `group/array` -> SHA-256 of the bytes of this clip's row (little-endian, C order, no checksum).
    """

    row: int
    clip_id: str
    status: str
    reason: str = ""
    attempt: int = 1
    digests: Mapping[str, str] = field(default_factory=dict)
    source: Mapping[str, object] = field(default_factory=dict)

    def record(self) -> dict[str, object]:
        """Return the entry as the journal writes it."""
        return {
            "row": self.row,
            "id": self.clip_id,
            "status": self.status,
            "reason": self.reason,
            "attempt": self.attempt,
            "sha256": dict(self.digests),
            "source": dict(self.source),
        }


def entry_of(record: Mapping[str, object]) -> JournalEntry | None:
    """Read an entry; None if it is not one."""
    match record:
        case {
            "row": int(row),
            "id": str(clip_id),
            "status": "ok" | "partial" | "failed" | "missing" as status,
            "reason": str(reason),
            "attempt": int(attempt),
            "sha256": dict(digests),
            "source": dict(source),
        }:
            return JournalEntry(row, clip_id, status, reason, attempt, digests, source)
    return None


def read_journals(folder: Path) -> tuple[list[JournalEntry], list[str]]:
    """Read every journal of a stage.

    Returns
    -------
    tuple
        All entries, and the damaged lines in words. A torn last line is no damage: its writer was killed.
    """
    entries: list[JournalEntry] = []
    damage: list[str] = []
    for path in sorted(folder.glob("*.jsonl")):
        for number, record in read_lines(path):
            entry = entry_of(record) if record is not None else None
            if entry is None:
                damage.append(
                    f"{path}, line {number}: damaged and ignored; the clip it told of will be done again"
                )
            else:
                entries.append(entry)
    return entries, damage


def settle(entries: Iterable[JournalEntry]) -> dict[int, list[JournalEntry]]:
    """Sort out which lines count for every row, the best first: ok, partial, failed; late before early.

    More than one line that says done means two writers on one shard: the bytes decide at sealing.
    """
    by_row: defaultdict[int, list[JournalEntry]] = defaultdict(list)
    for entry in entries:
        by_row[entry.row].append(entry)
    settled = {}
    for row, lines in by_row.items():
        annulled = max((line.attempt for line in lines if line.status == "missing"), default=0)
        live = [line for line in lines if line.attempt > annulled]
        if live:
            rank = {"ok": 0, "partial": 1, "failed": 2}
            settled[row] = sorted(
                live, key=lambda e: (rank[e.status], -e.attempt, e.reason, sorted(e.digests.items()))
            )
    return settled


def is_done(entry: JournalEntry) -> bool:
    """Return whether an entry's row holds features."""
    return entry.status in DONE
