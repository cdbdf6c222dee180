"""A lab's own backbone whose processes crash at certain clips, so that tests see who dies and who goes on.

A clip `CRASHES_DECODER` pixels wide crashes the process that decodes it, a white clip the one that encodes
it. Each crash adds a line to the file that BRITTLE_CRASHES names: "decoder", or "encoder N" for a batch of N.
"""

import os
import signal
from dataclasses import replace

from obygaze_features.backbones.descriptors import descriptors

CRASHES_DECODER = 62
WHITE = 250
"""Least value of pixels that are white, but for what encoding changes."""


def brittle(n_frames: int = 4):
    """Return the backbone: `descriptors`, but clips are encoded as networks encode, outside of workers."""
    return replace(
        descriptors(n_frames), name="brittle", prepare=prepare, encode=encode, encode_in_worker=False
    )


def prepare(frame):
    """Prepare a frame as `descriptors` does, or crash this process."""
    if frame.shape[1] == CRASHES_DECODER:
        crash("decoder", signal.SIGSEGV)
    return descriptors().prepare(frame)


def encode(batch):
    """Encode a batch as `descriptors` does, or crash this process if one of its clips is white."""
    if any(clip.min() > WHITE for clip in batch):
        crash(f"encoder {len(batch)}", signal.SIGKILL)
    return descriptors().encode(batch)


def crash(line, signal_number):
    """Note a crash, and end this process by a signal."""
    with open(os.environ["BRITTLE_CRASHES"], "a", encoding="utf-8") as crashes:  # noqa: PTH123 - the standard library alone
        crashes.write(f"{line}\n")
    os.kill(os.getpid(), signal_number)
