"""Helpers for extractions that are run, killed and compared as a whole."""

import contextlib
import hashlib
import io
import os
import signal
import subprocess
from collections import deque
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from obygaze.cli import main
from obygaze_features.store import Stage, staging_path
from tests.process import python

from ..store.conftest import _no_waiting_for_the_disk  # noqa: F401 - a fixture
from .clusters import python_path, wait_until


def begin_stage(job, store):
    """Begin the stage of a job."""
    return Stage.open(staging_path(store), job.planned_clips(), job.groups(), job.corpus_record())


def last_report(run):
    """Let an engine do all of its work; return its last report."""
    return deque(run, maxlen=1).pop()[0]


@pytest.fixture(scope="session")
def file_digests() -> Callable[[Path], dict[str, str]]:
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


# The tests may run under nohup, or in the background of a shell, which has its jobs ignore SIGINT.
STOPPING_COMMAND = (
    "import signal, sys, stopping; signal.signal(signal.SIGHUP, signal.SIG_DFL); "
    "signal.signal(signal.SIGINT, signal.default_int_handler); stopping.arm(); "
    "from obygaze.cli import main; main(sys.argv[1:])"
)


CAUGHT_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals at which the command ends its work in order."""


@pytest.fixture(scope="session")
def stop_by() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the command in a process that sends itself a signal once its journal has `n_clips` clips.

    Fails unless the process ends with 128 + the signal's number, or, by a signal that it does not catch, is
    killed.
    """

    def run(signal_to_send: signal.Signals, folder: Path, n_clips: int, *arguments: object) -> object:
        variables = {
            "PYTHONPATH": python_path(Path(__file__).parent),  # for `stopping`
            "STOP_AT": str(n_clips),
            "STOP_BY": signal_to_send.name,
        }
        is_caught = signal_to_send in CAUGHT_SIGNALS
        code = 128 + signal_to_send if is_caught else -signal_to_send
        return python("-c", STOPPING_COMMAND, *arguments, code=code, cwd=folder, env=os.environ | variables)

    return run


@pytest.fixture
def pause(tmp_path) -> "Pause":
    return Pause(tmp_path / "paused")


class Pause:
    """A pause of runs once so many clips stand in their journals, until they may go on or are killed.

    The backbones `nap` and `brittle` pause a run that has the environment variables of `variables`. Each
    process that has paused leaves a file of its id in a folder.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()

    def variables(self, after_clips: int) -> dict[str, str]:
        """Return the environment variables of a run that pauses once so many clips stand in its journal."""
        return {"STOP_AT": str(after_clips), "STOP_FOLDER": str(self.folder)}

    def wait_until_paused(self, number: int, exit_code: Callable[[], object] = lambda: None) -> list[int]:
        """Wait until so many processes have paused, and return their ids."""
        wait_until(lambda: len(list(self.folder.iterdir())) >= number, exit_code)
        return [int(path.name) for path in self.folder.iterdir()]

    def end(self) -> None:
        """Let all processes that have paused go on."""
        (self.folder / "go").touch()
