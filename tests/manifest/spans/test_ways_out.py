"""What a way out tells a person to write is read: whole tables by the columns and options that it names."""

import re
import shlex

import pytest

from obygaze_features.manifest.spans.formats import FORMATS
from tests.manifest.spans.format_samples import UNREAD

WAYS = {known.name: known.way_out for known in FORMATS}
OPTION = re.compile(r"--column ('[^']+'|[^\s,]+)")
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


@pytest.mark.parametrize("name", KEPT)
def test_the_columns_that_a_way_out_names_read_the_table_itself(read, name):
    columns = {}
    for option in OPTION.findall(WAYS[name]):
        column, _, heading = shlex.split(option)[0].partition("=")
        columns[column] = [heading]
    (clip,), _ = read({"a.csv": KEPT[name]}, columns=columns, kind="table")
    assert (clip.start_s, clip.end_s, clip.level) == (1, 5, "S")
    assert clip.movie in ("film", "Obs 1")


@pytest.mark.parametrize("name", WRITTEN)
def test_a_table_that_is_written_as_a_way_out_says_is_read(read, name):
    named = re.search(r"columns movie, ?start_s, ?end_s(?: and |,)(\w+)", WAYS[name])
    heads = WRITTEN[name].partition("\n")[0].split(",")
    assert named is None or heads == ["movie", "start_s", "end_s", named[1]]
    (clip,), _ = read({"a.csv": WRITTEN[name]})
    assert (clip.movie, clip.start_s, clip.end_s) == ("film", 1, 5)
    assert clip.level == (None if "text" in heads else "S")


@pytest.mark.parametrize("ends", [";", ","])
def test_values_of_spss_are_read_by_its_decimal_point_or_comma(read, ends):
    table = "movie,start_s,end_s,level\nfilm,1.5,4.25,S\n"
    if ends == ";":
        table = table.replace(",", ";").replace(".", ",")
    (clip,), _ = read({"table.csv": table})
    assert (clip.start_s, clip.end_s, clip.level) == (1.5, 4.25, "S")
