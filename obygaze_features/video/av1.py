"""Read from AV1 packets which earlier frames each frame refers to.

An AV1 decoder keeps all state between frames in eight numbered slots. Each frame header lists the slots
that the frame reads and overwrites, so the references are known before decoding, and unneeded frames
can be left out without changing the others. Source: AV1 Bitstream Specification 1.0.0 with errata 1,
5.3 (OBUs), 5.5 (sequence header), 5.9.2 (uncompressed header), 7.20 and 7.21 (reference frame update and
loading).
"""

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

SEQUENCE_HEADER, FRAME_HEADER, TILE_GROUP, FRAME, REDUNDANT_FRAME_HEADER, TILE_LIST = 1, 3, 4, 6, 7, 8
FRAMES, PARTS = (FRAME, FRAME_HEADER), (TILE_GROUP, REDUNDANT_FRAME_HEADER)
KEY_FRAME, INTRA_ONLY_FRAME, SWITCH_FRAME = 0, 2, 3
SLOTS, REFERENCES = 8, 7
ALL_SLOTS = (1 << SLOTS) - 1
SELECT = 2
"""Value of the sequence's tools that every frame chooses for itself."""

NO_FRAME, NEVER_DECODED = -1, -2
# Longer than any header up to its references (with error resilience: 8 order hints of 8 bits).
HEADER_BYTES = 24
COLUMNS = 3 + REFERENCES
# Headers are read this many at a time, by array operations; one by one they take three times as long.
BLOCK = 4096
# Each costs another look at the block. With one key frame in 16, leaving out frames gains little.
MOST_KEYS_SHOWN_AGAIN = BLOCK // 16

Numbers: TypeAlias = NDArray[np.int64]
Marks: TypeAlias = NDArray[np.bool_]


class Unread(Exception):  # noqa: N818 - not an error: the signal that references are not known
    """The stream uses a feature that this reader does not support."""


class Sequence(NamedTuple):
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


class ManyBits:
    """Reader of unsigned numbers from many short bit strings at once, each at a position of its own."""

    def __init__(self, strings: list[bytes]) -> None:
        lengths = np.array(list(map(len, strings)))
        padded = np.zeros((len(strings), HEADER_BYTES), np.uint8)
        padded[np.arange(HEADER_BYTES) < lengths[:, None]] = np.frombuffer(b"".join(strings), np.uint8)
        self._bits = np.unpackbits(padded, axis=1)
        self._lengths = 8 * lengths
        self._positions = np.zeros(len(strings), np.int64)

    def __call__(self, count: int, where: Marks) -> Numbers:
        """Read a number of `count` bits from the marked strings; the numbers of the others are 0."""
        places = np.minimum(self._positions[:, None] + np.arange(count), self._bits.shape[1] - 1)
        numbers = np.take_along_axis(self._bits, places, axis=1) @ (1 << np.arange(count)[::-1])
        self.skip(count, where)
        return np.where(where, numbers, 0)

    def skip(self, counts: Numbers | int, where: Marks) -> None:
        """Pass over bits of the marked strings."""
        self._positions += np.where(where, counts, 0)

    def check(self) -> None:
        """Raise `Unread` if a string has fewer bits than were read."""
        if (self._positions > self._lengths).any():
            raise Unread("a header that ends early")


class FrameReferences:
    """Collect the frames of a stream with their references, packet by packet."""

    def __init__(self) -> None:
        self._places: list[int] = []
        self._headers: list[bytes] = []
        self._sequences: list[Sequence] = []
        self._sequence_of: list[int] = []
        self._references: list[Numbers] = []
        self._slots = np.full(SLOTS, NEVER_DECODED)
        self._is_key = np.zeros(0, np.bool_)
        self._packets = 0
        self._unread = False

    def add(self, data: bytes) -> None:
        """Add the next packet (one temporal unit)."""
        if not self._unread:
            try:
                self._add(data)
                if len(self._headers) >= BLOCK:
                    self._refer()
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
        try:
            self._refer()
        except Unread:
            self._unread = True
        if self._unread or not self._references:
            return np.empty((0, COLUMNS), np.int32)
        places = np.array(self._places).reshape(-1, 3)
        return np.hstack([places, np.concatenate(self._references)]).astype(np.int32)

    def _add(self, data: bytes) -> None:
        shows: bool | None = None  # whether the latest frame is shown
        for kind, start, payload, stop in units(data):
            if kind in FRAMES:
                header = data[payload : min(payload + HEADER_BYTES, stop)]
                if not self._sequences or not header or shows:
                    raise Unread("a frame before its sequence header, without its own, or after a shown one")
                self._headers.append(header)
                self._sequence_of.append(len(self._sequences) - 1)
                self._places += (self._packets, start, stop)
                shows = bool(header[0] & 0b1001_0000)  # show_existing_frame, show_frame
            elif kind == SEQUENCE_HEADER:
                self._sequences.append(sequence_header(Bits(data[payload:stop])))
            elif kind in PARTS and shows is not None:
                self._places[-1] = stop
            elif kind == TILE_LIST:
                raise Unread("tile lists")
        if not shows:
            raise Unread("a packet that does not end with its only shown frame")

    def _refer(self) -> None:
        """Read the headers collected, and follow the slots through their frames."""
        if not self._headers:
            return
        sequences = np.array(self._sequences)[self._sequence_of]
        listed, is_key, shown_again, overwritten = frame_headers(ManyBits(self._headers), sequences)
        self._headers, self._sequence_of = [], []
        first = len(self._is_key)
        numbers = np.arange(first, first + len(listed))[:, None]
        self._is_key = np.concatenate([self._is_key, is_key])
        for _ in range(MOST_KEYS_SHOWN_AGAIN):
            own = np.where(overwritten[:, None] >> np.arange(SLOTS) & 1, numbers, NEVER_DECODED)
            # What each slot holds before each frame, and after the last: the latest frame that overwrote it.
            held = np.maximum.accumulate(np.vstack([self._slots, own]))
            references = np.where(
                listed < 0, NO_FRAME, np.take_along_axis(held[:-1], np.maximum(listed, 0), 1)
            )
            again = shown_again & (overwritten == 0) & (references[:, 0] >= 0)
            again[again] = self._is_key[references[again, 0]]
            if not again.any():
                break
            # A key frame shown again fills all slots, which concerns the frames that follow.
            earliest = again.argmax()
            overwritten[earliest], self._is_key[first + earliest] = ALL_SLOTS, True
        else:
            raise Unread("key frames shown again and again")
        if (references == NEVER_DECODED).any():
            raise Unread("a reference to what was never decoded")
        self._slots = held[-1]
        self._references.append(references)


def units(data: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Yield each OBU's type, its first byte, the first byte of its payload and the byte after its end."""
    position, end = 0, len(data)
    while position < end:
        start, header = position, data[position]
        if header & 4:
            raise Unread("layers")
        position += 1
        size = end - position
        if header & 2:
            size, position = leb128(data, position)
        if position + size > end:
            raise Unread("a unit that ends early")
        yield header >> 3 & 15, start, position, position + size
        position += size


def leb128(data: bytes, position: int) -> tuple[int, int]:
    """Read a size coded as LEB128 (7-bit groups, lowest first); return it and the next position."""
    value = shift = 0
    for byte in data[position : position + 8]:
        value |= (byte & 127) << shift
        shift += 7
        position += 1
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


def frame_headers(bits: ManyBits, sequences: Numbers) -> tuple[Numbers, Marks, Marks, Numbers]:
    """Read frame headers up to their references.

    Parameters
    ----------
    bits
        The headers.
    sequences
        Shape [Q, 3]: the fields of `Sequence` that hold for each.

    Returns
    -------
    tuple
        Shape [Q, 7]: the slots that each frame refers to, or shows again (-1 where there are fewer).
        Shape [Q]: whether it is a key frame; whether it only shows a frame again; the slots that it
        overwrites, one bit each.

    Raises
    ------
    Unread
        The references are not coded explicitly; they follow from the frame order.
    """
    screen_content, integer_mv, order_hint_bits = sequences.T
    everywhere = np.ones(len(sequences), np.bool_)
    shown_again = bits(1, everywhere) == 1
    slot_shown = bits(3, shown_again)
    coded = ~shown_again
    kind, show = bits(2, coded), bits(1, coded) == 1
    bits.skip(1, coded & ~show)  # showable_frame
    resets = coded & ((kind == SWITCH_FRAME) | ((kind == KEY_FRAME) & show))
    resilient = resets | (bits(1, coded & ~resets) == 1)
    bits.skip(1, coded)  # disable_cdf_update
    chosen = bits(1, coded & (screen_content == SELECT)) == 1
    bits.skip(1, coded & (chosen | (screen_content == 1)) & (integer_mv == SELECT))
    bits.skip(1, coded & (kind != SWITCH_FRAME))  # frame_size_override_flag
    bits.skip(order_hint_bits, coded)
    refers = coded & (kind != KEY_FRAME) & (kind != INTRA_ONLY_FRAME)
    bits.skip(3, refers & ~resilient)  # primary_ref_frame: one of the references listed below
    overwritten = np.where(resets, ALL_SLOTS, bits(SLOTS, coded & ~resets))
    bits.skip(SLOTS * order_hint_bits, refers & resilient)
    if bits(1, refers & (order_hint_bits > 0)).any():
        raise Unread("references in short")
    listed = bits(3 * REFERENCES, refers)[:, None] >> 3 * np.arange(REFERENCES)[::-1] & 7
    bits.check()
    listed[~refers] = -1
    listed[shown_again, 0] = slot_shown[shown_again]
    return listed, coded & (kind == KEY_FRAME), shown_again, overwritten
