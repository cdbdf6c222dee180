"""Kill worker processes in a chosen state: Python imports this first wherever this folder is on its path.

KILL_STATE is idle, starting, decoding or sending; KILL_FOLDER collects a file a kill, KILL_MOST of them at
most. A clip is killed twice at most: the third time would be its own fault.
"""

import os
import random
import re
import signal
import sys
import threading
from pathlib import Path


def is_worker() -> bool:
    return any("spawn_main" in word for word in sys.orig_argv)


def kill(whom: str) -> None:
    """End this process, unless enough were ended already."""
    folder = Path(os.environ["KILL_FOLDER"])
    for number in range(2 if whom else 1000):
        if len(list(folder.iterdir())) >= int(os.environ["KILL_MOST"]):
            return
        try:
            (folder / f"{whom}.{number}").touch(exist_ok=False)
        except FileExistsError:
            continue
        os.kill(os.getpid(), signal.SIGKILL)


def arm(state: str) -> None:
    from multiprocessing import connection

    Channel = connection.Connection
    receive, send = Channel._recv, Channel._send
    task = {"clip": ""}

    def is_decoding() -> bool:
        frame = sys._current_frames()[threading.main_thread().ident]
        while frame is not None and frame.f_code.co_name != "decode_clips":
            frame = frame.f_back
        return frame is not None

    def kill_if_decoding() -> None:
        if is_decoding():
            kill(task["clip"])

    def receiving(self, size, *words):
        if state == "idle" and size == 4 and not self.poll():
            kill("")
        buffer = receive(self, size, *words)
        found = re.findall(rb"tt\d+-\d{3}", buffer.getvalue())
        if found:
            task["clip"] = found[0].decode()
            if state == "decoding":
                threading.Timer(random.uniform(0.0, 0.02), kill_if_decoding).start()
        return buffer

    def sending(self, buffer, *words):
        if state == "sending" and b"Parcel" in bytes(buffer):
            send(self, bytes(buffer)[: len(buffer) // 2])
            kill(task["clip"])
            buffer = bytes(buffer)[len(buffer) // 2 :]
        return send(self, buffer, *words)

    Channel._recv, Channel._send = receiving, sending


if is_worker() and "KILL_STATE" in os.environ:
    if os.environ["KILL_STATE"] == "starting":
        threading.Timer(random.uniform(0.0, 0.2), kill, [""]).start()
    else:
        arm(os.environ["KILL_STATE"])
