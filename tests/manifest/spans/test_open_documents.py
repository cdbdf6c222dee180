"""A table says the same saved as .xlsx or as .ods: errors, merged and hidden cells, formats."""

import io
import zipfile

import pytest

from obygaze_features.errors import ManifestError

NAMESPACES = {
    "office": "urn:oasis:names:tc:opendocument:xmlns:office:1.0",
    "table": "urn:oasis:names:tc:opendocument:xmlns:table:1.0",
    "text": "urn:oasis:names:tc:opendocument:xmlns:text:1.0",
    "calcext": "urn:org:documentfoundation:names:experimental:calc:xmlns:calcext:1.0",
}
LIBREOFFICE_ERROR = (
    '<table:table-cell table:formula="of:=NA()" office:value-type="string" office:string-value="" '
    'calcext:value-type="error"><text:p>#N/A</text:p></table:table-cell>'
)
"""An error as LibreOffice writes it."""
OPENOFFICE_ERROR = (
    '<table:table-cell table:formula="of:=1/0" office:value-type="float" office:value="0">'
    "<text:p>#DIV/0!</text:p></table:table-cell>"
)
"""An error as OpenOffice writes it: its value is 0, and people see the error."""
NEVER_COMPUTED = '<table:table-cell table:formula="of:=[.B2]+1"/>'
"""A formula that a program wrote, and no spreadsheet has computed."""


def words(text, attributes=""):
    """Write a cell with a text, and further attributes of the cell."""
    cell = f'<table:table-cell office:value-type="string" {attributes}>'
    return f"{cell}<text:p>{text}</text:p></table:table-cell>"


def number(value, shown=None, kind="float"):
    """Write a cell with a number, and what people see of it if it is formatted otherwise."""
    return (
        f'<table:table-cell office:value-type="{kind}" office:value="{value}">'
        f"<text:p>{shown or value}</text:p></table:table-cell>"
    )


def row(*cells, attributes=""):
    """Write a row of these cells, and further attributes of the row."""
    return f"<table:table-row {attributes}>{''.join(cells)}</table:table-row>"


def clip_row(start_s, end_s, level, attributes=""):
    """Write a row of film f with these times, and a cell for its level."""
    return row(words("f"), number(start_s), number(end_s), level, attributes=attributes)


HEADER = row(words("movie"), words("start_s"), words("end_s"), words("level"))
"""The first row of a sheet, with the headings movie, start_s, end_s and level."""
COVERED_CELL = "<table:covered-table-cell/>"
"""A cell that lies below another one, which was merged over it."""


def clock(duration):
    """Write a cell that is formatted as a time, such as PT25H00M01S: 25 hours and a second."""
    return f'<table:table-cell office:value-type="time" office:time-value="{duration}"/>'


def repeated(cell, times):
    """Write a cell once, with the number of cells of its row in which it stands."""
    attribute = f'table:number-columns-repeated="{times}"'
    return cell.replace("<table:table-cell", f"<table:table-cell {attribute}", 1)


def empty_rows(number_of_rows):
    """Write an empty row once, with how often it stands in the sheet."""
    return row("<table:table-cell/>", attributes=f'table:number-rows-repeated="{number_of_rows}"')


def document(*rows):
    """Write a spreadsheet of OpenDocument of one sheet."""
    declared = " ".join(f'xmlns:{prefix}="{uri}"' for prefix, uri in NAMESPACES.items())
    body = f'<table:table table:name="Labels">{"".join(rows)}</table:table>'
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr(
            "content.xml",
            f"<office:document-content {declared}><office:body><office:spreadsheet>{body}"
            "</office:spreadsheet></office:body></office:document-content>",
        )
        archive.writestr("META-INF/manifest.xml", "<manifest/>")
    return content.getvalue()


@pytest.mark.parametrize(
    "unreadable_cell",
    [LIBREOFFICE_ERROR, OPENOFFICE_ERROR, NEVER_COMPUTED],
    ids=["an error of LibreOffice", "an error of OpenOffice", "a formula that was never computed"],
)
def test_a_level_that_cannot_be_read_is_refused_with_its_place(import_files, unreadable_cell):
    """A table, f.ods, has a heading and two clips. The level of the second, in line 3, cannot be read.

    Read as an empty cell it would be a clip that nobody judged, or, of a scale, the level 0.
    """
    table = document(
        HEADER,
        clip_row(start_s=0, end_s=1, level=words("S")),
        clip_row(start_s=1, end_s=2, level=unreadable_cell),
    )

    with pytest.raises(ManifestError, match=r"f\.ods: line 3, column level: '#.*' cannot be read"):
        import_files({"f.ods": table})


def test_times_that_cannot_be_read_are_no_whole_film(import_files):
    """A row without times would be of the whole film. This row has errors, #N/A, as its start and end."""
    unreadable_time = LIBREOFFICE_ERROR
    table = document(HEADER, row(words("f"), unreadable_time, unreadable_time, words("S")))

    with pytest.raises(ManifestError, match=r"line 2, column start_s: '#N/A' cannot be read"):
        import_files({"f.ods": table})


def test_an_error_behind_repeated_rows_and_cells_is_named_by_its_place(import_files):
    """A spreadsheet writes equal cells and equal rows once, with how often they stand there.

    Below the headings are two empty rows, so the third row is line 4. In it the number 3 stands twice, as
    start and as end, so that the error behind it is below the fourth heading, level.
    """
    start_and_end = repeated(number(3), times=2)
    table = document(HEADER, empty_rows(2), row(words("f"), start_and_end, LIBREOFFICE_ERROR))

    with pytest.raises(ManifestError, match=r"line 4, column level: '#N/A'"):
        import_files({"f.ods": table})


def test_a_level_merged_over_two_rows_is_of_both(import_files):
    """The cell with the level S is merged over the rows of two clips, so that people see it beside both."""
    merged_over_two_rows = words("S", 'table:number-rows-spanned="2"')
    table = document(
        HEADER,
        clip_row(start_s=0, end_s=1, level=merged_over_two_rows),
        clip_row(start_s=1, end_s=2, level=COVERED_CELL),
    )

    clips, _ = import_files({"f.ods": table})

    assert [clip.level for clip in clips] == ["S", "S"]


def test_cells_that_people_see_otherwise_are_noted_by_their_places(import_files):
    """In line 2 of the sheet a level is merged over two columns, D and E, so that people see it in both.

    Line 3 is hidden, and in line 4 the number 1 is shown as 100 %. Each is read as it is stored, which is
    noted.
    """
    headings = row(words("movie"), words("start_s"), words("end_s"), words("level"), words("share"))
    merged_over_two_columns = words("S", 'table:number-columns-spanned="2"')
    hidden_row = 'table:visibility="filter"'
    shown_as_percentage = number(1, shown="100 %", kind="percentage")
    table = document(
        headings,
        row(words("f"), number(0), number(1), merged_over_two_columns, COVERED_CELL),
        clip_row(start_s=1, end_s=2, level=words("S"), attributes=hidden_row),
        row(words("f"), number(2), number(3), words("EN"), shown_as_percentage),
    )

    _, notices = import_files({"f.ods": table})

    assert "merged across columns, of which the first alone has a value: D2:E2" in notices
    assert "of hidden rows or columns, read as the others: 3" in notices
    assert "whose format shows more than their number, which is read: E4" in notices


def test_the_hidden_empty_rest_of_a_sheet_is_not_noted(import_files):
    """Hidden rows are noted, as people don't see them. Here they are all rows below the table, and empty.

    A sheet has 1,048,576 rows of 16,384 columns: the heading, a clip, and 1,048,574 empty rows.
    """
    empty_row = repeated("<table:table-cell/>", times=16_384)
    hidden_rest = row(
        empty_row, attributes='table:number-rows-repeated="1048574" table:visibility="collapse"'
    )
    table = document(HEADER, clip_row(start_s=0, end_s=1, level=words("S")), hidden_rest)

    _, notices = import_files({"f.ods": table})

    assert "hidden" not in notices


def test_numbers_in_other_forms_show_no_more_than_their_number(import_files):
    """A note is made of cells whose format shows more than the number, such as a unit.

    A decimal comma (1,5) and powers of ten (1E+03) are only other forms of the same number.
    """
    start = number(1.5, shown="1,5")
    end = number(1000, shown="1E+03")
    table = document(HEADER, row(words("f"), start, end, words("S")))

    _, notices = import_files({"f.ods": table})

    assert "format" not in notices


def test_a_time_of_more_than_a_day_is_read(import_files):
    """A cell may be formatted as a time. The clip lasts from 25:00:01 to 26:00:00.5."""
    start = clock("PT25H00M01S")
    end = clock("PT26H00M00.5S")

    (clip,), _ = import_files({"f.ods": document(HEADER, row(words("f"), start, end, words("S")))})

    assert clip.start_s == 25 * 3600 + 1
    assert clip.end_s == 26 * 3600 + 0.5


def test_a_comment_on_a_cell_is_no_part_of_it(import_files):
    """A person commented on the cell with the level S. A file stores the comment "#N/A?" within the cell."""
    comment = "<office:annotation><text:p>#N/A?</text:p></office:annotation>"
    level_with_comment = words("S").replace("<text:p>", f"{comment}<text:p>")
    table = document(HEADER, clip_row(start_s=0, end_s=1, level=level_with_comment))

    (clip,), _ = import_files({"f.ods": table})

    assert clip.level == "S"


@pytest.mark.parametrize(
    ("cell", "n_rows"),
    [(NEVER_COMPUTED, 1_000_000), (words("S"), 300_000)],
    ids=["a formula without a value", "a level"],
)
def test_a_cell_repeated_very_often_is_refused(import_files, cell, n_rows):
    """A spreadsheet writes equal rows once, with their number: a small file of many could fill the memory."""
    one_row_for_many = row(cell, attributes=f'table:number-rows-repeated="{n_rows}"')

    with pytest.raises(ManifestError, match="repeated"):
        import_files({"f.ods": document(HEADER, one_row_for_many)})
