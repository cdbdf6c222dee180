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

WRITTEN = {
    "Dedoose excerpts": "movie,start_s,end_s,level\nfilm,1,5,S\n",
    "THUMOS": "movie,start_s,end_s,level\nfilm,1.0,5.0,S\n",
    "LSMDC": "movie,start_s,end_s,text\nfilm,00:00:01.000,00:00:05.000,SOMEONE looks.\n",
    "SPSS (.sav)": "movie,start_s,end_s,level\nfilm,1,5,S\n",
}
"""A table that a person wrote, or a tool exported, as the way out of a format says."""


@pytest.mark.parametrize(
    ("name", "movie"), [("Observer XT table", "Obs 1"), ("MAXQDA coded segments", "film")], ids=KEPT
)
def test_the_columns_that_a_way_out_names_read_the_table_itself(read, name, movie):
    columns = columns_named_in(WAYS[name])
    (clip,), _ = read({"a.csv": KEPT[name]}, columns=columns, kind="table")
    assert (clip.movie, clip.start_s, clip.end_s, clip.level) == (movie, 1, 5, "S")


@pytest.mark.parametrize(
    ("name", "column_of_labels"), [("Dedoose excerpts", "level"), ("THUMOS", "level"), ("LSMDC", "text")]
)
def test_a_way_out_names_the_columns_that_the_table_written_for_this_test_has(name, column_of_labels):
    """A way out says "the columns movie, start_s, end_s and level", or "movie,start_s,end_s,level"."""
    expected = ["movie", "start_s", "end_s", column_of_labels]
    (listed,) = re.findall(r"the columns (movie, ?start_s, ?end_s(?: and |,)\w+)", WAYS[name])
    assert listed.replace(" and ", ",").replace(" ", "").split(",") == expected
    header, *_ = WRITTEN[name].splitlines()
    assert header.split(",") == expected


@pytest.mark.parametrize("name", ["Dedoose excerpts", "THUMOS", "SPSS (.sav)"])
def test_a_table_of_levels_that_is_written_as_a_way_out_says_is_read(read, name):
    (clip,), _ = read({"a.csv": WRITTEN[name]})
    assert (clip.movie, clip.start_s, clip.end_s, clip.level) == ("film", 1, 5, "S")


def test_a_table_of_texts_that_is_written_as_a_way_out_says_is_read(read):
    (clip,), _ = read({"a.csv": WRITTEN["LSMDC"]})
    assert (clip.movie, clip.start_s, clip.end_s) == ("film", 1, 5)
    assert (clip.level, clip.extras["text"]) == (None, "SOMEONE looks.")


@pytest.mark.parametrize(
    "table",
    ["movie,start_s,end_s,level\nfilm,1.5,4.25,S\n", "movie;start_s;end_s;level\nfilm;1,5;4,25;S\n"],
    ids=["points", "commas"],
)
def test_values_of_spss_are_read_by_its_decimal_point_or_comma(read, table):
    (clip,), _ = read({"table.csv": table})
    assert (clip.start_s, clip.end_s, clip.level) == (1.5, 4.25, "S")
