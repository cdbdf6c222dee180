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


def test_ends_are_typed_as_the_durations_beside_them_are():
    """The durations can only be 45 s and 50 s, so that the starts and ends beside them are m:ss too.

    The clip from 1:00 to 1:45 lasts from 60 to 105 s, and the one from 2:00 to 2:50 from 120 to 170 s.
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
    """Spans of 1 and 2 min in a film of somewhat more than an hour are plausible: nothing is changed."""
    typed = table_of(
        ("start_s", "end_s"), [("00:04:00.000", "00:05:00.000"), ("01:10:00.000", "01:12:00.000")]
    )
    assert with_minutes_as_typed(typed) == typed


def test_a_column_with_both_m_ss_and_h_mm_ss_is_refused():
    """58:20:00 must be 58 min 20 s, as no film has 58 hours. 01:02:30 has seconds: 1 h 2 min 30 s."""
    typed = table_of(
        ("start_s", "end_s"), [("58:20:00.000", "58:40:00.000"), ("01:02:30.000", "01:02:45.000")]
    )
    with pytest.raises(ManifestError, match="start_s"):
        with_minutes_as_typed(typed)
