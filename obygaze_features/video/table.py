"""The packets of a stream, known without decoding: what each shows when, and where decoding can start."""

import io
import json
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from obygaze_features.video.sampling import Timeline


@dataclass(frozen=True, slots=True)
class PacketTable:
    """The packets of a stream in decoding order, and what is known of them before decoding.

    Parameters
    ----------
    pts
        Shape [P]: presentation time stamps, in ticks of the stream; -1 where missing (then not `labelled`).
    size
        Shape [P]: bytes.
    rank
        Shape [P]: any numbers that grow in display order; meaningless unless `ordered`.
    random_access
        Shape [P]: decoding can start here and give exact pictures.
    spare
        Shape [P]: no other picture needs this one, so it is not fed to the decoder unless it is wanted.
    frames
        Shape [Q, 10]: the coded frames of packets that may hold several, with their references
        (`FrameReferences.table`): what no wanted frame refers to is left out. No rows where that isn't known.
    shown
        Shape [L]: packets that are shown, in display order (in decoding order unless `ordered`).
    time_s
        Shape [L]: when they are shown, in seconds of the player's clock; NaN where unknown.
    key
        Shape [L]: key frames, or None where the order of display is unknown.
    codec
        Its name.
    unsafe
        Why single frames can't be decoded by themselves; empty where they can.
    labelled
        A decoded frame is known by its time stamp.
    unpacked
        MPEG-4 whose packets must go through the unpacking filter for this table to hold.
    seekable
        A packet that is found after a seek is known by its time stamp and its size.
    truncated
        What the container promises and the file lacks, in words; empty for a whole file.
    notes
        Anything else that a person should know.
    """

    pts: NDArray[np.int64]
    size: NDArray[np.int64]
    rank: NDArray[np.int64]
    random_access: NDArray[np.bool_]
    spare: NDArray[np.bool_]
    frames: NDArray[np.int32]
    shown: NDArray[np.int64]
    time_s: NDArray[np.float64]
    key: NDArray[np.bool_] | None
    codec: str
    unsafe: str
    labelled: bool
    unpacked: bool
    seekable: bool
    truncated: str
    notes: tuple[str, ...]

    @property
    def timeline(self) -> Timeline:
        """The frames to choose from: L of them, by the packets."""
        return Timeline(np.arange(len(self.shown)), self.time_s, self.key)

    def number(self, pts: int | None, size: int) -> int:
        """Find a packet by its time stamp and size; -1 where there is no such packet."""
        if pts is None:
            return -1
        found = np.flatnonzero((self.pts == pts) & (self.size == size))
        return int(found[0]) if len(found) == 1 else -1

    def to_bytes(self) -> bytes:
        """Write the table as the bytes of an NPZ file, which hold no code."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        arrays: dict[str, Any] = {
            name: value for name, value in values.items() if isinstance(value, np.ndarray)
        }
        rest = {name: value for name, value in values.items() if name not in arrays}
        file = io.BytesIO()
        np.savez(file, json=np.array(json.dumps(rest)), **arrays)
        return file.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read a table that `to_bytes` wrote."""
        with np.load(io.BytesIO(data), allow_pickle=False) as stored:
            values: dict[str, Any] = {name: stored[name] for name in stored.files if name != "json"}
            values |= json.loads(str(stored["json"]))
        return cls(**values | {"notes": tuple(values["notes"])})
