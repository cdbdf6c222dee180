"""Times typed as m:ss into a workbook: never sixty times too long without a word."""

from pathlib import Path

import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest.importers.whole_minutes import with_minutes_as_typed
from obygaze_features.manifest.text_tables import Row, Table


def table_of(columns, rows):
    """Make a table as read from a workbook, whose header is in line 1."""
    numbered = []
    for line, cells in enumerate(rows, start=2):
        numbered.append(Row(line, dict(zip(columns, cells, strict=True))))
    return Table(
        path=Path("t.xlsx"),
        columns=tuple(columns),
        rows=tuple(numbered),
        delimiter="",
        notes=(),
        read=frozenset(columns),
    )


def table_of_texts(columns, rows):
    """Make a table of columns and rows whose cells are parted by spaces; - is an empty cell."""
    cells = [["" if cell == "-" else cell for cell in row.split()] for row in rows]
    return table_of(columns.split(), cells)


def workbook_of(columns, rows):
    """Make a table of clocks as a workbook keeps them: 01:30 is 01:30:00.000."""

    def kept(cell):
        if cell == "-":
            return cell
        return f"{cell}.000" if cell.count(":") == 2 else f"{cell}:00.000"

    return table_of_texts(columns, [" ".join(kept(cell) for cell in row.split()) for row in rows])


def times_in(table):
    """Return the cells of each row."""
    return [tuple(row.cells.values()) for row in table.rows]


def test_durations_of_hours_are_minutes_and_seconds():
    """Spreadsheets read a typed 2:47 as hours and minutes.

    A clip of 2 h 47 min within a few minutes of film can't be, so it is 2 min 47 s = 167 s. The starts have
    seconds (25 and 12), so they were typed in full and stay.
    """
    typed = table_of(
        ("start_s", "duration_s"), [("00:04:25.000", "02:47:00.000"), ("00:09:12.000", "01:29:00.000")]
    )

    corrected = with_minutes_as_typed(typed)

    assert times_in(corrected) == [("00:04:25.000", "167"), ("00:09:12.000", "89")]
    assert len(corrected.notes) == 1


def test_where_durations_were_typed_as_minutes_and_seconds_starts_and_ends_were_too():
    """A person typed 0:45 and 0:50 as durations, which the spreadsheet kept as 00:45:00 and 00:50:00.

    Clips of 45 and 50 minutes are none, so these are seconds. The starts and ends beside them were typed in
    the same way: 1:00 to 1:45 is 60 to 105 s, and 2:00 to 2:50 is 120 to 170 s.
    """
    typed = table_of(
        ("start_s", "end_s", "duration_s"),
        [
            ("01:00:00.000", "01:45:00.000", "00:45:00.000"),
            ("02:00:00.000", "02:50:00.000", "00:50:00.000"),
        ],
    )
    assert times_in(with_minutes_as_typed(typed)) == [("60", "105", "45"), ("120", "170", "50")]


def test_times_of_a_film_of_seventy_hours_are_minutes_and_seconds():
    """No film is 74 h long, so 74:09 was typed as minutes and seconds: 74 * 60 + 9 = 4449 s.

    The other times of the table are then of the same form: 4:25 is 4 * 60 + 25 = 265 s.
    """
    typed = table_of(
        ("start_s", "end_s"), [("04:25:00.000", "05:10:00.000"), ("74:09:00.000", "74:31:00.000")]
    )
    assert times_in(with_minutes_as_typed(typed)) == [("265", "310"), ("4449", "4471")]


def test_spans_of_a_minute_in_a_film_of_usual_length_stay_as_they_are():
    """Clocks of whole minutes may be m:ss that a spreadsheet kept as h:mm. Then 00:04:00 would be 4 s.

    Here they are spans of 1 and 2 min in a film of somewhat more than an hour. That is plausible, so nothing
    is changed.
    """
    typed = table_of(
        ("start_s", "end_s"), [("00:04:00.000", "00:05:00.000"), ("01:10:00.000", "01:12:00.000")]
    )
    assert with_minutes_as_typed(typed) == typed


def test_a_column_with_both_m_ss_and_h_mm_ss_is_refused():
    """A spreadsheet takes 58:20, typed for 58 min 20 s, for hours, and shows 58:20:00.

    The first row must be such, as no film has 58 hours. The second, 01:02:30, has seconds: it must be 1 h 2
    min 30 s. One column can't be both, and which rows are which cannot be known.
    """
    typed = table_of(
        ("start_s", "end_s"), [("58:20:00.000", "58:40:00.000"), ("01:02:30.000", "01:02:45.000")]
    )
    with pytest.raises(ManifestError, match="start_s"):
        with_minutes_as_typed(typed)


@pytest.mark.parametrize(
    ("columns", "rows", "seconds"),
    [
        pytest.param("start_s", ["01:00", "06:30"], ["60", "390"], id="starts of a film of six hours"),
        pytest.param("start_s end_s", ["00:10 00:40", "01:00 01:30"], ["10 40", "60 90"], id="half an hour"),
        pytest.param("duration_s", ["00:20", "00:30", "01:00"], ["20", "30", "60"], id="of half an hour"),
        pytest.param(
            "start_s end_s",
            ["00:10 00:40", "01:00 01:30", "02:00 -", "- 02:30"],
            ["10 40", "60 90", "120 -", "- 150"],
            id="one end open",
        ),
    ],
)
def test_times_that_cannot_be_hours_are_minutes_and_seconds(columns, rows, seconds):
    """A span of half an hour is not what people judge, and hardly a film lasts more than five hours.

    Cells are clocks of whole minutes, which a workbook keeps with seconds: 01:00 as 01:00:00.
    """
    assert times_in(with_minutes_as_typed(workbook_of(columns, rows))) == times_in(
        table_of_texts(columns, seconds)
    )


@pytest.mark.parametrize(
    ("columns", "rows"),
    [
        pytest.param("start_s", ["01:00", "05:00"], id="a film of five hours"),
        pytest.param("start_s", ["06:30", "06:30"], id="a single time, which tells too little"),
        pytest.param("start_s end_s", ["00:10 00:39", "01:00 01:29"], id="spans below half an hour"),
        pytest.param("start_s end_s", ["00:10 -", "- 00:50", "00:20 -", "- 01:30"], id="no whole span"),
        pytest.param("start_s end_s", ["01:00 01:45:30", "06:00 06:50:10"], id="ends with seconds"),
        pytest.param("duration_s", ["00:20", "00:29", "01:00"], id="durations below half an hour"),
    ],
)
def test_clocks_that_can_be_hours_and_minutes_are_not_taken_for_minutes_and_seconds(columns, rows):
    """A workbook keeps a typed 1:30 as 1 h 30 min, where a person may have meant 1 min 30 s.

    The times become minutes and seconds only if hours cannot be right: spans of half an hour and more, or
    films longer than any. These tables do not prove it, so they stay as they are.
    """
    table = workbook_of(columns, rows)
    assert with_minutes_as_typed(table) == table


def test_a_clock_of_twelve_hours_in_a_workbook_is_refused_beside_a_clock_with_seconds():
    """A workbook takes "12:00", typed for twelve minutes, for 12 hours. No film lasts so long.

    If all clocks of the column were like that, hours would be read as minutes. But beside it stands 01:02:30,
    an hour and more: typed in full, it is right as it is. So it isn't known what the column means.
    """
    table = workbook_of("start_s", ["01:02:30", "12:00"])

    with pytest.raises(ManifestError, match=r"12:00:00.* beside 01:02:30"):
        with_minutes_as_typed(table)


def test_a_clock_of_less_than_twelve_hours_in_a_workbook_stays_beside_a_clock_with_seconds():
    """A workbook has the times 01:02:30 and 11:59, which it keeps as hours. A film may last as long as that.

    So nothing is known to be wrong, and no clock is changed.
    """
    table = workbook_of("start_s", ["01:02:30", "11:59"])

    assert with_minutes_as_typed(table) == table
