"""The line `FCM` of an edit decision list says whether its time codes are drop frame, not their signs alone.

Drop frame leaves numbers out, so that the time code of an hour is an hour: without it, spans of an NTSC film
lie 3.6 s later for each hour.
"""

from fractions import Fraction

import pytest

from obygaze_features.errors import ManifestError

NTSC = Fraction(30_000, 1001)
"""Frames a second, about 29.97: a frame lasts 1001 / 30,000 s."""


def edl(*codes_and_lines, mode="DROP FRAME"):
    """Write a list: an event from each time code to four seconds later, and other lines as they are.

    `mode` is what its line `FCM` says; where it is empty, the list has no such line.
    """
    lines = ["TITLE: tt1", f"FCM: {mode}" if mode else "", ""]
    for number, code in enumerate(codes_and_lines, start=1):
        if code[0].isdigit():
            end = code[:6] + f"{int(code[6:8]) + 4:02d}" + code[8:]
            lines.append(f"{number:03d}  001      V     C        {code} {end} {code} {end}")
        else:
            lines.append(code)
    return "\n".join([*lines, ""])


def starts_of(clips):
    return [clip.start_s for clip in clips]


@pytest.mark.parametrize("mode", ["DROP FRAME", "drop frame", " DROP-FRAME"])
def test_colons_are_drop_frame_where_the_list_says_so(import_files, mode):
    """The list has one event, at 01:00:00:00, and says "FCM: DROP FRAME".

    At 30 numbers a second an hour has 108,000, of which drop frame leaves out 2 in 54 of its 60 minutes, or
    108. So the event is at frame 107,892, and a frame lasts 1001 / 30,000 s.
    """
    n_left_out = 2 * 54
    frame = 30 * 3600 - n_left_out

    clips, _ = import_files({"f.edl": edl("01:00:00:00", mode=mode)}, rate=NTSC)

    assert starts_of(clips) == [pytest.approx(frame * 1001 / 30_000)]


@pytest.mark.parametrize("mode", ["NON-DROP FRAME", "NON DROP FRAME", ""])
def test_colons_number_each_frame_where_the_list_does_not_say_drop_frame(import_files, mode):
    """At 30 numbers a second, the time code 01:00:00:00 is frame 108,000; a frame lasts 1001 / 30,000 s."""
    clips, _ = import_files({"f.edl": edl("01:00:00:00", mode=mode)}, rate=NTSC)

    assert starts_of(clips) == [pytest.approx(108_000 * 1001 / 30_000)]


def test_the_start_of_the_film_counts_as_the_list_does(import_files):
    """The list says drop frame, and the film starts at 01:00:00:00 of it: by the same count, frame 107,892.

    The event at 01:00:10:00 is 10 * 30 frames later, each of 1001 / 30,000 s: 10.01 s.
    """
    drop_frame = edl("01:00:10:00", mode="DROP FRAME")

    clips, _ = import_files({"f.edl": drop_frame}, rate=NTSC, start="01:00:00:00")

    assert starts_of(clips) == [pytest.approx(10.01)]


def test_the_start_counts_as_codes_with_semicolons_do(import_files):
    """The list has no line `FCM`, but the semicolon in its time code says drop frame, too.

    The start of the film is written with colons, and counts as drop frame all the same. The event is 10 * 30
    frames later, each of 1001 / 30,000 s: 10.01 s.
    """
    with_a_semicolon = edl("01:00:10;00", mode="")

    clips, _ = import_files({"f.edl": with_a_semicolon}, rate=NTSC, start="01:00:00:00")

    assert starts_of(clips) == [pytest.approx(10.01)]


def test_a_number_that_drop_frame_leaves_out_is_no_time(import_files):
    """In the first second of a minute drop frame leaves out the numbers 00 and 01, and begins with 02.

    So the event at 01:01:00:00 is at no time, and is left out; the event at 01:01:00:02 is read.
    """
    drop_frame = edl("01:01:00:00", "01:01:00:02", mode="DROP FRAME")

    clips, notices = import_files({"f.edl": drop_frame}, rate=NTSC)

    assert len(clips) == 1
    assert "drop frame leaves this number out" in notices


def test_the_mode_of_sources_is_noted_and_not_applied(import_files):
    """The list says drop frame at its head. A line `FCM` between events is about the tape of the next event.

    Times of tapes are not read, so that both events count as drop frame: the first, at an hour, is frame
    107,892, and the second, 10 s later, is 300 frames behind it.
    """
    with_mode_of_a_tape = edl("01:00:00:00", "FCM: NON-DROP FRAME", "01:00:10:00", mode="DROP FRAME")

    clips, notices = import_files({"f.edl": with_mode_of_a_tape}, rate=NTSC)

    assert starts_of(clips) == [
        pytest.approx(107_892 * 1001 / 30_000),
        pytest.approx((107_892 + 300) * 1001 / 30_000),
    ]
    assert "FCM: NON-DROP FRAME: taken as the mode of the source, which is not read" in notices


@pytest.mark.parametrize("rate", [Fraction(25), Fraction(24_000, 1001), Fraction(30)])
def test_a_rate_without_drop_frame_is_refused(import_files, rate):
    """A list says that its time codes are drop frame, and the person that its rate is 25, 23.976 or 30.

    In drop frame some numbers of frames are left out, so that time codes keep up with the clock. Only rates
    a little below 30 or 60 frames a second need that, so one of the two is wrong.
    """
    list_in_drop_frame = edl("01:00:00:00", mode="DROP FRAME")
    with pytest.raises(ManifestError, match=r"drop frame, which 29\.97 and 59\.94 fps alone have, not"):
        import_files({"f.edl": list_in_drop_frame}, rate=rate)
