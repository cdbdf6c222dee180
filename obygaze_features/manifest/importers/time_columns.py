"""Find the columns of a table that hold times, and the rate of times in frames."""

import math
import re
from collections.abc import Sequence
from itertools import combinations
from statistics import median
from typing import Final

from obygaze_features.manifest.importers.column_contents import (
    MOST_SHARE,
    are_clocks,
    are_ranges,
    seconds_in,
    whole_numbers,
)
from obygaze_features.manifest.importers.proposal import END, START, UNKNOWN_HEADING
from obygaze_features.manifest.importers.unread_columns import UnreadColumns
from obygaze_features.manifest.spans.headings import DURATION, meanings_of_heading, seconds_of_unit
from obygaze_features.manifest.spans.instant import FRAME_CODE

_RATE = re.compile(
    r"(\d{2,3}(?:[.,]\d+)?)\s*(?:fps|f/s|b/s|i/s|im/s|img/s|bilder|images|fotogr|hz)", re.IGNORECASE
)
"""A rate of frames in a heading or a title, such as `25 fps`."""

MOST_PAIRED: Final = 20
"""Of columns of times without known headings each two of the first so many are tried as starts and ends."""

MOST_RATINGS: Final = 10
"""A column of more different whole numbers holds no ratings."""

COMMON_RATES: Final = (25, 30, 50, 60)
"""Frames per second, of which the lowest is proposed that has the highest frame number of a table."""


class TimeColumns:
    """Finds the unread columns that hold times, and proposes to read them as starts, ends or durations."""

    def __init__(self, unread: UnreadColumns) -> None:
        """Keep what is known of the table's columns; see `UnreadColumns`."""
        self._unread = unread
        self._file = unread.file
        self._table = unread.table
        self._titles = unread.titles
        self._cells = unread.cells
        self._proposal = unread.proposal

    def propose_times(self) -> None:
        """Propose columns of starts and ends, or of starts and durations, or one column of both times."""
        if self._unread.has_column_for(START) and self._unread.has_column_for(END, DURATION):
            return
        columns = self._columns_of_times()
        if not columns:
            self._propose_single_time_column()
            return
        for name, column in columns.items():
            if not self._unread.has_column_for(name):
                self._unread.propose(name, [column])
        shown = ", ".join(map(repr, dict.fromkeys(columns.values())))
        self._proposal.must_be_read.append(f"times ({shown})")
        self._propose_rate(list(columns.values()))

    def _propose_rate(self, columns: Sequence[str]) -> None:
        """Propose a frame rate for times in frames, if the person gives none.

        It is the rate that a heading or title states, else the lowest common rate at which the highest frame
        number in the time codes exists: a frame 27 needs 30 frames per second.
        """
        if self._file.reading.rate is not None:
            return
        frames = self._frame_numbers(columns)
        has_frames_as_unit = any(seconds_of_unit(column) == 0 for column in columns)
        if not frames and not has_frames_as_unit:
            return
        written_rate = self._written_rate()
        if written_rate:
            self._proposal.rate = written_rate
            return
        highest_frame = max(frames, default=0)
        possible_rates = [rate for rate in COMMON_RATES if highest_frame < rate]
        self._proposal.rate = str(min(possible_rates, default=max(COMMON_RATES)))
        self._proposal.doubts.append("its times have frames: give the film's rate by --rate")

    def _frame_numbers(self, columns: Sequence[str]) -> list[int]:
        """Return the frame number of each time code in some columns: 12 for `00:01:05:12`."""
        frame_numbers = []
        for column in columns:
            for cell in self._cells[column]:
                code = FRAME_CODE.fullmatch(cell)
                if code is not None:
                    frame_numbers.append(int(code["frames"]))
        return frame_numbers

    def _written_rate(self) -> str:
        """Return the first frame rate that a heading or a title states, such as "25"; "" if none does."""
        texts = list(self._table.columns)
        for cells in self._titles:
            texts += cells
        for text in texts:
            match = _RATE.search(text)
            if match is not None:
                return match[1].replace(",", ".")
        return ""

    def _columns_of_times(self) -> dict[str, str]:
        """Find the columns of times, by their headings and by the times themselves.

        They are, in this order: a pair of headings of starts and ends; a column of ranges; without a heading
        of starts, two columns in which the cells of one come before those of the other; else the column of
        starts with the first column that can hold its ends.

        Returns
        -------
        dict
            `start_s` -> its column, and `end_s` or `duration_s` -> its column. Both have the same column if
            its cells hold two times. Empty if no such columns are found.
        """
        timed = [column for column in self._unread.remaining if self._can_be_times(column)]
        timed += [column for column in self._headed_times() if column not in timed]
        start = self._column_of_starts(timed)
        by_headings = self._pair_by_headings(start, timed)
        if by_headings:
            return by_headings
        has_start_or_end = self._unread.has_column_for(START, END)
        ranges = [column for column in self._unread.remaining if are_ranges(self._cells[column])]
        if ranges and not has_start_or_end:
            return {START: ranges[0], END: ranges[0]}
        if not start:
            return self._pair_by_cells(timed)
        end = self._first_possible_end(start, [column for column in timed if column != start])
        return {START: start, END: end} if end else {}

    def _column_of_starts(self, timed: Sequence[str]) -> str:
        """Return the column of starts: one that is read, else one of `timed` headed so; "" for none."""
        if self._unread.has_column_for(START):
            return START  # the table names it so, as a column that is read gets its manifest's name
        return self._unread.column_meant_as(START, lambda column: column in timed)

    def _pair_by_headings(self, start: str, timed: Sequence[str]) -> dict[str, str]:
        """Return the columns of starts and of ends or durations, told by their headings; empty if none is.

        Parameters
        ----------
        start
            The column that is headed as starts; "" if none is.
        timed
            The columns of times.
        """
        others = [column for column in timed if column != start]
        end = self._unread.column_meant_as(END, others.__contains__)
        duration = self._unread.column_meant_as(DURATION, others.__contains__)
        if start and end and self._first_possible_end(start, [end]):
            return {START: start, END: end}
        is_duration_headed_alone = bool(duration) and not start and not end
        if is_duration_headed_alone and len(timed) == 2:
            # The other one of the two columns of times has the starts.
            start = timed[0] if timed[0] != duration else timed[1]
        if start and duration:
            return {START: start, DURATION: duration}
        return {}

    def _headed_times(self) -> list[str]:
        """Return the columns headed as starts and those headed as ends or durations, if there are both.

        Most of their cells may be empty, as rows may lack their times. A single column with few times does
        not count, as it more likely has another meaning.
        """
        starts = self._headed_times_of(START)
        ends = [*self._headed_times_of(END), *self._headed_times_of(DURATION)]
        if not starts or not ends:
            return []
        return [*starts, *ends]

    def _headed_times_of(self, name: str) -> list[str]:
        """Return the unread columns of times whose heading most likely means the manifest's column `name`."""
        headed = [column for column in self._unread.remaining if name in meanings_of_heading(column)[:1]]
        return [column for column in headed if self._unread.is_of_times(column)]

    def _can_be_times(self, column: str) -> bool:
        """Return whether a column can be of times: most cells are times, and at most half are empty."""
        cells = self._cells[column]
        is_filled = 2 * len(cells) >= len(self._table.rows)
        return is_filled and column not in self._unread.mark_columns and self._unread.is_of_times(column)

    def _first_possible_end(self, start: str, columns: Sequence[str]) -> str:
        """Return the first column whose times are, in most rows, not before the start; "" if there is none.

        Parameters
        ----------
        start
            The column of starts.
        columns
            Columns of times, in the order in which they are tried.
        """
        for column in columns:
            lengths = self._span_lengths(start, column)
            not_negative = [length for length in lengths if length >= 0]
            if lengths and len(not_negative) >= MOST_SHARE * len(lengths):
                return column
        return ""

    def _pair_by_cells(self, columns: Sequence[str]) -> dict[str, str]:
        """Return the columns of starts and ends, told by their cells alone; empty if no two columns can be.

        Every end must be later than its start. If there are two columns of clocks, columns of numbers are not
        considered. Of several pairs the one with the shortest spans is taken, as other pairs of times, such
        as a time in the film and a time of day, are further apart.
        """
        clocks = [column for column in columns if are_clocks(self._cells[column])]
        pairs = []
        timed = clocks if len(clocks) > 1 else columns
        for start, end in combinations(timed[:MOST_PAIRED], 2):
            lengths = self._span_lengths(start, end)
            if lengths and min(lengths) > 0 and not self._are_ratings(end):
                pairs.append((median(lengths), start, end))
        if not pairs:
            return {}
        _, start, end = min(pairs)
        return {START: start, END: end}

    def _are_ratings(self, column: str) -> bool:
        """Return whether a column seems to hold ratings: a few different integers that are repeated."""
        cells = self._cells[column]
        numbers = whole_numbers(cells)
        if numbers is None:
            return False
        are_repeated = 2 * len(numbers) <= len(cells)
        return are_repeated and len(numbers) <= MOST_RATINGS

    def _span_lengths(self, start: str, end: str) -> list[float]:
        """Return the seconds from start to end of each row in which both columns hold times."""
        starts = seconds_in([row.cells[start].strip() for row in self._table.rows])
        ends = seconds_in([row.cells[end].strip() for row in self._table.rows])
        lengths = [end_s - start_s for start_s, end_s in zip(starts, ends, strict=True)]
        return [length for length in lengths if not math.isnan(length)]

    def _propose_single_time_column(self) -> None:
        """Propose the only column of times as starts or as ends, and ask the person for the other one."""
        for name, missing in ((START, END), (END, START)):
            if self._unread.has_column_for(missing):
                continue
            is_read = self._unread.has_column_for(name)
            column = name if is_read else self._unread.column_meant_as(name, self._can_be_times)
            if not column:
                continue
            if not is_read:
                self._unread.propose(name, [column])
            self._proposal.columns[missing] = [UNKNOWN_HEADING]  # a placeholder that the person replaces
            self._proposal.must_be_read.append(f"times ({column!r}), and no column {missing}")
            self._proposal.doubts.append(
                f"--column {missing}=HEADING, or --column {DURATION}=HEADING, says where spans end"
            )
            return
