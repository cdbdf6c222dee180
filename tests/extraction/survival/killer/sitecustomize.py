"""Kill decode workers in a chosen state: Python imports this first wherever this folder is on its path.

KILL_STATE is idle, starting, decoding or sending; KILL_FOLDER collects a file a kill, KILL_MOST of them at
most; KILL_ENGINE says whose workers they are. Whether a worker is killed depends on what it does, never on
how long it takes: every run with enough clips has exactly KILL_MOST kills. A clip is killed twice at most:
the third time would be its own fault.
"""

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
    """Return whether this process is a decode worker of the engine whose workers are killed."""
    runs_worker = any("run_worker" in word for word in sys.orig_argv)
    if os.environ["KILL_ENGINE"] == "local" or not runs_worker:
        return runs_worker
    # A worker of Ray's engine has a process of Ray as its parent.
    parent = Path(f"/proc/{os.getppid()}/cmdline").read_bytes()
    return parent.startswith(b"ray::")


def kill(clip: str = "") -> None:
    """End this process, unless KILL_MOST processes were ended before, or two at this clip."""
    folder = Path(os.environ["KILL_FOLDER"])
    if clip:
        marks_of_clip = [folder.with_name(f"{clip}.{number}") for number in range(2)]
        if not claim_one_of(marks_of_clip):
            return
    marks = [folder / str(number) for number in range(int(os.environ["KILL_MOST"]))]
    if claim_one_of(marks):
        os.kill(os.getpid(), signal.SIGKILL)


def claim_one_of(marks: list[Path]) -> bool:
    """Make the first of some files that is not there yet; return whether there was one."""
    for mark in marks:
        with suppress(FileExistsError):
            mark.touch(exist_ok=False)
            return True
    return False


def arm(state: str) -> None:
    """Let this worker kill itself in a state: at a message that it receives or sends, or on the way."""
    from obygaze_features import workers

    receive, send = workers.receive_message, workers.send_message
    clip = ""  # of the latest task
    dies_before_first_task = random.random() < 0.5  # when idle; the other half of the workers die after it

    def receive_or_die(stream, *words):
        nonlocal clip
        had_no_task = clip == ""
        if state == "idle" and had_no_task and dies_before_first_task:
            kill()
        kind, message = receive(stream, *words)
        if kind == b"task":
            clip = re.findall(rb"tt\d+-\d{3}", message)[0].decode()
        return kind, message

    def send_or_die(stream, kind, message):
        if state == "sending" and kind == b"item":
            data = workers._HEAD.pack(kind, len(message)) + message
            middle = len(data) - len(message) // 2
            write(stream, data[:middle])
            kill(clip)
            write(stream, data[middle:])
            return
        if state == "starting":
            kill()
        if state == "decoding" and kind == b"busy":
            sys.setprofile(calls_until_killed(clip))
        send(stream, kind, message)
        if state == "idle" and kind == b"done":
            kill()

    workers.receive_message, workers.send_message = receive_or_die, send_or_die


def write(stream, data: bytes) -> None:
    stream.write(data)
    stream.flush()


def calls_until_killed(clip: str):
    """Return a profile function (`sys.setprofile`) that ends the process while it decodes a clip.

    It ends after up to `CALLS` calls of functions within `decode_clips`, or when that returns earlier.
    """
    n_events_left = random.randrange(CALLS)

    def profile(frame, event, _argument) -> None:
        nonlocal n_events_left
        if not is_within_decode_clips(frame):
            return
        clip_is_decoded = event == "return" and frame.f_code.co_name == "decode_clips"
        if clip_is_decoded or n_events_left <= 0:
            sys.setprofile(None)
            kill(clip)
        n_events_left -= 1

    return profile


def is_within_decode_clips(frame) -> bool:
    """Return whether a frame of Python's stack is one of `decode_clips`, or was called by it."""
    while frame is not None:
        if frame.f_code.co_name == "decode_clips":
            return True
        frame = frame.f_back
    return False


if "KILL_STATE" in os.environ and is_decode_worker():
    arm(os.environ["KILL_STATE"])
    if os.environ["KILL_STATE"] == "starting":
        threading.Timer(random.uniform(0.0, 0.2), kill).start()
