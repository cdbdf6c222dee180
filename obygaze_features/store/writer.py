"""Write clips durably to a stage and journal them; one writer per process."""

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from fastcrc.crc32 import iscsi as crc32c
from msgspec import structs
from numpy.typing import NDArray

from obygaze_features.checked_lines import encode_line
from obygaze_features.errors import StoreError
from obygaze_features.io import naming, sync, write_all
from obygaze_features.locks import hold, require_locks
from obygaze_features.store.arrays import all_finite, row_view
from obygaze_features.store.format import COMMIT_GROUP, JOURNALS, ROWS
from obygaze_features.store.journal import JournalEntry, is_done
from obygaze_features.store.records import ClipFeatures, ClipResult, GroupSpec
from obygaze_features.store.rows import Row, RowFiles
from obygaze_features.store.stage_files import array_names

PIECE = 1 << 18
"""Bytes of a row that are checked and digested together, while they are in the processor's cache."""


@dataclass(frozen=True, slots=True)
class _Checked:
    """Bytes of a checked row, with their digests."""

    data: memoryview
    sha256: str
    crc32c: int


class StageWriter:
    """Commit clips to a stage; created by `Stage.writer`, used as a context manager, one per process.

    Attributes
    ----------
    name
        Stem of its journal's file name, unique among writers.
    """

    def __init__(
        self,
        stage: Path,
        rows: Mapping[str, int],
        groups: tuple[GroupSpec, ...],
        before: Iterable[JournalEntry],
    ) -> None:
        self._rows = rows
        self._groups = {group.name: group for group in groups}
        self._names = array_names(groups)
        self._attempts: dict[str, int] = {}
        self._done: set[str] = set()
        for entry in sorted(before, key=lambda entry: entry.attempt):
            self._remember(entry)
        self._journal, self._descriptor = _new_journal(stage / JOURNALS)
        self.name = self._journal.stem
        self._files = RowFiles(stage / ROWS / self.name)
        self._open = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the journal; committed clips stay."""
        if self._open:
            self._open = False
            self._files.close()
            with suppress(OSError):  # what was forced to the disk stays there
                os.close(self._descriptor)

    def commit(self, results: Sequence[ClipResult]) -> None:
        """Write clips durably; all of them are checked before any is written.

        Rows are appended to this writer's files and fsynced. Only then are their lines appended to the
        journal, which is fsynced too. Groups of 16 clips share one round of fsync.

        Raises
        ------
        StoreError
            If a result does not fit the stage, has NaN or inf, or is already done; names clip and array.
        OSError
            If writing fails; names the path. Clips committed before are safe; this writer is closed.
        """
        if not self._open:
            raise StoreError(
                f"{self._journal}: this writer was closed, or stopped at an error: begin another"
            )
        known: set[str] = set()
        checked = []
        for result in results:
            checked.append((result, self._check(result)))
            if result.clip_id in known:
                raise StoreError(f"clip {result.clip_id}: committed twice at once")
            known.add(result.clip_id)
        for start in range(0, len(checked), COMMIT_GROUP):
            try:
                self._commit_group(checked[start : start + COMMIT_GROUP])
            except BaseException:
                # The last journal line may be incomplete, so nothing may follow it.
                self.close()
                raise

    def _commit_group(self, checked: Sequence[tuple[ClipResult, Mapping[str, _Checked]]]) -> None:
        entries = []
        waiting: dict[str, list[Row]] = {name: [] for name in self._names}
        slot = self._files.n_rows
        for result, rows in checked:
            row, attempt = self._rows[result.clip_id], self._attempts.get(result.clip_id, 0) + 1
            entry = JournalEntry(row, result.clip_id, result.status, result.reason, attempt, result.source)
            if rows:
                for name in self._names:
                    waiting[name].append(rows[name].data)
                entry = structs.replace(
                    entry,
                    writer=self.name,
                    slot=slot,
                    names=self._names,
                    sha256="".join(rows[name].sha256 for name in self._names),
                    crc32c="".join(f"{rows[name].crc32c:08x}" for name in self._names),
                )
                slot += 1
            entries.append(entry)
        if slot > self._files.n_rows:
            self._files.append(waiting)
        self._append(entries)

    def annul(self, reasons: Mapping[str, str]) -> None:
        """Mark clips as missing (clip id -> reason), so that they are extracted again."""
        self._append(
            [
                JournalEntry(self._rows[clip], clip, "missing", why, self._attempts[clip])
                for clip, why in reasons.items()
            ]
        )

    def _append(self, entries: Sequence[JournalEntry]) -> None:
        now = datetime.now(UTC).isoformat(timespec="seconds")  # for people; no code reads it
        with naming(self._journal):
            write_all(
                self._descriptor, b"".join(encode_line({**entry.record(), "time": now}) for entry in entries)
            )
            os.fsync(self._descriptor)
        for entry in entries:
            self._remember(entry)

    def _remember(self, entry: JournalEntry) -> None:
        self._attempts[entry.clip_id] = max(entry.attempt, self._attempts.get(entry.clip_id, 0))
        if is_done(entry):
            self._done.add(entry.clip_id)
        elif entry.status == "missing":
            self._done.discard(entry.clip_id)

    def _check(self, result: ClipResult) -> dict[str, _Checked]:
        """Check a result; return `group/array` -> its row, nothing for a failed clip."""
        where = f"clip {result.clip_id}"
        if result.clip_id not in self._rows:
            raise StoreError(f"{where}: not in the plan of this stage")
        if result.clip_id in self._done:
            raise StoreError(f"{where}: already done; rows of a stage are written once")
        if result.status == "failed":
            return {}
        if result.groups.keys() != self._groups.keys():
            raise StoreError(
                f"{where}: expected features of {', '.join(self._groups)}; "
                f"found {', '.join(result.groups) or 'none'}"
            )
        rows: dict[str, _Checked] = {}
        for name, features in result.groups.items():
            checked = _check_features(features, self._groups[name], f"{where}, group {name}")
            rows |= {f"{name}/{array}": row for array, row in checked.items()}
        return rows


def _check_features(features: ClipFeatures, group: GroupSpec, where: str) -> dict[str, _Checked]:
    expected = group.clip_arrays()
    found = {**features.arrays, "time_s": features.time_s, "frame_index": features.frame_index}
    if found.keys() != expected.keys():
        raise StoreError(f"{where}: expected arrays {', '.join(expected)}; found {', '.join(sorted(found))}")
    rows: dict[str, _Checked] = {}
    for name, (shape, dtype) in expected.items():
        values = found[name]
        if not isinstance(values, np.ndarray):
            raise StoreError(f"{where}, array {name}: expected a numpy array, found {type(values).__name__}")
        if values.dtype.newbyteorder("<") != dtype:
            raise StoreError(
                f"{where}, array {name}: expected {dtype.name}, found {values.dtype}; convert it on purpose"
            )
        if values.shape != shape:
            raise StoreError(
                f"{where}, array {name}: expected shape {list(shape)}, found {list(values.shape)}"
            )
        rows[name], finite = _checked(values)
        if not finite and not (name == "time_s" and _times_unknown(features, group)):
            kinds = "NaN" if np.isnan(values).any() else "inf"
            hint = " (float16 overflow?)" if kinds == "inf" and dtype == np.float16 else ""
            count = int((~np.isfinite(values)).sum())
            raise StoreError(
                f"{where}, array {name}: {count} values are not finite, {kinds} among them{hint}"
            )
    if (features.frame_index < 0).any() and not _times_unknown(features, group):
        raise StoreError(f"{where}, array frame_index: a negative index")
    return rows


def _checked(values: NDArray[Any]) -> tuple[_Checked, bool]:
    """Return a row's bytes with their digests, and whether all values are finite."""
    data = row_view(values)
    numbers = np.frombuffer(data, values.dtype.newbyteorder("<"))
    digest, checksum, finite = hashlib.sha256(), 0, True
    for start in range(0, len(data), PIECE):
        piece = data[start : start + PIECE]
        digest.update(piece)
        checksum = crc32c(piece, checksum)
        first, last = (byte // numbers.itemsize for byte in (start, start + PIECE))
        finite = finite and all_finite(numbers[first:last])
    return _Checked(data, digest.hexdigest(), checksum), finite


def _times_unknown(features: ClipFeatures, group: GroupSpec) -> bool:
    """Return whether the rows are imported features with unknown frame times."""
    imported = group.provenance.get("imported") is True
    return imported and bool(np.isnan(features.time_s).all()) and bool((features.frame_index == -1).all())


def _new_journal(folder: Path) -> tuple[Path, int]:
    """Create the next free journal and lock it; the lock shows that its writer is running."""
    number = len(list(folder.glob("*.jsonl")))
    require_locks(folder / f"{number + 1:04d}.jsonl")
    while True:
        number += 1
        path = folder / f"{number:04d}.jsonl"
        with suppress(FileExistsError):
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644)
            hold(descriptor, path)
            sync(folder)
            return path, descriptor
