"""Editors of Hebrew and Arabic put signs without width around times, headings and labels: these are read."""

import pytest

LEFT_TO_RIGHT = "\N{LEFT-TO-RIGHT MARK}"
RIGHT_TO_LEFT = "\N{RIGHT-TO-LEFT MARK}"
EMBEDDING = "\N{LEFT-TO-RIGHT EMBEDDING}"
SIGNS = [LEFT_TO_RIGHT, RIGHT_TO_LEFT, EMBEDDING]
SHALOM = "שלום"


@pytest.mark.parametrize("sign", SIGNS, ids=["left to right", "right to left", "embedding"])
def test_subtitles_with_signs_around_their_times_are_read(import_files, sign):
    lines = [
        "1",
        f"{sign}00:00:01,000 --> 00:00:05,000",
        SHALOM,
        "",
        f"{sign}2",
        f"{sign}00:00:06,000 {sign}--> {sign}00:00:07,000{sign}",
        f"{sign}{SHALOM}{sign}",
    ]

    clips, _ = import_files({"f.srt": "\n".join(lines)})

    assert [(clip.start_s, clip.end_s) for clip in clips] == [(1, 5), (6, 7)]
    assert {clip.extras["text"] for clip in clips} == {SHALOM}


@pytest.mark.parametrize("sign", SIGNS, ids=["left to right", "right to left", "embedding"])
def test_a_table_with_signs_in_its_headings_and_times_is_read(import_files, sign):
    table = f"{sign}movie{sign},start_s,end_s,level\nf,{sign}0:30,1:15{sign},S{sign}\n"

    (clip,), _ = import_files({"t.csv": table})

    assert (clip.start_s, clip.end_s, clip.level) == (30, 75, "S")
