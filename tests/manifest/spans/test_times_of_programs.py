"""Times as programs write them into tables: differences of pandas and Python, durations of ISO 8601."""

import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest.spans.instant import time_code

WAYS_OF_65_5_S = {
    "pandas": "0 days 00:01:05.500000",
    "Python": "0:01:05.500000",
    "ISO 8601": "PT1M5.5S",
    "ISO 8601 with a comma": "PT0H1M5,5S",
    "ISO 8601 of pandas": "P0DT0H1M5.5S",
}


@pytest.mark.parametrize("text", WAYS_OF_65_5_S.values(), ids=WAYS_OF_65_5_S)
def test_the_ways_in_which_programs_write_one_minute_and_five_and_a_half_seconds_are_read(text):
    """Python, pandas and ISO 8601 have ways of their own, such as "0 days 00:01:05.5" and PT1M5.5S."""
    assert time_code(text) == 65.5


def test_days_before_a_clock_count():
    """Python writes a timedelta of 24 hours and 5 seconds as "1 day, 0:00:05"."""
    assert time_code("1 day, 0:00:05") == 24 * 3600 + 5


def test_days_before_a_duration_count():
    """P1DT0H0M5S is 1 day and 5 seconds, as pandas writes it: with days before each duration, also with 0."""
    assert time_code("P1DT0H0M5S") == 24 * 3600 + 5


@pytest.mark.parametrize("text", ["PT", "P1D", "P1DT", "0 days 0 days 00:00:05", "-1 days +23:59:55", "PT5"])
def test_durations_of_programs_that_are_no_times_in_a_film_are_refused(text):
    """PT0H0M5S (ISO 8601) and "0 days 00:00:05" (pandas) are 5 s. These texts are like them, but no times.

    They lack a number or its unit, have days alone or twice, or are a negative difference.
    """
    with pytest.raises(ManifestError):
        time_code(text)


@pytest.mark.parametrize(
    ("start", "end"),
    [("0 days 00:00:05", "0 days 00:01:05.500000"), ("PT5S", "PT1M5.5S"), ("P0DT0H0M5S", "P0DT0H1M5.5S")],
    ids=["pandas", "ISO 8601", "ISO 8601 of pandas"],
)
def test_times_as_programs_write_them_are_recognised_below_any_heading_and_read_in_seconds(
    import_files, refusal_of, start, end
):
    """A program wrote a span from 5 s to 1 minute 5.5 s as pandas does, or as durations of ISO 8601.

    The columns are called start and end, and not start_s and end_s. If their cells were not recognised as
    times, the row would be taken for a label of the whole film. So the table is refused, with the options
    that name its columns of times; with these, the span is from 5 to 65.5 s.
    """
    table = {"t.csv": f"movie,start,end,level\nFilm A,{start},{end},S\n"}

    assert refusal_of(table).options == ("--column start_s=start", "--column end_s=end")
    clips, _ = import_files(table, columns={"start_s": ["start"], "end_s": ["end"]})

    assert [(clip.start_s, clip.end_s) for clip in clips] == [(5.0, 65.5)]
