"""Define and check the records of a stage and a store: arrays, groups, clips, results, and data/clips.csv."""

import csv
import io
import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from obygaze_features.errors import StoreError
from obygaze_features.lines import csv_line
from obygaze_features.schema import Hex64, Name, Number, SomeText, Whole, check, expected, fits
from obygaze_features.store.format import (
    ABSENT,
    ANY_NUMBER,
    ARRAYS,
    FEATURE_ARRAYS,
    RAGGED_ARRAYS,
    TIME_ARRAYS,
    Status,
    dimensions,
)
from obygaze_features.store.provenance import validate_provenance
from obygaze_features.templates import packaged
from obygaze_features.text import counted, unsuitable


def checked_line(text: str, field: str) -> str:
    """Return a text if it is one line without control characters, or empty; else raise a StoreError.

    Parameters
    ----------
    text
        The text.
    field
        What the text is, for the message.
    """
    reason = unsuitable(text)
    if reason:
        raise StoreError(f"{field}: {text!r} should be one line of text; it {reason}")
    return text


MAX_LINE_BYTES: Final = 1 << 20
"""Bytes of the longest line of a table of clips: it has a reason, and a digest for each array."""

MAX_NUMBERS: Final = 1 << 25
"""Largest number of values of one array of one clip; a larger array is refused before memory is allocated."""


@dataclass(frozen=True, slots=True)
class ArraySpec:
    """One feature array of a group: its name, its shape for one clip, its data type.

    Shapes are pooled [D], frames [F, D] and tokens [T, D']; pooled is float32, tokens are float16, frames
    either. F is `ANY_NUMBER` in a ragged group.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str

    def __post_init__(self) -> None:
        """Raise a StoreError if name, sizes or data type are not allowed by the format."""
        if self.name not in FEATURE_ARRAYS:
            raise StoreError(f"array {self.name!r}: expected one of {', '.join(FEATURE_ARRAYS)}")
        dimensions_of_clip = ARRAYS[self.name].dims[1:]  # without that of the clips
        sizes = self.shape[1:] if self.ragged else self.shape  # a ragged array has no size of frames
        if len(self.shape) != len(dimensions_of_clip) or any(size < 1 for size in sizes):
            raise StoreError(
                f"array {self.name}: expected sizes of [{', '.join(dimensions_of_clip)}], "
                f"found {list(self.shape)}"
            )
        if self.dtype not in ARRAYS[self.name].dtypes:
            raise StoreError(
                f"array {self.name}: expected {' or '.join(ARRAYS[self.name].dtypes)}, found {self.dtype}"
            )
        if math.prod(sizes) > MAX_NUMBERS:
            raise StoreError(
                f"array {self.name}: {list(self.shape)} is more than {MAX_NUMBERS} numbers of one clip"
            )

    @property
    def ragged(self) -> bool:
        """Whether every clip has its own number of rows."""
        if self.name not in RAGGED_ARRAYS or not self.shape:
            return False
        n_rows = self.shape[0]
        return n_rows == ANY_NUMBER


@dataclass(frozen=True)
class GroupSpec:
    """The arrays one backbone writes per clip, and their provenance.

    Within a group a dimension has one size: pooled and frames share `feature`. Frames have `n_frames` rows,
    or, for a network that joins neighbouring frames into tubelets, a number that divides it. In a ragged
    group `n_frames` is `ANY_NUMBER`: a clip has frames of any number, and as many times.
    """

    name: str
    arrays: tuple[ArraySpec, ...]
    n_frames: int
    provenance: Mapping[str, object]

    def __post_init__(self) -> None:
        """Raise a StoreError if name, arrays or provenance are invalid, or contradict each other."""
        if not fits(self.name, Name):
            raise StoreError(f"group {self.name!r}: expected {expected(Name)}")
        has_valid_n_frames = self.ragged or 1 <= self.n_frames <= MAX_NUMBERS
        has_arrays = len(self.arrays) > 0
        if not has_valid_n_frames or not has_arrays:
            raise StoreError(
                f"group {self.name}: expected one frame to {MAX_NUMBERS} frames, and at least one array"
            )

        for spec in self.arrays:
            self._check_array(spec)
        self._check_dimensions()
        names = [spec.name for spec in self.arrays]
        are_unique = len(set(names)) == len(names)
        if not are_unique:
            raise StoreError(f"group {self.name}: an array is declared twice")

        try:
            provenance = validate_provenance(self.provenance)
        except StoreError as error:
            raise StoreError(f"group {self.name}: {error}") from None
        object.__setattr__(self, "provenance", provenance)  # as plain JSON; the class is frozen

    def _check_array(self, spec: ArraySpec) -> None:
        """Refuse an array that contradicts the group's number of frames.

        An array of frames, times or indices is ragged if and only if the group is. Otherwise `frames` has a
        row for each sampled frame, or for each of some equal parts of the frames (tubelets).
        """
        if spec.name in RAGGED_ARRAYS and spec.ragged != self.ragged:
            raise StoreError(
                f"group {self.name}, array {spec.name}: {list(spec.shape)} a clip does not go with "
                f"{counted(self.n_frames, 'frame')} a clip; both are {ANY_NUMBER} where clips have any number"
            )
        if spec.name == "frames" and not spec.ragged:
            n_rows = spec.shape[0]
            if self.n_frames % n_rows != 0:
                raise StoreError(
                    f"group {self.name}, array frames: {counted(n_rows, 'row')}, "
                    f"which neither are the {self.n_frames} sampled frames nor divide them into tubelets"
                )

    def _check_dimensions(self) -> None:
        """Refuse arrays in which a dimension has another size than in an earlier one.

        The features of `pooled` and of `frames`, for example, have the same dimension `feature`.
        """
        size_of_dimension = {"frame": self.n_frames}
        for spec in self.arrays:
            # The first dimension is that of the clips or, in a ragged array, that of the frames of all clips.
            _first_dimension, *dimension_names = self.dimensions(spec.name)
            sizes = spec.shape[1:] if spec.ragged else spec.shape  # a ragged shape begins with the frames
            for dimension, size in zip(dimension_names, sizes, strict=True):
                earlier_size = size_of_dimension.setdefault(dimension, size)
                if earlier_size != size:
                    raise StoreError(
                        f"group {self.name}, array {spec.name}: dimension {dimension!r} has size {size} here "
                        f"and {earlier_size} elsewhere; one size per dimension name within a group"
                    )

    @property
    def ragged(self) -> bool:
        """Whether every clip has its own number of frames."""
        return self.n_frames == ANY_NUMBER

    def dimensions(self, array: str) -> tuple[str, ...]:
        """Return the names of the dimensions of an array of the group, clips (or their frames) first.

        They are those of the array's kind in the format of stores, such as clip, frame and feature for
        `frames`. Its shape tells a `frames` of tubelets apart.
        """
        shape_of_array = {spec.name: spec.shape for spec in self.arrays}
        shape_of_times = (self.n_frames,)  # `arrays` has no entry for `time_s` and `frame_index`
        shape_for_one_clip = shape_of_array.get(array, shape_of_times)
        n_clips = 0  # does not change the names
        shape = (n_clips, *shape_for_one_clip)
        return dimensions(array, sizes=shape, n_frames=self.n_frames)  # the function of the format

    def clip_arrays(self) -> dict[str, tuple[tuple[int, ...], np.dtype[Any]]]:
        """Return the arrays of the group: name -> (shape for one clip, little-endian data type).

        They are the arrays of times and indices of frames, which all groups have, and those of features. The
        first size of a ragged array is `ANY_NUMBER`.
        """
        arrays: dict[str, tuple[tuple[int, ...], np.dtype[Any]]] = {}
        for name in TIME_ARRAYS:
            (only_dtype,) = ARRAYS[name].dtypes  # arrays of features may have one of several
            arrays[name] = ((self.n_frames,), np.dtype(only_dtype).newbyteorder("<"))
        for spec in sorted(self.arrays, key=lambda spec: spec.name):
            arrays[spec.name] = (spec.shape, np.dtype(spec.dtype).newbyteorder("<"))
        return arrays


@dataclass(frozen=True, slots=True)
class PlannedClip:
    """A clip that a store will have a row for; its span is in seconds, None for the whole file.

    In a store of texts a row is a text: it has an id, `text`, and no movie (`""`) and no span.
    """

    clip_id: str
    movie: str
    start_s: float | None = None
    end_s: float | None = None
    text: str | None = None

    def __post_init__(self) -> None:
        """Raise a StoreError for unsuitable texts and times; convert times to float."""
        checked_line(self.clip_id, "clip id")
        if not self.clip_id:
            raise StoreError("clip id: an empty id")
        checked_line(self.movie, f"clip {self.clip_id}, movie")

        if self.text is not None:
            is_empty = not self.text.strip()
            reason = "is empty" if is_empty else unsuitable(self.text, line_breaks=True)
            if reason:
                raise StoreError(f"clip {self.clip_id}, text: {self.text!r:.200} {reason}")

        for name in ("start_s", "end_s"):
            value = getattr(self, name)
            if value is None:
                continue
            if not np.isfinite(value):
                raise StoreError(f"clip {self.clip_id}, {name}: {value} is not a time")
            object.__setattr__(self, name, float(value))  # the class is frozen


@dataclass(frozen=True)
class ClipFeatures:
    """One clip's rows in one group.

    Attributes
    ----------
    time_s
        Presentation time of every sampled frame, in seconds, float64 [F].
    frame_index
        Index of every sampled frame in its file, int64 [F].
    arrays
        Name -> features, with exactly the shapes and data types that the group declares.
    """

    time_s: NDArray[np.float64]
    frame_index: NDArray[np.int64]
    arrays: Mapping[str, NDArray[Any]]


Gaps: TypeAlias = tuple[tuple[float, float], ...]
"""Gaps of a clip: stretches in which its file has no pictures.

Each has its start and end in seconds of the file; they are in the order of time."""


def check_gaps(gaps: Iterable[tuple[float, float]], start_s: float | None, end_s: float | None) -> None:
    """Check that the gaps of a clip follow one another within its span.

    Parameters
    ----------
    gaps
        Start and end of each gap in seconds.
    start_s, end_s
        The span in seconds; None for a start or an end that is not known.

    Raises
    ------
    ValueError
        A time of a gap is no finite number, or a gap ends before it starts, overlaps the one before, or
        leaves the span.
    """
    earliest_s = -math.inf if start_s is None else start_s
    latest_s = math.inf if end_s is None else end_s
    last_end_s = earliest_s
    for gap_start_s, gap_end_s in gaps:
        location = f"without pictures from {gap_start_s!r} to {gap_end_s!r} s"
        if not (math.isfinite(gap_start_s) and math.isfinite(gap_end_s)):
            raise ValueError(f"{location}: expected two times in seconds")
        if gap_start_s >= gap_end_s:
            raise ValueError(f"{location}: it should start before it ends")
        if gap_start_s < earliest_s or gap_end_s > latest_s:
            raise ValueError(f"{location}: outside of the clip, which lasts from {start_s!r} to {end_s!r} s")
        if gap_start_s < last_end_s:
            raise ValueError(f"{location}: the stretch before ends at {last_end_s!r} s")
        last_end_s = gap_end_s


def format_gaps(gaps: Gaps) -> str:
    """Write gaps as the text of a cell, such as `60.08 62.5;70.0 71.25`; empty for none."""
    return ";".join(f"{float(start_s)!r} {float(end_s)!r}" for start_s, end_s in gaps)


def parse_gaps(text: str) -> Gaps:
    """Read gaps from a cell such as `12.5 14.0;20.0 21.5`; empty for an empty cell.

    Raises
    ------
    ValueError
        It is not as `format_gaps` writes it.
    """
    if not text:
        return ()
    gaps = []
    for part in text.split(";"):
        times = part.split(" ")
        if len(times) != 2:
            raise ValueError(f"{WITHOUT_PICTURES} {text!r:.200}: expected START END;START END in seconds")
        gaps.append((float(times[0]), float(times[1])))
    return tuple(gaps)


class ClipSource(msgspec.Struct, forbid_unknown_fields=True):
    """What is known of a clip's file and its stream of pictures, and which card computed its features."""

    bytes: Whole | msgspec.UnsetType = msgspec.UNSET
    duration_s: Number | msgspec.UnsetType = msgspec.UNSET
    sha256: Hex64 | msgspec.UnsetType = msgspec.UNSET
    device: SomeText | msgspec.UnsetType = msgspec.UNSET
    stream: SomeText | msgspec.UnsetType = msgspec.UNSET


@dataclass(frozen=True)
class ClipResult:
    """The result of one clip.

    Attributes
    ----------
    status
        ok, partial (features made from a damaged file) or failed (no features).
    reason
        One line for a person; required unless ok.
    source
        What is known of the file: bytes, duration_s, sha256, stream (what it states of pictures, as JSON);
        and of the run: device, the card that computed the features (left out of a CPU's). Each may be left
        out.
    groups
        Group name -> features; all groups of the stage but those of `absent`, or none when failed.
    absent
        Group name -> why it has no features of the clip, in one line, such as `no sound track`; another group
        has some.
    without_pictures_s
        The stretches of a partial clip in which its file has no pictures: start and end in seconds, in order.
    """

    clip_id: str
    status: Status
    reason: str = ""
    source: Mapping[str, object] = field(default_factory=dict)
    groups: Mapping[str, ClipFeatures] = field(default_factory=dict)
    absent: Mapping[str, str] = field(default_factory=dict)
    without_pictures_s: Gaps = ()

    def __post_init__(self) -> None:
        """Raise a StoreError if status, reason, features and absences contradict each other."""
        location = f"clip {self.clip_id}"
        self._check_status(location)
        self._check_absences(location)
        if self.without_pictures_s and self.status != "partial":
            raise StoreError(f"{location}: {self.status}, and without pictures in a part of it")
        # Here only the order of the gaps is checked. The stage, which knows the clip's span, checks whether
        # they lie within it.
        self.check_gaps_within(None, None)
        object.__setattr__(self, "source", _checked_source(self.source, location))

    def _check_status(self, location: str) -> None:
        """Refuse an unknown status, a missing reason, and features of a failed clip."""
        if self.status not in ("ok", "partial", "failed"):
            raise StoreError(f"{location}: status should be ok, partial or failed; found {self.status!r}")
        checked_line(self.reason, f"{location}, reason")
        if not self.reason and self.status != "ok":
            raise StoreError(f"{location}: status {self.status} needs a reason")
        if self.status == "failed" and self.groups:
            raise StoreError(f"{location}: a failed clip has no features, but some were given")

    def _check_absences(self, location: str) -> None:
        """Refuse groups that are absent without a reason or have features, and absence in all groups."""
        for name, reason in self.absent.items():
            checked_line(reason, f"{location}, group {name}, why it is absent")
            if not reason:
                raise StoreError(f"{location}, group {name}: absent without a reason")
            if name in self.groups:
                raise StoreError(f"{location}, group {name}: absent, but features were given")
        if self.absent and not self.groups:
            raise StoreError(f"{location}: absent in all groups; a clip without any features has failed")

    def check_gaps_within(self, start_s: float | None, end_s: float | None) -> None:
        """Raise a StoreError if the gaps of the clip do not follow one another within a span.

        The gaps (`without_pictures_s`) are stretches in which its file has no pictures.

        Parameters
        ----------
        start_s, end_s
            The span in seconds; None for a start or an end that is not known.
        """
        try:
            check_gaps(self.without_pictures_s, start_s, end_s)
        except ValueError as error:
            raise StoreError(f"clip {self.clip_id}: {error}") from None


def _checked_source(source: Mapping[str, object], location: str) -> dict[str, object]:
    """Return the facts about a clip's file with plain numbers in place of numpy's, or raise a StoreError."""
    plain: dict[str, object] = {}
    for name, value in source.items():
        plain[name] = value.item() if isinstance(value, np.generic) else value
    check(plain, (ClipSource,), f"{location}, source")
    return plain


# --- data/clips.csv
# ---------------------------------------------------------------------------
FIELDS: Final = packaged(__package__, "columns.toml")
"""Column -> its data type and description; the last one is only in stores of texts."""
TEXT_COLUMN = "text"
COLUMNS = tuple(name for name in FIELDS if name != TEXT_COLUMN)
"""Columns of every table, in order."""
ABSENT_PREFIX = "absent:"
"""Columns `absent:<group>` say why a group has no features of a clip that other groups have features of.

They follow `reason`. At the end, readers of format 1.0 and 1.1 would take them for digests.
"""
WITHOUT_PICTURES = "without_pictures_s"
"""Column that says in which stretches a partial clip has no pictures; only where a clip has such a stretch.

It follows `reason`, for the same cause as the columns `absent:<group>`, which come after it.
"""
SHA256_BYTES = 32

DIGEST_PREFIX = "sha256:"
"""Columns of digests are named `sha256:<group>/<array>`."""


@dataclass(frozen=True, slots=True)
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
    absent
        Group name -> why it has no features of the clip, though others have; empty unless ok or partial.
    without_pictures_s
        The stretches in which its file has no pictures: start and end in seconds; empty unless partial.
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
    absent: Mapping[str, str] = field(default_factory=dict)
    without_pictures_s: Gaps = ()

    @property
    def planned(self) -> PlannedClip:
        """The clip without its result: its id, movie, span and text."""
        return PlannedClip(self.clip_id, self.movie, self.start_s, self.end_s, self.text)

    @property
    def duration_s(self) -> float | None:
        """Length of the span, or of the whole file, in seconds; None where it is not known."""
        if self.start_s is not None and self.end_s is not None:
            return self.end_s - self.start_s
        seconds = self.source.get("duration_s")
        return float(seconds) if isinstance(seconds, int | float) else None

    def within(self, group: str) -> "StoredClip":
        """Return the clip with its status in one group: `absent`, with the reason, if the group lacks it."""
        if group not in self.absent:
            return self
        return replace(self, status=ABSENT, reason=self.absent[group])


class MayBeAbsent(Protocol):
    """A clip of a store or a stage."""

    @property
    def absent(self) -> Mapping[str, str]:
        """Group -> why it has no features of the clip, while other groups have."""
        ...


def absent_counts(clips: Iterable[MayBeAbsent]) -> dict[str, int]:
    """Return group -> number of clips of which it has no features, while other groups have; sorted by name.

    Groups that have features of all these clips are left out.
    """
    counter = Counter[str]()
    for clip in clips:
        counter.update(clip.absent.keys())
    return dict(sorted(counter.items()))


_FIRST_COLUMNS = COLUMNS[: COLUMNS.index("reason") + 1]
"""The required columns up to `reason`; optional columns follow, and then the other required ones."""

_N_FIRST = len(_FIRST_COLUMNS)
"""Position of the optional columns `without_pictures_s` and `absent:<group>`."""


def clips_csv_bytes(
    clips: Sequence[StoredClip], arrays: Sequence[str], digests: Iterable[Mapping[str, str]] | None = None
) -> bytes:
    """Return the bytes of `data/clips.csv`, the table of clips.

    Parameters
    ----------
    clips
        The rows.
    arrays
        The arrays `group/array` whose digests the table has.
    digests
        For each clip, `group/array` -> digest; None to take the digests that the clips themselves hold.
    """
    if digests is None:
        digests = (clip.digests for clip in clips)
    has_text = any(clip.text is not None for clip in clips)
    has_gaps = any(clip.without_pictures_s for clip in clips)
    absent_groups = list(absent_counts(clips))
    header = _header(arrays, absent_groups, has_gaps=has_gaps, has_text=has_text)

    # A table may have a million lines; a list of them would take three times the memory of their bytes.
    table = io.BytesIO()
    table.write(csv_line(header).encode())
    for row, (clip, clip_digests) in enumerate(zip(clips, digests, strict=True)):
        # In the order of `_header`.
        cells = [str(row), clip.clip_id, clip.status, clip.reason]
        if has_gaps:
            cells.append(format_gaps(clip.without_pictures_s))
        cells += [clip.absent.get(name, "") for name in absent_groups]
        cells += [clip.movie, _cell(clip.start_s), _cell(clip.end_s)]
        cells += [_cell(clip.source.get(name)) for name in ("bytes", "duration_s", "sha256")]
        if has_text:
            cells.append(clip.text or "")
        cells += [clip_digests.get(name, "") for name in arrays]
        table.write(csv_line(cells).encode())
    return table.getvalue()


def _header(
    arrays: Sequence[str], absent_groups: Sequence[str], *, has_gaps: bool, has_text: bool
) -> list[str]:
    """Return the names of the columns of a table of clips, in order."""
    header = [*_FIRST_COLUMNS]
    if has_gaps:
        header.append(WITHOUT_PICTURES)
    header += [ABSENT_PREFIX + name for name in absent_groups]
    header += COLUMNS[_N_FIRST:]
    if has_text:
        header.append(TEXT_COLUMN)
    header += [DIGEST_PREFIX + name for name in arrays]
    return header


def _cell(value: object) -> str:
    """Return a value as the text of a cell: empty for None, all digits of a float."""
    if value is None:
        return ""
    return repr(value) if isinstance(value, float) else str(value)


def parse_clips_csv(
    blocks: Iterable[bytes], location: str, rows: Collection[int] | None = None
) -> tuple[StoredClip, ...]:
    """Read the table of a store's clips, or some rows of it.

    Parameters
    ----------
    blocks
        The bytes of clips.csv.
    location
        Its name in messages.
    rows
        Numbers of the rows to read; None for all.

    Raises
    ------
    StoreError
        Naming the line, if it is not such a table.
    """
    return tuple(each_clip(blocks, location, rows))


class _Columns(NamedTuple):
    """The columns of a table that not every table has.

    Parameters
    ----------
    has_gaps
        Whether there is a column of gaps (`without_pictures_s`).
    absent_groups
        Groups with a column on why they have no features of a clip.
    has_text
        Whether there is a column of texts.
    arrays
        Arrays `group/array` with a column of digests.
    """

    has_gaps: bool
    absent_groups: list[str]
    has_text: bool
    arrays: list[str]

    @property
    def n_optional(self) -> int:
        """Number of the columns of gaps and of absent groups."""
        return len(self.absent_groups) + (1 if self.has_gaps else 0)

    @property
    def n_cells(self) -> int:
        """Number of cells of a line."""
        n_required = len(COLUMNS) + len(self.arrays)
        return n_required + self.n_optional + (1 if self.has_text else 0)


def _columns_of(header: list[str], location: str) -> _Columns:
    """Return which optional columns the table of clips has, by its header.

    The columns stand in this order; those in brackets are optional:
    row, clip_id, status, reason, [without_pictures_s], [absent:<group>, ...], the other required columns,
    [text], [sha256:<group>/<array>, ...].

    Raises
    ------
    StoreError
        If one of the required columns is missing or in another place.
    """
    first_columns = header[:_N_FIRST]
    later_columns = header[_N_FIRST:]
    has_gaps = bool(later_columns) and later_columns[0] == WITHOUT_PICTURES
    absent_groups = [name.removeprefix(ABSENT_PREFIX) for name in header if name.startswith(ABSENT_PREFIX)]
    n_optional = len(absent_groups) + (1 if has_gaps else 0)
    without_optional = first_columns + later_columns[n_optional:]

    n_required = len(COLUMNS)
    required_columns = without_optional[:n_required]
    last_columns = without_optional[n_required:]
    if tuple(required_columns) != COLUMNS:
        raise StoreError(f"{location}, line 1: expected the columns {','.join(COLUMNS)}")

    has_text = bool(last_columns) and last_columns[0] == TEXT_COLUMN
    digest_columns = last_columns[1:] if has_text else last_columns
    arrays = [name.removeprefix(DIGEST_PREFIX) for name in digest_columns]
    return _Columns(has_gaps, absent_groups, has_text, arrays)


def each_clip(
    blocks: Iterable[bytes], location: str, rows: Collection[int] | None = None
) -> Iterator[StoredClip]:
    """Yield the clips of a store's table (clips.csv), or of some rows of it, without holding all in memory.

    Parameters
    ----------
    blocks
        The table's bytes.
    location
        Its name in messages.
    rows
        Numbers of the rows; None for all.

    Raises
    ------
    StoreError
        Naming the line, if it is not such a table.
    """
    lines = csv.reader(_lines(blocks), strict=True)
    try:
        columns = _columns_of(next(lines, []), location)
        for row, cells in enumerate(lines):
            if rows is None or row in rows:
                yield _read_clip(cells, columns, row)
    except StoreError:  # it is a ValueError too, and names its line
        raise
    except (ValueError, csv.Error) as error:
        raise StoreError(f"{location}, line {lines.line_num}: {error}") from error


def _lines(blocks: Iterable[bytes]) -> Iterator[str]:
    """Join blocks of bytes and divide them into lines of text.

    Raises
    ------
    ValueError
        If a line goes on in the next block and has more than `MAX_LINE_BYTES` already: without this limit,
        a table without line ends would fill the memory.
    """
    unfinished = b""  # the beginning of a line whose end is in a later block
    for block in blocks:
        lines = io.BytesIO(unfinished + block)
        unfinished = b""
        for line in lines:
            if line.endswith(b"\n"):
                yield line.decode()
                continue
            if len(line) > MAX_LINE_BYTES:
                raise ValueError(f"a line has more than {MAX_LINE_BYTES} bytes")
            unfinished = line
    if unfinished:
        yield unfinished.decode()


def _is_sha256(digest: str) -> bool:
    """Return whether a text is 64 hexadecimal digits.

    This takes a tenth of the time of a check by schema: a table may have a million lines.
    """
    try:
        n_bytes = len(bytes.fromhex(digest))
    except ValueError:
        return False
    has_no_blanks = len(digest) == 2 * n_bytes  # `fromhex` skips blanks
    return has_no_blanks and n_bytes == SHA256_BYTES


def _read_clip(cells: list[str], columns: _Columns, row: int) -> StoredClip:
    """Convert the cells of a line to a clip.

    Raises
    ------
    ValueError
        It is not the line of this row, or a cell does not fit.
    """
    if len(cells) != columns.n_cells or cells[0] != str(row):
        raise ValueError(f"expected row {row} with {columns.n_cells} cells")

    # The order of the columns is in `_columns_of`.
    end_of_optional = _N_FIRST + columns.n_optional
    _, clip_id, status, reason = cells[:_N_FIRST]
    optional_cells = cells[_N_FIRST:end_of_optional]
    movie, start, end, size, duration, sha256, *last_cells = cells[end_of_optional:]
    if columns.has_gaps:
        gap_cell, *absent_cells = optional_cells
    else:
        gap_cell, absent_cells = "", optional_cells
    text: str | None
    if columns.has_text:
        text, *digest_cells = last_cells
    else:
        text, digest_cells = None, last_cells

    start_s = float(start) if start else None
    end_s = float(end) if end else None
    digests = _read_digests(columns.arrays, digest_cells)
    gaps = _read_gaps(gap_cell, start_s, end_s, status)
    # Why groups have no features of the clip; an empty cell for a group that has some.
    reason_of_group = dict(zip(columns.absent_groups, absent_cells, strict=True))
    absent = {group: why_absent for group, why_absent in reason_of_group.items() if why_absent}
    return StoredClip(
        clip_id=clip_id,
        status=status,
        reason=reason,
        movie=movie,
        start_s=start_s,
        end_s=end_s,
        source=_read_source(size, duration, sha256),
        digests=digests,
        text=text,
        absent=absent,
        without_pictures_s=gaps,
    )


def _read_source(size: str, duration: str, sha256: str) -> dict[str, object]:
    """Return what is known of a clip's file: its bytes, seconds and digest, of which cells may be empty."""
    source: dict[str, object] = {}
    if size:
        source["bytes"] = int(size)
    if duration:
        source["duration_s"] = float(duration)
    if sha256:
        source["sha256"] = sha256
    return source


def _read_gaps(cell: str, start_s: float | None, end_s: float | None, status: str) -> Gaps:
    """Return the gaps in a cell: stretches in which a clip has no pictures; none if the cell is empty.

    Parameters
    ----------
    cell
        The cell, such as `12.5 14.0;20.0 21.5`.
    start_s, end_s, status
        Span and status of the clip.

    Raises
    ------
    ValueError
        If a gap is outside of the clip's span, or the clip is not partial.
    """
    if not cell:
        return ()
    gaps = parse_gaps(cell)
    check_gaps(gaps, start_s, end_s)
    if status != "partial":
        raise ValueError(f"{WITHOUT_PICTURES} of a clip that is {status}; only a partial one has some")
    return gaps


def _read_digests(arrays: Sequence[str], cells: Sequence[str]) -> dict[str, str]:
    """Return array -> digest of a clip's row, from the cells of a line; a clip without features has none.

    Parameters
    ----------
    arrays
        The arrays `group/array` that the table has columns for.
    cells
        The cells of these columns. A ValueError is raised for one that is no SHA-256.
    """
    digests = {}
    for name, digest in zip(arrays, cells, strict=True):
        if not digest:
            continue
        if not _is_sha256(digest):
            raise ValueError(f"expected 64 hexadecimal digits as {DIGEST_PREFIX}{name}, found {digest!r}")
        digests[name] = digest
    return digests
