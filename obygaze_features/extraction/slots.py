"""Hand arrays from worker processes to this one in shared memory; only small messages are copied.

A slot is a file in memory without a name: nothing is left of it once the processes are gone, whatever ended
them. A worker writes arrays into it; this process maps it and reads them where they lie. A slot is free
again when the last array in it is forgotten.
"""

import errno
import mmap
import os
import pickle
import resource
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

SMALL_BYTES = 1 << 16
"""Arrays below this travel in the message, so that a few numbers that are kept do not keep a slot."""
ALIGNMENT = 64
"""Bytes: of a cache line, and of the widest vectors."""

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Parcel:
    """An object whose large arrays lie in a slot.

    Attributes
    ----------
    pickled
        The object, without them.
    spans
        Offset and size of each of them in the slot, in bytes.
    """

    pickled: bytes
    spans: tuple[Span, ...]


class Slot:
    """A file in memory, with the part of it that this process has mapped."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.descriptor = _memory()
        self._bytes: NDArray[np.uint8] = np.empty(0, np.uint8)

    def mapped(self, size: int) -> NDArray[np.uint8]:
        """Return the first bytes of the slot."""
        if len(self._bytes) < size:
            self._bytes = np.frombuffer(mmap.mmap(self.descriptor, size), np.uint8)
        return self._bytes[:size]


class Slots:
    """All slots of a run: as many as are in use at one time, and used again and again."""

    def __init__(self) -> None:
        self._all: list[Slot] = []
        self._free: list[Slot] = []

    def __len__(self) -> int:
        return len(self._all)

    def take(self) -> Slot:
        """Return a free slot, the one used last, or a new one."""
        if self._free:
            return self._free.pop()
        slot = Slot(len(self._all))
        self._all.append(slot)
        return slot

    def free(self, slot: Slot) -> None:
        """Take back a slot that nobody writes to or reads from any more."""
        self._free.append(slot)

    def unpack(self, slot: Slot, parcel: Parcel) -> Any:
        """Rebuild a packed object; its slot is free once its arrays are forgotten, at once if it has none."""
        if not parcel.spans:
            self.free(slot)
            return pickle.loads(parcel.pickled)  # noqa: S301 - from our own process
        offset, size = parcel.spans[-1]
        whole = np.asarray(_Lease(self, slot, offset + size))
        buffers = [whole[offset : offset + size] for offset, size in parcel.spans]
        return pickle.loads(parcel.pickled, buffers=buffers)  # noqa: S301 - from our own process

    def close(self) -> None:
        """Forget the slots; arrays that are still in use stay as they are."""
        for slot in self._all:
            os.close(slot.descriptor)
        self._all, self._free = [], []


class _Lease:
    """What the arrays of one object stand on: the last one to be forgotten frees the slot."""

    def __init__(self, slots: Slots, slot: Slot, size: int) -> None:
        self._slots, self._slot = slots, slot
        self._mapped = slot.mapped(size)
        self.__array_interface__ = self._mapped.__array_interface__

    def __del__(self) -> None:
        self._slots.free(self._slot)


def pack(thing: object, descriptor: int) -> Parcel:
    """Pickle an object, in a worker, writing its large arrays into a slot; each of them once."""
    buffers: list[pickle.PickleBuffer] = []

    def small(buffer: pickle.PickleBuffer) -> bool:
        if buffer.raw().nbytes < SMALL_BYTES:
            return True
        buffers.append(buffer)
        return False

    pickled = pickle.dumps(thing, protocol=5, buffer_callback=small)
    return Parcel(pickled, tuple(_written(buffers, descriptor)))


def _written(buffers: Sequence[pickle.PickleBuffer], descriptor: int) -> list[Span]:
    spans = []
    offset = 0
    for buffer in buffers:
        raw = buffer.raw()
        done = 0
        while done < raw.nbytes:
            done += os.pwrite(descriptor, raw[done:], offset + done)
        spans.append((offset, raw.nbytes))
        offset += -(-raw.nbytes // ALIGNMENT) * ALIGNMENT
    return spans


def _memory() -> int:
    """Open a new file in memory; where the system has none, a temporary file without a name."""
    try:
        return _open()
    except OSError as error:
        if error.errno != errno.EMFILE:
            raise
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)  # films on many cores: 16 slots a worker
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return _open()


def _open() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("obygaze", os.MFD_CLOEXEC)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
