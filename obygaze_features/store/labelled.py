"""Make pandas tables, xarray datasets and HTML tables of features with labels.

Functions here take plain values, so that `group` and `store` can use them. pandas and xarray are imported
when a function needs them: reading a store needs neither.
"""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from obygaze_features.errors import StoreError, install_command
from obygaze_features.store.format import STATUSES_WITH_FEATURES
from obygaze_features.store.records import StoredClip
from obygaze_features.templates import filled

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

NOT_IN_MANIFEST = "not in the manifest"


class LabelledClip(Protocol):
    """Interface of a manifest's clip that a table needs."""

    @property
    def level(self) -> str | None:
        """Level of the clip; None where it is not annotated."""

    @property
    def concepts(self) -> tuple[str, ...]:
        """Concepts marked in the clip."""


class Concepts(Protocol):
    """Interface of a codebook that a table needs."""

    @property
    def concept_names(self) -> tuple[str, ...]:
        """All concepts, in canonical order."""


class LabelledManifest(Protocol):
    """Interface of a manifest that a table needs; `obygaze_features.Manifest` has it."""

    @property
    def codebook(self) -> Concepts:
        """Names of the concepts."""

    @property
    def by_id(self) -> Mapping[str, LabelledClip]:
        """Clip id -> clip."""


@dataclass(frozen=True, slots=True)
class LazyArray:
    """An array that is read when it is needed.

    Attributes
    ----------
    dims
        Names of the dimensions, the clips' first.
    shape, dtype
        Shape and data type of the whole array.
    read
        Reads and checks a slice of its rows.
    """

    dims: tuple[str, ...]
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    read: Callable[[slice], NDArray[Any]]


def frame_of(
    X: NDArray[np.float32], clips: Sequence[StoredClip], labels: LabelledManifest | None, location: str
) -> pd.DataFrame:
    """Make a pandas table of one vector per clip, with the labels of a manifest if one is given.

    Clips without features, or not in the manifest, have no row; `attrs["left_out"]` counts them by reason.

    Parameters
    ----------
    X
        Shape [N, D]: the vectors.
    clips
        Status and origin of each of the N clips.
    labels
        The manifest; None for a table without labels.
    location
        What messages call the group.

    Raises
    ------
    StoreError
        If a concept has the name of another column.
    """
    import pandas as pd  # noqa: PLC0415 - reading stores needs no pandas

    # Choose the clips that get a row.
    rows: list[int] = []
    left_out = Counter[str]()
    for row, clip in enumerate(clips):
        reason = _why_left_out(clip, labels)
        if reason is None:
            rows.append(row)
        else:
            left_out[reason] += 1
    clips_with_row = [clips[row] for row in rows]

    # Columns of the clips and of their labels, before those of the features.
    columns: dict[str, Any] = {
        "clip_id": [clip.clip_id for clip in clips_with_row],
        "movie": [clip.movie for clip in clips_with_row],
        "start_s": np.array([clip.start_s for clip in clips_with_row], dtype=np.float64),
        "end_s": np.array([clip.end_s for clip in clips_with_row], dtype=np.float64),
    }
    feature_names = [f"f{number}" for number in range(X.shape[1])]
    if labels is not None:
        levels = [labels.by_id[clip.clip_id].level for clip in clips_with_row]
        columns["level"] = pd.Series(levels, dtype="str")
        for concept in labels.codebook.concept_names:
            is_name_taken = concept in columns or concept in feature_names
            if is_name_taken:
                raise StoreError(f"{location}: the concept {concept!r} has the name of another column")
            is_marked = [_is_marked(labels, clip.clip_id, concept) for clip in clips_with_row]
            columns[concept] = pd.array(is_marked, dtype="boolean")  # nullable: None becomes NA

    features = pd.DataFrame(X[rows], columns=feature_names)
    frame = pd.concat([pd.DataFrame(columns), features], axis="columns")
    frame.attrs["left_out"] = dict(sorted(left_out.items()))
    return frame


def _is_marked(labels: LabelledManifest, clip_id: str, concept: str) -> bool | None:
    """Return whether a concept is marked in a clip; None if nobody annotated the clip."""
    clip = labels.by_id[clip_id]
    is_annotated = clip.level is not None or bool(clip.concepts)
    if not is_annotated:
        return None
    return concept in clip.concepts


def _why_left_out(clip: StoredClip, labels: LabelledManifest | None) -> str | None:
    """Return why a clip gets no row in a table of features; None if it gets one."""
    if clip.status not in STATUSES_WITH_FEATURES:
        return clip.status
    if labels is not None and clip.clip_id not in labels.by_id:
        return NOT_IN_MANIFEST
    return None


def imported_xarray() -> Any:
    """Import and return xarray, which is optional; raise a StoreError if it is not installed."""
    try:
        return importlib.import_module("xarray")
    except ImportError as error:
        raise StoreError(f"to_xarray needs xarray: {install_command('xarray')}") from error


def dataset_of(
    arrays: Mapping[str, LazyArray],
    clips: Sequence[StoredClip],
    attributes: Mapping[str, Any],
    row_size: NDArray[np.int64] | None = None,
) -> xr.Dataset:
    """Make an xarray dataset of arrays whose rows are clips.

    The clips' ids, movies, statuses and spans are its coordinates.

    Parameters
    ----------
    arrays
        The arrays by name.
    clips
        Status and origin of each clip.
    attributes
        Attributes of the dataset.
    row_size
        Number of frames of every clip, for arrays that have a row for each frame. It becomes a variable, and
        the clip of each row a coordinate.

    Raises
    ------
    StoreError
        If xarray is not installed.
    """
    module = imported_xarray()
    from xarray.core.indexing import LazilyIndexedArray  # noqa: PLC0415 - optional

    from obygaze_features.store.xarray_backend import RowsOfStore  # noqa: PLC0415 - imports xarray

    # The arrays themselves, which xarray reads when their values are needed.
    variables = {}
    for name, array in arrays.items():
        rows = RowsOfStore(array.shape, array.dtype, array.read)
        variables[name] = module.Variable(array.dims, LazilyIndexedArray(rows))

    # A coordinate for each field of the clips; that of their ids has the name of the dimension.
    dtype_of_field = {"clip_id": str, "movie": str, "status": str, "start_s": np.float64, "end_s": np.float64}
    coordinates: dict[str, Any] = {}
    for name, dtype in dtype_of_field.items():
        values: NDArray[Any] = np.array([getattr(clip, name) for clip in clips], dtype)
        coordinate = "clip" if name == "clip_id" else name
        coordinates[coordinate] = ("clip", values)

    # Of ragged arrays, the number of frames of each clip, and the clip of each frame
    if row_size is not None:
        # `sample_dimension` marks the numbers of rows of ragged arrays (CF conventions, 9.3.3).
        variables["row_size"] = module.Variable(("clip",), row_size, {"sample_dimension": "row"})
        coordinates["row_clip"] = ("row", np.repeat([clip.clip_id for clip in clips], row_size))
    dataset: xr.Dataset = module.Dataset(variables, coordinates, dict(attributes))
    return dataset


def html_table(
    title: str, headers: Sequence[str], rows: Iterable[Sequence[object]], notes: Sequence[str] = ()
) -> str:
    """Return a table as HTML, with a title and notes on it, for notebooks; every text is escaped."""
    values = {"title": title, "headers": headers, "rows": rows, "notes": notes}
    return filled(__package__, "table.html.jinja", values)
