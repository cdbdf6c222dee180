"""Scales that a table explains in part, and sheets that hold rows of the same spans."""

import csv
import io
import zipfile

import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import Codebook, Level, Scale, UnreadColumnsError
from tests.manifest.spans.files import CONTENT_TYPE, OFFICE, patched, sheet


def table_with_levels(heading, *levels):
    """Write a table of spans with a column of levels."""
    rows = [["movie", "start_s", "end_s", heading]]
    rows += [["f", str(n), f"{n}.5", level] for n, level in enumerate(levels, start=1)]
    written = io.StringIO()
    csv.writer(written).writerows(rows)
    return written.getvalue()


def sheets_ab_and_cd(rows, other_rows):
    """Write a workbook of two sheets, called AB and CD."""
    second_sheet = '<sheet name="CD" sheetId="2" r:id="rId3"/>'
    part = f'<Override PartName="/xl/worksheets/sheet2.xml" ContentType="{CONTENT_TYPE}.worksheet+xml"/>'
    link = f'<Relationship Id="rId3" Type="{OFFICE}/worksheet" Target="worksheets/sheet2.xml"/>'
    book = patched(
        sheet(rows),
        ('name="Sheet1"', 'name="AB"'),
        ("</sheets>", f"{second_sheet}</sheets>"),
        ("</Types>", f"{part}</Types>"),
        ("</Relationships>", f"{link}</Relationships>"),
    )
    with zipfile.ZipFile(io.BytesIO(sheet(other_rows))) as other_book:
        second = other_book.read("xl/worksheets/sheet1.xml")
    content = io.BytesIO(book)
    with zipfile.ZipFile(content, "a") as parts:
        parts.writestr("xl/worksheets/sheet2.xml", second)
    return content.getvalue()


def words_proposed(import_files, content):
    """Return the words that a refusal proposes, as it writes them: `1=S`."""
    with pytest.raises(UnreadColumnsError) as refusal:
        import_files({"t.csv": content})
    options = [option for option in refusal.value.options if option.startswith("--word")]
    return [option.removeprefix("--word ") for option in options]


def test_the_ends_of_a_scale_in_its_heading_say_in_which_direction_it_goes(import_files):
    """The heading of levels says that 1 is sure and 4 easy negative: the scale goes from S down to EN.

    A cell has 2, which the heading does not explain. By the direction, 2 is NS (not sure), and 3 is HN.
    """
    content = table_with_levels("level (1=sure, 4=easy negative)", "1", "4", "2")
    assert words_proposed(import_files, content) == ["1=S", "2=NS", "3=HN", "4=EN"]


def test_numbers_between_the_ends_of_a_scale_in_the_heading_are_proposed_in_their_order(import_files):
    """The heading of levels says that 1 is easy negative and 4 sure: the scale goes from EN up to S.

    So the refusal proposes 2 as HN and 3 as NS, which the heading does not explain.
    """
    content = table_with_levels("level (1=easy negative, 4=sure)", "1", "4", "2")
    assert words_proposed(import_files, content) == ["1=EN", "2=HN", "3=NS", "4=S"]


def test_a_number_that_the_heading_does_not_explain_is_asked_about_where_no_order_of_levels_tells_it(
    import_files,
):
    """The levels are EN, HN, NS and S. A heading says that 1 is hard negative and 2 sure, and 3 is there too.

    Neither from low to high nor from high to low do numbers count these levels as the heading has them. So
    what 3 means is left to the person: LABEL stands for what they type.
    """
    content = table_with_levels("level (1=hard negative, 2=sure)", "1", "2", "3")
    assert sorted(words_proposed(import_files, content)) == ["1=HN", "2=S", "3=LABEL"]


def test_sheets_of_two_annotators_are_refused_with_how_to_tell_them_apart(import_files):
    """The sheets AB and CD of a workbook have the same headings, and a row each of the same span.

    Neither says who annotated. The refusal names the option by which the annotator is the sheet.
    """
    header = ["movie", "start_s", "end_s", "level"]
    book = sheets_ab_and_cd([header, ["f", 1, 2, "S"]], [header, ["f", 1, 2, "EN"]])

    with pytest.raises(ManifestError, match="--column annotator=sheet"):
        import_files({"t.xlsx": book})

    clips, _ = import_files({"t.xlsx": book}, columns={"annotator": ["sheet"]})
    assert [(clip.level, clip.annotator) for clip in clips] == [("S", "AB"), ("EN", "CD")]


CODEBOOK_WITH_VALENCE = Codebook(
    "moods",
    version="1",
    levels=(Level("EN"), Level("S")),
    scales=(Scale("valence", (Level("low"), Level("high"))),),
)


@pytest.mark.parametrize("heading", ["valence", "Valence", " VALENCE"])
def test_ranks_on_a_scale_are_read_below_its_name_in_small_letters_or_capitals(import_files, heading):
    """The codebook has a scale valence from low to high, and the table a column of that name."""
    table = f"movie,start_s,end_s,level,{heading}\nf,0,5,S,high\nf,5,9,EN,low\n"

    clips, _ = import_files({"t.csv": table}, codebook=CODEBOOK_WITH_VALENCE)

    assert [clip.extras["valence"] for clip in clips] == ["high", "low"]


@pytest.mark.parametrize("heading", ["valence", "Valence", " VALENCE"])
def test_a_mistyped_rank_on_a_scale_is_refused_with_its_line_and_column(import_files, heading):
    """The codebook has a scale valence from low to high; the table has "hihg" below that name."""
    table = f"movie,start_s,end_s,level,{heading}\nf,0,5,S,hihg\n"

    with pytest.raises(ManifestError, match="line 2, column valence: 'hihg' is no level"):
        import_files({"t.csv": table}, codebook=CODEBOOK_WITH_VALENCE)
