"""Go through the parts of a workbook once: how large its sheets are, and cells that people see otherwise.

A library reads the values. It makes room for every cell up to the last, and says nothing of errors, formulas
without a value, merged and hidden cells; so each part is parsed here first, a piece at a time.
"""

import re
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Final, NamedTuple
from xml.parsers import expat

from obygaze_features.cells import NEVER_COMPUTED, is_unreadable
from obygaze_features.errors import ObygazeError
from obygaze_features.text import counted

MAX_BYTES: Final = 1 << 28
"""Most bytes of all parts of a workbook, unpacked."""
FREE_BYTES: Final = 1 << 25
MAX_PACKING: Final = 100
"""Bytes that any workbook may have unpacked, and how many times its own size a larger one: sheets of programs
are packed to a tenth or a twentieth, those that are made to fill the memory to a thousandth."""
FREE_CELLS: Final = 2_000_000
MAX_EMPTY: Final = 10
"""Cells that any sheet may have up to its last one, and how many for each that is written a larger one."""
FREE_REPEATED: Final = 100_000
MAX_REPEATED: Final = 100
"""Cells with a value that any document may have by repeating some, and how many for each that is written."""
MAX_CELLS: Final = 20_000_000
MAX_ROWS: Final = 1 << 20
MAX_COLUMNS: Final = 1 << 14
"""Of a sheet, by ECMA-376."""
PIECE_BYTES: Final = 1 << 16
MAX_TEXT: Final = 100
"""Characters that are kept of the text of an error."""
SHOWN_PLACES: Final = 3

RELATIONS: Final = "xl/_rels/workbook.xml.rels"
WORKBOOK: Final = "xl/workbook.xml"
CONTENT_TYPES: Final = "[Content_Types].xml"
DOCUMENT: Final = "content.xml"
"""Part of a spreadsheet of OpenDocument with all of its sheets."""
MAX_DIGITS: Final = 9
"""Most digits of a number of repetitions."""
CELLS: Final = b"sheetData"
"""Element in which a sheet has its cells."""
OTHER_KINDS: Final = {"mimetype", "content.xml", "xl/workbook.bin"}
"""Parts of workbooks of other kinds, which the library would read as such."""

# What notes say of cells that people see otherwise than they are read.
ERRORS: Final = "that cannot be read, of an error"
UNCOMPUTED: Final = "that cannot be read, of a formula never computed"
MERGED: Final = "merged across columns, of which the first alone has a value"
HIDDEN: Final = "of hidden rows or columns, read as the others"
STYLED: Final = "whose format shows more than their number, which is read"
PER_CENT: Final = {"9", "10"}
"""Formats of per cent that every workbook has, by their numbers."""
_SHOWS_MORE = re.compile(
    r'(?!(?>"[^"]*"|\\.|\[[^\]]{,99}\]|[^"dhmsyDHMSY])*+[dhmsyDHMSY])'
    r'(?:00|.*(?:%|(?:\\|"[^"]*)[^\W\d_]|[0#?],++(?:[^0#?]|$)))',
    re.DOTALL,
)
"""A format, of no date, with zeros in front, per cent, words, or in thousands."""
NUMBERS_OF_DOCUMENTS: Final = {"float", "percentage", "currency"}
"""Types of values of OpenDocument that are numbers."""
_SHOWS_WORDS = re.compile(r"%|[^\W\d_]{2}|[^\W\d_](?![+-]?\d)|\A0\d")
"""A number as people see it with a per cent sign, words or zeros in front; the E of 1E+05 is no word."""
MAX_DIGITS_OF_LINE: Final = 7
"""Digits of the number of a row: `MAX_ROWS` has seven."""
_PLACE = re.compile(rf"([A-Za-z]{{1,3}})([0-9]{{1,{MAX_DIGITS_OF_LINE}}})")
"""A cell's place, such as "B7": its column in letters and its line."""


class DamagedPartError(ObygazeError):
    """A part is no XML, or not of the kind that was expected."""


class TooLargeError(ObygazeError):
    """A workbook, or a sheet of it, would need much memory."""


class Cell(NamedTuple):
    """A cell that cannot be read: its line from 1, its column from 0, and what is shown in its place."""

    line: int
    column: int
    text: str


@dataclass
class Places:
    """The first places of something, and how many there are."""

    first: list[str] = field(default_factory=list)
    n: int = 0

    def add(self, place: str) -> None:
        """Count a place, such as "B7"; the first `SHOWN_PLACES` are stored."""
        self.n += 1
        if self.n <= SHOWN_PLACES:
            self.first.append(place)

    def line(self) -> str:
        """Return the first places as text, followed by the number of the others."""
        shown = ", ".join(self.first)
        n_hidden = self.n - len(self.first)
        return f"{shown} and {n_hidden:,} more" if n_hidden else shown


class Merged(NamedTuple):
    """Cells of one column that are merged: the first and the last line, from 1, and the column, from 0."""

    first_line: int
    last_line: int
    column: int


@dataclass(frozen=True)
class SheetFacts:
    """What the values of a sheet do not say: cells that cannot be read, and that are merged in a column."""

    unreadable: Sequence[Cell] = ()
    merged: Sequence[Merged] = ()


NO_FACTS: Final = SheetFacts()


@dataclass
class Parts:
    """What is known of a workbook before its values are read.

    Parameters
    ----------
    sheets
        Name of a sheet -> what is known of it.
    notes
        Cells that people see otherwise than they are read.
    """

    sheets: Mapping[str, SheetFacts]
    notes: list[str]


def read_parts(archive: zipfile.ZipFile, packed_bytes: int) -> Parts:
    """Read from an Excel workbook what the library for cells does not tell, and check its size.

    It returns cells with errors and merged cells of each sheet, and notes on cells that look different to
    people.

    Parameters
    ----------
    archive
        The workbook as a zip.
    packed_bytes
        Size of the workbook in bytes.

    Raises
    ------
    DamagedPartError, ValueError
        A part is damaged, is there twice, or belongs to a file of another kind.
    TooLargeError
        Reading it would need much memory.
    """
    members = archive.infolist()
    _refuse_packing(members, packed_bytes)
    names = [member.filename for member in members]
    has_repeated_names = len(set(names)) < len(names)
    is_of_another_kind = not OTHER_KINDS.isdisjoint(names)
    if has_repeated_names or is_of_another_kind:
        raise DamagedPartError
    places_of_note = _no_places()  # `_read_sheets` adds places
    sheet_by_part_name = _read_sheets(archive, members, places_of_note)
    location = "cells of any sheet" if len(sheet_by_part_name) > 1 else "cells"
    # A part with cells does not say the name of its sheet; another part lists both.
    facts_of_sheet = {}
    for sheet_name, part_name in _part_of_sheet(archive).items():
        sheet = sheet_by_part_name.get(part_name)
        if sheet is not None:
            facts_of_sheet[sheet_name] = SheetFacts(sheet.unreadable, sheet.merged)
    return Parts(facts_of_sheet, _notes(location, places_of_note))


def _no_places() -> dict[str, Places]:
    """Return the notes that there may be on cells, without places yet."""
    return {note: Places() for note in (ERRORS, UNCOMPUTED, MERGED, HIDDEN, STYLED)}


def _notes(location: str, places_of_note: Mapping[str, Places]) -> list[str]:
    """Return the notes that have places; `location` says of which sheets the cells are."""
    return [f"{location} {note}: {places.line()}" for note, places in places_of_note.items() if places.n]


def _read_sheets(
    archive: zipfile.ZipFile, members: Sequence[zipfile.ZipInfo], places_of_note: Mapping[str, Places]
) -> dict[str, "_Sheet"]:
    """Read all parts of a workbook that are sheets: name of the part -> the sheet.

    Each part is parsed as a sheet. If it is no XML, or its first element is not `worksheet`, then it is no
    sheet, and must have no cells: the library that reads the values might take it for a sheet all the same,
    whose size nobody has checked.

    Parameters
    ----------
    archive, members
        The workbook as a zip, and its members.
    places_of_note
        Note -> places of the cells that it is about; those of all sheets are added to it.

    Raises
    ------
    DamagedPartError
        A sheet is damaged.
    TooLargeError
        A sheet would need much memory, as few of its cells lie far from each other.
    ValueError
        A part that is no sheet has cells.
    """
    formats = _Formats()
    for member in members:
        if member.filename.endswith("styles.xml"):
            _parse(archive.open(member), formats.start, formats.end)
    # This is done once, not for each part: a workbook may have thousands of styles and thousands of parts.
    styles_showing_more = formats.styles_showing_more()

    sheets: dict[str, _Sheet] = {}
    for member in members:
        sheet = _Sheet(styles_showing_more, places_of_note)  # adds its places to `places_of_note`
        try:
            _parse(archive.open(member), sheet.start, sheet.end, sheet.text)
        except DamagedPartError:  # also if the first element is not that of a sheet
            if sheet.is_sheet:
                raise
            _refuse_cells(archive.open(member))
            continue
        sheet.refuse_distant_cells()
        sheets[member.filename] = sheet
    return sheets


def read_document_parts(archive: zipfile.ZipFile, packed_bytes: int) -> Parts:
    """Read from a spreadsheet of OpenDocument what the library for cells does not tell, and check its size.

    It tells the same as `read_parts` does of an Excel workbook, so that a table says the same however it was
    saved. Such a file can repeat a cell or row any number of times by stating a number.

    Parameters
    ----------
    archive
        The spreadsheet as a zip.
    packed_bytes
        Size of the file in bytes.

    Raises
    ------
    DamagedPartError, ValueError
        It has no part with cells, or parts of a workbook of another kind, or a part is no XML.
    TooLargeError
        It would need much memory.
    """
    members = archive.infolist()
    _refuse_packing(members, packed_bytes)
    names = [member.filename for member in members]
    has_repeated_names = len(set(names)) < len(names)
    is_of_another_kind = any(name.startswith("xl/") for name in names) or CONTENT_TYPES in names
    if has_repeated_names or is_of_another_kind or DOCUMENT not in names:
        raise DamagedPartError
    document = _Document()
    _parse(archive.open(DOCUMENT), document.start, document.end, document.text)
    document.refuse_repetition()
    location = "cells of any sheet" if len(document.sheets) > 1 else "cells"
    return Parts(document.facts_of_sheet(), _notes(location, document.places_of_note))


class _RepeatedCell(NamedTuple):
    """A cell of OpenDocument that cannot be read, and how often it is repeated to the right and downwards."""

    cell: Cell
    n_columns: int
    n_rows: int


class _DocumentSheet(NamedTuple):
    """What is known of a sheet of OpenDocument so far."""

    unreadable: list[_RepeatedCell]
    merged: list[Merged]


class _Document:
    """What is known of a spreadsheet of OpenDocument, which grows as `start`, `end` and `text` are called.

    Source: OpenDocument 1.3, part 3, chapter 9. A cell has its value in attributes, and in its paragraphs the
    text that people see. Cells below or beside the first one of merged cells are called *covered*.

    A file may write a column, row or cell once and state how often it is repeated. So the place of the next
    one is the place of the current one plus its number of repetitions. Each element is known in full only at
    its end: `_begin_column`, `_begin_row` and `_begin_cell` store what is known of the current one in
    attributes of this object, and `_end_cell` and `_end_row` use it.

    Attributes
    ----------
    sheets
        Name of a sheet -> its cells that cannot be read, and its merged cells.
    places_of_note
        Note -> the places of cells that it is about.
    """

    def __init__(self) -> None:
        """Begin a document without sheets."""
        self.sheets: dict[str, _DocumentSheet] = {}
        self.places_of_note = _no_places()
        # Cells with a value, of all sheets.
        self._n_written = 0  # as the file writes them: each counted once
        self._n_after_repetition = 0  # each counted as often as it is repeated; of the rows that have ended
        # The current sheet and row.
        self._sheet = _DocumentSheet([], [])
        self._line = 0  # number of the first of the row's repetitions, from 1; 0 before the first row
        self._n_rows = 1  # how many rows the current one stands for, downwards
        self._is_row_hidden = False
        self._n_cells_of_row = 0  # its cells with a value, repeated to the right, but not downwards
        # The current cell of the row; or the current column, as a sheet describes columns before its rows.
        self._column = 0  # index of the first of its repetitions, from 0
        self._n_columns = 0  # how many cells or columns it stands for, to the right; 0 before the first
        self._attributes: Mapping[str, str] = {}  # of the cell
        self._shown = ""  # the beginning of the text that people see in the cell
        # Where the parser is. People see the text of paragraphs in a cell, but not that of a comment on it.
        self._n_paragraphs_open = 0
        self._is_in_comment = False

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """Read an element that begins: a sheet, column, row, cell, paragraph or comment."""
        tag = _local(name)
        value_of = {_local(key): value for key, value in attributes.items()}
        if tag == "table":
            self._begin_sheet(value_of.get("name", ""))
        elif tag == "table-column":
            self._begin_column(value_of)
        elif tag == "table-row":
            self._begin_row(value_of)
        elif tag in {"table-cell", "covered-table-cell"}:
            self._begin_cell(value_of)
        elif tag == "annotation":  # a comment on a cell, which is no part of its text
            self._is_in_comment = True
        elif tag == "p":  # a paragraph, which `end` closes
            self._n_paragraphs_open += 1

    def end(self, name: str) -> None:
        """Read the end of an element: of a cell, row, paragraph or comment."""
        tag = _local(name)
        if tag in {"table-cell", "covered-table-cell"}:
            self._end_cell()
        elif tag == "table-row":
            self._end_row()
        elif tag == "annotation":
            self._is_in_comment = False
        elif tag == "p":
            self._n_paragraphs_open -= 1

    def text(self, text: str) -> None:
        """Read a piece of text; if people see it in a cell, add its beginning to what is stored of the cell.

        The parser gives a long text in pieces. Only an error's name is looked for, which is short. So of each
        piece at most `MAX_TEXT` characters are added, and nothing once that many are stored. What is stored
        is therefore shorter than twice `MAX_TEXT`, however long the text of the cell is.
        """
        is_shown = self._n_paragraphs_open > 0 and not self._is_in_comment
        if is_shown and len(self._shown) < MAX_TEXT:
            self._shown += text[:MAX_TEXT]

    def _begin_sheet(self, name: str) -> None:
        """Begin a sheet, in which no column, row or cell was read yet."""
        self._sheet = _DocumentSheet(unreadable=[], merged=[])
        self.sheets[name] = self._sheet
        self._line = 0
        self._n_rows = 1
        self._begin_line_of_cells()

    def _begin_line_of_cells(self) -> None:
        """Let the next cell, or the next description of a column, be the first from the left."""
        self._column = 0
        self._n_columns = 0

    def _move_to_next_column(self, attributes: Mapping[str, str]) -> None:
        """Set the place of a cell or column that begins: behind all repetitions of the one before."""
        self._column += self._n_columns
        self._n_columns = _parse_repetitions(attributes.get("number-columns-repeated", "1"))

    def _begin_column(self, attributes: Mapping[str, str]) -> None:
        """Read the description of a column, or of equal columns side by side; note it if it is hidden.

        Of several equal columns, the note names the first.
        """
        self._move_to_next_column(attributes)
        if attributes.get("visibility", "visible") != "visible":
            self.places_of_note[HIDDEN].add(_letters_of(self._column))

    def _begin_row(self, attributes: Mapping[str, str]) -> None:
        """Store the line of a row that begins, and whether it is hidden."""
        is_first_row = self._line == 0
        if is_first_row:
            self._line = 1
        else:
            self._line += self._n_rows  # behind all repetitions of the row before
        self._n_rows = _parse_repetitions(attributes.get("number-rows-repeated", "1"))
        self._n_cells_of_row = 0
        self._begin_line_of_cells()
        self._is_row_hidden = attributes.get("visibility", "visible") != "visible"

    def _end_row(self) -> None:
        """Count the cells with a value of a row that ends, and note the row if it is hidden and has any.

        A hidden row without values is not noted: people hide the empty rest of a sheet.
        """
        self._n_after_repetition += self._n_cells_of_row * self._n_rows
        if self._is_row_hidden and self._n_cells_of_row:
            self.places_of_note[HIDDEN].add(str(self._line))

    def _begin_cell(self, attributes: Mapping[str, str]) -> None:
        """Store the place of a cell that begins, and count it if it has a value.

        Raises
        ------
        TooLargeError
            If the document has too many cells with this one, counted as often as they are repeated.
        """
        self._move_to_next_column(attributes)
        self._attributes = attributes
        self._shown = ""
        has_value = "value-type" in attributes
        if not has_value:
            return
        self._n_written += 1
        self._n_cells_of_row += self._n_columns
        n_cells_so_far = self._n_after_repetition + self._n_cells_of_row * self._n_rows
        if n_cells_so_far > MAX_CELLS:
            raise TooLargeError(f"a workbook of more than {MAX_CELLS:,} cells; save its table as CSV")

    def _end_cell(self) -> None:
        """Store a cell that ends if it cannot be read or is merged, and note what people see otherwise."""
        self._check_value_of_cell()
        self._store_merged_cells()

    def _check_value_of_cell(self) -> None:
        """Note the current cell if its value cannot be read, or if people see more than a number."""
        place = f"{_letters_of(self._column)}{self._line}"
        has_value = "value-type" in self._attributes
        is_number = self._attributes.get("value-type") in NUMBERS_OF_DOCUMENTS
        if is_unreadable(self._shown):
            self._add_unreadable(self._shown)
            self.places_of_note[ERRORS].add(place)
        elif "formula" in self._attributes and not has_value:
            self._add_unreadable(NEVER_COMPUTED)
            self.places_of_note[UNCOMPUTED].add(place)
        elif is_number and _SHOWS_WORDS.search(self._shown):
            self.places_of_note[STYLED].add(place)

    def _store_merged_cells(self) -> None:
        """Read whether other cells are merged with the current one.

        If they are all in its column, they get its value later, and are stored for that. If they reach into
        other columns, they are only noted: their values would be of columns with other names.
        """
        n_lines = _parse_repetitions(self._attributes.get("number-rows-spanned", "1"))
        n_columns = _parse_repetitions(self._attributes.get("number-columns-spanned", "1"))
        last_line = self._line + n_lines - 1
        if n_columns > 1:
            first_place = f"{_letters_of(self._column)}{self._line}"
            last_place = f"{_letters_of(self._column + n_columns - 1)}{last_line}"
            self.places_of_note[MERGED].add(f"{first_place}:{last_place}")
        elif n_lines > 1:
            self._sheet.merged.append(Merged(self._line, last_line, self._column))

    def _add_unreadable(self, text: str) -> None:
        """Store the current cell as one that cannot be read; `text` is shown in its place."""
        cell = Cell(self._line, self._column, text)
        self._sheet.unreadable.append(_RepeatedCell(cell, self._n_columns, self._n_rows))

    def refuse_repetition(self) -> None:
        """Raise a TooLargeError if few cells are repeated very often.

        A small file could fill the memory so. Two kinds of cells are kept in memory as often as they are
        repeated: those with a value, and those that cannot be read, which may have no value. `FREE_REPEATED`
        of either kind are allowed in any document; more only if the file writes one cell for each
        `MAX_REPEATED` of them.
        """
        n_unreadable = 0
        for sheet in self.sheets.values():
            n_unreadable += sum(cell.n_columns * cell.n_rows for cell in sheet.unreadable)
        n_cells = max(self._n_after_repetition, n_unreadable)
        n_allowed = max(FREE_REPEATED, MAX_REPEATED * self._n_written)
        if n_cells > n_allowed:
            what = f"a workbook of {self._n_written:,} cells, repeated to {n_cells:,}"
            raise TooLargeError(f"{what}; save its table as CSV")

    def facts_of_sheet(self) -> dict[str, SheetFacts]:
        """Return what is known of each sheet, by its name, with each repeated cell in all of its places."""
        facts = {}
        for name, sheet in self.sheets.items():
            unreadable = []
            for repeated in sheet.unreadable:
                line, column, text = repeated.cell
                for row in range(line, line + repeated.n_rows):
                    unreadable += [Cell(row, column + index, text) for index in range(repeated.n_columns)]
            facts[name] = SheetFacts(unreadable, sheet.merged)
        return facts


def _parse_repetitions(text: str) -> int:
    """Parse the number of times that a cell or row is repeated."""
    if not text.isdecimal() or len(text) > MAX_DIGITS:
        raise DamagedPartError
    return int(text)


def _refuse_packing(members: Sequence[zipfile.ZipInfo], packed_bytes: int) -> None:
    """Raise a TooLargeError if a workbook would be too large when it is unpacked."""
    size = sum(member.file_size for member in members)
    if size > MAX_BYTES:
        raise TooLargeError(f"a workbook of more than {MAX_BYTES >> 20} MB; save the sheet as CSV")
    if size > max(FREE_BYTES, MAX_PACKING * packed_bytes):
        raise TooLargeError(
            f"a workbook of {packed_bytes:,} bytes that unpacks to {size >> 20} MB; save the sheet as CSV"
        )


def _part_of_sheet(archive: zipfile.ZipFile) -> dict[str, str]:
    """Return which part of the archive holds each sheet: name of the sheet -> name of the part.

    Raises
    ------
    DamagedPartError
        Two sheets have one name, or one part.
    """
    target_of_relation = {}  # id of a relation -> path of the part that it leads to
    for relation in _elements(archive, RELATIONS, "Relationship"):
        target_of_relation[relation.get("Id", "")] = relation.get("Target", "")

    part_of_sheet: dict[str, str] = {}
    parts_before = set[str]()  # in small letters
    for sheet in _elements(archive, WORKBOOK, "sheet"):
        target = target_of_relation.get(_relation_id(sheet), "")
        is_absolute = target.startswith("/")  # else the path begins in the folder of the workbook
        part = target.removeprefix("/") if is_absolute else f"xl/{target}"
        name = sheet.get("name", "")
        # The library finds parts without regard to case, and would read one again for each sheet that has it.
        has_part_of_another = target != "" and part.casefold() in parts_before
        if name in part_of_sheet or has_part_of_another:
            raise DamagedPartError
        part_of_sheet[name] = part
        parts_before.add(part.casefold())
    return part_of_sheet


def _relation_id(sheet: Mapping[str, str]) -> str:
    """Return the attribute `r:id` of a sheet, whatever its prefix is; "" if it has none."""
    for name, value in sheet.items():
        if name.endswith(":id"):
            return value
    return ""


def _elements(archive: zipfile.ZipFile, part: str, tag: str) -> list[dict[str, str]]:
    """Return the attributes of all elements with a tag in a part of a workbook; prefixes are ignored."""
    elements: list[dict[str, str]] = []

    def start(name: str, attributes: dict[str, str]) -> None:
        """Store the attributes of an element that has the tag."""
        if _local(name) == tag:
            elements.append(attributes)

    def end(_name: str) -> None:
        """Do nothing at the end of an element."""

    if part in archive.namelist():
        _parse(archive.open(part), start, end)
    return elements


@dataclass
class _Formats:
    """The formats of a workbook's cells, out of its part `styles.xml` (ECMA-376, 18.8).

    The part first has formats of numbers, such as ``0.0"s"``, each with an id. Then a list of styles, in
    ``cellXfs``, names the format of each by its id. A cell names its style by the place in that list.

    Attributes
    ----------
    formats_showing_more : set of str
        Ids of formats that show more than the number that a cell holds, such as a unit or a per cent sign.
    format_of_style : list of str
        Id of the format of each style of cells.
    is_in_styles : bool
        Whether the parser is inside the list of styles of cells.
    """

    formats_showing_more: set[str] = field(default_factory=lambda: set(PER_CENT))
    format_of_style: list[str] = field(default_factory=list)
    is_in_styles: bool = False

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """Read an element of styles.xml that begins: a number format, the list of styles, or a style."""
        tag = _local(name)
        if tag == "numFmt":  # a format of numbers
            if _SHOWS_MORE.match(attributes.get("formatCode", "")):
                self.formats_showing_more.add(attributes.get("numFmtId", ""))
        elif tag == "cellXfs":  # the list of styles of cells
            self.is_in_styles = True
        elif tag == "xf" and self.is_in_styles:  # a style; outside of this list `xf` is another kind of style
            self.format_of_style.append(attributes.get("numFmtId", ""))

    def end(self, name: str) -> None:
        """Read the end of an element: of the list of styles of cells, behind which `xf` is no such style."""
        tag = _local(name)
        if tag == "cellXfs":
            self.is_in_styles = False

    def styles_showing_more(self) -> frozenset[str]:
        """Return the styles in which a cell with a number shows more than the number, such as 5 as "5 s".

        They are named as cells name them: by their place in the list of styles, as a text such as "3".
        """
        styles = set[str]()
        for place, format_id in enumerate(self.format_of_style):
            if format_id in self.formats_showing_more:
                styles.add(str(place))
        return frozenset(styles)


class _Sheet:
    """What is known of a part of a workbook, which grows as the parser calls `start`, `end` and `text`.

    Parameters
    ----------
    styles_showing_more
        Numbers of the styles whose cells show more text than the number that they hold.
    places_of_note
        Note -> the places of cells that it is about, to which those of this sheet are added.

    Attributes
    ----------
    is_sheet
        Whether the first element has shown that the part is a sheet.
    unreadable
        Its cells that cannot be read.
    merged
        Its cells that are merged in one column.
    """

    def __init__(self, styles_showing_more: frozenset[str], places_of_note: Mapping[str, Places]) -> None:
        """Begin a sheet without cells."""
        self.unreadable: list[Cell] = []
        self.merged: list[Merged] = []
        self.is_sheet = False
        self._styles_showing_more = styles_showing_more
        self._places_of_note = places_of_note
        # The sheet so far.
        self._height = 0  # the largest number of a row with cells
        self._width = 0  # the largest number of a column with cells
        self._n_cells = 0  # cells that are written in the file
        # The current cell.
        self._line = 0  # number of its row, from 1
        self._column = 0  # number of its column, from 1
        self._place = ""  # such as "B7"; "" if the file does not say it
        self._kind = ""  # code of the type of its value; "e" for an error, "" or "n" for a number
        self._style = ""  # number of its style
        self._has_formula = False
        self._value = ""  # the beginning of its text
        self._is_in_value = False  # whether the parser is inside its value

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """Read an element that begins: sheet, row, column, cell, value, formula or merged cells."""
        tag = _local(name)
        if not self.is_sheet:
            if tag != "worksheet":
                raise DamagedPartError
            self.is_sheet = True
        elif tag == "c":  # a cell
            self._begin_cell(attributes)
        elif tag == "v":  # the value of a cell
            self._begin_value()
        elif tag == "f":  # the formula of a cell
            self._has_formula = True
        elif tag == "row":
            self._begin_row(attributes)
        elif tag == "col" and _is_hidden(attributes):
            self._places_of_note[HIDDEN].add(attributes.get("min", ""))
        elif tag == "mergeCell":
            self._merge(attributes.get("ref", ""))

    def end(self, name: str) -> None:
        """Read the end of an element: of a value or a cell."""
        tag = _local(name)
        if tag == "v":
            self._is_in_value = False
        elif tag == "c":
            self._end_cell()

    def text(self, text: str) -> None:
        """Read a piece of text; if it is of a cell's value, add its beginning to what is stored of the value.

        The parser gives a long text in pieces. Only an error's name is looked for, which is short. So of each
        piece at most `MAX_TEXT` characters are added, and nothing once that many are stored. What is stored
        is therefore shorter than twice `MAX_TEXT`, however long the value is.
        """
        if self._is_in_value and len(self._value) < MAX_TEXT:
            self._value += text[:MAX_TEXT]

    def _begin_value(self) -> None:
        """Note that the value of a cell begins; if people see more than its number, note the cell's place.

        People do where the cell's style adds something to the number, such as a unit. This is noted when a
        value begins, not when the cell does, because an empty cell may have such a style too.
        """
        self._is_in_value = True
        is_number = self._kind in {"", "n"}  # the file says "n", or nothing
        shows_more = is_number and self._style in self._styles_showing_more
        if shows_more and self._place:
            self._places_of_note[STYLED].add(self._place)

    def _merge(self, places: str) -> None:
        """Store merged cells of one column, whose text is copied later; note merged cells of several columns.

        `places` are the first and the last cell, such as "A2:A5".
        """
        first, _, last = places.partition(":")
        first_cell = _PLACE.fullmatch(first)
        last_cell = _PLACE.fullmatch(last)
        if first_cell is None or last_cell is None:
            return  # not a pair of cells: the library ignores it too
        first_column, first_line = first_cell.groups()
        last_column, last_line = last_cell.groups()
        if first_column.upper() == last_column.upper():
            column = _number_of(first_column) - 1  # counted from 0
            self.merged.append(Merged(int(first_line), int(last_line), column))
        else:
            self._places_of_note[MERGED].add(places)

    def _begin_row(self, attributes: Mapping[str, str]) -> None:
        """Store the line of a row that begins, and note it if the row is hidden."""
        place = attributes.get("r", "")  # number of the row; without it, the row follows the one before
        states_line = place.isdecimal() and len(place) <= MAX_DIGITS_OF_LINE
        self._line = int(place) if states_line else self._line + 1
        self._column = 0
        if _is_hidden(attributes):
            self._places_of_note[HIDDEN].add(place or str(self._line))

    def _begin_cell(self, attributes: Mapping[str, str]) -> None:
        """Store the place, kind and style of a cell that begins.

        Raises
        ------
        DamagedPartError
            If its place is none, such as "7B".
        TooLargeError
            If the sheet has too many rows, columns or cells with this one.
        """
        self._place = attributes.get("r", "")
        self._kind = attributes.get("t", "")
        self._style = attributes.get("s", "")
        self._has_formula = False
        self._value = ""
        self._column += 1  # without a place, it follows the cell before
        if self._place:
            match = _PLACE.fullmatch(self._place)
            if match is None:
                raise DamagedPartError
            self._column = _number_of(match[1])
            self._line = int(match[2])

        self._n_cells += 1
        self._height = max(self._height, self._line)
        self._width = max(self._width, self._column)
        has_few_rows_and_columns = self._height <= MAX_ROWS and self._width <= MAX_COLUMNS
        has_few_cells = self._height * self._width <= MAX_CELLS
        if not has_few_rows_and_columns or not has_few_cells:
            what = f"a sheet of {counted(self._height, 'row')} and {counted(self._width, 'column')}"
            raise TooLargeError(f"{what}; save its table as CSV")

    def _end_cell(self) -> None:
        """Note and store a cell that ends if it cannot be read: an error, or a formula never computed.

        Other cells have nothing to be stored: the library reads them.
        """
        place = self._place or f"{self._line}"
        index = self._column - 1  # columns are counted from 1 here, and from 0 in a `Cell`
        is_error = self._kind == "e"
        if is_error:
            self._places_of_note[ERRORS].add(place)
            if self._value:
                self.unreadable.append(Cell(self._line, index, self._value[:MAX_TEXT]))
            return
        is_text_of_formula = self._kind == "str"  # which may be empty though it was computed
        if self._has_formula and not self._value and not is_text_of_formula:
            self._places_of_note[UNCOMPUTED].add(place)
            self.unreadable.append(Cell(self._line, index, NEVER_COMPUTED))

    def refuse_distant_cells(self) -> None:
        """Raise a TooLargeError if a sheet has few cells that lie far from each other.

        The library allocates memory for every cell up to the last row and column, also for those that are
        not written in the file.
        """
        area = self._height * self._width
        if area > max(FREE_CELLS, MAX_EMPTY * self._n_cells):
            what = (
                f"a sheet of {counted(self._height, 'row')} and {counted(self._width, 'column')} "
                f"with {self._n_cells:,} cells"
            )
            raise TooLargeError(f"{what}: one lies far from the table; remove it, or save the table as CSV")


def _is_hidden(attributes: Mapping[str, str]) -> bool:
    """Return whether the attributes of a row or column say that it is hidden."""
    return attributes.get("hidden", "") in {"1", "true"}


def _number_of(letters: str) -> int:
    """Return the number of a column, from 1, given its letters: "A" is 1, "AA" is 27."""
    number = 0
    for letter in letters.upper():
        place_in_alphabet = ord(letter) - ord("A") + 1
        number = 26 * number + place_in_alphabet
    return number


def _letters_of(index: int) -> str:
    """Return the letters of a column, given its index from 0: 0 is "A", 26 is "AA"."""
    letters = ""
    number = index + 1
    while number > 0:
        number, letter = divmod(number - 1, 26)
        letters = chr(65 + letter) + letters
    return letters


def _local(name: str) -> str:
    """Return the name of an element without its prefix."""
    return name.rpartition(":")[2]


def _parse(
    part: IO[bytes],
    start: Callable[[str, dict[str, str]], None],
    end: Callable[[str], None],
    text: Callable[[str], None] | None = None,
) -> None:
    """Parse an XML part of a zip piece by piece, and call functions for its elements and texts.

    A tag may be longer than a piece. The parser then goes through it from its beginning again with each
    further piece. So that there are few of them, the size of the pieces is doubled while a tag lasts.

    Parameters
    ----------
    part
        The part, which is closed.
    start
        Called with the name and the attributes of an element that begins.
    end
        Called with the name of an element that ends.
    text
        Called with pieces of text.
    """
    parser = expat.ParserCreate()
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = text
    parser.StartDoctypeDeclHandler = _refuse_doctype

    size = PIECE_BYTES
    with part:
        while piece := part.read(size):
            position_before = parser.CurrentByteIndex
            try:
                parser.Parse(piece)
            except expat.ExpatError:
                raise DamagedPartError from None
            is_within_a_tag = parser.CurrentByteIndex == position_before
            size = 2 * size if is_within_a_tag else PIECE_BYTES
        try:
            parser.Parse(b"", True)
        except expat.ExpatError:
            raise DamagedPartError from None


def _refuse_doctype(*_: object) -> None:
    """Refuse a type of document, which may declare entities and which no workbook has."""
    raise ValueError


def _refuse_cells(part: IO[bytes]) -> None:
    """Raise a ValueError if a part of a workbook that is no sheet has the name of the element with cells.

    The library might read it as a sheet, which was not checked. Reading the part to its end also checks its
    checksum.
    """
    with part:
        end_of_last_piece = b""  # as the name may lie across two pieces
        while piece := part.read(PIECE_BYTES):
            if CELLS in end_of_last_piece + piece:
                raise ValueError
            end_of_last_piece = piece[-len(CELLS) :]
