"""Seal a stage as an immutable store; the same clips always give the same bytes."""

import os
import re
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock

from obygaze_features.cores import usable_cores
from obygaze_features.errors import StoreError
from obygaze_features.io import remove_tree, sync, sync_tree, write_whole
from obygaze_features.locks import alone_in, locked
from obygaze_features.schema import Hex64, expected, fits
from obygaze_features.store.disk_usage import refuse_small_disk
from obygaze_features.store.format import (
    ATTRIBUTE,
    BAGIT,
    BUILDING_SUFFIX,
    CONSUMED,
    PARTS,
    STAGING_SUFFIX,
    STATUSES,
    spec_version,
)
from obygaze_features.store.metadata import write_all_but_parts
from obygaze_features.store.missing_videos import refuse_missing_videos
from obygaze_features.store.part_writer import (
    ArrayPart,
    Inheritance,
    PartList,
    PartWriter,
    StoredArray,
    rows_digest,
    stored_arrays,
    workers_at_once,
)
from obygaze_features.store.provenance import plain, validate_licence
from obygaze_features.store.records import StoredClip, one_line
from obygaze_features.store.stage import Stage, read_stage
from obygaze_features.store.stage_files import JournalEntry, is_done, parent_clips, stored_array_names
from obygaze_features.store.writer import Consumption

Progress = Callable[[int, int], None]
VERSION = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)")

STORE = "store"
"""Folder in `NAME.building` with the store that is being built."""


def seal(
    stage_path: Path | str | None,
    destination: Path | str,
    *,
    version: str = "1.0.0",
    licence: str,
    citation: str = "",
    allow_missing: bool = False,
    max_failed: int | None = None,
    parent: str | None = None,
    merged_with: Sequence[str] = (),
    consume: bool = False,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Path:
    """Seal a stage into the folder `DESTINATION-VERSION` and return its path; the stage stays.

    Rows are sorted by clip id. The bytes of every row are checked against the journal. The store is built in
    `DESTINATION.building`, flushed to disk and renamed, so an incomplete store is never visible. Sealing can
    be killed at any time, or fail, and resumes where it stopped.

    Parameters
    ----------
    stage_path
        The staging folder; None for `DESTINATION.staging`.
    licence
        SPDX expression or NOASSERTION.
    allow_missing
        Seal although clips are still to do; their rows get the status missing.
    max_failed
        Most failed clips allowed; None is any number.
    parent
        Fingerprint of the store that this one grew from; None is the stage's parent, if any.
    merged_with
        Fingerprints of the stores whose clips were added to the parent's.
    consume
        Free the rows of the stage as they are sealed, then remove it: needs disk space for about one copy.
    workers
        Parts written at a time; None is one per usable core. The bytes do not depend on it.
    progress
        Called with (rows written, rows in total).

    Raises
    ------
    StoreError
        If clips are missing, too many have failed, clips failed for absent videos that some machine finds,
        the destination exists, or the disk is too small. Also if bytes differ from their journal digests;
        these clips are then marked missing, so that another extraction repairs them.
    """
    destination = Path(destination)
    building = destination.with_name(destination.name + BUILDING_SUFFIX)
    if _finish(building, versioned(destination, version)) and consume:
        return versioned(destination, version)
    final = final_path(destination, version)
    stage = read_stage(stage_path or destination.with_name(destination.name + STAGING_SUFFIX))
    if parent is None and stage.grows is not None:
        parent = stage.grows.fingerprint
    if parent is not None and not fits(parent, Hex64):
        raise StoreError(f"parent {parent!r}: expected a fingerprint, {expected(Hex64)}")
    about: dict[str, object] = {
        "spec_version": spec_version(stored_array_names(stage.clips, stage.groups)),
        "licence": validate_licence(licence),
        "citation": one_line(citation, "citation"),
        "corpus": stage.corpus,
        "parent": parent,
        **({"merged_with": list(merged_with)} if merged_with else {}),
    }
    resolved = resolve_attempts(stage, allow_missing=allow_missing, max_failed=max_failed)
    if devices := resolved.devices():
        about["devices"] = devices
    plain(about, ATTRIBUTE)
    if consume and (n_writers := stage.n_writers()):
        raise StoreError(f"{stage.path}: {n_writers} process(es) write to it now; wait, or stop them")
    _refuse_other_place(stage, building)
    with alone_in(building, "sealing here"):
        _refuse_existing(final)
        root = building / STORE
        done = PartList(building / PARTS)
        try:
            _seal_parts(root, resolved, done, progress or (lambda *_: None), workers, consume=consume)
        except MemoryError as error:
            raise StoreError(f"{stage.path}: its rows need more memory than there is ({error})") from error
        finally:
            done.close()
        files = {part.file: part.sha256 for part in done.known.values() if (root / part.file).is_file()}
        clips = [resolved.clip(row) for row in resolved.order]
        write_all_but_parts(root, clips, stage.groups, about, version=version, parts=files)
        sync_tree(root)
        root.rename(final)
        sync(final.parent)
        if consume:
            stage.path.rename(building / stage.path.name)
        remove_tree(building)
    return final


def _finish(building: Path, final: Path) -> bool:
    """Remove the remains of a sealing that ended after the rename; return whether it consumed the stage."""
    if not final.exists() or not building.is_dir() or (building / STORE).exists():
        return False
    with locked(building, wait=False) as ours:
        if not ours:
            return False
        stage = final.with_name(building.name.removesuffix(BUILDING_SUFFIX) + STAGING_SUFFIX)
        consumed = (stage / CONSUMED).is_file() or any(building.glob(f"*/{CONSUMED}"))
        if consumed and stage.is_dir():
            stage.rename(building / stage.name)
        remove_tree(building)
    return consumed


def _refuse_other_place(stage: Stage, building: Path) -> None:
    """Refuse to seal a stage if some of its rows were already moved to another folder."""
    with suppress(FileNotFoundError):
        folder = (stage.path / CONSUMED).read_text(encoding="utf-8").strip()
        if folder != str(building.resolve()):
            raise StoreError(
                f"{stage.path}: part of it is in {folder} already (--consume); finish that sealing first"
            )


def final_path(destination: Path, version: str) -> Path:
    """Return the path of a version of a store; refuse invalid versions and existing ones."""
    final = versioned(destination, version)
    _refuse_existing(final)
    return final


def work_path(destination: Path, version: str, suffix: str) -> Path:
    """Return the working folder of a store before it is sealed; refuse as `final_path` does.

    Removes the remains of work that was killed after the rename.
    """
    work = destination.with_name(f"{destination.name}-{version}{suffix}")
    try:
        final_path(destination, version)
    except StoreError:
        _finish(destination.with_name(destination.name + BUILDING_SUFFIX), versioned(destination, version))
        remove_tree(work, ignore_errors=True)
        raise
    return work


def versioned(destination: Path, version: str) -> Path:
    """Return the path of a version of a store; refuse invalid versions and folders of sealed stores."""
    if not VERSION.fullmatch(version):
        raise StoreError(f"store version {version!r}: expected three numbers such as 1.0.0")
    name, _, last = destination.name.rpartition("-")
    if name and VERSION.fullmatch(last) and (destination / BAGIT).is_file():
        raise StoreError(f"{destination} is sealed; the name is {destination.with_name(name)}")
    if destination.name.endswith(STAGING_SUFFIX):
        stem = destination.with_name(destination.name.removesuffix(STAGING_SUFFIX))
        raise StoreError(f"{destination} is a staging folder's name; the name is {stem}")
    return destination.with_name(f"{destination.name}-{version}")


def _refuse_existing(final: Path) -> None:
    if final.exists():
        raise StoreError(
            f"{final}: exists, and a sealed store never changes; "
            "choose another version (--store-version 1.0.1) or name"
        )


# --- the journal line whose bytes each row takes
# ---------------------------------------------------------------------------
@dataclass
class ResolvedRows:
    """Journal lines of every row to seal, best first; lines with missing or wrong bytes are dropped."""

    stage: Stage
    order: list[int]
    lines: dict[int, tuple[JournalEntry, ...]]
    lost: dict[int, str] = field(default_factory=dict)

    def line(self, position: int) -> JournalEntry | None:
        """Return the line with the features of the clip at a position of the sealed store."""
        line = self.lines.get(self.order[position], (None,))[0]
        return line if line is not None and is_done(line) else None

    def of(self, part: ArrayPart) -> list[JournalEntry | None]:
        """Return the lines of a part's rows."""
        return [self.line(position) for position in part.rows]

    def drop(self, position: int, name: str) -> None:
        """Drop the best line of a row, because its bytes differ from the line's digests."""
        row = self.order[position]
        gone, *others = self.lines[row]
        if not gone.writer:
            raise StoreError(
                f"clip {gone.clip_id}, array {name}: not what the store that this stage grows has a digest "
                f"of; run: obygaze store verify --full {self.stage.grows and self.stage.grows.path}"
            )
        if any(is_done(line) for line in others):
            self.lines[row] = tuple(others)
        else:
            self.lost.setdefault(row, name)

    def clip(self, row: int) -> StoredClip:
        """Make the sealed store's record of a row."""
        plan = self.stage.clips[row]
        span = (plan.start_s, plan.end_s)
        bare = StoredClip(plan.clip_id, STATUSES[0], "", plan.movie, *span, text=plan.text)
        if row not in self.lines:
            return bare
        line = self.lines[row][0]
        return replace(bare, status=line.status, reason=line.reason, source=line.source, digests=line.digests)

    def devices(self) -> dict[str, int]:
        """Count the clips computed on each GPU model; clips computed on a CPU are not counted."""
        named = [line.source.get("device") for line, *_ in self.lines.values() if is_done(line)]
        return dict(sorted(Counter(str(name) for name in named if name is not None).items()))

    def annul(self) -> None:
        """Mark clips whose bytes match no journal line as missing, and raise a StoreError."""
        reasons = {
            self.stage.clips[row].clip_id: f"{self.lost[row]} is not what the journal says"
            for row in sorted(self.lost)
        }
        with self.stage.writer() as writer:
            writer.annul(reasons)
        clip, reason = next(iter(reasons.items()))
        raise StoreError(
            f"{self.stage.path}: {len(reasons)} clips are not what they were when committed, "
            f"the first is {clip} ({reason}); they are marked missing now: extract again, then seal"
        )


def resolve_attempts(stage: Stage, *, allow_missing: bool, max_failed: int | None) -> ResolvedRows:
    """Select the latest valid attempts of every row, sorted by clip id; refuse a stage that is not ready.

    Raises
    ------
    StoreError
        Clips are missing, have failed because a machine lacks videos that another finds, or too many failed.
    """
    lines = {
        row: tuple(line for line in entries if is_done(line)) or entries[:1]
        for row, entries in stage.attempts().items()
    }
    missing = [clip.clip_id for row, clip in enumerate(stage.clips) if row not in lines]
    if missing and not allow_missing:
        raise StoreError(
            f"{stage.path}: {len(missing)} of {len(stage.clips)} clips are still to do, "
            f"the first is {missing[0]}; extract again, or allow missing clips (--allow-missing)"
        )
    if not allow_missing:
        refuse_missing_videos(stage, lines)
    failed = sum(entries[0].status == "failed" for entries in lines.values())
    if max_failed is not None and failed > max_failed:
        raise StoreError(
            f"{stage.path}: {failed} clips have failed, and at most {max_failed} may (--max-failed); "
            "`obygaze extract` with --retry-failed tries them again"
        )
    return ResolvedRows(
        stage, sorted(range(len(stage.clips)), key=lambda row: stage.clips[row].clip_id), lines
    )


# --- chunks and shards
# ---------------------------------------------------------------------------
def _seal_parts(
    root: Path,
    resolved: ResolvedRows,
    done: PartList,
    progress: Progress,
    workers: int | None,
    *,
    consume: bool,
) -> None:
    """Write every chunk and shard not yet written, several at a time."""
    stage = resolved.stage
    arrays = stored_arrays(stage.groups, stage.names, len(resolved.order))
    parts = [part for array in arrays for part in array.parts()]
    _sweep(root, {part.file for part in parts}, done)
    for part in parts:
        (root / part.file).parent.mkdir(parents=True, exist_ok=True)
    sync_tree(root)  # a part is then durable once its own folder is synced
    inheritance = None
    if stage.grows is not None:
        inheritance = Inheritance(Path(stage.grows.path), parent_clips(stage.grows))
    writer = PartWriter(root, stage.path, done, inheritance)
    workers = workers or usable_cores()
    if consume:
        workers = workers_at_once(parts, workers)
    todo = [part for part in parts if _is_to_do(part, resolved, done)]
    refuse_small_disk([part.size for part in todo], root, stage.path, workers, consume=consume)
    consumption = _consumption(resolved, arrays, root.parent) if consume else None
    total = sum(len(part.rows) for part in parts)
    counted, lock = 0, Lock()

    def work(part: ArrayPart) -> tuple[ArrayPart, list[int]]:
        nonlocal counted
        lines = resolved.of(part)
        bad = writer.write(part, lines)
        if not bad and consumption is not None:
            consumption.free(part.array.name, [line for line in lines if line is not None])
        with lock:
            counted += len(part.rows)
            progress(min(counted, total), total)
        return part, bad

    while True:  # repeats only if bad rows have another line, of a second writer
        results = _side_by_side(work, parts, workers)
        bad = {part.rows[index]: part.array.name for part, indices in results for index in indices}
        for position, name in sorted(bad.items()):
            resolved.drop(position, name)
        if resolved.lost:
            resolved.annul()
        if not bad:
            return


def _consumption(resolved: ResolvedRows, arrays: Sequence[StoredArray], building: Path) -> Consumption:
    """Durably mark a stage as being consumed, before any row is freed."""
    stage = resolved.stage.path
    sync(building)  # the names of the store and of the list of its parts, which then has what is freed
    if not (stage / CONSUMED).exists():
        write_whole(stage / CONSUMED, f"{building.resolve()}\n")
    lines = [line for entries in resolved.lines.values() for line in entries]
    return Consumption(stage, {array.name: array.row_bytes for array in arrays}, lines)


def _side_by_side(
    work: Callable[[ArrayPart], tuple[ArrayPart, list[int]]], parts: Sequence[ArrayPart], workers: int
) -> list[tuple[ArrayPart, list[int]]]:
    """Process all parts in threads; most of the work releases the GIL. The first error ends it."""
    with ThreadPoolExecutor(workers) as threads:
        futures = [threads.submit(work, part) for part in parts]
        try:
            finished, _ = wait(futures, return_when=FIRST_EXCEPTION)
            for future in finished:
                future.result()
        finally:
            threads.shutdown(wait=True, cancel_futures=True)
    return [future.result() for future in futures]


def _is_to_do(part: ArrayPart, resolved: ResolvedRows, done: PartList) -> bool:
    before = done.known.get(part.file)
    return before is None or before.rows != rows_digest(part, resolved.of(part))


def _sweep(root: Path, files: set[str], done: PartList) -> None:
    """Remove all files from a store that is being built, except for complete parts."""
    for folder, _, names in os.walk(root, topdown=False):
        for name in names:
            path = Path(folder, name)
            relative = path.relative_to(root).as_posix()
            if relative not in files or relative not in done.known:
                path.unlink()
    there = {file for file, part in done.known.items() if _size(root / file) == part.size}
    done.known = {file: part for file, part in done.known.items() if file in files & there}


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return -1
