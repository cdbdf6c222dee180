"""The line `FCM` of an edit decision list says whether its time codes are drop frame, not their signs alone.

Drop frame leaves numbers out, so that the time code of an hour is an hour: without it, spans of an NTSC film
lie 3.6 s later for each hour.
"""

from fractions import Fraction

import pytest

from obygaze_features.errors import ManifestError

NTSC = Fraction(30_000, 1001)


def edl(*codes_and_lines, mode="DROP FRAME"):
    """Write a list: an event from each time code to four seconds later, and other lines as they are."""
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
    """The code 01:00:00:00 is frame 107,892, as 108 of an hour's 108,000 numbers are left out."""
    clips, _ = import_files({"f.edl": edl("01:00:00:00", mode=mode)}, rate=NTSC)

    assert starts_of(clips) == [pytest.approx(107_892 * 1001 / 30_000)]


@pytest.mark.parametrize("mode", ["NON-DROP FRAME", "NON DROP FRAME", ""])
def test_colons_number_each_frame_elsewhere(import_files, mode):
    clips, _ = import_files({"f.edl": edl("01:00:00:00", mode=mode)}, rate=NTSC)

    assert starts_of(clips) == [pytest.approx(108_000 * 1001 / 30_000)]


def test_the_start_of_the_film_counts_as_the_list_does(import_files):
    clips, _ = import_files({"f.edl": edl("01:00:10:00")}, rate=NTSC, start="01:00:00:00")

    assert starts_of(clips) == [pytest.approx(10.01)]


def test_the_start_counts_as_codes_with_semicolons_do(import_files):
    clips, _ = import_files({"f.edl": edl("01:00:10;00", mode="")}, rate=NTSC, start="01:00:00:00")

    assert starts_of(clips) == [pytest.approx(10.01)]


def test_a_number_that_drop_frame_leaves_out_is_no_time(import_files):
    clips, said = import_files({"f.edl": edl("01:01:00:00", "01:01:00:02")}, rate=NTSC)

    assert len(clips) == 1
    assert "drop frame leaves this number out" in said


def test_the_mode_of_sources_is_said_and_not_read(import_files):
    """Lines between events say how the tape of the next event counts, whose times are not read."""
    clips, said = import_files({"f.edl": edl("01:00:00:00", "FCM: NON-DROP FRAME", "01:00:10:00")}, rate=NTSC)

    assert starts_of(clips) == [
        pytest.approx(107_892 * 1001 / 30_000),
        pytest.approx(108_192 * 1001 / 30_000),
    ]
    assert "FCM: NON-DROP FRAME: taken as the mode of the source, which is not read" in said


@pytest.mark.parametrize("rate", [Fraction(25), Fraction(24_000, 1001), Fraction(30)])
def test_a_rate_without_drop_frame_is_refused(import_files, rate):
    with pytest.raises(ManifestError, match=r"drop frame, which 29\.97 and 59\.94 fps alone have, not"):
        import_files({"f.edl": edl("01:00:00:00")}, rate=rate)
