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
from obygaze_features.exchange.axes import Axes, refuse_other_axes, reorder_axes
from obygaze_features.exchange.columns import SHOWN
from obygaze_features.exchange.frame_rows import refuse_uneven, times_in_seconds
from obygaze_features.exchange.import_items import Arrays, ImportItem
from obygaze_features.io import remove_tree, store_path
from obygaze_features.screen import Progress
from obygaze_features.store.format import (
    ANY_NUMBER,
    ARRAYS,
    FEATURE_ARRAYS,
    IMPORTING_SUFFIX,
    STATUSES_WITH_FEATURES,
    TIME_ARRAYS,
    Status,
)
from obygaze_features.store.provenance import unknown_provenance, validate_licence
from obygaze_features.store.records import (
    ArraySpec,
    ClipFeatures,
    ClipResult,
    GroupSpec,
    PlannedClip,
    parse_gaps,
)
from obygaze_features.store.sealing import seal, temporary_stage
from obygaze_features.store.stage import Stage
from obygaze_features.text import counted, first_few

FEATURE_LIKE = re.compile(
    r"feat|emb|vec|repr|hidden|token|pool|frame|data|^(?:[fvxz]|pc|dim)?[_.-]?$|^arr_0$", re.IGNORECASE
)
"""Names that features have in other people's files; a series of columns counts without its numbers."""


MAX_OUTSIDE_S = 10.0
"""Seconds before or after its clip at which a frame may lie; others are of another clock."""

FEW_NUMBERS = 64
"""Numbers at the start of an array that decide most questions without looking at the others."""


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
    are_features_named
        Whether the user named the features. If not, an array of whole numbers in all clips whose name is not
        one that features have is refused: it may hold labels.
    series
        Name of the columns of a table, without their numbers; it stands for the name of an array without one.
    axes
        Order of the axes of frames and tokens in the files; None for that of the format.
    per_second
        Frames in a second of the video, from which the times of frames follow. None leaves times unknown if
        the files have none.
    times
        Name of the array beside the features that holds the times of the frames, in seconds, or in
        milliseconds if its name ends in ms; None for `time_s`.
    """

    backbone: str
    array: str
    provenance: Mapping[str, object]
    dtype: str | None = None
    are_features_named: bool = True
    series: str = ""
    axes: Axes | None = None
    per_second: float | None = None
    times: str | None = None

    def __post_init__(self) -> None:
        """Raise a StoreError if the rate is not a positive number."""
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
    """Seal features of another tool as the store `DESTINATION-VERSION` and return its path.

    If clips differ in their number of frames, the store's group is ragged. Unknown presentation times and
    frame indices are stored as NaN and -1. With a declared rate, frame i of a clip is i / rate seconds after
    its start. An import that fails leaves nothing behind.

    Parameters
    ----------
    features
        Clip id -> its features.
    clips
        The clips of the store; those without features are missing.
    declared
        What the user declares of the features: backbone, provenance, axes, data type and times.
    destination, version
        Path of the store without the version, and the version.
    corpus
        Description of the clips.
    licence, citation, allow_missing
        As for `seal`.
    progress
        Called with (clips or rows done, in all).
    note
        Called with warnings, such as of axes that may be swapped.

    Raises
    ------
    StoreError
        Naming the file, if shape, data type or values are not what they should be; or if clips are missing.
    """
    destination = store_path(destination)
    validate_licence(licence)

    absent = [clip.clip_id for clip in clips if clip.clip_id not in features]
    are_too_many_absent = len(absent) > 0 and not allow_missing
    if not features or are_too_many_absent:
        raise StoreError(
            f"{destination}: {len(absent)} of {counted(len(clips), 'clip')} have no features to import, "
            f"the first is {absent[0]}; look at --pattern, or allow missing clips (--allow-missing)"
        )

    # The first clip with features shows the shapes. That clips have different numbers of frames shows only
    # later.
    first = next(features[clip.clip_id] for clip in clips if clip.clip_id in features)
    arrays = _arrays_of_format(first, declared, first.load())
    with _file_named_in_errors(first):
        group = _group_spec(arrays, declared)

    with temporary_stage(destination, version, IMPORTING_SUFFIX) as open_stage:
        stage = open_stage(clips, [group], corpus)
        try:
            imported = _import_clips(stage, features, declared, progress)
        except _DifferentFrameCounts:  # begin again with a ragged group
            remove_tree(stage.path)
            stage = open_stage(clips, [_as_ragged(group)], corpus)
            imported = _import_clips(stage, features, declared, progress)
        for warning in _warnings(imported, stage.groups[0], declared, len(clips)):
            note(warning)
        return seal(
            stage.path,
            destination,
            version=version,
            licence=licence,
            citation=citation,
            allow_missing=allow_missing,
            progress=progress,
        )


class _DifferentFrameCounts(Exception):  # noqa: N818 - no error of a user: the import begins again
    """A clip has another number of frames than the first: the group must be ragged."""


class _ImportedClips(NamedTuple):
    """What was noticed in the features that were committed.

    Attributes
    ----------
    constant
        The clips whose features are all the same number, as if they were never computed.
    padded
        The clips whose last frame is zeros alone, and another is not, as if they were padded to one length.
    max_frames
        Largest number of frames of a clip.
    """

    constant: list[str]
    padded: list[str]
    max_frames: int


def _warnings(imported: _ImportedClips, group: GroupSpec, declared: Declared, n_clips: int) -> list[str]:
    """Return warnings on imported features: swapped axes, clips with one number only, padded clips."""
    warnings = []
    axes_warning = _warn_of_swapped_axes(group, declared, imported.max_frames)
    if axes_warning:
        warnings.append(axes_warning)
    if imported.constant:
        n_constant = f"{len(imported.constant)} of {counted(n_clips, 'clip')}"
        shown = first_few(imported.constant, SHOWN)
        warnings.append(f"constant: {n_constant} have one number as all their features: {shown}")
    if imported.padded:
        n_padded = f"{len(imported.padded)} of {counted(n_clips, 'clip')}"
        shown = first_few(imported.padded, SHOWN)
        warnings.append(
            f"padded: {n_padded} end in frames of zeros alone: {shown}; if these only fill an array for all "
            "clips, import each clip's own frames, as in np.savez(FILE, **{clip: values[:length]})"
        )
    return warnings


def _as_ragged(group: GroupSpec) -> GroupSpec:
    """Return a copy of a group's declaration in which clips may have different numbers of frames (ragged)."""
    specs = []
    for spec in group.arrays:
        if spec.name == "frames":
            specs.append(replace(spec, shape=(ANY_NUMBER, *spec.shape[1:])))
        else:
            specs.append(spec)
    return replace(group, arrays=tuple(specs), n_frames=ANY_NUMBER)


def _import_clips(
    stage: Stage, features: Mapping[str, ImportItem], declared: Declared, progress: Progress | None
) -> _ImportedClips:
    """Load and check the features of the clips that a stage still lacks, and commit them.

    Features that the user did not name may be labels, if they are whole numbers in all clips. This shows only
    after the last clip; an error then keeps the stage from being sealed.

    Raises
    ------
    _DifferentFrameCounts
        If a clip has another number of frames than the group declares.
    StoreError
        If features do not fit, or may be labels.
    """
    (group,) = stage.groups  # an import has one group
    ids_to_do = [clip_id for clip_id in stage.missing() if clip_id in features]
    # Becomes false with the first clip whose numbers cannot be labels.
    may_be_labels = not declared.are_features_named
    # What the user is told after the import
    constant_ids = list[str]()  # clips all of whose features are one number
    padded_ids = list[str]()  # clips whose frames end in zeros, as padding does
    max_frames = 0
    with stage.writer(ids_to_do) as writer:
        for n_imported, clip_id in enumerate(ids_to_do, start=1):
            # Read the arrays of another tool's file, and convert them to those of a store.
            item = features[clip_id]
            arrays_of_file = item.load()
            if may_be_labels and _looks_like_features(arrays_of_file, declared):
                may_be_labels = False
            arrays = _arrays_of_format(item, declared, arrays_of_file)

            # Check them, and note what is odd.
            if _are_features_constant(arrays):
                constant_ids.append(clip_id)
            if "frames" in arrays:
                max_frames = max(max_frames, len(arrays["frames"]))
                _check_frames(item, group, arrays["frames"])
                if _ends_in_zeros(arrays["frames"]):
                    padded_ids.append(clip_id)

            # Write them into the stage.
            planned_clip = stage.clips[stage.rows[clip_id]]
            result = _make_result(planned_clip, item, group, arrays, declared.per_second)
            with _file_named_in_errors(item):  # the stage knows clips alone
                writer.commit([result])
            if progress is not None:
                progress(n_imported, len(ids_to_do))

    if may_be_labels and ids_to_do:
        raise StoreError(
            f"{features[ids_to_do[0]].where}: whole numbers in all clips, as labels are; if they are "
            "features, name them (--columns; '*' for all)"
        )
    return _ImportedClips(constant_ids, padded_ids, max_frames)


def _looks_like_features(arrays: Arrays, declared: Declared) -> bool:
    """Return whether one of a clip's arrays is certain to hold features rather than labels.

    It is if its name is typical of features, or if it has numbers that are not whole. Times do not count.
    """
    for name, values in arrays.items():
        are_times = name in TIME_ARRAYS or name == declared.times
        if are_times:
            continue
        name_of_features = name or declared.series  # an array that is the only one of a file has no name
        has_typical_name = FEATURE_LIKE.search(name_of_features) is not None
        if has_typical_name or _has_fractions(values):
            return True
    return False


def _check_frames(item: ImportItem, group: GroupSpec, frames: NDArray[Any]) -> None:
    """Check the frames [F, D] of a clip against the group that was declared from the first clip.

    The group's `n_frames` is the number of frames that were sampled of the first clip. If the first clip has
    another number of vectors, each stands for several sampled frames (a tubelet). Then all clips must have
    as many vectors. Otherwise clips may have different numbers of frames, but only in a ragged group.

    Raises
    ------
    StoreError
        If a frame has another number of features, or the number of tubelets differs from the first clip's.
    _DifferentFrameCounts
        If only the number of frames differs, which a ragged group allows. The caller of `_import_clips` then
        begins again with such a group.
    """
    if frames.ndim != 2:
        return  # refused later, with its shape
    (frames_of_first_clip,) = (spec for spec in group.arrays if spec.name == "frames")
    n_expected, width_expected = frames_of_first_clip.shape
    n_frames, width = frames.shape
    if width != width_expected:
        raise StoreError(
            f"{item.where}: {counted(n_frames, 'frame')} of {counted(width, 'number')}, and others have "
            f"{width_expected} in a frame; if the files have [D, T], import with --axes DT"
        )
    may_have_any_number = group.ragged
    if may_have_any_number or n_frames == n_expected:
        return
    are_tubelets = group.n_frames != n_expected
    if are_tubelets:
        raise StoreError(
            f"{item.where}: {counted(n_frames, 'frame')}, and others have {n_expected}, each for several of "
            f"{group.n_frames} that were sampled; this needs one number of frames for all clips"
        )
    raise _DifferentFrameCounts


def _ends_in_zeros(frames: NDArray[Any]) -> bool:
    """Return whether the last of a clip's frames [F, D] is zeros alone, though not all of them are."""
    return not frames[-1].any() and bool(frames.any())


def _are_features_constant(arrays: Arrays) -> bool:
    """Return whether each of a clip's arrays of features has only one number, again and again."""
    return all(_is_constant(arrays[name]) for name in FEATURE_ARRAYS if name in arrays)


def _is_constant(values: NDArray[Any]) -> bool:
    """Return whether an array has several numbers that are all equal, such as zeros never overwritten."""
    flat = values.reshape(-1)
    if flat.size < 2:
        return False
    # In most arrays the first numbers differ, and the others need not be looked at.
    if (flat[:FEW_NUMBERS] != flat[0]).any():
        return False
    return not (flat != flat[0]).any()


def _has_fractions(values: NDArray[Any]) -> bool:
    """Return whether an array of real numbers has one that is not whole; labels have none."""
    if values.dtype.kind != "f":
        return False
    flat = values.reshape(-1)
    # In most arrays the first numbers are not whole, and the others need not be looked at.
    first = flat[:FEW_NUMBERS]
    if (first != np.rint(first)).any():
        return True
    return bool((flat != np.rint(flat)).any())


@contextmanager
def _file_named_in_errors(item: ImportItem) -> Iterator[None]:
    """Put the name of a clip's file before the message of any StoreError raised in the `with` block."""
    try:
        yield
    except StoreError as error:
        raise StoreError(f"{item.where}: {error}") from None


def declaration(declared: Mapping[str, object], backbone: str) -> dict[str, object]:
    """Complete the declared provenance of imported features.

    Fields that are not declared are set to unknown, those of nested tables too: of `sampling`, a declared `n`
    is kept and its policy is unknown. `imported` is set to true, as nothing was verified.

    Raises
    ------
    StoreError
        If `imported` was declared to be anything but true.
    """
    if declared.get("imported", True) is not True:
        raise StoreError("provenance: 'imported' is true for what is imported, and cannot be declared away")
    complete: dict[str, object] = {}
    for name, unknown in unknown_provenance().items():
        value = declared.get(name, unknown)
        if isinstance(unknown, dict) and isinstance(value, dict):
            complete[name] = {**unknown, **value}
        else:
            complete[name] = value
    return {**declared, **complete, "name": backbone, "imported": True}


def _refuse_unknown_names(item: ImportItem, arrays: Arrays) -> None:
    """Raise a StoreError if a clip has arrays with names that the store format lacks, or times only.

    `item` is the clip's file, for the message; `arrays` is name -> array.
    """
    known_names = (*FEATURE_ARRAYS, *TIME_ARRAYS)
    unknown_names = sorted(arrays.keys() - set(known_names))
    if unknown_names:
        raise StoreError(
            f"{item.where}: {', '.join(unknown_names)} beside other arrays; expected one, or "
            f"{', '.join(known_names)}"
        )
    if arrays.keys().isdisjoint(FEATURE_ARRAYS):
        raise StoreError(f"{item.where}: no features in it")


def _arrays_of_format(item: ImportItem, declared: Declared, arrays: Arrays) -> Arrays:
    """Convert the arrays of a clip's file to arrays as the format has them, and check them.

    The results have the format's names (pooled, frames, tokens, time_s, frame_index), axes and data types. A
    single array of features gets the declared name. Features are converted to another data type only if that
    is declared.

    Raises
    ------
    StoreError
        If an array has a name or a shape that does not fit, or contradicts what was declared.
    """
    if declared.times is not None:
        arrays = _with_times(item, declared.times, arrays)
    has_format_names = not arrays.keys().isdisjoint(FEATURE_ARRAYS)
    named_arrays = arrays if has_format_names else _with_declared_name(arrays, declared.array)

    _refuse_unknown_names(item, named_arrays)
    if declared.axes is not None and named_arrays.keys().isdisjoint(("frames", "tokens")):
        raise StoreError(
            f"{item.where}: --axes {declared.axes} orders frames or tokens: add --array frames, or tokens"
        )
    if declared.per_second is not None and "time_s" in named_arrays:
        raise StoreError(f"{item.where}: holds time_s, and --rate says other times; give one of both")

    converted = {}
    for name, values in named_arrays.items():
        converted[name] = _convert(values, name, item.where, declared, has_format_names=has_format_names)
        if not converted[name].size:
            raise StoreError(f"{item.where}: {name} is empty, {list(values.shape)}")
    return converted


def _with_declared_name(arrays: Arrays, declared_name: str) -> Arrays:
    """Return the arrays of a clip, in which its only array of features has the declared name.

    If there are several arrays beside those of times, all names stay as they are.
    """
    feature_names = arrays.keys() - set(TIME_ARRAYS)
    if len(feature_names) != 1:
        return arrays
    (feature_name,) = feature_names
    renamed = {}
    for name, values in arrays.items():
        new_name = declared_name if name == feature_name else name
        renamed[new_name] = values
    return renamed


def _with_times(item: ImportItem, name: str, arrays: Arrays) -> Arrays:
    """Move the array with the frames' times to `time_s`, converted to seconds.

    Raises
    ------
    StoreError
        There is no such array, it holds no numbers, or the clip has an array `time_s` as well.
    """
    if name not in arrays:
        is_array_without_name = list(arrays) == [""]  # that of a .npy file
        if is_array_without_name:
            remedy = (
                "it has one array without a name; if times are in files of their own, give a pattern of "
                "their names, such as --times {video}_timestamps_ms"
            )
        else:
            remedy = f"found {', '.join(arrays)}"
        raise StoreError(f"{item.where}: has no {name} (--times); {remedy}")
    features = {key: values for key, values in arrays.items() if key != name}
    if "time_s" in features:
        raise StoreError(f"{item.where}: holds time_s, and --times {name}; give one of both")
    if arrays[name].dtype.kind not in "fiu":
        raise StoreError(f"{item.where}: {name} (--times) holds {arrays[name].dtype}, expected numbers")
    return {**features, "time_s": times_in_seconds(name, arrays[name])}


def _convert(
    values: NDArray[Any], name: str, location: str, declared: Declared, *, has_format_names: bool
) -> NDArray[Any]:
    """Return an array with the axes and the data type of the format.

    Features are converted to another data type only if that is declared; times, only if nothing is lost.

    `has_format_names` is whether the file itself uses the names of the format.

    Raises
    ------
    StoreError
        If the array does not fit.
    """
    n_axes = len(ARRAYS[name].dims) - 1  # without the axis of clips
    if values.ndim == 0:
        raise StoreError(f"{location}: {name} is one number; expected an array")
    reordered = reorder_axes(values, n_axes, declared.axes, f"{location}, {name}")
    if name in FEATURE_ARRAYS:
        refuse_other_axes(name, reordered.shape, n_axes, location, is_named_in_file=has_format_names)
    elif reordered.ndim != 1:
        raise StoreError(
            f"{location}: the axes of {name} are {list(reordered.shape)}, expected [T]: one a frame"
        )
    return _convert_type(reordered, name, location, declared.dtype)


def _convert_type(values: NDArray[Any], name: str, location: str, declared_dtype: str | None) -> NDArray[Any]:
    """Return an array with a data type that the format has for arrays of its name.

    Features are converted to the declared type, if there is one. Times and indices are converted to the
    format's type, but only if no digit can be lost.

    Raises
    ------
    StoreError
        The format does not have the resulting type.
    """
    allowed_dtypes = ARRAYS[name].dtypes
    usual_dtype = allowed_dtypes[0]
    are_numbers = values.dtype.kind in "fiu"
    are_features = name in FEATURE_ARRAYS
    converted = values
    if are_features and declared_dtype is not None and are_numbers:
        with np.errstate(over="ignore"):  # numbers that become infinite are refused with their clip
            converted = values.astype(declared_dtype)
    elif name in TIME_ARRAYS and np.can_cast(values.dtype, usual_dtype):  # without loss
        converted = values.astype(usual_dtype)
    if converted.dtype.name in allowed_dtypes:
        return converted

    # The format has no such type.
    if name in TIME_ARRAYS:  # which --dtype does not convert
        remedy = f"save {name} as {usual_dtype}"
    elif are_numbers:
        remedy = f"nothing is converted unless asked for (--dtype {usual_dtype})"
    else:
        remedy = "save features as such"
    raise StoreError(
        f"{location}: {name} is {converted.dtype}, the format stores {' or '.join(allowed_dtypes)}; {remedy}"
    )


def _group_spec(arrays: Arrays, declared: Declared) -> GroupSpec:
    """Return the declaration of the store's group: its arrays, its number of frames and its provenance.

    Parameters
    ----------
    arrays
        Those of the first clip, which tell shapes and data types.
    declared
        What the user says of the features: their provenance, and options of the import.
    """
    names = [name for name in FEATURE_ARRAYS if name in arrays]
    specs = [ArraySpec(name, arrays[name].shape, arrays[name].dtype.name) for name in names]

    # The user's provenance, with what the options add.
    provenance = declaration(declared.provenance, declared.backbone)
    if declared.dtype is not None:
        provenance["converted_to"] = declared.dtype
    n_in_provenance: object = None  # frames that were sampled of a clip, as the user says
    sampling = provenance["sampling"]
    if isinstance(sampling, dict):  # anything else is refused by `GroupSpec` below
        n_in_provenance = sampling.get("n")
        if declared.per_second is not None:
            provenance["sampling"] = {**sampling, "per_second": declared.per_second}
    n_frames = _n_sampled_frames(arrays, n_in_provenance)
    return GroupSpec(declared.backbone, tuple(specs), n_frames, provenance)


def _n_sampled_frames(arrays: Arrays, declared_n: object) -> int:
    """Return how many frames of a clip were sampled, as far as its arrays and the declaration tell.

    It is the number of times, or else the declared number. Otherwise it is the number of vectors in `frames`,
    which may be smaller than the other two: a vector may stand for several frames. A clip of which nothing
    is known counts as one frame.

    A declared number that is no positive whole number is not used.
    """
    if "time_s" in arrays:
        return len(arrays["time_s"])
    if isinstance(declared_n, int) and declared_n > 0:
        return declared_n
    if "frames" in arrays:
        return len(arrays["frames"])
    return 1


def _warn_of_swapped_axes(group: GroupSpec, declared: Declared, max_frames: int) -> str:
    """Return a warning if frames or tokens may have been saved as [D, T] instead of [T, D]; else "".

    This is likely if a clip has at least as many rows as a row has numbers: 768 frames of 16 numbers are
    rather 16 frames of 768 numbers. Declared axes are trusted.

    `max_frames` is the number of frames of the clip with most frames, for a ragged group.
    """
    if declared.axes is not None:
        return ""
    for spec in group.arrays:
        if len(spec.shape) < 2:
            continue
        n_rows = max_frames if spec.ragged else spec.shape[0]
        n_numbers = spec.shape[1]
        if n_rows >= n_numbers:
            rows = counted(n_rows, spec.name.removesuffix("s"))  # frames or tokens
            return (
                f"axes: {rows} of {counted(n_numbers, 'number')} in a clip, no fewer than numbers in each: "
                "if the files have [D, T], import with --axes DT; if this is right, --axes TD says so"
            )
    return ""


def _make_result(
    clip: PlannedClip, item: ImportItem, group: GroupSpec, arrays: Arrays, per_second: float | None
) -> ClipResult:
    """Build the result of one clip from its arrays, to be committed to a stage.

    Times that the arrays lack follow from the rate `per_second` (frames in a second of video) if there is
    one, else they are NaN. Frame indices that they lack are -1.

    Raises
    ------
    StoreError
        If the item's status is neither ok nor partial, or if its times, frame indices or stretches without
        pictures do not fit its frames.
    """
    if item.status not in STATUSES_WITH_FEATURES:
        raise StoreError(f"{item.where}: status {item.status!r}; features are ok or partial")

    # When the frames are shown, and their numbers in the file
    n_frames = len(arrays["frames"]) if group.ragged else group.n_frames
    unknown_times = np.full(n_frames, np.nan)
    unknown_indices = np.full(n_frames, -1, np.int64)
    time_s = arrays.get("time_s", unknown_times)
    frame_index = arrays.get("frame_index", unknown_indices)
    if per_second is not None:
        if "frame_index" in arrays:
            refuse_uneven(item.where, frame_index)
        if "time_s" not in arrays:
            time_s = (clip.start_s or 0.0) + np.arange(n_frames) / per_second
    _check_times(clip, item, time_s, frame_index, n_frames)

    # The features, and stretches of the clip without pictures
    values = {name: array for name, array in arrays.items() if name not in TIME_ARRAYS}
    features = {group.name: ClipFeatures(time_s, frame_index, values)}
    try:
        stretches = parse_gaps(item.without_pictures)
    except ValueError as error:
        raise StoreError(f"{item.where}: {error}") from None
    status = cast("Status", item.status)
    return ClipResult(clip.clip_id, status, item.reason, groups=features, without_pictures_s=stretches)


def _check_times(
    clip: PlannedClip, item: ImportItem, time_s: NDArray[Any], frame_index: NDArray[Any], n_frames: int
) -> None:
    """Check the times and frame indices of a clip, each [F] for F frames.

    Indices that are unknown are -1 throughout. Times are seconds of the whole video. Tools that got each clip
    as a file of its own often count from the clip's start, or in other units: such times are far from the
    clip, and refused.

    Raises
    ------
    StoreError
        If they decrease, if their number is not `n_frames`, if an index is negative, or if a time is more
        than 10 s before or after the clip.
    """
    times = {"time_s": time_s, "frame_index": frame_index}
    for name, values in times.items():
        if (np.diff(values) < 0).any():
            raise StoreError(f"{item.where}: {name} falls; frames are in the order of their times")

    are_indices_unknown = (frame_index == -1).all()
    if (frame_index < 0).any() and not are_indices_unknown:
        raise StoreError(
            f"{item.where}: frame_index has negative numbers; expected indices in the file, from 0 on"
        )

    for name, values in times.items():
        if len(values) != n_frames:
            raise StoreError(f"{item.where}: {len(values)} {name}, and {counted(n_frames, 'frame')}")

    start_s = clip.start_s or 0.0
    end_s = clip.end_s or np.inf  # a clip without an end may have any times
    earliest_s = start_s - MAX_OUTSIDE_S
    latest_s = end_s + MAX_OUTSIDE_S
    first_s = time_s[0]
    last_s = time_s[-1]
    if first_s < earliest_s:
        # They may count from the clip's start, if they are in the clip once this is added to them.
        may_count_from_start = first_s >= -MAX_OUTSIDE_S and start_s + last_s <= latest_s
        remedy = f"; if they count from the clip's start, add {start_s:.10g} to all"
        raise StoreError(
            f"{item.where}: time_s {first_s:g}; expected the video's seconds, from {earliest_s:g} on"
            f"{remedy if may_count_from_start else ''}"
        )
    if last_s > latest_s:
        raise StoreError(f"{item.where}: time_s {last_s:g}; expected the video's seconds, up to {latest_s:g}")
