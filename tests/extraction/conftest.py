"""Helpers for extractions that are run, killed and compared as a whole."""

import contextlib
import hashlib
import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from obygaze.cli import main


@pytest.fixture(scope="session")
def tree() -> Callable[[Path], dict[str, str]]:
    """Digest of every file below a folder, by its path."""

    def digests(folder: Path) -> dict[str, str]:
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        return {
            str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files
        }

    return digests


@pytest.fixture(scope="session")
def obygaze() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the command in a folder as a user would, but in this process, which has imported all it needs."""

    def run(folder: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
        words = [str(argument) for argument in arguments]
        out, err = io.StringIO(), io.StringIO()
        with (
            contextlib.chdir(folder),
            redirect_stdout(out),
            redirect_stderr(err),
            pytest.raises(SystemExit) as left,
        ):
            main(words)
        return subprocess.CompletedProcess(words, left.value.code, out.getvalue(), err.getvalue())

    return run


@pytest.fixture(scope="session")
def wait_for_journal() -> Callable[[Path, int, subprocess.Popen[str]], None]:
    """Wait until so many lines stand in the journals of a stage that somebody is writing."""

    def wait(staging: Path, lines: int, running: subprocess.Popen[str]) -> None:
        deadline = time.monotonic() + 300
        while sum(path.read_bytes().count(b"\n") for path in (staging / "journal").glob("*")) < lines:
            assert running.poll() is None, "it ended before it could be stopped"
            assert time.monotonic() < deadline
            time.sleep(0.005)

    return wait


@pytest.fixture(scope="session")
def kill_after(wait_for_journal) -> Callable[..., None]:
    """Start the command, and kill -9 it once so many lines stand in the stage's journals."""

    def run_and_kill(folder: Path, staging: str, lines: int, *arguments: object) -> None:
        command = [sys.executable, "-m", "obygaze", *map(str, arguments)]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        with subprocess.Popen(command, cwd=folder, text=True, **quiet) as running:
            wait_for_journal(folder / staging, lines, running)
            os.kill(running.pid, signal.SIGKILL)

    return run_and_kill
