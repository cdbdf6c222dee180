"""Read files of spans in a child process, and rebuild here what it found: records or a table, an account."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

import msgspec

from obygaze_features.apart import Child
from obygaze_features.door import is_given_open
from obygaze_features.manifest.spans.account import Account
from obygaze_features.manifest.spans.record import RawSpan
from obygaze_features.manifest.spans.span_file import Reading, SpanFile
from obygaze_features.manifest.text_tables import Row, Table, content_of

PACKED: Final = b"m"
ESCAPED: Final = b"j"
"""How an answer begins: as msgpack; or as JSON, which can hold halves of letters that no UTF-8 has."""

R = TypeVar("R", bound=RawSpan)


@dataclass(frozen=True)
class FileContent(Generic[R]):
    """What a file holds: the records of another tool, or a table of a person.

    Parameters
    ----------
    headings
        Those of the headings that the person names which the table has.
    header
        The headings that the table has, as they are written.
    more
        What else its reader found, as that writes it.
    """

    file: SpanFile
    records: Sequence[R] = ()
    table: Table | None = None
    headings: Sequence[str] = ()
    header: tuple[str, ...] = ()
    more: bytes = b""


@dataclass(frozen=True)
class Task:
    """A file to read in a child.

    Attributes
    ----------
    path
        The file.
    reading
        What the person says of it.
    content
        Its bytes, where the caller's shell has opened it; else None.
    read
        What reads it, importable by name, and called with further arguments.
    """

    path: Path
    reading: Reading
    content: bytes | None
    read: Callable[..., FileContent[Any]]
    arguments: tuple[object, ...] = ()


class _AccountMessage(msgspec.Struct, array_like=True):
    """An account without its path."""

    kind: str
    seen: int
    used: int
    left_out: list[tuple[str, str]]
    notes: list[str]
    is_beside_model: bool


class _TableMessage(msgspec.Struct, array_like=True):
    """A table without its path."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    delimiter: str
    notes: tuple[str, ...]
    read: frozenset[str]


class _Message(msgspec.Struct, array_like=True):
    """What a child found in a file; its records are of a class that `RawSpan` is, or a subclass of it."""

    account: _AccountMessage
    table: _TableMessage | None
    headings: list[str]
    header: tuple[str, ...]
    more: bytes
    record_class: str
    records: Any


def read_apart(
    child: Child,
    path: Path,
    reading: Reading,
    read: Callable[..., FileContent[R]],
    *arguments: object,
) -> FileContent[R]:
    """Have a child read a file.

    Parameters
    ----------
    read
        Reads it there; importable by name, and called as `read(file, *arguments)`.

    Raises
    ------
    ObygazeError, OSError
        Raised there, or the file takes more time or memory than its size allows.
    """
    content = content_of(path) if is_given_open(path) else None
    task = Task(path, reading, content, read, arguments)
    message = _decoded(child.call(content_bytes, task, path=path))
    file = SpanFile(path, reading)
    account = message.account
    file.account = Account(path, **{name: getattr(account, name) for name in account.__struct_fields__})
    table = message.table
    if table is None:
        return FileContent(file, message.records, headings=message.headings, more=message.more)
    parts = {name: getattr(table, name) for name in table.__struct_fields__}
    return FileContent(
        file,
        message.records,
        Table(path, **parts),
        message.headings,
        message.header,
        message.more,
    )


def content_bytes(task: Task) -> bytes:
    """Read a file in the child, and write what it holds."""
    file = SpanFile(task.path, task.reading)
    if task.content is not None:
        file.content = task.content
    content = task.read(file, *task.arguments)
    account = content.file.account
    table = content.table
    file.close()
    records: list[RawSpan] = list(content.records)
    name = type(records[0]).__name__ if records else RawSpan.__name__
    message = _Message(
        _AccountMessage(*(getattr(account, name) for name in _AccountMessage.__struct_fields__)),
        None
        if table is None
        else _TableMessage(*(getattr(table, name) for name in _TableMessage.__struct_fields__)),
        list(content.headings),
        tuple(content.header),
        content.more,
        name,
        records,
    )
    try:
        message.records = msgspec.msgpack.encode(records)
        return PACKED + msgspec.msgpack.encode(message)
    except UnicodeEncodeError:
        message.records = records
        return ESCAPED + json.dumps(msgspec.to_builtins(message)).encode()


def _decoded(answer: bytes) -> _Message:
    """Read what a child wrote, and check it."""
    if answer[:1] == PACKED:
        message = msgspec.msgpack.decode(memoryview(answer)[1:], type=_Message)
        message.records = msgspec.msgpack.decode(message.records, type=_lists_of(message.record_class))
    else:
        message = msgspec.convert(json.loads(answer[1:]), _Message)
        message.records = msgspec.convert(message.records, _lists_of(message.record_class))
    return message


def _lists_of(name: str) -> Any:
    """Return the type of lists of a class of records, by its name."""
    classes: list[type[RawSpan]] = [RawSpan, *RawSpan.__subclasses__()]
    by_name = {kind.__name__: kind for kind in classes}
    return list[by_name[name]]  # type: ignore[valid-type]
