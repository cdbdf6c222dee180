"""What runs on clusters need: an environment with a lab's own backbone, and films in folders."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from obygaze.demo_corpus import write_video
from obygaze_features.manifest import Clip, Manifest, write_manifest
from tests.lab_package import describe
from tests.process import python

SCRIPTS = Path(__file__).parents[2] / "obygaze_features" / "job_scripts"


def wait_until(done: Callable[[], object], exit_code: Callable[[], object] = lambda: None) -> None:
    """Wait until `done` is true; fail once the process that brings it about has an exit code."""
    deadline = time.monotonic() + 1800
    while not done():
        assert exit_code() is None, "the process ended before"
        assert time.monotonic() < deadline
        time.sleep(0.05)


def descendants_of(pid: int) -> list[int]:
    """List the ids of the processes that a process began, of those that these began, and so on."""
    children: dict[int, list[int]] = {}
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has just ended
            children.setdefault(parent_of(process), []).append(int(process.name))
    descendants = []
    unvisited = [pid]
    while unvisited:
        own_children = children.get(unvisited.pop(), [])
        descendants += own_children
        unvisited += own_children
    return descendants


def parent_of(process: Path) -> int:
    """Return the id of the parent of a process, which is given as its folder in /proc (proc(5))."""
    status = (process / "stat").read_text(encoding="utf-8", errors="replace")
    # Behind the program's name, which is in brackets and may hold blanks, come the state and the parent's id.
    _, _, behind_name = status.rpartition(")")
    _, parent, *_ = behind_name.split()
    return int(parent)


def with_backbone(site: Path, name: str) -> dict[str, str]:
    """Install a backbone that lies beside this file into a folder; return an environment that finds it there.

    The environment knows no cluster that these tests may run on.
    """
    for file in (f"{name}.py", "stopping.py"):
        shutil.copy(Path(__file__).with_name(file), site)
    describe(site, name, f"[obygaze.backbones]\n{name} = {name}:{name}\n")
    variables_of_clusters = ("RAY_", "SLURM")
    without_cluster = {
        key: value for key, value in os.environ.items() if not key.startswith(variables_of_clusters)
    }
    return without_cluster | {"PYTHONPATH": python_path(site), "RAY_USAGE_STATS_ENABLED": "0"}


def python_path(folder: Path) -> str:
    """Return the value of PYTHONPATH by which Python looks in a folder first, and then where it looks now."""
    present = os.environ.get("PYTHONPATH")
    return f"{folder}{os.pathsep}{present}" if present else str(folder)


GATED_WIDTH = 66
"""Width of clips that the backbone `nap` decodes only when the file that NAP_GATE names is gone."""


def write_films(folder: Path, n_clips: int, gated: int | None = None) -> Path:
    """Write videos into the folders tt1 to tt3, and their manifest films.csv; return the folder.

    The videos are of one grey a frame and 12 to 35 frames long; `gated` is the number of one whose decoding
    waits (`GATED_WIDTH`). Two more clips fail: one whose file is empty, and one whose file is absent.
    """
    clips = []
    for number in range(n_clips):
        movie = f"tt{1 + number % 3}"
        (folder / movie).mkdir(exist_ok=True)
        width = GATED_WIDTH if number == gated else 64
        video = f"{movie}/clip-{number:02d}.mp4"
        n_frames = 12 + number % 24
        write_video(folder / video, grey_frames(n_frames, first_grey=7 * number, width=width), rate=24)
        clips.append(Clip(f"{movie}-{number:03d}", movie, video))
    (folder / "tt1" / "empty.mp4").touch()
    clips += [Clip("tt1-900", "tt1", "tt1/empty.mp4"), Clip("tt1-901", "tt1", "tt1/absent.mp4")]
    write_manifest(Manifest(tuple(clips), folder), folder / "films.csv")
    return folder


def grey_frames(n_frames: int, first_grey: int = 0, width: int = 64) -> Iterator[np.ndarray]:
    """Yield frames 48 pixels high, each of one grey: it is lighter by 1 from frame to frame, modulo 256."""
    for number in range(n_frames):
        yield np.full((48, width, 3), (first_grey + number) % 256, np.uint8)


def run_locally(folder: Path, environment: dict[str, str], *words: str) -> Path:
    """Return the store films-1.0.0 that the local engine makes, in which some clips have failed."""
    python("-m", "obygaze", *words, "--workers", "2", code=3, cwd=folder, env=environment)
    return folder / "films-1.0.0"


WAITS_MINUTES = "for i in {1..6000}; do sleep 0.05; done"
"""What a command does for five minutes; before it, the file `ready` says that a signal may come."""

EXITS_143_ON_TERM = f"trap 'exit 143' TERM; touch ready; {WAITS_MINUTES}"
"""As a command that is stopped: 128 + SIGTERM."""

EXITS_0_ON_TERM = f"trap 'exit 0' TERM; touch ready; {WAITS_MINUTES}"
"""As one that finishes in time."""

# Bash loses one of two signals that come at once; Slurm's are minutes apart.
EXITS_143_ON_SECOND_TERM = f"trap 'trap \"exit 143\" TERM; touch ready.2' TERM; touch ready; {WAITS_MINUTES}"

# Names its cluster; keeps everything else that it is asked for in a file.
SCONTROL = '[ "$1" = show ] && echo "ClusterName = alpha" || echo "$@" > asked'


READY_FILES = ("ready", "ready.2")
"""Files by which a command says that the first signal may come, and then the second."""


class FakeSlurm:
    """A folder in which a job script is run, with stand-ins for Slurm's commands and for one more command.

    Parameters
    ----------
    folder
        Where the stand-ins are written, and the script is run.
    command
        What the command `name` does, in Bash, after it has written its arguments into the file `arguments`.
    limit
        The job's time limit, as squeue prints it.
    name
        The command that the script runs.
    """

    def __init__(self, folder: Path, command: str = "exit 0", limit: str = "4:00:00", name: str = "obygaze"):
        self.folder = folder
        self._write_program("scontrol", SCONTROL)
        self._write_program("squeue", f"echo {limit}")
        self._write_program(name, f'echo "$@" > arguments; {command}')

    def _write_program(self, name: str, body: str) -> None:
        (self.folder / name).write_text(f"#!/bin/bash\n{body}\n", encoding="utf-8")
        (self.folder / name).chmod(0o755)

    def run(
        self, script: str, *words: str, signals: Sequence[signal.Signals] = (), **variables: str
    ) -> tuple[int, str]:
        """Run a script as task 2 of an array and send it up to two signals; return exit code and output.

        A signal is sent once the command is ready for it, which it says by a file (`READY_FILES`).
        """
        task = {"SLURM_JOB_ID": "11", "SLURM_ARRAY_JOB_ID": "9", "SLURM_ARRAY_TASK_ID": "2"}
        path = {"PATH": f"{self.folder}{os.pathsep}{os.environ['PATH']}"}
        with subprocess.Popen(
            ["bash", SCRIPTS / script, *words],
            cwd=self.folder,
            env=os.environ | task | variables | path,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            ready_files = READY_FILES[: len(signals)]
            for signal_to_send, ready in zip(signals, ready_files, strict=True):
                wait_until((self.folder / ready).exists)
                process.send_signal(signal_to_send)
            output, _ = process.communicate(timeout=600)
        return process.returncode, output

    @property
    def asked_of_slurm(self) -> str:
        """What Slurm was asked for."""
        path = self.folder / "asked"
        return path.read_text(encoding="utf-8").strip() if path.exists() else ""
