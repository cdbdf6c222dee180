"""Import features extracted with other tools; the provenance marks them as imported."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from obygaze_features.errors import StoreError
from obygaze_features.exchange.import_items import Arrays, ImportItem
from obygaze_features.io import empty, remove_tree
from obygaze_features.locks import alone_in
from obygaze_features.store.format import (
    ARRAYS,
    COMMIT_GROUP,
    DONE,
    FEATURE_ARRAYS,
    IMPORTING_SUFFIX,
    TIME_ARRAYS,
    Status,
)
from obygaze_features.store.provenance import unknown_provenance, validate_licence
from obygaze_features.store.records import ArraySpec, ClipFeatures, ClipResult, GroupSpec, PlannedClip
from obygaze_features.store.sealing import Progress, seal, work_path
from obygaze_features.store.stage import Stage


@dataclass(frozen=True)
class Declared:
    """The declared provenance of imported features.

    Attributes
    ----------
    backbone
        Name of the group.
    array
        What a single array of a clip is: pooled [D], frames [F, D] or tokens [T, D].
    provenance
        What is known of where they come from; the rest is unknown.
    dtype
        Convert to this data type on purpose; None: nothing is converted.
    """

    backbone: str
    array: str
    provenance: Mapping[str, object]
    dtype: str | None = None


def import_features(
    pieces: Mapping[str, ImportItem],
    clips: Sequence[PlannedClip],
    declared: Declared,
    destination: Path | str,
    *,
    corpus: Mapping[str, object],
    licence: str,
    citation: str = "",
    version: str = "1.0.0",
    allow_missing: bool = False,
    progress: Progress | None = None,
) -> Path:
    """Seal features that others made as `DESTINATION-VERSION` and return its path.

    Presentation times and frame indices that the features come without are stored as unknown (NaN, -1).
    Nothing is left of an import that fails.

    Parameters
    ----------
    pieces
        Clip id -> its features.
    clips
        The clips of the store; those without features are missing.
    progress
        Called with (clips or rows done, in all).

    Raises
    ------
    StoreError
        Naming the file, if shape, data type or values are not what they should be; or if clips are missing.
    """
    destination = Path(destination)
    work = work_path(destination, version, IMPORTING_SUFFIX)
    validate_licence(licence)
    absent = [clip.clip_id for clip in clips if clip.clip_id not in pieces]
    if not pieces or (absent and not allow_missing):
        raise StoreError(
            f"{destination}: {len(absent)} of {len(clips)} clips have no features to import, "
            f"the first is {absent[0]}; look at --pattern, or allow missing clips (--allow-missing)"
        )
    first = next(clip.clip_id for clip in clips if clip.clip_id in pieces)
    kind = _group_spec(_load(pieces[first], declared), pieces[first], declared)
    place = work / "part" / "stage"  # not in `work` itself: making a stage locks the folder that it is in
    with alone_in(work, "importing here"):
        try:
            # The files may have changed since: what a killed import left cannot be trusted to be what is in
            # them.
            empty(work)
            _stage(Stage.open(place, clips, [kind], corpus), pieces, kind, declared, progress)
            return seal(
                place,
                destination,
                version=version,
                licence=licence,
                citation=citation,
                allow_missing=allow_missing,
                progress=progress,
            )
        finally:
            remove_tree(work, ignore_errors=True)


def _stage(
    stage: Stage,
    pieces: Mapping[str, ImportItem],
    kind: GroupSpec,
    declared: Declared,
    progress: Progress | None,
) -> None:
    todo = [clip for clip in stage.missing() if clip in pieces]
    with stage.writer() as writer:
        for start in range(0, len(todo), COMMIT_GROUP):
            batch = todo[start : start + COMMIT_GROUP]
            writer.commit([_result(clip, pieces[clip], kind, declared) for clip in batch])
            if progress is not None:
                progress(start + len(batch), len(todo))


def declaration(declared: Mapping[str, object], backbone: str) -> dict[str, object]:
    """Complete a declaration: other fields are unknown, and `imported` marks all of it as unverified.

    Raises
    ------
    StoreError
        If it was declared that the features are not imported.
    """
    if declared.get("imported", True) is not True:
        raise StoreError("provenance: 'imported' is true for what is imported, and cannot be declared away")
    complete: dict[str, object] = {}
    for name, unknown in unknown_provenance().items():
        said = declared.get(name, unknown)
        complete[name] = {**unknown, **said} if isinstance(unknown, dict) and isinstance(said, dict) else said
    return {**declared, **complete, "name": backbone, "imported": True}


def _load(piece: ImportItem, declared: Declared) -> Arrays:
    """Read a clip's arrays under the names of the format, converted only where that was asked for."""
    found = piece.load()
    known = (*FEATURE_ARRAYS, *TIME_ARRAYS)
    if len(found) == 1 and not found.keys() & set(known):
        found = {declared.array: next(iter(found.values()))}
    if strange := sorted(found.keys() - set(known)):
        raise StoreError(
            f"{piece.where}: {', '.join(strange)} beside other arrays; expected one, or {', '.join(known)}"
        )
    if not found.keys() & set(FEATURE_ARRAYS):
        raise StoreError(f"{piece.where}: no features in it")
    return {name: _fit(values, name, piece.where, declared.dtype) for name, values in found.items()}


def _fit(values: NDArray[Any], name: str, where: str, dtype: str | None) -> NDArray[Any]:
    sizes = ARRAYS[name].dims[1:]
    shape = list(values.shape)
    if values.ndim == len(sizes) + 1 and shape[0] == 1:
        values = values[0]
    if values.ndim != len(sizes) or 0 in values.shape:
        axes = ", ".join(sizes)
        raise StoreError(f"{where}: {name} should be [{axes}] or [1, {axes}], not empty; found {shape}")
    if name in FEATURE_ARRAYS and values.dtype.kind == "f" and not np.isfinite(values).all():
        raise StoreError(
            f"{where}: {name} holds {int((~np.isfinite(values)).sum())} values that are NaN or inf"
        )
    if name in FEATURE_ARRAYS and dtype is not None and values.dtype.kind == "f":
        with np.errstate(over="ignore"):
            converted = values.astype(dtype)
        if not np.isfinite(converted).all():
            raise StoreError(f"{where}: {name} has values that {dtype} cannot hold")
        values = converted
    if values.dtype.name not in ARRAYS[name].dtypes:
        raise StoreError(
            f"{where}: {name} is {values.dtype}, the format stores {' or '.join(ARRAYS[name].dtypes)}; "
            "nothing is converted unless asked for (--dtype)"
        )
    return values


def _group_spec(arrays: Arrays, piece: ImportItem, declared: Declared) -> GroupSpec:
    specs = tuple(
        ArraySpec(name, arrays[name].shape, arrays[name].dtype.name)
        for name in FEATURE_ARRAYS
        if name in arrays
    )
    provenance = declaration(declared.provenance, declared.backbone)
    if declared.dtype is not None:
        provenance["converted_to"] = declared.dtype
    sampling = provenance["sampling"]
    said = sampling.get("n") if isinstance(sampling, dict) else None
    if "time_s" in arrays:
        n_frames = len(arrays["time_s"])
    elif isinstance(said, int) and said > 0:
        n_frames = said
    else:
        n_frames = len(arrays["frames"]) if "frames" in arrays else 1
    try:
        return GroupSpec(declared.backbone, specs, n_frames, provenance)
    except StoreError as error:
        raise StoreError(f"{piece.where}: {error}") from None


def _result(clip: str, piece: ImportItem, kind: GroupSpec, declared: Declared) -> ClipResult:
    arrays = dict(_load(piece, declared))
    if piece.status not in DONE:
        raise StoreError(f"{piece.where}: status {piece.status!r}; features are ok or partial")
    times = arrays.pop("time_s", np.full(kind.n_frames, np.nan))
    indices = arrays.pop("frame_index", np.full(kind.n_frames, -1, np.int64))
    for spec in kind.arrays:
        found = arrays.get(spec.name)
        if found is None or (found.shape, found.dtype.name) != (spec.shape, spec.dtype):
            what = "nothing" if found is None else f"{found.dtype} {list(found.shape)}"
            raise StoreError(
                f"{piece.where}: expected {spec.name} {spec.dtype} {list(spec.shape)} as in the first file; "
                f"found {what}"
            )
    features = {kind.name: ClipFeatures(times, indices, arrays)}
    return ClipResult(clip, cast("Status", piece.status), piece.reason, groups=features)
