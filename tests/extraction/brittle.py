"""A lab's own backbone: a clip 62 pixels wide crashes the decoder, a white one the encoder.

A clip 66 pixels wide is decoded only when the file that BRITTLE_GATE names is gone.
"""

import os
import signal
import time
from dataclasses import replace

from obygaze_features.backbones.descriptors import descriptors


def brittle(n_frames: int = 4):
    return replace(
        descriptors(n_frames), name="brittle", prepare=prepare, encode=encode, encode_in_worker=False
    )


def prepare(frame):
    if frame.shape[1] == 62:
        with open(os.environ["BRITTLE_CRASHES"], "a", encoding="utf-8") as crashes:  # noqa: PTH123 - the standard library alone
            crashes.write("x")
        os.kill(os.getpid(), signal.SIGSEGV)
    while frame.shape[1] == 66 and os.path.exists(os.environ["BRITTLE_GATE"]):  # noqa: PTH110 - as above
        time.sleep(0.05)
    return descriptors().prepare(frame)


def encode(batch):
    if any(clip.min() > 250 for clip in batch):
        with open(os.environ["BRITTLE_CRASHES"], "a", encoding="utf-8") as crashes:  # noqa: PTH123 - the standard library alone
            crashes.write(str(len(batch)))
        os.kill(os.getpid(), signal.SIGKILL)
    return descriptors().encode(batch)
