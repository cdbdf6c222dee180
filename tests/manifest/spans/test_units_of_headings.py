"""The unit of times is told by the heading of their column, in any of its words; what is open is asked about.

Numbers below a heading whose unit is not known were read as seconds: frames as 25 times too long, minutes as
60 times too short, and nothing said so.
"""

from fractions import Fraction

import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import import_spans
from obygaze_features.manifest.spans.units import unit_of_heading

RATE = Fraction(25)


def table_of_times(start_heading, end_heading, *times):
    """Write a table with the times (start, end) of a film, below these headings."""
    rows = [f"f;{start};{end};S" for start, end in times]
    return "\n".join([f"movie;{start_heading};{end_heading};level", *rows, ""])


def columns_of(start_heading, end_heading):
    return {"start_s": [start_heading], "end_s": [end_heading]}


def times_of(clips):
    return [(clip.start_s, clip.end_s) for clip in clips]


@pytest.fixture
def refused(tmp_path):
    """Return a function that imports a table which is refused; it returns the message."""

    def refused(content, **options):
        path = tmp_path / "t.csv"
        path.write_text(content, encoding="utf-8")
        with pytest.raises(ManifestError) as refusal:
            import_spans([path], tmp_path, **options)
        return str(refusal.value)

    return refused


# --- units that are known
# ---------------------------------------------------------------------------
FRAMES = [
    ("Frame Start", "Frame End"),
    ("Frame in", "Frame out"),
    ("first frame no.", "last frame no."),
    ("startFrame", "endFrame"),
    ("Start (f)", "End (f)"),
    ("Image début", "Image fin"),
    ("Startbild", "Endbild"),
    ("Bildnummer Anfang", "Bildnummer Ende"),
    ("fotograma inicial", "fotograma final"),
    ("fotogramma inizio", "fotogramma fine"),
    ("quadro início", "quadro fim"),
    ("начало (кадр)", "конец (кадр)"),
    ("開始フレーム", "終了フレーム"),
]


@pytest.mark.parametrize(("start", "end"), FRAMES)
def test_words_for_frames_count_wherever_they_stand(import_files, start, end):
    content = table_of_times(start, end, (250, 500), (750, "1000.0"))

    clips, _ = import_files({"t.csv": content}, columns=columns_of(start, end), rate=RATE)

    assert times_of(clips) == [(10.0, 20.0), (30.0, 40.0)]


@pytest.mark.parametrize(
    ("start", "end", "seconds"),
    [
        ("Start (min)", "End (min)", 60),
        ("Début (mn)", "Fin (mn)", 60),
        ("Startminute", "Endminute", 60),
        ("Minute début", "Minute fin", 60),
        ("начало (мин)", "конец (мин)", 60),
        ("開始（分）", "終了（分）", 60),
        ("Beginn (Std)", "Ende (Std)", 3600),
        ("start_h", "end_h", 3600),
        ("Ende in Stunden ab", "Stunden bis", 3600),
        ("startMillis", "endMillis", 0.001),
        ("Start (millisecs)", "End (millisecs)", 0.001),
        ("startms", "endms", 0.001),
        ("msStart", "msEnd", 0.001),
        ("start (ms from begin)", "end (ms from begin)", 0.001),
        ("開始ミリ秒", "終了ミリ秒", 0.001),
        ("Start (cs)", "End (cs)", 0.01),
        ("start_us", "end_us", 1e-6),
        ("Start (s)", "End (s)", 1),
        ("Frame time (sec)", "Frame end (sec)", 1),
        ("Anfang", "Ende", 1),
    ],
)
def test_units_are_told_by_the_heading(import_files, start, end, seconds):
    content = table_of_times(start, end, (60_000, 120_000))

    clips, _ = import_files({"t.csv": content}, columns=columns_of(start, end))

    assert times_of(clips) == [pytest.approx((60_000 * seconds, 120_000 * seconds))]


def test_both_times_in_one_cell_have_the_unit_of_their_heading(import_files):
    content = "movie,Zeit (ms),level\nf,1000-2000,S\nf,3000-3500,EN\n"

    clips, _ = import_files({"t.csv": content}, columns=columns_of("Zeit (ms)", "Zeit (ms)"))

    assert times_of(clips) == [(1.0, 2.0), (3.0, 3.5)]


def test_times_with_units_of_their_own_are_not_converted(import_files):
    content = table_of_times("Start (min)", "End (min)", ("1 min 5 s", "00:01:20"), (2, 3))

    clips, _ = import_files({"t.csv": content}, columns=columns_of("Start (min)", "End (min)"))

    assert times_of(clips) == [(65.0, 80.0), (120.0, 180.0)]


# --- clocks
# ---------------------------------------------------------------------------
def test_clocks_of_hours_and_minutes_are_read_so(import_files):
    content = table_of_times("Start (h:mm)", "End (h:mm)", ("0:30", "0:45"), ("1:00", "1:20:30"))

    clips, _ = import_files({"t.csv": content}, columns=columns_of("Start (h:mm)", "End (h:mm)"))

    assert times_of(clips) == [(1800.0, 2700.0), (3600.0, 4830.0)]


def test_clocks_of_minutes_seconds_and_frames_are_no_hours(import_files):
    content = table_of_times("Start (mm:ss:ff)", "End (mm:ss:ff)", ("01:05:05", "01:20:10"))

    clips, _ = import_files(
        {"t.csv": content}, columns=columns_of("Start (mm:ss:ff)", "End (mm:ss:ff)"), rate=RATE
    )

    assert times_of(clips) == [(65.2, 80.4)]


@pytest.mark.parametrize("form", ["hh:mm:ss", "mm:ss", "HH:MM:SS.ms"])
def test_clocks_that_are_read_anyway_stay_as_they_are(import_files, form):
    columns = columns_of(f"Start ({form})", f"End ({form})")
    content = table_of_times(f"Start ({form})", f"End ({form})", ("01:05", "00:01:20.5"))

    clips, _ = import_files({"t.csv": content}, columns=columns)

    assert times_of(clips) == [(65.0, 80.5)]


def test_clocks_with_points_are_refused(refused):
    """1.30 below `mm.ss` is a minute and a half, and would be read as 1.3 seconds."""
    content = table_of_times("Start (mm.ss)", "End (mm.ss)", ("1.30", "2.10"))

    message = refused(content, columns=columns_of("Start (mm.ss)", "End (mm.ss)"))

    assert "column 'Start (mm.ss)': clocks mm.ss are not read: write hh:mm:ss.ms or mm:ss" in message


# --- what is open
# ---------------------------------------------------------------------------
@pytest.mark.parametrize(
    "heading", ["Start (%)", "Start %", "Start (beats)", "Start (ab)", "Hora de inicio", "Start (mm:ss)"]
)
def test_numbers_whose_unit_is_open_are_refused_until_the_person_says_it(import_files, refused, heading):
    content = table_of_times(heading, "Ende", (10, 20), (30, 40))
    columns = columns_of(heading, "Ende")

    message = refused(content, columns=columns)
    clips, said = import_files({"t.csv": content}, columns=columns, unit="min")

    assert f"line 2, column {heading!r}: " in message
    assert "is no known unit of numbers such as 10: give --unit s; or ms" in message
    assert times_of(clips) == [(600.0, 1200.0), (1800.0, 2400.0)]
    assert f"numbers in column {heading!r} are times of 60 s" in said


def test_clocks_below_brackets_that_are_no_unit_are_read(import_files):
    content = table_of_times("Start (Film)", "End (Film)", ("00:00:10", "00:00:20"))

    clips, _ = import_files({"t.csv": content}, columns=columns_of("Start (Film)", "End (Film)"))

    assert times_of(clips) == [(10.0, 20.0)]


def test_the_proposal_asks_for_a_unit_that_is_open(refused):
    message = refused(table_of_times("Start (%)", "End (%)", (10, 20), (30, 40)))

    assert "--unit UNIT" in message
    assert "in place of UNIT type the unit of the numbers in 'Start (%)', 'End (%)'" in message


def test_the_proposal_asks_for_the_rate_of_frames(refused):
    message = refused(table_of_times("Startbild", "Endbild", (250, 500), (750, 1000)))

    assert "--rate 25" in message
    assert "give the film's rate by --rate, or --unit s if the numbers in 'Startbild' are seconds" in message


def test_frames_are_whole(refused):
    content = table_of_times("Frame time", "Frame end", (2.5, 7.5))

    message = refused(content, columns=columns_of("Frame time", "Frame end"), rate=RATE)

    assert "line 2, column 'Frame time': 2.5 is no whole number of frames; give --unit s" in message


def test_a_persons_unit_counts_before_the_headings(import_files):
    content = table_of_times("Frame time", "Frame end", (2.5, 7.5))

    clips, _ = import_files({"t.csv": content}, columns=columns_of("Frame time", "Frame end"), unit="s")

    assert times_of(clips) == [(2.5, 7.5)]


def test_an_unknown_unit_is_refused(refused):
    message = refused(table_of_times("Start", "End", (1, 2)), unit="minutes")

    assert message == "unit 'minutes': expected one of s, ms, us, ns, cs, min, h, frames"


# --- options that change nothing
# ---------------------------------------------------------------------------
def test_a_rate_that_no_time_needs_is_said(import_files):
    content = table_of_times("Start (s)", "End (s)", (10, 20))

    _, said = import_files({"t.csv": content}, columns=columns_of("Start (s)", "End (s)"), rate=RATE)

    assert "--rate 25 is used nowhere: no times are frames, or end in frames" in said


@pytest.mark.parametrize(
    ("heading", "times"), [("Start", ("00:00:10:00", "00:00:20:00")), ("Frame", (250, 500))]
)
def test_a_rate_that_is_used_is_not_said(import_files, heading, times):
    content = table_of_times(heading, "Frame out", times)

    _, said = import_files({"t.csv": content}, columns=columns_of(heading, "Frame out"), rate=RATE)

    assert "used nowhere" not in said


def test_a_unit_that_no_time_needs_is_said(import_files):
    content = table_of_times("start_s", "end_s", (10, 20))

    clips, said = import_files({"t.csv": content}, unit="ms")

    assert times_of(clips) == [(10.0, 20.0)], "start_s says seconds"
    assert "--unit ms is used nowhere" in said


# --- headings that name no unit
# ---------------------------------------------------------------------------
@pytest.mark.parametrize(
    "heading",
    ["Start", "Onset", "Startzeit", "time in", "TC in", "duración", "開始時間", "Début", "t1"],
)
def test_headings_without_a_unit_leave_nothing_open(heading):
    assert unit_of_heading(heading).unit in {"", "s"}
    assert unit_of_heading(heading).doubt == ""


def test_a_persons_unit_is_for_the_headings_that_leave_it_open(import_files):
    """The start counts from 10 s, as the person says, and lasts 2 minutes, as its heading says."""
    content = "movie,Start (approx.),Duration (min),Level\ntt1,10,2,S\n"
    columns = {"start_s": ["Start (approx.)"], "duration_s": ["Duration (min)"], "level": ["Level"]}
    (clip,), _ = import_files({"t.csv": content}, columns=columns, unit="s")
    assert (clip.start_s, clip.end_s) == (10.0, 130.0)


@pytest.mark.parametrize("form", ["(s.ms)", "(ss.ms)", "- ss.msec"])
def test_seconds_with_decimals_are_no_clocks(import_files, form):
    content = f"movie,Start {form},End {form},Level\ntt1,1.5,9,S\n"
    columns = {"start_s": [f"Start {form}"], "end_s": [f"End {form}"], "level": ["Level"]}
    (clip,), _ = import_files({"t.csv": content}, columns=columns)
    assert (clip.start_s, clip.end_s) == (1.5, 9.0)
