"""Define, read and write the manifest: the table of clips, with their labels and videos."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from obygaze_features.arguments import checked, made_by
from obygaze_features.errors import ManifestError
from obygaze_features.io import in_any_form, local_path, write_together
from obygaze_features.manifest.clip import (
    Clip,
    ClipsById,
    Collected,
    absolute,
    canonical_bytes,
    clip_of_row,
    stored_path,
)
from obygaze_features.manifest.codebook import BUILTIN, Codebook, builtin_codebook, load_codebook
from obygaze_features.manifest.identity import check_identity
from obygaze_features.manifest.spans.names import find_film
from obygaze_features.manifest.text_tables import (
    CODEBOOK_COLUMN,
    FIELDS,
    Row,
    Table,
    error_context,
    read_table,
    without_gc,
)
from obygaze_features.text import as_address, counted, is_address
from obygaze_features.untrusted import STANDARD

if TYPE_CHECKING:
    import pandas as pd

FIRST_ROWS = 10
"""How many rows of a manifest a notebook shows."""


def default_codebook() -> Codebook:
    """Return the codebook of a manifest that names none."""
    return builtin_codebook(BUILTIN[0])


@made_by("read_manifest(PATH)")
@dataclass(frozen=True)
class Manifest:
    """Clips in order, the folder that their relative video paths are under, and the codebook of their labels.

    Clips' concepts are put in the codebook's order. A clip may be there once for each of its annotators.

    Raises
    ------
    ManifestError
        If two clips share an id and are not the rows of two annotators, clips differ in their extra columns,
        or a level or concept is not in the codebook.

    Examples
    --------
    >>> from pathlib import Path
    >>> from obygaze_features import Clip, Manifest
    >>> manifest = Manifest((Clip("a", "film0"), Clip("b", "film1")), Path())
    >>> manifest.movies
    ('film0', 'film1')
    >>> manifest.by_id["a"].movie
    'film0'
    """

    clips: tuple[Clip, ...]
    root: Path
    codebook: Codebook = field(default_factory=default_codebook, repr=False)

    def __post_init__(self) -> None:
        """Put concepts in the codebook's order, and refuse clips that do not fit together.

        Raises
        ------
        ManifestError
            A label is not of the codebook, an id is there twice, clips have different extra columns, or names
            contradict each other (`check_identity`).
        """
        clips = tuple(_with_labels_of_codebook(clip, self.codebook) for clip in self.clips)
        object.__setattr__(self, "clips", clips)  # the dataclass is frozen

        by_id = ClipsById()
        for clip in self.clips:
            earlier = by_id.add(clip)
            if earlier is not None:
                raise _repeated_id(earlier, clip)
            extra_columns = list(clip.extras)
            expected_columns = list(self.clips[0].extras)
            if extra_columns != expected_columns:
                raise ManifestError(
                    f"clip {clip.clip_id!r} has extra columns {extra_columns} "
                    f"where the first clip has {expected_columns}"
                )
        check_identity(self.clips)

    def __len__(self) -> int:
        """Return the number of rows; a clip has one for each annotator where several labelled it."""
        return len(self.clips)

    def __iter__(self) -> Iterator[Clip]:
        """Go through the rows in their order; each is a clip, with the labels of one annotator."""
        return iter(self.clips)

    def __repr__(self) -> str:
        """Say what is in it: `Manifest(8 clips of 2 movies, 16 rows of annotators, codebook 'obygaze12')`."""
        clips = counted(len(self.clips_once), "clip")  # each once, whoever labelled it
        movies = counted(len(self.movies), "movie")
        content = f"{clips} of {movies}"
        if self.is_per_annotator:
            rows = counted(len(self), "row of annotators", "rows of annotators")
            content += f", {rows}"
        return f"Manifest({content}, codebook {self.codebook.name!r})"

    def _repr_html_(self) -> str:
        """Show the first clips as a table in a notebook."""
        first = self.with_clips(self.clips[:FIRST_ROWS]).to_frame()
        table: str = first.to_html(index=False, na_rep="")
        return f"<div><strong>{escape(repr(self))}</strong>{table}</div>"

    def to_frame(self) -> "pd.DataFrame":
        """Make a pandas table with a row for each clip.

        Returns
        -------
        DataFrame
            Columns clip, movie, video, start_s, end_s, level, concepts (a tuple of names), annotator, then
            the extra columns. A level is missing where there is none.

        Examples
        --------
        >>> from obygaze_features import read_manifest
        >>> read_manifest("films.csv").to_frame().columns.tolist()[:4]
        ['clip', 'movie', 'video', 'start_s']
        """
        import pandas as pd  # noqa: PLC0415 - reading manifests needs no pandas

        columns = {}
        for name in FIELDS:
            columns[name.removesuffix("_id")] = [getattr(clip, name) for clip in self.clips]
        frame = pd.DataFrame(columns)
        frame = frame.astype({"start_s": "float64", "end_s": "float64", "level": "str"})
        extra_columns = tuple(self.clips[0].extras) if self.clips else ()
        for name in extra_columns:
            frame[name] = [clip.extras[name] for clip in self.clips]
        return frame

    @property
    def by_id(self) -> Mapping[str, Clip]:
        """The clips by their ids.

        Raises
        ------
        ManifestError
            A clip has several rows, one for each annotator.
        """
        if self.is_per_annotator:
            raise ManifestError(
                "its clips are there once for each annotator: merge them first (`merge_annotators`, or "
                "`obygaze manifest project --merge`)",
                "annotator",
            )
        return self._by_id

    @property
    def clips_once(self) -> tuple[Clip, ...]:
        """Each clip once: of a clip with a row for each annotator the first row."""
        first_rows: dict[str, Clip] = {}
        for clip in self.clips:
            first_rows.setdefault(clip.clip_id, clip)
        return tuple(first_rows.values())

    @property
    def is_per_annotator(self) -> bool:
        """Whether a clip is there more than once, for several annotators."""
        return len(self._by_id) < len(self.clips)

    @cached_property
    def _by_id(self) -> Mapping[str, Clip]:
        """Clip id -> clip."""
        # Not in `by_id` itself, which is a property of a protocol: pyright accepts no cached property there.
        return {clip.clip_id: clip for clip in self.clips}

    @property
    def movies(self) -> tuple[str, ...]:
        """The movies, in order of first appearance."""
        return tuple(dict.fromkeys(clip.movie for clip in self.clips))

    def with_clips(self, clips: Iterable[Clip]) -> "Manifest":
        """Make a manifest of other clips in the same folder, with the same codebook."""
        return replace(self, clips=tuple(clips))

    def spelled_as(self, movies: Iterable[str]) -> "Manifest":
        """Return the manifest with its movies spelled as in `movies`; others stay as they are.

        A movie is found in `movies` whatever form its name or IMDb id has (`find_film`).
        """
        films = tuple(movies)
        spelling_of = {movie: find_film(movie, films) or movie for movie in self.movies}
        is_unchanged = all(name == movie for movie, name in spelling_of.items())
        if is_unchanged:
            return self
        return self.with_clips(replace(clip, movie=spelling_of[clip.movie]) for clip in self)

    def video_path(self, clip: Clip) -> Path | None:
        """Return the path of a clip's video, in the Unicode form that the disk has; None without a video."""
        if not clip.video:
            return None
        return in_any_form(self.root, clip.video)

    def placed_in(self, folder: Path | str) -> "Manifest":
        """Return the manifest as it is stored in another folder: with the paths of its videos rewritten."""
        folder = local_path(folder)
        if absolute(folder) == absolute(self.root):
            return self
        moved = []
        for clip in self.clips:
            if clip.video:
                moved.append(replace(clip, video=stored_path(self.root / clip.video, folder)))
            else:
                moved.append(clip)
        return replace(self, clips=tuple(moved), root=folder)

    def digest(self) -> str:
        """Hash the manifest as canonical CSV (`canonical_bytes`): SHA-256, hexadecimal.

        The CSV holds the name of the codebook, and not its content, which `codebook.digest()` hashes.
        """
        return hashlib.sha256(canonical_bytes(self.clips, self.codebook)).hexdigest()


ADVICE = (
    "make a manifest of it with 'obygaze manifest import' (corpora: obygaze12, mobygaze, mediaeval15; "
    "annotations, subtitles and tables: spans FILE)"
)


def _repeated_id(first: Clip, second: Clip) -> ManifestError:
    """Return the error for two clips of one id that are not the rows of two annotators for one span."""
    annotator = first.annotator or "nobody"
    other_annotator = second.annotator or "nobody"
    whose = annotator
    if annotator != other_annotator:
        whose = f"{annotator} and {other_annotator}"
    names_nobody = not first.annotator or not second.annotator
    if annotator != other_annotator and not names_nobody:
        whose += ", whose films, videos or times differ"
    remedy = "; if two people labelled it, name them in a column annotator" if names_nobody else ""
    return ManifestError(
        f"clip {second.clip_id!r} is there twice, of {whose}: clip ids must be unique, or those of one "
        f"span of several annotators{remedy}",
        "clip_id",
    )


@checked
@without_gc()
def read_manifest(path: str | Path, *, spreadsheet_safe: bool = False) -> Manifest:
    """Read and check a manifest file, and its codebook.

    The codebook is the file next to the manifest (`films.codebook.toml` for `films.csv`), else the built-in
    codebook that the column `codebook` names, else `obygaze12`. Times are seconds, or hh:mm:ss. The table may
    have been saved by a spreadsheet: as a workbook, or with semicolons or tabs between cells and decimal
    commas.

    Parameters
    ----------
    path
        The manifest file.
    spreadsheet_safe
        Whether a person filled the table in. Levels and concepts may then have any case or be titles, cells
        may have blanks around them, and an apostrophe before a cell is left out.

    Raises
    ------
    ManifestError
        The table has problems (names file, line and column of the first few, and how many there are), or the
        codebook file has.

    Examples
    --------
    >>> from obygaze_features import read_manifest
    >>> manifest = read_manifest("films.csv")
    >>> len(manifest)
    96
    >>> manifest.movies[:2]
    ('film0', 'film1')
    >>> manifest.codebook.name
    'obygaze12'
    """
    if is_address(path):
        raise ManifestError(
            f"{as_address(path)}: a manifest is read from a file on this machine: download it first, and its "
            "codebook if it has one"
        )
    path = local_path(path)
    table = read_table(path, FIELDS, advice=ADVICE)
    codebook = _codebook_of(table)

    collected = Collected(table.problems)
    # Only a spreadsheet writes apostrophes before cells, and semicolons or tabs between them.
    is_verbatim = table.delimiter == "," and not spreadsheet_safe
    for row in table.timed(verbatim=is_verbatim):
        read_row = _stripped(row) if spreadsheet_safe else row
        clip = clip_of_row(read_row, table.problems, codebook, spelled=spreadsheet_safe)
        collected.add(clip, row.line)
    with error_context(path):
        return Manifest(tuple(collected.clips), absolute(path).parent, codebook)


def _stripped(row: Row) -> Row:
    """Return a row without blanks around the cells of a manifest's own columns."""
    cells = dict(row.cells)
    for name in FIELDS:
        if name in cells:
            cells[name] = cells[name].strip()
    return replace(row, cells=cells)


@checked
def codebook_file(manifest: Path) -> Path:
    """Return the path of the codebook of a manifest file: `films.codebook.toml` next to `films.csv`."""
    return manifest.with_suffix(".codebook.toml")


@checked
def write_manifest(
    manifest: Manifest,
    path: str | Path,
    *,
    spreadsheet_safe: bool = False,
    beside: Mapping[Path, bytes] | Mapping[str, bytes] | None = None,
) -> Manifest:
    """Write a manifest atomically, and return it as it was written.

    Video paths are rewritten if the file is written to another folder than the manifest's. A codebook that is
    not built in, or explains a built-in one in other words, is written next to it, unless the file there
    holds the same codebook already.

    Parameters
    ----------
    manifest
        The manifest.
    path
        The file to write.
    spreadsheet_safe
        Whether to put an apostrophe in front of cells that a spreadsheet would run as a formula.
    beside
        Path -> content of further files, such as the table of shots. They are written before the manifest;
        if one file cannot be written, none is.

    Raises
    ------
    ManifestError
        Another codebook is where readers would look for this manifest's.

    Examples
    --------
    >>> from pathlib import Path
    >>> from obygaze_features import Clip, Manifest, read_manifest, write_manifest
    >>> manifest = Manifest((Clip("a", "film0", level="S"),), Path())
    >>> _ = write_manifest(manifest, "mine.csv")
    >>> read_manifest("mine.csv").clips[0].level
    'S'
    """
    path = local_path(path)
    placed = manifest.placed_in(absolute(path).parent)
    files = {}
    if _needs_codebook_file(path, placed.codebook):
        # Written first, so that the manifest is never there without its codebook.
        files[codebook_file(path)] = placed.codebook.to_toml().encode("utf-8")
    files[path] = canonical_bytes(placed.clips, placed.codebook, spreadsheet_safe=spreadsheet_safe)
    further_files = {local_path(place): content for place, content in (beside or {}).items()}
    write_together({**further_files, **files})
    return placed


def has_codebook_file(codebook: Codebook) -> bool:
    """Return whether a manifest of this codebook needs a file of it: its name alone does not tell it all.

    The name tells all of a built-in codebook. One that has the name of a built-in one has its labels too
    (`load_codebook` sees to it), but may explain them in other words, which only a file holds.
    """
    if codebook.name not in BUILTIN:
        return True
    return codebook != builtin_codebook(codebook.name)


def _needs_codebook_file(path: Path, codebook: Codebook) -> bool:
    """Return whether a codebook has to be written beside the manifest that is written to a path.

    A built-in codebook is not written, and one that is there already is not written again.

    Raises
    ------
    ManifestError
        The manifest goes to standard output, which has no place for a codebook beside it. Or the codebook has
        the name of a built-in one, and would not be read (`_refuse_other_codebook`).
    """
    _refuse_other_codebook(path, codebook)
    if not has_codebook_file(codebook):
        return False
    if path == STANDARD:
        raise ManifestError(f"the codebook {codebook.name!r} is written beside the manifest: name a file")
    return not holds_codebook(codebook_file(path), codebook)


def _refuse_other_codebook(path: Path, codebook: Codebook) -> None:
    """Refuse to write a manifest with the name of a built-in codebook that would be read with other labels.

    Raises
    ------
    ManifestError
        The codebook defines other labels than the built-in one. Or it is the built-in one, and the file of
        another codebook lies beside the manifest, which would be read in its place.
    """
    if codebook.name not in BUILTIN:
        return
    if codebook.digest() != builtin_codebook(codebook.name).digest():
        raise ManifestError(
            f"{path}: its codebook has the name of the built-in {codebook.name!r} "
            "and differs from it: give it another name"
        )
    beside = codebook_file(path)
    holds_another = beside.exists() and not holds_codebook(beside, codebook)
    will_be_written_anew = has_codebook_file(codebook)  # as it explains the labels in words of its own
    if holds_another and not will_be_written_anew:
        raise ManifestError(
            f"{beside}: lies beside {path.name} and is not its codebook {codebook.name!r}: "
            "remove it, or choose another name for the manifest"
        )


@checked
def holds_codebook(path: Path, codebook: Codebook) -> bool:
    """Return whether a file exists and holds this codebook."""
    try:
        return load_codebook(path) == codebook
    except (ManifestError, FileNotFoundError):
        return False


def _with_labels_of_codebook(clip: Clip, codebook: Codebook) -> Clip:
    """Return a clip with its level as the codebook names it, and its concepts in the codebook's order.

    Raises
    ------
    ManifestError
        The codebook does not have the level or a concept.
    """
    try:
        level = None if clip.level is None else codebook.level_named(clip.level)
        concepts = codebook.in_order(clip.concepts)
    except ManifestError as error:
        raise ManifestError(f"clip {clip.clip_id!r}: {error}", error.column) from None
    if level == clip.level and concepts == clip.concepts:
        return clip
    return replace(clip, level=level, concepts=concepts)


def _codebook_of(table: Table) -> Codebook:
    """Return the codebook of a manifest file: that of the file next to it, else the built-in one it names.

    Raises
    ------
    ManifestError
        The manifest names another codebook than the file next to it holds, or one that is not built in.
    """
    named = _named_codebook(table)
    codebook_path = codebook_file(table.path)
    if codebook_path.is_file():
        codebook = load_codebook(codebook_path)
        if named not in {"", codebook.name}:
            raise ManifestError(
                f"{table.path}: its column {CODEBOOK_COLUMN} says {named!r}, "
                f"and {codebook_path.name} beside it is {codebook.name!r}: one of them belongs elsewhere",
                CODEBOOK_COLUMN,
            )
        return codebook
    if not named:
        return default_codebook()
    location = f"{table.path}: column {CODEBOOK_COLUMN}: there is no {codebook_path.name} beside it"
    remedy = f"; a table that was renamed needs its codebook's file of that name, {codebook_path.name}"
    with error_context(location, remedy):
        return builtin_codebook(named)


def _named_codebook(table: Table) -> str:
    """Return the codebook that the rows of a manifest name; "" if it has no such column, or no row.

    Rows that name no codebook, or another than the first one that names one, are added to the table's
    problems, which are raised together after the last row. Empty rows do not count.

    Raises
    ------
    ManifestError
        There are such rows.
    """
    if CODEBOOK_COLUMN not in table.columns:
        return ""
    name = ""
    line_of_name = 0
    for row in table.checked():
        cell = row.cells[CODEBOOK_COLUMN]
        if not cell:
            table.problems.add(row.line, "is empty", CODEBOOK_COLUMN)
        elif not name:
            name = cell
            line_of_name = row.line
        elif cell != name:
            difference = f"{cell!r}, and line {line_of_name} has {name!r}: a manifest has one codebook"
            table.problems.add(row.line, difference, CODEBOOK_COLUMN)
    return name
