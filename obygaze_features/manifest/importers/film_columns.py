"""Find the column of a table that says which film, or which file, a row is of."""

from obygaze_features.manifest.importers.column_contents import are_clocks, are_files, are_marks
from obygaze_features.manifest.importers.proposal import START
from obygaze_features.manifest.importers.table_layout import SECTION
from obygaze_features.manifest.importers.unread_columns import UnreadColumns, said_above
from obygaze_features.manifest.spans.headings import names_of_heading
from obygaze_features.text import number_of
from obygaze_features.workbook import SHEET


class FilmColumns:
    """Finds films: files, a column that is headed so, sheets, or names that repeat."""

    def __init__(self, unread: UnreadColumns) -> None:
        self._unread = unread
        self._file = unread.file
        self._table = unread.table
        self._titles = unread.titles
        self._cells = unread.cells
        self._proposal = unread.proposal

    def films(self) -> None:
        """Find the column that says which film, or which file, a row is of."""
        reading = self._file.reading
        if self._unread.has("video") or reading.movie:
            return
        files = [column for column in self._unread.rest if are_files(self._cells[column])]
        headed = self._unread.meant(
            "movie", lambda column: column not in files and self._can_be_films(column)
        )
        if files:
            best = self._unread.meant("video", files.__contains__) or files[0]
            self._unread.take("video", [best])
            where = self._proposal.also if self._unread.has("movie") else self._proposal.held
            where.append(f"files ({best!r})")
        if self._unread.has("movie"):
            return
        if not files:
            headed = headed or self._sheet() or self._only_names()
        if headed:
            self._unread.take("movie", [headed])
            if not files:
                self._proposal.held.append(f"films ({headed!r})")
        elif not files and not self._take_ids():
            self._proposal.movie = self._film_by_title() or self._file.path.stem
            self._proposal.held.append("rows of one film (no column video or movie says which)")
            if not self._film_by_title():
                self._proposal.doubts.append("--movie is proposed by the file's name: give the film's")

    def _sheet(self) -> str:
        """Return the column of the names of sheets, or of sections, where a table has several."""
        return next((name for name in (SECTION, SHEET) if name in self._unread.rest), "")

    def _take_ids(self) -> bool:
        """Read a column of ids as the files of a table without times; return whether there is one."""
        column = "" if self._unread.has(START) else self._unread.meant("clip_id", self._are_different)
        if column:
            self._unread.take("video", [column])
            self._proposal.held.append(f"files ({column!r})")
        return bool(column)

    def _are_different(self, column: str) -> bool:
        cells = self._cells[column]
        return bool(cells) and len(set(cells)) == len(cells) and not self._unread.content(column).are_labels

    def _can_be_films(self, column: str) -> bool:
        cells = self._cells[column]
        is_of_labels = self._unread.content(column).are_labels
        return bool(cells) and not is_of_labels and not are_clocks(cells)

    def _only_names(self) -> str:
        """Return the first column, where it is of names that repeat and no other meaning fits; else ""."""
        columns = [column for column in self._unread.rest if self._has_names(column)]
        headed = [column for column in columns if not names_of_heading(column)]
        return headed[0] if headed and headed[0] == self._table.columns[0] else ""

    def _has_names(self, column: str) -> bool:
        """Return whether a column has names: texts in every row, fewer of them than rows."""
        cells = self._cells[column]
        are_texts = all(number_of(cell) != number_of(cell) for cell in cells)
        repeats = len(set(cells)) < len(cells) or len(cells) == 1
        return are_texts and repeats and len(cells) == len(self._table.rows) and not are_marks(cells)

    def _film_by_title(self) -> str:
        return said_above(self._titles, "movie")
