"""Read files of spans in a child process, and rebuild here what it found: records or a table, an account."""

import json
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

import msgspec
from msgspec.structs import replace

from obygaze_features.errors import InputError
from obygaze_features.limits import limits_of
from obygaze_features.manifest.spans.account import MAX_LISTED, Account
from obygaze_features.manifest.spans.record import RawSpan
from obygaze_features.manifest.spans.span_file import Reading, SpanFile
from obygaze_features.manifest.text_tables import Row, Table, content_of
from obygaze_features.sandbox import Child
from obygaze_features.untrusted import is_stream

PACKED: Final = b"m"
ESCAPED: Final = b"j"
"""How a part begins: as msgpack; or as JSON, which can hold halves of letters that no UTF-8 has."""

NAMES: Final = "names"
ROWS: Final = "rows"
LEFT_OUT: Final = "left out"
REST: Final = "rest"
"""Kinds of parts besides those of records: the names of the cells of the rows that follow, rows, the records
that are left out, the rest."""

PART_BYTES: Final = 1 << 16

MAX_NAME: Final = 1000
"""Characters of a tier's name."""

MAX_TEXT: Final = 131_072
"""Characters of the text of a span, as of a cell of a table."""

MAX_SHARED: Final = 100_000
"""Different cells of a table of which each is one text in memory, however often it is written."""

MEMORY_OF_A_ROW: Final = 1150
MEMORY_OF_A_RECORD: Final = 1750
MEMORY_OF_A_CELL: Final = 70
MEMORY_OF_A_TEXT: Final = 60
MEMORY_OF_A_NAME: Final = 1200
MEMORY_OF_A_BYTE: Final = 2
MEMORY_OF_A_FINDING: Final = 30
"""Bytes of memory that this process takes for a row of a table, and for a record of another tool, until it is
a clip of a manifest; for each of their cells, and each id of a record that one belongs to; for a cell of a
table that no other has; for a name of a film, a video, an annotator or a tier; for each byte that they are
sent as; and for each byte of what else a reader found, such as a proposal for the columns, or a codebook of
their words. Measured on files of all kinds."""

NAMING: Final = ("movie", "video", "media", "annotator")
"""Cells that name something."""

_ENCODER: Final = msgspec.msgpack.Encoder()
_LIST_HEAD: Final = struct.Struct(">BI")
_LIST: Final = 0xDD
"""How a list of msgpack begins, and how many items it has. Source: msgpack specification, `array 32`."""

R = TypeVar("R", bound=RawSpan)
M = TypeVar("M", bound=msgspec.Struct)


@dataclass(frozen=True)
class FileContent(Generic[R]):
    """What a file holds: the records of another tool, or a table of a person.

    Parameters
    ----------
    records
        A list; where a child reads them, they may come one at a time.
    table
        The table; None for the file of a tool.
    headings
        The headings that the person's options name and that the table has.
    header
        All headings of the table, as they are written.
    findings
        What else the reader of the file found, such as a proposal for columns, in the reader's own form.
    """

    file: SpanFile
    records: Iterable[R] = ()
    table: Table | None = None
    headings: Sequence[str] = ()
    header: tuple[str, ...] = ()
    findings: bytes = b""


@dataclass(frozen=True)
class Task:
    """A file to read in a child.

    Attributes
    ----------
    path
        The file.
    reading
        What the person says of it.
    stream_bytes
        Its bytes, where the caller's shell has opened it; else None.
    read
        What reads it, importable by name, and called with further arguments.
    """

    path: Path
    reading: Reading
    stream_bytes: bytes | None
    read: Callable[..., FileContent[Any]]
    arguments: tuple[object, ...] = ()


class MemoryBudget:
    """Limits the memory that this process uses for the records of an import.

    The limit is the one that a child process has for reading files of that size (`limits_of`). The memory is
    not measured but estimated, from the numbers of rows, records, cells and the like.
    """

    def __init__(self) -> None:
        """Start with no file opened and no memory in use."""
        self._n_bytes_of_files = 0  # of all files so far: the limit of memory grows with it
        self._memory = 0  # bytes that what was read takes, by an estimate
        # Names of films, annotators and the like that are in the estimate: each is kept in memory once.
        self._names: set[str] = set()

    def open(self, n_bytes: int) -> None:
        """Count a further file of n bytes, which raises the limit."""
        self._n_bytes_of_files += n_bytes

    def add(
        self,
        location: object,
        *,
        rows: int = 0,
        records: int = 0,
        cells: int = 0,
        texts: int = 0,
        n_bytes: int = 0,
        findings: int = 0,
        names: Iterable[str] = (),
    ) -> None:
        """Add the estimated memory of what was read to the memory in use.

        Parameters
        ----------
        location
            The file, for the message.
        rows
            Number of rows of tables.
        records
            Number of records of other tools.
        cells
            Number of cells of these rows and records.
        texts
            Number of different texts in the cells of a table that no earlier cell has.
        n_bytes
            Length in bytes of the rows and records, as the child process sends them.
        findings
            Length in bytes of the reader's other findings, such as a proposal.
        names
            Names of films, annotators and the like. Those that were counted before take no memory.

        Raises
        ------
        InputError
            The memory in use is more than the limit.
        """
        n_known_names = len(self._names)
        self._names.update(names)
        n_new_names = len(self._names) - n_known_names
        self._memory += rows * MEMORY_OF_A_ROW
        self._memory += records * MEMORY_OF_A_RECORD
        self._memory += cells * MEMORY_OF_A_CELL
        self._memory += texts * MEMORY_OF_A_TEXT
        self._memory += n_bytes * MEMORY_OF_A_BYTE
        self._memory += findings * MEMORY_OF_A_FINDING
        self._memory += n_new_names * MEMORY_OF_A_NAME
        most = limits_of(self._n_bytes_of_files).memory
        if self._memory > most:
            raise InputError(
                f"{location}: its records take more than the {most >> 20:,} MB of memory that an import of "
                "files of this size may take: divide it into several files, and import them apart"
            )


class _AccountMessage(msgspec.Struct, array_like=True):
    """An account without its path and the records that are left out."""

    kind: str
    seen: int
    used: int
    unlisted: dict[str, int]
    notes: list[str]
    shows_model_output: bool
    mentioned_columns: tuple[str, ...]
    uses_rate: bool
    uses_unit: bool
    uses_start: bool


class _TableMessage(msgspec.Struct, array_like=True):
    """A table without its path and its rows."""

    columns: tuple[str, ...]
    delimiter: str
    notes: tuple[str, ...]
    read: frozenset[str]


class _Rest(msgspec.Struct, array_like=True):
    """What a child says of a file besides its records and rows."""

    account: _AccountMessage
    table: _TableMessage | None
    headings: list[str]
    header: tuple[str, ...]
    findings: bytes


class _Part(msgspec.Struct, array_like=True):
    """A part of what a child found: the child sends it as bytes, which begin with their form (`_packed`).

    Attributes
    ----------
    kind
        What it holds: records of a class of this name, or one of the kinds above.
    content
        As msgpack; or as values of JSON.
    """

    kind: str
    content: Any


def read_in_sandbox(
    child: Child,
    path: Path,
    reading: Reading,
    read: Callable[..., FileContent[R]],
    *arguments: object,
    budget: MemoryBudget | None = None,
) -> FileContent[R]:
    """Read a file in a child process, and return what it holds.

    Parameters
    ----------
    child
        The process.
    path
        The file.
    reading
        What the person says of it.
    read
        Function that reads the file there, called as `read(file, *arguments)`. It must be importable by name.
    arguments
        Further arguments of `read`.
    budget
        The memory in use for other files of the same import.

    Raises
    ------
    ObygazeError, OSError
        Reading the file raised it there, or takes more time or memory than the file's size allows.
    """
    # The child process cannot read a stream of this one, such as standard input, so it gets the bytes.
    stream_bytes = content_of(path) if is_stream(path) else None
    task = Task(path, reading, stream_bytes, read, arguments)
    budget = budget or MemoryBudget()
    if stream_bytes is not None:
        budget.open(len(stream_bytes))
    elif path.is_file():
        budget.open(path.stat().st_size)
    received = _ReceivedParts(path, budget)
    for packed in child.call(content_parts, task, path=path):
        received.add(_unpacked(packed), n_bytes=len(packed))
    return _content_of_parts(received, path, reading)


def _content_of_parts(received: "_ReceivedParts", path: Path, reading: Reading) -> FileContent[Any]:
    """Make the content of a file from the parts that the child process sent.

    `path` and `reading` are those by which the child read the file; they are not sent back.
    """
    rest = received.rest
    assert rest is not None  # noqa: S101 - the child sends it last, or raises an error
    file = SpanFile(path, reading)
    file.account = Account(path, left_out=received.left_out, **_fields(rest.account))
    table = None if rest.table is None else Table(path, rows=tuple(received.rows), **_fields(rest.table))
    return FileContent(file, received.records, table, rest.headings, rest.header, rest.findings)


class _ReceivedParts:
    """The parts that a child has sent of a file, put together again; `budget` counts their memory.

    Attributes
    ----------
    records
        The records of another tool.
    rows
        The rows of a table.
    left_out
        Place and reason of each record that is left out.
    rest
        What else the child says; None until it comes, as the last part.
    """

    def __init__(self, path: Path, budget: MemoryBudget) -> None:
        """Begin without any part; `path` is the file, for messages."""
        self._path = path
        self._budget = budget
        self.records: list[Any] = []
        self.rows: list[Row] = []
        self.left_out: list[tuple[str, str]] = []
        self.rest: _Rest | None = None
        # Columns of the table: a part with their names comes before the rows that have them.
        self._names_of_cells: tuple[str, ...] = ()
        # Equal texts of cells, and of reasons, are kept in memory once.
        self._cells = _Cells()
        self._shared_reasons: dict[str, str] = {}  # reason -> the same, as it was sent first

    def add(self, part: "_Part", n_bytes: int) -> None:
        """Add a part that was sent as n bytes, by its kind (`_Part.kind`), and count its memory.

        - `NAMES`: the names of the cells of all rows that are sent after it
        - `ROWS`: rows of a table
        - `LEFT_OUT`: place and reason of records that are left out
        - `REST`: what the reader found besides, such as a proposal; the last part
        - the name of a class of records: records of another tool
        """
        if part.kind == NAMES:
            self._names_of_cells = part.content
        elif part.kind == ROWS:
            self._add_rows(part.content, n_bytes)
        elif part.kind == LEFT_OUT:
            self._add_left_out(part.content)
        elif part.kind == REST:
            self.rest = part.content
            self._budget.add(self._path, findings=n_bytes)
        else:  # the name of a class of records
            self._add_records(part.content, n_bytes)

    def _add_left_out(self, locations_and_reasons: Sequence[tuple[str, str]]) -> None:
        """Add records that are left out: place and reason of each.

        Very many may be left out for the same reason: they share its text in memory.
        """
        for location, reason in locations_and_reasons:
            shared_reason = self._shared_reasons.setdefault(reason, reason)
            self.left_out.append((location, shared_reason))

    def _add_rows(self, lines_and_cells: Sequence[tuple[int, list[str]]], n_bytes: int) -> None:
        """Add rows of a table, and count their memory.

        Each is its line, and its cells in the order of the names that were sent before.
        """
        columns = self._names_of_cells
        n_texts_before = self._cells.n_texts
        new_rows = []
        for line, cells in lines_and_cells:
            shared_cells = self._cells.shared(cells)
            new_rows.append(Row(line, dict(zip(columns, shared_cells, strict=True))))
        self.rows += new_rows

        naming_columns = [name for name in NAMING if name in columns]
        self._budget.add(
            self._path,
            rows=len(new_rows),
            cells=len(new_rows) * len(columns),
            texts=self._cells.n_texts - n_texts_before,
            n_bytes=n_bytes,
            names=(row.cells[name] for name in naming_columns for row in new_rows),
        )

    def _add_records(self, records: Sequence[RawSpan], n_bytes: int) -> None:
        """Add records of another tool, which were sent as n bytes, and count their memory."""
        self.records += records
        n_cells = 0
        names = []  # of films, annotators and tiers
        for record in records:
            n_cells += len(record.cells) + len(record.parent_ids)
            names += [record.cells.get(name, "") for name in NAMING]
            names.append(record.tier)
        self._budget.add(self._path, records=len(records), cells=n_cells, n_bytes=n_bytes, names=names)


def content_parts(task: Task) -> Iterator[bytes]:
    """Read a file in the child process, and yield what it holds as bytes, in parts, to save memory.

    The parent process puts the parts together again (`_ReceivedParts`). In this order they hold: the records,
    the rows of a table, the records that are left out, and the rest, which has no long lists. A part of
    records has the name of their class as its kind, so that the parent can make objects of that class.
    """
    file = SpanFile(task.path, task.reading)
    if task.stream_bytes is not None:
        file.content = task.stream_bytes  # the child cannot read a stream of the parent, such as its input
    content = task.read(file, *task.arguments)
    table = content.table
    account = content.file.account
    records = _checked(file, content.records)
    yield from _packed_lists(records, kind_of=lambda record: type(record).__name__)
    if table is not None:
        yield from _packed_rows(table)
    yield from _packed_lists(account.left_out, kind_of=lambda _: LEFT_OUT)
    rest = _Rest(
        account=_message(_AccountMessage, account),
        table=None if table is None else _message(_TableMessage, table),
        headings=list(content.headings),
        header=tuple(content.header),
        findings=content.findings,
    )
    file.close()
    yield _packed(REST, rest)


def _packed_rows(table: Table) -> Iterator[bytes]:
    """Yield the rows of a table as messages to the main process.

    Rows may have cells of different columns. So the names of columns are sent once for all rows in a row that
    have these, and then those rows, each with its line and its cells.
    """
    for column_names, rows in groupby(table.rows, key=lambda row: tuple(row.cells)):
        yield _packed(NAMES, column_names)
        lines_and_cells = ((row.line, list(row.cells.values())) for row in rows)
        yield from _packed_lists(lines_and_cells, lambda _: ROWS)


def _message(message_type: type[M], value: object) -> M:
    """Return a message with the attributes of a value that its type has as fields."""
    return message_type(*(getattr(value, name) for name in message_type.__struct_fields__))


class _Cells:
    """Makes the cells of a table share memory if they have the same text.

    Attributes
    ----------
    n_texts
        How many texts are in memory. Only the first `MAX_SHARED` different texts are shared; others count
        each time.
    """

    def __init__(self) -> None:
        """Start with no text in memory."""
        self._first: dict[str, str] = {}  # text -> the first cell that has it
        self.n_texts = 0

    def shared(self, row: Iterable[str]) -> list[str]:
        """Return the cells of a row, each replaced by the first cell of the table with the same text.

        New texts are counted in `n_texts`.
        """
        cells = []
        for cell in row:
            first_cell = self._first.get(cell)
            if first_cell is None:
                self.n_texts += 1
                first_cell = cell
                if len(self._first) < MAX_SHARED:
                    self._first[cell] = cell
            cells.append(first_cell)
        return cells


def without_repeats(records: Iterable[R]) -> Iterator[R]:
    """Yield records, with equal ones that are no spans (`RawSpan.fault`) combined into one.

    So a file with very many records to leave out needs little memory. As a combined record says how many it
    stands for (`n_records`), the account of the file still counts all. The first `MAX_LISTED` records that
    are no spans are yielded as they are, as the account lists their places; the combined ones come last.
    """
    n_no_spans = 0
    # Key of records that differ only in their places -> the first of them, and their number.
    first_of_key: dict[tuple[object, ...], R] = {}
    n_of_key: Counter[tuple[object, ...]] = Counter()
    for record in records:
        fault = record.fault()  # why it is no span; "" if it is one
        if fault:
            n_no_spans += 1
        if not fault or n_no_spans <= MAX_LISTED:
            yield record
            continue
        key = _all_but_place(record, fault)
        first_of_key.setdefault(key, record)
        n_of_key[key] += record.n_records  # a record may stand for several already
    for key, record in first_of_key.items():
        yield replace(record, n_records=n_of_key[key])


def _all_but_place(record: RawSpan, fault: str) -> tuple[object, ...]:
    """Return all that the import reads of a record that is no span, except its place in the file.

    Records of which this is equal can be combined into one. `fault` is the reason why it is no span.
    """
    return (
        record.tier,
        record.text,
        record.role,
        record.refusal,
        record.note,
        record.is_of_model,
        record.is_added_column,
        record.cells.get("codebook", ""),
        fault,
    )


def _checked(file: SpanFile, records: Iterable[R]) -> Iterator[R]:
    """Yield records; those with a text of more than `MAX_TEXT` characters get a reason, to be left out.

    Raises
    ------
    ManifestError
        The name of a tier, which each of its records repeats, has more than `MAX_NAME` characters.
    """
    for record in records:
        if len(record.tier) > MAX_NAME:
            raise file.error(
                f"{record.where}: on a tier whose name has {len(record.tier):,} characters, where at most "
                f"{MAX_NAME:,} are read"
            )
        if len(record.text) > MAX_TEXT:
            reason = f"a text of more than {MAX_TEXT:,} characters"
            yield replace(record, text="", reason=record.reason or reason)
        else:
            yield record


def _fields(message: msgspec.Struct) -> dict[str, Any]:
    """Return the fields of a message by name."""
    return {name: getattr(message, name) for name in message.__struct_fields__}


# --- parts
# ---------------------------------------------------------------------------
def _packed_lists(items: Iterable[Any], kind_of: Callable[[Any], str]) -> Iterator[bytes]:
    """Pack items into parts of about `PART_BYTES`, each a list of neighbouring items of one kind.

    Items are packed one by one, so that no buffer is larger than a part and one item, which may be long. An
    item that msgpack cannot hold becomes a part of its own, in JSON (`_packed`).

    `kind_of` returns the kind of an item (`_Part.kind`).
    """
    for kind, neighbours_of_kind in groupby(items, key=kind_of):
        packed_list = _PackedList()
        for item in neighbours_of_kind:
            try:
                packed_list.add(item)
            except UnicodeEncodeError:  # it has half a letter, which UTF-8 cannot hold
                if packed_list.n_items:
                    yield packed_list.take_part(kind)  # the items before it, to keep the order
                yield _packed(kind, [item])
            if packed_list.n_bytes > PART_BYTES:
                yield packed_list.take_part(kind)
        if packed_list.n_items:
            yield packed_list.take_part(kind)


class _PackedList:
    """A list of msgpack that grows item by item.

    In msgpack a list begins with a head that states its length, which is known at the end only: room for the
    head is left at the beginning of the buffer.
    """

    def __init__(self) -> None:
        """Begin with an empty list."""
        self._buffer = bytearray(_LIST_HEAD.size)
        self.n_items = 0

    @property
    def n_bytes(self) -> int:
        """Bytes of the list, its head included."""
        return len(self._buffer)

    def add(self, item: object) -> None:
        """Pack an item at the end; an item that msgpack cannot hold leaves the list as it was."""
        end = len(self._buffer)
        try:
            _ENCODER.encode_into(item, self._buffer, end)
        except UnicodeEncodeError:
            del self._buffer[end:]
            raise
        self.n_items += 1

    def take_part(self, kind: str) -> bytes:
        """Return a part with the list as content, in the form of `_packed`, and begin a new list."""
        # Fill in the head, for which room was left: the sign of a list, and how many items it has.
        _LIST_HEAD.pack_into(self._buffer, 0, _LIST, self.n_items)
        part = PACKED + _ENCODER.encode(_Part(kind, self._buffer))
        self._buffer = bytearray(_LIST_HEAD.size)
        self.n_items = 0
        return part


def _packed(kind: str, content: object) -> bytes:
    """Return the bytes of a part: their form, PACKED or ESCAPED, and the part in msgpack or in JSON.

    JSON is for texts with half a letter (a lone surrogate, as a damaged file may have): it writes it as an
    escape sequence, while UTF-8, and with it msgpack, cannot hold it.
    """
    try:
        # The content is packed by itself first, to bytes inside the part: whoever unpacks it has to read the
        # kind of the part before it knows of which type the content is (`_unpacked`).
        packed_content = _ENCODER.encode(content)
    except UnicodeEncodeError:
        part = msgspec.to_builtins(_Part(kind, content))
        return ESCAPED + json.dumps(part).encode()
    return PACKED + _ENCODER.encode(_Part(kind, packed_content))


def _unpacked(packed: bytes) -> _Part:
    """Unpack a part, and check the types of its content.

    Its first byte says whether the rest is msgpack or JSON (`_packed`).
    """
    is_msgpack = packed[:1] == PACKED
    if is_msgpack:
        part = msgspec.msgpack.decode(memoryview(packed)[1:], type=_Part)
        part.content = msgspec.msgpack.decode(part.content, type=_type_of(part.kind))
    else:
        part = msgspec.convert(json.loads(packed[1:]), _Part)
        part.content = msgspec.convert(part.content, _type_of(part.kind))
    return part


def _type_of(kind: str) -> Any:
    """Return the type of the content of a part that a child sent, by its kind (`_Part.kind`)."""
    if kind == NAMES:  # of the cells of the rows that follow
        return tuple[str, ...]
    if kind == ROWS:  # line and cells of each
        return list[tuple[int, list[str]]]
    if kind == LEFT_OUT:  # place and reason of each record
        return list[tuple[str, str]]
    if kind == REST:
        return _Rest
    # Records of another tool: the kind is the name of their class, `RawSpan` or a subclass.
    classes_of_records: list[type[RawSpan]] = [RawSpan, *RawSpan.__subclasses__()]
    class_by_name = {record.__name__: record for record in classes_of_records}
    return list[class_by_name[kind]]  # type: ignore[valid-type]
