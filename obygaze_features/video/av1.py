"""Read from AV1 packets which earlier frames each frame refers to.

An AV1 decoder keeps all state between frames in eight numbered slots. Each frame header lists the slots
that the frame reads and overwrites, so the references are known before decoding, and unneeded frames
can be left out without changing the others. Source: AV1 Bitstream Specification 1.0.0 with errata 1,
5.3 (OBUs), 5.5 (sequence header), 5.9.2 (uncompressed header), 7.20 and 7.21 (reference frame update and
loading).
"""

from functools import lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

SEQUENCE_HEADER, FRAME_HEADER, TILE_GROUP, FRAME, REDUNDANT_FRAME_HEADER, TILE_LIST = 1, 3, 4, 6, 7, 8
KEY_FRAME, INTRA_ONLY_FRAME, SWITCH_FRAME = 0, 2, 3
SLOTS, REFERENCES = 8, 7
ALL_SLOTS = (1 << SLOTS) - 1
SELECT = 2
"""Value of the sequence's tools that every frame chooses for itself."""

NO_FRAME, NEVER_DECODED = -1, -2
WORD_BYTES = 4
COLUMNS = 3 + REFERENCES
# Packets are read this many at a time, by array operations; one by one they take three times as long.
BLOCK, BLOCK_BYTES = 4096, 1 << 23
MOST_UNITS = 4608
"""In a packet: a frame has 4096 tile groups at most. Damaged packets could hold a unit a byte."""
# Each costs another look at the block. With one key frame in 16, leaving out frames gains little.
MOST_KEYS_SHOWN_AGAIN = BLOCK // 16

Data: TypeAlias = bytes | memoryview
Octets: TypeAlias = NDArray[np.uint8]
Numbers: TypeAlias = NDArray[np.int64]
Marks: TypeAlias = NDArray[np.bool_]


class Unsupported(Exception):  # noqa: N818 - not an error: the signal that references are not known
    """The stream uses a feature that this reader does not support."""


class SequenceHeader(NamedTuple):
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
            raise Unsupported("a header that ends early")
        return self._value >> self._left & ((1 << count) - 1)


class ManyBits:
    """Reader of unsigned numbers from many bit strings at once, each at a position of its own.

    Parameters
    ----------
    data
        Shape [B]: bytes that hold the strings, and at least `WORD_BYTES` more.
    starts, stops
        Shape [Q]: first byte of each string, and the byte after its last.
    """

    def __init__(self, data: Octets, starts: Numbers, stops: Numbers) -> None:
        # The word that begins at each byte.
        self._words = np.ndarray(len(data) - WORD_BYTES + 1, ">u4", data, strides=(1,))
        self._positions, self._ends = 8 * starts, 8 * stops

    def __call__(self, count: int, where: Marks) -> Numbers:
        """Read a number of `count` bits, 25 at most, from the marked strings; the others' numbers are 0."""
        words = self._words[np.minimum(self._positions >> 3, len(self._words) - 1)].astype(np.int64)
        numbers = words >> (8 * WORD_BYTES - count - (self._positions & 7)) & ((1 << count) - 1)
        self.skip(count, where)
        return np.where(where, numbers, 0)

    def skip(self, counts: Numbers | int, where: Marks) -> None:
        """Pass over bits of the marked strings."""
        self._positions += np.where(where, counts, 0)

    def check(self) -> None:
        """Raise `Unsupported` if a string has fewer bits than were read."""
        if (self._positions > self._ends).any():
            raise Unsupported("a header that ends early")


class FrameReferences:
    """Collect the frames of a stream with their references, packet by packet."""

    def __init__(self) -> None:
        self._packets: list[Data] = []
        self._bytes = 0
        self._before = 0
        self._sequences: list[SequenceHeader] = []
        self._tables: list[Numbers] = []
        self._slots = np.full(SLOTS, NEVER_DECODED)
        self._is_key = np.zeros(0, np.bool_)
        self._unread = False

    def add(self, data: Data) -> None:
        """Add the next packet (one temporal unit)."""
        self._packets.append(data)
        self._bytes += len(data)
        if len(self._packets) >= BLOCK or self._bytes >= BLOCK_BYTES:
            self._read()

    def table(self) -> NDArray[np.int32]:
        """Return the frames in decoding order, with packet, byte range and references.

        Returns
        -------
        NDArray[np.int32]
            Shape [Q, 10]: packet number, first byte, byte after the last, and the rows of the seven frames
            that it refers to (-1 where there are fewer). No rows if any reference is unknown.
        """
        self._read()
        if self._unread or not self._tables:
            return np.empty((0, COLUMNS), np.int32)
        return np.concatenate(self._tables).astype(np.int32)

    def _read(self) -> None:
        """Read the packets collected."""
        packets, self._packets, self._bytes = self._packets, [], 0
        if packets and not self._unread:
            try:
                self._tables.append(self._frames(packets))
            except Unsupported:
                self._unread = True
        self._before += len(packets)

    def _frames(self, packets: list[Data]) -> Numbers:
        """Return the rows of the packets' frames."""
        data = np.frombuffer(b"".join([*packets, bytes(WORD_BYTES)]), np.uint8)
        ends = np.cumsum(list(map(len, packets)))
        packet, kind, start, payload, stop = units(data, ends)
        if (kind == TILE_LIST).any():
            raise Unsupported("tile lists")
        begins = kind == SEQUENCE_HEADER
        sequence = len(self._sequences) + np.cumsum(begins) - 1
        for first, last in zip(payload[begins].tolist(), stop[begins].tolist(), strict=True):
            self._sequences.append(sequence_header(data[first:last].tobytes()))
        is_frame = (kind == FRAME) | (kind == FRAME_HEADER)
        holder = np.cumsum(is_frame) - 1  # the frame of each unit
        of_frame = packet[is_frame]
        part = ((kind == TILE_GROUP) | (kind == REDUNDANT_FRAME_HEADER)) & (holder >= 0)
        part[part] = of_frame[holder[part]] == packet[part]
        begin, header, end = start[is_frame], payload[is_frame], stop[is_frame].copy()
        if (header == end).any() or (sequence[is_frame] < 0).any():
            raise Unsupported("a frame without a header, or before its sequence header")
        shows = data[header] & 0b1001_0000 > 0  # show_existing_frame, show_frame
        if of_frame[:1].tolist() != [0] or (np.diff(of_frame, append=len(packets)) != shows).any():
            raise Unsupported("a packet that does not end with its only shown frame")
        headers = ManyBits(data, header, end)
        references = self._refer(headers, np.array(self._sequences)[sequence[is_frame]])
        end[holder[part]] = stop[part]  # the last part of each frame counts
        offset = (ends - np.diff(ends, prepend=0))[of_frame]
        return np.column_stack([self._before + of_frame, begin - offset, end - offset, references])

    def _refer(self, headers: ManyBits, sequences: Numbers) -> Numbers:
        """Read frame headers, and follow the slots through their frames."""
        listed, is_key, shown_again, overwritten = frame_headers(headers, sequences)
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
            raise Unsupported("key frames shown again and again")
        if (references == NEVER_DECODED).any():
            raise Unsupported("a reference to what was never decoded")
        self._slots = held[-1]
        return references


def units(data: Octets, ends: Numbers) -> tuple[Numbers, Numbers, Numbers, Numbers, Numbers]:
    """Find the OBUs of packets.

    Parameters
    ----------
    data
        Shape [B]: the packets, one after the other, and at least one byte more.
    ends
        Shape [P]: the byte after the last of each.

    Returns
    -------
    tuple
        Shape [U]: each unit's packet, its type, its first byte, the first byte of its payload and the byte
        after its end.
    """
    rounds: list[Numbers] = []
    packet, start = np.arange(len(ends)), ends - np.diff(ends, prepend=0)
    while len(packet):  # the next unit of each packet that has another
        if len(rounds) == MOST_UNITS:
            raise Unsupported("a packet of too many units")
        packet, start = packet[start < ends[packet]], start[start < ends[packet]]
        header, end = data[start], ends[packet]
        if (header & 4).any():
            raise Unsupported("layers")
        sized = header & 2 > 0
        size, payload = leb128(data, start + 1, sized)
        stop = np.where(sized, payload + size, end)
        if (stop > end).any():
            raise Unsupported("a unit that ends early")
        rounds.append(np.stack([packet, header >> 3 & 15, start, payload, stop]))
        start = stop
    table = np.hstack(rounds)
    packet, kind, start, payload, stop = table[:, np.argsort(table[2])]
    return packet, kind, start, payload, stop


def leb128(data: Octets, position: Numbers, where: Marks) -> tuple[Numbers, Numbers]:
    """Read sizes coded as LEB128 (7-bit groups, lowest first); return them and the positions after them."""
    value = np.zeros(len(position), np.int64)
    for shift in range(0, 56, 7):
        byte = np.where(where, data[np.minimum(position, len(data) - 1)], 0).astype(np.int64)
        value |= (byte & 127) << shift
        position = position + where
        where = byte >= 128
        if not where.any():
            break
    return value, position


@lru_cache(maxsize=16)  # it is the same at every key frame
def sequence_header(data: bytes) -> SequenceHeader:
    """Read a sequence header.

    Raises
    ------
    Unread
        The header uses an unsupported feature: still pictures, decoder models or frame numbers.
    """
    bits = Bits(data)
    bits(3)  # seq_profile
    if bits(2):  # still_picture, reduced_still_picture_header
        raise Unsupported("still pictures")
    if bits():  # timing_info_present_flag
        _timing(bits)
    has_delay = bits()
    for _ in range(bits(5) + 1):  # operating points
        if bits(12):
            raise Unsupported("layers")
        if bits(5) > 7:
            bits(1)  # seq_tier
        if has_delay and bits():
            bits(4)
    width_bits, height_bits = bits(4) + 1, bits(4) + 1
    bits(width_bits + height_bits)
    if bits():
        raise Unsupported("frames with numbers")
    bits(7)  # superblocks, intra and inter tools
    has_order = bits()
    bits(2 * has_order)
    screen_content = SELECT if bits() else bits()
    integer_mv = SELECT
    if screen_content:
        integer_mv = SELECT if bits() else bits()
    return SequenceHeader(screen_content, integer_mv, bits(3) + 1 if has_order else 0)


def _timing(bits: Bits) -> None:
    """Skip the timing fields of a sequence header."""
    bits(64)
    if bits():  # equal_picture_interval
        zeros = 0
        while not bits():
            zeros += 1
        bits(zeros)
    if bits():
        raise Unsupported("a decoder model")


def frame_headers(bits: ManyBits, sequences: Numbers) -> tuple[Numbers, Marks, Marks, Numbers]:
    """Read frame headers up to their references.

    Parameters
    ----------
    bits
        The headers.
    sequences
        Shape [Q, 3]: the fields of `SequenceHeader` that hold for each.

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
        raise Unsupported("references in short")
    listed = bits(3 * REFERENCES, refers)[:, None] >> 3 * np.arange(REFERENCES)[::-1] & 7
    bits.check()
    listed[~refers] = -1
    listed[shown_again, 0] = slot_shown[shown_again]
    return listed, coded & (kind == KEY_FRAME), shown_again, overwritten
