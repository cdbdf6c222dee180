"""Find the column of a table that says who annotated."""

from collections.abc import Sequence

from obygaze_features.manifest.importers.proposal import END, START
from obygaze_features.manifest.importers.unread_columns import UnreadColumns, said_above
from obygaze_features.manifest.spans.headings import DURATION
from obygaze_features.manifest.spans.names import plain


class AnnotatorColumns:
    """Finds the unread column that says who annotated each row."""

    def __init__(self, unread: UnreadColumns) -> None:
        self._unread = unread
        self._table = unread.table
        self._titles = unread.titles
        self._given = unread.given
        self._annotator = unread.annotator
        self._cells = unread.cells
        self._proposal = unread.proposal

    def annotators(self) -> None:
        """Propose the column that is headed as annotators, or whose names tell rows of one span apart.

        Where there is no such column, a row of titles may say who annotated all rows.
        """
        if self._unread.has("annotator") or self._annotator or self._proposal.wide or self._given.wide:
            return
        column = self._unread.meant("annotator", self._unread.can_be_people)
        if not column and self._spans_repeat(()) and not self._has_one_label_a_row():
            column = self._column_that_tells_apart()
        if not column:
            self._proposal.annotator = said_above(self._titles, "annotator")
            return
        is_needed = self._spans_repeat(())
        self._unread.take("annotator", [column])
        if is_needed:
            self._proposal.held.append(f"annotators ({column!r})")
        else:
            self._proposal.also.append(f"annotators ({column!r})")

    def _column_that_tells_apart(self) -> str:
        """Return the column of fewest names that differ between all rows of one span; "" if there is none."""
        people = [column for column in self._unread.rest if self._unread.can_be_people(column)]
        repeated = [column for column in people if self._n_different(column) < len(self._cells[column])]
        telling = [column for column in repeated if not self._spans_repeat((column,))]
        return min(telling, key=self._n_different, default="")

    def _n_different(self, column: str) -> int:
        """Count the different names in a column."""
        return len(set(map(plain, self._cells[column])))

    def _has_one_label_a_row(self) -> bool:
        """Return whether a column has levels in some rows and concepts in others.

        Then several rows of one span say its labels one by one, and need not be of several annotators.
        """
        columns = [*self._proposal.columns.get("level", ()), *self._unread.read_levels()]
        return any(self._unread.content(column).are_both for column in columns)

    def _spans_repeat(self, more: Sequence[str]) -> bool:
        """Return whether two rows are of the same span, or whole film, and are equal in some more columns.

        Parameters
        ----------
        more
            Columns that two such rows have in common besides their span; empty for the span alone.
        """
        columns: list[str] = []
        for name in ("clip_id", "movie", "video", START, END, DURATION):
            columns += self._unread.column_of(name)
        # Rows with an empty cell here say no span, such as remarks, and are not compared.
        needed = (
            self._unread.column_of(START)
            or self._unread.column_of("video")
            or self._unread.column_of("movie")
        )
        keys = []
        for row in self._table.rows:
            if any(row.cells[column].strip() for column in needed):
                key = tuple(row.cells[column].strip() for column in (*columns, *more))
                keys.append(key)
        return len(set(keys)) < len(keys)
