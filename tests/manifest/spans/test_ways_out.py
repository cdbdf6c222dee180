"""What a way out tells a person to write is read: whole tables by the columns and options that it names."""

import re
import shlex

import pytest

from obygaze_features.manifest.spans.formats import FORMATS
from tests.manifest.spans.format_samples import UNREAD


def way_out_of(format_name):
    """Return the way out: the advice that a person gets for a file of a format that is not read."""
    (known,) = [known for known in FORMATS if known.name == format_name]
    return known.way_out


def columns_named_in(way_out):
    """Return the columns that a way out tells a person to type as options, {our column: [heading]}."""
    columns = {}
    for quoted_or_one_word in re.findall(r"--column ('[^']+'|[^\s,]+)", way_out):
        (option,) = shlex.split(quoted_or_one_word)
        column, heading = option.split("=")
        columns[column] = [heading]
    return columns


def observer_table_of_states():
    """Return the sample of an Observer XT table as its way out asks: only rows 'State start', coded S."""
    with_level = UNREAD["Observer XT table"].replace("Look;State start", "S;State start")
    rows = with_level.splitlines(keepends=True)
    return "".join(row for row in rows if "State stop" not in row)


def maxqda_table():
    """Return the sample of a table of MAXQDA with the code S in place of Look."""
    return UNREAD["MAXQDA coded segments"].replace("\tLook\t", "\tS\t")


@pytest.mark.parametrize("format_name", ["Dedoose excerpts", "THUMOS"])
def test_a_table_with_the_columns_that_a_way_out_lists_is_read_with_its_level(import_files, format_name):
    """A file of Dedoose or THUMOS is not read: a person is advised to make a table of it (the way out).

    The advice names the columns, as "the columns movie, start_s, end_s and level", or with commas alone. A
    table with these is read. It has no column of texts, so that the clip gets none.
    """
    way_out = way_out_of(format_name)
    (columns,) = re.findall(r"the columns (movie, ?start_s, ?end_s(?: and |,)\w+)", way_out)
    header = columns.replace(" and ", ",").replace(" ", "")
    assert header == "movie,start_s,end_s,level"

    (clip,), _ = import_files({"a.csv": f"{header}\nfilm,00:00:01.000,00:00:05.000,S\n"})

    assert (clip.movie, clip.start_s, clip.end_s, clip.level) == ("film", 1, 5, "S")
    assert "text" not in clip.extras


def test_a_table_made_as_the_advice_on_lsmdc_says_is_read_with_its_text(import_files):
    """LSMDC describes clips in sentences. Its files are not read.

    The advice is to make a table of them with the columns movie, start_s, end_s and text. Such a table gives
    a clip without a level and with its sentence.
    """
    way_out = way_out_of("LSMDC")
    assert "the columns movie, start_s, end_s and text" in way_out

    table = "movie,start_s,end_s,text\nfilm,00:00:01.000,00:00:05.000,SOMEONE looks.\n"
    (clip,), _ = import_files({"a.csv": table})

    assert (clip.movie, clip.start_s, clip.end_s, clip.level) == ("film", 1, 5, None)
    assert clip.extras["text"] == "SOMEONE looks."


@pytest.mark.parametrize(
    "table",
    ["movie,start_s,end_s,level\nfilm,1.5,4.25,S\n", "movie;start_s;end_s;level\nfilm;1,5;4,25;S\n"],
    ids=["points", "commas"],
)
def test_a_table_that_spss_saved_is_read_by_its_decimal_point_or_comma(import_files, table):
    """The way out for files of SPSS is its command SAVE TRANSLATE, which writes one of these two tables.

    Where numbers have a decimal comma, SPSS puts semicolons between cells.
    """
    (clip,), _ = import_files({"table.csv": table})
    assert (clip.start_s, clip.end_s, clip.level) == (1.5, 4.25, "S")


@pytest.mark.parametrize(
    ("format_name", "table", "movie"),
    [
        ("Observer XT table", observer_table_of_states(), "Obs 1"),
        ("MAXQDA coded segments", maxqda_table(), "film"),
    ],
    ids=["Observer XT table", "MAXQDA coded segments"],
)
def test_the_column_options_that_the_advice_for_an_unread_format_names_read_a_table_of_it(
    import_files, format_name, table, movie
):
    """Of some tools a table isn't recognised. A person gets an advice, the way out of that format.

    For these tools it says to read the table as one that people made, and to name its columns by options such
    as `--column start_s=Beginning`. Each table here has the level S from 1 to 5 s of a film, which must be
    found with the options of the advice.
    """
    columns = columns_named_in(way_out_of(format_name))

    (clip,), _ = import_files({"a.csv": table}, columns=columns, kind="table")

    assert clip.movie == movie
    assert clip.start_s == 1
    assert clip.end_s == 5
    assert clip.level == "S"
