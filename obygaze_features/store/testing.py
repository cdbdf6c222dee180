"""Make tiny valid stores from arrays, for tests."""

from collections.abc import Container, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from obygaze_features.store.format import ANY_NUMBER, TEXTS, Status
from obygaze_features.store.provenance import unknown_provenance
from obygaze_features.store.records import ArraySpec, ClipFeatures, ClipResult, GroupSpec, PlannedClip
from obygaze_features.store.sealing import seal
from obygaze_features.store.stage import Stage, staging_path

T = TypeVar("T")


def toy_provenance(name: str, n_frames: int = 2, **changes: object) -> dict[str, object]:
    """Make a provenance with all required fields, for invented features.

    Parameters
    ----------
    name
        Name of the group.
    n_frames
        Frames sampled from every clip; `ANY_NUMBER` for a ragged group.
    changes
        Fields that differ from the defaults.
    """
    provenance: dict[str, Any] = {"name": name, **unknown_provenance()}
    provenance["sampling"] = {"policy": "uniform", "n": None if n_frames == ANY_NUMBER else n_frames}
    provenance["decoder"] = dict.fromkeys(provenance["decoder"], "none")
    provenance["compute"] |= {"dtype": "float32", "tf32": False, "device": "cpu"}
    provenance["software"] = {"obygaze": "none"}
    provenance["licence"] = "CC0-1.0"
    return provenance | changes


def toy_group(
    name: str, arrays: Mapping[str, NDArray[Any]], n_frames: int = 2, **changes: object
) -> GroupSpec:
    """Return the declaration of a group of features for arrays that have a row for each clip.

    Parameters
    ----------
    name
        Name of the group.
    arrays
        Array name -> values, a row for each clip.
    n_frames
        Frames sampled from every clip.
    changes
        Fields of the provenance that should differ from `toy_provenance`.
    """
    specs = tuple(ArraySpec(array, rows.shape[1:], rows.dtype.name) for array, rows in arrays.items())
    return GroupSpec(name, specs, n_frames, toy_provenance(name, n_frames, **changes))


def seal_arrays(
    destination: Path,
    movie_of: Mapping[str, str],
    groups: Mapping[str, Mapping[str, NDArray[Any]]],
    *,
    n_frames: int = 2,
    failed: Mapping[str, str] | None = None,
    partial: Mapping[str, str] | None = None,
    absent: Mapping[str, Mapping[str, str]] | None = None,
    without_pictures_s: Mapping[str, Sequence[tuple[float, float]]] | None = None,
    texts: Mapping[str, str] | None = None,
    spans: Mapping[str, tuple[float, float]] | None = None,
    times: Mapping[str, NDArray[np.float64]] | None = None,
    sources: Mapping[str, Mapping[str, object]] | None = None,
    **changes: object,
) -> Path:
    """Seal a store `destination-1.0.0` of given arrays and return its path.

    Parameters
    ----------
    movie_of
        Clip id -> movie, in the order of the arrays' rows.
    groups
        Backbone -> array name -> values, a row for each clip, in the order of `movie_of`.
    failed, partial
        Clip id -> reason; a failed clip's rows are not used.
    absent
        Clip id -> group -> why it has no features of the clip.
    without_pictures_s
        Partial clip's id -> the stretches in which its file has no pictures: start and end in seconds.
    texts
        Clip id -> its text, for a store of embeddings of texts, which have no frames.
    spans
        Clip id -> start and end in seconds; clips without a span are whole files.
    times
        Clip id -> times of its frames in seconds; by default 0, 1, ... after the start of its span.
    sources
        Clip id -> what is known of its file: bytes, duration_s, sha256.
    changes
        Fields of the provenance that should differ from `toy_provenance`.
    """
    if texts:
        n_frames = 1  # a text has no frames, and arrays of times have one value
        changes = {"sampling": {"policy": TEXTS, "n": None}, **changes}
    specs = [toy_group(name, arrays, n_frames, **changes) for name, arrays in groups.items()]
    planned = _planned_clips(movie_of, spans or {}, texts or {})
    stage = Stage.open(staging_path(destination), planned, specs, {"name": "toy"})

    results = []
    for row, clip_id in enumerate(movie_of):
        if failed and clip_id in failed:
            results.append(ClipResult(clip_id, "failed", failed[clip_id]))
            continue

        is_partial = partial is not None and clip_id in partial
        status: Status = "partial" if is_partial else "ok"
        absent_groups = _of_clip(absent, clip_id, {})
        start_s, _end_s = _of_clip(spans, clip_id, (0.0, 0.0))
        default_time_s = np.arange(float(n_frames))
        default_time_s += start_s or 0.0  # a span without a start is a whole file
        time_s = _of_clip(times, clip_id, default_time_s)
        result = ClipResult(
            clip_id,
            status,
            reason=_of_clip(partial, clip_id, ""),
            source=_of_clip(sources, clip_id, {}),
            groups=_features_of_clip(groups, row, absent_groups, time_s, n_frames),
            absent=absent_groups,
            without_pictures_s=tuple(_of_clip(without_pictures_s, clip_id, ())),
        )
        results.append(result)

    with stage.writer() as writer:
        writer.commit(results)
    return seal(staging_path(destination), destination, licence="CC0-1.0")


def _of_clip(value_of_clip: Mapping[str, T] | None, clip_id: str, default: T) -> T:
    """Return the value of a clip; the default if there are no values (None), or none of this clip."""
    if value_of_clip is None:
        return default
    return value_of_clip.get(clip_id, default)


def _planned_clips(
    movie_of: Mapping[str, str], spans: Mapping[str, tuple[float, float]], texts: Mapping[str, str]
) -> list[PlannedClip]:
    """Plan the clips of a store."""
    planned = []
    for clip_id, movie in movie_of.items():
        start_s, end_s = spans.get(clip_id, (None, None))
        planned.append(PlannedClip(clip_id, movie, start_s, end_s, texts.get(clip_id)))
    return planned


def _features_of_clip(
    groups: Mapping[str, Mapping[str, NDArray[Any]]],
    row: int,
    absent_groups: Container[str],
    time_s: NDArray[np.float64],
    n_frames: int,
) -> dict[str, ClipFeatures]:
    """Return group -> the features of a clip, the row of arrays; without the groups that it lacks."""
    features = {}
    for name, arrays in groups.items():
        if name not in absent_groups:
            values = {array: rows[row] for array, rows in arrays.items()}
            features[name] = ClipFeatures(time_s, np.arange(n_frames), values)
    return features


def seal_frames(
    destination: Path,
    movie_of: Mapping[str, str],
    frames: Mapping[str, NDArray[Any]],
    *,
    times: Mapping[str, NDArray[np.float64]] | None = None,
    failed: Mapping[str, str] | None = None,
    name: str = "toy",
    workers: int | None = None,
    **changes: object,
) -> Path:
    """Seal a store `destination-1.0.0` in which every clip has its own number of frames; return its path.

    Parameters
    ----------
    movie_of
        Clip id -> movie.
    frames
        Clip id -> vectors of its frames, [T, D]; T may differ between clips. A failed clip has none.
    times
        Clip id -> times of its frames in seconds; 0, 1, ... by default.
    failed
        Clip id -> reason.
    name
        Name of the backbone.
    workers
        Files written at a time when the store is sealed; None is one per usable core.
    changes
        Fields of the provenance that should differ from `toy_provenance`.

    Examples
    --------
    >>> import numpy as np
    >>> from pathlib import Path
    >>> from obygaze_features import open_store
    >>> from obygaze_features.store.testing import seal_frames
    >>> frames = np.ones((5, 4), np.float32)
    >>> path = seal_frames(Path("toy"), {"a": "m", "b": "m"}, {"a": frames[:2], "b": frames})
    >>> open_store(path)["toy"].row_size.tolist()
    [2, 5]
    """
    failed = failed or {}
    times = times or {}
    frames_of_a_clip = next(iter(frames.values()))  # those of all clips have the same width and type
    spec = ArraySpec("frames", (ANY_NUMBER, frames_of_a_clip.shape[1]), frames_of_a_clip.dtype.name)
    provenance = toy_provenance(name, ANY_NUMBER, **changes)
    group = GroupSpec(name, (spec,), ANY_NUMBER, provenance)
    planned = [PlannedClip(clip_id, movie) for clip_id, movie in movie_of.items()]
    stage = Stage.open(staging_path(destination), planned, [group], {"name": "toy"})
    with stage.writer() as writer:
        for clip_id in movie_of:
            if clip_id in failed:
                result = ClipResult(clip_id, "failed", failed[clip_id])
            else:
                values = frames[clip_id]
                frame_index = np.arange(len(values))
                time_s = times.get(clip_id, frame_index.astype(np.float64))
                features = ClipFeatures(time_s, frame_index, {"frames": values})
                result = ClipResult(clip_id, "ok", groups={name: features})
            writer.commit([result])
    return seal(staging_path(destination), destination, licence="CC0-1.0", workers=workers)
