"""Find the columns of a table that hold times, and the rate of times in frames."""

import re
from collections.abc import Sequence
from itertools import combinations
from statistics import median
from typing import Final

from obygaze_features.manifest.importers.column_contents import (
    MOST,
    are_clocks,
    are_ranges,
    are_times,
    seconds_in,
    whole_numbers,
)
from obygaze_features.manifest.importers.proposal import END, START, UNKNOWN_HEADING
from obygaze_features.manifest.importers.unread_columns import UnreadColumns
from obygaze_features.manifest.spans.headings import DURATION, names_of_heading, seconds_of_unit
from obygaze_features.manifest.spans.instant import FRAME_CODE

_RATE = re.compile(
    r"(\d{2,3}(?:[.,]\d+)?)\s*(?:fps|f/s|b/s|i/s|im/s|img/s|bilder|images|fotogr|hz)", re.IGNORECASE
)
"""A rate of frames that a heading or a title says."""

MOST_PAIRED: Final = 20
"""Columns of times without known headings of which each two are tried as starts and ends."""

COMMON_RATES: Final = (25, 30, 50, 60)


class TimeColumns:
    """Finds times: starts and ends, starts and durations, or both in one."""

    def __init__(self, unread: UnreadColumns) -> None:
        self._unread = unread
        self._file = unread.file
        self._table = unread.table
        self._titles = unread.titles
        self._cells = unread.cells
        self._proposal = unread.proposal

    def times(self) -> None:
        """Find the columns of starts and ends, of starts and durations, or of both in one."""
        if self._unread.has(START) and self._unread.has(END, DURATION):
            return
        columns = self._columns_of_times()
        if not columns:
            self._say_untimed()
            return
        for name, column in columns.items():
            if not self._unread.has(name):
                self._unread.take(name, [column])
        shown = ", ".join(map(repr, dict.fromkeys(columns.values())))
        self._proposal.held.append(f"times ({shown})")
        self._propose_rate(list(columns.values()))

    def _propose_rate(self, columns: Sequence[str]) -> None:
        """Propose a rate for times that end in frames: of a heading or title, or by the highest frame."""
        cells = [cell for column in columns for cell in self._cells[column]]
        codes = [code for cell in cells if (code := FRAME_CODE.fullmatch(cell))]
        are_frames = any(seconds_of_unit(column) == 0 for column in columns)
        if self._file.reading.rate is not None or not (codes or are_frames):
            return
        texts = [*self._table.columns, *(cell for cells in self._titles for cell in cells)]
        rates = [match[1] for text in texts if (match := _RATE.search(text))]
        if rates:
            self._proposal.rate = rates[0].replace(",", ".")
            return
        last = max([int(code[6]) for code in codes], default=0)
        self._proposal.rate = next((str(rate) for rate in COMMON_RATES if last < rate), "60")
        self._proposal.doubts.append("its times have frames: give the film's rate by --rate")

    def _columns_of_times(self) -> dict[str, str]:
        """Return the columns that hold times, by what they are; none where they cannot be told."""
        timed = [column for column in self._unread.rest if self._is_timed(column)]
        timed += [column for column in self._headed_times() if column not in timed]
        start = START if self._unread.has(START) else self._unread.meant(START, timed.__contains__)
        others = [column for column in timed if column != start]
        end = self._unread.meant(END, others.__contains__)
        duration = self._unread.meant(DURATION, others.__contains__)
        if start and end and self._end_behind(start, [end]):
            return {START: start, END: end}
        if not start and duration and not end and len(timed) == 2:
            start = next(column for column in timed if column != duration)
        if start and duration:
            return {START: start, DURATION: duration}
        ranges = [column for column in self._unread.rest if are_ranges(self._cells[column])]
        if ranges and not self._unread.has(START, END):
            return {START: ranges[0], END: ranges[0]}
        if start:
            behind = self._end_behind(start, others)
            return {START: start, END: behind} if behind else {}
        return self._pair_of(timed)

    def _headed_times(self) -> list[str]:
        """Return the columns that are headed as starts and as ends or durations, whose few cells are times.

        In a table of which most rows lack their times; of one alone another meaning is likelier.
        """
        headed = {
            name: [
                column
                for column in self._unread.rest
                if name in names_of_heading(column)[:1] and are_times(self._cells[column])
            ]
            for name in (START, END, DURATION)
        }
        ends = [*headed[END], *headed[DURATION]]
        return [*headed[START], *ends] if headed[START] and ends else []

    def _is_timed(self, column: str) -> bool:
        """Return whether a column can be of times: one of marks, or that a label heads, is none."""
        cells = self._cells[column]
        is_of_words = 2 * len(cells) < len(self._table.rows) or column in self._unread.marks
        return not is_of_words and are_times(cells)

    def _end_behind(self, start: str, columns: Sequence[str]) -> str:
        """Return the first of some columns whose times are behind the starts; "" if there is none."""
        for column in columns:
            lengths = self._lengths(start, column)
            if lengths and sum(length >= 0 for length in lengths) >= MOST * len(lengths):
                return column
        return ""

    def _pair_of(self, columns: Sequence[str]) -> dict[str, str]:
        """Return two columns as starts and ends, by their cells alone: clocks first, the nearest two."""
        clocks = [column for column in columns if are_clocks(self._cells[column])]
        pairs = []
        timed = clocks if len(clocks) > 1 else columns
        for start, end in combinations(timed[:MOST_PAIRED], 2):
            lengths = self._lengths(start, end)
            if lengths and min(lengths) > 0 and not self._are_few(end):
                pairs.append((median(lengths), start, end))
        if not pairs:
            return {}
        _, start, end = min(pairs)
        return {START: start, END: end}

    def _are_few(self, column: str) -> bool:
        """Return whether a column has the same few whole numbers again and again, as ratings have."""
        numbers = whole_numbers(self._cells[column])
        return numbers is not None and 2 * len(numbers) <= len(self._cells[column]) and len(numbers) <= 10

    def _lengths(self, start: str, end: str) -> list[float]:
        """Return how long after its start each row ends, where both are times."""
        starts = seconds_in([row.cells[start].strip() for row in self._table.rows])
        ends = seconds_in([row.cells[end].strip() for row in self._table.rows])
        lengths = [last - first for first, last in zip(starts, ends, strict=True)]
        return [length for length in lengths if length == length]  # noqa: PLR0124 - not NaN

    def _say_untimed(self) -> None:
        """Say which column holds starts, where none holds ends."""
        for name in (START, END):
            other = END if name == START else START
            column = name if self._unread.has(name) else self._unread.meant(name, self._is_timed)
            if column and not self._unread.has(other):
                if column != name:
                    self._unread.take(name, [column])
                self._proposal.columns[other] = [UNKNOWN_HEADING]
                self._proposal.held.append(f"times ({column!r}), and no column {other}")
                self._proposal.doubts.append(
                    f"--column {other}=HEADING, or --column {DURATION}=HEADING, says where spans end"
                )
                return
