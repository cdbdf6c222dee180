"""Rebuild the disk as a power cut may leave it, from the log of interpose.c.

A change of a name is forced once its folder is (of two folders: either, for a rename is one step of a file
system's journal); bytes are forced once their file is. Nothing else is: a file's fsync does not force its
name, and what is not forced may be there or not, in any combination.
"""

import random
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .harness import Tree

HEAD = struct.Struct("<4I2Q")


@dataclass(eq=False)
class Node:
    """A file or folder, whatever its names are."""

    data: bytes | None = None
    """What a file held before; None for a folder."""
    names: dict[str, "Node"] = field(default_factory=dict)
    """What a folder holds now, while the log is read; and before it, in `first`."""
    first: dict[str, "Node"] = field(default_factory=dict)


@dataclass(eq=False)
class Change:
    """A change of names or of bytes, which is there as a whole or not at all.

    Attributes
    ----------
    names
        (folder, name, what it then is; None for nothing, what it must have been to be removed).
    node, apply
        A file, and what happens to its bytes.
    forced
        The first moment from which it outlives a power cut.
    """

    names: Sequence[tuple[Node, str, Node | None, Node | None]] = ()
    node: Node | None = None
    apply: Callable[[bytearray], None] | None = None
    torn: Callable[[bytearray], None] | None = None
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
        self._root = str(root)
        self._top = Node()
        self.moments: list[Change | None] = []
        self.marks: dict[str, int] = {}
        self._folders: dict[Node, list[Change]] = {}
        self._bytes: dict[Node, list[Change]] = {}
        for name, data in before.items():
            self._plant(name, data)
        _freeze(self._top)
        log = path.read_bytes()
        place = 0
        while place < len(log):
            op, n, m, _, offset, size = HEAD.unpack_from(log, place)
            place += HEAD.size
            a, b = log[place : place + n].decode(), log[place + n : place + n + m].decode()
            place += n + m
            has_data = chr(op) == "W"
            data = log[place : place + size] if has_data else b""
            place += len(data)
            self._read(chr(op), a, b, offset, data)

    def _plant(self, name: str, data: bytes | None) -> None:
        node = self._top
        *above, last = name.split("/")
        for part in above:
            node = node.names.setdefault(part, Node())
        node.names.setdefault(last, Node(data))

    def _find(self, path: str) -> tuple[Node, str, Node | None]:
        """Find the folder of a path, its last name, and what is there."""
        parts = path[len(self._root) :].strip("/").split("/")
        node = self._top
        for part in parts[:-1]:
            node = node.names[part]
        return node, parts[-1], node.names.get(parts[-1]) if parts[-1] else node

    def _read(self, op: str, a: str, b: str, offset: int, data: bytes) -> None:
        if op == "M":
            self.marks.setdefault(a, len(self.moments))
            self.moments.append(None)
            return
        if a.endswith(" (deleted)"):
            return
        if op == "F":
            _, _, node = self._find(a)
            assert node is not None
            for each in (*self._folders.pop(node, ()), *self._bytes.pop(node, ())):
                each.forced = min(each.forced, len(self.moments))
            self.moments.append(None)
            return
        change = self._name_change(op, a, b) if op in "ODURLE" else self._byte_change(op, a, b, offset, data)
        self.moments.append(change)
        for where, called, then, _ in change.names:
            self._folders.setdefault(where, []).append(change)
            if then is None:
                where.names.pop(called, None)
            else:
                where.names[called] = then
        if change.node is not None:
            self._bytes.setdefault(change.node, []).append(change)

    def _name_change(self, op: str, a: str, b: str) -> Change:
        folder, name, node = self._find(a)
        removed = (folder, name, None, node)
        if op in "OD":
            return Change([(folder, name, Node(b"" if op == "O" else None), None)])
        if op == "U":
            return Change([removed])
        there, called, other = self._find(b)
        given = (there, called, node, None)
        if op == "E":
            return Change([given, (folder, name, other, None)])
        return Change([given] if op == "L" else [removed, given])

    def _byte_change(self, op: str, a: str, b: str, offset: int, data: bytes) -> Change:
        _, _, node = self._find(a)
        if op == "W":
            return Change((), node, _put(offset, data), _put(offset, data[: len(data) // 2]))
        if op == "S":
            return Change((), node, _resize(offset))
        return Change((), node, _extend(int(b)) if op == "X" else _clear(offset, int(b)))

    def disk(self, moment: int, keeps: Callable[[Change], bool], *, torn: bool = False) -> "Disk":
        """Have the disk of a power cut after a moment; `keeps` says which unforced changes are there."""
        there = [
            change
            for change in self.moments[: moment + 1]
            if change is not None and (change.forced <= moment or keeps(change))
        ]
        return Disk(self._top, there, torn and bool(there) and there[-1].forced > moment)

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

    def __init__(self, top: Node, there: Sequence[Change], torn: bool) -> None:
        self._top = top
        self._names: dict[Node, dict[str, Node]] = {}
        self._bytes: dict[Node, list[Callable[[bytearray], None]]] = {}
        for number, change in enumerate(there, start=1):
            for folder, name, node, was in change.names:
                entries = self._names.setdefault(folder, dict(folder.first))
                if node is not None:
                    entries[name] = node
                elif entries.get(name) is was:
                    entries.pop(name, None)
            if change.node is not None and change.apply is not None:
                half = torn and number == len(there) and change.torn is not None
                self._bytes.setdefault(change.node, []).append(change.torn if half else change.apply)

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
        for change in self._bytes.get(node, ()):
            change(data)
        return bytes(data)


def _freeze(node: Node) -> None:
    node.first = dict(node.names)
    for below in node.names.values():
        _freeze(below)


def _extend(size: int) -> Callable[[bytearray], None]:
    return lambda data: data.extend(bytes(max(0, size - len(data))))


def _put(offset: int, some: bytes) -> Callable[[bytearray], None]:
    def put(data: bytearray) -> None:
        _extend(offset + len(some))(data)
        data[offset : offset + len(some)] = some

    return put


def _resize(size: int) -> Callable[[bytearray], None]:
    def resize(data: bytearray) -> None:
        del data[size:]
        _extend(size)(data)

    return resize


def _clear(start: int, end: int) -> Callable[[bytearray], None]:
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
