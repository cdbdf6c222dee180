"""Find the column of a table that says which film, or which file, a row is of."""

import math
from typing import Final

from obygaze_features.manifest.importers.column_contents import are_clocks, are_files, are_marks
from obygaze_features.manifest.importers.proposal import START
from obygaze_features.manifest.importers.table_layout import SECTION
from obygaze_features.manifest.importers.unread_columns import UnreadColumns, value_in_titles
from obygaze_features.manifest.spans.headings import (
    LABEL_COLUMNS,
    bare_heading,
    columns_meant,
    meanings_of_heading,
)
from obygaze_features.text import number_of
from obygaze_features.workbook import SHEET

HEADINGS_OF_TIERS: Final = frozenset(
    {"tier", "tiers", "tier name", "track", "layer", "ebene", "spur", "zeile", "piste", "pista", "capa"}
)
"""Headings of columns that say on which tier of a tool a row stands: its films are elsewhere."""


class FilmColumns:
    """Finds the unread column that names the film of each row: by its files, heading, or repeated names."""

    def __init__(self, unread: UnreadColumns) -> None:
        """Keep what is known of the table's columns; see `UnreadColumns`."""
        self._unread = unread
        self._file = unread.file
        self._table = unread.table
        self._titles = unread.titles
        self._cells = unread.cells
        self._proposal = unread.proposal

    def propose_films(self) -> None:
        """Propose the columns that name each row's video and film, else that all rows are of one film.

        Nothing is proposed if the video is known already, or if option --movie names the film.
        """
        has_movie_option = bool(self._file.reading.movie)
        if self._unread.has_column_for("video") or has_movie_option:
            return

        file_columns = [column for column in self._unread.remaining if are_files(self._cells[column])]
        column_of_titles = self._unread.column_meant_as(
            "movie", lambda column: column not in file_columns and self._can_be_films(column)
        )
        are_titles_read = self._unread.has_column_for("movie")
        if not file_columns:
            if not are_titles_read:
                self._propose_films_without_files(column_of_titles)
            return

        column = self._unread.column_meant_as("video", file_columns.__contains__) or file_columns[0]
        if are_titles_read:
            self._unread.propose("video", [column])
            self._proposal.mention(f"files ({column!r})", [column])
            return
        self._unread.propose("video", [column], needed=f"files ({column!r})")
        if column_of_titles:
            # Titles are proposed too, but the table can be read without them.
            self._unread.propose("movie", [column_of_titles])

    def _propose_films_without_files(self, column_of_titles: str) -> None:
        """Propose the column of titles, sections, names or ids, else that all rows are of one film.

        Rows need a film, so that the import is refused until the person accepts the proposal
        (`Proposal.needed_unread`). Ids are taken as names of video files if the table has no times. One film
        is named by a row of titles, else by the table's file, whose name need not be the film's: then the
        person is asked to check it.

        `column_of_titles` is the column whose heading means films; "" if there is none.
        """
        column = column_of_titles or self._column_of_sections() or self._first_column_of_names()
        if column:
            self._unread.propose("movie", [column], needed=f"films ({column!r})")
            return
        if not self._unread.has_column_for(START):
            column_of_ids = self._unread.column_meant_as("clip_id", self._can_be_ids)
            if column_of_ids:
                self._unread.propose("video", [column_of_ids], needed=f"files ({column_of_ids!r})")
                return

        self._proposal.movie = value_in_titles(self._titles, "movie")
        if not self._proposal.movie:
            self._proposal.movie = self._file.path.stem
            self._proposal.doubts.append("--movie is proposed by the file's name: give the film's")
        self._proposal.needed_unread.append("rows of one film (no column video or movie says which)")

    def _column_of_sections(self) -> str:
        """Return the unread column that names the table's sections, else sheets; "" if there is none."""
        for name in (SECTION, SHEET):
            if name in self._unread.remaining:
                return name
        return ""

    def _can_be_ids(self, column: str) -> bool:
        """Return whether a column can hold ids of files: its cells are all different and are not labels."""
        cells = self._cells[column]
        are_different = len(set(cells)) == len(cells)
        return bool(cells) and are_different and not self._unread.label_counts(column).are_labels

    def _can_be_films(self, column: str) -> bool:
        """Return whether a column can hold titles of films: its cells are neither labels nor clocks."""
        cells = self._cells[column]
        are_labels = self._unread.label_counts(column).are_labels
        return bool(cells) and not are_labels and not are_clocks(cells)

    def _first_column_of_names(self) -> str:
        """Return the table's first column if it may hold names of films; else "".

        It must have a text in each row, and the same in several, and its heading must have no known meaning:
        people who give the films no heading write them first. Nor may it name the tier of each row.
        """
        column = self._table.columns[0]
        cells = self._cells[column]
        if column not in self._unread.remaining or meanings_of_heading(column):
            return ""
        is_headed_as_tiers = bare_heading(column) in HEADINGS_OF_TIERS
        if is_headed_as_tiers or not columns_meant(cells).isdisjoint(LABEL_COLUMNS):
            return ""
        is_filled = len(cells) == len(self._table.rows)
        are_texts = all(math.isnan(number_of(cell)) for cell in cells)
        has_one_row = len(cells) == 1  # then nothing can be repeated
        are_repeated = has_one_row or len(set(cells)) < len(cells)
        return column if is_filled and are_texts and are_repeated and not are_marks(cells) else ""
