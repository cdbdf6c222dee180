"""Define a clip, a labelled span of a video, and convert clips to rows of a manifest file and back."""

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from pathlib import Path

from obygaze_features.arguments import checked, made_by
from obygaze_features.errors import ManifestError
from obygaze_features.lines import csv_line, sheet_line
from obygaze_features.manifest.codebook import BUILTIN, Codebook
from obygaze_features.manifest.spans.instant import is_short, seconds
from obygaze_features.manifest.text_tables import CODEBOOK_COLUMN, FIELDS, SEEN_SCORE, Problems, Row
from obygaze_features.text import composed, number_of, unsuitable

CONCEPT_SEPARATOR = ";"
_RESERVED_COLUMNS = {*FIELDS, CODEBOOK_COLUMN}
"""Columns of a manifest file that cannot be the name of an extra column."""
OVERHANG_S = 1 / 24
"""Seconds by which a clip may end after its film: a frame."""


@made_by("Clip(CLIP_ID, MOVIE)")
@dataclass(frozen=True, slots=True)
class Clip:
    """A span of a video with its annotations.

    Parameters
    ----------
    clip_id
        Unique in its manifest; no slash, backslash or leading dot, since it names things on disk.
    movie
        The film the clip is from, an IMDb id where there is one: the unit of grouped splits.
    video
        Path of the video, relative to the manifest's folder, or absolute; "" where no file is known.
    start_s, end_s
        Span in seconds of presentation time, end exclusive; both None for the whole file.
    level
        A level of the manifest's codebook; None where the clip is not annotated.
    concepts
        Concepts of the manifest's codebook, each once; the manifest puts them in its codebook's order.
    annotator
        Name of the annotator; "" for a merged or unknown annotation.
    extras
        Any further column, kept verbatim; texts of several lines are allowed.

    Raises
    ------
    ManifestError
        Naming the clip and the column, if a value is not allowed.

    Examples
    --------
    >>> from obygaze_features import Clip
    >>> clip = Clip("film0-c000", "film0", start_s=0, end_s=4, level="S", concepts=("Body",))
    >>> clip.duration_s
    4.0
    """

    clip_id: str
    movie: str
    video: str = ""
    start_s: float | None = None
    end_s: float | None = None
    level: str | None = None
    concepts: tuple[str, ...] = ()
    annotator: str = ""
    extras: Mapping[str, str] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        """Write names with composed accents and times as floats; refuse a value that is not allowed.

        The dataclass is frozen, so that its values can only be changed by `object.__setattr__`.
        """
        for column in ("clip_id", "movie", "annotator"):
            object.__setattr__(self, column, composed(getattr(self, column)))

        problems = chain(self._wrong_texts(), self._wrong_times())
        first_problem = next(problems, None)
        if first_problem is not None:
            column, problem = first_problem
            raise ManifestError(f"clip {self.clip_id!r}: {column} {problem}", column)

        if self.start_s is not None and self.end_s is not None:
            object.__setattr__(self, "start_s", float(self.start_s) + 0.0)  # + 0.0: minus zero is zero
            object.__setattr__(self, "end_s", float(self.end_s))
        object.__setattr__(self, "concepts", tuple(dict.fromkeys(self.concepts)))
        object.__setattr__(self, "extras", dict(self.extras))

    @property
    def duration_s(self) -> float | None:
        """Length of the span in seconds, None for a whole file."""
        if self.start_s is None or self.end_s is None:
            return None
        return self.end_s - self.start_s

    def _wrong_texts(self) -> Iterator[tuple[str, str]]:
        """Yield (column, problem) for each text that is not allowed, such as an empty clip id.

        `unsuitable` returns what is wrong with a text, such as a line break in it; "" if nothing is.
        """
        text_columns = {name: getattr(self, name) for name in ("clip_id", "movie", "video", "annotator")}
        # All texts are first checked as one, for speed: a corpus has tens of thousands of clips, and nearly
        # none has such a problem.
        all_texts = "".join((*text_columns.values(), *self.extras, *self.extras.values()))
        if unsuitable(all_texts):
            yield from self._unsuitable_texts(text_columns)

        for column, text in text_columns.items():
            if text != text.strip():
                yield column, f"{text!r} begins or ends with a space"
            if not text and column in {"clip_id", "movie"}:
                yield column, "is empty"
        has_slash = "/" in self.clip_id or "\\" in self.clip_id
        if has_slash or self.clip_id.startswith("."):
            yield "clip_id", "holds a slash or a backslash, or begins with a dot"
        if "\\" in self.movie or ".." in self.movie.split("/"):
            yield "movie", "holds a backslash, or leads upwards"
        for column in self.extras:
            if not column or column in _RESERVED_COLUMNS:
                yield column, "is no name for an extra column"

    def _unsuitable_texts(self, text_columns: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """Yield (column, problem) for each text with characters that a manifest cannot hold.

        `text_columns` maps the columns of a manifest to the clip's texts; extra columns are checked too.
        """
        for column, text in text_columns.items():
            problem = unsuitable(text)
            if problem:
                yield column, f"{text!r} {problem}"
        for column, text in self.extras.items():
            problem = unsuitable(column)
            if problem:
                yield "extra column", f"{column!r} {problem}"
            problem = unsuitable(text, line_breaks=True)
            if problem:
                yield column, f"{text!r} {problem}"

    def _wrong_times(self) -> Iterator[tuple[str, str]]:
        """Yield (column, problem) for a start or end that is missing, negative, infinite, or out of order."""
        start = self.start_s
        end = self.end_s
        if start is None and end is None:  # the clip is the whole file
            return
        if start is None or end is None:
            column = "start_s" if start is None else "end_s"
            yield column, "is empty: give both ends of the span, or neither for the whole file"
            return
        for column, time_s in (("start_s", start), ("end_s", end)):
            if not math.isfinite(time_s):
                yield column, f"{time_s} is not a finite number of seconds"
            elif time_s < 0:
                yield column, f"{time_s} is negative"
        if start >= end:
            yield "end_s", f"{end} is not after start_s {start}"


def grouped(clips: Iterable[Clip], column: str) -> dict[str, list[Clip]]:
    """Group clips by a column, such as `movie`: its text -> the clips that have it, in order."""
    groups: dict[str, list[Clip]] = {}
    for clip in clips:
        groups.setdefault(getattr(clip, column), []).append(clip)
    return groups


def has_labels(clip: Clip, codebook: Codebook) -> bool:
    """Return whether somebody said anything of a clip: a level, concepts, or a rank on a scale."""
    if clip.level is not None or clip.concepts:
        return True
    return any(clip.extras.get(scale.name, "").strip() for scale in codebook.scales)


@lru_cache(1 << 12)  # many clips are of few videos
def video_key(video: str) -> str:
    """Return the form in which paths of videos are compared: without `./` and the like, accents composed.

    It is "" for no video.

    Examples
    --------
    >>> video_key("./films//a.mp4"), video_key("films/b/../a.mp4"), video_key("")
    ('films/a.mp4', 'films/a.mp4', '')
    """
    return os.path.normpath(composed(video)) if video else ""


def absolute(path: Path) -> Path:
    """Make a path absolute and free of "..", following no links."""
    return Path(os.path.normpath(path.absolute()))


@checked
def stored_path(video: Path, root: Path) -> str:
    """Write a video's path as a manifest in folder `root` should hold it.

    The path is relative if the video lies in that folder or in a sibling folder, so that manifest and films
    can be moved together. Otherwise it is absolute.
    """
    folder = absolute(root)
    file = absolute(video)
    if file.is_relative_to(folder):
        return file.relative_to(folder).as_posix()
    # The system resolves ".." through real folders, not through links.
    real_parent = folder.resolve().parent
    real_file = file.parent.resolve() / file.name
    is_root_of_disk = real_parent == real_parent.parent
    if not is_root_of_disk and real_file.is_relative_to(real_parent):
        return (Path("..") / real_file.relative_to(real_parent)).as_posix()
    return file.as_posix()


def canonical_bytes(clips: Sequence[Clip], codebook: Codebook, *, spreadsheet_safe: bool = False) -> bytes:
    """Write clips as canonical CSV: UTF-8, comma, line feed, quotes only where needed.

    Parameters
    ----------
    clips
        The rows, all with the same extra columns.
    codebook
        The codebook of the clips' labels. Its name is written in a column of its own, unless it is the
        default codebook (`BUILTIN[0]`).
    spreadsheet_safe
        Whether to put an apostrophe in front of cells that a spreadsheet would run as a formula.
    """
    write_line = sheet_line if spreadsheet_safe else csv_line
    extra_names = tuple(clips[0].extras) if clips else ()
    header = [*FIELDS]
    codebook_cells = []
    if codebook.name != BUILTIN[0]:
        header.append(CODEBOOK_COLUMN)
        codebook_cells.append(codebook.name)
    lines = [write_line((*header, *extra_names))]
    for clip in clips:
        extra_cells = [clip.extras[name] for name in extra_names]
        lines.append(write_line((*_field_cells(clip), *codebook_cells, *extra_cells)))
    return "".join(lines).encode("utf-8")


class ClipsById:
    """Clips by their ids: an id may be there once, or once for each of several annotators of its span."""

    def __init__(self) -> None:
        """Start without clips."""
        self._first: dict[str, Clip] = {}  # clip id -> the first clip that has it
        self._of_annotator: dict[tuple[str, str], Clip] = {}  # (clip id, annotator) -> clip

    def add(self, clip: Clip) -> Clip | None:
        """Add a clip, unless an earlier one of its id forbids it: of the same annotator or of another span.

        Returns
        -------
        None if the clip was added, else the earlier clip of the same id that forbids it.
        """
        first_of_id = self._first.setdefault(clip.clip_id, clip)
        key = (clip.clip_id, clip.annotator)
        earlier_of_annotator = self._of_annotator.get(key)
        if earlier_of_annotator is not None:
            return earlier_of_annotator
        is_first = first_of_id is clip
        if not is_first and not is_of_another_annotator(clip, first_of_id):
            return first_of_id
        self._of_annotator[key] = clip
        return None


class Collected:
    """The clips of a file. A clip with an id that is taken (`ClipsById`) is left out and noted as a problem.

    An id may be made of the name of a video: if two movies share it, the problem is said to be that.

    Parameters
    ----------
    problems
        Collects what is wrong in the file.
    column
        The column that a repeated id is in, for messages.

    Attributes
    ----------
    clips
        The clips that were added, in the order of their lines.
    """

    def __init__(self, problems: Problems, column: str = "clip_id") -> None:
        """Begin without clips; a clip that is there twice is a problem of `column`."""
        self.clips: list[Clip] = []
        self._problems = problems
        self._column = column
        self._by_id = ClipsById()
        self._lines: dict[tuple[str, str], int] = {}  # (clip id, annotator) -> line

    def add(self, clip: Clip | None, line: int) -> None:
        """Add the clip that was read from a line; None stands for a line that could not be read.

        A clip whose id an earlier one has is not added, but noted as a problem, unless they are labels of the
        same span by two annotators.
        """
        if clip is None:
            return
        earlier_of_id = self._by_id.add(clip)
        if earlier_of_id is None:
            self.clips.append(clip)
            self._lines[clip.clip_id, clip.annotator] = line
            return

        first_line = self._lines[earlier_of_id.clip_id, earlier_of_id.annotator]
        have_same_video = bool(clip.video) and video_key(clip.video) == video_key(earlier_of_id.video)
        if have_same_video and clip.movie != earlier_of_id.movie:
            problem = (
                f"{clip.video!r} is of movie {clip.movie!r}, and on line {first_line} of "
                f"{earlier_of_id.movie!r}: one video is named for two movies; name the film once, or give "
                "each its own video"
            )
            self._problems.add(line, problem, "video")
        else:
            problem = f"clip {clip.clip_id!r} is already on line {first_line}: one row says all of a clip"
            self._problems.add(line, problem, self._column)


def is_of_another_annotator(clip: Clip, other: Clip) -> bool:
    """Return whether two clips of one id are two annotators' labels of the same span.

    Both annotators must be named, and must differ.
    """
    if not clip.annotator or not other.annotator or clip.annotator == other.annotator:
        return False
    span = (clip.movie, video_key(clip.video), clip.start_s, clip.end_s)
    other_span = (other.movie, video_key(other.video), other.start_s, other.end_s)
    return span == other_span


@checked
def clip_of(row: Row, problems: Problems, codebook: Codebook, *, spelled: bool = False) -> Clip | None:
    """Read a row of a manifest as a clip; return None and note the problems if a cell cannot be read.

    Parameters
    ----------
    row
        Needs the columns clip_id and movie. The other columns of FIELDS may be absent; further columns become
        the clip's extras.
    problems
        Collects what is wrong.
    codebook
        The codebook of the row's level and concepts.
    spelled
        Whether to accept also the codebook's titles and synonyms of levels and concepts.
    """
    return clip_of_row(row, problems, codebook, spelled=spelled)


def clip_of_row(row: Row, problems: Problems, codebook: Codebook, *, spelled: bool) -> Clip | None:
    """Read a row as `clip_of` does, without the check of argument types, which is slow over many rows.

    All cells of a row are read, and all their problems are noted, before None is returned: a person can mend
    them in one step. To this end `problems.attempt(line, column, function, ...)` returns what the function
    returns; if that raises an error, it notes it as a problem of the line and the column, and returns None.
    """
    n_problems_before = len(problems.messages)
    line = row.line
    cells = row.cells

    start = problems.attempt(line, "start_s", seconds, cells.get("start_s", ""))
    end = problems.attempt(line, "end_s", seconds, cells.get("end_s", ""))
    level = None
    if cells.get("level"):
        level_of = codebook.level_spelled if spelled else codebook.level_named
        level = problems.attempt(line, "level", level_of, cells["level"])
    concepts = problems.attempt(line, "concepts", _concepts_of, cells, codebook, spelled=spelled)
    # No column is named here: the error of `parse_seen_score` names it. None only where there is a problem.
    seen_score = problems.attempt(line, "", parse_seen_score, cells.get(SEEN_SCORE, ""))
    if is_short(start, end):
        # Spreadsheets store a time as a share of a day, such as 0.0005 for 43 s.
        message = f"less than a frame after start_s {start}: are times shares of a day?"
        problems.add(line, message, "end_s")
    has_problem = len(problems.messages) > n_problems_before
    if has_problem:
        return None

    # The columns that a clip has fields for, and that of the codebook's name, are no extra columns.
    extras = {column: text for column, text in cells.items() if column not in _RESERVED_COLUMNS}
    if SEEN_SCORE in cells:
        extras[SEEN_SCORE] = seen_score or ""
    return problems.attempt(
        line,
        "",  # the error of `Clip` names its column
        Clip,
        clip_id=cells["clip_id"],
        movie=cells["movie"],
        video=cells.get("video", ""),
        start_s=start,
        end_s=end,
        level=level,
        concepts=concepts or (),
        annotator=cells.get("annotator", ""),
        extras=extras,
    )


def _concepts_of(cells: Mapping[str, str], codebook: Codebook, *, spelled: bool) -> tuple[str, ...]:
    """Read the cell `concepts` of a row as names of concepts.

    `spelled` is whether a person wrote the cell: synonyms are accepted then, and commas between concepts.
    """
    text = cells.get("concepts", "")
    if spelled:
        return tuple(codebook.concept_spelled(name) for name in codebook.split_concepts(text))
    return tuple(codebook.concept_named(name) for name in split_concepts(text))


def parse_seen_score(text: str) -> str:
    """Read a cell of the column `seen_score`: whether the annotator saw a model's score while labelling.

    Returns
    -------
    "1" if the score was visible, "0" if not, "" for an empty cell. Numbers such as 1.0 and 0,0 are read too.
    """
    if not text.strip():
        return ""
    number = number_of(text.replace(",", "."))
    if number not in {0, 1}:
        raise ManifestError(f"{text!r}: expected 1 (the score was in sight) or 0", SEEN_SCORE)
    return f"{number:g}"


def split_concepts(text: str) -> tuple[str, ...]:
    """Split concepts that are joined by semicolons; a semicolon at the end is ignored."""
    if not text:
        return ()
    return tuple(text.removesuffix(CONCEPT_SEPARATOR).split(CONCEPT_SEPARATOR))


def _field_cells(clip: Clip) -> tuple[str, ...]:
    """Write the values of a clip as the cells of a manifest's columns, in the order of `FIELDS`."""
    start = "" if clip.start_s is None else repr(clip.start_s)
    end = "" if clip.end_s is None else repr(clip.end_s)
    concepts = CONCEPT_SEPARATOR.join(clip.concepts)
    return clip.clip_id, clip.movie, clip.video, start, end, clip.level or "", concepts, clip.annotator


def numbered_ids(stem: str, count: int) -> list[str]:
    """Make ids numbered from 1, with zeros in front so that they sort: at least four digits.

    Examples
    --------
    >>> numbered_ids("film", 2)
    ['film-0001', 'film-0002']
    >>> numbered_ids("film", 10_800)[-1]
    'film-10800'
    """
    width = max(4, len(str(count)))
    return [f"{stem}-{number:0{width}d}" for number in range(1, count + 1)]
