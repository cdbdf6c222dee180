"""Find the column of a table that says who annotated."""

from collections.abc import Sequence

from obygaze_features.identity import plain
from obygaze_features.manifest.importers.proposal import END, START
from obygaze_features.manifest.importers.unread_columns import UnreadColumns, value_in_titles
from obygaze_features.manifest.spans.headings import DURATION


class AnnotatorColumns:
    """Finds the unread column that says who annotated each row."""

    def __init__(self, unread: UnreadColumns) -> None:
        """Keep what is known of the table's columns; see `UnreadColumns`."""
        self._unread = unread
        self._table = unread.table
        self._titles = unread.titles  # rows above the table
        self._headings = unread.headings  # that the person's options name
        self._annotator = unread.annotator  # whom the person's option names; "" if it is not given
        self._cells = unread.cells  # column -> its cells that are neither empty nor errors
        self._proposal = unread.proposal

    def propose_annotators(self) -> None:
        """Propose the column of annotators, or one annotator for all rows, if nothing says who annotated.

        The first of these that is found is proposed:

        1. the column whose heading means annotators;
        2. if several rows are about one span: a column with different names in the rows of each span, unless
           these rows may be of one annotator (`_may_have_one_label_a_row`);
        3. the annotator whom a row above the table names, for all rows.
        """
        if self._are_annotators_known():
            return
        have_spans_several_rows = self._has_equal_rows_in(self._span_columns())
        column = self._unread.column_meant_as("annotator", self._unread.can_be_people)
        if not column and have_spans_several_rows and not self._may_have_one_label_a_row():
            column = self._column_of_different_names()
        if not column:
            self._proposal.annotator = value_in_titles(self._titles, "annotator")
            return
        self._unread.propose("annotator", [column])
        message = f"annotators ({column!r})"
        if have_spans_several_rows:
            # Without their annotators these rows would repeat the label of one span, which is refused: so
            # the import needs the column.
            self._proposal.require(message)
        else:
            self._proposal.mention(message, [column])

    def _are_annotators_known(self) -> bool:
        """Return whether a column or an option says who annotated, or annotators have their own columns."""
        are_named = self._unread.has_column_for("annotator") or bool(self._annotator)
        is_one_proposed = bool(self._proposal.annotator)  # as each annotator has times of their own
        have_own_columns = bool(self._proposal.annotators_with_columns or self._headings.wide)
        return are_named or is_one_proposed or have_own_columns

    def _column_of_different_names(self) -> str:
        """Return the column that names a different person in each row of a span; "" if there is none.

        In different spans the same people come again, so that its names repeat; ids or remarks do not. Of
        several such columns, it is the one with the fewest names.
        """
        span_columns = self._span_columns()
        candidates = []
        for column in self._unread.remaining:
            do_names_repeat = self._n_names(column) < len(self._cells[column])
            if not do_names_repeat or not self._unread.can_be_people(column):
                continue
            # If no two rows are equal in their span and this column, it differs between the rows of a span.
            differs_within_spans = not self._has_equal_rows_in([*span_columns, column])
            if differs_within_spans:
                candidates.append(column)
        return min(candidates, key=self._n_names, default="")

    def _n_names(self, column: str) -> int:
        """Count the different names in a column."""
        return len(set(map(plain, self._cells[column])))

    def _may_have_one_label_a_row(self) -> bool:
        """Return whether a column of labels has levels in some rows and concepts in others.

        Then several rows of a span need not be of several annotators: one annotator may give the level of the
        span in one row, and its concepts in others.
        """
        columns = [*self._proposal.columns.get("level", ()), *self._unread.read_levels()]
        return any(self._unread.label_counts(column).are_levels_and_concepts for column in columns)

    def _span_columns(self) -> list[str]:
        """Return the columns that say which span a row is about: its film and its times."""
        columns: list[str] = []
        for name in ("clip_id", "movie", "video", START, END, DURATION):
            columns += self._unread.columns_for(name)
        return columns

    def _has_equal_rows_in(self, columns: Sequence[str]) -> bool:
        """Return whether two rows that name a span have the same cells in all of some columns.

        A row names a span if it has a start; in a table without starts, if it names a video or a movie, whose
        span is the whole film.
        """
        naming_columns = (
            self._unread.columns_for(START)
            or self._unread.columns_for("video")
            or self._unread.columns_for("movie")
        )
        cells_of_rows = []
        for row in self._table.rows:
            names_span = any(row.cells[name].strip() for name in naming_columns)
            if names_span:
                cells_of_rows.append(tuple(row.cells[column].strip() for column in columns))
        return len(set(cells_of_rows)) < len(cells_of_rows)
