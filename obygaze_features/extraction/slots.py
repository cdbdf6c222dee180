"""Transfer arrays from worker processes to this process in shared memory; only small messages are copied.

A slot is an unnamed file in memory, which the system removes when the processes end for any reason. A worker
writes arrays into it; this process maps the file and reads them without a copy. A slot is free again when its
last array is garbage-collected.
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
"""Size in bytes below which arrays are sent in the message, so that a small array does not hold a slot."""
ALIGNMENT = 64
"""Alignment in bytes: a cache line, which is also the width of the widest vector registers."""

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Parcel:
    """Pickled object whose large arrays are in a slot.

    Attributes
    ----------
    pickled
        The object without its large arrays.
    spans
        Offset and size of each large array in the slot, in bytes.
    """

    pickled: bytes
    spans: tuple[Span, ...]


class Slot:
    """File in memory, and the part of it that this process has mapped."""

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
    """Slots of a run; reused, so that there are only as many as are in use at one time."""

    def __init__(self) -> None:
        self._all: list[Slot] = []
        self._free: list[Slot] = []

    def __len__(self) -> int:
        return len(self._all)

    def take(self) -> Slot:
        """Return the most recently used free slot, or a new slot."""
        if self._free:
            return self._free.pop()
        slot = Slot(len(self._all))
        self._all.append(slot)
        return slot

    def free(self, slot: Slot) -> None:
        """Return a slot that is no longer read or written to the free slots."""
        self._free.append(slot)

    def unpack(self, slot: Slot, parcel: Parcel) -> Any:
        """Rebuild a packed object; its slot is freed with its last array, or at once if it has none."""
        if not parcel.spans:
            self.free(slot)
            return pickle.loads(parcel.pickled)  # noqa: S301 - from our own process
        offset, size = parcel.spans[-1]
        whole = np.asarray(_Lease(self, slot, offset + size))
        buffers = [whole[offset : offset + size] for offset, size in parcel.spans]
        return pickle.loads(parcel.pickled, buffers=buffers)  # noqa: S301 - from our own process

    def close(self) -> None:
        """Close the slots; arrays still in use stay valid."""
        for slot in self._all:
            os.close(slot.descriptor)
        self._all, self._free = [], []


class Held:
    """A packed object that other workers will read; its slot is freed when this is collected."""

    def __init__(self, slots: Slots, slot: Slot, parcel: Parcel) -> None:
        self._slots, self.slot, self.parcel = slots, slot, parcel

    def __del__(self) -> None:
        self._slots.free(self.slot)


class _Lease:
    """Owner of the memory of one object's arrays; frees the slot when the last array is collected."""

    def __init__(self, slots: Slots, slot: Slot, size: int) -> None:
        self._slots, self._slot = slots, slot
        self._mapped = slot.mapped(size)
        self.__array_interface__ = self._mapped.__array_interface__

    def __del__(self) -> None:
        self._slots.free(self._slot)


def read_parcel(parcel: Parcel, descriptor: int) -> Any:
    """Rebuild, in a worker, an object that another worker packed."""
    buffers: list[NDArray[np.uint8]] = []
    if parcel.spans:
        offset, size = parcel.spans[-1]
        whole = np.frombuffer(mmap.mmap(descriptor, offset + size), np.uint8)
        buffers = [whole[offset : offset + size] for offset, size in parcel.spans]
    return pickle.loads(parcel.pickled, buffers=buffers)  # noqa: S301 - from our own process


def pack(thing: object, descriptor: int) -> Parcel:
    """Pickle an object in a worker, and write each of its large arrays into a slot once."""
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
    """Open a new file in memory; an unnamed temporary file if the system has no such files."""
    try:
        return _open()
    except OSError as error:
        if error.errno != errno.EMFILE:
            raise
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)  # films on many cores: 16 slots per worker
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return _open()


def _open() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("obygaze", os.MFD_CLOEXEC)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
