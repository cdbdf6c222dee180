"""Time codes of editors become seconds of the film: by the file's rate and start, or the person's."""

from fractions import Fraction
from pathlib import Path

import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest.spans.span_file import Reading, SpanFile
from obygaze_features.manifest.spans.time_codes import TimeLine, time_line

PAL, NTSC = Fraction(25), Fraction(30_000, 1001)
"""Frames a second."""


def file_read_with(**by_person):
    """Return a file of time codes, and what a person says of it: its rate, and the film's start."""
    return SpanFile(Path("list.edl"), Reading(**by_person))


@pytest.mark.parametrize(
    ("by_person", "in_file", "rate", "start_s"),
    [
        ({}, {}, None, 0.0),
        ({}, {"rate": "25"}, 25, 0.0),
        ({"rate": Fraction(50)}, {"rate": "25"}, 50, 0.0),
        ({"rate": Fraction(25)}, {"start": "00:00:02:00"}, 25, 2.0),
        ({"rate": Fraction(25), "start": "00:00:03:00"}, {"start": "00:00:02:00"}, 25, 3.0),
        ({"start": "1.5"}, {}, None, 1.5),
        ({"start": "00:00:00.000"}, {"start": "00:00:02.000"}, None, 0.0),
        ({"start": "00:00:01:05"}, {"rate": "25"}, 25, 1.2),
    ],
    ids=[
        "nobody says",
        "the file's rate",
        "the person's rate first",
        "the file's start",
        "the person's start first",
        "a start in seconds",
        "a start of 0 by the person",
        "the person's start at the file's rate",
    ],
)
def test_what_a_person_says_of_rate_and_start_counts_before_the_file(by_person, in_file, rate, start_s):
    """A file of time codes may say its rate, in frames a second, and at which code the film starts.

    The person may say both too, and then that counts: a wrong start would move all spans. Where nobody says
    it, the rate is unknown and the start is 0 s.
    """
    file = file_read_with(**by_person)
    time_codes = ["00:00:10.000"]

    times = time_line(file, time_codes, **in_file)

    assert times.rate == rate
    assert times.start_s == start_s


@pytest.mark.parametrize(
    ("code", "expected_s"),
    [
        ("00:00:10:05", 8.2),
        (" 00:00:10:05\t", 8.2),
        ("00:00:02:00", 0.0),
        ("00:00:01:00", -1.0),
        ("12.5", 10.5),
    ],
)
def test_a_time_code_is_counted_from_the_films_start(code, expected_s):
    """The film starts at the time code of 2 s. At 25 frames a second, that of 10 s and 5 frames is at 8.2 s.

    A time before the start is negative, and a number of seconds counts as time codes do.
    """
    assert TimeLine(PAL, start_s=2.0).seconds(code) == pytest.approx(expected_s)


@pytest.mark.parametrize("code", ["", "   ", "soon"])
def test_an_empty_text_or_a_word_is_no_time_code(code):
    """A text that is empty or a word would begin a span at the film's start, if it were taken for 0."""
    with pytest.raises(ManifestError):
        TimeLine(PAL, start_s=0.0).seconds(code)


@pytest.mark.parametrize(
    ("rate", "length_s", "is_one_frame"),
    [
        (PAL, 0.0, False),
        (PAL, 0.019, False),
        (PAL, 0.021, True),
        (PAL, 0.04, True),
        (PAL, 0.059, True),
        (PAL, 0.061, False),
        (PAL, 0.08, False),
        (Fraction(50), 0.04, False),
        (None, 0.04, False),
        (None, 1.0, False),
    ],
)
def test_a_span_counts_as_one_frame_if_its_length_is_that_of_a_frame_to_half_a_frame(
    rate, length_s, is_one_frame
):
    """Editors give a point in time the length of a frame, which must not be taken for a short span.

    A frame is .04 s at 25 frames a second (PAL), so that lengths from .02 to .06 s are one; at 50 frames a
    second it is .02 s. Where the rate is not known (None), no span is taken for a frame. It makes no
    difference where a span begins, here at 7 s.
    """
    start_s = 7.0

    assert TimeLine(rate, start_s=0.0).is_one_frame(start_s, start_s + length_s) is is_one_frame


@pytest.mark.parametrize(
    ("codes", "said_in_file", "message"),
    [
        pytest.param(
            ["00:00:10.000", "00:00:12:05"], {}, r"00:00:12:05.*--rate", id="five frames, and no rate"
        ),
        pytest.param(
            ["00:00:10.000"], {"start": "01:00:00:00"}, "--start", id="a start with frames, and no rate"
        ),
        pytest.param(
            ["00:00:10:00"],
            {"rate": "25", "start": "01:00:00;00"},
            "--start",
            id="a start in drop frame, which does not exist at 25 frames a second",
        ),
        pytest.param(["00:00:10:00"], {"rate": "fast"}, "rate", id="a rate that is no number"),
    ],
)
def test_time_codes_that_cannot_be_counted_by_the_rate_of_their_file_are_refused(
    codes, said_in_file, message
):
    """Time codes such as 00:00:12:05 end with frames: their seconds depend on the frames in a second.

    The file says no rate, or one that can't be, and the person says none. If a rate were guessed, all spans
    of the file would be shifted or stretched. The message names the option by which the person can say it.
    """
    file_of_which_the_person_says_nothing = file_read_with()

    with pytest.raises(ManifestError, match=message):
        time_line(file_of_which_the_person_says_nothing, codes, **said_in_file)


@pytest.mark.parametrize(
    ("codes", "options"),
    [
        ([], {}),
        (["00:00:10.000", "12.5", "soon"], {}),
        (["00:00:10.000"], {"rate": "25", "is_dropping": True}),
        (["00:00:10.000"], {"is_dropping": True}),
        (["00:00:10:00"], {"rate": "59.94", "is_dropping": True}),
        (["00:00:10;00", "00:00:12;00"], {"rate": "29.97"}),
        (["00:00:10:00", "00:00:12:00"], {"rate": "29.97"}),
    ],
    ids=["none", "no frames", "no frames to drop", "nor a rate", "59.94 drops", "semicolons", "colons"],
)
def test_time_codes_that_mean_one_time_are_read(codes, options):
    """Time codes that contradict each other are refused elsewhere; these do not, so they are read.

    The rate matters only to codes that end in frames, and "drop frame" only to rates that have it. A text
    that is no time is left out later. No code of a first frame is given, so times count from 0.
    """
    assert time_line(file_read_with(), codes, **options).start_s == 0.0


@pytest.mark.parametrize(
    ("code", "file_says_drop_frame", "is_drop_frame"),
    [
        pytest.param("01:00:10:00", False, False, id="colons"),
        pytest.param("01:00:10;00", False, True, id="a semicolon"),
        pytest.param("01:00:10:00", True, True, id="colons, and the file says drop frame"),
        pytest.param("01:00:10;00", True, True, id="a semicolon, and the file says drop frame"),
    ],
)
def test_the_films_start_is_counted_in_drop_frame_if_a_semicolon_or_the_file_says_so(
    code, file_says_drop_frame, is_drop_frame
):
    """At 29.97 frames a second (NTSC), drop frame leaves out 108 of the 108,000 numbers of an hour.

    So the film's start, which the person says is 01:00:00:00, is frame 108,000 or 107,892, each of 1001 /
    30,000 s. The code of the file must be counted in the same way: it is 300 frames, 10 s, after the start.
    """
    frame_of_start = 108_000 - 108 if is_drop_frame else 108_000

    times = time_line(
        file_read_with(rate=NTSC, start="01:00:00:00"), [code], is_dropping=file_says_drop_frame
    )

    assert times.start_s == pytest.approx(frame_of_start / NTSC)
    assert times.seconds(code) == pytest.approx(300 / NTSC)
