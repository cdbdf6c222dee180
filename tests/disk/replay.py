"""Rebuild the disk as a power cut may leave it, from the log of interpose.c.

A change of a name is forced once its folder is (of two folders: either, for a rename is one step of a file
system's journal); bytes are forced once their file is. Nothing else is: a file's fsync does not force its
name, and what is not forced may be there or not, in any combination.
"""

import random
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from .harness import Tree

HEAD = struct.Struct("<4I2Q")
"""`struct head` of interpose.c: operation, lengths of two paths, padding, offset, number of data bytes."""

Edit = Callable[[bytearray], None]
"""What happens to the bytes of a file, in place."""


class Op(StrEnum):
    """What a record of the log says, by its letter in interpose.c."""

    MARK = "M"
    """The worker noted a text (`path`): a promise that it made to its user."""
    FORCE = "F"
    """A file or folder was forced to the disk (fsync)."""
    CREATE_FILE = "O"
    CREATE_FOLDER = "D"
    REMOVE = "U"
    RENAME = "R"
    LINK = "L"
    EXCHANGE = "E"
    """Two paths swapped what they name."""
    WRITE = "W"
    RESIZE = "S"
    """A file was cut or extended to `offset` bytes."""
    EXTEND = "X"
    """A file has at least as many bytes as `other` says, in decimal."""
    PUNCH = "P"
    """The bytes from `offset` to the number in `other` became zeros."""


NAME_CHANGES = {Op.CREATE_FILE, Op.CREATE_FOLDER, Op.REMOVE, Op.RENAME, Op.LINK, Op.EXCHANGE}


class Record(NamedTuple):
    """One record of the log."""

    op: Op
    path: str
    other: str
    """The second path of a rename, link or exchange; the end of a range of bytes, in decimal."""
    offset: int
    data: bytes
    """What was written; empty unless bytes were written."""


@dataclass(eq=False)
class Node:
    """A file or folder, whatever its names are."""

    data: bytes | None = None
    """What a file held before; None for a folder."""
    names: dict[str, "Node"] = field(default_factory=dict)
    """What a folder holds now, while the log is read."""
    first: dict[str, "Node"] = field(default_factory=dict)
    """What a folder held before the work began."""


class Location(NamedTuple):
    """A path, looked up: the folder it is in, its last part, and what it names (None if nothing)."""

    folder: Node
    name: str
    node: Node | None


class NameChange(NamedTuple):
    """What one name in one folder becomes."""

    folder: Node
    name: str
    node: Node | None
    """What the name means from now on; None if it is removed."""
    removed: Node | None = None
    """What a removal takes away: it leaves the name alone where that means something else."""


@dataclass(eq=False)
class Change:
    """A change of names or of bytes, which is there as a whole or not at all.

    Attributes
    ----------
    names
        The names that change, together.
    node, apply
        A file, and what happens to its bytes.
    torn
        What happens to them instead where a power cut comes in the middle of a write.
    forced
        The first moment from which it outlives a power cut.
    """

    names: Sequence[NameChange] = ()
    node: Node | None = None
    apply: Edit | None = None
    torn: Edit | None = None
    forced: float = float("inf")


class Log:
    """What happened to the disk, in order.

    Attributes
    ----------
    moments
        A change, or None for what changes nothing (an fsync, a mark).
    marks
        Text -> its moment.
    """

    def __init__(self, root: Path, before: Mapping[str, bytes | None], path: Path) -> None:
        """Follow the log at `path`, from what `root` held before: name -> bytes, None for folders."""
        self._root = str(root)
        self._top = Node()
        self.moments: list[Change | None] = []
        self.marks: dict[str, int] = {}
        # Changes that nothing has forced yet: of the names in a folder, and of the bytes of a file.
        self._unforced_names: dict[Node, list[Change]] = {}
        self._unforced_bytes: dict[Node, list[Change]] = {}
        for name, data in before.items():
            self._plant(name, data)
        _remember_first_names(self._top)
        for record in _records(path.read_bytes()):
            self._follow(record)

    def _plant(self, name: str, data: bytes | None) -> None:
        node = self._top
        *above, last = name.split("/")
        for part in above:
            node = node.names.setdefault(part, Node())
        node.names.setdefault(last, Node(data))

    def _find(self, path: str) -> Location:
        """Look up a path as the names are at this point of the log."""
        *folders, last = path[len(self._root) :].strip("/").split("/")
        folder = self._top
        for part in folders:
            folder = folder.names[part]
        is_root = not last
        return Location(folder, last, folder if is_root else folder.names.get(last))

    def _follow(self, record: Record) -> None:
        """Add one record of the log: what it changes, marks or forces."""
        if record.op is Op.MARK:
            self.marks.setdefault(record.path, len(self.moments))
            self.moments.append(None)
        elif record.path.endswith(" (deleted)"):  # so Linux calls an open file that has no name any more
            return
        elif record.op is Op.FORCE:
            self._force(record.path)
            self.moments.append(None)
        elif record.op in NAME_CHANGES:
            self._add_name_change(self._name_change(record))
        else:
            self._add_byte_change(self._byte_change(record))

    def _force(self, path: str) -> None:
        """Let the changes of a folder's names or of a file's bytes outlive power cuts from this moment on."""
        node = self._find(path).node
        assert node is not None
        for change in (*self._unforced_names.pop(node, ()), *self._unforced_bytes.pop(node, ())):
            # A rename between two folders has been forced already if the other folder was.
            change.forced = min(change.forced, len(self.moments))

    def _add_name_change(self, change: Change) -> None:
        self.moments.append(change)
        for renamed in change.names:
            self._unforced_names.setdefault(renamed.folder, []).append(change)
            if renamed.node is None:
                renamed.folder.names.pop(renamed.name, None)
            else:
                renamed.folder.names[renamed.name] = renamed.node

    def _add_byte_change(self, change: Change) -> None:
        self.moments.append(change)
        if change.node is not None:
            self._unforced_bytes.setdefault(change.node, []).append(change)

    def _name_change(self, record: Record) -> Change:
        old = self._find(record.path)
        removal = NameChange(old.folder, old.name, node=None, removed=old.node)
        if record.op is Op.CREATE_FILE:
            return Change([NameChange(old.folder, old.name, Node(b""))])
        if record.op is Op.CREATE_FOLDER:
            return Change([NameChange(old.folder, old.name, Node(data=None))])
        if record.op is Op.REMOVE:
            return Change([removal])
        new = self._find(record.other)
        arrival = NameChange(new.folder, new.name, old.node)
        if record.op is Op.LINK:
            return Change([arrival])
        if record.op is Op.EXCHANGE:
            return Change([arrival, NameChange(old.folder, old.name, new.node)])
        return Change([removal, arrival])

    def _byte_change(self, record: Record) -> Change:
        node = self._find(record.path).node
        if record.op is Op.WRITE:
            half = record.data[
                : len(record.data) // 2
            ]  # what a torn write leaves: only its first half arrived
            return Change((), node, _put(record.offset, record.data), torn=_put(record.offset, half))
        if record.op is Op.RESIZE:
            return Change((), node, _resize(record.offset))
        if record.op is Op.EXTEND:
            return Change((), node, _extend(int(record.other)))
        return Change((), node, _clear(record.offset, int(record.other)))

    def disk(self, moment: int, keeps: Callable[[Change], bool], *, torn: bool = False) -> "Disk":
        """Rebuild the disk of a power cut after a moment.

        Parameters
        ----------
        moment
            Number of the last moment before the cut.
        keeps
            Which of the changes that are not forced yet had reached the disk.
        torn
            Whether only half of the last write reached it, if that is not forced.
        """
        happened = [change for change in self.moments[: moment + 1] if change is not None]
        kept = [change for change in happened if change.forced <= moment or keeps(change)]
        last_is_unforced = bool(kept) and kept[-1].forced > moment
        return Disk(self._top, kept, torn=torn and last_is_unforced)

    def disks(self, moment: int, rng: random.Random) -> Iterator["Disk"]:
        """Yield the disks that a power cut after a moment may leave: the extremes, and two mixtures."""
        yield self.disk(moment, lambda _: False)
        yield self.disk(moment, lambda _: True, torn=True)
        yield self.disk(moment, lambda change: change.node is None)
        yield self.disk(moment, lambda change: change.node is not None)
        for _ in range(2):
            yield self.disk(moment, lambda _: rng.random() < 0.5)


class Disk:
    """A file system after a power cut."""

    def __init__(self, top: Node, kept: Sequence[Change], *, torn: bool) -> None:
        """Apply the changes that reached the disk to what was there; `torn`: of the last write half did."""
        self._top = top
        self._names: dict[Node, dict[str, Node]] = {}
        self._edits: dict[Node, list[Edit]] = {}
        for index, change in enumerate(kept):
            for renamed in change.names:
                self._rename(renamed)
            if change.node is not None and change.apply is not None:
                is_last = index == len(kept) - 1
                edit = change.apply
                if torn and is_last and change.torn is not None:
                    edit = change.torn
                self._edits.setdefault(change.node, []).append(edit)

    def _rename(self, renamed: NameChange) -> None:
        names = self._names.setdefault(renamed.folder, dict(renamed.folder.first))
        if renamed.node is not None:
            names[renamed.name] = renamed.node
        # A name is only removed while it means what was removed: an earlier change may not have arrived.
        elif names.get(renamed.name) is renamed.removed:
            names.pop(renamed.name, None)

    def node(self, path: str) -> Node | None:
        """Find what is at a path."""
        node: Node | None = self._top
        for part in filter(None, path.split("/")):
            node = self._entries(node).get(part) if node is not None else None
        return node

    def files(self, path: str = "") -> Tree | None:
        """Read a file or folder: path -> bytes; None if there is nothing."""
        node = self.node(path)
        if node is None:
            return None
        if node.data is not None:
            return {"": self._read(node)}
        return dict(self._walk(node, ""))

    def put(self, folder: Path, path: str = "") -> None:
        """Write it, or a folder of it, into an empty folder."""
        node = self.node(path)
        if node is not None:
            self._put(node, folder)

    def _put(self, node: Node, place: Path) -> None:
        place.mkdir(exist_ok=True)
        for name, below in self._entries(node).items():
            if below.data is None:
                self._put(below, place / name)
            else:
                (place / name).write_bytes(self._read(below))

    def _walk(self, node: Node, above: str) -> Iterator[tuple[str, bytes]]:
        for name, below in sorted(self._entries(node).items()):
            if below.data is None:
                yield from self._walk(below, f"{above}{name}/")
            else:
                yield f"{above}{name}", self._read(below)

    def _entries(self, node: Node) -> Mapping[str, Node]:
        return self._names.get(node, node.first)

    def _read(self, node: Node) -> bytes:
        data = bytearray(node.data or b"")
        for edit in self._edits.get(node, ()):
            edit(data)
        return bytes(data)


def _records(log: bytes) -> Iterator[Record]:
    """Read the log: each record is a head, its two paths, and for a write the bytes written."""
    place = 0

    def take(size: int) -> bytes:
        nonlocal place
        place += size
        return log[place - size : place]

    while place < len(log):
        letter, path_size, other_size, _, offset, n_bytes = HEAD.unpack(take(HEAD.size))
        op = Op(chr(letter))
        path = take(path_size).decode()
        other = take(other_size).decode()
        data = take(n_bytes) if op is Op.WRITE else b""
        yield Record(op, path, other, offset, data)


def _remember_first_names(node: Node) -> None:
    node.first = dict(node.names)
    for below in node.names.values():
        _remember_first_names(below)


def _extend(size: int) -> Edit:
    return lambda data: data.extend(bytes(max(0, size - len(data))))


def _put(offset: int, some: bytes) -> Edit:
    def put(data: bytearray) -> None:
        _extend(offset + len(some))(data)
        data[offset : offset + len(some)] = some

    return put


def _resize(size: int) -> Edit:
    def resize(data: bytearray) -> None:
        del data[size:]
        _extend(size)(data)

    return resize


def _clear(start: int, end: int) -> Edit:
    def clear(data: bytearray) -> None:
        end_here = min(end, len(data))
        data[start:end_here] = bytes(max(0, end_here - start))

    return clear


def before_of(folder: Path) -> dict[str, bytes | None]:
    """Read a folder as a log begins with it: path -> bytes, None for folders."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }
