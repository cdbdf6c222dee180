"""A file to read spans from, and what a person says of it."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import chain
from json import JSONDecodeError
from pathlib import Path
from typing import Any, Final, NamedTuple
from xml.etree.ElementTree import Element, ParseError, XMLParser

from obygaze_features.errors import ManifestError
from obygaze_features.file_kinds import where_damaged
from obygaze_features.identity import plain
from obygaze_features.manifest.spans.account import Account
from obygaze_features.manifest.spans.encodings import decoded
from obygaze_features.manifest.spans.headings import Headings, columns_meant
from obygaze_features.manifest.spans.json_values import json_of
from obygaze_features.manifest.spans.label_words import LabelWords
from obygaze_features.manifest.spans.xml_names import local_name
from obygaze_features.manifest.text_tables import content_of, error_context, header_test
from obygaze_features.templates import packaged
from obygaze_features.text import SIGNS_OF_DIRECTION, shortened
from obygaze_features.text_records import first_rows, marked_encoding, split_records
from obygaze_features.workbook import (
    HEADER_ROWS,
    Records,
    Sheets,
    Workbook,
    is_workbook,
    n_filled,
    read_workbook,
    sheet_notes,
    sheets_together,
)

FACTS: Final = packaged(__package__, "kinds.toml")
KINDS = FACTS["kinds"]
"""Facts about the kinds of files that are read, by kind."""

HEAD_BYTES = 1 << 16
"""The kind of a file is told by so many bytes at its start."""

_ENCODING = re.compile(r"""\s*<\?xml[^>]*\sencoding\s*=\s*["'](?!utf)([\w.-]+)""", re.IGNORECASE)
_LINE_ENDS = re.compile(r"\r++\n?")
_WITHOUT_DIRECTION = str.maketrans("", "", SIGNS_OF_DIRECTION)
_WRONGLY_ENCODED = re.compile("[\x80-\x84\x86-\x9f]")
"""Control characters that are letters saved in a wrong encoding; U+0085 is none of them, as it ends lines."""


def _one_for_each(ends: re.Match[str]) -> str:
    """Return the line feeds that replace a run of carriage returns, matched by `_LINE_ENDS`.

    Before a line feed, a whole run ends one line, as programs may write several. Otherwise each ends a line.
    """
    run = ends[0]
    return "\n" if run.endswith("\n") else "\n" * len(run)


@dataclass(frozen=True)
class Reading:
    """What a person says of all files of an import.

    Parameters
    ----------
    rate
        Frames per second of times that are, or end in, frames.
    unit
        Unit of times that are numbers, in tables and transcripts, one of `units.UNITS`; "" if files tell it.
    encoding
        The encoding of text files that are not UTF-8 and have no byte order mark; "" to guess it.
    movie
        The film, where a file does not say it.
    start
        Time code of the film's first frame, where time codes do not begin at 0.
    tiers
        Tier -> its role; no other tier is read then, if there are any.
    headings
        Which headings of tables stand for which columns of a manifest.
    """

    rate: Fraction | None = None
    unit: str = ""
    encoding: str = ""
    movie: str = ""
    tiers: Mapping[str, str] = field(default_factory=dict)
    headings: Headings = field(default_factory=Headings)
    start: str = ""


class HeaderScore(NamedTuple):
    """How likely a row is the header of a sheet; scores compare by their first fields first.

    Attributes
    ----------
    n_named
        How many headings it has that the person names.
    is_of_known_kind
        Whether it is the header of a known kind of file.
    n_known
        How many known headings of a manifest's columns it has.
    """

    n_named: int
    is_of_known_kind: bool
    n_known: int

    @property
    def is_likely(self) -> bool:
        """Whether the row is likely a header.

        It has a heading that the person names, is the header of a known kind of file, or has two known
        headings. A single one may stand in any row: a cell of a film's data may be called "level".

        Examples
        --------
        >>> [HeaderScore(n_named=0, is_of_known_kind=False, n_known=n).is_likely for n in (1, 2)]
        [False, True]
        """
        return self.n_named > 0 or self.is_of_known_kind or self.n_known > 1


class SheetHeader(NamedTuple):
    """The row of a sheet that is most likely its header: its score, and its names."""

    score: HeaderScore
    names: frozenset[str]


@dataclass(eq=False)
class SpanFile:
    """A file to read spans from, what the person says of it, and the account of its records."""

    path: Path
    reading: Reading = field(default_factory=Reading)
    words: LabelWords | None = None
    """Words of the codebook, by which a column that a person added to a tool's table is known to hold labels;
    None before the codebook is known."""

    @cached_property
    def account(self) -> Account:
        """The file's account: what becomes of its records."""
        return Account(self.path)

    @cached_property
    def content(self) -> bytes:
        """The bytes of the file."""
        return content_of(self.path)

    @cached_property
    def text(self) -> str:
        """The decoded text of the file, without NUL characters and byte order marks; changes are noted."""
        return self._text_in(self.reading.encoding)

    def _text_in(self, encoding: str) -> str:
        """Decode the file, leave out NUL characters and byte order marks, and note what is left out of texts.

        `encoding` is used if the file is not UTF-8. The controls U+0080 to U+009F are only noted here: they
        stay in this text, and `one_line` removes them from the texts of records.
        """
        with error_context(self.path):
            text, notice = decoded(self.content, encoding)
        self.account.note(notice)
        if "\0" in text:
            self.account.note("characters NUL left out")
        if not text.isascii() and _WRONGLY_ENCODED.search(text):
            self.account.note(
                "U+0080 to U+009F left out of texts: letters that were saved in a wrong encoding"
            )
        return text.replace("\ufeff", "").replace("\0", "")

    @property
    def lines(self) -> list[str]:
        """The lines of the file. Only line feeds and carriage returns end a line."""
        text = self.text.replace("\r\n", "\n")
        if "\r" in text:
            text = _LINE_ENDS.sub(_one_for_each, text)
        return text.split("\n")

    @cached_property
    def head(self) -> str:
        """The first characters of the file, whatever its encoding; undecodable ones are replaced.

        Signs of direction, which may stand before the times of Hebrew and Arabic subtitles, are left out.
        """
        part = self.content[:HEAD_BYTES]
        may_be_cut = len(part) == HEAD_BYTES
        if may_be_cut:
            end_of_last_line = part.rfind(b"\n") + 1
            part = part[:end_of_last_line] or part  # whole lines, so that no letter is cut in two
        try:
            text, _ = decoded(part, self.reading.encoding)
        except ManifestError:
            text = part.decode(marked_encoding(part) or "utf-8-sig", "replace")
        text = text.replace("\0", "").replace("\ufeff", "").translate(_WITHOUT_DIRECTION)
        return text.replace("\r\n", "\n").replace("\r", "\n")

    @cached_property
    def _book(self) -> Workbook | None:
        """The workbook, if the file is one."""
        if not is_workbook(self.content):
            return None
        return read_workbook(self.path, self.content, ManifestError)

    @cached_property
    def _header_of_sheet(self) -> dict[str, SheetHeader]:
        """Sheet -> its row with the most known headings; empty if the file is no workbook."""
        if self._book is None:
            return {}
        return {name: self._best_header(records) for name, records in self._book.sheets.items()}

    def _best_header(self, records: Records) -> SheetHeader:
        """Find the row of a sheet that is most likely its header, by how many headings it has that we know.

        Most count headings that the person's options name, then whether a tool writes such a header, then
        headings that people give (`HeaderScore`).
        """
        headers_of_tools: list[Sequence[str]] = []  # names of columns, of each table that a tool writes
        for facts_of_kind in KINDS.values():
            headers_of_tools += facts_of_kind.get("columns", ())
        tests_of_tools = [header_test(names) for names in headers_of_tools]
        candidates: list[SheetHeader] = []
        for _, cells in records[:HEADER_ROWS]:
            score = HeaderScore(
                n_named=self.reading.headings.n_in(cells),
                is_of_known_kind=any(is_header(cells) for is_header in tests_of_tools),
                n_known=len(columns_meant(cells)),
            )
            names = frozenset(plain(cell) for cell in cells if cell.strip())
            candidates.append(SheetHeader(score, names))
        return max(candidates, key=lambda header: header.score)  # the first of equal ones

    @cached_property
    def main_sheet(self) -> str:
        """The name of the sheet that is read; "" if the file is no workbook.

        It is the sheet with the best header; if no sheet has a likely one, the sheet with the most filled
        cells.
        """
        book = self._book
        if book is None:
            return ""
        headers = self._header_of_sheet
        best_sheet = max(headers, key=lambda name: headers[name].score)  # the first of equal ones
        if headers[best_sheet].score.is_likely:
            return best_sheet
        return max(book.sheets, key=lambda name: n_filled(book.sheets[name]))

    @cached_property
    def _sheets(self) -> Sheets | None:
        """The main sheet, joined with the sheets that have the same header; None if there is no workbook."""
        return None if self._book is None else sheets_together(self._book, self.main_sheet)

    @cached_property
    def sheet(self) -> Records | None:
        """The rows of the sheets that are read; None if the file is no workbook. Other sheets are noted."""
        if self._book is None or self._sheets is None:
            return None
        self.account.note(*sheet_notes(self._book, self._sheets))
        return self._sheets.records

    @property
    def other_sheets(self) -> list[Records]:
        """The rows of each sheet that is not read."""
        if self._book is None or self._sheets is None:
            return []
        return [records for name, records in self._book.sheets.items() if name not in self._sheets.names]

    def records(self, needed: Sequence[str]) -> tuple[Records, str]:
        """Split a table into rows of cells.

        Parameters
        ----------
        needed
            Columns by which the header is found.

        Returns
        -------
        records
            (line, cells) of each row.
        delimiter
            The sign between cells, told by the header; "" for a workbook.
        """
        if self.sheet is not None:
            return self.sheet, ""
        return split_records(self.path, self.text, ManifestError, header_test(needed))

    @cached_property
    def first_rows(self) -> list[list[str]]:
        """The first rows of cells.

        As it is not known which sign separates the cells of a text, its rows are there several times, split
        at each sign that may do so: `a;b,c` as `a` and `b,c`, and as `a;b` and `c`.
        """
        if self.sheet is not None:
            return [cells for _, cells in self.sheet[:HEADER_ROWS]]
        records_of_sign = first_rows(self.head)  # sign between cells -> the rows split at it
        return [cells for _, cells in chain(*records_of_sign.values())]

    @property
    def first_rows_of_tabs(self) -> list[list[str]]:
        """The first rows of cells: those of the sheet of a workbook, or lines of a text split at tabs."""
        if self.sheet is not None:
            return [cells for _, cells in self.sheet[:HEADER_ROWS]]
        return [line.split("\t") for line in self.head.split("\n")[:HEADER_ROWS]]

    @cached_property
    def first_names(self) -> list[set[str]]:
        """The cells of each row of `first_rows`, in the form in which names are compared (`plain`)."""
        return [set(map(plain, cells)) for cells in self.first_rows]

    def has_columns(self, names: Iterable[str]) -> bool:
        """Return whether one of the first rows has all these names, as a header would."""
        keys = {plain(name) for name in names}
        return any(keys <= names for names in self.first_names)

    @cached_property
    def document(self) -> Any:
        """The value of the file as JSON; refuse a file that is not JSON."""
        try:
            return json_of(self.text)
        except (JSONDecodeError, RecursionError) as error:
            if isinstance(error, JSONDecodeError) and error.msg == "Extra data":
                raise self.error(
                    f"not a JSON document: behind a whole one more begins at line {error.lineno}, as in JSON "
                    "lines; where one is expected, write them as a list"
                ) from None
            raise self.error(where_damaged(error, self.text.encode(), "a JSON document")) from None
        except ValueError as error:
            # Python refuses numbers of very many digits with a message about its own limit.
            is_limit_of_digits = "digits" in str(error)
            reason = "a number of thousands of digits" if is_limit_of_digits else str(error)
            raise self.error(f"not a JSON document: {reason}") from None

    def xml(self, root: str, kind: str, *, has_namespace: bool = False) -> Element:
        """Parse the file as XML, and return its root element.

        XML that declares entities is refused, so that none can be expanded.

        Parameters
        ----------
        root
            Name that the root element must have.
        kind
            What such a document is, for messages.
        has_namespace
            Whether its elements are in a namespace, which is ignored as it differs from version to version.
            If not, texts between elements are noted as left out.
        """
        declaration = _ENCODING.match(self.head)
        declared_encoding = declaration[1] if declaration else ""
        text = self._text_in(self.reading.encoding or declared_encoding)
        if "<!ENTITY" in text or "<!ATTLIST" in text:
            raise self.error(
                f"declares entities or attributes in its document type, which {kind} does not: not read"
            )

        parser = XMLParser()  # noqa: S314 - it has no entities
        try:
            parser.feed(text)
            element: Element = parser.close()
        except ParseError as error:
            raise self.error(where_damaged(error, text.encode(), kind)) from None

        name = local_name(element.tag) if has_namespace else element.tag
        if name != root:
            raise self.error(f"not {kind}: its root is {element.tag!r:.60}")
        if not has_namespace:
            self._note_text_between_elements(element)
        return element

    def _note_text_between_elements(self, root: Element) -> None:
        """Note the first text that stands behind an element, and so is not read."""
        for node in root.iter():
            text_behind = (node.tail or "").strip()
            if text_behind:
                self.account.note(f"text beside elements left out: {text_behind!r:.60}")
                return

    def error(self, reason: str) -> ManifestError:
        """Make an error that names the file."""
        return ManifestError(f"{self.path}: {shortened(reason)}")

    def seconds(self, frames: float, location: str) -> float:
        """Convert a number of frames to seconds at the rate that the person gives; refuse it without a rate.

        `location` is the place of the number, for the message.
        """
        if self.reading.rate is None:
            raise self.error(f"{location}: times are in frames; give their rate, as in --rate 25")
        return float(Fraction(frames) / self.reading.rate)

    def close(self) -> None:
        """Forget the file's content and all that was computed from it, to free memory; the account stays."""
        of_workbook = ("sheet", "_book", "_header_of_sheet", "main_sheet", "_sheets")
        cached_properties = ("content", "text", "head", *of_workbook, "first_rows", "first_names", "document")
        for name in cached_properties:
            self.__dict__.pop(name, None)  # where `cached_property` keeps a value that was asked for
