"""Read from AV1 packets which earlier frames each frame refers to.

An AV1 decoder keeps all state between frames in eight numbered slots. Each frame header lists the slots
that the frame reads and overwrites, so the references are known before decoding, and unneeded frames
can be left out without changing the others. Source: AV1 Bitstream Specification 1.0.0 with errata 1,
5.3 (OBUs), 5.5 (sequence header), 5.9.2 (uncompressed header), 7.20 and 7.21 (reference frame update and
loading).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SEQUENCE_HEADER, FRAME_HEADER, TILE_GROUP, FRAME, REDUNDANT_FRAME_HEADER, TILE_LIST = 1, 3, 4, 6, 7, 8
KEY_FRAME, INTRA_ONLY_FRAME, SWITCH_FRAME = 0, 2, 3
SLOTS, REFERENCES = 8, 7
SELECT = 2
"""Value of the sequence's tools that every frame chooses for itself."""

# Longer than any header up to its references (with error resilience: 8 order hints of 8 bits).
HEADER_BYTES = 40
COLUMNS = 3 + REFERENCES


class Unread(Exception):  # noqa: N818 - not an error: the signal that references are not known
    """The stream uses a feature that this reader does not support."""


@dataclass(frozen=True, slots=True)
class Sequence:
    """The fields of a sequence header that are needed to read frame headers."""

    screen_content: int
    integer_mv: int
    order_hint_bits: int


class Bits:
    """Reader of unsigned numbers from a bit string, highest bit first."""

    def __init__(self, data: bytes) -> None:
        self._value = int.from_bytes(data, "big")
        self._left = 8 * len(data)

    def __call__(self, count: int = 1) -> int:
        """Read a number of `count` bits."""
        self._left -= count
        if self._left < 0:
            raise Unread("a header that ends early")
        return self._value >> self._left & ((1 << count) - 1)


class FrameReferences:
    """Collect the frames of a stream with their references, packet by packet."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, ...]] = []
        self._slots = [-1] * SLOTS
        self._is_key: list[bool] = []
        self._sequence: Sequence | None = None
        self._packets = 0
        self._unread = False

    def add(self, data: bytes) -> None:
        """Add the next packet (one temporal unit)."""
        if not self._unread:
            try:
                self._add(data)
            except Unread:
                self._unread = True
        self._packets += 1

    def table(self) -> NDArray[np.int32]:
        """Return the frames in decoding order, with packet, byte range and references.

        Returns
        -------
        NDArray[np.int32]
            Shape [Q, 10]: packet number, first byte, byte after the last, and the rows of the seven frames
            that it refers to (-1 where there are fewer). No rows if any reference is unknown.
        """
        rows = [] if self._unread else self._rows
        return np.array(rows, np.int32).reshape(-1, COLUMNS)

    def _add(self, data: bytes) -> None:
        shows: list[bool] = []
        for kind, start, payload, stop in units(data):
            if kind == SEQUENCE_HEADER:
                self._sequence = sequence_header(Bits(data[payload:stop]))
            elif kind in (FRAME_HEADER, FRAME):
                shows.append(self._frame(Bits(data[payload : payload + HEADER_BYTES]), start, stop))
            elif kind in (TILE_GROUP, REDUNDANT_FRAME_HEADER) and shows:
                *head, _ = self._rows[-1][:3]
                self._rows[-1] = (*head, stop, *self._rows[-1][3:])
            elif kind == TILE_LIST:
                raise Unread("tile lists")
        if not shows or shows != [False] * (len(shows) - 1) + [True]:
            raise Unread("a packet that does not end with its only shown frame")

    def _frame(self, bits: Bits, start: int, stop: int) -> bool:
        """Record a frame; return whether it is shown."""
        if self._sequence is None:
            raise Unread("a frame before its sequence header")
        number = len(self._rows)
        if bits():  # show_existing_frame
            shown = self._slots[bits(3)]
            self._note(number, start, stop, [shown])
            self._is_key.append(shown >= 0 and self._is_key[shown])
            if self._is_key[-1]:
                self._slots = [number] * SLOTS
            return True
        kind, show, slots, overwritten = frame_header(bits, self._sequence)
        self._note(number, start, stop, [self._slots[slot] for slot in slots])
        self._is_key.append(kind == KEY_FRAME)
        self._slots = [
            number if overwritten >> slot & 1 else before for slot, before in enumerate(self._slots)
        ]
        return show

    def _note(self, number: int, start: int, stop: int, references: list[int]) -> None:
        if any(not 0 <= reference < number for reference in references):
            raise Unread("a reference to what was never decoded")
        self._rows.append((self._packets, start, stop, *references, *[-1] * (REFERENCES - len(references))))


def units(data: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Yield each OBU's type, its first byte, the first byte of its payload and the byte after its end."""
    position = 0
    while position < len(data):
        start, header = position, data[position]
        if header & 4:
            raise Unread("layers")
        position += 1
        size = len(data) - position
        if header & 2:
            size, position = leb128(data, position)
        if position + size > len(data):
            raise Unread("a unit that ends early")
        yield header >> 3 & 15, start, position, position + size
        position += size


def leb128(data: bytes, position: int) -> tuple[int, int]:
    """Read a size coded as LEB128 (7-bit groups, lowest first); return it and the next position."""
    value = 0
    for place in range(8):
        if position >= len(data):
            break
        byte = data[position]
        position += 1
        value |= (byte & 127) << 7 * place
        if byte < 128:
            break
    return value, position


def sequence_header(bits: Bits) -> Sequence:
    """Read a sequence header.

    Raises
    ------
    Unread
        The header uses an unsupported feature: still pictures, decoder models or frame numbers.
    """
    bits(3)  # seq_profile
    if bits(2):  # still_picture, reduced_still_picture_header
        raise Unread("still pictures")
    if bits():  # timing_info_present_flag
        _timing(bits)
    has_delay = bits()
    for _ in range(bits(5) + 1):  # operating points
        if bits(12):
            raise Unread("layers")
        if bits(5) > 7:
            bits(1)  # seq_tier
        if has_delay and bits():
            bits(4)
    width_bits, height_bits = bits(4) + 1, bits(4) + 1
    bits(width_bits + height_bits)
    if bits():
        raise Unread("frames with numbers")
    bits(7)  # superblocks, intra and inter tools
    has_order = bits()
    bits(2 * has_order)
    screen_content = SELECT if bits() else bits()
    integer_mv = SELECT
    if screen_content:
        integer_mv = SELECT if bits() else bits()
    return Sequence(screen_content, integer_mv, bits(3) + 1 if has_order else 0)


def _timing(bits: Bits) -> None:
    """Skip the timing fields of a sequence header."""
    bits(64)
    if bits():  # equal_picture_interval
        zeros = 0
        while not bits():
            zeros += 1
        bits(zeros)
    if bits():
        raise Unread("a decoder model")


def frame_header(bits: Bits, sequence: Sequence) -> tuple[int, bool, list[int], int]:
    """Read the header of a frame, after its first bit.

    Returns
    -------
    tuple
        Frame type; whether it is shown; the slots it refers to; the slots it overwrites, one bit each.

    Raises
    ------
    Unread
        The references are not coded explicitly; they follow from the frame order.
    """
    kind, show = bits(2), bool(bits())
    if not show:
        bits()  # showable_frame
    resets = kind == SWITCH_FRAME or (kind == KEY_FRAME and show)
    resilient = resets or bool(bits())
    bits()  # disable_cdf_update
    screen_content = bits() if sequence.screen_content == SELECT else sequence.screen_content
    if screen_content and sequence.integer_mv == SELECT:
        bits()
    if kind != SWITCH_FRAME:
        bits()  # frame_size_override_flag
    bits(sequence.order_hint_bits)
    is_intra = kind in (KEY_FRAME, INTRA_ONLY_FRAME)
    if not is_intra and not resilient:
        bits(3)  # primary_ref_frame: one of the references listed below
    overwritten = (1 << SLOTS) - 1 if resets else bits(8)
    if is_intra:
        return kind, show, [], overwritten
    if resilient and sequence.order_hint_bits:
        bits(SLOTS * sequence.order_hint_bits)
    if sequence.order_hint_bits and bits():
        raise Unread("references in short")
    return kind, show, [bits(3) for _ in range(REFERENCES)], overwritten
