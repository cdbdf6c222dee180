"""Import features extracted with other tools; the provenance marks them as imported."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from obygaze_features.errors import StoreError
from obygaze_features.exchange.axes import Axes, in_order, refuse_other_axes
from obygaze_features.exchange.columns import SHOWN
from obygaze_features.exchange.frame_rows import in_seconds, refuse_uneven
from obygaze_features.exchange.import_items import Arrays, ImportItem
from obygaze_features.io import remove_tree, store_path
from obygaze_features.screen import Progress
from obygaze_features.store.format import (
    ANY_NUMBER,
    ARRAYS,
    DONE,
    FEATURE_ARRAYS,
    IMPORTING_SUFFIX,
    TIME_ARRAYS,
    Status,
)
from obygaze_features.store.provenance import unknown_provenance, validate_licence
from obygaze_features.store.records import ArraySpec, ClipFeatures, ClipResult, GroupSpec, PlannedClip
from obygaze_features.store.sealing import passing_stage, seal
from obygaze_features.store.stage import Stage
from obygaze_features.text import first_few

FEATURE_LIKE = re.compile(
    r"feat|emb|vec|repr|hidden|token|pool|frame|data|^(?:[fvxz]|pc|dim)?[_.-]?$|^arr_0$", re.IGNORECASE
)
"""Names that features have in other people's files, those of a series without its numbers; or none."""


AROUND_S = 10.0
"""How far behind its clip a frame may lie."""


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
        Known fields of the provenance; the others are unknown.
    dtype
        Data type to convert to; None converts nothing.
    named
        Whether the features were asked for by their name. Others are refused where an array has no name of
        features and whole numbers in all clips: they may be labels.
    series
        Name of the columns of a table, without their numbers: the name of arrays that have none.
    axes
        Order of the axes of frames and tokens in the files; None takes them for those of the format.
    per_second
        Frames in a second of the video, from which the times of frames follow; None leaves them unknown where
        the files have none.
    times
        Name of the array beside the features that holds the times of the frames, in seconds, or in
        milliseconds if its name ends in ms; None for `time_s`.
    """

    backbone: str
    array: str
    provenance: Mapping[str, object]
    dtype: str | None = None
    named: bool = True
    series: str = ""
    axes: Axes | None = None
    per_second: float | None = None
    times: str | None = None

    def __post_init__(self) -> None:
        rate = self.per_second
        if rate is not None and not (rate > 0 and np.isfinite(rate)):
            raise StoreError(f"--rate {rate:g}: expected a number of frames in a second, above 0")


def import_features(
    features: Mapping[str, ImportItem],
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
    note: Callable[[str], object] = lambda _: None,
) -> Path:
    """Seal features of another tool as `DESTINATION-VERSION` and return its path.

    Clips may have frames of any number: unless all have the same, the store's group is ragged. Missing
    presentation times and frame indices are stored as unknown (NaN, -1). With a rate, frame i is at i
    divided by the rate, from the start of the clip on. An import that fails leaves nothing behind.

    Parameters
    ----------
    features
        Clip id -> its features.
    clips
        The clips of the store; those without features are missing.
    progress
        Called with (clips or rows done, in all).
    note
        Called with what is doubtful in them, if anything is.

    Raises
    ------
    StoreError
        Naming the file, if shape, data type or values are not what they should be; or if clips are missing.
    """
    destination = store_path(destination)
    validate_licence(licence)
    absent = [clip.clip_id for clip in clips if clip.clip_id not in features]
    if not features or (absent and not allow_missing):
        raise StoreError(
            f"{destination}: {len(absent)} of {len(clips)} clips have no features to import, "
            f"the first is {absent[0]}; look at --pattern, or allow missing clips (--allow-missing)"
        )
    first = next(features[clip.clip_id] for clip in clips if clip.clip_id in features)
    arrays = _load(first, declared, first.load())
    with _naming(first):
        kind = _group_spec(arrays, declared)
    with passing_stage(destination, version, IMPORTING_SUFFIX) as open_stage:
        stage = open_stage(clips, [kind], corpus)
        try:
            written = _write(stage, features, declared, progress)
        except _OtherFrames:
            remove_tree(stage.path)
            stage = open_stage(clips, [_ragged(kind)], corpus)
            written = _write(stage, features, declared, progress)
        if doubt := _doubtful_axes(stage.groups[0], declared, written.most_frames):
            note(doubt)
        if written.constant:
            shown = f"{len(written.constant)} of {len(clips)} clips have one number as all their features"
            note(f"constant: {shown}: {first_few(written.constant, SHOWN)}")
        return seal(
            stage.path,
            destination,
            version=version,
            licence=licence,
            citation=citation,
            allow_missing=allow_missing,
            progress=progress,
        )


class _OtherFrames(Exception):  # noqa: N818 - no error of a user: it ends a first try
    """A clip has another number of frames than the first: the group must be ragged."""


class _Written(NamedTuple):
    """What was committed.

    Attributes
    ----------
    constant
        The clips whose features are one number, as what was never computed.
    most_frames
        Largest number of frames of a clip.
    """

    constant: list[str]
    most_frames: int


def _ragged(kind: GroupSpec) -> GroupSpec:
    """Return a group like another, in which clips have frames of any number."""
    specs = [
        replace(spec, shape=(ANY_NUMBER, *spec.shape[1:])) if spec.name == "frames" else spec
        for spec in kind.arrays
    ]
    return replace(kind, arrays=tuple(specs), n_frames=ANY_NUMBER)


def _write(
    stage: Stage, features: Mapping[str, ImportItem], declared: Declared, progress: Progress | None
) -> _Written:
    """Commit what is missing.

    Raises
    ------
    _OtherFrames
        If a clip has not the number of frames that all have in the group.
    """
    (kind,) = stage.groups
    todo = [clip for clip in stage.missing() if clip in features]
    doubtful = not declared.named
    constant = list[str]()
    most_frames = 0
    with stage.writer(todo) as writer:
        for n_imported, clip in enumerate(todo, start=1):
            item = features[clip]
            arrays = item.load()
            doubtful = doubtful and not any(
                FEATURE_LIKE.search(name or declared.series) or _has_fractions(values)
                for name, values in arrays.items()
                if name not in (*TIME_ARRAYS, declared.times)
            )
            arrays = _load(item, declared, arrays)
            if all(_is_constant(arrays[name]) for name in FEATURE_ARRAYS if name in arrays):
                constant.append(clip)
            if "frames" in arrays:
                most_frames = max(most_frames, len(arrays["frames"]))
                _refuse_other_frames(item, kind, arrays)
            result = _result(stage.clips[stage.rows[clip]], item, kind, arrays, declared.per_second)
            with _naming(item):
                writer.commit([result])
            if progress is not None:
                progress(n_imported, len(todo))
    if doubtful and todo:
        raise StoreError(
            f"{features[todo[0]].where}: whole numbers in all clips, as labels are; if they are features, "
            "name them (--columns; '*' for all)"
        )
    return _Written(constant, most_frames)


def _refuse_other_frames(item: ImportItem, kind: GroupSpec, arrays: Arrays) -> None:
    """Refuse frames of another number of numbers; raise `_OtherFrames` for another number of frames."""
    (spec,) = (spec for spec in kind.arrays if spec.name == "frames")
    frames = arrays["frames"]
    if frames.ndim != 2:
        return  # refused with its shape
    if frames.shape[1] != spec.shape[1]:
        raise StoreError(
            f"{item.where}: {frames.shape[0]} frames of {frames.shape[1]} numbers, and others have "
            f"{spec.shape[1]} in a frame; if the files have [D, T], import with --axes DT"
        )
    if not kind.ragged and len(frames) != spec.shape[0]:
        if kind.n_frames != spec.shape[0]:
            raise StoreError(
                f"{item.where}: {len(frames)} frames, and others have {spec.shape[0]}, each for several of "
                f"{kind.n_frames} that were sampled; this needs one number of frames for all clips"
            )
        raise _OtherFrames


def _is_constant(values: NDArray[Any]) -> bool:
    """Tell whether all of several numbers are one, such as zeros of what was never computed."""
    flat = values.reshape(-1)
    if flat.size < 2:
        return False
    first = flat[:64]  # which tell it of most arrays, without the others
    return not (first != flat[0]).any() and not (flat != flat[0]).any()


def _has_fractions(values: NDArray[Any]) -> bool:
    """Tell whether real numbers are not all whole; in most arrays the first ones are not."""
    if values.dtype.kind != "f":
        return False
    flat = values.reshape(-1)
    first = flat[:64]
    return bool((first != np.rint(first)).any() or (flat != np.rint(flat)).any())


@contextmanager
def _naming(item: ImportItem) -> Iterator[None]:
    """Add the file's name to an error."""
    try:
        yield
    except StoreError as error:
        raise StoreError(f"{item.where}: {error}") from None


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
        value = declared.get(name, unknown)
        complete[name] = (
            {**unknown, **value} if isinstance(unknown, dict) and isinstance(value, dict) else value
        )
    return {**declared, **complete, "name": backbone, "imported": True}


def _load(item: ImportItem, declared: Declared, arrays: Arrays) -> Arrays:
    """Return a clip's arrays under the names of the format, converted only if declared."""
    array_names = (*FEATURE_ARRAYS, *TIME_ARRAYS)
    if declared.times is not None:
        arrays = _with_times(item, declared.times, arrays)
    named = not arrays.keys().isdisjoint(FEATURE_ARRAYS)
    if len(arrays.keys() - set(TIME_ARRAYS)) == 1 and not named:
        arrays = {name if name in TIME_ARRAYS else declared.array: values for name, values in arrays.items()}
    if strange := sorted(arrays.keys() - set(array_names)):
        raise StoreError(
            f"{item.where}: {', '.join(strange)} beside other arrays; expected one, or "
            f"{', '.join(array_names)}"
        )
    if not arrays.keys() & set(FEATURE_ARRAYS):
        raise StoreError(f"{item.where}: no features in it")
    if declared.axes is not None and arrays.keys().isdisjoint(("frames", "tokens")):
        raise StoreError(
            f"{item.where}: --axes {declared.axes} orders frames or tokens: add --array frames, or tokens"
        )
    if declared.per_second is not None and "time_s" in arrays:
        raise StoreError(f"{item.where}: holds time_s, and --rate says other times; give one of both")
    fitting = {}
    for name, values in arrays.items():
        fitting[name] = _fit(values, name, item.where, declared, named=named)
        if not fitting[name].size:
            raise StoreError(f"{item.where}: {name} is empty, {list(values.shape)}")
    return fitting


def _with_times(item: ImportItem, name: str, arrays: Arrays) -> Arrays:
    """Return a clip's arrays with the times that an array holds, in seconds."""
    if name not in arrays:
        raise StoreError(f"{item.where}: has no {name} (--times); found {', '.join(arrays)}")
    features = {key: values for key, values in arrays.items() if key != name}
    if "time_s" in features:
        raise StoreError(f"{item.where}: holds time_s, and --times {name}; give one of both")
    if arrays[name].dtype.kind not in "fiu":
        raise StoreError(f"{item.where}: {name} (--times) holds {arrays[name].dtype}, expected numbers")
    return {**features, "time_s": in_seconds(name, arrays[name])}


def _fit(values: NDArray[Any], name: str, where: str, declared: Declared, *, named: bool) -> NDArray[Any]:
    """Return an array with the axes of the format, converted if that is declared.

    `named` is whether the file calls its arrays as the format does.
    """
    dtype = declared.dtype
    n_axes = len(ARRAYS[name].dims) - 1
    if values.ndim == 0:
        raise StoreError(f"{where}: {name} is one number; expected an array")
    values = in_order(values, n_axes, declared.axes, f"{where}, {name}")
    if name in FEATURE_ARRAYS:
        refuse_other_axes(name, values.shape, n_axes, where, named=named)
    elif values.ndim != 1:
        raise StoreError(f"{where}: the axes of {name} are {list(values.shape)}, expected [T]: one a frame")
    if name in FEATURE_ARRAYS and dtype is not None and values.dtype.kind in "fiu":
        with np.errstate(over="ignore"):
            values = values.astype(dtype)
    elif name in TIME_ARRAYS and np.can_cast(values.dtype, ARRAYS[name].dtypes[0]):
        values = values.astype(ARRAYS[name].dtypes[0])  # nothing is lost
    if values.dtype.name not in ARRAYS[name].dtypes:
        remedy = f"nothing is converted unless asked for (--dtype {ARRAYS[name].dtypes[0]})"
        raise StoreError(
            f"{where}: {name} is {values.dtype}, the format stores {' or '.join(ARRAYS[name].dtypes)}; "
            f"{remedy if values.dtype.kind in 'fiu' else 'save features as such'}"
        )
    return values


def _group_spec(arrays: Arrays, declared: Declared) -> GroupSpec:
    specs = tuple(
        ArraySpec(name, arrays[name].shape, arrays[name].dtype.name)
        for name in FEATURE_ARRAYS
        if name in arrays
    )
    provenance = declaration(declared.provenance, declared.backbone)
    if declared.dtype is not None:
        provenance["converted_to"] = declared.dtype
    sampling = provenance["sampling"]
    if declared.per_second is not None and isinstance(sampling, dict):
        provenance["sampling"] = {**sampling, "per_second": declared.per_second}
    declared_n = sampling.get("n") if isinstance(sampling, dict) else None
    if "time_s" in arrays:
        n_frames = len(arrays["time_s"])
    elif isinstance(declared_n, int) and declared_n > 0:
        n_frames = declared_n
    else:
        n_frames = len(arrays["frames"]) if "frames" in arrays else 1
    return GroupSpec(declared.backbone, specs, n_frames, provenance)


def _doubtful_axes(kind: GroupSpec, declared: Declared, most_frames: int) -> str:
    """Say that what is taken for frames may be their numbers; empty where unlikely, or axes are said."""
    if declared.axes is not None:
        return ""
    for spec in kind.arrays:
        if len(spec.shape) < 2:
            continue
        rows = most_frames if spec.ragged else spec.shape[0]
        numbers = spec.shape[1]
        if rows >= numbers:
            return (
                f"axes: {rows} {spec.name} of {numbers} numbers in a clip, no fewer than numbers in each: if "
                f"the files have [D, T], import with --axes DT; if this is right, --axes TD says so"
            )
    return ""


def _result(
    clip: PlannedClip, item: ImportItem, kind: GroupSpec, arrays: Arrays, per_second: float | None
) -> ClipResult:
    if item.status not in DONE:
        raise StoreError(f"{item.where}: status {item.status!r}; features are ok or partial")
    n_frames = len(arrays["frames"]) if kind.ragged else kind.n_frames
    times = {"time_s": np.full(n_frames, np.nan), "frame_index": np.full(n_frames, -1, np.int64)}
    if per_second is not None:
        if "frame_index" in arrays:
            refuse_uneven(item.where, arrays["frame_index"])
        times["time_s"] = (clip.start_s or 0.0) + np.arange(n_frames) / per_second
    times |= {name: arrays[name] for name in times if name in arrays}
    for name, values in times.items():
        if (np.diff(values) < 0).any():
            raise StoreError(f"{item.where}: {name} falls; frames are in the order of their times")
    if (times["frame_index"] < 0).any() and (times["frame_index"] != -1).any():
        raise StoreError(
            f"{item.where}: frame_index has negative numbers; expected indices in the file, from 0 on"
        )
    for name in times:
        if len(times[name]) != n_frames:
            raise StoreError(f"{item.where}: {len(times[name])} {name}, and {n_frames} frames")
    last_s = times["time_s"][-1]
    latest_s = (clip.end_s or np.inf) + AROUND_S
    if last_s > latest_s:
        raise StoreError(f"{item.where}: time_s {last_s:g}; expected the video's seconds, up to {latest_s:g}")
    values_of = {name: values for name, values in arrays.items() if name not in times}
    features = {kind.name: ClipFeatures(times["time_s"], times["frame_index"], values_of)}
    return ClipResult(clip.clip_id, cast("Status", item.status), item.reason, groups=features)
