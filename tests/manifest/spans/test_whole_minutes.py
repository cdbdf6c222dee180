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
    return [tuple(row.cells.values()) for row in table.rows]


def test_durations_of_hours_are_minutes_and_seconds():
    """Spreadsheets read a typed 2:47 as hours and minutes.

    A clip of 2 h 47 min within a few minutes of film can't be, so it is 2 min 47 s = 167 s.
    """
    typed = table_of(
        ("start_s", "duration_s"), [("00:04:25.000", "02:47:00.000"), ("00:09:12.000", "01:29:00.000")]
    )
    table = with_minutes_as_typed(typed)
    assert times_in(table) == [("00:04:25.000", "167"), ("00:09:12.000", "89")]
    assert len(table.notes) == 1


def test_ends_are_typed_as_the_durations_beside_them_are():
    """A clip from 1:00 to 1:45 lasts 45 s, not 45 minutes of a film, and so its end is 105 s."""
    typed = table_of(
        ("start_s", "end_s", "duration_s"),
        [
            ("01:00:00.000", "01:45:00.000", "00:45:00.000"),
            ("02:00:00.000", "02:50:00.000", "00:50:00.000"),
        ],
    )
    assert times_in(with_minutes_as_typed(typed)) == [("60", "105", "45"), ("120", "170", "50")]


def test_times_of_a_film_of_seventy_hours_are_minutes_and_seconds():
    """No film is 74 h long, so 74:09 was typed as minutes and seconds: 4449 s."""
    typed = table_of(
        ("start_s", "end_s"), [("04:25:00.000", "05:10:00.000"), ("74:09:00.000", "74:31:00.000")]
    )
    assert times_in(with_minutes_as_typed(typed)) == [("265", "310"), ("4449", "4471")]


def test_spans_of_a_minute_in_a_film_of_usual_length_stay_as_they_are():
    typed = table_of(
        ("start_s", "end_s"), [("00:04:00.000", "00:05:00.000"), ("01:10:00.000", "01:12:00.000")]
    )
    assert with_minutes_as_typed(typed) == typed


def test_both_forms_in_one_column_are_refused():
    typed = table_of(
        ("start_s", "end_s"), [("58:20:00.000", "58:40:00.000"), ("01:02:30.000", "01:02:45.000")]
    )
    with pytest.raises(ManifestError, match="start_s"):
        with_minutes_as_typed(typed)
