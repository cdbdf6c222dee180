"""Find the column of a table that says which film, or which file, a row is of."""

import math
from collections.abc import Sequence
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
    """Finds the unread column that names the film of each row: by its files, heading, or repeated names.

    Its methods write what they find into the proposal (`UnreadColumns.proposal`).
    """

    def __init__(self, unread: UnreadColumns) -> None:
        """Keep what is known of the table's columns; see `UnreadColumns`."""
        self._unread = unread
        self._file = unread.file
        self._table = unread.table
        self._titles = unread.titles  # rows above the table, each as its cells
        self._cells = unread.cells  # column -> its cells that are neither empty nor errors
        self._proposal = unread.proposal

    def propose_films(self) -> None:
        """Propose the columns that name each row's video and film, else that all rows are of one film.

        Nothing is proposed if the video is known already, or if option --movie names the film.
        """
        has_movie_option = bool(self._file.reading.movie)
        if self._unread.has_column_for("video") or has_movie_option:
            return

        file_columns = [column for column in self._unread.remaining if are_files(self._cells[column])]
        if file_columns:
            self._propose_files(file_columns)
        if self._unread.has_column_for("movie"):
            return
        column_of_titles = self._unread.column_meant_as(
            "movie", lambda column: column not in file_columns and self._can_be_films(column)
        )
        if not file_columns:
            self._propose_films_without_files(column_of_titles)
        elif column_of_titles:
            # The table can be read without titles, as the files say the films.
            self._unread.propose("movie", [column_of_titles])

    def _propose_films_without_files(self, column_of_titles: str) -> None:
        """Propose how rows that name no video file are given their films.

        By the column of titles; else by that of sections or sheets; else by the first column, if it has
        names; else by ids of files; else all rows are taken to be of one film. Rows need a film, so that the
        import is refused until the person accepts the proposal (`needed`).

        `column_of_titles` is the column whose heading means films; "" if there is none.
        """
        column_of_films = column_of_titles or self._column_of_sections() or self._first_column_of_names()
        if column_of_films:
            self._unread.propose("movie", [column_of_films], needed=f"films ({column_of_films!r})")
            return
        column_of_ids = self._column_of_ids_of_files()
        if column_of_ids:
            self._unread.propose("video", [column_of_ids], needed=f"files ({column_of_ids!r})")
        else:
            self._propose_one_film()

    def _propose_files(self, columns: Sequence[str]) -> None:
        """Propose one of the columns that name video files: the one that is headed so, else the first.

        If nothing else names the films, the import is refused until the person accepts it (`needed`);
        otherwise it is only mentioned.
        """
        column = self._unread.column_meant_as("video", columns.__contains__) or columns[0]
        if self._unread.has_column_for("movie"):
            self._unread.propose("video", [column])
            self._proposal.mention(f"files ({column!r})", [column])
        else:
            self._unread.propose("video", [column], needed=f"files ({column!r})")

    def _propose_one_film(self) -> None:
        """Propose that all rows are of one film, named by a row of titles, else by the table's file.

        Rows need a film. So the import is refused, and its message proposes an option --movie that the person
        can type. A file's name need not be the film's: then the message asks the person to check it.
        """
        film_in_titles = value_in_titles(self._titles, "movie")
        if film_in_titles:
            self._proposal.movie = film_in_titles
        else:
            self._proposal.movie = self._file.path.stem
            self._proposal.ask("--movie is proposed by the file's name: give the film's")
        self._proposal.require("rows of one film (no column video or movie says which)")

    def _column_of_sections(self) -> str:
        """Return the unread column that names the table's sections, else sheets; "" if there is none."""
        for name in (SECTION, SHEET):
            if name in self._unread.remaining:
                return name
        return ""

    def _column_of_ids_of_files(self) -> str:
        """Return the column of ids, which name video files if the table has no times; "" if there is none."""
        if self._unread.has_column_for(START):
            return ""
        return self._unread.column_meant_as("clip_id", self._can_be_ids)

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

        Its cells must look like names, and its heading must have no known meaning: people who give the films
        no heading write them first.
        """
        column = self._table.columns[0]
        is_unread = column in self._unread.remaining
        if not is_unread or meanings_of_heading(column) or self._is_of_tiers(column):
            return ""
        return column if self._can_be_repeated_names(column) else ""

    def _is_of_tiers(self, column: str) -> bool:
        """Return whether a column names the tier of each row: by its heading, or by cells such as `level`."""
        is_headed_as_tiers = bare_heading(column) in HEADINGS_OF_TIERS
        return is_headed_as_tiers or not columns_meant(self._cells[column]).isdisjoint(LABEL_COLUMNS)

    def _can_be_repeated_names(self, column: str) -> bool:
        """Return whether a column has a text in each row, and the same in several, like names of films."""
        cells = self._cells[column]
        is_filled = len(cells) == len(self._table.rows)
        are_texts = all(math.isnan(number_of(cell)) for cell in cells)
        has_one_row = len(cells) == 1  # then nothing can be repeated
        are_repeated = has_one_row or len(set(cells)) < len(cells)
        return is_filled and are_texts and are_repeated and not are_marks(cells)
