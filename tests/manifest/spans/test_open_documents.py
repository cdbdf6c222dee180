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
    cell = f'<table:table-cell office:value-type="string" {attributes}>'
    return f"{cell}<text:p>{text}</text:p></table:table-cell>"


def number(value, shown=None, kind="float"):
    return (
        f'<table:table-cell office:value-type="{kind}" office:value="{value}">'
        f"<text:p>{shown or value}</text:p></table:table-cell>"
    )


def row(*cells, attributes=""):
    return f"<table:table-row {attributes}>{''.join(cells)}</table:table-row>"


def clip_row(start_s, end_s, level, attributes=""):
    return row(words("f"), number(start_s), number(end_s), level, attributes=attributes)


HEADER = row(*map(words, ["movie", "start_s", "end_s", "level"]))


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


@pytest.mark.parametrize("cell", [LIBREOFFICE_ERROR, OPENOFFICE_ERROR, NEVER_COMPUTED])
def test_a_level_that_cannot_be_read_is_refused_with_its_place(import_files, cell):
    """As an empty cell it would be a clip that nobody judged, or, of a scale, the level 0."""
    table = document(
        HEADER, clip_row(start_s=0, end_s=1, level=words("S")), clip_row(start_s=1, end_s=2, level=cell)
    )

    with pytest.raises(ManifestError, match=r"f\.ods: line 3, column level: '#.*' cannot be read"):
        import_files({"f.ods": table})


def test_times_that_cannot_be_read_are_no_whole_film(import_files):
    table = document(HEADER, row(words("f"), LIBREOFFICE_ERROR, LIBREOFFICE_ERROR, words("S")))

    with pytest.raises(ManifestError, match=r"line 2, column start_s: '#N/A' cannot be read"):
        import_files({"f.ods": table})


def test_an_error_behind_repeated_rows_and_cells_is_named_by_its_place(import_files):
    """A spreadsheet writes equal cells and rows once, with a number: two empty rows, two numbers."""
    empty_rows = '<table:table-row table:number-rows-repeated="2"><table:table-cell/></table:table-row>'
    twice = number(3).replace("<table:table-cell", '<table:table-cell table:number-columns-repeated="2"', 1)
    table = document(HEADER, empty_rows, row(words("f"), twice, LIBREOFFICE_ERROR))

    with pytest.raises(ManifestError, match=r"line 4, column level: '#N/A'"):
        import_files({"f.ods": table})


def test_a_level_merged_over_two_rows_is_of_both(import_files):
    merged = words("S", 'table:number-rows-spanned="2"')
    table = document(
        HEADER,
        clip_row(start_s=0, end_s=1, level=merged),
        clip_row(start_s=1, end_s=2, level="<table:covered-table-cell/>"),
    )

    clips, _ = import_files({"f.ods": table})

    assert [clip.level for clip in clips] == ["S", "S"]


def test_cells_that_people_see_otherwise_are_noted_by_their_places(import_files):
    hidden = 'table:visibility="filter"'
    wide = words("S", 'table:number-columns-spanned="2"')
    table = document(
        HEADER.replace("</table:table-row>", words("share") + "</table:table-row>"),
        row(words("f"), number(0), number(1), wide, "<table:covered-table-cell/>"),
        clip_row(start_s=1, end_s=2, level=words("S"), attributes=hidden),
        row(words("f"), number(2), number(3), words("EN"), number(1, "100 %", "percentage")),
    )

    _, notices = import_files({"f.ods": table})

    assert "merged across columns, of which the first alone has a value: D2:E2" in notices
    assert "of hidden rows or columns, read as the others: 3" in notices
    assert "whose format shows more than their number, which is read: E4" in notices


def test_the_hidden_empty_rest_of_a_sheet_is_not_noted(import_files):
    rest = row(
        '<table:table-cell table:number-columns-repeated="16384"/>',
        attributes='table:number-rows-repeated="1048574" table:visibility="collapse"',
    )
    table = document(HEADER, clip_row(start_s=0, end_s=1, level=words("S")), rest)

    _, notices = import_files({"f.ods": table})

    assert "hidden" not in notices


def test_numbers_in_other_forms_show_no_more_than_their_number(import_files):
    """A decimal comma, groups of thousands and powers of ten are forms of the same number."""
    long_film = row(words("f"), number(1.5, "1,5"), number(1000, "1E+03"), words("S"))

    _, notices = import_files({"f.ods": document(HEADER, long_film)})

    assert "format" not in notices


def test_a_time_of_more_than_a_day_is_read(import_files):
    def clock(value):
        return f'<table:table-cell office:value-type="time" office:time-value="{value}"/>'

    table = document(HEADER, row(words("f"), clock("PT25H00M01S"), clock("PT26H00M00.5S"), words("S")))

    (clip,), _ = import_files({"f.ods": table})

    assert (clip.start_s, clip.end_s) == (90_001, 93_600.5)


def test_a_comment_on_a_cell_is_no_part_of_it(import_files):
    comment = "<office:annotation><text:p>#N/A?</text:p></office:annotation>"
    table = document(
        HEADER, clip_row(start_s=0, end_s=1, level=words("S").replace("<text:p>", f"{comment}<text:p>"))
    )

    (clip,), _ = import_files({"f.ods": table})

    assert clip.level == "S"


@pytest.mark.parametrize(
    ("cell", "n_rows"), [(NEVER_COMPUTED, 1_000_000), (words("S"), 300_000)], ids=["an error", "a level"]
)
def test_a_cell_repeated_very_often_is_refused(import_files, cell, n_rows):
    """Very many rows, written as one cell, would fill the memory."""
    often = row(cell, attributes=f'table:number-rows-repeated="{n_rows}"')

    with pytest.raises(ManifestError, match="repeated"):
        import_files({"f.ods": document(HEADER, often)})
