"""Seal a stage as an immutable store; the same clips always give the same bytes."""

import re
import shutil
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray
from zarr.storage import LocalStore

from obygaze_features.errors import StoreError
from obygaze_features.io import alone_in, empty, sha256_of, sync, sync_tree
from obygaze_features.schema import Hex64, expected, fits
from obygaze_features.store.arrays import chunk_path, create_array, read_row
from obygaze_features.store.dataset_card import Facts, croissant, describe, readme
from obygaze_features.store.format import (
    ARRAYS,
    ATTRIBUTE,
    BAGIT,
    BUILDING_SUFFIX,
    CROISSANT,
    FEATURES,
    PROVENANCE,
    STAGE_ZARR,
    STAGING_SUFFIX,
    STATUSES,
    TABLE,
    block_rows,
    spec_version,
)
from obygaze_features.store.journal import JournalEntry, is_done
from obygaze_features.store.provenance import validate_licence
from obygaze_features.store.records import GroupSpec, StoredClip, clips_csv_bytes, one_line
from obygaze_features.store.sights import refuse_holes
from obygaze_features.store.stage import Stage, read_stage
from obygaze_features.store.stage_files import stored_arrays
from obygaze_features.store.store_files import write_bag

Progress = Callable[[int, int], None]
VERSION = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)")


@dataclass
class _SettledRows:
    """The valid journal line of every row, determined from the bytes as they are read."""

    stage: Stage
    order: list[int]
    lines: dict[int, list[JournalEntry]]
    lost: dict[int, str] = field(default_factory=dict)

    def has_features(self, row: int) -> bool:
        return row in self.lines and is_done(self.lines[row][0])

    def read(self, group: str, array: str, row: int) -> bytes | None:
        """Read a row's bytes and keep the lines that agree with them; None if no line does."""
        path = chunk_path(self.stage.path / STAGE_ZARR, group, array, row)
        data = read_row(path)
        found = None if data is None else sha256_of(data)
        agreeing = [
            line
            for line in self.lines[row]
            if line.digests.get(f"{group}/{array}") == found and found is not None
        ]
        if not agreeing:
            self.lost.setdefault(row, f"{group}/{array}")
            return None
        self.lines[row] = agreeing
        return data

    def clip(self, row: int) -> StoredClip:
        plan = self.stage.clips[row]
        span = (plan.start_s, plan.end_s)
        bare = StoredClip(plan.clip_id, STATUSES[0], "", plan.movie, *span, text=plan.text)
        if row not in self.lines:
            return bare
        line = self.lines[row][0]
        return replace(bare, status=line.status, reason=line.reason, source=line.source, digests=line.digests)


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
    progress: Progress | None = None,
) -> Path:
    """Seal a stage into the folder `DESTINATION-VERSION` and return its path; the stage stays.

    Rows are sorted by clip id. Every row's bytes are checked against the journal on the way. The store is
    built under another name, flushed to disk and renamed, so a partial one is never visible.

    Parameters
    ----------
    stage_path
        The staging folder; None for `DESTINATION.staging`.
    licence
        SPDX expression or NOASSERTION.
    allow_missing
        Seal although clips are still to do; their rows get the status missing.
    max_failed
        The most clips that may have failed; None is any number.
    parent
        Fingerprint of the store that this one grew from.
    merged_with
        Fingerprints of the stores whose clips were added to the parent's.
    progress
        Called with (rows written, rows in all).

    Raises
    ------
    StoreError
        If clips are missing, too many have failed, a machine finds videos for want of which clips failed, the
        destination exists, or bytes differ from what the journal says; these clips
        are then marked missing, so that extracting again mends them.
    """
    destination = Path(destination)
    final = final_path(destination, version)
    stage = read_stage(stage_path or destination.with_name(destination.name + STAGING_SUFFIX))
    if parent is not None and not fits(parent, Hex64):
        raise StoreError(f"parent {parent!r}: expected a fingerprint, {expected(Hex64)}")
    about: dict[str, object] = {
        "spec_version": spec_version(stored_arrays(stage.clips, stage.groups)),
        "licence": validate_licence(licence),
        "citation": one_line(citation, "citation"),
        "corpus": stage.corpus,
        "parent": parent,
        **({"merged_with": list(merged_with)} if merged_with else {}),
    }
    settled = _settled_rows(stage, allow_missing=allow_missing, max_failed=max_failed)
    if devices := _devices(settled):
        about["devices"] = devices
    building = destination.with_name(destination.name + BUILDING_SUFFIX)
    with alone_in(building, "sealing here"):
        _refuse_existing(final)
        try:
            empty(building)
            _build(building, settled, about, version, progress or (lambda _done, _total: None))
            sync_tree(building)
            building.rename(final)
        except BaseException:
            shutil.rmtree(building, ignore_errors=True)
            raise
        sync(final.parent)
    return final


def final_path(destination: Path, version: str) -> Path:
    """Return the path of a version of a store; refuse invalid versions and existing ones."""
    final = versioned(destination, version)
    _refuse_existing(final)
    return final


def work_path(destination: Path, version: str, suffix: str) -> Path:
    """Return where a store is worked on before it is sealed; refuse as `final_path` does.

    Removes the remains of work that was killed after its end.
    """
    work = destination.with_name(f"{destination.name}-{version}{suffix}")
    try:
        final_path(destination, version)
    except StoreError:
        shutil.rmtree(work, ignore_errors=True)
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


def _settled_rows(stage: Stage, *, allow_missing: bool, max_failed: int | None) -> _SettledRows:
    lines = {
        row: [line for line in some if is_done(line)] or some[:1] for row, some in stage.settled().items()
    }
    missing = [clip.clip_id for row, clip in enumerate(stage.clips) if row not in lines]
    if missing and not allow_missing:
        raise StoreError(
            f"{stage.path}: {len(missing)} of {len(stage.clips)} clips are still to do, "
            f"the first is {missing[0]}; extract again, or allow missing clips (--allow-missing)"
        )
    if not allow_missing:
        refuse_holes(stage, lines)
    failed = sum(entries[0].status == "failed" for entries in lines.values())
    if max_failed is not None and failed > max_failed:
        raise StoreError(
            f"{stage.path}: {failed} clips have failed, and at most {max_failed} may (--max-failed); "
            "`obygaze extract` with --retry-failed tries them again"
        )
    return _SettledRows(
        stage, sorted(range(len(stage.clips)), key=lambda row: stage.clips[row].clip_id), lines
    )


def _devices(settled: _SettledRows) -> dict[str, int]:
    """Count the clips that each model of card computed; a CPU's are not counted."""
    named = [line.source.get("device") for line, *_ in settled.lines.values() if is_done(line)]
    return dict(sorted(Counter(str(name) for name in named if name is not None).items()))


def _build(
    building: Path, settled: _SettledRows, about: dict[str, object], version: str, progress: Progress
) -> None:
    groups = settled.stage.groups
    (building / FEATURES).mkdir(parents=True)
    root = zarr.create_group(LocalStore(building / FEATURES), zarr_format=3, attributes={ATTRIBUTE: about})
    total = len(settled.order) * sum(len(group.clip_arrays()) for group in groups)
    done = 0
    for group in groups:
        node = root.create_group(
            group.name, attributes={PROVENANCE: _provenance(group, settled.stage.corpus)}
        )
        for name, (shape, dtype) in group.clip_arrays().items():
            array = create_array(node, name, (len(settled.order), *shape), dtype.name, group.dimensions(name))
            for start, block in _blocks(settled, group.name, name, shape, dtype):
                array[start : start + len(block)] = block
                done += len(block)
                progress(done, total)
    if settled.lost:
        _annul(settled)
    clips = [settled.clip(row) for row in settled.order]
    for group in groups:
        _write_ids(root[group.name], clips)
        _consolidate(building, group.name)
    _consolidate(building, None)
    names = [f"{group.name}/{array}" for group in groups for array in group.clip_arrays()]
    (building / TABLE).write_bytes(clips_csv_bytes(clips, names))
    counts = Counter(clip.status for clip in clips)
    told = [(group.name, group.provenance, _describe(group)) for group in groups]
    facts = Facts(about, {status: counts[status] for status in STATUSES}, told)
    table = (building / TABLE).read_bytes()
    (building / CROISSANT).write_bytes(croissant(facts, version, sha256_of(table), len(table)))
    info = {
        "External-Description": f"obygaze feature store, format {about['spec_version']}",
        "Store-Version": version,
    }
    write_bag(building, info, readme(facts))


def _provenance(group: GroupSpec, corpus: dict[str, object]) -> dict[str, object]:
    storage = {spec.name: spec.dtype for spec in sorted(group.arrays, key=lambda spec: spec.name)}
    return {**group.provenance, "storage": storage, "source": corpus}


def _describe(group: GroupSpec) -> list[str]:
    return [describe(spec.name, spec.dtype, spec.shape, group.dimensions(spec.name)) for spec in group.arrays]


def _blocks(
    settled: _SettledRows, group: str, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]
) -> Iterator[tuple[int, NDArray[Any]]]:
    """Yield (first row, whole block) of one array; rows without features hold the fill value."""
    size = block_rows(name, len(settled.order))
    for start in range(0, len(settled.order), size):
        rows = settled.order[start : start + size]
        block = np.full((len(rows), *shape), ARRAYS[name].fill, dtype)
        for position, row in enumerate(rows):
            data = settled.read(group, name, row) if settled.has_features(row) else None
            if data is not None:
                block[position] = np.frombuffer(data, dtype).reshape(shape)
        yield start, block


def _annul(settled: _SettledRows) -> None:
    """Mark clips whose bytes match no journal line as missing, and stop."""
    stage = settled.stage
    reasons = {
        stage.clips[row].clip_id: f"{settled.lost[row]} is not what the journal says"
        for row in sorted(settled.lost)
    }
    with stage.writer() as writer:
        writer.annul(reasons)
    clip, reason = next(iter(reasons.items()))
    raise StoreError(
        f"{stage.path}: {len(reasons)} clips are not what they were when committed, "
        f"the first is {clip} ({reason}); they are marked missing now: extract again, then seal"
    )


def _write_ids(node: Any, clips: list[StoredClip]) -> None:
    ids = create_array(node, "clip", (len(clips),), "string", ("clip",))
    ids[:] = np.array([clip.clip_id for clip in clips], dtype=np.dtypes.StringDType())
    status = create_array(node, "status", (len(clips),), "uint8", ("clip",))
    status[:] = np.array([STATUSES.index(clip.status) for clip in clips], dtype=np.uint8)
    texts = [clip.text for clip in clips if clip.text is not None]
    if texts:
        text = create_array(node, "text", (len(clips),), "string", ("clip",))
        text[:] = np.array(texts, dtype=np.dtypes.StringDType())


def _consolidate(building: Path, group: str | None) -> None:
    """Repeat all metadata at one place, for readers that cannot list; every group stands alone too."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Consolidated metadata is currently not part")
        zarr.consolidate_metadata(LocalStore(building / FEATURES), path=group)
