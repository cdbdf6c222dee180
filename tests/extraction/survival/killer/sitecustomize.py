"""Kill decode workers in a chosen state: Python imports this first wherever this folder is on its path.

KILL_STATE is idle, starting, decoding or sending; KILL_FOLDER collects a file a kill, KILL_MOST of them at
most; KILL_ENGINE says whose workers they are. Whether a worker is killed depends on what it does, never on
how long it takes: every run with enough clips has exactly KILL_MOST kills. A clip is killed twice at most:
the third time would be its own fault.
"""

import itertools
import os
import random
import re
import signal
import sys
import threading
from contextlib import suppress
from pathlib import Path

CALLS = 400  # of functions while a clip is decoded, within which its worker is killed


def is_decode_worker() -> bool:
    if not any("run_worker" in word for word in sys.orig_argv):
        return False
    parent = Path(f"/proc/{os.getppid()}/cmdline").read_bytes() if os.environ["KILL_ENGINE"] == "ray" else b""
    return parent.startswith(b"ray::") or os.environ["KILL_ENGINE"] == "local"


def kill(clip: str = "") -> None:
    """End this process, unless enough were ended already, or the clip was hit twice."""
    folder = Path(os.environ["KILL_FOLDER"])
    if clip and not any(claim(folder.with_name(f"{clip}.{number}")) for number in range(2)):
        return
    if any(claim(folder / str(number)) for number in range(int(os.environ["KILL_MOST"]))):
        os.kill(os.getpid(), signal.SIGKILL)


def claim(path: Path) -> bool:
    with suppress(FileExistsError):
        path.touch(exist_ok=False)
        return True
    return False


def arm(state: str) -> None:
    from obygaze_features import workers

    receive, send = workers._receive, workers._send
    clip = ""
    # Half of the idle workers die before their first task, the others after it.
    after_a_task = random.random() < 0.5

    def receiving(stream, *words):
        nonlocal clip
        if state == "idle" and not clip and not after_a_task:
            kill()
        kind, message = receive(stream, *words)
        if kind == b"task":
            clip = re.findall(rb"tt\d+-\d{3}", message)[0].decode()
        return kind, message

    def sending(stream, kind, message):
        if state == "starting":
            kill()
        if state == "sending" and kind == b"item":
            stream.write(workers._HEAD.pack(kind, len(message)) + message[: len(message) // 2])
            stream.flush()
            kill(clip)
            stream.write(message[len(message) // 2 :])
            stream.flush()
            return
        if state == "decoding" and kind == b"busy":
            sys.setprofile(calls_until_killed(clip))
        send(stream, kind, message)
        if state == "idle" and kind == b"done":
            kill()

    workers._receive, workers._send = receiving, sending


def calls_until_killed(clip: str):
    """Return a profile function that ends the process at a call below `decode_clips`, or as that returns."""
    left = itertools.count(random.randrange(CALLS), -1)

    def profile(frame, event, _argument) -> None:
        leaves = event == "return" and frame.f_code.co_name == "decode_clips"
        while frame is not None and frame.f_code.co_name != "decode_clips":
            frame = frame.f_back
        if frame is not None and (leaves or next(left) <= 0):
            sys.setprofile(None)
            kill(clip)

    return profile


if "KILL_STATE" in os.environ and is_decode_worker():
    arm(os.environ["KILL_STATE"])
    if os.environ["KILL_STATE"] == "starting":
        threading.Timer(random.uniform(0.0, 0.2), kill).start()
