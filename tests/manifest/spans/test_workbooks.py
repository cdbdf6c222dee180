"""Workbooks: cells that people see otherwise, and sheets that cannot be read."""

import io
import zipfile
from contextlib import suppress

import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import read_manifest
from obygaze_features.manifest.text_tables import FIELDS, read_table
from tests.cpu_time import within_cpu_s
from tests.manifest.spans.files import patched, sheet

WORKBOOK_OF_TWO_CLIPS = sheet([["movie", "start_s", "end_s", "level"], ["a", 1, 5, "S"], ["a", 6, 7, "EN"]])
"""A workbook of two clips: S from 1 to 5 s of film a in row 2, and EN from 6 to 7 s in row 3."""


def test_merged_cells_are_noted_by_their_places(import_files):
    """The cells C2 and D2 of a workbook, the end and the level of its first clip, are merged.

    Of merged cells people see the text of the first alone, and the file may have texts in all.
    """
    merged = ("</sheetData>", '</sheetData><mergeCells><mergeCell ref="C2:D2"/></mergeCells>')
    _, notices = import_files({"a.xlsx": patched(WORKBOOK_OF_TWO_CLIPS, merged)})
    assert "C2:D2" in notices


def test_hidden_rows_are_noted(import_files):
    """Row 3 of the workbook, its second clip, is hidden. People do not see it, and it is read as others."""
    with_hidden_row = patched(WORKBOOK_OF_TWO_CLIPS, ('<row r="3">', '<row r="3" hidden="1">'))
    _, notices = import_files({"a.xlsx": with_hidden_row})
    assert "hidden" in notices


def book_with_note(note):
    """Write a workbook of one clip with a note."""
    return sheet([["movie", "start_s", "end_s", "level", "note"], ["a", 1, 5, "S", note]])


def test_a_cell_of_131072_characters_is_read_and_a_longer_one_refused_with_its_line(import_files):
    """A clip has a note of 131,072 characters, or of one more.

    It is the limit of cells of tables of text too, into which such a clip may be written.
    """
    longest_note = "n" * 131_072

    (clip,), _ = import_files({"a.xlsx": book_with_note(longest_note)})
    assert clip.extras["note"] == longest_note

    with pytest.raises(ManifestError, match=r"a\.xlsx: line 2: .*131,072"):
        import_files({"a.xlsx": book_with_note(longest_note + "n")})


LEVEL = '<c r="D2" t="inlineStr"><is><t>S</t></is></c>'
START = '<c r="B2"><v>1</v></c>'
"""The cells of the first clip's level and start in `WORKBOOK_OF_TWO_CLIPS`, as the workbook has them."""
UNREADABLE = {
    "an error": '<c r="{}" t="e"><v>#N/A</v></c>',
    "an error of a formula": '<c r="{}" s="1" t="e"><f>VLOOKUP(A1,B1:C9,2,0)</f><v>#REF!</v></c>',
    "an error in German": '<c r="{}" t="str"><f>A1</f><v>#WERT!</v></c>',
    "a formula that no spreadsheet computed": '<c r="{}"><f>A1</f></c>',
    "a formula with an empty value": '<c r="{}"><f>A1</f><v></v></c>',
    "a formula that many cells share": '<c r="{}"><f t="shared" si="0"/><v/></c>',
}


@pytest.mark.parametrize("unreadable_cell", UNREADABLE.values(), ids=UNREADABLE)
@pytest.mark.parametrize(
    ("cell", "place", "column"), [(LEVEL, "D2", "level"), (START, "B2", "start_s")], ids=["level", "start"]
)
def test_a_cell_that_cannot_be_read_is_refused_with_its_place(
    import_files, unreadable_cell, cell, place, column
):
    """In a workbook of two clips the cell of the first one's level, D2, or start, B2, cannot be read.

    It holds an error, such as #N/A, or a formula of which no value was computed. The refusal names its line
    and column.
    """
    with_unreadable_cell = patched(WORKBOOK_OF_TWO_CLIPS, (cell, unreadable_cell.format(place)))
    with pytest.raises(ManifestError, match=rf"a\.xlsx: line 2, column {column}: "):
        import_files({"a.xlsx": with_unreadable_cell})


def test_an_empty_text_that_a_formula_gives_is_an_empty_cell(import_files):
    """A formula such as IF(A1="x","S","") gives an empty text, here for the level of the first clip."""
    formula_of_empty_text = '<c r="D2" t="str"><f>A1</f><v></v></c>'

    (first, _), _ = import_files({"a.xlsx": patched(WORKBOOK_OF_TWO_CLIPS, (LEVEL, formula_of_empty_text))})

    assert first.level is None


def test_an_error_in_a_column_that_a_caller_needs_is_refused(tmp_path):
    """The caller needs the columns movie and year.

    The error in the note on line 2 is passed over, the one in the year on line 3 is not.
    """
    path = tmp_path / "facts.csv"
    path.write_text("movie,year,note\na,1999,#N/A\nb,#N/A,\n", encoding="utf-8")
    needed_columns = ("movie", "year")
    table = read_table(path, needed_columns)
    with pytest.raises(ManifestError, match=r"facts\.csv: line 3, column year"):
        list(table.checked())


def test_an_error_in_a_column_of_notes_is_kept_as_its_text(import_files):
    """The clip needs no note: it is read with the text of the error, and a notice names the cell, E2."""
    note = '<c r="E2" t="inlineStr"><is><t>x</t></is></c>'
    error = '<c r="E2" t="e"><v>#NAME?</v></c>'

    (clip,), notices = import_files({"a.xlsx": patched(book_with_note("x"), (note, error))})

    assert (clip.level, clip.extras["note"]) == ("S", "#NAME?")
    assert "E2" in notices


def notices_of_format(import_files, code):
    """Import two clips, the end of the first, 5, shown by a format of a number; return the notices."""
    pytest.importorskip("python_calamine")
    # Numbers from 164 on are formats that a workbook defines; style 1 of `sheet` uses it in place of 46.
    use_of_format = ('numFmtId="46"', 'numFmtId="164"')
    definition = f'<numFmts count="1"><numFmt numFmtId="164" formatCode="{code}"/></numFmts>'
    definition_before_styles = ("<cellXfs", f"{definition}<cellXfs")
    style_of_end = ('<c r="C2">', '<c r="C2" s="1">')
    _, notices = import_files(
        {"a.xlsx": patched(WORKBOOK_OF_TWO_CLIPS, use_of_format, definition_before_styles, style_of_end)}
    )
    return notices


@pytest.mark.parametrize("code", ["0.0&quot; min&quot;", "0.0\\ \\s", "0%", "000", "0.0,"])
def test_a_format_that_shows_more_than_a_number_is_noted(import_files, code):
    """The cell holds 5 and may show "5 min", "500%" or "005". What the person meant may differ from 5 s."""
    assert "shows more" in notices_of_format(import_files, code)


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("#,##0.0", id="a decimal and signs between thousands"),
        pytest.param("[$-407]0.0", id="a decimal as Germany writes it"),
        pytest.param("0.0_-", id="a decimal with room for a minus behind it"),
        pytest.param("[h]&quot; h &quot;mm", id="a clock of hours and minutes"),
    ],
)
def test_a_format_that_shows_nothing_but_a_number_or_a_clock_is_not_noted(import_files, code):
    """A cell of a workbook holds 5, and its format shows it as 5.0, or as a clock.

    A format that shows more than the number, such as "5.0 min", would be noted, as only the number is read.
    """
    assert "shows more" not in notices_of_format(import_files, code)


def clock(seconds):
    """A cell of a workbook that shows a clock: its value is the share of a day."""
    return ("time", seconds / 86_400)


def test_a_column_of_clocks_of_whole_minutes_is_noted(import_files):
    """A person who types 1:30 into a workbook may mean 1 min 30 s, and gets 1 h 30 min = 5400 s.

    The span is from 1:30 to 2:00.
    """
    workbook = sheet([["movie", "start_s", "end_s"], ["a", clock(seconds=5400), clock(seconds=7200)]])

    (clip,), notices = import_files({"a.xlsx": workbook})

    assert (clip.start_s, clip.end_s) == (5400, 7200)
    assert "whole minutes" in notices


def test_a_column_of_clocks_with_seconds_needs_no_note(import_files):
    """A person typed clocks into a workbook: a span from 1:30:00 to 2:00:30, which has seconds.

    So the first clock is an hour and a half, 5400 s, and no minute and a half.
    """
    workbook = sheet([["movie", "start_s", "end_s"], ["a", clock(seconds=5400), clock(seconds=7230)]])

    (clip,), notices = import_files({"a.xlsx": workbook})

    assert (clip.start_s, clip.end_s) == (5400, 7230)
    assert "whole minutes" not in notices


def test_a_sheet_whose_bytes_are_damaged_is_refused(import_files):
    """A workbook is a zip archive. The first bytes of the compressed data of its sheet are overwritten."""
    with pytest.raises(ManifestError, match=r"a\.xlsx.*damaged"):
        import_files({"a.xlsx": with_damaged_sheet(WORKBOOK_OF_TWO_CLIPS)})


@pytest.mark.parametrize(
    "properties", ["", '<workbookPr date1904="1"/>'], ids=["days since 1900", "days since 1904"]
)
def test_a_clock_of_more_than_a_day_is_read_from_its_number(import_files, properties):
    """A workbook keeps a time as a number of days: here 1.5 and 2.25 days.

    The cells' format, h:mm:ss, does not show whole days, and the workbook may count dates from 1900 or 1904:
    the number counts all the same. The first column is empty, which does no harm.
    """
    rows = [["", "movie", "start_s", "end_s"], ["", "a", ("time", 1.5), ("time", 2.25)]]
    with_format_of_a_clock = ('numFmtId="46"', 'numFmtId="21"')  # 21 is h:mm:ss
    with_properties = ("<sheets>", f"{properties}<sheets>")
    workbook = patched(sheet(rows), with_format_of_a_clock, with_properties)

    (clip,), notices = import_files({"a.xlsx": workbook})

    assert (clip.start_s, clip.end_s) == (1.5 * 86_400, 2.25 * 86_400)
    assert "more than a day" in notices


def test_a_sheet_of_notes_is_refused_with_the_columns_a_table_needs(import_files):
    """The only sheet has two lines of text in its first column."""
    notes = sheet([["Notes of this study"], ["by AB"]])
    with pytest.raises(ManifestError, match=r"a\.xlsx: .*columns start_s and end_s"):
        import_files({"a.xlsx": notes})


def with_sheet(content, name, rows):
    """Return a workbook with one sheet more, of these rows, in front."""
    return with_sheet_of(content, name, sheet(rows))


def with_sheet_of(content, name, other_book):
    """Add the only sheet of another workbook to a workbook of one sheet, as its first sheet."""
    kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet"
    first_sheet = ("<sheets>", f'<sheets><sheet name="{name}" sheetId="2" r:id="rId3"/>')
    last_relationship = 'Target="styles.xml"/>'
    relationship = f'<Relationship Id="rId3" Type="{kind}" Target="worksheets/sheet2.xml"/>'
    one_relationship_more = (last_relationship, last_relationship + relationship)
    with zipfile.ZipFile(io.BytesIO(other_book)) as other:
        sheet_xml = other.read("xl/worksheets/sheet1.xml")
    book = io.BytesIO(patched(content, first_sheet, one_relationship_more))
    with zipfile.ZipFile(book, "a") as parts:
        parts.writestr("xl/worksheets/sheet2.xml", sheet_xml)
    return book.getvalue()


def test_the_sheet_with_the_header_is_read_though_it_is_not_the_first(import_files):
    """The first sheet, "Read me", has no heading of a table of clips.

    It is left out, and a notice names it. The second sheet has two clips, of S and EN.
    """
    workbook = with_sheet(WORKBOOK_OF_TWO_CLIPS, "Read me", [["S", "Sure"]])

    clips, notices = import_files({"a.xlsx": workbook})

    assert [clip.level for clip in clips] == ["S", "EN"]
    assert "'Read me' left out" in notices


def test_sheets_of_one_header_may_name_the_films(import_files):
    """The sheets are called Gilda and Sheet1. The person says that the sheet is the movie."""
    second_sheet = sheet([["start_s", "end_s", "level"], [1, 5, "S"]])
    workbook = with_sheet(second_sheet, "Gilda", [["start_s", "end_s", "level"], [6, 7, "EN"]])

    clips, notices = import_files({"a.xlsx": workbook}, columns={"movie": ["sheet"]})

    assert [(clip.movie, clip.level) for clip in clips] == [("Gilda", "EN"), ("Sheet1", "S")]
    assert "read together" in notices


@pytest.mark.parametrize("target", ["worksheets/sheet1.xml", "/xl/worksheets/SHEET1.xml"])
def test_sheets_that_share_one_part_are_refused(import_files, target):
    """A workbook of some kilobytes could name a large part very often, and have it read each time.

    Here the second of two sheets is the part of the first one again.
    """
    workbook = patched(with_sheet(WORKBOOK_OF_TWO_CLIPS, "Again", [["S"]]), ("worksheets/sheet2.xml", target))
    with pytest.raises(ManifestError, match="damaged"):
        import_files({"a.xlsx": workbook})


OTHER_HEADINGS = [["film", "start_s", "end_s", "level"], ["a", 1, 5, "S"]]
"""A table that is not read together with `WORKBOOK_OF_TWO_CLIPS`, as it has film in place of movie."""


def test_ten_sheets_that_are_left_out_are_named(import_files):
    """Behind the first sheet, which is read, are ten with other headings. A notice names each of them."""
    _, notices = import_files({"a.xlsx": with_further_sheets(WORKBOOK_OF_TWO_CLIPS, 10, OTHER_HEADINGS)})
    assert notices.count("left out") == 10
    assert "more sheets left out" not in notices


def test_of_more_sheets_that_are_left_out_ten_are_named_and_the_others_counted(import_files):
    """Of 38 sheets with other headings, 10 have a line each, and one line more counts the other 28."""
    _, notices = import_files({"a.xlsx": with_further_sheets(WORKBOOK_OF_TWO_CLIPS, 38, OTHER_HEADINGS)})
    assert notices.count("left out") == 10 + 1
    assert "28 more sheets left out" in notices


def test_the_sheet_with_all_headings_is_read_not_its_legend(import_files):
    """The legend in front has only the heading Code. The other sheet has all four that the person names."""
    clips_sheet = sheet([["Film", "Start", "End", "Code"], ["a", 1, 5, "S"], ["a", 6, 7, "EN"]])
    workbook = with_sheet(clips_sheet, "Codes", [["Code", "Meaning"], ["S", "sure"]])
    columns = {"movie": ["Film"], "start_s": ["Start"], "end_s": ["End"], "level": ["Code"]}

    clips, _ = import_files({"a.xlsx": workbook}, columns=columns)

    assert [clip.level for clip in clips] == ["S", "EN"]


def test_merged_cells_of_a_column_all_have_the_first_text(import_files):
    """A workbook keeps the text of merged cells in the first of them only.

    People see it beside each of the rows.
    """
    rows = [["movie", "start_s", "end_s", "level", "annotator"], ["a", 1, 5, "S", "AB"], ["a", 6, 7, "EN"]]
    merged = ("</sheetData>", '</sheetData><mergeCells><mergeCell ref="E2:E3"/></mergeCells>')

    clips, _ = import_files({"a.xlsx": patched(sheet(rows), merged)})

    assert [clip.annotator for clip in clips] == ["AB", "AB"]


def test_a_cell_of_a_manifest_that_cannot_be_read_is_refused(tmp_path):
    """In a manifest that is a workbook, the level of the only clip is a formula without a value.

    No spreadsheet has computed it, as in files that a program wrote. A warning names the cell, F2, and the
    error its line.
    """
    book = sheet([[*FIELDS], ["a", "f", "", 0, 5, "S", "", ""]])
    level = '<c r="F2" t="inlineStr"><is><t>S</t></is></c>'
    formula = '<c r="F2"><f>A1</f></c>'
    path = tmp_path / "films.xlsx"
    path.write_bytes(patched(book, (level, formula)))
    with (
        pytest.warns(UserWarning, match=r"films\.xlsx: .*F2"),
        pytest.raises(ManifestError, match=r"films\.xlsx: line 2, column level"),
    ):
        read_manifest(path)


def repacked(book, changes=(), compression=zipfile.ZIP_DEFLATED):
    """Write the parts of a workbook anew; `changes` gives parts other contents, or adds them, by name."""
    with zipfile.ZipFile(io.BytesIO(book)) as old:
        parts = {name: old.read(name) for name in old.namelist()}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as new:
        for name, content in (parts | dict(changes)).items():
            new.writestr(name, content)
    return out.getvalue()


def packed(book):
    """Compress a workbook, as programs do."""
    return repacked(book)


def with_damaged_sheet(book):
    """Overwrite the first bytes of the compressed data of a workbook's only sheet."""
    name = "xl/worksheets/sheet1.xml"
    damaged = bytearray(packed(book))
    with zipfile.ZipFile(io.BytesIO(damaged)) as archive:
        header = archive.getinfo(name).header_offset
    data = header + 30 + len(name)  # a header has 30 bytes and the name of the part
    damaged[data : data + 9] = b"\xff" * 9
    return bytes(damaged)


def with_sheet_elsewhere(book):
    """Move the only sheet of a workbook out of the folder where programs keep sheets."""
    moved = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(book)) as old, zipfile.ZipFile(moved, "w") as new:
        for name in old.namelist():
            content = old.read(name).decode()
            if name == "xl/worksheets/sheet1.xml":
                new.writestr("xl/elsewhere.xml", content)
            else:
                new.writestr(name, content.replace("worksheets/sheet1.xml", "elsewhere.xml"))
    return moved.getvalue()


def with_further_sheets(book, n, rows):
    """Add n sheets behind the one of a workbook, named Sheet 2, Sheet 3 and so on, all of these rows."""
    with zipfile.ZipFile(io.BytesIO(sheet(rows))) as further:
        sheet_xml = further.read("xl/worksheets/sheet1.xml")
    kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet"
    listed = ""
    relationships = ""
    parts = {}
    for number in range(2, n + 2):
        name = f"Sheet {number}"
        listed += f'<sheet name="{name}" sheetId="{number}" r:id="{name}"/>'
        relationships += f'<Relationship Id="{name}" Type="{kind}" Target="worksheets/{name}.xml"/>'
        parts[f"xl/worksheets/{name}.xml"] = sheet_xml
    book_with_list = patched(
        book,
        ("</sheets>", f"{listed}</sheets>"),
        ("</Relationships>", f"{relationships}</Relationships>"),
    )
    return repacked(book_with_list, parts, zipfile.ZIP_STORED)  # as `sheet` writes them


FAR = '<row r="400000"><c r="AW400000"><v>1</v></c></row>'
HOSTILE_SHEETS = {
    "an attribute again and again": ("</worksheet>", "<x " + 'r="a" ' * 60_000 + "></worksheet>"),
    "a name again and again": ("</worksheet>", "<x " + "mergeCell " * 60_000 + "></worksheet>"),
    "cells that never end": ("</sheetData>", "<c " * 60_000),
    "styles that never end": ("</sheetData>", '<c s="1" ' * 60_000),
    "rows in one tag": ("</sheetData>", "<row " + 'r="1" ' * 60_000 + "/></sheetData>"),
    "a far cell": ("</sheetData>", f"{FAR}</sheetData>"),
    "a far cell in small letters": ("</sheetData>", f"{FAR.replace('AW', 'aw')}</sheetData>"),
    "a far cell without a place": ("</sheetData>", "<row>" + "<c/>" * 20_000 + "</row></sheetData>"),
    "a long text": ("<is><t>a</t>", f"<is><t>{'a' * 20_000_000}</t>"),
    "a longer text": ("<is><t>a</t>", f"<is><t>{'a' * 80_000_000}</t>"),
    "another element first": ("<worksheet", "<a></a><worksheet"),
    "another root": ("<worksheet", "<a><worksheet"),
    "entities": ("<worksheet", '<!DOCTYPE x [<!ENTITY a "aaaa">]><worksheet'),
}


@pytest.mark.long
@pytest.mark.parametrize(("before", "after"), HOSTILE_SHEETS.values(), ids=HOSTILE_SHEETS)
def test_sheets_that_are_made_to_take_long_are_refused_in_3_s(import_files, before, after):
    """In the XML of a workbook's sheet, `before` is replaced by something that takes long to read.

    Such are 60,000 attributes, a text of 80 million letters, or a cell in a row so far below that a table up
    to there would fill the memory. Each must be refused by the file's name within 3 s of CPU.
    """
    hostile_workbook = packed(patched(WORKBOOK_OF_TWO_CLIPS, (before, after)))

    with within_cpu_s(limit_s=3), pytest.raises(ManifestError, match=r"a\.xlsx"):
        import_files({"a.xlsx": hostile_workbook})


def test_a_sheet_outside_of_its_usual_folder_is_refused_for_its_size_too(import_files):
    """The sheet has a cell in row 400,000. Its XML does not lie in the folder xl/worksheets."""
    cell_in_row_400_000 = '<row r="400000"><c r="AW400000"><v>1</v></c></row>'
    workbook = patched(WORKBOOK_OF_TWO_CLIPS, ("</sheetData>", f"{cell_in_row_400_000}</sheetData>"))
    with pytest.raises(ManifestError, match="400,000 rows"):
        import_files({"a.xlsx": with_sheet_elsewhere(workbook)})


@pytest.mark.long
def test_many_errors_in_a_sheet_take_time_in_proportion(import_files):
    """A sheet has nearly 10,000 rows with an error, #N/A, each. It is read, or refused, within 3 s of CPU.

    If each error were compared with all others, that would take longer.
    """
    rows_with_errors = ""
    for number in range(4, 10_000):
        rows_with_errors += f'<row r="{number}"><c r="A{number}" t="e"><v>#N/A</v></c></row>'
    workbook = packed(patched(WORKBOOK_OF_TWO_CLIPS, ("</sheetData>", f"{rows_with_errors}</sheetData>")))

    with within_cpu_s(limit_s=3), suppress(ManifestError):
        import_files({"a.xlsx": workbook})


def book_of_two_sheets(far_cell=""):
    """A workbook of two sheets with one header, of 500 rows and of one.

    In the first, which is the short one, the row may have a further cell on the right.
    """
    header = ["movie", "start_s", "end_s", "level"]
    many_rows = sheet([header, *(["a", second, second + 1, "S"] for second in range(500))])
    one_row = sheet([header, ["b", 1, 5, "EN"]])
    if far_cell:
        text = f'<c r="{far_cell}2" t="inlineStr"><is><t>x</t></is></c>'
        one_row = patched(one_row, ("</row></sheetData>", f"{text}</row></sheetData>"))
    return with_sheet_of(many_rows, "B", one_row)


@pytest.mark.parametrize("far_cell", ["", "G"])
def test_sheets_of_one_header_are_read_together(import_files, far_cell):
    """The sheets "Sheet1" and "B" of a workbook have the same header, and 500 clips and one.

    They are read as one table. One of them may have a lone cell far to the right of the header, in column G,
    which is none of the header.
    """
    clips, _ = import_files({"a.xlsx": book_of_two_sheets(far_cell)})
    assert len(clips) == 501
    assert {clip.extras.get("sheet") for clip in clips} == {"B", "Sheet1"}


def test_one_long_row_of_a_sheet_does_not_lengthen_the_rows_of_others(import_files):
    """The one row of the first sheet has a cell in column XAA, which is number 16,251.

    Else the 500 rows of the other sheet would have as many cells each, and be refused for their memory.
    """
    workbook = packed(book_of_two_sheets(far_cell="XAA"))
    with pytest.raises(ManifestError, match="columns, where at most 1,000 are read"):
        import_files({"a.xlsx": workbook})


@pytest.mark.long
def test_many_styles_and_many_parts_take_time_in_proportion_to_their_sum(import_files):
    """A workbook is an archive of parts, of which one lists the styles of cells: here 50,000 in 3000 parts.

    Styles are worked out once. Once for each part would take longer than the 2 s of CPU that are allowed.
    """
    with zipfile.ZipFile(io.BytesIO(WORKBOOK_OF_TWO_CLIPS)) as book:
        styles = book.read("xl/styles.xml").decode()
    many_styles = styles.replace("</cellXfs>", '<xf numFmtId="0"/>' * 50_000 + "</cellXfs>")
    many_parts = {f"xl/part{number}.xml": "<part/>" for number in range(3_000)}
    workbook = repacked(WORKBOOK_OF_TWO_CLIPS, {"xl/styles.xml": many_styles, **many_parts})

    with within_cpu_s(limit_s=2):
        clips, _ = import_files({"a.xlsx": workbook})

    assert clips
