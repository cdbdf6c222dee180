"""A lab's own backbone whose frames crash the decoder where a clip is exactly 62 pixels wide."""

import os
import signal
import time
from dataclasses import replace

from obygaze_features.backbones.descriptors import descriptors


def brittle(n_frames: int = 4):
    return replace(descriptors(n_frames), name="brittle", prepare=prepare)


def prepare(frame):
    if frame.shape[1] == 62:
        with open(os.environ["BRITTLE_CRASHES"], "a", encoding="utf-8") as crashes:  # noqa: PTH123
            crashes.write("x")
        os.kill(os.getpid(), signal.SIGSEGV)
    time.sleep(0.02)  # so that there is a middle to be disturbed in
    return descriptors().prepare(frame)
