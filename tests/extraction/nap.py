"""A lab's own backbone whose clips take a while and cost nothing, so that runs can be disturbed.

A frame takes NAP_S seconds. A clip `GATED_WIDTH` pixels wide waits while the file that NAP_GATE names is
there: a test removes it once the clip may be decoded.
"""

import os
import time
from dataclasses import replace

import stopping  # copied beside this file

from obygaze_features.backbones.descriptors import descriptors

GATED_WIDTH = 66


def nap(n_frames: int = 4):
    """Return the backbone; the process may be told to stop (`stopping`)."""
    stopping.arm()
    return replace(descriptors(n_frames), name="nap", prepare=prepare)


def prepare(frame):
    """Prepare a frame as `descriptors` does, after a nap and when the gate is open."""
    time.sleep(float(os.environ.get("NAP_S", "0")))
    is_gated = frame.shape[1] == GATED_WIDTH
    while is_gated and os.path.exists(os.environ["NAP_GATE"]):  # noqa: PTH110 - the standard library alone
        time.sleep(0.05)
    return descriptors().prepare(frame)
