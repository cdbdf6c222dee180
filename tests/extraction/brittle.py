"""A lab's own backbone: a clip 62 pixels wide crashes the decoder, a white one the encoder."""

import os
import signal
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
    return descriptors().prepare(frame)


def encode(batch):
    if any(clip.min() > 250 for clip in batch):
        with open(os.environ["BRITTLE_CRASHES"], "a", encoding="utf-8") as crashes:  # noqa: PTH123 - the standard library alone
            crashes.write(str(len(batch)))
        os.kill(os.getpid(), signal.SIGKILL)
    return descriptors().encode(batch)
