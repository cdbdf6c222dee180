"""Find the columns of a table that hold times, and the rate of times in frames."""

import math
import re
from collections.abc import Mapping, Sequence
from itertools import combinations, pairwise
from statistics import median
from typing import Final

from obygaze_features.manifest.importers.column_contents import (
    MIN_SHARE,
    are_clocks,
    are_ranges,
    range_in,
    seconds_in,
    whole_numbers,
)
from obygaze_features.manifest.importers.proposal import END, SHOWN, START, UNKNOWN_HEADING, UNKNOWN_UNIT
from obygaze_features.manifest.importers.unread_columns import UnreadColumns
from obygaze_features.manifest.spans.headings import DURATION, meanings_of_heading, words_of
from obygaze_features.manifest.spans.instant import FRAME_CODE, has_own_unit, number_like_minutes, time_or_nan
from obygaze_features.manifest.spans.units import (
    FRAMES,
    doubt_of_minutes,
    has_time_unit,
    heading_without_unit,
    seconds_of_unit,
    unit_of_heading,
)
from obygaze_features.text import first_few, number_of

_RATE = re.compile(
    r"(\d{2,3}(?:[.,]\d+)?)\s*(?:fps|f/s|b/s|i/s|im/s|img/s|bilder|images|fotogr|hz)", re.IGNORECASE
)
"""A rate of frames in a heading or a title, such as `25 fps`."""

_DATE = re.compile(r"(?:\d{4}-\d\d-\d\d|\d{1,2}[./]\d{1,2}[./]\d{4})(?:[T ,]|$)", re.ASCII)
"""A date such as 2024-05-31, 31.5.2024 or 5/31/2024, alone or before a time of day."""

MAX_PAIRED: Final = 20
"""Of columns of times without known headings, the first so many are tried as starts and ends, each with each.
So a table of very many columns is read in a reasonable time."""

MAX_RATINGS: Final = 10
"""A column of more different whole numbers holds no ratings."""

_WORDS_FOR_OTHER_NUMBERS: Final = {
    "id", "ids", "index", "nr", "no", "nummer", "number", "num", "count", "counts", "n", "age", "alter",
    "âge", "edad", "year", "jahr", "année", "año", "trust", "judgments", "judgements", "votes", "score",
    "scores", "rank", "weight", "width", "height", "size", "x", "y", "w", "p", "kappa",
    "confidence", "frequency",
}  # fmt: skip
"""Words in headings of numbers that are no times."""

COMMON_RATES: Final = (25, 30, 50, 60)
"""Frames per second, of which the lowest is proposed that has the highest frame number of a table."""

DIGITS_OF_MILLISECONDS: Final = 3
"""A time code may end in as many digits, too: above 100 frames per second."""


class TimeColumns:
    """Finds the unread columns that hold times, and proposes to read them as starts, ends or durations.

    Its methods write into the proposal (`UnreadColumns.proposal`): columns, a unit and a rate; what must be
    read, so that the import is refused (`Proposal.require`); and what a person has to say (`Proposal.ask`).
    """

    def __init__(self, unread: UnreadColumns) -> None:
        """Keep what is known of the table's columns; see `UnreadColumns`."""
        self._unread = unread
        self._file = unread.file
        self._table = unread.table
        self._titles = unread.titles  # rows above the table
        self._cells = unread.cells  # column -> its cells that are neither empty nor errors
        self._proposal = unread.proposal

    def propose_times(self) -> None:
        """Propose columns of starts and ends, or of starts and durations, or one column of both times.

        If each time is in several columns, such as minutes and seconds, none is proposed, and the import is
        refused: any of them alone would be another time. It is refused as well if columns that are headed as
        times hold dates.
        """
        are_times_read = self._unread.has_column_for(START) and self._unread.has_column_for(END, DURATION)
        columns_of_times = {} if are_times_read else self._columns_of_times()
        # Parts are looked for even if times are read: a column `start_s` may hold only the seconds.
        columns_in_parts = self._parts_of_times([START, END, DURATION, *columns_of_times.values()])
        if columns_in_parts:
            self._unread.set_aside(columns_in_parts)
            shown = first_few([repr(column) for column in columns_in_parts], SHOWN)
            self._proposal.require(f"times in parts ({shown})")
            self._proposal.ask("write each time in one column, such as 1:05 for 1 min and 5 s")
        elif not are_times_read and columns_of_times:
            self._propose_pair(columns_of_times)
        elif not are_times_read:
            columns_of_dates = self._columns_of_dates()
            if columns_of_dates:
                self._refuse_dates(columns_of_dates)
            else:
                self._propose_single_time_column()

    def _columns_of_dates(self) -> list[str]:
        """Return the unread columns that are headed as starts, ends or durations, and hold dates."""
        columns = []
        for column in self._unread.remaining:
            is_headed_as_time = not {START, END, DURATION}.isdisjoint(meanings_of_heading(column)[:1])
            cells = self._cells[column]
            are_dates = bool(cells) and all(_DATE.match(cell) for cell in cells)
            if is_headed_as_time and are_dates:
                columns.append(column)
        return columns

    def _refuse_dates(self, columns: Sequence[str]) -> None:
        """Refuse the import: nobody can know from a date when in a film something happens."""
        self._unread.set_aside(columns)
        shown = first_few([repr(column) for column in columns], SHOWN)
        self._proposal.require(f"dates in place of times ({shown}: {self._cells[columns[0]][0]})")
        self._proposal.ask(
            "write times as they are in the film, from its beginning, such as 0:01:05; or give the column "
            "another heading, if each row is of a whole film"
        )

    def _propose_pair(self, columns_of_times: Mapping[str, str]) -> None:
        """Propose the columns of starts and of ends or durations, with their unit and rate.

        `columns_of_times` comes from `_columns_of_times`; one of its columns may be read already.
        """
        for name, column in columns_of_times.items():
            if not self._unread.has_column_for(name):
                self._unread.propose(name, [column])
        columns = list(columns_of_times.values())
        shown = ", ".join(map(repr, dict.fromkeys(columns)))
        self._proposal.require(f"times ({shown})")
        self._propose_unit(columns)
        self._propose_rate(columns)

    def _parts_of_times(self, time_columns: Sequence[str]) -> list[str]:
        """Return the columns that hold parts of times, as `start_min` beside `start_sec`; [] if none do.

        Their headings differ in the unit alone. If the person names columns of times, none is looked for.

        `time_columns` are read, or would be proposed, as times: other columns do not matter.
        """
        named_by_person = self._unread.headings.columns
        if any(named_by_person.get(name) for name in (START, END, DURATION)):
            return []
        columns_of_heading: dict[str, list[str]] = {}  # heading without its unit -> columns
        for column in self._table.columns:
            if unit_of_heading(column).unit not in {"", FRAMES}:
                columns_of_heading.setdefault(heading_without_unit(column), []).append(column)

        columns_in_parts: list[str] = []
        for columns in columns_of_heading.values():
            is_of_times = not set(columns).isdisjoint(time_columns)
            if not is_of_times:
                continue
            # Of `start_h`, `start_min` and `start_sec`, hours and minutes may be all 0. So it is enough that
            # one unit and the next shorter one are parts of the same times.
            from_long_units = sorted(columns, key=_length_of_unit, reverse=True)
            neighbouring_units = pairwise(from_long_units)
            if any(self._are_parts_of_times(longer, shorter) for longer, shorter in neighbouring_units):
                columns_in_parts += columns
        return columns_in_parts

    def _are_parts_of_times(self, longer: str, shorter: str) -> bool:
        """Return whether two columns hold parts of the same times: the one in a longer unit, and the rest.

        The rest is less than one of the longer unit in every row, though some row has one of it or more. If
        the columns held the same time in two units, such as minutes and seconds, it would not be.
        """
        length_s = _length_of_unit(longer)
        long_parts_s = []
        rests_s = []
        for row in self._table.rows:
            cells = [row.cells[column].strip() for column in (longer, shorter)]
            if not any(cells):
                continue
            long_part, rest = [number_of(cell or "0") for cell in cells]
            if math.isnan(long_part) or math.isnan(rest):
                return False
            long_parts_s.append(long_part * length_s)
            rests_s.append(rest * _length_of_unit(shorter))
        return bool(rests_s) and max(rests_s) < length_s <= max(long_parts_s)

    def _propose_unit(self, columns: Sequence[str]) -> None:
        """Ask the person for the unit of numbers, where headings leave it open.

        A heading may name a unit that is not known, as `Start (%)` does. If none does, numbers such as 1.30
        may still be minutes and seconds (`_ask_for_minutes`).
        """
        if self._file.reading.unit:
            return
        different_columns = list(dict.fromkeys(columns))
        in_unknown_units = [
            column
            for column in different_columns
            if unit_of_heading(column).doubt and self._has_mere_numbers(column)
        ]
        if not in_unknown_units:
            self._ask_for_minutes(different_columns)
            return
        shown = ", ".join(map(repr, in_unknown_units))
        self._proposal.unit = UNKNOWN_UNIT
        self._proposal.ask(
            f"in place of {UNKNOWN_UNIT} type the unit of the numbers in {shown}: s, ms, cs, us, ns, "
            "min, h, or frames (with --rate)"
        )

    def _ask_for_minutes(self, columns: Sequence[str]) -> None:
        """Ask whether numbers are seconds, or minutes and seconds with a dot, if no heading says it."""
        if any(has_time_unit(column) for column in columns):
            return
        times: list[str] = []
        for column in columns:
            for cell in self._cells[column]:
                times += range_in(cell) or (cell,)
        number = number_like_minutes(times)
        if number:
            self._proposal.unit = UNKNOWN_UNIT
            self._proposal.ask(doubt_of_minutes(", ".join(map(repr, columns)), number))

    def _has_mere_numbers(self, column: str) -> bool:
        """Return whether a column has times that are mere numbers, whose unit only its heading may say.

        `12.5` is one; `0:12` and `12 s` say their units themselves. A range such as `12.5-18` has two times.
        """
        for cell in set(self._cells[column]):
            times = range_in(cell) or (cell,)
            for time in times:
                is_time = not math.isnan(time_or_nan(time))
                if is_time and not has_own_unit(time):
                    return True
        return False

    def _propose_rate(self, columns: Sequence[str]) -> None:
        """Propose a frame rate for times in frames, if the person gives none.

        It is the rate that a heading or a title states. Else it is the lowest common rate that is possible
        with the time codes: as frames count from 0, 00:01:05:27 needs more than 27 frames per second, so that
        30 is proposed. Where only mere numbers are frames, it is the lowest of all. The person is asked to
        check a rate that is not stated. None is proposed for 00:01:05:270, whose end may be milliseconds.
        """
        if self._file.reading.rate is not None:
            return
        frame_numbers = self._frame_numbers(columns)  # as they are written, such as 05
        counted_in_frames = [column for column in columns if self._is_counted_in_frames(column)]
        if not frame_numbers and not counted_in_frames:
            return
        written_rate = self._written_rate()
        if written_rate:
            self._proposal.rate = written_rate
            return
        may_be_milliseconds = any(len(digits) == DIGITS_OF_MILLISECONDS for digits in frame_numbers)
        if may_be_milliseconds:
            self._proposal.ask(
                "three digits end its times: write '.' before them if they are milliseconds; "
                "give the film's rate by --rate if they are frames"
            )
            return
        highest_frame = max(map(int, frame_numbers), default=0)
        possible_rates = [rate for rate in COMMON_RATES if highest_frame < rate]
        self._proposal.rate = str(min(possible_rates, default=max(COMMON_RATES)))
        remedy = "give the film's rate by --rate"
        if counted_in_frames:
            remedy += f", or --unit s if the numbers in {counted_in_frames[0]!r} are seconds"
        self._proposal.ask(f"its times have frames: {remedy}")

    def _is_counted_in_frames(self, column: str) -> bool:
        """Return whether a column has mere numbers that are frames, as the person or its heading says."""
        unit_by_person = self._file.reading.unit
        unit = unit_of_heading(column).unit_beside(unit_by_person)
        return unit == FRAMES and self._has_mere_numbers(column)

    def _frame_numbers(self, columns: Sequence[str]) -> list[str]:
        """Return the digits of the frame number in each time code of some columns: "12" for `00:01:05:12`."""
        frame_numbers = []
        for column in columns:
            for cell in self._cells[column]:
                code = FRAME_CODE.fullmatch(cell)
                if code is not None:
                    frame_numbers.append(code["frames"])
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

        The first of these that is found is taken:

        1. columns whose headings mean starts, and ends or durations;
        2. a column of ranges, such as `12-15`;
        3. if no heading means starts: two columns in which the times of one come before those of the other;
        4. if a heading means starts: its column, with the first column that can hold its ends.

        Returns
        -------
        dict
            `start_s` -> its column, and `end_s` or `duration_s` -> its column. Both have the same column if
            its cells hold two times. Empty if no such columns are found.
        """
        time_columns = [column for column in self._unread.remaining if self._can_be_times(column)]
        time_columns += [column for column in self._headed_times() if column not in time_columns]

        start = self._column_of_starts(time_columns)
        pair_by_headings = self._pair_by_headings(start, time_columns)
        if pair_by_headings:
            return pair_by_headings

        are_starts_or_ends_read = self._unread.has_column_for(START, END)
        columns_of_ranges = [column for column in self._unread.remaining if are_ranges(self._cells[column])]
        if columns_of_ranges and not are_starts_or_ends_read:
            return {START: columns_of_ranges[0], END: columns_of_ranges[0]}

        if not start:
            return self._pair_by_cells(time_columns)

        other_columns = [column for column in time_columns if column != start]
        end = self._first_possible_end(start, other_columns)
        return {START: start, END: end} if end else {}

    def _column_of_starts(self, time_columns: Sequence[str]) -> str:
        """Find the column of starts.

        Returns
        -------
        str
            The column of starts that is read already: `start_s`, by which name the table has it whatever its
            heading in the file is, or the column that the person names, if the table has its own headings
            still. Else the heading among `time_columns` that most likely means starts. "" if there is
            neither.
        """
        if START in self._table.columns:
            return START
        named_by_person = self._unread.named_columns(START)
        if named_by_person:
            return named_by_person[0]
        return self._unread.column_meant_as(START, lambda column: column in time_columns)

    def _pair_by_headings(self, start: str, time_columns: Sequence[str]) -> dict[str, str]:
        """Return the columns of starts and of ends or durations, as their headings say; empty if none do.

        Ends come before durations, but not if their times are before the starts. If only durations are headed
        so, and there is one other column of times, that one has the starts.

        `start` is the column that is headed as starts; "" if none is.
        """
        other_columns = [column for column in time_columns if column != start]
        end = self._unread.column_meant_as(END, other_columns.__contains__)
        duration = self._unread.column_meant_as(DURATION, other_columns.__contains__)
        if start:
            if end and self._first_possible_end(start, [end]):
                return {START: start, END: end}
            return {START: start, DURATION: duration} if duration else {}
        if duration and not end and len(time_columns) == 2:
            (column_of_starts,) = [column for column in time_columns if column != duration]
            return {START: column_of_starts, DURATION: duration}
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
        columns = []
        for column in self._unread.remaining:
            meanings = meanings_of_heading(column)  # the likeliest first
            if meanings and meanings[0] == name and self._unread.is_of_times(column):
                columns.append(column)
        return columns

    def _can_be_times(self, column: str) -> bool:
        """Return whether a column can be of times: most cells are times, and at most half are empty.

        Marks such as 1 and 0 below a label are no times.
        """
        n_filled = len(self._cells[column])  # they have no empty cells
        is_filled = 2 * n_filled >= len(self._table.rows)
        is_of_marks = column in self._unread.mark_columns
        return is_filled and not is_of_marks and self._unread.is_of_times(column)

    def _first_possible_end(self, start: str, columns: Sequence[str]) -> str:
        """Return the first column that can hold the ends of spans; "" if there is none.

        In most rows (two thirds) its times must not be before the start; the others may be mistyped.
        """
        for column in columns:
            lengths = self._span_lengths(start, column)
            not_negative = [length for length in lengths if length >= 0]
            are_mostly_later = len(not_negative) >= MIN_SHARE * len(lengths)
            if lengths and are_mostly_later:
                return column
        return ""

    def _pair_by_cells(self, columns: Sequence[str]) -> dict[str, str]:
        """Find the columns of starts and ends by their cells alone; empty if no two columns can be these.

        Every end must be later than its start, and ends must not look like ratings, such as 1 to 5. Of
        several pairs the one with the shortest spans is taken: a time in the film and a time of day, which
        are no start and end, are further apart. If nothing but numbers tells that they are times, the person
        is warned (`Proposal.ask`).
        """
        columns_of_clocks = [column for column in columns if are_clocks(self._cells[column])]
        pairs = []  # (median length of the spans, column of starts, column of ends)
        for start, end in combinations(self._likely_times(columns, columns_of_clocks)[:MAX_PAIRED], 2):
            meanings = meanings_of_heading(start)  # the likeliest first
            is_headed_as_no_start = bool(meanings) and meanings[0] in {END, DURATION}
            if is_headed_as_no_start:
                continue
            lengths = self._span_lengths(start, end)
            ends_are_later = bool(lengths) and min(lengths) > 0
            if ends_are_later and not self._are_ratings(end):
                pairs.append((median(lengths), start, end))
        if not pairs:
            return {}
        _, start, end = min(pairs)  # with the shortest spans
        no_heading_tells = not meanings_of_heading(start) and not meanings_of_heading(end)
        are_numbers = start not in columns_of_clocks
        if no_heading_tells and are_numbers and not self._unread.has_column_for(START):
            self._proposal.ask(f"{start!r} and {end!r} are taken as times by their numbers alone")
        return {START: start, END: end}

    def _likely_times(self, columns: Sequence[str], columns_of_clocks: Sequence[str]) -> Sequence[str]:
        """Return which columns are the likeliest times: clocks, such as 00:01:05, if there are two columns.

        Else they are all columns but those headed as other numbers, such as `unit id`.
        """
        if len(columns_of_clocks) > 1:
            return columns_of_clocks
        return [column for column in columns if _WORDS_FOR_OTHER_NUMBERS.isdisjoint(words_of(column))]

    def _are_ratings(self, column: str) -> bool:
        """Return whether a column seems to hold ratings: a few different integers that are repeated."""
        cells = self._cells[column]
        different_numbers = whole_numbers(cells)
        if different_numbers is None:
            return False
        are_repeated = 2 * len(different_numbers) <= len(cells)
        return are_repeated and len(different_numbers) <= MAX_RATINGS

    def _span_lengths(self, start: str, end: str) -> list[float]:
        """Return the seconds from start to end of each row in which both columns hold times."""
        starts = self._seconds(start)
        ends = self._seconds(end)
        lengths = []
        for start_s, end_s in zip(starts, ends, strict=True):
            are_times = not math.isnan(start_s) and not math.isnan(end_s)
            if are_times:
                lengths.append(end_s - start_s)
        return lengths

    def _seconds(self, column: str) -> list[float]:
        """Return the seconds in each row of a column of times; NaN for a cell that is no time.

        Numbers are in the unit that the heading names. Frames are compared as they are, as if they were
        seconds: without a rate their length is not known.
        """
        cells = [row.cells[column].strip() for row in self._table.rows]
        are_units_in_cells = are_clocks(self._cells[column])
        length_of_unit_s = 1.0 if are_units_in_cells else _length_of_unit(column)
        return [time * length_of_unit_s for time in seconds_in(cells)]

    def _propose_single_time_column(self) -> None:
        """Propose the only column of times as starts or as ends, and ask the person for the other one.

        If the table has the manifest's own `end_s`, a column that is headed as starts completes it.
        """
        if not self._unread.has_column_for(END):
            column_of_starts = self._single_time_column(START)
            if column_of_starts:
                self._propose_without_other_time(START, column_of_starts, missing=END)
                self._proposal.ask(
                    f"--column {END}=HEADING, or --column {DURATION}=HEADING, says where spans end"
                )
                return
        if self._unread.has_column_for(START):
            return
        column_of_starts = self._unread.column_meant_as(START, self._can_be_times)
        if column_of_starts and self._unread.is_read(END):
            self._unread.propose(START, [column_of_starts], needed=f"times ({column_of_starts!r})")
            return
        column_of_ends = self._single_time_column(END)
        if column_of_ends:
            self._propose_without_other_time(END, column_of_ends, missing=START)
            self._proposal.ask(f"--column {START}=HEADING says where spans start")

    def _propose_without_other_time(self, name: str, column: str, *, missing: str) -> None:
        """Propose a column of starts, or of ends, of a table in which the other one is not found.

        In place of the other one's heading stands a placeholder, which the person replaces.

        `name` and `missing` are `start_s` and `end_s`, or the other way round.
        """
        if not self._unread.has_column_for(name):
            self._unread.propose(name, [column])
        self._proposal.columns[missing] = [UNKNOWN_HEADING]
        self._proposal.require(f"times ({column!r}), and no column {missing}")

    def _single_time_column(self, name: str) -> str:
        """Find the column of starts (`name` is `start_s`) or of ends (`end_s`).

        Returns
        -------
        str
            `name` itself if such a column is read already: the table has it by this name, whatever its
            heading in the file is. Else the heading of the unread column of times that most likely means
            starts, or ends. "" if there is neither.
        """
        is_read_already = self._unread.has_column_for(name)
        if is_read_already:
            return name
        return self._unread.column_meant_as(name, self._can_be_times)


def _length_of_unit(column: str) -> float:
    """Return the length in seconds of the unit in a heading; 1 if it names none, or frames."""
    unit = unit_of_heading(column).unit
    return 1.0 if unit in {"", FRAMES} else seconds_of_unit(unit)
