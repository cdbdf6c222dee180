"""The unit of times is told by the heading of their column, in any of its words; what is open is asked about.

Numbers below a heading whose unit is not known were read as seconds: frames as 25 times too long, minutes as
60 times too short, and nothing said so.
"""

from fractions import Fraction

import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest.spans.units import (
    UNITS,
    UnitOfHeading,
    checked_unit,
    has_time_unit,
    heading_without_unit,
    seconds_of_unit,
    unit_of_heading,
)


def table_of_times(start_heading, end_heading, *times):
    """Write a table with the times (start, end) of a film, below these headings."""
    rows = [f"f;{start};{end};S" for start, end in times]
    return "\n".join([f"movie;{start_heading};{end_heading};level", *rows, ""])


def columns_of(start_heading, end_heading):
    """Return what a person types to name the columns of starts and of ends by their headings."""
    return {"start_s": [start_heading], "end_s": [end_heading]}


def times_of(clips):
    return [(clip.start_s, clip.end_s) for clip in clips]


# --- units that are known
# ---------------------------------------------------------------------------
HEADINGS_OF_UNIT = {
    "frames": [
        "Frame Start", "Frame End", "Frame in", "Frame out", "first frame no.", "last frame no.",
        "startFrame", "endFrame", "Start (f)", "End (f)", "Image début", "Image fin",
        "Startbild", "Endbild", "Bildnummer Anfang", "Bildnummer Ende",
        "fotograma inicial", "fotograma final", "fotogramma inizio", "fotogramma fine",
        "quadro início", "quadro fim", "начало (кадр)", "конец (кадр)", "開始フレーム", "終了フレーム",
    ],
    "min": [
        "Start (min)", "End (min)", "Début (mn)", "Fin (mn)", "Startminute", "Endminute",
        "Minute début", "Minute fin", "начало (мин)", "конец (мин)", "開始（分）", "終了（分）",
    ],
    "h": ["Beginn (Std)", "Ende (Std)", "start_h", "end_h", "Ende in Stunden ab", "Stunden bis"],
    "ms": [
        "startMillis", "endMillis", "Start (millisecs)", "End (millisecs)", "startms", "endms",
        "msStart", "msEnd", "start (ms from begin)", "end (ms from begin)", "開始ミリ秒", "終了ミリ秒",
    ],
    "cs": ["Start (cs)", "End (cs)"],
    "us": ["start_us", "end_us"],
    "s": ["Start (s)", "End (s)", "Frame time (sec)", "Frame end (sec)"],
}  # fmt: skip
"""Unit -> headings that name it in some language."""

HEADINGS_AND_UNITS = [(heading, unit) for unit, headings in HEADINGS_OF_UNIT.items() for heading in headings]


@pytest.mark.parametrize(("heading", "unit"), HEADINGS_AND_UNITS)
def test_words_for_a_unit_count_wherever_they_stand(heading, unit):
    """The heading names the unit, so that nobody is asked: there is no doubt of it."""
    told = unit_of_heading(heading)

    assert told.unit == unit
    assert told.doubt == ""


@pytest.mark.parametrize(
    ("heading_of_starts", "heading_of_ends", "start_s", "end_s"),
    [
        ("Image début", "Image fin", 10, 20),
        ("Minute début", "Minute fin", 15_000, 30_000),
        ("Anfang", "Ende", 250, 500),
    ],
    ids=["frames", "minutes", "no unit: seconds"],
)
def test_times_are_in_the_unit_of_their_heading(
    import_files, heading_of_starts, heading_of_ends, start_s, end_s
):
    """A span is from 250 to 500, which are frames, minutes or seconds, as its headings say in their language.

    At 25 frames a second, 250 frames are 10 s. A spreadsheet may write 500 as 500.0.
    """
    table = table_of_times(heading_of_starts, heading_of_ends, (250, "500.0"))
    columns = columns_of(heading_of_starts, heading_of_ends)

    clips, _ = import_files({"t.csv": table}, columns=columns, rate=Fraction(25))

    assert times_of(clips) == [(start_s, end_s)]


def test_both_times_in_one_cell_have_the_unit_of_their_heading(import_files):
    """The column "Zeit (ms)" has the start and the end of a span in one cell, in milliseconds."""
    content = "movie,Zeit (ms),level\nf,1000-2000,S\nf,3000-3500,EN\n"

    clips, _ = import_files({"t.csv": content}, columns=columns_of("Zeit (ms)", "Zeit (ms)"))

    assert times_of(clips) == [(1.0, 2.0), (3.0, 3.5)]


def test_times_with_units_of_their_own_are_not_converted(import_files):
    """The headings say minutes. In the first row the cells say themselves what they are: 65 s and 80 s.

    The second row has bare numbers, which are minutes: 2 and 3, or 120 s and 180 s.
    """
    content = table_of_times("Start (min)", "End (min)", ("1 min 5 s", "00:01:20"), (2, 3))

    clips, _ = import_files({"t.csv": content}, columns=columns_of("Start (min)", "End (min)"))

    assert times_of(clips) == [(65.0, 80.0), (120.0, 180.0)]


# --- clocks
# ---------------------------------------------------------------------------
def test_clocks_below_hours_and_minutes_are_no_minutes_and_seconds(import_files):
    """Below the heading h:mm, 0:30 is half an hour, and not 30 s.

    1:20:30 has three parts. It is hours, minutes and seconds, whatever the heading says.
    """
    minute_s = 60
    hour_s = 3600
    content = table_of_times("Start (h:mm)", "End (h:mm)", ("0:30", "0:45"), ("1:00", "1:20:30"))

    clips, _ = import_files({"t.csv": content}, columns=columns_of("Start (h:mm)", "End (h:mm)"))

    assert times_of(clips) == [
        (30 * minute_s, 45 * minute_s),
        (hour_s, hour_s + 20 * minute_s + 30),
    ]


def test_clocks_of_minutes_seconds_and_frames_are_no_hours(import_files):
    """Below mm:ss:ff, 01:05:05 is 65 s and 5 frames, which at 25 a second last .2 s."""
    content = table_of_times("Start (mm:ss:ff)", "End (mm:ss:ff)", ("01:05:05", "01:20:10"))

    clips, _ = import_files(
        {"t.csv": content}, columns=columns_of("Start (mm:ss:ff)", "End (mm:ss:ff)"), rate=Fraction(25)
    )

    assert times_of(clips) == [(65.2, 80.4)]


@pytest.mark.parametrize("form", ["hh:mm:ss", "mm:ss", "HH:MM:SS.ms"])
def test_a_usual_form_of_clocks_in_the_heading_changes_no_clock_below_it(import_files, form):
    """01:05 is 65 s, and 00:01:20.5 is 80.5 s, whether the heading says hh:mm:ss, mm:ss or HH:MM:SS.ms.

    A clock with one colon is of minutes and seconds, and one with two has hours before them.
    """
    columns = columns_of(f"Start ({form})", f"End ({form})")
    content = table_of_times(f"Start ({form})", f"End ({form})", ("01:05", "00:01:20.5"))

    clips, _ = import_files({"t.csv": content}, columns=columns)

    assert times_of(clips) == [(65.0, 80.5)]


def test_clocks_with_points_are_refused(refusal_of):
    """The heading says that 1.30 is a minute and a half, `mm.ss`. As a number it would be 1.3 seconds."""
    content = table_of_times("Start (mm.ss)", "End (mm.ss)", ("1.30", "2.10"))

    refusal = refusal_of({"t.csv": content}, columns=columns_of("Start (mm.ss)", "End (mm.ss)"))

    assert "column 'Start (mm.ss)': clocks mm.ss are not read: write hh:mm:ss.ms or mm:ss" in str(refusal)


# --- what is open
# ---------------------------------------------------------------------------
@pytest.mark.parametrize(
    "heading",
    [
        pytest.param("Start (%)", id="per cent"),
        pytest.param("Start %", id="per cent, without brackets"),
        pytest.param("Start (beats)", id="beats"),
        pytest.param("Start (ab)", id="an unknown word"),
        pytest.param("Hora de inicio", id="hora, which means hour and time of day"),
        pytest.param("Start (mm:ss)", id="a form of clocks, of which 10 may be minutes or seconds"),
    ],
)
def test_times_as_numbers_below_a_heading_with_an_unclear_unit_are_refused_until_the_person_says_it(
    import_files, refusal_of, heading
):
    """The heading of starts has a word that is no unit of time, or could be several; "Ende" has none.

    The first start, 10, is asked about. Once the person says that the numbers are minutes, 10 is 600 s.
    """
    table = table_of_times(heading, "Ende", (10, 20), (30, 40))
    columns = columns_of(heading, "Ende")

    message = str(refusal_of({"t.csv": table}, columns=columns))
    assert f"line 2, column {heading!r}: " in message
    assert "is no known unit of numbers such as 10: give --unit s; or ms" in message

    clips, notices = import_files({"t.csv": table}, columns=columns, unit="min")
    assert times_of(clips) == [(600.0, 1200.0), (1800.0, 2400.0)]
    assert f"numbers in column {heading!r} are times of 60 s" in notices


def test_clocks_are_read_below_a_heading_whose_brackets_hold_no_unit(import_files):
    """The headings have "Film" in brackets, which is no unit.

    Numbers below them would be refused, as their unit is not known. Clocks such as 00:00:10 need no unit.
    """
    content = table_of_times("Start (Film)", "End (Film)", ("00:00:10", "00:00:20"))

    clips, _ = import_files({"t.csv": content}, columns=columns_of("Start (Film)", "End (Film)"))

    assert times_of(clips) == [(10.0, 20.0)]


def test_a_proposal_of_columns_of_times_asks_for_their_unit_where_the_headings_name_none(refusal_of):
    """The numbers stand below "Start (%)" and "End (%)", and "%" is no unit of times.

    The import is refused with the options that would read the table. Besides the columns these have --unit,
    for which the person has to say the unit.
    """
    message = str(refusal_of({"t.csv": table_of_times("Start (%)", "End (%)", (10, 20), (30, 40))}))

    assert "--unit UNIT" in message
    assert "in place of UNIT type the unit of the numbers in 'Start (%)', 'End (%)'" in message


def test_the_proposal_asks_for_the_rate_of_frames(refusal_of):
    """Bild is German for frame, so that the times need a rate, which the person did not give."""
    content = table_of_times("Startbild", "Endbild", (250, 500), (750, 1000))

    message = str(refusal_of({"t.csv": content}, rate=None))

    assert "--rate 25" in message
    assert "give the film's rate by --rate, or --unit s if the numbers in 'Startbild' are seconds" in message


def test_no_rate_is_proposed_for_times_that_end_in_three_digits(refusal_of):
    """050 may be milliseconds: nobody writes frame 50 of a second so, unless frames go up to 100 and more."""
    content = table_of_times("Start", "End", ("00:00:01:050", "00:00:03:050"))

    message = str(refusal_of({"t.csv": content}, rate=None))

    assert "--rate 60" not in message
    assert "write '.' before them if they are milliseconds" in message


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("2024-05-31T10:00:05", "2024-05-31T10:00:09"),
        ("31.5.2024 10:00", "31.5.2024 10:05"),
        ("5/31/2024", "6/1/2024"),
    ],
    ids=["ISO", "German", "American"],
)
def test_dates_below_start_and_end_are_no_times_in_a_film(refusal_of, start, end):
    """Each row would be of the whole film if the columns were left out, which is not meant by "Start"."""
    message = str(refusal_of({"t.csv": table_of_times("Start", "End", (start, end))}))

    assert f"dates in place of times ('Start', 'End': {start})" in message


def test_a_date_beside_times_does_no_harm(import_files):
    """The table says on which day a row was written; the times of its span are 1 and 2 s."""
    clips, _ = import_files({"t.csv": "movie,start_s,end_s,level,date\nf,1,2,S,2024-05-31\n"})

    assert times_of(clips) == [(1.0, 2.0)]


def test_numbers_of_frames_must_be_whole(refusal_of):
    """The headings name frames, and the times are 2.5 and 7.5: they may be seconds."""
    content = table_of_times("Frame time", "Frame end", (2.5, 7.5))

    refusal = refusal_of({"t.csv": content}, columns=columns_of("Frame time", "Frame end"))

    assert "line 2, column 'Frame time': 2.5 is no whole number of frames; give --unit s" in str(refusal)


def test_a_persons_unit_counts_before_the_headings(import_files):
    """The headings name frames, and the person says that the numbers are seconds."""
    content = table_of_times("Frame time", "Frame end", (2.5, 7.5))

    clips, _ = import_files({"t.csv": content}, columns=columns_of("Frame time", "Frame end"), unit="s")

    assert times_of(clips) == [(2.5, 7.5)]


def test_an_unknown_unit_is_refused(refusal_of):
    """The person types "minutes", for which the word is "min"."""
    refusal = refusal_of({"t.csv": table_of_times("Start", "End", (1, 2))}, unit="minutes")

    assert str(refusal) == "unit 'minutes': expected one of s, ms, us, ns, cs, min, h, frames"


# --- options that change nothing
# ---------------------------------------------------------------------------
def test_a_notice_says_that_no_time_needs_the_rate_that_was_given(import_files):
    """The person gives 25 frames a second, and all times are seconds, so that the rate may be a mistake."""
    content = table_of_times("Start (s)", "End (s)", (10, 20))

    _, notices = import_files(
        {"t.csv": content}, columns=columns_of("Start (s)", "End (s)"), rate=Fraction(25)
    )

    assert "--rate 25 is used nowhere: no times are frames, or end in frames" in notices


@pytest.mark.parametrize(
    ("heading", "times"), [("Start", ("00:00:10:00", "00:00:20:00")), ("Frame", (250, 500))]
)
def test_no_notice_is_given_of_a_rate_that_is_used(import_files, heading, times):
    """The times end in frames (00:00:10:00), or are frames as their heading says."""
    content = table_of_times(heading, "Frame out", times)

    columns = columns_of(heading, "Frame out")

    _, notices = import_files({"t.csv": content}, columns=columns, rate=Fraction(25))

    assert "used nowhere" not in notices


def test_a_notice_says_that_no_time_needs_the_unit_that_was_given(import_files):
    """The columns are called start_s and end_s, which says seconds. The person gives milliseconds."""
    content = table_of_times("start_s", "end_s", (10, 20))

    clips, notices = import_files({"t.csv": content}, unit="ms")

    assert times_of(clips) == [(10.0, 20.0)]
    assert "--unit ms is used nowhere" in notices


# --- headings that name no unit
# ---------------------------------------------------------------------------
@pytest.mark.parametrize(
    "heading",
    [
        "Start",
        "Onset",
        "Startzeit",
        "Anfang",
        "Ende",
        "time in",
        "TC in",
        "duración",
        "開始時間",
        "Début",
        "t1",
    ],
)
def test_headings_without_a_unit_leave_nothing_open(heading):
    """Such headings are usual for seconds, so that nobody is asked: there is no doubt of the unit."""
    told = unit_of_heading(heading)

    assert told.unit == ""
    assert told.doubt == ""


def test_the_persons_unit_holds_below_headings_that_leave_it_open_and_not_below_others(import_files):
    """The person says that times are in seconds. The heading "Start (approx.)" names no unit: 10 is 10 s.

    "Duration (min)" names one: 2 is 2 minutes, whatever the person says, so that the clip ends at 130 s.
    """
    content = "movie,Start (approx.),Duration (min),Level\ntt1,10,2,S\n"
    columns = {"start_s": ["Start (approx.)"], "duration_s": ["Duration (min)"], "level": ["Level"]}

    (clip,), _ = import_files({"t.csv": content}, columns=columns, unit="s")

    assert (clip.start_s, clip.end_s) == (10.0, 130.0)


@pytest.mark.parametrize("form", ["(s.ms)", "(ss.ms)", "- ss.msec"])
def test_seconds_with_decimals_are_no_clocks(import_files, form):
    """Below ss.ms stand seconds with decimals: 1.5 is one and a half, and not 1 s and 5 ms."""
    content = f"movie,Start {form},End {form},Level\ntt1,1.5,9,S\n"
    columns = {"start_s": [f"Start {form}"], "end_s": [f"End {form}"], "level": ["Level"]}

    (clip,), _ = import_files({"t.csv": content}, columns=columns)

    assert (clip.start_s, clip.end_s) == (1.5, 9.0)


# --- what a heading says, whole
# ---------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("heading", "expected"),
    [
        # a unit in brackets, which is certain
        ("Start (ms)", UnitOfHeading("ms", is_stated=True)),
        ("Start [min.]", UnitOfHeading("min", is_stated=True)),
        ("Start (ms) (Film)", UnitOfHeading("ms", is_stated=True)),
        ("Start frame (s)", UnitOfHeading("s", is_stated=True)),
        ("Start (time in s from 0)", UnitOfHeading("s", is_stated=True)),
        # a unit in another word, which is not certain
        ("start_ms", UnitOfHeading("ms")),
        ("Start seconds (Film)", UnitOfHeading("s")),
        ("s", UnitOfHeading("s")),
        ("ms of start", UnitOfHeading("ms")),
        ("startms", UnitOfHeading("ms")),
        ("Startbild", UnitOfHeading("frames")),
        ("startMillisekunden", UnitOfHeading("ms")),
        ("startmillisekunden", UnitOfHeading("ms")),
        ("開始ミリ秒", UnitOfHeading("ms")),
        # no unit
        ("begin ms of film", UnitOfHeading()),  # a short form within other words
        ("m start", UnitOfHeading()),  # one letter in front
        ("xms", UnitOfHeading()),  # a short form behind a word that is none for a time
        ("flora", UnitOfHeading()),  # ends in "ora", Italian for hour, which is too short for an ending
        ("Start ()", UnitOfHeading()),
        ("", UnitOfHeading()),
        # a doubt: several units, or a text that may be one
        ("Start (s, ms)", UnitOfHeading(doubt="s, ms")),
        (" Minutes seconds ", UnitOfHeading(doubt="Minutes seconds")),
        ("percent", UnitOfHeading(doubt="percent")),
        ("Start (%)", UnitOfHeading(doubt="%")),
        ("Start (s) (%)", UnitOfHeading(doubt="s, %")),
        ("Start (a) () (b)", UnitOfHeading(doubt="a, b")),
        ("Start (a:b)", UnitOfHeading(doubt="a:b")),
        ("Start (ab:mm)", UnitOfHeading(doubt="ab:mm")),
        ("Start ( ca. )", UnitOfHeading(doubt="ca")),
        # clocks: the form is a doubt about mere numbers below it
        ("Start (hh:mm:ss)", UnitOfHeading(doubt="hh:mm:ss")),
        # clocks that lack a part: how cells with so many colons or semicolons are completed
        ("Start h:mm", UnitOfHeading(doubt="h:mm", whole_clock="{}:00", n_signs=1)),
        ("Start (mm:ss:ff)", UnitOfHeading(doubt="mm:ss:ff", whole_clock="00:{}", n_signs=2)),
        ("Start (mm:ss;ff)", UnitOfHeading(doubt="mm:ss;ff", whole_clock="00:{}", n_signs=2)),
        ("Start (ss:ff)", UnitOfHeading(doubt="ss:ff", whole_clock="00:00:{}", n_signs=1)),
        ("Start (ss;ff)", UnitOfHeading(doubt="ss;ff", whole_clock="00:00:{}", n_signs=1)),
        # a clock whose cells would be read as numbers, and are refused
        ("Start (mm.ss)", UnitOfHeading(doubt="mm.ss", unread_clock="mm.ss")),
        # seconds with decimals
        ("Start (ss.ms)", UnitOfHeading("s", is_stated=True)),
        ("Start (ss,ms)", UnitOfHeading("s", is_stated=True)),
    ],
)
def test_a_heading_says_all_that_is_known_of_the_times_below_it(heading, expected):
    """A heading names a unit, leaves a doubt, or shows the form of clocks (`UnitOfHeading` has the fields).

    A unit that is taken for another makes every time of a table wrong, and nothing shows it.
    """
    assert unit_of_heading(heading) == expected


@pytest.mark.parametrize(
    ("heading", "has_unit"),
    [("Start", False), ("Start ()", False), ("Start (s)", True), ("start_ms", True), ("Start (%)", True)],
)
def test_a_heading_has_a_unit_if_it_names_one_or_has_a_text_that_may_be_one(heading, has_unit):
    """Below a heading without a unit, 10.59 may be seconds, or minutes and seconds, which has to be asked.

    "Start (s)" answers that, and of "Start (%)" the unit is asked anyway.
    """
    assert has_time_unit(heading) is has_unit


@pytest.mark.parametrize(
    ("in_heading", "by_person", "expected"),
    [
        # a heading without a unit, or with a doubt
        (UnitOfHeading(), "", ""),
        (UnitOfHeading(), "ms", "ms"),
        (UnitOfHeading(doubt="%"), "s", "s"),
        # minutes in a word of the heading, and in brackets
        (UnitOfHeading("min"), "", "min"),
        (UnitOfHeading("min"), "s", "s"),
        (UnitOfHeading("min", is_stated=True), "", "min"),
        (UnitOfHeading("min", is_stated=True), "s", "min"),
        # frames in a word of the heading, and in brackets
        (UnitOfHeading("frames"), "s", "s"),
        (UnitOfHeading("frames", is_stated=True), "", "frames"),
        (UnitOfHeading("frames", is_stated=True), "s", "s"),
    ],
)
def test_a_unit_in_brackets_counts_more_than_the_persons_option_unless_it_is_frames(
    in_heading, by_person, expected
):
    """A person types one unit for all columns of all files (--unit), "" if none.

    A unit in the brackets of a heading (`is_stated`) is certain of its column, and counts more. Frames alone
    give way: without a frame rate, the person has no other way to say what such numbers are.
    """
    assert in_heading.unit_beside(by_person) == expected


@pytest.mark.parametrize(
    ("heading", "expected"),
    [
        ("Start", "start"),
        ("Start (sec)", "start"),
        ("startMin", "start"),
        ("start_time_min", "start time"),
        ("開始ミリ秒", "開始"),
        ("min", ""),
        ("", ""),
    ],
)
def test_a_heading_is_compared_without_its_words_for_units(heading, expected):
    """Without them `start_min` and `start_sec` are both "start": minutes and seconds of one time."""
    assert heading_without_unit(heading) == expected


def test_every_unit_has_its_length_and_is_one_that_a_person_may_type():
    """Each unit that a person may type as `--unit` has its length in seconds; a frame's depends on the rate.

    Any other word is refused, such as "none". To say no unit at all is no fault.
    """
    lengths = {"s": 1, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "cs": 0.01, "min": 60, "h": 3600, "frames": 0}
    assert {unit: seconds_of_unit(unit) for unit in UNITS} == lengths
    for unit in (*UNITS, ""):
        assert checked_unit(unit) == unit
    with pytest.raises(ManifestError):
        checked_unit("none")
