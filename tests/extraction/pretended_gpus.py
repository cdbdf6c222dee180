"""Cards that need no GPU: a core decodes in the GPU's process, and the GPU misbehaves as it is told to.

Frames go through the formats in which NVIDIA's GPUs hold them, so that what brings them back is tried too.
"""

import itertools
import os
import signal
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from obygaze_features.video.hardware import CORES_FORMATS, to_core_format
from obygaze_features.video.source import LIMITS, opened

GPU_FORMAT_OF = {pixels: held for held, formats in CORES_FORMATS.items() for pixels in formats}
"""Format in which a core gives pixels -> the one in which a GPU holds them."""

FRAMES_COPIED = itertools.count(1)
"""Numbers the frames that are copied from the GPU in this process; GPUs are frozen and hold no count."""


@dataclass(frozen=True)
class PretendedGpu:
    """A GPU that gives the bits of a core, of pictures of `min_pixels` and more."""

    min_pixels: int = 0

    def missing(self):
        return ""

    @contextmanager
    def opened(self, path):
        """Open a file as `NvidiaGpu` does: film grain is listed as side data, so that it is noticed."""
        with opened(path) as source:
            source.context.options = LIMITS | {"export_side_data": "film_grain"}
            yield source

    def is_from_gpu(self, _frame):
        return True

    def to_host(self, frame, pixels):
        held = GPU_FORMAT_OF.get(pixels, pixels)
        return to_core_format(frame.reformat(format=held, threads=1), held, pixels)


@dataclass(frozen=True)
class NoGpu(PretendedGpu):
    """No GPU: there is no driver."""

    def missing(self):
        return "libcuda.so.1 of NVIDIA's driver is not found"


@dataclass(frozen=True)
class WrongBit(PretendedGpu):
    """A GPU that is right for the first frames of a process, and then changes a bit in the rows at the top.

    Attributes
    ----------
    right
        How many frames are right.
    """

    right: int = 0

    def to_host(self, frame, pixels):
        frame = super().to_host(frame, pixels)
        if next(FRAMES_COPIED) <= self.right:
            return frame
        luma = frame.planes[0]
        samples = np.frombuffer(memoryview(luma), np.uint8).copy()
        four_rows = 4 * luma.line_size
        samples[:four_rows] ^= 0b0100_0000
        luma.update(samples.tobytes())
        return frame


@dataclass(frozen=True)
class FallsBack(PretendedGpu):
    """A GPU that cannot decode: FFmpeg lets a core decode in its place, without a word."""

    def is_from_gpu(self, _frame):
        return False


@dataclass(frozen=True)
class Narrow(PretendedGpu):
    """A GPU that cannot decode pictures that are wider than 96 pixels."""

    def is_from_gpu(self, frame):
        return frame.width <= 96


@dataclass(frozen=True)
class Breaks(PretendedGpu):
    """A GPU that crashes its process, or hangs, at a frame that is copied from it.

    Attributes
    ----------
    n
        How many frames a process can copy before.
    hangs
        Whether it then hangs for an hour.
    """

    n: int = 0
    hangs: bool = False

    def to_host(self, frame, pixels):
        if next(FRAMES_COPIED) > self.n:
            if self.hangs:
                time.sleep(3600)
            else:
                os.kill(os.getpid(), signal.SIGSEGV)
        return super().to_host(frame, pixels)


@dataclass(frozen=True)
class Noted(FallsBack):
    """A GPU that cannot decode, and notes every file that it opens."""

    notes: Path = Path()

    @contextmanager
    def opened(self, path):
        with self.notes.open("a", encoding="utf-8") as notes:
            notes.write(f"{path.name}\n")
        with super().opened(path) as source:
            yield source
