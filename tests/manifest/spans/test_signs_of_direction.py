"""Editors of Hebrew and Arabic put signs without width around times, headings and labels: these are read."""

import pytest

LEFT_TO_RIGHT = "\N{LEFT-TO-RIGHT MARK}"
RIGHT_TO_LEFT = "\N{RIGHT-TO-LEFT MARK}"
EMBEDDING = "\N{LEFT-TO-RIGHT EMBEDDING}"
SIGNS = [LEFT_TO_RIGHT, RIGHT_TO_LEFT, EMBEDDING]


@pytest.mark.parametrize("sign", SIGNS, ids=["left to right", "right to left", "embedding"])
def test_subtitles_with_signs_around_their_times_are_read(import_files, sign):
    """A file of subtitles says "shalom" in Hebrew from 1 to 5 s and from 6 to 7 s.

    An editor put a sign before or behind numbers, times, arrows and texts. It has no width, so nobody sees
    it; it says in which direction a text runs, and is no part of the times or the text.
    """
    shalom = "שלום"
    lines = [
        "1",
        f"{sign}00:00:01,000 --> 00:00:05,000",
        shalom,
        "",
        f"{sign}2",
        f"{sign}00:00:06,000 {sign}--> {sign}00:00:07,000{sign}",
        f"{sign}{shalom}{sign}",
    ]

    clips, _ = import_files({"f.srt": "\n".join(lines)})

    assert [(clip.start_s, clip.end_s) for clip in clips] == [(1, 5), (6, 7)]
    assert [clip.extras["text"] for clip in clips] == [shalom, shalom]


@pytest.mark.parametrize("sign", SIGNS, ids=["left to right", "right to left", "embedding"])
def test_a_table_with_signs_in_its_headings_and_times_is_read(import_files, sign):
    """A table has the level S from 0:30 to 1:15, which are 30 to 75 s.

    An editor put a sign without width, which says in which direction a text runs, around a heading, the times
    and the level. It is no part of them.
    """
    table = f"{sign}movie{sign},start_s,end_s,level\nf,{sign}0:30,1:15{sign},S{sign}\n"

    (clip,), _ = import_files({"t.csv": table})

    assert clip.start_s == 30
    assert clip.end_s == 75
    assert clip.level == "S"
