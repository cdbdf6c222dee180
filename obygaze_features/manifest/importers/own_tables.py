"""Read tables with the columns of a manifest, and judgements of scored films."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from obygaze_features.cells import is_unreadable
from obygaze_features.errors import ManifestError
from obygaze_features.manifest.clip import Clip, Collected, clip_of, seen_of
from obygaze_features.manifest.codebook import Codebook
from obygaze_features.manifest.importers.columns import (
    cells_of,
    columns_of_times,
    content_of,
    hints,
    option,
    renamed,
    wide_columns,
    with_labels,
    without_labels,
)
from obygaze_features.manifest.importers.folder import movie_of, name_of
from obygaze_features.manifest.importers.imported import slug, unique_id
from obygaze_features.manifest.importers.span_films import FilmNames
from obygaze_features.manifest.spans.headings import FILM_COLUMNS, LABEL_COLUMNS
from obygaze_features.manifest.spans.label_words import LabelWords
from obygaze_features.manifest.spans.names import film_named, is_place, plain, suggestion
from obygaze_features.manifest.spans.span_file import SpanFile
from obygaze_features.manifest.spans.tier_names import is_of_a_model
from obygaze_features.manifest.text_tables import (
    CANNOT_BE_READ,
    OUR_COLUMNS,
    SEEN_SCORE,
    TIMES,
    Problems,
    Row,
    Table,
    counted,
    table_of,
)
from obygaze_features.text import composed, first_few
from obygaze_features.text_records import split_records

Decision = tuple[Path, int, Mapping[str, str]]
"""A row of judgements: its file, line and cells."""

JUDGEMENTS = "judgements"

FOOTERS = {
    "total", "sum", "mean", "average", "median", "sd", "std", "n", "count", "min", "max", "summe", "gesamt",
    "mittelwert", "durchschnitt", "anzahl", "somme", "moyenne", "médiane", "suma", "media", "promedio",
    "somma", "totale",
}  # fmt: skip
"""What people and programs write before a sum, as names are compared."""

LAST_ROWS = 5
"""In which a footer stands."""


class OwnClip(NamedTuple):
    """A clip of a table, its place, and of a judgement what a later one of it replaces."""

    clip: Clip
    where: str
    judgement: str


class OwnTables:
    """Reader of tables of ours, which remembers the films and judgements of the tables before.

    Attributes
    ----------
    decisions
        All rows of judgements, those without a level too.
    """

    def __init__(self, films: FilmNames, annotator: str, ids: set[str]) -> None:
        self._films, self._annotator, self._ids = films, annotator, ids
        self._movie_of_slug: dict[str, str] = {}
        self._judgement_ids: dict[tuple[str, ...], str] = {}
        self._judged: set[str] = set()
        self.decisions: list[Decision] = []

    def clips(self, file: SpanFile, table: Table, words: LabelWords) -> Iterator[OwnClip]:
        """Yield the clips of a table, and note what is doubtful in it."""
        table = with_labels(table, file.reading.headings, words)
        wide = wide_columns(table, file.reading.headings)
        scales = [scale.name for scale in words.codebook.scales]
        read = [*OUR_COLUMNS, *scales, *wide]
        file.account.is_beside_model = any(is_of_a_model(row.cells.get("tier", "")) for row in table.rows)
        _refuse_unread_times(file, table, read)
        n_labelled = 0
        for own_clip in self._clips_of_rows(file, table, _rows(file, table, wide, words), words.codebook):
            if own_clip.clip.level or own_clip.clip.concepts:
                n_labelled += 1
            yield own_clip
        file.account.note(*table.notes, *_doubtful_rows(table), *hints(table, read, words))
        file.account.note(*_doubtful_annotators(table, words))
        if not n_labelled and not scales and file.account.kind != JUDGEMENTS:
            file.account.note(without_labels(table, read))

    def _clips_of_rows(
        self, file: SpanFile, table: Table, rows: Iterable[Row], codebook: Codebook
    ) -> Iterator[OwnClip]:
        """Yield the clips of a table's rows; what is wrong in them is refused behind the last."""
        account, problems = file.account, table.problems
        is_judged, has_ids = account.kind == JUDGEMENTS, "clip_id" in table.columns
        unique = Collected(problems, "clip_id" if has_ids else "")
        whole_films = _WholeFilms(problems)
        respelled: Counter[tuple[str, str]] = Counter()
        n_judged_again = 0
        for row in rows:
            account.seen += 1
            cells = _trimmed(row.cells)
            if is_judged:
                self.decisions.append((file.path, row.line, cells))
                if not cells.get("level"):
                    account.leave(f"line {row.line}", "without a level")
                    continue
            for scale in codebook.scales:
                problems.attempt(row.line, scale.name, scale.level_of, cells.get(scale.name, ""))
            completed = problems.attempt(row.line, "", self._completed, file, row.line, cells)
            if completed is None:
                continue
            clip = clip_of(completed, problems, codebook, spelled=True)
            if clip is None:
                continue
            respelled.update(_respelled_labels(completed, clip, codebook))
            if not has_ids:
                whole_films.add(clip, row.line)
            if not is_judged:
                unique.add(clip, row.line)
            elif clip.clip_id in self._judged:
                n_judged_again += 1
            else:
                self._judged.add(clip.clip_id)
            yield OwnClip(clip, f"line {row.line}", clip.clip_id if is_judged else "")
        account.note(_judged_again(n_judged_again), _read_as(respelled))

    def _completed(self, file: SpanFile, line: int, cells: Mapping[str, str]) -> Row:
        """Fill in the film, the video, the annotator and the id of a row that does not say them."""
        video, movie = cells.get("video", ""), cells.get("movie", "")
        if "video" in cells and not (video or movie or file.reading.movie):
            raise ManifestError("is empty", "video")
        if is_place(movie):
            place, movie = movie, film_named(movie)
            self._films.add_place(file, movie, place, "movie")
        if video:
            movie, name, video = self._of_video(file, movie, video)
        else:
            movie = movie or file.reading.movie
            name, video = self._unique_slug(movie), self._films.files.film_of(movie)
        if cells.get("start_s") and cells.get("end_s"):
            name = f"{name}-{cells['start_s']}-{cells['end_s']}"
        annotator = cells.get("annotator", "")
        if not annotator and (cells.get("level") or cells.get("concepts")):
            annotator = self._annotator
        completed = {
            **cells,
            "clip_id": cells.get("clip_id") or name,
            "movie": movie,
            "video": video,
            "annotator": annotator,
        }
        if file.account.kind == JUDGEMENTS:
            completed[SEEN_SCORE] = seen_of(completed[SEEN_SCORE])
            completed["clip_id"] = self._judgement_id(completed)
        return Row(line, completed)

    def _of_video(self, file: SpanFile, movie: str, written: str) -> tuple[str, str, str]:
        """Return the film, the name and the path of a video, as written in a table."""
        inside, path = self._films.files.video(file.path, written)
        if not movie:
            movie = file.reading.movie or composed(movie_of(inside))
            is_of_a_folder = file.reading.movie or len(inside.parts) > 1
            self._films.add_place(file, movie, movie if is_of_a_folder else written, "video")
        return movie, composed(name_of(inside)), path

    def _unique_slug(self, movie: str) -> str:
        """Write a film's name as a part of ids, so that no two films have the same."""
        name = slug(movie)
        while self._movie_of_slug.setdefault(name, composed(movie)) != composed(movie):
            name += "-2"
        return name

    def _judgement_id(self, cells: Mapping[str, str]) -> str:
        """Name a judgement; as an earlier one of its span by the same person, if there is one."""
        for name in ("annotator", *TIMES, SEEN_SCORE):
            if not cells[name]:
                raise ManifestError("is empty: a judgement is somebody's, of a span", name)
        # What was judged blindly stays, whatever was judged in sight of the score.
        key = tuple(cells[name] for name in ("movie", "annotator", *TIMES, SEEN_SCORE))
        if key not in self._judgement_ids:
            stem = f"{slug(cells['movie'])}-{slug(cells['annotator'])}"
            self._judgement_ids[key] = unique_id(stem, len(self._judgement_ids) + 1, self._ids)
        return self._judgement_ids[key]


class _WholeFilms:
    """The films of rows without times, each of which an annotator labels once."""

    def __init__(self, problems: Problems) -> None:
        self._problems = problems
        self._lines: dict[tuple[str, str], int] = {}

    def add(self, clip: Clip, line: int) -> None:
        """Add a row's clip; note a problem if its film is on an earlier line too."""
        if clip.start_s is not None:
            return
        first = self._lines.setdefault((clip.clip_id, clip.annotator), line)
        if first != line:
            self._problems.add(line, f"{clip.clip_id!r} is already on line {first}{_WHICH_TIMES}")


_WHICH_TIMES = (
    ": without times each row is of a whole film; if rows are of spans, say which columns their times are, "
    "as in --column start_s=HEADING --column end_s=HEADING"
)


def read_own_table(file: SpanFile) -> Table:
    """Read a table of ours, its columns by our names but for those of labels.

    Raises
    ------
    ManifestError
        It has no column of times where one is needed, or none that says which film a row is of.
    """
    headings = file.reading.headings
    is_judged = file.account.kind == JUDGEMENTS
    advice = "give what `obygaze film open` or `film next` wrote, filled in" if is_judged else ""
    if file.sheet is not None:
        records, delimiter = file.sheet, ""
    else:
        records, delimiter = split_records(file.path, file.text, ManifestError, headings.is_header)
    needed = (*TIMES, SEEN_SCORE) if is_judged else ()
    table = table_of(
        file.path,
        records,
        delimiter,
        needed,
        known=OUR_COLUMNS,
        advice=advice,
        is_header=headings.is_header,
    )
    table = renamed(table, headings)
    _refuse_absent(file, table)
    return table


def _refuse_absent(file: SpanFile, table: Table) -> None:
    """Refuse a table without what each row needs: times or labels of whole films, and a film."""
    found = ", ".join(name for name in table.columns if name)
    absent = [name for name in TIMES if name not in table.columns]
    has_labels = any(name in table.columns for name in LABEL_COLUMNS)
    is_said = file.reading.headings.are_in(table.columns)
    if len(absent) == 1 or (absent and not has_labels and not is_said):
        raise file.error(f"no column {', '.join(absent)}; found {found}")
    if not any(name in table.columns for name in FILM_COLUMNS) and not file.reading.movie:
        raise file.error(
            "no column video or movie says which film a span is of: add one, or give --column movie=HEADING, "
            f"or --movie; found {found}"
        )


def _refuse_unread_times(file: SpanFile, table: Table, read: Sequence[str]) -> None:
    """Refuse a table without columns of times, where others hold them: its rows are of no whole films."""
    if TIMES[0] in table.columns:
        return
    unread = [column for column in table.columns if column not in read]
    times = columns_of_times(table, unread)
    if times is not None:
        options = " ".join(option(name, column) for name, column in zip(TIMES, times, strict=True))
        raise file.error(f"no columns {' and '.join(TIMES)}, and others hold times: give {options}")
    n_rows = sum(not row.is_empty for row in table.rows)
    file.account.note(f"no columns of times: {counted(n_rows, 'row')} taken as whole films")


def _rows(file: SpanFile, table: Table, wide: Sequence[str], words: LabelWords) -> Iterator[Row]:
    """Yield the rows of a table, times as seconds; of a wide one, a row for each annotator."""
    has_times = TIMES[0] in table.columns
    rows = table.timed(rate=file.reading.rate) if has_times else table.checked()
    if not wide:
        for row in rows:
            yield row if has_times else row.as_written()
        return
    for row in rows:
        shared = {name: cell for name, cell in row.cells.items() if name not in wide}
        annotators = [name for name in wide if row.cells[name].strip()]
        for annotator in annotators:
            labels = _labels_in(table, row, annotator, words)
            if labels is not None:
                yield Row(row.line, {**shared, **labels, "annotator": annotator})
        if not annotators:
            yield Row(row.line, {**shared, "level": "", "concepts": "", "annotator": ""})


def _labels_in(table: Table, row: Row, column: str, words: LabelWords) -> dict[str, str] | None:
    """Read the labels in a column of an annotator's; None where they are none, which is noted."""
    cell = row.cells[column].strip()
    labels = words.labels_of(cell)
    if labels is not None:
        return {"level": labels.level, "concepts": ";".join(labels.concepts)}
    if is_unreadable(cell):
        table.problems.add(row.line, f"{cell!r} {CANNOT_BE_READ}", column)
    else:
        codebook = words.codebook
        hint = suggestion(cell, (*codebook.level_names, *codebook.concept_names))
        table.problems.add(
            row.line, f"unknown label {cell!r}{hint} in the codebook {codebook.name!r}", column
        )
    return None


def _trimmed(cells: Mapping[str, str]) -> dict[str, str]:
    """Write cells of our columns without blanks around them, and with accents in one form."""
    return {name: composed(cell.strip()) if name in OUR_COLUMNS else cell for name, cell in cells.items()}


# --- doubts
# ---------------------------------------------------------------------------
def _doubtful_rows(table: Table) -> Iterator[str]:
    """Say which rows lack what all others have: times, labels; and which may be sums below the table."""
    rows = [row for row in table.rows if not row.is_empty]
    if TIMES[0] in table.columns:
        untimed = [row for row in rows if not row.cells[TIMES[0]].strip()]
        if untimed:
            what = "all" if len(untimed) == len(rows) else counted(len(untimed), "row")
            yield f"{what} without times taken as whole films ({_places(untimed)})"
    if "level" in table.columns:
        unlabelled = [row for row in rows if not row.cells["level"].strip()]
        if 0 < 2 * len(unlabelled) < len(rows):
            what = counted(len(unlabelled), "row")
            yield f"{what} without a level, which the others have ({_places(unlabelled)})"
    footers = [row for row in rows[-LAST_ROWS:] if _is_footer(row)]
    if footers:
        yield f"{counted(len(footers), 'row')} like a sum or a footer read as clips ({_places(footers)})"


def _is_footer(row: Row) -> bool:
    """Return whether the first cell of a row that is not empty begins a sum."""
    first = next(plain(cell) for cell in row.cells.values() if cell.strip())
    return first.rstrip(" :.") in FOOTERS or first.startswith(("n =", "n="))


def _places(rows: Sequence[Row]) -> str:
    """Write where rows are, with the first cell of each that is not empty."""
    cells = [next((cell.strip() for cell in row.cells.values() if cell.strip()), "") for row in rows]
    return first_few([f"line {row.line}, {cell!r:.40}" for row, cell in zip(rows, cells, strict=True)], 3)


def _doubtful_annotators(table: Table, words: LabelWords) -> Iterator[str]:
    """Say where the names of annotators are words of the codebook."""
    if "annotator" not in table.columns:
        return
    content = content_of(cells_of(table, "annotator"), words)
    if content.n_cells and (content.are_levels or content.are_concepts):
        n = content.n_levels + content.n_concepts
        yield (
            f"column annotator holds labels ({n} of {content.n_cells} cells), taken as people: "
            f"{option('level', 'annotator')} if they are levels"
        )


def _respelled_labels(row: Row, clip: Clip, codebook: Codebook) -> list[tuple[str, str]]:
    """List the labels of a row that are spelled otherwise than the codebook names them."""
    labels = [(row.cells.get("level", ""), clip.level or "")]
    concepts = codebook.split_concepts(row.cells.get("concepts", ""))
    labels += [(text, codebook.concept_spelled(text)) for text in concepts]
    return [(text, name) for text, name in labels if text != name]


def _judged_again(n: int) -> str:
    return f"{counted(n, 'span was', 'spans were')} judged again: the last counts" if n else ""


def _read_as(respelled: Counter[tuple[str, str]]) -> str:
    """Say which labels were read under another name."""
    if not respelled:
        return ""
    read = [f"{text!r} as {name} ({counted(n, 'row')})" for (text, name), n in sorted(respelled.items())]
    return f"read {', '.join(read)}"
