"""What a way out tells a person to write is read: whole tables by the columns and options that it names."""

import re
import shlex

import pytest

from obygaze_features.manifest.spans.formats import FORMATS
from tests.manifest.spans.format_samples import UNREAD

WAYS = {known.name: known.way_out for known in FORMATS}


def columns_named_in(way_out):
    """Return the columns that a way out tells a person to type as options, {our column: [heading]}."""
    columns = {}
    for quoted_or_one_word in re.findall(r"--column ('[^']+'|[^\s,]+)", way_out):
        (option,) = shlex.split(quoted_or_one_word)
        column, heading = option.split("=")
        columns[column] = [heading]
    return columns


KEPT = {
    "Observer XT table": UNREAD["Observer XT table"]
    .replace("Look;State start", "S;State start")
    .partition("01-02-2024 10:00:05")[0],
    "MAXQDA coded segments": UNREAD["MAXQDA coded segments"].replace("\tLook\t", "\tS\t"),
}
"""What is left of a sample by the name of its format, with a level for its code."""


@pytest.mark.parametrize(
    ("name", "column", "cell", "level"),
    [
        ("Dedoose excerpts", "level", "S", "S"),
        ("THUMOS", "level", "S", "S"),
        ("LSMDC", "text", "SOMEONE looks.", None),
    ],
)
def test_a_way_out_names_the_columns_of_a_table_that_is_read(read, name, column, cell, level):
    """A way out says "the columns movie, start_s, end_s and level", or "movie,start_s,end_s,level"."""
    (listed,) = re.findall(r"the columns (movie, ?start_s, ?end_s(?: and |,)\w+)", WAYS[name])
    header = listed.replace(" and ", ",").replace(" ", "")
    assert header == f"movie,start_s,end_s,{column}"

    (clip,), _ = read({"a.csv": f"{header}\nfilm,00:00:01.000,00:00:05.000,{cell}\n"})
    assert (clip.movie, clip.start_s, clip.end_s, clip.level) == ("film", 1, 5, level)
    assert clip.extras.get("text", clip.level) == cell


@pytest.mark.parametrize(
    "table",
    ["movie,start_s,end_s,level\nfilm,1.5,4.25,S\n", "movie;start_s;end_s;level\nfilm;1,5;4,25;S\n"],
    ids=["points", "commas"],
)
def test_values_of_spss_are_read_by_its_decimal_point_or_comma(read, table):
    (clip,), _ = read({"table.csv": table})
    assert (clip.start_s, clip.end_s, clip.level) == (1.5, 4.25, "S")


@pytest.mark.parametrize(
    ("name", "movie"), [("Observer XT table", "Obs 1"), ("MAXQDA coded segments", "film")], ids=KEPT
)
def test_the_columns_that_a_way_out_names_read_the_table_itself(read, name, movie):
    columns = columns_named_in(WAYS[name])
    (clip,), _ = read({"a.csv": KEPT[name]}, columns=columns, kind="table")
    assert (clip.movie, clip.start_s, clip.end_s, clip.level) == (movie, 1, 5, "S")
