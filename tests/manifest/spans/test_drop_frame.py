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
    """NTSC has 29.97 frames a second: a frame lasts 1001 / 30,000 s. Time codes count 30 of them a second.

    Drop-frame time codes leave out some numbers to keep up with the clock. This list does not say that its
    time codes do so, and writes ":", not ";". So 01:00:00:00 is frame 60 * 60 * 30 = 108,000.
    """
    clips, _ = import_files({"f.edl": edl("01:00:00:00", mode=mode)}, rate=NTSC)

    assert starts_of(clips) == [pytest.approx(108_000 * 1001 / 30_000)]


def test_the_films_start_is_in_drop_frame_if_the_edit_list_says_that_its_codes_are(import_files):
    """Drop frame leaves out 108 of the 108,000 numbers of an hour, so that a time code of an hour is an hour.

    The line FCM of the list says that its time codes are in drop frame. The person says that the film starts
    at 01:00:00:00: if this were not read in the same way, all events would lie 108 frames, 3.6 s, too early.
    The event at 01:00:10:00 is 10 * 30 frames after the start, each of 1001 / 30,000 s: 10.01 s.
    """
    list_in_drop_frame = edl("01:00:10:00", mode="DROP FRAME")

    clips, _ = import_files({"f.edl": list_in_drop_frame}, rate=NTSC, start="01:00:00:00")

    assert starts_of(clips) == [pytest.approx(10.01)]


def test_the_films_start_is_in_drop_frame_if_time_codes_have_semicolons(import_files):
    """A semicolon in a time code says that it is in drop frame, also in a list without a line FCM.

    The person writes the start of the film with colons, 01:00:00:00, and means the same count. The event at
    01:00:10;00 is 10 * 30 frames later, each of 1001 / 30,000 s: 10.01 s.
    """
    list_without_mode = edl("01:00:10;00", mode="")

    clips, _ = import_files({"f.edl": list_without_mode}, rate=NTSC, start="01:00:00:00")

    assert starts_of(clips) == [pytest.approx(10.01)]


def test_a_number_that_drop_frame_leaves_out_is_no_time(import_files):
    """In the first second of a minute drop frame leaves out the numbers 00 and 01, and begins with 02.

    So the event at 01:01:00:00 is at no time, and is left out; the event at 01:01:00:02 is read.
    """
    drop_frame = edl("01:01:00:00", "01:01:00:02", mode="DROP FRAME")

    clips, notices = import_files({"f.edl": drop_frame}, rate=NTSC)

    assert len(clips) == 1
    assert "drop frame leaves this number out" in notices


def test_a_line_fcm_between_events_is_noted_and_changes_no_times(import_files):
    """An edit list has times of the edit, which are read, and times of the tapes that it was made of.

    The line FCM at its head says that time codes of the edit are in drop frame. One between events says how
    the tape of the next event counts. So both events are in drop frame: the first, at 01:00:00:00, is frame
    107,892, as 108 of the 108,000 numbers of an hour are left out, and the second, 10 s later, is 300 frames
    behind it.
    """
    with_mode_of_a_tape = edl("01:00:00:00", "FCM: NON-DROP FRAME", "01:00:10:00", mode="DROP FRAME")

    clips, notices = import_files({"f.edl": with_mode_of_a_tape}, rate=NTSC)

    first_frame = 108_000 - 108
    assert starts_of(clips) == [
        pytest.approx(first_frame * 1001 / 30_000),
        pytest.approx((first_frame + 300) * 1001 / 30_000),
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
