"""Write and read data/clips.csv: the status of every clip, for people and tools that do not read Zarr."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from obygaze_features.errors import StoreError
from obygaze_features.io import csv_line

COLUMNS = (
    "row",
    "clip",
    "status",
    "reason",
    "movie",
    "start_s",
    "end_s",
    "source_bytes",
    "source_duration_s",
    "source_sha256",
)
TEXT_COLUMN = "text"
"""Follows them in a store of texts."""
DIGEST_PREFIX = "sha256:"
"""Columns of digests are named `sha256:<group>/<array>`."""


@dataclass(frozen=True)
class StoredClip:
    """One row of a store: the status and origin of a clip.

    Attributes
    ----------
    status
        missing, ok, partial or failed.
    source
        What is known of the file: bytes, duration_s, sha256.
    digests
        `group/array` -> SHA-256 of this row's bytes; empty unless ok or partial.
    text
        What the row is the embedding of; None in a store of clips.
    """

    clip_id: str
    status: str
    reason: str
    movie: str
    start_s: float | None
    end_s: float | None
    source: Mapping[str, object] = field(default_factory=dict)
    digests: Mapping[str, str] = field(default_factory=dict)
    text: str | None = None


def clips_csv_bytes(clips: Sequence[StoredClip], arrays: Sequence[str]) -> bytes:
    """Write the table; `arrays` are the `group/array` names whose digests it has."""
    extra = [TEXT_COLUMN] if any(clip.text is not None for clip in clips) else []
    lines = [csv_line([*COLUMNS, *extra, *(DIGEST_PREFIX + name for name in arrays)])]
    for row, clip in enumerate(clips):
        source = [_cell(clip.source.get(name)) for name in ("bytes", "duration_s", "sha256")]
        span = [_cell(clip.start_s), _cell(clip.end_s)]
        digests = [clip.digests.get(name, "") for name in arrays]
        text = [clip.text or ""] if extra else []
        told = [clip.clip_id, clip.status, clip.reason, clip.movie]
        lines.append(csv_line([str(row), *told, *span, *source, *text, *digests]))
    return "".join(lines).encode()


def _cell(value: object) -> str:
    return "" if value is None else repr(value) if isinstance(value, float) else str(value)


def read_clips_csv(path: Path) -> tuple[StoredClip, ...]:
    """Read the table.

    Raises
    ------
    StoreError
        Naming the line, if it is not such a table.
    """
    return parse_clips_csv(path.read_bytes(), str(path))


def parse_clips_csv(data: bytes, where: str) -> tuple[StoredClip, ...]:
    """Read the table from its bytes; `where` is what messages call it."""
    clips: list[StoredClip] = []
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise StoreError(f"{where}: {error}") from error
    lines = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = next(lines, [])
        has_text = header[len(COLUMNS) :][:1] == [TEXT_COLUMN]
        names = [name.removeprefix(DIGEST_PREFIX) for name in header[len(COLUMNS) + has_text :]]
        if tuple(header[: len(COLUMNS)]) != COLUMNS:
            raise StoreError(f"{where}, line 1: expected the columns {','.join(COLUMNS)}")
        for line in lines:
            clips.append(_clip(line, names, len(clips), has_text=has_text))
    except (ValueError, csv.Error) as error:
        if isinstance(error, StoreError):
            raise
        raise StoreError(f"{where}, line {lines.line_num}: {error}") from error
    return tuple(clips)


def _clip(cells: list[str], names: list[str], row: int, *, has_text: bool) -> StoredClip:
    number, clip_id, status, reason, movie, start, end, size, duration, source_digest, *rest = cells
    text, digests = (rest[0], rest[1:]) if has_text and rest else (None, rest)
    if number != str(row) or len(digests) != len(names):
        raise ValueError(f"expected row {row} with {len(COLUMNS) + has_text + len(names)} cells")
    known: dict[str, object] = {}
    if size:
        known["bytes"] = int(size)
    if duration:
        known["duration_s"] = float(duration)
    if source_digest:
        known["sha256"] = source_digest
    span = (float(start) if start else None, float(end) if end else None)
    given = {name: digest for name, digest in zip(names, digests, strict=True) if digest}
    return StoredClip(clip_id, status, reason, movie, *span, known, given, text)
