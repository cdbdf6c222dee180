"""Pickle what a process and its workers send each other; large arrays of a worker go through shared memory.

A block is a file in /dev/shm that the worker writes and the parent maps. It has a name only until the parent
has mapped it, so that the system frees it however the two processes end. The worker uses a block again when
its last array in the parent has been garbage-collected. Without /dev/shm, or without space in it, the arrays
are in the message.
"""

import errno
import io
import math
import mmap
import os
import pickle
import threading
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from obygaze_features.errors import WorkerError

SHARED = Path("/dev/shm")  # noqa: S108 - a block is created exclusively, for this user alone
LARGE_BYTES = 1 << 16
"""Size in bytes from which an array is put into a block, so that a small array does not hold one."""
ALIGNMENT = 64
"""Alignment in bytes: a cache line, which is also the width of the widest vector registers."""

Span = tuple[int, int]
"""Offset and size in bytes of an array in a block."""


class _Location(NamedTuple):
    """Where the large arrays of a message are.

    Attributes
    ----------
    number
        Number of the block.
    is_new
        Whether the parent does not know the block yet, and so must map it.
    spans
        The place of each array in the block.
    """

    number: int
    is_new: bool
    spans: list[Span]


@dataclass(slots=True, eq=False)
class _Block:
    """A file of shared memory of a worker; its parent maps it when it is new."""

    number: int
    descriptor: int
    size: int
    is_new: bool = True  # until its parent is told of it


class Packer:
    """Pack objects in a worker.

    Parameters
    ----------
    name
        First part of the names of this worker's blocks, given by its parent.
    """

    def __init__(self, name: str) -> None:
        """Hold no block yet; blocks of shared memory are created when arrays need them.

        A block is a file in shared memory that holds the large arrays of one message.
        """
        self._name = name
        self._blocks: list[_Block] = []  # all blocks; the place of each is its number
        self._free: list[_Block] = []  # those whose arrays the parent no longer uses
        # Held while the file of a block is created. When the process ends, `end` takes this lock and keeps
        # it: no file can be created any more, which nobody would remove.
        self._may_create = threading.Lock()

    def pack(self, thing: object) -> bytes:
        """Pickle an object to a message; its large arrays are written into a block of shared memory.

        If there is no shared memory, or not enough, the arrays are pickled too.
        """
        large_arrays: list[memoryview] = []

        def stays_in_message(buffer: pickle.PickleBuffer) -> bool:
            """Return whether pickle is to write an array into the message; the large ones are collected."""
            array = buffer.raw()
            if array.nbytes < LARGE_BYTES:
                return True
            large_arrays.append(array)
            return False

        pickled = pickle.dumps(thing, protocol=5, buffer_callback=stays_in_message)
        location = None
        if large_arrays:
            try:
                location = self._write(large_arrays)
            except OSError:  # there is no shared memory, or not enough
                pickled = pickle.dumps(thing, protocol=5)
        return pickle.dumps((pickled, location))

    def take_back(self, numbers: Iterable[int]) -> None:
        """Allow the blocks with these numbers to be used again, as the parent needs them no longer."""
        self._free += [self._blocks[number] for number in numbers]

    def end(self) -> None:
        """Remove the names of this worker's blocks, and prevent it from creating further blocks."""
        self._may_create.acquire()
        remove_names(self._name)

    def _write(self, buffers: list[memoryview]) -> _Location:
        """Write arrays one behind the other into a free block that is large enough, or into a new one.

        The block is no longer free then; if writing fails, it stays free.

        Raises
        ------
        OSError
            There is no shared memory, or not enough.
        """
        spans: list[Span] = []
        end = 0
        for buffer in buffers:
            spans.append((end, buffer.nbytes))
            end += math.ceil(buffer.nbytes / ALIGNMENT) * ALIGNMENT

        block = self._free_block(end)
        for (offset, _), buffer in zip(spans, buffers, strict=True):
            os.lseek(block.descriptor, offset, os.SEEK_SET)
            unwritten = buffer
            while unwritten:  # the system may write less than it is given
                n_written = os.write(block.descriptor, unwritten)
                unwritten = unwritten[n_written:]

        self._free.remove(block)
        location = _Location(block.number, block.is_new, spans)
        block.is_new = False
        return location

    def _free_block(self, minimum: int) -> _Block:
        """Return a free block of at least `minimum` bytes: the last freed, or a new one."""
        for block in reversed(self._free):
            if block.size >= minimum:
                return block
        return self._create(minimum)

    def _create(self, minimum: int) -> _Block:
        """Create a block of at least `minimum` bytes, add it to the free ones, and return it."""
        number = len(self._blocks)
        size = 1 << (minimum - 1).bit_length()  # the next power of two, so that blocks have few sizes
        only_for_owner = 0o600
        with self._may_create:
            descriptor = os.open(
                _path(self._name, number), os.O_RDWR | os.O_CREAT | os.O_EXCL, only_for_owner
            )
        os.ftruncate(descriptor, size)  # takes no memory before it is written
        block = _Block(number, descriptor, size)
        self._blocks.append(block)
        self._free.append(block)
        return block


class Unpacker:
    """Unpack in the parent what one worker has packed.

    The large arrays of a message are in a block of shared memory, which the message names by a number. The
    parent maps a block when a message names it first, and keeps it mapped: the worker writes arrays of later
    messages into it, once the parent has garbage-collected those of the message before. To learn of that, the
    worker is sent the numbers that `take_free` returns, and hands them to its `Packer.take_back`.

    Parameters
    ----------
    name
        As for its `Packer`.
    """

    def __init__(self, name: str) -> None:
        """Hold no block yet; blocks are mapped when a message refers to them."""
        self._name = name
        self._maps: dict[int, NDArray[np.uint8]] = {}  # number of a mapped block -> its bytes
        # Numbers of blocks whose arrays were all garbage-collected, and of which the worker is not told yet.
        self._free: list[int] = []

    def unpack(self, message: bytes) -> Any:
        """Rebuild an object; its arrays are in shared memory until they are garbage-collected.

        A message is a pickle of two things: the object, itself pickled without its large arrays, and where
        these are in shared memory.
        """
        pickled, location = pickle.loads(message)  # noqa: S301 - from our own process
        if location is None:  # there are no large arrays, or no room for them
            return pickle.loads(pickled)  # noqa: S301 - the same
        number = location.number
        if location.is_new:
            self._maps[number] = _mapped(_path(self._name, number))
        # `block` is an array of the memory, of which the lease is the owner. The object's arrays are views of
        # `block`, and keep the owner alive: when the last of them is collected, the owner is, too, and adds
        # the number of the block to `_free`.
        lease = _Lease(number, self._maps[number], self._free)
        block = np.asarray(lease)
        buffers = [block[offset : offset + size] for offset, size in location.spans]
        del lease  # so that only the arrays keep it alive
        return pickle.loads(pickled, buffers=buffers)  # noqa: S301 - the same

    def take_free(self) -> list[int]:
        """Return the numbers of the blocks that became free since the last call; thread-safe."""
        free = []
        with suppress(IndexError):  # when none is left; a check before would not be thread-safe
            while True:
                free.append(self._free.pop())
        return free


class _Lease:
    """Owner of the memory of one object's arrays; frees the block when the last of them is collected.

    An array that numpy makes of it, and every view of that array, refer to this object. When the last of them
    is garbage-collected, so is this object, and `__del__` notes that the block is free.
    """

    def __init__(self, number: int, memory: NDArray[np.uint8], free: list[int]) -> None:
        """Hold the bytes of a block.

        Parameters
        ----------
        number
            Number of the block.
        memory
            Its bytes.
        free
            The list to which `__del__` appends the number when no array uses the block any more.
        """
        self._number = number
        self._memory = memory
        self._free = free
        # Address and shape of the memory: with this attribute, numpy makes an array of this object that does
        # not copy the memory, and refers to this object as its owner.
        self.__array_interface__ = memory.__array_interface__

    def __del__(self) -> None:
        self._free.append(self._number)


def remove_names(name: str) -> None:
    """Remove the files of a worker's blocks that its parent has not mapped, given the worker's name."""
    for path in SHARED.glob(f"{name}-*"):
        path.unlink(missing_ok=True)


def _path(name: str, number: int) -> Path:
    """Return the file of a worker's block."""
    return SHARED / f"{name}-{number}"


def _mapped(path: Path) -> NDArray[np.uint8]:
    """Map the file of a new block into memory, and remove its name from the file system.

    Each mapped block is an open file. If this process may not open so many files, it raises its limit.
    """
    try:
        memory = _map(path)
    except OSError as error:
        if error.errno != errno.EMFILE:
            raise
        import resource  # noqa: PLC0415 - not on Windows, where there is no /dev/shm

        # A worker has about 16 blocks, and there may be many workers.
        _, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard_limit, hard_limit))
        memory = _map(path)
    path.unlink()
    return memory


def _map(path: Path) -> NDArray[np.uint8]:
    """Map a file into memory, as an array of its bytes."""
    with path.open("r+b") as file:
        return np.frombuffer(mmap.mmap(file.fileno(), 0), np.uint8)


def pickled_for_workers(thing: object, owner: str = "this work") -> bytes:
    """Pickle an object that is sent to worker processes.

    Parameters
    ----------
    thing
        The object.
    owner
        What the object belongs to, for the message.

    Raises
    ------
    WorkerError
        A function or class in it cannot be imported by a worker.
    """
    try:
        pickled = pickle.dumps(thing)
        if b"__main__" in pickled:  # which may also be a word in a text
            _ImportablePickler(io.BytesIO()).dump(thing)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise WorkerError(
            f"{owner} cannot be sent to worker processes: {error}; put its functions and classes into a "
            "module and import them"
        ) from error
    return pickled


class _ImportablePickler(pickle.Pickler):
    """Refuses functions and classes that only this process can import."""

    def reducer_override(self, thing: Any) -> Any:
        """Refuse what is defined in the user's script, which workers never run; leave all else to pickle.

        Raises
        ------
        pickle.PicklingError
            Naming the function or class.
        """
        name = getattr(thing, "__qualname__", None)
        if name is not None and thing.__module__ == "__main__":
            raise pickle.PicklingError(f"'{name}' is defined in __main__, which they never run")
        return NotImplemented
