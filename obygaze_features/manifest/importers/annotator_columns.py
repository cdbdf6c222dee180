"""Find the column of a table that says who annotated."""

from collections.abc import Sequence

from obygaze_features.manifest.importers.proposal import END, START
from obygaze_features.manifest.importers.unread_columns import UnreadColumns, said_above
from obygaze_features.manifest.spans.headings import DURATION
from obygaze_features.manifest.spans.names import plain


class AnnotatorColumns:
    """Finds annotators: headed so, or what tells repeated spans apart."""

    def __init__(self, unread: UnreadColumns) -> None:
        self._unread = unread
        self._table = unread.table
        self._titles = unread.titles
        self._given = unread.given
        self._annotator = unread.annotator
        self._cells = unread.cells
        self._proposal = unread.proposal

    def annotators(self) -> None:
        """Find who annotated: the column that is headed so, or the one that tells repeated spans apart."""
        if self._unread.has("annotator") or self._annotator or self._proposal.wide or self._given.wide:
            return
        column = self._unread.meant("annotator", self._unread.can_be_people)
        if not column and self._spans_repeat(()) and not self._has_one_label_a_row():
            people = [name for name in self._unread.rest if self._unread.can_be_people(name)]
            several = [name for name in people if self._n_different(name) < len(self._cells[name])]
            apart = [name for name in several if not self._spans_repeat((name,))]
            column = min(apart, key=self._n_different, default="")
        if column:
            is_needed = self._spans_repeat(())
            self._unread.take("annotator", [column])
            where = self._proposal.held if is_needed else self._proposal.also
            where.append(f"annotators ({column!r})")
        else:
            self._proposal.annotator = said_above(self._titles, "annotator")

    def _n_different(self, column: str) -> int:
        return len(set(map(plain, self._cells[column])))

    def _has_one_label_a_row(self) -> bool:
        """Return whether rows of one span differ in the label that they say, not in who says it."""
        columns = [*self._proposal.columns.get("level", ()), *self._unread.read_levels()]
        return any(self._unread.content(column).are_both for column in columns)

    def _spans_repeat(self, more: Sequence[str]) -> bool:
        """Return whether two rows are of one span, or of one whole film, and equal in some more columns."""
        names = ("clip_id", "movie", "video", START, END, DURATION)
        columns = [column for name in names for column in self._unread.column_of(name)]
        of_what = (
            self._unread.column_of(START)
            or self._unread.column_of("video")
            or self._unread.column_of("movie")
        )
        keys = []
        for row in self._table.rows:
            key = tuple(row.cells[column].strip() for column in (*columns, *more))
            if any(row.cells[column].strip() for column in of_what):
                keys.append(key)
        return len(set(keys)) < len(keys)
