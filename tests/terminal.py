"""A terminal to run commands in."""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from contextlib import suppress
from pathlib import Path

COLUMNS = 80


def in_terminal(words: list[str], folder: Path | None = None) -> tuple[int, str]:
    """Run a command of obygaze in a terminal of 80 columns; return its exit code and all that reached it.

    Not by `pty.fork`: where a process has threads, such as zarr's, Python 3.12 warns of it, an error here.
    """
    ours, theirs = pty.openpty()
    try:
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))
        process = subprocess.Popen(
            [sys.executable, "-m", "obygaze", *words],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=folder,
            env={name: value for name, value in os.environ.items() if name != "COLUMNS"},
            start_new_session=True,
        )
    finally:
        os.close(theirs)
    blocks = []
    with process, suppress(OSError):  # the error that ends it: the other end was closed
        while block := os.read(ours, 1 << 16):
            blocks.append(block)
    os.close(ours)
    return process.returncode, b"".join(blocks).decode()
